//! The elementary functions of f32, correctly rounded: one right answer for each input.
//!
//! The work is done by crate `pxfm`, which evaluates in f64. What it lacks is added here.
//!
//! * It has two sets of code, one with fused multiply-adds for CPUs that have them (found at run time on x86, at compile time
//!   elsewhere) and one without, and they do not always agree. Inputs where either misses the correctly rounded result have it
//!   written here as an exception. All 2³² inputs of each unary function, in both sets and in the portable code compiled with
//!   fused multiply-adds as for aarch64, were compared with the C library CORE-MATH 1.4.0; every exception was confirmed with
//!   800-bit arithmetic.
//! * Its `pow` gives wrong signs for −0, asks on aarch64 whether the exponent is odd with a cast that saturates, and breaks ties
//!   by noise when the exponent is not an integer. It is called here only with a positive finite base and a finite exponent, and
//!   only when the exact result cannot lie halfway between two floats.
//!
//! Special cases are those of IEEE 754-2019 §9.2.

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

/// `x` to the power of `y`.
#[must_use]
pub fn pow(x: f32, y: f32) -> f32 {
    if y == 0.0 || x == 1.0 {
        // Also for a NaN on the other side.
        return 1.0;
    }
    if x.is_nan() || y.is_nan() {
        return f32::NAN;
    }
    let base = x.abs();
    if y.is_infinite() {
        // -1 has magnitude 1 at every integer power, and all large floats are integers.
        return if base == 1.0 {
            1.0
        } else if (base > 1.0) == (y > 0.0) {
            f32::INFINITY
        } else {
            0.0
        };
    }
    // From 2^24 up every float is an even integer; below, the integers and their halves are exact.
    let is_integer = y.abs() >= 16_777_216.0 || y == (y as i32) as f32;
    let is_odd = y.abs() < 16_777_216.0 && is_integer && (y as i32) & 1 == 1;
    let power = if base == 0.0 || base.is_infinite() {
        if (base == 0.0) == (y > 0.0) { 0.0 } else { f32::INFINITY }
    } else if x < 0.0 && !is_integer {
        return f32::NAN;
    } else {
        pow_positive(base, y)
    };
    if x.is_sign_negative() && is_odd { -power } else { power }
}

/// `x` to the power of `y` for finite `x > 0` and finite `y != 0`.
fn pow_positive(x: f32, y: f32) -> f32 {
    match exact_power(f64::from(x), f64::from(y)) {
        Some(power) => power as f32,
        None => pxfm::f_powf(x, y),
    }
}

/// The power when it has at most 25 significant bits, and some others; `None` only if it is not halfway between two f32 and not
/// one itself.
///
/// Only such powers can be ties, which an approximation cannot decide. Let `x = m * 2^e` with `m` odd. For `m = 1` the power is
/// rational exactly if `e * y` is an integer. For larger `m` it is a binary fraction only if `y > 0` and, with `y = k / 2^n` in
/// lowest terms, `x` is the `2^n`-th power of some `r`; then it is `r^k`. From 3 up, 3¹⁶ and 3^(2⁴) have more than 25 bits, so
/// `k <= 15` and `n <= 3`.
fn exact_power(x: f64, y: f64) -> Option<f64> {
    const FRACTION: u64 = (1 << 52) - 1;
    let bits = x.to_bits();
    if bits & FRACTION == 0 {
        // Both factors are short, so the product is exact. 2^±1000 rounds to what any more extreme power does.
        let exponent = ((bits >> 52) as f64 - 1023.0) * y;
        let whole = exponent.clamp(-1000.0, 1000.0) as i64;
        return (exponent.abs() >= 1000.0 || whole as f64 == exponent).then(|| f64::from_bits(((1023 + whole) as u64) << 52));
    }
    let (mut root, mut k) = (x, y);
    let mut halvings = 0;
    while k != (k as i64) as f64 {
        root = root.sqrt();
        k *= 2.0;
        halvings += 1;
        // An exact root has half the bits; 24 are enough to know that its square is exact.
        if halvings > 3 || f64::from(root as f32) != root {
            return None;
        }
    }
    if !(1.0..=15.0).contains(&k) {
        return None;
    }
    let mut power = root;
    for _ in 1..k as u32 {
        // At most 25 times 24 bits: exact. Beyond the range of f64 it becomes the infinity or zero that it is in f32 anyway.
        power *= root;
        if power.to_bits() & (FRACTION >> 24) != 0 {
            return None;
        }
    }
    Some(power)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::float::Float;
    use crate::samples::Random;
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

    /// FNV-1a over results.
    fn hash(results: impl Iterator<Item = f32>) -> u64 {
        results.fold(0xCBF2_9CE4_8422_2325, |hash, result| (hash ^ u64::from(bits(result))).wrapping_mul(0x0100_0000_01B3))
    }

    type Function = fn(f32) -> f32;
    /// Inputs and results.
    type Table = &'static [(f32, f32)];

    /// The hashes are those of CORE-MATH 1.4.0.
    #[test]
    fn unary_functions_equal_core_math_on_a_million_inputs_over_the_whole_range() {
        let functions: [(&str, Function, u64); 10] = [
            ("exp", exp, 0x22EC_F51C_02D9_C2AD),
            ("exp2", exp2, 0x1753_E7C7_36A0_AB19),
            ("log", log, 0x7309_FE55_BD96_5308),
            ("log2", log2, 0x9C51_76E2_7168_7519),
            ("sin", sin, 0xDFD2_1116_BC1F_C28F),
            ("cos", cos, 0xA21E_132E_8F3D_2D5E),
            ("tan", tan, 0x18E7_DB41_E12A_9873),
            ("tanh", tanh, 0xFA5A_5CCD_5406_BBBC),
            ("atan", atan, 0x1BFA_BD3E_A4DC_221E),
            ("rsqrt", rsqrt, 0xBF85_C2B2_D701_22F2),
        ];
        for (name, function, expected) in functions {
            let results = (0..=u32::MAX).step_by(4093).map(|bits| function(f32::from_bits(bits)));
            assert_eq!(hash(results), expected, "{name}");
        }
    }

    /// The hash is that of CORE-MATH 1.4.0.
    #[test]
    fn pow_equals_core_math_on_many_pairs_in_range() {
        let mut random = Random(1);
        let results = (0..300_000).map(|_| {
            let (a, b) = (random.next(), random.next());
            let x = f32::from_bits(0x3500_0000 + (a % 0x1500_0000) as u32);
            let y = f32::from_bits(0x3C00_0000 + (b % 0x0600_0000) as u32 + ((b >> 63 << 31) as u32));
            pow(x, y)
        });
        assert_eq!(hash(results), 0x606A_C8D3_B822_DB18);
    }

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

    #[test]
    fn pow_special_cases_are_those_of_ieee_754_2019() {
        // Integers odd and even, small, large and beyond 2^24; others.
        let odd = [1.0f32, 3.0, 27.0, 16_777_215.0];
        let even = [2.0f32, 28.0, 16_777_214.0, 16_777_216.0, 1e10, 3e38];
        let fractions = [0.5f32, 1.5, 8_388_607.5, TINY];
        let all = || odd.into_iter().chain(even).chain(fractions);
        for x in [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, INF, -INF, NAN, TINY] {
            assert_same(pow(x, 0.0), 1.0, "x to +0");
            assert_same(pow(x, -0.0), 1.0, "x to -0");
        }
        for y in all().chain([INF, NAN]) {
            assert_same(pow(1.0, y), 1.0, "1 to anything");
            assert_same(pow(1.0, -y), 1.0, "1 to anything");
        }
        for y in all() {
            assert_same(pow(NAN, y), NAN, "NaN to a number");
            assert_same(pow(0.0, y), 0.0, "+0 to a positive number");
            assert_same(pow(0.0, -y), INF, "+0 to a negative number");
            assert_same(pow(INF, y), INF, "inf to a positive number");
            assert_same(pow(INF, -y), 0.0, "inf to a negative number");
        }
        for (y, sign) in odd.map(|y| (y, -1.0)).into_iter().chain(even.map(|y| (y, 1.0))).chain(fractions.map(|y| (y, 1.0))) {
            assert_same(pow(-0.0, y), 0.0 * sign, "-0 to a positive number");
            assert_same(pow(-0.0, -y), INF * sign, "-0 to a negative number");
            assert_same(pow(-INF, y), INF * sign, "-inf to a positive number");
            assert_same(pow(-INF, -y), 0.0 * sign, "-inf to a negative number");
        }
        for y in fractions {
            assert_same(pow(-2.0, y), NAN, "a negative number to a fraction");
            assert_same(pow(-1.0, -y), NAN, "a negative number to a fraction");
        }
        for (x, y, expected) in [
            (2.0, NAN, NAN),
            (0.5, INF, 0.0),
            (-0.5, INF, 0.0),
            (0.5, -INF, INF),
            (-2.0, INF, INF),
            (2.0, -INF, 0.0),
            (0.0, -INF, INF),
            (0.0, INF, 0.0),
            (-1.0, INF, 1.0),
            (-1.0, -INF, 1.0),
            (-1.0, 3.0, -1.0),
            (-1.0, 3e38, 1.0),
            (-2.0, 3.0, -8.0),
            (-2.0, -1.0, -0.5),
            (2.0, 3e38, INF),
            (2.0, -3e38, 0.0),
            (-2.0, 129.0, -INF),
            (-2.0, -151.0, -0.0),
            (4.0, 0.5, 2.0),
        ] {
            assert_same(pow(x, y), expected, &format!("pow({x:e}, {y:e})"));
        }
    }

    /// Roots that are integers, so the power is an integer that `as` rounds; many of them lie exactly between two floats.
    #[test]
    fn pow_breaks_exact_ties_to_even() {
        let mut ties = 0;
        for halvings in 0..=3 {
            let degree = 1 << halvings;
            for root in (1u128..8192).step_by(2).take_while(|root| root.pow(degree) < 1 << 24) {
                for k in (1..=15u32).step_by(if halvings == 0 { 1 } else { 2 }) {
                    let Some(power) = root.checked_pow(k) else { continue };
                    let y = k as f32 / degree as f32;
                    for scale in [-8i32, 0, 4] {
                        // Times 2^scale in the root.
                        let two_to = |exponent: i32| f32::from_bits(((127 + exponent) as u32) << 23);
                        let (up, scaled) = (scale * degree as i32, scale * k as i32);
                        if up.abs() > 100 || scaled.abs() > 120 || power >= 1 << 64 {
                            continue;
                        }
                        let x = root.pow(degree) as f32 * two_to(up);
                        let expected = power as f32 * two_to(scaled);
                        assert_same(pow(x, y), expected, &format!("pow({x:e}, {y})"));
                    }
                    ties += u32::from(power.ilog2() == 24);
                }
            }
        }
        assert!(ties > 400, "{ties}");
    }

    #[test]
    fn powers_of_two_to_binary_fractions_are_exact_down_to_the_last_subnormal() {
        for e in -149i32..128 {
            let x = (f64::from_bits(((1023 + e) as u64) << 52)) as f32;
            for numerator in -400i32..400 {
                let y = numerator as f32 / 16.0;
                let sixteenths = e * numerator;
                if sixteenths % 16 == 0 {
                    let exponent = (sixteenths / 16).clamp(-1000, 1000);
                    let expected = f64::from_bits(((1023 + exponent) as u64) << 52) as f32;
                    assert_same(pow(x, y), expected, &format!("pow(2^{e}, {y})"));
                }
            }
        }
    }
}
