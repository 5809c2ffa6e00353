//! Which accesses may happen between the same two barriers.
//!
//! An epoch begins at the start of the program and at every barrier that all invocations of a scope reach together. Two accesses
//! may be in one epoch if there is a beginning from which both can be reached without another barrier in between. So for every
//! access this knows the beginnings it can be reached from: usually one or two.
//!
//! In a loop, what is in front of a barrier can be reached from that barrier, through the next iteration. Which beginnings an iteration
//! hands on to the next is the same whatever it started with, so loops need no repetition: one walk finds out what each loop hands
//! on, a second one what reaches every access.

use crate::kernel::AccessId;
use crate::ssa::{InstId, InstKind, RegionId, Ssa, Terminator};

/// Beginnings that are kept apart; where more could have been the last, any could.
const MAX_BEGINNINGS: usize = 32;

/// Where an epoch begins.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Beginning {
    /// At the start of the program.
    Start,
    /// At this barrier.
    Barrier(InstId),
}

/// A set of beginnings, in order; `None` is any.
type Set = Option<Vec<Beginning>>;

fn join(into: &mut Set, other: &Set) {
    *into = match (into.take(), other) {
        (Some(mut set), Some(other)) => {
            set.extend(other);
            set.sort_unstable();
            set.dedup();
            (set.len() <= MAX_BEGINNINGS).then_some(set)
        }
        (None, _) | (_, None) => None,
    };
}

/// What a way through a region does: the beginnings it may end with, and whether those before it may still be the last.
#[derive(Clone)]
struct Way {
    made: Set,
    passes: bool,
}

impl Way {
    fn nothing() -> Way {
        Way { made: Some(Vec::new()), passes: true }
    }

    /// First one way, then the other.
    fn then(&self, next: &Way) -> Way {
        let mut made = next.made.clone();
        if next.passes {
            join(&mut made, &self.made);
        }
        Way { made, passes: self.passes && next.passes }
    }

    /// One way or the other.
    fn or(way: Option<Way>, other: &Way) -> Option<Way> {
        Some(match way {
            None => other.clone(),
            Some(mut way) => {
                join(&mut way.made, &other.made);
                Way { made: way.made, passes: way.passes || other.passes }
            }
        })
    }
}

/// The ways through a region, by how they end; `None` where none does.
#[derive(Clone, Default)]
struct Ways {
    yields: Option<Way>,
    breaks: Option<Way>,
    continues: Option<Way>,
}

/// For every access, the beginnings of the epochs it may be in.
#[derive(Clone, Debug)]
pub struct Epochs {
    accesses: Vec<Set>,
    /// By region: whether it is the body of a loop every iteration of which has a barrier.
    synchronised: Vec<bool>,
}

impl Epochs {
    /// The epochs within a workgroup: all barriers begin one.
    #[must_use]
    pub fn of_workgroup(ssa: &Ssa) -> Epochs {
        Epochs::of(ssa, true)
    }

    /// The epochs of the grid: only grid barriers begin one.
    #[must_use]
    pub fn of_grid(ssa: &Ssa) -> Epochs {
        Epochs::of(ssa, false)
    }

    fn of(ssa: &Ssa, barriers: bool) -> Epochs {
        let mut walk = Walk {
            ssa,
            barriers,
            next: vec![None; ssa.regions.len()],
            accesses: vec![Some(Vec::new()); ssa.kernel.accesses.len()],
        };
        walk.ways(ssa.root);
        walk.reach(ssa.root, Some(vec![Beginning::Start]));
        let synchronised = walk.next.iter().map(|next| next.as_ref().is_some_and(|next| !next.passes)).collect();
        Epochs { accesses: walk.accesses, synchronised }
    }

    /// Whether a region is the body of a loop no two iterations of which have a part in one epoch but for the end of one and the
    /// start of the next.
    #[must_use]
    pub fn is_synchronised(&self, body: RegionId) -> bool {
        self.synchronised[body.index()]
    }

    /// Whether two accesses may be in one epoch.
    #[must_use]
    pub fn may_meet(&self, a: AccessId, b: AccessId) -> bool {
        match (&self.accesses[a.index()], &self.accesses[b.index()]) {
            (Some(a), Some(b)) => a.iter().any(|beginning| b.contains(beginning)),
            (None, _) | (_, None) => true,
        }
    }

    /// The beginnings that two accesses have in common; `None` if it may be any.
    #[must_use]
    pub fn common(&self, a: AccessId, b: AccessId) -> Option<Vec<Beginning>> {
        let (a, b) = (self.accesses[a.index()].as_ref()?, self.accesses[b.index()].as_ref()?);
        Some(a.iter().copied().filter(|beginning| b.contains(beginning)).collect())
    }
}

struct Walk<'a> {
    ssa: &'a Ssa,
    barriers: bool,
    /// By region of a loop: what its iterations hand on.
    next: Vec<Option<Way>>,
    accesses: Vec<Set>,
}

impl Walk<'_> {
    fn begins(&self, kind: &InstKind) -> bool {
        match kind {
            InstKind::GridSync => true,
            InstKind::Barrier => self.barriers,
            InstKind::Op(_)
            | InstKind::Load { .. }
            | InstKind::Store { .. }
            | InstKind::Atomic { .. }
            | InstKind::Subgroup { .. }
            | InstKind::If { .. }
            | InstKind::Loop { .. } => false,
        }
    }

    fn ways(&mut self, id: RegionId) -> Ways {
        let ssa = self.ssa;
        let mut ways = Ways::default();
        let mut now = Some(Way::nothing());
        for inst in &ssa.region(id).insts {
            let Some(before) = now.clone() else { break };
            let kind = &ssa.inst(*inst).kind;
            match kind {
                InstKind::If { then, otherwise, .. } => {
                    now = None;
                    for arm in [*then, *otherwise] {
                        let arm = self.ways(arm);
                        for (into, way) in
                            [(&mut now, arm.yields), (&mut ways.breaks, arm.breaks), (&mut ways.continues, arm.continues)]
                        {
                            if let Some(way) = way {
                                *into = Way::or(into.take(), &before.then(&way));
                            }
                        }
                    }
                }
                InstKind::Loop { body, .. } => {
                    let inner = self.ways(*body);
                    let mut next = inner.yields;
                    if let Some(way) = inner.continues {
                        next = Way::or(next, &way);
                    }
                    // At the start of an iteration: what was before the loop, or what the iterations hand on.
                    let mut head = before.clone();
                    if let Some(next) = &next {
                        join(&mut head.made, &next.made);
                    }
                    self.next[body.index()] = next;
                    now = Some(head.clone());
                    if let Some(way) = inner.breaks {
                        now = Way::or(now, &head.then(&way));
                    }
                }
                kind if self.begins(kind) => now = Some(Way { made: Some(vec![Beginning::Barrier(*inst)]), passes: false }),
                InstKind::Op(_)
                | InstKind::Load { .. }
                | InstKind::Store { .. }
                | InstKind::Atomic { .. }
                | InstKind::Subgroup { .. }
                | InstKind::Barrier
                | InstKind::GridSync => {}
            }
        }
        if let Some(now) = now {
            match ssa.region(id).end {
                Terminator::Yield(_) => ways.yields = Some(now),
                Terminator::Break(_) => ways.breaks = Way::or(ways.breaks.take(), &now),
                Terminator::Continue(_) => ways.continues = Way::or(ways.continues.take(), &now),
                Terminator::Return | Terminator::Trap(_) | Terminator::Unreachable => {}
            }
        }
        ways
    }

    /// Notes what reaches every access of a region; gives what reaches its end, and what `break`s take with them.
    fn reach(&mut self, id: RegionId, mut now: Set) -> (Set, Option<Set>) {
        let ssa = self.ssa;
        let mut broken: Option<Set> = None;
        let also = |broken: &mut Option<Set>, set: Set| match broken {
            Some(broken) => join(broken, &set),
            None => *broken = Some(set),
        };
        for inst in &ssa.region(id).insts {
            match &ssa.inst(*inst).kind {
                InstKind::Load { access, .. } | InstKind::Store { access, .. } | InstKind::Atomic { access, .. } => {
                    self.accesses[access.index()] = now.clone();
                }
                InstKind::If { then, otherwise, .. } => {
                    let mut after: Set = Some(Vec::new());
                    for arm in [*then, *otherwise] {
                        let (end, left) = self.reach(arm, now.clone());
                        if ssa.region(arm).end.is_yield() {
                            join(&mut after, &end);
                        }
                        if let Some(left) = left {
                            also(&mut broken, left);
                        }
                    }
                    now = after;
                }
                InstKind::Loop { body, .. } => {
                    if let Some(next) = &self.next[body.index()] {
                        join(&mut now, &next.made.clone());
                    }
                    let (_, left) = self.reach(*body, now.clone());
                    if let Some(left) = left {
                        join(&mut now, &left);
                    }
                }
                kind if self.begins(kind) => now = Some(vec![Beginning::Barrier(*inst)]),
                InstKind::Op(_) | InstKind::Subgroup { .. } | InstKind::Barrier | InstKind::GridSync => {}
            }
        }
        match ssa.region(id).end {
            Terminator::Break(_) => also(&mut broken, now.clone()),
            Terminator::Yield(_)
            | Terminator::Continue(_)
            | Terminator::Return
            | Terminator::Trap(_)
            | Terminator::Unreachable => {}
        }
        (now, broken)
    }
}
