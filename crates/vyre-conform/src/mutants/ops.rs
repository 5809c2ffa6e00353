//! Ops that are other ops: every row of the op tables on every type, and what it is mistaken for.

use super::fault::Fault;
use super::rewrite::{Change, on_binary, on_expr, on_node, on_ternary, on_unary};
use super::witness::{apply, edges, of_op, operands, signature};
use super::{Class, List, Witness, witness};
use vyre_foundation::ir::{AtomicOp, BufferDecl, Expr, Literal, Node, OpId, Program, Scalar, SubgroupOp};
use vyre_scalar::{binary, ternary, unary};
use vyre_spec::{FloatMode, Law, OpInfo, Operand, ResultRule};
use vyre_worker::Case;

/// What replaces an op is the next of its signature in the table, and the one behind it.
const REPLACEMENTS: usize = 2;

pub(super) fn add(list: &mut List) {
    for op in pure_ops() {
        for ty in op.info().over.iter() {
            let class = if is_comparison(op) { Class::Comparison } else { Class::Operator };
            let instead = replacements(op, ty);
            for other in &instead {
                let other = *other;
                list.add(class, format!("{op}.{ty}-is-{other}"), Fault::Code(replaced(op, ty, other)), move || of_op(op, ty));
            }
            if instead.is_empty() {
                list.add(class, format!("{op}.{ty}-low-bit"), Fault::Code(low_bit(op, ty)), move || of_op(op, ty));
            }
            if swaps(op, ty) {
                list.add(class, format!("{op}.{ty}-swapped"), Fault::Code(swapped(op, ty)), move || of_op(op, ty));
            }
        }
    }
    add_atomics(list);
    add_subgroups(list);
}

/// Every op that is an expression.
pub(super) fn pure_ops() -> impl Iterator<Item = OpId> {
    OpId::all().filter(|op| matches!(op, OpId::Unary(_) | OpId::Binary(_) | OpId::Ternary(_)))
}

/// What an op gives, in numbers.
pub(super) fn value(op: OpId, ty: Scalar, operands: &[u64]) -> u64 {
    let mode = FloatMode::Ieee;
    match (op, operands) {
        (OpId::Unary(op), [a]) => unary(op, ty, mode, *a),
        (OpId::Binary(op), [a, b]) => binary(op, ty, mode, *a, *b),
        (OpId::Ternary(op), [a, b, c]) => ternary(op, ty, mode, *a, *b, *c),
        (OpId::Unary(_) | OpId::Binary(_) | OpId::Ternary(_) | OpId::Atomic(_) | OpId::Subgroup(_), _) => {
            unreachable!("a pure op on its operands")
        }
    }
}

/// Whether two functions differ on operands of these types that are worth trying.
pub(super) fn differ(types: &[Scalar], one: impl Fn(&[u64]) -> u64, other: impl Fn(&[u64]) -> u64) -> bool {
    let columns = operands(types);
    (0..columns[0].len()).any(|n| {
        let row: Vec<u64> = columns.iter().map(|column| column[n]).collect();
        one(&row) != other(&row)
    })
}

/// A comparison gives a bool and takes two of something else or of bools.
fn is_comparison(op: OpId) -> bool {
    op.info().result == ResultRule::Fixed(Scalar::Bool) && op.info().operands.len() == 2
}

fn same_signature(a: &OpInfo, b: &OpInfo, ty: Scalar) -> bool {
    b.over.contains(ty) && a.operands == b.operands && a.result_type(ty) == b.result_type(ty)
}

fn replacements(op: OpId, ty: Scalar) -> Vec<OpId> {
    let all: Vec<OpId> = pure_ops().filter(|other| same_signature(op.info(), other.info(), ty)).collect();
    let at = all.iter().position(|other| *other == op).unwrap_or(0);
    let (types, _) = signature(op, ty);
    let others = (1..all.len()).map(|n| all[(at + n) % all.len()]);
    let differs = |other: &OpId| differ(&types, |row| value(op, ty, row), |row| value(*other, ty, row));
    others.filter(differs).take(REPLACEMENTS).collect()
}

/// A change of an op on one type, whatever its family.
pub(super) fn on_op(
    op: OpId,
    ty: Scalar,
    change: impl Fn(&mut super::rewrite::Site<'_>, Vec<Expr>) -> Expr + Send + Sync + 'static,
) -> Change {
    match op {
        OpId::Unary(op) => on_unary(op, ty, move |site, a| change(site, vec![a])),
        OpId::Binary(op) => on_binary(op, ty, move |site, a, b| change(site, vec![a, b])),
        OpId::Ternary(op) => on_ternary(op, ty, move |site, operands| change(site, operands.into())),
        OpId::Atomic(_) | OpId::Subgroup(_) => on_expr(|_, _| None),
    }
}

fn replaced(op: OpId, ty: Scalar, other: OpId) -> Change {
    on_op(op, ty, move |_, operands| apply(other, operands))
}

fn low_bit(op: OpId, ty: Scalar) -> Change {
    let result = signature(op, ty).1;
    on_op(op, ty, move |_, operands| flipped(result, apply(op, operands)))
}

/// The value with its lowest bit flipped.
pub(super) fn flipped(ty: Scalar, value: Expr) -> Expr {
    let one = |ty| Expr::Lit(Literal::from_bits(ty, 1));
    match ty {
        Scalar::Bool => Expr::not(value),
        Scalar::U32 | Scalar::I32 | Scalar::U64 | Scalar::I64 => Expr::bitxor(value, one(ty)),
        Scalar::F32 | Scalar::F64 => {
            let bits = ty.unsigned();
            Expr::bitcast(ty, Expr::bitxor(Expr::bitcast(bits, value), one(bits)))
        }
    }
}

fn swaps(op: OpId, ty: Scalar) -> bool {
    let info = op.info();
    let [.., a, b] = info.operands else { return false };
    if info.law == Law::Commutes || (*a, *b) != (Operand::T, Operand::T) {
        return false;
    }
    let (types, _) = signature(op, ty);
    let exchanged = |row: &[u64]| {
        let mut row = row.to_vec();
        let last = row.len() - 1;
        row.swap(last - 1, last);
        value(op, ty, &row)
    };
    differ(&types, |row| value(op, ty, row), exchanged)
}

fn swapped(op: OpId, ty: Scalar) -> Change {
    on_op(op, ty, move |_, mut operands| {
        let last = operands.len() - 1;
        operands.swap(last - 1, last);
        apply(op, operands)
    })
}

fn add_atomics(list: &mut List) {
    for op in AtomicOp::ALL.iter().copied() {
        for ty in op.info().over.iter() {
            let all: Vec<AtomicOp> =
                AtomicOp::ALL.iter().copied().filter(|other| same_signature(op.info(), other.info(), ty)).collect();
            let at = all.iter().position(|other| *other == op).unwrap_or(0);
            let other = all[(at + 1) % all.len()];
            if other != op {
                let change = on_node(move |site, node| {
                    let Node::Atomic(atomic) = node else { return None };
                    let of = site.buffer(&atomic.buffer)?.value.scalar();
                    (atomic.op == op && of == Some(ty)).then(|| {
                        let mut changed = atomic.clone();
                        changed.op = other;
                        vec![Node::Atomic(changed)]
                    })
                });
                let name = format!("atomic.{op}.{ty}-is-{other}");
                list.add(Class::Operator, name, Fault::Code(change), move || alone(op, ty));
            }
        }
    }
}

/// One atomic for each element, by one invocation each: nothing depends on the order.
pub(super) fn alone(op: AtomicOp, ty: Scalar) -> Witness {
    let values = edges(ty);
    let pairs: Vec<(u64, u64)> = values.iter().flat_map(|a| values.iter().map(|b| (*a, *b))).collect();
    let (cells, operand): (Vec<u64>, Vec<u64>) = pairs.into_iter().unzip();
    let element = witness::element(ty);
    let load = || Expr::load("x", Expr::gid_x());
    let operands = vec![load(), Expr::add(load(), Expr::Lit(Literal::from_bits(ty, 5)))];
    let operands: Vec<Expr> = operands.into_iter().take(op.info().operands.len()).collect();
    let buffers = vec![
        BufferDecl::read_write("cells", 0, element.clone()),
        BufferDecl::read("x", 1, element.clone()),
        BufferDecl::output("old", 2, element).with_count(cells.len() as u32),
    ];
    let body = match op.info().result {
        ResultRule::None => vec![Node::atomic(op, "cells", Expr::gid_x(), operands)],
        ResultRule::T | ResultRule::Fixed(_) | ResultRule::UnsignedT => vec![
            Node::let_atomic("was", op, "cells", Expr::gid_x(), operands),
            Node::store("old", Expr::gid_x(), Expr::var("was")),
        ],
    };
    let program = Program::wrapped(buffers, [64, 1, 1], body);
    Witness::Cases(vec![Case::new(program, vec![witness::bytes(ty, &cells), witness::bytes(ty, &operand)])])
}

fn add_subgroups(list: &mut List) {
    for op in SubgroupOp::ALL.iter().copied() {
        // The first and the last of the types that it has are enough: what lanes exchange does not depend on the type.
        let types: Vec<Scalar> = op.info().over.iter().collect();
        let mut types: Vec<Scalar> = types.first().into_iter().chain(types.last()).copied().collect();
        types.dedup();
        for ty in types {
            let all: Vec<SubgroupOp> =
                SubgroupOp::ALL.iter().copied().filter(|other| same_signature(op.info(), other.info(), ty)).collect();
            let at = all.iter().position(|other| *other == op).unwrap_or(0);
            let others = (1..all.len()).map(|n| all[(at + n) % all.len()]);
            // A broadcast is a shuffle from a lane that all name.
            let Some(other) = others.filter(|other| other.shape() != op.shape()).find(|other| *other != SubgroupOp::Broadcast)
            else {
                continue;
            };
            let change = on_node(move |site, node| {
                let Node::Subgroup(subgroup) = node else { return None };
                let of = site.subgroup_type()?;
                (subgroup.op == op && of == ty).then(|| {
                    let mut changed = subgroup.clone();
                    changed.op = other;
                    vec![Node::Subgroup(changed)]
                })
            });
            list.add(Class::Operator, format!("subgroup.{op}.{ty}-is-{other}"), Fault::Code(change), move || lanes(op, ty));
        }
    }
}

/// One exchange in subgroups of eight.
pub(super) fn lanes(op: SubgroupOp, ty: Scalar) -> Witness {
    let result = op.info().result_type(ty).unwrap_or(ty);
    let values: Vec<u64> = (0..256).map(|n| witness::noise(ty, n + 3)).collect();
    let by: Vec<u64> = (0..256).map(|n| witness::mix(n) % 9).collect();
    let named = if op == SubgroupOp::Broadcast { Expr::u32(3) } else { Expr::load("by", Expr::gid_x()) };
    let operands: Vec<Expr> = [Expr::load("x", Expr::gid_x()), named].into_iter().take(op.info().operands.len()).collect();
    let buffers = vec![
        BufferDecl::read("x", 0, witness::element(ty)),
        BufferDecl::read("by", 1, witness::element(Scalar::U32)),
        BufferDecl::output("out", 2, witness::element(result)).with_count(256),
    ];
    let body = vec![Node::let_subgroup("got", op, operands), Node::store("out", Expr::gid_x(), Expr::var("got"))];
    let program = Program::wrapped(buffers, [64, 1, 1], body).with_subgroup(8);
    Witness::Cases(vec![Case::new(program, vec![witness::bytes(ty, &values), witness::bytes(Scalar::U32, &by)])])
}
