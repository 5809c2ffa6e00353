//! One run of the streaming runner.

use super::generator::{Ended, generate};
use super::{InputGenerator, StreamingProgress, StreamingRunner, UNIT, gather};
use crate::digest::Digest;
use crate::error::RunError;
use crate::examine::{Dispatch, Examiner, NotRun, Target};
use crate::in_process::InProcess;
use crate::ledger::{Identity, Ledger, Range, remark};
use crate::regression::{self, Again, Keeper, Place, Shown};
use crate::report::{RunReport, Summary};
use crate::spec::{OpSpec, frames};
use crate::unit::UnitSum;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;
use vyre_driver::VyreBackend;
use vyre_driver::backend::UNVERSIONED;
use vyre_foundation::ir::Program;

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
            let found = match regression::again(&mut examiner, &bundle, versions[bundle.signature.as_str()]) {
                Again::Fails(failure) => Some(*failure),
                Again::Holds => None,
                Again::NotRun => continue,
            };
            let failed = u64::from(found.is_some());
            sum.add(&Summary { tested: 1, passed: 1 - failed, failed, regressions: 1, ..Summary::default() });
            failures.extend(found);
        }
    }
    let mut state = Run {
        progress: StreamingProgress { tested: sum.tested, passed: sum.passed, failed: sum.failed, ..Default::default() },
        keeper: Keeper::new(runner.state.clone(), backend.id()),
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
    let report = RunReport::of(&ledger, sum, failures)?;
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
            for (name, program) in op.programs() {
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

struct Run<'r> {
    runner: &'r mut StreamingRunner,
    examiner: Examiner<'r>,
    ledger: Ledger,
    /// Workgroups that a dispatch may have along x.
    most_groups: u64,
    /// What is not committed yet, and the ops of its units.
    range: Range,
    told: Vec<(String, Summary)>,
    committed: Instant,
    began: Instant,
    progress: StreamingProgress,
    keeper: Keeper,
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

impl Section<'_> {
    fn place(&self, label: String) -> Place<'_> {
        Place { section: &self.id, alternative: self.alternative, source: self.generator, label }
    }
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
        for (alternative, program) in op.programs() {
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
            self.count(&section.target.spec.id, &record.counts());
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
        let shown = Shown::malformed(&section.target, section.place(label), message, bytes);
        Ok(self.keeper.keep(shown, &mut self.range)?)
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
        for finding in examined.findings {
            let label = labels[finding.case].clone();
            let shown = Shown::new(&section.target, section.place(label), finding, &dispatches);
            self.keeper.keep(shown, &mut self.range)?;
        }
        Ok(())
    }

    /// Ends a unit.
    fn close(&mut self, section: &Section<'_>, mut unit: Open) -> Result<(), RunError> {
        if !unit.runs {
            return Ok(());
        }
        self.flush(section, &mut unit)?;
        let record = unit.sum.record();
        self.told.push((section.target.spec.id.clone(), record.counts()));
        self.range.units.push((section.id.clone(), record));
        if self.committed.elapsed() >= gather(self.began.elapsed()) { self.commit() } else { Ok(()) }
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
