//! Every function of the library on every device at hand, against `vyre-scalar`.
//!
//! The short form takes boundary values and random patterns of several kinds. `VYRE_LONG=1` takes all 2³² operands of the ops that have
//! one, on the first device; `VYRE_LONG=exp,log` only those of these names.

mod device;
mod pow;
mod probes;
mod vectors;

use device::{DEVICES, Gpu};
use std::time::Instant;
use vyre_emit::floats::kernel::{Job, Operands, WORKGROUP, constants, kernel};
use vyre_emit::floats::samples::Samples;
use vyre_emit::floats::{FloatOp, FloatProfile, LadderOp, Library, Rung};
use vyre_spec::{BinaryOp, FloatMode, UnaryOp};

/// Cases that one dispatch has at most.
const BATCH: usize = 1 << 20;

/// Compares the results of one dispatch with their meaning.
fn compare(gpu: &Gpu, op: FloatOp, mode: FloatMode, wgsl: &str, inputs: &[u32], words: (usize, usize), what: &str) {
    let count = inputs.len() / words.0;
    let job = Job {
        wgsl: wgsl.to_owned(),
        inputs: inputs.to_vec(),
        outputs: count * words.1,
        constants: constants(),
        workgroups: (count as u32).div_ceil(WORKGROUP),
    };
    let outputs = gpu.run(&job);
    for (operands, result) in inputs.chunks(words.0).zip(outputs.chunks(words.1)) {
        let expected = &op.meaning(mode, operands)[..words.1];
        assert!(
            result == expected,
            "{op:?} in {mode} on {}, {what}: {operands:08x?} gives {result:08x?}, not {expected:08x?}",
            gpu.name
        );
    }
}

fn listed(gpu: &Gpu, op: FloatOp, mode: FloatMode, profile: FloatProfile, count: usize, what: &str) {
    let wgsl = kernel(op, mode, profile, Operands::Listed).expect("it is an op of the library");
    let words = op.words().expect("it is an op of the library");
    let mut samples = Samples::many(words.0);
    let mut left = count;
    while left > 0 {
        let inputs = samples.operands(op, mode, left.min(BATCH));
        compare(gpu, op, mode, &wgsl, &inputs, words, what);
        left -= left.min(BATCH);
    }
}

#[test]
fn integers_alone_give_the_meaning_of_every_op() {
    for name in DEVICES {
        let gpu = Gpu::open(name);
        for op in FloatOp::all() {
            for mode in FloatMode::ALL {
                listed(&gpu, op, mode, FloatProfile::INTEGER, 1 << 16, "integers only");
            }
        }
    }
}

/// What corrects division and square root is right wherever the device's own are close, which they are on all devices here.
#[test]
fn corrected_division_and_square_root_are_exact() {
    let mut profile = FloatProfile::INTEGER;
    for mode in FloatMode::ALL {
        profile.set(mode, LadderOp::Div, Rung::Corrected);
        profile.set(mode, LadderOp::Sqrt, Rung::Corrected);
    }
    for name in DEVICES {
        let gpu = Gpu::open(name);
        for mode in FloatMode::ALL {
            for op in [FloatOp::Binary(BinaryOp::Div), FloatOp::Unary(UnaryOp::Sqrt)] {
                listed(&gpu, op, mode, profile, 1 << 20, "corrected");
            }
        }
    }
}

/// All operands of the ops that have one, or 64 stretches of them.
#[test]
fn operands_of_every_op_of_one_in_order() {
    let long = std::env::var("VYRE_LONG").ok();
    let gpu = Gpu::open(DEVICES[0]);
    for op in FloatOp::all().filter(|op| op.words().is_some_and(|(operands, _)| operands == 1)) {
        let name = Library::new(FloatMode::Ieee, FloatProfile::INTEGER).function(op).expect("it is an op of the library");
        let chosen = |which: &String| which == "1" || which.split(',').any(|part| name.strip_prefix("vy_") == Some(part));
        let all = long.as_ref().is_some_and(chosen);
        let (_, width) = op.words().expect("it is an op of the library");
        let length = if all { BATCH } else { 1 << 12 };
        for mode in FloatMode::ALL {
            let start = Instant::now();
            let wgsl = kernel(op, mode, FloatProfile::INTEGER, Operands::Counted).expect("it is an op of the library");
            for first in (0..=u32::MAX).step_by(if all { BATCH } else { 1 << 26 }) {
                let job = Job {
                    wgsl: wgsl.clone(),
                    inputs: vec![first],
                    outputs: length * width,
                    constants: constants(),
                    workgroups: length as u32 / WORKGROUP,
                };
                for (pattern, result) in (first..).zip(gpu.run(&job).chunks(width)) {
                    let operand = op.operand(mode, pattern);
                    let expected = &op.meaning(mode, &[operand])[..width];
                    assert!(result == expected, "{name} in {mode}: {operand:08x} gives {result:08x?}, not {expected:08x?}");
                }
            }
            if all {
                println!("{name} in {mode}: all 2^32 operands on {}, {:.0?}", gpu.name, start.elapsed());
            }
        }
    }
}
