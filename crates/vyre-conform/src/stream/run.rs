//! One run of the streaming runner.

use super::generator::{Ended, generate};
use super::{InputGenerator, RunError, StreamingProgress, StreamingRunner, UNIT, regression};
use crate::digest::Digest;
use crate::examine::{Dispatch, Examined, Examiner, Finding, FindingKind, NotRun, Target};
use crate::in_process::InProcess;
use crate::ledger::{Identity, Ledger, Range, UnitRecord, remark, root_of};
use crate::report::{ParityFailure, Remark, RunReport, Summary};
use crate::spec::{OpSpec, frames};
use crate::unit::UnitSum;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use vyre_driver::VyreBackend;
use vyre_driver::backend::UNVERSIONED;
use vyre_foundation::ir::Program;
use vyre_worker::{Failure, Outputs};

/// How long units are gathered before they are committed together.
const GATHER: Duration = Duration::from_secs(2);

/// Failures of an op that are kept with all that shows them. All are counted.
const KEPT: usize = 256;

pub(super) fn run(mut runner: StreamingRunner, backend: &dyn VyreBackend, ops: &[OpSpec]) -> Result<RunReport, RunError> {
    check(&runner, ops)?;
    let identity = identity(&runner, backend, ops);
    let ledger = Ledger::open(runner.state.as_deref(), &identity)?;
    let mut examiner = Examiner::new(vec![Box::new(InProcess { backend })]);
    examiner.max_output_bytes = runner.max_output_bytes;
    let mut sum = Summary::default();
    let mut failures = Vec::new();
    if let Some(folder) = &runner.state {
        let versions: BTreeMap<&str, u32> = ops.iter().map(|op| (op.id.as_str(), op.version)).collect();
        for bundle in regression::load(folder, &versions)? {
            let found = regression::again(&mut InProcess { backend }, &bundle, versions[bundle.signature.as_str()]);
            let failed = u64::from(found.is_some());
            sum.add(&Summary { tested: 1, passed: 1 - failed, failed, regressions: 1, ..Summary::default() });
            failures.extend(found);
        }
    }
    let mut state = Run {
        progress: StreamingProgress { tested: sum.tested, passed: sum.passed, failed: sum.failed, ..Default::default() },
        kept: BTreeMap::new(),
        shown: BTreeSet::new(),
        range: Range::default(),
        told: Vec::new(),
        began: Instant::now(),
        committed: Instant::now(),
        number: 0,
        units: 0,
        most_groups: u64::from(backend.max_compute_workgroups_per_dimension()),
        examiner,
        ledger,
        runner: &mut runner,
        name: backend.id(),
    };
    if !state.runner.regressions_only {
        let generators = std::mem::take(&mut state.runner.generators);
        for op in ops {
            state.op(op, &generators)?;
        }
        state.commit()?;
    }
    let (units_seen, is_skipping) = (state.units, state.runner.skip > 0);
    let mut ledger = state.ledger;
    let report = report(&ledger, sum, failures)?;
    if report.summary.tested == 0 {
        let why = match report.skipped.first() {
            Some(remark) => format!("the device cannot run any of it ({}: {})", remark.section, remark.what),
            None if is_skipping => "every case is skipped".into(),
            None => "no generator has a case for these ops, and nothing has failed before".into(),
        };
        // A shard that has no unit of a selection that has some says so, and that is a verdict.
        if units_seen == 0 || !report.skipped.is_empty() || is_skipping {
            return Err(RunError::NothingRan(why));
        }
    }
    ledger.finish(report.root)?;
    Ok(report)
}

fn check(runner: &StreamingRunner, ops: &[OpSpec]) -> Result<(), RunError> {
    let (shard, shards) = runner.shard;
    if shard >= shards {
        return Err(RunError::Usage(format!("there is no shard {shard} of {shards}: they are counted from 0")));
    }
    if runner.batch == 0 {
        return Err(RunError::Usage("a batch has at least one case".into()));
    }
    let mut names = BTreeSet::new();
    if let Some(op) = ops.iter().find(|op| !names.insert(op.id())) {
        return Err(RunError::Usage(format!("there are two ops `{}`", op.id())));
    }
    let mut names = BTreeSet::new();
    if let Some(generator) = runner.generators.iter().find(|generator| !names.insert(generator.name())) {
        return Err(RunError::Usage(format!("there are two generators `{}`", generator.name())));
    }
    Ok(())
}

fn identity(runner: &StreamingRunner, backend: &dyn VyreBackend, ops: &[OpSpec]) -> Identity {
    let mut parts: Vec<Vec<u8>> = Vec::new();
    for op in ops {
        parts.push(format!("{} {} {:?} {:?}", op.id, op.version, op.signature, op.workgroup_sizes).into_bytes());
        for size in &op.workgroup_sizes {
            for (name, program) in programs(op) {
                parts.push(name.unwrap_or_default().into());
                parts.push(program([*size, 1, 1]).fingerprint().to_vec());
            }
        }
    }
    parts.extend(runner.generators.iter().map(|generator| generator.name().as_bytes().to_vec()));
    Identity {
        suite: Digest::of(parts).to_string(),
        selection: "all".into(),
        settings: format!(
            "seed {}, shard {} of {}, skip {}, cases {}, output bytes {}{}",
            runner.seed,
            runner.shard.0,
            runner.shard.1,
            runner.skip,
            runner.max_cases,
            runner.max_output_bytes,
            if runner.regressions_only { ", regressions only" } else { "" }
        ),
        backend: backend.id().into(),
        version: Some(backend.version().to_string()).filter(|version| version != UNVERSIONED),
        device: backend.device_fingerprint(),
    }
}

/// The program of an op and its alternatives, by name.
fn programs(op: &OpSpec) -> impl Iterator<Item = (Option<&str>, &crate::spec::ProgramFn)> {
    std::iter::once((None, &op.program)).chain(op.alternatives().map(|(name, program)| (Some(name), program)))
}

/// The report, from what is committed.
fn report(ledger: &Ledger, mut summary: Summary, mut failures: Vec<ParityFailure>) -> Result<RunReport, RunError> {
    let mut leaves: BTreeMap<String, BTreeMap<u64, Digest>> = BTreeMap::new();
    let mut not_confirmed = BTreeSet::new();
    let mut units = 0;
    ledger.for_each_unit(|section, record| {
        summary.add(&counts(&record));
        if !record.confirmed && record.tested > 0 {
            not_confirmed.insert(section.to_string());
        }
        units += 1;
        leaves.entry(section.into()).or_default().insert(record.first, record.leaf(section));
    })?;
    failures.extend(ledger.failures()?);
    let skipped = ledger.remarks()?.into_iter().filter(|(_, kind, _)| kind == remark::SKIPPED);
    let skipped = skipped.map(|(section, _, what)| Remark { section, what }).collect();
    let unsaid = |section| Remark { section, what: "the device does not say which workgroup size it ran".into() };
    let not_confirmed = not_confirmed.into_iter().map(unsaid).collect();
    Ok(RunReport { failures, summary, root: root_of(&leaves), units, skipped, not_confirmed })
}

fn counts(record: &UnitRecord) -> Summary {
    Summary {
        tested: record.tested,
        passed: record.tested - record.failed,
        failed: record.failed,
        skipped: record.skipped,
        regressions: 0,
        referred: record.referred,
    }
}

struct Run<'r> {
    runner: &'r mut StreamingRunner,
    examiner: Examiner<'r>,
    ledger: Ledger,
    name: &'r str,
    /// Workgroups that a dispatch may have along x.
    most_groups: u64,
    /// What is not committed yet, and the ops of its units.
    range: Range,
    told: Vec<(String, Summary)>,
    committed: Instant,
    began: Instant,
    progress: StreamingProgress,
    /// By op: failures that are kept.
    kept: BTreeMap<String, usize>,
    /// Sections of which a failure is shown with its program.
    shown: BTreeSet<String>,
    /// Cases so far, of the whole run, and units.
    number: u64,
    units: u64,
}

/// One op, program, workgroup size and generator.
struct Section<'a> {
    id: String,
    alternative: Option<&'a str>,
    generator: &'a str,
    target: Target<'a>,
    /// Cases to a dispatch.
    batch: usize,
}

/// A unit that is being gathered.
struct Open {
    sum: UnitSum,
    /// Whether its cases are run: not if they are another shard's, or done.
    runs: bool,
    batch: Dispatch,
    /// By case of the batch: its label.
    labels: Vec<String>,
    /// Dispatches of the batch, if each case is one.
    dispatches: Vec<Dispatch>,
}

impl Run<'_> {
    fn op(&mut self, op: &OpSpec, generators: &[Box<dyn InputGenerator>]) -> Result<(), RunError> {
        for (alternative, program) in programs(op) {
            for size in &op.workgroup_sizes {
                let program: Program = program([*size, 1, 1]);
                for generator in generators.iter().filter(|generator| generator.handles(&op.signature)) {
                    let target = Target::new(op, &program, *size)?;
                    let name = generator.name();
                    let id =
                        format!("{}{}:wg={size}:{name}", op.id, alternative.map_or(String::new(), |alt| format!(":alt={alt}")));
                    let batch = target.layout.most_cases(self.most_groups).min(self.runner.batch);
                    self.section(&Section { id, alternative, generator: name, target, batch }, &**generator)?;
                }
            }
        }
        Ok(())
    }

    fn section(&mut self, section: &Section<'_>, generator: &dyn InputGenerator) -> Result<(), RunError> {
        let op = section.target.spec;
        let seed = u64::from_le_bytes(
            *Digest::of([op.id.as_bytes(), &self.runner.seed.to_le_bytes()]).0.first_chunk().expect("32 bytes"),
        );
        let (mut position, most) = (0, self.runner.max_cases);
        let mut open: Option<Open> = None;
        let mut each = |label: String, bytes: Vec<u8>| -> Result<bool, RunError> {
            let number = self.number;
            self.number += 1;
            if number >= self.runner.skip {
                if open.is_none() {
                    open = Some(self.open(section, position)?);
                }
                let unit = open.as_mut().expect("a unit is open");
                unit.sum.cases(1);
                if unit.runs {
                    self.case(section, unit, label, bytes)?;
                }
            }
            position += 1;
            if position % UNIT == 0
                && let Some(unit) = open.take()
            {
                self.close(section, unit)?;
            }
            Ok(position < most)
        };
        if most == 0 {
            return Ok(());
        }
        let ended = generate(generator, &op.id, &op.signature, seed, &mut each);
        match ended {
            Ended::Done => {}
            Ended::Failed(error) => return Err(error),
            Ended::Panicked(said) => {
                return Err(RunError::Stopped(format!("the generator `{}` panicked: {said}", section.generator)));
            }
        }
        match open.take() {
            Some(unit) => self.close(section, unit),
            None => Ok(()),
        }
    }

    /// Begins a unit with its first case.
    fn open(&mut self, section: &Section<'_>, first: u64) -> Result<Open, RunError> {
        let (shard, shards) = self.runner.shard;
        let is_mine = self.units % shards == shard;
        self.units += 1;
        let done = if is_mine { self.ledger.unit(&section.id, first)? } else { None };
        if let Some(record) = &done {
            self.count(&section.target.spec.id, &counts(record));
        }
        let columns = vec![Vec::new(); section.target.spec.signature.inputs.len()];
        Ok(Open {
            sum: UnitSum::new(first),
            runs: is_mine && done.is_none(),
            batch: Dispatch { cases: 0, columns },
            labels: Vec::new(),
            dispatches: Vec::new(),
        })
    }

    /// Adds a case to the unit, and dispatches the batch if it is full.
    fn case(&mut self, section: &Section<'_>, unit: &mut Open, label: String, bytes: Vec<u8>) -> Result<(), RunError> {
        let layout = &section.target.layout;
        match (&layout.inputs, layout.case_bytes()) {
            (Some(sizes), Some(whole)) if bytes.len() == whole => {
                let mut rest = bytes.as_slice();
                for (column, size) in unit.batch.columns.iter_mut().zip(sizes) {
                    let (mine, others) = rest.split_at(*size);
                    column.extend_from_slice(mine);
                    rest = others;
                }
                unit.batch.cases += 1;
            }
            (Some(_), whole) => {
                let how = if bytes.len() < whole.unwrap_or(0) { "undersized" } else { "oversized" };
                let message = format!("{how} input: {} bytes, and a case has {}", bytes.len(), whole.unwrap_or(0));
                return self.malformed(section, unit, label, bytes, message);
            }
            (None, _) => {
                let columns = frames(&bytes).filter(|frames| frames.len() == section.target.spec.signature.inputs.len());
                let Some(columns) = columns else {
                    let message = "malformed input: it is not one length and bytes for each input".to_string();
                    return self.malformed(section, unit, label, bytes, message);
                };
                let columns = columns.into_iter().map(<[u8]>::to_vec).collect();
                unit.dispatches.push(Dispatch { cases: 1, columns });
            }
        }
        unit.labels.push(label);
        if unit.labels.len() >= section.batch { self.flush(section, unit) } else { Ok(()) }
    }

    fn malformed(
        &mut self,
        section: &Section<'_>,
        unit: &mut Open,
        label: String,
        bytes: Vec<u8>,
        message: String,
    ) -> Result<(), RunError> {
        unit.sum.fail(1);
        unit.sum.inputs(std::slice::from_ref(&bytes));
        let finding = Finding { case: 0, kind: FindingKind::Case, message, found: Vec::new(), expected: Vec::new() };
        let failure = self.failure(section, finding, label, bytes);
        self.keep(failure);
        Ok(())
    }

    /// Dispatches the batch of a unit.
    fn flush(&mut self, section: &Section<'_>, unit: &mut Open) -> Result<(), RunError> {
        let labels = std::mem::take(&mut unit.labels);
        if labels.is_empty() {
            return Ok(());
        }
        let cleared = Dispatch { cases: 0, columns: vec![Vec::new(); unit.batch.columns.len()] };
        let dispatches = match section.target.layout.inputs {
            Some(_) => vec![std::mem::replace(&mut unit.batch, cleared)],
            None => std::mem::take(&mut unit.dispatches),
        };
        dispatches.iter().for_each(|dispatch| unit.sum.inputs(&dispatch.columns));
        let salt = crate::examine::mixed(self.runner.seed ^ self.number);
        let examined = self.examiner.examine(&section.target, dispatches.clone(), salt);
        let examined = examined.map_err(|NotRun(why)| RunError::Stopped(why))?;
        unit.sum.take(&examined, labels.len() as u64);
        if let Some(why) = &examined.skipped {
            self.range.remarks.push((section.id.clone(), remark::SKIPPED, why.clone()));
        }
        self.take_findings(section, examined, &dispatches, &labels)
    }

    fn take_findings(
        &mut self,
        section: &Section<'_>,
        examined: Examined,
        dispatches: &[Dispatch],
        labels: &[String],
    ) -> Result<(), RunError> {
        for finding in examined.findings {
            let (dispatch, case) = match section.target.layout.inputs {
                Some(_) => (&dispatches[0], finding.case),
                None => (&dispatches[finding.case], 0),
            };
            let input = section.target.layout.case_of(dispatch, case);
            let label = labels[finding.case].clone();
            let failure = self.failure(section, finding, label, input);
            let is_kept = self.keep(failure.clone());
            let mut again = None;
            if is_kept && failure.kind != FindingKind::Case && self.kept[&failure.op_id] <= regression::KEPT {
                again = self.regression(section, &failure, dispatch, case)?;
            }
            if self.shown.insert(section.id.clone()) {
                let program = vyre_foundation::text::print(section.target.program).text;
                self.range.remarks.push((section.id.clone(), remark::PROGRAM, program.to_string()));
                let again = again.map(|file| (section.id.clone(), remark::AGAIN, regression::again_command(&file)));
                self.range.remarks.extend(again);
            }
        }
        Ok(())
    }

    fn failure(&self, section: &Section<'_>, finding: Finding, label: String, input: Vec<u8>) -> ParityFailure {
        let alternative = section.alternative.map_or(String::new(), |name| format!("[alt:{name}] "));
        let op = section.target.spec;
        ParityFailure {
            op_id: op.id.clone(),
            generator: section.generator.into(),
            input_label: label,
            input,
            gpu_output: finding.found,
            cpu_output: finding.expected,
            message: alternative + &finding.message,
            spec_version: op.version,
            workgroup_size: section.target.workgroup,
            kind: finding.kind,
            unit: section.id.clone(),
        }
    }

    /// Keeps a failure, unless the op has enough of them.
    fn keep(&mut self, failure: ParityFailure) -> bool {
        let kept = self.kept.entry(failure.op_id.clone()).or_default();
        *kept += 1;
        let is_kept = *kept <= KEPT;
        if is_kept {
            self.range.failures.push(failure);
        }
        is_kept
    }

    /// Writes the case by itself, to be run first from now on.
    fn regression(
        &self,
        section: &Section<'_>,
        failure: &ParityFailure,
        dispatch: &Dispatch,
        case: usize,
    ) -> Result<Option<PathBuf>, RunError> {
        let Some(folder) = &self.runner.state else { return Ok(None) };
        let layout = &section.target.layout;
        let alone = match &layout.inputs {
            Some(sizes) => {
                let mine = |(column, size): (&Vec<u8>, &usize)| column[case * size..][..*size].to_vec();
                Dispatch { cases: 1, columns: dispatch.columns.iter().zip(sizes).map(mine).collect() }
            }
            None => dispatch.clone(),
        };
        let Ok(case) = section.target.case(&alone) else { return Ok(None) };
        let columns = |bytes: &[u8]| -> Outputs {
            let mut rest = bytes;
            let sizes = layout.outputs.clone().unwrap_or_else(|| crate::examine::output_bytes(&case));
            let mut cut = |size: &usize| {
                let (mine, others) = rest.split_at_checked(*size).unwrap_or((rest, &[]));
                rest = others;
                mine.to_vec()
            };
            sizes.iter().map(&mut cut).collect()
        };
        let (expected, found) = (columns(&failure.cpu_output), columns(&failure.gpu_output));
        let found = if failure.gpu_output.is_empty() { Err(Failure::Device(failure.message.clone())) } else { Ok(found) };
        Ok(Some(regression::keep(folder, self.name, failure, case, expected, found)?))
    }

    /// Ends a unit.
    fn close(&mut self, section: &Section<'_>, mut unit: Open) -> Result<(), RunError> {
        if !unit.runs {
            return Ok(());
        }
        self.flush(section, &mut unit)?;
        let record = unit.sum.record();
        self.told.push((section.target.spec.id.clone(), counts(&record)));
        self.range.units.push((section.id.clone(), record));
        if self.committed.elapsed() >= GATHER { self.commit() } else { Ok(()) }
    }

    fn commit(&mut self) -> Result<(), RunError> {
        self.ledger.commit(&std::mem::take(&mut self.range))?;
        self.committed = Instant::now();
        for (op, counts) in std::mem::take(&mut self.told) {
            self.count(&op, &counts);
        }
        Ok(())
    }

    /// A unit is committed.
    fn count(&mut self, op: &str, counts: &Summary) {
        let progress = &mut self.progress;
        progress.tested += counts.tested;
        progress.passed += counts.passed;
        progress.failed += counts.failed;
        progress.units += 1;
        progress.current_op = op.into();
        progress.elapsed = self.began.elapsed();
        if let Some(sink) = &mut self.runner.progress {
            sink.progress(progress);
        }
    }
}
