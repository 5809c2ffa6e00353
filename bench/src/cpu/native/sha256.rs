//! SHA-256 of eight messages at a time, one in each lane. (One message at a time with the instructions for it is faster where a
//! processor has them; they are not AVX2.)

use super::vector::{load, store};
use crate::kernels::sha256_constants;
use std::arch::x86_64::*;

/// Rows become columns.
#[inline]
#[target_feature(enable = "avx2")]
fn transpose(rows: [__m256i; 8]) -> [__m256i; 8] {
    let [a, b, c, d, e, f, g, h] = rows;
    let pairs = |x: __m256i, y: __m256i| [_mm256_unpacklo_epi32(x, y), _mm256_unpackhi_epi32(x, y)];
    let ([ab0, ab1], [cd0, cd1], [ef0, ef1], [gh0, gh1]) = (pairs(a, b), pairs(c, d), pairs(e, f), pairs(g, h));
    let quads = |x: __m256i, y: __m256i| [_mm256_unpacklo_epi64(x, y), _mm256_unpackhi_epi64(x, y)];
    let ([p0, p1], [p2, p3], [q0, q1], [q2, q3]) = (quads(ab0, cd0), quads(ab1, cd1), quads(ef0, gh0), quads(ef1, gh1));
    let low = |x: __m256i, y: __m256i| _mm256_permute2x128_si256::<0x20>(x, y);
    let high = |x: __m256i, y: __m256i| _mm256_permute2x128_si256::<0x31>(x, y);
    [low(p0, q0), low(p1, q1), low(p2, q2), low(p3, q3), high(p0, q0), high(p1, q1), high(p2, q2), high(p3, q3)]
}

macro_rules! rotated {
    ($x:expr, $n:literal) => {
        _mm256_or_si256(_mm256_srli_epi32::<$n>($x), _mm256_slli_epi32::<{ 32 - $n }>($x))
    };
}

macro_rules! xor {
    ($a:expr, $b:expr, $c:expr) => {
        _mm256_xor_si256(_mm256_xor_si256($a, $b), $c)
    };
}

#[target_feature(enable = "avx2")]
pub fn sha256(inputs: &[&[u32]], digests: &mut [u32]) {
    let (start, constants) = sha256_constants();
    let add = |a: __m256i, b: __m256i| _mm256_add_epi32(a, b);
    let swap = _mm256_set_epi8(
        12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3,
    );
    let splat = |word: u32| _mm256_set1_epi32(word.cast_signed());
    let messages = inputs[0].as_chunks::<8>().0.as_chunks::<2>().0.as_chunks::<8>().0;
    for (out, messages) in digests.as_chunks_mut::<8>().0.as_chunks_mut::<8>().0.iter_mut().zip(messages) {
        let mut halves = [[_mm256_setzero_si256(); 8]; 2];
        for (half, words) in halves.iter_mut().enumerate() {
            for (words, message) in words.iter_mut().zip(messages) {
                *words = _mm256_shuffle_epi8(load(&message[half]), swap);
            }
            *words = transpose(*words);
        }
        let mut w = [_mm256_setzero_si256(); 16];
        w.copy_from_slice(halves.as_flattened());
        let mut state = [_mm256_setzero_si256(); 8];
        for (state, start) in state.iter_mut().zip(start) {
            *state = splat(start);
        }
        let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = state;
        for sixteen in constants.as_chunks::<16>().0 {
            for (i, constant) in sixteen.iter().enumerate() {
                let s1 = xor!(rotated!(e, 6), rotated!(e, 11), rotated!(e, 25));
                let choice = _mm256_xor_si256(_mm256_and_si256(e, _mm256_xor_si256(f, g)), g);
                let t = add(add(add(h, s1), add(choice, splat(*constant))), w[i]);
                let s0 = xor!(rotated!(a, 2), rotated!(a, 13), rotated!(a, 22));
                let majority = _mm256_or_si256(_mm256_and_si256(a, b), _mm256_and_si256(c, _mm256_or_si256(a, b)));
                (h, g, f, e, d, c, b, a) = (g, f, e, add(d, t), c, b, a, add(t, add(s0, majority)));
                // What stands here in the next sixteen rounds.
                let (x, y) = (w[(i + 1) % 16], w[(i + 14) % 16]);
                let x = xor!(rotated!(x, 7), rotated!(x, 18), _mm256_srli_epi32::<3>(x));
                let y = xor!(rotated!(y, 17), rotated!(y, 19), _mm256_srli_epi32::<10>(y));
                w[i] = add(add(w[i], x), add(w[(i + 9) % 16], y));
            }
        }
        state = [a, b, c, d, e, f, g, h];
        for (state, start) in state.iter_mut().zip(start) {
            *state = _mm256_shuffle_epi8(add(*state, splat(start)), swap);
        }
        for (out, digest) in out.iter_mut().zip(transpose(state)) {
            store(out, digest);
        }
    }
}
