//! The associative ops that subgroups reduce and scan with, and their identities.

use crate::apply::binary;
use crate::float::Float;
use crate::int::Int;
use vyre_spec::{FloatMode, ReduceOp, Scalar};

/// Two values combined.
#[inline]
#[must_use]
pub fn reduce(op: ReduceOp, ty: Scalar, mode: FloatMode, a: u64, b: u64) -> u64 {
    binary(op.binary(), ty, mode, a, b)
}

/// The value that changes nothing: what retired lanes contribute and what an exclusive scan starts with.
///
/// For the float `min` and `max` it is NaN. Since a number beats NaN, `min(NaN, x)` is `x` for every `x`, NaN included; an
/// infinity would not do, because it beats a NaN too.
///
/// # Panics
///
/// When no subgroup op reduces `ty` with `op`.
#[must_use]
pub fn identity(op: ReduceOp, ty: Scalar) -> u64 {
    let result = match ty {
        Scalar::U32 => Some(identity_int::<u32>(op)),
        Scalar::I32 => Some(identity_int::<i32>(op)),
        Scalar::U64 => Some(identity_int::<u64>(op)),
        Scalar::I64 => Some(identity_int::<i64>(op)),
        Scalar::F32 => identity_float::<f32>(op),
        Scalar::F64 => identity_float::<f64>(op),
        Scalar::Bool => None,
    };
    result.unwrap_or_else(|| unreachable!("{op:?} does not reduce {ty}"))
}

fn identity_int<T: Int>(op: ReduceOp) -> u64 {
    let value = match op {
        ReduceOp::Add | ReduceOp::Or | ReduceOp::Xor => T::ZERO,
        ReduceOp::Mul => T::ONE,
        ReduceOp::Min => T::MAX,
        ReduceOp::Max => T::MIN,
        ReduceOp::And => !T::ZERO,
    };
    value.to_bits()
}

fn identity_float<F: Float>(op: ReduceOp) -> Option<u64> {
    match op {
        ReduceOp::Min | ReduceOp::Max => Some(F::NAN.to_bits()),
        ReduceOp::Add | ReduceOp::Mul | ReduceOp::And | ReduceOp::Or | ReduceOp::Xor => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::values;
    use vyre_spec::{SubgroupOp, SubgroupShape};

    #[test]
    fn the_identity_changes_no_value_of_any_type_that_subgroups_reduce() {
        let mut checked = 0;
        for subgroup in SubgroupOp::ALL {
            let SubgroupShape::Reduce(op) = subgroup.shape() else { continue };
            for ty in subgroup.info().over.iter() {
                for mode in FloatMode::ALL {
                    for a in values(ty, mode) {
                        assert_eq!(reduce(op, ty, mode, identity(op, ty), a), a, "{subgroup} {ty} {a:#x}");
                        assert_eq!(reduce(op, ty, mode, a, identity(op, ty)), a, "{subgroup} {ty} {a:#x}");
                        checked += 1;
                    }
                }
            }
        }
        assert!(checked > 1000);
    }

    #[test]
    fn reductions_are_the_ops_of_the_same_name() {
        let over =
            |op, a: i32, b: i32| reduce(op, Scalar::I32, FloatMode::Ieee, u64::from(a as u32), u64::from(b as u32)) as u32 as i32;
        assert_eq!(over(ReduceOp::Add, 12, -10), 2);
        assert_eq!(over(ReduceOp::Mul, 12, -10), -120);
        assert_eq!(over(ReduceOp::Min, 12, -10), -10);
        assert_eq!(over(ReduceOp::Max, 12, -10), 12);
        assert_eq!(over(ReduceOp::And, 12, 10), 8);
        assert_eq!(over(ReduceOp::Or, 12, 10), 14);
        assert_eq!(over(ReduceOp::Xor, 12, 10), 6);
    }
}
