//! `+ - * / % sqrt fma`, rounding to integers and the casts, on f32 and f64 in both float modes, against `rustc_apfloat`, a
//! port of LLVM's soft-float.
//!
//! Cases are drawn from families in which mistakes hide: boundary values, cancellation, subnormal results, ties, the ends of the
//! range, sparse significands. 10⁸ per op, type and mode in the long form (`VYRE_LONG=1`), else 10⁵.
//!
//! The soft-float has no square root: it is taken in integers, and the soft-float rounds it.

mod sweep;

use rustc_apfloat::ieee::{Double, DoubleS, IeeeFloat, Semantics, Single, SingleS};
use rustc_apfloat::{Float, FloatConvert, Round};
use sweep::soft::{Op, from_integer, integer, one_operand, operands, theirs};
use sweep::{Random, Report, Type, cases};
use vyre_scalar::{binary, cast, ternary, unary};
use vyre_spec::{BinaryOp, FloatMode, Scalar, TernaryOp, UnaryOp};

const EVERYTHING: u64 = 100_000_000;
const SAMPLE: u64 = 100_000;

fn ours(op: Op, ty: Type, mode: FloatMode, [a, b, c]: [u64; 3]) -> u64 {
    let two = |op| binary(op, ty.scalar(), mode, a, b);
    match op {
        Op::Add => two(BinaryOp::Add),
        Op::Sub => two(BinaryOp::Sub),
        Op::Mul => two(BinaryOp::Mul),
        Op::Div => two(BinaryOp::Div),
        Op::Rem => two(BinaryOp::Rem),
        Op::Sqrt => unary(UnaryOp::Sqrt, ty.scalar(), mode, a),
        Op::Fma => ternary(TernaryOp::Fma, ty.scalar(), mode, a, b, c),
    }
}

fn compare<S: Semantics>(op: Op, ty: Type) {
    let boundaries = ty.boundaries();
    let mut random = Random(op as u64 + 100 * ty.fraction());
    let mut reports = FloatMode::ALL.map(|mode| Report::new(format!("{op:?} of {}, {mode:?}", ty.scalar())));
    for _ in 0..cases(EVERYTHING, SAMPLE) {
        let operands = operands(&mut random, op, ty, &boundaries);
        let of_operands = theirs::<S>(op, operands);
        for (mode, report) in FloatMode::ALL.into_iter().zip(&mut reports) {
            let inputs = operands.map(|operand| ty.canonical(mode, operand));
            let result = if inputs == operands { of_operands } else { theirs::<S>(op, inputs) };
            let expected = ty.canonical(mode, result);
            report.check(ours(op, ty, mode, inputs), expected, || format!("{op:?} {inputs:x?}"));
        }
    }
    reports.into_iter().for_each(Report::finish);
}

fn compare_both(op: Op) {
    compare::<SingleS>(op, Type::F32);
    compare::<DoubleS>(op, Type::F64);
}

#[test]
fn additions_round_once() {
    compare_both(Op::Add);
}

#[test]
fn subtractions_round_once() {
    compare_both(Op::Sub);
}

#[test]
fn multiplications_round_once() {
    compare_both(Op::Mul);
}

#[test]
fn divisions_round_once() {
    compare_both(Op::Div);
}

#[test]
fn remainders_are_exact() {
    compare_both(Op::Rem);
}

#[test]
fn square_roots_round_once() {
    compare_both(Op::Sqrt);
}

#[test]
fn fused_multiply_adds_round_once() {
    compare_both(Op::Fma);
}

/// Compares a function of one float, given ours in a mode and the soft-float's, whose result is of type `to`.
fn compare_one(what: &str, ty: Type, to: Option<Type>, ours: impl Fn(FloatMode, u64) -> u64, theirs: impl Fn(u64) -> u64) {
    let boundaries = ty.boundaries();
    let mut random = Random(what.len() as u64);
    let mut reports = FloatMode::ALL.map(|mode| Report::new(format!("{what} of {}, {mode:?}", ty.scalar())));
    for _ in 0..cases(EVERYTHING, SAMPLE) {
        let operand = one_operand(&mut random, ty, &boundaries);
        for (mode, report) in FloatMode::ALL.into_iter().zip(&mut reports) {
            let input = ty.canonical(mode, operand);
            let result = theirs(input);
            let expected = to.map_or(result, |to| to.canonical(mode, result));
            report.check(ours(mode, input), expected, || format!("{what}({input:#x})"));
        }
    }
    reports.into_iter().for_each(Report::finish);
}

fn to_integral<S: Semantics>(ty: Type) {
    for (op, round) in [
        (UnaryOp::Floor, Round::TowardNegative),
        (UnaryOp::Ceil, Round::TowardPositive),
        (UnaryOp::Trunc, Round::TowardZero),
        (UnaryOp::Round, Round::NearestTiesToEven),
    ] {
        compare_one(
            &op.to_string(),
            ty,
            Some(ty),
            |mode, a| unary(op, ty.scalar(), mode, a),
            |a| IeeeFloat::<S>::from_bits(a.into()).round_to_integral(round).value.to_bits() as u64,
        );
    }
}

#[test]
fn floats_round_to_integers_in_every_direction() {
    to_integral::<SingleS>(Type::F32);
    to_integral::<DoubleS>(Type::F64);
}

const INTEGERS: [Scalar; 4] = [Scalar::U32, Scalar::I32, Scalar::U64, Scalar::I64];

fn to_integers<S: Semantics>(ty: Type) {
    for to in INTEGERS {
        let width = to.bits() as usize;
        compare_one(
            &format!("cast to {to}"),
            ty,
            None,
            |mode, a| cast(ty.scalar(), to, mode, a),
            |a| {
                let value = IeeeFloat::<S>::from_bits(a.into());
                let integer = if to.is_signed_int() { value.to_i128(width).value as u128 } else { value.to_u128(width).value };
                integer as u64 & (u64::MAX >> (64 - width))
            },
        );
    }
}

#[test]
fn floats_truncate_and_saturate_to_integers() {
    to_integers::<SingleS>(Type::F32);
    to_integers::<DoubleS>(Type::F64);
}

#[test]
fn floats_convert_to_each_other() {
    compare_one(
        "cast to f32",
        Type::F64,
        Some(Type::F32),
        |mode, a| cast(Scalar::F64, Scalar::F32, mode, a),
        |a| FloatConvert::<Single>::convert(Double::from_bits(a.into()), &mut false).value.to_bits() as u64,
    );
    compare_one(
        "cast to f64",
        Type::F32,
        Some(Type::F64),
        |mode, a| cast(Scalar::F32, Scalar::F64, mode, a),
        |a| FloatConvert::<Double>::convert(Single::from_bits(a.into()), &mut false).value.to_bits() as u64,
    );
}

#[test]
fn integers_round_once_to_floats() {
    for from in INTEGERS {
        for ty in Type::ALL {
            let mut random = Random(from.bits().into());
            let mut reports = FloatMode::ALL.map(|mode| Report::new(format!("cast of {from} to {}, {mode:?}", ty.scalar())));
            for _ in 0..cases(EVERYTHING, SAMPLE) {
                let a = integer(&mut random, from);
                let result = match ty {
                    Type::F32 => from_integer::<SingleS>(from, a),
                    Type::F64 => from_integer::<DoubleS>(from, a),
                };
                for (mode, report) in FloatMode::ALL.into_iter().zip(&mut reports) {
                    let expected = ty.canonical(mode, result);
                    report.check(cast(from, ty.scalar(), mode, a), expected, || format!("{from} {a:#x}"));
                }
            }
            reports.into_iter().for_each(Report::finish);
        }
    }
}
