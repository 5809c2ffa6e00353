//! A backend of the caller's as a subject, in this process.

use vyre_driver::VyreBackend;
use vyre_foundation::case::Case;
use vyre_worker::backend::failure;
use vyre_worker::{Answer, Failure, Outputs, Subject, caught};

/// Runs cases on a backend that somebody else holds. Panics are failures of a case; a crash is the end of the process.
pub(crate) struct InProcess<'a> {
    pub backend: &'a dyn VyreBackend,
}

impl InProcess<'_> {
    fn answer(&self, case: &Case) -> Answer {
        let dispatch = || self.backend.dispatch_borrowed_timed(&case.program, &case.input_slices(), &case.config);
        match caught(dispatch) {
            Ok(Ok(timed)) => Answer { outcome: Ok(timed.outputs), after: Vec::new(), ran: timed.ran },
            Ok(Err(error)) => Err(failure(error)).into(),
            Err(said) => Err(Failure::Panicked(said)).into(),
        }
    }
}

impl Subject for InProcess<'_> {
    fn name(&self) -> &str {
        self.backend.id()
    }

    fn run(&mut self, case: &Case) -> Result<Outputs, Failure> {
        self.answer(case).outcome
    }

    fn run_batch(&mut self, cases: &[Case]) -> Vec<Answer> {
        cases.iter().map(|case| self.answer(case)).collect()
    }
}
