//! Units of a plan on a device, one by one, for whoever keeps the results elsewhere.

use super::control::Control;
use super::reduction::Reductions;
use super::{Tested, examine_and_reduce, gather_unit};
use crate::digest::Digest;
use crate::examine::Examiner;
use crate::ledger::{Places, Range, remark};
use crate::plan::{Plan, Unit};
use crate::regression::Keeper;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use vyre_worker::Subject;

/// A device, and the units that it is asked for.
pub struct Units<'a> {
    plan: &'a Plan,
    tested: &'a Tested<'a>,
    seed: u64,
    examiner: Examiner<'a>,
    reductions: Reductions,
    keeper: Keeper,
    places: Option<Places>,
    stop: &'a AtomicBool,
}

impl<'a> Units<'a> {
    /// On this device, with this seed. Faults are planted at the places that the secret says, if there is one; failing cases are kept as
    /// bundles in the folder, if there is one.
    ///
    /// # Errors
    ///
    /// If no device can be had.
    pub fn new(
        plan: &'a Plan,
        tested: &'a Tested<'a>,
        seed: u64,
        secret: Option<Digest>,
        bundles: Option<PathBuf>,
        stop: &'a AtomicBool,
    ) -> Result<Units<'a>, String> {
        let subjects = tested.forms.iter().map(|form| (tested.make)(form)).collect::<Result<Vec<_>, _>>()?;
        let subjects = subjects.into_iter().map(|subject| subject as Box<dyn Subject + 'a>).collect();
        Ok(Units {
            plan,
            tested,
            seed,
            examiner: Examiner::new(subjects),
            reductions: Reductions::default(),
            keeper: Keeper::new(bundles, &tested.forms[0]),
            places: secret.map(|secret| Places::new(secret, plan.units())),
            stop,
        })
    }

    /// Runs the unit of this number, and once more with a fault if one is planted behind it; adds what came of it.
    ///
    /// # Errors
    ///
    /// Why nothing was learned: no process could be started, or a bundle could not be written.
    pub fn run(&mut self, number: u64, range: &mut Range) -> Result<(), String> {
        let unit = self.plan.unit(number);
        self.part(unit, range)?;
        if let Some(control) = self.places.as_ref().and_then(|places| Control::at(places, number)) {
            let found = control.run(self.plan, unit, &mut self.examiner, self.seed, self.tested.most_groups)?;
            let place = format!("{}:{}", self.plan.sections()[unit.section].info.id, unit.first);
            range.remarks.extend(found.remark().map(|what| (place, remark::CONTROL, what)));
        }
        Ok(())
    }

    /// Runs some cases of a section, without faults.
    ///
    /// # Errors
    ///
    /// As of [`Units::run`].
    pub fn part(&mut self, unit: Unit, range: &mut Range) -> Result<(), String> {
        let Units { plan, tested, seed, examiner, reductions, keeper, stop, .. } = self;
        let done = examine_and_reduce(plan, tested, unit, examiner, *seed, reductions, stop)?;
        gather_unit(&plan.sections()[unit.section].info.id, done, keeper, range).map_err(|error| error.to_string())
    }
}
