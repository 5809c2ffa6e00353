//! Constant folding: what can be computed now is, and what is known to be another value becomes that value.
//!
//! - An op whose operands are all literals becomes the literal that `vyre-scalar` gives for them, in the kernel's float mode; the
//!   interpreter calls the same functions, so the two cannot disagree. Conversions alike.
//! - `len` of a buffer that declares its count is that count: a launch with another length is refused.
//! - A component of a vector that is built is the component.
//! - [`RULES`]: `x * 1`, `x - x`, `x && true`, … where one operand decides, or both are the same value. Each row holds for *every*
//!   value of its types; a test tries them against `vyre-scalar` on the edges of every type.
//!   Also `select` that is decided, an op taken twice whose row says that this gives back the operand, and conversions to the type a
//!   value has.
//! - The result of an `if` whose arms yield one value that was there before is that value. What a loop carries and never changes is what it was given.
//!
//! The result depends on no more than the value did, so what was uniform stays so.
//!
//! What it leaves alone: floats, beyond identities that hold for NaN, infinities and both zeros. `x + 0.0` is not `x` (−0 becomes
//! +0; under `floats canonical` there is no −0, and it is), `x * 0.0` not 0, `x - x` not 0, `x == x` not true. Nothing is
//! reassociated, contracted, or turned into a reciprocal. `x / x` of integers is not 1: 0 / 0 is 0. `bitcast<u32>(bitcast<f32>(x))`
//! is not `x`: a NaN loses its payload.

use crate::ir::{BinaryOp, FloatMode, Scalar, TernaryOp, UnaryOp};
use crate::ssa::{Inst, InstId, InstKind, Leaf, Op, RegionId, Ssa, Terminator, Value};
use std::sync::LazyLock;
use vyre_spec::{Law, Operand, TypeSet};

/// The pass.
pub(super) fn fold(ssa: &mut Ssa) -> bool {
    let instead = (0..ssa.values.len() as u32).map(Value).collect();
    let mut fold = Fold { instead, met: vec![0; ssa.values.len()], now: 0, changed: false };
    fold.declared_lengths(ssa);
    fold.region(ssa, ssa.root);
    fold.changed
}

struct Fold {
    /// By value: what it is replaced by, which may be itself. Values that are made on the way are not in it.
    instead: Vec<Value>,
    /// By value: when its definition was met; leaves are there from the start.
    met: Vec<u32>,
    now: u32,
    changed: bool,
}

/// What an op is known to be.
enum Known {
    /// This value.
    Value(Value),
    /// This literal, of the op's type.
    Literal(u64),
    /// This op.
    Op(Op),
}

impl Fold {
    fn resolve(&self, value: Value) -> Value {
        self.instead.get(value.index()).copied().unwrap_or(value)
    }

    fn replace(&mut self, value: Value, by: Value) {
        self.instead[value.index()] = by;
        self.changed = true;
    }

    fn declared_lengths(&mut self, ssa: &mut Ssa) {
        for n in 0..self.instead.len() {
            let value = Value(n as u32);
            if let Some(Leaf::Len { buffer }) = ssa.leaf(value)
                && let Some(count) = ssa.kernel.buffer(buffer).count
            {
                self.instead[n] = ssa.lit(Scalar::U32, u64::from(count));
            }
        }
    }

    fn meet(&mut self, values: &[Value]) {
        self.now += 1;
        values.iter().for_each(|value| self.met[value.index()] = self.now);
    }

    fn region(&mut self, ssa: &mut Ssa, id: RegionId) {
        self.meet(&ssa.region(id).args);
        let mut insts = std::mem::take(&mut ssa.regions[id.index()].insts);
        insts.retain(|inst| self.inst(ssa, *inst));
        ssa.regions[id.index()].insts = insts;
        let mut end = std::mem::replace(&mut ssa.regions[id.index()].end, Terminator::Unreachable);
        if let Some(values) = end.values_mut() {
            values.iter_mut().for_each(|value| self.operand(value));
        }
        ssa.regions[id.index()].end = end;
    }

    fn operand(&mut self, operand: &mut Value) {
        let resolved = self.resolve(*operand);
        self.changed |= resolved != *operand;
        *operand = resolved;
    }

    /// Whether the instruction stays.
    fn inst(&mut self, ssa: &mut Ssa, id: InstId) -> bool {
        let mut kind = std::mem::replace(&mut ssa.insts[id.index()].kind, InstKind::Barrier);
        kind.for_each_operand_mut(&mut |operand| self.operand(operand));
        let mut stays = true;
        match &mut kind {
            InstKind::Op(op) => stays = self.op(ssa, id, op),
            InstKind::If { then, otherwise, .. } => {
                let arms = [*then, *otherwise];
                let before = self.now;
                arms.into_iter().for_each(|arm| self.region(ssa, arm));
                for (n, result) in ssa.inst(id).results.iter().enumerate() {
                    let yields = arms.iter().filter(|arm| ssa.region(**arm).end.is_yield());
                    let mut values = yields.map(|arm| ssa.region(*arm).end.values()[n]);
                    let Some(first) = values.next() else { continue };
                    let there_before = self.met.get(first.index()).is_none_or(|met| *met <= before);
                    if there_before && values.all(|other| other == first) {
                        self.instead[result.index()] = first;
                    }
                }
            }
            InstKind::Loop { inits, body, .. } => {
                for n in unchanged(ssa, *body, inits) {
                    for value in [ssa.region(*body).args[n + 1], ssa.insts[id.index()].results[n]] {
                        self.instead[value.index()] = inits[n];
                    }
                }
                self.region(ssa, *body);
            }
            InstKind::Load { .. }
            | InstKind::Store { .. }
            | InstKind::Atomic { .. }
            | InstKind::Subgroup { .. }
            | InstKind::Barrier
            | InstKind::GridSync => {}
        }
        ssa.insts[id.index()].kind = kind;
        self.meet(&ssa.inst(id).results);
        stays
    }

    fn op(&mut self, ssa: &mut Ssa, id: InstId, op: &mut Op) -> bool {
        let Inst { results, .. } = &ssa.insts[id.index()];
        let result = results[0];
        let ty = ssa.value(result).ty;
        match simplify(ssa, op) {
            None => true,
            Some(Known::Value(value)) => {
                self.replace(result, value);
                // The name that people gave the value stays known.
                let hint = ssa.values[result.index()].var;
                if ssa.leaf(value).is_none() {
                    let info = &mut ssa.values[value.index()];
                    info.var = info.var.or(hint);
                }
                false
            }
            Some(Known::Literal(bits)) => {
                let literal = ssa.leaf_value(Leaf::Lit { bits }, ty);
                self.replace(result, literal);
                false
            }
            Some(Known::Op(simpler)) => {
                *op = simpler;
                self.changed = true;
                true
            }
        }
    }
}

/// What a loop carries without ever changing it, by number.
fn unchanged(ssa: &Ssa, body: RegionId, inits: &[Value]) -> Vec<usize> {
    let args = &ssa.region(body).args[1..];
    let mut same = vec![true; inits.len()];
    fn region(ssa: &Ssa, id: RegionId, is_body: bool, args: &[Value], inits: &[Value], same: &mut [bool]) {
        let end = &ssa.region(id).end;
        let ends_iteration = match end {
            Terminator::Yield(_) => is_body,
            Terminator::Break(_) | Terminator::Continue(_) => true,
            Terminator::Return | Terminator::Trap(_) | Terminator::Unreachable => false,
        };
        if ends_iteration {
            for (n, value) in end.values().iter().enumerate() {
                same[n] &= *value == args[n] || *value == inits[n];
            }
        }
        for inst in &ssa.region(id).insts {
            if let InstKind::If { then, otherwise, .. } = ssa.inst(*inst).kind {
                region(ssa, then, false, args, inits, same);
                region(ssa, otherwise, false, args, inits, same);
            }
        }
    }
    if !same.is_empty() {
        region(ssa, body, true, args, inits, &mut same);
    }
    (0..same.len()).filter(|n| same[*n]).collect()
}

/// What an op over these operands is known to be, if that is simpler.
fn simplify(ssa: &Ssa, op: &Op) -> Option<Known> {
    let mode = ssa.kernel.floats;
    let bits = |value: Value| ssa.literal(value);
    match *op {
        Op::Unary { op, ty, operand } => {
            if let Some(a) = bits(operand) {
                return Some(Known::Literal(vyre_scalar::unary(op, ty, mode, a)));
            }
            match ssa.op(operand) {
                Some(Op::Unary { op: inner, operand, .. }) if *inner == op && op.info().law == Law::Involution => {
                    Some(Known::Value(*operand))
                }
                _ => None,
            }
        }
        Op::Binary { op, ty, left, right } => {
            if let (Some(a), Some(b)) = (bits(left), bits(right)) {
                return Some(Known::Literal(vyre_scalar::binary(op, ty, mode, a, b)));
            }
            let (left_bits, right_bits, same) = (bits(left), bits(right), left == right);
            // Every rule needs something to go by, which few ops have.
            if left_bits.is_none() && right_bits.is_none() && !same {
                return None;
            }
            let rule = rules_of(op).iter().find(|rule| rule.applies(ty, mode, left_bits, right_bits, same))?;
            let other = match rule.when {
                When::Left(_) => right,
                When::Right(_) | When::Same => left,
            };
            Some(match rule.gives {
                Gives::Zeros => Known::Literal(0),
                Gives::Ones => Known::Literal(ones(op.info().result_type(ty)?)),
                Gives::Other => Known::Value(other),
                Gives::NotOther => Known::Op(Op::Unary { op: UnaryOp::Not, ty, operand: other }),
            })
        }
        Op::Ternary { op, ty, operands } => {
            let constants = operands.map(bits);
            if let [Some(a), Some(b), Some(c)] = constants {
                return Some(Known::Literal(vyre_scalar::ternary(op, ty, mode, a, b, c)));
            }
            match op {
                TernaryOp::Fma => None,
                TernaryOp::Select => select(operands, constants, ty),
            }
        }
        Op::Cast { from, to, value } => match bits(value) {
            Some(a) => Some(Known::Literal(vyre_scalar::cast(from, to, mode, a))),
            None => (from == to).then_some(Known::Value(value)),
        },
        Op::Bitcast { from, to, value } => match bits(value) {
            Some(a) => Some(Known::Literal(vyre_scalar::bitcast(from, to, mode, a))),
            None => (from == to).then_some(Known::Value(value)),
        },
        Op::Vector { .. } => None,
        Op::Extract { vector, component } => match ssa.op(vector)? {
            Op::Vector { components } => Some(Known::Value(components[usize::from(component)])),
            Op::Unary { .. }
            | Op::Binary { .. }
            | Op::Ternary { .. }
            | Op::Cast { .. }
            | Op::Bitcast { .. }
            | Op::Extract { .. } => None,
        },
    }
}

/// A `select` that is not all literals.
fn select([cond, yes, no]: [Value; 3], constants: [Option<u64>; 3], ty: Scalar) -> Option<Known> {
    match constants {
        [Some(0), ..] => Some(Known::Value(no)),
        [Some(_), ..] => Some(Known::Value(yes)),
        // Equal literals are one value.
        _ if yes == no => Some(Known::Value(yes)),
        [None, Some(1), Some(0)] if ty == Scalar::Bool => Some(Known::Value(cond)),
        [None, Some(0), Some(1)] if ty == Scalar::Bool => {
            Some(Known::Op(Op::Unary { op: UnaryOp::Not, ty: Scalar::Bool, operand: cond }))
        }
        [None, ..] => None,
    }
}

/// A constant that decides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Constant {
    /// 0, +0.0, false; of an amount to shift by, a multiple of the width.
    Zero,
    /// 1, 1.0, true.
    One,
    /// All bits one: the largest unsigned number, −1, true.
    Ones,
    /// −0.0.
    MinusZero,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum When {
    /// The left operand is this.
    Left(Constant),
    /// The right operand is this.
    Right(Constant),
    /// Both operands are the same.
    Same,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Gives {
    /// The operand that is not the constant.
    Other,
    /// Its bits, or its truth, flipped.
    NotOther,
    /// 0 or false.
    Zeros,
    /// All bits one, or true.
    Ones,
}

/// On every value of these types, in this float mode (any, if `None`), `op` gives that.
#[derive(Clone, Copy, Debug)]
struct Rule {
    op: BinaryOp,
    on: TypeSet,
    mode: Option<FloatMode>,
    when: When,
    gives: Gives,
}

/// All bits of a type, in the low part of a word.
fn ones(ty: Scalar) -> u64 {
    u64::MAX >> (64 - ty.bits())
}

impl Constant {
    /// Its bits in a type; `None` if the type has no such value.
    fn bits(self, ty: Scalar) -> Option<u64> {
        let of = |f32: f32, f64: f64| match ty {
            Scalar::F32 => Some(u64::from(f32.to_bits())),
            Scalar::F64 => Some(f64.to_bits()),
            Scalar::Bool | Scalar::U32 | Scalar::I32 | Scalar::U64 | Scalar::I64 => None,
        };
        match self {
            Constant::Zero => Some(0),
            Constant::One => of(1.0, 1.0).or(Some(1)),
            Constant::Ones => (!ty.is_float()).then(|| ones(ty)),
            Constant::MinusZero => of(-0.0, -0.0),
        }
    }

    /// Whether an operand with these bits is this constant; the operand's row says whether it has the op's type.
    fn is(self, operand: Operand, ty: Scalar, bits: u64) -> bool {
        match operand {
            Operand::T => self.bits(ty) == Some(bits),
            // The amount of a shift or rotate.
            Operand::Fixed(_) => self == Constant::Zero && bits.is_multiple_of(u64::from(ty.bits())),
        }
    }
}

impl Rule {
    /// Whether the rule speaks of its op with these operands, of which literals are known and whether they are the same.
    fn applies(&self, ty: Scalar, mode: FloatMode, left: Option<u64>, right: Option<u64>, same: bool) -> bool {
        let [first, second] = self.op.info().operands else { return false };
        self.on.contains(ty)
            && self.mode.is_none_or(|only| only == mode)
            && match self.when {
                When::Left(constant) => left.is_some_and(|bits| constant.is(*first, ty, bits)),
                When::Right(constant) => right.is_some_and(|bits| constant.is(*second, ty, bits)),
                When::Same => first == second && same,
            }
    }
}

/// The rules of an op, which stand together.
fn rules_of(op: BinaryOp) -> &'static [Rule] {
    // By wire tag: the first rule and the end.
    static BY_TAG: LazyLock<[(usize, usize); 256]> = LazyLock::new(|| {
        let mut by_tag = [(0, 0); 256];
        for op in BinaryOp::ALL {
            let first = RULES.iter().position(|rule| rule.op == *op).unwrap_or(0);
            by_tag[*op as usize] = (first, first + RULES.iter().filter(|rule| rule.op == *op).count());
        }
        by_tag
    });
    let (first, end) = BY_TAG[op as usize];
    &RULES[first..end]
}

const fn rule(op: BinaryOp, on: TypeSet, when: When, gives: Gives) -> Rule {
    Rule { op, on, mode: None, when, gives }
}

const fn rule_in(mode: FloatMode, op: BinaryOp, on: TypeSet, when: When, gives: Gives) -> Rule {
    Rule { op, on, mode: Some(mode), when, gives }
}

const UNSIGNED: TypeSet = TypeSet::of(&[Scalar::U32, Scalar::U64]);
const SIGNED: TypeSet = TypeSet::of(&[Scalar::I32, Scalar::I64]);

/// Every rule; what none of them says is left alone.
const RULES: &[Rule] = {
    use BinaryOp::*;
    use Constant::{MinusZero, One, Ones as AllOnes, Zero};
    use FloatMode::{Canonical, Ieee};
    use Gives::{NotOther, Ones, Other, Zeros};
    use When::{Left, Right, Same};
    const INT: TypeSet = TypeSet::INT;
    const FLOAT: TypeSet = TypeSet::FLOAT;
    const NUMBER: TypeSet = TypeSet::NUMBER;
    const BOOL: TypeSet = TypeSet::BOOL;
    const LOGICAL: TypeSet = TypeSet::LOGICAL;
    &[
        rule(Add, INT, Left(Zero), Other),
        rule(Add, INT, Right(Zero), Other),
        // x + -0.0 keeps both zeros; x + 0.0 makes +0 of -0, unless there is no -0.
        rule_in(Ieee, Add, FLOAT, Left(MinusZero), Other),
        rule_in(Ieee, Add, FLOAT, Right(MinusZero), Other),
        rule_in(Canonical, Add, FLOAT, Left(Zero), Other),
        rule_in(Canonical, Add, FLOAT, Right(Zero), Other),
        rule(Sub, NUMBER, Right(Zero), Other),
        rule(Sub, INT, Left(AllOnes), NotOther),
        rule(Sub, INT, Same, Zeros),
        rule(Mul, NUMBER, Left(One), Other),
        rule(Mul, NUMBER, Right(One), Other),
        rule(Mul, INT, Left(Zero), Zeros),
        rule(Mul, INT, Right(Zero), Zeros),
        rule(Mulhi, INT, Left(Zero), Zeros),
        rule(Mulhi, INT, Right(Zero), Zeros),
        rule(Mulhi, UNSIGNED, Left(One), Zeros),
        rule(Mulhi, UNSIGNED, Right(One), Zeros),
        rule(Div, NUMBER, Right(One), Other),
        rule(Div, INT, Right(Zero), Other),
        rule(Div, INT, Left(Zero), Zeros),
        rule(Rem, INT, Left(Zero), Zeros),
        rule(Rem, INT, Right(Zero), Zeros),
        rule(Rem, INT, Right(One), Zeros),
        rule(Rem, SIGNED, Right(AllOnes), Zeros),
        rule(Rem, INT, Same, Zeros),
        rule(AbsDiff, UNSIGNED, Left(Zero), Other),
        rule(AbsDiff, UNSIGNED, Right(Zero), Other),
        rule(AbsDiff, UNSIGNED, Left(AllOnes), NotOther),
        rule(AbsDiff, UNSIGNED, Right(AllOnes), NotOther),
        rule(AbsDiff, INT, Same, Zeros),
        rule(Min, NUMBER, Same, Other),
        rule(Min, UNSIGNED, Left(Zero), Zeros),
        rule(Min, UNSIGNED, Right(Zero), Zeros),
        rule(Min, UNSIGNED, Left(AllOnes), Other),
        rule(Min, UNSIGNED, Right(AllOnes), Other),
        rule(Max, NUMBER, Same, Other),
        rule(Max, UNSIGNED, Left(Zero), Other),
        rule(Max, UNSIGNED, Right(Zero), Other),
        rule(Max, UNSIGNED, Left(AllOnes), Ones),
        rule(Max, UNSIGNED, Right(AllOnes), Ones),
        rule(BitAnd, INT, Left(Zero), Zeros),
        rule(BitAnd, INT, Right(Zero), Zeros),
        rule(BitAnd, INT, Left(AllOnes), Other),
        rule(BitAnd, INT, Right(AllOnes), Other),
        rule(BitAnd, INT, Same, Other),
        rule(BitOr, INT, Left(Zero), Other),
        rule(BitOr, INT, Right(Zero), Other),
        rule(BitOr, INT, Left(AllOnes), Ones),
        rule(BitOr, INT, Right(AllOnes), Ones),
        rule(BitOr, INT, Same, Other),
        rule(BitXor, LOGICAL, Left(Zero), Other),
        rule(BitXor, LOGICAL, Right(Zero), Other),
        rule(BitXor, LOGICAL, Left(AllOnes), NotOther),
        rule(BitXor, LOGICAL, Right(AllOnes), NotOther),
        rule(BitXor, LOGICAL, Same, Zeros),
        rule(Shl, INT, Left(Zero), Zeros),
        rule(Shl, INT, Right(Zero), Other),
        rule(Shr, INT, Left(Zero), Zeros),
        rule(Shr, INT, Right(Zero), Other),
        rule(Shr, SIGNED, Left(AllOnes), Ones),
        rule(Rotl, INT, Left(Zero), Zeros),
        rule(Rotl, INT, Left(AllOnes), Ones),
        rule(Rotl, INT, Right(Zero), Other),
        rule(Rotr, INT, Left(Zero), Zeros),
        rule(Rotr, INT, Left(AllOnes), Ones),
        rule(Rotr, INT, Right(Zero), Other),
        rule(SatAdd, INT, Left(Zero), Other),
        rule(SatAdd, INT, Right(Zero), Other),
        rule(SatAdd, UNSIGNED, Left(AllOnes), Ones),
        rule(SatAdd, UNSIGNED, Right(AllOnes), Ones),
        rule(SatSub, INT, Right(Zero), Other),
        rule(SatSub, UNSIGNED, Left(Zero), Zeros),
        rule(SatSub, INT, Left(AllOnes), NotOther),
        rule(SatSub, UNSIGNED, Right(AllOnes), Zeros),
        rule(SatSub, INT, Same, Zeros),
        rule(Copysign, FLOAT, Same, Other),
        rule(And, BOOL, Left(Zero), Zeros),
        rule(And, BOOL, Right(Zero), Zeros),
        rule(And, BOOL, Left(One), Other),
        rule(And, BOOL, Right(One), Other),
        rule(And, BOOL, Same, Other),
        rule(Or, BOOL, Left(Zero), Other),
        rule(Or, BOOL, Right(Zero), Other),
        rule(Or, BOOL, Left(One), Ones),
        rule(Or, BOOL, Right(One), Ones),
        rule(Or, BOOL, Same, Other),
        rule(Eq, BOOL, Left(One), Other),
        rule(Eq, BOOL, Right(One), Other),
        rule(Eq, BOOL, Left(Zero), NotOther),
        rule(Eq, BOOL, Right(Zero), NotOther),
        rule(Eq, LOGICAL, Same, Ones),
        rule(Ne, BOOL, Left(Zero), Other),
        rule(Ne, BOOL, Right(Zero), Other),
        rule(Ne, BOOL, Left(One), NotOther),
        rule(Ne, BOOL, Right(One), NotOther),
        rule(Ne, LOGICAL, Same, Zeros),
        rule(Lt, UNSIGNED, Right(Zero), Zeros),
        rule(Lt, UNSIGNED, Left(AllOnes), Zeros),
        rule(Lt, NUMBER, Same, Zeros),
        rule(Le, UNSIGNED, Left(Zero), Ones),
        rule(Le, UNSIGNED, Right(AllOnes), Ones),
        rule(Le, INT, Same, Ones),
        rule(Gt, UNSIGNED, Left(Zero), Zeros),
        rule(Gt, UNSIGNED, Right(AllOnes), Zeros),
        rule(Gt, NUMBER, Same, Zeros),
        rule(Ge, UNSIGNED, Right(Zero), Ones),
        rule(Ge, UNSIGNED, Left(AllOnes), Ones),
        rule(Ge, INT, Same, Ones),
    ]
};

#[cfg(test)]
mod tests {
    use super::*;
    use vyre_scalar::canonicalize;

    /// The edges of a type and some numbers between them, as they are in flight.
    fn values(ty: Scalar, mode: FloatMode) -> Vec<u64> {
        let f32s = [0.0f32, -0.0, 1.0, -1.0, 0.5, 1.5, -3.0, 7.0, f32::MIN_POSITIVE, 1e-45, -1e-45, f32::MAX, f32::MIN, f32::NAN]
            .into_iter()
            .chain([f32::INFINITY, f32::NEG_INFINITY, 1e-38, 1e30]);
        let raw: Vec<u64> = match ty {
            Scalar::Bool => vec![0, 1],
            Scalar::F32 => f32s.map(|value| u64::from(value.to_bits())).collect(),
            Scalar::F64 => f32s.map(f64::from).chain([5e-324, -1e-310, f64::MAX]).map(f64::to_bits).collect(),
            Scalar::U32 | Scalar::I32 | Scalar::U64 | Scalar::I64 => {
                let some =
                    [0u64, 1, 2, 3, 7, 31, 32, 33, 63, 64, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFE, 0xFFFF_FFFF, 0x1234_5678];
                let wide = [1u64 << 63, u64::MAX >> 1, u64::MAX, u64::MAX - 1, 0x0123_4567_89AB_CDEF];
                some.into_iter().chain(wide).map(|value| value & ones(ty)).collect()
            }
        };
        raw.into_iter().map(|value| canonicalize(ty, mode, value)).collect()
    }

    /// Whether the rule's shape makes sense for an op on a type: its constant exists there, its operands have one type.
    fn shape_exists(op: BinaryOp, ty: Scalar, mode: FloatMode, when: When) -> bool {
        let [first, second] = op.info().operands else { return false };
        let exists = |constant: Constant, operand: Operand| match operand {
            Operand::T => constant.bits(ty).is_some_and(|bits| canonicalize(ty, mode, bits) == bits),
            Operand::Fixed(_) => constant == Constant::Zero,
        };
        match when {
            When::Left(constant) => exists(constant, *first),
            When::Right(constant) => exists(constant, *second),
            When::Same => first == second,
        }
    }

    fn holds(op: BinaryOp, ty: Scalar, mode: FloatMode, when: When, gives: Gives) -> bool {
        let result = op.info().result_type(ty).expect("pure ops give values");
        let [_, second] = op.info().operands else { return false };
        values(ty, mode).into_iter().all(|x| {
            let (a, b) = match (when, second) {
                (When::Same, _) => (x, x),
                (When::Left(constant), Operand::T) => (constant.bits(ty).expect("it exists"), x),
                (When::Left(constant), Operand::Fixed(_)) => (constant.bits(ty).expect("it exists"), x & 0xFFFF_FFFF),
                (When::Right(constant), Operand::T) => (x, constant.bits(ty).expect("it exists")),
                // Every multiple of the width is as good as 0.
                (When::Right(_), Operand::Fixed(_)) => (x, 2 * u64::from(ty.bits())),
            };
            let expected = match gives {
                Gives::Other if result == ty => x,
                Gives::NotOther if result == ty && TypeSet::LOGICAL.contains(ty) => vyre_scalar::unary(UnaryOp::Not, ty, mode, x),
                Gives::Other | Gives::NotOther => return false,
                Gives::Zeros => 0,
                Gives::Ones if result.is_float() => return false,
                Gives::Ones => ones(result),
            };
            vyre_scalar::binary(op, ty, mode, a, b) == expected
        })
    }

    #[test]
    fn the_rules_of_an_op_stand_together() {
        for op in BinaryOp::ALL {
            let all = RULES.iter().filter(|rule| rule.op == *op).count();
            assert!(rules_of(*op).len() == all && rules_of(*op).iter().all(|rule| rule.op == *op), "{op}");
        }
    }

    #[test]
    fn every_rule_holds_for_every_value() {
        for rule in RULES {
            assert!(rule.on.iter().all(|ty| rule.op.info().over.contains(ty)), "{rule:?}: not all types of the rule have the op");
            for ty in rule.on.iter() {
                for mode in FloatMode::ALL.into_iter().filter(|mode| rule.mode.is_none_or(|only| only == *mode)) {
                    assert!(shape_exists(rule.op, ty, mode, rule.when), "{rule:?}: never applies to {ty} in {mode}");
                    assert!(holds(rule.op, ty, mode, rule.when, rule.gives), "{rule:?}: wrong on {ty} in {mode}");
                }
            }
        }
    }

    #[test]
    fn rules_that_look_right_do_not_hold() {
        use BinaryOp::{Add, Div, Eq, Ge, Le, Max, Min, Mul, Ne, Rem, Sub};
        use Constant::{MinusZero, One, Zero};
        use FloatMode::{Canonical, Ieee};
        use When::{Left, Right, Same};
        for (op, ty, mode, when, gives) in [
            (Add, Scalar::F32, Ieee, Right(Zero), Gives::Other),
            (Sub, Scalar::F64, Ieee, Right(MinusZero), Gives::Other),
            (Sub, Scalar::F32, Canonical, Same, Gives::Zeros),
            (Mul, Scalar::F32, Canonical, Right(Zero), Gives::Zeros),
            (Mul, Scalar::F64, Ieee, Left(Zero), Gives::Zeros),
            (Div, Scalar::F32, Canonical, Left(Zero), Gives::Zeros),
            (Rem, Scalar::F32, Ieee, Right(One), Gives::Zeros),
            (Rem, Scalar::F32, Ieee, Same, Gives::Zeros),
            (Eq, Scalar::F32, Canonical, Same, Gives::Ones),
            (Ne, Scalar::F64, Ieee, Same, Gives::Zeros),
            (Le, Scalar::F32, Ieee, Same, Gives::Ones),
            (Ge, Scalar::F32, Ieee, Same, Gives::Ones),
            (Max, Scalar::I32, Ieee, Right(Zero), Gives::Other),
            (Min, Scalar::F32, Ieee, Right(Zero), Gives::Zeros),
            (Div, Scalar::I32, Ieee, Right(Zero), Gives::Zeros),
        ] {
            assert!(shape_exists(op, ty, mode, when), "{op} on {ty}, {when:?}");
            assert!(!holds(op, ty, mode, when, gives), "{op} on {ty} in {mode}, {when:?}: the values tried are too few");
        }
    }

    #[test]
    fn a_conversion_to_the_same_type_changes_nothing() {
        for ty in Scalar::ALL {
            for mode in FloatMode::ALL {
                for x in values(ty, mode) {
                    assert_eq!(vyre_scalar::cast(ty, ty, mode, x), x, "{ty} {x:#x} in {mode}");
                    assert_eq!(vyre_scalar::bitcast(ty, ty, mode, x), x, "{ty} {x:#x} in {mode}");
                }
            }
        }
    }
}
