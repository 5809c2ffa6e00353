//! Values that are worth trying, per type: the ends of ranges, their neighbours, what rounds, and noise.

use crate::dna::Dna;
use vyre_foundation::ir::{DataType, Literal, Scalar};
use vyre_host_floats::with_default_state;
use vyre_spec::Storage;

const INT32: [u32; 22] = [
    0,
    1,
    2,
    3,
    7,
    8,
    31,
    32,
    33,
    63,
    64,
    255,
    256,
    0xFFFF,
    0x1_0000,
    0x3FFF_FFFF,
    0x4000_0000,
    0x7FFF_FFFF,
    0x8000_0000,
    0x8000_0001,
    0xFFFF_FFFE,
    0xFFFF_FFFF,
];

const INT64: [u64; 16] = [
    0,
    1,
    2,
    31,
    32,
    63,
    64,
    0x7FFF_FFFF,
    0x8000_0000,
    0xFFFF_FFFF,
    0x1_0000_0000,
    0x7FFF_FFFF_FFFF_FFFF,
    0x8000_0000_0000_0000,
    0x8000_0000_0000_0001,
    0xFFFF_FFFF_FFFF_FFFE,
    0xFFFF_FFFF_FFFF_FFFF,
];

const F32: [u32; 30] = [
    0x0000_0000, // 0
    0x8000_0000, // -0
    0x3F80_0000, // 1
    0xBF80_0000, // -1
    0x3F00_0000, // 0.5
    0xBF00_0000, // -0.5
    0x3FC0_0000, // 1.5
    0x4020_0000, // 2.5
    0xC060_0000, // -3.5
    0x3EAA_AAAB, // 1/3
    0x4049_0FDB, // pi
    0x42F6_E979, // 123.456
    0x7F80_0000, // inf
    0xFF80_0000, // -inf
    0x7FC0_0000, // nan
    0xFFC0_0001, // another nan
    0x7F80_0001, // a signalling nan
    0x0000_0001, // the smallest subnormal
    0x807F_FFFF, // the largest subnormal, negative
    0x0080_0000, // the smallest normal
    0x0080_0001,
    0x7F7F_FFFF, // the largest
    0xFF7F_FFFF,
    0x4B00_0000, // 2^23
    0x4AFF_FFFF, // 2^23 - 0.5
    0x4F00_0000, // 2^31
    0x4EFF_FFFF,
    0x4F80_0000, // 2^32
    0xCF00_0000, // -2^31
    0x5F80_0000, // 2^64
];

const F64: [u64; 18] = [
    0x0000_0000_0000_0000, // 0
    0x8000_0000_0000_0000, // -0
    0x3FF0_0000_0000_0000, // 1
    0xBFF0_0000_0000_0000, // -1
    0x3FE0_0000_0000_0000, // 0.5
    0x4004_0000_0000_0000, // 2.5
    0x7FF0_0000_0000_0000, // inf
    0xFFF0_0000_0000_0000, // -inf
    0x7FF8_0000_0000_0000, // nan
    0xFFF8_0000_0000_0001, // another nan
    0x0000_0000_0000_0001, // the smallest subnormal
    0x0010_0000_0000_0000, // the smallest normal
    0x7FEF_FFFF_FFFF_FFFF, // the largest
    0x41DF_FFFF_FFC0_0000, // 2^31 - 1
    0x41E0_0000_0000_0000, // 2^31
    0x47EF_FFFF_F000_0000, // halfway between the largest f32 and 2^128
    0x3810_0000_0000_0000, // the smallest normal f32
    0x3FF0_0000_1000_0000, // halfway between two f32
];

/// The bits of a value of this type.
pub(crate) fn scalar(dna: &mut Dna<'_>, ty: Scalar) -> u64 {
    match ty {
        Scalar::Bool => u64::from(dna.chance(50)),
        Scalar::U32 | Scalar::I32 => match dna.below(8) {
            0..=3 => u64::from(dna.below(10)),
            4..=6 => u64::from(dna.pick(&INT32)),
            _ => dna.bits() & 0xFFFF_FFFF,
        },
        Scalar::U64 | Scalar::I64 => match dna.below(8) {
            0..=2 => u64::from(dna.below(10)),
            3..=5 => dna.pick(&INT64),
            _ => dna.bits(),
        },
        Scalar::F32 => match dna.below(8) {
            0..=3 => u64::from(dna.pick(&F32)),
            4 | 5 => with_default_state(|| u64::from((dna.below(64) as f32 / 4.0 - 4.0).to_bits())),
            // A moderate exponent, so that sums and products round instead of overflowing.
            6 => dna.bits() & 0x807F_FFFF | u64::from(0x3C00_0000 + (dna.below(16) << 23)),
            _ => dna.bits() & 0xFFFF_FFFF,
        },
        Scalar::F64 => match dna.below(8) {
            0..=3 => dna.pick(&F64),
            4 | 5 => with_default_state(|| (f64::from(dna.below(64)) / 4.0 - 4.0).to_bits()),
            6 => dna.bits() & 0x800F_FFFF_FFFF_FFFF | (0x3FC0_0000_0000_0000 + (u64::from(dna.below(16)) << 52)),
            _ => dna.bits(),
        },
    }
}

pub(crate) fn literal(dna: &mut Dna<'_>, ty: Scalar) -> Literal {
    Literal::from_bits(ty, scalar(dna, ty))
}

/// Values at the ends of their type's range, and those that ops treat by themselves.
fn extremes(ty: Scalar) -> &'static [u64] {
    const fn f32s<const N: usize>(values: [f32; N]) -> [u64; N] {
        let mut bits = [0; N];
        let mut n = 0;
        while n < N {
            bits[n] = values[n].to_bits() as u64;
            n += 1;
        }
        bits
    }
    const fn f64s<const N: usize>(values: [f64; N]) -> [u64; N] {
        let mut bits = [0; N];
        let mut n = 0;
        while n < N {
            bits[n] = values[n].to_bits();
            n += 1;
        }
        bits
    }
    const F32S: [u64; 6] = f32s([0.0, -0.0, 1.0, f32::INFINITY, f32::NAN, f32::MIN_POSITIVE]);
    const F64S: [u64; 6] = f64s([0.0, -0.0, 1.0, f64::INFINITY, f64::NAN, f64::MIN_POSITIVE]);
    match ty {
        Scalar::Bool => &[0, 1],
        Scalar::U32 | Scalar::I32 => &[0, 1, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF],
        Scalar::U64 | Scalar::I64 => &[0, 1, u64::MAX >> 1, 1 << 63, u64::MAX],
        Scalar::F32 => &F32S,
        Scalar::F64 => &F64S,
    }
}

/// A value at the end of its type's range, or one that ops treat by itself.
pub(crate) fn extreme(dna: &mut Dna<'_>, ty: Scalar) -> Literal {
    Literal::from_bits(ty, dna.pick(extremes(ty)))
}

/// Whether [`extreme`] gives this one.
pub(crate) fn is_extreme(literal: Literal) -> bool {
    extremes(literal.scalar()).contains(&literal.bits())
}

/// The bytes of so many elements: interesting values for types that kernels compute on, patterns and noise for the narrower ones,
/// every bit pattern of which is a value.
pub(crate) fn bytes(dna: &mut Dna<'_>, element: &DataType, count: u32) -> Vec<u8> {
    let size = vyre_scalar::memory::byte_length(element, u64::from(count)).unwrap_or(0) as usize;
    let part = match element.storage() {
        Storage::Computed(vyre_spec::ValueType::Scalar(part) | vyre_spec::ValueType::Vector(part, _)) => part,
        Storage::Converted(_) | Storage::LoadOnly(_) | Storage::Described => return noise(dna, size),
    };
    let mut out = Vec::with_capacity(size + 8);
    // Bytes of DNA are few: after some values, mix what is there.
    let fresh = 4 + dna.below(12) as usize;
    let width = part.bytes() as usize;
    let mut state = dna.bits() | 1;
    let mut drawn = Vec::with_capacity(fresh);
    while out.len() < size {
        let bits = if drawn.len() < fresh {
            let bits = scalar(dna, part);
            drawn.push(bits);
            bits
        } else {
            state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
            let old = drawn[(state >> 33) as usize % drawn.len()];
            match state >> 61 {
                0 | 1 => old,
                2 => old.wrapping_add(1),
                3 => !old,
                4 => old ^ (1 << ((state >> 40) % u64::from(part.bits().max(1)))),
                _ => drawn[(state >> 45) as usize % drawn.len()],
            }
        };
        let bits = if part == Scalar::Bool { bits & 3 } else { bits };
        out.extend_from_slice(&bits.to_le_bytes()[..width]);
    }
    out.truncate(size);
    out
}

fn noise(dna: &mut Dna<'_>, size: usize) -> Vec<u8> {
    let mut state = dna.bits() | 1;
    let special = [0u8, 1, 0x7F, 0x80, 0xFF, 0x7C, 0x3C];
    (0..size)
        .map(|_| {
            state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
            if state >> 62 == 0 { special[(state >> 33) as usize % special.len()] } else { (state >> 40) as u8 }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::dna;
    use vyre_host_floats::hostile;

    #[test]
    fn the_same_values_are_drawn_under_every_float_state() {
        for ty in Scalar::ALL {
            let drawn = || {
                let draw = |number| {
                    let dna = dna(1, number);
                    let mut dna = Dna::new(&dna);
                    [0; 20].map(|_| scalar(&mut dna, ty))
                };
                (0..200).map(draw).collect::<Vec<_>>()
            };
            let expected = drawn();
            for state in hostile::states() {
                assert!(hostile::under(state, drawn) == expected, "{ty} under {state}");
            }
        }
    }
}
