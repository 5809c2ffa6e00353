//! What the driver layer costs where nothing is left to do but to find and to hand on.

use crate::interleaved;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;
use vyre::backend::private::Sealed;
use vyre::backend::registry::{acquire, wrap_grid_sync_split};
use vyre::device::{Binding, Call, CodeOptions, Deadline};
use vyre::ir::Program;
use vyre::launch::plan;
use vyre::pipeline::{self, PipelineCache, PipelineKey};
use vyre::specialization::SpecValue;
use vyre::{BackendError, DispatchConfig, OutputBuffers, VyreBackend, observability};

/// Calls in a round.
const CALLS: usize = 1000;

/// Does nothing, so that what is around it shows.
struct Nothing;

impl Sealed for Nothing {}

impl VyreBackend for Nothing {
    fn id(&self) -> &'static str {
        "nothing"
    }

    fn dispatch(&self, _: &Program, _: &[Vec<u8>], _: &DispatchConfig) -> Result<Vec<Vec<u8>>, BackendError> {
        Ok(Vec::new())
    }

    fn dispatch_borrowed_into(
        &self,
        _: &Program,
        inputs: &[&[u8]],
        _: &DispatchConfig,
        outputs: &mut OutputBuffers,
    ) -> Result<(), BackendError> {
        black_box((inputs, outputs));
        Ok(())
    }
}

const CONSTANTS: &str = "program scaled {
  workgroup 64
  buffer x: read f32 @0
  buffer out: output f32 @1
  const a: f32 = 1.0
  const b: u32 = 2
  const c: i32 = 3
  const d: bool = true

  out[gid.x] = select(d, x[gid.x] * a, f32(b) + f32(c))
}
";

fn many(mut call: impl FnMut()) -> impl FnMut() {
    move || (0..CALLS).for_each(|_| call())
}

pub fn figures() {
    println!("\n{:<62} {:>10} {:>10}", "driver, one thread", "ns/call", "goal");
    let row = |name: &str, time: Duration, goal: &str| {
        println!("{name:<62} {:>10.1} {goal:>10}", time.as_secs_f64() * 1e9 / CALLS as f64);
    };

    let plain = crate::kernels::hundred();
    let scaled = vyre::text::parse("scaled", CONSTANTS).expect("it parses");
    let mut config = DispatchConfig::default();
    for (name, value) in
        [("a", SpecValue::F32(0.5)), ("b", SpecValue::U32(7)), ("c", SpecValue::I32(-7)), ("d", SpecValue::Bool(false))]
    {
        config.specialization.insert(name, value);
    }
    let nothing = DispatchConfig::default();
    let bulk: Arc<dyn VyreBackend> = Arc::from(acquire("bulk").expect("it is built in"));
    let compile = |program: &Program, config: &DispatchConfig| {
        drop(black_box(pipeline::compile(bulk.clone(), program, config).expect("it compiles")));
    };
    let cache: PipelineCache<u32> = PipelineCache::new(1 << 20);
    let lookup = |key: &PipelineKey| {
        drop(black_box(cache.get_or_build(key, || Ok((Arc::new(1), 8))).expect("it is built")));
    };
    let key = PipelineKey::new(&*bulk, &plain, &nothing);
    let [found, compiled, specialized] = interleaved([
        &mut many(|| lookup(&key)),
        &mut many(|| compile(&plain, &nothing)),
        &mut many(|| compile(&scaled, &config)),
    ]);
    row("warm hit: lookup by a key that is there", found, "");
    row("warm hit: pipeline::compile on bulk, a program of 124 nodes", compiled, "<= 1000");
    row("warm hit: the same with values for four constants", specialized, "<= 1000");

    let counters = observability::of_backend("nothing");
    let input = [0u8; 256];
    let inputs: [&[u8]; 1] = [&input];
    let mut outputs = [const { Vec::new() }; 4];
    let direct = Nothing;
    let wrapped: Arc<dyn VyreBackend> = Arc::from(wrap_grid_sync_split(Box::new(Nothing)));
    let pipelines = [Arc::new(Nothing) as Arc<dyn VyreBackend>, wrapped.clone()]
        .map(|backend| pipeline::compile(backend, &plain, &nothing).expect("it compiles"));
    let [in_record, in_direct, in_wrapped, in_pipeline, in_both] = {
        let [one, two, three, four] = &mut outputs;
        interleaved([
            &mut many(|| counters.record(black_box(256), black_box(&[]), 0)),
            &mut many(|| direct.dispatch_borrowed_into(black_box(&plain), &inputs, &nothing, one).expect("it runs")),
            &mut many(|| wrapped.dispatch_borrowed_into(black_box(&plain), &inputs, &nothing, two).expect("it runs")),
            &mut many(|| pipelines[0].dispatch_borrowed_into(&inputs, black_box(&nothing), three).expect("it runs")),
            &mut many(|| pipelines[1].dispatch_borrowed_into(&inputs, black_box(&nothing), four).expect("it runs")),
        ])
    };
    row("telemetry: one dispatch recorded", in_record, "<= 20");
    row("a backend that does nothing", in_direct, "");
    row("the same behind the registry's wrapper", in_wrapped, "");
    row("the same behind a pass-through pipeline", in_pipeline, "");
    row("the same behind both", in_both, "");
    adapter(row);
    copies(row);
    large();
}

const XOR: &str = "program xor {
  workgroup 64
  buffer a: read u32 @0
  buffer b: read u32 @1
  buffer out: output u32 @2

  out[gid.x] = a[gid.x] ^ b[gid.x]
}
";

/// What the adapter adds to a device: a small dispatch into the caller's buffers, against the same call of the device itself.
fn adapter(row: impl Fn(&str, Duration, &str)) {
    let xor = vyre::text::parse("xor", XOR).expect("it parses");
    let nothing = DispatchConfig::default();
    let backend: Arc<dyn VyreBackend> = Arc::from(acquire("bulk").expect("it is built in"));
    let device = backend.device().expect("bulk is a device");
    let kernel = xor.validated().expect("it is valid").kernel();
    let code = device.compile(kernel, &CodeOptions::default()).expect("it compiles");
    let input = [7u8; 256];
    let launch = plan(&xor, &[256, 256], &nothing.launch()).expect("it fits");
    let raw = backend.compile_native(&xor, &nothing).expect("it compiles").expect("it is bulk's own");
    let pipeline = pipeline::compile(backend.clone(), &xor, &nothing).expect("it compiles");
    let (mut out, mut one, mut two, mut three) = ([0u8; 256], Vec::new(), Vec::new(), Vec::new());
    let [own, native, whole, looked_up] = interleaved([
        &mut many(|| {
            let mut bindings = [Binding::In(&input), Binding::In(&input), Binding::Out(&mut out)];
            let mut call = Call { code: &code, launch: &launch, groups: 0..1, zero_outputs: false, bindings: &mut bindings };
            device.run(black_box(&mut call), Deadline::NONE).expect("it runs");
        }),
        &mut many(|| raw.dispatch_borrowed_into(&[&input, &input], black_box(&nothing), &mut one).expect("it runs")),
        &mut many(|| pipeline.dispatch_borrowed_into(&[&input, &input], black_box(&nothing), &mut two).expect("it runs")),
        &mut many(|| backend.dispatch_borrowed_into(&xor, &[&input, &input], black_box(&nothing), &mut three).expect("it runs")),
    ]);
    row("bulk, 64 elements: the device's own call", own, "");
    row("bulk, 64 elements: what the adapter adds", native.saturating_sub(own), "<= 300");
    row("bulk, 64 elements: what a pipeline adds", whole.saturating_sub(own), "<= 300");
    row("bulk, 64 elements: what a dispatch without one adds", looked_up.saturating_sub(own), "");
}

/// Small copies to and from the device.
fn copies(row: impl Fn(&str, Duration, &str)) {
    let backend = acquire("bulk").expect("it is built in");
    let handle = backend.allocate_resident(256).expect("there is room");
    let [up, down] = interleaved([
        &mut many(|| backend.upload_resident(black_box(&handle), &[7; 256]).expect("it is there")),
        &mut many(|| drop(black_box(backend.download_resident(black_box(&handle)).expect("it is there")))),
    ]);
    row("bulk: upload of 256 bytes", up, "");
    row("bulk: download of 256 bytes", down, "");
}

/// 16 M elements into the caller's buffers, against the device's own call and a plain loop, each one pass over the outputs.
fn large() {
    const ELEMENTS: usize = 16 << 20;
    let xor = vyre::text::parse("xor", XOR).expect("it parses");
    let nothing = DispatchConfig::default();
    let backend: Arc<dyn VyreBackend> = Arc::from(acquire("bulk").expect("it is built in"));
    let device = backend.device().expect("bulk is a device");
    let code = device.compile(xor.validated().expect("it is valid").kernel(), &CodeOptions::default()).expect("it compiles");
    let (a, b) = (vec![7u8; 4 * ELEMENTS], vec![9u8; 4 * ELEMENTS]);
    let launch = plan(&xor, &[a.len() as u64, b.len() as u64], &nothing.launch()).expect("it fits");
    let pipeline = pipeline::compile(backend, &xor, &nothing).expect("it compiles");
    let (mut plain, mut out, mut outputs) = (vec![0u8; a.len()], vec![0u8; a.len()], vec![vec![0u8; a.len()]]);
    let [native, own, whole] = interleaved([
        &mut || {
            plain.iter_mut().zip(a.iter().zip(&b)).for_each(|(out, (a, b))| *out = a ^ b);
            black_box(&plain);
        },
        &mut || {
            let mut bindings = [Binding::In(&a), Binding::In(&b), Binding::Out(&mut out)];
            let groups = 0..u64::from(launch.groups());
            let mut call = Call { code: &code, launch: &launch, groups, zero_outputs: false, bindings: &mut bindings };
            device.run(black_box(&mut call), Deadline::NONE).expect("it runs");
        },
        &mut || pipeline.dispatch_borrowed_into(&[&a, &b], black_box(&nothing), &mut outputs).expect("it runs"),
    ]);
    assert!(outputs[0] == plain && out == plain, "xor is wrong");
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    println!("\n{:<62} {:>10} {:>10}", "xor of 16 M elements into the caller's buffers", "ms", "x device");
    for (name, time) in
        [("a loop in Rust", native), ("bulk, the device's own call, no zero fill", own), ("bulk, a pipeline", whole)]
    {
        println!("{name:<62} {:>10.1} {:>10.2}", ms(time), time.as_secs_f64() / own.as_secs_f64());
    }
}
