//! Specs whose cases are dispatches of their own: where memory is touched and how long it is, how invocations are counted, how they end.
//!
//! - `index.*`: loads, stores and atomics at indices that backends get wrong, in storage, uniform and workgroup memory.
//! - `lengths.*`: buffers of lengths that fit no vector.
//! - `geometry.*`: workgroups and grids in three dimensions.
//! - `trap.*`, `retire.*`, `grid.*`: invocations that end early, and the barriers that others wait at.

mod atomics;
mod ends;
mod geometry;
mod grids;
mod lengths;
mod loads;
mod pattern;
mod stores;

use crate::space::{Draw, Evidence, Space};
use crate::spec::{Columns, OpSpec, OpSpecBuilder};
use crate::suite::random::Random;
use std::ops::Range;
use vyre_foundation::config::DispatchConfig;
use vyre_foundation::ir::{DataType, Program};
use vyre_host_floats::with_default_state;
use vyre_spec::ValueType;

/// The specs of memory, geometry and ends.
///
/// # Panics
///
/// If a spec is not one, which is a mistake in these files.
#[must_use]
pub fn dispatches() -> Vec<OpSpec> {
    let mut specs = loads::specs();
    specs.extend(stores::specs());
    specs.extend(atomics::specs());
    specs.extend(lengths::specs());
    specs.extend(geometry::specs());
    specs.extend(ends::specs());
    specs.extend(grids::specs());
    specs.into_iter().map(|spec| spec.build().unwrap_or_else(|error| panic!("{error}"))).collect()
}

/// Cases that are drawn of each op, beside those at the edges.
const DRAWN: u64 = 4096;

/// Cases that are made for the places at which something goes wrong; the number of a case says which.
struct Edges<F> {
    cases: u64,
    make: F,
}

impl<F: Fn(&mut Random, u32, u64) -> Vec<Vec<u8>> + Send + Sync> Space for Edges<F> {
    fn name(&self) -> &str {
        "edges"
    }

    fn cases(&self, _: u32) -> u64 {
        self.cases
    }

    fn evidence(&self) -> Evidence {
        Evidence::Boundary
    }

    fn fill(&self, draw: Draw, cases: Range<u64>, columns: &mut [Vec<u8>]) {
        for case in cases {
            let inputs = (self.make)(&mut Random::of_case(0, case), draw.workgroup, case);
            assert_eq!(inputs.len(), columns.len(), "a case has bytes of every input");
            columns.iter_mut().zip(inputs).for_each(|(column, bytes)| column.extend(bytes));
        }
    }
}

/// A spec from what it means: the bytes of all outputs from those of the inputs.
fn spec(
    id: impl Into<String>,
    inputs: &[DataType],
    outputs: &[DataType],
    meaning: impl Fn(&Columns<'_>) -> Vec<Vec<u8>> + Send + Sync + 'static,
) -> OpSpecBuilder {
    OpSpec::builder(id).signature(inputs.to_vec(), outputs.to_vec()).cpu_batch(move |columns, outputs| {
        let values = with_default_state(|| meaning(columns));
        outputs.iter_mut().zip(values).for_each(|(output, value)| output.copy_from_slice(&value));
    })
}

/// The program of this text, with the workgroup size for `SIZE` and the elements of [`tile`] for `TILE`.
fn text(text: impl Into<String>) -> impl Fn([u32; 3]) -> Program + Send + Sync + 'static {
    let text = text.into();
    move |[size, ..]| parse(&text.replace("TILE", &tile(size).to_string()).replace("SIZE", &size.to_string()))
}

fn parse(text: &str) -> Program {
    vyre_foundation::text::parse("spec", text).unwrap_or_else(|report| panic!("{report}"))
}

/// Elements of workgroup memory in programs for workgroups of this size: more than there are invocations, and no multiple of a vector.
fn tile(size: u32) -> u32 {
    (size + size / 2) | 1
}

/// A launch of this grid, with these lengths of outputs.
fn launch(grid: [u32; 3], counts: &[(&str, usize)]) -> DispatchConfig {
    DispatchConfig {
        grid_override: Some(grid.map(|groups| groups.max(1))),
        output_counts: counts.iter().map(|(name, count)| ((*name).to_string(), *count as u32)).collect(),
        ..DispatchConfig::default()
    }
}

/// What loads of an element type give, as the type of a buffer that holds such values.
fn loaded(ty: &DataType) -> DataType {
    match ty.value_type() {
        Some(ValueType::Scalar(scalar)) => scalar.into(),
        Some(ValueType::Vector(..)) | None => ty.clone(),
    }
}

/// Bytes of so many elements; half bytes are rounded up.
fn bytes_of(ty: &DataType, elements: usize) -> usize {
    (ty.bits().unwrap_or_default() as usize * elements).div_ceil(8)
}

/// Elements in so many bytes.
fn elements_in(ty: &DataType, bytes: &[u8]) -> usize {
    bytes.len() * 8 / (ty.bits().unwrap_or(8) as usize)
}
