//! What kinds of floats a value can be: NaN, infinities, subnormals, zeros of either sign.
//!
//! A float is one of nine kinds, and for every float value this knows the set of those it can be. Where −0 cannot occur, `x + 0.0` is
//! `x`; where NaN cannot, a comparison can be turned around; where subnormals cannot, a device that flushes them is exact.
//!
//! The sets come from what ops do to kinds, never from ranges of numbers. What a loop carries can be anything. Under `floats
//! canonical` there are no subnormals and no −0: whatever would be one is +0.

use crate::ir::{BinaryOp, DataType, FloatMode, Scalar, TernaryOp, UnaryOp};
use crate::ssa::{Def, InstKind, Leaf, Op, RegionId, Ssa, Terminator, Value};
use vyre_spec::ValueType;

/// A set of kinds of floats.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kinds(u16);

impl Kinds {
    /// No float at all: the value is never computed.
    pub const NONE: Kinds = Kinds(0);
    /// NaN.
    pub const NAN: Kinds = Kinds(1);
    /// −∞.
    pub const NEGATIVE_INFINITY: Kinds = Kinds(1 << 1);
    /// Negative, and neither infinite nor subnormal nor zero.
    pub const NEGATIVE: Kinds = Kinds(1 << 2);
    /// Negative and subnormal.
    pub const NEGATIVE_SUBNORMAL: Kinds = Kinds(1 << 3);
    /// −0.
    pub const NEGATIVE_ZERO: Kinds = Kinds(1 << 4);
    /// +0.
    pub const ZERO: Kinds = Kinds(1 << 5);
    /// Positive and subnormal.
    pub const SUBNORMAL: Kinds = Kinds(1 << 6);
    /// Positive, and neither infinite nor subnormal nor zero.
    pub const POSITIVE: Kinds = Kinds(1 << 7);
    /// +∞.
    pub const INFINITY: Kinds = Kinds(1 << 8);
    /// Any float.
    pub const ALL: Kinds = Kinds((1 << 9) - 1);

    const fn or(self, other: Kinds) -> Kinds {
        Kinds(self.0 | other.0)
    }

    const fn without(self, other: Kinds) -> Kinds {
        Kinds(self.0 & !other.0)
    }

    /// Whether some float is of both.
    #[must_use]
    pub const fn meets(self, other: Kinds) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether it can be NaN.
    #[must_use]
    pub const fn may_be_nan(self) -> bool {
        self.meets(Kinds::NAN)
    }

    /// Whether it can be −0.
    #[must_use]
    pub const fn may_be_negative_zero(self) -> bool {
        self.meets(Kinds::NEGATIVE_ZERO)
    }

    /// Whether it can be subnormal.
    #[must_use]
    pub const fn may_be_subnormal(self) -> bool {
        self.meets(Kinds::NEGATIVE_SUBNORMAL.or(Kinds::SUBNORMAL))
    }

    /// Whether it can be infinite.
    #[must_use]
    pub const fn may_be_infinite(self) -> bool {
        self.meets(Kinds::NEGATIVE_INFINITY.or(Kinds::INFINITY))
    }

    /// The kind of a float with these bits.
    #[must_use]
    pub fn of_bits(ty: Scalar, bits: u64) -> Kinds {
        let value = if ty == Scalar::F64 { f64::from_bits(bits) } else { f64::from(f32::from_bits(bits as u32)) };
        let smallest = if ty == Scalar::F64 { f64::MIN_POSITIVE } else { f64::from(f32::MIN_POSITIVE) };
        let positive = match value.abs() {
            size if size.is_nan() => return Kinds::NAN,
            size if size == f64::INFINITY => Kinds::INFINITY,
            0.0 => Kinds::ZERO,
            size if size < smallest => Kinds::SUBNORMAL,
            _ => Kinds::POSITIVE,
        };
        if value.is_sign_negative() { positive.negated() } else { positive }
    }

    /// The kinds with the other sign; the order of the kinds is symmetric but for NaN.
    fn negated(self) -> Kinds {
        let numbers = self.0 >> 1;
        let turned = (0..8).filter(|n| numbers >> n & 1 == 1).map(|n| 1 << (7 - n)).sum::<u16>();
        Kinds(turned << 1 | self.0 & 1)
    }

    fn magnitude(self) -> Kinds {
        self.without(BELOW).or(self.negated().without(BELOW))
    }
}

const BELOW: Kinds = Kinds::NEGATIVE_INFINITY.or(Kinds::NEGATIVE).or(Kinds::NEGATIVE_SUBNORMAL).or(Kinds::NEGATIVE_ZERO);
const ABOVE: Kinds = Kinds::ZERO.or(Kinds::SUBNORMAL).or(Kinds::POSITIVE).or(Kinds::INFINITY);
const ZEROS: Kinds = Kinds::ZERO.or(Kinds::NEGATIVE_ZERO);
const INFINITE: Kinds = Kinds::INFINITY.or(Kinds::NEGATIVE_INFINITY);
const SUBNORMALS: Kinds = Kinds::SUBNORMAL.or(Kinds::NEGATIVE_SUBNORMAL);
const NORMALS: Kinds = Kinds::POSITIVE.or(Kinds::NEGATIVE);

/// The kinds of every value.
#[derive(Clone, Debug)]
pub struct Floats {
    /// By value; of those that are not floats, any.
    kinds: Vec<Kinds>,
}

impl Floats {
    /// The facts of a form.
    #[must_use]
    pub fn of(ssa: &Ssa) -> Floats {
        let mut floats = Floats { kinds: vec![Kinds::ALL; ssa.values.len()] };
        for (n, info) in ssa.values.iter().enumerate() {
            floats.kinds[n] = match (info.def, info.ty) {
                (Def::Leaf(Leaf::Lit { bits }), ValueType::Scalar(ty)) if ty.is_float() => Kinds::of_bits(ty, bits),
                (Def::Leaf(_) | Def::Result(..) | Def::Argument(..), _) => in_mode(ssa.kernel.floats, Kinds::ALL),
            };
        }
        floats.region(ssa, ssa.root);
        floats
    }

    /// What a float value can be.
    #[must_use]
    pub fn kinds(&self, value: Value) -> Kinds {
        self.kinds[value.index()]
    }

    fn region(&mut self, ssa: &Ssa, id: RegionId) {
        for inst in &ssa.region(id).insts {
            let inst = ssa.inst(*inst);
            inst.kind.regions().for_each(|inner| self.region(ssa, inner));
            let found = match &inst.kind {
                InstKind::Op(op) => self.op(op),
                InstKind::Load { buffer, .. } => of_element(&ssa.kernel.buffer(*buffer).element),
                InstKind::If { then, otherwise, .. } => {
                    for (n, result) in inst.results.iter().enumerate() {
                        let mut kinds = Kinds::NONE;
                        for arm in [*then, *otherwise] {
                            if let Terminator::Yield(values) = &ssa.region(arm).end {
                                kinds = kinds.or(self.kinds(values[n]));
                            }
                        }
                        self.kinds[result.index()] = kinds;
                    }
                    continue;
                }
                InstKind::Store { .. }
                | InstKind::Atomic { .. }
                | InstKind::Subgroup { .. }
                | InstKind::Loop { .. }
                | InstKind::Barrier
                | InstKind::GridSync => continue,
            };
            self.kinds[inst.results[0].index()] = in_mode(ssa.kernel.floats, found);
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "any float is a right answer for every op, also for a new one")]
    fn op(&self, op: &Op) -> Kinds {
        match *op {
            Op::Unary { op, ty, operand } if ty.is_float() => unary(op, self.kinds(operand)),
            Op::Binary { op, ty, left, right } if ty.is_float() => binary(op, self.kinds(left), self.kinds(right)),
            Op::Ternary { op: TernaryOp::Select, ty, operands: [_, yes, no] } if ty.is_float() => {
                self.kinds(yes).or(self.kinds(no))
            }
            // No integer is so large that it rounds to infinity, and none is subnormal.
            Op::Cast { from: Scalar::Bool | Scalar::U32 | Scalar::U64, .. } => Kinds::ZERO.or(Kinds::POSITIVE),
            Op::Cast { from: Scalar::I32 | Scalar::I64, .. } => Kinds::ZERO.or(NORMALS),
            // What is subnormal in the narrow type is a small number in the wide one.
            Op::Cast { from: Scalar::F32, to: Scalar::F64, value } => {
                let kinds = self.kinds(value);
                let small = |from: Kinds, to: Kinds| if kinds.meets(from) { to } else { Kinds::NONE };
                kinds
                    .without(SUBNORMALS)
                    .or(small(Kinds::SUBNORMAL, Kinds::POSITIVE))
                    .or(small(Kinds::NEGATIVE_SUBNORMAL, Kinds::NEGATIVE))
            }
            Op::Cast { from, to, value } if from == to => self.kinds(value),
            _ => Kinds::ALL,
        }
    }
}

/// What is left of a set where tiny floats become +0.
fn in_mode(mode: FloatMode, kinds: Kinds) -> Kinds {
    let tiny = SUBNORMALS.or(Kinds::NEGATIVE_ZERO);
    match mode {
        FloatMode::Ieee => kinds,
        FloatMode::Canonical if kinds.meets(tiny) => kinds.without(tiny).or(Kinds::ZERO),
        FloatMode::Canonical => kinds,
    }
}

/// What loads of an element type give.
#[expect(clippy::wildcard_enum_match_arm, reason = "any float is a right answer for every type, also for a new one")]
fn of_element(element: &DataType) -> Kinds {
    match element {
        // Their smallest numbers are normal floats.
        DataType::F16 | DataType::F8E5M2 => Kinds::ALL.without(SUBNORMALS),
        DataType::F8E4M3 => Kinds::ALL.without(SUBNORMALS).without(INFINITE),
        DataType::FP4 | DataType::NF4 => ZEROS.or(NORMALS),
        _ => Kinds::ALL,
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "any float is a right answer for every op, also for a new one")]
fn unary(op: UnaryOp, a: Kinds) -> Kinds {
    let nan = |if_so: bool| if if_so { Kinds::NAN } else { Kinds::NONE };
    match op {
        UnaryOp::Neg => a.negated(),
        UnaryOp::Abs => a.magnitude(),
        UnaryOp::Sqrt => {
            let negative = BELOW.without(Kinds::NEGATIVE_ZERO);
            let zeros = Kinds(a.0 & ZEROS.0);
            let infinite = Kinds(a.0 & Kinds::INFINITY.0);
            let positive = if a.meets(Kinds::POSITIVE.or(Kinds::SUBNORMAL)) { Kinds::POSITIVE } else { Kinds::NONE };
            zeros.or(infinite).or(positive).or(nan(a.may_be_nan() || a.meets(negative)))
        }
        UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Trunc | UnaryOp::Round => {
            // Whole numbers, on the same side of zero.
            let above = if a.meets(ABOVE) { Kinds::ZERO.or(Kinds::POSITIVE) } else { Kinds::NONE };
            let below = if a.meets(BELOW) { Kinds::NEGATIVE_ZERO.or(Kinds::NEGATIVE) } else { Kinds::NONE };
            above.or(below).or(Kinds(a.0 & INFINITE.or(Kinds::NAN).0))
        }
        UnaryOp::Fract => Kinds::ZERO.or(Kinds::SUBNORMAL).or(Kinds::POSITIVE).or(nan(a.may_be_nan() || a.may_be_infinite())),
        UnaryOp::Exp | UnaryOp::Exp2 => ABOVE.or(nan(a.may_be_nan())),
        _ => Kinds::ALL,
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "any float is a right answer for every op, also for a new one")]
fn binary(op: BinaryOp, a: Kinds, b: Kinds) -> Kinds {
    let nan = |if_so: bool| if if_so { Kinds::NAN } else { Kinds::NONE };
    let either = a.may_be_nan() || b.may_be_nan();
    match op {
        BinaryOp::Add => sum(a, b),
        BinaryOp::Sub => sum(a, b.negated()),
        BinaryOp::Mul => {
            let zero_by_infinity = a.meets(ZEROS) && b.meets(INFINITE) || a.meets(INFINITE) && b.meets(ZEROS);
            signed(a, b).or(nan(either || zero_by_infinity))
        }
        BinaryOp::Div => {
            let undefined = a.meets(ZEROS) && b.meets(ZEROS) || a.meets(INFINITE) && b.meets(INFINITE);
            signed(a, b).or(nan(either || undefined))
        }
        // A number beats NaN.
        BinaryOp::Min | BinaryOp::Max => a.or(b).without(Kinds::NAN).or(nan(a.may_be_nan() && b.may_be_nan())),
        BinaryOp::Copysign => {
            let size = a.magnitude();
            let above = if b.meets(ABOVE.or(Kinds::NAN)) { size } else { Kinds::NONE };
            let below = if b.meets(BELOW) { size.negated() } else { Kinds::NONE };
            above.or(below).or(nan(a.may_be_nan()))
        }
        _ => Kinds::ALL,
    }
}

/// Numbers of the signs that a product or quotient can have.
fn signed(a: Kinds, b: Kinds) -> Kinds {
    let same = a.meets(ABOVE) && b.meets(ABOVE) || a.meets(BELOW) && b.meets(BELOW);
    let other = a.meets(ABOVE) && b.meets(BELOW) || a.meets(BELOW) && b.meets(ABOVE);
    let above = if same { ABOVE } else { Kinds::NONE };
    let below = if other { BELOW } else { Kinds::NONE };
    above.or(below)
}

fn sum(a: Kinds, b: Kinds) -> Kinds {
    let opposite = |one: Kinds, two: Kinds| one.meets(Kinds::INFINITY) && two.meets(Kinds::NEGATIVE_INFINITY);
    let undefined = a.may_be_nan() || b.may_be_nan() || opposite(a, b) || opposite(b, a);
    // Rounding to nearest gives -0 only for -0 + -0, and +0 for x - x.
    let zero = if a.may_be_negative_zero() && b.may_be_negative_zero() { Kinds::NEGATIVE_ZERO } else { Kinds::NONE };
    let above = if a.meets(ABOVE) || b.meets(ABOVE) { ABOVE } else { Kinds::NONE };
    let negative = BELOW.without(Kinds::NEGATIVE_ZERO);
    let below = if a.meets(negative) || b.meets(negative) { negative } else { Kinds::NONE };
    zero.or(above).or(below).or(if undefined { Kinds::NAN } else { Kinds::NONE })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn examples(ty: Scalar) -> Vec<u64> {
        let f32s = [0.0f32, 1e-45, 1e-39, f32::MIN_POSITIVE, 0.25, 0.75, 1.0, 1.5, 3.0, 1e30, f32::MAX, f32::INFINITY];
        let both = f32s.into_iter().flat_map(|x| [x, -x]).chain([f32::NAN]);
        match ty {
            Scalar::F64 => both.map(f64::from).chain([5e-324, -5e-324, 1e-310, f64::MAX, -f64::MAX]).map(f64::to_bits).collect(),
            Scalar::F32 | Scalar::Bool | Scalar::U32 | Scalar::I32 | Scalar::U64 | Scalar::I64 => {
                both.map(|x| u64::from(x.to_bits())).collect()
            }
        }
    }

    /// Every op, on every pair of examples: the kind of what it gives is among those that the kinds of its operands allow.
    #[test]
    fn every_op_gives_a_kind_that_is_allowed() {
        for ty in [Scalar::F32, Scalar::F64] {
            for mode in FloatMode::ALL {
                let values: Vec<u64> = examples(ty).into_iter().map(|bits| vyre_scalar::canonicalize(ty, mode, bits)).collect();
                let kind = |bits: u64| Kinds::of_bits(ty, bits);
                for op in UnaryOp::ALL.iter().filter(|op| op.info().over.contains(ty) && op.info().result_type(ty) == Some(ty)) {
                    for a in &values {
                        let result = vyre_scalar::unary(*op, ty, mode, *a);
                        let allowed = in_mode(mode, unary(*op, kind(*a)));
                        assert!(
                            allowed.meets(kind(result)),
                            "{op} of {a:#x} as {ty} in {mode} is {result:#x}, not in {allowed:?}"
                        );
                    }
                }
                for op in BinaryOp::ALL.iter().filter(|op| op.info().over.contains(ty) && op.info().result_type(ty) == Some(ty)) {
                    for a in &values {
                        for b in &values {
                            let result = vyre_scalar::binary(*op, ty, mode, *a, *b);
                            let allowed = in_mode(mode, binary(*op, kind(*a), kind(*b)));
                            assert!(
                                allowed.meets(kind(result)),
                                "{op} of {a:#x} and {b:#x} as {ty} in {mode} is {result:#x}, not in {allowed:?}"
                            );
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn signs_are_turned_around() {
        assert_eq!(Kinds::ALL.negated(), Kinds::ALL);
        assert_eq!(Kinds::NEGATIVE_ZERO.negated(), Kinds::ZERO);
        assert_eq!(Kinds::POSITIVE.or(Kinds::NAN).negated(), Kinds::NEGATIVE.or(Kinds::NAN));
    }
}
