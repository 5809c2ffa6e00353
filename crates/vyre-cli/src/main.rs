//! The `vyre` command. One file per subcommand; this one has the flags they share and what the exit status means.
//!
//! 0: what was asked for holds. 1: the program or the data are wrong. 2: the command line is wrong, or a path cannot be read or
//! written. 3: there is no verdict.

mod backend;
mod check;
mod devices;
mod emit;
mod fmt;
mod fuzz;
mod json;
mod launch;
mod passes;
mod reduce;
mod run;
mod worker;

use clap::{Parser, Subcommand};
use std::io::{IsTerminal, Read, Write};
use std::process::ExitCode;
use vyre::Report;
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
  vyre fuzz --seconds 10                                  look for programs on which the bulk evaluator is wrong
  vyre reduce big.vyre --predicate '! mycompiler'         the smallest kernel that mycompiler fails on

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

`vyre help run` explains inputs, outputs and launches. The language is in docs/ir.md, its meaning in docs/semantics.md.

Exit status: 0 all is well, 1 the program or its data are wrong, 2 the command line is wrong or a file cannot be read."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
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
    #[command(hide = true)]
    Worker(worker::Args),
}

/// Why a command did not succeed.
enum Failure {
    /// The program or the data are wrong.
    Wrong(Box<Report>),
    /// Something does not hold; the command has said what.
    Said,
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

fn main() -> ExitCode {
    let cli = Cli::parse();
    let (result, as_json) = match &cli.command {
        Command::Run(args) => (run::run(args), args.json),
        Command::Check(args) => (check::check(args), args.json),
        Command::Fmt(args) => (fmt::fmt(args), args.json),
        Command::Emit(args) => (emit::emit(args), args.json),
        Command::Devices(args) => (devices::devices(args), args.json),
        Command::Reduce(args) => (reduce::run(args), args.json),
        Command::Fuzz(args) => (fuzz::run(args), args.json),
        Command::Worker(args) => (worker::worker(args), false),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Said) => ExitCode::from(1),
        Err(Failure::Wrong(report)) => {
            if as_json {
                print(&format!("{}\n", json::report(&report)));
            } else {
                complain(&report);
            }
            ExitCode::from(1)
        }
        Err(Failure::Usage(message)) => {
            if as_json {
                print(&format!("{}\n", serde_json::json!({ "usage": message })));
            } else {
                warn(&format!("error: {message}\n"));
            }
            ExitCode::from(2)
        }
        Err(Failure::NoVerdict(message)) => {
            if as_json {
                print(&format!("{}\n", serde_json::json!({ "no_verdict": message })));
            } else {
                warn(&format!("no verdict: {message}\n"));
            }
            ExitCode::from(3)
        }
    }
}

/// Writes to standard output. A reader that has gone away is no error.
fn print(text: &str) {
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}

/// Writes to standard error.
fn warn(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// Draws the mistakes on standard error.
fn complain(report: &Report) {
    let color = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    warn(&format!("{}\n", vyre::text::render(report, color).trim_end()));
}

/// The bytes of a file, or of standard input for `-`.
fn read(path: &str) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let result = match path {
        "-" => std::io::stdin().lock().read_to_end(&mut bytes).map(|_| ()),
        path => std::fs::read(path).map(|content| bytes = content),
    };
    result.map_err(|error| Failure::Usage(format!("cannot read {path}: {error}")))?;
    Ok(bytes)
}

/// The program in a file, in text or wire form.
fn load(path: &str) -> Result<Program, Failure> {
    let bytes = read(path)?;
    if vyre::wire::is_wire(&bytes) {
        return Ok(vyre::wire::from_wire(&bytes).map_err(Report::from)?);
    }
    Ok(vyre::text::parse(path, vyre::diagnostic::utf8(path, &bytes)?)?)
}
