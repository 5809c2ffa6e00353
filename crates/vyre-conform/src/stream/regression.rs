//! What failed once, kept as bundles and run first from then on.
//!
//! A bundle holds the program and the inputs of one case, so it outlives generators and specs. It is named by its content and never
//! overwritten. If the op has had another edition since, the reference says what is expected today.

use crate::examine::FindingKind;
use crate::ledger::LedgerError;
use crate::report::ParityFailure;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use vyre_foundation::case::Case;
use vyre_reference::{Options, run};
use vyre_worker::{Bundle, Failure, Kind, Outputs, Subject};

/// Bundles that are written for one op in one run.
pub(super) const KEPT: usize = 64;

/// Writes the failure of one case.
pub(super) fn keep(
    folder: &Path,
    subject: &str,
    failure: &ParityFailure,
    case: Case,
    expected: Outputs,
    found: Result<Outputs, Failure>,
) -> Result<PathBuf, LedgerError> {
    let kind = match failure.kind {
        FindingKind::Mismatch | FindingKind::Nondeterministic | FindingKind::Configuration => Kind::Bytes,
        FindingKind::Dispatch => Kind::Device,
        FindingKind::Case | FindingKind::Disputed => Kind::Reference,
    };
    let versions = BTreeMap::from([("spec".to_string(), failure.spec_version.to_string())]);
    let bundle = Bundle {
        subject: subject.into(),
        kind,
        signature: failure.op_id.clone(),
        case,
        before: Vec::new(),
        expected: Ok(expected),
        got: found,
        original: None,
        origin: None,
        versions,
    };
    let written = bundle.write(&regressions(folder), again_command);
    written.map_err(|error| LedgerError::Io(folder.into(), error.to_string()))
}

/// The command that runs a bundle again.
pub(super) fn again_command(file: &Path) -> String {
    format!("vyre fuzz --replay {}", file.display())
}

fn regressions(folder: &Path) -> PathBuf {
    folder.join("regressions")
}

/// The bundles of these ops, in the order of their names.
pub(super) fn load(folder: &Path, ops: &BTreeMap<&str, u32>) -> Result<Vec<Bundle>, LedgerError> {
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

/// Runs a case that failed once, twice; the failure, if it fails still.
pub(super) fn again(subject: &mut dyn Subject, bundle: &Bundle, version: u32) -> Option<ParityFailure> {
    let is_same = bundle.versions.get("spec").is_some_and(|spec| *spec == version.to_string());
    let expected = match &bundle.expected {
        Ok(expected) if is_same => Ok(expected.clone()),
        _ => run(&bundle.case.program, &bundle.case.input_slices(), &Options::from(&bundle.case))
            .map_err(|error| error.to_string()),
    };
    let failure = |kind: FindingKind, message: String, found: Outputs| ParityFailure {
        op_id: bundle.signature.clone(),
        generator: "regression".into(),
        input_label: bundle.hash(),
        input: bundle.case.inputs.concat(),
        gpu_output: found.concat(),
        cpu_output: expected.clone().unwrap_or_default().concat(),
        message,
        spec_version: version,
        workgroup_size: bundle.case.program.workgroup_size()[0],
        kind,
        unit: String::new(),
    };
    for answer in subject.run_batch(&[bundle.case.clone(), bundle.case.clone()]) {
        match (&answer.outcome, &expected) {
            (Ok(found), Ok(expected)) if found == expected => {}
            (Ok(found), Ok(_)) => return Some(failure(FindingKind::Mismatch, "it fails still".into(), found.clone())),
            (Err(error), _) => return Some(failure(FindingKind::Dispatch, format!("it fails still: {error}"), Vec::new())),
            (Ok(found), Err(error)) => return Some(failure(FindingKind::Case, format!("the reference: {error}"), found.clone())),
        }
    }
    None
}
