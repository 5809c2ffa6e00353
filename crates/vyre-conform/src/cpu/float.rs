//! Floats: what is exact or rounded once.

use super::element::{F32, F64, Mode};
use super::{Meaning, elementary, exact};
use vyre_spec::{BinaryOp, TernaryOp, UnaryOp};

/// What the two float types have in common, on plain values. Operands are canonical; results become so when they are stored.
macro_rules! float_functions {
    ($t:ty, $bits:ty, $exponent_bits:literal, $mantissa_bits:literal) => {
        const SIGN: $bits = 1 << (<$bits>::BITS - 1);

        pub(super) fn neg(a: $t) -> $t {
            <$t>::from_bits(a.to_bits() ^ SIGN)
        }

        pub(super) fn abs(a: $t) -> $t {
            <$t>::from_bits(a.to_bits() & !SIGN)
        }

        pub(super) fn copysign(a: $t, sign: $t) -> $t {
            <$t>::from_bits((a.to_bits() & !SIGN) | (sign.to_bits() & SIGN))
        }

        pub(super) fn sign(a: $t) -> $t {
            if a > 0.0 {
                1.0
            } else if a < 0.0 {
                -1.0
            } else {
                a
            }
        }

        /// Cuts off the bits of the fraction.
        pub(super) fn trunc(a: $t) -> $t {
            let biased = ((a.to_bits() & !SIGN) >> $mantissa_bits) as i32;
            let exponent = biased - ((1 << ($exponent_bits - 1)) - 1);
            if exponent < 0 {
                <$t>::from_bits(a.to_bits() & SIGN)
            } else if exponent >= $mantissa_bits {
                a
            } else {
                let fraction: $bits = ((1 << $mantissa_bits) - 1) >> exponent;
                <$t>::from_bits(a.to_bits() & !fraction)
            }
        }

        pub(super) fn floor(a: $t) -> $t {
            let whole = trunc(a);
            if whole > a { whole - 1.0 } else { whole }
        }

        pub(super) fn ceil(a: $t) -> $t {
            let whole = trunc(a);
            if whole < a { whole + 1.0 } else { whole }
        }

        /// Adds so much that the sum has no bits for a fraction, which rounds it to the nearest integer and ties to even.
        pub(super) fn round(a: $t) -> $t {
            const LARGE: $t = (1_u64 << $mantissa_bits) as $t;
            let magnitude = abs(a);
            if magnitude < LARGE { copysign((magnitude + LARGE) - LARGE, a) } else { a }
        }

        pub(super) fn fract(a: $t) -> $t {
            a - floor(a)
        }

        /// Equal operands are the same number or zeros, of which the one with the sign bit is the smaller.
        pub(super) fn min(a: $t, b: $t) -> $t {
            if b.is_nan() || a < b {
                a
            } else if a == b {
                <$t>::from_bits(a.to_bits() | b.to_bits())
            } else {
                b
            }
        }

        pub(super) fn max(a: $t, b: $t) -> $t {
            if b.is_nan() || a > b {
                a
            } else if a == b {
                <$t>::from_bits(a.to_bits() & b.to_bits())
            } else {
                b
            }
        }
    };
}

mod on_f32 {
    float_functions!(f32, u32, 8, 23);
}

mod on_f64 {
    float_functions!(f64, u64, 11, 52);
}

/// The ops of one float type. `$elementary` and `$pow` are what only f32 has.
macro_rules! float_ops {
    ($( $(#[$doc:meta])* $module:ident: $element:ident, $functions:ident, $rem:expr, $fma:expr, $elementary:expr, $pow:expr; )*) => { $(
        $(#[$doc])*
        pub mod $module {
            use super::*;

            /// The ops with one operand.
            #[must_use]
            pub fn unary<M: Mode>(op: UnaryOp) -> Option<Meaning> {
                type E<M> = $element<M>;
                Some(match op {
                    UnaryOp::Neg => Meaning::unary::<E<M>, E<M>>($functions::neg),
                    UnaryOp::Abs => Meaning::unary::<E<M>, E<M>>($functions::abs),
                    UnaryOp::Sign => Meaning::unary::<E<M>, E<M>>($functions::sign),
                    UnaryOp::Sqrt => Meaning::unary::<E<M>, E<M>>(|a| a.sqrt()),
                    UnaryOp::Floor => Meaning::unary::<E<M>, E<M>>($functions::floor),
                    UnaryOp::Ceil => Meaning::unary::<E<M>, E<M>>($functions::ceil),
                    UnaryOp::Trunc => Meaning::unary::<E<M>, E<M>>($functions::trunc),
                    UnaryOp::Round => Meaning::unary::<E<M>, E<M>>($functions::round),
                    UnaryOp::Fract => Meaning::unary::<E<M>, E<M>>($functions::fract),
                    UnaryOp::IsNan => Meaning::unary::<E<M>, bool>(|a| a.is_nan()),
                    UnaryOp::IsInf => Meaning::unary::<E<M>, bool>(|a| a.is_infinite()),
                    UnaryOp::Exp
                    | UnaryOp::Exp2
                    | UnaryOp::Log
                    | UnaryOp::Log2
                    | UnaryOp::Sin
                    | UnaryOp::Cos
                    | UnaryOp::Tan
                    | UnaryOp::Tanh
                    | UnaryOp::Atan
                    | UnaryOp::Rsqrt => return $elementary(op),
                    UnaryOp::Not
                    | UnaryOp::Popcount
                    | UnaryOp::Clz
                    | UnaryOp::Ctz
                    | UnaryOp::ReverseBits
                    | UnaryOp::SwapBytes => return None,
                })
            }

            /// The ops with two operands.
            #[must_use]
            pub fn binary<M: Mode>(op: BinaryOp) -> Option<Meaning> {
                type E<M> = $element<M>;
                Some(match op {
                    BinaryOp::Add => Meaning::binary::<E<M>, E<M>, E<M>>(|a, b| a + b),
                    BinaryOp::Sub => Meaning::binary::<E<M>, E<M>, E<M>>(|a, b| a - b),
                    BinaryOp::Mul => Meaning::binary::<E<M>, E<M>, E<M>>(|a, b| a * b),
                    BinaryOp::Div => Meaning::binary::<E<M>, E<M>, E<M>>(|a, b| a / b),
                    BinaryOp::Rem => Meaning::binary::<E<M>, E<M>, E<M>>($rem),
                    BinaryOp::Min => Meaning::binary::<E<M>, E<M>, E<M>>($functions::min),
                    BinaryOp::Max => Meaning::binary::<E<M>, E<M>, E<M>>($functions::max),
                    BinaryOp::Copysign => Meaning::binary::<E<M>, E<M>, E<M>>($functions::copysign),
                    BinaryOp::Pow => return $pow(),
                    BinaryOp::Eq => Meaning::binary::<E<M>, E<M>, bool>(|a, b| a == b),
                    BinaryOp::Ne => Meaning::binary::<E<M>, E<M>, bool>(|a, b| a != b),
                    BinaryOp::Lt => Meaning::binary::<E<M>, E<M>, bool>(|a, b| a < b),
                    BinaryOp::Le => Meaning::binary::<E<M>, E<M>, bool>(|a, b| a <= b),
                    BinaryOp::Gt => Meaning::binary::<E<M>, E<M>, bool>(|a, b| a > b),
                    BinaryOp::Ge => Meaning::binary::<E<M>, E<M>, bool>(|a, b| a >= b),
                    BinaryOp::Mulhi
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
                    | BinaryOp::And
                    | BinaryOp::Or => return None,
                })
            }

            /// The ops with three operands.
            #[must_use]
            pub fn ternary<M: Mode>(op: TernaryOp) -> Option<Meaning> {
                type E<M> = $element<M>;
                match op {
                    TernaryOp::Fma => Some(Meaning::ternary::<E<M>, E<M>, E<M>, E<M>>($fma)),
                    TernaryOp::Select => {
                        Some(Meaning::ternary::<bool, E<M>, E<M>, E<M>>(|which, a, b| if which { a } else { b }))
                    }
                }
            }
        }
    )* };
}

float_ops! {
    /// Binary32.
    for_f32: F32, on_f32, exact::rem_f32, exact::fma_f32, elementary_of_f32::<M>, pow_of_f32::<M>;
    /// Binary64.
    for_f64: F64, on_f64, exact::rem_f64, exact::fma_f64, (|_: UnaryOp| None), (|| None);
}

/// The ops with one operand that f32 alone has.
fn elementary_of_f32<M: Mode>(op: UnaryOp) -> Option<Meaning> {
    // Each is a loop of its own, so that the function is called directly.
    Some(match op {
        UnaryOp::Exp => Meaning::unary::<F32<M>, F32<M>>(elementary::exp),
        UnaryOp::Exp2 => Meaning::unary::<F32<M>, F32<M>>(elementary::exp2),
        UnaryOp::Log => Meaning::unary::<F32<M>, F32<M>>(elementary::log),
        UnaryOp::Log2 => Meaning::unary::<F32<M>, F32<M>>(elementary::log2),
        UnaryOp::Sin => Meaning::unary::<F32<M>, F32<M>>(elementary::sin),
        UnaryOp::Cos => Meaning::unary::<F32<M>, F32<M>>(elementary::cos),
        UnaryOp::Tan => Meaning::unary::<F32<M>, F32<M>>(elementary::tan),
        UnaryOp::Tanh => Meaning::unary::<F32<M>, F32<M>>(elementary::tanh),
        UnaryOp::Atan => Meaning::unary::<F32<M>, F32<M>>(elementary::atan),
        UnaryOp::Rsqrt => Meaning::unary::<F32<M>, F32<M>>(exact::rsqrt_f32),
        UnaryOp::Neg
        | UnaryOp::Not
        | UnaryOp::Abs
        | UnaryOp::Popcount
        | UnaryOp::Clz
        | UnaryOp::Ctz
        | UnaryOp::ReverseBits
        | UnaryOp::SwapBytes
        | UnaryOp::Sign
        | UnaryOp::Sqrt
        | UnaryOp::Floor
        | UnaryOp::Ceil
        | UnaryOp::Trunc
        | UnaryOp::Round
        | UnaryOp::Fract
        | UnaryOp::IsNan
        | UnaryOp::IsInf => return None,
    })
}

fn pow_of_f32<M: Mode>() -> Option<Meaning> {
    Some(Meaning::binary::<F32<M>, F32<M>, F32<M>>(elementary::pow))
}
