//! Moves what a loop computes anew in each iteration in front of it.
//!
//! Ops are total and do nothing but give a value, so one whose operands are from outside of a loop can be computed before it, whether or not
//! the loop would have got there. Inner loops first: what leaves one may leave the next.

use crate::faults::Fault;
use vyre_foundation::ssa::{Def, InstId, InstKind, RegionId, Ssa};

/// Moves invariant ops out of all loops.
pub(crate) fn hoist(ssa: &mut Ssa, fault: Option<Fault>) {
    let mut depth = vec![0u32; ssa.values.len()];
    find_depths(ssa, ssa.root, 0, &mut depth);
    let root = ssa.root;
    hoist_region(ssa, root, 0, &mut depth, fault == Some(Fault::LoadsHoisted));
}

/// By value: how many loops are around its definition. Leaves are outside of all.
fn find_depths(ssa: &Ssa, region: RegionId, loops: u32, depth: &mut [u32]) {
    for arg in &ssa.region(region).args {
        depth[arg.index()] = loops;
    }
    for id in &ssa.region(region).insts {
        let inst = ssa.inst(*id);
        inst.results.iter().for_each(|result| depth[result.index()] = loops);
        let inner = loops + u32::from(matches!(inst.kind, InstKind::Loop { .. }));
        for below in inst.kind.regions() {
            find_depths(ssa, below, inner, depth);
        }
    }
}

/// What comes out of the region, in order.
fn hoist_region(ssa: &mut Ssa, region: RegionId, loops: u32, depth: &mut [u32], loads: bool) -> Vec<InstId> {
    let insts = std::mem::take(&mut ssa.regions[region.index()].insts);
    let mut kept = Vec::with_capacity(insts.len());
    let mut out = Vec::new();
    for id in insts {
        let inner = loops + u32::from(matches!(ssa.inst(id).kind, InstKind::Loop { .. }));
        let below: Vec<RegionId> = ssa.inst(id).kind.regions().collect();
        for region in below {
            let from_inside = hoist_region(ssa, region, inner, depth, loads);
            for moved in from_inside {
                place(ssa, moved, loops, depth, &mut kept, &mut out);
            }
        }
        let kind = &ssa.inst(id).kind;
        if matches!(kind, InstKind::Op(_)) || loads && matches!(kind, InstKind::Load { .. }) {
            place(ssa, id, loops, depth, &mut kept, &mut out);
        } else {
            kept.push(id);
        }
    }
    ssa.regions[region.index()].insts = kept;
    out
}

fn place(ssa: &Ssa, id: InstId, loops: u32, depth: &mut [u32], kept: &mut Vec<InstId>, out: &mut Vec<InstId>) {
    let mut deepest = 0;
    ssa.inst(id).kind.for_each_operand(&mut |operand| {
        if !matches!(ssa.value(operand).def, Def::Leaf(_)) {
            deepest = deepest.max(depth[operand.index()]);
        }
    });
    if deepest < loops {
        ssa.inst(id).results.iter().for_each(|result| depth[result.index()] = deepest);
        out.push(id);
    } else {
        kept.push(id);
    }
}
