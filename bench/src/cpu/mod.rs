//! The CPU backend beside other ways to run the same kernels on one core: vector code by hand, plain Rust, the bulk evaluator, PoCL,
//! lavapipe.
//!
//! All run in turn in one process that is held on one core; what counts is the fastest round of each, in time of the process. Before
//! anything is timed, every column has given the bytes of plain Rust. A peer that gives other bytes is not timed, and the table says so.

mod cases;
mod clock;
#[cfg(feature = "wgpu")]
mod lavapipe;
#[cfg(target_arch = "x86_64")]
mod native;
#[cfg(target_os = "linux")]
mod opencl;
mod plain;
mod plot;
mod small;
mod table;
#[cfg(target_arch = "x86_64")]
pub mod written;

use cases::{Case, Code};
use lavapipe::Lavapipe;
use opencl::OpenCl;
use std::hint::black_box;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use table::{COLUMNS, Cell, PEERS, Row, Table};
use vyre::cpu::{Options, cpu_device};
use vyre::device::{CodeOptions, backend};
use vyre::{CompiledPipeline, DispatchConfig, OutputBuffers, VyreBackend, pipeline};

/// Nothing is written by hand for other processors.
#[cfg(not(target_arch = "x86_64"))]
mod native {
    pub fn of(_: &str) -> Option<super::Code> {
        None
    }
}

/// Libraries are looked for on Linux alone.
#[cfg(not(target_os = "linux"))]
mod opencl {
    use super::cases::Case;

    /// Never there.
    pub enum OpenCl {}

    impl OpenCl {
        pub fn open() -> Result<OpenCl, String> {
            Err("not installed".into())
        }

        pub fn name(&self) -> String {
            match *self {}
        }

        pub fn prepare(&self, _: &Case) -> Result<Dispatch, String> {
            match *self {}
        }
    }

    /// Never there.
    pub enum Dispatch {}

    impl Dispatch {
        pub fn run(&self) -> Result<(), String> {
            match *self {}
        }

        pub fn output(&self) -> Result<Vec<u32>, String> {
            match *self {}
        }
    }
}

/// What runs on Vulkan is compiled only with that.
#[cfg(not(feature = "wgpu"))]
mod lavapipe {
    use super::cases::Case;

    /// Never there.
    pub enum Lavapipe {}

    impl Lavapipe {
        pub fn open() -> Result<Lavapipe, String> {
            Err("not built in".into())
        }

        pub fn name(&self) -> String {
            match *self {}
        }

        pub fn prepare(&self, _: &Case) -> Result<Dispatch, String> {
            match *self {}
        }
    }

    /// Never there.
    pub enum Dispatch {}

    impl Dispatch {
        pub fn run(&self) -> Result<(), String> {
            match *self {}
        }

        pub fn output(&self) -> Result<Vec<u32>, String> {
            match *self {}
        }
    }
}

/// Rounds that even the slowest column gets.
const ROUNDS: usize = 3;
/// Times that a kernel is compiled.
const COMPILES: usize = 200;

/// A way to run a kernel into the output, or why there is none.
type Run<'a> = Result<Box<dyn FnMut(&mut OutputBuffers) + 'a>, String>;

/// What the command line asks for.
struct Wanted {
    seconds: f64,
    json: Option<PathBuf>,
    svg: Option<PathBuf>,
    kernels: Vec<String>,
}

fn wanted(args: &[String]) -> Result<Wanted, String> {
    let mut wanted = Wanted { seconds: 2.0, json: None, svg: None, kernels: Vec::new() };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value"));
        match arg.as_str() {
            "--seconds" => {
                let text = value()?;
                let seconds = text.parse().ok().filter(|seconds| (0.0..1e6).contains(seconds));
                wanted.seconds = seconds.ok_or_else(|| format!("--seconds needs a number, found `{text}`"))?;
            }
            "--json" => wanted.json = Some(value()?.into()),
            "--svg" => wanted.svg = Some(value()?.into()),
            flag if flag.starts_with('-') => return Err(format!("no option `{flag}`; there are --seconds, --json, --svg")),
            name => wanted.kernels.push(name.to_owned()),
        }
    }
    let names = cases::ALL.map(|(name, _)| name);
    match wanted.kernels.iter().find(|kernel| !names.contains(&kernel.as_str())) {
        Some(unknown) => Err(format!("no kernel `{unknown}`; there are {}", names.join(", "))),
        None => Ok(wanted),
    }
}

/// `vyre-bench cpu [--seconds S] [--json FILE] [--svg FILE] [KERNEL…]`.
pub fn command(args: &[String]) -> Result<(), String> {
    if args == [small::FIRST] {
        small::first_dispatch();
        return Ok(());
    }
    let Wanted { seconds, json, svg, kernels } = wanted(args)?;
    let pinned = clock::pin();
    let peers = (OpenCl::open(), Lavapipe::open());
    let held = if pinned.is_some() { "held on one core" } else { "not held on one core: the system does not offer it" };
    let pocl = peers.0.as_ref().map_or_else(Clone::clone, OpenCl::name);
    let lavapipe = peers.1.as_ref().map_or_else(Clone::clone, Lavapipe::name);
    let mut table = Table { about: vec![("cores", held.into()), ("PoCL", pocl), ("lavapipe", lavapipe)], ..Table::default() };
    println!("ms of the process, fastest round; x: by hand = 1; 2 threads: speedup on the wall/time of the processor");
    table.about.iter().for_each(|(name, text)| println!("{name}: {text}"));
    table::print_header();
    let mut pinned = pinned;
    for (number, (name, case)) in cases::ALL.into_iter().enumerate() {
        if kernels.is_empty() || kernels.iter().any(|kernel| kernel == name) {
            let case = case(name);
            pinned = pinned.or_else(clock::pin);
            let mut row = measure(&case, seconds, &peers);
            row.first = number < cases::FIRST;
            // Threads need the cores.
            drop(pinned.take());
            row.two_threads = Some(two_threads(&case, seconds));
            table::print_row(&row);
            table.rows.push(row);
        }
    }
    let pinned = clock::pin();
    table.singles = small::measure()?;
    drop(pinned);
    table.print_footer();
    let write = |path: PathBuf, text: String| std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()));
    if let Some(path) = json {
        write(path, format!("{:#}\n", table.json()))?;
    }
    if let Some(path) = svg {
        write(path, plot::svg(&table))?;
    }
    Ok(())
}

fn compiled(case: &Case, backend: Arc<dyn VyreBackend>) -> Arc<dyn CompiledPipeline> {
    pipeline::compile(backend, &case.program, &case.config).expect("it compiles")
}

/// What is there only if it is installed, or why it is not.
type Peers = (Result<OpenCl, String>, Result<Lavapipe, String>);

/// A peer's dispatch as a column, if its bytes are right. It has its own memory for outputs.
fn peer<'a>(expected: &[u32], run: impl Fn() -> Result<(), String> + 'a, output: Result<Vec<u32>, String>) -> Run<'a> {
    if output? != expected {
        return Err("other bytes".into());
    }
    Ok(Box::new(move |_| run().expect("it ran before")))
}

/// Runs every column of one kernel.
fn measure(case: &Case, seconds: f64, (opencl, lavapipe): &Peers) -> Row {
    let inputs = case.bytes();
    let device = cpu_device(Options { threads: NonZero::new(1), portable: false });
    let kernel = case.program.validated().unwrap_or_else(|report| panic!("{report}")).kernel();
    let mut compile = Duration::MAX;
    for _ in 0..COMPILES {
        let start = clock::processor();
        drop(black_box(device.compile(black_box(kernel), &CodeOptions::default()).expect("it compiles")));
        compile = compile.min(clock::processor() - start);
    }
    let cpu = compiled(case, Arc::from(backend(device)));
    let bulk = compiled(case, Arc::from(vyre::backend::registry::acquire("bulk").expect("it is built in")));
    let nothing = DispatchConfig::default();
    let ran = cpu.dispatch_borrowed_timed(&inputs, &nothing).expect("it runs").ran;
    let lowering = ran.map_or_else(String::new, |ran| ran.lowering.to_string());
    let words: Vec<&[u32]> = case.inputs.iter().map(Vec::as_slice).collect();
    let words = words.as_slice();
    let function =
        |code: Code| -> Run<'_> { Ok(Box::new(move |outputs| code(words, bytemuck::cast_slice_mut(&mut outputs[0])))) };
    let mut expected = vec![0; case.output];
    (case.plain)(words, &mut expected);
    let pocl = opencl.as_ref().map_err(Clone::clone).and_then(|opencl| opencl.prepare(case)).and_then(|dispatch| {
        dispatch.run()?;
        let output = dispatch.output();
        peer(&expected, move || dispatch.run(), output)
    });
    let lavapipe = lavapipe.as_ref().map_err(Clone::clone).and_then(|lavapipe| lavapipe.prepare(case)).and_then(|dispatch| {
        dispatch.run()?;
        let output = dispatch.output();
        peer(&expected, move || dispatch.run(), output)
    });
    let mut columns: [Run<'_>; COLUMNS.len()] = [
        native::of(case.name).map_or_else(|| Err("not written".into()), function),
        Ok(Box::new(|outputs| cpu.dispatch_borrowed_into(&inputs, &nothing, outputs).expect("it runs"))),
        function(case.plain),
        Ok(Box::new(|outputs| bulk.dispatch_borrowed_into(&inputs, &nothing, outputs).expect("it runs"))),
        pocl,
        lavapipe,
    ];
    let mut outputs: OutputBuffers = vec![vec![0; case.output * 4]];
    // Peers were compared above.
    for (name, run) in COLUMNS.iter().zip(&mut columns).take(COLUMNS.len() - PEERS) {
        // What the column before left must not pass for its own.
        outputs[0].fill(0xA5);
        let Ok(run) = run else { continue };
        run(&mut outputs);
        assert!(outputs[0] == bytemuck::cast_slice::<u32, u8>(&expected), "{}: {name} differs from plain Rust", case.name);
    }
    let cells = interleaved(&mut columns, &mut outputs, seconds);
    Row { name: case.name, size: case.size, first: false, cells, compile, lowering, two_threads: None }
}

/// The fastest round of each column, run in turn. No column takes more than its share of the time, unless it would get too few rounds.
fn interleaved(columns: &mut [Run<'_>], outputs: &mut OutputBuffers, seconds: f64) -> Vec<Cell> {
    let share = Duration::from_secs_f64(seconds / columns.len() as f64);
    let mut best: Vec<Duration> = vec![Duration::MAX; columns.len()];
    let mut used = vec![Duration::ZERO; columns.len()];
    for round in 0.. {
        let mut any = false;
        for ((run, best), used) in columns.iter_mut().zip(&mut best).zip(&mut used) {
            let Ok(run) = run else { continue };
            if round >= ROUNDS && *used >= share {
                continue;
            }
            let start = clock::processor();
            run(black_box(outputs));
            let time = clock::processor() - start;
            *used += time;
            *best = time.min(*best);
            any = true;
        }
        if !any {
            break;
        }
    }
    let cells = columns.iter().zip(best).map(|(run, best)| match run {
        Ok(_) => Cell::Time(best),
        Err(why) => Cell::Missing(why.clone()),
    });
    cells.collect()
}

/// One thread against two: how many times faster on the wall, and how much of the processor two take compared with one. On a machine with
/// other work the second says more: threads that wait for a core are slow on the wall.
fn two_threads(case: &Case, seconds: f64) -> [f64; 2] {
    let inputs = case.bytes();
    let pipelines = [1, 2].map(|threads| {
        let options = Options { threads: NonZero::new(threads), portable: false };
        compiled(case, Arc::from(backend(cpu_device(options))))
    });
    let nothing = DispatchConfig::default();
    let (mut outputs, mut wall, mut processor) = (Vec::new(), [f64::INFINITY; 2], [f64::INFINITY; 2]);
    let start = Instant::now();
    for round in 0.. {
        if round >= ROUNDS && start.elapsed().as_secs_f64() >= seconds / 2.0 {
            break;
        }
        for (n, pipeline) in pipelines.iter().enumerate() {
            let (start, used) = (Instant::now(), clock::processor());
            pipeline.dispatch_borrowed_into(&inputs, &nothing, &mut outputs).expect("it runs");
            processor[n] = processor[n].min((clock::processor() - used).as_secs_f64());
            wall[n] = wall[n].min(start.elapsed().as_secs_f64());
        }
    }
    [wall[0] / wall[1], processor[1] / processor[0]]
}
