//! Which buffers a caller passes and gets back, and in what order.

use crate::ir::{Access, Parts};

/// The lists of a program's buffers, each an index into [`Parts::buffers`].
///
/// Order is by binding number everywhere; this is the only place that computes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interface {
    /// What the caller passes: `read`, `read_write` and `uniform` buffers, by binding.
    pub inputs: Vec<usize>,
    /// What the caller gets back: `read_write` and `output` buffers, by binding.
    pub outputs: Vec<usize>,
    /// What either of them has: all but the memory of workgroups, by binding. A dispatch on resources takes one for each.
    pub bound: Vec<usize>,
    /// Memory of workgroups, in the order of declaration.
    pub workgroup: Vec<usize>,
}

impl Interface {
    /// The lists of these parts.
    #[must_use]
    pub fn of(parts: &Parts) -> Interface {
        let list = |wanted: fn(Access) -> bool| {
            let mut list: Vec<usize> = (0..parts.buffers.len()).filter(|i| wanted(parts.buffers[*i].access)).collect();
            list.sort_by_key(|i| parts.buffers[*i].binding);
            list
        };
        Interface {
            inputs: list(Access::is_input),
            outputs: list(Access::is_output),
            bound: list(|access| access != Access::Workgroup),
            workgroup: list(|access| access == Access::Workgroup),
        }
    }
}
