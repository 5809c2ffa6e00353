//! What a check file says about runs, on a backend.

use super::directive::{self, Binding, Directive, Kind, Launch};
use crate::order::{self, Order};
use vyre_driver::{BackendError, VyreBackend};
use vyre_foundation::case::Case;
use vyre_foundation::config::DispatchConfig;
use vyre_foundation::ir::Program;
use vyre_foundation::{Report, diagnostic, launch, text};
use vyre_spec::ErrorCode;
use vyre_worker::{Failure, Outputs, caught};

/// A line of a check file and what is to be said about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// From 1.
    pub line: usize,
    /// In words.
    pub text: String,
}

/// What became of a check file on a backend.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FileVerdict {
    /// Directives that hold.
    pub holds: u32,
    /// Directives that do not.
    pub failures: Vec<Problem>,
    /// Directives about which nothing can be said here, and why.
    pub skips: Vec<Problem>,
}

/// The same in a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileOutcome {
    /// Something was tried, and all of it holds.
    Passed,
    /// Something does not hold.
    Failed,
    /// Nothing was tried.
    Skipped,
}

impl FileVerdict {
    /// The same in a word.
    #[must_use]
    pub fn outcome(&self) -> FileOutcome {
        match (self.failures.is_empty(), self.holds) {
            (false, _) => FileOutcome::Failed,
            (true, 0) => FileOutcome::Skipped,
            (true, _) => FileOutcome::Passed,
        }
    }
}

/// What can come of one directive.
enum Tried {
    Holds,
    Fails(String),
    Skipped(String),
    /// It is not about running a program.
    Elsewhere,
}

/// Tries everything that a check file says about runs: what they give, where they trap, what is refused. A program that is not valid must
/// be refused too.
///
/// Skipped is what the backend says it cannot run, what depends on the order of invocations, and what only an interpreter that counts
/// steps can show.
///
/// # Errors
///
/// The file is no check file.
pub fn on_backend(backend: &dyn VyreBackend, bytes: &[u8]) -> Result<FileVerdict, String> {
    let directives = directive::parse(&String::from_utf8_lossy(bytes))?;
    if directives.is_empty() {
        return Err("the file has no directive; see checks/readme.vyre".into());
    }
    let read = diagnostic::utf8("check.vyre", directive::program_text(bytes)).and_then(|text| text::parse("check.vyre", text));
    let mut verdict = FileVerdict::default();
    let Ok(program) = read else {
        let line = directives.iter().map(|directive| directive.lines.start).min().unwrap_or(0) + 1;
        verdict.skips.push(Problem { line, text: "the text cannot be read, so there is nothing to run".into() });
        return Ok(verdict);
    };
    let refused = program.validated().is_err();
    for directive in &directives {
        let line = directive.lines.start + 1;
        match one(backend, &program, directive, refused) {
            Tried::Holds => verdict.holds += 1,
            Tried::Fails(text) => verdict.failures.push(Problem { line, text }),
            Tried::Skipped(text) => verdict.skips.push(Problem { line, text }),
            Tried::Elsewhere => {}
        }
    }
    if verdict == FileVerdict::default() {
        verdict.skips.push(Problem { line: 1, text: "it says nothing about runs".into() });
    }
    Ok(verdict)
}

fn one(backend: &dyn VyreBackend, program: &Program, directive: &Directive, refused: bool) -> Tried {
    match &directive.kind {
        Kind::Run(launch, expected) => dispatch(backend, program, launch, |program, outcome| match outcome {
            Ok(outputs) => compare(program, expected, &outputs).map_or_else(Tried::Fails, |()| Tried::Holds),
            Err(error) => Tried::Fails(format!("it did not run: {error}")),
        }),
        Kind::Trap(launch, tag, invocation) => dispatch(backend, program, launch, |_, outcome| match outcome {
            Err(BackendError::Trap { tag: by, invocation: at }) if (by, at) == (*tag, *invocation) => Tried::Holds,
            Err(error) => Tried::Fails(format!("expected trap {tag} at {invocation:?}, found: {error}")),
            Ok(_) => Tried::Fails(format!("expected trap {tag} at {invocation:?}, but it ran to the end")),
        }),
        Kind::Refuse(_, ErrorCode::E0712, _) => Tried::Skipped("only the reference counts steps".into()),
        Kind::Refuse(launch, code, about) => refuse(backend, program, launch, *code, about.as_deref()),
        Kind::Error(..) if refused && !program.parts().consts.is_empty() => {
            Tried::Skipped("a backend sees another program: the one with its constants replaced".into())
        }
        Kind::Error(code, _) if refused => match ask(backend, &Case::new(program.clone(), Vec::new())) {
            Err(BackendError::Rejected(report)) if report.codes().any(|found| found == *code) => Tried::Holds,
            Err(error) => Tried::Fails(format!("expected it to be refused with {code}, found: {error}")),
            Ok(_) => Tried::Fails(format!("expected it to be refused with {code}, but it ran")),
        },
        Kind::Error(..)
        | Kind::Warn(..)
        | Kind::Checked(..)
        | Kind::Determinism(_)
        | Kind::Bounds(_)
        | Kind::LeavesAlone(_)
        | Kind::After(..)
        | Kind::Printed(_)
        | Kind::Formatted(_)
        | Kind::Corrupt(..) => Tried::Elsewhere,
    }
}

/// A dispatch that a check file describes, and what it says comes of it.
#[derive(Clone, Debug)]
pub struct Stated {
    /// The line, from 1.
    pub line: usize,
    /// The dispatch.
    pub case: Case,
    /// Its outputs, or the trap that it ends with.
    pub outcome: Result<Outputs, Failure>,
}

/// The dispatches that a check file says the outcome of, without those in which the order of invocations may show.
///
/// # Errors
///
/// The file is no check file.
pub fn stated(bytes: &[u8]) -> Result<Vec<Stated>, String> {
    let directives = directive::parse(&String::from_utf8_lossy(bytes))?;
    let read = diagnostic::utf8("check.vyre", directive::program_text(bytes)).and_then(|text| text::parse("check.vyre", text));
    let Ok(program) = read else { return Ok(Vec::new()) };
    let mut all = Vec::new();
    for directive in directives {
        let line = directive.lines.start + 1;
        let (launch, trap, expected) = match &directive.kind {
            Kind::Run(launch, expected) => (launch, None, expected.as_slice()),
            Kind::Trap(launch, tag, invocation) => (launch, Some(Failure::Trap { tag: *tag, invocation: *invocation }), &[][..]),
            Kind::Refuse(..)
            | Kind::Error(..)
            | Kind::Warn(..)
            | Kind::Checked(..)
            | Kind::Determinism(_)
            | Kind::Bounds(_)
            | Kind::LeavesAlone(_)
            | Kind::After(..)
            | Kind::Printed(_)
            | Kind::Formatted(_)
            | Kind::Corrupt(..) => continue,
        };
        let Ok(case) = case(&program, launch)? else { continue };
        if matches!(order::of(&case), Ok(Order::Shows(_))) {
            continue;
        }
        let outcome = match trap {
            Some(trap) => Err(trap),
            None => Ok(outputs(&case.specialized().map_err(|report| report.to_string())?, expected)?),
        };
        all.push(Stated { line, case, outcome });
    }
    Ok(all)
}

/// The bytes of all outputs, as a file has them.
fn outputs(program: &Program, expected: &[Binding]) -> Result<Outputs, String> {
    let elements = directive::elements(program);
    let of = |name: String| {
        let binding = expected.iter().find(|binding| binding.name == name);
        let binding = binding.ok_or_else(|| format!("the output `{name}` is not mentioned"))?;
        directive::encode(&elements[&name], &binding.text)
    };
    program.interface().outputs.iter().map(|i| of(program.buffers()[*i].name.to_string())).collect()
}

type Outcome = Result<Vec<Vec<u8>>, BackendError>;

/// A launch as a case. The outer error is about the file; the inner one is the refusal of inputs by name, before any backend is asked.
fn case(program: &Program, launch: &Launch) -> Result<Result<Case, Report>, String> {
    let (options, inputs) = launch.resolve(program)?;
    let named: Vec<(&str, &[u8])> = inputs.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
    Ok(launch::inputs_by_name(program, &named).map(|ordered| {
        let config = DispatchConfig {
            grid_override: options.launch.grid,
            workgroup_override: options.launch.workgroup_override,
            output_counts: options.launch.output_counts,
            specialization: options.specialization.into_iter().collect(),
            ..DispatchConfig::default()
        };
        let inputs = ordered.iter().map(|bytes| bytes.to_vec()).collect();
        Case { program: program.clone(), inputs, config, fuel: options.fuel }
    }))
}

/// A dispatch; a panic is an error like any other.
fn ask(backend: &dyn VyreBackend, case: &Case) -> Outcome {
    caught(|| backend.dispatch_borrowed(&case.program, &case.input_slices(), &case.config))
        .unwrap_or_else(|said| Err(BackendError::new(format!("the backend panicked: {said}"))))
}

/// Runs what has one result, whatever the order of its invocations.
fn dispatch(
    backend: &dyn VyreBackend,
    program: &Program,
    launch: &Launch,
    judge: impl FnOnce(&Program, Outcome) -> Tried,
) -> Tried {
    let case = match case(program, launch) {
        Ok(Ok(case)) => case,
        Ok(Err(report)) => return Tried::Fails(report.to_string()),
        Err(problem) => return Tried::Fails(problem),
    };
    match order::of(&case) {
        Ok(Order::Hidden) => {}
        Ok(Order::Shows(why)) => return Tried::Skipped(format!("the result may depend on the order of invocations: {why}")),
        Err(refusal) => return Tried::Fails(refusal),
    }
    match (ask(backend, &case), case.specialized()) {
        (Err(error @ BackendError::UnsupportedFeature { .. }), _) => Tried::Skipped(error.message()),
        (outcome, Ok(specialized)) => judge(&specialized, outcome),
        (_, Err(report)) => Tried::Fails(report.to_string()),
    }
}

fn refuse(backend: &dyn VyreBackend, program: &Program, launch: &Launch, code: ErrorCode, about: Option<&str>) -> Tried {
    let case = match case(program, launch) {
        Ok(Ok(case)) => case,
        Ok(Err(_)) => return Tried::Skipped("names of inputs are refused before a backend is asked".into()),
        Err(problem) => return Tried::Fails(problem),
    };
    let report = match ask(backend, &case) {
        Ok(_) => return Tried::Fails(format!("expected {code}, but it ran")),
        Err(error @ BackendError::UnsupportedFeature { .. }) => return Tried::Skipped(error.message()),
        Err(error) => error.report(Some(program)),
    };
    if report.codes().collect::<Vec<_>>() != [code] {
        return Tried::Fails(format!("expected {code} alone, found: {report}"));
    }
    match about {
        Some(about) if !report.diagnostics[0].message.contains(&format!("`{about}`")) => {
            Tried::Fails(format!("the message does not name `{about}`: {}", report.diagnostics[0].message))
        }
        Some(_) | None => Tried::Holds,
    }
}

fn compare(program: &Program, expected: &[Binding], outputs: &[Vec<u8>]) -> Result<(), String> {
    let elements = directive::elements(program);
    let names: Vec<String> = program.interface().outputs.iter().map(|i| program.buffers()[*i].name.to_string()).collect();
    if names.len() != outputs.len() {
        return Err(format!("it gives {} outputs of {}", outputs.len(), names.len()));
    }
    let mut problems = Vec::new();
    for (name, bytes) in names.iter().zip(outputs) {
        let binding = expected.iter().find(|binding| binding.name == *name);
        let binding = binding.ok_or_else(|| format!("the output `{name}` is not mentioned"))?;
        let wanted = directive::encode(&elements[name], &binding.text)?;
        if wanted != *bytes {
            let [wanted, found] = [&wanted, bytes].map(|bytes| directive::decode(&elements[name], bytes));
            problems.push(format!("`{name}`: expected {wanted}, found {found}"));
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
}
