//! How long values are needed: where each is used last, which are held across a barrier, and how many are held at once.
//!
//! Every instruction has a position, in the order of the form; an `if` or loop has one where it begins and one where it ends. A value
//! is held from its definition to its last use. What is used in a loop and defined before it is used until the loop ends, since the
//! next iteration needs it too. A loop itself needs its bound until it ends, and its counter until the body does, whether the body
//! reads them or not. Leaves are not held: they are the same everywhere and can be had again.
//!
//! All of this is about one invocation. Code that runs several together, with masks, also has to keep what the others need: the values
//! of one arm while the other runs, and those that an invocation left a loop with until the last one leaves it.
//!
//! What runs the statements of a kernel has variables instead of values. A variable is needed where the value is that it holds there,
//! so what has to be kept of them is told by the same facts: at grid barriers ([`Liveness::keeps`]) and for the lanes that are in a
//! loop ([`Liveness::loops`]).

use crate::analysis::variables;
use crate::kernel::{Effect, StmtId, VarId};
use crate::ssa::{Def, InstId, InstKind, RegionId, Ssa, Value};
use vyre_spec::ValueType;

/// What uses a value that is used once.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum User {
    Nobody,
    Inst(InstId),
    End(RegionId),
    Several,
}

/// When things happen.
pub(crate) struct Positions {
    /// By instruction: where it begins, where what is below it ends, and the region it stands in.
    pub insts: Vec<(u32, u32, RegionId)>,
    /// By region: where it ends.
    pub ends: Vec<u32>,
    /// By position: how many instructions before it may change memory or wait for somebody.
    pub effects: Vec<u32>,
    /// By value: where it is defined.
    pub defined: Vec<u32>,
    pub users: Vec<User>,
}

impl Positions {
    pub fn of(ssa: &Ssa) -> Positions {
        let mut positions = Positions {
            insts: vec![(0, 0, ssa.root); ssa.insts.len()],
            ends: vec![0; ssa.regions.len()],
            effects: vec![0],
            defined: vec![0; ssa.values.len()],
            users: vec![User::Nobody; ssa.values.len()],
        };
        positions.region(ssa, ssa.root);
        positions
    }

    fn next(&mut self, effect: bool) -> u32 {
        let before = self.effects[self.effects.len() - 1];
        self.effects.push(before + u32::from(effect));
        self.effects.len() as u32 - 2
    }

    fn used(&mut self, value: Value, by: User) {
        let user = &mut self.users[value.index()];
        *user = if *user == User::Nobody { by } else { User::Several };
    }

    fn region(&mut self, ssa: &Ssa, id: RegionId) {
        for inst_id in &ssa.region(id).insts {
            let inst = ssa.inst(*inst_id);
            let begins = self.next(!matches!(inst.kind.effect(), Effect::None));
            inst.kind.for_each_operand(&mut |operand| self.used(operand, User::Inst(*inst_id)));
            if let InstKind::Loop { body, .. } = inst.kind {
                ssa.region(body).args.iter().for_each(|arg| self.defined[arg.index()] = begins);
            }
            for inner in inst.kind.regions() {
                self.region(ssa, inner);
            }
            let ends = if inst.kind.regions().next().is_some() { self.next(false) } else { begins };
            self.insts[inst_id.index()] = (begins, ends, id);
            inst.results.iter().for_each(|result| self.defined[result.index()] = ends);
        }
        self.ends[id.index()] = self.next(false);
        for value in ssa.region(id).end.values() {
            self.used(*value, User::End(id));
        }
    }
}

/// By value: the position of its last use; values of which `inline` says so are evaluated where they are used.
pub(crate) fn last_uses(ssa: &Ssa, positions: &Positions, inline: &[bool]) -> Vec<u32> {
    let mut uses = Uses { ssa, positions, inline, last: vec![0; ssa.values.len()], loops: Vec::new() };
    uses.region(ssa.root);
    uses.last
}

struct Uses<'a> {
    ssa: &'a Ssa,
    positions: &'a Positions,
    inline: &'a [bool],
    last: Vec<u32>,
    /// The loops around: where each begins and ends.
    loops: Vec<(u32, u32)>,
}

impl Uses<'_> {
    /// Notes that a value is used at a position, together with what is written into its expression.
    fn used(&mut self, value: Value, at: u32) {
        if self.inline[value.index()] {
            let Def::Result(inst, _) = self.ssa.value(value).def else { return };
            // Depth is bounded where values are written into each other.
            self.ssa.inst(inst).kind.for_each_operand(&mut |operand| self.used(operand, at));
            return;
        }
        let defined = self.positions.defined[value.index()];
        let until = self.loops.iter().find(|(begins, _)| *begins > defined).map_or(at, |(_, ends)| *ends);
        let last = &mut self.last[value.index()];
        *last = (*last).max(until);
    }

    fn region(&mut self, id: RegionId) {
        for inst_id in &self.ssa.region(id).insts {
            let inst = self.ssa.inst(*inst_id);
            let (begins, ends, _) = self.positions.insts[inst_id.index()];
            let written_elsewhere = inst.results.first().is_some_and(|result| self.inline[result.index()]);
            if !written_elsewhere {
                inst.kind.for_each_operand(&mut |operand| self.used(operand, begins));
            }
            let is_loop = matches!(inst.kind, InstKind::Loop { .. });
            if is_loop {
                self.loops.push((begins, ends));
            }
            for inner in inst.kind.regions() {
                self.region(inner);
            }
            if is_loop {
                self.loops.pop();
            }
        }
        let at = self.positions.ends[id.index()];
        for value in self.ssa.region(id).end.values() {
            self.used(*value, at);
        }
    }
}

/// How long the values of a form are held.
pub struct Liveness {
    positions: Positions,
    last_use: Vec<u32>,
    /// By position: 32-bit words that are held there.
    words: Vec<u32>,
}

impl Liveness {
    /// The facts of a form.
    #[must_use]
    pub fn of(ssa: &Ssa) -> Liveness {
        let positions = Positions::of(ssa);
        let mut last_use = last_uses(ssa, &positions, &vec![false; ssa.values.len()]);
        ssa.for_each_inst(ssa.root, &mut |id, inst| {
            if let InstKind::Loop { to, body, .. } = inst.kind {
                // If there is a loop around that `to` was defined before, it is held until the end of that one already.
                for (value, until) in
                    [(to, positions.insts[id.index()].1), (ssa.region(body).args[0], positions.ends[body.index()])]
                {
                    let last = &mut last_use[value.index()];
                    *last = (*last).max(until);
                }
            }
        });
        let mut change = vec![0i64; positions.effects.len() + 1];
        for (n, info) in ssa.values.iter().enumerate() {
            if held(info.def) && last_use[n] > positions.defined[n] {
                change[positions.defined[n] as usize + 1] += i64::from(words(info.ty));
                change[last_use[n] as usize + 1] -= i64::from(words(info.ty));
            }
        }
        let mut now = 0;
        let words = change.iter().map(|change| {
            now += change;
            now as u32
        });
        Liveness { words: words.collect(), positions, last_use }
    }

    /// Whether a value is defined before an instruction and may be used behind it. What is not, no invocation reads any more.
    #[must_use]
    pub fn is_held_across(&self, ssa: &Ssa, value: Value, inst: InstId) -> bool {
        let (begins, ends, _) = self.positions.insts[inst.index()];
        let n = value.index();
        held(ssa.value(value).def) && self.positions.defined[n] < begins && self.last_use[n] > ends
    }

    /// The values that are held across an instruction, such as a barrier.
    pub fn held_across<'a>(&'a self, ssa: &'a Ssa, inst: InstId) -> impl Iterator<Item = Value> + 'a {
        (0..ssa.values.len() as u32).map(Value).filter(move |value| self.is_held_across(ssa, *value, inst))
    }

    /// 32-bit words that an invocation holds at once, at most, in front of an instruction or the end of a region, or below it.
    /// What an instruction reads is held in front of it; what it results in is not yet.
    #[must_use]
    pub fn pressure(&self, ssa: &Ssa, region: RegionId) -> u32 {
        let end = self.positions.ends[region.index()] as usize;
        let start = ssa.region(region).insts.first().map_or(end, |first| self.positions.insts[first.index()].0 as usize);
        self.words[start..=end].iter().copied().max().unwrap_or(0)
    }
}

/// What a loop needs of the variables that were declared before it.
#[derive(Clone, Debug)]
pub struct LoopVariables {
    /// The loop.
    pub stmt: StmtId,
    /// What it assigns. These, and the others, in the order of their declaration.
    pub assigned: Vec<VarId>,
    /// What an iteration may use that was there when it started.
    pub inward: Vec<VarId>,
    /// What it assigns and what is used behind it.
    pub outward: Vec<VarId>,
}

/// About the variables of the kernel that a form was made from. Not for forms that a pass has changed: they have values only.
impl Liveness {
    /// Whether what a variable holds at a grid barrier, which is reached, is used behind it. What is a leaf is not held.
    #[must_use]
    pub fn keeps(&self, ssa: &Ssa, barrier: InstId, var: VarId) -> bool {
        ssa.value_at(ssa.inst(barrier).stmt, var).is_some_and(|value| self.is_held_across(ssa, value, barrier))
    }

    /// The loops that are reached, in the order of their statements.
    #[must_use]
    pub fn loops(&self, ssa: &Ssa) -> Vec<LoopVariables> {
        let (mut assigned, read) = (variables::assigned(&ssa.kernel), variables::read(&ssa.kernel));
        let mut loops = Vec::new();
        ssa.for_each_inst(ssa.root, &mut |_, inst| {
            let InstKind::Loop { body, .. } = inst.kind else { return };
            // One result and one argument behind the counter for each variable that is assigned.
            let assigned = std::mem::take(&mut assigned[inst.stmt.index()]);
            let used = |values: &[Value]| -> Vec<VarId> {
                let pairs = assigned.iter().zip(values);
                pairs.filter(|(_, value)| self.positions.users[value.index()] != User::Nobody).map(|(var, _)| *var).collect()
            };
            let mut inward = used(&ssa.region(body).args[1..]);
            let outward = used(&inst.results);
            inward.extend(read[inst.stmt.index()].iter().filter(|var| assigned.binary_search(var).is_err()));
            inward.sort_unstable();
            loops.push(LoopVariables { stmt: inst.stmt, assigned, inward, outward });
        });
        loops
    }
}

fn held(def: Def) -> bool {
    match def {
        Def::Leaf(_) => false,
        Def::Result(..) | Def::Argument(..) => true,
    }
}

fn words(ty: ValueType) -> u32 {
    ty.bytes().div_ceil(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(text: &str) -> Ssa {
        let program = crate::text::parse("test", text).unwrap_or_else(|report| panic!("{report}"));
        program.validated().unwrap_or_else(|report| panic!("{report}")).ssa().clone()
    }

    fn barrier(ssa: &Ssa) -> InstId {
        let mut found = None;
        ssa.for_each_inst(ssa.root, &mut |id, inst| {
            if matches!(inst.kind, InstKind::Barrier) {
                found = Some(id);
            }
        });
        found.expect("the program has a barrier")
    }

    #[test]
    fn what_a_barrier_has_to_keep() {
        let ssa = form(
            "program p {\n  workgroup 4\n  buffer x: read u32 @0\n  buffer out: output u32 @1\n  buffer tile: workgroup u32[4]\n\n  \
             let a = x[gid.x]\n  let b = a + 1\n  tile[lid.x] = a\n  for k in 0..2 {\n    barrier\n    out[gid.x] = b + tile[k]\n  }\n}\n",
        );
        let liveness = Liveness::of(&ssa);
        let names: Vec<&str> = liveness
            .held_across(&ssa, barrier(&ssa))
            .filter_map(|value| ssa.value(value).var)
            .map(|var| ssa.kernel.var(var).name.as_str())
            .collect();
        // The next iteration needs `b` again; `a` was stored, and `k` is behind the barrier too.
        assert_eq!(names, ["b", "k"]);
        // `b`, `k`, and in turn what is loaded and the sum.
        assert_eq!(liveness.pressure(&ssa, ssa.root), 3);
    }

    #[test]
    fn a_barrier_in_a_loop_keeps_the_bound_and_the_counter() {
        let ssa = form(
            "program p {\n  workgroup 4\n  buffer x: read u32 @0\n  buffer out: output u32 @1\n\n  let n = x[0]\n  for k in 0..n {\n    \
             out[gid.x] = 1\n    barrier\n  }\n}\n",
        );
        let liveness = Liveness::of(&ssa);
        let held: Vec<Value> = liveness.held_across(&ssa, barrier(&ssa)).collect();
        let InstKind::Loop { to, body, .. } = ssa.inst(ssa.region(ssa.root).insts[1]).kind else { panic!("a loop comes second") };
        assert_eq!(held, [to, ssa.region(body).args[0]]);
        assert_eq!(liveness.pressure(&ssa, ssa.root), 2);
    }

    #[test]
    fn what_loops_need_of_variables() {
        let ssa = form(
            "program p {\n  workgroup 4\n  buffer x: read u32 @0\n  buffer out: output u32 @1\n\n  let a = x[0]\n  let b = x[1]\n  \
             let c = x[2]\n  let d = x[3]\n  let e = x[4]\n  for k in 0..e {\n    b = a + k\n    c = c + b\n    \
             if c > 7 {\n      d = c\n      break\n    }\n    for l in 0..a {\n      c = c * 3\n    }\n  }\n  out[0] = d + e\n}\n",
        );
        let spelled = |vars: &[VarId]| vars.iter().map(|var| ssa.kernel.var(*var).name.as_str()).collect::<Vec<_>>().join(" ");
        let loops = Liveness::of(&ssa).loops(&ssa);
        let loops = loops.iter().map(|found| [spelled(&found.assigned), spelled(&found.inward), spelled(&found.outward)]);
        // An iteration overwrites `b` before it reads it, and hands `d` on unread; behind the loop nobody reads `c`, and `e` is a bound.
        // Behind the inner loop the next iteration of the outer one reads `c`.
        assert_eq!(loops.collect::<Vec<_>>(), [["b c d", "a c d", "d"], ["c", "c", "c"]]);
    }

    #[test]
    fn what_a_grid_barrier_keeps_of_variables() {
        let ssa = form(
            "program p {\n  workgroup 4\n  buffer x: read u32 @0\n  buffer out: output u32 @1\n\n  let a = x[0]\n  let b = x[1]\n  \
             let c = x[2]\n  let d = 5\n  let e = x[4]\n  if a == 0 {\n    e = a\n  }\n  barrier.grid\n  out[0] = a\n  \
             b = 3\n  out[1] = b + d\n  if a == 1 {\n    e = 2\n  }\n  out[2] = e\n}\n",
        );
        let barrier = ssa.region(ssa.root).insts.iter().copied().find(|inst| matches!(ssa.inst(*inst).kind, InstKind::GridSync));
        let liveness = Liveness::of(&ssa);
        let kept = (0..ssa.kernel.vars.len() as u32)
            .map(VarId)
            .filter(|var| liveness.keeps(&ssa, barrier.expect("there is one"), *var))
            .map(|var| ssa.kernel.var(var).name.as_str());
        // `b` is overwritten, nobody reads `c`, and `d` is a literal.
        assert_eq!(kept.collect::<Vec<_>>(), ["a", "e"]);
    }
}
