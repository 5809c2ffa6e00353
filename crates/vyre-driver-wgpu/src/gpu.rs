//! One opened device of wgpu: buffers that are used again, bind groups, and waiting. A device that is lost is replaced by another
//! of these as a whole.

use crate::adapters::{Found, now};
use crate::probe::float_profile;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use vyre_driver::device::{Deadline, DeviceError};
use vyre_emit::{Rounds, Target};

/// Bytes of free buffers that are kept.
const POOL: u64 = 256 << 20;

/// Timestamps of one submission, which no device has fewer of. Dispatches beyond them have no time.
pub(crate) const QUERIES: u32 = 4096;

/// Bind groups that are kept.
const GROUPS: usize = 512;

/// How long work that has overrun its deadline may go on before the device counts as stuck.
const GRACE: Duration = Duration::from_millis(500);

/// How often somebody who waits looks up.
const LOOK: Duration = Duration::from_millis(50);

pub(crate) struct Gpu {
    pub device: wgpu::Device,
    pub queue: wgpu::Queue,
    /// Why it is gone, if it is.
    lost: Arc<Mutex<Option<String>>>,
    /// Whether something still runs on it that will not end.
    stuck: AtomicBool,
    /// What wgpu has complained about: a mistake of ours.
    complaint: Arc<Mutex<Option<String>>>,
    pool: Mutex<Pool>,
    groups: Mutex<HashMap<GroupKey, wgpu::BindGroup>>,
    /// Numbers of memory that was dropped while bind groups may have it.
    gone: Arc<Mutex<Vec<u64>>>,
    numbers: AtomicU64,
    /// Bound where a kernel has a buffer without bytes: to read, and to write.
    pub empty: [wgpu::Buffer; 2],
    /// What shaders for it have to keep to.
    pub target: Target,
    /// What the float library reads.
    pub tables: wgpu::Buffer,
    copier: OnceLock<(wgpu::ComputePipeline, wgpu::BindGroupLayout)>,
    /// Nanoseconds of a tick, if the device has a clock.
    pub tick: Option<f32>,
    /// Timestamps that nobody uses.
    queries: Mutex<Vec<wgpu::QuerySet>>,
}

/// The code's number, and by binding the number of the buffer, offset and size.
pub(crate) type GroupKey = (u64, Vec<(u64, u64, u64)>);

/// What a buffer is for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Use {
    /// Kernels, and copies both ways.
    Storage,
    /// The numbers that a kernel gets.
    Block,
    /// Bytes for the host.
    Readback,
    /// Timestamps.
    Times,
}

/// A buffer that goes back to the pool.
pub(crate) struct Pooled {
    pub number: u64,
    pub buffer: wgpu::Buffer,
    size: u64,
    usage: Use,
}

#[derive(Default)]
struct Pool {
    free: HashMap<(Use, u64), Vec<Pooled>>,
    bytes: u64,
}

/// What shaders for an adapter have to keep to.
fn target(found: &Found) -> Target {
    let is_llvmpipe = found.info.name.contains("llvmpipe");
    // Every version of Mesa until one is known that does not.
    let rounds = is_llvmpipe.then_some(Rounds { most: 65_535, together: 8 });
    Target { rounds, ..Target::default() }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Gpu {
    pub fn open(found: &Found) -> Result<Gpu, DeviceError> {
        let opened = found.request(wgpu::Features::TIMESTAMP_QUERY);
        let (device, queue) = opened.map_err(|error| DeviceError::Lost { reason: error.to_string() })?;
        let (lost, complaint) = (Arc::<Mutex<Option<String>>>::default(), Arc::<Mutex<Option<String>>>::default());
        device.set_device_lost_callback({
            let lost = lost.clone();
            move |_, message| {
                lock(&lost).get_or_insert(message);
            }
        });
        device.on_uncaptured_error({
            let complaint = complaint.clone();
            Arc::new(move |error: wgpu::Error| {
                lock(&complaint).get_or_insert(error.to_string());
            })
        });
        let empty = [(); 2].map(|()| {
            device.create_buffer(&wgpu::BufferDescriptor {
                label: None,
                size: 16,
                usage: wgpu::BufferUsages::STORAGE,
                mapped_at_creation: false,
            })
        });
        let words: Vec<u8> = vyre_emit::floats::table().iter().flat_map(|word| word.to_le_bytes()).collect();
        let tables = device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: words.len().max(4) as u64,
            usage: wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        queue.write_buffer(&tables, 0, &words);
        let floats = float_profile(&found.fingerprint(), &device, &queue);
        let has_clock = device.features().contains(wgpu::Features::TIMESTAMP_QUERY);
        let tick = has_clock.then(|| queue.get_timestamp_period()).filter(|tick| *tick > 0.0);
        Ok(Gpu {
            device,
            queue,
            tick,
            queries: Mutex::default(),
            lost,
            stuck: AtomicBool::new(false),
            complaint,
            pool: Mutex::default(),
            groups: Mutex::default(),
            gone: Arc::default(),
            numbers: AtomicU64::new(2),
            empty,
            target: Target { floats, ..target(found) },
            tables,
            copier: OnceLock::new(),
        })
    }

    /// A number that nothing else of this device has. Those of the empty buffers are 0 and 1.
    pub fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Relaxed)
    }

    pub fn alive(&self) -> Result<(), DeviceError> {
        match &*lock(&self.lost) {
            Some(reason) => Err(DeviceError::Lost { reason: reason.clone() }),
            None => Ok(()),
        }
    }

    /// Makes it lost.
    pub fn lose(&self, reason: &str) {
        lock(&self.lost).get_or_insert(reason.into());
    }

    /// Whether dropping it could take forever.
    pub fn is_stuck(&self) -> bool {
        self.stuck.load(Relaxed)
    }

    /// The first thing that wgpu has complained about since somebody asked.
    fn complaint(&self) -> Result<(), DeviceError> {
        match lock(&self.complaint).take() {
            Some(message) => Err(DeviceError::Other(format!("wgpu refuses what was asked of it: {message}"))),
            None => Ok(()),
        }
    }

    /// A buffer of its own, zero.
    pub fn create(&self, size: u64, usage: Use) -> Result<wgpu::Buffer, DeviceError> {
        if size > self.device.limits().max_buffer_size {
            return Err(DeviceError::OutOfMemory { requested: size });
        }
        use wgpu::BufferUsages as Usages;
        let usage = match usage {
            Use::Storage => Usages::STORAGE | Usages::COPY_SRC | Usages::COPY_DST,
            Use::Block => Usages::UNIFORM | Usages::COPY_DST,
            Use::Readback => Usages::MAP_READ | Usages::COPY_DST,
            Use::Times => Usages::QUERY_RESOLVE | Usages::COPY_SRC,
        };
        let scope = self.device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        let descriptor = wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false };
        let buffer = self.device.create_buffer(&descriptor);
        match now(scope.pop()) {
            Some(_) => Err(DeviceError::OutOfMemory { requested: size }),
            None => Ok(buffer),
        }
    }

    /// A buffer of the pool with at least so many bytes, which may be any.
    pub fn take(&self, bytes: u64, usage: Use) -> Result<Pooled, DeviceError> {
        // Powers of two up to a size, then steps of it: little is lost, and much is found again.
        let size = if bytes <= 1 << 20 { bytes.max(256).next_power_of_two() } else { bytes.next_multiple_of(1 << 20) };
        let mut pool = lock(&self.pool);
        if let Some(found) = pool.free.get_mut(&(usage, size)).and_then(Vec::pop) {
            pool.bytes -= size;
            return Ok(found);
        }
        drop(pool);
        Ok(Pooled { number: self.number(), buffer: self.create(size, usage)?, size, usage })
    }

    /// Gives back buffers that nothing uses any more.
    pub fn give_back(&self, buffers: Vec<Pooled>) {
        let mut pool = lock(&self.pool);
        for buffer in buffers {
            if pool.bytes + buffer.size > POOL {
                self.forget(buffer.number);
                continue;
            }
            pool.bytes += buffer.size;
            pool.free.entry((buffer.usage, buffer.size)).or_default().push(buffer);
        }
    }

    /// Room for the timestamps of a submission.
    pub fn take_queries(&self) -> wgpu::QuerySet {
        lock(&self.queries).pop().unwrap_or_else(|| {
            let ty = wgpu::QueryType::Timestamp;
            self.device.create_query_set(&wgpu::QuerySetDescriptor { label: None, ty, count: QUERIES })
        })
    }

    /// Gives it back when nothing uses it any more.
    pub fn give_back_queries(&self, queries: wgpu::QuerySet) {
        lock(&self.queries).push(queries);
    }

    /// Where memory says that it is gone.
    pub fn gone(&self) -> Arc<Mutex<Vec<u64>>> {
        self.gone.clone()
    }

    fn forget(&self, number: u64) {
        lock(&self.gone).push(number);
    }

    /// The bind group of a key, made if there is none. None is kept of memory that is gone.
    pub fn group(&self, key: GroupKey, make: impl FnOnce() -> wgpu::BindGroup) -> wgpu::BindGroup {
        let gone = std::mem::take(&mut *lock(&self.gone));
        let mut groups = lock(&self.groups);
        if !gone.is_empty() {
            groups.retain(|(_, bound), _| !bound.iter().any(|(number, ..)| gone.contains(number)));
        }
        if groups.len() >= GROUPS {
            groups.clear();
        }
        groups.entry(key).or_insert_with(make).clone()
    }

    /// Waits for what was submitted.
    pub fn wait(&self, index: wgpu::SubmissionIndex, deadline: Deadline, left: &AtomicBool) -> Result<(), DeviceError> {
        loop {
            let now = Instant::now();
            let timeout = match deadline.0 {
                Some(at) if at > now => LOOK.min(at - now),
                Some(_) | None => LOOK,
            };
            let waited = self.device.poll(wgpu::PollType::Wait { submission_index: Some(index.clone()), timeout: Some(timeout) });
            match waited {
                Ok(_) => break,
                Err(wgpu::PollError::Timeout) => {}
                Err(error @ wgpu::PollError::WrongSubmissionIndex(..)) => return Err(DeviceError::Other(error.to_string())),
            }
            self.alive()?;
            if left.load(Relaxed) {
                self.stuck.store(true, Relaxed);
                return Err(DeviceError::Lost { reason: "it was opened again".into() });
            }
            if deadline.0.is_some_and(|at| now >= at + GRACE) {
                self.stuck.store(true, Relaxed);
                self.lose("a dispatch did not end");
                return Err(DeviceError::Hung);
            }
        }
        self.alive()?;
        self.complaint()?;
        if deadline.is_over() { Err(DeviceError::Timeout) } else { Ok(()) }
    }
}

impl Gpu {
    /// The shader that copies bytes, and its layout.
    pub fn copier(&self) -> &(wgpu::ComputePipeline, wgpu::BindGroupLayout) {
        self.copier.get_or_init(|| {
            let entry = |binding, ty, has_dynamic_offset| wgpu::BindGroupLayoutEntry {
                binding,
                visibility: wgpu::ShaderStages::COMPUTE,
                ty: wgpu::BindingType::Buffer { ty, has_dynamic_offset, min_binding_size: None },
                count: None,
            };
            let groups = self.device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
                label: None,
                entries: &[
                    entry(0, wgpu::BufferBindingType::Uniform, true),
                    entry(1, wgpu::BufferBindingType::Storage { read_only: true }, false),
                    entry(2, wgpu::BufferBindingType::Storage { read_only: false }, false),
                ],
            });
            let layout = self.device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
                label: None,
                bind_group_layouts: &[Some(&groups)],
                immediate_size: 0,
            });
            let module = self.device.create_shader_module(wgpu::ShaderModuleDescriptor {
                label: None,
                source: wgpu::ShaderSource::Wgsl(crate::steps::COPIER.into()),
            });
            let pipeline = self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                label: None,
                layout: Some(&layout),
                module: &module,
                entry_point: Some("main"),
                compilation_options: wgpu::PipelineCompilationOptions::default(),
                cache: None,
            });
            (pipeline, groups)
        })
    }
}
