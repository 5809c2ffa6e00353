//! Division of 32-bit integers, by doubles.

use super::floats::ROUND_TO_ZERO;
use crate::compile::lower::Lower;
use crate::machine::lir::{Inst, Narrow, Src, V3, Widen};
use crate::machine::reg::V;
use vyre_foundation::ir::BinaryOp;
use vyre_spec::Scalar;

impl Lower<'_> {
    /// Halves of 32-bit integers as doubles, exactly.
    pub(super) fn doubles_of(&mut self, signed: bool, a: V) -> [V; 2] {
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
    pub(super) fn ints_of(&mut self, signed: bool, halves: [V; 2]) -> V {
        let [low, high] = halves.map(|half| {
            let half = if signed {
                half
            } else {
                let half = self.round(Scalar::F64, half, ROUND_TO_ZERO);
                let shift = self.constant(Scalar::F64, 2147483648f64.to_bits());
                self.v3(V3::vsubpd, half, shift)
            };
            let d = self.new_v();
            self.push(Inst::Narrow { op: Narrow::vcvttpd2dq, d, a: half });
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
    pub(super) fn divide_32(&mut self, op: BinaryOp, signed: bool, a: V, b: Src) -> V {
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
}
