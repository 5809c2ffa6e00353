//! Devices that hang: what is waited for, what is found, and what is not run. The clock is a number that subjects of these tests turn.

#[allow(dead_code, reason = "other tests use the rest of it")]
mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use support::{NEVER, bulk, parts, plan};
use vyre_conform::conform::{Conformed, Event, Options, Tested, run};
use vyre_conform::evidence::Verdict;
use vyre_conform::expectations::Expectations;
use vyre_conform::{FindingKind, Plan};
use vyre_worker::{Answer, Case, Failure, Outputs, Patience, Subject};

const MINUTE: Duration = Duration::from_secs(60);

/// How long a case takes; for ever if it hangs.
type Takes = fn(u32) -> Duration;

/// A device in a process, as a judge with a clock sees it.
struct Timed {
    inner: Box<dyn Subject>,
    takes: Takes,
    deadline: Duration,
    patience: Patience,
    /// Milliseconds that were waited for what hung.
    waited: Arc<AtomicU64>,
}

impl Subject for Timed {
    fn name(&self) -> &str {
        "timed"
    }

    fn run(&mut self, case: &Case) -> Result<Outputs, Failure> {
        self.run_batch(std::slice::from_ref(case)).remove(0).outcome
    }

    fn run_batch(&mut self, cases: &[Case]) -> Vec<Answer> {
        let mut answers = self.inner.run_batch(cases);
        let mut hung = 0;
        for (case, answer) in cases.iter().zip(&mut answers) {
            if hung >= self.patience.hangs {
                answer.outcome = Err(Failure::GivenUp("others hang".into()));
                continue;
            }
            let time = if hung == 0 { self.patience.deadline } else { self.patience.then };
            let words = case.inputs[0].chunks_exact(4).map(|word| u32::from_le_bytes(*word.first_chunk().unwrap()));
            if words.map(self.takes).max() > Some(time) {
                hung += 1;
                self.waited.fetch_add(time.as_millis() as u64, Ordering::Relaxed);
                answer.outcome = Err(Failure::Hung(time));
            }
        }
        answers
    }

    fn deadline(&self) -> Option<Duration> {
        Some(self.deadline)
    }

    fn wait_for(&mut self, patience: Patience) {
        self.patience = patience;
    }
}

/// What came of it, how long was waited for what hung, and the lines about hangs.
fn conform(plan: &Plan, takes: Takes, deadline: Duration) -> (Conformed, Duration, usize) {
    let waited = Arc::new(AtomicU64::new(0));
    let make = |_: &str| -> Result<Box<dyn Subject>, String> {
        let (patience, waited) = (Patience::even(deadline), waited.clone());
        Ok(Box::new(Timed { inner: bulk(), takes, deadline, patience, waited }))
    };
    let tested = Tested {
        make: &make,
        forms: vec!["one".into(), "other".into()],
        backend: "timed".into(),
        version: None,
        fingerprint: "a device of tests".into(),
        name: "a device of tests".into(),
        most_groups: 65_535,
    };
    let options = Options {
        seed: 0,
        is_nonce: false,
        shard: (0, 1),
        state: None,
        threads: 1,
        selection: "all".into(),
        tier: None,
        command: "vyre conform".into(),
        controls: true,
        known: Expectations { entries: Vec::new() },
        stop: &NEVER,
    };
    let mut hangs = 0;
    let conformed = run(plan, &tested, &options, &mut |event| match event {
        Event::Found { how: "hangs", .. } => hangs += 1,
        Event::Committed(_) | Event::Found { .. } | Event::Waiting(_) | Event::Stopping(_) => {}
    });
    (conformed.expect("it runs"), Duration::from_millis(waited.load(Ordering::Relaxed)), hangs)
}

fn never_ends(_: u32) -> Duration {
    Duration::MAX
}

/// Sixty sections of which nothing ever ends: hours, if each dispatch were waited for.
#[test]
fn a_device_that_hangs_on_everything_is_not_waited_for_for_hours() {
    let names: Vec<String> = (0..30).map(|n| format!("demo.op{n}")).collect();
    let plan = plan(names.iter().map(|name| parts(name, 10_000).build().unwrap()).collect());
    let (found, waited, hangs) = conform(&plan, never_ends, MINUTE);
    let (summary, totals) = (found.report.summary, found.data.totals());
    assert_eq!((found.verdict.clone(), summary.passed), (Verdict::Fails, 0), "{summary:?}");
    assert!(waited < 20 * MINUTE, "{waited:?}");
    assert!(summary.failed > 0 && hangs > 0);
    // Nothing is passed that was not run, and everything is counted.
    assert_eq!(totals.failed + totals.not_run, 600_000, "{totals:?}");
    assert!(found.report.failures.iter().all(|it| it.kind == FindingKind::Dispatch && it.message.contains("no answer for 60s")));
    assert!(
        found.report.given_up.iter().any(|it| it.what.contains("hangs like a case of demo.op0")),
        "{:?}",
        found.report.given_up
    );
    // What reads the ledger says the same.
    assert_eq!(found.data.verdict(|_| false, |_| false), Verdict::Fails);
}

/// The one case that hangs is found with the whole deadline; what else is slow is not blamed, however slow the machine.
#[test]
fn one_case_that_hangs_is_found_and_nothing_slow_is_called_a_hang() {
    let takes = |word: u32| match word {
        4321 => Duration::MAX,
        9000 => Duration::from_secs(50),
        _ => Duration::from_millis(1),
    };
    let plan = plan(vec![parts("demo.xor", 10_000).build().unwrap()]);
    let (found, waited, _) = conform(&plan, takes, MINUTE);
    let labels: Vec<&str> = found.report.failures.iter().map(|it| it.input_label.as_str()).collect();
    assert!(!labels.is_empty() && labels.iter().all(|label| *label == "4321"), "{labels:?}");
    assert_eq!(found.verdict, Verdict::Fails);
    assert!(waited < 20 * MINUTE, "{waited:?}");
    assert!(found.report.summary.passed > 8_000, "{:?}", found.report.summary);
}

/// Where nothing hangs for a whole deadline, nothing is cut short.
#[test]
fn a_slow_device_holds() {
    let slow = |_: u32| Duration::from_secs(50);
    let plan = plan(vec![parts("demo.xor", 10_000).build().unwrap()]);
    let (found, waited, hangs) = conform(&plan, slow, MINUTE);
    assert_eq!((found.verdict, waited, hangs, found.report.given_up), (Verdict::Holds, Duration::ZERO, 0, Vec::new()));
}

/// Who asks for a short deadline gets every case that hangs.
#[test]
fn with_a_short_deadline_every_case_is_found() {
    let takes = |word: u32| if word % 1000 == 13 { Duration::MAX } else { Duration::ZERO };
    let plan = plan(vec![parts("demo.xor", 10_000).workgroup_sizes([64]).build().unwrap()]);
    let (found, ..) = conform(&plan, takes, Duration::from_secs(2));
    let summary = found.report.summary;
    assert_eq!((summary.tested, summary.failed, found.report.given_up.len()), (10_000, 10, 0));
}
