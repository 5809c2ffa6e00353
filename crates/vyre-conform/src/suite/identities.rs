//! Small expressions that look as if they could be simpler: `x + 1 > x`, `max(min(x, high), low)`, `x << a << b`, `x / c * c`. What
//! holds for numbers does not hold where integers wrap, shifts count modulo the width, and floats round or are not a number.
//!
//! Each spec computes a handful of such expressions and mixes the bits of all of them into one word. Its meaning is not written beside
//! it a second time: the expression is worked out op by op on columns of cases, by what [`crate::cpu`] says of each op alone.

use super::elementwise::{Elementwise, finish};
use crate::cpu::convert::{self, Access};
use crate::cpu::{self, Meaning};
use crate::spec::OpSpec;
use std::sync::Arc;
use vyre_foundation::ir::{DataType, Expr, Literal};
use vyre_spec::{BinaryOp, FloatMode, Scalar, TernaryOp, UnaryOp};

/// An expression of the operands `a` and `b`.
type Make = Box<dyn Fn(&Expr, &Expr) -> Expr + Send + Sync>;

/// The types that there is arithmetic on.
const NUMBERS: [Scalar; 6] = [Scalar::U32, Scalar::I32, Scalar::U64, Scalar::I64, Scalar::F32, Scalar::F64];

/// Comparisons by order.
const ORDERS: [BinaryOp; 4] = [BinaryOp::Lt, BinaryOp::Le, BinaryOp::Gt, BinaryOp::Ge];

/// How many expressions a spec has at most.
const TOGETHER: usize = 12;

/// All of them.
///
/// # Panics
///
/// If a spec is not one, which is a mistake in this file.
#[must_use]
pub fn identities() -> Vec<OpSpec> {
    let mut specs = Vec::new();
    for t in NUMBERS {
        let modes: &[FloatMode] = if t.is_float() { &FloatMode::ALL } else { &[FloatMode::Ieee] };
        for mode in modes {
            let mut add = |name: &str, all: Vec<Make>, boundary: Vec<Vec<Vec<u8>>>| {
                let mut rest = all.into_iter();
                for part in 1.. {
                    let together: Vec<Make> = rest.by_ref().take(TOGETHER).collect();
                    if together.is_empty() {
                        break;
                    }
                    specs.push(mixed(&format!("{name}.{part}"), t, *mode, together, boundary.clone()));
                }
            };
            let near = limits(t);
            for (name, op) in [("add", BinaryOp::Add), ("sub", BinaryOp::Sub), ("mul", BinaryOp::Mul)] {
                add(&format!("compared.{name}"), compared(t, op), near.clone());
            }
            add("difference", differences(t), near.clone());
            add("bounds", bounds(t), near.clone());
            add("chosen", chosen(t), near.clone());
            add("undone", undone(t), near.clone());
            add("converted", converted(t), near.clone());
            if !t.is_float() {
                add("shifts", shifts(t), near);
                for (name, by) in divisors(t) {
                    add(&format!("divided.{name}"), divided(t, &by), multiples(t, &by));
                }
            }
        }
    }
    for from in [Scalar::F32, Scalar::F64] {
        for ty in [DataType::U8, DataType::I8, DataType::U16, DataType::I16] {
            specs.push(narrowed(from, &ty));
        }
    }
    specs
}

/// A number as a literal; integers wrap.
fn literal(t: Scalar, number: i128) -> Expr {
    let bits = match t {
        Scalar::F32 => u64::from((number as f32).to_bits()),
        Scalar::F64 => (number as f64).to_bits(),
        Scalar::U32 | Scalar::I32 => u64::from(number as u32),
        Scalar::U64 | Scalar::I64 => number as u64,
        Scalar::Bool => u64::from(number != 0),
    };
    Expr::Lit(Literal::from_bits(t, bits))
}

/// The least and the greatest number of an integer type; of a float type the infinities, as bits.
fn ends(t: Scalar) -> [u64; 2] {
    match t {
        Scalar::Bool => [0, 1],
        Scalar::U32 => [0, u64::from(u32::MAX)],
        Scalar::I32 => [1 << 31, i32::MAX as u64],
        Scalar::U64 => [0, u64::MAX],
        Scalar::I64 => [1 << 63, i64::MAX as u64],
        Scalar::F32 => [f32::NEG_INFINITY, f32::INFINITY].map(|end| u64::from(end.to_bits())),
        Scalar::F64 => [f64::NEG_INFINITY, f64::INFINITY].map(f64::to_bits),
    }
}

fn end(t: Scalar, which: usize) -> Expr {
    Expr::Lit(Literal::from_bits(t, ends(t)[which]))
}

/// Values near the literals of this file and near the ends of the type, for both operands.
fn limits(t: Scalar) -> Vec<Vec<Vec<u8>>> {
    let bytes = t.bytes() as usize;
    let small: Vec<u64> = match t {
        Scalar::F32 => [-6.0, -1.0, -0.0, 0.0, 0.5, 1.0, 2.0, 4.0, 5.0, 6.0, 16_777_216.0, f32::MAX, f32::NAN]
            .map(|value: f32| u64::from(value.to_bits()))
            .into(),
        Scalar::F64 => [-6.0, -1.0, -0.0, 0.0, 0.5, 1.0, 2.0, 4.0, 5.0, 6.0, 9_007_199_254_740_992.0, f64::MAX, f64::NAN]
            .map(|value: f64| value.to_bits())
            .into(),
        Scalar::Bool | Scalar::U32 | Scalar::I32 | Scalar::U64 | Scalar::I64 => (0..8).collect(),
    };
    let near = ends(t).into_iter().flat_map(|end| (0..7).map(move |by: u64| end.wrapping_add(by).wrapping_sub(3)));
    let all: Vec<Vec<u8>> = small.into_iter().chain(near).map(|bits| bits.to_le_bytes()[..bytes].to_vec()).collect();
    vec![all.clone(), all]
}

/// `x + 1 > x`
fn compared(t: Scalar, op: BinaryOp) -> Vec<Make> {
    let mut all: Vec<Make> = Vec::new();
    for (n, by) in [literal(t, 1), literal(t, 2), literal(t, 5), end(t, 1)].into_iter().enumerate() {
        for (m, order) in ORDERS.into_iter().chain([BinaryOp::Eq]).enumerate() {
            let by = by.clone();
            all.push(Box::new(move |a, _| {
                let changed = if (n + m) % 3 == 0 && op != BinaryOp::Sub {
                    Expr::binary(op, by.clone(), a.clone())
                } else {
                    Expr::binary(op, a.clone(), by.clone())
                };
                if n % 2 == 0 { Expr::binary(order, changed, a.clone()) } else { Expr::binary(order, a.clone(), changed) }
            }));
        }
    }
    all
}

/// `x - y < 0`
fn differences(t: Scalar) -> Vec<Make> {
    let mut all: Vec<Make> = Vec::new();
    for order in ORDERS.into_iter().chain([BinaryOp::Eq, BinaryOp::Ne]) {
        all.push(Box::new(move |a, b| Expr::binary(order, Expr::sub(a.clone(), b.clone()), literal(t, 0))));
        all.push(Box::new(move |a, _| Expr::binary(order, Expr::sub(a.clone(), literal(t, 5)), literal(t, 2))));
        all.push(Box::new(move |a, b| Expr::binary(order, Expr::mul(a.clone(), b.clone()), literal(t, 0))));
        all.push(Box::new(move |a, b| Expr::not(Expr::binary(order, a.clone(), b.clone()))));
    }
    all
}

/// `max(min(x, high), low)`
fn bounds(t: Scalar) -> Vec<Make> {
    let zero = |sign: u64| Expr::Lit(Literal::from_bits(t, if t.is_float() { sign << (t.bits() - 1) } else { 0 }));
    let pairs = [
        [literal(t, 1), literal(t, 5)],
        [literal(t, 5), literal(t, 1)],
        [zero(1), zero(0)],
        [zero(0), zero(1)],
        [end(t, 0), literal(t, 4)],
        [literal(t, 2), end(t, 1)],
        [literal(t, 2), literal(t, 2)],
    ];
    let mut all: Vec<Make> = Vec::new();
    for [low, high] in pairs {
        let (least, most) = (low.clone(), high.clone());
        all.push(Box::new(move |a, _| Expr::max(Expr::min(a.clone(), most.clone()), least.clone())));
        all.push(Box::new(move |a, _| Expr::min(high.clone(), Expr::max(low.clone(), a.clone()))));
    }
    all.push(Box::new(|a, b| Expr::min(a.clone(), Expr::max(a.clone(), b.clone()))));
    all.push(Box::new(|a, b| Expr::max(Expr::min(a.clone(), b.clone()), b.clone())));
    all
}

/// `x < y ? x : y`
fn chosen(t: Scalar) -> Vec<Make> {
    let select = |holds: Expr, one: Expr, other: Expr| Expr::ternary(TernaryOp::Select, holds, one, other);
    let mut all: Vec<Make> = Vec::new();
    for order in ORDERS {
        all.push(Box::new(move |a, b| select(Expr::binary(order, a.clone(), b.clone()), a.clone(), b.clone())));
        all.push(Box::new(move |a, b| select(Expr::binary(order, a.clone(), b.clone()), b.clone(), a.clone())));
        all.push(Box::new(move |a, _| {
            let negative = Expr::sub(literal(t, 0), a.clone());
            select(Expr::binary(order, a.clone(), literal(t, 0)), negative, a.clone())
        }));
    }
    all
}

/// An op and its opposite.
fn undone(t: Scalar) -> Vec<Make> {
    let mut all: Vec<Make> = vec![
        Box::new(|a, b| Expr::sub(Expr::add(a.clone(), b.clone()), b.clone())),
        Box::new(|a, b| Expr::add(Expr::sub(a.clone(), b.clone()), b.clone())),
        Box::new(|a, b| Expr::div(Expr::mul(a.clone(), b.clone()), b.clone())),
        Box::new(|a, b| Expr::mul(Expr::div(a.clone(), b.clone()), b.clone())),
        Box::new(move |a, _| Expr::div(Expr::mul(a.clone(), literal(t, 6)), literal(t, 6))),
        Box::new(move |a, _| Expr::mul(Expr::div(a.clone(), literal(t, 6)), literal(t, 6))),
        Box::new(move |a, _| Expr::div(Expr::mul(a.clone(), literal(t, 6)), literal(t, 3))),
        Box::new(move |a, _| Expr::div(Expr::div(a.clone(), literal(t, 6)), literal(t, 5))),
        Box::new(move |a, _| Expr::sub(Expr::add(a.clone(), literal(t, 5)), literal(t, 4))),
        Box::new(move |a, _| Expr::div(Expr::add(a.clone(), literal(t, 4)), literal(t, 2))),
        Box::new(|a, _| Expr::sub(a.clone(), a.clone())),
        Box::new(|a, _| Expr::div(a.clone(), a.clone())),
        Box::new(|a, b| Expr::sub(Expr::mul(a.clone(), b.clone()), Expr::mul(a.clone(), a.clone()))),
        Box::new(move |a, b| Expr::mul(Expr::sub(literal(t, 0), a.clone()), b.clone())),
    ];
    if t.is_float() {
        all.push(Box::new(move |a, _| Expr::add(a.clone(), literal(t, 0))));
        all.push(Box::new(move |a, _| Expr::mul(a.clone(), literal(t, 0))));
        all.push(Box::new(move |a, _| Expr::sub(literal(t, 0), a.clone())));
        all.push(Box::new(move |a, _| Expr::binary(BinaryOp::Div, literal(t, 1), Expr::div(literal(t, 1), a.clone()))));
    } else {
        all.push(Box::new(|a, b| {
            Expr::binary(BinaryOp::SatSub, Expr::binary(BinaryOp::SatAdd, a.clone(), b.clone()), b.clone())
        }));
        all.push(Box::new(|a, b| {
            Expr::add(Expr::mul(Expr::div(a.clone(), b.clone()), b.clone()), Expr::rem(a.clone(), b.clone()))
        }));
        all.push(Box::new(|a, b| Expr::rem(Expr::add(a.clone(), b.clone()), b.clone())));
        all.push(Box::new(|a, b| Expr::bitxor(Expr::bitand(a.clone(), b.clone()), Expr::bitor(a.clone(), b.clone()))));
    }
    if UnaryOp::Abs.info().over.contains(t) {
        all.push(Box::new(|a, _| Expr::unary(UnaryOp::Abs, Expr::unary(UnaryOp::Neg, a.clone()))));
        all.push(Box::new(move |a, _| Expr::mul(Expr::unary(UnaryOp::Abs, a.clone()), literal(t, 2))));
        all.push(Box::new(move |a, _| Expr::ge(Expr::unary(UnaryOp::Abs, a.clone()), literal(t, 0))));
        all.push(Box::new(move |a, _| Expr::max(Expr::unary(UnaryOp::Abs, a.clone()), literal(t, 0))));
    }
    if UnaryOp::Abs.info().over.contains(t) && !t.is_float() {
        for by in [2, 3, 7, 16, 100] {
            all.push(Box::new(move |a, _| Expr::div(Expr::unary(UnaryOp::Abs, a.clone()), literal(t, by))));
            all.push(Box::new(move |a, _| Expr::rem(Expr::unary(UnaryOp::Abs, a.clone()), literal(t, by))));
        }
        all.push(Box::new(move |a, _| Expr::shr(Expr::unary(UnaryOp::Abs, a.clone()), Expr::u32(1))));
    }
    all
}

/// Another type and back, with and without a step in between.
fn converted(t: Scalar) -> Vec<Make> {
    let mut all: Vec<Make> = Vec::new();
    for other in NUMBERS.into_iter().filter(|other| *other != t) {
        all.push(Box::new(move |a, _| Expr::cast(t, Expr::cast(other, a.clone()))));
        all.push(Box::new(move |a, _| Expr::cast(t, Expr::add(Expr::cast(other, a.clone()), literal(other, 3)))));
    }
    all
}

/// `x << a << b`
fn shifts(t: Scalar) -> Vec<Make> {
    let bits = t.bits();
    let amounts =
        [(bits - 1, 1), (bits / 2, bits / 2), (bits - 1, bits - 1), (1, bits - 1), (3, bits - 4), (8, bits), (bits + 3, 5)];
    let ops = [
        [BinaryOp::Shl, BinaryOp::Shl],
        [BinaryOp::Shr, BinaryOp::Shr],
        [BinaryOp::Shl, BinaryOp::Shr],
        [BinaryOp::Shr, BinaryOp::Shl],
        [BinaryOp::Rotl, BinaryOp::Rotr],
    ];
    let mut all: Vec<Make> = Vec::new();
    for [first, second] in ops {
        for (by, then) in amounts {
            all.push(Box::new(move |a, _| Expr::binary(second, Expr::binary(first, a.clone(), Expr::u32(by)), Expr::u32(then))));
        }
    }
    all
}

/// Numbers to divide by.
fn divisors(t: Scalar) -> Vec<(&'static str, Vec<i128>)> {
    let (top, signed) = (1_i128 << (t.bits() - 1), matches!(t, Scalar::I32 | Scalar::I64));
    let largest = if signed { top - 1 } else { 2 * top - 1 };
    let mut all = vec![
        ("small", vec![2, 3, 4, 5, 6, 7]),
        ("odd", vec![9, 11, 13, 14, 15, 19]),
        ("twenties", vec![21, 23, 25, 27, 28, 29]),
        ("thirties", vec![31, 33, 35, 37, 39, 45]),
        ("primes", vec![53, 61, 67, 97, 107, 641]),
        ("powers", vec![16, 64, 128, 65_536, 1 << 30, top / 2]),
        ("beside-powers", vec![63, 65, 127, 65_535, 65_537, (1 << 30) + 1]),
        ("decimal", vec![10, 100, 1000, 10_000, 1_000_000, 1_000_000_000]),
        ("time", vec![12, 24, 30, 60, 365, 86_400]),
        ("large", vec![top / 2 + 1, top - 1, top - 2, largest, largest - 1, largest / 3]),
    ];
    if signed {
        all.push(("negative", vec![-1, -2, -3, -7, -10, -top]));
    } else {
        all.push(("upper", vec![top, top + 1, largest - 2, largest / 2 * 2, largest / 5 * 4, largest / 7 * 6]));
    }
    all
}

fn divided(t: Scalar, by: &[i128]) -> Vec<Make> {
    let mut all: Vec<Make> = Vec::new();
    for by in by.iter().copied() {
        all.push(Box::new(move |a, _| Expr::div(a.clone(), literal(t, by))));
        all.push(Box::new(move |a, _| Expr::rem(a.clone(), literal(t, by))));
    }
    all
}

/// The first and the last multiples of these, and what is beside them.
fn multiples(t: Scalar, by: &[i128]) -> Vec<Vec<Vec<u8>>> {
    let (top, signed) = (1_i128 << (t.bits() - 1), matches!(t, Scalar::I32 | Scalar::I64));
    let (least, largest) = if signed { (-top, top - 1) } else { (0, 2 * top - 1) };
    let mut all = vec![0, 1, least, least + 1, largest, largest - 1];
    for by in by.iter().map(|by| by.abs()) {
        for last in [largest - largest % by, least - least % by, by, 2 * by, (largest / by / 2) * by] {
            all.extend([last - 1, last, last + 1]);
        }
    }
    let bytes = t.bytes() as usize;
    vec![all.into_iter().map(|value: i128| value.to_le_bytes()[..bytes].to_vec()).collect(), vec![vec![0; bytes]]]
}

/// Operands, as columns of cases.
struct Operands<'a> {
    t: Scalar,
    mode: FloatMode,
    columns: [&'a [u8]; 2],
    cases: usize,
}

impl Operands<'_> {
    /// The values of an expression of `a` and `b`, by what each op means alone.
    fn column(&self, expr: &Expr) -> (Scalar, Vec<u8>) {
        let known = |meaning: Option<Meaning>| meaning.expect("every op of these expressions takes its operands");
        match expr {
            Expr::Var(name) => (self.t, self.columns[usize::from(name == "b")].to_vec()),
            Expr::Lit(literal) => {
                let bytes = literal.scalar().bytes() as usize;
                (literal.scalar(), literal.bits().to_le_bytes()[..bytes].repeat(self.cases))
            }
            Expr::Unary { op, operand } => {
                let (t, operand) = self.column(operand);
                (op.info().result_type(t).unwrap_or(t), (known(cpu::unary(*op, t, self.mode)).one)(&operand))
            }
            Expr::Binary { op, left, right } => {
                let ((t, left), (_, right)) = (self.column(left), self.column(right));
                let value = (known(cpu::binary(*op, t, self.mode)).one)(&[left, right].concat());
                (op.info().result_type(t).unwrap_or(t), value)
            }
            Expr::Ternary { op, operands } => {
                let [(_, holds), (t, one), (_, other)] = [0, 1, 2].map(|n| self.column(&operands[n]));
                (t, (known(cpu::ternary(*op, t, self.mode)).one)(&[holds, one, other].concat()))
            }
            Expr::Cast { to, value } => {
                let (from, value) = self.column(value);
                (*to, (known(convert::cast(from, *to, self.mode)).one)(&value))
            }
            Expr::Bitcast { to, value } => {
                let (from, value) = self.column(value);
                (*to, (known(convert::bitcast(from, *to, self.mode)).one)(&value))
            }
            Expr::Builtin(_) | Expr::Len(_) | Expr::Load(_) | Expr::Vector { .. } | Expr::Extract { .. } => {
                panic!("these expressions are of operands, literals and ops")
            }
        }
    }
}

/// The operands as names, for working an expression out.
fn names() -> [Expr; 2] {
    [Expr::var("a"), Expr::var("b")]
}

/// All of these, mixed into one word of the type's width.
fn mixed(name: &str, t: Scalar, mode: FloatMode, all: Vec<Make>, boundary: Vec<Vec<Vec<u8>>>) -> OpSpec {
    let word = if t.bits() == 64 { Scalar::U64 } else { Scalar::U32 };
    let mode_word = if mode == FloatMode::Canonical { ".canonical" } else { "" };
    let expr = move |operands: &[Expr]| {
        all.iter().fold(literal(word, 0), |before, make| {
            let value = make(&operands[0], &operands[1]);
            Expr::add(Expr::mul(before, literal(word, 31)), as_word(value, t, word))
        })
    };
    let expr = Arc::new(expr);
    let [a, b] = names();
    let whole = expr(&[a, b]);
    let element = Elementwise {
        id: format!("identity.{name}{mode_word}:{t}"),
        inputs: vec![t.into(), t.into()],
        output: word.into(),
        mode,
        expr,
    };
    let bytes: &'static [usize] = if t.bits() == 64 { &[8, 8] } else { &[4, 4] };
    let meaning = Meaning::of(bytes, bytes[0], move |columns, out| {
        let operands = Operands { t, mode, columns: [columns[0], columns[1]], cases: out.len() / bytes[0] };
        out.copy_from_slice(&operands.column(&whole).1);
    });
    finish(element.spec(meaning).boundary(boundary))
}

/// A value of the spec's type, or a condition, as a word.
fn as_word(value: Expr, t: Scalar, word: Scalar) -> Expr {
    if is_condition(&value, t) {
        Expr::ternary(TernaryOp::Select, value, literal(word, 1), literal(word, 0))
    } else if t == word {
        value
    } else {
        Expr::bitcast(word, value)
    }
}

fn is_condition(expr: &Expr, t: Scalar) -> bool {
    if let Expr::Unary { op: UnaryOp::Not, operand } = expr {
        return is_condition(operand, t);
    }
    matches!(expr, Expr::Binary { op, .. } if op.info().result_type(t) == Some(Scalar::Bool))
}

/// `u8_buffer[i] = u32(x)`: first saturated to 32 bits, then cut to what is stored.
fn narrowed(from: Scalar, ty: &DataType) -> OpSpec {
    let signed = [DataType::I8, DataType::I16].contains(ty);
    let to = if signed { Scalar::I32 } else { Scalar::U32 };
    let element = Elementwise {
        id: format!("identity.narrowed.{from}:{ty}"),
        inputs: vec![from.into()],
        output: ty.clone(),
        mode: FloatMode::Ieee,
        expr: Arc::new(move |operands: &[Expr]| Expr::cast(to, operands[0].clone())),
    };
    let converts = convert::cast(from, to, FloatMode::Ieee).expect("floats become integers").one;
    let stores = convert::memory(ty, Access::Store, FloatMode::Ieee).expect("narrow integers can be stored").one;
    let bytes: &'static [usize] = if from == Scalar::F64 { &[8] } else { &[4] };
    let out = ty.bits().unwrap_or(8) as usize / 8;
    let meaning = Meaning::of(bytes, out, move |columns, out| out.copy_from_slice(&stores(&converts(columns[0]))));
    let beside = [
        -1.0,
        -0.5,
        0.5,
        1.5,
        127.0,
        128.0,
        129.5,
        255.0,
        256.0,
        257.0,
        300.0,
        32_767.0,
        32_768.0,
        65_535.0,
        65_536.0,
        65_537.5,
        1e6,
        2_147_483_648.0,
        4_294_967_296.0,
        1e10,
        1e20,
        f64::NAN,
        f64::INFINITY,
    ];
    let values = beside
        .into_iter()
        .flat_map(|value| [value, -value])
        .map(|value: f64| if from == Scalar::F64 { value.to_le_bytes().to_vec() } else { (value as f32).to_le_bytes().to_vec() });
    finish(element.spec(meaning).boundary(vec![values.collect()]))
}
