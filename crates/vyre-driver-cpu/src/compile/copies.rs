//! Values that are handed on: to the results of an `if`, to the next iteration of a loop.

use super::lower::{Lower, components_of, scalar_of};
use super::places::{Loc, Locs, Mask};
use super::shape::Shape;
use crate::faults::Fault;
use crate::machine::lir::{Inst, Src, V3};
use smallvec::SmallVec;
use vyre_foundation::ir::BinaryOp;
use vyre_foundation::ssa::{Op, RegionId, Terminator, Value};
use vyre_spec::Scalar;

/// Ops that change nothing if their second operand is zero.
const STEPS: [(BinaryOp, V3); 4] =
    [(BinaryOp::Add, V3::vpaddd), (BinaryOp::Sub, V3::vpsubd), (BinaryOp::BitOr, V3::vpor), (BinaryOp::BitXor, V3::vpxor)];

impl Lower<'_> {
    /// Copies what a region yields to the results of its `if`.
    pub fn yield_to(&mut self, region: RegionId, places: &[Locs], mask: &Mask) {
        let Terminator::Yield(values) = &self.ssa.region(region).end else { return };
        for (value, place) in values.iter().zip(places) {
            self.copy_value(*value, place, mask);
        }
    }

    pub fn copy_value(&mut self, value: Value, place: &Locs, mask: &Mask) {
        let ty = self.ssa.value(value).ty;
        for component in 0..components_of(ty) {
            let from = self.loc(value, component);
            self.copy_to(scalar_of(ty), &place[usize::from(component)], &from, mask);
        }
    }

    /// Copies several values at once: places that others still read are read first.
    pub fn copy_all(&mut self, values: &[Value], places: &[Locs], mask: &Mask) {
        self.copy_all_under(values, places, mask, &[]);
    }

    /// The same; some of them for all lanes.
    pub fn copy_all_under(&mut self, values: &[Value], places: &[Locs], mask: &Mask, unmasked: &[bool]) {
        let mut from: Vec<Locs> = Vec::with_capacity(values.len());
        for (n, value) in values.iter().enumerate() {
            let ty = self.ssa.value(*value).ty;
            let mut locs: Locs = SmallVec::new();
            for component in 0..components_of(ty) {
                let loc = self.loc(*value, component);
                // Components of one vector may change places too.
                let shared = places.iter().enumerate().any(|(other, place)| {
                    let is_own = |at: usize| other == n && at == usize::from(component);
                    place.iter().enumerate().any(|(at, place)| !is_own(at) && overlap(place, &loc))
                });
                let shared = shared && !self.planted(Fault::CopiesInSequence);
                locs.push(if shared { self.fresh_copy(scalar_of(ty), &loc) } else { loc });
            }
            from.push(locs);
        }
        for (n, ((value, from), place)) in values.iter().zip(from).zip(places).enumerate() {
            let ty = self.ty(*value);
            let mask = if unmasked.get(n) == Some(&true) { &None } else { mask };
            for (from, to) in from.iter().zip(place) {
                if !same(to, from) && !self.step(*value, to, mask, places) {
                    self.copy_to(ty, to, from, mask);
                }
            }
        }
    }

    /// Changes a varying place under a mask if what it becomes is itself and something that is added to it, or the like: nothing
    /// is added for those who are not active. Whether it did.
    fn step(&mut self, value: Value, to: &Loc, mask: &Mask, places: &[Locs]) -> bool {
        let (Loc::Parts(to), Some(mask)) = (to, mask) else { return false };
        let Some(Op::Binary { op, ty: Scalar::U32 | Scalar::I32, left, right }) = self.ssa.op(value).copied() else {
            return false;
        };
        let Some((_, v3)) = STEPS.iter().find(|(step, _)| *step == op) else { return false };
        let is_place =
            |value: Value| matches!(self.locs.get(value).map(|locs| &locs[..]), Some([Loc::Parts(parts)]) if parts == to);
        let other = if is_place(left) {
            right
        } else if is_place(right) && op != BinaryOp::Sub {
            left
        } else {
            return false;
        };
        let loc = self.loc(other, 0);
        // Another carried value may have changed by now.
        if places.iter().flatten().any(|place| overlap(place, &loc)) {
            return false;
        }
        // A mask is -1.
        let by_mask = match (&loc, op) {
            (Loc::Lit(1), BinaryOp::Add) => Some(V3::vpsubd),
            (Loc::Lit(1), BinaryOp::Sub) => Some(V3::vpaddd),
            (Loc::Lit(_) | Loc::G(_) | Loc::Linear(..) | Loc::Splat(_) | Loc::Parts(_), _) => None,
        };
        if let Some(op) = by_mask {
            to.iter().zip(mask).for_each(|(d, mask)| self.push(Inst::V3 { op, d: *d, a: *d, b: Src::Reg(*mask) }));
            return true;
        }
        let added = self.sources(other);
        for ((d, mask), added) in to.iter().zip(mask).zip(added) {
            let added = self.v3(V3::vpand, *mask, added);
            self.push(Inst::V3 { op: *v3, d: *d, a: *d, b: added.into() });
        }
        true
    }

    fn fresh_copy(&mut self, ty: Scalar, loc: &Loc) -> Loc {
        let shape = match loc {
            Loc::Lit(_) => return loc.clone(),
            Loc::G(_) | Loc::Splat(_) => Shape::Uniform,
            Loc::Linear(_, stride) => Shape::Linear(*stride),
            Loc::Parts(_) => Shape::Varying,
        };
        let copy = match loc {
            Loc::Parts(parts) => Loc::Parts(parts.iter().map(|_| self.new_v()).collect()),
            Loc::Lit(_) | Loc::G(_) | Loc::Splat(_) | Loc::Linear(..) => self.new_loc(ty, shape),
        };
        self.copy_to(ty, &copy, loc, &None);
        copy
    }
}

/// Whether two places have a register in common.
pub(super) fn overlap(one: &Loc, other: &Loc) -> bool {
    match (one, other) {
        (Loc::G(a) | Loc::Linear(a, _), Loc::G(b) | Loc::Linear(b, _)) => a == b,
        (Loc::Splat(a), Loc::Splat(b)) => a == b,
        (Loc::Parts(a), Loc::Parts(b)) => a.iter().any(|v| b.contains(v)),
        (Loc::Splat(a), Loc::Parts(b)) | (Loc::Parts(b), Loc::Splat(a)) => b.contains(a),
        _ => false,
    }
}

pub(super) fn same(one: &Loc, other: &Loc) -> bool {
    match (one, other) {
        (Loc::G(a) | Loc::Linear(a, _), Loc::G(b) | Loc::Linear(b, _)) => a == b,
        (Loc::Splat(a), Loc::Splat(b)) => a == b,
        (Loc::Parts(a), Loc::Parts(b)) => a == b,
        _ => false,
    }
}
