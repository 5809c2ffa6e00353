//! The devices that the library is tested on: Vulkan in software, by two implementations that share no code.

use std::pin::pin;
use std::sync::{Mutex, mpsc};
use std::task::{Context, Poll, Waker};
use vyre_emit::floats::kernel::Job;

/// Its futures are ready when they are made: what they wait for is done by then.
fn ready<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("a future of wgpu was not ready"),
    }
}

/// One device, and one shader that was compiled last.
pub struct Gpu {
    pub name: &'static str,
    device: wgpu::Device,
    queue: wgpu::Queue,
    last: Mutex<Option<(String, wgpu::ComputePipeline)>>,
}

/// Names that the drivers give, in part.
pub const DEVICES: [&str; 2] = ["llvmpipe", "SwiftShader"];

impl Gpu {
    /// The device whose name contains this.
    pub fn open(name: &'static str) -> Gpu {
        let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
        descriptor.backends = wgpu::Backends::VULKAN;
        let instance = wgpu::Instance::new(descriptor);
        let adapters = ready(instance.enumerate_adapters(wgpu::Backends::VULKAN));
        let names: Vec<String> = adapters.iter().map(|adapter| adapter.get_info().name).collect();
        let adapter = adapters.into_iter().find(|adapter| adapter.get_info().name.contains(name));
        let adapter = adapter.unwrap_or_else(|| {
            panic!("no Vulkan device is called {name}, only {names:?}; scripts/test installs the drivers that the tests need")
        });
        let limits = adapter.limits();
        let request = wgpu::DeviceDescriptor { required_limits: limits, ..Default::default() };
        let (device, queue) = ready(adapter.request_device(&request)).expect("the device opens");
        Gpu { name, device, queue, last: Mutex::new(None) }
    }

    /// The outputs of a job.
    pub fn run(&self, job: &Job) -> Vec<u32> {
        let pipeline = self.pipeline(&job.wgsl);
        let buffer = |words: usize, usage| {
            let size = 4 * words.max(1) as u64;
            self.device.create_buffer(&wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false })
        };
        let storage = wgpu::BufferUsages::STORAGE;
        let filled = |words: &[u32]| {
            let buffer = buffer(words.len(), storage | wgpu::BufferUsages::COPY_DST);
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            self.queue.write_buffer(&buffer, 0, &bytes);
            buffer
        };
        let outputs = buffer(job.outputs, storage | wgpu::BufferUsages::COPY_SRC);
        let readback = buffer(job.outputs, wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST);
        let buffers = [filled(&job.inputs), outputs, filled(&job.constants)];
        let layout = self.layout();
        let entries: Vec<wgpu::BindGroupEntry> = (0..)
            .zip(&buffers)
            .map(|(binding, buffer)| wgpu::BindGroupEntry { binding, resource: buffer.as_entire_binding() })
            .collect();
        let group = wgpu::BindGroupDescriptor { label: None, layout: &layout, entries: &entries };
        let group = self.device.create_bind_group(&group);
        let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        {
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            pass.set_pipeline(&pipeline);
            pass.set_bind_group(0, &group, &[]);
            pass.dispatch_workgroups(job.workgroups, 1, 1);
        }
        encoder.copy_buffer_to_buffer(&buffers[1], 0, &readback, 0, 4 * job.outputs as u64);
        self.queue.submit([encoder.finish()]);
        let (sender, receiver) = mpsc::channel();
        readback.map_async(wgpu::MapMode::Read, .., move |result| sender.send(result).expect("the test waits"));
        self.device.poll(wgpu::PollType::wait_indefinitely()).expect("the device finishes");
        receiver.recv().expect("the callback was called").expect("the buffer is mapped");
        let bytes = readback.get_mapped_range(..).expect("the buffer is mapped");
        bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
    }

    /// Also of shaders that do not use every buffer.
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
        let descriptor = wgpu::BindGroupLayoutDescriptor { label: None, entries: &entries };
        self.device.create_bind_group_layout(&descriptor)
    }

    fn pipeline(&self, wgsl: &str) -> wgpu::ComputePipeline {
        let mut last = self.last.lock().expect("no test panics while it compiles");
        if let Some((_, pipeline)) = last.as_ref().filter(|(text, _)| text == wgsl) {
            return pipeline.clone();
        }
        let source = wgpu::ShaderSource::Wgsl(wgsl.into());
        let module = self.device.create_shader_module(wgpu::ShaderModuleDescriptor { label: None, source });
        let layout = self.device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: None,
            bind_group_layouts: &[Some(&self.layout())],
            immediate_size: 0,
        });
        let pipeline = self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: Some(&layout),
            module: &module,
            entry_point: Some("main"),
            compilation_options: wgpu::PipelineCompilationOptions::default(),
            cache: None,
        });
        *last = Some((wgsl.to_owned(), pipeline.clone()));
        pipeline
    }
}
