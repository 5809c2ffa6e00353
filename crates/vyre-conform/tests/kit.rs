//! The kit for backend authors passes on a right backend; and every one of its tests fails on a backend that is wrong in what it is about.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use vyre_conform::checks::EMBEDDED;
use vyre_conform::kit::{Done, tests};
use vyre_driver::backend::registry::acquire;
use vyre_driver::backend::{ReadyPending, ResidentStep};
use vyre_driver::device::{
    Binding, Call, Code, CodeOptions, Deadline, DeviceError, DeviceInfo, Generation, Memory, Ran, Step, Submission,
};
use vyre_driver::pipeline::PipelineCacheSnapshot;
use vyre_driver::{
    BackendError, CompiledPipeline, Device, DispatchConfig, PendingDispatch, Resource, TimedDispatchResult, VyreBackend,
};
use vyre_driver_reference as _;
use vyre_foundation::ir::Program;
use vyre_foundation::kernel::Kernel;

/// What is wrong with a backend.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum How {
    /// Nothing.
    Right,
    /// The first byte of the last output has a bit flipped.
    Flips,
    /// Whatever is refused is a success without outputs.
    TakesAnything,
    /// Pipelines do not look at the config of a call.
    Lenient,
    /// A dispatch on resident data is a download, a dispatch and an upload.
    Torn,
    /// Uploads begin at the beginning.
    Offsets,
    /// Nothing is freed, and nothing found in the cache.
    Leaks,
    /// Its device flips bits, and recovers without a new generation.
    Device,
}

struct Wrong {
    inner: Arc<dyn VyreBackend>,
    how: How,
    misses: AtomicU64,
}

type Bytes = Vec<Vec<u8>>;

impl Wrong {
    fn bytes(&self, result: Result<Bytes, BackendError>) -> Result<Bytes, BackendError> {
        match (self.how, result) {
            (How::Flips, Ok(mut outputs)) => {
                if let Some(byte) = outputs.last_mut().and_then(|output| output.first_mut()) {
                    *byte ^= 1;
                }
                Ok(outputs)
            }
            (How::TakesAnything, Err(_)) => Ok(Vec::new()),
            (_, result) => result,
        }
    }

    fn nothing<T: Default>(&self, result: Result<T, BackendError>) -> Result<T, BackendError> {
        if self.how == How::TakesAnything { Ok(result.unwrap_or_default()) } else { result }
    }
}

impl VyreBackend for Wrong {
    fn id(&self) -> &'static str {
        "wrong"
    }

    fn dispatch(&self, program: &Program, inputs: &[Vec<u8>], config: &DispatchConfig) -> Result<Bytes, BackendError> {
        self.bytes(self.inner.dispatch(program, inputs, config))
    }

    fn compile_native(
        &self,
        program: &Program,
        config: &DispatchConfig,
    ) -> Result<Option<Arc<dyn CompiledPipeline>>, BackendError> {
        self.misses.fetch_add(1, Ordering::Relaxed);
        let Some(inner) = self.inner.compile_native(program, config)? else { return Ok(None) };
        Ok(Some(match self.how {
            How::Flips | How::Lenient => Arc::new(WrongPipeline { inner, how: self.how }),
            How::Right | How::TakesAnything | How::Torn | How::Offsets | How::Leaks | How::Device => inner,
        }))
    }

    fn pipeline_cache_snapshot(&self) -> Option<PipelineCacheSnapshot> {
        if self.how == How::Leaks {
            return Some(PipelineCacheSnapshot { hits: 0, misses: self.misses.load(Ordering::Relaxed) });
        }
        self.inner.pipeline_cache_snapshot()
    }

    fn allocate_resident(&self, bytes: usize) -> Result<Resource, BackendError> {
        self.inner.allocate_resident(bytes)
    }

    fn upload_resident_at_many(&self, uploads: &[(&Resource, usize, &[u8])]) -> Result<(), BackendError> {
        let at = |offset: usize| if self.how == How::Offsets { 0 } else { offset };
        let uploads: Vec<(&Resource, usize, &[u8])> =
            uploads.iter().map(|(to, offset, bytes)| (*to, at(*offset), *bytes)).collect();
        self.nothing(self.inner.upload_resident_at_many(&uploads))
    }

    fn download_resident(&self, resource: &Resource) -> Result<Vec<u8>, BackendError> {
        self.nothing(self.inner.download_resident(resource))
    }

    fn download_resident_ranges(&self, ranges: &[(&Resource, usize, usize)]) -> Result<Bytes, BackendError> {
        self.nothing(self.inner.download_resident_ranges(ranges))
    }

    fn free_resident(&self, resource: Resource) -> Result<(), BackendError> {
        if self.how == How::Leaks {
            return Ok(());
        }
        self.nothing(self.inner.free_resident(resource))
    }

    fn submit_resident(
        &self,
        steps: &[ResidentStep<'_>],
        config: &DispatchConfig,
    ) -> Result<Box<dyn PendingDispatch>, BackendError> {
        let outputs = self.bytes(self.inner.submit_resident(steps, config)?.wait())?;
        Ok(Box::new(ReadyPending { outputs }))
    }

    fn dispatch_resident_timed(
        &self,
        program: &Program,
        resources: &[Resource],
        config: &DispatchConfig,
    ) -> Result<TimedDispatchResult, BackendError> {
        if self.how == How::Torn {
            return torn(&*self.inner, program, resources, config);
        }
        let result = self.inner.dispatch_resident_timed(program, resources, config);
        if self.how == How::Flips
            && result.is_ok()
            && let Some(resource @ Resource::Resident(_)) = resources.last()
        {
            let mut bytes = self.inner.download_resident(resource)?;
            if let Some(byte) = bytes.first_mut() {
                *byte ^= 1;
            }
            self.inner.upload_resident(resource, &bytes)?;
        }
        match result {
            Ok(timed) => Ok(TimedDispatchResult { outputs: self.bytes(Ok(timed.outputs))?, ..timed }),
            Err(error) => {
                let outputs = self.bytes(Err(error))?;
                Ok(TimedDispatchResult { outputs, wall_ns: 0, device_ns: None, ran: None })
            }
        }
    }

    fn backend_metric_snapshot(&self) -> Vec<(&'static str, u64)> {
        self.inner.backend_metric_snapshot()
    }

    fn supports_grid_sync(&self) -> bool {
        true
    }

    fn device(&self) -> Option<Arc<dyn Device>> {
        let inner = self.inner.device()?;
        Some(if self.how == How::Device { Arc::new(WrongDevice(inner)) } else { inner })
    }
}

fn torn(
    backend: &dyn VyreBackend,
    program: &Program,
    resources: &[Resource],
    config: &DispatchConfig,
) -> Result<TimedDispatchResult, BackendError> {
    let mut borrowed = Vec::new();
    for resource in resources {
        borrowed.push(match resource {
            Resource::Resident(_) => Resource::Borrowed(backend.download_resident(resource)?),
            Resource::Borrowed(bytes) => Resource::Borrowed(bytes.clone()),
        });
    }
    let timed = backend.dispatch_resident_timed(program, &borrowed, config)?;
    std::thread::yield_now();
    let written = program.interface().bound.iter().zip(resources).filter(|(i, _)| program.buffers()[**i].access.is_output());
    for ((_, resource), bytes) in written.zip(&timed.outputs) {
        backend.upload_resident(resource, bytes)?;
    }
    Ok(TimedDispatchResult { outputs: Vec::new(), ..timed })
}

struct WrongPipeline {
    inner: Arc<dyn CompiledPipeline>,
    how: How,
}

impl CompiledPipeline for WrongPipeline {
    fn id(&self) -> &str {
        self.inner.id()
    }

    fn dispatch(&self, inputs: &[Vec<u8>], config: &DispatchConfig) -> Result<Bytes, BackendError> {
        let nothing = DispatchConfig::default();
        let mut outputs = self.inner.dispatch(inputs, if self.how == How::Lenient { &nothing } else { config })?;
        if let (How::Flips, Some(byte)) = (self.how, outputs.last_mut().and_then(|output| output.first_mut())) {
            *byte ^= 1;
        }
        Ok(outputs)
    }

    fn dispatch_persistent_handles(&self, inputs: &[Resource], config: &DispatchConfig) -> Result<Bytes, BackendError> {
        self.inner.dispatch_persistent_handles(inputs, config)
    }
}

struct WrongDevice(Arc<dyn Device>);

impl Device for WrongDevice {
    fn info(&self) -> Arc<DeviceInfo> {
        self.0.info()
    }

    fn compile(&self, kernel: &Arc<Kernel>, options: &CodeOptions) -> Result<Code, DeviceError> {
        self.0.compile(kernel, options)
    }

    fn allocate(&self, bytes: u64) -> Result<Memory, DeviceError> {
        self.0.allocate(bytes)
    }

    fn run(&self, call: &mut Call<'_, '_>, deadline: Deadline) -> Result<Ran, DeviceError> {
        let ran = self.0.run(call, deadline)?;
        for binding in call.bindings.iter_mut() {
            if let Binding::Out(bytes) = binding
                && let Some(byte) = bytes.first_mut()
            {
                *byte ^= 1;
            }
        }
        Ok(ran)
    }

    fn submit(&self, steps: Vec<Step>, deadline: Deadline) -> Result<Box<dyn Submission>, DeviceError> {
        self.0.submit(steps, deadline)
    }

    fn recover(&self) -> Result<Generation, DeviceError> {
        self.0.recover()
    }
}

fn open(how: How) -> Box<dyn VyreBackend> {
    Box::new(Wrong { inner: Arc::from(acquire("bulk").expect("it is registered")), how, misses: AtomicU64::new(0) })
}

/// The tests of these names, one by one on a backend.
fn run(how: How, wanted: impl Fn(&str) -> bool) -> Vec<(String, Result<Done, String>)> {
    let all = tests(move || open(how)).into_iter().filter(|test| wanted(test.name()));
    all.map(|test| (test.name().to_string(), test.run())).collect()
}

/// Which wrong backend makes the tests of these names fail.
const FAILS: &[(How, &[&str])] = &[
    (
        How::Flips,
        &[
            "checks/run/atomics/add",
            "checks/readme",
            "forms/",
            "pipelines/",
            "threads/shared-backend",
            "mistakes/without-one-it-runs",
            "resident/what-is-not-resident-comes-back",
            "resident/some-buffers-or-all",
            "resident/dispatches-see-what-those-before-left",
            "resident/grid-barriers-in-several-dispatches",
        ],
    ),
    (
        How::TakesAnything,
        &[
            "checks/run/launch/E0705-length-unknown",
            "checks/validate/E0501-if-on-gid",
            "mistakes/a-",
            "mistakes/an-",
            "mistakes/another",
            "mistakes/in-",
            "mistakes/longer",
            "mistakes/no-",
            "mistakes/outputs",
            "mistakes/shorter",
            "mistakes/two",
            "resident/uploads-happen-all-or-not-at-all",
            "resident/handles-that-are-not-live",
            "resident/one-handle-twice",
            "resident/outputs-are-zero-at-the-start",
            "resident/a-trap-leaves-it-alone",
        ],
    ),
    (How::Lenient, &["mistakes/a-pipeline-cannot-become-another"]),
    (How::Torn, &["threads/shared-memory"]),
    (How::Offsets, &["resident/memory-holds-what-is-put-into-it"]),
    (How::Leaks, &["allocations/"]),
    (How::Device, &["faults/"]),
];

#[test]
fn every_test_fails_on_a_backend_that_is_wrong_there() {
    let mut failed = BTreeSet::new();
    for (how, names) in FAILS {
        let wanted = |name: &str| names.iter().any(|prefix| name.starts_with(prefix));
        for (name, outcome) in run(*how, wanted) {
            // What the lenient one is for is not found by the one that takes anything.
            let is_other = *how == How::TakesAnything && name == "mistakes/a-pipeline-cannot-become-another";
            assert!(outcome.is_err() || is_other, "{name} on {how:?}: {outcome:?}");
            if outcome.is_err() {
                failed.insert(name);
            }
        }
    }
    let all: BTreeSet<String> = tests(|| open(How::Right)).iter().map(|test| test.name().to_string()).collect();
    let never: Vec<&String> = all.difference(&failed).filter(|name| !name.starts_with("checks/")).collect();
    assert!(never.is_empty(), "no wrong backend is found by {never:?}");
}

#[test]
fn all_but_check_files_pass_on_the_same_backend_made_right() {
    for (name, outcome) in run(How::Right, |name| !name.starts_with("checks/")) {
        assert_eq!(outcome, Ok(Done::Passed), "{name}");
    }
}

#[test]
fn the_check_files_of_the_crate_are_those_of_the_project() {
    assert!(EMBEDDED.len() > 1000, "{} files", EMBEDDED.len());
    let readme = EMBEDDED.iter().find(|(name, _)| *name == "readme.vyre").expect("it explains the format");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../checks/readme.vyre");
    assert_eq!(std::fs::read(path).expect("it is there"), readme.1);
}

#[test]
fn a_backend_that_does_not_open_fails_every_test() {
    let all = tests(|| Err::<Box<dyn VyreBackend>, _>("no driver"));
    for test in all.into_iter().filter(|test| !test.name().starts_with("checks/")) {
        let name = test.name().to_string();
        let said = test.run().expect_err(&name);
        assert!(said.contains("cannot be opened: no driver"), "{name}: {said}");
    }
}

mod in_groups {
    fn bulk() -> Result<Box<dyn vyre_driver::VyreBackend>, vyre_driver::BackendError> {
        vyre_driver::backend::registry::acquire("bulk")
    }

    vyre_conform::backend_tests!(bulk);
}
