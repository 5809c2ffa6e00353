//! Bytes that one thread owns as bytes that several share: the one place where that is done.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32};
use vyre_reference::bulk::{Shared, Unit};

/// The same bytes as atomics, for as long as they are borrowed. `None` where they are not aligned to the unit.
pub(crate) fn share(bytes: &mut [u8], unit: Unit) -> Option<Shared<'_>> {
    Some(match unit {
        Unit::Byte => Shared::Bytes(atomics::<AtomicU8>(bytes)?),
        Unit::Half => Shared::Halves(atomics::<AtomicU16>(bytes)?),
        Unit::Word => Shared::Words(atomics::<AtomicU32>(bytes)?),
    })
}

/// An atomic without gaps, which has the layout of an integer.
trait Atomic {}

impl Atomic for AtomicU8 {}
impl Atomic for AtomicU16 {}
impl Atomic for AtomicU32 {}

fn atomics<A: Atomic>(bytes: &mut [u8]) -> Option<&[A]> {
    let (start, count) = (bytes.as_mut_ptr().cast::<A>(), bytes.len() / size_of::<A>());
    if !start.is_aligned() {
        return None;
    }
    // SAFETY: any bytes are an integer, and `A` has the size and layout of one; the bytes are aligned, there are as many, and they are
    // borrowed exclusively, so that whoever reads or writes them for as long as the result lives does so through it.
    Some(unsafe { std::slice::from_raw_parts(start, count) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::Relaxed;

    #[test]
    fn units_are_where_the_bytes_are() {
        let mut words = [0x0403_0201_u32, 0x0807_0605];
        let bytes = bytemuck_bytes(&mut words);
        assert!(
            matches!(share(&mut bytes[..7], Unit::Word), Some(Shared::Words([word])) if word.load(Relaxed).to_le() == 0x0403_0201)
        );
        assert!(
            matches!(share(&mut bytes[2..], Unit::Half), Some(Shared::Halves([_, _, third])) if third.load(Relaxed).to_le() == 0x0807)
        );
        assert!(matches!(share(&mut bytes[1..], Unit::Byte), Some(Shared::Bytes(all)) if all.len() == 7));
        assert!(share(&mut bytes[1..], Unit::Half).is_none() && share(&mut bytes[2..], Unit::Word).is_none());
    }

    fn bytemuck_bytes(words: &mut [u32; 2]) -> &mut [u8] {
        words.iter_mut().for_each(|word| *word = word.to_le());
        // SAFETY: integers are bytes without gaps.
        unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), 8) }
    }
}
