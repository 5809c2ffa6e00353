//! What is run, by whom, and what can come of it.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;
use vyre_foundation::case::Case;

/// The bytes of a program's outputs in the order of its interface.
pub type Outputs = Vec<Vec<u8>>;

/// Why a case gave no outputs; one variant per thing a judge does about it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// The program trapped: an outcome like any other, to be compared.
    Trap {
        /// The number in the `trap` statement.
        tag: u32,
        /// The smallest invocation that trapped.
        invocation: [u32; 3],
    },
    /// The program, its constants, inputs or launch are wrong; nothing ran.
    Refused(String),
    /// The subject cannot run this program; it says what it lacks.
    Unsupported(String),
    /// The dispatch took more steps than it was given.
    OutOfFuel,
    /// The subject panicked with this message.
    Panicked(String),
    /// The subject's process ended: by this signal or exit status.
    Crashed(String),
    /// The subject gave no answer for this long, and its process was ended.
    Hung(Duration),
    /// The subject's device failed.
    Device(String),
    /// Nothing was learned: no process could be started to run the case.
    NotRun(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Trap { tag, invocation: [x, y, z] } => write!(f, "trap {tag} in invocation {x},{y},{z}"),
            Failure::Refused(why) => write!(f, "refused: {why}"),
            Failure::Unsupported(what) => write!(f, "not supported: {what}"),
            Failure::OutOfFuel => f.write_str("out of fuel"),
            Failure::Panicked(message) => write!(f, "panicked: {message}"),
            Failure::Crashed(how) => write!(f, "crashed: {how}"),
            Failure::Hung(time) => write!(f, "gave no answer for {time:?}"),
            Failure::Device(why) => write!(f, "device failed: {why}"),
            Failure::NotRun(why) => write!(f, "not run: {why}"),
        }
    }
}

impl std::error::Error for Failure {}

/// What a subject says about one case of a batch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// Its outputs, or why there are none.
    pub outcome: Result<Outputs, Failure>,
    /// The cases of the batch that have to run before it, in this order, for the outcome to be this; for nearly all cases none.
    pub after: Vec<usize>,
}

impl From<Result<Outputs, Failure>> for Answer {
    /// An outcome that depends on no other case.
    fn from(outcome: Result<Outputs, Failure>) -> Self {
        Answer { outcome, after: Vec::new() }
    }
}

/// Something that runs programs and is judged by their bytes.
///
/// The judge has validated the program and checked that inputs and launch fit it. A subject may keep what it compiled for the next
/// call; it may panic, crash or never return, if it is run in a worker process.
pub trait Subject: Send {
    /// Its name, as the command line takes it.
    fn name(&self) -> &str;

    /// Runs one case.
    fn run(&mut self, case: &Case) -> Result<Outputs, Failure>;

    /// Runs many cases; one answer for each, in their order.
    fn run_batch(&mut self, cases: &[Case]) -> Vec<Answer> {
        cases.iter().map(|case| self.run(case).into()).collect()
    }
}
