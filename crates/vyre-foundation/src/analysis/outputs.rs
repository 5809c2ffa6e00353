//! Which outputs a launch writes completely, so that they need no zeroing first.
//!
//! An output is zero at the start of a dispatch. If every element is stored to, and nothing reads one before, nobody can tell. That is
//! so if
//!
//! - nothing loads from the buffer, and no atomic touches it;
//! - stores to it that every invocation executes cover it: at `n·g + 0` to `n·g + n−1`, where `g` is the number of the invocation,
//!   `gid.x` or `gid.y * gid_count.x + gid.x` or the same in three dimensions;
//! - no invocation is kept from them but by the bounds of the buffer itself: `if i < len(out) { … }`, or a `return` where `i >= len(out)`,
//!   with the index that is stored to.
//!
//! A launch then covers the buffer if it has enough invocations ([`Outputs::is_covered`]). A trap leaves no outputs, so it may come
//! after the stores, not before.

use super::affine::{Affine, Forms};
use super::numbers::Numbers;
use crate::ir::{Access, Axis, BinaryOp, Builtin, Scalar, UnaryOp};
use crate::kernel::BufferId;
use crate::launch::Launch;
use crate::ssa::{InstKind, Leaf, Op, RegionId, Ssa, Terminator, Value};
use std::collections::BTreeMap;

/// How an output is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Written {
    /// Elements that each invocation stores to.
    per: u32,
    /// The axes that the number of an invocation counts.
    axes: u8,
}

/// Which outputs are written completely.
#[derive(Clone, Debug)]
pub struct Outputs {
    /// By buffer.
    written: Vec<Option<Written>>,
}

impl Outputs {
    /// The facts of a form.
    #[must_use]
    pub fn of(ssa: &Ssa) -> Outputs {
        let numbers = Numbers::of(ssa);
        let forms = Forms::of(ssa, &numbers);
        let mut search = Search {
            ssa,
            numbers: &numbers,
            forms: &forms,
            read: vec![false; ssa.kernel.buffers.len()],
            stores: BTreeMap::new(),
            kept_in: Vec::new(),
        };
        ssa.for_each_inst(ssa.root, &mut |_, inst| match inst.kind {
            InstKind::Load { buffer, .. } | InstKind::Atomic { buffer, .. } => search.read[buffer.index()] = true,
            InstKind::Store { .. }
            | InstKind::Op(_)
            | InstKind::Subgroup { .. }
            | InstKind::If { .. }
            | InstKind::Loop { .. }
            | InstKind::Barrier
            | InstKind::GridSync => {}
        });
        search.region(ssa.root);
        let written = (0..ssa.kernel.buffers.len()).map(|n| search.written(BufferId(n as u32))).collect();
        Outputs { written }
    }

    /// Whether a launch writes every element of a buffer before anything reads it.
    #[must_use]
    pub fn is_covered(&self, buffer: BufferId, launch: &Launch) -> bool {
        self.written[buffer.index()].is_some_and(|Written { per, axes }| {
            let counts =
                Axis::ALL.map(|axis| u64::from(launch.grid[axis as usize]) * u64::from(launch.workgroup_size[axis as usize]));
            let counted = counts[..usize::from(axes)].iter().try_fold(u64::from(per), |all, count| all.checked_mul(*count));
            // Indices that wrap do not get further.
            let runs = counts.iter().all(|count| *count > 0);
            counted.is_some_and(|elements| elements.min(1 << 32) >= u64::from(launch.lengths[buffer.index()])) && runs
        })
    }
}

struct Search<'a> {
    ssa: &'a Ssa,
    numbers: &'a Numbers,
    forms: &'a Forms,
    /// By buffer: whether something loads from it or touches it by an atomic.
    read: Vec<bool>,
    /// By buffer: the indices that every invocation stores to that they name elements of.
    stores: BTreeMap<BufferId, Vec<Affine>>,
    /// Indices that must be below the length of a buffer for an invocation to get here.
    kept_in: Vec<(Value, BufferId)>,
}

impl Search<'_> {
    /// Walks what every invocation executes that is not kept out by bounds; gives whether control goes on behind.
    fn region(&mut self, id: RegionId) -> bool {
        for inst in &self.ssa.region(id).insts {
            match self.ssa.inst(*inst).kind {
                InstKind::Store { buffer, index, .. } => {
                    let own = (self.numbers.of_value(index), buffer);
                    if self.kept_in.iter().all(|kept| *kept == own) {
                        let form = self.forms.form(self.ssa, self.numbers, index);
                        self.stores.entry(buffer).or_default().push(form);
                    }
                }
                InstKind::If { cond, then, otherwise } => {
                    if !self.branch(cond, [then, otherwise]) {
                        return false;
                    }
                }
                // Invocations may be retired in a loop, and then miss what follows.
                InstKind::Loop { body, .. } => {
                    if retires(self.ssa, body) {
                        return false;
                    }
                }
                InstKind::Op(_)
                | InstKind::Load { .. }
                | InstKind::Atomic { .. }
                | InstKind::Subgroup { .. }
                | InstKind::Barrier
                | InstKind::GridSync => {}
            }
        }
        self.ssa.region(id).end.is_yield()
    }

    fn branch(&mut self, cond: Value, arms: [RegionId; 2]) -> bool {
        let bounds = [true, false].map(|holds| self.bound(cond, holds));
        for (arm, bound) in arms.into_iter().zip(bounds) {
            if let Some(bound) = bound {
                let mark = self.kept_in.len();
                self.kept_in.push(bound);
                self.region(arm);
                self.kept_in.truncate(mark);
            }
        }
        // An arm that some invocations leave another way keeps them from what follows. If all that are left are those in bounds,
        // the rest can still cover what is in bounds.
        let leaves = arms.map(|arm| retires(self.ssa, arm));
        match (leaves, bounds) {
            ([false, false], _) => true,
            ([true, false], [_, Some(bound)]) | ([false, true], [Some(bound), _]) => {
                self.kept_in.push(bound);
                true
            }
            (_, _) => false,
        }
    }

    /// What it means that a condition holds, or does not, if that is that an index is below the length of a buffer.
    fn bound(&self, cond: Value, holds: bool) -> Option<(Value, BufferId)> {
        let length = |value: Value| match self.ssa.leaf(value)? {
            Leaf::Len { buffer } => Some(buffer),
            Leaf::Lit { .. } | Leaf::Builtin { .. } => None,
        };
        match *self.ssa.op(cond)? {
            Op::Unary { op: UnaryOp::Not, operand, .. } => self.bound(operand, !holds),
            Op::Binary { op, ty: Scalar::U32, left, right } => {
                let (index, buffer) = match (op, holds) {
                    (BinaryOp::Lt, true) | (BinaryOp::Ge, false) => (left, length(right)?),
                    (BinaryOp::Gt, true) | (BinaryOp::Le, false) => (right, length(left)?),
                    _ => return None,
                };
                Some((self.numbers.of_value(index), buffer))
            }
            Op::Unary { .. }
            | Op::Binary { .. }
            | Op::Ternary { .. }
            | Op::Cast { .. }
            | Op::Bitcast { .. }
            | Op::Vector { .. }
            | Op::Extract { .. } => None,
        }
    }

    fn written(&self, buffer: BufferId) -> Option<Written> {
        if self.ssa.kernel.buffer(buffer).access != Access::Output || self.read[buffer.index()] {
            return None;
        }
        let stores = self.stores.get(&buffer)?;
        for axes in 1..=3u8 {
            let number = self.number(axes)?;
            for per in stores.iter().filter_map(|store| self.factor(store, &number)) {
                let has = |n: u32| stores.iter().any(|store| store.constant == n && self.factor(store, &number) == Some(per));
                if per as usize <= stores.len() && (0..per).all(has) {
                    return Some(Written { per, axes });
                }
            }
        }
        None
    }

    /// How many times the number of the invocation an index is, beside what is added.
    fn factor(&self, index: &Affine, number: &Affine) -> Option<u32> {
        let (_, first) = *index.terms.first()?;
        let same = index.terms.len() == number.terms.len()
            && index.terms.iter().zip(&number.terms).all(|(own, of)| own.0 == of.0 && own.1 == first.wrapping_mul(of.1));
        same.then_some(first)
    }

    /// The number of an invocation along so many axes, x fastest, if the program reads what it is made of.
    fn number(&self, axes: u8) -> Option<Affine> {
        let leaf = |builtin: Builtin| {
            (0..self.ssa.values.len() as u32)
                .map(Value)
                .find(|value| matches!(self.ssa.leaf(*value), Some(Leaf::Builtin { builtin: found }) if found == builtin))
        };
        let mut terms = Vec::new();
        for axis in &Axis::ALL[..usize::from(axes)] {
            let mut atoms = vec![leaf(Builtin::Invocation(*axis))?];
            for slower in &Axis::ALL[..*axis as usize] {
                atoms.push(leaf(Builtin::InvocationCount(*slower))?);
            }
            atoms.sort_unstable();
            terms.push((super::affine::Product::of(&atoms), 1));
        }
        terms.sort_unstable();
        Some(Affine { terms, constant: 0 })
    }
}

/// Whether a region may retire an invocation, or leave it another way than by its end.
fn retires(ssa: &Ssa, region: RegionId) -> bool {
    let own = match ssa.region(region).end {
        Terminator::Yield(_) => false,
        Terminator::Return | Terminator::Trap(_) | Terminator::Unreachable | Terminator::Break(_) | Terminator::Continue(_) => {
            true
        }
    };
    let below = |inst: &crate::ssa::InstId| match ssa.inst(*inst).kind {
        InstKind::If { then, otherwise, .. } => retires(ssa, then) || retires(ssa, otherwise),
        InstKind::Loop { body, .. } => ends_invocations(ssa, body),
        InstKind::Op(_)
        | InstKind::Load { .. }
        | InstKind::Store { .. }
        | InstKind::Atomic { .. }
        | InstKind::Subgroup { .. }
        | InstKind::Barrier
        | InstKind::GridSync => false,
    };
    own || ssa.region(region).insts.iter().any(below)
}

/// Whether there is a `return` or `trap` in a region.
fn ends_invocations(ssa: &Ssa, region: RegionId) -> bool {
    let mut found = false;
    ssa.for_each_region(region, &mut |_, region| {
        found |= matches!(region.end, Terminator::Return | Terminator::Trap(_));
    });
    found
}
