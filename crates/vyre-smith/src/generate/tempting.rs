//! Expressions that look simpler than they are: a value that occurs twice, literals that could be folded into one, an op and its
//! opposite. Compilers rewrite them as if numbers had no end, floats no NaN and shifts no width.

use super::Generator;
use crate::values;
use vyre_foundation::ir::{BinaryOp, Expr, Literal, Scalar, TernaryOp, UnaryOp};
use vyre_spec::Operand;

const COMPARISONS: [BinaryOp; 6] = [BinaryOp::Lt, BinaryOp::Le, BinaryOp::Gt, BinaryOp::Ge, BinaryOp::Eq, BinaryOp::Ne];
const SHIFTS: [BinaryOp; 4] = [BinaryOp::Shl, BinaryOp::Shr, BinaryOp::Rotl, BinaryOp::Rotr];
const BOUNDS: [BinaryOp; 2] = [BinaryOp::Min, BinaryOp::Max];

impl Generator<'_> {
    /// Such an expression, unless the program goes without its ops.
    pub(super) fn tempting(&mut self, ty: Scalar, depth: u32, uniform: bool) -> Option<Expr> {
        if ty == Scalar::Bool {
            let numbers = [Scalar::U32, Scalar::I32, Scalar::U64, Scalar::I64, Scalar::F32, Scalar::F64];
            let over = self.dna.pick(&numbers);
            if !self.config.has(over) {
                return None;
            }
            let x = self.tempted(over, depth, uniform);
            return match self.dna.below(4) {
                0 | 1 => self.changed_compared(over, x),
                2 => self.difference_compared(over, x, uniform),
                _ => self.between(over, x),
            };
        }
        if !ty.is_float() && self.dna.chance(20) {
            return self.divided_at_the_top(ty, uniform);
        }
        if matches!(ty, Scalar::I32 | Scalar::I64) && self.dna.chance(10) {
            return self.absolute(ty, uniform);
        }
        let x = self.tempted(ty, depth, uniform);
        match self.dna.below(8) {
            0 | 1 => self.bounded(ty, x),
            2 if !ty.is_float() => self.shifted_twice(ty, x),
            2..=4 => self.twice(ty, x),
            5 => self.chosen(ty, x, uniform),
            6 => self.converted_back(ty, x),
            _ => self.undone(ty, x, uniform),
        }
    }

    /// What such an expression is about; of integers often one near an end of its type.
    fn tempted(&mut self, ty: Scalar, depth: u32, uniform: bool) -> Expr {
        if !ty.is_float() && self.dna.chance(25) {
            let few = Expr::bitand(self.leaf(ty, 0, uniform), Expr::Lit(Literal::from_bits(ty, 3)));
            return Expr::bitxor(few, Expr::Lit(values::extreme(&mut self.dna, ty)));
        }
        self.expr(ty, depth.min(1), uniform)
    }

    /// An op of two operands of this type, if the program has it.
    fn op(&self, op: BinaryOp, over: Scalar, left: Expr, right: Expr) -> Option<Expr> {
        let info = op.info();
        let fits = info.over.contains(over) && info.operands[1] == Operand::T && self.allows(over, info);
        fits.then(|| Expr::binary(op, left, right))
    }

    /// Mostly small, now and then an end of the type's range.
    fn small_literal(&mut self, ty: Scalar) -> Literal {
        match self.dna.below(8) {
            0..=4 if ty == Scalar::F32 => Literal::from_bits(ty, u64::from((1.0 + self.dna.below(8) as f32 / 2.0).to_bits())),
            0..=4 if ty == Scalar::F64 => Literal::from_bits(ty, (1.0 + f64::from(self.dna.below(8)) / 2.0).to_bits()),
            0..=4 => Literal::from_bits(ty, u64::from(1 + self.dna.below(9))),
            5 | 6 => values::extreme(&mut self.dna, ty),
            _ => values::literal(&mut self.dna, ty),
        }
    }

    fn either_way(&mut self, left: Expr, right: Expr) -> [Expr; 2] {
        if self.dna.chance(30) { [right, left] } else { [left, right] }
    }

    /// `x + 1 > x`: true of numbers, not of machine integers, nor of NaN.
    fn changed_compared(&mut self, over: Scalar, x: Expr) -> Option<Expr> {
        let op = self.dna.pick(&[BinaryOp::Add, BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul, BinaryOp::Div]);
        let by = Expr::Lit(self.small_literal(over));
        let [left, right] = self.either_way(x.clone(), by);
        let changed = self.op(op, over, left, right)?;
        let [left, right] = self.either_way(changed, x);
        let comparison = self.dna.pick(&COMPARISONS);
        self.op(comparison, over, left, right)
    }

    /// `x - y < 0`: not `x < y` where the difference wraps, rounds or is NaN.
    fn difference_compared(&mut self, over: Scalar, x: Expr, uniform: bool) -> Option<Expr> {
        let y = if self.dna.chance(50) { Expr::Lit(self.small_literal(over)) } else { self.leaf(over, 0, uniform) };
        let op = self.dna.pick(&[BinaryOp::Sub, BinaryOp::Sub, BinaryOp::Add, BinaryOp::BitXor, BinaryOp::BitAnd, BinaryOp::Mul]);
        let difference = self.op(op, over, x, y)?;
        let limit = if self.dna.chance(50) { Literal::from_bits(over, 0) } else { self.small_literal(over) };
        let comparison = self.dna.pick(&COMPARISONS);
        self.op(comparison, over, difference, Expr::Lit(limit))
    }

    /// Two comparisons of one value with literals, or one that is negated.
    fn between(&mut self, over: Scalar, x: Expr) -> Option<Expr> {
        let [first, second] = [(); 2].map(|()| self.dna.pick(&COMPARISONS));
        let low = Expr::Lit(self.small_literal(over));
        let first = self.op(first, over, x.clone(), low)?;
        if self.dna.chance(30) {
            return Some(Expr::not(first));
        }
        let high = Expr::Lit(self.small_literal(over));
        let second = self.op(second, over, x, high)?;
        let both = self.dna.pick(&[BinaryOp::And, BinaryOp::Or]);
        self.op(both, Scalar::Bool, first, second)
    }

    /// `max(min(x, high), low)`, of two or three bounds: what NaN becomes depends on which is outermost, and a low bound may be above
    /// the high one.
    fn bounded(&mut self, ty: Scalar, x: Expr) -> Option<Expr> {
        let mut value = x;
        let mut op = self.dna.pick(&BOUNDS);
        for _ in 0..2 + self.dna.below(5) / 4 {
            let bound = if self.dna.chance(40) { values::extreme(&mut self.dna, ty) } else { self.small_literal(ty) };
            let [left, right] = self.either_way(value, Expr::Lit(bound));
            value = self.op(op, ty, left, right)?;
            let other = if op == BinaryOp::Min { BinaryOp::Max } else { BinaryOp::Min };
            op = if self.dna.chance(75) { other } else { op };
        }
        Some(value)
    }

    /// `x << a << b`, by literals whose sum is about the width.
    fn shifted_twice(&mut self, ty: Scalar, x: Expr) -> Option<Expr> {
        let [first, second] = [(); 2].map(|()| self.dna.pick(&SHIFTS));
        let second = if self.dna.chance(60) { first } else { second };
        if !self.allows(ty, first.info()) || !self.allows(ty, second.info()) {
            return None;
        }
        let by = self.dna.below(ty.bits() + 2);
        let then = match self.dna.below(4) {
            0 => by,
            1 => self.dna.below(ty.bits()),
            _ => (ty.bits() + self.dna.below(4)).saturating_sub(by + 1),
        };
        Some(Expr::binary(second, Expr::binary(first, x, Expr::u32(by)), Expr::u32(then)))
    }

    /// Two ops of one family with literals, which could be one if nothing wrapped and nothing were rounded.
    fn twice(&mut self, ty: Scalar, x: Expr) -> Option<Expr> {
        let families: &[&[BinaryOp]] = if ty.is_float() {
            &[&[BinaryOp::Add, BinaryOp::Sub], &[BinaryOp::Mul, BinaryOp::Div], &[BinaryOp::Add, BinaryOp::Mul]]
        } else {
            &[
                &[BinaryOp::Add, BinaryOp::Sub],
                &[BinaryOp::Mul, BinaryOp::Div],
                &[BinaryOp::Div, BinaryOp::Rem],
                &[BinaryOp::Add, BinaryOp::Mul],
                &[BinaryOp::BitAnd, BinaryOp::BitOr, BinaryOp::BitXor],
                &[BinaryOp::SatAdd, BinaryOp::SatSub],
                &[BinaryOp::Add, BinaryOp::Div],
            ]
        };
        let family = self.dna.pick(families);
        let [first, second] = [(); 2].map(|()| self.dna.pick(family));
        let by = self.small_literal(ty);
        let then = if self.dna.chance(50) { by } else { self.small_literal(ty) };
        let [left, right] = self.either_way(x, Expr::Lit(by));
        let inner = self.op(first, ty, left, right)?;
        let [left, right] = if self.dna.chance(15) { [Expr::Lit(then), inner] } else { [inner, Expr::Lit(then)] };
        self.op(second, ty, left, right)
    }

    /// `x / d` and `x % d` where `x` is next to the last multiple of `d`, at which quotients by multiplication go wrong.
    fn divided_at_the_top(&mut self, ty: Scalar, uniform: bool) -> Option<Expr> {
        let op = self.dna.pick(&[BinaryOp::Div, BinaryOp::Rem]);
        let bits = ty.bits();
        let all = u64::MAX >> (64 - bits);
        let by = match self.dna.below(4) {
            0 | 1 => u64::from(2 + self.dna.below(126)),
            2 => (1u64 << self.dna.below(bits)).wrapping_add(u64::from(self.dna.below(3))).wrapping_sub(1),
            _ => self.dna.bits() >> self.dna.below(bits),
        } & all;
        let signed = matches!(ty, Scalar::I32 | Scalar::I64);
        let largest = if signed { all >> 1 } else { all };
        let multiple = largest - if by == 0 { 0 } else { largest % by };
        let multiple =
            multiple - if self.dna.chance(30) { by.saturating_mul(u64::from(self.dna.below(5))).min(multiple) } else { 0 };
        let multiple = if signed && self.dna.chance(50) { multiple.wrapping_neg() } else { multiple };
        let near = multiple.wrapping_sub(u64::from(self.dna.below(3))) & all;
        let few = Expr::bitand(self.leaf(ty, 0, uniform), Expr::Lit(Literal::from_bits(ty, 3)));
        let x = Expr::add(few, Expr::Lit(Literal::from_bits(ty, near)));
        let by = if signed && self.dna.chance(25) { by.wrapping_neg() & all } else { by };
        self.op(op, ty, x, Expr::Lit(Literal::from_bits(ty, by)))
    }

    /// `abs(x) / c`, `abs(x) >> n`, `abs(x) * c`: an absolute value is not always at least 0.
    fn absolute(&mut self, ty: Scalar, uniform: bool) -> Option<Expr> {
        let few = Expr::bitand(self.leaf(ty, 0, uniform), Expr::Lit(Literal::from_bits(ty, 3)));
        let least = Expr::Lit(Literal::from_bits(ty, 1 << (ty.bits() - 1)));
        let x = if self.dna.chance(70) { Expr::add(few, least) } else { self.expr(ty, 1, uniform) };
        if !self.allows(ty, UnaryOp::Abs.info()) {
            return None;
        }
        let absolute = Expr::unary(UnaryOp::Abs, x);
        let op = self.dna.pick(&[
            BinaryOp::Div,
            BinaryOp::Div,
            BinaryOp::Rem,
            BinaryOp::Rem,
            BinaryOp::Shr,
            BinaryOp::Max,
            BinaryOp::Mulhi,
        ]);
        let by = self.small_literal(ty);
        if op == BinaryOp::Shr {
            let amount = 1 + self.dna.below(ty.bits() - 1);
            return self.allows(ty, op.info()).then(|| Expr::binary(op, absolute, Expr::u32(amount)));
        }
        self.op(op, ty, absolute, Expr::Lit(by))
    }

    /// `x < y ? x : y`: not a minimum of floats.
    fn chosen(&mut self, ty: Scalar, x: Expr, uniform: bool) -> Option<Expr> {
        let y = if self.dna.chance(50) { Expr::Lit(self.small_literal(ty)) } else { self.leaf(ty, 0, uniform) };
        let comparison = self.dna.pick(&COMPARISONS);
        let holds = self.op(comparison, ty, x.clone(), y.clone())?;
        let holds = if self.dna.chance(20) { Expr::not(holds) } else { holds };
        let neg = UnaryOp::Neg.info();
        let other = match self.dna.below(4) {
            0 => y,
            1 if neg.over.contains(ty) && self.allows(ty, neg) => Expr::unary(UnaryOp::Neg, x.clone()),
            // Of unsigned numbers there is no negative.
            1 => Expr::Lit(Literal::from_bits(ty, 1)),
            2 => Expr::Lit(Literal::from_bits(ty, 0)),
            _ => Expr::sub(x.clone(), y),
        };
        let [first, second] = self.either_way(x, other);
        Some(Expr::ternary(TernaryOp::Select, holds, first, second))
    }

    /// Another type and back.
    fn converted_back(&mut self, ty: Scalar, x: Expr) -> Option<Expr> {
        let other = self.dna.pick(&[Scalar::U32, Scalar::I32, Scalar::U64, Scalar::I64, Scalar::F32, Scalar::F64]);
        if !self.config.has(other) || other == ty {
            return None;
        }
        let there = Expr::cast(other, x);
        if self.dna.chance(30) {
            let by = Expr::Lit(self.small_literal(other));
            return Some(Expr::cast(ty, self.op(BinaryOp::Add, other, there, by)?));
        }
        Some(Expr::cast(ty, there))
    }

    /// An op and its opposite with the same operand, or one on the same value twice.
    fn undone(&mut self, ty: Scalar, x: Expr, uniform: bool) -> Option<Expr> {
        let y = if self.dna.chance(50) { Expr::Lit(self.small_literal(ty)) } else { self.leaf(ty, 0, uniform) };
        match self.dna.below(6) {
            0 => {
                let [first, second] = self.dna.pick(&[
                    [BinaryOp::Add, BinaryOp::Sub],
                    [BinaryOp::Sub, BinaryOp::Add],
                    [BinaryOp::Mul, BinaryOp::Div],
                    [BinaryOp::Div, BinaryOp::Mul],
                    [BinaryOp::BitXor, BinaryOp::BitXor],
                    [BinaryOp::SatAdd, BinaryOp::SatSub],
                ]);
                let inner = self.op(first, ty, x, y.clone())?;
                self.op(second, ty, inner, y)
            }
            1 => {
                let op =
                    self.dna.pick(&[BinaryOp::Sub, BinaryOp::Div, BinaryOp::Rem, BinaryOp::Add, BinaryOp::Min, BinaryOp::BitXor]);
                self.op(op, ty, x.clone(), x)
            }
            2 => {
                let quotient = self.op(BinaryOp::Div, ty, x.clone(), y.clone())?;
                let rest = self.op(BinaryOp::Rem, ty, x, y.clone())?;
                Some(Expr::add(Expr::mul(quotient, y), rest))
            }
            3 => {
                let z = Expr::Lit(self.small_literal(ty));
                let [one, other] = [self.op(BinaryOp::Mul, ty, x.clone(), y)?, self.op(BinaryOp::Mul, ty, x, z)?];
                let op = self.dna.pick(&[BinaryOp::Add, BinaryOp::Sub]);
                self.op(op, ty, one, other)
            }
            4 => {
                let ops = [UnaryOp::Neg, UnaryOp::Abs, UnaryOp::Not, UnaryOp::ReverseBits, UnaryOp::SwapBytes, UnaryOp::Sign];
                let mut value = x;
                for _ in 0..2 {
                    let op = self.dna.pick(&ops);
                    let info = op.info();
                    let keeps = info.over.contains(ty) && info.result_type(ty) == Some(ty) && self.allows(ty, info);
                    value = if keeps { Expr::unary(op, value) } else { value };
                }
                Some(value)
            }
            _ => {
                let zero = Expr::Lit(Literal::from_bits(ty, 0));
                let negative = self.op(BinaryOp::Sub, ty, zero, x)?;
                self.op(BinaryOp::Mul, ty, negative, y)
            }
        }
    }
}
