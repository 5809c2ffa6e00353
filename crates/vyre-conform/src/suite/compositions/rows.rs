//! Compositions in which a workgroup works on a row: a case is a row.

use super::cases::{OfCase, Part, counts, floats, of_floats, spec};
use crate::spec::{Extent, OpSpecBuilder};
use crate::suite::random::{Drawn, Random, of_words, words};
use vyre_foundation::ir::{DataType, Program, Scalar};
use vyre_ops::fft::{Direction, fft, fft_on_cpu};
use vyre_ops::norm::{softmax, softmax_on_cpu};
use vyre_ops::reduce::{row_sum_on_cpu, row_sums};
use vyre_ops::sort::{top_k, top_k_on_cpu};

/// Cases of each: a workgroup takes as long as hundreds of elements.
const CASES: u64 = 1 << 12;

/// More than there are lanes, so that some have two elements.
const COLUMNS: u32 = 261;
/// One invocation alone can do as many on llvmpipe, which ends loops after 65,535 rounds.
const POINTS: u32 = 64;
const TAKEN: u32 = 9;

pub(super) fn specs() -> Vec<OpSpecBuilder> {
    let f32s = |n| (DataType::F32, n);
    let u32s = |n| (DataType::U32, n);
    let complex = || (DataType::vector(Scalar::F32, 2), POINTS);
    let float_row = |random: &mut Random, _: u32| vec![of_floats(&random.floats(COLUMNS as usize))];
    let word_row = |random: &mut Random, _: u32| vec![of_words(&random.words(COLUMNS as usize))];
    let complex_row = |random: &mut Random, _: u32| vec![of_floats(&random.floats(2 * POINTS as usize))];
    vec![
        row(
            "compose.sum:f32",
            f32s(COLUMNS),
            &[f32s(1)],
            |size| row_sums(size, COLUMNS),
            |x| vec![of_floats(&[row_sum_on_cpu(&floats(x[0]))])],
        )
        .space(Drawn { cases: CASES, make: float_row }),
        row(
            "compose.softmax:f32",
            f32s(COLUMNS),
            &[f32s(COLUMNS)],
            |size| softmax(size, COLUMNS),
            |x| vec![of_floats(&softmax_on_cpu(&floats(x[0])))],
        )
        .space(Drawn { cases: CASES, make: float_row }),
        row(
            "compose.top_k:u32",
            u32s(COLUMNS),
            &[u32s(TAKEN), u32s(TAKEN)],
            |size| top_k(size, COLUMNS, TAKEN),
            |x| {
                let (values, indices) = top_k_on_cpu(&words(x[0]), TAKEN as usize);
                vec![of_words(&values), of_words(&indices)]
            },
        )
        .space(Drawn { cases: CASES, make: word_row }),
        row(
            "compose.fft.forward:f32",
            complex(),
            &[complex()],
            |size| fft(size, POINTS, Direction::Forward),
            |x| vec![transformed(x[0], Direction::Forward)],
        )
        .space(Drawn { cases: CASES, make: complex_row }),
        row(
            "compose.fft.backward:f32",
            complex(),
            &[complex()],
            |size| fft(size, POINTS, Direction::Backward),
            |x| vec![transformed(x[0], Direction::Backward)],
        )
        .space(Drawn { cases: CASES, make: complex_row }),
    ]
}

fn transformed(row: &[u8], direction: Direction) -> Vec<u8> {
    let row: Vec<[f32; 2]> = floats(row).chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect();
    of_floats(fft_on_cpu(&row, direction).as_flattened())
}

fn row(id: &str, input: Part, outputs: &[Part], program: fn([u32; 3]) -> Program, cpu: OfCase) -> OpSpecBuilder {
    let (inputs, results) = (counts(std::slice::from_ref(&input)), counts(outputs));
    let extent = move |size: u32| Extent { invocations: size, inputs: inputs.clone(), outputs: results.clone() };
    spec(id, &[input], outputs, cpu).program(program).per_workgroup(extent)
}
