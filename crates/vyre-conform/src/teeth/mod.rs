//! What the suite notices: it is run on devices with one fault each, and stops at the first case that shows the fault.
//!
//! A fault was noticed by a unit only if the same device without the fault passes that unit: a mutant that runs out of time where any
//! device would has shown nothing.
//!
//! A rate is only worth something on faults that nothing was tuned on, so it is told for the held-out third, with the interval that a
//! sample of that size allows. Rates are recorded under the hash of the suite that they were measured with ([`recorded`]); for another
//! suite there are none.

mod recorded;

pub use recorded::recorded;

use crate::conform::examine_unit;
use crate::evidence::Killed;
use crate::examine::Examiner;
use crate::mutants::{self, Mutant};
use crate::plan::{Plan, Unit, What};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use vyre_foundation::ir::Program;
use vyre_smith::subjects::subject;
use vyre_worker::Subject;

/// Makes a device that knows nothing of what others have run.
pub type MakeSubject<'a> = Box<dyn Fn() -> Result<Box<dyn Subject>, String> + Sync + 'a>;

/// A device with a fault that the suite is tried on.
pub struct Faulty<'a> {
    /// Its name.
    pub name: String,
    /// What kind of fault it is.
    pub class: String,
    /// Whether nothing may be tuned on it.
    pub held_out: bool,
    /// It as a subject, which knows nothing of what others have run.
    pub make: MakeSubject<'a>,
    /// The device without the fault.
    pub right: MakeSubject<'a>,
    /// Whether the fault can show in a program at all.
    pub applies: Box<dyn Fn(&Program) -> bool + Sync + 'a>,
}

impl<'a> Faulty<'a> {
    /// A device of this class and name. Whether it is held out is drawn from the name.
    pub fn new(
        class: &str,
        name: &str,
        make: impl Fn() -> Result<Box<dyn Subject>, String> + Sync + 'a,
        right: impl Fn() -> Result<Box<dyn Subject>, String> + Sync + 'a,
        applies: impl Fn(&Program) -> bool + Sync + 'a,
    ) -> Faulty<'a> {
        let name = format!("{class}/{name}");
        let held_out = mutants::is_held_out(&name);
        Faulty { class: class.into(), held_out, name, make: Box::new(make), right: Box::new(right), applies: Box::new(applies) }
    }
}

impl From<&'static Mutant> for Faulty<'static> {
    fn from(mutant: &'static Mutant) -> Self {
        Faulty {
            name: mutant.name.clone(),
            class: mutant.class.name().into(),
            held_out: mutant.held_out,
            make: Box::new(|| Ok(mutant.subject())),
            right: Box::new(|| subject("bulk").map_err(|unknown| unknown.to_string())),
            applies: Box::new(|program| mutant.applies(program)),
        }
    }
}

/// What came of one mutant.
#[derive(Clone, Debug)]
pub struct Bite {
    /// Its name.
    pub mutant: String,
    /// Its class.
    pub class: String,
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
    mutants: &[Faulty<'_>],
    seed: u64,
    threads: usize,
    stop: &AtomicBool,
    tell: &(dyn Fn(&Bite) + Sync),
) -> Vec<Bite> {
    let next = AtomicUsize::new(0);
    let order = order(plan);
    let bites = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(mutant) = mutants.get(number).filter(|_| !stop.load(Ordering::Relaxed)) else { return };
                    let bite = bite(plan, &order, mutant, seed, stop);
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

/// The units in the order in which mutants get them: first one unit of each section, and of those what finds many faults in little time.
/// Whether a fault is found does not depend on it, only how soon.
fn order(plan: &Plan) -> Vec<Unit> {
    const SOON: [&str; 4] = ["checks.", "twins.", "resident", "atomic."];
    let place = |unit: &Unit| {
        let op = &plan.sections()[unit.section].info.op;
        (unit.first > 0, SOON.iter().position(|begin| op.starts_with(begin)).unwrap_or(SOON.len()))
    };
    let mut units: Vec<Unit> = (0..plan.units()).map(|number| plan.unit(number)).collect();
    units.sort_by_key(place);
    units
}

fn bite(plan: &Plan, order: &[Unit], mutant: &Faulty<'_>, seed: u64, stop: &AtomicBool) -> Bite {
    let began = Instant::now();
    let (mut units, mut killed_by) = (0, None);
    let Faulty { name, class, held_out, .. } = mutant;
    let told = |units, killed_by| Bite {
        mutant: name.clone(),
        class: class.clone(),
        held_out: *held_out,
        killed_by,
        units,
        took: began.elapsed(),
    };
    let mut examiner = match (mutant.make)() {
        Ok(subject) => Examiner::of_faulty(subject),
        Err(why) => return told(0, (mutant.right)().is_ok().then(|| format!("not started: {why}"))),
    };
    // Sections of one program follow each other, so the answer of the last one is remembered.
    let mut last: Option<(*const Program, bool)> = None;
    for &unit in order {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let section = &plan.sections()[unit.section];
        let program = match &section.what {
            What::Op { program, .. } | What::Law { program, .. } => Some(&**program),
            What::Whole(cases) => cases.program(),
        };
        if let Some(program) = program {
            let place = std::ptr::from_ref(program);
            let applies = match last {
                Some((before, applies)) if before == place => applies,
                _ => (mutant.applies)(program),
            };
            last = Some((place, applies));
            if !applies {
                continue;
            }
        }
        units += 1;
        // A device that cannot even be run has been noticed as well.
        let passes = |examiner: &mut Examiner<'_>| {
            examine_unit(plan, unit, examiner, seed, u64::from(u32::MAX), None).is_ok_and(|done| done.record.failed == 0)
        };
        if !passes(&mut examiner) && (mutant.right)().is_ok_and(|right| passes(&mut Examiner::of_faulty(right))) {
            killed_by = Some(format!("{}:{}", section.info.id, unit.first));
            break;
        }
    }
    told(units, killed_by)
}

/// The rates by class, over the held-out mutants or all of them.
#[must_use]
pub fn rates(bites: &[Bite], held_out_only: bool) -> BTreeMap<String, Killed> {
    let mut rates: BTreeMap<String, Killed> = BTreeMap::new();
    for bite in bites.iter().filter(|bite| bite.held_out || !held_out_only) {
        let rate = rates.entry(bite.class.clone()).or_default();
        rate.of += 1;
        rate.killed += u64::from(bite.killed_by.is_some());
    }
    rates
}
