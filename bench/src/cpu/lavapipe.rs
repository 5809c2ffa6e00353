//! Vulkan on the CPU as a peer: the kernels as plain WGSL, through wgpu, on the llvmpipe of Mesa if the system has it.
//!
//! Buffers are made and filled before anything is timed; a run is one pass and the wait for its end.

use super::cases::Case;
use crate::wgpu::now;

const SOURCE: &str = include_str!("../../kernels/peers.wgsl");
/// Workgroups along one axis that every adapter takes.
const ROW: u32 = 65_535;

/// The device. Lives as long as the process.
pub struct Lavapipe {
    device: wgpu::Device,
    queue: wgpu::Queue,
    name: String,
}

impl Lavapipe {
    /// Opens it; says `not installed` if there is none. Its threads stay on the cores that this one may use now.
    pub fn open() -> Result<Lavapipe, String> {
        let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
        descriptor.backends = wgpu::Backends::VULKAN;
        let adapters = now(wgpu::Instance::new(descriptor).enumerate_adapters(wgpu::Backends::VULKAN));
        let adapter =
            adapters.into_iter().find(|adapter| adapter.get_info().name.starts_with("llvmpipe")).ok_or("not installed")?;
        let info = adapter.get_info();
        let request = wgpu::DeviceDescriptor { required_limits: adapter.limits(), ..Default::default() };
        let (device, queue) = now(adapter.request_device(&request)).map_err(|error| error.to_string())?;
        Ok(Lavapipe { device, queue, name: format!("{}, {}", info.driver_info, info.name) })
    }

    /// What it calls itself.
    pub fn name(&self) -> String {
        self.name.clone()
    }

    /// A case made ready, if there is a kernel for it.
    pub fn prepare<'a>(&'a self, case: &Case) -> Result<Dispatch<'a>, String> {
        let heading = format!("// kernel: {}\n", case.name);
        let (_, text) = SOURCE.split_once(&heading).ok_or("not written")?;
        let text = text.split_once("// kernel: ").map_or(text, |(text, _)| text);
        let source = wgpu::ShaderSource::Wgsl(text.into());
        let module = self.device.create_shader_module(wgpu::ShaderModuleDescriptor { label: None, source });
        let pipeline = self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: None,
            module: &module,
            entry_point: Some("main"),
            compilation_options: wgpu::PipelineCompilationOptions::default(),
            cache: None,
        });
        let buffer = |bytes: usize| {
            use wgpu::BufferUsages as Usages;
            let usage = Usages::STORAGE | Usages::COPY_DST | Usages::COPY_SRC;
            self.device.create_buffer(&wgpu::BufferDescriptor {
                label: None,
                size: bytes as u64,
                usage,
                mapped_at_creation: false,
            })
        };
        let mut buffers = Vec::new();
        for input in case.bytes() {
            let made = buffer(input.len());
            self.queue.write_buffer(&made, 0, input);
            buffers.push(made);
        }
        buffers.push(buffer(case.output * 4));
        let entries: Vec<_> = buffers
            .iter()
            .enumerate()
            .map(|(n, buffer)| wgpu::BindGroupEntry { binding: n as u32, resource: buffer.as_entire_binding() })
            .collect();
        let layout = pipeline.get_bind_group_layout(0);
        let group = self.device.create_bind_group(&wgpu::BindGroupDescriptor { label: None, layout: &layout, entries: &entries });
        let [x, y, z] = case.config.grid_override.expect("every case has a grid");
        let rows = x.div_ceil(ROW);
        let grid = if rows > 1 { [x.div_ceil(rows), rows, 1] } else { [x, y, z] };
        Ok(Dispatch { lavapipe: self, pipeline, group, grid, output: buffers.pop().expect("the output is there") })
    }

    fn wait(&self) -> Result<(), String> {
        self.device.poll(wgpu::PollType::wait_indefinitely()).map(drop).map_err(|error| error.to_string())
    }
}

/// A kernel with its buffers.
pub struct Dispatch<'a> {
    lavapipe: &'a Lavapipe,
    pipeline: wgpu::ComputePipeline,
    group: wgpu::BindGroup,
    grid: [u32; 3],
    output: wgpu::Buffer,
}

impl Dispatch<'_> {
    /// Runs it and waits for its end.
    pub fn run(&self) -> Result<(), String> {
        let mut encoder = self.lavapipe.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        pass.set_pipeline(&self.pipeline);
        pass.set_bind_group(0, &self.group, &[]);
        let [x, y, z] = self.grid;
        pass.dispatch_workgroups(x, y, z);
        drop(pass);
        self.lavapipe.queue.submit([encoder.finish()]);
        self.lavapipe.wait()
    }

    /// What it wrote.
    pub fn output(&self) -> Result<Vec<u32>, String> {
        let Lavapipe { device, queue, .. } = self.lavapipe;
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        let size = self.output.size();
        let copy = device.create_buffer(&wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false });
        let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        encoder.copy_buffer_to_buffer(&self.output, 0, &copy, 0, None);
        queue.submit([encoder.finish()]);
        copy.map_async(wgpu::MapMode::Read, .., |_| {});
        self.lavapipe.wait()?;
        let view = copy.get_mapped_range(..).map_err(|error| error.to_string())?;
        Ok(bytemuck::pod_collect_to_vec(&view[..]))
    }
}
