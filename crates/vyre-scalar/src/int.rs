//! Integer ops, total and wrapping, generic over the four integer types.
//!
//! Ops that std already defines as the semantics table does (`wrapping_add`, `leading_zeros`, `saturating_sub`, ...) are methods
//! of [`Int`]; the functions are those where the table says more than std: what a zero divisor gives, and shift amounts taken
//! modulo the width.

use std::fmt::Debug;
use std::ops::{BitAnd, BitOr, BitXor, Not};

mod sealed {
    pub trait Sealed {}
}

/// `u32`, `i32`, `u64` and `i64`: what std offers on all of them, and their place in a `u64`.
pub trait Int:
    Copy
    + Ord
    + Debug
    + Not<Output = Self>
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + BitXor<Output = Self>
    + sealed::Sealed
    + 'static
{
    /// The unsigned type of the same width.
    type Unsigned: Int;
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;
    /// The smallest value.
    const MIN: Self;
    /// The largest value.
    const MAX: Self;
    /// Width in bits, a power of two.
    const BITS: u32;

    /// The value in the low bits of a scalar's representation.
    fn from_bits(bits: u64) -> Self;
    /// The representation: zero-extended, also when signed.
    fn to_bits(self) -> u64;

    /// The sum, wrapped.
    #[must_use]
    fn wrapping_add(self, other: Self) -> Self;
    /// The difference, wrapped.
    #[must_use]
    fn wrapping_sub(self, other: Self) -> Self;
    /// The product, wrapped.
    #[must_use]
    fn wrapping_mul(self, other: Self) -> Self;
    /// The negative, wrapped; for unsigned types the two's complement.
    #[must_use]
    fn wrapping_neg(self) -> Self;
    /// The magnitude; `MIN` stays `MIN`, unsigned values stay themselves.
    #[must_use]
    fn wrapping_abs(self) -> Self;
    /// The quotient towards zero, wrapped. Panics on a zero divisor; see [`div`].
    #[must_use]
    fn wrapping_div(self, other: Self) -> Self;
    /// The remainder of the quotient towards zero. Panics on a zero divisor; see [`rem`].
    #[must_use]
    fn wrapping_rem(self, other: Self) -> Self;
    /// The upper half of the double-width product, signed for signed types.
    #[must_use]
    fn mulhi(self, other: Self) -> Self;
    /// The distance, exact.
    #[must_use]
    fn abs_diff(self, other: Self) -> Self::Unsigned;
    /// The sum, held at the ends of the range.
    #[must_use]
    fn saturating_add(self, other: Self) -> Self;
    /// The difference, held at the ends of the range.
    #[must_use]
    fn saturating_sub(self, other: Self) -> Self;
    /// Shifted left by the amount modulo the width.
    #[must_use]
    fn wrapping_shl(self, amount: u32) -> Self;
    /// Shifted right by the amount modulo the width, arithmetically for signed types.
    #[must_use]
    fn wrapping_shr(self, amount: u32) -> Self;
    /// Rotated left by the amount modulo the width.
    #[must_use]
    fn rotate_left(self, amount: u32) -> Self;
    /// Rotated right by the amount modulo the width.
    #[must_use]
    fn rotate_right(self, amount: u32) -> Self;
    /// How many bits are one.
    fn count_ones(self) -> u32;
    /// Zero bits above the highest one; the width for 0.
    fn leading_zeros(self) -> u32;
    /// Zero bits below the lowest one; the width for 0.
    fn trailing_zeros(self) -> u32;
    /// The bits in the opposite order.
    #[must_use]
    fn reverse_bits(self) -> Self;
    /// The bytes in the opposite order.
    #[must_use]
    fn swap_bytes(self) -> Self;
}

/// `x / 0` is `x`; `MIN / -1` wraps to `MIN`.
#[inline]
#[must_use]
pub fn div<T: Int>(a: T, b: T) -> T {
    if b == T::ZERO { a } else { a.wrapping_div(b) }
}

/// `x % 0` is 0; `MIN % -1` is 0.
#[inline]
#[must_use]
pub fn rem<T: Int>(a: T, b: T) -> T {
    if b == T::ZERO { T::ZERO } else { a.wrapping_rem(b) }
}

/// The methods that are std's own, under std's names.
macro_rules! forward {
    ($($name:ident($($arg:ident: $type:ty),*) -> $result:ty;)*) => {$(
        #[inline]
        fn $name(self $(, $arg: $type)*) -> $result {
            self.$name($($arg),*)
        }
    )*};
}

macro_rules! int {
    ($type:ident, $unsigned:ident, $double:ident, abs: $abs:expr) => {
        impl sealed::Sealed for $type {}

        impl Int for $type {
            type Unsigned = $unsigned;
            const ZERO: Self = 0;
            const ONE: Self = 1;
            const MIN: Self = $type::MIN;
            const MAX: Self = $type::MAX;
            const BITS: u32 = $type::BITS;

            #[inline]
            fn from_bits(bits: u64) -> Self {
                bits as $type
            }
            #[inline]
            fn to_bits(self) -> u64 {
                self as $unsigned as u64
            }
            #[inline]
            fn wrapping_abs(self) -> Self {
                let abs: fn(Self) -> Self = $abs;
                abs(self)
            }
            #[inline]
            fn mulhi(self, other: Self) -> Self {
                ((self as $double * other as $double) >> $type::BITS) as $type
            }
            // The modulo costs nothing, and std does not promise what a larger amount does.
            #[inline]
            fn rotate_left(self, amount: u32) -> Self {
                self.rotate_left(amount % $type::BITS)
            }
            #[inline]
            fn rotate_right(self, amount: u32) -> Self {
                self.rotate_right(amount % $type::BITS)
            }
            forward! {
                wrapping_add(other: Self) -> Self;
                wrapping_sub(other: Self) -> Self;
                wrapping_mul(other: Self) -> Self;
                wrapping_neg() -> Self;
                wrapping_div(other: Self) -> Self;
                wrapping_rem(other: Self) -> Self;
                abs_diff(other: Self) -> Self::Unsigned;
                saturating_add(other: Self) -> Self;
                saturating_sub(other: Self) -> Self;
                wrapping_shl(amount: u32) -> Self;
                wrapping_shr(amount: u32) -> Self;
                count_ones() -> u32;
                leading_zeros() -> u32;
                trailing_zeros() -> u32;
                reverse_bits() -> Self;
                swap_bytes() -> Self;
            }
        }
    };
}

int!(u32, u32, u64, abs: |value| value);
int!(u64, u64, u128, abs: |value| value);
int!(i32, u32, i64, abs: i32::wrapping_abs);
int!(i64, u64, i128, abs: i64::wrapping_abs);

#[cfg(test)]
mod tests {
    use crate::samples::values;
    use crate::{binary, unary};
    use vyre_spec::{BinaryOp, FloatMode, Scalar, UnaryOp};

    const INTS: [Scalar; 4] = [Scalar::U32, Scalar::I32, Scalar::U64, Scalar::I64];

    fn wide(ty: Scalar, bits: u64) -> i128 {
        let value = i128::from(bits);
        if ty.is_signed_int() && bits >> (ty.bits() - 1) == 1 { value - (1 << ty.bits()) } else { value }
    }

    fn wrap(ty: Scalar, value: i128) -> u64 {
        value as u64 & (u64::MAX >> (64 - ty.bits()))
    }

    fn range(ty: Scalar) -> (i128, i128) {
        if ty.is_signed_int() { (-(1 << (ty.bits() - 1)), (1 << (ty.bits() - 1)) - 1) } else { (0, (1 << ty.bits()) - 1) }
    }

    fn check(ty: Scalar, expected: impl Fn(i128, i128) -> [(BinaryOp, u64); 20]) {
        for a in values(ty, FloatMode::Ieee) {
            for b in values(ty, FloatMode::Ieee) {
                for (op, expected) in expected(wide(ty, a), wide(ty, b)) {
                    assert_eq!(binary(op, ty, FloatMode::Ieee, a, b), expected, "{op} {ty} {a:#x} {b:#x}");
                }
            }
        }
    }

    #[test]
    fn two_operand_ops_agree_with_wide_arithmetic() {
        for ty in INTS {
            let (low, high) = range(ty);
            check(ty, |a, b| {
                // The product of two u64 has 128 bits and no room for a sign; its bits are right all the same.
                let product = (a as u128).wrapping_mul(b as u128);
                [
                    (BinaryOp::Add, wrap(ty, a + b)),
                    (BinaryOp::Sub, wrap(ty, a - b)),
                    (BinaryOp::Mul, wrap(ty, product as i128)),
                    (BinaryOp::Mulhi, wrap(ty, (product >> ty.bits()) as i128)),
                    (BinaryOp::Div, wrap(ty, if b == 0 { a } else { a / b })),
                    (BinaryOp::Rem, wrap(ty, if b == 0 { 0 } else { a % b })),
                    (BinaryOp::AbsDiff, wrap(ty, (a - b).abs())),
                    (BinaryOp::Min, wrap(ty, a.min(b))),
                    (BinaryOp::Max, wrap(ty, a.max(b))),
                    (BinaryOp::BitAnd, wrap(ty, a & b)),
                    (BinaryOp::BitOr, wrap(ty, a | b)),
                    (BinaryOp::BitXor, wrap(ty, a ^ b)),
                    (BinaryOp::SatAdd, wrap(ty, (a + b).clamp(low, high))),
                    (BinaryOp::SatSub, wrap(ty, (a - b).clamp(low, high))),
                    (BinaryOp::Eq, u64::from(a == b)),
                    (BinaryOp::Ne, u64::from(a != b)),
                    (BinaryOp::Lt, u64::from(a < b)),
                    (BinaryOp::Le, u64::from(a <= b)),
                    (BinaryOp::Gt, u64::from(a > b)),
                    (BinaryOp::Ge, u64::from(a >= b)),
                ]
            });
        }
    }

    #[test]
    fn division_by_zero_and_of_min_by_minus_one_is_total() {
        let min = u64::from(i32::MIN as u32);
        let minus_one = u64::from(u32::MAX);
        let divide =
            |ty, a, b| (binary(BinaryOp::Div, ty, FloatMode::Ieee, a, b), binary(BinaryOp::Rem, ty, FloatMode::Ieee, a, b));
        assert_eq!(divide(Scalar::I32, min, minus_one), (min, 0));
        assert_eq!(divide(Scalar::I64, 1 << 63, u64::MAX), (1 << 63, 0));
        for ty in INTS {
            assert_eq!(divide(ty, 41, 0), (41, 0));
        }
    }

    #[test]
    fn shifts_and_rotates_take_the_amount_modulo_the_width() {
        for ty in INTS {
            for a in values(ty, FloatMode::Ieee) {
                for amount in [0u64, 1, 5, 31, 32, 33, 63, 64, 65, 127, 0x8000_0001, 0xFFFF_FFFF] {
                    let by = amount % u64::from(ty.bits());
                    let apply = |op| binary(op, ty, FloatMode::Ieee, a, amount);
                    let value = wide(ty, a);
                    let twice = i128::from(a) << ty.bits() | i128::from(a);
                    assert_eq!(apply(BinaryOp::Shl), wrap(ty, value << by), "shl {ty} {a:#x} {amount}");
                    assert_eq!(apply(BinaryOp::Shr), wrap(ty, value >> by), "shr {ty} {a:#x} {amount}");
                    assert_eq!(apply(BinaryOp::Rotl), wrap(ty, ((twice as u128) << by >> ty.bits()) as i128), "rotl {ty} {a:#x}");
                    assert_eq!(apply(BinaryOp::Rotr), wrap(ty, ((twice as u128) >> by) as i128), "rotr {ty} {a:#x} {amount}");
                }
            }
        }
    }

    #[test]
    fn one_operand_ops_agree_with_wide_arithmetic_and_single_bits() {
        for ty in INTS {
            let width = ty.bits();
            for a in values(ty, FloatMode::Ieee) {
                let apply = |op| unary(op, ty, FloatMode::Ieee, a);
                let ones: Vec<u32> = (0..width).filter(|bit| a >> bit & 1 == 1).collect();
                assert_eq!(apply(UnaryOp::Neg), wrap(ty, -wide(ty, a)), "neg {ty} {a:#x}");
                assert_eq!(apply(UnaryOp::Abs), wrap(ty, wide(ty, a).abs()), "abs {ty} {a:#x}");
                assert_eq!(apply(UnaryOp::Not), wrap(ty, -1 - wide(ty, a)), "not {ty} {a:#x}");
                assert_eq!(apply(UnaryOp::Popcount), ones.len() as u64, "popcount {ty} {a:#x}");
                assert_eq!(apply(UnaryOp::Clz), ones.last().map_or(width, |bit| width - 1 - bit).into(), "clz {ty} {a:#x}");
                assert_eq!(apply(UnaryOp::Ctz), ones.first().map_or(width, |bit| *bit).into(), "ctz {ty} {a:#x}");
                let reversed = ones.iter().fold(0, |bits, bit| bits | 1 << (width - 1 - bit));
                assert_eq!(apply(UnaryOp::ReverseBits), reversed, "reverse_bits {ty} {a:#x}");
            }
        }
    }
}
