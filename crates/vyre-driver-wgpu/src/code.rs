//! Kernels made ready: a pipeline, and what is bound to it.

use crate::adapters::now;
use crate::gpu::Gpu;
use crate::trusted;
use std::sync::{Arc, OnceLock};
use vyre_driver::device::{CodeOptions, DeviceError};
use vyre_emit::{EmitError, Layout, Shader, Target};
use vyre_foundation::interface::Interface;
use vyre_foundation::ir::Access;
use vyre_foundation::kernel::Kernel;

/// What a `Code` of ours has inside.
pub(crate) struct Ready {
    pub number: u64,
    pub pipeline: wgpu::ComputePipeline,
    pub groups: wgpu::BindGroupLayout,
    pub layout: Layout,
    /// By binding: what the kernel does with it.
    pub access: Vec<Access>,
    /// By binding: its place among the declarations.
    pub bound: Vec<usize>,
    pub profile: Option<Arc<str>>,
    pub hash: [u8; 32],
    pub bytes: u64,
    /// The same for loops that go round more often, where that counts.
    longer: Option<Longer>,
}

/// A shader with the bodies of loops several times, which is made when a dispatch needs it.
struct Longer {
    kernel: Arc<Kernel>,
    options: CodeOptions,
    copies: u32,
    ready: OnceLock<Result<Box<Ready>, DeviceError>>,
}

/// How often bodies of loops are repeated, if once is not enough and then again.
const COPIES: [u32; 3] = [1, 16, 128];

/// A shader of more bytes is not made longer.
const LONG: usize = 1 << 16;

impl Ready {
    pub fn new(gpu: &Gpu, kernel: &Arc<Kernel>, options: &CodeOptions) -> Result<Ready, DeviceError> {
        Ready::with_copies(gpu, kernel, options, COPIES[0])
    }

    /// What to run: the shader itself, or the longest that was needed so far.
    pub fn current(&self) -> &Ready {
        match self.longer.as_ref().and_then(|longer| longer.ready.get()) {
            Some(Ok(ready)) => ready.current(),
            Some(Err(_)) | None => self,
        }
    }

    /// The next one for loops that go round more often.
    pub fn longer(&self, gpu: &Gpu) -> Result<&Ready, DeviceError> {
        let Some(longer) = &self.longer else {
            let what = "loops that run this many rounds in one invocation: its driver ends them silently".into();
            return Err(DeviceError::Unsupported { what });
        };
        let Longer { kernel, options, copies, ready } = longer;
        let made = ready.get_or_init(|| Ready::with_copies(gpu, kernel, options, *copies).map(Box::new));
        made.as_deref().map_err(Clone::clone)
    }

    fn with_copies(gpu: &Gpu, kernel: &Arc<Kernel>, options: &CodeOptions, copies: u32) -> Result<Ready, DeviceError> {
        let target = Target { workgroup: options.workgroup, copies, ..gpu.target.clone() };
        let shader = Shader::of(kernel, &target).map_err(|error| match error {
            EmitError::Unsupported { what } => DeviceError::Unsupported { what },
            EmitError::Invalid { .. } => DeviceError::Other(error.to_string()),
        })?;
        let limits = gpu.device.limits();
        let hidden = u32::from(shader.layout.trap_words() > 0) + u32::from(shader.layout.tables);
        let storage = shader.layout.writable.len() as u32 + hidden;
        for (what, found, most) in [
            ("storage buffers", storage, limits.max_storage_buffers_per_shader_stage),
            ("bytes of workgroup memory", shader.layout.workgroup_bytes, limits.max_compute_workgroup_storage_size),
        ] {
            if found > most {
                return Err(DeviceError::Unsupported { what: format!("{found} {what}, only {most}") });
            }
        }
        let scope = gpu.device.push_error_scope(wgpu::ErrorFilter::Validation);
        let internal = gpu.device.push_error_scope(wgpu::ErrorFilter::Internal);
        let mut entries = vec![entry(Layout::BLOCK, wgpu::BufferBindingType::Uniform, true)];
        if shader.layout.trap_words() > 0 {
            entries.push(entry(Layout::TRAPS, wgpu::BufferBindingType::Storage { read_only: false }, false));
        }
        if shader.layout.tables {
            entries.push(entry(Layout::TABLES, wgpu::BufferBindingType::Storage { read_only: true }, false));
        }
        for (n, writable) in shader.layout.writable.iter().enumerate() {
            let ty = wgpu::BufferBindingType::Storage { read_only: !writable };
            entries.push(entry(Layout::BUFFERS + n as u32, ty, false));
        }
        let device = &gpu.device;
        let descriptor = wgpu::BindGroupLayoutDescriptor { label: None, entries: &entries };
        let groups = device.create_bind_group_layout(&descriptor);
        let descriptor = wgpu::PipelineLayoutDescriptor { label: None, bind_group_layouts: &[Some(&groups)], immediate_size: 0 };
        let pipeline_layout = device.create_pipeline_layout(&descriptor);
        let module = trusted::module(device, &shader);
        let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: Some(&pipeline_layout),
            module: &module,
            entry_point: Some(Layout::ENTRY),
            compilation_options: wgpu::PipelineCompilationOptions {
                constants: &[],
                // The shader does it.
                zero_initialize_workgroup_memory: false,
            },
            cache: None,
        });
        let failed = now(internal.pop()).or(now(scope.pop()));
        if let Some(error) = failed {
            return Err(DeviceError::Other(format!("the driver does not take a shader: {error}")));
        }
        let more = COPIES.into_iter().find(|more| *more > copies && shader.layout.counts_rounds && shader.wgsl.len() <= LONG);
        let longer =
            more.map(|copies| Longer { kernel: kernel.clone(), options: options.clone(), copies, ready: OnceLock::new() });
        let bound = Interface::of_kernel(kernel).bound;
        let access = bound.iter().map(|i| kernel.buffers[*i].access).collect();
        Ok(Ready {
            number: gpu.number(),
            pipeline,
            groups,
            access,
            bound,
            profile: options.profile.as_deref().map(Arc::from),
            hash: *blake3::hash(shader.wgsl.as_bytes()).as_bytes(),
            // A driver keeps its own forms of the shader beside the code. How long they are cannot be asked; this is an estimate.
            bytes: 64 * shader.wgsl.len() as u64,
            longer,
            layout: shader.layout,
        })
    }
}

fn entry(binding: u32, ty: wgpu::BufferBindingType, has_dynamic_offset: bool) -> wgpu::BindGroupLayoutEntry {
    wgpu::BindGroupLayoutEntry {
        binding,
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: wgpu::BindingType::Buffer { ty, has_dynamic_offset, min_binding_size: None },
        count: None,
    }
}
