//! Vectors in and out of arrays that are as long as they are.

use std::arch::x86_64::*;

/// Eight words.
#[inline]
#[target_feature(enable = "avx2")]
pub fn load(from: &[u32; 8]) -> __m256i {
    // SAFETY: the array has the 32 bytes that are read.
    unsafe { _mm256_loadu_si256(from.as_ptr().cast()) }
}

/// Eight words.
#[inline]
#[target_feature(enable = "avx2")]
pub fn store(to: &mut [u32; 8], value: __m256i) {
    // SAFETY: the array has the 32 bytes that are written.
    unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), value) }
}

/// Eight floats from words.
#[inline]
#[target_feature(enable = "avx2")]
pub fn load_floats(from: &[u32; 8]) -> __m256 {
    _mm256_castsi256_ps(load(from))
}

/// Eight floats into words.
#[inline]
#[target_feature(enable = "avx2")]
pub fn store_floats(to: &mut [u32; 8], value: __m256) {
    store(to, _mm256_castps_si256(value));
}

/// Eight bytes, each as a word.
#[inline]
#[target_feature(enable = "avx2")]
pub fn load_bytes(from: &[u8; 8]) -> __m256i {
    _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(i64::from_le_bytes(*from)))
}

/// The sum of eight words.
#[inline]
#[target_feature(enable = "avx2")]
pub fn sum(value: __m256i) -> u32 {
    let four = _mm_add_epi32(_mm256_castsi256_si128(value), _mm256_extracti128_si256::<1>(value));
    let two = _mm_add_epi32(four, _mm_shuffle_epi32::<0b00_00_11_10>(four));
    let one = _mm_add_epi32(two, _mm_shuffle_epi32::<0b00_00_00_01>(two));
    _mm_cvtsi128_si32(one).cast_unsigned()
}
