//! The elementary functions of f32, correctly rounded: one right answer for each input.
//!
//! The work is done by crate `pxfm`, which evaluates in f64. What it lacks is added here.
//!
//! * It has two sets of code, one with fused multiply-adds for CPUs that have them (found at run time on x86, at compile time
//!   elsewhere) and one without, and they do not always agree. Inputs where either misses the correctly rounded result have it
//!   written here as an exception, confirmed with 800-bit arithmetic. `tests/proven.rs` compares all 2³² inputs of each function
//!   with the C library CORE-MATH, and its digests let any machine repeat the proof with the code that runs there. Both sets of
//!   code, compiled for x86-64, give these digests.
//! * Its `pow` is not used; `elementary/pow.rs` says why.
//!
//! Special cases are those of IEEE 754-2019 §9.2.

mod pow;

pub use pow::pow;

/// The bits without the sign: exceptions of even and odd functions come in pairs.
#[inline]
fn magnitude(x: f32) -> u32 {
    x.to_bits() & 0x7FFF_FFFF
}

/// eˣ.
#[must_use]
pub fn exp(x: f32) -> f32 {
    match x.to_bits() {
        0xBBF0_EDF1 => f32::from_bits(0x3F7E_1FE9),
        _ => pxfm::f_expf(x),
    }
}

/// 2ˣ.
#[must_use]
pub fn exp2(x: f32) -> f32 {
    match x.to_bits() {
        0x3B42_9D37 => f32::from_bits(0x3F80_4385),
        0xBCF3_A937 => f32::from_bits(0x3F7A_C6B1),
        _ => pxfm::f_exp2f(x),
    }
}

/// The natural logarithm: −∞ at zeros, NaN below.
#[must_use]
pub fn log(x: f32) -> f32 {
    pxfm::f_logf(x)
}

/// The logarithm of base 2: −∞ at zeros, NaN below.
#[must_use]
pub fn log2(x: f32) -> f32 {
    pxfm::f_log2f(x)
}

/// The sine of radians; NaN for infinities.
#[must_use]
pub fn sin(x: f32) -> f32 {
    let bits = match magnitude(x) {
        0x4619_9998 => 0xBEB1_FA5D,
        _ => return pxfm::f_sinf(x),
    };
    odd(x, bits)
}

/// The cosine of radians; NaN for infinities.
#[must_use]
pub fn cos(x: f32) -> f32 {
    let bits = match magnitude(x) {
        0x5922_AA80 => 0x3F08_AEBF,
        0x5F18_B878 => 0x3F7F_14BB,
        0x6115_CB11 => 0x3F78_142F,
        _ => return pxfm::f_cosf(x),
    };
    f32::from_bits(bits)
}

/// The tangent of radians; NaN for infinities.
#[must_use]
pub fn tan(x: f32) -> f32 {
    let bits = match magnitude(x) {
        0x3E19_205E => 0x3E1A_4733,
        0x4081_74DD => 0x3FA2_9B31,
        0x536B_7A05 => 0xBCFD_E1DA,
        0x54B1_E095 => 0xC1D7_3A73,
        0x5680_7D7F => 0x4273_CDB3,
        0x5D58_73AE => 0x3EA6_BFED,
        0x5FFD_33A4 => 0x3FD0_6C8C,
        0x61F0_C8E2 => 0xBCC3_2AD4,
        0x61FE_289F => 0xBCB3_073D,
        0x6736_57C5 => 0xBD33_EF08,
        0x690C_97BA => 0x3D30_5C98,
        0x694E_C991 => 0x4003_47BF,
        _ => return pxfm::f_tanf(x),
    };
    odd(x, bits)
}

/// An odd function's value at `x`, from the bits of its value at `|x|`.
fn odd(x: f32, at_magnitude: u32) -> f32 {
    f32::from_bits(at_magnitude ^ (x.to_bits() & 0x8000_0000))
}

/// The hyperbolic tangent.
#[must_use]
pub fn tanh(x: f32) -> f32 {
    pxfm::f_tanhf(x)
}

/// The arc tangent.
#[must_use]
pub fn atan(x: f32) -> f32 {
    pxfm::f_atanf(x)
}

/// `1 / sqrt(x)`, rounded once: ±∞ at ±0, NaN below.
///
/// In f64 three roundings cost at most 2⁻⁵² of the result, and no f32 has its exact result that close to a tie (compared with
/// CORE-MATH on all 2³² inputs). No step is fused, so there is one set of code.
#[inline]
#[must_use]
pub fn rsqrt(x: f32) -> f32 {
    if x == 0.0 {
        // The formula below would be inf * 0.
        return 1.0 / x;
    }
    if x == f32::INFINITY {
        return 0.0;
    }
    let x = f64::from(x);
    ((1.0 / x) * x.sqrt()) as f32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::float::Float;
    use std::f32::consts::FRAC_PI_2;
    use vyre_spec::FloatMode;

    const INF: f32 = f32::INFINITY;
    const NAN: f32 = f32::NAN;
    const TINY: f32 = f32::from_bits(1);

    /// Bits, with every NaN the same.
    fn bits(x: f32) -> u32 {
        x.canonical(FloatMode::Ieee).to_bits()
    }

    fn assert_same(got: f32, expected: f32, what: &str) {
        assert_eq!(bits(got), bits(expected), "{what} gives {got:e}, not {expected:e}");
    }

    type Function = fn(f32) -> f32;
    /// Inputs and results.
    type Table = &'static [(f32, f32)];

    /// Inputs whose exact result is within 2⁻²⁰ ulp of a tie, from 800-bit arithmetic.
    #[test]
    fn results_next_to_a_tie_are_rounded_to_the_right_side() {
        let cases: [(Function, u32, u32); 35] = [
            (exp, 0xBBF0_EDF1, 0x3F7E_1FE9),
            (exp2, 0x3B42_9D37, 0x3F80_4385),
            (exp2, 0xBCF3_A937, 0x3F7A_C6B1),
            (sin, 0x4619_9998, 0xBEB1_FA5D),
            (sin, 0xC619_9998, 0x3EB1_FA5D),
            (cos, 0x5922_AA80, 0x3F08_AEBF),
            (cos, 0x5F18_B878, 0x3F7F_14BB),
            (cos, 0x6115_CB11, 0x3F78_142F),
            (cos, 0xD922_AA80, 0x3F08_AEBF),
            (cos, 0xDF18_B878, 0x3F7F_14BB),
            (cos, 0xE115_CB11, 0x3F78_142F),
            (tan, 0x3E19_205E, 0x3E1A_4733),
            (tan, 0x4081_74DD, 0x3FA2_9B31),
            (tan, 0x536B_7A05, 0xBCFD_E1DA),
            (tan, 0x54B1_E095, 0xC1D7_3A73),
            (tan, 0x5680_7D7F, 0x4273_CDB3),
            (tan, 0x5D58_73AE, 0x3EA6_BFED),
            (tan, 0x5FFD_33A4, 0x3FD0_6C8C),
            (tan, 0x61F0_C8E2, 0xBCC3_2AD4),
            (tan, 0x61FE_289F, 0xBCB3_073D),
            (tan, 0x6736_57C5, 0xBD33_EF08),
            (tan, 0x690C_97BA, 0x3D30_5C98),
            (tan, 0x694E_C991, 0x4003_47BF),
            (tan, 0xBE19_205E, 0xBE1A_4733),
            (tan, 0xC081_74DD, 0xBFA2_9B31),
            (tan, 0xD36B_7A05, 0x3CFD_E1DA),
            (tan, 0xD4B1_E095, 0x41D7_3A73),
            (tan, 0xD680_7D7F, 0xC273_CDB3),
            (tan, 0xDD58_73AE, 0xBEA6_BFED),
            (tan, 0xDFFD_33A4, 0xBFD0_6C8C),
            (tan, 0xE1F0_C8E2, 0x3CC3_2AD4),
            (tan, 0xE1FE_289F, 0x3CB3_073D),
            (tan, 0xE736_57C5, 0x3D33_EF08),
            (tan, 0xE90C_97BA, 0xBD30_5C98),
            (tan, 0xE94E_C991, 0xC003_47BF),
        ];
        for (function, input, expected) in cases {
            assert_eq!(function(f32::from_bits(input)).to_bits(), expected, "{input:#x}");
        }
    }

    #[test]
    fn special_cases_are_those_of_ieee_754_2019() {
        let cases: [(&str, Function, Table); 10] = [
            ("exp", exp, &[(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0), (NAN, NAN), (89.0, INF), (-104.0, 0.0)]),
            ("exp2", exp2, &[(-0.0, 1.0), (INF, INF), (-INF, 0.0), (NAN, NAN), (128.0, INF), (-149.0, TINY), (-150.0, 0.0)]),
            ("log", log, &[(0.0, -INF), (-0.0, -INF), (1.0, 0.0), (INF, INF), (-TINY, NAN), (-INF, NAN), (NAN, NAN)]),
            ("log2", log2, &[(0.0, -INF), (-0.0, -INF), (1.0, 0.0), (TINY, -149.0), (INF, INF), (-1.0, NAN), (NAN, NAN)]),
            ("sin", sin, &[(0.0, 0.0), (-0.0, -0.0), (TINY, TINY), (INF, NAN), (-INF, NAN), (NAN, NAN)]),
            ("cos", cos, &[(0.0, 1.0), (-0.0, 1.0), (TINY, 1.0), (INF, NAN), (-INF, NAN), (NAN, NAN)]),
            ("tan", tan, &[(0.0, 0.0), (-0.0, -0.0), (-TINY, -TINY), (INF, NAN), (-INF, NAN), (NAN, NAN)]),
            ("tanh", tanh, &[(0.0, 0.0), (-0.0, -0.0), (TINY, TINY), (INF, 1.0), (-INF, -1.0), (NAN, NAN)]),
            ("atan", atan, &[(0.0, 0.0), (-0.0, -0.0), (-TINY, -TINY), (INF, FRAC_PI_2), (-INF, -FRAC_PI_2), (NAN, NAN)]),
            (
                "rsqrt",
                rsqrt,
                &[(0.0, INF), (-0.0, -INF), (4.0, 0.5), (INF, 0.0), (-TINY, NAN), (-INF, NAN), (NAN, NAN), (1.0, 1.0)],
            ),
        ];
        for (name, function, table) in cases {
            for (input, expected) in table {
                assert_same(function(*input), *expected, &format!("{name}({input:e})"));
            }
        }
    }
}
