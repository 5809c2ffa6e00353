//! How long a device is waited for that has been seen to hang.
//!
//! A dispatch that takes its whole deadline is a hang, and the deadline is long, because a slow machine must never be blamed. A device
//! that hangs on hundreds of dispatches would then be waited for for hours. So once a dispatch has hung in a run,
//!
//! - a case gets the time that the longest call of its section took, or of the run if its section has none, times [`FACTOR`], at least
//!   [`SHORTEST`] and at most the deadline. What takes longer than that is *suspected*, which is no finding.
//! - a suspicion is confirmed with the whole deadline, once for each section, and until [`CONFIRMED`] deadlines were waited in the run.
//!   A dispatch of many cases is halved first, so that what is confirmed is a single case.
//! - what is suspected beyond that is given up: it was not run, and counts neither as passed nor as failed. After [`IN_A_UNIT`] of
//!   these the rest of the unit is given up unasked; when no time is left to confirm anything, so are further units of ops that hang.
//!
//! A deadline that is not longer than [`SHORTEST`] stays as it is, and every case that hangs is found.

use super::Examiner;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use vyre_foundation::case::Case;
use vyre_worker::{Answer, Failure, Patience, Sequence, Subject};

/// The least that a case gets.
const SHORTEST: Duration = Duration::from_secs(3);

/// How many times as long as what was measured a case may take.
const FACTOR: u32 = 10;

/// Deadlines that are waited for hangs, all threads together, until nothing more is confirmed.
const CONFIRMED: u32 = 4;

/// Cases that hang, after which the rest of their unit is given up.
const IN_A_UNIT: usize = 3;

/// What is known about hangs in a run.
#[derive(Default)]
pub(crate) struct Hangs(Mutex<Known>);

#[derive(Default)]
struct Known {
    /// The longest call of which everything was answered.
    longest: Duration,
    by_section: BTreeMap<String, OfSection>,
    /// Ops of which something hung, or was suspected.
    ops: BTreeSet<String>,
    /// What was waited for cases that hung.
    waited: Duration,
    has_hung: bool,
}

#[derive(Default)]
struct OfSection {
    longest: Option<Duration>,
    /// A dispatch took the whole deadline, and which of its cases it is about is not known yet.
    is_owed: bool,
    /// What hung for the whole deadline by itself.
    located: Option<String>,
}

impl Known {
    /// Whether a suspicion in this section is worth the whole deadline.
    fn may_confirm(&self, section: &str, full: Duration) -> bool {
        let of = self.by_section.get(section);
        let is_open = of.is_none_or(|of| of.located.is_none());
        is_open && (self.waited < full * CONFIRMED || of.is_some_and(|of| of.is_owed))
    }

    fn time(&self, section: &str, full: Duration) -> Duration {
        let longest = self.by_section.get(section).and_then(|of| of.longest).unwrap_or(self.longest);
        if self.has_hung { (longest * FACTOR).clamp(SHORTEST, full) } else { full }
    }

    /// A call took so long, and everything was answered.
    fn took(&mut self, section: &str, time: Duration) {
        self.longest = self.longest.max(time);
        let longest = &mut self.section(section).longest;
        *longest = Some(longest.map_or(time, |before| before.max(time)));
    }

    fn section(&mut self, section: &str) -> &mut OfSection {
        self.by_section.entry(section.into()).or_default()
    }

    /// Why something is not waited for.
    fn reason(&self, section: &str, time: Duration) -> String {
        let like = match self.by_section.get(section).and_then(|of| of.located.as_deref()) {
            Some(case) => format!("hangs like {case}"),
            None => "other parts of the suite hang on this device".into(),
        };
        format!("no answer within {time:?}, and no longer waited for: {like}")
    }
}

impl Hangs {
    fn known(&self) -> MutexGuard<'_, Known> {
        // It is changed in single steps, so it is whole even after a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where cases belong that are asked for, so that they are compared with what is like them.
#[derive(Default)]
pub(super) struct Place {
    section: String,
    op: String,
    /// Cases and dispatches of the unit that were given up.
    hung: usize,
}

/// Is told what hung for the whole deadline, and for how long.
pub(crate) type OnHang<'s> = Box<dyn FnMut(&str, Duration) + Send + 's>;

/// What is asked for in one call.
#[derive(Clone, Copy)]
pub(super) enum Asked<'a> {
    Cases(&'a [Case]),
    Sequence(&'a Sequence),
}

impl Asked<'_> {
    fn count(self) -> usize {
        match self {
            Asked::Cases(cases) => cases.len(),
            Asked::Sequence(_) => 1,
        }
    }

    fn run(self, subject: &mut dyn Subject) -> Vec<Answer> {
        match self {
            Asked::Cases(cases) => subject.run_batch(cases),
            Asked::Sequence(sequence) => vec![subject.run_sequence(sequence).into()],
        }
    }

    fn only(&self, n: usize) -> Asked<'_> {
        match self {
            Asked::Cases(cases) => Asked::Cases(&cases[n..=n]),
            Asked::Sequence(sequence) => Asked::Sequence(sequence),
        }
    }
}

impl<'s> Examiner<'s> {
    /// The same, with what is known about hangs in the run.
    pub fn with_hangs(self, hangs: Arc<Hangs>, on_hang: OnHang<'s>) -> Self {
        Examiner { hangs: Some(hangs), on_hang: Some(on_hang), ..self }
    }

    /// What is asked for from now on belongs to this unit. Gives why there is no use in asking, if so.
    pub fn begin(&mut self, section: &str, op: &str) -> Option<String> {
        self.place = Place { section: section.into(), op: op.into(), hung: 0 };
        let known = self.hangs.as_ref()?.known();
        let full = self.subjects[0].deadline().filter(|full| *full > SHORTEST)?;
        let is_hopeless = known.waited >= full * CONFIRMED && known.ops.contains(op) && !known.may_confirm(section, full);
        is_hopeless.then(|| format!("not asked for: other cases of {op} hang, each for {full:?} or longer than it is waited for"))
    }

    /// Asks a subject; each of the cases by itself is a dispatch of one case or of many.
    pub(super) fn ask(&mut self, subject: usize, asked: Asked<'_>, is_alone: &dyn Fn(usize) -> bool) -> Vec<Answer> {
        let Examiner { subjects, hangs, place, on_hang, .. } = self;
        let subject = &mut *subjects[subject];
        let Place { section, op, hung } = place;
        let (Some(hangs), Some(full)) = (hangs, subject.deadline().filter(|full| *full > SHORTEST)) else {
            let answers = asked.run(subject);
            let time = answers.iter().find_map(|answer| match answer.outcome {
                Err(Failure::Hung(time)) => Some(time),
                Ok(_) | Err(_) => None,
            });
            if let (Some(time), Some(on_hang), true) = (time, on_hang, *hung == 0) {
                // Once for each unit.
                *hung = 1;
                on_hang(section, time);
            }
            return answers;
        };
        let (patience, over) = {
            let known = hangs.known();
            let time = known.time(section, full);
            let is_over = *hung >= IN_A_UNIT && !known.may_confirm(section, full);
            let then = Known { has_hung: true, longest: known.longest, ..Known::default() }.time("", full).min(full);
            let patience = Patience { deadline: time, then: time.min(then), hangs: IN_A_UNIT };
            (patience, is_over.then(|| known.reason(section, time)))
        };
        if let Some(why) = over {
            return (0..asked.count()).map(|_| Err(Failure::GivenUp(why.clone())).into()).collect();
        }
        subject.wait_for(patience);
        let began = Instant::now();
        let mut answers = asked.run(subject);
        let has_hung = |answer: &Answer| matches!(answer.outcome, Err(Failure::Hung(_) | Failure::GivenUp(_)));
        if !answers.iter().any(has_hung) {
            hangs.known().took(section, began.elapsed());
            return answers;
        }
        for (n, answer) in answers.iter_mut().enumerate() {
            let time = match answer.outcome {
                Err(Failure::Hung(time)) => time,
                Err(Failure::GivenUp(_)) => {
                    let known = hangs.known();
                    answer.outcome = Err(Failure::GivenUp(known.reason(section, patience.then)));
                    *hung += 1;
                    continue;
                }
                Ok(_) | Err(_) => continue,
            };
            let mut known = hangs.known();
            known.waited += time;
            known.ops.insert(op.clone());
            let may_confirm = known.may_confirm(section, full);
            let mut tell = |known: &mut Known, is_alone: bool| {
                known.has_hung = true;
                let what = section.clone();
                let of = known.section(section);
                let is_new = of.located.is_none() && (is_alone || !of.is_owed);
                of.is_owed |= !is_alone;
                if is_alone {
                    of.located.get_or_insert_with(|| format!("a case of {what} that gave no answer for {full:?}"));
                }
                if let Some(on_hang) = on_hang.as_mut().filter(|_| is_new) {
                    on_hang(section, full);
                }
            };
            if time >= full {
                tell(&mut known, is_alone(n));
            } else if is_alone(n) && may_confirm {
                drop(known);
                subject.wait_for(Patience::even(full));
                let began = Instant::now();
                let again = asked.only(n).run(subject).pop();
                let took = began.elapsed();
                *answer = again.unwrap_or_else(|| Err(Failure::NotRun("the subject gave no answer".into())).into());
                let mut known = hangs.known();
                if matches!(answer.outcome, Err(Failure::Hung(_))) {
                    known.waited += full;
                    tell(&mut known, true);
                } else {
                    // It is only slow, and so may others be.
                    known.took(section, took);
                }
            } else if is_alone(n) || !may_confirm {
                *hung += 1;
                answer.outcome = Err(Failure::GivenUp(known.reason(section, time)));
            }
        }
        answers
    }

    /// Runs a case twice, each time after others, from which nobody wants to know anything. What a device remembers of before is gone if
    /// there are others.
    pub fn twice(&mut self, before: &[Case], case: &Case) -> Vec<Answer> {
        if before.is_empty() {
            return self.ask(0, Asked::Cases(&[case.clone(), case.clone()]), &|_| true);
        }
        let sequence: Vec<Case> = before.iter().chain([case]).cloned().collect();
        let mut answers = Vec::new();
        for _ in 0..2 {
            self.subjects[0].renew();
            answers.extend(self.ask(0, Asked::Cases(&sequence), &|_| true).pop());
        }
        answers
    }

    /// Whether it is known what becomes of a dispatch whose first run gave this: it is not waited for a second time.
    pub(super) fn is_settled(&self, answer: Option<&Answer>) -> bool {
        let is_patient = self.hangs.is_some() && self.subjects[0].deadline().is_some_and(|full| full > SHORTEST);
        is_patient && answer.is_some_and(|answer| matches!(answer.outcome, Err(Failure::Hung(_) | Failure::GivenUp(_))))
    }

    /// Whether a failure is a hang that was not waited for to the end, so that it proves nothing.
    pub(super) fn is_suspicion(&self, failure: &Failure) -> bool {
        let full = self.hangs.as_ref().and_then(|_| self.subjects[0].deadline());
        matches!((failure, full), (Failure::Hung(time), Some(full)) if *time < full)
    }
}
