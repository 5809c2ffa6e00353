//! Subgroup operations: all lanes have brought their operands, each gets its result.

use vyre_scalar::{identity, reduce};
use vyre_spec::{FloatMode, Scalar, ShuffleFrom, SubgroupOp, SubgroupShape, Vote};

/// The operands of one lane; `None` if it is retired.
pub(crate) type Lane = Option<[u64; SubgroupOp::MAX_OPERANDS]>;

/// The result for lane `own`, which is not retired.
pub(crate) fn result(op: SubgroupOp, ty: Scalar, mode: FloatMode, lanes: &[Lane], own: usize) -> u64 {
    let first = |lane: &Lane| lane.map(|operands| operands[0]);
    match op.shape() {
        SubgroupShape::Vote(vote) => count_votes(vote, lanes),
        SubgroupShape::Shuffle(from) => shuffle(from, lanes, own),
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

fn count_votes(vote: Vote, lanes: &[Lane]) -> u64 {
    let mut ballot = 0;
    let mut present = 0;
    for (n, lane) in lanes.iter().enumerate() {
        if let Some([value, _]) = lane {
            present |= 1 << n;
            ballot |= u64::from(*value != 0) << n;
        }
    }
    match vote {
        Vote::Ballot => ballot,
        Vote::Any => u64::from(ballot != 0),
        Vote::All => u64::from(ballot == present),
    }
}

/// A lane outside the subgroup gives the own value, a retired one 0.
fn shuffle(from: ShuffleFrom, lanes: &[Lane], own: usize) -> u64 {
    let [value, operand] = lanes[own].expect("the own lane is not retired");
    let lane = own as u64;
    let source = match from {
        ShuffleFrom::Named => Some(operand),
        ShuffleFrom::Xor => Some(lane ^ operand),
        ShuffleFrom::Up => lane.checked_sub(operand),
        ShuffleFrom::Down => Some(lane + operand),
    };
    match source.and_then(|source| lanes.get(usize::try_from(source).ok()?)) {
        Some(Some([theirs, _])) => *theirs,
        Some(None) => 0,
        None => value,
    }
}
