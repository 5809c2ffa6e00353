//! What is allowed, and what a backend does.

use super::program::{Copies, Stress, copies};
use super::{Litmus, Numbered, Outcome, Step, orders};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use vyre_driver::{BackendError, DispatchConfig, VyreBackend};
use vyre_foundation::Report;
use vyre_foundation::case::Case;
use vyre_foundation::launch::LaunchConfig;
use vyre_reference::{Options, RunError, Schedule};
use vyre_worker::caught;

/// Why a test says nothing.
#[derive(Clone, PartialEq, Debug)]
pub enum LitmusError {
    /// The parameters cannot be used.
    Stress(String),
    /// The test is no program.
    Program(Report),
    /// The reference does not run it.
    Reference(RunError),
    /// The backend failed.
    Backend(BackendError),
    /// The backend panicked.
    Panicked(String),
    /// The outputs are not those of the program.
    Outputs,
}

impl fmt::Display for LitmusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LitmusError::Stress(problem) => f.write_str(problem),
            LitmusError::Program(report) => write!(f, "{report}"),
            LitmusError::Reference(error) => write!(f, "the reference does not run it: {error}"),
            LitmusError::Backend(error) => write!(f, "{error}"),
            LitmusError::Panicked(said) => write!(f, "the backend panicked: {said}"),
            LitmusError::Outputs => f.write_str("the backend gives other outputs than the program has"),
        }
    }
}

impl std::error::Error for LitmusError {}

/// What was seen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LitmusReport {
    /// The test.
    pub name: &'static str,
    /// Every outcome that was seen, and how often.
    pub seen: BTreeMap<Outcome, u64>,
    /// What the language allows.
    pub allowed: BTreeSet<Outcome>,
}

impl LitmusReport {
    /// What was seen and is not allowed: the failures.
    pub fn forbidden(&self) -> impl Iterator<Item = (&Outcome, u64)> {
        self.seen.iter().filter(|(outcome, _)| !self.allowed.contains(outcome)).map(|(outcome, count)| (outcome, *count))
    }

    /// What is allowed and was never seen.
    pub fn unseen(&self) -> impl Iterator<Item = &Outcome> {
        self.allowed.iter().filter(|outcome| !self.seen.contains_key(outcome))
    }

    /// Whether something was seen, and nothing that is forbidden.
    #[must_use]
    pub fn holds(&self) -> bool {
        !self.seen.is_empty() && self.forbidden().next().is_none()
    }
}

impl fmt::Display for LitmusReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.name)?;
        for (outcome, count) in &self.seen {
            let verdict = if self.allowed.contains(outcome) { "" } else { "  forbidden" };
            writeln!(f, "  {count:>10}  {outcome}{verdict}")?;
        }
        for outcome in self.unseen() {
            writeln!(f, "  {:>10}  {outcome}", "not seen")?;
        }
        Ok(())
    }
}

/// Runs a test on a backend, once per round, and counts what is seen.
///
/// # Errors
///
/// If nothing can be said; see [`LitmusError`].
pub fn run(backend: &dyn VyreBackend, litmus: &Litmus, stress: &Stress, rounds: u32) -> Result<LitmusReport, LitmusError> {
    if let Some(problem) = stress.problem() {
        return Err(LitmusError::Stress(problem));
    }
    let allowed = allowed(litmus)?;
    let copies = copies(litmus, &litmus.numbered(), stress).map_err(LitmusError::Program)?;
    let config = DispatchConfig { grid_override: Some([copies.groups, 1, 1]), ..DispatchConfig::default() };
    let mut seen = BTreeMap::new();
    for _ in 0..rounds {
        let outputs = caught(|| backend.dispatch_borrowed(&copies.program, &[], &config))
            .map_err(LitmusError::Panicked)?
            .map_err(LitmusError::Backend)?;
        for outcome in copies.outcomes(&outputs).ok_or(LitmusError::Outputs)? {
            *seen.entry(outcome).or_default() += 1;
        }
    }
    Ok(LitmusReport { name: litmus.name, seen, allowed })
}

/// Many copies as a dispatch.
pub(super) fn case(litmus: &Litmus, stress: &Stress) -> Result<Case, LitmusError> {
    if let Some(problem) = stress.problem() {
        return Err(LitmusError::Stress(problem));
    }
    let copies = copies(litmus, &litmus.numbered(), stress).map_err(LitmusError::Program)?;
    let config = DispatchConfig { grid_override: Some([copies.groups, 1, 1]), ..DispatchConfig::default() };
    Ok(Case { config, ..Case::new(copies.program, Vec::new()) })
}

/// What its copies saw.
pub(super) fn seen(litmus: &Litmus, stress: &Stress, outputs: &[Vec<u8>]) -> Result<Vec<Outcome>, LitmusError> {
    let copies = copies(litmus, &litmus.numbered(), stress).map_err(LitmusError::Program)?;
    copies.outcomes(outputs).ok_or(LitmusError::Outputs)
}

/// One copy under every interleaving of every order of its invocations' steps.
pub(super) fn allowed(litmus: &Litmus) -> Result<BTreeSet<Outcome>, LitmusError> {
    let one = Stress { copies: 1, blocks: 1, spacing: 1, permute: 1, delay: 0 };
    let [first, second] = litmus.numbered();
    let mut all = BTreeSet::new();
    for first in orders(&first) {
        for second in orders(&second) {
            let threads = [first.clone(), second];
            let copy = copies(litmus, &threads, &one).map_err(LitmusError::Program)?;
            for schedule in interleavings(threads.each_ref().map(|steps| atomics(steps))) {
                all.insert(under(&copy, schedule)?);
            }
        }
    }
    Ok(all)
}

fn under(copy: &Copies, order: Vec<u32>) -> Result<Outcome, LitmusError> {
    let launch = LaunchConfig { grid: Some([copy.groups, 1, 1]), ..LaunchConfig::default() };
    let options = Options { launch, schedule: Schedule::Atomics(order), ..Options::default() };
    let outputs = vyre_reference::run(&copy.program, &[], &options).map_err(LitmusError::Reference)?;
    copy.outcomes(&outputs).and_then(|mut all| all.pop()).ok_or(LitmusError::Outputs)
}

/// How many atomics an invocation does. One that stands behind a barrier waits there: an order that names it before its turn is the order in
/// which it goes first as soon as it can.
fn atomics(steps: &[Numbered]) -> usize {
    let is_atomic = |numbered: &&Numbered| match numbered.step {
        Step::Store(..) | Step::Load(_) | Step::Add(..) | Step::Exchange(..) | Step::Claim(..) => true,
        Step::PlainStore(..) | Step::PlainLoad(_) | Step::Barrier => false,
    };
    steps.iter().filter(is_atomic).count()
}

/// Every order of so many steps of two invocations.
fn interleavings([first, second]: [usize; 2]) -> Vec<Vec<u32>> {
    if first == 0 || second == 0 {
        return vec![[vec![0; first], vec![1; second]].concat()];
    }
    let with = |n: u32, rest: Vec<Vec<u32>>| rest.into_iter().map(move |order| [&[n][..], &order].concat());
    with(0, interleavings([first - 1, second])).chain(with(1, interleavings([first, second - 1]))).collect()
}
