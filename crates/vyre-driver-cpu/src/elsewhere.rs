//! In place of the compiler, on CPUs that it makes no code for.

use crate::faults::Fault;
use crate::run::{Job, MachineCode, Scratch, Stopped};
use std::ops::Range;
use std::sync::Arc;
use vyre_foundation::kernel::Kernel;

/// Why a kernel is left to the portable evaluator.
#[derive(Clone, Debug)]
pub(crate) struct Refused(pub String);

/// Machine code, of which there is none.
pub(crate) enum Machine {}

impl Machine {
    /// Refuses every kernel.
    pub fn compile(_: &Arc<Kernel>, _: Option<Fault>) -> Result<Machine, Refused> {
        Err(Refused("machine code is for x86-64".into()))
    }
}

impl MachineCode for Machine {
    fn phases(&self) -> u32 {
        match *self {}
    }

    fn context_bytes(&self) -> usize {
        match *self {}
    }

    fn scratch_bytes(&self) -> usize {
        match *self {}
    }

    fn bytes(&self) -> u64 {
        match *self {}
    }

    fn hash(&self) -> [u8; 32] {
        match *self {}
    }

    fn run(&self, _: &Job<'_>, _: Range<u32>, _: &mut Scratch) -> Result<(), Stopped> {
        match *self {}
    }
}

/// What would show the compiler's work.
pub(crate) mod show {
    use vyre_foundation::Report;
    use vyre_foundation::ir::Program;

    /// That there is nothing to decide.
    ///
    /// # Errors
    ///
    /// If the program is not valid.
    pub fn decisions(program: &Program) -> Result<String, Report> {
        let ssa = program.validated().map_err(Clone::clone)?.ssa();
        Ok(format!("; left to the portable evaluator: machine code is for x86-64\n{ssa}"))
    }

    /// That there is no code.
    ///
    /// # Errors
    ///
    /// If the program is not valid.
    #[cfg(feature = "listing")]
    pub fn machine_code(program: &Program) -> Result<String, Report> {
        program.validated().map_err(Clone::clone)?;
        Ok("; left to the portable evaluator: machine code is for x86-64\n".into())
    }
}
