//! Writes short loops out.
//!
//! A loop that is known to run a few times, whose body is straight code, becomes that code as often as it runs, with the counter a
//! number in each. The passes then fold what the counter decides. What a loop costs beside its body is gone, and the machine sees more of
//! it at a time.
//!
//! A body with barriers may have `if`s too: which invocations have something to do between two barriers, and how far away the elements are
//! that they look at, is mostly a matter of the counter.

use super::duplicate::{Now, at, duplicate};
use super::hoist::hoist;
use crate::faults::Fault;
use vyre_foundation::analysis::Loops;
use vyre_foundation::ssa::{InstId, InstKind, RegionId, Ssa, Terminator};
use vyre_spec::Scalar;

/// How often a loop runs at the most that is written out.
const MAX_TRIPS: u32 = 16;

/// How many instructions become of one loop at the most.
const MAX_INSTS: usize = 192;

/// Writes out short loops, and lets the passes see the result.
pub(crate) fn unroll(ssa: &mut Ssa, fault: Option<Fault>) {
    let loops = Loops::of(ssa);
    let mut found = Vec::new();
    ssa.for_each_inst(ssa.root, &mut |id, inst| {
        if let InstKind::Loop { from, body, .. } = inst.kind
            && let Some(trips) = loops.trips(id).and_then(|trips| trips.exact())
            && let Some(first) = ssa.literal(from)
            && trips <= MAX_TRIPS
            && is_straight(ssa, body, has_barrier(ssa, body))
            && size(ssa, body) * trips as usize <= MAX_INSTS
        {
            found.push((id, first as u32, trips));
        }
    });
    if found.is_empty() {
        return;
    }
    for (id, first, trips) in found {
        match fault {
            Some(Fault::UnrolledOnceLess) => write_out(ssa, id, first, trips.saturating_sub(1)),
            Some(Fault::UnrolledFromZero) => write_out(ssa, id, 0, trips),
            _ => write_out(ssa, id, first, trips),
        }
    }
    ssa.optimize();
    hoist(ssa, fault);
}

/// Whether a body has no exits and neither loops nor, unless they are allowed, other control.
fn is_straight(ssa: &Ssa, body: RegionId, control: bool) -> bool {
    let region = ssa.region(body);
    let plain = |id: &InstId| match ssa.inst(*id).kind {
        InstKind::Op(_) | InstKind::Load { .. } | InstKind::Store { .. } => true,
        InstKind::Barrier => control,
        InstKind::If { then, otherwise, .. } => {
            control && is_straight(ssa, then, control) && is_straight(ssa, otherwise, control)
        }
        InstKind::Loop { .. } | InstKind::Atomic { .. } | InstKind::Subgroup { .. } | InstKind::GridSync => false,
    };
    region.end.is_yield() && region.insts.iter().all(plain)
}

fn has_barrier(ssa: &Ssa, body: RegionId) -> bool {
    ssa.region(body).insts.iter().any(|id| matches!(ssa.inst(*id).kind, InstKind::Barrier))
}

fn size(ssa: &Ssa, body: RegionId) -> usize {
    let mut size = 0;
    ssa.for_each_inst(body, &mut |_, _| size += 1);
    size
}

fn write_out(ssa: &mut Ssa, id: InstId, first: u32, trips: u32) {
    let InstKind::Loop { inits, body, .. } = ssa.inst(id).kind.clone() else { return };
    let region = ssa.region(body).clone();
    let Terminator::Yield(yields) = &region.end else { return };
    let mut carried = inits;
    let mut written = Vec::new();
    for n in 0..trips {
        let counter = ssa.lit(Scalar::U32, u64::from(first.wrapping_add(n)));
        let mut now = Now::new();
        now.insert(region.args[0], counter);
        now.extend(region.args[1..].iter().copied().zip(carried.iter().copied()));
        written.extend(duplicate(ssa, &region.insts, &mut now));
        carried = yields.iter().map(|value| at(&now, *value)).collect();
    }
    // The code stands where the loop stood, and its results are what is carried in the end.
    let results = ssa.inst(id).results.clone();
    let last: Now = results.iter().copied().zip(carried).collect();
    for region in &mut ssa.regions {
        if let Some(at) = region.insts.iter().position(|other| *other == id) {
            region.insts.splice(at..=at, written.iter().copied());
        }
        if let Some(values) = region.end.values_mut() {
            values.iter_mut().for_each(|value| *value = at(&last, *value));
        }
    }
    for inst in &mut ssa.insts {
        inst.kind.for_each_operand_mut(&mut |operand| *operand = at(&last, *operand));
    }
}
