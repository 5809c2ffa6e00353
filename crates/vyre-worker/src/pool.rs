//! Workers under supervision: cases run in processes of their own, and whatever those do, every case gets its answer.
//!
//! Processes persist and take cases by the batch, which makes isolation cost little. When one dies or falls silent, the answers it
//! gave are kept, and the case it owes is suspected:
//!
//! 1. It runs alone in a fresh process. If that fails in the same way, the case is to blame.
//! 2. If not, everything that the process ran of this batch runs again before it. If that fails, the cases before it are thinned out
//!    until none can be spared, and the answer names them ([`Answer::after`]).
//! 3. If that does not fail either, the case is not to blame: somebody ended the process, or the machine was busy. The answer of the
//!    second run counts, and so does the loss ([`Stats::unexplained`]).
//!
//! What earlier batches did to a process is not investigated.

use crate::codec::encode_batch;
use crate::process::{Process, Silence};
use crate::subject::{Answer, Failure, Outputs, Subject};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use vyre_foundation::case::Case;

/// How a pool works.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Processes that run at the same time.
    pub processes: usize,
    /// Cases that a process gets at once.
    pub batch: usize,
    /// How long one case may take.
    pub deadline: Duration,
    /// How long a process may take to start.
    pub patience: Duration,
    /// Fresh processes that the search for the cases before a failure may use up.
    pub attempts: usize,
}

impl Default for Settings {
    /// One process, 64 cases at once, ten seconds for a case, thirty for a start.
    fn default() -> Self {
        Settings { processes: 1, batch: 64, deadline: Duration::from_secs(10), patience: Duration::from_secs(30), attempts: 100 }
    }
}

/// What has happened to the processes of a pool.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Stats {
    /// Processes that were started.
    pub started: u64,
    /// Processes that ended or fell silent for a reason that running the same cases again does not show.
    pub unexplained: u64,
}

/// A subject whose cases run in worker processes.
pub struct Pool {
    name: String,
    starter: Starter,
    slots: Vec<Slot>,
}

struct Starter {
    command: Box<dyn Fn() -> Command + Send + Sync>,
    settings: Settings,
}

/// The place of one process.
#[derive(Default)]
struct Slot {
    process: Option<Process>,
    /// Whether the process has not been given a case yet.
    is_fresh: bool,
    stats: Stats,
}

impl Pool {
    /// A pool of processes that `command` starts; each must call [`crate::serve_judge`]. The first is started at once, so that a
    /// command that does not work is told here, and gives the pool its name.
    pub fn start(command: impl Fn() -> Command + Send + Sync + 'static, settings: Settings) -> Result<Pool, String> {
        let starter = Starter { command: Box::new(command), settings };
        let mut slots: Vec<Slot> = (0..starter.settings.processes.max(1)).map(|_| Slot::default()).collect();
        let name = slots[0].fresh(&starter)?;
        Ok(Pool { name, starter, slots })
    }

    /// The processes that are running.
    #[must_use]
    pub fn process_ids(&self) -> Vec<u32> {
        self.slots.iter().filter_map(|slot| slot.process.as_ref()).map(Process::id).collect()
    }

    /// What has happened so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.slots.iter().fold(Stats::default(), |sum, slot| Stats {
            started: sum.started + slot.stats.started,
            unexplained: sum.unexplained + slot.stats.unexplained,
        })
    }
}

impl Subject for Pool {
    fn name(&self) -> &str {
        &self.name
    }

    fn run(&mut self, case: &Case) -> Result<Outputs, Failure> {
        let answer = self.slots[0].answers(&self.starter, std::slice::from_ref(case)).pop();
        answer.expect("one answer for one case").outcome
    }

    fn run_batch(&mut self, cases: &[Case]) -> Vec<Answer> {
        let batch = self.starter.settings.batch.max(1);
        let starter = &self.starter;
        let slots = self.slots.len().min(cases.len().div_ceil(batch)).max(1);
        if let [slot] = &mut self.slots[..slots] {
            return numbered(slot, starter, cases, batch, &AtomicUsize::new(0)).into_iter().flat_map(|(_, part)| part).collect();
        }
        let next = AtomicUsize::new(0);
        let mut parts: Vec<(usize, Vec<Answer>)> = std::thread::scope(|scope| {
            let take = |slot| scope.spawn(|| numbered(slot, starter, cases, batch, &next));
            let threads: Vec<_> = self.slots[..slots].iter_mut().map(take).collect();
            threads.into_iter().flat_map(|thread| thread.join().expect("supervision does not panic")).collect()
        });
        parts.sort_by_key(|(first, _)| *first);
        parts.into_iter().flat_map(|(_, part)| part).collect()
    }
}

/// Takes batches until none is left; the answers of each, with the number of its first case.
fn numbered(slot: &mut Slot, starter: &Starter, cases: &[Case], batch: usize, next: &AtomicUsize) -> Vec<(usize, Vec<Answer>)> {
    let mut parts = Vec::new();
    loop {
        let first = next.fetch_add(batch, Ordering::Relaxed);
        let Some(rest) = cases.get(first..).filter(|rest| !rest.is_empty()) else { return parts };
        let mut answers = slot.answers(starter, &rest[..rest.len().min(batch)]);
        answers.iter_mut().flat_map(|answer| &mut answer.after).for_each(|number| *number += first);
        parts.push((first, answers));
    }
}

/// What a process gave before it stopped: outcomes of the first cases, and how it failed the next, if it did.
struct Run {
    outcomes: Vec<Result<Outputs, Failure>>,
    failure: Option<Failure>,
    /// Whether the process had run nothing before.
    in_fresh: bool,
}

impl Slot {
    /// Puts a fresh process in place; gives the name of its subject.
    fn fresh(&mut self, starter: &Starter) -> Result<String, String> {
        self.process = None;
        let (process, name) = Process::start((starter.command)(), starter.settings.patience)?;
        self.stats.started += 1;
        self.process = Some(process);
        self.is_fresh = true;
        Ok(name)
    }

    /// An answer for every case of one batch.
    fn answers(&mut self, starter: &Starter, cases: &[Case]) -> Vec<Answer> {
        let mut answers: Vec<Answer> = Vec::with_capacity(cases.len());
        while answers.len() < cases.len() {
            let first = answers.len();
            let left: Vec<&Case> = cases[first..].iter().collect();
            let Run { outcomes, failure, in_fresh } = self.run(starter, &left);
            let is_first = outcomes.is_empty();
            answers.extend(outcomes.into_iter().map(Answer::from));
            match failure {
                None => {}
                Some(failure @ Failure::NotRun(_)) => answers.push(Err(failure).into()),
                // It was alone in a fresh process, and to see it again takes another deadline.
                Some(failure @ Failure::Hung(_)) if in_fresh && is_first => answers.push(Err(failure).into()),
                Some(_) => {
                    let suspect = answers.len();
                    // How it failed is told by the run that shows it again.
                    let mut answer = self.investigate(starter, &left[..=suspect - first]);
                    answer.after.iter_mut().for_each(|number| *number += first);
                    answers.push(answer);
                }
            }
        }
        answers
    }

    /// Runs cases until one fails its process, which is then gone.
    fn run(&mut self, starter: &Starter, cases: &[&Case]) -> Run {
        let mut outcomes = Vec::with_capacity(cases.len());
        let batch = match encode_batch(cases.iter().copied()) {
            Ok(batch) => batch,
            // One of several cannot be sent: the others go one by one.
            Err(_) if cases.len() > 1 => return self.run(starter, &cases[..1]),
            Err(error) => {
                let failure = Some(Failure::NotRun(format!("the program cannot be sent: {error}")));
                return Run { outcomes, failure, in_fresh: false };
            }
        };
        if self.process.is_none()
            && let Err(why) = self.fresh(starter)
        {
            return Run { outcomes, failure: Some(Failure::NotRun(why)), in_fresh: false };
        }
        let in_fresh = std::mem::replace(&mut self.is_fresh, false);
        let Some(process) = &mut self.process else { unreachable!("a process was just put in place") };
        process.send(batch);
        for number in 0..cases.len() {
            let silence = match process.receive(number, starter.settings.deadline) {
                Ok(outcome) => {
                    outcomes.push(outcome);
                    continue;
                }
                Err(silence) => silence,
            };
            let failure = match silence {
                Silence::Hung => Failure::Hung(starter.settings.deadline),
                Silence::Ended => Failure::Crashed(process.end()),
                Silence::Nonsense(what) => Failure::Crashed(format!("it answers nonsense: {what}")),
            };
            self.process = None;
            return Run { outcomes, failure: Some(failure), in_fresh };
        }
        Run { outcomes, failure: None, in_fresh }
    }

    /// Finds out whether the last of these cases fails its process alone, after which others, or not at all.
    fn investigate(&mut self, starter: &Starter, cases: &[&Case]) -> Answer {
        let last = cases.len() - 1;
        let alone = match self.again(starter, &cases[last..]) {
            Again::Fails(failure) => return Err(failure).into(),
            Again::Other(outcome) => outcome,
        };
        if last > 0
            && let Again::Fails(mut failure) = self.again(starter, cases)
        {
            let mut needed: Vec<usize> = (0..last).collect();
            let mut attempts = starter.settings.attempts;
            let mut step = last.div_ceil(2);
            loop {
                let mut at = 0;
                let before = needed.len();
                while at < needed.len() && attempts > 0 {
                    attempts -= 1;
                    let fewer: Vec<usize> =
                        needed.iter().enumerate().filter(|(n, _)| !(at..at + step).contains(n)).map(|(_, i)| *i).collect();
                    let sequence: Vec<&Case> = fewer.iter().chain([&last]).map(|i| cases[*i]).collect();
                    match self.again(starter, &sequence) {
                        Again::Fails(found) => {
                            needed = fewer;
                            failure = found;
                        }
                        Again::Other(_) => at += step,
                    }
                }
                if attempts == 0 || (step == 1 && needed.len() == before) {
                    return Answer { outcome: Err(failure), after: needed };
                }
                step = step.div_ceil(2);
            }
        }
        self.stats.unexplained += 1;
        alone.into()
    }

    /// Runs a sequence in a fresh process.
    fn again(&mut self, starter: &Starter, cases: &[&Case]) -> Again {
        self.process = None;
        let mut run = self.run(starter, cases);
        match run.failure {
            Some(found @ Failure::NotRun(_)) => Again::Other(Err(found)),
            // A crash the first time and a hang the second are one failure.
            Some(found) if run.outcomes.len() + 1 == cases.len() => Again::Fails(found),
            Some(found) => Again::Other(Err(found)),
            None => Again::Other(run.outcomes.pop().expect("an outcome for every case")),
        }
    }
}

/// What a sequence of cases does in a fresh process.
enum Again {
    /// Its last case fails the process.
    Fails(Failure),
    /// It does not: what came of its last case, or of the one where it stopped.
    Other(Result<Outputs, Failure>),
}
