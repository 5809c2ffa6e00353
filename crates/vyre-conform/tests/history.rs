//! Failures that need what ran before them in the same process: what is kept of them, and that it shows them again.

#[allow(dead_code, reason = "other tests use the rest of it")]
mod support;

use std::path::Path;
use support::{NEVER, bulk, parts, plan};
use vyre_conform::conform::{Conformed, Options, Tested, run};
use vyre_conform::evidence::Verdict;
use vyre_conform::expectations::Expectations;
use vyre_worker::{Answer, Bundle, Case, Failure, Outputs, Subject};

/// A device that is wrong about one case, once it has seen another one; until its process ends.
struct Remembers {
    inner: Box<dyn Subject>,
    has_seen: bool,
}

const SEEN: u32 = 5000;
const WRONG: u32 = 9000;

fn at(case: &Case, word: u32) -> Option<usize> {
    case.inputs[0].chunks_exact(4).position(|bytes| bytes == word.to_le_bytes())
}

impl Subject for Remembers {
    fn name(&self) -> &str {
        "remembers"
    }

    fn run(&mut self, case: &Case) -> Result<Outputs, Failure> {
        self.run_batch(std::slice::from_ref(case)).remove(0).outcome
    }

    fn run_batch(&mut self, cases: &[Case]) -> Vec<Answer> {
        let mut answers = self.inner.run_batch(cases);
        for (case, answer) in cases.iter().zip(&mut answers) {
            if let (Some(wrong), Ok(outputs), true) = (at(case, WRONG), &mut answer.outcome, self.has_seen) {
                outputs[0][4 * wrong] ^= 1;
            }
            self.has_seen |= at(case, SEEN).is_some();
        }
        answers
    }

    fn renew(&mut self) {
        self.has_seen = false;
    }
}

fn conform(state: &Path) -> Conformed {
    let make = |_: &str| -> Result<Box<dyn Subject>, String> { Ok(Box::new(Remembers { inner: bulk(), has_seen: false })) };
    let tested = Tested {
        make: &make,
        forms: vec!["one".into(), "other".into()],
        backend: "remembers".into(),
        version: None,
        fingerprint: "a device of tests".into(),
        name: "a device of tests".into(),
        // Dispatches of 1,024 cases.
        most_groups: 16,
    };
    let options = Options {
        seed: 0,
        is_nonce: false,
        shard: (0, 1),
        state: Some(state.into()),
        threads: 1,
        selection: "all".into(),
        tier: None,
        command: "vyre conform".into(),
        controls: true,
        known: Expectations { entries: Vec::new() },
        stop: &NEVER,
    };
    run(&plan(vec![parts("demo.xor", 20_000).workgroup_sizes([64]).build().unwrap()]), &tested, &options, &mut |_| ())
        .expect("it runs")
}

#[test]
fn what_has_to_run_before_a_failure_is_kept_with_it_and_runs_again() {
    let state = tempfile::tempdir().unwrap();
    let first = conform(state.path());
    assert_eq!((&first.verdict, first.report.summary.failed), (&Verdict::Fails, 1));
    let why = first.data.sections[0].unreduced.as_deref().unwrap_or_default();
    assert!(why.contains("only after another dispatch in the same process"), "{why}");
    let files = std::fs::read_dir(state.path().join("regressions")).expect("bundles were kept");
    let bundles: Vec<Bundle> = files.map(|file| Bundle::read(&file.unwrap().path()).expect("a bundle")).collect();
    let [bundle] = bundles.as_slice() else { panic!("{bundles:?}") };
    assert_eq!(bundle.before.len(), 1);
    assert!(at(&bundle.before[0], SEEN).is_some() && at(&bundle.case, WRONG).is_some());
    assert!(["one", "other"].contains(&bundle.subject.as_str()), "{}", bundle.subject);
    // It fails again where nothing else has run before it.
    let second = conform(state.path());
    assert_eq!((second.report.summary.regressions, second.report.summary.failed), (1, 2));
    assert_eq!(second.data.info.still_failing.len(), 1);
}
