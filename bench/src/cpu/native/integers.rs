//! Kernels on integers.

use super::vector::{load, load_bytes, store, sum};
use std::arch::x86_64::*;

#[target_feature(enable = "avx2")]
pub fn xor(inputs: &[&[u32]], out: &mut [u32]) {
    let [a, b] = [inputs[0], inputs[1]].map(|input| input.as_chunks::<8>().0);
    for ((out, a), b) in out.as_chunks_mut::<8>().0.iter_mut().zip(a).zip(b) {
        store(out, _mm256_xor_si256(load(a), load(b)));
    }
}

/// Eight vectors at a time: two multiplications of ten cycles each follow one another in a round, and two can begin in each cycle.
#[target_feature(enable = "avx2")]
pub fn mix(inputs: &[&[u32]], out: &mut [u32]) {
    const AT_ONCE: usize = 8;
    let (first, second) = (_mm256_set1_epi32(0x85eb_ca6b_u32.cast_signed()), _mm256_set1_epi32(0xc2b2_ae35_u32.cast_signed()));
    let from = inputs[0].as_chunks::<8>().0.as_chunks::<AT_ONCE>().0;
    for (out, from) in out.as_chunks_mut::<8>().0.as_chunks_mut::<AT_ONCE>().0.iter_mut().zip(from) {
        let mut v = [_mm256_setzero_si256(); AT_ONCE];
        for (v, from) in v.iter_mut().zip(from) {
            *v = load(from);
        }
        for _ in 0..64 {
            for v in &mut v {
                *v = _mm256_xor_si256(*v, _mm256_srli_epi32::<16>(*v));
                *v = _mm256_mullo_epi32(*v, first);
                *v = _mm256_xor_si256(*v, _mm256_srli_epi32::<13>(*v));
                *v = _mm256_mullo_epi32(*v, second);
                *v = _mm256_xor_si256(*v, _mm256_srli_epi32::<15>(*v));
            }
        }
        for (out, v) in out.iter_mut().zip(v) {
            store(out, v);
        }
    }
}

/// Integer sums may be taken in any order: one pass over the elements of each workgroup.
#[target_feature(enable = "avx2")]
pub fn reduction(inputs: &[&[u32]], sums: &mut [u32]) {
    for (out, group) in sums.iter_mut().zip(inputs[0].as_chunks::<256>().0) {
        let mut parts = [_mm256_setzero_si256(); 4];
        for vectors in group.as_chunks::<8>().0.as_chunks::<4>().0 {
            for (part, vector) in parts.iter_mut().zip(vectors) {
                *part = _mm256_add_epi32(*part, load(vector));
            }
        }
        let [a, b, c, d] = parts;
        *out = sum(_mm256_add_epi32(_mm256_add_epi32(a, b), _mm256_add_epi32(c, d)));
    }
}

/// Invocations whose windows of text lie side by side, 64 at a time, as a gather takes long to come back: a step reads their bytes together
/// and looks up the next states with gathers. The table has each state times 256, so that a place in it is one addition.
#[target_feature(enable = "avx2")]
pub fn dfa(inputs: &[&[u32]], states: &mut [u32]) {
    let (text, table): (&[u8], &[u32]) = (bytemuck::cast_slice(inputs[0]), inputs[1]);
    assert!(table.len() == 16 * 256 && table.iter().all(|state| *state < 16) && text.len() >= states.len() + 64);
    let rows: Vec<i32> = table.iter().map(|state| (state * 256).cast_signed()).collect();
    for (group, out) in states.as_chunks_mut::<8>().0.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let mut row = [_mm256_setzero_si256(); 8];
        let window: &[u8; 64 + 63] = text[group * 64..].first_chunk().expect("the text is longer than the last window");
        for k in 0..64 {
            for (lanes, row) in row.iter_mut().enumerate() {
                let bytes = load_bytes(
                    window[k + lanes * 8..].first_chunk().expect("the last byte of the last lane is the last of these"),
                );
                // SAFETY: rows of the table are below 16 * 256 and bytes below 256, as asserted above.
                *row = unsafe { _mm256_i32gather_epi32::<4>(rows.as_ptr(), _mm256_add_epi32(*row, bytes)) };
            }
        }
        for (out, row) in out.iter_mut().zip(row) {
            store(out, _mm256_srli_epi32::<8>(row));
        }
    }
}
