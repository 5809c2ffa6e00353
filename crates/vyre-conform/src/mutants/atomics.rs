//! Atomics that are none: a load and a store, with everything in between that others do; and what they give back.

use super::arithmetic::lit;
use super::fault::Fault;
use super::floats::launched;
use super::ops::alone;
use super::rewrite::on_node;
use super::witness::{case, words};
use super::{Class, List, Witness};
use vyre_foundation::ir::{Atomic, AtomicOp, Axis, Builtin, Expr, Node, Scalar};
use vyre_foundation::kernel::Kernel;
use vyre_reference::faults::BulkFault;

pub(super) fn add(list: &mut List) {
    for op in AtomicOp::ALL.iter().copied() {
        for ty in op.info().over.iter() {
            add_none(list, op, ty);
            add_results(list, op, ty);
        }
    }
    // Workgroup memory has atomics of its own on most devices.
    let shared = changed(AtomicOp::Add, None, |site, atomic| {
        let shared = site.buffer(&atomic.buffer)?.access == vyre_foundation::ir::Access::Workgroup;
        torn(site, atomic).filter(|_| shared)
    });
    list.add(Class::Atomic, "add-is-none-in-workgroup-memory", Fault::Code(shared), || crowd(AtomicOp::Add, Scalar::U32, true));
    let weak = changed(AtomicOp::CompareExchange, None, |_, atomic| {
        // It fails for no reason in one invocation of four, and gives what it found.
        let spurious = Expr::eq(Expr::bitand(Expr::gid_x(), Expr::u32(3)), Expr::u32(3));
        let was = atomic.result.clone()?;
        let read = Node::let_atomic(&was, AtomicOp::Load, &atomic.buffer, atomic.index.clone(), Vec::new());
        let mut quiet = atomic.clone();
        quiet.result = None;
        Some(vec![read, Node::if_then(Expr::not(spurious), vec![quiet.into()])])
    });
    let on_its_own = || alone(AtomicOp::CompareExchange, Scalar::U32);
    list.add(Class::Atomic, "compare_exchange-fails-for-no-reason", Fault::Code(weak), || {
        let Witness::Cases(mut cases) = crowd(AtomicOp::CompareExchange, Scalar::U32, false) else { unreachable!("cases") };
        if let Witness::Cases(more) = matching(Scalar::U32) {
            cases.extend(more);
        }
        Witness::Cases(cases)
    });
    let always = changed(AtomicOp::CompareExchange, None, |_, atomic| {
        let mut plain = atomic.clone();
        plain.op = AtomicOp::Exchange;
        plain.operands = vec![atomic.operands.get(1)?.clone()];
        Some(vec![plain.into()])
    });
    list.add(Class::Atomic, "compare_exchange-always-writes", Fault::Code(always), on_its_own);
    for (name, op) in [("last-lane-lost", AtomicOp::Add), ("last-lane-lost-xor", AtomicOp::Xor)] {
        let lost = changed(op, None, |_, atomic| {
            if atomic.result.is_some() {
                return None;
            }
            let count = Expr::builtin(Builtin::LocalCount(Axis::X));
            let last = Expr::eq(Expr::add(Expr::lid_x(), Expr::u32(1)), count);
            Some(vec![Node::if_then(Expr::not(last), vec![atomic.clone().into()])])
        });
        list.add(Class::Atomic, name, Fault::Code(lost), move || crowd(op, Scalar::U32, false));
    }
    for fault in [BulkFault::AtomicOnce, BulkFault::AtomicMask] {
        list.add(Class::Atomic, format!("lanes-{}", fault.name()), Fault::Evaluator(fault, has_atomics), || {
            crowd(AtomicOp::Add, Scalar::U32, false)
        });
    }
}

fn has_atomics(kernel: &Kernel) -> bool {
    kernel.accesses.iter().any(|access| access.kind == vyre_foundation::kernel::AccessKind::Atomic)
}

/// A change of one atomic on one type, or on any.
fn changed(
    op: AtomicOp,
    ty: Option<Scalar>,
    change: impl Fn(&mut super::rewrite::Site<'_>, &Atomic) -> Option<Vec<Node>> + Send + Sync + 'static,
) -> super::rewrite::Change {
    on_node(move |site, node| {
        let Node::Atomic(atomic) = node else { return None };
        let of = site.buffer(&atomic.buffer)?.value.scalar();
        if atomic.op != op || ty.is_some_and(|ty| of != Some(ty)) {
            return None;
        }
        change(site, atomic)
    })
}

/// What an atomic leaves in memory; `None` if that is what was there, or depends on nothing that was.
fn left(op: AtomicOp, was: Expr, operands: &[Expr]) -> Option<Expr> {
    let mut operands = operands.iter().cloned();
    let mut next = || operands.next();
    match op {
        AtomicOp::Load | AtomicOp::Store => None,
        AtomicOp::Exchange => next(),
        AtomicOp::CompareExchange => {
            let (wanted, new) = (next()?, next()?);
            Some(Expr::select(Expr::eq(was.clone(), wanted), new, was))
        }
        AtomicOp::Add => Some(Expr::add(was, next()?)),
        AtomicOp::Sub => Some(Expr::sub(was, next()?)),
        AtomicOp::Min => Some(Expr::min(was, next()?)),
        AtomicOp::Max => Some(Expr::max(was, next()?)),
        AtomicOp::And => Some(Expr::bitand(was, next()?)),
        AtomicOp::Or => Some(Expr::bitor(was, next()?)),
        AtomicOp::Xor => Some(Expr::bitxor(was, next()?)),
    }
}

/// An atomic as a load and a store.
fn torn(site: &mut super::rewrite::Site<'_>, atomic: &Atomic) -> Option<Vec<Node>> {
    let index = site.bind(atomic.index.clone());
    let was = atomic.result.as_ref().map_or_else(|| site.fresh(), |name| name.as_str().to_string());
    let new = left(atomic.op, Expr::var(&was[..]), &atomic.operands)?;
    Some(vec![Node::let_bind(&was[..], Expr::load(&atomic.buffer, index.clone())), Node::store(&atomic.buffer, index, new)])
}

fn add_none(list: &mut List, op: AtomicOp, ty: Scalar) {
    if left(op, Expr::u32(0), &[Expr::u32(0), Expr::u32(0)]).is_none() {
        return;
    }
    let change = changed(op, Some(ty), torn);
    list.add(Class::Atomic, format!("{op}.{ty}-is-none"), Fault::Code(change), move || crowd(op, ty, false));
}

fn add_results(list: &mut List, op: AtomicOp, ty: Scalar) {
    if op.info().result_type(ty).is_none() {
        return;
    }
    if left(op, Expr::u32(0), &[Expr::u32(0), Expr::u32(0)]).is_some() {
        let new = changed(op, Some(ty), |site, atomic| {
            let result = atomic.result.clone()?;
            let mut changed = atomic.clone();
            let was = site.fresh();
            changed.result = Some(was[..].into());
            let operands: Vec<Expr> = atomic.operands.iter().map(|operand| site.bind(operand.clone())).collect();
            changed.operands.clone_from(&operands);
            let new = left(atomic.op, Expr::var(&was[..]), &operands)?;
            Some(vec![changed.into(), Node::let_bind(&result, new)])
        });
        list.add(Class::Atomic, format!("{op}.{ty}-gives-new-value"), Fault::Code(new), move || alone(op, ty));
    }
    let zero = changed(op, Some(ty), move |site, atomic| {
        let result = atomic.result.clone()?;
        let mut changed = atomic.clone();
        changed.result = Some(site.fresh()[..].into());
        Some(vec![changed.into(), Node::let_bind(&result, lit(ty, 0))])
    });
    list.add(Class::Atomic, format!("{op}.{ty}-gives-zero"), Fault::Code(zero), move || alone(op, ty));
}

/// Compare-exchanges that all succeed, one for each element.
fn matching(ty: Scalar) -> Witness {
    let text = format!(
        "program matching {{
  workgroup 16
  buffer cells: read_write {ty} @0
  let wanted = cells[gid.x]
  let was = atomic.compare_exchange(cells, gid.x, wanted, wanted + 5)
}}"
    );
    Witness::Cases(vec![launched(case(&text, vec![words(64, 1000)]), [4, 1, 1])])
}

/// Many invocations at one element. What is left is the same in every order: of ops whose results show who was first, all do the same
/// and their results are added up.
fn crowd(op: AtomicOp, ty: Scalar, shared: bool) -> Witness {
    let operands = match op {
        AtomicOp::Exchange => "9".to_string(),
        AtomicOp::CompareExchange => "0, 9".to_string(),
        AtomicOp::Load | AtomicOp::Store => String::new(),
        AtomicOp::Add | AtomicOp::Sub | AtomicOp::Min | AtomicOp::Max | AtomicOp::And | AtomicOp::Or | AtomicOp::Xor => {
            format!("{ty}(x[gid.x])")
        }
    };
    let start = match op {
        AtomicOp::Min | AtomicOp::And => 1_000_000u32,
        AtomicOp::Load
        | AtomicOp::Store
        | AtomicOp::Exchange
        | AtomicOp::CompareExchange
        | AtomicOp::Add
        | AtomicOp::Sub
        | AtomicOp::Max
        | AtomicOp::Or
        | AtomicOp::Xor => 0,
    };
    let summed = matches!(op, AtomicOp::Exchange | AtomicOp::CompareExchange);
    let act = match summed {
        true => format!("let was = atomic.{op}(cells, gid.x / 8, {operands})\n  atomic.add(sums, gid.x / 16, {ty}(was) + 1)"),
        false => format!("atomic.{op}(cells, gid.x / 8, {operands})"),
    };
    let text = if shared {
        "program crowd {
  workgroup 16
  buffer x: read u32 @0
  buffer out: output u32[8] @1
  buffer cells: workgroup u32[2]
  atomic.add(cells, lid.x / 8, x[gid.x])
  barrier
  if lid.x < 2 {
    out[wid.x * 2 + lid.x] = cells[lid.x]
  }
}"
        .to_string()
    } else {
        // The branch makes lanes that take no part.
        format!(
            "program crowd {{
  workgroup 16
  buffer x: read u32 @0
  buffer cells: read_write {ty} @1
  buffer sums: read_write {ty} @2
  if x[gid.x] % 7 != 3 {{
    {act}
  }}
}}"
        )
    };
    // The last of each eight is not the one that decides.
    let mut x: Vec<u32> = (0..64u64).map(|n| (super::witness::mix(n) % 5000) as u32 + 16).collect();
    x.iter_mut().enumerate().filter(|(n, _)| n % 8 == 2).for_each(|(n, x)| *x = if n % 16 == 2 { 1 } else { 9000 });
    let x: Vec<u8> = x.into_iter().flat_map(u32::to_le_bytes).collect();
    let cells: Vec<u8> = (0..8).flat_map(|_| start.to_le_bytes()).collect();
    let inputs = if shared { vec![x] } else { vec![x, cells, vec![0; 16]] };
    Witness::Cases(vec![launched(case(&text, inputs), [4, 1, 1])])
}
