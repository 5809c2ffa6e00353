//! One invocation: its variables, where it stands in the program, and how it takes steps.

use crate::dispatch::{Memory, Shape};
use crate::observe::{self, Access, AccessKind, AtomicAccess, Observer};
use vyre_foundation::ir::{Axis, Builtin, NodeId};
use vyre_foundation::kernel::{BufferId, ExprId, ExprKind, Kernel, Stmt, StmtKind, VarId};
use vyre_scalar::Value;
use vyre_spec::{AtomicOp, ValueType};

/// Statements that are being executed, and the next one.
struct Frame<'k> {
    body: &'k [Stmt],
    next: usize,
    /// For the body of a loop: its counter, and one past its last value.
    counter: Option<(VarId, u32)>,
}

/// How far an invocation got.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Status {
    /// It can take its next step.
    Ready,
    /// It waits at a barrier of the workgroup.
    AtBarrier,
    /// It waits at a barrier of the grid.
    AtGridSync,
    /// It waits at a subgroup operation, whose place in the program is given.
    AtSubgroup(NodeId),
    /// It will not take another step.
    Retired,
}

pub(crate) struct Invocation<'k> {
    /// Position in the workgroup.
    pub local: [u32; 3],
    /// Position of the workgroup.
    pub group: [u32; 3],
    pub vars: Vec<Value>,
    pub status: Status,
    /// What it trapped with, and where.
    pub trap: Option<(u32, NodeId)>,
    frames: Vec<Frame<'k>>,
}

/// The dispatch took more steps than it was given.
pub(crate) struct FuelExhausted;

impl<'k> Invocation<'k> {
    pub fn new(kernel: &'k Kernel) -> Self {
        Invocation {
            local: [0; 3],
            group: [0; 3],
            vars: vec![Value::default(); kernel.vars.len()],
            status: Status::Ready,
            trap: None,
            frames: Vec::new(),
        }
    }

    /// Puts it at the start of the program.
    pub fn start(&mut self, kernel: &'k Kernel, local: [u32; 3], group: [u32; 3]) {
        self.local = local;
        self.group = group;
        self.status = Status::Ready;
        self.trap = None;
        self.frames.clear();
        self.frames.push(Frame { body: &kernel.body, next: 0, counter: None });
        // Variables keep old values: every `let` gives its variable a value before anything can read it.
    }

    /// Its position in the whole dispatch.
    pub fn global(&self, shape: &Shape) -> [u32; 3] {
        // The launch is planned so that every id fits.
        std::array::from_fn(|axis| self.group[axis] * shape.workgroup_size[axis] + self.local[axis])
    }

    /// Takes steps until it retires or has to wait.
    pub fn advance(
        &mut self,
        kernel: &'k Kernel,
        shape: &Shape,
        memory: &mut Memory<'_>,
        observer: &mut impl Observer,
        fuel: &mut u64,
    ) -> Result<(), FuelExhausted> {
        while self.status == Status::Ready {
            *fuel = fuel.checked_sub(1).ok_or(FuelExhausted)?;
            self.step(kernel, shape, memory, observer);
        }
        Ok(())
    }

    /// Takes one step: a statement, the end of a body, or the end of the program.
    pub fn step(&mut self, kernel: &'k Kernel, shape: &Shape, memory: &mut Memory<'_>, observer: &mut impl Observer) {
        let Some(frame) = self.frames.last_mut() else {
            self.status = Status::Retired;
            return;
        };
        let Some(stmt) = frame.body.get(frame.next) else {
            self.finish_body();
            return;
        };
        frame.next += 1;
        let mut eval = Eval { kernel, shape, memory, invocation: self, observer };
        match &stmt.kind {
            StmtKind::Let(var, value) | StmtKind::Assign(var, value) => {
                let value = eval.value(*value);
                self.vars[var.index()] = value;
            }
            StmtKind::Store(buffer, index, value) => {
                let (index, value) = (eval.scalar(*index) as u32, eval.value(*value));
                let access = Access { place: stmt.place, buffer: *buffer, element: index };
                if let Some(index) = observer.element(index, shape.lengths[buffer.index()]) {
                    let element = &kernel.buffer(*buffer).element;
                    let held = || vyre_scalar::memory::load(element, kernel.floats, memory.bytes(*buffer), index);
                    observer.store(access, || held() == value);
                    observer.store_bytes(element, kernel.floats, memory.bytes_mut(*buffer), index, value);
                } else {
                    observer.out_of_bounds(access, AccessKind::Store);
                }
            }
            StmtKind::Atomic { result, op, buffer, index, operands } => {
                let index = eval.scalar(*index) as u32;
                let mut values = [0; AtomicOp::MAX_OPERANDS];
                for (value, operand) in values.iter_mut().zip(operands) {
                    *value = eval.scalar(*operand);
                }
                let element = &kernel.buffer(*buffer).element;
                let access = Access { place: stmt.place, buffer: *buffer, element: index };
                let mut given = 0;
                if let Some(index) = observer.element(index, shape.lengths[buffer.index()])
                    && let ValueType::Scalar(ty) = kernel.buffer(*buffer).value
                {
                    let bytes = memory.bytes_mut(*buffer);
                    let old = observer.load_bytes(element, kernel.floats, bytes, index).scalar();
                    let new = observer.change(*op, ty, old, &values[..operands.len()]);
                    given = observer.atomic_result(old, new);
                    observer.atomic(access, AtomicAccess { op: *op, result: *result, old, new: new.unwrap_or(old) });
                    if let Some(new) = new {
                        observer.store_bytes(element, kernel.floats, bytes, index, new.into());
                    }
                } else {
                    observer.out_of_bounds(access, observe::how(*op));
                }
                if let Some(var) = result {
                    self.vars[var.index()] = given.into();
                }
            }
            StmtKind::Subgroup { .. } => self.status = Status::AtSubgroup(stmt.place),
            StmtKind::If(cond, then, otherwise) => {
                let body = if eval.scalar(*cond) != 0 { then } else { otherwise };
                self.frames.push(Frame { body, next: 0, counter: None });
            }
            StmtKind::Loop(var, from, to, body) => {
                let (from, to) = (eval.scalar(*from) as u32, eval.scalar(*to) as u32);
                let to = observer.loop_end(from, to);
                if from < to {
                    self.vars[var.index()] = u64::from(from).into();
                    self.frames.push(Frame { body, next: 0, counter: Some((*var, to)) });
                }
            }
            StmtKind::Break => self.leave_loop(),
            StmtKind::Continue if !observer.continues() => self.leave_loop(),
            StmtKind::Continue => {
                while let Some(frame) = self.frames.last_mut() {
                    frame.next = frame.body.len();
                    if frame.counter.is_some() {
                        break;
                    }
                    self.frames.pop();
                }
            }
            StmtKind::Return => self.status = Status::Retired,
            StmtKind::Barrier if observer.waits_at_barriers() => self.status = Status::AtBarrier,
            StmtKind::Barrier => {}
            StmtKind::GridSync => self.status = Status::AtGridSync,
            StmtKind::Trap(tag) => {
                self.trap = Some((*tag, stmt.place));
                self.status = Status::Retired;
            }
            StmtKind::Scope(body) => self.frames.push(Frame { body, next: 0, counter: None }),
        }
    }

    fn leave_loop(&mut self) {
        while let Some(frame) = self.frames.pop()
            && frame.counter.is_none()
        {}
    }

    /// The end of a body: the next round of a loop, or back to the body around it.
    fn finish_body(&mut self) {
        let Some(frame) = self.frames.last_mut() else { return };
        if let Some((var, to)) = frame.counter {
            let next = self.vars[var.index()].scalar() as u32 + 1;
            if next < to {
                self.vars[var.index()] = u64::from(next).into();
                frame.next = 0;
                return;
            }
        }
        self.frames.pop();
    }

    /// The subgroup operation it waits at: the statement it stepped onto last.
    pub fn current(&self) -> Option<&'k Stmt> {
        let frame = self.frames.last()?;
        frame.body.get(frame.next.checked_sub(1)?)
    }

    /// The statement that its next step executes, if that is an atomic.
    pub fn atomic_ahead(&self) -> Option<&'k Stmt> {
        let frame = self.frames.last()?;
        frame.body.get(frame.next).filter(|stmt| matches!(stmt.kind, StmtKind::Atomic { .. }))
    }

    /// The value of an expression here and now.
    pub fn eval(
        &self,
        kernel: &'k Kernel,
        shape: &Shape,
        memory: &Memory<'_>,
        observer: &mut impl Observer,
        expr: ExprId,
    ) -> Value {
        Eval { kernel, shape, memory, invocation: self, observer }.value(expr)
    }
}

/// Expressions read and never write, so a shared view of everything but the observer is enough.
struct Eval<'a, 'k, 'm, O> {
    kernel: &'k Kernel,
    shape: &'a Shape,
    memory: &'a Memory<'m>,
    invocation: &'a Invocation<'k>,
    observer: &'a mut O,
}

impl<O: Observer> Eval<'_, '_, '_, O> {
    /// The value of an expression of any type.
    fn value(&mut self, id: ExprId) -> Value {
        let expr = self.kernel.expr(id);
        match &expr.kind {
            ExprKind::Var(var) => self.invocation.vars[var.index()],
            ExprKind::Load(buffer, index) => self.load(expr.place, *buffer, *index),
            ExprKind::Vector(components) => {
                let mut value = Value::default();
                for (slot, component) in value.0.iter_mut().zip(components) {
                    *slot = self.scalar(*component);
                }
                value
            }
            ExprKind::Lit(_)
            | ExprKind::Builtin(_)
            | ExprKind::Len(_)
            | ExprKind::Unary(..)
            | ExprKind::Binary(..)
            | ExprKind::Ternary(..)
            | ExprKind::Cast(..)
            | ExprKind::Bitcast(..)
            | ExprKind::Extract(..) => self.scalar(id).into(),
        }
    }

    /// The bits of a scalar expression.
    fn scalar(&mut self, id: ExprId) -> u64 {
        let mode = self.kernel.floats;
        let expr = self.kernel.expr(id);
        match &expr.kind {
            ExprKind::Lit(bits) => *bits,
            ExprKind::Var(var) => self.invocation.vars[var.index()].scalar(),
            ExprKind::Builtin(builtin) => u64::from(self.builtin(*builtin)),
            ExprKind::Len(buffer) => u64::from(self.observer.length(self.shape.lengths[buffer.index()])),
            ExprKind::Load(buffer, index) => self.load(expr.place, *buffer, *index).scalar(),
            ExprKind::Unary(op, ty, a) => {
                let a = self.scalar(*a);
                self.observer.unary(*op, *ty, mode, a)
            }
            ExprKind::Binary(op, ty, a, b) => {
                let (a, b) = (self.scalar(*a), self.scalar(*b));
                self.observer.binary(*op, *ty, mode, a, b)
            }
            ExprKind::Ternary(op, ty, operands) => {
                let operands = operands.map(|operand| self.scalar(operand));
                self.observer.ternary(*op, *ty, mode, operands)
            }
            ExprKind::Cast(from, to, a) => {
                let a = self.scalar(*a);
                self.observer.cast(*from, *to, mode, a)
            }
            ExprKind::Bitcast(from, to, a) => {
                let a = self.scalar(*a);
                self.observer.bitcast(*from, *to, mode, a)
            }
            ExprKind::Extract(vector, component) => self.value(*vector).0[usize::from(self.observer.component(*component))],
            ExprKind::Vector(_) => self.value(id).scalar(),
        }
    }

    fn load(&mut self, place: NodeId, buffer: BufferId, index: ExprId) -> Value {
        let index = self.scalar(index) as u32;
        let access = Access { place, buffer, element: index };
        let Some(index) = self.observer.element(index, self.shape.lengths[buffer.index()]) else {
            self.observer.out_of_bounds(access, AccessKind::Load);
            return Value::default();
        };
        self.observer.load(access);
        let element = &self.kernel.buffer(buffer).element;
        self.observer.load_bytes(element, self.kernel.floats, self.memory.bytes(buffer), index)
    }

    fn builtin(&self, builtin: Builtin) -> u32 {
        let shape = self.shape;
        let size = |axis: Axis| shape.workgroup_size[axis as usize];
        let groups = |axis: Axis| shape.grid[axis as usize];
        match self.observer.builtin(builtin) {
            Builtin::Invocation(axis) => self.invocation.global(shape)[axis as usize],
            Builtin::Workgroup(axis) => self.invocation.group[axis as usize],
            Builtin::Local(axis) => self.invocation.local[axis as usize],
            Builtin::InvocationCount(axis) => groups(axis) * size(axis),
            Builtin::WorkgroupCount(axis) => groups(axis),
            Builtin::LocalCount(axis) => size(axis),
            Builtin::SubgroupLane => linear(self.invocation.local, shape.workgroup_size) % self.subgroup_size(),
            Builtin::SubgroupSize => self.subgroup_size(),
        }
    }

    fn subgroup_size(&self) -> u32 {
        self.kernel.subgroup.expect("validated: subgroup ids need a declared size")
    }
}

/// The position in a box as one number, x fastest.
pub(crate) fn linear(position: [u32; 3], size: [u32; 3]) -> u32 {
    (position[2] * size[1] + position[1]) * size[0] + position[0]
}
