//! Failing programs made small, by whoever found them.
//!
//! The thread that finds a wrong program has the device at hand in all its forms, and asks it about smaller and smaller ones, with the
//! same judge. That happens before the unit is committed, so a run that is killed meanwhile does it again.

use crate::cases::{Judge, Work};
use crate::examine::{Examiner, FindingKind};
use crate::ledger::remark;
use crate::regression::{Shown, Smaller};
use crate::report::ReducedFailure;
use std::collections::BTreeSet;
use std::mem::discriminant;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use vyre_foundation::case::Case;
use vyre_smith::reduce::{Config, Interest, reduce};
use vyre_worker::{Failure, Outputs};

/// Sections of which a program is reduced; a device that is wrong about everything is not asked for ever.
const SECTIONS: usize = 16;

/// How long one reduction may take, and how often the device is asked.
const TIME: Duration = Duration::from_secs(8);
const ATTEMPTS: u64 = 4000;

/// Sections of which a program was reduced, or is being reduced.
#[derive(Default)]
pub(super) struct Reductions(Mutex<BTreeSet<String>>);

impl Reductions {
    /// Those of a run that goes on, by what was remarked in it.
    pub fn new<'r>(remarks: impl Iterator<Item = &'r (String, String, String)>) -> Reductions {
        let reduced = remarks.filter(|(_, kind, _)| kind == remark::REDUCED).map(|(section, ..)| section.clone());
        Reductions(Mutex::new(reduced.collect()))
    }

    /// Reduces the first of these failures, if it is the first of its section. `salt` is the unit's, `form` the first one of the two
    /// that it chooses.
    pub fn reduce(&self, shown: &mut [Shown], examiner: &mut Examiner<'_>, salt: u64, form: &str, stop: &AtomicBool) {
        let Some(shown) = shown.first_mut() else { return };
        let Some((case, found)) = shown.alone() else { return };
        // A device that gives no answer costs a whole deadline each time.
        if matches!(found, Err(Failure::Hung(_))) || shown.failure.kind == FindingKind::Case {
            return;
        }
        let is_turn = self.0.lock().is_ok_and(|mut taken| taken.len() < SECTIONS && taken.insert(shown.failure.unit.clone()));
        if is_turn {
            shown.smaller = smaller(case, found, shown.failure.kind, examiner, salt, form, stop);
        }
    }
}

fn smaller(
    case: &Case,
    found: &Result<Outputs, Failure>,
    kind: FindingKind,
    examiner: &mut Examiner<'_>,
    salt: u64,
    form: &str,
    stop: &AtomicBool,
) -> Option<Box<Smaller>> {
    let symptom = found.as_ref().err().map(discriminant);
    let config = Config {
        attempts: ATTEMPTS,
        deadline: Some(Instant::now() + TIME),
        // Other bytes prove nothing about a program of which several results are right.
        race_free: kind != FindingKind::Dispatch,
        ..Config::default()
    };
    let mut interesting = |case: &Case| {
        if stop.load(Ordering::Relaxed) {
            return Interest::Stop;
        }
        match examiner.examine_whole(&[case.clone().into()], vec![Judge::Reference], salt) {
            Ok((examined, both)) => {
                let is_same = |found: &Result<Outputs, Failure>| found.as_ref().err().map(discriminant) == symptom;
                let fails = examined.findings.first().is_some_and(|finding| finding.kind == kind);
                (fails && both.first().is_some_and(|both| is_same(&both.found))).into()
            }
            Err(why) => Interest::Failed(why.0),
        }
    };
    let reduced = reduce(case.clone(), &config, &mut interesting, &mut |_| ()).ok()?;
    // What it gives now: the last answer of the reduction is not kept.
    let (examined, mut both) =
        examiner.examine_whole(&[Work::Dispatch(reduced.case.clone())], vec![Judge::Reference], salt).ok()?;
    let (finding, both) = (examined.findings.into_iter().next()?, both.pop()?);
    let nodes = (reduced.from.nodes, reduced.size.nodes);
    let failure = ReducedFailure::new(&reduced.case, &both.expected, &both.found, finding.message, nodes);
    Some(Box::new(Smaller { failure, subject: form.into(), case: reduced.case, expected: both.expected, found: both.found }))
}
