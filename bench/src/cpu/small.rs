//! What small things cost: 64 elements of a pipeline that is warm, the first dispatch of a process, looking whether to stop.

use super::clock;
use super::table::Single;
use std::hint::black_box;
use std::num::NonZero;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use vyre::cpu::faults::Fault;
use vyre::cpu::{Options, cpu_device, eager_cpu_device, faulty_cpu_device};
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

/// A loop of which nobody knows how long it is, with as little in it as loops have.
const LOOP: &str = "program rounds {
  workgroup 64
  buffer n: read u32 @0
  buffer out: output u32[4096] @1
  let x = gid.x
  for k in 0..n[0] {
    x = (x ^ k) * 2654435761
  }
  out[gid.x] = x
}
";

/// How much longer a loop takes that looks in every iteration whether it is to stop, in percent: one after the other, the fastest of each.
fn polls() -> f64 {
    let program = vyre::text::parse("rounds", LOOP).unwrap_or_else(|report| panic!("{report}"));
    let options = Options { threads: NonZero::new(1), portable: false };
    let devices = [eager_cpu_device(options), faulty_cpu_device(options, Fault::NeverStops)];
    let pipelines = devices.map(|device| {
        let cpu: Arc<dyn VyreBackend> = Arc::from(backend(device));
        pipeline::compile(cpu, &program, &DispatchConfig::default()).expect("it compiles")
    });
    let mut best = [Duration::MAX; 2];
    let mut out = Vec::new();
    for _ in 0..ROUNDS {
        for (pipeline, best) in pipelines.iter().zip(&mut best) {
            let start = clock::processor();
            pipeline
                .dispatch_borrowed_into(&[&10_000u32.to_le_bytes()], black_box(&DispatchConfig::default()), &mut out)
                .expect("it runs");
            *best = (*best).min(clock::processor() - start);
        }
    }
    (best[0].as_secs_f64() / best[1].as_secs_f64() - 1.0) * 100.0
}

/// All figures.
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
        Single { name: "looking in every iteration of a loop whether to stop", value: polls(), unit: "%", goal: "<= 1" },
    ])
}
