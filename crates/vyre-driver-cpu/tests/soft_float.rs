//! Arithmetic, conversions and the small float formats as compiled code, against `rustc_apfloat`, a port of LLVM's soft-float: the cases
//! of `vyre-scalar`'s own tests, in both float modes, as vectors and as values that all lanes share. 10⁷ cases per op, type and mode in the
//! long form (`VYRE_LONG=1`), else 10⁴.

#[path = "../../vyre-scalar/tests/sweep/mod.rs"]
mod sweep;

use rustc_apfloat::ieee::{BFloatS, Double, DoubleS, Float8E4M3FNS, Float8E5M2S, HalfS, IeeeFloat, Semantics, Single, SingleS};
use rustc_apfloat::{Float, FloatConvert, Round};
use std::num::NonZero;
use sweep::soft::{
    Format, Op, Overflow, from_integer, hard_to_round, integer, narrowed, one_operand, operands, patterns, theirs, widened,
};
use sweep::{Extent, Random, Report, Type, cases, extent};
use vyre_driver::device::backend;
use vyre_driver::{DispatchConfig, VyreBackend};
use vyre_driver_cpu::{Options, cpu_device};
use vyre_foundation::text;
use vyre_spec::{DataType, FloatMode, Scalar};

/// How many cases a dispatch has.
const AT_ONCE: u64 = 10_000;

fn bytes_of(ty: &str) -> usize {
    match ty {
        "f8e4m3" | "f8e5m2" => 1,
        "f16" | "bf16" => 2,
        "u32" | "i32" | "f32" => 4,
        "u64" | "i64" | "f64" => 8,
        other => panic!("how long is {other}?"),
    }
}

/// An expression over the elements `a`, `b` and `c` of buffers, compiled in a float mode.
struct Compiled {
    what: String,
    types: Vec<&'static str>,
    result: &'static str,
    /// With an element per lane, and with one that all lanes of a workgroup share.
    sources: [String; 2],
}

impl Compiled {
    fn new(expression: &str, types: &[&'static str], result: &'static str, mode: FloatMode) -> Compiled {
        let sources = ["gid.x", "wid.x"].map(|index| {
            let mode = match mode {
                FloatMode::Ieee => "",
                FloatMode::Canonical => "  floats canonical\n",
            };
            let mut source = format!("program p {{\n  workgroup 64\n{mode}");
            for (n, (name, ty)) in ["a", "b", "c"].iter().zip(types).enumerate() {
                source += &format!("  buffer {name}s: read {ty} @{n}\n");
            }
            source += &format!("  buffer out: output {result} @{}\n\n", types.len());
            for (name, _) in ["a", "b", "c"].iter().zip(types) {
                source += &format!("  let {name} = {name}s[{index}]\n");
            }
            source + &format!("  out[{index}] = {expression}\n}}\n")
        });
        Compiled { what: format!("{expression} of {}, {mode:?}", types.join(", ")), types: types.to_vec(), result, sources }
    }

    /// The results for these operands, in both ways.
    fn run(&self, device: &dyn VyreBackend, operands: &[[u64; 3]]) -> [Vec<u64>; 2] {
        let inputs: Vec<Vec<u8>> = (self.types.iter().enumerate())
            .map(|(n, ty)| operands.iter().flat_map(|case| case[n].to_le_bytes()[..bytes_of(ty)].to_vec()).collect())
            .collect();
        let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
        let count = operands.len() as u32;
        std::array::from_fn(|shared| {
            let program = text::parse("test", &self.sources[shared]).unwrap_or_else(|report| panic!("{report}"));
            let groups = if shared == 1 { count } else { count.div_ceil(64) };
            let config = DispatchConfig {
                grid_override: Some([groups, 1, 1]),
                output_counts: [("out".to_string(), count)].into(),
                ..DispatchConfig::default()
            };
            let found = device.dispatch_borrowed(&program, &inputs, &config).unwrap_or_else(|error| panic!("{error}"));
            let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
            found[0].chunks(bytes_of(self.result)).map(word).collect()
        })
    }

    /// Compares the results for operands that are drawn with what is expected of each.
    fn compare(&self, mut draw: impl FnMut() -> [u64; 3], expected: impl Fn([u64; 3]) -> u64) {
        let device = backend(cpu_device(Options { threads: NonZero::new(2), portable: false }));
        let mut report = Report::new(&self.what);
        for _ in 0..cases(10_000_000, 10_000) / AT_ONCE {
            let operands: Vec<[u64; 3]> = (0..AT_ONCE).map(|_| draw()).collect();
            self.check(&*device, &operands, &expected, &mut report);
        }
        report.finish();
    }

    fn check(&self, device: &dyn VyreBackend, operands: &[[u64; 3]], expected: &impl Fn([u64; 3]) -> u64, report: &mut Report) {
        for (found, how) in self.run(device, operands).into_iter().zip(["lanes", "shared"]) {
            assert_eq!(found.len(), operands.len());
            for (found, operands) in found.into_iter().zip(operands) {
                report.check(found, expected(*operands), || format!("{how} {:x?}", &operands[..self.types.len()]));
            }
        }
    }
}

fn name(ty: Type) -> &'static str {
    match ty {
        Type::F32 => "f32",
        Type::F64 => "f64",
    }
}

fn arithmetic<S: Semantics>(ty: Type) {
    for (op, expression) in [
        (Op::Add, "a + b"),
        (Op::Sub, "a - b"),
        (Op::Mul, "a * b"),
        (Op::Div, "a / b"),
        (Op::Rem, "a % b"),
        (Op::Sqrt, "sqrt(a)"),
        (Op::Fma, "fma(a, b, c)"),
    ] {
        let count = match op {
            Op::Sqrt => 1,
            Op::Add | Op::Sub | Op::Mul | Op::Div | Op::Rem => 2,
            Op::Fma => 3,
        };
        for mode in FloatMode::ALL {
            let (boundaries, mut random) = (ty.boundaries(), Random(op as u64 + 100 * ty.fraction()));
            let canonical = |operands: [u64; 3]| operands.map(|operand| ty.canonical(mode, operand));
            Compiled::new(expression, &vec![name(ty); count], name(ty), mode).compare(
                || canonical(operands(&mut random, op, ty, &boundaries)),
                |operands| ty.canonical(mode, theirs::<S>(op, operands)),
            );
        }
    }
}

#[test]
fn arithmetic_rounds_once() {
    arithmetic::<SingleS>(Type::F32);
    arithmetic::<DoubleS>(Type::F64);
}

/// A function of one float.
fn one(expression: &str, ty: Type, result: &'static str, to: Option<Type>, expected: impl Fn(u64) -> u64) {
    for mode in FloatMode::ALL {
        let (boundaries, mut random) = (ty.boundaries(), Random(expression.len() as u64));
        Compiled::new(expression, &[name(ty)], result, mode).compare(
            || [ty.canonical(mode, one_operand(&mut random, ty, &boundaries)), 0, 0],
            |[a, ..]| to.map_or(expected(a), |to| to.canonical(mode, expected(a))),
        );
    }
}

fn to_integral<S: Semantics>(ty: Type) {
    for (function, round) in [
        ("floor(a)", Round::TowardNegative),
        ("ceil(a)", Round::TowardPositive),
        ("trunc(a)", Round::TowardZero),
        ("round(a)", Round::NearestTiesToEven),
    ] {
        let expected = |a: u64| IeeeFloat::<S>::from_bits(a.into()).round_to_integral(round).value.to_bits() as u64;
        one(function, ty, name(ty), Some(ty), expected);
    }
}

#[test]
fn floats_round_to_integers_in_every_direction() {
    to_integral::<SingleS>(Type::F32);
    to_integral::<DoubleS>(Type::F64);
}

const INTEGERS: [(Scalar, &str); 4] = [(Scalar::U32, "u32"), (Scalar::I32, "i32"), (Scalar::U64, "u64"), (Scalar::I64, "i64")];

fn to_integers<S: Semantics>(ty: Type) {
    for (to, result) in INTEGERS {
        let width = to.bits() as usize;
        one(&format!("{result}(a)"), ty, result, None, |a| {
            let value = IeeeFloat::<S>::from_bits(a.into());
            let integer = if to.is_signed_int() { value.to_i128(width).value as u128 } else { value.to_u128(width).value };
            integer as u64 & (u64::MAX >> (64 - width))
        });
    }
}

#[test]
fn floats_truncate_and_saturate_to_integers() {
    to_integers::<SingleS>(Type::F32);
    to_integers::<DoubleS>(Type::F64);
}

#[test]
fn floats_convert_to_each_other() {
    one("f32(a)", Type::F64, "f32", Some(Type::F32), |a| {
        FloatConvert::<Single>::convert(Double::from_bits(a.into()), &mut false).value.to_bits() as u64
    });
    one("f64(a)", Type::F32, "f64", Some(Type::F64), |a| {
        FloatConvert::<Double>::convert(Single::from_bits(a.into()), &mut false).value.to_bits() as u64
    });
}

#[test]
fn integers_round_once_to_floats() {
    for (from, source) in INTEGERS {
        for (ty, mode) in Type::ALL.into_iter().flat_map(|ty| FloatMode::ALL.map(|mode| (ty, mode))) {
            let mut random = Random(from.bits().into());
            Compiled::new(&format!("{}(a)", name(ty)), &[source], name(ty), mode).compare(
                || [integer(&mut random, from), 0, 0],
                |[a, ..]| {
                    let result = match ty {
                        Type::F32 => from_integer::<SingleS>(from, a),
                        Type::F64 => from_integer::<DoubleS>(from, a),
                    };
                    ty.canonical(mode, result)
                },
            );
        }
    }
}

/// Every pattern of a format loaded, and f32 stored to it: all of them in the long form.
fn format<S: Semantics>(element: &'static str, format: &Format)
where
    IeeeFloat<S>: FloatConvert<Single>,
    Single: FloatConvert<IeeeFloat<S>>,
{
    let device = backend(cpu_device(Options { threads: NonZero::new(2), portable: false }));
    for mode in FloatMode::ALL {
        let load = Compiled::new("a", &[element], "f32", mode);
        let mut report = Report::new(&load.what);
        let all: Vec<[u64; 3]> = patterns::<S>().map(|pattern| [pattern.into(), 0, 0]).collect();
        let expected = |[pattern, ..]: [u64; 3]| Type::F32.canonical(mode, widened::<S>(pattern as u16).into());
        load.check(&*device, &all, &expected, &mut report);
        report.finish();

        let store = Compiled::new("a", &["f32"], element, mode);
        let mut report = Report::new(format!("store to {element}, {mode:?}"));
        let expected = |[bits, ..]: [u64; 3]| narrowed::<S>(format, mode, Type::F32.canonical(mode, bits));
        let case = |bits: u32| [u64::from(bits), 0, 0];
        let chunks: Box<dyn Iterator<Item = Vec<[u64; 3]>>> = match extent() {
            Extent::Everything => {
                Box::new((0..1 << 12).map(move |high: u32| (0..1 << 20).map(|low| case(high << 20 | low)).collect()))
            }
            Extent::Sample | Extent::Digests => {
                let mut some: Vec<[u64; 3]> = (0..=u32::MAX).step_by(50_021).map(case).collect();
                some.extend(hard_to_round::<S>().step_by(if S::BITS == 16 { 5 } else { 1 }).map(case));
                Box::new(std::iter::once(some))
            }
        };
        for some in chunks {
            store.check(&*device, &some, &expected, &mut report);
        }
        report.finish();
    }
}

#[test]
fn small_formats_are_loaded_and_stored() {
    format::<HalfS>("f16", &Format { ty: DataType::F16, overflow: Overflow::Infinity, nan: 0x7E00 });
    format::<BFloatS>("bf16", &Format { ty: DataType::BF16, overflow: Overflow::Infinity, nan: 0x7FC0 });
    format::<Float8E4M3FNS>("f8e4m3", &Format { ty: DataType::F8E4M3, overflow: Overflow::Saturates, nan: 0x7F });
    format::<Float8E5M2S>("f8e5m2", &Format { ty: DataType::F8E5M2, overflow: Overflow::Saturates, nan: 0x7E });
}
