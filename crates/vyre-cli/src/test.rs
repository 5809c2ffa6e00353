//! `vyre test`: what check files say about runs, on a backend.

use crate::{Failure, print, read, tell, write_file};
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use vyre::backend::registry::{acquire, acquire_preferred};
use vyre::{BackendError, VyreBackend};
use vyre_conform::checks::{self, FileOutcome, FileVerdict, Problem};

/// Run check files on a backend.
///
/// A check file is a kernel whose comments say what it must give. Every run, trap and refusal that it names is tried; those that the
/// backend says it cannot run are skipped, and so are those that depend on the order of invocations.
#[derive(clap::Args)]
#[command(after_help = "\
Without paths it runs vyre's own check files, which are built into this program. checks/readme.vyre explains the format.
Exit status 1 if something does not hold, 3 if everything was skipped.

Examples:
  vyre test --backend bulk
  vyre test --backend bulk checks/run/atomics my.vyre --junit out.xml")]
pub struct Args {
    /// Check files, or folders with files that end in .vyre; `-` is standard input
    #[arg(value_name = "PATH")]
    paths: Vec<String>,
    /// A device that `vyre devices` lists [default: the one that `vyre run` prefers]
    #[arg(long, value_name = "NAME")]
    backend: Option<String>,
    /// Also write the result as JUnit XML
    #[arg(long, value_name = "FILE")]
    junit: Option<String>,
    /// One JSON object per file, then one for all
    #[arg(long)]
    pub json: bool,
}

/// A check file, read or still to be read.
enum Found {
    Embedded(&'static str, &'static [u8]),
    Path(String),
}

impl Found {
    fn name(&self) -> &str {
        match self {
            Found::Embedded(name, _) => name,
            Found::Path(path) => path,
        }
    }
}

/// What became of one file.
struct Row {
    file: String,
    verdict: FileVerdict,
    time: Duration,
}

pub fn test(args: &Args) -> Result<(), Failure> {
    let backend = open(args.backend.as_deref())?;
    let files = files(&args.paths)?;
    // The longest name so far would move the columns.
    let width = files.iter().map(|file| file.name().chars().count()).max().unwrap_or(0);
    let mut rows = Vec::new();
    let mut unreadable = None;
    for file in &files {
        let start = Instant::now();
        let verdict = match file {
            Found::Embedded(_, bytes) => on(&*backend, bytes),
            Found::Path(path) => match read(path) {
                Ok(bytes) => on(&*backend, &bytes),
                Err(failure) => {
                    unreadable = Some(tell(failure, args.json, Some(path)));
                    continue;
                }
            },
        };
        let row = Row { file: file.name().into(), verdict, time: start.elapsed() };
        print(&if args.json { format!("{}\n", as_json(&row)) } else { as_text(&row, width) });
        rows.push(row);
    }
    let count = |outcome| rows.iter().filter(|row| row.verdict.outcome() == outcome).count();
    let [passed, failed, skipped] = [FileOutcome::Passed, FileOutcome::Failed, FileOutcome::Skipped].map(count);
    if let Some(path) = &args.junit {
        let inputs: Vec<&str> = args.paths.iter().map(String::as_str).collect();
        write_file(path, junit(backend.id(), &rows)?.as_bytes(), &inputs)?;
    }
    let time: Duration = rows.iter().map(|row| row.time).sum();
    print(&match args.json {
        true => format!(
            "{}\n",
            json!({ "backend": backend.id(), "passed": passed, "failed": failed, "skipped": skipped, "seconds": time.as_secs_f64() })
        ),
        false => {
            format!("{passed} passed, {failed} failed, {skipped} skipped on {} in {:.1} s\n", backend.id(), time.as_secs_f64())
        }
    });
    if let Some(row) = rows.iter().find(|row| row.verdict.outcome() == FileOutcome::Failed)
        && !args.json
    {
        let file = if args.paths.is_empty() { format!("checks/{}", row.file) } else { row.file.clone() };
        print(&format!(
            "to run the first failure again: {} test --backend {} {}\n",
            crate::this_program(),
            backend.id(),
            crate::launch::quoted(&file)
        ));
    }
    match (unreadable, failed, passed) {
        (Some(status), ..) => Err(Failure::Files(status)),
        (None, 1.., _) => Err(Failure::Said),
        (None, 0, 0) => Err(Failure::NoVerdict(format!("nothing was run on {}: {skipped} skipped", backend.id()))),
        (None, 0, _) => Ok(()),
    }
}

fn open(name: Option<&str>) -> Result<Box<dyn VyreBackend>, Failure> {
    let opened = match name {
        Some(name) => acquire(name),
        None => acquire_preferred(),
    };
    opened.map_err(|error| match matches!(error, BackendError::UnknownBackend { .. }) {
        true => Failure::Usage(error.message()),
        false => Failure::NoVerdict(format!("the backend cannot be opened: {}", error.message())),
    })
}

fn files(paths: &[String]) -> Result<Vec<Found>, Failure> {
    if paths.is_empty() {
        return Ok(checks::EMBEDDED.iter().map(|(name, bytes)| Found::Embedded(name, bytes)).collect());
    }
    let mut all = Vec::new();
    for path in paths {
        if path == "-" || !Path::new(path).is_dir() {
            all.push(Found::Path(path.clone()));
            continue;
        }
        let mut below = Vec::new();
        collect(Path::new(path), &mut below)?;
        if below.is_empty() {
            return Err(Failure::Usage(format!("there is no .vyre file below {path}")));
        }
        below.sort();
        all.extend(below.iter().map(|path| Found::Path(path.display().to_string())));
    }
    Ok(all)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::Usage(format!("cannot read {}: {error}", folder.display()));
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let path = entry.path();
        // A link to a folder may lead back here.
        if entry.file_type().map_err(failed)?.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "vyre") {
            files.push(path);
        }
    }
    Ok(())
}

/// What is no check file fails.
fn on(backend: &dyn VyreBackend, bytes: &[u8]) -> FileVerdict {
    checks::on_backend(backend, bytes)
        .unwrap_or_else(|text| FileVerdict { failures: vec![Problem { line: 1, text }], ..FileVerdict::default() })
}

fn word(outcome: FileOutcome) -> &'static str {
    match outcome {
        FileOutcome::Passed => "passed",
        FileOutcome::Failed => "failed",
        FileOutcome::Skipped => "skipped",
    }
}

fn as_text(Row { file, verdict, time }: &Row, width: usize) -> String {
    let outcome = verdict.outcome();
    let told = match outcome {
        FileOutcome::Passed if verdict.skips.is_empty() => format!("{} held", verdict.holds),
        FileOutcome::Passed => format!("{} held, {} skipped: {}", verdict.holds, verdict.skips.len(), first_line(&verdict.skips)),
        FileOutcome::Failed => format!("{} of {}", verdict.failures.len(), verdict.holds as usize + verdict.failures.len()),
        FileOutcome::Skipped => first_line(&verdict.skips),
    };
    let mut text = format!("{file:width$}  {:7}  {:>8.1} ms  {told}\n", word(outcome), time.as_secs_f64() * 1e3);
    for Problem { line, text: problem } in &verdict.failures {
        text += &format!("  {file}:{line}: {}\n", problem.replace('\n', "\n    "));
    }
    text
}

fn first_line(problems: &[Problem]) -> String {
    let first = problems.first().map_or("", |problem| problem.text.as_str());
    first.lines().next().unwrap_or("").into()
}

fn as_json(Row { file, verdict, time }: &Row) -> Value {
    let list = |problems: &[Problem]| -> Vec<Value> {
        problems.iter().map(|problem| json!({ "line": problem.line, "text": problem.text })).collect()
    };
    json!({
        "file": file,
        "outcome": word(verdict.outcome()),
        "held": verdict.holds,
        "failures": list(&verdict.failures),
        "skips": list(&verdict.skips),
        "seconds": time.as_secs_f64(),
    })
}

fn junit(backend: &str, rows: &[Row]) -> Result<String, Failure> {
    let mut suite = TestSuite::new(format!("vyre test on {backend}"));
    for Row { file, verdict, time } in rows {
        let told = |problems: &[Problem]| -> String {
            let lines: Vec<String> = problems.iter().map(|problem| format!("line {}: {}", problem.line, problem.text)).collect();
            lines.join("\n")
        };
        let status = match verdict.outcome() {
            FileOutcome::Passed => TestCaseStatus::success(),
            FileOutcome::Failed => {
                let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                status.set_message(first_line(&verdict.failures)).set_description(told(&verdict.failures));
                status
            }
            FileOutcome::Skipped => {
                let mut status = TestCaseStatus::skipped();
                status.set_message(told(&verdict.skips));
                status
            }
        };
        let mut case = TestCase::new(file.as_str(), status);
        case.set_classname(backend).set_time(*time);
        suite.add_test_case(case);
    }
    let mut report = Report::new("vyre test");
    report.add_test_suite(suite);
    report.to_string().map_err(|error| Failure::Usage(format!("the result cannot be written as JUnit: {error}")))
}
