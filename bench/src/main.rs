//! Measures what the figures are about, as ratios within one run.
//!
//! `cargo run --release -p vyre-bench` runs the candidates in turn, round after round, and keeps each one's fastest round: whatever
//! else the machine does meets all of them alike. Nothing here is asserted; the numbers are for people.

#[cfg(unix)]
mod campaign;
mod conform;
mod cpu;
mod driver;
mod evidence;
mod fuzz;
mod kernels;
mod middle;
mod mutants;
#[cfg(feature = "wgpu")]
mod wgpu;

use kernels::{Workload, workloads};
use std::hint::black_box;
use std::time::{Duration, Instant};
use vyre::ir::Program;
use vyre::launch::plan;
use vyre::reference::bulk::Bulk;
use vyre::reference::checked::{Effort, Verdict, check};
use vyre::reference::{Limits, Options, run};
use vyre::wire::from_wire;

/// At least so many rounds are run, and more for as long as this takes.
const ROUNDS: usize = 5;
const ENOUGH: Duration = Duration::from_millis(500);

/// The fastest of several rounds of each candidate, run in turn.
fn interleaved<const N: usize>(mut candidates: [&mut dyn FnMut(); N]) -> [Duration; N] {
    let mut best = [Duration::MAX; N];
    let (mut rounds, start) = (0, Instant::now());
    while rounds < ROUNDS || start.elapsed() < ENOUGH {
        rounds += 1;
        for (candidate, best) in candidates.iter_mut().zip(&mut best) {
            let start = Instant::now();
            candidate();
            *best = (*best).min(start.elapsed());
        }
    }
    best
}

fn nanoseconds(time: Duration, elements: usize) -> f64 {
    time.as_secs_f64() * 1e9 / elements as f64
}

fn main() {
    // `vyre-bench profile NAME` runs one thing many times, for a profiler to look at: the bulk evaluator on a kernel, or the decoder.
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [command, name] = args.as_slice()
        && command == "profile"
    {
        return profile(name);
    }
    // `vyre-bench cpu` compares the CPU backend with others; it has options of its own.
    if let Some((command, args)) = args.split_first()
        && command == "cpu"
    {
        if let Err(mistake) = cpu::command(args) {
            eprintln!("{mistake}");
            std::process::exit(2);
        }
        return;
    }
    // `vyre-bench written` compares it with straightforward Rust on other kernels.
    #[cfg(target_arch = "x86_64")]
    if let Some((command, names)) = args.split_first()
        && command == "written"
    {
        return cpu::written::command(names);
    }
    if let [command] = args.as_slice()
        && command == "worker"
    {
        return fuzz::worker();
    }
    // `vyre-bench NAME …` measures these alone.
    let parts: Vec<(&str, fn())> = vec![
        ("bulk", evaluators),
        ("checked", checked_against_plain),
        ("xor", xor_against_native),
        ("programs", programs),
        ("middle", middle::figures),
        ("driver", driver::figures),
        ("fuzz", fuzz::figures),
        ("isolation", fuzz::isolation),
        ("mutants", mutants::figures),
        ("conform", conform::figures),
        ("sweeps", conform::sweeps),
        ("evidence", evidence::evidence),
        #[cfg(unix)]
        ("campaign", campaign::figures),
        #[cfg(feature = "wgpu")]
        ("wgpu", wgpu::figures),
    ];
    if let Some(unknown) = args.iter().find(|arg| !parts.iter().any(|(name, _)| arg == name)) {
        let known: Vec<&str> = parts.iter().map(|(name, _)| *name).collect();
        eprintln!("nothing here is called `{unknown}`; there are cpu, written, {}", known.join(", "));
        std::process::exit(2);
    }
    for (name, part) in parts {
        // Sweeps take a quarter of an hour, and campaigns need PostgreSQL.
        if args.is_empty() && !["sweeps", "campaign"].contains(&name) || args.iter().any(|arg| arg == name) {
            part();
        }
    }
}

fn profile(name: &str) {
    for (wanted, program) in [("wire", kernels::hundred()), ("wire-large", kernels::thousands())] {
        if name == wanted {
            let wire = vyre::wire::to_wire(&program).expect("it is not deep");
            (0..(1 << 28) / wire.len()).for_each(|_| drop(black_box(from_wire(black_box(&wire)).expect("it decodes"))));
        }
    }
    for Workload { program, inputs, config, elements, .. } in workloads(1 << 16).into_iter().filter(|work| work.name == name) {
        let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
        let sizes: Vec<u64> = inputs.iter().map(|bytes| bytes.len() as u64).collect();
        let mut bulk = Bulk::new(program.validated().expect("the kernels are valid").kernel());
        let launch = plan(&program, &sizes, &config).expect("the launches are fine");
        let mut out = Vec::new();
        for _ in 0..20 {
            let [time] = interleaved([&mut || bulk.run_into(&launch, &inputs, Limits::NONE, &mut out).expect("it runs")]);
            println!("{name}: {:.2} ns/element", nanoseconds(time, elements));
        }
    }
}

/// Plain against bulk on six kernels.
fn evaluators() {
    println!("{:<12} {:>14} {:>14} {:>8}   goal: bulk >= 20 x plain", "ns/element", "plain", "bulk", "x");
    for Workload { name, program, inputs, config, elements } in workloads(1 << 16) {
        let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
        let sizes: Vec<u64> = inputs.iter().map(|bytes| bytes.len() as u64).collect();
        let mut bulk = Bulk::new(program.validated().expect("the kernels are valid").kernel());
        let launch = plan(&program, &sizes, &config).expect("the launches are fine");
        let options = Options { launch: config, fuel: u64::MAX, ..Options::default() };
        let mut out = Vec::new();
        let [plain, fast] =
            interleaved([&mut || drop(black_box(run(&program, &inputs, &options).expect("it runs"))), &mut || {
                bulk.run_into(&launch, &inputs, Limits::NONE, &mut out).expect("it runs")
            }]);
        assert!(out == run(&program, &inputs, &options).expect("it runs"), "{name}: the evaluators disagree");
        println!(
            "{name:<12} {:>14.1} {:>14.2} {:>8.1}",
            nanoseconds(plain, elements),
            nanoseconds(fast, elements),
            plain.as_secs_f64() / fast.as_secs_f64()
        );
    }
}

/// What it costs to be told about races and orders, with the effort that `vyre check --checked` makes. One run over shadow memory
/// settles it for most kernels; atomics whose order may show are the dear case, where other schedules have to be tried too.
fn checked_against_plain() {
    println!(
        "\n{:<12} {:>10} {:>14} {:>14} {:>10} {:>20}   goal: checked <= 20 x plain",
        "checked", "plain, ns", "observed, x", "checked, x", "schedules", "x per schedule"
    );
    for Workload { name, program, inputs, config, elements } in workloads(1 << 9).into_iter().chain(kernels::atomics(1 << 9)) {
        let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
        let options = Options { launch: config, ..Options::default() };
        let (effort, once) = (Effort::default(), Effort { schedules: Vec::new(), executions: 0, ..Effort::default() });
        let report = check(&program, &inputs, &options, &effort).expect("it runs");
        assert!(report.verdict == Verdict::Deterministic, "{name}: {}", report.verdict);
        let times = interleaved([
            &mut || drop(black_box(run(&program, &inputs, &options).expect("it runs"))),
            &mut || drop(black_box(check(&program, &inputs, &options, &once).expect("it runs"))),
            &mut || drop(black_box(check(&program, &inputs, &options, &effort).expect("it runs"))),
        ]);
        let [plain, observed, checked] = times.map(|time| nanoseconds(time, elements));
        let schedules = report.schedules_tried;
        println!(
            "{name:<12} {plain:>10.1} {:>14.2} {:>14.2} {schedules:>10} {:>20.2}",
            observed / plain,
            checked / plain,
            checked / plain / schedules as f64
        );
    }
    every_order();
}

/// For small dispatches every order of atomics is tried, which costs as much as there are orders.
fn every_order() {
    let Workload { program, config, .. } = kernels::atomics(64).swap_remove(1);
    for waiting in [2, 4, 5, 6] {
        // A 0 draws a ticket, a 1 does not.
        let input: Vec<u8> = (0..64).flat_map(|i| u32::from(i >= waiting).to_le_bytes()).collect();
        let options = Options { launch: config.clone(), ..Options::default() };
        let report = check(&program, &[&input], &options, &Effort::default()).expect("it runs");
        let [plain, checked] =
            interleaved([&mut || drop(black_box(run(&program, &[&input], &options).expect("it runs"))), &mut || {
                drop(black_box(check(&program, &[&input], &options, &Effort::default()).expect("it runs")))
            }]);
        println!(
            "{waiting} of 64 draw tickets: {} executions{}, {:.2} ms, {:.2} x plain each",
            report.schedules_tried,
            if report.exhaustive() { ", every order" } else { "" },
            checked.as_secs_f64() * 1e3,
            checked.as_secs_f64() / plain.as_secs_f64() / report.schedules_tried as f64
        );
    }
}

/// One million elements, with a native loop as the measure.
fn xor_against_native() {
    let elements = 1 << 20;
    let Workload { program, inputs, config, .. } = workloads(elements).swap_remove(0);
    let as_words = |bytes: &[u8]| bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect::<Vec<u32>>();
    let (a, b) = (as_words(&inputs[0]), as_words(&inputs[1]));
    let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
    let sizes: Vec<u64> = inputs.iter().map(|bytes| bytes.len() as u64).collect();
    let mut bulk = Bulk::new(program.validated().expect("the kernel is valid").kernel());
    let launch = plan(&program, &sizes, &config).expect("the launch is fine");
    let options = Options { launch: config, ..Options::default() };
    let mut native = vec![0u32; elements];
    let mut out = Vec::new();
    let times = interleaved([
        &mut || {
            for ((out, a), b) in native.iter_mut().zip(&a).zip(&b) {
                *out = a ^ b;
            }
            black_box(&mut native);
        },
        &mut || drop(black_box(run(&program, &inputs, &options).expect("it runs"))),
        &mut || bulk.run_into(&launch, &inputs, Limits::NONE, &mut out).expect("it runs"),
    ]);
    println!("\n{:<28} {:>12} {:>10}", "xor, 1 M elements", "ns/element", "x native");
    for (name, time) in ["native Rust", "plain (goal <= 300)", "bulk (goal <= 5)"].into_iter().zip(times) {
        println!("{name:<28} {:>12.2} {:>10.1}", nanoseconds(time, elements), time.as_secs_f64() / times[0].as_secs_f64());
    }
}

/// Programs as data: the wire form and the fingerprint.
fn programs() {
    let small = kernels::hundred();
    let mut fingerprint = Duration::MAX;
    for _ in 0..20 * ROUNDS {
        let program = Program::from_parts(small.parts().clone());
        let start = Instant::now();
        black_box(program.fingerprint());
        fingerprint = fingerprint.min(start.elapsed());
    }
    println!(
        "\nfirst fingerprint of a program of {} nodes: {:.2} us (goal <= 10)",
        small.walk().count(),
        nanoseconds(fingerprint, 1000)
    );
    for program in [workloads(256).pop().expect("there are six").program, small, kernels::thousands()] {
        let wire = vyre::wire::to_wire(&program).expect("it is not deep");
        // Many short rounds: what else the machine does spoils some of them and not all.
        let many = (1 << 18) / wire.len();
        let (mut decode, mut both, mut checksum) = (Duration::MAX, Duration::MAX, Duration::MAX);
        for _ in 0..20 * ROUNDS {
            let (mut decoding, start) = (Duration::ZERO, Instant::now());
            for _ in 0..many {
                let start = Instant::now();
                let program = from_wire(black_box(&wire)).expect("it decodes");
                decoding += start.elapsed();
                drop(black_box(program));
            }
            (decode, both) = (decode.min(decoding), both.min(start.elapsed()));
            let start = Instant::now();
            (0..many).for_each(|_| _ = black_box(vyre::wire::checksum(black_box(&wire))));
            checksum = checksum.min(start.elapsed());
        }
        let rate = |time: Duration| (wire.len() * many) as f64 / time.as_secs_f64() / 1e6;
        println!(
            "wire decode of {} nodes in {} bytes: {:.0} MB/s (goal >= 100); {:.0} with the drop, the checksum alone {:.0}",
            program.walk().count(),
            wire.len(),
            rate(decode),
            rate(both),
            rate(checksum)
        );
    }
}
