//! A program's identity as devices take it, and what can be asked of a launch beside what `vyre_foundation::launch` checks.

use crate::backend::{BackendError, DispatchConfig};
use vyre_foundation::analysis::determinism::Proof;
use vyre_foundation::ir::Program;
use vyre_foundation::launch::Launch;

/// The fingerprint as eight words, the first bytes first.
#[must_use]
pub fn program_vsa_fingerprint_words(program: &Program) -> [u32; 8] {
    let bytes = program.fingerprint();
    std::array::from_fn(|word| u32::from_le_bytes(std::array::from_fn(|byte| bytes[4 * word + byte])))
}

/// What is known of a dispatch when its proof of determinism is asked for.
#[derive(Clone, Copy)]
pub enum Planned<'a> {
    /// Nothing but the grid, if that.
    Grid(Option<[u32; 3]>),
    /// Its shape, and its inputs in the order of the interface; those that are not at hand are empty.
    Launch(&'a Launch, &'a [&'a [u8]]),
}

/// Refuses a program, its constants replaced, whose bytes are not proven the same under every schedule, if the config asks for that.
/// Before the launch is planned only what holds for no launch at all is refused; every real backend asks again when it knows.
pub fn require_determinism(program: &Program, planned: Planned<'_>, config: &DispatchConfig) -> Result<(), BackendError> {
    if config.require_deterministic != Some(true) {
        return Ok(());
    }
    let proof = match planned {
        Planned::Launch(launch, inputs) => program.proof_for(launch, inputs),
        Planned::Grid(Some(grid)) => program.proof_for_grid(grid),
        // A grid without workgroups meets every condition.
        Planned::Grid(None) => program.proof_for_grid([0; 3]),
    };
    let (reason, fix) = match proof.map_err(Clone::clone)? {
        Proof::Holds => return Ok(()),
        Proof::Unmet(condition) => (
            format!("that needs `{}`, which this launch does not meet or does not determine", condition.text),
            "change the launch so that it meets that condition",
        ),
        Proof::Missing(reason) => (reason.message.clone(), reason.help),
    };
    Err(BackendError::InvalidProgram {
        fix: format!(
            "the bytes of this program are not proven the same under every schedule: {reason}. \
             Fix: {fix}, or do without `require_deterministic`"
        ),
    })
}
