//! One block: some workgroups side by side, all their invocations in step.
//!
//! Every statement is executed for all lanes before the next, under a mask of the lanes that take part. That is one legal schedule
//! of the invocations, and it makes barriers nothing: when a lane arrives at one, all others have too. What a lane computes while it
//! is masked out is never seen, and no op can fail, so pure ops ignore the mask. Memory is different: what an inactive lane would
//! store may belong to somebody else, so no byte of it is touched.
//!
//! What a block does is in the files beside this one: statements and masks in `control.rs`, `expr.rs`, `vars.rs`, `access.rs`,
//! `exchange.rs`, `ids.rs`; its lanes and their columns are a [`Frame`].

use super::column::{Stack, Val};
use super::compact::Loop;
use super::frame::Frame;
use super::shared::Output;
use crate::fuel::{Fuel, Stopped};
use pulp::Arch;
use vyre_foundation::ir::NodeId;
use vyre_foundation::kernel::Kernel;
use vyre_foundation::launch::Launch;

/// Up to four components; scalars use the first.
pub(super) type Vals = [Val; 4];

pub(super) const NOTHING: Vals = [Val::Splat(0); 4];

/// Which lanes take part.
#[derive(Clone, Copy)]
pub(super) struct Mask {
    /// A column of 0 and 1, or every lane.
    pub column: Option<usize>,
    pub count: usize,
}

impl Mask {
    pub const NONE: Mask = Mask { column: None, count: 0 };
}

pub(super) type Step<T> = Result<T, Stopped>;

/// Where the bytes of a buffer are.
#[derive(Clone, Copy)]
pub(super) enum Home {
    Input(usize),
    Output(usize),
    /// At this byte of every workgroup's memory.
    Workgroup(usize),
}

/// The smallest invocation that trapped.
#[derive(Clone, Copy)]
pub(super) struct Trap {
    /// Its place in the order of invocations.
    pub order: u64,
    pub invocation: [u32; 3],
    pub tag: u32,
    /// The statement.
    pub place: NodeId,
}

/// Everything a block reads and writes.
pub(super) struct Block<'a, 'b, F> {
    /// What the processor can do.
    pub arch: Arch,
    pub kernel: &'a Kernel,
    pub launch: &'a Launch,
    pub homes: &'a [Home],
    /// By counter: what is known about its loop.
    pub loops: &'a [Option<Loop>],
    /// Whether lanes are compacted even where it does not pay.
    pub compact_always: bool,
    pub inputs: &'a [&'a [u8]],
    pub outputs: &'a mut [Output<'b>],
    /// The lanes that are executed.
    pub frame: &'a mut Frame,
    /// Frames that are not in use.
    pub spare: &'a mut Vec<Frame>,
    /// Bytes of workgroup memory of one workgroup.
    pub group_bytes: usize,
    /// Workgroups in the block.
    pub groups: usize,
    /// Lanes of one workgroup.
    pub group: usize,
    /// The number of the block's first workgroup, x fastest.
    pub first_group: u32,
    pub fuel: &'a mut Fuel<'b>,
    pub trap: &'a mut Option<Trap>,
    pub faults: F,
}

impl<F> Block<'_, '_, F> {
    #[inline]
    pub fn narrow(&mut self) -> &mut Stack<u32> {
        &mut self.frame.narrow
    }

    #[inline]
    pub fn subgroup_size(&self) -> u32 {
        self.kernel.subgroup.expect("validated: subgroups need a declared size")
    }

    #[inline]
    pub fn takes_part(&self, mask: Mask, lane: usize) -> bool {
        mask.count > 0 && mask.column.is_none_or(|column| self.frame.narrow.column(column)[lane] != 0)
    }

    /// The bits of a value in one lane.
    #[inline]
    pub fn lane_of(&self, value: Val, lane: usize) -> u64 {
        match value {
            Val::Splat(bits) => bits,
            Val::Narrow(column) => u64::from(self.frame.narrow.column(column)[lane]),
            Val::Wide(column) => self.frame.wide.column(column)[lane],
        }
    }
}
