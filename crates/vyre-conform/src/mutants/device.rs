//! Faults of a device's memory: the bulk evaluator as a device that loses, delays or mixes up what stays on it between dispatches.
//!
//! Dispatches over the caller's slices are right. Only what is submitted in one go, uploads, dispatches and downloads, goes wrong.

use std::sync::Arc;
use vyre_driver::device::{
    Call, Code, CodeOptions, Deadline, Device, DeviceError, DeviceInfo, Generation, Memory, Ran, Span, Step, Submission, backend,
};
use vyre_driver_reference::bulk_device;
use vyre_foundation::kernel::Kernel;
use vyre_worker::Subject;
use vyre_worker::backend::{BackendSubject, Form};

/// What a device does wrong with submissions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum DeviceFault {
    /// The n-th upload is lost.
    LostUpload(usize),
    /// The last upload is lost.
    LostLastUpload,
    /// Bytes beyond a multiple of this are not uploaded.
    ShortUpload(u64),
    /// The n-th upload comes after the first dispatch.
    LateUpload(usize),
    /// All dispatches after the first do nothing.
    LostLater,
    /// The last of several dispatches does nothing.
    LostLast,
    /// Outputs of dispatches after the first are not zero at their start.
    KeepsOutputs,
    /// Dispatches after the first see the n-th binding as it was before the dispatch in front of them.
    Before(usize),
    /// Dispatches after the first see the n-th binding as zeros: the copy that hands it over is lost.
    LostCopy(usize),
    /// Dispatches after the first have these two bindings exchanged, if they are equally long.
    Swapped(usize, usize),
    /// Dispatches after the first see zeros in so many last bytes of the n-th binding.
    LostEnd(usize, u64),
    /// What comes back is read before the last of several dispatches.
    EarlyRead,
    /// The last workgroup of dispatches after the first does not run.
    LostGroup,
}

/// The bulk device with a fault.
struct MutantDevice {
    inner: Arc<dyn Device>,
    fault: DeviceFault,
}

/// The subject of this name over such a device.
pub(super) fn subject(name: &str, fault: DeviceFault) -> Box<dyn Subject> {
    let open = move || Ok(Arc::from(backend(Arc::new(MutantDevice { inner: bulk_device(), fault }))));
    Box::new(BackendSubject::over(name, Form::Into, open))
}

impl Device for MutantDevice {
    fn info(&self) -> Arc<DeviceInfo> {
        self.inner.info()
    }

    fn compile(&self, kernel: &Arc<Kernel>, options: &CodeOptions) -> Result<Code, DeviceError> {
        self.inner.compile(kernel, options)
    }

    fn allocate(&self, bytes: u64) -> Result<Memory, DeviceError> {
        self.inner.allocate(bytes)
    }

    fn run(&self, call: &mut Call<'_, '_>, deadline: Deadline) -> Result<Ran, DeviceError> {
        self.inner.run(call, deadline)
    }

    fn submit(&self, steps: Vec<Step>, deadline: Deadline) -> Result<Box<dyn Submission>, DeviceError> {
        self.inner.submit(self.changed(steps)?, deadline)
    }

    fn recover(&self) -> Result<Generation, DeviceError> {
        self.inner.recover()
    }
}

fn is_dispatch(step: &Step) -> bool {
    matches!(step, Step::Dispatch { .. })
}

fn is_write(step: &Step) -> bool {
    matches!(step, Step::Write { .. })
}

fn zeros(to: Span) -> Step {
    let bytes = vec![0; to.len() as usize].into();
    Step::Write { to, bytes }
}

impl MutantDevice {
    /// What is done instead of these steps.
    fn changed(&self, mut steps: Vec<Step>) -> Result<Vec<Step>, DeviceError> {
        let nth_write =
            |steps: &[Step], n: usize| steps.iter().enumerate().filter(|(_, step)| is_write(step)).nth(n).map(|(at, _)| at);
        match self.fault {
            DeviceFault::LostUpload(n) => {
                if let Some(at) = nth_write(&steps, n) {
                    steps.remove(at);
                }
            }
            DeviceFault::LostLastUpload => {
                if let Some(at) = steps.iter().rposition(is_write) {
                    steps.remove(at);
                }
            }
            DeviceFault::ShortUpload(unit) => {
                for step in &mut steps {
                    if let Step::Write { to, bytes } = step {
                        let whole = to.len() - to.len() % unit;
                        to.range.end = to.range.start + whole;
                        *bytes = bytes[..whole as usize].into();
                    }
                }
            }
            DeviceFault::LateUpload(n) => {
                if let (Some(from), Some(to)) = (nth_write(&steps, n), steps.iter().position(is_dispatch))
                    && from < to
                {
                    steps[from..=to].rotate_left(1);
                }
            }
            DeviceFault::EarlyRead => {
                if let Some(last) = steps.iter().rposition(is_dispatch).filter(|_| several(&steps)) {
                    let step = steps.remove(last);
                    steps.push(step);
                }
            }
            DeviceFault::LostLast => {
                let last = steps.iter_mut().rev().find(|step| is_dispatch(step));
                if let Some(Step::Dispatch { groups, .. }) = last {
                    *groups = 0..0;
                }
            }
            DeviceFault::LostLater
            | DeviceFault::KeepsOutputs
            | DeviceFault::Before(_)
            | DeviceFault::LostCopy(_)
            | DeviceFault::Swapped(..)
            | DeviceFault::LostEnd(..)
            | DeviceFault::LostGroup => return self.later_dispatches(steps),
        }
        Ok(steps)
    }

    /// Changes every dispatch after the first.
    fn later_dispatches(&self, steps: Vec<Step>) -> Result<Vec<Step>, DeviceError> {
        let mut done: Vec<Step> = Vec::new();
        for mut step in steps {
            let before = done.iter().rposition(is_dispatch);
            if let (Some(before), Step::Dispatch { groups, zero_outputs, bindings, .. }) = (before, &mut step) {
                match self.fault {
                    DeviceFault::LostLater => *groups = 0..0,
                    DeviceFault::KeepsOutputs => *zero_outputs = false,
                    DeviceFault::LostGroup if groups.end > groups.start + 1 => groups.end -= 1,
                    DeviceFault::Swapped(a, b) if a.max(b) < bindings.len() && bindings[a].len() == bindings[b].len() => {
                        bindings.swap(a, b);
                    }
                    DeviceFault::Before(n) | DeviceFault::LostCopy(n) if n < bindings.len() => {
                        let shadow = self.inner.allocate(bindings[n].len())?.whole();
                        let from = std::mem::replace(&mut bindings[n], shadow.clone());
                        if let DeviceFault::Before(_) = self.fault {
                            done.insert(before, Step::Copy { from, to: shadow });
                        }
                    }
                    DeviceFault::LostEnd(n, bytes) if n < bindings.len() => {
                        let mut end = bindings[n].clone();
                        end.range.start = end.range.end.saturating_sub(bytes).max(end.range.start);
                        done.push(zeros(end));
                    }
                    DeviceFault::LostUpload(_)
                    | DeviceFault::LostLastUpload
                    | DeviceFault::ShortUpload(_)
                    | DeviceFault::LateUpload(_)
                    | DeviceFault::LostLast
                    | DeviceFault::EarlyRead
                    | DeviceFault::Before(_)
                    | DeviceFault::LostCopy(_)
                    | DeviceFault::Swapped(..)
                    | DeviceFault::LostEnd(..)
                    | DeviceFault::LostGroup => {}
                }
            }
            done.push(step);
        }
        Ok(done)
    }
}

fn several(steps: &[Step]) -> bool {
    steps.iter().filter(|step| is_dispatch(step)).count() > 1
}
