//! What floats of a device are proven to be: probes of `vyre-emit`, run when it is first opened, and on request.
//!
//! The answer is kept for the process, and on disk for the next ([`kept`](crate::kept)).

use crate::adapters::{self, now};
use crate::kept::{Kept, folder};
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};
use vyre_driver::BackendError;
use vyre_emit::floats::cost::{self, Cost, Form};
use vyre_emit::floats::kernel::Job;
use vyre_emit::floats::probe::{self, Depth, Outcome, Runner, Wrong};
use vyre_emit::floats::{FloatOp, FloatProfile, Rung};
use vyre_spec::FloatMode;

/// How long a probe may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// WGSL promises nothing about what compilers rewrite, so that no instruction can be used as it is.
const LOWEST: Rung = Rung::Protected;

/// What is known in this process, by fingerprint.
static KNOWN: Mutex<Option<HashMap<String, FloatProfile>>> = Mutex::new(None);

/// What tells the probes from those of other builds. Nothing is kept where that cannot be told.
static SUBJECT: LazyLock<Option<String>> = LazyLock::new(|| {
    let mut hasher = blake3::Hasher::new();
    probe::subject(LOWEST)?.into_iter().for_each(|word| {
        hasher.update(&word.to_le_bytes());
    });
    Some(hasher.finalize().to_hex().to_string())
});

const BUILD: &str = env!("CARGO_PKG_VERSION");

/// Which float instructions are right on a device with this fingerprint.
pub(crate) fn float_profile(fingerprint: &str, device: &wgpu::Device, queue: &wgpu::Queue) -> FloatProfile {
    // Whoever opens the same device meanwhile waits for the answer.
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_default();
    if let Some(profile) = known.get(fingerprint) {
        return *profile;
    }
    let place = folder().zip(SUBJECT.as_deref());
    let kept = place.as_ref().and_then(|(folder, probes)| Kept::load(folder, fingerprint, probes, BUILD));
    let profile = kept.map(|kept| kept.profile).unwrap_or_else(|| {
        let outcome = probe::profile(&mut Probes { device, queue, last: None }, LOWEST, Depth::Short);
        tracing::debug!(fingerprint, findings = outcome.findings.len(), "float profile");
        keep(fingerprint, &outcome, false);
        outcome.profile
    });
    known.insert(fingerprint.into(), profile);
    profile
}

/// Keeps what probes have shown on disk.
fn keep(fingerprint: &str, outcome: &Outcome, full: bool) {
    // A device that runs nothing today may run tomorrow.
    let ran = outcome.findings.iter().all(|finding| !matches!(finding.what, Wrong::Missing(_)));
    if let Some((folder, probes)) = folder().zip(SUBJECT.as_deref()).filter(|_| ran) {
        let [device, probes, build] = [fingerprint, probes, BUILD].map(String::from);
        Kept { device, probes, build, full, profile: outcome.profile }.store(&folder);
    }
}

/// What probes have shown about a device, and what its float ops cost.
#[derive(Clone, Debug)]
pub struct Probed {
    /// The device.
    pub id: &'static str,
    /// The same, for people.
    pub name: String,
    /// The ladder: which instructions are right, and what is wrong about the others.
    pub ladder: Outcome,
    /// How long that took, compilation included.
    pub took: Duration,
    /// Ops that are wrong in integers: full probes only. There must be none; the device is not to be used for them.
    pub wrong: Vec<(FloatOp, FloatMode, Wrong)>,
    /// What each op costs, as plain WGSL where there is such a form, and as kernels compute it.
    pub costs: Vec<Cost>,
}

/// Runs the probes of a device, whatever is known about it, and measures its float ops. Those that are opened from now on, in this process
/// and others, use the answer. `tell` hears what is measured, since it takes a while.
///
/// # Errors
///
/// If there is no such device, or it cannot be opened.
pub fn probe(id: &str, depth: Depth, mut tell: impl FnMut(&str)) -> Result<Probed, BackendError> {
    let found = adapters::find(id)?;
    let (device, queue) =
        found.request(wgpu::Features::empty()).map_err(|why| BackendError::new(format!("`{id}` cannot be opened: {why}")))?;
    let mut probes = Probes { device: &device, queue: &queue, last: None };
    let fingerprint = found.fingerprint();
    tell("the ladder");
    let start = Instant::now();
    let ladder = probe::profile(&mut probes, LOWEST, depth);
    let took = start.elapsed();
    keep(&fingerprint, &ladder, depth == Depth::Full);
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default().insert(fingerprint, ladder.profile);
    let wrong = match depth {
        Depth::Short => Vec::new(),
        Depth::Full => {
            tell("every op in integers");
            probe::library(&mut probes, depth)
        }
    };
    let mut costs = Vec::new();
    for op in FloatOp::all() {
        tell(&op.to_string());
        let plain = op.ladder().is_some_and(|ladder| ladder.op() == op).then_some(Form::Plain);
        let exact = FloatMode::ALL.map(|mode| Form::Exact(mode, ladder.profile));
        for form in plain.into_iter().chain(exact) {
            match cost::measure(&mut probes, op, form) {
                Ok(cost) => costs.extend(cost),
                Err(why) => tell(&format!("{op} cannot be measured: {why}")),
            }
        }
    }
    Ok(Probed { id: found.id, name: found.name(), ladder, took, wrong, costs })
}

struct Probes<'a> {
    device: &'a wgpu::Device,
    queue: &'a wgpu::Queue,
    /// The shader that was compiled last, which is often that of the next job too.
    last: Option<(String, wgpu::ComputePipeline)>,
}

impl Runner for Probes<'_> {
    fn run(&mut self, job: &Job) -> Result<Vec<u32>, String> {
        let scope = self.device.push_error_scope(wgpu::ErrorFilter::Validation);
        let words = self.words(job);
        match now(scope.pop()) {
            Some(error) => Err(error.to_string()),
            None => words,
        }
    }
}

impl Probes<'_> {
    fn buffer(&self, words: usize, usage: wgpu::BufferUsages) -> wgpu::Buffer {
        let size = 4 * words.max(1) as u64;
        self.device.create_buffer(&wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false })
    }

    /// The bindings of a job, also of one that does not use them all.
    fn layout(&self) -> wgpu::BindGroupLayout {
        let entries = [0, 1, 2].map(|binding| wgpu::BindGroupLayoutEntry {
            binding,
            visibility: wgpu::ShaderStages::COMPUTE,
            ty: wgpu::BindingType::Buffer {
                ty: wgpu::BufferBindingType::Storage { read_only: binding != 1 },
                has_dynamic_offset: false,
                min_binding_size: None,
            },
            count: None,
        });
        self.device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label: None, entries: &entries })
    }

    fn pipeline(&mut self, wgsl: &str) -> wgpu::ComputePipeline {
        if let Some((_, pipeline)) = self.last.as_ref().filter(|(text, _)| text == wgsl) {
            return pipeline.clone();
        }
        let source = wgpu::ShaderSource::Wgsl(wgsl.into());
        let module = self.device.create_shader_module(wgpu::ShaderModuleDescriptor { label: None, source });
        let layouts = [Some(&self.layout())];
        let layout = wgpu::PipelineLayoutDescriptor { label: None, bind_group_layouts: &layouts, immediate_size: 0 };
        let layout = self.device.create_pipeline_layout(&layout);
        let pipeline = self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: Some(&layout),
            module: &module,
            entry_point: Some("main"),
            compilation_options: wgpu::PipelineCompilationOptions::default(),
            cache: None,
        });
        self.last = Some((wgsl.into(), pipeline.clone()));
        pipeline
    }

    fn words(&mut self, job: &Job) -> Result<Vec<u32>, String> {
        use wgpu::BufferUsages as Usages;
        let filled = |words: &[u32]| {
            let buffer = self.buffer(words.len(), Usages::STORAGE | Usages::COPY_DST);
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            self.queue.write_buffer(&buffer, 0, &bytes);
            buffer
        };
        let (inputs, constants) = (filled(&job.inputs), filled(&job.constants));
        let outputs = self.buffer(job.outputs, Usages::STORAGE | Usages::COPY_SRC);
        let readback = self.buffer(job.outputs, Usages::MAP_READ | Usages::COPY_DST);
        let pipeline = self.pipeline(&job.wgsl);
        let entries = [&inputs, &outputs, &constants].into_iter().enumerate();
        let entries: Vec<_> =
            entries.map(|(n, buffer)| wgpu::BindGroupEntry { binding: n as u32, resource: buffer.as_entire_binding() }).collect();
        let layout = self.layout();
        let descriptor = wgpu::BindGroupDescriptor { label: None, layout: &layout, entries: &entries };
        let group = self.device.create_bind_group(&descriptor);
        let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: None });
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor { label: None, timestamp_writes: None });
        pass.set_pipeline(&pipeline);
        pass.set_bind_group(0, &group, &[]);
        pass.dispatch_workgroups(job.workgroups, 1, 1);
        drop(pass);
        encoder.copy_buffer_to_buffer(&outputs, 0, &readback, 0, None);
        let index = self.queue.submit([encoder.finish()]);
        readback.map_async(wgpu::MapMode::Read, .., |_| {});
        let wait = wgpu::PollType::Wait { submission_index: Some(index), timeout: Some(PATIENCE) };
        self.device.poll(wait).map_err(|error| error.to_string())?;
        let view = readback.get_mapped_range(..).map_err(|error| error.to_string())?;
        Ok(view.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).take(job.outputs).collect())
    }
}
