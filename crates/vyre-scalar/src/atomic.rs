//! What an atomic op leaves in memory.

use crate::apply::binary;
use vyre_spec::{AtomicOp, BinaryOp, FloatMode, Scalar};

/// The new value of an element that holds `old`, or `None` when memory stays as it is: for a load and for a compare-exchange whose
/// comparison fails. `operands` are those of the op's row, beside buffer and index.
///
/// # Panics
///
/// When there are fewer operands than the op's row says.
#[inline]
#[must_use]
pub fn atomic(op: AtomicOp, ty: Scalar, old: u64, operands: &[u64]) -> Option<u64> {
    // Atomics are on integers, which have no float mode.
    let combined = |op| Some(binary(op, ty, FloatMode::Ieee, old, operands[0]));
    match op {
        AtomicOp::Load => None,
        AtomicOp::Store | AtomicOp::Exchange => Some(operands[0]),
        AtomicOp::CompareExchange => (old == operands[0]).then_some(operands[1]),
        AtomicOp::Add => combined(BinaryOp::Add),
        AtomicOp::Sub => combined(BinaryOp::Sub),
        AtomicOp::Min => combined(BinaryOp::Min),
        AtomicOp::Max => combined(BinaryOp::Max),
        AtomicOp::And => combined(BinaryOp::BitAnd),
        AtomicOp::Or => combined(BinaryOp::BitOr),
        AtomicOp::Xor => combined(BinaryOp::BitXor),
    }
}
