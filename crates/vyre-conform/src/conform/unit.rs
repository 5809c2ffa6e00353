//! One unit on one device.

use super::control::Control;
use super::number;
use crate::cases::Cases;
use crate::examine::{Dispatch, Examiner, NotRun, Target};
use crate::ledger::{SectionInfo, UnitRecord};
use crate::plan::{Plan, Unit, What};
use crate::regression::{KEPT, Place, Shown};
use crate::space::Draw;
use crate::unit::UnitSum;
use std::ops::Range;
use vyre_foundation::case::Case;

/// What came of a unit.
pub(crate) struct UnitDone {
    pub record: UnitRecord,
    /// The first of the failures.
    pub shown: Vec<Shown>,
    pub skipped: Option<String>,
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
    control: Option<&Control>,
) -> Result<UnitDone, String> {
    let section = &plan.sections()[unit.section];
    let info = &section.info;
    let salt = number(&[info.id.as_bytes(), &seed.to_le_bytes(), &unit.first.to_le_bytes()]);
    let (spec, program, space) = match &section.what {
        What::Op { spec, program, space } => (plan.spec(*spec), program, space),
        What::Whole(cases) => {
            examiner.flip = control.map(|control| control.flip);
            return examine_whole(info, &**cases, unit, examiner, seed, salt);
        }
    };
    let target = Target::new(spec, program, info.workgroup).map_err(|error| error.to_string())?;
    let draw = Draw { seed, workgroup: info.workgroup };
    let dispatch = |cases: Range<u64>| {
        let mut columns = vec![Vec::new(); spec.signature.inputs.len()];
        let count = (cases.end - cases.start) as usize;
        space.fill(draw, cases, &mut columns);
        Dispatch { cases: count, columns }
    };
    let mut sum = UnitSum::new(unit.first);
    sum.cases(unit.cases);
    let (mut shown, mut skipped) = (Vec::new(), None);
    // Cases that are dispatches of their own go together; others are one dispatch, as far as the device takes so many.
    let step = match target.layout.inputs {
        Some(_) => (target.layout.most_cases(most_groups) as u64).min(unit.cases).max(1),
        None => unit.cases,
    };
    let mut from = unit.first;
    let end = unit.first + unit.cases;
    while from < end && skipped.is_none() {
        let to = end.min(from + step);
        let dispatches: Vec<Dispatch> = match target.layout.inputs {
            Some(_) => vec![dispatch(from..to)],
            None => (from..to).map(|case| dispatch(case..case + 1)).collect(),
        };
        examiner.flip = control.filter(|_| from == unit.first).map(|control| control.flip);
        let mut examined = examiner.examine(&target, dispatches.clone(), salt).map_err(|NotRun(why)| why)?;
        sum.take(&examined, to - from);
        for finding in examined.findings.drain(..).take(KEPT - shown.len().min(KEPT)) {
            let label = (from + finding.case as u64).to_string();
            let place = Place { section: &info.id, alternative: info.alternative.as_deref(), source: &info.space, label };
            shown.push(Shown::new(&target, place, finding, &dispatches));
        }
        skipped = examined.skipped;
        from = to;
    }
    if skipped.is_some() {
        // What was not even asked for is skipped for the same reason.
        sum.skip(end - from);
    }
    Ok(UnitDone { record: sum.record(), shown, skipped })
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
    let all: Vec<Case> = (unit.first..unit.first + unit.cases).map(|number| cases.case(seed, number)).collect();
    let (mut examined, both) = examiner.examine_whole(&all, salt).map_err(|NotRun(why)| why)?;
    let mut sum = UnitSum::new(unit.first);
    sum.cases(unit.cases);
    sum.take(&examined, unit.cases);
    let mut shown = Vec::new();
    for finding in examined.findings.drain(..) {
        let number = finding.case;
        let label = (unit.first + number as u64).to_string();
        let place = Place { section: &info.id, alternative: None, source: &info.space, label };
        shown.push(Shown::whole(&info.op, place, finding, &all[number], &both[number]));
    }
    Ok(UnitDone { record: sum.record(), shown, skipped: examined.skipped })
}
