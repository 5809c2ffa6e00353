//! The accesses to memory that is written: their indices as sums, and what holds where they stand.

use super::Prover;
use super::quotients::Divisions;
use super::sums::Sum;
use crate::analysis::affine::{Affine, Product};
use crate::analysis::uniformity::Scope;
use crate::ir::{AtomicOp, Builtin};
use crate::kernel::{AccessId, AccessKind};
use crate::ssa::{Def, InstKind, Leaf, Value};
use std::collections::BTreeMap;
use vyre_spec::{ReduceOp, Scalar, SubgroupShape};

/// Comparisons around an access that are looked at, the innermost.
const MAX_COMPARISONS: usize = 64;

/// What holds for an atom where an access stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct AtomFacts {
    pub(super) low: u32,
    pub(super) high: u32,
    /// Values that it is below, by number.
    pub(super) below: Vec<Value>,
}

/// One access to a buffer that can be written.
#[derive(Clone)]
pub(super) struct Site {
    pub(super) access: AccessId,
    /// It and those that are the same to whoever compares indices as sums.
    pub(super) alike: Vec<AccessId>,
    /// The number of those that compare alike, also in other buffers.
    pub(super) likeness: u32,
    pub(super) kind: AccessKind,
    /// Of an atomic whose result nobody uses.
    pub(super) unused: Option<AtomicOp>,
    /// Of a store of a value that is the same for all: that value.
    pub(super) stored: Option<Value>,
    pub(super) index: Affine,
    /// The index with what the conditions around are about as atoms: `y * h + x` if they say that `x < h`, also where `x` is a sum.
    pub(super) grouped: Option<Affine>,
    /// What has to hold for the index to be that.
    pub(super) needs: Vec<Sum>,
    /// What holds for the atoms of the index, and for the ids.
    pub(super) facts: BTreeMap<Value, AtomFacts>,
    pub(super) ids: BTreeMap<Builtin, AtomFacts>,
    /// All values that something is below here, in order.
    pub(super) bounds: Vec<Value>,
    /// Atoms that are sums over lanes, which whoever gets here adds at least 1 to, and which do not wrap.
    pub(super) adds: Vec<Value>,
}

impl Site {
    /// Whether it is the same as another to whoever compares their indices as sums.
    pub(super) fn compares_like(&self, other: &Site) -> bool {
        (&self.index, &self.grouped, &self.needs) == (&other.index, &other.grouped, &other.needs)
            && (&self.facts, &self.ids, &self.adds) == (&other.facts, &other.ids, &other.adds)
    }
}

impl Prover<'_> {
    /// By buffer: its accesses, if it can be written.
    pub(super) fn sites(&mut self) -> Vec<Vec<Site>> {
        let ssa = self.ssa;
        let numbers = &self.numbers;
        let forms = &self.forms;
        let divisions = Divisions { ssa, numbers, forms };
        let mut sites: Vec<Vec<Site>> = vec![Vec::new(); ssa.kernel.buffers.len()];
        let used = &self.used;
        let ids: Vec<(Builtin, Value)> = (0..ssa.values.len() as u32)
            .map(Value)
            .filter_map(|value| match ssa.leaf(value) {
                Some(Leaf::Builtin { builtin }) => Some((builtin, value)),
                Some(Leaf::Lit { .. } | Leaf::Len { .. }) | None => None,
            })
            .collect();
        let uniformity = self.uniformity;
        let loops = &self.loops;
        self.flow.run(&mut |flow, id| {
            let inst = ssa.inst(id);
            let (access, buffer, index) = match inst.kind {
                InstKind::Load { access, buffer, index }
                | InstKind::Store { access, buffer, index, .. }
                | InstKind::Atomic { access, buffer, index, .. } => (access, buffer, index),
                InstKind::Op(_)
                | InstKind::Subgroup { .. }
                | InstKind::If { .. }
                | InstKind::Loop { .. }
                | InstKind::Barrier
                | InstKind::GridSync => return,
            };
            if !ssa.kernel.buffer(buffer).access.is_writable() {
                return;
            }
            let facts = |value: Value| {
                let range = flow.range(value);
                let number = flow.numbers.of_value(value);
                let near = flow.less.iter().rev().take(MAX_COMPARISONS);
                let below = near.filter(|(small, _)| *small == number).map(|(_, large)| *large).collect();
                AtomFacts { low: range.low, high: range.high, below }
            };
            let (index, needs) = divisions.folded(forms.form(ssa, numbers, index));
            let atoms = index.terms.iter().flat_map(|(product, _)| product.iter().copied());
            let near = flow.less.iter().rev().take(MAX_COMPARISONS).map(|(small, _)| *small);
            let grouped = grouped(&index, near, |value| forms.form(ssa, numbers, value));
            let groups = grouped.iter().flat_map(|index| &index.terms).flat_map(|(product, _)| product.iter().copied());
            // What quotients and remainders are of, too.
            let within = atoms.clone().flat_map(|atom| divisions.within(atom));
            let is_unused = inst.results.iter().all(|result| !used[result.index()]);
            let unused = if let InstKind::Atomic { op, .. } = inst.kind { Some(op).filter(|_| is_unused) } else { None };
            // A value that is one and the same in every invocation and iteration.
            let everywhere = |value: Value| {
                let settled = match ssa.value(value).def {
                    Def::Leaf(_) => true,
                    Def::Result(inst, _) => loops[inst.index()].is_empty(),
                    Def::Argument(..) => false,
                };
                settled && uniformity.is_uniform(value, Scope::Dispatch)
            };
            let stored = if let InstKind::Store { value, .. } = inst.kind { Some(numbers.of_value(value)) } else { None };
            let stored = stored.filter(|value| everywhere(*value));
            let adds = atoms.clone().filter(|atom| {
                let Def::Result(scan, _) = ssa.value(*atom).def else { return false };
                let InstKind::Subgroup { op, ty: Scalar::U32, operands } = ssa.inst(scan).kind else { return false };
                let is_sum = match op.shape() {
                    SubgroupShape::Inclusive(with) | SubgroupShape::Exclusive(with) => with == ReduceOp::Add,
                    SubgroupShape::Vote(_) | SubgroupShape::Shuffle(_) | SubgroupShape::Reduce(_) => false,
                };
                let most = u64::from(flow.ranges[operands[0].index()].high) * u64::from(ssa.kernel.subgroup.unwrap_or(0));
                is_sum && flow.refined(operands[0]).low >= 1 && most <= u64::from(u32::MAX)
            });
            let facts_of = |value: Value| (value, facts(value));
            let ids: BTreeMap<Builtin, AtomFacts> = ids.iter().map(|(builtin, value)| (*builtin, facts(*value))).collect();
            let facts: BTreeMap<Value, AtomFacts> = atoms.clone().chain(groups).chain(within).map(facts_of).collect();
            let mut bounds: Vec<Value> = facts.values().chain(ids.values()).flat_map(|facts| &facts.below).copied().collect();
            bounds.sort_unstable();
            bounds.dedup();
            sites[buffer.index()].push(Site {
                adds: adds.collect(),
                bounds,
                access,
                alike: vec![access],
                likeness: 0,
                kind: ssa.kernel.access(access).kind,
                unused,
                stored,
                facts,
                grouped,
                needs,
                ids,
                index,
            });
        });
        sites
    }
}

/// An index in which sums that are compared around it are atoms, if it has any.
fn grouped(index: &Affine, compared: impl Iterator<Item = Value>, form: impl Fn(Value) -> Affine) -> Option<Affine> {
    let mut now = index.clone();
    for value in compared {
        let sum = form(value);
        // One term is an atom, or a multiple of one, and needs no name of its own.
        let Some((first, 1)) = sum.terms.iter().find(|(_, times)| *times == 1).filter(|_| sum.terms.len() > 1) else { continue };
        let multiples = now.terms.iter().filter_map(|(product, times)| Some((divided(product, first)?, *times)));
        let found = multiples.map(|(rest, times)| {
            let factor = if rest.is_empty() { Affine::one() } else { Affine::of_terms(vec![(Product::of(&rest), 1)], 0) };
            let taken = sum.times(&factor).map(|taken| now.plus(&taken, times.wrapping_neg()));
            let named = Affine::atom(value).times(&factor);
            (taken, named, times)
        });
        let next = found.into_iter().find_map(|(taken, named, times)| {
            let taken = taken.filter(|taken| taken.terms.len() + sum.terms.len() == now.terms.len())?;
            Some(taken.plus(&named?, times))
        });
        if let Some(next) = next {
            now = next;
        }
    }
    (now != *index).then_some(now)
}

/// What is left of a product without the atoms of another, if it has them.
fn divided(product: &Product, by: &Product) -> Option<Vec<Value>> {
    let mut rest = product.to_vec();
    for atom in by.iter() {
        let at = rest.iter().position(|other| other == atom)?;
        rest.remove(at);
    }
    Some(rest)
}
