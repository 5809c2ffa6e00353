//! Kernels made ready: a pipeline, and what is bound to it.

use crate::adapters::now;
use crate::gpu::Gpu;
use crate::trusted;
use std::sync::Arc;
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
}

impl Ready {
    pub fn new(gpu: &Gpu, kernel: &Arc<Kernel>, options: &CodeOptions) -> Result<Ready, DeviceError> {
        let target = Target { workgroup: options.workgroup, ..gpu.target.clone() };
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
            // The driver's code is about as long as ours.
            bytes: 4 * shader.wgsl.len() as u64,
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
