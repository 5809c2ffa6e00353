//! What is the same for all invocations that evaluate it together.
//!
//! Two invocations evaluate X *together* if they are in the same scope (subgroup, workgroup or dispatch) and have equal iteration
//! ordinals for every loop around X. X is *uniform* in that scope if it is equal for all that do. This is about which invocations
//! evaluate it, not about schedules: a value inside `if gid.x < n` is uniform if those that are inside agree on it.
//!
//! What is uniform in a scope is so in every smaller one, so it is enough to know the widest for each value: the *width*. A value's
//! width is the least among the widths of what it depends on, and of what it is by itself:
//!
//! - literals, lengths, counts: the dispatch. Workgroup ids: the workgroup. Other ids: nothing, as far as the shape of the workgroup
//!   does not make them constant. Loads of memory that is written, atomics: nothing. Votes and reductions: the subgroup.
//! - the result of an op, or a load of memory that nobody writes: its operands.
//! - the counter of a loop: its lower bound. What ends the loop does not matter to those who are in the same iteration.
//! - what a loop carries, at the start of an iteration: what it is given first, and at the end of iterations. If `continue` gives it
//!   another value than the end of the body, also the conditions that lead there, since they choose.
//! - the result of an `if`: what the arms yield, and the condition if that chooses between two values.
//! - the result of a loop: what it carries and breaks with, and what decides in which iteration it is left: both bounds, the
//!   conditions around each `break`, and around each `continue` if there is a `break` that it could skip, or if it gives another
//!   value than the end of the body. A variable that the loop never changes is what it was.
//!
//! `return` and `trap` never choose: those that are gone evaluate nothing.
//!
//! The dependencies are a graph, and the least width is spread through it by one walk, so the cost is linear in the form.

use crate::ir::{Access, Axis, Builtin, SubgroupOp};
use crate::kernel::{BufferId, ExprId, Kernel, StmtId, VarId};
use crate::ssa::{Def, Inst, InstKind, Leaf, RegionId, Ssa, Terminator, Value};
use vyre_spec::SubgroupShape;

/// Invocations among which something may be the same.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Scope {
    /// Those of a subgroup.
    Subgroup,
    /// Those of a workgroup.
    Workgroup,
    /// All of them.
    Dispatch,
}

/// The widest scope in which something is uniform; `None` if there is none.
type Width = Option<Scope>;

const DISPATCH: Width = Some(Scope::Dispatch);

/// What is uniform in a kernel.
#[derive(Clone, Debug)]
pub struct Uniformity {
    /// By value.
    values: Vec<Width>,
    /// By region: how far all that are not retired get there together.
    control: Vec<Width>,
    /// By statement: how far invocations stay together at an `if`, a loop, a `break` or a `continue`.
    stmts: Vec<Width>,
    /// By statement: whether it or one below it waits for others.
    synchronises: Vec<bool>,
}

impl Uniformity {
    /// The facts of a form.
    #[must_use]
    pub fn of(ssa: &Ssa) -> Uniformity {
        let mut graph = Graph::new(ssa);
        graph.region(ssa.root);
        graph.spread();
        graph.facts()
    }

    /// The widest scope in which a value is uniform.
    #[must_use]
    pub fn width(&self, value: Value) -> Option<Scope> {
        self.values[value.index()]
    }

    /// Whether a value is uniform.
    #[must_use]
    pub fn is_uniform(&self, value: Value, scope: Scope) -> bool {
        self.width(value) >= Some(scope)
    }

    /// Whether an expression of the kernel is uniform; one that is never reached is.
    #[must_use]
    pub fn is_expr_uniform(&self, ssa: &Ssa, expr: ExprId, scope: Scope) -> bool {
        ssa.expr(expr).is_none_or(|value| self.is_uniform(value, scope))
    }

    /// Whether what a variable holds at a statement of the top level is uniform.
    #[must_use]
    pub fn is_uniform_at(&self, ssa: &Ssa, stmt: StmtId, var: VarId, scope: Scope) -> bool {
        ssa.value_at(stmt, var).is_some_and(|value| self.is_uniform(value, scope))
    }

    /// Whether invocations of the scope may part here: at an `if`, by its condition; at a loop, because some leave it or cut an
    /// iteration short before others; at a `break` or `continue`, because only some of those in the iteration get there.
    #[must_use]
    pub fn diverges(&self, stmt: StmtId, scope: Scope) -> bool {
        self.stmts[stmt.index()] < Some(scope)
    }

    /// Whether all invocations of the scope that are not retired get to a region together.
    #[must_use]
    pub fn is_reached_together(&self, region: RegionId, scope: Scope) -> bool {
        self.control[region.index()] >= Some(scope)
    }

    /// Whether a statement, or one below it, is a barrier or a subgroup operation.
    #[must_use]
    pub fn synchronises(&self, stmt: StmtId) -> bool {
        self.synchronises[stmt.index()]
    }
}

/// Something with a width: a value, or one of the helpers below.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Node(u32);

struct Graph<'a> {
    ssa: &'a Ssa,
    widths: Vec<Width>,
    /// Who depends on whom, as pairs of the one and the other.
    edges: Vec<(Node, Node)>,
    /// By region, once it is met: how far those in one iteration get to it together.
    paths: Vec<Node>,
    /// The same, from the start of the program.
    control: Vec<Node>,
    stmts: Vec<Option<Node>>,
    synchronises: Vec<bool>,
    /// The innermost loop.
    around: Option<Around>,
}

#[derive(Clone, Copy)]
struct Around {
    /// Whatever leads to a `break`, and to a `continue`.
    breaks: Node,
    continues: Node,
    /// Whatever leads to those that were met so far: who takes one of them does not get to the next.
    before: Node,
    any_break: bool,
}

impl<'a> Graph<'a> {
    fn new(ssa: &'a Ssa) -> Graph<'a> {
        let mut graph = Graph {
            ssa,
            widths: vec![DISPATCH; ssa.values.len()],
            edges: Vec::new(),
            paths: vec![Node(0); ssa.regions.len()],
            control: vec![Node(0); ssa.regions.len()],
            stmts: vec![None; ssa.kernel.stmts.len()],
            synchronises: vec![false; ssa.kernel.stmts.len()],
            around: None,
        };
        for (n, info) in ssa.values.iter().enumerate() {
            if let Def::Leaf(Leaf::Builtin { builtin }) = info.def {
                graph.widths[n] = width_of_builtin(&ssa.kernel, builtin);
            }
        }
        let start = graph.helper();
        (graph.paths[ssa.root.index()], graph.control[ssa.root.index()]) = (start, start);
        graph
    }

    /// Something that is as wide as what it will depend on.
    fn helper(&mut self) -> Node {
        self.widths.push(DISPATCH);
        Node(self.widths.len() as u32 - 1)
    }

    fn depends(&mut self, node: Node, on: Node) {
        self.edges.push((on, node));
    }

    fn lower(&mut self, node: Node, width: Width) {
        let old = &mut self.widths[node.0 as usize];
        *old = (*old).min(width);
    }

    fn region(&mut self, id: RegionId) {
        let ssa = self.ssa;
        for inst in &ssa.region(id).insts {
            self.inst(id, ssa.inst(*inst));
        }
        let region = ssa.region(id);
        let path = self.paths[id.index()];
        if let (Terminator::Break(_) | Terminator::Continue(_), Some(mut around)) = (&region.end, self.around) {
            let is_break = matches!(region.end, Terminator::Break(_));
            around.any_break |= is_break;
            let target = if is_break { around.breaks } else { around.continues };
            self.depends(target, path);
            let here = self.helper();
            self.depends(here, path);
            self.depends(here, around.before);
            around.before = here;
            self.stmts[region.stmt.index()] = Some(here);
            self.around = Some(around);
        }
    }

    fn inst(&mut self, region: RegionId, inst: &'a Inst) {
        let kernel = &self.ssa.kernel;
        match &inst.kind {
            InstKind::Op(_) => self.of_operands(inst),
            InstKind::Load { buffer, .. } => match reads_constant_memory(kernel, *buffer) {
                true => self.of_operands(inst),
                false => self.lower(node(inst.results[0]), None),
            },
            InstKind::Atomic { .. } => inst.results.iter().for_each(|result| self.lower(node(*result), None)),
            InstKind::Subgroup { op, operands, .. } => {
                let width = width_of_exchange(self.ssa, *op, operands);
                inst.results.iter().for_each(|result| self.lower(node(*result), width));
                self.rendezvous(inst.stmt);
            }
            InstKind::Barrier | InstKind::GridSync => self.rendezvous(inst.stmt),
            InstKind::Store { .. } => {}
            InstKind::If { cond, then, otherwise } => self.branch(region, inst, *cond, [*then, *otherwise]),
            InstKind::Loop { from, to, inits, body } => self.repeat(region, inst, [*from, *to], inits, *body),
        }
    }

    fn rendezvous(&mut self, stmt: StmtId) {
        self.synchronises[stmt.index()] = true;
    }

    fn of_operands(&mut self, inst: &Inst) {
        let result = node(inst.results[0]);
        inst.kind.for_each_operand(&mut |operand| self.depends(result, node(operand)));
    }

    fn branch(&mut self, region: RegionId, inst: &'a Inst, cond: Value, arms: [RegionId; 2]) {
        let ssa = self.ssa;
        self.stmts[inst.stmt.index()] = Some(node(cond));
        for arm in arms {
            self.paths[arm.index()] = self.below(self.paths[region.index()], cond);
            self.control[arm.index()] = self.below(self.control[region.index()], cond);
            self.region(arm);
        }
        for (n, result) in inst.results.iter().enumerate() {
            let mut yields =
                arms.iter().filter(|arm| ssa.region(**arm).end.is_yield()).map(|arm| ssa.region(*arm).end.values()[n]);
            let first = yields.next();
            let second = yields.next();
            for value in first.iter().chain(&second) {
                self.depends(node(*result), node(*value));
            }
            if second.is_some() && first != second {
                self.depends(node(*result), node(cond));
            }
        }
    }

    /// The way into an arm.
    fn below(&mut self, outer: Node, cond: Value) -> Node {
        let way = self.helper();
        self.depends(way, outer);
        self.depends(way, node(cond));
        way
    }

    fn repeat(&mut self, region: RegionId, inst: &'a Inst, [from, to]: [Value; 2], inits: &[Value], body: RegionId) {
        let ssa = self.ssa;
        let [breaks, continues, before, exits, whole, start, control] = std::array::from_fn(|_| self.helper());
        let outer = self.around.replace(Around { breaks, continues, before, any_break: false });
        self.paths[body.index()] = start;
        self.control[body.index()] = control;
        self.depends(control, self.control[region.index()]);
        self.depends(control, whole);
        self.region(body);
        let any_break = self.around.is_some_and(|around| around.any_break);
        self.around = outer;
        for decides in [node(from), node(to), breaks] {
            self.depends(exits, decides);
        }
        if any_break {
            self.depends(exits, continues);
        }
        self.depends(whole, exits);
        self.depends(whole, continues);
        self.stmts[inst.stmt.index()] = Some(whole);

        let (counter, carried) = ssa.region(body).args.split_first().expect("a loop has a counter");
        self.depends(node(*counter), node(from));
        let ways = Ways::of(ssa, body);
        for (n, (arg, result)) in carried.iter().zip(&inst.results).enumerate() {
            let next = || ways.next.iter().map(|region| ssa.region(*region).end.values()[n]);
            let left = || ways.left.iter().map(|region| ssa.region(*region).end.values()[n]);
            let init = inits[n];
            for value in next().chain([init]).filter(|value| value != arg) {
                self.depends(node(*arg), node(value));
            }
            if next().any(|value| Some(value) != next().next()) {
                self.depends(node(*arg), continues);
                self.depends(node(*result), continues);
            }
            for value in left().chain(next()).chain([init]) {
                self.depends(node(*result), node(value));
            }
            let changes = next().chain(left()).any(|value| value != *arg && value != init);
            if changes {
                self.depends(node(*result), exits);
            }
        }
    }

    /// Lowers everything to the least that it depends on.
    fn spread(&mut self) {
        // The edges in the order of where they start, each node's at one place.
        let mut starts = vec![0u32; self.widths.len() + 1];
        self.edges.iter().for_each(|(from, _)| starts[from.0 as usize + 1] += 1);
        for n in 1..starts.len() {
            starts[n] += starts[n - 1];
        }
        let mut targets = vec![Node(0); self.edges.len()];
        let mut fill = starts.clone();
        for (from, to) in &self.edges {
            let at = &mut fill[from.0 as usize];
            targets[*at as usize] = *to;
            *at += 1;
        }
        let mut pending: Vec<Node> =
            (0..self.widths.len() as u32).map(Node).filter(|n| self.widths[n.0 as usize] < DISPATCH).collect();
        while let Some(from) = pending.pop() {
            let width = self.widths[from.0 as usize];
            for to in &targets[starts[from.0 as usize] as usize..starts[from.0 as usize + 1] as usize] {
                if self.widths[to.0 as usize] > width {
                    self.widths[to.0 as usize] = width;
                    pending.push(*to);
                }
            }
        }
    }

    fn facts(self) -> Uniformity {
        let width = |n: &Node| self.widths[n.0 as usize];
        let mut synchronises = self.synchronises;
        // A statement's range holds all that is below it.
        let mut waiting = 0;
        let counts: Vec<u32> = std::iter::once(0)
            .chain(synchronises.iter().map(|waits| {
                waiting += u32::from(*waits);
                waiting
            }))
            .collect();
        for (n, stmt) in self.ssa.kernel.stmts.iter().enumerate() {
            synchronises[n] = counts[stmt.end.index()] > counts[n];
        }
        Uniformity {
            control: self.control.iter().map(width).collect(),
            stmts: self.stmts.iter().map(|n| n.as_ref().map_or(DISPATCH, width)).collect(),
            synchronises,
            values: self.widths[..self.ssa.values.len()].to_vec(),
        }
    }
}

fn node(value: Value) -> Node {
    Node(value.0)
}

/// The regions that end an iteration of a loop: those that lead to the next one, and those that leave it.
struct Ways {
    next: Vec<RegionId>,
    left: Vec<RegionId>,
}

impl Ways {
    fn of(ssa: &Ssa, body: RegionId) -> Ways {
        let mut ways = Ways { next: Vec::new(), left: Vec::new() };
        if ssa.region(body).end.is_yield() {
            ways.next.push(body);
        }
        ways.region(ssa, body);
        ways
    }

    fn region(&mut self, ssa: &Ssa, id: RegionId) {
        match ssa.region(id).end {
            Terminator::Break(_) => self.left.push(id),
            Terminator::Continue(_) => self.next.push(id),
            Terminator::Yield(_) | Terminator::Return | Terminator::Trap(_) | Terminator::Unreachable => {}
        }
        for inst in &ssa.region(id).insts {
            // Those of a loop inside end iterations of that loop.
            if let InstKind::If { then, otherwise, .. } = ssa.inst(*inst).kind {
                self.region(ssa, then);
                self.region(ssa, otherwise);
            }
        }
    }
}

fn reads_constant_memory(kernel: &Kernel, buffer: BufferId) -> bool {
    match kernel.buffer(buffer).access {
        Access::Read | Access::Uniform => true,
        Access::ReadWrite | Access::Output | Access::Workgroup => false,
    }
}

fn width_of_builtin(kernel: &Kernel, builtin: Builtin) -> Width {
    let size = kernel.workgroup_size;
    let fixed = kernel.size_matters().is_some();
    // Lanes of a subgroup follow each other along x, then y.
    let run = |axis: Axis| match axis {
        Axis::X => 1,
        Axis::Y => size[0],
        Axis::Z => size[0] * size[1],
    };
    let same_in_subgroup =
        |axis: Axis| kernel.subgroup.filter(|lanes| fixed && run(axis).is_multiple_of(*lanes)).map(|_| Scope::Subgroup);
    match builtin {
        Builtin::InvocationCount(_) | Builtin::WorkgroupCount(_) | Builtin::LocalCount(_) | Builtin::SubgroupSize => DISPATCH,
        Builtin::Workgroup(_) => Some(Scope::Workgroup),
        Builtin::Local(axis) if size[axis as usize] == 1 => DISPATCH,
        Builtin::Invocation(axis) if fixed && size[axis as usize] == 1 => Some(Scope::Workgroup),
        Builtin::Local(axis) | Builtin::Invocation(axis) => same_in_subgroup(axis),
        Builtin::SubgroupLane => None,
    }
}

/// Votes and reductions give all lanes one result. So does a broadcast from a lane that exists; from another, each lane has its own.
fn width_of_exchange(ssa: &Ssa, op: SubgroupOp, operands: &[Value]) -> Width {
    let size = ssa.kernel.subgroup?;
    let one = match op.shape() {
        SubgroupShape::Vote(_) | SubgroupShape::Reduce(_) => true,
        SubgroupShape::Shuffle(_) => {
            op == SubgroupOp::Broadcast
                && operands.get(1).and_then(|lane| ssa.literal(*lane)).is_some_and(|lane| lane < u64::from(size))
        }
        SubgroupShape::Inclusive(_) | SubgroupShape::Exclusive(_) => false,
    };
    let whole_workgroup = size == ssa.kernel.workgroup_invocations();
    one.then_some(if whole_workgroup { Scope::Workgroup } else { Scope::Subgroup })
}
