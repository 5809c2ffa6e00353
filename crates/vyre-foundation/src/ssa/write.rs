//! The form as a program again, so that what passes did can be read, run and compared.
//!
//! A value becomes part of the expression that uses it, or a variable:
//!
//! - A value that is used once, in the region that defines it, is written where it is used, unless that would take a load of memory
//!   that can be written past something that may write it, or make the expression very deep. All other values get a `let`.
//! - The results of an `if` and what a loop carries are variables that are assigned: at the end of an arm, before `break` and
//!   `continue`, at the end of an iteration. Such a variable is a new one, or takes over the one of a value that ends in it: that
//!   is then not used any more once the variable changes. So `let x = 0 … if c { x = 1 }` comes back as it was.
//! - Assignments at one place happen together: their order is chosen so that none overwrites what another still reads, with a
//!   variable in between where they go in a circle.
//!
//! What is used how long is asked of `analysis/liveness.rs`, for values as they are written: one that is written into its user is
//! evaluated there.
//!
//! Names are those of the kernel's variables as far as they are hints, made unique in the whole program.

use super::{Def, InstId, InstKind, Leaf, Op, RegionId, Ssa, Terminator, Value};
use crate::analysis::liveness::{Positions, User, last_uses};
use crate::analysis::{Scope, Uniformity};
use crate::ir::{Atomic, Body, Expr, Item, Literal, Name, Node, Parts, Program, Subgroup, Walk};
use crate::kernel::{BufferId, Effect};
use crate::memory_model::MemoryOrdering;
use std::collections::{HashMap, HashSet};
use vyre_spec::limits::MAX_NESTING;
use vyre_spec::{Scalar, ValueType};

/// Levels that an expression has at most where values are written into their users.
const MAX_DEPTH: u32 = 24;

impl Ssa {
    /// The program that this form says. Buffers, attributes and name are those of `like`, which the form was made from; constants
    /// have been replaced in it.
    #[must_use]
    pub fn to_program(&self, like: &Program) -> Program {
        let mut writer = Writer::new(self);
        let nodes = writer.region(self.root, 1, End::Program);
        let parts = like.parts();
        let body = match &parts.body[..] {
            [Node::Region { generator, .. }] => vec![Node::Region { generator: generator.clone(), body: nodes.into() }],
            _ => nodes,
        };
        Program::from_parts(Parts {
            buffers: parts.buffers.clone(),
            consts: parts.consts.clone(),
            workgroup: parts.workgroup.clone(),
            floats: parts.floats,
            subgroup: parts.subgroup,
            body: Body::from(body),
        })
    }
}

/// What comes at the end of a region.
#[derive(Clone)]
enum End {
    /// Nothing: the program is over.
    Program,
    /// The results of the `if` it is an arm of go into these variables.
    Arm(Vec<Name>),
    /// The next iteration.
    Iteration,
}

struct Writer<'a> {
    ssa: &'a Ssa,
    positions: Positions,
    /// By value: whether it is written where it is used.
    inline: Vec<bool>,
    /// By value: the position of its last use.
    last_use: Vec<u32>,
    /// By value: the variable that holds it.
    home: Vec<Option<Name>>,
    /// By variable: the value it holds, and what it held before each change.
    contents: HashMap<Name, Option<Value>>,
    log: Vec<(Name, Option<Value>)>,
    /// The variables of what the loops around carry.
    loops: Vec<Vec<Name>>,
    /// Of a form in which invocations meet: what is uniform.
    uniformity: Option<Uniformity>,
    /// Names that something has, in the order of declaration.
    taken: HashMap<Name, usize>,
    /// By stem: the number to try next.
    numbers: HashMap<Name, u32>,
}

impl<'a> Writer<'a> {
    fn new(ssa: &'a Ssa) -> Writer<'a> {
        let positions = Positions::of(ssa);
        let inline = inlined(ssa, &positions);
        let last_use = last_uses(ssa, &positions, &inline);
        Writer {
            ssa,
            positions,
            inline,
            last_use,
            home: vec![None; ssa.values.len()],
            contents: HashMap::new(),
            log: Vec::new(),
            loops: Vec::new(),
            uniformity: needs_uniform_control(ssa).then(|| Uniformity::of(ssa)),
            taken: ssa.kernel.buffers.iter().enumerate().map(|(n, buffer)| (buffer.name.clone(), n)).collect(),
            numbers: HashMap::new(),
        }
    }

    /// A name for a value that nothing else has.
    fn name(&mut self, value: Value) -> Name {
        let stem = match self.ssa.value(value).var {
            Some(var) => {
                let name = &self.ssa.kernel.var(var).name;
                if self.take(name) {
                    return name.clone();
                }
                Name::from(format!("{}_", name.as_str()))
            }
            None => Name::from("t"),
        };
        self.fresh(&stem)
    }

    /// Whether nothing has the name; now something has.
    fn take(&mut self, name: &Name) -> bool {
        let order = self.taken.len();
        *self.taken.entry(name.clone()).or_insert(order) == order
    }

    fn fresh(&mut self, stem: &Name) -> Name {
        loop {
            let number = self.numbers.entry(stem.clone()).or_default();
            let name = Name::from(format!("{}{number}", stem.as_str()));
            *number += 1;
            if self.take(&name) {
                return name;
            }
        }
    }

    fn put(&mut self, name: &Name, value: Option<Value>) {
        let old = self.contents.insert(name.clone(), value);
        self.log.push((name.clone(), old.flatten()));
    }

    fn holds(&self, name: &Name, value: Value) -> bool {
        self.contents.get(name) == Some(&Some(value))
    }

    /// Goes back to what variables held before a region; gives those that it changed.
    fn leave(&mut self, mark: usize) -> Vec<Name> {
        let mut changed = Vec::new();
        for (name, old) in self.log.split_off(mark).into_iter().rev() {
            self.contents.insert(name.clone(), old);
            changed.push(name);
        }
        changed
    }

    fn buffer(&self, buffer: BufferId) -> &Name {
        &self.ssa.kernel.buffer(buffer).name
    }

    /// A value as an expression.
    fn expr(&self, value: Value) -> Expr {
        if let Some(name) = &self.home[value.index()] {
            debug_assert!(self.holds(name, value), "%{} is not in `{name}` any more", value.0);
            return Expr::Var(name.clone());
        }
        match self.ssa.value(value).def {
            Def::Leaf(Leaf::Lit { bits }) => literal(self.ssa.value(value).ty, bits),
            Def::Leaf(Leaf::Builtin { builtin }) => Expr::Builtin(builtin),
            Def::Leaf(Leaf::Len { buffer }) => Expr::Len(self.buffer(buffer).clone()),
            Def::Result(inst, _) => match &self.ssa.inst(inst).kind {
                InstKind::Op(op) => self.op(op),
                InstKind::Load { buffer, index, .. } => Expr::load(self.buffer(*buffer), self.expr(*index)),
                InstKind::Store { .. }
                | InstKind::Atomic { .. }
                | InstKind::Subgroup { .. }
                | InstKind::If { .. }
                | InstKind::Loop { .. }
                | InstKind::Barrier
                | InstKind::GridSync => unreachable!("its results are in variables"),
            },
            Def::Argument(..) => unreachable!("arguments are in variables"),
        }
    }

    fn op(&self, op: &Op) -> Expr {
        match op {
            Op::Unary { op, operand, .. } => Expr::unary(*op, self.expr(*operand)),
            Op::Binary { op, left, right, .. } => Expr::binary(*op, self.expr(*left), self.expr(*right)),
            Op::Ternary { op, operands: [a, b, c], .. } => Expr::ternary(*op, self.expr(*a), self.expr(*b), self.expr(*c)),
            Op::Cast { to, value, .. } => Expr::cast(*to, self.expr(*value)),
            Op::Bitcast { to, value, .. } => Expr::bitcast(*to, self.expr(*value)),
            Op::Vector { components } => Expr::vector(components.iter().map(|component| self.expr(*component))),
            Op::Extract { vector, component } => Expr::extract(self.expr(*vector), *component),
        }
    }

    fn region(&mut self, id: RegionId, depth: u32, end: End) -> Vec<Node> {
        let ssa = self.ssa;
        let mut nodes = Vec::new();
        for inst in &ssa.region(id).insts {
            self.inst(*inst, depth, &mut nodes);
        }
        let region = ssa.region(id);
        let carried = self.loops.last().cloned().unwrap_or_default();
        let (targets, last) = match (&region.end, end) {
            (Terminator::Yield(_), End::Arm(results)) => (results, None),
            (Terminator::Yield(_), End::Iteration) => (carried, None),
            (Terminator::Yield(_) | Terminator::Return, End::Program) => return nodes,
            (Terminator::Break(_), _) => (carried, Some(Node::Break)),
            (Terminator::Continue(_), _) => (carried, Some(Node::Continue)),
            (Terminator::Return, _) => (Vec::new(), Some(Node::Return)),
            (Terminator::Trap(tag), _) => (Vec::new(), Some(Node::trap(*tag))),
            (Terminator::Unreachable, _) => (Vec::new(), None),
        };
        self.assign_together(&targets, region.end.values(), &mut nodes);
        nodes.extend(last);
        nodes
    }

    fn declare(&mut self, value: Value) -> Name {
        let name = self.name(value);
        self.hold(value, &name);
        name
    }

    fn hold(&mut self, value: Value, name: &Name) {
        self.home[value.index()] = Some(name.clone());
        self.put(name, Some(value));
    }

    fn inst(&mut self, id: InstId, depth: u32, nodes: &mut Vec<Node>) {
        let inst = self.ssa.inst(id);
        match &inst.kind {
            InstKind::Op(_) | InstKind::Load { .. } => {
                let result = inst.results[0];
                if self.positions.users[result.index()] != User::Nobody && !self.inline[result.index()] {
                    let value = self.expr(result);
                    nodes.push(Node::let_bind(self.declare(result), value));
                }
            }
            InstKind::Store { buffer, index, value, .. } => {
                nodes.push(Node::store(self.buffer(*buffer), self.expr(*index), self.expr(*value)));
            }
            InstKind::Atomic { op, buffer, index, operands, .. } => {
                let (buffer, index) = (self.buffer(*buffer).clone(), self.expr(*index));
                let operands = operands.iter().map(|operand| self.expr(*operand)).collect();
                let result = self.result(&inst.results);
                nodes.push(Atomic { result, op: *op, buffer, index, operands }.into());
            }
            InstKind::Subgroup { op, operands, .. } => {
                let operands = operands.iter().map(|operand| self.expr(*operand)).collect();
                let result = self.result(&inst.results);
                nodes.push(Subgroup { result, op: *op, operands }.into());
            }
            InstKind::If { cond, then, otherwise } => self.branch(id, *cond, [*then, *otherwise], depth, nodes),
            InstKind::Loop { from, to, inits, body } => self.repeat(id, [*from, *to], inits, *body, depth, nodes),
            InstKind::Barrier => nodes.push(Node::barrier()),
            InstKind::GridSync => nodes.push(Node::barrier_with_ordering(MemoryOrdering::GridSync)),
        }
    }

    fn result(&mut self, results: &[Value]) -> Option<Name> {
        let used = results.first().filter(|result| self.positions.users[result.index()] != User::Nobody)?;
        Some(self.declare(*used))
    }

    /// The variable that holds a value, if from `until` on nobody reads the value any more, so that another can have it.
    ///
    /// Whether a variable is uniform is asked of all its values at once where barriers are judged. So one that holds a uniform
    /// value is left alone where there are any.
    fn can_take_over(&self, value: Value, until: u32) -> Option<Name> {
        if self.uniformity.as_ref().is_some_and(|facts| facts.is_uniform(value, Scope::Workgroup)) {
            return None;
        }
        let is_counter = matches!(self.ssa.value(value).def, Def::Argument(_, 0));
        let name = self.home[value.index()].as_ref().filter(|_| !is_counter && self.last_use[value.index()] <= until)?;
        self.holds(name, value).then(|| name.clone())
    }

    fn branch(&mut self, id: InstId, cond: Value, regions: [RegionId; 2], depth: u32, nodes: &mut Vec<Node>) {
        let ssa = self.ssa;
        let cond = self.expr(cond);
        let (begins, ends, _) = self.positions.insts[id.index()];
        let mut targets: Vec<Name> = Vec::new();
        let mut taken: HashSet<Name> = HashSet::new();
        for (n, result) in ssa.inst(id).results.iter().enumerate() {
            // What either arm yields and was there before; the second arm is the one that is most often empty.
            let yields = regions.iter().rev().filter(|region| ssa.region(**region).end.is_yield());
            let before: Vec<Value> = yields
                .map(|region| ssa.region(*region).end.values()[n])
                .filter(|value| ssa.leaf(*value).is_some() || self.positions.defined[value.index()] < begins)
                .collect();
            let taken_over =
                before.iter().find_map(|value| self.can_take_over(*value, ends).filter(|name| !taken.contains(name)));
            let name = taken_over.unwrap_or_else(|| {
                let name = self.name(*result);
                let value = before.first().map_or_else(|| zero(ssa.value(*result).ty), |value| self.expr(*value));
                nodes.push(Node::let_bind(&name, value));
                self.put(&name, before.first().copied());
                name
            });
            taken.insert(name.clone());
            targets.push(name);
        }
        let mut changed = Vec::new();
        let bodies = regions.map(|region| {
            let mark = self.log.len();
            let body = self.region(region, depth + 1, End::Arm(targets.clone()));
            let changes = self.leave(mark);
            // What an arm does that never gets here is not seen here.
            if ssa.region(region).end.is_yield() {
                changed.extend(changes);
            }
            body
        });
        changed.iter().for_each(|name| self.put(name, None));
        for (result, name) in ssa.inst(id).results.iter().zip(&targets) {
            self.hold(*result, name);
        }
        let [then, otherwise] = bodies;
        nodes.push(Node::if_then_else(cond, then, otherwise));
    }

    fn repeat(&mut self, id: InstId, bounds: [Value; 2], inits: &[Value], body: RegionId, depth: u32, nodes: &mut Vec<Node>) {
        let ssa = self.ssa;
        let [from, to] = bounds.map(|bound| self.expr(bound));
        let (begins, _, _) = self.positions.insts[id.index()];
        let (counter, carried) = ssa.region(body).args.split_first().expect("a loop has a counter");
        let mut targets: Vec<Name> = Vec::new();
        let mut taken: HashSet<Name> = HashSet::new();
        for (arg, init) in carried.iter().zip(inits) {
            let taken_over = self.can_take_over(*init, begins).filter(|name| !taken.contains(name));
            let name = taken_over.unwrap_or_else(|| {
                let name = self.name(*arg);
                nodes.push(Node::let_bind(&name, self.expr(*init)));
                name
            });
            taken.insert(name.clone());
            targets.push(name);
        }
        let mark = self.log.len();
        for (arg, name) in carried.iter().zip(&targets) {
            self.hold(*arg, name);
        }
        let var = self.declare(*counter);
        self.loops.push(targets.clone());
        let inner = self.region(body, depth + 1, End::Iteration);
        self.loops.pop();
        let changed = self.leave(mark);
        changed.iter().for_each(|name| self.put(name, None));
        for (result, name) in ssa.inst(id).results.iter().zip(&targets) {
            self.hold(*result, name);
        }
        nodes.push(Node::loop_for(var, from, to, inner));
    }

    /// Gives variables their values, as if all at once; where it makes no difference, in the order of their declaration. So does the
    /// form name what an `if` or loop hands on, which makes a program that is read again come back as it was.
    fn assign_together(&mut self, targets: &[Name], values: &[Value], nodes: &mut Vec<Node>) {
        let mut changes: Vec<(&Name, Value)> =
            targets.iter().zip(values.iter().copied()).filter(|(name, value)| !self.holds(name, *value)).collect();
        changes.sort_by_key(|(name, _)| self.taken[*name]);
        let mut pending: Vec<Option<(Name, Expr)>> =
            changes.iter().map(|(name, value)| Some(((*name).clone(), self.expr(*value)))).collect();
        changes.into_iter().for_each(|(name, value)| self.put(name, Some(value)));
        if pending.len() < 2 {
            nodes.extend(pending.into_iter().flatten().map(|(name, value)| Node::assign(name, value)));
            return;
        }
        // By variable: which of the pending assignments sets it, and how many others read it.
        let sets: HashMap<Name, usize> = pending.iter().flatten().enumerate().map(|(n, (name, _))| (name.clone(), n)).collect();
        let mut readers = vec![0u32; pending.len()];
        let mut reads: Vec<Vec<usize>> = Vec::with_capacity(pending.len());
        for (n, (_, value)) in pending.iter().flatten().enumerate() {
            let mut read: Vec<usize> =
                variables(value).filter_map(|name| sets.get(name).copied()).filter(|other| *other != n).collect();
            read.sort_unstable();
            read.dedup();
            read.iter().for_each(|other| readers[*other] += 1);
            reads.push(read);
        }
        let mut free: Vec<usize> = (0..pending.len()).rev().filter(|n| readers[*n] == 0).collect();
        let mut next = 0;
        loop {
            if let Some(n) = free.pop() {
                let Some((name, value)) = pending[n].take() else { continue };
                nodes.push(Node::assign(name, value));
                for read in std::mem::take(&mut reads[n]) {
                    readers[read] -= 1;
                    if readers[read] == 0 {
                        free.push(read);
                    }
                }
                continue;
            }
            // All that is left goes in circles: one value is put aside, and what it reads is free of it.
            while next < pending.len() && pending[next].is_none() {
                next += 1;
            }
            let Some(Some((_, value))) = pending.get_mut(next) else { break };
            let aside = self.fresh(&Name::from("t"));
            nodes.push(Node::let_bind(&aside, std::mem::replace(value, Expr::var(&aside))));
            for read in std::mem::take(&mut reads[next]) {
                readers[read] -= 1;
                if readers[read] == 0 {
                    free.push(read);
                }
            }
        }
    }
}

/// Whether the form, which may have lost what the kernel had, has something that is reached under uniform control only.
fn needs_uniform_control(ssa: &Ssa) -> bool {
    let mut found = false;
    ssa.for_each_inst(ssa.root, &mut |_, inst| {
        found |= match inst.kind.effect() {
            Effect::Subgroup | Effect::Workgroup => true,
            // A grid barrier stands at the top level.
            Effect::None | Effect::Trap | Effect::Write(_) | Effect::AtomicRead(_) | Effect::AtomicWrite(_) | Effect::Grid => {
                false
            }
        };
    });
    found
}

/// The variables that an expression reads.
fn variables(expr: &Expr) -> impl Iterator<Item = &Name> {
    Walk::expr(expr).filter_map(|(item, _)| match item {
        Item::Expr(Expr::Var(name)) => Some(name),
        Item::Expr(_) | Item::Node(_) => None,
    })
}

/// By value: whether it is written where it is used.
fn inlined(ssa: &Ssa, positions: &Positions) -> Vec<bool> {
    let mut inline = vec![false; ssa.values.len()];
    let mut order: Vec<(InstId, u32)> = Vec::new();
    in_order(ssa, ssa.root, 1, &mut order);
    // Backwards, so that where the user is evaluated is known.
    let mut evaluated: Vec<u32> = positions.insts.iter().map(|(begins, _, _)| *begins).collect();
    for (id, _) in order.iter().rev() {
        let inst = ssa.inst(*id);
        let (begins, _, region) = positions.insts[id.index()];
        let writable = match &inst.kind {
            InstKind::Op(_) => false,
            InstKind::Load { buffer, .. } => ssa.kernel.buffer(*buffer).access.is_writable(),
            InstKind::Store { .. }
            | InstKind::Atomic { .. }
            | InstKind::Subgroup { .. }
            | InstKind::If { .. }
            | InstKind::Loop { .. }
            | InstKind::Barrier
            | InstKind::GridSync => continue,
        };
        let at = match positions.users[inst.results[0].index()] {
            User::Inst(user) if positions.insts[user.index()].2 == region => evaluated[user.index()],
            User::End(end) if end == region => positions.ends[region.index()],
            User::Inst(_) | User::End(_) | User::Nobody | User::Several => continue,
        };
        if !writable || positions.effects[at as usize] == positions.effects[begins as usize] {
            inline[inst.results[0].index()] = true;
            evaluated[id.index()] = at;
        }
    }
    // Forwards, so that the depth of operands is known. A statement as deep as programs go has no room for expressions.
    let mut depths: Vec<u32> = vec![0; ssa.values.len()];
    for (id, nesting) in order {
        let inst = ssa.inst(id);
        let most = MAX_DEPTH.min(MAX_NESTING.saturating_sub(nesting + 4)).max(1);
        let mut deepest = 0;
        inst.kind.for_each_operand(&mut |operand| {
            if inline[operand.index()] {
                deepest = deepest.max(depths[operand.index()]);
            }
        });
        if deepest >= most {
            inst.kind.for_each_operand(&mut |operand| inline[operand.index()] = false);
            deepest = 0;
        }
        if let [result] = inst.results[..] {
            depths[result.index()] = deepest + 1;
        }
    }
    inline
}

/// The instructions in order, each with the number of statements around it.
fn in_order(ssa: &Ssa, region: RegionId, nesting: u32, order: &mut Vec<(InstId, u32)>) {
    for id in &ssa.region(region).insts {
        order.push((*id, nesting));
        for inner in ssa.inst(*id).kind.regions() {
            in_order(ssa, inner, nesting + 1, order);
        }
    }
}

fn literal(ty: ValueType, bits: u64) -> Expr {
    match ty {
        ValueType::Scalar(scalar) => Expr::Lit(Literal::from_bits(scalar, bits)),
        ValueType::Vector(..) => unreachable!("literals are scalars"),
    }
}

fn zero(ty: ValueType) -> Expr {
    let zero = |scalar: Scalar| Expr::Lit(Literal::from_bits(scalar, 0));
    match ty {
        ValueType::Scalar(scalar) => zero(scalar),
        ValueType::Vector(scalar, count) => Expr::vector((0..count).map(|_| zero(scalar))),
    }
}
