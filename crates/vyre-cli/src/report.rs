//! `vyre report`: what a conformance run says, for people and for other tools.

use crate::{Failure, not_over_input, print, runs, this_program};
use std::path::{Path, PathBuf};
use vyre::files;
use vyre_conform::Date;
use vyre_conform::evidence::{KillError, KillRates, RunData, Verdict};
use vyre_conform::expectations::{Expectations, ExpectationsError, Judged};
use vyre_conform::ledger::LedgerError;
use vyre_conform::report::Report;

/// Show what a conformance run says about its device.
///
/// Reads the ledger of a run, says what it shows, and writes it in other forms.
#[derive(clap::Args)]
#[command(after_help = "\
RUN is the state folder of a run, or the file in it, or postgres://…#CAMPAIGN/DEVICE. It is only read, and others
may read it at the same time.

Known failures are a JSON file: a list of {\"query\", \"backend\", \"reason\", \"expires\"} (docs/conformance.md). An entry is
a failure itself if it has expired, if nothing that it names ran, or if something that it names holds.

Examples:
  vyre report state                                   the verdict, and what it rests on
  vyre report state --html report.html                one page that needs nothing else
  vyre report state --junit report.xml --markdown pr.md --known known-failures.json
  vyre report state --json                            JSON lines: run, profiles, ops, sections, failures, verdict

Exit status: 0 the device gives the reference's bytes, with or without known failures; 1 it does not, or a file is damaged;
2 the command line is wrong or a file cannot be read or written; 3 the run has no verdict.")]
pub struct Args {
    /// The run: its state folder, or its file
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// Write one self-contained HTML page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write JUnit XML: a test case for each op, program and workgroup size
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write Markdown for a pull request
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    #[command(flatten)]
    beside: Beside,
    /// JSON lines on standard output
    #[arg(long)]
    pub json: bool,
}

/// Files that say something about a run.
#[derive(clap::Args)]
pub struct Beside {
    /// A list of known failures, each with a reason and an expiry date
    #[arg(long, value_name = "FILE")]
    pub known: Option<PathBuf>,
    /// Kill rates measured for the suite
    #[arg(long, value_name = "FILE")]
    pub kills: Option<PathBuf>,
}

impl Beside {
    /// What the files say about a run.
    pub fn read(&self, run: &RunData) -> Result<(Judged, Option<KillRates>), Failure> {
        let known = known(self.known.as_deref())?;
        let kills = self.kills.as_deref().map(KillRates::read).transpose().map_err(|error| match &error {
            KillError::Unreadable(..) => Failure::Usage(error.to_string()),
            KillError::Malformed(..) => Failure::Data(error.to_string()),
        })?;
        Ok((known.judge(run, Date::today()), kills))
    }

    /// The paths, for whoever must not write over them.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.known.iter().chain(&self.kills).map(PathBuf::as_path)
    }
}

/// What a file says about known failures; without one nothing is known.
pub fn known(path: Option<&Path>) -> Result<Expectations, Failure> {
    let known = path.map(Expectations::read).transpose().map_err(|error| match &error {
        ExpectationsError::Unreadable(..) => Failure::Usage(error.to_string()),
        ExpectationsError::Malformed(..) => Failure::Data(error.to_string()),
    });
    known.map(Option::unwrap_or_default)
}

/// What went wrong with a ledger, and whose turn it is.
pub fn ledger(error: LedgerError) -> Failure {
    match error {
        LedgerError::Busy(_) | LedgerError::Io(..) | LedgerError::OtherRun { .. } => Failure::Usage(error.to_string()),
        LedgerError::Damaged(..) => Failure::Data(error.to_string()),
        LedgerError::Version(..) => Failure::NoVerdict(error.to_string()),
    }
}

pub fn report(args: &Args) -> Result<(), Failure> {
    let run = runs::data(&args.run)?;
    let (known, kills) = args.beside.read(&run)?;
    let report = Report::new(&run, &known, kills.as_ref()).told_by(&this_program());
    let inputs: Vec<String> = args.beside.paths().chain([run.path.as_path()]).map(|path| path.display().to_string()).collect();
    let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
    type Write<'w> = &'w dyn Fn(&Report<'_>) -> String;
    let forms: [(&Option<PathBuf>, Write<'_>); 3] = [
        (&args.html, &|report| report.html()),
        (&args.junit, &|report| report.junit()),
        (&args.markdown, &|report| report.markdown()),
    ];
    let mut written: Vec<(&Path, String)> = Vec::new();
    for (path, form) in forms {
        let Some(path) = path else { continue };
        not_over_input(path, &inputs)?;
        if written.iter().any(|(other, _)| files::is_same(path, other)) {
            return Err(Failure::Usage(format!("two forms of the report would go to {}", path.display())));
        }
        written.push((path, form(&report)));
    }
    let all: Vec<(&Path, &[u8])> = written.iter().map(|(path, text)| (*path, text.as_bytes())).collect();
    files::replace_all(&all).map_err(|error| Failure::Usage(error.to_string()))?;
    if args.json {
        print(&report.json_lines());
    } else {
        print(&report.text());
        written.iter().for_each(|(path, text)| print(&format!("{}: {} bytes\n", path.display(), text.len())));
    }
    match report.verdict {
        Verdict::Holds | Verdict::WithExceptions => Ok(()),
        Verdict::Fails => Err(Failure::Said),
        // It has been said, but the status is another.
        Verdict::None(_) => Err(Failure::Files(3)),
    }
}
