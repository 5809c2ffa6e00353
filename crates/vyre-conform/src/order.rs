//! Whether a dispatch has one result, whatever the order of its invocations: only then do the bytes of two devices have to be equal.

use vyre_foundation::analysis::determinism::Proof;
use vyre_foundation::case::Case;
use vyre_reference::checked::{Effort, check};
use vyre_reference::{Options, RunError};

/// What is known about the order of a dispatch's invocations.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Order {
    /// It does not show.
    Hidden,
    /// It may show; why that is thought.
    Shows(String),
}

/// Looks for a proof first, which costs nothing, and else runs the dispatch in the checked mode.
///
/// # Errors
///
/// The text of the reference's refusal.
pub(crate) fn of(case: &Case) -> Result<Order, String> {
    let program = case.specialized().map_err(|report| report.to_string())?;
    let launch = case.plan().map_err(|report| report.to_string())?;
    let inputs = case.input_slices();
    if program.proof_for(&launch, &inputs).is_ok_and(|proof| proof == Proof::Holds) {
        return Ok(Order::Hidden);
    }
    match check(&case.program, &inputs, &Options::from(case), &Effort::default()) {
        Ok(report) if report.holds() && report.exhaustive() => Ok(Order::Hidden),
        Ok(report) if report.holds() => Ok(Order::Shows(report.gap.map_or_else(String::new, |gap| gap.to_string()))),
        Ok(report) => Ok(Order::Shows(format!("the dispatch is {}", report.verdict))),
        Err(error @ (RunError::OutOfFuel { .. } | RunError::Timeout | RunError::Cancelled)) => {
            Ok(Order::Shows(error.to_string()))
        }
        Err(error @ (RunError::Rejected(_) | RunError::Trap { .. })) => Err(error.to_string()),
    }
}
