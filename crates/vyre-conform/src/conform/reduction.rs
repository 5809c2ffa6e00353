//! Failing programs made small, by whoever found them.
//!
//! The thread that finds a wrong program has the device at hand in all its forms, and asks it about smaller and smaller ones, with the
//! same judge. That happens before the unit is committed, so a run that is killed meanwhile does it again.

use crate::cases::{Judge, Work};
use crate::examine::{Examiner, FindingKind, Shows};
use crate::ledger::remark;
use crate::regression::{Alone, Shown, Smaller};
use crate::report::ReducedFailure;
use std::collections::BTreeSet;
use std::mem::discriminant;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use vyre_foundation::case::Case;
use vyre_reference::Options as ReferenceOptions;
use vyre_reference::checked::{Effort, check};
use vyre_smith::reduce::{Config, Error as ReduceError, Interest, reduce};
use vyre_worker::{Failure, Outputs};

/// Sections of which a program is reduced; a device that is wrong about everything is not asked for ever. Programs of ops are small to
/// begin with, and there are more of them.
const SECTIONS: usize = 16;
const OPS: usize = 48;

/// How long one reduction may take, how often the device is asked, and how long all reductions of a run may take.
const TIME: Duration = Duration::from_secs(8);
const ATTEMPTS: u64 = 4000;
const ALL: Duration = Duration::from_secs(120);

/// Orders of atomics that are tried of each smaller program, to know that only one result is right.
const ORDERS: u64 = 64;

/// Steps that a smaller program may take.
const FUEL: u64 = 1 << 22;

/// What the cases of a section are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Of {
    /// Programs of their own.
    Programs,
    /// Cases of an op.
    Op,
    /// Cases of an op that are compared with each other.
    Law,
}

/// What was reduced so far.
#[derive(Default)]
pub(super) struct Reductions(Mutex<Taken>);

#[derive(Default)]
struct Taken {
    /// Sections of which a program was reduced, or is being reduced.
    sections: BTreeSet<String>,
    programs: usize,
    ops: usize,
    time: Duration,
}

impl Taken {
    /// Whether a section gets its turn, or why not; nothing if it had it.
    fn turn(&mut self, of: Of, section: &str) -> Option<Result<(), String>> {
        if !self.sections.insert(section.into()) {
            return None;
        }
        let (count, most) = match of {
            Of::Programs => (&mut self.programs, SECTIONS),
            Of::Op => (&mut self.ops, OPS),
            Of::Law => return Some(Err("a law compares what the device gives with what it gives elsewhere".into())),
        };
        if *count >= most {
            return Some(Err(format!("{most} others were reduced in this run")));
        }
        if self.time >= ALL {
            return Some(Err(format!("the {ALL:?} that a run takes for this were over")));
        }
        *count += 1;
        Some(Ok(()))
    }
}

impl Reductions {
    /// Those of a run that goes on, by what was remarked in it.
    pub fn new<'r>(remarks: impl Iterator<Item = &'r (String, String, String)>) -> Reductions {
        let of = |kind: &str| kind == remark::REDUCED || kind == remark::UNREDUCED;
        let sections = remarks.filter(|(_, kind, _)| of(kind)).map(|(section, ..)| section.clone());
        Reductions(Mutex::new(Taken { sections: sections.collect(), ..Taken::default() }))
    }

    /// Finds out what shows the first of these failures again, and makes it small, if it is the first of its section. `salt` is the
    /// unit's, which chooses two of the forms.
    pub fn reduce(
        &self,
        of: Of,
        shown: &mut [Shown],
        examiner: &mut Examiner<'_>,
        salt: u64,
        forms: &[String],
        stop: &AtomicBool,
    ) {
        let Some(shown) = shown.first_mut() else { return };
        let turn = self.0.lock().ok().and_then(|mut taken| taken.turn(of, &shown.failure.unit));
        let began = Instant::now();
        shown.unreduced = match turn {
            None => return,
            Some(Err(why)) => Some(why),
            Some(Ok(())) => make_small(shown, examiner, salt, forms, stop).err(),
        };
        if let Ok(mut taken) = self.0.lock() {
            taken.time += began.elapsed();
        }
    }
}

/// What shows a failure again, and a smaller case that fails in the same way.
///
/// # Errors
///
/// Why there is none.
fn make_small(
    shown: &mut Shown,
    examiner: &mut Examiner<'_>,
    salt: u64,
    forms: &[String],
    stop: &AtomicBool,
) -> Result<(), String> {
    let kind = shown.failure.kind;
    if shown.failure.message.contains("gave no answer") {
        return Err("each attempt would be waited for until it is clear that it hangs".into());
    }
    match kind {
        FindingKind::Case | FindingKind::Disputed => {
            return Err("the suite or the reference is wrong about it, not the device".into());
        }
        FindingKind::Mismatch | FindingKind::Nondeterministic | FindingKind::Dispatch | FindingKind::Configuration => {}
    }
    let Some(Alone { case, expected, .. }) = shown.alone() else {
        return Err("it is a sequence of dispatches over resident buffers".into());
    };
    let (mut case, expected, dispatch) = (case.clone(), expected.clone(), shown.dispatch.take());
    let until = Instant::now() + TIME;
    let subjects = examiner.chosen(salt);
    let mut shows = shows_in(examiner, subjects, &case, dispatch.as_ref(), &expected, kind, until);
    if let (Shows::Never(_), Some(dispatch)) = (&shows.0, dispatch) {
        // Perhaps it takes the other cases of its dispatch.
        let of_all = vyre_smith::subjects::expected(&dispatch);
        let again = shows_in(examiner, subjects, &dispatch, None, &of_all, kind, until);
        if !matches!(again.0, Shows::Never(_)) {
            let found = match again.0 {
                Shows::Alone => examiner.again(again.1, &dispatch),
                Shows::After(_) | Shows::Never(_) => Err(Failure::Device(shown.failure.message.clone())),
            };
            shown.be_dispatch(dispatch.clone(), of_all, found);
            (case, shows) = (dispatch, again);
        }
    }
    match shows {
        (Shows::Alone, _) => {}
        (Shows::After(before), subject) => {
            let why = format!(
                "it fails only after {} in the same process, which the bundle keeps and `again` runs",
                if before.len() == 1 { "another dispatch".to_string() } else { format!("{} other dispatches", before.len()) }
            );
            shown.after = Some((before, forms[subject].clone()));
            return Err(why);
        }
        (Shows::Never(before), _) => {
            return Err(format!(
                "it did not fail again: not by itself in a fresh process, and not after the last {before} dispatches before it"
            ));
        }
    }
    let found = shown.alone().map_or_else(|| Err(Failure::Device(String::new())), |alone| alone.found.clone());
    shown.smaller = Some(smaller(&case, &found, kind, examiner, salt, &forms[subjects[0]], stop)?);
    Ok(())
}

/// What shows a failure in one of two forms, and in which; the first may be the one that was right.
fn shows_in(
    examiner: &mut Examiner<'_>,
    subjects: [usize; 2],
    case: &Case,
    dispatch: Option<&Case>,
    expected: &Result<Outputs, Failure>,
    kind: FindingKind,
    until: Instant,
) -> (Shows, usize) {
    if kind == FindingKind::Configuration {
        // The bytes are right; what ran shows in every dispatch.
        return (Shows::Alone, subjects[0]);
    }
    let [one, other] = subjects;
    match examiner.shows(one, case, dispatch, expected, until) {
        Shows::Never(_) if one != other => (examiner.shows(other, case, dispatch, expected, until), other),
        shows @ (Shows::Alone | Shows::After(_) | Shows::Never(_)) => (shows, one),
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
) -> Result<Box<Smaller>, String> {
    let symptom = found.as_ref().err().map(discriminant);
    let config = Config { attempts: ATTEMPTS, deadline: Some(Instant::now() + TIME), ..Config::default() };
    // Other bytes prove nothing about a program of which several results are right. Every order of the atomics of a small dispatch would
    // take a second for each candidate, so only some are tried.
    let effort = Effort { executions: ORDERS, ..Effort::default() };
    let is_one = |case: &Case, fuel: u64| {
        let options = ReferenceOptions { fuel, ..ReferenceOptions::from(case) };
        let report = || check(&case.program, &case.input_slices(), &options, &effort);
        kind == FindingKind::Dispatch || report().is_ok_and(|report| report.holds())
    };
    if !is_one(case, case.fuel) {
        return Err("its bytes depend on the order of its invocations".into());
    }
    let mut interesting = |case: &Case| {
        if stop.load(Ordering::Relaxed) {
            return Interest::Stop;
        }
        match examiner.examine_whole(&[case.clone().into()], vec![Judge::Reference], salt) {
            Ok((examined, both)) => {
                let is_same = |found: &Result<Outputs, Failure>| found.as_ref().err().map(discriminant) == symptom;
                let fails = examined.findings.first().is_some_and(|finding| finding.kind == kind);
                let fails = fails && both.first().is_some_and(|both| is_same(&both.found));
                (fails && is_one(case, case.fuel.min(FUEL))).into()
            }
            Err(why) => Interest::Failed(why.0),
        }
    };
    let reduced = reduce(case.clone(), &config, &mut interesting, &mut |_| ()).map_err(|error| match error {
        ReduceError::NotInteresting => "the program with these inputs does not fail again in the same way".to_string(),
        ReduceError::NotDeterministic => "its bytes depend on the order of its invocations".into(),
        ReduceError::Stopped => "the run was stopped".into(),
        ReduceError::Invalid(_) | ReduceError::Failed(_) => error.to_string().lines().next().unwrap_or_default().to_string(),
    })?;
    // What it gives now: the last answer of the reduction is not kept.
    let last = examiner.examine_whole(&[Work::Dispatch(reduced.case.clone())], vec![Judge::Reference], salt);
    let (examined, mut both) = last.map_err(|why| why.0)?;
    let (Some(finding), Some(both)) = (examined.findings.into_iter().next(), both.pop()) else {
        return Err("the smaller program fails only now and then".into());
    };
    let nodes = (reduced.from.nodes, reduced.size.nodes);
    let failure = ReducedFailure::new(&reduced.case, &both.expected, &both.found, finding.message, nodes);
    Ok(Box::new(Smaller { failure, subject: form.into(), case: reduced.case, expected: both.expected, found: both.found }))
}
