//! Litmus tests: a few invocations, a few atomics or barriers, and every outcome that the language allows.
//!
//! A test is straight-line code for two invocations over one or two locations ([`LITMUS`]). Thousands of copies of it run in one dispatch, the
//! two invocations of a copy in different workgroups or, around a barrier, in one; what each copy saw is counted.
//!
//! What is allowed is computed ([`Litmus::allowed`]): atomics are relaxed, so those of one invocation on different locations may be seen in any
//! order, and those on one location may not; a barrier orders everything within its workgroup. So every order of each invocation's own
//! steps that keeps this, and of each of them every interleaving, is run on the reference. An outcome outside that set is a failure. One that is
//! allowed and never seen is told, and is not: no device has to be weak.

mod program;
mod run;
mod table;

pub use program::Stress;
pub use run::{LitmusError, LitmusReport, run};
pub use table::LITMUS;

use std::collections::BTreeSet;
use std::fmt;
use vyre_foundation::case::Case;

/// A location of a test: 0 is `x`, 1 is `y`.
pub type Location = u8;

/// One step of an invocation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// An atomic store.
    Store(Location, u32),
    /// An atomic load into the next register.
    Load(Location),
    /// An atomic add of this; the old value goes into the next register.
    Add(Location, u32),
    /// An atomic exchange with this; the old value goes into the next register.
    Exchange(Location, u32),
    /// An atomic compare-exchange of 0 with this; the old value goes into the next register.
    Claim(Location, u32),
    /// A plain store. Only where a barrier orders it.
    PlainStore(Location, u32),
    /// A plain load into the next register. Only where a barrier orders it.
    PlainLoad(Location),
    /// Both invocations wait for each other.
    Barrier,
}

impl Step {
    fn location(self) -> Option<Location> {
        match self {
            Step::Store(at, _)
            | Step::Load(at)
            | Step::Add(at, _)
            | Step::Exchange(at, _)
            | Step::Claim(at, _)
            | Step::PlainStore(at, _)
            | Step::PlainLoad(at) => Some(at),
            Step::Barrier => None,
        }
    }

    fn is_read(self) -> bool {
        match self {
            Step::Load(_) | Step::Add(..) | Step::Exchange(..) | Step::Claim(..) | Step::PlainLoad(_) => true,
            Step::Store(..) | Step::PlainStore(..) | Step::Barrier => false,
        }
    }

    /// Whether others may see the two in the other order.
    fn may_pass(self, other: Step) -> bool {
        matches!((self.location(), other.location()), (Some(one), Some(another)) if one != another)
    }
}

/// Where the two invocations of a copy are, and what they share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// In two workgroups, over storage.
    Workgroups,
    /// In one workgroup, over storage.
    Storage,
    /// In one workgroup, over its memory.
    WorkgroupMemory,
}

/// A litmus test.
#[derive(Clone, Copy, Debug)]
pub struct Litmus {
    /// Its name in the literature, and the variant: `MP`, `MP.barrier.workgroup`.
    pub name: &'static str,
    /// What is looked for.
    pub about: &'static str,
    /// Where it happens.
    pub place: Place,
    /// The steps of both invocations. Registers are numbered through: those of the first come first.
    pub threads: [&'static [Step]; 2],
}

/// What a copy of a test saw: its registers, then what is left in its locations.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Outcome {
    /// By number.
    pub registers: Vec<u32>,
    /// `x`, then `y`.
    pub memory: Vec<u32>,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let registers = self.registers.iter().enumerate().map(|(n, value)| format!("r{n}={value}"));
        let memory = self.memory.iter().zip(["x", "y"]).map(|(value, name)| format!("{name}={value}"));
        f.write_str(&registers.chain(memory).collect::<Vec<_>>().join(" "))
    }
}

impl Litmus {
    /// The test of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Litmus> {
        LITMUS.iter().find(|litmus| litmus.name == name)
    }

    /// Locations that it uses.
    fn locations(&self) -> usize {
        let steps = self.threads.iter().flat_map(|steps| steps.iter());
        steps.filter_map(|step| step.location()).max().map_or(0, |last| usize::from(last) + 1)
    }

    /// Registers that it uses.
    fn registers(&self) -> usize {
        self.threads.iter().flat_map(|steps| steps.iter()).filter(|step| step.is_read()).count()
    }

    /// The steps of both invocations, each with the register that it reads into.
    fn numbered(&self) -> [Vec<Numbered>; 2] {
        let mut next = 0;
        self.threads.map(|steps| {
            let number = |step: &Step| {
                let register = step.is_read().then_some(next);
                next += usize::from(step.is_read());
                Numbered { step: *step, register }
            };
            steps.iter().map(number).collect()
        })
    }

    /// A dispatch of many copies of it.
    ///
    /// # Errors
    ///
    /// If the parameters cannot be used.
    pub(crate) fn case(&self, stress: &Stress) -> Result<Case, LitmusError> {
        run::case(self, stress)
    }

    /// What the copies of such a dispatch saw, from its outputs.
    ///
    /// # Errors
    ///
    /// If they are not its outputs.
    pub(crate) fn seen(&self, stress: &Stress, outputs: &[Vec<u8>]) -> Result<Vec<Outcome>, LitmusError> {
        run::seen(self, stress, outputs)
    }

    /// Every outcome that the language allows, from the reference.
    ///
    /// # Errors
    ///
    /// A test that the reference does not run as it stands in the table.
    pub fn allowed(&self) -> Result<BTreeSet<Outcome>, LitmusError> {
        run::allowed(self)
    }
}

/// A step, and the register that it reads into.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Numbered {
    step: Step,
    register: Option<usize>,
}

/// Every order of an invocation's steps that others may see.
fn orders(steps: &[Numbered]) -> Vec<Vec<Numbered>> {
    if steps.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for first in 0..steps.len() {
        if steps[..first].iter().all(|before| before.step.may_pass(steps[first].step)) {
            let mut rest = steps.to_vec();
            let step = rest.remove(first);
            all.extend(orders(&rest).into_iter().map(|order| [&[step][..], &order].concat()));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_pass_each_other_on_other_locations_only() {
        let numbered = |steps: &[Step]| steps.iter().map(|step| Numbered { step: *step, register: None }).collect::<Vec<_>>();
        let count = |steps: &[Step]| orders(&numbered(steps)).len();
        assert_eq!(count(&[Step::Store(0, 1), Step::Store(1, 1)]), 2);
        assert_eq!(count(&[Step::Store(0, 1), Step::Load(0)]), 1);
        assert_eq!(count(&[Step::Store(0, 1), Step::Barrier, Step::Store(1, 1)]), 1);
        assert_eq!(count(&[Step::Store(0, 1), Step::Store(1, 1), Step::Load(0)]), 3);
    }
}
