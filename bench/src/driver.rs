//! What the driver layer costs where nothing is left to do but to find and to hand on.

use crate::interleaved;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;
use vyre::backend::private::Sealed;
use vyre::backend::registry::{acquire, wrap_grid_sync_split};
use vyre::ir::Program;
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
}
