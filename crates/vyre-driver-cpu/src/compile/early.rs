//! Makes what follows an early return the other arm of its `if`.
//!
//! `if gid.x >= len(out) { return }` retires invocations, and whatever comes behind it has to ask who is left. As
//! `if gid.x >= len(out) { } else { … }` it asks nothing: where everybody of a block goes on, that is found out once
//! ([`guards`](super::guards)), and the code of the arm has no masks.
//!
//! An invocation that is retired does what one does that has come to the end, as long as nobody meets it any more: so nothing may be behind
//! the `if` where invocations meet, at barriers or in subgroups. What is behind has to be all that is left of the program; in loops a return
//! also ends these, and stays.

use vyre_foundation::ssa::{InstId, InstKind, RegionId, Ssa, Terminator};

/// How many returns become arms at the most: each makes what follows it one level deeper.
const MOST: u32 = 16;

/// Turns early returns into arms.
pub(crate) fn early_returns(ssa: &mut Ssa) {
    let mut region = ssa.root;
    let is_end = matches!(ssa.region(region).end, Terminator::Yield(_) | Terminator::Return);
    for _ in 0..if is_end { MOST } else { 0 } {
        let Some((at, returns, goes_on)) = first_return(ssa, region) else { return };
        let rest = ssa.regions[region.index()].insts.split_off(at + 1);
        ssa.regions[goes_on.index()].insts.extend(rest);
        ssa.regions[returns.index()].end = Terminator::Yield(Vec::new());
        region = goes_on;
    }
}

/// The first `if` one arm of which returns, where nobody meets anybody from there on: its place, that arm, and the other.
fn first_return(ssa: &Ssa, region: RegionId) -> Option<(usize, RegionId, RegionId)> {
    let insts = &ssa.region(region).insts;
    let alone = insts.iter().rev().take_while(|id| !meets(ssa, **id)).count();
    insts.iter().enumerate().skip(insts.len() - alone).find_map(|(at, id)| {
        let inst = ssa.inst(*id);
        let InstKind::If { then, otherwise, .. } = inst.kind else { return None };
        let [one, other] = [then, otherwise].map(|arm| &ssa.region(arm).end);
        match (one, other) {
            (Terminator::Return, Terminator::Yield(_)) if inst.results.is_empty() => Some((at, then, otherwise)),
            (Terminator::Yield(_), Terminator::Return) if inst.results.is_empty() => Some((at, otherwise, then)),
            (_, _) => None,
        }
    })
}

/// Whether invocations meet in an instruction.
fn meets(ssa: &Ssa, id: InstId) -> bool {
    let kind = &ssa.inst(id).kind;
    matches!(kind, InstKind::Barrier | InstKind::GridSync | InstKind::Subgroup { .. })
        || kind.regions().any(|region| ssa.region(region).insts.iter().any(|id| meets(ssa, *id)))
}
