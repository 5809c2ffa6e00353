//! Laws on the device: what holds for an op whatever its operands are, tried on the device's own outputs.
//!
//! Nothing is compared with the reference here, so a device whose float or conversion unit is wrong in both directions alike passes; it is the
//! other way round that counts: a law that breaks is a fault whose evidence needs no second opinion.

use crate::examine::{Dispatch, Target};
use crate::spec::{OpSpec, SpecError};
use std::fmt;
use vyre_driver::{BackendError, VyreBackend};
use vyre_foundation::case::Case;
use vyre_foundation::ir::{BufferDecl, DataType, Expr, Node, Program};
use vyre_spec::op::Law;
use vyre_worker::{Failure, Outputs, caught};

/// What became of a law.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LawOutcome {
    /// It held for so many cases.
    Held(usize),
    /// The op has no law that is about its operands.
    NoLaw,
    /// The backend does not have the op.
    Unsupported(String),
    /// It does not hold.
    Broken(LawFailure),
}

/// A case for which a law does not hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LawFailure {
    /// The op.
    pub op: String,
    /// The law.
    pub law: Law,
    /// The workgroup size.
    pub workgroup: u32,
    /// The first case, by its place in the dispatch.
    pub case: usize,
    /// Its operands.
    pub operands: Vec<Vec<u8>>,
    /// What the law says the result is: that of the operands as they stand, or the operand itself.
    pub expected: Vec<u8>,
    /// What it is.
    pub found: Vec<u8>,
}

impl fmt::Display for LawFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LawFailure { op, law, workgroup, case, operands, expected, found } = self;
        let law = said(*law);
        write!(
            f,
            "{op}, workgroups of {workgroup}, case {case}: {law}, and of {operands:02x?} it is {found:02x?} instead of {expected:02x?}"
        )
    }
}

/// Why a law could not be tried.
#[derive(Clone, PartialEq, Debug)]
pub enum LawError {
    /// The spec cannot be laid out, or its law does not fit its signature.
    Spec(SpecError),
    /// The columns are not those of whole cases.
    Columns(String),
    /// The backend failed.
    Backend(BackendError),
    /// The backend panicked.
    Panicked(String),
    /// The device failed.
    Device(Failure),
}

impl fmt::Display for LawError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LawError::Spec(error) => write!(f, "{error}"),
            LawError::Columns(problem) => f.write_str(problem),
            LawError::Backend(error) => write!(f, "{error}"),
            LawError::Panicked(said) => write!(f, "the backend panicked: {said}"),
            LawError::Device(failure) => write!(f, "{failure}"),
        }
    }
}

impl std::error::Error for LawError {}

/// Tries the law of an op on a backend. `columns` are the bytes of each input for all cases.
///
/// # Errors
///
/// See [`LawError`].
pub fn law(backend: &dyn VyreBackend, spec: &OpSpec, workgroup: u32, columns: &[Vec<u8>]) -> Result<LawOutcome, LawError> {
    let cases = cases(spec, workgroup, columns)?;
    let mut run = |case: &Case| {
        caught(|| backend.dispatch_borrowed(&case.program, &case.input_slices(), &case.config))
            .map_err(LawError::Panicked)?
            .map_err(LawError::Backend)
    };
    match sides(spec, workgroup, columns, cases, &mut run) {
        Ok(Some(sides)) => Ok(sides.compare(spec, workgroup, columns, cases)),
        Ok(None) => Ok(LawOutcome::NoLaw),
        Err(LawError::Backend(error @ BackendError::UnsupportedFeature { .. })) => Ok(LawOutcome::Unsupported(error.message())),
        Err(error) => Err(error),
    }
}

/// A law in words.
pub(crate) fn said(law: Law) -> &'static str {
    match law {
        Law::Commutes => "its operands may be swapped",
        Law::Involution => "twice it gives the operand back",
        Law::Reorders(_) | Law::None => "no law",
    }
}

/// What must be equal by a law: columns of the op's outputs.
pub(crate) struct Sides {
    /// Of the operands as they stand.
    pub expected: Vec<Vec<u8>>,
    /// Of the operands swapped, or after the op was applied twice.
    pub found: Vec<Vec<u8>>,
}

/// Runs both sides of the law of an op on cases side by side; nothing if it has no law about its operands.
pub(crate) fn sides(
    spec: &OpSpec,
    workgroup: u32,
    columns: &[Vec<u8>],
    cases: usize,
    run: &mut dyn FnMut(&Case) -> Result<Outputs, LawError>,
) -> Result<Option<Sides>, LawError> {
    let mut on = On { run, spec, workgroup, columns, cases };
    Ok(match spec.law() {
        Law::Commutes => Some(on.commutes()?),
        Law::Involution => Some(on.involution()?),
        Law::None | Law::Reorders(_) => None,
    })
}

/// How many cases columns have.
fn cases(spec: &OpSpec, workgroup: u32, columns: &[Vec<u8>]) -> Result<usize, LawError> {
    let wrong = |problem: String| LawError::Columns(format!("`{}`: {problem}", spec.id()));
    let Some(extent) = spec.shape().extent(workgroup) else {
        return Err(wrong("each of its cases is a dispatch, and has no columns".into()));
    };
    let types = &spec.signature().inputs;
    if types.len() != columns.len() {
        return Err(wrong(format!("it has {} inputs, and there are {} columns", types.len(), columns.len())));
    }
    let mut all = None;
    for (n, ((ty, elements), column)) in types.iter().zip(&extent.inputs).zip(columns).enumerate() {
        let bytes = (ty.bits().unwrap_or(0) * u64::from(*elements) / 8) as usize;
        if bytes == 0 || !column.len().is_multiple_of(bytes) || all.is_some_and(|all| all != column.len() / bytes) {
            return Err(wrong(format!("column {n} of {} bytes is not one of whole cases, as many as the others", column.len())));
        }
        all = Some(column.len() / bytes);
    }
    all.filter(|cases| *cases > 0).ok_or_else(|| wrong("there are no cases".into()))
}

struct On<'a> {
    run: &'a mut dyn FnMut(&Case) -> Result<Outputs, LawError>,
    spec: &'a OpSpec,
    workgroup: u32,
    columns: &'a [Vec<u8>],
    cases: usize,
}

impl On<'_> {
    fn commutes(&mut self) -> Result<Sides, LawError> {
        if !matches!(&self.spec.signature().inputs[..], [first, second, ..] if first == second) {
            return Err(self.misfit("its law is that operands may be swapped, and its first two are of different types"));
        }
        let program = self.spec.program([self.workgroup, 1, 1]);
        let expected = self.run(&program, self.columns.to_vec())?;
        let mut swapped = self.columns.to_vec();
        swapped.swap(0, 1);
        let found = self.run(&program, swapped)?;
        Ok(Sides { expected, found })
    }

    fn involution(&mut self) -> Result<Sides, LawError> {
        let signature = self.spec.signature();
        let (1, 1, Some(ty)) = (signature.inputs.len(), signature.outputs.len(), signature.inputs.first()) else {
            return Err(self.misfit("its law is that it undoes itself, and it has more operands or results than one"));
        };
        if signature.outputs.first() != Some(ty) {
            return Err(self.misfit("its law is that it undoes itself, and its result is of another type"));
        }
        let program = self.spec.program([self.workgroup, 1, 1]);
        let once = self.run(&program, self.columns.to_vec())?;
        let twice = self.run(&program, once)?;
        // What the operand is after it was loaded and stored: a NaN has lost its payload.
        let same = identity(ty, self.workgroup).with_floats(program.parts().floats);
        let expected = self.run(&same, self.columns.to_vec())?;
        Ok(Sides { expected, found: twice })
    }

    fn misfit(&self, problem: &str) -> LawError {
        LawError::Spec(SpecError { op: self.spec.id().into(), problem: problem.into() })
    }

    fn run(&mut self, program: &Program, columns: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, LawError> {
        let target = Target::new(self.spec, program, self.workgroup).map_err(LawError::Spec)?;
        let case = target.case(&Dispatch { cases: self.cases, columns }).map_err(LawError::Columns)?;
        let outputs = (self.run)(&case)?;
        let whole = |output: &Vec<u8>| output.len().is_multiple_of(self.cases);
        match outputs.len() == self.spec.signature().outputs.len() && outputs.iter().all(whole) {
            true => Ok(outputs),
            false => Err(LawError::Backend(BackendError::new("the outputs are not those of the program"))),
        }
    }
}

impl Sides {
    fn compare(&self, spec: &OpSpec, workgroup: u32, columns: &[Vec<u8>], cases: usize) -> LawOutcome {
        let part = |columns: &[Vec<u8>], case: usize| -> Vec<Vec<u8>> {
            let of = |column: &Vec<u8>| column.chunks(column.len() / cases).nth(case).map_or_else(Vec::new, <[u8]>::to_vec);
            columns.iter().map(of).collect()
        };
        match (0..cases).find(|case| part(&self.expected, *case) != part(&self.found, *case)) {
            None => LawOutcome::Held(cases),
            Some(case) => LawOutcome::Broken(LawFailure {
                op: spec.id().into(),
                law: spec.law(),
                workgroup,
                case,
                operands: part(columns, case),
                expected: part(&self.expected, case).concat(),
                found: part(&self.found, case).concat(),
            }),
        }
    }
}

/// Loads and stores.
fn identity(ty: &DataType, workgroup: u32) -> Program {
    let i = || Expr::var("i");
    Program::wrapped(
        vec![BufferDecl::read("a", 0, ty.clone()), BufferDecl::output("out", 1, ty.clone())],
        [workgroup, 1, 1],
        vec![
            Node::let_bind("i", Expr::gid_x()),
            Node::if_then(Expr::lt(i(), Expr::buf_len("out")), vec![Node::store("out", i(), Expr::load("a", i()))]),
        ],
    )
}
