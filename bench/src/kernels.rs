//! The six kernels that every evaluator is measured on, with their inputs.

use vyre::ir::Program;
use vyre::launch::LaunchConfig;

/// A kernel and one launch of it.
pub struct Workload {
    /// What it is called in tables.
    pub name: &'static str,
    /// The kernel.
    pub program: Program,
    /// Bytes of the inputs, in order.
    pub inputs: Vec<Vec<u8>>,
    /// The launch.
    pub config: LaunchConfig,
    /// What one run is divided by: invocations.
    pub elements: usize,
}

fn words(count: usize, of: impl Fn(u32) -> u32) -> Vec<u8> {
    (0..count as u32).flat_map(|i| of(i).to_le_bytes()).collect()
}

fn hash(i: u32) -> u32 {
    let x = (i ^ i >> 16).wrapping_mul(0x7FEB_352D);
    (x ^ x >> 15).wrapping_mul(0x846C_A68B)
}

/// A float in [0, 1).
fn unit(i: u32) -> f32 {
    (hash(i) >> 8) as f32 / (1 << 24) as f32
}

/// All six, each with about this many invocations.
#[must_use]
pub fn workloads(elements: usize) -> Vec<Workload> {
    let parse = |name: &str, text: &str| vyre::text::parse(name, text).expect("the kernels parse");
    let plain = |name, text, inputs: Vec<Vec<u8>>| Workload {
        name,
        program: parse(name, text),
        inputs,
        config: LaunchConfig::default(),
        elements,
    };
    let mut all = vec![
        plain("xor", include_str!("../../examples/xor.vyre"), vec![words(elements, hash), words(elements, |i| hash(i ^ 0xFFFF))]),
        plain("mix", include_str!("../kernels/mix.vyre"), vec![words(elements, hash)]),
        plain(
            "mandelbrot",
            include_str!("../kernels/mandelbrot.vyre"),
            vec![
                words(elements, |i| (unit(i) * 3.0 - 2.0).to_bits()),
                words(elements, |i| (unit(i ^ 0xABCD) * 2.0 - 1.0).to_bits()),
            ],
        ),
        plain("reduction", include_str!("../kernels/reduction.vyre"), vec![words(elements, hash)]),
        plain(
            "dfa",
            include_str!("../kernels/dfa.vyre"),
            vec![words(elements / 4 + 16, hash), words(16 * 256, |i| hash(i) % 16)],
        ),
    ];
    for workload in &mut all {
        workload.config.grid = Some([elements.div_ceil(workload.program.workgroup_size()[0] as usize) as u32, 1, 1]);
        if workload.name == "dfa" {
            workload.config.output_counts.insert("states".into(), elements as u32);
        }
        if workload.name == "reduction" {
            workload.config.output_counts.insert("sums".into(), elements.div_ceil(256) as u32);
        }
    }
    let side = 128;
    all.push(Workload {
        name: "matmul",
        program: parse("matmul", include_str!("../kernels/matmul.vyre")),
        inputs: vec![words(side * side, |i| unit(i).to_bits()), words(side * side, |i| unit(!i).to_bits())],
        config: LaunchConfig { grid: Some([side as u32 / 16, side as u32 / 16, 1]), ..LaunchConfig::default() },
        elements: side * side,
    });
    all
}

/// A kernel whose invocations draw tickets and mark them: the same in every order, which nobody can see without trying.
#[must_use]
pub fn tickets(elements: usize) -> Workload {
    Workload {
        name: "tickets",
        program: vyre::text::parse("tickets", include_str!("../kernels/tickets.vyre")).expect("the kernel parses"),
        inputs: vec![words(elements, hash)],
        config: LaunchConfig::default(),
        elements,
    }
}
