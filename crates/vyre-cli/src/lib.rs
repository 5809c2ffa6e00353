//! The `vyre` command, as a library: whoever links a backend into a program of their own has every command for it.
//!
//! ```no_run
//! // use my_backend as _;
//! fn main() -> std::process::ExitCode {
//!     vyre_cli::main()
//! }
//! ```
//!
//! One file per subcommand; this one has the flags they share and what the exit status means.
//!
//! 0: what was asked for holds. 1: the program or the data are wrong. 2: the command line is wrong, or a path cannot be read or
//! written. 3: there is no verdict. Of several files the worst counts: 2, then 1, then 3.

#[cfg(feature = "postgres")]
mod campaign;
#[cfg(not(feature = "postgres"))]
#[path = "no_campaign.rs"]
mod campaign;
mod cert;
mod check;
mod completions;
mod conform;
mod devices;
mod diff;
mod emit;
mod explain;
mod fmt;
mod fuzz;
mod json;
mod launch;
mod lsp;
#[cfg(feature = "cpu")]
mod planted;
mod predicate;
mod reduce;
mod report;
mod run;
mod runs;
mod style;
mod test;
mod time;
mod trace;
mod worker;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use style::{ColorChoice, Style};
use vyre::Report;
use vyre::files;
use vyre::ir::Program;

#[derive(Parser)]
#[command(
    name = "vyre",
    version,
    about = "Kernels that give the same bytes on every device, floats included",
    after_help = "\
Start here:
  vyre run examples/xor.vyre --in a=1,2,3 --in b=7,7,7    run a kernel and see its outputs
  vyre check examples/*.vyre                              check kernels without running them
  vyre fmt kernel.vyre                                    format a kernel in place
  vyre fuzz --time 10s                                    look for programs that the bulk evaluator gets wrong
  vyre conform                                            prove that the default backend gives the promised bytes
  vyre report state --html report.html                    write the results of a conformance run as a page
  vyre test --backend bulk                                run vyre's own check files on a backend
  vyre reduce big.vyre --predicate '! mycompiler'         find the smallest kernel that mycompiler fails on

A kernel is a text file:

  program double {
    workgroup 64
    buffer x: read u32 @0
    buffer out: output u32 @1

    let i = gid.x
    if i < len(out) {
      out[i] = x[i] * 2
    }
  }

`vyre help run` explains inputs, outputs and launches. docs/ir.md describes the language, docs/semantics.md what it means.

Exit status: 0 all is well, 1 the program or its data are wrong, 2 the command line is wrong or a file cannot be read or written,
3 there is no verdict. Every command takes --json. `vyre explain E0301` says what an error code means."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// When to use colour
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value = "auto", hide_possible_values = true)]
    color: ColorChoice,
}

#[derive(Subcommand)]
enum Command {
    Run(run::Args),
    Check(check::Args),
    Fmt(fmt::Args),
    Emit(emit::Args),
    Devices(devices::Args),
    Reduce(reduce::Args),
    Fuzz(fuzz::Args),
    Conform(conform::Args),
    Report(report::Args),
    Diff(diff::Args),
    Cert(cert::Args),
    Campaign(campaign::Args),
    Test(test::Args),
    Explain(explain::Args),
    Lsp(lsp::Args),
    Completions(completions::CompletionsArgs),
    Man(completions::ManArgs),
    #[command(hide = true)]
    Worker(worker::Args),
}

/// Why a command did not succeed.
enum Failure {
    /// The program or the data are wrong.
    Wrong(Box<Report>),
    /// A file that is not a program does not hold what it should, or does not hold.
    Data(String),
    /// Something does not hold; the command has said what.
    Said,
    /// Something is wrong with some of several files; it has been said of each, and this is the worst exit status of them.
    Files(u8),
    /// The command line is wrong, or a path cannot be used.
    Usage(String),
    /// It cannot be said whether something holds.
    NoVerdict(String),
}

impl From<Report> for Failure {
    fn from(report: Report) -> Self {
        Failure::Wrong(Box::new(report))
    }
}

/// What this program is called in commands that it prints: `vyre`, or a program of somebody else's that has these commands too, as it
/// was started.
fn this_program() -> String {
    let started = std::env::args().next().unwrap_or_default();
    let is_ours = Path::new(&started).file_stem().is_none_or(|name| name == "vyre");
    if is_ours { "vyre".into() } else { launch::quoted(&started) }
}

/// Does what the command line of the process asks for, on the backends that are linked into it.
#[must_use]
pub fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let cli = match parse(&arguments) {
        Ok(cli) => cli,
        Err(status) => return ExitCode::from(status),
    };
    cli.color.set();
    let (result, as_json) = match &cli.command {
        Command::Run(args) => (run::run(args), args.json),
        Command::Check(args) => (check::check(args), args.json),
        Command::Fmt(args) => (fmt::fmt(args), args.json),
        Command::Emit(args) => (emit::emit(args), args.json),
        Command::Devices(args) => (devices::devices(args), args.json),
        Command::Reduce(args) => (reduce::run(args), args.json),
        Command::Fuzz(args) => (fuzz::run(args), args.json),
        Command::Conform(args) => (conform::conform(args), args.json()),
        Command::Report(args) => (report::report(args), args.json),
        Command::Diff(args) => (diff::run(args), args.json),
        Command::Cert(args) => (cert::cert(args), args.json()),
        Command::Campaign(args) => (campaign::campaign(args), args.json()),
        Command::Test(args) => (test::test(args), args.json),
        Command::Explain(args) => (explain::explain(args), args.json),
        Command::Lsp(args) => (lsp::lsp(args), args.json),
        Command::Completions(args) => (completions::completions(args), args.json),
        Command::Man(args) => (completions::man(args), args.json),
        Command::Worker(args) => (worker::worker(args), false),
    };
    result.map_or_else(|failure| ExitCode::from(tell(failure, as_json, None)), |()| ExitCode::SUCCESS)
}

/// The whole command line, with help that fits the terminal.
fn command(width: usize) -> clap::Command {
    fn fit(command: clap::Command, width: usize) -> clap::Command {
        let help = command.get_after_help().map(|help| style::layout(&help.to_string(), width));
        let command = match help {
            Some(help) => command.after_help(help),
            None => command,
        };
        command.mut_subcommands(|inner| fit(inner, width))
    }
    fit(Cli::command(), width).term_width(width)
}

/// What the arguments ask for. If they are wrong, or ask for help, that is said; the exit status is the error.
fn parse(arguments: &[OsString]) -> Result<Cli, u8> {
    // Looked at before anything is understood, so that the message about what is not understood is as it was asked for.
    let before_dashes =
        || arguments.iter().skip(1).take_while(|argument| *argument != "--").filter_map(|argument| argument.to_str());
    let as_json = before_dashes().any(|argument| argument == "--json");
    let said = before_dashes().zip(before_dashes().skip(1).chain([""])).find_map(|(argument, next)| match argument {
        "--color" => Some(next),
        _ => argument.strip_prefix("--color="),
    });
    let color = said.and_then(|said| <ColorChoice as clap::ValueEnum>::from_str(said, false).ok()).unwrap_or(ColorChoice::Auto);
    let mut command = command(style::width()).color(color.of_clap());
    let result = command.try_get_matches_from_mut(arguments).and_then(|matches| Cli::from_arg_matches(&matches));
    result.map_err(|error| {
        use clap::error::ErrorKind;
        let is_answer = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
        if as_json && !is_answer {
            return tell(Failure::Usage(in_one_line(&error)), true, None);
        }
        let _ = error.print();
        if is_answer { 0 } else { 2 }
    })
}

/// What a usage error says, without the word before it and the way to the help behind it.
fn in_one_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let said = text.split("\n\nUsage:").next().unwrap_or(&text).split("\n\nFor more information").next().unwrap_or(&text);
    said.trim_start_matches("error: ").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Says why a command, or its work on one of several files, did not succeed; gives the exit status that goes with it.
fn tell(failure: Failure, as_json: bool, file: Option<&str>) -> u8 {
    let (status, object, said) = match failure {
        Failure::Said => return 1,
        Failure::Files(status) => return status,
        Failure::Wrong(report) if !as_json => {
            complain(&report);
            return 1;
        }
        Failure::Wrong(report) => (1, json::report(&report), String::new()),
        Failure::Data(message) => (1, serde_json::json!({ "error": message }), format!("error: {message}\n")),
        Failure::Usage(message) => (2, serde_json::json!({ "usage": message }), format!("error: {message}\n")),
        Failure::NoVerdict(message) => (3, serde_json::json!({ "no_verdict": message }), format!("no verdict: {message}\n")),
    };
    if as_json {
        let mut object = object;
        if let Some(file) = file {
            object["file"] = file.into();
        }
        print(&format!("{object}\n"));
    } else {
        warn(&said);
    }
    status
}

/// Does something with each of several files. What is wrong with one is said and does not keep the others from their turn.
fn for_each_file(files: &[String], as_json: bool, one: impl Fn(&str) -> Result<(), Failure>) -> Result<(), Failure> {
    let statuses = files.iter().filter_map(|path| one(path).err().map(|failure| tell(failure, as_json, Some(path))));
    let worst = statuses.max_by_key(|status| [3, 1, 2].iter().position(|known| known == status));
    worst.map_or(Ok(()), |status| Err(Failure::Files(status)))
}

/// Writes to standard output.
fn print(text: &str) {
    print_bytes(text.as_bytes());
}

/// Writes to standard output. A reader that has gone away is no error; an answer that is lost for another reason ends the command.
fn print_bytes(bytes: &[u8]) {
    let mut out = std::io::stdout().lock();
    if let Err(error) = out.write_all(bytes).and_then(|()| out.flush())
        && error.kind() != std::io::ErrorKind::BrokenPipe
    {
        warn(&format!("error: cannot write standard output: {error}\n"));
        std::process::exit(2);
    }
}

/// Writes to standard error.
fn warn(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// Draws the mistakes on standard error.
fn complain(report: &Report) {
    warn(&format!("{}\n", vyre::text::render(report, Style::of_stderr().color).trim_end()));
}

/// Bytes of a program or a manifest, at most.
const PROGRAM_BYTES: u64 = 1 << 28;

/// The bytes of a program or a manifest, or of standard input for `-`.
fn read(path: &str) -> Result<Vec<u8>, Failure> {
    let too_long = || Failure::Usage(format!("cannot read {path}: it has more than {PROGRAM_BYTES} bytes"));
    read_at_most(path, PROGRAM_BYTES)?.ok_or_else(too_long)
}

/// The bytes of a file, or of standard input for `-`, which can be read once; `None` if there are more than so many.
fn read_at_most(path: &str, limit: u64) -> Result<Option<Vec<u8>>, Failure> {
    static READ: AtomicBool = AtomicBool::new(false);
    let result = match path {
        "-" if READ.swap(true, Ordering::Relaxed) => {
            return Err(Failure::Usage("standard input can be read only once, but `-` is given more than once".into()));
        }
        "-" => files::at_most(std::io::stdin().lock(), limit),
        path => files::read_at_most(path, limit),
    };
    result.map_err(|error| Failure::Usage(format!("cannot read {path}: {error}")))
}

/// Writes a file whole or not at all, and not over one of the files that the command reads.
fn write_file(path: impl AsRef<Path>, bytes: &[u8], inputs: &[&str]) -> Result<(), Failure> {
    not_over_input(path.as_ref(), inputs)?;
    files::replace(path, bytes).map_err(|error| Failure::Usage(error.to_string()))
}

fn not_over_input(path: &Path, inputs: &[&str]) -> Result<(), Failure> {
    match inputs.iter().find(|input| **input != "-" && files::is_same(path, input)) {
        Some(input) => Err(Failure::Usage(format!("{} is read by the command ({input}); write to another file", path.display()))),
        None => Ok(()),
    }
}

/// Mistakes that are in no text, with the name of the file they are in.
fn in_file(path: &str, mut report: Report) -> Report {
    report.diagnostics.iter_mut().for_each(|mistake| mistake.message = format!("{path}: {}", mistake.message));
    report
}

/// The program in a file, in text or wire form.
fn load(path: &str) -> Result<Program, Failure> {
    let bytes = read(path)?;
    if !vyre::wire::is_wire(&bytes) {
        return Ok(vyre::text::parse(path, vyre::diagnostic::utf8(path, &bytes)?)?);
    }
    let program = vyre::wire::from_wire(&bytes).map_err(|error| in_file(path, error.into()))?;
    // What is wrong in it is shown in its text, under the name of the file.
    let mut source = vyre::text::print(&program);
    source.name = format!("{path} as text");
    Ok(Program::with_source(program.parts().clone(), Some(Arc::new(source))))
}
