//! Shaders that somebody else wrote, on flat bytes: for harnesses that compare devices on text of their own.
//!
//! The one compute entry point of a shader may use two bindings of group 0: binding 0, a storage buffer with the input, and binding 1, a storage
//! buffer for the output, which is zero at first. wgpu's own checks are put into these shaders, since nobody knows what guards they have.

use crate::adapters::{self, now};
use crate::gpu::{Gpu, Use};
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use vyre_driver::BackendError;
use vyre_driver::device::{Deadline, DeviceError};
use wgpu::naga;

/// How long a shader may run if nothing is said.
const PATIENCE: Duration = Duration::from_secs(10);

/// Shaders that are kept compiled.
const KEPT: usize = 64;

/// The bindings that there are: input and output.
const BINDINGS: u32 = 2;

/// An adapter that runs shaders.
pub struct Shaders {
    id: &'static str,
    gpu: Mutex<Arc<Gpu>>,
    compiled: Mutex<Compiled>,
}

/// By text; the order in which they came.
type Compiled = (HashMap<String, Arc<Ready>>, VecDeque<String>);

struct Ready {
    pipeline: wgpu::ComputePipeline,
    /// The bindings that the entry point uses.
    used: Vec<u32>,
    workgroup: [u32; 3],
}

/// One run of a shader.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shading<'a> {
    /// The text of the shader.
    pub wgsl: &'a str,
    /// The bytes of binding 0; zeros make the last word whole.
    pub input: &'a [u8],
    /// Bytes of binding 1.
    pub output_size: usize,
    /// The workgroup size that the shader is to have, if the caller has one in mind: text cannot be given another.
    pub workgroup_size: Option<[u32; 3]>,
    /// Workgroups along x, y and z. If nothing is said, there is an invocation for every word of the output, along x.
    pub groups: Option<[u32; 3]>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn refused(why: impl fmt::Display) -> BackendError {
    BackendError::InvalidProgram { fix: why.to_string() }
}

impl Shaders {
    /// Opens the adapter with this id.
    ///
    /// # Errors
    ///
    /// If there is none, or it cannot be opened.
    pub fn open(id: &str) -> Result<Shaders, BackendError> {
        let found = adapters::find(id)?;
        let gpu = Gpu::open(found).map_err(|error| BackendError::new(format!("`{id}` cannot be opened: {error}")))?;
        Ok(Shaders { id: found.id, gpu: Mutex::new(Arc::new(gpu)), compiled: Mutex::default() })
    }

    /// The id of the adapter.
    #[must_use]
    pub fn id(&self) -> &'static str {
        self.id
    }

    /// Runs a shader and gives the bytes of its output.
    ///
    /// # Errors
    ///
    /// If the shader is refused, the device cannot run it, or it does not end; a shader that does not end is left behind together with the
    /// device, which is opened again for the next.
    pub fn run(&self, shading: &Shading<'_>) -> Result<Vec<u8>, BackendError> {
        let gpu = self.gpu();
        let ready = self.ready(&gpu, shading.wgsl)?;
        if let Some(size) = shading.workgroup_size.filter(|size| *size != ready.workgroup) {
            return Err(refused(format!(
                "the shader declares a workgroup of {:?}, not of {size:?}. Fix: change it in the text",
                ready.workgroup
            )));
        }
        let ran = self.dispatch(&gpu, &ready, shading);
        if gpu.is_stuck() || gpu.alive().is_err() {
            self.open_again(&gpu)?;
        }
        ran.map_err(|error| match error {
            DeviceError::Hung | DeviceError::Timeout => BackendError::Timeout { limit: PATIENCE },
            DeviceError::Lost { reason } => BackendError::DeviceLost { reason },
            DeviceError::OutOfMemory { requested } => BackendError::OutOfMemory { requested },
            DeviceError::Unsupported { what } => BackendError::UnsupportedFeature { feature: what, backend: self.id.into() },
            error @ (DeviceError::Trap { .. }
            | DeviceError::Aliased
            | DeviceError::Stale(_)
            | DeviceError::OutOfRange { .. }
            | DeviceError::Cancelled
            | DeviceError::Taken
            | DeviceError::Other(_)) => BackendError::new(error.to_string()),
        })
    }

    fn gpu(&self) -> Arc<Gpu> {
        lock(&self.gpu).clone()
    }

    fn open_again(&self, before: &Arc<Gpu>) -> Result<(), BackendError> {
        let mut now = lock(&self.gpu);
        if Arc::ptr_eq(&now, before) {
            let found = adapters::find(self.id)?;
            let gpu = Gpu::open(found).map_err(|error| BackendError::DeviceLost { reason: error.to_string() })?;
            *now = Arc::new(gpu);
            *lock(&self.compiled) = Compiled::default();
            // Dropping it could take as long as what runs on it.
            std::mem::forget(before.clone());
        }
        Ok(())
    }

    fn ready(&self, gpu: &Gpu, wgsl: &str) -> Result<Arc<Ready>, BackendError> {
        if let Some(ready) = lock(&self.compiled).0.get(wgsl) {
            return Ok(ready.clone());
        }
        let ready = Arc::new(compile(gpu, wgsl)?);
        let (kept, order) = &mut *lock(&self.compiled);
        if kept.insert(wgsl.into(), ready.clone()).is_none() {
            order.push_back(wgsl.into());
        }
        if order.len() > KEPT
            && let Some(oldest) = order.pop_front()
        {
            kept.remove(&oldest);
        }
        Ok(ready)
    }

    fn dispatch(&self, gpu: &Gpu, ready: &Ready, shading: &Shading<'_>) -> Result<Vec<u8>, DeviceError> {
        let Shading { input, output_size, groups, .. } = *shading;
        let groups = groups.unwrap_or_else(|| {
            let invocations: u64 = ready.workgroup.iter().map(|n| u64::from(*n)).product();
            [u32::try_from((output_size as u64).div_ceil(4).div_ceil(invocations)).unwrap_or(u32::MAX).max(1), 1, 1]
        });
        let limits = gpu.device.limits();
        let most = limits.max_compute_workgroups_per_dimension;
        if let Some(axis) = groups.iter().position(|n| *n > most) {
            let what = format!("{} workgroups along {}, only {most}", groups[axis], ["x", "y", "z"][axis]);
            return Err(DeviceError::Unsupported { what });
        }
        let room = |bytes: usize| (bytes.max(1) as u64).next_multiple_of(4);
        for bytes in [room(input.len()), room(output_size)] {
            let most = limits.max_storage_buffer_binding_size;
            if bytes > most {
                return Err(DeviceError::Unsupported { what: format!("a buffer of {bytes} bytes, only {most}") });
            }
        }
        // Both are of this call alone, so that both are zero at first.
        let buffers = [gpu.create(room(input.len()), Use::Storage)?, gpu.create(room(output_size), Use::Storage)?];
        let readback = gpu.create(room(output_size), Use::Readback)?;
        crate::steps::upload(gpu, &buffers[0], input);
        let bound = ready
            .used
            .iter()
            .map(|binding| wgpu::BindGroupEntry { binding: *binding, resource: buffers[*binding as usize].as_entire_binding() });
        let entries: Vec<_> = bound.collect();
        let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: None });
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor { label: None, timestamp_writes: None });
        pass.set_pipeline(&ready.pipeline);
        if !entries.is_empty() {
            let layout = ready.pipeline.get_bind_group_layout(0);
            let descriptor = wgpu::BindGroupDescriptor { label: None, layout: &layout, entries: &entries };
            pass.set_bind_group(0, &gpu.device.create_bind_group(&descriptor), &[]);
        }
        let [x, y, z] = groups;
        pass.dispatch_workgroups(x, y, z);
        drop(pass);
        encoder.copy_buffer_to_buffer(&buffers[1], 0, &readback, 0, None);
        let index = gpu.queue.submit([encoder.finish()]);
        readback.map_async(wgpu::MapMode::Read, .., |_| {});
        let waited = gpu.wait(index, Deadline(Some(Instant::now() + PATIENCE)), &AtomicBool::new(false));
        if gpu.is_stuck() {
            std::mem::forget((buffers, readback));
            return Err(waited.err().unwrap_or(DeviceError::Hung));
        }
        waited?;
        let view = readback.get_mapped_range(..);
        let view = view.map_err(|error| DeviceError::Other(format!("bytes cannot be read back: {error}")))?;
        Ok(view[..output_size].to_vec())
    }
}

fn compile(gpu: &Gpu, wgsl: &str) -> Result<Ready, BackendError> {
    let module = naga::front::wgsl::parse_str(wgsl).map_err(|error| refused(error.emit_to_string(wgsl)))?;
    let mut validator = naga::valid::Validator::new(naga::valid::ValidationFlags::all(), naga::valid::Capabilities::empty());
    let info = validator.validate(&module).map_err(|error| refused(error.emit_to_string(wgsl)))?;
    let entries = || module.entry_points.iter().enumerate().filter(|(_, entry)| entry.stage == naga::ShaderStage::Compute);
    let (Some((n, entry)), None) = (entries().next(), entries().nth(1)) else {
        let count = entries().count();
        return Err(refused(format!("the shader has {count} compute entry points. Fix: leave exactly one")));
    };
    let mut used = Vec::new();
    for (handle, variable) in module.global_variables.iter() {
        let uses = info.get_entry_point(n)[handle];
        let Some(naga::ResourceBinding { group, binding }) = variable.binding.filter(|_| !uses.is_empty()) else { continue };
        let name = variable.name.as_deref().unwrap_or_default();
        let naga::AddressSpace::Storage { .. } = variable.space else {
            return Err(refused(format!("`{name}` is not a storage buffer. Fix: make it `var<storage, read>` or `read_write`")));
        };
        if group != 0 || binding >= BINDINGS {
            return Err(refused(format!(
                "nothing is bound at group {group}, binding {binding}, where `{name}` is. Fix: use binding 0 of group 0 for the input and \
                 binding 1 for the output"
            )));
        }
        used.push(binding);
    }
    let scope = gpu.device.push_error_scope(wgpu::ErrorFilter::Validation);
    let internal = gpu.device.push_error_scope(wgpu::ErrorFilter::Internal);
    let source = wgpu::ShaderSource::Wgsl(wgsl.into());
    let shader = gpu.device.create_shader_module(wgpu::ShaderModuleDescriptor { label: None, source });
    let pipeline = gpu.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: None,
        layout: None,
        module: &shader,
        entry_point: Some(&entry.name),
        compilation_options: wgpu::PipelineCompilationOptions::default(),
        cache: None,
    });
    match now(internal.pop()).or(now(scope.pop())) {
        Some(error) => Err(refused(format!("the device does not take the shader: {error}"))),
        None => Ok(Ready { pipeline, used, workgroup: entry.workgroup_size }),
    }
}
