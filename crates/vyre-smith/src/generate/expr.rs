//! Expressions of a wanted type.
//!
//! All ops that give a type stand in one list, made from the op tables, and are equally likely. A uniform expression is made of
//! uniform leaves only.

use super::Generator;
use crate::values;
use std::sync::OnceLock;
use vyre_foundation::ir::{Access, Axis, BinaryOp, Builtin, Expr, Literal, Scalar, TernaryOp, UnaryOp, ValueType};
use vyre_spec::{OpInfo, Operand};

/// A way to make a scalar out of others.
#[derive(Clone, Copy)]
pub(super) enum Production {
    Unary(UnaryOp, Scalar),
    Binary(BinaryOp, Scalar),
    Ternary(TernaryOp, Scalar),
    Cast(Scalar),
    Bitcast(Scalar),
}

/// Every way to make a `scalar`.
pub(super) fn productions(scalar: Scalar) -> &'static [Production] {
    static TABLE: OnceLock<[Vec<Production>; 7]> = OnceLock::new();
    let table = TABLE.get_or_init(|| {
        Scalar::ALL.map(|result| {
            let gives = |info: &'static OpInfo| info.over.iter().filter(move |ty| info.result_type(*ty) == Some(result));
            let mut all: Vec<Production> = Vec::new();
            for op in UnaryOp::ALL {
                all.extend(gives(op.info()).map(|ty| Production::Unary(*op, ty)));
            }
            for op in BinaryOp::ALL {
                all.extend(gives(op.info()).map(|ty| Production::Binary(*op, ty)));
            }
            for op in TernaryOp::ALL {
                all.extend(gives(op.info()).map(|ty| Production::Ternary(*op, ty)));
            }
            for from in Scalar::ALL {
                if !(from.is_float() && result == Scalar::Bool) {
                    all.push(Production::Cast(from));
                }
                if from.bits() == result.bits() && result != Scalar::Bool {
                    all.push(Production::Bitcast(from));
                }
            }
            all
        })
    });
    &table[scalar as usize]
}

/// How many productions the expressions of `tempting.rs` stand for.
const TEMPTING: u32 = 4;

/// Literals that are no index of anything.
const HOSTILE: [u32; 9] =
    [0x3FFF_FFFF, 0x4000_0000, 0x4000_0001, 0x7FFF_FFFF, 0x8000_0000, 0x8000_0001, 0xC000_0000, 0xFFFF_FFFE, 0xFFFF_FFFF];

impl Generator<'_> {
    pub fn any_scalar(&mut self) -> Scalar {
        let scalar = Scalar::ALL[self.dna.below(7) as usize];
        if self.config.has(scalar) { scalar } else { Scalar::U32 }
    }

    pub fn any_type(&mut self) -> ValueType {
        if self.config.vectors && self.dna.chance(8) {
            let part = self.dna.pick(&[Scalar::U32, Scalar::I32, Scalar::F32]);
            if self.config.has(part) {
                return ValueType::Vector(part, self.vector_length(part));
            }
        }
        self.any_scalar().into()
    }

    pub fn value(&mut self, ty: ValueType, depth: u32, uniform: bool) -> Expr {
        match ty {
            ValueType::Scalar(scalar) => self.expr(scalar, depth, uniform),
            ValueType::Vector(part, count) => self.vector(part, count, depth, uniform),
        }
    }

    /// A scalar expression.
    pub fn expr(&mut self, ty: Scalar, depth: u32, uniform: bool) -> Expr {
        if depth == 0 || self.dna.is_empty() || self.dna.chance(22) {
            return self.leaf(ty, depth, uniform);
        }
        let all = productions(ty);
        let depth = depth - 1;
        let Some(production) = all.get(self.dna.below(all.len() as u32 + TEMPTING) as usize).copied() else {
            return self.tempting(ty, depth, uniform).unwrap_or_else(|| self.leaf(ty, depth, uniform));
        };
        let expr = match production {
            Production::Unary(op, over) if self.allows(over, op.info()) => Expr::unary(op, self.expr(over, depth, uniform)),
            Production::Binary(op @ (BinaryOp::Min | BinaryOp::Max), over)
                if over.is_float() && self.allows(over, op.info()) && self.dna.chance(12) =>
            {
                // Zeros that differ in their sign alone: equal, and yet one of them is the smaller.
                let sign = 1 << (over.bits() - 1);
                let zeros = if self.dna.chance(50) { [0, sign] } else { [sign, 0] };
                let [left, right] = zeros.map(|bits| Expr::Lit(Literal::from_bits(over, bits)));
                Expr::binary(op, left, right)
            }
            Production::Binary(op, over) if self.allows(over, op.info()) => {
                // The corners of an op are where both of its operands are.
                let corner = self.dna.chance(10);
                let left = if corner { Expr::Lit(values::extreme(&mut self.dna, over)) } else { self.expr(over, depth, uniform) };
                let right = match op.info().operands[1] {
                    Operand::T if self.dna.chance(if corner { 60 } else { 5 }) => Expr::Lit(values::extreme(&mut self.dna, over)),
                    Operand::T => self.expr(over, depth, uniform),
                    Operand::Fixed(scalar) => self.expr(scalar, depth.min(1), uniform),
                };
                Expr::binary(op, left, right)
            }
            Production::Ternary(op, over) if self.allows(over, op.info()) => {
                let [a, b, c] = [0, 1, 2].map(|n| match op.info().operands[n] {
                    Operand::T => self.expr(over, depth, uniform),
                    Operand::Fixed(scalar) => self.expr(scalar, depth, uniform),
                });
                Expr::ternary(op, a, b, c)
            }
            Production::Cast(from) if self.config.has(from) => Expr::cast(ty, self.expr(from, depth, uniform)),
            Production::Bitcast(from) if self.config.has(from) => Expr::bitcast(ty, self.expr(from, depth, uniform)),
            Production::Unary(..)
            | Production::Binary(..)
            | Production::Ternary(..)
            | Production::Cast(_)
            | Production::Bitcast(_) => return self.leaf(ty, depth, uniform),
        };
        self.remember(ty, uniform, &expr);
        expr
    }

    /// Whether this program has the type and the op.
    pub(super) fn allows(&self, over: Scalar, info: &OpInfo) -> bool {
        self.config.has(over) && self.config.without >> (info.tag & 63) & 1 == 0
    }

    /// Keeps some expressions to be made again, so that programs have common parts.
    fn remember(&mut self, ty: Scalar, uniform: bool, expr: &Expr) {
        if self.reusable.len() < 8 && self.dna.chance(14) && !self.reads_written_memory(expr) {
            self.reusable.push((ty, uniform, expr.clone()));
        }
    }

    fn reads_written_memory(&self, expr: &Expr) -> bool {
        vyre_foundation::ir::Walk::expr(expr).any(|(item, _)| match item {
            vyre_foundation::ir::Item::Expr(Expr::Load(load)) => {
                self.buffers.iter().any(|decl| decl.name == load.buffer && decl.access.is_writable())
            }
            vyre_foundation::ir::Item::Expr(_) | vyre_foundation::ir::Item::Node(_) => false,
        })
    }

    /// A scalar without an op on top: a variable mostly.
    pub(super) fn leaf(&mut self, ty: Scalar, depth: u32, uniform: bool) -> Expr {
        let kind = self.dna.below(16);
        match kind {
            0..=2 => Expr::Lit(values::literal(&mut self.dna, ty)),
            3 | 4 if ty == Scalar::U32 => self.id(uniform),
            5 if ty == Scalar::U32 => {
                let b = self.dna.below(self.buffers.len() as u32) as usize;
                Expr::buf_len(&self.buffers[b].name)
            }
            6..=8 => self.load(ty.into(), depth, uniform).unwrap_or_else(|| self.variable_or_literal(ty, depth, uniform)),
            9 => {
                let fits = |(known, same, _): &&(Scalar, bool, Expr)| *known == ty && (*same || !uniform);
                let count = self.reusable.iter().filter(fits).count() as u32;
                if count == 0 {
                    return self.variable_or_literal(ty, depth, uniform);
                }
                let n = self.dna.below(count) as usize;
                match self.reusable.iter().filter(fits).nth(n) {
                    Some((_, _, expr)) => expr.clone(),
                    None => self.variable_or_literal(ty, depth, uniform),
                }
            }
            10..=12 if self.config.vectors && matches!(ty, Scalar::U32 | Scalar::I32 | Scalar::F32) => {
                let count = self.vector_length(ty);
                let component = self.dna.below(u32::from(count)) as u8;
                Expr::extract(self.vector(ty, count, depth.min(1), uniform), component)
            }
            _ => self.variable_or_literal(ty, depth, uniform),
        }
    }

    fn variable(&mut self, ty: ValueType, uniform: bool) -> Option<Expr> {
        let fits = |var: &&super::Variable| var.ty == ty && (var.uniform || !uniform);
        let count = self.variables.iter().filter(fits).count();
        if count == 0 {
            return None;
        }
        let n = self.dna.below(count as u32) as usize;
        self.variables.iter().filter(fits).nth(n).map(|var| Expr::var(&var.name))
    }

    fn variable_or_literal(&mut self, ty: Scalar, depth: u32, uniform: bool) -> Expr {
        if let Some(var) = self.variable(ty.into(), uniform) {
            return var;
        }
        match ty {
            Scalar::U32 if self.dna.chance(60) => self.id(uniform),
            Scalar::Bool if depth > 0 => {
                let (left, right) = (self.expr(Scalar::U32, depth - 1, uniform), self.expr(Scalar::U32, depth - 1, uniform));
                Expr::lt(left, right)
            }
            Scalar::I32 | Scalar::U64 | Scalar::I64 | Scalar::F32 | Scalar::F64 if self.dna.chance(60) => {
                Expr::cast(ty, self.id(uniform))
            }
            Scalar::Bool | Scalar::U32 | Scalar::I32 | Scalar::U64 | Scalar::I64 | Scalar::F32 | Scalar::F64 => {
                Expr::Lit(values::literal(&mut self.dna, ty))
            }
        }
    }

    /// An id or a count.
    fn id(&mut self, uniform: bool) -> Expr {
        let builtin = Builtin::ALL[self.dna.below(Builtin::ALL.len() as u32) as usize];
        let fits = match builtin {
            Builtin::SubgroupLane => self.subgroup.is_some() && !uniform,
            Builtin::SubgroupSize => self.subgroup.is_some(),
            Builtin::Invocation(_) => !uniform,
            Builtin::InvocationCount(_) => true,
            Builtin::Local(_) => !uniform && !self.config.overridable,
            Builtin::Workgroup(_) | Builtin::WorkgroupCount(_) | Builtin::LocalCount(_) => !self.config.overridable,
        };
        match (fits, uniform) {
            (true, _) => Expr::builtin(builtin),
            (false, true) if self.config.overridable => Expr::builtin(Builtin::InvocationCount(Axis::X)),
            (false, true) => Expr::wid_x(),
            (false, false) => Expr::gid_x(),
        }
    }

    /// How long a vector is: mostly as long as one that a buffer has.
    fn vector_length(&mut self, part: Scalar) -> u8 {
        let stored = self.buffers.iter().find_map(|buffer| match buffer.value {
            ValueType::Vector(same, count) if same == part => Some(count),
            ValueType::Vector(..) | ValueType::Scalar(_) => None,
        });
        match stored {
            Some(count) if self.dna.chance(70) => count,
            Some(_) | None => 2 + self.dna.below(3) as u8,
        }
    }

    fn vector(&mut self, part: Scalar, count: u8, depth: u32, uniform: bool) -> Expr {
        let ty = ValueType::Vector(part, count);
        match self.dna.below(5) {
            1 | 2 => {
                if let Some(var) = self.variable(ty, uniform) {
                    return var;
                }
            }
            3 | 4 => {
                if let Some(load) = self.load(ty, depth, uniform) {
                    return load;
                }
            }
            _ => {}
        }
        let depth = depth.saturating_sub(1).min(1);
        Expr::vector((0..count).map(|_| self.expr(part, depth, uniform)).collect::<Vec<_>>())
    }

    /// A load that the rules of memory allow, if some buffer has the type.
    fn load(&mut self, ty: ValueType, depth: u32, uniform: bool) -> Option<Expr> {
        let constant = |access: Access| matches!(access, Access::Read | Access::Uniform);
        let start = self.dna.below(self.buffers.len() as u32) as usize;
        let count = self.buffers.len();
        let b = (0..count).map(|n| (start + n) % count).find(|b| {
            let buffer = &self.buffers[*b];
            buffer.value == ty && (!uniform || constant(buffer.access))
        })?;
        let index =
            if uniform { self.expr(Scalar::U32, depth.min(1), true) } else { self.load_target(b, depth.saturating_sub(1))? };
        Some(Expr::load(&self.buffers[b].name, index))
    }

    /// A `u32` below `n`, whatever the values are.
    pub fn number_below(&mut self, n: u32) -> Expr {
        let number = self.expr(Scalar::U32, 1, false);
        match n.is_power_of_two() && self.dna.chance(50) {
            true => Expr::bitand(number, Expr::u32(n - 1)),
            false => Expr::rem(number, Expr::u32(n)),
        }
    }

    /// An index into a buffer that anybody may touch anywhere: mostly in bounds.
    pub fn any_index(&mut self, b: usize, depth: u32) -> Expr {
        if self.dna.chance(self.config.hostile) {
            return match self.dna.below(4) {
                0 => Expr::u32(self.dna.pick(&HOSTILE)),
                1 => Expr::buf_len(&self.buffers[b].name),
                2 => Expr::add(self.expr(Scalar::U32, depth.min(1), false), Expr::u32(self.dna.pick(&HOSTILE))),
                _ => Expr::mul(self.id(false), Expr::u32(self.dna.pick(&HOSTILE))),
            };
        }
        match self.dna.below(8) {
            0..=2 => Expr::gid_x(),
            3 => Expr::u32(self.dna.below(9)),
            4 => Expr::rem(self.expr(Scalar::U32, depth.min(2), false), Expr::buf_len(&self.buffers[b].name)),
            5 => {
                let mask = self.dna.pick(&[1, 3, 7, 15]);
                Expr::bitand(self.expr(Scalar::U32, depth.min(2), false), Expr::u32(mask))
            }
            6 => self.id(false),
            _ => self.expr(Scalar::U32, depth.min(2), false),
        }
    }
}
