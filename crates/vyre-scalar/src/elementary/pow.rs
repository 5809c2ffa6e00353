//! `pow` of f32, correctly rounded, in two stages whose error bounds are ours.
//!
//! **Why not `pxfm`.** Its `powf` evaluates in f64 and turns to double-double where a rounding test allowing 64 units of the last
//! place of an f64 is inconclusive. 64 is too few: its polynomial for log2(1 + z)/z is off by up to 2⁻⁵² and is multiplied by an
//! exponent of up to 2⁷, which alone is 90 units. Of pairs with a base near 1 and a result near the ends of the range one in 10⁸
//! is wrong, `pow(0x3F7F4B5E, 0xC68F3822)` for one. A miss cannot be seen from outside, so a table of exceptions would have to
//! know all 2⁶⁴ pairs.
//!
//! **First stage**, [`quick`]: 2^(y log2 x) in f64 with a relative error below 2⁻⁴³·³, derived at the function. If all numbers
//! within 2⁻⁴² of it round to one f32, so does the power, because rounding is monotone. About 5 pairs in 10⁶ are left over.
//!
//! **Exact cases.** Those left over are close to the middle between two floats, and some lie exactly there, which no
//! approximation can decide. [`exact`] finds all of these and rounds the exact power.
//!
//! **Second stage**, [`precise`]: exp(y ln x) in fixed point with an error below 2⁻¹²⁸, again with a rounding test. If even this
//! is inconclusive the precision is doubled until it is not, which ends, because what is not exact is not a tie. So the result is
//! right without any statement about the worst case. (There are some 2⁶² pairs whose power is in range. If these are spread like
//! random numbers the closest to a tie is about 2⁻⁸⁶ of its size away from it, so the doubling is for the proof only.) The stage
//! takes a thousand times as long as the first.
//!
//! Only additions, subtractions, multiplications and comparisons of f64 and integer arithmetic decide, so there is one set of
//! code for all machines.

use std::f64::consts::{LN_2, LOG2_E};

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
    let power = if base == 0.0 || base.is_infinite() {
        if (base == 0.0) == (y > 0.0) { 0.0 } else { f32::INFINITY }
    } else if x < 0.0 && parity(y).is_none() {
        return f32::NAN;
    } else {
        positive(f64::from(base), f64::from(y))
    };
    if x.is_sign_negative() && parity(y) == Some(Parity::Odd) { -power } else { power }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Parity {
    Even,
    Odd,
}

/// That of a finite integer; `None` for what is none.
fn parity(y: f32) -> Option<Parity> {
    if y.abs() >= 16_777_216.0 {
        // From 2^24 up every float is an even integer.
        return Some(Parity::Even);
    }
    let integer = y as i32;
    (integer as f32 == y).then_some(if integer & 1 == 0 { Parity::Even } else { Parity::Odd })
}

/// `x` to the power of `y` for finite `x > 0` and finite `y != 0`, both of them f32.
fn positive(x: f64, y: f64) -> f32 {
    let power = quick(x, y);
    let (below, above) = ((power * (1.0 - SLACK)) as f32, (power * (1.0 + SLACK)) as f32);
    if below == above { below } else { close_to_a_tie(x, y) }
}

#[cold]
fn close_to_a_tie(x: f64, y: f64) -> f32 {
    match exact(x, y) {
        Some(power) => power as f32,
        None => precise(x, y),
    }
}

/// How far off [`quick`] is taken to be, in terms of the power: more than twice what it can be.
const SLACK: f64 = 1.0 / (1u64 << 42) as f64;
/// The stored significand of an f64.
const FRACTION: u64 = (1 << 52) - 1;
/// The bits of 1.0.
const ONE: u64 = 1023 << 52;

/// A reciprocal of `1 + j/32`, short enough that its product with 24 bits is exact; exactly 1 and 1/2 at the ends.
const RECIPROCAL: [f64; 33] = {
    let mut table = [0.0; 33];
    let mut j = 0;
    while j <= 32 {
        // 2^16 / (1 + j/32), rounded to the nearest integer.
        table[j] = ((1u32 << 22) / (32 + j as u32)).div_ceil(2) as f64 / 65_536.0;
        j += 1;
    }
    table
};

/// −log2 of [`RECIPROCAL`] in two parts: a multiple of 2⁻²⁰, and the rest as the bits of an f64.
const LOG: [(u64, u64); 33] = [
    (0x0000_0000_0000_0000, 0x0000_0000_0000_0000),
    (0x3FA6_BB00_0000_0000, 0x3E6A_01F3_932B_CE87),
    (0x3FB6_63E0_0000_0000, 0xBE3A_7D99_6AD2_BA2A),
    (0x3FC0_8C10_0000_0000, 0xBE93_C1F2_8F0E_927E),
    (0x3FC5_C048_0000_0000, 0x3E69_2419_8C5D_47E6),
    (0x3FCA_CF30_0000_0000, 0x3E19_5F3C_6E67_BD7F),
    (0x3FCF_BC48_0000_0000, 0xBE98_E348_4260_36BD),
    (0x3FD2_4418_0000_0000, 0xBE9E_7A43_9013_15C7),
    (0x3FD4_9A60_0000_0000, 0x3E93_6889_907E_CD47),
    (0x3FD6_E228_0000_0000, 0xBE7B_443A_EB0D_BF18),
    (0x3FD9_1BD0_0000_0000, 0x3E99_E695_EDD9_F728),
    (0x3FDB_47E8_0000_0000, 0x3E91_48FA_185D_729B),
    (0x3FDD_671C_0000_0000, 0xBE9D_4ED8_A458_5C6E),
    (0x3FDF_7AB8_0000_0000, 0xBE98_9F03_AAD5_19A5),
    (0x3FE0_C116_0000_0000, 0x3E84_33C1_6175_2EB1),
    (0x3FE1_BF42_0000_0000, 0x3E8B_A3A6_BB57_FB60),
    (0x3FE2_B7EC_0000_0000, 0x3E78_FEED_7AAE_E873),
    (0x3FE3_ABB6_0000_0000, 0xBE92_816C_5025_21AB),
    (0x3FE4_9A7C_0000_0000, 0xBE9A_313C_1749_1F76),
    (0x3FE5_8466_0000_0000, 0x3E97_AB7F_09A9_59A0),
    (0x3FE6_69F6_0000_0000, 0xBE9F_8B57_0EB7_7170),
    (0x3FE7_4B18_0000_0000, 0x3E93_F508_FF63_A4E6),
    (0x3FE8_2816_0000_0000, 0xBE93_F38D_7455_D883),
    (0x3FE9_00E8_0000_0000, 0x3E9F_1520_D0F6_DFE3),
    (0x3FE9_D5E6_0000_0000, 0xBE8E_02B2_D889_0EB1),
    (0x3FEA_A714_0000_0000, 0x3E90_04A7_17BE_47C3),
    (0x3FEB_7484_0000_0000, 0xBE98_13A3_4123_8F09),
    (0x3FEC_3E98_0000_0000, 0x3E83_B91C_533A_0FA3),
    (0x3FED_0518_0000_0000, 0xBE9F_00A7_86AA_FA71),
    (0x3FED_C872_0000_0000, 0xBE97_3D69_EBED_909D),
    (0x3FEE_88CA_0000_0000, 0xBE8A_7D24_74A7_48CD),
    (0x3FEF_45EC_0000_0000, 0x3E66_742A_3FC3_AD3F),
    (0x3FF0_0000_0000_0000, 0x0000_0000_0000_0000),
];

/// The bits of 2^(j/32).
const EXP: [u64; 32] = [
    0x3FF0_0000_0000_0000,
    0x3FF0_59B0_D315_8574,
    0x3FF0_B558_6CF9_890F,
    0x3FF1_1301_D012_5B51,
    0x3FF1_72B8_3C7D_517B,
    0x3FF1_D487_3168_B9AA,
    0x3FF2_387A_6E75_6238,
    0x3FF2_9E9D_F51F_DEE1,
    0x3FF3_06FE_0A31_B715,
    0x3FF3_71A7_373A_A9CB,
    0x3FF3_DEA6_4C12_3422,
    0x3FF4_4E08_6061_892D,
    0x3FF4_BFDA_D536_2A27,
    0x3FF5_342B_569D_4F82,
    0x3FF5_AB07_DD48_5429,
    0x3FF6_247E_B03A_5585,
    0x3FF6_A09E_667F_3BCD,
    0x3FF7_1F75_E8EC_5F74,
    0x3FF7_A114_73EB_0187,
    0x3FF8_2589_994C_CE13,
    0x3FF8_ACE5_422A_A0DB,
    0x3FF9_3737_B0CD_C5E5,
    0x3FF9_C491_82A3_F090,
    0x3FFA_5503_B23E_255D,
    0x3FFA_E89F_995A_D3AD,
    0x3FFB_7F76_F2FB_5E47,
    0x3FFC_199B_DD85_529C,
    0x3FFC_B720_DCEF_9069,
    0x3FFD_5818_DCFB_A487,
    0x3FFD_FC97_337B_9B5F,
    0x3FFE_A4AF_A2A4_90DA,
    0x3FFF_5076_5B6E_4540,
];

/// The power, off by less than 2⁻⁴³·³ of itself; infinity or zero for some that round to these in f32.
///
/// With x = 2^e m, r a short reciprocal of m and z = m r − 1: log2 x = (e − log2 r) + log2(1 + z). Bases near 1, on either side,
/// have e − log2 r = 0, so that their logarithm has a small *relative* error.
///
/// Errors, with u = 2⁻⁵³ that of one rounding. |z| ≤ 2⁻⁶, and z is exact, since m r has at most 41 bits.
///
/// * The series of the logarithm ends at z⁸; what is left is below z⁹/10, 2⁻⁵⁷ of the value. Its constant term is off by less
///   than u, the last addition and the multiplication by z round once each, and what comes before is multiplied by z and adds
///   less than u/8. Together less than 3.3 u of |zp| < 2⁻⁵·⁴. One more rounding where it is added to the table's part, which
///   is 0 near 1.
/// * Times y it is rounded once more. Near 1 that makes 4.3 u of |y log2 x| ≤ 152: 2⁻⁴³·⁶. Elsewhere |log2 x| ≥ 0.0223 and
///   |zp| < 2⁻⁵·⁵, or, just below 1 − 2⁻⁷, |log2 x| ≥ 0.0113 and |zp| < 2⁻⁶·⁴; 5.3 u of |zp| 152/|log2 x| is less than 2⁻⁴³·².
/// * Times y the other part is exact, 24 by 28 bits. Taking off n/32 leaves at most 2⁹ and rounds by at most 2⁻⁴⁵.
///
/// So the exponent is off by less than 2⁻⁴²·⁸, and its power of two by ln 2 times that: less than 2⁻⁴³·³ of itself, where there
/// is also room for the series of 2^r (it leaves out r⁷ ln⁷2 / 7! < 2⁻⁵⁷) and the roundings after it, together 2⁻⁵⁰.
#[inline]
fn quick(x: f64, y: f64) -> f64 {
    // Adding it rounds to an integer, which then stands in the low bits.
    const INTEGERS: f64 = (3u64 << 51) as f64;

    let fraction = x.to_bits() & FRACTION;
    let exponent = (x.to_bits() >> 52) as i32 - 1023;
    let j = ((fraction + (1 << 46)) >> 47) as usize;
    let z = f64::from_bits(fraction | ONE) * RECIPROCAL[j] - 1.0;
    let (z2, z4) = (z * z, (z * z) * (z * z));
    const L: [f64; 9] = [
        LOG2_E,
        -LOG2_E / 2.0,
        LOG2_E / 3.0,
        -LOG2_E / 4.0,
        LOG2_E / 5.0,
        -LOG2_E / 6.0,
        LOG2_E / 7.0,
        -LOG2_E / 8.0,
        LOG2_E / 9.0,
    ];
    let high = ((L[4] + z * L[5]) + z2 * (L[6] + z * L[7])) + z4 * L[8];
    let p = L[0] + (z * L[1] + (z2 * (L[2] + z * L[3]) + z4 * high));
    let small = y * (f64::from_bits(LOG[j].1) + z * p);
    let large = y * (f64::from(exponent) + f64::from_bits(LOG[j].0));

    let scaled = large + small;
    if scaled >= 129.0 {
        return f64::INFINITY;
    }
    if scaled <= -151.0 {
        return 0.0;
    }
    let shifted = scaled * 32.0 + INTEGERS;
    let n = shifted.to_bits().wrapping_sub(INTEGERS.to_bits()) as i64;
    let r = (large - (shifted - INTEGERS) / 32.0) + small;
    const E: [f64; 6] = [
        LN_2,
        LN_2 * LN_2 / 2.0,
        LN_2 * LN_2 * LN_2 / 6.0,
        LN_2 * LN_2 * LN_2 * LN_2 / 24.0,
        LN_2 * LN_2 * LN_2 * LN_2 * LN_2 / 120.0,
        LN_2 * LN_2 * LN_2 * LN_2 * LN_2 * LN_2 / 720.0,
    ];
    let r2 = r * r;
    let q = E[0] + (r * E[1] + r2 * ((E[2] + r * E[3]) + r2 * (E[4] + r * E[5])));
    let middle = f64::from_bits(EXP[(n & 31) as usize]);
    let unit = middle + middle * (r * q);
    // From 2^-152 to 2^130: normal in f64.
    f64::from_bits(unit.to_bits().wrapping_add_signed(n >> 5 << 52))
}

/// The power when it has at most 25 significant bits, and some others; `None` only if it is not halfway between two f32.
///
/// Let `x = m * 2^e` with `m` odd. For `m = 1` the power is rational exactly if `e * y` is an integer. For larger `m` it is a
/// binary fraction only if `y > 0` and, with `y = k / 2^n` in lowest terms, `x` is the `2^n`-th power of some `r`; then it is
/// `r^k`. From 3 up, 3¹⁶ and 3^(2⁴) have more than 25 bits, so `k <= 15` and `n <= 3`.
fn exact(x: f64, y: f64) -> Option<f64> {
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

/// The power, when it is in or near the range of f32 and not a tie.
fn precise(x: f64, y: f64) -> f32 {
    let mut fraction_limbs = 3;
    loop {
        let (low, high) = bounds(x, y, fraction_limbs);
        if low == high {
            return low;
        }
        fraction_limbs *= 2;
        debug_assert!(fraction_limbs < 1000, "pow({x:e}, {y:e}) is an exact tie that `exact` missed");
    }
}

/// What the ends of an interval around the power round to, with that many limbs of fixed point after the point.
fn bounds(x: f64, y: f64, fraction_limbs: usize) -> (f32, f32) {
    let (power, exponent) = fixed_point(x, y, fraction_limbs);
    let error = Fixed::one(fraction_limbs).shifted_right(64 * (fraction_limbs - 1));
    (power.minus(&error).to_f32(exponent), power.plus(&error).to_f32(exponent))
}

/// The power as a number in \[1, 4) and an exponent of two, off by less than one unit of the second last limb.
///
/// Errors in units of the last bit, with F the number of bits after the point. [`Fixed::atanh`] is off by less than F, a
/// logarithm by less than 2F, |ln x| with |e| ≤ 149 by less than 300F. |y| < 2³¹, because |y log2 x| < 152 and |log2 x| > 2⁻²⁴;
/// so |y ln x| is off by less than 2³¹ 300F + 1, and the argument of [`Fixed::exp`] by less than 306F more. The exponential at
/// most doubles that and adds F. For F up to 2²² it is less than 2⁶⁴.
fn fixed_point(x: f64, y: f64, fraction_limbs: usize) -> (Fixed, i64) {
    let one = Fixed::one(fraction_limbs);
    let ln2 = one.atanh(1, 3).times(2);
    // x = 2^e (1 + p / 2^23), so ln x = e ln 2 + 2 atanh(p / (2^24 + p)).
    let p = (x.to_bits() & FRACTION) >> 29;
    let e = (x.to_bits() >> 52) as i64 - 1023;
    let whole = ln2.times(e.unsigned_abs());
    let rest = one.atanh(p, (1 << 24) + p).times(2);
    let ln_x = if e >= 0 { whole.plus(&rest) } else { whole.minus(&rest) };

    // |y| = k * 2^shift
    let k = ((y.to_bits() & FRACTION) | (FRACTION + 1)) >> 29;
    let shift = (y.to_bits() >> 52 & 0x7FF) as i64 - 1023 - 23;
    let product = if shift >= 0 { ln_x.times(k << shift) } else { ln_x.times(k).shifted_right(shift.unsigned_abs() as usize) };

    // To 2^n exp(argument) with the argument in [0, ln 2].
    let mut n = (product.to_f64() / LN_2) as u64;
    while !product.at_least(&ln2.times(n)) {
        n -= 1;
    }
    while product.at_least(&ln2.times(n + 1)) {
        n += 1;
    }
    if (x > 1.0) == (y > 0.0) {
        (product.minus(&ln2.times(n)).exp(), n as i64)
    } else {
        (ln2.times(n + 1).minus(&product).exp(), -1 - n as i64)
    }
}

/// A non-negative number in fixed point: limbs from the lowest, the last one before the point.
#[derive(Clone)]
struct Fixed(Vec<u64>);

impl Fixed {
    fn zero(fraction_limbs: usize) -> Fixed {
        Fixed(vec![0; fraction_limbs + 1])
    }

    fn one(fraction_limbs: usize) -> Fixed {
        let mut one = Fixed::zero(fraction_limbs);
        one.0[fraction_limbs] = 1;
        one
    }

    fn is_zero(&self) -> bool {
        self.0.iter().all(|limb| *limb == 0)
    }

    fn at_least(&self, other: &Fixed) -> bool {
        self.0.iter().rev().ge(other.0.iter().rev())
    }

    /// About this number.
    fn to_f64(&self) -> f64 {
        let limbs = self.0.len();
        self.0[limbs - 1] as f64 + self.0[limbs - 2] as f64 / (1u128 << 64) as f64
    }

    fn plus(&self, other: &Fixed) -> Fixed {
        let mut carry = false;
        Fixed(
            self.0.iter().zip(&other.0).map(|(a, b)| carrying(a.overflowing_add(*b), u64::overflowing_add, &mut carry)).collect(),
        )
    }

    /// The difference of this and one that is not larger.
    fn minus(&self, other: &Fixed) -> Fixed {
        let mut carry = false;
        Fixed(
            self.0.iter().zip(&other.0).map(|(a, b)| carrying(a.overflowing_sub(*b), u64::overflowing_sub, &mut carry)).collect(),
        )
    }

    /// The product with an integer; it fits.
    fn times(&self, factor: u64) -> Fixed {
        let mut carry = 0;
        let multiply = |limb: &u64| {
            let wide = u128::from(*limb) * u128::from(factor) + carry;
            carry = wide >> 64;
            wide as u64
        };
        Fixed(self.0.iter().map(multiply).collect())
    }

    /// The quotient by an integer, rounded down.
    fn over(&self, divisor: u64) -> Fixed {
        let mut quotient = self.clone();
        let mut rest = 0;
        for limb in quotient.0.iter_mut().rev() {
            let wide = rest << 64 | u128::from(*limb);
            *limb = (wide / u128::from(divisor)) as u64;
            rest = wide % u128::from(divisor);
        }
        quotient
    }

    /// The product of numbers below 4, rounded down.
    fn by(&self, other: &Fixed) -> Fixed {
        let limbs = self.0.len();
        let mut wide = vec![0u64; 2 * limbs];
        for (i, a) in self.0.iter().enumerate() {
            let mut carry = 0;
            for (j, b) in other.0.iter().enumerate() {
                let sum = u128::from(*a) * u128::from(*b) + u128::from(wide[i + j]) + carry;
                wide[i + j] = sum as u64;
                carry = sum >> 64;
            }
            wide[i + limbs] = carry as u64;
        }
        Fixed(wide[limbs - 1..2 * limbs - 1].to_vec())
    }

    /// Divided by `2^amount`, rounded down.
    fn shifted_right(&self, amount: usize) -> Fixed {
        let limb = |index: usize| u128::from(self.0.get(index).copied().unwrap_or(0));
        let shifted = |index| ((limb(index + 1) << 64 | limb(index)) >> (amount % 64)) as u64;
        Fixed((0..self.0.len()).map(|index| shifted(index + amount / 64)).collect())
    }

    /// The inverse hyperbolic tangent of p/q ≤ 1/3, on the one that `self` is; `q` is below 2³². Never too large.
    ///
    /// The sum of (p/q)ⁱ/i over odd i. A power is the one before times p²/q², rounded down, so it is off by less than 1 + 1/9 +
    /// … < 9/8 units, and its quotient by i by less than 9/8 + 1. There are at most F / log2 9 + 2 terms before the powers
    /// vanish, and those left out are together below 9/8 (1/9 + …): less than F for F ≥ 64.
    fn atanh(&self, p: u64, q: u64) -> Fixed {
        let mut power = self.times(p).over(q);
        let mut sum = power.clone();
        for i in (3..).step_by(2) {
            power = power.times(p * p).over(q * q);
            if power.is_zero() {
                break;
            }
            sum = sum.plus(&power.over(i));
        }
        sum
    }

    /// e to the power of a number below 1: the series. A term is the one before, off by d units, times this number, divided by i;
    /// both steps round down, so it is off by less than (d + 1)/i + 1 ≤ 3 units. There are fewer than F/4 terms for F ≥ 128.
    fn exp(&self) -> Fixed {
        let mut term = Fixed::one(self.0.len() - 1);
        let mut sum = term.clone();
        for i in 1.. {
            term = term.by(self).over(i);
            if term.is_zero() {
                break;
            }
            sum = sum.plus(&term);
        }
        sum
    }

    /// The f32 nearest to this number times `2^exponent`; this number is in [1/2, 4).
    fn to_f32(&self, exponent: i64) -> f32 {
        let (last, rest) = self.0.split_last().expect("there is a limb before the point");
        let (second, below) = rest.split_last().expect("there is a limb after the point");
        let bits = last << 62 | second >> 2;
        let zeros = bits.leading_zeros();
        // The 53 bits of an f64, the last one set if anything is cut off: the one rounding is that to f32, which has fewer bits
        // and sees on which side of a tie the number lies.
        let cut = 11 - zeros;
        let inexact = bits << (64 - cut) != 0 || second & 3 != 0 || below.iter().any(|limb| *limb != 0);
        let odd = bits >> cut | u64::from(inexact);
        let field = (1023 + exponent + 1 - i64::from(zeros)) as u64;
        f64::from_bits((field << 52) + (odd & FRACTION)) as f32
    }
}

/// Adds or subtracts the carry of the limb before to or from a sum or difference, and leaves this limb's.
fn carrying((limb, carry): (u64, bool), step: fn(u64, u64) -> (u64, bool), before: &mut bool) -> u64 {
    let (limb, again) = step(limb, u64::from(*before));
    *before = carry || again;
    limb
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::float::Float;
    use crate::random::Random;
    use vyre_spec::FloatMode;

    const INF: f32 = f32::INFINITY;
    const NAN: f32 = f32::NAN;
    const TINY: f32 = f32::from_bits(1);

    fn assert_same(got: f32, expected: f32, what: &str) {
        let bits = |x: f32| x.canonical(FloatMode::Ieee).to_bits();
        assert_eq!(bits(got), bits(expected), "{what} gives {got:e}, not {expected:e}");
    }

    /// A positive f64 below 2⁶³ in fixed point.
    fn fixed(value: f64, fraction_limbs: usize) -> Fixed {
        let significand = (value.to_bits() & FRACTION) | (FRACTION + 1);
        let exponent = (value.to_bits() >> 52) as i64 - 1023;
        let integer = Fixed::one(fraction_limbs).times(significand);
        if value == 0.0 { Fixed::zero(fraction_limbs) } else { integer.shifted_right((52 - exponent) as usize) }
    }

    fn difference(a: &Fixed, b: &Fixed) -> Fixed {
        if a.at_least(b) { a.minus(b) } else { b.minus(a) }
    }

    fn distance(a: &Fixed, b: &Fixed) -> f64 {
        difference(a, b).to_f64()
    }

    #[test]
    fn the_tables_hold_the_nearest_floats() {
        let one = Fixed::one(3);
        let ln2 = one.atanh(1, 3).times(2);
        for (j, (reciprocal, (large, small))) in RECIPROCAL.iter().zip(LOG).enumerate() {
            let (large, small) = (f64::from_bits(large), f64::from_bits(small));
            assert_eq!((large * 1_048_576.0).fract(), 0.0, "row {j}");
            assert!((reciprocal * (1.0 + j as f64 / 32.0) - 1.0).abs() < 1.0 / 65_536.0, "row {j}");
            // -ln r = 2 atanh((1 - r) / (1 + r)), and as many ln 2 as the row says, with what is negative on the other side.
            let integer = (reciprocal * 65_536.0) as u64;
            let logarithm = one.atanh(65_536 - integer, 65_536 + integer).times(2);
            let (left, right) = (fixed(large, 3).by(&ln2), fixed(small.abs(), 3).by(&ln2));
            let (left, right) = if small < 0.0 { (left, logarithm.plus(&right)) } else { (left.plus(&right), logarithm) };
            let half_ulp = (small.abs().next_up() - small.abs()) / 2.0;
            // Scaled, because `to_f64` sees two limbs only.
            let off = distance(&left.times(1 << 60), &right.times(1 << 60)) / (1u64 << 60) as f64;
            assert!(off <= half_ulp * LN_2 * 1.0001, "row {j}");
        }
        for (j, power) in EXP.into_iter().enumerate() {
            let exact = ln2.times(j as u64).over(32).exp();
            assert!(distance(&exact, &fixed(f64::from_bits(power), 3)) <= 1.0001 * 2f64.powi(-53), "2^({j}/32)");
        }
    }

    /// Where the bound at [`quick`] is tight: bases near 1 and at the ends of the table's intervals, large exponents.
    #[test]
    fn the_first_stage_keeps_its_bound() {
        let mut random = Random(21);
        let mut worst: f64 = 0.0;
        for round in 0..20_000 {
            let (a, b) = (random.next(), random.next());
            let x = match round % 4 {
                0 => f32::from_bits(0x3F7E_0000 + (a % 0x6_0000) as u32),
                1 => f32::from_bits(0x3F80_0000 + (a % 0x8000) as u32),
                2 => f32::from_bits(0x3F00_0000 + (a % 64 * 0x2_0000 + 0x2_0000 + a / 64 % 32).saturating_sub(16) as u32),
                _ => f32::from_bits((a % 0x7F80_0000) as u32 | 1),
            };
            let logarithm = f64::from(x).log2();
            let target = if round % 2 == 0 { 128.0 } else { 150.0 } * ((b >> 11) as f64 / (1u64 << 53) as f64);
            let y = ((if b & 1 == 0 || round % 2 == 1 { -target } else { target }) / logarithm) as f32;
            let (wide_x, wide_y) = (f64::from(x), f64::from(y));
            let power = quick(wide_x, wide_y);
            if x == 1.0 || y == 0.0 || !power.is_finite() || power == 0.0 {
                continue;
            }
            let (exact, exponent) = fixed_point(wide_x, wide_y, 3);
            let scaled = f64::from_bits(power.to_bits().wrapping_add_signed(-exponent << 52));
            let error = distance(&exact, &fixed(scaled, 3)) / exact.to_f64();
            assert!(error < 2f64.powf(-43.3), "{x:e} to {y:e}: 2^{}", error.log2());
            worst = worst.max(error);
        }
        // The samples are worth something, and the rounding test allows for more.
        assert!(worst > 2f64.powi(-46) && worst < SLACK / 2.0, "2^{}", worst.log2());
    }

    /// `x` to the power of `2^squarings`, as a number in [1, 2) and an exponent of two, exact but for the last limb.
    fn squared(x: f64, squarings: u64) -> (Fixed, i64) {
        const LIMBS: usize = 6;
        let mut exponent = (x.to_bits() >> 52) as i64 - 1023;
        let mut number = fixed(f64::from_bits(x.to_bits() & FRACTION | ONE), LIMBS);
        let two = Fixed::one(LIMBS).times(2);
        for _ in 0..squarings {
            number = number.by(&number);
            exponent *= 2;
            if number.at_least(&two) {
                number = number.shifted_right(1);
                exponent += 1;
            }
        }
        (Fixed(number.0.split_off(LIMBS - 3)), exponent)
    }

    /// Against repeated squaring, which has no logarithm. No pair is known whose result an error of 2⁻⁸⁰ would change.
    #[test]
    fn the_second_stage_keeps_its_bound() {
        let mut random = Random(23);
        let error = Fixed::one(3).shifted_right(128);
        for round in 0..4_000 {
            let a = random.next();
            let x = match round % 4 {
                0 => f32::from_bits(0x3F80_0000 + ((a % 0x80_0000) >> (a >> 58)) as u32),
                1 => f32::from_bits(0x3F7F_FFFF - ((a % 0x80_0000) >> (a >> 58)) as u32),
                _ => f32::from_bits((a % 0x7F80_0000) as u32),
            };
            let x = f64::from(x);
            if x == 0.0 || x.to_bits() & FRACTION == 0 {
                continue;
            }
            let most = (126.0 / x.log2().abs()).log2().floor();
            let squarings = random.next() % (most.max(0.0) as u64 + 1);
            let y = (1u64 << squarings) as f64;
            let (expected, exponent) = squared(x, squarings);
            let (power, n) = fixed_point(x, y, 3);
            assert!(n == exponent && error.at_least(&difference(&power, &expected)), "{x:e} to {y:e}");

            // The reciprocal: its product with the power is a power of two.
            let (reciprocal, n) = fixed_point(x, -y, 3);
            let (product, one) = (reciprocal.by(&expected), Fixed::one(3).times(1 << -(n + exponent)));
            assert!(error.times(2).at_least(&difference(&product, &one)), "{x:e} to {:e}", -y);
        }
    }

    #[test]
    fn the_second_stage_alone_is_right_also_far_from_ties() {
        let mut random = Random(22);
        for _ in 0..4_000 {
            let (a, b) = (random.next(), random.next());
            let x = f32::from_bits((a % 0x7F80_0000) as u32 | 1);
            let target = (b >> 11) as f64 / (1u64 << 53) as f64 * 277.0 - 149.0;
            let y = (target / f64::from(x).log2()) as f32;
            if x != 1.0 && y != 0.0 && y.is_finite() {
                assert_same(precise(f64::from(x), f64::from(y)), core_math::powf(x, y), &format!("{x:e} to {y:e}"));
            }
        }
        // Bases next to 1, exponents next to 0.
        for (x, y) in [(1.0f32.next_up(), 1e9), (1.0f32.next_down(), -1.4e9), (f32::MAX, TINY), (TINY, -TINY), (TINY, -0.86)] {
            assert_same(precise(f64::from(x), f64::from(y)), core_math::powf(x, y), &format!("{x:e} to {y:e}"));
        }
    }

    /// The power is 2⁻⁷⁶ of its size away from a tie.
    #[test]
    fn an_inconclusive_precision_is_noticed_and_a_higher_one_decides() {
        let (x, y) = (f64::from(f32::from_bits(0x1D24_DB42)), f64::from(f32::from_bits(0x3F8A_84FB)));
        let (low, high) = bounds(x, y, 2);
        assert_eq!(low.next_up(), high);
        let (low, high) = bounds(x, y, 3);
        assert_eq!(low, high);
        assert_eq!(bounds(x, y, 6), (low, high));
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
