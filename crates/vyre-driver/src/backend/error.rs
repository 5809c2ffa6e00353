//! Why a backend did not do what was asked: one variant per thing a caller does about it.

use std::fmt;
use std::sync::PoisonError;
use std::time::Duration;
use vyre_foundation::ir::Program;
use vyre_foundation::{Diagnostic, Report};
use vyre_spec::ErrorCode;

/// Why a call to a backend failed. The caller's buffers are as they were before the call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BackendError {
    /// The program, its constants, inputs or launch are wrong; nothing ran. The report says where.
    Rejected(Report),
    /// The program cannot be run in this way; nothing ran.
    InvalidProgram {
        /// What is wrong and what to do.
        fix: String,
    },
    /// This backend does not have what was asked for; another may.
    UnsupportedFeature {
        /// What it lacks.
        feature: String,
        /// Its id.
        backend: String,
    },
    /// There is no such backend.
    UnknownBackend {
        /// The id that was asked for.
        id: String,
        /// Those that there are.
        known: Vec<String>,
    },
    /// No backend can run the program.
    NoBackend {
        /// By id: why it was passed over.
        passed_over: Vec<(String, String)>,
    },
    /// A resident handle cannot be used so.
    Resident(ResidentError),
    /// The kernel trapped. All other invocations finished; there are no outputs.
    Trap {
        /// The number in the `trap` statement.
        tag: u32,
        /// The smallest invocation that trapped.
        invocation: [u32; 3],
    },
    /// The device has not enough memory.
    OutOfMemory {
        /// Bytes that were asked for.
        requested: u64,
    },
    /// The dispatch took longer than it was given.
    Timeout {
        /// What it was given.
        limit: Duration,
    },
    /// The device is gone, and with it all resident data. See `VyreBackend::try_recover`.
    DeviceLost {
        /// What the device said.
        reason: String,
    },
    /// The device gave fewer bytes than it said it had.
    ShortRead {
        /// Bytes that were expected.
        expected: u64,
        /// Bytes that came.
        found: u64,
    },
    /// A thread panicked while it held a lock of the backend.
    Poisoned,
    /// Something that only this backend knows.
    Other(String),
}

/// What is wrong with a resident handle.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ResidentError {
    /// Another backend, or another instance of this one, gave it out.
    Foreign(u64),
    /// Its memory was freed, once already.
    Freed(u64),
    /// The device was lost after it was given out.
    Stale(u64),
    /// It stands for more than one buffer of a dispatch, and one of them is written.
    Aliased(u64),
    /// Bytes outside its memory.
    OutOfRange {
        /// The handle.
        handle: u64,
        /// The first byte.
        offset: u64,
        /// How many bytes.
        length: u64,
        /// How many there are.
        size: u64,
    },
    /// Bytes of the caller's stand where a handle is needed.
    NotResident,
}

impl BackendError {
    /// An error that has only a message.
    pub fn new(message: impl Into<String>) -> Self {
        BackendError::Other(message.into())
    }

    /// For `lock().map_err(BackendError::poisoned_lock)`.
    #[must_use]
    pub fn poisoned_lock<T>(_: PoisonError<T>) -> Self {
        BackendError::Poisoned
    }

    /// The error as a report, with a stable code, about a program if there is one.
    #[must_use]
    pub fn report(&self, program: Option<&Program>) -> Report {
        let code = match self {
            BackendError::Rejected(report) => return report.clone(),
            BackendError::UnsupportedFeature { .. } => ErrorCode::E0801,
            BackendError::UnknownBackend { .. } => ErrorCode::E0802,
            BackendError::NoBackend { .. } => ErrorCode::E0803,
            BackendError::InvalidProgram { .. } => ErrorCode::E0804,
            BackendError::Resident(_) => ErrorCode::E0805,
            BackendError::Trap { .. } => ErrorCode::E0713,
            BackendError::OutOfMemory { .. } => ErrorCode::E0806,
            BackendError::Timeout { .. } => ErrorCode::E0807,
            BackendError::DeviceLost { .. } => ErrorCode::E0808,
            BackendError::ShortRead { .. } => ErrorCode::E0809,
            BackendError::Poisoned | BackendError::Other(_) => ErrorCode::E0810,
        };
        let (what, fix) = self.what_and_fix();
        let diagnostic = Diagnostic::new(code, what.trim_end().trim_end_matches('.'));
        let diagnostic = match fix {
            Some(fix) => diagnostic.help(fix),
            None => diagnostic,
        };
        match program {
            Some(program) => Report::about(program, vec![diagnostic]),
            None => Report::single(diagnostic),
        }
    }

    /// What went wrong and what to do about it, in words.
    #[must_use]
    pub fn message(&self) -> String {
        self.to_string()
    }
}

impl From<Report> for BackendError {
    fn from(report: Report) -> Self {
        BackendError::Rejected(report)
    }
}

impl From<ResidentError> for BackendError {
    fn from(error: ResidentError) -> Self {
        BackendError::Resident(error)
    }
}

impl BackendError {
    /// What went wrong, and what to do about it if that is known.
    fn what_and_fix(&self) -> (String, Option<String>) {
        let (what, fix): (String, &str) = match self {
            BackendError::Rejected(report) => return (report.to_string(), None),
            BackendError::InvalidProgram { fix: text } | BackendError::Other(text) => return split_fix(text),
            BackendError::Resident(error) => return error.what_and_fix(),
            BackendError::UnsupportedFeature { feature, backend } => {
                (format!("the backend `{backend}` has no {feature}"), "use another backend, or ask `route` for one that has it")
            }
            BackendError::UnknownBackend { id, known } if known.is_empty() => {
                (format!("there is no backend `{id}`, and no other"), "depend on a backend crate")
            }
            BackendError::UnknownBackend { id, known } => {
                return (format!("there is no backend `{id}`"), Some(format!("use one of {}", known.join(", "))));
            }
            BackendError::NoBackend { passed_over } if passed_over.is_empty() => {
                ("there is no backend".into(), "depend on a backend crate")
            }
            BackendError::NoBackend { passed_over } => {
                let why = passed_over.iter().map(|(id, why)| format!("\n  {id}: {why}"));
                return (format!("no backend can run this program{}", why.collect::<String>()), None);
            }
            BackendError::Trap { tag, invocation: [x, y, z] } => return (format!("trap {tag} in invocation {x},{y},{z}"), None),
            BackendError::OutOfMemory { requested } => {
                (format!("the device does not have {requested} bytes of free memory"), "free resident data, or dispatch in parts")
            }
            BackendError::Timeout { limit } => {
                (format!("the dispatch took longer than {limit:?}"), "give it more time, or dispatch in parts")
            }
            BackendError::DeviceLost { reason } => {
                (format!("the device is lost: {reason}"), "call `try_recover`, then upload resident data again")
            }
            BackendError::ShortRead { expected, found } => return (format!("the device gave {found} bytes of {expected}"), None),
            BackendError::Poisoned => ("a thread panicked inside the backend".into(), "open the backend again"),
        };
        (what, Some(fix.into()))
    }
}

/// What to do stands in a text after these words, which can also begin it.
fn split_fix(text: &str) -> (String, Option<String>) {
    const WORDS: &str = "Fix: ";
    if let Some(all) = text.strip_prefix(WORDS) {
        return (all.into(), None);
    }
    let at = text.match_indices(WORDS).find(|(at, _)| text[..*at].ends_with(char::is_whitespace));
    match at {
        Some((at, _)) => (text[..at].into(), Some(text[at + WORDS.len()..].into())),
        None => (text.into(), None),
    }
}

impl fmt::Display for BackendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let BackendError::InvalidProgram { fix: text } | BackendError::Other(text) = self {
            return f.write_str(text);
        }
        match self.what_and_fix() {
            (what, Some(fix)) => write!(f, "{what}. Fix: {fix}"),
            (what, None) => f.write_str(&what),
        }
    }
}

impl ResidentError {
    fn what_and_fix(&self) -> (String, Option<String>) {
        let (what, fix) = match self {
            ResidentError::Foreign(handle) => (
                format!("resident handle {handle:#x} belongs to another backend"),
                "use handles with the instance that made them",
            ),
            ResidentError::Freed(handle) => {
                (format!("resident handle {handle:#x} was freed"), "free memory once, after its last use")
            }
            ResidentError::Stale(handle) => {
                (format!("resident handle {handle:#x} is from before the device was lost"), "allocate and upload again")
            }
            ResidentError::Aliased(handle) => {
                (format!("resident handle {handle:#x} is bound to two buffers, one of which is written"), "copy it first")
            }
            ResidentError::OutOfRange { handle, offset, length, size } => (
                format!("{length} bytes from {offset} are outside resident handle {handle:#x}, which has {size}"),
                "stay inside, or allocate more",
            ),
            ResidentError::NotResident => {
                ("a resident handle is needed here, found bytes".into(), "upload them to memory from `allocate_resident`")
            }
        };
        (what, Some(fix.into()))
    }
}

impl fmt::Display for ResidentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.what_and_fix() {
            (what, Some(fix)) => write!(f, "{what}. Fix: {fix}"),
            (what, None) => f.write_str(&what),
        }
    }
}

impl std::error::Error for BackendError {}
impl std::error::Error for ResidentError {}
