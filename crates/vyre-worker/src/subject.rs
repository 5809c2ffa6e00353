//! What is run, by whom, and what can come of it.

use crate::memory::Side;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;
use vyre_driver::device::Ran;
use vyre_foundation::case::Case;
use vyre_foundation::config::DispatchConfig;
use vyre_foundation::ir::Program;
use vyre_scalar::memory::element_count;

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
    /// Somebody wrote outside of the outputs: so many bytes before or behind a buffer, or into an input.
    WildWrite {
        /// The buffer: `input 0`, `output 1`, as the interface counts them.
        buffer: String,
        /// Which side of it.
        side: Side,
        /// How far from it; of an input the first byte that is changed.
        offset: u64,
    },
    /// Nothing was learned: no process could be started to run the case, or it was told to stop.
    NotRun(String),
    /// The case was not run, or nobody waited for it any longer: others that were asked for with it hang.
    GivenUp(String),
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
            Failure::WildWrite { buffer, side, offset } => write!(f, "wild write: {side} {buffer}, byte {offset}"),
            Failure::NotRun(why) | Failure::GivenUp(why) => write!(f, "not run: {why}"),
        }
    }
}

impl Failure {
    /// Whether a worker can say this of a case. The rest is seen from outside.
    pub(crate) fn is_workers(&self) -> bool {
        match self {
            Failure::Trap { .. }
            | Failure::Refused(_)
            | Failure::Unsupported(_)
            | Failure::OutOfFuel
            | Failure::Panicked(_)
            | Failure::Device(_) => true,
            Failure::Crashed(_) | Failure::Hung(_) | Failure::WildWrite { .. } | Failure::NotRun(_) | Failure::GivenUp(_) => {
                false
            }
        }
    }
}

impl std::error::Error for Failure {}

/// One dispatch over memory of the caller's.
pub struct Job<'a, 'b> {
    /// The program, constants not yet replaced.
    pub program: &'a Program,
    /// What is said about the dispatch.
    pub config: &'a DispatchConfig,
    /// See [`Case::fuel`].
    pub fuel: u64,
    /// In the order of the interface.
    pub inputs: &'a [&'b [u8]],
    /// In the order of the interface, as long as the launch says. What they hold at first means nothing.
    pub outputs: &'a mut [&'b mut [u8]],
}

impl Job<'_, '_> {
    /// Whether the places of outputs are as many and as long as a launch says.
    ///
    /// # Errors
    ///
    /// [`Failure::Device`] if they are not.
    pub fn check_lengths(&self, lengths: impl Iterator<Item = u64> + Clone) -> Result<(), Failure> {
        check_lengths(lengths, self.outputs)
    }

    /// Puts outputs into their places.
    ///
    /// # Errors
    ///
    /// If they are not as many or not as long as those.
    pub fn put(&mut self, found: &[Vec<u8>]) -> Result<(), Failure> {
        put(found, self.outputs)
    }
}

pub(crate) fn put(found: &[Vec<u8>], outputs: &mut [&mut [u8]]) -> Result<(), Failure> {
    check_lengths(found.iter().map(|found| found.len() as u64), outputs)?;
    found.iter().zip(outputs).for_each(|(found, place)| place.copy_from_slice(found));
    Ok(())
}

fn check_lengths(lengths: impl Iterator<Item = u64> + Clone, outputs: &[&mut [u8]]) -> Result<(), Failure> {
    let places = || outputs.iter().map(|place| place.len() as u64);
    if lengths.clone().eq(places()) {
        return Ok(());
    }
    let (lengths, places): (Vec<u64>, Vec<u64>) = (lengths.collect(), places().collect());
    Err(Failure::Device(format!("it gives outputs of {lengths:?} bytes instead of {places:?}")))
}

/// Dispatches over buffers that stay where they are in between.
#[derive(Clone, PartialEq, Debug)]
pub struct Sequence {
    /// What the buffers begin with.
    pub buffers: Vec<Vec<u8>>,
    /// The dispatches in order.
    pub steps: Vec<SequenceStep>,
    /// The steps in which the reference ends each of them.
    pub fuel: u64,
}

/// One dispatch of a sequence.
#[derive(Clone, PartialEq, Debug)]
pub struct SequenceStep {
    /// The program, constants not yet replaced.
    pub program: Program,
    /// What is said about it. Lengths of outputs are those of the buffers.
    pub config: DispatchConfig,
    /// By binding number: which of the sequence's buffers. An output is zero before the dispatch.
    pub buffers: Vec<usize>,
}

impl SequenceStep {
    /// The dispatch by itself on what the buffers hold, and which of them its outputs are.
    pub fn case(&self, buffers: &[Vec<u8>], fuel: u64) -> Result<(Case, Vec<usize>), Failure> {
        let refused = |why: String| Failure::Refused(why);
        let program = self.config.specialization.apply(&self.program).map_err(|report| refused(report.to_string()))?;
        let validated = program.validated().map_err(|report| refused(report.to_string()))?;
        let bound = &program.interface().bound;
        if bound.len() != self.buffers.len() || self.buffers.iter().any(|n| *n >= buffers.len()) {
            return Err(refused(format!("the program has {} buffers, and {:?} are bound", bound.len(), self.buffers)));
        }
        let mut config = self.config.clone();
        let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
        for (i, n) in bound.iter().zip(&self.buffers) {
            let buffer = &validated.kernel().buffers[*i];
            if buffer.access.is_input() {
                inputs.push(buffers[*n].clone());
            } else if buffer.count.is_none() {
                let count = element_count(&buffer.element, buffers[*n].len() as u64).and_then(|count| u32::try_from(count).ok());
                config.output_counts.insert(buffer.name.as_str().into(), count.unwrap_or(u32::MAX));
            }
            if buffer.access.is_output() {
                outputs.push(*n);
            }
        }
        Ok((Case { program: self.program.clone(), inputs, config, fuel }, outputs))
    }
}

/// What a subject says about one case of a batch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// Its outputs, or why there are none.
    pub outcome: Result<Outputs, Failure>,
    /// The cases of the batch that have to run before it, in this order, for the outcome to be this; for nearly all cases none.
    pub after: Vec<usize>,
    /// What ran, if the subject says so.
    pub ran: Option<Ran>,
}

impl From<Result<Outputs, Failure>> for Answer {
    /// An outcome that depends on no other case.
    fn from(outcome: Result<Outputs, Failure>) -> Self {
        Answer { outcome, after: Vec::new(), ran: None }
    }
}

/// How long somebody waits for the cases of one call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Patience {
    /// For each case, until one hangs.
    pub deadline: Duration,
    /// For each case after one that hung.
    pub then: Duration,
    /// How many may hang; after that many the others of the call are [`Failure::GivenUp`].
    pub hangs: usize,
}

impl Patience {
    /// The same time for every case, however many hang.
    #[must_use]
    pub fn even(deadline: Duration) -> Patience {
        Patience { deadline, then: deadline, hangs: usize::MAX }
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

    /// Runs one case in memory of the caller's, whose outputs it writes completely; says what ran, if it knows.
    ///
    /// As it stands here the bytes are copied there and back; a subject that can do without implements it.
    fn run_in_place(&mut self, job: Job<'_, '_>) -> Result<Option<Ran>, Failure> {
        let Job { program, config, fuel, inputs, outputs } = job;
        let inputs = inputs.iter().map(|bytes| bytes.to_vec()).collect();
        let case = Case { program: program.clone(), inputs, config: config.clone(), fuel };
        put(&self.run(&case)?, outputs)?;
        Ok(None)
    }

    /// Runs dispatches one after the other over buffers that stay; gives what is in all of them at the end.
    ///
    /// As it stands here each is a case of its own; a subject that has memory of its own implements it.
    fn run_sequence(&mut self, sequence: &Sequence) -> Result<Outputs, Failure> {
        let mut buffers = sequence.buffers.clone();
        for step in &sequence.steps {
            let (case, outputs) = step.case(&buffers, sequence.fuel)?;
            let found = self.run(&case)?;
            if found.len() != outputs.len() {
                return Err(Failure::Device(format!("it gives {} outputs instead of {}", found.len(), outputs.len())));
            }
            outputs.into_iter().zip(found).for_each(|(n, bytes)| buffers[n] = bytes);
        }
        Ok(buffers)
    }

    /// Runs many cases; one answer for each, in their order.
    fn run_batch(&mut self, cases: &[Case]) -> Vec<Answer> {
        cases.iter().map(|case| self.run(case).into()).collect()
    }

    /// How long a case may take by itself, if this subject looks at the clock and ends what takes longer.
    fn deadline(&self) -> Option<Duration> {
        None
    }

    /// Waits so long from the next call on. A subject that has no deadline does not listen.
    fn wait_for(&mut self, patience: Patience) {
        let _ = patience;
    }

    /// Begins anew, as if nothing had run: a fresh process, a device that was just opened.
    ///
    /// As it stands here nothing is done; a subject that can remember anything implements it.
    fn renew(&mut self) {}

    /// Takes outputs back that nobody looks at any more, so that later ones have their memory: fresh memory costs as much as all the rest
    /// of a large case's way to another process and back.
    fn reuse(&mut self, outputs: Vec<Outputs>) {
        drop(outputs);
    }
}
