//! Control that goes elsewhere: loops, branches, and barriers that do not wait.

use super::fault::Fault;
use super::floats::launched;
use super::rewrite::{Change, Site, on_node};
use super::witness::{case, words};
use super::{Class, List, Witness};
use vyre_foundation::ir::{Expr, Loop, Node};
use vyre_foundation::kernel::{Kernel, StmtKind};
use vyre_foundation::memory_model::MemoryOrdering;
use vyre_reference::Schedule;
use vyre_reference::faults::BulkFault;

pub(super) fn add(list: &mut List) {
    add_loops(list);
    add_branches(list);
    add_barriers(list);
}

/// A loop from its parts: counter, bounds and body.
type Wrong = fn(&mut Site<'_>, Loop) -> Node;

fn with_bounds(it: Loop, from: Expr, to: Expr) -> Node {
    Node::loop_for(&it.var, from, to, it.body.into_inner())
}

/// The loop with another counter, from which its own follows in the body.
fn counted(site: &mut Site<'_>, it: Loop, to: Expr, counter: impl Fn(Expr) -> Expr) -> Node {
    let name = site.fresh();
    let mut body = vec![Node::let_bind(&it.var, counter(Expr::var(&name[..])))];
    body.extend(it.body.into_inner());
    Node::loop_for(&name[..], it.from, to, body)
}

fn at_most(it: Loop, most: u32) -> Node {
    let to = Expr::min(it.to.clone(), Expr::sat_add(it.from.clone(), Expr::u32(most)));
    let from = it.from.clone();
    with_bounds(it, from, to)
}

/// As many iterations as are a multiple of so many.
fn whole(site: &mut Site<'_>, it: Loop, unit: u32) -> Node {
    let (from, to) = (site.bind(it.from.clone()), site.bind(it.to.clone()));
    let count = Expr::bitand(Expr::sat_sub(to, from.clone()), Expr::u32(!(unit - 1)));
    with_bounds(it, from.clone(), Expr::add(from, count))
}

fn on_loops(wrong: Wrong, wanted: fn(&Site<'_>) -> bool) -> Change {
    on_node(move |site, node| {
        let Node::Loop(it) = node else { return None };
        wanted(site).then(|| vec![wrong(site, Loop::clone(it))])
    })
}

fn one_less(_: &mut Site<'_>, it: Loop) -> Node {
    let (from, to) = (it.from.clone(), Expr::sat_sub(it.to.clone(), Expr::u32(1)));
    with_bounds(it, from, to)
}

fn one_more(_: &mut Site<'_>, it: Loop) -> Node {
    let (from, to) = (it.from.clone(), Expr::sat_add(it.to.clone(), Expr::u32(1)));
    with_bounds(it, from, to)
}

fn add_loops(list: &mut List) {
    let kinds: [(&str, Wrong); 17] = [
        ("one-less", one_less),
        ("one-more", one_more),
        ("first-left-out", |_, it| {
            let (from, to) = (Expr::sat_add(it.from.clone(), Expr::u32(1)), it.to.clone());
            with_bounds(it, from, to)
        }),
        ("one-before", |_, it| {
            let (from, to) = (Expr::sat_sub(it.from.clone(), Expr::u32(1)), it.to.clone());
            with_bounds(it, from, to)
        }),
        ("at-most-4", |_, it| at_most(it, 4)),
        ("at-most-16", |_, it| at_most(it, 16)),
        ("at-most-255", |_, it| at_most(it, 255)),
        ("at-most-1024", |_, it| at_most(it, 1024)),
        ("signed-bound", |site, it| {
            let (from, to) = (site.bind(it.from.clone()), site.bind(it.to.clone()));
            let to = Expr::select(Expr::ge(to.clone(), Expr::u32(1 << 31)), from.clone(), to);
            with_bounds(it, from, to)
        }),
        ("runs-once-at-least", |site, it| {
            let (from, to) = (site.bind(it.from.clone()), site.bind(it.to.clone()));
            let to = Expr::max(to, Expr::sat_add(from.clone(), Expr::u32(1)));
            with_bounds(it, from, to)
        }),
        ("remainder-of-2-lost", |site, it| whole(site, it, 2)),
        ("remainder-of-4-lost", |site, it| whole(site, it, 4)),
        ("remainder-of-8-lost", |site, it| whole(site, it, 8)),
        ("backwards", |site, it| {
            let (from, to) = (site.bind(it.from.clone()), site.bind(it.to.clone()));
            let it = Loop { from: from.clone(), ..it };
            counted(site, it, to.clone(), |k| Expr::sub(Expr::sub(to.clone(), Expr::u32(1)), Expr::sub(k, from.clone())))
        }),
        ("counter-plus-one", |site, it| {
            let to = it.to.clone();
            counted(site, it, to, |k| Expr::add(k, Expr::u32(1)))
        }),
        ("counter-is-a-byte", |site, it| {
            let to = it.to.clone();
            counted(site, it, to, |k| Expr::bitand(k, Expr::u32(255)))
        }),
        ("first-twice", |site, it| {
            let (from, to) = (site.bind(it.from.clone()), site.bind(it.to.clone()));
            let more = Expr::select(Expr::lt(from.clone(), to.clone()), Expr::sat_add(to.clone(), Expr::u32(1)), to);
            let it = Loop { from: from.clone(), ..it };
            counted(site, it, more, |k| Expr::max(Expr::sat_sub(k, Expr::u32(1)), from.clone()))
        }),
    ];
    for (name, wrong) in kinds {
        list.add(Class::LoopBound, name, Fault::Code(on_loops(wrong, |_| true)), loops);
    }
    let inner = Fault::Code(on_loops(one_less, |site| site.loops > 0));
    list.add(Class::LoopBound, "inner-one-less", inner, loops);
    let conditional = Fault::Code(on_loops(one_more, |site| site.ifs > 0));
    list.add(Class::LoopBound, "in-branch-one-more", conditional, loops);
    let replaced = |from: Node, to: Option<Node>| on_node(move |_, node| (*node == from).then(|| to.iter().cloned().collect()));
    for (name, change) in [
        ("break-ignored", replaced(Node::Break, None)),
        ("break-continues", replaced(Node::Break, Some(Node::Continue))),
        ("continue-ignored", replaced(Node::Continue, None)),
        ("continue-breaks", replaced(Node::Continue, Some(Node::Break))),
    ] {
        list.add(Class::LoopBound, name, Fault::Code(change), loops);
    }
    for fault in [
        BulkFault::UpperBoundAgain,
        BulkFault::LowerBoundAgain,
        BulkFault::CounterOfFirstLane,
        BulkFault::CounterByte,
        BulkFault::BreakMask,
        BulkFault::BreakAll,
        BulkFault::BreakLate,
        BulkFault::ContinueMask,
    ] {
        list.add(Class::LoopBound, format!("lanes-{}", fault.name()), Fault::Evaluator(fault, has_loops), loops);
    }
}

fn has_loops(kernel: &Kernel) -> bool {
    kernel.stmts.iter().any(|stmt| matches!(stmt.kind, StmtKind::Loop { .. }))
}

fn has_branches(kernel: &Kernel) -> bool {
    kernel.stmts.iter().any(|stmt| matches!(stmt.kind, StmtKind::If { .. }))
}

/// Loops of every kind, each of which leaves its trace in one number.
fn loops() -> Witness {
    let text = "program loops {
  workgroup 8
  buffer n: read u32 @0
  buffer out: output u32[64] @1
  let h = 7
  let x = n[gid.x]
  for i in x % 5..x % 23 {
    h = h * 31 + i
  }
  for i in 0..x % 1500 {
    h = h * 31 + i
  }
  for i in 0..x % 7 {
    for j in i..x % 6 {
      h = h * 31 + i * j
    }
  }
  for i in 3..4294967295 {
    if i > x % 9 + 5 {
      break
    }
    h = h * 31 + i
  }
  for i in 0..30 {
    h = h * 31 + i
    if i == x % 8 {
      break
    }
  }
  for i in 2..x % 19 {
    if i % 3 == 1 {
      continue
    }
    h = h * 31 + i
  }
  if x % 2 == 1 {
    for i in 0..x % 3 {
      h = h * 31 + i
    }
  }
  let end = x % 13
  for i in 1..end {
    end = end / 2
    h = h * 31 + end
  }
  let begin = x % 4
  for i in begin..9 {
    begin = begin + 1
    h = h * 31 + i
  }
  out[gid.x] = h
}";
    let mut case = case(text, vec![words(64, 100_000)]);
    case.fuel = 1_000_000;
    Witness::Cases(vec![case])
}

/// What runs instead of a condition and its two bodies.
type Branch = fn(Expr, Vec<Node>, Vec<Node>) -> Vec<Node>;

fn negated(cond: Expr, then: Vec<Node>, otherwise: Vec<Node>) -> Vec<Node> {
    vec![Node::if_then_else(Expr::not(cond), then, otherwise)]
}

fn add_branches(list: &mut List) {
    type Wanted = fn(&Site<'_>, &[Node], &[Node]) -> bool;
    let kinds: [(&str, Wanted, Branch); 10] = [
        ("negated", |_, _, _| true, negated),
        ("negated-without-else", |_, _, otherwise| otherwise.is_empty(), negated),
        ("negated-with-else", |_, _, otherwise| !otherwise.is_empty(), negated),
        ("negated-inside", |site, _, _| site.ifs > 0, negated),
        ("negated-in-loops", |site, _, _| site.loops > 0, negated),
        ("always", |_, _, _| true, |_, then, _| vec![Node::block(then)]),
        ("never", |_, then, _| !then.is_empty(), |_, _, otherwise| vec![Node::block(otherwise)]),
        ("no-else", |_, _, otherwise| !otherwise.is_empty(), |cond, then, _| vec![Node::if_then(cond, then)]),
        (
            "else-always",
            |_, _, otherwise| !otherwise.is_empty(),
            |cond, then, otherwise| vec![Node::if_then(cond, then), Node::block(otherwise)],
        ),
        (
            "empty-condition",
            |_, _, otherwise| !otherwise.is_empty(),
            |cond, then, otherwise| vec![Node::if_then_else(Expr::and(cond.clone(), Expr::not(cond)), then, otherwise)],
        ),
    ];
    for (name, wanted, branch) in kinds {
        let change = on_node(move |site, node| {
            let Node::If { cond, then, otherwise } = node else { return None };
            wanted(site, then, otherwise).then(|| {
                let cond = site.bind(Expr::clone(cond));
                branch(cond, then.clone().into_inner(), otherwise.clone().into_inner())
            })
        });
        list.add(Class::Branch, name, Fault::Code(change), branches);
    }
    let gone = on_node(|_, node| matches!(node, Node::Return).then(Vec::new));
    list.add(Class::Branch, "return-ignored", Fault::Code(gone), branches);
    let breaks = on_node(|site, node| (matches!(node, Node::Return) && site.loops > 0).then(|| vec![Node::Break]));
    list.add(Class::Branch, "return-breaks", Fault::Code(breaks), branches);
    let early = on_node(|site, node| (matches!(node, Node::Break) && site.loops > 0).then(|| vec![Node::Return]));
    list.add(Class::Branch, "break-returns", Fault::Code(early), branches);
    for fault in [
        BulkFault::ElseMask,
        BulkFault::ArmExit,
        BulkFault::ConditionAgain,
        BulkFault::ReturnMask,
        BulkFault::ReturnInLoop,
        BulkFault::ReturnBreaks,
        BulkFault::BlendSplat,
        BulkFault::BlendWide,
        BulkFault::StoreMask,
    ] {
        list.add(Class::Branch, format!("lanes-{}", fault.name()), Fault::Evaluator(fault, has_branches), branches);
    }
}

/// Branches of every kind, each of which leaves its trace.
fn branches() -> Witness {
    let text = "program branches {
  workgroup 8
  buffer n: read u32 @0
  buffer out: output u32[64] @1
  buffer more: output u64[64] @2
  let h = 7
  let wide = 5000000000u64
  let x = n[gid.x]
  let c = x % 2 == 1
  if c {
    h = h * 31 + 1
    c = false
  } else {
    h = h * 31 + 2
  }
  if x % 3 == 0 {
    h = h * 31 + 3
    if x % 5 < 2 {
      h = h * 31 + 4
    } else {
      wide = 12000000000u64
    }
  }
  if x % 7 == 2 {
    h = 99
  }
  more[gid.x] = wide
  for i in 0..4 {
    if x % 4 == i {
      h = h * 31 + i
    }
    if x % 17 == i {
      out[gid.x] = h
      return
    }
    if x % 19 == i {
      h = h + 1000
      break
    }
  }
  if x % 11 == 0 {
    out[gid.x] = h + 5
    return
  }
  if x % 13 != 1 {
    out[gid.x] = h
  }
}";
    Witness::Cases(vec![case(text, vec![words(64, 100_000)])])
}

fn add_barriers(list: &mut List) {
    type Which = fn(&Site<'_>) -> bool;
    let which: [(&str, Which); 7] = [
        ("all", |_| true),
        ("first", |site| site.met == 1),
        ("second", |site| site.met == 2),
        ("third", |site| site.met == 3),
        ("even", |site| site.met % 2 == 0),
        ("in-loops", |site| site.loops > 0),
        ("outside-loops", |site| site.loops == 0),
    ];
    let schedules = [("forward", Schedule::Forward), ("reverse", Schedule::Reverse), ("interleaved", Schedule::Shuffle(5))];
    for (order, schedule) in &schedules {
        for (name, which) in which {
            let change = on_node(move |site, node| {
                let Node::Barrier { ordering } = node else { return None };
                if *ordering == MemoryOrdering::GridSync {
                    return None;
                }
                site.met += 1;
                which(site).then(Vec::new)
            });
            let fault = Fault::Ordered(change, schedule.clone());
            list.add(Class::Barrier, format!("{name}-{order}"), fault, exchange);
        }
        let grid = on_node(|_, node| matches!(node, Node::Barrier { ordering: MemoryOrdering::GridSync }).then(Vec::new));
        list.add(Class::Barrier, format!("grid-{order}"), Fault::Ordered(grid, schedule.clone()), across);
        let weak = on_node(|_, node| {
            matches!(node, Node::Barrier { ordering: MemoryOrdering::GridSync }).then(|| vec![Node::barrier()])
        });
        list.add(Class::Barrier, format!("grid-waits-for-workgroup-{order}"), Fault::Ordered(weak, schedule.clone()), across);
    }
}

/// Invocations that read what others of their workgroup wrote, before and in a loop.
pub(super) fn exchange() -> Witness {
    let text = "program exchange {
  workgroup 16
  buffer x: read u32 @0
  buffer out: output u32[64] @1
  buffer tile: workgroup u32[16]
  let i = lid.x
  tile[i] = x[gid.x]
  barrier
  let a = tile[(i + 5) % 16] * 3 + tile[(i + 11) % 16]
  barrier
  tile[i] = a
  barrier
  for k in 0..3 {
    let b = tile[(i * 3 + k) % 16] + tile[(i + 7) % 16]
    barrier
    tile[i] = b * 5 + tile[i]
    barrier
  }
  out[gid.x] = tile[15 - i] + a
}";
    Witness::Cases(vec![launched(case(text, vec![words(64, 1000)]), [4, 1, 1])])
}

/// Invocations that read what other workgroups wrote.
fn across() -> Witness {
    let text = "program across {
  workgroup 8
  buffer x: read_write u32 @0
  buffer out: output u32[64] @1
  x[gid.x] = x[gid.x] * 7 + 1
  barrier.grid
  out[gid.x] = x[63 - gid.x] + x[(gid.x + 11) % 64]
}";
    Witness::Cases(vec![launched(case(text, vec![words(64, 1000)]), [8, 1, 1])])
}
