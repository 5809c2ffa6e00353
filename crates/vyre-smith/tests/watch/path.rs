//! The way that one invocation took, walked again on the SSA form: what it really needed, and when.
//!
//! A run tells which arms were taken and how many iterations there were. With that the form has one way through it, on which every
//! definition and every use has its place. Read backwards from its end, a value is needed from its last use to its definition, and
//! nothing about that is worked out from positions, as the analysis does.

use super::{Claim, Counts};
use vyre_foundation::analysis::Liveness;
use vyre_foundation::ssa::{Def, InstId, InstKind, RegionId, Ssa, Terminator, Value};
use vyre_spec::ValueType;

/// A choice that the run made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    Branch(bool),
    Iteration,
    LoopEnds,
}

/// Choices that are kept of one invocation.
const MAX_STEPS: usize = 2_000;
/// Events of a walk; what comes behind is as if nobody needed anything.
const MAX_EVENTS: usize = 20_000;

/// The choices of one invocation.
#[derive(Clone, Default)]
pub struct Path {
    steps: Vec<Step>,
    is_cut: bool,
}

impl Path {
    pub fn push(&mut self, step: Step) {
        match self.steps.len() < MAX_STEPS {
            true => self.steps.push(step),
            false => self.is_cut = true,
        }
    }
}

/// What happens on the way.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// An instruction of a region begins.
    Begins(RegionId),
    /// It is done, and its results are not there yet.
    Ends(InstId),
    /// A region is about to hand on its values.
    Hands(RegionId),
    Uses(Value),
    Defines(Value),
}

/// Why a walk stops: it is retired, or what is known of it ends; or the way is not one of this form.
enum Stop {
    Done,
    Wrong(String),
}

/// How a region was left.
#[derive(PartialEq, Eq)]
enum Left {
    Yield,
    Break,
    Continue,
}

struct Walk<'a> {
    ssa: &'a Ssa,
    path: &'a Path,
    next: usize,
    events: Vec<Event>,
}

impl Walk<'_> {
    fn event(&mut self, event: Event) -> Result<(), Stop> {
        if self.events.len() == MAX_EVENTS {
            return Err(Stop::Done);
        }
        self.events.push(event);
        Ok(())
    }

    fn step(&mut self) -> Result<Step, Stop> {
        let step = self.path.steps.get(self.next).copied();
        self.next += 1;
        match step {
            Some(step) => Ok(step),
            None if self.path.is_cut => Err(Stop::Done),
            None => Err(Stop::Wrong("the form goes on, and the invocation did not".into())),
        }
    }

    fn uses(&mut self, values: &[Value]) -> Result<(), Stop> {
        values.iter().try_for_each(|value| self.event(Event::Uses(*value)))
    }

    fn defines(&mut self, values: &[Value]) -> Result<(), Stop> {
        values.iter().try_for_each(|value| self.event(Event::Defines(*value)))
    }

    fn region(&mut self, id: RegionId) -> Result<Left, Stop> {
        let ssa = self.ssa;
        for inst_id in &ssa.region(id).insts {
            let inst = ssa.inst(*inst_id);
            self.event(Event::Begins(id))?;
            let mut operands = Vec::new();
            inst.kind.for_each_operand(&mut |operand| operands.push(operand));
            self.uses(&operands)?;
            match inst.kind {
                InstKind::If { then, otherwise, .. } => {
                    let Step::Branch(taken) = self.step()? else {
                        return Err(Stop::Wrong(format!("{inst_id:?} is an `if`, and the invocation took none")));
                    };
                    let left = self.region(if taken { then } else { otherwise })?;
                    if left != Left::Yield {
                        return Ok(left);
                    }
                }
                InstKind::Loop { to, body, .. } => {
                    let counter = ssa.region(body).args[0];
                    let mut left = Left::Yield;
                    let mut is_first = true;
                    loop {
                        if left != Left::Break {
                            // The next value of the counter comes from the last, and is compared with the bound.
                            self.uses(if is_first { &[] } else { std::slice::from_ref(&counter) })?;
                            self.uses(&[to])?;
                        }
                        match self.step()? {
                            Step::LoopEnds => break,
                            Step::Iteration if left != Left::Break => {
                                self.defines(&ssa.region(body).args)?;
                                left = self.region(body)?;
                                is_first = false;
                            }
                            other @ (Step::Iteration | Step::Branch(_)) => {
                                return Err(Stop::Wrong(format!("{inst_id:?} is a loop, and there was {other:?}")));
                            }
                        }
                    }
                }
                InstKind::Op(_)
                | InstKind::Load { .. }
                | InstKind::Store { .. }
                | InstKind::Atomic { .. }
                | InstKind::Subgroup { .. }
                | InstKind::Barrier
                | InstKind::GridSync => {}
            }
            self.event(Event::Ends(*inst_id))?;
            self.defines(&inst.results)?;
        }
        self.event(Event::Hands(id))?;
        let end = &ssa.region(id).end;
        self.uses(end.values())?;
        match end {
            Terminator::Yield(_) => Ok(Left::Yield),
            Terminator::Break(_) => Ok(Left::Break),
            Terminator::Continue(_) => Ok(Left::Continue),
            Terminator::Return | Terminator::Trap(_) => Err(Stop::Done),
            Terminator::Unreachable => Err(Stop::Wrong(format!("the end of {id:?} is never reached, and it was"))),
        }
    }
}

/// The values that are needed, and the words they take.
struct Needed<'a> {
    ssa: &'a Ssa,
    values: Vec<Value>,
    /// By value: its place among them.
    places: Vec<Option<u32>>,
    words: u32,
}

impl Needed<'_> {
    fn words(&self, value: Value) -> u32 {
        match self.ssa.value(value).ty {
            ValueType::Scalar(scalar) => scalar.bits().div_ceil(32),
            ValueType::Vector(scalar, count) => scalar.bits().div_ceil(32) * u32::from(count),
        }
    }

    fn insert(&mut self, value: Value) {
        if !matches!(self.ssa.value(value).def, Def::Leaf(_)) && self.places[value.index()].is_none() {
            self.places[value.index()] = Some(self.values.len() as u32);
            self.values.push(value);
            self.words += self.words(value);
        }
    }

    fn remove(&mut self, value: Value) {
        if let Some(place) = self.places[value.index()].take() {
            self.values.swap_remove(place as usize);
            if let Some(moved) = self.values.get(place as usize) {
                self.places[moved.index()] = Some(place);
            }
            self.words -= self.words(value);
        }
    }
}

/// What is wrong with what is said about how long values are held, as one way through the form shows.
pub fn wrong(ssa: &Ssa, liveness: &Liveness, path: &Path, counts: &mut Counts) -> Option<String> {
    let mut walk = Walk { ssa, path, next: 0, events: Vec::new() };
    match walk.region(ssa.root) {
        Ok(Left::Yield) | Err(Stop::Done) => {}
        Ok(Left::Break | Left::Continue) => return Some("a `break` or `continue` left the program".into()),
        Err(Stop::Wrong(what)) => return Some(what),
    }
    let events = walk.events;

    let mut needed = Needed { ssa, values: Vec::new(), places: vec![None; ssa.values.len()], words: 0 };
    let pressures: Vec<u32> = (0..ssa.regions.len() as u32).map(|n| liveness.pressure(ssa, RegionId(n))).collect();
    let all = pressures[ssa.root.index()];
    let mut most = 0;
    for event in events.iter().rev() {
        let region = match *event {
            Event::Uses(value) => {
                needed.insert(value);
                continue;
            }
            Event::Defines(value) => {
                needed.remove(value);
                continue;
            }
            Event::Ends(inst) => {
                if let Some(value) = needed.values.iter().find(|value| !liveness.is_held_across(ssa, **value, inst)) {
                    return Some(format!("%{} is not held across {inst:?}, and it is used behind", value.0));
                }
                continue;
            }
            Event::Begins(region) | Event::Hands(region) => region,
        };
        most = most.max(needed.words);
        let here = pressures[region.index()];
        if needed.words > here || here > all {
            let words = needed.words;
            return Some(format!(
                "{words} words are held at {event:?} of {region:?}, and said to be at most {here}, in all {all}"
            ));
        }
    }
    if let [first, ..] = needed.values[..] {
        return Some(format!("%{} is used before it is defined", first.0));
    }
    if most > 0 && most == all {
        counts.add(Claim::Pressure);
    }
    count(ssa, liveness, &events, counts);
    None
}

/// Counts what is said to be dead where it matters, at barriers and loops, of values that the invocation had.
fn count(ssa: &Ssa, liveness: &Liveness, events: &[Event], counts: &mut Counts) {
    let mut defined = Vec::new();
    let mut has = vec![false; ssa.values.len()];
    for event in events {
        match *event {
            Event::Defines(value) if !std::mem::replace(&mut has[value.index()], true) => defined.push(value),
            Event::Ends(inst) => {
                let claim = match ssa.inst(inst).kind {
                    InstKind::Barrier | InstKind::GridSync => Claim::DeadAtBarrier,
                    InstKind::Loop { .. } => Claim::DeadAfterLoop,
                    InstKind::Op(_)
                    | InstKind::Load { .. }
                    | InstKind::Store { .. }
                    | InstKind::Atomic { .. }
                    | InstKind::Subgroup { .. }
                    | InstKind::If { .. } => continue,
                };
                let held: Vec<Value> = liveness.held_across(ssa, inst).collect();
                for value in &defined {
                    if held.binary_search(value).is_err() {
                        counts.add(claim);
                    }
                }
            }
            Event::Defines(_) | Event::Begins(_) | Event::Hands(_) | Event::Uses(_) => {}
        }
    }
}
