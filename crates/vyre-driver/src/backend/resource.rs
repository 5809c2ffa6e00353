//! Bytes of a dispatch: the caller's, or those that stay on the device.

use super::DispatchConfig;
use crate::device::Ran;
use vyre_foundation::ir::Program;

/// What stands for a buffer of a dispatch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Resource {
    /// Bytes of the caller's.
    Borrowed(Vec<u8>),
    /// A handle that `allocate_resident` gave out.
    Resident(u64),
}

/// The bytes of a program's outputs in the order of its interface.
pub type OutputBuffers = Vec<Vec<u8>>;

/// Puts results into the caller's buffers, keeping their memory where it is large enough. Gives how many buffers were kept.
pub fn fill_outputs(outputs: &mut OutputBuffers, results: &[impl AsRef<[u8]>]) -> usize {
    let kept = outputs.len().min(results.len());
    outputs.truncate(results.len());
    outputs.resize_with(results.len(), Vec::new);
    for (output, result) in outputs.iter_mut().zip(results) {
        output.clear();
        output.extend_from_slice(result.as_ref());
    }
    kept
}

/// Puts the results of a batch into the caller's buffers, keeping their memory where it is large enough.
pub(crate) fn fill_batch(outputs: &mut Vec<OutputBuffers>, results: &[OutputBuffers]) {
    outputs.truncate(results.len());
    outputs.resize_with(results.len(), Vec::new);
    for (outputs, results) in outputs.iter_mut().zip(results) {
        fill_outputs(outputs, results);
    }
}

/// Outputs, and how long they took.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TimedDispatchResult {
    /// The bytes.
    pub outputs: OutputBuffers,
    /// Nanoseconds from call to return.
    pub wall_ns: u64,
    /// Nanoseconds that the device itself measured, where it can.
    pub device_ns: Option<u64>,
    /// What ran, where the backend says it. A program that was split at its grid barriers has that of its last segment.
    pub ran: Option<Ran>,
}

/// Some bytes of resident memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ResidentRange<'a> {
    /// The handle.
    pub resource: &'a Resource,
    /// The first byte.
    pub offset: usize,
    /// How many bytes; `None` for all that follow.
    pub length: Option<usize>,
}

impl<'a> From<&'a Resource> for ResidentRange<'a> {
    /// All of it.
    fn from(resource: &'a Resource) -> Self {
        ResidentRange { resource, offset: 0, length: None }
    }
}

/// A part of [`submit_resident`](super::VyreBackend::submit_resident).
#[derive(Clone, PartialEq, Debug)]
pub enum ResidentStep<'a> {
    /// A dispatch.
    Dispatch {
        /// The program.
        program: &'a Program,
        /// What holds for this dispatch; its timeout is not looked at.
        config: &'a DispatchConfig,
        /// One range per input and output buffer, in the order of binding numbers. An output is as long as its range.
        bindings: Vec<ResidentRange<'a>>,
    },
    /// Bytes of the caller's to the device.
    Upload {
        /// Where they begin; as many are written as there are bytes.
        to: ResidentRange<'a>,
        /// The bytes, which are read before the call returns.
        bytes: &'a [u8],
    },
    /// Bytes from one place of the device to another.
    Copy {
        /// Which.
        from: ResidentRange<'a>,
        /// Where they are to begin; as many are written.
        to: ResidentRange<'a>,
    },
    /// Bytes that come back, in the order of these steps.
    Download(ResidentRange<'a>),
}
