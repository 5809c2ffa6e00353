//! How often loops run, and how they are left.

use super::ranges::Flow;
use crate::ssa::{InstId, InstKind, RegionId, Ssa, Terminator};

/// What is known about a loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Trips {
    /// How many iterations begin at least, if nothing leaves the loop.
    pub at_least: u32,
    /// How many iterations begin at most.
    pub at_most: u32,
    /// Whether a `break` may leave it before its bounds do.
    pub breaks: bool,
    /// Whether a `continue` may cut an iteration short.
    pub continues: bool,
    /// Whether a `return` or `trap` in it may retire an invocation.
    pub retires: bool,
}

impl Trips {
    /// How many iterations every invocation makes that gets there, if that is one number.
    #[must_use]
    pub fn exact(&self) -> Option<u32> {
        (self.at_least == self.at_most && !self.breaks && !self.retires).then_some(self.at_most)
    }
}

/// The trips of every loop.
#[derive(Clone, Debug)]
pub struct Loops {
    /// By instruction.
    trips: Vec<Option<Trips>>,
}

impl Loops {
    /// The facts of a form.
    #[must_use]
    pub fn of(ssa: &Ssa) -> Loops {
        let mut trips = vec![None; ssa.insts.len()];
        Flow::new(ssa).run(&mut |flow, id| {
            let InstKind::Loop { from, to, body, .. } = ssa.inst(id).kind else { return };
            let (first, last) = (flow.range(from), flow.range(to));
            let mut found = Trips {
                at_least: last.low.saturating_sub(first.high),
                at_most: last.high.saturating_sub(first.low),
                breaks: false,
                continues: false,
                retires: false,
            };
            exits(ssa, body, true, &mut found);
            trips[id.index()] = Some(found);
        });
        Loops { trips }
    }

    /// What is known about a loop; `None` for other instructions.
    #[must_use]
    pub fn trips(&self, inst: InstId) -> Option<Trips> {
        self.trips[inst.index()]
    }
}

/// Notes how a region ends; `own` is whether its `break`s and `continue`s are those of the loop that is asked about.
fn exits(ssa: &Ssa, region: RegionId, own: bool, found: &mut Trips) {
    match ssa.region(region).end {
        Terminator::Break(_) => found.breaks |= own,
        Terminator::Continue(_) => found.continues |= own,
        Terminator::Return | Terminator::Trap(_) => found.retires = true,
        Terminator::Yield(_) | Terminator::Unreachable => {}
    }
    for inst in &ssa.region(region).insts {
        match ssa.inst(*inst).kind {
            InstKind::If { then, otherwise, .. } => {
                exits(ssa, then, own, found);
                exits(ssa, otherwise, own, found);
            }
            InstKind::Loop { body, .. } => exits(ssa, body, false, found),
            InstKind::Op(_)
            | InstKind::Load { .. }
            | InstKind::Store { .. }
            | InstKind::Atomic { .. }
            | InstKind::Subgroup { .. }
            | InstKind::Barrier
            | InstKind::GridSync => {}
        }
    }
}
