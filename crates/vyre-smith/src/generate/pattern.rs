//! Patterns: statements made together because it is together that they go wrong.
//!
//! Each is something that compilers have got wrong and that single statements drawn one by one hardly ever come to: a bound that the
//! body changes, one invocation leaving a loop in the iteration in which another retires, the same load on both sides of a barrier.
//! For each there is a cell in `coverage/pattern.rs`, read off the programs, which tells when it gets lost.

use super::expr::{Production, productions};
use super::stmt::Context;
use super::{Generator, LoopFrame, Variable};
use crate::values;
use vyre_foundation::ir::{Access, AtomicOp, Expr, Literal, Name, Node, Scalar, ValueType};
use vyre_spec::Operand;

impl Generator<'_> {
    /// Whether invocations may leave the innermost loop, or an iteration of it, each by itself.
    pub fn leaves_apart(&self) -> bool {
        self.loops.last().is_some_and(|frame| !frame.synchronises && !frame.uniform)
    }

    /// A condition that is likely to hold for some invocations of a workgroup and not for others, and in a loop not always for the
    /// same. No memory has a part in it.
    pub fn split(&mut self) -> Expr {
        let mut number = self.lane_number();
        if let Some(counter) = self.loops.last().map(|frame| frame.counter.clone())
            && self.dna.chance(50)
        {
            number = Expr::add(number, Expr::var(counter));
        }
        match self.dna.below(4) {
            0 => Expr::lt(number, Expr::u32(1 + self.dna.below(6))),
            1 => Expr::eq(Expr::rem(number, Expr::u32(2 + self.dna.below(3))), Expr::u32(self.dna.below(2))),
            2 => Expr::ne(Expr::bitand(number, Expr::u32(1 + self.dna.below(6))), Expr::u32(0)),
            _ => Expr::eq(number, Expr::u32(self.dna.below(8))),
        }
    }

    /// A condition that is the same for a workgroup; no memory has a part in it.
    fn together(&mut self) -> Expr {
        let counter = self.loops.iter().rev().find(|frame| frame.uniform).map(|frame| frame.counter.clone());
        match counter {
            Some(counter) => Expr::eq(Expr::bitand(Expr::var(counter), Expr::u32(1)), Expr::u32(self.dna.below(2))),
            None => Expr::bool(true),
        }
    }

    /// Puts an assignment somewhere into a body, now and then under a condition of its own. The value must not depend on where that
    /// is, so no memory may have a part in it.
    pub fn change(&mut self, name: &Name, value: Expr, uniform: bool, body: &mut Vec<Node>) {
        let assign = Node::assign(name, value);
        let node = match (self.dna.chance(40), uniform) {
            (false, _) => assign,
            (true, true) => Node::if_then(self.together(), vec![assign]),
            (true, false) => Node::if_then(self.split(), vec![assign]),
        };
        self.steps += 2 * self.iterations;
        let mut place = self.dna.below(body.len() as u32 + 1) as usize;
        // Not between the assignment of a bound and its loop, which would then have any number of iterations.
        while place > 0
            && place < body.len()
            && matches!(&body[place - 1], Node::Assign { name: assigned, .. } if assigned == name)
        {
            place += 1;
        }
        body.insert(place, node);
    }

    /// Another number than the variable has.
    pub fn moved(&mut self, name: &Name) -> Expr {
        match self.dna.below(4) {
            0 => Expr::u32(self.dna.below(3)),
            1 => Expr::add(Expr::var(name), Expr::u32(1 + self.dna.below(4))),
            2 => Expr::sub(Expr::var(name), Expr::u32(1)),
            _ => Expr::bitxor(Expr::var(name), Expr::u32(1 + self.dna.below(7))),
        }
    }

    /// Bounds of which one is a variable that the body is going to change.
    pub fn variable_bounds(&mut self, most: u32, uniform: bool, nodes: &mut Vec<Node>) -> ((Expr, Expr, u32), Name) {
        let number = Expr::rem(self.expr(Scalar::U32, 1, uniform), Expr::u32(most + 1));
        let fits = |var: &&Variable| var.assignable && var.uniform == uniform && var.ty == Scalar::U32.into();
        let old = self.variables.iter().rev().find(fits).map(|var| var.name.clone());
        let name = match old {
            Some(name) if self.dna.chance(25) => {
                nodes.push(Node::assign(&name, number));
                name
            }
            Some(_) | None => {
                let name = self.declare(Scalar::U32.into(), uniform);
                nodes.push(Node::let_bind(&name, number));
                name
            }
        };
        self.steps += self.iterations;
        let bounds = match self.dna.below(3) {
            0 => (Expr::var(&name), Expr::u32(most)),
            _ => (Expr::u32(self.dna.below(2)), Expr::var(&name)),
        };
        ((bounds.0, bounds.1, most), name)
    }

    /// Begins an iteration by showing what the one before has left in a variable, and now and then cuts it short with another value
    /// in it. The variable is to be changed at the end of the body.
    pub fn carry(&mut self, uniform_body: bool, body: &mut Vec<Node>) -> Option<Variable> {
        let fits = |var: &&Variable| var.assignable && (!var.uniform || uniform_body);
        let count = self.variables.iter().filter(fits).count() as u32;
        if count == 0 {
            return None;
        }
        let n = self.dna.below(count) as usize;
        let var = self.variables.iter().filter(fits).nth(n)?.clone();
        self.show_variable(&var, body);
        if self.leaves_apart() && !var.uniform && self.dna.chance(50) {
            let leave = if self.dna.chance(70) { Node::Continue } else { Node::Break };
            let value = self.value(var.ty, 1, false);
            let cond = self.split();
            self.steps += 3 * self.iterations;
            body.push(Node::if_then(cond, vec![Node::assign(&var.name, value), leave]));
        }
        Some(var)
    }

    /// Now and then, makes the value that a variable is to have in the next iteration long before it takes it, so that both are there
    /// for the rest of the body, barriers included.
    pub fn ahead(&mut self, var: &Variable, synchronises: bool, body: &mut Vec<Node>) -> Option<Name> {
        if !self.dna.chance(40) {
            return None;
        }
        let value = self.value(var.ty, 2, var.uniform);
        let name = self.fresh_name();
        body.push(Node::let_bind(&name, value));
        self.variables.push(Variable { name: name.clone(), assignable: false, ..var.clone() });
        self.steps += self.iterations;
        if synchronises && self.dna.chance(60) {
            body.push(self.barrier());
            self.show_variable(var, body);
            self.steps += self.iterations;
        }
        Some(name)
    }

    /// One of the ways out of where the statement stands, each for the invocation alone.
    fn way_out(&mut self) -> Node {
        let apart = self.leaves_apart();
        match self.dna.below(16) {
            0..=5 if apart => Node::Break,
            6..=9 if apart => Node::Continue,
            10 if apart || self.config.weights.trap > 0 => Node::trap(self.dna.below(1000)),
            _ if self.config.weights.return_ > 0 => Node::Return,
            _ if apart => Node::Continue,
            _ => Node::block(Vec::new()),
        }
    }

    /// Several ways out, in the arms of branches that invocations take differently: some leave a loop in the iteration in which
    /// others go on with the next, retire or trap.
    pub fn exits(&mut self, nodes: &mut Vec<Node>) {
        self.steps += 8 * self.iterations;
        let (one, two, three) = (self.way_out(), self.way_out(), self.way_out());
        let cond = self.split();
        let (then, otherwise) = match self.dna.below(6) {
            // Everybody goes, this way or that.
            0 => (vec![one], vec![two]),
            1 | 2 => {
                let nested = Node::if_then_else(self.split(), vec![one], vec![two]);
                (vec![nested], vec![Node::if_then(self.split(), vec![three])])
            }
            3 => {
                let (some, others) = (self.split(), self.split());
                (self.stay(), vec![Node::if_then_else(some, self.stay(), vec![one]), Node::if_then(others, vec![two])])
            }
            4 => (self.stay(), vec![one]),
            _ => (vec![Node::if_then(self.split(), vec![one])], vec![Node::if_then(self.split(), vec![two])]),
        };
        nodes.push(Node::if_then_else(cond, then, otherwise));
    }

    /// An arm that changes a variable, if there is one, and goes on. It declares nothing, since it may come after a body whose names
    /// are still visible.
    fn stay(&mut self) -> Vec<Node> {
        let fits = |var: &Variable| var.assignable && !var.uniform;
        let mut nodes = Vec::new();
        if self.variables.iter().any(fits) {
            self.assign(Context { depth: 0, uniform: false, top: false, barriers: false }, &mut nodes);
        }
        nodes
    }

    /// An access behind a bounds check: inside a branch, or after those that fail it have left.
    pub fn guard(&mut self, context: Context, nodes: &mut Vec<Node>) {
        let count = self.buffers.len();
        let b = self.dna.below(count as u32) as usize;
        let writes = self.buffers[b].access.is_writable() && self.dna.chance(60);
        let target = if writes { self.store_target(b, 1) } else { None };
        let (index, flood) = match target {
            Some(target) => (Some(target.index), target.value),
            None if writes => (None, None),
            None => (self.load_target(b, 1), None),
        };
        let Some(index) = index else { return self.store(nodes) };
        // A sum that may go over the top and come out in bounds.
        let constant = matches!(self.buffers[b].access, Access::Read | Access::Uniform);
        let index = if constant && self.dna.chance(25) {
            let uniform = self.dna.chance(50);
            Expr::add(self.leaf(Scalar::U32, 0, uniform), Expr::u32(1 + self.dna.below(9)))
        } else {
            index
        };
        let (name, ty) = (self.buffers[b].name.clone(), self.buffers[b].value);
        let limit = match self.dna.below(6) {
            0 => Expr::min(Expr::buf_len(&name), self.leaf(Scalar::U32, 0, false)),
            _ => Expr::buf_len(&name),
        };
        let below = match self.dna.below(6) {
            0 => Expr::gt(limit, index.clone()),
            1 => Expr::le(index.clone(), limit),
            2 => Expr::not(Expr::ge(index.clone(), limit)),
            3 => Expr::and(Expr::lt(index.clone(), limit), self.expr(Scalar::Bool, 1, false)),
            _ => Expr::lt(index.clone(), limit),
        };
        self.steps += 4 * self.iterations;
        // Those that fail the check leave, or the access stands inside it.
        let inside = if self.dna.chance(25) && (self.leaves_apart() || self.config.weights.return_ > 0) {
            nodes.push(Node::if_then(Expr::not(below), vec![self.way_out()]));
            None
        } else {
            Some(below)
        };
        let mut access = Vec::new();
        if writes {
            let value = match flood {
                Some(literal) => Expr::Lit(literal),
                None => self.value(ty, self.config.expr_depth, false),
            };
            access.push(Node::store(&name, index, value));
        } else {
            let var = self.declare(ty, false);
            nodes.push(Node::let_bind(&var, zero(ty)));
            access.push(Node::assign(var, Expr::load(&name, index)));
        }
        match inside {
            None => nodes.extend(access),
            Some(below) => {
                if context.depth > 0 && self.budget > 0 && self.dna.chance(40) {
                    let inner = Context { depth: context.depth - 1, uniform: false, top: false, barriers: false };
                    access.extend(self.body(inner));
                }
                nodes.push(Node::if_then(below, access));
            }
        }
    }

    /// A loop with constant bounds that is made as a whole.
    fn counted(&mut self, iterations: u32, nodes: &mut Vec<Node>, make: impl FnOnce(&mut Self, &mut Vec<Node>)) {
        let (visible, reusable) = (self.variables.len(), self.reusable.len());
        let counter = self.fresh_name();
        self.variables.push(Variable { name: counter.clone(), ty: Scalar::U32.into(), uniform: false, assignable: false });
        self.loops.push(LoopFrame {
            counter: counter.clone(),
            uniform: false,
            begins_with_barrier: false,
            synchronises: false,
            left_with: Vec::new(),
        });
        let outer = self.iterations;
        self.iterations *= u64::from(iterations.max(1));
        let mut body = Vec::new();
        make(self, &mut body);
        self.steps += 8 * self.iterations;
        self.iterations = outer;
        self.loops.pop();
        self.end_scope(visible, reusable);
        nodes.push(Node::loop_for(counter, Expr::u32(0), Expr::u32(iterations), body));
    }

    /// A loop that moves an index along: over elements of the invocation's own, which it writes, or over a buffer that nobody writes.
    pub fn march(&mut self, nodes: &mut Vec<Node>) {
        let rows: Vec<usize> =
            (0..self.buffers.len()).filter(|b| self.buffers[*b].access.is_writable() && self.buffers[*b].per > 1).collect();
        if !rows.is_empty() && self.dna.chance(60) {
            let b = self.dna.pick(&rows);
            if let Some((first, stride, count)) = self.own_row(b) {
                return self.march_over_own(b, first, stride, count, nodes);
            }
        }
        let constant = |access: Access| matches!(access, Access::Read | Access::Uniform);
        let sources: Vec<usize> = (0..self.buffers.len()).filter(|b| constant(self.buffers[*b].access)).collect();
        if sources.is_empty() {
            return self.chain(nodes);
        }
        let b = self.dna.pick(&sources);
        let most = (self.config.iterations / self.iterations.max(1)).min(u64::from(self.config.trips)) as u32;
        if most == 0 {
            return self.store(nodes);
        }
        let (name, ty) = (self.buffers[b].name.clone(), self.buffers[b].value);
        let start = self.any_index(b, 0);
        let index = self.declare(Scalar::U32.into(), false);
        nodes.push(Node::let_bind(&index, start));
        let sum = self.declare(ty, false);
        nodes.push(Node::let_bind(&sum, zero(ty)));
        self.steps += 2 * self.iterations;
        let iterations = 1 + self.dna.below(most);
        self.counted(iterations, nodes, |generator, body| {
            let loaded = Expr::load(&name, Expr::var(&index));
            let value = match ty {
                ValueType::Scalar(scalar) => generator.combined(scalar, Expr::var(&sum), loaded),
                ValueType::Vector(..) => loaded,
            };
            body.push(Node::assign(&sum, value));
            let next = generator.moved(&index);
            generator.change(&index, next, false, body);
        });
    }

    fn march_over_own(&mut self, b: usize, first: Expr, stride: u32, count: u32, nodes: &mut Vec<Node>) {
        let (name, ty) = (self.buffers[b].name.clone(), self.buffers[b].value);
        // Nobody else may move it: it says which elements are the invocation's.
        let index = self.fresh_name();
        nodes.push(Node::let_bind(&index, first));
        self.variables.push(Variable { name: index.clone(), ty: Scalar::U32.into(), uniform: false, assignable: false });
        self.steps += self.iterations;
        self.counted(count, nodes, |generator, body| {
            let value = generator.value(ty, 2, false);
            body.push(Node::store(&name, Expr::var(&index), value));
            let next = Node::assign(&index, Expr::add(Expr::var(&index), Expr::u32(stride)));
            // Those that do not move write the same element again.
            let next = if generator.dna.chance(30) { Node::if_then(generator.split(), vec![next]) } else { next };
            body.push(next);
        });
    }

    /// Two values of one type made one by an op of that type, any but those that the program goes without.
    fn combined(&mut self, ty: Scalar, left: Expr, right: Expr) -> Expr {
        let all = productions(ty);
        let start = self.dna.below(all.len() as u32) as usize;
        let op = (0..all.len()).find_map(|n| match all[(start + n) % all.len()] {
            Production::Binary(op, over) if over == ty && op.info().operands[1] == Operand::T && self.allows(over, op.info()) => {
                Some(op)
            }
            Production::Binary(..)
            | Production::Unary(..)
            | Production::Ternary(..)
            | Production::Cast(_)
            | Production::Bitcast(_) => None,
        });
        match op {
            Some(op) => Expr::binary(op, left, right),
            None => Expr::select(Expr::bool(true), left, right),
        }
    }

    /// A value into which values of all other kinds of types go: booleans, integers and floats of both widths.
    pub fn mixed(&mut self) -> (Scalar, Expr) {
        let kinds: [&[Scalar]; 5] =
            [&[Scalar::Bool], &[Scalar::U32, Scalar::I32], &[Scalar::U64, Scalar::I64], &[Scalar::F32], &[Scalar::F64]];
        let start = self.dna.below(5) as usize;
        let mut so_far: Option<(Scalar, Expr)> = None;
        for n in 0..5 {
            let fits: Vec<Scalar> = kinds[(start + n) % 5].iter().copied().filter(|scalar| self.config.has(*scalar)).collect();
            if fits.is_empty() {
                continue;
            }
            let ty = self.dna.pick(&fits);
            let value = self.leaf(ty, 0, false);
            so_far = Some(match so_far {
                None => (ty, value),
                Some((from, before)) if from.is_float() && ty == Scalar::Bool => {
                    let zero = Expr::Lit(Literal::from_bits(from, 0));
                    (ty, self.combined(ty, Expr::lt(before, zero), value))
                }
                Some((_, before)) => (ty, self.combined(ty, Expr::cast(ty, before), value)),
            });
        }
        so_far.unwrap_or_else(|| (Scalar::U32, self.leaf(Scalar::U32, 0, false)))
    }

    /// Values that each depend on the one before, through several types.
    pub fn chain(&mut self, nodes: &mut Vec<Node>) {
        let mut ty = self.any_scalar();
        let first = self.expr(ty, 1, false);
        let mut name = self.declare(ty.into(), false);
        nodes.push(Node::let_bind(&name, first));
        let links = self.config.chain / 2 + self.dna.below(self.config.chain / 2 + 1);
        for _ in 0..links {
            self.steps += self.iterations;
            let to = if self.dna.chance(15) { self.any_scalar() } else { ty };
            if to != ty && !(ty.is_float() && to == Scalar::Bool) {
                let value = Expr::cast(to, Expr::var(&name));
                name = self.declare(to.into(), false);
                nodes.push(Node::let_bind(&name, value));
                ty = to;
                continue;
            }
            let other = if self.dna.chance(70) { self.leaf(ty, 0, false) } else { Expr::Lit(values::literal(&mut self.dna, ty)) };
            let value = self.combined(ty, Expr::var(&name), other);
            nodes.push(Node::assign(&name, value));
        }
    }

    /// The same load before and after others have written.
    pub fn reload(&mut self, nodes: &mut Vec<Node>) {
        let all: Vec<usize> =
            (0..self.buffers.len()).filter(|b| self.buffers[*b].access.is_writable() && !self.buffers[*b].sink).collect();
        if all.is_empty() {
            return self.store(nodes);
        }
        let b = self.dna.pick(&all);
        self.steps += 6 * self.iterations;
        nodes.push(self.barrier());
        let Some(index) = self.share_slice(b) else { return };
        let load = Expr::load(&self.buffers[b].name, index);
        let ty = self.buffers[b].value;
        let before = self.declare(ty, false);
        nodes.push(Node::let_bind(before, load.clone()));
        nodes.push(self.barrier());
        self.store_to(b, nodes);
        nodes.push(self.barrier());
        self.share(b, false);
        let after = self.declare(ty, false);
        nodes.push(Node::let_bind(after, load));
    }

    /// Tickets: some invocations draw numbers by an atomic that counts, and each stores at its number what the number alone decides.
    pub fn tickets(&mut self, context: Context, nodes: &mut Vec<Node>) {
        let whole_grid = self.config.overridable || self.dna.chance(40);
        let fits = |b: &usize| !self.buffers[*b].sink && self.may_be_taken(*b, whole_grid);
        let counters: Vec<usize> = (0..self.buffers.len()).filter(fits).filter(|b| self.buffers[*b].takes_atomics()).collect();
        let keepers: Vec<usize> = (0..self.buffers.len()).filter(fits).filter(|b| self.keeps_tickets(*b).is_some()).collect();
        if counters.is_empty() || keepers.len() < 2 {
            return self.store(nodes);
        }
        let counter = self.dna.pick(&counters);
        let others: Vec<usize> = keepers.into_iter().filter(|b| *b != counter).collect();
        let Some(keeper) = (!others.is_empty()).then(|| self.dna.pick(&others)) else { return self.store(nodes) };
        let (start, room) = self.take(counter, whole_grid);
        let start = Expr::add(start, Expr::u32(self.dna.below(2) * self.dna.below(room)));
        let (first, room) = self.take(keeper, whole_grid);
        let scalar = self.buffers[counter].value.scalar().unwrap_or(Scalar::U32);
        let step = Literal::from_bits(scalar, u64::from(1 + self.dna.below(10) / 8));
        // Who has which number is not to be seen, so that nobody else may name it.
        let ticket = Name::from(format!("ticket{}", self.next_name()));
        let drawn = Expr::var(&ticket);
        let drawn = if scalar == Scalar::U32 { drawn } else { Expr::bitcast(Scalar::U32, drawn) };
        let number = Expr::rem(drawn, Expr::u32(room));
        let value = Expr::add(Expr::mul(number.clone(), Expr::u32(3 + self.dna.below(9))), Expr::u32(1 + self.dna.below(9)));
        let value = match self.buffers[keeper].value.scalar() {
            None | Some(Scalar::U32) => value,
            Some(other) => Expr::cast(other, value),
        };
        let draw = Node::let_atomic(&ticket, AtomicOp::Add, &self.buffers[counter].name, start, vec![Expr::Lit(step)]);
        let keep = Node::store(&self.buffers[keeper].name, Expr::add(first, number), value);
        self.steps += 4 * self.iterations;
        let both = vec![draw, keep];
        nodes.push(if self.dna.chance(80) { Node::if_then(self.split(), both) } else { Node::block(both) });
        if context.barriers && !whole_grid && self.dna.chance(70) {
            nodes.push(self.barrier());
            let Some(index) = self.share_slice(keeper) else { return };
            let load = Expr::load(&self.buffers[keeper].name, index);
            let name = self.declare(self.buffers[keeper].value, false);
            nodes.push(Node::let_bind(name, load));
            self.steps += 2 * self.iterations;
        }
    }

    /// Two elements beside each other at once, of which the second may be past the end: loads in one expression, or stores one after
    /// the other.
    pub fn neighbours(&mut self, nodes: &mut Vec<Node>) {
        let count = self.buffers.len();
        let start = self.dna.below(count as u32) as usize;
        let all = (0..count).map(|n| (start + n) % count);
        if self.dna.chance(70) {
            for b in all.clone().filter(|b| self.buffers[*b].access.is_writable() && self.buffers[*b].per > 1).collect::<Vec<_>>()
            {
                let Some((first, 1, _)) = self.own_row(b) else { continue };
                let next = Expr::add(first.clone(), Expr::u32(1));
                self.steps += 2 * self.iterations;
                for index in [first, next] {
                    let value = self.value(self.buffers[b].value, 1, false);
                    nodes.push(Node::store(&self.buffers[b].name, index, value));
                }
                return;
            }
        }
        for b in all.collect::<Vec<_>>() {
            let Some(index) = self.beside(b) else { continue };
            let next = Expr::add(index.clone(), Expr::u32(1));
            let name = self.buffers[b].name.clone();
            let (ty, parts) = match self.buffers[b].value {
                ValueType::Scalar(scalar) => (scalar, [index, next].map(|index| Expr::load(&name, index))),
                ValueType::Vector(part, count) => {
                    let component = self.dna.below(u32::from(count)) as u8;
                    (part, [index, next].map(|index| Expr::extract(Expr::load(&name, index), component)))
                }
            };
            let [left, right] = parts;
            let value = self.combined(ty, left, right);
            let shown = Variable { name: self.declare(ty.into(), false), ty: ty.into(), uniform: false, assignable: true };
            self.steps += self.iterations;
            nodes.push(Node::let_bind(&shown.name, value));
            if self.dna.chance(60) {
                self.show_variable(&shown, nodes);
            }
            return;
        }
        self.store(nodes);
    }

    /// Many values at the start, which the end shows.
    pub fn crowd(&mut self, nodes: &mut Vec<Node>) {
        for _ in 0..self.config.crowd {
            let ty = self.any_type();
            let uniform = self.dna.chance(20);
            let value = self.value(ty, 1, uniform);
            let name = self.declare(ty, uniform);
            nodes.push(Node::let_bind(name, value));
            self.steps += self.iterations;
        }
    }
}

fn zero(ty: ValueType) -> Expr {
    match ty {
        ValueType::Scalar(scalar) => Expr::Lit(Literal::from_bits(scalar, 0)),
        ValueType::Vector(part, count) => Expr::vector(vec![Expr::Lit(Literal::from_bits(part, 0)); usize::from(count)]),
    }
}
