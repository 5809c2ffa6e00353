//! How elements lie in memory, and what turns the bits of one into a value and back.

use super::super::helpers::{self, area};
use super::super::lower::{Lower, components_of, is_float};
use crate::faults::Fault;
use crate::machine::lir::{GLoadKind, GStoreKind, Inst, LoadKind, Mem, Shift, Src, StoreKind, V2I, V3, Widen};
use crate::machine::reg::V;
use vyre_foundation::ir::DataType;
use vyre_scalar::small;
use vyre_spec::{FloatMode, Scalar};

/// How an element lies in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Element {
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
pub(super) enum Nibble {
    I4,
    Fp4,
    Nf4,
}

impl Element {
    pub(super) fn of(ty: &DataType) -> Option<Element> {
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
    pub(super) fn bytes(self) -> usize {
        match self {
            Element::Byte { .. } | Element::E4m3 | Element::E5m2 | Element::Nibble(_) => 1,
            Element::Half { .. } | Element::F16 | Element::Bf16 => 2,
            Element::Word => 4,
            Element::Double => 8,
            Element::Words(count) => 4 * usize::from(count),
        }
    }

    pub(super) fn g_load(self) -> GLoadKind {
        match self {
            Element::Byte { signed: true } => GLoadKind::I8,
            Element::Byte { signed: false } | Element::E4m3 | Element::E5m2 | Element::Nibble(_) => GLoadKind::U8,
            Element::Half { signed: true } => GLoadKind::I16,
            Element::Half { signed: false } | Element::F16 | Element::Bf16 => GLoadKind::U16,
            Element::Word | Element::Words(_) => GLoadKind::W32,
            Element::Double => GLoadKind::W64,
        }
    }

    pub(super) fn g_store(self) -> GStoreKind {
        match self {
            Element::Byte { .. } | Element::E4m3 | Element::E5m2 | Element::Nibble(_) => GStoreKind::B1,
            Element::Half { .. } | Element::F16 | Element::Bf16 => GStoreKind::B2,
            Element::Word | Element::Words(_) => GStoreKind::B4,
            Element::Double => GStoreKind::B8,
        }
    }
}

impl Lower<'_> {
    /// What every loaded vector goes through: `bool`s become masks, floats canonical where the mode asks for it.
    pub(super) fn loaded(&mut self, ty: Scalar, v: V) -> V {
        if ty == Scalar::Bool {
            let zero = self.zero();
            let is_zero = self.v3(V3::vpcmpeqd, v, zero);
            let ones = self.ones();
            return self.v3(V3::vpxor, is_zero, ones);
        }
        self.canonical_load(ty, v)
    }

    pub(super) fn canonical_load(&mut self, ty: Scalar, v: V) -> V {
        let flushes = is_float(ty) && self.mode == FloatMode::Canonical && !self.planted(Fault::LoadNotFlushed);
        if flushes { self.flush(ty, v) } else { v }
    }

    /// Bits of a small element, one per 32-bit element, to its value.
    pub(super) fn convert_loaded(&mut self, element: Element, bits: V, index: Option<V>) -> V {
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
    pub(super) fn widen_bytes(&mut self, element: Element, bytes: V) -> V {
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
    pub(super) fn look_up(&mut self, index: V, table: &[u32]) -> V {
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
    pub(super) fn pack_halves(&mut self, bits: V) -> V {
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
    pub(super) fn pack_bytes(&mut self, bits: V) -> V {
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

    pub(super) fn stored_vector(&mut self, element: Element, ty: Scalar, may_be_nan: bool, v: V) -> V {
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

    pub(super) fn call_narrow(&mut self, format: u64, v: V) -> V {
        self.frame(area::BYTES);
        self.push(Inst::Store { kind: StoreKind::Full, to: Mem::frame(area::FIRST), v });
        let mode = u64::from(self.mode == FloatMode::Canonical);
        self.push(Inst::Call { helper: helpers::narrow, argument: format | mode << 8 });
        self.load(LoadKind::Full, Mem::frame(area::RESULT))
    }
}
