//! One invocation: its variables, where it stands in the program, and how it takes steps.

use crate::dispatch::{Memory, Shape};
use crate::faults::hooks::Faults;
use crate::fuel::{Fuel, Stopped};
use crate::observe::{Access, AtomicAccess, Observer};
use vyre_foundation::ir::{Axis, Builtin, NodeId};
use vyre_foundation::kernel::{AccessId, Body, BufferId, ExprId, ExprKind, Kernel, MAX_OPERANDS, StmtId, StmtKind, VarId};
use vyre_scalar::{Value, memory};
use vyre_spec::ValueType;

/// What an invocation acts on, and who watches it.
pub(crate) struct World<'a, O, F> {
    pub kernel: &'a Kernel,
    pub shape: &'a Shape,
    pub memory: Memory<'a>,
    pub observer: &'a mut O,
    pub faults: &'a F,
}

impl<O, F> World<'_, O, F> {
    /// The number of elements of a buffer.
    pub fn length(&self, buffer: BufferId) -> u32 {
        self.shape.lengths[buffer.index()]
    }

    pub fn subgroup_size(&self) -> u32 {
        self.kernel.subgroup.expect("validated: subgroups need a declared size")
    }
}

/// Statements that are being executed, and the next one.
pub(crate) struct Frame {
    body: Body,
    next: StmtId,
    /// For the body of a loop: its counter, and one past its last value.
    pub counter: Option<(VarId, u32)>,
}

impl Frame {
    fn of(body: Body, counter: Option<(VarId, u32)>) -> Frame {
        Frame { body, next: body.first, counter }
    }
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
    /// It waits at a subgroup operation.
    AtSubgroup,
    /// It will not take another step.
    Retired,
}

pub(crate) struct Invocation {
    /// Position in the workgroup.
    pub local: [u32; 3],
    /// Position of the workgroup.
    pub group: [u32; 3],
    pub vars: Vec<Value>,
    pub status: Status,
    /// What it trapped with, and where.
    pub trap: Option<(u32, NodeId)>,
    /// The bodies it is in, the innermost last.
    pub frames: Vec<Frame>,
    /// The statement it stepped onto last.
    pub current: StmtId,
}

impl Invocation {
    pub fn new(kernel: &Kernel) -> Self {
        Invocation {
            local: [0; 3],
            group: [0; 3],
            vars: vec![Value::default(); kernel.vars.len()],
            status: Status::Ready,
            trap: None,
            frames: Vec::new(),
            current: StmtId(0),
        }
    }

    /// Puts it at the start of the program.
    pub fn start(&mut self, kernel: &Kernel, local: [u32; 3], group: [u32; 3]) {
        self.local = local;
        self.group = group;
        self.status = Status::Ready;
        self.trap = None;
        self.frames.clear();
        self.frames.push(Frame::of(kernel.body(), None));
        // Variables keep old values: every `let` gives its variable a value before anything can read it.
    }

    /// Its position in the whole dispatch.
    pub fn global(&self, shape: &Shape) -> [u32; 3] {
        // The launch is planned so that every id fits.
        std::array::from_fn(|axis| self.group[axis] * shape.workgroup_size[axis] + self.local[axis])
    }

    /// Takes steps until it retires or has to wait.
    pub fn advance<O: Observer, F: Faults>(&mut self, world: &mut World<'_, O, F>, fuel: &mut Fuel<'_>) -> Result<(), Stopped> {
        while self.status == Status::Ready {
            fuel.take(1)?;
            self.step(world);
        }
        Ok(())
    }

    /// Takes one step: a statement, the end of a body, or the end of the program.
    pub fn step<O: Observer, F: Faults>(&mut self, world: &mut World<'_, O, F>) {
        let Some(frame) = self.frames.last_mut() else {
            self.status = Status::Retired;
            return;
        };
        if frame.next == frame.body.end {
            self.finish_body(world);
            return;
        }
        let kernel = world.kernel;
        let stmt = kernel.stmt(frame.next);
        self.current = frame.next;
        frame.next = stmt.end;
        world.observer.statement(self.current);
        if world.faults.execute(stmt, self, world) {
            return;
        }
        match &stmt.kind {
            StmtKind::Let { var, value } | StmtKind::Assign { var, value } => {
                self.vars[var.index()] = self.value(*value, world);
            }
            StmtKind::Store { access, buffer, index, value } => {
                let (index, value) = (self.scalar(*index, world) as u32, self.value(*value, world));
                let access = Access { id: *access, buffer: *buffer, element: index };
                if index < world.length(*buffer) {
                    let element = &kernel.buffer(*buffer).element;
                    let held = || memory::load(element, kernel.floats, world.memory.bytes(*buffer), index);
                    world.observer.store(access, || held() == value);
                    memory::store(element, kernel.floats, world.memory.bytes_mut(*buffer), index, value);
                } else {
                    world.observer.out_of_bounds(access);
                }
            }
            StmtKind::Atomic { access, result, op, buffer, index, operands } => {
                let index = self.scalar(*index, world) as u32;
                let values: [u64; MAX_OPERANDS] = self.operands(operands, world);
                let access = Access { id: *access, buffer: *buffer, element: index };
                let mut old = 0;
                if index < world.length(*buffer) {
                    let element = &kernel.buffer(*buffer).element;
                    let ty = scalar_type(kernel, *buffer);
                    old = memory::load(element, kernel.floats, world.memory.bytes(*buffer), index).scalar();
                    let new = vyre_scalar::atomic(*op, ty, old, &values[..operands.len()]);
                    world.observer.atomic(access, AtomicAccess { op: *op, result: *result, old, new: new.unwrap_or(old) });
                    if let Some(new) = new {
                        memory::store(element, kernel.floats, world.memory.bytes_mut(*buffer), index, new.into());
                    }
                } else {
                    world.observer.out_of_bounds(access);
                }
                if let Some(var) = result {
                    self.vars[var.index()] = old.into();
                }
            }
            StmtKind::Subgroup { .. } => self.status = Status::AtSubgroup,
            StmtKind::If { cond, then, otherwise } => {
                let body = if self.scalar(*cond, world) != 0 { then } else { otherwise };
                self.frames.push(Frame::of(*body, None));
            }
            StmtKind::Loop { counter, from, to, body } => {
                let (from, to) = (self.scalar(*from, world) as u32, self.scalar(*to, world) as u32);
                if from < to {
                    world.observer.iteration(self.current, true);
                    self.enter_loop(*counter, from, to, *body);
                } else {
                    world.observer.loop_ends(self.current);
                }
            }
            StmtKind::Break => {
                if let Some(counter) = self.leave_loop() {
                    world.observer.loop_ends(kernel.var(counter).declared);
                }
            }
            StmtKind::Continue => self.end_iteration(),
            StmtKind::Return => self.status = Status::Retired,
            StmtKind::Barrier => self.status = Status::AtBarrier,
            StmtKind::GridSync => self.status = Status::AtGridSync,
            StmtKind::Trap { tag } => {
                self.trap = Some((*tag, stmt.node));
                self.status = Status::Retired;
            }
            StmtKind::Scope { body } => self.frames.push(Frame::of(*body, None)),
        }
    }

    /// Begins the first iteration of a loop.
    pub fn enter_loop(&mut self, counter: VarId, from: u32, to: u32, body: Body) {
        self.vars[counter.index()] = u64::from(from).into();
        self.frames.push(Frame::of(body, Some((counter, to))));
    }

    /// Leaves the innermost loop, and gives its counter.
    pub fn leave_loop(&mut self) -> Option<VarId> {
        while let Some(frame) = self.frames.pop() {
            if let Some((counter, _)) = frame.counter {
                return Some(counter);
            }
        }
        None
    }

    /// Goes to the end of the innermost loop's body.
    pub fn end_iteration(&mut self) {
        while let Some(frame) = self.frames.last_mut() {
            frame.next = frame.body.end;
            if frame.counter.is_some() {
                break;
            }
            self.frames.pop();
        }
    }

    /// The end of a body: the next iteration of a loop, or back to the body around it.
    fn finish_body<O: Observer, F: Faults>(&mut self, world: &mut World<'_, O, F>) {
        world.faults.iteration_ends(self, world);
        let Some(frame) = self.frames.last_mut() else { return };
        if let Some((counter, to)) = frame.counter {
            let next = self.vars[counter.index()].scalar() as u32 + 1;
            if next < to {
                self.vars[counter.index()] = u64::from(next).into();
                frame.next = frame.body.first;
                world.observer.iteration(world.kernel.var(counter).declared, false);
                return;
            }
            world.observer.loop_ends(world.kernel.var(counter).declared);
        }
        self.frames.pop();
    }

    /// The statement that its next step executes, if that is an atomic.
    pub fn atomic_ahead<'k>(&self, kernel: &'k Kernel) -> Option<&'k StmtKind> {
        let frame = self.frames.last().filter(|frame| frame.next != frame.body.end)?;
        Some(&kernel.stmt(frame.next).kind).filter(|kind| matches!(kind, StmtKind::Atomic { .. }))
    }
}

/// Expressions, here and now. They read and never write.
impl Invocation {
    /// The value of an expression of any type.
    pub fn value<O: Observer, F: Faults>(&self, id: ExprId, world: &mut World<'_, O, F>) -> Value {
        if let Some(wrong) = world.faults.value(id, self, world) {
            return wrong;
        }
        let value = match &world.kernel.expr(id).kind {
            ExprKind::Var { var } => self.vars[var.index()],
            ExprKind::Load { access, buffer, index } => self.load(*access, *buffer, *index, world),
            ExprKind::Vector { components } => Value(self.operands(components, world)),
            ExprKind::Lit { .. }
            | ExprKind::Builtin { .. }
            | ExprKind::Len { .. }
            | ExprKind::Unary { .. }
            | ExprKind::Binary { .. }
            | ExprKind::Ternary { .. }
            | ExprKind::Cast { .. }
            | ExprKind::Bitcast { .. }
            | ExprKind::Extract { .. } => return self.scalar(id, world).into(),
        };
        world.observer.expression(id, value);
        value
    }

    /// The bits of a scalar expression.
    pub fn scalar<O: Observer, F: Faults>(&self, id: ExprId, world: &mut World<'_, O, F>) -> u64 {
        if let Some(wrong) = world.faults.value(id, self, world) {
            return wrong.scalar();
        }
        let mode = world.kernel.floats;
        let bits = match &world.kernel.expr(id).kind {
            ExprKind::Lit { bits } => *bits,
            ExprKind::Var { var } => self.vars[var.index()].scalar(),
            ExprKind::Builtin { builtin } => u64::from(self.builtin(*builtin, world)),
            ExprKind::Len { buffer } => u64::from(world.length(*buffer)),
            ExprKind::Load { access, buffer, index } => self.load(*access, *buffer, *index, world).scalar(),
            ExprKind::Unary { op, ty, operand } => {
                let a = self.scalar(*operand, world);
                vyre_scalar::unary(*op, *ty, mode, a)
            }
            ExprKind::Binary { op, ty, left, right } => {
                let (a, b) = (self.scalar(*left, world), self.scalar(*right, world));
                vyre_scalar::binary(*op, *ty, mode, a, b)
            }
            ExprKind::Ternary { op, ty, operands } => {
                let [a, b, c] = operands.map(|operand| self.scalar(operand, world));
                vyre_scalar::ternary(*op, *ty, mode, a, b, c)
            }
            ExprKind::Cast { from, to, value } => {
                let a = self.scalar(*value, world);
                vyre_scalar::cast(*from, *to, mode, a)
            }
            ExprKind::Bitcast { from, to, value } => {
                let a = self.scalar(*value, world);
                vyre_scalar::bitcast(*from, *to, mode, a)
            }
            ExprKind::Extract { vector, component } => self.value(*vector, world).0[usize::from(*component)],
            ExprKind::Vector { .. } => unreachable!("a vector is not a scalar"),
        };
        world.observer.expression(id, bits);
        bits
    }

    /// The bits of up to `N` scalar expressions, and zeros.
    pub fn operands<const N: usize, O: Observer, F: Faults>(&self, ids: &[ExprId], world: &mut World<'_, O, F>) -> [u64; N] {
        let mut bits = [0; N];
        for (bits, id) in bits.iter_mut().zip(ids) {
            *bits = self.scalar(*id, world);
        }
        bits
    }

    fn load<O: Observer, F: Faults>(&self, id: AccessId, buffer: BufferId, index: ExprId, world: &mut World<'_, O, F>) -> Value {
        let index = self.scalar(index, world) as u32;
        let access = Access { id, buffer, element: index };
        if index < world.length(buffer) {
            world.observer.load(access);
            memory::load(&world.kernel.buffer(buffer).element, world.kernel.floats, world.memory.bytes(buffer), index)
        } else {
            world.observer.out_of_bounds(access);
            Value::default()
        }
    }

    pub fn builtin<O, F>(&self, builtin: Builtin, world: &World<'_, O, F>) -> u32 {
        let shape = world.shape;
        let size = |axis: Axis| shape.workgroup_size[axis as usize];
        let groups = |axis: Axis| shape.grid[axis as usize];
        match builtin {
            Builtin::Invocation(axis) => self.global(shape)[axis as usize],
            Builtin::Workgroup(axis) => self.group[axis as usize],
            Builtin::Local(axis) => self.local[axis as usize],
            Builtin::InvocationCount(axis) => groups(axis) * size(axis),
            Builtin::WorkgroupCount(axis) => groups(axis),
            Builtin::LocalCount(axis) => size(axis),
            Builtin::SubgroupLane => linear(self.local, shape.workgroup_size) % world.subgroup_size(),
            Builtin::SubgroupSize => world.subgroup_size(),
        }
    }
}

/// What the elements of a buffer are to an atomic.
pub(crate) fn scalar_type(kernel: &Kernel, buffer: BufferId) -> vyre_spec::Scalar {
    match kernel.buffer(buffer).value {
        ValueType::Scalar(ty) => ty,
        ValueType::Vector(..) => unreachable!("validated: atomics are on scalars"),
    }
}

/// The position in a box as one number, x fastest.
pub(crate) fn linear(position: [u32; 3], size: [u32; 3]) -> u32 {
    (position[2] * size[1] + position[1]) * size[0] + position[0]
}
