//! `vyre check`: whether programs keep the rules of the language, and what can be said about them without running them.

use crate::{Failure, complain, json, load, print};
use serde_json::json;
use vyre::Report;
use vyre::ir::Program;
use vyre::validate::portable_warnings;

/// Check kernels without running them.
///
/// Reports every mistake of a program in one run. For a program that keeps the rules it says whether its bytes are proven to be the
/// same under every schedule.
#[derive(clap::Args)]
pub struct Args {
    /// Kernels in text form; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
    /// Also warn about what the smallest devices in wide use do not offer
    #[arg(long)]
    portable: bool,
    /// One JSON object per file
    #[arg(long)]
    pub json: bool,
}

pub fn check(args: &Args) -> Result<(), Failure> {
    let mut failed = false;
    for path in &args.files {
        match check_one(path, args) {
            Ok(()) => {}
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

fn check_one(path: &str, args: &Args) -> Result<(), Failure> {
    let program = load(path)?;
    let validated = program.validated().map_err(Clone::clone)?;
    let warnings = if args.portable { portable_warnings(validated) } else { Vec::new() };
    let warnings = (!warnings.is_empty()).then(|| Report::about(&program, warnings));
    if args.json {
        let shown = warnings.as_ref().map_or(Vec::new(), |report| {
            report.diagnostics.iter().map(|diagnostic| json::one(report, diagnostic)).collect()
        });
        let object = json!({
            "file": path,
            "errors": [],
            "warnings": shown,
            "name": program.name().map(|name| name.as_str()),
            "workgroup_size": validated.kernel().workgroup_size,
            "deterministic": validated.determinism().is_proven(),
            "determinism": validated.determinism().to_string(),
            "fingerprint": hex(&program.fingerprint()),
        });
        print(&format!("{object}\n"));
        return Ok(());
    }
    if let Some(report) = &warnings {
        complain(report);
    }
    print(&format!("{path}: ok, {}\n", summary(&program, &validated.determinism().to_string())));
    Ok(())
}

fn summary(program: &Program, determinism: &str) -> String {
    let count = |n: usize, one: &str, many: &str| format!("{n} {}", if n == 1 { one } else { many });
    let interface = program.interface();
    format!(
        "{} -> {}; determinism: {determinism}",
        count(interface.inputs.len(), "input", "inputs"),
        count(interface.outputs.len(), "output", "outputs"),
    )
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
