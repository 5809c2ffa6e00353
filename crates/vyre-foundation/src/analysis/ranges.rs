//! Which numbers a `u32` can be, where it is defined and where it is used.
//!
//! For a `u32` value this knows a [`Range`]: the smallest and largest number it can be, and the buffers whose length it is below or does
//! not exceed. Ranges come from
//!
//! - what values are: literals, `lid` below the workgroup size, `subgroup.lane`, loads of `u8` and `u16`, `x & 7`, `x % 8`, `min`, and
//!   arithmetic as far as it cannot wrap;
//! - loops: in `for i in a..b` the counter is below `b` and not below `a`;
//! - conditions: in an arm of an `if` its condition holds or does not, through `&&`, `||` and `!`; and after an `if` one of whose arms
//!   never gets there (`if i >= len(out) { return }`), for the rest of the region.
//!
//! What a condition says is about values, known by their numbers (see `numbers.rs`), and is forgotten at the end of the region it
//! governs. [`Flow`] walks the form in order and knows at every instruction what holds there. The number of a value is the first value
//! like it, which may stand where a condition holds that says nothing here: so what a value is known to be without any condition is
//! kept apart, and what its definition adds to that is learned like a condition, for the rest of its region.
//!
//! Cost: a walk over the form; each condition is looked at once.

use super::numbers::Numbers;
use crate::ir::{BinaryOp, Builtin, Scalar, UnaryOp};
use crate::kernel::BufferId;
use crate::ssa::{Def, InstId, InstKind, Leaf, Op, RegionId, Ssa, Terminator, Value};
use std::collections::HashSet;
use vyre_spec::{TernaryOp, ValueType};

/// Buffers, of which the first 64 are known; of others there is nothing to say.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Buffers(u64);

impl Buffers {
    fn insert(&mut self, buffer: BufferId) {
        if buffer.0 < 64 {
            self.0 |= 1 << buffer.0;
        }
    }

    /// Whether the buffer is among them.
    #[must_use]
    pub fn contains(self, buffer: BufferId) -> bool {
        buffer.0 < 64 && self.0 >> buffer.0 & 1 == 1
    }

    fn or(self, other: Buffers) -> Buffers {
        Buffers(self.0 | other.0)
    }

    fn and(self, other: Buffers) -> Buffers {
        Buffers(self.0 & other.0)
    }
}

/// What is known about a `u32`; of a `bool`, whether it is 0 or 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range {
    /// The smallest number it can be.
    pub low: u32,
    /// The largest number it can be.
    pub high: u32,
    /// Buffers whose length it is below.
    pub below: Buffers,
    /// Other buffers whose length it does not exceed.
    pub at_most: Buffers,
}

impl Range {
    fn new(low: u32, high: u32) -> Range {
        Range { low, high, below: Buffers::default(), at_most: Buffers::default() }
    }

    fn any() -> Range {
        Range::new(0, u32::MAX)
    }

    /// The number, if it is one.
    #[must_use]
    pub fn exact(&self) -> Option<u32> {
        (self.low == self.high).then_some(self.low)
    }

    /// What is known of a value both of these are about.
    fn and(mut self, other: &Range) -> Range {
        self.low = self.low.max(other.low);
        self.high = self.high.min(other.high);
        self.below = self.below.or(other.below);
        self.at_most = self.at_most.or(other.at_most);
        self
    }

    /// What is known of a value that is one of these two.
    fn or(&self, other: &Range) -> Range {
        Range {
            low: self.low.min(other.low),
            high: self.high.max(other.high),
            below: self.below.and(other.below),
            at_most: self.not_above().and(other.not_above()),
        }
    }

    /// Buffers whose length it does not exceed, also those that it is below.
    #[must_use]
    pub fn not_above(&self) -> Buffers {
        self.below.or(self.at_most)
    }

    /// Numbers from `low` to `high` that do not exceed this one.
    fn not_more(&self, low: u32, high: u32) -> Range {
        Range { low, high: high.min(self.high), below: self.below, at_most: self.at_most }
    }

    /// Numbers from `low` to `high` that are below this one.
    fn less(&self, low: u32, high: u32) -> Range {
        // Nothing is below 0; then this is never reached, and 0 is as good as any answer.
        let high = high.min(self.high.saturating_sub(1));
        Range { low, high, below: self.not_above(), at_most: Buffers::default() }
    }
}

/// Numbers up to the largest that has as many bits as `high`.
fn as_many_bits(high: u32) -> u32 {
    u32::MAX.checked_shr(high.leading_zeros()).unwrap_or(0)
}

/// The range of an op of a `u32` operand that gives a `u32`.
#[expect(clippy::wildcard_enum_match_arm, reason = "any number is a right answer for every op, also for a new one")]
fn unary(op: UnaryOp, a: &Range) -> Range {
    match op {
        UnaryOp::Abs => *a,
        UnaryOp::Popcount => Range::new(0, 32 - a.high.leading_zeros()),
        UnaryOp::Clz => Range::new(a.high.leading_zeros(), 32),
        UnaryOp::Ctz => Range::new(0, 32),
        _ => Range::any(),
    }
}

/// The range of an op of `u32` operands that gives a `u32`.
#[expect(clippy::wildcard_enum_match_arm, reason = "any number is a right answer for every op, also for a new one")]
fn binary(op: BinaryOp, a: &Range, b: &Range) -> Range {
    match op {
        BinaryOp::Add => match a.high.checked_add(b.high) {
            Some(high) => Range::new(a.low.saturating_add(b.low), high),
            None => Range::any(),
        },
        BinaryOp::Mul => match a.high.checked_mul(b.high) {
            Some(high) => Range::new(a.low.saturating_mul(b.low), high),
            None => Range::any(),
        },
        BinaryOp::Mulhi => Range::new(0, ((u64::from(a.high) * u64::from(b.high)) >> 32) as u32),
        // It does not wrap if the smallest is not less than what is taken from it.
        BinaryOp::Sub if a.low >= b.high => {
            let (low, high) = (a.low - b.high, a.high.saturating_sub(b.low));
            if b.low > 0 { a.less(low, high) } else { a.not_more(low, high) }
        }
        BinaryOp::SatSub => {
            let (low, high) = (a.low.saturating_sub(b.high), a.high.saturating_sub(b.low));
            // 1 - 1 and 0 - 1 are both 0, which is not below a length of 0.
            if b.low > 0 && a.low > 0 { a.less(low, high) } else { a.not_more(low, high) }
        }
        // x / 0 is x, so a quotient never exceeds the dividend.
        BinaryOp::Div => match b.low {
            0 => a.not_more(0, a.high),
            // In code that is never reached, a range can end before it begins.
            _ => a.not_more(a.low.checked_div(b.high).unwrap_or(0), a.high / b.low),
        },
        // x % 0 is 0, which neither exceeds x nor is anything more.
        BinaryOp::Rem => {
            let rest = a.not_more(0, b.high.saturating_sub(1));
            if b.low > 0 { rest.and(&b.less(0, u32::MAX)) } else { rest }
        }
        BinaryOp::BitAnd => a.not_more(0, a.high).and(&b.not_more(0, b.high)),
        BinaryOp::Min => a.not_more(0, a.high).and(&b.not_more(0, b.high)).and(&Range::new(a.low.min(b.low), u32::MAX)),
        BinaryOp::Max => a.or(b).and(&Range::new(a.low.max(b.low), u32::MAX)),
        BinaryOp::BitOr => Range::new(a.low.max(b.low), as_many_bits(a.high.max(b.high))),
        BinaryOp::BitXor => Range::new(0, as_many_bits(a.high.max(b.high))),
        BinaryOp::Shl => match b.exact().map(|amount| amount % 32) {
            Some(amount) if a.high.leading_zeros() >= amount => Range::new(a.low << amount, a.high << amount),
            Some(_) | None => Range::any(),
        },
        BinaryOp::Shr => match b.exact().map(|amount| amount % 32) {
            Some(amount) => a.not_more(a.low >> amount, a.high >> amount),
            None => a.not_more(0, a.high),
        },
        BinaryOp::SatAdd => Range::new(a.low.saturating_add(b.low), a.high.saturating_add(b.high)),
        BinaryOp::AbsDiff => Range::new(0, a.high.max(b.high)),
        _ => Range::any(),
    }
}

/// The range of an op, by those of its operands.
fn op_of(op: &Op, range: impl Fn(Value) -> Range) -> Range {
    match op {
        Op::Unary { op, ty: Scalar::U32, operand } => unary(*op, &range(*operand)),
        // The bit counts of wider types.
        Op::Unary { op: UnaryOp::Popcount | UnaryOp::Clz | UnaryOp::Ctz, ty, .. } => Range::new(0, ty.bits()),
        Op::Binary { op, ty: Scalar::U32, left, right } => binary(*op, &range(*left), &range(*right)),
        Op::Ternary { op: TernaryOp::Select, operands: [_, yes, no], .. } => range(*yes).or(&range(*no)),
        Op::Cast { from: Scalar::U32, to: Scalar::Bool, value } => {
            let number = range(*value);
            Range::new(u32::from(number.low > 0), u32::from(number.high > 0))
        }
        Op::Cast { from: Scalar::U32, value, .. } => range(*value),
        Op::Cast { from: Scalar::Bool, value, .. } => Range::new(0, 1).and(&range(*value)),
        Op::Unary { .. }
        | Op::Binary { .. }
        | Op::Ternary { op: TernaryOp::Fma, .. }
        | Op::Cast { .. }
        | Op::Bitcast { .. }
        | Op::Vector { .. }
        | Op::Extract { .. } => Range::any(),
    }
}

/// By value: which numbers it can be, wherever it is defined. What conditions say about it elsewhere is not part of this.
#[derive(Clone, Debug)]
pub struct Ranges(Vec<Range>);

impl Ranges {
    /// The ranges of a form.
    #[must_use]
    pub fn of(ssa: &Ssa) -> Ranges {
        let mut flow = Flow::new(ssa);
        flow.run(&mut |_, _| {});
        Ranges(flow.ranges)
    }

    /// What is known of a value that is a `u32` or a `bool`; of others nothing is.
    #[must_use]
    pub fn of_value(&self, value: Value) -> Range {
        self.0[value.index()]
    }
}

/// A walk over the form that knows at every instruction what holds there.
pub(super) struct Flow<'a> {
    pub ssa: &'a Ssa,
    pub numbers: Numbers,
    /// By value: what it can be where it is defined.
    pub ranges: Vec<Range>,
    /// By value: what it, and every value like it, can be wherever it stands.
    anywhere: Vec<Range>,
    /// By number: what the values of that number can be where they are defined.
    defined: Vec<Option<Range>>,
    /// By number: what holds here beside that, and what it was before each change.
    learned: Vec<Option<Range>>,
    log: Vec<(Value, Option<Range>)>,
    /// Pairs of numbers the first of which is known to be below the second here.
    pub less: Vec<(Value, Value)>,
    /// What the loops around are given, and what their ways out and on say, so far.
    loops: Vec<Vec<Range>>,
}

impl<'a> Flow<'a> {
    pub fn new(ssa: &'a Ssa) -> Flow<'a> {
        let mut flow = Flow {
            ssa,
            numbers: Numbers::of(ssa),
            ranges: vec![Range::any(); ssa.values.len()],
            anywhere: vec![Range::any(); ssa.values.len()],
            defined: vec![None; ssa.values.len()],
            learned: vec![None; ssa.values.len()],
            log: Vec::new(),
            less: Vec::new(),
            loops: Vec::new(),
        };
        for n in 0..ssa.values.len() {
            if let Def::Leaf(leaf) = ssa.values[n].def {
                let range = flow.leaf(leaf, ssa.values[n].ty);
                flow.define(Value(n as u32), range, range);
            }
        }
        flow
    }

    /// Walks the whole form; `visit` is called with every instruction before what is below it, while what holds there is known.
    pub fn run(&mut self, visit: &mut impl FnMut(&Flow<'a>, InstId)) {
        self.region(self.ssa.root, visit);
    }

    /// Notes what a value can be where it is defined, which is here, and what every value like it can be.
    fn define(&mut self, value: Value, here: Range, anywhere: Range) {
        self.ranges[value.index()] = here;
        self.anywhere[value.index()] = anywhere;
        let number = self.numbers.of_value(value);
        let defined = &mut self.defined[number.index()];
        *defined = Some(defined.map_or(here, |others| others.or(&here)));
        if here != anywhere {
            self.learn(value, here);
        }
    }

    /// What the values of a number can be, wherever one of them is defined.
    pub fn of_number(&self, number: Value) -> Range {
        self.defined[number.index()].unwrap_or(self.anywhere[number.index()])
    }

    /// What a value, or one of its number, can be here.
    pub fn range(&self, value: Value) -> Range {
        let known = self.anywhere[value.index()];
        match &self.learned[self.numbers.of_value(value).index()] {
            Some(learned) => known.and(learned),
            None => known,
        }
    }

    /// What a value can be here, by what its operands can be here.
    pub fn refined(&self, value: Value) -> Range {
        match self.ssa.op(value) {
            Some(op) => self.range(value).and(&op_of(op, |operand| self.range(operand))),
            None => self.range(value),
        }
    }

    fn leaf(&self, leaf: Leaf, ty: ValueType) -> Range {
        match leaf {
            Leaf::Lit { bits } if ty == ValueType::Scalar(Scalar::U32) => Range::new(bits as u32, bits as u32),
            Leaf::Lit { .. } => Range::any(),
            Leaf::Builtin { builtin } => self.builtin(builtin),
            Leaf::Len { buffer } => {
                let mut range = match self.ssa.kernel.buffer(buffer).count {
                    Some(count) => Range::new(count, count),
                    None => Range::any(),
                };
                range.at_most.insert(buffer);
                range
            }
        }
    }

    fn builtin(&self, builtin: Builtin) -> Range {
        let kernel = &self.ssa.kernel;
        // Sizes are at least 1.
        let below = |size: u32| Range::new(0, size.saturating_sub(1));
        match builtin {
            Builtin::Local(axis) => below(kernel.workgroup_size[axis as usize]),
            Builtin::LocalCount(axis) => {
                let size = kernel.workgroup_size[axis as usize];
                Range::new(size, size)
            }
            Builtin::SubgroupLane => kernel.subgroup.map_or(Range::any(), below),
            Builtin::SubgroupSize => kernel.subgroup.map_or(Range::any(), |size| Range::new(size, size)),
            // A launch has at most 2³² − 1 invocations, and at least one.
            Builtin::InvocationCount(_) | Builtin::WorkgroupCount(_) => Range::new(1, u32::MAX),
            Builtin::Invocation(_) | Builtin::Workgroup(_) => below(u32::MAX),
        }
    }

    fn learn(&mut self, value: Value, range: Range) {
        let number = self.numbers.of_value(value);
        let old = self.learned[number.index()];
        self.learned[number.index()] = Some(old.map_or(range, |old| range.and(&old)));
        self.log.push((number, old));
    }

    fn forget(&mut self, mark: usize, less: usize) {
        for (number, old) in self.log.split_off(mark).into_iter().rev() {
            self.learned[number.index()] = old;
        }
        self.less.truncate(less);
    }

    fn region(&mut self, id: RegionId, visit: &mut impl FnMut(&Flow<'a>, InstId)) {
        let ssa = self.ssa;
        for inst in &ssa.region(id).insts {
            visit(self, *inst);
            self.inst(*inst, visit);
        }
        let values = ssa.region(id).end.values();
        match ssa.region(id).end {
            Terminator::Break(_) | Terminator::Continue(_) => self.hand_on(values),
            Terminator::Yield(_) | Terminator::Return | Terminator::Trap(_) | Terminator::Unreachable => {}
        }
    }

    /// Notes what the innermost loop may result in.
    fn hand_on(&mut self, values: &[Value]) {
        let Some(mut results) = self.loops.pop() else { return };
        for (result, value) in results.iter_mut().zip(values) {
            *result = result.or(&self.range(*value));
        }
        self.loops.push(results);
    }

    fn inst(&mut self, id: InstId, visit: &mut impl FnMut(&Flow<'a>, InstId)) {
        let inst = self.ssa.inst(id);
        match &inst.kind {
            InstKind::Op(op) => {
                let here = op_of(op, |operand| self.range(operand));
                let anywhere = op_of(op, |operand| self.anywhere[operand.index()]);
                self.define(inst.results[0], here, anywhere);
            }
            InstKind::Load { buffer, .. } => {
                // Elements narrower than the value they load as.
                let buffer = self.ssa.kernel.buffer(*buffer);
                if let (Some(bits @ 1..32), ValueType::Scalar(Scalar::U32)) = (buffer.element.bits(), buffer.value) {
                    let range = Range::new(0, u32::MAX >> (32 - bits));
                    self.define(inst.results[0], range, range);
                }
            }
            InstKind::If { cond, then, otherwise } => self.branch(id, *cond, [*then, *otherwise], visit),
            InstKind::Loop { from, to, inits, body } => self.repeat(id, [*from, *to], inits, *body, visit),
            InstKind::Store { .. }
            | InstKind::Atomic { .. }
            | InstKind::Subgroup { .. }
            | InstKind::Barrier
            | InstKind::GridSync => {}
        }
    }

    fn branch(&mut self, id: InstId, cond: Value, arms: [RegionId; 2], visit: &mut impl FnMut(&Flow<'a>, InstId)) {
        let ssa = self.ssa;
        let results = &ssa.inst(id).results;
        let mut merged: Option<Vec<Range>> = None;
        for (arm, holds) in arms.into_iter().zip([true, false]) {
            let (mark, less) = (self.log.len(), self.less.len());
            self.assume(cond, holds);
            self.region(arm, visit);
            if let Terminator::Yield(values) = &ssa.region(arm).end {
                let yielded = values.iter().map(|value| self.range(*value));
                merged = Some(match merged {
                    None => yielded.collect(),
                    Some(merged) => merged.iter().zip(yielded).map(|(one, other)| one.or(&other)).collect(),
                });
            }
            self.forget(mark, less);
        }
        // No other value is like a result of an `if` or of a loop, or a counter: what uses it stands where it is defined.
        for (result, range) in results.iter().zip(merged.unwrap_or_default()) {
            self.define(*result, range, range);
        }
        match arms.map(|arm| ssa.region(arm).end.is_yield()) {
            [true, false] => self.assume(cond, true),
            [false, true] => self.assume(cond, false),
            [true, true] | [false, false] => {}
        }
    }

    fn repeat(
        &mut self,
        id: InstId,
        [from, to]: [Value; 2],
        inits: &[Value],
        body: RegionId,
        visit: &mut impl FnMut(&Flow<'a>, InstId),
    ) {
        let ssa = self.ssa;
        let (mark, less) = (self.log.len(), self.less.len());
        let counter = ssa.region(body).args[0];
        let counted = self.range(to).less(self.range(from).low, u32::MAX);
        self.define(counter, counted, counted);
        self.less.push((counter, self.numbers.of_value(to)));
        self.loops.push(inits.iter().map(|init| self.range(*init)).collect());
        self.region(body, visit);
        if let Terminator::Yield(values) = &ssa.region(body).end {
            self.hand_on(values);
        }
        let results = self.loops.pop().unwrap_or_default();
        self.forget(mark, less);
        for (result, range) in ssa.inst(id).results.iter().zip(results) {
            self.define(*result, range, range);
        }
    }

    /// Learns what follows from a condition that holds, or does not.
    fn assume(&mut self, cond: Value, holds: bool) {
        // A condition can be made of one value many times over.
        let mut seen = HashSet::new();
        let mut pending = vec![(cond, holds)];
        while let Some((value, holds)) = pending.pop() {
            if !seen.insert((self.numbers.of_value(value), holds)) {
                continue;
            }
            self.learn(value, Range::new(u32::from(holds), u32::from(holds)));
            match self.ssa.op(value) {
                Some(Op::Unary { op: UnaryOp::Not, ty: Scalar::Bool, operand }) => pending.push((*operand, !holds)),
                Some(Op::Binary { op: BinaryOp::And, left, right, .. }) if holds => {
                    pending.extend([(*right, true), (*left, true)]);
                }
                Some(Op::Binary { op: BinaryOp::Or, left, right, .. }) if !holds => {
                    pending.extend([(*right, false), (*left, false)]);
                }
                Some(Op::Binary { op, ty: Scalar::U32, left, right }) => self.assume_comparison(*op, *left, *right, holds),
                Some(
                    Op::Binary { .. }
                    | Op::Unary { .. }
                    | Op::Ternary { .. }
                    | Op::Cast { .. }
                    | Op::Bitcast { .. }
                    | Op::Vector { .. }
                    | Op::Extract { .. },
                )
                | None => {}
            }
        }
    }

    /// Learns from a comparison of two `u32`.
    fn assume_comparison(&mut self, op: BinaryOp, a: Value, b: Value, holds: bool) {
        match (op, holds) {
            (BinaryOp::Lt, true) | (BinaryOp::Ge, false) => self.assume_less(a, b),
            (BinaryOp::Gt, true) | (BinaryOp::Le, false) => self.assume_less(b, a),
            (BinaryOp::Le, true) | (BinaryOp::Gt, false) => self.assume_not_more(a, b),
            (BinaryOp::Ge, true) | (BinaryOp::Lt, false) => self.assume_not_more(b, a),
            (BinaryOp::Eq, true) | (BinaryOp::Ne, false) => {
                self.assume_not_more(a, b);
                self.assume_not_more(b, a);
            }
            (BinaryOp::Ne, true) | (BinaryOp::Eq, false) => {
                self.assume_other(a, b);
                self.assume_other(b, a);
            }
            _ => {}
        }
    }

    fn assume_less(&mut self, a: Value, b: Value) {
        let (small, large) = (self.range(a), self.range(b));
        self.learn(a, large.less(0, u32::MAX));
        self.learn(b, Range::new(small.low.saturating_add(1), u32::MAX));
        self.less.push((self.numbers.of_value(a), self.numbers.of_value(b)));
    }

    fn assume_not_more(&mut self, a: Value, b: Value) {
        let (small, large) = (self.range(a), self.range(b));
        self.learn(a, large.not_more(0, u32::MAX));
        self.learn(b, Range::new(small.low, u32::MAX));
    }

    /// A number that is not one of the ends of its range is inside.
    fn assume_other(&mut self, a: Value, b: Value) {
        let (range, Some(other)) = (self.range(a), self.range(b).exact()) else { return };
        if range.low == other {
            self.learn(a, Range::new(other.saturating_add(1), u32::MAX));
        } else if range.high == other {
            self.learn(a, Range::new(0, other.saturating_sub(1)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vyre_spec::FloatMode;

    const ENDS: [u32; 14] = [0, 1, 2, 3, 7, 8, 31, 32, 33, 255, 0x7FFF_FFFF, 0x8000_0000, u32::MAX - 1, u32::MAX];

    /// Ranges with ends from the list, each with some numbers in it.
    fn ranges() -> Vec<(Range, Vec<u32>)> {
        let mut ranges = Vec::new();
        for low in ENDS {
            for high in ENDS.into_iter().filter(|high| low <= *high) {
                let inside = ENDS.into_iter().filter(|n| (low..=high).contains(n)).chain([low + (high - low) / 2]);
                ranges.push((Range::new(low, high), inside.collect()));
            }
        }
        ranges
    }

    /// The range with a length it is below, and one it does not exceed, for every number that both can be.
    fn with_lengths(range: &Range, value: u32, lengths: &[u32; 2]) -> Option<Range> {
        let mut range = *range;
        let mut fits = false;
        if value < lengths[0] {
            range.below.insert(BufferId(0));
            fits = true;
        }
        if value <= lengths[1] {
            range.at_most.insert(BufferId(1));
            fits = true;
        }
        fits.then_some(range)
    }

    fn check(what: &str, range: &Range, value: u32, lengths: &[u32; 2]) {
        assert!((range.low..=range.high).contains(&value), "{what}: {value} is not in {range:?}");
        for (length, buffer) in lengths.iter().zip([BufferId(0), BufferId(1)]) {
            assert!(!range.below.contains(buffer) || value < *length, "{what}: {value} is not below {length}");
            assert!(!range.at_most.contains(buffer) || value <= *length, "{what}: {value} exceeds {length}");
        }
    }

    #[test]
    fn every_op_gives_what_its_range_says() {
        let ranges = ranges();
        for op in UnaryOp::ALL.iter().filter(|op| op.info().over.contains(Scalar::U32)) {
            for (range, values) in &ranges {
                for a in values {
                    let result = vyre_scalar::unary(*op, Scalar::U32, FloatMode::Ieee, u64::from(*a)) as u32;
                    check(&format!("{op} {a}"), &unary(*op, range), result, &[0; 2]);
                }
            }
        }
        let gives_u32 =
            |op: &&BinaryOp| op.info().over.contains(Scalar::U32) && op.info().result_type(Scalar::U32) == Some(Scalar::U32);
        for op in BinaryOp::ALL.iter().filter(gives_u32) {
            for (left, lefts) in ranges.iter().step_by(2) {
                for (right, rights) in &ranges {
                    for a in lefts.iter().step_by(2) {
                        for b in rights.iter().step_by(2) {
                            let result =
                                vyre_scalar::binary(*op, Scalar::U32, FloatMode::Ieee, u64::from(*a), u64::from(*b)) as u32;
                            check(&format!("{op} {a} {b}"), &binary(*op, left, right), result, &[0; 2]);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn every_op_keeps_what_it_says_about_lengths() {
        let lengths: Vec<[u32; 2]> = [0, 1, 2, 3, 8].iter().flat_map(|a| [0, 1, 2, 3, 8].map(|b| [*a, b])).collect();
        let small: Vec<(Range, u32)> = (0..5u32)
            .flat_map(|value| (0..=value).flat_map(move |low| [0, 1, 9].map(|more| (Range::new(low, value + more), value))))
            .collect();
        let gives_u32 =
            |op: &&BinaryOp| op.info().over.contains(Scalar::U32) && op.info().result_type(Scalar::U32) == Some(Scalar::U32);
        for op in BinaryOp::ALL.iter().filter(gives_u32) {
            for lengths in &lengths {
                for (left, a) in &small {
                    for (right, b) in small.iter().step_by(2) {
                        let result = vyre_scalar::binary(*op, Scalar::U32, FloatMode::Ieee, u64::from(*a), u64::from(*b)) as u32;
                        let sides =
                            [(with_lengths(left, *a, lengths), Some(*right)), (Some(*left), with_lengths(right, *b, lengths))];
                        for (left, right) in sides {
                            if let (Some(left), Some(right)) = (left, right) {
                                check(&format!("{op} {a} {b} {left:?} {right:?}"), &binary(*op, &left, &right), result, lengths);
                            }
                        }
                    }
                }
            }
        }
        for lengths in &lengths {
            for (left, a) in &small {
                for (right, b) in &small {
                    let (Some(left), Some(right)) = (with_lengths(left, *a, lengths), with_lengths(right, *b, lengths)) else {
                        continue;
                    };
                    check("or", &left.or(&right), *a, lengths);
                    check("or", &left.or(&right), *b, lengths);
                    if a == b {
                        check("and", &left.and(&right), *a, lengths);
                    }
                    if a < b {
                        check("less", &right.less(0, u32::MAX), *a, lengths);
                    }
                    if a <= b {
                        check("not more", &right.not_more(0, u32::MAX), *a, lengths);
                    }
                }
            }
        }
    }
}
