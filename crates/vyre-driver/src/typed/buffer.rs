//! Memory on a device as values of a type.

use super::handle::Backend;
use super::results::wrong_length;
use crate::backend::{BackendError, ResidentError, ResidentRange, Resource};
use bytemuck::{Pod, cast_slice, pod_collect_to_vec};
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

/// Values that stay on a device. Clones and slices are the same memory, which is freed when the last of them is dropped.
///
/// [`Backend::buffer`] and [`Backend::zeroed`] make one, [`Dispatch::buffer`](super::Dispatch::buffer) runs on it.
///
/// ```
/// # use vyre_driver::{Backend, BackendError, Dispatch};
/// # fn example(backend: &Backend, double: &vyre_foundation::ir::Program) -> Result<(), BackendError> {
/// let values = backend.buffer(&[1u32, 2, 3, 4])?;
/// Dispatch::new(double).buffer("values", &values.slice(1..3)?).run(backend)?;
/// assert_eq!(values.read()?, [1, 4, 6, 4]);
/// # Ok(())
/// # }
/// ```
pub struct Buffer<T> {
    part: Part,
    of: PhantomData<fn() -> T>,
}

impl<T> Clone for Buffer<T> {
    fn clone(&self) -> Self {
        Buffer { part: self.part.clone(), of: PhantomData }
    }
}

impl<T: Pod> Buffer<T> {
    pub(super) fn new(part: Part) -> Self {
        Buffer { part, of: PhantomData }
    }

    pub(super) fn part(&self) -> &Part {
        &self.part
    }

    /// How many values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.part.length / size_of::<T>().max(1)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The backend that it is on.
    #[must_use]
    pub fn backend(&self) -> &Backend {
        &self.part.memory.backend
    }

    /// Some of the values, in the same memory. Devices can ask that what a dispatch is to take begins at a multiple of so many bytes.
    ///
    /// # Errors
    ///
    /// If they are not all inside.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<Buffer<T>, BackendError> {
        let size = size_of::<T>();
        let from = match range.start_bound() {
            Bound::Included(from) => *from,
            Bound::Excluded(before) => before.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let to = match range.end_bound() {
            Bound::Included(last) => last.saturating_add(1),
            Bound::Excluded(to) => *to,
            Bound::Unbounded => self.len(),
        };
        if from > to || to > self.len() {
            let [offset, length] = [from, to.saturating_sub(from)].map(|n| n.saturating_mul(size) as u64);
            return Err(self.part.outside(offset, length).into());
        }
        let (offset, length) = (self.part.offset + from * size, (to - from) * size);
        Ok(Buffer::new(Part { memory: self.part.memory.clone(), offset, length }))
    }

    /// The values.
    ///
    /// # Errors
    ///
    /// If the device is lost.
    pub fn read(&self) -> Result<Vec<T>, BackendError> {
        Ok(pod_collect_to_vec(&self.part.download()?))
    }

    /// Replaces all values, by as many; [`Buffer::slice`] for some of them.
    ///
    /// # Errors
    ///
    /// If there are more or fewer, or the device is lost.
    pub fn write(&self, values: &[T]) -> Result<(), BackendError> {
        match values.len() == self.len() {
            true => self.part.upload(cast_slice(values)),
            false => Err(wrong_length("the buffer", self.len(), values.len())),
        }
    }

    /// Replaces all values of another buffer by these: on the device, or through the host if it is of another backend.
    ///
    /// # Errors
    ///
    /// If it has more or fewer, or a device is lost.
    pub fn copy_to(&self, to: &Buffer<T>) -> Result<(), BackendError> {
        if to.len() != self.len() {
            return Err(wrong_length("the buffer to copy to", to.len(), self.len()));
        }
        let (from, to) = (&self.part, &to.part);
        match from.memory.backend.is(&to.memory.backend) {
            true => {
                let length = from.length;
                from.memory.backend.copy_resident(from.resource(), from.offset, to.resource(), to.offset, length)
            }
            false => to.upload(&from.download()?),
        }
    }
}

impl<T: Pod> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer<{}>[{}] on {}", std::any::type_name::<T>(), self.len(), self.backend().id())
    }
}

/// Values of an input: the caller's, or those of a buffer.
#[derive(Clone, Copy, Debug)]
pub enum Values<'a, T: Pod> {
    /// The caller's.
    Host(&'a [T]),
    /// Those that are on the device.
    Resident(&'a Buffer<T>),
}

impl<'a, T: Pod> From<&'a [T]> for Values<'a, T> {
    fn from(values: &'a [T]) -> Self {
        Values::Host(values)
    }
}

impl<'a, T: Pod> From<&'a Vec<T>> for Values<'a, T> {
    fn from(values: &'a Vec<T>) -> Self {
        Values::Host(values)
    }
}

impl<'a, T: Pod, const N: usize> From<&'a [T; N]> for Values<'a, T> {
    fn from(values: &'a [T; N]) -> Self {
        Values::Host(values)
    }
}

impl<'a, T: Pod> From<&'a Buffer<T>> for Values<'a, T> {
    fn from(buffer: &'a Buffer<T>) -> Self {
        Values::Resident(buffer)
    }
}

/// Some bytes of the memory behind a handle.
#[derive(Clone)]
pub(super) struct Part {
    memory: Arc<Memory>,
    offset: usize,
    length: usize,
}

/// What a handle stands for, until this is dropped.
struct Memory {
    backend: Backend,
    resource: Resource,
    bytes: usize,
}

impl Part {
    pub fn allocate(backend: &Backend, bytes: usize) -> Result<Part, BackendError> {
        let resource = backend.allocate_resident(bytes)?;
        let memory = Arc::new(Memory { backend: backend.clone(), resource, bytes });
        Ok(Part { memory, offset: 0, length: bytes })
    }

    pub fn bytes(&self) -> usize {
        self.length
    }

    pub fn resource(&self) -> &Resource {
        &self.memory.resource
    }

    pub fn is_whole(&self) -> bool {
        self.offset == 0 && self.length == self.memory.bytes
    }

    pub fn range(&self) -> ResidentRange<'_> {
        ResidentRange { resource: self.resource(), offset: self.offset, length: Some(self.length) }
    }

    pub fn upload(&self, bytes: &[u8]) -> Result<(), BackendError> {
        self.memory.backend.upload_resident_at(self.resource(), self.offset, bytes)
    }

    fn download(&self) -> Result<Vec<u8>, BackendError> {
        self.memory.backend.download_resident_range(self.resource(), self.offset, self.length)
    }

    fn outside(&self, offset: u64, length: u64) -> ResidentError {
        let handle = match self.resource() {
            Resource::Resident(handle) => *handle,
            Resource::Borrowed(_) => return ResidentError::NotResident,
        };
        ResidentError::OutOfRange { handle, offset, length, size: self.length as u64 }
    }
}

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes of {:?} from {}", self.length, self.resource(), self.offset)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let resource = std::mem::replace(&mut self.resource, Resource::Borrowed(Vec::new()));
        // A device that was lost has freed it.
        let _ = self.backend.free_resident(resource);
    }
}
