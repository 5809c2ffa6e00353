//! Random programs that are valid by construction, from a seed.
//!
//! Simple on purpose: it knows types, scopes and where control is uniform, and nothing else.

use vyre::ir::*;
use vyre::memory_model::MemoryOrdering;
use vyre::spec::{AtomicOp, BinaryOp, SubgroupOp, TernaryOp, TypeSet, UnaryOp};

/// splitmix64.
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }

    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    /// Bits that are often at an edge of some type.
    pub fn bits(&mut self) -> u64 {
        const EDGES: [u64; 16] = [
            0,
            1,
            2,
            31,
            32,
            63,
            0x7FFF_FFFF,
            0x8000_0000,
            0xFFFF_FFFF,
            0x7F80_0000,
            0x7FC0_0000,
            0x0080_0000,
            0x8000_0000_0000_0000,
            0x7FFF_FFFF_FFFF_FFFF,
            0x7FF8_0000_0000_0000,
            0x3F80_0000,
        ];
        match self.below(3) {
            0 => *self.pick(&EDGES),
            1 => self.next() % 8,
            _ => self.next(),
        }
    }
}

#[derive(Clone)]
struct Variable {
    name: String,
    ty: ValueType,
    assignable: bool,
}

pub struct Generator {
    rng: Rng,
    buffers: Vec<BufferDecl>,
    vars: Vec<Variable>,
    next_name: u32,
    subgroup: bool,
    /// Every access to a buffer that can be written is at the invocation's own index.
    own_index: bool,
    /// Indices that a condition or a loop around the current statement says something about, and for which buffer.
    guarded: Vec<(Name, Expr)>,
    /// Expressions made so far in the open scopes, to be made again.
    made: Vec<(Scalar, Expr)>,
    /// Names of scopes that have ended.
    gone: Vec<String>,
    loops: u32,
    /// Statements left to make.
    budget: u32,
}

impl Generator {
    pub fn program(seed: u64) -> Program {
        let mut rng = Rng(seed);
        let own_index = rng.chance(40);
        let subgroup = rng.chance(40);
        let canonical = rng.chance(30);
        let mut generator = Generator {
            rng,
            buffers: Vec::new(),
            vars: Vec::new(),
            next_name: 0,
            subgroup,
            own_index,
            guarded: Vec::new(),
            made: Vec::new(),
            gone: Vec::new(),
            loops: 0,
            budget: 0,
        };
        generator.declare_buffers();
        generator.budget = 2 + generator.rng.below(14) as u32;
        let constants: Vec<(String, SpecValue)> = (0..generator.rng.below(3))
            .map(|n| {
                let bits = generator.rng.bits();
                let value = match generator.rng.below(4) {
                    0 => SpecValue::U32(bits as u32),
                    1 => SpecValue::I32(bits as u32 as i32),
                    2 => SpecValue::F32(f32::from_bits(bits as u32)),
                    _ => SpecValue::Bool(bits & 1 == 1),
                };
                (format!("c{n}"), value)
            })
            .collect();
        for (name, value) in &constants {
            let ty = value.literal().map_or(Scalar::U32, Literal::scalar);
            generator.vars.push(Variable { name: name.clone(), ty: ty.into(), assignable: false });
        }
        let body = generator.body(3, true, true);
        let size = match generator.rng.below(5) {
            0 => [8, 1, 1],
            1 if !own_index => [4, 2, 1],
            2 if !own_index => [2, 2, 2],
            3 => [if subgroup { 16 } else { 7 }, 1, 1],
            _ => [if subgroup { 4 } else { 1 }, 1, 1],
        };
        let mut program = if generator.rng.chance(5) {
            Program::new(generator.buffers, size, body)
        } else {
            Program::wrapped(generator.buffers, size, body).with_name("p")
        };
        if subgroup {
            program = program.with_subgroup(4);
        }
        if canonical {
            program = program.with_floats(FloatMode::Canonical);
        }
        for (name, value) in constants {
            program = program.with_const(name, value);
        }
        program
    }

    fn declare_buffers(&mut self) {
        let vector = |rng: &mut Rng| {
            let scalar = *rng.pick(&[Scalar::U32, Scalar::I32, Scalar::F32]);
            DataType::vector(scalar, 2 + rng.below(3) as u8)
        };
        let count = 2 + self.rng.below(5) as u32;
        for n in 0..count {
            let element =
                if self.rng.chance(10) { vector(&mut self.rng) } else { self.rng.pick(&DataType::KERNEL_SCALARS).clone() };
            let load_only = matches!(element.storage(), vyre::spec::Storage::LoadOnly(_));
            let name = format!("b{n}");
            let decl = match self.rng.below(5) {
                0 | 1 => BufferDecl::read(name, n, element),
                2 if !load_only => BufferDecl::read_write(name, n, element),
                3 if !load_only => BufferDecl::output(name, n, element),
                4 if !load_only => BufferDecl::workgroup(name, element).with_count(1 + self.rng.below(9) as u32),
                _ => BufferDecl::uniform(name, n, element),
            };
            self.buffers.push(decl);
        }
        let atomic = if self.rng.chance(50) { DataType::U32 } else { DataType::I32 };
        self.buffers.push(BufferDecl::output("out", 90, atomic).with_count(1 + self.rng.below(20) as u32));
        self.buffers.reverse();
    }

    /// A name that is not visible here; now and then one that was used before, or looks like one that a pass would make.
    fn fresh(&mut self) -> String {
        if self.rng.chance(20) && !self.gone.is_empty() {
            let name = self.rng.pick(&self.gone).clone();
            if self.vars.iter().all(|var| var.name != name) {
                return name;
            }
        }
        self.next_name += 1;
        let stem = if self.rng.chance(5) { "cse" } else { "v" };
        format!("{stem}{}", self.next_name)
    }

    fn scalar(&mut self, over: TypeSet) -> Scalar {
        let all: Vec<Scalar> = over.iter().collect();
        *self.rng.pick(&all)
    }

    fn body(&mut self, depth: u32, uniform: bool, top: bool) -> Vec<Node> {
        let (visible, guarded, made) = (self.vars.len(), self.guarded.len(), self.made.len());
        let mut nodes = Vec::new();
        for _ in 0..1 + self.rng.below(4) {
            if self.budget == 0 {
                break;
            }
            self.budget -= 1;
            let node = self.node(depth, uniform, top);
            let ends = matches!(node, Node::Return | Node::Break | Node::Continue | Node::Trap { .. });
            nodes.push(node);
            if ends && self.rng.chance(70) {
                break;
            }
        }
        self.gone.extend(self.vars.drain(visible..).map(|var| var.name));
        self.guarded.truncate(guarded);
        self.made.truncate(made);
        nodes
    }

    fn declare(&mut self, ty: ValueType) -> String {
        let name = self.fresh();
        self.vars.push(Variable { name: name.clone(), ty, assignable: true });
        name
    }

    fn node(&mut self, depth: u32, uniform: bool, top: bool) -> Node {
        match self.rng.below(24) {
            0..=3 => {
                let ty = self.any_type();
                let value = self.value(ty, 3);
                Node::let_bind(self.declare(ty), value)
            }
            4 | 5 => {
                let targets: Vec<Variable> = self.vars.iter().filter(|var| var.assignable).cloned().collect();
                match targets.is_empty() {
                    true => self.store(),
                    false => {
                        let target = self.rng.pick(&targets).clone();
                        let value = match target.ty {
                            ValueType::Vector(_, count) if self.rng.chance(40) => self.exchanged(&target.name, count),
                            ValueType::Vector(..) | ValueType::Scalar(_) => self.value(target.ty, 3),
                        };
                        Node::assign(target.name, value)
                    }
                }
            }
            6..=10 => self.store(),
            11 | 12 if depth > 0 => {
                let uniform_here = uniform && self.rng.chance(40);
                let cond = match uniform_here {
                    true => self.uniform_bool(),
                    false if self.rng.chance(50) => self.split(),
                    false => self.expr(Scalar::Bool, 2),
                };
                let then = self.body(depth - 1, uniform_here, false);
                let otherwise = if self.rng.chance(40) { self.body(depth - 1, uniform_here, false) } else { vec![] };
                Node::if_then_else(cond, then, otherwise)
            }
            13 | 14 if depth > 0 => {
                let from = Expr::u32(self.rng.below(3) as u32);
                let uniform_here = uniform && self.rng.chance(50);
                let over = self.rng.pick(&self.buffers).name.clone();
                let to = match self.rng.below(4) {
                    0 if depth == 3 => Expr::buf_len(over.clone()),
                    1 => Expr::min(Expr::buf_len(over.clone()), Expr::u32(5)),
                    _ if uniform_here => Expr::u32(self.rng.below(5) as u32),
                    2 => Expr::rem(Expr::gid_x(), Expr::u32(5)),
                    _ => Expr::rem(self.expr(Scalar::U32, 2), Expr::u32(5)),
                };
                let name = self.fresh();
                self.vars.push(Variable { name: name.clone(), ty: Scalar::U32.into(), assignable: false });
                let (guarded, made) = (self.guarded.len(), self.made.len());
                self.guarded.push((over, Expr::var(name.as_str())));
                // A loop that may hold a barrier has no `break` at all, so that none can be divergent.
                let outer = std::mem::replace(&mut self.loops, u32::from(!uniform_here));
                let mut body = self.body(depth - 1, uniform_here, false);
                if self.rng.chance(40) {
                    self.carry(&mut body);
                }
                self.loops = outer;
                self.guarded.truncate(guarded);
                self.made.truncate(made);
                self.vars.pop();
                self.gone.push(name.clone());
                Node::loop_for(name, from, to, body)
            }
            15 if self.loops > 0 => {
                if self.rng.chance(50) {
                    Node::Break
                } else {
                    Node::Continue
                }
            }
            16 if uniform => {
                let orderings = [MemoryOrdering::SeqCst, MemoryOrdering::Acquire, MemoryOrdering::GridSync];
                let ordering = *self.rng.pick(&orderings);
                let ordering = if top { ordering } else { MemoryOrdering::SeqCst };
                let barrier = Node::barrier_with_ordering(ordering);
                if self.rng.chance(60) {
                    return barrier;
                }
                // The same load on both sides of it.
                let targets: Vec<BufferDecl> = self.buffers.iter().filter(|decl| decl.access.is_writable()).cloned().collect();
                let buffer = self.rng.pick(&targets).clone();
                let (from, to) = (self.index(&buffer), self.index(&buffer));
                let load = Expr::load(buffer.name.clone(), from);
                let name = self.fresh();
                self.gone.push(name.clone());
                Node::block(vec![Node::let_bind(name, load.clone()), barrier, Node::store(buffer.name.clone(), to, load)])
            }
            17 if self.rng.chance(30) => Node::Return,
            18 if self.rng.chance(10) => Node::trap(self.rng.next() as u32),
            19 if uniform && self.subgroup => {
                let op = *self.rng.pick(SubgroupOp::ALL);
                let ty = self.scalar(op.info().over);
                let operands = op
                    .info()
                    .operands
                    .iter()
                    .map(|operand| match operand {
                        vyre::spec::Operand::T => self.expr(ty, 2),
                        vyre::spec::Operand::Fixed(_) => Expr::u32(self.rng.below(6) as u32),
                    })
                    .collect();
                let result = op.info().result_type(ty).unwrap_or(ty);
                Node::let_subgroup(self.declare(result.into()), op, operands)
            }
            20 if !self.own_index || self.rng.chance(30) => self.atomic(),
            21 if depth > 0 => {
                let body = self.body(depth - 1, uniform, top);
                if self.rng.chance(50) { Node::block(body) } else { Node::region("made by a test", body) }
            }
            22 | 23 if depth > 0 => self.guard(depth),
            _ => self.store(),
        }
    }

    /// Lets a round of a loop store what the round before has left in a variable, at its end or where it was cut short.
    fn carry(&mut self, body: &mut Vec<Node>) {
        let targets: Vec<Variable> = self.vars.iter().filter(|var| var.assignable).cloned().collect();
        let Some(var) = (!targets.is_empty()).then(|| self.rng.pick(&targets).clone()) else { return };
        let Some(buffer) = self.buffers.iter().find(|decl| decl.access.is_writable() && value_type(decl) == var.ty).cloned()
        else {
            return;
        };
        let index = self.index(&buffer);
        body.insert(0, Node::store(buffer.name.clone(), index, Expr::var(var.name.as_str())));
        if self.loops > 0 && self.rng.chance(50) {
            let leave = if self.rng.chance(70) { Node::Continue } else { Node::Break };
            let then = vec![Node::assign(var.name.as_str(), self.value(var.ty, 2)), leave];
            body.insert(1, Node::if_then(self.expr(Scalar::Bool, 2), then));
        }
        body.push(Node::assign(var.name.as_str(), self.value(var.ty, 2)));
    }

    /// A condition on an index, and statements that are likely to use the index, inside it or behind it.
    fn guard(&mut self, depth: u32) -> Node {
        let buffer = self.rng.pick(&self.buffers).clone();
        let index = match self.rng.below(3) {
            0 => self.index(&buffer),
            _ => self.leaf(Scalar::U32),
        };
        let limit = match self.rng.below(5) {
            0 => Expr::u32(self.rng.below(10) as u32),
            1 => Expr::min(Expr::buf_len(buffer.name.clone()), self.leaf(Scalar::U32)),
            _ => Expr::buf_len(buffer.name.clone()),
        };
        let inside = match self.rng.below(6) {
            0 => Expr::gt(limit, index.clone()),
            1 => Expr::le(index.clone(), limit),
            2 => Expr::not(Expr::ge(index.clone(), limit)),
            3 => Expr::and(Expr::lt(index.clone(), limit), self.expr(Scalar::Bool, 1)),
            _ => Expr::lt(index.clone(), limit),
        };
        if self.rng.chance(25) {
            self.guarded.push((buffer.name.clone(), index));
            let leave = match self.rng.below(6) {
                0 | 1 if self.loops > 0 => Node::Continue,
                2 if self.loops > 0 => Node::Break,
                3 => Node::trap(7),
                _ => Node::Return,
            };
            return Node::if_then(Expr::not(inside), vec![leave]);
        }
        let guarded = self.guarded.len();
        self.guarded.push((buffer.name.clone(), index));
        let then = self.body(depth - 1, false, false);
        self.guarded.truncate(guarded);
        Node::if_then(inside, then)
    }

    fn atomic(&mut self) -> Node {
        let targets: Vec<(Name, Scalar)> = self
            .buffers
            .iter()
            .filter(|decl| decl.access.is_writable())
            .filter_map(|decl| {
                let of = |scalar: Scalar| decl.element == Element::Type(scalar.into());
                [Scalar::U32, Scalar::I32].into_iter().find(|scalar| of(*scalar)).map(|scalar| (decl.name.clone(), scalar))
            })
            .collect();
        let (buffer, ty) = self.rng.pick(&targets).clone();
        let op = if self.own_index { AtomicOp::Xor } else { *self.rng.pick(AtomicOp::ALL) };
        let index = self.expr(Scalar::U32, 2);
        let operands: Vec<Expr> = op.info().operands.iter().map(|_| self.expr(ty, 2)).collect();
        if op.info().result_type(ty).is_some() && !self.own_index && self.rng.chance(50) {
            Node::let_atomic(self.declare(ty.into()), op, buffer, index, operands)
        } else {
            Node::atomic(op, buffer, index, operands)
        }
    }

    fn store(&mut self) -> Node {
        let targets: Vec<BufferDecl> = self.buffers.iter().filter(|decl| decl.access.is_writable()).cloned().collect();
        let target = self.rng.pick(&targets).clone();
        let ty = value_type(&target);
        let index = self.index(&target);
        Node::store(target.name.clone(), index, self.value(ty, 3))
    }

    fn index(&mut self, buffer: &BufferDecl) -> Expr {
        match (self.own_index && buffer.access.is_writable(), buffer.access) {
            (true, Access::Workgroup) => Expr::lid_x(),
            (true, _) => Expr::gid_x(),
            (false, _) => {
                let guarded = self.guarded.iter().filter(|(name, _)| *name == buffer.name);
                let guarded: Vec<Expr> = guarded.map(|(_, index)| index.clone()).collect();
                if !guarded.is_empty() && self.rng.chance(70) {
                    return self.rng.pick(&guarded).clone();
                }
                match self.rng.below(7) {
                    0 => Expr::gid_x(),
                    1 => Expr::u32(self.rng.below(8) as u32),
                    2 => self.expr(Scalar::U32, 2),
                    3 => Expr::bitand(self.expr(Scalar::U32, 2), Expr::u32(7)),
                    4 => Expr::lid_x(),
                    5 => Expr::sub(self.leaf(Scalar::U32), Expr::u32(1)),
                    _ => Expr::rem(self.expr(Scalar::U32, 2), Expr::u32(8)),
                }
            }
        }
    }

    fn any_type(&mut self) -> ValueType {
        if self.rng.chance(10) {
            let scalar = *self.rng.pick(&[Scalar::U32, Scalar::I32, Scalar::F32]);
            ValueType::Vector(scalar, 2 + self.rng.below(3) as u8)
        } else {
            ValueType::Scalar(self.scalar(TypeSet::ALL))
        }
    }

    fn uniform_bool(&mut self) -> Expr {
        let left = match self.rng.below(4) {
            0 => Expr::wid_x(),
            1 => Expr::buf_len(self.buffers[0].name.clone()),
            2 => Expr::builtin(Builtin::WorkgroupCount(Axis::X)),
            _ => Expr::u32(self.rng.below(4) as u32),
        };
        Expr::lt(left, Expr::u32(self.rng.below(4) as u32))
    }

    /// A condition that is likely to hold for some invocations of a workgroup and not for others.
    fn split(&mut self) -> Expr {
        let id = if self.rng.chance(50) { Expr::gid_x() } else { Expr::lid_x() };
        match self.rng.below(3) {
            0 => Expr::lt(id, Expr::u32(1 + self.rng.below(6) as u32)),
            1 => Expr::eq(Expr::rem(id, Expr::u32(2 + self.rng.below(2) as u32)), Expr::u32(self.rng.below(2) as u32)),
            _ => Expr::ne(Expr::bitand(id, Expr::u32(1 + self.rng.below(6) as u32)), Expr::u32(0)),
        }
    }

    /// The vector that a variable holds, made of its components in some order.
    fn exchanged(&mut self, name: &str, count: u8) -> Expr {
        let component = |rng: &mut Rng| Expr::extract(Expr::var(name), rng.below(usize::from(count)) as u8);
        Expr::vector((0..count).map(|_| component(&mut self.rng)).collect::<Vec<_>>())
    }

    fn value(&mut self, ty: ValueType, depth: u32) -> Expr {
        match ty {
            ValueType::Scalar(scalar) => self.expr(scalar, depth),
            ValueType::Vector(scalar, count) => {
                let from: Vec<String> = self.vars.iter().filter(|var| var.ty == ty).map(|var| var.name.clone()).collect();
                if !from.is_empty() && self.rng.chance(40) {
                    return Expr::var(self.rng.pick(&from).as_str());
                }
                if let Some(load) = self.load(ty)
                    && self.rng.chance(50)
                {
                    return load;
                }
                Expr::vector((0..count).map(|_| self.expr(scalar, depth.saturating_sub(1))).collect::<Vec<_>>())
            }
        }
    }

    fn load(&mut self, ty: ValueType) -> Option<Expr> {
        let sources: Vec<BufferDecl> = self.buffers.iter().filter(|decl| value_type(decl) == ty).cloned().collect();
        if sources.is_empty() {
            return None;
        }
        let source = self.rng.pick(&sources).clone();
        let index = self.index(&source);
        Some(Expr::load(source.name.clone(), index))
    }

    fn leaf(&mut self, ty: Scalar) -> Expr {
        let vars: Vec<String> =
            self.vars.iter().filter(|var| var.ty == ValueType::Scalar(ty)).map(|var| var.name.clone()).collect();
        if !vars.is_empty() && self.rng.chance(60) {
            return Expr::var(self.rng.pick(&vars).as_str());
        }
        if ty == Scalar::U32 && self.rng.chance(40) {
            let builtin = *self.rng.pick(&Builtin::ALL);
            let needs_subgroup = matches!(builtin, Builtin::SubgroupLane | Builtin::SubgroupSize);
            if self.subgroup || !needs_subgroup {
                return Expr::builtin(builtin);
            }
        }
        Expr::Lit(Literal::from_bits(ty, self.rng.bits()))
    }

    fn expr(&mut self, ty: Scalar, depth: u32) -> Expr {
        if depth == 0 || self.rng.chance(20) {
            return self.leaf(ty);
        }
        if self.rng.chance(20) {
            let again: Vec<Expr> = self.made.iter().filter(|(of, _)| *of == ty).map(|(_, expr)| expr.clone()).collect();
            if !again.is_empty() {
                return self.rng.pick(&again).clone();
            }
        }
        for _ in 0..8 {
            if let Some(expr) = self.try_expr(ty, depth) {
                self.made.push((ty, expr.clone()));
                return expr;
            }
        }
        self.leaf(ty)
    }

    /// One op chosen blindly; `None` if it does not give the type.
    fn try_expr(&mut self, ty: Scalar, depth: u32) -> Option<Expr> {
        let d = depth - 1;
        match self.rng.below(8) {
            0 => self.load(ty.into()),
            1 => {
                let op = *self.rng.pick(UnaryOp::ALL);
                let t = self.scalar(op.info().over);
                (op.info().result_type(t) == Some(ty)).then(|| Expr::unary(op, self.expr(t, d)))
            }
            2..=4 => {
                let op = *self.rng.pick(BinaryOp::ALL);
                let t = if op.info().over.contains(ty) { ty } else { self.scalar(op.info().over) };
                let right = match op.info().operands[1] {
                    vyre::spec::Operand::T => t,
                    vyre::spec::Operand::Fixed(fixed) => fixed,
                };
                (op.info().result_type(t) == Some(ty)).then(|| Expr::binary(op, self.expr(t, d), self.expr(right, d)))
            }
            5 => {
                let op = *self.rng.pick(TernaryOp::ALL);
                let first = match op {
                    TernaryOp::Fma if !ty.is_float() => return None,
                    TernaryOp::Fma => ty,
                    TernaryOp::Select => Scalar::Bool,
                };
                Some(Expr::ternary(op, self.expr(first, d), self.expr(ty, d), self.expr(ty, d)))
            }
            6 => {
                let from = self.scalar(TypeSet::ALL);
                if self.rng.chance(50) && from.bits() == ty.bits() && from != Scalar::Bool {
                    return Some(Expr::bitcast(ty, self.expr(from, d)));
                }
                (!(ty == Scalar::Bool && from.is_float())).then(|| Expr::cast(ty, self.expr(from, d)))
            }
            _ => {
                if !matches!(ty, Scalar::U32 | Scalar::I32 | Scalar::F32) {
                    return None;
                }
                let count = 2 + self.rng.below(3) as u8;
                let vector = self.value(ValueType::Vector(ty, count), d);
                Some(Expr::extract(vector, self.rng.below(usize::from(count)) as u8))
            }
        }
    }
}

fn value_type(decl: &BufferDecl) -> ValueType {
    match &decl.element {
        Element::Type(data_type) => data_type.value_type().expect("kernel types only"),
        Element::Const(_) => unreachable!("the generator uses no type constants"),
    }
}
