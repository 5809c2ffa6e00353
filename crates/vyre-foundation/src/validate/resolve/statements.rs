//! Statements: the scopes they open, the variables they declare, where control may go.
//!
//! A statement gets its number before the statements below it, so that a body is a range of numbers.

use super::names::Meaning;
use super::sketch::is_unasked;
use super::{Resolver, Typed};
use crate::diagnostic::{Diagnostic, Fix, Location};
use crate::ir::{Atomic, Body, Loop, Name, Node, NodeId, OpId, Store, Subgroup};
use crate::kernel::{AccessKind, Body as StmtBody, ExprId, Few, MAX_OPERANDS, Stmt, StmtId, StmtKind, Var, VarId, VarKind};
use crate::memory_model::MemoryOrdering;
use vyre_spec::{ErrorCode, OpInfo, Scalar, ValueType};

impl<'a> Resolver<'a> {
    /// The statements of a scope; what it declares ends with it.
    pub(super) fn scope(&mut self, body: &'a [Node]) -> StmtBody {
        let outer = self.declared.len();
        let first = self.next_stmt();
        for node in body {
            self.statement(node);
        }
        self.end_scope(outer);
        StmtBody { first, end: self.next_stmt() }
    }

    fn statement(&mut self, node: &'a Node) {
        let place = self.place();
        self.statement = place;
        if let (true, Node::Block(body) | Node::Region { body, .. }) = (self.sketch.is_some(), node) {
            // Their statements stand in the scope around them as well as in one of their own.
            self.scope(body);
            return;
        }
        let id = self.next_stmt();
        self.stmt = id;
        // It comes before the statements below it, which are not known yet.
        self.kernel.stmts.push(Stmt { kind: StmtKind::Return, node: place, end: id });
        let first = self.kernel.exprs.len();
        let kind = match node {
            Node::Let { name, value } => {
                let value = self.expr(value);
                let id = self.settled(first, value.id);
                StmtKind::Let { var: self.declare_var(name, value.ty, place), value: id }
            }
            Node::Assign { name, value } => {
                let target = self.assignable(name, place);
                let value = self.expr(value);
                if let Some((_, Some(expected), declared)) = target
                    && let Some(found) = value.ty
                    && expected != found
                {
                    let diagnostic =
                        Diagnostic::new(ErrorCode::E0310, format!("{name:?} is {expected}, and this value is {found}"))
                            .at(Location::Tree(value.place))
                            .related(declared, format!("its type comes from here: {expected}"));
                    let diagnostic = self.mismatch(diagnostic, expected, value);
                    self.mistake(diagnostic);
                }
                match target {
                    Some((var, _, _)) => {
                        self.kernel.vars[var.index()].set_once = false;
                        StmtKind::Assign { var, value: self.settled(first, value.id) }
                    }
                    None => self.nothing(),
                }
            }
            Node::Store(store) => {
                let Store { buffer, index, value } = &**store;
                let target = self.writable(buffer, place);
                let index = self.index(index);
                let value = self.expr(value);
                let kind = match target {
                    Some(buffer) => {
                        self.stored(buffer, value);
                        let access = self.access(AccessKind::Store, buffer, index.id, place);
                        StmtKind::Store { access, buffer, index: index.id, value: value.id }
                    }
                    None => self.nothing(),
                };
                self.unasked(first);
                kind
            }
            Node::Atomic(atomic) => {
                let Atomic { result, op, buffer, index, operands } = &**atomic;
                self.kernel.uses.atomics = true;
                let target = self.atomic_target(buffer, place);
                let index = self.index(index);
                let operands: Vec<Typed> = operands.iter().map(|operand| self.expr(operand)).collect();
                let ty = target.and_then(|(_, ty)| self.op(OpId::Atomic(*op), Some(ty.into()), &operands, place));
                let result = self.result(result.as_ref(), op.info(), ty, place);
                match target {
                    Some((buffer, _)) => {
                        let access = self.access(AccessKind::of_atomic(*op), buffer, index.id, place);
                        StmtKind::Atomic { access, result, op: *op, buffer, index: index.id, operands: few(&operands) }
                    }
                    None => self.nothing(),
                }
            }
            Node::Subgroup(subgroup) => {
                let Subgroup { result, op, operands } = &**subgroup;
                self.kernel.uses.subgroup = true;
                self.subgroup_declared(place);
                let operands: Vec<Typed> = operands.iter().map(|operand| self.expr(operand)).collect();
                let ty = self.op(OpId::Subgroup(*op), None, &operands, place);
                let operands = self.apart(operands);
                let result = self.result(result.as_ref(), op.info(), ty, place);
                StmtKind::Subgroup { result, op: *op, ty: ty.unwrap_or(Scalar::U32), operands: few(&operands) }
            }
            Node::If { cond, then, otherwise } => {
                let cond = self.fixed(cond, Scalar::Bool, ErrorCode::E0305, "a condition");
                self.control += 1;
                let then = self.scope(then);
                let otherwise = self.scope(otherwise);
                self.control -= 1;
                StmtKind::If { cond: cond.id, then, otherwise }
            }
            Node::Loop(repeat) => {
                let Loop { var, from, to, body } = &**repeat;
                let from = self.fixed(from, Scalar::U32, ErrorCode::E0307, "a loop bound");
                let to = self.fixed(to, Scalar::U32, ErrorCode::E0307, "a loop bound");
                let outer = self.declared.len();
                let counter = self.new_var(var, Some(ValueType::Scalar(Scalar::U32)), VarKind::Counter);
                self.declare(var, Meaning::Counter(counter), Location::Head(place));
                let body = self.loop_body(body);
                self.end_scope(outer);
                StmtKind::Loop { counter, from: from.id, to: to.id, body }
            }
            Node::Break => {
                self.in_loop("break", place);
                StmtKind::Break
            }
            Node::Continue => {
                self.in_loop("continue", place);
                StmtKind::Continue
            }
            Node::Return => StmtKind::Return,
            Node::Barrier { ordering } => self.barrier(*ordering, place),
            Node::Trap { tag } => {
                self.kernel.uses.trap = true;
                StmtKind::Trap { tag: *tag }
            }
            Node::Block(body) | Node::Region { body, .. } => StmtKind::Scope { body: self.scope(body) },
        };
        let end = self.next_stmt();
        if self.sketch.is_some() && is_unasked(&kind, self.control) {
            self.kernel.stmts.truncate(id.index());
            return;
        }
        self.kernel.stmts[id.index()] = Stmt { kind, node: place, end };
    }

    fn new_var(&mut self, name: &Name, ty: Option<ValueType>, kind: VarKind) -> VarId {
        let id = VarId(self.kernel.vars.len() as u32);
        let stand_in = ValueType::Scalar(Scalar::U32);
        let (name, ty_or_poison) = (name.clone(), ty.unwrap_or(stand_in));
        self.kernel.vars.push(Var { name, ty: ty_or_poison, kind, set_once: true, declared: self.stmt });
        self.typed.push(ty.is_some());
        self.sketch_var(id, self.statement);
        id
    }

    fn declare_var(&mut self, name: &'a Name, ty: Option<ValueType>, place: NodeId) -> VarId {
        let id = self.new_var(name, ty, VarKind::Let);
        self.declare(name, Meaning::Var(id), Location::Head(place));
        id
    }

    /// An empty scope, for a statement that a mistake leaves nothing of.
    fn nothing(&self) -> StmtKind {
        let here = self.next_stmt();
        StmtKind::Scope { body: StmtBody { first: here, end: here } }
    }

    fn in_loop(&mut self, word: &str, place: NodeId) {
        if self.loops == 0 {
            self.mistake(
                Diagnostic::new(ErrorCode::E0505, format!("`{word}` stands in no loop"))
                    .at(Location::Tree(place))
                    .help("`return` ends the invocation"),
            );
        }
    }

    fn loop_body(&mut self, body: &'a Body) -> StmtBody {
        self.loops += 1;
        self.control += 1;
        let stmts = self.scope(body);
        self.control -= 1;
        self.loops -= 1;
        stmts
    }

    fn barrier(&mut self, ordering: MemoryOrdering, place: NodeId) -> StmtKind {
        match ordering {
            MemoryOrdering::Relaxed => {
                self.mistake(
                    Diagnostic::new(ErrorCode::E0504, "a relaxed barrier orders nothing")
                        .at(Location::Tree(place))
                        .fix("write", Fix::Replace(Location::Tree(place), "barrier".into())),
                );
                self.nothing()
            }
            MemoryOrdering::Acquire | MemoryOrdering::Release | MemoryOrdering::AcqRel | MemoryOrdering::SeqCst => {
                self.kernel.uses.barrier = true;
                StmtKind::Barrier
            }
            MemoryOrdering::GridSync => {
                self.kernel.uses.grid_sync = true;
                if self.control > 0 {
                    self.mistake(
                        Diagnostic::new(ErrorCode::E0503, "a grid barrier stands inside an `if` or a loop")
                            .at(Location::Tree(place))
                            .help("move it to the top level of the program; blocks and regions around it are fine"),
                    );
                }
                StmtKind::GridSync
            }
        }
    }

    /// The variable a result is put into.
    fn result(&mut self, name: Option<&'a Name>, info: &OpInfo, ty: Option<Scalar>, place: NodeId) -> Option<VarId> {
        let name = name?;
        let result = match ty {
            Some(ty) => info.result_type(ty).map(ValueType::Scalar),
            None => None,
        };
        if ty.is_some() && result.is_none() {
            self.mistake(
                Diagnostic::new(ErrorCode::E0314, format!("`atomic.{}` gives no value for {name:?}", info.mnemonic))
                    .at(Location::Result(place))
                    .help("write it as a statement, without `let`"),
            );
        }
        if let Some(ty) = result {
            self.note_type(ty);
        }
        let id = self.new_var(name, result, VarKind::Result);
        self.declare(name, Meaning::Var(id), Location::Result(place));
        Some(id)
    }

    fn next_stmt(&self) -> StmtId {
        StmtId(self.kernel.stmts.len() as u32)
    }
}

/// The operands of an operation, as many as its row allows.
fn few(operands: &[Typed]) -> Few<ExprId, MAX_OPERANDS> {
    let ids: Vec<ExprId> = operands.iter().take(MAX_OPERANDS).map(|operand| operand.id).collect();
    Few::of(&ids)
}
