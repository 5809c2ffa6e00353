//! How fast programs are made, checked and compared, on one core.

use crate::interleaved;
use std::hint::black_box;
use std::process::Command;
use std::time::Duration;
use vyre_smith::fuzz::{Config, Programs, Source, Summary, fuzz};
use vyre_smith::generate::{Preset, dna, generate};
use vyre_smith::subjects::subject;
use vyre_worker::{Contained, Pool, Settings, Subject, serve_judge};

const PROGRAMS: u64 = 2000;

/// What `vyre-bench worker` does: the other side of the isolated run below.
pub fn worker() {
    if let Err(error) = serve_judge(bulk) {
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
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let command = move || {
        let mut command = Command::new(&program);
        command.arg("worker");
        command
    };
    Ok(Box::new(Pool::start(command, Settings::default())?))
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
