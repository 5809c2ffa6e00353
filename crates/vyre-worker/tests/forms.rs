//! Every form of dispatch on `bulk` gives what the reference gives, in this process and in a worker, on generated programs.
//!
//! `VYRE_FORMS=N` takes N programs instead of a few. The worker is this test program itself, started again to run `the_worker` alone.

use std::process::Command;
use vyre_driver_reference as _;
use vyre_smith::generate::{Preset, dna, generate};
use vyre_smith::subjects::{Reference, subject};
use vyre_worker::backend::{BackendSubject, Form, PREFIX};
use vyre_worker::{Case, Failure, Pool, Sequence, SequenceStep, Settings, Subject, serve_judge};

const NAME: &str = "VYRE_TEST_SUBJECT";

#[test]
fn the_worker() {
    let Ok(name) = std::env::var(NAME) else { return };
    let aside = std::fs::OpenOptions::new().write(true).open("/dev/fd/3").expect("standard output was put aside");
    rustix::stdio::dup2_stdout(aside).expect("standard output can be taken back");
    serve_judge(|| Box::new(named(&name))).expect("the judge listens");
}

fn named(name: &str) -> BackendSubject {
    BackendSubject::named(name).expect("it is a backend's name").unwrap_or_else(|why| panic!("{why}"))
}

fn pool(name: &str) -> Pool {
    let name = name.to_string();
    let command = move || {
        let mut command = Command::new("sh");
        command.args(["-c", "exec \"$0\" --exact the_worker --nocapture 3>&1 >/dev/null"]);
        command.arg(std::env::current_exe().expect("the test runs")).env(NAME, &name);
        command
    };
    Pool::start(command, Settings::default()).expect("the worker starts")
}

fn programs() -> u64 {
    std::env::var("VYRE_FORMS").ok().and_then(|n| n.parse().ok()).unwrap_or(400)
}

fn case(number: u64) -> Case {
    let dna = dna(41, number);
    generate(Preset::mixed(number), &dna).case(&dna)
}

#[test]
fn every_form_gives_what_the_reference_gives_here_and_in_a_worker() {
    let mut reference = Reference::default();
    let mut forms: Vec<(Form, BackendSubject, Pool)> = Form::ALL
        .into_iter()
        .map(|form| {
            let name = format!("{PREFIX}bulk/{form}");
            (form, named(&name), pool(&name))
        })
        .collect();
    let (mut traps, mut ran) = (0, 0);
    for first in (0..programs()).step_by(64) {
        let cases: Vec<Case> = (first..programs().min(first + 64)).map(case).collect();
        let expected: Vec<_> = cases.iter().map(|case| reference.expected(case)).collect();
        traps += expected.iter().filter(|outcome| matches!(outcome, Err(Failure::Trap { .. }))).count();
        for (form, here, there) in &mut forms {
            let answers = there.run_batch(&cases);
            for (n, (case, answer)) in cases.iter().zip(answers).enumerate() {
                let number = first + n as u64;
                assert_eq!(here.run(case), expected[n], "program {number} by {form}\n{}", case.program);
                assert_eq!(answer.outcome, expected[n], "program {number} by {form} in a worker\n{}", case.program);
                if let Some(found) = answer.ran {
                    let launch = case.plan().expect("it ran");
                    ran += 1;
                    assert_eq!((found.device, found.grid, found.workgroup), ("bulk", launch.grid, launch.workgroup_size));
                }
            }
        }
    }
    assert!(traps > 0 && ran > programs(), "{traps} traps, {ran} times was told what ran");
    assert!(forms.iter().all(|(_, _, pool)| pool.stats().unexplained == 0 && pool.stats().started == 1));
}

/// The same program three times over the same buffers, and what it makes of what the time before left.
#[test]
fn sequences_on_resident_memory_are_dispatches_one_after_the_other() {
    let mut plain = subject("plain").expect("there is a reference");
    let mut here = named("backend:bulk");
    let mut there = pool("backend:bulk");
    let mut changed = 0;
    // Few of the generated programs read what they have written; this one does.
    let text = "program p {\n  workgroup 4\n  buffer x: read_write u32 @0\n  x[gid.x] = x[gid.x] * 3 + 1\n}\n";
    let adds = Case::new(vyre_foundation::text::parse("p.vyre", text).expect("it is right"), vec![vec![7; 64]]);
    for (number, case) in std::iter::once(adds).chain((0..programs() / 2).map(case)).enumerate() {
        let Ok(launch) = case.plan() else { continue };
        let interface = case.program.interface();
        let mut given = case.inputs.iter();
        let buffers: Vec<Vec<u8>> = (interface.bound.iter())
            .map(|i| match case.program.buffers()[*i].access.is_input() {
                true => given.next().expect("an input").clone(),
                false => vec![0x55; launch.bytes[*i] as usize],
            })
            .collect();
        let step = SequenceStep {
            program: case.program.clone(),
            // Without a grid it follows from the lengths, which stay.
            config: case.config.clone(),
            buffers: (0..buffers.len()).collect(),
        };
        let sequence = Sequence { buffers, steps: vec![step.clone(), step.clone(), step], fuel: case.fuel };
        let once = Sequence { steps: sequence.steps[..1].to_vec(), ..sequence.clone() };
        let expected = plain.run_sequence(&sequence);
        changed += u32::from(expected.is_ok() && expected != plain.run_sequence(&once));
        assert_eq!(here.run_sequence(&sequence), expected, "program {number}\n{}", case.program);
        assert_eq!(there.run_sequence(&sequence), expected, "program {number} in a worker\n{}", case.program);
    }
    assert!(changed > 0, "no sequence depends on what the dispatch before left");
}

#[test]
fn names_of_devices_and_forms_are_told() {
    let error = |name: &str| BackendSubject::named(name).expect("a backend's name").err().expect("there is none");
    assert!(error("backend:bluk").contains("there is no backend `bluk`; the backends are bulk"));
    assert!(error("backend:bulk/sideways").contains("there is no form `sideways`; the forms are dispatch, into"));
    assert!(BackendSubject::named("bulk").is_none());
}
