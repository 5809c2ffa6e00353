//! Compositions over matrices, grids of cells and graphs.

mod support;

use support::{Case, Grids, Random, agrees, f32s, u32s};
use vyre_ops::graph::{bfs_step, bfs_step_on_cpu};
use vyre_ops::matrix::{matmul, matmul_on_cpu, matmul_tile};
use vyre_ops::stencil::{stencil, stencil_on_cpu};

#[test]
fn products() {
    let mut random = Random(17);
    for [m, inner, n] in [[1, 1, 1], [1, 0, 2], [2, 3, 4], [8, 16, 8], [9, 17, 7], [5, 40, 37], [17, 33, 19], [1, 5, 80]] {
        let (a, b) = (random.f32s(m * inner), random.f32s(inner * n));
        let c = matmul_on_cpu([m, inner, n], &a, &b);
        let case = Case {
            name: format!("{m} x {inner} times {inner} x {n}"),
            inputs: vec![u32s(&[m as u32, inner as u32, n as u32]), f32s(&a), f32s(&b)],
            outputs: vec![f32s(&c)],
            counts: vec![("c", m * n)],
        };
        let grid = |size: u32, case: &Case| {
            let word = |n: usize| u32::from_le_bytes(case.inputs[0][n * 4..][..4].try_into().expect("four bytes"));
            let [high, wide] = matmul_tile([size, 1, 1]);
            [word(2).div_ceil(wide), word(0).div_ceil(high)]
        };
        agrees(&matmul, &Grids::Rectangle(grid), &case);
    }
}

#[test]
fn stencils() {
    let mut random = Random(18);
    for (width, height) in [(1, 1), (1, 9), (9, 1), (2, 2), (37, 3), (8, 32), (16, 17), (64, 9)] {
        let weights: [f32; 9] = std::array::from_fn(|_| random.f32s(1)[0]);
        let cells = random.f32s(width * height);
        let next = stencil_on_cpu(width, &weights, &cells);
        let case = Case {
            name: format!("{width} x {height}"),
            inputs: vec![u32s(&[width as u32]), f32s(&weights), f32s(&cells)],
            outputs: vec![f32s(&next)],
            counts: vec![("next", cells.len())],
        };
        agrees(&stencil, &Grids::Invocations(cells.len()), &case);
    }
}

#[test]
fn steps_of_a_search() {
    let mut random = Random(19);
    for (vertices, edges) in [(0, 0), (1, 1), (31, 60), (32, 40), (33, 300), (257, 700), (600, 2000)] {
        let words = usize::div_ceil(vertices, 32);
        let mut offsets: Vec<u32> = (0..vertices).map(|_| random.below(edges as u32 + 1)).chain([0, edges as u32]).collect();
        offsets.sort_unstable();
        offsets.truncate(vertices + 1);
        // Some edges lead to vertices that there are not.
        let targets: Vec<u32> = (0..edges).map(|_| random.below(vertices as u32 + 3)).collect();
        let mut frontier: Vec<u32> = random.u32s(words).iter().map(|bits| bits & random.u32()).collect();
        let mut seen = frontier.clone();
        for step in 0..3 {
            let next = bfs_step_on_cpu(&offsets, &targets, &frontier, &seen);
            let case = Case {
                name: format!("step {step} on {vertices} vertices"),
                inputs: vec![u32s(&offsets), u32s(&targets), u32s(&frontier), u32s(&seen)],
                outputs: vec![u32s(&next)],
                counts: vec![("next", words)],
            };
            agrees(&bfs_step, &Grids::Invocations(vertices), &case);
            seen.iter_mut().zip(&next).for_each(|(seen, next)| *seen |= next);
            frontier = next;
        }
    }
}

/// Offsets that fall, edges past the end, and sets of different lengths.
#[test]
fn a_graph_that_is_none() {
    let mut random = Random(20);
    for _ in 0..8 {
        let offsets: Vec<u32> = (0..70).map(|_| random.below(60)).collect();
        let targets: Vec<u32> = (0..40).map(|_| if random.below(4) == 0 { random.u32() } else { random.below(70) }).collect();
        let (frontier, seen) = (random.u32s(2), random.u32s(1));
        let next = bfs_step_on_cpu(&offsets, &targets, &frontier, &seen);
        let case = Case {
            name: "hostile".into(),
            inputs: vec![u32s(&offsets), u32s(&targets), u32s(&frontier), u32s(&seen)],
            outputs: vec![u32s(&next)],
            counts: vec![("next", 2)],
        };
        agrees(&bfs_step, &Grids::Invocations(69), &case);
    }
}
