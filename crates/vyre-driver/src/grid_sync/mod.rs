//! Programs with grid barriers as several dispatches: one per *segment*, the statements between two grid barriers.
//!
//! The end of a dispatch orders what a grid barrier orders, and gives workgroup memory that is zero again. What it does not give is
//! what an invocation has of its own: where it is in the program and what its variables hold. [`split`] makes programs that hand
//! that on, and the functions here run them one after the other:
//!
//! - **Variables** that a later segment reads are computed again if nothing in them can have changed: ids, literals, lengths and
//!   memory that is never written, in variables that are never assigned. One that is assigned later and still holds a literal, an id
//!   or a length at the barrier begins with that again. All others whose value is used behind the barrier cross in a hidden buffer of
//!   words: a variable that is uniform in one place per workgroup, so that it still is uniform when it is loaded, others in one per
//!   invocation.
//! - **Invocations that are retired** stay so: where some may be, a hidden word per invocation says who is not, and later segments
//!   begin by asking for it.
//! - **Traps** before the last segment that does something become hidden words too, since a dispatch that traps gives no outputs and
//!   a smaller invocation may still trap later. When all segments have run, the smallest invocation's trap is the error.
//! - **Memory**: all buffers that can be written go through every segment, by name. An output is zero at the start of the first
//!   segment only; then it is `read_write`. A read-only buffer is passed to the segments that use it.
//!
//! A hidden buffer exists only at barriers that something crosses: each segment reads the one (`read`, so that loads of it can be
//! uniform) and writes the next (`output`). Their names begin with `$`, their bindings are above all others. Where the launch
//! cannot be known before, because bytes do not have the declared length, a program without hidden buffers is run all the same,
//! bytes handed on as they are, and the backend judges them.
//!
//! Refused before anything runs: programs that are not valid, hidden buffers above the backend's or the caller's limits, and
//! programs so deeply nested that there is no room to record a trap.

mod run;
mod split;
mod state;

pub use run::{
    dispatch_resident_with_grid_sync_split_timed, dispatch_with_grid_sync_split, dispatch_with_grid_sync_split_into,
    dispatch_with_grid_sync_split_timed,
};
pub use split::{Segment, Split, split};
pub use state::State;

use vyre_foundation::ir::{Item, Node, Program};
use vyre_foundation::memory_model::MemoryOrdering;

/// Whether a program has a grid barrier.
#[must_use]
pub fn contains_grid_sync(program: &Program) -> bool {
    match program.validated() {
        // Found out once.
        Ok(validated) => validated.kernel().uses.grid_sync,
        Err(_) => {
            program.walk().any(|(item, _)| matches!(item, Item::Node(Node::Barrier { ordering: MemoryOrdering::GridSync })))
        }
    }
}
