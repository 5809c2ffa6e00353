//! Kernels on floats whose order of operations is kept.

use super::vector::{load_floats, store, store_floats};
use crate::cpu::cases::{MANDELBROT_STEPS, MATMUL_SIDE};
use std::arch::x86_64::*;

/// Four vectors at a time, which leave the loop when all their lanes have.
#[target_feature(enable = "avx2")]
pub fn mandelbrot(inputs: &[&[u32]], steps: &mut [u32]) {
    const AT_ONCE: usize = 4;
    let [re, im] = [inputs[0], inputs[1]].map(|input| input.as_chunks::<8>().0.as_chunks::<AT_ONCE>().0);
    let four = _mm256_set1_ps(4.0);
    for ((out, re), im) in steps.as_chunks_mut::<8>().0.as_chunks_mut::<AT_ONCE>().0.iter_mut().zip(re).zip(im) {
        let (mut x, mut y) = ([_mm256_setzero_ps(); AT_ONCE], [_mm256_setzero_ps(); AT_ONCE]);
        let (mut n, mut inside) = ([_mm256_setzero_si256(); AT_ONCE], [_mm256_set1_epi32(-1); AT_ONCE]);
        for _ in 0..MANDELBROT_STEPS {
            let mut any = _mm256_setzero_si256();
            for v in 0..AT_ONCE {
                let (xx, yy) = (_mm256_mul_ps(x[v], x[v]), _mm256_mul_ps(y[v], y[v]));
                let outside = _mm256_cmp_ps::<_CMP_GT_OQ>(_mm256_add_ps(xx, yy), four);
                inside[v] = _mm256_andnot_si256(_mm256_castps_si256(outside), inside[v]);
                any = _mm256_or_si256(any, inside[v]);
                n[v] = _mm256_sub_epi32(n[v], inside[v]);
                y[v] = _mm256_add_ps(_mm256_mul_ps(_mm256_add_ps(x[v], x[v]), y[v]), load_floats(&im[v]));
                x[v] = _mm256_add_ps(_mm256_sub_ps(xx, yy), load_floats(&re[v]));
            }
            if _mm256_testz_si256(any, any) != 0 {
                break;
            }
        }
        for (out, n) in out.iter_mut().zip(n) {
            store(out, n);
        }
    }
}

/// Sixteen columns of the right matrix are packed together, 32 KiB that stay in the first cache, and met by four rows at a time of the left
/// one. Every sum is taken in the order of k.
#[target_feature(enable = "avx2")]
pub fn matmul(inputs: &[&[u32]], c: &mut [u32]) {
    const N: usize = MATMUL_SIDE;
    let (a, b) = (inputs[0], inputs[1]);
    assert!(a.len() == N * N && b.len() == N * N && c.len() == N * N);
    let mut panel = vec![[[0u32; 8]; 2]; N];
    for left in (0..N).step_by(16) {
        for (k, packed) in panel.iter_mut().enumerate() {
            packed.as_flattened_mut().copy_from_slice(&b[k * N + left..][..16]);
        }
        for top in (0..N).step_by(4) {
            let row =
                |y: usize| -> &[f32; N] { bytemuck::cast_slice(&a[(top + y) * N..][..N]).first_chunk().expect("N of them") };
            let rows = [row(0), row(1), row(2), row(3)];
            let mut sums = [[_mm256_setzero_ps(); 2]; 4];
            for (k, packed) in panel.iter().enumerate() {
                let packed = [load_floats(&packed[0]), load_floats(&packed[1])];
                for (sums, row) in sums.iter_mut().zip(rows) {
                    let value = _mm256_set1_ps(row[k]);
                    sums[0] = _mm256_add_ps(sums[0], _mm256_mul_ps(value, packed[0]));
                    sums[1] = _mm256_add_ps(sums[1], _mm256_mul_ps(value, packed[1]));
                }
            }
            for (y, sums) in sums.into_iter().enumerate() {
                let out: &mut [u32; 16] = c[(top + y) * N + left..].first_chunk_mut().expect("sixteen columns");
                for (out, sum) in out.as_chunks_mut::<8>().0.iter_mut().zip(sums) {
                    store_floats(out, sum);
                }
            }
        }
    }
}
