//! `vyre conform`: proof that a backend gives the reference's bytes.

use crate::fuzz::{EXEC, foreign_with, known_subject, start_worker, words};
use crate::launch::quoted;
use crate::{Failure, load, print, report, runs, this_program, warn};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use vyre::backend::UNVERSIONED;
use vyre::backend::registry::{acquire, preferred_device};
use vyre::{BackendError, DispatchConfig};
use vyre_conform::cert::Rerun;
use vyre_conform::conform::{Again, Conformed, Event, Make, Options, Progress, Tested, run};
use vyre_conform::evidence::{KillRates, Killed, Verdict};
use vyre_conform::ledger::{MergeError, merge};
use vyre_conform::mutants;
use vyre_conform::report::Report;
use vyre_conform::teeth::{Bite, Faulty, measure, rates, recorded};
use vyre_conform::{Cases, KernelCases, Plan, RunError, Selection, Tier, suite};
use vyre_worker::backend::{Form, PREFIX};
use vyre_worker::{Contained, Pool, Settings, Stop, Subject};

/// Prove that a backend gives the bytes that the language promises, on every op, type and workgroup size.
#[derive(clap::Args)]
#[command(after_help = "\
Every case is compared with the same computation in plain Rust, and one in a hundred with the reference interpreter too. Everything
runs twice, the second time with a change that must not affect the result. Faults are planted at secret places; a run that misses one
of them has no verdict. To resume a run that was interrupted, give the same command again.

Parts of the suite are named by an op and words after colons: ops.int.add:u32:wg=64:boundary. A query gives only some of the words:
`ops.int`, `*:f32`, `*:wg=64`; `!ops.float` excludes what it matches. A path that ends in .vyre is a kernel of your own, which is
tested on generated inputs.

Examples:
  vyre conform                                     the default backend, in a minute
  vyre conform --tier standard --backend bulk
  vyre conform 'ops.float' '!*:wg=1'
  vyre conform my.vyre --backend bulk              your kernel on this device
  vyre conform --backend exec:'python3 worker.py'  a backend in another program
  vyre conform --known known-failures.json         with a list of failures that are known
  vyre conform --list ops.int.add:u32

Exit status: 0 the promise holds, 1 it does not, 2 the command line is wrong, 3 there is no verdict.")]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    other: Option<Other>,
    /// Queries for parts of the suite, or kernels (*.vyre) [default: the whole suite]
    queries: Vec<String>,
    /// The backend to test, or `exec:COMMAND` for a worker that is another program
    #[arg(long, value_name = "NAME")]
    backend: Option<String>,
    /// How much to test: smoke (a minute), standard (a quarter of an hour), deep
    #[arg(long, default_value = "smoke", value_parser = tier)]
    tier: Tier,
    /// Random seed for the cases that are sampled
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Like --seed, but chosen by a verifier: certificates contain it, and `vyre cert verify --nonce` checks it
    #[arg(long, value_name = "N", conflicts_with = "seed")]
    nonce: Option<u64>,
    /// Run only one of N parts: I/N, counted from 0
    #[arg(long, value_name = "I/N", default_value = "0/1", value_parser = shard)]
    shard: (u64, u64),
    /// The folder to keep the state in: which units are done, and what failed
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Units to run at the same time [default: one for each core]
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// How long one dispatch may take before its process is ended, such as 500ms, 10s or 2m
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = crate::time::duration)]
    deadline: Duration,
    /// Run the backend in this process: faster, but a crash ends the whole run
    #[arg(long)]
    in_process: bool,
    /// A list of known failures, each with a reason and an expiry date (docs/conformance.md)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["mutants", "list"])]
    known: Option<PathBuf>,
    /// Plant no faults; the run then has no verdict
    #[arg(long)]
    no_controls: bool,
    /// Run the suite on devices with planted faults instead, and say which faults it notices; with --backend, on that backend with
    /// faults in its compiler. NAME selects the faults whose names begin with it: `rounding`, `resident/first-upload-lost`
    #[arg(long, value_name = "NAME", num_args = 0..=1, require_equals = true, default_missing_value = "", conflicts_with = "list")]
    mutants: Option<String>,
    /// Print the names of the units and run nothing
    #[arg(long)]
    list: bool,
    /// One JSON object per failure, and one for the whole at the end
    #[arg(long)]
    json: bool,
    #[arg(long, hide = true)]
    test_subjects: bool,
}

/// What else there is to do about runs.
#[derive(clap::Subcommand)]
enum Other {
    /// Merge the shards of a run into one run
    Merge(Merge),
}

#[derive(clap::Args)]
#[command(after_help = "\
Merges all shards of one run (`vyre conform --shard 0/8` and so on) into one run, with the root, the verdict and the controls that it
would have had on one machine. Each shard is given by its state folder or the file in it. Nothing is run.

Example: vyre conform merge whole shard-*/

Exit status: 0 the promise holds, 1 it does not, 2 a file cannot be read or written, 3 there is no verdict.")]
struct Merge {
    /// The state folder for the merged run
    #[arg(value_name = "OUT")]
    out: PathBuf,
    /// The shards
    #[arg(value_name = "SHARD", required = true)]
    shards: Vec<PathBuf>,
    /// Treat devices with different fingerprints as one device
    #[arg(long)]
    any_device: bool,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Those of a run of this part of the suite on this backend, as the words of a command line would say it. Kernels of the user's are
    /// no part of the suite, and whoever asks is not to name files of this machine.
    #[cfg(feature = "postgres")]
    pub fn of_suite(queries: &[String], tier_name: &str, seed: u64, backend: Option<&str>) -> Result<Args, Failure> {
        if let Some(query) = queries.iter().find(|query| query.ends_with(".vyre")) {
            return Err(Failure::Usage(format!("`{query}` is a file of one machine: campaigns are about the suite")));
        }
        Ok(Args {
            other: None,
            queries: queries.to_vec(),
            backend: backend.map(str::to_string),
            tier: tier(tier_name).map_err(Failure::Usage)?,
            seed,
            nonce: None,
            shard: (0, 1),
            state: None,
            jobs: None,
            deadline: Duration::from_secs(60),
            in_process: false,
            known: None,
            no_controls: false,
            mutants: None,
            list: false,
            json: false,
            test_subjects: false,
        })
    }

    /// The same, run in another way.
    #[cfg(feature = "postgres")]
    pub fn run_with(self, deadline: Duration, in_process: bool, test_subjects: bool) -> Args {
        Args { deadline, in_process, test_subjects, ..self }
    }

    /// Whether the answer is JSON.
    pub fn json(&self) -> bool {
        match &self.other {
            Some(Other::Merge(args)) => args.json,
            None => self.json,
        }
    }

    /// What sampled cases are drawn from.
    fn seed(&self) -> u64 {
        self.nonce.unwrap_or(self.seed)
    }
}

pub fn tier(word: &str) -> Result<Tier, String> {
    let known = || Tier::ALL.iter().map(|tier| tier.name()).collect::<Vec<_>>().join(", ");
    Tier::ALL.into_iter().find(|tier| tier.name() == word).ok_or_else(|| format!("the tiers are {}", known()))
}

fn shard(text: &str) -> Result<(u64, u64), String> {
    let parts = text.split_once('/').and_then(|(shard, of)| Some((shard.parse().ok()?, of.parse().ok()?)));
    match parts {
        Some((shard, of)) if shard < of => Ok((shard, of)),
        Some((shard, of)) => Err(format!("there is no shard {shard} of {of}: they are counted from 0")),
        None => Err("write it as 0/4".into()),
    }
}

pub fn conform(args: &Args) -> Result<(), Failure> {
    if let Some(Other::Merge(args)) = &args.other {
        return merge_shards(args);
    }
    let plan = plan(args)?;
    if args.list {
        return list(&plan);
    }
    if args.mutants.is_some() {
        return teeth(args, &plan);
    }
    let backend = match &args.backend {
        Some(name) => name.clone(),
        None => default_backend()?,
    };
    let (shard, shards) = args.shard;
    let stop = stop_on_signals()?;
    let state = args.state.clone().unwrap_or_else(|| default_state(args, &backend));
    let make = |form: &str| subject_until(args, form, &Stop::when(stop.clone()));
    let tested = tested(args, &backend, &make)?;
    let known = report::known(args.known.as_deref())?;
    let options = Options {
        seed: args.seed(),
        is_nonce: args.nonce.is_some(),
        shard: (shard, shards),
        state: Some(state.clone()),
        threads: threads(args.jobs),
        selection: if args.queries.is_empty() { Selection::ALL.into() } else { args.queries.join(" ") },
        tier: Some(args.tier.name().into()),
        command: command(args, &backend),
        controls: !args.no_controls,
        known,
        stop: &stop,
    };
    if !args.json {
        warn(&format!(
            "{}, tier {}, seed {}: {} units, state in {}\n",
            backend,
            args.tier.name(),
            args.seed(),
            plan.units(),
            state.display()
        ));
    }
    let mut display = Display::new(args.json);
    let outcome = run(&plan, &tested, &options, &mut |event| display.hear(event));
    display.bar.finish_and_clear();
    let conformed = outcome.map_err(|error| match error {
        RunError::Usage(_) | RunError::Spec(_) | RunError::Ledger(_) => Failure::Usage(error.to_string()),
        RunError::NothingRan(_) | RunError::Stopped(_) => Failure::NoVerdict(error.to_string()),
    })?;
    tell(args, &conformed, &state, recorded(plan.suite()))
}

fn merge_shards(args: &Merge) -> Result<(), Failure> {
    merge(&args.shards, &args.out, args.any_device).map_err(|error| match error {
        MergeError::Ledger(error) => report::ledger(error),
        MergeError::NotOneRun(_) => Failure::Usage(error.to_string()),
    })?;
    let run = runs::data(&args.out)?;
    let verdict = run.verdict(|_| false, |_| false);
    let totals = run.totals();
    if args.json {
        let object = json!({
            "verdict": verdict.word(), "why": verdict.why(), "root": run.root, "units": totals.units, "tested": totals.tested,
            "failed": totals.failed, "skipped": totals.skipped, "run": run.info,
        });
        print(&format!("{object}\n"));
    } else {
        let (shards, out) = (args.shards.len(), args.out.display());
        print(&format!(
            "{shards} shards in {out}: {} units, {} cases, {} failed\nroot {}\n",
            totals.units, totals.tested, totals.failed, run.root
        ));
    }
    match verdict {
        Verdict::Holds | Verdict::WithExceptions => Ok(()),
        Verdict::Fails => Err(Failure::Said),
        Verdict::None(why) => Err(Failure::NoVerdict(why)),
    }
}

/// Runs the suite on every mutant.
fn teeth(args: &Args, plan: &Plan) -> Result<(), Failure> {
    let stop = stop_on_signals()?;
    let mutants = faulty(args)?;
    let bar = if args.json { ProgressBar::hidden() } else { ProgressBar::new(mutants.len() as u64) };
    let tell = |bite: &Bite| {
        bar.inc(1);
        if args.json {
            let Bite { mutant, class, held_out, killed_by, units, took } = bite;
            let object = json!({
                "mutant": mutant, "class": class, "held_out": held_out, "killed_by": killed_by,
                "units": units, "seconds": took.as_secs_f64(),
            });
            print(&format!("{object}\n"));
        } else if bite.killed_by.is_none() {
            bar.suspend(|| print(&format!("not noticed: {} ({} units)\n", bite.mutant, bite.units)));
        }
    };
    let bites = measure(plan, &mutants, args.seed(), threads(args.jobs), &stop, &tell);
    bar.finish_and_clear();
    if bites.len() < mutants.len() {
        return Err(Failure::NoVerdict(format!("stopped after {} of {} mutants", bites.len(), mutants.len())));
    }
    let measured =
        KillRates { suite: plan.suite().to_string(), tier: Some(args.tier.name().into()), classes: rates(&bites, true) };
    if args.json {
        print(&format!("{}\n", json!({ "measured": measured })));
        return Ok(());
    }
    let all = KillRates { classes: rates(&bites, false), ..measured.clone() };
    for (class, rate) in &all.classes {
        print(&format!("{class:16} {}\n", said(*rate)));
    }
    print(&format!("{:16} {}\n{:16} {}\n", "all", said(all.all()), "held out", said(measured.all())));
    Ok(())
}

/// The devices with faults that are asked for.
fn faulty(args: &Args) -> Result<Vec<Faulty<'_>>, Failure> {
    let of_backend = |backend: &str| -> Vec<Faulty<'_>> {
        #[cfg(feature = "cpu")]
        if backend == "cpu" {
            let planted = vyre::cpu::faults::Fault::ALL.iter();
            return planted.map(|fault| crate::planted::faulty(*fault, move |form| subject(args, form))).collect();
        }
        let _ = backend;
        Vec::new()
    };
    let mut found: Vec<Faulty<'_>> = match &args.backend {
        None => mutants::all().iter().map(Faulty::from).collect(),
        Some(backend) => of_backend(backend),
    };
    if let Some(backend) = args.backend.as_ref().filter(|_| found.is_empty()) {
        return Err(Failure::Usage(format!("no faults are planted in `{backend}`; leave --backend out, or write --backend cpu")));
    }
    let begin = args.mutants.as_deref().unwrap_or_default();
    let classes: BTreeSet<String> = found.iter().map(|faulty| faulty.class.clone()).collect();
    found.retain(|faulty| faulty.name.starts_with(begin));
    if found.is_empty() {
        let classes = classes.into_iter().collect::<Vec<_>>().join(", ");
        return Err(Failure::Usage(format!("no planted fault has a name that begins with `{begin}`; the classes are {classes}")));
    }
    Ok(found)
}

/// A rate with the interval that its number of mutants allows.
fn said(rate: Killed) -> String {
    let (low, high) = rate.interval();
    let percent = [rate.rate(), low, high].map(|share| 100.0 * share);
    format!("{} of {} ({:.1} %, {:.1} to {:.1})", rate.killed, rate.of, percent[0], percent[1], percent[2])
}

/// Units at the same time.
pub fn threads(jobs: Option<usize>) -> usize {
    jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// Becomes true at the first signal that asks for the end; the second one is the end.
pub fn stop_on_signals() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        let again = signal_hook::flag::register_conditional_shutdown(signal, 3, stop.clone());
        let first = signal_hook::flag::register(signal, stop.clone());
        again.and(first).map_err(|error| Failure::Usage(format!("signals cannot be handled: {error}")))?;
    }
    Ok(stop)
}

/// Units of a run, to be run again on its device.
pub struct Doubted {
    args: Args,
    plan: Plan,
    backend: String,
}

impl Doubted {
    /// The run that this command has made, of the suite with this hash.
    pub fn new(command: &str, suite: &str) -> Result<Doubted, Failure> {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            args: Args,
        }
        let of_no_runner =
            || Failure::NoVerdict(format!("the units of `{command}` cannot be run again: it is not a command of this suite"));
        let words = words(command).map_err(Failure::Usage)?;
        // What stands before the flags is `vyre conform`; a parser expects one word there.
        let Some(("vyre", line)) = words.split_first().map(|(first, rest)| (first.as_str(), rest)) else {
            return Err(of_no_runner());
        };
        let line = <Line as clap::Parser>::try_parse_from(line).map_err(|_| of_no_runner())?;
        let plan = plan(&line.args)?;
        if plan.suite().to_string() != suite {
            return Err(Failure::NoVerdict(format!(
                "the run used the suite {suite}, and this vyre has the suite {}",
                plan.suite()
            )));
        }
        let backend = line.args.backend.clone().map_or_else(default_backend, Ok)?;
        Ok(Doubted { args: line.args, plan, backend })
    }

    /// Does something with whoever runs its units again.
    pub fn again<T>(&self, work: impl FnOnce(&mut dyn Rerun) -> T) -> Result<T, Failure> {
        let make = |form: &str| subject(&self.args, form);
        let tested = tested(&self.args, &self.backend, &make)?;
        let mut again = Again::new(&self.plan, &tested, self.args.seed()).map_err(Failure::NoVerdict)?;
        Ok(work(&mut again))
    }
}

/// Queries, and kernels of the user's.
fn queries(args: &Args) -> (Vec<String>, Vec<&String>) {
    let (kernels, queries): (Vec<&String>, Vec<&String>) = args.queries.iter().partition(|query| query.ends_with(".vyre"));
    (queries.into_iter().cloned().collect(), kernels)
}

pub fn plan(args: &Args) -> Result<Plan, Failure> {
    let (queries, kernels) = queries(args);
    let mut cases: Vec<Arc<dyn Cases>> = Vec::new();
    for path in &kernels {
        let program = load(path)?;
        let stem = Path::new(path.as_str()).file_stem().map_or("kernel".into(), |stem| stem.to_string_lossy());
        // Names of parts are words with dots between them.
        let name: String = stem.chars().map(|c| if c.is_alphanumeric() || c == '-' || c == '_' { c } else { '-' }).collect();
        let made = KernelCases::new(&name, program, DispatchConfig::default(), 1 << 20);
        cases.push(Arc::new(made.map_err(|why| Failure::Usage(format!("{path}: no inputs can be generated for it: {why}")))?));
    }
    let selection = Selection::new(&queries).map_err(Failure::Usage)?;
    let specs = if kernels.is_empty() || !queries.is_empty() {
        cases.extend(vyre_conform::cases::all());
        suite::all()
    } else {
        Vec::new()
    };
    Plan::new(specs, cases, &selection, args.tier).map_err(Failure::Usage)
}

fn list(plan: &Plan) -> Result<(), Failure> {
    let mut out = BufWriter::with_capacity(1 << 16, std::io::stdout().lock());
    for number in 0..plan.units() {
        let unit = plan.unit(number);
        if writeln!(out, "{}:{}", plan.sections()[unit.section].info().id, unit.first).is_err() {
            // Whoever reads has seen enough.
            return Ok(());
        }
    }
    out.flush().map_err(|error| Failure::Usage(format!("standard output: {error}")))
}

/// The fastest backend: the first that is listed.
pub fn default_backend() -> Result<String, Failure> {
    preferred_device().ok_or_else(|| Failure::Usage("no backend is linked into this program".into()))
}

fn default_state(args: &Args, backend: &str) -> PathBuf {
    let name: String = backend.chars().map(|c| if c.is_alphanumeric() || c == '-' { c } else { '_' }).collect();
    PathBuf::from(".vyre").join("conform").join(format!("{name}-{}", args.tier.name()))
}

fn command(args: &Args, backend: &str) -> String {
    let mut text = format!("vyre conform --backend {} --tier {}", quoted(backend), args.tier.name());
    let _ = match args.nonce {
        Some(nonce) => write!(text, " --nonce {nonce}"),
        None => write!(text, " --seed {}", args.seed),
    };
    if args.shard != (0, 1) {
        let _ = write!(text, " --shard {}/{}", args.shard.0, args.shard.1);
    }
    args.queries.iter().for_each(|query| {
        let _ = write!(text, " {}", quoted(query));
    });
    text
}

/// The forms in which a backend is tried, each pair of neighbours together; a foreign worker has one. Of two neighbours at least one
/// says what ran. A backend without resident data is tried in the others: otherwise half of all units would be skipped for want of it.
const FORMS: [Form; 4] = [Form::Timed, Form::Into, Form::Resident, Form::Async];

pub fn tested<'a>(args: &Args, backend: &str, make: Make<'a>) -> Result<Tested<'a>, Failure> {
    let is_subject =
        backend.starts_with(EXEC) || backend.starts_with(mutants::PREFIX) || args.test_subjects && backend.contains(':');
    if is_subject {
        // Asked once here, so that a command that does not work is told before anything else.
        let worker = make(backend).map_err(Failure::Usage)?;
        return Ok(Tested {
            make,
            forms: vec![backend.into()],
            backend: backend.into(),
            version: None,
            fingerprint: worker.name().into(),
            name: worker.name().into(),
            most_groups: 65_535,
        });
    }
    let open = acquire(backend).map_err(|error| Failure::Usage(error.message()))?;
    let resident = open.allocate_resident(4);
    let has_resident = !matches!(resident, Err(BackendError::UnsupportedFeature { .. }));
    if let Ok(memory) = resident {
        open.free_resident(memory).map_err(|error| Failure::Usage(error.message()))?;
    }
    let forms = FORMS.iter().filter(|form| **form != Form::Resident || has_resident);
    Ok(Tested {
        make,
        forms: forms.map(|form| format!("{PREFIX}{backend}/{form}")).collect(),
        backend: backend.into(),
        version: Some(open.version().to_string()).filter(|version| version != UNVERSIONED),
        fingerprint: open.device_fingerprint(),
        name: open.device_name(),
        most_groups: u64::from(open.max_compute_workgroups_per_dimension()),
    })
}

/// The device in a form: in a process of its own, unless it is to be in this one.
pub fn subject(args: &Args, form: &str) -> Result<Box<dyn Subject>, String> {
    subject_until(args, form, &Stop::default())
}

/// The same; its process is ended when somebody says stop.
fn subject_until(args: &Args, form: &str, stop: &Stop) -> Result<Box<dyn Subject>, String> {
    let settings = || Settings { deadline: args.deadline, stop: stop.clone(), ..Settings::default() };
    if let Some(command) = form.strip_prefix(EXEC) {
        return foreign_with(form, command, settings()).map(|pool| Box::new(pool) as Box<dyn Subject>);
    }
    if !args.in_process {
        let command = start_worker(form, args.test_subjects)?;
        return Pool::start(command, settings()).map(|pool| Box::new(pool) as Box<dyn Subject>);
    }
    let (name, test_subjects, deadline) = (form.to_string(), args.test_subjects, args.deadline);
    let known = |failure: Failure| match failure {
        Failure::Usage(message) | Failure::Data(message) | Failure::NoVerdict(message) => message,
        Failure::Wrong(report) => report.to_string(),
        Failure::Said | Failure::Files(_) => String::new(),
    };
    drop(known_subject(&name, test_subjects, deadline).map_err(known)?);
    Ok(Box::new(Contained::new(move || match known_subject(&name, test_subjects, deadline) {
        Ok(subject) => subject,
        Err(_) => unreachable!("the name was known a moment ago"),
    })))
}

/// What a person sees while it runs.
struct Display {
    bar: ProgressBar,
    json: bool,
    said: Instant,
    /// Lines about each op, and all of them.
    told: BTreeMap<String, usize>,
    lines: usize,
}

/// Lines that are printed while it runs about things that fail: of an op, and of the run. All are in the report.
const OF_OP: usize = 3;
const OF_RUN: usize = 60;

impl Display {
    fn new(json: bool) -> Display {
        let bar = if json { ProgressBar::hidden() } else { ProgressBar::new_spinner() };
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos}/{len} units, {msg}") {
            bar.set_style(style);
        }
        Display { bar, json, said: Instant::now(), told: BTreeMap::new(), lines: 0 }
    }

    fn hear(&mut self, event: &Event<'_>) {
        match event {
            Event::Committed(progress) => self.progress(progress),
            Event::Found { op, section, how, message } => {
                let lines = self.told.entry((*op).to_string()).or_default();
                *lines += 1;
                if *lines > OF_OP || self.lines > OF_RUN {
                    return;
                }
                self.lines += 1;
                let message = message.lines().next().unwrap_or_default();
                let more = if *lines == OF_OP { format!(" (more of {op} is not told here)") } else { String::new() };
                self.line(&format!("{how}: {section}: {message}{more}\n"));
                if self.lines > OF_RUN {
                    self.line("more failures are counted and not told here\n");
                }
            }
            Event::Waiting(units) => {
                let unit = |(name, time): &(String, Duration)| format!("{name} for {} s", time.as_secs());
                let units: Vec<String> = units.iter().map(unit).collect();
                self.line(&format!("still running: {}\n", units.join(", ")));
            }
            Event::Stopping(running) => {
                let units = if *running == 1 { "1 unit is".into() } else { format!("{running} units are") };
                self.line(&format!("stopping: {units} running; what is done is kept; again to stop now\n"));
            }
        }
    }

    /// A line on standard error, above the bar if there is one.
    fn line(&self, text: &str) {
        if !self.json {
            self.bar.suspend(|| warn(text));
        }
    }

    fn progress(&mut self, progress: &Progress<'_>) {
        let (done, all) = progress.units;
        let seconds = progress.elapsed.as_secs_f64().max(1e-9);
        let rate = progress.cases_now as f64 / seconds;
        let left = (all - done.min(all)) as f64 / (done.max(1) as f64 / seconds);
        let failed = match progress.summary.failed {
            0 => "none failed".into(),
            failed => format!("{failed} failed"),
        };
        let said = format!("{:.1} M cases/s, {left:.0} s left, {failed}, {}", rate / 1e6, progress.section);
        self.bar.set_length(all);
        self.bar.set_position(done);
        self.bar.set_message(said.clone());
        // Without a terminal a line now and then.
        if self.bar.is_hidden() && !self.json && self.said.elapsed() > Duration::from_secs(10) {
            self.said = Instant::now();
            warn(&format!("{done}/{all} units, {said}\n"));
        }
    }
}

fn tell(args: &Args, conformed: &Conformed, state: &Path, notices: Option<KillRates>) -> Result<(), Failure> {
    let Conformed { report, data, known, verdict } = conformed;
    if args.json {
        for failure in &report.failures {
            print(&format!("{}\n", json!({ "failure": failure })));
        }
        let object: Value = json!({
            "verdict": verdict.word(),
            "why": verdict.why(),
            "known": known.known,
            "known_and_not_so": known.problems,
            "summary": report.summary,
            "units": report.units,
            "root": report.root,
            "skipped": report.skipped,
            "given_up": report.given_up,
            "not_confirmed": report.not_confirmed,
            "run": data.info,
            "kill_rate": notices,
        });
        print(&format!("{object}\n"));
    } else {
        let program = this_program();
        let told = Report::new(data, known, notices.as_ref()).told_by(&program);
        print(&told.failures_text());
        for (section, entry) in &known.known {
            print(&format!("{section}: known failure until {}: {}\n", entry.expires, entry.reason));
        }
        known.problems.iter().for_each(|problem| print(&format!("known failures: {problem}\n")));
        print(&summary_text(conformed));
        print(&match &notices {
            Some(notices) => format!("of planted faults that it was not tuned on, this suite notices {}\n", said(notices.all())),
            None => "how many planted faults this suite notices was not measured\n".into(),
        });
        if *verdict == Verdict::Fails {
            let again = told.again().unwrap_or_else(|| data.info.command.replacen("vyre", &program, 1));
            let state = quoted(&state.display().to_string());
            print(&format!(
                "to run what fails again: {again}\nto see the results as a page: {program} report {state} --html report.html\n"
            ));
        }
    }
    match verdict {
        Verdict::Holds | Verdict::WithExceptions => Ok(()),
        Verdict::Fails => Err(Failure::Said),
        Verdict::None(why) => Err(Failure::NoVerdict(why.clone())),
    }
}

fn summary_text(conformed: &Conformed) -> String {
    let Conformed { report, data, known: _, verdict } = conformed;
    let info = &data.info;
    let summary = &report.summary;
    let seconds = info.took_ms as f64 / 1e3;
    let mut text = format!(
        "{} cases in {seconds:.1} s, {:.1} M/s: {} passed, {} failed, {} skipped; {} also judged by the reference\n",
        summary.tested,
        summary.tested as f64 / seconds.max(1e-3) / 1e6,
        summary.passed,
        summary.failed,
        summary.skipped,
        summary.referred
    );
    let _ = writeln!(text, "{} of {} planted faults noticed", info.controls.caught, info.controls.ran);
    if !report.not_confirmed.is_empty() {
        let _ = writeln!(text, "{} sections at workgroup sizes that the device does not confirm", report.not_confirmed.len());
    }
    for remark in report.skipped.iter().take(5) {
        let _ = writeln!(text, "skipped {}: {}", remark.section, remark.what);
    }
    if !report.given_up.is_empty() {
        let cases: u64 = data.sections.iter().filter(|it| it.given_up.is_some()).map(|it| it.not_run()).sum();
        let _ = writeln!(text, "{cases} cases in {} sections were not run, because the device hangs", report.given_up.len());
    }
    for remark in report.given_up.iter().take(5) {
        let _ = writeln!(text, "not run {}: {}", remark.section, remark.what);
    }
    let _ = writeln!(text, "root {}", report.root);
    let said = match verdict {
        Verdict::Holds => "holds",
        Verdict::WithExceptions => "holds with exceptions",
        Verdict::Fails => "does not hold",
        Verdict::None(_) => return text,
    };
    let _ = writeln!(text, "{said}: {}", info.device_name);
    text
}
