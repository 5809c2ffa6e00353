//! Divisions by powers of two as what they are: shifts and masks.
//!
//! Programs find rows and columns with them, `lid.x / 16` and `lid.x % 16`. As shifts they are one instruction, and what is known of masks is
//! known of them too. Division by other numbers is found where code is made ([`divide`](super::ops)).

use vyre_foundation::ir::BinaryOp;
use vyre_foundation::ssa::{InstId, InstKind, Op, Ssa, Value};
use vyre_spec::Scalar;

/// Replaces divisions of unsigned numbers by powers of two.
pub(crate) fn divide_by_shifts(ssa: &mut Ssa) {
    let mut found: Vec<(InstId, BinaryOp, Scalar, Value, u64)> = Vec::new();
    ssa.for_each_inst(ssa.root, &mut |id, inst| {
        if let InstKind::Op(Op::Binary {
            op: op @ (BinaryOp::Div | BinaryOp::Rem),
            ty: ty @ (Scalar::U32 | Scalar::U64),
            left,
            right,
        }) = inst.kind
            && let Some(by) = ssa.literal(right).filter(|by| by.is_power_of_two())
        {
            found.push((id, op, ty, left, by));
        }
    });
    for (id, op, ty, left, by) in found {
        let op = if op == BinaryOp::Div {
            // Amounts of shifts have 32 bits.
            let right = ssa.lit(Scalar::U32, u64::from(by.trailing_zeros()));
            Op::Binary { op: BinaryOp::Shr, ty, left, right }
        } else {
            let right = ssa.lit(ty, by - 1);
            Op::Binary { op: BinaryOp::BitAnd, ty, left, right }
        };
        ssa.insts[id.index()].kind = InstKind::Op(op);
    }
}
