//! The words that the functions are written in: f64 arithmetic on eight lanes, and a few operations on the bits of floats.
//!
//! [`Doubles`] are the eight lanes of one f32 vector in f64, in two registers; each operation is two instructions. A plain [`V`] has eight
//! elements of 32 bits. Constants are operands in memory, from the pool.

use super::super::floats::{CMP_GT, CMP_NOT_LT};
use crate::compile::lower::Lower;
use crate::machine::lir::{Fma, Inst, Narrow, Shift, Src, V2, V2I, V3, V3I, Widen};
use crate::machine::reg::V;
use vyre_spec::Scalar;

/// Eight f64, or what has 64 bits: lanes 0 to 3 and 4 to 7.
#[derive(Clone, Copy)]
pub(super) struct Doubles([V; 2]);

/// An operand: computed, or the same number in every lane.
#[derive(Clone, Copy)]
pub(super) enum Arg {
    Lanes(Doubles),
    Number(f64),
    Bits(u64),
}

impl From<Doubles> for Arg {
    fn from(lanes: Doubles) -> Arg {
        Arg::Lanes(lanes)
    }
}

impl From<f64> for Arg {
    fn from(number: f64) -> Arg {
        Arg::Number(number)
    }
}

impl From<u64> for Arg {
    fn from(bits: u64) -> Arg {
        Arg::Bits(bits)
    }
}

/// Where entries of a [`Math::table`] are looked up.
#[derive(Clone, Copy)]
pub(super) struct Index(V);

/// Code that is being made.
pub(super) struct Math<'l, 'a>(pub &'l mut Lower<'a>);

impl Math<'_, '_> {
    /// An operand of both halves.
    fn sources(&mut self, arg: Arg) -> [Src; 2] {
        match arg {
            Arg::Lanes(Doubles(halves)) => halves.map(Src::Reg),
            Arg::Number(number) => [self.0.constant(Scalar::F64, number.to_bits()); 2],
            Arg::Bits(bits) => [self.0.constant64(bits); 2],
        }
    }

    /// An operand of both halves, in registers.
    fn registers(&mut self, arg: Arg) -> [V; 2] {
        match arg {
            Arg::Lanes(Doubles(halves)) => halves,
            Arg::Number(number) => [self.0.constant_v(Scalar::F64, number.to_bits()); 2],
            Arg::Bits(bits) => [self.0.constant_v(Scalar::U64, bits); 2],
        }
    }

    fn both(&mut self, op: V3, a: Arg, b: Arg) -> Doubles {
        let (a, b) = (self.registers(a), self.sources(b));
        Doubles([self.0.v3(op, a[0], b[0]), self.0.v3(op, a[1], b[1])])
    }

    /// a × b + c, rounded once.
    pub fn fma(&mut self, a: Doubles, b: impl Into<Arg>, c: impl Into<Arg>) -> Doubles {
        let (Doubles(a), b, c) = (a, self.registers(b.into()), self.sources(c.into()));
        Doubles([0, 1].map(|half| {
            let d = self.0.new_v();
            self.0.push(Inst::Fma { op: Fma::pd, d, a: a[half], b: b[half], c: c[half] });
            d
        }))
    }

    pub fn add(&mut self, a: Doubles, b: impl Into<Arg>) -> Doubles {
        self.both(V3::vaddpd, a.into(), b.into())
    }

    pub fn sub(&mut self, a: Doubles, b: impl Into<Arg>) -> Doubles {
        self.both(V3::vsubpd, a.into(), b.into())
    }

    pub fn sub_from(&mut self, a: f64, b: Doubles) -> Doubles {
        self.both(V3::vsubpd, a.into(), b.into())
    }

    pub fn mul(&mut self, a: Doubles, b: impl Into<Arg>) -> Doubles {
        self.both(V3::vmulpd, a.into(), b.into())
    }

    pub fn div(&mut self, a: impl Into<Arg>, b: Doubles) -> Doubles {
        self.both(V3::vdivpd, a.into(), b.into())
    }

    pub fn sqrt(&mut self, Doubles(a): Doubles) -> Doubles {
        Doubles(a.map(|a| {
            let d = self.0.new_v();
            self.0.push(Inst::V2 { op: V2::vsqrtpd, d, a: a.into() });
            d
        }))
    }

    /// c₀ + c₁ x + c₂ x² + …
    pub fn polynomial(&mut self, coefficients: &[f64], x: Doubles) -> Doubles {
        let (last, rest) = coefficients.split_last().expect("polynomials have coefficients");
        let (before, rest) = rest.split_last().expect("and more than one");
        let start = self.fma(x, *last, *before);
        rest.iter().rev().fold(start, |sum, coefficient| self.fma(sum, x, *coefficient))
    }

    // Bits of f64.

    pub fn and(&mut self, a: Doubles, b: impl Into<Arg>) -> Doubles {
        self.both(V3::vpand, a.into(), b.into())
    }

    pub fn xor(&mut self, a: Doubles, b: impl Into<Arg>) -> Doubles {
        self.both(V3::vpxor, a.into(), b.into())
    }

    /// The sum of bits as integers.
    pub fn add_bits(&mut self, a: Doubles, b: impl Into<Arg>) -> Doubles {
        self.both(V3::vpaddq, a.into(), b.into())
    }

    pub fn shift_left(&mut self, Doubles(a): Doubles, by: u8) -> Doubles {
        Doubles(a.map(|a| self.0.shift_imm(Shift::vpsllq, a, by)))
    }

    /// All ones where the lowest bit is one.
    pub fn is_odd(&mut self, a: Doubles) -> Doubles {
        let top = self.shift_left(a, 63);
        Doubles(top.0.map(|a| {
            // The sign of the upper word is that of the whole.
            let words = self.0.shift_imm(Shift::vpsrad, a, 31);
            let d = self.0.new_v();
            self.0.push(Inst::V2I { op: V2I::vpshufd, d, a: words.into(), imm: 0b1111_0101 });
            d
        }))
    }

    /// All ones where a > b.
    pub fn is_greater(&mut self, Doubles(a): Doubles, b: f64) -> Doubles {
        let b = self.0.constant(Scalar::F64, b.to_bits());
        Doubles(a.map(|a| self.0.compare(Scalar::F64, a, b, CMP_GT)))
    }

    /// All ones unless a < b: also where they do not compare.
    pub fn is_not_below(&mut self, Doubles(a): Doubles, b: f64) -> Doubles {
        let b = self.0.constant(Scalar::F64, b.to_bits());
        Doubles(a.map(|a| self.0.compare(Scalar::F64, a, b, CMP_NOT_LT)))
    }

    // From 32 to 64 bits and back.

    fn widened(&mut self, op: Widen, a: V) -> Doubles {
        let (low, upper, high) = (self.0.new_v(), self.0.new_v(), self.0.new_v());
        self.0.push(Inst::Widen { op, d: low, a: a.into() });
        self.0.push(Inst::High { d: upper, a });
        self.0.push(Inst::Widen { op, d: high, a: upper.into() });
        Doubles([low, high])
    }

    /// f32 as f64.
    pub fn widen(&mut self, a: V) -> Doubles {
        self.widened(Widen::vcvtps2pd, a)
    }

    /// Integers with a sign as f64.
    pub fn integers(&mut self, a: V) -> Doubles {
        self.widened(Widen::vcvtdq2pd, a)
    }

    /// Rounded to f32.
    pub fn narrow(&mut self, Doubles(a): Doubles) -> V {
        let [low, high] = a.map(|a| {
            let d = self.0.new_v();
            self.0.push(Inst::Narrow { op: Narrow::vcvtpd2ps, d, a });
            d
        });
        let d = self.0.new_v();
        self.0.push(Inst::Join { d, low, high });
        d
    }

    /// The lower 32 bits of each lane, in the order of [`Math::in_order`]'s operand.
    pub fn low_words(&mut self, Doubles([low, high]): Doubles) -> V {
        let d = self.0.new_v();
        self.0.push(Inst::V3I { op: V3I::vshufps, d, a: low, b: high.into(), imm: 0b1000_1000 });
        d
    }

    /// Lanes 0 1 4 5 2 3 6 7 in their order, and the other way round.
    pub fn in_order(&mut self, a: V) -> V {
        let d = self.0.new_v();
        self.0.push(Inst::V2I { op: V2I::vpermq, d, a: a.into(), imm: 0b1101_1000 });
        d
    }

    // Tables.

    /// The lowest three bits of each lane as an index.
    pub fn index(&mut self, bits: V) -> Index {
        Index(self.in_order(bits))
    }

    /// One of eight numbers: each half of their bits is looked up in a register, and put together.
    pub fn table(&mut self, Index(index): Index, numbers: &[f64; 8]) -> Doubles {
        let [low, high] = [0, 32].map(|by| {
            let words = numbers.map(|number| (number.to_bits() >> by) as u32);
            if words == [0; 8] {
                return self.0.zero();
            }
            let words = Src::Mem(self.0.pool.place(words));
            self.0.v3(V3::vpermd, index, words)
        });
        Doubles([V3::vpunpckldq, V3::vpunpckhdq].map(|op| self.0.v3(op, low, high)))
    }

    // Bits of f32.

    /// An operation on eight elements and the same number in every one.
    pub fn with_bits(&mut self, op: V3, a: V, bits: u32) -> V {
        let bits = self.0.constant32(bits);
        self.0.v3(op, a, bits)
    }

    pub fn shift_words(&mut self, op: Shift, a: V, by: u8) -> V {
        self.0.shift_imm(op, a, by)
    }

    /// What is closest to `a` between two numbers; a NaN stays one.
    pub fn clamp(&mut self, a: V, low: f32, high: f32) -> V {
        let above = self.at_least(a, low);
        self.at_most(above, high)
    }

    /// The larger of two; a NaN stays one, because of two operands that do not compare the machine takes the second.
    pub fn at_least(&mut self, a: V, low: f32) -> V {
        let low = self.0.constant_v(Scalar::F32, low.to_bits().into());
        self.0.v3(V3::vmaxps, low, a)
    }

    /// The smaller of two; a NaN stays one.
    pub fn at_most(&mut self, a: V, high: f32) -> V {
        let high = self.0.constant_v(Scalar::F32, high.to_bits().into());
        self.0.v3(V3::vminps, high, a)
    }

    pub fn magnitude(&mut self, a: V) -> V {
        self.with_bits(V3::vpand, a, 0x7FFF_FFFF)
    }

    /// `magnitude` with the sign of `a`.
    pub fn with_sign_of(&mut self, magnitude: V, a: V) -> V {
        let sign = self.with_bits(V3::vpand, a, 0x8000_0000);
        self.0.v3(V3::vpor, magnitude, sign)
    }

    /// Where one of two masks is.
    pub fn any(&mut self, one: V, other: V) -> V {
        self.0.v3(V3::vpor, one, other)
    }

    /// All ones where a > b, as f32; not for NaNs.
    pub fn is_above(&mut self, a: V, b: f32) -> V {
        let b = self.0.constant(Scalar::F32, b.to_bits().into());
        self.0.compare(Scalar::F32, a, b, CMP_GT)
    }

    /// All ones where the bits of `a` are not from `first` to `last`, as numbers without a sign.
    pub fn is_outside(&mut self, a: V, first: u32, last: u32) -> V {
        // The first becomes the smallest number with a sign.
        let by = (1u32 << 31).wrapping_sub(first);
        let moved = self.with_bits(V3::vpaddd, a, by);
        self.with_bits(V3::vpcmpgtd, moved, last.wrapping_add(by))
    }

    /// All ones where the bits of `a` are from `first` to `last`, as numbers without a sign; `last` is not the largest of all.
    pub fn is_inside(&mut self, a: V, first: u32, last: u32) -> V {
        let by = (1u32 << 31).wrapping_sub(first);
        let moved = self.with_bits(V3::vpaddd, a, by);
        let end = self.0.constant_v(Scalar::U32, last.wrapping_add(1).wrapping_add(by).into());
        self.0.v3(V3::vpcmpgtd, end, moved)
    }
}
