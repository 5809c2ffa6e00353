//! The plain interpreter with a fault.

use super::Fault;
use super::hooks::{Faults, Moment};
use crate::invocation::{Invocation, Status, World, linear, scalar_type};
use crate::observe::Observer;
use crate::subgroup::{self, Lane};
use vyre_foundation::ir::{AtomicOp, Axis, BinaryOp, Builtin, DataType, FloatMode, Scalar, SubgroupOp, TernaryOp, UnaryOp};
use vyre_foundation::kernel::{ExprId, ExprKind, Stmt, StmtKind, VarKind};
use vyre_scalar::Value;
use vyre_spec::{ShuffleFrom, SubgroupShape, ValueType};

pub(super) struct Faulty(pub Fault);

impl Faulty {
    fn is(&self, fault: Fault) -> bool {
        self.0 == fault
    }
}

/// The bits of the type's lowest value.
fn lowest(ty: Scalar) -> u64 {
    1 << (ty.bits() - 1)
}

fn mask(ty: Scalar) -> u64 {
    u64::MAX >> (64 - ty.bits())
}

fn is_nan(ty: Scalar, a: u64) -> bool {
    vyre_scalar::unary(UnaryOp::IsNan, ty, FloatMode::Ieee, a) != 0
}

/// The next float away from zero.
fn further(ty: Scalar, a: u64) -> u64 {
    let exponent = match ty {
        Scalar::F32 => 0x7F80_0000,
        Scalar::F64 => 0x7FF0_0000_0000_0000,
        Scalar::Bool | Scalar::U32 | Scalar::I32 | Scalar::U64 | Scalar::I64 => 0,
    };
    if a & exponent == exponent { a } else { a + 1 }
}

/// What ops, elements and ids are with a fault; what is right where there is none.
impl Faulty {
    fn unary(&self, op: UnaryOp, ty: Scalar, mode: FloatMode, a: u64) -> u64 {
        let right = vyre_scalar::unary(op, ty, mode, a);
        if self.is(Fault::ClzZero) && op == UnaryOp::Clz && a == 0 {
            return right - 1;
        }
        if self.is(Fault::CtzZero) && op == UnaryOp::Ctz && a == 0 {
            return 0;
        }
        if self.is(Fault::NegZero) && op == UnaryOp::Neg && ty.is_float() {
            return vyre_scalar::binary(BinaryOp::Sub, ty, mode, 0, a);
        }
        if self.is(Fault::RoundHalfway) && op == UnaryOp::Round {
            let away = |x: f64| x.round();
            return match ty {
                Scalar::F32 => u64::from((away(f64::from(f32::from_bits(a as u32))) as f32).to_bits()),
                Scalar::F64 => away(f64::from_bits(a)).to_bits(),
                Scalar::Bool | Scalar::U32 | Scalar::I32 | Scalar::U64 | Scalar::I64 => right,
            };
        }
        if self.is(Fault::Exp2Ulp) && op == UnaryOp::Exp2 && right & 0xFFFF != 0 {
            return further(ty, right);
        }
        right
    }

    fn binary(&self, op: BinaryOp, ty: Scalar, mode: FloatMode, a: u64, b: u64) -> u64 {
        use BinaryOp::{AbsDiff, Add, Div, Lt, Max, Min, Mul, Mulhi, Ne, Rem, Rotl, Rotr, SatAdd, SatSub, Shl, Shr, Sub};
        let with = |op, ty, a, b| vyre_scalar::binary(op, ty, mode, a, b);
        let right = with(op, ty, a, b);
        let int = ty.is_int();
        let nan = ty.is_float() && (is_nan(ty, a) || is_nan(ty, b));
        match (self.0, op) {
            (Fault::ShiftMask, Shl | Shr) if b >= u64::from(ty.bits()) => 0,
            (Fault::ShrLogical, Shr) => with(op, ty.unsigned(), a, b),
            (Fault::SubSwapped, Sub) if int => with(op, ty, b, a),
            (Fault::DivByZero, Div) if int && b == 0 => 0,
            (Fault::RemByZero, Rem) if int && b == 0 => a,
            (Fault::DivOverflow, Div) if ty.is_signed_int() && a == lowest(ty) && b == mask(ty) => 0,
            (Fault::MulhiUnsigned, Mulhi) => with(op, ty.unsigned(), a, b),
            (Fault::MulLow, Mul) if int && ty.bits() == 64 => with(op, ty, a & 0xFFFF_FFFF, b),
            (Fault::AbsDiff, AbsDiff) if ty.is_signed_int() => vyre_scalar::unary(UnaryOp::Abs, ty, mode, with(Sub, ty, a, b)),
            (Fault::RotateWay, Rotr) => with(Rotl, ty, a, b),
            (Fault::SatAddWraps, SatAdd) => with(Add, ty, a, b),
            (Fault::SatSubFloor, SatSub) if ty.is_signed_int() && right == lowest(ty) => 0,
            (Fault::CompareUnsigned, Lt) if ty.is_signed_int() => with(op, ty.unsigned(), a, b),
            (Fault::NanCompare, Lt) if nan => 1,
            (Fault::NanUnequal, Ne) if nan => 0,
            (Fault::MinNan, Min) if nan => {
                if is_nan(ty, a) {
                    a
                } else {
                    b
                }
            }
            (Fault::MaxZero, Max) if ty.is_float() && (a | b) & !lowest(ty) == 0 => a,
            (Fault::RemFloored, Rem) if ty.is_float() && right & !lowest(ty) != 0 && (right ^ b) & lowest(ty) != 0 => {
                with(Add, ty, right, b)
            }
            (Fault::FlushSum, Add) if ty.is_float() => vyre_scalar::canonicalize(ty, FloatMode::Canonical, right),
            (Fault::CanonicalIgnored, Mul) if ty.is_float() => vyre_scalar::binary(op, ty, FloatMode::Ieee, a, b),
            (_, _) => right,
        }
    }

    fn ternary(&self, op: TernaryOp, ty: Scalar, mode: FloatMode, [a, b, c]: [u64; 3]) -> u64 {
        if self.is(Fault::FmaTwice) && op == TernaryOp::Fma {
            let product = vyre_scalar::binary(BinaryOp::Mul, ty, mode, a, b);
            return vyre_scalar::binary(BinaryOp::Add, ty, mode, product, c);
        }
        if self.is(Fault::SelectSwapped) && op == TernaryOp::Select && ty == Scalar::F32 {
            return vyre_scalar::ternary(op, ty, mode, a, c, b);
        }
        vyre_scalar::ternary(op, ty, mode, a, b, c)
    }

    fn cast(&self, from: Scalar, to: Scalar, mode: FloatMode, a: u64) -> u64 {
        let right = vyre_scalar::cast(from, to, mode, a);
        if self.is(Fault::CastSaturates) && from.is_float() && to.is_int() && to.bits() == 32 {
            return vyre_scalar::cast(from, Scalar::I64, mode, a) & mask(to);
        }
        if self.is(Fault::CastNan) && from.is_float() && to.is_signed_int() && is_nan(from, a) {
            return lowest(to);
        }
        if self.is(Fault::CastTruncates) && from == Scalar::U32 && to == Scalar::F32 && a > 1 << 24 {
            let kept = 64 - a.leading_zeros() - 24;
            return vyre_scalar::cast(from, to, mode, a >> kept << kept);
        }
        if self.is(Fault::CastSign) && from == Scalar::I32 && to.is_int() && to.bits() == 64 {
            return a;
        }
        right
    }

    fn load_bytes(&self, ty: &DataType, mode: FloatMode, bytes: &[u8], index: u32) -> Value {
        let right = vyre_scalar::memory::load(ty, mode, bytes, index);
        if self.is(Fault::LoadNan) && *ty == DataType::F32 && is_nan(Scalar::F32, right.scalar()) {
            return vyre_scalar::memory::load(&DataType::U32, mode, bytes, index);
        }
        if self.is(Fault::NibbleOrder) && ty.bits() == Some(4) {
            // An odd number of nibbles has no partner for the last.
            return vyre_scalar::memory::load(ty, mode, bytes, index ^ 1);
        }
        if self.is(Fault::BoolLoad) && *ty == DataType::Bool {
            return (vyre_scalar::memory::load(&DataType::U32, mode, bytes, index).scalar() & 1).into();
        }
        right
    }

    fn store_bytes(&self, ty: &DataType, mode: FloatMode, bytes: &mut [u8], index: u32, value: Value) {
        if self.is(Fault::ByteSaturates) && *ty == DataType::U8 {
            return vyre_scalar::memory::store(ty, mode, bytes, index, value.scalar().min(255).into());
        }
        vyre_scalar::memory::store(ty, mode, bytes, index, value);
        if self.is(Fault::HalfTruncates) && *ty == DataType::F16 {
            let stored = vyre_scalar::memory::load(ty, mode, bytes, index).scalar();
            let magnitude = |bits: u64| f32::from_bits(bits as u32).abs();
            let half = vyre_scalar::memory::load(&DataType::U16, mode, bytes, index).scalar();
            if magnitude(stored) > magnitude(value.scalar()) {
                vyre_scalar::memory::store(&DataType::U16, mode, bytes, index, (half - 1).into());
            }
        }
    }

    fn element(&self, index: u32, length: u32) -> Option<u32> {
        if self.is(Fault::LastElement) && index == length {
            return length.checked_sub(1);
        }
        let index = if self.is(Fault::IndexWraps) { index & 0x3FFF_FFFF } else { index };
        (index < length).then_some(index)
    }

    fn change(&self, op: AtomicOp, ty: Scalar, old: u64, operands: &[u64]) -> Option<u64> {
        let right = vyre_scalar::atomic(op, ty, old, operands);
        match (self.0, op) {
            (Fault::LostAtomic, AtomicOp::Add) => right.filter(|new| new & lowest(ty) == 0),
            (Fault::ExchangeAlways, AtomicOp::CompareExchange) => Some(operands[1]),
            (Fault::AtomicMaxUnsigned, AtomicOp::Max) => vyre_scalar::atomic(op, ty.unsigned(), old, operands),
            (_, _) => right,
        }
    }

    /// An id, if the fault is about it.
    fn builtin<O>(&self, builtin: Builtin, own: &Invocation, world: &World<'_, O, Self>) -> Option<u32> {
        let (shape, declared) = (world.shape, world.kernel.workgroup_size);
        let right = |builtin| own.builtin(builtin, world);
        match (self.0, builtin) {
            (Fault::IdsSwapped, Builtin::Local(Axis::Y)) => Some(right(Builtin::Local(Axis::Z))),
            (Fault::IdsSwapped, Builtin::Local(Axis::Z)) => Some(right(Builtin::Local(Axis::Y))),
            (Fault::LocalByte, Builtin::Local(_)) => Some(right(builtin) & 0xFF),
            (Fault::WorkgroupTransposed, Builtin::Workgroup(Axis::X)) => {
                Some(linear(own.group, shape.grid) / shape.grid[1] % shape.grid[0])
            }
            (Fault::WorkgroupTransposed, Builtin::Workgroup(Axis::Y)) => Some(linear(own.group, shape.grid) % shape.grid[1]),
            (Fault::InvocationPlane, Builtin::Invocation(Axis::Y)) => Some(own.group[1] * shape.workgroup_size[0] + own.local[1]),
            (Fault::OverrideIgnored, Builtin::Invocation(axis)) => {
                let n = linear(own.local, shape.workgroup_size);
                let local = crate::dispatch::position(n, declared);
                Some(own.group[axis as usize].wrapping_mul(declared[axis as usize]).wrapping_add(local[axis as usize]))
            }
            (Fault::PastFirstGroups, Builtin::Workgroup(Axis::X)) => Some(right(builtin).min(7)),
            (_, _) => None,
        }
    }
}

impl Faults for Faulty {
    fn value<O: Observer>(&self, id: ExprId, own: &Invocation, world: &mut World<'_, O, Self>) -> Option<Value> {
        let (kernel, mode) = (world.kernel, world.kernel.floats);
        let bits = match kernel.expr(id).kind {
            ExprKind::Unary { op, ty, operand } => self.unary(op, ty, mode, own.scalar(operand, world)),
            ExprKind::Binary { op, ty, left, right } => {
                self.binary(op, ty, mode, own.scalar(left, world), own.scalar(right, world))
            }
            ExprKind::Ternary { op, ty, operands } => {
                self.ternary(op, ty, mode, operands.map(|operand| own.scalar(operand, world)))
            }
            ExprKind::Cast { from, to, value } => self.cast(from, to, mode, own.scalar(value, world)),
            ExprKind::Load { buffer, index, .. } => {
                let index = self.element(own.scalar(index, world) as u32, world.length(buffer));
                let element = &kernel.buffer(buffer).element;
                let load = |index| self.load_bytes(element, mode, world.memory.bytes(buffer), index);
                return Some(index.map_or(Value::default(), load));
            }
            ExprKind::Extract { vector, component: 3 } if self.is(Fault::LastComponent) => own.value(vector, world).0[2],
            ExprKind::Len { buffer } if self.is(Fault::LengthRounded) => {
                let length = world.length(buffer);
                u64::from(length + (length & 1))
            }
            ExprKind::Var { var } if self.is(Fault::CounterByte) && kernel.var(var).kind == VarKind::Counter => {
                own.vars[var.index()].scalar().min(255)
            }
            ExprKind::Builtin { builtin } => u64::from(self.builtin(builtin, own, world)?),
            ExprKind::Lit { .. }
            | ExprKind::Var { .. }
            | ExprKind::Len { .. }
            | ExprKind::Bitcast { .. }
            | ExprKind::Vector { .. }
            | ExprKind::Extract { .. } => return None,
        };
        Some(bits.into())
    }

    fn execute<O: Observer>(&self, stmt: &Stmt, own: &mut Invocation, world: &mut World<'_, O, Self>) -> bool {
        let (kernel, mode, shape) = (world.kernel, world.kernel.floats, world.shape);
        let number = linear(own.local, shape.workgroup_size);
        let is_last = number + 1 == shape.group_invocations();
        let in_loops = own.frames.iter().filter(|frame| frame.counter.is_some()).count();
        let last_group = shape.grid.map(|groups| groups - 1);
        if self.is(Fault::LastInvocation) && is_last && shape.groups() > 1 && own.group == last_group {
            own.status = Status::Retired;
            return true;
        }
        match (self.0, stmt.kind) {
            (Fault::PartialGroup, StmtKind::Store { .. }) if number >= shape.group_invocations() / 4 * 4 => {}
            (_, StmtKind::Store { buffer, index, value, .. }) => {
                let (index, value) = (own.scalar(index, world) as u32, own.value(value, world));
                let (length, element) = (world.length(buffer), &kernel.buffer(buffer).element);
                if let Some(index) = self.element(index, length) {
                    self.store_bytes(element, mode, world.memory.bytes_mut(buffer), index, value);
                    if self.is(Fault::NeighbourByte) && element.bits() == Some(8) && index + 1 < length {
                        self.store_bytes(element, mode, world.memory.bytes_mut(buffer), index + 1, Value::default());
                    }
                }
            }
            (_, StmtKind::Atomic { result, op, buffer, index, operands, .. }) => {
                let index = own.scalar(index, world) as u32;
                let values: [u64; 2] = own.operands(&operands, world);
                let element = &kernel.buffer(buffer).element;
                let mut given = 0;
                if let Some(index) = self.element(index, world.length(buffer)) {
                    let bytes = world.memory.bytes_mut(buffer);
                    let old = self.load_bytes(element, mode, bytes, index).scalar();
                    let new = self.change(op, scalar_type(kernel, buffer), old, &values[..operands.len()]);
                    given = if self.is(Fault::AtomicNew) { new.unwrap_or(old) } else { old };
                    if let Some(new) = new {
                        self.store_bytes(element, mode, bytes, index, new.into());
                    }
                }
                if let Some(var) = result {
                    own.vars[var.index()] = given.into();
                }
            }
            (Fault::WideLow, StmtKind::Assign { var, value })
                if own.frames.len() > 1 && matches!(kernel.var(var).ty, ValueType::Scalar(ty) if ty.bits() == 64) =>
            {
                own.vars[var.index()] = (own.scalar(value, world) & 0xFFFF_FFFF).into();
            }
            (Fault::VectorAlias, StmtKind::Assign { var, value }) => {
                let ExprKind::Vector { components } = kernel.expr(value).kind else { return false };
                for (n, component) in components.into_iter().enumerate() {
                    own.vars[var.index()].0[n] = own.scalar(component, world);
                }
            }
            (Fault::LoopEnd | Fault::LoopSigned, StmtKind::Loop { counter, from, to, body }) => {
                let (from, mut to) = (own.scalar(from, world) as u32, own.scalar(to, world) as u32);
                if self.is(Fault::LoopEnd) && to.saturating_sub(from) >= 3 {
                    to -= 1;
                }
                if from < to && !(self.is(Fault::LoopSigned) && (to as i32) < 0) {
                    own.enter_loop(counter, from, to, body);
                }
            }
            (Fault::BreakLate, StmtKind::Break) => {
                own.end_iteration();
                if let Some((counter, to)) = own.frames.last_mut().and_then(|frame| frame.counter.as_mut()) {
                    let next = own.vars[counter.index()].scalar() as u32 + 1;
                    *to = (*to).min(next.saturating_add(1));
                }
            }
            (Fault::BreakOuter, StmtKind::Break) if in_loops > 1 => {
                own.leave_loop();
                own.leave_loop();
            }
            (Fault::ContinueBreaks, StmtKind::Continue) => {
                own.leave_loop();
            }
            (Fault::ReturnBreaks, StmtKind::Return) if in_loops > 0 => {
                own.leave_loop();
            }
            (Fault::MissedBarrier, StmtKind::Barrier) => {}
            (Fault::BarrierInLoop, StmtKind::Barrier) if in_loops > 0 => {}
            (Fault::SecondBarrier, StmtKind::Barrier) => {
                let first = kernel.stmts.iter().find(|stmt| matches!(stmt.kind, StmtKind::Barrier));
                return first.is_some_and(|first| first.node != stmt.node);
            }
            (Fault::BarrierValue, StmtKind::Barrier) if is_last => {
                if let Some(value) = own.vars.first_mut() {
                    *value = Value::default();
                }
                return false;
            }
            (Fault::GridValues, StmtKind::GridSync) => {
                own.vars.fill(Value::default());
                return false;
            }
            (
                _,
                StmtKind::Let { .. }
                | StmtKind::Assign { .. }
                | StmtKind::Subgroup { .. }
                | StmtKind::If { .. }
                | StmtKind::Loop { .. }
                | StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Return
                | StmtKind::Barrier
                | StmtKind::GridSync
                | StmtKind::Trap { .. }
                | StmtKind::Scope { .. },
            ) => return false,
        }
        true
    }

    fn iteration_ends<O: Observer>(&self, own: &mut Invocation, world: &mut World<'_, O, Self>) {
        if let (true, Some((counter, _))) = (self.is(Fault::BoundAgain), own.frames.last().and_then(|frame| frame.counter))
            && let StmtKind::Loop { to, .. } = world.kernel.stmt(world.kernel.var(counter).declared).kind
        {
            let to = own.scalar(to, world) as u32;
            if let Some(frame) = own.frames.last_mut() {
                frame.counter = Some((counter, to));
            }
        }
    }

    fn exchange(&self, op: SubgroupOp, ty: Scalar, mode: FloatMode, lanes: &[Lane], own: usize) -> Option<u64> {
        let right = |lanes: &[Lane]| subgroup::result(op, ty, mode, lanes, own);
        match (self.0, op.shape()) {
            (Fault::WrongLane, SubgroupShape::Shuffle(ShuffleFrom::Up)) => {
                let further: Vec<Lane> = lanes.iter().map(|lane| lane.map(|[value, by]| [value, by + 1])).collect();
                Some(right(&further))
            }
            (Fault::RetiredLanes, SubgroupShape::Reduce(_)) => {
                let present: Vec<Lane> = lanes.iter().map(|lane| Some(lane.unwrap_or_default())).collect();
                Some(right(&present))
            }
            (Fault::ScanExclusive, SubgroupShape::Exclusive(with)) => {
                let start = vyre_scalar::identity(with, ty);
                let lane = |lane: &Lane| lane.map_or(start, |operands| operands[0]);
                Some(lanes[..=own].iter().fold(start, |sum, value| vyre_scalar::reduce(with, ty, mode, sum, lane(value))))
            }
            (Fault::SubgroupOverflow, SubgroupShape::Shuffle(ShuffleFrom::Down)) => {
                let by = lanes[own].map_or(0, |[_, by]| by);
                (own as u64 + by >= lanes.len() as u64).then(|| lanes[0].map_or(0, |[value, _]| value))
            }
            (_, _) => None,
        }
    }

    fn keeps_memory(&self, when: Moment) -> bool {
        match when {
            Moment::GroupStarts => self.is(Fault::StaleMemory),
            Moment::GridSync => self.is(Fault::StaleAfterSync),
        }
    }

    fn skips_group(&self, n: u32, of: u32) -> bool {
        self.is(Fault::LostWorkgroup) && of >= 3 && n == of - 1
    }

    fn reports_last_trap(&self) -> bool {
        self.is(Fault::TrapLast)
    }
}
