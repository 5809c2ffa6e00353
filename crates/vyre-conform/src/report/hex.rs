//! Where two results differ, byte by byte.

use vyre_foundation::ir::DataType;
use vyre_foundation::values;

/// Bytes in a row.
const ROW: usize = 16;
/// Rows that are shown.
const ROWS: usize = 8;

/// The rows around the first difference of two results.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HexDiff {
    /// The rows, from the one before the first difference on.
    pub rows: Vec<Row>,
    /// The first byte that differs; `None` if one result is the beginning of the other, or both are the same.
    pub first: Option<usize>,
    /// Bytes that differ, those that only one result has included.
    pub differing: usize,
    /// Bytes of both results together that are not shown.
    pub hidden: usize,
}

/// Sixteen bytes of both results.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    /// Where it begins.
    pub offset: usize,
    /// What was expected.
    pub expected: Vec<Cell>,
    /// What the device gave.
    pub found: Vec<Cell>,
}

/// A byte of one result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cell {
    /// Two hex digits.
    pub text: String,
    /// Whether the other result has another byte there, or none.
    pub differs: bool,
}

impl HexDiff {
    /// Compares two results.
    #[must_use]
    pub fn of(expected: &[u8], found: &[u8]) -> HexDiff {
        let first = expected.iter().zip(found).position(|(one, other)| one != other);
        let common = expected.len().min(found.len());
        let longest = expected.len().max(found.len());
        let others = expected.iter().zip(found).filter(|(one, other)| one != other).count();
        let begin = first.unwrap_or(common) / ROW;
        let begin = begin.saturating_sub(1);
        let cells = |mine: &[u8], other: &[u8], offset: usize| -> Vec<Cell> {
            let part = mine.iter().enumerate().skip(offset).take(ROW);
            part.map(|(at, byte)| Cell { text: format!("{byte:02x}"), differs: other.get(at) != Some(byte) }).collect()
        };
        let row = |number: usize| {
            let offset = number * ROW;
            Row { offset, expected: cells(expected, found, offset), found: cells(found, expected, offset) }
        };
        let end = longest.div_ceil(ROW).min(begin + ROWS);
        let rows: Vec<Row> = (begin..end).map(row).collect();
        let shown: usize = rows.iter().map(|row| row.expected.len() + row.found.len()).sum();
        HexDiff { rows, first, differing: others + longest - common, hidden: expected.len() + found.len() - shown }
    }
}

/// The element that is wrong first: its number, and both values as text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lane {
    /// Which element of the output.
    pub number: usize,
    /// Of which type, as the text form spells it.
    pub of: String,
    /// What was expected.
    pub expected: String,
    /// What the device gave.
    pub found: String,
}

/// The first wrong element, if all outputs have elements of one size. (Results of several outputs stand one behind the other.)
#[must_use]
pub fn lane(outputs: &[String], expected: &[u8], found: &[u8]) -> Option<Lane> {
    let types: Vec<DataType> = outputs.iter().map(|name| DataType::plain_from_word(name)).collect::<Option<_>>()?;
    let (first, rest) = types.split_first()?;
    let bytes = |of: &DataType| of.bits().filter(|bits| *bits > 0 && bits % 8 == 0).map(|bits| bits as usize / 8);
    let size = bytes(first)?;
    if rest.iter().any(|other| bytes(other) != Some(size)) {
        return None;
    }
    let at = expected.iter().zip(found).position(|(one, other)| one != other)?;
    let number = at / size;
    let is_one = rest.iter().all(|other| other == first);
    let element = |result: &[u8]| {
        let bytes = result.get(number * size..(number + 1) * size)?;
        if is_one { values::decode(first, bytes).pop() } else { Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect()) }
    };
    let of = if is_one { first.to_string() } else { format!("{size} bytes") };
    Some(Lane { number, of, expected: element(expected)?, found: element(found)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_begin_before_the_first_difference() {
        let expected: Vec<u8> = (0..200).map(|n| n as u8).collect();
        let mut found = expected.clone();
        found[40] ^= 1;
        found[199] ^= 1;
        let diff = HexDiff::of(&expected, &found);
        assert_eq!((diff.first, diff.differing, diff.rows[0].offset, diff.rows.len()), (Some(40), 2, 16, 8));
        assert_eq!(diff.hidden, 400 - 2 * 8 * 16);
        let wrong: Vec<(usize, &str)> =
            diff.rows[1].found.iter().enumerate().filter(|(_, cell)| cell.differs).map(|(at, cell)| (at, &*cell.text)).collect();
        assert_eq!(wrong, [(8, "29")]);
    }

    #[test]
    fn results_of_other_lengths_differ_in_what_one_has_more() {
        let diff = HexDiff::of(&[1, 2, 3], &[1]);
        assert_eq!((diff.first, diff.differing, diff.hidden), (None, 2, 0));
        assert_eq!(diff.rows[0].expected.iter().map(|cell| cell.differs).collect::<Vec<_>>(), [false, true, true]);
        assert_eq!(HexDiff::of(&[], &[]).rows, []);
    }

    #[test]
    fn the_first_wrong_element_is_told_with_its_values() {
        let words = |words: [u32; 3]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
        let (expected, found) = (words([1, 2, 0x3f80_0000]), words([1, 2, 0x4000_0000]));
        let told = |of: &str| lane(&[of.to_string()], &expected, &found).map(|lane| (lane.number, lane.expected, lane.found));
        assert_eq!(told("f32"), Some((2, "1.0".into(), "2.0".into())));
        assert_eq!(told("u32"), Some((2, "1065353216".into(), "1073741824".into())));
        assert_eq!(told("u8").map(|(number, ..)| number), Some(10));
        assert_eq!((told("i4"), told("nothing")), (None, None));
        assert_eq!(lane(&["f32".into(), "u32".into()], &expected, &found).unwrap().expected, "0000803f");
        assert_eq!(lane(&["f64".into()], &expected, &found), None);
    }
}
