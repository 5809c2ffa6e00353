//! What a failure needs: the case alone, or others before it in the same process.
//!
//! A device can remember what it should not: a cache, memory that was not cleared, a handle that was used again. Such a case agrees when
//! it runs by itself. So an examiner keeps the last dispatches that each of its subjects was given, up to [`CASES`] of [`BYTES`]
//! together, and a failure that does not show alone in a fresh process runs again behind them; those that it does not need are then
//! left out, many at once and then one by one, as a pool does with what comes before a crash.

use super::Examiner;
use super::patience::Asked;
use std::collections::VecDeque;
use std::time::Instant;
use vyre_foundation::case::Case;
use vyre_worker::{Failure, Outputs, Verdict, judge};

const CASES: usize = 512;
const BYTES: usize = 8 << 20;

/// How often a sequence is run to find out what it needs.
const ATTEMPTS: usize = 120;

/// The last dispatches of a subject.
#[derive(Default)]
pub(super) struct Log {
    cases: VecDeque<Case>,
    bytes: usize,
}

fn bytes(case: &Case) -> usize {
    case.inputs.iter().map(Vec::len).sum()
}

impl Log {
    pub fn add(&mut self, cases: impl IntoIterator<Item = Case>) {
        for case in cases {
            self.bytes += bytes(&case);
            self.cases.push_back(case);
            while self.cases.len() > CASES || self.bytes > BYTES {
                self.bytes -= self.cases.pop_front().as_ref().map_or(0, bytes);
            }
        }
    }
}

/// What shows a failure again.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Shows {
    /// The case by itself, in a fresh process.
    Alone,
    /// The case after these.
    After(Vec<Case>),
    /// Neither it nor it after so many that came before it.
    Never(usize),
}

impl Examiner<'_> {
    /// Keeps what its subjects are given from now on.
    pub fn with_history(mut self) -> Self {
        self.logs = self.subjects.iter().map(|_| Log::default()).collect();
        self
    }

    /// Which subjects a salt chooses, in the order in which they run a dispatch.
    pub fn chosen(&self, salt: u64) -> [usize; 2] {
        let count = self.subjects.len();
        [salt as usize % count, (salt as usize + 1) % count]
    }

    /// What this subject needs to be wrong about a case again, which it ran as a part of the dispatch `of`. Stops looking when the time
    /// is over; what it has found until then shows the failure, and may be longer than it has to be.
    pub fn shows(
        &mut self,
        subject: usize,
        case: &Case,
        of: Option<&Case>,
        expected: &Result<Outputs, Failure>,
        until: Instant,
    ) -> Shows {
        if self.fails_after(subject, &[], case, expected) {
            return Shows::Alone;
        }
        let all: Vec<Case> = self.logs.get(subject).map_or_else(Vec::new, |log| log.cases.iter().cloned().collect());
        let at = all.iter().rposition(|other| Some(other) == of || other == case);
        let mut attempts = ATTEMPTS;
        // What came later may have undone it; if the dispatch is not among them, nobody knows what came later.
        let known: Vec<&[Case]> = at.map(|at| &all[..at]).into_iter().chain([&all[..]]).collect();
        let Some(before) =
            known.into_iter().find(|before| !before.is_empty() && self.fails_after(subject, before, case, expected))
        else {
            return Shows::Never(all.len());
        };
        let mut needed: Vec<Case> = before.to_vec();
        // Mostly it is what came just before.
        let mut last = 1;
        while last < needed.len() && attempts > 0 {
            attempts -= 1;
            let end = needed[needed.len() - last..].to_vec();
            if self.fails_after(subject, &end, case, expected) {
                needed = end;
                break;
            }
            last *= 4;
        }
        let mut step = needed.len().div_ceil(2);
        loop {
            let (mut at, before) = (0, needed.len());
            while at < needed.len() && attempts > 0 && Instant::now() < until {
                attempts -= 1;
                let rest = needed.iter().enumerate().filter(|(n, _)| !(at..at + step).contains(n));
                let fewer: Vec<Case> = rest.map(|(_, case)| case.clone()).collect();
                if !fewer.is_empty() && self.fails_after(subject, &fewer, case, expected) {
                    needed = fewer;
                } else {
                    at += step;
                }
            }
            if attempts == 0 || Instant::now() >= until || (step <= 1 && needed.len() == before) {
                return Shows::After(needed);
            }
            step = step.div_ceil(2);
        }
    }

    /// What a subject gives in a fresh process.
    pub fn again(&mut self, subject: usize, case: &Case) -> Result<Outputs, Failure> {
        self.subjects[subject].renew();
        let answer = self.ask(subject, Asked::Cases(std::slice::from_ref(case)), &|_| true).pop();
        answer.map_or_else(|| Err(Failure::NotRun("the subject gave no answer".into())), |answer| answer.outcome)
    }

    /// Whether a subject is wrong about a case in a fresh process, after others.
    fn fails_after(&mut self, subject: usize, before: &[Case], case: &Case, expected: &Result<Outputs, Failure>) -> bool {
        let sequence: Vec<Case> = before.iter().chain([case]).cloned().collect();
        self.subjects[subject].renew();
        let answer = self.ask(subject, Asked::Cases(&sequence), &|_| true).pop();
        answer.is_some_and(|answer| matches!(judge(expected, &answer.outcome), Verdict::Wrong(_)))
    }
}
