//! Why there is no verdict.

use crate::ledger::LedgerError;
use crate::spec::SpecError;
use std::fmt;

/// Why a run has no verdict.
#[derive(Debug)]
pub enum RunError {
    /// Nothing was tested, and that is not a pass.
    NothingRan(String),
    /// A spec cannot be run.
    Spec(SpecError),
    /// What was asked for makes no sense: shard 5 of 4, a batch of no cases.
    Usage(String),
    /// The state folder cannot be used.
    Ledger(LedgerError),
    /// No process could be started, or a generator panicked: nothing more can be learned.
    Stopped(String),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::NothingRan(why) => write!(f, "nothing was tested, so there is no verdict: {why}"),
            RunError::Spec(error) => error.fmt(f),
            RunError::Usage(what) => f.write_str(what),
            RunError::Ledger(error) => error.fmt(f),
            RunError::Stopped(why) => write!(f, "the run cannot go on: {why}"),
        }
    }
}

impl std::error::Error for RunError {}

impl From<SpecError> for RunError {
    fn from(error: SpecError) -> Self {
        RunError::Spec(error)
    }
}

impl From<LedgerError> for RunError {
    fn from(error: LedgerError) -> Self {
        RunError::Ledger(error)
    }
}
