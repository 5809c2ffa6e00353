//! From a kernel to machine code.

use std::sync::Arc;
use vyre_foundation::kernel::Kernel;

/// Why a kernel is left to the portable evaluator.
#[derive(Clone, Debug)]
pub(crate) struct Refused(pub String);

/// A kernel as machine code.
pub(crate) struct Machine {}

impl Machine {
    /// Compiles a kernel.
    pub fn compile(_: &Arc<Kernel>) -> Result<Machine, Refused> {
        Err(Refused("the compiler is not there yet".into()))
    }
}
