//! Ops: on general registers where they are uniform, on vectors where they are not.
//!
//! In registers a float's NaN has any sign and payload; what can tell (stores, bitcasts, `copysign`, functions that are called) sees the
//! one NaN. Under `floats canonical` every result is flushed.

use super::helpers::{self, area};
use super::lower::{Loc, Locs, Lower, Parts, is_float, is_wide, width_of};
use super::shape::Shape;
use crate::machine::lir::{
    Cond, Fma, G2, GShift, GSrc, Inst, LoadKind, Mem, Shift, Src, StoreKind, V2, V2I, V3, V3I, Widen, Width,
};
use crate::machine::reg::{G, V};
use smallvec::{SmallVec, smallvec};
use vyre_foundation::ir::{BinaryOp, TernaryOp, UnaryOp};
use vyre_foundation::ssa::{Op, Value};
use vyre_spec::{FloatMode, Scalar};

const ROUND_NEAREST: u8 = 8;
const ROUND_DOWN: u8 = 9;
const ROUND_UP: u8 = 10;
const ROUND_TO_ZERO: u8 = 11;

const CMP_EQ: u8 = 0;
const CMP_UNORDERED: u8 = 3;
const CMP_NE: u8 = 4;
const CMP_ORDERED: u8 = 7;
const CMP_LT: u8 = 0x11;
const CMP_LE: u8 = 0x12;
const CMP_GE: u8 = 0x1D;
const CMP_GT: u8 = 0x1E;

impl Lower<'_> {
    pub fn op(&mut self, result: Value, op: &Op) {
        match *op {
            Op::Vector { components } => {
                let locs: Locs = components.iter().map(|component| self.loc(*component, 0)).collect();
                // All components the way the value is.
                let (ty, shape) = (self.ty(result), self.shape(result));
                let locs = locs.into_iter().map(|loc| self.generalize(ty, loc, shape)).collect();
                self.locs[result.index()] = Some(locs);
            }
            Op::Extract { vector, component } => {
                let loc = self.loc(vector, component);
                self.set(result, loc);
            }
            Op::Unary { .. } | Op::Binary { .. } | Op::Ternary { .. } | Op::Cast { .. } | Op::Bitcast { .. } => {
                let loc = match self.shape(result) {
                    Shape::Varying => Loc::Parts(self.varying(op)),
                    Shape::Uniform => self.uniform(result, op),
                    Shape::Linear(stride) => match self.general(op) {
                        Some(base) => Loc::Linear(base, stride),
                        None => {
                            self.refuse("a linear value that is not computed on integers");
                            Loc::Lit(0)
                        }
                    },
                };
                self.set(result, loc);
            }
        }
    }

    /// A place in the form that others of this shape have.
    fn generalize(&mut self, ty: Scalar, loc: Loc, shape: Shape) -> Loc {
        match (shape, &loc) {
            (Shape::Varying, _) => Loc::Parts(self.as_vectors(ty, &loc)),
            (Shape::Uniform | Shape::Linear(_), Loc::Lit(bits)) if is_float(ty) => Loc::Splat(self.constant_v(ty, *bits)),
            (Shape::Uniform | Shape::Linear(_), Loc::Lit(bits)) => Loc::G(self.imm(*bits)),
            (Shape::Uniform | Shape::Linear(_), _) => loc,
        }
    }

    fn uniform(&mut self, result: Value, op: &Op) -> Loc {
        let ty = self.ty(result);
        if !is_float(ty)
            && let Some(reg) = self.general(op)
        {
            return Loc::G(reg);
        }
        // One vector of each operand, and of the result.
        let one = self.on_vectors(op, &mut |lower, value| {
            let (ty, loc) = (lower.ty(value), lower.loc(value, 0));
            match loc {
                Loc::Lit(bits) => lower.constant(ty, bits),
                Loc::Splat(v) => v.into(),
                Loc::G(reg) | Loc::Linear(reg, _) => lower.splat_scalar(ty, reg).into(),
                Loc::Parts(parts) => parts[0].into(),
            }
        });
        if is_float(ty) {
            return Loc::Splat(one);
        }
        let d = self.new_g();
        self.push(Inst::First { width: width_of(ty), d, a: one });
        match ty {
            Scalar::Bool => Loc::G(self.g2(G2::and, Width::W32, d, GSrc::Imm(1))),
            Scalar::U32 | Scalar::I32 | Scalar::U64 | Scalar::I64 | Scalar::F32 | Scalar::F64 => Loc::G(d),
        }
    }

    /// The op on vectors that have the same in every element.
    fn on_vectors(&mut self, op: &Op, operand: &mut dyn FnMut(&mut Self, Value) -> Src) -> V {
        match *op {
            Op::Unary { op, ty, operand: a } => {
                let a = operand(self, a);
                let a = self.in_reg(a);
                self.unary_v(op, ty, a)
            }
            Op::Binary { op, ty, left, right } => {
                let (a, b) = (operand(self, left), operand(self, right));
                let a = self.in_reg(a);
                let b = if is_wide(ty) && is_amount(op) { self.widen_amount(b)[0].into() } else { b };
                self.binary_v(op, ty, a, b)
            }
            Op::Ternary { op, ty, operands } => {
                let [a, b, c] = operands.map(|value| operand(self, value));
                let a = self.in_reg(a);
                self.ternary_v(op, ty, a, b, c)
            }
            Op::Cast { from, to, value } => {
                let a = operand(self, value);
                let a = self.in_reg(a);
                let parts: Parts = if is_wide(from) { smallvec![a, a] } else { smallvec![a] };
                self.cast_parts(from, to, parts)[0]
            }
            Op::Bitcast { from, to, value } => {
                let nan = self.may_be_nan(value);
                let a = operand(self, value);
                let a = self.in_reg(a);
                self.bitcast_v(from, to, nan, a)
            }
            Op::Vector { .. } | Op::Extract { .. } => self.zero(),
        }
    }

    fn varying(&mut self, op: &Op) -> Parts {
        match *op {
            Op::Unary { op, ty, operand } => {
                let parts = self.vectors(operand, 0);
                let results: Parts = parts.into_iter().map(|a| self.unary_v(op, ty, a)).collect();
                self.fit(ty, op.info().result_type(ty), results)
            }
            Op::Binary { op, ty, left, right } => {
                let a = self.vectors(left, 0);
                let mut b = self.sources(right);
                if is_wide(ty) && is_amount(op) {
                    b = b.into_iter().flat_map(|b| self.widen_amount(b).map(Src::Reg)).collect();
                }
                // A literal shift is an instruction of its own.
                if let (Some(by), true) = (self.ssa.literal(right), is_amount(op)) {
                    let results: Parts = a.into_iter().map(|a| self.shift_by_literal(op, ty, a, by as u32)).collect();
                    return results;
                }
                // Numbers below 2³¹ are ordered the same with a sign.
                let small = |value: Value| self.facts.ranges.of_value(value).high < 1 << 31;
                let ordered = matches!(op, BinaryOp::Lt | BinaryOp::Gt | BinaryOp::Le | BinaryOp::Ge);
                let compared = if ty == Scalar::U32 && ordered && small(left) && small(right) { Scalar::I32 } else { ty };
                let results: Parts = a.into_iter().zip(b).map(|(a, b)| self.binary_v(op, compared, a, b)).collect();
                self.fit(ty, op.info().result_type(ty), results)
            }
            Op::Ternary { op, ty, operands: [first, second, third] } => {
                let first = self.vectors(first, 0);
                let first = if op == TernaryOp::Select { self.masks_for(ty, &first) } else { first };
                let (second, third) = (self.sources(second), self.sources(third));
                first.into_iter().zip(second).zip(third).map(|((a, b), c)| self.ternary_v(op, ty, a, b, c)).collect()
            }
            Op::Cast { from, to, value } => {
                let parts = self.vectors(value, 0);
                self.cast_parts(from, to, parts)
            }
            Op::Bitcast { from, to, value } => {
                let (nan, parts) = (self.may_be_nan(value), self.vectors(value, 0));
                parts.into_iter().map(|a| self.bitcast_v(from, to, nan, a)).collect()
            }
            Op::Vector { .. } | Op::Extract { .. } => Parts::new(),
        }
    }

    /// Results of an op on 64-bit elements that are narrower than these.
    fn fit(&mut self, ty: Scalar, result: Option<Scalar>, parts: Parts) -> Parts {
        match (is_wide(ty), result.is_some_and(is_wide)) {
            (true, false) => parts
                .chunks(2)
                .map(|pair| (pair[0], pair[1]))
                .collect::<SmallVec<[(V, V); 4]>>()
                .into_iter()
                .map(|(low, high)| self.narrow_pair(low, high))
                .collect(),
            (_, _) => parts,
        }
    }

    /// Amounts of shifts, which have 32 bits, for elements of 64.
    fn widen_amount(&mut self, amount: Src) -> [V; 2] {
        let amount = self.in_reg(amount);
        let (low, upper, high) = (self.new_v(), self.new_v(), self.new_v());
        self.push(Inst::Widen { op: Widen::vpmovzxdq, d: low, a: amount.into() });
        self.push(Inst::High { d: upper, a: amount });
        self.push(Inst::Widen { op: Widen::vpmovzxdq, d: high, a: upper.into() });
        [low, high]
    }

    // General registers.

    /// The op on general registers; `None` if it is not done there.
    fn general(&mut self, op: &Op) -> Option<G> {
        match *op {
            Op::Unary { op, ty, operand } if !is_float(ty) => {
                let width = width_of(ty);
                match op {
                    UnaryOp::Neg => {
                        let (zero, b) = (self.imm(0), self.g_src(operand));
                        Some(self.g2(G2::sub, width, zero, b))
                    }
                    UnaryOp::Not => {
                        let a = self.g(operand);
                        Some(self.g2(G2::xor, width, a, GSrc::Imm(if ty == Scalar::Bool { 1 } else { -1 })))
                    }
                    UnaryOp::Abs
                    | UnaryOp::Popcount
                    | UnaryOp::Clz
                    | UnaryOp::Ctz
                    | UnaryOp::ReverseBits
                    | UnaryOp::Sign
                    | UnaryOp::Sqrt
                    | UnaryOp::Floor
                    | UnaryOp::Ceil
                    | UnaryOp::Trunc
                    | UnaryOp::Round
                    | UnaryOp::Fract
                    | UnaryOp::IsNan
                    | UnaryOp::IsInf
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
                    | UnaryOp::SwapBytes => None,
                }
            }
            Op::Binary { op, ty, left, right } if !is_float(ty) => self.general_binary(op, ty, left, right),
            Op::Ternary { op: TernaryOp::Select, ty, operands: [cond, x, y] } if !is_float(ty) => {
                let (a, x, y, d) = (self.g(cond), self.g(x), self.g(y), self.new_g());
                let (cond, width, b) = (Cond::NotEqual, Width::W32, GSrc::Imm(0));
                self.push(Inst::Choose { cond, width, a, b, d, x, y });
                Some(d)
            }
            Op::Cast { from, to, value } if !is_float(from) && !is_float(to) => {
                let (a, d) = (self.g(value), self.new_g());
                match (from, to) {
                    (Scalar::Bool, Scalar::Bool) => self.push(Inst::GMov { width: Width::W32, d, a }),
                    (_, Scalar::Bool) => {
                        self.push(Inst::Set { cond: Cond::NotEqual, width: width_of(from), d, a, b: GSrc::Imm(0) });
                    }
                    (Scalar::I32, Scalar::U64 | Scalar::I64) => {
                        let up = self.new_g();
                        let width = Width::W64;
                        self.push(Inst::GShift { op: GShift::Left, width, d: up, a, imm: 32 });
                        self.push(Inst::GShift { op: GShift::ArithmeticRight, width, d, a: up, imm: 32 });
                    }
                    (Scalar::U64 | Scalar::I64, Scalar::U64 | Scalar::I64) => {
                        self.push(Inst::GMov { width: Width::W64, d, a });
                    }
                    (_, _) => self.push(Inst::GMov { width: Width::W32, d, a }),
                }
                Some(d)
            }
            Op::Bitcast { from, to, value } if !is_float(from) && !is_float(to) => {
                let (a, d) = (self.g(value), self.new_g());
                self.push(Inst::GMov { width: Width::W64, d, a });
                Some(d)
            }
            Op::Unary { .. }
            | Op::Binary { .. }
            | Op::Ternary { .. }
            | Op::Cast { .. }
            | Op::Bitcast { .. }
            | Op::Vector { .. }
            | Op::Extract { .. } => None,
        }
    }

    fn general_binary(&mut self, op: BinaryOp, ty: Scalar, left: Value, right: Value) -> Option<G> {
        let width = width_of(ty);
        let signed = ty.is_signed_int();
        let simple = match op {
            BinaryOp::Add => Some(G2::add),
            BinaryOp::Sub => Some(G2::sub),
            BinaryOp::BitAnd | BinaryOp::And => Some(G2::and),
            BinaryOp::BitOr | BinaryOp::Or => Some(G2::or),
            BinaryOp::BitXor => Some(G2::xor),
            BinaryOp::Mul
            | BinaryOp::Mulhi
            | BinaryOp::Div
            | BinaryOp::Rem
            | BinaryOp::AbsDiff
            | BinaryOp::Min
            | BinaryOp::Max
            | BinaryOp::Shl
            | BinaryOp::Shr
            | BinaryOp::Rotl
            | BinaryOp::Rotr
            | BinaryOp::SatAdd
            | BinaryOp::SatSub
            | BinaryOp::Copysign
            | BinaryOp::Pow
            | BinaryOp::Eq
            | BinaryOp::Ne
            | BinaryOp::Lt
            | BinaryOp::Le
            | BinaryOp::Gt
            | BinaryOp::Ge => None,
        };
        if let Some(op) = simple {
            let (a, b) = (self.g(left), self.g_src(right));
            return Some(self.g2(op, width, a, b));
        }
        let cond = match (op, signed) {
            (BinaryOp::Eq, _) => Some(Cond::Equal),
            (BinaryOp::Ne, _) => Some(Cond::NotEqual),
            (BinaryOp::Lt | BinaryOp::Min, false) => Some(Cond::Below),
            (BinaryOp::Le, false) => Some(Cond::BelowEqual),
            (BinaryOp::Gt | BinaryOp::Max, false) => Some(Cond::Above),
            (BinaryOp::Ge, false) => Some(Cond::AboveEqual),
            (BinaryOp::Lt | BinaryOp::Min, true) => Some(Cond::Less),
            (BinaryOp::Le, true) => Some(Cond::LessEqual),
            (BinaryOp::Gt | BinaryOp::Max, true) => Some(Cond::Greater),
            (BinaryOp::Ge, true) => Some(Cond::GreaterEqual),
            (_, _) => None,
        };
        match (op, cond) {
            (BinaryOp::Min | BinaryOp::Max, Some(cond)) => {
                let (a, b, d) = (self.g(left), self.g(right), self.new_g());
                self.push(Inst::Choose { cond, width, a, b: b.into(), d, x: a, y: b });
                Some(d)
            }
            (_, Some(cond)) => {
                let (a, b, d) = (self.g(left), self.g_src(right), self.new_g());
                self.push(Inst::Set { cond, width, d, a, b });
                Some(d)
            }
            (BinaryOp::Mul, None) if self.power_of_two(right).is_some() => {
                let imm = self.power_of_two(right).unwrap_or(0);
                let (a, d) = (self.g(left), self.new_g());
                self.push(Inst::GShift { op: GShift::Left, width, d, a, imm });
                Some(d)
            }
            (BinaryOp::Mul, None) => {
                let (a, b, d) = (self.g(left), self.g_src(right), self.new_g());
                self.push(Inst::GMul { width, d, a, b });
                Some(d)
            }
            (BinaryOp::Shl | BinaryOp::Shr, None) => {
                let shift = match (op, signed) {
                    (BinaryOp::Shl, _) => GShift::Left,
                    (_, false) => GShift::Right,
                    (_, true) => GShift::ArithmeticRight,
                };
                let (a, d) = (self.g(left), self.new_g());
                match self.ssa.literal(right) {
                    Some(by) => {
                        let imm = (by as u32 % ty.bits()) as u8;
                        self.push(Inst::GShift { op: shift, width, d, a, imm });
                    }
                    None => {
                        let by = self.g(right);
                        self.push(Inst::GShiftBy { op: shift, width, d, a, by });
                    }
                }
                Some(d)
            }
            (_, None) => None,
        }
    }

    /// The exponent of a literal that is a power of two.
    fn power_of_two(&self, value: Value) -> Option<u8> {
        self.ssa.literal(value).filter(|bits| bits.is_power_of_two()).map(|bits| bits.trailing_zeros() as u8)
    }

    // Floats.

    pub fn may_be_nan(&self, value: Value) -> bool {
        self.facts.floats.kinds(value).may_be_nan()
    }

    pub fn is_nan(&mut self, ty: Scalar, v: V) -> V {
        self.compare(ty, v, v, CMP_UNORDERED)
    }

    fn compare(&mut self, ty: Scalar, a: V, b: impl Into<Src>, imm: u8) -> V {
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

    fn sign_bit(&mut self, ty: Scalar) -> Src {
        self.constant(if is_wide(ty) { Scalar::U64 } else { Scalar::U32 }, if is_wide(ty) { 1 << 63 } else { 1 << 31 })
    }

    fn magnitude(&mut self, ty: Scalar, v: V) -> V {
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

    fn float_result(&mut self, ty: Scalar, v: V) -> V {
        if self.mode == FloatMode::Canonical { self.flush(ty, v) } else { v }
    }

    fn round(&mut self, ty: Scalar, a: V, imm: u8) -> V {
        let d = self.new_v();
        let op = if is_wide(ty) { V2I::vroundpd } else { V2I::vroundps };
        self.push(Inst::V2I { op, d, a: a.into(), imm });
        d
    }

    // One vector.

    fn shift_imm(&mut self, op: Shift, a: V, imm: u8) -> V {
        let d = self.new_v();
        self.push(Inst::Shift { op, d, a, imm });
        d
    }

    fn not(&mut self, v: V) -> V {
        let ones = self.constant32(u32::MAX);
        self.v3(V3::vpxor, v, ones)
    }

    /// a > b, unsigned.
    fn above_32(&mut self, a: V, b: Src) -> V {
        let top = self.constant32(1 << 31);
        let a = self.v3(V3::vpxor, a, top);
        let b = self.in_reg(b);
        let b = self.v3(V3::vpxor, b, top);
        self.v3(V3::vpcmpgtd, a, b)
    }

    fn unary_v(&mut self, op: UnaryOp, ty: Scalar, a: V) -> V {
        match ty {
            Scalar::Bool => match op {
                UnaryOp::Not => self.not(a),
                UnaryOp::Neg
                | UnaryOp::Abs
                | UnaryOp::Popcount
                | UnaryOp::Clz
                | UnaryOp::Ctz
                | UnaryOp::ReverseBits
                | UnaryOp::Sign
                | UnaryOp::Sqrt
                | UnaryOp::Floor
                | UnaryOp::Ceil
                | UnaryOp::Trunc
                | UnaryOp::Round
                | UnaryOp::Fract
                | UnaryOp::IsNan
                | UnaryOp::IsInf
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
                | UnaryOp::SwapBytes => self.call_unary(op, ty, a),
            },
            Scalar::F32 | Scalar::F64 => self.unary_float(op, ty, a),
            Scalar::U32 | Scalar::I32 | Scalar::U64 | Scalar::I64 => self.unary_int(op, ty, a),
        }
    }

    fn unary_int(&mut self, op: UnaryOp, ty: Scalar, a: V) -> V {
        let wide = is_wide(ty);
        match op {
            UnaryOp::Neg => {
                let zero = self.zero();
                self.v3(if wide { V3::vpsubq } else { V3::vpsubd }, zero, a)
            }
            UnaryOp::Not => self.not(a),
            UnaryOp::Abs => match ty {
                Scalar::I32 => {
                    let d = self.new_v();
                    self.push(Inst::V2 { op: V2::vpabsd, d, a: a.into() });
                    d
                }
                Scalar::I64 => {
                    let zero = self.zero();
                    let negative = self.v3(V3::vpcmpgtq, zero, a);
                    let flipped = self.v3(V3::vpxor, a, negative);
                    self.v3(V3::vpsubq, flipped, negative)
                }
                Scalar::Bool | Scalar::U32 | Scalar::U64 | Scalar::F32 | Scalar::F64 => a,
            },
            UnaryOp::SwapBytes => self.swap_bytes(wide, a),
            UnaryOp::ReverseBits => {
                let low = self.look_up_nibbles(a, false, std::array::from_fn(|n| (n as u8).reverse_bits()));
                let high = self.look_up_nibbles(a, true, std::array::from_fn(|n| (n as u8).reverse_bits() >> 4));
                let bytes = self.v3(V3::vpor, low, high);
                self.swap_bytes(wide, bytes)
            }
            UnaryOp::Popcount => {
                let low = self.look_up_nibbles(a, false, std::array::from_fn(|n| n.count_ones() as u8));
                let high = self.look_up_nibbles(a, true, std::array::from_fn(|n| n.count_ones() as u8));
                let bytes = self.v3(V3::vpaddb, low, high);
                if wide {
                    let zero = self.zero();
                    return self.v3(V3::vpsadbw, bytes, zero);
                }
                let sum = self.constant32(0x0101_0101);
                let sums = self.v3(V3::vpmulld, bytes, sum);
                self.shift_imm(Shift::vpsrld, sums, 24)
            }
            UnaryOp::Clz if !wide => {
                // Only the highest bit counts, so that rounding does not change the exponent.
                let half = self.shift_imm(Shift::vpsrld, a, 1);
                let top = self.v3(V3::vpandn, half, a);
                let exponent = self.exponent_of_int(top);
                let most = self.constant_v(Scalar::U32, 158);
                let zeros = self.v3(V3::vpsubd, most, exponent);
                let width = self.constant32(32);
                let zeros = self.v3(V3::vpminud, zeros, width);
                // A number with the highest bit set was taken for a negative one.
                let negative = self.shift_imm(Shift::vpsrad, a, 31);
                self.v3(V3::vpandn, negative, zeros)
            }
            UnaryOp::Ctz if !wide => {
                let zero = self.zero();
                let minus = self.v3(V3::vpsubd, zero, a);
                let lowest = self.v3(V3::vpand, a, minus);
                let exponent = self.exponent_of_int(lowest);
                let bias = self.constant32(127);
                let zeros = self.v3(V3::vpsubd, exponent, bias);
                let width = self.constant32(32);
                self.v3(V3::vpminud, zeros, width)
            }
            UnaryOp::Clz
            | UnaryOp::Ctz
            | UnaryOp::Sign
            | UnaryOp::Sqrt
            | UnaryOp::Floor
            | UnaryOp::Ceil
            | UnaryOp::Trunc
            | UnaryOp::Round
            | UnaryOp::Fract
            | UnaryOp::IsNan
            | UnaryOp::IsInf
            | UnaryOp::Exp
            | UnaryOp::Exp2
            | UnaryOp::Log
            | UnaryOp::Log2
            | UnaryOp::Sin
            | UnaryOp::Cos
            | UnaryOp::Tan
            | UnaryOp::Tanh
            | UnaryOp::Atan
            | UnaryOp::Rsqrt => self.call_unary(op, ty, a),
        }
    }

    /// The biased exponent that an integer has as a float, whatever its sign; 0 for 0.
    fn exponent_of_int(&mut self, a: V) -> V {
        let float = self.new_v();
        self.push(Inst::V2 { op: V2::vcvtdq2ps, d: float, a: a.into() });
        let shifted = self.shift_imm(Shift::vpsrld, float, 23);
        let exponent = self.constant32(255);
        self.v3(V3::vpand, shifted, exponent)
    }

    fn swap_bytes(&mut self, wide: bool, a: V) -> V {
        let order: [u32; 8] = if wide {
            [0x0405_0607, 0x0001_0203, 0x0C0D_0E0F, 0x0809_0A0B, 0x0405_0607, 0x0001_0203, 0x0C0D_0E0F, 0x0809_0A0B]
        } else {
            [0x0001_0203, 0x0405_0607, 0x0809_0A0B, 0x0C0D_0E0F, 0x0001_0203, 0x0405_0607, 0x0809_0A0B, 0x0C0D_0E0F]
        };
        let order = self.pool.place(order);
        self.v3(V3::vpshufb, a, Src::Mem(order))
    }

    /// A byte of a table for the low or the high nibble of every byte.
    fn look_up_nibbles(&mut self, a: V, high: bool, table: [u8; 16]) -> V {
        let words: [u32; 8] = std::array::from_fn(|n| {
            let at = 4 * (n % 4);
            u32::from_le_bytes([table[at], table[at + 1], table[at + 2], table[at + 3]])
        });
        let place = self.pool.place(words);
        let table = self.load(LoadKind::Full, place);
        let a = if high { self.shift_imm(Shift::vpsrld, a, 4) } else { a };
        let nibbles = self.constant32(0x0F0F_0F0F);
        let nibbles = self.v3(V3::vpand, a, nibbles);
        self.v3(V3::vpshufb, table, nibbles)
    }

    fn unary_float(&mut self, op: UnaryOp, ty: Scalar, a: V) -> V {
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

    fn shift_by_literal(&mut self, op: BinaryOp, ty: Scalar, a: V, by: u32) -> V {
        let bits = ty.bits();
        let by = (by % bits) as u8;
        let wide = is_wide(ty);
        let (left, right) = if wide { (Shift::vpsllq, Shift::vpsrlq) } else { (Shift::vpslld, Shift::vpsrld) };
        match op {
            BinaryOp::Shl => self.shift_imm(left, a, by),
            BinaryOp::Shr if ty == Scalar::I32 => self.shift_imm(Shift::vpsrad, a, by),
            BinaryOp::Shr if ty == Scalar::I64 => {
                let by = self.constant64(u64::from(by));
                self.binary_v(BinaryOp::Shr, ty, a, by)
            }
            BinaryOp::Shr => self.shift_imm(right, a, by),
            BinaryOp::Rotl | BinaryOp::Rotr => {
                let up = if op == BinaryOp::Rotl { by } else { (bits as u8 - by) % bits as u8 };
                if up == 0 {
                    return a;
                }
                let (high, low) = (self.shift_imm(left, a, up), self.shift_imm(right, a, bits as u8 - up));
                self.v3(V3::vpor, high, low)
            }
            BinaryOp::Add
            | BinaryOp::Sub
            | BinaryOp::Mul
            | BinaryOp::Mulhi
            | BinaryOp::Div
            | BinaryOp::Rem
            | BinaryOp::AbsDiff
            | BinaryOp::Min
            | BinaryOp::Max
            | BinaryOp::BitAnd
            | BinaryOp::BitOr
            | BinaryOp::BitXor
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
            | BinaryOp::Ge => a,
        }
    }

    fn binary_v(&mut self, op: BinaryOp, ty: Scalar, a: V, b: Src) -> V {
        match ty {
            Scalar::Bool => self.binary_bool(op, a, b),
            Scalar::U32 | Scalar::I32 => self.binary_32(op, ty, a, b),
            Scalar::U64 | Scalar::I64 => self.binary_64(op, ty, a, b),
            Scalar::F32 | Scalar::F64 => self.binary_float(op, ty, a, b),
        }
    }

    fn binary_bool(&mut self, op: BinaryOp, a: V, b: Src) -> V {
        match op {
            BinaryOp::And => self.v3(V3::vpand, a, b),
            BinaryOp::Or => self.v3(V3::vpor, a, b),
            BinaryOp::BitXor | BinaryOp::Ne => self.v3(V3::vpxor, a, b),
            BinaryOp::Eq => self.v3(V3::vpcmpeqd, a, b),
            BinaryOp::Add
            | BinaryOp::Sub
            | BinaryOp::Mul
            | BinaryOp::Mulhi
            | BinaryOp::Div
            | BinaryOp::Rem
            | BinaryOp::AbsDiff
            | BinaryOp::Min
            | BinaryOp::Max
            | BinaryOp::BitAnd
            | BinaryOp::BitOr
            | BinaryOp::Shl
            | BinaryOp::Shr
            | BinaryOp::Rotl
            | BinaryOp::Rotr
            | BinaryOp::SatAdd
            | BinaryOp::SatSub
            | BinaryOp::Copysign
            | BinaryOp::Pow
            | BinaryOp::Lt
            | BinaryOp::Le
            | BinaryOp::Gt
            | BinaryOp::Ge => self.call_binary(op, Scalar::Bool, a, b),
        }
    }

    /// a ≥ b, unsigned.
    fn at_least_32(&mut self, a: V, b: Src) -> V {
        let larger = self.v3(V3::vpmaxud, a, b);
        self.v3(V3::vpcmpeqd, larger, a)
    }

    /// a ≤ b, unsigned.
    fn at_most_32(&mut self, a: V, b: Src) -> V {
        let smaller = self.v3(V3::vpminud, a, b);
        self.v3(V3::vpcmpeqd, smaller, a)
    }

    fn binary_32(&mut self, op: BinaryOp, ty: Scalar, a: V, b: Src) -> V {
        let signed = ty == Scalar::I32;
        match op {
            BinaryOp::Add => self.v3(V3::vpaddd, a, b),
            BinaryOp::Sub => self.v3(V3::vpsubd, a, b),
            BinaryOp::Mul => self.v3(V3::vpmulld, a, b),
            BinaryOp::BitAnd => self.v3(V3::vpand, a, b),
            BinaryOp::BitOr => self.v3(V3::vpor, a, b),
            BinaryOp::BitXor => self.v3(V3::vpxor, a, b),
            BinaryOp::Min => self.v3(if signed { V3::vpminsd } else { V3::vpminud }, a, b),
            BinaryOp::Max => self.v3(if signed { V3::vpmaxsd } else { V3::vpmaxud }, a, b),
            BinaryOp::Shl | BinaryOp::Shr => {
                let by = self.amount(b, 31);
                let op = match (op, signed) {
                    (BinaryOp::Shl, _) => V3::vpsllvd,
                    (_, false) => V3::vpsrlvd,
                    (_, true) => V3::vpsravd,
                };
                self.v3(op, a, by)
            }
            BinaryOp::Rotl | BinaryOp::Rotr => {
                let by = self.amount(b, 31);
                let width = self.constant_v(Scalar::U32, 32);
                // An amount of the whole width shifts everything out.
                let rest = self.v3(V3::vpsubd, width, by);
                let (up, down) = if op == BinaryOp::Rotl { (by, rest) } else { (rest, by) };
                let (high, low) = (self.v3(V3::vpsllvd, a, up), self.v3(V3::vpsrlvd, a, down));
                self.v3(V3::vpor, high, low)
            }
            BinaryOp::Mulhi => {
                let b = self.in_reg(b);
                let multiply = if signed { V3::vpmuldq } else { V3::vpmuludq };
                let even = self.v3(multiply, a, b);
                let (a_odd, b_odd) = (self.shift_imm(Shift::vpsrlq, a, 32), self.shift_imm(Shift::vpsrlq, b, 32));
                let odd = self.v3(multiply, a_odd, b_odd);
                let even = self.shift_imm(Shift::vpsrlq, even, 32);
                let d = self.new_v();
                self.push(Inst::V3I { op: V3I::vpblendd, d, a: even, b: odd.into(), imm: 0xAA });
                d
            }
            BinaryOp::AbsDiff => {
                let (min, max) = if signed { (V3::vpminsd, V3::vpmaxsd) } else { (V3::vpminud, V3::vpmaxud) };
                let (low, high) = (self.v3(min, a, b), self.v3(max, a, b));
                self.v3(V3::vpsubd, high, low)
            }
            BinaryOp::SatAdd if !signed => {
                let b = self.in_reg(b);
                let room = self.not(b);
                let a = self.v3(V3::vpminud, a, room);
                self.v3(V3::vpaddd, a, b)
            }
            BinaryOp::SatSub if !signed => {
                let a = self.v3(V3::vpmaxud, a, b);
                self.v3(V3::vpsubd, a, b)
            }
            BinaryOp::SatAdd | BinaryOp::SatSub => {
                let b = self.in_reg(b);
                let differ = self.v3(V3::vpxor, a, b);
                let (sum, wrong) = if op == BinaryOp::SatAdd {
                    // Wrong if both have one sign and the sum the other.
                    let sum = self.v3(V3::vpaddd, a, b);
                    let turned = self.v3(V3::vpxor, a, sum);
                    (sum, self.v3(V3::vpandn, differ, turned))
                } else {
                    let sum = self.v3(V3::vpsubd, a, b);
                    let turned = self.v3(V3::vpxor, a, sum);
                    (sum, self.v3(V3::vpand, differ, turned))
                };
                let sign = self.shift_imm(Shift::vpsrad, a, 31);
                let most = self.constant32(0x7FFF_FFFF);
                let end = self.v3(V3::vpxor, sign, most);
                self.blend(sum, end, wrong)
            }
            BinaryOp::Eq => self.v3(V3::vpcmpeqd, a, b),
            BinaryOp::Ne => {
                let equal = self.v3(V3::vpcmpeqd, a, b);
                self.not(equal)
            }
            BinaryOp::Gt if signed => self.v3(V3::vpcmpgtd, a, b),
            BinaryOp::Lt if signed => {
                let b = self.in_reg(b);
                self.v3(V3::vpcmpgtd, b, a)
            }
            BinaryOp::Le if signed => {
                let greater = self.v3(V3::vpcmpgtd, a, b);
                self.not(greater)
            }
            BinaryOp::Ge if signed => {
                let b = self.in_reg(b);
                let less = self.v3(V3::vpcmpgtd, b, a);
                self.not(less)
            }
            BinaryOp::Ge => self.at_least_32(a, b),
            BinaryOp::Le => self.at_most_32(a, b),
            BinaryOp::Lt => {
                let b = self.in_reg(b);
                self.above_32(b, a.into())
            }
            BinaryOp::Gt => self.above_32(a, b),
            BinaryOp::Div | BinaryOp::Rem => self.divide_32(op, signed, a, b),
            BinaryOp::Copysign | BinaryOp::Pow | BinaryOp::And | BinaryOp::Or => self.call_binary(op, ty, a, b),
        }
    }

    fn amount(&mut self, b: Src, most: u32) -> V {
        let b = self.in_reg(b);
        let most = self.constant32(most);
        self.v3(V3::vpand, b, most)
    }

    /// Halves of 32-bit integers as doubles, exactly.
    fn doubles_of(&mut self, signed: bool, a: V) -> [V; 2] {
        let a = if signed {
            a
        } else {
            let top = self.constant32(1 << 31);
            self.v3(V3::vpxor, a, top)
        };
        let upper = self.new_v();
        self.push(Inst::High { d: upper, a });
        [a, upper].map(|half| {
            let d = self.new_v();
            self.push(Inst::Widen { op: Widen::vcvtdq2pd, d, a: half.into() });
            if signed {
                d
            } else {
                let back = self.constant(Scalar::F64, 2147483648f64.to_bits());
                self.v3(V3::vaddpd, d, back)
            }
        })
    }

    /// Whole doubles that fit to 32-bit integers.
    fn ints_of(&mut self, signed: bool, halves: [V; 2]) -> V {
        let [low, high] = halves.map(|half| {
            let half = if signed {
                half
            } else {
                let half = self.round(Scalar::F64, half, ROUND_TO_ZERO);
                let shift = self.constant(Scalar::F64, 2147483648f64.to_bits());
                self.v3(V3::vsubpd, half, shift)
            };
            let d = self.new_v();
            self.push(Inst::Narrow { op: crate::machine::lir::Narrow::vcvttpd2dq, d, a: half });
            d
        });
        let d = self.new_v();
        self.push(Inst::Join { d, low, high });
        if signed {
            d
        } else {
            let top = self.constant32(1 << 31);
            self.v3(V3::vpxor, d, top)
        }
    }

    /// Division of doubles, rounded, cannot reach the next integer: the quotient of 32-bit numbers is farther from it than half a place.
    fn divide_32(&mut self, op: BinaryOp, signed: bool, a: V, b: Src) -> V {
        let b = self.in_reg(b);
        let dividend = self.doubles_of(signed, a);
        let divisor = self.doubles_of(signed, b);
        let low = self.v3(V3::vdivpd, dividend[0], divisor[0]);
        let high = self.v3(V3::vdivpd, dividend[1], divisor[1]);
        let quotient = self.ints_of(signed, [low, high]);
        let zero = self.zero();
        let by_zero = self.v3(V3::vpcmpeqd, b, zero);
        if op == BinaryOp::Div {
            return self.blend(quotient, a, by_zero);
        }
        let product = self.v3(V3::vpmulld, quotient, b);
        let rest = self.v3(V3::vpsubd, a, product);
        self.v3(V3::vpandn, by_zero, rest)
    }

    /// a > b.
    fn greater_64(&mut self, signed: bool, a: V, b: V) -> V {
        if signed {
            return self.v3(V3::vpcmpgtq, a, b);
        }
        let top = self.constant64(1 << 63);
        let (a, b) = (self.v3(V3::vpxor, a, top), self.v3(V3::vpxor, b, top));
        self.v3(V3::vpcmpgtq, a, b)
    }

    fn binary_64(&mut self, op: BinaryOp, ty: Scalar, a: V, b: Src) -> V {
        let signed = ty == Scalar::I64;
        match op {
            BinaryOp::Add => self.v3(V3::vpaddq, a, b),
            BinaryOp::Sub => self.v3(V3::vpsubq, a, b),
            BinaryOp::BitAnd => self.v3(V3::vpand, a, b),
            BinaryOp::BitOr => self.v3(V3::vpor, a, b),
            BinaryOp::BitXor => self.v3(V3::vpxor, a, b),
            BinaryOp::Mul => {
                let b = self.in_reg(b);
                let low = self.v3(V3::vpmuludq, a, b);
                let (a_high, b_high) = (self.shift_imm(Shift::vpsrlq, a, 32), self.shift_imm(Shift::vpsrlq, b, 32));
                let (one, other) = (self.v3(V3::vpmuludq, a_high, b), self.v3(V3::vpmuludq, a, b_high));
                let cross = self.v3(V3::vpaddq, one, other);
                let cross = self.shift_imm(Shift::vpsllq, cross, 32);
                self.v3(V3::vpaddq, low, cross)
            }
            BinaryOp::Shl | BinaryOp::Shr | BinaryOp::Rotl | BinaryOp::Rotr => {
                let b = self.in_reg(b);
                let most = self.constant64(63);
                let by = self.v3(V3::vpand, b, most);
                match op {
                    BinaryOp::Shl => self.v3(V3::vpsllvq, a, by),
                    BinaryOp::Shr if !signed => self.v3(V3::vpsrlvq, a, by),
                    BinaryOp::Shr => {
                        let top = self.constant_v(Scalar::U64, 1 << 63);
                        let sign = self.v3(V3::vpsrlvq, top, by);
                        let shifted = self.v3(V3::vpsrlvq, a, by);
                        let flipped = self.v3(V3::vpxor, shifted, sign);
                        self.v3(V3::vpsubq, flipped, sign)
                    }
                    BinaryOp::Add
                    | BinaryOp::Sub
                    | BinaryOp::Mul
                    | BinaryOp::Mulhi
                    | BinaryOp::Div
                    | BinaryOp::Rem
                    | BinaryOp::AbsDiff
                    | BinaryOp::Min
                    | BinaryOp::Max
                    | BinaryOp::BitAnd
                    | BinaryOp::BitOr
                    | BinaryOp::BitXor
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
                    | BinaryOp::Ge => {
                        let width = self.constant_v(Scalar::U64, 64);
                        let rest = self.v3(V3::vpsubq, width, by);
                        let (up, down) = if op == BinaryOp::Rotl { (by, rest) } else { (rest, by) };
                        let (high, low) = (self.v3(V3::vpsllvq, a, up), self.v3(V3::vpsrlvq, a, down));
                        self.v3(V3::vpor, high, low)
                    }
                }
            }
            BinaryOp::Eq => self.v3(V3::vpcmpeqq, a, b),
            BinaryOp::Ne => {
                let equal = self.v3(V3::vpcmpeqq, a, b);
                self.not(equal)
            }
            BinaryOp::Gt | BinaryOp::Le => {
                let b = self.in_reg(b);
                let greater = self.greater_64(signed, a, b);
                if op == BinaryOp::Gt { greater } else { self.not(greater) }
            }
            BinaryOp::Lt | BinaryOp::Ge => {
                let b = self.in_reg(b);
                let less = self.greater_64(signed, b, a);
                if op == BinaryOp::Lt { less } else { self.not(less) }
            }
            BinaryOp::Min | BinaryOp::Max => {
                let b = self.in_reg(b);
                let greater = self.greater_64(signed, a, b);
                if op == BinaryOp::Min { self.blend(a, b, greater) } else { self.blend(b, a, greater) }
            }
            BinaryOp::AbsDiff => {
                let b = self.in_reg(b);
                let greater = self.greater_64(signed, a, b);
                let (high, low) = (self.blend(b, a, greater), self.blend(a, b, greater));
                self.v3(V3::vpsubq, high, low)
            }
            BinaryOp::Mulhi
            | BinaryOp::Div
            | BinaryOp::Rem
            | BinaryOp::SatAdd
            | BinaryOp::SatSub
            | BinaryOp::Copysign
            | BinaryOp::Pow
            | BinaryOp::And
            | BinaryOp::Or => self.call_binary(op, ty, a, b),
        }
    }

    fn binary_float(&mut self, op: BinaryOp, ty: Scalar, a: V, b: Src) -> V {
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
        let condition = match op {
            BinaryOp::Eq => Some(CMP_EQ),
            BinaryOp::Ne => Some(CMP_NE),
            BinaryOp::Lt => Some(CMP_LT),
            BinaryOp::Le => Some(CMP_LE),
            BinaryOp::Gt => Some(CMP_GT),
            BinaryOp::Ge => Some(CMP_GE),
            BinaryOp::Add
            | BinaryOp::Sub
            | BinaryOp::Mul
            | BinaryOp::Mulhi
            | BinaryOp::Div
            | BinaryOp::Rem
            | BinaryOp::AbsDiff
            | BinaryOp::Min
            | BinaryOp::Max
            | BinaryOp::BitAnd
            | BinaryOp::BitOr
            | BinaryOp::BitXor
            | BinaryOp::Shl
            | BinaryOp::Shr
            | BinaryOp::Rotl
            | BinaryOp::Rotr
            | BinaryOp::SatAdd
            | BinaryOp::SatSub
            | BinaryOp::Copysign
            | BinaryOp::Pow
            | BinaryOp::And
            | BinaryOp::Or => None,
        };
        if let Some(condition) = condition {
            return self.compare(ty, a, b, condition);
        }
        let v = match op {
            BinaryOp::Min | BinaryOp::Max => {
                let b = self.in_reg(b);
                // The machine gives the second operand where both are zeros: both orders together tell a −0 or a +0.
                let (pick, merge) = match (op, wide) {
                    (BinaryOp::Min, false) => (V3::vminps, V3::vpor),
                    (BinaryOp::Min, true) => (V3::vminpd, V3::vpor),
                    (_, false) => (V3::vmaxps, V3::vpand),
                    (_, true) => (V3::vmaxpd, V3::vpand),
                };
                let (one, other) = (self.v3(pick, a, b), self.v3(pick, b, a));
                let number = self.v3(merge, one, other);
                let a_is_nan = self.is_nan(ty, a);
                let v = self.blend(number, b, a_is_nan);
                let b_is_nan = self.is_nan(ty, b);
                self.blend(v, a, b_is_nan)
            }
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

    fn ternary_v(&mut self, op: TernaryOp, ty: Scalar, a: V, b: Src, c: Src) -> V {
        match op {
            TernaryOp::Select => {
                let c = self.in_reg(c);
                self.blend(c, b, a)
            }
            TernaryOp::Fma => {
                let (b, d) = (self.in_reg(b), self.new_v());
                self.push(Inst::Fma { op: if is_wide(ty) { Fma::pd } else { Fma::ps }, d, a, b, c });
                self.float_result(ty, d)
            }
        }
    }

    fn bitcast_v(&mut self, from: Scalar, to: Scalar, may_be_nan: bool, a: V) -> V {
        let a = if is_float(from) && !is_float(to) && may_be_nan { self.one_nan(from, a) } else { a };
        if is_float(to) && !is_float(from) { self.float_result(to, a) } else { a }
    }

    fn call_unary(&mut self, op: UnaryOp, ty: Scalar, a: V) -> V {
        let argument = helpers::unary_argument(op, ty, self.mode);
        self.call_lanes(argument, a, None, op.info().result_type(ty) == Some(Scalar::Bool), is_wide(ty))
    }

    fn call_binary(&mut self, op: BinaryOp, ty: Scalar, a: V, b: Src) -> V {
        let b = self.in_reg(b);
        let argument = helpers::binary_argument(op, ty, self.mode);
        self.call_lanes(argument, a, Some(b), op.info().result_type(ty) == Some(Scalar::Bool), is_wide(ty))
    }

    fn call_lanes(&mut self, argument: u64, a: V, b: Option<V>, is_bool: bool, wide: bool) -> V {
        self.frame(area::BYTES);
        self.push(Inst::Store { kind: StoreKind::Full, to: Mem::frame(area::FIRST), v: a });
        if let Some(v) = b {
            self.push(Inst::Store { kind: StoreKind::Full, to: Mem::frame(area::SECOND), v });
        }
        self.push(Inst::Call { helper: helpers::lanes, argument });
        let v = self.load(LoadKind::Full, Mem::frame(area::RESULT));
        if !is_bool {
            return v;
        }
        let zero = self.zero();
        self.v3(if wide { V3::vpsubq } else { V3::vpsubd }, zero, v)
    }

    // Conversions.

    /// A conversion of all vectors of a value.
    fn cast_parts(&mut self, from: Scalar, to: Scalar, parts: Parts) -> Parts {
        use Scalar::{Bool, F32, F64, I32, I64, U32, U64};
        match (from, to) {
            (Bool, Bool) | (U32 | I32, U32 | I32) | (U64 | I64, U64 | I64) | (F32, F32) | (F64, F64) => parts,
            (Bool, U32 | I32) => {
                let one = self.constant32(1);
                parts.into_iter().map(|a| self.v3(V3::vpand, a, one)).collect()
            }
            (Bool, F32) => {
                let one = self.constant(F32, 1f32.to_bits().into());
                parts.into_iter().map(|a| self.v3(V3::vpand, a, one)).collect()
            }
            (Bool, U64 | I64 | F64) => {
                let numbers = self.cast_parts(Bool, U32, parts);
                self.cast_parts(U32, to, numbers)
            }
            (U32 | I32, Bool) => {
                let zero = self.zero();
                parts
                    .into_iter()
                    .map(|a| {
                        let equal = self.v3(V3::vpcmpeqd, a, zero);
                        self.not(equal)
                    })
                    .collect()
            }
            (U64 | I64, Bool) => {
                let zero = self.zero();
                let masks: Parts = parts
                    .into_iter()
                    .map(|a| {
                        let equal = self.v3(V3::vpcmpeqq, a, zero);
                        self.not(equal)
                    })
                    .collect();
                self.fit(from, Some(Bool), masks)
            }
            (U64 | I64, U32 | I32) => self.fit(from, Some(U32), parts),
            (U32 | I32, U64 | I64) => {
                let op = if from == I32 { Widen::vpmovsxdq } else { Widen::vpmovzxdq };
                self.widen_parts(op, parts)
            }
            (I32, F32) => parts
                .into_iter()
                .map(|a| {
                    let d = self.new_v();
                    self.push(Inst::V2 { op: V2::vcvtdq2ps, d, a: a.into() });
                    d
                })
                .collect(),
            (U32, F32) => parts.into_iter().map(|a| self.u32_to_f32(a)).collect(),
            (U32 | I32, F64) => parts.into_iter().flat_map(|a| self.doubles_of(from == I32, a)).collect(),
            (F32, F64) => self.widen_parts(Widen::vcvtps2pd, parts),
            (F64, F32) => {
                let pairs: SmallVec<[(V, V); 4]> = parts.chunks(2).map(|pair| (pair[0], pair[1])).collect();
                pairs
                    .into_iter()
                    .map(|(low, high)| {
                        let [low, high] = [low, high].map(|a| {
                            let d = self.new_v();
                            self.push(Inst::Narrow { op: crate::machine::lir::Narrow::vcvtpd2ps, d, a });
                            d
                        });
                        let d = self.new_v();
                        self.push(Inst::Join { d, low, high });
                        self.float_result(F32, d)
                    })
                    .collect()
            }
            (F32, I32) => parts.into_iter().map(|a| self.f32_to_i32(a)).collect(),
            (F32, U32) => parts.into_iter().map(|a| self.f32_to_u32(a)).collect(),
            (F64, I32 | U32) => {
                let signed = to == I32;
                let pairs: SmallVec<[(V, V); 4]> = parts.chunks(2).map(|pair| (pair[0], pair[1])).collect();
                pairs
                    .into_iter()
                    .map(|(low, high)| {
                        let halves = [low, high].map(|a| {
                            let number = self.compare(F64, a, a, CMP_ORDERED);
                            let a = self.v3(V3::vpand, a, number);
                            let (least, most) = if signed { (-2147483648f64, 2147483647f64) } else { (0.0, 4294967295f64) };
                            let (least, most) = (self.constant(F64, least.to_bits()), self.constant(F64, most.to_bits()));
                            let a = self.v3(V3::vmaxpd, a, least);
                            self.v3(V3::vminpd, a, most)
                        });
                        self.ints_of(signed, halves)
                    })
                    .collect()
            }
            // What is left goes through 64-bit elements, one after the other.
            (U64 | I64, F32) => {
                let results: Parts = parts.into_iter().map(|a| self.call_cast(from, to, a)).collect();
                self.fit(from, Some(F32), results)
            }
            (U64 | I64, F64) | (F64, U64 | I64) => parts.into_iter().map(|a| self.call_cast(from, to, a)).collect(),
            (F32, U64 | I64) => {
                let wide = self.widen_parts(Widen::vpmovzxdq, parts);
                wide.into_iter().map(|a| self.call_cast(from, to, a)).collect()
            }
            (F32, Bool) => parts.into_iter().map(|a| self.is_not_zero(F32, a)).collect(),
            (F64, Bool) => {
                let masks: Parts = parts.into_iter().map(|a| self.is_not_zero(F64, a)).collect();
                self.fit(F64, Some(Bool), masks)
            }
        }
    }

    fn is_not_zero(&mut self, ty: Scalar, a: V) -> V {
        let zero = self.zero();
        self.compare(ty, a, zero, CMP_NE)
    }

    fn call_cast(&mut self, from: Scalar, to: Scalar, a: V) -> V {
        let argument = helpers::cast_argument(from, to, self.mode);
        self.call_lanes(argument, a, None, false, true)
    }

    fn widen_parts(&mut self, op: Widen, parts: Parts) -> Parts {
        parts
            .into_iter()
            .flat_map(|a| {
                let (low, upper, high) = (self.new_v(), self.new_v(), self.new_v());
                self.push(Inst::Widen { op, d: low, a: a.into() });
                self.push(Inst::High { d: upper, a });
                self.push(Inst::Widen { op, d: high, a: upper.into() });
                [low, high]
            })
            .collect()
    }

    /// Both halves are exact, and their sum is rounded once.
    fn u32_to_f32(&mut self, a: V) -> V {
        let low_bits = self.constant32(0xFFFF);
        let low = self.v3(V3::vpand, a, low_bits);
        let high = self.shift_imm(Shift::vpsrld, a, 16);
        let [low, high] = [low, high].map(|a| {
            let d = self.new_v();
            self.push(Inst::V2 { op: V2::vcvtdq2ps, d, a: a.into() });
            d
        });
        let times = self.constant(Scalar::F32, 65536f32.to_bits().into());
        let high = self.v3(V3::vmulps, high, times);
        self.v3(V3::vaddps, high, low)
    }

    fn f32_to_i32(&mut self, a: V) -> V {
        let d = self.new_v();
        self.push(Inst::V2 { op: V2::vcvttps2dq, d, a: a.into() });
        // What does not fit is MIN; above it has to be MAX, and a NaN 0.
        let limit = self.constant(Scalar::F32, 2147483648f32.to_bits().into());
        let above = self.compare(Scalar::F32, a, limit, CMP_GE);
        let held = self.v3(V3::vpxor, d, above);
        let number = self.compare(Scalar::F32, a, a, CMP_ORDERED);
        self.v3(V3::vpand, held, number)
    }

    fn f32_to_u32(&mut self, a: V) -> V {
        let zero = self.zero();
        // The second operand where one is a NaN.
        let a = self.v3(V3::vmaxps, a, zero);
        let half = self.constant(Scalar::F32, 2147483648f32.to_bits().into());
        let large = self.compare(Scalar::F32, a, half, CMP_GE);
        let less = self.v3(V3::vpand, large, half);
        let rest = self.v3(V3::vsubps, a, less);
        let d = self.new_v();
        self.push(Inst::V2 { op: V2::vcvttps2dq, d, a: rest.into() });
        let top = self.constant32(1 << 31);
        let top = self.v3(V3::vpand, large, top);
        let sum = self.v3(V3::vpxor, d, top);
        let all = self.constant(Scalar::F32, 4294967296f32.to_bits().into());
        let above = self.compare(Scalar::F32, a, all, CMP_GE);
        self.v3(V3::vpor, sum, above)
    }
}

fn is_amount(op: BinaryOp) -> bool {
    matches!(op, BinaryOp::Shl | BinaryOp::Shr | BinaryOp::Rotl | BinaryOp::Rotr)
}
