//! Which buffers a caller passes and gets back, and in what order.

use crate::ir::{Access, Parts};
use crate::kernel::Kernel;

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
        Interface::new(parts.buffers.iter().map(|buffer| (buffer.access, buffer.binding)).collect())
    }

    /// The lists of a kernel, which are those of its program.
    #[must_use]
    pub fn of_kernel(kernel: &Kernel) -> Interface {
        Interface::new(kernel.buffers.iter().map(|buffer| (buffer.access, buffer.binding)).collect())
    }

    fn new(buffers: Vec<(Access, Option<u32>)>) -> Interface {
        let list = |wanted: fn(Access) -> bool| {
            let mut list: Vec<usize> = (0..buffers.len()).filter(|i| wanted(buffers[*i].0)).collect();
            list.sort_by_key(|i| buffers[*i].1);
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
