//! Loads: of one element, of elements side by side, of elements anywhere.

use super::super::geometry::WIDTH;
use super::super::helpers::area;
use super::super::leaves::MachineLeaf;
use super::super::lower::Lower;
use super::super::places::{Loc, Parts};
use super::super::shape::Shape;
use super::super::shared::LocalForm;
use super::elements::Element;
use super::lane_at;
use crate::faults::Fault;
use crate::machine::lir::{
    Cond, GLoadKind, GShift, GSrc, GStoreKind, Inst, Label, LoadKind, Mem, Shift, StoreKind, V3, V3I, Width,
};
use crate::machine::reg::V;
use smallvec::{SmallVec, smallvec};
use vyre_foundation::kernel::{AccessId, BufferId};
use vyre_foundation::ssa::Value;
use vyre_spec::Scalar;

impl Lower<'_> {
    pub fn load_access(&mut self, result: Value, access: AccessId, buffer: BufferId, index: Value) {
        let element = self.element(buffer);
        let proven = self.facts.bounds.is_proven(access);
        match self.shape(index) {
            Shape::Uniform => self.load_uniform(result, proven, buffer, element, index),
            Shape::Linear(1) if !matches!(element, Element::Words(_) | Element::Nibble(_)) => {
                self.load_contiguous(result, proven, buffer, element, index);
            }
            Shape::Linear(_) | Shape::Varying => {
                let parts = self.gather(result, proven, buffer, element, index);
                self.locs.set(result, parts.into_iter().map(Loc::Parts).collect());
            }
        }
    }

    fn load_uniform(&mut self, result: Value, proven: bool, buffer: BufferId, element: Element, index: Value) {
        let ty = self.ty(result);
        // What is added to the index is part of the address, where nothing else needs the sum.
        let plain = matches!(element, Element::Word | Element::Double | Element::Byte { .. } | Element::Half { .. });
        let (index, added) = if proven && plain { self.split_index(index) } else { (index, 0) };
        let index_reg = self.g(index);
        let locs = self.new_locs(result);
        let (outside, done) = (self.new_label(), self.new_label());
        if !proven {
            let length = self.machine_leaf(MachineLeaf::Length(buffer));
            let (cond, width) = (Cond::AboveEqual, Width::W32);
            self.push(Inst::JumpIf { cond, width, a: index_reg, b: length.into(), to: outside });
        }
        let at = self.element_at(buffer, element, index_reg).plus(element.bytes() * added as usize);
        for (n, loc) in locs.iter().enumerate() {
            match loc {
                Loc::Splat(d) => {
                    let v = match element {
                        Element::Word | Element::Words(_) => self.load(LoadKind::Splat32, at.plus(4 * n)),
                        Element::Double => self.load(LoadKind::Splat64, at),
                        Element::Byte { .. }
                        | Element::Half { .. }
                        | Element::F16
                        | Element::Bf16
                        | Element::E4m3
                        | Element::E5m2
                        | Element::Nibble(_) => {
                            let bits = self.load_g(element.g_load(), at);
                            let bits = self.splat_g(Width::W32, bits);
                            let odd =
                                if let Element::Nibble(_) = element { Some(self.splat_g(Width::W32, index_reg)) } else { None };
                            self.convert_loaded(element, bits, odd)
                        }
                    };
                    let v = self.canonical_load(ty, v);
                    self.push(Inst::VMov { d: *d, a: v });
                }
                Loc::G(d) => {
                    let bits = self.load_g(element.g_load(), at.plus(4 * n));
                    match (ty, element) {
                        (Scalar::Bool, _) if !self.planted(Fault::BoolIsNotTested) => {
                            self.push(Inst::Set { cond: Cond::NotEqual, width: Width::W32, d: *d, a: bits, b: GSrc::Imm(0) });
                        }
                        (_, Element::Nibble(_)) => {
                            let v = self.splat_g(Width::W32, bits);
                            let odd = self.splat_g(Width::W32, index_reg);
                            let v = self.convert_loaded(element, v, Some(odd));
                            self.push(Inst::First { width: Width::W32, d: *d, a: v });
                        }
                        (_, _) => self.push(Inst::GMov { width: Width::W64, d: *d, a: bits }),
                    }
                }
                Loc::Lit(_) | Loc::Linear(..) | Loc::Parts(_) => self.refuse("a uniform load to another place"),
            }
        }
        if !proven {
            self.push(Inst::ColdBegin);
            self.push(Inst::Label(outside));
            for loc in &locs {
                let found = u64::from(self.planted(Fault::OutsideIsKept));
                self.copy_to(ty, loc, &Loc::Lit(found), &None);
            }
            self.push(Inst::Jump(done));
            self.push(Inst::ColdEnd);
            self.push(Inst::Label(done));
        }
        self.locs.set(result, locs);
    }

    fn load_contiguous(&mut self, result: Value, proven: bool, buffer: BufferId, element: Element, index: Value) {
        let ty = self.ty(result);
        // With every lane active, what is proven for each holds for all.
        let prefix = self.prefix_load().filter(|_| proven && element == Element::Word);
        let checked = !(proven && self.mask.is_none()) && prefix.is_none();
        let whole = index;
        let (index, added) = if checked { (index, 0) } else { self.split_index(index) };
        let base = self.g(index);
        let parts: Parts = (0..self.vectors_of(ty)).map(|_| self.new_v()).collect();
        let (slow, done) = (self.new_label(), self.new_label());
        if checked {
            let limit = self.machine_leaf(MachineLeaf::Limit(buffer, self.geometry.lanes()));
            let (cond, width) = (Cond::AboveEqual, Width::W32);
            self.push(Inst::JumpIf { cond, width, a: base, b: limit.into(), to: slow });
        }
        let at = self.element_at(buffer, element, base).plus(element.bytes() * added as usize);
        if let Some(apart) =
            self.apart_from_stores(buffer, whole).filter(|_| !checked && prefix.is_none() && element == Element::Word)
        {
            let parts = self.load_between(ty, at, apart, parts.len());
            self.locs.set(result, smallvec![Loc::Parts(parts)]);
            return;
        }
        self.ask_ahead(buffer, element, whole, base, at);
        for (n, d) in parts.clone().into_iter().enumerate() {
            let v = match element {
                Element::Word => self.load(prefix.unwrap_or(LoadKind::Full), at.plus(32 * n)),
                Element::Double => self.load(LoadKind::Full, at.plus(32 * n)),
                Element::Byte { signed: false } => self.load(LoadKind::U8, at.plus(8 * n)),
                Element::Byte { signed: true } => self.load(LoadKind::I8, at.plus(8 * n)),
                Element::Half { signed: false } => self.load(LoadKind::U16, at.plus(16 * n)),
                Element::Half { signed: true } => self.load(LoadKind::I16, at.plus(16 * n)),
                Element::F16 | Element::Bf16 => {
                    let bits = self.load(LoadKind::U16, at.plus(16 * n));
                    self.convert_loaded(element, bits, None)
                }
                Element::E4m3 | Element::E5m2 => {
                    let bytes = self.load(LoadKind::Halves, at.plus(8 * n));
                    self.widen_bytes(element, bytes)
                }
                Element::Nibble(_) | Element::Words(_) => self.zero(),
            };
            let v = self.loaded(ty, v);
            self.push(Inst::VMov { d, a: v });
        }
        if checked {
            self.push(Inst::ColdBegin);
            self.push(Inst::Label(slow));
            let around = std::mem::replace(&mut self.in_cold, true);
            if element == Element::Word {
                self.load_some(ty, buffer, whole, &parts, done);
            }
            let slowly = self.gather(result, false, buffer, element, whole);
            self.in_cold = around;
            for (d, a) in parts.iter().zip(&slowly[0]) {
                self.push(Inst::VMov { d: *d, a: *a });
            }
            self.push(Inst::Jump(done));
            self.push(Inst::ColdEnd);
            self.push(Inst::Label(done));
        }
        self.locs.set(result, smallvec![Loc::Parts(parts)]);
    }

    /// How far into vectors of a workgroup's memory those begin that are read at this index, if it is not with one and the segment also writes
    /// there. Where every block is read and written in turn, what is read was just written, and the machine hands on at once only what
    /// one store has written.
    fn apart_from_stores(&self, buffer: BufferId, index: Value) -> Option<u32> {
        if !self.rewritten.contains(&buffer) || self.geometry.total() != self.geometry.size[0] {
            return None;
        }
        let form = LocalForm::of(self.ssa, index, 0).filter(|form| form.times == [1, 0, 0])?;
        Some(form.plus % WIDTH).filter(|apart| *apart != 0)
    }

    /// Vectors that begin `apart` elements behind where stores do, out of those that begin with them. These are inside of what the buffer has,
    /// since its memory begins and ends at multiples of a vector.
    fn load_between(&mut self, ty: Scalar, at: Mem, apart: u32, count: usize) -> Parts {
        let first = Mem { disp: at.disp - 4 * apart as i32, ..at };
        let order = self.pool.place(std::array::from_fn(|n| (n as u32 + apart) % WIDTH));
        let order = self.load(LoadKind::Full, order);
        let turned: Parts = (0..=count)
            .map(|n| {
                let whole = self.load(LoadKind::Full, first.plus(32 * n));
                self.v3(V3::vpermd, order, whole)
            })
            .collect();
        // The last elements are the first ones of the next.
        let imm = u8::MAX << (WIDTH - apart);
        (0..count)
            .map(|n| {
                let d = self.new_v();
                self.push(Inst::V3I { op: V3I::vpblendd, d, a: turned[n], b: turned[n + 1].into(), imm });
                self.loaded(ty, d)
            })
            .collect()
    }

    /// Words side by side of which some are outside, or not asked for: jumps to `done` unless the buffer is too large for that.
    fn load_some(&mut self, ty: Scalar, buffer: BufferId, index: Value, to: &Parts, done: Label) {
        let too_large = self.new_label();
        let length = self.machine_leaf(MachineLeaf::Length(buffer));
        let (cond, width, b) = (Cond::Less, Width::W32, GSrc::Imm(0));
        self.push(Inst::JumpIf { cond, width, a: length, b, to: too_large });
        let indices = self.vectors(index, 0);
        let inside = self.inside(buffer, &indices, u32::MAX);
        let mask = self.mask.clone();
        let active = self.both(&inside, &mask);
        // Elements inside have numbers below 2³¹, so that a first one that is not has wrapped, or nobody is inside.
        let (base, high, signed) = (self.g(index), self.new_g(), self.new_g());
        self.push(Inst::GShift { op: GShift::Left, width: Width::W64, d: high, a: base, imm: 32 });
        self.push(Inst::GShift { op: GShift::ArithmeticRight, width: Width::W64, d: signed, a: high, imm: 32 });
        let at = self.element_at(buffer, Element::Word, signed);
        for (n, d) in to.iter().enumerate() {
            let v = self.new_v();
            self.push(Inst::MaskLoad { wide: false, d: v, mask: active[n], from: at.plus(32 * n) });
            let v = self.loaded(ty, v);
            self.push(Inst::VMov { d: *d, a: v });
        }
        self.push(Inst::Jump(done));
        self.push(Inst::Label(too_large));
    }

    /// Words at any indices, each of which is checked.
    pub fn gather_checked(&mut self, ty: Scalar, buffer: BufferId, index: &Parts, highest: u32) -> Parts {
        let bound = self.bound(buffer, highest);
        let mask = self.mask.clone();
        // One vector after the other, so that there is one such mask at a time.
        let gather = |lower: &mut Self, n: usize| {
            let inside = lower.below(bound, index[n]);
            let active = match &mask {
                None => inside,
                Some(mask) => lower.v3(V3::vpand, inside, mask[n]),
            };
            lower.gather_words(ty, buffer, &smallvec![index[n]], &smallvec![active], 1, 0)[0]
        };
        (0..index.len()).map(|n| gather(self, n)).collect()
    }

    /// Elements at any indices: by component.
    fn gather(
        &mut self,
        result: Value,
        unchecked: bool,
        buffer: BufferId,
        element: Element,
        index: Value,
    ) -> SmallVec<[Parts; 1]> {
        let ty = self.ty(result);
        let indices = self.vectors(index, 0);
        if let (Element::Word, false) = (element, unchecked) {
            let highest = self.facts.ranges.of_value(index).high;
            return smallvec![self.gather_checked(ty, buffer, &indices, highest)];
        }
        let active: Parts = if unchecked {
            // What is proven holds for active lanes.
            self.mask_vectors()
        } else {
            // A lane that is nobody may have an index that was never checked.
            let highest = self.facts.ranges.of_value(index).high;
            let inside = self.inside(buffer, &indices, highest);
            let mask = self.mask.clone();
            self.both(&inside, &mask)
        };
        match element {
            Element::Word => smallvec![self.gather_words(ty, buffer, &indices, &active, 1, 0)],
            Element::Words(count) => {
                (0..count).map(|component| self.gather_words(ty, buffer, &indices, &active, count, component)).collect()
            }
            Element::Double => {
                let base = self.machine_leaf(MachineLeaf::Address(buffer));
                let mut parts = Parts::new();
                for (index, active) in indices.iter().zip(&active) {
                    let high = self.new_v();
                    self.push(Inst::High { d: high, a: *index });
                    for (half, mask) in [*index, high].into_iter().zip(self.widen_mask(*active)) {
                        let d = self.new_v();
                        self.push(Inst::GatherWide { d, base, index: half, mask });
                        parts.push(self.loaded(ty, d));
                    }
                }
                smallvec![parts]
            }
            Element::Byte { .. }
            | Element::Half { .. }
            | Element::F16
            | Element::Bf16
            | Element::E4m3
            | Element::E5m2
            | Element::Nibble(_) => {
                let loaded = self.gather_small(buffer, element, &indices, &active);
                let parts = loaded
                    .into_iter()
                    .zip(&indices)
                    .zip(&active)
                    .map(|((bits, index), active)| {
                        let v = self.convert_loaded(element, bits, Some(*index));
                        let v = self.loaded(ty, v);
                        // A zero of the type, and not what zero bits are.
                        match element {
                            Element::Nibble(_) => self.v3(V3::vpand, v, *active),
                            Element::Word
                            | Element::Double
                            | Element::Byte { .. }
                            | Element::Half { .. }
                            | Element::F16
                            | Element::Bf16
                            | Element::E4m3
                            | Element::E5m2
                            | Element::Words(_) => v,
                        }
                    })
                    .collect();
                smallvec![parts]
            }
        }
    }

    fn gather_words(&mut self, ty: Scalar, buffer: BufferId, index: &Parts, active: &Parts, count: u8, component: u8) -> Parts {
        let base = self.machine_leaf(MachineLeaf::Address(buffer));
        let base = if component == 0 {
            base
        } else {
            let d = self.new_g();
            self.push(Inst::Lea { d, from: Mem::at(base).plus(4 * usize::from(component)) });
            d
        };
        index
            .iter()
            .zip(active)
            .map(|(index, active)| {
                let index = if count == 1 {
                    *index
                } else {
                    let times = self.constant32(u32::from(count));
                    self.v3(V3::vpmulld, *index, times)
                };
                let (d, mask) = (self.new_v(), self.new_v());
                self.push(Inst::VMov { d: mask, a: *active });
                self.push(Inst::Gather { d, base, index, mask });
                self.loaded(ty, d)
            })
            .collect()
    }

    /// Elements of less than 4 bytes: out of the words that they are in, as long as all of these are whole.
    fn gather_small(&mut self, buffer: BufferId, element: Element, index: &Parts, active: &Parts) -> Parts {
        if self.in_cold {
            return self.gather_bytes(buffer, element, index, active);
        }
        // How many elements are in a word, as a power of two.
        let (log, bits) = match element.g_load() {
            GLoadKind::U16 | GLoadKind::I16 => (1, 16),
            GLoadKind::U8 | GLoadKind::I8 if matches!(element, Element::Nibble(_)) => (3, 8),
            GLoadKind::U8 | GLoadKind::I8 | GLoadKind::W32 | GLoadKind::W64 => (2, 8),
        };
        let count = self.whole_words(buffer, log);
        let (slow, done) = (self.new_label(), self.new_label());
        let words: Parts = index.iter().map(|index| self.shift_imm(Shift::vpsrld, *index, log)).collect();
        let partial: Parts = words
            .iter()
            .zip(active)
            .map(|(word, active)| {
                let whole = self.v3(V3::vpcmpgtd, count, *word);
                self.v3(V3::vpandn, whole, *active)
            })
            .collect();
        self.jump_if_some(&partial, slow);
        let found: Parts = index
            .iter()
            .zip(words)
            .zip(active)
            .map(|((index, word), active)| {
                let gathered = self.gather_words(Scalar::U32, buffer, &smallvec![word], &smallvec![*active], 1, 0)[0];
                // How far its byte or half is from the lowest bit of the word.
                let place = if log == 3 { self.shift_imm(Shift::vpsrld, *index, 1) } else { *index };
                let most = self.constant32(32 / bits - 1);
                let place = self.v3(V3::vpand, place, most);
                let by = self.shift_imm(Shift::vpslld, place, bits.trailing_zeros() as u8);
                let shifted = self.v3(V3::vpsrlvd, gathered, by);
                let top = (32 - bits) as u8;
                if let GLoadKind::I8 | GLoadKind::I16 = element.g_load() {
                    let up = self.shift_imm(Shift::vpslld, shifted, top);
                    return self.shift_imm(Shift::vpsrad, up, top);
                }
                let ones = self.constant32(u32::MAX >> top);
                self.v3(V3::vpand, shifted, ones)
            })
            .collect();
        self.push(Inst::ColdBegin);
        self.push(Inst::Label(slow));
        let around = std::mem::replace(&mut self.in_cold, true);
        let slowly = self.gather_bytes(buffer, element, index, active);
        self.in_cold = around;
        for (d, a) in found.iter().zip(slowly) {
            self.push(Inst::VMov { d: *d, a });
        }
        self.push(Inst::Jump(done));
        self.push(Inst::ColdEnd);
        self.push(Inst::Label(done));
        found
    }

    /// How many whole words a buffer has, in every element, where a word has two to this power elements.
    fn whole_words(&mut self, buffer: BufferId, log: u8) -> V {
        if let Some(known) = self.word_counts.get(&buffer) {
            return *known;
        }
        let length = self.machine_leaf(MachineLeaf::Length(buffer));
        let count = self.at_entry(|lower| {
            let count = lower.new_g();
            lower.push(Inst::GShift { op: GShift::Right, width: Width::W32, d: count, a: length, imm: log });
            lower.splat_g(Width::W32, count)
        });
        self.word_counts.insert(buffer, count);
        count
    }

    /// The same, one after the other.
    fn gather_bytes(&mut self, buffer: BufferId, element: Element, index: &Parts, active: &Parts) -> Parts {
        self.frame(area::BYTES);
        let zero = self.zero();
        for (n, index) in index.iter().enumerate() {
            self.push(Inst::Store { kind: StoreKind::Full, to: Mem::frame(area::INDEX + 32 * n), v: *index });
            self.push(Inst::Store { kind: StoreKind::Full, to: Mem::frame(area::RESULT + 32 * n), v: zero });
        }
        let bits = self.mask_bits(&Some(active.clone()));
        self.each_lane(bits, |lower, lane| {
            let index = lower.load_g(GLoadKind::W32, lane_at(area::INDEX, lane, 4));
            let at = lower.element_at(buffer, element, index);
            let value = lower.load_g(element.g_load(), at);
            lower.push(Inst::GStore { kind: GStoreKind::B4, to: lane_at(area::RESULT, lane, 4), a: value });
        });
        (0..index.len()).map(|n| self.load(LoadKind::Full, Mem::frame(area::RESULT + 32 * n))).collect()
    }
}
