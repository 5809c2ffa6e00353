//! What a real backend implements: a small trait over kernels, bytes and time.
//!
//! [`VyreBackend`](crate::VyreBackend) is what callers hold; it is wide, and [`backend`] implements all of it over any device: checks,
//! configuration, pipelines and their caches, resident handles, timeouts, batches. A device sees only what was checked.
//!
//! **Who checks what.** A device may rely on this: the kernel is valid and uses nothing that [`DeviceInfo`] denies; the launch was
//! planned for it; there is one binding per buffer of the kernel's [`Interface`](vyre_foundation::interface::Interface), in the order of
//! `bound`, as long as the launch says. It checks what only it can know: that handles are its own and of this generation, that spans lie
//! inside their memory, that no span which the kernel writes overlaps another binding.
//!
//! **Order.** The steps of a submission run in order, and submissions in the order of the calls to [`Device::submit`]; a submission sees
//! everything that those before it have written. [`Device::run`] is ordered behind every submission that was made before the call, as
//! far as they share memory.
//!
//! **Failure.** A step that fails ends its submission; later submissions run, and see what was written until then. What a failed dispatch
//! was to write, slices or memory, is unspecified afterwards, unless it was refused: [`DeviceError::Unsupported`], `OutOfMemory`, `Stale`,
//! `OutOfRange` and `Aliased` of [`Device::run`] come before anything is written, where the kernel has no grid barriers. A lost device
//! fails everything that is in flight and everything that comes, until [`Device::recover`].
//!
//! **Time.** A deadline ends a dispatch: no further workgroups start, and those that run are stopped where the device can do that. A device
//! that cannot ([`Capabilities::interruptible`]) is given work in slices by the adapter. A submission that waits in line is looked at when its
//! turn comes, and when somebody polls it or waits for it.
//!
//! **Wrappers** (fault [injection](inject), mutants, probes, proxies) implement the trait over another device and hand handles through as they
//! are. No method has a default: one that is added breaks the build of every wrapper, so that none is forgotten.

mod adapter;
mod handle;
mod host;
pub mod inject;
mod queue;
mod ran;

pub use adapter::backend;
pub use handle::{Code, Generation, Identity, Memory, Span, Stale};
pub use host::{Bytes, Execution, HostCode, HostDevice, HostKernels, Stop};
pub use queue::{Attempt, Job, Queue, Ticket};
pub use ran::Ran;

use std::collections::HashSet;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};
use vyre_foundation::ir::OpId;
use vyre_foundation::kernel::Kernel;
use vyre_foundation::launch::Launch;
use vyre_spec::limits::MAX_WORKGROUP_INVOCATIONS;

/// Something that runs kernels on bytes.
pub trait Device: Send + Sync {
    /// What it is and can do. Only the generation ever changes.
    fn info(&self) -> Arc<DeviceInfo>;

    /// Makes a kernel ready to run. May take long; several threads may compile at once.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Unsupported`] for a kernel that it cannot run.
    fn compile(&self, kernel: &Arc<Kernel>, options: &CodeOptions) -> Result<Code, DeviceError>;

    /// So many bytes, zero. The last drop of the handle frees them, after the last use that was submitted.
    ///
    /// # Errors
    ///
    /// [`DeviceError::OutOfMemory`].
    fn allocate(&self, bytes: u64) -> Result<Memory, DeviceError>;

    /// Runs a dispatch and waits for it. May work in the caller's slices; returns only when nothing can touch them any more.
    ///
    /// # Errors
    ///
    /// Everything but [`DeviceError::Cancelled`].
    fn run(&self, call: &mut Call<'_, '_>, deadline: Deadline) -> Result<Ran, DeviceError>;

    /// Begins steps and returns. Borrows nothing: a submission that is forgotten runs to its end and harms nobody.
    ///
    /// # Errors
    ///
    /// If nothing was begun.
    fn submit(&self, steps: Vec<Step>, deadline: Deadline) -> Result<Box<dyn Submission>, DeviceError>;

    /// Begins anew: what was in flight ends as [`DeviceError::Lost`], handles of before are stale, the generation grows. Never waits for
    /// the device that is left behind.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Lost`] if the device does not come back.
    fn recover(&self) -> Result<Generation, DeviceError>;
}

/// What a device is, and what it can do.
#[derive(Clone, PartialEq, Debug)]
pub struct DeviceInfo {
    /// Its name among all devices: `bulk`, `wgpu:llvmpipe`.
    pub id: &'static str,
    /// The device, for people.
    pub name: String,
    /// What tells this device and driver from others whose compiled code may differ; part of every cache key.
    pub fingerprint: String,
    /// What tells the code generator of this build from that of others; part of every cache key.
    pub build: &'static str,
    /// What it can do.
    pub capabilities: Capabilities,
    /// How much of it.
    pub limits: Limits,
    /// The tunings that [`CodeOptions::profile`] can name.
    pub profiles: Vec<&'static str>,
    /// How often it was opened again.
    pub generation: Generation,
}

/// What a device can do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Capabilities {
    /// The ops it can run.
    pub ops: HashSet<OpId>,
    /// Whether kernels may use subgroups.
    pub subgroups: bool,
    /// Whether kernels may store f16.
    pub f16: bool,
    /// Whether kernels may store bf16.
    pub bf16: bool,
    /// Whether kernels may compute on f64.
    pub f64: bool,
    /// Whether grid barriers run in one dispatch.
    pub grid_sync: bool,
    /// Whether it has units for small matrices.
    pub tensor_cores: bool,
    /// Whether its memory is the host's, so that slices of the caller's cost nothing. Batches are then run one by one; otherwise
    /// as one submission.
    pub host_memory: bool,
    /// Whether a dispatch that runs can be stopped. If not, the adapter gives work with a deadline in slices.
    pub interruptible: bool,
}

impl Capabilities {
    /// Everything that the language has, of a device whose memory is the host's.
    #[must_use]
    pub fn host() -> Capabilities {
        Capabilities {
            ops: OpId::all().collect(),
            subgroups: true,
            f16: true,
            bf16: true,
            f64: true,
            grid_sync: true,
            tensor_cores: false,
            host_memory: true,
            interruptible: true,
        }
    }
}

/// How much a device can do at a time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The largest workgroup along x, y and z.
    pub workgroup_size: [u32; 3],
    /// Invocations of one workgroup.
    pub workgroup_invocations: u32,
    /// Workgroups along one axis of a grid.
    pub groups_per_axis: u32,
    /// Workgroups of one call; the adapter makes several calls of more. Grid barriers have to fit into one.
    pub groups_per_call: u64,
    /// Bytes of one binding.
    pub buffer_bytes: u64,
    /// What the offset of a span must be a multiple of.
    pub span_alignment: u64,
    /// The subgroup size of the device, if it has one; other declared sizes are emulated.
    pub subgroup_size: Option<u32>,
}

impl Limits {
    /// As much as the language allows.
    #[must_use]
    pub fn host() -> Limits {
        Limits {
            workgroup_size: [MAX_WORKGROUP_INVOCATIONS; 3],
            workgroup_invocations: MAX_WORKGROUP_INVOCATIONS,
            groups_per_axis: u32::MAX,
            groups_per_call: u64::from(u32::MAX),
            buffer_bytes: u64::from(u32::MAX),
            span_alignment: 1,
            subgroup_size: None,
        }
    }
}

/// What changes compiled code beside the kernel.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CodeOptions {
    /// Another workgroup size than the kernel's, which it cannot tell.
    pub workgroup: Option<[u32; 3]>,
    /// Permission to be off by so many units in the last place in elementary functions. [`Ran::ulp`] says whether it was used.
    pub ulp_budget: Option<u8>,
    /// One of [`DeviceInfo::profiles`].
    pub profile: Option<String>,
}

/// A dispatch over the caller's slices.
#[derive(Debug)]
pub struct Call<'a, 'b> {
    /// The kernel.
    pub code: &'a Code,
    /// The shape of the whole dispatch.
    pub launch: &'a Launch,
    /// The workgroups of it that are to run, numbered with x fastest.
    pub groups: Range<u64>,
    /// Whether outputs are to be zero first. If not, they hold what they are to start with, or are written completely.
    pub zero_outputs: bool,
    /// One per buffer, by binding number.
    pub bindings: &'a mut [Binding<'b>],
}

/// What a buffer of a [`Call`] is bound to.
#[derive(Debug)]
pub enum Binding<'a> {
    /// Bytes that the kernel reads.
    In(&'a [u8]),
    /// Bytes that the kernel reads and writes.
    InOut(&'a mut [u8]),
    /// Bytes of an output.
    Out(&'a mut [u8]),
    /// Memory of the device, whatever the kernel does with it.
    Memory(Span),
}

/// A part of a submission.
#[derive(Clone, Debug)]
pub enum Step {
    /// A dispatch; the fields are those of [`Call`].
    Dispatch {
        /// The kernel.
        code: Code,
        /// The shape of the whole dispatch.
        launch: Arc<Launch>,
        /// The workgroups of it that are to run.
        groups: Range<u64>,
        /// Whether outputs are to be zero first.
        zero_outputs: bool,
        /// One per buffer, by binding number.
        bindings: Vec<Span>,
    },
    /// Bytes to the device. There are as many as the span has.
    Write {
        /// Where to.
        to: Span,
        /// The bytes.
        bytes: Arc<[u8]>,
    },
    /// Bytes from one place of the device to another of the same length, which may overlap.
    Copy {
        /// Where from.
        from: Span,
        /// Where to.
        to: Span,
    },
    /// Bytes from the device; they are in [`Done::reads`].
    Read(Span),
}

/// Steps that were begun. Dropping it cancels them and lets them go: nobody waits.
pub trait Submission: Send {
    /// Whether it has ended, and how. If not, the waker is called once when it has; a later call replaces the waker, `None` removes it.
    /// It may be called on the device's own thread: waiting for the device there is waiting for oneself.
    /// After the result was given it is [`DeviceError::Taken`].
    fn poll(&mut self, waker: Option<&Waker>) -> Poll<Result<Done, DeviceError>>;

    /// Waits for its end, or until the deadline: then it goes on.
    fn wait(&mut self, deadline: Deadline) -> Result<Done, WaitError>;

    /// No further workgroups start. It ends as [`DeviceError::Cancelled`], unless it has ended already.
    fn cancel(&mut self);
}

/// What a submission gave.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Done {
    /// One per dispatch.
    pub ran: Vec<Ran>,
    /// One per read.
    pub reads: Vec<Vec<u8>>,
}

/// Why waiting gave no result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WaitError {
    /// It has not ended yet.
    Pending,
    /// It has failed.
    Failed(DeviceError),
}

/// When to give up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Deadline(pub Option<Instant>);

impl Deadline {
    /// Never.
    pub const NONE: Deadline = Deadline(None);

    /// So long from a moment; a time that cannot be counted is none.
    #[must_use]
    pub fn after(start: Instant, limit: Option<Duration>) -> Deadline {
        Deadline(limit.and_then(|limit| start.checked_add(limit)))
    }

    /// Whether it has come.
    #[must_use]
    pub fn is_over(self) -> bool {
        self.0.is_some_and(|at| Instant::now() >= at)
    }
}

/// Why a device did not do what was asked; one variant per thing a caller does about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DeviceError {
    /// It cannot run such kernels or bind such memory; another device may.
    Unsupported {
        /// What it lacks.
        what: String,
    },
    /// It has not enough memory.
    OutOfMemory {
        /// Bytes that were asked for.
        requested: u64,
    },
    /// The deadline came, and nothing runs any more.
    Timeout,
    /// The deadline came, and the device cannot be stopped: it is lost.
    Hung,
    /// Nobody wants it any more.
    Cancelled,
    /// The kernel trapped. All other invocations of the call have finished.
    Trap {
        /// The number in the `trap` statement.
        tag: u32,
        /// The smallest invocation that trapped.
        invocation: [u32; 3],
    },
    /// A handle of another device or of before its last loss.
    Stale(Stale),
    /// A span outside its memory, or of another length than the binding or copy needs.
    OutOfRange {
        /// The first byte.
        offset: u64,
        /// How many bytes.
        length: u64,
        /// How many there are or should be.
        size: u64,
    },
    /// Two bindings of a dispatch overlap, and one of them is written.
    Aliased,
    /// The device is gone; see [`Device::recover`].
    Lost {
        /// What it said.
        reason: String,
    },
    /// The result of a submission was given before.
    Taken,
    /// Something that only this device knows.
    Other(String),
}

impl fmt::Display for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceError::Unsupported { what } => write!(f, "the device has no {what}"),
            DeviceError::OutOfMemory { requested } => write!(f, "the device does not have {requested} bytes of free memory"),
            DeviceError::Timeout => f.write_str("the deadline passed"),
            DeviceError::Hung => f.write_str("the deadline passed, and the device does not stop"),
            DeviceError::Cancelled => f.write_str("it was cancelled"),
            DeviceError::Trap { tag, invocation: [x, y, z] } => write!(f, "trap {tag} in invocation {x},{y},{z}"),
            DeviceError::Stale(stale) => stale.fmt(f),
            DeviceError::OutOfRange { offset, length, size } => write!(f, "{length} bytes from {offset} do not fit {size}"),
            DeviceError::Aliased => f.write_str("two bindings overlap, one of which is written"),
            DeviceError::Lost { reason } => write!(f, "the device is lost: {reason}"),
            DeviceError::Taken => f.write_str("the result was taken before"),
            DeviceError::Other(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for DeviceError {}
