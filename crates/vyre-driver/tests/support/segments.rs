//! Grid barriers split on a backend that has none, against the reference's own.

use super::device::failure;
use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use vyre_driver::backend::private::Sealed;
use vyre_driver::grid_sync::{
    contains_grid_sync, dispatch_resident_with_grid_sync_split_timed, dispatch_with_grid_sync_split,
    dispatch_with_grid_sync_split_timed,
};
use vyre_driver::{BackendError, DispatchConfig, Resource, TimedDispatchResult, VyreBackend};
use vyre_foundation::ir::{Access, BufferDecl, Node, Program, SpecValue};
use vyre_foundation::launch::{check_inputs, plan};
use vyre_foundation::memory_model::MemoryOrdering;
use vyre_foundation::text::parse;
use vyre_reference::{Options, Schedule, run};

/// Runs programs without grid barriers on the plain interpreter, and keeps those it ran.
pub struct Segments {
    pub schedule: Schedule,
    /// Whether it has resident data beside resident dispatch.
    pub allocates: bool,
    pub max_bytes: u64,
    /// The call that fails with a lost device.
    pub fails_at: Option<usize>,
    pub ran: Mutex<Vec<Ran>>,
    pub resident: Mutex<HashMap<u64, Vec<u8>>>,
    pub allocated: AtomicU64,
}

pub struct Ran {
    pub program: Program,
    pub inputs: Vec<Vec<u8>>,
    pub config: DispatchConfig,
}

impl Default for Segments {
    fn default() -> Self {
        Segments {
            schedule: Schedule::Forward,
            allocates: true,
            max_bytes: 1 << 30,
            fails_at: None,
            ran: Mutex::default(),
            resident: Mutex::default(),
            allocated: AtomicU64::new(0),
        }
    }
}

impl Segments {
    pub fn count(&self) -> usize {
        self.ran.lock().unwrap().len()
    }

    pub fn programs(&self) -> Vec<Program> {
        self.ran.lock().unwrap().iter().map(|ran| ran.program.clone()).collect()
    }

    pub fn keep(&self, bytes: Vec<u8>) -> Resource {
        let handle = self.allocated.fetch_add(1, Ordering::Relaxed);
        self.resident.lock().unwrap().insert(handle, bytes);
        Resource::Resident(handle)
    }

    fn lacks(&self, feature: &str) -> BackendError {
        BackendError::UnsupportedFeature { feature: feature.into(), backend: self.id().into() }
    }
}

impl Sealed for Segments {}

impl VyreBackend for Segments {
    fn id(&self) -> &'static str {
        "segments"
    }

    fn dispatch(&self, _: &Program, _: &[Vec<u8>], _: &DispatchConfig) -> Result<Vec<Vec<u8>>, BackendError> {
        panic!("segments are dispatched on borrowed bytes");
    }

    fn dispatch_borrowed(
        &self,
        program: &Program,
        inputs: &[&[u8]],
        config: &DispatchConfig,
    ) -> Result<Vec<Vec<u8>>, BackendError> {
        assert!(!contains_grid_sync(program), "{program}");
        assert!(config.specialization.is_empty());
        let mut ran = self.ran.lock().unwrap();
        let owned = inputs.iter().map(|input| input.to_vec()).collect();
        ran.push(Ran { program: program.clone(), inputs: owned, config: config.clone() });
        if self.fails_at == Some(ran.len() - 1) {
            return Err(BackendError::DeviceLost { reason: "injected".into() });
        }
        drop(ran);
        check_inputs(program, &inputs.iter().map(|input| input.len() as u64).collect::<Vec<_>>())?;
        let options = Options { launch: config.launch(), schedule: self.schedule.clone(), ..Options::default() };
        run(program, inputs, &options).map_err(failure)
    }

    fn allocate_resident(&self, byte_len: usize) -> Result<Resource, BackendError> {
        if self.allocates { Ok(self.keep(vec![0xAA; byte_len])) } else { Err(self.lacks("resident data")) }
    }

    fn upload_resident_at_many(&self, uploads: &[(&Resource, usize, &[u8])]) -> Result<(), BackendError> {
        for (resource, offset, bytes) in uploads {
            let Resource::Resident(handle) = resource else { panic!("only what is resident is uploaded to") };
            let mut resident = self.resident.lock().unwrap();
            resident.get_mut(handle).expect("it is there")[*offset..*offset + bytes.len()].copy_from_slice(bytes);
        }
        Ok(())
    }

    fn download_resident(&self, resource: &Resource) -> Result<Vec<u8>, BackendError> {
        let Resource::Resident(handle) = resource else { panic!("only what is resident is downloaded") };
        Ok(self.resident.lock().unwrap()[handle].clone())
    }

    fn download_resident_ranges(&self, ranges: &[(&Resource, usize, usize)]) -> Result<Vec<Vec<u8>>, BackendError> {
        let range = |(resource, offset, length): &(&Resource, usize, usize)| {
            self.download_resident(resource).map(|bytes| bytes[*offset..*offset + *length].to_vec())
        };
        ranges.iter().map(range).collect()
    }

    fn free_resident(&self, resource: Resource) -> Result<(), BackendError> {
        let Resource::Resident(handle) = resource else { panic!("only what is resident is freed") };
        self.resident.lock().unwrap().remove(&handle).map(|_| ()).ok_or_else(|| BackendError::new("freed twice"))
    }

    fn dispatch_resident_timed(
        &self,
        program: &Program,
        resources: &[Resource],
        config: &DispatchConfig,
    ) -> Result<TimedDispatchResult, BackendError> {
        let mut bound: Vec<&BufferDecl> = program.buffers().iter().filter(|decl| decl.access != Access::Workgroup).collect();
        bound.sort_by_key(|decl| decl.binding);
        assert_eq!(bound.len(), resources.len());
        let bytes = |resource: &Resource| match resource {
            Resource::Borrowed(bytes) => bytes.clone(),
            Resource::Resident(handle) => self.resident.lock().unwrap()[handle].clone(),
        };
        let inputs = bound.iter().zip(resources).filter(|(decl, _)| decl.access.is_input());
        let inputs: Vec<Vec<u8>> = inputs.map(|(_, resource)| bytes(resource)).collect();
        let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
        let results = self.dispatch_borrowed(program, &inputs, config)?;
        let written = bound.iter().zip(resources).filter(|(decl, _)| decl.access.is_output());
        let mut outputs = Vec::new();
        for ((decl, resource), result) in written.zip(results) {
            match resource {
                Resource::Borrowed(_) => outputs.push(result),
                Resource::Resident(handle) => {
                    let old = self.resident.lock().unwrap().insert(*handle, result.clone());
                    assert_eq!(old.map(|old| old.len()), Some(result.len()), "{:?} changed its length", decl.name);
                }
            }
        }
        Ok(TimedDispatchResult { outputs, wall_ns: 5, device_ns: Some(3), ran: None })
    }

    fn max_storage_buffer_bytes(&self) -> u64 {
        self.max_bytes
    }
}

pub type Outcome = Result<Vec<Vec<u8>>, BackendError>;

/// What the program means.
pub fn native(program: &Program, inputs: &[&[u8]], config: &DispatchConfig) -> Outcome {
    let specialization: BTreeMap<String, SpecValue> =
        config.specialization.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
    run(program, inputs, &Options { launch: config.launch(), specialization, ..Options::default() }).map_err(failure)
}

/// The same in segments on resources: those whose number `is_resident` accepts stay on the device.
pub fn resident(
    program: &Program,
    inputs: &[&[u8]],
    config: &DispatchConfig,
    allocates: bool,
    is_resident: fn(usize) -> bool,
) -> Outcome {
    let backend = Segments { allocates, ..Segments::default() };
    let specialized = config.specialization.apply(program)?;
    let sizes: Vec<u64> = inputs.iter().map(|input| input.len() as u64).collect();
    let launch = plan(&specialized, &sizes, &config.launch())?;
    let mut bound: Vec<usize> = (0..specialized.buffers().len()).collect();
    bound.retain(|i| specialized.buffers()[*i].access != Access::Workgroup);
    bound.sort_by_key(|i| specialized.buffers()[*i].binding);
    let mut given = inputs.iter();
    let resources: Vec<Resource> = bound
        .iter()
        .enumerate()
        .map(|(n, i)| {
            let bytes = match specialized.buffers()[*i].access.is_input() {
                true => given.next().expect("an input per input buffer").to_vec(),
                false => vec![0x55; launch.bytes[*i] as usize],
            };
            if is_resident(n) { backend.keep(bytes) } else { Resource::Borrowed(bytes) }
        })
        .collect();
    let before = backend.resident.lock().unwrap().clone();
    let result = dispatch_resident_with_grid_sync_split_timed(&backend, program, &resources, config);
    if let Err(BackendError::Trap { .. }) = &result {
        assert!(*backend.resident.lock().unwrap() == before, "a trap changed resident data\n{program}");
    }
    let held = resources.iter().filter(|resource| matches!(resource, Resource::Resident(_))).count();
    assert_eq!(backend.resident.lock().unwrap().len(), held, "hidden buffers are given back");
    let mut returned = result?.outputs.into_iter();
    let writable = bound.iter().zip(&resources).filter(|(i, _)| specialized.buffers()[**i].access.is_output());
    let outputs = writable.map(|(_, resource)| match resource {
        Resource::Borrowed(_) => returned.next().expect("bytes for what is not resident"),
        Resource::Resident(_) => backend.download_resident(resource).expect("it is there"),
    });
    let outputs = outputs.collect();
    assert_eq!(returned.next(), None, "nothing comes back for what is resident");
    Ok(outputs)
}

/// Compares segments with the whole, in every form and under several schedules; gives what both give.
pub fn agree(program: &Program, inputs: &[&[u8]], config: &DispatchConfig) -> Outcome {
    let expected = native(program, inputs, config);
    for schedule in [Schedule::Forward, Schedule::Reverse, Schedule::Random(7), Schedule::Interleave] {
        let backend = Segments { schedule, ..Segments::default() };
        let found = dispatch_with_grid_sync_split(&backend, program, inputs, config);
        assert_eq!(found, expected, "{program}\nsegments\n{:?}", backend.programs());
    }
    let timed = dispatch_with_grid_sync_split_timed(&Segments::default(), program, inputs, config);
    assert_eq!(timed.map(|timed| timed.outputs), expected, "{program}");
    assert_eq!(resident(program, inputs, config, true, |_| true), expected, "resident\n{program}");
    assert_eq!(resident(program, inputs, config, false, |_| true), expected, "resident, state borrowed\n{program}");
    assert_eq!(resident(program, inputs, config, true, |n| n % 2 == 0), expected, "half resident\n{program}");
    assert_eq!(resident(program, inputs, config, true, |_| false), expected, "only the state resident\n{program}");
    expected
}

pub fn program(text: &str) -> Program {
    parse("test", text).unwrap_or_else(|report| panic!("{report}"))
}

pub fn grid(x: u32, y: u32, z: u32) -> DispatchConfig {
    DispatchConfig { grid_override: Some([x, y, z]), ..DispatchConfig::default() }
}

pub fn words(values: impl IntoIterator<Item = u32>) -> Vec<u8> {
    values.into_iter().flat_map(u32::to_le_bytes).collect()
}

pub fn unwords(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
}

/// The outputs of a program without inputs, as words.
pub fn agree_words(text: &str, config: &DispatchConfig) -> Vec<Vec<u32>> {
    let outputs = agree(&program(text), &[], config).expect("it does not trap");
    outputs.iter().map(|bytes| unwords(bytes)).collect()
}

pub fn hidden(program: &Program) -> usize {
    program.buffers().iter().filter(|decl| decl.name.starts_with('$')).count()
}

pub fn grid_sync() -> Node {
    Node::barrier_with_ordering(MemoryOrdering::GridSync)
}
