//! Memory: loads and stores of one element per lane.
//!
//! An index that is linear with stride 1 is contiguous: one comparison with the length checks the whole block, and what does not fit goes
//! the slow way, which is the general one. The general way of loads is a gather under a mask, of stores a loop over the active lanes. Nothing
//! outside of a buffer is read, and no byte of an inactive lane is written.

use super::helpers::{self, area};
use super::lower::{Loc, Lower, MachineLeaf, Mask, Parts, components_of, is_float, scalar_of, width_of};
use super::shape::Shape;
use crate::faults::Fault;
use crate::machine::lir::{
    Base, Cond, G2, GLoadKind, GShift, GSrc, GStoreKind, Inst, Label, LoadKind, Mem, Shift, Src, StoreKind, V2I, V3, Widen, Width,
};
use crate::machine::reg::{G, V};
use smallvec::{SmallVec, smallvec};
use vyre_foundation::ir::{Access, BinaryOp, DataType};
use vyre_foundation::kernel::{AccessId, BufferId};
use vyre_foundation::ssa::{Op, Value};
use vyre_scalar::small;
use vyre_spec::{FloatMode, Scalar};

/// How an element lies in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Element {
    /// 4 bytes, as they are.
    Word,
    /// 8 bytes.
    Double,
    Byte {
        signed: bool,
    },
    Half {
        signed: bool,
    },
    F16,
    Bf16,
    E4m3,
    E5m2,
    /// Half a byte.
    Nibble(Nibble),
    /// So many words.
    Words(u8),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Nibble {
    I4,
    Fp4,
    Nf4,
}

impl Element {
    fn of(ty: &DataType) -> Option<Element> {
        Some(match ty {
            DataType::U32 | DataType::I32 | DataType::F32 | DataType::Bool => Element::Word,
            DataType::U64 | DataType::I64 | DataType::F64 => Element::Double,
            DataType::U8 => Element::Byte { signed: false },
            DataType::I8 => Element::Byte { signed: true },
            DataType::U16 => Element::Half { signed: false },
            DataType::I16 => Element::Half { signed: true },
            DataType::F16 => Element::F16,
            DataType::BF16 => Element::Bf16,
            DataType::F8E4M3 => Element::E4m3,
            DataType::F8E5M2 => Element::E5m2,
            DataType::I4 => Element::Nibble(Nibble::I4),
            DataType::FP4 => Element::Nibble(Nibble::Fp4),
            DataType::NF4 => Element::Nibble(Nibble::Nf4),
            other @ DataType::Vec2U32
            | other @ DataType::Vec4U32
            | other @ DataType::Bytes
            | other @ DataType::Tensor
            | other @ DataType::Array { .. }
            | other @ DataType::Handle(_)
            | other @ DataType::Opaque(_)
            | other @ DataType::Vec { .. }
            | other @ DataType::TensorShaped { .. }
            | other @ DataType::SparseCsr { .. }
            | other @ DataType::SparseCoo { .. }
            | other @ DataType::SparseBsr { .. }
            | other @ DataType::DeviceMesh { .. } => Element::Words(components_of(other.value_type()?)),
        })
    }

    /// Bytes; of a nibble those that are read.
    fn bytes(self) -> usize {
        match self {
            Element::Byte { .. } | Element::E4m3 | Element::E5m2 | Element::Nibble(_) => 1,
            Element::Half { .. } | Element::F16 | Element::Bf16 => 2,
            Element::Word => 4,
            Element::Double => 8,
            Element::Words(count) => 4 * usize::from(count),
        }
    }

    fn g_load(self) -> GLoadKind {
        match self {
            Element::Byte { signed: true } => GLoadKind::I8,
            Element::Byte { signed: false } | Element::E4m3 | Element::E5m2 | Element::Nibble(_) => GLoadKind::U8,
            Element::Half { signed: true } => GLoadKind::I16,
            Element::Half { signed: false } | Element::F16 | Element::Bf16 => GLoadKind::U16,
            Element::Word | Element::Words(_) => GLoadKind::W32,
            Element::Double => GLoadKind::W64,
        }
    }

    fn g_store(self) -> GStoreKind {
        match self {
            Element::Byte { .. } | Element::E4m3 | Element::E5m2 | Element::Nibble(_) => GStoreKind::B1,
            Element::Half { .. } | Element::F16 | Element::Bf16 => GStoreKind::B2,
            Element::Word | Element::Words(_) => GStoreKind::B4,
            Element::Double => GStoreKind::B8,
        }
    }
}

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
                self.locs[result.index()] = Some(parts.into_iter().map(Loc::Parts).collect());
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
        self.locs[result.index()] = Some(locs);
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
        self.locs[result.index()] = Some(smallvec![Loc::Parts(parts)]);
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

    /// What every loaded vector goes through: `bool`s become masks, floats canonical where the mode asks for it.
    fn loaded(&mut self, ty: Scalar, v: V) -> V {
        if ty == Scalar::Bool {
            let zero = self.zero();
            let is_zero = self.v3(V3::vpcmpeqd, v, zero);
            let ones = self.ones();
            return self.v3(V3::vpxor, is_zero, ones);
        }
        self.canonical_load(ty, v)
    }

    fn canonical_load(&mut self, ty: Scalar, v: V) -> V {
        let flushes = is_float(ty) && self.mode == FloatMode::Canonical && !self.planted(Fault::LoadNotFlushed);
        if flushes { self.flush(ty, v) } else { v }
    }

    /// Bits of a small element, one per 32-bit element, to its value.
    fn convert_loaded(&mut self, element: Element, bits: V, index: Option<V>) -> V {
        match element {
            Element::F16 => {
                // Halves side by side in the low 16 bytes.
                let packed = self.pack_halves(bits);
                let d = self.new_v();
                self.push(Inst::Widen { op: Widen::vcvtph2ps, d, a: packed.into() });
                d
            }
            Element::Bf16 => {
                let d = self.new_v();
                self.push(Inst::Shift { op: Shift::vpslld, d, a: bits, imm: 16 });
                d
            }
            Element::E4m3 | Element::E5m2 => {
                // The sign of the byte in all of its half.
                let (top, signed) = (self.new_v(), self.new_v());
                self.push(Inst::Shift { op: Shift::vpslld, d: top, a: bits, imm: 24 });
                self.push(Inst::Shift { op: Shift::vpsrad, d: signed, a: top, imm: 24 });
                let bytes = self.pack_halves(signed);
                self.widen_bytes(element, bytes)
            }
            Element::Nibble(kind) => {
                let index = match index {
                    Some(index) => index,
                    None => self.zero(),
                };
                let one = self.constant32(1);
                let exchanged = self.planted(Fault::NibblesExchanged);
                let odd = self.v3(if exchanged { V3::vpandn } else { V3::vpand }, index, one);
                let by = self.new_v();
                self.push(Inst::Shift { op: Shift::vpslld, d: by, a: odd, imm: 2 });
                let shifted = self.v3(V3::vpsrlvd, bits, by);
                let low = self.constant32(15);
                let nibble = self.v3(V3::vpand, shifted, low);
                let table: [u32; 16] = std::array::from_fn(|n| match kind {
                    Nibble::I4 => small::i4(n as u8) as u32,
                    Nibble::Fp4 => small::fp4(n as u8).to_bits(),
                    Nibble::Nf4 => small::nf4(n as u8).to_bits(),
                });
                self.look_up(nibble, &table)
            }
            Element::Word | Element::Double | Element::Byte { .. } | Element::Half { .. } | Element::Words(_) => bits,
        }
    }

    /// Floats of 8 bits, which are in halves of 32 bits with their sign, to floats of 32 bits. As floats of 16 bits they have the same form:
    /// `e5m2` is their upper byte, and `e4m3` has an exponent that is biased by 8 less.
    fn widen_bytes(&mut self, element: Element, bytes: V) -> V {
        let (shifted, d) = (self.new_v(), self.new_v());
        if element == Element::E5m2 {
            self.push(Inst::Shift { op: Shift::vpsllw, d: shifted, a: bytes, imm: 8 });
            self.push(Inst::Widen { op: Widen::vcvtph2ps, d, a: shifted.into() });
            return d;
        }
        self.push(Inst::Shift { op: Shift::vpsllw, d: shifted, a: bytes, imm: 7 });
        // The sign is there twice.
        let all_but_one = self.constant32(0xBFFF_BFFF);
        let half = self.v3(V3::vpand, shifted, all_but_one);
        // There is no infinity, and one NaN for either sign.
        let magnitude = self.constant32(0x3F80_3F80);
        let largest = self.v3(V3::vpand, shifted, magnitude);
        let nan = self.v3(V3::vpcmpeqw, largest, magnitude);
        let half = self.v3(V3::vpor, half, nan);
        self.push(Inst::Widen { op: Widen::vcvtph2ps, d, a: half.into() });
        let scale = self.constant(Scalar::F32, u64::from(256f32.to_bits()));
        self.v3(V3::vmulps, d, scale)
    }

    /// Elements of a table of constants.
    fn look_up(&mut self, index: V, table: &[u32]) -> V {
        let key: Vec<u32> = table.to_vec();
        let from = match self.tables.get(&key) {
            Some(from) => *from,
            None => {
                let from = self.pool.table(table);
                self.tables.insert(key, from);
                from
            }
        };
        let base = self.new_g();
        self.push(Inst::Lea { d: base, from });
        let (d, mask) = (self.new_v(), self.ones());
        self.push(Inst::Gather { d, base, index, mask });
        d
    }

    /// The low halves of 8 elements in the low 16 bytes.
    fn pack_halves(&mut self, bits: V) -> V {
        let order = self.pool.place([
            0x0504_0100,
            0x0D0C_0908,
            0x8080_8080,
            0x8080_8080,
            0x0504_0100,
            0x0D0C_0908,
            0x8080_8080,
            0x8080_8080,
        ]);
        let low = self.v3(V3::vpshufb, bits, Src::Mem(order));
        let d = self.new_v();
        self.push(Inst::V2I { op: V2I::vpermq, d, a: low.into(), imm: 0x08 });
        d
    }

    /// The low bytes of 8 elements in the low 8 bytes.
    fn pack_bytes(&mut self, bits: V) -> V {
        let order = self.pool.place([
            0x0C08_0400,
            0x8080_8080,
            0x8080_8080,
            0x8080_8080,
            0x0C08_0400,
            0x8080_8080,
            0x8080_8080,
            0x8080_8080,
        ]);
        let low = self.v3(V3::vpshufb, bits, Src::Mem(order));
        let places = self.pool.place([0, 4, 1, 1, 1, 1, 1, 1]);
        let places = self.load(LoadKind::Full, places);
        self.v3(V3::vpermd, places, low)
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

    fn both(&mut self, one: &Parts, other: &Mask) -> Parts {
        match other {
            None => one.clone(),
            Some(other) => one.iter().zip(other).map(|(a, b)| self.v3(V3::vpand, *a, *b)).collect(),
        }
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

    /// Elements of less than 4 bytes, one after the other.
    fn gather_small(&mut self, buffer: BufferId, element: Element, index: &Parts, active: &Parts) -> Parts {
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

    fn stored_vector(&mut self, element: Element, ty: Scalar, may_be_nan: bool, v: V) -> V {
        let v = if is_float(ty) && may_be_nan && !self.planted(Fault::NanStoredAsIs) { self.one_nan(ty, v) } else { v };
        if ty == Scalar::Bool {
            let one = self.constant32(1);
            return self.v3(V3::vpand, v, one);
        }
        match element {
            Element::F16 if self.mode == FloatMode::Ieee => {
                let (halves, d) = (self.new_v(), self.new_v());
                self.push(Inst::ToHalf { d: halves, a: v });
                // Back to one per 32-bit element.
                self.push(Inst::Store { kind: StoreKind::Half, to: Mem::frame(area::FIRST), v: halves });
                self.frame(area::BYTES);
                self.push(Inst::Load { kind: LoadKind::U16, d, from: Mem::frame(area::FIRST) });
                d
            }
            Element::Bf16 if self.mode == FloatMode::Ieee => {
                // Nearest, ties to even: half of the last place less one, and the bit that is to be even.
                let (upper, d) = (self.new_v(), self.new_v());
                self.push(Inst::Shift { op: Shift::vpsrld, d: upper, a: v, imm: 16 });
                let one = self.constant32(1);
                let even = self.v3(V3::vpand, upper, one);
                let half = self.constant32(0x7FFF);
                let up = self.v3(V3::vpaddd, v, half);
                let rounded = self.v3(V3::vpaddd, up, even);
                // A NaN stays what it is.
                let shifted = self.new_v();
                self.push(Inst::Shift { op: Shift::vpsrld, d: shifted, a: rounded, imm: 16 });
                let nan = self.is_nan(Scalar::F32, v);
                self.push(Inst::Blend { d, a: shifted, b: upper.into(), mask: nan });
                d
            }
            Element::F16 | Element::Bf16 | Element::E4m3 | Element::E5m2 => {
                let format = match element {
                    Element::F16 => 0,
                    Element::Bf16 => 1,
                    Element::E4m3 => 2,
                    Element::Word
                    | Element::Double
                    | Element::Byte { .. }
                    | Element::Half { .. }
                    | Element::E5m2
                    | Element::Nibble(_)
                    | Element::Words(_) => 3,
                };
                self.call_narrow(format, v)
            }
            Element::Word
            | Element::Double
            | Element::Byte { .. }
            | Element::Half { .. }
            | Element::Nibble(_)
            | Element::Words(_) => v,
        }
    }

    fn call_narrow(&mut self, format: u64, v: V) -> V {
        self.frame(area::BYTES);
        self.push(Inst::Store { kind: StoreKind::Full, to: Mem::frame(area::FIRST), v });
        let mode = u64::from(self.mode == FloatMode::Canonical);
        self.push(Inst::Call { helper: helpers::narrow, argument: format | mode << 8 });
        self.load(LoadKind::Full, Mem::frame(area::RESULT))
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
