//! `vyre check`: whether programs keep the rules of the language, what can be said about them without running them, and, with
//! `--checked`, what the checked mode of the reference finds in one dispatch.

use crate::launch::{LaunchArgs, quoted};
use crate::{Failure, complain, for_each_file, json, load, print};
use serde_json::{Value, json};
use std::cell::LazyCell;
use std::fmt::Write;
use vyre::analysis::determinism::Determinism;
use vyre::diagnostic::Source;
use vyre::ir::Program;
use vyre::kernel::Kernel;
use vyre::reference::checked::{CheckedReport, Effort, Finding, Outcome, check as run_checked};
use vyre::reference::{RunError, Schedule};
use vyre::validate::portable_warnings;
use vyre::{Location, Report, values};

/// Check kernels, with and without running them.
///
/// Reports every mistake in a program in one run. For a valid program it says whether its bytes are proven to be the same under every
/// schedule: always, in launches that meet certain conditions, which it names, or not, and which access prevents it. With --checked it
/// runs the program on the given inputs under many schedules, and reports data races, results that depend on the order of atomics,
/// reads of memory that was never written, and accesses out of bounds.
#[derive(clap::Args)]
#[command(after_help = "\
With --checked the exit status is 1 if there is a race, if the result depends on the order of invocations, or if the kernel traps,
and 3 if it takes more steps than --fuel allows.
Inputs and launch are given as to `vyre run`, see `vyre help run`.

Examples:
  vyre check examples/*.vyre
  vyre check --checked examples/reduce.vyre --in x=1,2,3,4
  vyre check --checked examples/xor.vyre --in a=1,2 --in b=3,4 --schedule reverse")]
pub struct Args {
    /// Kernels in text or wire form; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
    /// Also warn about what the smallest devices in wide use do not offer
    #[arg(long)]
    portable: bool,
    /// One JSON object per file
    #[arg(long)]
    pub json: bool,
    /// Run the kernel in the checked mode of the reference
    #[arg(long)]
    checked: bool,
    /// Try only this schedule, besides `forward`
    #[arg(long, value_name = "SCHEDULE", requires = "checked", help_heading = "With --checked")]
    schedule: Option<Schedule>,
    #[command(flatten, next_help_heading = "With --checked")]
    launch: LaunchArgs,
}

pub fn check(args: &Args) -> Result<(), Failure> {
    if !args.checked && !args.launch.written().is_empty() {
        return Err(Failure::Usage("inputs and launch are only for --checked".into()));
    }
    for_each_file(&args.files, args.json, |path| if args.checked { check_dispatch(path, args) } else { check_one(path, args) })
}

fn check_one(path: &str, args: &Args) -> Result<(), Failure> {
    let program = load(path)?;
    if args.json {
        print(&format!("{}\n", described(path, &program, args)?));
        return Ok(());
    }
    complain_portable(&program, args)?;
    let validated = program.validated().map_err(Clone::clone)?;
    if let Determinism::Unproven(reason) = validated.determinism() {
        complain(&Report::about(&program, vec![reason.diagnostic()]));
    }
    print(&format!("{path}: ok, {}\n", summary(&program)?));
    Ok(())
}

/// What can be said without running it.
fn described(path: &str, program: &Program, args: &Args) -> Result<Value, Failure> {
    let validated = program.validated().map_err(Clone::clone)?;
    let warnings = if args.portable { portable_warnings(validated) } else { Vec::new() };
    // Without warnings there is no need for the text, which may have to be printed.
    let report = (!warnings.is_empty()).then(|| json::report(&Report::about(program, warnings)));
    Ok(json!({
        "file": path,
        "errors": [],
        "more_errors": 0,
        "warnings": report.as_ref().map_or(json!([]), |report| report["errors"].clone()),
        "more_warnings": report.as_ref().map_or(json!(0), |report| report["more_errors"].clone()),
        "name": program.name().map(|name| name.as_str()),
        "workgroup_size": validated.kernel().workgroup_size,
        "determinism": determinism_json(program, validated.determinism()),
        "fingerprint": hex(&program.fingerprint()),
    }))
}

/// `proven`, then `conditions` as text with the places of the accesses that need them, or the `reason` why not: its place, its help
/// and the other access.
fn determinism_json(program: &Program, determinism: &Determinism) -> Value {
    // What is proven outright has no need for the text, which may have to be printed.
    let source = LazyCell::new(|| Report::about(program, Vec::new()).source);
    let placed = |node| {
        let start = |source: &Source| source.line_column(source.span(Location::Tree(node)).start);
        let (line, column) = source.as_deref().map(start).unzip();
        json!({ "line": line, "column": column })
    };
    match determinism {
        Determinism::CrossBackend { conditions } => {
            let conditions = conditions.iter().map(|condition| {
                let mut object = placed(condition.node);
                object["text"] = json!(condition.text);
                object
            });
            json!({ "proven": true, "conditions": conditions.collect::<Vec<_>>() })
        }
        Determinism::Unproven(reason) => {
            let mut object = placed(reason.node);
            object["proven"] = json!(false);
            object["conditions"] = json!([]);
            object["reason"] = json!(reason.message);
            object["help"] = json!(reason.help);
            object["other"] = json!(reason.other.map(placed));
            object
        }
    }
}

/// What the smallest devices do not offer, if that was asked for.
fn complain_portable(program: &Program, args: &Args) -> Result<(), Failure> {
    let validated = program.validated().map_err(Clone::clone)?;
    let warnings = if args.portable { portable_warnings(validated) } else { Vec::new() };
    if !warnings.is_empty() {
        complain(&Report::about(program, warnings));
    }
    Ok(())
}

/// What can be said without running it, in words.
fn summary(program: &Program) -> Result<String, Failure> {
    let validated = program.validated().map_err(Clone::clone)?;
    let interface = program.interface();
    Ok(format!(
        "{} -> {}; determinism: {}",
        count(interface.inputs.len(), "input", "inputs"),
        count(interface.outputs.len(), "output", "outputs"),
        validated.determinism()
    ))
}

/// One dispatch in the checked mode.
fn check_dispatch(path: &str, args: &Args) -> Result<(), Failure> {
    let launched = args.launch.load(path)?;
    let program = &launched.program;
    let kernel = launched.kernel()?;
    let effort = match &args.schedule {
        Some(schedule) => Effort { schedules: vec![schedule.clone()], executions: 0, ..Effort::default() },
        None => Effort::default(),
    };
    let result = match run_checked(program, &launched.inputs(), &launched.options, &effort) {
        Ok(result) => result,
        Err(error @ RunError::OutOfFuel { .. }) => {
            return Err(Failure::NoVerdict(format!(
                "{path}: {error} (E0712); give it more fuel (`--fuel N`), or a smaller launch"
            )));
        }
        Err(error) => return Err(error.report(program).into()),
    };
    let trap = result.outcome.as_ref().err().map(|error| error.report(program));
    let command = |word: &str, schedule: &Schedule| {
        let checked = if word == "check" { " --checked" } else { "" };
        format!("{} {word} {}{checked}{} --schedule {schedule}", crate::this_program(), quoted(path), args.launch.written())
    };
    if args.json {
        let mut object = described(path, program, args)?;
        object["errors"] = trap.as_ref().map_or(json!([]), |report| json::report(report)["errors"].clone());
        object["checked"] = checked_json(&result, program, kernel, &command);
        print(&format!("{object}\n"));
    } else {
        complain_portable(program, args)?;
        for finding in &result.findings {
            complain(&Report::about(program, vec![finding.diagnostic()]));
            crate::warn(&format!("again: {}\n\n", command("check", &finding.schedule)));
        }
        if let Some(report) = &trap {
            complain(report);
        }
        let mut text = format!("{path}: {}\n", conclusion(&result));
        if let Some(difference) = &result.difference {
            let _ = writeln!(text, "  {difference}: {}", command("run", &difference.schedule));
        }
        if let Some(legal) = result.legal_outcomes.as_ref().filter(|legal| legal.len() > 1) {
            let _ = writeln!(text, "  {} legal outcomes{}", legal.len(), if legal.len() > SHOWN { ", some of them" } else { "" });
            for outcome in legal.iter().take(SHOWN) {
                let _ = writeln!(text, "    {}", outcome_text(outcome, program, kernel));
            }
        }
        print(&text);
    }
    if result.holds() && trap.is_none() { Ok(()) } else { Err(Failure::Said) }
}

/// Legal outcomes that are shown.
const SHOWN: usize = 8;

fn conclusion(result: &CheckedReport) -> String {
    let schedules = count(result.schedules_tried as usize, "schedule", "schedules");
    match &result.gap {
        _ if !result.holds() => format!("{}, {}", result.verdict, count(result.findings.len(), "finding", "findings")),
        None => format!("{} under every schedule", result.verdict),
        Some(gap) => format!("{} under the {schedules} tried ({gap})", result.verdict),
    }
}

fn outcome_text(outcome: &Outcome, program: &Program, kernel: &Kernel) -> String {
    match outcome {
        Err(error) => error.to_string(),
        Ok(outputs) => {
            let shown = program.interface().outputs.iter().zip(outputs).map(|(i, bytes)| {
                let buffer = &kernel.buffers[*i];
                let mut values = values::decode(&buffer.element, bytes);
                if values.len() > 32 {
                    values.truncate(32);
                    values.push("…".into());
                }
                format!("{}={}", buffer.name, values.join(","))
            });
            shown.collect::<Vec<_>>().join(" ")
        }
    }
}

fn checked_json(
    result: &CheckedReport,
    program: &Program,
    kernel: &Kernel,
    command: &impl Fn(&str, &Schedule) -> String,
) -> Value {
    let outputs = |outcome: &Outcome| match outcome {
        Err(error) => json!({ "trap": error.to_string() }),
        Ok(outputs) => {
            let each = program.interface().outputs.iter().zip(outputs);
            let each = each.map(|(i, bytes)| {
                let buffer = &kernel.buffers[*i];
                json!({ "name": buffer.name.as_str(), "values": json::elements(&buffer.element, bytes) })
            });
            json!(each.collect::<Vec<_>>())
        }
    };
    json!({
        "verdict": result.verdict.to_string(),
        "exhaustive": result.exhaustive(),
        "gap": result.gap.map(|gap| gap.to_string()),
        "schedules_tried": result.schedules_tried,
        "findings": result.findings.iter().map(|finding| finding_json(finding, program, command)).collect::<Vec<_>>(),
        "difference": result.difference.as_ref().map(|difference| json!({
            "schedule": difference.schedule.to_string(),
            "output": difference.element.as_ref().map(|(name, _)| name.as_str()),
            "element": difference.element.as_ref().map(|(_, element)| element),
            "forward": difference.forward,
            "other": difference.other,
        })),
        "legal_outcomes": result.legal_outcomes.as_ref().map(|legal| legal.iter().map(outputs).collect::<Vec<_>>()),
    })
}

fn finding_json(finding: &Finding, program: &Program, command: &impl Fn(&str, &Schedule) -> String) -> Value {
    let report = Report::about(program, vec![finding.diagnostic()]);
    let mut object = json::one(&report, &report.diagnostics[0]);
    object["buffer"] = json!(finding.buffer.as_str());
    object["element"] = json!(finding.element);
    object["count"] = json!(finding.count);
    object["invocation"] = json!(finding.access.invocation);
    object["schedule"] = json!(finding.schedule.to_string());
    object["again"] = json!(command("check", &finding.schedule));
    if let (Some(other), Some(source)) = (&finding.other, &report.source) {
        let (line, column) = source.line_column(source.span(Location::Tree(other.place)).start);
        object["other"] = json!({ "invocation": other.invocation, "line": line, "column": column });
    }
    object
}

fn count(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
