//! Ids, counts, lengths and strides that are others.

use super::fault::Fault;
use super::floats::launched;
use super::rewrite::{Change, on_expr};
use super::witness::{case, words};
use super::{Class, List, Witness};
use vyre_foundation::ir::{Axis, BinaryOp, BufferDecl, Builtin, DataType, Expr, Node, Program};
use vyre_foundation::kernel::ExprKind;
use vyre_spec::ValueType;
use vyre_worker::Case;

fn next_axis(axis: Axis) -> Axis {
    match axis {
        Axis::X => Axis::Y,
        Axis::Y => Axis::Z,
        Axis::Z => Axis::X,
    }
}

fn mistaken(builtin: Builtin) -> Builtin {
    match builtin {
        Builtin::Invocation(axis) => Builtin::Invocation(next_axis(axis)),
        Builtin::Workgroup(axis) => Builtin::Workgroup(next_axis(axis)),
        Builtin::Local(axis) => Builtin::Local(next_axis(axis)),
        Builtin::InvocationCount(axis) => Builtin::InvocationCount(next_axis(axis)),
        Builtin::WorkgroupCount(axis) => Builtin::WorkgroupCount(next_axis(axis)),
        Builtin::LocalCount(axis) => Builtin::LocalCount(next_axis(axis)),
        Builtin::SubgroupLane => Builtin::Local(Axis::X),
        Builtin::SubgroupSize => Builtin::LocalCount(Axis::X),
    }
}

fn on_builtin(builtin: Builtin, instead: impl Fn() -> Expr + Send + Sync + 'static) -> Change {
    on_expr(move |_, expr| matches!(expr, Expr::Builtin(here) if *here == builtin).then(&instead))
}

pub(super) fn add(list: &mut List) {
    for builtin in Builtin::ALL {
        let other = mistaken(builtin);
        let change = on_builtin(builtin, move || Expr::builtin(other));
        list.add(Class::Stride, format!("{builtin}-is-{other}"), Fault::Code(change), move || told(builtin));
        let change = on_builtin(builtin, move || Expr::add(Expr::builtin(builtin), Expr::u32(1)));
        list.add(Class::Stride, format!("{builtin}-plus-one"), Fault::Code(change), move || told(builtin));
    }
    type Index = fn(&Expr) -> Option<Expr>;
    fn parts(expr: &Expr, op: BinaryOp) -> Option<(Expr, Expr)> {
        let Expr::Binary { op: here, left, right } = expr else { return None };
        (*here == op).then(|| (Expr::clone(left), Expr::clone(right)))
    }
    let kinds: [(&str, Index); 4] = [
        ("stride-plus-one", |e| parts(e, BinaryOp::Mul).map(|(a, b)| Expr::mul(a, Expr::add(b, Expr::u32(1))))),
        ("stride-minus-one", |e| parts(e, BinaryOp::Mul).map(|(a, b)| Expr::mul(a, Expr::sub(b, Expr::u32(1))))),
        ("offset-dropped", |e| parts(e, BinaryOp::Add).and_then(|(a, _)| parts(&a, BinaryOp::Mul).map(|_| a))),
        ("transposed", |e| {
            let (row, column) = parts(e, BinaryOp::Add)?;
            let (a, b) = parts(&row, BinaryOp::Mul)?;
            Some(Expr::add(Expr::mul(column, b), a))
        }),
    ];
    for (name, index) in kinds {
        let change = on_expr(move |site, expr| index(expr).filter(|_| site.in_index));
        list.add(Class::Stride, format!("index-{name}"), Fault::Code(change), rows);
    }
    type Length = fn(Expr) -> Expr;
    let lengths: [(&str, Length); 4] = [
        ("plus-one", |length| Expr::add(length, Expr::u32(1))),
        ("minus-one", |length| Expr::sub(length, Expr::u32(1))),
        ("rounded-up-to-4", |length| Expr::bitand(Expr::add(length, Expr::u32(3)), Expr::u32(!3))),
        ("rounded-down-to-8", |length| Expr::bitand(length, Expr::u32(!7))),
    ];
    for (name, wrong) in lengths {
        let change = on_expr(move |_, expr| matches!(expr, Expr::Len(_)).then(|| wrong(expr.clone())));
        list.add(Class::Stride, format!("len-{name}"), Fault::Code(change), rows);
    }
    let next = on_expr(|site, expr| {
        let Expr::Extract { vector, component } = expr else { return None };
        let ExprKind::Extract { vector: of, .. } = site.typed()?.kind else { return None };
        let ValueType::Vector(_, count) = site.kernel.expr(of).ty else { return None };
        Some(Expr::extract(Expr::clone(vector), (component + 1) % count))
    });
    list.add(Class::Stride, "component-is-next", Fault::Code(next), vectors);
    let last = on_expr(|_, expr| {
        let Expr::Extract { vector, component } = expr else { return None };
        (*component == 3).then(|| Expr::extract(Expr::clone(vector), 2))
    });
    list.add(Class::Stride, "fourth-component-is-third", Fault::Code(last), vectors);
    let reversed = on_expr(|_, expr| {
        let Expr::Vector { components } = expr else { return None };
        Some(Expr::vector(components.iter().rev().map(|component| Expr::clone(component))))
    });
    list.add(Class::Stride, "components-reversed", Fault::Code(reversed), vectors);
}

/// What every invocation finds out about itself, in a grid of three dimensions.
fn told(builtin: Builtin) -> Witness {
    let text = format!(
        "program ids {{
  workgroup 4 2 3
  subgroup 8
  buffer out: output u32[2000] @0
  out[(gid.z * 8 + gid.y) * 20 + gid.x] = {builtin} * 7 + 3
}}"
    );
    Witness::Cases(vec![launched(case(&text, Vec::new()), [5, 3, 4])])
}

/// Rows of a matrix added up.
fn rows() -> Witness {
    let text = "program rows {
  workgroup 8
  buffer m: read u32 @0
  buffer out: output u32[30] @1
  let sum = len(m)
  for k in 0..9 {
    sum = sum * 3 + m[gid.x * 9 + k]
  }
  if gid.x < len(out) {
    out[gid.x] = sum
  }
}";
    Witness::Cases(vec![launched(case(text, vec![words(9 * 30 + 3, 1000)]), [4, 1, 1])])
}

/// Vectors taken apart and put together.
fn vectors() -> Witness {
    let v = || Expr::load("v", Expr::gid_x());
    let part = |n| Expr::extract(v(), n);
    let sum = Expr::add(Expr::mul(part(0), Expr::u32(3)), Expr::add(Expr::mul(part(3), Expr::u32(5)), part(2)));
    let buffers =
        vec![BufferDecl::read("v", 0, DataType::Vec4U32), BufferDecl::output("out", 1, DataType::Vec4U32).with_count(64)];
    let whole = Expr::vector([sum, part(1), part(2), part(3)]);
    let program = Program::wrapped(buffers, [64, 1, 1], vec![Node::store("out", Expr::gid_x(), whole)]);
    Witness::Cases(vec![Case::new(program, vec![words(256, 1000)])])
}
