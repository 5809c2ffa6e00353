//! The elementary functions of one operand equal the C library CORE-MATH, which is proven to round correctly, on all 2³² inputs.
//!
//! The short form compares every 4097th input and the neighbourhoods of special points; the inputs that are hardest to round are
//! in `vectors.rs`. The long form (`VYRE_LONG=1`) compares all, and the digests of the results with those in `data/digests.txt`.
//! With `VYRE_LONG=digests` only the digests are compared: an equal digest means equal results on every input, so another machine
//! — other instructions, another compiler — is proven right without CORE-MATH. A digest is BLAKE3 over the results as
//! little-endian words in the order of the inputs' bits, NaN as 7FC00000.
//!
//! In canonical mode a result must be the IEEE result on the flushed input, flushed; that too is compared on every input.

mod sweep;

use sweep::{Extent, Report, Type, extent};
use vyre_scalar::unary;
use vyre_spec::{FloatMode, Scalar, UnaryOp};

const DIGESTS: &str = include_str!("data/digests.txt");

type Function = fn(f32) -> f32;

struct Sweep {
    op: UnaryOp,
    /// CORE-MATH's function, unless only digests are compared.
    oracle: Option<Function>,
    report: Report,
}

impl Sweep {
    /// What the oracle gives, as the one NaN if it is one.
    #[inline]
    fn expected(oracle: Function, x: u64) -> u64 {
        Type::F32.canonical(FloatMode::Ieee, oracle(f32::from_bits(x as u32)).to_bits().into())
    }

    /// Our IEEE result, compared in both modes.
    #[inline]
    fn check(&mut self, bits: u32) -> u32 {
        let x = Type::F32.canonical(FloatMode::Ieee, bits.into());
        let result = unary(self.op, Scalar::F32, FloatMode::Ieee, x);
        if let Some(oracle) = self.oracle {
            let expected = Sweep::expected(oracle, x);
            self.report.check(result, expected, || format!("{}({bits:#010x})", self.op));
            let flushed = Type::F32.canonical(FloatMode::Canonical, x);
            let of_flushed = if flushed == x { expected } else { Sweep::expected(oracle, flushed) };
            let expected = Type::F32.canonical(FloatMode::Canonical, of_flushed);
            let canonical = unary(self.op, Scalar::F32, FloatMode::Canonical, flushed);
            self.report.check(canonical, expected, || format!("{}({bits:#010x}), canonical", self.op));
        }
        result as u32
    }

    fn everything(&mut self) {
        let mut hasher = blake3::Hasher::new();
        let mut chunk = vec![0u8; 4 << 16];
        for high in 0..=u16::MAX {
            for (low, word) in (0..=u16::MAX).zip(chunk.chunks_exact_mut(4)) {
                word.copy_from_slice(&self.check(u32::from(high) << 16 | u32::from(low)).to_le_bytes());
            }
            hasher.update(&chunk);
        }
        let name = self.op.to_string();
        let found = hasher.finalize().to_hex();
        println!("{name} {found}");
        let committed = DIGESTS.lines().find_map(|line| line.strip_prefix(name.as_str())?.strip_prefix(' '));
        self.report.record(committed == Some(found.as_str()), || {
            format!("digest of {name}: expected {}, found {found}", committed.unwrap_or("one, but none is committed"))
        });
    }

    fn sample(&mut self) {
        for bits in (0..=u32::MAX).step_by(4097) {
            self.check(bits);
        }
        for center in special_points() {
            for near in 0..=128 {
                let bits = center.to_bits().wrapping_add(near).wrapping_sub(64);
                self.check(bits);
                self.check(bits ^ 0x8000_0000);
            }
        }
    }
}

/// Where the functions change: powers of two, multiples of π/4 and of ln 2, the ends of ranges.
fn special_points() -> impl Iterator<Item = f32> {
    let powers = (0..=255u32).map(|field| f32::from_bits(field << 23));
    let quarters = (1..=256u32).map(|k| (f64::from(k) * std::f64::consts::FRAC_PI_4) as f32);
    let logarithms = (1..=152u32).map(|k| (f64::from(k) * std::f64::consts::LN_2) as f32);
    // exp and exp2 overflow, become subnormal, vanish; tanh becomes 1; exp leaves 1.
    let ends =
        [88.722_84, 87.336_55, 103.972_08, 103.278_93, 126.0, 127.0, 149.0, 150.0, 9.010_914, 2.980_232_2e-8, 5.960_464_5e-8];
    powers.chain(quarters).chain(logarithms).chain(ends)
}

fn equals(op: UnaryOp, oracle: Function) {
    let mut sweep = Sweep { op, oracle: Some(oracle), report: Report::new(op) };
    match extent() {
        Extent::Sample => sweep.sample(),
        Extent::Everything => sweep.everything(),
        Extent::Digests => {
            sweep.oracle = None;
            sweep.everything();
        }
    }
    sweep.report.finish();
}

#[test]
fn exp_is_correctly_rounded() {
    equals(UnaryOp::Exp, core_math::expf);
}

#[test]
fn exp2_is_correctly_rounded() {
    equals(UnaryOp::Exp2, core_math::exp2f);
}

#[test]
fn log_is_correctly_rounded() {
    equals(UnaryOp::Log, core_math::logf);
}

#[test]
fn log2_is_correctly_rounded() {
    equals(UnaryOp::Log2, core_math::log2f);
}

#[test]
fn sin_is_correctly_rounded() {
    equals(UnaryOp::Sin, core_math::sinf);
}

#[test]
fn cos_is_correctly_rounded() {
    equals(UnaryOp::Cos, core_math::cosf);
}

#[test]
fn tan_is_correctly_rounded() {
    equals(UnaryOp::Tan, core_math::tanf);
}

#[test]
fn tanh_is_correctly_rounded() {
    equals(UnaryOp::Tanh, core_math::tanhf);
}

#[test]
fn atan_is_correctly_rounded() {
    equals(UnaryOp::Atan, core_math::atanf);
}

#[test]
fn rsqrt_is_correctly_rounded() {
    equals(UnaryOp::Rsqrt, core_math::rsqrtf);
}
