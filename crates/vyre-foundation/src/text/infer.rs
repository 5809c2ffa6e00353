//! Which type the context of an integer without suffix fixes.
//!
//! Types flow in two directions, over one statement at a time. Upwards goes what an expression is by itself: literals with a type,
//! variables, loads, casts and most ops say so, while an integer without suffix is *open*, and so is an op over nothing else. Then
//! downwards goes what the surroundings fix: the op's table row, the first of the operands of one type that says what it is, the
//! variable assigned to, the buffer stored to. What arrives at an open integer is its [`Context`].
//!
//! It works on the IR, with any set of literals taken as open, and on programs with mistakes. The lowering asks about the integers
//! that were written without suffix; the printer asks, as if none of the `u32` literals had one, which of them can go without. The
//! two agree: a suffix that the printer does write can only turn other types into `u32`, and only where it wrote suffixes anyway.

use crate::diagnostic::{BufferPart, Location, Poison};
use crate::ir::{
    Atomic, ConstDecl, Element, Expr, Item, Literal, Loop, Name, Node, NodeId, Parts, SpecValue, Store, Subgroup, Walk,
};
use std::collections::HashMap;
use vyre_spec::{OpInfo, Operand, ResultRule, Scalar, ValueType};

use super::ast::OpenInt;

/// What the surroundings of an integer say about its type.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Context {
    /// Nothing.
    Free,
    /// Something that a mistake elsewhere hides.
    Unknown,
    /// This.
    Fixed(ValueType),
}

impl Context {
    /// The constant that an integer is in this context. Where no integer can be right it becomes one all the same, for the
    /// validator to refuse with the whole picture. `Err` is the type whose range it is out of.
    pub(super) fn literal(self, value: OpenInt) -> Result<Literal, Scalar> {
        const BY_PREFERENCE: [Scalar; 4] = [Scalar::U32, Scalar::I32, Scalar::U64, Scalar::I64];
        let fixed = match self {
            Context::Free => Some(Scalar::U32),
            Context::Fixed(ValueType::Scalar(scalar)) if scalar.is_int() => Some(scalar),
            Context::Fixed(_) | Context::Unknown => None,
        };
        match fixed {
            Some(scalar) => value.of_type(scalar).ok_or(scalar),
            None => BY_PREFERENCE.into_iter().find_map(|scalar| value.of_type(scalar)).ok_or(Scalar::U64),
        }
    }
}

/// What an expression is by itself.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Type {
    /// Whatever integer its context wants.
    Open,
    /// A vector of so many such integers.
    OpenVector(u8),
    /// Hidden by a mistake.
    Unknown,
    Known(ValueType),
}

impl Type {
    fn scalar(scalar: Scalar) -> Type {
        Type::Known(ValueType::Scalar(scalar))
    }

    /// The type when no context will fix it.
    fn settled(self) -> Type {
        match self {
            Type::Open => Type::scalar(Scalar::U32),
            Type::OpenVector(count) => Type::Known(ValueType::Vector(Scalar::U32, count)),
            Type::Unknown | Type::Known(_) => self,
        }
    }

    /// What this, as the type of the place a value goes to, tells the value.
    fn context(self) -> Context {
        match self {
            Type::Open | Type::OpenVector(_) => Context::Free,
            Type::Unknown => Context::Unknown,
            Type::Known(ty) => Context::Fixed(ty),
        }
    }

    /// The one type of several expressions: that of the first that knows it.
    fn of_all(types: impl Iterator<Item = Type> + Clone) -> Type {
        let known = types.clone().find(|ty| matches!(ty, Type::Known(_)));
        known.or(types.clone().find(|ty| *ty == Type::Unknown)).or(types.clone().next()).unwrap_or(Type::Unknown)
    }

    /// The type of an op's result when its type variable is this.
    fn result(self, rule: ResultRule) -> Type {
        match (rule, self.settled()) {
            (ResultRule::T, _) => self,
            (ResultRule::Fixed(scalar), _) => Type::scalar(scalar),
            (ResultRule::UnsignedT, Type::Known(ValueType::Scalar(scalar))) => Type::scalar(scalar.unsigned()),
            (ResultRule::UnsignedT | ResultRule::None, _) => Type::Unknown,
        }
    }
}

/// The contexts of all literals that `is_open` says are open, in the order of the walk; it gets the value, and the number among all
/// literals and vectors of the walk. The
/// program must not nest deeper than the limit. There are `count` of them, or not many more.
pub(super) fn contexts(parts: &Parts, is_open: impl Fn(usize, Literal) -> bool, poison: &Poison, count: usize) -> Vec<Context> {
    let mut types = HashMap::new();
    // Of those with one name the first counts.
    let mut consts: HashMap<&Name, (usize, &ConstDecl)> = HashMap::with_capacity(parts.consts.len());
    for (n, decl) in parts.consts.iter().enumerate() {
        consts.entry(&decl.name).or_insert((n, decl));
        types.insert(decl.name.clone(), decl.default.literal().map_or(Type::Unknown, |literal| Type::scalar(literal.scalar())));
    }
    let elements = parts.buffers.iter().enumerate().map(|(n, buffer)| {
        let element = match &buffer.element {
            Element::Type(data_type) => Some(data_type),
            Element::Const(name) => match consts.get(name) {
                Some((n, ConstDecl { default: SpecValue::DType(data_type), .. })) => {
                    Some(data_type).filter(|_| !poison.has(Location::Const(*n as u32)))
                }
                Some(_) | None => None,
            },
        };
        let element = element.filter(|_| !poison.has(Location::Buffer(n as u32, BufferPart::Element)));
        (&buffer.name, element.and_then(|element| element.value_type()).map_or(Type::Unknown, Type::Known))
    });
    let mut inference = Inference {
        is_open,
        poison,
        types,
        buffers: elements.collect(),
        undo: Vec::new(),
        below: Vec::new(),
        at: At { place: 0, listed: 0 },
        contexts: Vec::with_capacity(count),
    };
    inference.body(&parts.body);
    inference.contexts
}

struct Inference<'a, F> {
    is_open: F,
    poison: &'a Poison,
    /// Of the variables and constants that can be seen.
    types: HashMap<Name, Type>,
    buffers: HashMap<&'a Name, Type>,
    /// What the declarations of open scopes replaced, innermost last.
    undo: Vec<(Name, Option<Type>)>,
    /// Of the expressions of the current statement, in the order of the walk: what each is by itself, and the number after its last
    /// descendant.
    below: Vec<(Type, usize)>,
    at: At,
    contexts: Vec<Context>,
}

/// How far a walk is.
#[derive(Clone, Copy)]
struct At {
    /// The number of the next statement or expression.
    place: u32,
    /// The number of the next literal or vector among all of them.
    listed: usize,
}

impl At {
    /// Goes on behind one that is no statement.
    fn pass(&mut self, expr: &Expr) {
        self.place += 1;
        self.listed += usize::from(matches!(expr, Expr::Lit(_) | Expr::Vector { .. }));
    }
}

/// A list that is too long for a vector: nothing is known about it. What is below each of its components is looked at alone, so that only
/// so much is held at once.
fn is_long(expr: &Expr) -> bool {
    matches!(expr, Expr::Vector { components } if components.len() > 64)
}

impl<'a, F: Fn(usize, Literal) -> bool> Inference<'a, F> {
    fn body(&mut self, body: &'a [Node]) {
        let scope = self.undo.len();
        for node in body {
            self.node(node);
        }
        self.end_scope(scope);
    }

    fn end_scope(&mut self, scope: usize) {
        while self.undo.len() > scope {
            if let Some((name, earlier)) = self.undo.pop() {
                match earlier {
                    Some(ty) => self.types.insert(name, ty),
                    None => self.types.remove(&name),
                };
            }
        }
    }

    fn declare(&mut self, name: &Name, ty: Type) {
        let earlier = self.types.insert(name.clone(), ty.settled());
        self.undo.push((name.clone(), earlier));
    }

    fn buffer(&self, name: &Name) -> Type {
        self.buffers.get(name).copied().unwrap_or(Type::Unknown)
    }

    fn node(&mut self, node: &'a Node) {
        self.at.place += 1;
        let index = Context::Fixed(ValueType::Scalar(Scalar::U32));
        match node {
            Node::Let { name, value } => {
                let ty = self.value(value, Context::Free);
                self.declare(name, ty);
            }
            Node::Assign { name, value } => {
                let wanted = self.types.get(name).copied().unwrap_or(Type::Unknown);
                self.value(value, wanted.context());
            }
            Node::Store(store) => {
                let Store { buffer, index: at, value } = &**store;
                self.value(at, index);
                let wanted = self.buffer(buffer);
                self.value(value, wanted.context());
            }
            Node::Atomic(atomic) => {
                let Atomic { result, op, buffer, index: at, operands } = &**atomic;
                self.value(at, index);
                let t = self.buffer(buffer);
                for (i, operand) in operands.iter().enumerate() {
                    self.value(operand, operand_context(op.info(), i, t));
                }
                if let Some(result) = result {
                    self.declare(result, t.result(op.info().result));
                }
            }
            Node::Subgroup(subgroup) => {
                let Subgroup { result, op, operands } = &**subgroup;
                let first = self.at;
                let rows: Vec<usize> = operands.iter().map(|operand| self.upwards(operand)).collect();
                let t = variable(op.info(), rows.iter().map(|row| self.below[*row].0));
                self.at = first;
                for (i, (operand, row)) in operands.iter().zip(rows).enumerate() {
                    self.downwards(operand, row, operand_context(op.info(), i, t));
                }
                self.below.clear();
                if let Some(result) = result {
                    self.declare(result, t.result(op.info().result));
                }
            }
            Node::If { cond, then, otherwise } => {
                self.value(cond, Context::Fixed(ValueType::Scalar(Scalar::Bool)));
                self.body(then);
                self.body(otherwise);
            }
            Node::Loop(repeat) => {
                let Loop { var, from, to, body } = &**repeat;
                self.value(from, index);
                self.value(to, index);
                let scope = self.undo.len();
                self.declare(var, Type::scalar(Scalar::U32));
                self.body(body);
                self.end_scope(scope);
            }
            Node::Block(body) | Node::Region { body, .. } => self.body(body),
            Node::Break | Node::Continue | Node::Return | Node::Barrier { .. } | Node::Trap { .. } => {}
        }
    }

    /// A whole expression in its context; gives what it is by itself.
    fn value(&mut self, expr: &'a Expr, context: Context) -> Type {
        let first = self.at;
        let row = self.upwards(expr);
        let ty = self.below[row].0;
        self.at = first;
        self.downwards(expr, row, context);
        self.below.clear();
        ty
    }

    /// Notes what the expression and those below it are by themselves; gives the row of the expression.
    fn upwards(&mut self, expr: &'a Expr) -> usize {
        let row = self.below.len();
        let At { place, listed } = self.at;
        if is_long(expr) {
            Walk::expr(expr).for_each(|(item, _)| match item {
                Item::Expr(expr) => self.at.pass(expr),
                Item::Node(_) => {}
            });
            self.below.push((Type::Unknown, row + 1));
            return row;
        }
        self.at.pass(expr);
        self.below.push((Type::Unknown, 0));
        for child in expr.children() {
            self.upwards(child);
        }
        let children = self.children(row, expr).into_iter().map(|child| self.below[child].0);
        let children: Vec<Type> = children.collect();
        let children = children.iter().copied();
        let ty = match expr {
            _ if self.stands_in(place) => Type::Unknown,
            Expr::Lit(literal) if (self.is_open)(listed, *literal) => Type::Open,
            Expr::Lit(literal) => Type::scalar(literal.scalar()),
            Expr::Var(name) => self.types.get(name).copied().unwrap_or(Type::Unknown),
            Expr::Builtin(_) | Expr::Len(_) => Type::scalar(Scalar::U32),
            Expr::Load(load) => self.buffer(&load.buffer),
            Expr::Unary { op, .. } => variable(op.info(), children).result(op.info().result),
            Expr::Binary { op, .. } => variable(op.info(), children).result(op.info().result),
            Expr::Ternary { op, .. } => variable(op.info(), children).result(op.info().result),
            Expr::Cast { to, .. } | Expr::Bitcast { to, .. } => Type::scalar(*to),
            Expr::Vector { components } => match (Type::of_all(children), u8::try_from(components.len())) {
                (Type::Known(ValueType::Scalar(scalar)), Ok(count)) => Type::Known(ValueType::Vector(scalar, count)),
                (Type::Open, Ok(count)) => Type::OpenVector(count),
                (Type::Known(_) | Type::Open | Type::OpenVector(_) | Type::Unknown, _) => Type::Unknown,
            },
            Expr::Extract { .. } => match Type::of_all(children).settled() {
                Type::Known(ValueType::Vector(scalar, _)) => Type::scalar(scalar),
                Type::Known(ValueType::Scalar(_)) | Type::Open | Type::OpenVector(_) | Type::Unknown => Type::Unknown,
            },
        };
        self.below[row] = (ty, self.below.len());
        row
    }

    fn stands_in(&self, place: u32) -> bool {
        self.poison.has(Location::Tree(NodeId(place)))
    }

    /// The rows of the children of the expression at `row`, whose rows are complete.
    fn children(&self, row: usize, expr: &Expr) -> Vec<usize> {
        let mut next = row + 1;
        let rows = expr.children().map(|_| {
            let row = next;
            next = self.below[row].1;
            row
        });
        rows.collect()
    }

    /// Tells the expression and those below it their contexts.
    fn downwards(&mut self, expr: &'a Expr, row: usize, context: Context) {
        let At { place, listed } = self.at;
        self.at.pass(expr);
        if is_long(expr) {
            for child in expr.children() {
                let (first, rows) = (self.at, self.below.len());
                let row = self.upwards(child);
                self.at = first;
                self.downwards(child, row, Context::Unknown);
                self.below.truncate(rows);
            }
            return;
        }
        let rows = self.children(row, expr);
        let types = rows.iter().map(|row| self.below[*row].0);
        let (t, info) = match expr {
            Expr::Lit(literal) => {
                if (self.is_open)(listed, *literal) {
                    self.contexts.push(context);
                }
                return;
            }
            Expr::Var(_) | Expr::Builtin(_) | Expr::Len(_) => return,
            Expr::Unary { op, .. } => (variable(op.info(), types), Some(op.info())),
            Expr::Binary { op, .. } => (variable(op.info(), types), Some(op.info())),
            Expr::Ternary { op, .. } => (variable(op.info(), types), Some(op.info())),
            Expr::Vector { .. } => (Type::of_all(types), None),
            Expr::Load(_) => (Type::scalar(Scalar::U32), None),
            Expr::Cast { .. } | Expr::Bitcast { .. } | Expr::Extract { .. } => (Type::Open, None),
        };
        let below = match (expr, t) {
            _ if self.stands_in(place) => Context::Unknown,
            // Nothing below fixes the type, so what fixes that of the result does.
            (Expr::Vector { .. }, Type::Open | Type::OpenVector(_)) => match context {
                Context::Fixed(ValueType::Vector(scalar, _)) => Context::Fixed(ValueType::Scalar(scalar)),
                Context::Fixed(ValueType::Scalar(_)) | Context::Free => Context::Free,
                Context::Unknown => Context::Unknown,
            },
            (_, Type::Open | Type::OpenVector(_)) if info.is_some_and(|info| info.result == ResultRule::T) => context,
            (_, t) => t.context(),
        };
        for (i, (child, row)) in expr.children().zip(rows).enumerate() {
            let fixed = match info.and_then(|info| info.operands.get(i)) {
                Some(Operand::Fixed(scalar)) => Some(Context::Fixed(ValueType::Scalar(*scalar))),
                Some(Operand::T) | None => None,
            };
            self.downwards(child, row, fixed.unwrap_or(below));
        }
    }
}

/// What the type variable of an op stands for, over operands that are these by themselves.
fn variable(info: &OpInfo, operands: impl Iterator<Item = Type> + Clone) -> Type {
    let of_variable = operands.zip(info.operands).filter(|(_, operand)| **operand == Operand::T).map(|(ty, _)| ty);
    Type::of_all(of_variable)
}

/// What an op tells its operand number `i` when its type variable is `t`.
fn operand_context(info: &OpInfo, i: usize, t: Type) -> Context {
    match info.operands.get(i) {
        Some(Operand::T) => t.context(),
        Some(Operand::Fixed(scalar)) => Context::Fixed(ValueType::Scalar(*scalar)),
        // More operands than the op has; the validator refuses them.
        None => Context::Free,
    }
}
