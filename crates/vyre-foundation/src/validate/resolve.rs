//! Names, types, declarations and structure (rules 2 to 21), and the resolved kernel.
//!
//! One walk in source order, counting places exactly as [`crate::ir::Walk`] does. Where a mistake leaves a name or type unknown the
//! kernel gets a stand-in that is uniform and of no type, so that the walk and the uniformity check after it can go on and find the
//! other mistakes.

use crate::diagnostic::{BufferPart, Diagnostic, Fix, Location, Mistakes, Poison};
use crate::ir::{
    Access, Atomic, Axis, Body, BufferDecl, Builtin, Counts, DataType, Element, Expr, Item, Literal, Loop, Name, Node, NodeId,
    OpId, Parts, Program, Size, SpecValue, Store, Subgroup,
};
use crate::kernel::{
    AccessId, AccessKind, Body as StmtBody, Buffer, BufferId, ExprId, ExprKind, Few, Kernel, MAX_OPERANDS, MemoryAccess, Stmt,
    StmtId, StmtKind, TypedExpr, Uses, Var, VarId, VarKind,
};
use crate::memory_model::MemoryOrdering;
use crate::text::code;
use crate::text::suggest::{nearest, nearest_unordered};
use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use vyre_scalar::memory::byte_length;
use vyre_spec::limits::{MAX_WORKGROUP_BYTES, MAX_WORKGROUP_INVOCATIONS, SUBGROUP_SIZES};
use vyre_spec::{ErrorCode, OpInfo, Operand, Scalar, Storage, TypeSet, ValueType};

/// What a name stands for.
#[derive(Clone, Copy)]
enum Meaning {
    Buffer(BufferId),
    Const(u32),
    Var(VarId),
    Counter(VarId),
}

struct Binding {
    meaning: Meaning,
    declared: Location,
    /// Whether its scope has ended; then it is kept for better advice only.
    ended: bool,
}

/// A checked expression: its number and its type, unless a mistake hides it.
#[derive(Clone, Copy)]
struct Typed {
    id: ExprId,
    ty: Option<ValueType>,
    place: NodeId,
    /// Whether it is written out as a number.
    literal: bool,
}

struct Resolver<'a> {
    program: &'a Program,
    parts: &'a Parts,
    poison: &'a Poison,
    kernel: Kernel,
    mistakes: Mistakes,
    /// Every name that was declared up to here, with what it stood for last; see [`Resolver::visible`].
    names: HashMap<&'a Name, Binding>,
    /// All declarations of variables in the program, in order; made when the first name is not known.
    all_declared: OnceCell<HashMap<&'a Name, Vec<(NodeId, Location)>>>,
    /// The statement whose own expressions are being looked at: its place in the program, and its number.
    statement: NodeId,
    stmt: StmtId,
    /// Names declared in the open scopes, innermost last; see `scope`.
    declared: Vec<&'a Name>,
    /// By variable: whether its type is known.
    typed: Vec<bool>,
    next_place: u32,
    loops: u32,
    /// How many `if`s and loops are around the current statement.
    control: u32,
    /// The bindings that are used or have been suggested.
    bindings: HashSet<u32>,
    /// All bindings below this one are among them.
    next_binding: u32,
    /// By buffer: whether its declaration says what it holds.
    known_buffers: Vec<bool>,
}

/// The kernel and every mistake against rules 2 to 21 that is not hidden where something stands in.
pub(super) fn resolve(program: &Program, counts: &Counts, poison: &Poison) -> (Kernel, Mistakes) {
    let parts = program.parts();
    let mut resolver = Resolver {
        program,
        parts,
        poison,
        kernel: Kernel {
            buffers: Vec::with_capacity(parts.buffers.len()),
            vars: Vec::with_capacity(counts.vars),
            exprs: Vec::with_capacity(counts.exprs),
            stmts: Vec::with_capacity(counts.stmts),
            accesses: Vec::with_capacity(counts.accesses),
            workgroup_size: program.workgroup_size(),
            floats: parts.floats,
            subgroup: parts.subgroup,
            uses: Uses::default(),
        },
        mistakes: Mistakes::default(),
        names: HashMap::with_capacity(parts.consts.len() + parts.buffers.len() + counts.vars),
        all_declared: OnceCell::new(),
        statement: NodeId(0),
        stmt: StmtId(0),
        declared: Vec::new(),
        typed: Vec::with_capacity(counts.vars),
        next_place: 0,
        loops: 0,
        control: 0,
        bindings: parts.buffers.iter().filter_map(|decl| decl.binding).collect(),
        next_binding: 0,
        known_buffers: Vec::new(),
    };
    resolver.constants();
    resolver.buffers();
    let workgroup_known = resolver.workgroup();
    resolver.subgroup(workgroup_known);
    resolver.scope(&parts.body);
    debug_assert_eq!(resolver.next_place as usize, counts.stmts + counts.exprs, "places are counted as Walk counts them");
    (resolver.kernel, resolver.mistakes)
}

/// The workgroup buffer with which workgroup memory takes more than `limit` bytes, and how many it then takes. Each buffer is
/// rounded up to 16 bytes.
pub(super) fn exceeds(kernel: &Kernel, limit: u64) -> Option<(u32, u64)> {
    let mut total = 0u64;
    for (n, buffer) in kernel.buffers.iter().enumerate() {
        if let (Access::Workgroup, Some(count)) = (buffer.access, buffer.count) {
            let bytes = byte_length(&buffer.element, u64::from(count)).unwrap_or(u64::MAX);
            total = total.saturating_add(bytes.checked_next_multiple_of(16).unwrap_or(u64::MAX));
            if total > limit {
                return Some((n as u32, total));
            }
        }
    }
    None
}

impl<'a> Resolver<'a> {
    fn mistake(&mut self, diagnostic: Diagnostic) {
        self.mistakes.push(diagnostic);
    }

    /// What was probably meant, if the mistake will be shown: looking for it takes time with every name there is.
    fn suggest<'n>(&self, look: impl FnOnce() -> Option<&'n str>) -> Option<String> {
        if self.mistakes.is_full() { None } else { look().map(str::to_string) }
    }

    /// What a name stands for here.
    fn visible(&self, name: &Name) -> Option<&Binding> {
        self.names.get(name).filter(|binding| !binding.ended)
    }

    fn declare(&mut self, name: &'a Name, meaning: Meaning, declared: Location) {
        if let Some(earlier) = self.visible(name) {
            let what = match earlier.meaning {
                Meaning::Buffer(_) => "a buffer",
                Meaning::Const(_) => "a constant",
                Meaning::Var(_) => "a variable",
                Meaning::Counter(_) => "a loop counter",
            };
            let (related, earlier_meaning) = (earlier.declared, earlier.meaning);
            self.mistake(
                Diagnostic::new(ErrorCode::E0202, format!("{name:?} is already the name of {what}"))
                    .at(declared)
                    .related(related, "declared here")
                    .help(match earlier_meaning {
                        Meaning::Var(_) => "names do not shadow each other: choose another, or assign without `let`",
                        Meaning::Buffer(_) | Meaning::Const(_) | Meaning::Counter(_) => {
                            "names do not shadow each other: choose another"
                        }
                    }),
            );
            return;
        }
        self.names.insert(name, Binding { meaning, declared, ended: false });
        self.declared.push(name);
    }

    // Declarations.

    fn constants(&mut self) {
        for (n, decl) in self.parts.consts.iter().enumerate() {
            let location = Location::Const(n as u32);
            self.declare(&decl.name, Meaning::Const(n as u32), location);
            if let SpecValue::DType(data_type) = &decl.default
                && data_type.storage() == Storage::Described
            {
                self.mistake(unusable_type(data_type, location));
            }
        }
    }

    /// The constant of this name, and its number. They are declared before anything else.
    fn constant(&self, name: &Name) -> Option<(u32, &'a SpecValue)> {
        match self.visible(name)?.meaning {
            Meaning::Const(n) => Some((n, &self.parts.consts[n as usize].default)),
            Meaning::Buffer(_) | Meaning::Var(_) | Meaning::Counter(_) => None,
        }
    }

    /// A size that is written at `location`; `None` after a mistake in it.
    fn size(&mut self, size: &Size, location: Location) -> Option<u32> {
        let name = match size {
            Size::Lit(value) => return Some(*value).filter(|_| !self.poison.has(location)),
            Size::Const(name) => name,
        };
        let diagnostic = match self.constant(name) {
            Some((n, _)) if self.poison.has(Location::Const(n)) => return None,
            None if self.poison.has_name(name) => return None,
            Some((_, SpecValue::U32(value))) => return Some(*value),
            Some((_, other)) => Diagnostic::new(ErrorCode::E0412, format!("{name:?} is {}, and a size is u32", other.kind()))
                .expected("a u32 constant")
                .found(other.kind()),
            None => {
                let known = self.parts.consts.iter().map(|decl| decl.name.as_str());
                let suggestion = self.suggest(|| nearest(name, known));
                let diagnostic = Diagnostic::new(ErrorCode::E0201, format!("there is no constant {name:?}")).found(name);
                with_nearest(diagnostic, suggestion, location)
            }
        };
        self.mistake(diagnostic.at(location));
        None
    }

    fn buffers(&mut self) {
        let mut bindings: HashMap<u32, u32> = HashMap::new();
        for (n, decl) in self.parts.buffers.iter().enumerate() {
            let n = n as u32;
            self.declare(&decl.name, Meaning::Buffer(BufferId(n)), Location::Buffer(n, BufferPart::Name));
            self.binding(n, decl, &mut bindings);
            let element = self.element(n, decl);
            self.known_buffers.push(element.is_some());
            // A stand-in keeps the walk going.
            let element = element.unwrap_or(DataType::U32);
            let count = match &decl.count {
                Some(size) => self.size(size, Location::Buffer(n, BufferPart::Count)),
                None => None,
            };
            if decl.access == Access::Workgroup {
                self.kernel.uses.workgroup_memory = true;
                if decl.count.is_none() || count == Some(0) {
                    self.mistake(
                        Diagnostic::new(
                            ErrorCode::E0405,
                            format!("the workgroup buffer {:?} needs a count of at least 1", decl.name),
                        )
                        .at(Location::Buffer(n, BufferPart::Whole))
                        .fix(
                            "write how many elements one workgroup shares",
                            match decl.count {
                                None => Fix::InsertAfter(Location::Buffer(n, BufferPart::Element), "[64]".into()),
                                Some(_) => Fix::Replace(Location::Buffer(n, BufferPart::Count), "64".into()),
                            },
                        ),
                    );
                }
            }
            let bytes = count.and_then(|count| byte_length(&element, u64::from(count)));
            if bytes.is_some_and(|bytes| bytes > 1 << 32) {
                self.mistake(
                    Diagnostic::new(ErrorCode::E0416, format!("{:?} takes more than 4 GiB", decl.name))
                        .at(Location::Buffer(n, BufferPart::Count))
                        .expected("at most 4294967296 bytes")
                        .found(bytes.unwrap_or(0)),
                );
            }
            let value = element.value_type().unwrap_or(ValueType::Scalar(Scalar::U32));
            self.note_type(value);
            let (name, access, binding) = (decl.name.clone(), decl.access, decl.binding);
            self.kernel.buffers.push(Buffer { name, access, binding, element, value, count });
        }
        if let Some((n, bytes)) = exceeds(&self.kernel, MAX_WORKGROUP_BYTES) {
            self.mistake(
                Diagnostic::new(ErrorCode::E0406, format!("with this buffer the workgroup memory takes {bytes} bytes"))
                    .at(Location::Buffer(n, BufferPart::Whole))
                    .expected(format!("at most {MAX_WORKGROUP_BYTES} bytes, each buffer rounded up to 16"))
                    .found(format!("{bytes} bytes")),
            );
        }
    }

    /// The smallest binding that nothing uses; it then counts as used, so that every suggestion can be followed.
    fn next_free_binding(&mut self) -> u32 {
        let free = (self.next_binding..).find(|binding| !self.bindings.contains(binding)).unwrap_or(0);
        self.next_binding = free;
        self.bindings.insert(free);
        free
    }

    fn binding(&mut self, n: u32, decl: &BufferDecl, bindings: &mut HashMap<u32, u32>) {
        match (decl.access, decl.binding) {
            (Access::Workgroup, None) => {}
            _ if self.poison.has(Location::Buffer(n, BufferPart::Binding)) => {}
            (Access::Workgroup, Some(_)) => self.mistake(
                Diagnostic::new(ErrorCode::E0403, format!("the workgroup buffer {:?} cannot have a binding", decl.name))
                    .at(Location::Buffer(n, BufferPart::Binding))
                    .help("remove the binding: workgroup memory is not passed by the caller"),
            ),
            (Access::Read | Access::ReadWrite | Access::Output | Access::Uniform, None) => {
                let next_free = self.next_free_binding();
                self.mistake(
                    Diagnostic::new(ErrorCode::E0402, format!("the buffer {:?} needs a binding", decl.name))
                        .at(Location::Buffer(n, BufferPart::Whole))
                        .fix(
                            "the next free one is",
                            Fix::InsertAfter(Location::Buffer(n, BufferPart::Whole), format!(" @{next_free}")),
                        ),
                );
            }
            (Access::Read | Access::ReadWrite | Access::Output | Access::Uniform, Some(binding)) => {
                if let Some(earlier) = bindings.insert(binding, n) {
                    let next_free = self.next_free_binding();
                    bindings.insert(binding, earlier);
                    self.mistake(
                        Diagnostic::new(ErrorCode::E0401, format!("binding {binding} is taken"))
                            .at(Location::Buffer(n, BufferPart::Binding))
                            .related(Location::Buffer(earlier, BufferPart::Binding), "by this buffer")
                            .fix(
                                "the next free one is",
                                Fix::Replace(Location::Buffer(n, BufferPart::Binding), format!("@{next_free}")),
                            ),
                    );
                }
            }
        }
    }

    /// The element type; `None` after a mistake that hides it.
    fn element(&mut self, n: u32, decl: &BufferDecl) -> Option<DataType> {
        let location = Location::Buffer(n, BufferPart::Element);
        let data_type = match &decl.element {
            Element::Type(_) if self.poison.has(location) => return None,
            Element::Type(data_type) => data_type.clone(),
            Element::Const(name) => match self.constant(name) {
                Some((n, SpecValue::DType(_))) if self.poison.has(Location::Const(n)) => return None,
                None if self.poison.has_name(name) => return None,
                Some((_, SpecValue::DType(data_type))) => data_type.clone(),
                Some((_, other)) => {
                    self.mistake(
                        Diagnostic::new(ErrorCode::E0412, format!("{name:?} is {}, and an element type is needed", other.kind()))
                            .at(location)
                            .expected("a type, or a dtype constant")
                            .found(other.kind()),
                    );
                    return None;
                }
                None => {
                    let types = DataType::all_plain().filter(|(_, ty)| ty.value_type().is_some()).map(|(word, _)| word);
                    let consts = self.parts.consts.iter().map(|decl| decl.name.as_str());
                    let suggestion = self.suggest(|| nearest(name, types.chain(consts)));
                    let diagnostic =
                        Diagnostic::new(ErrorCode::E0207, format!("there is no type {name:?}")).at(location).found(name);
                    self.mistake(with_nearest(diagnostic, suggestion, location));
                    return None;
                }
            },
        };
        match data_type.storage() {
            Storage::Described => {
                self.mistake(unusable_type(&data_type, location));
                None
            }
            Storage::LoadOnly(_) if decl.access.is_writable() => {
                self.mistake(
                    Diagnostic::new(
                        ErrorCode::E0409,
                        format!("{data_type} can only be loaded, and {:?} is a `{}` buffer", decl.name, decl.access),
                    )
                    .at(location)
                    .expected("a type that can be stored")
                    .found(&data_type)
                    .help("declare the buffer `read` or `uniform`, or store a wider type"),
                );
                Some(data_type)
            }
            Storage::LoadOnly(_) | Storage::Computed(_) | Storage::Converted(_) => Some(data_type),
        }
    }

    /// Whether the size of a workgroup is known.
    fn workgroup(&mut self) -> bool {
        let mut known = !self.poison.has(Location::Workgroup);
        for (size, axis) in self.parts.workgroup.iter().zip(Axis::ALL) {
            known &= self.size(size, Location::WorkgroupAxis(axis)).is_some();
        }
        let size = self.kernel.workgroup_size;
        let total = size.iter().try_fold(1u32, |total, extent| total.checked_mul(*extent));
        if known && !total.is_some_and(|total| (1..=MAX_WORKGROUP_INVOCATIONS).contains(&total)) {
            self.mistake(
                Diagnostic::new(
                    ErrorCode::E0407,
                    format!("a workgroup of {} x {} x {} invocations is not possible", size[0], size[1], size[2]),
                )
                .at(Location::Workgroup)
                .expected(format!("1 to {MAX_WORKGROUP_INVOCATIONS} invocations"))
                .found(total.map_or("more than 4294967295".to_string(), |total| total.to_string())),
            );
        }
        known
    }

    fn subgroup(&mut self, workgroup_known: bool) {
        let Some(size) = self.parts.subgroup.filter(|_| !self.poison.has(Location::Subgroup)) else { return };
        if !SUBGROUP_SIZES.contains(&size) {
            self.mistake(
                Diagnostic::new(ErrorCode::E0414, format!("there are no subgroups of {size} lanes"))
                    .at(Location::Subgroup)
                    .expected("4, 8, 16 or 32")
                    .found(size),
            );
            return;
        }
        let total = self.kernel.workgroup_size.iter().try_fold(1u32, |total, extent| total.checked_mul(*extent));
        if let Some(total) = total.filter(|total| workgroup_known && total % size != 0) {
            self.mistake(
                Diagnostic::new(
                    ErrorCode::E0414,
                    format!("subgroups of {size} lanes do not divide a workgroup of {total} invocations"),
                )
                .at(Location::Subgroup)
                .related(Location::Workgroup, "the workgroup size")
                .expected(format!("a divisor of {total}"))
                .found(size),
            );
        }
    }

    fn note_type(&mut self, ty: ValueType) {
        let scalar = match ty {
            ValueType::Scalar(scalar) | ValueType::Vector(scalar, _) => scalar,
        };
        self.kernel.uses.f64 |= scalar == Scalar::F64;
        self.kernel.uses.int64 |= matches!(scalar, Scalar::U64 | Scalar::I64);
    }

    // Statements.

    fn place(&mut self) -> NodeId {
        let place = NodeId(self.next_place);
        self.next_place += 1;
        place
    }

    fn next_stmt(&self) -> StmtId {
        StmtId(self.kernel.stmts.len() as u32)
    }

    /// The statements of a scope; what it declares ends with it.
    fn scope(&mut self, body: &'a [Node]) -> StmtBody {
        let outer = self.declared.len();
        let first = self.next_stmt();
        for node in body {
            self.statement(node);
        }
        self.end_scope(outer);
        StmtBody { first, end: self.next_stmt() }
    }

    fn end_scope(&mut self, outer: usize) {
        for name in self.declared.drain(outer..) {
            if let Some(binding) = self.names.get_mut(name) {
                binding.ended = true;
            }
        }
    }

    fn new_var(&mut self, name: &Name, ty: Option<ValueType>, kind: VarKind) -> VarId {
        let id = VarId(self.kernel.vars.len() as u32);
        let stand_in = ValueType::Scalar(Scalar::U32);
        let (name, ty_or_poison) = (name.clone(), ty.unwrap_or(stand_in));
        self.kernel.vars.push(Var { name, ty: ty_or_poison, kind, set_once: true, declared: self.stmt });
        self.typed.push(ty.is_some());
        id
    }

    fn declare_var(&mut self, name: &'a Name, ty: Option<ValueType>, place: NodeId) -> VarId {
        let id = self.new_var(name, ty, VarKind::Let);
        self.declare(name, Meaning::Var(id), Location::Head(place));
        id
    }

    /// What a statement becomes that a mistake leaves nothing of.
    fn nothing(&self) -> StmtKind {
        let here = self.next_stmt();
        StmtKind::Scope { body: StmtBody { first: here, end: here } }
    }

    fn statement(&mut self, node: &'a Node) {
        let place = self.place();
        self.statement = place;
        let id = self.next_stmt();
        self.stmt = id;
        // It comes before the statements below it, which are not known yet.
        self.kernel.stmts.push(Stmt { kind: StmtKind::Return, node: place, end: id });
        let kind = match node {
            Node::Let { name, value } => {
                let value = self.expr(value);
                StmtKind::Let { var: self.declare_var(name, value.ty, place), value: value.id }
            }
            Node::Assign { name, value } => {
                let target = self.assignable(name, place);
                let value = self.expr(value);
                if let Some((_, Some(expected), declared)) = target
                    && let Some(found) = value.ty
                    && expected != found
                {
                    let diagnostic =
                        Diagnostic::new(ErrorCode::E0310, format!("{name:?} is {expected}, and this value is {found}"))
                            .at(Location::Tree(value.place))
                            .related(declared, format!("its type comes from here: {expected}"));
                    let diagnostic = self.mismatch(diagnostic, expected, value);
                    self.mistake(diagnostic);
                }
                match target {
                    Some((var, _, _)) => {
                        self.kernel.vars[var.index()].set_once = false;
                        StmtKind::Assign { var, value: value.id }
                    }
                    None => self.nothing(),
                }
            }
            Node::Store(store) => {
                let Store { buffer, index, value } = &**store;
                let target = self.writable(buffer, place);
                let index = self.index(index);
                let value = self.expr(value);
                match target {
                    Some(buffer) => {
                        self.stored(buffer, value);
                        let access = self.access(AccessKind::Store, buffer, index.id, place);
                        StmtKind::Store { access, buffer, index: index.id, value: value.id }
                    }
                    None => self.nothing(),
                }
            }
            Node::Atomic(atomic) => {
                let Atomic { result, op, buffer, index, operands } = &**atomic;
                self.kernel.uses.atomics = true;
                let target = self.atomic_target(buffer, place);
                let index = self.index(index);
                let operands: Vec<Typed> = operands.iter().map(|operand| self.expr(operand)).collect();
                let ty = target.and_then(|(_, ty)| self.op(OpId::Atomic(*op), Some(ty.into()), &operands, place));
                let result = self.result(result.as_ref(), op.info(), ty, place);
                match target {
                    Some((buffer, _)) => {
                        let access = self.access(AccessKind::of_atomic(*op), buffer, index.id, place);
                        StmtKind::Atomic { access, result, op: *op, buffer, index: index.id, operands: few(&operands) }
                    }
                    None => self.nothing(),
                }
            }
            Node::Subgroup(subgroup) => {
                let Subgroup { result, op, operands } = &**subgroup;
                self.kernel.uses.subgroup = true;
                self.subgroup_declared(place);
                let operands: Vec<Typed> = operands.iter().map(|operand| self.expr(operand)).collect();
                let ty = self.op(OpId::Subgroup(*op), None, &operands, place);
                let result = self.result(result.as_ref(), op.info(), ty, place);
                StmtKind::Subgroup { result, op: *op, ty: ty.unwrap_or(Scalar::U32), operands: few(&operands) }
            }
            Node::If { cond, then, otherwise } => {
                let cond = self.fixed(cond, Scalar::Bool, ErrorCode::E0305, "a condition");
                self.control += 1;
                let then = self.scope(then);
                let otherwise = self.scope(otherwise);
                self.control -= 1;
                StmtKind::If { cond: cond.id, then, otherwise }
            }
            Node::Loop(repeat) => {
                let Loop { var, from, to, body } = &**repeat;
                let from = self.fixed(from, Scalar::U32, ErrorCode::E0307, "a loop bound");
                let to = self.fixed(to, Scalar::U32, ErrorCode::E0307, "a loop bound");
                let outer = self.declared.len();
                let counter = self.new_var(var, Some(ValueType::Scalar(Scalar::U32)), VarKind::Counter);
                self.declare(var, Meaning::Counter(counter), Location::Head(place));
                let body = self.loop_body(body);
                self.end_scope(outer);
                StmtKind::Loop { counter, from: from.id, to: to.id, body }
            }
            Node::Break => {
                self.in_loop("break", place);
                StmtKind::Break
            }
            Node::Continue => {
                self.in_loop("continue", place);
                StmtKind::Continue
            }
            Node::Return => StmtKind::Return,
            Node::Barrier { ordering } => self.barrier(*ordering, place),
            Node::Trap { tag } => {
                self.kernel.uses.trap = true;
                StmtKind::Trap { tag: *tag }
            }
            Node::Block(body) | Node::Region { body, .. } => StmtKind::Scope { body: self.scope(body) },
        };
        let end = self.next_stmt();
        self.kernel.stmts[id.index()] = Stmt { kind, node: place, end };
    }

    fn access(&mut self, kind: AccessKind, buffer: BufferId, index: ExprId, node: NodeId) -> AccessId {
        self.kernel.accesses.push(MemoryAccess { kind, buffer, index, stmt: self.stmt, node });
        AccessId(self.kernel.accesses.len() as u32 - 1)
    }

    fn in_loop(&mut self, word: &str, place: NodeId) {
        if self.loops == 0 {
            self.mistake(
                Diagnostic::new(ErrorCode::E0505, format!("`{word}` stands in no loop"))
                    .at(Location::Tree(place))
                    .help("`return` ends the invocation"),
            );
        }
    }

    fn loop_body(&mut self, body: &'a Body) -> StmtBody {
        self.loops += 1;
        self.control += 1;
        let stmts = self.scope(body);
        self.control -= 1;
        self.loops -= 1;
        stmts
    }

    fn barrier(&mut self, ordering: MemoryOrdering, place: NodeId) -> StmtKind {
        match ordering {
            MemoryOrdering::Relaxed => {
                self.mistake(
                    Diagnostic::new(ErrorCode::E0504, "a relaxed barrier orders nothing")
                        .at(Location::Tree(place))
                        .fix("write", Fix::Replace(Location::Tree(place), "barrier".into())),
                );
                self.nothing()
            }
            MemoryOrdering::Acquire | MemoryOrdering::Release | MemoryOrdering::AcqRel | MemoryOrdering::SeqCst => {
                self.kernel.uses.barrier = true;
                StmtKind::Barrier
            }
            MemoryOrdering::GridSync => {
                self.kernel.uses.grid_sync = true;
                if self.control > 0 {
                    self.mistake(
                        Diagnostic::new(ErrorCode::E0503, "a grid barrier stands inside an `if` or a loop")
                            .at(Location::Tree(place))
                            .help("move it to the top level of the program; blocks and regions around it are fine"),
                    );
                }
                StmtKind::GridSync
            }
        }
    }

    /// The variable a result is put into.
    fn result(&mut self, name: Option<&'a Name>, info: &OpInfo, ty: Option<Scalar>, place: NodeId) -> Option<VarId> {
        let name = name?;
        let result = match ty {
            Some(ty) => info.result_type(ty).map(ValueType::Scalar),
            None => None,
        };
        if ty.is_some() && result.is_none() {
            self.mistake(
                Diagnostic::new(ErrorCode::E0314, format!("`atomic.{}` gives no value for {name:?}", info.mnemonic))
                    .at(Location::Result(place))
                    .help("write it as a statement, without `let`"),
            );
        }
        if let Some(ty) = result {
            self.note_type(ty);
        }
        let id = self.new_var(name, result, VarKind::Result);
        self.declare(name, Meaning::Var(id), Location::Result(place));
        Some(id)
    }

    fn assignable(&mut self, name: &Name, place: NodeId) -> Option<(VarId, Option<ValueType>, Location)> {
        let location = Location::Head(place);
        let Some(binding) = self.visible(name) else {
            if self.poison.has_name(name) {
                return None;
            }
            let diagnostic = self.unknown(name, location);
            let diagnostic = match diagnostic.help {
                None => diagnostic.help(format!("declare it: {}", code(&format!("let {name} = …")))),
                Some(_) => diagnostic,
            };
            self.mistake(diagnostic);
            return None;
        };
        let declared = binding.declared;
        let (what, help) = match binding.meaning {
            Meaning::Var(var) => {
                let ty = self.typed[var.index()].then_some(self.kernel.vars[var.index()].ty);
                return Some((var, ty, declared));
            }
            Meaning::Counter(_) => ("a loop counter", "copy it into a variable with `let`"),
            Meaning::Const(n) if self.parts.consts[n as usize].default.literal().is_none() => {
                ("a type constant", "its value comes with the launch")
            }
            Meaning::Const(_) => ("a constant", "copy it into a variable with `let`"),
            Meaning::Buffer(_) => ("a buffer", "write one element: `name[index] = value`"),
        };
        self.mistake(
            Diagnostic::new(ErrorCode::E0203, format!("{name:?} is {what} and cannot be assigned to"))
                .at(location)
                .related(declared, "declared here")
                .help(help),
        );
        None
    }

    fn unknown(&self, name: &Name, location: Location) -> Diagnostic {
        let diagnostic =
            Diagnostic::new(ErrorCode::E0201, format!("there is no variable or constant {name:?}")).at(location).found(name);
        if let Some(binding) = self.names.get(name) {
            let diagnostic = diagnostic.related(binding.declared, "declared in a scope that has ended");
            return diagnostic.help(match binding.meaning {
                Meaning::Counter(_) => "a counter ends with its loop: copy it into a variable that was declared before",
                Meaning::Var(_) | Meaning::Buffer(_) | Meaning::Const(_) => {
                    "declare it before the scope, and assign to it inside"
                }
            });
        }
        let all = self.all_declared.get_or_init(|| all_declared(self.program));
        let later = all.get(name).and_then(|all| all.get(all.partition_point(|(place, _)| *place < self.statement)));
        if let Some((place, declared)) = later {
            return match *place == self.statement {
                true => diagnostic.related(*declared, "declared by this very statement").help("until then it has no value"),
                false => diagnostic.related(*declared, "declared later").help("declare it before it is used"),
            };
        }
        let is_value = |binding: &Binding| !binding.ended && !matches!(binding.meaning, Meaning::Buffer(_));
        let values = self.names.iter().filter(|(_, binding)| is_value(binding));
        let suggestion = self.suggest(|| nearest_unordered(name, values.map(|(name, _)| name.as_str())));
        with_nearest(diagnostic, suggestion, location)
    }

    fn buffer(&mut self, name: &Name, place: NodeId) -> Option<BufferId> {
        let location = Location::Head(place);
        if let Some(binding) = self.visible(name) {
            if let Meaning::Buffer(buffer) = binding.meaning {
                return Some(buffer);
            }
            let declared = binding.declared;
            self.mistake(
                Diagnostic::new(ErrorCode::E0206, format!("{name:?} is a value, and a buffer is needed"))
                    .at(location)
                    .related(declared, "declared here"),
            );
            return None;
        }
        if self.poison.has_name(name) {
            return None;
        }
        let suggestion = self.suggest(|| nearest(name, self.parts.buffers.iter().map(|decl| decl.name.as_str())));
        let diagnostic = Diagnostic::new(ErrorCode::E0204, format!("there is no buffer {name:?}")).at(location).found(name);
        self.mistake(with_nearest(diagnostic, suggestion, location));
        None
    }

    fn writable(&mut self, name: &Name, place: NodeId) -> Option<BufferId> {
        let id = self.buffer(name, place)?;
        let access = self.parts.buffers[id.index()].access;
        if !access.is_writable() {
            self.mistake(
                Diagnostic::new(ErrorCode::E0408, format!("{name:?} is a `{access}` buffer and cannot be written"))
                    .at(Location::Head(place))
                    .related(Location::Buffer(id.0, BufferPart::Whole), "declared here")
                    .expected("an output, read_write or workgroup buffer")
                    .found(access),
            );
        }
        Some(id)
    }

    fn stored(&mut self, buffer: BufferId, value: Typed) {
        if !self.known_buffers[buffer.index()] {
            return;
        }
        let Buffer { name, element, value: expected, .. } = self.kernel.buffer(buffer);
        let expected = *expected;
        if let Some(found) = value.ty.filter(|found| *found != expected) {
            let as_stored = match element.storage() {
                Storage::Converted(_) => format!(" (its elements are {element})"),
                Storage::Computed(_) | Storage::LoadOnly(_) | Storage::Described => String::new(),
            };
            let message = format!("store to {name:?} needs {expected}{as_stored}, found {found}");
            let diagnostic = Diagnostic::new(ErrorCode::E0304, message)
                .at(Location::Tree(value.place))
                .related(Location::Buffer(buffer.0, BufferPart::Element), format!("a store takes {expected}"));
            let diagnostic = self.mismatch(diagnostic, expected, value);
            self.mistake(diagnostic);
        }
    }

    fn atomic_target(&mut self, name: &Name, place: NodeId) -> Option<(BufferId, Scalar)> {
        let id = self.buffer(name, place).filter(|id| self.known_buffers[id.index()])?;
        let Buffer { access, element, .. } = self.kernel.buffer(id);
        if let Storage::Computed(ValueType::Scalar(scalar @ (Scalar::U32 | Scalar::I32))) = element.storage()
            && access.is_writable()
        {
            return Some((id, scalar));
        }
        let found = format!("a {access} buffer of {element}");
        self.mistake(
            Diagnostic::new(ErrorCode::E0410, format!("{name:?} is {found}, which has no atomic operations"))
                .at(Location::Head(place))
                .related(Location::Buffer(id.0, BufferPart::Whole), "declared here")
                .expected("an output, read_write or workgroup buffer of u32 or i32")
                .found(found),
        );
        None
    }

    fn subgroup_declared(&mut self, place: NodeId) {
        if self.parts.subgroup.is_none() {
            self.mistake(
                Diagnostic::new(ErrorCode::E0415, "the program does not say how many lanes a subgroup has")
                    .at(Location::Head(place))
                    .fix("declare it below the workgroup size", Fix::InsertAfter(Location::Workgroup, "\n  subgroup 8".into())),
            );
        }
    }

    // Expressions.

    fn push(&mut self, kind: ExprKind, ty: Option<ValueType>, place: NodeId) -> Typed {
        if let Some(ty) = ty {
            self.note_type(ty);
        }
        let id = ExprId(self.kernel.exprs.len() as u32);
        // An unknown type belongs to a program that is not valid; the kernel is then dropped.
        let stand_in = ValueType::Scalar(Scalar::U32);
        self.kernel.exprs.push(TypedExpr { kind, ty: ty.unwrap_or(stand_in), node: place });
        Typed { id, ty, place, literal: false }
    }

    fn unknown_expr(&mut self, place: NodeId) -> Typed {
        self.push(ExprKind::Lit { bits: 0 }, None, place)
    }

    /// A poisoned expression over these. It keeps their divergence: a wrong condition must not hide a barrier it makes divergent.
    fn poisoned(&mut self, below: &[ExprId], ty: Option<ValueType>, place: NodeId) -> Typed {
        let mut below = below.to_vec();
        while below.len() > 4 {
            let rest = below.split_off(below.len() - 2);
            below.push(self.push(ExprKind::Vector { components: Few::of(&rest) }, None, place).id);
        }
        self.push(ExprKind::Vector { components: Few::of(&below) }, ty, place)
    }

    fn expr(&mut self, expr: &Expr) -> Typed {
        let place = self.place();
        if self.poison.has(Location::Tree(place)) {
            let below: Vec<ExprId> = expr.children().map(|child| self.expr(child).id).collect();
            return self.poisoned(&below, None, place);
        }
        match expr {
            Expr::Lit(literal) => Typed { literal: true, ..self.literal(*literal, place) },
            Expr::Var(name) => self.var(name, place),
            Expr::Builtin(builtin) => {
                self.builtin(*builtin, place);
                self.push(ExprKind::Builtin { builtin: *builtin }, Some(Scalar::U32.into()), place)
            }
            Expr::Len(name) => match self.buffer(name, place) {
                Some(buffer) => self.push(ExprKind::Len { buffer }, Some(Scalar::U32.into()), place),
                None => self.push(ExprKind::Lit { bits: 0 }, Some(Scalar::U32.into()), place),
            },
            Expr::Load { buffer, index } => {
                let buffer = self.buffer(buffer, place);
                let index = self.index(index);
                match buffer {
                    Some(buffer) => {
                        let ty = self.known_buffers[buffer.index()].then_some(self.kernel.buffer(buffer).value);
                        let access = self.access(AccessKind::Load, buffer, index.id, place);
                        self.push(ExprKind::Load { access, buffer, index: index.id }, ty, place)
                    }
                    None => self.unknown_expr(place),
                }
            }
            Expr::Unary { op, operand } => {
                let operand = self.expr(operand);
                match self.op(OpId::Unary(*op), None, &[operand], place) {
                    Some(t) => {
                        let ty = op.info().result_type(t).map(ValueType::Scalar);
                        self.push(ExprKind::Unary { op: *op, ty: t, operand: operand.id }, ty, place)
                    }
                    None => self.after_bad_operands(op.info(), &[operand], place),
                }
            }
            Expr::Binary { op, left, right } => {
                let left = self.expr(left);
                let right = self.expr(right);
                match self.op(OpId::Binary(*op), None, &[left, right], place) {
                    Some(t) => {
                        let ty = op.info().result_type(t).map(ValueType::Scalar);
                        self.push(ExprKind::Binary { op: *op, ty: t, left: left.id, right: right.id }, ty, place)
                    }
                    None => self.after_bad_operands(op.info(), &[left, right], place),
                }
            }
            Expr::Ternary { op, operands } => {
                let operands = operands.each_ref().map(|operand| self.expr(operand));
                match self.op(OpId::Ternary(*op), None, &operands, place) {
                    Some(t) => {
                        let ty = op.info().result_type(t).map(ValueType::Scalar);
                        let operands = operands.map(|operand| operand.id);
                        self.push(ExprKind::Ternary { op: *op, ty: t, operands }, ty, place)
                    }
                    None => self.after_bad_operands(op.info(), &operands, place),
                }
            }
            Expr::Cast { to, value } => {
                let value = self.expr(value);
                let from = match value.ty {
                    None => None,
                    Some(ValueType::Scalar(from)) if *to != Scalar::Bool || !from.is_float() => Some(from),
                    Some(from) => {
                        let diagnostic = Diagnostic::new(ErrorCode::E0308, format!("{from} does not convert to {to}"))
                            .at(Location::Tree(place))
                            .found(from);
                        self.mistake(match from {
                            ValueType::Scalar(from) => diagnostic.expected("an integer or bool").fix(
                                "compare it with zero instead",
                                Fix::Wrap(Location::Tree(value.place), "(".into(), format!(" != {})", zero(from))),
                            ),
                            ValueType::Vector(..) => {
                                diagnostic.expected("a scalar").help("convert its components one by one, `.x` first")
                            }
                        });
                        None
                    }
                };
                match from {
                    Some(from) => self.push(ExprKind::Cast { from, to: *to, value: value.id }, Some((*to).into()), place),
                    None => self.push(ExprKind::Lit { bits: 0 }, Some((*to).into()), place),
                }
            }
            Expr::Bitcast { to, value } => {
                let value = self.expr(value);
                let from = match value.ty {
                    None => None,
                    Some(ValueType::Scalar(from)) if from.bits() == to.bits() && from != Scalar::Bool => Some(from),
                    Some(from) => {
                        let width = |ty: ValueType| match ty {
                            ValueType::Scalar(Scalar::Bool) => "a bool, which has no bits to cast".to_string(),
                            ValueType::Scalar(scalar) => format!("{} bits", scalar.bits()),
                            ValueType::Vector(..) => "a vector".to_string(),
                        };
                        let message = match (*to, from) {
                            (Scalar::Bool, _) => "there is no bitcast to bool".to_string(),
                            _ => format!("a bitcast keeps the width, and {from} is not as wide as {to}"),
                        };
                        let diagnostic = Diagnostic::new(ErrorCode::E0309, message).at(Location::Tree(place)).found(width(from));
                        self.mistake(match to {
                            Scalar::Bool => diagnostic.help("compare with zero instead"),
                            Scalar::U32 | Scalar::I32 | Scalar::U64 | Scalar::I64 | Scalar::F32 | Scalar::F64 => {
                                diagnostic.expected(width((*to).into()))
                            }
                        });
                        None
                    }
                };
                match from {
                    Some(from) => self.push(ExprKind::Bitcast { from, to: *to, value: value.id }, Some((*to).into()), place),
                    None => self.push(ExprKind::Lit { bits: 0 }, Some((*to).into()), place),
                }
            }
            Expr::Vector { components } => {
                let components: Vec<Typed> = components.iter().map(|component| self.expr(component)).collect();
                let ty = self.vector_type(&components, place);
                match ty {
                    Some(ty) => {
                        let ids: Vec<ExprId> = components.iter().map(|component| component.id).collect();
                        self.push(ExprKind::Vector { components: Few::of(&ids) }, Some(ty), place)
                    }
                    None => self.unknown_expr(place),
                }
            }
            Expr::Extract { vector, component } => {
                let vector = self.expr(vector);
                match vector.ty {
                    Some(ValueType::Vector(scalar, count)) if *component < count => {
                        self.push(ExprKind::Extract { vector: vector.id, component: *component }, Some(scalar.into()), place)
                    }
                    None => self.unknown_expr(place),
                    Some(found) => {
                        const NAMES: [&str; 4] = [".x", ".y", ".z", ".w"];
                        let name = NAMES.get(usize::from(*component)).map_or(format!(".c{component}"), |name| (*name).into());
                        let diagnostic = Diagnostic::new(ErrorCode::E0312, format!("{found} has no component `{name}`"))
                            .at(Location::Head(place))
                            .found(&name);
                        self.mistake(match found {
                            ValueType::Vector(_, count) => {
                                diagnostic.expected(format!("one of {}", NAMES[..usize::from(count)].join(", ")))
                            }
                            ValueType::Scalar(_) => diagnostic.expected("a vector"),
                        });
                        self.unknown_expr(place)
                    }
                }
            }
        }
    }

    fn literal(&mut self, literal: Literal, place: NodeId) -> Typed {
        let scalar = literal.scalar();
        let bits = vyre_scalar::canonicalize(scalar, self.kernel.floats, literal.bits());
        self.push(ExprKind::Lit { bits }, Some(scalar.into()), place)
    }

    fn var(&mut self, name: &Name, place: NodeId) -> Typed {
        let location = Location::Head(place);
        let Some(binding) = self.visible(name) else {
            if !self.poison.has_name(name) {
                let diagnostic = self.unknown(name, location);
                self.mistake(diagnostic);
            }
            return self.unknown_expr(place);
        };
        match binding.meaning {
            Meaning::Var(var) | Meaning::Counter(var) => {
                let ty = self.typed[var.index()].then_some(self.kernel.vars[var.index()].ty);
                self.push(ExprKind::Var { var }, ty, place)
            }
            Meaning::Const(n) => match self.parts.consts[n as usize].default.literal() {
                Some(literal) => self.literal(literal, place),
                None => {
                    self.mistake(
                        Diagnostic::new(ErrorCode::E0412, format!("{name:?} is a type, and a value is needed"))
                            .at(location)
                            .related(Location::Const(n), "declared here")
                            .expected("a u32, i32, f32 or bool constant")
                            .found("dtype"),
                    );
                    self.unknown_expr(place)
                }
            },
            Meaning::Buffer(_) => {
                let declared = binding.declared;
                self.mistake(
                    Diagnostic::new(ErrorCode::E0206, format!("{name:?} is a buffer, and a value is needed"))
                        .at(location)
                        .related(declared, "declared here")
                        .fix("load an element", Fix::InsertAfter(location, "[gid.x]".into())),
                );
                self.unknown_expr(place)
            }
        }
    }

    fn builtin(&mut self, builtin: Builtin, place: NodeId) {
        let uses = &mut self.kernel.uses;
        match builtin {
            Builtin::Invocation(axis) => uses.axes[axis as usize] = true,
            Builtin::Workgroup(axis) | Builtin::Local(axis) => {
                uses.axes[axis as usize] = true;
                uses.group_shape = true;
            }
            Builtin::InvocationCount(Axis::X | Axis::Y | Axis::Z) => {}
            Builtin::WorkgroupCount(_) | Builtin::LocalCount(_) => uses.group_shape = true,
            Builtin::SubgroupLane | Builtin::SubgroupSize => {
                uses.subgroup = true;
                self.subgroup_declared(place);
            }
        }
    }

    fn index(&mut self, expr: &Expr) -> Typed {
        self.fixed(expr, Scalar::U32, ErrorCode::E0306, "an index")
    }

    /// An expression that must have this type.
    fn fixed(&mut self, expr: &Expr, expected: Scalar, code: ErrorCode, what: &str) -> Typed {
        let value = self.expr(expr);
        if let Some(found) = value.ty.filter(|found| *found != ValueType::Scalar(expected)) {
            let diagnostic =
                Diagnostic::new(code, format!("{what} must be {expected}, found {found}")).at(Location::Tree(value.place));
            let diagnostic = self.mismatch(diagnostic, expected.into(), value);
            self.mistake(diagnostic);
        }
        value
    }

    fn vector_type(&mut self, components: &[Typed], place: NodeId) -> Option<ValueType> {
        let wrong = |message: String| {
            Diagnostic::new(ErrorCode::E0311, message).at(Location::Tree(place)).expected("2 to 4 components of u32, i32 or f32")
        };
        if !(2..=4).contains(&components.len()) {
            self.mistake(
                wrong(format!("a vector cannot have {}", counted(components.len(), "component"))).found(components.len()),
            );
            return None;
        }
        let first = components.iter().find_map(|component| component.ty)?;
        let ValueType::Scalar(scalar @ (Scalar::U32 | Scalar::I32 | Scalar::F32)) = first else {
            self.mistake(wrong(format!("a vector cannot hold {first}")).found(first));
            return None;
        };
        for component in components {
            if let Some(found) = component.ty.filter(|found| *found != first) {
                let diagnostic = Diagnostic::new(
                    ErrorCode::E0301,
                    format!("the components of a vector have one type: {first}, and this is {found}"),
                )
                .at(Location::Tree(component.place));
                let diagnostic = self.mismatch(diagnostic, first, *component);
                self.mistake(diagnostic);
            }
        }
        Some(ValueType::Vector(scalar, components.len() as u8))
    }

    /// Checks the operands of an op against its row; gives what its type variable stands for. `known` is the type variable where
    /// something other than an operand decides it.
    fn op(&mut self, op: OpId, known: Option<ValueType>, operands: &[Typed], place: NodeId) -> Option<Scalar> {
        let info = op.info();
        if operands.len() != info.operands.len() {
            let beside = if matches!(op, OpId::Atomic(_)) { " beside buffer and index" } else { "" };
            self.mistake(
                Diagnostic::new(
                    ErrorCode::E0313,
                    format!("`{op}` takes {}{beside}, found {}", counted(info.operands.len(), "argument"), operands.len()),
                )
                .at(Location::Operation(place))
                .expected(counted(info.operands.len(), "argument"))
                .found(operands.len()),
            );
            return None;
        }
        let pairs = || operands.iter().zip(info.operands);
        let first = pairs().find(|(operand, rule)| **rule == Operand::T && operand.ty.is_some()).map(|(operand, _)| *operand);
        let mut fine = pairs().all(|(operand, _)| operand.ty.is_some());
        // A literal takes its type from its context, so the other operand is the one to follow.
        let leader = pairs()
            .filter(|(operand, rule)| **rule == Operand::T && operand.ty.is_some())
            .map(|(operand, _)| *operand)
            .find(|operand| !operand.literal)
            .or(first);
        let expected = known.or(leader.and_then(|leader| leader.ty));
        let t = match expected {
            Some(ValueType::Scalar(t)) if info.over.contains(t) => Some(t),
            Some(found) => {
                let at = leader.map_or(Location::Head(place), |leader| Location::Tree(leader.place));
                let diagnostic = self.wrong_type(op, found, at, place);
                self.mistake(diagnostic);
                return None;
            }
            None => None,
        };
        for (operand, rule) in pairs() {
            let wanted = match rule {
                Operand::T => expected,
                Operand::Fixed(scalar) => Some(ValueType::Scalar(*scalar)),
            };
            if let (Some(wanted), Some(found)) = (wanted, operand.ty)
                && wanted != found
            {
                fine = false;
                let diagnostic = Diagnostic::new(ErrorCode::E0301, format!("`{}` needs {wanted} here, found {found}", token(op)))
                    .at(Location::Tree(operand.place));
                let diagnostic = match (rule, leader, known) {
                    (Operand::T, Some(leader), None) => {
                        diagnostic.related(Location::Tree(leader.place), format!("this is {wanted}"))
                    }
                    (Operand::T | Operand::Fixed(_), _, _) => diagnostic,
                };
                let mut diagnostic = self.mismatch(diagnostic, wanted, *operand);
                // `2.5 * n`: converting the literal would lose what it says.
                if let (true, ValueType::Scalar(from), Some(leader)) = (operand.literal, found, leader)
                    && from.is_float()
                    && matches!(&diagnostic.fix, Some(Fix::Wrap(..)))
                    && known.is_none()
                {
                    let wrap = Fix::Wrap(Location::Tree(leader.place), format!("{from}("), ")".into());
                    diagnostic = diagnostic.fix("convert the other operand", wrap);
                }
                self.mistake(diagnostic);
            }
        }
        t.filter(|_| fine)
    }

    fn wrong_type(&self, op: OpId, found: ValueType, at: Location, place: NodeId) -> Diagnostic {
        let info = op.info();
        let diagnostic = Diagnostic::new(ErrorCode::E0302, format!("`{}` does not take {found}", token(op)))
            .at(at)
            .expected(any_of(info.over))
            .found(found);
        let logical = match (op, found) {
            (OpId::Binary(vyre_spec::BinaryOp::BitAnd), ValueType::Scalar(Scalar::Bool)) => Some("&&"),
            (OpId::Binary(vyre_spec::BinaryOp::BitOr), ValueType::Scalar(Scalar::Bool)) => Some("||"),
            _ => None,
        };
        match (logical, found) {
            (Some(token), _) => diagnostic.fix("for bool write", Fix::Replace(Location::Head(place), token.into())),
            (None, ValueType::Vector(..)) => diagnostic.help("vectors are not computed on; take a component: `.x`"),
            (None, ValueType::Scalar(_)) => diagnostic,
        }
    }

    /// The expression of an op whose operands are wrong: where the row fixes the result its type is known all the same.
    fn after_bad_operands(&mut self, info: &OpInfo, operands: &[Typed], place: NodeId) -> Typed {
        let ty = match info.result {
            vyre_spec::ResultRule::Fixed(scalar) => Some(ValueType::Scalar(scalar)),
            vyre_spec::ResultRule::T | vyre_spec::ResultRule::UnsignedT | vyre_spec::ResultRule::None => None,
        };
        let ids: Vec<ExprId> = operands.iter().map(|operand| operand.id).collect();
        self.poisoned(&ids, ty, place)
    }

    /// Adds what was expected and found, and the conversion that would mend it.
    fn mismatch(&self, diagnostic: Diagnostic, expected: ValueType, value: Typed) -> Diagnostic {
        let Some(found) = value.ty else { return diagnostic };
        let diagnostic = diagnostic.expected(expected).found(found);
        let at = Location::Tree(value.place);
        let (ValueType::Scalar(to), ValueType::Scalar(from)) = (expected, found) else { return diagnostic };
        if let (true, ExprKind::Lit { bits }) = (value.literal, self.kernel.expr(value.id).kind)
            && let Some(written) = literal_as(Literal::from_bits(from, bits), to)
        {
            return diagnostic.fix("write", Fix::Replace(at, written));
        }
        match to {
            Scalar::Bool => diagnostic.fix("compare it", Fix::Wrap(at, "(".into(), format!(" != {})", zero(from)))),
            Scalar::U32 | Scalar::I32 | Scalar::U64 | Scalar::I64 | Scalar::F32 | Scalar::F64 => {
                diagnostic.fix("convert it", Fix::Wrap(at, format!("{to}("), ")".into()))
            }
        }
    }
}

/// The operands of an operation, as many as its row allows.
fn few(operands: &[Typed]) -> Few<ExprId, MAX_OPERANDS> {
    let ids: Vec<ExprId> = operands.iter().take(MAX_OPERANDS).map(|operand| operand.id).collect();
    Few::of(&ids)
}

/// Where the variables of a program are declared.
fn all_declared(program: &Program) -> HashMap<&Name, Vec<(NodeId, Location)>> {
    let mut all: HashMap<&Name, Vec<(NodeId, Location)>> = HashMap::new();
    for (n, (item, _)) in program.walk().enumerate() {
        let place = NodeId(n as u32);
        let declared = match item {
            Item::Node(Node::Let { name, .. }) => Some((name, Location::Head(place))),
            Item::Node(Node::Loop(repeat)) => Some((&repeat.var, Location::Head(place))),
            Item::Node(node) => node.result().map(|name| (name, Location::Result(place))),
            Item::Expr(_) => None,
        };
        if let Some((name, location)) = declared {
            all.entry(name).or_default().push((place, location));
        }
    }
    all
}

/// A literal as one of another type, if that type has the value.
fn literal_as(literal: Literal, to: Scalar) -> Option<String> {
    let integer = match literal {
        Literal::Bool(_) => return None,
        Literal::U32(value) => i128::from(value),
        Literal::I32(value) => i128::from(value),
        Literal::U64(value) => i128::from(value),
        Literal::I64(value) => i128::from(value),
        Literal::F32(value) => exact_integer(f64::from(value.value()))?,
        Literal::F64(value) => exact_integer(value.value())?,
    };
    let suffix = |fits: bool, suffix: &str| fits.then(|| format!("{integer}{suffix}"));
    match to {
        Scalar::Bool => None,
        Scalar::U32 => suffix(u32::try_from(integer).is_ok(), "u"),
        Scalar::I32 => suffix(i32::try_from(integer).is_ok(), "i"),
        Scalar::U64 => suffix(u64::try_from(integer).is_ok(), "u64"),
        Scalar::I64 => suffix(i64::try_from(integer).is_ok(), "i64"),
        Scalar::F32 => suffix(integer.unsigned_abs() <= 1 << 24, ".0"),
        Scalar::F64 => suffix(integer.unsigned_abs() <= 1 << 53, ".0d"),
    }
}

fn exact_integer(value: f64) -> Option<i128> {
    (value.trunc() == value && value.abs() < 1e18 && (value != 0.0 || value.is_sign_positive())).then_some(value as i128)
}

fn unusable_type(data_type: &DataType, location: Location) -> Diagnostic {
    Diagnostic::new(ErrorCode::E0404, format!("{data_type} is a type that programs can describe but no kernel can use"))
        .at(location)
        .expected("a type that loads: bool, u32, i32, u64, i64, f32, f64, a small type, or vec2 to vec4 of u32, i32 or f32")
        .found(data_type)
}

fn with_nearest(diagnostic: Diagnostic, suggestion: Option<String>, location: Location) -> Diagnostic {
    match suggestion {
        Some(name) => diagnostic.fix("did you mean", Fix::Replace(location, Name::from(name).to_string())),
        None => diagnostic,
    }
}

fn zero(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::Bool => "false",
        Scalar::U32 | Scalar::I32 | Scalar::U64 | Scalar::I64 => "0",
        Scalar::F32 => "0.0",
        Scalar::F64 => "0.0d",
    }
}

/// How a reader of the text knows the op: its operator, or its name.
fn token(op: OpId) -> String {
    match op.info().spelling {
        vyre_spec::Spelling::Call => op.to_string(),
        vyre_spec::Spelling::Prefix(token) | vyre_spec::Spelling::Infix(token, _) => token.to_string(),
    }
}

fn any_of(types: TypeSet) -> String {
    let names: Vec<&str> = types.iter().map(Scalar::name).collect();
    match names.as_slice() {
        [only] => (*only).to_string(),
        names => format!("one of {}", names.join(", ")),
    }
}

fn counted(count: usize, what: &str) -> String {
    match count {
        0 => format!("no {what}"),
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    }
}
