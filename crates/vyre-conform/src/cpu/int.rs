//! Integers and booleans.

use super::Meaning;
use super::element::Element;
use vyre_spec::{BinaryOp, TernaryOp, UnaryOp};

/// The ops of one integer type. `$wide` is a signed type that holds every sum and difference, `$product` one that holds every product.
macro_rules! integer_ops {
    ($( $(#[$doc:meta])* $module:ident: $t:ty, $unsigned:ty, $wide:ty, $product:ty; )*) => { $(
        $(#[$doc])*
        pub mod $module {
            use super::*;

            /// The ops with one operand.
            #[must_use]
            pub fn unary(op: UnaryOp) -> Option<Meaning> {
                Some(match op {
                    UnaryOp::Neg => Meaning::unary::<$t, $t>(|a| (0 - a as $wide) as $t),
                    UnaryOp::Not => Meaning::unary::<$t, $t>(|a| !a),
                    UnaryOp::Abs => Meaning::unary::<$t, $t>(|a| (a as $wide).unsigned_abs() as $t),
                    UnaryOp::Popcount => Meaning::unary::<$t, u32>(|a| a.count_ones()),
                    UnaryOp::Clz => Meaning::unary::<$t, u32>(|a| a.leading_zeros()),
                    UnaryOp::Ctz => Meaning::unary::<$t, u32>(|a| a.trailing_zeros()),
                    UnaryOp::ReverseBits => Meaning::unary::<$t, $t>(|a| a.reverse_bits()),
                    UnaryOp::SwapBytes => Meaning::unary::<$t, $t>(|a| a.swap_bytes()),
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
                    | UnaryOp::Rsqrt => return None,
                })
            }

            /// The ops with two operands.
            #[must_use]
            pub fn binary(op: BinaryOp) -> Option<Meaning> {
                const BITS: u32 = <$t>::BITS;
                let rotate = |a: $t, left: u32| {
                    let a = a as $unsigned;
                    ((a << left) | (a >> ((BITS - left) % BITS))) as $t
                };
                let held = |a: $wide| a.clamp(<$t>::MIN as $wide, <$t>::MAX as $wide) as $t;
                Some(match op {
                    BinaryOp::Add => Meaning::binary::<$t, $t, $t>(|a, b| (a as $wide + b as $wide) as $t),
                    BinaryOp::Sub => Meaning::binary::<$t, $t, $t>(|a, b| (a as $wide - b as $wide) as $t),
                    BinaryOp::Mul => Meaning::binary::<$t, $t, $t>(|a, b| (a as $product * b as $product) as $t),
                    BinaryOp::Mulhi => {
                        Meaning::binary::<$t, $t, $t>(|a, b| ((a as $product * b as $product) >> BITS) as $t)
                    }
                    BinaryOp::Div => Meaning::binary::<$t, $t, $t>(|a, b| if b == 0 { a } else { a.wrapping_div(b) }),
                    BinaryOp::Rem => Meaning::binary::<$t, $t, $t>(|a, b| if b == 0 { 0 } else { a.wrapping_rem(b) }),
                    BinaryOp::AbsDiff => {
                        Meaning::binary::<$t, $t, $unsigned>(|a, b| (a as $wide - b as $wide).unsigned_abs() as $unsigned)
                    }
                    BinaryOp::Min => Meaning::binary::<$t, $t, $t>(|a, b| if a < b { a } else { b }),
                    BinaryOp::Max => Meaning::binary::<$t, $t, $t>(|a, b| if a < b { b } else { a }),
                    BinaryOp::BitAnd => Meaning::binary::<$t, $t, $t>(|a, b| a & b),
                    BinaryOp::BitOr => Meaning::binary::<$t, $t, $t>(|a, b| a | b),
                    BinaryOp::BitXor => Meaning::binary::<$t, $t, $t>(|a, b| a ^ b),
                    BinaryOp::Shl => Meaning::binary::<$t, u32, $t>(|a, b| a << (b % BITS)),
                    BinaryOp::Shr => Meaning::binary::<$t, u32, $t>(|a, b| a >> (b % BITS)),
                    BinaryOp::Rotl => Meaning::binary::<$t, u32, $t>(move |a, b| rotate(a, b % BITS)),
                    BinaryOp::Rotr => Meaning::binary::<$t, u32, $t>(move |a, b| rotate(a, (BITS - b % BITS) % BITS)),
                    BinaryOp::SatAdd => Meaning::binary::<$t, $t, $t>(move |a, b| held(a as $wide + b as $wide)),
                    BinaryOp::SatSub => Meaning::binary::<$t, $t, $t>(move |a, b| held(a as $wide - b as $wide)),
                    BinaryOp::Eq => Meaning::binary::<$t, $t, bool>(|a, b| a == b),
                    BinaryOp::Ne => Meaning::binary::<$t, $t, bool>(|a, b| a != b),
                    BinaryOp::Lt => Meaning::binary::<$t, $t, bool>(|a, b| a < b),
                    BinaryOp::Le => Meaning::binary::<$t, $t, bool>(|a, b| a <= b),
                    BinaryOp::Gt => Meaning::binary::<$t, $t, bool>(|a, b| a > b),
                    BinaryOp::Ge => Meaning::binary::<$t, $t, bool>(|a, b| a >= b),
                    BinaryOp::Copysign | BinaryOp::Pow | BinaryOp::And | BinaryOp::Or => return None,
                })
            }
        }
    )* };
}

integer_ops! {
    /// Unsigned, 32 bits.
    for_u32: u32, u32, i64, u64;
    /// Signed, 32 bits.
    for_i32: i32, u32, i64, i64;
    /// Unsigned, 64 bits.
    for_u64: u64, u64, i128, u128;
    /// Signed, 64 bits.
    for_i64: i64, u64, i128, i128;
}

/// The ops with one operand on booleans.
#[must_use]
pub fn bool_unary(op: UnaryOp) -> Option<Meaning> {
    match op {
        UnaryOp::Not => Some(Meaning::unary::<bool, bool>(|a| !a)),
        UnaryOp::Neg
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
        | UnaryOp::Rsqrt => None,
    }
}

/// The ops with two operands on booleans.
#[must_use]
pub fn bool_binary(op: BinaryOp) -> Option<Meaning> {
    Some(match op {
        BinaryOp::BitXor | BinaryOp::Ne => Meaning::binary::<bool, bool, bool>(|a, b| a != b),
        BinaryOp::And => Meaning::binary::<bool, bool, bool>(|a, b| a & b),
        BinaryOp::Or => Meaning::binary::<bool, bool, bool>(|a, b| a | b),
        BinaryOp::Eq => Meaning::binary::<bool, bool, bool>(|a, b| a == b),
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
        | BinaryOp::Ge => return None,
    })
}

/// The ops with three operands on integers and booleans.
#[must_use]
pub fn ternary<T: Element>(op: TernaryOp) -> Option<Meaning> {
    match op {
        TernaryOp::Select => Some(Meaning::ternary::<bool, T, T, T>(|which, a, b| if which { a } else { b })),
        TernaryOp::Fma => None,
    }
}
