//! Which values all invocations of a workgroup share, and whether every barrier is reached by all of them together.
//!
//! Variables and *regions* (the arms of an `if`, the body of a loop) are the nodes of a graph; an edge means "if this one diverges,
//! so does that one". Divergence starts at ids, at loads of memory that invocations write and at results of atomic and subgroup
//! operations, and is spread by one walk over the edges, so the cost is linear in the program.
//!
//! - A variable diverges with every value assigned to it and with every region it is assigned in.
//! - An arm or a loop body diverges with its condition or bounds, and with the region around it.
//! - A loop's counter diverges with the bounds only: inside a divergent loop everything assigned diverges anyway.
//! - A loop body diverges with every region that holds a `break` or `continue` of that loop: after a divergent one, only some
//!   invocations are still in the iteration.
//! - `return` and `trap` change nothing: barriers wait only for invocations that are not retired.
//!
//! Each divergent node remembers what made it so; an error follows these causes back to where divergence starts.

use crate::diagnostic::{Diagnostic, Location, Mistakes};
use crate::ir::{Access, NodeId, SubgroupOp};
use crate::kernel::{Body, ExprId, ExprKind, Kernel, Stmt, StmtKind, VarId};
use vyre_spec::ErrorCode;

#[derive(Clone, Copy, PartialEq, Eq)]
struct Node(u32);

impl Node {
    fn index(self) -> usize {
        self.0 as usize
    }
}

/// What made a node diverge.
#[derive(Clone, Copy)]
enum Cause {
    /// This expression differs between invocations by itself.
    Expr(NodeId),
    /// The result of an atomic or subgroup operation.
    Result(NodeId),
    /// Another node.
    Node(Node),
    /// A `break` or `continue` in another node.
    Leaving(Node),
}

struct Region {
    /// The `if` or loop whose condition or bounds decide who is inside.
    place: NodeId,
}

/// A statement that needs all invocations, and the region it stands in.
struct Rendezvous {
    place: NodeId,
    region: Option<Node>,
    subgroup: bool,
}

struct Leaving {
    place: NodeId,
    region: Option<Node>,
    /// The loop it leaves, as an index into `regions`.
    target: Node,
}

struct Graph<'a> {
    kernel: &'a Kernel,
    regions: Vec<Region>,
    /// By node: the nodes that diverge if it does.
    edges: Vec<Vec<(Node, Cause)>>,
    causes: Vec<Option<Cause>>,
    rendezvous: Vec<Rendezvous>,
    leavings: Vec<Leaving>,
    /// By region: something in it that needs all invocations.
    synchronises: Vec<Option<NodeId>>,
    lanes: Vec<(ExprId, NodeId)>,
    /// The regions around the current statement, outermost first; loops are marked.
    around: Vec<(Node, bool)>,
}

/// Adds the mistakes to `mistakes`.
pub(super) fn check(kernel: &Kernel, mistakes: &mut Mistakes) {
    let count = kernel.vars.len();
    let mut graph = Graph {
        kernel,
        regions: Vec::new(),
        edges: (0..count).map(|_| Vec::new()).collect(),
        causes: vec![None; count],
        rendezvous: Vec::new(),
        leavings: Vec::new(),
        synchronises: Vec::new(),
        lanes: Vec::new(),
        around: Vec::new(),
    };
    graph.body(kernel.body());
    graph.spread();
    graph.report(mistakes);
}

/// Whether an expression differs between invocations whatever its operands are.
pub(super) fn divergence_source(kernel: &Kernel, kind: ExprKind) -> bool {
    match kind {
        ExprKind::Builtin { builtin } => !builtin.is_uniform(),
        ExprKind::Load { buffer, .. } => match kernel.buffer(buffer).access {
            Access::Read | Access::Uniform => false,
            Access::ReadWrite | Access::Output | Access::Workgroup => true,
        },
        ExprKind::Lit { .. }
        | ExprKind::Var { .. }
        | ExprKind::Len { .. }
        | ExprKind::Unary { .. }
        | ExprKind::Binary { .. }
        | ExprKind::Ternary { .. }
        | ExprKind::Cast { .. }
        | ExprKind::Bitcast { .. }
        | ExprKind::Vector { .. }
        | ExprKind::Extract { .. } => false,
    }
}

impl<'a> Graph<'a> {
    fn var(var: VarId) -> Node {
        Node(var.0)
    }

    fn region_index(&self, node: Node) -> usize {
        node.index() - self.kernel.vars.len()
    }

    fn new_region(&mut self, place: NodeId) -> Node {
        self.regions.push(Region { place });
        self.edges.push(Vec::new());
        self.causes.push(None);
        self.synchronises.push(None);
        Node(self.edges.len() as u32 - 1)
    }

    fn edge(&mut self, from: Node, to: Node, cause: Cause) {
        self.edges[from.index()].push((to, cause));
    }

    fn mark(&mut self, node: Node, cause: Cause) {
        self.causes[node.index()].get_or_insert(cause);
    }

    /// Makes `node` diverge with the value of `expr`.
    fn depends(&mut self, node: Node, expr: ExprId) {
        let mut pending = vec![expr];
        while let Some(id) = pending.pop() {
            let expr = self.kernel.expr(id);
            if divergence_source(self.kernel, expr.kind) {
                self.mark(node, Cause::Expr(expr.node));
            }
            if let ExprKind::Var { var } = expr.kind {
                self.edge(Graph::var(var), node, Cause::Node(Graph::var(var)));
            }
            pending.extend(expr.kind.operands());
        }
    }

    fn inside_current_region(&mut self, node: Node) {
        if let Some((region, _)) = self.around.last().copied() {
            self.edge(region, node, Cause::Node(region));
        }
    }

    fn rendezvous(&mut self, place: NodeId, subgroup: bool) {
        for (region, _) in &self.around {
            let index = region.index() - self.kernel.vars.len();
            self.synchronises[index].get_or_insert(place);
        }
        let region = self.around.last().map(|(region, _)| *region);
        self.rendezvous.push(Rendezvous { place, region, subgroup });
    }

    fn body(&mut self, body: Body) {
        for (_, stmt) in self.kernel.stmts_of(body) {
            self.stmt(stmt);
        }
    }

    fn stmt(&mut self, stmt: &'a Stmt) {
        match &stmt.kind {
            StmtKind::Let { var, value } | StmtKind::Assign { var, value } => {
                self.depends(Graph::var(*var), *value);
                self.inside_current_region(Graph::var(*var));
            }
            StmtKind::Atomic { result, .. } => {
                if let Some(var) = result {
                    self.mark(Graph::var(*var), Cause::Result(stmt.node));
                }
            }
            StmtKind::Subgroup { result, op, operands, .. } => {
                if let Some(var) = result {
                    self.mark(Graph::var(*var), Cause::Result(stmt.node));
                }
                if let (SubgroupOp::Broadcast, [_, lane]) = (op, &operands[..]) {
                    self.lanes.push((*lane, stmt.node));
                }
                self.rendezvous(stmt.node, true);
            }
            StmtKind::If { cond, then, otherwise } => {
                let region = self.new_region(stmt.node);
                self.depends(region, *cond);
                self.inside_current_region(region);
                self.around.push((region, false));
                self.body(*then);
                self.body(*otherwise);
                self.around.pop();
            }
            StmtKind::Loop { counter: var, from, to, body } => {
                let region = self.new_region(stmt.node);
                for bound in [*from, *to] {
                    self.depends(region, bound);
                    self.depends(Graph::var(*var), bound);
                }
                self.inside_current_region(region);
                self.around.push((region, true));
                self.body(*body);
                self.around.pop();
            }
            StmtKind::Break | StmtKind::Continue => {
                // Outside a loop there is nothing to leave; the structural check has reported it.
                if let Some((target, _)) = self.around.iter().rev().find(|(_, is_loop)| *is_loop).copied() {
                    let region = self.around.last().map(|(region, _)| *region);
                    if let Some(region) = region {
                        self.edge(region, target, Cause::Leaving(region));
                    }
                    self.leavings.push(Leaving { place: stmt.node, region, target });
                }
            }
            StmtKind::Barrier => self.rendezvous(stmt.node, false),
            StmtKind::Scope { body } => self.body(*body),
            // A grid barrier stands at the top level, which the structural check sees to.
            StmtKind::GridSync | StmtKind::Store { .. } | StmtKind::Return | StmtKind::Trap { .. } => {}
        }
    }

    fn spread(&mut self) {
        let mut pending: Vec<Node> =
            (0..self.causes.len() as u32).map(Node).filter(|node| self.causes[node.index()].is_some()).collect();
        while let Some(node) = pending.pop() {
            for (to, cause) in std::mem::take(&mut self.edges[node.index()]) {
                if self.causes[to.index()].is_none() {
                    self.causes[to.index()] = Some(cause);
                    pending.push(to);
                }
            }
        }
    }

    fn diverges(&self, region: Option<Node>) -> bool {
        region.is_some_and(|region| self.causes[region.index()].is_some())
    }

    fn report(&self, mistakes: &mut Mistakes) {
        for leaving in &self.leavings {
            let meeting = self.synchronises[self.region_index(leaving.target)];
            if let Some(meeting) = meeting.filter(|_| self.leaves_divergently(leaving)) {
                let diagnostic = Diagnostic::new(
                    ErrorCode::E0506,
                    "this leaves the iteration for some invocations only, and the loop synchronises all of them",
                )
                .at(Location::Tree(leaving.place))
                .related(Location::Tree(meeting), "all of them must meet here")
                .help("make the condition uniform, or keep the decision in a variable and let every invocation finish the iteration");
                mistakes.push(self.tell(diagnostic, leaving.region));
            }
        }
        for meeting in &self.rendezvous {
            if !self.diverges(meeting.region) || self.explained_by_leaving(meeting.region) {
                continue;
            }
            let (code, what) = match meeting.subgroup {
                true => (ErrorCode::E0502, "a subgroup operation"),
                false => (ErrorCode::E0501, "a barrier"),
            };
            let diagnostic =
                Diagnostic::new(code, format!("{what} must be reached by all invocations of the workgroup together"))
                    .at(Location::Tree(meeting.place))
                    .expected("uniform control flow")
                    .found("control that may differ between invocations")
                    .help("move it out of the divergent `if` or loop; guard the work on each side of it instead");
            mistakes.push(self.tell(diagnostic, meeting.region));
        }
        for (lane, place) in &self.lanes {
            if let Some(cause) = self.expr_cause(*lane) {
                let diagnostic = Diagnostic::new(ErrorCode::E0508, "the lane of a broadcast must be uniform")
                    .at(Location::Tree(self.kernel.expr(*lane).node))
                    .related(Location::Head(*place), "in this broadcast")
                    .help("use `subgroup.shuffle` to read from a lane that each invocation chooses");
                mistakes.push(self.tell_cause(diagnostic, cause));
            }
        }
    }

    /// Whether a condition between the loop and the `break` or `continue` diverges. If the loop itself diverges, or diverges
    /// because of another one, that has an error of its own.
    fn leaves_divergently(&self, leaving: &Leaving) -> bool {
        let mut next = leaving.region;
        while let Some(node) = next.filter(|node| *node != leaving.target) {
            match self.causes[node.index()] {
                Some(Cause::Node(outer)) if outer.index() >= self.kernel.vars.len() => next = Some(outer),
                Some(Cause::Node(_) | Cause::Expr(_) | Cause::Result(_)) => return true,
                Some(Cause::Leaving(_)) | None => return false,
            }
        }
        false
    }

    /// Whether the region diverges because of a `break` or `continue`, which has an error of its own.
    fn explained_by_leaving(&self, region: Option<Node>) -> bool {
        let mut next = region;
        while let Some(node) = next {
            match self.causes[node.index()] {
                Some(Cause::Leaving(_)) => return true,
                Some(Cause::Node(from)) if from.index() >= self.kernel.vars.len() => next = Some(from),
                Some(Cause::Node(_) | Cause::Expr(_) | Cause::Result(_)) | None => return false,
            }
        }
        false
    }

    fn expr_cause(&self, expr: ExprId) -> Option<Cause> {
        let mut pending = vec![expr];
        while let Some(id) = pending.pop() {
            let expr = self.kernel.expr(id);
            if divergence_source(self.kernel, expr.kind) {
                return Some(Cause::Expr(expr.node));
            }
            if let ExprKind::Var { var } = expr.kind
                && let Some(cause) = self.causes[var.index()]
            {
                return Some(cause);
            }
            pending.extend(expr.kind.operands());
        }
        None
    }

    /// Adds where control diverges and what it goes back to.
    fn tell(&self, diagnostic: Diagnostic, region: Option<Node>) -> Diagnostic {
        let Some(region) = region else { return diagnostic };
        // The innermost region whose own condition diverges is the one to look at.
        let mut node = region;
        while let Some(Cause::Node(outer)) = self.causes[node.index()]
            && outer.index() >= self.kernel.vars.len()
        {
            node = outer;
        }
        let place = self.regions[self.region_index(node)].place;
        let diagnostic = diagnostic.related(Location::Head(place), "control diverges here");
        match self.causes[node.index()] {
            Some(cause) => self.tell_cause(diagnostic, cause),
            None => diagnostic,
        }
    }

    fn tell_cause(&self, diagnostic: Diagnostic, mut cause: Cause) -> Diagnostic {
        loop {
            match cause {
                Cause::Expr(place) => {
                    return diagnostic.related(Location::Tree(place), "this differs between invocations");
                }
                Cause::Result(place) => {
                    return diagnostic.related(Location::Tree(place), "the result differs between invocations");
                }
                Cause::Node(node) | Cause::Leaving(node) => match self.causes[node.index()] {
                    Some(next) => cause = next,
                    None => return diagnostic,
                },
            }
        }
    }
}
