//! Whether backends agree: the same dispatches on all of them give the same bytes, traps and refusals.

use crate::order::{self, Order};
use std::collections::BTreeMap;
use std::fmt;
use vyre_driver::backend::registry::registered_devices;
use vyre_driver::{BackendError, VyreBackend};
use vyre_foundation::case::Case;
use vyre_spec::ErrorCode;
use vyre_worker::caught;

/// What a backend made of a dispatch, as far as others have to make the same of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Said {
    /// Its outputs.
    Bytes(Vec<Vec<u8>>),
    /// A trap.
    Trap {
        /// The number in the `trap` statement.
        tag: u32,
        /// The smallest invocation that trapped.
        invocation: [u32; 3],
    },
    /// It was refused, with these codes.
    Refused(Vec<ErrorCode>),
    /// The backend failed or panicked, which is never right.
    Failed(String),
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Said::Bytes(outputs) => {
                let digest = blake3::hash(&outputs.concat()).to_hex();
                let lengths: Vec<usize> = outputs.iter().map(Vec::len).collect();
                write!(f, "outputs of {lengths:?} bytes, {}", &digest[..16])
            }
            Said::Trap { tag, invocation: [x, y, z] } => write!(f, "trap {tag} in invocation {x},{y},{z}"),
            Said::Refused(codes) => {
                let codes: Vec<String> = codes.iter().map(ToString::to_string).collect();
                write!(f, "refused with {}", codes.join(", "))
            }
            Said::Failed(why) => write!(f, "failed: {why}"),
        }
    }
}

/// A dispatch on which backends do not agree, or one failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Disagreement {
    /// The case, by its place among those that were given.
    pub case: usize,
    /// By backend.
    pub said: Vec<(&'static str, Said)>,
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "case {}:", self.case)?;
        self.said.iter().try_for_each(|(backend, said)| write!(f, "\n  {backend}: {said}"))
    }
}

/// Whether backends agree.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Agreement {
    /// Cases that at least two backends ran.
    pub compared: usize,
    /// Cases whose bytes are not promised, because the order of invocations may show.
    pub unordered: usize,
    /// By backend: cases that it cannot run, as it says itself.
    pub unsupported: BTreeMap<&'static str, usize>,
    /// Disagreements; the first [`KEPT`] of them.
    pub disagreements: Vec<Disagreement>,
    /// All of them.
    pub disagreed: usize,
}

/// Disagreements that are kept.
pub const KEPT: usize = 100;

impl Agreement {
    /// Whether something was compared, and all backends agreed.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.compared > 0 && self.disagreed == 0
    }
}

/// Every backend that is linked in.
#[derive(Default)]
pub struct Registered {
    /// Those that opened.
    pub open: Vec<Box<dyn VyreBackend>>,
    /// By id: why the others did not.
    pub closed: Vec<(String, BackendError)>,
}

/// Opens every backend that is linked in.
#[must_use]
pub fn every_registered() -> Registered {
    let mut all = Registered::default();
    for (registration, device) in registered_devices() {
        match registration.open(&device.id) {
            Ok(backend) => all.open.push(backend),
            Err(error) => all.closed.push((device.id, error)),
        }
    }
    all
}

/// Runs every case on every backend.
pub fn agreement(backends: &[&dyn VyreBackend], cases: impl IntoIterator<Item = Case>) -> Agreement {
    let mut report = Agreement::default();
    for (n, case) in cases.into_iter().enumerate() {
        // What is refused has no order; all have to refuse it.
        if matches!(order::of(&case), Ok(Order::Shows(_))) {
            report.unordered += 1;
            continue;
        }
        let mut said = Vec::new();
        for backend in backends {
            match ask(*backend, &case) {
                Some(answer) => said.push((backend.id(), answer)),
                None => *report.unsupported.entry(backend.id()).or_default() += 1,
            }
        }
        report.compared += usize::from(said.len() >= 2);
        let failed = said.iter().any(|(_, said)| matches!(said, Said::Failed(_)));
        if failed || said.windows(2).any(|two| two[0].1 != two[1].1) {
            report.disagreed += 1;
            if report.disagreements.len() < KEPT {
                report.disagreements.push(Disagreement { case: n, said });
            }
        }
    }
    report
}

/// What a backend makes of a case; nothing if it cannot run such programs.
fn ask(backend: &dyn VyreBackend, case: &Case) -> Option<Said> {
    let outcome = caught(|| backend.dispatch_borrowed(&case.program, &case.input_slices(), &case.config));
    Some(match outcome {
        Ok(Ok(outputs)) => Said::Bytes(outputs),
        Ok(Err(BackendError::UnsupportedFeature { .. })) => return None,
        Ok(Err(BackendError::Trap { tag, invocation })) => Said::Trap { tag, invocation },
        Ok(Err(error @ (BackendError::Rejected(_) | BackendError::InvalidProgram { .. }))) => {
            Said::Refused(error.report(None).codes().collect())
        }
        Ok(Err(error)) => Said::Failed(error.message()),
        Err(message) => Said::Failed(format!("it panicked: {message}")),
    })
}
