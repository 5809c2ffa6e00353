//! Integers and bools in vectors.

use crate::compile::helpers;
use crate::compile::lower::{Lower, is_wide};
use crate::machine::lir::{Inst, LoadKind, Shift, Src, V2, V3, V3I};
use crate::machine::reg::V;
use vyre_foundation::ir::{BinaryOp, UnaryOp};
use vyre_spec::Scalar;

impl Lower<'_> {
    pub(super) fn unary_int(&mut self, op: UnaryOp, ty: Scalar, a: V) -> V {
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
            // The bits below the lowest one are ones in what is one less.
            UnaryOp::Ctz => {
                let zero = self.zero();
                let minus = self.v3(V3::vpsubq, zero, a);
                let lowest = self.v3(V3::vpand, a, minus);
                let ones = self.constant64(u64::MAX);
                let below = self.v3(V3::vpaddq, lowest, ones);
                self.unary_int(UnaryOp::Popcount, ty, below)
            }
            // The highest one fills up everything below it.
            UnaryOp::Clz => {
                let mut filled = a;
                for by in [1, 2, 4, 8, 16, 32] {
                    let shifted = self.shift_imm(Shift::vpsrlq, filled, by);
                    filled = self.v3(V3::vpor, filled, shifted);
                }
                let above = self.not(filled);
                self.unary_int(UnaryOp::Popcount, ty, above)
            }
            UnaryOp::Sign
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
    pub(super) fn exponent_of_int(&mut self, a: V) -> V {
        let float = self.new_v();
        self.push(Inst::V2 { op: V2::vcvtdq2ps, d: float, a: a.into() });
        let shifted = self.shift_imm(Shift::vpsrld, float, 23);
        let exponent = self.constant32(255);
        self.v3(V3::vpand, shifted, exponent)
    }

    pub(super) fn swap_bytes(&mut self, wide: bool, a: V) -> V {
        let order: [u32; 8] = if wide {
            [0x0405_0607, 0x0001_0203, 0x0C0D_0E0F, 0x0809_0A0B, 0x0405_0607, 0x0001_0203, 0x0C0D_0E0F, 0x0809_0A0B]
        } else {
            [0x0001_0203, 0x0405_0607, 0x0809_0A0B, 0x0C0D_0E0F, 0x0001_0203, 0x0405_0607, 0x0809_0A0B, 0x0C0D_0E0F]
        };
        let order = self.pool.place(order);
        self.v3(V3::vpshufb, a, Src::Mem(order))
    }

    /// A byte of a table for the low or the high nibble of every byte.
    pub(super) fn look_up_nibbles(&mut self, a: V, high: bool, table: [u8; 16]) -> V {
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

    pub(super) fn shift_by_literal(&mut self, op: BinaryOp, ty: Scalar, a: V, by: u32) -> V {
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

    pub(super) fn binary_bool(&mut self, op: BinaryOp, a: V, b: Src) -> V {
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
    pub(super) fn at_least_32(&mut self, a: V, b: Src) -> V {
        let larger = self.v3(V3::vpmaxud, a, b);
        self.v3(V3::vpcmpeqd, larger, a)
    }

    /// a ≤ b, unsigned.
    pub(super) fn at_most_32(&mut self, a: V, b: Src) -> V {
        let smaller = self.v3(V3::vpminud, a, b);
        self.v3(V3::vpcmpeqd, smaller, a)
    }

    pub(super) fn binary_32(&mut self, op: BinaryOp, ty: Scalar, a: V, b: Src) -> V {
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

    pub(super) fn amount(&mut self, b: Src, most: u32) -> V {
        let b = self.in_reg(b);
        let most = self.constant32(most);
        self.v3(V3::vpand, b, most)
    }

    /// a > b.
    pub(super) fn greater_64(&mut self, signed: bool, a: V, b: V) -> V {
        if signed {
            return self.v3(V3::vpcmpgtq, a, b);
        }
        let top = self.constant64(1 << 63);
        let (a, b) = (self.v3(V3::vpxor, a, top), self.v3(V3::vpxor, b, top));
        self.v3(V3::vpcmpgtq, a, b)
    }

    pub(super) fn binary_64(&mut self, op: BinaryOp, ty: Scalar, a: V, b: Src) -> V {
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
            BinaryOp::Mulhi => {
                let b = self.in_reg(b);
                self.mulhi_64(signed, a, b)
            }
            BinaryOp::SatAdd if !signed => {
                let sum = self.v3(V3::vpaddq, a, b);
                // What wrapped is less than it was.
                let wrapped = self.greater_64(false, a, sum);
                self.v3(V3::vpor, sum, wrapped)
            }
            BinaryOp::SatSub if !signed => {
                let b = self.in_reg(b);
                let difference = self.v3(V3::vpsubq, a, b);
                let wrapped = self.greater_64(false, b, a);
                self.v3(V3::vpandn, wrapped, difference)
            }
            BinaryOp::Div | BinaryOp::Rem => {
                let b = self.in_reg(b);
                self.call(helpers::divide, helpers::divide_argument(op, ty), a, Some(b))
            }
            BinaryOp::SatAdd | BinaryOp::SatSub | BinaryOp::Copysign | BinaryOp::Pow | BinaryOp::And | BinaryOp::Or => {
                self.call_binary(op, ty, a, b)
            }
        }
    }

    /// The high halves of products of 64-bit elements, from those of their words.
    fn mulhi_64(&mut self, signed: bool, a: V, b: V) -> V {
        let [a_high, b_high] = [a, b].map(|v| self.shift_imm(Shift::vpsrlq, v, 32));
        let low = self.v3(V3::vpmuludq, a, b);
        let (one, other) = (self.v3(V3::vpmuludq, a, b_high), self.v3(V3::vpmuludq, a_high, b));
        let high = self.v3(V3::vpmuludq, a_high, b_high);
        // No sum here has more than 64 bits: a product of words leaves room for two more words.
        let carried = self.shift_imm(Shift::vpsrlq, low, 32);
        let middle = self.v3(V3::vpaddq, one, carried);
        let word = self.constant64(0xFFFF_FFFF);
        let lower = self.v3(V3::vpand, middle, word);
        let rest = self.v3(V3::vpaddq, other, lower);
        let [middle, rest] = [middle, rest].map(|v| self.shift_imm(Shift::vpsrlq, v, 32));
        let high = self.v3(V3::vpaddq, high, middle);
        let high = self.v3(V3::vpaddq, high, rest);
        if !signed {
            return high;
        }
        // Of a negative factor 2⁶⁴ times the other one is too much.
        let zero = self.zero();
        let [of_a, of_b] = [(a, b), (b, a)].map(|(sign, other)| {
            let negative = self.v3(V3::vpcmpgtq, zero, sign);
            self.v3(V3::vpand, negative, other)
        });
        let high = self.v3(V3::vpsubq, high, of_a);
        self.v3(V3::vpsubq, high, of_b)
    }
}
