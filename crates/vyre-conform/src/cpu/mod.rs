//! What every pure op means, in plain Rust, written from `docs/semantics.md` alone.
//!
//! This is one of the three opinions about a case (see [`crate::spec`]). It shares no code with the evaluators of the language: no
//! function of `vyre-scalar`, and none of the libraries that `vyre-scalar` stands on. Integers are Rust's own, with wider types where
//! something could overflow. Floats are Rust's `+ - * /` and `sqrt`, which Rust promises to be IEEE 754, and integer arithmetic for the
//! rest. Elementary functions are a library's f64 results where those decide, and arbitrary precision where they do not
//! ([`elementary`]).
//!
//! The rules about NaN and about tiny floats are applied where values come from memory and where they go there
//! ([`element`]): a float that is loaded or stored is made canonical, so that the ops in between need not know about either.
//!
//! An op is one closure over values. [`Meaning`] makes both forms of it that a spec wants: the result of one case, and a loop over
//! columns of cases that the compiler knows everything about.

pub mod convert;
pub mod element;
pub mod elementary;
pub mod exact;
pub mod float;
pub mod int;
pub mod narrow;

use crate::spec::{BatchFn, Columns, CpuFn};
use element::{Canonical, Element, Ieee};
use std::sync::Arc;
use vyre_host_floats::with_default_state;
use vyre_spec::{BinaryOp, FloatMode, Scalar, TernaryOp, UnaryOp};

/// A loop over columns.
type ColumnsFn = dyn Fn(&[&[u8]], &mut [u8]) + Send + Sync;

/// The meaning of an op: for one case, and for many.
#[derive(Clone)]
pub struct Meaning {
    /// The result of one case.
    pub one: CpuFn,
    /// The results of many.
    pub many: BatchFn,
}

impl Meaning {
    /// From a loop over columns. `inputs` are the bytes that each input has of a case, `out` those of its result; what comes is a
    /// whole number of such.
    pub(crate) fn of(
        inputs: &'static [usize],
        out: usize,
        many: impl Fn(&[&[u8]], &mut [u8]) + Send + Sync + 'static,
    ) -> Meaning {
        Meaning::of_any(inputs, out, Arc::new(many))
    }

    /// The same for any loop: there are a thousand of them, and what is around them is compiled once.
    fn of_any(inputs: &'static [usize], out: usize, many: Arc<ColumnsFn>) -> Meaning {
        let batch = Arc::clone(&many);
        Meaning {
            one: Arc::new(move |case: &[u8]| {
                let count = case.len() / inputs.iter().sum::<usize>();
                let mut rest = case;
                let columns: Vec<&[u8]> =
                    inputs.iter().map(|bytes| rest.split_off(..count * bytes).unwrap_or_default()).collect();
                let mut result = vec![0; count * out];
                with_default_state(|| many(&columns, &mut result));
                result
            }),
            many: Arc::new(move |columns: &Columns<'_>, outputs: &mut [&mut [u8]]| {
                with_default_state(|| batch(columns.inputs, outputs[0]));
            }),
        }
    }

    /// Of an op with one operand.
    pub fn unary<A: Element, R: Element>(op: impl Fn(A::Value) -> R::Value + Send + Sync + 'static) -> Meaning {
        Meaning::of(const { &[A::BYTES] }, R::BYTES, move |inputs, out| {
            for (out, a) in out.chunks_exact_mut(R::BYTES).zip(inputs[0].chunks_exact(A::BYTES)) {
                R::store(op(A::load(a)), out);
            }
        })
    }

    /// Of an op with two operands.
    pub fn binary<A: Element, B: Element, R: Element>(
        op: impl Fn(A::Value, B::Value) -> R::Value + Send + Sync + 'static,
    ) -> Meaning {
        Meaning::of(const { &[A::BYTES, B::BYTES] }, R::BYTES, move |inputs, out| {
            let operands = inputs[0].chunks_exact(A::BYTES).zip(inputs[1].chunks_exact(B::BYTES));
            for (out, (a, b)) in out.chunks_exact_mut(R::BYTES).zip(operands) {
                R::store(op(A::load(a), B::load(b)), out);
            }
        })
    }

    /// Of an op with three operands.
    pub fn ternary<A: Element, B: Element, C: Element, R: Element>(
        op: impl Fn(A::Value, B::Value, C::Value) -> R::Value + Send + Sync + 'static,
    ) -> Meaning {
        Meaning::of(const { &[A::BYTES, B::BYTES, C::BYTES] }, R::BYTES, move |inputs, out| {
            let (a, b, c) =
                (inputs[0].chunks_exact(A::BYTES), inputs[1].chunks_exact(B::BYTES), inputs[2].chunks_exact(C::BYTES));
            for (out, ((a, b), c)) in out.chunks_exact_mut(R::BYTES).zip(a.zip(b).zip(c)) {
                R::store(op(A::load(a), B::load(b), C::load(c)), out);
            }
        })
    }
}

/// The meaning of an op with one operand on this type; `None` if the op does not take the type.
#[must_use]
pub fn unary(op: UnaryOp, t: Scalar, mode: FloatMode) -> Option<Meaning> {
    match (t, mode) {
        (Scalar::Bool, _) => int::bool_unary(op),
        (Scalar::U32, _) => int::for_u32::unary(op),
        (Scalar::I32, _) => int::for_i32::unary(op),
        (Scalar::U64, _) => int::for_u64::unary(op),
        (Scalar::I64, _) => int::for_i64::unary(op),
        (Scalar::F32, FloatMode::Ieee) => float::for_f32::unary::<Ieee>(op),
        (Scalar::F32, FloatMode::Canonical) => float::for_f32::unary::<Canonical>(op),
        (Scalar::F64, FloatMode::Ieee) => float::for_f64::unary::<Ieee>(op),
        (Scalar::F64, FloatMode::Canonical) => float::for_f64::unary::<Canonical>(op),
    }
}

/// The meaning of an op with two operands on this type; `None` if the op does not take the type.
#[must_use]
pub fn binary(op: BinaryOp, t: Scalar, mode: FloatMode) -> Option<Meaning> {
    match (t, mode) {
        (Scalar::Bool, _) => int::bool_binary(op),
        (Scalar::U32, _) => int::for_u32::binary(op),
        (Scalar::I32, _) => int::for_i32::binary(op),
        (Scalar::U64, _) => int::for_u64::binary(op),
        (Scalar::I64, _) => int::for_i64::binary(op),
        (Scalar::F32, FloatMode::Ieee) => float::for_f32::binary::<Ieee>(op),
        (Scalar::F32, FloatMode::Canonical) => float::for_f32::binary::<Canonical>(op),
        (Scalar::F64, FloatMode::Ieee) => float::for_f64::binary::<Ieee>(op),
        (Scalar::F64, FloatMode::Canonical) => float::for_f64::binary::<Canonical>(op),
    }
}

/// The meaning of an op with three operands on this type; `None` if the op does not take the type.
#[must_use]
pub fn ternary(op: TernaryOp, t: Scalar, mode: FloatMode) -> Option<Meaning> {
    match (t, mode) {
        (Scalar::Bool, _) => int::ternary::<bool>(op),
        (Scalar::U32, _) => int::ternary::<u32>(op),
        (Scalar::I32, _) => int::ternary::<i32>(op),
        (Scalar::U64, _) => int::ternary::<u64>(op),
        (Scalar::I64, _) => int::ternary::<i64>(op),
        (Scalar::F32, FloatMode::Ieee) => float::for_f32::ternary::<Ieee>(op),
        (Scalar::F32, FloatMode::Canonical) => float::for_f32::ternary::<Canonical>(op),
        (Scalar::F64, FloatMode::Ieee) => float::for_f64::ternary::<Ieee>(op),
        (Scalar::F64, FloatMode::Canonical) => float::for_f64::ternary::<Canonical>(op),
    }
}
