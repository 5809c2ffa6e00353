//! A program's identity as devices take it, and what can be asked of a launch beside what `vyre_foundation::launch` checks.

use crate::backend::{BackendError, DispatchConfig};
use vyre_foundation::determinism::Determinism;
use vyre_foundation::ir::Program;

/// The fingerprint as eight words, the first bytes first.
#[must_use]
pub fn program_vsa_fingerprint_words(program: &Program) -> [u32; 8] {
    let bytes = program.fingerprint();
    std::array::from_fn(|word| u32::from_le_bytes(std::array::from_fn(|byte| bytes[4 * word + byte])))
}

/// Refuses a program, its constants replaced, whose bytes are not proven the same under every schedule, if the config asks for that.
/// Without a grid only what holds for no grid at all is refused; every real backend asks again when it knows the grid.
pub fn require_determinism(program: &Program, grid: Option<[u32; 3]>, config: &DispatchConfig) -> Result<(), BackendError> {
    if config.require_deterministic != Some(true) {
        return Ok(());
    }
    let determinism = program.determinism().map_err(Clone::clone)?;
    let reason = match determinism {
        Determinism::CrossBackend { .. } if grid.is_none_or(|grid| determinism.holds_for(grid)) => return Ok(()),
        Determinism::CrossBackend { .. } => "the grid has extents that its indices leave out",
        Determinism::Unproven(reason) => &reason.message,
    };
    Err(BackendError::InvalidProgram {
        fix: format!(
            "the bytes of this program are not proven the same under every schedule: {reason}. \
             Fix: write where only one invocation writes, or do without `require_deterministic`"
        ),
    })
}
