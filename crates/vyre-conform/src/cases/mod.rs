//! Cases that are whole dispatches with programs of their own, judged by the plain interpreter: generated programs, and kernels of the
//! user's over generated inputs.

mod kernel;
mod programs;

pub use kernel::KernelCases;
pub use programs::ProgramCases;

use crate::space::Evidence;
use vyre_foundation::case::Case;

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

    /// What identifies them beside their names, for the hash of the suite.
    fn identity(&self) -> Vec<u8>;

    /// The case of this number.
    fn case(&self, seed: u64, number: u64) -> Case;
}
