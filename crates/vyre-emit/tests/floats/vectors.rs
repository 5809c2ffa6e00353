//! The elementary functions on the vectors of MPFR that `vyre-scalar` has: the hardest to round that exist, boundary and special values.

use crate::device::{DEVICES, Gpu};
use std::collections::BTreeMap;
use vyre_emit::floats::kernel::{Job, Operands, WORKGROUP, constants, kernel};
use vyre_emit::floats::{FloatOp, FloatProfile};
use vyre_spec::{BinaryOp, FloatMode, UnaryOp};

const VECTORS: &str = include_str!("../../../vyre-scalar/tests/data/vectors.txt");

fn op(name: &str) -> FloatOp {
    match UnaryOp::from_mnemonic(name) {
        Some(op) => FloatOp::Unary(op),
        None => FloatOp::Binary(BinaryOp::from_mnemonic(name).unwrap_or_else(|| panic!("no function `{name}`"))),
    }
}

#[test]
fn elementary_functions_equal_mpfr_on_the_vectors() {
    // Of each function the operands, and what they give.
    let mut functions: BTreeMap<&str, (Vec<u32>, Vec<u32>)> = BTreeMap::new();
    let mut name = "";
    for line in VECTORS.lines().filter(|line| !line.starts_with('#')) {
        if !line.contains(' ') {
            name = line;
            continue;
        }
        let mut words: Vec<u32> = line.split(' ').map(|word| u32::from_str_radix(word, 16).expect("hexadecimal words")).collect();
        let (inputs, expected) = functions.entry(name).or_default();
        expected.extend(words.pop());
        inputs.extend(words.into_iter().map(|word| op(name).operand(FloatMode::Ieee, word)));
    }
    assert_eq!(functions.len(), 11);
    for device in DEVICES {
        let gpu = Gpu::open(device);
        for (name, (inputs, expected)) in &functions {
            let job = Job {
                wgsl: kernel(op(name), FloatMode::Ieee, FloatProfile::INTEGER, Operands::Listed).expect("it is in the library"),
                inputs: inputs.clone(),
                outputs: expected.len(),
                constants: constants(),
                workgroups: (expected.len() as u32).div_ceil(WORKGROUP),
            };
            let width = inputs.len() / expected.len();
            for ((operands, expected), result) in inputs.chunks(width).zip(expected).zip(gpu.run(&job)) {
                assert_eq!(result, *expected, "{name}({operands:08x?}) on {device}: {result:08x}, not {expected:08x}");
            }
        }
    }
}
