//! Elements of memory and the values they stand for: where NaN loses its payload and tiny floats become zero.

use std::marker::PhantomData;

/// What a program does with tiny floats; a type, so that loops over columns know it.
pub trait Mode: Copy + Send + Sync + 'static {
    /// Whether floats up to the smallest normal magnitude are +0.
    const FLUSHES: bool;
}

/// Subnormals and signed zeros are kept.
#[derive(Clone, Copy, Debug)]
pub struct Ieee;

impl Mode for Ieee {
    const FLUSHES: bool = false;
}

/// Every float of magnitude at most 2⁻¹²⁶ (f64: 2⁻¹⁰²²) is +0.
#[derive(Clone, Copy, Debug)]
pub struct Canonical;

impl Mode for Canonical {
    const FLUSHES: bool = true;
}

/// An element type whose elements are whole bytes, and how it becomes a value and is made from one.
pub trait Element: 'static {
    /// What a kernel computes on.
    type Value: Copy;
    /// Bytes of one element.
    const BYTES: usize;
    /// The value of an element; there are [`Element::BYTES`] bytes.
    fn load(bytes: &[u8]) -> Self::Value;
    /// Writes an element; there is room for [`Element::BYTES`] bytes.
    fn store(value: Self::Value, bytes: &mut [u8]);
}

/// The bytes as an array. Callers pass slices of the right length, which the compiler sees.
pub(crate) fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.try_into().expect("an element has the bytes of its type")
}

macro_rules! integers {
    ($( $t:ty, $memory:ty; )*) => { $(
        impl Element for $t {
            type Value = $t;
            const BYTES: usize = size_of::<$memory>();
            fn load(bytes: &[u8]) -> $t {
                <$memory>::from_le_bytes(array(bytes)) as $t
            }
            fn store(value: $t, bytes: &mut [u8]) {
                bytes.copy_from_slice(&(value as $memory).to_le_bytes());
            }
        }
    )* };
}

integers! { u32, u32; i32, i32; u64, u64; i64, i64; }

impl Element for bool {
    type Value = bool;
    const BYTES: usize = 4;
    fn load(bytes: &[u8]) -> bool {
        u32::load(bytes) != 0
    }
    fn store(value: bool, bytes: &mut [u8]) {
        u32::store(u32::from(value), bytes);
    }
}

/// An integer that is narrower in memory than in a kernel.
pub struct Narrow<Memory, Value>(PhantomData<(Memory, Value)>);

macro_rules! narrow {
    ($( $memory:ty, $value:ty; )*) => { $(
        impl Element for Narrow<$memory, $value> {
            type Value = $value;
            const BYTES: usize = size_of::<$memory>();
            fn load(bytes: &[u8]) -> $value {
                <$value>::from(<$memory>::from_le_bytes(array(bytes)))
            }
            fn store(value: $value, bytes: &mut [u8]) {
                bytes.copy_from_slice(&(value as $memory).to_le_bytes());
            }
        }
    )* };
}

narrow! { u8, u32; u16, u32; i8, i32; i16, i32; }

/// An f32 of a program in this mode.
pub struct F32<M>(PhantomData<M>);

/// An f64 of a program in this mode.
pub struct F64<M>(PhantomData<M>);

macro_rules! floats {
    ($( $element:ident $t:ty, $bits:ty, $nan:literal; )*) => { $(
        impl<M: Mode> $element<M> {
            /// The value that this float is in a program.
            #[must_use]
            pub fn canonical(value: $t) -> $t {
                const TINY: $bits = <$t>::MIN_POSITIVE.to_bits();
                const INFINITE: $bits = <$t>::INFINITY.to_bits();
                let bits = value.to_bits();
                let magnitude = bits & (<$bits>::MAX >> 1);
                let bits = if magnitude > INFINITE { $nan } else { bits };
                <$t>::from_bits(if M::FLUSHES && magnitude <= TINY { 0 } else { bits })
            }
        }

        impl<M: Mode> Element for $element<M> {
            type Value = $t;
            const BYTES: usize = size_of::<$t>();
            fn load(bytes: &[u8]) -> $t {
                Self::canonical(<$t>::from_le_bytes(array(bytes)))
            }
            fn store(value: $t, bytes: &mut [u8]) {
                bytes.copy_from_slice(&Self::canonical(value).to_le_bytes());
            }
        }
    )* };
}

floats! {
    F32 f32, u32, 0x7FC0_0000;
    F64 f64, u64, 0x7FF8_0000_0000_0000;
}
