//! The float state of the process changes nothing: whatever a library has set, every way to compute with floats gives what it gives
//! under the default state, and leaves the state, flags included, as it was. Check files run under such states as well
//! (`checks/float_states.rs`).

use vyre::ir::{DataType, FloatMode, Literal, Program, Scalar, SpecValue};
use vyre::passes::{PASSES, optimize};
use vyre::reference::bulk::{self, Bulk};
use vyre::reference::checked::{Effort, check};
use vyre::reference::faults::{self, Fault};
use vyre::reference::{Limits, Options, RunError, Schedule, run};
use vyre::{DispatchConfig, launch, text, values};
use vyre_host_floats::hostile;

/// `body` gives under every state what it gives under the default.
fn same_under_every_state<T: PartialEq + std::fmt::Debug>(body: impl Fn() -> T) {
    let expected = body();
    for state in hostile::states() {
        let found = hostile::under(state, &body);
        assert!(found == expected, "{state}:\n{found:?}\nby default:\n{expected:?}");
    }
}

fn program(statements: &str) -> String {
    format!(
        "program p {{\n workgroup 2\n buffer a: read f32 @0\n buffer d: read f64 @1\n buffer out: output f32 @2\n \
         buffer half: output f16 @3\n buffer brain: output bf16 @4\n buffer eight: output f8e4m3 @5\n buffer wide: output f64 @6\n \
         let i = gid.x\n let x = a[i]\n let y = d[i]\n {statements}\n}}"
    )
}

/// Subnormal results and operands, inexact quotients, conversions of every kind; literals that are hard to read.
const STATEMENTS: &str = "out[i] = x * 0.5 + exp(x) / 3.0 + 1e-45 + sqrt(x) - f32(y) * 0.1
 half[i] = x / 3.0 + 1.0
 brain[i] = fma(x, 1.0000001, 0.3)
 eight[i] = x * 7.3
 wide[i] = y / 3.0d + f64(x) + 2.2250738585072011e-308d + f64(i64(y)) + 9007199254740993.0d";

fn inputs() -> [Vec<u8>; 2] {
    let f32s = [0x0080_0000u32, 3, 0x3F80_0000, 0xBF9D_70A4, 0x7F7F_FFFF, 0x7F80_0001, 0x8000_0001, 0xFF80_0000];
    let f64s = [
        0x0010_0000_0000_0000u64,
        5,
        0x3FF0_0000_0000_0001,
        0x3690_0000_0000_0001,
        u64::MAX,
        0x380F_FFFF_FFFF_FFFF,
        1 << 63,
        0x43E0_0000_0000_0001,
    ];
    [f32s.iter().flat_map(|bits| bits.to_le_bytes()).collect(), f64s.iter().flat_map(|bits| bits.to_le_bytes()).collect()]
}

fn options() -> Options {
    let mut options = Options::default();
    options.launch.grid = Some([4, 1, 1]);
    for name in ["out", "half", "brain", "eight", "wide"] {
        options.launch.output_counts.insert(name.into(), 8);
    }
    options
}

fn parse(source: &str) -> Program {
    text::parse("p.vyre", source).expect("the text is right")
}

#[test]
fn subnormals_are_kept_by_every_evaluator() {
    let source = "program p {\n workgroup 2\n buffer a: read f32 @0\n buffer out: output f32 @1\n out[gid.x] = a[gid.x] * 0.5\n}";
    let a = values::encode(&DataType::F32, "#00800000, #00000003").expect("two values");
    let expected = [0x0040_0000u32, 2].iter().flat_map(|bits| bits.to_le_bytes()).collect::<Vec<u8>>();
    same_under_every_state(|| {
        let (program, options) = (parse(source), Options::default());
        assert_eq!(run(&program, &[&a], &options), Ok(vec![expected.clone()]));
        assert_eq!(bulk::run(&program, &[&a], &options), Ok(vec![expected.clone()]));
        assert_eq!(bulk::run_compacted(&program, &[&a], &options), Ok(vec![expected.clone()]));
        let report = check(&program, &[&a], &options, &Effort::default()).expect("it can be checked");
        assert_eq!(report.outcome, Ok(vec![expected.clone()]));
        let backends = vyre::backend::registry::registered_backends();
        assert!(!backends.is_empty());
        for registered in backends {
            let backend = vyre::backend::registry::acquire(registered.id).expect("it can be opened");
            let outputs = backend.dispatch(&program, std::slice::from_ref(&a), &DispatchConfig::default()).expect("it runs");
            assert_eq!(outputs, vec![expected.clone()], "{}", registered.id);
        }
    });
}

#[test]
fn evaluators_give_the_same_bytes_in_both_modes() {
    for mode in [FloatMode::Ieee, FloatMode::Canonical] {
        let source = program(STATEMENTS).replacen("workgroup 2\n", &format!("workgroup 2\n floats {mode}\n"), 1);
        let [a, d] = inputs();
        let program = parse(&source);
        let plain = run(&program, &[&a, &d], &options()).expect("it runs");
        same_under_every_state(|| {
            assert_eq!(run(&program, &[&a, &d], &options()).as_ref(), Ok(&plain));
            assert_eq!(run(&program, &[&a, &d], &Options { schedule: Schedule::Interleave, ..options() }).as_ref(), Ok(&plain));
            assert_eq!(bulk::run(&program, &[&a, &d], &options()).as_ref(), Ok(&plain));
            let report = check(&program, &[&a, &d], &options(), &Effort::default()).expect("it can be checked");
            assert_eq!(report.outcome.as_ref(), Ok(&plain));
            // Read, validated and run from the text on, under the same state.
            assert_eq!(run(&parse(&source), &[&a, &d], &options()).as_ref(), Ok(&plain));
        });
        same_under_every_state(|| faults::run(Fault::FmaTwice, &program, &[&a, &d], &options()));
    }
}

#[test]
fn a_warm_bulk_evaluator_gives_the_same_bytes() {
    let [a, d] = inputs();
    let program = parse(&program(STATEMENTS));
    let mut bulk = Bulk::new(program.validated().expect("the program is valid").kernel());
    let planned = launch::plan(&program, &[a.len() as u64, d.len() as u64], &options().launch).expect("the launch is right");
    let mut expected = Vec::new();
    bulk.run_into(&planned, &[&a, &d], Limits::NONE, &mut expected).expect("it runs");
    let mut outputs = Vec::new();
    for state in hostile::states() {
        let result = hostile::under(state, || bulk.run_into(&planned, &[&a, &d], Limits::NONE, &mut outputs));
        assert_eq!((result, &outputs), (Ok(()), &expected), "{state}");
    }
}

/// Each of these returns early, after some arithmetic; `hostile::under` sees to it that the state is given back.
#[test]
fn errors_and_traps_give_the_state_back() {
    let [a, d] = inputs();
    let trap = parse(&program("out[i] = x / 3.0\n if i == 5 {\n trap(7)\n }"));
    let endless = Options { fuel: 20, ..options() };
    same_under_every_state(|| {
        let result = run(&trap, &[&a, &d], &options());
        assert!(matches!(result, Err(RunError::Trap { tag: 7, invocation: [5, 0, 0], .. })), "{result:?}");
        let in_bulk = bulk::run(&trap, &[&a, &d], &options());
        let checked = check(&trap, &[&a, &d], &options(), &Effort::default());
        let out_of_fuel = [run(&trap, &[&a, &d], &endless), bulk::run(&trap, &[&a, &d], &endless)];
        assert_eq!(out_of_fuel, [Err(RunError::OutOfFuel { fuel: 20 }), Err(RunError::OutOfFuel { fuel: 20 })]);
        let refused = [run(&trap, &[&a], &options()), bulk::run(&trap, &[&a], &options())];
        assert!(refused.iter().all(|result| matches!(result, Err(RunError::Rejected(_)))), "{refused:?}");
        (result, in_bulk, checked, refused)
    });
}

#[test]
fn passes_fold_to_the_same_program() {
    let folded = "out[i] = x + 1.0 / 3.0 + 1.1754944e-38 * 0.5 + exp(0.3) + f32(0.1d) - f32(16777217)
 wide[i] = y + 1.0d / 3.0d + 2.2250738585072014e-308d * 0.5d + f64(1e-45)";
    for source in [program(folded), program(folded).replace("workgroup 2\n", "workgroup 2\n floats canonical\n")] {
        let before = parse(&source);
        assert_ne!(optimize(&before), before);
        same_under_every_state(|| optimize(&before).to_string());
        for pass in PASSES {
            same_under_every_state(|| pass.apply(&before));
        }
    }
}

#[test]
fn numbers_are_read_and_written_alike() {
    let texts = [
        "0.1",
        "1e-45",
        "1.1754942e-38",
        "3.4028235e38",
        "1e39",
        "16777217",
        "0.3",
        "1e23",
        "2.2250738585072011e-308",
        "5e-324",
        "0x1.8p-149",
    ];
    for scalar in [Scalar::F32, Scalar::F64] {
        for text in texts {
            same_under_every_state(|| text::parse_value(scalar, text));
        }
    }
    for bits in [1u32, 3, 0x0040_0000, 0x007F_FFFF, 0x0080_0000, 0x3DCC_CCCD, 0x7F7F_FFFF, 0x7F80_0001, 0xFFC0_0000, 0x8000_0000]
    {
        same_under_every_state(|| text::format_value(Scalar::F32, u64::from(bits)));
        same_under_every_state(|| Literal::F32(f32::from_bits(bits).into()));
        same_under_every_state(|| SpecValue::F32(f32::from_bits(bits)).to_string());
        same_under_every_state(|| SpecValue::F32(f32::from_bits(bits)).as_pipeline_f64().to_bits());
        let wide = u64::from(bits) << 32 | 1;
        same_under_every_state(|| text::format_value(Scalar::F64, wide));
        same_under_every_state(|| Literal::F64(f64::from_bits(wide).into()));
    }
    same_under_every_state(|| parse(&program(STATEMENTS)).to_string());
}

#[test]
fn elements_are_read_and_written_alike() {
    let list = "0.1, 1e-45, -3.3, 6e-8, 0.3, 448, 65504, 1e-7, inf, nan";
    for element in [DataType::F32, DataType::F64, DataType::F16, DataType::BF16, DataType::F8E4M3, DataType::F8E5M2] {
        same_under_every_state(|| values::encode(&element, list));
        let bytes: Vec<u8> = (0..=255).collect();
        same_under_every_state(|| values::decode(&element, &bytes));
    }
    for element in [DataType::FP4, DataType::NF4] {
        let bytes: Vec<u8> = (0..=255).collect();
        let list = values::decode(&element, &bytes).join(",");
        same_under_every_state(|| values::decode(&element, &bytes));
        same_under_every_state(|| values::encode(&element, &list));
    }
}

/// Literals are made canonical when a program is validated.
#[test]
fn kernels_are_the_same() {
    for mode in [FloatMode::Ieee, FloatMode::Canonical] {
        let source = program(STATEMENTS).replacen("workgroup 2\n", &format!("workgroup 2\n floats {mode}\n"), 1);
        same_under_every_state(|| {
            let program = parse(&source);
            format!("{:?}", program.validated().expect("it is valid").kernel().exprs)
        });
    }
}

/// The suggestion to write a number in another type is found by float arithmetic.
#[test]
fn mistakes_are_told_alike() {
    let source =
        "program p {\n workgroup 1\n buffer out: output u32[3] @0\n out[0] = 3.0\n out[1] = 1e-45\n out[2] = 0.1 + 1e-45d\n}";
    same_under_every_state(|| parse(source).validated().err().map(ToString::to_string));
}

/// Threads inherit the state of the one that starts them.
#[test]
fn threads_give_the_same_bytes() {
    let [a, d] = inputs();
    let program = parse(&program(STATEMENTS));
    let expected = run(&program, &[&a, &d], &options()).expect("it runs");
    for state in hostile::states() {
        let found = hostile::under(state, || {
            std::thread::scope(|scope| {
                let threads = [0, 1].map(|_| scope.spawn(|| bulk::run(&program, &[&a, &d], &options())));
                threads.map(|thread| thread.join().expect("no panic"))
            })
        });
        assert_eq!(found, [Ok(expected.clone()), Ok(expected.clone())], "{state}");
    }
}
