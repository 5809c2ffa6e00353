//! Pure ops over whole columns.
//!
//! The meaning of an op is `vyre_scalar`'s alone: each loop calls it with op, type and mode written out as constants, so that the
//! compiler picks the one arm, and vectorises what is left. The arms come from the op tables.

use super::column::Word;
use super::lanes::vectorised;
use vyre_scalar::{binary, bitcast, cast, ternary, unary};
use vyre_spec::{BinaryOp, FloatMode, Scalar, TernaryOp, UnaryOp};

#[inline(always)]
fn map1<A: Word, O: Word>(a: &[A], out: &mut [O], f: impl Fn(u64) -> u64) {
    for (out, a) in out.iter_mut().zip(a) {
        *out = O::from_bits(f(a.bits()));
    }
}

#[inline(always)]
fn map2<A: Word, B: Word, O: Word>(a: &[A], b: &[B], out: &mut [O], f: impl Fn(u64, u64) -> u64) {
    for ((out, a), b) in out.iter_mut().zip(a).zip(b) {
        *out = O::from_bits(f(a.bits(), b.bits()));
    }
}

#[inline(always)]
fn map3<A: Word, B: Word, C: Word, O: Word>(a: &[A], b: &[B], c: &[C], out: &mut [O], f: impl Fn(u64, u64, u64) -> u64) {
    for (((out, a), b), c) in out.iter_mut().zip(a).zip(b).zip(c) {
        *out = O::from_bits(f(a.bits(), b.bits(), c.bits()));
    }
}

/// Calls `$body` with `$mode` a constant, so that each loop is compiled for one mode.
macro_rules! by_mode {
    ($value:expr, $mode:ident => $body:expr) => {
        match $value {
            FloatMode::Ieee => {
                const $mode: FloatMode = FloatMode::Ieee;
                $body
            }
            FloatMode::Canonical => {
                const $mode: FloatMode = FloatMode::Canonical;
                $body
            }
        }
    };
}

/// Calls `$body` with `$ty` a constant, for the 32-bit types; 64-bit types have columns of another width.
macro_rules! by_narrow_type {
    ($value:expr, $mode_value:expr, ($ty:ident, $mode:ident) => $body:expr) => {
        match $value {
            Scalar::Bool => {
                const $ty: Scalar = Scalar::Bool;
                const $mode: FloatMode = FloatMode::Ieee;
                $body
            }
            Scalar::U32 => {
                const $ty: Scalar = Scalar::U32;
                const $mode: FloatMode = FloatMode::Ieee;
                $body
            }
            Scalar::I32 => {
                const $ty: Scalar = Scalar::I32;
                const $mode: FloatMode = FloatMode::Ieee;
                $body
            }
            Scalar::F32 => {
                const $ty: Scalar = Scalar::F32;
                by_mode!($mode_value, $mode => $body)
            }
            Scalar::U64 | Scalar::I64 | Scalar::F64 => unreachable!("wide types have wide columns"),
        }
    };
}

vectorised! {
    /// Ops whose operands are 32-bit; their results are too.
    pub(super) fn unary_narrow(op: UnaryOp, ty: Scalar, mode: FloatMode, a: &'a [u32], out: &'a mut [u32]) -> () {
        macro_rules! arms {
            ($( $name:ident $op:ident $doc:literal; )*) => {
                by_narrow_type!(ty, mode, (TY, MODE) => match op {
                    $( UnaryOp::$op => map1(a, out, |a| unary(UnaryOp::$op, TY, MODE, a)), )*
                })
            };
        }
        vyre_spec::unary_ops!(arms)
    }
}

vectorised! {
    /// Ops whose operands are 32-bit; their results are too.
    pub(super) fn binary_narrow(
        op: BinaryOp,
        ty: Scalar,
        mode: FloatMode,
        a: &'a [u32],
        b: &'a [u32],
        out: &'a mut [u32],
    ) -> () {
        macro_rules! arms {
            ($( $name:ident $op:ident $doc:literal; )*) => {
                by_narrow_type!(ty, mode, (TY, MODE) => match op {
                    $( BinaryOp::$op => map2(a, b, out, |a, b| binary(BinaryOp::$op, TY, MODE, a, b)), )*
                })
            };
        }
        vyre_spec::binary_ops!(arms)
    }
}

vectorised! {
    /// Ops whose operands are 32-bit; their results are too.
    pub(super) fn ternary_narrow(
        op: TernaryOp,
        ty: Scalar,
        mode: FloatMode,
        operands: [&'a [u32]; 3],
        out: &'a mut [u32],
    ) -> () {
        let [a, b, c] = operands;
        macro_rules! arms {
            ($( $name:ident $op:ident $doc:literal; )*) => {
                by_narrow_type!(ty, mode, (TY, MODE) => match op {
                    $( TernaryOp::$op => map3(a, b, c, out, |a, b, c| ternary(TernaryOp::$op, TY, MODE, a, b, c)), )*
                })
            };
        }
        vyre_spec::ternary_ops!(arms)
    }
}

/// Ops on columns of other widths: the op is chosen per lane.
pub(super) fn unary_any<A: Word, O: Word>(op: UnaryOp, ty: Scalar, mode: FloatMode, a: &[A], out: &mut [O]) {
    map1(a, out, |a| unary(op, ty, mode, a));
}

/// Ops on columns of other widths: the op is chosen per lane.
pub(super) fn binary_any<A: Word, B: Word, O: Word>(op: BinaryOp, ty: Scalar, mode: FloatMode, a: &[A], b: &[B], out: &mut [O]) {
    map2(a, b, out, |a, b| binary(op, ty, mode, a, b));
}

/// Ops on columns of other widths: the op is chosen per lane.
pub(super) fn ternary_any<A: Word, B: Word>(
    op: TernaryOp,
    ty: Scalar,
    mode: FloatMode,
    a: &[A],
    b: &[B],
    c: &[B],
    out: &mut [B],
) {
    map3(a, b, c, out, |a, b, c| ternary(op, ty, mode, a, b, c));
}

/// A conversion between columns of any widths.
pub(super) fn cast_any<A: Word, O: Word>(from: Scalar, to: Scalar, mode: FloatMode, a: &[A], out: &mut [O]) {
    match (from, to) {
        (Scalar::U32, Scalar::F32) => map1(a, out, |a| cast(Scalar::U32, Scalar::F32, FloatMode::Ieee, a)),
        (Scalar::I32, Scalar::F32) => map1(a, out, |a| cast(Scalar::I32, Scalar::F32, FloatMode::Ieee, a)),
        (Scalar::F32, Scalar::U32) => map1(a, out, |a| cast(Scalar::F32, Scalar::U32, FloatMode::Ieee, a)),
        (Scalar::F32, Scalar::I32) => map1(a, out, |a| cast(Scalar::F32, Scalar::I32, FloatMode::Ieee, a)),
        (Scalar::Bool, Scalar::U32 | Scalar::I32) | (Scalar::U32, Scalar::I32) | (Scalar::I32, Scalar::U32) => {
            map1(a, out, |a| a);
        }
        _ => map1(a, out, |a| cast(from, to, mode, a)),
    }
}

/// The bits of a column as another type of the same width.
pub(super) fn bitcast_any<A: Word, O: Word>(from: Scalar, to: Scalar, mode: FloatMode, a: &[A], out: &mut [O]) {
    by_mode!(mode, MODE => match to {
        Scalar::F32 => map1(a, out, |a| bitcast(Scalar::U32, Scalar::F32, MODE, a)),
        Scalar::F64 => map1(a, out, |a| bitcast(Scalar::U64, Scalar::F64, MODE, a)),
        Scalar::Bool | Scalar::U32 | Scalar::I32 | Scalar::U64 | Scalar::I64 => map1(a, out, |a| bitcast(from, to, MODE, a)),
    });
}
