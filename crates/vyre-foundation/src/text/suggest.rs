//! The name that was probably meant.

use super::foreign;

/// Longer names are not compared: the cost is the product of both lengths, and nobody mistypes so much text.
const MAX_COMPARED: usize = 64;

/// The candidate that was most likely meant by `name`: the word for the same in our language, or the first of those with the fewest
/// edits (a character added, left out, replaced, or two swapped), if that is at most a third of the name. Case does not count.
#[must_use]
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    pick(name, candidates, |_, _| false)
}

/// The same of candidates in no particular order: of those with the fewest edits the first in the order of texts.
#[must_use]
pub fn nearest_unordered<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    pick(name, candidates, |new, old| new < old)
}

/// The nearest candidate; `wins` says whether one beats another that is as near.
fn pick<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>, wins: fn(&str, &str) -> bool) -> Option<&'a str> {
    let ours = foreign::word(name);
    if name.len() > MAX_COMPARED {
        return None;
    }
    let mut table = Table::default();
    table.name.extend(fold(name));
    let length = table.name.len();
    let mut best: Option<(usize, &str)> = None;
    let mut limit = (length / 3).max(1);
    for candidate in candidates {
        if Some(candidate) == ours {
            return Some(candidate);
        }
        if candidate.is_empty() || candidate.len() > MAX_COMPARED || length.abs_diff(candidate.chars().count()) > limit {
            continue;
        }
        let Some(distance) = table.distance(candidate, limit) else { continue };
        // A name of one or two characters is one edit from every other such name.
        let close = distance < length.max(table.other.len());
        if close && best.is_none_or(|(least, old)| distance < least || distance == least && wins(candidate, old)) {
            best = Some((distance, candidate));
            limit = distance;
        }
    }
    best.map(|(_, candidate)| candidate)
}

fn fold(name: &str) -> impl Iterator<Item = char> {
    name.chars().map(|c| c.to_ascii_lowercase())
}

/// What comparing takes, kept from one candidate to the next: there may be as many as the program has names.
#[derive(Default)]
struct Table {
    name: Vec<char>,
    other: Vec<char>,
    /// The rows of the table of edits that are needed: two before, one before, this one.
    rows: [Vec<usize>; 3],
}

impl Table {
    /// Edits from the name to the other; a swap of neighbours counts as one. `None` if there are more than `limit`.
    fn distance(&mut self, other: &str, limit: usize) -> Option<usize> {
        self.other.clear();
        self.other.extend(fold(other));
        let (a, b) = (&self.name, &self.other);
        let [before, above, row] = &mut self.rows;
        above.clear();
        above.extend(0..=b.len());
        for i in 1..=a.len() {
            row.clear();
            row.push(i);
            for j in 1..=b.len() {
                let replaced = above[j - 1] + usize::from(a[i - 1] != b[j - 1]);
                let mut edits = replaced.min(above[j] + 1).min(row[j - 1] + 1);
                if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                    edits = edits.min(before[j - 2] + 1);
                }
                row.push(edits);
            }
            // No later row has less than the least of two rows in a row, for a swap reaches two rows back.
            if row.iter().chain(&*above).all(|edits| *edits > limit) {
                return None;
            }
            std::mem::swap(before, above);
            std::mem::swap(above, row);
        }
        Some(above[b.len()]).filter(|edits| *edits <= limit)
    }
}

#[cfg(test)]
mod tests {
    use super::{nearest, nearest_unordered};

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
        assert_eq!(nearest("mam", ["max", "min", "map"]), Some("max"));
        assert_eq!(nearest_unordered("mam", ["max", "min", "map"]), Some("map"));
        assert_eq!(nearest_unordered("abxde", ["abcde", "badxe", "abxed"]), Some("abcde"));
    }
}
