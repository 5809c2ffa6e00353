//! What people are told: conditions as they would write them, and why there is no proof.

use super::compare::Pairs;
use super::launch::{count_of, is_known_at_launch};
use super::sites::Site;
use super::sums::{Atom, Sum};
use super::{Prover, Reason};
use crate::analysis::uniformity::Scope;
use crate::ir::BinaryOp;
use crate::kernel::{AccessKind, BufferId, VarId};
use crate::ssa::{Def, InstId, InstKind, Leaf, Op, Value};

impl Prover<'_> {
    /// Why two accesses are not known to keep out of each other's way, for pairs of invocations like these.
    pub(super) fn refusal(&self, buffer: BufferId, a: &Site, b: &Site, pairs: Pairs) -> Reason {
        let name = &self.ssa.kernel.buffer(buffer).name;
        // The one that writes is the one to look at.
        let (site, other) = if a.kind.writes() { (a, b) } else { (b, a) };
        let is_same = a.access == b.access;
        let atomic = |site: &Site| match site.kind {
            AccessKind::Atomic | AccessKind::AtomicLoad => true,
            AccessKind::Load | AccessKind::Store => false,
        };
        let source = self.source(site).or_else(|| self.source(other));
        let missed = self.missed.borrow();
        let both_atomic = atomic(a) && atomic(b);
        let whose = match pairs {
            Pairs::Any => "two invocations",
            Pairs::OneGroup => "two invocations of a workgroup",
            Pairs::TwoGroups => "invocations of different workgroups",
        };
        let mut message = match (both_atomic, a.unused.is_some() && b.unused.is_some(), is_same) {
            (true, true, _) => format!("the order of these atomics on `{name}` may show in what they leave"),
            (true, false, _) => format!("the result of an atomic on `{name}` depends on the order of invocations"),
            (false, _, true) => format!("{whose} may write one element of `{name}` here"),
            (false, _, false) => match pairs {
                Pairs::Any => format!("one invocation may touch an element of `{name}` that another writes"),
                Pairs::OneGroup => {
                    format!("one invocation may touch an element of `{name}` that another of its workgroup writes")
                }
                Pairs::TwoGroups => {
                    format!("one invocation may touch an element of `{name}` that one of another workgroup writes")
                }
            },
        };
        let is_constant = |site: &Site| site.index.terms.is_empty();
        if !both_atomic {
            let is_count = |sum: &&Sum| matches!(sum.upper_bound(), Some((Atom::Count(_), 1..=0xFFFF_FFFF)));
            if let Some(source) = &source {
                message.push_str(&format!(": {source}, and nothing says that two never get the same"));
            } else if let Some(missed) = missed.as_ref().filter(is_count).filter(|_| !(is_constant(a) && is_constant(b))) {
                let [x, y, z] = self.ssa.kernel.workgroup_size;
                let needed = self.spelled(missed);
                message.push_str(&format!(": it would take `{needed}`, which no launch of workgroups of {x} x {y} x {z} meets"));
            }
        }
        let loops = |site: &Site| self.loops_around(site);
        // They are apart within an iteration, by a barrier that stands between them.
        let order = |site: &Site| self.inst(site).map(|id| self.order[id.index()]);
        let between = |id: InstId| {
            let at = Some(self.order[id.index()]);
            (order(a) < at && at < order(b)) || (order(b) < at && at < order(a))
        };
        let waits = |id: &InstId| matches!(self.ssa.inst(*id).kind, InstKind::Barrier | InstKind::GridSync) && between(*id);
        let meets_next_iteration = loops(a).iter().any(|around| {
            let barriers = (0..self.ssa.insts.len() as u32).map(InstId).filter(waits);
            loops(b).contains(around) && barriers.into_iter().any(|id| self.loops[id.index()].contains(around))
        });
        let help = if both_atomic {
            match a.unused.is_some() && b.unused.is_some() {
                true => "use atomics that commute with each other, or put a barrier between them",
                false => {
                    "do not use the result, or give each invocation an element of its own; a scan gives places without atomics"
                }
            }
        } else if is_same && is_constant(site) {
            "let one invocation write it (`if gid.x == 0`), or one of each workgroup an element of its own (`if lid.x == 0` and \
             `out[wid.x]`), or use an atomic that commutes, such as `atomic.add`"
        } else if source.is_some() {
            "write to an index made of ids and fetch what belongs there, or use an atomic that commutes, such as `atomic.add`"
        } else if is_same {
            "use an index that is different for every invocation, such as `gid.y * gid_count.x + gid.x`, and guard what must not \
             overlap: `if gid.x < w`"
        } else if pairs == Pairs::TwoGroups {
            "a `barrier` waits for one workgroup only: put a `barrier.grid` between them, use two dispatches, or give each workgroup \
             elements of its own"
        } else if meets_next_iteration {
            "the end of one iteration meets the start of the next: put a second `barrier` at the end of the loop"
        } else {
            "put a `barrier` between them (`barrier.grid` between workgroups), or give each invocation elements of its own"
        };
        let other = Some(self.node(other)).filter(|_| !is_same);
        Reason { message, help, node: self.node(site), other }
    }

    /// Where a number comes from that is in an index, is not the same for all, and of which nothing is known.
    fn source(&self, site: &Site) -> Option<String> {
        let ssa = self.ssa;
        let atoms = site.index.terms.iter().flat_map(|(product, _)| product.iter().copied());
        atoms.filter(|atom| !self.uniformity.is_uniform(*atom, Scope::Dispatch)).find_map(|atom| {
            let variable = || Some(format!("the index depends on `{}`", ssa.kernel.var(ssa.value(atom).var?).name));
            let Def::Result(inst, _) = ssa.value(atom).def else { return None };
            match &ssa.inst(inst).kind {
                InstKind::Load { buffer, .. } => Some(format!("the index is read from `{}`", ssa.kernel.buffer(*buffer).name)),
                InstKind::Atomic { buffer, .. } => {
                    Some(format!("the index is what an atomic on `{}` gave", ssa.kernel.buffer(*buffer).name))
                }
                InstKind::Subgroup { .. } | InstKind::If { .. } | InstKind::Loop { .. } => variable(),
                InstKind::Op(_) | InstKind::Store { .. } | InstKind::Barrier | InstKind::GridSync => None,
            }
        })
    }

    /// `not_negative >= 0` as people would write it: what is taken away on the left, what it is taken from on the right.
    pub(super) fn spelled(&self, not_negative: &Sum) -> String {
        let part = |positive: bool| -> String {
            let mut parts: Vec<String> = Vec::new();
            for (atoms, times) in not_negative.parts().iter().rev() {
                if (*times > 0) != positive {
                    continue;
                }
                let mut factors: Vec<String> = atoms.iter().map(|atom| self.name(*atom)).collect();
                if times.abs() != 1 || atoms.is_empty() {
                    factors.insert(0, times.abs().to_string());
                }
                parts.push(factors.join(" * "));
            }
            if parts.is_empty() { "0".into() } else { parts.join(" + ") }
        };
        format!("{} <= {}", part(false), part(true))
    }

    pub(super) fn name(&self, atom: Atom) -> String {
        let ssa = self.ssa;
        match atom {
            Atom::Count(builtin) => builtin.to_string(),
            Atom::Most(value) => self.name_of_most(value),
            Atom::Value(value) => match (ssa.value(value).def, ssa.value(value).var) {
                (Def::Leaf(Leaf::Builtin { builtin }), _) => builtin.to_string(),
                (Def::Leaf(Leaf::Len { buffer }), _) => format!("len({})", ssa.kernel.buffer(buffer).name),
                (Def::Leaf(Leaf::Lit { bits }), _) => bits.to_string(),
                (_, Some(var)) if self.is_only_name(var) => ssa.kernel.var(var).name.to_string(),
                (Def::Result(inst, _), _) => match &ssa.inst(inst).kind {
                    InstKind::Load { buffer, index, .. } => {
                        format!("{}[{}]", ssa.kernel.buffer(*buffer).name, self.name(Atom::Value(*index)))
                    }
                    InstKind::Op(Op::Binary { op, left, right, .. }) => {
                        format!("{op}({}, {})", self.name(Atom::Value(*left)), self.name(Atom::Value(*right)))
                    }
                    InstKind::Op(Op::Cast { to, value, .. }) => format!("{to}({})", self.name(Atom::Value(*value))),
                    InstKind::Op(_)
                    | InstKind::Store { .. }
                    | InstKind::Atomic { .. }
                    | InstKind::Subgroup { .. }
                    | InstKind::If { .. }
                    | InstKind::Loop { .. }
                    | InstKind::Barrier
                    | InstKind::GridSync => format!("%{}", value.0),
                },
                (Def::Argument(..), _) => format!("%{}", value.0),
            },
        }
    }

    /// Whether no other variable has the name of this one.
    fn is_only_name(&self, var: VarId) -> bool {
        let vars = &self.ssa.kernel.vars;
        vars.iter().filter(|other| other.name == self.ssa.kernel.var(var).name).count() == 1
    }

    /// The largest that a value can be.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "an op whose largest value is not known at the launch has a name like any other"
    )]
    fn name_of_most(&self, value: Value) -> String {
        let ssa = self.ssa;
        if let Some(Leaf::Builtin { builtin: id }) = ssa.leaf(value)
            && let Some(count) = count_of(id)
        {
            return format!("({count} - 1)");
        }
        let sign = |op: BinaryOp| match op {
            BinaryOp::Div => Some("/"),
            BinaryOp::Shr => Some(">>"),
            BinaryOp::Rem => Some("%"),
            BinaryOp::Add => Some("+"),
            BinaryOp::Mul => Some("*"),
            _ => None,
        };
        match ssa.op(value) {
            Some(Op::Binary { op, left, right, .. }) if !is_known_at_launch(ssa, value) => match sign(*op) {
                Some(sign) => format!("({} {sign} {})", self.name_of_most(*left), self.name_of_most(*right)),
                None => self.name(Atom::Value(value)),
            },
            _ => self.name(Atom::Value(value)),
        }
    }
}
