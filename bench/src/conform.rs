//! The conformance suite: cases per second end to end, what isolation and the ledger cost, how fast names are listed.

use crate::fuzz::pool_of;
use std::cell::Cell;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use vyre_conform::conform::{Event, Make, Options, Tested, run};
use vyre_conform::expectations::Expectations;
use vyre_conform::ledger::{Identity, Ledger, Range, UnitRecord};
use vyre_conform::{Digest, OpSpec, Plan, Selection, Tier, UNIT, suite};
use vyre_worker::backend::BackendSubject;
use vyre_worker::{Contained, Subject};

/// How long each candidate runs in a round.
const ROUND: Duration = Duration::from_millis(1500);
const ROUNDS: usize = 3;

/// The ops that are measured: memory, integer, float and elementary.
const OPS: [&str; 5] =
    ["ops.int.bitxor:u32", "ops.int.add:u32", "ops.int.popcount:u32", "ops.float.mul:f32", "ops.float.exp:f32"];

pub fn figures() {
    let specs = suite::all();
    let mut fastest = 0.0f64;
    for backend in ["bulk", "cpu"] {
        println!(
            "conformance of {backend}: M cases/s end to end on two threads, every dispatch twice, judged, hashed and committed"
        );
        println!("{:24} {:>10} {:>10} {:>8}", "", "isolated", "in process", "ratio");
        for op in OPS {
            let Some(spec) = specs.iter().find(|spec| spec.id() == op) else {
                println!("{op:24} is not in the suite");
                continue;
            };
            let plan = plan_of(spec, "sampled");
            let mut best = [0.0f64; 2];
            for _ in 0..ROUNDS {
                for (best, isolated) in best.iter_mut().zip([true, false]) {
                    *best = best.max(rate_and_peak(&plan, backend, isolated, Some(ROUND)).0);
                }
            }
            fastest = fastest.max(best[0]);
            println!("{op:24} {:10.1} {:10.1} {:8.3}", best[0], best[1], best[1] / best[0]);
        }
    }
    ledger(fastest);
    memory(&specs);
    listing(specs);
}

/// How long it takes to prove a function of one float on all 2³² inputs.
pub fn sweeps() {
    println!("all 2^32 inputs on cpu, isolated, two threads, every dispatch twice (goal for sqrt and exp: <= 60 s)");
    let functions = ["sqrt", "exp", "exp2", "log", "log2", "sin", "cos", "tan", "tanh", "atan", "rsqrt"];
    for spec in suite::all() {
        let Some(function) = functions.iter().find(|name| spec.id() == format!("ops.float.{name}:f32")) else { continue };
        let plan = plan_of(&spec, "exhaustive");
        let began = Instant::now();
        let (millions, _) = rate_and_peak(&plan, "cpu", true, None);
        println!("{function:24} {:8.1} s {millions:10.1} M cases/s", began.elapsed().as_secs_f64());
    }
}

/// What it costs to write down what was done: the share of a second that the commits of its units take.
fn ledger(millions: f64) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let identity = Identity {
        suite: "bench".into(),
        selection: Selection::ALL.into(),
        settings: String::new(),
        backend: "bulk".into(),
        version: None,
        device: String::new(),
    };
    let mut ledger = Ledger::open(Some(folder.path()), &identity).expect("a new ledger");
    // What two seconds give, which is what is committed together.
    let units = (2.0 * millions * 1e6 / UNIT as f64) as u64;
    let unit = |n: u64| UnitRecord {
        first: n * UNIT,
        cases: UNIT,
        inputs: None,
        expected: Digest::of([n.to_le_bytes()]),
        actual: Digest::of([n.to_le_bytes()]),
        tested: UNIT,
        failed: 0,
        skipped: 0,
        referred: UNIT / 100,
        confirmed: true,
    };
    let commits = 20;
    let mut took = Duration::ZERO;
    for commit in 0..commits {
        let numbers = commit * units..(commit + 1) * units;
        let range =
            Range { units: numbers.map(|n| (format!("{}:wg=64:sampled", OPS[0]), unit(n))).collect(), ..Range::default() };
        let began = Instant::now();
        ledger.commit(&range).expect("it is written");
        took += began.elapsed();
    }
    let share = took.as_secs_f64() / (2.0 * commits as f64) * 100.0;
    println!("ledger: {share:.2} % of the time, {units} units in a commit every 2 s (goal: < 1 %)");
}

/// The most memory that a run takes, judge and workers together, while it goes through many sections.
fn memory(specs: &[OpSpec]) {
    let chosen: Vec<OpSpec> = specs.iter().filter(|spec| OPS.contains(&spec.id())).cloned().collect();
    let selection = Selection::new(["ops", "!*:exhaustive"]).expect("these are queries");
    let plan = Plan::new(chosen, Vec::new(), &selection, Tier::Deep).expect("there are such sections");
    // What was the most before does not count.
    std::fs::write("/proc/self/clear_refs", "5").expect("the peak can be reset");
    let mut most = (0, 0);
    for _ in 0..4 {
        let (_, peak) = rate_and_peak(&plan, "bulk", true, Some(ROUND));
        most = most.max(peak);
    }
    let mb = |kb: u64| kb as f64 / 1024.0;
    println!("memory: {:.0} MB, of it {:.0} MB in workers (goal: <= 512 MB)", mb(most.0), mb(most.1));
}

/// The most memory that a process has had, in KB.
fn peak(process: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse().ok()).unwrap_or(0)
}

/// Those of all processes that this one has started.
fn peak_of_workers() -> u64 {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let children = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    children.map(|all| all.split_whitespace().map(peak).sum::<u64>()).sum()
}

fn plan_of(spec: &OpSpec, space: &str) -> Plan {
    let query = format!("{}:wg=64:{space}", spec.id());
    let selection = Selection::new([query, "!*:alt=*".into()]).expect("it is a query");
    Plan::new(vec![spec.clone()], Vec::new(), &selection, Tier::Deep).expect("there is such a section")
}

/// Cases per second, in millions, in a run that is stopped after a while; and the most memory in KB: of all processes together, and of workers.
fn rate_and_peak(plan: &Plan, backend: &str, isolated: bool, stop_after: Option<Duration>) -> (f64, (u64, u64)) {
    let in_process = |form: &str| -> Result<Box<dyn Subject>, String> {
        let form = form.to_string();
        let make = move || Box::new(BackendSubject::named(&form).expect("a backend").expect("it opens")) as Box<dyn Subject>;
        Ok(Box::new(Contained::new(make)))
    };
    let in_workers = |form: &str| pool_of(form).map(|pool| Box::new(pool) as Box<dyn Subject>);
    let make: Make<'_> = if isolated { &in_workers } else { &in_process };
    let tested = Tested {
        make,
        forms: ["timed", "into"].map(|form| format!("backend:{backend}/{form}")).to_vec(),
        backend: backend.into(),
        version: None,
        fingerprint: String::new(),
        name: backend.into(),
        most_groups: 65_535,
    };
    let stop = AtomicBool::new(false);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let options = Options {
        seed: 1,
        is_nonce: false,
        shard: (0, 1),
        state: Some(folder.path().into()),
        threads: 2,
        selection: String::new(),
        tier: None,
        command: String::new(),
        controls: true,
        known: Expectations::default(),
        stop: &stop,
    };
    let (best, most, began) = (Cell::new(0.0), Cell::new((0, 0)), Instant::now());
    let outcome = run(plan, &tested, &options, &mut |event| {
        let Event::Committed(progress) = event else { return };
        best.set(progress.cases_now as f64 / progress.elapsed.as_secs_f64() / 1e6);
        let workers = peak_of_workers();
        most.set(most.get().max((peak("self") + workers, workers)));
        if stop_after.is_some_and(|limit| began.elapsed() > limit) {
            stop.store(true, Ordering::Relaxed);
        }
    });
    let failed = outcome.map(|conformed| conformed.report.summary.failed);
    assert!(matches!(failed, Ok(0)), "{backend} is right");
    (best.get(), most.get())
}

fn listing(specs: Vec<OpSpec>) {
    let plan = Plan::new(specs, Vec::new(), &Selection::default(), Tier::Deep).expect("there is a suite");
    let count = plan.units().min(2_000_000);
    let began = Instant::now();
    let mut bytes = 0;
    for number in 0..count {
        let unit = plan.unit(number);
        bytes += black_box(format!("{}:{}\n", plan.sections()[unit.section].info().id, unit.first)).len();
    }
    let seconds = began.elapsed().as_secs_f64();
    println!("names: {:.1} M/s ({count} of {} units, {bytes} bytes)", count as f64 / seconds / 1e6, plan.units());
}
