//! The handle of a backend that everything here takes.

use super::buffer::{Buffer, Part};
use super::pipeline::Pipeline;
use super::{Dispatch, Results};
use crate::backend::{
    BackendError, CompiledPipeline, DispatchConfig, OutputBuffers, PendingDispatch, ResidentStep, Resource, TimedDispatchResult,
    VyreBackend, forward, forward_properties, registry,
};
use crate::device::{self, Device};
use crate::route::route;
use bytemuck::{Pod, cast_slice};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use vyre_foundation::ir::Program;

/// An open backend; cheap to clone and to share between threads. The device is closed when nothing refers to it any more.
///
/// It is a [`VyreBackend`]: `&backend` stands where `&dyn VyreBackend` is asked for, `backend.into()` where an `Arc` of one is.
///
/// ```
/// # use vyre_driver::{Backend, BackendError};
/// # fn example() -> Result<(), BackendError> {
/// let backend = Backend::preferred()?; // or Backend::open("cpu")?
/// let ones = backend.buffer(&[1.0f32; 1000])?; // stays on the device until it is dropped
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Backend {
    inner: Arc<dyn VyreBackend>,
}

impl Backend {
    /// A backend of one's own. Programs with grid barriers run in parts on it, if it has none of its own.
    #[must_use]
    pub fn new(backend: impl VyreBackend + 'static) -> Self {
        registry::wrap_grid_sync_split(Box::new(backend)).into()
    }

    /// A device of one's own. Programs with grid barriers run in parts on it, if it has none of its own.
    #[must_use]
    pub fn of_device(device: Arc<dyn Device>) -> Self {
        registry::wrap_grid_sync_split(device::backend(device)).into()
    }

    /// Opens the device with this id; the name of a backend means its first device. See [`registry::registered_devices`].
    ///
    /// # Errors
    ///
    /// If there is no such device, or it cannot be opened.
    pub fn open(id: &str) -> Result<Self, BackendError> {
        registry::acquire(id).map(Backend::from)
    }

    /// Opens the first device that can be opened.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub fn preferred() -> Result<Self, BackendError> {
        registry::acquire_preferred().map(Backend::from)
    }

    /// Opens the first device whose capabilities and limits fit the program.
    ///
    /// # Errors
    ///
    /// If there is none; the error says why each was passed over.
    pub fn for_program(program: &Program) -> Result<Self, BackendError> {
        Ok(route(program, &DispatchConfig::default())?.backend.into())
    }

    /// Compiles a program, to run it many times. [`Dispatch::compile`] takes values for constants.
    ///
    /// # Errors
    ///
    /// If the program is wrong, or the backend cannot compile it.
    pub fn compile(&self, program: &Program) -> Result<Pipeline, BackendError> {
        Pipeline::new(self, program, &DispatchConfig::default())
    }

    /// Memory on the device with these values.
    ///
    /// # Errors
    ///
    /// If the backend keeps no data, or has no room.
    pub fn buffer<T: Pod>(&self, values: &[T]) -> Result<Buffer<T>, BackendError> {
        let buffer = self.zeroed(values.len())?;
        buffer.part().upload(cast_slice(values))?;
        Ok(buffer)
    }

    /// Memory on the device for so many values, all bytes zero.
    ///
    /// # Errors
    ///
    /// If the backend keeps no data, or has no room.
    pub fn zeroed<T: Pod>(&self, len: usize) -> Result<Buffer<T>, BackendError> {
        let bytes = len.checked_mul(size_of::<T>()).ok_or(BackendError::OutOfMemory { requested: u64::MAX })?;
        Ok(Buffer::new(Part::allocate(self, bytes)?))
    }

    /// Runs several dispatches in order. All of them are checked before the first begins; dispatches whose buffers are all resident run
    /// without waiting in between, and so do those of one pipeline with equal configs. The first failure ends it.
    ///
    /// # Errors
    ///
    /// If one of them is wrong or fails, or is of a pipeline of another backend.
    pub fn run_batch(&self, dispatches: &[Dispatch<'_, &Pipeline>]) -> Result<Vec<Results>, BackendError> {
        super::pipeline::run_batch(self, dispatches)
    }

    /// Whether both are the same open backend.
    #[must_use]
    pub fn is(&self, other: &Backend) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }
}

// The trait's methods without the trait in scope, and with it.
#[deny(clippy::missing_trait_methods)]
impl VyreBackend for Backend {
    forward_properties!();

    forward! {
        fn dispatch(&self, program: &Program, inputs: &[Vec<u8>], config: &DispatchConfig) -> Result<Vec<Vec<u8>>, BackendError>;
        fn dispatch_borrowed(&self, program: &Program, inputs: &[&[u8]], config: &DispatchConfig) -> Result<Vec<Vec<u8>>, BackendError>;
        fn dispatch_borrowed_into(&self, program: &Program, inputs: &[&[u8]], config: &DispatchConfig, outputs: &mut OutputBuffers) -> Result<(), BackendError>;
        fn dispatch_borrowed_timed(&self, program: &Program, inputs: &[&[u8]], config: &DispatchConfig) -> Result<TimedDispatchResult, BackendError>;
        fn dispatch_async(&self, program: &Program, inputs: &[Vec<u8>], config: &DispatchConfig) -> Result<Box<dyn PendingDispatch>, BackendError>;
        fn dispatch_borrowed_async(&self, program: &Program, inputs: &[&[u8]], config: &DispatchConfig) -> Result<Box<dyn PendingDispatch>, BackendError>;
        fn compile_native(&self, program: &Program, config: &DispatchConfig) -> Result<Option<Arc<dyn CompiledPipeline>>, BackendError>;
        fn submit_resident(&self, steps: &[ResidentStep<'_>], config: &DispatchConfig) -> Result<Box<dyn PendingDispatch>, BackendError>;
        fn dispatch_resident_timed(&self, program: &Program, resources: &[Resource], config: &DispatchConfig) -> Result<TimedDispatchResult, BackendError>;
    }
}

impl Deref for Backend {
    type Target = dyn VyreBackend;

    fn deref(&self) -> &Self::Target {
        &*self.inner
    }
}

impl From<Box<dyn VyreBackend>> for Backend {
    fn from(backend: Box<dyn VyreBackend>) -> Self {
        Backend { inner: backend.into() }
    }
}

impl From<Arc<dyn VyreBackend>> for Backend {
    fn from(backend: Arc<dyn VyreBackend>) -> Self {
        Backend { inner: backend }
    }
}

impl From<Backend> for Arc<dyn VyreBackend> {
    fn from(backend: Backend) -> Self {
        backend.inner
    }
}

impl fmt::Debug for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Backend").field("id", &self.id()).field("device", &self.device_name()).finish()
    }
}
