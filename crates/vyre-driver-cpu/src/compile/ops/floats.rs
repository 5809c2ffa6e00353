//! Floats in vectors.
//!
//! In registers a float's NaN has any sign and payload; what can tell (stores, bitcasts, `copysign`, functions that are called) sees the
//! one NaN. Under `floats canonical` every result is flushed.

use crate::compile::lower::{Lower, is_wide};
use crate::faults::Fault;
use crate::machine::lir::{Inst, Src, V2, V2I, V3, V3I};
use crate::machine::reg::V;
use vyre_foundation::ir::{BinaryOp, UnaryOp};
use vyre_foundation::ssa::Value;
use vyre_spec::{FloatMode, Scalar};

pub(super) const ROUND_NEAREST: u8 = 8;
pub(super) const ROUND_DOWN: u8 = 9;
pub(super) const ROUND_UP: u8 = 10;
pub(super) const ROUND_TO_ZERO: u8 = 11;

pub(super) const CMP_EQ: u8 = 0;
pub(super) const CMP_UNORDERED: u8 = 3;
pub(super) const CMP_NE: u8 = 4;
pub(super) const CMP_ORDERED: u8 = 7;
pub(super) const CMP_LT: u8 = 0x11;
pub(super) const CMP_LE: u8 = 0x12;
pub(super) const CMP_NOT_LT: u8 = 0x15;
pub(super) const CMP_GE: u8 = 0x1D;
pub(super) const CMP_GT: u8 = 0x1E;

/// What comparisons are to the instruction; all but `!=` are false for NaN.
const CONDITIONS: [(BinaryOp, u8); 6] = [
    (BinaryOp::Eq, CMP_EQ),
    (BinaryOp::Ne, CMP_NE),
    (BinaryOp::Lt, CMP_LT),
    (BinaryOp::Le, CMP_LE),
    (BinaryOp::Gt, CMP_GT),
    (BinaryOp::Ge, CMP_GE),
];

impl Lower<'_> {
    pub fn may_be_nan(&self, value: Value) -> bool {
        self.facts.floats.kinds(value).may_be_nan()
    }

    pub fn is_nan(&mut self, ty: Scalar, v: V) -> V {
        self.compare(ty, v, v, CMP_UNORDERED)
    }

    pub(super) fn compare(&mut self, ty: Scalar, a: V, b: impl Into<Src>, imm: u8) -> V {
        let d = self.new_v();
        let op = if is_wide(ty) { V3I::vcmppd } else { V3I::vcmpps };
        self.push(Inst::V3I { op, d, a, b: b.into(), imm });
        d
    }

    /// The one NaN for any.
    pub fn one_nan(&mut self, ty: Scalar, v: V) -> V {
        let nan = self.is_nan(ty, v);
        let bits = if is_wide(ty) { 0x7FF8_0000_0000_0000 } else { 0x7FC0_0000 };
        let one = self.constant(ty, bits);
        self.blend(v, one, nan)
    }

    pub(super) fn sign_bit(&mut self, ty: Scalar) -> Src {
        self.constant(if is_wide(ty) { Scalar::U64 } else { Scalar::U32 }, if is_wide(ty) { 1 << 63 } else { 1 << 31 })
    }

    pub(super) fn magnitude(&mut self, ty: Scalar, v: V) -> V {
        let rest = self
            .constant(if is_wide(ty) { Scalar::U64 } else { Scalar::U32 }, if is_wide(ty) { !(1 << 63) } else { 0x7FFF_FFFF });
        self.v3(V3::vpand, v, rest)
    }

    /// +0 for what is at most 2⁻¹²⁶.
    pub fn flush(&mut self, ty: Scalar, v: V) -> V {
        let magnitude = self.magnitude(ty, v);
        let smallest =
            self.constant(ty, if is_wide(ty) { f64::MIN_POSITIVE.to_bits() } else { f32::MIN_POSITIVE.to_bits().into() });
        let tiny = self.compare(ty, magnitude, smallest, CMP_LE);
        self.v3(V3::vpandn, tiny, v)
    }

    pub(super) fn float_result(&mut self, ty: Scalar, v: V) -> V {
        let flushes = self.mode == FloatMode::Canonical && !self.planted(Fault::ResultNotFlushed);
        if flushes { self.flush(ty, v) } else { v }
    }

    pub(super) fn round(&mut self, ty: Scalar, a: V, imm: u8) -> V {
        let d = self.new_v();
        let op = if is_wide(ty) { V2I::vroundpd } else { V2I::vroundps };
        self.push(Inst::V2I { op, d, a: a.into(), imm });
        d
    }

    pub(super) fn unary_float(&mut self, op: UnaryOp, ty: Scalar, a: V) -> V {
        let wide = is_wide(ty);
        let v = match op {
            UnaryOp::Neg => {
                let sign = self.sign_bit(ty);
                self.v3(V3::vpxor, a, sign)
            }
            UnaryOp::Abs => self.magnitude(ty, a),
            UnaryOp::Sign => {
                let sign = self.sign_bit(ty);
                let own = self.v3(V3::vpand, a, sign);
                let one = self.constant(ty, if wide { 1f64.to_bits() } else { 1f32.to_bits().into() });
                let unit = self.v3(V3::vpor, own, one);
                let zero = self.zero();
                // Equal to zero, or not comparable with it.
                let itself = self.compare(ty, a, zero, 8);
                self.blend(unit, a, itself)
            }
            UnaryOp::Sqrt => {
                let d = self.new_v();
                self.push(Inst::V2 { op: if wide { V2::vsqrtpd } else { V2::vsqrtps }, d, a: a.into() });
                d
            }
            UnaryOp::Floor => self.round(ty, a, ROUND_DOWN),
            UnaryOp::Ceil => self.round(ty, a, ROUND_UP),
            UnaryOp::Trunc => self.round(ty, a, ROUND_TO_ZERO),
            UnaryOp::Round => self.round(ty, a, ROUND_NEAREST),
            UnaryOp::Fract => {
                let floor = self.round(ty, a, ROUND_DOWN);
                self.v3(if wide { V3::vsubpd } else { V3::vsubps }, a, floor)
            }
            UnaryOp::IsNan => return self.is_nan(ty, a),
            UnaryOp::IsInf => {
                let magnitude = self.magnitude(ty, a);
                let inf = self.constant(ty, if wide { f64::INFINITY.to_bits() } else { f32::INFINITY.to_bits().into() });
                return self.v3(if wide { V3::vpcmpeqq } else { V3::vpcmpeqd }, magnitude, inf);
            }
            UnaryOp::Not
            | UnaryOp::Popcount
            | UnaryOp::Clz
            | UnaryOp::Ctz
            | UnaryOp::ReverseBits
            | UnaryOp::Exp
            | UnaryOp::Exp2
            | UnaryOp::Log
            | UnaryOp::Log2
            | UnaryOp::Sin
            | UnaryOp::Cos
            | UnaryOp::Tan
            | UnaryOp::Tanh
            | UnaryOp::Atan
            | UnaryOp::Rsqrt
            | UnaryOp::SwapBytes => return self.call_unary(op, ty, a),
        };
        self.float_result(ty, v)
    }

    pub(super) fn binary_float(&mut self, op: BinaryOp, ty: Scalar, a: V, b: Src) -> V {
        let wide = is_wide(ty);
        let plain = match (op, wide) {
            (BinaryOp::Add, false) => Some(V3::vaddps),
            (BinaryOp::Add, true) => Some(V3::vaddpd),
            (BinaryOp::Sub, false) => Some(V3::vsubps),
            (BinaryOp::Sub, true) => Some(V3::vsubpd),
            (BinaryOp::Mul, false) => Some(V3::vmulps),
            (BinaryOp::Mul, true) => Some(V3::vmulpd),
            (BinaryOp::Div, false) => Some(V3::vdivps),
            (BinaryOp::Div, true) => Some(V3::vdivpd),
            (_, _) => None,
        };
        if let Some(op) = plain {
            let v = self.v3(op, a, b);
            return self.float_result(ty, v);
        }
        if let Some((_, condition)) = CONDITIONS.iter().find(|(compared, _)| *compared == op) {
            return self.compare(ty, a, b, *condition);
        }
        let v = match op {
            BinaryOp::Min | BinaryOp::Max => return self.min_max(op, ty, a, b, [true; 2]),
            BinaryOp::Copysign => {
                let b = self.in_reg(b);
                let magnitude = self.magnitude(ty, a);
                let sign = self.sign_bit(ty);
                let sign = self.v3(V3::vpand, b, sign);
                let nan = self.is_nan(ty, b);
                let sign = self.v3(V3::vpandn, nan, sign);
                self.v3(V3::vpor, magnitude, sign)
            }
            BinaryOp::Add
            | BinaryOp::Sub
            | BinaryOp::Mul
            | BinaryOp::Mulhi
            | BinaryOp::Div
            | BinaryOp::Rem
            | BinaryOp::AbsDiff
            | BinaryOp::BitAnd
            | BinaryOp::BitOr
            | BinaryOp::BitXor
            | BinaryOp::Shl
            | BinaryOp::Shr
            | BinaryOp::Rotl
            | BinaryOp::Rotr
            | BinaryOp::SatAdd
            | BinaryOp::SatSub
            | BinaryOp::Pow
            | BinaryOp::And
            | BinaryOp::Or
            | BinaryOp::Eq
            | BinaryOp::Ne
            | BinaryOp::Lt
            | BinaryOp::Le
            | BinaryOp::Gt
            | BinaryOp::Ge => return self.call_binary(op, ty, a, b),
        };
        self.float_result(ty, v)
    }

    /// The smaller or the larger of two numbers, and the number where the other is none. `may_be_nan`: whether each operand may be no number.
    pub(super) fn min_max(&mut self, op: BinaryOp, ty: Scalar, a: V, b: Src, may_be_nan: [bool; 2]) -> V {
        let wide = is_wide(ty);
        let b = self.in_reg(b);
        // The machine gives the second operand where both are zeros: both orders together tell a −0 or a +0.
        let (pick, merge) = match (op, wide) {
            (BinaryOp::Min, false) => (V3::vminps, V3::vpor),
            (BinaryOp::Min, true) => (V3::vminpd, V3::vpor),
            (_, false) => (V3::vmaxps, V3::vpand),
            (_, true) => (V3::vmaxpd, V3::vpand),
        };
        let one = self.v3(pick, a, b);
        let other = if self.planted(Fault::ZerosInOrder) { one } else { self.v3(pick, b, a) };
        let mut v = self.v3(merge, one, other);
        for ((may_be_nan, operand), instead) in may_be_nan.into_iter().zip([a, b]).zip([b, a]) {
            if may_be_nan {
                let nan = self.is_nan(ty, operand);
                v = self.blend(v, instead, nan);
            }
        }
        self.float_result(ty, v)
    }

    /// The same with a number that is known, as the second operand, which the machine gives where the first is no number: one instruction, if
    /// the number is not the zero that loses against the other zero.
    pub(super) fn min_max_literal(&mut self, op: BinaryOp, ty: Scalar, a: V, bits: u64) -> Option<V> {
        let (is_nan, is_zero) = match ty {
            Scalar::F32 => (f32::from_bits(bits as u32).is_nan(), f32::from_bits(bits as u32) == 0.0),
            Scalar::F64 => (f64::from_bits(bits).is_nan(), f64::from_bits(bits) == 0.0),
            Scalar::Bool | Scalar::U32 | Scalar::I32 | Scalar::U64 | Scalar::I64 => return None,
        };
        let pick = match (op, is_wide(ty)) {
            (BinaryOp::Min, false) => V3::vminps,
            (BinaryOp::Min, true) => V3::vminpd,
            (_, false) => V3::vmaxps,
            (_, true) => V3::vmaxpd,
        };
        let is_negative = bits >> (ty.bits() - 1) & 1 == 1;
        let loses = is_zero && is_negative != (op == BinaryOp::Min);
        if is_nan || loses || self.planted(Fault::ZerosInOrder) {
            return None;
        }
        let b = self.constant(ty, bits);
        let v = self.v3(pick, a, b);
        Some(self.float_result(ty, v))
    }
}
