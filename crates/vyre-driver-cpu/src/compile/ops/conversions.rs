//! Conversions of vectors from one type to another.

use super::floats::{CMP_GE, CMP_NE, CMP_ORDERED};
use crate::compile::helpers;
use crate::compile::lower::{Lower, is_float};
use crate::compile::places::Parts;
use crate::machine::lir::{Inst, Shift, V2, V3, Widen};
use crate::machine::reg::V;
use smallvec::SmallVec;
use vyre_spec::Scalar;

impl Lower<'_> {
    pub(super) fn bitcast_v(&mut self, from: Scalar, to: Scalar, may_be_nan: bool, a: V) -> V {
        let a = if is_float(from) && !is_float(to) && may_be_nan { self.one_nan(from, a) } else { a };
        if is_float(to) && !is_float(from) { self.float_result(to, a) } else { a }
    }

    /// A conversion of all vectors of a value.
    pub(super) fn cast_parts(&mut self, from: Scalar, to: Scalar, parts: Parts) -> Parts {
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

    pub(super) fn is_not_zero(&mut self, ty: Scalar, a: V) -> V {
        let zero = self.zero();
        self.compare(ty, a, zero, CMP_NE)
    }

    pub(super) fn call_cast(&mut self, from: Scalar, to: Scalar, a: V) -> V {
        let argument = helpers::cast_argument(from, to, self.mode);
        self.call_lanes(argument, a, None, false, true)
    }

    pub(super) fn widen_parts(&mut self, op: Widen, parts: Parts) -> Parts {
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
    pub(super) fn u32_to_f32(&mut self, a: V) -> V {
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

    pub(super) fn f32_to_i32(&mut self, a: V) -> V {
        let d = self.new_v();
        self.push(Inst::V2 { op: V2::vcvttps2dq, d, a: a.into() });
        // What does not fit is MIN; above it has to be MAX, and a NaN 0.
        let limit = self.constant(Scalar::F32, 2147483648f32.to_bits().into());
        let above = self.compare(Scalar::F32, a, limit, CMP_GE);
        let held = self.v3(V3::vpxor, d, above);
        let number = self.compare(Scalar::F32, a, a, CMP_ORDERED);
        self.v3(V3::vpand, held, number)
    }

    pub(super) fn f32_to_u32(&mut self, a: V) -> V {
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
