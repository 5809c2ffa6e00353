//! The conformance suite: cases per second end to end, what isolation and the ledger cost, how fast names are listed.

use crate::fuzz::pool_of;
use std::cell::Cell;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use vyre_conform::conform::{Make, Options, Tested, run};
use vyre_conform::expectations::Expectations;
use vyre_conform::{OpSpec, Plan, Selection, Tier, suite};
use vyre_worker::backend::BackendSubject;
use vyre_worker::{Contained, Subject};

/// How long each candidate runs in a round.
const ROUND: Duration = Duration::from_millis(1500);
const ROUNDS: usize = 3;

/// The ops that are measured: memory, integer, float and elementary.
const OPS: [&str; 5] =
    ["ops.int.bitxor:u32", "ops.int.add:u32", "ops.int.popcount:u32", "ops.float.mul:f32", "ops.float.exp:f32"];

pub fn figures() {
    println!("conformance: M cases/s end to end on two threads, every dispatch twice, judged, hashed and committed");
    println!("{:24} {:>10} {:>10} {:>8}", "", "isolated", "in process", "ratio");
    let specs = suite::all();
    for op in OPS {
        let Some(spec) = specs.iter().find(|spec| spec.id() == op) else {
            println!("{op:24} is not in the suite");
            continue;
        };
        let plan = plan_of(spec);
        let mut best = [0.0f64; 2];
        for _ in 0..ROUNDS {
            for (best, isolated) in best.iter_mut().zip([true, false]) {
                *best = best.max(rate(&plan, isolated));
            }
        }
        println!("{op:24} {:10.1} {:10.1} {:8.3}", best[0], best[1], best[1] / best[0]);
    }
    listing(specs);
}

fn plan_of(spec: &OpSpec) -> Plan {
    let query = format!("{}:wg=64:sampled", spec.id());
    let selection = Selection::new([query, "!*:alt=*".into()]).expect("it is a query");
    Plan::new(vec![spec.clone()], Vec::new(), &selection, Tier::Deep).expect("there is such a section")
}

/// Cases per second, in millions, in a run that is stopped after a while.
fn rate(plan: &Plan, isolated: bool) -> f64 {
    let in_process = |form: &str| -> Result<Box<dyn Subject>, String> {
        let form = form.to_string();
        let make = move || Box::new(BackendSubject::named(&form).expect("a backend").expect("bulk")) as Box<dyn Subject>;
        Ok(Box::new(Contained::new(make)))
    };
    let in_workers = |form: &str| pool_of(form).map(|pool| Box::new(pool) as Box<dyn Subject>);
    let make: Make<'_> = if isolated { &in_workers } else { &in_process };
    let tested = Tested {
        make,
        forms: ["timed", "into"].map(|form| format!("backend:bulk/{form}")).to_vec(),
        backend: "bulk".into(),
        version: None,
        fingerprint: String::new(),
        name: "bulk".into(),
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
    let (best, began) = (Cell::new(0.0), Instant::now());
    let outcome = run(plan, &tested, &options, &mut |progress| {
        best.set(progress.cases_now as f64 / progress.elapsed.as_secs_f64() / 1e6);
        if began.elapsed() > ROUND {
            stop.store(true, Ordering::Relaxed);
        }
    });
    let failed = outcome.map(|conformed| conformed.report.summary.failed);
    assert!(matches!(failed, Ok(0)), "bulk is right");
    best.get()
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
