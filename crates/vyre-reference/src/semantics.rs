//! The points at which the interpreter asks what something means.
//!
//! There is one right answer to each, and it is the default. `faults.rs` gives others, to see whether a judge notices.

use crate::subgroup::{self, Lane};
use vyre_foundation::ir::{AtomicOp, BinaryOp, Builtin, DataType, FloatMode, Scalar, SubgroupOp, TernaryOp, UnaryOp};
use vyre_scalar::Value;

/// When workgroup memory becomes zero.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    GroupStarts,
    GridSync,
}

pub(crate) trait Semantics {
    #[inline(always)]
    fn unary(&self, op: UnaryOp, ty: Scalar, mode: FloatMode, a: u64) -> u64 {
        vyre_scalar::unary(op, ty, mode, a)
    }

    #[inline(always)]
    fn binary(&self, op: BinaryOp, ty: Scalar, mode: FloatMode, a: u64, b: u64) -> u64 {
        vyre_scalar::binary(op, ty, mode, a, b)
    }

    #[inline(always)]
    fn ternary(&self, op: TernaryOp, ty: Scalar, mode: FloatMode, [a, b, c]: [u64; 3]) -> u64 {
        vyre_scalar::ternary(op, ty, mode, a, b, c)
    }

    #[inline(always)]
    fn cast(&self, from: Scalar, to: Scalar, mode: FloatMode, a: u64) -> u64 {
        vyre_scalar::cast(from, to, mode, a)
    }

    #[inline(always)]
    fn bitcast(&self, from: Scalar, to: Scalar, mode: FloatMode, a: u64) -> u64 {
        vyre_scalar::bitcast(from, to, mode, a)
    }

    #[inline(always)]
    fn load_bytes(&self, ty: &DataType, mode: FloatMode, bytes: &[u8], index: u32) -> Value {
        vyre_scalar::memory::load(ty, mode, bytes, index)
    }

    #[inline(always)]
    fn store_bytes(&self, ty: &DataType, mode: FloatMode, bytes: &mut [u8], index: u32, value: Value) {
        vyre_scalar::memory::store(ty, mode, bytes, index, value);
    }

    /// The element that an index names in a buffer of this length, if there is one.
    #[inline(always)]
    fn element(&self, index: u32, length: u32) -> Option<u32> {
        (index < length).then_some(index)
    }

    #[inline(always)]
    fn length(&self, length: u32) -> u32 {
        length
    }

    #[inline(always)]
    fn builtin(&self, builtin: Builtin) -> Builtin {
        builtin
    }

    #[inline(always)]
    fn component(&self, component: u8) -> u8 {
        component
    }

    /// What an atomic leaves in memory, if it changes it.
    #[inline(always)]
    fn change(&self, op: AtomicOp, ty: Scalar, old: u64, operands: &[u64]) -> Option<u64> {
        vyre_scalar::atomic(op, ty, old, operands)
    }

    /// What an atomic gives.
    #[inline(always)]
    fn atomic_result(&self, old: u64, _new: Option<u64>) -> u64 {
        old
    }

    #[inline(always)]
    fn subgroup(&self, op: SubgroupOp, ty: Scalar, mode: FloatMode, lanes: &[Lane], own: usize) -> u64 {
        subgroup::result(op, ty, mode, lanes, own)
    }

    /// One past the last value of a counter.
    #[inline(always)]
    fn loop_end(&self, _from: u32, to: u32) -> u32 {
        to
    }

    /// Whether `continue` goes on with the next round.
    #[inline(always)]
    fn continues(&self) -> bool {
        true
    }

    #[inline(always)]
    fn waits_at_barriers(&self) -> bool {
        true
    }

    #[inline(always)]
    fn clears_memory(&self, _when: Moment) -> bool {
        true
    }

    /// Whether the n-th of so many workgroups runs.
    #[inline(always)]
    fn runs_group(&self, _n: u32, _of: u32) -> bool {
        true
    }

    /// Whether a trap of the first invocation is reported rather than one of the second.
    #[inline(always)]
    fn reports_before(&self, a: [u32; 3], b: [u32; 3]) -> bool {
        [a[2], a[1], a[0]] < [b[2], b[1], b[0]]
    }
}
