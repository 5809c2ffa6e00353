//! The elementary functions as kernels equal the scalar ones on all 2³² arguments, in both float modes.
//!
//! The short form takes every 4099th argument. The long form (`VYRE_LONG=1`, or the name of one function) takes all, and compares the digest of the results with the one
//! that `vyre-scalar` commits to: BLAKE3 over the results as little-endian words in the order of the arguments' bits. Under `floats canonical`
//! a result has to be the other mode's on the flushed argument, flushed; that is compared on every argument of either form. Functions
//! under masks, of which inactive lanes want nothing, are compared with the interpreter.

use std::num::NonZero;
use std::sync::Arc;
use std::time::Instant;
use vyre_driver::device::backend;
use vyre_driver::{DispatchConfig, VyreBackend};
use vyre_driver_cpu::{Options, cpu_device};
use vyre_foundation::ir::Program;
use vyre_foundation::text;
use vyre_scalar::{binary, unary};
use vyre_spec::{BinaryOp, FloatMode, Scalar, UnaryOp};

const DIGESTS: &str = include_str!("../../vyre-scalar/tests/data/digests.txt");

const FUNCTIONS: [UnaryOp; 10] = [
    UnaryOp::Exp,
    UnaryOp::Exp2,
    UnaryOp::Log,
    UnaryOp::Log2,
    UnaryOp::Sin,
    UnaryOp::Cos,
    UnaryOp::Tan,
    UnaryOp::Tanh,
    UnaryOp::Atan,
    UnaryOp::Rsqrt,
];

/// Arguments of one dispatch, as a power of two.
const BLOCK: u32 = 22;

fn program(source: &str) -> Program {
    text::parse("test", source).unwrap_or_else(|report| panic!("{report}"))
}

fn device() -> Arc<dyn VyreBackend> {
    Arc::from(backend(cpu_device(Options { threads: NonZero::new(2), portable: false })))
}

/// The function of `base + step × gid.x`, as bits.
fn sweep(op: UnaryOp, mode: FloatMode) -> Program {
    let floats = if mode == FloatMode::Canonical { "floats canonical" } else { "" };
    program(&format!(
        "program sweep {{
  workgroup 256
  {floats}
  buffer range: uniform u32 @0
  buffer out: output f32 @1
  out[gid.x] = {op}(bitcast<f32>(range[0] + range[1] * gid.x))
}}"
    ))
}

struct Sweep {
    device: Arc<dyn VyreBackend>,
    op: UnaryOp,
    programs: [Program; 2],
}

impl Sweep {
    fn new(op: UnaryOp) -> Sweep {
        Sweep { device: device(), op, programs: [FloatMode::Ieee, FloatMode::Canonical].map(|mode| sweep(op, mode)) }
    }

    /// The results on so many arguments from `base` on, `step` apart, in both modes.
    fn results(&self, base: u32, step: u32, count: u32) -> [Vec<u8>; 2] {
        let range: Vec<u8> = [base, step].into_iter().flat_map(u32::to_le_bytes).collect();
        let config = DispatchConfig { output_counts: [("out".into(), count)].into(), ..DispatchConfig::default() };
        self.programs.each_ref().map(|program| {
            let outputs = self.device.dispatch_borrowed(program, &[&range], &config);
            outputs.unwrap_or_else(|error| panic!("{error}")).remove(0)
        })
    }

    /// Compares the canonical results with the others.
    fn compare_modes(&self, base: u32, step: u32, [ieee, canonical]: &[Vec<u8>; 2]) {
        let flushed = |bits: u32| if bits & 0x7FFF_FFFF <= f32::MIN_POSITIVE.to_bits() { 0 } else { bits };
        let of_zero = flushed(self.scalar(0));
        let words = |bytes: &[u8], n: usize| u32::from_le_bytes(bytes[4 * n..4 * n + 4].try_into().expect("four bytes"));
        for n in 0..ieee.len() / 4 {
            let x = base.wrapping_add(step.wrapping_mul(n as u32));
            let expected = if flushed(x) == x { flushed(words(ieee, n)) } else { of_zero };
            assert_eq!(words(canonical, n), expected, "{}({x:#010x}), canonical", self.op);
        }
    }

    fn scalar(&self, x: u32) -> u32 {
        let x = vyre_scalar::canonicalize(Scalar::F32, FloatMode::Ieee, x.into());
        unary(self.op, Scalar::F32, FloatMode::Ieee, x) as u32
    }

    fn compare_with_scalar(&self, base: u32, step: u32, ieee: &[u8]) {
        for (n, word) in ieee.as_chunks().0.iter().enumerate() {
            let x = base.wrapping_add(step.wrapping_mul(n as u32));
            assert_eq!(u32::from_le_bytes(*word), self.scalar(x), "{}({x:#010x})", self.op);
        }
    }

    fn sample(&self) {
        const STEP: u32 = 4099;
        let results = self.results(0, STEP, u32::MAX / STEP);
        self.compare_modes(0, STEP, &results);
        self.compare_with_scalar(0, STEP, &results[0]);
    }

    fn everything(&self) {
        let started = Instant::now();
        let mut hasher = blake3::Hasher::new();
        for block in 0..1u32 << (32 - BLOCK) {
            let base = block << BLOCK;
            let results = self.results(base, 1, 1 << BLOCK);
            self.compare_modes(base, 1, &results);
            hasher.update(&results[0]);
        }
        let (found, name) = (hasher.finalize().to_hex(), self.op.to_string());
        println!("{name}: {found}, {:.1} s", started.elapsed().as_secs_f64());
        let committed = DIGESTS.lines().find_map(|line| line.strip_prefix(name.as_str())?.strip_prefix(' '));
        if committed != Some(found.as_str()) {
            // Which it is takes longer to find.
            for block in 0..1u32 << (32 - BLOCK) {
                let base = block << BLOCK;
                self.compare_with_scalar(base, 1, &self.results(base, 1, 1 << BLOCK)[0]);
            }
            panic!("{name}: the digest differs from the one that `vyre-scalar` commits to, and no result from its own");
        }
    }
}

#[test]
fn functions_equal_the_scalar_ones() {
    let asked = std::env::var("VYRE_LONG").ok();
    let known = |name: &str| ["1", "digests"].contains(&name) || FUNCTIONS.iter().any(|op| op.to_string() == name);
    assert!(asked.as_deref().is_none_or(known), "VYRE_LONG is `1`, `digests`, a function or not set, not {asked:?}");
    for op in FUNCTIONS {
        match asked.as_deref() {
            None => Sweep::new(op).sample(),
            Some("1" | "digests") => Sweep::new(op).everything(),
            Some(name) if name == op.to_string() => Sweep::new(op).everything(),
            Some(_) => {}
        }
    }
}

/// A pair from where the power is in range, or has a meaning of its own.
fn pair(n: u32) -> [u32; 2] {
    let [a, b] = [hash(2 * n), hash(2 * n + 1)];
    let fraction = |bits: u32| (bits >> 8) as f32 / (1 << 24) as f32;
    // An exponent whose power of x is from 2⁻¹⁵² to 2¹³⁰.
    let within = |x: f32| ((f64::from(fraction(b)) * 282.0 - 152.0) / f64::from(x).log2()) as f32;
    let (x, y) = match n % 8 {
        // Any base; bases near 1; short bases and exponents, whose powers may lie in the middle between two floats.
        0..=2 => {
            let x = f32::from_bits(0x0080_0000 + a % 0x7F00_0000);
            (x, within(x))
        }
        3 => {
            let x = f32::from_bits(0x3F80_0000_u32.wrapping_add_signed((a as i32 >> 8) / 16));
            (x, within(x))
        }
        4 => ((a % 4096) as f32 / 64.0, (b % 64) as f32 / 4.0 - 4.0),
        5 => ((a % 0x0200_0000) as f32, (b % 32) as f32 / 8.0),
        6 => (((a % 512) as f32 - 256.0) / 8.0, (b % 16) as f32 - 8.0),
        // Any bits, among them zeros, infinities and NaNs.
        _ => {
            let special = [0, 1, 0x7F_FFFF, 0x3F80_0000, 0x7F80_0000, 0x7FC0_0000, 0x7F7F_FFFF, 0x4000_0000];
            let pick = |bits: u32| if bits & 8 == 0 { special[(bits & 7) as usize] | bits & 0x8000_0000 } else { bits };
            (f32::from_bits(pick(a)), f32::from_bits(pick(b)))
        }
    };
    [x.to_bits(), y.to_bits()]
}

fn hash(n: u32) -> u32 {
    let mut x = n.wrapping_mul(0x9E37_79B9) ^ 0x5BD1_E995;
    for by in [16, 13, 16] {
        x = (x ^ x >> by).wrapping_mul(0x85EB_CA6B);
    }
    x ^ x >> 15
}

#[test]
fn powers_equal_the_scalar_ones() {
    let blocks = if std::env::var("VYRE_LONG").is_ok() { 256 } else { 1 };
    let device = device();
    for (floats, mode) in [("", FloatMode::Ieee), ("floats canonical", FloatMode::Canonical)] {
        let program = program(&format!(
            "program powers {{
  workgroup 256
  {floats}
  buffer x: read f32 @0
  buffer y: read f32 @1
  buffer out: output f32 @2
  out[gid.x] = pow(x[gid.x], y[gid.x])
}}"
        ));
        for block in 0..blocks {
            let pairs: Vec<[u32; 2]> = (block << 20..(block + 1) << 20).map(pair).collect();
            let operand = |which: usize| -> Vec<u8> { pairs.iter().flat_map(|pair| pair[which].to_le_bytes()).collect() };
            let outputs = device.dispatch_borrowed(&program, &[&operand(0), &operand(1)], &DispatchConfig::default());
            let found = outputs.unwrap_or_else(|error| panic!("{error}")).remove(0);
            for (pair, found) in pairs.iter().zip(found.as_chunks().0) {
                let [x, y] = pair.map(|bits| vyre_scalar::canonicalize(Scalar::F32, mode, bits.into()));
                let expected = binary(BinaryOp::Pow, Scalar::F32, mode, x, y) as u32;
                assert_eq!(u32::from_le_bytes(*found), expected, "pow of {pair:#010x?} {floats}");
            }
        }
    }
}

/// Functions in arms that some lanes take, in loops that lanes leave one by one, of uniform arguments, and in workgroups that do not fill
/// their last vector.
#[test]
fn functions_under_masks_are_what_the_interpreter_says() {
    let words: Vec<u8> = (0..5 * 37u32)
        .flat_map(|n| {
            // Easy arguments, and those that only the scalar function knows, next to each other.
            let bits = match n % 5 {
                0 => n.wrapping_mul(0x9E37_79B9),
                1 => 0x7F80_0000 + (n % 3),
                2 => (n as f32 * 0.37 - 20.0).to_bits(),
                3 => 0x8000_0000 | n,
                _ => [0xBBF0_EDF1, 0x3B42_9D37, 0x4619_9998, 0xC2B4_0000, 0x5922_AA80][n as usize / 5 % 5],
            };
            bits.to_le_bytes()
        })
        .collect();
    let device = device();
    for op in FUNCTIONS {
        for floats in ["", "floats canonical"] {
            let program = program(&format!(
                "program masks {{
  workgroup 37
  {floats}
  buffer x: read f32 @0
  buffer out: output f32 @1
  buffer all: output f32 @2
  let i = gid.x
  let v = x[i]
  let one = {op}(x[wid.x])
  let sum = one
  if i % 3 != 0 {{
    sum = {op}(v)
    for n in 0..i % 7 {{
      if v > f32(n) {{ break }}
      sum = sum + {op}(v * f32(n))
    }}
  }}
  out[i] = sum
  all[i] = {op}(one)
}}"
            ));
            let expected = vyre_reference::run(&program, &[&words], &vyre_reference::Options::default());
            let expected = expected.unwrap_or_else(|error| panic!("{error}"));
            let found = device.dispatch_borrowed(&program, &[&words], &DispatchConfig::default());
            assert!(found.unwrap_or_else(|error| panic!("{error}")) == expected, "{op} {floats}");
        }
    }
}
