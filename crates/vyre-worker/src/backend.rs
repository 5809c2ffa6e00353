//! A backend as a subject, in every form in which a program can be run on it.

use crate::subject::{Answer, Failure, Job, Outputs, Sequence, Subject};
use std::fmt;
use std::sync::Arc;
use vyre_driver::backend::registry::{acquire, is_device, registered_devices};
use vyre_driver::backend::{ResidentRange, ResidentStep};
use vyre_driver::device::Ran;
use vyre_driver::{BackendError, DispatchConfig, OutputBuffers, Resource, VyreBackend, grid_sync, pipeline};
use vyre_foundation::case::Case;
use vyre_foundation::ir::Program;
use vyre_foundation::launch::plan;

/// What subjects that are backends are called: this, the backend's id, and perhaps `/` and a form.
pub const PREFIX: &str = "backend:";

/// How a program is run on a backend.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// `dispatch`, the inputs owned.
    Dispatch,
    /// `dispatch_borrowed_into` buffers that are used again.
    Into,
    /// `dispatch_borrowed_timed`.
    Timed,
    /// `dispatch_borrowed_async`, and waited for.
    Async,
    /// A compiled pipeline.
    Pipeline,
    /// A batch of a compiled pipeline: the case three times, which must agree.
    Batch,
    /// Every buffer resident.
    Resident,
    /// Uploads, dispatch and downloads as one submission.
    Sequence,
    /// Split at its grid barriers.
    Split,
}

impl Form {
    /// All of them.
    pub const ALL: [Form; 9] = [
        Form::Dispatch,
        Form::Into,
        Form::Timed,
        Form::Async,
        Form::Pipeline,
        Form::Batch,
        Form::Resident,
        Form::Sequence,
        Form::Split,
    ];

    /// One word for it, as it stands behind the `/` in the name of a subject.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Form::Dispatch => "dispatch",
            Form::Into => "into",
            Form::Timed => "timed",
            Form::Async => "async",
            Form::Pipeline => "pipeline",
            Form::Batch => "batch",
            Form::Resident => "resident",
            Form::Sequence => "sequence",
            Form::Split => "split",
        }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

type Open = Box<dyn Fn() -> Result<Arc<dyn VyreBackend>, BackendError> + Send>;

/// Opened when its first case comes, and again after its device was lost.
pub struct BackendSubject {
    name: String,
    how: Open,
    form: Form,
    open: Option<Arc<dyn VyreBackend>>,
    /// Outputs of before, whose memory is used again.
    outputs: OutputBuffers,
}

impl BackendSubject {
    /// The subject of this name: `backend:bulk`, `backend:bulk/async`.
    ///
    /// # Errors
    ///
    /// `None` if the name is no backend's at all; a text if there is no such device or form.
    pub fn named(name: &str) -> Option<Result<BackendSubject, String>> {
        let rest = name.strip_prefix(PREFIX)?;
        // Names of devices may have a slash themselves.
        let (device, form) = match rest.rsplit_once('/').filter(|_| !is_device(rest)) {
            None => (rest, Form::Into),
            Some((device, word)) => match Form::ALL.into_iter().find(|form| form.name() == word) {
                Some(form) => (device, form),
                None => {
                    let known: Vec<&str> = Form::ALL.iter().map(|form| form.name()).collect();
                    return Some(Err(format!("there is no form `{word}`; the forms are {}", known.join(", "))));
                }
            },
        };
        if !is_device(device) {
            let devices: Vec<String> = registered_devices().into_iter().map(|(_, device)| device.id).collect();
            return Some(Err(format!("there is no backend `{device}`; the backends are {}", devices.join(", "))));
        }
        let device = device.to_string();
        Some(Ok(BackendSubject::over(name, form, move || acquire(&device).map(Arc::from))))
    }

    /// A subject of this name over a backend that is opened so.
    pub fn over(
        name: impl Into<String>,
        form: Form,
        how: impl Fn() -> Result<Arc<dyn VyreBackend>, BackendError> + Send + 'static,
    ) -> BackendSubject {
        BackendSubject { name: name.into(), how: Box::new(how), form, open: None, outputs: OutputBuffers::new() }
    }

    fn on_backend(
        &mut self,
        program: &Program,
        inputs: &[&[u8]],
        config: &DispatchConfig,
    ) -> Result<(OutputBuffers, Option<Ran>), Failure> {
        // Taken out, so that a backend that panics or is lost is not used again.
        let backend = match self.open.take() {
            Some(backend) => backend,
            None => (self.how)().map_err(failure)?,
        };
        let outputs = std::mem::take(&mut self.outputs);
        let outcome = in_form(self.form, &backend, program, inputs, config, outputs).map_err(failure);
        self.open = Some(backend).filter(|backend| !backend.device_lost());
        outcome
    }
}

/// One dispatch in a form, on a backend that the caller holds. The memory of `outputs` is used again where the form can.
///
/// # Errors
///
/// Those of the backend; that the dispatches of a batch differ is [`BackendError::Other`].
pub fn in_form(
    form: Form,
    backend: &Arc<dyn VyreBackend>,
    program: &Program,
    inputs: &[&[u8]],
    config: &DispatchConfig,
    mut outputs: OutputBuffers,
) -> Result<(OutputBuffers, Option<Ran>), BackendError> {
    match form {
        Form::Dispatch => {
            let owned: Vec<Vec<u8>> = inputs.iter().map(|bytes| bytes.to_vec()).collect();
            Ok((backend.dispatch(program, &owned, config)?, None))
        }
        Form::Into => {
            backend.dispatch_borrowed_into(program, inputs, config, &mut outputs)?;
            Ok((outputs, None))
        }
        Form::Timed => {
            let timed = backend.dispatch_borrowed_timed(program, inputs, config)?;
            Ok((timed.outputs, timed.ran))
        }
        Form::Async => {
            let (outputs, ran) = backend.dispatch_borrowed_async(program, inputs, config)?.wait_ran()?;
            Ok((outputs, ran.into_iter().next()))
        }
        Form::Pipeline | Form::Batch => {
            // Raw top-level statements have pipelines of the backend's own only.
            let pipeline = match program.is_wrapped() {
                true => Some(pipeline::compile(backend.clone(), program, config)?),
                false => backend.compile_native(program, config)?,
            };
            let Some(pipeline) = pipeline else {
                return Err(BackendError::UnsupportedFeature {
                    feature: "pipelines of raw programs".into(),
                    backend: backend.id().into(),
                });
            };
            if form == Form::Pipeline {
                let timed = pipeline.dispatch_borrowed_timed(inputs, config)?;
                return Ok((timed.outputs, timed.ran));
            }
            let mut three = pipeline.dispatch_borrowed_batched(&[inputs, inputs, inputs], config)?;
            let last = three.pop().unwrap_or_default();
            match three.iter().all(|other| *other == last) && three.len() == 2 {
                true => Ok((last, None)),
                false => Err(BackendError::new("equal dispatches of a batch give different bytes")),
            }
        }
        Form::Resident | Form::Sequence => on_resident(form, backend, program, inputs, config),
        Form::Split => Ok((grid_sync::dispatch_with_grid_sync_split(&**backend, program, inputs, config)?, None)),
    }
}

/// One dispatch whose buffers are all resident.
fn on_resident(
    form: Form,
    backend: &Arc<dyn VyreBackend>,
    program: &Program,
    inputs: &[&[u8]],
    config: &DispatchConfig,
) -> Result<(OutputBuffers, Option<Ran>), BackendError> {
    let specialized = config.specialization.apply(program)?;
    let sizes: Vec<u64> = inputs.iter().map(|bytes| bytes.len() as u64).collect();
    let launch = plan(&specialized, &sizes, &config.launch())?;
    let mut held = Held { backend: &**backend, resources: Vec::new() };
    let mut given = inputs.iter();
    let mut starts: Vec<&[u8]> = Vec::new();
    let bound = &program.interface().bound;
    for i in bound {
        let start = if program.buffers()[*i].access.is_input() { given.next().copied().unwrap_or_default() } else { &[] };
        held.resources.push(backend.allocate_resident(launch.bytes[*i] as usize)?);
        starts.push(start);
    }
    let is_output = |i: &usize| program.buffers()[*i].access.is_output();
    let backs: Vec<&Resource> = bound.iter().zip(&held.resources).filter(|(i, _)| is_output(i)).map(|(_, it)| it).collect();
    if form == Form::Resident {
        let uploads: Vec<(&Resource, &[u8])> = held.resources.iter().zip(starts).collect();
        backend.upload_resident_many(&uploads)?;
        let timed = backend.dispatch_resident_timed(program, &held.resources, config)?;
        let ranges: Vec<(&Resource, usize, usize)> = (backs.iter())
            .map(|back| Ok((*back, 0, backend.resident_size(back)? as usize)))
            .collect::<Result<_, BackendError>>()?;
        return Ok((backend.download_resident_ranges(&ranges)?, timed.ran));
    }
    let uploads = held.resources.iter().zip(starts).map(|(to, bytes)| ResidentStep::Upload { to: to.into(), bytes });
    let bindings = held.resources.iter().map(ResidentRange::from).collect();
    let dispatch = ResidentStep::Dispatch { program, config, bindings };
    let downloads = backs.iter().map(|back| ResidentStep::Download((*back).into()));
    let steps: Vec<ResidentStep<'_>> = uploads.chain([dispatch]).chain(downloads).collect();
    let whole = DispatchConfig { timeout: config.timeout, ..DispatchConfig::default() };
    let (outputs, ran) = backend.submit_resident(&steps, &whole)?.wait_ran()?;
    Ok((outputs, ran.into_iter().next()))
}

/// Resident memory that is given back, whatever happens.
struct Held<'a> {
    backend: &'a dyn VyreBackend,
    resources: Vec<Resource>,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        for resource in self.resources.drain(..) {
            // It fails for what was lost with its device, which is not there to be given back.
            let _ = self.backend.free_resident(resource);
        }
    }
}

impl Subject for BackendSubject {
    fn name(&self) -> &str {
        &self.name
    }

    fn run(&mut self, case: &Case) -> Result<Outputs, Failure> {
        self.on_backend(&case.program, &case.input_slices(), &case.config).map(|(outputs, _)| outputs)
    }

    fn run_batch(&mut self, cases: &[Case]) -> Vec<Answer> {
        let answer = |case: &Case| match self.on_backend(&case.program, &case.input_slices(), &case.config) {
            Ok((outputs, ran)) => Answer { outcome: Ok(outputs), after: Vec::new(), ran },
            Err(failure) => Err(failure).into(),
        };
        cases.iter().map(answer).collect()
    }

    fn run_in_place(&mut self, mut job: Job<'_, '_>) -> Result<Option<Ran>, Failure> {
        let (found, ran) = self.on_backend(job.program, job.inputs, job.config)?;
        job.put(&found)?;
        self.outputs = found;
        Ok(ran)
    }

    fn renew(&mut self) {
        self.open = None;
    }

    /// On resident memory, in one submission.
    fn run_sequence(&mut self, sequence: &Sequence) -> Result<Outputs, Failure> {
        let backend = match self.open.take() {
            Some(backend) => backend,
            None => (self.how)().map_err(failure)?,
        };
        let outcome = resident_sequence(&*backend, sequence).map_err(failure);
        self.open = Some(backend).filter(|backend| !backend.device_lost());
        outcome
    }
}

fn resident_sequence(backend: &dyn VyreBackend, sequence: &Sequence) -> Result<Outputs, BackendError> {
    let mut held = Held { backend, resources: Vec::new() };
    for bytes in &sequence.buffers {
        held.resources.push(backend.allocate_resident(bytes.len())?);
    }
    let all = || held.resources.iter().zip(&sequence.buffers);
    let mut steps: Vec<ResidentStep<'_>> = all().map(|(to, bytes)| ResidentStep::Upload { to: to.into(), bytes }).collect();
    for step in &sequence.steps {
        let bound = step.buffers.iter().map(|n| held.resources.get(*n).map(ResidentRange::from));
        let bindings = bound.collect::<Option<Vec<_>>>().ok_or_else(|| BackendError::new("a step is bound to no buffer"))?;
        steps.push(ResidentStep::Dispatch { program: &step.program, config: &step.config, bindings });
    }
    steps.extend(held.resources.iter().map(|resource| ResidentStep::Download(resource.into())));
    backend.submit_resident(&steps, &DispatchConfig::default())?.wait()
}

/// What a judge makes of a backend's error.
#[must_use]
pub fn failure(error: BackendError) -> Failure {
    match error {
        BackendError::Trap { tag, invocation } => Failure::Trap { tag, invocation },
        BackendError::UnsupportedFeature { .. } => Failure::Unsupported(error.message()),
        BackendError::Rejected(_) | BackendError::InvalidProgram { .. } => Failure::Refused(error.message()),
        BackendError::UnknownBackend { .. }
        | BackendError::NoBackend { .. }
        | BackendError::Resident(_)
        | BackendError::OutOfMemory { .. }
        | BackendError::Timeout { .. }
        | BackendError::DeviceLost { .. }
        | BackendError::ShortRead { .. }
        | BackendError::Poisoned
        | BackendError::Other(_) => Failure::Device(error.message()),
    }
}
