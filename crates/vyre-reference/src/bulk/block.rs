//! One block: some workgroups side by side, all their invocations in step.
//!
//! Every statement is executed for all lanes before the next, under a mask of the lanes that take part. That is one legal schedule
//! of the invocations, and it makes barriers nothing: when a lane arrives at one, all others have too. What a lane computes while it
//! is masked out is never seen, and no op can fail, so pure ops ignore the mask.
//!
//! - `mask` is always a subset of `live`, the lanes that are not retired. A body returns the lanes that reach its end.
//! - A `let` overwrites its variable in every lane: those masked out cannot see it. An assignment blends, unless all live lanes
//!   take part.
//! - Values that all lanes share stay one scalar as long as they can (see [`Val`]).

use super::column::{Stack, Val, Word, is_wide};
use super::lanes;
use super::memory::{View, is_word, load_any, load_narrow, store_words};
use super::ops;
use super::pack::Packing;
use super::{BLOCK_LANES, Scratch, is_group_memory};
use crate::subgroup;
use pulp::Arch;
use vyre_foundation::ir::{AtomicOp, Axis, Builtin, NodeId};
use vyre_foundation::kernel::{BufferId, ExprId, ExprKind, Kernel, Stmt, StmtKind, VarId};
use vyre_foundation::launch::Launch;
use vyre_scalar::{Value, memory};
use vyre_spec::{BinaryOp, Scalar, SubgroupOp, ValueType};

/// Up to four components; scalars use the first.
type Vals = [Val; 4];

const NOTHING: Vals = [Val::Splat(0); 4];

/// Which lanes take part.
#[derive(Clone, Copy)]
pub(super) struct Mask {
    /// A column of 0 and 1, or every lane.
    column: Option<usize>,
    count: usize,
}

impl Mask {
    const NONE: Mask = Mask { column: None, count: 0 };
}

/// The dispatch took more steps than it was given.
pub(super) struct FuelExhausted;

type Step<T> = Result<T, FuelExhausted>;

/// Where the bytes of a buffer are.
#[derive(Clone, Copy)]
pub(super) enum Home {
    Input(usize),
    Output(usize),
    /// At this byte of every workgroup's memory.
    Workgroup(usize),
}

/// Everything a block reads and writes.
pub(super) struct Block<'a> {
    /// What the processor can do.
    pub arch: Arch,
    pub kernel: &'a Kernel,
    pub launch: &'a Launch,
    pub homes: &'a [Home],
    /// By loop variable: how lanes of its loop are packed.
    pub packings: &'a [Option<Packing>],
    /// Whether they are packed even where it does not pay.
    pub pack_always: bool,
    pub inputs: &'a [&'a [u8]],
    pub outputs: &'a mut [Vec<u8>],
    pub scratch: &'a mut Scratch,
    /// Frames that are not in use.
    pub spare: &'a mut Vec<Scratch>,
    /// Bytes of workgroup memory of one workgroup.
    pub group_bytes: usize,
    /// Lanes in the frame.
    pub lanes: usize,
    /// Whether the block is one workgroup.
    pub one_group: bool,
    /// Lanes of one workgroup.
    pub group: usize,
    /// The number of the block's first workgroup, x fastest.
    pub first_group: u32,
    pub fuel: &'a mut u64,
    /// The smallest trapping invocation so far: its place in the order of invocations, its id, the tag and the statement.
    pub trap: &'a mut Option<(u64, [u32; 3], u32, NodeId)>,
}

impl Block<'_> {
    fn narrow(&mut self) -> &mut Stack<u32> {
        &mut self.scratch.narrow
    }

    /// Runs statements from the start of a phase; `live` is kept in the scratch between phases.
    pub fn run<'s>(&mut self, body: impl Iterator<Item = &'s Stmt>) -> Step<()> {
        let mut mask = self.live();
        for stmt in body {
            if mask.count == 0 {
                break;
            }
            mask = self.stmt(stmt, mask)?;
        }
        Ok(())
    }

    fn live(&self) -> Mask {
        let count = self.scratch.live_count;
        Mask { column: (count < self.lanes).then_some(self.scratch.live), count }
    }

    // Masks.

    /// The lanes of `a` whose bit in column `b` is set, or with `flip` is not.
    fn make_mask(&mut self, a: Option<usize>, b: usize, flip: bool) -> Mask {
        let out = self.narrow().push();
        self.write_mask(out, a, b, flip)
    }

    fn write_mask(&mut self, out: usize, a: Option<usize>, b: usize, flip: bool) -> Mask {
        let stack = &mut self.scratch.narrow;
        let mut column = stack.take(out);
        let (b, flip) = (stack.column(b), u32::from(flip));
        let count = match a {
            // The column is taken out, so it cannot be read as `a` as well.
            Some(a) if a == out => lanes::both_in_place(self.arch, b, flip, &mut column),
            a => lanes::both(self.arch, a.map(|a| stack.column(a)), b, flip, &mut column),
        };
        stack.put(out, column);
        Mask { column: Some(out), count: count as usize }
    }

    fn retire(&mut self, mask: Mask) {
        let live = self.scratch.live;
        match mask.column {
            None => self.scratch.narrow.column_mut(live)[..self.lanes].fill(0),
            // The mask of a phase is the column of live lanes itself.
            Some(column) if column == live => self.scratch.narrow.column_mut(live).fill(0),
            Some(column) => {
                let mut bits = self.scratch.narrow.take(live);
                for (live, gone) in bits.iter_mut().zip(self.scratch.narrow.column(column)) {
                    *live &= !gone;
                }
                self.scratch.narrow.put(live, bits);
            }
        }
        self.scratch.live_count -= mask.count;
    }

    // Statements.

    /// The statements of a body; gives the lanes that reach its end.
    fn body(&mut self, body: &[Stmt], mut mask: Mask) -> Step<Mask> {
        for stmt in body {
            if mask.count == 0 {
                break;
            }
            mask = self.stmt(stmt, mask)?;
        }
        Ok(mask)
    }

    fn stmt(&mut self, stmt: &Stmt, mask: Mask) -> Step<Mask> {
        *self.fuel = self.fuel.checked_sub(mask.count as u64).ok_or(FuelExhausted)?;
        match &stmt.kind {
            // These hand back a mask that may lie on the stack, and clean up by themselves.
            StmtKind::If(cond, then, otherwise) => return self.branch(*cond, then, otherwise, mask),
            StmtKind::Loop(var, from, to, body) => return self.repeat(*var, *from, *to, body, mask),
            StmtKind::Scope(body) => return self.body(body, mask),
            StmtKind::Break => {
                let broken = self.scratch.broken.last_mut().expect("validated: break stands in a loop");
                broken.1 = true;
                let column = broken.0;
                match mask.column {
                    None => self.scratch.narrow.column_mut(column).fill(1),
                    Some(from) => {
                        let mut bits = self.scratch.narrow.take(column);
                        for (broken, gone) in bits.iter_mut().zip(self.scratch.narrow.column(from)) {
                            *broken |= gone;
                        }
                        self.scratch.narrow.put(column, bits);
                    }
                }
                return Ok(Mask::NONE);
            }
            StmtKind::Continue => return Ok(Mask::NONE),
            StmtKind::Return => {
                self.retire(mask);
                return Ok(Mask::NONE);
            }
            StmtKind::Trap(tag) => {
                self.note_trap(*tag, stmt.place, mask);
                self.retire(mask);
                return Ok(Mask::NONE);
            }
            // All lanes are here together, so everything before it has happened.
            StmtKind::Barrier | StmtKind::GridSync => return Ok(mask),
            StmtKind::Let(..)
            | StmtKind::Assign(..)
            | StmtKind::Store(..)
            | StmtKind::Atomic { .. }
            | StmtKind::Subgroup { .. } => {}
        }
        let tops = self.scratch.tops();
        match &stmt.kind {
            StmtKind::Let(var, value) => {
                let value = self.vals(*value);
                self.set(*var, value);
            }
            StmtKind::Assign(var, value) => {
                let value = self.vals(*value);
                if mask.count == self.scratch.live_count {
                    self.set(*var, value);
                } else {
                    self.blend(*var, value, mask);
                }
            }
            StmtKind::Store(buffer, index, value) => {
                let index = self.val(*index);
                let value = self.vals(*value);
                self.store(*buffer, index, value, mask);
            }
            StmtKind::Atomic { result, op, buffer, index, operands } => {
                let index = self.val(*index);
                let mut values = [Val::Splat(0); AtomicOp::MAX_OPERANDS];
                for (value, operand) in values.iter_mut().zip(operands) {
                    *value = self.val(*operand);
                }
                self.atomic(*result, *op, *buffer, index, values, operands.len(), mask);
            }
            StmtKind::Subgroup { result, op, ty, operands } => {
                let mut values = [Val::Splat(0); SubgroupOp::MAX_OPERANDS];
                for (value, operand) in values.iter_mut().zip(operands) {
                    *value = self.val(*operand);
                }
                if let Some(var) = result {
                    self.exchange(*var, *op, *ty, values, mask);
                }
            }
            StmtKind::If(..)
            | StmtKind::Loop(..)
            | StmtKind::Scope(_)
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return
            | StmtKind::Trap(_)
            | StmtKind::Barrier
            | StmtKind::GridSync => unreachable!("handled above"),
        }
        self.scratch.pop_to(tops);
        Ok(mask)
    }

    fn branch(&mut self, cond: ExprId, then: &[Stmt], otherwise: &[Stmt], mask: Mask) -> Step<Mask> {
        let before = self.scratch.tops();
        // What comes out of the arms is gathered in a column that outlives everything else this statement takes.
        let gathered = self.narrow().push();
        let with_gathered = self.scratch.tops();
        let column = match self.val(cond) {
            Val::Splat(cond) => {
                self.scratch.pop_to(before);
                return self.body(if cond != 0 { then } else { otherwise }, mask);
            }
            Val::Narrow(column) => column,
            Val::Wide(_) => unreachable!("a condition is bool"),
        };
        let yes = self.make_mask(mask.column, column, false);
        let no = self.make_mask(mask.column, column, true);
        let inside = self.scratch.tops();
        let mut kept = mask.count;
        for (arm, entering) in [(then, yes), (otherwise, no)] {
            if arm.is_empty() || entering.count == 0 {
                continue;
            }
            let leaving = self.body(arm, entering)?;
            if leaving.count != entering.count {
                let mut bits = self.scratch.narrow.take(gathered);
                let stack = &self.scratch.narrow;
                if kept == mask.count {
                    match mask.column {
                        None => bits.fill(1),
                        Some(column) => bits.copy_from_slice(stack.column(column)),
                    }
                }
                // Those that entered the arm and did not reach its end are taken out.
                let entered = stack.column(entering.column.expect("an arm has a mask of its own"));
                match leaving.column.filter(|_| leaving.count > 0) {
                    None => bits.iter_mut().zip(entered).for_each(|(bit, entered)| *bit &= !entered),
                    Some(left) => {
                        for ((bit, entered), left) in bits.iter_mut().zip(entered).zip(stack.column(left)) {
                            *bit &= !entered | left;
                        }
                    }
                }
                self.scratch.narrow.put(gathered, bits);
                kept -= entering.count - leaving.count;
            }
            self.scratch.pop_to(inside);
        }
        if kept == mask.count {
            self.scratch.pop_to(before);
            return Ok(mask);
        }
        self.scratch.pop_to(with_gathered);
        Ok(Mask { column: Some(gathered), count: kept })
    }

    fn repeat(&mut self, var: VarId, from: ExprId, to: ExprId, body: &[Stmt], mask: Mask) -> Step<Mask> {
        let live_before = self.scratch.live_count;
        let before = self.scratch.tops();
        let gathered = self.narrow().push();
        let with_gathered = self.scratch.tops();
        let from = self.val(from);
        let to = self.val(to);
        self.rounds(var, [from, to], body, mask, 0)?;
        if self.scratch.live_count == live_before {
            self.scratch.pop_to(before);
            return Ok(mask);
        }
        let live = self.scratch.live;
        let left = self.write_mask(gathered, mask.column, live, false);
        self.scratch.pop_to(with_gathered);
        Ok(left)
    }

    /// The rounds of a loop from this one on, until no lane is left in it.
    fn rounds(&mut self, var: VarId, bounds: [Val; 2], body: &[Stmt], mask: Mask, first: u32) -> Step<()> {
        let (arch, mode) = (self.arch, self.kernel.floats);
        let [from, to] = bounds;
        let broken = self.narrow().push();
        let active = self.narrow().push();
        self.narrow().column_mut(broken).fill(0);
        self.scratch.broken.push((broken, false));
        let tops = self.scratch.tops();
        let mut round = first;
        let mut now = mask;
        let result = loop {
            // All lanes that are still in the loop are in the same round.
            let counter = self.counter(var, from, round);
            now = match (counter, to) {
                (Val::Splat(counter), Val::Splat(to)) => {
                    if counter < to {
                        now
                    } else {
                        Mask::NONE
                    }
                }
                (counter, to) => {
                    let (counter, to) = (self.narrow_column(counter), self.narrow_column(to));
                    let less = self.new_narrow(|narrow, _, out| {
                        ops::binary_narrow(arch, BinaryOp::Lt, Scalar::U32, mode, narrow.column(counter), narrow.column(to), out);
                    });
                    let inside = self.narrow_column(less);
                    self.write_mask(active, now.column, inside, false)
                }
            };
            self.scratch.pop_to(tops);
            if now.count == 0 {
                break Ok(());
            }
            if let (Some(packing), Some(column)) = (&self.packings[var.index()], now.column)
                && now.count < self.lanes
                && (self.pack_always || packing.pays(now.count, self.lanes, round.wrapping_sub(first) as usize))
            {
                break self.packed_rounds(packing, column, now.count, var, bounds, body, round);
            }
            let live = self.scratch.live_count;
            if let Err(exhausted) = self.body(body, now) {
                break Err(exhausted);
            }
            self.scratch.pop_to(tops);
            if self.scratch.live_count != live {
                let live = self.scratch.live;
                now = self.write_mask(active, now.column, live, false);
            }
            if self.scratch.broken.last().is_some_and(|(_, any)| *any) {
                now = self.write_mask(active, now.column, broken, true);
            }
            round = round.wrapping_add(1);
        };
        self.scratch.broken.pop();
        result
    }

    /// The rounds of a loop from this one on for the lanes of the mask, in a frame of their own.
    #[expect(clippy::too_many_arguments, reason = "the parts of a loop, and who is in it")]
    // Loops nest: what only this needs must not be on the stack of those that do without.
    #[inline(never)]
    fn packed_rounds(
        &mut self,
        packing: &Packing,
        mask: usize,
        count: usize,
        var: VarId,
        bounds: [Val; 2],
        body: &[Stmt],
        round: u32,
    ) -> Step<()> {
        let mut frame = self.spare.pop().unwrap_or_else(|| Scratch::of(self.kernel));
        frame.pack(self.scratch, mask, count, BLOCK_LANES.max(self.group), packing);
        let bounds = bounds.map(|bound| frame.pack_value(self.scratch, bound));
        let mut block = Block {
            arch: self.arch,
            kernel: self.kernel,
            launch: self.launch,
            homes: self.homes,
            packings: self.packings,
            pack_always: self.pack_always,
            inputs: self.inputs,
            outputs: &mut *self.outputs,
            scratch: &mut frame,
            spare: &mut *self.spare,
            group_bytes: self.group_bytes,
            lanes: count,
            one_group: self.one_group,
            group: self.group,
            first_group: self.first_group,
            fuel: &mut *self.fuel,
            trap: &mut *self.trap,
        };
        let result = block.rounds(var, bounds, body, Mask { column: None, count }, round);
        frame.unpack(self.scratch, packing);
        self.spare.push(frame);
        result
    }

    /// Sets the loop variable for a round.
    fn counter(&mut self, var: VarId, from: Val, round: u32) -> Val {
        let value = match from {
            Val::Splat(from) => Val::Splat(u64::from((from as u32).wrapping_add(round))),
            Val::Narrow(from) => {
                let out = self.narrow().push();
                let stack = &mut self.scratch.narrow;
                let mut column = stack.take(out);
                for (out, from) in column.iter_mut().zip(stack.column(from)) {
                    // A lane past its end is masked out; it must not come back by wrapping.
                    *out = from.saturating_add(round);
                }
                stack.put(out, column);
                Val::Narrow(out)
            }
            Val::Wide(_) => unreachable!("loop bounds are u32"),
        };
        self.set(var, [value, Val::Splat(0), Val::Splat(0), Val::Splat(0)]);
        self.scratch.vars[var.index()][0]
    }

    fn note_trap(&mut self, tag: u32, place: NodeId, mask: Mask) {
        for lane in 0..self.lanes {
            if self.takes_part(mask, lane) {
                let id = self.global(lane);
                let size: [u64; 2] =
                    std::array::from_fn(|axis| u64::from(self.launch.grid[axis]) * u64::from(self.launch.workgroup_size[axis]));
                let order = (u64::from(id[2]) * size[1] + u64::from(id[1])) * size[0] + u64::from(id[0]);
                if self.trap.is_none_or(|(smallest, ..)| order < smallest) {
                    *self.trap = Some((order, id, tag, place));
                }
            }
        }
    }

    fn takes_part(&self, mask: Mask, lane: usize) -> bool {
        mask.count > 0 && mask.column.is_none_or(|column| self.scratch.narrow.column(column)[lane] != 0)
    }

    // Variables.

    /// `v = vec(v.y, v.x)` reads components that it overwrites; they are copied first.
    fn apart(&mut self, var: VarId, mut value: Vals) -> Vals {
        let components = self.scratch.components[var.index()];
        let own = components.first..components.first + components.count;
        for (n, value) in value.iter_mut().enumerate().take(components.count) {
            if let Val::Narrow(column) = *value
                && own.contains(&column)
                && column != components.first + n
                && !components.wide
            {
                *value = self.new_narrow(|narrow, _, out| out.copy_from_slice(narrow.column(column)));
            }
        }
        value
    }

    fn set(&mut self, var: VarId, value: Vals) {
        let components = self.scratch.components[var.index()];
        let value = self.apart(var, value);
        for (n, value) in value.into_iter().enumerate().take(components.count) {
            let own = components.first + n;
            let kept = match value {
                Val::Splat(bits) => Val::Splat(bits),
                Val::Narrow(column) => {
                    move_column(&mut self.scratch.narrow, self.scratch.kept_narrow, column, own);
                    Val::Narrow(own)
                }
                Val::Wide(column) => {
                    move_column(&mut self.scratch.wide, self.scratch.kept_wide, column, own);
                    Val::Wide(own)
                }
            };
            self.scratch.vars[var.index()][n] = kept;
        }
    }

    fn blend(&mut self, var: VarId, value: Vals, mask: Mask) {
        let components = self.scratch.components[var.index()];
        let value = self.apart(var, value);
        for (n, value) in value.into_iter().enumerate().take(components.count) {
            let own = components.first + n;
            let old = self.scratch.vars[var.index()][n];
            if old == value {
                continue;
            }
            if components.wide {
                let value = self.wide_column(value);
                let column = mask.column.expect("a blend leaves some lanes out");
                blend_column(self.arch, &mut self.scratch.wide, old, own, value, self.scratch.narrow.column(column));
                self.scratch.vars[var.index()][n] = Val::Wide(own);
            } else {
                let value = self.narrow_column(value);
                // The mask is of the same width as the value, so it is taken out while the variable is written.
                let column = mask.column.expect("a blend leaves some lanes out");
                let bits = self.scratch.narrow.take(column);
                blend_column(self.arch, &mut self.scratch.narrow, old, own, value, &bits);
                self.scratch.narrow.put(column, bits);
                self.scratch.vars[var.index()][n] = Val::Narrow(own);
            }
        }
    }

    // Expressions.

    fn narrow_column(&mut self, value: Val) -> usize {
        match value {
            Val::Narrow(column) => column,
            Val::Splat(bits) => {
                let column = self.narrow().push();
                self.narrow().column_mut(column).fill(bits as u32);
                column
            }
            Val::Wide(_) => unreachable!("a 32-bit value is in a narrow column"),
        }
    }

    fn wide_column(&mut self, value: Val) -> usize {
        match value {
            Val::Wide(column) => column,
            Val::Splat(bits) => {
                let column = self.scratch.wide.push();
                self.scratch.wide.column_mut(column).fill(bits);
                column
            }
            Val::Narrow(_) => unreachable!("a 64-bit value is in a wide column"),
        }
    }

    /// The value of an expression of any type.
    fn vals(&mut self, id: ExprId) -> Vals {
        let kernel = self.kernel;
        let mut vals = NOTHING;
        match (&kernel.expr(id).kind, kernel.expr(id).ty) {
            (_, ValueType::Scalar(_)) => vals[0] = self.val(id),
            (ExprKind::Var(var), _) => vals = self.scratch.vars[var.index()],
            (ExprKind::Vector(components), _) => {
                for (val, component) in vals.iter_mut().zip(components) {
                    *val = self.val(*component);
                }
            }
            (ExprKind::Load(buffer, index), ValueType::Vector(_, count)) => {
                let index = self.val(*index);
                for (component, val) in vals.iter_mut().enumerate().take(usize::from(count)) {
                    *val = self.load(*buffer, index, component);
                }
            }
            (
                ExprKind::Lit(_)
                | ExprKind::Builtin(_)
                | ExprKind::Len(_)
                | ExprKind::Unary(..)
                | ExprKind::Binary(..)
                | ExprKind::Ternary(..)
                | ExprKind::Cast(..)
                | ExprKind::Bitcast(..)
                | ExprKind::Extract(..),
                ValueType::Vector(..),
            ) => unreachable!("no op gives a vector"),
        }
        vals
    }

    /// The value of a scalar expression.
    fn val(&mut self, id: ExprId) -> Val {
        let kernel = self.kernel;
        let mode = kernel.floats;
        let arch = self.arch;
        match &kernel.expr(id).kind {
            ExprKind::Lit(bits) => Val::Splat(*bits),
            ExprKind::Var(var) => self.scratch.vars[var.index()][0],
            ExprKind::Builtin(builtin) => self.builtin(*builtin),
            ExprKind::Len(buffer) => Val::Splat(u64::from(self.launch.lengths[buffer.index()])),
            ExprKind::Load(buffer, index) => {
                let index = self.val(*index);
                self.load(*buffer, index, 0)
            }
            ExprKind::Unary(op, ty, a) => {
                let a = self.val(*a);
                if let Val::Splat(a) = a {
                    return Val::Splat(vyre_scalar::unary(*op, *ty, mode, a));
                }
                let result = op.info().result_type(*ty).expect("pure ops have results");
                match (a, is_wide(result)) {
                    (Val::Narrow(a), _) => {
                        self.new_narrow(|narrow, _, out| ops::unary_narrow(arch, *op, *ty, mode, narrow.column(a), out))
                    }
                    (Val::Wide(a), false) => self.new_narrow(|_, wide, out| ops::unary_any(*op, *ty, mode, wide.column(a), out)),
                    (Val::Wide(a), true) => self.new_wide(|_, wide, out| ops::unary_any(*op, *ty, mode, wide.column(a), out)),
                    (Val::Splat(_), _) => unreachable!("handled above"),
                }
            }
            ExprKind::Binary(op, ty, a, b) => {
                let (a, b) = (self.val(*a), self.val(*b));
                if let (Val::Splat(a), Val::Splat(b)) = (a, b) {
                    return Val::Splat(vyre_scalar::binary(*op, *ty, mode, a, b));
                }
                if !is_wide(*ty) {
                    let (a, b) = (self.narrow_column(a), self.narrow_column(b));
                    return self.new_narrow(|narrow, _, out| {
                        ops::binary_narrow(arch, *op, *ty, mode, narrow.column(a), narrow.column(b), out);
                    });
                }
                let a = self.wide_column(a);
                let result = op.info().result_type(*ty).expect("pure ops have results");
                if let vyre_spec::Operand::Fixed(_) = op.info().operands[1] {
                    let b = self.narrow_column(b);
                    return self.new_wide(|narrow, wide, out| {
                        ops::binary_any(*op, *ty, mode, wide.column(a), narrow.column(b), out);
                    });
                }
                let b = self.wide_column(b);
                if is_wide(result) {
                    self.new_wide(|_, wide, out| ops::binary_any(*op, *ty, mode, wide.column(a), wide.column(b), out))
                } else {
                    self.new_narrow(|_, wide, out| ops::binary_any(*op, *ty, mode, wide.column(a), wide.column(b), out))
                }
            }
            ExprKind::Ternary(op, ty, [a, b, c]) => {
                let (a, b, c) = (self.val(*a), self.val(*b), self.val(*c));
                if let (Val::Splat(a), Val::Splat(b), Val::Splat(c)) = (a, b, c) {
                    return Val::Splat(vyre_scalar::ternary(*op, *ty, mode, a, b, c));
                }
                let fixed_first = matches!(op.info().operands[0], vyre_spec::Operand::Fixed(_));
                match (is_wide(*ty), fixed_first) {
                    (false, _) => {
                        let (a, b, c) = (self.narrow_column(a), self.narrow_column(b), self.narrow_column(c));
                        self.new_narrow(|narrow, _, out| {
                            let operands = [narrow.column(a), narrow.column(b), narrow.column(c)];
                            ops::ternary_narrow(arch, *op, *ty, mode, operands, out);
                        })
                    }
                    (true, true) => {
                        let (a, b, c) = (self.narrow_column(a), self.wide_column(b), self.wide_column(c));
                        self.new_wide(|narrow, wide, out| {
                            ops::ternary_any(*op, *ty, mode, narrow.column(a), wide.column(b), wide.column(c), out);
                        })
                    }
                    (true, false) => {
                        let (a, b, c) = (self.wide_column(a), self.wide_column(b), self.wide_column(c));
                        self.new_wide(|_, wide, out| {
                            ops::ternary_any(*op, *ty, mode, wide.column(a), wide.column(b), wide.column(c), out);
                        })
                    }
                }
            }
            ExprKind::Cast(from, to, a) => {
                let a = self.val(*a);
                match (a, is_wide(*to)) {
                    (Val::Splat(a), _) => Val::Splat(vyre_scalar::cast(*from, *to, mode, a)),
                    (Val::Narrow(a), false) => {
                        self.new_narrow(|narrow, _, out| ops::cast_any(*from, *to, mode, narrow.column(a), out))
                    }
                    (Val::Narrow(a), true) => {
                        self.new_wide(|narrow, _, out| ops::cast_any(*from, *to, mode, narrow.column(a), out))
                    }
                    (Val::Wide(a), false) => self.new_narrow(|_, wide, out| ops::cast_any(*from, *to, mode, wide.column(a), out)),
                    (Val::Wide(a), true) => self.new_wide(|_, wide, out| ops::cast_any(*from, *to, mode, wide.column(a), out)),
                }
            }
            ExprKind::Bitcast(from, to, a) => {
                let a = self.val(*a);
                match a {
                    Val::Splat(a) => Val::Splat(vyre_scalar::bitcast(*from, *to, mode, a)),
                    Val::Narrow(a) => self.new_narrow(|narrow, _, out| ops::bitcast_any(*from, *to, mode, narrow.column(a), out)),
                    Val::Wide(a) => self.new_wide(|_, wide, out| ops::bitcast_any(*from, *to, mode, wide.column(a), out)),
                }
            }
            ExprKind::Extract(vector, component) => self.vals(*vector)[usize::from(*component)],
            ExprKind::Vector(_) => unreachable!("a vector is no scalar"),
        }
    }

    /// A new narrow column written by `write`, which can read all others.
    fn new_narrow(&mut self, write: impl FnOnce(&Stack<u32>, &Stack<u64>, &mut [u32])) -> Val {
        let out = self.scratch.narrow.push();
        let mut column = self.scratch.narrow.take(out);
        write(&self.scratch.narrow, &self.scratch.wide, &mut column);
        self.scratch.narrow.put(out, column);
        Val::Narrow(out)
    }

    /// A new wide column written by `write`, which can read all others.
    fn new_wide(&mut self, write: impl FnOnce(&Stack<u32>, &Stack<u64>, &mut [u64])) -> Val {
        let out = self.scratch.wide.push();
        let mut column = self.scratch.wide.take(out);
        write(&self.scratch.narrow, &self.scratch.wide, &mut column);
        self.scratch.wide.put(out, column);
        Val::Wide(out)
    }

    // Ids.

    /// The id of the workgroup with this number.
    fn group_id(&self, number: u32) -> [u32; 3] {
        let [nx, ny, _] = self.launch.grid;
        [number % nx, number / nx % ny, number / nx / ny]
    }

    fn global(&self, lane: usize) -> [u32; 3] {
        let lane = self.scratch.origin.get(lane).map_or(lane, |origin| *origin as usize);
        let group = self.group_id(self.first_group + (lane / self.group) as u32);
        let n = (lane % self.group) as u32;
        let [nx, ny, _] = self.launch.workgroup_size;
        let local = [n % nx, n / nx % ny, n / nx / ny];
        std::array::from_fn(|axis| group[axis] * self.launch.workgroup_size[axis] + local[axis])
    }

    fn builtin(&mut self, builtin: Builtin) -> Val {
        let (size, groups) = (self.launch.workgroup_size, self.launch.grid);
        match builtin {
            Builtin::InvocationCount(axis) => Val::Splat(u64::from(groups[axis as usize] * size[axis as usize])),
            Builtin::WorkgroupCount(axis) => Val::Splat(u64::from(groups[axis as usize])),
            Builtin::LocalCount(axis) => Val::Splat(u64::from(size[axis as usize])),
            Builtin::SubgroupSize => Val::Splat(u64::from(self.subgroup_size())),
            Builtin::Workgroup(axis) if self.one_group => Val::Splat(u64::from(self.group_id(self.first_group)[axis as usize])),
            Builtin::Invocation(_) | Builtin::Workgroup(_) | Builtin::Local(_) | Builtin::SubgroupLane => {
                let ids = &self.scratch.ids;
                let (_, column) = ids.iter().find(|(id, _)| *id == builtin).expect("every id that is read has a column");
                Val::Narrow(*column)
            }
        }
    }

    /// Writes the columns of the ids that the kernel reads; they are the same for every statement of the block.
    pub fn write_ids(&mut self) {
        for n in 0..self.scratch.ids.len() {
            let (builtin, column) = self.scratch.ids[n];
            let size = self.launch.workgroup_size;
            let mut ids = self.scratch.narrow.take(column);
            for (group, out) in (self.first_group..).zip(ids.chunks_mut(self.group)) {
                let group = self.group_id(group);
                match builtin {
                    Builtin::Invocation(axis) => {
                        let first = group[axis as usize] * size[axis as usize];
                        write_positions(out, size, axis, first);
                    }
                    Builtin::Local(axis) => write_positions(out, size, axis, 0),
                    Builtin::Workgroup(axis) => out.fill(group[axis as usize]),
                    Builtin::SubgroupLane => {
                        for lanes in out.chunks_mut(self.subgroup_size() as usize) {
                            lanes.iter_mut().zip(0..).for_each(|(out, lane)| *out = lane);
                        }
                    }
                    Builtin::InvocationCount(_) | Builtin::WorkgroupCount(_) | Builtin::LocalCount(_) | Builtin::SubgroupSize => {
                        unreachable!("counts are the same in every lane")
                    }
                }
            }
            self.scratch.narrow.put(column, ids);
        }
    }

    fn subgroup_size(&self) -> u32 {
        self.kernel.subgroup.expect("validated: subgroups need a declared size")
    }

    // Memory.

    fn view(&self, buffer: BufferId) -> View {
        let stride = if is_group_memory(self.kernel, buffer) { self.group_bytes } else { 0 };
        View { length: self.launch.lengths[buffer.index()], stride, group: self.group }
    }

    fn load(&mut self, buffer: BufferId, index: Val, component: usize) -> Val {
        let element = &self.kernel.buffer(buffer).element;
        let mode = self.kernel.floats;
        let view = self.view(buffer);
        let home = self.homes[buffer.index()];
        let (inputs, lanes) = (self.inputs, self.lanes);
        let one_view = view.stride == 0 || lanes <= self.group;
        if let (Val::Splat(index), true) = (index, one_view) {
            let index = index as u32;
            let bytes = bytes_of(home, inputs, self.outputs, &self.scratch.group_memory);
            let value = if index < view.length { memory::load(element, mode, bytes, index) } else { Value::default() };
            return Val::Splat(value.0[component]);
        }
        let index = self.narrow_column(index);
        let wide = match self.kernel.buffer(buffer).value {
            ValueType::Scalar(scalar) | ValueType::Vector(scalar, _) => is_wide(scalar),
        };
        // With one workgroup in the block its memory is like storage.
        let view = View { stride: if one_view { 0 } else { view.stride }, ..view };
        if wide {
            let out = self.scratch.wide.push();
            let mut column = self.scratch.wide.take(out);
            let bytes = bytes_of(home, inputs, self.outputs, &self.scratch.group_memory);
            let index = &self.scratch.narrow.column(index)[..lanes];
            load_any(element, mode, bytes, view, index, component, &mut column[..lanes]);
            self.scratch.wide.put(out, column);
            return Val::Wide(out);
        }
        let out = self.scratch.narrow.push();
        let mut column = self.scratch.narrow.take(out);
        let bytes = bytes_of(home, inputs, self.outputs, &self.scratch.group_memory);
        let index = &self.scratch.narrow.column(index)[..lanes];
        match self.kernel.buffer(buffer).value {
            ValueType::Vector(..) => load_any(element, mode, bytes, view, index, component, &mut column[..lanes]),
            ValueType::Scalar(_) => load_narrow(self.arch, element, mode, bytes, view, index, &mut column[..lanes]),
        }
        self.scratch.narrow.put(out, column);
        Val::Narrow(out)
    }

    fn store(&mut self, buffer: BufferId, index: Val, value: Vals, mask: Mask) {
        let kernel = self.kernel;
        let element = &kernel.buffer(buffer).element;
        let view = self.view(buffer);
        let lanes = self.lanes;
        let index = self.narrow_column(index);
        let columns = value.map(|value| match value {
            Val::Splat(_) if !is_wide_value(kernel.buffer(buffer).value) => Val::Narrow(self.narrow_column(value)),
            Val::Splat(_) | Val::Narrow(_) | Val::Wide(_) => value,
        });
        let home = self.homes[buffer.index()];
        let Scratch { narrow, wide, group_memory, .. } = &mut *self.scratch;
        let bytes = bytes_of_mut(home, self.outputs, group_memory);
        let index = &narrow.column(index)[..lanes];
        let bits = mask.column.map(|column| &narrow.column(column)[..lanes]);
        if let Val::Narrow(column) = columns[0]
            && is_word(element)
        {
            return store_words(self.arch, bytes, view, index, bits, &narrow.column(column)[..lanes]);
        }
        for lane in 0..lanes {
            if bits.is_none_or(|bits| bits[lane] != 0) && index[lane] < view.length {
                let at = |value: Val| match value {
                    Val::Splat(bits) => bits,
                    Val::Narrow(column) => u64::from(narrow.column(column)[lane]),
                    Val::Wide(column) => wide.column(column)[lane],
                };
                let base = if view.stride == 0 { 0 } else { lane / view.group * view.stride };
                memory::store(element, kernel.floats, &mut bytes[base..], index[lane], Value(columns.map(at)));
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one statement")]
    fn atomic(
        &mut self,
        result: Option<VarId>,
        op: AtomicOp,
        buffer: BufferId,
        index: Val,
        operands: [Val; AtomicOp::MAX_OPERANDS],
        count: usize,
        mask: Mask,
    ) {
        let kernel = self.kernel;
        let element = &kernel.buffer(buffer).element;
        let ValueType::Scalar(ty) = kernel.buffer(buffer).value else { unreachable!("validated: atomics are on scalars") };
        let view = self.view(buffer);
        let index = self.narrow_column(index);
        let operands = operands.map(|operand| self.narrow_column(operand));
        let old = self.narrow().push();
        let mut olds = self.scratch.narrow.take(old);
        let home = self.homes[buffer.index()];
        let Scratch { narrow, group_memory, .. } = &mut *self.scratch;
        let bytes = bytes_of_mut(home, self.outputs, group_memory);
        for (lane, old) in olds.iter_mut().enumerate() {
            *old = 0;
            let takes_part = mask.column.is_none_or(|column| narrow.column(column)[lane] != 0);
            let index = narrow.column(index)[lane];
            if takes_part && index < view.length {
                let base = if view.stride == 0 { 0 } else { lane / view.group * view.stride };
                let part = &mut bytes[base..];
                let before = memory::load(element, kernel.floats, part, index).scalar();
                let values = operands.map(|operand| u64::from(narrow.column(operand)[lane]));
                if let Some(new) = vyre_scalar::atomic(op, ty, before, &values[..count]) {
                    memory::store(element, kernel.floats, part, index, new.into());
                }
                *old = before as u32;
            }
        }
        self.scratch.narrow.put(old, olds);
        if let Some(var) = result {
            self.set(var, [Val::Narrow(old), Val::Splat(0), Val::Splat(0), Val::Splat(0)]);
        }
    }

    fn exchange(&mut self, var: VarId, op: SubgroupOp, ty: Scalar, operands: [Val; SubgroupOp::MAX_OPERANDS], mask: Mask) {
        let size = self.subgroup_size() as usize;
        let lanes = self.lanes;
        let result = op.info().result_type(ty).expect("subgroup ops have results");
        let mut brought = std::mem::take(&mut self.scratch.brought);
        let out = if is_wide(result) { Val::Wide(self.scratch.wide.push()) } else { Val::Narrow(self.scratch.narrow.push()) };
        for first in (0..lanes).step_by(size) {
            brought.clear();
            for lane in first..first + size {
                brought.push(self.takes_part(mask, lane).then(|| operands.map(|operand| self.lane_of(operand, lane))));
            }
            for (n, own) in brought.iter().enumerate() {
                if own.is_none() {
                    continue;
                }
                let bits = subgroup::result(op, ty, self.kernel.floats, &brought, n);
                match out {
                    Val::Wide(column) => self.scratch.wide.column_mut(column)[first + n] = bits,
                    Val::Narrow(column) => self.scratch.narrow.column_mut(column)[first + n] = bits as u32,
                    Val::Splat(_) => unreachable!("a column was taken"),
                }
            }
        }
        self.scratch.brought = brought;
        self.set(var, [out, Val::Splat(0), Val::Splat(0), Val::Splat(0)]);
    }

    fn lane_of(&self, value: Val, lane: usize) -> u64 {
        match value {
            Val::Splat(bits) => bits,
            Val::Narrow(column) => u64::from(self.scratch.narrow.column(column)[lane]),
            Val::Wide(column) => self.scratch.wide.column(column)[lane],
        }
    }
}

/// The positions of a workgroup's lanes along an axis, from `first` on.
fn write_positions(out: &mut [u32], size: [u32; 3], axis: Axis, first: u32) {
    let [nx, ny, _] = size;
    // How many lanes follow each other with one position, and after how many positions it starts again.
    let (run, positions) = match axis {
        Axis::X => (1, nx),
        Axis::Y => (nx, ny),
        Axis::Z => (nx * ny, u32::MAX),
    };
    if run == 1 {
        for row in out.chunks_mut(positions as usize) {
            row.iter_mut().zip(first..).for_each(|(out, position)| *out = position);
        }
    } else {
        for (run, n) in out.chunks_mut(run as usize).zip(0u32..) {
            run.fill(first + n % positions);
        }
    }
}

fn is_wide_value(ty: ValueType) -> bool {
    match ty {
        ValueType::Scalar(scalar) | ValueType::Vector(scalar, _) => is_wide(scalar),
    }
}

/// A column of the stack is moved; one of a variable is copied, because that variable keeps it.
fn move_column<W: Word>(stack: &mut Stack<W>, kept: usize, from: usize, to: usize) {
    if from >= kept {
        stack.swap(from, to);
    } else if from != to {
        let mut column = stack.take(to);
        column.copy_from_slice(stack.column(from));
        stack.put(to, column);
    }
}

fn blend_column<W: Word>(arch: Arch, stack: &mut Stack<W>, old: Val, own: usize, value: usize, mask: &[u32]) {
    let mut column = stack.take(own);
    if let Val::Splat(bits) = old {
        column.fill(W::from_bits(bits));
    }
    lanes::blend(arch, stack.column(value), mask, &mut column);
    stack.put(own, column);
}

fn bytes_of<'a>(home: Home, inputs: &[&'a [u8]], outputs: &'a [Vec<u8>], group: &'a [u8]) -> &'a [u8] {
    match home {
        Home::Input(n) => inputs[n],
        Home::Output(n) => &outputs[n],
        Home::Workgroup(at) => &group[at..],
    }
}

fn bytes_of_mut<'a>(home: Home, outputs: &'a mut [Vec<u8>], group: &'a mut [u8]) -> &'a mut [u8] {
    match home {
        Home::Input(_) => unreachable!("validated: inputs are not written"),
        Home::Output(n) => &mut outputs[n],
        Home::Workgroup(at) => &mut group[at..],
    }
}
