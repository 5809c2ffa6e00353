//! Floats that are rounded in another way, and expressions that are rearranged as if floats were real numbers.

use super::arithmetic::lit;
use super::fault::Fault;
use super::ops::{differ, value};
use super::rewrite::{Change, Site, on_binary, on_expr, on_unary};
use super::witness::{apply, of_expr, of_op};
use super::{Class, List};
use vyre_foundation::ir::{BinaryOp, Expr, OpId, Scalar, UnaryOp};
use vyre_spec::TypeSet;

pub(super) fn add(list: &mut List) {
    add_identities(list);
    add_directions(list);
    add_narrow(list);
    add_elementary(list);
    add_algebra(list);
}

type Unary = fn(Scalar, &mut Site<'_>, Expr) -> Expr;
type Binary = fn(Scalar, &mut Site<'_>, Expr, Expr) -> Expr;

fn number(ty: Scalar, x: f32) -> Expr {
    if ty == Scalar::F32 { Expr::f32(x) } else { Expr::f64(x.into()) }
}

/// Ops as other ops that would be the same if nothing was rounded.
fn add_identities(list: &mut List) {
    use UnaryOp::{Ceil, Floor, Fract, Round, Sqrt, Trunc};
    let unary: [(UnaryOp, &str, Unary); 9] = [
        (Round, "ties-away", |ty, site, x| {
            let x = site.bind(x);
            let up = Expr::floor(Expr::add(Expr::abs(x.clone()), number(ty, 0.5)));
            Expr::copysign(up, x)
        }),
        (Round, "is-floor-of-half-more", |ty, _, x| Expr::floor(Expr::add(x, number(ty, 0.5)))),
        (Round, "through-i32", |ty, _, x| Expr::cast(ty, Expr::cast(Scalar::I32, Expr::round(x)))),
        (Trunc, "through-i32", |ty, _, x| Expr::cast(ty, Expr::cast(Scalar::I32, x))),
        (Floor, "is-trunc-less-one", |ty, site, x| {
            let x = site.bind(x);
            let down = Expr::sub(Expr::trunc(x.clone()), number(ty, 1.0));
            Expr::select(Expr::lt(x.clone(), number(ty, 0.0)), down, Expr::trunc(x))
        }),
        (Ceil, "is-floor-plus-one", |ty, _, x| Expr::add(Expr::floor(x), number(ty, 1.0))),
        (Fract, "of-magnitude", |_, site, x| {
            let x = site.bind(x);
            Expr::sub(x.clone(), Expr::trunc(x))
        }),
        (Fract, "stays-below-one", |ty, _, x| {
            let below = if ty == Scalar::F32 { 0x3F7F_FFFF } else { 0x3FEF_FFFF_FFFF_FFFF };
            Expr::min(Expr::fract(x), lit(ty, below))
        }),
        (Sqrt, "is-one-newton-step", |ty, site, x| {
            // A root that is exact to the last place or two, and inf and 0 as they are.
            let x = site.bind(x);
            let root = site.bind(Expr::sqrt(x.clone()));
            let step = Expr::mul(number(ty, 0.5), Expr::add(root.clone(), Expr::div(x.clone(), root.clone())));
            let ends = Expr::or(Expr::is_inf(x.clone()), Expr::eq(x, number(ty, 0.0)));
            Expr::select(ends, root, step)
        }),
    ];
    for (op, name, wrong) in unary {
        for ty in op.info().over.iter() {
            let change = on_unary(op, ty, move |site, x| wrong(ty, site, x));
            list.add(Class::Rounding, format!("{op}.{ty}-{name}"), Fault::Code(change), move || of_op(OpId::Unary(op), ty));
        }
    }
    let binary: [(BinaryOp, &str, Binary); 4] = [
        (BinaryOp::Div, "is-product-with-reciprocal", |ty, _, a, b| Expr::mul(a, Expr::div(number(ty, 1.0), b))),
        (BinaryOp::Rem, "by-quotient", |_, site, a, b| {
            let (a, b) = (site.bind(a), site.bind(b));
            let whole = Expr::trunc(Expr::div(a.clone(), b.clone()));
            Expr::sub(a, Expr::mul(whole, b))
        }),
        (BinaryOp::Rem, "floored", |ty, site, a, b| {
            let b = site.bind(b);
            let rest = site.bind(Expr::rem(a, b.clone()));
            let other = Expr::lt(Expr::mul(rest.clone(), b.clone()), number(ty, 0.0));
            Expr::select(other, Expr::add(rest.clone(), b), rest)
        }),
        (BinaryOp::Sub, "of-equals-is-minus-zero", |ty, site, a, b| {
            let (a, b) = (site.bind(a), site.bind(b));
            let zero = Expr::eq(a.clone(), b.clone());
            let minus = lit(ty, 1 << (ty.bits() - 1));
            let nothing = Expr::is_nan(Expr::sub(a.clone(), b.clone()));
            Expr::select(Expr::and(zero, Expr::not(nothing)), minus, Expr::sub(a, b))
        }),
    ];
    for (op, name, wrong) in binary {
        for ty in TypeSet::FLOAT.iter() {
            let change = on_binary(op, ty, move |site, a, b| wrong(ty, site, a, b));
            list.add(Class::Rounding, format!("{op}.{ty}-{name}"), Fault::Code(change), move || of_op(OpId::Binary(op), ty));
        }
    }
}

/// The neighbour of a float, further from zero or nearer.
fn neighbour(x: &Expr, further: bool) -> Expr {
    let bits = Expr::bitcast(Scalar::U32, x.clone());
    let moved = if further { Expr::add(bits, Expr::u32(1)) } else { Expr::sub(bits, Expr::u32(1)) };
    Expr::bitcast(Scalar::F32, moved)
}

/// f32 arithmetic rounded in another direction than to the nearest. What an f64 cannot tell is rounded to the nearest.
fn add_directions(list: &mut List) {
    use BinaryOp::{Add, Div, Mul, Sub};
    let ops = [OpId::Binary(Add), OpId::Binary(Sub), OpId::Binary(Mul), OpId::Binary(Div), OpId::Unary(UnaryOp::Sqrt)];
    for op in ops {
        for name in ["toward-zero", "up", "down"] {
            let change = super::ops::on_op(op, Scalar::F32, move |site, operands| {
                let operands: Vec<Expr> = operands.into_iter().map(|operand| site.bind(operand)).collect();
                let near = site.bind(apply(op, operands.clone()));
                let wide = operands.into_iter().map(|operand| Expr::cast(Scalar::F64, operand)).collect();
                let exact = site.bind(apply(op, wide));
                let found = site.bind(Expr::cast(Scalar::F64, near.clone()));
                let negative = Expr::lt(near.clone(), Expr::f32(0.0));
                match name {
                    "toward-zero" => {
                        let past = Expr::gt(Expr::abs(found), Expr::abs(exact));
                        Expr::select(past, neighbour(&near, false), near)
                    }
                    "up" => {
                        let moved = Expr::select(negative, neighbour(&near, false), neighbour(&near, true));
                        Expr::select(Expr::lt(found, exact), moved, near)
                    }
                    _ => {
                        let moved = Expr::select(negative, neighbour(&near, true), neighbour(&near, false));
                        Expr::select(Expr::gt(found, exact), moved, near)
                    }
                }
            });
            list.add(Class::Rounding, format!("{op}.f32-{name}"), Fault::Code(change), move || of_op(op, Scalar::F32));
        }
    }
}

/// f64 arithmetic in f32.
fn add_narrow(list: &mut List) {
    let all = super::ops::pure_ops().filter(|op| op.info().over.contains(Scalar::F64));
    for op in all {
        let (types, result) = super::witness::signature(op, Scalar::F64);
        if result != Scalar::F64 || types.iter().any(|ty| *ty != Scalar::F64) {
            continue;
        }
        let mode = vyre_spec::FloatMode::Ieee;
        let through = |row: &[u64]| {
            let row: Vec<u64> = row.iter().map(|bits| vyre_scalar::cast(Scalar::F64, Scalar::F32, mode, *bits)).collect();
            vyre_scalar::cast(Scalar::F32, Scalar::F64, mode, value(op, Scalar::F32, &row))
        };
        if !differ(&types, |row| value(op, Scalar::F64, row), through) {
            continue;
        }
        let change = super::ops::on_op(op, Scalar::F64, move |_, operands| {
            let narrow = operands.into_iter().map(|operand| Expr::cast(Scalar::F32, operand)).collect();
            Expr::cast(Scalar::F64, apply(op, narrow))
        });
        list.add(Class::Rounding, format!("{op}.f64-in-f32"), Fault::Code(change), move || of_op(op, Scalar::F64));
    }
}

/// Functions that are nearly right.
fn add_elementary(list: &mut List) {
    let one_ulp = |x: Expr| Expr::bitcast(Scalar::F32, Expr::add(Expr::bitcast(Scalar::U32, x), Expr::u32(1)));
    for op in super::ops::pure_ops().filter(|op| op.info().over == TypeSet::F32) {
        let witness = move || of_op(op, Scalar::F32);
        let always = super::ops::on_op(op, Scalar::F32, move |_, operands| one_ulp(apply(op, operands)));
        list.add(Class::Rounding, format!("{op}.f32-one-ulp"), Fault::Code(always), witness);
        let sometimes = super::ops::on_op(op, Scalar::F32, move |site, operands| {
            let operands: Vec<Expr> = operands.into_iter().map(|operand| site.bind(operand)).collect();
            let bits = Expr::bitcast(Scalar::U32, operands[0].clone());
            let result = site.bind(apply(op, operands));
            let here = Expr::eq(Expr::bitand(bits, Expr::u32(31)), Expr::u32(19));
            Expr::select(here, one_ulp(result.clone()), result)
        });
        list.add(Class::Rounding, format!("{op}.f32-one-ulp-in-32"), Fault::Code(sometimes), witness);
    }
    const LOG2_E: f32 = std::f32::consts::LOG2_E;
    const LN_2: f32 = std::f32::consts::LN_2;
    let composed: [(UnaryOp, &str, Unary); 9] = [
        (UnaryOp::Exp, "by-exp2", |_, _, x| Expr::exp2(Expr::mul(x, Expr::f32(LOG2_E)))),
        (UnaryOp::Exp2, "by-exp", |_, _, x| Expr::exp(Expr::mul(x, Expr::f32(LN_2)))),
        (UnaryOp::Log, "by-log2", |_, _, x| Expr::mul(Expr::log2(x), Expr::f32(LN_2))),
        (UnaryOp::Log2, "by-log", |_, _, x| Expr::mul(Expr::log(x), Expr::f32(LOG2_E))),
        (UnaryOp::Tan, "by-quotient", |_, site, x| {
            let x = site.bind(x);
            Expr::div(Expr::sin(x.clone()), Expr::cos(x))
        }),
        (UnaryOp::Cos, "by-sin", |_, _, x| Expr::sin(Expr::add(x, Expr::f32(std::f32::consts::FRAC_PI_2)))),
        (UnaryOp::Sin, "short-reduction", |_, site, x| {
            // The multiple of 2 pi is taken off in f32.
            let x = site.bind(x);
            let turns = Expr::round(Expr::div(x.clone(), Expr::f32(std::f32::consts::TAU)));
            Expr::sin(Expr::sub(x, Expr::mul(turns, Expr::f32(std::f32::consts::TAU))))
        }),
        (UnaryOp::Tanh, "by-exp", |_, _, x| {
            let twice = Expr::exp(Expr::mul(x, Expr::f32(2.0)));
            Expr::sub(Expr::f32(1.0), Expr::div(Expr::f32(2.0), Expr::add(twice, Expr::f32(1.0))))
        }),
        (UnaryOp::Rsqrt, "by-sqrt", |_, _, x| Expr::div(Expr::f32(1.0), Expr::sqrt(x))),
    ];
    for (op, name, wrong) in composed {
        let change = on_unary(op, Scalar::F32, move |site, x| wrong(Scalar::F32, site, x));
        let witness = move || of_op(OpId::Unary(op), Scalar::F32);
        list.add(Class::Rounding, format!("{op}.f32-{name}"), Fault::Code(change), witness);
    }
    let power = on_binary(BinaryOp::Pow, Scalar::F32, |_, a, b| Expr::exp2(Expr::mul(b, Expr::log2(a))));
    let witness = || of_op(OpId::Binary(BinaryOp::Pow), Scalar::F32);
    list.add(Class::Rounding, "pow.f32-by-exp2", Fault::Code(power), witness);
}

/// The parts of an op on two operands.
fn parts(expr: &Expr, op: BinaryOp) -> Option<(Expr, Expr)> {
    let Expr::Binary { op: here, left, right } = expr else { return None };
    (*here == op).then(|| (Expr::clone(left), Expr::clone(right)))
}

type Rearrange = fn(Scalar, &Expr) -> Option<Expr>;
type Shape = fn(Scalar, Expr, Expr, Expr) -> Expr;

fn is_lit(expr: &Expr, ty: Scalar, x: f32) -> bool {
    *expr == number(ty, x)
}

/// Laws of real numbers that floats do not keep.
fn add_algebra(list: &mut List) {
    use BinaryOp::{Add, Div, Mul, Sub};
    let laws: [(&str, Rearrange, Shape); 13] = [
        (
            "sums-to-the-right",
            |_, e| {
                let (ab, c) = parts(e, Add)?;
                let (a, b) = parts(&ab, Add)?;
                Some(Expr::add(a, Expr::add(b, c)))
            },
            |_, a, b, c| Expr::add(Expr::add(a, b), c),
        ),
        (
            "products-to-the-right",
            |_, e| {
                let (ab, c) = parts(e, Mul)?;
                let (a, b) = parts(&ab, Mul)?;
                Some(Expr::mul(a, Expr::mul(b, c)))
            },
            |_, a, b, c| Expr::mul(Expr::mul(a, b), c),
        ),
        (
            "sum-less-part",
            |_, e| {
                let (ab, c) = parts(e, Sub)?;
                let (a, b) = parts(&ab, Add)?;
                (a == c).then_some(b)
            },
            |_, a, b, _| Expr::sub(Expr::add(a.clone(), b), a),
        ),
        (
            "difference-of-itself",
            |ty, e| parts(e, Sub).filter(|(a, b)| a == b).map(|_| number(ty, 0.0)),
            |_, a, _, _| Expr::sub(a.clone(), a),
        ),
        (
            "quotient-of-itself",
            |ty, e| parts(e, Div).filter(|(a, b)| a == b).map(|_| number(ty, 1.0)),
            |_, a, _, _| Expr::div(a.clone(), a),
        ),
        (
            "plus-zero",
            |ty, e| parts(e, Add).filter(|(_, b)| is_lit(b, ty, 0.0)).map(|(a, _)| a),
            |ty, a, _, _| Expr::add(a, number(ty, 0.0)),
        ),
        (
            "times-zero",
            |ty, e| parts(e, Mul).filter(|(_, b)| is_lit(b, ty, 0.0)).map(|_| number(ty, 0.0)),
            |ty, a, _, _| Expr::mul(a, number(ty, 0.0)),
        ),
        (
            "zero-minus",
            |ty, e| parts(e, Sub).filter(|(a, _)| is_lit(a, ty, 0.0)).map(|(_, b)| Expr::neg(b)),
            |ty, a, _, _| Expr::sub(number(ty, 0.0), a),
        ),
        (
            "distributes",
            |_, e| {
                let (left, right) = parts(e, Add)?;
                let ((a, b), (c, d)) = (parts(&left, Mul)?, parts(&right, Mul)?);
                (a == c).then(|| Expr::mul(a, Expr::add(b, d)))
            },
            |_, a, b, c| Expr::add(Expr::mul(a.clone(), b), Expr::mul(a, c)),
        ),
        (
            "quotient-of-quotient",
            |_, e| {
                let (ab, c) = parts(e, Div)?;
                let (a, b) = parts(&ab, Div)?;
                Some(Expr::div(a, Expr::mul(b, c)))
            },
            |_, a, b, c| Expr::div(Expr::div(a, b), c),
        ),
        (
            "product-over-factor",
            |_, e| {
                let (ab, c) = parts(e, Div)?;
                let (a, b) = parts(&ab, Mul)?;
                (b == c).then_some(a)
            },
            |_, a, b, _| Expr::div(Expr::mul(a, b.clone()), b),
        ),
        (
            "root-of-square",
            |_, e| {
                let Expr::Unary { op: UnaryOp::Sqrt, operand } = e else { return None };
                parts(operand, Mul).filter(|(a, b)| a == b).map(|(a, _)| Expr::abs(a))
            },
            |_, a, _, _| Expr::sqrt(Expr::mul(a.clone(), a)),
        ),
        (
            "not-less-is-greater-or-equal",
            |_, e| {
                let Expr::Unary { op: UnaryOp::Not, operand } = e else { return None };
                parts(operand, BinaryOp::Lt).map(|(a, b)| Expr::ge(a, b))
            },
            |ty, a, b, _| Expr::select(Expr::not(Expr::lt(a, b)), number(ty, 1.0), number(ty, 2.0)),
        ),
    ];
    for (name, rearrange, shape) in laws {
        for ty in TypeSet::FLOAT.iter() {
            let change: Change = on_expr(move |site, expr| {
                let of = operand_type(site);
                rearrange(ty, expr).filter(|_| of == Some(ty))
            });
            let witness = move || {
                of_expr(&[ty, ty, ty], ty, |row| {
                    let [a, b, c] = <[Expr; 3]>::try_from(row).unwrap_or_else(|_| unreachable!("three operands"));
                    shape(ty, a, b, c)
                })
            };
            list.add(Class::Algebra, format!("{name}.{ty}"), Fault::Code(change), witness);
        }
    }
}

/// The type that the numbers of an expression have: its own, or what is compared below a `!`.
fn operand_type(site: &Site<'_>) -> Option<Scalar> {
    use vyre_foundation::kernel::ExprKind;
    let below =
        |kind| if let ExprKind::Unary { op: UnaryOp::Not, operand, .. } = kind { site.kernel.expr(operand).kind } else { kind };
    match below(site.typed()?.kind) {
        ExprKind::Unary { ty, .. } | ExprKind::Binary { ty, .. } => Some(ty),
        ExprKind::Lit { .. }
        | ExprKind::Var { .. }
        | ExprKind::Builtin { .. }
        | ExprKind::Len { .. }
        | ExprKind::Load { .. }
        | ExprKind::Ternary { .. }
        | ExprKind::Cast { .. }
        | ExprKind::Bitcast { .. }
        | ExprKind::Vector { .. }
        | ExprKind::Extract { .. } => None,
    }
}
