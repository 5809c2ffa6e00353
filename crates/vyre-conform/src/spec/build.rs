//! Specs from their parts.

use super::{BatchFn, Columns, Comparator, CpuFn, Extent, OpSignature, OpSpec, ProgramFn, Shape, Trap, TrapFn};
use crate::space::Space;
use std::fmt;
use std::sync::Arc;
use vyre_foundation::config::DispatchConfig;
use vyre_foundation::ir::{DataType, Program};
use vyre_spec::op::Law;

/// Why parts do not make a spec.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SpecError {
    /// The op's name.
    pub op: String,
    /// What is wrong, and what to do.
    pub problem: String,
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the spec of `{}`: {}", self.op, self.problem)
    }
}

impl std::error::Error for SpecError {}

/// The parts of an [`OpSpec`]. What is not said: version 1, every case one element, sizes 1, 37, 64 and 256, all bytes compared.
pub struct OpSpecBuilder {
    id: String,
    version: u32,
    signature: Option<OpSignature>,
    shape: Option<Shape>,
    cpu: Option<CpuFn>,
    batch: Option<BatchFn>,
    trap: Option<TrapFn>,
    program: Option<ProgramFn>,
    alternatives: Vec<(String, ProgramFn)>,
    comparator: Comparator,
    law: Law,
    boundary: Vec<Vec<Vec<u8>>>,
    workgroup_sizes: Vec<u32>,
    spaces: Vec<Arc<dyn Space>>,
}

/// The element types of one output or of several.
pub trait OutputTypes {
    /// As a list.
    fn types(self) -> Vec<DataType>;
}

impl OutputTypes for DataType {
    fn types(self) -> Vec<DataType> {
        vec![self]
    }
}

impl OutputTypes for Vec<DataType> {
    fn types(self) -> Vec<DataType> {
        self
    }
}

impl<const N: usize> OutputTypes for [DataType; N] {
    fn types(self) -> Vec<DataType> {
        self.into()
    }
}

impl OpSpecBuilder {
    pub(super) fn new(id: String) -> OpSpecBuilder {
        OpSpecBuilder {
            id,
            version: 1,
            signature: None,
            shape: None,
            cpu: None,
            batch: None,
            trap: None,
            program: None,
            alternatives: Vec::new(),
            comparator: Comparator::Exact,
            law: Law::None,
            boundary: Vec::new(),
            workgroup_sizes: vec![1, 37, 64, 256],
            spaces: Vec::new(),
        }
    }

    /// Which edition of the op this is.
    #[must_use]
    pub fn version(mut self, version: u32) -> Self {
        self.version = version;
        self
    }

    /// The element types of inputs and of the output, or of several outputs, in the order of bindings.
    #[must_use]
    pub fn signature(mut self, inputs: impl IntoIterator<Item = DataType>, outputs: impl OutputTypes) -> Self {
        self.signature = Some(OpSignature { inputs: inputs.into_iter().collect(), outputs: outputs.types() });
        self
    }

    /// The result of one case in plain Rust.
    #[must_use]
    pub fn cpu_fn(mut self, cpu: impl Fn(&[u8]) -> Vec<u8> + Send + Sync + 'static) -> Self {
        self.cpu = Some(Arc::new(cpu));
        self
    }

    /// The results of many cases in plain Rust, for speed.
    #[must_use]
    pub fn cpu_batch(mut self, batch: impl Fn(&Columns<'_>, &mut [&mut [u8]]) + Send + Sync + 'static) -> Self {
        self.batch = Some(Arc::new(batch));
        self
    }

    /// Which trap a dispatch ends with, if it ends with one: then it has no outputs, and nobody asks what they would be. For ops whose
    /// cases are dispatches.
    #[must_use]
    pub fn trap_fn(mut self, trap: impl Fn(&Columns<'_>) -> Option<Trap> + Send + Sync + 'static) -> Self {
        self.trap = Some(Arc::new(trap));
        self
    }

    /// The program for a workgroup size.
    #[must_use]
    pub fn program(mut self, program: impl Fn([u32; 3]) -> Program + Send + Sync + 'static) -> Self {
        self.program = Some(Arc::new(program));
        self
    }

    /// Another program that must give the same bytes.
    #[must_use]
    pub fn alternative(mut self, name: impl Into<String>, program: impl Fn([u32; 3]) -> Program + Send + Sync + 'static) -> Self {
        self.alternatives.push((name.into(), Arc::new(program)));
        self
    }

    /// When results agree.
    #[must_use]
    pub fn comparator(mut self, comparator: Comparator) -> Self {
        self.comparator = comparator;
        self
    }

    /// What holds for the op whatever its operands are; tried on the device.
    #[must_use]
    pub fn law(mut self, law: Law) -> Self {
        self.law = law;
        self
    }

    /// By operand: values at which it may go wrong, beside those of the element type.
    #[must_use]
    pub fn boundary(mut self, values: Vec<Vec<Vec<u8>>>) -> Self {
        self.boundary = values;
        self
    }

    /// The workgroup sizes that it is tried at.
    #[must_use]
    pub fn workgroup_sizes(mut self, sizes: impl IntoIterator<Item = u32>) -> Self {
        self.workgroup_sizes = sizes.into_iter().collect();
        self
    }

    /// A case takes this much of a dispatch.
    #[must_use]
    pub fn elements(mut self, extent: Extent) -> Self {
        self.shape = Some(Shape::Elements(extent));
        self
    }

    /// A case is what a workgroup works on: the elements of each buffer by the size of the workgroup.
    #[must_use]
    pub fn per_workgroup(mut self, extent: impl Fn(u32) -> Extent + Send + Sync + 'static) -> Self {
        self.shape = Some(Shape::Workgroup(Arc::new(extent)));
        self
    }

    /// A case is a dispatch: its grid and the lengths of its outputs, from the workgroup size and the bytes of its inputs.
    #[must_use]
    pub fn per_dispatch(mut self, launch: impl Fn(u32, &[&[u8]]) -> DispatchConfig + Send + Sync + 'static) -> Self {
        self.shape = Some(Shape::Dispatch(Arc::new(launch)));
        self
    }

    /// More cases than those that the signature gives.
    #[must_use]
    pub fn space(mut self, space: impl Space + 'static) -> Self {
        self.spaces.push(Arc::new(space));
        self
    }

    /// The spec.
    ///
    /// # Errors
    ///
    /// If a part is missing, or its program at one of the sizes is not valid or has other buffers than the signature.
    pub fn build(self) -> Result<OpSpec, SpecError> {
        let error = |problem: String| SpecError { op: self.id.clone(), problem };
        let signature = self.signature.clone().ok_or_else(|| error("it has no signature".into()))?;
        let program = self.program.clone().ok_or_else(|| error("it has no program".into()))?;
        if self.id.is_empty() || self.id.split([':', '.']).any(str::is_empty) {
            return Err(error("a name is words with dots between them, and possibly a type after a colon".into()));
        }
        if self.workgroup_sizes.is_empty() || self.workgroup_sizes.contains(&0) {
            return Err(error(format!("it has the workgroup sizes {:?}; each must be at least 1", self.workgroup_sizes)));
        }
        for size in &self.workgroup_sizes {
            let all = std::iter::once(("", &program)).chain(self.alternatives.iter().map(|(name, it)| (name.as_str(), it)));
            for (name, program) in all {
                check_program(&program([*size, 1, 1]), &signature)
                    .map_err(|problem| error(format!("the program{} for workgroups of {size}: {problem}", behind(name))))?;
            }
        }
        if self.trap.is_some() && !matches!(self.shape, Some(Shape::Dispatch(_))) {
            return Err(error("it can trap, and its cases are not dispatches of their own".into()));
        }
        let element = || Shape::Elements(Extent::element(signature.inputs.len(), signature.outputs.len()));
        let shape = self.shape.unwrap_or_else(element);
        for size in &self.workgroup_sizes {
            let Some(extent) = shape.extent(*size) else { continue };
            if (extent.inputs.len(), extent.outputs.len()) != (signature.inputs.len(), signature.outputs.len()) {
                return Err(SpecError { op: self.id, problem: "a case has elements of other buffers than the signature".into() });
            }
        }
        Ok(OpSpec {
            id: self.id,
            version: self.version,
            signature,
            shape,
            cpu: self.cpu,
            batch: self.batch,
            trap: self.trap,
            program,
            alternatives: self.alternatives,
            comparator: self.comparator,
            law: self.law,
            boundary: self.boundary,
            workgroup_sizes: self.workgroup_sizes,
            spaces: self.spaces,
        })
    }
}

fn behind(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!(" `{name}`") }
}

fn check_program(program: &Program, signature: &OpSignature) -> Result<(), String> {
    let validated = program.validated().map_err(|report| report.to_string())?;
    let (interface, buffers) = (program.interface(), &validated.kernel().buffers);
    let types = |of: &[usize]| -> Vec<DataType> { of.iter().map(|i| buffers[*i].element.clone()).collect() };
    let (inputs, outputs) = (types(&interface.inputs), types(&interface.outputs));
    if (&inputs, &outputs) != (&signature.inputs, &signature.outputs) {
        let list = |types: &[DataType]| types.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        return Err(format!(
            "it reads {} and writes {}, and the signature says {} and {}",
            list(&inputs),
            list(&outputs),
            list(&signature.inputs),
            list(&signature.outputs)
        ));
    }
    Ok(())
}
