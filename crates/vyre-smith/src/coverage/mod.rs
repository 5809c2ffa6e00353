//! Which parts of the language a set of programs has reached: a grid of things × types × contexts, and the holes in it.
//!
//! The grid comes from the op tables, so a new op is a hole until a program has it. What a program reaches is read off its resolved
//! kernel, whoever made the program. Beside it are patterns (`pattern.rs`): what only goes wrong together, and values and shapes.

mod pattern;

pub use pattern::{Exit, Pattern};

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;
use std::sync::OnceLock;
use vyre_foundation::analysis::{Scope, Uniformity};
use vyre_foundation::ir::{
    Access, AtomicOp, BinaryOp, Builtin, DataType, FloatMode, Item, Node, Program, Scalar, Size, SubgroupOp, TernaryOp, UnaryOp,
    ValueType,
};
use vyre_foundation::kernel::{Body, ExprId, ExprKind, Kernel, Stmt, StmtId, StmtKind};
use vyre_foundation::memory_model::MemoryOrdering;
use vyre_spec::{OpInfo, Storage};
use vyre_worker::Case;

/// What is around a statement, and with it around its expressions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Context {
    /// The whole workgroup gets here together, once.
    Straight,
    /// The whole workgroup gets here together, or not at all.
    UniformBranch,
    /// The whole workgroup gets here together, iteration after iteration.
    UniformLoop,
    /// Some invocations get here.
    DivergentBranch,
    /// Some invocations get here, iteration after iteration.
    DivergentLoop,
}

impl Context {
    const ALL: [Context; 5] =
        [Context::Straight, Context::UniformBranch, Context::UniformLoop, Context::DivergentBranch, Context::DivergentLoop];
    const UNIFORM: [Context; 3] = [Context::Straight, Context::UniformBranch, Context::UniformLoop];
    const LOOPS: [Context; 2] = [Context::UniformLoop, Context::DivergentLoop];

    const fn name(self) -> &'static str {
        match self {
            Context::Straight => "straight",
            Context::UniformBranch => "in a uniform branch",
            Context::UniformLoop => "in a uniform loop",
            Context::DivergentBranch => "in a divergent branch",
            Context::DivergentLoop => "in a divergent loop",
        }
    }

    fn inside(self, uniform: bool, loops: bool) -> Context {
        let divergent = !uniform || matches!(self, Context::DivergentBranch | Context::DivergentLoop);
        match (divergent, loops || matches!(self, Context::UniformLoop | Context::DivergentLoop)) {
            (false, false) => Context::UniformBranch,
            (false, true) => Context::UniformLoop,
            (true, false) => Context::DivergentBranch,
            (true, true) => Context::DivergentLoop,
        }
    }
}

/// A thing of the language, with the type it is used at.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Thing {
    Unary(UnaryOp, Scalar),
    Binary(BinaryOp, Scalar),
    Ternary(TernaryOp, Scalar),
    Cast(Scalar, Scalar),
    Bitcast(Scalar, Scalar),
    Literal(Scalar),
    Variable(ValueType),
    Builtin(Builtin),
    Len(Access),
    Vector(Scalar, u8),
    Extract(Scalar, u8),
    Load(Access, DataType),
    Store(Access, DataType),
    Atomic(AtomicOp, Scalar, Access),
    Subgroup(SubgroupOp, Scalar),
    Let(ValueType),
    Assign(ValueType),
    If,
    IfElse,
    Loop,
    Break,
    Continue,
    Return,
    Trap,
    Barrier(MemoryOrdering),
    GridSync,
    Block,
    Region,
}

impl Thing {
    fn spelled(&self) -> String {
        match self {
            Thing::Unary(op, ty) => format!("{op} {ty}"),
            Thing::Binary(op, ty) => format!("{op} {ty}"),
            Thing::Ternary(op, ty) => format!("{op} {ty}"),
            Thing::Cast(from, to) => format!("{from} to {to}"),
            Thing::Bitcast(from, to) => format!("bits of {from} as {to}"),
            Thing::Literal(ty) => format!("literal {ty}"),
            Thing::Variable(ty) => format!("variable {ty}"),
            Thing::Builtin(builtin) => builtin.to_string(),
            Thing::Len(access) => format!("len of {access}"),
            Thing::Vector(part, count) => format!("build vec{count}<{part}>"),
            Thing::Extract(part, component) => format!("component {component} of a vector of {part}"),
            Thing::Load(access, element) => format!("load {access} {element}"),
            Thing::Store(access, element) => format!("store {access} {element}"),
            Thing::Atomic(op, ty, access) => format!("atomic.{op} {access} {ty}"),
            Thing::Subgroup(op, ty) => format!("subgroup.{op} {ty}"),
            Thing::Let(ty) => format!("let {ty}"),
            Thing::Assign(ty) => format!("assign {ty}"),
            Thing::If => "if".into(),
            Thing::IfElse => "if else".into(),
            Thing::Loop => "for".into(),
            Thing::Break => "break".into(),
            Thing::Continue => "continue".into(),
            Thing::Return => "return".into(),
            Thing::Trap => "trap".into(),
            Thing::Barrier(ordering) => format!("barrier.{ordering}"),
            Thing::GridSync => "barrier.grid".into(),
            Thing::Block => "block".into(),
            Thing::Region => "region".into(),
        }
    }
}

/// One cell of the grid.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Cell {
    /// A thing in a context.
    In(Thing, Context),
    /// A float op or conversion in a float mode.
    Mode(Thing, FloatMode),
    /// Something that a program says about itself.
    Attribute(String),
    /// A pattern in it or in its launch.
    Pattern(Pattern),
}

impl Cell {
    fn spelled(&self) -> String {
        match self {
            Cell::In(thing, context) => format!("{}, {}", thing.spelled(), context.name()),
            Cell::Mode(thing, mode) => format!("{}, floats {mode}", thing.spelled()),
            Cell::Attribute(text) => text.clone(),
            Cell::Pattern(pattern) => pattern.to_string(),
        }
    }
}

/// Every cell, and where it is.
struct Grid {
    cells: Vec<Cell>,
    index: HashMap<Cell, usize>,
}

fn grid() -> &'static Grid {
    static GRID: OnceLock<Grid> = OnceLock::new();
    GRID.get_or_init(|| {
        let mut cells = Vec::new();
        let mut everywhere = |thing: Thing, contexts: &[Context]| {
            cells.extend(contexts.iter().map(|context| Cell::In(thing.clone(), *context)));
        };
        let mut float_things = Vec::new();
        let types = |info: &'static OpInfo| info.over.iter();
        for op in UnaryOp::ALL {
            for ty in types(op.info()) {
                everywhere(Thing::Unary(*op, ty), &Context::ALL);
                float_things.extend(ty.is_float().then_some(Thing::Unary(*op, ty)));
            }
        }
        for op in BinaryOp::ALL {
            for ty in types(op.info()) {
                everywhere(Thing::Binary(*op, ty), &Context::ALL);
                float_things.extend(ty.is_float().then_some(Thing::Binary(*op, ty)));
            }
        }
        for op in TernaryOp::ALL {
            for ty in types(op.info()) {
                everywhere(Thing::Ternary(*op, ty), &Context::ALL);
                float_things.extend(ty.is_float().then_some(Thing::Ternary(*op, ty)));
            }
        }
        for (from, to) in Scalar::ALL.into_iter().flat_map(|from| Scalar::ALL.map(|to| (from, to))) {
            let float = from.is_float() || to.is_float();
            if !(from.is_float() && to == Scalar::Bool) {
                everywhere(Thing::Cast(from, to), &Context::ALL);
                float_things.extend(float.then_some(Thing::Cast(from, to)));
            }
            if from.bits() == to.bits() && from != Scalar::Bool {
                everywhere(Thing::Bitcast(from, to), &Context::ALL);
                float_things.extend(float.then_some(Thing::Bitcast(from, to)));
            }
        }
        let parts = [Scalar::U32, Scalar::I32, Scalar::F32];
        let vectors = parts.into_iter().flat_map(|part| [2, 3, 4].map(|count| ValueType::Vector(part, count)));
        for ty in Scalar::ALL.into_iter().map(ValueType::Scalar).chain(vectors) {
            for thing in [Thing::Variable(ty), Thing::Let(ty), Thing::Assign(ty)] {
                everywhere(thing, &Context::ALL);
            }
            match ty {
                ValueType::Scalar(scalar) => everywhere(Thing::Literal(scalar), &Context::ALL),
                ValueType::Vector(part, count) => everywhere(Thing::Vector(part, count), &Context::ALL),
            }
        }
        for part in parts {
            (0..4).for_each(|component| everywhere(Thing::Extract(part, component), &Context::ALL));
        }
        Builtin::ALL.into_iter().for_each(|builtin| everywhere(Thing::Builtin(builtin), &Context::ALL));
        for access in Access::ALL {
            everywhere(Thing::Len(access), &Context::ALL);
            for element in elements() {
                let load_only = matches!(element.storage(), Storage::LoadOnly(_));
                if access.is_writable() && load_only {
                    continue;
                }
                everywhere(Thing::Load(access, element.clone()), &Context::ALL);
                if access.is_writable() {
                    everywhere(Thing::Store(access, element), &Context::ALL);
                }
            }
            for op in AtomicOp::ALL.iter().filter(|_| access.is_writable()) {
                types(op.info()).for_each(|ty| everywhere(Thing::Atomic(*op, ty, access), &Context::ALL));
            }
        }
        for op in SubgroupOp::ALL {
            types(op.info()).for_each(|ty| everywhere(Thing::Subgroup(*op, ty), &Context::UNIFORM));
        }
        for thing in [Thing::If, Thing::IfElse, Thing::Loop, Thing::Return, Thing::Trap, Thing::Block, Thing::Region] {
            everywhere(thing, &Context::ALL);
        }
        for thing in [Thing::Break, Thing::Continue] {
            everywhere(thing, &Context::LOOPS);
        }
        for ordering in MemoryOrdering::ALL {
            match ordering {
                MemoryOrdering::Relaxed => {}
                MemoryOrdering::GridSync => everywhere(Thing::GridSync, &[Context::Straight]),
                MemoryOrdering::Acquire | MemoryOrdering::Release | MemoryOrdering::AcqRel | MemoryOrdering::SeqCst => {
                    everywhere(Thing::Barrier(ordering), &Context::UNIFORM);
                }
            }
        }
        for mode in FloatMode::ALL {
            cells.extend(float_things.iter().map(|thing| Cell::Mode(thing.clone(), mode)));
        }
        cells.extend(all_attributes().into_iter().map(Cell::Attribute));
        cells.extend(Pattern::all().into_iter().map(Cell::Pattern));
        let index = cells.iter().enumerate().map(|(n, cell)| (cell.clone(), n)).collect();
        Grid { cells, index }
    })
}

/// Every element type that kernels accept.
fn elements() -> impl Iterator<Item = DataType> {
    let vectors =
        [Scalar::U32, Scalar::I32, Scalar::F32].into_iter().flat_map(|part| [2, 3, 4].map(|count| DataType::vector(part, count)));
    DataType::KERNEL_SCALARS.into_iter().chain(vectors)
}

fn all_attributes() -> Vec<String> {
    let mut all: Vec<String> = FloatMode::ALL.iter().map(|mode| format!("floats {mode}")).collect();
    all.extend(vyre_spec::limits::SUBGROUP_SIZES.iter().map(|size| format!("subgroup {size}")));
    all.extend(["u32", "i32", "f32", "bool", "dtype"].map(|kind| format!("constant {kind}")));
    all.extend(
        ["wrapped", "raw", "constant in the workgroup size", "constant as a count", "declared count", "open count"]
            .map(String::from),
    );
    all.extend([1, 2, 3].map(|dimensions| format!("workgroup of {dimensions} dimensions")));
    all.extend(Access::ALL.map(|access| format!("buffer {access}")));
    all
}

/// The patterns of a case, in its program and in its launch; none if the program is not valid.
#[must_use]
pub fn patterns(case: &Case) -> BTreeSet<Pattern> {
    let Ok(validated) = case.program.validated() else { return BTreeSet::new() };
    let mut patterns = pattern::of_program(&case.program, validated);
    patterns.extend(pattern::of_launch(case));
    patterns
}

/// What has been reached so far.
#[derive(Clone)]
pub struct Coverage {
    reached: Vec<bool>,
    count: usize,
}

impl Default for Coverage {
    fn default() -> Self {
        Coverage { reached: vec![false; grid().cells.len()], count: 0 }
    }
}

impl Coverage {
    /// How many cells there are.
    #[must_use]
    pub fn cells(&self) -> usize {
        self.reached.len()
    }

    /// How many of them have been reached.
    #[must_use]
    pub fn reached(&self) -> usize {
        self.count
    }

    /// The cells that have not, as people read them, in the order of the grid.
    #[must_use]
    pub fn holes(&self) -> Vec<String> {
        grid().cells.iter().zip(&self.reached).filter(|(_, reached)| !**reached).map(|(cell, _)| cell.spelled()).collect()
    }

    /// Adds what another set of programs has reached.
    pub fn merge(&mut self, other: &Coverage) {
        for (mine, theirs) in self.reached.iter_mut().zip(&other.reached) {
            *mine |= theirs;
        }
        self.count = self.reached.iter().filter(|reached| **reached).count();
    }

    /// Adds what a program has; one that is not valid has nothing.
    pub fn add(&mut self, program: &Program) {
        let Ok(validated) = program.validated() else { return };
        let kernel = validated.kernel();
        self.attributes(program);
        // What the kernel does not tell apart.
        let spelled = program
            .walk()
            .zip(0..)
            .filter_map(|((item, _), place)| match item {
                Item::Node(Node::Barrier { ordering }) => Some((place, Thing::Barrier(*ordering))),
                Item::Node(Node::Block(_)) => Some((place, Thing::Block)),
                Item::Node(Node::Region { .. }) => Some((place, Thing::Region)),
                Item::Node(_) | Item::Expr(_) => None,
            })
            .collect();
        Reader { kernel, uniformity: validated.uniformity(), spelled, coverage: self }.body(kernel.body(), Context::Straight);
    }

    /// Adds what a case has: its program, and how it is launched.
    pub fn add_case(&mut self, case: &Case) {
        self.add(&case.program);
        patterns(case).into_iter().for_each(|pattern| self.mark(&Cell::Pattern(pattern)));
    }

    fn mark(&mut self, cell: &Cell) {
        if let Some(n) = grid().index.get(cell)
            && !std::mem::replace(&mut self.reached[*n], true)
        {
            self.count += 1;
        }
    }

    fn attributes(&mut self, program: &Program) {
        let parts = program.parts();
        let mut found = vec![format!("floats {}", parts.floats)];
        found.extend(parts.subgroup.map(|size| format!("subgroup {size}")));
        for decl in &parts.consts {
            found.push(format!("constant {}", decl.default.kind()));
        }
        found.push(if program.is_wrapped() { "wrapped" } else { "raw" }.into());
        if parts.workgroup.iter().any(|size| matches!(size, Size::Const(_))) {
            found.push("constant in the workgroup size".into());
        }
        for decl in &parts.buffers {
            found.push(format!("buffer {}", decl.access));
            found.push(
                match decl.count {
                    Some(Size::Const(_)) => "constant as a count",
                    Some(Size::Lit(_)) => "declared count",
                    None => "open count",
                }
                .into(),
            );
        }
        let size = program.workgroup_size();
        let dimensions = size.iter().rposition(|extent| *extent > 1).map_or(1, |axis| axis + 1);
        found.push(format!("workgroup of {dimensions} dimensions"));
        found.into_iter().for_each(|text| self.mark(&Cell::Attribute(text)));
    }

    /// The holes as a page of text, one a line, and how many there are.
    #[must_use]
    pub fn report(&self) -> String {
        let mut out = format!("{} of {} cells reached\n", self.reached(), self.cells());
        for hole in self.holes() {
            let _ = writeln!(out, "  {hole}");
        }
        out
    }
}

/// Reads a kernel into a coverage.
struct Reader<'a> {
    kernel: &'a Kernel,
    uniformity: &'a Uniformity,
    /// By place: how barriers and scopes were written.
    spelled: HashMap<u32, Thing>,
    coverage: &'a mut Coverage,
}

impl Reader<'_> {
    fn thing(&mut self, thing: Thing, context: Context) {
        self.coverage.mark(&Cell::In(thing, context));
    }

    fn op(&mut self, thing: Thing, float: bool, context: Context) {
        if float {
            self.coverage.mark(&Cell::Mode(thing.clone(), self.kernel.floats));
        }
        self.thing(thing, context);
    }

    fn body(&mut self, body: Body, context: Context) {
        for (id, stmt) in self.kernel.stmts_of(body) {
            for expr in stmt.kind.operands() {
                self.expr(expr, context);
            }
            self.stmt(id, stmt, context);
        }
    }

    fn stmt(&mut self, id: StmtId, stmt: &Stmt, context: Context) {
        let kernel = self.kernel;
        let thing = match &stmt.kind {
            StmtKind::Let { var, .. } => Thing::Let(kernel.vars[var.index()].ty),
            StmtKind::Assign { var, .. } => Thing::Assign(kernel.vars[var.index()].ty),
            StmtKind::Store { buffer, .. } => {
                let buffer = kernel.buffer(*buffer);
                Thing::Store(buffer.access, buffer.element.clone())
            }
            StmtKind::Atomic { op, buffer, .. } => {
                let buffer = kernel.buffer(*buffer);
                Thing::Atomic(*op, buffer.value.scalar().unwrap_or(Scalar::U32), buffer.access)
            }
            StmtKind::Subgroup { op, ty, .. } => Thing::Subgroup(*op, *ty),
            StmtKind::If { then, otherwise, .. } => {
                let inner = context.inside(!self.uniformity.diverges(id, Scope::Workgroup), false);
                self.body(*then, inner);
                self.body(*otherwise, inner);
                if otherwise.is_empty() { Thing::If } else { Thing::IfElse }
            }
            StmtKind::Loop { body, .. } => {
                self.body(*body, context.inside(!self.uniformity.diverges(id, Scope::Workgroup), true));
                Thing::Loop
            }
            StmtKind::Break => Thing::Break,
            StmtKind::Continue => Thing::Continue,
            StmtKind::Return => Thing::Return,
            StmtKind::Trap { .. } => Thing::Trap,
            StmtKind::Barrier => self.spelled.get(&stmt.node.0).cloned().unwrap_or(Thing::Barrier(MemoryOrdering::SeqCst)),
            StmtKind::GridSync => Thing::GridSync,
            StmtKind::Scope { body } => {
                self.body(*body, context);
                self.spelled.get(&stmt.node.0).cloned().unwrap_or(Thing::Block)
            }
        };
        self.thing(thing, context);
    }

    fn expr(&mut self, id: ExprId, context: Context) {
        let kernel = self.kernel;
        let expr = kernel.expr(id);
        for operand in expr.kind.operands() {
            self.expr(operand, context);
        }
        match &expr.kind {
            ExprKind::Lit { .. } => {
                if let Some(scalar) = expr.ty.scalar() {
                    self.thing(Thing::Literal(scalar), context);
                }
            }
            ExprKind::Var { .. } => self.thing(Thing::Variable(expr.ty), context),
            ExprKind::Builtin { builtin } => self.thing(Thing::Builtin(*builtin), context),
            ExprKind::Len { buffer } => self.thing(Thing::Len(kernel.buffer(*buffer).access), context),
            ExprKind::Load { buffer, .. } => {
                let buffer = kernel.buffer(*buffer);
                self.thing(Thing::Load(buffer.access, buffer.element.clone()), context);
            }
            ExprKind::Unary { op, ty, .. } => self.op(Thing::Unary(*op, *ty), ty.is_float(), context),
            ExprKind::Binary { op, ty, .. } => self.op(Thing::Binary(*op, *ty), ty.is_float(), context),
            ExprKind::Ternary { op, ty, .. } => self.op(Thing::Ternary(*op, *ty), ty.is_float(), context),
            ExprKind::Cast { from, to, .. } => self.op(Thing::Cast(*from, *to), from.is_float() || to.is_float(), context),
            ExprKind::Bitcast { from, to, .. } => self.op(Thing::Bitcast(*from, *to), from.is_float() || to.is_float(), context),
            ExprKind::Vector { .. } => {
                if let ValueType::Vector(part, count) = expr.ty {
                    self.thing(Thing::Vector(part, count), context);
                }
            }
            ExprKind::Extract { vector, component } => {
                if let ValueType::Vector(part, _) = kernel.expr(*vector).ty {
                    self.thing(Thing::Extract(part, *component), context);
                }
            }
        }
    }
}
