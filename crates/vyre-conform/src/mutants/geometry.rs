//! Launches of which something does not run, and faults in workgroups of one size alone.

use super::fault::{Fault, LostGroups};
use super::floats::launched;
use super::rewrite::{Change, on_binary, on_expr, on_node};
use super::tail::resized;
use super::witness::{case, words};
use super::{Class, List, Witness};
use vyre_foundation::ir::{Access, Axis, BinaryOp, Builtin, Expr, Load, Loop, Node, Scalar};
use vyre_reference::Schedule;
use vyre_reference::faults::BulkFault;

pub(super) fn add(list: &mut List) {
    let lost = [
        ("first", LostGroups::First),
        ("last-of-2-or-more", LostGroups::LastOf(2)),
        ("last-of-3-or-more", LostGroups::LastOf(3)),
        ("last-of-17-or-more", LostGroups::LastOf(17)),
        ("last-of-odd", LostGroups::LastOfOdd),
        ("beyond-multiple-of-2", LostGroups::Remainder(2)),
        ("beyond-multiple-of-4", LostGroups::Remainder(4)),
        ("beyond-multiple-of-8", LostGroups::Remainder(8)),
        ("beyond-multiple-of-16", LostGroups::Remainder(16)),
        ("beyond-multiple-of-64", LostGroups::Remainder(64)),
        ("from-8", LostGroups::From(8)),
        ("from-64", LostGroups::From(64)),
        ("from-256", LostGroups::From(256)),
        ("from-65535", LostGroups::From(65_535)),
        ("middle", LostGroups::Middle),
        ("last-row", LostGroups::LastRow),
        ("last-plane", LostGroups::LastPlane),
        ("last-of-each-half", LostGroups::LastOfEachHalf),
    ];
    for (name, lost) in lost {
        list.add(Class::LastWorkgroup, name, Fault::Groups(lost), move || match lost {
            LostGroups::From(65_535) => Witness::Cases(vec![grid([65_600, 1, 1], 1)]),
            LostGroups::First
            | LostGroups::LastOf(_)
            | LostGroups::LastOfOdd
            | LostGroups::Remainder(_)
            | LostGroups::From(_)
            | LostGroups::Middle
            | LostGroups::LastRow
            | LostGroups::LastPlane
            | LostGroups::LastOfEachHalf => grids(),
        });
    }
    let anything: fn(&vyre_foundation::kernel::Kernel) -> bool = |kernel| !kernel.accesses.is_empty();
    for fault in [BulkFault::LastGroup, BulkFault::LaterBlocks, BulkFault::BlockIds, BulkFault::LanePast256] {
        list.add(Class::LastWorkgroup, format!("lanes-{}", fault.name()), Fault::Evaluator(fault, anything), grids);
    }
    add_sizes(list);
}

/// A number for every invocation of a grid.
fn grid(grid: [u32; 3], size: u32) -> vyre_worker::Case {
    let count = grid.iter().product::<u32>() * size;
    let text = format!(
        "program grid {{
  workgroup {size}
  buffer out: output u32[{count}] @0
  let i = (gid.z * gid_count.y + gid.y) * gid_count.x + gid.x
  out[i] = i * 3 + 1
}}"
    );
    launched(case(&text, Vec::new()), grid)
}

fn grids() -> Witness {
    let lines = [2, 3, 5, 17, 70, 301].map(|groups| grid([groups, 1, 1], 4));
    Witness::Cases(lines.into_iter().chain([grid([3, 4, 1], 4), grid([2, 3, 5], 4), grid([7, 1, 1], 300)]).collect())
}

/// The sizes that workgroups are wrong at.
const SIZES: [u32; 4] = [1, 37, 64, 256];

fn add_sizes(list: &mut List) {
    for size in SIZES {
        let mut put = |name: &str, fault: Fault| {
            let name = format!("{name}-at-{size}");
            list.add(Class::Size, name, Fault::AtSize(size, Box::new(fault)), move || sized(size));
        };
        let minus = on_binary(BinaryOp::Add, Scalar::U32, |_, a, b| Expr::sub(a, b));
        put("add.u32-is-sub", Fault::Code(minus));
        let local = on_expr(|_, expr| {
            let gid = matches!(expr, Expr::Builtin(Builtin::Invocation(Axis::X)));
            gid.then(|| Expr::builtin(Builtin::Local(Axis::X)))
        });
        put("gid.x-is-lid.x", Fault::Code(local));
        put("last-invocation-stores-nothing", Fault::Code(last_stores_nothing()));
        let moved = on_node(|_, node| {
            let Node::Store(store) = node else { return None };
            Some(vec![Node::store(&store.buffer, Expr::add(store.index.clone(), Expr::u32(1)), store.value.clone())])
        });
        put("store-plus-one", Fault::Code(moved));
        put("last-workgroup-lost", Fault::Groups(LostGroups::LastOf(2)));
        let shared = on_expr(|site, expr| {
            let Expr::Load(load) = expr else { return None };
            let Load { buffer, index } = &**load;
            site.buffer(buffer).filter(|buffer| buffer.access == Access::Workgroup)?;
            Some(Expr::load(buffer, Expr::bitxor(Expr::clone(index), Expr::u32(1))))
        });
        put("workgroup-memory-neighbour", Fault::Code(shared));
        let shorter = on_node(|_, node| {
            let Node::Loop(it) = node else { return None };
            let Loop { var, from, to, body } = Loop::clone(it);
            Some(vec![Node::loop_for(&var, from, Expr::sat_sub(to, Expr::u32(1)), body.into_inner())])
        });
        put("loop-one-less", Fault::Code(shorter));
        let truncated = on_binary(BinaryOp::Mul, Scalar::F32, |_, a, b| {
            Expr::bitcast(Scalar::F32, Expr::bitand(Expr::bitcast(Scalar::U32, Expr::mul(a, b)), Expr::u32(!1)))
        });
        put("mul.f32-low-bit-lost", Fault::Code(truncated));
        // A single invocation waits for nobody.
        if size > 1 {
            let waits = on_node(|_, node| matches!(node, Node::Barrier { .. }).then(Vec::new));
            put("barrier-lost", Fault::Ordered(waits, Schedule::Forward));
        }
    }
}

fn last_stores_nothing() -> Change {
    on_node(|site, node| {
        let Node::Store(store) = node else { return None };
        site.buffer(&store.buffer).filter(|buffer| buffer.access != Access::Workgroup)?;
        let count = Expr::builtin(Builtin::LocalCount(Axis::X));
        let last = Expr::eq(Expr::add(Expr::lid_x(), Expr::u32(1)), count);
        Some(vec![Node::if_then(Expr::not(last), vec![node.clone()])])
    })
}

/// Something of everything, in workgroups of this size.
fn sized(size: u32) -> Witness {
    let text = "program sized {
  workgroup 64
  buffer x: read u32 @0
  buffer y: read f32 @1
  buffer out: output u32[768] @2
  buffer products: output f32[768] @3
  buffer tile: workgroup u32[256]
  tile[lid.x] = x[gid.x] * 3
  barrier
  let sum = tile[(lid.x + 1) % lid_count.x]
  for k in 0..3 {
    sum = sum * 5 + k
  }
  products[gid.x] = y[gid.x] * y[767 - gid.x]
  out[gid.x] = sum
}";
    let floats = (0..768).map(|n| super::witness::noise(Scalar::F32, 4 * n + 1)).collect::<Vec<u64>>();
    let inputs = vec![words(768, 1000), super::witness::bytes(Scalar::F32, &floats)];
    let case = launched(resized(case(text, inputs), size), [768 / size, 1, 1]);
    Witness::Cases(vec![case])
}
