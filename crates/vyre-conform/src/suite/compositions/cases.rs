//! What cases of compositions are made of, and what a case is to plain Rust.

use crate::spec::{OpSpec, OpSpecBuilder};
use vyre_foundation::ir::DataType;

use crate::suite::random::words;

/// The bytes of floats.
pub(super) fn of_floats(floats: &[f32]) -> Vec<u8> {
    floats.iter().flat_map(|float| float.to_le_bytes()).collect()
}

/// The floats in bytes.
pub(super) fn floats(bytes: &[u8]) -> Vec<f32> {
    words(bytes).into_iter().map(f32::from_bits).collect()
}

/// The words of 64 bits in bytes.
pub(super) fn long_words(bytes: &[u8]) -> Vec<u64> {
    words(bytes).chunks_exact(2).map(|w| u64::from(w[0]) | u64::from(w[1]) << 32).collect()
}

/// One element type, and how many of them a case has of a buffer.
pub(super) type Part = (DataType, u32);

/// What a case is to plain Rust: the bytes of each input to the bytes of all outputs.
pub(super) type OfCase = fn(&[&[u8]]) -> Vec<Vec<u8>>;

/// How many elements a case has of each.
pub(super) fn counts(parts: &[Part]) -> Vec<u32> {
    parts.iter().map(|(_, count)| *count).collect()
}

/// Bytes of a case of each of these.
pub(super) fn byte_counts(parts: &[Part]) -> Vec<usize> {
    parts.iter().map(|(element, count)| (element.bits().unwrap_or_default() * u64::from(*count)).div_ceil(8) as usize).collect()
}

/// Signature, and plain Rust for one case and for many, of an op whose cases all have the same lengths.
pub(super) fn spec(id: &str, inputs: &[Part], outputs: &[Part], cpu: OfCase) -> OpSpecBuilder {
    let types = |parts: &[Part]| parts.iter().map(|(element, _)| element.clone()).collect::<Vec<DataType>>();
    let (lengths, of_one) = (byte_counts(inputs), byte_counts(inputs));
    let results = byte_counts(outputs);
    OpSpec::builder(id)
        .signature(types(inputs), types(outputs))
        .cpu_fn(move |case| {
            let mut rest = case;
            let parts: Vec<&[u8]> = of_one.iter().filter_map(|length| rest.split_off(..*length)).collect();
            cpu(&parts).concat()
        })
        .cpu_batch(move |columns, outputs| {
            for case in 0..columns.cases {
                let parts = columns.inputs.iter().zip(&lengths).map(|(column, length)| &column[case * length..][..*length]);
                let parts: Vec<&[u8]> = parts.collect();
                for ((output, length), result) in outputs.iter_mut().zip(&results).zip(cpu(&parts)) {
                    output[case * length..][..*length].copy_from_slice(&result);
                }
            }
        })
}
