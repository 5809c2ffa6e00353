//! Where a fault steps in: the interpreter asks at these points whether something is done in another way than it should be.
//!
//! Everything here does nothing by default. [`Faultless`] is what everybody runs, and with it each question is answered when the code
//! is compiled. A fault takes an expression or a statement *over*, as a whole, so that what is right stands in the interpreter in
//! full, without exceptions.

use crate::invocation::{Invocation, World};
use crate::observe::Observer;
use crate::subgroup::Lane;
use vyre_foundation::kernel::{ExprId, Stmt};
use vyre_scalar::Value;
use vyre_spec::{FloatMode, Scalar, SubgroupOp};

/// When workgroup memory becomes zero.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    GroupStarts,
    GridSync,
}

pub(crate) trait Faults: Sized {
    /// The value of an expression, if a fault takes it over.
    #[inline(always)]
    fn value<O: Observer>(&self, _: ExprId, _: &Invocation, _: &mut World<'_, O, Self>) -> Option<Value> {
        None
    }

    /// Executes a statement, if a fault takes it over; whether it does.
    #[inline(always)]
    fn execute<O: Observer>(&self, _: &Stmt, _: &mut Invocation, _: &mut World<'_, O, Self>) -> bool {
        false
    }

    /// Before a loop decides whether there is another iteration.
    #[inline(always)]
    fn iteration_ends<O: Observer>(&self, _: &mut Invocation, _: &mut World<'_, O, Self>) {}

    /// What a lane gets from a subgroup operation, if a fault takes it over.
    #[inline(always)]
    fn exchange(&self, _: SubgroupOp, _: Scalar, _: FloatMode, _: &[Lane], _own: usize) -> Option<u64> {
        None
    }

    /// Whether workgroup memory stays as it is.
    #[inline(always)]
    fn keeps_memory(&self, _: Moment) -> bool {
        false
    }

    /// Whether the n-th of so many workgroups does not run.
    #[inline(always)]
    fn skips_group(&self, _n: u32, _of: u32) -> bool {
        false
    }

    /// Whether the largest invocation that traps is reported.
    #[inline(always)]
    fn reports_last_trap(&self) -> bool {
        false
    }
}

/// The interpreter as it is.
pub(crate) struct Faultless;

impl Faults for Faultless {}
