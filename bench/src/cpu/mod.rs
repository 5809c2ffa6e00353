//! The CPU backend beside other ways to run the same kernels on one core: vector code by hand, plain Rust, the bulk evaluator.
//!
//! All run in turn in one process that is held on one core; what counts is the fastest round of each, in time of the process. Before
//! anything is timed, every column has given the bytes of plain Rust.

mod cases;
mod clock;
#[cfg(target_arch = "x86_64")]
mod native;
mod plain;

use cases::{Case, Code, FIRST};
use std::hint::black_box;
use std::num::NonZero;
use std::sync::Arc;
use std::time::Duration;
use vyre::cpu::{Options, cpu_device};
use vyre::device::{CodeOptions, backend};
use vyre::{DispatchConfig, OutputBuffers, VyreBackend, pipeline};

/// Nothing is written by hand for other processors.
#[cfg(not(target_arch = "x86_64"))]
mod native {
    pub fn of(_: &str) -> Option<super::Code> {
        None
    }
}

/// Rounds that even the slowest column gets.
const ROUNDS: usize = 3;

/// The columns: what others are compared with comes first.
const COLUMNS: [&str; 4] = ["by hand", "cpu", "plain Rust", "bulk"];

/// A way to run a kernel into the output.
type Run<'a> = Box<dyn FnMut(&mut OutputBuffers) + 'a>;

/// What was measured of a kernel.
struct Row {
    name: &'static str,
    size: &'static str,
    /// In the order of the columns; nothing where one is missing.
    times: Vec<Option<Duration>>,
    /// What it takes to compile it for the cpu.
    compile: Duration,
    /// How the cpu ran it.
    lowering: String,
}

/// `vyre-bench cpu [--seconds S] [KERNEL…]`.
pub fn command(args: &[String]) -> Result<(), String> {
    let mut seconds = 2.0;
    let mut wanted: Vec<&str> = Vec::new();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--seconds" => {
                let value = args.next().ok_or("--seconds needs a number")?;
                seconds = value.parse().map_err(|_| format!("--seconds needs a number, found `{value}`"))?;
            }
            flag if flag.starts_with('-') => return Err(format!("no option `{flag}`; there is --seconds")),
            name => wanted.push(name),
        }
    }
    let names = cases::ALL.map(|(name, _)| name);
    if let Some(unknown) = wanted.iter().find(|wanted| !names.contains(wanted)) {
        return Err(format!("no kernel `{unknown}`; there are {}", names.join(", ")));
    }
    let pinned = clock::pin();
    println!(
        "one core{}, ms of the process, fastest round; x: by hand = 1",
        if pinned.is_some() { "" } else { " (not held on it: the system does not offer it)" }
    );
    println!(
        "{:<12} {:<16} {:>17} {:>17} {:>17} {:>17} {:>11}  lowering",
        "", "", COLUMNS[0], COLUMNS[1], COLUMNS[2], COLUMNS[3], "compile, us"
    );
    let mut rows = Vec::new();
    for (number, (name, case)) in cases::ALL.into_iter().enumerate() {
        if wanted.is_empty() || wanted.contains(&name) {
            let row = measure(&case(name), seconds);
            print_row(&row);
            rows.push((number, row));
        }
    }
    means(&rows);
    Ok(())
}

/// Runs every column of one kernel.
fn measure(case: &Case, seconds: f64) -> Row {
    let inputs = case.bytes();
    let words: Vec<&[u32]> = case.inputs.iter().map(Vec::as_slice).collect();
    let device = cpu_device(Options { threads: NonZero::new(1), portable: false });
    let kernel = case.program.validated().unwrap_or_else(|report| panic!("{report}")).kernel();
    let mut compile = Duration::MAX;
    for _ in 0..200 {
        let start = clock::processor();
        drop(black_box(device.compile(black_box(kernel), &CodeOptions::default()).expect("it compiles")));
        compile = compile.min(clock::processor() - start);
    }
    let cpu: Arc<dyn VyreBackend> = Arc::from(backend(device));
    let bulk: Arc<dyn VyreBackend> = Arc::from(vyre::backend::registry::acquire("bulk").expect("it is built in"));
    let compiled = |backend: Arc<dyn VyreBackend>| pipeline::compile(backend, &case.program, &case.config).expect("it compiles");
    let (cpu, bulk) = (compiled(cpu), compiled(bulk));
    let nothing = DispatchConfig::default();
    let lowering = cpu
        .dispatch_borrowed_timed(&inputs, &nothing)
        .expect("it runs")
        .ran
        .map_or_else(String::new, |ran| ran.lowering.to_string());
    let words = &words;
    let function = |code: Code| -> Run<'_> { Box::new(move |outputs| code(words, bytemuck::cast_slice_mut(&mut outputs[0]))) };
    let mut columns: [Option<Run<'_>>; 4] = [
        native::of(case.name).map(function),
        Some(Box::new(|outputs| cpu.dispatch_borrowed_into(&inputs, &nothing, outputs).expect("it runs"))),
        Some(function(case.plain)),
        Some(Box::new(|outputs| bulk.dispatch_borrowed_into(&inputs, &nothing, outputs).expect("it runs"))),
    ];
    let mut expected = vec![0; case.output];
    (case.plain)(words, &mut expected);
    let mut outputs: OutputBuffers = vec![vec![0; case.output * 4]];
    for (name, run) in COLUMNS.iter().zip(&mut columns) {
        // What the column before left must not pass for its own.
        outputs[0].fill(0xA5);
        let Some(run) = run else { continue };
        run(&mut outputs);
        assert!(outputs[0] == bytemuck::cast_slice::<u32, u8>(&expected), "{}: {name} differs from plain Rust", case.name);
    }
    let times = interleaved(&mut columns, &mut outputs, seconds);
    drop(columns);
    Row { name: case.name, size: case.size, times, compile, lowering }
}

/// The fastest round of each column, run in turn. No column takes more than its share of the time, unless it would get too few rounds.
fn interleaved(columns: &mut [Option<Run<'_>>], outputs: &mut OutputBuffers, seconds: f64) -> Vec<Option<Duration>> {
    let share = Duration::from_secs_f64(seconds / columns.len() as f64);
    let mut best: Vec<Option<Duration>> = columns.iter().map(|_| None).collect();
    let mut used = vec![Duration::ZERO; columns.len()];
    for round in 0.. {
        let mut any = false;
        for ((run, best), used) in columns.iter_mut().zip(&mut best).zip(&mut used) {
            let Some(run) = run else { continue };
            if round >= ROUNDS && *used >= share {
                continue;
            }
            let start = clock::processor();
            run(black_box(outputs));
            let time = clock::processor() - start;
            *used += time;
            *best = Some(best.map_or(time, |best| best.min(time)));
            any = true;
        }
        if !any {
            break;
        }
    }
    best
}

/// How many times as long as by hand.
fn ratio(row: &Row, column: usize) -> Option<f64> {
    Some(row.times[column]?.as_secs_f64() / row.times[0]?.as_secs_f64())
}

fn print_row(row: &Row) {
    print!("{:<12} {:<16}", row.name, row.size);
    for (column, time) in row.times.iter().enumerate() {
        let time = time.map_or_else(|| "-".into(), |time| format!("{:.2}", time.as_secs_f64() * 1e3));
        let ratio = ratio(row, column).map_or_else(String::new, |ratio| format!("x{ratio:.2}"));
        print!(" {time:>9} {ratio:>7}");
    }
    println!(" {:>11.0}  {}", row.compile.as_secs_f64() * 1e6, row.lowering);
}

/// Geometric means of the first kernels and of the others, where all of them were measured.
fn means(rows: &[(usize, Row)]) {
    let first: Vec<&Row> = rows.iter().filter(|(number, _)| *number < FIRST).map(|(_, row)| row).collect();
    let others: Vec<&Row> = rows.iter().filter(|(number, _)| *number >= FIRST).map(|(_, row)| row).collect();
    for (name, rows) in [("the first six", first), ("the others", others)] {
        if rows.len() < FIRST {
            continue;
        }
        print!("{:<29}", format!("geomean of {name}"));
        for column in 0..COLUMNS.len() {
            let ratios: Vec<f64> = rows.iter().filter_map(|row| ratio(row, column)).collect();
            let mean = (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp();
            let text = if ratios.len() == rows.len() { format!("x{mean:.2}") } else { "-".into() };
            print!(" {text:>17}");
        }
        println!();
    }
}
