//! Ops: on general registers where they are uniform, on vectors where they are not.

mod conversions;
mod divide;
mod elementary;
mod floats;
mod general;
mod integers;

use crate::compile::helpers;
use crate::compile::helpers::area;
use crate::compile::lower::{Lower, is_float, is_wide, width_of};
use crate::compile::places::{Loc, Locs, Parts};
use crate::compile::shape::Shape;
use crate::machine::lir::{Fma, G2, GSrc, Helper, Inst, LoadKind, Mem, Shift, Src, StoreKind, V3, Widen, Width};
use crate::machine::reg::V;
use elementary::Wanted;
use smallvec::{SmallVec, smallvec};
use vyre_foundation::ir::{BinaryOp, TernaryOp, UnaryOp};
use vyre_foundation::ssa::{Op, Value};
use vyre_spec::{Law, Scalar};

impl Lower<'_> {
    pub fn op(&mut self, result: Value, op: &Op) {
        if let Some(piece) = self.facts.pieces.get(result) {
            return self.load_pieces(result, piece);
        }
        match *op {
            Op::Vector { components } => {
                let locs: Locs = components.iter().map(|component| self.loc(*component, 0)).collect();
                // All components the way the value is.
                let (ty, shape) = (self.ty(result), self.shape(result));
                let locs = locs.into_iter().map(|loc| self.generalize(ty, loc, shape)).collect();
                self.locs.set(result, locs);
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
                self.elementary(op, ty, a, Wanted::Uniform).unwrap_or_else(|| self.unary_v(op, ty, a))
            }
            Op::Binary { op, ty, left, right } => {
                let (a, b) = (operand(self, left), operand(self, right));
                let a = self.in_reg(a);
                let b = if is_wide(ty) && is_amount(op) { self.widen_amount(b)[0].into() } else { b };
                self.power(op, ty, a, b, Wanted::Uniform).unwrap_or_else(|| self.binary_v(op, ty, a, b))
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
                let results: Parts = (0..parts.len())
                    .map(|n| {
                        let wanted = self.wanted(ty, n);
                        self.elementary(op, ty, parts[n], wanted).unwrap_or_else(|| self.unary_v(op, ty, parts[n]))
                    })
                    .collect();
                self.fit(ty, op.info().result_type(ty), results)
            }
            Op::Binary { op, ty, left, right } => {
                // Only the second operand can be in memory, where literals are.
                let turned = op.info().law == Law::Commutes && self.ssa.literal(left).is_some();
                let (left, right) = if turned { (right, left) } else { (left, right) };
                let a = self.vectors(left, 0);
                let mut b = self.sources(right);
                if is_wide(ty) && is_amount(op) {
                    b = b.into_iter().flat_map(|b| self.widen_amount(b).map(Src::Reg)).collect();
                }
                if matches!(op, BinaryOp::Min | BinaryOp::Max) && is_float(ty) {
                    let may_be_nan = [left, right].map(|value| self.may_be_nan(value));
                    let literal = self.ssa.literal(right);
                    let each = |lower: &mut Self, a: V, b: Src| {
                        let known = literal.and_then(|bits| lower.min_max_literal(op, ty, a, bits));
                        known.unwrap_or_else(|| lower.min_max(op, ty, a, b, may_be_nan))
                    };
                    return a.into_iter().zip(b).map(|(a, b)| each(self, a, b)).collect();
                }
                // A literal shift is an instruction of its own.
                if let (Some(by), true) = (self.ssa.literal(right), is_amount(op)) {
                    let results: Parts = a.into_iter().map(|a| self.shift_by_literal(op, ty, a, by as u32)).collect();
                    return results;
                }
                if let (BinaryOp::Div | BinaryOp::Rem, Scalar::U32 | Scalar::I32, Some(by @ 1..)) =
                    (op, ty, self.ssa.literal(right))
                {
                    let signed = ty == Scalar::I32;
                    return a.into_iter().map(|a| self.divide_by_literal(op, signed, a, by as u32)).collect();
                }
                if let (BinaryOp::Div, Some(inverse)) = (op, self.exact_inverse(ty, right)) {
                    let b = self.constant(ty, inverse);
                    return a.into_iter().map(|a| self.binary_v(BinaryOp::Mul, ty, a, b)).collect();
                }
                if let (BinaryOp::Mul, Scalar::U32 | Scalar::I32 | Scalar::U64 | Scalar::I64, Some(by)) =
                    (op, ty, self.power_of_two(right))
                {
                    return a.into_iter().map(|a| self.shift_by_literal(BinaryOp::Shl, ty, a, u32::from(by))).collect();
                }
                // Above nothing is not nothing.
                let op =
                    if (op, ty, self.ssa.literal(right)) == (BinaryOp::Gt, Scalar::U32, Some(0)) { BinaryOp::Ne } else { op };
                // Numbers below 2³¹ are ordered the same with a sign.
                let small = |value: Value| self.facts.ranges.of_value(value).high < 1 << 31;
                let ordered = matches!(op, BinaryOp::Lt | BinaryOp::Gt | BinaryOp::Le | BinaryOp::Ge);
                let compared = if ty == Scalar::U32 && ordered && small(left) && small(right) { Scalar::I32 } else { ty };
                let results: Parts = (0..a.len())
                    .map(|n| {
                        let wanted = self.wanted(ty, n);
                        self.power(op, ty, a[n], b[n], wanted).unwrap_or_else(|| self.binary_v(op, compared, a[n], b[n]))
                    })
                    .collect();
                self.fit(ty, op.info().result_type(ty), results)
            }
            Op::Ternary { op, ty, operands: [first, second, third] } => {
                let first = self.vectors(first, 0);
                let first = if op == TernaryOp::Select { self.masks_for(ty, &first) } else { first };
                if let (TernaryOp::Select, Some(0)) = (op, self.ssa.literal(third)) {
                    let second = self.sources(second);
                    return first.into_iter().zip(second).map(|(mask, b)| self.v3(V3::vpand, mask, b)).collect();
                }
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

    /// Who needs the result of a function of a value's vector. Functions have no elements of 64 bits, of which there are two vectors to a mask.
    fn wanted(&self, ty: Scalar, vector: usize) -> Wanted {
        Wanted::Lanes(self.mask.as_ref().filter(|_| !is_wide(ty)).map(|mask| mask[vector]))
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

    /// The exponent of a literal that is a power of two.
    fn power_of_two(&self, value: Value) -> Option<u8> {
        self.ssa.literal(value).filter(|bits| bits.is_power_of_two()).map(|bits| bits.trailing_zeros() as u8)
    }

    /// The bits of one divided by a literal, if that is a power of two: multiplying by it is dividing by the literal.
    fn exact_inverse(&self, ty: Scalar, value: Value) -> Option<u64> {
        let bits = self.ssa.literal(value)?;
        let is_exact = |bits: u64, fraction: u32, largest: u64| {
            let exponent = bits >> fraction & largest;
            bits & ((1 << fraction) - 1) == 0 && (1..largest - 1).contains(&exponent)
        };
        match ty {
            Scalar::F32 => is_exact(bits, 23, 0xFF).then(|| u64::from((1.0 / f32::from_bits(bits as u32)).to_bits())),
            Scalar::F64 => is_exact(bits, 52, 0x7FF).then(|| (1.0 / f64::from_bits(bits)).to_bits()),
            Scalar::Bool | Scalar::U32 | Scalar::I32 | Scalar::U64 | Scalar::I64 => None,
        }
    }

    pub fn shift_imm(&mut self, op: Shift, a: V, imm: u8) -> V {
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

    pub fn binary_v(&mut self, op: BinaryOp, ty: Scalar, a: V, b: Src) -> V {
        match ty {
            Scalar::Bool => self.binary_bool(op, a, b),
            Scalar::U32 | Scalar::I32 => self.binary_32(op, ty, a, b),
            Scalar::U64 | Scalar::I64 => self.binary_64(op, ty, a, b),
            Scalar::F32 | Scalar::F64 => self.binary_float(op, ty, a, b),
        }
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

    fn call_unary(&mut self, op: UnaryOp, ty: Scalar, a: V) -> V {
        let argument = helpers::unary_argument(op, ty, self.mode);
        self.call_lanes(argument, a, None, op.info().result_type(ty) == Some(Scalar::Bool), is_wide(ty))
    }

    fn call_binary(&mut self, op: BinaryOp, ty: Scalar, a: V, b: Src) -> V {
        let b = self.in_reg(b);
        let argument = helpers::binary_argument(op, ty, self.mode);
        self.call_lanes(argument, a, Some(b), op.info().result_type(ty) == Some(Scalar::Bool), is_wide(ty))
    }

    /// Calls a function on the elements of one or two vectors.
    fn call(&mut self, helper: Helper, argument: u64, a: V, b: Option<V>) -> V {
        self.frame(area::BYTES);
        self.push(Inst::Store { kind: StoreKind::Full, to: Mem::frame(area::FIRST), v: a });
        if let Some(v) = b {
            self.push(Inst::Store { kind: StoreKind::Full, to: Mem::frame(area::SECOND), v });
        }
        self.push(Inst::Call { helper, argument });
        self.load(LoadKind::Full, Mem::frame(area::RESULT))
    }

    fn call_lanes(&mut self, argument: u64, a: V, b: Option<V>, is_bool: bool, wide: bool) -> V {
        let v = self.call(helpers::lanes, argument, a, b);
        if !is_bool {
            return v;
        }
        let zero = self.zero();
        self.v3(if wide { V3::vpsubq } else { V3::vpsubd }, zero, v)
    }
}

fn is_amount(op: BinaryOp) -> bool {
    matches!(op, BinaryOp::Shl | BinaryOp::Shr | BinaryOp::Rotl | BinaryOp::Rotr)
}
