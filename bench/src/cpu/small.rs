//! What small dispatches cost: 64 elements of a pipeline that is warm, and the first dispatch of a process.

use super::clock;
use super::table::Single;
use std::hint::black_box;
use std::num::NonZero;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use vyre::cpu::{Options, cpu_device};
use vyre::device::backend;
use vyre::{DispatchConfig, VyreBackend, pipeline};

/// The command that a fresh process is started with.
pub const FIRST: &str = "first-dispatch";

const XOR: &str = include_str!("../../kernels/xor.vyre");
const ELEMENTS: usize = 64;
const CALLS: u32 = 1000;
const ROUNDS: usize = 200;
const PROCESSES: usize = 20;

/// A pipeline on so many threads, as many as there are if nothing is said, and its inputs.
fn ready(threads: Option<NonZero<u32>>) -> (Arc<dyn vyre::CompiledPipeline>, [[u8; ELEMENTS * 4]; 2]) {
    let program = vyre::text::parse("xor", XOR).unwrap_or_else(|report| panic!("{report}"));
    let cpu: Arc<dyn VyreBackend> = Arc::from(backend(cpu_device(Options { threads, portable: false })));
    let pipeline = pipeline::compile(cpu, &program, &DispatchConfig::default()).expect("it compiles");
    (pipeline, [[7; ELEMENTS * 4], [9; ELEMENTS * 4]])
}

fn dispatch(pipeline: &dyn vyre::CompiledPipeline, inputs: &[[u8; ELEMENTS * 4]; 2], out: &mut vyre::OutputBuffers) {
    let inputs: [&[u8]; 2] = [&inputs[0], &inputs[1]];
    pipeline.dispatch_borrowed_into(&inputs, black_box(&DispatchConfig::default()), out).expect("it runs");
    assert!(out[0].len() == ELEMENTS * 4 && out[0][ELEMENTS * 4 - 1] == 7 ^ 9, "xor is wrong");
}

/// What a process that only dispatches once does, from the text of the kernel on: prints the nanoseconds of the processor that it has
/// used since it was started.
pub fn first_dispatch() {
    let (pipeline, inputs) = ready(None);
    dispatch(&*pipeline, &inputs, &mut Vec::new());
    println!("{}", clock::processor().as_nanos());
}

/// Both figures.
pub fn measure() -> Result<Vec<Single>, String> {
    let (pipeline, inputs) = ready(NonZero::new(1));
    let (mut out, mut best) = (Vec::new(), Duration::MAX);
    for _ in 0..ROUNDS {
        let start = clock::processor();
        (0..CALLS).for_each(|_| dispatch(&*pipeline, &inputs, &mut out));
        best = best.min(clock::processor() - start);
    }
    let warm = best.as_secs_f64() * 1e9 / f64::from(CALLS);
    let own = std::env::current_exe().map_err(|error| format!("the path of this program: {error}"))?;
    let mut first = f64::INFINITY;
    for _ in 0..PROCESSES {
        let output = Command::new(&own).args(["cpu", FIRST]).output().map_err(|error| format!("a fresh process: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let nanoseconds: f64 = text.trim().parse().map_err(|_| format!("a fresh process said `{text}`"))?;
        first = first.min(nanoseconds);
    }
    Ok(vec![
        Single { name: "warm dispatch of 64 elements into the caller's buffers", value: warm, unit: "ns", goal: "<= 1000" },
        Single {
            name: "a fresh process up to the end of its first dispatch, loading included",
            value: first / 1e6,
            unit: "ms",
            goal: "<= 5",
        },
    ])
}
