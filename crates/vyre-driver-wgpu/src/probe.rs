//! The float profile of a device: probes of `vyre-emit`, run when it is first opened in a process.

use crate::adapters::now;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use vyre_emit::floats::kernel::Job;
use vyre_emit::floats::probe::{Depth, Runner, profile};
use vyre_emit::floats::{FloatProfile, Rung};

/// How long a probe may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Which float instructions are right on a device with this fingerprint.
pub(crate) fn float_profile(fingerprint: &str, device: &wgpu::Device, queue: &wgpu::Queue) -> FloatProfile {
    static KNOWN: Mutex<Option<HashMap<String, FloatProfile>>> = Mutex::new(None);
    // Whoever opens the same device meanwhile waits for the answer.
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_default();
    if let Some(profile) = known.get(fingerprint) {
        return *profile;
    }
    // WGSL promises nothing about what compilers rewrite.
    let outcome = profile(&mut Probes { device, queue }, Rung::Protected, Depth::Short);
    tracing::debug!(fingerprint, findings = outcome.findings.len(), "float profile");
    known.insert(fingerprint.into(), outcome.profile);
    outcome.profile
}

struct Probes<'a> {
    device: &'a wgpu::Device,
    queue: &'a wgpu::Queue,
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

    fn words(&self, job: &Job) -> Result<Vec<u32>, String> {
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
        let module = self.device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: None,
            source: wgpu::ShaderSource::Wgsl(job.wgsl.as_str().into()),
        });
        let pipeline = self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: None,
            module: &module,
            entry_point: Some("main"),
            compilation_options: wgpu::PipelineCompilationOptions::default(),
            cache: None,
        });
        let entries = [&inputs, &outputs, &constants].into_iter().enumerate();
        let entries: Vec<_> =
            entries.map(|(n, buffer)| wgpu::BindGroupEntry { binding: n as u32, resource: buffer.as_entire_binding() }).collect();
        let layout = pipeline.get_bind_group_layout(0);
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
