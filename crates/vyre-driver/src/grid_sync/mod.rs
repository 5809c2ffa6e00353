//! Programs with grid barriers.

use vyre_foundation::ir::{Item, Node, Program};
use vyre_foundation::memory_model::MemoryOrdering;

/// Whether a program has a grid barrier.
#[must_use]
pub fn contains_grid_sync(program: &Program) -> bool {
    program.walk().any(|(item, _)| matches!(item, Item::Node(Node::Barrier { ordering: MemoryOrdering::GridSync })))
}

use crate::backend::{BackendError, DispatchConfig, OutputBuffers, Resource, TimedDispatchResult, VyreBackend};

fn cannot() -> BackendError {
    BackendError::InvalidProgram { fix: "this program cannot be split at its grid barriers".into() }
}

/// Runs the program as one dispatch per segment.
pub fn dispatch_with_grid_sync_split(
    _: &dyn VyreBackend,
    _: &Program,
    _: &[&[u8]],
    _: &DispatchConfig,
) -> Result<OutputBuffers, BackendError> {
    Err(cannot())
}
/// Timed.
pub fn dispatch_with_grid_sync_split_timed(
    _: &dyn VyreBackend,
    _: &Program,
    _: &[&[u8]],
    _: &DispatchConfig,
) -> Result<TimedDispatchResult, BackendError> {
    Err(cannot())
}
/// Into the caller's buffers.
pub fn dispatch_with_grid_sync_split_into(
    _: &dyn VyreBackend,
    _: &Program,
    _: &[&[u8]],
    _: &DispatchConfig,
    _: &mut OutputBuffers,
) -> Result<(), BackendError> {
    Err(cannot())
}
/// On resident data.
pub fn dispatch_resident_with_grid_sync_split_timed(
    _: &dyn VyreBackend,
    _: &Program,
    _: &[Resource],
    _: &DispatchConfig,
) -> Result<TimedDispatchResult, BackendError> {
    Err(cannot())
}
