//! A run of the suite on a device.
//!
//! Threads take units of a plan one after the other, each with a device of its own, and one place takes in what they found, in whatever
//! order it comes: nothing in the ledger depends on it. Blind controls are hidden among the units (`control.rs`): if one of them is not
//! found out, nothing else that the run says is believed.

mod control;
mod reduction;
mod unit;
mod units;

pub use control::secret;
pub use units::Units;

use crate::cert::Rerun;
use crate::date::Date;
use crate::error::RunError;
use crate::evidence::{RunData, Verdict};
use crate::examine::{Examiner, FindingKind, Hangs};
use crate::expectations::{Expectations, Judged};
use crate::ledger::{
    Controls, Identity, Ledger, LedgerError, Places, Range, RunInfo, StillFailing, Store, UnitRecord, remark, settings,
};
use crate::plan::{Plan, Unit, What};
use crate::regression::{self, Again as Replayed, Keeper};
use crate::report::{ParityFailure, RunReport, Summary};
use crate::stream::gather;
use control::{Control, Found};
use reduction::Reductions;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use unit::UnitDone;
pub(crate) use unit::examine as examine_unit;
use vyre_worker::Subject;

/// Makes a device in the form of this name: a pool of one worker process, or a backend in this one.
pub type Make<'a> = &'a (dyn Fn(&str) -> Result<Box<dyn Subject>, String> + Sync);

/// The device under test.
pub struct Tested<'a> {
    /// Makes it.
    pub make: Make<'a>,
    /// The forms in which every unit is run twice, two at a time.
    pub forms: Vec<String>,
    /// The backend's id, as the command line takes it.
    pub backend: String,
    /// Its version, if it says one; without it a run that was cut off begins anew.
    pub version: Option<String>,
    /// What tells this device from others.
    pub fingerprint: String,
    /// The device, for people.
    pub name: String,
    /// Workgroups that a dispatch may have along x.
    pub most_groups: u64,
}

/// How a run is done.
pub struct Options<'a> {
    /// What sampled cases are drawn from.
    pub seed: u64,
    /// Whether a verifier chose that number.
    pub is_nonce: bool,
    /// Which part of the units, of how many.
    pub shard: (u64, u64),
    /// Where state is kept; without a folder nothing outlives the run.
    pub state: Option<PathBuf>,
    /// How many units are run at the same time.
    pub threads: usize,
    /// The selection, and the tier if it is one, for the record.
    pub selection: String,
    /// See [`RunInfo::tier`].
    pub tier: Option<String>,
    /// The command that runs the same again.
    pub command: String,
    /// Whether controls are hidden among the units. A run without has no verdict.
    pub controls: bool,
    /// What is known to fail.
    pub known: Expectations,
    /// Becomes true when the run is to stop: what is done is committed. Units that are running run to their end, unless the device gives
    /// up at the same sign, as worker processes do; a unit that was given up runs again when the run goes on.
    pub stop: &'a AtomicBool,
}

/// What is told of a run while it runs.
#[derive(Clone, Debug)]
pub enum Event<'a> {
    /// Units were committed.
    Committed(Progress<'a>),
    /// A case failed that is kept, or a dispatch hangs. It is told when it is found, which may be long before its unit is committed.
    Found {
        /// The op.
        op: &'a str,
        /// The section.
        section: &'a str,
        /// One word for how it fails.
        how: &'a str,
        /// What is wrong, for people.
        message: &'a str,
    },
    /// No unit has ended for [`SILENCE`], or again for as long: those that run, with the time since when.
    Waiting(&'a [(String, Duration)]),
    /// The run was told to stop, and so many units are running.
    Stopping(usize),
}

/// How long nothing may be told while units run.
pub const SILENCE: Duration = Duration::from_secs(10);

/// How far a run is.
#[derive(Clone, Debug)]
pub struct Progress<'a> {
    /// Everything that is committed, regressions included.
    pub summary: Summary,
    /// Units that are committed, and all that the shard has.
    pub units: (u64, u64),
    /// The section of the last one.
    pub section: &'a str,
    /// Since the run began or went on.
    pub elapsed: Duration,
    /// Cases that were judged since then.
    pub cases_now: u64,
}

/// What came of a run.
pub struct Conformed {
    /// Counts, failures and the root.
    pub report: RunReport,
    /// Everything that its ledger says, as reports take it.
    pub data: RunData,
    /// What failed as known, and what is known and not so.
    pub known: Judged,
    /// What it says.
    pub verdict: Verdict,
}

/// What a thread tells.
enum Told {
    Done(Done),
    /// A dispatch of this section took its whole deadline.
    Hung(String, Duration),
}

/// What a thread found out about a unit.
struct Done {
    number: u64,
    outcome: Result<Outcome, String>,
}

/// Units that run, and since when, by thread.
struct Running(Mutex<Vec<Option<(u64, Instant)>>>);

impl Running {
    fn new(threads: usize) -> Running {
        Running(Mutex::new(vec![None; threads]))
    }

    fn set(&self, thread: usize, unit: Option<u64>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)[thread] = unit.map(|number| (number, Instant::now()));
    }

    fn now(&self) -> Vec<(u64, Instant)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().flatten().copied().collect()
    }
}

enum Outcome {
    Unit(UnitDone),
    Control(Found),
}

/// Runs a plan on a device.
///
/// # Errors
///
/// If the state folder cannot be used, or no device can be had.
pub fn run(
    plan: &Plan,
    tested: &Tested<'_>,
    options: &Options<'_>,
    tell: &mut dyn FnMut(&Event<'_>),
) -> Result<Conformed, RunError> {
    let (shard, shards) = options.shard;
    if shard >= shards {
        return Err(RunError::Usage(format!("there is no shard {shard} of {shards}: they are counted from 0")));
    }
    let identity = identity(plan, tested, options);
    let mut ledger = Ledger::open(options.state.as_deref(), &identity)?;
    let before = ledger.info()?;
    let secret = match before.controls.secret {
        Some(secret) if ledger.is_resumed() => secret,
        _ => secret(),
    };
    let mut info = RunInfo {
        tier: options.tier.clone(),
        command: options.command.clone(),
        began: if ledger.is_resumed() { before.began } else { now() },
        took_ms: before.took_ms,
        device_name: tested.name.clone(),
        versions: BTreeMap::from([("vyre".to_string(), env!("CARGO_PKG_VERSION").to_string())]),
        nonce: options.is_nonce.then_some(options.seed),
        controls: Controls::committed(secret),
        still_failing: Vec::new(),
    };
    if !ledger.is_resumed() {
        ledger.describe(&plan.sections().iter().map(|section| section.info.clone()).collect::<Vec<_>>())?;
        ledger.set_info(&info)?;
    }
    let hangs = Arc::new(Hangs::default());
    let (summary, failures) = regressions(plan, tested, options, &hangs, tell)?;
    let still = |failure: &ParityFailure| StillFailing {
        op: failure.op_id.clone(),
        workgroup: failure.workgroup_size,
        bundle: failure.input_label.clone(),
    };
    info.still_failing = failures.iter().map(still).collect();
    let mut done = HashSet::new();
    let mut so_far = summary;
    ledger.for_each_unit(&mut |section, record| {
        so_far.add(&record.counts());
        done.extend(plan.number(section, record.first));
    })?;
    let of_place = |place: &str| place.rsplit_once(':').and_then(|(section, first)| plan.number(section, first.parse().ok()?));
    let remarks = ledger.remarks()?;
    let reductions = Reductions::new(remarks.iter());
    let remarks = remarks.into_iter().filter(|(_, kind, _)| kind == remark::CONTROL);
    let controls_done = remarks.filter_map(|(place, _, _)| of_place(&place)).collect();
    let mine = plan.units().saturating_sub(shard).div_ceil(shards);
    let mut coordinator = Coordinator {
        plan,
        keeper: Keeper::new(options.state.clone(), &tested.forms[0]),
        ledger,
        range: Range::default(),
        gathered: Summary::default(),
        last_section: String::new(),
        progress: so_far,
        units: (done.len() as u64, mine),
        began: Instant::now(),
        committed: Instant::now(),
        heard: Instant::now(),
        cases_now: 0,
        problem: None,
    };
    let took_before = info.took_ms;
    let places = if options.controls { Some(Places::new(secret, mine)) } else { None };
    let jobs = Mutex::new(Jobs { position: 0, shard, shards, mine, done, controls_done, places, pending: None });
    let threads = options.threads.max(1);
    let quit = AtomicBool::new(false);
    let running = Running::new(threads);
    std::thread::scope(|scope| -> Result<(), RunError> {
        let (sender, receiver) = channel();
        let hands = Hands { plan, tested, options, jobs: &jobs, quit: &quit, reductions: &reductions, running: &running };
        for thread in 0..threads {
            let (sender, hangs) = (sender.clone(), hangs.clone());
            scope.spawn(move || hands.work(thread, &sender, hangs));
        }
        drop(sender);
        let taken = coordinator.take_in(&receiver, &running, options.stop, tell);
        // Threads end by themselves when there is nothing left; after a problem they are told to.
        quit.store(true, Ordering::Relaxed);
        taken
    })?;
    coordinator.commit(tell)?;
    let Coordinator { mut ledger, problem, began, .. } = coordinator;
    info.took_ms = took_before + began.elapsed().as_millis() as u64;
    info.controls = count_controls(&ledger, info.controls)?;
    ledger.set_info(&info)?;
    if let Some(problem) = problem {
        return Err(RunError::Stopped(problem));
    }
    let report = RunReport::of(&ledger, summary, failures)?;
    let is_complete = report.units == mine;
    if is_complete {
        ledger.finish(report.root)?;
    }
    let mut verdict = verdict(&report, &info, options, is_complete, mine);
    let mut known = Judged::default();
    let data = RunData::of(&ledger, identity, is_complete)?;
    if verdict.why().is_none() && mine > 0 && !options.known.entries.is_empty() {
        known = options.known.judge(&data, Date::today());
        verdict = known.verdict(&data);
    }
    Ok(Conformed { report, data, known, verdict })
}

/// Runs units of a plan again, one by one, for whoever doubts what was said about them.
pub struct Again<'a> {
    plan: &'a Plan,
    examiner: Examiner<'a>,
    seed: u64,
    most_groups: u64,
}

impl<'a> Again<'a> {
    /// On this device, with the seed of the run that is doubted.
    ///
    /// # Errors
    ///
    /// If no device can be had.
    pub fn new(plan: &'a Plan, tested: &Tested<'_>, seed: u64) -> Result<Again<'a>, String> {
        let subjects = tested.forms.iter().map(|form| (tested.make)(form)).collect::<Result<Vec<_>, _>>()?;
        let subjects = subjects.into_iter().map(|subject| subject as Box<dyn Subject + 'a>).collect();
        Ok(Again { plan, examiner: Examiner::new(subjects), seed, most_groups: tested.most_groups })
    }
}

impl Rerun for Again<'_> {
    fn unit(&mut self, section: &str, first: u64) -> Result<UnitRecord, String> {
        let number = self.plan.number(section, first).ok_or_else(|| format!("the suite has no unit {section}:{first}"))?;
        let unit = self.plan.unit(number);
        examine_unit(self.plan, unit, &mut self.examiner, self.seed, self.most_groups, None).map(|done| done.record)
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

fn identity(plan: &Plan, tested: &Tested<'_>, options: &Options<'_>) -> Identity {
    Identity {
        suite: plan.suite().to_string(),
        selection: options.selection.clone(),
        settings: settings(
            options.is_nonce,
            options.seed,
            options.shard,
            options.tier.as_deref(),
            options.controls,
            &tested.forms.join(" "),
        ),
        backend: tested.backend.clone(),
        version: tested.version.clone(),
        device: tested.fingerprint.clone(),
    }
}

/// What failed before, first.
fn regressions(
    plan: &Plan,
    tested: &Tested<'_>,
    options: &Options<'_>,
    hangs: &Arc<Hangs>,
    tell: &mut dyn FnMut(&Event<'_>),
) -> Result<(Summary, Vec<ParityFailure>), RunError> {
    let mut summary = Summary::default();
    let mut failures = Vec::new();
    let Some(folder) = &options.state else { return Ok((summary, failures)) };
    let versions: BTreeMap<&str, u32> =
        plan.sections().iter().map(|section| (section.info.op.as_str(), section.info.version)).collect();
    let bundles = regression::load(folder, &versions)?;
    if bundles.is_empty() {
        return Ok((summary, failures));
    }
    let mut examiners: BTreeMap<&str, Examiner<'_>> = BTreeMap::new();
    let began = Instant::now();
    let mut told = Instant::now();
    for bundle in bundles {
        if options.stop.load(Ordering::Relaxed) {
            break;
        }
        if told.elapsed() > SILENCE {
            told = Instant::now();
            tell(&Event::Waiting(&[("cases that failed in an earlier run".to_string(), began.elapsed())]));
        }
        // In the form in which it failed, if there is such a form today.
        let form = tested.forms.iter().find(|form| **form == bundle.subject).unwrap_or(&tested.forms[0]);
        let examiner = match examiners.entry(form) {
            Entry::Occupied(there) => there.into_mut(),
            Entry::Vacant(place) => {
                let subject = (tested.make)(form).map_err(RunError::Stopped)?;
                place.insert(Examiner::new(vec![subject]).with_hangs(hangs.clone(), Box::new(|_, _| ())))
            }
        };
        let found = match regression::again(examiner, &bundle, versions[bundle.signature.as_str()]) {
            Replayed::Holds => None,
            Replayed::Fails(failure) => Some(*failure),
            // The run goes on to those that the device has time for, and fails by the one that hung.
            Replayed::NotRun => continue,
        };
        let failed = u64::from(found.is_some());
        summary.add(&Summary { tested: 1, passed: 1 - failed, failed, regressions: 1, ..Summary::default() });
        if let Some(failure) = &found {
            found_one(failure, tell);
        }
        failures.extend(found);
    }
    Ok((summary, failures))
}

fn count_controls(ledger: &dyn Store, mut controls: Controls) -> Result<Controls, RunError> {
    for (place, kind, what) in ledger.remarks()? {
        if kind != remark::CONTROL {
            continue;
        }
        controls.add(&place, &what);
    }
    Ok(controls)
}

fn verdict(report: &RunReport, info: &RunInfo, options: &Options<'_>, is_complete: bool, mine: u64) -> Verdict {
    let none = |why: String| Verdict::None(why);
    if !is_complete {
        return none(format!("the run was stopped; {} of {mine} units are done, and the same command resumes it", report.units));
    }
    if !options.controls {
        return none("there were no controls, so it is not known whether a fault would have been noticed".into());
    }
    if let Some(survivor) = info.controls.survived.first() {
        let count = info.controls.survived.len();
        return none(format!("{count} of {} planted faults were not noticed: {survivor}", info.controls.ran));
    }
    if mine > 0 && report.summary.tested == report.summary.regressions {
        let why = report.skipped.first().map_or(String::new(), |remark| format!(" ({}: {})", remark.section, remark.what));
        return none(format!("nothing was tested: the device cannot run any of it{why}"));
    }
    // A device that hangs on all that there is fails, although nothing can be planted in what it gives.
    if mine > 0 && info.controls.ran == 0 && report.given_up.is_empty() {
        return none("no control could be planted".into());
    }
    if report.summary.failed > 0 {
        return Verdict::Fails;
    }
    match report.given_up.first() {
        Some(remark) => none(format!("{} was not run: {}", remark.section, remark.what)),
        None => Verdict::Holds,
    }
}

/// What is to be run, handed out one by one.
struct Jobs {
    /// The next position among the units of the shard.
    position: u64,
    shard: u64,
    shards: u64,
    mine: u64,
    done: HashSet<u64>,
    /// Units whose controls have run.
    controls_done: HashSet<u64>,
    places: Option<Places>,
    /// A control that comes before the next unit.
    pending: Option<(u64, Control)>,
}

impl Iterator for Jobs {
    type Item = (u64, Option<Control>);

    fn next(&mut self) -> Option<Self::Item> {
        if let Some((number, control)) = self.pending.take() {
            return Some((number, Some(control)));
        }
        while self.position < self.mine {
            let position = self.position;
            let number = self.shard + position * self.shards;
            self.position += 1;
            let planted = self.places.as_ref().and_then(|places| Control::at(places, position));
            let control = planted.filter(|_| !self.controls_done.contains(&number));
            if !self.done.contains(&number) {
                self.pending = control.map(|control| (number, control));
                return Some((number, None));
            }
            if control.is_some() {
                return Some((number, control));
            }
        }
        None
    }
}

/// Tells of a failure when it is found.
fn found_one(failure: &ParityFailure, tell: &mut dyn FnMut(&Event<'_>)) {
    let how = match failure.kind {
        FindingKind::Mismatch => "wrong",
        FindingKind::Nondeterministic => "nondeterministic",
        FindingKind::Dispatch => "failed",
        FindingKind::Configuration => "wrong configuration",
        FindingKind::Case => "wrong case",
        FindingKind::Disputed => "disputed",
    };
    let section = if failure.unit.is_empty() { "an earlier run" } else { &failure.unit };
    tell(&Event::Found { op: &failure.op_id, section, how, message: &failure.message });
}

/// What all threads share.
#[derive(Clone, Copy)]
struct Hands<'a> {
    plan: &'a Plan,
    tested: &'a Tested<'a>,
    options: &'a Options<'a>,
    jobs: &'a Mutex<Jobs>,
    quit: &'a AtomicBool,
    reductions: &'a Reductions,
    running: &'a Running,
}

impl Hands<'_> {
    /// One thread.
    fn work(self, thread: usize, sender: &Sender<Told>, hangs: Arc<Hangs>) {
        let Hands { plan, tested, options, jobs, quit, reductions, running } = self;
        let is_stopped = || options.stop.load(Ordering::Relaxed) || quit.load(Ordering::Relaxed);
        let subjects: Result<Vec<Box<dyn Subject>>, String> = tested.forms.iter().map(|form| (tested.make)(form)).collect();
        let mut examiner = match subjects {
            // Nobody listens any more if the run has ended meanwhile.
            Ok(subjects) => Examiner::new(subjects).with_history().with_hangs(
                hangs,
                Box::new(|section, time| {
                    let _ = sender.send(Told::Hung(section.into(), time));
                }),
            ),
            // What could not be had because the run was told to stop is no problem.
            Err(_) if is_stopped() => return,
            Err(why) => {
                // Nobody listens if another thread has had the same problem.
                let _ = sender.send(Told::Done(Done { number: 0, outcome: Err(why) }));
                return;
            }
        };
        loop {
            if is_stopped() {
                return;
            }
            let job = jobs.lock().map(|mut jobs| jobs.next()).unwrap_or_default();
            let Some((number, control)) = job else { return };
            running.set(thread, Some(number));
            let (unit, seed, groups) = (plan.unit(number), options.seed, tested.most_groups);
            let outcome = match control {
                None => examine_and_reduce(plan, tested, unit, &mut examiner, seed, reductions, options.stop).map(Outcome::Unit),
                Some(control) => control.run(plan, unit, &mut examiner, seed, groups).map(Outcome::Control),
            };
            let is_over = outcome.is_err();
            if is_over && is_stopped() {
                // The device was ended in the middle of it; the unit runs again when the run goes on, and counts as running until then.
                return;
            }
            running.set(thread, None);
            if sender.send(Told::Done(Done { number, outcome })).is_err() || is_over {
                return;
            }
        }
    }
}

/// Runs and judges a unit, and makes programs small that fail in it.
fn examine_and_reduce(
    plan: &Plan,
    tested: &Tested<'_>,
    unit: Unit,
    examiner: &mut Examiner<'_>,
    seed: u64,
    reductions: &Reductions,
    stop: &AtomicBool,
) -> Result<UnitDone, String> {
    let mut done = examine_unit(plan, unit, examiner, seed, tested.most_groups, None)?;
    let kind = match plan.sections()[unit.section].what {
        What::Whole(_) => reduction::Of::Programs,
        What::Op { .. } => reduction::Of::Op,
        What::Law { .. } => reduction::Of::Law,
    };
    reductions.reduce(kind, &mut done.shown, examiner, unit::salt(plan, unit, seed), &tested.forms, stop);
    Ok(done)
}

/// Adds what came of a unit of a section to what is committed next.
fn gather_unit(section: &str, unit: UnitDone, keeper: &mut Keeper, range: &mut Range) -> Result<(), LedgerError> {
    for shown in unit.shown {
        keeper.keep(shown, range)?;
    }
    if let Some(why) = unit.skipped {
        range.remarks.push((section.to_string(), remark::SKIPPED, why));
    }
    if let Some(why) = unit.given_up {
        range.remarks.push((section.to_string(), remark::GIVEN_UP, why));
    }
    range.units.push((section.to_string(), unit.record));
    Ok(())
}

/// Takes in what threads find.
struct Coordinator<'a> {
    plan: &'a Plan,
    keeper: Keeper,
    ledger: Ledger,
    range: Range,
    /// Counts of the units that are not committed yet.
    gathered: Summary,
    last_section: String,
    progress: Summary,
    units: (u64, u64),
    began: Instant,
    committed: Instant,
    /// When something was told last, or a unit ended.
    heard: Instant,
    cases_now: u64,
    problem: Option<String>,
}

/// How often signs are looked for.
const LOOK: Duration = Duration::from_millis(50);

impl Coordinator<'_> {
    fn take_in(
        &mut self,
        receiver: &Receiver<Told>,
        running: &Running,
        stop: &AtomicBool,
        tell: &mut dyn FnMut(&Event<'_>),
    ) -> Result<(), RunError> {
        let mut is_stopping = false;
        loop {
            let told = receiver.recv_timeout(LOOK);
            // Before anything else: devices that end at the same sign may all be gone by now.
            if !is_stopping && stop.load(Ordering::Relaxed) {
                is_stopping = true;
                tell(&Event::Stopping(running.now().len()));
            }
            match told {
                Ok(Told::Done(done)) => {
                    self.heard = Instant::now();
                    self.take(done, tell)?;
                }
                Ok(Told::Hung(section, time)) => {
                    self.heard = Instant::now();
                    let op = self.plan.sections().iter().find(|it| it.info.id == section).map_or("", |it| &it.info.op);
                    let message = format!("a dispatch gave no answer for {time:?}");
                    tell(&Event::Found { op, section: &section, how: "hangs", message: &message });
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
            if self.problem.is_some() {
                return Ok(());
            }
            if self.heard.elapsed() >= SILENCE {
                self.heard = Instant::now();
                let name = |(number, since): (u64, Instant)| {
                    let unit = self.plan.unit(number);
                    (format!("{}:{}", self.plan.sections()[unit.section].info.id, unit.first), since.elapsed())
                };
                let running: Vec<(String, Duration)> = running.now().into_iter().map(name).collect();
                if !running.is_empty() {
                    tell(&Event::Waiting(&running));
                }
            }
            if is_stopping || self.committed.elapsed() >= gather(self.began.elapsed()) {
                self.commit(tell)?;
            }
        }
    }

    fn take(&mut self, done: Done, tell: &mut dyn FnMut(&Event<'_>)) -> Result<(), RunError> {
        let at = self.plan.unit(done.number);
        let section = &self.plan.sections()[at.section].info.id;
        let unit = match done.outcome {
            Ok(Outcome::Unit(unit)) => unit,
            Ok(Outcome::Control(found)) => {
                let place = format!("{section}:{}", at.first);
                self.range.remarks.extend(found.remark().map(|what| (place, remark::CONTROL, what)));
                return Ok(());
            }
            Err(why) => {
                self.problem = Some(why);
                return Ok(());
            }
        };
        self.gathered.add(&unit.record.counts());
        self.last_section.clone_from(section);
        unit.shown.iter().for_each(|shown| found_one(&shown.failure, tell));
        Ok(gather_unit(section, unit, &mut self.keeper, &mut self.range)?)
    }

    fn commit(&mut self, tell: &mut dyn FnMut(&Event<'_>)) -> Result<(), RunError> {
        let range = std::mem::take(&mut self.range);
        self.ledger.commit(&range)?;
        self.committed = Instant::now();
        self.units.0 += range.units.len() as u64;
        let gathered = std::mem::take(&mut self.gathered);
        self.cases_now += gathered.tested;
        self.progress.add(&gathered);
        tell(&Event::Committed(Progress {
            summary: self.progress,
            units: self.units,
            section: &self.last_section,
            elapsed: self.began.elapsed(),
            cases_now: self.cases_now,
        }));
        Ok(())
    }
}
