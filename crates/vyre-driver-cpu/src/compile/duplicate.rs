//! Writes instructions once more, on other values.

use std::collections::HashMap;
use vyre_foundation::ssa::{Def, Inst, InstId, InstKind, Region, RegionId, Ssa, Value, ValueInfo};

/// What values stand for now; those that are not in it stand for themselves.
pub(crate) type Now = HashMap<Value, Value>;

/// What a value stands for.
pub(crate) fn at(now: &Now, value: Value) -> Value {
    *now.get(&value).unwrap_or(&value)
}

/// The same instructions once more, with all that is below them, on the values that those of the first stand for now.
pub(crate) fn duplicate(ssa: &mut Ssa, insts: &[InstId], now: &mut Now) -> Vec<InstId> {
    let mut copies = Vec::with_capacity(insts.len());
    for old in insts {
        let Inst { mut kind, results, stmt } = ssa.inst(*old).clone();
        kind.for_each_operand_mut(&mut |operand| *operand = at(now, *operand));
        match &mut kind {
            InstKind::If { then, otherwise, .. } => {
                *then = duplicate_region(ssa, *then, now);
                *otherwise = duplicate_region(ssa, *otherwise, now);
            }
            InstKind::Loop { body, .. } => *body = duplicate_region(ssa, *body, now),
            InstKind::Op(_)
            | InstKind::Load { .. }
            | InstKind::Store { .. }
            | InstKind::Atomic { .. }
            | InstKind::Subgroup { .. }
            | InstKind::Barrier
            | InstKind::GridSync => {}
        }
        let new = InstId(ssa.insts.len() as u32);
        let results = results
            .iter()
            .enumerate()
            .map(|(place, result)| {
                let value = new_value(ssa, *result, Def::Result(new, place as u32));
                now.insert(*result, value);
                value
            })
            .collect();
        ssa.insts.push(Inst { kind, results, stmt });
        copies.push(new);
    }
    copies
}

fn duplicate_region(ssa: &mut Ssa, old: RegionId, now: &mut Now) -> RegionId {
    let Region { mut args, insts, mut end, stmt } = ssa.region(old).clone();
    let new = RegionId(ssa.regions.len() as u32);
    // Its place is taken before regions below it are made.
    ssa.regions.push(Region { args: Vec::new(), insts: Vec::new(), end: end.clone(), stmt });
    for (place, arg) in args.iter_mut().enumerate() {
        let value = new_value(ssa, *arg, Def::Argument(new, place as u32));
        now.insert(*arg, value);
        *arg = value;
    }
    let insts = duplicate(ssa, &insts, now);
    if let Some(values) = end.values_mut() {
        values.iter_mut().for_each(|value| *value = at(now, *value));
    }
    ssa.regions[new.index()] = Region { args, insts, end, stmt };
    new
}

/// A value like another one, from elsewhere.
pub(crate) fn new_value(ssa: &mut Ssa, like: Value, def: Def) -> Value {
    let info = ValueInfo { def, ..*ssa.value(like) };
    ssa.values.push(info);
    Value(ssa.values.len() as u32 - 1)
}
