//! Compositions in which an invocation works alone: a case is a record.

use super::cases::{OfCase, Part, byte_counts, counts, long_words, spec};
use crate::spec::{Extent, OpSpecBuilder};
use crate::suite::random::{Drawn, Random, of_words, words};
use vyre_foundation::ir::{DataType, Program};
use vyre_ops::{hash, random};
use vyre_spec::Scalar;

/// Cases of each: a unit of the ledger.
const CASES: u64 = 1 << 16;

pub(super) fn specs() -> Vec<OpSpecBuilder> {
    let u8s = |n| (DataType::U8, n);
    let (u32s, u64s) = (|n| (DataType::U32, n), |n| (DataType::U64, n));
    let vector = |n| (DataType::vector(Scalar::U32, n), 1);
    vec![
        record("compose.crc32", &[u8s(64)], &[u32s(1)], |size| hash::crc32(size, 64), |x| one(hash::crc32_on_cpu(x[0]))),
        record(
            "compose.fnv1a:u32",
            &[u8s(33)],
            &[u32s(1)],
            |size| hash::fnv1a_32(size, 33),
            |x| one(hash::fnv1a_32_on_cpu(x[0])),
        ),
        record(
            "compose.fnv1a:u64",
            &[u8s(33)],
            &[u64s(1)],
            |size| hash::fnv1a_64(size, 33),
            |x| vec![hash::fnv1a_64_on_cpu(x[0]).to_le_bytes().to_vec()],
        ),
        // A tail of three bytes.
        record(
            "compose.murmur3",
            &[u8s(23), u32s(1)],
            &[u32s(1)],
            |size| hash::murmur3(size, 23),
            |x| one(hash::murmur3_on_cpu(x[0], words(x[1])[0])),
        ),
        record(
            "compose.siphash",
            &[u8s(29), u64s(2)],
            &[u64s(1)],
            |size| hash::siphash_2_4(size, 29),
            |x| {
                let key = long_words(x[1]);
                vec![hash::siphash_2_4_on_cpu(x[0], [key[0], key[1]]).to_le_bytes().to_vec()]
            },
        ),
        // The message ends within a word, and its length is in a block of its own.
        record("compose.sha256", &[u8s(61)], &[u32s(8)], |size| hash::sha256(size, 61), |x| all(&hash::sha256_on_cpu(x[0]))),
        record("compose.philox", &[vector(4), vector(2)], &[vector(4)], random::philox, |x| {
            let (counter, key) = (words(x[0]), words(x[1]));
            all(&random::philox_on_cpu([counter[0], counter[1], counter[2], counter[3]], [key[0], key[1]]))
        }),
        record(
            "compose.pcg32",
            &[u64s(1), u64s(1)],
            &[u32s(5)],
            |size| random::pcg32(size, 5),
            |x| {
                let (seed, stream) = (long_words(x[0])[0], long_words(x[1])[0]);
                all(&[0, 1, 2, 3, 4].map(|n| random::pcg32_on_cpu(seed, stream, n)))
            },
        ),
    ]
}

fn one(word: u32) -> Vec<Vec<u8>> {
    all(&[word])
}

fn all(words: &[u32]) -> Vec<Vec<u8>> {
    vec![of_words(words)]
}

fn record(id: &str, inputs: &[Part], outputs: &[Part], program: fn([u32; 3]) -> Program, cpu: OfCase) -> OpSpecBuilder {
    let lengths = byte_counts(inputs);
    let make = move |random: &mut Random, _: u32| lengths.iter().map(|length| contents(random, *length)).collect();
    spec(id, inputs, outputs, cpu)
        .program(program)
        .elements(Extent { invocations: 1, inputs: counts(inputs), outputs: counts(outputs) })
        .space(Drawn { cases: CASES, make })
}

/// Bytes that are all equal, count up, have one bit, or are random.
fn contents(random: &mut Random, length: usize) -> Vec<u8> {
    let value = random.word() as u8;
    match random.below(8) {
        0 => vec![[0, 0xFF, 0x80, value][random.below(4)]; length],
        1 => (0..length).map(|n| value.wrapping_add(n as u8)).collect(),
        2 => {
            let mut bytes = vec![0; length];
            if let Some(byte) = bytes.get_mut(random.below(length.max(1))) {
                *byte = 1 << (value % 8);
            }
            bytes
        }
        _ => random.bytes(length),
    }
}
