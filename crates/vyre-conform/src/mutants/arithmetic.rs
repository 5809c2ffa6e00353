//! Integer arithmetic that is right nearly everywhere: the wrong signedness, shifts that are not masked, divisions without guards.

use super::fault::Fault;
use super::ops::{differ, on_op, pure_ops, value};
use super::rewrite::{Site, on_binary};
use super::witness::{apply, of_op, signature};
use super::{Class, List};
use vyre_foundation::ir::{BinaryOp, Expr, Literal, OpId, Scalar};
use vyre_spec::{Operand, ResultRule, TypeSet};

pub(super) fn add(list: &mut List) {
    add_signedness(list);
    add_shifts(list);
    add_divisions(list);
}

/// A literal of these bits.
pub(super) fn lit(ty: Scalar, bits: u64) -> Expr {
    Expr::Lit(Literal::from_bits(ty, bits))
}

/// The integer of the same width and the other signedness.
pub(super) fn other_sign(ty: Scalar) -> Option<Scalar> {
    match ty {
        Scalar::U32 => Some(Scalar::I32),
        Scalar::I32 => Some(Scalar::U32),
        Scalar::U64 => Some(Scalar::I64),
        Scalar::I64 => Some(Scalar::U64),
        Scalar::Bool | Scalar::F32 | Scalar::F64 => None,
    }
}

fn add_signedness(list: &mut List) {
    for op in pure_ops() {
        let info = op.info();
        for ty in info.over.iter() {
            let Some(other) = other_sign(ty).filter(|other| info.over.contains(*other)) else { continue };
            let (types, _) = signature(op, ty);
            if !differ(&types, |row| value(op, ty, row), |row| value(op, other, row)) {
                continue;
            }
            let change = on_op(op, ty, move |_, operands| {
                let taken = operands.into_iter().zip(op.info().operands).map(|(operand, rule)| match rule {
                    Operand::T => Expr::bitcast(other, operand),
                    Operand::Fixed(_) => operand,
                });
                let result = apply(op, taken.collect());
                match op.info().result {
                    ResultRule::T => Expr::bitcast(ty, result),
                    ResultRule::Fixed(_) | ResultRule::UnsignedT | ResultRule::None => result,
                }
            });
            list.add(Class::Signedness, format!("{op}.{ty}-as-{other}"), Fault::Code(change), move || of_op(op, ty));
        }
    }
}

type Wrong = fn(&mut Site<'_>, BinaryOp, Scalar, Expr, Expr) -> Expr;

fn add_shifts(list: &mut List) {
    let kinds: [(&str, Wrong); 4] = [
        ("zero-past-width", |site, op, ty, x, by| {
            let by = site.bind(by);
            let inside = Expr::lt(by.clone(), Expr::u32(ty.bits()));
            Expr::select(inside, Expr::binary(op, x, by), lit(ty, 0))
        }),
        ("nothing-past-width", |site, op, ty, x, by| {
            let (x, by) = (site.bind(x), site.bind(by));
            let inside = Expr::lt(by.clone(), Expr::u32(ty.bits()));
            Expr::select(inside, Expr::binary(op, x.clone(), by), x)
        }),
        ("clamped", |_, op, ty, x, by| Expr::binary(op, x, Expr::min(by, Expr::u32(ty.bits() - 1)))),
        ("other-mask", |site, op, ty, x, by| match ty.bits() {
            // What a 64-bit shift does on a 32-bit value.
            32 => {
                let by = site.bind(Expr::bitand(by, Expr::u32(63)));
                Expr::select(Expr::lt(by.clone(), Expr::u32(32)), Expr::binary(op, x, by), lit(ty, 0))
            }
            _ => Expr::binary(op, x, Expr::bitand(by, Expr::u32(31))),
        }),
    ];
    for op in BinaryOp::ALL.iter().copied() {
        if op.info().operands != [Operand::T, Operand::Fixed(Scalar::U32)] {
            continue;
        }
        for ty in op.info().over.iter() {
            for (name, wrong) in kinds {
                let change = on_binary(op, ty, move |site, x, by| wrong(site, op, ty, x, by));
                let witness = move || of_op(OpId::Binary(op), ty);
                list.add(Class::ShiftMask, format!("{op}.{ty}-{name}"), Fault::Code(change), witness);
            }
        }
    }
}

fn is_zero(ty: Scalar, x: Expr) -> Expr {
    Expr::eq(x, lit(ty, 0))
}

/// The smallest number divided by -1.
fn overflows(ty: Scalar, a: Expr, b: Expr) -> Expr {
    Expr::and(Expr::eq(a, lit(ty, smallest(ty))), Expr::eq(b, lit(ty, u64::MAX)))
}

fn smallest(ty: Scalar) -> u64 {
    1 << (ty.bits() - 1)
}

/// Whether a division is of numbers with different signs and leaves something.
fn rounds_down(ty: Scalar, a: &Expr, b: &Expr) -> Expr {
    let negative = |x: &Expr| Expr::lt(x.clone(), lit(ty, 0));
    let leaves = Expr::ne(Expr::rem(a.clone(), b.clone()), lit(ty, 0));
    Expr::and(leaves, Expr::bitxor(negative(a), negative(b)))
}

fn add_divisions(list: &mut List) {
    use BinaryOp::{Div, Rem};
    let any: &[(&str, BinaryOp, Wrong)] = &[
        ("zero-is-zero", Div, |site, op, ty, a, b| {
            let b = site.bind(b);
            Expr::select(is_zero(ty, b.clone()), lit(ty, 0), Expr::binary(op, a, b))
        }),
        ("zero-is-ones", Div, |site, op, ty, a, b| {
            let b = site.bind(b);
            Expr::select(is_zero(ty, b.clone()), lit(ty, u64::MAX), Expr::binary(op, a, b))
        }),
        ("zero-is-dividend", Rem, |site, op, ty, a, b| {
            let (a, b) = (site.bind(a), site.bind(b));
            Expr::select(is_zero(ty, b.clone()), a.clone(), Expr::binary(op, a, b))
        }),
        ("zero-is-ones", Rem, |site, op, ty, a, b| {
            let b = site.bind(b);
            Expr::select(is_zero(ty, b.clone()), lit(ty, u64::MAX), Expr::binary(op, a, b))
        }),
        ("in-floats", Div, |site, _, ty, a, b| {
            let (a, b) = (site.bind(a), site.bind(b));
            let float = if ty.bits() == 32 { Scalar::F32 } else { Scalar::F64 };
            let quotient = Expr::div(Expr::cast(float, a.clone()), Expr::cast(float, b.clone()));
            Expr::select(is_zero(ty, b), a, Expr::cast(ty, quotient))
        }),
        ("by-product", Rem, |site, _, ty, a, b| {
            // The remainder of a quotient whose guard gives 0.
            let (a, b) = (site.bind(a), site.bind(b));
            let quotient = Expr::select(is_zero(ty, b.clone()), lit(ty, 0), Expr::div(a.clone(), b.clone()));
            Expr::sub(a, Expr::mul(quotient, b))
        }),
    ];
    let signed: &[(&str, BinaryOp, Wrong)] = &[
        ("overflow-is-zero", Div, |site, op, ty, a, b| {
            let (a, b) = (site.bind(a), site.bind(b));
            Expr::select(overflows(ty, a.clone(), b.clone()), lit(ty, 0), Expr::binary(op, a, b))
        }),
        ("overflow-saturates", Div, |site, op, ty, a, b| {
            let (a, b) = (site.bind(a), site.bind(b));
            Expr::select(overflows(ty, a.clone(), b.clone()), lit(ty, smallest(ty) - 1), Expr::binary(op, a, b))
        }),
        ("overflow-is-dividend", Rem, |site, op, ty, a, b| {
            let (a, b) = (site.bind(a), site.bind(b));
            Expr::select(overflows(ty, a.clone(), b.clone()), a.clone(), Expr::binary(op, a, b))
        }),
        ("overflow-is-ones", Rem, |site, op, ty, a, b| {
            let (a, b) = (site.bind(a), site.bind(b));
            Expr::select(overflows(ty, a.clone(), b.clone()), lit(ty, u64::MAX), Expr::binary(op, a, b))
        }),
        ("floored", Div, |site, op, ty, a, b| {
            let (a, b) = (site.bind(a), site.bind(b));
            let quotient = site.bind(Expr::binary(op, a.clone(), b.clone()));
            Expr::select(rounds_down(ty, &a, &b), Expr::sub(quotient.clone(), lit(ty, 1)), quotient)
        }),
        ("floored", Rem, |site, op, ty, a, b| {
            let (a, b) = (site.bind(a), site.bind(b));
            let rest = site.bind(Expr::binary(op, a.clone(), b.clone()));
            Expr::select(rounds_down(ty, &a, &b), Expr::add(rest.clone(), b), rest)
        }),
        ("euclidean", Rem, |site, op, ty, a, b| {
            let b = site.bind(b);
            let rest = site.bind(Expr::binary(op, a, b.clone()));
            Expr::select(Expr::lt(rest.clone(), lit(ty, 0)), Expr::add(rest.clone(), Expr::abs(b)), rest)
        }),
        ("power-is-shift", Div, |site, op, _, a, b| {
            let (a, b) = (site.bind(a), site.bind(b));
            let shifted = Expr::shr(a.clone(), Expr::ctz(b.clone()));
            Expr::select(Expr::eq(Expr::popcount(b.clone()), Expr::u32(1)), shifted, Expr::binary(op, a, b))
        }),
        ("power-is-mask", Rem, |site, op, ty, a, b| {
            let (a, b) = (site.bind(a), site.bind(b));
            let masked = Expr::bitand(a.clone(), Expr::sub(b.clone(), lit(ty, 1)));
            Expr::select(Expr::eq(Expr::popcount(b.clone()), Expr::u32(1)), masked, Expr::binary(op, a, b))
        }),
    ];
    for ty in TypeSet::INT.iter() {
        let of_sign = signed.iter().filter(|_| ty.is_signed_int());
        for (name, op, wrong) in any.iter().chain(of_sign).copied() {
            let change = on_binary(op, ty, move |site, a, b| wrong(site, op, ty, a, b));
            let witness = move || of_op(OpId::Binary(op), ty);
            list.add(Class::DivisionGuard, format!("{op}.{ty}-{name}"), Fault::Code(change), witness);
        }
    }
}
