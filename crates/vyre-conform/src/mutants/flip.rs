//! One flipped bit in the answers of a subject: a control that tells whether anybody looks at them.

use vyre_worker::{Answer, Case, Failure, Job, Outputs, Ran, Sequence, Subject};

/// The bit that is flipped.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Flip {
    /// In which answer, counted from the first case that the subject gets: cases of batches one by one, and a sequence as one.
    pub case: u64,
    /// In which output.
    pub output: usize,
    /// In which byte of it.
    pub byte: usize,
    /// Which bit of that, from the lowest.
    pub bit: u8,
}

/// A subject whose answers are another's but for one bit of one of them.
pub struct Flipped {
    inner: Box<dyn Subject>,
    flip: Flip,
    name: String,
    answered: u64,
    done: bool,
}

impl Flipped {
    /// The subject with one bit flipped.
    #[must_use]
    pub fn new(inner: Box<dyn Subject>, flip: Flip) -> Flipped {
        let name = format!("{} with one bit flipped", inner.name());
        Flipped { inner, flip, name, answered: 0, done: false }
    }

    /// Whether the bit was flipped: not if its case did not come, failed, or has no such byte.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// Counts an answer; flips the bit, if it is this one's.
    fn answer<T: AsMut<[u8]>>(&mut self, outputs: Result<&mut [T], ()>) {
        let here = self.answered == self.flip.case;
        self.answered += 1;
        let Ok(outputs) = outputs else { return };
        let byte = outputs.get_mut(self.flip.output).and_then(|bytes| bytes.as_mut().get_mut(self.flip.byte));
        if let Some(byte) = byte.filter(|_| here) {
            *byte ^= 1 << (self.flip.bit % 8);
            self.done = true;
        }
    }
}

impl Subject for Flipped {
    fn name(&self) -> &str {
        &self.name
    }

    fn run(&mut self, case: &Case) -> Result<Outputs, Failure> {
        let mut outcome = self.inner.run(case);
        self.answer(outcome.as_mut().map(Vec::as_mut_slice).map_err(|_| ()));
        outcome
    }

    fn run_in_place(&mut self, job: Job<'_, '_>) -> Result<Option<Ran>, Failure> {
        let Job { program, config, fuel, inputs, outputs } = job;
        let outcome = self.inner.run_in_place(Job { program, config, fuel, inputs, outputs: &mut *outputs });
        self.answer(outcome.as_ref().map(|_| outputs).map_err(|_| ()));
        outcome
    }

    fn run_sequence(&mut self, sequence: &Sequence) -> Result<Outputs, Failure> {
        let mut outcome = self.inner.run_sequence(sequence);
        self.answer(outcome.as_mut().map(Vec::as_mut_slice).map_err(|_| ()));
        outcome
    }

    fn run_batch(&mut self, cases: &[Case]) -> Vec<Answer> {
        let mut answers = self.inner.run_batch(cases);
        for answer in &mut answers {
            self.answer(answer.outcome.as_mut().map(Vec::as_mut_slice).map_err(|_| ()));
        }
        answers
    }
}
