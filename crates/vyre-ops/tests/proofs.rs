//! Which compositions are proven to give the same bytes under every schedule, for launches that meet their conditions. For the others the
//! checked mode decides about each dispatch; what stands in the way is that an index is read from memory or comes from a scan.

mod support;

use support::SIZES;
use vyre::analysis::determinism::Determinism;
use vyre::ir::Program;
use vyre_ops::fft::Direction;
use vyre_ops::matrix::Quantised;
use vyre_ops::reduce::{Combine, Integer};
use vyre_ops::{compact, fft, graph, hash, histogram, matrix, norm, random, reduce, scan, sort, stencil, text};

type Builder = fn([u32; 3]) -> Program;

const PROVEN: [(&str, Builder); 24] = [
    ("crc32", |size| hash::crc32(size, 9)),
    ("fnv1a_32", |size| hash::fnv1a_32(size, 9)),
    ("fnv1a_64", |size| hash::fnv1a_64(size, 9)),
    ("murmur3", |size| hash::murmur3(size, 9)),
    ("siphash_2_4", |size| hash::siphash_2_4(size, 9)),
    ("sha256", |size| hash::sha256(size, 9)),
    ("philox", random::philox),
    ("pcg32", |size| random::pcg32(size, 5)),
    ("reduce add", |size| reduce::reduce(size, Combine::Add, Integer::U32)),
    ("reduce min", |size| reduce::reduce(size, Combine::Min, Integer::I32)),
    ("row_sums", |size| reduce::row_sums(size, 300)),
    ("histogram", |size| histogram::histogram(size, 100)),
    ("histogram, wide", |size| histogram::histogram(size, 10_000)),
    ("softmax", |size| norm::softmax(size, 300)),
    ("layer_norm", |size| norm::layer_norm(size, 1e-5)),
    ("matmul", matrix::matmul),
    ("quantised_dot", |size| matrix::quantised_dot(size, Quantised::Nf4, 32)),
    ("stencil", stencil::stencil),
    ("fft", |size| fft::fft(size, 128, Direction::Forward)),
    ("bfs_step", graph::bfs_step),
    ("base64_encode", text::base64_encode),
    ("base64_decode", text::base64_decode),
    ("dfa_matches", |size| text::dfa_matches(size, 20)),
    ("utf8_rest", text::utf8_rest),
];

const CHECKED: [(&str, Builder); 6] = [
    ("inclusive_sum", scan::inclusive_sum),
    ("exclusive_sum", scan::exclusive_sum),
    ("segmented_sum", scan::segmented_sum),
    ("compact", compact::compact),
    ("radix_sort", sort::radix_sort),
    ("top_k", |size| sort::top_k(size, 100, 7)),
];

#[test]
fn what_is_proven() {
    for (list, expected) in [(&PROVEN[..], true), (&CHECKED[..], false)] {
        for (name, build) in list {
            for size in SIZES {
                let program = build([size, 1, 1]);
                let determinism = program.determinism().expect("it is valid");
                let proven = matches!(determinism, Determinism::CrossBackend { .. });
                // A workgroup of one leaves less to prove.
                assert!(proven == expected || size == 1 && !expected, "{name} in workgroups of {size}: {determinism}");
            }
        }
    }
}
