//! Units with which three workers were lost, run case by case: each part in a process of its own, which may end as it likes.
//!
//! First the whole unit, then halves of what did not come back, down to single cases. A unit that comes back whole has the same record as
//! anywhere else; cases that no process survives have failed.

use crate::conform;
use crate::{Failure, print};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use vyre_campaign::Spec;
use vyre_conform::conform::Units;
use vyre_conform::ledger::{Range, UnitRecord};
use vyre_conform::{Digest, FindingKind, ParityFailure, Plan, Unit};

/// What a process is asked to run, as JSON on its standard input.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    /// What the campaign is about.
    pub spec: Spec,
    /// The device.
    pub backend: String,
    /// How many seconds a dispatch may take.
    pub deadline: f64,
    /// Whether the device runs in the process.
    pub in_process: bool,
    /// Whether devices that are wrong on purpose may be used.
    pub test_subjects: bool,
    /// The unit.
    pub unit: u64,
    /// First case and number of cases, if not all of it.
    pub part: Option<(u64, u64)>,
}

/// What it answers.
#[derive(Serialize, Deserialize)]
struct Said {
    record: UnitRecord,
    failures: Vec<ParityFailure>,
}

/// Run a part of a unit for a worker.
#[derive(clap::Args)]
pub struct Args {}

/// In the process: reads what is asked for, runs it, and prints the answer.
pub fn alone(_: &Args) -> Result<(), Failure> {
    let mut text = String::new();
    let read = std::io::stdin().take(1 << 20).read_to_string(&mut text);
    read.map_err(|error| Failure::Usage(format!("standard input: {error}")))?;
    let ask: Ask = serde_json::from_str(&text).map_err(|error| Failure::Usage(format!("standard input: {error}")))?;
    let deadline = Duration::try_from_secs_f64(ask.deadline).map_err(|error| Failure::Usage(error.to_string()))?;
    let args = conform::Args::of_suite(&ask.spec.queries, &ask.spec.tier, ask.spec.seed, Some(&ask.backend))?;
    let args = args.run_with(deadline, ask.in_process, ask.test_subjects);
    let plan = conform::plan(&args)?;
    let make = |form: &str| conform::subject(&args, form);
    let tested = conform::tested(&args, &ask.backend, &make)?;
    let stop = std::sync::atomic::AtomicBool::new(false);
    let mut units = Units::new(&plan, &tested, ask.spec.seed, None, None, &stop).map_err(Failure::NoVerdict)?;
    let whole = plan.unit(ask.unit);
    let part = ask.part.map_or(whole, |(first, cases)| Unit { first, cases, ..whole });
    let mut range = Range::default();
    units.part(part, &mut range).map_err(Failure::NoVerdict)?;
    let Some((_, record)) = range.units.pop() else { return Err(Failure::NoVerdict("nothing was run".into())) };
    print(&format!("{}\n", json!(Said { record, failures: range.failures })));
    Ok(())
}

/// In the worker: the unit of this number, case by case where it has to be.
pub fn case_by_case(plan: &Plan, ask: &Ask, range: &mut Range) -> Result<(), String> {
    let unit = plan.unit(ask.unit);
    let info = plan.sections()[unit.section].info();
    if let Ok(said) = part(ask) {
        range.failures.extend(said.failures);
        range.units.push((info.id.clone(), said.record));
        return Ok(());
    }
    // The parts that are still to be run, the last one first.
    let mut open = vec![(unit.first, unit.cases)];
    let mut parts = Vec::new();
    let mut record = UnitRecord {
        first: unit.first,
        cases: unit.cases,
        inputs: None,
        expected: Digest::default(),
        actual: Digest::default(),
        tested: 0,
        failed: 0,
        skipped: 0,
        referred: 0,
        confirmed: true,
    };
    while let Some((first, cases)) = open.pop() {
        let said = if cases == unit.cases && cases > 1 {
            Err(String::new())
        } else {
            part(&Ask { part: Some((first, cases)), ..ask.clone() })
        };
        match said {
            Ok(said) => {
                record.tested += said.record.tested;
                record.failed += said.record.failed;
                record.skipped += said.record.skipped;
                record.referred += said.record.referred;
                record.confirmed &= said.record.confirmed;
                parts.push([said.record.expected.0, said.record.actual.0]);
                range.failures.extend(said.failures);
            }
            Err(why) if cases == 1 => {
                record.tested += 1;
                record.failed += 1;
                parts.push([Digest::of(["a result"]).0, Digest::of(["none"]).0]);
                range.failures.push(ParityFailure {
                    op_id: info.op.clone(),
                    generator: info.space.clone(),
                    input_label: first.to_string(),
                    input: Vec::new(),
                    gpu_output: Vec::new(),
                    cpu_output: Vec::new(),
                    message: format!("no worker survives this case: {why}"),
                    spec_version: info.version,
                    workgroup_size: info.workgroup,
                    kind: FindingKind::Dispatch,
                    unit: info.id.clone(),
                });
            }
            Err(_) => {
                let half = cases / 2;
                open.push((first + half, cases - half));
                open.push((first, half));
            }
        }
    }
    record.expected = Digest::of(parts.iter().map(|part| part[0]));
    record.actual = Digest::of(parts.iter().map(|part| part[1]));
    range.units.push((info.id.clone(), record));
    Ok(())
}

/// Has a part run by a process; the error says how the process ended if there is no answer.
fn part(ask: &Ask) -> Result<Said, String> {
    let program = std::env::current_exe().map_err(|error| format!("this program cannot be started again: {error}"))?;
    let mut command = Command::new(program);
    // The process has no use for the database.
    command.args(["campaign", "alone"]).env_remove("VYRE_DB").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    if let Some(mut stdin) = child.stdin.take() {
        // If the process is gone already, that is found below.
        let _ = stdin.write_all(json!(ask).to_string().as_bytes());
    }
    let mut stdout = child.stdout.take().ok_or("it has no standard output")?;
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        stdout.read_to_string(&mut text).map(|_| text)
    });
    // Every dispatch has its deadline; a process that takes longer than several of them hangs somewhere else.
    let deadline = Instant::now() + Duration::try_from_secs_f64(ask.deadline * 4.0 + 30.0).unwrap_or(Duration::from_secs(600));
    let status = loop {
        match child.try_wait().map_err(|error| error.to_string())? {
            Some(status) => break status,
            None if Instant::now() > deadline => {
                let _ = child.kill();
                let _ = child.wait();
                return Err("it takes too long".into());
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let text = reader.join().ok().and_then(Result::ok).unwrap_or_default();
    if !status.success() {
        return Err(format!("the process ends with {status}"));
    }
    serde_json::from_str(&text).map_err(|error| format!("what the process says is not an answer: {error}"))
}
