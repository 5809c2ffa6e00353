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
use crate::examine::Examiner;
use crate::expectations::{Expectations, Judged};
use crate::ledger::{
    Controls, Identity, Ledger, LedgerError, Places, Range, RunInfo, StillFailing, Store, UnitRecord, remark, settings,
};
use crate::plan::{Plan, Unit, What};
use crate::regression::{self, Keeper};
use crate::report::{ParityFailure, RunReport, Summary};
use crate::stream::gather;
use control::{Control, Found};
use reduction::Reductions;
use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
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
    /// Becomes true when the run is to stop: what is done is committed.
    pub stop: &'a AtomicBool,
}

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

/// What a thread found out about a unit.
struct Done {
    number: u64,
    outcome: Result<Outcome, String>,
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
    tell: &mut dyn FnMut(&Progress<'_>),
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
    let (summary, failures) = regressions(plan, tested, options)?;
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
        cases_now: 0,
        problem: None,
    };
    let took_before = info.took_ms;
    let places = if options.controls { Some(Places::new(secret, mine)) } else { None };
    let jobs = Mutex::new(Jobs { position: 0, shard, shards, mine, done, controls_done, places, pending: None });
    let threads = options.threads.max(1);
    let quit = AtomicBool::new(false);
    std::thread::scope(|scope| -> Result<(), RunError> {
        let (sender, receiver) = channel();
        for _ in 0..threads {
            let (sender, jobs, quit, reductions) = (sender.clone(), &jobs, &quit, &reductions);
            scope.spawn(move || work(plan, tested, options, jobs, &sender, quit, reductions));
        }
        drop(sender);
        let taken = coordinator.take_in(&receiver, tell);
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
fn regressions(plan: &Plan, tested: &Tested<'_>, options: &Options<'_>) -> Result<(Summary, Vec<ParityFailure>), RunError> {
    let mut summary = Summary::default();
    let mut failures = Vec::new();
    let Some(folder) = &options.state else { return Ok((summary, failures)) };
    let versions: BTreeMap<&str, u32> =
        plan.sections().iter().map(|section| (section.info.op.as_str(), section.info.version)).collect();
    let bundles = regression::load(folder, &versions)?;
    if bundles.is_empty() {
        return Ok((summary, failures));
    }
    let mut subject = (tested.make)(&tested.forms[0]).map_err(RunError::Stopped)?;
    for bundle in bundles {
        let found = regression::again(&mut *subject, &bundle, versions[bundle.signature.as_str()]);
        let failed = u64::from(found.is_some());
        summary.add(&Summary { tested: 1, passed: 1 - failed, failed, regressions: 1, ..Summary::default() });
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
    if mine > 0 && info.controls.ran == 0 {
        return none("no control could be planted".into());
    }
    if report.summary.failed > 0 { Verdict::Fails } else { Verdict::Holds }
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

/// One thread.
fn work(
    plan: &Plan,
    tested: &Tested<'_>,
    options: &Options<'_>,
    jobs: &Mutex<Jobs>,
    sender: &Sender<Done>,
    quit: &AtomicBool,
    reductions: &Reductions,
) {
    let subjects: Result<Vec<Box<dyn Subject>>, String> = tested.forms.iter().map(|form| (tested.make)(form)).collect();
    let mut examiner = match subjects {
        Ok(subjects) => Examiner::new(subjects),
        Err(why) => {
            // Nobody listens if another thread has had the same problem.
            let _ = sender.send(Done { number: 0, outcome: Err(why) });
            return;
        }
    };
    loop {
        if options.stop.load(Ordering::Relaxed) || quit.load(Ordering::Relaxed) {
            return;
        }
        let job = jobs.lock().map(|mut jobs| jobs.next()).unwrap_or_default();
        let Some((number, control)) = job else { return };
        let (unit, seed, groups) = (plan.unit(number), options.seed, tested.most_groups);
        let outcome = match control {
            None => examine_and_reduce(plan, tested, unit, &mut examiner, seed, reductions, options.stop).map(Outcome::Unit),
            Some(control) => control.run(plan, unit, &mut examiner, seed, groups).map(Outcome::Control),
        };
        let is_over = outcome.is_err();
        if sender.send(Done { number, outcome }).is_err() || is_over {
            return;
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
    if let What::Whole(_) = plan.sections()[unit.section].what {
        let salt = unit::salt(plan, unit, seed);
        let form = &tested.forms[salt as usize % tested.forms.len()];
        reductions.reduce(&mut done.shown, examiner, salt, form, stop);
    }
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
    cases_now: u64,
    problem: Option<String>,
}

impl Coordinator<'_> {
    fn take_in(&mut self, receiver: &Receiver<Done>, tell: &mut dyn FnMut(&Progress<'_>)) -> Result<(), RunError> {
        loop {
            match receiver.recv_timeout(Duration::from_millis(200)) {
                Ok(done) => self.take(done)?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
            if self.problem.is_some() {
                return Ok(());
            }
            if self.committed.elapsed() >= gather(self.began.elapsed()) {
                self.commit(tell)?;
            }
        }
    }

    fn take(&mut self, done: Done) -> Result<(), RunError> {
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
        Ok(gather_unit(section, unit, &mut self.keeper, &mut self.range)?)
    }

    fn commit(&mut self, tell: &mut dyn FnMut(&Progress<'_>)) -> Result<(), RunError> {
        let range = std::mem::take(&mut self.range);
        self.ledger.commit(&range)?;
        self.committed = Instant::now();
        self.units.0 += range.units.len() as u64;
        let gathered = std::mem::take(&mut self.gathered);
        self.cases_now += gathered.tested;
        self.progress.add(&gathered);
        tell(&Progress {
            summary: self.progress,
            units: self.units,
            section: &self.last_section,
            elapsed: self.began.elapsed(),
            cases_now: self.cases_now,
        });
        Ok(())
    }
}
