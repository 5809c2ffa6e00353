//! The checked mode: whether one dispatch of a program gives the same bytes under every schedule, and if not, what is to blame.
//!
//! 1. One run, forward, over shadow memory (`shadow.rs`): races, reads of what nobody has written, accesses out of bounds, and atomics
//!    whose order may show. If it has no race and no such atomics, that run *proves* that every schedule gives its bytes, however
//!    large the dispatch is; most kernels end here.
//! 2. With a race, other schedules are run until one gives other bytes, as evidence. The race is the finding.
//! 3. With atomics whose order may show, other schedules are run over shadow memory until one has a race or gives other bytes; and if
//!    the dispatch is small, every order is run (`explore.rs`), which gives the set of legal outcomes.
//!
//! Findings, by code:
//!
//! - **W0501**, a data race: two accesses to one element, by different invocations, one of them a write, not both atomic, with no
//!   barrier between them. Stores of equal values to an element of 32 bits or more that nobody reads in that epoch are none. An
//!   atomic other than `load` counts as a write even if it changes nothing. Return and trap order as a barrier does: whoever waits
//!   at a barrier waits until all others of its workgroup wait too or are retired.
//! - **W0502**, the result depends on the order of atomics: the first pair of them that explains the difference.
//! - **W0503**, a plain load of an output element that nobody has written in this dispatch, or of an element of workgroup memory that
//!   nobody has written since it was zero. Legal: it is zero. An atomic that reads is not reported, because a counter that starts
//!   at zero is what zero is for; neither is a load that is part of a race, because the race explains it.
//! - **W0504**, accesses out of bounds, with their number. Legal: loads give 0, writes are dropped.
//!
//! The same finding at the same places is one, with a count and its first example.

mod commute;
mod explore;
mod finding;
mod shadow;

pub use explore::Gap;
pub use finding::{AccessSite, Difference, Finding, Kind};
pub use vyre_foundation::kernel::AccessKind;

use crate::dispatch::Prepared;
use crate::error::RunError;
use crate::faults::hooks::Faultless;
use crate::fuel::{Fuel, Limits};
use crate::observe::Unobserved;
use crate::plain::Options;
use crate::room::check_shadow;
use crate::schedule::Schedule;
use shadow::Shadow;
use std::collections::BTreeSet;
use std::fmt;
use vyre_foundation::ir::{NodeId, Program};
use vyre_foundation::{Diagnostic, Report, specialize, values};
use vyre_host_floats::with_default_state;

/// What a dispatch gives: its outputs, or a trap.
pub type Outcome = Result<Vec<Vec<u8>>, RunError>;

/// Whether two outcomes are the same to a caller: the bytes, or the tag and invocation of a trap. At which of several statements the
/// invocation trapped is told to people and is no part of the result.
fn same(a: &Outcome, b: &Outcome) -> bool {
    match (a, b) {
        (
            Err(RunError::Trap { tag, invocation, place: _ }),
            Err(RunError::Trap { tag: other_tag, invocation: other_invocation, place: _ }),
        ) => (tag, invocation) == (other_tag, other_invocation),
        (a, b) => a == b,
    }
}

/// How much to try.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Effort {
    /// Schedules beside `forward`, as long as none shows a difference.
    pub schedules: Vec<Schedule>,
    /// Executions in the search for all legal outcomes; 0 for no search.
    pub executions: u64,
    /// Steps that all executions of the search may take together.
    pub steps: u64,
    /// Legal outcomes after which the search gives up.
    pub outcomes: usize,
    /// Bytes of shadow memory, and of legal outcomes: a dispatch that needs more of the first is refused, of the second not searched on.
    pub memory: u64,
}

impl Default for Effort {
    /// The adversarial schedules, 10,000 executions of 16 million steps together, 1,000 outcomes: about a second at most. A gigabyte.
    fn default() -> Self {
        Effort { schedules: Schedule::adversarial(), executions: 10_000, steps: 1 << 24, outcomes: 1000, memory: 1 << 30 }
    }
}

/// What is known about the dispatch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Every schedule that was tried gives the same; all schedules do if the report is exhaustive.
    Deterministic,
    /// Two schedules give different results, without a race.
    OrderDependent,
    /// There is a data race.
    Racy,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Deterministic => "deterministic",
            Verdict::OrderDependent => "order-dependent",
            Verdict::Racy => "racy",
        })
    }
}

/// What the checked mode says about one dispatch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CheckedReport {
    /// What `forward` gives.
    pub outcome: Outcome,
    /// Whether the result depends on the schedule.
    pub verdict: Verdict,
    /// In the order of the program.
    pub findings: Vec<Finding>,
    /// A schedule that gives another outcome than `forward`.
    pub difference: Option<Difference>,
    /// Runs of the dispatch under different schedules.
    pub schedules_tried: u64,
    /// Why not every legal outcome is known; `None` if they all are.
    pub gap: Option<Gap>,
    /// Every legal outcome, the one of `forward` first.
    pub legal_outcomes: Option<Vec<Outcome>>,
}

impl CheckedReport {
    /// Whether the verdict holds for every schedule there is.
    #[must_use]
    pub fn exhaustive(&self) -> bool {
        self.gap.is_none()
    }

    /// Whether the promise holds for this dispatch: no race, and no order shows.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.verdict == Verdict::Deterministic
    }

    /// The findings drawn into the program, if there are any. `program` has its constants replaced.
    #[must_use]
    pub fn report(&self, program: &Program) -> Option<Report> {
        let diagnostics: Vec<Diagnostic> = self.findings.iter().map(Finding::diagnostic).collect();
        (!diagnostics.is_empty()).then(|| Report::about(program, diagnostics))
    }
}

/// Checks one dispatch. `options` are those of [`crate::run`]; the schedules are those of `effort`.
///
/// Fuel is per run, and at most 2³¹ − 1 steps. A dispatch whose shadow memory would be larger than `effort` allows is refused before
/// any of that memory is asked for.
pub fn check(program: &Program, inputs: &[&[u8]], options: &Options, effort: &Effort) -> Result<CheckedReport, RunError> {
    with_default_state(|| {
        let values = options.specialization.iter().map(|(name, value)| (name.as_str(), value));
        let program = specialize(program, values)?;
        let prepared = Prepared::new(&program, inputs, options)?;
        check_shadow(shadow::bytes(&prepared), effort.memory)?;
        let limits = Limits { fuel: options.fuel.min(shadow::MAX_FUEL), ..options.limits() };
        let mut check = Check { prepared: &prepared, shadow: Shadow::new(&prepared), limits, tried: 0 };
        check.run(effort)
    })
}

struct Check<'k> {
    prepared: &'k Prepared<'k>,
    shadow: Shadow<'k>,
    limits: Limits<'static>,
    tried: u64,
}

impl Check<'_> {
    fn run(&mut self, effort: &Effort) -> Result<CheckedReport, RunError> {
        let mut fuel = Fuel::new(self.limits);
        let outcome = self.observed(&Schedule::Forward, &mut fuel);
        if let Err(error @ (RunError::OutOfFuel { .. } | RunError::Rejected(_) | RunError::Timeout | RunError::Cancelled)) =
            outcome
        {
            return Err(error);
        }
        let steps = self.limits.fuel - fuel.left();
        if self.shadow.racy() {
            return Ok(self.racy(outcome, effort));
        }
        if !self.shadow.contended() {
            return Ok(self.report(outcome.clone(), Verdict::Deterministic, None, Ok(vec![outcome])));
        }
        let first_results = self.shadow.results().to_vec();
        let mut differs = None;
        let mut gap = None;
        for schedule in &effort.schedules {
            let again = self.observed(schedule, &mut Fuel::new(self.limits));
            if self.shadow.racy() {
                return Ok(self.racy(outcome, effort));
            }
            match again {
                Err(RunError::OutOfFuel { .. } | RunError::Timeout | RunError::Cancelled) => gap = Some(Gap::TooLarge),
                again if !same(&again, &outcome) => {
                    differs = Some((again, schedule.clone()));
                    break;
                }
                _ => {}
            }
        }
        let legal = self.search(&outcome, effort, steps, &mut differs);
        if self.shadow.racy() {
            return Ok(self.racy(outcome, effort));
        }
        let Some((other, schedule)) = differs else {
            return Ok(self.report(outcome, Verdict::Deterministic, None, legal.and_then(|legal| gap.map_or(Ok(legal), Err))));
        };
        let difference = self.difference(&outcome, &other, &schedule);
        self.blame(&schedule, &first_results, &difference);
        Ok(self.report(outcome, Verdict::OrderDependent, Some(difference), legal))
    }

    /// Runs it over shadow memory.
    fn observed(&mut self, schedule: &Schedule, fuel: &mut Fuel<'_>) -> Outcome {
        self.tried += 1;
        self.shadow.begin(schedule);
        self.prepared.run(self.prepared.storage.clone(), schedule, fuel, &mut self.shadow, &Faultless)
    }

    /// Every legal outcome, or why they are not known; and one that differs, if none was known.
    fn search(
        &mut self,
        outcome: &Outcome,
        effort: &Effort,
        steps: u64,
        differs: &mut Option<(Outcome, Schedule)>,
    ) -> Result<Vec<Outcome>, Gap> {
        if effort.executions == 0 {
            return Err(Gap::NotAsked);
        }
        let exploration = explore::explore(self.prepared, &mut self.shadow, self.limits, steps, effort);
        self.tried += exploration.executions;
        if differs.is_none() {
            *differs = exploration.outcomes.iter().find(|(other, _)| !same(other, outcome)).cloned();
        }
        match exploration.gap {
            Some(gap) => Err(gap),
            None => {
                let mut legal: Vec<Outcome> = exploration.outcomes.into_iter().map(|(outcome, _)| outcome).collect();
                // In place of the first; the order of the others says nothing.
                if let Some(n) = legal.iter().position(|legal| same(legal, outcome)) {
                    legal.swap(0, n);
                }
                Ok(legal)
            }
        }
    }

    /// The report on a race: with a schedule that makes it show, if there is one among those to be tried.
    fn racy(&mut self, outcome: Outcome, effort: &Effort) -> CheckedReport {
        let mut difference = None;
        for schedule in &effort.schedules {
            self.tried += 1;
            let again = self.prepared.run(
                self.prepared.storage.clone(),
                schedule,
                &mut Fuel::new(self.limits),
                &mut Unobserved,
                &Faultless,
            );
            if !same(&again, &outcome) && !matches!(again, Err(RunError::OutOfFuel { .. })) {
                difference = Some(self.difference(&outcome, &again, schedule));
                break;
            }
        }
        self.report(outcome, Verdict::Racy, difference, Err(Gap::Race))
    }

    /// Where two outcomes differ first.
    fn difference(&self, outcome: &Outcome, other: &Outcome, schedule: &Schedule) -> Difference {
        let said = |outcome: &Outcome| match outcome {
            Ok(_) => "no trap".to_string(),
            Err(error) => error.to_string(),
        };
        let (mut element, mut forward, mut another) = (None, said(outcome), said(other));
        if let (Ok(outputs), Ok(others)) = (outcome, other) {
            for (i, (bytes, others)) in self.prepared.outputs.iter().zip(outputs.iter().zip(others)) {
                let buffer = &self.prepared.kernel.buffers[*i];
                let size = buffer.element.bits().unwrap_or(8).div_ceil(8) as usize;
                if let Some(at) = bytes.iter().zip(others).position(|(a, b)| a != b) {
                    let shown = |bytes: &[u8]| {
                        let end = (at / size * size + size).min(bytes.len());
                        values::decode(&buffer.element, &bytes[at / size * size..end]).join(" ")
                    };
                    element = Some((buffer.name.clone(), (at / size) as u32));
                    (forward, another) = (shown(bytes), shown(others));
                    break;
                }
            }
        }
        Difference { schedule: schedule.clone(), element, forward, other: another }
    }

    /// Adds the finding that explains the difference: the first pair of atomics whose results differ, else one on the element that
    /// does, else the first.
    fn blame(&mut self, schedule: &Schedule, first_results: &[u64], difference: &Difference) {
        // Nothing but the results is wanted of this run.
        let _ = self.observed(schedule, &mut Fuel::new(self.limits));
        let results = self.prepared.kernel.accesses.iter().zip(first_results.iter().zip(self.shadow.results()));
        let differing: BTreeSet<NodeId> = results.filter(|(_, (a, b))| a != b).map(|(access, _)| access.node).collect();
        let differs = |place: NodeId| differing.contains(&place);
        let pairs = || self.shadow.contentions();
        let shown = |pair: &&Finding| differs(pair.access.place) || pair.other.as_ref().is_some_and(|other| differs(other.place));
        let there =
            |pair: &&Finding| difference.element.as_ref().is_some_and(|(name, n)| *name == pair.buffer && *n == pair.element);
        let pair = pairs().find(shown).or_else(|| pairs().find(there)).or_else(|| pairs().next());
        if let Some(pair) = pair.cloned() {
            let finding = Finding { schedule: schedule.clone(), difference: Some(difference.clone()), ..pair };
            self.shadow.findings().push(finding);
        }
    }

    fn report(
        &mut self,
        outcome: Outcome,
        verdict: Verdict,
        difference: Option<Difference>,
        legal: Result<Vec<Outcome>, Gap>,
    ) -> CheckedReport {
        let mut findings = std::mem::take(self.shadow.findings());
        let raced: Vec<NodeId> = findings
            .iter()
            .filter(|finding| finding.kind == Kind::Race)
            .flat_map(|finding| [Some(finding.access.place), finding.other.as_ref().map(|other| other.place)])
            .flatten()
            .collect();
        findings.retain(|finding| finding.kind != Kind::Unwritten || !raced.contains(&finding.access.place));
        findings.sort_by_key(|finding| (finding.access.place, finding.other.as_ref().map(|other| other.place), finding.kind));
        CheckedReport {
            outcome,
            verdict,
            findings,
            difference,
            schedules_tried: self.tried,
            gap: legal.as_ref().err().copied(),
            legal_outcomes: legal.ok(),
        }
    }
}
