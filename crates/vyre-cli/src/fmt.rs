//! `vyre fmt`: the one way to lay out a kernel.

use crate::{Failure, complain, json, print, read};
use serde_json::json;

/// Format kernels in place.
///
/// Comments stay where they are. A file that does not parse is left as it is. `-` reads standard input and writes standard output.
#[derive(clap::Args)]
pub struct Args {
    /// Kernels in text form
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
    /// Change nothing; exit with 1 if a file is not formatted
    #[arg(long)]
    check: bool,
    /// One JSON object per file
    #[arg(long)]
    pub json: bool,
}

pub fn fmt(args: &Args) -> Result<(), Failure> {
    let mut failed = false;
    for path in &args.files {
        match fmt_one(path, args) {
            Ok(formatted) => failed |= args.check && !formatted,
            Err(Failure::Wrong(report)) => {
                failed = true;
                if args.json {
                    let mut object = json::report(&report);
                    object["file"] = json!(path);
                    print(&format!("{object}\n"));
                } else {
                    complain(&report);
                }
            }
            Err(other) => return Err(other),
        }
    }
    if failed { Err(Failure::Said) } else { Ok(()) }
}

/// Whether the file was formatted already.
fn fmt_one(path: &str, args: &Args) -> Result<bool, Failure> {
    let bytes = read(path)?;
    let formatted = vyre::text::format(path, vyre::diagnostic::utf8(path, &bytes)?)?;
    let same = formatted.as_bytes() == bytes;
    if args.json {
        print(&format!("{}\n", json!({ "file": path, "formatted": same, "errors": [] })));
    }
    match (path, args.check) {
        ("-", false) => print(&formatted),
        (_, true) if !same && !args.json => print(&format!("{path}: not formatted\n")),
        (path, false) if !same => replace(path, &formatted)?,
        _ => {}
    }
    Ok(same)
}

/// Writes beside the file and renames, so that no failure leaves half a kernel.
fn replace(path: &str, text: &str) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::Usage(format!("cannot write {path}: {error}"));
    let beside = format!("{path}.{}.tmp", std::process::id());
    let permissions = std::fs::metadata(path).map_err(failed)?.permissions();
    std::fs::write(&beside, text)
        .and_then(|()| std::fs::set_permissions(&beside, permissions))
        .and_then(|()| std::fs::rename(&beside, path))
        .inspect_err(|_| drop(std::fs::remove_file(&beside)))
        .map_err(failed)
}
