//! Floats that are not kept as they are: NaN, subnormal numbers, and products that are contracted with sums.

use super::arithmetic::lit;
use super::fault::Fault;
use super::ops::{differ, on_op, pure_ops, value};
use super::rewrite::{Change, Site, on_binary, on_cast, on_expr, on_node, on_parts, on_ternary};
use super::witness::{apply, case, mix, noise, of_expr, of_op, signature};
use super::{Class, List, Witness, witness};
use vyre_foundation::ir::{BinaryOp, Expr, FloatMode, Node, OpId, Scalar, TernaryOp};
use vyre_foundation::kernel::ExprKind;
use vyre_spec::TypeSet;

pub(super) fn add(list: &mut List) {
    add_nan(list);
    add_flush(list);
    add_fma(list);
}

pub(super) fn nan(ty: Scalar) -> u64 {
    if ty == Scalar::F32 { 0x7FC0_0000 } else { 0x7FF8_0000_0000_0000 }
}

fn is_nan_bits(ty: Scalar, bits: u64) -> bool {
    let magnitude = bits & !(1 << (ty.bits() - 1));
    magnitude > if ty == Scalar::F32 { 0x7F80_0000 } else { 0x7FF0_0000_0000_0000 }
}

/// The smallest number that is not subnormal.
pub(super) fn first_normal(ty: Scalar) -> u64 {
    if ty == Scalar::F32 { 0x0080_0000 } else { 0x0010_0000_0000_0000 }
}

fn any_nan(site: &mut Site<'_>, operands: &[Expr]) -> Expr {
    let tests = operands.iter().map(|operand| Expr::is_nan(operand.clone()));
    let test = tests.reduce(Expr::or).unwrap_or_else(|| Expr::bool(false));
    site.bind(test)
}

/// The ops whose operands are all floats of one type.
fn float_ops() -> impl Iterator<Item = (OpId, Scalar)> {
    let all = pure_ops().flat_map(|op| op.info().over.iter().map(move |ty| (op, ty)));
    all.filter(|(op, ty)| ty.is_float() && signature(*op, *ty).0.iter().all(|operand| operand == ty))
}

fn add_nan(list: &mut List) {
    for (op, ty) in float_ops() {
        let (types, result) = signature(op, ty);
        let has_nan = |row: &[u64]| row.iter().any(|bits| is_nan_bits(ty, *bits));
        // What it gives where an operand is NaN.
        let instead: &[(&str, u64)] = match result {
            Scalar::Bool => &[("is-true", 1), ("is-false", 0)],
            Scalar::U32 | Scalar::I32 | Scalar::U64 | Scalar::I64 => &[],
            Scalar::F32 | Scalar::F64 => &[("is-zero", 0), ("is-nan", u64::MAX)],
        };
        for (name, bits) in instead.iter().copied() {
            let bits = if bits == u64::MAX { nan(result) } else { bits };
            let wrong = |row: &[u64]| if has_nan(row) { bits } else { value(op, ty, row) };
            if !differ(&types, |row| value(op, ty, row), wrong) {
                continue;
            }
            let change = on_op(op, ty, move |site, operands| {
                let operands: Vec<Expr> = operands.into_iter().map(|operand| site.bind(operand)).collect();
                let test = any_nan(site, &operands);
                Expr::select(test, lit(result, bits), apply(op, operands))
            });
            list.add(Class::Nan, format!("{op}.{ty}-of-nan-{name}"), Fault::Code(change), move || of_op(op, ty));
        }
    }
    for ty in TypeSet::FLOAT.iter() {
        // As a comparison and a choice.
        for (op, compare) in [(BinaryOp::Min, BinaryOp::Lt), (BinaryOp::Max, BinaryOp::Gt)] {
            let chosen = move |site: &mut Site<'_>, a: Expr, b: Expr| {
                let (a, b) = (site.bind(a), site.bind(b));
                Expr::select(Expr::binary(compare, a.clone(), b.clone()), a, b)
            };
            let name = format!("{op}.{ty}-by-comparison");
            list.add(Class::Nan, name, Fault::Code(on_binary(op, ty, chosen)), move || of_op(OpId::Binary(op), ty));
        }
        let bits = ty.unsigned();
        let signed = on_bitcast(ty, bits, move |site, x| {
            let x = site.bind(x);
            let wrong = lit(bits, nan(ty) | 1 << (ty.bits() - 1));
            Expr::select(Expr::is_nan(x.clone()), wrong, Expr::bitcast(bits, x))
        });
        let quotients = move || of_expr(&[ty, ty], bits, |row| Expr::bitcast(bits, apply(OpId::Binary(BinaryOp::Div), row)));
        list.add(Class::Nan, format!("bitcast.{ty}-has-sign"), Fault::Code(signed), quotients);
        let payload = on_bitcast(ty, bits, move |site, x| {
            let x = site.bind(x);
            Expr::select(Expr::is_nan(x.clone()), lit(bits, nan(ty) | 1), Expr::bitcast(bits, x))
        });
        list.add(Class::Nan, format!("bitcast.{ty}-has-payload"), Fault::Code(payload), quotients);
        // x == x is what compilers take for granted.
        let itself = on_expr(move |site, expr| {
            let ExprKind::Binary { op: BinaryOp::Eq, ty: of, .. } = site.typed()?.kind else { return None };
            let Expr::Binary { left, right, .. } = expr else { return None };
            (of == ty && left == right).then(|| Expr::bool(true))
        });
        let same = move || {
            of_expr(&[ty], Scalar::Bool, |row| row.into_iter().next().map_or(Expr::bool(false), |x| Expr::eq(x.clone(), x)))
        };
        list.add(Class::Nan, format!("{ty}-equals-itself"), Fault::Code(itself), same);
    }
}

fn on_bitcast(from: Scalar, to: Scalar, change: impl Fn(&mut Site<'_>, Expr) -> Expr + Send + Sync + 'static) -> Change {
    on_expr(move |site, expr| {
        let ExprKind::Bitcast { from: of, to: into, .. } = site.typed()?.kind else { return None };
        let Expr::Bitcast { value, .. } = expr else { return None };
        ((of, into) == (from, to)).then(|| change(site, Expr::clone(value)))
    })
}

/// The number, or a zero of its sign if it is subnormal.
pub(super) fn flushed(site: &mut Site<'_>, ty: Scalar, x: Expr) -> Expr {
    let x = site.bind(x);
    let small = Expr::lt(Expr::abs(x.clone()), lit(ty, first_normal(ty)));
    Expr::select(small, Expr::copysign(lit(ty, 0), x.clone()), x)
}

fn flushed_bits(ty: Scalar, bits: u64) -> u64 {
    let sign = 1 << (ty.bits() - 1);
    if bits & !sign < first_normal(ty) { bits & sign } else { bits }
}

fn add_flush(list: &mut List) {
    for (op, ty) in float_ops() {
        let (types, result) = signature(op, ty);
        let right = |row: &[u64]| value(op, ty, row);
        if result == ty && differ(&types, right, |row| flushed_bits(ty, value(op, ty, row))) {
            let change = on_op(op, ty, move |site, operands| flushed(site, ty, apply(op, operands)));
            list.add(Class::Flush, format!("{op}.{ty}-result"), Fault::Code(change), move || of_op(op, ty));
        }
        let zeroed = |row: &[u64]| {
            let row: Vec<u64> = row.iter().map(|bits| flushed_bits(ty, *bits)).collect();
            value(op, ty, &row)
        };
        if differ(&types, right, zeroed) {
            let change = on_op(op, ty, move |site, operands| {
                let operands = operands.into_iter().map(|operand| flushed(site, ty, operand)).collect();
                apply(op, operands)
            });
            list.add(Class::Flush, format!("{op}.{ty}-operands"), Fault::Code(change), move || of_op(op, ty));
        }
    }
    for ty in TypeSet::FLOAT.iter() {
        let load = on_expr(move |site, expr| {
            let of = site.scalar();
            matches!(expr, Expr::Load(_)).then_some(()).filter(|()| of == Some(ty))?;
            Some(flushed(site, ty, expr.clone()))
        });
        let copied = move || of_expr(&[ty], ty, |row| row.into_iter().next().unwrap_or_else(|| lit(ty, 0)));
        list.add(Class::Flush, format!("load.{ty}"), Fault::Code(load), copied);
        let store = on_node(move |site, node| {
            let Node::Store(store) = node else { return None };
            let value = site.buffer(&store.buffer)?.value.scalar();
            (value == Some(ty)).then(|| {
                let mut changed = store.clone();
                changed.value = flushed(site, ty, store.value.clone());
                vec![Node::Store(changed)]
            })
        });
        list.add(Class::Flush, format!("store.{ty}"), Fault::Code(store), copied);
        // Half of it: what `floats canonical` demands is forgotten, and what `floats ieee` forbids is done.
        for (name, from, to) in
            [("ignored", FloatMode::Canonical, FloatMode::Ieee), ("everywhere", FloatMode::Ieee, FloatMode::Canonical)]
        {
            if ty == Scalar::F64 {
                continue;
            }
            let change = on_parts(move |parts, kernel| {
                let is_float = |ty: vyre_spec::ValueType| {
                    matches!(
                        ty,
                        vyre_spec::ValueType::Scalar(Scalar::F32 | Scalar::F64) | vyre_spec::ValueType::Vector(Scalar::F32, _)
                    )
                };
                let uses = parts.floats == from && kernel.exprs.iter().any(|expr| is_float(expr.ty));
                if uses {
                    parts.floats = to;
                }
                uses
            });
            let products = move || {
                let Witness::Cases(cases) = of_op(OpId::Binary(BinaryOp::Mul), ty) else { unreachable!("cases") };
                let with = |mut case: vyre_worker::Case| {
                    case.program = case.program.with_floats(from);
                    case
                };
                Witness::Cases(cases.into_iter().map(with).collect())
            };
            list.add(Class::Flush, format!("canonical-{name}"), Fault::Code(change), products);
        }
    }
    let narrow = on_cast(Scalar::F64, Scalar::F32, |site, x| flushed(site, Scalar::F32, Expr::cast(Scalar::F32, x)));
    let cast = |from: Scalar, to: Scalar| {
        move || of_expr(&[from], to, |row| Expr::cast(to, row.into_iter().next().unwrap_or_else(|| lit(from, 0))))
    };
    list.add(Class::Flush, "cast.f64-f32", Fault::Code(narrow), cast(Scalar::F64, Scalar::F32));
    let widen = on_cast(Scalar::F32, Scalar::F64, |site, x| Expr::cast(Scalar::F64, flushed(site, Scalar::F32, x)));
    list.add(Class::Flush, "cast.f32-f64", Fault::Code(widen), cast(Scalar::F32, Scalar::F64));
}

/// The factors of a product.
fn product(expr: &Expr) -> Option<(Expr, Expr)> {
    let Expr::Binary { op: BinaryOp::Mul, left, right } = expr else { return None };
    Some((Expr::clone(left), Expr::clone(right)))
}

/// An expression of three operands.
type Three = fn(Expr, Expr, Expr) -> Expr;

/// What a sum or a difference of two operands is contracted to.
type Contract = fn(BinaryOp, &Expr, &Expr) -> Option<Expr>;

fn add_fma(list: &mut List) {
    use BinaryOp::{Add, Sub};
    let contractions: [(&str, Contract, Three); 5] = [
        (
            "product-plus",
            |op, left, right| product(left).filter(|_| op == Add).map(|(a, b)| Expr::fma(a, b, right.clone())),
            |a, b, c| Expr::add(Expr::mul(a, b), c),
        ),
        (
            "plus-product",
            |op, left, right| product(right).filter(|_| op == Add).map(|(a, b)| Expr::fma(a, b, left.clone())),
            |a, b, c| Expr::add(c, Expr::mul(a, b)),
        ),
        (
            "product-minus",
            |op, left, right| product(left).filter(|_| op == Sub).map(|(a, b)| Expr::fma(a, b, Expr::neg(right.clone()))),
            |a, b, c| Expr::sub(Expr::mul(a, b), c),
        ),
        (
            "minus-product",
            |op, left, right| product(right).filter(|_| op == Sub).map(|(a, b)| Expr::fma(Expr::neg(a), b, left.clone())),
            |a, b, c| Expr::sub(c, Expr::mul(a, b)),
        ),
        (
            "two-products",
            |op, left, right| {
                product(right)?;
                product(left).filter(|_| op == Add).map(|(a, b)| Expr::fma(a, b, right.clone()))
            },
            |a, b, c| Expr::add(Expr::mul(a.clone(), b), Expr::mul(a, c)),
        ),
    ];
    for ty in TypeSet::FLOAT.iter() {
        for (name, contract, shape) in contractions {
            let change = on_expr(move |site, expr| {
                let Expr::Binary { op, left, right } = expr else { return None };
                contract(*op, left, right).filter(|_| site.scalar() == Some(ty))
            });
            let witness = move || of_three(ty, shape);
            list.add(Class::Fma, format!("contracts-{name}.{ty}"), Fault::Code(change), witness);
        }
        let accumulates = on_node(move |site, node| {
            let Node::Assign { name, value } = node else { return None };
            let Expr::Binary { op: Add, left, right } = &**value else { return None };
            let of = site.kernel.vars.iter().find(|var| var.name == *name)?.ty.scalar();
            let (a, b) = product(right).filter(|_| of == Some(ty) && site.loops > 0)?;
            Some(vec![Node::assign(name, Expr::fma(a, b, Expr::clone(left)))])
        });
        list.add(Class::Fma, format!("contracts-sums-in-loops.{ty}"), Fault::Code(accumulates), move || dot(ty));
        let named = on_node(move |site, node| contracted_name(site, node, ty));
        list.add(Class::Fma, format!("contracts-named-products.{ty}"), Fault::Code(named), move || dot_named(ty));
        type Split = fn(Scalar, &mut Site<'_>, [Expr; 3]) -> Expr;
        let splits: [(&str, Split); 5] = [
            ("split", |_, _, [a, b, c]| Expr::add(Expr::mul(a, b), c)),
            ("loses-plus-zero", |ty, site, [a, b, c]| {
                let (a, b, c) = (site.bind(a), site.bind(b), site.bind(c));
                Expr::select(Expr::eq(c.clone(), lit(ty, 0)), Expr::mul(a.clone(), b.clone()), Expr::fma(a, b, c))
            }),
            ("flushes-product", |ty, site, [a, b, c]| {
                let (a, b, c) = (site.bind(a), site.bind(b), site.bind(c));
                let product = site.bind(Expr::mul(a.clone(), b.clone()));
                let tiny = Expr::lt(Expr::abs(product), lit(ty, first_normal(ty)));
                Expr::select(tiny, c.clone(), Expr::fma(a, b, c))
            }),
            ("overflows-product", |_, site, [a, b, c]| {
                let (a, b, c) = (site.bind(a), site.bind(b), site.bind(c));
                let product = site.bind(Expr::mul(a.clone(), b.clone()));
                Expr::select(Expr::is_inf(product.clone()), Expr::add(product, c.clone()), Expr::fma(a, b, c))
            }),
            ("negates-sum", |_, _, [a, b, c]| Expr::fma(a, b, Expr::neg(c))),
        ];
        for (name, split) in splits {
            let change = on_ternary(TernaryOp::Fma, ty, move |site, operands| split(ty, site, operands));
            list.add(Class::Fma, format!("fma.{ty}-{name}"), Fault::Code(change), move || of_three(ty, Expr::fma));
        }
    }
    let wide = on_ternary(TernaryOp::Fma, Scalar::F32, |_, operands| {
        let [a, b, c] = operands.map(|operand| Expr::cast(Scalar::F64, operand));
        Expr::cast(Scalar::F32, Expr::add(Expr::mul(a, b), c))
    });
    list.add(Class::Fma, "fma.f32-in-f64", Fault::Code(wide), || of_three(Scalar::F32, Expr::fma));
}

/// A sum whose second part is a name for a product, contracted across the name.
fn contracted_name(site: &mut Site<'_>, node: &Node, ty: Scalar) -> Option<Vec<Node>> {
    let Node::Block(body) = node else { return None };
    let [Node::Let { name, value }, Node::Assign { name: sum, value: total }] = &body[..] else { return None };
    let Expr::Binary { op: BinaryOp::Add, left, right } = &**total else { return None };
    let of = site.kernel.vars.iter().find(|var| var.name == *name)?.ty.scalar();
    let (a, b) = product(value).filter(|_| of == Some(ty) && matches!(&**right, Expr::Var(used) if used == name))?;
    Some(vec![Node::assign(sum, Expr::fma(a, b, Expr::clone(left)))])
}

/// Three operands: edges and noise, and products whose halves of a last place are decided by what is added.
fn of_three(ty: Scalar, shape: Three) -> Witness {
    let mut columns = witness::operands(&[ty, ty, ty]);
    let fraction = if ty == Scalar::F32 { 23 } else { 52 };
    let one = if ty == Scalar::F32 { 0x3F80_0000 } else { 0x3FF0_0000_0000_0000u64 };
    for n in 0..200u64 {
        // (1 + 2^-12) * (1 + 2^-12) - about itself, and 1 * (1 + last place) with half of it and a bit more.
        let half = one | 1 << (fraction / 2 - (n % 3));
        columns[0].push(half);
        columns[1].push(half | (mix(n) % 8));
        columns[2].push(noise(ty, n) & !(1 << (ty.bits() - 1)));
    }
    if ty == Scalar::F32 {
        // The products are half of a last place above a number; what is added decides, and is less than an f64 can tell.
        columns[0].extend([0x3F80_0001, 0x3F80_0003]);
        columns[1].extend([0x3FC0_0000, 0x3FC0_0000]);
        columns[2].extend([0x8000_0001, 0x0000_0001]);
    }
    witness::of_operands(&[ty, ty, ty], columns, ty, |row| {
        let [a, b, c] = <[Expr; 3]>::try_from(row).unwrap_or_else(|_| unreachable!("three operands"));
        shape(a, b, c)
    })
}

fn dot_inputs(ty: Scalar) -> Vec<Vec<u8>> {
    let column = |seed: u64| (0..512).map(|n| noise(ty, 4 * (mix(n ^ seed) >> 8) + 1)).collect::<Vec<u64>>();
    vec![witness::bytes(ty, &column(1)), witness::bytes(ty, &column(2))]
}

/// Sums of products in a loop.
fn dot(ty: Scalar) -> Witness {
    let zero = if ty == Scalar::F32 { "0.0" } else { "0.0d" };
    let text = format!(
        "program dot {{
  workgroup 8
  buffer a: read {ty} @0
  buffer b: read {ty} @1
  buffer out: output {ty}[32] @2
  let sum = {zero}
  for k in 0..16 {{
    sum = sum + a[gid.x * 16 + k] * b[gid.x * 16 + k]
  }}
  out[gid.x] = sum
}}"
    );
    Witness::Cases(vec![launched(case(&text, dot_inputs(ty)), [4, 1, 1])])
}

/// The same, each product with a name.
fn dot_named(ty: Scalar) -> Witness {
    let zero = if ty == Scalar::F32 { "0.0" } else { "0.0d" };
    let text = format!(
        "program dot {{
  workgroup 8
  buffer a: read {ty} @0
  buffer b: read {ty} @1
  buffer out: output {ty}[32] @2
  let sum = {zero}
  for k in 0..16 {{
    {{
      let part = a[gid.x * 16 + k] * b[gid.x * 16 + k]
      sum = sum + part
    }}
  }}
  out[gid.x] = sum
}}"
    );
    Witness::Cases(vec![launched(case(&text, dot_inputs(ty)), [4, 1, 1])])
}

/// The case on so many workgroups.
pub(super) fn launched(mut case: vyre_worker::Case, grid: [u32; 3]) -> vyre_worker::Case {
    case.config.grid_override = Some(grid);
    case
}
