//! `+ - * / % sqrt fma`, rounding to integers and the casts, on f32 and f64 in both float modes, against `rustc_apfloat`, a
//! port of LLVM's soft-float.
//!
//! Cases are drawn from families in which mistakes hide: boundary values, cancellation, subnormal results, ties, the ends of the
//! range, sparse significands. 10⁸ per op, type and mode in the long form (`VYRE_LONG=1`), else 10⁵.
//!
//! The soft-float has no square root: it is taken in integers, and the soft-float rounds it.

mod sweep;

use rustc_apfloat::ieee::{Double, DoubleS, IeeeFloat, Semantics, Single, SingleS};
use rustc_apfloat::{Float, FloatConvert, Round};
use sweep::{Random, Report, Type, cases};
use vyre_scalar::{binary, cast, ternary, unary};
use vyre_spec::{BinaryOp, FloatMode, Scalar, TernaryOp, UnaryOp};

const EVERYTHING: u64 = 100_000_000;
const SAMPLE: u64 = 100_000;

impl Type {
    /// The product as the machine rounds it; good enough to find cases with.
    fn product(self, a: u64, b: u64) -> u64 {
        match self {
            Type::F32 => (f32::from_bits(a as u32) * f32::from_bits(b as u32)).to_bits().into(),
            Type::F64 => (f64::from_bits(a) * f64::from_bits(b)).to_bits(),
        }
    }

    /// Around zero, the smallest and largest subnormal and normal numbers, one, the integers with and without halves, powers of
    /// two with meaning for casts; infinities, NaN; both signs.
    fn boundaries(self) -> Vec<u64> {
        let unit = 1 << self.fraction();
        let one = self.bias() << self.fraction();
        let mut values = vec![self.infinity(), self.infinity() | unit >> 1];
        let fields = [0, 1, 2, self.fraction() - 1, self.fraction(), self.fraction() + 1, 31, 32, 63, 64, 2 * self.fraction()];
        let centers = fields.into_iter().flat_map(|up| [one + up * unit, one - up.min(self.bias() - 1) * unit]);
        for center in centers.chain([0, unit, 2 * unit, self.infinity() - unit, self.infinity(), one + unit / 2]) {
            for near in [0, 1, 2, unit / 2, unit - 1, u64::MAX, u64::MAX - 1] {
                values.push(center.wrapping_add(near));
            }
        }
        values.retain(|value| *value <= self.infinity() | unit >> 1);
        let negative: Vec<u64> = values.iter().map(|value| value | self.sign()).collect();
        values.extend(negative);
        values
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Op {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    Sqrt,
    Fma,
}

fn ours(op: Op, ty: Type, mode: FloatMode, [a, b, c]: [u64; 3]) -> u64 {
    let two = |op| binary(op, ty.scalar(), mode, a, b);
    match op {
        Op::Add => two(BinaryOp::Add),
        Op::Sub => two(BinaryOp::Sub),
        Op::Mul => two(BinaryOp::Mul),
        Op::Div => two(BinaryOp::Div),
        Op::Rem => two(BinaryOp::Rem),
        Op::Sqrt => unary(UnaryOp::Sqrt, ty.scalar(), mode, a),
        Op::Fma => ternary(TernaryOp::Fma, ty.scalar(), mode, a, b, c),
    }
}

fn theirs<S: Semantics>(op: Op, operands: [u64; 3]) -> u64 {
    let [a, b, c] = operands.map(|bits| IeeeFloat::<S>::from_bits(bits.into()));
    let result = match op {
        Op::Add => (a + b).value,
        Op::Sub => (a - b).value,
        Op::Mul => (a * b).value,
        Op::Div => (a / b).value,
        Op::Rem => a.c_fmod(b).value,
        Op::Sqrt => root(a),
        Op::Fma => a.mul_add(b, c).value,
    };
    result.to_bits() as u64
}

/// With `a = m * 4^e` and `m` of at least 116 bits, the integer root of `m` has enough bits for any rounding; that it is not
/// exact is kept in one more.
fn root<S: Semantics>(a: IeeeFloat<S>) -> IeeeFloat<S> {
    if a.is_zero() || a.is_nan() || a.is_pos_infinity() {
        return a;
    }
    if a.is_negative() {
        return IeeeFloat::NAN;
    }
    let exponent = a.ilogb() - 118;
    let exponent = exponent - exponent.rem_euclid(2);
    // Exact: scaled in a type with room, to an integer of 119 or 120 bits.
    let wide: rustc_apfloat::ieee::Quad = FloatConvert::<rustc_apfloat::ieee::Quad>::convert(a, &mut false).value;
    let m = wide.scalbn(-exponent).to_u128(128).value;
    let root = m.isqrt();
    let odd = root << 1 | u128::from(root * root != m);
    IeeeFloat::from_u128(odd).value.scalbn(exponent / 2 - 1)
}

/// Operands from a family of cases.
fn operands(random: &mut Random, op: Op, ty: Type, boundaries: &[u64]) -> [u64; 3] {
    let (unit, bias, last) = (1u64 << ty.fraction(), ty.bias(), ty.last_field());
    let float = |field: u64, fraction: u64| field.min(last - 1) << ty.fraction() | fraction & (unit - 1);
    let bits = |random: &mut Random| random.next() & (ty.infinity() | ty.sign() | (unit - 1));
    let sparse = |random: &mut Random| random.next() & random.next() & random.next();
    let family = random.below(8);
    let [mut a, mut b, mut c] = match family {
        0 => [random.pick(boundaries), random.pick(boundaries), random.pick(boundaries)],
        1 => [bits(random), bits(random), bits(random)],
        2 => {
            // Cancellation: equal but for the sign and the last bits; for fma the addend is the product.
            let (a, near) = (bits(random), random.below(9).wrapping_sub(4));
            let b =
                if op == Op::Fma { bits(random) } else { a.wrapping_add(near).wrapping_add(random.below(3) << ty.fraction()) };
            [a, b, ty.product(a, b).wrapping_add(near) ^ ty.sign()]
        }
        3 => {
            // Results around the smallest normal number and below.
            let below = random.below(ty.fraction() + 6);
            let field = random.below(last - 1);
            let (ea, eb) = match op {
                Op::Add | Op::Sub | Op::Rem | Op::Sqrt => (below, random.below(ty.fraction() + 3)),
                Op::Mul | Op::Fma => (field, (bias + 3).saturating_sub(field + below)),
                Op::Div => (field, field.saturating_add(bias + below).saturating_sub(3)),
            };
            let (fa, fb) = if random.below(2) == 0 { (sparse(random), sparse(random)) } else { (random.next(), random.next()) };
            [float(ea, fa), float(eb, fb), float(random.below(3), random.next())]
        }
        4 => {
            // Ties and their neighbours.
            let short = |random: &mut Random, length: u64| random.next() << (ty.fraction() + 1 - length);
            let length = 1 + random.below(ty.fraction());
            let middle = bias - 20 + random.below(40);
            let a = float(middle, short(random, length));
            match op {
                Op::Add | Op::Sub => [a, float(middle - random.below(ty.fraction() + 4).min(middle), sparse(random)), 0],
                Op::Mul | Op::Fma => {
                    let b = float(bias, short(random, ty.fraction() + 2 - length));
                    let apart = random.below(2 * ty.fraction() + 8);
                    [a, b, float((middle + 4 + ty.fraction()).saturating_sub(apart), sparse(random))]
                }
                // A product divided by one factor, and a square, moved by half a unit or less.
                Op::Div | Op::Rem => {
                    let b = float(bias, random.next());
                    [ty.product(a, b).wrapping_add(random.below(3)).wrapping_sub(1), b, 0]
                }
                Op::Sqrt => [ty.product(a, a).wrapping_add(random.below(3)).wrapping_sub(1), 0, 0],
            }
        }
        5 => {
            // Near the largest number.
            let high = |random: &mut Random| float(last - 1 - random.below(4), random.next() | random.next());
            let near_one = |random: &mut Random| float(bias + random.below(4) - 2, random.next());
            match op {
                Op::Add | Op::Sub | Op::Rem | Op::Sqrt => [high(random), high(random), 0],
                Op::Mul | Op::Div | Op::Fma => [high(random), near_one(random), high(random)],
            }
        }
        6 => [random.pick(boundaries), bits(random), random.pick(boundaries)],
        _ => {
            let field = random.below(last);
            let near = |random: &mut Random| field.saturating_sub(random.below(2 * ty.fraction() + 6));
            [float(field, sparse(random)), float(near(random), sparse(random)), float(near(random), sparse(random))]
        }
    };
    // The other operand first, other signs.
    if random.below(2) == 0 {
        (a, b) = (b, a);
    }
    let signs = random.next();
    for (operand, bit) in [&mut a, &mut b, &mut c].into_iter().zip(0..) {
        *operand ^= if signs >> bit & 1 == 1 && family != 2 { ty.sign() } else { 0 };
    }
    if op == Op::Rem && random.below(256) != 0 {
        // The soft-float subtracts once per bit of the quotient; most quotients are kept short.
        let field = |x: u64| x >> ty.fraction() & last;
        let least = field(a).saturating_sub(2 * ty.fraction().min(24));
        if field(b) < least {
            b += (least - field(b)) << ty.fraction();
        }
    }
    [a, b, c].map(|operand| ty.canonical(FloatMode::Ieee, operand))
}

fn compare<S: Semantics>(op: Op, ty: Type) {
    let boundaries = ty.boundaries();
    let mut random = Random(op as u64 + 100 * ty.fraction());
    let mut reports = FloatMode::ALL.map(|mode| Report::new(format!("{op:?} of {}, {mode:?}", ty.scalar())));
    for _ in 0..cases(EVERYTHING, SAMPLE) {
        let operands = operands(&mut random, op, ty, &boundaries);
        let of_operands = theirs::<S>(op, operands);
        for (mode, report) in FloatMode::ALL.into_iter().zip(&mut reports) {
            let inputs = operands.map(|operand| ty.canonical(mode, operand));
            let result = if inputs == operands { of_operands } else { theirs::<S>(op, inputs) };
            let expected = ty.canonical(mode, result);
            report.check(ours(op, ty, mode, inputs), expected, || format!("{op:?} {inputs:x?}"));
        }
    }
    reports.into_iter().for_each(Report::finish);
}

fn compare_both(op: Op) {
    compare::<SingleS>(op, Type::F32);
    compare::<DoubleS>(op, Type::F64);
}

#[test]
fn additions_round_once() {
    compare_both(Op::Add);
}

#[test]
fn subtractions_round_once() {
    compare_both(Op::Sub);
}

#[test]
fn multiplications_round_once() {
    compare_both(Op::Mul);
}

#[test]
fn divisions_round_once() {
    compare_both(Op::Div);
}

#[test]
fn remainders_are_exact() {
    compare_both(Op::Rem);
}

#[test]
fn square_roots_round_once() {
    compare_both(Op::Sqrt);
}

#[test]
fn fused_multiply_adds_round_once() {
    compare_both(Op::Fma);
}

/// Values for functions of one operand: where fractions end and integer types do, and anything.
fn one_operand(random: &mut Random, ty: Type, boundaries: &[u64]) -> u64 {
    let sign = if random.below(2) == 0 { ty.sign() } else { 0 };
    let value = match random.below(4) {
        0 => random.pick(boundaries),
        1 => random.next() & (ty.infinity() | ((1 << ty.fraction()) - 1)),
        2 => (ty.bias() - 2 + random.below(70)) << ty.fraction() | random.next() & ((1 << ty.fraction()) - 1),
        _ => {
            // Around integers and halves.
            let integer = random.next() >> random.below(64);
            let half = integer as f64 / 2.0;
            let bits = if ty == Type::F32 { (half as f32).to_bits().into() } else { half.to_bits() };
            bits.wrapping_add(random.below(3)).wrapping_sub(1)
        }
    };
    ty.canonical(FloatMode::Ieee, value ^ sign)
}

/// Compares a function of one float, given ours in a mode and the soft-float's, whose result is of type `to`.
fn compare_one(what: &str, ty: Type, to: Option<Type>, ours: impl Fn(FloatMode, u64) -> u64, theirs: impl Fn(u64) -> u64) {
    let boundaries = ty.boundaries();
    let mut random = Random(what.len() as u64);
    let mut reports = FloatMode::ALL.map(|mode| Report::new(format!("{what} of {}, {mode:?}", ty.scalar())));
    for _ in 0..cases(EVERYTHING, SAMPLE) {
        let operand = one_operand(&mut random, ty, &boundaries);
        for (mode, report) in FloatMode::ALL.into_iter().zip(&mut reports) {
            let input = ty.canonical(mode, operand);
            let result = theirs(input);
            let expected = to.map_or(result, |to| to.canonical(mode, result));
            report.check(ours(mode, input), expected, || format!("{what}({input:#x})"));
        }
    }
    reports.into_iter().for_each(Report::finish);
}

fn to_integral<S: Semantics>(ty: Type) {
    for (op, round) in [
        (UnaryOp::Floor, Round::TowardNegative),
        (UnaryOp::Ceil, Round::TowardPositive),
        (UnaryOp::Trunc, Round::TowardZero),
        (UnaryOp::Round, Round::NearestTiesToEven),
    ] {
        compare_one(
            &op.to_string(),
            ty,
            Some(ty),
            |mode, a| unary(op, ty.scalar(), mode, a),
            |a| IeeeFloat::<S>::from_bits(a.into()).round_to_integral(round).value.to_bits() as u64,
        );
    }
}

#[test]
fn floats_round_to_integers_in_every_direction() {
    to_integral::<SingleS>(Type::F32);
    to_integral::<DoubleS>(Type::F64);
}

const INTEGERS: [Scalar; 4] = [Scalar::U32, Scalar::I32, Scalar::U64, Scalar::I64];

fn to_integers<S: Semantics>(ty: Type) {
    for to in INTEGERS {
        let width = to.bits() as usize;
        compare_one(
            &format!("cast to {to}"),
            ty,
            None,
            |mode, a| cast(ty.scalar(), to, mode, a),
            |a| {
                let value = IeeeFloat::<S>::from_bits(a.into());
                let integer = if to.is_signed_int() { value.to_i128(width).value as u128 } else { value.to_u128(width).value };
                integer as u64 & (u64::MAX >> (64 - width))
            },
        );
    }
}

#[test]
fn floats_truncate_and_saturate_to_integers() {
    to_integers::<SingleS>(Type::F32);
    to_integers::<DoubleS>(Type::F64);
}

#[test]
fn floats_convert_to_each_other() {
    compare_one(
        "cast to f32",
        Type::F64,
        Some(Type::F32),
        |mode, a| cast(Scalar::F64, Scalar::F32, mode, a),
        |a| FloatConvert::<Single>::convert(Double::from_bits(a.into()), &mut false).value.to_bits() as u64,
    );
    compare_one(
        "cast to f64",
        Type::F32,
        Some(Type::F64),
        |mode, a| cast(Scalar::F32, Scalar::F64, mode, a),
        |a| FloatConvert::<Double>::convert(Single::from_bits(a.into()), &mut false).value.to_bits() as u64,
    );
}

/// Random lengths, and the neighbourhoods of what lies between two floats.
fn integer(random: &mut Random, from: Scalar) -> u64 {
    let mask = u64::MAX >> (64 - from.bits());
    let length = 1 + random.below(from.bits().into());
    let value = match random.below(3) {
        0 => random.next() >> (64 - length),
        1 => (random.next() & random.next() & random.next()) >> (64 - length),
        _ => {
            // Ones at the top of a number, then a half, then almost nothing.
            let kept = random.pick(&[23, 24, 25, 52, 53, 54]).min(length);
            let top = random.next() >> (64 - kept) << (length - kept);
            (top | 1 << (length - 1)).wrapping_add(random.below(5)).wrapping_sub(2)
        }
    };
    (if random.below(2) == 0 { value } else { value.wrapping_neg() }) & mask
}

fn from_integer<S: Semantics>(from: Scalar, bits: u64) -> u64 {
    let value = if from.is_signed_int() {
        let shift = 64 - from.bits();
        IeeeFloat::<S>::from_i128(i128::from((bits << shift) as i64 >> shift)).value
    } else {
        IeeeFloat::<S>::from_u128(bits.into()).value
    };
    value.to_bits() as u64
}

#[test]
fn integers_round_once_to_floats() {
    for from in INTEGERS {
        for ty in Type::ALL {
            let mut random = Random(from.bits().into());
            let mut reports = FloatMode::ALL.map(|mode| Report::new(format!("cast of {from} to {}, {mode:?}", ty.scalar())));
            for _ in 0..cases(EVERYTHING, SAMPLE) {
                let a = integer(&mut random, from);
                let result = match ty {
                    Type::F32 => from_integer::<SingleS>(from, a),
                    Type::F64 => from_integer::<DoubleS>(from, a),
                };
                for (mode, report) in FloatMode::ALL.into_iter().zip(&mut reports) {
                    let expected = ty.canonical(mode, result);
                    report.check(cast(from, ty.scalar(), mode, a), expected, || format!("{from} {a:#x}"));
                }
            }
            reports.into_iter().for_each(Report::finish);
        }
    }
}
