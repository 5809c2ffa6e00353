//! Does several rows of a workgroup at once.
//!
//! Lanes lie along x, and what depends on x alone is found again for every row: in a product of matrices each row of a tile loads the same
//! columns. Here one invocation becomes several, of rows that follow each other: what depends on `lid.y` is written once for each of them,
//! what does not is shared, and the workgroup has as many times fewer rows.
//!
//! ```text
//! sum = sum + ta[lid.y * 16 + k] * tb[k * 16 + lid.x]      ⇒      let b = tb[k * 16 + lid.x]
//!                                                                 sum0 = sum0 + ta[lid.y * 32 + k] * b
//!                                                                 sum1 = sum1 + ta[lid.y * 32 + 16 + k] * b
//! ```
//!
//! Between two barriers nobody can tell in which order invocations run, so that rows may go on together from one instruction to the next,
//! and an element that one of them loads is what the others would have found: if it had been written in between, that were a race. What a
//! row does by itself keeps its order.
//!
//! What rows do by themselves one after the other is written for one row and then for the next, so that what they need on the way is held
//! for one at a time.
//!
//! Control that does not depend on the row is shared. An `if` whose condition compares indices with limits is written for rows of which
//! all go the same way, and beside that for each row by itself; any other `if` that depends on the row, and any loop that rows may leave at different times,
//! is written for each row by itself. It is done where it saves a tenth of the work and registers suffice.

use super::duplicate::{Now, at, duplicate, new_value};
use super::geometry::{Geometry, WIDTH};
use super::hoist::hoist;
use super::lower::is_float;
use super::pressure::pressure;
use super::segments::ssa_retires;
use super::shape::{Shape, Shapes};
use super::width::cost;
use crate::faults::Fault;
use smallvec::smallvec;
use std::sync::Arc;
use vyre_foundation::ir::{Axis, BinaryOp, Builtin};
use vyre_foundation::kernel::{Kernel, StmtId};
use vyre_foundation::ssa::{Def, Inst, InstId, InstKind, Leaf, Op, Region, RegionId, Ssa, Terminator, Value};
use vyre_spec::{Scalar, ValueType};

/// How many instructions a form has at the most that is written for several rows.
const MAX_INSTS: usize = 600;

/// Vectors that may be held at once: what is uniform takes the others.
const MAX_HELD: u32 = 14;

/// How often a loop is taken to run.
const ITERATIONS: u64 = 16;

/// The form for as many rows at once as are worth it.
pub(super) fn several(ssa: Ssa, fault: Option<Fault>) -> Ssa {
    let kernel = &ssa.kernel;
    let [nx, ny, _] = kernel.workgroup_size;
    if !nx.is_multiple_of(WIDTH) || ny == 1 || kernel.uses.subgroup || ssa_retires(&ssa) {
        return ssa;
    }
    let geometry = |ssa: &Ssa| Geometry::new(ssa.kernel.workgroup_size, 1, ssa.kernel.size_matters().is_none());
    let shapes = Shapes::of(&ssa, &geometry(&ssa), fault);
    let alone = work(&ssa, &shapes, ssa.root, &[]);
    let differs = differing(&ssa);
    // As measured: more than four vectors of rows gain nothing, and have more to fetch.
    let parts = (nx / WIDTH).min(2);
    for count in [4, 2].into_iter().filter(|count| count * parts <= 4) {
        let mut form = ssa.clone();
        let Some(edges) = Rows::write(&mut form, &shapes, differs.clone(), count, fault) else { continue };
        let together = work(&form, &Shapes::of(&form, &geometry(&form), fault), form.root, &edges);
        if 10 * together > 9 * alone * u64::from(count) {
            continue;
        }
        form.optimize();
        hoist(&mut form, fault);
        debug_assert_eq!(form.verify(), Ok(()));
        if pressure(&form, &Shapes::of(&form, &geometry(&form), fault)) * parts <= MAX_HELD {
            return form;
        }
    }
    ssa
}

/// Instructions for one vector of each row, as far as they are on vectors. `edges` are for rows that some limit lies between.
fn work(ssa: &Ssa, shapes: &Shapes, region: RegionId, edges: &[RegionId]) -> u64 {
    if edges.contains(&region) {
        return 0;
    }
    let insts = ssa.region(region).insts.iter().map(|id| {
        let inst = ssa.inst(*id);
        let access = |index: Value| match shapes.shape(index) {
            Shape::Uniform | Shape::Linear(1) => 1,
            Shape::Linear(_) | Shape::Varying => 12,
        };
        let is_vector = |value: Value| match ssa.value(value).ty {
            ValueType::Scalar(ty) if !is_float(ty) => shapes.shape(value) == Shape::Varying,
            ValueType::Scalar(_) | ValueType::Vector(..) => true,
        };
        let below: u64 = inst.kind.regions().map(|region| work(ssa, shapes, region, edges)).sum();
        match &inst.kind {
            InstKind::Op(op) if shapes.shape(inst.results[0]) == Shape::Varying => u64::from(cost(op).1),
            InstKind::Load { index, .. } if is_vector(inst.results[0]) => access(*index),
            InstKind::Store { index, .. } => access(*index),
            InstKind::Atomic { .. } => 30,
            InstKind::Loop { .. } => ITERATIONS * below,
            InstKind::If { .. } => below,
            InstKind::Op(_) | InstKind::Load { .. } | InstKind::Subgroup { .. } | InstKind::Barrier | InstKind::GridSync => 0,
        }
    });
    insts.sum()
}

/// By value: whether it may differ between rows. What is in code that is written for each row by itself is not looked into.
fn differing(ssa: &Ssa) -> Vec<bool> {
    let of_row = |leaf| match leaf {
        Leaf::Builtin { builtin } => matches!(builtin, Builtin::Local(Axis::Y) | Builtin::Invocation(Axis::Y)),
        Leaf::Lit { .. } | Leaf::Len { .. } => false,
    };
    let mut differs: Vec<bool> = ssa.values.iter().map(|info| matches!(info.def, Def::Leaf(leaf) if of_row(leaf))).collect();
    let count = |differs: &[bool]| differs.iter().filter(|differs| **differs).count();
    loop {
        let before = count(&differs);
        find_differing(ssa, ssa.root, &mut differs);
        if count(&differs) == before {
            return differs;
        }
    }
}

fn find_differing(ssa: &Ssa, region: RegionId, differs: &mut [bool]) {
    for id in &ssa.region(region).insts {
        let inst = ssa.inst(*id);
        let apart = is_apart(ssa, inst, differs);
        match &inst.kind {
            InstKind::Op(_)
            | InstKind::Load { .. }
            | InstKind::Store { .. }
            | InstKind::Atomic { .. }
            | InstKind::Subgroup { .. } => {}
            InstKind::If { then, otherwise, .. } => {
                for arm in [*then, *otherwise] {
                    find_differing(ssa, arm, differs);
                    for (result, value) in inst.results.iter().zip(ssa.region(arm).end.values()) {
                        differs[result.index()] |= differs[value.index()];
                    }
                }
            }
            InstKind::Loop { inits, body, .. } if !apart => {
                let body = ssa.region(*body);
                for (((arg, init), next), result) in body.args[1..].iter().zip(inits).zip(body.end.values()).zip(&inst.results) {
                    differs[arg.index()] |= differs[init.index()] || differs[next.index()];
                    differs[result.index()] = differs[arg.index()];
                }
                if let InstKind::Loop { body, .. } = inst.kind {
                    find_differing(ssa, body, differs);
                }
            }
            InstKind::Loop { .. } | InstKind::Barrier | InstKind::GridSync => {}
        }
        if apart {
            inst.results.iter().for_each(|result| differs[result.index()] = true);
        }
    }
}

/// Whether rows have to do an instruction each by itself.
fn is_apart(ssa: &Ssa, inst: &Inst, differs: &[bool]) -> bool {
    let mut apart = false;
    inst.kind.for_each_operand(&mut |operand| apart |= differs[operand.index()]);
    match &inst.kind {
        InstKind::Op(_) | InstKind::Load { .. } | InstKind::Store { .. } | InstKind::If { .. } => apart,
        InstKind::Atomic { .. } | InstKind::Subgroup { .. } => true,
        // What it begins with may differ, but not how often it runs.
        InstKind::Loop { from, to, body, .. } => {
            differs[from.index()] || differs[to.index()] || !ssa.region(*body).end.is_yield() || has_exits(ssa, *body)
        }
        InstKind::Barrier | InstKind::GridSync => false,
    }
}

/// Whether an iteration may end before its end.
fn has_exits(ssa: &Ssa, body: RegionId) -> bool {
    ssa.region(body).insts.iter().any(|id| match ssa.inst(*id).kind {
        InstKind::If { then, otherwise, .. } => {
            [then, otherwise].iter().any(|arm| !ssa.region(*arm).end.is_yield() || has_exits(ssa, *arm))
        }
        InstKind::Op(_)
        | InstKind::Load { .. }
        | InstKind::Store { .. }
        | InstKind::Atomic { .. }
        | InstKind::Subgroup { .. }
        | InstKind::Loop { .. }
        | InstKind::Barrier
        | InstKind::GridSync => false,
    })
}

/// A form that is being written for several rows.
struct Rows<'a> {
    ssa: &'a mut Ssa,
    /// Of the form that it is made from.
    shapes: &'a Shapes,
    differs: Vec<bool>,
    /// By row: what values stand for there.
    now: Vec<Now>,
    edges: Vec<RegionId>,
    /// What is to be written for one row after the other.
    pending: Vec<InstId>,
    /// How many instructions there may be.
    most: usize,
    refused: bool,
}

impl Rows<'_> {
    /// Writes a form for so many rows; the regions that are only for rows that a limit lies between. Nothing if that is not possible.
    fn write(ssa: &mut Ssa, shapes: &Shapes, differs: Vec<bool>, count: u32, fault: Option<Fault>) -> Option<Vec<RegionId>> {
        let [nx, ny, nz] = ssa.kernel.workgroup_size;
        if !ny.is_multiple_of(count) {
            return None;
        }
        let mut first = Vec::new();
        let now = row_ids(ssa, ny, count, fault, &mut first);
        let (root, most) = (ssa.root, ssa.insts.len() + MAX_INSTS);
        let mut rows = Rows { ssa, shapes, differs, now, edges: Vec::new(), pending: Vec::new(), most, refused: false };
        rows.region(root);
        let Rows { edges, refused, .. } = rows;
        if refused {
            return None;
        }
        ssa.regions[root.index()].insts.splice(0..0, first);
        keep_count(ssa, ny);
        ssa.kernel = Arc::new(Kernel { workgroup_size: [nx, ny / count, nz], ..Kernel::clone(&ssa.kernel) });
        Some(edges)
    }

    fn region(&mut self, region: RegionId) {
        let insts = std::mem::take(&mut self.ssa.regions[region.index()].insts);
        let mut written = Vec::with_capacity(insts.len());
        for id in insts {
            self.refused |= self.ssa.insts.len() > self.most;
            if self.refused {
                return;
            }
            self.inst(id, &mut written);
        }
        self.write_pending(&mut written);
        self.ssa.regions[region.index()].insts = written;
    }

    fn inst(&mut self, id: InstId, written: &mut Vec<InstId>) {
        let apart = is_apart(self.ssa, self.ssa.inst(id), &self.differs);
        let kind = self.ssa.inst(id).kind.clone();
        // Loads do not wait for each other: one that rows share may come before those of each, and anything else ends what comes together.
        let is_load = |id: &InstId| matches!(self.ssa.inst(*id).kind, InstKind::Load { .. });
        match kind {
            InstKind::Op(_) | InstKind::Store { .. } if apart => {
                self.pending.push(id);
                return;
            }
            InstKind::Load { .. } | InstKind::Op(_) => {
                if !self.pending.iter().all(is_load) {
                    self.write_pending(written);
                }
                if apart {
                    self.pending.push(id)
                } else {
                    written.push(id)
                }
                return;
            }
            InstKind::Store { .. }
            | InstKind::Atomic { .. }
            | InstKind::Subgroup { .. }
            | InstKind::If { .. }
            | InstKind::Loop { .. }
            | InstKind::Barrier
            | InstKind::GridSync => self.write_pending(written),
        }
        match kind {
            InstKind::If { cond, then, otherwise } if apart => {
                let yields = [then, otherwise].iter().all(|arm| self.ssa.region(*arm).end.is_yield());
                if yields && self.is_guard(cond) && !self.waits(id) {
                    self.guarded(id, cond, [then, otherwise], written);
                } else {
                    self.each(id, written);
                }
            }
            InstKind::If { then, otherwise, .. } => {
                let results = self.ssa.inst(id).results.to_vec();
                for arm in [then, otherwise] {
                    self.region(arm);
                    self.hand_on(arm, &results);
                }
                self.set_results(id);
                written.push(id);
            }
            InstKind::Loop { body, .. } if !apart => {
                self.shared_loop(id, body);
                written.push(id);
            }
            InstKind::GridSync => self.refused = true,
            InstKind::Op(_)
            | InstKind::Load { .. }
            | InstKind::Store { .. }
            | InstKind::Atomic { .. }
            | InstKind::Subgroup { .. }
            | InstKind::Loop { .. }
            | InstKind::Barrier
                if apart =>
            {
                self.each(id, written);
            }
            InstKind::Op(_)
            | InstKind::Load { .. }
            | InstKind::Store { .. }
            | InstKind::Atomic { .. }
            | InstKind::Subgroup { .. }
            | InstKind::Loop { .. }
            | InstKind::Barrier => written.push(id),
        }
    }

    /// An instruction for each row by itself.
    fn each(&mut self, id: InstId, written: &mut Vec<InstId>) {
        self.refused |= self.waits(id);
        for now in &mut self.now {
            written.extend(duplicate(self.ssa, &[id], now));
        }
    }

    /// Writes what is pending, row by row.
    fn write_pending(&mut self, written: &mut Vec<InstId>) {
        let pending = std::mem::take(&mut self.pending);
        for now in &mut self.now {
            written.extend(duplicate(self.ssa, &pending, now));
        }
    }

    /// Whether there is a barrier in an instruction.
    fn waits(&self, id: InstId) -> bool {
        let mut waits = false;
        for region in self.ssa.inst(id).kind.regions() {
            self.ssa.for_each_inst(region, &mut |_, inst| {
                waits |= matches!(inst.kind, InstKind::Barrier | InstKind::GridSync);
            });
        }
        waits
    }

    /// Whether a condition compares what a block's lanes count or have in common, so that it mostly holds for all of them or for none.
    fn is_guard(&self, cond: Value) -> bool {
        match self.ssa.op(cond).copied() {
            Some(Op::Binary { op: BinaryOp::And | BinaryOp::Or, left, right, .. }) => self.is_guard(left) && self.is_guard(right),
            Some(op) => op.operands().iter().all(|operand| self.shapes.shape(*operand) != Shape::Varying),
            None => false,
        }
    }

    /// An `if` whose larger arm all rows take together, or else each row by itself.
    fn guarded(&mut self, id: InstId, cond: Value, [then, otherwise]: [RegionId; 2], written: &mut Vec<InstId>) {
        let (stmt, results) = (self.ssa.inst(id).stmt, self.ssa.inst(id).results.to_vec());
        let is_first = self.size(then) >= self.size(otherwise);
        let (op, shared) = if is_first { (BinaryOp::And, then) } else { (BinaryOp::Or, otherwise) };
        let conds: Vec<Value> = self.now.iter().map(|now| at(now, cond)).collect();
        let mut whole = conds[0];
        for cond in &conds[1..] {
            let op = Op::Binary { op, ty: Scalar::Bool, left: whole, right: *cond };
            let (inst, value) = push_op(self.ssa, op, Scalar::Bool, stmt);
            written.push(inst);
            whole = value;
        }
        // Before the arm is changed to that of all rows.
        let mut insts = Vec::new();
        let mut found: Vec<Vec<Value>> = Vec::new();
        for row in 0..self.now.len() {
            let mut now = self.now[row].clone();
            insts.extend(duplicate(self.ssa, &[id], &mut now));
            found.push(results.iter().map(|result| at(&now, *result)).collect());
        }
        let values = (0..results.len()).flat_map(|n| found.iter().map(move |of_row| of_row[n])).collect();
        let edge = RegionId(self.ssa.regions.len() as u32);
        self.ssa.regions.push(Region { args: Vec::new(), insts, end: Terminator::Yield(values), stmt });
        self.edges.push(edge);
        self.region(shared);
        self.hand_on(shared, &results);
        let (then, otherwise) = if is_first { (shared, edge) } else { (edge, shared) };
        self.ssa.insts[id.index()].kind = InstKind::If { cond: whole, then, otherwise };
        self.set_results(id);
        written.push(id);
    }

    fn size(&self, region: RegionId) -> usize {
        let mut size = 0;
        self.ssa.for_each_inst(region, &mut |_, _| size += 1);
        size
    }

    /// A loop that all rows go through together.
    fn shared_loop(&mut self, id: InstId, body: RegionId) {
        let args = self.ssa.region(body).args.clone();
        if let InstKind::Loop { inits, .. } = &self.ssa.inst(id).kind {
            let inits = inits.clone();
            let inits = self.for_rows(&inits, &args[1..]);
            if let InstKind::Loop { inits: old, .. } = &mut self.ssa.insts[id.index()].kind {
                *old = inits;
            }
        }
        let mut places = Vec::with_capacity(args.len());
        for arg in &args {
            self.place(*arg, &mut places, |place| Def::Argument(body, place));
        }
        self.ssa.regions[body.index()].args = places;
        self.region(body);
        self.hand_on(body, &args[1..]);
        self.set_results(id);
    }

    /// Adds a value that is defined here, or one for each row, to those that are.
    fn place(&mut self, value: Value, places: &mut Vec<Value>, def: impl Fn(u32) -> Def) {
        if !self.differs[value.index()] {
            self.ssa.values[value.index()].def = def(places.len() as u32);
            places.push(value);
            return;
        }
        for now in &mut self.now {
            let new = new_value(self.ssa, value, def(places.len() as u32));
            now.insert(value, new);
            places.push(new);
        }
    }

    fn set_results(&mut self, id: InstId) {
        let results = self.ssa.inst(id).results.to_vec();
        let mut places = Vec::with_capacity(results.len());
        for result in results {
            self.place(result, &mut places, |place| Def::Result(id, place));
        }
        self.ssa.insts[id.index()].results = places.into();
    }

    /// Makes the end of a region hand values on for each row, where what they are handed to differs.
    fn hand_on(&mut self, region: RegionId, targets: &[Value]) {
        let values = self.ssa.region(region).end.values().to_vec();
        let values = self.for_rows(&values, targets);
        if let Some(old) = self.ssa.regions[region.index()].end.values_mut() {
            *old = values;
        }
    }

    fn for_rows(&self, values: &[Value], targets: &[Value]) -> Vec<Value> {
        let mut found = Vec::with_capacity(values.len());
        for (value, target) in values.iter().zip(targets) {
            if self.differs[target.index()] {
                found.extend(self.now.iter().map(|now| at(now, *value)));
            } else {
                found.push(*value);
            }
        }
        found
    }
}

/// What ids along y stand for in each row, computed by `first`.
fn row_ids(ssa: &mut Ssa, ny: u32, count: u32, fault: Option<Fault>, first: &mut Vec<InstId>) -> Vec<Now> {
    let id = |ssa: &mut Ssa, builtin| ssa.leaf_value(Leaf::Builtin { builtin }, Scalar::U32.into());
    let [local, global, group] =
        [Builtin::Local(Axis::Y), Builtin::Invocation(Axis::Y), Builtin::Workgroup(Axis::Y)].map(|builtin| id(ssa, builtin));
    let mut compute = |ssa: &mut Ssa, op, left, right| {
        let (inst, value) = push_op(ssa, Op::Binary { op, ty: Scalar::U32, left, right }, Scalar::U32, StmtId(0));
        first.push(inst);
        value
    };
    let (times, rows) = (ssa.lit(Scalar::U32, count.into()), ssa.lit(Scalar::U32, ny.into()));
    let first_local = compute(ssa, BinaryOp::Mul, local, times);
    let before = compute(ssa, BinaryOp::Mul, group, rows);
    let first_global = compute(ssa, BinaryOp::Add, before, first_local);
    (0..count)
        .map(|row| {
            let further = if fault == Some(Fault::RowsAreOne) { 0 } else { row };
            let further = ssa.lit(Scalar::U32, further.into());
            let local_row = compute(ssa, BinaryOp::Add, first_local, further);
            let global_row = compute(ssa, BinaryOp::Add, first_global, further);
            Now::from([(local, local_row), (global, global_row)])
        })
        .collect()
}

/// How many rows there are is no other number for those who ask.
fn keep_count(ssa: &mut Ssa, ny: u32) {
    let count = ssa.leaf_value(Leaf::Builtin { builtin: Builtin::LocalCount(Axis::Y) }, Scalar::U32.into());
    let number = ssa.lit(Scalar::U32, ny.into());
    let now = Now::from([(count, number)]);
    ssa.insts.iter_mut().for_each(|inst| inst.kind.for_each_operand_mut(&mut |operand| *operand = at(&now, *operand)));
    let ends = ssa.regions.iter_mut().filter_map(|region| region.end.values_mut());
    ends.flatten().for_each(|value| *value = at(&now, *value));
}

fn push_op(ssa: &mut Ssa, op: Op, ty: Scalar, stmt: StmtId) -> (InstId, Value) {
    let (inst, value) = (InstId(ssa.insts.len() as u32), Value(ssa.values.len() as u32));
    ssa.values.push(vyre_foundation::ssa::ValueInfo { ty: ty.into(), def: Def::Result(inst, 0), var: None });
    ssa.insts.push(Inst { kind: InstKind::Op(op), results: smallvec![value], stmt });
    (inst, value)
}
