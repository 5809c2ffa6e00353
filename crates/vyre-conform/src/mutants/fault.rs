//! What is wrong with a mutant: where the fault lies, and what of a dispatch it touches.

use super::device::DeviceFault;
use super::rewrite::{Change, rewritten};
use super::state::{Stale, WeakKey};
use std::ops::Range;
use vyre_foundation::ir::Program;
use vyre_foundation::kernel::Kernel;
use vyre_foundation::launch::Launch;
use vyre_reference::Schedule;
use vyre_reference::faults::BulkFault;

/// Where a fault is.
pub(super) enum Fault {
    /// In the code that is made of a program.
    Code(Change),
    /// In the code, and where only one invocation after the other shows it: the plain interpreter runs it in this order.
    Ordered(Change, Schedule),
    /// In the evaluator, for the kernels that can show it.
    Evaluator(BulkFault, fn(&Kernel) -> bool),
    /// Workgroups do not run.
    Groups(LostGroups),
    /// Another fault, in workgroups of this many invocations alone.
    AtSize(u32, Box<Fault>),
    /// What the dispatch before left is taken for what is there now.
    Stale(Stale),
    /// The code of another program is taken for that of this one.
    CacheKey(WeakKey),
    /// In the device's memory, where buffers stay from dispatch to dispatch.
    Device(DeviceFault),
}

/// A fault for which there is code of its own.
pub(super) enum Place<'a> {
    Code(&'a Change, Option<&'a Schedule>),
    Evaluator(BulkFault),
}

impl Fault {
    /// What of it is in the code.
    pub fn place(&self) -> Option<Place<'_>> {
        match self {
            Fault::Code(change) => Some(Place::Code(change, None)),
            Fault::Ordered(change, schedule) => Some(Place::Code(change, Some(schedule))),
            Fault::Evaluator(fault, _) => Some(Place::Evaluator(*fault)),
            Fault::AtSize(_, inner) => inner.place(),
            Fault::Groups(_) | Fault::Stale(_) | Fault::CacheKey(_) | Fault::Device(_) => None,
        }
    }

    /// The workgroups that do not run.
    pub fn lost_groups(&self) -> Option<LostGroups> {
        match self {
            Fault::Groups(lost) => Some(*lost),
            Fault::AtSize(_, inner) => inner.lost_groups(),
            Fault::Code(_)
            | Fault::Ordered(..)
            | Fault::Evaluator(..)
            | Fault::Stale(_)
            | Fault::CacheKey(_)
            | Fault::Device(_) => None,
        }
    }

    /// The only size of workgroups that it shows at.
    pub fn at_size(&self) -> Option<u32> {
        if let Fault::AtSize(size, _) = self { Some(*size) } else { None }
    }

    /// What it takes over from the dispatch before.
    pub fn stale(&self) -> Option<&Stale> {
        if let Fault::Stale(stale) = self { Some(stale) } else { None }
    }

    /// What it knows programs by.
    pub fn weak_key(&self) -> Option<&WeakKey> {
        if let Fault::CacheKey(key) = self { Some(key) } else { None }
    }

    /// Whether it can touch a valid program without constants.
    pub fn applies(&self, program: &Program) -> bool {
        let Ok(validated) = program.validated() else { return false };
        let kernel = validated.kernel();
        match self {
            Fault::Code(change) | Fault::Ordered(change, _) => rewritten(program, change).is_some(),
            Fault::Evaluator(_, shows) => shows(kernel),
            Fault::Groups(_) => !kernel.uses.grid_sync,
            // The size can be another at launch, where the program cannot tell.
            Fault::AtSize(size, inner) => {
                let declared = kernel.workgroup_size.iter().product::<u32>() == *size;
                (declared || may_be_overridden(kernel)) && inner.applies(program)
            }
            Fault::Stale(stale) => stale.applies(program),
            Fault::CacheKey(_) => true,
            Fault::Device(_) => true,
        }
    }
}

/// Whether a launch may say another workgroup size. It may say so of fewer kernels than this; a guess on the safe side is enough.
fn may_be_overridden(kernel: &Kernel) -> bool {
    !kernel.uses.grid_sync && kernel.subgroup.is_none() && kernel.buffers.iter().all(|buffer| buffer.binding.is_some())
}

/// Which workgroups do not run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LostGroups {
    /// The first.
    First,
    /// The last, if there are so many or more.
    LastOf(u32),
    /// The last, if their number is odd.
    LastOfOdd,
    /// Those beyond a multiple of this, if there are more than one.
    Remainder(u32),
    /// Those from this one on.
    From(u32),
    /// The one in the middle, if there are three or more.
    Middle,
    /// The last row of a grid that has several.
    LastRow,
    /// The last plane of a grid that has several.
    LastPlane,
    /// The last of the first half and the last of the second, if there are four or more.
    LastOfEachHalf,
}

impl LostGroups {
    /// What runs of a dispatch.
    pub fn what_runs(self, launch: &Launch) -> Vec<Range<u32>> {
        let all = launch.groups();
        let [x, y, z] = launch.grid;
        let up_to = |end: u32| std::iter::once(0..end).collect();
        match self {
            LostGroups::First => std::iter::once(1.min(all)..all).collect(),
            LostGroups::LastOf(least) if all >= least => up_to(all - 1),
            LostGroups::LastOfOdd if all % 2 == 1 && all > 1 => up_to(all - 1),
            LostGroups::Remainder(of) if all > of => up_to(all - all % of),
            LostGroups::From(first) => up_to(all.min(first)),
            LostGroups::Middle if all >= 3 => vec![0..all / 2, all / 2 + 1..all],
            LostGroups::LastRow if y > 1 => up_to(x * (y * z - 1)),
            LostGroups::LastPlane if z > 1 => up_to(x * y * (z - 1)),
            LostGroups::LastOfEachHalf if all >= 4 => vec![0..all / 2 - 1, all / 2..all - 1],
            LostGroups::LastOf(_)
            | LostGroups::LastOfOdd
            | LostGroups::Remainder(_)
            | LostGroups::Middle
            | LostGroups::LastRow
            | LostGroups::LastPlane
            | LostGroups::LastOfEachHalf => up_to(all),
        }
    }
}
