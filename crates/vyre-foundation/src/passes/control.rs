//! Branch and loop simplification: control that is already decided goes.
//!
//! - `if` on `true` or `false` is the arm that is taken: its instructions move into the region around it, and what it yields are the
//!   results. If that arm ends some other way, the region around it ends so, and what comes behind was never reached.
//! - A loop whose bounds leave no iteration results in what it was given. One whose bounds leave exactly one is its body, with the
//!   arguments replaced by what it was given, unless a `break` or `continue` inside ends that iteration.
//! - `return` at the end of the program and of what stands at its end, and `continue` at the end of an iteration, are like reaching
//!   the end. Where an `if` has results, its arms keep their ends.
//!
//! It looks at literals and at bounds that are one value: making conditions into literals is the business of pass `fold`. Nothing gets
//! evaluated more often, and nothing gets under control that it was not under before, so every rule about uniform control holds
//! after as it did before.
//!
//! What it leaves alone: loops of several iterations; conditions that are equal to others around them; arms and loops without effect,
//! which pass `dead` removes.

use crate::ssa::{InstId, InstKind, RegionId, Ssa, Terminator, Value};

/// The pass.
pub(super) fn control(ssa: &mut Ssa) -> bool {
    let mut pass = Control { instead: (0..ssa.values.len() as u32).map(Value).collect(), changed: false };
    pass.region(ssa, ssa.root);
    pass.ends(ssa, ssa.root, Tail::Program);
    pass.changed
}

struct Control {
    /// By value: what it is replaced by, which may be itself.
    instead: Vec<Value>,
    changed: bool,
}

/// What comes behind a region whose end is reached.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tail {
    /// Nothing: the program is over.
    Program,
    /// The next iteration.
    Iteration,
    /// Something else.
    More,
}

impl Control {
    fn region(&mut self, ssa: &mut Ssa, id: RegionId) {
        let old = std::mem::take(&mut ssa.regions[id.index()].insts);
        let mut new = Vec::with_capacity(old.len());
        let mut ended = None;
        for inst in old {
            ended = self.inst(ssa, inst, &mut new);
            if ended.is_some() {
                break;
            }
        }
        let region = &mut ssa.regions[id.index()];
        region.insts = new;
        if let Some((end, stmt)) = ended {
            (region.end, region.stmt) = (end, stmt);
        }
        let instead = &self.instead;
        if let Some(values) = region.end.values_mut() {
            values.iter_mut().for_each(|value| *value = instead[value.index()]);
        }
    }

    /// Puts what an instruction becomes into `out`. If that ends the region it stands in, gives how.
    fn inst(&mut self, ssa: &mut Ssa, id: InstId, out: &mut Vec<InstId>) -> Option<(Terminator, crate::kernel::StmtId)> {
        let instead = &self.instead;
        ssa.insts[id.index()].kind.for_each_operand_mut(&mut |operand| *operand = instead[operand.index()]);
        match ssa.insts[id.index()].kind {
            InstKind::If { cond, then, otherwise } => {
                let Some(taken) = ssa.literal(cond) else {
                    self.region(ssa, then);
                    self.region(ssa, otherwise);
                    out.push(id);
                    let goes_on = [then, otherwise].iter().any(|arm| ssa.region(*arm).end.is_yield());
                    return (!goes_on).then(|| (Terminator::Unreachable, ssa.insts[id.index()].stmt));
                };
                self.changed = true;
                let arm = if taken != 0 { then } else { otherwise };
                self.inline(ssa, id, arm, out)
            }
            InstKind::Loop { from, to, body, .. } => {
                let iterations = match (ssa.literal(from), ssa.literal(to)) {
                    (Some(from), Some(to)) => Some(to.saturating_sub(from)),
                    (_, Some(0)) => Some(0),
                    (Some(from), _) if from == u64::from(u32::MAX) => Some(0),
                    _ => (from == to).then_some(0),
                };
                let once = iterations == Some(1) && !has_exits(ssa, body);
                if iterations != Some(0) && !once {
                    self.region(ssa, body);
                    out.push(id);
                    return None;
                }
                self.changed = true;
                let InstKind::Loop { inits, .. } = ssa.insts[id.index()].kind.clone() else { return None };
                if !once {
                    let results = ssa.insts[id.index()].results.clone();
                    self.replace_all(&results, &inits);
                    return None;
                }
                let args = ssa.region(body).args.clone();
                self.replace_all(&args[..1], &[from]);
                self.replace_all(&args[1..], &inits);
                self.inline(ssa, id, body, out)
            }
            InstKind::Op(_)
            | InstKind::Load { .. }
            | InstKind::Store { .. }
            | InstKind::Atomic { .. }
            | InstKind::Subgroup { .. }
            | InstKind::Barrier
            | InstKind::GridSync => {
                out.push(id);
                None
            }
        }
    }

    fn replace_all(&mut self, values: &[Value], by: &[Value]) {
        for (value, by) in values.iter().zip(by) {
            self.instead[value.index()] = self.instead[by.index()];
        }
    }

    /// Puts the instructions of a region in the place of the instruction it belongs to.
    fn inline(
        &mut self,
        ssa: &mut Ssa,
        id: InstId,
        region: RegionId,
        out: &mut Vec<InstId>,
    ) -> Option<(Terminator, crate::kernel::StmtId)> {
        self.region(ssa, region);
        out.append(&mut ssa.regions[region.index()].insts);
        let (end, stmt) = (ssa.region(region).end.clone(), ssa.region(region).stmt);
        match end {
            Terminator::Yield(values) => {
                let results = ssa.insts[id.index()].results.clone();
                self.replace_all(&results, &values);
                None
            }
            Terminator::Break(_)
            | Terminator::Continue(_)
            | Terminator::Return
            | Terminator::Trap(_)
            | Terminator::Unreachable => Some((end, stmt)),
        }
    }

    /// Lets regions at the end of the program, or of an iteration, reach their end instead of saying so.
    fn ends(&mut self, ssa: &mut Ssa, id: RegionId, tail: Tail) {
        let region = &mut ssa.regions[id.index()];
        let says_so = match (&mut region.end, tail) {
            (Terminator::Return, Tail::Program) => Some(Vec::new()),
            // A loop body has arguments; an arm that hands something on needs results of its `if`.
            (Terminator::Continue(values), Tail::Iteration) if values.is_empty() || !region.args.is_empty() => {
                Some(std::mem::take(values))
            }
            (
                Terminator::Yield(_)
                | Terminator::Break(_)
                | Terminator::Continue(_)
                | Terminator::Return
                | Terminator::Trap(_)
                | Terminator::Unreachable,
                Tail::Program | Tail::Iteration | Tail::More,
            ) => None,
        };
        if let Some(values) = says_so {
            region.end = Terminator::Yield(values);
            self.changed = true;
        }
        let insts = ssa.region(id).insts.clone();
        for (n, inst) in insts.iter().enumerate() {
            let is_last = n + 1 == insts.len();
            match ssa.insts[inst.index()].kind {
                InstKind::If { then, otherwise, .. } => {
                    // An iteration that carries something hands it on at its own end.
                    let region = ssa.region(id);
                    let hands_on_nothing = ssa.insts[inst.index()].results.is_empty() && region.end.values().is_empty();
                    let goes_on = region.end.is_yield() || region.end == Terminator::Unreachable;
                    let inner = if is_last && goes_on && hands_on_nothing { tail } else { Tail::More };
                    self.ends(ssa, then, inner);
                    self.ends(ssa, otherwise, inner);
                    let reached = [then, otherwise].iter().any(|arm| ssa.region(*arm).end.is_yield());
                    if is_last && reached && ssa.region(id).end == Terminator::Unreachable {
                        ssa.regions[id.index()].end = Terminator::Yield(Vec::new());
                    }
                }
                InstKind::Loop { body, .. } => self.ends(ssa, body, Tail::Iteration),
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
}

/// Whether a `break` or `continue` of the loop with this body is in it.
fn has_exits(ssa: &Ssa, region: RegionId) -> bool {
    let own = match ssa.region(region).end {
        Terminator::Break(_) | Terminator::Continue(_) => true,
        Terminator::Yield(_) | Terminator::Return | Terminator::Trap(_) | Terminator::Unreachable => false,
    };
    own || ssa.region(region).insts.iter().any(|inst| match ssa.inst(*inst).kind {
        InstKind::If { then, otherwise, .. } => has_exits(ssa, then) || has_exits(ssa, otherwise),
        // Those inside end iterations of that loop.
        InstKind::Loop { .. }
        | InstKind::Op(_)
        | InstKind::Load { .. }
        | InstKind::Store { .. }
        | InstKind::Atomic { .. }
        | InstKind::Subgroup { .. }
        | InstKind::Barrier
        | InstKind::GridSync => false,
    })
}
