//! Joins what stands on both sides of a barrier, where blocks may run it one after the other all the same.
//!
//! A barrier is there because one invocation reads what another writes. Where it is known how far apart the two are, it is known which
//! blocks have to be done with the first part before a block begins with the second: if these are all before it in some order of blocks,
//! both parts run in that order as one segment, and what goes from one to the other stays in registers. So in
//! `sum = sum + tile[lid.x - k]; barrier; tile[lid.x] = sum` nobody below a block reads what it writes, and the last block goes first.
//!
//! What a block reads that others have just written it would have to wait for, so that parts stay apart in which the second reads what
//! other invocations write in the first.

use super::active::is_limited;
use super::segments::{Item, Segment, ssa_retires};
use super::shared::LocalForm;
use vyre_foundation::kernel::BufferId;
use vyre_foundation::ssa::{InstId, InstKind, Ssa, Value};

/// The order in which the blocks of a segment run.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Order {
    #[default]
    Any,
    Ascending,
    Descending,
}

impl Order {
    /// An order that is both.
    fn and(self, other: Order) -> Option<Order> {
        match (self, other) {
            (one, Order::Any) => Some(one),
            (Order::Any, other) => Some(other),
            (one, other) => (one == other).then_some(one),
        }
    }
}

/// Joins segments of all phases.
pub(crate) fn fuse(ssa: &Ssa, phases: &mut [Vec<Item>]) {
    let [nx, ny, nz] = ssa.kernel.workgroup_size;
    if ny * nz != 1 || ssa_retires(ssa) {
        return;
    }
    phases.iter_mut().for_each(|items| fuse_items(ssa, nx, items));
}

fn fuse_items(ssa: &Ssa, total: u32, items: &mut Vec<Item>) {
    let mut joined: Vec<Item> = Vec::with_capacity(items.len());
    for mut item in std::mem::take(items) {
        match &mut item {
            Item::Segment(second) => {
                if let Some(Item::Segment(first)) = joined.last_mut()
                    && let Some(order) = order_of(ssa, total, first, second)
                {
                    first.insts.append(&mut second.insts);
                    first.copies.append(&mut second.copies);
                    first.order = order;
                    continue;
                }
            }
            Item::If { then, otherwise, .. } => {
                fuse_items(ssa, total, then);
                fuse_items(ssa, total, otherwise);
            }
            Item::Loop { body, .. } => fuse_items(ssa, total, body),
            Item::Break | Item::Continue | Item::Retire(_) => {}
        }
        joined.push(item);
    }
    *items = joined;
}

/// The order in which both segments can run as one.
fn order_of(ssa: &Ssa, total: u32, first: &Segment, second: &Segment) -> Option<Order> {
    // What is handed on is handed on behind a segment, and what runs for few lanes is better alone.
    if !first.copies.is_empty() || first.insts.is_empty() || is_limited(ssa, first) || is_limited(ssa, second) {
        return None;
    }
    let (mut before, mut after) = (Vec::new(), Vec::new());
    first.insts.iter().for_each(|id| accesses(ssa, *id, &mut before));
    second.insts.iter().for_each(|id| accesses(ssa, *id, &mut after));
    let mut order = first.order.and(second.order)?;
    for one in &before {
        for other in after.iter().filter(|other| other.buffer == one.buffer && (other.writes || one.writes)) {
            order = order.and(one.before(other, ssa, total)?)?;
        }
    }
    Some(order)
}

/// An access to memory.
pub(super) struct Touch {
    pub buffer: BufferId,
    pub writes: bool,
    pub index: Value,
}

impl Touch {
    /// The order of blocks in which another access may follow for each block at once.
    fn before(&self, other: &Touch, ssa: &Ssa, total: u32) -> Option<Order> {
        let [one, two] = [self, other].map(|touch| LocalForm::of(ssa, touch.index, 0));
        let (one, two) = (one?, two?);
        if one.times != [1, 0, 0] || two.times != [1, 0, 0] {
            return None;
        }
        // Invocation i and invocation i + apart meet.
        let apart = one.plus.wrapping_sub(two.plus).cast_signed();
        if apart == 0 || apart.unsigned_abs() >= total {
            return Some(Order::Any);
        }
        let waits = self.writes && !other.writes;
        (!waits).then_some(if apart > 0 { Order::Ascending } else { Order::Descending })
    }
}

/// All that an instruction and those below it touch.
pub(super) fn accesses(ssa: &Ssa, id: InstId, found: &mut Vec<Touch>) {
    let inst = ssa.inst(id);
    match inst.kind {
        InstKind::Load { buffer, index, .. } => found.push(Touch { buffer, writes: false, index }),
        InstKind::Store { buffer, index, .. } | InstKind::Atomic { buffer, index, .. } => {
            found.push(Touch { buffer, writes: true, index });
        }
        InstKind::Op(_)
        | InstKind::Subgroup { .. }
        | InstKind::If { .. }
        | InstKind::Loop { .. }
        | InstKind::Barrier
        | InstKind::GridSync => {}
    }
    for region in inst.kind.regions() {
        ssa.region(region).insts.iter().for_each(|id| accesses(ssa, *id, found));
    }
}
