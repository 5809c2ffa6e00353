//! What an atomic op leaves in memory.

use crate::apply::binary;
use vyre_spec::{AtomicOp, BinaryOp, FloatMode, Scalar};

/// The new value of an element that holds `old`, or `None` when memory stays as it is: for a load and for a compare-exchange
/// whose comparison fails. `operands` are those of the op's row, beside buffer and index.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_op_leaves_what_its_row_says() {
        let old = u64::from((-5i32) as u32);
        let seven = 7;
        // op, operands, new value as i32, new value as u32
        let table = [
            (AtomicOp::Load, &[][..], None, None),
            (AtomicOp::Store, &[seven], Some(7), Some(7)),
            (AtomicOp::Exchange, &[seven], Some(7), Some(7)),
            (AtomicOp::CompareExchange, &[old, seven], Some(7), Some(7)),
            (AtomicOp::CompareExchange, &[seven, seven], None, None),
            (AtomicOp::Add, &[seven], Some(2), Some(2)),
            (AtomicOp::Sub, &[seven], Some(0xFFFF_FFF4), Some(0xFFFF_FFF4)),
            (AtomicOp::Min, &[seven], Some(old), Some(7)),
            (AtomicOp::Max, &[seven], Some(7), Some(old)),
            (AtomicOp::And, &[seven], Some(3), Some(3)),
            (AtomicOp::Or, &[seven], Some(0xFFFF_FFFF), Some(0xFFFF_FFFF)),
            (AtomicOp::Xor, &[seven], Some(0xFFFF_FFFC), Some(0xFFFF_FFFC)),
        ];
        for (op, operands, signed, unsigned) in table {
            assert_eq!(atomic(op, Scalar::I32, old, operands), signed, "{op} i32");
            assert_eq!(atomic(op, Scalar::U32, old, operands), unsigned, "{op} u32");
            assert_eq!(operands.len(), op.info().operands.len());
        }
    }
}
