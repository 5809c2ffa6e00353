//! Panics as values: what was said, and where.
//!
//! A panic hook is for the whole process. This one is put in once, takes the message of panics inside [`caught`], and leaves all
//! others to the hook that was there before.

use crate::subject::{Answer, Failure, Job, Outputs, Patience, Sequence, Subject};
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;
use std::time::Duration;
use vyre_driver::device::Ran;
use vyre_foundation::case::Case;

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
    static SAID: RefCell<Option<String>> = const { RefCell::new(None) };
}

static HOOK: Once = Once::new();

/// What `run` gives, or what it panicked with: the message and the place in the source.
///
/// After a panic, whatever `run` was changing may be half changed: do not use it again.
pub fn caught<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    HOOK.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |info| {
            if !INSIDE.get() {
                return before(info);
            }
            let message = info.payload_as_str().unwrap_or("a panic without a message");
            let place = info.location().map_or(String::new(), |at| format!(" at {}:{}:{}", at.file(), at.line(), at.column()));
            SAID.set(Some(format!("{message}{place}")));
        }));
    });
    let outer = INSIDE.replace(true);
    let result = catch_unwind(AssertUnwindSafe(run));
    INSIDE.set(outer);
    result.map_err(|_| SAID.take().unwrap_or_else(|| "a panic without a message".into()))
}

/// A subject whose panics are failures. After one it is made anew, since what panicked may be half changed.
pub struct Contained<F> {
    name: String,
    subject: Box<dyn Subject>,
    make: F,
}

impl<F: FnMut() -> Box<dyn Subject> + Send> Contained<F> {
    /// The subject that `make` gives.
    pub fn new(mut make: F) -> Self {
        let subject = make();
        Contained { name: subject.name().to_string(), subject, make }
    }

    fn contain<T>(&mut self, run: impl FnOnce(&mut dyn Subject) -> Result<T, Failure>) -> Result<T, Failure> {
        caught(|| run(&mut *self.subject)).unwrap_or_else(|message| {
            self.subject = (self.make)();
            Err(Failure::Panicked(message))
        })
    }
}

impl<F: FnMut() -> Box<dyn Subject> + Send> Subject for Contained<F> {
    fn name(&self) -> &str {
        &self.name
    }

    fn run(&mut self, case: &Case) -> Result<Outputs, Failure> {
        self.contain(|subject| subject.run(case))
    }

    fn run_in_place(&mut self, job: Job<'_, '_>) -> Result<Option<Ran>, Failure> {
        self.contain(|subject| subject.run_in_place(job))
    }

    /// One by one, so that a panic costs one case; what the subject says about each is kept.
    fn run_batch(&mut self, cases: &[Case]) -> Vec<Answer> {
        let alone = |case: &Case| {
            let told = self.contain(|subject| Ok(subject.run_batch(std::slice::from_ref(case)).pop()));
            told.and_then(|answer| answer.ok_or_else(|| Failure::NotRun("the subject gave no answer".into())))
        };
        cases.iter().map(alone).map(|told| told.unwrap_or_else(|failure| Err(failure).into())).collect()
    }

    fn run_sequence(&mut self, sequence: &Sequence) -> Result<Outputs, Failure> {
        self.contain(|subject| subject.run_sequence(sequence))
    }

    fn deadline(&self) -> Option<Duration> {
        self.subject.deadline()
    }

    fn wait_for(&mut self, patience: Patience) {
        self.subject.wait_for(patience);
    }

    fn renew(&mut self) {
        self.subject = (self.make)();
    }

    fn reuse(&mut self, outputs: Vec<Outputs>) {
        self.subject.reuse(outputs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vyre_foundation::ir::Program;

    /// After a panic nothing of the subject is left, whichever way it was run.
    #[test]
    fn a_subject_that_panicked_is_made_anew() {
        struct Counts(u8);

        impl Subject for Counts {
            fn name(&self) -> &str {
                "counts"
            }

            fn run(&mut self, case: &Case) -> Result<Outputs, Failure> {
                self.0 += 1;
                assert!(case.fuel > 0, "no fuel");
                Ok(vec![vec![self.0]])
            }
        }

        let mut made = 0;
        let mut subject = Contained::new(|| {
            made += 1;
            Box::new(Counts(0)) as Box<dyn Subject>
        });
        let good = Case::new(Program::default(), vec![]);
        let bad = Case { fuel: 0, ..good.clone() };
        let count = |n: u8| Ok(vec![vec![n]]);
        assert_eq!((subject.run(&good), subject.run(&good)), (count(1), count(2)));
        assert!(matches!(subject.run(&bad), Err(Failure::Panicked(said)) if said.contains("no fuel")));
        assert_eq!((subject.run(&good), subject.run(&good)), (count(1), count(2)));
        let job = Job { program: &bad.program, config: &bad.config, fuel: 0, inputs: &[], outputs: &mut [] };
        assert!(matches!(subject.run_in_place(job), Err(Failure::Panicked(_))));
        assert_eq!(subject.run(&good), count(1));
        drop(subject);
        assert_eq!(made, 3);
    }

    #[test]
    fn a_panic_is_its_message_and_its_place() {
        let text = String::from("seven");
        let said: Result<(), String> = caught(|| panic!("no {text}"));
        let said = said.expect_err("it panics");
        assert!(said.starts_with("no seven at ") && said.contains("caught.rs:"), "{said}");
        assert_eq!(caught(|| 7), Ok(7));
        let nested = caught(|| caught(|| panic!("inner")).is_err());
        assert_eq!(nested, Ok(true));
    }
}
