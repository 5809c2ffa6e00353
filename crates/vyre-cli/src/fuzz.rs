//! `vyre fuzz`: random programs on a subject, against the reference; what is found is reduced and kept.

use crate::launch::quoted;
use crate::time::{duration, written};
use crate::{Failure, print, warn};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};
use vyre::values;
use vyre_smith::fuzz::{Config, Error, Event, Finding, Programs, Summary, fuzz};
use vyre_smith::generate::Preset;
use vyre_smith::metamorphic::{METAMORPHIC, Metamorphic};
use vyre_smith::subjects;
use vyre_worker::backend::BackendSubject;
use vyre_worker::{Bundle, Case, Contained, Outputs, Pool, Settings, Subject, Verdict, judge};

/// Look for programs that a subject gets wrong.
///
/// Runs random programs on a subject and on the reference, and compares the bytes. A program that gives a difference is reduced to a
/// few lines and kept in a file that reproduces it.
#[derive(clap::Args)]
#[command(after_help = "\
Subjects:
  bulk                  the bulk evaluator
  backend:NAME          a device that `vyre devices` lists; --backend NAME is the same. backend:NAME/FORM calls it in one form:
                        dispatch, into, timed, async, pipeline, batch, resident, sequence, split
  passes                each optimization pass by itself, and all of them together; pass:NAME is one pass
  plain                 the reference itself, where nothing must be found
  fault:NAME            the reference with a fault, which must be found; bulk-fault:NAME is the bulk evaluator with one
  mutant:CLASS/NAME     a device with a fault, to see what a suite notices
  exec:'COMMAND'        a worker of your own, in any language: docs/workers.md
  metamorphic:SUBJECT   runs every program twice, the second time rewritten into an equivalent one, and compares the two without
                        asking the reference
--list-subjects lists all of them by name.

A finding is kept in two files: a bundle (.json: the program, its inputs, the expected and the actual outputs, and where it is from)
and a check file (.vyre) that can go below checks/ once the bug is fixed. Each finding ends with the command that reproduces it.
Programs that fail in the same way are one finding; findings that are already in the folder are known and only counted.

The same seed and number of programs give the same findings, with any number of jobs. Without --seed each run uses another seed.

Examples:
  vyre fuzz                                              10,000 programs of the default mix on the bulk evaluator
  vyre fuzz --subject passes --preset ints --time 60s    a minute of integer programs through the passes
  vyre fuzz --isolated --jobs 2                          in worker processes: crashes and hangs are findings too
  vyre fuzz --seed 7 --programs 1000 --json              for a script: one object per finding, then the totals
  vyre fuzz --subject fault:nan-compare --preset floats  does it find a fault that is there?
  vyre fuzz --backend bulk --against reference           a device that `vyre devices` lists
  vyre fuzz --subject metamorphic:bulk                   does an equivalent program give the same bytes?
  vyre fuzz --preset wide --programs 5000                dispatches of thousands of invocations
  vyre fuzz --coverage                                   also show what none of the programs contained
  vyre fuzz --replay findings/bytes-0123456789abcdef.json

Exit status: 0 nothing was found, 1 something was, 2 the command line is wrong, 3 there is no verdict: nothing was compared.")]
pub struct Args {
    /// What runs the programs
    #[arg(long, value_name = "NAME")]
    subject: Option<String>,
    /// The backend that runs the programs: --subject backend:NAME
    #[arg(long, value_name = "NAME", conflicts_with = "subject")]
    backend: Option<String>,
    /// What the bytes are compared with
    #[arg(long, value_name = "NAME", value_parser = ["reference"], default_value = "reference")]
    against: String,
    #[arg(long, value_name = "NAME", value_parser = about, default_value = MIX, help = about_help())]
    preset: About,
    /// Stop after this many programs [default: 10000, or none with --time]
    #[arg(long, value_name = "N")]
    programs: Option<u64>,
    /// Stop after this time; findings up to then are still reduced
    #[arg(long, alias = "seconds", value_name = "TIME", value_parser = duration)]
    time: Option<Duration>,
    /// Random seed: the same seed gives the same programs [default: another one each time]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Inputs for each program
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..))]
    inputs: u32,
    /// Threads [default: one for each core]
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Run the subject in processes of its own
    #[arg(long)]
    isolated: bool,
    /// How long one case may take in an isolated subject, and on the reference, such as 500ms, 10s or 2m
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "10s")]
    deadline: Duration,
    /// The folder to keep findings in
    #[arg(long, alias = "out", value_name = "FOLDER", default_value = "findings")]
    findings: PathBuf,
    /// Do not reduce findings
    #[arg(long)]
    no_reduce: bool,
    /// Run a bundle again instead of random programs
    #[arg(long, value_name = "BUNDLE", conflicts_with_all = ["programs", "time", "seed", "coverage", "no_reduce"])]
    replay: Option<PathBuf>,
    /// List all subjects, each fault by its name, and run nothing
    #[arg(long)]
    list_subjects: bool,
    /// Show what none of the programs contained
    #[arg(long)]
    coverage: bool,
    /// One JSON object for each finding, and one for the whole run
    #[arg(long)]
    pub json: bool,
    /// Allow subjects that go wrong on purpose
    #[arg(long, hide = true)]
    test_subjects: bool,
}

/// What `--deadline` is without being said.
const DEADLINE: Duration = Duration::from_secs(10);

/// The name of the default mix, beside those of the presets.
const MIX: &str = "mix";

/// What programs are about: one preset, or the default mix.
#[derive(Clone, Copy)]
struct About(Option<Preset>);

impl About {
    fn name(self) -> &'static str {
        self.0.map_or(MIX, Preset::name)
    }
}

fn names(presets: &[Preset]) -> String {
    presets.iter().map(|preset| preset.name()).collect::<Vec<_>>().join(", ")
}

fn about_help() -> String {
    format!(
        "What kind of programs: {MIX} ({} in turn); large programs: {}; not compared, since their bytes depend on the schedule: {}",
        names(Preset::mix()),
        names(Preset::large()),
        names(Preset::undetermined())
    )
}

fn about(name: &str) -> Result<About, String> {
    if name == MIX {
        return Ok(About(None));
    }
    Preset::from_name(name).map(|preset| About(Some(preset))).ok_or_else(|| {
        let known = || std::iter::once(MIX).chain(Preset::ALL.iter().map(|preset| preset.name()));
        match vyre::text::suggest::nearest(name, known()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("the presets are {}", known().collect::<Vec<_>>().join(", ")),
        }
    })
}

/// What stands before a command that is a worker.
pub const EXEC: &str = "exec:";

/// A worker that is somebody else's program.
pub fn foreign(name: &str, command: &str, deadline: Duration) -> Result<Pool, String> {
    foreign_with(name, command, Settings { deadline, ..Settings::default() })
}

/// The same, with all that can be said about how it is supervised.
pub fn foreign_with(name: &str, command: &str, settings: Settings) -> Result<Pool, String> {
    let words = words(command)?;
    let Some((program, args)) = words.split_first() else { return Err(format!("{EXEC} needs a command after it")) };
    let (program, args) = (program.clone(), args.to_vec());
    let start = move || {
        let mut command = std::process::Command::new(&program);
        command.args(&args);
        command
    };
    Ok(Pool::start(start, settings)?.with_name(name))
}

/// The words of a command: split at spaces, but not within quotes.
pub fn words(command: &str) -> Result<Vec<String>, String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in command.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    if let Some(open) = quote {
        return Err(format!("a {open} in `{command}` is not closed"));
    }
    words.extend(word);
    Ok(words)
}

/// The subject with this name.
pub fn known_subject(name: &str, test_subjects: bool, deadline: Duration) -> Result<Box<dyn Subject>, Failure> {
    if let Some(inner) = name.strip_prefix(METAMORPHIC) {
        return Ok(Box::new(Metamorphic::new(known_subject(inner, test_subjects, deadline)?)));
    }
    if let Some(command) = name.strip_prefix(EXEC) {
        return foreign(name, command, deadline).map(|pool| Box::new(pool) as Box<dyn Subject>).map_err(Failure::Usage);
    }
    #[cfg(feature = "cpu")]
    if let Some(faulty) = crate::planted::subject(name) {
        return faulty.map_err(Failure::Usage);
    }
    if let Some(mutant) = vyre_conform::mutants::subject(name) {
        return mutant.map_err(Failure::Usage);
    }
    if let Some(backend) = BackendSubject::named(name) {
        return backend.map(|subject| Box::new(subject) as Box<dyn Subject>).map_err(Failure::Usage);
    }
    let on_purpose = if test_subjects { subjects::test_subject(name) } else { None };
    on_purpose.map_or_else(|| subjects::subject(name).map_err(|error| Failure::Usage(error.to_string())), Ok)
}

/// The subject that the command line names, as such or as a backend.
fn asked_subject(args: &Args) -> Option<String> {
    let backend = args.backend.as_ref().map(|id| format!("{}{id}", vyre_worker::backend::PREFIX));
    backend.or_else(|| args.subject.clone())
}

pub fn run(args: &Args) -> Result<(), Failure> {
    match &args.replay {
        _ if args.list_subjects => {
            list_subjects(args.json);
            Ok(())
        }
        Some(path) => replay(args, path),
        None => search(args),
    }
}

/// Every subject with what it does.
fn list_subjects(as_json: bool) {
    let mut all = subjects::list();
    let devices = vyre::backend::registry::registered_devices();
    all.extend(devices.into_iter().map(|(_, device)| (format!("{}{}", vyre_worker::backend::PREFIX, device.id), device.name)));
    #[cfg(feature = "cpu")]
    all.extend(crate::planted::list());
    let mutants = vyre_conform::mutants::all().iter();
    all.extend(mutants.map(|mutant| (mutant.subject_name(), mutant.class.about().to_string())));
    let mut text = String::new();
    for (name, about) in all {
        let _ = match as_json {
            true => writeln!(text, "{}", json!({ "subject": name, "about": about })),
            false => writeln!(text, "{name:<36}  {about}"),
        };
    }
    print(&text);
}

/// What starts a process of this program that runs a subject for a judge.
pub fn start_worker(
    subject: &str,
    test_subjects: bool,
) -> Result<impl Fn() -> std::process::Command + Send + Sync + 'static, String> {
    let program = std::env::current_exe().map_err(|error| format!("this program cannot be started again: {error}"))?;
    let subject = subject.to_string();
    Ok(move || {
        let mut command = std::process::Command::new(&program);
        command.args(["worker", "--subject", &subject]);
        if test_subjects {
            command.arg("--test-subjects");
        }
        command
    })
}

/// A pool of one process that runs this subject.
fn isolated(args: &Args, subject: &str) -> Result<Pool, String> {
    let command = start_worker(subject, args.test_subjects)?;
    Pool::start(command, Settings { deadline: args.deadline, ..Settings::default() })
}

fn search(args: &Args) -> Result<(), Failure> {
    let asked = asked_subject(args);
    let subject = asked.as_deref().unwrap_or("bulk");
    drop(known_subject(subject, args.test_subjects, args.deadline)?);
    let seed = args.seed.unwrap_or_else(|| {
        let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        time.as_nanos() as u64 % 1_000_000_000
    });
    let programs = args.programs.or(if args.time.is_none() { Some(10_000) } else { None });
    let jobs = args.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let is_new = !args.findings.exists();
    let flags = how(args);
    let replay_flags = flags.clone();
    let config = Config {
        programs,
        time: args.time,
        deadline: Some(args.deadline),
        jobs,
        attempts: if args.no_reduce { 0 } else { Config::default().attempts },
        folder: Some(args.findings.clone()),
        replay: Box::new(move |path| {
            format!("{} fuzz --replay {}{replay_flags}", crate::this_program(), quoted(&path.to_string_lossy()))
        }),
    };
    let source = Programs { preset: args.preset.0, seed, inputs: args.inputs };
    let test_subjects = args.test_subjects;
    let make = || -> Result<Box<dyn Subject>, String> {
        if let Some(command) = subject.strip_prefix(EXEC) {
            return foreign(subject, command, args.deadline).map(|pool| Box::new(pool) as Box<dyn Subject>);
        }
        if args.isolated {
            return isolated(args, subject).map(|pool| Box::new(pool) as Box<dyn Subject>);
        }
        let (name, deadline) = (subject.to_string(), args.deadline);
        Ok(Box::new(Contained::new(move || match known_subject(&name, test_subjects, deadline) {
            Ok(subject) => subject,
            Err(_) => unreachable!("the name was known a moment ago"),
        })))
    };
    if !args.json {
        let limit = match (programs, args.time) {
            (Some(programs), _) => format!("{programs} programs"),
            (None, time) => format!("{:?}", time.unwrap_or_default()),
        };
        warn(&format!("{subject}, preset {}, seed {seed}, {limit}\n", args.preset.name()));
    }
    let mut display = Display::new(args, programs);
    let summary = fuzz(&source, &make, &config, &mut |event| display.hear(event));
    display.bar.finish_and_clear();
    if is_new {
        // It is gone only if nothing was put there.
        let _ = std::fs::remove_dir(&args.findings);
    }
    let summary = summary.map_err(|error| match error {
        Error::Folder(..) => Failure::Usage(error.to_string()),
        Error::Subject(_) | Error::Threads(_) => Failure::NoVerdict(error.to_string()),
    })?;
    if args.json {
        print(&format!("{}\n", summary_json(args, subject, seed, &summary)));
    } else {
        print(&format!("{}\n", sums(&summary)));
        if args.coverage {
            print(&summary.coverage.report());
        }
        if let (Some(programs), false) = (programs, summary.findings.is_empty()) {
            let isolated = if args.isolated { " --isolated" } else { "" };
            print(&format!(
                "the same programs again: {} fuzz --subject {} --preset {} --seed {seed} --programs {programs} --inputs {}{isolated}{flags}\n",
                crate::this_program(),
                quoted(subject),
                args.preset.name(),
                args.inputs,
            ));
        }
    }
    if !summary.findings.is_empty() {
        return Err(Failure::Said);
    }
    match summary.not_run {
        Some((count, why)) => Err(Failure::NoVerdict(format!("{count} did not run: {why}"))),
        None if summary.cases == 0 => Err(Failure::NoVerdict("nothing was compared".into())),
        None => Ok(()),
    }
}

/// The flags that change what a subject is and how long it may take, as one writes them, each after a space.
fn how(args: &Args) -> String {
    let mut flags = String::new();
    if args.deadline != DEADLINE {
        let _ = write!(flags, " --deadline {}", written(args.deadline));
    }
    if args.test_subjects {
        flags.push_str(" --test-subjects");
    }
    flags
}

/// What a person sees while it runs.
struct Display {
    bar: ProgressBar,
    json: bool,
    said: Instant,
    found: usize,
}

impl Display {
    fn new(args: &Args, programs: Option<u64>) -> Display {
        let bar = if args.json { ProgressBar::hidden() } else { ProgressBar::new_spinner() };
        let template = if programs.is_some() { "{bar:24} {pos}/{len} {msg}" } else { "{spinner} {pos} {msg}" };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        programs.iter().for_each(|programs| bar.set_length(*programs));
        Display { bar, json: args.json, said: Instant::now(), found: 0 }
    }

    fn hear(&mut self, event: &Event<'_>) {
        match event {
            Event::Counted(summary) => {
                self.bar.set_position(summary.programs);
                self.bar.set_message(format!("programs, {}", rates(summary)));
                // Without a terminal a line now and then.
                if self.bar.is_hidden() && !self.json && self.said.elapsed() > Duration::from_secs(10) {
                    self.said = Instant::now();
                    warn(&format!("{} programs, {}\n", summary.programs, rates(summary)));
                }
            }
            Event::Reducing(program, attempts, nodes) => {
                self.bar
                    .set_message(format!("programs; reducing program {program}: {nodes} nodes left after {attempts} attempts"));
            }
            Event::Found(finding) => {
                self.found += 1;
                self.tell(finding, &format!("finding {}", self.found));
            }
            Event::Smaller(finding) => self.tell(finding, "an earlier finding, now smaller"),
            Event::Unreadable(path, error) => {
                self.bar.suspend(|| warn(&format!("warning: {} is not a bundle: {error}\n", path.display())));
            }
        }
    }
}

impl Display {
    fn tell(&self, finding: &Finding, title: &str) {
        let text = if self.json { format!("{}\n", finding_json(finding)) } else { finding_text(title, finding) };
        self.bar.suspend(|| print(&text));
    }
}

fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

fn rates(summary: &Summary) -> String {
    let per_second = summary.programs as f64 / summary.elapsed.as_secs_f64().max(1e-9);
    let (reached, cells) = (summary.coverage.reached(), summary.coverage.cells());
    let found = match summary.findings.len() as u64 {
        0 => "no findings".into(),
        count => format!("{} in {}", counted(count, "finding", "findings"), counted(summary.wrong, "program", "programs")),
    };
    format!("{per_second:.0}/s, coverage {reached} of {cells}, {found}")
}

fn sums(summary: &Summary) -> String {
    let mut out = format!(
        "{}, {} in {:.1} s, {}",
        counted(summary.programs, "program", "programs"),
        counted(summary.cases, "case", "cases"),
        summary.elapsed.as_secs_f64(),
        rates(summary)
    );
    if summary.skipped > 0 {
        let _ = write!(out, "; {} skipped", counted(summary.skipped, "case", "cases"));
    }
    if summary.undecided > 0 {
        let _ = write!(
            out,
            "; {} not compared, since their bytes depend on the schedule",
            counted(summary.undecided, "program", "programs")
        );
    }
    out
}

fn summary_json(args: &Args, subject: &str, seed: u64, summary: &Summary) -> Value {
    let mut object = json!({
        "subject": subject,
        "preset": args.preset.name(),
        "seed": seed,
        "inputs": args.inputs,
        "programs": summary.programs,
        "cases": summary.cases,
        "skipped": summary.skipped,
        "undecided": summary.undecided,
        "not_run": summary.not_run.as_ref().map_or(0, |(count, _)| *count),
        "wrong": summary.wrong,
        "findings": summary.findings.iter().map(|finding| json!({
            "signature": finding.bundle.signature,
            "programs": finding.count,
        })).collect::<Vec<_>>(),
        "seconds": summary.elapsed.as_secs_f64(),
        "coverage": { "reached": summary.coverage.reached(), "cells": summary.coverage.cells() },
    });
    if args.coverage {
        object["coverage"]["holes"] = json!(summary.coverage.holes());
    }
    object
}

fn finding_json(finding: &Finding) -> Value {
    let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.to_string_lossy().into_owned());
    json!({ "finding": {
        "signature": finding.bundle.signature,
        "kind": finding.bundle.kind.name(),
        "subject": finding.bundle.subject,
        "program": finding.program,
        "text": finding.bundle.case.program.to_string(),
        "nodes": nodes(&finding.bundle.case),
        "original_nodes": finding.bundle.original.as_ref().map(nodes),
        "known": finding.known,
        "stable": finding.stable,
        "bundle": path(&finding.file),
        "check": path(&finding.check),
        "replay": finding.replay,
    }})
}

fn nodes(case: &Case) -> usize {
    case.program.walk().count()
}

fn finding_text(title: &str, finding: &Finding) -> String {
    let bundle = &finding.bundle;
    let mut out = format!("{title}: {}\n", bundle.signature);
    let size = match &bundle.original {
        Some(original) => format!("reduced from {} to {} nodes", nodes(original), nodes(&bundle.case)),
        None => format!("{} nodes", nodes(&bundle.case)),
    };
    let _ = writeln!(out, "  in program {}, {size}{}", finding.program, if finding.known { ", known before" } else { "" });
    if let Some(why) = &finding.unreduced {
        let _ = writeln!(out, "  not reduced: {}", why.lines().next().unwrap_or_default());
    }
    describe(&mut out, bundle);
    let files: Vec<String> =
        [&finding.file, &finding.check].into_iter().flatten().map(|path| path.display().to_string()).collect();
    if !files.is_empty() {
        let _ = writeln!(out, "  {}", files.join(" "));
    }
    if let Some(replay) = &finding.replay {
        let _ = writeln!(out, "again: {replay}");
    }
    out
}

/// Longer programs and buffers are only in the bundle.
const SHOWN_LINES: usize = 60;
const SHOWN_ELEMENTS: usize = 16;

fn describe(out: &mut String, bundle: &Bundle) {
    let text = bundle.case.program.to_string();
    for line in text.lines().take(SHOWN_LINES) {
        let _ = writeln!(out, "  | {line}");
    }
    if text.lines().count() > SHOWN_LINES {
        let _ = writeln!(out, "  | …");
    }
    if !bundle.before.is_empty() {
        let _ = writeln!(out, "  only after {}", counted(bundle.before.len() as u64, "other case", "other cases"));
    }
    let interface = bundle.case.program.interface();
    let _ = writeln!(out, "  inputs    {}", buffers(&bundle.case, &interface.inputs, &bundle.case.inputs));
    let outcome = |outcome: &Result<Outputs, vyre_worker::Failure>| match outcome {
        Ok(outputs) => buffers(&bundle.case, &interface.outputs, outputs),
        Err(failure) => failure.to_string().lines().next().unwrap_or_default().to_string(),
    };
    let _ = writeln!(out, "  expected  {}", outcome(&bundle.expected));
    let _ = writeln!(out, "  got       {}", outcome(&bundle.got));
}

/// The elements of buffers, as far as they are shown.
fn buffers(case: &Case, which: &[usize], bytes: &[Vec<u8>]) -> String {
    let Ok(program) = case.specialized() else { return "(the program is not valid)".into() };
    let Ok(validated) = program.validated() else { return "(the program is not valid)".into() };
    let shown: Vec<String> = which
        .iter()
        .zip(bytes)
        .map(|(i, bytes)| {
            let buffer = &validated.kernel().buffers[*i];
            let elements = values::decode(&buffer.element, bytes);
            let more = if elements.len() > SHOWN_ELEMENTS { " …" } else { "" };
            format!("{}={}{more}", buffer.name, elements[..elements.len().min(SHOWN_ELEMENTS)].join(","))
        })
        .collect();
    if shown.is_empty() { "none".into() } else { shown.join("  ") }
}

/// Runs a bundle again, in a process of its own.
fn replay(args: &Args, path: &Path) -> Result<(), Failure> {
    let mut bundle =
        Bundle::read(path).map_err(|error| Failure::Usage(format!("{} is not a bundle: {error}", path.display())))?;
    if let Some(subject) = asked_subject(args) {
        bundle.subject = subject;
    }
    drop(known_subject(&bundle.subject, args.test_subjects, args.deadline)?);
    let pool = match bundle.subject.strip_prefix(EXEC) {
        Some(command) => foreign(&bundle.subject, command, args.deadline),
        None => isolated(args, &bundle.subject),
    };
    let mut pool = pool.map_err(Failure::NoVerdict)?;
    let expected = vyre_worker::caught(|| subjects::expected(&bundle.case))
        .unwrap_or_else(|message| Err(vyre_worker::Failure::Panicked(message)));
    let sequence: Vec<Case> = bundle.before.iter().chain([&bundle.case]).cloned().collect();
    let Some(answer) = pool.run_batch(&sequence).pop() else {
        return Err(Failure::NoVerdict("the subject gave no answer".into()));
    };
    let verdict = judge(&expected, &answer.outcome);
    let changed = expected != bundle.expected;
    (bundle.expected, bundle.got) = (expected, answer.outcome);
    let said = match verdict {
        Verdict::Agrees => format!(
            "{} agrees with the reference now. If nothing was changed, the failure depends on what the same process ran before it",
            bundle.subject
        ),
        Verdict::Wrong(kind) if kind == bundle.kind => format!("still wrong: {}", bundle.signature),
        Verdict::Wrong(kind) => format!("still wrong, but in another way: {kind}; before it was {}", bundle.signature),
        Verdict::Skipped | Verdict::NotRun => "no verdict".into(),
    };
    if args.json {
        let wrong = matches!(verdict, Verdict::Wrong(_));
        let object = json!({ "replay": {
            "signature": bundle.signature,
            "subject": bundle.subject,
            "wrong": wrong,
            "reference_changed": changed,
            "said": said,
        }});
        print(&format!("{object}\n"));
    } else {
        let mut out = format!("{said}\n");
        describe(&mut out, &bundle);
        if changed {
            out.push_str("  the reference gave another result when this was found\n");
        }
        print(&out);
    }
    match (verdict, bundle.got) {
        (Verdict::Agrees, _) => Ok(()),
        (Verdict::Wrong(_), _) => Err(Failure::Said),
        (Verdict::Skipped | Verdict::NotRun, Err(why)) => Err(Failure::NoVerdict(why.to_string())),
        (Verdict::Skipped | Verdict::NotRun, Ok(_)) => unreachable!("outputs are always compared"),
    }
}
