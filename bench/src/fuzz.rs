//! How fast programs are made, checked and compared, on one core.

use crate::interleaved;
use std::hint::black_box;
use std::process::Command;
use std::time::Duration;
use vyre_smith::fuzz::{Config, Programs, Source, Summary, fuzz};
use vyre_smith::generate::{Preset, dna, generate};
use vyre_smith::subjects::subject;
use vyre_worker::backend::BackendSubject;
use vyre_worker::{Case, Contained, Failure, Job, Outputs, Pool, Ran, Settings, Subject, serve_judge};

const PROGRAMS: u64 = 2000;

/// What `vyre-bench worker` does: the other side of the isolated run below.
pub fn worker() {
    let make = || match (std::env::var_os(ECHO), std::env::var(BACKEND)) {
        (Some(_), _) => Box::new(Echo) as Box<dyn Subject>,
        (None, Ok(name)) => Box::new(BackendSubject::named(&name).expect("it names a backend").expect("which is there")),
        (None, Err(_)) => bulk(),
    };
    if let Err(error) = serve_judge(make) {
        eprintln!("{error}");
    }
}

fn bulk() -> Box<dyn Subject> {
    subject("bulk").expect("there is a bulk evaluator")
}

fn in_process() -> Result<Box<dyn Subject>, String> {
    Ok(Box::new(Contained::new(bulk)))
}

fn isolated() -> Result<Box<dyn Subject>, String> {
    Ok(Box::new(pool(false)?))
}

fn pool(echo: bool) -> Result<Pool, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let command = move || {
        let mut command = Command::new(&program);
        command.arg("worker");
        if echo {
            command.env(ECHO, "1");
        }
        command
    };
    Pool::start(command, Settings::default())
}

/// A pool whose worker is a backend in a form.
pub fn pool_of(backend: &str) -> Result<Pool, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let backend = backend.to_string();
    let command = move || {
        let mut command = Command::new(&program);
        command.arg("worker").env(BACKEND, &backend);
        command
    };
    Pool::start(command, Settings::default())
}

/// The backend that the worker is, if it is one.
const BACKEND: &str = "VYRE_BENCH_BACKEND";

/// Whether the worker only gives inputs back.
const ECHO: &str = "VYRE_BENCH_ECHO";

/// Gives its inputs back: what is left is what isolation costs.
struct Echo;

impl Subject for Echo {
    fn name(&self) -> &str {
        "echo"
    }

    fn run(&mut self, case: &Case) -> Result<Outputs, Failure> {
        Ok(case.inputs.clone())
    }

    fn run_in_place(&mut self, job: Job<'_, '_>) -> Result<Option<Ran>, Failure> {
        job.outputs.iter_mut().zip(job.inputs).for_each(|(output, input)| output.copy_from_slice(input));
        Ok(None)
    }
}

/// Nanoseconds that all threads of a process have had a processor.
fn cpu_ns(id: u32) -> f64 {
    let threads = std::fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten();
    let stats = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("schedstat")).ok());
    stats.filter_map(|text| text.split(' ').next()?.parse::<f64>().ok()).sum()
}

/// The processor time of a subject and its workers together for these cases, in nanoseconds.
fn cpu_of_one(subject: &mut dyn Subject, workers: &[u32], cases: &[Case]) -> f64 {
    let total = || {
        // The system counts the time of a thread when it stops.
        std::thread::sleep(Duration::from_millis(1));
        workers.iter().chain([&std::process::id()]).map(|id| cpu_ns(*id)).sum::<f64>()
    };
    let before = total();
    let answers = subject.run_batch(cases);
    assert!(answers.iter().all(|answer| answer.outcome.is_ok()), "{:?}", answers[0]);
    // As the fuzz loop does, when it has looked at them.
    subject.reuse(answers.into_iter().filter_map(|answer| answer.outcome.ok()).collect());
    total() - before
}

/// The same for several subjects in turn; the least of some rounds of each, after one that does not count.
fn cpu_of<const N: usize>(subjects: [(&mut dyn Subject, Vec<u32>); N], cases: &[Case]) -> [f64; N] {
    let mut subjects = subjects;
    let mut least = [f64::INFINITY; N];
    for round in 0..8 {
        for ((subject, workers), least) in subjects.iter_mut().zip(&mut least) {
            let time = cpu_of_one(*subject, workers, cases);
            *least = if round == 0 { f64::INFINITY } else { least.min(time) };
        }
    }
    least
}

/// What it costs that a subject runs in a process of its own.
pub fn isolation() {
    println!("\n{:<44} {:>12} {:>12}", "isolation", "measured", "goal");
    let text = "program p {\n  workgroup 64\n  buffer x: read_write u32 @0\n  x[gid.x] = x[gid.x] * 3 ^ gid.x\n}";
    let program = vyre::text::parse("p.vyre", text).expect("a program");
    let cases = |count: usize, elements: usize| -> Vec<Case> {
        (0..count).map(|n| Case::new(program.clone(), vec![vec![n as u8; 4 * elements]])).collect()
    };
    let mut echo = pool(true).expect("a worker");
    let ids = echo.process_ids();
    let (small, large) = (cases(64 * 50, 16), cases(64, 65_536));
    let [each] = cpu_of([(&mut echo, ids.clone())], &small);
    let each = each / 1e3 / small.len() as f64;
    println!("{:<44} {each:>12.2} {:>12}", "CPU µs per case of 16 elements, echo", "<= 3");
    let [all] = cpu_of([(&mut echo, ids)], &large);
    let per_second = 64.0 * 65_536.0 / all * 1e3;
    println!("{:<44} {per_second:>12.0} {:>12}", "M elements per CPU s, 65,536 a case, echo", ">= 400");
    let (mut here, mut there) = (Contained::new(bulk), pool(false).expect("a worker"));
    let ids = there.process_ids();
    let [alone, apart] = cpu_of([(&mut here, Vec::new()), (&mut there, ids)], &large);
    for (name, time) in [("in process", alone), ("isolated", apart)] {
        println!("{:<44} {:>12.1}", format!("bulk, 65,536 elements, {name}: CPU µs a case"), time / 1e3 / large.len() as f64);
    }
    // Judge and worker work at the same time, so this says something only where two processors are free.
    let run = |subject: &mut dyn Subject| {
        let answers = black_box(subject.run_batch(&large));
        subject.reuse(answers.into_iter().filter_map(|answer| answer.outcome.ok()).collect());
    };
    let [alone, apart] = interleaved([&mut || run(&mut here), &mut || run(&mut there)]);
    let ratio = apart.as_secs_f64() / alone.as_secs_f64();
    println!("{:<44} {ratio:>12.2} {:>12}", "bulk, 65,536 elements a case: time ÷ time", "<= 1.10");
}

fn rate(time: Duration, count: usize) -> f64 {
    count as f64 / time.as_secs_f64()
}

pub fn figures() {
    println!("\n{:<34} {:>12} {:>12}", "fuzzing, one core", "programs/s", "goal");
    // Programs of about 50 nodes, whatever their preset makes of their bytes.
    let size = |bytes: &[u8]| generate(Preset::Everything, bytes).program.walk().count();
    let all = (0..20_000).map(|number| dna(1, number));
    let fifty: Vec<Vec<u8>> = all.filter(|bytes| (45..=55).contains(&size(bytes))).collect();
    let made: Vec<_> = fifty.iter().map(|bytes| generate(Preset::Everything, bytes)).collect();
    let source = Programs { preset: Some(Preset::Everything), seed: 1, inputs: 1 };
    let nodes: usize = (0..PROGRAMS).map(|number| source.cases(number)[0].program.walk().count()).sum();
    let run = |make: fn() -> Result<Box<dyn Subject>, String>, inputs| -> Summary {
        let config = Config { programs: Some(PROGRAMS), ..Config::default() };
        let summary = fuzz(&Programs { inputs, ..source }, &make, &config, &mut |_| ()).expect("it goes through");
        assert!(summary.findings.is_empty() && summary.programs == PROGRAMS, "the evaluators disagree");
        summary
    };
    let [generated, validated, compared, four, apart] = interleaved([
        &mut || fifty.iter().for_each(|bytes| drop(black_box(generate(Preset::Everything, bytes)))),
        &mut || {
            for generated in &made {
                // The proof of validity is kept with a program, so this one is made of its parts again.
                let again = vyre::ir::Program::from_parts(generated.program.parts().clone());
                assert!(black_box(&again).validated().is_ok());
            }
        },
        &mut || drop(black_box(run(in_process, 1))),
        &mut || drop(black_box(run(in_process, 4))),
        &mut || drop(black_box(run(isolated, 4))),
    ]);
    let average = nodes as u64 / PROGRAMS;
    let programs = PROGRAMS as usize;
    for (name, rate, goal) in [
        ("generated, 50 nodes".to_string(), rate(generated, fifty.len()), ">= 20000"),
        ("copied and validated, 50 nodes".to_string(), rate(validated, fifty.len()), ""),
        (format!("all, bulk and plain, {average} nodes"), rate(compared, programs), ">= 3000"),
        ("all, 4 inputs each".to_string(), rate(four, programs), ""),
        ("all, 4 inputs, in a worker".to_string(), rate(apart, programs), ""),
    ] {
        println!("{name:<34} {rate:>12.0} {goal:>12}");
    }
}
