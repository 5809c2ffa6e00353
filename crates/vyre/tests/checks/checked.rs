//! The checked mode of the reference against what a file says about it.

use crate::{execute, execute_with, specialized};
use std::ops::Range;
use vyre::ir::Program;
use vyre::reference::Options;
use vyre::reference::checked::{CheckedReport, Effort, Finding, Kind, check};
use vyre_conform::checks::directive::{Directive, Launch, Verdict};

/// What the checked mode says about a dispatch, which must give what the plain interpreter gives.
fn run(program: &Program, launch: &Launch) -> Result<(Options, CheckedReport), String> {
    let (options, result) =
        execute_with(program, launch, |program, inputs, options| check(program, inputs, options, &Effort::default()))?;
    let result = result.map_err(|error| format!("did not run: {}", error.report(program)))?;
    if execute(program, launch)?.1 != result.outcome {
        return Err("the checked mode gives other bytes than the plain interpreter".into());
    }
    Ok((options, result))
}

pub fn compare(
    directive: &Directive,
    program: &Program,
    launch: &Launch,
    expected: &Verdict,
    edits: &mut Vec<(Range<usize>, Vec<String>)>,
) -> Result<(), String> {
    let (options, report) = run(program, launch)?;
    let mut found = written(&report, program);
    if expected.outcomes.is_none() {
        found.outcomes = None;
    }
    if found == *expected {
        return Ok(());
    }
    let options_text: String = launch.options.iter().map(|(key, value)| format!(" {key}={value}")).collect();
    let inputs: Vec<String> = launch.inputs.iter().map(|input| format!("{}={} ", input.name, input.text)).collect();
    edits.push((directive.lines.clone(), vec![format!("// checked{options_text}: {}-> {found}", inputs.concat())]));
    let program = specialized(program, &options).map_err(|report| report.to_string())?;
    let drawn = report.report(&program).map_or(String::new(), |report| report.to_string());
    Err(format!("expected: {expected}\nfound: {found} ({:?})\n{drawn}", report.gap))
}

/// The findings of a report as a file has them.
fn written(report: &CheckedReport, program: &Program) -> Verdict {
    let source = program.source().expect("check files are texts");
    let at = |place| {
        let (line, column) = source.line_column(source.span(vyre::Location::Tree(place)).start);
        format!("{line}:{column}")
    };
    let finding = |finding: &Finding| {
        let other = finding.other.as_ref().map_or(String::new(), |other| format!(" with {}", at(other.place)));
        format!("{} at {}{other}", finding.kind.code(), at(finding.access.place))
    };
    let mut findings: Vec<String> = report.findings.iter().map(finding).collect();
    findings.sort();
    let outcomes = report.legal_outcomes.as_ref().map(Vec::len);
    Verdict { findings, sampled: report.holds() && !report.exhaustive(), outcomes }
}

/// Whether the checked mode finds that every schedule gives the same.
pub fn holds(program: &Program, launch: &Launch) -> Result<bool, String> {
    let (_, report) = run(program, launch)?;
    Ok(report.holds() && report.exhaustive())
}

/// A trap that every schedule ends in is that of the bulk evaluator too.
pub fn traps_in_bulk(program: &Program, launch: &Launch) -> Result<(), String> {
    let (_, report) = run(program, launch)?;
    if !(report.holds() && report.exhaustive()) {
        return Ok(());
    }
    for (how, bulk) in [
        ("the bulk evaluator", execute_with(program, launch, vyre::reference::bulk::run)?.1),
        ("the bulk evaluator with compacted lanes", execute_with(program, launch, vyre::reference::bulk::run_compacted)?.1),
    ] {
        match bulk {
            bulk if bulk == report.outcome => {}
            Ok(_) => return Err(format!("{how} runs to the end")),
            Err(error) => return Err(format!("in {how}: {error}")),
        }
    }
    Ok(())
}

/// What is proven deterministic has no race and no order that shows, and the checked mode can tell.
pub fn is_clean(program: &Program, launch: &Launch) -> Result<(), String> {
    let (_, report) = run(program, launch)?;
    match report.findings.iter().find(|finding| matches!(finding.kind, Kind::Race | Kind::Order)) {
        Some(finding) => Err(format!("proven deterministic, but the checked mode finds: {}\n", finding.diagnostic().message)),
        None if !report.exhaustive() => Err("proven deterministic, but the checked mode cannot tell\n".into()),
        None => Ok(()),
    }
}
