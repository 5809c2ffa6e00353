//! The elements beyond a multiple of a vector's width, and the invocations that do not fill one.

use super::arithmetic::lit;
use super::fault::Fault;
use super::index::on_loads;
use super::ops::pure_ops;
use super::rewrite::{Change, Site, on_binary, on_expr, on_node};
use super::witness::{apply, mix, of_op};
use super::{Class, List, Witness};
use vyre_foundation::ir::{Axis, BinaryOp, BufferDecl, Builtin, DataType, Expr, Load, Name, Node, OpId, Program, Scalar};
use vyre_foundation::kernel::Kernel;
use vyre_reference::faults::BulkFault;
use vyre_spec::Storage;
use vyre_worker::Case;

/// Whether an element is beyond the last multiple of a vector's width.
fn in_tail(buffer: &Name, index: Expr, width: u32) -> Expr {
    Expr::ge(index, Expr::bitand(Expr::buf_len(buffer), Expr::u32(!(width - 1))))
}

/// A change of stores to the last elements.
fn tail_stores(wanted: impl Fn(&DataType) -> bool + Send + Sync + 'static, width: u32, dropped: bool) -> Change {
    on_node(move |site, node| {
        let Node::Store(store) = node else { return None };
        let buffer = site.buffer(&store.buffer).filter(|buffer| wanted(&buffer.element))?;
        let zero = lit(buffer.value.scalar()?, 0);
        let index = site.bind(store.index.clone());
        let tail = in_tail(&store.buffer, index.clone(), width);
        if dropped {
            let right = Node::store(&store.buffer, index, store.value.clone());
            return Some(vec![Node::if_then(Expr::not(tail), vec![right])]);
        }
        let value = Expr::select(tail, zero, store.value.clone());
        Some(vec![Node::store(&store.buffer, index, value)])
    })
}

pub(super) fn add(list: &mut List) {
    for element in DataType::KERNEL_SCALARS {
        if matches!(element.storage(), Storage::LoadOnly(_) | Storage::Described) {
            continue;
        }
        let of = element.clone();
        let change = tail_stores(move |here| *here == of, 8, true);
        let of = element.clone();
        list.add(Class::Tail, format!("store.{element}-dropped-beyond-8"), Fault::Code(change), move || pairs_of_63(&of));
    }
    for width in [4, 8, 16, 32] {
        let zero = Fault::Code(tail_stores(|_| true, width, false));
        list.add(Class::Tail, format!("store-zero-beyond-{width}"), zero, || pairs_of_63(&DataType::U32));
        let loads = on_expr(move |site, expr| {
            let Expr::Load(load) = expr else { return None };
            let Load { buffer, index } = &**load;
            let zero = lit(site.scalar()?, 0);
            let index = site.bind(Expr::clone(index));
            Some(Expr::select(in_tail(buffer, index.clone(), width), zero, Expr::load(buffer, index)))
        });
        list.add(Class::Tail, format!("load-zero-beyond-{width}"), Fault::Code(loads), || pairs_of_63(&DataType::U32));
        let first = on_loads(
            |_| true,
            match width {
                4 => |buffer, site, index| repeated(buffer, site, index, 4),
                8 => |buffer, site, index| repeated(buffer, site, index, 8),
                16 => |buffer, site, index| repeated(buffer, site, index, 16),
                _ => |buffer, site, index| repeated(buffer, site, index, 32),
            },
        );
        list.add(Class::Tail, format!("load-repeats-beyond-{width}"), Fault::Code(first), || pairs_of_63(&DataType::U32));
    }
    // The invocations of a workgroup that do not fill a vector compute something else.
    for (op, ty) in pure_ops().flat_map(|op| op.info().over.iter().map(move |ty| (op, ty))) {
        let OpId::Binary(binary) = op else { continue };
        if !matches!(binary, BinaryOp::Add | BinaryOp::Max | BinaryOp::BitXor) || !ty.is_int() && !ty.is_float() {
            continue;
        }
        let change = on_binary(binary, ty, move |site, a, b| {
            let a = site.bind(a);
            let count = Expr::builtin(Builtin::LocalCount(Axis::X));
            let tail = Expr::ge(Expr::lid_x(), Expr::bitand(count, Expr::u32(!7)));
            Expr::select(tail, a.clone(), apply(op, vec![a, b]))
        });
        let witness = move || {
            let Witness::Cases(cases) = of_op(op, ty) else { unreachable!("cases") };
            Witness::Cases(cases.into_iter().map(|case| resized(case, 37)).collect())
        };
        list.add(Class::Tail, format!("{op}.{ty}-last-lanes"), Fault::Code(change), witness);
    }
    for fault in [BulkFault::TailComputed, BulkFault::TailLoaded, BulkFault::TailStored] {
        let shows = |kernel: &Kernel| !kernel.accesses.is_empty();
        list.add(Class::Tail, format!("lanes-{}", fault.name()), Fault::Evaluator(fault, shows), || {
            let Witness::Cases(cases) = of_op(OpId::Binary(BinaryOp::Add), Scalar::U32) else { unreachable!("cases") };
            Witness::Cases(cases.into_iter().map(|case| resized(case, 37)).collect())
        });
    }
}

fn repeated(buffer: &Name, site: &mut Site<'_>, index: Expr, width: u32) -> Expr {
    let index = site.bind(index);
    let start = Expr::bitand(Expr::buf_len(buffer), Expr::u32(!(width - 1)));
    Expr::select(in_tail(buffer, index.clone(), width), start, index)
}

/// The case in workgroups of another size.
pub(super) fn resized(mut case: Case, size: u32) -> Case {
    case.program = case.program.edit(|parts| parts.workgroup = [size.into(), 1.into(), 1.into()]);
    case
}

/// 63 elements copied.
fn pairs_of_63(element: &DataType) -> Witness {
    let buffers = vec![BufferDecl::read("a", 0, element.clone()), BufferDecl::output("b", 1, element.clone()).with_count(63)];
    let body = vec![Node::store("b", Expr::gid_x(), Expr::load("a", Expr::gid_x()))];
    let bytes = 63 * element.bits().unwrap_or(32) as usize / 8;
    let cells = (0..bytes).map(|n| (mix(n as u64) >> 9) as u8 & 0x77 | 1).collect();
    Witness::Cases(vec![Case::new(Program::wrapped(buffers, [64, 1, 1], body), vec![cells])])
}
