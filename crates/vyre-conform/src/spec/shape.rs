//! What a case is, and how cases lie side by side in the buffers of a dispatch.

use std::fmt;
use std::sync::Arc;
use vyre_foundation::config::DispatchConfig;

/// How much of a dispatch one case takes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Extent {
    /// Invocations that work on it.
    pub invocations: u32,
    /// Elements that it has of each input.
    pub inputs: Vec<u32>,
    /// Elements that it has of each output.
    pub outputs: Vec<u32>,
}

impl Extent {
    /// One invocation that reads one element of each input and writes one of each output.
    #[must_use]
    pub fn element(inputs: usize, outputs: usize) -> Extent {
        Extent { invocations: 1, inputs: vec![1; inputs], outputs: vec![1; outputs] }
    }
}

/// The launch of a dispatch that is one case: from the workgroup size and the bytes of its inputs.
pub type LaunchFn = Arc<dyn Fn(u32, &[&[u8]]) -> DispatchConfig + Send + Sync>;

/// What a case of an op is.
#[derive(Clone)]
pub enum Shape {
    /// Some elements of each buffer, whichever invocations they meet.
    Elements(Extent),
    /// What a workgroup of this many invocations works on.
    Workgroup(Arc<dyn Fn(u32) -> Extent + Send + Sync>),
    /// A dispatch of its own. Its inputs have any length, so the bytes of a case say how long each is: see [`frame`].
    Dispatch(LaunchFn),
}

impl Shape {
    /// What a case takes at this workgroup size; `None` for dispatches, whose cases all differ.
    #[must_use]
    pub fn extent(&self, workgroup: u32) -> Option<Extent> {
        match self {
            Shape::Elements(extent) => Some(extent.clone()),
            Shape::Workgroup(extent) => Some(Extent { invocations: workgroup, ..extent(workgroup) }),
            Shape::Dispatch(_) => None,
        }
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Shape::Elements(extent) => f.debug_tuple("Elements").field(extent).finish(),
            Shape::Workgroup(_) => f.write_str("Workgroup"),
            Shape::Dispatch(_) => f.write_str("Dispatch"),
        }
    }
}

/// How a dispatch ends that traps: it has no outputs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Trap {
    /// The number in the `trap` statement.
    pub tag: u32,
    /// The smallest invocation that traps: by z, then y, then x.
    pub invocation: [u32; 3],
}

/// The inputs of cases side by side.
#[derive(Clone, Copy, Debug)]
pub struct Columns<'a> {
    /// How many cases there are; one if a case is a dispatch.
    pub cases: usize,
    /// Invocations along x of the workgroups that they run in.
    pub workgroup: u32,
    /// The bytes of each input, in the order of bindings.
    pub inputs: &'a [&'a [u8]],
}

/// The bytes of a case that is a dispatch: each input behind its length, a `u32`.
#[must_use]
pub fn frame<T: AsRef<[u8]>>(inputs: &[T]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for input in inputs {
        let input = input.as_ref();
        bytes.extend((input.len() as u32).to_le_bytes());
        bytes.extend_from_slice(input);
    }
    bytes
}

/// The inputs in the bytes of a case that is a dispatch; `None` if the lengths do not add up.
#[must_use]
pub fn frames(mut bytes: &[u8]) -> Option<Vec<&[u8]>> {
    let mut inputs = Vec::new();
    while !bytes.is_empty() {
        let (length, rest) = bytes.split_first_chunk::<4>()?;
        let (input, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        inputs.push(input);
        bytes = rest;
    }
    Some(inputs)
}
