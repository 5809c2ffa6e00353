//! `vyre fmt`: the one way to lay out a kernel.

use crate::launch::quoted;
use crate::{Failure, for_each_file, print, read, write_file};
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
    /// One JSON object per file; for `-` it has the text
    #[arg(long)]
    pub json: bool,
}

pub fn fmt(args: &Args) -> Result<(), Failure> {
    for_each_file(&args.files, args.json, |path| fmt_one(path, args))
}

fn fmt_one(path: &str, args: &Args) -> Result<(), Failure> {
    let bytes = read(path)?;
    if vyre::wire::is_wire(&bytes) {
        let shown = quoted(path);
        return Err(Failure::Usage(format!("{path} is in wire form; `vyre emit {shown} --to text` gives it as text")));
    }
    let formatted = vyre::text::format(path, vyre::diagnostic::utf8(path, &bytes)?)?;
    let same = formatted.as_bytes() == bytes;
    if args.json {
        let mut object = json!({ "file": path, "formatted": same, "errors": [], "more_errors": 0 });
        if path == "-" && !args.check {
            object["text"] = json!(formatted);
        }
        print(&format!("{object}\n"));
    }
    match (path, args.check) {
        ("-", false) if !args.json => print(&formatted),
        (_, true) if !same && !args.json => print(&format!("{path}: not formatted\n")),
        (path, false) if !same && path != "-" => write_file(path, formatted.as_bytes(), &[])?,
        _ => {}
    }
    if same || !args.check { Ok(()) } else { Err(Failure::Said) }
}
