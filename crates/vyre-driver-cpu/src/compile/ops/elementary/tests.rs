//! The functions as machine code, on arguments where they change and where they are hard to round; how often the scalar function is
//! called; and that an error beyond the bound is found. All 2³² arguments are in `tests/elementary.rs`.

use super::circular::{ARC_TANGENT, SHORT_COSINE, SHORT_SINE, SINE};
use super::exponential::{EXP, EXP_2, EXP_MINUS_1};
use super::function;
use super::logarithm::{LOG, LOG_2};
use super::power::LONG_LOG_2;
use crate::compile::helpers::LANES_CALLED;
use crate::compile::{choose, prepared};
use crate::dispatch::Ready;
use crate::spread::Threads;
use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, LN_2};
use std::fmt::{self, Display, Formatter};
use vyre_driver::device::{Bytes, Execution, Stop};
use vyre_foundation::launch::Launch;
use vyre_scalar::{binary, canonicalize, unary};
use vyre_spec::{BinaryOp, FloatMode, Scalar, UnaryOp};

/// Arguments that are the hardest to round, with results from MPFR.
const VECTORS: &str = include_str!("../../../../../vyre-scalar/tests/data/vectors.txt");

const WORKGROUP: usize = 256;

/// A function of one argument.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tested {
    Unary(UnaryOp),
    /// To the power of [`EXPONENT`].
    Power,
}

use Tested::{Power, Unary};

/// Large enough that the logarithm needs all of its bits.
const EXPONENT: f32 = 37.25;

impl Display for Tested {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Unary(op) => op.fmt(f),
            Power => f.write_str("pow"),
        }
    }
}

impl Tested {
    fn all() -> impl Iterator<Item = Tested> {
        UnaryOp::ALL.iter().copied().filter(|op| function(*op).is_some()).map(Unary).chain([Power])
    }

    fn expression(self) -> String {
        match self {
            Unary(op) => format!("{op}(x[gid.x])"),
            Power => format!("pow(x[gid.x], {EXPONENT})"),
        }
    }

    fn scalar(self, mode: FloatMode, x: u32) -> u32 {
        let x = canonicalize(Scalar::F32, mode, x.into());
        match self {
            Unary(op) => unary(op, Scalar::F32, mode, x) as u32,
            Power => binary(BinaryOp::Pow, Scalar::F32, mode, x, EXPONENT.to_bits().into()) as u32,
        }
    }
}

/// The function of each element, as machine code whose constants are changed.
fn compiled(op: Tested, mode: FloatMode, change: impl FnOnce(&mut Vec<u8>)) -> Ready {
    let floats = if mode == FloatMode::Canonical { "floats canonical" } else { "" };
    let text = format!(
        "program p {{\n workgroup {WORKGROUP}\n {floats}\n buffer x: read f32 @0\n buffer out: output f32 @1\n out[gid.x] = {}\n}}",
        op.expression()
    );
    let program = vyre_foundation::text::parse("p", &text).unwrap_or_else(|report| panic!("{report}"));
    let kernel = program.validated().unwrap_or_else(|report| panic!("{report}")).kernel();
    let mut attempt = choose::choose(&prepared(kernel, None), None).unwrap_or_else(|refused| panic!("{refused:?}")).attempt;
    change(&mut attempt.phases[0].pool.bytes);
    let machine = attempt.finish(kernel).unwrap_or_else(|refused| panic!("{refused:?}"));
    Ready::new(kernel, Box::new(machine))
}

fn run(ready: &Ready, x: &[u32]) -> Vec<u32> {
    let input: Vec<u8> = x.iter().flat_map(|x| x.to_le_bytes()).collect();
    let mut output = vec![0; input.len()];
    let (length, bytes) = (x.len() as u32, input.len() as u64);
    let launch = Launch {
        workgroup_size: [WORKGROUP as u32, 1, 1],
        grid: [x.len().div_ceil(WORKGROUP) as u32, 1, 1],
        lengths: vec![length; 2],
        bytes: vec![bytes; 2],
    };
    let bindings = &mut [Bytes::Read(&input), Bytes::Write(&mut output)];
    let stop = Stop { deadline: None, cancelled: None };
    let execution = Execution { launch: &launch, groups: 0..launch.groups(), bindings, stop };
    ready.execute(execution, Threads { count: 1, eager: false }).unwrap_or_else(|error| panic!("{error:?}"));
    output.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
}

/// Arguments whose result is not the scalar function's.
fn differences(ready: &Ready, op: Tested, mode: FloatMode, x: &[u32]) -> Vec<String> {
    let found = run(ready, x);
    let expected = |x: u32| op.scalar(mode, x);
    x.iter()
        .zip(found)
        .filter(|(x, found)| expected(**x) != *found)
        .map(|(x, found)| format!("{op}({x:#010x}): {found:#010x}, expected {:#010x}", expected(*x)))
        .collect()
}

/// Numbers that look like drawn, the same every time.
fn hash(n: u32) -> u32 {
    let mut x = n.wrapping_mul(0x9E37_79B9) ^ 0x5BD1_E995;
    for by in [16, 13, 16] {
        x = (x ^ x >> by).wrapping_mul(0x85EB_CA6B);
    }
    x ^ x >> 15
}

fn unit(n: u32) -> f32 {
    (hash(n) >> 8) as f32 / (1 << 24) as f32
}

/// Every exponent and sign, with significands at their borders and some others; neighbourhoods of the points where functions change.
fn grid() -> Vec<u32> {
    let mut x = Vec::new();
    for top in 0..512u32 {
        let borders = [0, 1, 2, 0x3F_FFFF, 0x40_0000, 0x40_0001, 0x7F_FFFE, 0x7F_FFFF];
        let others = (0..24).map(|n| hash(32 * top + n) >> 9);
        // The eighths that logarithms look up end at odd sixteenths.
        let sixteenths = (0..16).flat_map(|n: u32| [(n << 19).wrapping_sub(1) & 0x7F_FFFF, n << 19]);
        x.extend(borders.into_iter().chain(others).chain(sixteenths).map(|fraction| top << 23 | fraction));
    }
    let quarters = (1..=256u32).map(|k| (f64::from(k) * FRAC_PI_4) as f32);
    let logarithms = (1..=304u32).map(|k| (f64::from(k) * LN_2 / 2.0) as f32);
    let halves = (1..=304u32).map(|k| k as f32 / 2.0);
    // exp and exp2 overflow, become subnormal, vanish; tanh becomes 1; exp leaves 1; reduction and clamping end.
    let ends = [
        88.722_84,
        87.336_55,
        103.972_08,
        103.278_93,
        126.0,
        127.0,
        149.0,
        150.0,
        9.010_914,
        2.980_232_2e-8,
        5.960_464_5e-8,
        12.0,
        89.0,
        105.0,
        129.0,
        152.0,
        2_147_483_648.0,
    ];
    for center in quarters.chain(logarithms).chain(halves).chain(ends) {
        for near in 0..=16 {
            let bits = center.to_bits() + near - 8;
            x.extend([bits, bits ^ 0x8000_0000]);
        }
    }
    x
}

fn vectors(op: Tested) -> impl Iterator<Item = u32> {
    let name = op.to_string();
    let section = VECTORS.lines().skip_while(move |line| *line != name).skip(1);
    section.map_while(|line| line.split_once(' ')).map(|(x, _)| u32::from_str_radix(x, 16).expect("hexadecimal words"))
}

/// The function in f64, by the C library: some 2⁻⁵² off.
fn in_f64(op: Tested, x: f32) -> f64 {
    let x = f64::from(x);
    match op {
        Unary(UnaryOp::Exp) => x.exp(),
        Unary(UnaryOp::Exp2) => x.exp2(),
        Unary(UnaryOp::Log) => x.ln(),
        Unary(UnaryOp::Log2) => x.log2(),
        Unary(UnaryOp::Sin) => x.sin(),
        Unary(UnaryOp::Cos) => x.cos(),
        Unary(UnaryOp::Tan) => x.tan(),
        Unary(UnaryOp::Tanh) => x.tanh(),
        Unary(UnaryOp::Atan) => x.atan(),
        Unary(UnaryOp::Rsqrt) => x.sqrt().recip(),
        Unary(other) => panic!("{other} is none of the functions"),
        Power => x.powf(EXPONENT.into()),
    }
}

/// A drawn argument from where the function has something to compute.
fn drawn(op: Tested, n: u32) -> f32 {
    let between = |low: f32, high: f32| low + (high - low) * unit(n);
    match op {
        Unary(UnaryOp::Exp) => between(-87.0, 88.0),
        // Not far from 0, where fractions have more bits: the last places of results depend on these alone.
        Unary(UnaryOp::Exp2) => f32::from_bits((0x3D80_0000 + hash(n) % 0x0400_0000) | hash(!n) & 0x8000_0000),
        // From 1/2 to 3: of larger results the polynomial is a small part.
        Unary(UnaryOp::Log | UnaryOp::Log2) => f32::from_bits(0x3F00_0000 + hash(n) % 0x0140_0000),
        Unary(UnaryOp::Rsqrt) => f32::from_bits(0x0080_0000 + hash(n) % 0x7F00_0000),
        Unary(UnaryOp::Sin | UnaryOp::Cos | UnaryOp::Tan) => between(-1000.0, 1000.0),
        Unary(UnaryOp::Tanh) => between(-10.0, 10.0),
        // Half of them are above 1.
        Unary(UnaryOp::Atan) => f32::from_bits((0x3A80_0000 + hash(n) % 0x0A00_0000) | hash(!n) & 0x8000_0000),
        Unary(other) => panic!("{other} is none of the functions"),
        Power => f32::from_bits(0x3E80_0000 + hash(n) % 0x0200_0000),
    }
}

/// Arguments whose result is within 16 times the error of the middle between two f32: more are drawn the smaller it is.
fn close_to_a_tie(op: Tested, bits: u32) -> Vec<u32> {
    let units = 16 << (53 - bits);
    let is_close = |x: f32| {
        let result = in_f64(op, x);
        let extra = result.to_bits() & 0x1FFF_FFFF;
        result.abs() >= f64::from(f32::MIN_POSITIVE) && extra.abs_diff(1 << 28) <= units
    };
    (0..1 << (bits - 21)).map(|n| drawn(op, n)).filter(|x| is_close(*x)).map(f32::to_bits).collect()
}

/// The short form of what is compared.
fn arguments(op: Tested, bits: u32) -> Vec<u32> {
    let mut x = grid();
    x.extend(vectors(op));
    x.extend(close_to_a_tie(op, bits));
    x
}

/// (π/2)².
const SQUARE: f64 = FRAC_PI_2 * FRAC_PI_2;

/// A polynomial of a function: its variable's largest size, what it is multiplied by in the function at that place, and the bits of the
/// function's rounding test.
struct Polynomial {
    op: Tested,
    coefficients: &'static [f64],
    size: f64,
    factor: f64,
    bits: u32,
}

#[rustfmt::skip]
const POLYNOMIALS: [Polynomial; 11] = [
    Polynomial { op: Unary(UnaryOp::Exp), coefficients: &EXP, size: LN_2 / 2.0, factor: 1.0, bits: 45 },
    Polynomial { op: Unary(UnaryOp::Exp2), coefficients: &EXP_2, size: 0.5, factor: 1.0, bits: 45 },
    Polynomial { op: Unary(UnaryOp::Tanh), coefficients: &EXP_MINUS_1, size: LN_2 / 4.0, factor: 1.0, bits: 43 },
    Polynomial { op: Unary(UnaryOp::Log), coefficients: &LOG, size: 0.05, factor: 1.0, bits: 46 },
    Polynomial { op: Unary(UnaryOp::Log2), coefficients: &LOG_2, size: 0.05, factor: 1.0, bits: 46 },
    Polynomial { op: Unary(UnaryOp::Sin), coefficients: &SINE, size: SQUARE, factor: SQUARE, bits: 43 },
    Polynomial { op: Unary(UnaryOp::Cos), coefficients: &SINE, size: SQUARE, factor: SQUARE, bits: 43 },
    Polynomial { op: Unary(UnaryOp::Tan), coefficients: &SHORT_SINE, size: SQUARE / 4.0, factor: SQUARE / 4.0, bits: 46 },
    Polynomial { op: Unary(UnaryOp::Tan), coefficients: &SHORT_COSINE, size: SQUARE / 4.0, factor: SQUARE / 4.0, bits: 46 },
    Polynomial { op: Unary(UnaryOp::Atan), coefficients: &ARC_TANGENT, size: 1.0, factor: 1.0, bits: 44 },
    // The last coefficients are for larger exponents.
    Polynomial { op: Power, coefficients: LONG_LOG_2.split_at(8).0, size: 0.05, factor: 0.05 * EXPONENT as f64 * LN_2, bits: 43 },
];

#[test]
fn functions_equal_the_scalar_ones_in_both_modes() {
    for op in Tested::all() {
        let bits = POLYNOMIALS.iter().find(|polynomial| polynomial.op == op).map_or(46, |polynomial| polynomial.bits);
        let x = arguments(op, bits);
        for mode in [FloatMode::Ieee, FloatMode::Canonical] {
            let wrong = differences(&compiled(op, mode, |_| {}), op, mode, &x);
            assert!(wrong.is_empty(), "{mode:?}, {} of {}:\n{}", wrong.len(), x.len(), wrong[..wrong.len().min(10)].join("\n"));
        }
    }
}

#[test]
fn one_flipped_bit_of_a_coefficient_is_found() {
    for Polynomial { op, coefficients, size, factor, bits } in POLYNOMIALS {
        let x = arguments(op, bits);
        for (n, coefficient) in coefficients.iter().enumerate() {
            // The lowest bit that is worth more than 128 times the error that is allowed for.
            let term = coefficient.abs() * size.powi(n as i32) * factor;
            let exponent = (term.to_bits() >> 52) as i32 - 1023;
            let bit = 52 - exponent - bits as i32 + 7;
            assert!((0..52).contains(&bit), "{op}: coefficient {n} does not matter");
            let ready = compiled(op, FloatMode::Ieee, |pool| {
                let vectors = pool.as_chunks_mut::<32>().0;
                let own = vectors.iter_mut().filter(|vector| **vector == splat(coefficient.to_bits()));
                assert_eq!(own.map(|vector| *vector = splat(coefficient.to_bits() ^ 1 << bit)).count(), 1);
            });
            let wrong = differences(&ready, op, FloatMode::Ieee, &x);
            assert!(!wrong.is_empty(), "{op}: coefficient {n}, bit {bit}");
            println!("{op}: coefficient {n}, bit {bit}: {} of {} differ", wrong.len(), x.len());
        }
    }
}

fn splat(bits: u64) -> [u8; 32] {
    std::array::from_fn(|n| bits.to_le_bytes()[n % 8])
}

#[test]
fn the_scalar_function_is_called_for_few_lanes() {
    const COUNT: u32 = 1 << 23;
    for op in Tested::all() {
        let x: Vec<u32> = (0..COUNT).map(|n| drawn(op, n).to_bits()).collect();
        let ready = compiled(op, FloatMode::Ieee, |_| {});
        let before = LANES_CALLED.get();
        run(&ready, &x);
        let lanes = LANES_CALLED.get() - before;
        let share = lanes as f64 / f64::from(COUNT);
        println!("{op}: {lanes} of {COUNT}, {share:.1e}");
        assert!(share < 1e-4, "{op}: {share}");
    }
}
