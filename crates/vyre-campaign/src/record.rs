//! Records of units as the database stores them: 97 bytes each, one after the other.
//!
//! All have the same size, so that the database can check that an answer has a record for every unit, and compare a part of one answer with
//! another, without knowing what they contain. Each ends with a hash over itself and its place, as the rows of a ledger do.

use vyre_conform::Digest;
use vyre_conform::ledger::UnitRecord;

/// Bytes of a record: two hashes, four counts, whether the workgroup size was confirmed, and the hash over all that.
pub const BYTES: usize = 97;

const MARK: usize = 16;

fn mark(section: &str, first: u64, cases: u64, bytes: &[u8]) -> [u8; MARK] {
    let digest = Digest::of([section.as_bytes(), &first.to_le_bytes(), &cases.to_le_bytes(), bytes]);
    *digest.0.first_chunk().expect("a digest is longer")
}

/// Appends the record of a unit of a section.
pub fn encode(section: &str, record: &UnitRecord, into: &mut Vec<u8>) {
    let UnitRecord { first, cases, inputs: _, expected, actual, tested, failed, skipped, referred, confirmed } = record;
    let start = into.len();
    into.extend(expected.0);
    into.extend(actual.0);
    for count in [tested, failed, skipped, referred] {
        // A unit has at most 2^16 cases.
        into.extend(u32::try_from(*count).unwrap_or(u32::MAX).to_le_bytes());
    }
    into.push(u8::from(*confirmed));
    let mark = mark(section, *first, *cases, &into[start..]);
    into.extend(mark);
}

/// The record of the unit of a section that has these cases.
///
/// # Errors
///
/// If the bytes are not what [`encode`] writes for this unit.
pub fn decode(section: &str, first: u64, cases: u64, bytes: &[u8]) -> Result<UnitRecord, String> {
    let wrong = |what: &str| format!("the record of {section}:{first} {what}");
    let Some((body, found)) = bytes.split_last_chunk::<MARK>().filter(|(body, _)| body.len() + MARK == BYTES) else {
        return Err(wrong("has another length"));
    };
    if mark(section, first, cases, body) != *found {
        return Err(wrong("does not have the bytes that were written"));
    }
    let digest = |at: usize| Digest(*body[at..].first_chunk().expect("a record has two hashes"));
    let count = |n: usize| u64::from(u32::from_le_bytes(*body[64 + 4 * n..].first_chunk().expect("a record has four counts")));
    let [tested, failed, skipped, referred] = [0, 1, 2, 3].map(count);
    if failed > tested || tested + skipped > cases || referred > tested || body[80] > 1 {
        return Err(wrong(&format!("says that {failed} of {tested} of {cases} cases failed and {skipped} were skipped")));
    }
    let (expected, actual, confirmed) = (digest(0), digest(32), body[80] == 1);
    Ok(UnitRecord { first, cases, inputs: None, expected, actual, tested, failed, skipped, referred, confirmed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_back_at_their_place_and_nowhere_else() {
        let record = UnitRecord {
            first: 64,
            cases: 64,
            inputs: None,
            expected: Digest::of(["e"]),
            actual: Digest::of(["a"]),
            tested: 60,
            failed: 3,
            skipped: 4,
            referred: 2,
            confirmed: true,
        };
        let mut bytes = Vec::new();
        encode("s", &record, &mut bytes);
        assert_eq!(bytes.len(), BYTES);
        assert_eq!(decode("s", 64, 64, &bytes), Ok(record.clone()));
        assert!(
            decode("t", 64, 64, &bytes).is_err() && decode("s", 0, 64, &bytes).is_err() && decode("s", 64, 65, &bytes).is_err()
        );
        for at in 0..BYTES {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert!(decode("s", 64, 64, &damaged).is_err(), "byte {at}");
        }
        // What is impossible is refused, whoever wrote a mark over it.
        let mut bytes = Vec::new();
        encode("s", &UnitRecord { failed: 61, ..record }, &mut bytes);
        assert!(decode("s", 64, 64, &bytes).unwrap_err().contains("61 of 60"));
    }
}
