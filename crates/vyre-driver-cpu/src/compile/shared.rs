//! Workgroup memory: where its buffers are, and which of them have to be zeros when a workgroup begins.
//!
//! A workgroup finds zeros in its memory. Those that it cannot find need not be written: where all invocations together write every element
//! of a buffer before the barrier that everything stands behind that reads it.

use super::context::Context;
use super::facts::Facts;
use super::lower::Lower;
use super::segments::{Item, Segment, ssa_retires};
use crate::faults::Fault;
use crate::machine::lir::{Cond, G2, GLoadKind, GSrc, Inst, Mem, StoreKind, Width};
use std::mem::offset_of;
use std::ops::Range;
use vyre_foundation::ir::{Access, BinaryOp, Builtin};
use vyre_foundation::kernel::{BufferId, Kernel};
use vyre_foundation::ssa::{InstId, InstKind, Leaf, Op, Ssa, Value};
use vyre_scalar::memory::byte_length;
use vyre_spec::Scalar;

/// Where the buffers of workgroup memory begin, and where they end: each at a multiple of 64, all of it a multiple of 128.
pub(crate) fn shared_offsets(kernel: &Kernel) -> (Vec<Option<usize>>, usize) {
    let mut end = 0usize;
    let offsets = kernel
        .buffers
        .iter()
        .map(|buffer| {
            (buffer.access == Access::Workgroup).then(|| {
                let at = end;
                let bytes = byte_length(&buffer.element, u64::from(buffer.count.unwrap_or(0))).unwrap_or(0);
                end = (end + bytes as usize).next_multiple_of(64);
                at
            })
        })
        .collect();
    (offsets, end.next_multiple_of(128))
}

/// The bytes that a phase has to clear.
pub(crate) fn to_clear(ssa: &Ssa, facts: &Facts, items: &[Item]) -> Vec<Range<usize>> {
    let (offsets, end) = shared_offsets(&ssa.kernel);
    let places: Vec<(usize, BufferId)> =
        offsets.iter().enumerate().filter_map(|(n, offset)| Some(((*offset)?, BufferId(n as u32)))).collect();
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for (n, (start, buffer)) in places.iter().enumerate() {
        let end = places.get(n + 1).map_or(end, |(next, _)| *next);
        if !Coverage::is_needless(ssa, facts, items, *buffer) {
            match ranges.last_mut() {
                Some(last) if last.end == *start => last.end = end,
                Some(_) | None => ranges.push(*start..end),
            }
        }
    }
    ranges
}

/// What is written of a buffer on the way through a workgroup's program.
struct Coverage<'a> {
    ssa: &'a Ssa,
    facts: &'a Facts,
    buffer: BufferId,
    /// Whether something may read an element that nobody has written.
    reads: bool,
}

impl Coverage<'_> {
    /// Whether nobody can find an element of a buffer as it was when the workgroup began.
    fn is_needless(ssa: &Ssa, facts: &Facts, items: &[Item], buffer: BufferId) -> bool {
        // Whoever is retired does not write.
        if ssa_retires(ssa) {
            return false;
        }
        let mut coverage = Coverage { ssa, facts, buffer, reads: false };
        let count = ssa.kernel.buffer(buffer).count.unwrap_or(0) as usize;
        coverage.items(items, vec![false; count]);
        !coverage.reads
    }

    /// The elements that are written behind these parts, if control gets there.
    fn items(&mut self, items: &[Item], mut written: Vec<bool>) -> Vec<bool> {
        for item in items {
            match item {
                Item::Segment(segment) => self.segment(segment, &mut written),
                Item::If { then, otherwise, .. } => {
                    let one = self.items(then, written.clone());
                    let other = self.items(otherwise, written);
                    written = one.iter().zip(other).map(|(one, other)| *one && other).collect();
                }
                Item::Loop { inst, body } => {
                    let after = self.items(body, written.clone());
                    // An iteration that is left early may not have written everything.
                    let runs = self.facts.loops.trips(*inst).is_some_and(|trips| trips.at_least > 0);
                    if runs && !body.iter().any(leaves) {
                        written = after;
                    }
                }
                Item::Break | Item::Continue | Item::Retire(_) => {}
            }
            if self.reads {
                break;
            }
        }
        written
    }

    fn segment(&mut self, segment: &Segment, written: &mut [bool]) {
        let mut new = Vec::new();
        for id in &segment.insts {
            match self.ssa.inst(*id).kind {
                InstKind::Store { buffer, index, .. } if buffer == self.buffer => new.extend(self.places(index)),
                InstKind::Op(_)
                | InstKind::Load { .. }
                | InstKind::Store { .. }
                | InstKind::Atomic { .. }
                | InstKind::Subgroup { .. }
                | InstKind::If { .. }
                | InstKind::Loop { .. }
                | InstKind::Barrier
                | InstKind::GridSync => self.reads |= self.may_read(*id) && !written.iter().all(|element| *element),
            }
        }
        // What others have written is there behind the barrier.
        for place in new {
            if let Some(element) = written.get_mut(place as usize) {
                *element = true;
            }
        }
    }

    fn may_read(&self, id: InstId) -> bool {
        let inst = self.ssa.inst(id);
        let own = matches!(inst.kind, InstKind::Load { buffer, .. } | InstKind::Atomic { buffer, .. } if buffer == self.buffer);
        own || inst.kind.regions().any(|region| self.ssa.region(region).insts.iter().any(|id| self.may_read(*id)))
    }

    /// The values of an index in all invocations of a workgroup; nothing if they are not known.
    fn places(&self, index: Value) -> Vec<u32> {
        let Some(form) = LocalForm::of(self.ssa, index, 0) else { return Vec::new() };
        let [nx, ny, nz] = self.ssa.kernel.workgroup_size;
        let rows = (0..nz).flat_map(|z| (0..ny).map(move |y| [y, z]));
        rows.flat_map(|[y, z]| (0..nx).map(move |x| form.at([x, y, z]))).collect()
    }
}

fn leaves(item: &Item) -> bool {
    match item {
        Item::Segment(_) => false,
        Item::If { then, otherwise, .. } => then.iter().chain(otherwise).any(leaves),
        // What leaves it stays in what is around it.
        Item::Loop { .. } => false,
        Item::Break | Item::Continue | Item::Retire(_) => true,
    }
}

/// A number that is a sum of an invocation's place in its workgroup, times numbers: modulo 2³².
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LocalForm {
    pub times: [u32; 3],
    pub plus: u32,
}

impl LocalForm {
    pub fn of(ssa: &Ssa, value: Value, depth: u32) -> Option<LocalForm> {
        let number = |plus: u32| LocalForm { times: [0; 3], plus };
        if let Some(leaf) = ssa.leaf(value) {
            return match leaf {
                Leaf::Lit { bits } => Some(number(bits as u32)),
                Leaf::Builtin { builtin: Builtin::Local(axis) } => {
                    let mut form = number(0);
                    form.times[axis as usize] = 1;
                    Some(form)
                }
                Leaf::Builtin { builtin: Builtin::LocalCount(axis) } => Some(number(ssa.kernel.workgroup_size[axis as usize])),
                Leaf::Builtin { .. } | Leaf::Len { .. } => None,
            };
        }
        let Op::Binary { op, ty: Scalar::U32, left, right } = *ssa.op(value).filter(|_| depth < 8)? else { return None };
        let (left, right) = (LocalForm::of(ssa, left, depth + 1)?, LocalForm::of(ssa, right, depth + 1)?);
        match op {
            BinaryOp::Add => Some(left.with(right, u32::wrapping_add)),
            BinaryOp::Sub => Some(left.with(right, u32::wrapping_sub)),
            BinaryOp::Mul if right.is_number() => Some(left.with(left, |a, _| a.wrapping_mul(right.plus))),
            BinaryOp::Mul if left.is_number() => Some(right.with(right, |a, _| a.wrapping_mul(left.plus))),
            BinaryOp::Shl if right.is_number() => Some(left.with(left, |a, _| a.wrapping_shl(right.plus))),
            BinaryOp::Mul
            | BinaryOp::Shl
            | BinaryOp::Mulhi
            | BinaryOp::Div
            | BinaryOp::Rem
            | BinaryOp::AbsDiff
            | BinaryOp::Min
            | BinaryOp::Max
            | BinaryOp::BitAnd
            | BinaryOp::BitOr
            | BinaryOp::BitXor
            | BinaryOp::Shr
            | BinaryOp::Rotl
            | BinaryOp::Rotr
            | BinaryOp::SatAdd
            | BinaryOp::SatSub
            | BinaryOp::Copysign
            | BinaryOp::Pow
            | BinaryOp::And
            | BinaryOp::Or
            | BinaryOp::Eq
            | BinaryOp::Ne
            | BinaryOp::Lt
            | BinaryOp::Le
            | BinaryOp::Gt
            | BinaryOp::Ge => None,
        }
    }

    fn is_number(self) -> bool {
        self.times == [0; 3]
    }

    fn with(self, other: LocalForm, op: impl Fn(u32, u32) -> u32) -> LocalForm {
        LocalForm { times: std::array::from_fn(|axis| op(self.times[axis], other.times[axis])), plus: op(self.plus, other.plus) }
    }

    fn at(self, place: [u32; 3]) -> u32 {
        self.times.iter().zip(place).fold(self.plus, |sum, (times, n)| sum.wrapping_add(times.wrapping_mul(n)))
    }
}

impl Lower<'_> {
    /// Zeros in workgroup memory, each range a multiple of 64 bytes.
    pub fn clear_shared(&mut self, ranges: &[Range<usize>]) {
        if ranges.is_empty() || self.planted(Fault::SharedNotCleared) {
            return;
        }
        let start = self.load_g(GLoadKind::W64, Mem::context(offset_of!(Context, shared)));
        let zero = self.zero();
        for range in ranges {
            let looped = if range.len() > 256 { range.len() / 128 * 128 } else { 0 };
            if looped > 0 {
                let (at, again) = (self.new_g(), self.new_label());
                self.push(Inst::GImm { d: at, imm: 0 });
                self.push(Inst::LoopBegin);
                self.push(Inst::Label(again));
                for n in 0..4 {
                    let to = Mem::indexed(start, at, 1).plus(range.start + 32 * n);
                    self.push(Inst::Store { kind: StoreKind::Full, to, v: zero });
                }
                self.push(Inst::G2 { op: G2::add, width: Width::W64, d: at, a: at, b: GSrc::Imm(128) });
                let b = GSrc::Imm(looped as i32);
                self.push(Inst::JumpIf { cond: Cond::Below, width: Width::W64, a: at, b, to: again });
                self.push(Inst::LoopEnd);
            }
            for at in (range.start + looped..range.end).step_by(32) {
                self.push(Inst::Store { kind: StoreKind::Full, to: Mem::at(start).plus(at), v: zero });
            }
        }
    }
}
