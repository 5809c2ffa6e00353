//! The form as text, for people: `vyre emit --to ssa`. Nothing reads it back.
//!
//! Values are written with the name of the variable that held them in the kernel, if there was one, and their number. What an
//! analysis has to say about an access can stand behind it, as a comment.

use super::{Def, Inst, InstKind, Leaf, Op, RegionId, Ssa, Terminator, Value};
use crate::ir::{Expr, Literal};
use crate::kernel::AccessId;
use std::fmt;
use vyre_spec::ValueType;

impl Ssa {
    /// The form with what `note` says behind each access, unless it is empty.
    pub fn with_notes<'a>(&'a self, note: impl Fn(AccessId) -> &'static str + 'a) -> impl fmt::Display + 'a {
        Printer { ssa: self, note: Box::new(note) }
    }
}

impl fmt::Display for Ssa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.with_notes(|_| "").fmt(f)
    }
}

impl fmt::Display for Printer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kernel = &self.ssa.kernel;
        let [x, y, z] = kernel.workgroup_size;
        writeln!(f, "workgroup {x} {y} {z}")?;
        for buffer in &kernel.buffers {
            write!(f, "buffer {}: {} {}", buffer.name, buffer.access, buffer.element)?;
            if let Some(count) = buffer.count {
                write!(f, "[{count}]")?;
            }
            if let Some(binding) = buffer.binding {
                write!(f, " @{binding}")?;
            }
            writeln!(f)?;
        }
        self.region(f, self.ssa.root, 0)
    }
}

impl fmt::Debug for Ssa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

struct Printer<'a> {
    ssa: &'a Ssa,
    note: Box<dyn Fn(AccessId) -> &'static str + 'a>,
}

impl Printer<'_> {
    fn value(&self, value: Value) -> String {
        let info = self.ssa.value(value);
        match info.def {
            Def::Leaf(Leaf::Lit { bits }) => match info.ty {
                ValueType::Scalar(ty) => Expr::Lit(Literal::from_bits(ty, bits)).to_string(),
                ValueType::Vector(..) => format!("{bits:#x}"),
            },
            Def::Leaf(Leaf::Builtin { builtin }) => builtin.to_string(),
            Def::Leaf(Leaf::Len { buffer }) => format!("len({})", self.ssa.kernel.buffer(buffer).name),
            Def::Result(..) | Def::Argument(..) => match info.var {
                Some(var) => format!("%{}.{}", self.ssa.kernel.var(var).name.as_str(), value.0),
                None => format!("%{}", value.0),
            },
        }
    }

    fn list(&self, values: &[Value]) -> String {
        values.iter().map(|value| self.value(*value)).collect::<Vec<_>>().join(", ")
    }

    fn region(&self, f: &mut fmt::Formatter<'_>, id: RegionId, depth: usize) -> fmt::Result {
        let region = self.ssa.region(id);
        let indent = "  ".repeat(depth + 1);
        for inst in &region.insts {
            f.write_str(&indent)?;
            self.inst(f, self.ssa.inst(*inst), depth)?;
        }
        let values = self.list(region.end.values());
        let word = match region.end {
            Terminator::Yield(_) if values.is_empty() => return Ok(()),
            Terminator::Yield(_) => "yield",
            Terminator::Break(_) => "break",
            Terminator::Continue(_) => "continue",
            Terminator::Return => "return",
            Terminator::Trap(tag) => return writeln!(f, "{indent}trap {tag}"),
            Terminator::Unreachable => "unreachable",
        };
        writeln!(f, "{indent}{word}{}{values}", if values.is_empty() { "" } else { " " })
    }

    fn inst(&self, f: &mut fmt::Formatter<'_>, inst: &Inst, depth: usize) -> fmt::Result {
        if !inst.results.is_empty() {
            let typed: Vec<String> =
                inst.results.iter().map(|value| format!("{}: {}", self.value(*value), self.ssa.value(*value).ty)).collect();
            write!(f, "{} = ", typed.join(", "))?;
        }
        let name = |buffer| self.ssa.kernel.buffer(buffer).name.to_string();
        let note = |access| match (self.note)(access) {
            "" => String::new(),
            note => format!("  ; {note}"),
        };
        match &inst.kind {
            InstKind::Op(op) => writeln!(f, "{}", self.op(op)),
            InstKind::Load { access, buffer, index } => {
                writeln!(f, "load #{} {}[{}]{}", access.0, name(*buffer), self.value(*index), note(*access))
            }
            InstKind::Store { access, buffer, index, value } => {
                let (index, value) = (self.value(*index), self.value(*value));
                writeln!(f, "store #{} {}[{index}] = {value}{}", access.0, name(*buffer), note(*access))
            }
            InstKind::Atomic { access, op, buffer, index, operands } => {
                let operands = operands.iter().map(|operand| format!(", {}", self.value(*operand))).collect::<String>();
                let index = self.value(*index);
                writeln!(f, "atomic.{op} #{} {}[{index}]{operands}{}", access.0, name(*buffer), note(*access))
            }
            InstKind::Subgroup { op, operands, .. } => writeln!(f, "subgroup.{op} {}", self.list(operands)),
            InstKind::If { cond, then, otherwise } => {
                writeln!(f, "if {} {{", self.value(*cond))?;
                self.region(f, *then, depth + 1)?;
                let other = self.ssa.region(*otherwise);
                if !other.insts.is_empty() || other.end != Terminator::Yield(Vec::new()) {
                    writeln!(f, "{}}} else {{", "  ".repeat(depth + 1))?;
                    self.region(f, *otherwise, depth + 1)?;
                }
                writeln!(f, "{}}}", "  ".repeat(depth + 1))
            }
            InstKind::Loop { from, to, inits, body } => {
                let args = &self.ssa.region(*body).args;
                write!(f, "loop {} from {} to {}", self.value(args[0]), self.value(*from), self.value(*to))?;
                if !inits.is_empty() {
                    let carried: Vec<String> = args[1..]
                        .iter()
                        .zip(inits)
                        .map(|(arg, init)| format!("{} = {}", self.value(*arg), self.value(*init)))
                        .collect();
                    write!(f, " with {}", carried.join(", "))?;
                }
                writeln!(f, " {{")?;
                self.region(f, *body, depth + 1)?;
                writeln!(f, "{}}}", "  ".repeat(depth + 1))
            }
            InstKind::Barrier => writeln!(f, "barrier"),
            InstKind::GridSync => writeln!(f, "barrier.grid"),
        }
    }

    fn op(&self, op: &Op) -> String {
        let operands = self.list(&op.operands());
        match op {
            Op::Unary { op, .. } => format!("{op} {operands}"),
            Op::Binary { op, .. } => format!("{op} {operands}"),
            Op::Ternary { op, .. } => format!("{op} {operands}"),
            Op::Cast { to, .. } => format!("cast {to} {operands}"),
            Op::Bitcast { to, .. } => format!("bitcast {to} {operands}"),
            Op::Vector { .. } => format!("vector {operands}"),
            Op::Extract { component, .. } => format!("extract {component} {operands}"),
        }
    }
}
