//! Cases that are whole dispatches with programs of their own: generated programs and kernels of the user's over generated inputs, which
//! the plain interpreter judges; check files, which say themselves what comes out; litmus tests, of which several outcomes are right;
//! what is larger than 31 bits; programs that differ in hardly anything; and dispatches that follow each other over resident buffers.

mod checks;
mod kernel;
mod large;
mod litmus;
mod programs;
mod sequences;
mod twins;

pub use checks::CheckCases;
pub use kernel::KernelCases;
pub use large::LargeCases;
pub use litmus::LitmusCases;
pub use programs::ProgramCases;
pub use sequences::SequenceCases;
pub use twins::TwinCases;

use crate::plan::Tier;
use crate::space::Evidence;
use std::sync::Arc;
use vyre_foundation::case::Case;
use vyre_foundation::ir::Program;
use vyre_worker::{Failure, Outputs, Sequence};

/// What a case is.
#[derive(Clone, PartialEq, Debug)]
pub enum Work {
    /// One dispatch.
    Dispatch(Case),
    /// Dispatches over buffers that stay where they are in between. What comes out is what all of the buffers hold at the end.
    Sequence(Sequence),
}

impl From<Case> for Work {
    fn from(case: Case) -> Self {
        Work::Dispatch(case)
    }
}

/// Who says what must come of a case.
#[derive(Clone)]
pub enum Judge {
    /// The reference, which runs it.
    Reference,
    /// Whoever made the case; the reference is asked now and then.
    Stated(Result<Outputs, Failure>),
    /// Whoever made the case, and more than one outcome is right.
    Allowed(Allowed),
}

/// Says why outputs are not those of an outcome that is allowed.
pub type Check = Arc<dyn Fn(&[Vec<u8>]) -> Result<(), String> + Send + Sync>;

/// Outcomes that are right.
#[derive(Clone)]
pub struct Allowed {
    /// Looks at outputs.
    pub check: Check,
    /// An output and a byte of it whose highest bit is never set in an outcome that is allowed: what a control flips.
    pub never_set: (usize, usize),
}

/// All that belongs to the suite: generated programs, check files, litmus tests, large buffers and grids, programs that are nearly the
/// same, dispatches over resident buffers.
#[must_use]
pub fn all() -> Vec<Arc<dyn Cases>> {
    let programs = ProgramCases::all().into_iter().map(|cases| Arc::new(cases) as Arc<dyn Cases>);
    let checks = CheckCases::all().into_iter().map(|cases| Arc::new(cases) as Arc<dyn Cases>);
    let litmus = LitmusCases::all().into_iter().map(|cases| Arc::new(cases) as Arc<dyn Cases>);
    let large = LargeCases::all().into_iter().map(|cases| Arc::new(cases) as Arc<dyn Cases>);
    let twins = TwinCases::all().into_iter().map(|cases| Arc::new(cases) as Arc<dyn Cases>);
    let sequences = SequenceCases::all().into_iter().map(|cases| Arc::new(cases) as Arc<dyn Cases>);
    programs.chain(checks).chain(litmus).chain(large).chain(twins).chain(sequences).collect()
}

/// Dispatches by number.
pub trait Cases: Send + Sync {
    /// The op, as a query takes it: `programs.deep`, `kernel.blur`.
    fn op(&self) -> &str;

    /// One word for where the cases come from.
    fn space(&self) -> &str;

    /// How many there are.
    fn cases(&self) -> u64;

    /// What it proves that all of them pass.
    fn evidence(&self) -> Evidence {
        Evidence::Sampled
    }

    /// What a device must be capable of to be asked, or `mixed` if that differs from case to case.
    fn profile(&self) -> String;

    /// The smallest tier that they belong to.
    fn first_tier(&self) -> Tier {
        Tier::Smoke
    }

    /// Whether what is right depends on the order in which a device happens to do things.
    fn is_order_dependent(&self) -> bool {
        false
    }

    /// What this machine lacks for them to be made, if it does: they are skipped then.
    fn lacking(&self) -> Option<String> {
        None
    }

    /// The program, if all of them have the same one and no constants in it.
    fn program(&self) -> Option<&Program> {
        None
    }

    /// What identifies them beside their names, for the hash of the suite.
    fn identity(&self) -> Vec<u8>;

    /// The case of this number.
    fn case(&self, seed: u64, number: u64) -> Work;

    /// Who says what must come of it.
    fn judge(&self, _seed: u64, _number: u64) -> Judge {
        Judge::Reference
    }
}
