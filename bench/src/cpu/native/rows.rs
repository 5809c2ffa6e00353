//! Kernels whose elements look at their neighbours, and the dot product of small floats.

use super::vector::{load, load_floats, store, store_floats};
use crate::cpu::cases::IMAGE_WIDTH;
use crate::cpu::plain;
use std::arch::x86_64::*;

/// Within a vector three steps; across vectors the last sum so far, in every lane.
#[target_feature(enable = "avx2")]
pub fn prefix_sum(inputs: &[&[u32]], sums: &mut [u32]) {
    let last = _mm256_set1_epi32(7);
    for (out, group) in sums.as_chunks_mut::<256>().0.iter_mut().zip(inputs[0].as_chunks::<256>().0) {
        let mut carry = _mm256_setzero_si256();
        for (out, x) in out.as_chunks_mut::<8>().0.iter_mut().zip(group.as_chunks::<8>().0) {
            let mut v = load(x);
            v = _mm256_add_epi32(v, _mm256_slli_si256::<4>(v));
            v = _mm256_add_epi32(v, _mm256_slli_si256::<8>(v));
            // The sum of the lower four, in the upper four.
            let lower = _mm256_permute2x128_si256::<0x08>(v, v);
            v = _mm256_add_epi32(v, _mm256_shuffle_epi32::<0xFF>(lower));
            v = _mm256_add_epi32(v, carry);
            carry = _mm256_permutevar8x32_epi32(v, last);
            store(out, v);
        }
    }
}

/// Eight histograms, so that equal values next to each other do not wait for one counter.
pub fn histogram(inputs: &[&[u32]], bins: &mut [u32]) {
    let mut parts = [[0u32; 256]; 8];
    for values in inputs[0].as_chunks::<8>().0 {
        for (part, value) in parts.iter_mut().zip(values) {
            part[(value & 255) as usize] += 1;
        }
    }
    for (kind, bin) in bins.iter_mut().enumerate() {
        *bin = parts.iter().map(|part| part[kind]).sum();
    }
}

/// Rows that have neighbours above and below are done in vectors, except for the first and the last pixels of each.
#[target_feature(enable = "avx2")]
pub fn blur(inputs: &[&[u32]], blurred: &mut [u32]) {
    const W: usize = IMAGE_WIDTH;
    let image = inputs[0];
    let height = image.len() / W;
    let (two, sixteenth) = (_mm256_set1_ps(2.0), _mm256_set1_ps(1.0 / 16.0));
    for (y, out) in blurred.as_chunks_mut::<W>().0.iter_mut().enumerate() {
        if y == 0 || y + 1 == height {
            out.iter_mut().enumerate().for_each(|(x, out)| *out = plain::blurred(image, inputs[1], x, y));
            continue;
        }
        let row = |y: usize| -> &[u32; W] { image[y * W..].first_chunk().expect("a row") };
        let rows = [row(y - 1), row(y), row(y + 1)];
        for x in [0, W - 1] {
            out[x] = plain::blurred(image, inputs[1], x, y);
        }
        let mut x = 1;
        while x + 8 < W {
            let weighted = |row: &[u32; W]| {
                let at = |x: usize| load_floats(row[x..].first_chunk().expect("x + 8 is inside"));
                _mm256_add_ps(_mm256_add_ps(at(x - 1), _mm256_mul_ps(at(x), two)), at(x + 1))
            };
            let (above, beside, below) = (weighted(rows[0]), weighted(rows[1]), weighted(rows[2]));
            let sum = _mm256_add_ps(_mm256_add_ps(above, _mm256_mul_ps(beside, two)), below);
            // Dividing by a power of two is multiplying by its inverse.
            store_floats(out[x..].first_chunk_mut().expect("x + 8 is inside"), _mm256_mul_ps(sum, sixteenth));
            x += 8;
        }
        for (x, out) in out.iter_mut().enumerate().take(W - 1).skip(x) {
            *out = plain::blurred(image, inputs[1], x, y);
        }
    }
}

/// Four columns of weights at a time over all rows, whose sums stay in the first cache. A byte is put into a float of 16 bits, which has the
/// same form with three more bits of exponent bias, and widened.
#[target_feature(enable = "avx2,f16c")]
pub fn f8_dot(inputs: &[&[u32]], y: &mut [u32]) {
    let (weights, scales, x): (&[u8], _, &[f32]) = (bytemuck::cast_slice(inputs[0]), inputs[1], bytemuck::cast_slice(inputs[2]));
    let rows = y.len();
    assert!(weights.len() == rows * x.len() && rows.is_multiple_of(8) && scales.len() == rows);
    let (magnitude, sign) = (_mm_set1_epi16(0x7F), _mm_set1_epi16(0x80));
    let nan = _mm256_castsi256_ps(_mm256_set1_epi32(0x7FC0_0000));
    let weight = |bytes: &[u8; 8]| {
        let bytes = _mm_cvtepu8_epi16(_mm_cvtsi64_si128(i64::from_le_bytes(*bytes)));
        let half = _mm_slli_epi16::<7>(_mm_and_si128(bytes, magnitude));
        let half = _mm_or_si128(half, _mm_slli_epi16::<8>(_mm_and_si128(bytes, sign)));
        let value = _mm256_mul_ps(_mm256_cvtph_ps(half), _mm256_set1_ps(256.0));
        let is_nan = _mm256_cvtepi16_epi32(_mm_cmpeq_epi16(_mm_and_si128(bytes, magnitude), magnitude));
        _mm256_or_ps(value, _mm256_castsi256_ps(is_nan))
    };
    let mut sums = vec![[0u32; 8]; rows / 8];
    let (fours, rest) = x.as_chunks::<4>();
    assert!(rest.is_empty());
    for (columns, x) in weights.chunks_exact(4 * rows).zip(fours) {
        let x = [_mm256_set1_ps(x[0]), _mm256_set1_ps(x[1]), _mm256_set1_ps(x[2]), _mm256_set1_ps(x[3])];
        let [a, b, c, d] = std::array::from_fn(|n| columns[n * rows..][..rows].as_chunks::<8>().0);
        let columns = a.iter().zip(b).zip(c).zip(d);
        for (sum, (((a, b), c), d)) in sums.iter_mut().zip(columns) {
            let mut total = load_floats(sum);
            for (bytes, x) in [a, b, c, d].into_iter().zip(x) {
                total = _mm256_add_ps(total, _mm256_mul_ps(weight(bytes), x));
            }
            store_floats(sum, total);
        }
    }
    for ((y, sum), scale) in y.as_chunks_mut::<8>().0.iter_mut().zip(&sums).zip(scales.as_chunks::<8>().0) {
        let value = _mm256_mul_ps(load_floats(sum), load_floats(scale));
        store_floats(y, _mm256_blendv_ps(value, nan, _mm256_cmp_ps::<_CMP_UNORD_Q>(value, value)));
    }
}
