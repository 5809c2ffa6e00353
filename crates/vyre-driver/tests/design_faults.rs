//! The six faults of the design that this crate's surface comes from, each as a test that fails where the fault is back.
//!
//! The parts have tests of their own beside this file: keys and caches in `cache.rs`, the split in `grid_sync.rs`, handles in
//! `resident.rs`, faults on demand in `inject.rs`.

mod support;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use support::device::{Plain, device, host};
use support::segments::{Segments, agree, agree_words, grid_sync, program, unwords, words};
use vyre_driver::backend::private::Sealed;
use vyre_driver::backend::registry::wrap_grid_sync_split;
use vyre_driver::backend::{PendingDispatch, ReadyPending, ResidentStep};
use vyre_driver::device::inject::{Fault, FaultPlan, FaultyDevice, Method};
use vyre_driver::device::{Device, backend};
use vyre_driver::grid_sync::{contains_grid_sync, dispatch_with_grid_sync_split, split};
use vyre_driver::pipeline::{self, PipelineCache, PipelineCacheSnapshot, PipelineKey};
use vyre_driver::specialization::{SpecMap, SpecValue};
use vyre_driver::{
    BackendError, CompiledPipeline, Dispatch, DispatchConfig, OutputBuffers, ResidentError, ResidentRange, Resource,
    TimedDispatchResult, VyreBackend,
};
use vyre_foundation::ir::{BufferDecl, DataType, Expr, Node, OpId, Parts, Program};

// ---- 1: a hand-picked list of fields was the key, and different programs shared a pipeline ----

/// A backend that keeps what it compiled. All of them share one cache, which no device's would: only the key keeps them apart.
struct Caching {
    id: &'static str,
    version: &'static str,
    device: &'static str,
    cache: Arc<PipelineCache<Stamp>>,
}

/// A pipeline whose output says what it was compiled from.
struct Stamp(Vec<Vec<u8>>);

fn stamp(backend: &Caching, program: &Program, config: &DispatchConfig) -> Vec<Vec<u8>> {
    let code = (config.workgroup_override, config.ulp_budget, &config.profile, &config.specialization);
    let of = (backend.id, backend.version, backend.device);
    vec![format!("{of:?}").into(), program.wire_body().to_vec(), format!("{code:?}").into()]
}

impl Sealed for Caching {}

impl VyreBackend for Caching {
    fn id(&self) -> &'static str {
        self.id
    }

    fn version(&self) -> &'static str {
        self.version
    }

    fn device_fingerprint(&self) -> String {
        self.device.into()
    }

    fn dispatch(&self, program: &Program, _: &[Vec<u8>], config: &DispatchConfig) -> Result<Vec<Vec<u8>>, BackendError> {
        Ok(stamp(self, program, config))
    }

    fn compile_native(
        &self,
        program: &Program,
        config: &DispatchConfig,
    ) -> Result<Option<Arc<dyn CompiledPipeline>>, BackendError> {
        let key = PipelineKey::new(self, program, config);
        let made = self.cache.get_or_build(&key, || Ok((Arc::new(Stamp(stamp(self, program, config))), 1)))?;
        Ok(Some(made))
    }

    fn pipeline_cache_snapshot(&self) -> Option<PipelineCacheSnapshot> {
        Some(self.cache.snapshot())
    }
}

impl Sealed for Stamp {}

impl CompiledPipeline for Stamp {
    fn id(&self) -> &str {
        "stamp"
    }

    fn dispatch(&self, _: &[Vec<u8>], _: &DispatchConfig) -> Result<Vec<Vec<u8>>, BackendError> {
        Ok(self.0.clone())
    }
}

/// Every program of these is valid, and differs from the first in one thing.
fn programs_that_differ_in_one_thing() -> Vec<Program> {
    const BASE: &str = "program p {
      workgroup 4 1 1
      floats ieee
      subgroup 4
      const k: u32 = 3
      const t: dtype = f32
      buffer a: read f32 @0
      buffer spare: read u32[8] @1
      buffer out: output f32 @2
      buffer typed: read t @3
      buffer tile: workgroup f32[16]

      let x = a[gid.x]
      let y = x - 1.0
      tile[lid.x] = y
      out[gid.x] = x * y + f32(k)
    }";
    const CHANGES: &[(&str, &str)] = &[
        ("program p", "program q"),
        ("workgroup 4 1 1", "workgroup 8 1 1"),
        ("workgroup 4 1 1", "workgroup 4 2 1"),
        ("workgroup 4 1 1", "workgroup 4 1 2"),
        ("workgroup 4 1 1", "workgroup k 4 1"),
        ("floats ieee", "floats canonical"),
        ("subgroup 4", ""),
        ("k: u32 = 3", "k: u32 = 4"),
        ("k: u32 = 3", "k: i32 = 3i"),
        ("const k", "const l: u32 = 3\n const k"),
        ("t: dtype = f32", "t: dtype = f16"),
        ("spare: read", "spar: read"),
        ("spare: read", "spare: read_write"),
        ("spare: read", "spare: uniform"),
        ("spare: read", "spare: output"),
        ("u32[8] @1", "i32[8] @1"),
        ("u32[8] @1", "vec2<u32>[8] @1"),
        ("u32[8] @1", "u32[9] @1"),
        ("u32[8] @1", "u32 @1"),
        ("u32[8] @1", "u32[8] @7"),
        ("read t @3", "read f32 @3"),
        ("f32[16]", "f32[17]"),
        (
            "buffer spare: read u32[8] @1\n      buffer out: output f32 @2",
            "buffer out: output f32 @2\n buffer spare: read u32[8] @1",
        ),
        ("x - 1.0", "x - 2.0"),
        ("x - 1.0", "x - 0.0"),
        ("x - 1.0", "x - -0.0"),
        ("x - 1.0", "x - nan"),
        ("x - 1.0", "x + 1.0"),
        ("x - 1.0", "1.0 - x"),
        ("let y = x - 1.0", "let y = x - 1.0\n y = y"),
        ("a[gid.x]", "a[gid.y]"),
        ("a[gid.x]", "a[lid.x]"),
        ("a[gid.x]", "typed[gid.x]"),
        ("x * y + f32(k)", "f32(k) + x * y"),
        ("x * y + f32(k)", "fma(x, y, f32(k))"),
        ("x * y + f32(k)", "x * y + f32(len(a))"),
        ("x * y + f32(k)", "x * y + f32(len(out))"),
        ("tile[lid.x] = y\n      out[gid.x] = x * y + f32(k)", "out[gid.x] = x * y + f32(k)\n tile[lid.x] = y"),
        ("tile[lid.x] = y", "{ tile[lid.x] = y }"),
        ("tile[lid.x] = y", "region \"r\" { tile[lid.x] = y }"),
        ("tile[lid.x] = y", "region \"s\" { tile[lid.x] = y }"),
        ("tile[lid.x] = y", "tile[lid.x] = y\n barrier"),
        ("tile[lid.x] = y", "tile[lid.x] = y\n if x < y { trap(1) }"),
        ("tile[lid.x] = y", "tile[lid.x] = y\n if x < y { trap(2) }"),
        ("tile[lid.x] = y", "tile[lid.x] = y\n if x < y { return }"),
        ("let y", "let z"),
    ];
    let base = program(BASE);
    // A new part of programs needs changes of its own above.
    let Parts { buffers: _, consts: _, workgroup: _, floats: _, subgroup: _, body: _ } = base.parts();
    let mut all = vec![base];
    for (from, to) in CHANGES {
        assert!(BASE.contains(from), "{from}");
        let changed = match *from {
            "let y" => BASE.replace("let y", "let z").replace("= y", "= z").replace("* y", "* z"),
            _ => BASE.replace(from, to),
        };
        all.push(program(&changed));
        all.last().unwrap().validated().unwrap_or_else(|report| panic!("{from} to {to}: {report}"));
    }
    all
}

/// Configs that change code, and configs that do not.
fn configs_that_differ_in_one_thing() -> (Vec<DispatchConfig>, Vec<DispatchConfig>) {
    let with = |change: fn(&mut DispatchConfig)| {
        let mut config = DispatchConfig::default();
        change(&mut config);
        config
    };
    // A new field belongs into one of the lists below.
    let DispatchConfig {
        grid_override: _,
        workgroup_override: _,
        output_counts: _,
        max_output_bytes: _,
        specialization: _,
        ulp_budget: _,
        timeout: _,
        require_deterministic: _,
        profile: _,
        label: _,
    } = DispatchConfig::default();
    let code = vec![
        with(|_| {}),
        with(|config| config.workgroup_override = Some([2, 1, 1])),
        with(|config| config.workgroup_override = Some([1, 2, 1])),
        with(|config| config.workgroup_override = Some([1, 1, 2])),
        with(|config| config.ulp_budget = Some(0)),
        with(|config| config.ulp_budget = Some(1)),
        with(|config| config.profile = Some(String::new())),
        with(|config| config.profile = Some("fast".into())),
        with(|config| config.specialization.insert("k", SpecValue::U32(4))),
        with(|config| config.specialization.insert("k", SpecValue::U32(5))),
        with(|config| config.specialization.insert("f", SpecValue::F32(0.0))),
        with(|config| config.specialization.insert("f", SpecValue::F32(-0.0))),
        with(|config| config.specialization.insert("f", SpecValue::F32(f32::NAN))),
        with(|config| config.specialization.insert("i", SpecValue::I32(-1))),
        with(|config| config.specialization.insert("b", SpecValue::Bool(true))),
        with(|config| config.specialization.insert("t", SpecValue::DType(DataType::F16))),
        with(|config| config.specialization.insert("t", SpecValue::DType(DataType::BF16))),
        with(|config| {
            config.specialization.insert("k", SpecValue::U32(4));
            config.specialization.insert("b", SpecValue::Bool(true));
        }),
    ];
    let other = vec![
        with(|config| config.grid_override = Some([1, 1, 1])),
        with(|config| config.output_counts = [("out".to_string(), 7)].into()),
        with(|config| config.max_output_bytes = Some(1 << 20)),
        with(|config| config.timeout = Some(Duration::from_secs(7))),
        with(|config| config.require_deterministic = Some(false)),
        with(|config| config.label = Some("label".into())),
    ];
    (code, other)
}

#[test]
fn fault_1_cache_keys_tell_apart_programs_specializations_devices_and_configs_that_differ_in_any_one_thing() {
    let cache = Arc::new(PipelineCache::new(u64::MAX));
    let on = |id, version, device| Arc::new(Caching { id, version, device, cache: cache.clone() });
    let backends = [
        on("b", "1", "d"),
        on("c", "1", "d"),
        on("b", "2", "d"),
        on("b", "1", "e"),
        // The same text when put one behind the other.
        on("b 1", "2", "d"),
        on("b", "1 2", "d"),
        on("b", "1", "d 2"),
    ];
    let configured = program(
        "program c {
          workgroup 2
          const k: u32 = 3
          const f: f32 = 1.0
          const i: i32 = 1i
          const b: bool = false
          const t: dtype = f32
          buffer a: read t @0
          buffer out: output f32 @1
          out[gid.x] = a[gid.x] * f + f32(k) + f32(i) + f32(u32(b))
        }",
    );
    let (code, other) = configs_that_differ_in_one_thing();
    let nothing = DispatchConfig::default();
    let mut all: Vec<(&Arc<Caching>, Program, DispatchConfig)> = Vec::new();
    all.extend(programs_that_differ_in_one_thing().into_iter().map(|program| (&backends[0], program, nothing.clone())));
    all.extend(code.into_iter().map(|config| (&backends[0], configured.clone(), config)));
    all.extend(backends[1..].iter().map(|backend| (backend, configured.clone(), nothing.clone())));
    let pipelines = || -> Vec<Vec<Vec<u8>>> {
        let compiled = all.iter().map(|(backend, program, config)| {
            let built = pipeline::compile(Arc::clone(*backend) as Arc<dyn VyreBackend>, program, config);
            built.and_then(|pipeline| pipeline.dispatch(&[], &nothing)).unwrap_or_else(|error| panic!("{error}\n{program}"))
        });
        compiled.collect()
    };
    let expected: Vec<Vec<Vec<u8>>> = all
        .iter()
        .map(|(backend, program, config)| {
            let specialized = config.specialization.apply(program).unwrap();
            stamp(backend, &specialized, &DispatchConfig { specialization: SpecMap::new(), ..config.clone() })
        })
        .collect();
    // Two of the programs declare their constants in another way and are the same code once these are replaced.
    let different = expected.iter().collect::<HashSet<_>>().len();
    assert_eq!(different + 2, all.len());
    let mut calls = 0;
    for round in 0..2 {
        for (((_, program, config), found), expected) in all.iter().zip(pipelines()).zip(&expected) {
            assert_eq!(&found, expected, "round {round}: another pipeline ran for {config:?}\n{program}");
        }
        calls += all.len();
        let seen = PipelineCacheSnapshot { hits: (calls - different) as u64, misses: different as u64 };
        assert_eq!(cache.snapshot(), seen, "what is the same is compiled once");
    }
    // What does not change code does not compile again.
    for config in &other {
        pipeline::compile(backends[0].clone(), &configured, config).unwrap();
        assert_eq!(cache.snapshot().misses, different as u64, "{config:?}");
    }
    // Values that were not put in yet are part of the key too, for backends that are asked directly.
    let keys: Vec<PipelineKey> =
        all.iter().map(|(backend, program, config)| PipelineKey::new(&***backend, program, config)).collect();
    assert_eq!(keys.iter().collect::<HashSet<_>>().len(), keys.len());
    assert_eq!(keys.iter().map(PipelineKey::to_bytes).collect::<HashSet<_>>().len(), keys.len());
    assert_eq!(keys.iter().map(PipelineKey::to_hex).collect::<HashSet<_>>().len(), keys.len());
    // Pass-through pipelines are never kept: each has its own id, and the backend is asked at every dispatch.
    let plain: Arc<Probe> = Arc::default();
    for _ in 0..2 {
        let pipeline = pipeline::compile(plain.clone(), &configured, &nothing).unwrap();
        pipeline.dispatch(&[], &nothing).unwrap();
    }
    assert_eq!(plain.count(Called::compile_native), 2);
    assert_eq!(plain.count(Called::dispatch), 2);
}

// ---- 2: the split computed `let`s again, lost stores to outputs, and overflowed the stack ----

fn lets_are_not_computed_again_after_their_memory_changed() {
    let text = "program p {
      workgroup 2
      buffer state: read_write u32[4] @0
      buffer out: output u32[4] @1
      let mine = state[gid.x]
      let old = atomic.add(state, gid.x, 100)
      barrier.grid
      state[gid.x] = 7
      barrier.grid
      out[gid.x] = mine * 1000 + old
    }";
    let outputs = agree(&program(text), &[&words([1, 2, 3, 4])], &DispatchConfig::default()).unwrap();
    assert_eq!(unwords(&outputs[1]), [1001, 2002, 3003, 4004]);
}

fn stores_to_outputs_before_a_barrier_are_kept() {
    let text = "program p {
      workgroup 2
      buffer early: output u32[4] @0
      buffer both: output u32[4] @1
      buffer late: output u32[4] @2
      buffer never: output u32[4] @3
      early[gid.x] = gid.x + 1
      both[gid.x] = gid.x + 10
      barrier.grid
      both[gid.x] = both[gid.x] * 2
      barrier.grid
      late[gid.x] = early[3 - gid.x] + both[gid.x] + never[gid.x]
    }";
    let outputs = agree_words(text, &DispatchConfig::default());
    assert_eq!(outputs, [vec![1, 2, 3, 4], vec![20, 22, 24, 26], vec![24, 25, 26, 27], vec![0; 4]]);
}

fn deep_nesting_neither_overflows_nor_is_misjudged() {
    // 1. Far too deep: refused, whatever is inside.
    let nested =
        |levels: usize, inner: Vec<Node>, wrap: fn(Vec<Node>) -> Node| (0..levels).fold(inner, |nodes, _| vec![wrap(nodes)]);
    let buffers = || vec![BufferDecl::output("out", 0, DataType::U32).with_count(2)];
    let inner = || vec![grid_sync(), Node::store("out", Expr::gid_x(), Expr::u32(1))];
    let wrapped = |nodes| Program::wrapped(buffers(), [1, 1, 1], nodes);
    let if_true = |nodes| Node::if_then(Expr::bool(true), nodes);
    for deep in [wrapped(nested(100_000, inner(), Node::block)), wrapped(nested(100_000, inner(), if_true))] {
        assert!(contains_grid_sync(&deep));
        assert!(matches!(split(&deep), Err(BackendError::Rejected(_))));
    }
    // 2. As deep as can be: a value crosses, and its scopes are dissolved.
    let crossing = vec![
        Node::let_bind("x", Expr::load("out", Expr::gid_x())),
        grid_sync(),
        Node::store("out", Expr::gid_x(), Expr::var("x")),
    ];
    let deepest = wrapped(nested(252, crossing, Node::block));
    assert_eq!(agree(&deepest, &[], &DispatchConfig::default()), Ok(vec![vec![0; 8]]));
    // 3. Traps in `if`s as deep as can be recorded, and one deeper.
    let trap = |levels| {
        let mut nodes = nested(levels, vec![Node::trap(9)], if_true);
        nodes.extend(inner());
        wrapped(nodes)
    };
    assert_eq!(agree(&trap(253), &[], &DispatchConfig::default()), Err(BackendError::Trap { tag: 9, invocation: [0, 0, 0] }));
    let too_deep = trap(254);
    assert!(too_deep.validated().is_ok());
    let backend = Segments::default();
    let refused = dispatch_with_grid_sync_split(&backend, &too_deep, &[], &DispatchConfig::default());
    assert!(matches!(&refused, Err(BackendError::InvalidProgram { fix }) if fix.contains("nested too deep")), "{refused:?}");
    assert_eq!(backend.count(), 0);
}

#[test]
fn fault_2_grid_sync_split_keeps_lets_and_stores_and_bears_any_nesting() {
    lets_are_not_computed_again_after_their_memory_changed();
    stores_to_outputs_before_a_barrier_are_kept();
    deep_nesting_neither_overflows_nor_is_misjudged();
}

// ---- 3: wrappers forwarded some methods and silently lost the rest ----

/// An enum of names of methods, and all of them. The probes below must have every method (clippy sees to it), name each here to
/// record it, and whoever calls them must match all names: a method that is new in the trait cannot be left out of the test.
macro_rules! methods {
    ($called:ident: $($name:ident)*) => {
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        #[expect(non_camel_case_types, reason = "they are the names of methods")]
        enum $called { $($name),* }

        impl $called {
            const ALL: &[$called] = &[$($called::$name),*];
        }
    };
}

methods! { Called:
    id version device_fingerprint device_name device
    dispatch dispatch_borrowed dispatch_borrowed_into dispatch_borrowed_timed dispatch_async dispatch_borrowed_async
    compile_native pipeline_cache_snapshot
    allocate_resident upload_resident upload_resident_many upload_resident_at upload_resident_at_many
    download_resident download_resident_range download_resident_ranges free_resident resident_size copy_resident
    submit_resident dispatch_resident_timed
    supported_ops supports_subgroup_ops supports_f16 supports_bf16 supports_f64 supports_tensor_cores supports_async_compute
    supports_indirect_dispatch supports_speculation supports_persistent_thread_dispatch supports_grid_sync
    allows_host_grid_sync_split is_distributed
    max_workgroup_size max_compute_workgroups_per_dimension max_compute_invocations_per_workgroup subgroup_size
    max_storage_buffer_bytes
    prepare flush shutdown device_lost try_recover backend_metric_snapshot
}

methods! { PipelineCalled:
    id dispatch dispatch_borrowed dispatch_borrowed_into dispatch_borrowed_timed dispatch_borrowed_async
    dispatch_borrowed_batched dispatch_borrowed_batched_into dispatch_persistent_handles dispatch_persistent_handles_into
}

/// What a probe was called with.
#[derive(Clone, Debug)]
struct Call {
    method: Called,
    /// Of calls that have them.
    program: Option<Program>,
    config: Option<DispatchConfig>,
}

/// Records every call, and answers each as no default of the trait does.
#[derive(Default)]
struct Probe {
    calls: Mutex<Vec<Call>>,
    /// The pipelines that it compiles, if it does.
    pipeline: Option<Arc<PipelineProbe>>,
    /// Whether grid barriers are split on it.
    splits: bool,
}

impl Probe {
    fn saw(&self, method: Called) {
        self.calls.lock().unwrap().push(Call { method, program: None, config: None });
    }

    fn ran(&self, method: Called, program: &Program, config: &DispatchConfig) {
        self.calls.lock().unwrap().push(Call { method, program: Some(program.clone()), config: Some(config.clone()) });
    }

    fn take(&self) -> Vec<Call> {
        std::mem::take(&mut *self.calls.lock().unwrap())
    }

    fn count(&self, method: Called) -> usize {
        self.calls.lock().unwrap().iter().filter(|call| call.method == method).count()
    }

    /// The calls that got a program.
    fn runs(&self) -> Vec<(Called, Program, DispatchConfig)> {
        self.take().into_iter().filter_map(|call| Some((call.method, call.program?, call.config?))).collect()
    }
}

/// Bytes for every output, as long as the launch wants them.
fn zeros(program: &Program, inputs: &[&[u8]], config: &DispatchConfig, mark: u8) -> OutputBuffers {
    let sizes: Vec<u64> = inputs.iter().map(|input| input.len() as u64).collect();
    match vyre_foundation::launch::plan(program, &sizes, &config.launch()) {
        Ok(launch) => program.interface().outputs.iter().map(|i| vec![0; launch.bytes[*i] as usize]).collect(),
        Err(_) => vec![vec![mark]],
    }
}

fn slices(inputs: &[Vec<u8>]) -> Vec<&[u8]> {
    inputs.iter().map(Vec::as_slice).collect()
}

impl Sealed for Probe {}

#[deny(clippy::missing_trait_methods)]
impl VyreBackend for Probe {
    fn id(&self) -> &'static str {
        self.saw(Called::id);
        "probe"
    }

    fn version(&self) -> &'static str {
        self.saw(Called::version);
        "probe version"
    }

    fn device_fingerprint(&self) -> String {
        self.saw(Called::device_fingerprint);
        "probe fingerprint".into()
    }

    fn device_name(&self) -> String {
        self.saw(Called::device_name);
        "probe device".into()
    }

    fn device(&self) -> Option<Arc<dyn Device>> {
        self.saw(Called::device);
        Some(Arc::new(host()))
    }

    fn dispatch(&self, program: &Program, inputs: &[Vec<u8>], config: &DispatchConfig) -> Result<Vec<Vec<u8>>, BackendError> {
        self.ran(Called::dispatch, program, config);
        Ok(zeros(program, &slices(inputs), config, 1))
    }

    fn dispatch_borrowed(
        &self,
        program: &Program,
        inputs: &[&[u8]],
        config: &DispatchConfig,
    ) -> Result<Vec<Vec<u8>>, BackendError> {
        self.ran(Called::dispatch_borrowed, program, config);
        Ok(zeros(program, inputs, config, 2))
    }

    fn dispatch_borrowed_into(
        &self,
        program: &Program,
        inputs: &[&[u8]],
        config: &DispatchConfig,
        outputs: &mut OutputBuffers,
    ) -> Result<(), BackendError> {
        self.ran(Called::dispatch_borrowed_into, program, config);
        *outputs = zeros(program, inputs, config, 3);
        Ok(())
    }

    fn dispatch_borrowed_timed(
        &self,
        program: &Program,
        inputs: &[&[u8]],
        config: &DispatchConfig,
    ) -> Result<TimedDispatchResult, BackendError> {
        self.ran(Called::dispatch_borrowed_timed, program, config);
        Ok(TimedDispatchResult { outputs: zeros(program, inputs, config, 4), wall_ns: 40, device_ns: Some(41), ran: None })
    }

    fn dispatch_async(
        &self,
        program: &Program,
        inputs: &[Vec<u8>],
        config: &DispatchConfig,
    ) -> Result<Box<dyn PendingDispatch>, BackendError> {
        self.ran(Called::dispatch_async, program, config);
        Ok(Box::new(ReadyPending { outputs: zeros(program, &slices(inputs), config, 5) }))
    }

    fn dispatch_borrowed_async(
        &self,
        program: &Program,
        inputs: &[&[u8]],
        config: &DispatchConfig,
    ) -> Result<Box<dyn PendingDispatch>, BackendError> {
        self.ran(Called::dispatch_borrowed_async, program, config);
        Ok(Box::new(ReadyPending { outputs: zeros(program, inputs, config, 6) }))
    }

    fn compile_native(
        &self,
        program: &Program,
        config: &DispatchConfig,
    ) -> Result<Option<Arc<dyn CompiledPipeline>>, BackendError> {
        self.ran(Called::compile_native, program, config);
        Ok(self.pipeline.clone().map(|pipeline| pipeline as Arc<dyn CompiledPipeline>))
    }

    fn pipeline_cache_snapshot(&self) -> Option<PipelineCacheSnapshot> {
        self.saw(Called::pipeline_cache_snapshot);
        Some(PipelineCacheSnapshot { hits: 50, misses: 51 })
    }

    fn allocate_resident(&self, byte_len: usize) -> Result<Resource, BackendError> {
        self.saw(Called::allocate_resident);
        Ok(Resource::Resident(1000 + byte_len as u64))
    }

    fn upload_resident(&self, resource: &Resource, bytes: &[u8]) -> Result<(), BackendError> {
        self.saw(Called::upload_resident);
        Err(BackendError::new(format!("upload_resident {resource:?} {bytes:?}")))
    }

    fn upload_resident_many(&self, uploads: &[(&Resource, &[u8])]) -> Result<(), BackendError> {
        self.saw(Called::upload_resident_many);
        Err(BackendError::new(format!("upload_resident_many {uploads:?}")))
    }

    fn upload_resident_at(&self, resource: &Resource, dst_offset_bytes: usize, bytes: &[u8]) -> Result<(), BackendError> {
        self.saw(Called::upload_resident_at);
        Err(BackendError::new(format!("upload_resident_at {resource:?} {dst_offset_bytes} {bytes:?}")))
    }

    fn upload_resident_at_many(&self, uploads: &[(&Resource, usize, &[u8])]) -> Result<(), BackendError> {
        self.saw(Called::upload_resident_at_many);
        Err(BackendError::new(format!("upload_resident_at_many {uploads:?}")))
    }

    fn download_resident(&self, resource: &Resource) -> Result<Vec<u8>, BackendError> {
        self.saw(Called::download_resident);
        Ok(format!("{resource:?}").into())
    }

    fn download_resident_range(&self, resource: &Resource, offset: usize, length: usize) -> Result<Vec<u8>, BackendError> {
        self.saw(Called::download_resident_range);
        Ok(format!("{resource:?} {offset} {length}").into())
    }

    fn download_resident_ranges(&self, ranges: &[(&Resource, usize, usize)]) -> Result<Vec<Vec<u8>>, BackendError> {
        self.saw(Called::download_resident_ranges);
        Ok(vec![format!("{ranges:?}").into()])
    }

    fn free_resident(&self, resource: Resource) -> Result<(), BackendError> {
        self.saw(Called::free_resident);
        Err(BackendError::new(format!("free_resident {resource:?}")))
    }

    fn resident_size(&self, resource: &Resource) -> Result<u64, BackendError> {
        self.saw(Called::resident_size);
        Err(BackendError::new(format!("resident_size {resource:?}")))
    }

    fn copy_resident(
        &self,
        from: &Resource,
        from_offset: usize,
        to: &Resource,
        to_offset: usize,
        length: usize,
    ) -> Result<(), BackendError> {
        self.saw(Called::copy_resident);
        Err(BackendError::new(format!("copy_resident {from:?} {from_offset} {to:?} {to_offset} {length}")))
    }

    fn submit_resident(
        &self,
        steps: &[ResidentStep<'_>],
        config: &DispatchConfig,
    ) -> Result<Box<dyn PendingDispatch>, BackendError> {
        self.saw(Called::submit_resident);
        Ok(Box::new(ReadyPending { outputs: vec![format!("{steps:?} {config:?}").into()] }))
    }

    fn dispatch_resident_timed(
        &self,
        program: &Program,
        resources: &[Resource],
        config: &DispatchConfig,
    ) -> Result<TimedDispatchResult, BackendError> {
        self.ran(Called::dispatch_resident_timed, program, config);
        let written = program.interface().outputs.len();
        let borrowed = resources.iter().filter(|resource| matches!(resource, Resource::Borrowed(_))).count();
        Ok(TimedDispatchResult { outputs: vec![vec![7; 4]; written.min(borrowed)], wall_ns: 70, device_ns: Some(71), ran: None })
    }

    fn supported_ops(&self) -> &HashSet<OpId> {
        self.saw(Called::supported_ops);
        static NONE: OnceLock<HashSet<OpId>> = OnceLock::new();
        NONE.get_or_init(HashSet::new)
    }

    fn supports_subgroup_ops(&self) -> bool {
        self.saw(Called::supports_subgroup_ops);
        false
    }

    fn supports_f16(&self) -> bool {
        self.saw(Called::supports_f16);
        false
    }

    fn supports_bf16(&self) -> bool {
        self.saw(Called::supports_bf16);
        false
    }

    fn supports_f64(&self) -> bool {
        self.saw(Called::supports_f64);
        false
    }

    fn supports_tensor_cores(&self) -> bool {
        self.saw(Called::supports_tensor_cores);
        true
    }

    fn supports_async_compute(&self) -> bool {
        self.saw(Called::supports_async_compute);
        true
    }

    fn supports_indirect_dispatch(&self) -> bool {
        self.saw(Called::supports_indirect_dispatch);
        true
    }

    fn supports_speculation(&self) -> bool {
        self.saw(Called::supports_speculation);
        true
    }

    fn supports_persistent_thread_dispatch(&self) -> bool {
        self.saw(Called::supports_persistent_thread_dispatch);
        true
    }

    fn supports_grid_sync(&self) -> bool {
        self.saw(Called::supports_grid_sync);
        !self.splits
    }

    fn allows_host_grid_sync_split(&self) -> bool {
        self.saw(Called::allows_host_grid_sync_split);
        self.splits
    }

    fn is_distributed(&self) -> bool {
        self.saw(Called::is_distributed);
        true
    }

    fn max_workgroup_size(&self) -> [u32; 3] {
        self.saw(Called::max_workgroup_size);
        [60, 61, 62]
    }

    fn max_compute_workgroups_per_dimension(&self) -> u32 {
        self.saw(Called::max_compute_workgroups_per_dimension);
        63
    }

    fn max_compute_invocations_per_workgroup(&self) -> u32 {
        self.saw(Called::max_compute_invocations_per_workgroup);
        64
    }

    fn subgroup_size(&self) -> Option<u32> {
        self.saw(Called::subgroup_size);
        Some(65)
    }

    fn max_storage_buffer_bytes(&self) -> u64 {
        self.saw(Called::max_storage_buffer_bytes);
        6666
    }

    fn prepare(&self) -> Result<(), BackendError> {
        self.saw(Called::prepare);
        Err(BackendError::new("prepare"))
    }

    fn flush(&self) -> Result<(), BackendError> {
        self.saw(Called::flush);
        Err(BackendError::new("flush"))
    }

    fn shutdown(&self) -> Result<(), BackendError> {
        self.saw(Called::shutdown);
        Err(BackendError::new("shutdown"))
    }

    fn device_lost(&self) -> bool {
        self.saw(Called::device_lost);
        true
    }

    fn try_recover(&self) -> Result<(), BackendError> {
        self.saw(Called::try_recover);
        Ok(())
    }

    fn backend_metric_snapshot(&self) -> Vec<(&'static str, u64)> {
        self.saw(Called::backend_metric_snapshot);
        vec![("metric", 80)]
    }
}

/// A probe that the test keeps while a wrapper has it.
struct Shared(Arc<Probe>);

impl Sealed for Shared {}

macro_rules! forward {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        #[deny(clippy::missing_trait_methods)]
        impl VyreBackend for Shared {
            $(fn $name(&self, $($argument: $type),*) -> $result {
                self.0.$name($($argument),*)
            })*
        }
    };
}

forward! {
    id() -> &'static str;
    version() -> &'static str;
    device_fingerprint() -> String;
    device_name() -> String;
    device() -> Option<Arc<dyn Device>>;
    dispatch(program: &Program, inputs: &[Vec<u8>], config: &DispatchConfig) -> Result<Vec<Vec<u8>>, BackendError>;
    dispatch_borrowed(program: &Program, inputs: &[&[u8]], config: &DispatchConfig) -> Result<Vec<Vec<u8>>, BackendError>;
    dispatch_borrowed_into(
        program: &Program, inputs: &[&[u8]], config: &DispatchConfig, outputs: &mut OutputBuffers
    ) -> Result<(), BackendError>;
    dispatch_borrowed_timed(program: &Program, inputs: &[&[u8]], config: &DispatchConfig) -> Result<TimedDispatchResult, BackendError>;
    dispatch_async(program: &Program, inputs: &[Vec<u8>], config: &DispatchConfig) -> Result<Box<dyn PendingDispatch>, BackendError>;
    dispatch_borrowed_async(
        program: &Program, inputs: &[&[u8]], config: &DispatchConfig
    ) -> Result<Box<dyn PendingDispatch>, BackendError>;
    compile_native(program: &Program, config: &DispatchConfig) -> Result<Option<Arc<dyn CompiledPipeline>>, BackendError>;
    pipeline_cache_snapshot() -> Option<PipelineCacheSnapshot>;
    allocate_resident(byte_len: usize) -> Result<Resource, BackendError>;
    upload_resident(resource: &Resource, bytes: &[u8]) -> Result<(), BackendError>;
    upload_resident_many(uploads: &[(&Resource, &[u8])]) -> Result<(), BackendError>;
    upload_resident_at(resource: &Resource, dst_offset_bytes: usize, bytes: &[u8]) -> Result<(), BackendError>;
    upload_resident_at_many(uploads: &[(&Resource, usize, &[u8])]) -> Result<(), BackendError>;
    download_resident(resource: &Resource) -> Result<Vec<u8>, BackendError>;
    download_resident_range(resource: &Resource, offset: usize, length: usize) -> Result<Vec<u8>, BackendError>;
    download_resident_ranges(ranges: &[(&Resource, usize, usize)]) -> Result<Vec<Vec<u8>>, BackendError>;
    free_resident(resource: Resource) -> Result<(), BackendError>;
    resident_size(resource: &Resource) -> Result<u64, BackendError>;
    copy_resident(
        from: &Resource, from_offset: usize, to: &Resource, to_offset: usize, length: usize
    ) -> Result<(), BackendError>;
    submit_resident(steps: &[ResidentStep<'_>], config: &DispatchConfig) -> Result<Box<dyn PendingDispatch>, BackendError>;
    dispatch_resident_timed(
        program: &Program, resources: &[Resource], config: &DispatchConfig
    ) -> Result<TimedDispatchResult, BackendError>;
    supported_ops() -> &HashSet<OpId>;
    supports_subgroup_ops() -> bool;
    supports_f16() -> bool;
    supports_bf16() -> bool;
    supports_f64() -> bool;
    supports_tensor_cores() -> bool;
    supports_async_compute() -> bool;
    supports_indirect_dispatch() -> bool;
    supports_speculation() -> bool;
    supports_persistent_thread_dispatch() -> bool;
    supports_grid_sync() -> bool;
    allows_host_grid_sync_split() -> bool;
    is_distributed() -> bool;
    max_workgroup_size() -> [u32; 3];
    max_compute_workgroups_per_dimension() -> u32;
    max_compute_invocations_per_workgroup() -> u32;
    subgroup_size() -> Option<u32>;
    max_storage_buffer_bytes() -> u64;
    prepare() -> Result<(), BackendError>;
    flush() -> Result<(), BackendError>;
    shutdown() -> Result<(), BackendError>;
    device_lost() -> bool;
    try_recover() -> Result<(), BackendError>;
    backend_metric_snapshot() -> Vec<(&'static str, u64)>;
}

/// Calls one method, with a handle where it needs one; gives what it gave in words.
fn call(method: Called, backend: &dyn VyreBackend, handle: &Resource, program: &Program) -> String {
    let config = DispatchConfig { label: Some("call".into()), ..DispatchConfig::default() };
    let (inputs, borrowed): (Vec<Vec<u8>>, [&[u8]; 1]) = (vec![vec![9; 4]], [&[9; 4]]);
    let bytes: &[u8] = &[1, 2, 3];
    let wait =
        |pending: Result<Box<dyn PendingDispatch>, BackendError>| format!("{:?}", pending.and_then(|pending| pending.wait()));
    match method {
        Called::id => backend.id().into(),
        Called::version => backend.version().into(),
        Called::device_fingerprint => backend.device_fingerprint(),
        Called::device_name => backend.device_name(),
        Called::device => format!("{:?}", backend.device().map(|device| device.info().id)),
        Called::dispatch => format!("{:?}", backend.dispatch(program, &inputs, &config)),
        Called::dispatch_borrowed => format!("{:?}", backend.dispatch_borrowed(program, &borrowed, &config)),
        Called::dispatch_borrowed_into => {
            let mut outputs = Vec::new();
            format!("{:?} {outputs:?}", backend.dispatch_borrowed_into(program, &borrowed, &config, &mut outputs))
        }
        Called::dispatch_borrowed_timed => format!("{:?}", backend.dispatch_borrowed_timed(program, &borrowed, &config)),
        Called::dispatch_async => wait(backend.dispatch_async(program, &inputs, &config)),
        Called::dispatch_borrowed_async => wait(backend.dispatch_borrowed_async(program, &borrowed, &config)),
        Called::compile_native => match backend.compile_native(program, &config) {
            Ok(pipeline) => format!("{:?}", pipeline.map(|pipeline| pipeline.id().to_string())),
            Err(error) => error.message(),
        },
        Called::pipeline_cache_snapshot => format!("{:?}", backend.pipeline_cache_snapshot()),
        Called::allocate_resident => format!("{:?}", backend.allocate_resident(5).map(drop)),
        Called::upload_resident => format!("{:?}", backend.upload_resident(handle, bytes)),
        Called::upload_resident_many => format!("{:?}", backend.upload_resident_many(&[(handle, bytes), (handle, &[4])])),
        Called::upload_resident_at => format!("{:?}", backend.upload_resident_at(handle, 2, bytes)),
        Called::upload_resident_at_many => {
            format!("{:?}", backend.upload_resident_at_many(&[(handle, 2, bytes), (handle, 0, &[4])]))
        }
        Called::download_resident => format!("{:?}", backend.download_resident(handle)),
        Called::download_resident_range => format!("{:?}", backend.download_resident_range(handle, 1, 2)),
        Called::download_resident_ranges => {
            format!("{:?}", backend.download_resident_ranges(&[(handle, 1, 2), (handle, 3, 4)]))
        }
        Called::free_resident => format!("{:?}", backend.free_resident(handle.clone())),
        Called::resident_size => format!("{:?}", backend.resident_size(handle)),
        Called::copy_resident => format!("{:?}", backend.copy_resident(handle, 1, handle, 2, 3)),
        Called::submit_resident => wait(backend.submit_resident(&[ResidentStep::Download(handle.into())], &config)),
        Called::dispatch_resident_timed => {
            let resources = [handle.clone(), Resource::Borrowed(vec![0; 4])];
            format!("{:?}", backend.dispatch_resident_timed(program, &resources, &config))
        }
        Called::supported_ops => backend.supported_ops().len().to_string(),
        Called::supports_subgroup_ops => backend.supports_subgroup_ops().to_string(),
        Called::supports_f16 => backend.supports_f16().to_string(),
        Called::supports_bf16 => backend.supports_bf16().to_string(),
        Called::supports_f64 => backend.supports_f64().to_string(),
        Called::supports_tensor_cores => backend.supports_tensor_cores().to_string(),
        Called::supports_async_compute => backend.supports_async_compute().to_string(),
        Called::supports_indirect_dispatch => backend.supports_indirect_dispatch().to_string(),
        Called::supports_speculation => backend.supports_speculation().to_string(),
        Called::supports_persistent_thread_dispatch => backend.supports_persistent_thread_dispatch().to_string(),
        Called::supports_grid_sync => backend.supports_grid_sync().to_string(),
        Called::allows_host_grid_sync_split => backend.allows_host_grid_sync_split().to_string(),
        Called::is_distributed => backend.is_distributed().to_string(),
        Called::max_workgroup_size => format!("{:?}", backend.max_workgroup_size()),
        Called::max_compute_workgroups_per_dimension => backend.max_compute_workgroups_per_dimension().to_string(),
        Called::max_compute_invocations_per_workgroup => backend.max_compute_invocations_per_workgroup().to_string(),
        Called::subgroup_size => format!("{:?}", backend.subgroup_size()),
        Called::max_storage_buffer_bytes => backend.max_storage_buffer_bytes().to_string(),
        Called::prepare => format!("{:?}", backend.prepare()),
        Called::flush => format!("{:?}", backend.flush()),
        Called::shutdown => format!("{:?}", backend.shutdown()),
        Called::device_lost => backend.device_lost().to_string(),
        Called::try_recover => format!("{:?}", backend.try_recover()),
        Called::backend_metric_snapshot => format!("{:?}", backend.backend_metric_snapshot()),
    }
}

/// Records every call, and answers each as no default of the trait does.
#[derive(Default)]
struct PipelineProbe {
    calls: Mutex<Vec<PipelineCalled>>,
}

impl PipelineProbe {
    fn saw(&self, method: PipelineCalled) {
        self.calls.lock().unwrap().push(method);
    }
}

impl Sealed for PipelineProbe {}

#[deny(clippy::missing_trait_methods)]
impl CompiledPipeline for PipelineProbe {
    fn id(&self) -> &str {
        self.saw(PipelineCalled::id);
        "probe pipeline"
    }

    fn dispatch(&self, inputs: &[Vec<u8>], config: &DispatchConfig) -> Result<Vec<Vec<u8>>, BackendError> {
        self.saw(PipelineCalled::dispatch);
        Ok(vec![format!("dispatch {inputs:?} {config:?}").into()])
    }

    fn dispatch_borrowed(&self, inputs: &[&[u8]], config: &DispatchConfig) -> Result<Vec<Vec<u8>>, BackendError> {
        self.saw(PipelineCalled::dispatch_borrowed);
        Ok(vec![format!("borrowed {inputs:?} {config:?}").into()])
    }

    fn dispatch_borrowed_into(
        &self,
        inputs: &[&[u8]],
        config: &DispatchConfig,
        outputs: &mut OutputBuffers,
    ) -> Result<(), BackendError> {
        self.saw(PipelineCalled::dispatch_borrowed_into);
        *outputs = vec![format!("into {inputs:?} {config:?}").into()];
        Ok(())
    }

    fn dispatch_borrowed_timed(&self, inputs: &[&[u8]], config: &DispatchConfig) -> Result<TimedDispatchResult, BackendError> {
        self.saw(PipelineCalled::dispatch_borrowed_timed);
        let outputs = vec![format!("timed {inputs:?} {config:?}").into()];
        Ok(TimedDispatchResult { outputs, wall_ns: 1, device_ns: Some(2), ran: None })
    }

    fn dispatch_borrowed_async(
        &self,
        inputs: &[&[u8]],
        config: &DispatchConfig,
    ) -> Result<Box<dyn PendingDispatch>, BackendError> {
        self.saw(PipelineCalled::dispatch_borrowed_async);
        Ok(Box::new(ReadyPending { outputs: vec![format!("async {inputs:?} {config:?}").into()] }))
    }

    fn dispatch_borrowed_batched(
        &self,
        batches: &[&[&[u8]]],
        config: &DispatchConfig,
    ) -> Result<Vec<OutputBuffers>, BackendError> {
        self.saw(PipelineCalled::dispatch_borrowed_batched);
        Ok(vec![vec![format!("batched {batches:?} {config:?}").into()]])
    }

    fn dispatch_borrowed_batched_into(
        &self,
        batches: &[&[&[u8]]],
        config: &DispatchConfig,
        outputs: &mut Vec<OutputBuffers>,
    ) -> Result<(), BackendError> {
        self.saw(PipelineCalled::dispatch_borrowed_batched_into);
        *outputs = vec![vec![format!("batched into {batches:?} {config:?}").into()]];
        Ok(())
    }

    fn dispatch_persistent_handles(&self, inputs: &[Resource], config: &DispatchConfig) -> Result<OutputBuffers, BackendError> {
        self.saw(PipelineCalled::dispatch_persistent_handles);
        Ok(vec![format!("handles {inputs:?} {config:?}").into()])
    }

    fn dispatch_persistent_handles_into(
        &self,
        inputs: &[Resource],
        config: &DispatchConfig,
        outputs: &mut OutputBuffers,
    ) -> Result<(), BackendError> {
        self.saw(PipelineCalled::dispatch_persistent_handles_into);
        *outputs = vec![format!("handles into {inputs:?} {config:?}").into()];
        Ok(())
    }
}

/// Calls one method; gives what it gave in words.
fn call_pipeline(method: PipelineCalled, pipeline: &dyn CompiledPipeline, config: &DispatchConfig) -> String {
    let (inputs, borrowed): (Vec<Vec<u8>>, [&[u8]; 2]) = (vec![vec![1], vec![2, 3]], [&[1], &[2, 3]]);
    let handles = [Resource::Borrowed(vec![4])];
    let mut outputs = vec![vec![0xA5; 3]];
    match method {
        PipelineCalled::id => pipeline.id().into(),
        PipelineCalled::dispatch => format!("{:?}", pipeline.dispatch(&inputs, config)),
        PipelineCalled::dispatch_borrowed => format!("{:?}", pipeline.dispatch_borrowed(&borrowed, config)),
        PipelineCalled::dispatch_borrowed_into => {
            format!("{:?} {outputs:?}", pipeline.dispatch_borrowed_into(&borrowed, config, &mut outputs))
        }
        PipelineCalled::dispatch_borrowed_timed => format!("{:?}", pipeline.dispatch_borrowed_timed(&borrowed, config)),
        PipelineCalled::dispatch_borrowed_async => {
            format!("{:?}", pipeline.dispatch_borrowed_async(&borrowed, config).and_then(|pending| pending.wait()))
        }
        PipelineCalled::dispatch_borrowed_batched => {
            format!("{:?}", pipeline.dispatch_borrowed_batched(&[&borrowed, &[&[5]]], config))
        }
        PipelineCalled::dispatch_borrowed_batched_into => {
            let mut outputs = vec![outputs];
            format!("{:?} {outputs:?}", pipeline.dispatch_borrowed_batched_into(&[&borrowed, &[&[5]]], config, &mut outputs))
        }
        PipelineCalled::dispatch_persistent_handles => {
            format!("{:?}", pipeline.dispatch_persistent_handles(&handles, config))
        }
        PipelineCalled::dispatch_persistent_handles_into => {
            format!("{:?} {outputs:?}", pipeline.dispatch_persistent_handles_into(&handles, config, &mut outputs))
        }
    }
}

#[test]
fn fault_3_wrappers_forward_every_method_once_and_give_its_answer() {
    type Wrap = fn(Box<dyn VyreBackend>) -> Box<dyn VyreBackend>;
    let twice: Wrap = |inner| wrap_grid_sync_split(wrap_grid_sync_split(inner));
    let wrappers: [(&str, Wrap); 2] = [("once", wrap_grid_sync_split), ("twice", twice)];
    // What a wrapper may ask for itself beside.
    let questions = [Called::id, Called::supports_grid_sync, Called::allows_host_grid_sync_split];
    let plain = program("program p {\n workgroup 1\n buffer a: read u32 @0\n buffer out: output u32[1] @1\n out[0] = a[0]\n}");
    let with_barrier =
        program("program p {\n workgroup 1\n buffer a: read u32 @0\n buffer out: output u32[1] @1\n barrier.grid\n}");
    for (name, wrap) in wrappers {
        for program in [&plain, &with_barrier] {
            for method in Called::ALL {
                let pipelines: Arc<PipelineProbe> = Arc::default();
                let probe = Arc::new(Probe { pipeline: Some(pipelines), ..Probe::default() });
                let wrapped = wrap(Box::new(Shared(probe.clone())));
                let inner_handle = Resource::Resident(1007);
                let handle = wrapped.allocate_resident(7).unwrap();
                let expected = call(*method, &*probe, &inner_handle, program);
                probe.take();
                assert_eq!(call(*method, &*wrapped, &handle, program), expected, "{name}: {method:?}");
                let seen: Vec<Called> = probe.take().iter().map(|call| call.method).collect();
                let arrived = seen.iter().filter(|seen| *seen == method).count();
                assert_eq!(arrived, 1, "{name}: {method:?} came as {seen:?}");
                assert!(
                    seen.iter().all(|seen| seen == method || questions.contains(seen)),
                    "{name}: {method:?} came as {seen:?}"
                );
            }
        }
    }
    // Pipelines go through wrappers too, and through what the driver hands out.
    for (name, wrap) in wrappers {
        for method in PipelineCalled::ALL {
            let inner: Arc<PipelineProbe> = Arc::default();
            let probe = Probe { pipeline: Some(inner.clone()), ..Probe::default() };
            let wrapped: Arc<dyn VyreBackend> = Arc::from(wrap(Box::new(Shared(Arc::new(probe)))));
            let config = DispatchConfig { label: Some("call".into()), ..DispatchConfig::default() };
            let pipeline = pipeline::compile(wrapped, &plain, &DispatchConfig::default()).unwrap();
            let expected = call_pipeline(*method, &*inner, &config);
            inner.calls.lock().unwrap().clear();
            assert_eq!(call_pipeline(*method, &*pipeline, &config), expected, "{name}: {method:?}");
            assert_eq!(*inner.calls.lock().unwrap(), [*method], "{name}");
        }
    }
}

// ---- 4: resident handles were bare numbers ----

#[test]
fn fault_4_resident_handles_are_unique_and_freed_foreign_stale_and_aliased_ones_are_refused() {
    let copy = program(
        "program copy {\n workgroup 4\n buffer a: read u32 @0\n buffer b: read_write u32 @1\n b[gid.x] = a[gid.x] + 1\n}",
    );
    let config = DispatchConfig::default();
    let number = |resource: &Resource| match resource {
        Resource::Resident(handle) => *handle,
        Resource::Borrowed(_) => panic!("a handle"),
    };
    // 1. No number twice in the process: not on two instances, not on two backends, not after a free.
    let backends: Vec<Box<dyn VyreBackend>> = (0..4)
        .map(|n| match n % 2 {
            0 => wrap_grid_sync_split(device()),
            _ => wrap_grid_sync_split(backend(Arc::new(FaultyDevice::new(Arc::new(host()), FaultPlan::none())))),
        })
        .collect();
    let mut numbers = BTreeSet::new();
    for round in 0..50 {
        for backend in &backends {
            let resource = backend.allocate_resident(16).unwrap();
            assert!(numbers.insert(number(&resource)), "{resource:?} was given before");
            if round % 2 == 0 {
                backend.free_resident(resource).unwrap();
            }
        }
    }
    // 2. Every way to use a handle that is not live says what it is.
    let uses = |backend: &dyn VyreBackend, handle: &Resource| -> Vec<BackendError> {
        let good = backend.allocate_resident(16).unwrap();
        backend.upload_resident(&good, &[1; 16]).unwrap();
        let reads = ResidentStep::Copy { from: ResidentRange::from(handle), to: ResidentRange::from(handle) };
        let refused = vec![
            backend.upload_resident(handle, &[0; 4]).unwrap_err(),
            backend.upload_resident_many(&[(&good, &[9; 4]), (handle, &[0; 4])]).unwrap_err(),
            backend.upload_resident_at(handle, 4, &[0; 4]).unwrap_err(),
            backend.upload_resident_at_many(&[(&good, 0, &[9; 4]), (handle, 0, &[0; 4])]).unwrap_err(),
            backend.download_resident(handle).unwrap_err(),
            backend.download_resident_range(handle, 0, 4).unwrap_err(),
            backend.download_resident_ranges(&[(&good, 0, 4), (handle, 0, 4)]).unwrap_err(),
            backend.dispatch_resident_timed(&copy, &[handle.clone(), good.clone()], &config).unwrap_err(),
            backend.dispatch_resident_timed(&copy, &[good.clone(), handle.clone()], &config).unwrap_err(),
            backend.resident_size(handle).unwrap_err(),
            backend.copy_resident(handle, 0, &good, 0, 4).unwrap_err(),
            backend.copy_resident(&good, 0, handle, 0, 4).unwrap_err(),
            backend.submit_resident(&[ResidentStep::Download(handle.into())], &config).map(drop).unwrap_err(),
            backend
                .submit_resident(&[ResidentStep::Upload { to: (&good).into(), bytes: &[9; 4] }, reads], &config)
                .map(drop)
                .unwrap_err(),
            backend.free_resident(handle.clone()).unwrap_err(),
        ];
        assert_eq!(backend.download_resident(&good), Ok(vec![1; 16]), "what is refused changes nothing");
        refused
    };
    let all = |error: ResidentError| vec![BackendError::Resident(error); 15];
    for (n, backend) in backends.iter().enumerate() {
        let freed = backend.allocate_resident(16).unwrap();
        backend.free_resident(freed.clone()).unwrap();
        assert_eq!(uses(&**backend, &freed), all(ResidentError::Freed(number(&freed))));
        for (m, other) in backends.iter().enumerate().filter(|(m, _)| *m != n) {
            let theirs = other.allocate_resident(16).unwrap();
            assert_eq!(uses(&**backend, &theirs), all(ResidentError::Foreign(number(&theirs))), "{n} {m}");
        }
        for made_up in [0, 7, u64::MAX] {
            assert_eq!(uses(&**backend, &Resource::Resident(made_up)), all(ResidentError::Foreign(made_up)));
        }
        // 3. One handle for two buffers, one of them written.
        let twice = backend.allocate_resident(16).unwrap();
        let aliased = backend.dispatch_resident_timed(&copy, &[twice.clone(), twice.clone()], &config);
        assert_eq!(aliased, Err(BackendError::Resident(ResidentError::Aliased(number(&twice)))));
        assert_eq!(backend.download_resident(&twice), Ok(vec![0; 16]));
        let other = backend.allocate_resident(16).unwrap();
        backend.dispatch_resident_timed(&copy, &[twice, other.clone()], &config).unwrap();
        assert_eq!(backend.download_resident(&other).map(|bytes| unwords(&bytes)), Ok(vec![1; 4]));
    }
    // 4. Of before the device was lost.
    let lossy = FaultyDevice::new(Arc::new(host()), FaultPlan::none().at_call_of(Method::Submit, 0, Fault::DeviceLost));
    let lossy = backend(Arc::new(lossy));
    let old = lossy.allocate_resident(16).unwrap();
    lossy.flush().unwrap_err();
    lossy.try_recover().unwrap();
    assert_eq!(uses(&*lossy, &old), all(ResidentError::Stale(number(&old))));
}

// ---- 5: specialization keys existed and nothing used them ----

#[test]
fn fault_5_specialization_changes_the_code() {
    let scale = program(
        "program scale {
          workgroup n
          const n: u32 = 4
          const k: u32 = 3
          const offset: i32 = -1i
          const factor: f32 = 1.0
          const negate: bool = false
          const t: dtype = f32
          buffer a: read t @0
          buffer out: output f32[n] @1

          let x = a[gid.x] * factor + f32(k) + f32(offset)
          if negate {
            x = -x
          }
          out[gid.x] = x + f32(lid_count.x) * 100.0
        }",
    );
    let floats: Vec<u8> = [1.0f32, 2.0, 3.0, 4.0].iter().flat_map(|value| value.to_le_bytes()).collect();
    let halves: Vec<u8> = [0x3C00u16, 0x4000, 0x4200, 0x4400].iter().flat_map(|value| value.to_le_bytes()).collect();
    type Values = Vec<(&'static str, SpecValue)>;
    let cases: Vec<(Values, &[u8], Vec<f32>)> = vec![
        (vec![], &floats, vec![403.0, 404.0, 405.0, 406.0]),
        (vec![("k", SpecValue::U32(10))], &floats, vec![410.0, 411.0, 412.0, 413.0]),
        (vec![("offset", SpecValue::I32(7))], &floats, vec![411.0, 412.0, 413.0, 414.0]),
        (vec![("factor", SpecValue::F32(-2.0))], &floats, vec![400.0, 398.0, 396.0, 394.0]),
        (vec![("negate", SpecValue::Bool(true))], &floats, vec![397.0, 396.0, 395.0, 394.0]),
        (vec![("n", SpecValue::U32(2))], &floats[..8], vec![203.0, 204.0]),
        (vec![("t", SpecValue::DType(DataType::F16))], &halves, vec![403.0, 404.0, 405.0, 406.0]),
        (
            vec![("t", SpecValue::DType(DataType::F16)), ("n", SpecValue::U32(1)), ("k", SpecValue::U32(0))],
            &halves[..2],
            vec![100.0],
        ),
    ];
    let backends: [(&str, Arc<dyn VyreBackend>); 4] = [
        ("with pipelines of its own", Arc::from(device())),
        ("with pipelines of its own, wrapped", Arc::from(wrap_grid_sync_split(device()))),
        ("without", Arc::new(Plain::default())),
        ("a wrapped device", Arc::from(backend(Arc::new(FaultyDevice::new(Arc::new(host()), FaultPlan::none()))))),
    ];
    for (what, backend) in &backends {
        let mut ids = HashSet::new();
        for (values, input, expected) in &cases {
            let config = DispatchConfig {
                specialization: values.iter().map(|(name, value)| (name.to_string(), value.clone())).collect(),
                ..DispatchConfig::default()
            };
            let expected = Ok(vec![expected.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>()]);
            let case = format!("{what}: {values:?}");
            // Through a pipeline: the call says nothing about the values, or repeats them.
            let build = pipeline::compile_with_telemetry(backend.clone(), &scale, &config).unwrap();
            assert_eq!(build.manifest.config.specialization, config.specialization, "{case}");
            ids.insert(build.manifest.to_json().unwrap());
            for call in [&DispatchConfig::default(), &config] {
                assert_eq!(build.pipeline.dispatch_borrowed(&[input], call), expected, "{case}");
                assert_eq!(build.pipeline.dispatch(&[input.to_vec()], call), expected, "{case}");
                let mut outputs = Vec::new();
                build.pipeline.dispatch_borrowed_into(&[input], call, &mut outputs).unwrap();
                assert_eq!(Ok(outputs), expected, "{case}");
                let timed = build.pipeline.dispatch_borrowed_timed(&[input], call);
                assert_eq!(timed.map(|timed| timed.outputs), expected, "{case}");
                let batch = build.pipeline.dispatch_borrowed_batched(&[&[input]], call);
                assert_eq!(batch.map(|mut batch| batch.remove(0)), expected, "{case}");
            }
            // A call cannot have another value than was compiled.
            let mut other = config.clone();
            other.specialization.insert("k", SpecValue::U32(12_345));
            let refused = build.pipeline.dispatch_borrowed(&[input], &other);
            assert!(matches!(refused, Err(BackendError::InvalidProgram { .. })), "{case}: {refused:?}");
            // Through the typed layer.
            let mut typed = Dispatch::new(&scale).input_bytes("a", *input).output::<f32>("out");
            for (name, value) in values {
                typed = typed.constant(name, value.clone());
            }
            assert_eq!(
                typed.run(&**backend).and_then(|results| results.bytes("out").map(|out| vec![out.to_vec()])),
                expected,
                "{case}"
            );
            // Directly: a real backend puts the values in itself.
            assert_eq!(backend.dispatch_borrowed(&scale, &[input], &config), expected, "{case}");
        }
        assert_eq!(ids.len(), cases.len());
        for (name, value) in [("kk", SpecValue::U32(1)), ("k", SpecValue::I32(1)), ("t", SpecValue::DType(DataType::U32))] {
            let config = DispatchConfig {
                specialization: [(name.to_string(), value.clone())].into_iter().collect(),
                ..DispatchConfig::default()
            };
            let refusals = [
                pipeline::compile(backend.clone(), &scale, &config).map(drop),
                Dispatch::new(&scale).input_bytes("a", floats.as_slice()).constant(name, value).run(&**backend).map(drop),
            ];
            for refused in refusals {
                assert!(matches!(refused, Err(BackendError::Rejected(_))), "{what}: {name}: {refused:?}");
            }
        }
    }
}

// ---- 6: declared workgroup sizes were replaced by an autotuner ----

/// What a probe was asked to run: method, size that is declared, size in the config.
fn sizes(probe: &Probe) -> Vec<(Called, [u32; 3], Option<[u32; 3]>)> {
    let size = |program: &Program| program.validated().unwrap().kernel().workgroup_size;
    probe.runs().iter().map(|(method, program, config)| (*method, size(program), config.workgroup_override)).collect()
}

/// Every path by which a program comes to a backend.
fn every_path(probe: Arc<Probe>, program: &Program, inputs: &[&[u8]], config: &DispatchConfig) -> Vec<Result<(), BackendError>> {
    let owned: Vec<Vec<u8>> = inputs.iter().map(|input| input.to_vec()).collect();
    let resources: Vec<Resource> =
        owned.iter().cloned().map(Resource::Borrowed).chain([Resource::Borrowed(vec![0; 480])]).collect();
    let mut outputs = Vec::new();
    let mut results = Vec::new();
    let wrapped: [Arc<dyn VyreBackend>; 2] = [
        Arc::from(wrap_grid_sync_split(Box::new(Shared(probe.clone())))),
        Arc::from(wrap_grid_sync_split(wrap_grid_sync_split(Box::new(Shared(probe.clone()))))),
    ];
    for backend in &wrapped {
        results.extend([
            backend.dispatch(program, &owned, config).map(drop),
            backend.dispatch_borrowed(program, inputs, config).map(drop),
            backend.dispatch_borrowed_into(program, inputs, config, &mut outputs),
            backend.dispatch_borrowed_timed(program, inputs, config).map(drop),
            backend.dispatch_async(program, &owned, config).and_then(|pending| pending.wait()).map(drop),
            backend.dispatch_borrowed_async(program, inputs, config).and_then(|pending| pending.wait()).map(drop),
            backend.dispatch_resident_timed(program, &resources, config).map(drop),
        ]);
        let pipeline = match pipeline::compile(backend.clone(), program, config) {
            Ok(pipeline) => pipeline,
            Err(error) => {
                results.push(Err(error));
                continue;
            }
        };
        for call in [config, &DispatchConfig::default()] {
            results.extend([
                pipeline.dispatch(&owned, call).map(drop),
                pipeline.dispatch_borrowed(inputs, call).map(drop),
                pipeline.dispatch_borrowed_into(inputs, call, &mut outputs),
                pipeline.dispatch_borrowed_timed(inputs, call).map(drop),
                pipeline.dispatch_borrowed_async(inputs, call).and_then(|pending| pending.wait()).map(drop),
                pipeline.dispatch_borrowed_batched(&[inputs], call).map(drop),
                pipeline.dispatch_persistent_handles(&resources, call).map(drop),
                pipeline.dispatch_persistent_handles_into(&resources, call, &mut outputs),
            ]);
        }
    }
    let named: BTreeMap<&str, &[u8]> = ["a"].into_iter().zip(inputs.iter().copied()).collect();
    let mut typed = Dispatch::new(program).config(|whole| *whole = config.clone());
    for (name, bytes) in named {
        typed = typed.input_bytes(name, bytes);
    }
    results.push(typed.run(&*probe).map(drop));
    results
}

#[test]
fn fault_6_the_declared_workgroup_size_is_what_runs() {
    let text = |size: &str, body: &str| {
        format!("program p {{\n workgroup {size}\n BUFFERS\n buffer a: read u32 @0\n buffer out: output u32[120] @1\n {body}\n}}")
            .replace("BUFFERS", if body.contains("tile") { "buffer tile: workgroup u32[4]" } else { "" })
            .replace("workgroup 8\n", if body.contains("subgroup") { "workgroup 8\n subgroup 4\n" } else { "workgroup 8\n" })
    };
    let input: &[&[u8]] = &[&[1; 480]];
    let gridded = |x, y, z| DispatchConfig { grid_override: Some([x, y, z]), ..DispatchConfig::default() };
    // 1. Through every path the backend sees exactly what is declared, and nothing in the config says otherwise.
    let barrier = "out[gid.x] = a[gid.x]\n barrier.grid\n out[gid.x] = out[gid.x] + 1";
    for (size, declared, config) in [
        ("7", [7, 1, 1], DispatchConfig::default()),
        ("1000", [1000, 1, 1], DispatchConfig::default()),
        ("1", [1, 1, 1], DispatchConfig::default()),
        ("3 5 2", [3, 5, 2], gridded(2, 1, 1)),
    ] {
        for body in ["out[gid.x] = a[gid.x]", "out[gid.x] = lid_count.x", barrier] {
            let probe = Arc::new(Probe { splits: true, ..Probe::default() });
            for result in every_path(probe.clone(), &program(&text(size, body)), input, &config) {
                result.unwrap_or_else(|error| panic!("{size}, {body}: {error}"));
            }
            let seen = sizes(&probe);
            assert!(seen.len() > 40, "{seen:?}");
            for (method, size, overridden) in seen {
                assert_eq!((size, overridden), (declared, None), "{method:?} of {body}");
            }
        }
    }
    // 2. What runs is what the kernel sees, also where a constant is the size.
    let counts = program(
        "program p {\n workgroup n\n const n: u32 = 6\n buffer out: output u32[12] @0\n out[gid.x] = lid_count.x * 1000 + wid.x * 100 + lid.x\n}",
    );
    let backend = wrap_grid_sync_split(device());
    for n in [1u32, 4, 6, 12] {
        let results = Dispatch::new(&counts).constant("n", SpecValue::U32(n)).run(&*backend).unwrap();
        let expected: Vec<u32> = (0..12).map(|gid| n * 1000 + gid / n * 100 + gid % n).collect();
        assert_eq!(results.get::<u32>("out").unwrap(), expected);
    }
    // 3. Another size is run only if it is asked for, as it is asked for, and where the program cannot tell.
    let overridden = DispatchConfig { workgroup_override: Some([20, 1, 1]), ..DispatchConfig::default() };
    let probe: Arc<Probe> = Arc::default();
    for result in every_path(probe.clone(), &program(&text("8", "out[gid.x] = a[gid.x]")), input, &overridden) {
        result.unwrap();
    }
    for (method, size, overridden) in sizes(&probe) {
        assert_eq!((size, overridden), ([8, 1, 1], Some([20, 1, 1])), "{method:?}");
    }
    let who = program(&text("8", "out[gid.x] = a[gid.x] + gid.x"));
    let same = Dispatch::new(&who).input_bytes("a", input[0]);
    let bytes = same.clone().run(&*backend).unwrap();
    assert_eq!(same.clone().workgroup([20, 1, 1]).run(&*backend).unwrap(), bytes);
    for telling in [
        "tile[gid.x] = 1",
        "barrier",
        "barrier.grid",
        "let all = subgroup.add(gid.x)\n out[gid.x] = all",
        "out[gid.x] = subgroup.lane",
        "out[gid.x] = lid.x",
        "out[gid.x] = lid_count.x",
        "out[gid.x] = wid.x",
        "out[gid.x] = wid_count.x",
    ] {
        let p = program(&text("8", telling));
        p.validated().unwrap_or_else(|report| panic!("{report}"));
        let refusals: [Result<(), BackendError>; 3] = [
            Dispatch::new(&p).input_bytes("a", input[0]).workgroup([20, 1, 1]).run(&*backend).map(drop),
            pipeline::compile(Arc::from(wrap_grid_sync_split(device())), &p, &overridden).map(drop),
            backend.dispatch_borrowed(&p, input, &overridden).map(drop),
        ];
        for refused in refusals {
            let Err(BackendError::Rejected(report)) = refused else { panic!("{telling}: {refused:?}") };
            assert!(report.to_string().contains("cannot be overridden"), "{report}");
        }
    }
    // And the total of invocations stays: a size that does not divide them is refused, one that no workgroup can have too.
    for size in [[7, 1, 1], [0, 1, 1], [2048, 1, 1], [1, 1, 0], [u32::MAX, u32::MAX, 1]] {
        let refused = same.clone().workgroup(size).run(&*backend).map(drop);
        assert!(matches!(refused, Err(BackendError::Rejected(_))), "{size:?}: {refused:?}");
    }
}
