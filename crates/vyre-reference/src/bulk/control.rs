//! Control: statements, masks, branches and loops.
//!
//! - A mask is always a subset of the frame's live lanes, those that are not retired. A body returns the lanes that reach its end.
//! - A `let` overwrites its variable in every lane: those masked out cannot see it. An assignment blends, unless all live lanes
//!   take part.
//! - The lanes that are in a loop are in the same iteration of it.
//! - What is kept while a body runs must not be the column of a variable that the body assigns: conditions become masks before the
//!   arms run, and bounds that the loop assigns are copied.

use super::block::{Block, Mask, Step, Trap};
use super::column::Val;
use super::compact::{Compaction, Loop};
use super::faults::Faults;
use super::frame::Frame;
use super::{BLOCK_LANES, lanes, ops};
use crate::faults::BulkFault;
use vyre_foundation::ir::NodeId;
use vyre_foundation::kernel::{Body, ExprId, MAX_OPERANDS, Stmt, StmtId, StmtKind, VarId};
use vyre_spec::{BinaryOp, Scalar};

impl<F: Faults> Block<'_, '_, F> {
    /// Runs the statements of a phase for the lanes that are live.
    pub fn run(&mut self, stmts: &[StmtId]) -> Step<()> {
        let mut mask = self.live();
        for id in stmts {
            if mask.count == 0 {
                break;
            }
            mask = self.stmt(self.kernel.stmt(*id), mask)?;
        }
        Ok(())
    }

    // Masks.

    fn live(&self) -> Mask {
        let count = self.frame.live_count;
        Mask { column: (count < self.frame.lanes).then_some(self.frame.live), count }
    }

    /// The lanes of `a` whose bit in column `b` is set, or with `flip` is not.
    fn make_mask(&mut self, a: Option<usize>, b: usize, flip: bool) -> Mask {
        let out = self.narrow().push();
        self.write_mask(out, a, b, flip)
    }

    fn write_mask(&mut self, out: usize, a: Option<usize>, b: usize, flip: bool) -> Mask {
        let stack = &mut self.frame.narrow;
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

    /// Adds the lanes of a mask to a column of 0 and 1.
    fn add_lanes(&mut self, column: usize, mask: Mask) {
        match mask.column {
            None => self.frame.narrow.column_mut(column).fill(1),
            Some(from) => {
                let mut bits = self.frame.narrow.take(column);
                for (bit, added) in bits.iter_mut().zip(self.frame.narrow.column(from)) {
                    *bit |= added;
                }
                self.frame.narrow.put(column, bits);
            }
        }
    }

    fn retire(&mut self, mask: Mask) {
        let live = self.frame.live;
        let mut bits = self.frame.narrow.take(live);
        match mask.column {
            // The mask of a phase is the column of live lanes itself.
            Some(column) if column != live => {
                for (live, gone) in bits.iter_mut().zip(self.frame.narrow.column(column)) {
                    *live &= !gone;
                }
            }
            Some(_) | None => bits.fill(0),
        }
        self.frame.live_count = bits.iter().sum::<u32>() as usize;
        self.frame.narrow.put(live, bits);
    }

    // Statements.

    /// The statements of a body; gives the lanes that reach its end.
    fn body(&mut self, body: Body, mut mask: Mask) -> Step<Mask> {
        for (_, stmt) in self.kernel.stmts_of(body) {
            if mask.count == 0 {
                break;
            }
            mask = self.stmt(stmt, mask)?;
        }
        Ok(mask)
    }

    fn stmt(&mut self, stmt: &Stmt, mask: Mask) -> Step<Mask> {
        self.fuel.take(mask.count as u64)?;
        match &stmt.kind {
            // These hand back a mask that may lie on the stack, and clean up by themselves.
            StmtKind::If { cond, then, otherwise } => return self.branch(*cond, *then, *otherwise, mask),
            StmtKind::Loop { counter, from, to, body } => return self.repeat(*counter, *from, *to, *body, mask),
            StmtKind::Scope { body } => return self.body(*body, mask),
            StmtKind::Break => return Ok(self.leave_loop(mask)),
            StmtKind::Continue if self.faults.has(BulkFault::ContinueMask) => return Ok(mask),
            StmtKind::Continue => return Ok(Mask::NONE),
            StmtKind::Return if self.faults.has(BulkFault::ReturnBreaks) && !self.frame.broken.is_empty() => {
                return Ok(self.leave_loop(mask));
            }
            StmtKind::Return => {
                self.retire(mask);
                return Ok(if self.faults.has(BulkFault::ReturnMask) { mask } else { Mask::NONE });
            }
            StmtKind::Trap { tag } => {
                let trapping = if self.faults.has(BulkFault::TrapMask) { self.live() } else { mask };
                self.note_trap(*tag, stmt.node, trapping);
                self.retire(mask);
                return Ok(Mask::NONE);
            }
            // All lanes are here together, so everything before it has happened.
            StmtKind::Barrier | StmtKind::GridSync => {
                if self.faults.has(BulkFault::BarrierValue) {
                    self.lose_value();
                }
                return Ok(mask);
            }
            StmtKind::Let { .. }
            | StmtKind::Assign { .. }
            | StmtKind::Store { .. }
            | StmtKind::Atomic { .. }
            | StmtKind::Subgroup { .. } => {}
        }
        let tops = self.frame.tops();
        match &stmt.kind {
            StmtKind::Let { var, value } => {
                let value = self.vals(*value);
                self.set(*var, value);
            }
            StmtKind::Assign { var, value } => {
                let value = self.vals(*value);
                if mask.count >= self.frame.live_count {
                    self.set(*var, value);
                } else {
                    self.blend(*var, value, mask);
                }
            }
            StmtKind::Store { buffer, index, value, .. } => {
                let index = self.val(*index);
                let value = self.vals(*value);
                self.store(*buffer, index, value, mask);
            }
            StmtKind::Atomic { result, op, buffer, index, operands, .. } => {
                let index = self.val(*index);
                let mut values = [Val::Splat(0); MAX_OPERANDS];
                for (value, operand) in values.iter_mut().zip(operands.iter()) {
                    *value = self.val(*operand);
                }
                self.atomic(*result, *op, *buffer, index, values, operands.len(), mask);
            }
            StmtKind::Subgroup { result, op, ty, operands } => {
                let mut values = [Val::Splat(0); MAX_OPERANDS];
                for (value, operand) in values.iter_mut().zip(operands.iter()) {
                    *value = self.val(*operand);
                }
                if let Some(var) = result {
                    self.exchange(*var, *op, *ty, values, mask);
                }
            }
            StmtKind::If { .. }
            | StmtKind::Loop { .. }
            | StmtKind::Scope { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return
            | StmtKind::Trap { .. }
            | StmtKind::Barrier
            | StmtKind::GridSync => unreachable!("handled above"),
        }
        self.frame.pop_to(tops);
        Ok(mask)
    }

    /// Takes lanes out of the innermost loop; gives those that go on in its body.
    fn leave_loop(&mut self, mask: Mask) -> Mask {
        let broken = self.frame.broken.last_mut().expect("validated: break stands in a loop");
        broken.1 = true;
        let column = broken.0;
        let leaving = if self.faults.has(BulkFault::BreakAll) { Mask { column: None, count: self.frame.lanes } } else { mask };
        self.add_lanes(column, leaving);
        if self.faults.has(BulkFault::BreakMask) { mask } else { Mask::NONE }
    }

    fn branch(&mut self, cond: ExprId, then: Body, otherwise: Body, mask: Mask) -> Step<Mask> {
        let before = self.frame.tops();
        // What comes out of the arms is gathered in a column that outlives everything else this statement takes.
        let gathered = self.narrow().push();
        let with_gathered = self.frame.tops();
        let column = match self.val(cond) {
            Val::Splat(cond) => {
                self.frame.pop_to(before);
                return self.body(if cond != 0 { then } else { otherwise }, mask);
            }
            Val::Narrow(column) => column,
            Val::Wide(_) => unreachable!("a condition is bool"),
        };
        let yes = self.make_mask(mask.column, column, false);
        let no = self.make_mask(mask.column, column, true);
        let inside = self.frame.tops();
        let mut kept = mask.count;
        for (arm, mut entering, is_else) in [(then, yes, false), (otherwise, no, true)] {
            if is_else && self.faults.has(BulkFault::ConditionAgain) {
                let bits = entering.column.expect("an arm has a mask of its own");
                entering = self.write_mask(bits, mask.column, column, true);
            }
            if arm.is_empty() || entering.count == 0 {
                continue;
            }
            if is_else && kept == mask.count && self.faults.has(BulkFault::ElseMask) {
                self.add_lanes(entering.column.expect("an arm has a mask of its own"), mask);
                entering.count = mask.count;
            }
            let leaving = self.body(arm, entering)?;
            if leaving.count != entering.count && !self.faults.has(BulkFault::ArmExit) {
                let mut bits = self.frame.narrow.take(gathered);
                let stack = &self.frame.narrow;
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
                self.frame.narrow.put(gathered, bits);
                kept -= entering.count - leaving.count;
            }
            self.frame.pop_to(inside);
        }
        if kept == mask.count {
            self.frame.pop_to(before);
            return Ok(mask);
        }
        self.frame.pop_to(with_gathered);
        Ok(Mask { column: Some(gathered), count: kept })
    }

    // Loops.

    fn repeat(&mut self, counter: VarId, from: ExprId, to: ExprId, body: Body, mask: Mask) -> Step<Mask> {
        let live_before = self.frame.live_count;
        let before = self.frame.tops();
        let gathered = self.narrow().push();
        let with_gathered = self.frame.tops();
        let facts = self.loops[counter.index()].as_ref().expect("every loop is known");
        let (mut from, mut to) = (self.val(from), self.val(to));
        if !self.faults.has(BulkFault::LowerBoundAgain) {
            from = self.fixed(from, facts);
        }
        if !self.faults.has(BulkFault::UpperBoundAgain) {
            to = self.fixed(to, facts);
        }
        if self.faults.has(BulkFault::LoopSigned) {
            to = self.without_upper_half(to);
        }
        if let (true, Val::Narrow(_)) = (self.faults.has(BulkFault::CounterOfFirstLane), from) {
            from = Val::Splat(self.lane_of(from, 0));
        }
        self.iterations(counter, [from, to], body, mask, 0)?;
        if self.frame.live_count == live_before || self.faults.has(BulkFault::ReturnInLoop) {
            self.frame.pop_to(before);
            return Ok(mask);
        }
        let live = self.frame.live;
        let left = self.write_mask(gathered, mask.column, live, false);
        self.frame.pop_to(with_gathered);
        Ok(left)
    }

    /// A bound that stays as it is when the loop assigns the variable that it is the column of.
    fn fixed(&mut self, bound: Val, facts: &Loop) -> Val {
        match bound {
            Val::Narrow(column) if facts.assigned.iter().any(|var| self.frame.is_own_column(*var, bound)) => {
                self.new_narrow(|narrow, _, out| out.copy_from_slice(narrow.column(column)))
            }
            Val::Splat(_) | Val::Narrow(_) | Val::Wide(_) => bound,
        }
    }

    /// The iterations of a loop from this one on, until no lane is left in it.
    fn iterations(&mut self, counter: VarId, bounds: [Val; 2], body: Body, mask: Mask, first: u32) -> Step<()> {
        let (arch, mode) = (self.arch, self.kernel.floats);
        let [from, to] = bounds;
        let broken = self.narrow().push();
        let active = self.narrow().push();
        self.narrow().column_mut(broken).fill(0);
        self.frame.broken.push((broken, false));
        let late = self.faults.has(BulkFault::BreakLate).then(|| self.late_column());
        let tops = self.frame.tops();
        let mut iteration = first;
        let mut now = mask;
        let result = loop {
            // All lanes that are still in the loop are in the same iteration.
            let count = self.count(counter, from, iteration);
            now = match (count, to) {
                (Val::Splat(count), Val::Splat(to)) => {
                    if count < to {
                        now
                    } else {
                        Mask::NONE
                    }
                }
                (count, to) => {
                    let (count, to) = (self.narrow_column(count), self.narrow_column(to));
                    let less = self.new_narrow(|narrow, _, out| {
                        ops::binary_narrow(arch, BinaryOp::Lt, Scalar::U32, mode, narrow.column(count), narrow.column(to), out);
                    });
                    let inside = self.narrow_column(less);
                    self.write_mask(active, now.column, inside, false)
                }
            };
            self.frame.pop_to(tops);
            if now.count == 0 {
                break Ok(());
            }
            let facts = self.loops[counter.index()].as_ref();
            if let (Some(compaction), Some(column)) = (facts.and_then(|facts| facts.compaction.as_ref()), now.column)
                && now.count < self.frame.lanes
                && (self.compact_always || compaction.pays(now.count, self.frame.lanes, iteration.wrapping_sub(first) as usize))
            {
                break self.compacted_iterations(compaction, column, now.count, counter, bounds, body, iteration);
            }
            if self.faults.has(BulkFault::CounterByte) {
                self.saturate(counter);
            }
            let live = self.frame.live_count;
            if let Err(exhausted) = self.body(body, now) {
                break Err(exhausted);
            }
            self.frame.pop_to(tops);
            let mut broke = self.frame.broken.last().is_some_and(|(_, any)| *any);
            if self.frame.live_count != live {
                let live = self.frame.live;
                now = self.write_mask(active, now.column, live, false);
                broke &= !self.faults.has(BulkFault::BreakAndReturn);
            }
            if broke {
                let leaving = late.unwrap_or(broken);
                now = self.write_mask(active, now.column, leaving, true);
            }
            if let Some(late) = late {
                self.frame.narrow.swap(late, broken);
                self.add_lanes(broken, Mask { column: Some(late), count: 0 });
            }
            iteration = iteration.wrapping_add(1);
        };
        self.frame.broken.pop();
        result
    }

    /// The iterations of a loop from this one on for the lanes of the mask, in a frame of their own.
    #[expect(clippy::too_many_arguments, reason = "the parts of a loop, and who is in it")]
    // Loops nest: what only this needs must not be on the stack of those that do without.
    #[inline(never)]
    fn compacted_iterations(
        &mut self,
        compaction: &Compaction,
        mask: usize,
        count: usize,
        counter: VarId,
        bounds: [Val; 2],
        body: Body,
        iteration: u32,
    ) -> Step<()> {
        let mut other = self.spare.pop().unwrap_or_else(|| Frame::of(self.kernel));
        other.compact(self.frame, mask, count, BLOCK_LANES.max(self.group), compaction, self.faults);
        let bounds = bounds.map(|bound| other.compact_value(self.frame, bound, self.faults));
        std::mem::swap(self.frame, &mut other);
        let result = self.iterations(counter, bounds, body, Mask { column: None, count }, iteration);
        std::mem::swap(self.frame, &mut other);
        other.expand(self.frame, compaction, self.faults);
        self.spare.push(other);
        result
    }

    /// Sets the counter of a loop for an iteration.
    fn count(&mut self, counter: VarId, from: Val, iteration: u32) -> Val {
        let value = match from {
            Val::Splat(from) => Val::Splat(u64::from((from as u32).wrapping_add(iteration))),
            Val::Narrow(from) => {
                let out = self.narrow().push();
                let stack = &mut self.frame.narrow;
                let mut column = stack.take(out);
                for (out, from) in column.iter_mut().zip(stack.column(from)) {
                    // A lane past its end is masked out; it must not come back by wrapping.
                    *out = from.saturating_add(iteration);
                }
                stack.put(out, column);
                Val::Narrow(out)
            }
            Val::Wide(_) => unreachable!("loop bounds are u32"),
        };
        self.set(counter, [value, Val::Splat(0), Val::Splat(0), Val::Splat(0)]);
        self.frame.vars[counter.index()][0]
    }

    fn note_trap(&mut self, tag: u32, place: NodeId, mask: Mask) {
        for lane in 0..self.frame.lanes {
            if self.takes_part(mask, lane) {
                let invocation = self.global(lane);
                let size: [u64; 2] =
                    std::array::from_fn(|axis| u64::from(self.launch.grid[axis]) * u64::from(self.launch.workgroup_size[axis]));
                let [x, y, z] = invocation.map(u64::from);
                let order = (z * size[1] + y) * size[0] + x;
                if self.trap.is_none_or(|trap| order < trap.order) {
                    *self.trap = Some(Trap { order, invocation, tag, place });
                }
            }
        }
    }
}

/// What only planted faults do.
impl<F: Faults> Block<'_, '_, F> {
    /// A column for the lanes that broke in the iteration before.
    fn late_column(&mut self) -> usize {
        let late = self.narrow().push();
        self.narrow().column_mut(late).fill(0);
        late
    }

    /// A bound that is 0 where it is 2³¹ or more.
    fn without_upper_half(&mut self, to: Val) -> Val {
        let small = |bits: u32| if (bits as i32) < 0 { 0 } else { bits };
        match to {
            Val::Splat(bits) => Val::Splat(u64::from(small(bits as u32))),
            Val::Narrow(column) => self.new_narrow(|narrow, _, out| {
                out.iter_mut().zip(narrow.column(column)).for_each(|(out, bits)| *out = small(*bits));
            }),
            Val::Wide(_) => unreachable!("loop bounds are u32"),
        }
    }

    /// Makes the body see a counter that ends at 255.
    fn saturate(&mut self, counter: VarId) {
        match self.frame.vars[counter.index()][0] {
            Val::Splat(bits) => self.frame.vars[counter.index()][0] = Val::Splat(bits.min(255)),
            Val::Narrow(column) => self.narrow().column_mut(column).iter_mut().for_each(|count| *count = (*count).min(255)),
            Val::Wide(_) => unreachable!("counters are u32"),
        }
    }

    /// The first variable that is a column loses the value of the last lane.
    fn lose_value(&mut self) {
        let is_column = |value: &Val| matches!(value, Val::Narrow(_));
        if let Some(Val::Narrow(column)) = self.frame.vars.iter().map(|value| value[0]).find(is_column)
            && let Some(last) = self.narrow().column_mut(column).last_mut()
        {
            *last = 0;
        }
    }
}
