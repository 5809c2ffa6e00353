//! What the suite notices: it is run on devices with one fault each, and stops at the first case that shows the fault.
//!
//! A rate is only worth something on faults that nothing was tuned on, so it is told for the held-out third, with the interval that a
//! sample of that size allows. Rates are recorded under the hash of the suite that they were measured with ([`recorded`]); for another
//! suite there are none.

mod recorded;

pub use recorded::recorded;

use crate::conform::examine_unit;
use crate::evidence::Killed;
use crate::examine::Examiner;
use crate::mutants::{Class, Mutant};
use crate::plan::{Plan, What};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// What came of one mutant.
#[derive(Clone, Debug)]
pub struct Bite {
    /// Its name.
    pub mutant: String,
    /// Its class.
    pub class: Class,
    /// Whether nothing may be tuned on it.
    pub held_out: bool,
    /// The unit that found it out; `None` if none did.
    pub killed_by: Option<String>,
    /// Units that it took.
    pub units: u64,
    /// How long.
    pub took: Duration,
}

/// Runs a plan on each mutant until one of its cases fails. Units whose programs a mutant cannot touch are left out: it runs them right.
///
/// Bites come in the order of the mutants; those that were not begun when `stop` became true are missing.
pub fn measure(
    plan: &Plan,
    mutants: &[&'static Mutant],
    seed: u64,
    threads: usize,
    stop: &AtomicBool,
    tell: &(dyn Fn(&Bite) + Sync),
) -> Vec<Bite> {
    let next = AtomicUsize::new(0);
    let bites = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(mutant) = mutants.get(number).filter(|_| !stop.load(Ordering::Relaxed)) else { return };
                    let bite = bite(plan, mutant, seed, stop);
                    tell(&bite);
                    if let Ok(mut bites) = bites.lock() {
                        bites.insert(number, bite);
                    }
                }
            });
        }
    });
    bites.into_inner().unwrap_or_default().into_values().collect()
}

fn bite(plan: &Plan, mutant: &Mutant, seed: u64, stop: &AtomicBool) -> Bite {
    let began = Instant::now();
    let mut examiner = Examiner::of_mutant(mutant);
    let (mut units, mut killed_by) = (0, None);
    // Sections of one program follow each other, so the answer of the last one is remembered.
    let mut last: Option<(*const vyre_foundation::ir::Program, bool)> = None;
    for number in 0..plan.units() {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let unit = plan.unit(number);
        let section = &plan.sections()[unit.section];
        let program = match &section.what {
            What::Op { program, .. } | What::Law { program, .. } => Some(&**program),
            What::Whole(cases) => cases.program(),
        };
        if let Some(program) = program {
            let place = std::ptr::from_ref(program);
            let applies = match last {
                Some((before, applies)) if before == place => applies,
                _ => mutant.applies(program),
            };
            last = Some((place, applies));
            if !applies {
                continue;
            }
        }
        units += 1;
        let outcome = examine_unit(plan, unit, &mut examiner, seed, u64::from(u32::MAX), None);
        // A device that cannot even be run has been noticed as well.
        if outcome.is_err() || outcome.is_ok_and(|done| done.record.failed > 0) {
            killed_by = Some(format!("{}:{}", section.info.id, unit.first));
            break;
        }
    }
    let Mutant { name, class, held_out, .. } = mutant;
    Bite { mutant: name.clone(), class: *class, held_out: *held_out, killed_by, units, took: began.elapsed() }
}

/// The rates by class, over the held-out mutants or all of them.
#[must_use]
pub fn rates(bites: &[Bite], held_out_only: bool) -> BTreeMap<String, Killed> {
    let mut rates: BTreeMap<String, Killed> = BTreeMap::new();
    for bite in bites.iter().filter(|bite| bite.held_out || !held_out_only) {
        let rate = rates.entry(bite.class.name().into()).or_default();
        rate.of += 1;
        rate.killed += u64::from(bite.killed_by.is_some());
    }
    rates
}
