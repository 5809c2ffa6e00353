//! Subgroup operations: all lanes have brought their operands, each gets its result.

use vyre_scalar::{identity, reduce};
use vyre_spec::{FloatMode, Scalar, SubgroupOp, SubgroupShape};

/// The operands of one lane; `None` if it is retired.
pub(crate) type Lane = Option<[u64; 2]>;

/// The result for lane `own`, which is not retired.
pub(crate) fn result(op: SubgroupOp, ty: Scalar, mode: FloatMode, lanes: &[Lane], own: usize) -> u64 {
    let first = |lane: &Lane| lane.map(|operands| operands[0]);
    match op.shape() {
        SubgroupShape::Vote => vote(op, lanes),
        SubgroupShape::Shuffle => shuffle(op, lanes, own),
        SubgroupShape::Reduce(with) => fold(with, ty, mode, lanes.iter().map(first)),
        SubgroupShape::Inclusive(with) => fold(with, ty, mode, lanes[..=own].iter().map(first)),
        SubgroupShape::Exclusive(with) => fold(with, ty, mode, lanes[..own].iter().map(first)),
    }
}

/// Retired lanes contribute the identity.
fn fold(op: vyre_spec::ReduceOp, ty: Scalar, mode: FloatMode, values: impl Iterator<Item = Option<u64>>) -> u64 {
    let start = identity(op, ty);
    values.fold(start, |sum, value| reduce(op, ty, mode, sum, value.unwrap_or(start)))
}

fn vote(op: SubgroupOp, lanes: &[Lane]) -> u64 {
    let mut ballot = 0;
    let mut present = 0;
    for (n, lane) in lanes.iter().enumerate() {
        if let Some([value, _]) = lane {
            present |= 1 << n;
            ballot |= u64::from(*value != 0) << n;
        }
    }
    match op {
        SubgroupOp::Ballot => ballot,
        SubgroupOp::Any => u64::from(ballot != 0),
        SubgroupOp::All => u64::from(ballot == present),
        _ => unreachable!("{op} is no vote"),
    }
}

/// A lane outside the subgroup gives the own value, a retired one 0.
fn shuffle(op: SubgroupOp, lanes: &[Lane], own: usize) -> u64 {
    let [value, operand] = lanes[own].expect("the own lane is not retired");
    let (lane, operand) = (own as u64, operand);
    let source = match op {
        SubgroupOp::Broadcast | SubgroupOp::Shuffle => Some(operand),
        SubgroupOp::ShuffleXor => Some(lane ^ operand),
        SubgroupOp::ShuffleUp => lane.checked_sub(operand),
        SubgroupOp::ShuffleDown => Some(lane + operand),
        _ => unreachable!("{op} is no shuffle"),
    };
    match source.and_then(|source| lanes.get(usize::try_from(source).ok()?)) {
        Some(Some([theirs, _])) => *theirs,
        Some(None) => 0,
        None => value,
    }
}
