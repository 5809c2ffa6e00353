//! Subgroup operations through memory of the workgroup.
//!
//! The sizes of a device's own subgroups differ from device to device, and on some from one dispatch to the next. So every lane writes
//! its operand to memory that all can see, and reads those of its subgroup after a barrier; a second barrier is before the memory is used again.
//! Retired lanes write what the op has for them.

use super::Emitter;
use super::ops::{Class, class};
use crate::error::EmitError;
use vyre_foundation::ir::SubgroupOp;
use vyre_foundation::ssa::Value;
use vyre_spec::{Scalar, ShuffleFrom, SubgroupShape, ValueType, Vote};

impl Emitter<'_> {
    pub fn subgroup_op(
        &mut self,
        op: SubgroupOp,
        ty: Scalar,
        operands: &[Value],
        result: Option<Value>,
    ) -> Result<(), EmitError> {
        let lanes = self.subgroup();
        let class = class(ty)?;
        let is_wide = matches!(class, Class::Pair { .. });
        self.exchanges[usize::from(is_wide)] = true;
        let memory = if is_wide { "vyk_lanes64" } else { "vyk_lanes" };
        let literal = |bits: u64| super::literal(ValueType::Scalar(if ty == Scalar::Bool { Scalar::U32 } else { ty }), bits);
        let own = self.value(operands[0]);
        let bits = if class == Class::Bool { format!("select(0u, 1u, {own})") } else { own.clone() };
        let absent = match op.shape() {
            SubgroupShape::Vote(Vote::All) => literal(1),
            SubgroupShape::Vote(Vote::Any | Vote::Ballot) | SubgroupShape::Shuffle(_) => literal(0),
            SubgroupShape::Reduce(with) | SubgroupShape::Inclusive(with) | SubgroupShape::Exclusive(with) => {
                literal(vyre_scalar::identity(with, ty))
            }
        };
        let written = if self.control.flagged { format!("select({absent}, {bits}, vyk_alive)") } else { bits };
        self.line(format!("{memory}[vyk_local] = {written};"));
        self.line("workgroupBarrier();");
        let first = format!("(vyk_local - vyk_local % {lanes}u)");
        let lane = format!("(vyk_local % {lanes}u)");
        let exchanged = self.fresh("exchanged");
        let over = |emitter: &mut Self, start: &str, end: &str, step: String| {
            emitter.line(format!("var {exchanged} = {start};"));
            emitter.open(format!("for (var vyk_lane = 0u; vyk_lane < {end}; vyk_lane = vyk_lane + 1u) {{"));
            emitter.line(step);
            emitter.close();
        };
        let theirs = format!("{memory}[{first} + vyk_lane]");
        let expression = match op.shape() {
            SubgroupShape::Vote(vote) => {
                over(self, "0u", &format!("{lanes}u"), format!("{exchanged} = {exchanged} | ({theirs} << vyk_lane);"));
                match vote {
                    Vote::Ballot => exchanged.clone(),
                    Vote::Any => format!("{exchanged} != 0u"),
                    Vote::All => format!("{exchanged} == {:#x}u", u32::MAX >> (32 - lanes)),
                }
            }
            SubgroupShape::Shuffle(from) => {
                let operand = self.value(operands[1]);
                let (source, is_there) = match from {
                    ShuffleFrom::Named => (operand.clone(), format!("{operand} < {lanes}u")),
                    ShuffleFrom::Xor => (format!("({lane} ^ {operand})"), format!("({lane} ^ {operand}) < {lanes}u")),
                    ShuffleFrom::Up => (format!("({lane} - {operand})"), format!("{operand} <= {lane}")),
                    ShuffleFrom::Down => (format!("({lane} + {operand})"), format!("{operand} < {lanes}u - {lane}")),
                };
                // A lane that is not there is read as another, and not used.
                let theirs = format!("{memory}[{first} + ({source} % {lanes}u)]");
                self.line(format!("let {exchanged} = {theirs};"));
                match class {
                    Class::Bool => format!("select({own}, {exchanged} != 0u, {is_there})"),
                    Class::Word { .. } | Class::Pair { .. } | Class::F32 => {
                        format!("select({own}, {exchanged}, {is_there})")
                    }
                }
            }
            SubgroupShape::Reduce(with) | SubgroupShape::Inclusive(with) | SubgroupShape::Exclusive(with) => {
                let end = match op.shape() {
                    SubgroupShape::Inclusive(_) => format!("{lane} + 1u"),
                    SubgroupShape::Exclusive(_) => lane.clone(),
                    SubgroupShape::Reduce(_) | SubgroupShape::Vote(_) | SubgroupShape::Shuffle(_) => format!("{lanes}u"),
                };
                let sum = self.binary(with.binary(), ty, &exchanged, &theirs, None)?;
                over(self, &absent, &end, format!("{exchanged} = {sum};"));
                exchanged.clone()
            }
        };
        if let Some(result) = result {
            self.define(result, &expression);
        }
        self.line("workgroupBarrier();");
        Ok(())
    }
}
