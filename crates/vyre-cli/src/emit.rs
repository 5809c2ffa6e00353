//! `vyre emit`: a program in its other form.

use crate::{Failure, load, print, print_bytes};
use clap::ValueEnum;
use serde_json::json;
use std::io::IsTerminal;

/// Write a kernel in wire or text form.
///
/// Every command takes a file in wire form where it takes text.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  vyre emit kernel.vyre --to wire --out kernel.vyreb
  vyre emit kernel.vyreb --to text")]
pub struct Args {
    /// A kernel in text or wire form; `-` is standard input
    #[arg(value_name = "FILE")]
    file: String,
    /// The form to write
    #[arg(long, value_enum)]
    to: Form,
    /// The file to write; standard output without it
    #[arg(long, value_name = "PATH")]
    out: Option<String>,
    /// One JSON object that says what was written
    #[arg(long)]
    pub json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Form {
    Wire,
    Text,
}

pub fn emit(args: &Args) -> Result<(), Failure> {
    let program = load(&args.file)?;
    program.validated().map_err(Clone::clone)?;
    let bytes = match args.to {
        Form::Wire => vyre::wire::to_wire(&program).map_err(vyre::Report::from)?,
        Form::Text => program.to_string().into_bytes(),
    };
    match &args.out {
        Some(path) => {
            std::fs::write(path, &bytes).map_err(|error| Failure::Usage(format!("cannot write {path}: {error}")))?;
            if args.json {
                print(&format!("{}\n", json!({ "file": path, "bytes": bytes.len() })));
            }
        }
        None if args.json => return Err(Failure::Usage("--json needs --out: standard output has the program".into())),
        None if matches!(args.to, Form::Wire) && std::io::stdout().is_terminal() => {
            return Err(Failure::Usage("the wire form is not for terminals: add --out PATH".into()));
        }
        None => print_bytes(&bytes),
    }
    Ok(())
}
