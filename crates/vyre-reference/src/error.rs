//! Why a dispatch gave no outputs.

use std::fmt;
use vyre_foundation::ir::{NodeId, Program};
use vyre_foundation::{Diagnostic, Location, Report};
use vyre_spec::ErrorCode;

/// Why a dispatch gave no outputs; one variant per thing a caller does about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RunError {
    /// The program, its constants, inputs or launch are wrong; nothing ran.
    Rejected(Report),
    /// The kernel trapped. All other invocations finished.
    Trap {
        /// The number in the `trap` statement.
        tag: u32,
        /// The smallest invocation that trapped: its `gid`. Invocations are ordered by z, then y, then x.
        invocation: [u32; 3],
        /// The statement.
        place: NodeId,
    },
    /// The dispatch took more steps than it was given.
    OutOfFuel {
        /// The steps it was given.
        fuel: u64,
    },
    /// The dispatch took longer than it was given.
    Timeout,
    /// Whoever wanted the result took that back.
    Cancelled,
}

impl RunError {
    /// The error as a report about `program`.
    #[must_use]
    pub fn report(&self, program: &Program) -> Report {
        match self {
            RunError::Rejected(report) => report.clone(),
            RunError::Trap { tag, invocation: [x, y, z], place } => Report::about(
                program,
                vec![
                    Diagnostic::new(ErrorCode::E0713, format!("trap {tag} in invocation {x},{y},{z}"))
                        .at(Location::Tree(*place))
                        .help("there are no outputs; this is the first of the invocations that trapped"),
                ],
            ),
            RunError::OutOfFuel { fuel } => Report::single(
                Diagnostic::new(ErrorCode::E0712, format!("the dispatch takes more than {fuel} steps"))
                    .help("give it more fuel (`--fuel N`), or a smaller launch"),
            ),
            RunError::Timeout => Report::single(
                Diagnostic::new(ErrorCode::E0807, "the dispatch took longer than it was given")
                    .help("give it more time (`--timeout`), or a smaller launch"),
            ),
            RunError::Cancelled => Report::single(Diagnostic::new(ErrorCode::E0807, "the dispatch was cancelled")),
        }
    }
}

impl From<Report> for RunError {
    fn from(report: Report) -> Self {
        RunError::Rejected(report)
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Rejected(report) => report.fmt(f),
            RunError::Trap { tag, invocation: [x, y, z], .. } => write!(f, "trap {tag} in invocation {x},{y},{z}"),
            RunError::OutOfFuel { fuel } => write!(f, "the dispatch takes more than {fuel} steps"),
            RunError::Timeout => f.write_str("the dispatch took longer than it was given"),
            RunError::Cancelled => f.write_str("the dispatch was cancelled"),
        }
    }
}

impl std::error::Error for RunError {}
