//! What is known of a launch, and which values can be worked out from it.

use super::sums::Atom;
use crate::ir::{BinaryOp, Builtin, Scalar};
use crate::kernel::BufferId;
use crate::ssa::{Def, InstKind, Leaf, Op, Ssa, Value};

/// Values that are computed at the launch for one atom of a condition, at most.
const MAX_WORK: u32 = 128;

/// What is known of a launch.
pub(crate) struct Known<'a> {
    pub ssa: &'a Ssa,
    pub workgroup_size: [u32; 3],
    pub grid: [u32; 3],
    /// By buffer; empty if nothing is known.
    pub lengths: &'a [u32],
    /// The bytes of inputs.
    pub inputs: Vec<(BufferId, &'a [u8])>,
}

impl Known<'_> {
    pub(super) fn atom(&self, atom: Atom) -> Option<u32> {
        match atom {
            Atom::Value(value) => self.value(value).map(|bits| bits as u32),
            Atom::Count(builtin) => self.builtin(builtin),
            Atom::Most(value) => self.most(value),
        }
    }

    /// The largest that a value can be in any invocation.
    fn most(&self, value: Value) -> Option<u32> {
        if let Some(Leaf::Builtin { builtin: id }) = self.ssa.leaf(value)
            && let Some(count) = count_of(id)
        {
            return self.builtin(count)?.checked_sub(1);
        }
        match self.ssa.op(value) {
            Some(Op::Binary { op: BinaryOp::Div, ty: Scalar::U32, left, right }) => {
                let by = self.value(*right)? as u32;
                Some(self.most(*left)?.checked_div(by).unwrap_or(u32::MAX))
            }
            Some(Op::Binary { op: BinaryOp::Shr, ty: Scalar::U32, left, right }) => {
                Some(self.most(*left)? >> (self.value(*right)? as u32 % 32))
            }
            Some(Op::Binary { op: BinaryOp::Rem, ty: Scalar::U32, left, right }) => {
                Some(self.most(*left)?.min((self.value(*right)? as u32).saturating_sub(1)))
            }
            Some(Op::Binary { op: BinaryOp::Add, ty: Scalar::U32, left, right }) => {
                self.most(*left)?.checked_add(self.most(*right)?)
            }
            Some(Op::Binary { op: BinaryOp::Mul, ty: Scalar::U32, left, right }) => {
                self.most(*left)?.checked_mul(self.most(*right)?)
            }
            _ => self.value(value).map(|bits| bits as u32),
        }
    }

    pub(super) fn builtin(&self, builtin: Builtin) -> Option<u32> {
        let Known { workgroup_size: size, grid, .. } = self;
        match builtin {
            Builtin::InvocationCount(axis) => grid[axis as usize].checked_mul(size[axis as usize]),
            Builtin::WorkgroupCount(axis) => Some(grid[axis as usize]),
            Builtin::LocalCount(axis) => Some(size[axis as usize]),
            Builtin::SubgroupSize => self.ssa.kernel.subgroup,
            Builtin::Invocation(_) | Builtin::Workgroup(_) | Builtin::Local(_) | Builtin::SubgroupLane => None,
        }
    }

    pub(super) fn value(&self, value: Value) -> Option<u64> {
        let mode = self.ssa.kernel.floats;
        match self.ssa.value(value).def {
            Def::Leaf(Leaf::Lit { bits }) => Some(bits),
            Def::Leaf(Leaf::Builtin { builtin }) => self.builtin(builtin).map(u64::from),
            Def::Leaf(Leaf::Len { buffer }) => self.lengths.get(buffer.index()).copied().map(u64::from),
            Def::Argument(..) => None,
            Def::Result(inst, _) => match &self.ssa.inst(inst).kind {
                InstKind::Load { buffer, index, .. } => {
                    let (index, length) = (self.value(*index)? as u32, *self.lengths.get(buffer.index())?);
                    let (_, bytes) = self.inputs.iter().find(|(input, _)| input == buffer)?;
                    let element = &self.ssa.kernel.buffer(*buffer).element;
                    if index >= length {
                        return Some(0);
                    }
                    // What is resident on a device is not here to be looked at.
                    let needed = vyre_scalar::memory::byte_length(element, u64::from(length))?;
                    (bytes.len() as u64 >= needed).then(|| vyre_scalar::memory::load(element, mode, bytes, index).scalar())
                }
                InstKind::Op(op) => match *op {
                    Op::Unary { op, ty, operand } => Some(vyre_scalar::unary(op, ty, mode, self.value(operand)?)),
                    Op::Binary { op, ty, left, right } => {
                        Some(vyre_scalar::binary(op, ty, mode, self.value(left)?, self.value(right)?))
                    }
                    Op::Ternary { op, ty, operands: [a, b, c] } => {
                        Some(vyre_scalar::ternary(op, ty, mode, self.value(a)?, self.value(b)?, self.value(c)?))
                    }
                    Op::Cast { from, to, value } => Some(vyre_scalar::cast(from, to, mode, self.value(value)?)),
                    Op::Bitcast { from, to, value } => Some(vyre_scalar::bitcast(from, to, mode, self.value(value)?)),
                    Op::Vector { .. } | Op::Extract { .. } => None,
                },
                InstKind::Store { .. }
                | InstKind::Atomic { .. }
                | InstKind::Subgroup { .. }
                | InstKind::If { .. }
                | InstKind::Loop { .. }
                | InstKind::Barrier
                | InstKind::GridSync => None,
            },
        }
    }
}

/// Whether a value can be computed from lengths, counts and inputs that nobody writes, with little work: it is computed anew for
/// every use.
pub(super) fn is_known_at_launch(ssa: &Ssa, value: Value) -> bool {
    is_known_within(ssa, value, &mut MAX_WORK.clone())
}

fn is_known_within(ssa: &Ssa, value: Value, work: &mut u32) -> bool {
    *work = work.saturating_sub(1);
    if *work == 0 {
        return false;
    }
    match ssa.value(value).def {
        Def::Leaf(Leaf::Lit { .. } | Leaf::Len { .. }) => true,
        Def::Leaf(Leaf::Builtin { builtin }) => is_count(builtin),
        Def::Argument(..) => false,
        Def::Result(inst, _) => match &ssa.inst(inst).kind {
            InstKind::Op(Op::Vector { .. } | Op::Extract { .. }) => false,
            InstKind::Op(op) => op.operands().iter().all(|operand| is_known_within(ssa, *operand, work)),
            InstKind::Load { buffer, index, .. } => {
                let buffer = ssa.kernel.buffer(*buffer);
                !buffer.access.is_writable() && buffer.value.scalar().is_some() && is_known_within(ssa, *index, work)
            }
            InstKind::Store { .. }
            | InstKind::Atomic { .. }
            | InstKind::Subgroup { .. }
            | InstKind::If { .. }
            | InstKind::Loop { .. }
            | InstKind::Barrier
            | InstKind::GridSync => false,
        },
    }
}

/// Whether the largest that a value can be is known at the launch: it grows with ids, and nothing else is in it that is not known.
pub(super) fn has_known_most(ssa: &Ssa, value: Value) -> bool {
    has_most_within(ssa, value, &mut MAX_WORK.clone())
}

fn has_most_within(ssa: &Ssa, value: Value, work: &mut u32) -> bool {
    *work = work.saturating_sub(1);
    if *work == 0 {
        return false;
    }
    if let Some(Leaf::Builtin { builtin }) = ssa.leaf(value) {
        return is_count(builtin) || count_of(builtin).is_some();
    }
    match ssa.op(value) {
        Some(Op::Binary { op: BinaryOp::Div | BinaryOp::Shr | BinaryOp::Rem, ty: Scalar::U32, left, right }) => {
            has_most_within(ssa, *left, work) && is_known_within(ssa, *right, work)
        }
        Some(Op::Binary { op: BinaryOp::Add | BinaryOp::Mul, ty: Scalar::U32, left, right }) => {
            has_most_within(ssa, *left, work) && has_most_within(ssa, *right, work)
        }
        _ => is_known_within(ssa, value, work),
    }
}

/// The count that an id is below.
pub(super) fn count_of(id: Builtin) -> Option<Builtin> {
    match id {
        Builtin::Invocation(axis) => Some(Builtin::InvocationCount(axis)),
        Builtin::Workgroup(axis) => Some(Builtin::WorkgroupCount(axis)),
        Builtin::Local(axis) => Some(Builtin::LocalCount(axis)),
        Builtin::SubgroupLane => Some(Builtin::SubgroupSize),
        Builtin::InvocationCount(_) | Builtin::WorkgroupCount(_) | Builtin::LocalCount(_) | Builtin::SubgroupSize => None,
    }
}

/// Whether all invocations of a launch read the same.
pub(super) fn is_count(builtin: Builtin) -> bool {
    match builtin {
        Builtin::InvocationCount(_) | Builtin::WorkgroupCount(_) | Builtin::LocalCount(_) | Builtin::SubgroupSize => true,
        Builtin::Invocation(_) | Builtin::Workgroup(_) | Builtin::Local(_) | Builtin::SubgroupLane => false,
    }
}
