//! Expressions, each after those below it.

use super::names::Meaning;
use super::{Resolver, Typed};
use crate::diagnostic::{Diagnostic, Fix, Location};
use crate::ir::{Axis, Builtin, Expr, Literal, Name, NodeId, OpId};
use crate::kernel::{AccessKind, ExprId, ExprKind, Few, TypedExpr};
use vyre_spec::{ErrorCode, OpInfo, Scalar, ValueType};

impl Resolver<'_> {
    pub(super) fn expr(&mut self, expr: &Expr) -> Typed {
        let place = self.place();
        if self.poison.has(Location::Tree(place)) {
            let below: Vec<ExprId> = expr.children().map(|child| self.expr(child).id).collect();
            return self.poisoned(&below, None, place);
        }
        match expr {
            Expr::Lit(literal) => Typed { literal: true, ..self.literal(*literal, place) },
            Expr::Var(name) => self.var(name, place),
            Expr::Builtin(builtin) => {
                self.builtin(*builtin, place);
                self.push(ExprKind::Builtin { builtin: *builtin }, Some(Scalar::U32.into()), place)
            }
            Expr::Len(name) => match self.buffer(name, place) {
                Some(buffer) => self.push(ExprKind::Len { buffer }, Some(Scalar::U32.into()), place),
                None => self.push(ExprKind::Lit { bits: 0 }, Some(Scalar::U32.into()), place),
            },
            Expr::Load(load) => {
                let buffer = self.buffer(&load.buffer, place);
                let index = self.index(&load.index);
                match buffer {
                    Some(buffer) => {
                        let ty = self.known_buffers[buffer.index()].then_some(self.kernel.buffer(buffer).value);
                        let access = self.access(AccessKind::Load, buffer, index.id, place);
                        self.push(ExprKind::Load { access, buffer, index: index.id }, ty, place)
                    }
                    None => self.unknown_expr(place),
                }
            }
            Expr::Unary { op, operand } => {
                let operand = self.expr(operand);
                match self.op(OpId::Unary(*op), None, &[operand], place) {
                    Some(t) => {
                        let ty = op.info().result_type(t).map(ValueType::Scalar);
                        self.push(ExprKind::Unary { op: *op, ty: t, operand: operand.id }, ty, place)
                    }
                    None => self.after_bad_operands(op.info(), &[operand], place),
                }
            }
            Expr::Binary { op, left, right } => {
                let left = self.expr(left);
                let right = self.expr(right);
                match self.op(OpId::Binary(*op), None, &[left, right], place) {
                    Some(t) => {
                        let ty = op.info().result_type(t).map(ValueType::Scalar);
                        self.push(ExprKind::Binary { op: *op, ty: t, left: left.id, right: right.id }, ty, place)
                    }
                    None => self.after_bad_operands(op.info(), &[left, right], place),
                }
            }
            Expr::Ternary { op, operands } => {
                let operands = operands.each_ref().map(|operand| self.expr(operand));
                match self.op(OpId::Ternary(*op), None, &operands, place) {
                    Some(t) => {
                        let ty = op.info().result_type(t).map(ValueType::Scalar);
                        let operands = operands.map(|operand| operand.id);
                        self.push(ExprKind::Ternary { op: *op, ty: t, operands }, ty, place)
                    }
                    None => self.after_bad_operands(op.info(), &operands, place),
                }
            }
            Expr::Cast { to, value } => {
                let value = self.expr(value);
                match self.cast(*to, value, place) {
                    Some(from) => self.push(ExprKind::Cast { from, to: *to, value: value.id }, Some((*to).into()), place),
                    None => self.push(ExprKind::Lit { bits: 0 }, Some((*to).into()), place),
                }
            }
            Expr::Bitcast { to, value } => {
                let value = self.expr(value);
                match self.bitcast(*to, value, place) {
                    Some(from) => self.push(ExprKind::Bitcast { from, to: *to, value: value.id }, Some((*to).into()), place),
                    None => self.push(ExprKind::Lit { bits: 0 }, Some((*to).into()), place),
                }
            }
            Expr::Vector { components } => {
                let components: Vec<Typed> = components.iter().map(|component| self.expr(component)).collect();
                let ty = self.vector_type(&components, place);
                match ty {
                    Some(ty) => {
                        let ids: Vec<ExprId> = components.iter().map(|component| component.id).collect();
                        self.push(ExprKind::Vector { components: Few::of(&ids) }, Some(ty), place)
                    }
                    None => self.unknown_expr(place),
                }
            }
            Expr::Extract { vector, component } => {
                let vector = self.expr(vector);
                match vector.ty {
                    Some(ValueType::Vector(scalar, count)) if *component < count => {
                        self.push(ExprKind::Extract { vector: vector.id, component: *component }, Some(scalar.into()), place)
                    }
                    None => self.unknown_expr(place),
                    Some(found) => {
                        const NAMES: [&str; 4] = [".x", ".y", ".z", ".w"];
                        let name = NAMES.get(usize::from(*component)).map_or(format!(".c{component}"), |name| (*name).into());
                        let diagnostic = Diagnostic::new(ErrorCode::E0312, format!("{found} has no component `{name}`"))
                            .at(Location::Head(place))
                            .found(&name);
                        self.mistake(match found {
                            ValueType::Vector(_, count) => {
                                diagnostic.expected(format!("one of {}", NAMES[..usize::from(count)].join(", ")))
                            }
                            ValueType::Scalar(_) => diagnostic.expected("a vector"),
                        });
                        self.unknown_expr(place)
                    }
                }
            }
        }
    }

    fn push(&mut self, kind: ExprKind, ty: Option<ValueType>, place: NodeId) -> Typed {
        if let Some(ty) = ty {
            self.note_type(ty);
        }
        if let Some(id) = self.sketched(kind, place) {
            return Typed { id, ty, place, literal: false };
        }
        let id = ExprId(self.kernel.exprs.len() as u32);
        // An unknown type belongs to a program that is not valid; the kernel is then dropped.
        let stand_in = ValueType::Scalar(Scalar::U32);
        self.kernel.exprs.push(TypedExpr { kind, ty: ty.unwrap_or(stand_in), node: place });
        Typed { id, ty, place, literal: false }
    }

    fn unknown_expr(&mut self, place: NodeId) -> Typed {
        self.push(ExprKind::Lit { bits: 0 }, None, place)
    }

    /// A poisoned expression over these. It keeps their divergence: a wrong condition must not hide a barrier it makes divergent.
    fn poisoned(&mut self, below: &[ExprId], ty: Option<ValueType>, place: NodeId) -> Typed {
        let mut below = below.to_vec();
        while below.len() > 4 {
            let rest = below.split_off(below.len() - 2);
            below.push(self.push(ExprKind::Vector { components: Few::of(&rest) }, None, place).id);
        }
        self.push(ExprKind::Vector { components: Few::of(&below) }, ty, place)
    }

    fn literal(&mut self, literal: Literal, place: NodeId) -> Typed {
        let scalar = literal.scalar();
        let bits = vyre_scalar::canonicalize(scalar, self.kernel.floats, literal.bits());
        self.push(ExprKind::Lit { bits }, Some(scalar.into()), place)
    }

    fn var(&mut self, name: &Name, place: NodeId) -> Typed {
        let location = Location::Head(place);
        let Some(binding) = self.visible(name) else {
            if !self.poison.has_name(name) {
                let diagnostic = self.unknown(name, location);
                self.mistake(diagnostic);
            }
            return self.unknown_expr(place);
        };
        match binding.meaning {
            Meaning::Var(var) | Meaning::Counter(var) => {
                let ty = self.typed[var.index()].then_some(self.kernel.vars[var.index()].ty);
                self.push(ExprKind::Var { var }, ty, place)
            }
            Meaning::Const(n) => match self.parts.consts[n as usize].default.literal() {
                Some(literal) => self.literal(literal, place),
                None => {
                    self.mistake(
                        Diagnostic::new(ErrorCode::E0412, format!("{name:?} is a type, and a value is needed"))
                            .at(location)
                            .related(Location::Const(n), "declared here")
                            .expected("a u32, i32, f32 or bool constant")
                            .found("dtype"),
                    );
                    self.unknown_expr(place)
                }
            },
            Meaning::Buffer(_) => {
                let declared = binding.declared;
                self.mistake(
                    Diagnostic::new(ErrorCode::E0206, format!("{name:?} is a buffer, and a value is needed"))
                        .at(location)
                        .related(declared, "declared here")
                        .fix("load an element", Fix::InsertAfter(location, "[gid.x]".into())),
                );
                self.unknown_expr(place)
            }
        }
    }

    fn builtin(&mut self, builtin: Builtin, place: NodeId) {
        let uses = &mut self.kernel.uses;
        match builtin {
            Builtin::Invocation(axis) => uses.axes[axis as usize] = true,
            Builtin::Workgroup(axis) | Builtin::Local(axis) => {
                uses.axes[axis as usize] = true;
                uses.group_shape = true;
            }
            Builtin::InvocationCount(Axis::X | Axis::Y | Axis::Z) => {}
            Builtin::WorkgroupCount(_) | Builtin::LocalCount(_) => uses.group_shape = true,
            Builtin::SubgroupLane | Builtin::SubgroupSize => {
                uses.subgroup = true;
                self.subgroup_declared(place);
            }
        }
    }

    #[inline]
    pub(super) fn index(&mut self, expr: &Expr) -> Typed {
        self.fixed(expr, Scalar::U32, ErrorCode::E0306, "an index")
    }

    /// The expression of an op whose operands are wrong: where the row fixes the result its type is known all the same.
    fn after_bad_operands(&mut self, info: &OpInfo, operands: &[Typed], place: NodeId) -> Typed {
        let ty = match info.result {
            vyre_spec::ResultRule::Fixed(scalar) => Some(ValueType::Scalar(scalar)),
            vyre_spec::ResultRule::T | vyre_spec::ResultRule::UnsignedT | vyre_spec::ResultRule::None => None,
        };
        let ids: Vec<ExprId> = operands.iter().map(|operand| operand.id).collect();
        self.poisoned(&ids, ty, place)
    }
}
