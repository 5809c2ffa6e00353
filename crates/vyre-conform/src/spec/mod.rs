//! What an op is to the suite: a program for the device, the same computation in plain Rust, and what a case of it looks like.
//!
//! The three opinions about a case are the device's, the reference's (which runs the same program) and that of
//! [`cpu_fn`](OpSpecBuilder::cpu_fn), which shares no code with either.
//!
//! A *case* is the smallest thing that has an expected result: an element, a workgroup, or a whole dispatch ([`Shape`]). Cases of the
//! first two kinds are put side by side, thousands to a dispatch; a buffer then holds the elements of one case after those of the other.
//! The bytes of a case are its elements of each input, one input after the other; those of its result are its elements of each output.

mod build;
mod comparator;
mod shape;

pub use build::{OpSpecBuilder, SpecError};
pub use comparator::{Agree, Comparator};
pub use shape::{Columns, Extent, Shape, Trap, frame, frames};

use std::fmt;
use std::sync::Arc;
use vyre_foundation::ir::{DataType, Program};
use vyre_spec::op::Law;

/// The element types of an op's buffers, in the order of their bindings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpSignature {
    /// What it reads.
    pub inputs: Vec<DataType>,
    /// What it writes.
    pub outputs: Vec<DataType>,
}

/// The program of an op for a workgroup size.
pub type ProgramFn = Arc<dyn Fn([u32; 3]) -> Program + Send + Sync>;

/// The result of one case from its bytes.
pub type CpuFn = Arc<dyn Fn(&[u8]) -> Vec<u8> + Send + Sync>;

/// The results of many cases: writes every output completely. The slices are as long as the cases need.
pub type BatchFn = Arc<dyn Fn(&Columns<'_>, &mut [&mut [u8]]) + Send + Sync>;

/// The trap that a dispatch ends with, if it does.
pub type TrapFn = Arc<dyn Fn(&Columns<'_>) -> Option<Trap> + Send + Sync>;

/// An op under test. [`OpSpec::builder`] makes one.
#[derive(Clone)]
pub struct OpSpec {
    pub(crate) id: String,
    pub(crate) version: u32,
    pub(crate) signature: OpSignature,
    pub(crate) shape: Shape,
    pub(crate) cpu: Option<CpuFn>,
    pub(crate) batch: Option<BatchFn>,
    pub(crate) trap: Option<TrapFn>,
    pub(crate) program: ProgramFn,
    pub(crate) alternatives: Vec<(String, ProgramFn)>,
    pub(crate) comparator: Comparator,
    pub(crate) law: Law,
    pub(crate) boundary: Vec<Vec<Vec<u8>>>,
    pub(crate) workgroup_sizes: Vec<u32>,
    pub(crate) spaces: Vec<Arc<dyn crate::space::Space>>,
}

impl OpSpec {
    /// An op of this name: words with dots between them, and the type behind a colon if there are several: `ops.int.add:u32`.
    pub fn builder(id: impl Into<String>) -> OpSpecBuilder {
        OpSpecBuilder::new(id.into())
    }

    /// Its name.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Which edition of the op this is; evidence about another edition says nothing about it.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.version
    }

    /// What it reads and writes.
    #[must_use]
    pub fn signature(&self) -> &OpSignature {
        &self.signature
    }

    /// What a case is.
    #[must_use]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Its program for this workgroup size.
    #[must_use]
    pub fn program(&self, workgroup: [u32; 3]) -> Program {
        (self.program)(workgroup)
    }

    /// Other programs that must give the same bytes, by name.
    pub fn alternatives(&self) -> impl Iterator<Item = (&str, &ProgramFn)> {
        self.alternatives.iter().map(|(name, program)| (name.as_str(), program))
    }

    /// Its program and the alternatives, by name.
    pub(crate) fn programs(&self) -> impl Iterator<Item = (Option<&str>, &ProgramFn)> {
        std::iter::once((None, &self.program)).chain(self.alternatives().map(|(name, program)| (Some(name), program)))
    }

    /// The workgroup sizes that it is tried at.
    #[must_use]
    pub fn workgroup_sizes(&self) -> &[u32] {
        &self.workgroup_sizes
    }

    /// What holds for it whatever its operands are.
    #[must_use]
    pub fn law(&self) -> Law {
        self.law
    }

    /// By operand: values at which ops go wrong. Empty where the element type's own are meant.
    #[must_use]
    pub fn boundary(&self) -> &[Vec<Vec<u8>>] {
        &self.boundary
    }

    /// Where its cases come from, beside what is derived from the signature.
    #[must_use]
    pub fn spaces(&self) -> &[Arc<dyn crate::space::Space>] {
        &self.spaces
    }

    /// The result of one case in plain Rust, if it is known.
    #[must_use]
    pub fn cpu_fn(&self) -> Option<&CpuFn> {
        self.cpu.as_ref()
    }

    /// The results of many cases in plain Rust, if there is a form for many.
    #[must_use]
    pub fn cpu_batch(&self) -> Option<&BatchFn> {
        self.batch.as_ref()
    }

    /// Which trap a dispatch ends with, if its cases can trap.
    #[must_use]
    pub fn trap_fn(&self) -> Option<&TrapFn> {
        self.trap.as_ref()
    }

    /// When results of a device agree with the expected ones.
    #[must_use]
    pub fn comparator(&self) -> &Comparator {
        &self.comparator
    }

    /// Whether results of cases are known without running the program.
    #[must_use]
    pub fn has_cpu(&self) -> bool {
        self.cpu.is_some() || self.batch.is_some()
    }
}

impl fmt::Debug for OpSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpSpec")
            .field("id", &self.id)
            .field("version", &self.version)
            .field("signature", &self.signature)
            .finish()
    }
}
