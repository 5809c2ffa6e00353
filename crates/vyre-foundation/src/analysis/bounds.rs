//! Which loads, stores and atomics are known to be in bounds.
//!
//! A backend checks every index, because an access out of bounds must load 0 or do nothing. Where this analysis has a proof, the
//! check can go. An access `b[i]` is in bounds if `i` is below `len(b)`, or if its largest value is below the declared count of `b`
//! (a launch with another length is refused). What is known about `i` where the access stands comes from `ranges.rs`.
//!
//! The proof is about invocations that reach the access, in any launch that fits the program, and about the index that the form
//! computes there: of memory that can be written no two loads are one value, even side by side, since another invocation may write
//! between them, and a program that races is still memory-safe.

use super::ranges::Flow;
use crate::diagnostic::Location;
use crate::ir::{NodeId, Program};
use crate::kernel::AccessId;
use crate::ssa::{InstKind, Ssa};
use std::sync::Arc;

/// Which accesses are in bounds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// By access. One that is never reached is not proven.
    proven: Vec<bool>,
}

impl Bounds {
    /// The facts of a form.
    #[must_use]
    pub fn of(ssa: &Ssa) -> Bounds {
        // An access that a compiler has written out several times is several instructions, all of which have to be.
        let mut insts: Vec<Option<(AccessId, bool)>> = vec![None; ssa.insts.len()];
        Flow::new(ssa).run(&mut |flow, inst| {
            let (access, buffer, index) = match ssa.inst(inst).kind {
                InstKind::Load { access, buffer, index }
                | InstKind::Store { access, buffer, index, .. }
                | InstKind::Atomic { access, buffer, index, .. } => (access, buffer, index),
                InstKind::Op(_)
                | InstKind::Subgroup { .. }
                | InstKind::If { .. }
                | InstKind::Loop { .. }
                | InstKind::Barrier
                | InstKind::GridSync => return,
            };
            let index = flow.range(index);
            let count = ssa.kernel.buffer(buffer).count;
            let is_below = index.below.contains(buffer) || count.is_some_and(|count| index.high < count);
            insts[inst.index()] = Some((access, is_below));
        });
        let mut seen = vec![None; ssa.kernel.accesses.len()];
        for (access, is_below) in insts.into_iter().flatten() {
            let all: &mut Option<bool> = &mut seen[access.index()];
            *all = Some(all.unwrap_or(true) && is_below);
        }
        Bounds { proven: seen.into_iter().map(|all| all == Some(true)).collect() }
    }

    /// Whether the index of an access is below its buffer's length whenever it is reached.
    #[must_use]
    pub fn is_proven(&self, access: AccessId) -> bool {
        self.proven[access.index()]
    }

    /// Every access as it is spelled in the program's text, in source order, and whether it is proven. `program` is what the facts
    /// are about.
    #[must_use]
    pub fn spelled(&self, program: &Program) -> Vec<(String, bool)> {
        let Ok(validated) = program.validated() else { return Vec::new() };
        let source = program.source().cloned().unwrap_or_else(|| Arc::new(crate::text::print(program)));
        let mut accesses: Vec<_> = validated.kernel().accesses.iter().zip(&self.proven).collect();
        accesses.sort_by_key(|(access, _)| access.node);
        let spelled = accesses.into_iter().map(|(access, proven)| {
            let span = source.span(Location::Tree(NodeId(access.node.0 + 1)));
            let index = source.text.get(span.start as usize..span.end as usize).unwrap_or("…");
            let index = index.split_whitespace().collect::<Vec<_>>().join(" ");
            (format!("{}[{index}]", validated.kernel().buffer(access.buffer).name), *proven)
        });
        spelled.collect()
    }
}
