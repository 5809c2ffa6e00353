//! Every file below `checks/` and `examples/` is a test, named by its path. With `VYRE_BLESS=1` expectations that do not hold are rewritten.
//!
//! Whatever its directives say, a file that parses must also print to a text that reads back as the same program, and formatting it
//! must change neither the program nor, the second time, the text.

mod checked;
mod coverage;
mod faults;
mod float_states;
mod layout;
mod optimized;

use libtest_mimic::{Arguments, Failed, Trial};
use optimized::{bounds, pass, runs_alike};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use vyre::analysis::determinism::{Determinism, Proof};
use vyre::ir::Program;
use vyre::reference::{Options, RunError, run};
use vyre::{Report, launch, text, validate};
use vyre_conform::checks::directive::{self, Binding, Directive, Kind};

fn main() {
    let args = Arguments::from_args();
    let root = root();
    let mut files = Vec::new();
    for folder in ["checks", "examples"] {
        let before = files.len();
        collect(&root.join(folder), &mut files);
        assert!(files.len() > before, "no check files in {folder}");
    }
    files.sort();
    let bless = std::env::var_os("VYRE_BLESS").is_some();
    let mut trials: Vec<Trial> = files
        .iter()
        .map(|path| {
            let name = check_name(path);
            let path = path.clone();
            Trial::test(name, move || check_file(&path, bless).map_err(Failed::from))
        })
        .collect();
    trials.extend(layout::trials(&root.join("examples"), &files));
    trials.extend(faults::trials(&files));
    trials.extend(float_states::trials(&root, &files));
    trials.extend(coverage::trials(files));
    libtest_mimic::run(&args, trials).exit();
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The path of a check file from the root, without its ending.
fn check_name(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).with_extension("").display().to_string()
}

fn collect(dir: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "vyre") {
            files.push(path);
        }
    }
}

/// Reads the program of a check file as `vyre check` reads any file.
fn parse(bytes: &[u8]) -> Result<Program, Report> {
    vyre::diagnostic::utf8("check.vyre", directive::program_text(bytes)).and_then(|content| text::parse("check.vyre", content))
}

fn check_file(path: &Path, bless: bool) -> Result<(), String> {
    let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
    let content = String::from_utf8_lossy(&bytes).into_owned();
    let directives = directive::parse(&content)?;
    if directives.is_empty() {
        return Err("the file has no directive; see checks/readme.vyre".into());
    }
    let mut edits: Vec<(std::ops::Range<usize>, Vec<String>)> = Vec::new();
    let mut problems = Vec::new();
    let program = parse(&bytes);
    let report = match &program {
        Ok(program) => {
            round_trip(program, &String::from_utf8_lossy(directive::program_text(&bytes)))?;
            program.validated().err().cloned()
        }
        Err(report) => Some(report.clone()),
    };
    diagnostics(&directives, report.as_ref(), false, &mut problems, &mut edits);
    if let (Ok(program), None) = (&program, &report) {
        let validated = program.validated().map_err(|_| "validated")?;
        let warnings = validate::portable_warnings(validated);
        if directives.iter().any(|directive| matches!(directive.kind, Kind::Warn(..))) {
            let report = (!warnings.is_empty()).then(|| Report::about(program, warnings));
            diagnostics(&directives, report.as_ref(), true, &mut problems, &mut edits);
        }
        for directive in &directives {
            if let Err(problem) = one(directive, program, &mut edits) {
                problems.push(format!("line {}: {problem}", directive.lines.start + 1));
            }
            if let Kind::After(name, _) = &directive.kind
                && let Err(problem) = runs_alike(&directives, name, program)
            {
                problems.push(format!("after {name}, {problem}"));
            }
        }
    }
    if problems.is_empty() {
        return Ok(());
    }
    if bless && !edits.is_empty() {
        return write_blessed(path, &content, edits);
    }
    Err(problems.join("\n"))
}

fn round_trip(program: &Program, content: &str) -> Result<(), String> {
    let printed = program.to_string();
    match text::parse("printed", &printed) {
        Ok(again) if again == *program => {}
        Ok(_) => return Err(format!("the printed program reads back as another program:\n{printed}")),
        Err(report) => return Err(format!("the printed program does not parse:\n{printed}\n{report}")),
    }
    let wire = vyre::wire::to_wire(program).map_err(|error| error.to_string())?;
    if vyre::wire::from_wire(&wire).map_err(|error| error.to_string())? != *program {
        return Err("the wire form decodes to another program".into());
    }
    let formatted = text::format("check.vyre", content).map_err(|report| format!("does not format: {report}"))?;
    let again = text::format("check.vyre", &formatted).map_err(|report| format!("does not format twice: {report}"))?;
    if formatted != again {
        return Err(format!("formatting twice gives another text:\n{formatted}\n---\n{again}"));
    }
    match text::parse("formatted", &formatted) {
        Ok(same) if same == *program => Ok(()),
        Ok(_) => Err(format!("formatting changed the program:\n{formatted}")),
        Err(report) => Err(format!("the formatted text does not parse: {report}")),
    }
}

/// Compares the codes and places of a report with the directives.
fn diagnostics(
    directives: &[Directive],
    report: Option<&Report>,
    warnings: bool,
    problems: &mut Vec<String>,
    edits: &mut Vec<(std::ops::Range<usize>, Vec<String>)>,
) {
    let word = if warnings { "warn" } else { "error" };
    let mut found: Vec<String> = report.map_or(Vec::new(), |report| {
        let place = |diagnostic: &vyre::Diagnostic| match (&report.source, diagnostic.location) {
            (Some(source), Some(location)) => source.line_column(source.span(location).start),
            _ => (0, 0),
        };
        let line = |diagnostic| {
            let (line, column) = place(diagnostic);
            format!("// {word}: {} at {line}:{column}", diagnostic.code)
        };
        report.diagnostics.iter().map(line).collect()
    });
    let expected: Vec<(&Directive, String)> = directives
        .iter()
        .filter_map(|directive| match (&directive.kind, warnings) {
            (Kind::Error(code, (line, column)), false) | (Kind::Warn(code, (line, column)), true) => {
                Some((directive, format!("// {word}: {code} at {line}:{column}")))
            }
            _ => None,
        })
        .collect();
    let mut wanted: Vec<&String> = expected.iter().map(|(_, line)| line).collect();
    wanted.sort();
    let as_found = found.clone();
    found.sort();
    if found.iter().collect::<Vec<_>>() != wanted {
        let drawn = report.map_or("no errors".to_string(), ToString::to_string);
        problems.push(format!("expected:\n{}\nfound:\n{}\n{drawn}", join(&wanted), join(&as_found)));
        // The first such directive becomes all lines that were found, the others go.
        for (n, (directive, _)) in expected.iter().enumerate() {
            edits.push((directive.lines.clone(), if n == 0 { as_found.clone() } else { Vec::new() }));
        }
    }
}

fn join(lines: &[impl AsRef<str>]) -> String {
    let lines: Vec<String> = lines.iter().map(|line| format!("  {}", line.as_ref())).collect();
    if lines.is_empty() { "  nothing".into() } else { lines.join("\n") }
}

/// What a run gives.
type Ran<T> = Result<T, RunError>;

/// The options of a run and what it gave; the error is about the directive.
type Executed<T> = Result<(Options, Ran<T>), String>;

/// Runs the program as a directive says.
fn execute(program: &Program, launch: &directive::Launch) -> Executed<Vec<Vec<u8>>> {
    execute_with(program, launch, run)
}

/// Prepares a launch as a directive says and hands it to `run`.
fn execute_with<T>(
    program: &Program,
    launch: &directive::Launch,
    run: impl Fn(&Program, &[&[u8]], &Options) -> Ran<T>,
) -> Executed<T> {
    let (options, inputs) = launch.resolve(program)?;
    let named: Vec<(&str, &[u8])> = inputs.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
    let result = match launch::inputs_by_name(program, &named) {
        Err(report) => Err(report.into()),
        Ok(ordered) => {
            let sizes: Vec<u64> = ordered.iter().map(|bytes| bytes.len() as u64).collect();
            match specialized(program, &options).and_then(|program| launch::check_inputs(&program, &sizes)) {
                Err(report) => Err(report.into()),
                Ok(()) => run(program, &ordered, &options),
            }
        }
    };
    Ok((options, result))
}

fn specialized(program: &Program, options: &Options) -> Result<Program, Report> {
    vyre::specialize::specialize(program, options.specialization.iter().map(|(name, value)| (name.as_str(), value)))
}

fn one(directive: &Directive, program: &Program, edits: &mut Vec<(std::ops::Range<usize>, Vec<String>)>) -> Result<(), String> {
    match &directive.kind {
        Kind::Error(..) | Kind::Warn(..) => Ok(()),
        Kind::Determinism(expected) => {
            let found = determinism(program)?;
            if found == *expected {
                return Ok(());
            }
            edits.push((directive.lines.clone(), vec![format!("// determinism: {found}")]));
            Err(format!("determinism is {found}"))
        }
        Kind::Bounds(expected) => {
            let found = bounds(program)?;
            if found == *expected {
                return Ok(());
            }
            edits.push((directive.lines.clone(), optimized::bounds_lines(&found)));
            Err(format!("bounds: expected {expected}\n  found {found}"))
        }
        Kind::LeavesAlone(name) => {
            let after = pass(name, program)?;
            if after == optimized::before(name, program)? { Ok(()) } else { Err(format!("{name} gives\n{after}")) }
        }
        Kind::After(name, expected) => {
            let after = pass(name, program)?;
            if after == optimized::before(name, program)? {
                return Err(format!("{name} leaves it alone"));
            }
            let printed = after.to_string();
            if text::parse("after", expected).is_ok_and(|expected| expected == after) {
                return Ok(());
            }
            edits.push((directive.lines.clone(), printed.lines().map(str::to_string).collect()));
            Err(format!("{name} gives\n{printed}"))
        }
        Kind::Printed(expected) => layout::printed(directive, program, expected, edits),
        Kind::Formatted(expected) => layout::formatted(directive, program, expected.as_deref(), edits),
        Kind::Corrupt(corruption, code, offset) => {
            let mut bytes = vyre::wire::to_wire(program).map_err(|error| error.to_string())?;
            for (at, value) in &corruption.bytes {
                *bytes.get_mut(*at).ok_or_else(|| format!("there is no byte {at}"))? = *value;
            }
            if corruption.resealed {
                let head = bytes.len() - 32;
                let hash = vyre::wire::checksum(&bytes[..head]);
                bytes[head..].copy_from_slice(&hash);
            }
            bytes.truncate(corruption.cut.unwrap_or(bytes.len()));
            match vyre::wire::from_wire(&bytes) {
                Ok(_) => Err(format!("expected {code}, but it decodes")),
                Err(error) if (error.code, error.offset) == (*code, *offset) => Ok(()),
                Err(error) => Err(format!("expected {code} at {offset}, found {error}")),
            }
        }
        Kind::Run(launch, expected) => {
            let (options, result) = execute(program, launch)?;
            let outputs = result.map_err(|error| format!("did not run: {}", error.report(program)))?;
            let specialized = specialized(program, &options).map_err(|report| report.to_string())?;
            compare(directive, &specialized, launch, expected, &outputs, edits)
        }
        Kind::Checked(launch, expected) => checked::compare(directive, program, launch, expected, edits),
        Kind::Trap(launch, tag, invocation) => {
            let (_, result) = execute(program, launch)?;
            match result {
                Err(RunError::Trap { tag: found_tag, invocation: found, .. }) => {
                    if (found_tag, found) == (*tag, *invocation) {
                        return checked::traps_in_bulk(program, launch);
                    }
                    Err(format!("trapped with {found_tag} at {found:?}"))
                }
                Err(error) => Err(format!("expected a trap, found: {}", error.report(program))),
                Ok(_) => Err("expected a trap, but it ran to the end".into()),
            }
        }
        Kind::Refuse(launch, code, about) => {
            let (_, result) = execute(program, launch)?;
            let report = match result {
                Ok(_) => return Err(format!("expected {code}, but it ran")),
                Err(error) => error.report(program),
            };
            if report.codes().collect::<Vec<_>>() != [*code] {
                return Err(format!("expected {code} alone, found:\n{report}"));
            }
            match about {
                Some(about) if !report.diagnostics[0].message.contains(&format!("`{about}`")) => {
                    Err(format!("the message does not name `{about}`: {}", report.diagnostics[0].message))
                }
                _ => Ok(()),
            }
        }
    }
}

/// The answer, and of a refusal the places of the accesses.
fn determinism(program: &Program) -> Result<String, String> {
    let answer = program.determinism().map_err(ToString::to_string)?;
    let mut found = answer.to_string();
    if let Determinism::Unproven(reason) = answer {
        let report = Report::about(program, vec![reason.diagnostic()]);
        let source = report.source.as_ref().ok_or("a check file is a text")?;
        let place = |location| source.line_column(source.span(location).start);
        let diagnostic = &report.diagnostics[0];
        for (n, location) in diagnostic.location.iter().chain(diagnostic.related.iter().map(|(location, _)| location)).enumerate()
        {
            let (line, column) = place(*location);
            let _ = write!(found, " {} {line}:{column}", ["at", "with"][n.min(1)]);
        }
    }
    Ok(found)
}

fn compare(
    directive: &Directive,
    program: &Program,
    launch: &directive::Launch,
    expected: &[Binding],
    outputs: &[Vec<u8>],
    edits: &mut Vec<(std::ops::Range<usize>, Vec<String>)>,
) -> Result<(), String> {
    let elements = directive::elements(program);
    let names: Vec<String> = program.interface().outputs.iter().map(|i| program.buffers()[*i].name.to_string()).collect();
    let mut problem = String::new();
    for (name, bytes) in names.iter().zip(outputs) {
        let shown = directive::decode(&elements[name], bytes);
        match expected.iter().find(|binding| binding.name == *name) {
            None => {
                let _ = writeln!(problem, "the output `{name}` is not mentioned; it is {shown}");
            }
            Some(binding) => {
                let wanted = directive::encode(&elements[name], &binding.text)?;
                if wanted != *bytes {
                    let _ =
                        writeln!(problem, "`{name}`: expected {}, found {shown}", directive::decode(&elements[name], &wanted));
                }
            }
        }
    }
    for binding in expected {
        if !names.contains(&binding.name) {
            return Err(format!("`{}` is not an output", binding.name));
        }
    }
    if let Err(again) = under_other_schedules(program, launch, outputs) {
        problem.push_str(&again);
    }
    if problem.is_empty() {
        return Ok(());
    }
    let options: String = launch.options.iter().map(|(key, value)| format!(" {key}={value}")).collect();
    let inputs: Vec<String> = launch.inputs.iter().map(|input| format!("{}={} ", input.name, input.text)).collect();
    let found: Vec<String> =
        names.iter().zip(outputs).map(|(name, bytes)| format!("{name}={}", directive::decode(&elements[name], bytes))).collect();
    edits.push((directive.lines.clone(), vec![format!("// run{options}: {}-> {}", inputs.concat(), found.join(" "))]));
    Err(problem.trim_end().to_string())
}

/// A dispatch that is proven deterministic, or found so by the checked mode, must give the same bytes when invocations take their
/// turns in the opposite order, and when they go in step.
fn under_other_schedules(program: &Program, launch: &directive::Launch, outputs: &[Vec<u8>]) -> Result<(), String> {
    // Constants are already in the program, so their values must not be passed again.
    let launch = directive::Launch {
        options: launch.options.iter().filter(|(key, _)| !key.starts_with("const.")).cloned().collect(),
        inputs: launch.inputs.clone(),
    };
    let (mut options, inputs) = launch.resolve(program)?;
    options.schedule = vyre::reference::Schedule::Reverse;
    let named: Vec<(&str, &[u8])> = inputs.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
    let ordered = launch::inputs_by_name(program, &named).map_err(|report| report.to_string())?;
    let sizes: Vec<u64> = ordered.iter().map(|bytes| bytes.len() as u64).collect();
    let planned = launch::plan(program, &sizes, &options.launch).map_err(|report| report.to_string())?;
    let proven = program.proof_for(&planned, &ordered).is_ok_and(|proof| proof == Proof::Holds);
    if !proven && !checked::holds(program, &launch)? {
        return Ok(());
    }
    for (name, result) in [
        ("the reversed order", run(program, &ordered, &options)),
        ("the bulk evaluator", vyre::reference::bulk::run(program, &ordered, &options)),
        ("the bulk evaluator with compacted lanes", vyre::reference::bulk::run_compacted(program, &ordered, &options)),
    ] {
        match result {
            Ok(again) if again == outputs => {}
            Ok(_) => return Err(format!("deterministic, but {name} gives other bytes\n")),
            Err(error) => return Err(format!("runs forwards, but not in {name}: {error}\n")),
        }
    }
    if proven { checked::is_clean(program, &launch) } else { Ok(()) }
}

fn write_blessed(path: &Path, content: &str, mut edits: Vec<(std::ops::Range<usize>, Vec<String>)>) -> Result<(), String> {
    let mut lines: Vec<String> = content.lines().map(str::to_string).collect();
    edits.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
    for (range, new) in edits {
        lines.splice(range, new);
    }
    std::fs::write(path, lines.join("\n") + "\n").map_err(|error| error.to_string())
}
