//! Stores: of one element, of elements side by side, of elements anywhere.

use super::super::helpers::area;
use super::super::leaves::MachineLeaf;
use super::super::lower::{Lower, components_of, is_float, scalar_of, width_of};
use super::super::places::{Loc, Parts};
use super::super::shape::Shape;
use super::elements::Element;
use super::lane_at;
use crate::faults::Fault;
use crate::machine::lir::{Cond, GLoadKind, Inst, Mem, StoreKind, Width};
use smallvec::SmallVec;
use vyre_foundation::ir::Access;
use vyre_foundation::kernel::{AccessId, BufferId};
use vyre_foundation::ssa::Value;
use vyre_spec::Scalar;

impl Lower<'_> {
    pub fn store_access(&mut self, access: AccessId, buffer: BufferId, index: Value, value: Value) {
        let element = self.element(buffer);
        let proven = self.facts.bounds.is_proven(access);
        let uniform = self.shape(index) == Shape::Uniform && self.shape(value) != Shape::Varying;
        match self.shape(index) {
            Shape::Uniform if uniform && matches!(self.shape(value), Shape::Uniform) => {
                self.store_uniform(proven, buffer, element, index, value);
            }
            Shape::Linear(1) if !matches!(element, Element::Words(_)) => {
                self.store_contiguous(proven, buffer, element, index, value);
            }
            Shape::Uniform | Shape::Linear(_) | Shape::Varying => {
                let values = self.stored(buffer, element, value);
                self.scatter(proven, buffer, element, index, &values);
            }
        }
    }

    /// The bits that a value leaves in memory, by component.
    fn stored(&mut self, buffer: BufferId, element: Element, value: Value) -> SmallVec<[Parts; 1]> {
        let ty = self.ssa.value(value).ty;
        let scalar = scalar_of(ty);
        (0..components_of(ty))
            .map(|component| {
                let parts = self.vectors(value, component);
                let nan = self.nan_is_seen(buffer, element, value);
                parts.into_iter().map(|v| self.stored_vector(element, scalar, nan, v)).collect()
            })
            .collect()
    }

    /// Whether a NaN that is stored has to be the one NaN. Floats in workgroup memory are only ever read as floats again, whose NaNs
    /// have no sign or payload.
    fn nan_is_seen(&self, buffer: BufferId, element: Element, value: Value) -> bool {
        let as_it_is = matches!(element, Element::Word | Element::Double | Element::Words(_));
        let private = self.ssa.kernel.buffer(buffer).access == Access::Workgroup;
        self.may_be_nan(value) && !(private && as_it_is)
    }

    fn store_uniform(&mut self, proven: bool, buffer: BufferId, element: Element, index: Value, value: Value) {
        let index = self.g(index);
        let done = self.new_label();
        if !proven {
            let length = self.machine_leaf(MachineLeaf::Length(buffer));
            let (cond, width) = (Cond::AboveEqual, Width::W32);
            self.push(Inst::JumpIf { cond, width, a: index, b: length.into(), to: done });
        }
        let ty = self.ssa.value(value).ty;
        let scalar = scalar_of(ty);
        let at = self.element_at(buffer, element, index);
        for component in 0..components_of(ty) {
            let a = match self.loc(value, component) {
                Loc::Lit(bits) if !is_float(scalar) => self.imm(bits),
                Loc::G(a) => a,
                loc @ Loc::Lit(_) | loc @ Loc::Linear(..) | loc @ Loc::Splat(_) | loc @ Loc::Parts(_) => {
                    let v = self.as_vectors(scalar, &loc)[0];
                    let nan = self.nan_is_seen(buffer, element, value);
                    let v = self.stored_vector(element, scalar, nan, v);
                    let d = self.new_g();
                    self.push(Inst::First { width: width_of(scalar), d, a: v });
                    d
                }
            };
            self.push(Inst::GStore { kind: element.g_store(), to: at.plus(4 * usize::from(component)), a });
        }
        self.push(Inst::Label(done));
    }

    fn store_contiguous(&mut self, proven: bool, buffer: BufferId, element: Element, index: Value, value: Value) {
        let base = self.g(index);
        let values = self.stored(buffer, element, value);
        if let Some(kind) = self.prefix_store().filter(|_| proven && element == Element::Word) {
            let to = self.element_at(buffer, element, base);
            self.push(Inst::Store { kind, to, v: values[0][0] });
            return;
        }
        let (slow, done) = (self.new_label(), self.new_label());
        let checked = !(proven && self.mask.is_none());
        if checked {
            let limit = self.machine_leaf(MachineLeaf::Limit(buffer, self.geometry.lanes()));
            let (cond, width) = (Cond::AboveEqual, Width::W32);
            self.push(Inst::JumpIf { cond, width, a: base, b: limit.into(), to: slow });
        }
        let mask = self.mask.clone();
        let partial = self.new_label();
        if let Some(mask) = &mask {
            let to = if matches!(element, Element::Word | Element::Double) { partial } else { slow };
            self.jump_unless_all(mask, to);
        }
        let at = self.element_at(buffer, element, base);
        for (n, v) in values[0].clone().into_iter().enumerate() {
            match element.bytes() {
                4 | 8 => self.push(Inst::Store { kind: StoreKind::Full, to: at.plus(32 * n), v }),
                2 => {
                    let v = self.pack_halves(v);
                    self.push(Inst::Store { kind: StoreKind::Half, to: at.plus(16 * n), v });
                }
                _ => {
                    let v = self.pack_bytes(v);
                    self.push(Inst::Store { kind: StoreKind::Quarter, to: at.plus(8 * n), v });
                }
            }
        }
        if checked {
            self.push(Inst::ColdBegin);
            if let (Some(mask), Element::Word | Element::Double) = (&mask, element) {
                self.push(Inst::Label(partial));
                let wide = element == Element::Double;
                let masks = self.masks_for(if wide { Scalar::U64 } else { Scalar::U32 }, mask);
                let at = self.element_at(buffer, element, base);
                for (n, v) in values[0].iter().enumerate() {
                    self.push(Inst::MaskStore { wide, to: at.plus(32 * n), mask: masks[n], v: *v });
                }
                self.push(Inst::Jump(done));
            }
            self.push(Inst::Label(slow));
            let around = std::mem::replace(&mut self.in_cold, true);
            self.scatter(false, buffer, element, index, &values);
            self.in_cold = around;
            self.push(Inst::Jump(done));
            self.push(Inst::ColdEnd);
            self.push(Inst::Label(done));
        }
    }

    /// Elements to any indices, one lane after the other.
    fn scatter(&mut self, unchecked: bool, buffer: BufferId, element: Element, index: Value, values: &[Parts]) {
        self.frame(area::BYTES);
        let indices = self.vectors(index, 0);
        let mask = if self.planted(Fault::ScatterIgnoresMask) { None } else { self.mask.clone() };
        let active = if unchecked {
            mask
        } else {
            let highest = self.facts.ranges.of_value(index).high;
            let inside = self.inside(buffer, &indices, highest);
            Some(self.both(&inside, &mask))
        };
        let wide = element == Element::Double;
        for (n, index) in indices.iter().enumerate() {
            self.push(Inst::Store { kind: StoreKind::Full, to: Mem::frame(area::INDEX + 32 * n), v: *index });
        }
        let bits = self.mask_bits(&active);
        for (component, parts) in values.iter().enumerate() {
            for (n, v) in parts.iter().enumerate() {
                self.push(Inst::Store { kind: StoreKind::Full, to: Mem::frame(area::FIRST + 32 * n), v: *v });
            }
            self.each_lane(bits, |lower, lane| {
                let index = lower.load_g(GLoadKind::W32, lane_at(area::INDEX, lane, 4));
                let kind = if wide { GLoadKind::W64 } else { GLoadKind::W32 };
                let value = lower.load_g(kind, lane_at(area::FIRST, lane, if wide { 8 } else { 4 }));
                let at = lower.element_at(buffer, element, index).plus(4 * component);
                lower.push(Inst::GStore { kind: element.g_store(), to: at, a: value });
            });
        }
    }
}
