//! Cutting a program at its grid barriers.
//!
//! Scopes around a barrier are dissolved, so that what they declare can be loaded again at the start of a segment and stored at its
//! end; a name that the program declares more than once gets a new one there. Scopes without a barrier stay. Which variables have to
//! be kept at which barrier is asked of [`Liveness`]; one walk over the segments writes the programs down. Nothing here is deeper than
//! the program's own nesting, which validation bounds.

use super::state::{ALIVE, FATE, Ids, State, TAG, TRAPPED, from_words, to_words};
use crate::backend::BackendError;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use vyre_foundation::analysis::{Liveness, Scope};
use vyre_foundation::ir::{
    Access, Body, BufferDecl, DataType, Expr, Item as Stop, Literal, Name, Node, Parts, Program, ValueType, Walk,
};
use vyre_foundation::kernel::{Body as StmtBody, ExprId, ExprKind, Kernel, Stmt, StmtId, StmtKind, VarId};
use vyre_foundation::specialize;
use vyre_foundation::ssa::{InstId, InstKind, Leaf, Ssa};
use vyre_foundation::validate::Validated;
use vyre_spec::ErrorCode;

/// A program as segments.
#[derive(Clone, Debug)]
pub struct Split {
    /// The program, constants replaced by their defaults.
    pub program: Program,
    /// One more than it has grid barriers.
    pub segments: Vec<Segment>,
}

/// What runs between two grid barriers.
#[derive(Clone, Debug)]
pub struct Segment {
    /// A program without grid barriers.
    pub program: Program,
    /// What it takes over from the segment before.
    pub takes: Option<State>,
    /// What it hands on.
    pub gives: Option<State>,
    /// By buffer of the segment's program: what it stands for.
    pub(super) sources: Vec<Source>,
}

/// What a buffer of a segment stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Source {
    /// This buffer of the whole program.
    Buffer(usize),
    /// The state that it takes over.
    Taken,
    /// The state that it hands on.
    Given,
}

/// Cuts a program at its grid barriers. Constants take their defaults: replace them before.
///
/// # Errors
///
/// If the program is not valid, or nested so deep that a segment would be deeper than programs may be.
pub fn split(program: &Program) -> Result<Split, BackendError> {
    let program = specialize(program, [])?;
    let validated = program.validated().map_err(Clone::clone)?;
    let kernel = validated.kernel();
    if !kernel.uses.grid_sync {
        let sources = (0..program.buffers().len()).map(Source::Buffer).collect();
        let whole = Segment { program: program.clone(), takes: None, gives: None, sources };
        return Ok(Split { program, segments: vec![whole] });
    }
    let mut cut = Cut::of(&program, kernel);
    let plan = Plan::of(validated, &cut);
    let hidden = Hidden::of(&program, &mut cut.fresh);
    let segments = (0..cut.segments.len()).map(|n| segment(&program, validated.ssa(), &cut, &plan, &hidden, n));
    Ok(Split { segments: segments.collect::<Result<_, _>>()?, program })
}

/// A statement at the top of a segment, as it is written and as it is resolved.
struct Item {
    node: Node,
    stmt: StmtId,
}

/// A variable that is declared at the top of a segment.
struct Declared {
    segment: usize,
    /// Its name in all segments.
    name: Name,
    /// The `let`, if that is what declares it.
    definition: Option<(Node, ExprId)>,
}

/// The statements of each segment.
struct Cut<'k> {
    kernel: &'k Kernel,
    segments: Vec<Vec<Item>>,
    /// The grid barriers.
    barriers: Vec<StmtId>,
    declared: BTreeMap<VarId, Declared>,
    /// Names that the program declares more than once.
    repeated: HashSet<Name>,
    /// In the scope that is being walked: new names by old ones.
    renamed: HashMap<Name, Name>,
    fresh: Fresh,
}

impl<'k> Cut<'k> {
    fn of(program: &Program, kernel: &'k Kernel) -> Cut<'k> {
        let mut seen = HashSet::new();
        let repeated = kernel.vars.iter().filter(|var| !seen.insert(&var.name)).map(|var| var.name.clone()).collect();
        let mut taken: HashSet<Name> = kernel.vars.iter().map(|var| var.name.clone()).collect();
        taken.extend(kernel.buffers.iter().map(|buffer| buffer.name.clone()));
        let mut cut = Cut {
            kernel,
            segments: vec![Vec::new()],
            barriers: Vec::new(),
            declared: BTreeMap::new(),
            repeated,
            renamed: HashMap::new(),
            fresh: Fresh { taken, next: 1 },
        };
        cut.scope(&program.parts().body, kernel.body());
        cut
    }

    fn scope(&mut self, nodes: &[Node], stmts: StmtBody) {
        let mut ending = Vec::new();
        // A valid program has one resolved statement per statement.
        for (node, (id, stmt)) in nodes.iter().zip(self.kernel.stmts_of(stmts)) {
            if let StmtKind::GridSync = stmt.kind {
                self.segments.push(Vec::new());
                self.barriers.push(id);
            } else if let (StmtKind::Scope { body: inner }, Some(body)) = (stmt.kind, node.bodies().next())
                && waits_for_grid(self.kernel, inner)
            {
                self.scope(body, inner);
            } else {
                ending.extend(self.item(node, id, stmt));
            }
        }
        for name in ending {
            self.renamed.remove(&name);
        }
    }

    /// Adds a statement; gives the old name of a variable that it declares under a new one.
    fn item(&mut self, node: &Node, id: StmtId, stmt: &Stmt) -> Option<Name> {
        let mut node = node.clone();
        rename(&mut node, &self.renamed);
        let mut old = None;
        if let Some((var, value)) = declared_by(stmt) {
            let mut name = self.kernel.vars[var.index()].name.clone();
            if self.repeated.contains(&name) {
                let new = self.fresh.name(&name);
                self.renamed.insert(name.clone(), new.clone());
                old = Some(std::mem::replace(&mut name, new));
            }
            if let Node::Let { name: declared, .. } = &mut node {
                *declared = name.clone();
            } else if let Some(Some(declared)) = node.result_mut() {
                *declared = name.clone();
            }
            let definition = value.map(|value| (node.clone(), value));
            self.declared.insert(var, Declared { segment: self.segments.len() - 1, name, definition });
        }
        if let Some(segment) = self.segments.last_mut() {
            segment.push(Item { node, stmt: id });
        }
        old
    }
}

/// Names that nothing has.
struct Fresh {
    taken: HashSet<Name>,
    /// The number that the next name gets.
    next: u64,
}

impl Fresh {
    /// `stem`, with a number if it is taken.
    fn name(&mut self, stem: &str) -> Name {
        let mut name = Name::from(stem);
        while !self.taken.insert(name.clone()) {
            name = format!("{stem}${}", self.next).into();
            self.next += 1;
        }
        name
    }
}

/// Whether there is a grid barrier among these, which validation allows inside scopes only.
fn waits_for_grid(kernel: &Kernel, body: StmtBody) -> bool {
    kernel.stmts[body.range()].iter().any(|stmt| matches!(stmt.kind, StmtKind::GridSync))
}

/// The variable that a statement declares for those after it, and its value if that is an expression.
fn declared_by(stmt: &Stmt) -> Option<(VarId, Option<ExprId>)> {
    match &stmt.kind {
        StmtKind::Let { var, value } => Some((*var, Some(*value))),
        StmtKind::Atomic { result, .. } | StmtKind::Subgroup { result, .. } => result.map(|var| (var, None)),
        StmtKind::Assign { .. }
        | StmtKind::Store { .. }
        | StmtKind::If { .. }
        | StmtKind::Loop { .. }
        | StmtKind::Break
        | StmtKind::Continue
        | StmtKind::Return
        | StmtKind::Barrier
        | StmtKind::GridSync
        | StmtKind::Trap { .. }
        | StmtKind::Scope { .. } => None,
    }
}

/// Gives variables their new names in a statement and all below it. Nothing there declares an old name: names do not shadow.
fn rename(node: &mut Node, renamed: &HashMap<Name, Name>) {
    if renamed.is_empty() {
        return;
    }
    let change = |name: &mut Name| {
        if let Some(new) = renamed.get(name) {
            *name = new.clone();
        }
    };
    let mut nodes = vec![node];
    while let Some(node) = nodes.pop() {
        if let Node::Assign { name, .. } = node {
            change(name);
        }
        let mut exprs: Vec<&mut Expr> = node.exprs_mut().collect();
        while let Some(expr) = exprs.pop() {
            if let Expr::Var(name) = expr {
                change(name);
            } else {
                exprs.extend(expr.children_mut().map(|child| &mut **child));
            }
        }
        nodes.extend(node.bodies_mut().flat_map(|body| body.iter_mut()));
    }
}

/// What each segment does and what crosses each barrier.
struct Plan {
    /// The first segment that no invocation reaches the end of; after it nothing runs.
    ends: Option<usize>,
    /// By barrier: what crosses it.
    states: Vec<Option<State>>,
    /// By segment: variables of earlier ones that it mentions.
    mentioned: Vec<BTreeSet<VarId>>,
    /// Variables that are computed again where they are needed.
    again: BTreeSet<VarId>,
}

impl Plan {
    fn of(validated: &Validated, cut: &Cut<'_>) -> Plan {
        let kernel = validated.kernel();
        let again = computable_again(kernel, cut);
        let ends = cut.segments.iter().position(|items| items.iter().any(|item| retires(kernel, item.stmt)));
        let reached = &cut.segments[..ends.map_or(cut.segments.len(), |end| end + 1)];
        // What comes after the last segment that does something needs no state, and what traps there may do so by itself.
        let last = reached.iter().rposition(|items| !items.is_empty()).unwrap_or(0);
        let mut mentioned: Vec<BTreeSet<VarId>> = vec![BTreeSet::new(); cut.segments.len()];
        for (n, items) in cut.segments.iter().enumerate().take(last + 1) {
            for item in items {
                for_each_mention(kernel, item.stmt, &mut |var| {
                    if cut.declared.get(&var).is_some_and(|declared| declared.segment < n) {
                        mentioned[n].insert(var);
                    }
                });
            }
        }
        // By barrier: variables of before it that are mentioned behind it.
        let mut behind: Vec<BTreeSet<VarId>> = mentioned[1..].to_vec();
        for n in (1..behind.len()).rev() {
            let earlier = |var: &&VarId| cut.declared[*var].segment < n;
            let before: Vec<VarId> = behind[n].iter().filter(earlier).copied().collect();
            behind[n - 1].extend(before);
        }
        let holds = |items: &[Item], wanted: fn(&StmtKind) -> bool| {
            items.iter().any(|item| kernel.stmts[whole(kernel, item.stmt).range()].iter().any(|stmt| wanted(&stmt.kind)))
        };
        let ssa = validated.ssa();
        let liveness = Liveness::of(ssa);
        // Those that are reached, in order.
        let is_barrier = |id: &InstId| matches!(ssa.inst(*id).kind, InstKind::GridSync);
        let barriers: Vec<InstId> = ssa.region(ssa.root).insts.iter().copied().filter(is_barrier).collect();
        let mut retired = false;
        let mut states = vec![None; cut.segments.len() - 1];
        for (n, state) in states.iter_mut().enumerate().take(last) {
            let traps = holds(&cut.segments[n], |kind| matches!(kind, StmtKind::Trap { .. }));
            retired |= traps || holds(&cut.segments[n], |kind| matches!(kind, StmtKind::Return));
            let mut crossing = State::new(retired, traps);
            let kept = |var: &&VarId| barriers.get(n).is_some_and(|barrier| liveness.keeps(ssa, *barrier, **var));
            for var in behind[n].difference(&again).filter(kept) {
                let uniform = validated.uniformity().is_uniform_at(ssa, cut.barriers[n], *var, Scope::Workgroup);
                crossing.add(*var, kernel.var(*var).ty, uniform);
            }
            *state = Some(crossing).filter(|state| !state.is_empty());
        }
        Plan { ends, states, mentioned, again }
    }
}

/// Variables whose value is the same wherever it is computed: never assigned, and made of ids, literals, lengths, memory that is
/// never written, and other such variables.
fn computable_again(kernel: &Kernel, cut: &Cut<'_>) -> BTreeSet<VarId> {
    let mut again = BTreeSet::new();
    // In the order of declaration, so that what a value is made of comes before it.
    for (var, declared) in &cut.declared {
        let Some((_, value)) = declared.definition else { continue };
        let mut same = kernel.var(*var).set_once;
        kernel.for_each_part(value, &mut |_, part| {
            same &= match part.kind {
                ExprKind::Var { var } => again.contains(&var),
                ExprKind::Load { buffer, .. } => !kernel.buffer(buffer).access.is_writable(),
                ExprKind::Lit { .. }
                | ExprKind::Builtin { .. }
                | ExprKind::Len { .. }
                | ExprKind::Unary { .. }
                | ExprKind::Binary { .. }
                | ExprKind::Ternary { .. }
                | ExprKind::Cast { .. }
                | ExprKind::Bitcast { .. }
                | ExprKind::Vector { .. }
                | ExprKind::Extract { .. } => true,
            };
        });
        if same {
            again.insert(*var);
        }
    }
    again
}

/// A statement and all below it.
fn whole(kernel: &Kernel, stmt: StmtId) -> StmtBody {
    StmtBody { first: stmt, end: kernel.stmt(stmt).end }
}

/// Calls `each` with every variable that a statement, or one below it, reads or assigns.
fn for_each_mention(kernel: &Kernel, stmt: StmtId, each: &mut impl FnMut(VarId)) {
    for stmt in &kernel.stmts[whole(kernel, stmt).range()] {
        if let StmtKind::Assign { var, .. } = stmt.kind {
            each(var);
        }
        for expr in stmt.kind.operands() {
            kernel.for_each_part(expr, &mut |_, part| {
                if let ExprKind::Var { var } = part.kind {
                    each(var);
                }
            });
        }
    }
}

/// Whether every invocation that comes to this statement is retired by it. Loops may have no iteration.
fn retires(kernel: &Kernel, stmt: StmtId) -> bool {
    let any = |body| kernel.stmts_of(body).any(|(id, _)| retires(kernel, id));
    match kernel.stmt(stmt).kind {
        StmtKind::Return | StmtKind::Trap { .. } => true,
        StmtKind::If { then, otherwise, .. } => any(then) && any(otherwise),
        StmtKind::Scope { body } => any(body),
        StmtKind::Let { .. }
        | StmtKind::Assign { .. }
        | StmtKind::Store { .. }
        | StmtKind::Atomic { .. }
        | StmtKind::Subgroup { .. }
        | StmtKind::Loop { .. }
        | StmtKind::Break
        | StmtKind::Continue
        | StmtKind::Barrier
        | StmtKind::GridSync => false,
    }
}

/// Names and bindings that the segments have beside those of the program.
struct Hidden {
    taken: Name,
    given: Name,
    bindings: [u32; 2],
    ids: Ids,
    /// The element that an invocation's fate is in.
    fate: Name,
    /// The element that its tag is in.
    tag: Name,
}

impl Hidden {
    fn of(program: &Program, fresh: &mut Fresh) -> Hidden {
        let used: BTreeSet<u32> = program.buffers().iter().filter_map(|decl| decl.binding).collect();
        // Above all others; only a program that uses the very last numbers gets others that are free.
        let above = used.last().map_or(0, |last| last.saturating_add(1));
        let mut free = (above..=u32::MAX).chain(0..above).filter(|binding| !used.contains(binding));
        let mut binding = || free.next().expect("a program has fewer buffers than there are numbers");
        Hidden {
            taken: fresh.name("$taken"),
            given: fresh.name("$given"),
            bindings: [binding(), binding()],
            ids: Ids {
                invocation: fresh.name("$invocation"),
                invocations: fresh.name("$invocations"),
                group: fresh.name("$group"),
                groups: fresh.name("$groups"),
            },
            fate: fresh.name("$fate"),
            tag: fresh.name("$tag"),
        }
    }
}

fn segment(program: &Program, ssa: &Ssa, cut: &Cut<'_>, plan: &Plan, hidden: &Hidden, n: usize) -> Result<Segment, BackendError> {
    let takes = n.checked_sub(1).and_then(|barrier| plan.states[barrier].clone());
    let gives = plan.states.get(n).cloned().flatten();
    let nodes = match plan.ends {
        Some(end) if end < n => vec![Node::Return],
        Some(_) | None => statements(ssa, cut, plan, hidden, n, takes.as_ref(), gives.as_ref()),
    };
    let parts = program.parts();
    let body: Body = match program.name() {
        Some(generator) => vec![Node::Region { generator: generator.clone(), body: nodes.into() }],
        None => nodes,
    }
    .into();
    let used = buffers_used(&body);
    let mut buffers = Vec::new();
    let mut sources = Vec::new();
    for (i, decl) in parts.buffers.iter().enumerate() {
        let mut decl = decl.clone();
        match decl.access {
            // The first segment has all buffers, so that a backend that checks bytes checks all of them before anything runs.
            Access::Read | Access::Uniform | Access::Workgroup if n > 0 && !used.contains(&decl.name) => continue,
            Access::Read | Access::Uniform | Access::Workgroup | Access::ReadWrite => {}
            Access::Output if n == 0 => {}
            // It was zero at the start of the first segment.
            Access::Output => decl.access = Access::ReadWrite,
        }
        buffers.push(decl);
        sources.push(Source::Buffer(i));
    }
    if takes.is_some() {
        buffers.push(BufferDecl::read(&hidden.taken, hidden.bindings[0], DataType::U32));
        sources.push(Source::Taken);
    }
    if gives.is_some() {
        buffers.push(BufferDecl::output(&hidden.given, hidden.bindings[1], DataType::U32));
        sources.push(Source::Given);
    }
    let program = Program::from_parts(Parts {
        buffers,
        consts: Vec::new(),
        workgroup: parts.workgroup.clone(),
        floats: parts.floats,
        subgroup: parts.subgroup,
        body,
    });
    if let Err(report) = program.validated() {
        let fix = if report.codes().any(|code| code == ErrorCode::E0507) {
            "this program is nested too deep to be split at its grid barriers: there is no room to record a trap. \
             Fix: remove one level of nesting around the innermost `trap`"
                .to_string()
        } else {
            format!("segment {n} of this program is not valid, which is a bug of the splitter. Fix: report it.\n{report}")
        };
        return Err(BackendError::InvalidProgram { fix });
    }
    Ok(Segment { program, takes, gives, sources })
}

/// The statements of a segment that is reached: what it takes over, what it does, what it hands on.
fn statements(
    ssa: &Ssa,
    cut: &Cut<'_>,
    plan: &Plan,
    hidden: &Hidden,
    n: usize,
    takes: Option<&State>,
    gives: Option<&State>,
) -> Vec<Node> {
    let kernel = &ssa.kernel;
    let mut nodes = Vec::new();
    let states = || takes.into_iter().chain(gives);
    let [invocation, invocations, group, groups] = hidden.ids.values().map(|(name, value)| Node::let_bind(name, value));
    if states().any(|state| state.invocation_words > 0) {
        nodes.extend([invocation, invocations]);
    }
    if states().any(|state| state.group_words > 0) {
        nodes.extend([group, groups]);
    }
    let mut loaded: BTreeSet<VarId> = BTreeSet::new();
    if let Some(state) = takes {
        let load = |word| Expr::load(&hidden.taken, state.element(word, &hidden.ids));
        if state.fates {
            nodes.push(Node::if_then(Expr::ne(load(FATE), Expr::u32(ALIVE)), vec![Node::Return]));
        }
        for slot in &state.slots {
            let words = State::words_of(slot).map(load).collect();
            nodes.push(Node::let_bind(&cut.declared[&slot.var].name, from_words(slot.ty, words)));
            loaded.insert(slot.var);
        }
    }
    for var in needed_again(kernel, cut, plan, n) {
        nodes.extend(cut.declared[&var].definition.iter().map(|(node, _)| node.clone()));
        loaded.insert(var);
    }
    // What they held was a literal, an id or a length, or nobody uses it.
    for var in plan.mentioned[n].difference(&loaded) {
        let barrier = n.checked_sub(1).map(|barrier| cut.barriers[barrier]);
        let held = barrier.and_then(|barrier| leaf_at(ssa, barrier, *var));
        nodes.push(Node::let_bind(&cut.declared[var].name, held.unwrap_or_else(|| zero(kernel.var(*var).ty))));
    }
    let mut body: Vec<Node> = Vec::new();
    for item in &cut.segments[n] {
        body.push(item.node.clone());
        if retires(kernel, item.stmt) {
            break;
        }
    }
    let Some(state) = gives else {
        nodes.append(&mut body);
        return nodes;
    };
    let give = |word, value| Node::store(&hidden.given, state.element(word, &hidden.ids), value);
    if state.tags {
        nodes.push(Node::let_bind(&hidden.fate, state.element(FATE, &hidden.ids)));
        nodes.push(Node::let_bind(&hidden.tag, state.element(TAG, &hidden.ids)));
        body = record_traps(body, hidden);
    }
    nodes.append(&mut body);
    for slot in &state.slots {
        let values = to_words(slot.ty, &cut.declared[&slot.var].name);
        nodes.extend(State::words_of(slot).zip(values).map(|(word, value)| give(word, value)));
    }
    if state.fates {
        nodes.push(give(FATE, Expr::u32(ALIVE)));
    }
    nodes
}

/// Variables of earlier segments that a segment computes again, in the order of declaration.
fn needed_again(kernel: &Kernel, cut: &Cut<'_>, plan: &Plan, n: usize) -> BTreeSet<VarId> {
    let mut needed = BTreeSet::new();
    let mut pending: Vec<VarId> = plan.mentioned[n].intersection(&plan.again).copied().collect();
    while let Some(var) = pending.pop() {
        if needed.insert(var)
            && let Some((_, value)) = cut.declared[&var].definition
        {
            kernel.for_each_part(value, &mut |_, part| {
                if let ExprKind::Var { var } = part.kind {
                    pending.push(var);
                }
            });
        }
    }
    needed
}

/// Traps become words in the state, and returns.
fn record_traps(nodes: Vec<Node>, hidden: &Hidden) -> Vec<Node> {
    let mut recorded = Vec::with_capacity(nodes.len());
    for mut node in nodes {
        if let Node::Trap { tag } = node {
            // Nothing but names and literals: a trap may stand as deep as statements can.
            recorded.push(Node::store(&hidden.given, Expr::var(&hidden.tag), Expr::u32(tag)));
            recorded.push(Node::store(&hidden.given, Expr::var(&hidden.fate), Expr::u32(TRAPPED)));
            recorded.push(Node::Return);
            continue;
        }
        for body in node.bodies_mut() {
            *body = record_traps(std::mem::take(body).into_inner(), hidden).into();
        }
        recorded.push(node);
    }
    recorded
}

/// What a variable holds at a grid barrier, if that is the same everywhere.
fn leaf_at(ssa: &Ssa, barrier: StmtId, var: VarId) -> Option<Expr> {
    let value = ssa.value_at(barrier, var)?;
    Some(match (ssa.leaf(value)?, ssa.value(value).ty) {
        (Leaf::Lit { bits }, ValueType::Scalar(scalar)) => Expr::Lit(Literal::from_bits(scalar, bits)),
        (Leaf::Lit { .. }, ValueType::Vector(..)) => return None,
        (Leaf::Builtin { builtin }, _) => Expr::Builtin(builtin),
        (Leaf::Len { buffer }, _) => Expr::Len(ssa.kernel.buffer(buffer).name.clone()),
    })
}

fn zero(ty: ValueType) -> Expr {
    match ty {
        ValueType::Scalar(scalar) => Expr::Lit(Literal::from_bits(scalar, 0)),
        ValueType::Vector(scalar, count) => Expr::vector((0..count).map(|_| Expr::Lit(Literal::from_bits(scalar, 0)))),
    }
}

fn buffers_used(body: &[Node]) -> HashSet<Name> {
    let mut used = HashSet::new();
    for (stop, _) in Walk::body(body) {
        match stop {
            Stop::Node(node) => used.extend(node.access().map(|(buffer, _)| buffer.clone())),
            Stop::Expr(Expr::Len(buffer)) => drop(used.insert(buffer.clone())),
            Stop::Expr(Expr::Load(load)) => drop(used.insert(load.buffer.clone())),
            Stop::Expr(_) => {}
        }
    }
    used
}
