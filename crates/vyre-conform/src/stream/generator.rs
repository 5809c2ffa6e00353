//! Generators of the user's own.

use crate::spec::OpSignature;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Gives cases, in an order of its own, the same ones each time it is asked with the same arguments.
pub trait InputGenerator: Send {
    /// Its name in reports.
    fn name(&self) -> &str;

    /// Whether it has cases for ops of this signature.
    fn handles(&self, signature: &OpSignature) -> bool;

    /// Calls `each` with the name and the bytes of every case: its elements of each input, one input after the other.
    fn generate_for_op_streaming(&self, op: &str, signature: &OpSignature, seed: u64, each: &mut dyn FnMut(String, Vec<u8>));
}

/// How a generator ended.
pub(super) enum Ended<E> {
    /// By itself, or because `each` said that it is enough.
    Done,
    /// `each` failed.
    Failed(E),
    /// It panicked.
    Panicked(String),
}

/// Calls `each` with every case until it fails or says false. What a panic inside `each` says is not a generator's fault and goes on.
pub(super) fn generate<E>(
    generator: &dyn InputGenerator,
    op: &str,
    signature: &OpSignature,
    seed: u64,
    mut each: impl FnMut(String, Vec<u8>) -> Result<bool, E>,
) -> Ended<E> {
    let (mut failed, mut inner, mut is_enough) = (None, None, false);
    let outcome = vyre_worker::caught(|| {
        generator.generate_for_op_streaming(op, signature, seed, &mut |label, bytes| {
            match catch_unwind(AssertUnwindSafe(|| each(label, bytes))) {
                Ok(Ok(true)) => return,
                Ok(Ok(false)) => {}
                Ok(Err(error)) => failed = Some(error),
                Err(panic) => inner = Some(panic),
            }
            is_enough = true;
            resume_unwind(Box::new("enough"));
        });
    });
    if let Some(panic) = inner {
        resume_unwind(panic);
    }
    match (failed, outcome) {
        (Some(error), _) => Ended::Failed(error),
        (None, Err(said)) if !is_enough => Ended::Panicked(said),
        (None, _) => Ended::Done,
    }
}
