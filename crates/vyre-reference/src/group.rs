//! One workgroup that is being run: its invocations and its memory.

use crate::dispatch::{Shape, position};
use crate::invocation::{Invocation, Status};
use vyre_foundation::ir::Access;
use vyre_foundation::kernel::Kernel;

pub(crate) struct Group {
    pub invocations: Vec<Invocation>,
    /// By buffer; empty for those that are not workgroup memory.
    pub memory: Vec<Vec<u8>>,
    /// Its number in the grid, x fastest.
    pub number: u32,
    /// Tells it apart from other workgroups that are alive at the same time.
    pub slot: usize,
}

impl Group {
    pub fn new(kernel: &Kernel, shape: &Shape, slot: usize) -> Self {
        let memory = kernel.buffers.iter().map(|buffer| match (buffer.access, buffer.count) {
            (Access::Workgroup, Some(count)) => {
                let bytes = vyre_scalar::memory::byte_length(&buffer.element, u64::from(count));
                vec![0; bytes.expect("validated: workgroup memory is small") as usize]
            }
            (Access::Workgroup | Access::Read | Access::ReadWrite | Access::Output | Access::Uniform, _) => Vec::new(),
        });
        let invocations = (0..shape.group_invocations()).map(|_| Invocation::new(kernel)).collect();
        Group { invocations, memory: memory.collect(), number: 0, slot }
    }

    /// Becomes the n-th workgroup of the grid, at the start of the program; its memory is left as it is.
    pub fn start(&mut self, kernel: &Kernel, shape: &Shape, number: u32) {
        self.number = number;
        for (invocation, n) in self.invocations.iter_mut().zip(0..) {
            invocation.start(kernel, position(n, shape.workgroup_size), position(number, shape.grid));
        }
    }

    pub fn clear_memory(&mut self) {
        self.memory.iter_mut().for_each(|bytes| bytes.fill(0));
    }

    /// The number of an invocation in the dispatch, workgroup by workgroup.
    pub fn invocation_number(&self, n: usize) -> u32 {
        // The launch is planned so that invocations can be counted by u32.
        self.number * self.invocations.len() as u32 + n as u32
    }

    pub fn any(&self, status: Status) -> bool {
        self.invocations.iter().any(|invocation| invocation.status == status)
    }

    /// Lets the invocations that wait there go on.
    ///
    /// Uniformity is validated, so those that wait at all wait at the same statement.
    pub fn release(&mut self, at: Status) {
        for invocation in &mut self.invocations {
            debug_assert!(matches!(invocation.status, Status::Retired) || invocation.status == at, "uniformity is validated");
            if invocation.status == at {
                invocation.status = Status::Ready;
            }
        }
    }
}
