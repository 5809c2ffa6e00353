//! How the value of one lane follows from that of another: what makes a value scalar code, an address, or a vector.
//!
//! Lanes are the invocations of one block, see [`Geometry`]. A value is *uniform* if it is the same for all lanes that compute it
//! together, *linear* if lane n has that of lane 0 plus n times a constant, modulo 2³², and *varying* otherwise. A uniform value is computed
//! once, a linear one is kept as that of lane 0.
//!
//! The analysis goes through the form until nothing changes, upwards from what is not known yet. A loop is *divergent* if lanes can leave
//! it, or go on with the next iteration, at different times.

use super::geometry::Geometry;
use vyre_foundation::ir::{Axis, BinaryOp, Builtin, UnaryOp};
use vyre_foundation::ssa::{Def, InstId, InstKind, Leaf, Op, RegionId, Ssa, Terminator, Value};
use vyre_spec::{Scalar, TernaryOp, ValueType};

/// How a value differs between lanes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shape {
    Uniform,
    Linear(u32),
    Varying,
}

impl Shape {
    fn linear(stride: u32) -> Shape {
        if stride == 0 { Shape::Uniform } else { Shape::Linear(stride) }
    }
}

/// The shapes of a form.
pub(crate) struct Shapes {
    /// By value; `None` if nothing reaches it.
    values: Vec<Option<Shape>>,
    /// By instruction: whether it is a loop that lanes leave at different times.
    divergent: Vec<bool>,
    /// By instruction: how control can leave it other than through its end.
    escapes: Vec<Escapes>,
    /// By value: how often it is used inside, not counting what goes from one iteration to the next.
    uses: Vec<u32>,
}

/// How control can leave an instruction, other than through its end.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Escapes {
    /// To the end or the next iteration of the loop around it.
    pub leaves_loop: bool,
    /// Out of the program.
    pub retires: bool,
}

impl Escapes {
    pub fn any(self) -> bool {
        self.leaves_loop || self.retires
    }

    fn or(self, other: Escapes) -> Escapes {
        Escapes { leaves_loop: self.leaves_loop || other.leaves_loop, retires: self.retires || other.retires }
    }
}

/// How often the form is gone through before loops are taken to carry anything.
const PATIENCE: u32 = 12;

impl Shapes {
    pub fn of(ssa: &Ssa, geometry: &Geometry) -> Shapes {
        let mut shapes = Shapes {
            values: vec![None; ssa.values.len()],
            divergent: vec![false; ssa.insts.len()],
            escapes: vec![Escapes::default(); ssa.insts.len()],
            uses: vec![0; ssa.values.len()],
        };
        shapes.count_uses(ssa, ssa.root, false);
        for (n, info) in ssa.values.iter().enumerate() {
            if let Def::Leaf(leaf) = info.def {
                shapes.values[n] = Some(leaf_shape(leaf, geometry));
            }
        }
        shapes.find_escapes(ssa, ssa.root);
        let mut rounds = 0;
        loop {
            let mut walk = Walk { ssa, shapes: &mut shapes, changed: false, loops: Vec::new(), give_up: rounds > PATIENCE };
            walk.region(ssa.root, false);
            if !walk.changed {
                return shapes;
            }
            rounds += 1;
        }
    }

    pub fn shape(&self, value: Value) -> Shape {
        self.values[value.index()].unwrap_or(Shape::Uniform)
    }

    pub fn is_divergent(&self, inst: InstId) -> bool {
        self.divergent[inst.index()]
    }

    pub fn escapes(&self, inst: InstId) -> Escapes {
        self.escapes[inst.index()]
    }

    fn count_uses(&mut self, ssa: &Ssa, region: RegionId, is_loop: bool) {
        let region = ssa.region(region);
        for id in &region.insts {
            let inst = ssa.inst(*id);
            inst.kind.for_each_operand(&mut |value| self.uses[value.index()] += 1);
            let is_loop = matches!(inst.kind, InstKind::Loop { .. });
            inst.kind.regions().for_each(|inner| self.count_uses(ssa, inner, is_loop));
        }
        if let (Terminator::Yield(values), false) = (&region.end, is_loop) {
            values.iter().for_each(|value| self.uses[value.index()] += 1);
        }
    }

    fn find_escapes(&mut self, ssa: &Ssa, region: RegionId) -> Escapes {
        let region = ssa.region(region);
        let mut all = match region.end {
            Terminator::Break(_) | Terminator::Continue(_) => Escapes { leaves_loop: true, retires: false },
            Terminator::Return | Terminator::Trap(_) => Escapes { leaves_loop: false, retires: true },
            Terminator::Yield(_) | Terminator::Unreachable => Escapes::default(),
        };
        for id in &region.insts {
            let mut own = Escapes::default();
            for inner in ssa.inst(*id).kind.regions() {
                own = own.or(self.find_escapes(ssa, inner));
            }
            if let InstKind::Loop { .. } = ssa.inst(*id).kind {
                own.leaves_loop = false;
            }
            self.escapes[id.index()] = own;
            all = all.or(own);
        }
        all
    }
}

fn leaf_shape(leaf: Leaf, geometry: &Geometry) -> Shape {
    match leaf {
        Leaf::Lit { .. } | Leaf::Len { .. } => Shape::Uniform,
        Leaf::Builtin { builtin } => match builtin {
            Builtin::Invocation(axis) | Builtin::Local(axis) => match axis {
                Axis::X if geometry.rows => Shape::Linear(1),
                Axis::X => Shape::Varying,
                Axis::Y | Axis::Z if geometry.rows || geometry.size[axis as usize] == 1 => Shape::Uniform,
                Axis::Y | Axis::Z => Shape::Varying,
            },
            Builtin::SubgroupLane => Shape::Varying,
            Builtin::Workgroup(_)
            | Builtin::InvocationCount(_)
            | Builtin::WorkgroupCount(_)
            | Builtin::LocalCount(_)
            | Builtin::SubgroupSize => Shape::Uniform,
        },
    }
}

struct Walk<'a> {
    ssa: &'a Ssa,
    shapes: &'a mut Shapes,
    changed: bool,
    /// The loops around, with whether control inside has diverged since each.
    loops: Vec<InstId>,
    give_up: bool,
}

impl Walk<'_> {
    fn get(&self, value: Value) -> Option<Shape> {
        self.shapes.values[value.index()]
    }

    fn set(&mut self, value: Value, shape: Option<Shape>) {
        let Some(shape) = shape else { return };
        let old = &mut self.shapes.values[value.index()];
        let new = match *old {
            None => shape,
            Some(old) if old == shape => return,
            Some(Shape::Varying) => return,
            Some(_) => Shape::Varying,
        };
        *old = Some(new);
        self.changed = true;
    }

    fn diverge(&mut self, inst: InstId) {
        self.changed |= !std::mem::replace(&mut self.shapes.divergent[inst.index()], true);
    }

    /// `diverged`: whether only some lanes of the innermost loop's iteration may be here.
    fn region(&mut self, region: RegionId, mut diverged: bool) {
        let ssa = self.ssa;
        for id in &ssa.region(region).insts {
            let inst = ssa.inst(*id);
            match &inst.kind {
                InstKind::Op(op) => {
                    let shape = self.op(op, ssa.value(inst.results[0]).ty);
                    self.set(inst.results[0], shape);
                }
                InstKind::Load { index, .. } => {
                    let shape = self.get(*index).map(|shape| match shape {
                        Shape::Uniform => Shape::Uniform,
                        Shape::Linear(_) | Shape::Varying => Shape::Varying,
                    });
                    self.set(inst.results[0], shape);
                }
                InstKind::Atomic { .. } | InstKind::Subgroup { .. } => {
                    inst.results.iter().for_each(|result| self.set(*result, Some(Shape::Varying)));
                }
                InstKind::If { cond, then, otherwise } => {
                    let splits = self.get(*cond) == Some(Shape::Varying);
                    self.region(*then, diverged || splits);
                    self.region(*otherwise, diverged || splits);
                    self.join(&inst.results, [*then, *otherwise], splits);
                    diverged |= splits && self.shapes.escapes(*id).any();
                }
                InstKind::Loop { from, to, inits, body } => {
                    self.repeat(*id, *from, *to, inits, *body);
                    diverged |= self.shapes.escapes(*id).retires;
                }
                InstKind::Store { .. } | InstKind::Barrier | InstKind::GridSync => {}
            }
        }
        match ssa.region(region).end {
            Terminator::Break(_) | Terminator::Continue(_) if diverged => {
                if let Some(innermost) = self.loops.last() {
                    self.diverge(*innermost);
                }
            }
            Terminator::Return | Terminator::Trap(_) => {
                for around in self.loops.clone() {
                    self.diverge(around);
                }
            }
            Terminator::Break(_) | Terminator::Continue(_) | Terminator::Yield(_) | Terminator::Unreachable => {}
        }
    }

    /// The results of an `if`.
    fn join(&mut self, results: &[Value], arms: [RegionId; 2], splits: bool) {
        let yields = arms.map(|arm| match &self.ssa.region(arm).end {
            Terminator::Yield(values) => Some(values),
            Terminator::Break(_)
            | Terminator::Continue(_)
            | Terminator::Return
            | Terminator::Trap(_)
            | Terminator::Unreachable => None,
        });
        for (n, result) in results.iter().enumerate() {
            match yields {
                [Some(then), Some(otherwise)] if splits && then[n] != otherwise[n] => self.set(*result, Some(Shape::Varying)),
                [then, otherwise] => {
                    for values in [then, otherwise].into_iter().flatten() {
                        let shape = self.get(values[n]);
                        self.set(*result, shape);
                    }
                }
            }
        }
    }

    fn repeat(&mut self, id: InstId, from: Value, to: Value, inits: &[Value], body: RegionId) {
        let ssa = self.ssa;
        let args = &ssa.region(body).args;
        self.set(args[0], self.get(from));
        if self.get(from).is_some_and(|shape| shape != Shape::Uniform)
            || self.get(to).is_some_and(|shape| shape != Shape::Uniform)
        {
            self.diverge(id);
        }
        for (arg, init) in args[1..].iter().zip(inits) {
            self.set(*arg, self.get(*init));
        }
        if self.give_up {
            args[1..].iter().for_each(|arg| self.set(*arg, Some(Shape::Varying)));
        }
        self.loops.push(id);
        self.region(body, false);
        self.loops.pop();
        let mut ends = Vec::new();
        ends_of_loop(ssa, body, &mut ends);
        let divergent = self.shapes.is_divergent(id);
        for (n, arg) in args[1..].iter().enumerate() {
            let mut next: Option<Value> = None;
            for (values, is_break) in &ends {
                if *is_break && divergent {
                    // Those who leave keep a value of their own, in the result.
                    continue;
                }
                let shape = self.get(values[n]);
                self.set(*arg, shape);
                if divergent && next.is_some_and(|next| next != values[n]) {
                    self.set(*arg, Some(Shape::Varying));
                }
                next = Some(values[n]);
            }
            // What is only counted for afterwards is counted by each lane for itself: those who have left keep theirs without ado.
            if divergent && self.get(*arg) == Some(Shape::Uniform) && self.is_tally(*arg, n, &ends) {
                self.set(*arg, Some(Shape::Varying));
            }
            let result = self.ssa.inst(id).results.get(n).copied();
            if let Some(result) = result {
                let shape = if divergent { Some(Shape::Varying) } else { self.get(*arg) };
                self.set(result, shape);
            }
        }
    }

    /// Whether a carried number is used for nothing inside but what it is in the next iteration.
    fn is_tally(&self, arg: Value, n: usize, ends: &[(&[Value], bool)]) -> bool {
        let uses = |value: Value| self.shapes.uses[value.index()];
        let mut steps = 0;
        let all = ends.iter().filter(|(_, is_break)| !is_break).all(|(values, _)| {
            let next = values[n];
            let is_step = matches!(
                self.ssa.op(next),
                Some(Op::Binary { op: BinaryOp::Add | BinaryOp::Sub, ty: Scalar::U32 | Scalar::I32, left, right })
                    if *left == arg || *right == arg
            );
            steps += u32::from(is_step);
            is_step && uses(next) == 0
        });
        all && steps == uses(arg)
    }

    fn op(&self, op: &Op, ty: ValueType) -> Option<Shape> {
        let operands = op.operands();
        let mut all_uniform = true;
        for operand in operands.iter() {
            all_uniform &= self.get(*operand)? == Shape::Uniform;
        }
        if all_uniform {
            return Some(Shape::Uniform);
        }
        let is_int32 = matches!(ty, ValueType::Scalar(Scalar::U32 | Scalar::I32));
        Some(if is_int32 { self.linear(op).unwrap_or(Shape::Varying) } else { Shape::Varying })
    }

    fn linear(&self, op: &Op) -> Option<Shape> {
        let stride = |value: Value| match self.get(value)? {
            Shape::Uniform => Some(0),
            Shape::Linear(stride) => Some(stride),
            Shape::Varying => None,
        };
        let literal = |value: Value| self.ssa.literal(value).map(|bits| bits as u32);
        match *op {
            Op::Binary { op, ty: Scalar::U32 | Scalar::I32, left, right } => match op {
                BinaryOp::Add => Some(Shape::linear(stride(left)?.wrapping_add(stride(right)?))),
                BinaryOp::Sub => Some(Shape::linear(stride(left)?.wrapping_sub(stride(right)?))),
                BinaryOp::Mul => match (literal(left), literal(right)) {
                    (_, Some(times)) => Some(Shape::linear(stride(left)?.wrapping_mul(times))),
                    (Some(times), None) => Some(Shape::linear(stride(right)?.wrapping_mul(times))),
                    (None, None) => None,
                },
                BinaryOp::Shl => Some(Shape::linear(stride(left)?.wrapping_shl(literal(right)?))),
                BinaryOp::Mulhi
                | BinaryOp::Div
                | BinaryOp::Rem
                | BinaryOp::AbsDiff
                | BinaryOp::Min
                | BinaryOp::Max
                | BinaryOp::BitAnd
                | BinaryOp::BitOr
                | BinaryOp::BitXor
                | BinaryOp::Shr
                | BinaryOp::Rotl
                | BinaryOp::Rotr
                | BinaryOp::SatAdd
                | BinaryOp::SatSub
                | BinaryOp::Copysign
                | BinaryOp::Pow
                | BinaryOp::And
                | BinaryOp::Or
                | BinaryOp::Eq
                | BinaryOp::Ne
                | BinaryOp::Lt
                | BinaryOp::Le
                | BinaryOp::Gt
                | BinaryOp::Ge => None,
            },
            Op::Unary { op: UnaryOp::Neg, ty: Scalar::U32 | Scalar::I32, operand } => {
                Some(Shape::linear(stride(operand)?.wrapping_neg()))
            }
            Op::Cast { from: Scalar::U32 | Scalar::I32, to: Scalar::U32 | Scalar::I32, value }
            | Op::Bitcast { from: Scalar::U32 | Scalar::I32, to: Scalar::U32 | Scalar::I32, value } => {
                Some(Shape::linear(stride(value)?))
            }
            Op::Ternary { op: TernaryOp::Select, operands: [cond, then, otherwise], .. } => {
                let same = self.get(cond)? == Shape::Uniform && stride(then)? == stride(otherwise)?;
                same.then_some(Shape::linear(stride(then)?))
            }
            Op::Unary { .. }
            | Op::Binary { .. }
            | Op::Ternary { .. }
            | Op::Cast { .. }
            | Op::Bitcast { .. }
            | Op::Vector { .. }
            | Op::Extract { .. } => None,
        }
    }
}

/// The values that a loop's body hands on, and whether it does so by leaving.
pub(crate) fn ends_of_loop<'a>(ssa: &'a Ssa, region: RegionId, ends: &mut Vec<(&'a [Value], bool)>) {
    collect_ends(ssa, region, ends);
    if let Terminator::Yield(values) = &ssa.region(region).end {
        ends.push((values, false));
    }
}

fn collect_ends<'a>(ssa: &'a Ssa, region: RegionId, ends: &mut Vec<(&'a [Value], bool)>) {
    for id in &ssa.region(region).insts {
        if let InstKind::If { then, otherwise, .. } = ssa.inst(*id).kind {
            collect_ends(ssa, then, ends);
            collect_ends(ssa, otherwise, ends);
        }
    }
    match &ssa.region(region).end {
        Terminator::Break(values) => ends.push((values, true)),
        Terminator::Continue(values) => ends.push((values, false)),
        Terminator::Yield(_) | Terminator::Return | Terminator::Trap(_) | Terminator::Unreachable => {}
    }
}
