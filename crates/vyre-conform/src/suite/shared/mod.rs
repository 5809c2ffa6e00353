//! Specs of what invocations do together and of the way they take: atomics, subgroup ops, barriers and workgroup memory, control flow.
//!
//! A case is what a workgroup works on, except in [`control`], where it is an element. All of them give the same bytes under every
//! schedule; programs are written as text.

mod atomics;
mod barriers;
mod control;
mod subgroups;

pub(super) use atomics::left;

use crate::spec::{Extent, OpSpec, OpSpecBuilder};
use std::sync::Arc;
use vyre_foundation::ir::{DataType, Program};
use vyre_host_floats::with_default_state;

/// The specs of atomics, subgroup ops, barriers and control flow.
///
/// # Panics
///
/// If a spec is not one, which is a mistake in these files.
#[must_use]
pub fn shared() -> Vec<OpSpec> {
    let mut specs = atomics::atomics();
    specs.extend(subgroups::subgroups());
    specs.extend(barriers::barriers());
    specs.extend(control::control());
    specs
}

/// How many elements a case has of a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Count {
    /// One.
    One,
    /// One for each invocation.
    Each,
}

impl Count {
    fn elements(self, workgroup: u32) -> u32 {
        match self {
            Count::One => 1,
            Count::Each => workgroup,
        }
    }
}

/// The buffers of an op whose cases are workgroups.
#[derive(Clone)]
struct Grouped {
    inputs: Vec<(DataType, Count)>,
    outputs: Vec<(DataType, Count)>,
}

/// A case: the bytes of each input.
struct Group<'a> {
    /// Invocations of the workgroup.
    size: usize,
    inputs: &'a [&'a [u8]],
}

impl Group<'_> {
    /// The elements of an input, which are `u32` or `i32`, as bits.
    fn u32s(&self, input: usize) -> Vec<u32> {
        self.inputs[input].as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect()
    }

    /// The elements of an input of any type of 4 or 8 bytes, as bits.
    fn bits(&self, input: usize, bytes: usize) -> Vec<u64> {
        let extended = |bytes: &[u8]| {
            let mut all = [0; 8];
            all[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(all)
        };
        self.inputs[input].chunks_exact(bytes).map(extended).collect()
    }
}

/// Writes `u32`s where an output wants them.
fn put(values: impl IntoIterator<Item = u32>, output: &mut [u8]) {
    for (to, value) in output.as_chunks_mut::<4>().0.iter_mut().zip(values) {
        *to = value.to_le_bytes();
    }
}

fn bytes(buffers: &[(DataType, Count)], workgroup: usize) -> Vec<usize> {
    let bytes = |(ty, count): &(DataType, Count)| {
        let element = ty.bits().expect("a type that kernels use") as usize / 8;
        element * count.elements(workgroup as u32) as usize
    };
    buffers.iter().map(bytes).collect()
}

/// Cuts the first bytes off that belong to each buffer.
fn split<'a>(mut all: &'a [u8], lengths: &[usize]) -> Vec<&'a [u8]> {
    lengths.iter().map(|length| all.split_off(..*length).unwrap_or_default()).collect()
}

impl Grouped {
    fn new<const I: usize, const O: usize>(inputs: [(DataType, Count); I], outputs: [(DataType, Count); O]) -> Grouped {
        Grouped { inputs: inputs.into(), outputs: outputs.into() }
    }

    /// A spec from what it means for one workgroup.
    fn spec(&self, id: String, meaning: impl Fn(&Group<'_>, &mut [&mut [u8]]) + Send + Sync + 'static) -> OpSpecBuilder {
        let types = |buffers: &[(DataType, Count)]| buffers.iter().map(|(ty, _)| ty.clone()).collect::<Vec<_>>();
        let (extent, one, many) = (self.clone(), self.clone(), self.clone());
        let meaning = Arc::new(meaning);
        let again = Arc::clone(&meaning);
        OpSpec::builder(id)
            .signature(types(&self.inputs), types(&self.outputs))
            .per_workgroup(move |size| {
                let elements = |buffers: &[(DataType, Count)]| buffers.iter().map(|(_, count)| count.elements(size)).collect();
                Extent { invocations: size, inputs: elements(&extent.inputs), outputs: elements(&extent.outputs) }
            })
            .cpu_fn(move |case| {
                // The bytes of a case grow with the workgroup by as much for each invocation.
                let total = |size: usize| bytes(&one.inputs, size).iter().sum::<usize>();
                let size = if total(2) == total(1) { 1 } else { 1 + (case.len() - total(1)) / (total(2) - total(1)) };
                let inputs = split(case, &bytes(&one.inputs, size));
                let mut outputs: Vec<Vec<u8>> = bytes(&one.outputs, size).into_iter().map(|length| vec![0; length]).collect();
                let mut slices: Vec<&mut [u8]> = outputs.iter_mut().map(Vec::as_mut_slice).collect();
                with_default_state(|| meaning(&Group { size, inputs: &inputs }, &mut slices));
                outputs.concat()
            })
            .cpu_batch(move |columns, outputs| {
                let size = columns.workgroup as usize;
                let (input_bytes, output_bytes) = (bytes(&many.inputs, size), bytes(&many.outputs, size));
                outputs.iter_mut().for_each(|output| output.fill(0));
                with_default_state(|| {
                    for n in 0..columns.cases {
                        let columns = columns.inputs.iter().zip(&input_bytes);
                        let inputs: Vec<&[u8]> = columns.map(|(column, length)| &column[n * length..][..*length]).collect();
                        let outputs = outputs.iter_mut().zip(&output_bytes);
                        let mut slices: Vec<&mut [u8]> = outputs.map(|(all, length)| &mut all[n * length..][..*length]).collect();
                        again(&Group { size, inputs: &inputs }, &mut slices);
                    }
                });
            })
    }
}

/// The program of this text, which has `SIZE` where the workgroup size is meant.
pub(super) fn text(text: impl Into<String>) -> impl Fn([u32; 3]) -> Program + Send + Sync + 'static {
    let text = text.into();
    move |[size, ..]| {
        let text = text.replace("SIZE", &size.to_string());
        vyre_foundation::text::parse("spec", &text).unwrap_or_else(|report| panic!("{report}"))
    }
}

pub(super) fn finish(spec: OpSpecBuilder) -> OpSpec {
    spec.build().unwrap_or_else(|error| panic!("{error}"))
}
