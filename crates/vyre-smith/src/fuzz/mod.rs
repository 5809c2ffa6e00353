//! The loop that looks for programs on which a subject is wrong.
//!
//! Programs are numbered, and the n-th is the same whoever makes it. Threads take runs of numbers, have the subject and the reference
//! run every case, and hand in what disagrees. One thread takes that in the order of the numbers, whoever was faster, and decides
//! what is new, reduces it and writes it down; so a run of so many programs finds the same with any number of threads.
//!
//! **What counts.** Other bytes than the reference or another trap, if the checked mode proves that the case gives the same under every
//! schedule; a refusal, a panic, a crash, a hang. A case that the subject says it cannot run is skipped, which is no agreement. A
//! case for which the reference has no outcome is a finding about the case or the reference.
//!
//! **What is new.** Findings with the same signature (`signature.rs`) are one. The signature of a wrong result is known only when its
//! program is reduced, which takes seconds, and a subject may be wrong about every program. So a program that contains everything that
//! a known finding consists of is taken to be that finding again, and only the 1st, 2nd, 4th, 8th, … of these is reduced to see. A
//! reduced program that contains all of a known finding and more is that finding; one that contains only a part of it takes its place.

mod signature;

use crate::coverage::Coverage;
use crate::generate::{self, Preset, dna, generate};
use crate::reduce::{self, Interest, check_file, reduce};
use crate::subjects::Reference;
use signature::{features, signature, symptom};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};
use vyre_driver::files::{self, FileError};
use vyre_reference::Options;
use vyre_reference::checked::{Effort, check};
use vyre_worker::{Answer, Bundle, BundleError, Case, Failure, Kind, Origin, Outputs, Subject, Verdict, bundle, caught, judge};

/// Programs that a thread takes at once.
const RUN: u64 = 16;
/// How many runs a thread may be ahead of what has been taken in.
const AHEAD: u64 = 64;
/// The stack of a thread; programs nest deep.
const STACK: usize = 16 << 20;

/// Where cases come from.
pub trait Source: Sync {
    /// The cases of the program with this number, which depend on nothing else. They share one program.
    fn cases(&self, number: u64) -> Vec<Case>;

    /// How to make the case again that has this number among those of the program.
    fn origin(&self, number: u64, input: u32) -> Option<Origin>;
}

/// Generated programs, each with several inputs.
#[derive(Clone, Copy, Debug)]
pub struct Programs {
    /// What they are about: one preset, or the default mix if none is named.
    pub preset: Option<Preset>,
    /// Which ones.
    pub seed: u64,
    /// Inputs for each.
    pub inputs: u32,
}

impl Programs {
    fn preset(&self, number: u64) -> Preset {
        self.preset.unwrap_or_else(|| Preset::mixed(number))
    }
}

impl Source for Programs {
    fn cases(&self, number: u64) -> Vec<Case> {
        let generated = generate(self.preset(number), &dna(self.seed, number));
        (1..=u64::from(self.inputs))
            .map(|input| {
                // Bytes of a seed of their own, so that more inputs leave the first ones as they were.
                let seed = self.seed.wrapping_add(input.wrapping_mul(0x9E37_79B9_7F4A_7C15));
                generated.case(&dna(seed, number))
            })
            .collect()
    }

    fn origin(&self, number: u64, input: u32) -> Option<Origin> {
        Some(Origin {
            generator: generate::VERSION,
            preset: self.preset(number).name().into(),
            seed: self.seed,
            number,
            input,
            dna: dna(self.seed, number),
        })
    }
}

/// How to look.
pub struct Config {
    /// After how many programs to stop.
    pub programs: Option<u64>,
    /// After which time to stop; what was found by then is still reduced.
    pub time: Option<Duration>,
    /// How long the reference may take for one case. One that takes longer is a finding about the reference.
    pub deadline: Option<Duration>,
    /// Threads.
    pub jobs: usize,
    /// How often the subject is asked in one reduction; 0 for no reduction.
    pub attempts: u64,
    /// Where bundles go. What is there already is known.
    pub folder: Option<PathBuf>,
    /// The command that replays a bundle.
    pub replay: Box<dyn Fn(&Path) -> String + Sync>,
}

impl Default for Config {
    /// One thread, 20,000 attempts, no limits; nothing is written.
    fn default() -> Self {
        let replay = Box::new(|path: &Path| format!("vyre fuzz --replay {}", path.display()));
        Config { programs: None, time: None, deadline: None, jobs: 1, attempts: 20_000, folder: None, replay }
    }
}

/// One kind of mistake of the subject.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Programs that show it, as far as is known.
    pub count: u64,
    /// The number of the first.
    pub program: u64,
    /// Everything about it.
    pub bundle: Bundle,
    /// Why its program is not reduced, if it should be.
    pub unreduced: Option<String>,
    /// Whether the subject did it again when asked again.
    pub stable: bool,
    /// Whether it was in the folder before.
    pub known: bool,
    /// The bundle.
    pub file: Option<PathBuf>,
    /// The check file that the subject has to pass.
    pub check: Option<PathBuf>,
    /// The command that shows it again, if there is a bundle.
    pub replay: Option<String>,
}

/// What has been seen.
#[derive(Clone, Default)]
pub struct Summary {
    /// Programs that were run.
    pub programs: u64,
    /// Cases that were compared.
    pub cases: u64,
    /// Cases that the subject cannot run.
    pub skipped: u64,
    /// Programs about whose bytes nothing can be said, since they depend on the schedule.
    pub undecided: u64,
    /// Cases that did not run, with the first reason.
    pub not_run: Option<(u64, String)>,
    /// Programs that the subject was wrong about.
    pub wrong: u64,
    /// What was wrong, in the order in which it was found.
    pub findings: Vec<Finding>,
    /// What the programs contained.
    pub coverage: Coverage,
    /// How long it took so far.
    pub elapsed: Duration,
}

/// What happens on the way.
pub enum Event<'a> {
    /// More programs were taken in.
    Counted(&'a Summary),
    /// A program is being reduced: its number, attempts so far, and nodes left.
    Reducing(u64, u64, u64),
    /// There is a new finding.
    Found(&'a Finding),
    /// A program shows a finding with less, and takes its place. What was written about it stays.
    Smaller(&'a Finding),
    /// A file in the folder is no bundle.
    Unreadable(&'a Path, &'a BundleError),
}

/// Why a run could not go on.
#[derive(Debug)]
pub enum Error {
    /// The subject cannot be had.
    Subject(String),
    /// The folder cannot be used, or a bundle or check file in it not be written.
    Folder(FileError),
    /// There are no threads to be had.
    Threads(io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Subject(why) => f.write_str(why),
            Error::Folder(error) => error.fmt(f),
            Error::Threads(error) => write!(f, "cannot start a thread: {error}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<FileError> for Error {
    fn from(error: FileError) -> Self {
        Error::Folder(error)
    }
}

/// Makes a subject for a thread. Its panics must be failures: see [`vyre_worker::Contained`].
pub type Make<'a> = dyn Fn() -> Result<Box<dyn Subject>, String> + Sync + 'a;

/// Runs programs until the limits are reached or a case could not be run.
pub fn fuzz(source: &dyn Source, make: &Make<'_>, config: &Config, heard: &mut dyn FnMut(&Event<'_>)) -> Result<Summary, Error> {
    let start = Instant::now();
    let mut ledger = Ledger::new(source, make, config, heard)?;
    let stop = AtomicBool::new(false);
    let next = AtomicU64::new(0);
    let taken = Turn::default();
    let work = |sender: mpsc::Sender<(u64, Result<Part, String>)>| {
        let mut bench = Bench { subject: None, reference: Reference::within(config.deadline) };
        loop {
            let over = config.time.is_some_and(|time| start.elapsed() >= time);
            if stop.load(Ordering::Relaxed) || over {
                return;
            }
            let run = next.fetch_add(1, Ordering::Relaxed);
            let first = run * RUN;
            let end = config.programs.unwrap_or(u64::MAX).min(first.saturating_add(RUN));
            if first >= end {
                return;
            }
            taken.wait_for(run);
            // A run that is never handed in would keep all others waiting.
            let part = caught(|| bench.run(source, make, first..end))
                .unwrap_or_else(|message| Err(format!("the fuzz loop itself panicked: {message}")));
            if sender.send((run, part)).is_err() {
                return;
            }
        }
    };
    let result = std::thread::scope(|scope| {
        let (sender, parts) = mpsc::channel();
        let mut result = Ok(());
        for _ in 0..config.jobs.max(1) {
            let sender = sender.clone();
            let named = std::thread::Builder::new().name("fuzz".into()).stack_size(STACK);
            if let Err(error) = named.spawn_scoped(scope, || work(sender)) {
                result = Err(Error::Threads(error));
                stop.store(true, Ordering::Relaxed);
            }
        }
        drop(sender);
        let mut waiting = BTreeMap::new();
        let mut turn = 0;
        for (run, part) in parts {
            waiting.insert(run, part);
            while let Some(part) = waiting.remove(&turn) {
                turn += 1;
                if result.is_ok() {
                    result = part.map_err(Error::Subject).and_then(|part| ledger.take(part));
                    ledger.summary.elapsed = start.elapsed();
                    (ledger.heard)(&Event::Counted(&ledger.summary));
                }
                if result.is_err() || ledger.summary.not_run.is_some() {
                    stop.store(true, Ordering::Relaxed);
                }
                taken.is_now(turn);
            }
        }
        result
    });
    result?;
    ledger.summary.elapsed = start.elapsed();
    Ok(ledger.summary)
}

/// How many runs have been taken in; those who are too far ahead wait.
#[derive(Default)]
struct Turn {
    now: Mutex<u64>,
    moved: Condvar,
}

impl Turn {
    fn is_now(&self, turn: u64) {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) = turn;
        self.moved.notify_all();
    }

    fn wait_for(&self, run: u64) {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        while run >= now.saturating_add(AHEAD) {
            now = self.moved.wait(now).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// What came of a run of programs.
#[derive(Default)]
struct Part {
    programs: u64,
    cases: u64,
    skipped: u64,
    undecided: u64,
    not_run: Option<(u64, String)>,
    suspects: Vec<Suspect>,
    coverage: Coverage,
}

/// The first case of a program that the subject was wrong about.
struct Suspect {
    program: u64,
    input: u32,
    kind: Kind,
    case: Case,
    before: Vec<Case>,
    expected: Result<Outputs, Failure>,
    got: Result<Outputs, Failure>,
}

/// What a thread works with.
struct Bench {
    subject: Option<Box<dyn Subject>>,
    reference: Reference,
}

impl Bench {
    fn subject(&mut self, make: &Make<'_>) -> Result<&mut dyn Subject, String> {
        if self.subject.is_none() {
            self.subject = Some(make()?);
        }
        Ok(&mut **self.subject.as_mut().expect("it was just made"))
    }

    fn expected(&mut self, case: &Case) -> Result<Outputs, Failure> {
        let reference = &mut self.reference;
        caught(|| reference.expected(case)).unwrap_or_else(|message| {
            *reference = Reference::within(reference.limit());
            Err(Failure::Panicked(message))
        })
    }

    fn run(&mut self, source: &dyn Source, make: &Make<'_>, numbers: Range<u64>) -> Result<Part, String> {
        let mut part = Part::default();
        let mut cases = Vec::new();
        let mut places = Vec::new();
        for number in numbers {
            match caught(|| source.cases(number)) {
                Ok(made) => {
                    part.programs += 1;
                    made.first().into_iter().for_each(|case| part.coverage.add_case(case));
                    places.extend((0..made.len() as u32).map(|input| (number, input)));
                    cases.extend(made);
                }
                Err(message) => not_run(&mut part.not_run, format!("program {number} cannot be made: {message}")),
            }
        }
        let answers = self.subject(make)?.run_batch(&cases);
        let mut decided = None;
        let mut seen = Vec::with_capacity(answers.len());
        for (n, Answer { outcome: got, after, ran: _ }) in answers.into_iter().enumerate() {
            let (program, input) = places[n];
            // One suspect for each program is enough.
            let settled = decided == Some(program);
            let expected = self.expected(&cases[n]);
            match judge(&expected, &got) {
                Verdict::Agrees => {
                    part.cases += 1;
                    seen.extend(got);
                }
                Verdict::Skipped => part.skipped += 1,
                Verdict::NotRun => {
                    let why = got.err().map_or(String::new(), |failure| failure.to_string());
                    not_run(&mut part.not_run, format!("program {program}: {why}"));
                }
                Verdict::Wrong(_) if settled => part.cases += 1,
                Verdict::Wrong(kind) => {
                    part.cases += 1;
                    decided = Some(program);
                    if matches!(kind, Kind::Bytes | Kind::Trap) && !is_deterministic(&cases[n]) {
                        part.undecided += 1;
                        continue;
                    }
                    let before = after.iter().map(|before| cases[*before].clone()).collect();
                    part.suspects.push(Suspect { program, input, kind, case: cases[n].clone(), before, expected, got });
                }
            }
        }
        self.subject(make)?.reuse(seen);
        Ok(part)
    }
}

fn not_run(so_far: &mut Option<(u64, String)>, why: String) {
    match so_far {
        Some((count, _)) => *count += 1,
        None => *so_far = Some((1, why)),
    }
}

/// Whether the checked mode says that the case gives the same under every schedule that it tries.
fn is_deterministic(case: &Case) -> bool {
    let options = Options::from(case);
    check(&case.program, &case.input_slices(), &options, &Effort::default()).is_ok_and(|report| report.holds())
}

/// A wrong value shows in the bytes, or in whether a trap is met: that is the same mistake.
fn is_same_sort(one: Kind, other: Kind) -> bool {
    let is_result = |kind| matches!(kind, Kind::Bytes | Kind::Trap);
    one == other || is_result(one) && is_result(other)
}

/// What a finding is recognised by before it is reduced.
struct Mark {
    kind: Kind,
    symptom: Option<String>,
    features: BTreeSet<String>,
    /// The finding in the summary.
    finding: Option<usize>,
    /// Programs that looked like it.
    looked_alike: u64,
    /// If it was in the folder before.
    file: Option<PathBuf>,
    bundle: Bundle,
}

/// Takes parts in order and decides what is new.
struct Ledger<'a> {
    source: &'a dyn Source,
    make: &'a Make<'a>,
    config: &'a Config,
    heard: &'a mut dyn FnMut(&Event<'_>),
    bench: Bench,
    marks: Vec<Mark>,
    summary: Summary,
}

impl<'a> Ledger<'a> {
    fn new(
        source: &'a dyn Source,
        make: &'a Make<'a>,
        config: &'a Config,
        heard: &'a mut dyn FnMut(&Event<'_>),
    ) -> Result<Self, Error> {
        let bench = Bench { subject: None, reference: Reference::within(config.deadline) };
        let mut ledger = Ledger { source, make, config, heard, bench, marks: Vec::new(), summary: Summary::default() };
        let Some(folder) = &config.folder else { return Ok(ledger) };
        let fails = |error| FileError { path: folder.clone(), error };
        std::fs::create_dir_all(folder).map_err(fails)?;
        let mut files = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(fails)? {
            files.push(entry.map_err(fails)?.path());
        }
        files.sort();
        for file in files.into_iter().filter(|file| file.extension().is_some_and(|extension| extension == "json")) {
            match Bundle::read(&file) {
                Ok(bundle) => ledger.marks.push(Mark::of(bundle, Some(file))),
                Err(error) => (ledger.heard)(&Event::Unreadable(&file, &error)),
            }
        }
        Ok(ledger)
    }

    fn take(&mut self, part: Part) -> Result<(), Error> {
        self.summary.programs += part.programs;
        self.summary.cases += part.cases;
        self.summary.skipped += part.skipped;
        self.summary.undecided += part.undecided;
        self.summary.coverage.merge(&part.coverage);
        if let Some((count, why)) = part.not_run {
            not_run(&mut self.summary.not_run, why);
            self.summary.not_run.iter_mut().for_each(|(total, _)| *total += count - 1);
        }
        part.suspects.into_iter().try_for_each(|suspect| self.settle(suspect))
    }

    fn settle(&mut self, suspect: Suspect) -> Result<(), Error> {
        self.summary.wrong += 1;
        let subject = self.bench.subject(self.make).map_err(Error::Subject)?.name().to_string();
        let symptom = symptom(&suspect.got);
        let all = features(&suspect.case.program);
        let kind = suspect.kind;
        let name = subject.clone();
        let alike = |mark: &Mark| {
            is_same_sort(mark.kind, kind)
                && mark.bundle.subject == name
                && mark.symptom == symptom
                && (symptom.is_some() || mark.features.is_subset(&all))
        };
        if let Some(n) = self.marks.iter().position(alike) {
            let mark = &mut self.marks[n];
            mark.looked_alike += 1;
            if symptom.is_some() || self.config.attempts == 0 || !mark.looked_alike.is_power_of_two() || mark.finding.is_none() {
                return self.count(n, suspect.program);
            }
        }
        let program = suspect.program;
        let (bundle, unreduced, stable) = self.reduced(suspect, subject)?;
        let left = features(&bundle.case.program);
        // What is left beside all that a known finding consists of is where this program needed it.
        let same = |mark: &Mark| {
            mark.bundle.signature == bundle.signature
                || alike(mark) && symptom.is_none() && !mark.features.is_empty() && mark.features.is_subset(&left)
        };
        if let Some(n) = self.marks.iter().position(same) {
            return self.count(n, program);
        }
        // And the other way round: this one shows with less what a finding of this run shows with more.
        let smaller = |mark: &Mark| {
            mark.finding.is_some()
                && is_same_sort(mark.kind, kind)
                && mark.bundle.subject == name
                && (symptom.is_none() && mark.symptom.is_none())
                && (!left.is_empty() && left.is_subset(&mark.features))
        };
        let replaced = self.marks.iter().position(smaller);
        let mut finding =
            Finding { count: 1, program, bundle, unreduced, stable, known: false, file: None, check: None, replay: None };
        if let Some(folder) = &self.config.folder {
            let path = finding.bundle.write(folder, &self.config.replay)?;
            let title = format!("Found with `vyre fuzz`: {}.", finding.bundle.signature);
            if let Some(text) = check_file(&finding.bundle.case, &finding.bundle.expected, &title) {
                let check = path.with_extension("vyre");
                files::replace(&check, text.as_bytes())?;
                finding.check = Some(check);
            }
            finding.replay = Some((self.config.replay)(&path));
            finding.file = Some(path);
        }
        let mut mark = Mark::of(finding.bundle.clone(), None);
        match replaced {
            Some(n) => {
                let old = &mut self.marks[n];
                (mark.finding, mark.looked_alike) = (old.finding, old.looked_alike);
                *old = mark;
                let old = &mut self.summary.findings[old.finding.unwrap_or_default()];
                finding.count += old.count;
                *old = finding;
                (self.heard)(&Event::Smaller(old));
            }
            None => {
                mark.finding = Some(self.summary.findings.len());
                self.marks.push(mark);
                (self.heard)(&Event::Found(&finding));
                self.summary.findings.push(finding);
            }
        }
        Ok(())
    }

    /// Counts a program for a finding that is known.
    fn count(&mut self, mark: usize, program: u64) -> Result<(), Error> {
        let mark = &mut self.marks[mark];
        match mark.finding {
            Some(finding) => self.summary.findings[finding].count += 1,
            None => {
                mark.finding = Some(self.summary.findings.len());
                let check = mark.file.as_ref().map(|file| file.with_extension("vyre")).filter(|check| check.exists());
                let finding = Finding {
                    count: 1,
                    program,
                    bundle: mark.bundle.clone(),
                    unreduced: None,
                    stable: true,
                    known: true,
                    file: mark.file.clone(),
                    check,
                    replay: mark.file.as_ref().map(|file| (self.config.replay)(file)),
                };
                (self.heard)(&Event::Found(&finding));
                self.summary.findings.push(finding);
            }
        }
        Ok(())
    }

    /// The suspect as a bundle, as small as it gets; why it is not smaller; and whether the subject does it again.
    fn reduced(&mut self, suspect: Suspect, subject: String) -> Result<(Bundle, Option<String>, bool), Error> {
        let Suspect { program, input, kind, case, before, expected, got } = suspect;
        let mut versions = bundle::versions();
        let origin = self.source.origin(program, input);
        if let Some(origin) = &origin {
            versions.insert("generator".into(), origin.generator.to_string());
        }
        let mut bundle =
            Bundle { signature: String::new(), kind, case, before, expected, got, original: None, origin, versions, subject };
        let mut unreduced = None;
        let mut stable = true;
        let symptom = symptom(&bundle.got);
        let (make, heard) = (self.make, &mut self.heard);
        let bench = &mut self.bench;
        let mut outcomes = |case: &Case, before: &[Case]| {
            let expected = bench.expected(case);
            let subject = bench.subject(make).map_err(Error::Subject)?;
            let sequence: Vec<Case> = before.iter().chain([case]).cloned().collect();
            let got =
                subject.run_batch(&sequence).pop().map_or(Err(Failure::NotRun("no answer".into())), |answer| answer.outcome);
            Ok::<_, Error>((expected, got))
        };
        if !bundle.before.is_empty() {
            unreduced = Some("it takes other cases before it".into());
        } else if self.config.attempts > 0 {
            let config = reduce::Config {
                // Every candidate that still hangs takes a whole deadline.
                attempts: if kind == Kind::Hang { self.config.attempts.min(40) } else { self.config.attempts },
                deadline: None,
                fuel: Some(bundle.case.fuel),
                race_free: matches!(kind, Kind::Bytes | Kind::Trap),
                ..reduce::Config::default()
            };
            let mut interesting = |case: &Case| match outcomes(case, &[]) {
                Ok((_, Err(Failure::NotRun(why)))) => Interest::Failed(why),
                Ok((expected, got)) => {
                    (judge(&expected, &got) == Verdict::Wrong(kind) && signature::symptom(&got) == symptom).into()
                }
                Err(error) => Interest::Failed(error.to_string()),
            };
            let mut progress =
                |progress: &reduce::Progress<'_>| heard(&Event::Reducing(program, progress.attempts, progress.size.nodes));
            match reduce(bundle.case.clone(), &config, &mut interesting, &mut progress) {
                Ok(reduced) => {
                    stable = reduced.stable;
                    bundle.original = Some(std::mem::replace(&mut bundle.case, reduced.case));
                }
                Err(error) => unreduced = Some(error.to_string()),
            }
        }
        let (expected, got) = outcomes(&bundle.case, &bundle.before)?;
        if judge(&expected, &got) == Verdict::Wrong(kind) {
            (bundle.expected, bundle.got) = (expected, got);
        } else {
            // What was seen the first time stands, as the only evidence there is.
            stable = false;
        }
        bundle.signature = signature(kind, &bundle.subject, &bundle.case.program, &bundle.got);
        if !stable {
            bundle.signature.push_str(", not every time");
        }
        Ok((bundle, unreduced, stable))
    }
}

impl Mark {
    fn of(bundle: Bundle, file: Option<PathBuf>) -> Mark {
        let features = features(&bundle.case.program);
        Mark { kind: bundle.kind, symptom: symptom(&bundle.got), features, finding: None, looked_alike: 0, file, bundle }
    }
}
