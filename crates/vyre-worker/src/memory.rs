//! Where the buffers of a batch lie in shared memory, and how it is seen that somebody wrote where nothing was to be written.
//!
//! ```text
//! status words, one per case   guard  buffer  guard   guard  buffer  guard   …
//! ```
//!
//! While a worker runs one batch, the next is put in place beside it, so there are two of these at most. A buffer begins at a multiple of 64 bytes, has [`GUARD`] bytes before it and at least as many after its last byte. Guards and outputs
//! are filled with the poison of the batch before it is sent; afterwards guards must have it still, and inputs what was put there.
//! All of it is words that the other process may change at any time, so they are atomics and never a slice of bytes.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes before and after every buffer in which nothing is to be written.
pub(crate) const GUARD: u64 = 64;

/// Where a buffer is: its first byte in the shared memory, and how many there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Region {
    /// The first byte.
    pub offset: u64,
    /// How many.
    pub bytes: u64,
}

/// Which side of a buffer was written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// Before its first byte.
    Before,
    /// After its last byte.
    After,
    /// Inside, though it is an input.
    Inside,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Side::Before => "before",
            Side::After => "behind",
            Side::Inside => "in the input",
        })
    }
}

/// What a status word says about its case; a worker sets it.
pub(crate) mod status {
    pub(crate) const WAITING: u64 = 0;
    pub(crate) const RUNNING: u64 = 1;
    pub(crate) const OUTPUTS: u64 = 2;
    pub(crate) const FAILED: u64 = 3;
}

/// What a status word says.
pub(crate) fn state(word: &AtomicU64) -> u64 {
    u64::from_le(word.load(Ordering::Acquire))
}

/// Gives places away from the front.
pub(crate) struct Layout {
    end: u64,
}

impl Layout {
    /// From a multiple of 64 on, behind the status words of so many cases.
    pub(crate) fn behind_status(start: u64, cases: usize) -> Layout {
        Layout { end: data_start(start, cases as u64) }
    }

    pub(crate) fn place(&mut self, bytes: u64) -> Region {
        let offset = self.end + GUARD;
        // At least a whole guard after the last byte, and the next buffer again at a multiple of 64.
        self.end = (offset + bytes + GUARD).next_multiple_of(GUARD);
        Region { offset, bytes }
    }

    pub(crate) fn end(&self) -> u64 {
        self.end
    }
}

/// Where what is behind the status words of so many cases begins.
fn data_start(start: u64, cases: u64) -> u64 {
    start + (cases * 8).next_multiple_of(GUARD)
}

/// The poison of a batch: another for each, so that what was written before does not look untouched.
pub(crate) fn poison(batch: u64) -> u64 {
    (batch + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1
}

fn words(memory: &[AtomicU64], from: u64, to: u64) -> &[AtomicU64] {
    &memory[(from / 8) as usize..(to / 8) as usize]
}

fn fill(words: &[AtomicU64], poison: u64) {
    words.iter().for_each(|word| word.store(poison.to_le(), Ordering::Relaxed));
}

/// The end of a buffer and of the guard behind it, in whole words.
fn ends(region: Region) -> (u64, u64) {
    let end = region.offset + region.bytes;
    (end - end % 8, (end + GUARD).next_multiple_of(GUARD))
}

/// Puts bytes into a buffer and poison around it.
pub(crate) fn put(memory: &[AtomicU64], region: Region, bytes: &[u8], poison: u64) {
    let (whole, end) = ends(region);
    fill(words(memory, region.offset - GUARD, region.offset), poison);
    let (chunks, tail) = bytes.as_chunks::<8>();
    for (word, chunk) in words(memory, region.offset, whole).iter().zip(chunks) {
        word.store(u64::from_ne_bytes(*chunk), Ordering::Relaxed);
    }
    fill(words(memory, whole, end), poison);
    if !tail.is_empty() {
        let mut last = poison.to_le_bytes();
        last[..tail.len()].copy_from_slice(tail);
        words(memory, whole, end)[0].store(u64::from_ne_bytes(last), Ordering::Relaxed);
    }
}

/// Poison in a buffer and around it.
pub(crate) fn poison_all(memory: &[AtomicU64], region: Region, poison: u64) {
    fill(words(memory, region.offset - GUARD, ends(region).1), poison);
}

/// The bytes of a buffer, in the place of what was in `bytes`.
pub(crate) fn get(memory: &[AtomicU64], region: Region, bytes: &mut Vec<u8>) {
    let end = (region.offset + region.bytes).next_multiple_of(8);
    let words = words(memory, region.offset, end);
    bytes.resize(8 * words.len(), 0);
    let (chunks, _) = bytes.as_chunks_mut::<8>();
    chunks.iter_mut().zip(words).for_each(|(chunk, word)| *chunk = word.load(Ordering::Relaxed).to_ne_bytes());
    bytes.truncate(region.bytes as usize);
}

/// Whether all words are this one.
fn are_all(words: &[AtomicU64], word: u64) -> bool {
    words.iter().fold(0, |differs, found| differs | (found.load(Ordering::Relaxed) ^ word)) == 0
}

/// Where something was written around a buffer, or in it if it is an input with these bytes: the side, and how far from it.
pub(crate) fn written(memory: &[AtomicU64], region: Region, input: Option<&[u8]>, poison: u64) -> Option<(Side, u64)> {
    let (whole, end) = ends(region);
    let in_tail = (region.offset + region.bytes) % 8;
    let poison = poison.to_le();
    let guards = [words(memory, region.offset - GUARD, region.offset), words(memory, whole + in_tail.min(1) * 8, end)];
    let unchanged = |input: &[u8]| {
        let (chunks, _) = input.as_chunks::<8>();
        let pairs = words(memory, region.offset, whole).iter().zip(chunks);
        pairs.fold(0, |differs, (word, chunk)| differs | (word.load(Ordering::Relaxed) ^ u64::from_ne_bytes(*chunk))) == 0
    };
    if in_tail == 0 && guards.iter().all(|guard| are_all(guard, poison)) && input.is_none_or(unchanged) {
        return None;
    }
    // Byte by byte, to say where: the way of what is wrong, and of what ends within a word.
    let byte = |at: u64| memory[(at / 8) as usize].load(Ordering::Relaxed).to_ne_bytes()[(at % 8) as usize];
    let expected = |at: u64| poison.to_ne_bytes()[(at % 8) as usize];
    let start = region.offset;
    if !are_all(guards[0], poison) {
        let at = (start - GUARD..start).rev().find(|at| byte(*at) != expected(*at))?;
        return Some((Side::Before, start - at));
    }
    if let Some(input) = input
        && (in_tail > 0 || !unchanged(input))
        && (!unchanged(input) || (whole..start + region.bytes).any(|at| byte(at) != input[(at - start) as usize]))
    {
        let at = (0..region.bytes).find(|at| byte(start + at) != input[*at as usize])?;
        return Some((Side::Inside, at));
    }
    let after = start + region.bytes;
    let tail_is_whole = (after..after.next_multiple_of(8)).all(|at| byte(at) == expected(at));
    if tail_is_whole && are_all(guards[1], poison) {
        return None;
    }
    let at = (after..end).find(|at| byte(*at) != expected(*at))?;
    Some((Side::After, at - after))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every byte around and in buffers of every length up to some is noticed when it changes, by side and distance.
    #[test]
    fn every_byte_that_was_written_is_found() {
        for length in 0..40u64 {
            let memory: Vec<AtomicU64> = (0..40).map(|_| AtomicU64::new(7)).collect();
            let mut layout = Layout { end: 0 };
            let region = layout.place(length);
            let bytes: Vec<u8> = (0..length as u8).collect();
            let poison = poison(length);
            for input in [Some(bytes.as_slice()), None] {
                match input {
                    Some(bytes) => put(&memory, region, bytes, poison),
                    None => poison_all(&memory, region, poison),
                }
                assert_eq!(written(&memory, region, input, poison), None, "{length}");
                if input.is_some() {
                    for mut found in [vec![], vec![9; 7], vec![9; 100]] {
                        get(&memory, region, &mut found);
                        assert_eq!(found, bytes);
                    }
                }
                for at in region.offset - GUARD..layout.end() {
                    let word = &memory[(at / 8) as usize];
                    let flipped = 1u64 << (8 * (at % 8));
                    word.fetch_xor(flipped.to_le(), Ordering::Relaxed);
                    let after = region.offset + region.bytes;
                    let expected = match (at < region.offset, at < after, input) {
                        (true, ..) => Some((Side::Before, region.offset - at)),
                        (false, true, Some(_)) => Some((Side::Inside, at - region.offset)),
                        (false, true, None) => None,
                        (false, false, _) => Some((Side::After, at - after)),
                    };
                    assert_eq!(written(&memory, region, input, poison), expected, "length {length}, byte {at}");
                    word.fetch_xor(flipped.to_le(), Ordering::Relaxed);
                }
            }
        }
    }
}
