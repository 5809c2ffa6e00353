//! Compositions in which a workgroup works on a row.

mod support;

use support::{Case, Grids, Random, agrees, f32s, u32s};
use vyre_ops::fft::{Direction, fft, fft_on_cpu};
use vyre_ops::matrix::{Quantised, quantised_dot, quantised_dot_on_cpu};
use vyre_ops::norm::{layer_norm, layer_norm_on_cpu, softmax, softmax_on_cpu};
use vyre_ops::sort::{top_k, top_k_on_cpu};

const SHAPES: [(usize, usize); 8] = [(0, 5), (1, 1), (3, 2), (2, 37), (5, 64), (1, 256), (2, 257), (1, 700)];

#[test]
fn softmaxes() {
    let mut random = Random(12);
    for (rows, columns) in SHAPES {
        let x: Vec<f32> = random.f32s(rows * columns).iter().map(|x| x * 8.0).collect();
        let y: Vec<f32> = x.chunks(columns).flat_map(softmax_on_cpu).collect();
        let name = format!("{rows} x {columns}");
        let case = Case { name, inputs: vec![f32s(&x)], outputs: vec![f32s(&y)], counts: vec![("y", rows * columns)] };
        agrees(&|size| softmax(size, columns as u32), &Grids::Workgroups(rows), &case);
    }
    // Rows with what is not finite.
    let x =
        [[1.0, f32::INFINITY, 2.0], [f32::NAN, 1.0, 2.0], [f32::NEG_INFINITY; 3], [f32::NAN; 3], [f32::NEG_INFINITY, 0.0, 0.0]];
    let y: Vec<f32> = x.iter().flat_map(|row| softmax_on_cpu(row)).collect();
    let inputs = vec![f32s(x.as_flattened())];
    let case = Case { name: "not finite".into(), inputs, outputs: vec![f32s(&y)], counts: vec![("y", 15)] };
    agrees(&|size| softmax(size, 3), &Grids::Workgroups(5), &case);
}

#[test]
fn layer_norms() {
    let mut random = Random(13);
    for (rows, columns) in SHAPES.into_iter().chain([(3, 0)]) {
        let (x, gain, bias) = (random.f32s(rows * columns), random.f32s(columns), random.f32s(columns));
        let y: Vec<f32> = x.chunks(columns.max(1)).flat_map(|row| layer_norm_on_cpu(row, &gain, &bias, 1e-5)).collect();
        let case = Case {
            name: format!("{rows} x {columns}"),
            inputs: vec![f32s(&x), f32s(&gain), f32s(&bias)],
            outputs: vec![f32s(&y)],
            counts: vec![("y", rows * columns)],
        };
        agrees(&|size| layer_norm(size, 1e-5), &Grids::Workgroups(rows), &case);
    }
    // A row without deviation, and no epsilon: 0 / 0.
    let y = layer_norm_on_cpu(&[3.0; 4], &[1.0; 4], &[0.0; 4], 0.0);
    assert!(y.iter().all(|y| y.is_nan()));
    let inputs = vec![f32s(&[3.0; 4]), f32s(&[1.0; 4]), f32s(&[0.0; 4])];
    let case = Case { name: "no deviation".into(), inputs, outputs: vec![f32s(&y)], counts: vec![("y", 4)] };
    agrees(&|size| layer_norm(size, 0.0), &Grids::Workgroups(1), &case);
}

#[test]
fn quantised_dots() {
    let mut random = Random(14);
    for stored in Quantised::ALL {
        for (rows, columns, block) in [(0, 3usize, 32), (1, 0, 4), (3, 1, 32), (2, 37, 8), (4, 64, 64), (1, 600, 2), (3, 129, 32)]
        {
            let blocks = columns.div_ceil(block);
            // Every pattern, but few NaNs and infinities, which would hide the rest.
            let mut weights = random.bytes(stored.bytes(rows * columns));
            if stored != Quantised::Nf4 && columns != 64 {
                weights.iter_mut().for_each(|w| *w &= 0xBF);
            }
            let (scales, x) = (random.f32s(rows * blocks), random.f32s(columns));
            let y = quantised_dot_on_cpu(stored, block, &weights, &scales, &x, rows);
            let case = Case {
                name: format!("{rows} x {columns} {stored:?} in blocks of {block}"),
                inputs: vec![weights, f32s(&scales), f32s(&x)],
                outputs: vec![f32s(&y)],
                counts: vec![("y", rows)],
            };
            agrees(&|size| quantised_dot(size, stored, block as u32), &Grids::Workgroups(rows), &case);
        }
    }
}

#[test]
fn transforms() {
    let mut random = Random(15);
    for direction in [Direction::Forward, Direction::Backward] {
        for (rows, points) in [(0, 8), (3, 1), (2, 2), (3, 4), (2, 8), (1, 64), (2, 128), (1, 1024)] {
            let x: Vec<[f32; 2]> = random.f32s(rows * points * 2).chunks(2).map(|pair| [pair[0], pair[1]]).collect();
            let y: Vec<[f32; 2]> = x.chunks(points).flat_map(|row| fft_on_cpu(row, direction)).collect();
            let case = Case {
                name: format!("{rows} x {points}, {direction:?}"),
                inputs: vec![f32s(x.as_flattened())],
                outputs: vec![f32s(y.as_flattened())],
                counts: vec![("y", rows * points)],
            };
            agrees(&|size| fft(size, points as u32, direction), &Grids::Workgroups(rows), &case);
        }
    }
}

#[test]
fn largest_of_rows() {
    let mut random = Random(16);
    for (n, (rows, columns)) in SHAPES.into_iter().chain([(2, 0)]).enumerate() {
        for k in [1, 2, 5, 37, 300] {
            let x: Vec<u32> = match (n + k) % 4 {
                0 => random.u32s(rows * columns),
                1 => (0..rows * columns).map(|_| random.below(3)).collect(),
                2 => (0..rows * columns).map(|n| u32::MAX - n as u32).collect(),
                _ => (0..rows * columns).map(|n| (n as u32) << 12 | 0x8000_0000).collect(),
            };
            let row = |row: usize| top_k_on_cpu(&x[row * columns..][..columns], k);
            let (values, indices): (Vec<_>, Vec<_>) = (0..rows).map(row).unzip();
            let case = Case {
                name: format!("{k} of {rows} x {columns}"),
                inputs: vec![u32s(&x)],
                outputs: vec![u32s(&values.concat()), u32s(&indices.concat())],
                counts: vec![("values", rows * k), ("indices", rows * k)],
            };
            agrees(&|size| top_k(size, columns as u32, k as u32), &Grids::Workgroups(rows), &case);
        }
    }
}
