//! Writes short loops out.
//!
//! A loop that is known to run a few times, whose body is straight code, becomes that code as often as it runs, with the counter a
//! number in each. The passes then fold what the counter decides. What a loop costs beside its body is gone, and the machine sees more of
//! it at a time.

use super::hoist::hoist;
use crate::faults::Fault;
use std::collections::HashMap;
use vyre_foundation::analysis::Loops;
use vyre_foundation::ssa::{Def, Inst, InstId, InstKind, RegionId, Ssa, Terminator, Value};
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
            && is_straight(ssa, body)
            && trips <= MAX_TRIPS
            && ssa.region(body).insts.len() * trips as usize <= MAX_INSTS
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

/// Whether a body has neither control nor exits.
fn is_straight(ssa: &Ssa, body: RegionId) -> bool {
    let region = ssa.region(body);
    let plain = |id: &InstId| matches!(ssa.inst(*id).kind, InstKind::Op(_) | InstKind::Load { .. } | InstKind::Store { .. });
    region.end.is_yield() && region.insts.iter().all(plain)
}

fn write_out(ssa: &mut Ssa, id: InstId, first: u32, trips: u32) {
    let InstKind::Loop { inits, body, .. } = ssa.inst(id).kind.clone() else { return };
    let region = ssa.region(body).clone();
    let Terminator::Yield(yields) = &region.end else { return };
    let mut carried = inits;
    let mut written = Vec::new();
    for n in 0..trips {
        let counter = ssa.lit(Scalar::U32, u64::from(first.wrapping_add(n)));
        let mut now: HashMap<Value, Value> = HashMap::new();
        now.insert(region.args[0], counter);
        now.extend(region.args[1..].iter().copied().zip(carried.iter().copied()));
        for old in &region.insts {
            let Inst { mut kind, results, stmt } = ssa.inst(*old).clone();
            kind.for_each_operand_mut(&mut |operand| *operand = *now.get(operand).unwrap_or(operand));
            let new = InstId(ssa.insts.len() as u32);
            let results = results
                .iter()
                .enumerate()
                .map(|(place, result)| {
                    let mut info = *ssa.value(*result);
                    info.def = Def::Result(new, place as u32);
                    ssa.values.push(info);
                    let value = Value(ssa.values.len() as u32 - 1);
                    now.insert(*result, value);
                    value
                })
                .collect();
            ssa.insts.push(Inst { kind, results, stmt });
            written.push(new);
        }
        carried = yields.iter().map(|value| *now.get(value).unwrap_or(value)).collect();
    }
    // The code stands where the loop stood, and its results are what is carried in the end.
    let results = ssa.inst(id).results.clone();
    let last: HashMap<Value, Value> = results.iter().copied().zip(carried).collect();
    for region in &mut ssa.regions {
        if let Some(at) = region.insts.iter().position(|other| *other == id) {
            region.insts.splice(at..=at, written.iter().copied());
        }
        if let Some(values) = region.end.values_mut() {
            values.iter_mut().for_each(|value| *value = *last.get(value).unwrap_or(value));
        }
    }
    for inst in &mut ssa.insts {
        inst.kind.for_each_operand_mut(&mut |operand| *operand = *last.get(operand).unwrap_or(operand));
    }
}
