//! Evaluators of one kernel, for whoever runs it from several threads: a run takes one that is idle or makes one, so that threads do not
//! wait for each other, and a run that finds an evaluator warm allocates nothing.

use super::{Bulk, Output, Shared};
use crate::error::RunError;
use crate::fuel::Limits;
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use vyre_foundation::interface::Interface;
use vyre_foundation::kernel::Kernel;
use vyre_foundation::launch::Launch;

/// Memory that the invocations of a kernel with grid barriers may take together: all of them are under way at the same time.
const MAX_STATE_BYTES: u64 = 1 << 30;

/// An evaluator that has so much memory for invocations is not kept: getting it again is little beside filling it.
const KEPT_STATE_BYTES: u64 = 64 << 20;

/// Evaluators that are kept; more threads than this at a time make their own, and drop it.
const KEPT: usize = 32;

/// The bytes that a buffer is bound to.
#[derive(Debug)]
pub enum Bound<'a> {
    /// The kernel reads them.
    Read(&'a [u8]),
    /// The kernel writes them too.
    Write(&'a mut [u8]),
    /// The kernel writes them too, and so do other runs of the same dispatch.
    Shared(Shared<'a>),
}

/// Evaluators of one kernel.
pub struct Evaluators {
    kernel: Arc<Kernel>,
    /// By binding: whether it is an input, and whether it is an output.
    roles: Vec<(bool, bool)>,
    idle: Mutex<Vec<Bulk>>,
}

impl Evaluators {
    /// Makes a kernel ready.
    #[must_use]
    pub fn new(kernel: &Arc<Kernel>) -> Evaluators {
        let bound = Interface::of_kernel(kernel).bound;
        let access = |i: &usize| kernel.buffers[*i].access;
        let roles = bound.iter().map(|i| (access(i).is_input(), access(i).is_output())).collect();
        Evaluators { kernel: kernel.clone(), roles, idle: Mutex::new(vec![Bulk::new(kernel)]) }
    }

    /// The kernel.
    #[must_use]
    pub fn kernel(&self) -> &Arc<Kernel> {
        &self.kernel
    }

    /// About the bytes that a warm evaluator takes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        state_bytes(&self.kernel, super::BLOCK_LANES as u64)
    }

    /// Whether there is room for the invocations that a dispatch has under way at the same time.
    ///
    /// # Errors
    ///
    /// The bytes that it takes, if those are too many.
    pub fn check_room(&self, launch: &Launch) -> Result<(), u64> {
        match self.state_bytes(launch) {
            bytes if bytes > MAX_STATE_BYTES => Err(bytes),
            _ => Ok(()),
        }
    }

    fn state_bytes(&self, launch: &Launch) -> u64 {
        if self.kernel.uses.grid_sync { state_bytes(&self.kernel, launch.invocations()) } else { 0 }
    }

    /// Runs some workgroups of a dispatch in place, as [`Bulk::run_groups`] does. There is one binding per buffer of the interface's `bound`;
    /// what the kernel writes has to be bound to bytes that can be written.
    ///
    /// # Errors
    ///
    /// Those of the run.
    pub fn run<'b>(
        &self,
        launch: &Launch,
        groups: Range<u32>,
        bindings: impl Iterator<Item = Bound<'b>>,
        limits: Limits<'b>,
    ) -> Result<(), RunError> {
        // The evaluator has a list of inputs and one of outputs; what is both is in the second.
        let mut inputs: SmallVec<[&[u8]; 8]> = SmallVec::new();
        let mut outputs: SmallVec<[Output<'_>; 8]> = SmallVec::new();
        for (binding, (is_input, is_output)) in bindings.zip(&self.roles) {
            let output = match binding {
                Bound::Read(bytes) => {
                    assert!(!is_output, "a buffer that is written is bound to bytes that can be");
                    inputs.push(bytes);
                    continue;
                }
                Bound::Write(bytes) => Output::Own(bytes),
                Bound::Shared(shared) => Output::Shared(shared),
            };
            if *is_input {
                inputs.push(&[]);
            }
            outputs.push(output);
        }
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = idle().pop();
        let mut bulk = kept.unwrap_or_else(|| Bulk::new(&self.kernel));
        let result = bulk.run_outputs(launch, groups, &inputs, &mut outputs, limits);
        if self.state_bytes(launch) <= KEPT_STATE_BYTES {
            let mut idle = idle();
            if idle.len() < KEPT {
                idle.push(bulk);
            }
        }
        result
    }
}

/// About what so many invocations take at the same time.
fn state_bytes(kernel: &Kernel, invocations: u64) -> u64 {
    invocations.saturating_mul(16 * (kernel.vars.len() as u64 + 8))
}
