//! Probes: what they say about the devices at hand, and that no fault that a device or its compiler can have goes unnoticed.
//!
//! Faults are planted by rewriting the text of the shaders on their way to a device on which the instructions are exact. A fault of an
//! op must cost it the rung in every float mode in which it changes bytes, and nothing else may change.

use crate::device::{DEVICES, Gpu};
use vyre_emit::floats::LadderOp::{self, Add, Div, Fma, Mul, Sqrt, Sub};
use vyre_emit::floats::kernel::Job;
use vyre_emit::floats::probe::{self, Depth, Runner};
use vyre_emit::floats::{FloatOp, FloatProfile, Library, Rung, Rungs};
use vyre_spec::{BinaryOp, FloatMode, Scalar, UnaryOp};

impl Runner for &Gpu {
    fn run(&mut self, job: &Job) -> Result<Vec<u32>, String> {
        Ok(Gpu::run(self, job))
    }
}

/// A device whose compiler does this to shaders.
struct Broken<'a, F: Fn(&str) -> String>(&'a Gpu, F);

impl<F: Fn(&str) -> String> Runner for Broken<'_, F> {
    fn run(&mut self, job: &Job) -> Result<Vec<u32>, String> {
        let wgsl = self.1(&job.wgsl);
        assert_ne!(wgsl, job.wgsl, "the fault is not in this shader");
        Ok(self.0.run(&Job { wgsl, ..job.clone() }))
    }
}

const PROTECTED: Rungs = Rungs {
    add: Rung::Protected,
    sub: Rung::Protected,
    mul: Rung::Protected,
    div: Rung::Protected,
    sqrt: Rung::Protected,
    fma: Rung::Protected,
};

/// llvmpipe keeps subnormals, SwiftShader does not; both multiply and add in two roundings where `fma` asks for one.
#[test]
fn devices_have_these_profiles() {
    let unfused = Rungs { fma: Rung::Integer, ..PROTECTED };
    let no_subnormals = Rungs { div: Rung::Corrected, sqrt: Rung::Corrected, ..Rungs::INTEGER };
    let expected = [FloatProfile { ieee: unfused, canonical: unfused }, FloatProfile { ieee: no_subnormals, canonical: unfused }];
    for (name, expected) in DEVICES.into_iter().zip(expected) {
        let gpu = Gpu::open(name);
        let outcome = probe::profile(&mut &gpu, Rung::Protected, Depth::Short);
        assert_eq!(outcome.profile, expected, "{name}");
        let words: Vec<String> = outcome.findings.iter().map(ToString::to_string).collect();
        assert!(words.iter().any(|line| line.starts_with("fma(a, b, c) in ieee, protected: [")), "{name}: {words:#?}");
    }
}

#[test]
fn a_device_that_runs_nothing_has_integers() {
    struct Dead;
    impl Runner for Dead {
        fn run(&mut self, _: &Job) -> Result<Vec<u32>, String> {
            Err("it is dead".into())
        }
    }
    struct Mute;
    impl Runner for Mute {
        fn run(&mut self, _: &Job) -> Result<Vec<u32>, String> {
            Ok(Vec::new())
        }
    }
    for runner in [&mut Dead as &mut dyn Runner, &mut Mute] {
        let outcome = probe::profile(runner, Rung::Native, Depth::Short);
        assert_eq!(outcome.profile, FloatProfile::INTEGER);
        assert!(!outcome.findings.is_empty());
    }
}

/// The integer form of an op under other names: `vy_add` is `exact_add`.
fn exact(op: FloatOp) -> String {
    let mut library = Library::new(FloatMode::Ieee, FloatProfile::INTEGER);
    library.function(op).expect("it is an op of the library");
    library.source().replace("vy_", "exact_").replace("VY_", "EXACT_").replace("Vy", "Exact")
}

/// The text of one function of a shader.
fn function<'a>(wgsl: &'a str, name: &str) -> &'a str {
    let start = wgsl.find(&format!("fn {name}(")).unwrap_or_else(|| panic!("{name} is in the shader"));
    let end = wgsl[start..].find("\n}\n").expect("a function has an end") + 3;
    &wgsl[start..start + end]
}

/// What happens to the value of an instruction on its way out, with `r` as its pattern and `a` and `b` as those of the operands, or
/// to the operands on their way in.
struct Fault {
    name: &'static str,
    /// Operands, as text that takes `x`.
    operand: &'static str,
    /// The result.
    result: &'static str,
    /// The ops that it changes in `floats ieee`, and in `floats canonical`.
    ieee: &'static [LadderOp],
    canonical: &'static [LadderOp],
}

const ALL: &[LadderOp] = &LadderOp::ALL;

const FAULTS: [Fault; 10] = [
    Fault {
        name: "subnormal results are flushed",
        operand: "x",
        result: "r & ~(0x7fffffffu * u32((r & 0x7fffffffu) < 0x00800000u))",
        ieee: &[Add, Sub, Mul, Div, Fma],
        canonical: &[],
    },
    Fault {
        name: "subnormal operands are flushed",
        operand: "x & ~(0x7fffffffu * u32((x & 0x7fffffffu) < 0x00800000u))",
        result: "r",
        ieee: ALL,
        canonical: &[],
    },
    Fault {
        name: "what rounds up to the smallest normal number is flushed",
        operand: "x",
        result: "r & ~(0x7fffffffu * u32((r & 0x7fffffffu) == 0x00800000u && (a & 0x007fffffu) != 0u))",
        ieee: &[Add, Sub, Mul, Div, Fma],
        canonical: &[],
    },
    Fault {
        name: "one result in sixty-four is off by one in the last place",
        operand: "x",
        result: "r + u32(((r * 2654435769u) >> 26u) == 7u && (r & 0x7fffffffu) > 0x01000000u && (r & 0x7fffffffu) < 0x7f000000u)",
        ieee: ALL,
        canonical: ALL,
    },
    Fault {
        name: "NaN has a sign",
        operand: "x",
        result: "r | (0x80000000u * u32((r & 0x7fffffffu) > 0x7f800000u))",
        ieee: ALL,
        canonical: ALL,
    },
    Fault {
        name: "NaN has a payload",
        operand: "x",
        result: "r | u32((r & 0x7fffffffu) > 0x7f800000u)",
        ieee: ALL,
        canonical: ALL,
    },
    Fault {
        name: "there is no NaN",
        operand: "x",
        result: "r * u32((r & 0x7fffffffu) <= 0x7f800000u)",
        ieee: ALL,
        canonical: ALL,
    },
    Fault {
        name: "there is no infinity",
        operand: "x",
        result: "r - u32((r & 0x7fffffffu) == 0x7f800000u)",
        ieee: ALL,
        canonical: ALL,
    },
    Fault { name: "there is no negative zero", operand: "x", result: "r * u32(r != 0x80000000u)", ieee: ALL, canonical: &[] },
    Fault {
        name: "huge operands are infinite",
        operand: "x + (0x00800000u - (x & 0x007fffffu)) * u32((x & 0x7f800000u) == 0x7f000000u)",
        result: "r",
        ieee: ALL,
        canonical: ALL,
    },
];

/// The op's function on the rung `Protected` with a fault in it; what it canonicalises comes before the fault, so that nothing hides
/// it. `fma` is in integers, because no device here has it.
fn planted(wgsl: &str, op: LadderOp, operand: &str, result: &str) -> String {
    let name = format!("vy_{}_protected", op.name());
    let old = function(wgsl, &name);
    let letters = &["a", "b", "c"][..op.op().words().expect("it is an op of the library").0];
    let parameters: Vec<String> = letters.iter().map(|letter| format!("{letter}: u32")).collect();
    let operands: Vec<String> = letters.iter().map(|letter| format!("planted_{}({letter})", op.name())).collect();
    let whole = match op {
        Fma => "exact_fma",
        Add => "whole_add",
        Sub => "whole_sub",
        Mul => "whole_mul",
        Div => "whole_div",
        Sqrt => "whole_sqrt",
    };
    let new = format!(
        "fn planted_{}(x: u32) -> u32 {{\n  return {operand};\n}}\n{}fn {name}({}) -> u32 {{\n  let r = {whole}({});\n  return \
         {result};\n}}\n",
        op.name(),
        old.replace(&name, &format!("whole_{}", op.name())),
        parameters.join(", "),
        operands.join(", "),
    );
    wgsl.replace(old, &new)
}

/// With an `fma` that rounds once.
fn fused(wgsl: &str) -> String {
    let native = function(wgsl, "vy_fma_protected");
    let with_exact = if native.contains("exact_fma") {
        wgsl.to_owned()
    } else {
        let exact = "fn vy_fma_protected(a: u32, b: u32, c: u32) -> u32 {\n  return exact_fma(a, b, c);\n}\n";
        wgsl.replace(native, exact)
    };
    format!("{}{with_exact}", exact(Fma.op()))
}

fn without(modes: [&[LadderOp]; 2]) -> FloatProfile {
    let mut profile = FloatProfile { ieee: PROTECTED, canonical: PROTECTED };
    for (mode, ops) in FloatMode::ALL.into_iter().zip(modes) {
        for op in ops {
            profile.set(mode, *op, if op.has(Rung::Corrected) { Rung::Corrected } else { Rung::Integer });
        }
    }
    profile
}

#[test]
fn faults_of_instructions_are_noticed() {
    let gpu = Gpu::open(DEVICES[0]);
    let sound = probe::profile(&mut Broken(&gpu, fused), Rung::Protected, Depth::Short);
    assert_eq!(sound.profile, without([&[], &[]]), "{:#?}", sound.findings);
    for fault in FAULTS {
        // In all ops at once: each is judged by what it does alone.
        let plant = |wgsl: &str| {
            let planted = |wgsl: String, op: &LadderOp| planted(&wgsl, *op, fault.operand, fault.result);
            fused(&LadderOp::ALL.iter().fold(wgsl.to_owned(), planted))
        };
        let outcome = probe::profile(&mut Broken(&gpu, plant), Rung::Protected, Depth::Short);
        assert_eq!(outcome.profile, without([fault.ieee, fault.canonical]), "{}", fault.name);
    }
}

/// In one op only: the others keep their rung.
#[test]
fn a_fault_of_one_op_costs_no_other_its_rung() {
    let gpu = Gpu::open(DEVICES[0]);
    let fault = &FAULTS[3];
    for op in [Add, Fma] {
        let plant = |wgsl: &str| fused(&planted(wgsl, op, fault.operand, fault.result));
        let outcome = probe::profile(&mut Broken(&gpu, plant), Rung::Protected, Depth::Short);
        assert_eq!(outcome.profile, without([&[op], &[op]]), "{}", op.name());
    }
}

/// Towards zero instead of to the nearest, by the integer forms with another last step.
#[test]
fn another_rounding_is_noticed() {
    let gpu = Gpu::open(DEVICES[0]);
    for op in LadderOp::ALL {
        let plant = |wgsl: &str| {
            let nearest = "((s + 0x3fu + ((s >> 7u) & 1u)) >> 7u)";
            let exact = exact(op.op());
            assert!(exact.contains(nearest), "the last step of {} is not found", op.name());
            let truncating = exact.replace(nearest, "(s >> 7u)").replace("exact_", "cut_").replace("EXACT_", "CUT_");
            let truncating = truncating.replace("Exact", "Cut");
            let name = format!("vy_{}_protected", op.name());
            let whole = fused(wgsl);
            let old = function(&whole, &name);
            let head = old.lines().next().expect("a function has a first line");
            let letters = ["a", "b", "c"][..op.op().words().expect("it is an op of the library").0].join(", ");
            let new = format!("{head}\n  return cut_{}({letters});\n}}\n", op.name());
            format!("{truncating}{}", whole.replace(old, &new))
        };
        let outcome = probe::profile(&mut Broken(&gpu, plant), Rung::Protected, Depth::Short);
        assert_eq!(outcome.profile, without([&[op], &[op]]), "{}", op.name());
    }
}

/// A rewriting of expressions that is right for numbers: what it makes of an expression, which ops stand there, and whether it changes
/// bytes in `floats canonical` too. `@` stands for the names' endings.
const REWRITES: [(&str, &str, &[LadderOp], bool); 25] = [
    ("vy_sub@(a_@, a_@)", "0u", &[Sub], true),
    ("vy_div@(a_@, a_@)", "0x3f800000u", &[Div], true),
    ("vy_add@(a_@, 0x0u)", "a_@", &[Add], false),
    ("vy_sub@(0x0u, a_@)", "a_@ ^ 0x80000000u", &[Sub], true),
    ("vy_mul@(a_@, 0x0u)", "0u", &[Mul], true),
    ("vy_mul@(0x0u, a_@)", "0u", &[Mul], true),
    ("vy_mul@(0xbf800000u, a_@)", "a_@ ^ 0x80000000u", &[Mul], true),
    ("vy_div@(a_@, 0x40400000u)", "vy_mul@(a_@, 0x3eaaaaabu)", &[Div], true),
    ("vy_div@(0x0u, a_@)", "0u", &[Div], true),
    ("vy_fma@(a_@, b_@, 0x0u)", "vy_mul@(a_@, b_@)", &[Fma], false),
    ("vy_sub@(vy_add@(a_@, b_@), a_@)", "b_@", &[Add, Sub], true),
    ("vy_add@(vy_sub@(a_@, b_@), b_@)", "a_@", &[Add, Sub], true),
    ("vy_add@(vy_add@(a_@, b_@), c_@)", "vy_add@(a_@, vy_add@(b_@, c_@))", &[Add], true),
    ("vy_add@(a_@, vy_add@(b_@, c_@))", "vy_add@(vy_add@(a_@, b_@), c_@)", &[Add], true),
    ("vy_mul@(vy_mul@(a_@, b_@), c_@)", "vy_mul@(a_@, vy_mul@(b_@, c_@))", &[Mul], true),
    ("vy_add@(vy_mul@(a_@, b_@), c_@)", "vy_fma@(a_@, b_@, c_@)", &[Add, Mul], true),
    ("vy_sub@(vy_mul@(a_@, b_@), c_@)", "vy_fma@(a_@, b_@, c_@ ^ 0x80000000u)", &[Sub, Mul], true),
    ("vy_sub@(c_@, vy_mul@(a_@, b_@))", "vy_fma@(a_@ ^ 0x80000000u, b_@, c_@)", &[Sub, Mul], true),
    ("vy_add@(vy_mul@(a_@, c_@), vy_mul@(b_@, c_@))", "vy_mul@(vy_add@(a_@, b_@), c_@)", &[Add, Mul], true),
    ("vy_div@(vy_mul@(a_@, 0x40000000u), 0x40000000u)", "a_@", &[Mul, Div], true),
    ("vy_div@(vy_mul@(a_@, b_@), b_@)", "a_@", &[Mul, Div], true),
    ("vy_mul@(vy_div@(a_@, b_@), b_@)", "a_@", &[Mul, Div], true),
    ("vy_sqrt@(vy_mul@(a_@, a_@))", "a_@ & 0x7fffffffu", &[Sqrt, Mul], true),
    ("vy_div@(0x3f800000u, vy_sqrt@(a_@))", "vy_sqrt@(vy_div@(0x3f800000u, a_@))", &[Div, Sqrt], true),
    ("vy_mul@(vy_sqrt@(a_@), vy_sqrt@(a_@))", "a_@", &[Mul, Sqrt], true),
];

#[test]
fn rewritten_expressions_are_noticed() {
    let gpu = Gpu::open(DEVICES[0]);
    for (from, to, ops, canonical) in REWRITES {
        let plant = |wgsl: &str| {
            let mut wgsl = fused(wgsl);
            for (function, operand) in [("_protected(", "_ieee"), ("_protected_flushed(", "_canonical")] {
                let spell = |text: &str| text.replace("@(", function).replace("_@", operand);
                let spelled = format!("= {};\n", spell(from));
                assert!(wgsl.contains(&spelled), "{spelled} is not in the shader");
                wgsl = wgsl.replace(&spelled, &format!("= {};\n", spell(to)));
            }
            wgsl
        };
        let outcome = probe::profile(&mut Broken(&gpu, plant), Rung::Protected, Depth::Short);
        assert_eq!(outcome.profile, without([ops, if canonical { ops } else { &[] }]), "{from} as {to}");
    }
}

/// Guesses that are off by as much as a language allows are made exact; those that are off by more are noticed.
#[test]
fn corrections_have_the_room_they_claim() {
    let gpu = Gpu::open(DEVICES[0]);
    for (op, at, room) in [(Div, "bitcast<u32>(quotient)", 7), (Sqrt, "bitcast<u32>(root)", 10)] {
        for (error, exact) in [(format!("+ {room}u"), true), (format!("- {room}u"), true), ("+ 40u".into(), false)] {
            let plant = |wgsl: &str| {
                // So that the rung is needed.
                let wgsl = fused(&planted(wgsl, op, "x", "r ^ 1u"));
                wgsl.replace(at, &format!("({at} {error})"))
            };
            let outcome = probe::profile(&mut Broken(&gpu, plant), Rung::Protected, Depth::Short);
            let expected = if exact { Rung::Corrected } else { Rung::Integer };
            for mode in FloatMode::ALL {
                assert_eq!(outcome.profile.rung(mode, op), expected, "{} {error} in {mode}", op.name());
            }
        }
    }
}

#[test]
fn every_op_of_the_library_is_right_and_a_wrong_one_is_noticed() {
    for name in DEVICES {
        let gpu = Gpu::open(name);
        let found = probe::library(&mut &gpu, Depth::Short);
        assert!(found.is_empty(), "{name}: {found:?}");
    }
    // What devices do, or did, with the ops that are integers here: in the function's text, and found in these.
    let f32_to = |to| FloatOp::Cast { from: Scalar::F32, to };
    let to_f32 = |from| FloatOp::Cast { from, to: Scalar::F32 };
    let faults: [(&str, &str, FloatOp); 8] = [
        ("return !vy_eq(a, b);", "return !vy_eq(a, b) && a != VY_NAN && b != VY_NAN;", FloatOp::Binary(BinaryOp::Ne)),
        ("0x7fffffffu + negative", "0x7fffff80u + negative", f32_to(Scalar::I32)),
        ("0xffffffffu, a >=", "0xffffff00u, a >=", f32_to(Scalar::U32)),
        ("(n >> 1u) | (n & 1u)", "(n >> 1u)", to_f32(Scalar::U32)),
        ("select(VY_ONE | (a & VY_SIGN), a,", "select(VY_ONE, a,", FloatOp::Unary(UnaryOp::Sign)),
        ("select(0u, VY_ONE, x > 0x3f000000u)", "select(0u, VY_ONE, x >= 0x3f000000u)", FloatOp::Unary(UnaryOp::Round)),
        ("vy_order(a) < vy_order(b)", "vy_order(a) > vy_order(b)", FloatOp::Binary(BinaryOp::Min)),
        ("rest == half && (kept & 1u) == 1u", "rest == half", FloatOp::Store(vyre_emit::floats::SmallFloat::F16)),
    ];
    let gpu = Gpu::open(DEVICES[0]);
    struct Anywhere<'a, F: Fn(&str) -> String>(&'a Gpu, F);
    impl<F: Fn(&str) -> String> Runner for Anywhere<'_, F> {
        fn run(&mut self, job: &Job) -> Result<Vec<u32>, String> {
            Ok(self.0.run(&Job { wgsl: self.1(&job.wgsl), ..job.clone() }))
        }
    }
    let broken = |wgsl: &str| faults.iter().fold(wgsl.to_owned(), |wgsl, (from, to, _)| wgsl.replace(from, to));
    let found = probe::library(&mut Anywhere(&gpu, broken), Depth::Short);
    for (from, _, op) in &faults {
        for mode in FloatMode::ALL {
            assert!(found.iter().any(|finding| (finding.0, finding.1) == (*op, mode)), "{from} in {op:?} in {mode}");
        }
    }
}
