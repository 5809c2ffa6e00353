//! Patterns: things that go wrong together, and values and shapes that something depends on. Each is read off the program and its
//! launch, whoever made them, so that a generator which loses one is found out.

use crate::values::is_extreme;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;
use std::hash::{Hash, Hasher};
use vyre_foundation::analysis::Scope;
use vyre_foundation::ir::{
    Access, Atomic, AtomicOp, BinaryOp, Builtin, DataType, Element, Expr, Load, Name, Node, Program, Scalar, Store, Subgroup,
    UnaryOp, ValueType,
};
use vyre_foundation::kernel::{ExprId, Kernel};
use vyre_foundation::launch::plan;
use vyre_foundation::memory_model::MemoryOrdering;
use vyre_foundation::specialize;
use vyre_foundation::validate::Validated;
use vyre_worker::Case;

/// A way out of a loop or an iteration.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Exit {
    /// `break`.
    Break,
    /// `continue`.
    Continue,
    /// `return`.
    Return,
    /// `trap`.
    Trap,
}

impl Exit {
    /// Every way out.
    pub const ALL: [Exit; 4] = [Exit::Break, Exit::Continue, Exit::Return, Exit::Trap];

    const fn name(self) -> &'static str {
        match self {
            Exit::Break => "break",
            Exit::Continue => "continue",
            Exit::Return => "return",
            Exit::Trap => "trap",
        }
    }
}

macro_rules! patterns {
    ($( $variant:ident $name:literal; )*) => {
        /// A pattern.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Pattern {
            $( #[doc = $name] $variant, )*
            /// Invocations take this way out of a loop or iteration by themselves: in the `else` arm or not, below one branch that
            /// they take differently or more.
            Exit {
                /// The way out.
                exit: Exit,
                /// Whether it stands in the `else` arm.
                otherwise: bool,
                /// Whether there is more than one branch.
                nested: bool,
            },
            /// Of the invocations in one loop, some take the first way out and others the second.
            Exits(Exit, Exit),
        }

        impl Pattern {
            /// Every pattern.
            #[must_use]
            pub fn all() -> Vec<Pattern> {
                let mut all = vec![$( Pattern::$variant, )*];
                for (n, exit) in Exit::ALL.into_iter().enumerate() {
                    for (otherwise, nested) in [(false, false), (false, true), (true, false), (true, true)] {
                        all.push(Pattern::Exit { exit, otherwise, nested });
                    }
                    all.extend(Exit::ALL[n + 1..].iter().map(|other| Pattern::Exits(exit, *other)));
                }
                all
            }
        }

        impl fmt::Display for Pattern {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $( Pattern::$variant => f.write_str($name), )*
                    Pattern::Exit { exit, otherwise, nested } => {
                        let arm = if *otherwise { "an else arm" } else { "an arm" };
                        let deep = if *nested { ", two branches deep" } else { "" };
                        write!(f, "{} in {arm} that some invocations in a loop take{deep}", exit.name())
                    }
                    Pattern::Exits(one, other) => {
                        write!(f, "{} for some of the invocations in a loop and {} for others", one.name(), other.name())
                    }
                }
            }
        }
    };
}

patterns! {
    BoundChanged "a loop up to a variable, different among invocations, that its body assigns";
    StartChanged "a loop from a variable, different among invocations, that its body assigns";
    UniformBoundChanged "a loop up to a uniform variable that its body assigns";
    ConditionChanged "a branch on a variable that its first arm assigns";
    ElseConditionChanged "a branch on a variable that its else arm assigns";
    IndexMoved "a load in a loop at a variable that the loop assigns";
    OwnIndexMoved "a store in a loop at a variable that the loop assigns";
    EndsAtLast "a loop from one number to u32::MAX";
    EndsAtLastVarying "a loop to u32::MAX from a number that is computed";
    OverLength "a loop up to the length of a buffer";
    LongLoop "a loop of 100 iterations or more";
    Carried "an iteration that begins by storing what the one before has assigned at its end";
    MadeAhead "the next value of a variable of a loop, made before a barrier and taken behind it";
    HostileLiteral "an index that is a literal far past every buffer";
    HostileLength "an index that is the length of its buffer";
    HostileSum "an index that is a sum with a number far past every buffer";
    HostileProduct "an index that is an id times a number far past every buffer";
    ReversedIndex "a store at a number less the invocation's own";
    RotatedIndex "a store at the invocation's own number plus another, around the end";
    FlippedIndex "a store at the invocation's own number with bits flipped";
    ScaledIndex "a store at a multiple of the invocation's own number, around the end";
    FloodedStorage "one value that all invocations store to one element of a storage buffer";
    FloodedWorkgroup "one value that all invocations store to one element of workgroup memory";
    AtomicsMeet "an atomic of all invocations on one element";
    Tickets "a result of an atomic add of some invocations on one element, at which they store";
    NeighboursLoaded "an op on two elements beside each other";
    NeighboursStored "stores to two elements beside each other, one after the other";
    GuardedAccess "an access inside a check of its index against the length";
    GuardedByExit "an access after those that fail a check of its index have left";
    GuardedSum "an access inside a check of its index, which is a sum with a number, against the length";
    ChangedCompared "a comparison of a value with itself changed by an op";
    NestedBounds "min and max inside one another, both with a literal";
    ShiftedTwice "two shifts of one kind, one inside the other, both by literals";
    Undone "an op on the result of its opposite, with the same operand";
    DividedAtTop "a division by a literal of a sum with a literal in the upper half of its type";
    NarrowedFloat "a float made an integer where it is stored in fewer bits";
    MetAtRunTime "a store, a store at another number that may be the same, and a load of the first";
    AbsoluteDivided "a division of an absolute value by a literal";
    Outlived "a value that is read behind a barrier, made of a variable that is assigned before it";
    FarBound "a loop over half of all numbers or more, which it leaves";
    CornerPair "an op on two literals at the ends of their type";
    MixedWidths "an expression of booleans, integers and floats of both widths";
    VectorExchanged "a vector made of its own components in another order";
    CommonSubexpression "an expression of five nodes or more, with floats or 64-bit integers, that is there twice";
    ReusedName "a name that two variables have one after the other";
    NameOfPass "a name that looks like one that a pass makes";
    LongChain "30 values that each depend on the one before";
    HandedOn "a value stored, and after a barrier read by another invocation";
    HandedOnByGrid "a value stored, and after a grid barrier read by another invocation";
    Reloaded "the same load before and after others have written";
    ManyLive "40 values between their definition and their last use";
    CarriedAcrossBarriers "8 values that are carried across two barriers";
    ManyBuffers "8 buffers or more";
    WorkgroupTypes "workgroup memory of three types";
    SubgroupBox "subgroups in a workgroup of three dimensions";
    Blocks "more than 512 invocations in workgroups of at most 256";
    LargeGroup "a workgroup of more than 512 invocations";
    FullGroup "a workgroup of 1024 invocations";
    PrimeGroup "a workgroup of a prime number of invocations above 60";
    LargeBox "a workgroup of three dimensions and 256 invocations or more";
    Tail "more than 512 invocations, not a multiple of 4";
    BlocksWait "a grid barrier among more than 512 invocations";
    PartialGroup "a written buffer that ends within the last workgroup";
    NoGrid "a grid that follows from the length of what is written";
    Override "a launch with another workgroup size";
}

/// The patterns of a program.
pub(super) fn of_program(program: &Program, validated: &Validated) -> BTreeSet<Pattern> {
    let kernel = validated.kernel();
    let places = kernel.exprs.iter().map(|expr| expr.node.0 as usize + 1).max().unwrap_or(0);
    let mut facts = vec![Fact { uniform: true, ty: None }; places];
    for (n, expr) in kernel.exprs.iter().enumerate() {
        let uniform = validated.uniformity().is_expr_uniform(validated.ssa(), ExprId(n as u32), Scope::Workgroup);
        facts[expr.node.0 as usize] = Fact { uniform, ty: Some(expr.ty) };
    }
    let mut reader = Reader { program, facts, ..Reader::new(program) };
    reader.declarations(kernel);
    reader.body(&program.parts().body);
    reader.lifetimes();
    reader.seen
}

/// The patterns of how a case is launched; none if it cannot be.
pub(super) fn of_launch(case: &Case) -> BTreeSet<Pattern> {
    let mut seen = BTreeSet::new();
    let specialized;
    let program = if case.config.specialization.is_empty() {
        &case.program
    } else {
        let values = case.config.specialization.iter();
        let Ok(program) = specialize(&case.program, values) else { return seen };
        specialized = program;
        &specialized
    };
    let Ok(kernel) = program.validated().map(|validated| validated.kernel()) else { return seen };
    let sizes: Vec<u64> = case.inputs.iter().map(|bytes| bytes.len() as u64).collect();
    let Ok(launch) = plan(program, &sizes, &case.config.launch()) else { return seen };
    let size = launch.workgroup_size;
    let (group, all): (u32, u64) = (size.iter().product(), launch.invocations());
    let groups: u32 = launch.grid.iter().product();
    let prime = (2..).take_while(|n| n * n <= group).all(|n| !group.is_multiple_of(n));
    let flat = [size, launch.grid].iter().all(|extent| extent[1] == 1 && extent[2] == 1);
    let last = u64::from(group) * u64::from(groups.saturating_sub(1));
    let ends_within = kernel
        .buffers
        .iter()
        .zip(&launch.lengths)
        .any(|(buffer, length)| buffer.access.is_output() && (last + 1..all).contains(&u64::from(*length)));
    for (pattern, holds) in [
        (Pattern::Blocks, all > 512 && group <= 256),
        (Pattern::LargeGroup, group > 512),
        (Pattern::FullGroup, group == 1024),
        (Pattern::PrimeGroup, group > 60 && prime),
        (Pattern::LargeBox, group >= 256 && size.iter().all(|extent| *extent > 1)),
        (Pattern::Tail, all > 512 && !all.is_multiple_of(4)),
        (Pattern::BlocksWait, all > 512 && kernel.uses.grid_sync),
        (Pattern::PartialGroup, flat && groups > 1 && ends_within),
        (Pattern::NoGrid, case.config.grid_override.is_none() && groups > 1),
        (Pattern::Override, size != kernel.workgroup_size),
    ] {
        if holds {
            seen.insert(pattern);
        }
    }
    seen
}

/// What the resolved kernel knows about an expression.
#[derive(Clone, Copy)]
struct Fact {
    uniform: bool,
    ty: Option<ValueType>,
}

/// A loop around the statement that is read.
#[derive(Default)]
struct Loop {
    /// Variables that its body assigns.
    assigned: HashSet<Name>,
    /// Ways out that invocations take by themselves.
    exits: BTreeSet<Exit>,
    /// The branches inside it that invocations take differently, around the statement: whether it stands in the `else` arm.
    arms: Vec<bool>,
}

/// A variable from its definition on, in statements.
struct Life {
    from: u32,
    to: u32,
    /// How many values it depends on, one after the other.
    chain: u32,
}

struct Reader<'a> {
    program: &'a Program,
    facts: Vec<Fact>,
    /// The place of what is read next, and the number of its statement.
    next: usize,
    statement: u32,
    seen: BTreeSet<Pattern>,
    access: HashMap<Name, Access>,
    loops: Vec<Loop>,
    lives: Vec<Life>,
    /// By name, the latest variable of that name.
    variables: HashMap<Name, usize>,
    barriers: Vec<u32>,
    /// Hashes of expressions that no memory has a part in.
    expressions: HashSet<u64>,
    /// How many branches that invocations take differently are around.
    apart: u32,
    /// Results of additions to one element that invocations make or do not make.
    tickets: Vec<Name>,
}

/// What is known of an expression once it is read.
struct Read {
    hash: u64,
    size: u32,
    /// Whether memory that is written has a part in it.
    written: bool,
    /// One bit for each: bool, 32-bit integer, 64-bit integer, f32, f64.
    types: u8,
    /// The longest chain of values behind it.
    chain: u32,
    /// Whether it is more than literals.
    varies: bool,
}

impl<'a> Reader<'a> {
    fn new(program: &'a Program) -> Reader<'a> {
        Reader {
            program,
            facts: Vec::new(),
            next: 0,
            statement: 0,
            seen: BTreeSet::new(),
            access: program.buffers().iter().map(|decl| (decl.name.clone(), decl.access)).collect(),
            loops: Vec::new(),
            lives: Vec::new(),
            variables: HashMap::new(),
            barriers: Vec::new(),
            expressions: HashSet::new(),
            apart: 0,
            tickets: Vec::new(),
        }
    }

    fn see(&mut self, pattern: Pattern, holds: bool) {
        if holds {
            self.seen.insert(pattern);
        }
    }

    fn declarations(&mut self, kernel: &Kernel) {
        self.see(Pattern::ManyBuffers, kernel.buffers.len() >= 8);
        let workgroup = kernel.buffers.iter().filter(|buffer| buffer.access == Access::Workgroup);
        let types: HashSet<_> = workgroup.map(|buffer| &buffer.element).collect();
        self.see(Pattern::WorkgroupTypes, types.len() >= 3);
        let in_three = kernel.workgroup_size.iter().all(|extent| *extent > 1);
        self.see(Pattern::SubgroupBox, self.program.parts().subgroup.is_some() && in_three);
    }

    fn declare(&mut self, name: &Name, chain: u32) {
        let life = Life { from: self.statement, to: self.statement, chain };
        let again = self.variables.insert(name.clone(), self.lives.len()).is_some();
        self.lives.push(life);
        self.see(Pattern::ReusedName, again);
        let of_pass = name.as_str().strip_prefix("cse").is_some_and(|rest| rest.parse::<u32>().is_ok());
        self.see(Pattern::NameOfPass, of_pass);
    }

    fn body(&mut self, nodes: &[Node]) {
        for (n, node) in nodes.iter().enumerate() {
            self.node(node);
            self.after_barrier(&nodes[..=n]);
            if let [.., Node::Store(one), Node::Store(other)] = &nodes[..=n] {
                self.see(Pattern::NeighboursStored, one.buffer == other.buffer && is_next(&one.index, &other.index));
            }
            if let [.., Node::Store(one), Node::Store(other), Node::Let { value, .. }] = &nodes[..=n]
                && let Expr::Load(load) = &**value
            {
                let met = one.buffer == other.buffer && one.buffer == load.buffer && one.index == *load.index;
                self.see(Pattern::MetAtRunTime, met && one.index != other.index);
            }
            if let [.., Node::Let { name, value }, Node::Assign { name: changed, .. }, Node::Barrier { .. }, Node::Store(store)] =
                &nodes[..=n]
                && let Expr::Binary { left, right, .. } = &**value
            {
                let made = matches!(&**left, Expr::Var(var) if var == changed) && matches!(&**right, Expr::Lit(_));
                self.see(Pattern::Outlived, made && mentions(&store.value, name));
            }
            if let Node::If { cond, then, otherwise } = node
                && otherwise.is_empty()
                && matches!(then.last(), Some(Node::Return | Node::Break | Node::Continue | Node::Trap { .. }))
                && let Expr::Unary { op: UnaryOp::Not, operand } = &**cond
            {
                let checked = checks(operand).into_iter().any(|(buffer, index)| accesses(&nodes[n + 1..], buffer, index));
                self.see(Pattern::GuardedByExit, checked);
            }
        }
    }

    /// What the last of these statements does with those before it.
    fn after_barrier(&mut self, nodes: &[Node]) {
        let [.., written, Node::Barrier { ordering }, Node::Let { value, .. }] = nodes else { return };
        let Some((buffer, index)) = written.access() else { return };
        let Expr::Load(load) = &**value else { return };
        let Load { buffer: from, index: at } = &**load;
        if from != buffer {
            return;
        }
        let grid = *ordering == MemoryOrdering::GridSync;
        self.see(if grid { Pattern::HandedOnByGrid } else { Pattern::HandedOn }, **at != *index);
        let [.., Node::Let { value: before, .. }, Node::Barrier { .. }, _, _, _] = nodes else { return };
        self.see(Pattern::Reloaded, before == value);
    }

    fn node(&mut self, node: &Node) {
        self.next += 1;
        self.statement += 1;
        match node {
            Node::Let { name, value } => {
                let read = self.whole(value);
                self.declare(name, read.chain + 1);
            }
            Node::Assign { name, value } => {
                let read = self.whole(value);
                if let Some(life) = self.variables.get(name).and_then(|n| self.lives.get_mut(*n)) {
                    life.chain = read.chain + 1;
                }
                self.see(Pattern::VectorExchanged, is_exchange(name, value));
            }
            Node::Store(store) => {
                let Store { buffer, index, value } = &**store;
                let uniform = self.index(buffer, index, Pattern::OwnIndexMoved);
                self.expr(index, false);
                let from = self.facts.get(self.next + 1).and_then(|fact| fact.ty).and_then(ValueType::scalar);
                let narrow = self.program.buffers().iter().any(|decl| decl.name == *buffer && is_narrow_integer(&decl.element));
                let converts = matches!(value, Expr::Cast { .. }) && from.is_some_and(Scalar::is_float);
                self.see(Pattern::NarrowedFloat, narrow && converts);
                self.whole(value);
                self.orders(index);
                let ticket = self.tickets.iter().any(|ticket| mentions(index, ticket));
                self.see(Pattern::Tickets, ticket);
                let floods = uniform && matches!(value, Expr::Lit(_));
                let workgroup = self.access.get(buffer) == Some(&Access::Workgroup);
                self.see(if workgroup { Pattern::FloodedWorkgroup } else { Pattern::FloodedStorage }, floods);
            }
            Node::Atomic(atomic) => {
                let Atomic { result, op, buffer, index, operands } = &**atomic;
                let uniform = self.index(buffer, index, Pattern::OwnIndexMoved);
                if uniform && *op == AtomicOp::Add && self.apart > 0 {
                    self.tickets.extend(result.clone());
                }
                self.expr(index, false);
                self.see(Pattern::AtomicsMeet, uniform);
                let chain = operands.iter().map(|operand| self.whole(operand).chain).max().unwrap_or(0);
                result.iter().for_each(|name| self.declare(name, chain + 1));
            }
            Node::Subgroup(subgroup) => {
                let Subgroup { result, operands, .. } = &**subgroup;
                let chain = operands.iter().map(|operand| self.whole(operand).chain).max().unwrap_or(0);
                result.iter().for_each(|name| self.declare(name, chain + 1));
            }
            Node::If { cond, then, otherwise } => {
                let divergent = !self.facts[self.next].uniform;
                self.whole(cond);
                if let Expr::Var(name) = &**cond {
                    self.see(Pattern::ConditionChanged, assigned(then).contains(name));
                    self.see(Pattern::ElseConditionChanged, assigned(otherwise).contains(name));
                }
                let guarded = checks(cond).into_iter().any(|(buffer, index)| accesses(then, buffer, index));
                self.see(Pattern::GuardedAccess, guarded);
                let is_sum = |index: &Expr| operands(index, BinaryOp::Add).is_some_and(|(_, by)| number(by).is_some());
                let guarded_sum = checks(cond).into_iter().any(|(buffer, index)| is_sum(index) && accesses(then, buffer, index));
                self.see(Pattern::GuardedSum, guarded_sum);
                for (body, otherwise) in [(then, false), (otherwise, true)] {
                    let depth = self.loops.last().map_or(0, |innermost| innermost.arms.len());
                    if divergent && let Some(innermost) = self.loops.last_mut() {
                        innermost.arms.push(otherwise);
                    }
                    self.apart += u32::from(divergent);
                    self.body(body);
                    self.apart -= u32::from(divergent);
                    if let Some(innermost) = self.loops.last_mut() {
                        innermost.arms.truncate(depth);
                    }
                }
            }
            Node::Loop(repeat) => {
                self.repeat(&repeat.var, &repeat.from, &repeat.to, &repeat.body);
            }
            Node::Break => self.exit(Exit::Break),
            Node::Continue => self.exit(Exit::Continue),
            Node::Return => self.exit(Exit::Return),
            Node::Trap { .. } => self.exit(Exit::Trap),
            Node::Barrier { .. } => self.barriers.push(self.statement),
            Node::Block(body) | Node::Region { body, .. } => self.body(body),
        }
    }

    fn exit(&mut self, exit: Exit) {
        let Some(innermost) = self.loops.last_mut() else { return };
        if let Some(otherwise) = innermost.arms.last().copied() {
            innermost.exits.insert(exit);
            let nested = innermost.arms.len() > 1;
            self.seen.insert(Pattern::Exit { exit, otherwise, nested });
        }
    }

    fn repeat(&mut self, var: &Name, from: &Expr, to: &Expr, body: &[Node]) {
        let assigned: HashSet<Name> = assigned(body).into_iter().cloned().collect();
        for (bound, is_end) in [(from, false), (to, true)] {
            let uniform = self.facts[self.next].uniform;
            self.whole(bound);
            if let Expr::Var(name) = bound
                && assigned.contains(name)
            {
                let pattern = match (is_end, uniform) {
                    (_, true) => Pattern::UniformBoundChanged,
                    (true, false) => Pattern::BoundChanged,
                    (false, false) => Pattern::StartChanged,
                };
                self.seen.insert(pattern);
            }
        }
        if number(to) == Some(u32::MAX) {
            self.seen.insert(if number(from).is_some() { Pattern::EndsAtLast } else { Pattern::EndsAtLastVarying });
        }
        self.see(Pattern::OverLength, length(to).is_some());
        let trips = number(to).zip(number(from)).map_or(0, |(to, from)| to.saturating_sub(from));
        let left = matches!(body, [Node::If { then, .. }, ..] if matches!(then[..], [Node::Break]));
        self.see(Pattern::LongLoop, trips >= 100 && !left);
        self.see(Pattern::FarBound, trips >= 1 << 31 && left);
        self.see(Pattern::Carried, carries(body));
        self.see(Pattern::MadeAhead, makes_ahead(body));
        self.declare(var, 1);
        self.loops.push(Loop { assigned, ..Loop::default() });
        self.body(body);
        let exits: Vec<Exit> = self.loops.pop().into_iter().flat_map(|innermost| innermost.exits).collect();
        for (n, exit) in exits.iter().enumerate() {
            self.seen.extend(exits[n + 1..].iter().map(|other| Pattern::Exits(*exit, *other)));
        }
    }

    /// Looks at the index of an access, which is read next; gives whether it is the same for the workgroup.
    fn index(&mut self, buffer: &Name, index: &Expr, moved: Pattern) -> bool {
        let uniform = self.facts[self.next].uniform;
        if let Expr::Var(name) = index {
            let moves = self.loops.iter().any(|around| around.assigned.contains(name));
            self.see(moved, moves);
        }
        let far = |expr: &Expr| number(expr).is_some_and(|number| number >= 0x3FFF_FFFF);
        self.see(Pattern::HostileLiteral, far(index));
        self.see(Pattern::HostileLength, *index == Expr::Len(buffer.clone()));
        if let Expr::Binary { op, left, right } = index {
            self.see(Pattern::HostileSum, *op == BinaryOp::Add && far(right));
            self.see(Pattern::HostileProduct, *op == BinaryOp::Mul && far(right) && matches!(**left, Expr::Builtin(_)));
        }
        uniform
    }

    /// The orders in which invocations own elements.
    fn orders(&mut self, index: &Expr) {
        // Behind the start of the workgroup's slice.
        let within = match operands(index, BinaryOp::Add) {
            Some((start, within)) if operands(start, BinaryOp::Mul).is_some() => within,
            Some(_) | None => index,
        };
        if let Some((from, _)) = operands(within, BinaryOp::Sub) {
            self.see(Pattern::ReversedIndex, number(from).is_some());
        }
        if let Some((own, bits)) = operands(within, BinaryOp::BitXor) {
            self.see(Pattern::FlippedIndex, is_own(own) && number(bits).is_some());
        }
        let Some((inner, end)) = operands(within, BinaryOp::Rem) else { return };
        for (op, pattern) in [(BinaryOp::Add, Pattern::RotatedIndex), (BinaryOp::Mul, Pattern::ScaledIndex)] {
            if let Some((own, by)) = operands(inner, op) {
                self.see(pattern, is_own(own) && number(by).is_some() && number(end).is_some());
            }
        }
    }

    /// The whole expression of a statement.
    fn whole(&mut self, expr: &Expr) -> Read {
        let read = self.expr(expr, true);
        self.see(Pattern::MixedWidths, read.types == 0b1_1111);
        read
    }

    fn expr(&mut self, expr: &Expr, counts: bool) -> Read {
        let place = self.next;
        self.next += 1;
        let mut hasher = Mixer(0);
        std::mem::discriminant(expr).hash(&mut hasher);
        let whole = counts;
        let mut read = Read { hash: 0, size: 1, written: false, types: 0, chain: 0, varies: true };
        match self.facts[place].ty {
            Some(ValueType::Scalar(scalar)) => read.types |= type_bit(scalar),
            Some(ValueType::Vector(..)) | None => {}
        }
        match expr {
            Expr::Lit(literal) => {
                literal.hash(&mut hasher);
                read.varies = false;
            }
            Expr::Var(name) => {
                name.hash(&mut hasher);
                if let Some(life) = self.variables.get(name).and_then(|n| self.lives.get_mut(*n)) {
                    life.to = self.statement;
                    read.chain = life.chain;
                }
            }
            Expr::Builtin(builtin) => builtin.hash(&mut hasher),
            Expr::Len(buffer) => buffer.hash(&mut hasher),
            Expr::Load(load) => {
                load.buffer.hash(&mut hasher);
                read.written = self.access.get(&load.buffer).is_some_and(|access| access.is_writable());
            }
            Expr::Unary { op, .. } => op.hash(&mut hasher),
            Expr::Binary { op, left, right } => {
                op.hash(&mut hasher);
                let corner = |expr: &Expr| matches!(expr, Expr::Lit(literal) if is_extreme(*literal));
                self.see(Pattern::CornerPair, corner(left) && corner(right));
                let beside = |(one, other): (&Load, &Load)| one.buffer == other.buffer && is_next(&one.index, &other.index);
                self.tempting(*op, left, right);
                self.see(Pattern::NeighboursLoaded, loaded(left).zip(loaded(right)).is_some_and(beside));
            }
            Expr::Ternary { op, .. } => op.hash(&mut hasher),
            Expr::Cast { to, .. } | Expr::Bitcast { to, .. } => to.hash(&mut hasher),
            Expr::Vector { .. } => {}
            Expr::Extract { component, .. } => component.hash(&mut hasher),
        }
        let mut varies = expr.is_leaf() && read.varies;
        let counts = if let Expr::Load(load) = expr {
            self.index(&load.buffer, &load.index, Pattern::IndexMoved);
            false
        } else {
            counts
        };
        for operand in expr.children() {
            let below = self.expr(operand, counts);
            below.hash.hash(&mut hasher);
            read.size += below.size;
            read.written |= below.written;
            read.types |= below.types;
            read.chain = read.chain.max(below.chain);
            varies |= below.varies;
        }
        read.varies = varies;
        read.hash = hasher.finish();
        // Indices and checks of them are there twice anyway, and are of bool and 32-bit integers.
        let computes = read.types & !(type_bit(Scalar::Bool) | type_bit(Scalar::U32)) != 0;
        if whole && read.size >= 5 && computes && !read.written && read.varies && !self.expressions.insert(read.hash) {
            self.seen.insert(Pattern::CommonSubexpression);
        }
        read
    }

    /// What compilers are tempted to simplify.
    fn tempting(&mut self, op: BinaryOp, left: &Expr, right: &Expr) {
        let literal = |expr: &Expr| matches!(expr, Expr::Lit(_));
        let changes = |one: &Expr, other: &Expr| {
            let Expr::Binary { left, right, .. } = one else { return false };
            !literal(other) && (**left == *other && literal(right) || **right == *other && literal(left))
        };
        let compares = [BinaryOp::Lt, BinaryOp::Le, BinaryOp::Gt, BinaryOp::Ge].contains(&op);
        self.see(Pattern::ChangedCompared, compares && (changes(left, right) || changes(right, left)));
        let bound = |expr: &Expr| {
            let Expr::Binary { op: inner, left, right } = expr else { return false };
            *inner != op && [BinaryOp::Min, BinaryOp::Max].contains(inner) && literal(left) != literal(right)
        };
        let bounds = [BinaryOp::Min, BinaryOp::Max].contains(&op);
        self.see(Pattern::NestedBounds, bounds && (bound(left) && literal(right) || bound(right) && literal(left)));
        let divides = [BinaryOp::Div, BinaryOp::Rem].contains(&op);
        self.see(Pattern::AbsoluteDivided, divides && literal(right) && matches!(left, Expr::Unary { op: UnaryOp::Abs, .. }));
        let Expr::Binary { op: inner, left: _, right: before } = left else { return };
        let shifts = [BinaryOp::Shl, BinaryOp::Shr].contains(&op);
        self.see(Pattern::ShiftedTwice, shifts && *inner == op && literal(right) && literal(before));
        let opposite = [
            (BinaryOp::Add, BinaryOp::Sub),
            (BinaryOp::Sub, BinaryOp::Add),
            (BinaryOp::Mul, BinaryOp::Div),
            (BinaryOp::Div, BinaryOp::Mul),
        ];
        self.see(Pattern::Undone, opposite.contains(&(*inner, op)) && **before == *right);
        let upper = |expr: &Expr| {
            let Expr::Lit(literal) = expr else { return false };
            let (scalar, bits) = (literal.scalar(), literal.bits());
            scalar != Scalar::Bool && !scalar.is_float() && bits >> (scalar.bits() - 2) != 0
        };
        self.see(Pattern::DividedAtTop, divides && literal(right) && *inner == BinaryOp::Add && upper(before));
    }

    /// What follows from where variables begin and end.
    fn lifetimes(&mut self) {
        let mut changes: Vec<(u32, i32)> = Vec::new();
        let mut across = 0;
        for life in self.lives.iter().filter(|life| life.to > life.from) {
            changes.extend([(life.from, 1), (life.to, -1)]);
            let before = |end: u32| self.barriers.partition_point(|at| *at < end);
            across += u32::from(before(life.to) - before(life.from) >= 2);
        }
        changes.sort_unstable();
        let most = changes.iter().scan(0, |live, (_, change)| {
            *live += change;
            Some(*live)
        });
        let (most, longest) = (most.max().unwrap_or(0), self.lives.iter().map(|life| life.chain).max().unwrap_or(0));
        self.see(Pattern::ManyLive, most >= 40);
        self.see(Pattern::CarriedAcrossBarriers, across >= 8);
        self.see(Pattern::LongChain, longest >= 30);
    }
}

/// A hash of a few words, which is good enough to know an expression by.
struct Mixer(u64);

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

fn type_bit(scalar: Scalar) -> u8 {
    match scalar {
        Scalar::Bool => 1,
        Scalar::U32 | Scalar::I32 => 2,
        Scalar::U64 | Scalar::I64 => 4,
        Scalar::F32 => 8,
        Scalar::F64 => 16,
    }
}

/// The number that a `u32` literal is.
fn number(expr: &Expr) -> Option<u32> {
    if let Expr::Lit(literal) = expr { (literal.scalar() == Scalar::U32).then(|| literal.bits() as u32) } else { None }
}

/// Whether integers are stored in fewer bits than kernels compute on.
fn is_narrow_integer(element: &Element) -> bool {
    matches!(element, Element::Type(DataType::U8 | DataType::I8 | DataType::U16 | DataType::I16))
}

/// The operands of this op, if the expression is one.
fn operands(expr: &Expr, wanted: BinaryOp) -> Option<(&Expr, &Expr)> {
    if let Expr::Binary { op, left, right } = expr { (*op == wanted).then_some((left, right)) } else { None }
}

/// The buffer whose length this is, or is at most.
fn length(expr: &Expr) -> Option<&Name> {
    if let Expr::Len(buffer) = expr {
        return Some(buffer);
    }
    operands(expr, BinaryOp::Min).and_then(|(left, _)| length(left))
}

/// Whether it can be the invocation's number in its workgroup, or its part of a slice by that.
fn is_own(expr: &Expr) -> bool {
    if let Some((left, _)) = operands(expr, BinaryOp::Add) {
        return is_own(left);
    }
    if let Some((left, right)) = operands(expr, BinaryOp::Mul) {
        return is_own(left) && number(right).is_some();
    }
    matches!(expr, Expr::Var(_) | Expr::Builtin(Builtin::Local(_) | Builtin::Invocation(_)))
}

/// The variables that these statements assign.
fn assigned(nodes: &[Node]) -> HashSet<&Name> {
    fn collect<'a>(nodes: &'a [Node], names: &mut HashSet<&'a Name>) {
        for node in nodes {
            if let Node::Assign { name, .. } = node {
                names.insert(name);
            }
            node.bodies().for_each(|body| collect(body, names));
        }
    }
    let mut names = HashSet::new();
    collect(nodes, &mut names);
    names
}

fn mentions(expr: &Expr, name: &Name) -> bool {
    matches!(expr, Expr::Var(var) if var == name) || expr.children().any(|child| mentions(child, name))
}

/// Whether a variable takes a value behind a barrier that was named before it.
fn makes_ahead(body: &[Node]) -> bool {
    let is_barrier = |node: &Node| matches!(node, Node::Barrier { .. });
    let named = |wanted: &Name, nodes: &[Node]| nodes.iter().any(|node| matches!(node, Node::Let { name, .. } if name == wanted));
    body.iter().enumerate().filter(|(_, node)| is_barrier(node)).any(|(barrier, _)| {
        let (before, behind) = body.split_at(barrier);
        let takes = |node: &Node| matches!(node, Node::Assign { value, .. } if matches!(&**value, Expr::Var(name) if named(name, before)));
        behind.iter().any(takes)
    })
}

/// Whether a body begins by storing a variable and ends by assigning it, barriers aside.
fn carries(body: &[Node]) -> bool {
    let mut inner = body.iter().filter(|node| !matches!(node, Node::Barrier { .. }));
    let (Some(Node::Store(store)), Some(Node::Assign { name, .. })) = (inner.next(), inner.next_back()) else {
        return false;
    };
    mentions(&store.value, name)
}

/// The load that an expression is, or is a part of.
fn loaded(expr: &Expr) -> Option<&Load> {
    match expr {
        Expr::Load(load) => Some(load),
        Expr::Extract { vector, .. } => loaded(vector),
        Expr::Lit(_)
        | Expr::Var(_)
        | Expr::Builtin(_)
        | Expr::Len(_)
        | Expr::Unary { .. }
        | Expr::Binary { .. }
        | Expr::Ternary { .. }
        | Expr::Cast { .. }
        | Expr::Bitcast { .. }
        | Expr::Vector { .. } => None,
    }
}

/// Whether an index is another and 1.
fn is_next(index: &Expr, next: &Expr) -> bool {
    operands(next, BinaryOp::Add).is_some_and(|(left, right)| left == index && number(right) == Some(1))
}

/// Whether a vector is made of the components of this variable, which is a vector.
fn is_exchange(name: &Name, value: &Expr) -> bool {
    let of_name =
        |expr: &Expr| matches!(expr, Expr::Extract { vector, .. } if matches!(&**vector, Expr::Var(var) if var == name));
    matches!(value, Expr::Vector { components } if components.iter().all(|component| of_name(component)))
}

/// The buffers whose length a condition compares an index with, and those indices.
fn checks(cond: &Expr) -> Vec<(&Name, &Expr)> {
    if let Expr::Unary { op: UnaryOp::Not, operand } = cond {
        return checks(operand);
    }
    if let Some((left, right)) = operands(cond, BinaryOp::And) {
        return checks(left).into_iter().chain(checks(right)).collect();
    }
    let compares = [BinaryOp::Lt, BinaryOp::Le, BinaryOp::Gt, BinaryOp::Ge];
    let sides = compares.into_iter().find_map(|op| operands(cond, op)).into_iter();
    sides
        .flat_map(|(left, right)| [(left, right), (right, left)])
        .filter_map(|(limit, index)| Some((length(limit)?, index)))
        .collect()
}

/// Whether these statements, not those below them, access a buffer at this index.
fn accesses(nodes: &[Node], buffer: &Name, index: &Expr) -> bool {
    fn loads(expr: &Expr, buffer: &Name, at: &Expr) -> bool {
        let here = matches!(expr, Expr::Load(load) if load.buffer == *buffer && *load.index == *at);
        here || expr.children().any(|child| loads(child, buffer, at))
    }
    nodes.iter().any(|node| node.access() == Some((buffer, index)) || node.exprs().any(|expr| loads(expr, buffer, index)))
}
