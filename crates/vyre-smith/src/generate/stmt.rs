//! Statements, and where each kind may stand.

use super::config::Discipline;
use super::{Generator, LoopFrame, Variable};
use crate::values;
use vyre_foundation::ir::{
    Access, AtomicOp, Axis, BinaryOp, Builtin, Expr, Literal, Name, Node, Scalar, Subgroup, SubgroupOp, ValueType,
};
use vyre_foundation::memory_model::MemoryOrdering;
use vyre_spec::{Operand, ResultRule};

/// What the place of a statement allows.
#[derive(Clone, Copy)]
pub(super) struct Context {
    /// How deep bodies may still nest.
    pub depth: u32,
    /// Whether the whole workgroup gets here together.
    pub uniform: bool,
    /// Whether only blocks and regions are around.
    pub top: bool,
    /// Whether a barrier may stand here: control is uniform, and every loop around expects one.
    pub barriers: bool,
}

#[derive(Clone, Copy)]
enum Kind {
    Let,
    Assign,
    Store,
    Atomic,
    Subgroup,
    Branch,
    Repeat,
    Barrier,
    GridSync,
    Leave,
    Return,
    Trap,
    Scope,
    Exchange,
    Guard,
    March,
    Exits,
    Chain,
    Reload,
    Tickets,
    Neighbours,
    Aliases,
}

const KINDS: [Kind; 22] = [
    Kind::Let,
    Kind::Assign,
    Kind::Store,
    Kind::Atomic,
    Kind::Subgroup,
    Kind::Branch,
    Kind::Repeat,
    Kind::Barrier,
    Kind::GridSync,
    Kind::Leave,
    Kind::Return,
    Kind::Trap,
    Kind::Scope,
    Kind::Exchange,
    Kind::Guard,
    Kind::March,
    Kind::Exits,
    Kind::Chain,
    Kind::Reload,
    Kind::Tickets,
    Kind::Neighbours,
    Kind::Aliases,
];

impl Generator<'_> {
    /// The whole body: ids if they are not simple, statements until the budget is spent, and what shows the results.
    pub(super) fn top_level(&mut self) -> Vec<Node> {
        let mut nodes = Vec::new();
        if !self.shape.flat() {
            let axes = |id: fn(Axis) -> Builtin| Axis::ALL.map(|axis| Expr::builtin(id(axis)));
            let linear =
                |[x, y, z]: [Expr; 3], [nx, ny, _]: [Expr; 3]| Expr::add(Expr::mul(Expr::add(Expr::mul(z, ny), y), nx), x);
            let ids = match self.config.overridable {
                true => {
                    let own = linear(axes(Builtin::Invocation), axes(Builtin::InvocationCount));
                    vec![(self.names.group.clone(), own, false)]
                }
                false => {
                    let local = linear(axes(Builtin::Local), axes(Builtin::LocalCount));
                    let group = linear(axes(Builtin::Workgroup), axes(Builtin::WorkgroupCount));
                    vec![(self.names.local.clone(), local, false), (self.names.group.clone(), group, true)]
                }
            };
            for (name, value, uniform) in ids {
                nodes.push(Node::let_bind(&name, value));
                self.variables.push(Variable { name, ty: Scalar::U32.into(), uniform, assignable: false });
                self.steps += 1;
            }
        }
        for b in 0..self.buffers.len() {
            if self.buffers[b].access.is_input() && self.dna.chance(60) {
                let Some(index) = self.load_target(b, 1) else { continue };
                let load = Expr::load(&self.buffers[b].name, index);
                let name = self.declare(self.buffers[b].value, false);
                nodes.push(Node::let_bind(name, load));
                self.steps += 1;
            }
        }
        self.crowd(&mut nodes);
        let context = Context { depth: self.config.depth, uniform: true, top: true, barriers: true };
        while self.budget > 0 && !self.dna.is_empty() {
            self.statement(context, &mut nodes);
        }
        self.show(if self.config.crowd > 0 { usize::MAX } else { 4 }, &mut nodes);
        nodes
    }

    /// A body of its own scope.
    pub(super) fn body(&mut self, context: Context) -> Vec<Node> {
        let (visible, reusable) = (self.variables.len(), self.reusable.len());
        let mut nodes = Vec::new();
        loop {
            self.statement(context, &mut nodes);
            if self.budget == 0 || !self.dna.chance(55) {
                break;
            }
        }
        if self.dna.chance(25) {
            self.show(1, &mut nodes);
        }
        self.steps += self.iterations;
        self.end_scope(visible, reusable);
        nodes
    }

    pub(super) fn end_scope(&mut self, visible: usize, reusable: usize) {
        self.ended.extend(self.variables.drain(visible..).map(|var| var.name));
        self.reusable.truncate(reusable);
    }

    pub(super) fn fresh_name(&mut self) -> Name {
        if !self.ended.is_empty() && self.dna.chance(15) {
            let name = self.dna.pick(&self.ended);
            if self.variables.iter().all(|var| var.name != name) {
                return name;
            }
        }
        if self.dna.chance(2) {
            // A name that has to be quoted, or that a pass might make.
            let stem = if self.dna.chance(50) { "odd name " } else { "cse" };
            return format!("{stem}{}", self.next_name()).into();
        }
        let n = self.next_name();
        self.names.variable(n)
    }

    pub(super) fn next_name(&mut self) -> usize {
        self.next_name += 1;
        self.next_name - 1
    }

    pub(super) fn declare(&mut self, ty: ValueType, uniform: bool) -> Name {
        let name = self.fresh_name();
        self.variables.push(Variable { name: name.clone(), ty, uniform, assignable: true });
        name
    }

    fn statement(&mut self, context: Context, nodes: &mut Vec<Node>) {
        self.budget = self.budget.saturating_sub(1);
        self.steps += self.iterations;
        let w = self.config.weights;
        let if_ = |allowed: bool, weight: u32| if allowed { weight } else { 0 };
        let nests = context.depth > 0 && self.budget > 0;
        let leaves = self.loops.last().is_some_and(|frame| {
            if frame.synchronises { frame.begins_with_barrier && context.uniform } else { !frame.uniform || context.uniform }
        });
        let ways_out = self.leaves_apart() || w.return_ > 0;
        let weights = [
            w.let_,
            w.assign,
            w.store,
            w.atomic,
            if_(context.uniform && self.subgroup.is_some(), w.subgroup),
            if_(nests, w.branch),
            if_(nests, w.repeat),
            if_(context.barriers, w.barrier),
            if_(context.top, w.grid_sync),
            if_(leaves, w.leave),
            w.return_,
            w.trap,
            if_(nests, w.scope),
            if_(context.barriers, w.exchange),
            w.guard,
            w.march,
            if_(ways_out, if self.leaves_apart() { w.exits } else { w.exits / 4 }),
            w.chain,
            if_(context.barriers, w.reload),
            w.tickets,
            w.neighbours,
            w.aliases,
        ];
        match KINDS[self.dna.weighted(&weights)] {
            Kind::Let => self.let_(context, nodes),
            Kind::Assign => self.assign(context, nodes),
            Kind::Store => self.store(nodes),
            Kind::Atomic => self.atomic(nodes),
            Kind::Subgroup => self.subgroup(nodes),
            Kind::Branch => self.branch(context, nodes),
            Kind::Repeat => self.repeat(context, nodes),
            Kind::Barrier => {
                let kept = self.outlived(context, nodes);
                nodes.push(self.barrier());
                kept.iter().for_each(|kept| self.show_variable(kept, nodes));
            }
            Kind::GridSync => {
                let kept = self.outlived(context, nodes);
                nodes.push(self.grid_sync());
                kept.iter().for_each(|kept| self.show_variable(kept, nodes));
            }
            Kind::Exchange => self.exchange(context, nodes),
            Kind::Guard => self.guard(context, nodes),
            Kind::March => self.march(nodes),
            Kind::Exits => self.exits(nodes),
            Kind::Chain => self.chain(nodes),
            Kind::Reload => self.reload(nodes),
            Kind::Tickets => self.tickets(context, nodes),
            Kind::Neighbours => self.neighbours(nodes),
            Kind::Aliases => self.aliases(nodes),
            Kind::Leave => self.leave(context, nodes),
            Kind::Return => self.retire(Node::Return, nodes),
            Kind::Trap => {
                let tag = self.dna.below(1000);
                self.retire(Node::trap(tag), nodes);
            }
            Kind::Scope => {
                let inner = Context { depth: context.depth - 1, ..context };
                let body = self.body(inner);
                nodes.push(if self.dna.chance(50) { Node::block(body) } else { Node::region("part", body) });
            }
        }
    }

    pub(super) fn let_(&mut self, context: Context, nodes: &mut Vec<Node>) {
        if self.dna.chance(3) {
            let (ty, value) = self.mixed();
            let name = self.declare(ty.into(), false);
            return nodes.push(Node::let_bind(name, value));
        }
        let ty = self.any_type();
        let uniform = context.uniform && self.dna.chance(35);
        let value = self.value(ty, self.config.expr_depth, uniform);
        let name = self.declare(ty, uniform);
        nodes.push(Node::let_bind(name, value));
    }

    pub(super) fn assign(&mut self, context: Context, nodes: &mut Vec<Node>) {
        // A variable that counts as uniform stays so: it is changed under uniform control only, to uniform values.
        let fits = |var: &&Variable| var.assignable && (!var.uniform || context.uniform);
        let count = self.variables.iter().filter(fits).count();
        if count == 0 {
            return self.let_(context, nodes);
        }
        let n = self.dna.below(count as u32) as usize;
        let Some(var) = self.variables.iter().filter(fits).nth(n).cloned() else { return };
        let value = match var.ty {
            ValueType::Vector(_, count) if self.dna.chance(40) => self.exchanged(&var.name, count),
            ValueType::Vector(..) | ValueType::Scalar(_) => self.value(var.ty, self.config.expr_depth, var.uniform),
        };
        nodes.push(Node::assign(var.name, value));
    }

    /// Now and then a value made of a variable that is assigned right afterwards: whoever makes the value again where it is used, instead
    /// of keeping it, makes it of the wrong one.
    fn outlived(&mut self, context: Context, nodes: &mut Vec<Node>) -> Option<Variable> {
        if !self.dna.chance(30) {
            return None;
        }
        let number = |var: &Variable| var.ty.scalar().filter(|scalar| *scalar != Scalar::Bool);
        let fits = |var: &&Variable| var.assignable && number(var).is_some() && (!var.uniform || context.uniform);
        let candidates: Vec<Variable> = self.variables.iter().filter(fits).cloned().collect();
        let var = candidates.get(self.dna.below(candidates.len().max(1) as u32) as usize)?;
        let ty = number(var)?;
        let op = self.dna.pick(&[BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul, BinaryOp::Min]);
        let value = Expr::binary(op, Expr::var(&var.name), Expr::Lit(values::literal(&mut self.dna, ty)));
        // Nothing may assign it, or it is no value that could be made again.
        let name = self.fresh_name();
        let kept = Variable { name: name.clone(), ty: var.ty, uniform: var.uniform, assignable: false };
        self.variables.push(kept.clone());
        nodes.push(Node::let_bind(name, value));
        let other = self.value(var.ty, 1, var.uniform);
        nodes.push(Node::assign(&var.name, other));
        self.steps += 3 * self.iterations;
        Some(kept)
    }

    /// The vector that a variable holds, made of its components in some order.
    fn exchanged(&mut self, name: &Name, count: u8) -> Expr {
        let components = (0..count).map(|_| Expr::extract(Expr::var(name), self.dna.below(u32::from(count)) as u8));
        Expr::vector(components.collect::<Vec<_>>())
    }

    pub(super) fn store(&mut self, nodes: &mut Vec<Node>) {
        let count = self.buffers.len();
        let start = self.dna.below(count as u32) as usize;
        for b in (0..count).map(|n| (start + n) % count) {
            let shows_only = self.buffers[b].sink && self.dna.chance(60);
            if self.buffers[b].access.is_writable() && !shows_only && self.store_to(b, nodes) {
                return;
            }
        }
    }

    /// A store to this buffer, if the rules of memory allow one.
    pub(super) fn store_to(&mut self, b: usize, nodes: &mut Vec<Node>) -> bool {
        let Some(target) = self.store_target(b, 1) else { return false };
        let ty = self.buffers[b].value;
        let value = match target.value {
            Some(literal) => Expr::Lit(literal),
            None => match self.narrowed(b) {
                Some(value) => value,
                None => self.value(ty, self.config.expr_depth, false),
            },
        };
        nodes.push(Node::store(&self.buffers[b].name, target.index, value));
        true
    }

    /// A float made an integer, for a buffer whose integers are narrower than those.
    fn narrowed(&mut self, b: usize) -> Option<Expr> {
        let narrow = self.buffers[b].element.bits().is_some_and(|bits| bits < 32);
        let to = self.buffers[b].value.scalar().filter(|scalar| narrow && matches!(scalar, Scalar::U32 | Scalar::I32))?;
        let from = self.dna.pick(&[Scalar::F32, Scalar::F32, Scalar::F64]);
        if !self.config.has(from) || !self.dna.chance(25) {
            return None;
        }
        Some(Expr::cast(to, self.expr(from, 1, false)))
    }

    fn atomic(&mut self, nodes: &mut Vec<Node>) {
        let count = self.buffers.len();
        let start = self.dna.below(count as u32) as usize;
        for b in (0..count).map(|n| (start + n) % count) {
            if self.buffers[b].takes_atomics() && self.atomic_on(b, nodes) {
                return;
            }
        }
        self.store(nodes);
    }

    /// An atomic on this buffer, if the rules of memory allow one.
    fn atomic_on(&mut self, b: usize, nodes: &mut Vec<Node>) -> bool {
        let Some(target) = self.atomic_target(b, 1) else { return false };
        let op: AtomicOp = self.dna.pick(&target.class.ops());
        let ty = self.buffers[b].value;
        let scalar = ty.scalar().unwrap_or(Scalar::U32);
        let operands = op.info().operands.iter().map(|_| self.expr(scalar, 2, false)).collect();
        let gives = op.info().result != ResultRule::None;
        let name = &self.buffers[b].name.clone();
        let node = match (gives, target.result) {
            (true, true) => Node::let_atomic(self.declare(ty, false), op, name, target.index, operands),
            // A result that nobody can look at: its name is in nobody's scope.
            (true, false) if self.dna.chance(30) => {
                let hidden = Name::from(format!("unused{}", self.next_name()));
                Node::let_atomic(hidden, op, name, target.index, operands)
            }
            (true | false, _) => Node::atomic(op, name, target.index, operands),
        };
        nodes.push(node);
        if target.result && self.config.discipline == Discipline::Ordered {
            self.show(1, nodes);
        }
        true
    }

    fn subgroup(&mut self, nodes: &mut Vec<Node>) {
        let op: SubgroupOp = self.dna.pick(SubgroupOp::ALL);
        let info = op.info();
        let types: Vec<Scalar> = info.over.iter().filter(|scalar| self.config.has(*scalar)).collect();
        if types.is_empty() {
            return;
        }
        let ty = self.dna.pick(&types);
        let lanes = self.subgroup.unwrap_or(4);
        let operands = info
            .operands
            .iter()
            .map(|operand| match operand {
                Operand::T => self.expr(ty, 2, false),
                Operand::Fixed(_) => self.lane(op, lanes),
            })
            .collect();
        let node = match info.result_type(ty) {
            Some(result) if self.dna.chance(90) => Node::let_subgroup(self.declare(result.into(), false), op, operands),
            Some(_) | None => Subgroup { result: None, op, operands }.into(),
        };
        nodes.push(node);
    }

    /// The lane operand: mostly one that exists.
    fn lane(&mut self, op: SubgroupOp, lanes: u32) -> Expr {
        let uniform = op == SubgroupOp::Broadcast;
        match self.dna.below(4) {
            0 | 1 => Expr::u32(self.dna.below(lanes + 2)),
            2 => Expr::rem(self.expr(Scalar::U32, 1, uniform), Expr::u32(lanes)),
            _ => self.expr(Scalar::U32, 1, uniform),
        }
    }

    pub(super) fn barrier(&mut self) -> Node {
        self.new_group_epoch();
        let orderings = [MemoryOrdering::SeqCst, MemoryOrdering::Acquire, MemoryOrdering::Release, MemoryOrdering::AcqRel];
        let ordering = if self.dna.chance(80) { MemoryOrdering::SeqCst } else { self.dna.pick(&orderings) };
        Node::barrier_with_ordering(ordering)
    }

    fn grid_sync(&mut self) -> Node {
        self.new_grid_epoch();
        Node::barrier_with_ordering(MemoryOrdering::GridSync)
    }

    /// Hands values on: everybody writes, all wait, everybody reads what others wrote.
    fn exchange(&mut self, context: Context, nodes: &mut Vec<Node>) {
        let candidates: Vec<usize> =
            (0..self.buffers.len()).filter(|b| self.buffers[*b].access.is_writable() && !self.buffers[*b].sink).collect();
        if candidates.is_empty() {
            return self.store(nodes);
        }
        let b = self.dna.pick(&candidates);
        let storage = self.buffers[b].access != Access::Workgroup;
        let whole_grid = storage && context.top && self.config.weights.grid_sync > 0 && self.dna.chance(50);
        let wait = |generator: &mut Self, nodes: &mut Vec<Node>| {
            generator.steps += generator.iterations;
            nodes.push(if whole_grid { generator.grid_sync() } else { generator.barrier() });
        };
        if self.dna.chance(50) {
            wait(self, nodes);
        }
        let gathers = self.buffers[b].takes_atomics() && self.config.weights.atomic > 0 && self.dna.chance(50);
        let before = nodes.len();
        if gathers {
            self.atomic_on(b, nodes)
        } else {
            self.store_to(b, nodes)
        };
        if nodes.len() == before {
            return;
        }
        wait(self, nodes);
        self.share(b, whole_grid);
        let Some(index) = self.load_target(b, 2) else { return };
        let load = Expr::load(&self.buffers[b].name, index);
        let name = self.declare(self.buffers[b].value, false);
        self.steps += 2 * self.iterations;
        nodes.push(Node::let_bind(name, load));
    }

    /// Leaves the innermost loop or cuts its iteration short.
    fn leave(&mut self, context: Context, nodes: &mut Vec<Node>) {
        let Some(frame) = self.loops.last() else { return };
        let uniform = frame.uniform;
        let node = if self.dna.chance(50) { Node::Break } else { Node::Continue };
        if frame.synchronises {
            let roles = self.roles.clone();
            if let Some(frame) = self.loops.last_mut() {
                frame.left_with.push(roles);
            }
        }
        if self.dna.chance(80) {
            let cond = self.expr(Scalar::Bool, 2, uniform && context.uniform);
            self.steps += self.iterations;
            nodes.push(Node::if_then(cond, vec![node]));
        } else {
            nodes.push(node);
        }
    }

    fn retire(&mut self, node: Node, nodes: &mut Vec<Node>) {
        if self.dna.chance(92) {
            // Few of the invocations.
            let left = self.expr(Scalar::U32, 1, false);
            let cond = match self.dna.below(3) {
                0 => Expr::eq(left, Expr::u32(self.dna.below(8))),
                1 => Expr::gt(left, Expr::u32(self.shape.group() / 2)),
                _ => self.expr(Scalar::Bool, 2, false),
            };
            self.steps += self.iterations * 2;
            nodes.push(Node::if_then(cond, vec![node]));
        } else {
            nodes.push(node);
        }
    }

    fn branch(&mut self, context: Context, nodes: &mut Vec<Node>) {
        let uniform = context.uniform && self.dna.chance(40);
        let cond = if !uniform && self.dna.chance(40) { self.split() } else { self.expr(Scalar::Bool, 2, uniform) };
        let changed = self.dna.chance(12).then(|| self.declare(Scalar::Bool.into(), uniform));
        let cond = match &changed {
            Some(name) => {
                nodes.push(Node::let_bind(name, cond));
                self.steps += self.iterations;
                Expr::var(name)
            }
            None => cond,
        };
        let inner = Context { depth: context.depth - 1, uniform, top: false, barriers: context.barriers && uniform };
        // Where no barrier separates two iterations of a loop around, one iteration may take one arm and the next the other: the
        // roles of both arms then meet in one epoch, as they do when invocations take different arms.
        let apart = uniform && self.loops.iter().all(|frame| frame.synchronises);
        let before = apart.then(|| self.roles.clone());
        let mut then = self.body(inner);
        let after_then = before.map(|before| std::mem::replace(&mut self.roles, before));
        let mut otherwise = if self.dna.chance(40) { self.body(inner) } else { Vec::new() };
        if let Some(after_then) = after_then {
            Self::join(&mut self.roles, &after_then);
        }
        if let Some(name) = changed {
            let not = || Expr::not(Expr::var(&name));
            self.change(&name, not(), uniform, &mut then);
            if !otherwise.is_empty() && self.dna.chance(50) {
                self.change(&name, not(), uniform, &mut otherwise);
            }
        }
        nodes.push(Node::if_then_else(cond, then, otherwise));
    }

    fn repeat(&mut self, context: Context, nodes: &mut Vec<Node>) {
        let mut uniform = context.uniform && self.dna.chance(60);
        let most = (self.config.iterations / self.iterations.max(1)).min(u64::from(self.config.trips)) as u32;
        if most == 0 {
            return self.store(nodes);
        }
        let synchronises = uniform && context.barriers && self.config.weights.barrier > 0 && self.dna.chance(60);
        let begins_with_barrier = synchronises && self.dna.chance(60);
        // A loop that any invocation may leave at any time is not uniform inside.
        let uniform_body = uniform && (synchronises || self.dna.chance(70));
        let changes = self.dna.chance(22);
        // What the body changes is as uniform as the body.
        uniform &= uniform_body || !changes;
        let ((from, to, iterations), changed) = if changes {
            let (bounds, name) = self.variable_bounds(most, uniform, nodes);
            (bounds, Some(name))
        } else {
            (self.bounds(most, uniform), None)
        };
        let far = !changes && !synchronises && most > 1 && self.dna.chance(10);
        let far = far.then(|| self.far_bounds(most - 1, uniform && uniform_body, nodes));
        let (from, to, iterations) = match &far {
            Some((from, to, _)) => (from.clone(), to.clone(), most),
            None => (from, to, iterations),
        };
        let before = self.roles.clone();

        let (visible, reusable) = (self.variables.len(), self.reusable.len());
        let var = self.fresh_name();
        self.variables.push(Variable { name: var.clone(), ty: Scalar::U32.into(), uniform, assignable: false });
        let counter = var.clone();
        self.loops.push(LoopFrame { counter, uniform: uniform_body, begins_with_barrier, synchronises, left_with: Vec::new() });
        let outer = self.iterations;
        self.iterations *= u64::from(iterations.max(1));
        let mut body = Vec::new();
        if begins_with_barrier {
            body.push(self.barrier());
            self.steps += self.iterations;
        }
        if let Some((from, _, most)) = far {
            let gone = Expr::sub(Expr::var(&var), from);
            body.push(Node::if_then(Expr::ge(gone, most), vec![Node::Break]));
            self.steps += 2 * self.iterations;
        }
        let carried =
            if self.dna.chance(if synchronises { 40 } else { 20 }) { self.carry(uniform_body, &mut body) } else { None };
        let next = carried.as_ref().and_then(|var| self.ahead(var, synchronises, &mut body));
        let inner = Context { depth: context.depth - 1, uniform: uniform_body, top: false, barriers: synchronises };
        let exits = self.config.weights.exits > 0 && self.leaves_apart();
        if exits && self.dna.chance(15) {
            self.exits(&mut body);
        }
        body.extend(self.body(inner));
        if exits && self.dna.chance(15) {
            self.exits(&mut body);
        }
        if let Some(name) = changed {
            let value = self.moved(&name);
            self.change(&name, value, uniform, &mut body);
        }
        if let Some(var) = carried {
            let value = match next {
                Some(next) => Expr::var(next),
                None => self.value(var.ty, self.config.expr_depth, var.uniform),
            };
            body.push(Node::assign(var.name, value));
            self.steps += self.iterations;
        }
        if synchronises && !begins_with_barrier {
            body.push(self.barrier());
            self.steps += self.iterations;
        }
        self.iterations = outer;
        let frame = self.loops.pop();
        self.end_scope(visible, reusable);
        if synchronises {
            // After no iteration, after the last, or from where it was left.
            Self::join(&mut self.roles, &before);
            for roles in frame.into_iter().flat_map(|frame| frame.left_with) {
                Self::join(&mut self.roles, &roles);
            }
        }
        nodes.push(Node::loop_for(var, from, to, body));
    }

    /// Bounds of a loop, and how many iterations it takes at most.
    fn bounds(&mut self, most: u32, uniform: bool) -> (Expr, Expr, u32) {
        match self.dna.below(12) {
            0..=2 => {
                let (from, iterations) = (self.dna.below(4), self.dna.below(most + 1));
                (Expr::u32(from), Expr::u32(from + iterations), iterations)
            }
            3 => {
                let to = Expr::min(self.expr(Scalar::U32, 1, uniform), Expr::u32(most));
                (Expr::u32(self.dna.below(3)), to, most)
            }
            4 => (Expr::u32(0), Expr::rem(self.expr(Scalar::U32, 1, uniform), Expr::u32(most + 1)), most),
            5 => {
                let from = Expr::rem(self.expr(Scalar::U32, 1, uniform), Expr::u32(most + 1));
                (from, Expr::u32(most), most)
            }
            6 => (Expr::u32(u32::MAX - self.dna.below(most)), Expr::u32(u32::MAX), most),
            7 => {
                let back = Expr::rem(self.expr(Scalar::U32, 1, uniform), Expr::u32(most + 1));
                (Expr::sub(Expr::u32(u32::MAX), back), Expr::u32(u32::MAX), most)
            }
            8 | 9 => {
                let b = self.dna.below(self.buffers.len() as u32) as usize;
                let length = Expr::buf_len(&self.buffers[b].name);
                // The longest is known where buffers are short.
                let longest = super::max_length(self.shape.invocations());
                match most >= longest {
                    true => (Expr::u32(self.dna.below(2)), length, longest),
                    false => (Expr::u32(0), Expr::min(length, Expr::u32(most)), most),
                }
            }
            10 => {
                let least = most - most / 2;
                (Expr::u32(0), Expr::u32(least + self.dna.below(most / 2 + 1)), most)
            }
            // No iteration at all.
            _ => (Expr::u32(self.dna.below(1000) + 1), Expr::u32(self.dna.below(2)), 1),
        }
    }

    /// Bounds that are half of all numbers apart or more, and after how many iterations the loop is left.
    fn far_bounds(&mut self, most: u32, uniform: bool, nodes: &mut Vec<Node>) -> (Expr, Expr, Expr) {
        let from = self.dna.below(3);
        let to = match self.dna.below(4) {
            0 => Expr::u32(u32::MAX),
            1 => Expr::u32(0x8000_0000 + self.dna.below(4)),
            2 => Expr::sub(Expr::u32(u32::MAX), Expr::u32(self.dna.below(4))),
            _ => Expr::bitor(self.expr(Scalar::U32, 1, uniform), Expr::u32(0xC000_0000)),
        };
        let most = match self.dna.chance(50) {
            true => Expr::u32(1 + self.dna.below(most)),
            false => {
                let number = Expr::rem(self.expr(Scalar::U32, 1, uniform), Expr::u32(most + 1));
                let name = self.fresh_name();
                nodes.push(Node::let_bind(&name, number));
                self.steps += self.iterations;
                self.variables.push(Variable { name: name.clone(), ty: Scalar::U32.into(), uniform, assignable: false });
                Expr::var(name)
            }
        };
        (Expr::u32(from), to, most)
    }

    /// Stores that show the latest variables in the output, so that a wrong value is a wrong byte. A word that is shown in keeps
    /// what was shown before, mixed with the new.
    fn show(&mut self, most: usize, nodes: &mut Vec<Node>) {
        for n in (self.variables.len().saturating_sub(most)..self.variables.len()).rev() {
            self.show_variable(&self.variables[n].clone(), nodes);
        }
    }

    pub(super) fn show_variable(&mut self, var: &Variable, nodes: &mut Vec<Node>) {
        let Some(b) = self.buffers.iter().position(|buffer| buffer.sink) else { return };
        let Some(target) = self.store_target(b, 1) else { return };
        let (shown, from) = match var.ty {
            ValueType::Scalar(scalar) => (Expr::var(&var.name), scalar),
            ValueType::Vector(scalar, count) => {
                (Expr::extract(Expr::var(&var.name), self.dna.below(u32::from(count)) as u8), scalar)
            }
        };
        let value = match self.buffers[b].value {
            ValueType::Scalar(Scalar::U32) => {
                let before = Expr::load(&self.buffers[b].name, target.index.clone());
                Expr::bitxor(Expr::mul(before, Expr::u32(0x0100_0193)), convert(shown, from, Scalar::U32))
            }
            ValueType::Scalar(to) => convert(shown, from, to),
            ValueType::Vector(to, count) => {
                let mut parts = vec![convert(shown, from, to)];
                parts.resize_with(usize::from(count), || Expr::Lit(Literal::from_bits(to, 1)));
                Expr::vector(parts)
            }
        };
        self.steps += self.iterations;
        nodes.push(Node::store(&self.buffers[b].name, target.index, value));
    }
}

/// The value as another type, losing as little as can be.
fn convert(value: Expr, from: Scalar, to: Scalar) -> Expr {
    if from == to {
        value
    } else if from.bits() == to.bits() {
        Expr::bitcast(to, value)
    } else if to == Scalar::Bool && from.is_float() {
        Expr::lt(value, Expr::Lit(Literal::from_bits(from, 0)))
    } else if from == Scalar::F64 {
        let bits = Expr::bitcast(Scalar::U64, value);
        convert(Expr::bitxor(bits.clone(), Expr::shr(bits, Expr::u32(32))), Scalar::U64, to)
    } else {
        Expr::cast(to, value)
    }
}
