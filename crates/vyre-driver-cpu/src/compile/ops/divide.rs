//! Division of 32-bit integers: by numbers that are known, by multiplication; by others, by doubles.

use super::floats::ROUND_TO_ZERO;
use crate::compile::lower::Lower;
use crate::machine::lir::{Inst, Narrow, Shift, Src, V3, V3I, Widen};
use crate::machine::reg::V;
use vyre_foundation::ir::{BinaryOp, UnaryOp};
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

    /// Division of all elements by the same number, which is not zero.
    pub(super) fn divide_by_literal(&mut self, op: BinaryOp, signed: bool, a: V, by: u32) -> V {
        let negative = signed && by.cast_signed() < 0;
        let size = if negative { by.wrapping_neg() } else { by };
        let quotient = if signed {
            // That of the magnitudes, with the sign: MIN has one, too.
            let magnitude = self.unary_int(UnaryOp::Abs, Scalar::I32, a);
            let quotient = self.quotient_by_literal(magnitude, size);
            let sign = self.shift_imm(Shift::vpsrad, a, 31);
            let sign = if negative { self.not(sign) } else { sign };
            let turned = self.v3(V3::vpxor, quotient, sign);
            self.v3(V3::vpsubd, turned, sign)
        } else {
            self.quotient_by_literal(a, size)
        };
        if op == BinaryOp::Div {
            return quotient;
        }
        let product = if size.is_power_of_two() && !negative {
            self.shift_imm(Shift::vpslld, quotient, size.trailing_zeros() as u8)
        } else {
            let by = self.constant32(by);
            self.v3(V3::vpmulld, quotient, by)
        };
        self.v3(V3::vpsubd, a, product)
    }

    /// The quotient of unsigned elements.
    fn quotient_by_literal(&mut self, a: V, by: u32) -> V {
        match Inverse::of(by) {
            Inverse::Shift(0) => a,
            Inverse::Shift(right) => self.shift_imm(Shift::vpsrld, a, right),
            Inverse::Times { factor, right } => {
                let high = self.high_of_product(a, factor);
                if right == 0 { high } else { self.shift_imm(Shift::vpsrld, high, right) }
            }
            Inverse::TimesAndOnce { factor, right } => {
                // The sum of both may have 33 bits.
                let high = self.high_of_product(a, factor);
                let rest = self.v3(V3::vpsubd, a, high);
                let half = self.shift_imm(Shift::vpsrld, rest, 1);
                let sum = self.v3(V3::vpaddd, half, high);
                if right == 1 { sum } else { self.shift_imm(Shift::vpsrld, sum, right - 1) }
            }
        }
    }

    /// The high halves of the products of unsigned elements with a number.
    fn high_of_product(&mut self, a: V, factor: u32) -> V {
        let factor = self.constant64(u64::from(factor));
        let even = self.v3(V3::vpmuludq, a, factor);
        let odd = self.shift_imm(Shift::vpsrlq, a, 32);
        let odd = self.v3(V3::vpmuludq, odd, factor);
        let even = self.shift_imm(Shift::vpsrlq, even, 32);
        let d = self.new_v();
        self.push(Inst::V3I { op: V3I::vpblendd, d, a: even, b: odd.into(), imm: 0xAA });
        d
    }
}

/// How a quotient by a number is found, of all unsigned numbers of 32 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Inverse {
    /// Shifted to the right.
    Shift(u8),
    /// The high half of the product, shifted to the right.
    Times { factor: u32, right: u8 },
    /// The same, with a factor that has a 33rd bit.
    TimesAndOnce { factor: u32, right: u8 },
}

impl Inverse {
    /// By a number that is not zero.
    ///
    /// With a factor of 2³²⁺ʳ ÷ d, rounded up, n × factor is too large by n × e ÷ d, where e is what d × factor is above 2³²⁺ʳ. As long as e is
    /// at most 2ʳ that is less than 2³²⁺ʳ ÷ d, and not enough to get to the next quotient. With 2ʳ ≥ d that is always so, since e < d.
    pub fn of(d: u32) -> Inverse {
        if d.is_power_of_two() {
            return Inverse::Shift(d.trailing_zeros() as u8);
        }
        let enough = u32::BITS - d.leading_zeros();
        for right in 0..=enough {
            let power = 1u128 << (32 + right);
            let factor = power.div_ceil(u128::from(d));
            let above = factor * u128::from(d) - power;
            if let (Ok(factor), true) = (u32::try_from(factor), above <= 1 << right) {
                return Inverse::Times { factor, right: right as u8 };
            }
        }
        let factor = (1u128 << (32 + enough)).div_ceil(u128::from(d));
        Inverse::TimesAndOnce { factor: factor as u32, right: enough as u8 }
    }
}

#[cfg(test)]
mod tests {
    use super::Inverse;

    fn quotient(n: u32, inverse: Inverse) -> u32 {
        let high = |factor: u32| ((u64::from(n) * u64::from(factor)) >> 32) as u32;
        match inverse {
            Inverse::Shift(right) => n >> right,
            Inverse::Times { factor, right } => high(factor) >> right,
            Inverse::TimesAndOnce { factor, right } => ((n - high(factor)) / 2 + high(factor)) >> (right - 1),
        }
    }

    #[test]
    fn quotients_by_multiplication_are_those_of_division() {
        let edges =
            |d: u32| (0..40).flat_map(move |bit| [d.rotate_left(bit), d.wrapping_mul(bit), !d >> (bit % 32), u32::MAX - bit]);
        let divisors =
            (1..3000).chain((0..32).flat_map(|bit| [1 << bit, (1 << bit) + 1, u32::MAX >> bit, u32::MAX - (1 << bit)]));
        let mut kinds = [false; 3];
        for d in divisors {
            let inverse = Inverse::of(d);
            kinds[match inverse {
                Inverse::Shift(_) => 0,
                Inverse::Times { .. } => 1,
                Inverse::TimesAndOnce { .. } => 2,
            }] = true;
            // Right before a quotient and at it, where rounding shows first, for the largest quotients too.
            let near = (0..50).map(|q| u32::MAX / d - q.min(u32::MAX / d)).chain(0..50).flat_map(|q| {
                let at = d.saturating_mul(q);
                [at, at.saturating_sub(1), at.saturating_add(1)]
            });
            for n in near.chain(edges(d)) {
                assert_eq!(quotient(n, inverse), n / d, "{n} / {d} by {inverse:?}");
            }
        }
        assert_eq!(kinds, [true; 3]);
    }
}
