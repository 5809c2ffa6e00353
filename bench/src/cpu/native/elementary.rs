//! Functions, correctly rounded: four lanes at a time in f64 with an error far below half a unit in the last place of f32, and a test
//! whether that error could change the rounding. Lanes where it could, or that lie outside the easy range, go to the scalar function:
//! about one in ten million.

use super::vector::{load_floats, store_floats};
use std::arch::x86_64::*;
use vyre::scalar::elementary;

/// Relative errors below this are what the rounding test allows for.
const ERROR: f64 = 1.0 / (1u64 << 49) as f64;

/// Makes a float an integer by pushing its fraction out: 1.5 * 2^52.
const TO_INTEGER: f64 = 6_755_399_441_055_744.0;

/// All of `x` through a function of four lanes, which says in a mask where it is sure.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn map(x: &[u32], out: &mut [u32], easy: [f32; 2], four: impl Fn(__m256d) -> __m256d, scalar: fn(f32) -> f32) {
    let (low, high) = (_mm256_set1_ps(easy[0]), _mm256_set1_ps(easy[1]));
    let magnitude = _mm256_castsi256_ps(_mm256_set1_epi32(i32::MAX));
    for (out, x) in out.as_chunks_mut::<8>().0.iter_mut().zip(x.as_chunks::<8>().0) {
        let v = load_floats(x);
        let size = _mm256_and_ps(v, magnitude);
        let inside = _mm256_and_ps(_mm256_cmp_ps::<_CMP_GE_OQ>(size, low), _mm256_cmp_ps::<_CMP_LE_OQ>(size, high));
        let lower = four(_mm256_cvtps_pd(_mm256_castps256_ps128(v)));
        let upper = four(_mm256_cvtps_pd(_mm256_extractf128_ps::<1>(v)));
        let off = |half: __m256d, error: f64| _mm256_cvtpd_ps(_mm256_fmadd_pd(half, _mm256_set1_pd(error), half));
        let below = _mm256_set_m128(off(upper, -ERROR), off(lower, -ERROR));
        let above = _mm256_set_m128(off(upper, ERROR), off(lower, ERROR));
        let sure = _mm256_and_ps(inside, _mm256_cmp_ps::<_CMP_EQ_OQ>(below, above));
        store_floats(out, below);
        let mask = _mm256_movemask_ps(sure);
        if mask != 255 {
            for lane in (0..8).filter(|lane| mask >> lane & 1 == 0) {
                out[lane] = scalar(f32::from_bits(x[lane])).to_bits();
            }
        }
    }
}

/// 2^(k/32) from a table, times a polynomial of what is left.
#[target_feature(enable = "avx2,fma")]
pub fn exp(inputs: &[&[u32]], out: &mut [u32]) {
    let powers: [f64; 32] = std::array::from_fn(|k| (k as f64 / 32.0).exp2());
    const LN_2: [f64; 2] = [std::f64::consts::LN_2 / 32.0, 2.319_046_813_846_299_6e-17 / 32.0];
    let four = |x: __m256d| {
        let shifted = _mm256_fmadd_pd(x, _mm256_set1_pd(std::f64::consts::LOG2_E * 32.0), _mm256_set1_pd(TO_INTEGER));
        let k = _mm256_sub_pd(shifted, _mm256_set1_pd(TO_INTEGER));
        let r = _mm256_fnmadd_pd(k, _mm256_set1_pd(LN_2[1]), _mm256_fnmadd_pd(k, _mm256_set1_pd(LN_2[0]), x));
        let mut polynomial = _mm256_set1_pd(1.0 / 720.0);
        for factor in [1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
            polynomial = _mm256_fmadd_pd(polynomial, r, _mm256_set1_pd(factor));
        }
        let k = _mm256_castpd_si256(shifted);
        let place = _mm256_and_si256(k, _mm256_set1_epi64x(31));
        // SAFETY: places are below 32.
        let power = unsafe { _mm256_i64gather_pd::<8>(powers.as_ptr(), place) };
        let exponent = _mm256_slli_epi64::<47>(_mm256_sub_epi64(k, place));
        let power = _mm256_castsi256_pd(_mm256_add_epi64(_mm256_castpd_si256(power), exponent));
        _mm256_mul_pd(polynomial, power)
    };
    map(inputs[0], out, [0.0, 80.0], four, elementary::exp);
}

/// Sine and cosine of what is left after whole quarters of the circle, by their series.
#[target_feature(enable = "avx2,fma")]
pub fn sin(inputs: &[&[u32]], out: &mut [u32]) {
    const QUARTER: [f64; 2] = [std::f64::consts::FRAC_PI_2, 6.123_233_995_736_766e-17];
    // 1/3!, 1/5!, … and 1/2!, 1/4!, … with alternating signs, the last first.
    let series = |first: i32, count: i32| {
        (0..count)
            .rev()
            .map(move |n| (1..=first + 2 * n).map(f64::from).product::<f64>().recip() * f64::from(1 - (n + 1) % 2 * 2))
    };
    let sines: [f64; 8] = series(3, 8).collect::<Vec<_>>().try_into().expect("eight");
    let cosines: [f64; 8] = series(2, 8).collect::<Vec<_>>().try_into().expect("eight");
    let four = |x: __m256d| {
        let shifted = _mm256_fmadd_pd(x, _mm256_set1_pd(std::f64::consts::FRAC_2_PI), _mm256_set1_pd(TO_INTEGER));
        let k = _mm256_sub_pd(shifted, _mm256_set1_pd(TO_INTEGER));
        let r = _mm256_fnmadd_pd(k, _mm256_set1_pd(QUARTER[1]), _mm256_fnmadd_pd(k, _mm256_set1_pd(QUARTER[0]), x));
        let square = _mm256_mul_pd(r, r);
        let (mut sine, mut cosine) = (_mm256_set1_pd(sines[0]), _mm256_set1_pd(cosines[0]));
        for n in 1..8 {
            sine = _mm256_fmadd_pd(sine, square, _mm256_set1_pd(sines[n]));
            cosine = _mm256_fmadd_pd(cosine, square, _mm256_set1_pd(cosines[n]));
        }
        let sine = _mm256_fmadd_pd(_mm256_mul_pd(sine, square), r, r);
        let cosine = _mm256_fmadd_pd(cosine, square, _mm256_set1_pd(1.0));
        let quarter = _mm256_castpd_si256(shifted);
        let odd = _mm256_castsi256_pd(_mm256_slli_epi64::<63>(quarter));
        let sign = _mm256_castsi256_pd(_mm256_slli_epi64::<62>(_mm256_and_si256(quarter, _mm256_set1_epi64x(2))));
        _mm256_xor_pd(_mm256_blendv_pd(sine, cosine, odd), sign)
    };
    map(inputs[0], out, [1.0 / 1024.0, 1000.0], four, elementary::sin);
}
