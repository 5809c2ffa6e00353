//! What floats are compared with: `rustc_apfloat`, a port of LLVM's soft-float, and the families of cases in which mistakes hide.

use super::{Random, Type};
use rustc_apfloat::ieee::{IeeeFloat, Semantics, Single};
use rustc_apfloat::{Float, FloatConvert};
use vyre_spec::{DataType, FloatMode, Scalar};

impl Type {
    /// The product as the machine rounds it; good enough to find cases with.
    pub fn product(self, a: u64, b: u64) -> u64 {
        match self {
            Type::F32 => (f32::from_bits(a as u32) * f32::from_bits(b as u32)).to_bits().into(),
            Type::F64 => (f64::from_bits(a) * f64::from_bits(b)).to_bits(),
        }
    }

    /// Around zero, the smallest and largest subnormal and normal numbers, one, the integers with and without halves, powers of
    /// two with meaning for casts; infinities, NaN; both signs.
    pub fn boundaries(self) -> Vec<u64> {
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
pub enum Op {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    Sqrt,
    Fma,
}

pub fn theirs<S: Semantics>(op: Op, operands: [u64; 3]) -> u64 {
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
pub fn root<S: Semantics>(a: IeeeFloat<S>) -> IeeeFloat<S> {
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
pub fn operands(random: &mut Random, op: Op, ty: Type, boundaries: &[u64]) -> [u64; 3] {
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

/// Values for functions of one operand: where fractions end and integer types do, and anything.
pub fn one_operand(random: &mut Random, ty: Type, boundaries: &[u64]) -> u64 {
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

/// Random lengths, and the neighbourhoods of what lies between two floats.
pub fn integer(random: &mut Random, from: Scalar) -> u64 {
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

pub fn from_integer<S: Semantics>(from: Scalar, bits: u64) -> u64 {
    let value = if from.is_signed_int() {
        let shift = 64 - from.bits();
        IeeeFloat::<S>::from_i128(i128::from((bits << shift) as i64 >> shift)).value
    } else {
        IeeeFloat::<S>::from_u128(bits.into()).value
    };
    value.to_bits() as u64
}

/// What a format does with an infinity or a number beyond its largest.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Overflow {
    Infinity,
    Saturates,
}

/// A float format of 16 or 8 bits.
pub struct Format {
    pub ty: DataType,
    pub overflow: Overflow,
    /// What NaN is stored as.
    pub nan: u64,
}

/// The bits of the f32 that a pattern stands for.
pub fn widened<S: Semantics>(pattern: u16) -> u32
where
    IeeeFloat<S>: FloatConvert<Single>,
{
    let wide: Single = IeeeFloat::<S>::from_bits(pattern.into()).convert(&mut false).value;
    wide.to_bits() as u32
}

pub fn patterns<S: Semantics>() -> impl Iterator<Item = u16> {
    0..=(u16::MAX >> (16 - S::BITS))
}

/// What a store leaves of an f32 that is canonical for the mode.
pub fn narrowed<S: Semantics>(format: &Format, mode: FloatMode, bits: u64) -> u64
where
    IeeeFloat<S>: FloatConvert<Single>,
    Single: FloatConvert<IeeeFloat<S>>,
{
    let value = Single::from_bits(bits.into());
    if value.is_nan() {
        return format.nan;
    }
    let mut rounded: IeeeFloat<S> = value.convert(&mut false).value;
    if format.overflow == Overflow::Saturates && !rounded.is_finite() {
        let largest = IeeeFloat::<S>::largest();
        rounded = if value.is_negative() { -largest } else { largest };
    }
    let pattern = rounded.to_bits() as u16;
    let flushed = mode == FloatMode::Canonical && Type::F32.canonical(mode, widened::<S>(pattern).into()) == 0;
    if flushed { 0 } else { pattern.into() }
}

/// Values of the format, the middles between two, and the f32 next to these.
pub fn hard_to_round<S: Semantics>() -> impl Iterator<Item = u32>
where
    IeeeFloat<S>: FloatConvert<Single>,
{
    // One step of the format is 2^(24 - precision) steps of f32, except among its subnormals.
    let half = 1 << (23 - S::PRECISION);
    let normal =
        patterns::<S>().map(widened::<S>).flat_map(move |value| [value.wrapping_sub(half), value, value.wrapping_add(half)]);
    // Multiples of half the smallest value.
    let least = f64::from(f32::from_bits(widened::<S>(1)));
    let subnormal = (0..2048).map(move |k| ((least * f64::from(k) / 2.0) as f32).to_bits());
    let subnormal = subnormal.flat_map(|bits| [bits, bits | 0x8000_0000]);
    normal.chain(subnormal).flat_map(|center| [center.wrapping_sub(1), center, center.wrapping_add(1)])
}
