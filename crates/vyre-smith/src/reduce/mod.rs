//! Smaller cases under a predicate: delta debugging over statements, then typed shrinking of everything that is left.
//!
//! A candidate is the best case so far after one step, mended where the step left something dangling. It is offered to the
//! predicate if it is smaller by an order without endless descent, was not offered before, is valid, can be launched,
//! and, if that was asked for, ends and is free of races. What the predicate says yes to is the new best.
//!
//! 1. *Normalise*: constants written out, every variable a name of its own, grid and output lengths said and not derived, so that later
//!    steps do not change what they are not about.
//! 2. *Coarse* steps as long as they help: many statements at once, halves first; one invocation; arms and bodies hoisted; runs of
//!    inputs taken out or cleared; whole expressions made zero.
//! 3. *Fine* steps until none is interesting: then the case is 1-minimal. Names are cleaned on the way.
//!
//! Nothing is random and no hash order shows, so the same case and answers give the same result. The predicate may panic, fail, or
//! contradict itself: what is given back is always a case that it has said yes to, and the last word of [`Reduced`] is whether it
//! does so again.

mod check_file;
mod elements;
mod literal;
mod measure;
mod observe;
mod rename;
mod step;
pub(crate) mod tree;
mod unused;
mod view;

pub use check_file::check_file;
pub use measure::Size;

use measure::Measure;
use std::collections::HashSet;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::time::Instant;
use step::Step;
use view::{Draft, View};
use vyre_foundation::ir::{Access, Fingerprint, Size as Extent};
use vyre_foundation::{Diagnostic, Report};
use vyre_host_floats::with_default_state;
use vyre_reference::checked::{Effort, check};
use vyre_reference::{Options, RunError, run};
use vyre_spec::ErrorCode;
use vyre_worker::{Case, caught};

/// What is asked of a reduction.
#[derive(Clone, Debug)]
pub struct Config {
    /// How often the predicate may be asked, the first and the last time included.
    pub attempts: u64,
    /// When to stop; the best so far is given back.
    pub deadline: Option<Instant>,
    /// The plain interpreter must end every candidate within this many steps, and within those of the case. A case that does not end
    /// in them itself is reduced without this. `None`: candidates are not run, and some may take very long.
    pub fuel: Option<u64>,
    /// Whether candidates must be deterministic by the checked mode, which runs them within `fuel`, or that of the case.
    pub race_free: bool,
    /// Elements that inputs and outputs of a case may have together. Every element of an input is a place where something can become
    /// smaller, and the list of these takes a few hundred bytes for each.
    pub elements: u64,
}

impl Default for Config {
    /// 20,000 attempts, no deadline, 4 million steps, races allowed, 4 million elements.
    fn default() -> Self {
        Config { attempts: 20_000, deadline: None, fuel: Some(1 << 22), race_free: false, elements: 1 << 22 }
    }
}

/// The predicate's answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Interest {
    /// What is looked for is still there.
    Yes,
    /// It is not.
    No,
    /// It cannot be told, and this is why; counts as no.
    Failed(String),
    /// Nobody wants to know any more: the reduction ends, with the best case so far.
    Stop,
}

impl From<bool> for Interest {
    fn from(yes: bool) -> Self {
        if yes { Interest::Yes } else { Interest::No }
    }
}

/// Where a reduction is, after each answer.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// How often the predicate was asked.
    pub attempts: u64,
    /// How often the best case became smaller.
    pub accepted: u64,
    /// How large it is now.
    pub size: Size,
    /// The best case so far.
    pub best: &'a Case,
}

/// Why a reduction ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// No single step makes a smaller case that is interesting.
    Minimal,
    /// The predicate was asked as often as it may be.
    Attempts,
    /// The time was over.
    Deadline,
    /// The predicate said so.
    Stopped,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            End::Minimal => "minimal",
            End::Attempts => "out of attempts",
            End::Deadline => "out of time",
            End::Stopped => "interrupted",
        })
    }
}

/// What came of a reduction.
#[derive(Clone, PartialEq, Debug)]
pub struct Reduced {
    /// The smallest case that the predicate has said yes to.
    pub case: Case,
    /// How large it is.
    pub size: Size,
    /// How large the case was at the start.
    pub from: Size,
    /// Why there is nothing smaller.
    pub end: End,
    /// Whether the predicate, asked once more at the end, said yes again.
    pub stable: bool,
    /// How often the predicate was asked.
    pub attempts: u64,
    /// How often the best case became smaller.
    pub accepted: u64,
    /// How often the predicate panicked or failed.
    pub failures: u64,
    /// What it said the first time it did.
    pub first_failure: Option<String>,
}

/// Why there is nothing to reduce.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Error {
    /// The case cannot be run: its program, constants, inputs or launch are wrong.
    Invalid(Report),
    /// The predicate says no to the case itself.
    NotInteresting,
    /// The predicate failed on the case itself.
    Failed(String),
    /// The case itself races, or depends on the order of invocations, and that is not to be.
    NotDeterministic,
    /// The predicate ended it with its first answer.
    Stopped,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Invalid(report) => report.fmt(f),
            Error::NotInteresting => f.write_str("the case is not interesting to begin with"),
            Error::Failed(why) => write!(f, "the predicate fails on the case itself: {why}"),
            Error::NotDeterministic => f.write_str("the case is not deterministic to begin with"),
            Error::Stopped => f.write_str("it was ended before it began"),
        }
    }
}

impl std::error::Error for Error {}

/// The smallest case it can find for which `interesting` says yes. `progress` hears of every answer. Both are called under the
/// default float state.
pub fn reduce(
    case: Case,
    config: &Config,
    interesting: &mut dyn FnMut(&Case) -> Interest,
    progress: &mut dyn FnMut(&Progress<'_>),
) -> Result<Reduced, Error> {
    with_default_state(|| reduced(case, config, interesting, progress))
}

fn reduced(
    case: Case,
    config: &Config,
    interesting: &mut dyn FnMut(&Case) -> Interest,
    progress: &mut dyn FnMut(&Progress<'_>),
) -> Result<Reduced, Error> {
    let view = View::of(case).map_err(Error::Invalid)?;
    check_elements(&view, config).map_err(Error::Invalid)?;
    let mut conditions = Conditions { fuel: config.fuel, race_free: config.race_free };
    if conditions.race_free && !conditions.hold(&view) {
        return Err(Error::NotDeterministic);
    }
    if !conditions.hold(&view) {
        conditions.fuel = None;
    }
    let measure = Measure::of(&view);
    let mut reducer = Reducer {
        measure,
        view,
        conditions,
        tried: HashSet::new(),
        config,
        interesting,
        progress,
        attempts: 0,
        accepted: 0,
        failures: 0,
        first_failure: None,
        stopped: None,
    };
    let from = reducer.measure.size;
    let case = reducer.view.case.clone();
    match reducer.ask(&case) {
        Interest::Yes => {}
        Interest::No => return Err(Error::NotInteresting),
        Interest::Failed(why) => return Err(Error::Failed(why)),
        Interest::Stop => return Err(Error::Stopped),
    }
    reducer.tried.insert(key(&case));
    reducer.normalise();
    reducer.coarse();
    reducer.fine();
    // Without a question left it is not known, and not claimed.
    let stable = reducer.stopped != Some(End::Stopped) && reducer.attempts < config.attempts && {
        let case = reducer.view.case.clone();
        reducer.ask(&case) == Interest::Yes
    };
    Ok(Reduced {
        size: reducer.measure.size,
        from,
        end: reducer.stopped.unwrap_or(End::Minimal),
        stable,
        attempts: reducer.attempts,
        accepted: reducer.accepted,
        failures: reducer.failures,
        first_failure: reducer.first_failure,
        case: reducer.view.case,
    })
}

/// Every valid case that is one step smaller than this one, the steps that take much away first. A case is 1-minimal for a predicate
/// that says no to all of them.
///
/// `None` if the case itself is not valid.
#[must_use]
pub fn smaller(case: &Case) -> Option<Vec<Case>> {
    with_default_state(|| {
        let view = View::of(case.clone()).ok()?;
        let measure = Measure::of(&view);
        let candidates = step::all(&view).into_iter().filter_map(|step| View::of(step::apply(&view, &step)?.into_case()).ok());
        Some(candidates.filter(|candidate| Measure::of(candidate).is_below(&measure)).map(|candidate| candidate.case).collect())
    })
}

/// Refuses a case that is larger than it may be.
fn check_elements(view: &View, config: &Config) -> Result<(), Report> {
    let elements: u64 = view.launch.lengths.iter().map(|length| u64::from(*length)).sum();
    if elements <= config.elements {
        return Ok(());
    }
    Err(too_large(elements, config.elements))
}

/// Why a case of so many elements is not reduced.
#[must_use]
pub fn too_large(elements: u64, allowed: u64) -> Report {
    Report::single(
        Diagnostic::new(ErrorCode::E0708, format!("the buffers have {elements} elements, too many to look at each"))
            .expected(format!("at most {allowed} elements"))
            .found(format!("{elements} elements"))
            .help("reduce a smaller launch, or give shorter inputs"),
    )
}

/// What the plain interpreter must say about a candidate.
struct Conditions {
    fuel: Option<u64>,
    race_free: bool,
}

impl Conditions {
    fn hold(&self, view: &View) -> bool {
        let case = &view.case;
        let options = |fuel| Options { fuel, ..Options::from(case) };
        let inputs = case.input_slices();
        if self.race_free {
            let options = options(self.fuel.unwrap_or(u64::MAX).min(case.fuel));
            return check(&case.program, &inputs, &options, &Effort::default()).is_ok_and(|report| report.holds());
        }
        let Some(fuel) = self.fuel else { return true };
        !matches!(run(&case.program, &inputs, &options(fuel.min(case.fuel))), Err(RunError::OutOfFuel { .. }))
    }
}

/// What tells cases apart.
type Key = (Fingerprint, u64);

fn key(case: &Case) -> Key {
    let mut hasher = DefaultHasher::new();
    let config = &case.config;
    (&case.inputs, config.grid_override, config.workgroup_override, &config.output_counts).hash(&mut hasher);
    for (name, value) in config.specialization.iter() {
        (name, value.to_string()).hash(&mut hasher);
    }
    (case.program.fingerprint(), hasher.finish())
}

struct Reducer<'a> {
    /// The best case so far.
    view: View,
    measure: Measure,
    conditions: Conditions,
    /// What was looked at, whatever came of it.
    tried: HashSet<Key>,
    config: &'a Config,
    interesting: &'a mut dyn FnMut(&Case) -> Interest,
    progress: &'a mut dyn FnMut(&Progress<'_>),
    attempts: u64,
    accepted: u64,
    failures: u64,
    first_failure: Option<String>,
    stopped: Option<End>,
}

impl Reducer<'_> {
    /// Asks the predicate; its panics are failures.
    fn ask(&mut self, case: &Case) -> Interest {
        self.attempts += 1;
        let interesting = &mut self.interesting;
        let answer = caught(|| interesting(case)).unwrap_or_else(|message| Interest::Failed(format!("panicked: {message}")));
        match &answer {
            Interest::Yes | Interest::No => {}
            Interest::Failed(why) => {
                self.failures += 1;
                self.first_failure.get_or_insert_with(|| why.clone());
            }
            Interest::Stop => self.stopped = Some(End::Stopped),
        }
        answer
    }

    /// Whether to stop. One attempt is kept for the question at the end.
    fn is_over(&mut self) -> bool {
        if self.stopped.is_none() {
            if self.attempts + 1 >= self.config.attempts {
                self.stopped = Some(End::Attempts);
            } else if self.config.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                self.stopped = Some(End::Deadline);
            }
        }
        self.stopped.is_some()
    }

    /// Takes a candidate if it is smaller, new, valid and interesting.
    fn offer(&mut self, draft: Option<Draft>) -> bool {
        draft.is_some_and(|draft| self.judge(draft.into_case(), true))
    }

    fn judge(&mut self, case: Case, smaller: bool) -> bool {
        if self.is_over() {
            return false;
        }
        // What is cheap to know comes first: validation takes longer than all the rest.
        let best = self.measure.size;
        if smaller && (measure::nodes(&case.program), measure::input_words(&case)) > (best.nodes, best.input_words) {
            return false;
        }
        if !self.tried.insert(key(&case)) {
            return false;
        }
        let Ok(view) = View::of(case) else { return false };
        if check_elements(&view, self.config).is_err() {
            return false;
        }
        let measure = Measure::of(&view);
        if smaller && !measure.is_below(&self.measure) || !self.conditions.hold(&view) {
            return false;
        }
        let yes = self.ask(&view.case) == Interest::Yes;
        if yes {
            (self.view, self.measure) = (view, measure);
            self.accepted += 1;
        }
        let size = self.measure.size;
        (self.progress)(&Progress { attempts: self.attempts, accepted: self.accepted, size, best: &self.view.case });
        yes
    }

    /// Tries each step of a list. After a step that was taken the list is made anew, and tried on from a little before that place.
    /// Whether one was taken.
    fn sweep(&mut self, list: impl Fn(&View) -> Vec<Step>) -> bool {
        let before = self.accepted;
        let mut steps = list(&self.view);
        let mut n = 0;
        while n < steps.len() && self.stopped.is_none() {
            if self.offer(step::apply(&self.view, &steps[n])) {
                steps = list(&self.view);
                n = n.saturating_sub(8);
            } else {
                n += 1;
            }
        }
        self.accepted > before
    }

    /// Delta debugging: `list` gives things, `step` deals with some of them at once. Halves first, then ever smaller runs, from the
    /// end, where nothing depends on what goes.
    fn halve<T: Clone>(&mut self, list: impl Fn(&View) -> Vec<T>, step: impl Fn(Vec<T>) -> Step) {
        let mut size = list(&self.view).len();
        while size > 0 {
            let mut things = list(&self.view);
            let mut end = things.len();
            while end > 0 && self.stopped.is_none() {
                let start = end.saturating_sub(size);
                if self.offer(step::apply(&self.view, &step(things[start..end].to_vec()))) {
                    things = list(&self.view);
                }
                end = start.min(things.len());
            }
            size /= 2;
        }
    }

    /// See the top of this file. All at once, or what can be had of it.
    fn normalise(&mut self) {
        let changes: [fn(&View, &mut Draft) -> bool; 3] = [
            |view, draft| {
                let constants = step::apply(view, &Step::Constants);
                constants.map(|constants| *draft = constants).is_some()
            },
            |_, draft| rename::make_unique(draft),
            pin,
        ];
        let case = self.view.case.clone();
        let mut draft = Draft::of(&case);
        let mut changed = false;
        for change in changes {
            changed |= change(&self.view, &mut draft);
        }
        if !changed || self.judge(draft.into_case(), false) {
            return;
        }
        for change in changes {
            let mut draft = Draft::of(&self.view.case);
            if change(&self.view, &mut draft) {
                self.judge(draft.into_case(), false);
            }
        }
    }

    fn coarse(&mut self) {
        loop {
            let before = self.measure.size;
            self.sweep(|_| vec![Step::Single, Step::Unused]);
            self.halve(step::statement_places, Step::RemoveAll);
            self.sweep(|_| vec![Step::Prune, Step::Unused]);
            self.sweep(step::statements);
            self.columns();
            self.halve(step::cells, Step::Zeros);
            self.halve(step::roots, Step::ZeroAll);
            self.sweep(|_| vec![Step::Single, Step::Unused]);
            self.sweep(step::geometry);
            // Going on pays as long as it takes away an eighth; of a program without statements nothing can be taken.
            let size = self.measure.size;
            if self.stopped.is_some() || size == before || size.nodes * 8 > before.nodes * 7 {
                return;
            }
        }
    }

    /// Takes runs of elements out of all inputs alike, so that what one invocation reads moves to another as a whole.
    fn columns(&mut self) {
        let columns = |view: &View| -> Vec<u32> {
            let inputs = &view.case.program.interface().inputs;
            (0..inputs.iter().map(|i| view.launch.lengths[*i]).max().unwrap_or(0)).collect()
        };
        let range = |columns: Vec<u32>| -> Range<u32> {
            columns.first().copied().unwrap_or(0)..columns.last().map_or(0, |last| last + 1)
        };
        self.halve(columns, |run| Step::Columns(range(run)));
    }

    fn fine(&mut self) {
        while self.sweep(step::all) {}
    }
}

/// Says the grid and the lengths of outputs that were derived, and makes an overridden workgroup size the declared one.
fn pin(view: &View, draft: &mut Draft) -> bool {
    let mut changed = false;
    if draft.config.workgroup_override.take().is_some() {
        draft.parts.workgroup = view.launch.workgroup_size.map(Extent::Lit);
        changed = true;
    }
    if draft.config.grid_override != Some(view.launch.grid) && !view.launch.grid.contains(&0) {
        draft.config.grid_override = Some(view.launch.grid);
        changed = true;
    }
    for (decl, length) in draft.parts.buffers.iter_mut().zip(&view.launch.lengths) {
        if decl.access == Access::Output && decl.count.is_none() {
            decl.count = Some(Extent::Lit(*length));
            draft.config.output_counts.remove(decl.name.as_str());
            changed = true;
        }
    }
    changed
}
