//! The elementary functions of f32 on vectors, correctly rounded.
//!
//! Eight lanes are computed in f64 ([`math`]), with a relative error that each function derives where it is written: at most 2⁻ᵇ for a `b` of
//! 43 to 46. A lane's result is right for certain if no number in that distance rounds to another f32. For lanes where this fails,
//! a few in a million, and for arguments outside of the function's range, the scalar function is called: `vyre_scalar`'s, which is what
//! every other evaluator of the language calls, and which settles all cases. So the bytes are the same as if it had been called for all.
//!
//! **The rounding test.** A normal f64 has 29 bits more than an f32 with its exponent. Where these are within the error of 100…0, the
//! middle between two f32, the lane is not sure. One unit of these bits is at least 2⁻⁵³ of the number, so the error is less than 2⁵³⁻ᵇ
//! units. This says nothing about results that are subnormal in f32, which have fewer bits: each function says why it has none, or has
//! them exactly.
//!
//! **Coefficients** are those of polynomials whose largest relative error over the interval is the smallest, by the exchange algorithm of
//! Remez in 50-digit arithmetic, then rounded to f64. The errors given with them are of the rounded ones. Tests run all 2³² arguments
//! (`tests/elementary.rs`), and measure by changed coefficients that an error beyond the bound is found.

mod circular;
mod exponential;
mod logarithm;
mod math;
mod power;
mod root;

use crate::compile::helpers::{self, area};
use crate::compile::lower::Lower;
use crate::machine::lir::{Cond, G2, GSrc, GStoreKind, Inst, LoadKind, Mem, Shift, Src, StoreKind, V3, Width};
use crate::machine::reg::{G, V};
use math::{Doubles, Math};
use vyre_foundation::ir::{BinaryOp, UnaryOp};
use vyre_spec::Scalar;

/// Added to an f64 it rounds it to an integer, which is then in the low bits: 1.5 × 2⁵².
const ROUND_TO_INTEGER: f64 = (3u64 << 51) as f64;

/// A result, and where it may be wrong, as masks.
struct Value {
    result: V,
    /// Lanes whose rounding is not certain, in the order 0 1 4 5 2 3 6 7.
    unsure: Option<V>,
    /// Lanes that are outside of the function's range.
    outside: Option<V>,
}

impl Value {
    /// Rounded to f32; `exact` is off by at most 2 to the power of −`bits` of itself.
    fn rounded(m: &mut Math<'_, '_>, exact: Doubles, bits: u32) -> Value {
        let result = m.narrow(exact);
        let error = 1 << (53 - bits);
        // The window around the middle becomes the numbers from i32::MIN up.
        let words = m.low_words(exact);
        let moved = m.with_bits(V3::vpaddd, words, error);
        let places = m.shift_words(Shift::vpslld, moved, 3);
        let end = m.0.constant_v(Scalar::U32, u64::from((1u32 << 31) + ((2 * error + 1) << 3)));
        let unsure = m.0.v3(V3::vpcmpgtd, end, places);
        Value { result, unsure: Some(unsure), outside: None }
    }

    /// Besides, these lanes are not covered.
    fn except(self, outside: V) -> Value {
        Value { outside: Some(outside), ..self }
    }
}

/// Who needs the result of a function.
#[derive(Clone, Copy)]
pub(super) enum Wanted {
    /// The same in all elements.
    Uniform,
    /// Lanes that are active; all without a mask.
    Lanes(Option<V>),
}

type Function = fn(&mut Math<'_, '_>, V) -> Value;

fn function(op: UnaryOp) -> Option<Function> {
    match op {
        UnaryOp::Exp => Some(exponential::exp),
        UnaryOp::Exp2 => Some(exponential::exp2),
        UnaryOp::Tanh => Some(exponential::tanh),
        UnaryOp::Log => Some(logarithm::log),
        UnaryOp::Log2 => Some(logarithm::log2),
        UnaryOp::Sin => Some(circular::sin),
        UnaryOp::Cos => Some(circular::cos),
        UnaryOp::Tan => Some(circular::tan),
        UnaryOp::Atan => Some(circular::atan),
        UnaryOp::Rsqrt => Some(root::rsqrt),
        UnaryOp::Neg
        | UnaryOp::Abs
        | UnaryOp::Not
        | UnaryOp::Popcount
        | UnaryOp::Clz
        | UnaryOp::Ctz
        | UnaryOp::ReverseBits
        | UnaryOp::SwapBytes
        | UnaryOp::Sign
        | UnaryOp::Sqrt
        | UnaryOp::Floor
        | UnaryOp::Ceil
        | UnaryOp::Trunc
        | UnaryOp::Round
        | UnaryOp::Fract
        | UnaryOp::IsNan
        | UnaryOp::IsInf => None,
    }
}

impl Lower<'_> {
    /// An elementary function of one vector, if the op is one.
    pub(super) fn elementary(&mut self, op: UnaryOp, ty: Scalar, a: V, wanted: Wanted) -> Option<V> {
        let function = function(op).filter(|_| ty == Scalar::F32)?;
        let value = function(&mut Math(self), a);
        let argument = helpers::unary_argument(op, ty, self.mode);
        Some(self.settled(&value, [a, a], argument, wanted))
    }

    /// The power, if the op is that.
    pub(super) fn power(&mut self, op: BinaryOp, ty: Scalar, a: V, b: Src, wanted: Wanted) -> Option<V> {
        if (op, ty) != (BinaryOp::Pow, Scalar::F32) {
            return None;
        }
        let b = self.in_reg(b);
        let value = power::pow(&mut Math(self), a, b);
        let argument = helpers::binary_argument(op, ty, self.mode);
        Some(self.settled(&value, [a, b], argument, wanted))
    }

    /// The result; the scalar function is called for the lanes that may be wrong.
    fn settled(&mut self, value: &Value, operands: [V; 2], argument: u64, wanted: Wanted) -> V {
        let result = self.new_v();
        self.push(Inst::VMov { d: result, a: value.result });
        self.settle(value, result, operands, argument, wanted);
        self.float_result(Scalar::F32, result)
    }

    fn settle(&mut self, value: &Value, result: V, operands: [V; 2], argument: u64, wanted: Wanted) {
        let (some, done) = (self.new_label(), self.new_label());
        // Whether there is one; the order does not matter.
        let any = match (value.unsure, value.outside) {
            (Some(unsure), Some(outside)) => self.v3(V3::vpor, unsure, outside),
            (Some(mask), None) | (None, Some(mask)) => mask,
            (None, None) => return,
        };
        let bits = self.signs(any);
        self.push(Inst::JumpIf { cond: Cond::NotEqual, width: Width::W32, a: bits, b: GSrc::Imm(0), to: some });
        self.push(Inst::ColdBegin);
        self.push(Inst::Label(some));
        let unsure = value.unsure.map(|unsure| Math(self).in_order(unsure));
        let lanes = match (unsure, value.outside) {
            (Some(unsure), Some(outside)) => self.v3(V3::vpor, unsure, outside),
            (Some(mask), None) | (None, Some(mask)) => mask,
            (None, None) => return,
        };
        let (bits, kind) = match wanted {
            Wanted::Uniform => {
                let bits = self.signs(lanes);
                (self.g2(G2::and, Width::W32, bits, GSrc::Imm(1)), LoadKind::Splat32)
            }
            Wanted::Lanes(None) => (self.signs(lanes), LoadKind::Full),
            Wanted::Lanes(Some(active)) => {
                let lanes = self.v3(V3::vpand, lanes, active);
                let bits = self.signs(lanes);
                self.push(Inst::JumpIf { cond: Cond::Equal, width: Width::W32, a: bits, b: GSrc::Imm(0), to: done });
                (bits, LoadKind::Full)
            }
        };
        self.frame(area::BYTES);
        self.push(Inst::GStore { kind: GStoreKind::B4, to: Mem::frame(area::INDEX), a: bits });
        for (at, v) in [(area::FIRST, operands[0]), (area::SECOND, operands[1]), (area::RESULT, result)] {
            self.push(Inst::Store { kind: StoreKind::Full, to: Mem::frame(at), v });
        }
        self.push(Inst::Call { helper: helpers::some_lanes, argument });
        self.push(Inst::Load { kind, d: result, from: Mem::frame(area::RESULT) });
        self.push(Inst::Jump(done));
        self.push(Inst::ColdEnd);
        self.push(Inst::Label(done));
    }

    fn signs(&mut self, mask: V) -> G {
        let bits = self.new_g();
        self.push(Inst::Signs { d: bits, a: mask });
        bits
    }
}

#[cfg(test)]
mod tests;
