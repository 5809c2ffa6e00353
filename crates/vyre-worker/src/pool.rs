//! Workers under supervision: cases run in processes of their own, and whatever those do, every case gets its answer.
//!
//! Processes persist and take cases by the batch, which makes isolation cost little: one message each way, and buffers in shared memory.
//! While a process runs one batch, its judge looks at the answers of the one before and puts the next in place beside it, so that both work
//! at the same time.
//! Before each case a worker sets its status word there. When a process dies or falls silent, outputs that were finished are kept, and
//! the case that was running is suspected:
//!
//! 1. It runs alone in a fresh process. If that fails in the same way, the case is to blame.
//! 2. If not, everything that the process ran of this batch runs again before it. If that fails, the cases before it are thinned out
//!    until none can be spared, and the answer names them ([`Answer::after`]).
//! 3. If that does not fail either, the case is not to blame: somebody ended the process, or the machine was busy. The answer of the
//!    second run counts, and so does the loss ([`Stats::unexplained`]).
//!
//! What earlier batches did to a process is not investigated, and what was sent to one that has failed is sent to the next. If something was written outside of the outputs of a batch, nothing of it
//! is believed, and its cases run one by one.

use crate::memory::{self, Layout, Region, status};
use crate::message::{self, Batch, Run};
use crate::process::{Process, STOPPED, Silence, Stop};
use crate::subject::{Answer, Failure, Outputs, Patience, Sequence, SequenceStep, Subject};
use std::ops::Range;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use vyre_foundation::case::Case;
use vyre_foundation::config::DispatchConfig;
use vyre_foundation::ir::Program;
use vyre_foundation::launch::Launch;

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
    /// When to end the processes, whatever they run; what has no answer then was not run.
    pub stop: Stop,
}

impl Default for Settings {
    /// One process, 64 cases at once, ten seconds for a case, thirty for a start.
    fn default() -> Self {
        Settings {
            processes: 1,
            batch: 64,
            deadline: Duration::from_secs(10),
            patience: Duration::from_secs(30),
            attempts: 100,
            stop: Stop::default(),
        }
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
    /// How long to wait for cases: the deadline of the settings, until somebody says otherwise.
    patience: Patience,
}

/// The place of one process.
#[derive(Default)]
struct Slot {
    process: Option<Process>,
    /// How long the next case may take.
    deadline: Duration,
    /// Whether the process has not been given a case yet.
    is_fresh: bool,
    /// Batches that were sent, for their poison.
    batches: u64,
    /// Outputs of before, whose memory is used again.
    spare: Vec<Outputs>,
    stats: Stats,
}

/// Bytes of buffers that go into one message, if there is more than one case in it: what stays in a cache from one process to the
/// other.
const PART: u64 = 1 << 20;

impl Pool {
    /// A pool of processes that `command` starts; each must call [`crate::serve_judge`]. The first is started at once, so that a
    /// command that does not work is told here, and gives the pool its name.
    pub fn start(command: impl Fn() -> Command + Send + Sync + 'static, settings: Settings) -> Result<Pool, String> {
        let patience = Patience::even(settings.deadline);
        let starter = Starter { command: Box::new(command), settings, patience };
        let mut slots: Vec<Slot> = (0..starter.settings.processes.max(1)).map(|_| Slot::default()).collect();
        let name = slots[0].fresh(&starter)?;
        Ok(Pool { name, starter, slots })
    }

    /// The same under another name.
    #[must_use]
    pub fn with_name(self, name: impl Into<String>) -> Pool {
        Pool { name: name.into(), ..self }
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
        let answer = self.slots[0].answers(&self.starter, &[Work::Case(case)]).pop();
        answer.expect("one answer for one case").outcome
    }

    fn run_sequence(&mut self, sequence: &Sequence) -> Result<Outputs, Failure> {
        let answer = self.slots[0].answers(&self.starter, &[Work::Sequence(sequence)]).pop();
        answer.expect("one answer for one sequence").outcome
    }

    fn run_batch(&mut self, cases: &[Case]) -> Vec<Answer> {
        let batch = self.starter.settings.batch.max(1);
        let starter = &self.starter;
        let slots = self.slots.len().min(cases.len().div_ceil(batch)).max(1);
        if let [slot] = &mut self.slots[..slots] {
            return slot.answers(starter, &cases.iter().map(Work::Case).collect::<Vec<_>>());
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

    fn deadline(&self) -> Option<Duration> {
        Some(self.starter.settings.deadline)
    }

    fn wait_for(&mut self, patience: Patience) {
        self.starter.patience = patience;
    }

    fn renew(&mut self) {
        self.slots.iter_mut().for_each(|slot| slot.process = None);
    }

    /// Kept until others are given back: no more than one batch had.
    fn reuse(&mut self, mut outputs: Vec<Outputs>) {
        let each = outputs.len().div_ceil(self.slots.len());
        for slot in &mut self.slots {
            slot.spare = outputs.split_off(outputs.len().saturating_sub(each));
        }
    }
}

/// Takes batches until none is left; the answers of each, with the number of its first case.
fn numbered(slot: &mut Slot, starter: &Starter, cases: &[Case], batch: usize, next: &AtomicUsize) -> Vec<(usize, Vec<Answer>)> {
    let mut parts = Vec::new();
    loop {
        let first = next.fetch_add(batch, Ordering::Relaxed);
        let Some(rest) = cases.get(first..).filter(|rest| !rest.is_empty()) else { return parts };
        let works: Vec<Work<'_>> = rest[..rest.len().min(batch)].iter().map(Work::Case).collect();
        let mut answers = slot.answers(starter, &works);
        answers.iter_mut().flat_map(|answer| &mut answer.after).for_each(|number| *number += first);
        parts.push((first, answers));
    }
}

/// What a process gave before it stopped.
struct Ran {
    /// By case: its outcome, and what ran. Those that have none are to run again.
    told: Vec<Option<Told>>,
    /// How the process failed, and at which case, where that is known.
    failure: Option<(Option<usize>, Failure)>,
    /// Whether the process had run nothing before.
    in_fresh: bool,
}

/// The outcome of a case, and what ran.
type Told = (Result<Outputs, Failure>, Option<vyre_driver::device::Ran>);

impl Ran {
    fn not_run(cases: usize, why: String) -> Ran {
        Ran { told: (0..cases).map(|_| None).collect(), failure: Some((Some(0), Failure::NotRun(why))), in_fresh: false }
    }
}

/// What is to be run: one dispatch, or several over buffers that stay.
#[derive(Clone, Copy)]
enum Work<'a> {
    Case(&'a Case),
    Sequence(&'a Sequence),
}

impl<'a> Work<'a> {
    fn inputs(self) -> &'a [Vec<u8>] {
        match self {
            Work::Case(case) => &case.inputs,
            Work::Sequence(sequence) => &sequence.buffers,
        }
    }

    /// The lengths of its outputs and the shapes of its dispatches; what does not fit together is refused before anything runs.
    fn planned(self) -> Result<Planned<'a>, Failure> {
        let plan = |case: &Case| case.plan().map_err(|report| Failure::Refused(report.to_string()));
        let shape = |launch: &Launch| Shape { grid: launch.grid, workgroup: launch.workgroup_size };
        match self {
            Work::Case(case) => {
                let launch = plan(case)?;
                let outputs = case.program.interface().outputs.iter().map(|i| launch.bytes[*i]).collect();
                Ok(Planned { work: self, outputs, shapes: vec![shape(&launch)] })
            }
            Work::Sequence(sequence) => {
                let outputs = sequence.buffers.iter().map(|bytes| bytes.len() as u64).collect();
                let step = |step: &SequenceStep| Ok(shape(&plan(&step.case(&sequence.buffers, sequence.fuel)?.0)?));
                Ok(Planned { work: self, outputs, shapes: sequence.steps.iter().map(step).collect::<Result<_, Failure>>()? })
            }
        }
    }

    /// Bytes in shared memory, for deciding how many go into one batch.
    fn bytes(self, outputs: &[u64]) -> u64 {
        self.inputs().iter().map(|bytes| bytes.len() as u64).chain(outputs.iter().copied()).sum()
    }
}

/// A case that fits together, with the lengths of its outputs and the shapes of its dispatches.
#[derive(Clone)]
struct Planned<'a> {
    work: Work<'a>,
    outputs: Vec<u64>,
    shapes: Vec<Shape>,
}

#[derive(Clone, Copy)]
struct Shape {
    grid: [u32; 3],
    workgroup: [u32; 3],
}

/// Those that go into one message: a batch, if that is not too many bytes, and at least one if there is one.
fn first_part<'a, 'b>(left: &'a [(usize, Planned<'b>)], starter: &Starter) -> Vec<&'a Planned<'b>> {
    let mut bytes = 0u64;
    let fits = |(_, planned): &&(usize, Planned<'_>)| {
        bytes = bytes.saturating_add(planned.work.bytes(&planned.outputs));
        bytes <= PART
    };
    let batch = starter.settings.batch.max(1);
    let count = left.iter().take(batch).take_while(fits).count().max(1);
    left.iter().take(count).map(|(_, planned)| planned).collect()
}

/// A batch that a process has, or will have read soon.
struct Sent {
    places: Vec<Places>,
    /// The part of the shared memory that is its.
    area: Range<u64>,
    poison: u64,
    /// Whether the process had run nothing before.
    in_fresh: bool,
    /// Whether the process had another batch while this was in place.
    has_company: bool,
}

impl Sent {
    /// Its status words, by their number in the shared memory.
    fn status(&self) -> Range<usize> {
        let first = (self.area.start / 8) as usize;
        first..first + self.places.len()
    }
}

impl Slot {
    /// Puts a fresh process in place; gives the name of its subject.
    fn fresh(&mut self, starter: &Starter) -> Result<String, String> {
        self.process = None;
        let (process, name) = Process::start((starter.command)(), starter.settings.patience, &starter.settings.stop)?;
        self.stats.started += 1;
        self.process = Some(process);
        self.is_fresh = true;
        Ok(name)
    }

    /// An answer for every case. While the process runs one batch of them, the next is put in place.
    fn answers(&mut self, starter: &Starter, works: &[Work<'_>]) -> Vec<Answer> {
        let mut answers: Vec<Option<Answer>> = vec![None; works.len()];
        // What is still to be run, by its number in the batch.
        let mut left: Vec<(usize, Planned<'_>)> = Vec::with_capacity(works.len());
        for (n, work) in works.iter().enumerate() {
            match work.planned() {
                Ok(planned) => left.push((n, planned)),
                Err(failure) => answers[n] = Some(Err(failure).into()),
            }
        }
        let mut ahead = None;
        let patience = starter.patience;
        let mut hung = 0;
        // Those before have their answers.
        let mut at = 0;
        while at < left.len() {
            let left_now = &left[at..];
            let over = if starter.settings.stop.is_said() {
                Some(Failure::NotRun(STOPPED.into()))
            } else if hung >= patience.hangs {
                Some(Failure::GivenUp(format!("{hung} others that were to run with it hang")))
            } else {
                None
            };
            if let Some(over) = over {
                // What it was sent ahead is not waited for.
                self.process = None;
                left_now.iter().for_each(|(n, _)| answers[*n] = Some(Err(over.clone()).into()));
                break;
            }
            self.deadline = if hung == 0 { patience.deadline } else { patience.then };
            let part = first_part(left_now, starter);
            let first = part.len();
            let Ran { told, failure, in_fresh } = match ahead.take().map_or_else(|| self.send(starter, &part, None), Ok) {
                Ok(mut sent) => {
                    let next = first_part(&left_now[first..], starter);
                    if !next.is_empty() {
                        // What cannot be sent is told when its turn comes.
                        ahead = self.send(starter, &next, Some(sent.area.clone())).ok();
                        sent.has_company = true;
                    }
                    self.receive(starter, &part, sent)
                }
                Err(why) => Ran::not_run(first, why),
            };
            let failed = failure.is_some();
            if failed {
                // It was sent to a process that is gone.
                ahead = None;
            }
            match failure {
                None => {}
                Some((Some(guilty), failure @ Failure::NotRun(_))) => answers[left_now[guilty].0] = Some(Err(failure).into()),
                // It was the first in a fresh process, and to see it again takes another deadline.
                Some((Some(guilty), failure @ Failure::Hung(_))) if in_fresh && guilty == 0 => {
                    hung += 1;
                    answers[left_now[guilty].0] = Some(Err(failure).into());
                }
                Some((Some(0), failure @ Failure::WildWrite { .. })) => answers[left_now[0].0] = Some(Err(failure).into()),
                // It may have been any of them.
                Some((None, _)) => {
                    let found = self.each_alone(starter, &part);
                    left_now[..first].iter().zip(found).for_each(|((n, _), answer)| answers[*n] = Some(answer));
                }
                Some((Some(guilty), failure)) => {
                    let is_hung = matches!(failure, Failure::Hung(_));
                    if is_hung {
                        // It has had its time; what is to be seen again is the same silence.
                        self.deadline = patience.then;
                    }
                    // How it failed is told by the run that shows it again.
                    let mut answer = self.investigate(starter, &part[..=guilty]);
                    if let (true, Err(Failure::Hung(time))) = (is_hung, &mut answer.outcome) {
                        hung += 1;
                        *time = (*time).max(if hung == 1 { patience.deadline } else { patience.then });
                    }
                    answer.after.iter_mut().for_each(|number| *number = left_now[*number].0);
                    answers[left_now[guilty].0] = Some(answer);
                }
            }
            for ((n, _), told) in left_now[..first].iter().zip(told) {
                if let Some((outcome, ran)) = told
                    && answers[*n].is_none()
                {
                    answers[*n] = Some(Answer { outcome, after: Vec::new(), ran });
                }
            }
            if failed {
                left.drain(..at);
                left.retain(|(n, _)| answers[*n].is_none());
                at = 0;
            } else {
                at += first;
            }
        }
        answers.into_iter().map(|answer| answer.expect("every case has its answer")).collect()
    }

    /// Runs each case by itself, to find those that fail their process.
    fn each_alone(&mut self, starter: &Starter, cases: &[&Planned<'_>]) -> Vec<Answer> {
        let mut explained = false;
        let alone = |case: &&Planned<'_>| match self.again(starter, std::slice::from_ref(case)) {
            Again::Fails(failure) => {
                explained = true;
                Err(failure).into()
            }
            Again::Other(outcome) => outcome.into(),
        };
        let answers = cases.iter().map(alone).collect();
        self.stats.unexplained += u64::from(!explained);
        answers
    }

    /// Runs cases until one fails its process, which is then gone.
    fn run(&mut self, starter: &Starter, cases: &[&Planned<'_>]) -> Ran {
        match self.send(starter, cases, None) {
            Ok(sent) => self.receive(starter, cases, sent),
            Err(why) => Ran::not_run(cases.len(), why),
        }
    }

    /// Puts cases in place and sends them to a process, which may have another batch already: that has the area `taken`.
    fn send(&mut self, starter: &Starter, cases: &[&Planned<'_>], taken: Option<Range<u64>>) -> Result<Sent, String> {
        if starter.settings.stop.is_said() {
            return Err(STOPPED.into());
        }
        if taken.is_none() && self.process.as_ref().is_some_and(Process::goes_on) {
            // Why a process talks that nobody has asked is not known, and what it says next cannot be believed.
            self.stats.unexplained += 1;
            self.process = None;
        }
        if self.process.is_none() {
            self.fresh(starter)?;
        }
        self.batches += 1;
        let (poison, has_company) = (memory::poison(self.batches), taken.is_some());
        let Some(process) = &mut self.process else { unreachable!("a process was just put in place") };
        let (batch, LaidOut { places, area }) = lay_out(cases, process, poison, taken)?;
        process.send(&batch)?;
        Ok(Sent { places, area, poison, in_fresh: std::mem::replace(&mut self.is_fresh, false), has_company })
    }

    /// The outcome of what was sent to the process: its oldest batch.
    fn receive(&mut self, starter: &Starter, cases: &[&Planned<'_>], sent: Sent) -> Ran {
        let status = sent.status();
        let Sent { places, poison, in_fresh, has_company, area: _ } = sent;
        let Some(process) = &mut self.process else { unreachable!("it was sent to a process") };
        let deadline = self.deadline;
        let mut told: Vec<Option<Told>> = (0..cases.len()).map(|_| None).collect();
        let answered = process.answer(deadline, status.clone(), &starter.settings.stop);
        let states: Vec<u64> = process.memory.words()[status].iter().map(memory::state).collect();
        let mut failure = None;
        let silence = match answered.and_then(|bytes| decode(process, &bytes, &states)) {
            Ok(answers) => {
                for (n, answer) in answers.into_iter().enumerate() {
                    told[n] = Some(match answer {
                        message::Told::Outputs(ran) => {
                            (Ok(outputs(process, &places[n], &mut self.spare)), ran.into_iter().next())
                        }
                        message::Told::Failure(failure) => (Err(failure), None),
                    });
                }
                None
            }
            Err(silence) => {
                // Those that had ended keep their outputs; the one that was running is suspected, or the next.
                for (n, state) in states.iter().enumerate() {
                    if *state == status::OUTPUTS {
                        told[n] = Some((Ok(outputs(process, &places[n], &mut self.spare)), None));
                    }
                }
                Some(silence)
            }
        };
        let alone = (cases.len() == 1 && !has_company).then_some(0);
        if let Some(wild) = wild_write(process, cases, &places, poison) {
            // Nothing that such a process said is believed, and next to whose buffers it was does not say whose write it was.
            self.process = None;
            return Ran { told: (0..cases.len()).map(|_| None).collect(), failure: Some((alone, wild)), in_fresh };
        }
        if let Some(silence) = silence {
            let running = states.iter().position(|state| *state == status::RUNNING);
            let waiting = states.iter().position(|state| *state == status::WAITING);
            let at = running.or(waiting).or(alone);
            match at {
                Some(at) => told[at] = None,
                None => told.fill_with(|| None),
            }
            let how = match silence {
                Silence::Hung => Failure::Hung(deadline),
                Silence::Ended => Failure::Crashed(process.last_words()),
                Silence::Nonsense(what) => Failure::Crashed(format!("it answers nonsense: {what}")),
                Silence::Stopped => Failure::NotRun(STOPPED.into()),
            };
            failure = Some((at, how));
            self.process = None;
        }
        Ran { told, failure, in_fresh }
    }

    /// Finds out whether the last of these cases fails its process alone, after which others, or not at all.
    fn investigate(&mut self, starter: &Starter, cases: &[&Planned<'_>]) -> Answer {
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
                    let sequence: Vec<&Planned<'_>> = fewer.iter().chain([&last]).map(|i| cases[*i]).collect();
                    match self.again(starter, &sequence) {
                        Again::Fails(found) => {
                            needed = fewer;
                            failure = found;
                        }
                        Again::Other(_) => at += step,
                    }
                }
                if attempts == 0 || (step == 1 && needed.len() == before) {
                    return Answer { outcome: Err(failure), after: needed, ran: None };
                }
                step = step.div_ceil(2);
            }
        }
        self.stats.unexplained += 1;
        alone.into()
    }

    /// Runs a sequence in a fresh process.
    fn again(&mut self, starter: &Starter, cases: &[&Planned<'_>]) -> Again {
        self.process = None;
        let mut ran = self.run(starter, cases);
        match ran.failure {
            Some((_, found @ Failure::NotRun(_))) => Again::Other(Err(found)),
            // A crash the first time and a hang the second are one failure.
            Some((Some(at), found)) if at + 1 == cases.len() => Again::Fails(found),
            Some((_, found)) => Again::Other(Err(found)),
            None => Again::Other(ran.told.pop().flatten().expect("an outcome for every case").0),
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

/// The regions of one case.
struct Places {
    inputs: Vec<Region>,
    outputs: Vec<Region>,
}

/// Where the cases of a batch are, and the area that they take up.
struct LaidOut {
    places: Vec<Places>,
    area: Range<u64>,
}

/// The places of cases from an address on, and where they end.
fn places_of(cases: &[&Planned<'_>], start: u64) -> (Vec<Places>, u64) {
    let mut layout = Layout::behind_status(start, cases.len());
    let place = |planned: &&Planned<'_>| Places {
        inputs: planned.work.inputs().iter().map(|bytes| layout.place(bytes.len() as u64)).collect(),
        outputs: planned.outputs.iter().map(|bytes| layout.place(*bytes)).collect(),
    };
    (cases.iter().map(place).collect(), layout.end())
}

/// Puts the inputs of cases into the shared memory of a process, before or behind what is taken, and poison everywhere else; gives the
/// message about them, and where they are.
fn lay_out(
    cases: &[&Planned<'_>],
    process: &mut Process,
    poison: u64,
    taken: Option<Range<u64>>,
) -> Result<(Vec<u8>, LaidOut), String> {
    let mut start = 0;
    let (mut places, mut end) = places_of(cases, start);
    if let Some(taken) = taken.filter(|taken| taken.start < end) {
        start = taken.end;
        (places, end) = places_of(cases, start);
    }
    let bytes = usize::try_from(end).map_err(|_| "the case does not fit into memory".to_string())?;
    process.memory.grow(bytes).map_err(|error| format!("no shared memory of {bytes} bytes: {error}"))?;
    let words = process.memory.words();
    let status = (start / 8) as usize;
    words[status..status + cases.len()].iter().for_each(|word| word.store(status::WAITING, Ordering::Relaxed));
    let mut programs: Vec<&Program> = Vec::new();
    let mut works = Vec::with_capacity(cases.len());
    for (planned, places) in cases.iter().zip(&places) {
        for (region, bytes) in places.inputs.iter().zip(planned.work.inputs()) {
            memory::put(words, *region, bytes, poison);
        }
        places.outputs.iter().for_each(|region| memory::poison_all(words, *region, poison));
        // Cases of one program come one after the other, and share it.
        let mut run = |program, config: &DispatchConfig, shape: &Shape, buffers: Option<Vec<u32>>| {
            if programs.last().is_none_or(|last| *last != program) {
                programs.push(program);
            }
            let Shape { grid, workgroup } = *shape;
            Run { program: programs.len() as u32 - 1, config: config.clone(), grid, workgroup, buffers }
        };
        let (run, fuel) = match planned.work {
            Work::Case(case) => (vec![run(&case.program, &case.config, &planned.shapes[0], None)], case.fuel),
            Work::Sequence(sequence) => {
                let bound = |step: &SequenceStep| Some(step.buffers.iter().map(|n| *n as u32).collect());
                let steps = sequence.steps.iter().zip(&planned.shapes);
                (steps.map(|(step, shape)| run(&step.program, &step.config, shape, bound(step))).collect(), sequence.fuel)
            }
        };
        works.push(message::Work { run, inputs: places.inputs.clone(), outputs: places.outputs.clone(), fuel });
    }
    let batch = Batch {
        memory: process.memory.bytes() as u64,
        status: start,
        programs: programs.into_iter().cloned().collect(),
        cases: works,
    };
    let message = process.encoding.encode(&batch).map_err(|error| format!("the program cannot be sent: {error}"))?;
    Ok((message, LaidOut { places, area: start..end }))
}

fn outputs(process: &Process, places: &Places, spare: &mut Vec<Outputs>) -> Outputs {
    let mut outputs = spare.pop().unwrap_or_default();
    outputs.resize_with(places.outputs.len(), Vec::new);
    let regions = places.outputs.iter();
    regions.zip(&mut outputs).for_each(|(region, bytes)| memory::get(process.memory.words(), *region, bytes));
    outputs
}

/// The answers in a message: one per case, and each as its status word says.
fn decode(process: &Process, bytes: &[u8], states: &[u64]) -> Result<Vec<message::Told>, Silence> {
    let message::Answers { answers } = process.encoding.decode(bytes).map_err(Silence::Nonsense)?;
    if answers.len() != states.len() {
        return Err(Silence::Nonsense(format!("{} answers for {} cases", answers.len(), states.len())));
    }
    for (n, (answer, state)) in answers.iter().zip(states).enumerate() {
        let said = match answer {
            message::Told::Outputs(_) => status::OUTPUTS,
            message::Told::Failure(_) => status::FAILED,
        };
        if *state != said {
            return Err(Silence::Nonsense(format!("the answer for case {n} contradicts its status, {state}")));
        }
        if let message::Told::Failure(failure) = answer
            && !failure.is_workers()
        {
            return Err(Silence::Nonsense(format!("for case {n} it reports what only its judge can see: {failure:?}")));
        }
    }
    Ok(answers)
}

/// The first thing that was written where nothing was to be written.
fn wild_write(process: &Process, cases: &[&Planned<'_>], places: &[Places], poison: u64) -> Option<Failure> {
    let words = process.memory.words();
    let found = |(planned, places): (&&Planned<'_>, &Places)| {
        let inputs = places.inputs.iter().zip(planned.work.inputs()).map(|(region, bytes)| (region, Some(bytes.as_slice())));
        let all = inputs.chain(places.outputs.iter().map(|region| (region, None)));
        all.enumerate().find_map(|(buffer, (region, input))| {
            let (side, offset) = memory::written(words, *region, input, poison)?;
            let buffer = match buffer.checked_sub(places.inputs.len()) {
                None => format!("input {buffer}"),
                Some(output) => format!("output {output}"),
            };
            Some(Failure::WildWrite { buffer, side, offset })
        })
    };
    cases.iter().zip(places).find_map(found)
}
