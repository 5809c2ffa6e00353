//! Constant folding: what can be computed now is, and what is known to be another expression becomes that expression.
//!
//! - An op whose operands are all literals becomes the literal that `vyre-scalar` gives for them, in the program's float mode; the
//!   interpreter calls the same functions, so the two cannot disagree. Conversions alike.
//! - `len` of a buffer that declares its count is that count: a launch with another length is refused.
//! - A variable that is never assigned after its `let`, and whose value is a literal or another such variable (or a loop counter or
//!   a result that is never assigned), is replaced by it where it is read. The replacement is in scope there, since nothing shadows
//!   anything. The `let` stays; pass `dead` takes it.
//! - A component of a vector that is built on the spot, or held by such a variable, is the component.
//! - [`RULES`]: `x * 1`, `x - x`, `x && true`, … where one operand decides, or both are the same name. Each row holds for *every*
//!   value of its types; a test tries them against `vyre-scalar` on the edges of every type.
//!   Also `select` that is decided, a sign or a `not` taken twice, and conversions to the type a value has.
//!
//! The result reads no more variables and no more memory than the expression did, so what was uniform stays so.
//!
//! What it leaves alone: floats, beyond identities that hold for NaN, infinities and both zeros. `x + 0.0` is not `x` (−0 becomes
//! +0; under `floats canonical` there is no −0, and it is), `x * 0.0` not 0, `x - x` not 0, `x == x` not true. Nothing is
//! reassociated, contracted, or turned into a reciprocal. `x / x` of integers is not 1: 0 / 0 is 0. `bitcast<u32>(bitcast<f32>(x))`
//! is not `x`: a NaN loses its payload. Operands of rules are compared only if they are names or ids, so that no two loads are ever
//! taken for one. A program with specialization constants is left alone as a whole: its constants have no values yet.

use super::{ByPlace, Places, assigned, rewrite};
use crate::ir::{BinaryOp, Child, Expr, FloatMode, Literal, Name, Node, Parts, Program, Scalar, Size, TernaryOp, UnaryOp};
use crate::kernel::{ExprKind, TypedExpr};
use std::collections::HashSet;
use vyre_scalar::canonicalize;
use vyre_spec::{Law, Operand, TypeSet};

/// The pass.
pub(super) fn fold(program: &Program) -> Program {
    let parts = program.parts();
    let Ok(validated) = program.validated() else { return program.clone() };
    if !parts.consts.is_empty() {
        return program.clone();
    }
    let kernel = validated.kernel();
    let assigned = assigned(kernel);
    let names = kernel.vars.iter().zip(&assigned).filter(|(_, assigned)| **assigned).map(|(var, _)| var.name.clone());
    let mut fold = Fold {
        parts,
        by_place: ByPlace::of(kernel),
        assigned_names: names.collect(),
        assigned,
        known: vec![Known::No; kernel.vars.len()],
        places: Places(0),
    };
    rewrite(program, |nodes, places| {
        fold.places = places;
        fold.body(nodes)
    })
}

/// What a variable is known to be.
#[derive(Clone)]
enum Known {
    No,
    /// This literal or variable.
    Leaf(Expr),
    /// A vector of these literals and variables.
    Vector(Vec<Expr>),
}

struct Fold<'a> {
    parts: &'a Parts,
    by_place: ByPlace<'a>,
    /// By variable.
    assigned: Vec<bool>,
    assigned_names: HashSet<Name>,
    /// By variable.
    known: Vec<Known>,
    places: Places,
}

impl Fold<'_> {
    fn body(&mut self, nodes: &[Node]) -> Vec<Node> {
        nodes.iter().map(|node| self.node(node)).collect()
    }

    fn node(&mut self, node: &Node) -> Node {
        let place = self.places.enter();
        let mut folded = node.without_bodies();
        for expr in folded.exprs_mut() {
            *expr = self.expr(expr);
        }
        if let (Node::Let { value, .. }, Some(var)) = (&folded, self.by_place.var(place))
            && !self.assigned[var.index()]
        {
            self.known[var.index()] = self.known(value);
        }
        for (new, old) in folded.bodies_mut().zip(node.bodies()) {
            *new = self.body(old).into();
        }
        folded
    }

    /// What a variable with this value, already folded, can be replaced by.
    fn known(&self, value: &Expr) -> Known {
        if self.is_fixed(value) {
            return Known::Leaf(value.clone());
        }
        if let Expr::Vector { components } = value
            && components.iter().all(|component| self.is_fixed(component))
        {
            return Known::Vector(components.iter().map(|component| (**component).clone()).collect());
        }
        Known::No
    }

    /// Whether this is a literal, or a variable that is never assigned. A name that several scopes use must be so in all of them.
    fn is_fixed(&self, expr: &Expr) -> bool {
        matches!(expr, Expr::Lit(_)) || matches!(expr, Expr::Var(name) if !self.assigned_names.contains(name))
    }

    fn expr(&mut self, expr: &Expr) -> Expr {
        let place = self.places.enter();
        let Some(typed) = self.by_place.expr(place) else {
            self.places.skip_operands(expr);
            return expr.clone();
        };
        match (expr, &typed.kind) {
            (Expr::Var(_), ExprKind::Var(var)) => {
                if let Known::Leaf(value) = &self.known[var.index()] {
                    return value.clone();
                }
                expr.clone()
            }
            (Expr::Len(buffer), _) => {
                let count = self.parts.buffers.iter().find(|decl| decl.name == *buffer).and_then(|decl| decl.count.as_ref());
                match count {
                    Some(Size::Lit(count)) => Expr::u32(*count),
                    Some(Size::Const(_)) | None => expr.clone(),
                }
            }
            (Expr::Extract { vector, component }, ExprKind::Extract(id, _)) => {
                let folded = self.expr(vector);
                let from = match (&folded, &self.by_place.kernel.expr(*id).kind) {
                    (Expr::Vector { components }, _) => components.get(usize::from(*component)).map(|child| (**child).clone()),
                    (Expr::Var(_), ExprKind::Var(var)) => match &self.known[var.index()] {
                        Known::Vector(components) => components.get(usize::from(*component)).cloned(),
                        Known::No | Known::Leaf(_) => None,
                    },
                    _ => None,
                };
                from.unwrap_or(Expr::Extract { vector: folded.into(), component: *component })
            }
            _ => {
                let folded = expr.with_children(|child| self.expr(child));
                simplify(folded, typed, self.parts.floats)
            }
        }
    }
}

/// The bits of a literal as they are in flight.
fn bits(expr: &Expr, mode: FloatMode) -> Option<u64> {
    if let Expr::Lit(literal) = expr { Some(canonicalize(literal.scalar(), mode, literal.bits())) } else { None }
}

/// Whether both are the same name or id, which have one value wherever they stand side by side.
fn same_name(a: &Expr, b: &Expr) -> bool {
    match (a, b) {
        (Expr::Var(a), Expr::Var(b)) | (Expr::Len(a), Expr::Len(b)) => a == b,
        (Expr::Builtin(a), Expr::Builtin(b)) => a == b,
        _ => false,
    }
}

/// An expression whose operands are folded; `typed` is what it was before, which has the same types.
fn simplify(expr: Expr, typed: &TypedExpr, mode: FloatMode) -> Expr {
    let result = typed.ty.scalar();
    let literal = |bits: u64| result.map(|ty| Expr::Lit(Literal::from_bits(ty, bits)));
    match (expr, &typed.kind) {
        (Expr::Unary { op, operand }, ExprKind::Unary(_, ty, _)) => {
            if let Some(folded) = bits(&operand, mode).and_then(|a| literal(vyre_scalar::unary(op, *ty, mode, a))) {
                return folded;
            }
            match (op.info().law == Law::Involution, operand.into_inner()) {
                (true, Expr::Unary { op: inner, operand }) if inner == op => operand.into_inner(),
                (_, operand) => Expr::Unary { op, operand: operand.into() },
            }
        }
        (Expr::Binary { op, left, right }, ExprKind::Binary(_, ty, ..)) => {
            if let (Some(a), Some(b)) = (bits(&left, mode), bits(&right, mode))
                && let Some(folded) = literal(vyre_scalar::binary(op, *ty, mode, a, b))
            {
                return folded;
            }
            let rule = RULES.iter().find(|rule| rule.applies(op, *ty, mode, &left, &right));
            match rule.map(|rule| (rule.when, rule.gives)) {
                None => Expr::Binary { op, left, right },
                Some((_, Gives::Zeros)) => literal(0).unwrap_or(Expr::Binary { op, left, right }),
                Some((_, Gives::Ones)) => literal(result.map_or(0, ones)).unwrap_or(Expr::Binary { op, left, right }),
                Some((When::Left(_), Gives::Other)) => right.into_inner(),
                Some((When::Right(_) | When::Same, Gives::Other)) => left.into_inner(),
                Some((When::Left(_), Gives::NotOther)) => Expr::Unary { op: UnaryOp::Not, operand: right },
                Some((When::Right(_) | When::Same, Gives::NotOther)) => Expr::Unary { op: UnaryOp::Not, operand: left },
            }
        }
        (Expr::Ternary { op, operands }, ExprKind::Ternary(_, ty, _)) => {
            let constants = operands.each_ref().map(|operand| bits(operand, mode));
            if let [Some(a), Some(b), Some(c)] = constants
                && let Some(folded) = literal(vyre_scalar::ternary(op, *ty, mode, a, b, c))
            {
                return folded;
            }
            match op {
                TernaryOp::Fma => Expr::Ternary { op, operands },
                TernaryOp::Select => select(operands, constants),
            }
        }
        (Expr::Cast { to, value }, ExprKind::Cast(from, _, _)) => {
            match bits(&value, mode).and_then(|a| literal(vyre_scalar::cast(*from, to, mode, a))) {
                Some(folded) => folded,
                None if *from == to => value.into_inner(),
                None => Expr::Cast { to, value },
            }
        }
        (Expr::Bitcast { to, value }, ExprKind::Bitcast(from, _, _)) => {
            match bits(&value, mode).and_then(|a| literal(vyre_scalar::bitcast(*from, to, mode, a))) {
                Some(folded) => folded,
                None if *from == to => value.into_inner(),
                None => Expr::Bitcast { to, value },
            }
        }
        (expr, _) => expr,
    }
}

/// A `select` that is not all literals.
fn select(operands: [Child; 3], constants: [Option<u64>; 3]) -> Expr {
    let is_bool = matches!(&*operands[1], Expr::Lit(Literal::Bool(_)));
    let same = same_name(&operands[1], &operands[2]) || constants[1].is_some() && constants[1] == constants[2];
    let [cond, yes, no] = operands;
    match constants {
        [Some(0), ..] => no.into_inner(),
        [Some(_), ..] => yes.into_inner(),
        _ if same => yes.into_inner(),
        [None, Some(1), Some(0)] if is_bool => cond.into_inner(),
        [None, Some(0), Some(1)] if is_bool => Expr::Unary { op: UnaryOp::Not, operand: cond },
        [None, ..] => Expr::Ternary { op: TernaryOp::Select, operands: [cond, yes, no] },
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
    fn applies(&self, op: BinaryOp, ty: Scalar, mode: FloatMode, left: &Expr, right: &Expr) -> bool {
        let [first, second] = op.info().operands else { return false };
        self.op == op
            && self.on.contains(ty)
            && self.mode.is_none_or(|only| only == mode)
            && match self.when {
                When::Left(constant) => bits(left, mode).is_some_and(|bits| constant.is(*first, ty, bits)),
                When::Right(constant) => bits(right, mode).is_some_and(|bits| constant.is(*second, ty, bits)),
                When::Same => first == second && same_name(left, right),
            }
    }
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
