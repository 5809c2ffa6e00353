//! A backend as a subject of `vyre fuzz`.

use vyre::backend::registry::{acquire, registered_devices};
use vyre::{BackendError, VyreBackend};
use vyre_worker::{Case, Failure, Outputs, Subject};

/// What subjects that are backends are called: this and the backend's id.
pub const PREFIX: &str = "backend:";

/// Opened when its first case comes, and again after its device was lost.
pub struct BackendSubject {
    name: String,
    open: Option<Box<dyn VyreBackend>>,
}

impl BackendSubject {
    /// The subject of this name, if there is such a backend.
    pub fn named(name: &str) -> Option<BackendSubject> {
        let id = name.strip_prefix(PREFIX)?;
        let known = registered_devices().iter().any(|(_, device)| device.id == id);
        known.then(|| BackendSubject { name: name.into(), open: None })
    }
}

impl Subject for BackendSubject {
    fn name(&self) -> &str {
        &self.name
    }

    fn run(&mut self, case: &Case) -> Result<Outputs, Failure> {
        // Taken out, so that a backend that panics or is lost is not used again.
        let backend = match self.open.take() {
            Some(backend) => backend,
            None => acquire(self.name.trim_start_matches(PREFIX)).map_err(failure)?,
        };
        let outcome = backend.dispatch_borrowed(&case.program, &case.input_slices(), &case.config).map_err(failure);
        self.open = Some(backend).filter(|backend| !backend.device_lost());
        outcome
    }
}

fn failure(error: BackendError) -> Failure {
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
