//! Programs that are generated and reduced are the same whatever float state the process has.

use vyre_foundation::ir::{DataType, Program};
use vyre_foundation::{text, values};
use vyre_host_floats::hostile;
use vyre_smith::generate::{Preset, dna, generate};
use vyre_smith::metamorphic::{rewrites, rewritten};
use vyre_smith::reduce::{Config, Interest, reduce, smaller};
use vyre_worker::Case;

#[test]
fn the_same_programs_are_generated() {
    let all = || -> Vec<(Program, Vec<Vec<u8>>, String)> {
        let numbers = 0..200u64;
        let one = |number| {
            let dna = dna(9, number);
            let case = generate(Preset::ALL[number as usize % Preset::ALL.len()], &dna).case(&dna);
            let other = rewritten(&case.program, &rewrites(&dna));
            (case.program, case.inputs, other.to_string())
        };
        numbers.map(one).collect()
    };
    let expected = all();
    for state in hostile::states() {
        assert!(hostile::under(state, all) == expected, "{state}");
    }
}

#[test]
fn the_same_case_is_reduced_to_the_same() {
    let source = "program p {\n workgroup 2\n buffer a: read f32[3] @0\n buffer h: read f16[3] @1\n buffer out: output f32[2] @2\n \
                  let x = a[gid.x] * 0.3 + 3.7e-39\n let y = h[gid.x] / 123456.789\n out[gid.x] = x + y - f32(1e-310d)\n}";
    let case = || Case {
        program: text::parse("p.vyre", source).expect("the text is right"),
        inputs: vec![
            values::encode(&DataType::F32, "0.1, 1e-45, -3.3e7").expect("three values"),
            values::encode(&DataType::F16, "6e-8, 0.3, 65504").expect("three values"),
        ],
        config: Default::default(),
        fuel: 1000,
    };
    let reduced = || {
        // Interesting is what still stores something and has a number that is neither 0 nor 1.
        let mut interesting = |case: &Case| {
            let text = case.program.to_string();
            if text.contains("out[") && text.contains("e-") { Interest::Yes } else { Interest::No }
        };
        let reduced = reduce(case(), &Config::default(), &mut interesting, &mut |_| {}).expect("it is interesting");
        (reduced.case.program.to_string(), reduced.case.inputs, reduced.attempts)
    };
    let steps = || smaller(&case()).map(|cases| cases.into_iter().map(|case| (case.program, case.inputs)).collect::<Vec<_>>());
    let (expected, expected_steps) = (reduced(), steps());
    for state in hostile::states() {
        assert_eq!(hostile::under(state, reduced), expected, "{state}");
        assert!(hostile::under(state, steps) == expected_steps, "{state}");
    }
}
