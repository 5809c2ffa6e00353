//! The op on general registers, where its operands are uniform.

use super::divide::Inverse;
use crate::compile::lower::{Lower, is_float, width_of};
use crate::machine::lir::{Cond, G2, GShift, GSrc, Inst, Width};
use crate::machine::reg::G;
use vyre_foundation::ir::{BinaryOp, TernaryOp, UnaryOp};
use vyre_foundation::ssa::{Op, Value};
use vyre_spec::Scalar;

impl Lower<'_> {
    /// The op on general registers; `None` if it is not done there.
    pub(super) fn general(&mut self, op: &Op) -> Option<G> {
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
                    UnaryOp::Popcount => {
                        let (a, d) = (self.g(operand), self.new_g());
                        self.push(Inst::PopCount { width, d, a });
                        Some(d)
                    }
                    UnaryOp::Abs
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

    pub(super) fn general_binary(&mut self, op: BinaryOp, ty: Scalar, left: Value, right: Value) -> Option<G> {
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
            (BinaryOp::Div | BinaryOp::Rem, None) if ty == Scalar::U32 => self.divide_general(op, left, right),
            (_, None) => None,
        }
    }

    /// Division of an unsigned number by one that is known, where that is a product and a shift.
    fn divide_general(&mut self, op: BinaryOp, left: Value, right: Value) -> Option<G> {
        let by = self.ssa.literal(right).filter(|by| *by != 0)? as u32;
        let Inverse::Times { factor, right: by_bits } = Inverse::of(by) else { return None };
        let (a, factor, product, quotient) = (self.g(left), self.imm(u64::from(factor)), self.new_g(), self.new_g());
        self.push(Inst::GMul { width: Width::W64, d: product, a, b: factor.into() });
        self.push(Inst::GShift { op: GShift::Right, width: Width::W64, d: quotient, a: product, imm: 32 + by_bits });
        if op == BinaryOp::Div {
            return Some(quotient);
        }
        let taken = self.new_g();
        self.push(Inst::GMul { width: Width::W32, d: taken, a: quotient, b: GSrc::Imm(by as i32) });
        Some(self.g2(G2::sub, Width::W32, a, taken))
    }
}
