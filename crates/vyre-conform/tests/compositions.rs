//! The specs of compositions: their programs, run by the plain reference, give what plain Rust gives; and so does the batch form.

use std::collections::BTreeSet;
use vyre_conform::spec::{frame, frames};
use vyre_conform::suite::compositions;
use vyre_conform::{Columns, Draw, OpSpec, Shape};
use vyre_foundation::config::DispatchConfig;
use vyre_reference::{Options, run};

const SEED: u64 = 0x5EED;

/// Cases of each op, workgroup size and space that are run. Records are cheap.
fn cases_of(shape: &Shape) -> u64 {
    match shape {
        Shape::Elements(_) => 70,
        Shape::Workgroup(_) => 4,
        Shape::Dispatch(_) => 8,
    }
}

#[test]
fn there_are_specs_of_all() {
    let ids: Vec<String> = compositions().iter().map(|spec| spec.id().to_string()).collect();
    let unique: BTreeSet<&String> = ids.iter().collect();
    assert_eq!(unique.len(), ids.len(), "{ids:?}");
    let families: BTreeSet<&str> = ids.iter().filter_map(|id| id.split([':', '.']).nth(1)).collect();
    assert!(families.len() >= 22 && ids.len() >= 40, "{} specs of {families:?}", ids.len());
    assert!(ids.iter().all(|id| id.starts_with("compose.")), "{ids:?}");
    for spec in compositions() {
        assert!(spec.cpu_fn().is_some() && !spec.spaces().is_empty(), "{}", spec.id());
    }
}

/// The inputs of cases of a space: side by side, or of one dispatch.
fn draw(spec: &OpSpec, space: usize, workgroup: u32, cases: std::ops::Range<u64>) -> Vec<Vec<u8>> {
    let mut columns = vec![Vec::new(); spec.signature().inputs.len()];
    spec.spaces()[space].fill(Draw { seed: SEED, workgroup }, cases, &mut columns);
    columns
}

fn reference(spec: &OpSpec, workgroup: u32, inputs: &[&[u8]], config: &DispatchConfig) -> Vec<Vec<u8>> {
    let options = Options { launch: config.launch(), ..Options::default() };
    run(&spec.program([workgroup, 1, 1]), inputs, &options).unwrap_or_else(|error| panic!("{}: {error}", spec.id()))
}

/// The dispatch of cases side by side.
fn beside(spec: &OpSpec, workgroup: u32, cases: u64) -> DispatchConfig {
    let extent = spec.shape().extent(workgroup).expect("it is not a dispatch of its own");
    let invocations = cases * u64::from(extent.invocations);
    let program = spec.program([workgroup, 1, 1]);
    let interface = program.interface();
    let names = interface.outputs.iter().map(|buffer| program.buffers()[*buffer].name.to_string());
    DispatchConfig {
        grid_override: Some([invocations.div_ceil(u64::from(workgroup)) as u32, 1, 1]),
        output_counts: names.zip(&extent.outputs).map(|(name, count)| (name, count * cases as u32)).collect(),
        ..DispatchConfig::default()
    }
}

fn side_by_side(spec: &OpSpec, workgroup: u32) {
    let cases = cases_of(spec.shape());
    let extent = spec.shape().extent(workgroup).expect("it is not a dispatch of its own");
    let bytes = |types: &[vyre_foundation::ir::DataType], counts: &[u32]| -> Vec<usize> {
        let bits = types.iter().map(|element| element.bits().expect("it has a size"));
        bits.zip(counts).map(|(bits, count)| (bits * u64::from(*count) / 8) as usize).collect()
    };
    let (input_bytes, output_bytes) =
        (bytes(&spec.signature().inputs, &extent.inputs), bytes(&spec.signature().outputs, &extent.outputs));
    for space in 0..spec.spaces().len() {
        // From a place that is not the beginning: case n depends on n alone.
        let first = spec.spaces()[space].cases(workgroup) / 3;
        let columns = draw(spec, space, workgroup, first..first + cases);
        let inputs: Vec<&[u8]> = columns.iter().map(Vec::as_slice).collect();
        let found = reference(spec, workgroup, &inputs, &beside(spec, workgroup, cases));
        let mut batch: Vec<Vec<u8>> = output_bytes.iter().map(|length| vec![0xA5; length * cases as usize]).collect();
        let mut slices: Vec<&mut [u8]> = batch.iter_mut().map(Vec::as_mut_slice).collect();
        (spec.cpu_batch().expect("records and rows have it"))(
            &Columns { cases: cases as usize, workgroup, inputs: &inputs },
            &mut slices,
        );
        assert_eq!(batch, found, "{} in workgroups of {workgroup}", spec.id());
        for case in 0..cases as usize {
            let of = |columns: &[Vec<u8>], lengths: &[usize]| -> Vec<u8> {
                columns.iter().zip(lengths).flat_map(|(column, length)| column[case * length..][..*length].to_vec()).collect()
            };
            let alone = draw(spec, space, workgroup, first + case as u64..first + case as u64 + 1);
            assert_eq!(alone.concat(), of(&columns, &input_bytes), "{}: case {case} alone", spec.id());
            let expected = (spec.cpu_fn().expect("all have it"))(&alone.concat());
            assert_eq!(expected, of(&found, &output_bytes), "{} in workgroups of {workgroup}: case {case}", spec.id());
        }
    }
}

fn one_by_one(spec: &OpSpec, workgroup: u32) {
    let Shape::Dispatch(launch) = spec.shape() else { panic!("{} has dispatches of its own", spec.id()) };
    for space in 0..spec.spaces().len() {
        let all = spec.spaces()[space].cases(workgroup);
        for case in 0..cases_of(spec.shape()) {
            // All over the space.
            let case = case * all / cases_of(spec.shape());
            let columns = draw(spec, space, workgroup, case..case + 1);
            let inputs: Vec<&[u8]> = columns.iter().map(Vec::as_slice).collect();
            let found = reference(spec, workgroup, &inputs, &launch(workgroup, &inputs));
            let bytes = frame(&columns);
            assert_eq!(frames(&bytes).expect("it was framed"), inputs);
            assert_eq!(
                (spec.cpu_fn().expect("all have it"))(&bytes),
                found.concat(),
                "{} in workgroups of {workgroup}: case {case}",
                spec.id()
            );
        }
    }
}

#[test]
fn records_and_rows() {
    for spec in compositions().iter().filter(|spec| !matches!(spec.shape(), Shape::Dispatch(_))) {
        spec.workgroup_sizes().iter().for_each(|size| side_by_side(spec, *size));
    }
}

#[test]
fn dispatches() {
    for spec in compositions().iter().filter(|spec| matches!(spec.shape(), Shape::Dispatch(_))) {
        spec.workgroup_sizes().iter().for_each(|size| one_by_one(spec, *size));
    }
}
