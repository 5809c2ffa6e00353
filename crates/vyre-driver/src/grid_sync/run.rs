//! Running segments one after the other.
//!
//! The launch is planned once, for the whole program, and every segment is told its grid. What the caller says about lengths of
//! outputs goes to the first segment, which has the same buffers as the program; after it their bytes say how long they are.

use super::split::{Segment, Source, Split, split};
use super::{State, contains_grid_sync};
use crate::backend::{
    BackendError, DispatchConfig, OutputBuffers, Resource, TimedDispatchResult, VyreBackend, expect_outputs, fill_outputs,
};
use crate::device::Ran;
use crate::launch::{Planned, require_determinism};
use crate::observability::{self, total, total_borrowed};
use crate::resident::bind;
use crate::specialization::SpecMap;
use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use vyre_foundation::Report;
use vyre_foundation::ir::{Access, Fingerprint, Program};
use vyre_foundation::launch::{Launch, overridden_geometry, plan};
use vyre_spec::ErrorCode;

/// Runs a program with grid barriers as one dispatch per segment. A program without any is one dispatch, as it is.
///
/// # Errors
///
/// What the first segment to fail gives, or the trap of the smallest invocation of all segments. Nothing has run if the program
/// cannot be split or what crosses its barriers is larger than the backend or the caller allows.
pub fn dispatch_with_grid_sync_split(
    backend: &dyn VyreBackend,
    program: &Program,
    inputs: &[&[u8]],
    config: &DispatchConfig,
) -> Result<OutputBuffers, BackendError> {
    observability::of_backend(backend.id()).dispatch(config, total(inputs), || {
        if !contains_grid_sync(program) {
            return backend.dispatch_borrowed(program, inputs, config);
        }
        run_borrowed(backend, program, inputs, config, |program, inputs, config| {
            backend.dispatch_borrowed(program, inputs, config)
        })
    })
}

/// The same, and how long the segments took together.
///
/// # Errors
///
/// See [`dispatch_with_grid_sync_split`].
pub fn dispatch_with_grid_sync_split_timed(
    backend: &dyn VyreBackend,
    program: &Program,
    inputs: &[&[u8]],
    config: &DispatchConfig,
) -> Result<TimedDispatchResult, BackendError> {
    observability::of_backend(backend.id()).dispatch(config, total(inputs), || {
        if !contains_grid_sync(program) {
            return backend.dispatch_borrowed_timed(program, inputs, config);
        }
        let mut times = Times::default();
        let outputs = run_borrowed(backend, program, inputs, config, |program, inputs, config| {
            backend.dispatch_borrowed_timed(program, inputs, config).map(|result| times.add(result))
        })?;
        Ok(times.result(outputs))
    })
}

/// The same, into the caller's buffers: their memory is kept where it is large enough, and nothing changes in them on failure.
///
/// # Errors
///
/// See [`dispatch_with_grid_sync_split`].
pub fn dispatch_with_grid_sync_split_into(
    backend: &dyn VyreBackend,
    program: &Program,
    inputs: &[&[u8]],
    config: &DispatchConfig,
    outputs: &mut OutputBuffers,
) -> Result<(), BackendError> {
    observability::of_backend(backend.id()).dispatch_into(config, total(inputs), outputs, |outputs| {
        if !contains_grid_sync(program) {
            return backend.dispatch_borrowed_into(program, inputs, config, outputs);
        }
        fill_outputs(outputs, &dispatch_with_grid_sync_split(backend, program, inputs, config)?);
        Ok(())
    })
}

/// What a program that may trap can change on the device, as it is before: segments before the one that traps have written already.
fn before_traps(
    backend: &dyn VyreBackend,
    program: &Program,
    held: &[Option<Cow<'_, Resource>>],
) -> Result<Vec<(Resource, Vec<u8>)>, BackendError> {
    let mut before = Vec::new();
    if program.validated().map_err(Clone::clone)?.kernel().uses.trap {
        for i in &program.interface().outputs {
            let Some(resource @ Resource::Resident(_)) = held[*i].as_deref() else { continue };
            match backend.download_resident(resource) {
                Ok(bytes) => before.push((resource.clone(), bytes)),
                // Nobody can see what such a backend holds.
                Err(BackendError::UnsupportedFeature { .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(before)
}

/// The same on resources, one per input and output buffer in the order of binding numbers; see
/// [`VyreBackend::dispatch_resident_timed`]. What crosses barriers stays on the device too, if the backend has resident data.
///
/// # Errors
///
/// See [`dispatch_with_grid_sync_split`]. Resident buffers are as before if the program trapped; after other failures in the middle of it they
/// are as the segments that ran have left them.
pub fn dispatch_resident_with_grid_sync_split_timed(
    backend: &dyn VyreBackend,
    program: &Program,
    resources: &[Resource],
    config: &DispatchConfig,
) -> Result<TimedDispatchResult, BackendError> {
    observability::of_backend(backend.id()).dispatch(config, total_borrowed(resources), || {
        if !contains_grid_sync(program) {
            return backend.dispatch_resident_timed(program, resources, config);
        }
        run_resident(backend, program, resources, config)
    })
}

fn run_resident(
    backend: &dyn VyreBackend,
    program: &Program,
    resources: &[Resource],
    config: &DispatchConfig,
) -> Result<TimedDispatchResult, BackendError> {
    let dispatch = Dispatch::new(program, config)?;
    let program = &dispatch.split.program;
    let mut held: Vec<Option<Cow<'_, Resource>>> = vec![None; program.buffers().len()];
    for (i, resource) in bind(program, resources)? {
        held[i] = Some(Cow::Borrowed(resource));
    }
    let launch = match dispatch.needs_launch() {
        true => Some(resident_launch(backend, program, &held, config)?),
        false => None,
    };
    // Resident data is not looked at before the dispatch.
    let words = dispatch.check(backend, launch.as_ref(), &[])?;
    let before = before_traps(backend, program, &held)?;
    let mut taken: Option<Hidden<'_>> = None;
    let mut times = Times::default();
    let ran = dispatch.run(launch.as_ref(), &words, |segment, config, words| {
        let given = match segment.gives {
            Some(_) => Some(Hidden::new(backend, words)?),
            None => None,
        };
        let nothing = Resource::Borrowed(Vec::new());
        let resource = |i: &usize| match segment.sources[*i] {
            Source::Buffer(n) => held[n].as_deref().unwrap_or(&nothing).clone(),
            Source::Taken => taken.as_ref().map_or(&nothing, |state| &state.resource).clone(),
            Source::Given => given.as_ref().map_or(&nothing, |state| &state.resource).clone(),
        };
        let resources: Vec<Resource> = segment.program.interface().bound.iter().map(resource).collect();
        let results = times.add(backend.dispatch_resident_timed(&segment.program, &resources, config)?);
        taken = given;
        // What is resident was changed in place, and nothing comes back for it.
        let is_borrowed = |resource: &Resource| matches!(resource, Resource::Borrowed(_));
        let returned: Vec<Source> = segment
            .program
            .interface()
            .outputs
            .iter()
            .map(|i| segment.sources[*i])
            .filter(|source| match source {
                Source::Buffer(n) => held[*n].as_deref().is_some_and(is_borrowed),
                Source::Given => taken.as_ref().is_some_and(|state| is_borrowed(&state.resource)),
                Source::Taken => false,
            })
            .collect();
        expect_outputs(backend, returned.len(), results.len())?;
        for (source, bytes) in returned.into_iter().zip(results) {
            match source {
                Source::Buffer(n) => held[n] = Some(Cow::Owned(Resource::Borrowed(bytes))),
                Source::Given => taken.iter_mut().for_each(|state| state.resource = Resource::Borrowed(bytes.clone())),
                // It is only read.
                Source::Taken => {}
            }
        }
        match (&segment.gives, &taken, &launch) {
            (Some(state), Some(hidden), Some(launch)) => state.first_trap(launch, |first, count| hidden.read(first, count)),
            (_, _, _) => Ok(None),
        }
    });
    if let Err(BackendError::Trap { .. }) = &ran {
        for (resource, bytes) in &before {
            backend.upload_resident(resource, bytes)?;
        }
    }
    ran?;
    let outputs = program.interface().outputs.iter().filter_map(|i| match held[*i].take().map(Cow::into_owned) {
        Some(Resource::Borrowed(bytes)) => Some(bytes),
        Some(Resource::Resident(_)) | None => None,
    });
    Ok(times.result(outputs.collect()))
}

fn run_borrowed(
    backend: &dyn VyreBackend,
    program: &Program,
    inputs: &[&[u8]],
    config: &DispatchConfig,
    mut run: impl FnMut(&Program, &[&[u8]], &DispatchConfig) -> Result<OutputBuffers, BackendError>,
) -> Result<OutputBuffers, BackendError> {
    let dispatch = Dispatch::new(program, config)?;
    let program = &dispatch.split.program;
    let sizes: Vec<u64> = inputs.iter().map(|input| input.len() as u64).collect();
    let launch = match plan(program, &sizes, &config.launch()) {
        Ok(launch) => Some(launch),
        // Bytes of other lengths than declared are the backend's to judge: the first segment brings all of them to it.
        Err(report) if !dispatch.needs_launch() && report.codes().all(|code| code == ErrorCode::E0703) => None,
        Err(report) => return Err(report.into()),
    };
    let words = dispatch.check(backend, launch.as_ref(), inputs)?;
    let mut held: Vec<Cow<'_, [u8]>> = vec![Cow::Borrowed(&[][..]); program.buffers().len()];
    for (i, bytes) in program.interface().inputs.iter().zip(inputs) {
        held[*i] = Cow::Borrowed(bytes);
    }
    let mut taken: Vec<u8> = Vec::new();
    dispatch.run(launch.as_ref(), &words, |segment, config, _| {
        let interface = segment.program.interface();
        let bytes = |i: &usize| match segment.sources[*i] {
            Source::Buffer(n) => &*held[n],
            Source::Taken => &taken,
            // An output takes no bytes.
            Source::Given => &[],
        };
        let inputs: Vec<&[u8]> = interface.inputs.iter().map(bytes).collect();
        let results = run(&segment.program, &inputs, config)?;
        expect_outputs(backend, interface.outputs.len(), results.len())?;
        for (i, bytes) in interface.outputs.iter().zip(results) {
            match segment.sources[*i] {
                Source::Buffer(n) => held[n] = Cow::Owned(bytes),
                Source::Given => taken = bytes,
                // It is only read.
                Source::Taken => {}
            }
        }
        match (&segment.gives, &launch) {
            (Some(state), Some(launch)) => state.first_trap(launch, |first, count| slice(&taken, first, count)),
            (_, _) => Ok(None),
        }
    })?;
    Ok(program.interface().outputs.iter().map(|i| std::mem::take(&mut held[*i]).into_owned()).collect())
}

/// A program that was split, and what the caller says about its dispatch.
struct Dispatch<'a> {
    split: Arc<Split>,
    config: &'a DispatchConfig,
    start: Instant,
}

/// A trap's tag, and its invocation.
type Trap = (u32, [u32; 3]);

impl<'a> Dispatch<'a> {
    fn new(program: &Program, config: &'a DispatchConfig) -> Result<Self, BackendError> {
        let start = Instant::now();
        let program = config.specialization.apply(program)?;
        let split = recent_split(&program)?;
        let kernel = program.validated().map_err(Clone::clone)?.kernel();
        if let Some(size) = config.workgroup_override {
            // Segments have no grid barrier: the program is the one to ask.
            overridden_geometry(kernel, [1; 3], size).map_err(|mistakes| Report::about(&program, mistakes))?;
        }
        Ok(Dispatch { split, config, start })
    }

    fn states(&self) -> impl Iterator<Item = &State> {
        self.split.segments.iter().filter_map(|segment| segment.gives.as_ref())
    }

    fn needs_launch(&self) -> bool {
        self.states().next().is_some() || self.config.require_deterministic == Some(true)
    }

    /// Everything that can be refused before anything runs. Gives the length of the state that each segment hands on.
    fn check(&self, backend: &dyn VyreBackend, launch: Option<&Launch>, inputs: &[&[u8]]) -> Result<Vec<u32>, BackendError> {
        self.remaining()?;
        let program = &self.split.program;
        let planned = launch.map_or(Planned::Grid(None), |launch| Planned::Launch(launch, inputs));
        require_determinism(program, planned, self.config)?;
        let limits = [
            (backend.max_storage_buffer_bytes(), "the backend binds"),
            (self.config.launch().max_output_bytes, "`max_output_bytes` allows"),
            (u64::from(u32::MAX) * 4, "elements of a buffer can be counted in"),
        ];
        let words = self.split.segments.iter().map(|segment| match (&segment.gives, launch) {
            (Some(state), Some(launch)) => {
                let words = state.words(launch);
                let bytes = words.saturating_mul(4);
                if let Some((limit, who)) = limits.iter().find(|(limit, _)| bytes > *limit) {
                    return Err(BackendError::InvalidProgram {
                        fix: format!(
                            "the values that {} invocations carry across a grid barrier take {bytes} bytes, and {who} {limit}. \
                             Fix: dispatch a smaller grid, or keep fewer values across the barrier",
                            launch.invocations()
                        ),
                    });
                }
                // It is below the last of the limits.
                Ok(u32::try_from(words).unwrap_or(u32::MAX))
            }
            (_, _) => Ok(0),
        });
        let words = words.collect::<Result<_, _>>()?;
        // A segment that the backend cannot run is refused before another one has written anything. What is compiled here is kept.
        let config = DispatchConfig { specialization: SpecMap::new(), require_deterministic: None, ..self.config.clone() };
        for segment in &self.split.segments {
            backend.compile_native(&segment.program, &config)?;
        }
        Ok(words)
    }

    /// Runs all segments. `dispatch` runs one, told the length of the state it hands on, and gives the trap it recorded.
    fn run(
        &self,
        launch: Option<&Launch>,
        words: &[u32],
        mut dispatch: impl FnMut(&Segment, &DispatchConfig, u32) -> Result<Option<Trap>, BackendError>,
    ) -> Result<(), BackendError> {
        let mut first: Option<Trap> = None;
        let mut trapped = |trap: Option<Trap>| {
            let order = |(_, [x, y, z]): &Trap| [*z, *y, *x];
            first = first.into_iter().chain(trap).min_by_key(order);
            first
        };
        for (n, (segment, words)) in self.split.segments.iter().zip(words).enumerate() {
            let _in = tracing::debug_span!("segment", number = n, of = self.split.segments.len()).entered();
            let config = self.segment_config(n, segment, launch, *words)?;
            match dispatch(segment, &config, *words) {
                Ok(trap) => {
                    trapped(trap);
                }
                // Only the last segment that does something traps by itself.
                Err(BackendError::Trap { tag, invocation }) => {
                    trapped(Some((tag, invocation)));
                    break;
                }
                Err(BackendError::Timeout { limit }) => {
                    return Err(BackendError::Timeout { limit: self.config.timeout.unwrap_or(limit) });
                }
                Err(error) => return Err(error),
            }
        }
        match trapped(None) {
            Some((tag, invocation)) => Err(BackendError::Trap { tag, invocation }),
            None => Ok(()),
        }
    }

    fn segment_config(
        &self,
        n: usize,
        segment: &Segment,
        launch: Option<&Launch>,
        words: u32,
    ) -> Result<DispatchConfig, BackendError> {
        let mut output_counts = if n == 0 { self.config.output_counts.clone() } else { BTreeMap::new() };
        let mut max_output_bytes = self.config.max_output_bytes;
        for (decl, source) in segment.program.buffers().iter().zip(&segment.sources) {
            if *source == Source::Given {
                output_counts.insert(decl.name.as_str().to_string(), words);
                let all = self.config.launch().max_output_bytes.saturating_add(u64::from(words) * 4);
                max_output_bytes = Some(all);
            }
        }
        // A grid without workgroups comes of writable buffers without elements, and cannot be said.
        let grid = launch.map(|launch| launch.grid).filter(|grid| !grid.contains(&0));
        Ok(DispatchConfig {
            grid_override: grid.or(self.config.grid_override),
            output_counts,
            max_output_bytes,
            specialization: SpecMap::new(),
            timeout: self.remaining()?,
            // It was asked of the program.
            require_deterministic: None,
            ..self.config.clone()
        })
    }

    /// The time that is left.
    fn remaining(&self) -> Result<Option<std::time::Duration>, BackendError> {
        let Some(limit) = self.config.timeout else { return Ok(None) };
        match limit.checked_sub(self.start.elapsed()).filter(|left| !left.is_zero()) {
            Some(left) => Ok(Some(left)),
            None => Err(BackendError::Timeout { limit }),
        }
    }
}

/// How many programs are kept split.
const RECENT: usize = 16;

/// The program as segments. Those of the latest programs are kept: a pipeline asks at every dispatch, and the segments' own proofs
/// and fingerprints are worth keeping too.
fn recent_split(program: &Program) -> Result<Arc<Split>, BackendError> {
    static SPLITS: Mutex<VecDeque<(Fingerprint, Arc<Split>)>> = Mutex::new(VecDeque::new());
    // A list of splits is whole at any time.
    let splits = || SPLITS.lock().unwrap_or_else(PoisonError::into_inner);
    let fingerprint = program.fingerprint();
    if let Some((_, found)) = splits().iter().find(|(of, _)| *of == fingerprint) {
        return Ok(Arc::clone(found));
    }
    let made = Arc::new(split(program)?);
    let mut splits = splits();
    splits.truncate(RECENT - 1);
    splits.push_front((fingerprint, Arc::clone(&made)));
    Ok(made)
}

/// Sums over segments.
#[derive(Default)]
struct Times {
    wall_ns: u64,
    device_ns: Option<u64>,
    segments: u32,
    ran: Option<Ran>,
}

impl Times {
    fn add(&mut self, result: TimedDispatchResult) -> OutputBuffers {
        self.wall_ns = self.wall_ns.saturating_add(result.wall_ns);
        self.device_ns = match (self.segments, self.device_ns, result.device_ns) {
            (0, _, device_ns) => device_ns,
            (_, Some(sum), Some(device_ns)) => Some(sum.saturating_add(device_ns)),
            (_, _, _) => None,
        };
        self.segments += 1;
        self.ran = result.ran;
        result.outputs
    }

    fn result(self, outputs: OutputBuffers) -> TimedDispatchResult {
        TimedDispatchResult { outputs, wall_ns: self.wall_ns, device_ns: self.device_ns, ran: self.ran }
    }
}

/// So many words of these bytes.
fn slice(bytes: &[u8], first: u64, count: u64) -> Result<Vec<u8>, BackendError> {
    let (start, end) = (first * 4, (first + count) * 4);
    let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
    let short = BackendError::ShortRead { expected: end, found: bytes.len() as u64 };
    range.and_then(|(start, end)| bytes.get(start..end)).map(<[u8]>::to_vec).ok_or(short)
}

/// The shape of the dispatch, as far as the grid needs it.
fn resident_launch(
    backend: &dyn VyreBackend,
    program: &Program,
    held: &[Option<Cow<'_, Resource>>],
    config: &DispatchConfig,
) -> Result<Launch, BackendError> {
    let kernel = program.validated().map_err(Clone::clone)?.kernel();
    let bits = |i: usize| kernel.buffers[i].element.bits().unwrap_or(8);
    let size = |i: usize| match held[i].as_deref() {
        Some(Resource::Borrowed(bytes)) => Ok(bytes.len() as u64),
        Some(Resource::Resident(_)) if let Some(count) = kernel.buffers[i].count => Ok((bits(i) * u64::from(count)).div_ceil(8)),
        // With a grid nothing follows from its length that is not left to the backend.
        Some(Resource::Resident(_)) if config.grid_override.is_some() => Ok(0),
        Some(resource @ Resource::Resident(_)) => backend.resident_size(resource),
        None => Ok(0),
    };
    let interface = program.interface();
    let mut launch = config.launch();
    for i in &interface.outputs {
        let buffer = &kernel.buffers[*i];
        let is_resident = matches!(held[*i].as_deref(), Some(Resource::Resident(_)));
        // An output that is resident and says nothing is as long as its memory; `ResidentTable::plan` says the same.
        if is_resident && buffer.access == Access::Output && buffer.count.is_none() {
            let count = u32::try_from(size(*i)? * 8 / bits(*i)).unwrap_or(u32::MAX);
            launch.output_counts.entry(buffer.name.as_str().to_string()).or_insert(count);
        }
    }
    let sizes: Vec<u64> = interface.inputs.iter().map(|i| size(*i)).collect::<Result<_, BackendError>>()?;
    Ok(plan(program, &sizes, &launch)?)
}

/// A state that one segment hands on to the next; given back when it is dropped.
struct Hidden<'a> {
    backend: &'a dyn VyreBackend,
    resource: Resource,
}

impl<'a> Hidden<'a> {
    fn new(backend: &'a dyn VyreBackend, words: u32) -> Result<Hidden<'a>, BackendError> {
        let bytes =
            usize::try_from(u64::from(words) * 4).map_err(|_| BackendError::OutOfMemory { requested: u64::from(words) * 4 })?;
        let resource = match bytes {
            0 => Resource::Borrowed(Vec::new()),
            _ => match backend.allocate_resident(bytes) {
                Err(BackendError::UnsupportedFeature { .. }) => Resource::Borrowed(vec![0; bytes]),
                other => other?,
            },
        };
        Ok(Hidden { backend, resource })
    }

    /// So many words of it.
    fn read(&self, first: u64, count: u64) -> Result<Vec<u8>, BackendError> {
        match &self.resource {
            Resource::Borrowed(bytes) => slice(bytes, first, count),
            resident @ Resource::Resident(_) => {
                // It was allocated, so its bytes can be counted.
                self.backend.download_resident_range(resident, (first * 4) as usize, (count * 4) as usize)
            }
        }
    }
}

impl Drop for Hidden<'_> {
    fn drop(&mut self) {
        let resource = std::mem::replace(&mut self.resource, Resource::Borrowed(Vec::new()));
        if let Resource::Resident(_) = resource {
            // The dispatch has its result; memory that cannot be given back does not change it.
            if let Err(error) = self.backend.free_resident(resource) {
                tracing::warn!(backend = self.backend.id(), %error, "what crossed a grid barrier is not given back");
            }
        }
    }
}
