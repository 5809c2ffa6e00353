//! Bytes of a dispatch: the caller's, or those that stay on the device.

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
}
