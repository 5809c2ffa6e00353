//! The elementary functions of f32, correctly rounded: one right answer for each input.
//!
//! The work is done by crate `pxfm`, which evaluates in f64. What it lacks is added here.
//!
//! * It has two sets of code, one with fused multiply-adds for CPUs that have them (found at run time on x86, at compile time
//!   elsewhere) and one without, and they do not always agree. Inputs where either misses the correctly rounded result have it
//!   written here as an exception. All 2³² inputs of each unary function, in both sets and in the portable code compiled with fused
//!   multiply-adds as for aarch64, were compared with the C library CORE-MATH 1.4.0; every exception was confirmed with 800-bit
//!   arithmetic.
//! * Its `pow` gives wrong signs for −0, asks on aarch64 whether the exponent is odd with a cast that saturates, and breaks ties by
//!   noise when the exponent is not an integer. It is called here only with a positive finite base and a finite exponent, and only
//!   when the exact result cannot lie halfway between two floats.
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
