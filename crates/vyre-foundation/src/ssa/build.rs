//! A kernel as SSA: one walk over its statements, with the current value of every variable at hand.
//!
//! Control is structured, so where values of a variable meet is known beforehand: behind every `if` and loop that assigns it and in
//! whose scope it was not declared. `analysis/variables.rs` says which those are. The work is linear in the kernel and in the
//! number of places where values meet.

use super::{Def, Inst, InstId, InstKind, Leaf, Op, Region, RegionId, Ssa, Terminator, Value};
use crate::analysis::variables::assigned;
use crate::hash::Table;
use crate::kernel::{Body, ExprId, ExprKind, Kernel, Stmt, StmtId, StmtKind, VarId};
use smallvec::SmallVec;
use std::sync::Arc;
use vyre_spec::{Scalar, ValueType};

impl Ssa {
    /// The SSA form of a kernel.
    #[must_use]
    pub fn of(kernel: &Arc<Kernel>) -> Ssa {
        let root = RegionId(0);
        let ssa = Ssa {
            kernel: Arc::clone(kernel),
            values: Vec::with_capacity(kernel.exprs.len()),
            insts: Vec::with_capacity(kernel.exprs.len() + kernel.stmts.len()),
            regions: Vec::new(),
            root,
            exprs: vec![None; kernel.exprs.len()],
            leaves: Table::default(),
            top_level: vec![Vec::new(); if kernel.uses.grid_sync { kernel.vars.len() } else { 0 }],
        };
        let mut builder = Builder {
            kernel,
            ssa,
            assigned: assigned(kernel),
            // Every variable is declared before it is read.
            vars: vec![Value(0); kernel.vars.len()],
            region: root,
            loops: Vec::new(),
            control: 0,
        };
        builder.new_region();
        if !builder.body(kernel.body()) {
            builder.end(Terminator::Yield(Vec::new()), StmtId(0));
        }
        builder.ssa
    }
}

struct Builder<'k> {
    kernel: &'k Kernel,
    ssa: Ssa,
    assigned: Vec<Vec<VarId>>,
    /// By variable: its current value.
    vars: Vec<Value>,
    /// What instructions are added to.
    region: RegionId,
    /// The loops around the current statement.
    loops: Vec<StmtId>,
    /// How many `if`s and loops are around the current statement.
    control: u32,
}

impl<'k> Builder<'k> {
    fn new_region(&mut self) -> RegionId {
        let region = Region { args: Vec::new(), insts: Vec::new(), end: Terminator::Unreachable, stmt: StmtId(0) };
        self.ssa.regions.push(region);
        RegionId(self.ssa.regions.len() as u32 - 1)
    }

    /// Ends the current region.
    fn end(&mut self, end: Terminator, stmt: StmtId) {
        let region = &mut self.ssa.regions[self.region.index()];
        (region.end, region.stmt) = (end, stmt);
    }

    fn push(&mut self, kind: InstKind, stmt: StmtId) -> InstId {
        let id = InstId(self.ssa.insts.len() as u32);
        self.ssa.insts.push(Inst { kind, results: SmallVec::new(), stmt });
        self.ssa.regions[self.region.index()].insts.push(id);
        id
    }

    fn result(&mut self, inst: InstId, ty: ValueType, var: Option<VarId>) -> Value {
        let n = self.ssa.inst(inst).results.len() as u32;
        let value = self.ssa.new_value(ty, Def::Result(inst, n), var);
        self.ssa.insts[inst.index()].results.push(value);
        value
    }

    fn argument(&mut self, region: RegionId, ty: ValueType, var: VarId) -> Value {
        let n = self.ssa.region(region).args.len() as u32;
        let value = self.ssa.new_value(ty, Def::Argument(region, n), Some(var));
        self.ssa.regions[region.index()].args.push(value);
        value
    }

    fn set(&mut self, var: VarId, value: Value, stmt: StmtId) {
        self.vars[var.index()] = value;
        if self.control == 0 && self.kernel.uses.grid_sync {
            self.ssa.top_level[var.index()].push((stmt, value));
        }
    }

    /// The current values of variables.
    fn current(&self, vars: &[VarId]) -> Vec<Value> {
        vars.iter().map(|var| self.vars[var.index()]).collect()
    }

    fn assigned(&self, stmt: StmtId) -> Vec<VarId> {
        self.assigned[stmt.index()].clone()
    }

    /// What the innermost loop carries, now.
    fn carried(&self) -> Vec<Value> {
        let innermost = self.loops.last().expect("validated: `break` and `continue` stand in a loop");
        self.current(&self.assigned[innermost.index()])
    }

    /// The statements of a body, into the current region; gives whether they end it.
    fn body(&mut self, body: Body) -> bool {
        self.kernel.stmts_of(body).any(|(id, stmt)| self.stmt(id, stmt))
    }

    fn stmt(&mut self, id: StmtId, stmt: &'k Stmt) -> bool {
        match stmt.kind {
            StmtKind::Let { var, value } | StmtKind::Assign { var, value } => {
                let value = self.expr(value, id);
                // The first name that a computed value is given is the one that people know it by.
                if !matches!(self.ssa.value(value).def, Def::Leaf(_)) {
                    self.ssa.values[value.index()].var.get_or_insert(var);
                }
                self.set(var, value, id);
                false
            }
            StmtKind::Store { access, buffer, index, value } => {
                let (index, value) = (self.expr(index, id), self.expr(value, id));
                self.push(InstKind::Store { access, buffer, index, value }, id);
                false
            }
            StmtKind::Atomic { access, result, op, buffer, index, operands } => {
                let index = self.expr(index, id);
                let operands = operands.map(|operand| self.expr(operand, id));
                let inst = self.push(InstKind::Atomic { access, op, buffer, index, operands }, id);
                let ty = self.kernel.buffer(buffer).value.scalar().and_then(|ty| op.info().result_type(ty));
                self.operation(inst, ty, result, id);
                false
            }
            StmtKind::Subgroup { result, op, ty, operands } => {
                let operands = operands.map(|operand| self.expr(operand, id));
                let inst = self.push(InstKind::Subgroup { op, ty, operands }, id);
                self.operation(inst, op.info().result_type(ty), result, id);
                false
            }
            StmtKind::If { cond, then, otherwise } => {
                let cond = self.expr(cond, id);
                self.branch(id, cond, [then, otherwise])
            }
            StmtKind::Loop { counter, from, to, body } => {
                let bounds = [self.expr(from, id), self.expr(to, id)];
                self.repeat(id, counter, bounds, body);
                false
            }
            StmtKind::Break => {
                let values = self.carried();
                self.end(Terminator::Break(values), id);
                true
            }
            StmtKind::Continue => {
                let values = self.carried();
                self.end(Terminator::Continue(values), id);
                true
            }
            StmtKind::Return => {
                self.end(Terminator::Return, id);
                true
            }
            StmtKind::Trap { tag } => {
                self.end(Terminator::Trap(tag), id);
                true
            }
            StmtKind::Barrier => {
                self.push(InstKind::Barrier, id);
                false
            }
            StmtKind::GridSync => {
                self.push(InstKind::GridSync, id);
                false
            }
            StmtKind::Scope { body } => self.body(body),
        }
    }

    /// The result of an atomic or subgroup operation, if its row says that it has one.
    fn operation(&mut self, inst: InstId, ty: Option<Scalar>, var: Option<VarId>, stmt: StmtId) {
        if let Some(ty) = ty {
            let value = self.result(inst, ty.into(), var);
            if let Some(var) = var {
                self.set(var, value, stmt);
            }
        }
    }

    fn branch(&mut self, id: StmtId, cond: Value, bodies: [Body; 2]) -> bool {
        let vars = self.assigned(id);
        let before = self.current(&vars);
        let outer = self.region;
        let regions = bodies.map(|_| self.new_region());
        let inst = self.push(InstKind::If { cond, then: regions[0], otherwise: regions[1] }, id);
        self.control += 1;
        let mut goes_on = false;
        // A variable that no arm changes which gets to its end keeps its value.
        let mut changes = vec![false; vars.len()];
        for (region, body) in regions.into_iter().zip(bodies) {
            self.region = region;
            if !self.body(body) {
                let values = self.current(&vars);
                for ((changes, value), before) in changes.iter_mut().zip(&values).zip(&before) {
                    *changes |= value != before;
                }
                self.end(Terminator::Yield(values), id);
                goes_on = true;
            }
            for (var, value) in vars.iter().zip(&before) {
                self.vars[var.index()] = *value;
            }
        }
        self.control -= 1;
        self.region = outer;
        if !goes_on {
            self.end(Terminator::Unreachable, id);
            return true;
        }
        for region in regions {
            if let Terminator::Yield(values) = &mut self.ssa.regions[region.index()].end {
                let mut changes = changes.iter();
                values.retain(|_| changes.next() == Some(&true));
            }
        }
        for (var, _) in vars.into_iter().zip(changes).filter(|(_, changes)| *changes) {
            let value = self.result(inst, self.kernel.var(var).ty, Some(var));
            self.set(var, value, id);
        }
        false
    }

    fn repeat(&mut self, id: StmtId, counter: VarId, [from, to]: [Value; 2], body: Body) {
        let vars = self.assigned(id);
        let inits = self.current(&vars);
        let outer = self.region;
        let region = self.new_region();
        let inst = self.push(InstKind::Loop { from, to, inits, body: region }, id);
        self.control += 1;
        self.loops.push(id);
        let argument = self.argument(region, ValueType::Scalar(Scalar::U32), counter);
        self.set(counter, argument, id);
        for var in &vars {
            let argument = self.argument(region, self.kernel.var(*var).ty, *var);
            self.set(*var, argument, id);
        }
        self.region = region;
        if !self.body(body) {
            let values = self.current(&vars);
            self.end(Terminator::Yield(values), id);
        }
        self.loops.pop();
        self.control -= 1;
        self.region = outer;
        for var in vars {
            let value = self.result(inst, self.kernel.var(var).ty, Some(var));
            self.set(var, value, id);
        }
    }

    fn expr(&mut self, id: ExprId, stmt: StmtId) -> Value {
        let typed = *self.kernel.expr(id);
        let value = match typed.kind {
            ExprKind::Lit { bits } => self.ssa.leaf_value(Leaf::Lit { bits }, typed.ty),
            ExprKind::Builtin { builtin } => self.ssa.leaf_value(Leaf::Builtin { builtin }, typed.ty),
            ExprKind::Len { buffer } => self.ssa.leaf_value(Leaf::Len { buffer }, typed.ty),
            ExprKind::Var { var } => self.vars[var.index()],
            ExprKind::Load { access, buffer, index } => {
                let index = self.expr(index, stmt);
                let inst = self.push(InstKind::Load { access, buffer, index }, stmt);
                self.result(inst, typed.ty, None)
            }
            ExprKind::Unary { op, ty, operand } => {
                let operand = self.expr(operand, stmt);
                self.op(Op::Unary { op, ty, operand }, typed.ty, stmt)
            }
            ExprKind::Binary { op, ty, left, right } => {
                let (left, right) = (self.expr(left, stmt), self.expr(right, stmt));
                self.op(Op::Binary { op, ty, left, right }, typed.ty, stmt)
            }
            ExprKind::Ternary { op, ty, operands } => {
                let operands = operands.map(|operand| self.expr(operand, stmt));
                self.op(Op::Ternary { op, ty, operands }, typed.ty, stmt)
            }
            ExprKind::Cast { from, to, value } => {
                let value = self.expr(value, stmt);
                self.op(Op::Cast { from, to, value }, typed.ty, stmt)
            }
            ExprKind::Bitcast { from, to, value } => {
                let value = self.expr(value, stmt);
                self.op(Op::Bitcast { from, to, value }, typed.ty, stmt)
            }
            ExprKind::Vector { components } => {
                let components = components.map(|component| self.expr(component, stmt));
                self.op(Op::Vector { components }, typed.ty, stmt)
            }
            ExprKind::Extract { vector, component } => {
                let vector = self.expr(vector, stmt);
                self.op(Op::Extract { vector, component }, typed.ty, stmt)
            }
        };
        self.ssa.exprs[id.index()] = Some(value);
        value
    }

    fn op(&mut self, op: Op, ty: ValueType, stmt: StmtId) -> Value {
        let inst = self.push(InstKind::Op(op), stmt);
        self.result(inst, ty, None)
    }
}
