//! The runner over generators of the user's own: cases are run while they are generated.
//!
//! A generator gives cases in order and nobody knows how many, so the units of its cases are told apart by counting: each is the next
//! [`UNIT`] cases of one op, program and workgroup size. What was committed before a run was cut off is generated again and not run
//! again.

mod generator;
mod progress;
mod run;

pub use generator::InputGenerator;
pub use progress::{FnProgress, ProgressSink, StreamingProgress};

use crate::error::RunError;
use crate::report::RunReport;
use crate::spec::OpSpec;
use std::path::PathBuf;
use std::time::Duration;
use vyre_driver::VyreBackend;

/// Cases of a unit, the smallest thing that is committed and that has a hash of its own.
pub const UNIT: u64 = 1 << 16;

/// How long units are gathered before they are committed together, in a run that began this long ago: two seconds, and less in the
/// beginning, so that a short run tells how far it is.
pub(crate) fn gather(elapsed: Duration) -> Duration {
    (elapsed / 8).clamp(Duration::from_millis(100), Duration::from_secs(2))
}

/// Runs ops on a backend over cases of generators.
///
/// The state folder keeps what failed, to be run first from then on, and what was done, so that a run that is cut off goes on where it
/// was. Only a run of the same specs, generators, settings and backend goes on; a finished run says nothing about the next one.
pub struct StreamingRunner {
    generators: Vec<Box<dyn InputGenerator>>,
    progress: Option<Box<dyn ProgressSink>>,
    state: Option<PathBuf>,
    shard: (u64, u64),
    skip: u64,
    batch: usize,
    seed: u64,
    max_output_bytes: usize,
    max_cases: u64,
    regressions_only: bool,
}

impl Default for StreamingRunner {
    fn default() -> Self {
        StreamingRunner {
            generators: Vec::new(),
            progress: None,
            state: None,
            shard: (0, 1),
            skip: 0,
            batch: UNIT as usize,
            seed: 0,
            max_output_bytes: 16 << 20,
            max_cases: u64::MAX,
            regressions_only: false,
        }
    }
}

impl StreamingRunner {
    /// Without generators, in one shard, nothing skipped, a whole unit to a dispatch.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Cases from this generator too.
    #[must_use]
    pub fn with_generator(mut self, generator: impl InputGenerator + 'static) -> Self {
        self.generators.push(Box::new(generator));
        self
    }

    /// Tells how far the run is, once per unit, when the unit is committed.
    #[must_use]
    pub fn on_progress(mut self, sink: impl ProgressSink + 'static) -> Self {
        self.progress = Some(Box::new(sink));
        self
    }

    /// Where state is kept; without a folder nothing outlives the run.
    #[must_use]
    pub fn state_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.state = Some(folder.into());
        self
    }

    /// Only the units of shard `shard` of `of`; all shards together have all units, and no unit twice.
    #[must_use]
    pub fn shard(mut self, shard: u64, of: u64) -> Self {
        self.shard = (shard, of);
        self
    }

    /// The first so many cases of the run are not run.
    #[must_use]
    pub fn skip(mut self, cases: u64) -> Self {
        self.skip = cases;
        self
    }

    /// How many cases a dispatch has at most.
    #[must_use]
    pub fn batch_size(mut self, cases: usize) -> Self {
        self.batch = cases;
        self
    }

    /// What generators are given to draw from, and what decides which cases the reference sees.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// How many bytes the result of a case may have; more are a failure of the case.
    #[must_use]
    pub fn max_output_bytes(mut self, bytes: usize) -> Self {
        self.max_output_bytes = bytes;
        self
    }

    /// Takes so many cases of a generator for each op, program and workgroup size, and stops it there. It is stopped by unwinding
    /// through it, so it must not catch panics itself.
    #[must_use]
    pub fn max_cases(mut self, cases: u64) -> Self {
        self.max_cases = cases;
        self
    }

    /// Runs only what failed before.
    #[must_use]
    pub fn regressions_only(mut self) -> Self {
        self.regressions_only = true;
        self
    }

    /// Runs the ops on the backend, in this process; panics are caught and are failures of a case.
    ///
    /// # Errors
    ///
    /// If there is no verdict. Failures are a verdict, and stand in the report.
    pub fn run(self, backend: &dyn VyreBackend, ops: &[OpSpec]) -> Result<RunReport, RunError> {
        run::run(self, backend, ops)
    }
}
