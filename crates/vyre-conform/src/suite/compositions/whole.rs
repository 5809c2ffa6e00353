//! Compositions over whole buffers: a case is a dispatch.

use super::cases::{floats, of_floats};
use crate::spec::{OpSpec, OpSpecBuilder, frames};
use crate::suite::random::{Drawn, Random, of_words, words};
use vyre_foundation::config::DispatchConfig;
use vyre_foundation::ir::{DataType, Program};
use vyre_ops::reduce::{Combine, Integer, reduce, reduce_i32_on_cpu, reduce_u32_on_cpu};
use vyre_ops::{compact, graph, histogram, matrix, norm, scan, sort, stencil, text};

/// Cases of each: a dispatch takes as long as thousands of elements.
const CASES: u64 = 512;

const BINS: u32 = 61;
const WIDE_BINS: u32 = 5000;
const EPSILON: f32 = 1e-5;
/// So few that a row has more blocks than there are lanes.
const BLOCK: u32 = 3;
const LONGEST: u32 = 24;

pub(super) fn specs() -> Vec<OpSpecBuilder> {
    let mut specs = scans();
    specs.extend(Combine::ALL.into_iter().flat_map(|combine| Integer::ALL.map(|integer| reduction(combine, integer))));
    specs.extend(moves());
    specs.extend(matrices());
    specs.extend(texts());
    specs
}

/// What a dispatch is to plain Rust: the bytes of each input to those of each output.
type OfDispatch = fn(&[&[u8]]) -> Vec<Vec<u8>>;

/// Signature, plain Rust, launch and cases of an op whose cases are dispatches.
fn whole(
    id: impl Into<String>,
    inputs: &[DataType],
    outputs: &[DataType],
    program: impl Fn([u32; 3]) -> Program + Send + Sync + 'static,
    cpu: impl Fn(&[&[u8]]) -> Vec<Vec<u8>> + Send + Sync + 'static,
) -> OpSpecBuilder {
    OpSpec::builder(id)
        .signature(inputs.to_vec(), outputs.to_vec())
        .program(program)
        .cpu_fn(move |case| frames(case).map(|inputs| cpu(&inputs).concat()).unwrap_or_default())
}

/// So many workgroups, and the lengths of outputs.
fn launch(groups: usize, counts: &[(&str, usize)]) -> DispatchConfig {
    grid([groups, 1], counts)
}

fn grid([x, y]: [usize; 2], counts: &[(&str, usize)]) -> DispatchConfig {
    DispatchConfig {
        grid_override: Some([x.max(1) as u32, y.max(1) as u32, 1]),
        output_counts: counts.iter().map(|(name, count)| ((*name).to_string(), *count as u32)).collect(),
        ..DispatchConfig::default()
    }
}

/// A number of workgroups for kernels that take any: it follows from the length. Forty are more than there is work for, and more than a
/// workgroup of 37 can look at together.
fn any_groups(length: usize) -> usize {
    [1, 2, 3, 7, 40][length % 5]
}

fn covering(count: usize, size: u32) -> usize {
    count.div_ceil(size as usize)
}

fn scans() -> Vec<OpSpecBuilder> {
    let u32s = |n: usize| vec![DataType::U32; n];
    let sums = |x: &[u8]| launch(any_groups(x.len() / 4), &[("sums", x.len() / 4)]);
    let one = |random: &mut Random, size: u32| {
        let length = random.length(size);
        vec![of_words(&random.words(length))]
    };
    let two = |random: &mut Random, size: u32| {
        let length = random.length(size);
        vec![of_words(&random.words(length)), of_words(&random.flags(length))]
    };
    let inclusive: OfDispatch = |x| vec![of_words(&scan::inclusive_sum_on_cpu(&words(x[0])))];
    let exclusive: OfDispatch = |x| vec![of_words(&scan::exclusive_sum_on_cpu(&words(x[0])))];
    let segmented: OfDispatch = |x| {
        let (sums, segments) = scan::segmented_sum_on_cpu(&words(x[0]), &words(x[1]));
        vec![of_words(&sums), of_words(&segments)]
    };
    vec![
        whole("compose.scan.inclusive:u32", &u32s(1), &u32s(1), scan::inclusive_sum, inclusive)
            .per_dispatch(move |_, x| sums(x[0]))
            .space(Drawn { cases: CASES, make: one }),
        whole("compose.scan.exclusive:u32", &u32s(1), &u32s(1), scan::exclusive_sum, exclusive)
            .per_dispatch(move |_, x| sums(x[0]))
            .space(Drawn { cases: CASES, make: one }),
        whole("compose.scan.segmented:u32", &u32s(2), &u32s(2), scan::segmented_sum, segmented)
            .per_dispatch(|_, x| {
                let length = x[0].len() / 4;
                launch(any_groups(length), &[("sums", length), ("segments", length)])
            })
            .space(Drawn { cases: CASES, make: two }),
    ]
}

fn reduction(combine: Combine, integer: Integer) -> OpSpecBuilder {
    let id = format!("compose.reduce.{}:{}", combine.name(), integer.data_type());
    let cpu = move |x: &[&[u8]]| {
        let x = words(x[0]);
        let result = match integer {
            Integer::U32 => reduce_u32_on_cpu(combine, &x),
            Integer::I32 => reduce_i32_on_cpu(combine, &x.iter().map(|x| *x as i32).collect::<Vec<i32>>()) as u32,
        };
        vec![of_words(&[result])]
    };
    let make = move |random: &mut Random, size: u32| {
        let length = random.length(size);
        let mut x = random.words(length);
        // One element among others that change nothing shows whether it is taken.
        match (combine, random.below(2)) {
            (Combine::And, 0) => x.iter_mut().for_each(|x| *x = !(1 << (*x % 32))),
            (Combine::Or, 0) => x.iter_mut().for_each(|x| *x = 1 << (*x % 32)),
            (Combine::Add | Combine::Min | Combine::Max | Combine::And | Combine::Or | Combine::Xor, _) => {}
        }
        vec![of_words(&x)]
    };
    let element = || vec![integer.data_type()];
    whole(id, &element(), &element(), move |size| reduce(size, combine, integer), cpu)
        .per_dispatch(|_, x| launch(any_groups(x[0].len() / 4), &[]))
        .space(Drawn { cases: CASES, make })
}

/// Histogram, compaction, sort, graph.
fn moves() -> Vec<OpSpecBuilder> {
    let u32s = |n: usize| vec![DataType::U32; n];
    let counted = |bins: u32| {
        let make = move |random: &mut Random, size: u32| {
            let length = random.length(size);
            let spread = [1, 7, bins as usize + 2][random.below(3)];
            let x: Vec<u32> =
                (0..length).map(|_| if random.below(9) == 0 { random.u32() } else { random.below(spread) as u32 }).collect();
            vec![of_words(&x)]
        };
        let cpu = move |x: &[&[u8]]| vec![of_words(&histogram::histogram_on_cpu(&words(x[0]), bins))];
        let id = if bins == BINS { "compose.histogram" } else { "compose.histogram.wide" };
        whole(id, &u32s(1), &u32s(1), move |size| histogram::histogram(size, bins), cpu)
            .per_dispatch(|_, x| launch(any_groups(x[0].len() / 4), &[]))
            .space(Drawn { cases: CASES, make })
    };
    let compacted: OfDispatch = |x| {
        let (kept, places, count) = compact::compact_on_cpu(&words(x[0]), &words(x[1]));
        vec![of_words(&kept), of_words(&places), of_words(&[count])]
    };
    let sorted: OfDispatch = |x| {
        let (sorted, spare) = sort::radix_sort_on_cpu(&words(x[0]));
        vec![of_words(&sorted), of_words(&spare), vec![0; 4096]]
    };
    let reached: OfDispatch = |x| {
        let [offsets, targets, frontier, seen] = [0, 1, 2, 3].map(|n| words(x[n]));
        vec![of_words(&graph::bfs_step_on_cpu(&offsets, &targets, &frontier, &seen))]
    };
    vec![
        counted(BINS),
        counted(WIDE_BINS),
        whole("compose.compact:u32", &u32s(2), &u32s(3), compact::compact, compacted)
            .per_dispatch(|_, x| {
                let length = x[0].len() / 4;
                launch(any_groups(length), &[("kept", length), ("places", length)])
            })
            .space(Drawn {
                cases: CASES,
                make: |random: &mut Random, size: u32| {
                    let length = random.length(size);
                    vec![of_words(&random.words(length)), of_words(&random.flags(length))]
                },
            }),
        whole("compose.sort.radix:u32", &u32s(1), &u32s(3), sort::radix_sort, sorted)
            .per_dispatch(|_, x| launch(any_groups(x[0].len() / 4), &[("spare", x[0].len() / 4)]))
            .space(Drawn {
                cases: CASES / 4,
                make: |random: &mut Random, size: u32| {
                    let length = random.length(size);
                    vec![of_words(&random.words(length))]
                },
            }),
        whole("compose.bfs_step", &u32s(4), &u32s(1), graph::bfs_step, reached)
            .per_dispatch(|size, x| launch(covering(x[0].len() / 4, size), &[("next", x[2].len() / 4)]))
            .space(Drawn { cases: CASES, make: graph_of }),
    ]
}

/// A graph, mostly as it should be: offsets that rise, edges between its vertices.
fn graph_of(random: &mut Random, size: u32) -> Vec<Vec<u8>> {
    let vertices = random.length(size);
    let edges = random.below(4 * vertices + 2);
    let mut offsets: Vec<u32> = (0..=vertices).map(|_| random.below(edges + 1) as u32).collect();
    if random.below(8) > 0 {
        offsets.sort_unstable();
    }
    let targets: Vec<u32> =
        (0..edges).map(|_| if random.below(50) == 0 { random.u32() } else { random.below(vertices + 1) as u32 }).collect();
    let set = |random: &mut Random| {
        let mask = [0, u32::MAX, random.u32(), random.u32() & random.u32()][random.below(4)];
        (0..vertices.div_ceil(32)).map(|_| random.u32() & mask).collect::<Vec<u32>>()
    };
    let (frontier, seen) = (set(random), set(random));
    [offsets, targets, frontier, seen].map(|words| of_words(&words)).into()
}

/// Matrices and grids of cells.
fn matrices() -> Vec<OpSpecBuilder> {
    let f32s = |n: usize| vec![DataType::F32; n];
    let with_sizes = |n: usize| [vec![DataType::U32], f32s(n)].concat();
    let product: OfDispatch = |x| {
        let [m, inner, n] = [0, 1, 2].map(|at| words(x[0])[at] as usize);
        vec![of_floats(&matrix::matmul_on_cpu([m, inner, n], &floats(x[1]), &floats(x[2])))]
    };
    let stepped: OfDispatch = |x| {
        let weights = floats(x[1]);
        let weights: [f32; 9] = std::array::from_fn(|n| weights[n]);
        vec![of_floats(&stencil::stencil_on_cpu(words(x[0])[0] as usize, &weights, &floats(x[2])))]
    };
    let normal: OfDispatch = |x| {
        let (gain, bias) = (floats(x[1]), floats(x[2]));
        let rows = floats(x[0]);
        vec![of_floats(
            &rows.chunks(gain.len()).flat_map(|row| norm::layer_norm_on_cpu(row, &gain, &bias, EPSILON)).collect::<Vec<f32>>(),
        )]
    };
    let mut specs = vec![
        whole("compose.matmul:f32", &with_sizes(2), &f32s(1), matrix::matmul, product)
            .per_dispatch(|size, x| {
                let [m, _, n] = [0, 1, 2].map(|at| words(x[0])[at] as usize);
                let [high, wide] = matrix::matmul_tile([size, 1, 1]);
                grid([covering(n, wide), covering(m, high)], &[("c", m * n)])
            })
            .space(Drawn {
                cases: CASES,
                make: |random: &mut Random, _: u32| {
                    let [m, inner, n] = [0, 0, 0].map(|_: usize| random.extent(48));
                    let sizes = of_words(&[m as u32, inner as u32, n as u32]);
                    vec![sizes, of_floats(&random.floats(m * inner)), of_floats(&random.floats(inner * n))]
                },
            }),
        whole("compose.stencil:f32", &with_sizes(2), &f32s(1), stencil::stencil, stepped)
            .per_dispatch(|size, x| launch(covering(x[2].len() / 4, size), &[("next", x[2].len() / 4)]))
            .space(Drawn {
                cases: CASES,
                make: |random: &mut Random, _: u32| {
                    let [width, height] = [0, 0].map(|_: usize| random.extent(70));
                    vec![of_words(&[width as u32]), of_floats(&random.floats(9)), of_floats(&random.floats(width * height))]
                },
            }),
        whole("compose.layer_norm:f32", &f32s(3), &f32s(1), |size| norm::layer_norm(size, EPSILON), normal)
            .per_dispatch(|_, x| launch(x[0].len().checked_div(x[1].len()).unwrap_or(1), &[("y", x[0].len() / 4)]))
            .space(Drawn {
                cases: CASES,
                make: |random: &mut Random, _: u32| {
                    let (rows, columns) = (random.below(5), random.extent(600));
                    let x: Vec<f32> = (0..rows).flat_map(|_| random.floats(columns)).collect();
                    vec![of_floats(&x), of_floats(&random.floats(columns)), of_floats(&random.floats(columns))]
                },
            }),
    ];
    specs.extend(matrix::Quantised::ALL.map(dot));
    specs
}

fn dot(stored: matrix::Quantised) -> OpSpecBuilder {
    let rows = |x: &[&[u8]]| (x[1].len() / 4) / (x[2].len() / 4).div_ceil(BLOCK as usize).max(1);
    let cpu = move |x: &[&[u8]]| {
        vec![of_floats(&matrix::quantised_dot_on_cpu(stored, BLOCK as usize, x[0], &floats(x[1]), &floats(x[2]), rows(x)))]
    };
    let make = move |random: &mut Random, _: u32| {
        let (rows, columns) = (random.below(6), random.extent(900));
        let mut weights = random.bytes(stored.bytes(rows * columns));
        if stored != matrix::Quantised::Nf4 && random.below(4) > 0 {
            // No NaNs and infinities, which hide the rest.
            weights.iter_mut().for_each(|weight| *weight &= 0xBF);
        }
        let scales: Vec<f32> = random.floats(rows * columns.div_ceil(BLOCK as usize));
        vec![weights, of_floats(&scales), of_floats(&random.floats(columns))]
    };
    let id = format!("compose.dot:{}", stored.data_type());
    let inputs = [stored.data_type(), DataType::F32, DataType::F32];
    whole(id, &inputs, &[DataType::F32], move |size| matrix::quantised_dot(size, stored, BLOCK), cpu)
        .per_dispatch(move |_, x| launch(rows(x), &[("y", rows(x))]))
        .space(Drawn { cases: CASES, make })
}

fn texts() -> Vec<OpSpecBuilder> {
    let encoded: OfDispatch = |x| vec![text::base64_encode_on_cpu(x[0])];
    let decoded: OfDispatch = |x| {
        let (bytes, status) = text::base64_decode_on_cpu(x[0]);
        vec![bytes, of_words(&status)]
    };
    let rest: OfDispatch = |x| vec![of_words(&[text::utf8_rest_on_cpu(x[0])])];
    let matched: OfDispatch = |x| vec![of_words(&text::dfa_matches_on_cpu(&words(x[0]), x[1], LONGEST))];
    vec![
        whole("compose.base64.encode", &[DataType::U8], &[DataType::U8], text::base64_encode, encoded)
            .per_dispatch(|size, x| launch(covering(x[0].len().div_ceil(3), size), &[("text", x[0].len().div_ceil(3) * 4)]))
            .space(Drawn {
                cases: CASES,
                make: |random: &mut Random, size: u32| {
                    let length = random.length(size);
                    vec![random.bytes(length)]
                },
            }),
        whole("compose.base64.decode", &[DataType::U8], &[DataType::U8, DataType::U32], text::base64_decode, decoded)
            .per_dispatch(|size, x| launch(covering(x[0].len().div_ceil(4), size), &[("bytes", x[0].len() / 4 * 3)]))
            .space(Drawn {
                cases: CASES,
                make: |random: &mut Random, size: u32| {
                    let length = random.length(size);
                    let bytes = random.bytes(length);
                    let wrong = random.below(4) > 0;
                    vec![damaged(random, text::base64_encode_on_cpu(&bytes), wrong, b"=+/-_Aa0 \n@[`{:")]
                },
            }),
        whole("compose.utf8", &[DataType::U8], &[DataType::U32], text::utf8_rest, rest)
            .per_dispatch(|_, x| launch(any_groups(x[0].len()), &[]))
            .space(Drawn {
                cases: CASES,
                make: |random: &mut Random, size: u32| {
                    let (length, wrong) = (random.length(size), random.below(4) > 0);
                    let mut text = String::new();
                    while text.len() < length {
                        let edges = [0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFF, 0x1_0000, 0x10_FFFF];
                        let bits = [7, 11, 16, 21][random.below(4)];
                        let any = random.below(1 << bits) as u32;
                        text.extend(char::from_u32(if random.below(3) == 0 { edges[random.below(edges.len())] } else { any }));
                    }
                    let edges = b"\x00\x7F\x80\x8F\x90\x9F\xA0\xBF\xC0\xC1\xC2\xDF\xE0\xE1\xED\xEE\xF0\xF1\xF4\xF5\xFF";
                    vec![damaged(random, text.into_bytes(), wrong, edges)]
                },
            }),
        whole("compose.dfa", &[DataType::U32, DataType::U8], &[DataType::U32], |size| text::dfa_matches(size, LONGEST), matched)
            .per_dispatch(|size, x| launch(covering(x[1].len(), size), &[("lengths", x[1].len())]))
            .space(Drawn {
                cases: CASES,
                make: |random: &mut Random, size: u32| {
                    let (length, states) = (random.length(size), 1 + random.below(6));
                    let entry = |random: &mut Random| match random.below(4) {
                        0 => 0,
                        1 => (1 + random.below(states)) as u32 | 1 << 31,
                        _ => (1 + random.below(states)) as u32,
                    };
                    let table: Vec<u32> = (0..states * 256).map(|_| entry(random)).collect();
                    vec![of_words(&table), random.bytes(length)]
                },
            }),
    ]
}

/// The same with one or two bytes replaced, or cut off.
fn damaged(random: &mut Random, mut bytes: Vec<u8>, wrong: bool, by: &[u8]) -> Vec<u8> {
    if wrong && !bytes.is_empty() {
        for _ in 0..1 + random.below(2) {
            let at = random.below(bytes.len());
            bytes[at] = by[random.below(by.len())];
        }
        if random.below(4) == 0 {
            bytes.truncate(random.below(bytes.len()));
        }
    }
    bytes
}
