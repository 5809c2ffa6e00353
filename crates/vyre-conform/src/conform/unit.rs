//! One unit on one device.

use crate::cases::{Cases, Work};
use crate::digest::Digest;
use crate::examine::{Dispatch, Examiner, Flip, NotRun, Target};
use crate::ledger::{SectionInfo, UnitRecord};
use crate::plan::{Plan, Unit, What};
use crate::regression::{KEPT, Place, Shown};
use crate::space::{Draw, Space};
use crate::spec::OpSpec;
use crate::unit::UnitSum;
use std::ops::Range;
use vyre_foundation::case::Case;
use vyre_foundation::ir::Program;

/// What came of a unit.
pub(crate) struct UnitDone {
    pub record: UnitRecord,
    /// The first of the failures.
    pub shown: Vec<Shown>,
    pub skipped: Option<String>,
    /// Why cases of it were given up: they are neither judged nor skipped.
    pub given_up: Option<String>,
}

/// Runs and judges a unit.
///
/// # Errors
///
/// Why nothing was learned: no process could be started, or the spec cannot be run at all.
pub(crate) fn examine(
    plan: &Plan,
    unit: Unit,
    examiner: &mut Examiner<'_>,
    seed: u64,
    most_groups: u64,
    flip: Option<Flip>,
) -> Result<UnitDone, String> {
    let section = &plan.sections()[unit.section];
    let info = &section.info;
    let salt = salt(plan, unit, seed);
    examiner.flip = flip;
    if let Some(why) = examiner.begin(&info.id, &info.op) {
        let mut sum = UnitSum::new(unit.first);
        sum.cases(unit.cases);
        return Ok(UnitDone { record: sum.record(), shown: Vec::new(), skipped: None, given_up: Some(why) });
    }
    let (cases, is_law) = match &section.what {
        What::Op { spec, program, space } => (OpCases::new(plan.spec(*spec), program, &**space, info, seed)?, false),
        What::Law { spec, program, space } => (OpCases::new(plan.spec(*spec), program, &**space, info, seed)?, true),
        What::Whole(cases) => return examine_whole(info, &**cases, unit, examiner, seed, salt),
    };
    let mut sum = UnitSum::new(unit.first);
    sum.cases(unit.cases);
    let (mut shown, mut skipped, mut given_up) = (Vec::new(), None, None);
    let step = cases.step(unit, most_groups);
    let mut from = unit.first;
    let end = unit.first + unit.cases;
    while from < end && skipped.is_none() && given_up.is_none() {
        let to = end.min(from + step);
        let dispatches = cases.dispatches(from..to);
        let examined = match is_law {
            false => examiner.examine(&cases.target, dispatches.clone(), salt),
            true => examiner.examine_law(&cases.target, &dispatches[0], salt),
        };
        let mut examined = examined.map_err(|NotRun(why)| why)?;
        sum.take(&examined, to - from);
        for finding in examined.findings.drain(..).take(KEPT - shown.len().min(KEPT)) {
            let label = (from + finding.case as u64).to_string();
            let place = Place { section: &info.id, alternative: info.alternative.as_deref(), source: &info.space, label };
            let is_first = shown.is_empty();
            shown.push(match is_law {
                false => {
                    let mut shown = Shown::new(&cases.target, place, finding, &dispatches);
                    if let ([dispatch], true) = (dispatches.as_slice(), is_first) {
                        shown.dispatch = cases.target.case(dispatch).ok().filter(|_| dispatch.cases > 1);
                    }
                    shown
                }
                true => Shown::of_law(&cases.target, place, finding, &dispatches[0]),
            });
        }
        (skipped, given_up) = (examined.skipped, examined.given_up);
        from = to;
    }
    if skipped.is_some() {
        // What was not even asked for is skipped for the same reason.
        sum.skip(end - from);
    }
    Ok(UnitDone { record: sum.record(), shown, skipped, given_up })
}

/// What decides about a unit what is changed for its second dispatch, and which cases the reference sees.
pub(super) fn salt(plan: &Plan, unit: Unit, seed: u64) -> u64 {
    let section = &plan.sections()[unit.section].info.id;
    Digest::of([section.as_bytes(), &seed.to_le_bytes(), &unit.first.to_le_bytes()]).number()
}

/// The first dispatches of a unit as cases, to see what a device makes of them; none if the unit has programs of its own.
pub(super) fn first_cases(plan: &Plan, unit: Unit, seed: u64, most_groups: u64) -> Vec<Case> {
    let section = &plan.sections()[unit.section];
    let What::Op { spec, program, space } = &section.what else { return Vec::new() };
    let Ok(cases) = OpCases::new(plan.spec(*spec), program, &**space, &section.info, seed) else { return Vec::new() };
    let end = unit.first + cases.step(unit, most_groups).min(unit.cases);
    cases.dispatches(unit.first..end).iter().filter_map(|dispatch| cases.target.case(dispatch).ok()).collect()
}

/// Cases of an op, ready to be dispatched.
struct OpCases<'a> {
    target: Target<'a>,
    space: &'a dyn Space,
    draw: Draw,
}

impl<'a> OpCases<'a> {
    fn new(spec: &'a OpSpec, program: &'a Program, space: &'a dyn Space, info: &SectionInfo, seed: u64) -> Result<Self, String> {
        let target = Target::new(spec, program, info.workgroup).map_err(|error| error.to_string())?;
        Ok(OpCases { target, space, draw: Draw { seed, workgroup: info.workgroup } })
    }

    /// Cases that go together: those that are dispatches of their own all of them, others as many as a dispatch can have.
    fn step(&self, unit: Unit, most_groups: u64) -> u64 {
        match self.target.layout.inputs {
            Some(_) => (self.target.layout.most_cases(most_groups) as u64).min(unit.cases).max(1),
            None => unit.cases,
        }
    }

    fn dispatches(&self, cases: Range<u64>) -> Vec<Dispatch> {
        let dispatch = |cases: Range<u64>| {
            let mut columns = vec![Vec::new(); self.target.spec.signature.inputs.len()];
            let count = (cases.end - cases.start) as usize;
            self.space.fill(self.draw, cases, &mut columns);
            Dispatch { cases: count, columns }
        };
        match self.target.layout.inputs {
            Some(_) => vec![dispatch(cases)],
            None => cases.map(|case| dispatch(case..case + 1)).collect(),
        }
    }
}

/// Runs and judges dispatches with programs of their own.
fn examine_whole(
    info: &SectionInfo,
    cases: &dyn Cases,
    unit: Unit,
    examiner: &mut Examiner<'_>,
    seed: u64,
    salt: u64,
) -> Result<UnitDone, String> {
    let mut sum = UnitSum::new(unit.first);
    sum.cases(unit.cases);
    if let Some(why) = cases.lacking() {
        sum.skip(unit.cases);
        return Ok(UnitDone { record: sum.record(), shown: Vec::new(), skipped: Some(why), given_up: None });
    }
    let numbers = unit.first..unit.first + unit.cases;
    let all: Vec<Work> = numbers.clone().map(|number| cases.case(seed, number)).collect();
    let judges = numbers.map(|number| cases.judge(seed, number)).collect();
    let (mut examined, both) = examiner.examine_whole(&all, judges, salt).map_err(|NotRun(why)| why)?;
    sum.take(&examined, unit.cases);
    let mut shown = Vec::new();
    for finding in examined.findings.drain(..) {
        let number = finding.case;
        let label = (unit.first + number as u64).to_string();
        let place = Place { section: &info.id, alternative: None, source: &info.space, label };
        shown.push(Shown::whole(&info.op, place, finding, &all[number], &both[number]));
    }
    Ok(UnitDone { record: sum.record(), shown, skipped: examined.skipped, given_up: examined.given_up })
}
