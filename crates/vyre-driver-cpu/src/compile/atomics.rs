//! Atomics.
//!
//! One lane after the other is always right: what lanes find of each other is as good as any order. Where nobody asks for the old value,
//! less is done: lanes that change one element change it once, by what they change it by together, and memory that only one thread can reach
//! is changed without locking it, elements side by side as vectors.
//!
//! **Memory of one thread** is workgroup memory, and what a thread has of a buffer for itself ([`own`](super::own)).

use super::access::lane_at;
use super::context::Context;
use super::helpers::area;
use super::leaves::MachineLeaf;
use super::lower::Lower;
use super::own::Quiet;
use super::places::{Loc, Parts};
use super::shape::Shape;
use crate::machine::lir::{
    Cond, G2, GLoadKind, GShift, GSrc, GStoreKind, Inst, LoadKind, Mem, Rmw, Src, StoreKind, V2I, V3, Width,
};
use crate::machine::reg::{G, V};
use std::mem::offset_of;
use vyre_foundation::ir::{Access, AtomicOp};
use vyre_foundation::kernel::{AccessId, BufferId};
use vyre_foundation::ssa::{Ssa, Value};
use vyre_spec::Scalar;

pub(super) fn is_signed(ssa: &Ssa, buffer: BufferId) -> bool {
    ssa.kernel.buffer(buffer).value.scalar().is_some_and(Scalar::is_signed_int)
}

/// A change of elements that nobody asks the old values of.
#[derive(Clone, Copy)]
struct Changes {
    op: Quiet,
    negated: bool,
    proven: bool,
    buffer: BufferId,
    index: Value,
    operand: Value,
}

impl Lower<'_> {
    pub fn atomic(
        &mut self,
        result: Option<Value>,
        access: AccessId,
        op: AtomicOp,
        buffer: BufferId,
        index: Value,
        operands: &[Value],
    ) {
        let wanted = result.is_some_and(|result| self.facts.uses[result.index()] > 0);
        match Quiet::of(op, is_signed(self.ssa, buffer)).filter(|_| !wanted) {
            Some(quiet) => {
                let (negated, proven) = (op == AtomicOp::Sub, self.facts.bounds.is_proven(access));
                self.change(Changes { op: quiet, negated, proven, buffer, index, operand: operands[0] });
                if let Some(result) = result {
                    let zeros = (0..self.parts()).map(|_| self.zero()).collect();
                    self.set(result, Loc::Parts(zeros));
                }
            }
            None => self.atomic_by_lane(result, wanted, access, op, buffer, index, operands),
        }
    }

    fn change(&mut self, changes: Changes) {
        let is_shared = self.ssa.kernel.buffer(changes.buffer).access != Access::Workgroup;
        if is_shared && !self.facts.own.iter().any(|own| own.buffer == changes.buffer) {
            return self.change_memory(changes, true);
        }
        if !is_shared {
            return self.change_memory(changes, false);
        }
        let own = self.machine_leaf(MachineLeaf::Context(offset_of!(Context, has_own)));
        let (shared, done) = (self.new_label(), self.new_label());
        self.push(Inst::JumpIf { cond: Cond::Equal, width: Width::W32, a: own, b: GSrc::Imm(0), to: shared });
        // What one way prepares the other does not find.
        let since = self.splatted.len();
        self.change_memory(changes, false);
        self.forget_splats(since);
        self.push(Inst::Jump(done));
        self.push(Inst::Label(shared));
        self.change_memory(changes, true);
        self.forget_splats(since);
        self.push(Inst::Label(done));
    }

    fn change_memory(&mut self, changes: Changes, locked: bool) {
        match self.shape(changes.index) {
            Shape::Uniform => self.change_one(changes, locked),
            Shape::Linear(1) if !locked => self.change_row(changes),
            Shape::Linear(_) | Shape::Varying => self.change_lanes(changes, locked),
        }
    }

    fn changed_by(&mut self, changes: Changes) -> Parts {
        let parts = self.vectors(changes.operand, 0);
        if !changes.negated {
            return parts;
        }
        let zero = self.zero();
        parts.into_iter().map(|v| self.v3(V3::vpsubd, zero, v)).collect()
    }

    fn change_element(&mut self, op: Quiet, locked: bool, at: Mem, a: GSrc) {
        let op = match op {
            Quiet::Add => Ok(G2::add),
            Quiet::And => Ok(G2::and),
            Quiet::Or => Ok(G2::or),
            Quiet::Xor => Ok(G2::xor),
            Quiet::MinU => Err(Rmw::MinU),
            Quiet::MaxU => Err(Rmw::MaxU),
            Quiet::MinS => Err(Rmw::MinS),
            Quiet::MaxS => Err(Rmw::MaxS),
        };
        match op {
            Ok(op) => self.push(Inst::Change { op, locked, at, a }),
            Err(op) => {
                let a = match a {
                    GSrc::Reg(a) => a,
                    GSrc::Imm(imm) => self.imm(u64::from(imm as u32)),
                    GSrc::Mem(from) => self.load_g(GLoadKind::W32, from),
                };
                let d = self.new_g();
                self.push(Inst::Rmw { op, locked, d, at, a });
            }
        }
    }

    /// All active lanes change one element: it is changed once.
    fn change_one(&mut self, changes: Changes, locked: bool) {
        let index = self.g(changes.index);
        let values = self.changed_by(changes);
        let done = self.new_label();
        if !changes.proven {
            let length = self.machine_leaf(MachineLeaf::Length(changes.buffer));
            let (cond, width) = (Cond::AboveEqual, Width::W32);
            self.push(Inst::JumpIf { cond, width, a: index, b: length.into(), to: done });
        }
        let mask = self.mask.clone();
        let (op, identity) = (changes.op.vector(), self.constant32(changes.op.identity()));
        // Lanes that are not active change nothing.
        let mut all: Option<V> = None;
        for (n, v) in values.into_iter().enumerate() {
            let v = match &mask {
                None => v,
                Some(mask) => {
                    let nothing = self.in_reg(identity);
                    self.blend(nothing, v, mask[n])
                }
            };
            all = Some(match all {
                None => v,
                Some(all) => self.v3(op, all, v),
            });
        }
        let Some(all) = all else { return };
        let high = self.new_v();
        self.push(Inst::High { d: high, a: all });
        let mut sum = self.v3(op, all, high);
        for imm in [0x4E, 0xB1] {
            let other = self.new_v();
            self.push(Inst::V2I { op: V2I::vpshufd, d: other, a: sum.into(), imm });
            sum = self.v3(op, sum, other);
        }
        let a = self.new_g();
        self.push(Inst::First { width: Width::W32, d: a, a: sum });
        let at = self.word_at(changes.buffer, index);
        self.change_element(changes.op, locked, at, a.into());
        self.push(Inst::Label(done));
    }

    /// Lanes change elements side by side, which no other thread does.
    fn change_row(&mut self, changes: Changes) {
        let base = self.g(changes.index);
        let values = self.changed_by(changes);
        let (slow, done) = (self.new_label(), self.new_label());
        let mask = self.mask.clone();
        let checked = !(changes.proven && mask.is_none());
        if checked {
            let limit = self.machine_leaf(MachineLeaf::Limit(changes.buffer, self.geometry.lanes()));
            let (cond, width) = (Cond::AboveEqual, Width::W32);
            self.push(Inst::JumpIf { cond, width, a: base, b: limit.into(), to: slow });
        }
        let at = self.word_at(changes.buffer, base);
        for (n, v) in values.into_iter().enumerate() {
            let to = at.plus(32 * n);
            let v = self.v3(changes.op.vector(), v, Src::Mem(to));
            match &mask {
                None => self.push(Inst::Store { kind: StoreKind::Full, to, v }),
                Some(mask) => self.push(Inst::MaskStore { wide: false, to, mask: mask[n], v }),
            }
        }
        if checked {
            self.push(Inst::ColdBegin);
            self.push(Inst::Label(slow));
            let around = std::mem::replace(&mut self.in_cold, true);
            self.change_lanes(Changes { proven: false, ..changes }, false);
            self.in_cold = around;
            self.push(Inst::Jump(done));
            self.push(Inst::ColdEnd);
            self.push(Inst::Label(done));
        }
    }

    /// One lane after the other; without looking who is there if all are.
    fn change_lanes(&mut self, changes: Changes, locked: bool) {
        self.frame(area::BYTES);
        let number = match self.loc(changes.operand, 0) {
            Loc::Lit(bits) if changes.negated => Some(GSrc::Imm((bits as i32).wrapping_neg())),
            Loc::Lit(bits) => Some(GSrc::Imm(bits as u32 as i32)),
            Loc::G(a) if !changes.negated => Some(GSrc::Reg(a)),
            Loc::G(_) | Loc::Linear(..) | Loc::Splat(_) | Loc::Parts(_) => None,
        };
        if number.is_none() {
            for (part, v) in self.changed_by(changes).into_iter().enumerate() {
                self.push(Inst::Store { kind: StoreKind::Full, to: Mem::frame(area::FIRST + 32 * part), v });
            }
        }
        let active = self.active_inside(changes.proven, changes.buffer, changes.index);
        let (slow, done) = (self.new_label(), self.new_label());
        let lanes = self.geometry.lanes();
        let change = |lower: &mut Self, index: G, operand: Mem| {
            let a = match number {
                Some(number) => number,
                None => GSrc::Reg(lower.load_g(GLoadKind::W32, operand)),
            };
            let at = lower.word_at(changes.buffer, index);
            lower.change_element(changes.op, locked, at, a);
        };
        if !self.in_cold {
            if let Some(active) = &active {
                self.jump_unless_all(active, slow);
            }
            // Two indices at a time.
            for lane in (0..lanes as usize).step_by(2) {
                let both = self.load_g(GLoadKind::W64, Mem::frame(area::INDEX + 4 * lane));
                let (low, high) = (self.new_g(), self.new_g());
                self.push(Inst::GMov { width: Width::W32, d: low, a: both });
                self.push(Inst::GShift { op: GShift::Right, width: Width::W64, d: high, a: both, imm: 32 });
                change(self, low, Mem::frame(area::FIRST + 4 * lane));
                change(self, high, Mem::frame(area::FIRST + 4 * (lane + 1)));
            }
            if active.is_none() {
                return;
            }
            self.push(Inst::Jump(done));
            self.push(Inst::Label(slow));
        }
        let bits = self.mask_bits(&active);
        self.each_lane(bits, |lower, lane| {
            let index = lower.load_g(GLoadKind::W32, lane_at(area::INDEX, lane, 4));
            change(lower, index, lane_at(area::FIRST, lane, 4));
        });
        self.push(Inst::Label(done));
    }

    /// One lane after the other, each with the value that it found.
    #[expect(clippy::too_many_arguments, reason = "an atomic has that many parts")]
    fn atomic_by_lane(
        &mut self,
        result: Option<Value>,
        wanted: bool,
        access: AccessId,
        op: AtomicOp,
        buffer: BufferId,
        index: Value,
        operands: &[Value],
    ) {
        self.frame(area::BYTES);
        let signed = is_signed(self.ssa, buffer);
        // Only the thread that runs a workgroup touches its memory.
        let locked = self.ssa.kernel.buffer(buffer).access != Access::Workgroup;
        for (n, operand) in operands.iter().enumerate() {
            let area = if n == 0 { area::FIRST } else { area::SECOND };
            let parts = self.vectors(*operand, 0);
            for (part, v) in parts.into_iter().enumerate() {
                let v = if op == AtomicOp::Sub {
                    let zero = self.zero();
                    self.v3(V3::vpsubd, zero, v)
                } else {
                    v
                };
                self.push(Inst::Store { kind: StoreKind::Full, to: Mem::frame(area + 32 * part), v });
            }
        }
        let parts = self.parts();
        if wanted {
            let zero = self.zero();
            for part in 0..parts {
                self.push(Inst::Store { kind: StoreKind::Full, to: Mem::frame(area::RESULT + 32 * part), v: zero });
            }
        }
        let proven = self.facts.bounds.is_proven(access);
        let active = self.active_inside(proven, buffer, index);
        let bits = self.mask_bits(&active);
        self.each_lane(bits, |lower, lane| {
            let index = lower.load_g(GLoadKind::W32, lane_at(area::INDEX, lane, 4));
            let at = lower.word_at(buffer, index);
            let first = |lower: &mut Self| lower.load_g(GLoadKind::W32, lane_at(area::FIRST, lane, 4));
            let found = |lower: &mut Self, a: G| {
                if wanted {
                    lower.push(Inst::GStore { kind: GStoreKind::B4, to: lane_at(area::RESULT, lane, 4), a });
                }
            };
            let rmw = match (op, signed) {
                (AtomicOp::Load, _) => {
                    let old = lower.load_g(GLoadKind::W32, at);
                    return found(lower, old);
                }
                (AtomicOp::Store, _) => {
                    let a = first(lower);
                    return lower.push(Inst::GStore { kind: GStoreKind::B4, to: at, a });
                }
                (AtomicOp::CompareExchange, _) => {
                    let expected = first(lower);
                    let new = lower.load_g(GLoadKind::W32, lane_at(area::SECOND, lane, 4));
                    let d = lower.new_g();
                    lower.push(Inst::CompareExchange { locked, d, at, expected, new });
                    return found(lower, d);
                }
                (AtomicOp::Exchange, _) => Rmw::Exchange,
                (AtomicOp::Add | AtomicOp::Sub, _) => Rmw::Add,
                (AtomicOp::And, _) => Rmw::And,
                (AtomicOp::Or, _) => Rmw::Or,
                (AtomicOp::Xor, _) => Rmw::Xor,
                (AtomicOp::Min, false) => Rmw::MinU,
                (AtomicOp::Max, false) => Rmw::MaxU,
                (AtomicOp::Min, true) => Rmw::MinS,
                (AtomicOp::Max, true) => Rmw::MaxS,
            };
            let (a, d) = (first(lower), lower.new_g());
            lower.push(Inst::Rmw { op: rmw, locked, d, at, a });
            found(lower, d);
        });
        if let Some(result) = result {
            let parts: Parts = if wanted {
                (0..parts).map(|part| self.load(LoadKind::Full, Mem::frame(area::RESULT + 32 * part))).collect()
            } else {
                (0..parts).map(|_| self.zero()).collect()
            };
            self.set(result, Loc::Parts(parts));
        }
    }
}
