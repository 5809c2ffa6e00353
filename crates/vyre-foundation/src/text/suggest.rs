//! The name that was probably meant.

/// Longer names are not compared: the cost is the product of both lengths, and nobody mistypes so much text.
const MAX_COMPARED: usize = 64;

/// Words of other languages, each with ours for the same.
const ELSEWHERE: [(&str, &str); 20] = [
    ("auto", "let"),
    ("bfloat16", "bf16"),
    ("boolean", "bool"),
    ("byte", "u8"),
    ("char", "i8"),
    ("double", "f64"),
    ("float", "f32"),
    ("half", "f16"),
    ("int", "i32"),
    ("long", "i64"),
    ("mut", "let"),
    ("readonly", "read"),
    ("shared", "workgroup"),
    ("short", "i16"),
    ("uchar", "u8"),
    ("uint", "u32"),
    ("ulong", "u64"),
    ("ushort", "u16"),
    ("var", "let"),
    ("writeonly", "output"),
];

/// The candidate that was most likely meant by `name`: the word for the same in our language, or the first of those with the fewest
/// edits (a character added, left out, replaced, or two swapped), if that is at most a third of the name. Case does not count.
#[must_use]
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let ours = ELSEWHERE.iter().find(|(theirs, _)| *theirs == name).map(|(_, ours)| *ours);
    let name: Vec<char> = fold(name)?;
    let mut best = None;
    let mut limit = (name.len() / 3).max(1);
    for candidate in candidates {
        if Some(candidate) == ours {
            return ours;
        }
        let Some(other) = fold(candidate) else { continue };
        if other.is_empty() || name.len().abs_diff(other.len()) > limit {
            continue;
        }
        let distance = distance(&name, &other);
        // A name of one or two characters is one edit from every other such name.
        let close = distance <= limit && distance < name.len().max(other.len());
        if close && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
            limit = distance;
        }
    }
    best.map(|(_, candidate)| candidate)
}

fn fold(name: &str) -> Option<Vec<char>> {
    (name.len() <= MAX_COMPARED).then(|| name.chars().map(|c| c.to_ascii_lowercase()).collect())
}

/// Edits from one to the other; a swap of neighbours counts as one.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = vec![0; b.len() + 1];
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replaced = above[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replaced.min(above[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn close_names_are_found_and_far_ones_are_not() {
        let names = ["input", "output", "scale", "i", "x"];
        assert_eq!(nearest("outptu", names), Some("output"));
        assert_eq!(nearest("Scale", names), Some("scale"));
        assert_eq!(nearest("inptus", names), Some("input"));
        assert_eq!(nearest("weights", names), None);
        assert_eq!(nearest("j", names), None);
        assert_eq!(nearest("", names), None);
        assert_eq!(nearest(&"a".repeat(1000), [&*"a".repeat(1001)]), None);
    }

    #[test]
    fn words_of_other_languages_are_translated_where_ours_can_stand() {
        assert_eq!(nearest("float", ["floor", "f32"]), Some("f32"));
        assert_eq!(nearest("var", ["bar", "let"]), Some("let"));
        assert_eq!(nearest("var", ["bar", "if"]), Some("bar"));
    }

    #[test]
    fn the_first_of_the_closest_wins() {
        assert_eq!(nearest("mam", ["map", "max", "min"]), Some("map"));
        assert_eq!(nearest("max_", ["map", "max", "min"]), Some("max"));
    }
}
