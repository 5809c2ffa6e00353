//! Every dispatch that gives outputs counts once, in whatever form and through whatever it comes.

mod support;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex, MutexGuard, PoisonError};
use support::device::{device, host, run};
use support::segments::{program, words};
use vyre_driver::backend::private::Sealed;
use vyre_driver::backend::registry::wrap_grid_sync_split;
use vyre_driver::device::backend;
use vyre_driver::device::inject::{Fault, FaultPlan, FaultyDevice, Method};
use vyre_driver::grid_sync::{
    dispatch_resident_with_grid_sync_split_timed, dispatch_with_grid_sync_split, dispatch_with_grid_sync_split_into,
    dispatch_with_grid_sync_split_timed,
};
use vyre_driver::observability::{
    DispatchTelemetry, of_backend, snapshot_backend_telemetry, snapshot_dispatch_telemetry, unattributed,
};
use vyre_driver::pipeline;
use vyre_driver::{
    BackendError, CompiledPipeline, Dispatch, DispatchConfig, OutputBuffers, Resource, TimedDispatchResult, VyreBackend,
};
use vyre_foundation::ir::Program;

/// Counters are the process's: one test at a time looks at them.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How a backend is written.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Kind {
    /// `dispatch`, and defaults.
    Least,
    /// Everything itself.
    Own,
    /// Everything itself, and it counts.
    Counting,
}

struct Backend {
    id: &'static str,
    kind: Kind,
    compiles: bool,
}

impl Backend {
    fn count(&self, inputs: usize, outputs: &[Vec<u8>]) {
        if self.kind == Kind::Counting {
            of_backend(self.id).record(inputs, outputs, 0);
        }
    }
}

fn total(inputs: &[impl AsRef<[u8]>]) -> usize {
    inputs.iter().map(|input| input.as_ref().len()).sum()
}

impl Sealed for Backend {}

impl VyreBackend for Backend {
    fn id(&self) -> &'static str {
        self.id
    }

    fn dispatch(&self, program: &Program, inputs: &[Vec<u8>], config: &DispatchConfig) -> Result<Vec<Vec<u8>>, BackendError> {
        let outputs = run(program, &inputs.iter().map(Vec::as_slice).collect::<Vec<_>>(), config)?;
        self.count(total(inputs), &outputs);
        Ok(outputs)
    }

    fn dispatch_resident_timed(
        &self,
        program: &Program,
        resources: &[Resource],
        config: &DispatchConfig,
    ) -> Result<TimedDispatchResult, BackendError> {
        let bytes = |resource: &Resource| match resource {
            Resource::Borrowed(bytes) => bytes.clone(),
            Resource::Resident(_) => panic!("nothing is resident here"),
        };
        let inputs: Vec<Vec<u8>> = resources[..program.interface().inputs.len()].iter().map(bytes).collect();
        Ok(TimedDispatchResult { outputs: self.dispatch(program, &inputs, config)?, wall_ns: 1, device_ns: None, ran: None })
    }

    fn compile_native(&self, program: &Program, _: &DispatchConfig) -> Result<Option<Arc<dyn CompiledPipeline>>, BackendError> {
        let of = Backend { id: self.id, kind: self.kind, compiles: false };
        Ok(self.compiles.then(|| Arc::new(Compiled { of, program: program.clone() }) as Arc<dyn CompiledPipeline>))
    }
}

/// What has every form of its own, over a [`Backend`].
struct Own(Backend);

impl Sealed for Own {}

impl VyreBackend for Own {
    fn id(&self) -> &'static str {
        self.0.id
    }

    fn dispatch(&self, program: &Program, inputs: &[Vec<u8>], config: &DispatchConfig) -> Result<Vec<Vec<u8>>, BackendError> {
        self.0.dispatch(program, inputs, config)
    }

    fn dispatch_borrowed(
        &self,
        program: &Program,
        inputs: &[&[u8]],
        config: &DispatchConfig,
    ) -> Result<Vec<Vec<u8>>, BackendError> {
        let outputs = run(program, inputs, config)?;
        self.0.count(total(inputs), &outputs);
        Ok(outputs)
    }

    fn dispatch_borrowed_into(
        &self,
        program: &Program,
        inputs: &[&[u8]],
        config: &DispatchConfig,
        outputs: &mut OutputBuffers,
    ) -> Result<(), BackendError> {
        let results = run(program, inputs, config)?;
        vyre_driver::backend::fill_outputs(outputs, &results);
        self.0.count(total(inputs), outputs);
        Ok(())
    }

    fn dispatch_borrowed_timed(
        &self,
        program: &Program,
        inputs: &[&[u8]],
        config: &DispatchConfig,
    ) -> Result<TimedDispatchResult, BackendError> {
        Ok(TimedDispatchResult {
            outputs: self.dispatch_borrowed(program, inputs, config)?,
            wall_ns: 1,
            device_ns: None,
            ran: None,
        })
    }

    fn dispatch_resident_timed(
        &self,
        program: &Program,
        resources: &[Resource],
        config: &DispatchConfig,
    ) -> Result<TimedDispatchResult, BackendError> {
        self.0.dispatch_resident_timed(program, resources, config)
    }

    fn compile_native(
        &self,
        program: &Program,
        config: &DispatchConfig,
    ) -> Result<Option<Arc<dyn CompiledPipeline>>, BackendError> {
        self.0.compile_native(program, config)
    }
}

struct Compiled {
    of: Backend,
    program: Program,
}

impl Sealed for Compiled {}

impl CompiledPipeline for Compiled {
    fn id(&self) -> &str {
        "compiled"
    }

    fn dispatch(&self, inputs: &[Vec<u8>], config: &DispatchConfig) -> Result<Vec<Vec<u8>>, BackendError> {
        self.of.dispatch(&self.program, inputs, config)
    }

    fn dispatch_persistent_handles(&self, inputs: &[Resource], config: &DispatchConfig) -> Result<OutputBuffers, BackendError> {
        Ok(self.of.dispatch_resident_timed(&self.program, inputs, config)?.outputs)
    }
}

fn of(id: &str) -> DispatchTelemetry {
    snapshot_backend_telemetry().into_iter().find(|(known, _)| *known == id).map_or_else(Default::default, |(_, counted)| counted)
}

fn since(before: DispatchTelemetry, after: DispatchTelemetry) -> DispatchTelemetry {
    DispatchTelemetry {
        launches: after.launches - before.launches,
        input_bytes: after.input_bytes - before.input_bytes,
        output_bytes: after.output_bytes - before.output_bytes,
        output_slots: after.output_slots - before.output_slots,
        output_slots_reused: after.output_slots_reused - before.output_slots_reused,
    }
}

const PLAIN: &str = "program p {
  workgroup 2
  buffer a: read u32[2] @0
  buffer b: read_write u32[2] @1
  buffer out: output u32[3] @2
  out[gid.x] = a[gid.x]
}";

/// Counts what a dispatch adds, and that the process's counters say the same.
struct Watched {
    id: &'static str,
    inputs: [Vec<u8>; 2],
}

impl Watched {
    fn adds(&self, what: &str, launches: u64, reused: u64, call: impl FnOnce()) {
        let (before, total_before) = (of(self.id), snapshot_dispatch_telemetry());
        call();
        let expected = DispatchTelemetry {
            launches,
            input_bytes: 16 * launches,
            output_bytes: 20 * launches,
            output_slots: 2 * launches,
            output_slots_reused: reused,
        };
        assert_eq!(since(before, of(self.id)), expected, "{}: {what}", self.id);
        assert_eq!(since(total_before, snapshot_dispatch_telemetry()), expected, "{}: {what}, in all", self.id);
    }

    fn borrowed(&self) -> [&[u8]; 2] {
        self.inputs.each_ref().map(Vec::as_slice)
    }

    fn resources(&self) -> [Resource; 3] {
        let [a, b] = self.inputs.clone();
        [a, b, vec![]].map(Resource::Borrowed)
    }
}

fn every_form(watched: &Watched, backend: &dyn VyreBackend, program: &Program) {
    let (config, borrowed, resources) = (&DispatchConfig::default(), watched.borrowed(), watched.resources());
    watched.adds("dispatch", 1, 0, || drop(backend.dispatch(program, &watched.inputs, config).unwrap()));
    watched.adds("borrowed", 1, 0, || drop(backend.dispatch_borrowed(program, &borrowed, config).unwrap()));
    for brought in 0..4 {
        let mut outputs = vec![vec![9; 50]; brought];
        let reused = brought.min(2) as u64;
        watched.adds("into", 1, reused, || backend.dispatch_borrowed_into(program, &borrowed, config, &mut outputs).unwrap());
    }
    watched.adds("timed", 1, 0, || drop(backend.dispatch_borrowed_timed(program, &borrowed, config).unwrap()));
    watched.adds("async", 1, 0, || drop(backend.dispatch_async(program, &watched.inputs, config).unwrap().wait().unwrap()));
    watched.adds("borrowed async", 1, 0, || {
        drop(backend.dispatch_borrowed_async(program, &borrowed, config).unwrap().wait().unwrap());
    });
    watched.adds("never waited for", 0, 0, || drop(backend.dispatch_async(program, &watched.inputs, config).unwrap()));
    watched.adds("resident", 1, 0, || drop(backend.dispatch_resident_timed(program, &resources, config).unwrap()));
}

fn every_pipeline_form(watched: &Watched, pipeline: &dyn CompiledPipeline) {
    let (config, borrowed, resources) = (&DispatchConfig::default(), watched.borrowed(), watched.resources());
    watched.adds("pipeline", 1, 0, || drop(pipeline.dispatch(&watched.inputs, config).unwrap()));
    watched.adds("pipeline borrowed", 1, 0, || drop(pipeline.dispatch_borrowed(&borrowed, config).unwrap()));
    let mut outputs = vec![vec![9; 50]];
    watched.adds("pipeline into", 1, 1, || pipeline.dispatch_borrowed_into(&borrowed, config, &mut outputs).unwrap());
    watched.adds("pipeline timed", 1, 0, || drop(pipeline.dispatch_borrowed_timed(&borrowed, config).unwrap()));
    watched.adds("pipeline async", 1, 0, || {
        drop(pipeline.dispatch_borrowed_async(&borrowed, config).unwrap().wait().unwrap());
    });
    let batches: [&[&[u8]]; 3] = [&borrowed, &borrowed, &borrowed];
    watched.adds("batch", 3, 0, || drop(pipeline.dispatch_borrowed_batched(&batches, config).unwrap()));
    let mut outputs = vec![vec![], vec![vec![1; 50]; 2]];
    let reused = 2;
    watched.adds("batch into", 3, reused, || pipeline.dispatch_borrowed_batched_into(&batches, config, &mut outputs).unwrap());
    watched.adds("handles", 1, 0, || drop(pipeline.dispatch_persistent_handles(&resources, config).unwrap()));
    let mut outputs = vec![vec![9; 50]; 2];
    watched.adds("handles into", 1, 2, || pipeline.dispatch_persistent_handles_into(&resources, config, &mut outputs).unwrap());
}

#[test]
fn every_form_counts_once_through_the_registry_pipelines_types_and_the_split() {
    let _alone = alone();
    let plain = program(PLAIN);
    let with_barriers = program(
        &PLAIN.replace("out[gid.x] = a", "let x = b[gid.x]\n barrier.grid\n b[gid.x] = x\n barrier.grid\n out[gid.x] = a"),
    );
    let ids = ["least", "least c", "own", "own c", "counting", "counting c"];
    let kinds = [Kind::Least, Kind::Least, Kind::Own, Kind::Own, Kind::Counting, Kind::Counting];
    for (n, (id, kind)) in ids.into_iter().zip(kinds).enumerate() {
        let make = || -> Box<dyn VyreBackend> {
            let backend = Backend { id, kind, compiles: n % 2 == 1 };
            if kind == Kind::Least { Box::new(backend) } else { Box::new(Own(backend)) }
        };
        let watched = Watched { id, inputs: [words([1, 2]), words([3, 4])] };
        let wrapped: Arc<dyn VyreBackend> = Arc::from(wrap_grid_sync_split(wrap_grid_sync_split(make())));
        for program in [&plain, &with_barriers] {
            every_form(&watched, &*wrapped, program);
            every_pipeline_form(&watched, &*pipeline::compile(wrapped.clone(), program, &DispatchConfig::default()).unwrap());
        }
        // Without the registry: pipelines, types and the functions of the split.
        let raw: Arc<dyn VyreBackend> = Arc::from(make());
        every_pipeline_form(&watched, &*pipeline::compile(raw.clone(), &plain, &DispatchConfig::default()).unwrap());
        let typed = Dispatch::new(&plain).input_bytes("a", words([1, 2])).input_bytes("b", words([3, 4]));
        for backend in [&raw, &wrapped] {
            watched.adds("typed", 1, 0, || drop(typed.run(&**backend).unwrap()));
        }
        let (config, borrowed, resources) = (DispatchConfig::default(), watched.borrowed(), watched.resources());
        for program in [&plain, &with_barriers] {
            watched.adds("split", 1, 0, || drop(dispatch_with_grid_sync_split(&*raw, program, &borrowed, &config).unwrap()));
            watched.adds("split timed", 1, 0, || {
                drop(dispatch_with_grid_sync_split_timed(&*raw, program, &borrowed, &config).unwrap());
            });
            let mut outputs = vec![vec![]];
            watched.adds("split into", 1, 1, || {
                dispatch_with_grid_sync_split_into(&*raw, program, &borrowed, &config, &mut outputs).unwrap();
            });
            watched.adds("split resident", 1, 0, || {
                drop(dispatch_resident_with_grid_sync_split_timed(&*raw, program, &resources, &config).unwrap());
            });
        }
    }
    // The defaults of the trait count too, without any of these; what a backend writes itself does not, unless it says so.
    let raw = Backend { id: "raw", kind: Kind::Least, compiles: false };
    let (watched, config) = (Watched { id: "raw", inputs: [words([1, 2]), words([3, 4])] }, DispatchConfig::default());
    watched.adds("its own", 0, 0, || drop(raw.dispatch(&plain, &watched.inputs, &config).unwrap()));
    watched.adds("borrowed", 1, 0, || drop(raw.dispatch_borrowed(&plain, &watched.borrowed(), &config).unwrap()));
    watched.adds("into", 1, 0, || raw.dispatch_borrowed_into(&plain, &watched.borrowed(), &config, &mut Vec::new()).unwrap());
    watched.adds("timed", 1, 0, || drop(raw.dispatch_borrowed_timed(&plain, &watched.borrowed(), &config).unwrap()));
    watched.adds("async", 1, 0, || drop(raw.dispatch_async(&plain, &watched.inputs, &config).unwrap().wait().unwrap()));
    let raw = Own(Backend { id: "raw counting", kind: Kind::Counting, compiles: false });
    let watched = Watched { id: "raw counting", ..watched };
    every_form_that_counts_itself(&watched, &raw, &plain);
}

fn every_form_that_counts_itself(watched: &Watched, backend: &dyn VyreBackend, program: &Program) {
    let (config, borrowed) = (&DispatchConfig::default(), watched.borrowed());
    watched.adds("dispatch", 1, 0, || drop(backend.dispatch(program, &watched.inputs, config).unwrap()));
    watched.adds("borrowed", 1, 0, || drop(backend.dispatch_borrowed(program, &borrowed, config).unwrap()));
    watched.adds("into", 1, 0, || backend.dispatch_borrowed_into(program, &borrowed, config, &mut Vec::new()).unwrap());
    watched.adds("timed", 1, 0, || drop(backend.dispatch_borrowed_timed(program, &borrowed, config).unwrap()));
}

#[test]
fn a_pipeline_that_is_nobodys_counts_once_and_leaves_it_to_a_backend_that_it_calls() {
    let _alone = alone();
    let plain = program(PLAIN);
    let nobodys = |kind| Compiled { of: Backend { id: "called", kind, compiles: false }, program: plain.clone() };
    let watched = Watched { id: "called", inputs: [words([1, 2]), words([3, 4])] };
    let (config, borrowed) = (DispatchConfig::default(), watched.borrowed());
    let batches: [&[&[u8]]; 2] = [&borrowed, &borrowed];
    let all = |pipeline: &Compiled| {
        pipeline.dispatch_borrowed(&borrowed, &config).unwrap();
        pipeline.dispatch_borrowed_into(&borrowed, &config, &mut vec![vec![]]).unwrap();
        pipeline.dispatch_borrowed_timed(&borrowed, &config).unwrap();
        pipeline.dispatch_borrowed_batched(&batches, &config).unwrap();
        pipeline.dispatch_borrowed_batched_into(&batches, &config, &mut vec![vec![vec![]]]).unwrap();
        pipeline.dispatch_persistent_handles_into(&watched.resources(), &config, &mut Vec::new()).unwrap();
    };
    // Nobody else counts: eight dispatches in all, for nobody.
    let (before, theirs) = (snapshot_dispatch_telemetry(), of("called"));
    all(&nobodys(Kind::Own));
    let added = since(before, snapshot_dispatch_telemetry());
    assert_eq!((added.launches, added.input_bytes, added.output_bytes, added.output_slots_reused), (8, 128, 160, 2));
    assert_eq!(of("called"), theirs);
    // The backend counts: the same eight, for it.
    watched.adds("called by a pipeline", 8, 0, || all(&nobodys(Kind::Counting)));
    // And said directly.
    let before = snapshot_dispatch_telemetry();
    unattributed().record(5, &[vec![0; 7]], 1);
    let said = DispatchTelemetry { launches: 1, input_bytes: 5, output_bytes: 7, output_slots: 1, output_slots_reused: 1 };
    assert_eq!(since(before, snapshot_dispatch_telemetry()), said);
}

#[test]
fn what_fails_does_not_count_and_counting_goes_on_after_it() {
    let _alone = alone();
    let plain = program(PLAIN);
    let (config, watched) = (DispatchConfig::default(), Watched { id: "device", inputs: [words([1, 2]), words([3, 4])] });
    let borrowed = watched.borrowed();
    let nothing = |fault: Fault, call: &dyn Fn() -> std::thread::Result<Result<OutputBuffers, BackendError>>| {
        watched.adds(&format!("{fault:?}"), 0, 0, || assert!(!matches!(call(), Ok(Ok(_))), "{fault:?} did not happen"));
    };
    for fault in Fault::ALL {
        // What a call of `run` gives back cannot be short.
        if fault != Fault::ShortRead {
            let plan = FaultPlan::none().at_call_of(Method::Run, 0, fault).at_call_of(Method::Run, 2, fault);
            let faulty = wrap_grid_sync_split(backend(Arc::new(FaultyDevice::new(Arc::new(host()), plan))));
            let call = || catch_unwind(AssertUnwindSafe(|| faulty.dispatch_borrowed(&plain, &borrowed, &config)));
            nothing(fault, &call);
            if faulty.device_lost() {
                faulty.try_recover().unwrap();
            }
            watched.adds(&format!("after {fault:?}"), 1, 0, || assert!(matches!(call(), Ok(Ok(_)))));
            let pipeline = pipeline::compile(Arc::from(faulty), &plain, &config).unwrap();
            nothing(fault, &|| catch_unwind(AssertUnwindSafe(|| pipeline.dispatch_borrowed(&borrowed, &config))));
        }
        let plan = FaultPlan::none().at_call_of(Method::Submit, 0, fault);
        let faulty = wrap_grid_sync_split(backend(Arc::new(FaultyDevice::new(Arc::new(host()), plan))));
        let call = || {
            catch_unwind(AssertUnwindSafe(|| {
                faulty.dispatch_borrowed_async(&plain, &borrowed, &config).and_then(|pending| pending.wait())
            }))
        };
        nothing(fault, &call);
        if faulty.device_lost() {
            faulty.try_recover().unwrap();
        }
        watched.adds(&format!("begun after {fault:?}"), 1, 0, || assert!(matches!(call(), Ok(Ok(_)))));
    }
    watched.adds("a trap", 0, 0, || {
        let trap = program(&PLAIN.replace("out[gid.x]", "trap(1)\n out[gid.x]"));
        assert!(wrap_grid_sync_split(device()).dispatch_borrowed(&trap, &borrowed, &config).is_err());
    });
}

#[test]
fn threads_count_together_and_each_backend_has_one_set_of_counters() {
    let _alone = alone();
    const IDS: [&str; 12] = ["t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8", "t9", "t10", "t11"];
    let made = AtomicU64::new(0);
    // More at once than have counters of their own, and one after the other, taking over those of the ones before.
    for threads in [8, 100, 8] {
        let (counting, start) = (AtomicU64::new(0), Barrier::new(threads));
        std::thread::scope(|scope| {
            for _ in 0..threads {
                let (made, counting, start) = (&made, &counting, &start);
                scope.spawn(move || {
                    start.wait();
                    // Text in another place is the same id.
                    let ids = IDS.map(|id| -> &'static str { id.to_string().leak() });
                    let outputs = [vec![0; 2], vec![]];
                    // So often that threads meet: none may lose what another adds.
                    for n in 0..60_000 {
                        of_backend(ids[n / 5_000]).record(3, &outputs, 1);
                    }
                    made.fetch_add(60_000, Ordering::Relaxed);
                    counting.fetch_add(1, Ordering::Relaxed);
                    // All are alive until all have counted.
                    while counting.load(Ordering::Relaxed) < threads as u64 {
                        std::thread::yield_now();
                    }
                });
            }
        });
    }
    let counted: Vec<(&str, DispatchTelemetry)> =
        snapshot_backend_telemetry().into_iter().filter(|(id, _)| IDS.contains(id)).collect();
    assert_eq!(counted.len(), IDS.len());
    let sum = |field: fn(&DispatchTelemetry) -> u64| counted.iter().map(|(_, telemetry)| field(telemetry)).sum::<u64>();
    let launches = made.into_inner();
    assert_eq!(sum(|telemetry| telemetry.launches), launches);
    assert_eq!(sum(|telemetry| telemetry.input_bytes), 3 * launches);
    assert_eq!(sum(|telemetry| telemetry.output_bytes), 2 * launches);
    assert_eq!(sum(|telemetry| telemetry.output_slots), 2 * launches);
    assert_eq!(sum(|telemetry| telemetry.output_slots_reused), launches);
    assert!(std::ptr::eq(of_backend("t3"), of_backend("t3".to_string().leak())));
}
