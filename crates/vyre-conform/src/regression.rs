//! What failed once, kept as bundles and run first from then on.
//!
//! A bundle holds the program and the inputs of one case, so it outlives generators and specs. It is named by its content and never
//! overwritten. If the op has had another edition since, the reference says what is expected today.

use crate::cases::Work;
use crate::examine::{Both, Dispatch, Examiner, Finding, FindingKind, Target, output_bytes};
use crate::ledger::{LedgerError, Range, remark};
use crate::report::{ParityFailure, ReducedFailure};
use crate::spec::frame;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use vyre_foundation::case::Case;
use vyre_smith::subjects::expected;
use vyre_worker::{Bundle, Failure, Kind, Outputs, Sequence, Verdict, judge};

/// Failures of an op that are kept with all that shows them, in one run. All are counted.
pub(crate) const KEPT: usize = 256;

/// Where cases of earlier runs come from.
const REGRESSION: &str = "regression";

/// Those of them that are written as bundles.
const BUNDLES: usize = 8;

/// Sections of which the first failure is told with its program and inputs, and bytes that its outputs may have.
const TOLD: usize = 2048;
const TOLD_BYTES: usize = 1 << 14;

/// A failure, and the case by itself that shows it.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    pub failure: ParityFailure,
    /// Nothing if the case itself is wrong, so that it cannot be run, or is more than a dispatch.
    alone: Option<Alone>,
    /// Of the first failure of a unit: the dispatch of several cases that it was a part of.
    pub dispatch: Option<Case>,
    /// What has to run before it in the same process, and who fails then, as the command line takes it.
    pub after: Option<(Vec<Case>, String)>,
    /// Why there is no smaller one, if somebody looked for one.
    pub unreduced: Option<String>,
    /// The dispatches of a sequence, for people.
    steps: Option<String>,
    /// A smaller case that fails in the same way.
    pub smaller: Option<Box<Smaller>>,
}

/// A case that was made small.
#[derive(Clone, Debug)]
pub(crate) struct Smaller {
    pub failure: ReducedFailure,
    /// Who gets it wrong, as the command line takes it.
    pub subject: String,
    pub case: Case,
    pub expected: Result<Outputs, Failure>,
    pub found: Result<Outputs, Failure>,
}

/// A case by itself.
#[derive(Clone, Debug)]
pub(crate) struct Alone {
    pub case: Case,
    pub expected: Result<Outputs, Failure>,
    pub found: Result<Outputs, Failure>,
}

impl Alone {
    /// Program, inputs and outputs by name, unless they are too long to be read.
    fn told(&self, message: &str) -> Option<ReducedFailure> {
        let bytes = |outputs: &Result<Outputs, Failure>| outputs.iter().flatten().map(Vec::len).sum::<usize>();
        let is_short = bytes(&self.expected) <= TOLD_BYTES && bytes(&self.found) <= TOLD_BYTES;
        is_short.then(|| ReducedFailure::new(&self.case, &self.expected, &self.found, message.into(), (0, 0)))
    }
}

/// Where a finding was made.
pub(crate) struct Place<'a> {
    /// The section's name.
    pub section: &'a str,
    pub alternative: Option<&'a str>,
    /// The generator or space.
    pub source: &'a str,
    pub label: String,
}

impl Shown {
    /// A failure, and nothing to run again.
    fn of(failure: ParityFailure) -> Shown {
        Shown { failure, alone: None, dispatch: None, after: None, unreduced: None, steps: None, smaller: None }
    }

    /// A finding about a case of these dispatches of a target.
    pub fn new(target: &Target<'_>, place: Place<'_>, finding: Finding, dispatches: &[Dispatch]) -> Shown {
        let layout = &target.layout;
        let (dispatch, case) = match layout.inputs {
            Some(_) => (&dispatches[0], finding.case),
            None => (&dispatches[finding.case], 0),
        };
        let failure = failure(target, place, finding, layout.case_of(dispatch, case));
        if failure.kind == FindingKind::Case {
            return Shown::of(failure);
        }
        let alone = match &layout.inputs {
            Some(sizes) => {
                let mine = |(column, size): (&Vec<u8>, &usize)| column[case * size..][..*size].to_vec();
                Dispatch { cases: 1, columns: dispatch.columns.iter().zip(sizes).map(mine).collect() }
            }
            None => dispatch.clone(),
        };
        let Ok(case) = target.case(&alone) else { return Shown::of(failure) };
        let sizes = layout.outputs.clone().unwrap_or_else(|| output_bytes(&case));
        let columns = |bytes: &[u8]| -> Outputs {
            let mut rest = bytes;
            let mut cut = |size: &usize| {
                let (mine, others) = rest.split_at_checked(*size).unwrap_or((rest, &[]));
                rest = others;
                mine.to_vec()
            };
            sizes.iter().map(&mut cut).collect()
        };
        let found = match failure.gpu_output.as_slice() {
            [] => Err(Failure::Device(failure.message.clone())),
            bytes => Ok(columns(bytes)),
        };
        let expected = match target.trap(&alone) {
            Ok(Some(trap)) => Err(trap),
            Ok(None) | Err(_) => Ok(columns(&failure.cpu_output)),
        };
        Shown { alone: Some(Alone { case, expected, found }), ..Shown::of(failure) }
    }

    /// A finding about a dispatch with a program of its own.
    pub fn whole(op: &str, place: Place<'_>, finding: Finding, work: &Work, both: &Both) -> Shown {
        let (input, workgroup) = match work {
            Work::Dispatch(case) => (frame(&case.inputs), case.program.workgroup_size()[0]),
            Work::Sequence(sequence) => {
                let first = sequence.steps.first().map_or(0, |step| step.program.workgroup_size()[0]);
                (frame(&sequence.buffers), first)
            }
        };
        let failure = ParityFailure {
            op_id: op.into(),
            generator: place.source.into(),
            input_label: place.label,
            input,
            gpu_output: finding.found,
            cpu_output: finding.expected,
            message: finding.message,
            spec_version: 1,
            workgroup_size: workgroup,
            kind: finding.kind,
            unit: place.section.into(),
        };
        match work {
            Work::Dispatch(case) => {
                let alone = Alone { case: case.clone(), expected: both.expected.clone(), found: both.found.clone() };
                Shown { alone: Some(alone), ..Shown::of(failure) }
            }
            Work::Sequence(sequence) => Shown { steps: Some(listing(sequence)), ..Shown::of(failure) },
        }
    }

    /// The case by itself, what is expected of it, and what the device made of it.
    pub fn alone(&self) -> Option<&Alone> {
        self.alone.as_ref()
    }

    /// The whole dispatch stands for the failure from now on.
    pub fn be_dispatch(&mut self, case: Case, expected: Result<Outputs, Failure>, found: Result<Outputs, Failure>) {
        self.alone = Some(Alone { case, expected, found });
    }

    /// A finding about the law of an op. What is expected is what the device itself gave, so there is nothing to hold it to later.
    pub fn of_law(target: &Target<'_>, place: Place<'_>, finding: Finding, dispatch: &Dispatch) -> Shown {
        let input = target.layout.case_of(dispatch, finding.case);
        Shown::of(failure(target, place, finding, input))
    }

    /// A case that could not be dispatched at all.
    pub fn malformed(target: &Target<'_>, place: Place<'_>, message: String, input: Vec<u8>) -> Shown {
        let finding = Finding { case: 0, kind: FindingKind::Case, message, found: Vec::new(), expected: Vec::new() };
        Shown::of(failure(target, place, finding, input))
    }

    /// Writes it as a bundle, to be run first from now on; gives the file.
    fn write(&self, folder: &Path, subject: &str) -> Result<Option<PathBuf>, LedgerError> {
        let Some(alone) = self.alone.clone() else { return Ok(None) };
        let (subject, case, expected, found, original) = match self.smaller.as_deref().cloned() {
            Some(Smaller { subject, case, expected, found, failure: _ }) => (subject, case, expected, found, Some(alone.case)),
            None => (subject.to_string(), alone.case, alone.expected, alone.found, None),
        };
        let (before, subject) = self.after.clone().unwrap_or((Vec::new(), subject));
        let kind = match self.failure.kind {
            FindingKind::Mismatch | FindingKind::Nondeterministic | FindingKind::Configuration => Kind::Bytes,
            FindingKind::Dispatch => Kind::Device,
            FindingKind::Case | FindingKind::Disputed => Kind::Reference,
        };
        let versions = BTreeMap::from([("spec".to_string(), self.failure.spec_version.to_string())]);
        let bundle = Bundle {
            subject,
            kind,
            signature: self.failure.op_id.clone(),
            case,
            before,
            expected,
            got: found,
            original,
            origin: None,
            versions,
        };
        let written = bundle.write(&regressions(folder), again_command);
        written.map(Some).map_err(|error| LedgerError::Io(folder.into(), error.to_string()))
    }
}

/// The dispatches of a sequence: each program below the buffers that it is bound to.
fn listing(sequence: &Sequence) -> String {
    let lengths: Vec<String> = sequence.buffers.iter().map(|bytes| bytes.len().to_string()).collect();
    let mut text = format!("// buffers of {} bytes\n", lengths.join(", "));
    for (n, step) in sequence.steps.iter().enumerate() {
        text += &format!("\n// dispatch {n} over the buffers {:?}\n{}", step.buffers, step.program);
    }
    text
}

fn failure(target: &Target<'_>, place: Place<'_>, finding: Finding, input: Vec<u8>) -> ParityFailure {
    let alternative = place.alternative.map_or(String::new(), |name| format!("[alt:{name}] "));
    ParityFailure {
        op_id: target.spec.id.clone(),
        generator: place.source.into(),
        input_label: place.label,
        input,
        gpu_output: finding.found,
        cpu_output: finding.expected,
        message: alternative + &finding.message,
        spec_version: target.spec.version,
        workgroup_size: target.workgroup,
        kind: finding.kind,
        unit: place.section.into(),
    }
}

/// Keeps failures, up to a number for each op; nobody keeps count of them here but for that.
pub(crate) struct Keeper {
    by_op: BTreeMap<String, usize>,
    /// Sections of which a failure is shown with its program.
    shown: BTreeSet<String>,
    folder: Option<PathBuf>,
    subject: String,
}

impl Keeper {
    /// Bundles go into the folder, if there is one.
    pub fn new(folder: Option<PathBuf>, subject: &str) -> Keeper {
        Keeper { by_op: BTreeMap::new(), shown: BTreeSet::new(), folder, subject: subject.into() }
    }

    /// Keeps a failure for the next commit, and as a bundle.
    pub fn keep(&mut self, shown: Shown, range: &mut Range) -> Result<(), LedgerError> {
        let kept = self.by_op.entry(shown.failure.op_id.clone()).or_default();
        *kept += 1;
        let file = match &self.folder {
            Some(folder) if *kept <= BUNDLES || shown.smaller.is_some() || shown.after.is_some() => {
                shown.write(folder, &self.subject)?
            }
            Some(_) | None => None,
        };
        let is_first = self.shown.insert(shown.failure.unit.clone());
        if let Some(why) = &shown.unreduced {
            range.remarks.push((shown.failure.unit.clone(), remark::UNREDUCED, why.clone()));
        }
        if let Some(steps) = shown.steps.filter(|_| is_first) {
            range.remarks.push((shown.failure.unit.clone(), remark::PROGRAM, steps));
        }
        if let Some(alone) = shown.alone.as_ref().filter(|_| is_first || shown.smaller.is_some()) {
            let section = &shown.failure.unit;
            let again = file.map(|file| again_command(&file));
            range.remarks.push((section.clone(), remark::PROGRAM, alone.case.program.to_string()));
            range.remarks.extend(again.clone().map(|again| (section.clone(), remark::AGAIN, again)));
            let told = match shown.smaller {
                Some(smaller) => Some(smaller.failure),
                None => alone.told(&shown.failure.message).filter(|_| self.shown.len() <= TOLD),
            };
            if let Some(told) = told {
                let told = serde_json::to_string(&ReducedFailure { again, ..told });
                // Strings and numbers only: nothing can fail.
                range.remarks.push((section.clone(), remark::REDUCED, told.expect("a reduced failure is JSON")));
            }
        }
        if *kept <= KEPT {
            range.failures.push(shown.failure);
        }
        Ok(())
    }
}

/// The command that runs a bundle again.
fn again_command(file: &Path) -> String {
    format!("vyre fuzz --replay {}", file.display())
}

fn regressions(folder: &Path) -> PathBuf {
    folder.join("regressions")
}

/// The bundles of these ops, in the order of their names.
pub(crate) fn load(folder: &Path, ops: &BTreeMap<&str, u32>) -> Result<Vec<Bundle>, LedgerError> {
    let folder = regressions(folder);
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(LedgerError::Io(folder, error.to_string())),
    };
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| LedgerError::Io(folder.clone(), error.to_string()))?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            paths.push(path);
        }
    }
    paths.sort();
    let read = |path: PathBuf| Bundle::read(&path).map_err(|error| LedgerError::Damaged(path, error.to_string()));
    let bundles = paths.into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
    Ok(bundles.into_iter().filter(|bundle| ops.contains_key(bundle.signature.as_str())).collect())
}

/// What came of a case that failed once.
pub(crate) enum Again {
    Holds,
    Fails(Box<ParityFailure>),
    /// Nobody waited for it: others hang.
    NotRun,
}

/// Runs a case that failed once, twice, each time after what has to come before it.
pub(crate) fn again(examiner: &mut Examiner<'_>, bundle: &Bundle, version: u32) -> Again {
    let is_same = bundle.versions.get("spec").is_some_and(|spec| *spec == version.to_string());
    let expected = match &bundle.expected {
        Ok(_) | Err(Failure::Trap { .. }) if is_same => bundle.expected.clone(),
        _ => expected(&bundle.case),
    };
    if examiner.begin(REGRESSION, &bundle.signature).is_some() {
        return Again::NotRun;
    }
    for answer in examiner.twice(&bundle.before, &bundle.case) {
        let (kind, message) = match judge(&expected, &answer.outcome) {
            Verdict::Agrees | Verdict::Skipped => continue,
            Verdict::NotRun => return Again::NotRun,
            Verdict::Wrong(Kind::Bytes) => (FindingKind::Mismatch, "it still fails".to_string()),
            Verdict::Wrong(Kind::Reference) => (FindingKind::Case, "the reference no longer has an outcome for it".into()),
            Verdict::Wrong(_) => {
                let how = answer.outcome.as_ref().err().map_or("no trap".into(), ToString::to_string);
                (FindingKind::Dispatch, format!("it still fails: {how}"))
            }
        };
        let concat = |outcome: &Result<Outputs, Failure>| outcome.as_ref().map_or(Vec::new(), |outputs| outputs.concat());
        return Again::Fails(Box::new(ParityFailure {
            op_id: bundle.signature.clone(),
            generator: REGRESSION.into(),
            input_label: bundle.hash(),
            input: bundle.case.inputs.concat(),
            gpu_output: concat(&answer.outcome),
            cpu_output: concat(&expected),
            message,
            spec_version: version,
            // Of a case that was made small, the size at which it was found.
            workgroup_size: bundle.original.as_ref().unwrap_or(&bundle.case).program.workgroup_size()[0],
            kind,
            unit: String::new(),
        }));
    }
    Again::Holds
}
