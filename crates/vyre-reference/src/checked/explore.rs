//! Every order of a small dispatch: all legal outcomes, each order of atomics that matters run once.
//!
//! In a program without races only atomics can show the order of invocations, so a schedule is the order in which invocations do
//! their atomics, and two schedules that differ in the order of atomics that commute, or are ordered by a barrier, are the same.
//! This is stateless search with dynamic partial-order reduction (Abdulla, Aronsson, Jonsson, Sagonas: *Optimal dynamic partial order
//! reduction*, POPL 2014; the algorithm with source sets and sleep sets). An execution is run to its end. Whenever an atomic
//! does not commute with an earlier one that it was not bound to follow, the other order of the two is put on the list of the point
//! where the earlier one was chosen. The search goes on at the deepest point with something on its list, from the start of the
//! dispatch: dispatches are small here, and running one again is simpler than going back.
//!
//! What it tries are interleavings. The language promises less: relaxed atomics of one invocation on *different* elements may be seen
//! in another order by others, and subgroup operations order nothing. Where that could matter the result says so ([`Gap`]).

use super::commute::Class;
use super::shadow::Shadow;
use super::{Effort, Outcome, same};
use crate::dispatch::{Dispatch, Memory, Prepared};
use crate::error::RunError;
use crate::faults::hooks::Faultless;
use crate::fuel::{Fuel, Limits, Stopped};
use crate::group::Group;
use crate::invocation::{Status, World};
use crate::observe::Unobserved;
use crate::schedule::Schedule;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use vyre_foundation::ir;
use vyre_foundation::kernel::StmtKind;

/// Why not every legal outcome is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Gap {
    /// There is a race: what it leaves in memory is unspecified.
    Race,
    /// The dispatch has more invocations, takes more steps or has more orders than are tried.
    TooLarge,
    /// An invocation uses atomics on several contended elements, which others may see in another order.
    RelaxedAtomics,
    /// Subgroup operations order nothing, and the interpreter cannot but order what is before and after them.
    Subgroups,
    /// Only the schedules that were asked for were tried.
    NotAsked,
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Gap::Race => "what a race leaves in memory is unspecified",
            Gap::TooLarge => "there are too many orders to try all",
            Gap::RelaxedAtomics => "relaxed atomics on several elements can be seen in more orders than the interpreter has",
            Gap::Subgroups => "subgroup operations order nothing, which the interpreter cannot show",
            Gap::NotAsked => "only the schedules that were asked for were tried",
        })
    }
}

/// Outcomes that were found, each with a schedule that gives it.
pub(crate) struct Exploration {
    pub outcomes: Vec<(Outcome, Schedule)>,
    pub executions: u64,
    pub gap: Option<Gap>,
}

/// An atomic that an invocation is about to do.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Ahead {
    invocation: u32,
    /// Buffer, workgroup if its memory, and element; `None` out of bounds.
    element: Option<(u32, Option<u32>, u32)>,
    class: Class,
    /// What a store writes.
    value: u64,
}

impl Ahead {
    fn depends(&self, other: &Ahead) -> bool {
        let same = self.element.is_some() && self.element == other.element;
        same && !self.class.commutes(other.class, self.value == other.value)
    }
}

/// An atomic that was done.
struct Event {
    what: Ahead,
    group: u32,
    /// Its epoch, and the first since the last grid barrier.
    epoch: u32,
    grid: u32,
    /// By invocation: how many of its events happen before this one or are this one.
    clock: Vec<u32>,
}

impl Event {
    fn before(&self, clock: &[u32]) -> bool {
        let own = self.what.invocation as usize;
        self.clock[own] <= clock[own]
    }
}

/// A point where an invocation was chosen.
struct Choice {
    chosen: u32,
    /// Every invocation that could have been.
    ahead: Vec<Ahead>,
    /// Those to be tried: the source set.
    wanted: Vec<u32>,
    /// Those that have been tried, here or where it comes to the same.
    asleep: Vec<u32>,
}

impl Choice {
    fn ahead_of(&self, invocation: u32) -> Option<&Ahead> {
        self.ahead.iter().find(|ahead| ahead.invocation == invocation)
    }

    /// Those asleep that stay so after the choice.
    fn still_asleep(&self) -> Vec<u32> {
        let Some(chosen) = self.ahead_of(self.chosen) else { return Vec::new() };
        let stays = |n: &&u32| self.ahead_of(**n).is_some_and(|ahead| !ahead.depends(chosen));
        self.asleep.iter().filter(stays).copied().collect()
    }
}

struct Search<'a, 'k> {
    prepared: &'a Prepared<'k>,
    choices: Vec<Choice>,
    /// One per choice that has been executed.
    events: Vec<Event>,
    relaxed: bool,
    /// What comparing atomics with each other may still cost, over all executions: their number counts squared.
    comparisons: u64,
}

/// Comparisons of two atomics that take about as long as a step.
const COMPARISONS_PER_STEP: u64 = 16;

/// Runs every order of a dispatch that is free of races, as far as the effort goes; stops at a race.
///
/// `steps` is what one run takes, about.
pub(crate) fn explore<'k>(
    prepared: &'k Prepared<'_>,
    shadow: &mut Shadow<'k>,
    limits: Limits<'_>,
    steps: u64,
    effort: &Effort,
) -> Exploration {
    let mut exploration = Exploration { outcomes: Vec::new(), executions: 0, gap: None };
    // Bytes of the outcomes so far.
    let mut kept = 0u64;
    if prepared.kernel.stmts.iter().any(|stmt| matches!(stmt.kind, StmtKind::Subgroup { .. })) {
        exploration.gap = Some(Gap::Subgroups);
        return exploration;
    }
    // Copying the buffers is part of a run.
    let bytes: usize = prepared.storage.iter().map(Vec::len).sum();
    let cost = steps.saturating_add(bytes as u64 / 8).max(1);
    let affordable = effort.executions.min(effort.steps / cost);
    let invocations = u64::from(prepared.shape.groups()) * u64::from(prepared.shape.group_invocations());
    if affordable < 2 || invocations > MAX_INVOCATIONS {
        exploration.gap = Some(Gap::TooLarge);
        return exploration;
    }
    let comparisons = effort.steps.saturating_mul(COMPARISONS_PER_STEP);
    let mut search = Search { prepared, choices: Vec::new(), events: Vec::new(), relaxed: false, comparisons };
    loop {
        if exploration.executions >= affordable {
            exploration.gap = Some(Gap::TooLarge);
            return exploration;
        }
        exploration.executions += 1;
        let found = shadow.findings().len();
        shadow.begin(&Schedule::Forward);
        let outcome = search.execute(shadow, limits);
        let schedule = Schedule::Atomics(search.choices.iter().map(|choice| choice.chosen).collect());
        for finding in &mut shadow.findings()[found..] {
            finding.schedule = schedule.clone();
        }
        if shadow.racy() {
            exploration.gap = Some(Gap::Race);
            return exploration;
        }
        match outcome {
            // More atomics than can be compared with each other.
            None if search.comparisons == 0 => {
                exploration.gap = Some(Gap::TooLarge);
                return exploration;
            }
            // An order that comes to the same as one that has been tried.
            None => {}
            Some(Err(RunError::OutOfFuel { .. })) => exploration.gap = Some(Gap::TooLarge),
            Some(Err(RunError::Timeout | RunError::Cancelled)) => {
                exploration.gap = Some(Gap::TooLarge);
                return exploration;
            }
            Some(outcome) if exploration.outcomes.iter().any(|(known, _)| same(known, &outcome)) => {}
            Some(outcome) => {
                kept += outcome.as_ref().map_or(0, |outputs| outputs.iter().map(Vec::len).sum::<usize>()) as u64;
                exploration.outcomes.push((outcome, schedule));
            }
        }
        let hopeless = exploration.executions == 1 && search.orders_at_least() > affordable;
        if hopeless || exploration.outcomes.len() > effort.outcomes || kept > effort.memory {
            exploration.gap = Some(Gap::TooLarge);
            return exploration;
        }
        if !search.next() {
            if search.relaxed {
                exploration.gap = exploration.gap.or(Some(Gap::RelaxedAtomics));
            }
            return exploration;
        }
    }
}

/// Invocations of a dispatch whose orders are all tried.
const MAX_INVOCATIONS: u64 = 256;

impl<'k> Search<'_, 'k> {
    /// One execution: the choices made so far, then the first that is not asleep. `None` if all are asleep, or there is nothing left
    /// to compare with.
    fn execute(&mut self, shadow: &mut Shadow<'_>, limits: Limits<'_>) -> Option<Outcome> {
        let mut dispatch = Dispatch::new(self.prepared, self.prepared.storage.clone(), Fuel::new(limits), shadow, &Faultless);
        match self.run(&mut dispatch) {
            Ok(true) => {
                self.relaxed = self.relaxed || self.shows_relaxed_order();
                Some(dispatch.finish())
            }
            Ok(false) => None,
            Err(stopped) => Some(Err(dispatch.fuel.error(stopped))),
        }
    }

    fn run(&mut self, dispatch: &mut Dispatch<'_, 'k, Shadow<'_>, Faultless>) -> Result<bool, Stopped> {
        let groups = &mut Vec::new();
        dispatch.start_groups(groups, 0..self.prepared.shape.groups())?;
        let group_size = self.prepared.shape.group_invocations();
        let invocations = u64::from(self.prepared.shape.groups()) * u64::from(group_size);
        let mut depth = 0;
        loop {
            dispatch.settle(groups)?;
            if depth == self.choices.len() {
                self.comparisons = self.comparisons.saturating_sub(invocations + depth as u64);
                if self.comparisons == 0 {
                    return Ok(false);
                }
                let ahead = atomics_ahead(dispatch, groups);
                let asleep = self.choices.last().map_or(Vec::new(), Choice::still_asleep);
                let Some(first) = ahead.iter().find(|ahead| !asleep.contains(&ahead.invocation)) else {
                    groups.iter().for_each(|group| dispatch.collect_traps(group));
                    return Ok(ahead.is_empty());
                };
                let chosen = first.invocation;
                self.choices.push(Choice { chosen, ahead, wanted: vec![chosen], asleep });
            }
            let chosen = self.choices[depth].chosen;
            let group = (chosen / group_size) as usize;
            if depth == self.events.len() {
                self.happens(depth, dispatch.observer.epoch(group));
            }
            dispatch.step(&mut groups[group], (chosen % group_size) as usize)?;
            depth += 1;
        }
    }

    /// The chosen atomic of the last choice: what it follows, and which earlier ones it could have gone before.
    fn happens(&mut self, depth: usize, (epoch, grid): (u32, u32)) {
        let choice = &self.choices[depth];
        let Some(what) = choice.ahead_of(choice.chosen).copied() else { return };
        let group = what.invocation / self.prepared.shape.group_invocations();
        let invocations = self.prepared.shape.groups() * self.prepared.shape.group_invocations();
        let own = what.invocation as usize;
        let mut clock = vec![0; invocations as usize];
        let mut joined = 0;
        for event in &self.events {
            let by_barrier = event.grid < grid || (event.group == group && event.epoch < epoch);
            if event.what.invocation == what.invocation || by_barrier {
                join(&mut clock, &event.clock);
                joined += 1;
            }
        }
        let mut reversible = Vec::new();
        for (n, event) in self.events.iter().enumerate().rev() {
            if event.what.depends(&what) && !event.before(&clock) {
                join(&mut clock, &event.clock);
                reversible.push(n);
                joined += 1;
            }
        }
        self.comparisons = self.comparisons.saturating_sub(joined * u64::from(invocations));
        clock[own] += 1;
        self.events.push(Event { what, group, epoch, grid, clock });
        for n in reversible {
            self.reverse(n, depth);
        }
    }

    /// Wants event `first` to come after event `last`: one of those that can then come instead of it is put on its list.
    fn reverse(&mut self, first: usize, last: usize) {
        let event = &self.events[first];
        let between = self.events[first + 1..last].iter().filter(|other| !event.before(&other.clock));
        let sequence: Vec<&Event> = between.chain([&self.events[last]]).collect();
        let comparisons = (last - first) as u64 + (sequence.len() as u64).pow(2);
        self.comparisons = self.comparisons.saturating_sub(comparisons);
        let leads = |n: &usize| !sequence[..*n].iter().any(|earlier| earlier.before(&sequence[*n].clock));
        let mut initials = (0..sequence.len()).filter(leads).map(|n| sequence[n].what.invocation).peekable();
        let candidate = initials.peek().copied();
        let wanted = &self.choices[first].wanted;
        if !initials.any(|invocation| wanted.contains(&invocation)) {
            self.choices[first].wanted.extend(candidate);
        }
    }

    /// Goes back to the deepest choice that has an alternative; whether there is one.
    fn next(&mut self) -> bool {
        while let Some(choice) = self.choices.last_mut() {
            choice.asleep.push(choice.chosen);
            if let Some(other) = choice.wanted.iter().find(|n| !choice.asleep.contains(n)) {
                choice.chosen = *other;
                self.events.truncate(self.choices.len() - 1);
                return true;
            }
            self.choices.pop();
        }
        false
    }

    /// A number of orders that there certainly are: those of invocations of one epoch, or of workgroups, that all contend for one element.
    fn orders_at_least(&self) -> u64 {
        let mut near: BTreeMap<_, BTreeSet<u32>> = BTreeMap::new();
        let mut groups: BTreeMap<_, BTreeSet<u32>> = BTreeMap::new();
        for event in self.events.iter().filter(|event| event.what.class == Class::Ordered) {
            let Some(element) = event.what.element else { continue };
            near.entry((element, event.grid, event.epoch)).or_default().insert(event.what.invocation);
            groups.entry((element, event.grid)).or_default().insert(event.group);
        }
        let most = near.values().chain(groups.values()).map(BTreeSet::len).max().unwrap_or(1) as u64;
        (1..=most).fold(1, u64::saturating_mul)
    }

    /// Whether an invocation used two contended elements, whose order others can then see the other way round. A barrier between
    /// the two uses orders them for the own workgroup.
    fn shows_relaxed_order(&mut self) -> bool {
        let mut by_element: BTreeMap<_, Vec<&Event>> = BTreeMap::new();
        for event in &self.events {
            if let Some(element) = event.what.element {
                by_element.entry(element).or_default().push(event);
            }
        }
        let comparisons = by_element.values().map(|events| (events.len() as u64).pow(2)).sum();
        self.comparisons = self.comparisons.saturating_sub(comparisons);
        // What an invocation did to contended elements between two grid barriers: element, epoch, whether others are contenders.
        let mut contended: BTreeMap<_, BTreeSet<(_, u32, bool)>> = BTreeMap::new();
        for (element, events) in by_element {
            for event in &events {
                let mut against = events.iter().filter(|other| {
                    let concurrent =
                        if other.group == event.group { other.epoch == event.epoch } else { other.grid == event.grid };
                    other.what.invocation != event.what.invocation && concurrent && other.what.depends(&event.what)
                });
                if let Some(first) = against.next() {
                    let abroad = first.group != event.group || against.any(|other| other.group != event.group);
                    contended.entry((event.what.invocation, event.grid)).or_default().insert((element, event.epoch, abroad));
                }
            }
        }
        contended.values().any(|uses| {
            uses.iter().any(|(element, epoch, abroad)| {
                uses.iter().any(|(other, then, also)| element != other && (epoch == then || *abroad || *also))
            })
        })
    }
}

fn join(clock: &mut [u32], other: &[u32]) {
    for (own, other) in clock.iter_mut().zip(other) {
        *own = (*own).max(*other);
    }
}

/// The atomic that each invocation stands before.
fn atomics_ahead(dispatch: &mut Dispatch<'_, '_, Shadow<'_>, Faultless>, groups: &mut [Group]) -> Vec<Ahead> {
    let mut all = Vec::new();
    for group in groups {
        for n in 0..group.invocations.len() {
            if group.invocations[n].status == Status::Ready
                && let Some(ahead) = atomic_ahead(dispatch, group, n)
            {
                all.push(ahead);
            }
        }
    }
    all
}

fn atomic_ahead(dispatch: &mut Dispatch<'_, '_, Shadow<'_>, Faultless>, group: &mut Group, n: usize) -> Option<Ahead> {
    let Prepared { kernel, shape, .. } = dispatch.prepared;
    let StmtKind::Atomic { result, op, buffer, index, operands, .. } = group.invocations[n].atomic_ahead(kernel)? else {
        return None;
    };
    let class = Class::of(*op, dispatch.observer.observes(*result));
    let (number, invocation) = (group.number, group.invocation_number(n));
    // The accesses of these expressions are seen when the step is taken.
    let mut value = |expr| {
        let memory = Memory { storage: &mut dispatch.storage, workgroup: &mut group.memory, kernel };
        let mut world = World { kernel, shape, memory, observer: &mut Unobserved, faults: &Faultless };
        group.invocations[n].scalar(expr, &mut world)
    };
    let index = value(*index) as u32;
    let value = operands.first().map_or(0, |operand| value(*operand));
    let local = (kernel.buffer(*buffer).access == ir::Access::Workgroup).then_some(number);
    let element = (index < shape.lengths[buffer.index()]).then_some((buffer.0, local, index));
    Some(Ahead { invocation, element, class, value })
}
