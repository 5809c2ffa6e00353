//! Buffers that a thread has for itself: where a kernel does nothing with a buffer but change its elements by one op, and never asks for the
//! old ones, a thread changes elements of its own, which begin with what changes nothing, and changes the buffer by these when its workgroups
//! are done.

use super::atomics::is_signed;
use crate::machine::lir::V3;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering::Relaxed};
use vyre_foundation::ir::{Access, AtomicOp};
use vyre_foundation::kernel::BufferId;
use vyre_foundation::ssa::{InstKind, Ssa};

/// The most elements of a buffer that a thread has for itself.
pub(crate) const MAX_OWN: u32 = 4096;

/// How an element is changed when nobody asks for the old value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Quiet {
    Add,
    And,
    Or,
    Xor,
    MinU,
    MaxU,
    MinS,
    MaxS,
}

impl Quiet {
    /// What an atomic does to an element, if that is all that it does; operands of a subtraction are to be negated.
    pub fn of(op: AtomicOp, signed: bool) -> Option<Quiet> {
        match (op, signed) {
            (AtomicOp::Add | AtomicOp::Sub, _) => Some(Quiet::Add),
            (AtomicOp::And, _) => Some(Quiet::And),
            (AtomicOp::Or, _) => Some(Quiet::Or),
            (AtomicOp::Xor, _) => Some(Quiet::Xor),
            (AtomicOp::Min, false) => Some(Quiet::MinU),
            (AtomicOp::Max, false) => Some(Quiet::MaxU),
            (AtomicOp::Min, true) => Some(Quiet::MinS),
            (AtomicOp::Max, true) => Some(Quiet::MaxS),
            (AtomicOp::Exchange | AtomicOp::CompareExchange | AtomicOp::Load | AtomicOp::Store, _) => None,
        }
    }

    /// What changes nothing.
    pub fn identity(self) -> u32 {
        match self {
            Quiet::Add | Quiet::Or | Quiet::Xor | Quiet::MaxU => 0,
            Quiet::And | Quiet::MinU => u32::MAX,
            Quiet::MinS => i32::MAX as u32,
            Quiet::MaxS => i32::MIN as u32,
        }
    }

    /// The same for vectors.
    pub fn vector(self) -> V3 {
        match self {
            Quiet::Add => V3::vpaddd,
            Quiet::And => V3::vpand,
            Quiet::Or => V3::vpor,
            Quiet::Xor => V3::vpxor,
            Quiet::MinU => V3::vpminud,
            Quiet::MaxU => V3::vpmaxud,
            Quiet::MinS => V3::vpminsd,
            Quiet::MaxS => V3::vpmaxsd,
        }
    }

    /// Changes an element that other threads may change too.
    fn change(self, element: &AtomicU32, by: u32) {
        // SAFETY: both are 4 bytes that are aligned alike, and every bit pattern is a value of both.
        let signed = unsafe { AtomicI32::from_ptr(element.as_ptr().cast()) };
        match self {
            Quiet::Add => element.fetch_add(by, Relaxed),
            Quiet::And => element.fetch_and(by, Relaxed),
            Quiet::Or => element.fetch_or(by, Relaxed),
            Quiet::Xor => element.fetch_xor(by, Relaxed),
            Quiet::MinU => element.fetch_min(by, Relaxed),
            Quiet::MaxU => element.fetch_max(by, Relaxed),
            Quiet::MinS => signed.fetch_min(by as i32, Relaxed) as u32,
            Quiet::MaxS => signed.fetch_max(by as i32, Relaxed) as u32,
        };
    }
}

/// A buffer that a thread may have for itself while it runs workgroups.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Own {
    pub buffer: BufferId,
    op: Quiet,
}

impl Own {
    /// The buffers that a kernel does nothing with but to change elements by one op each. `uses`: how often values are mentioned.
    pub fn all(ssa: &Ssa, uses: &[u32]) -> Vec<Own> {
        let mut found: Vec<Option<Result<Quiet, ()>>> = vec![None; ssa.kernel.buffers.len()];
        ssa.for_each_inst(ssa.root, &mut |_, inst| match inst.kind {
            InstKind::Load { buffer, .. } | InstKind::Store { buffer, .. } => found[buffer.index()] = Some(Err(())),
            InstKind::Atomic { op, buffer, .. } => {
                let unused = inst.results.iter().all(|result| uses[result.index()] == 0);
                let own = Quiet::of(op, is_signed(ssa, buffer)).filter(|_| unused).ok_or(());
                let known = &mut found[buffer.index()];
                *known = Some(if known.is_none_or(|known| known == own) { own } else { Err(()) });
            }
            InstKind::Op(_)
            | InstKind::Subgroup { .. }
            | InstKind::If { .. }
            | InstKind::Loop { .. }
            | InstKind::Barrier
            | InstKind::GridSync => {}
        });
        let may_be_own = |buffer: BufferId| {
            let declared = ssa.kernel.buffer(buffer);
            declared.access != Access::Workgroup && declared.count.is_none_or(|count| count <= MAX_OWN)
        };
        let all = found.iter().enumerate().filter_map(|(n, op)| Some(Own { buffer: BufferId(n as u32), op: (*op)?.ok()? }));
        all.filter(|own| may_be_own(own.buffer)).collect()
    }

    /// What a thread begins with.
    pub fn begin(self, own: &mut [u32]) {
        own.fill(self.op.identity());
    }

    /// Changes the elements of the buffer by those of a thread.
    ///
    /// # Safety
    ///
    /// The buffer has as many elements as the thread's, is aligned to 4 bytes, and is only touched atomically meanwhile.
    pub unsafe fn end(self, own: &[u32], buffer: *mut u8) {
        for (n, by) in own.iter().enumerate().filter(|(_, by)| **by != self.op.identity()) {
            // SAFETY: as the caller promises.
            self.op.change(unsafe { AtomicU32::from_ptr(buffer.cast::<u32>().add(n)) }, *by);
        }
    }
}
