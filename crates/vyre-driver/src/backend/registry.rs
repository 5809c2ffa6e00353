//! Which devices there are, and opening them.
//!
//! A backend crate submits a [`BackendRegistration`] (`inventory::submit!`); whoever depends on the crate has the backend. A
//! registration lists the devices that it finds without opening them: only [`acquire`] and its kin open one, and give it with grid
//! barriers made possible by [`wrap_grid_sync_split`].

use super::{
    BackendError, CompiledPipeline, DispatchConfig, OutputBuffers, PendingDispatch, ReadyPending, ResidentStep, Resource,
    TimedDispatchResult, VyreBackend, forward_properties,
};
use crate::grid_sync;
use crate::observability::{self, Counters, total, total_borrowed};
use std::sync::Arc;
use vyre_foundation::ir::Program;

/// A backend that can be opened.
#[derive(Debug)]
pub struct BackendRegistration {
    /// Its name: the id of its only device, or what stands before the colon in the ids of several.
    pub id: &'static str,
    /// Smaller is tried first.
    pub precedence: u32,
    /// What it is, in a few words.
    pub about: &'static str,
    /// What it can open.
    pub devices: Devices,
}

/// What a registration can open.
#[derive(Debug)]
pub enum Devices {
    /// One device, which is always there.
    One(Open),
    /// Those that it finds.
    Found {
        /// Which there are, the preferred first. Opens none of them.
        list: fn() -> Vec<DeviceListing>,
        /// Opens one by its id.
        open: fn(&str) -> Result<Box<dyn VyreBackend>, BackendError>,
    },
}

/// Opens a device.
pub type Open = fn() -> Result<Box<dyn VyreBackend>, BackendError>;

/// A device that can be opened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceListing {
    /// Its id: `bulk`, `wgpu:llvmpipe`.
    pub id: String,
    /// The device, for people.
    pub name: String,
}

inventory::collect!(BackendRegistration);

impl BackendRegistration {
    /// A backend with one device, which is always there.
    pub const fn single(id: &'static str, precedence: u32, about: &'static str, open: Open) -> Self {
        BackendRegistration { id, precedence, about, devices: Devices::One(open) }
    }

    /// The devices that it finds, the preferred first. Opens none of them.
    #[must_use]
    pub fn list(&self) -> Vec<DeviceListing> {
        match self.devices {
            Devices::One(_) => vec![DeviceListing { id: self.id.into(), name: self.about.into() }],
            Devices::Found { list, .. } => list(),
        }
    }

    /// Opens one of its devices, which runs programs with grid barriers too.
    ///
    /// # Errors
    ///
    /// If there is no such device, or it cannot be opened.
    pub fn open(&self, device: &str) -> Result<Box<dyn VyreBackend>, BackendError> {
        let backend = match self.devices {
            Devices::One(open) => open(),
            Devices::Found { open, .. } => open(device),
        };
        backend.map(wrap_grid_sync_split)
    }

    /// The device that an id means: one of the list, by its id or its place there (`wgpu:0`), or the first if it is the backend's own name.
    fn find(&self, id: &str) -> Option<String> {
        // Others are not asked what they find.
        let rest = id.strip_prefix(self.id).filter(|rest| rest.is_empty() || rest.starts_with(':'))?;
        let place: Option<usize> = rest.strip_prefix(':').and_then(|rest| rest.parse().ok());
        let list: Vec<String> = self.list().into_iter().map(|device| device.id).collect();
        // An id is what it says, also if it looks like a place.
        let named = list.iter().position(|device| rest.is_empty() || id == device);
        list.into_iter().nth(named.or(place)?)
    }
}

/// Every backend there is, preferred ones first.
#[must_use]
pub fn registered_backends() -> Vec<&'static BackendRegistration> {
    let mut all: Vec<&BackendRegistration> = inventory::iter::<BackendRegistration>.into_iter().collect();
    all.sort_by_key(|registration| (registration.precedence, registration.id));
    all
}

/// Every device that is found, preferred ones first, with who can open it. Opens none of them.
#[must_use]
pub fn registered_devices() -> Vec<(&'static BackendRegistration, DeviceListing)> {
    devices().collect()
}

/// The same, as they are asked for: to find devices, a backend may load drivers.
fn devices() -> impl Iterator<Item = (&'static BackendRegistration, DeviceListing)> {
    let of =
        |registration: &'static BackendRegistration| registration.list().into_iter().map(move |device| (registration, device));
    registered_backends().into_iter().flat_map(of)
}

/// The id of the device that is preferred to all others; opens none.
#[must_use]
pub fn preferred_device() -> Option<String> {
    devices().next().map(|(_, device)| device.id)
}

/// Whether there is a device with this id. Only the backend that the id names is asked what it finds.
#[must_use]
pub fn is_device(id: &str) -> bool {
    let asked = |registration: &&BackendRegistration| id.starts_with(registration.id);
    registered_backends().into_iter().filter(asked).any(|registration| registration.list().iter().any(|device| device.id == id))
}

/// Opens the device with this id; the name of a backend means its first device.
pub fn acquire(id: &str) -> Result<Box<dyn VyreBackend>, BackendError> {
    match registered_backends().into_iter().find_map(|registration| Some((registration, registration.find(id)?))) {
        Some((registration, device)) => registration.open(&device),
        None => {
            let known = registered_devices().into_iter().map(|(_, device)| device.id).collect();
            Err(BackendError::UnknownBackend { id: id.into(), known })
        }
    }
}

/// Opens the first device that can be opened.
pub fn acquire_preferred() -> Result<Box<dyn VyreBackend>, BackendError> {
    acquire_preferred_where(|_| Ok(()))
}

/// Opens the first device that can be opened and that `fits` accepts; otherwise the error says why each was passed over.
pub fn acquire_preferred_where(
    mut fits: impl FnMut(&dyn VyreBackend) -> Result<(), String>,
) -> Result<Box<dyn VyreBackend>, BackendError> {
    let mut passed_over = Vec::new();
    for (registration, device) in devices() {
        let why = match registration.open(&device.id) {
            Ok(backend) => match fits(&*backend) {
                Ok(()) => return Ok(backend),
                Err(why) => why,
            },
            Err(error) => error.message(),
        };
        passed_over.push((device.id, why));
    }
    Err(BackendError::NoBackend { passed_over })
}

/// The same backend, which runs programs with grid barriers as several dispatches if it cannot run them as one.
#[must_use]
pub fn wrap_grid_sync_split(backend: Box<dyn VyreBackend>) -> Box<dyn VyreBackend> {
    let counters = observability::of_backend(backend.id());
    Box::new(GridSyncSplit { inner: backend, counters })
}

struct GridSyncSplit {
    inner: Box<dyn VyreBackend>,
    counters: &'static Counters,
}

impl GridSyncSplit {
    fn splits(&self, program: &Program) -> bool {
        !self.inner.supports_grid_sync() && self.inner.allows_host_grid_sync_split() && grid_sync::contains_grid_sync(program)
    }
}

fn borrowed(inputs: &[Vec<u8>]) -> Vec<&[u8]> {
    inputs.iter().map(Vec::as_slice).collect()
}

// A method that is not forwarded would silently be the default of the trait.
#[deny(clippy::missing_trait_methods)]
impl VyreBackend for GridSyncSplit {
    forward_properties!();

    fn dispatch(&self, program: &Program, inputs: &[Vec<u8>], config: &DispatchConfig) -> Result<Vec<Vec<u8>>, BackendError> {
        self.counters.dispatch(config, total(inputs), || match self.splits(program) {
            true => grid_sync::dispatch_with_grid_sync_split(&*self.inner, program, &borrowed(inputs), config),
            false => self.inner.dispatch(program, inputs, config),
        })
    }

    fn dispatch_borrowed(
        &self,
        program: &Program,
        inputs: &[&[u8]],
        config: &DispatchConfig,
    ) -> Result<Vec<Vec<u8>>, BackendError> {
        self.counters.dispatch(config, total(inputs), || match self.splits(program) {
            true => grid_sync::dispatch_with_grid_sync_split(&*self.inner, program, inputs, config),
            false => self.inner.dispatch_borrowed(program, inputs, config),
        })
    }

    fn dispatch_borrowed_into(
        &self,
        program: &Program,
        inputs: &[&[u8]],
        config: &DispatchConfig,
        outputs: &mut OutputBuffers,
    ) -> Result<(), BackendError> {
        self.counters.dispatch_into(config, total(inputs), outputs, |outputs| match self.splits(program) {
            true => grid_sync::dispatch_with_grid_sync_split_into(&*self.inner, program, inputs, config, outputs),
            false => self.inner.dispatch_borrowed_into(program, inputs, config, outputs),
        })
    }

    fn dispatch_borrowed_timed(
        &self,
        program: &Program,
        inputs: &[&[u8]],
        config: &DispatchConfig,
    ) -> Result<TimedDispatchResult, BackendError> {
        self.counters.dispatch(config, total(inputs), || match self.splits(program) {
            true => grid_sync::dispatch_with_grid_sync_split_timed(&*self.inner, program, inputs, config),
            false => self.inner.dispatch_borrowed_timed(program, inputs, config),
        })
    }

    fn dispatch_async(
        &self,
        program: &Program,
        inputs: &[Vec<u8>],
        config: &DispatchConfig,
    ) -> Result<Box<dyn PendingDispatch>, BackendError> {
        self.counters.begin_dispatch(config, total(inputs), || match self.splits(program) {
            true => Ok(Box::new(ReadyPending { outputs: self.dispatch(program, inputs, config)? })),
            false => self.inner.dispatch_async(program, inputs, config),
        })
    }

    fn dispatch_borrowed_async(
        &self,
        program: &Program,
        inputs: &[&[u8]],
        config: &DispatchConfig,
    ) -> Result<Box<dyn PendingDispatch>, BackendError> {
        self.counters.begin_dispatch(config, total(inputs), || match self.splits(program) {
            true => Ok(Box::new(ReadyPending { outputs: self.dispatch_borrowed(program, inputs, config)? })),
            false => self.inner.dispatch_borrowed_async(program, inputs, config),
        })
    }

    fn compile_native(
        &self,
        program: &Program,
        config: &DispatchConfig,
    ) -> Result<Option<Arc<dyn CompiledPipeline>>, BackendError> {
        if self.splits(program) { Ok(None) } else { self.inner.compile_native(program, config) }
    }

    fn submit_resident(
        &self,
        steps: &[ResidentStep<'_>],
        config: &DispatchConfig,
    ) -> Result<Box<dyn PendingDispatch>, BackendError> {
        self.counters.begin_sequence(config, steps, || self.inner.submit_resident(steps, config))
    }

    fn dispatch_resident_timed(
        &self,
        program: &Program,
        resources: &[Resource],
        config: &DispatchConfig,
    ) -> Result<TimedDispatchResult, BackendError> {
        self.counters.dispatch(config, total_borrowed(resources), || match self.splits(program) {
            true => grid_sync::dispatch_resident_with_grid_sync_split_timed(&*self.inner, program, resources, config),
            false => self.inner.dispatch_resident_timed(program, resources, config),
        })
    }
}
