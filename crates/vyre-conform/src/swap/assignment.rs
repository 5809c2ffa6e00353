//! A sequence of dispatches under every assignment of backends to its steps.

use super::relay::{HandOverError, Relay};
use crate::order::{self, Order};
use std::fmt;
use vyre_driver::{BackendError, VyreBackend};
use vyre_smith::subjects::Reference;
use vyre_worker::{Failure, Sequence};

/// Dispatches of a sequence, at most.
pub const MAX_STEPS: usize = 8;

/// Assignments that are tried, at most: all of two backends on eight steps.
pub const MAX_ASSIGNMENTS: u64 = 256;

/// Which backend runs each step: all possibilities, those of the last step changing fastest.
#[derive(Clone, Debug)]
pub struct Assignments {
    backends: usize,
    next: Option<Vec<usize>>,
}

impl Assignments {
    /// All of so many backends to so many steps. Without backends there is none, unless there are no steps.
    #[must_use]
    pub fn new(backends: usize, steps: usize) -> Assignments {
        let next = (backends > 0 || steps == 0).then(|| vec![0; steps]);
        Assignments { backends, next }
    }
}

impl Iterator for Assignments {
    type Item = Vec<usize>;

    fn next(&mut self) -> Option<Vec<usize>> {
        let current = self.next.take()?;
        let mut following = current.clone();
        for step in (0..following.len()).rev() {
            following[step] += 1;
            if following[step] < self.backends {
                self.next = Some(following);
                break;
            }
            following[step] = 0;
        }
        Some(current)
    }
}

/// Why a sequence could not be judged at all.
#[derive(Clone, PartialEq, Debug)]
pub enum SwapError {
    /// There is nothing to assign.
    NoBackends,
    /// Two backends have one name, by which they could not be told apart.
    SameName(&'static str),
    /// The sequence has no dispatch, or more than [`MAX_STEPS`].
    Steps(usize),
    /// There are more assignments than [`MAX_ASSIGNMENTS`].
    TooMany(u64),
    /// The reference refuses a step.
    Refused {
        /// The step.
        step: usize,
        /// Why.
        failure: Failure,
    },
    /// The bytes of a step are not promised: they depend on the order of its invocations.
    OrderShows {
        /// The step.
        step: usize,
        /// What is known.
        why: String,
    },
}

impl fmt::Display for SwapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SwapError::NoBackends => f.write_str("there are no backends"),
            SwapError::SameName(name) => write!(f, "the backend `{name}` is given twice"),
            SwapError::Steps(steps) => write!(f, "a sequence has 1 to {MAX_STEPS} dispatches, and this one has {steps}"),
            SwapError::TooMany(all) => write!(f, "{all} assignments are more than {MAX_ASSIGNMENTS}"),
            SwapError::Refused { step, failure } => write!(f, "the reference does not run step {step}: {failure}"),
            SwapError::OrderShows { step, why } => write!(f, "the bytes of step {step} are not promised: {why}"),
        }
    }
}

impl std::error::Error for SwapError {}

/// What went wrong with an assignment.
#[derive(Clone, PartialEq, Debug)]
pub enum SwapProblem {
    /// A buffer ends with other bytes than the reference's.
    Differs {
        /// The buffer.
        buffer: usize,
        /// The first byte that differs.
        byte: usize,
        /// What the reference has there.
        expected: u8,
        /// What is there.
        found: u8,
    },
    /// A step or a hand-over failed.
    Failed {
        /// The step; that after the last for what is read at the end.
        step: usize,
        /// Why.
        error: HandOverError,
    },
    /// A step ran to its end, and in the reference it traps.
    NoTrap {
        /// The step.
        step: usize,
    },
}

/// An assignment that did not end as it must.
#[derive(Clone, PartialEq, Debug)]
pub struct SwapFailure {
    /// By step: the backend.
    pub assignment: Vec<&'static str>,
    /// What went wrong.
    pub problem: SwapProblem,
}

impl fmt::Display for SwapFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.assignment.join(", "))?;
        match &self.problem {
            SwapProblem::Differs { buffer, byte, expected, found } => {
                write!(f, "byte {byte} of buffer {buffer} is {found:#04x}, and {expected:#04x} in the reference")
            }
            SwapProblem::Failed { step, error } => write!(f, "step {step}: {error}"),
            SwapProblem::NoTrap { step } => write!(f, "step {step} does not trap, as it does in the reference"),
        }
    }
}

/// What became of all assignments.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SwapReport {
    /// Those that ran and were compared.
    pub compared: u64,
    /// Those with a step that its backend cannot run, as it says itself.
    pub unsupported: u64,
    /// What the first of these lacks.
    pub lacks: Option<String>,
    /// How often a buffer went to a backend that did not have its bytes.
    pub hand_overs: u64,
    /// Bytes that went so.
    pub bytes_moved: u64,
    /// Those that did not end as they must.
    pub failures: Vec<SwapFailure>,
}

impl SwapReport {
    /// Whether something was compared, and all of it was right.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.compared > 0 && self.failures.is_empty()
    }
}

/// What the reference makes of a sequence.
struct Expected {
    /// What is in the buffers at the end, or before the step that traps.
    buffers: Vec<Vec<u8>>,
    /// The step that traps, and how.
    trap: Option<(usize, u32, [u32; 3])>,
}

/// Runs a sequence under every assignment of these backends to its steps. Each must end with the reference's bytes in every buffer, or trap
/// where the reference traps and leave the buffers as they were before that step.
///
/// # Errors
///
/// If there is nothing to compare with, or too much to try; see [`SwapError`].
pub fn every_assignment(backends: &[&dyn VyreBackend], sequence: &Sequence) -> Result<SwapReport, SwapError> {
    if backends.is_empty() {
        return Err(SwapError::NoBackends);
    }
    for (n, backend) in backends.iter().enumerate() {
        if backends[..n].iter().any(|other| other.id() == backend.id()) {
            return Err(SwapError::SameName(backend.id()));
        }
    }
    let steps = sequence.steps.len();
    if !(1..=MAX_STEPS).contains(&steps) {
        return Err(SwapError::Steps(steps));
    }
    let all = (0..steps).fold(1u64, |all, _| all.saturating_mul(backends.len() as u64));
    if all > MAX_ASSIGNMENTS {
        return Err(SwapError::TooMany(all));
    }
    let expected = expect(sequence)?;
    let mut report = SwapReport::default();
    for assignment in Assignments::new(backends.len(), steps) {
        let mut relay = Relay::new(backends);
        let outcome = run(&mut relay, sequence, &expected, &assignment);
        report.hand_overs += relay.hand_overs();
        report.bytes_moved += relay.bytes_moved();
        let freed = relay.finish().map_err(|error| SwapProblem::Failed { step: steps, error });
        match outcome.and(freed) {
            Err(SwapProblem::Failed {
                error: HandOverError::Backend { error: BackendError::UnsupportedFeature { feature, backend }, .. },
                ..
            }) => {
                report.unsupported += 1;
                report.lacks.get_or_insert_with(|| format!("`{backend}` has no {feature}"));
                continue;
            }
            Ok(()) => {}
            Err(problem) => {
                let assignment = assignment.iter().map(|n| backends[*n].id()).collect();
                report.failures.push(SwapFailure { assignment, problem });
            }
        }
        report.compared += 1;
    }
    Ok(report)
}

fn expect(sequence: &Sequence) -> Result<Expected, SwapError> {
    let mut reference = Reference::default();
    let mut buffers = sequence.buffers.clone();
    for (n, step) in sequence.steps.iter().enumerate() {
        let refused = |failure| SwapError::Refused { step: n, failure };
        let (case, outputs) = step.case(&buffers, sequence.fuel).map_err(refused)?;
        match order::of(&case).map_err(|why| refused(Failure::Refused(why)))? {
            Order::Hidden => {}
            Order::Shows(why) => return Err(SwapError::OrderShows { step: n, why }),
        }
        match reference.expected(&case) {
            Ok(found) => {
                for (to, bytes) in outputs.into_iter().zip(found) {
                    if buffers[to].len() != bytes.len() {
                        let why = format!("buffer {to} has {} bytes, and the step writes {}", buffers[to].len(), bytes.len());
                        return Err(refused(Failure::Refused(why)));
                    }
                    buffers[to] = bytes;
                }
            }
            Err(Failure::Trap { tag, invocation }) => return Ok(Expected { buffers, trap: Some((n, tag, invocation)) }),
            Err(failure) => return Err(refused(failure)),
        }
    }
    Ok(Expected { buffers, trap: None })
}

fn run(relay: &mut Relay<'_>, sequence: &Sequence, expected: &Expected, assignment: &[usize]) -> Result<(), SwapProblem> {
    for bytes in &sequence.buffers {
        relay.fill(bytes.clone());
    }
    for (n, (step, backend)) in sequence.steps.iter().zip(assignment).enumerate() {
        let outcome = relay.step(*backend, &step.program, &step.config, &step.buffers);
        match (outcome, expected.trap) {
            (Ok(()), Some((at, ..))) if at == n => return Err(SwapProblem::NoTrap { step: n }),
            (Ok(()), _) => {}
            (Err(HandOverError::Backend { error: BackendError::Trap { tag, invocation }, .. }), trap)
                if trap == Some((n, tag, invocation)) =>
            {
                break;
            }
            (Err(error), _) => return Err(SwapProblem::Failed { step: n, error }),
        }
    }
    for (buffer, expected) in expected.buffers.iter().enumerate() {
        let found = relay.read(buffer).map_err(|error| SwapProblem::Failed { step: sequence.steps.len(), error })?;
        if let Some(byte) = found.iter().zip(expected).position(|(found, expected)| found != expected) {
            return Err(SwapProblem::Differs { buffer, byte, expected: expected[byte], found: found[byte] });
        }
    }
    Ok(())
}
