//! Compositions over whole buffers: scans and reductions.

mod support;

use support::{Case, Grids, LENGTHS, Random, agrees, bytes, f32s, u32s};
use vyre_ops::reduce::{Combine, Integer, reduce, reduce_i32_on_cpu, reduce_u32_on_cpu, row_sum_on_cpu, row_sums};
use vyre_ops::scan;

#[test]
fn sums() {
    let mut random = Random(4);
    for length in LENGTHS {
        let x = random.u32s(length);
        let name = format!("{length} elements");
        let case = |sums: &[u32]| Case {
            name: name.clone(),
            inputs: vec![u32s(&x)],
            outputs: vec![u32s(sums)],
            counts: vec![("sums", length)],
        };
        agrees(&scan::inclusive_sum, &Grids::Any, &case(&scan::inclusive_sum_on_cpu(&x)));
        agrees(&scan::exclusive_sum, &Grids::Any, &case(&scan::exclusive_sum_on_cpu(&x)));
    }
}

#[test]
fn segmented_sums() {
    let mut random = Random(5);
    for (n, length) in LENGTHS.into_iter().enumerate() {
        let x = random.u32s(length);
        // No heads, all heads, some.
        let every = [0, 1, 3, 50, 500][n % 5];
        let heads: Vec<u32> =
            (0..length).map(|_| if every > 0 && random.below(every) == 0 { random.u32() | 1 } else { 0 }).collect();
        let (sums, segments) = scan::segmented_sum_on_cpu(&x, &heads);
        let case = Case {
            name: format!("{length} elements, a head every {every}"),
            inputs: vec![u32s(&x), u32s(&heads)],
            outputs: vec![u32s(&sums), u32s(&segments)],
            counts: vec![("sums", length), ("segments", length)],
        };
        agrees(&scan::segmented_sum, &Grids::Any, &case);
    }
}

#[test]
fn reductions() {
    let mut random = Random(6);
    for combine in Combine::ALL {
        for length in [0, 1, 37, 64, 255, 257, 1000] {
            // Few bits for `and`, many for `or`: otherwise one element more or less does not show.
            let x: Vec<u32> = (0..length)
                .map(|_| match combine {
                    Combine::And => !(1 << random.below(32)) | 0x8000_0000,
                    Combine::Or => 1 << random.below(31),
                    Combine::Add | Combine::Min | Combine::Max | Combine::Xor => random.u32(),
                })
                .collect();
            let unsigned = reduce_u32_on_cpu(combine, &x);
            let signed: Vec<i32> = x.iter().map(|x| *x as i32).collect();
            let signed = reduce_i32_on_cpu(combine, &signed);
            for (integer, result) in Integer::ALL.into_iter().zip([unsigned, signed as u32]) {
                let case = Case {
                    name: format!("{} of {length} {integer:?}", combine.name()),
                    inputs: vec![u32s(&x)],
                    outputs: vec![u32s(&[result])],
                    ..Case::default()
                };
                agrees(&|size| reduce(size, combine, integer), &Grids::Any, &case);
            }
        }
    }
}

#[test]
fn sums_of_rows() {
    let mut random = Random(7);
    for (rows, columns) in [(1, 0), (3, 1), (2, 37), (1, 255), (2, 256), (3, 257), (1, 1000)] {
        let x = random.f32s(rows * columns);
        let sums: Vec<f32> = (0..rows).map(|row| row_sum_on_cpu(&x[row * columns..][..columns])).collect();
        let case = Case {
            name: format!("{rows} x {columns}"),
            inputs: vec![f32s(&x)],
            outputs: vec![bytes(&sums, f32::to_le_bytes)],
            counts: vec![("sums", rows)],
        };
        agrees(&|size| row_sums(size, columns as u32), &Grids::Workgroups(rows), &case);
    }
}
