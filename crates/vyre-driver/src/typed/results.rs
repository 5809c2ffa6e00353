//! What comes back from a dispatch, by name.

use super::Type;
use crate::backend::{BackendError, OutputBuffers};
use crate::device::Ran;
use bytemuck::{Pod, cast_slice_mut, pod_collect_to_vec};
use std::time::Duration;
use vyre_foundation::ir::{DataType, Name};
use vyre_foundation::text::suggest::nearest;
use vyre_foundation::{Diagnostic, Report};
use vyre_spec::ErrorCode;

/// The outputs of a dispatch, by name; those that are resident stay where they are and are not among them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Results {
    outputs: Vec<Output>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Output {
    name: Name,
    element: DataType,
    bytes: Vec<u8>,
}

/// An output that is to come.
#[derive(Clone, Debug)]
pub(super) struct Expected {
    pub name: Name,
    pub element: DataType,
    pub bytes: u64,
}

/// How long a dispatch took, and what ran.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Timing {
    /// From call to return.
    pub wall: Duration,
    /// What the device itself measured, where it can.
    pub device: Option<Duration>,
    /// What ran, where the backend says it.
    pub ran: Option<Ran>,
}

pub(super) fn no_buffer(message: &str, name: &str, known: &[&str]) -> Diagnostic {
    let mistake = Diagnostic::new(ErrorCode::E0702, message).found(name);
    match (nearest(name, known.iter().copied()), known) {
        (Some(close), _) => mistake.expected(format!("one of {}", known.join(", "))).help(format!("did you mean `{close}`?")),
        (None, []) => mistake.help("it gives no outputs"),
        (None, known) => mistake.expected(format!("one of {}", known.join(", "))),
    }
}

impl Results {
    pub(super) fn new(backend: &str, expected: &[Expected], outputs: OutputBuffers) -> Result<Results, BackendError> {
        if expected.len() != outputs.len() {
            let (found, expected) = (outputs.len(), expected.len());
            return Err(BackendError::new(format!("the backend `{backend}` gave {found} outputs of {expected}")));
        }
        let mut results = Vec::with_capacity(outputs.len());
        for (Expected { name, element, bytes: expected }, bytes) in expected.iter().zip(outputs) {
            let (expected, found) = (*expected, bytes.len() as u64);
            if expected != found {
                return Err(BackendError::ShortRead { expected, found });
            }
            results.push(Output { name: name.clone(), element: element.clone(), bytes });
        }
        Ok(Results { outputs: results })
    }

    /// The memory, to be written again.
    pub(super) fn take(&mut self) -> OutputBuffers {
        self.outputs.iter_mut().map(|output| std::mem::take(&mut output.bytes)).collect()
    }

    /// Undoes [`Results::take`].
    pub(super) fn put_back(&mut self, outputs: OutputBuffers) {
        self.outputs.iter_mut().zip(outputs).for_each(|(output, bytes)| output.bytes = bytes);
    }

    fn find(&self, name: &str) -> Result<(&DataType, &[u8]), BackendError> {
        let found = self.outputs.iter().find(|output| output.name == *name);
        found.map(|output| (&output.element, output.bytes.as_slice())).ok_or_else(|| {
            let known: Vec<&str> = self.outputs.iter().map(|output| output.name.as_str()).collect();
            Report::single(no_buffer(&format!("there is no output `{name}`"), name, &known)).into()
        })
    }

    fn find_as<T: Pod>(&self, name: &str) -> Result<&[u8], BackendError> {
        let (element, bytes) = self.find(name)?;
        match Type::of::<T>().mistake("results", name, element) {
            Some(mistake) => Err(Report::single(mistake).into()),
            None => Ok(bytes),
        }
    }

    /// The bytes of an output.
    ///
    /// # Errors
    ///
    /// If there is no such output.
    pub fn bytes(&self, name: &str) -> Result<&[u8], BackendError> {
        Ok(self.find(name)?.1)
    }

    /// The values of an output, of a type as wide as the buffer's elements.
    ///
    /// # Errors
    ///
    /// If there is no such output, or its elements are of another type.
    pub fn get<T: Pod>(&self, name: &str) -> Result<Vec<T>, BackendError> {
        Ok(pod_collect_to_vec(self.find_as::<T>(name)?))
    }

    /// The same into memory of the caller's, which must be as long.
    ///
    /// # Errors
    ///
    /// If there is no such output, or its elements are of another type or number.
    pub fn copy_to<T: Pod>(&self, name: &str, values: &mut [T]) -> Result<(), BackendError> {
        let bytes = self.find_as::<T>(name)?;
        let found = values.len();
        match cast_slice_mut::<T, u8>(values) {
            room if room.len() == bytes.len() => {
                room.copy_from_slice(bytes);
                Ok(())
            }
            _ => Err(wrong_length(&format!("`{name}`"), bytes.len() / size_of::<T>().max(1), found)),
        }
    }

    /// Names and bytes of all outputs, in the order of their bindings.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.outputs.iter().map(|output| (output.name.as_str(), output.bytes.as_slice()))
    }
}

/// Values that are more or fewer than there are elements.
pub(super) fn wrong_length(what: &str, expected: usize, found: usize) -> BackendError {
    let message = format!("{what} has {expected} elements, and there are {found} values");
    let mistake =
        Diagnostic::new(ErrorCode::E0703, message).expected(format!("{expected} values")).found(format!("{found} values"));
    Report::single(mistake).into()
}
