//! Memory: loads and stores of one element per lane.
//!
//! An index that is linear with stride 1 is contiguous: one comparison with the length checks the whole block, and what does not fit goes
//! the slow way, which is the general one. The general way of loads is a gather under a mask, of stores a loop over the active lanes. Nothing
//! outside of a buffer is read, and no byte of an inactive lane is written.

mod ahead;
mod elements;
mod loads;
mod stores;

use super::helpers::area;
use super::leaves::MachineLeaf;
use super::lower::Lower;
use super::places::{Mask, Parts};
use crate::faults::Fault;
use crate::machine::lir::{Base, Cond, G2, GShift, GSrc, Inst, Mem, StoreKind, V3, Width};
use crate::machine::reg::{G, V};
use elements::Element;
use vyre_foundation::ir::BinaryOp;
use vyre_foundation::kernel::BufferId;
use vyre_foundation::ssa::{Op, Value};
use vyre_spec::Scalar;

impl Lower<'_> {
    fn element(&mut self, buffer: BufferId) -> Element {
        let found = Element::of(&self.ssa.kernel.buffer(buffer).element);
        if found.is_none() {
            self.refuse("an element type that no kernel can use");
        }
        found.unwrap_or(Element::Word)
    }

    /// The address of an element of a buffer; the index is below 2³² and in bounds.
    fn element_at(&mut self, buffer: BufferId, element: Element, index: G) -> Mem {
        let base = self.machine_leaf(MachineLeaf::Address(buffer));
        match element {
            Element::Nibble(_) => {
                let byte = self.new_g();
                let op = GShift::Right;
                self.push(Inst::GShift { op, width: Width::W32, d: byte, a: index, imm: 1 });
                Mem::indexed(base, byte, 1)
            }
            Element::Words(count) => {
                let offset = self.new_g();
                self.push(Inst::GMul { width: Width::W64, d: offset, a: index, b: GSrc::Imm(4 * i32::from(count)) });
                Mem::indexed(base, offset, 1)
            }
            Element::Byte { .. }
            | Element::E4m3
            | Element::E5m2
            | Element::Half { .. }
            | Element::F16
            | Element::Bf16
            | Element::Word
            | Element::Double => Mem::indexed(base, index, element.bytes() as u8),
        }
    }

    /// The index of an access without a number that is added to it, and that number, if the sum cannot wrap.
    fn split_index(&self, index: Value) -> (Value, u32) {
        let Some(Op::Binary { op: BinaryOp::Add, ty: Scalar::U32, left, right }) = self.ssa.op(index).copied() else {
            return (index, 0);
        };
        let (rest, added) = match (self.ssa.literal(left), self.ssa.literal(right)) {
            (None, Some(added)) => (left, added as u32),
            (Some(added), None) => (right, added as u32),
            (None, None) | (Some(_), Some(_)) => return (index, 0),
        };
        let fits = self.facts.ranges.of_value(rest).high.checked_add(added).is_some() || self.planted(Fault::SumOfIndexMayWrap);
        if fits && added < 1 << 24 && self.shape(rest) == self.shape(index) { (rest, added) } else { (index, 0) }
    }

    /// Which lanes have an index inside of the buffer. `highest`: none is above this.
    fn inside(&mut self, buffer: BufferId, index: &Parts, highest: u32) -> Parts {
        let bound = self.bound(buffer, highest);
        index.iter().map(|index| self.below(bound, *index)).collect()
    }

    /// What indices are compared with, and whether with their sign: numbers below 2³¹ are ordered the same with it, and others are once
    /// their highest bit is turned.
    fn bound(&mut self, buffer: BufferId, highest: u32) -> (V, bool) {
        let signed = highest < i32::MAX as u32;
        (self.length_vector(buffer, signed), signed)
    }

    fn below(&mut self, (length, signed): (V, bool), index: V) -> V {
        let top = self.constant32(1 << 31);
        let index = if signed { index } else { self.v3(V3::vpxor, index, top) };
        self.v3(V3::vpcmpgtd, length, index)
    }

    /// The length of a buffer in every element, as indices are compared with it.
    fn length_vector(&mut self, buffer: BufferId, signed: bool) -> V {
        if let Some(known) = self.lengths.get(&(buffer, signed)) {
            return *known;
        }
        let length = self.machine_leaf(MachineLeaf::Length(buffer));
        let make = |lower: &mut Self| {
            let compared = if signed {
                let (largest, d) = (lower.imm(u64::from(i32::MAX as u32)), lower.new_g());
                let (cond, width) = (Cond::Below, Width::W32);
                lower.push(Inst::Choose { cond, width, a: length, b: largest.into(), d, x: length, y: largest });
                d
            } else {
                lower.g2(G2::xor, Width::W32, length, GSrc::Imm(i32::MIN))
            };
            lower.splat_g(Width::W32, compared)
        };
        if self.in_cold {
            return make(self);
        }
        let made = self.at_entry(make);
        self.lengths.insert((buffer, signed), made);
        made
    }

    fn both(&mut self, one: &Parts, other: &Mask) -> Parts {
        match other {
            None => one.clone(),
            Some(other) => one.iter().zip(other).map(|(a, b)| self.v3(V3::vpand, *a, *b)).collect(),
        }
    }

    /// Runs code for each lane whose bit is set.
    pub fn each_lane(&mut self, bits: G, body: impl FnOnce(&mut Self, G)) {
        let (again, done) = (self.new_label(), self.new_label());
        let (left, lane) = (self.new_g(), self.new_g());
        self.push(Inst::GMov { width: Width::W64, d: left, a: bits });
        self.push(Inst::JumpIf { cond: Cond::Equal, width: Width::W64, a: left, b: GSrc::Imm(0), to: done });
        self.push(Inst::LoopBegin);
        self.push(Inst::Label(again));
        self.push(Inst::LowestBit { d: lane, a: left });
        body(self, lane);
        self.push(Inst::ClearLowest { d: left, a: left });
        self.push(Inst::JumpIf { cond: Cond::NotEqual, width: Width::W64, a: left, b: GSrc::Imm(0), to: again });
        self.push(Inst::LoopEnd);
        self.push(Inst::Label(done));
    }

    /// Whether a value is an address in a buffer: used by atomics.
    pub fn word_at(&mut self, buffer: BufferId, index: G) -> Mem {
        self.element_at(buffer, Element::Word, index)
    }

    /// Active lanes whose index is inside; the indices are left in the frame.
    pub fn active_inside(&mut self, proven: bool, buffer: BufferId, index: Value) -> Mask {
        self.frame(area::BYTES);
        let indices = self.vectors(index, 0);
        for (n, index) in indices.iter().enumerate() {
            self.push(Inst::Store { kind: StoreKind::Full, to: Mem::frame(area::INDEX + 32 * n), v: *index });
        }
        let mask = self.mask.clone();
        if proven {
            return mask;
        }
        let highest = self.facts.ranges.of_value(index).high;
        let inside = self.inside(buffer, &indices, highest);
        Some(self.both(&inside, &mask))
    }
}

/// The element of a lane in an area of the frame.
pub(crate) fn lane_at(area: usize, lane: G, scale: u8) -> Mem {
    Mem { base: Base::Frame, index: Some((lane, scale)), disp: area as i32 }
}
