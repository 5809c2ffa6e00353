//! Devices behind wgpu, against wgpu called by hand: what vyre adds to a dispatch, and what exact floats cost.
//!
//! `cargo run --release -p vyre-bench --features wgpu -- wgpu` needs an adapter, which may be one in software. The shader by hand does what
//! anyone would write: buffers, pipeline and bind group made once; per dispatch inputs written, one pass, a copy to a buffer that is
//! mapped.

use crate::interleaved;
use std::future::Future;
use std::hint::black_box;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use vyre::backend::registry::registered_devices;
use vyre::emit::floats::LadderOp;
use vyre::emit::floats::cost::Form;
use vyre::emit::floats::probe::Depth;
use vyre::ir::Program;
use vyre::pipeline;
use vyre::spec::FloatMode;
use vyre::{Backend, DispatchConfig, ResidentRange, ResidentStep, VyreBackend};

/// Dispatches in a round.
const CALLS: usize = 50;

/// Dispatches of a sequence.
const BATCH: usize = 1000;

const WGSL: &str = "@group(0) @binding(0) var<storage, read> a: array<u32>;
@group(0) @binding(1) var<storage, read> b: array<u32>;
@group(0) @binding(2) var<storage, read_write> out: array<u32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    if (i < arrayLength(&out)) {
        out[i] = a[i] ^ b[i];
    }
}";

const XOR: &str = "program xor {
  workgroup 64
  buffer a: read u32 @0
  buffer b: read u32 @1
  buffer out: output u32 @2
  let i = gid.x
  if i < len(out) {
    out[i] = a[i] ^ b[i]
  }
}";

/// Waits for what is there at once.
pub fn now<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return value;
        }
    }
}

/// The kernel by hand, over buffers of one size.
struct ByHand {
    device: wgpu::Device,
    queue: wgpu::Queue,
    pipeline: wgpu::ComputePipeline,
    inputs: [wgpu::Buffer; 2],
    output: wgpu::Buffer,
    readback: wgpu::Buffer,
    group: wgpu::BindGroup,
    groups: u32,
    input: Vec<u8>,
    result: Vec<u8>,
}

fn device(name: &str) -> Option<(wgpu::Device, wgpu::Queue)> {
    let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
    descriptor.backends = wgpu::Backends::PRIMARY;
    let adapters = now(wgpu::Instance::new(descriptor).enumerate_adapters(wgpu::Backends::all()));
    let adapter = adapters.into_iter().find(|adapter| name.starts_with(&adapter.get_info().name))?;
    let request = wgpu::DeviceDescriptor { required_limits: adapter.limits(), ..Default::default() };
    now(adapter.request_device(&request)).ok()
}

impl ByHand {
    fn new(name: &str, elements: usize) -> Option<ByHand> {
        let (device, queue) = device(name)?;
        let size = 4 * elements as u64;
        let buffer =
            |usage| device.create_buffer(&wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false });
        use wgpu::BufferUsages as Usages;
        let inputs = [(); 2].map(|()| buffer(Usages::STORAGE | Usages::COPY_DST));
        let output = buffer(Usages::STORAGE | Usages::COPY_SRC);
        let readback = buffer(Usages::MAP_READ | Usages::COPY_DST);
        let pipeline = compile(&device, WGSL);
        let bound = [&inputs[0], &inputs[1], &output].into_iter().enumerate();
        let entries: Vec<_> =
            bound.map(|(n, buffer)| wgpu::BindGroupEntry { binding: n as u32, resource: buffer.as_entire_binding() }).collect();
        let layout = pipeline.get_bind_group_layout(0);
        let group = device.create_bind_group(&wgpu::BindGroupDescriptor { label: None, layout: &layout, entries: &entries });
        let groups = (elements as u32).div_ceil(64);
        let input = input(elements);
        queue.write_buffer(&inputs[0], 0, &input);
        queue.write_buffer(&inputs[1], 0, &input);
        Some(ByHand { device, queue, pipeline, inputs, output, readback, group, groups, input, result: Vec::new() })
    }

    fn dispatch(&mut self) {
        self.queue.write_buffer(&self.inputs[0], 0, &self.input);
        self.queue.write_buffer(&self.inputs[1], 0, &self.input);
        self.passes(1);
        let index = self.queue.submit([]);
        self.readback.map_async(wgpu::MapMode::Read, .., |_| {});
        self.wait(index);
        let view = self.readback.get_mapped_range(..).expect("it is mapped");
        self.result.clear();
        self.result.extend_from_slice(&view);
        drop(view);
        self.readback.unmap();
    }

    /// So many dispatches, each in a pass of its own, and the copy of what the last has left.
    fn passes(&self, count: usize) {
        let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        for _ in 0..count {
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            pass.set_pipeline(&self.pipeline);
            pass.set_bind_group(0, &self.group, &[]);
            let most = 65_535.min(self.groups);
            pass.dispatch_workgroups(most, self.groups.div_ceil(most), 1);
        }
        encoder.copy_buffer_to_buffer(&self.output, 0, &self.readback, 0, None);
        self.queue.submit([encoder.finish()]);
    }

    fn batch(&self, count: usize) {
        self.passes(count);
        let index = self.queue.submit([]);
        self.wait(index);
    }

    fn wait(&self, index: wgpu::SubmissionIndex) {
        let wait = wgpu::PollType::Wait { submission_index: Some(index), timeout: None };
        self.device.poll(wait).expect("the device ends");
    }
}

fn compile(device: &wgpu::Device, wgsl: &str) -> wgpu::ComputePipeline {
    let source = wgpu::ShaderSource::Wgsl(wgsl.into());
    let module = device.create_shader_module(wgpu::ShaderModuleDescriptor { label: None, source });
    device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: None,
        layout: None,
        module: &module,
        entry_point: Some("main"),
        compilation_options: wgpu::PipelineCompilationOptions::default(),
        cache: None,
    })
}

fn input(elements: usize) -> Vec<u8> {
    (0..elements as u32).flat_map(|i| (i * 2_654_435_761).to_le_bytes()).collect()
}

fn row(name: &str, ours: Duration, theirs: Duration, goal: f64) {
    let [ours, theirs] = [ours, theirs].map(|time| time.as_secs_f64() * 1e6);
    println!("  {name:<44} {ours:>12.1} {theirs:>12.1} {:>7.2} {goal:>7.2}", ours / theirs);
}

pub fn figures() {
    let devices = registered_devices().into_iter().filter(|(registration, _)| registration.id == vyre::wgpu::ID);
    for (_, listed) in devices {
        println!("\n{}: {}", listed.id, listed.name);
        println!("  {:<44} {:>12} {:>12} {:>7} {:>7}", "us", "vyre", "wgpu", "x", "goal");
        if let Err(error) = dispatches(&listed.id, &listed.name) {
            println!("  {error}");
        }
        floats(&listed.id);
    }
}

fn dispatches(id: &str, name: &str) -> Result<(), vyre::BackendError> {
    let program: Program = XOR.parse()?;
    let backend = Backend::open(id)?;
    let config = DispatchConfig::default();
    let xor = pipeline::compile(backend.clone().into(), &program, &config)?;
    for (elements, calls, goal) in [(64, CALLS, 1.15), (1 << 24, 1, 1.05)] {
        let Some(mut by_hand) = ByHand::new(name, elements) else {
            println!("  not found by hand");
            return Ok(());
        };
        let input = input(elements);
        let inputs: [&[u8]; 2] = [&input, &input];
        let mut outputs = Vec::new();
        let [ours, theirs] = interleaved([
            &mut || (0..calls).for_each(|_| xor.dispatch_borrowed_into(&inputs, &config, &mut outputs).expect("it runs")),
            &mut || (0..calls).for_each(|_| by_hand.dispatch()),
        ]);
        assert!(outputs[0] == by_hand.result, "both compute the same");
        let calls = calls as u32;
        row(&format!("xor of {elements} elements, with readback"), ours / calls, theirs / calls, goal);
    }
    resident(&backend, &program, name, 64, BATCH, 1.1)?;
    resident(&backend, &program, name, 1 << 24, 1, 1.05)?;
    first(&program, id, name)
}

/// Dispatches over data that stay on the device, in one submission.
fn resident(
    backend: &Backend,
    program: &Program,
    name: &str,
    elements: usize,
    count: usize,
    goal: f64,
) -> Result<(), vyre::BackendError> {
    let Some(by_hand) = ByHand::new(name, elements) else { return Ok(()) };
    let buffers = [(); 3].map(|()| backend.allocate_resident(4 * elements));
    let [a, b, out] = buffers;
    let (a, b, out) = (a?, b?, out?);
    let input = input(elements);
    backend.upload_resident(&a, &input)?;
    backend.upload_resident(&b, &input)?;
    let config = DispatchConfig::default();
    let bindings = || [&a, &b, &out].map(ResidentRange::from).to_vec();
    let mut steps: Vec<ResidentStep<'_>> =
        (0..count).map(|_| ResidentStep::Dispatch { program, config: &config, bindings: bindings() }).collect();
    // As by hand, where the copy is not mapped.
    steps.push(ResidentStep::Download(ResidentRange { resource: &out, offset: 0, length: Some(4) }));
    let [ours, theirs] = interleaved([
        &mut || drop(black_box(backend.submit_resident(&steps, &config).and_then(|pending| pending.wait()).expect("it runs"))),
        &mut || by_hand.batch(count),
    ]);
    row(&format!("{count} of {elements} elements on resident data"), ours, theirs, goal);
    for resource in [a, b, out] {
        backend.free_resident(resource)?;
    }
    Ok(())
}

/// A kernel that is compiled and run for the first time, against the same shader by hand. Every round has a kernel of its own.
fn first(program: &Program, id: &str, name: &str) -> Result<(), vyre::BackendError> {
    let Some((device, queue)) = device(name) else { return Ok(()) };
    let backend = Backend::open(id)?;
    let (mut ours, mut theirs) = (Duration::MAX, Duration::MAX);
    for round in 0..10u32 {
        let program: Program = XOR.replace("a[i] ^ b[i]", &format!("a[i] ^ b[i] ^ {}", round + 1)).parse()?;
        let start = Instant::now();
        program.validated().map_err(|report| vyre::BackendError::Rejected(report.clone()))?;
        let input = input(64);
        backend.dispatch_borrowed(&program, &[&input, &input], &DispatchConfig::default())?;
        ours = ours.min(start.elapsed());
        let kernel = program.validated().map_err(|report| vyre::BackendError::Rejected(report.clone()))?.kernel().clone();
        let shader = vyre::emit::Shader::of(&kernel, &vyre::emit::Target::default());
        let shader = shader.map_err(|error| vyre::BackendError::new(error.to_string()))?;
        // Another text for the same code, or the driver has it already.
        let wgsl = shader.wgsl.replace(&format!("{}u", round + 1), &format!("{}u", round + 1001));
        let start = Instant::now();
        let pipeline = compile(&device, &wgsl);
        let layout = pipeline.get_bind_group_layout(0);
        let buffers: Vec<_> = (0..shader.layout.writable.len() + 1)
            .map(|n| {
                let usage = if n == 0 { wgpu::BufferUsages::UNIFORM } else { wgpu::BufferUsages::STORAGE };
                device.create_buffer(&wgpu::BufferDescriptor { label: None, size: 256, usage, mapped_at_creation: false })
            })
            .collect();
        let bindings = [vyre::emit::Layout::BLOCK].into_iter().chain((0..).map(|n| vyre::emit::Layout::BUFFERS + n));
        let entries: Vec<_> = bindings
            .zip(&buffers)
            .map(|(binding, buffer)| wgpu::BindGroupEntry { binding, resource: buffer.as_entire_binding() })
            .collect();
        let group = device.create_bind_group(&wgpu::BindGroupDescriptor { label: None, layout: &layout, entries: &entries });
        let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        pass.set_pipeline(&pipeline);
        pass.set_bind_group(0, &group, &[]);
        pass.dispatch_workgroups(1, 1, 1);
        drop(pass);
        let index = queue.submit([encoder.finish()]);
        device.poll(wgpu::PollType::Wait { submission_index: Some(index), timeout: None }).expect("the device ends");
        theirs = theirs.min(start.elapsed());
    }
    black_box(program);
    row("first run of a kernel", ours, theirs, 1.2);
    Ok(())
}

/// Exact floats against plain WGSL, which is not exact.
fn floats(id: &str) {
    let probed = match vyre::wgpu::probe(id, Depth::Short, |_| {}) {
        Ok(probed) => probed,
        Err(error) => return println!("  {error}"),
    };
    println!("  probes at first open: {:.2} s (goal <= 0.5)", probed.took.as_secs_f64());
    println!("  {:<12} {:>10} {:<24} {:<24} {:>6}", "op", "WGSL, ns", "ieee", "canonical", "goal");
    for (op, goal) in [
        (LadderOp::Add, "2.5"),
        (LadderOp::Sub, "2.5"),
        (LadderOp::Mul, "2.5"),
        (LadderOp::Div, "6"),
        (LadderOp::Sqrt, "8"),
        (LadderOp::Fma, ""),
    ] {
        let time = |is_form: &dyn Fn(Form) -> bool| {
            let cost = probed.costs.iter().find(|cost| cost.op == op.op() && is_form(cost.form));
            cost.map_or(f64::NAN, |cost| cost.nanoseconds)
        };
        let plain = time(&|form| matches!(form, Form::Plain));
        let cell = |mode: FloatMode| {
            let exact = time(&|form| matches!(form, Form::Exact(of, _) if of == mode));
            format!("{} {:.1} x", probed.ladder.profile.rung(mode, op).name(), exact / plain)
        };
        let [ieee, canonical] = [FloatMode::Ieee, FloatMode::Canonical].map(cell);
        println!("  {:<12} {plain:>10.3} {ieee:<24} {canonical:<24} {goal:>6}", op.name());
    }
}
