//! A backend that fails on demand: any backend, with faults at chosen calls.
//!
//! Every call that can fail is counted, also those of the pipelines that the backend compiled. A fault comes before the wrapped backend
//! is asked, but for a short read, which comes after it has done the work; of a dispatch that was begun, all but the lack of memory
//! show when it is waited for, as on devices. Whatever fails, the caller's buffers are not touched.
//!
//! Handles are the wrapper's own, so that it can make them stale while the wrapped backend, which knows of no loss, goes on.

use crate::backend::{
    BackendError, CompiledPipeline, DispatchConfig, OutputBuffers, PendingDispatch, ResidentError, Resource, TimedDispatchResult,
    VyreBackend, fill_outputs, private,
};
use crate::pipeline::PipelineCacheSnapshot;
use crate::resident::{ResidentTable, ResidentUsage};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use vyre_foundation::ir::{OpId, Program};

/// What a timeout says was given if the caller gave nothing: about what drivers give.
const WATCHDOG: Duration = Duration::from_secs(2);

/// A way to fail.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fault {
    /// The device is gone until `try_recover`, with all resident data and all pipelines.
    DeviceLost,
    /// There is not enough memory.
    OutOfMemory,
    /// It takes too long; the device can be used again.
    Timeout,
    /// It takes too long on a device that cannot be stopped, and is lost.
    Hang,
    /// Fewer bytes come back than should. Nothing fails in a call that reads none.
    ShortRead,
    /// The backend panics.
    Panic,
}

impl Fault {
    /// All of them.
    pub const ALL: [Fault; 6] =
        [Fault::DeviceLost, Fault::OutOfMemory, Fault::Timeout, Fault::Hang, Fault::ShortRead, Fault::Panic];
}

/// A call that can fail: a method of [`VyreBackend`], or with `Pipeline` before its name of [`CompiledPipeline`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[expect(missing_docs, reason = "they are the names of methods")]
pub enum Method {
    Dispatch,
    DispatchBorrowed,
    DispatchBorrowedInto,
    DispatchBorrowedTimed,
    DispatchAsync,
    DispatchBorrowedAsync,
    CompileNative,
    AllocateResident,
    UploadResident,
    UploadResidentMany,
    UploadResidentAt,
    UploadResidentAtMany,
    DownloadResident,
    DownloadResidentRange,
    DownloadResidentRanges,
    FreeResident,
    DispatchResidentTimed,
    Prepare,
    Flush,
    Shutdown,
    TryRecover,
    PipelineDispatch,
    PipelineDispatchBorrowed,
    PipelineDispatchBorrowedInto,
    PipelineDispatchBorrowedTimed,
    PipelineDispatchBorrowedBatched,
    PipelineDispatchBorrowedBatchedInto,
    PipelineDispatchPersistentHandles,
    PipelineDispatchPersistentHandlesInto,
}

/// Which calls fail, and how. Calls are counted from zero.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FaultPlan {
    faults: Vec<(Option<Method>, u64, Fault)>,
}

impl FaultPlan {
    /// Nothing fails.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// The `n`-th of all calls fails too.
    #[must_use]
    pub fn at_call(mut self, n: u64, fault: Fault) -> Self {
        self.faults.push((None, n, fault));
        self
    }

    /// The `n`-th call of one method fails too.
    #[must_use]
    pub fn at_call_of(mut self, method: Method, n: u64, fault: Fault) -> Self {
        self.faults.push((Some(method), n, fault));
        self
    }
}

/// A backend with faults. Clones are the same backend: keep one to ask what happened.
#[derive(Clone)]
pub struct FaultyBackend {
    faulty: Arc<Faulty>,
}

struct Faulty {
    inner: Box<dyn VyreBackend>,
    plan: FaultPlan,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    calls: u64,
    calls_of: HashMap<Method, u64>,
    fired: Vec<(u64, Fault)>,
    lost: bool,
    /// How often the device was lost; a pipeline or a pending dispatch of before is of a device that is gone.
    losses: u64,
    /// By our handles: the wrapped backend's.
    resident: ResidentTable<Resource>,
}

impl FaultyBackend {
    /// The backend, failing as planned.
    #[must_use]
    pub fn new(inner: Box<dyn VyreBackend>, plan: FaultPlan) -> Self {
        FaultyBackend { faulty: Arc::new(Faulty { inner, plan, state: Mutex::default() }) }
    }

    /// Calls so far that could fail.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.faulty.state().calls
    }

    /// Calls of one method so far.
    #[must_use]
    pub fn calls_of(&self, method: Method) -> u64 {
        self.faulty.state().calls_of.get(&method).copied().unwrap_or(0)
    }

    /// The calls that failed as planned, each with its number among all calls.
    #[must_use]
    pub fn fired(&self) -> Vec<(u64, Fault)> {
        self.faulty.state().fired.clone()
    }

    /// What is resident through this wrapper.
    #[must_use]
    pub fn resident_usage(&self) -> ResidentUsage {
        self.faulty.state().resident.usage()
    }

    fn inner(&self) -> &dyn VyreBackend {
        &*self.faulty.inner
    }
}

/// What a call is about, for the errors that say it.
#[derive(Clone, Copy, Default)]
struct About {
    bytes: usize,
    timeout: Option<Duration>,
}

impl About {
    fn bytes(bytes: usize) -> Self {
        About { bytes, timeout: None }
    }

    fn dispatch(inputs: &[impl AsRef<[u8]>], config: &DispatchConfig) -> Self {
        About { bytes: inputs.iter().map(|input| input.as_ref().len()).sum(), timeout: config.timeout }
    }
}

/// A call that may go on to the wrapped backend.
struct Admitted<'a> {
    faulty: &'a Faulty,
    call: u64,
    reads_short: bool,
}

impl Admitted<'_> {
    /// The call has read so many bytes.
    fn read(&self, bytes: usize) -> Result<(), BackendError> {
        if !self.reads_short || bytes == 0 {
            return Ok(());
        }
        Err(self.faulty.fire(self.call, Fault::ShortRead, About::bytes(bytes)))
    }

    fn read_all(&self, outputs: OutputBuffers) -> Result<OutputBuffers, BackendError> {
        self.read(total(&outputs))?;
        Ok(outputs)
    }

    fn read_timed(&self, result: TimedDispatchResult) -> Result<TimedDispatchResult, BackendError> {
        self.read(total(&result.outputs))?;
        Ok(result)
    }

    fn read_bytes(&self, bytes: Vec<u8>) -> Result<Vec<u8>, BackendError> {
        self.read(bytes.len())?;
        Ok(bytes)
    }
}

fn total(outputs: &[Vec<u8>]) -> usize {
    outputs.iter().map(Vec::len).sum()
}

fn lost(reason: &str) -> BackendError {
    BackendError::DeviceLost { reason: reason.into() }
}

impl Faulty {
    fn state(&self) -> MutexGuard<'_, State> {
        // What panics on demand does so without the lock, so that nothing is left half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call. Gives its number and the fault that is planned for it, unless the device is lost.
    fn count(&self, method: Method) -> Result<(u64, Option<Fault>), BackendError> {
        let mut state = self.state();
        let call = state.calls;
        state.calls += 1;
        let of_method = state.calls_of.entry(method).or_default();
        let call_of = *of_method;
        *of_method += 1;
        if state.lost && method != Method::TryRecover {
            return Err(lost("it was lost in an earlier call"));
        }
        let planned = self.plan.faults.iter().find(|(of, n, _)| match of {
            None => *n == call,
            Some(of) => *of == method && *n == call_of,
        });
        Ok((call, planned.map(|(_, _, fault)| *fault)))
    }

    /// Makes a fault happen.
    fn fire(&self, call: u64, fault: Fault, about: About) -> BackendError {
        self.state().fired.push((call, fault));
        let limit = about.timeout.unwrap_or(WATCHDOG);
        match fault {
            Fault::DeviceLost => match self.lose() {
                Ok(()) => lost("a fault was injected"),
                Err(error) => lost(&format!("a fault was injected, and the wrapped backend keeps resident data: {error}")),
            },
            Fault::OutOfMemory => BackendError::OutOfMemory { requested: about.bytes as u64 },
            Fault::Timeout => BackendError::Timeout { limit },
            Fault::Hang => match self.lose() {
                Ok(()) => BackendError::Timeout { limit },
                Err(error) => error,
            },
            Fault::ShortRead => {
                BackendError::ShortRead { expected: about.bytes as u64, found: about.bytes.saturating_sub(1) as u64 }
            }
            Fault::Panic => panic!("a fault was injected at call {call}"),
        }
    }

    fn lose(&self) -> Result<(), BackendError> {
        let mut state = self.state();
        state.lost = true;
        state.losses += 1;
        let gone = state.resident.lose();
        drop(state);
        gone.into_iter().try_for_each(|resource| self.inner.free_resident(resource))
    }

    /// Whether a call goes on to the wrapped backend.
    fn admit(&self, method: Method, about: About) -> Result<Admitted<'_>, BackendError> {
        let (call, fault) = self.count(method)?;
        match fault {
            None => Ok(Admitted { faulty: self, call, reads_short: false }),
            Some(Fault::ShortRead) => Ok(Admitted { faulty: self, call, reads_short: true }),
            Some(fault @ (Fault::DeviceLost | Fault::OutOfMemory | Fault::Timeout | Fault::Hang | Fault::Panic)) => {
                Err(self.fire(call, fault, about))
            }
        }
    }

    /// A dispatch that is only begun: the device's own faults come later.
    fn admit_pending(self: &Arc<Self>, method: Method, about: About) -> Result<FaultyPending, BackendError> {
        let (call, fault) = self.count(method)?;
        match fault {
            Some(fault @ (Fault::OutOfMemory | Fault::Panic)) => Err(self.fire(call, fault, about)),
            None | Some(Fault::DeviceLost | Fault::Timeout | Fault::Hang | Fault::ShortRead) => {
                Ok(FaultyPending { faulty: self.clone(), losses: self.state().losses, call, fault, about, inner: None })
            }
        }
    }

    /// The wrapped backend's resources for ours.
    fn translate<'a>(&self, resources: impl IntoIterator<Item = &'a Resource>) -> Result<Vec<Resource>, BackendError> {
        let state = self.state();
        let inner = resources.into_iter().map(|resource| match resource {
            Resource::Borrowed(bytes) => Ok(Resource::Borrowed(bytes.clone())),
            Resource::Resident(_) => state.resident.get(resource).cloned(),
        });
        Ok(inner.collect::<Result<_, ResidentError>>()?)
    }

    /// An error of the wrapped backend about one of its handles, about ours.
    fn untranslate(&self, error: BackendError, ours: &[&Resource], inner: &[Resource]) -> BackendError {
        let state = self.state();
        let our_handle = |handle: u64| {
            let pair = ours.iter().zip(inner).find(|(_, inner)| **inner == Resource::Resident(handle));
            match pair {
                Some((Resource::Resident(ours), _)) => *ours,
                Some((Resource::Borrowed(_), _)) | None => handle,
            }
        };
        let BackendError::Resident(error) = error else { return error };
        // Another thread may have lost the device meanwhile, which is why the wrapped backend does not know the handle.
        if let Some(error) = ours.iter().find_map(|resource| match resource {
            Resource::Resident(_) => state.resident.get(resource).err(),
            Resource::Borrowed(_) => None,
        }) {
            return error.into();
        }
        BackendError::Resident(match error {
            ResidentError::Foreign(handle) => ResidentError::Foreign(our_handle(handle)),
            ResidentError::Freed(handle) => ResidentError::Freed(our_handle(handle)),
            ResidentError::Stale(handle) => ResidentError::Stale(our_handle(handle)),
            ResidentError::Aliased(handle) => ResidentError::Aliased(our_handle(handle)),
            ResidentError::OutOfRange { handle, offset, length, size } => {
                ResidentError::OutOfRange { handle: our_handle(handle), offset, length, size }
            }
            ResidentError::NotResident => ResidentError::NotResident,
        })
    }

    /// Calls the wrapped backend with its own resources in the place of ours, one for each.
    fn with_resources<R>(
        &self,
        ours: &[&Resource],
        call: impl FnOnce(&[Resource]) -> Result<R, BackendError>,
    ) -> Result<R, BackendError> {
        let inner = self.translate(ours.iter().copied())?;
        call(&inner).map_err(|error| self.untranslate(error, ours, &inner))
    }
}

impl private::Sealed for FaultyBackend {}

// A method that is not forwarded would silently be the default of the trait.
#[deny(clippy::missing_trait_methods)]
impl VyreBackend for FaultyBackend {
    fn id(&self) -> &'static str {
        self.inner().id()
    }

    fn version(&self) -> &'static str {
        self.inner().version()
    }

    fn device_fingerprint(&self) -> String {
        self.inner().device_fingerprint()
    }

    fn device_name(&self) -> String {
        self.inner().device_name()
    }

    fn dispatch(&self, program: &Program, inputs: &[Vec<u8>], config: &DispatchConfig) -> Result<Vec<Vec<u8>>, BackendError> {
        let admitted = self.faulty.admit(Method::Dispatch, About::dispatch(inputs, config))?;
        admitted.read_all(self.inner().dispatch(program, inputs, config)?)
    }

    fn dispatch_borrowed(
        &self,
        program: &Program,
        inputs: &[&[u8]],
        config: &DispatchConfig,
    ) -> Result<Vec<Vec<u8>>, BackendError> {
        let admitted = self.faulty.admit(Method::DispatchBorrowed, About::dispatch(inputs, config))?;
        admitted.read_all(self.inner().dispatch_borrowed(program, inputs, config)?)
    }

    fn dispatch_borrowed_into(
        &self,
        program: &Program,
        inputs: &[&[u8]],
        config: &DispatchConfig,
        outputs: &mut OutputBuffers,
    ) -> Result<(), BackendError> {
        let admitted = self.faulty.admit(Method::DispatchBorrowedInto, About::dispatch(inputs, config))?;
        if admitted.reads_short {
            let results = admitted.read_all(self.inner().dispatch_borrowed(program, inputs, config)?)?;
            fill_outputs(outputs, &results);
            return Ok(());
        }
        self.inner().dispatch_borrowed_into(program, inputs, config, outputs)
    }

    fn dispatch_borrowed_timed(
        &self,
        program: &Program,
        inputs: &[&[u8]],
        config: &DispatchConfig,
    ) -> Result<TimedDispatchResult, BackendError> {
        let admitted = self.faulty.admit(Method::DispatchBorrowedTimed, About::dispatch(inputs, config))?;
        admitted.read_timed(self.inner().dispatch_borrowed_timed(program, inputs, config)?)
    }

    fn dispatch_async(
        &self,
        program: &Program,
        inputs: &[Vec<u8>],
        config: &DispatchConfig,
    ) -> Result<Box<dyn PendingDispatch>, BackendError> {
        let mut pending = self.faulty.admit_pending(Method::DispatchAsync, About::dispatch(inputs, config))?;
        pending.inner = Some(self.inner().dispatch_async(program, inputs, config)?);
        Ok(Box::new(pending))
    }

    fn dispatch_borrowed_async(
        &self,
        program: &Program,
        inputs: &[&[u8]],
        config: &DispatchConfig,
    ) -> Result<Box<dyn PendingDispatch>, BackendError> {
        let mut pending = self.faulty.admit_pending(Method::DispatchBorrowedAsync, About::dispatch(inputs, config))?;
        pending.inner = Some(self.inner().dispatch_borrowed_async(program, inputs, config)?);
        Ok(Box::new(pending))
    }

    fn compile_native(
        &self,
        program: &Program,
        config: &DispatchConfig,
    ) -> Result<Option<Arc<dyn CompiledPipeline>>, BackendError> {
        let about = About { bytes: program.wire_body().len(), timeout: config.timeout };
        self.faulty.admit(Method::CompileNative, about)?;
        let losses = self.faulty.state().losses;
        let Some(inner) = self.inner().compile_native(program, config)? else { return Ok(None) };
        Ok(Some(Arc::new(FaultyPipeline { inner, faulty: self.faulty.clone(), losses })))
    }

    fn pipeline_cache_snapshot(&self) -> Option<PipelineCacheSnapshot> {
        self.inner().pipeline_cache_snapshot()
    }

    fn allocate_resident(&self, byte_len: usize) -> Result<Resource, BackendError> {
        self.faulty.admit(Method::AllocateResident, About::bytes(byte_len))?;
        let inner = self.inner().allocate_resident(byte_len)?;
        self.faulty.state().resident.insert(inner, byte_len as u64)
    }

    fn upload_resident(&self, resource: &Resource, bytes: &[u8]) -> Result<(), BackendError> {
        self.faulty.admit(Method::UploadResident, About::bytes(bytes.len()))?;
        self.faulty.with_resources(&[resource], |inner| self.inner().upload_resident(&inner[0], bytes))
    }

    fn upload_resident_many(&self, uploads: &[(&Resource, &[u8])]) -> Result<(), BackendError> {
        let bytes = uploads.iter().map(|(_, bytes)| bytes.len()).sum();
        self.faulty.admit(Method::UploadResidentMany, About::bytes(bytes))?;
        let ours: Vec<&Resource> = uploads.iter().map(|(resource, _)| *resource).collect();
        self.faulty.with_resources(&ours, |inner| {
            let uploads: Vec<(&Resource, &[u8])> = inner.iter().zip(uploads).map(|(inner, (_, bytes))| (inner, *bytes)).collect();
            self.inner().upload_resident_many(&uploads)
        })
    }

    fn upload_resident_at(&self, resource: &Resource, dst_offset_bytes: usize, bytes: &[u8]) -> Result<(), BackendError> {
        self.faulty.admit(Method::UploadResidentAt, About::bytes(bytes.len()))?;
        self.faulty.with_resources(&[resource], |inner| self.inner().upload_resident_at(&inner[0], dst_offset_bytes, bytes))
    }

    fn upload_resident_at_many(&self, uploads: &[(&Resource, usize, &[u8])]) -> Result<(), BackendError> {
        let bytes = uploads.iter().map(|(_, _, bytes)| bytes.len()).sum();
        self.faulty.admit(Method::UploadResidentAtMany, About::bytes(bytes))?;
        let ours: Vec<&Resource> = uploads.iter().map(|(resource, _, _)| *resource).collect();
        self.faulty.with_resources(&ours, |inner| {
            let uploads: Vec<(&Resource, usize, &[u8])> =
                inner.iter().zip(uploads).map(|(inner, (_, offset, bytes))| (inner, *offset, *bytes)).collect();
            self.inner().upload_resident_at_many(&uploads)
        })
    }

    fn download_resident(&self, resource: &Resource) -> Result<Vec<u8>, BackendError> {
        let admitted = self.faulty.admit(Method::DownloadResident, About::default())?;
        let read = self.faulty.with_resources(&[resource], |inner| self.inner().download_resident(&inner[0]))?;
        admitted.read_bytes(read)
    }

    fn download_resident_range(&self, resource: &Resource, offset: usize, length: usize) -> Result<Vec<u8>, BackendError> {
        let admitted = self.faulty.admit(Method::DownloadResidentRange, About::bytes(length))?;
        let read =
            self.faulty.with_resources(&[resource], |inner| self.inner().download_resident_range(&inner[0], offset, length))?;
        admitted.read_bytes(read)
    }

    fn download_resident_ranges(&self, ranges: &[(&Resource, usize, usize)]) -> Result<Vec<Vec<u8>>, BackendError> {
        let bytes = ranges.iter().fold(0usize, |sum, (_, _, length)| sum.saturating_add(*length));
        let admitted = self.faulty.admit(Method::DownloadResidentRanges, About::bytes(bytes))?;
        let ours: Vec<&Resource> = ranges.iter().map(|(resource, _, _)| *resource).collect();
        let read = self.faulty.with_resources(&ours, |inner| {
            let ranges: Vec<(&Resource, usize, usize)> =
                inner.iter().zip(ranges).map(|(inner, (_, offset, length))| (inner, *offset, *length)).collect();
            self.inner().download_resident_ranges(&ranges)
        })?;
        admitted.read_all(read)
    }

    fn free_resident(&self, resource: Resource) -> Result<(), BackendError> {
        self.faulty.admit(Method::FreeResident, About::default())?;
        self.faulty.with_resources(&[&resource], |inner| self.inner().free_resident(inner[0].clone()))?;
        self.faulty.state().resident.free(&resource)?;
        Ok(())
    }

    fn dispatch_resident_timed(
        &self,
        program: &Program,
        resources: &[Resource],
        config: &DispatchConfig,
    ) -> Result<TimedDispatchResult, BackendError> {
        let admitted = self.faulty.admit(Method::DispatchResidentTimed, About { bytes: 0, timeout: config.timeout })?;
        let ours: Vec<&Resource> = resources.iter().collect();
        let result = self.faulty.with_resources(&ours, |inner| self.inner().dispatch_resident_timed(program, inner, config))?;
        admitted.read_timed(result)
    }

    fn supported_ops(&self) -> &HashSet<OpId> {
        self.inner().supported_ops()
    }

    fn supports_subgroup_ops(&self) -> bool {
        self.inner().supports_subgroup_ops()
    }

    fn supports_f16(&self) -> bool {
        self.inner().supports_f16()
    }

    fn supports_bf16(&self) -> bool {
        self.inner().supports_bf16()
    }

    fn supports_f64(&self) -> bool {
        self.inner().supports_f64()
    }

    fn supports_tensor_cores(&self) -> bool {
        self.inner().supports_tensor_cores()
    }

    fn supports_async_compute(&self) -> bool {
        self.inner().supports_async_compute()
    }

    fn supports_indirect_dispatch(&self) -> bool {
        self.inner().supports_indirect_dispatch()
    }

    fn supports_speculation(&self) -> bool {
        self.inner().supports_speculation()
    }

    fn supports_persistent_thread_dispatch(&self) -> bool {
        self.inner().supports_persistent_thread_dispatch()
    }

    fn supports_grid_sync(&self) -> bool {
        self.inner().supports_grid_sync()
    }

    fn allows_host_grid_sync_split(&self) -> bool {
        self.inner().allows_host_grid_sync_split()
    }

    fn is_distributed(&self) -> bool {
        self.inner().is_distributed()
    }

    fn max_workgroup_size(&self) -> [u32; 3] {
        self.inner().max_workgroup_size()
    }

    fn max_compute_workgroups_per_dimension(&self) -> u32 {
        self.inner().max_compute_workgroups_per_dimension()
    }

    fn max_compute_invocations_per_workgroup(&self) -> u32 {
        self.inner().max_compute_invocations_per_workgroup()
    }

    fn subgroup_size(&self) -> Option<u32> {
        self.inner().subgroup_size()
    }

    fn max_storage_buffer_bytes(&self) -> u64 {
        self.inner().max_storage_buffer_bytes()
    }

    fn prepare(&self) -> Result<(), BackendError> {
        self.faulty.admit(Method::Prepare, About::default())?;
        self.inner().prepare()
    }

    fn flush(&self) -> Result<(), BackendError> {
        self.faulty.admit(Method::Flush, About::default())?;
        self.inner().flush()
    }

    fn shutdown(&self) -> Result<(), BackendError> {
        self.faulty.admit(Method::Shutdown, About::default())?;
        self.inner().shutdown()
    }

    fn device_lost(&self) -> bool {
        self.faulty.state().lost || self.inner().device_lost()
    }

    /// Ends a loss that was injected. The wrapped backend is asked only about a loss of its own.
    fn try_recover(&self) -> Result<(), BackendError> {
        self.faulty.admit(Method::TryRecover, About::default())?;
        if self.inner().device_lost() || !self.faulty.state().lost {
            self.inner().try_recover()?;
        }
        self.faulty.state().lost = false;
        Ok(())
    }

    fn backend_metric_snapshot(&self) -> Vec<(&'static str, u64)> {
        self.inner().backend_metric_snapshot()
    }
}

/// A dispatch that was begun; `inner` is there once it is handed out.
struct FaultyPending {
    faulty: Arc<Faulty>,
    losses: u64,
    call: u64,
    fault: Option<Fault>,
    about: About,
    inner: Option<Box<dyn PendingDispatch>>,
}

impl PendingDispatch for FaultyPending {
    fn is_ready(&self) -> bool {
        self.fault.is_some() || self.inner.as_ref().is_none_or(|inner| inner.is_ready())
    }

    fn wait(self: Box<Self>) -> Result<OutputBuffers, BackendError> {
        let FaultyPending { faulty, losses, call, fault, about, inner } = *self;
        if faulty.state().losses != losses {
            return Err(lost("it was lost after this dispatch was begun"));
        }
        let reads_short = match fault {
            None => false,
            Some(Fault::ShortRead) => true,
            Some(fault @ (Fault::DeviceLost | Fault::OutOfMemory | Fault::Timeout | Fault::Hang | Fault::Panic)) => {
                return Err(faulty.fire(call, fault, about));
            }
        };
        let inner = inner.ok_or_else(|| BackendError::new("the dispatch was not begun"))?;
        Admitted { faulty: &faulty, call, reads_short }.read_all(inner.wait()?)
    }
}

/// A pipeline of a backend with faults.
struct FaultyPipeline {
    inner: Arc<dyn CompiledPipeline>,
    faulty: Arc<Faulty>,
    losses: u64,
}

impl FaultyPipeline {
    fn admit(&self, method: Method, about: About) -> Result<Admitted<'_>, BackendError> {
        let admitted = self.faulty.admit(method, about)?;
        if self.faulty.state().losses != self.losses {
            return Err(lost("it was lost after this pipeline was compiled, which has to be compiled again"));
        }
        Ok(admitted)
    }
}

impl private::Sealed for FaultyPipeline {}

// A method that is not forwarded would silently be the default of the trait.
#[deny(clippy::missing_trait_methods)]
impl CompiledPipeline for FaultyPipeline {
    fn id(&self) -> &str {
        self.inner.id()
    }

    fn dispatch(&self, inputs: &[Vec<u8>], config: &DispatchConfig) -> Result<Vec<Vec<u8>>, BackendError> {
        let admitted = self.admit(Method::PipelineDispatch, About::dispatch(inputs, config))?;
        admitted.read_all(self.inner.dispatch(inputs, config)?)
    }

    fn dispatch_borrowed(&self, inputs: &[&[u8]], config: &DispatchConfig) -> Result<Vec<Vec<u8>>, BackendError> {
        let admitted = self.admit(Method::PipelineDispatchBorrowed, About::dispatch(inputs, config))?;
        admitted.read_all(self.inner.dispatch_borrowed(inputs, config)?)
    }

    fn dispatch_borrowed_into(
        &self,
        inputs: &[&[u8]],
        config: &DispatchConfig,
        outputs: &mut OutputBuffers,
    ) -> Result<(), BackendError> {
        let admitted = self.admit(Method::PipelineDispatchBorrowedInto, About::dispatch(inputs, config))?;
        if admitted.reads_short {
            let results = admitted.read_all(self.inner.dispatch_borrowed(inputs, config)?)?;
            fill_outputs(outputs, &results);
            return Ok(());
        }
        self.inner.dispatch_borrowed_into(inputs, config, outputs)
    }

    fn dispatch_borrowed_timed(&self, inputs: &[&[u8]], config: &DispatchConfig) -> Result<TimedDispatchResult, BackendError> {
        let admitted = self.admit(Method::PipelineDispatchBorrowedTimed, About::dispatch(inputs, config))?;
        admitted.read_timed(self.inner.dispatch_borrowed_timed(inputs, config)?)
    }

    fn dispatch_borrowed_batched(
        &self,
        batches: &[&[&[u8]]],
        config: &DispatchConfig,
    ) -> Result<Vec<OutputBuffers>, BackendError> {
        let admitted = self.admit(Method::PipelineDispatchBorrowedBatched, About::dispatch(&batches.concat(), config))?;
        let results = self.inner.dispatch_borrowed_batched(batches, config)?;
        admitted.read(results.iter().map(|outputs| total(outputs)).sum())?;
        Ok(results)
    }

    fn dispatch_borrowed_batched_into(
        &self,
        batches: &[&[&[u8]]],
        config: &DispatchConfig,
        outputs: &mut Vec<OutputBuffers>,
    ) -> Result<(), BackendError> {
        let admitted = self.admit(Method::PipelineDispatchBorrowedBatchedInto, About::dispatch(&batches.concat(), config))?;
        if admitted.reads_short {
            let results = self.inner.dispatch_borrowed_batched(batches, config)?;
            admitted.read(results.iter().map(|outputs| total(outputs)).sum())?;
            outputs.clear();
            outputs.extend(results);
            return Ok(());
        }
        self.inner.dispatch_borrowed_batched_into(batches, config, outputs)
    }

    fn dispatch_persistent_handles(&self, inputs: &[Resource], config: &DispatchConfig) -> Result<OutputBuffers, BackendError> {
        let about = About { bytes: 0, timeout: config.timeout };
        let admitted = self.admit(Method::PipelineDispatchPersistentHandles, about)?;
        let ours: Vec<&Resource> = inputs.iter().collect();
        let results = self.faulty.with_resources(&ours, |inner| self.inner.dispatch_persistent_handles(inner, config))?;
        admitted.read_all(results)
    }

    fn dispatch_persistent_handles_into(
        &self,
        inputs: &[Resource],
        config: &DispatchConfig,
        outputs: &mut OutputBuffers,
    ) -> Result<(), BackendError> {
        let about = About { bytes: 0, timeout: config.timeout };
        let admitted = self.admit(Method::PipelineDispatchPersistentHandlesInto, about)?;
        let ours: Vec<&Resource> = inputs.iter().collect();
        self.faulty.with_resources(&ours, |inner| {
            if admitted.reads_short {
                let results = admitted.read_all(self.inner.dispatch_persistent_handles(inner, config)?)?;
                fill_outputs(outputs, &results);
                return Ok(());
            }
            self.inner.dispatch_persistent_handles_into(inner, config, outputs)
        })
    }
}
