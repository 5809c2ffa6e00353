//! How the cases of a dispatch lie in its buffers.

use crate::spec::{Columns, OpSpec, Shape, SpecError, Trap};
use std::collections::BTreeMap;
use vyre_foundation::case::Case;
use vyre_foundation::config::DispatchConfig;
use vyre_foundation::ir::{DataType, Program};
use vyre_worker::{Failure, Outputs};

/// Cases side by side, as the inputs of one dispatch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dispatch {
    pub cases: usize,
    /// The bytes of each input.
    pub columns: Vec<Vec<u8>>,
}

/// Bytes that one case has of each buffer.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    /// Nothing if a case is a dispatch of its own.
    pub inputs: Option<Vec<usize>>,
    pub outputs: Option<Vec<usize>>,
    invocations: u32,
    workgroup: u32,
    /// Names of outputs whose length the launch has to say, and their elements per case.
    counts: Vec<(String, u32)>,
}

/// A program of an op, ready to be run on cases.
pub(crate) struct Target<'a> {
    pub spec: &'a OpSpec,
    pub program: &'a Program,
    pub workgroup: u32,
    pub layout: Layout,
}

impl<'a> Target<'a> {
    /// The program of a spec at a workgroup size.
    pub fn new(spec: &'a OpSpec, program: &'a Program, workgroup: u32) -> Result<Target<'a>, SpecError> {
        let layout = Layout::new(spec, program, workgroup).map_err(|problem| SpecError { op: spec.id.clone(), problem })?;
        Ok(Target { spec, program, workgroup, layout })
    }

    /// The dispatch as everything that runs programs takes it.
    pub fn case(&self, dispatch: &Dispatch) -> Result<Case, String> {
        let config = match &self.spec.shape {
            Shape::Elements(_) | Shape::Workgroup(_) => self.layout.config(dispatch.cases)?,
            Shape::Dispatch(launch) => {
                let inputs: Vec<&[u8]> = dispatch.columns.iter().map(Vec::as_slice).collect();
                vyre_worker::caught(|| launch(self.workgroup, &inputs))
                    .map_err(|said| format!("the launch of it panicked: {said}"))?
            }
        };
        let case = Case { program: self.program.clone(), inputs: dispatch.columns.clone(), config, fuel: 1 << 36 };
        case.plan().map_err(|report| report.to_string())?;
        Ok(case)
    }

    /// The trap that a dispatch has to end with.
    ///
    /// # Errors
    ///
    /// What the spec's function panicked with.
    pub fn trap(&self, dispatch: &Dispatch) -> Result<Option<Failure>, String> {
        let Some(trap) = &self.spec.trap else { return Ok(None) };
        let inputs: Vec<&[u8]> = dispatch.columns.iter().map(Vec::as_slice).collect();
        let columns = Columns { cases: dispatch.cases, workgroup: self.workgroup, inputs: &inputs };
        let trap = vyre_worker::caught(|| trap(&columns)).map_err(|said| format!("trap_fn panicked: {said}"))?;
        Ok(trap.map(|Trap { tag, invocation }| Failure::Trap { tag, invocation }))
    }
}

impl Layout {
    fn new(spec: &OpSpec, program: &Program, workgroup: u32) -> Result<Layout, String> {
        let Some(extent) = spec.shape.extent(workgroup) else {
            return Ok(Layout { inputs: None, outputs: None, invocations: 0, workgroup, counts: Vec::new() });
        };
        let bytes = |types: &[DataType], elements: &[u32]| -> Result<Vec<usize>, String> {
            let one = |(ty, count): (&DataType, &u32)| {
                let bits = ty.bits().unwrap_or(0) * u64::from(*count);
                if bits == 0 || bits % 8 != 0 {
                    return Err(format!("{count} elements of {ty} are not whole bytes; give a case more of them"));
                }
                Ok((bits / 8) as usize)
            };
            types.iter().zip(elements).map(one).collect()
        };
        let (inputs, outputs) =
            (bytes(&spec.signature.inputs, &extent.inputs)?, bytes(&spec.signature.outputs, &extent.outputs)?);
        let kernel = program.validated().map_err(ToString::to_string)?.kernel();
        let given = |i: &usize| kernel.buffers[*i].access.is_input() || kernel.buffers[*i].count.is_some();
        let counts = (program.interface().outputs.iter().zip(&extent.outputs))
            .filter(|(i, _)| !given(i))
            .map(|(i, count)| (kernel.buffers[*i].name.as_str().to_string(), *count))
            .collect();
        Ok(Layout { inputs: Some(inputs), outputs: Some(outputs), invocations: extent.invocations, workgroup, counts })
    }

    /// Bytes that a case has of all inputs together; `None` if that differs from case to case.
    pub fn case_bytes(&self) -> Option<usize> {
        self.inputs.as_ref().map(|inputs| inputs.iter().sum())
    }

    /// Cases that a dispatch of so many workgroups along x can have.
    pub fn most_cases(&self, groups: u64) -> usize {
        let invocations = groups.max(1) * u64::from(self.workgroup);
        usize::try_from(invocations / u64::from(self.invocations.max(1))).unwrap_or(usize::MAX).max(1)
    }

    fn config(&self, cases: usize) -> Result<DispatchConfig, String> {
        let invocations = cases as u64 * u64::from(self.invocations);
        let groups =
            u32::try_from(invocations.div_ceil(u64::from(self.workgroup))).map_err(|_| "too many invocations".to_string())?;
        let count = |(name, each): &(String, u32)| {
            let count = u32::try_from(cases as u64 * u64::from(*each)).map_err(|_| "too many elements".to_string())?;
            Ok((name.clone(), count))
        };
        let output_counts = self.counts.iter().map(count).collect::<Result<BTreeMap<_, _>, String>>()?;
        Ok(DispatchConfig { grid_override: Some([groups, 1, 1]), output_counts, ..DispatchConfig::default() })
    }

    /// The same cases in another order: rotated, so that the one of number `by` comes first.
    pub fn rotated(&self, case: &Case, cases: usize, by: usize) -> Case {
        let mut case = case.clone();
        if let (Some(_), true) = (&self.inputs, by > 0) {
            for column in &mut case.inputs {
                let bytes = column.len() / cases * by;
                column.rotate_left(bytes);
            }
        }
        case
    }

    /// Outputs of rotated cases in the order of the cases.
    pub fn unrotated(&self, mut outputs: Outputs, cases: usize, by: usize) -> Outputs {
        if let (Some(_), true) = (&self.outputs, by > 0) {
            for column in &mut outputs {
                let bytes = column.len() / cases * by;
                column.rotate_right(bytes);
            }
        }
        outputs
    }

    /// The cases of a dispatch in two dispatches.
    pub fn halves(&self, mut dispatch: Dispatch) -> [Dispatch; 2] {
        let left = dispatch.cases / 2;
        let cut = |column: &mut Vec<u8>| column.split_off(column.len() / dispatch.cases * left);
        let columns = dispatch.columns.iter_mut().map(cut).collect();
        let right = Dispatch { cases: dispatch.cases - left, columns };
        dispatch.cases = left;
        [dispatch, right]
    }

    /// The bytes of one case: its part of each column.
    pub fn case_of(&self, dispatch: &Dispatch, case: usize) -> Vec<u8> {
        match &self.inputs {
            Some(sizes) => part(&dispatch.columns, sizes, case),
            None => crate::spec::frame(&dispatch.columns),
        }
    }
}

/// What one case has of each column.
pub(super) fn part(columns: &[Vec<u8>], sizes: &[usize], case: usize) -> Vec<u8> {
    columns.iter().zip(sizes).flat_map(|(column, size)| &column[case * size..][..*size]).copied().collect()
}
