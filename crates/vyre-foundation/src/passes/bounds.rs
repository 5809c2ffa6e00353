//! Bounds facts: which loads, stores and atomics are known to be in bounds.
//!
//! A backend checks every index, because an access out of bounds must load 0 or do nothing. Where this analysis has a proof, the
//! check can go. A wrong answer here is a read or write outside of a buffer there, so everything is worked out from what a value
//! *is*, never from what it will probably be; "not proven" is always a right answer.
//!
//! For a `u32` value it knows a `Range`: the smallest and largest number it can be, and the buffers whose length it is below or
//! does not exceed. An access `b[i]` is in bounds if `i` is below `len(b)`, or if its largest value is below the declared count of
//! `b` (a launch with another length is refused).
//!
//! Ranges come from
//!
//! - what expressions are: literals, `lid` below the workgroup size, `subgroup.lane`, loads of `u8` and `u16`, `x & 7`, `x % 8`,
//!   `min`, and arithmetic as far as it cannot wrap;
//! - loops: in `for i in a..b` the counter is below `b` and not below `a`;
//! - conditions: in an arm of an `if` its condition holds or does not, through `&&`, `||`, `!` and variables; and after an `if` one of
//!   whose arms never gets there (`if i >= len(out) { return }`), for the rest of the body.
//!
//! Conditions are about *values*, which are known by value number (see `number.rs`): if a variable is assigned between the
//! condition and the access it has another number, and nothing is known about it. What a condition says is forgotten at the end of
//! the body it governs. Of memory that can be written no two loads are one value, even side by side: another invocation may write
//! between them, and a program that races is still memory-safe.
//!
//! The facts are about invocations that reach the access, in any launch that fits the program: a backend that lets other lanes come
//! along must mask them, and one that loads again what a `let` has loaded must check again. The kernel has its specialization
//! constants at their defaults, so a program is specialized first.
//!
//! Cost: a walk over the kernel; each index and each condition is evaluated once.

use super::number::{Loads, Number, Numbers};
use crate::diagnostic::Location;
use crate::ir::{BinaryOp, Builtin, NodeId, Program, Scalar, TernaryOp, UnaryOp, ValueType};
use crate::kernel::{BufferId, ExprId, ExprKind, Kernel, Stmt, StmtKind};
use crate::validate::Validated;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// One access to a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    /// The load expression, or the store or atomic statement. Its index is the next place.
    pub place: NodeId,
    /// What is accessed.
    pub buffer: BufferId,
    /// Whether its index is below the buffer's length whenever it is reached.
    pub proven: bool,
}

/// What is known about every access of a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InBounds {
    accesses: Vec<Access>,
}

impl InBounds {
    /// Whether the access at this place (of a load expression, a store or an atomic) is proven to be in bounds.
    #[must_use]
    pub fn is_proven(&self, place: NodeId) -> bool {
        self.accesses.binary_search_by_key(&place, |access| access.place).is_ok_and(|n| self.accesses[n].proven)
    }

    /// Every access, in source order.
    #[must_use]
    pub fn accesses(&self) -> &[Access] {
        &self.accesses
    }

    /// Every access as it is spelled in the program's text, in source order, and whether it is proven. `program` is what the facts
    /// are about.
    #[must_use]
    pub fn spelled(&self, program: &Program) -> Vec<(String, bool)> {
        let source = program.source().cloned().unwrap_or_else(|| Arc::new(crate::text::print(program)));
        let spelled = |access: &Access| {
            let span = source.span(Location::Tree(NodeId(access.place.0 + 1)));
            let index = source.text.get(span.start as usize..span.end as usize).unwrap_or("…");
            let index = index.split_whitespace().collect::<Vec<_>>().join(" ");
            let name = program.buffers().get(access.buffer.index()).map_or_else(String::new, |decl| decl.name.to_string());
            (format!("{name}[{index}]"), access.proven)
        };
        self.accesses.iter().map(spelled).collect()
    }
}

/// Which accesses of a valid program are in bounds.
#[must_use]
pub fn in_bounds(validated: &Validated) -> InBounds {
    let kernel = validated.kernel();
    let numbers = Numbers::of(kernel, Loads::EachItsOwn);
    let mut conditions = HashMap::new();
    for n in 0..kernel.exprs.len() {
        let id = ExprId(n as u32);
        let expr = kernel.expr(id);
        if expr.ty == ValueType::Scalar(Scalar::Bool) && !matches!(expr.kind, ExprKind::Var(_)) {
            conditions.entry(numbers.expr(id)).or_insert(id);
        }
    }
    let mut analysis = Analysis { kernel, numbers, conditions, facts: HashMap::new(), log: Vec::new(), accesses: Vec::new() };
    analysis.body(&kernel.body);
    analysis.accesses.sort_by_key(|access| access.place);
    InBounds { accesses: analysis.accesses }
}

/// What is known about a `u32`.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Range {
    /// The smallest number it can be.
    low: u32,
    /// The largest number it can be.
    high: u32,
    /// Buffers whose length it is below.
    below: BTreeSet<BufferId>,
    /// Other buffers whose length it does not exceed.
    at_most: BTreeSet<BufferId>,
}

impl Range {
    fn new(low: u32, high: u32) -> Range {
        Range { low, high, below: BTreeSet::new(), at_most: BTreeSet::new() }
    }

    fn any() -> Range {
        Range::new(0, u32::MAX)
    }

    /// Whether it is one number.
    fn exact(&self) -> Option<u32> {
        (self.low == self.high).then_some(self.low)
    }

    /// What is known of a value both of these are about.
    fn and(mut self, other: &Range) -> Range {
        self.low = self.low.max(other.low);
        self.high = self.high.min(other.high);
        self.below.extend(&other.below);
        self.at_most.extend(&other.at_most);
        self
    }

    /// What is known of a value that is one of these two.
    fn or(&self, other: &Range) -> Range {
        let not_above = self.not_above();
        Range {
            low: self.low.min(other.low),
            high: self.high.max(other.high),
            below: self.below.intersection(&other.below).copied().collect(),
            at_most: not_above.intersection(&other.not_above()).copied().collect(),
        }
    }

    /// Buffers whose length it does not exceed.
    fn not_above(&self) -> BTreeSet<BufferId> {
        self.below.union(&self.at_most).copied().collect()
    }

    /// Numbers from `low` to `high` that do not exceed this one.
    fn not_more(&self, low: u32, high: u32) -> Range {
        Range { low, high: high.min(self.high), below: self.below.clone(), at_most: self.at_most.clone() }
    }

    /// Numbers from `low` to `high` that are below this one.
    fn less(&self, low: u32, high: u32) -> Range {
        // Nothing is below 0; then this is never reached, and 0 is as good as any answer.
        let high = high.min(self.high.saturating_sub(1));
        Range { low, high, below: self.not_above(), at_most: BTreeSet::new() }
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
        UnaryOp::Abs => a.clone(),
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

struct Analysis<'a> {
    kernel: &'a Kernel,
    numbers: Numbers,
    /// By number of a `bool`: an expression that gives it.
    conditions: HashMap<Number, ExprId>,
    /// By number of a `u32`: what is known beside what the expression says.
    facts: HashMap<Number, Range>,
    /// What `facts` had before each change.
    log: Vec<(Number, Option<Range>)>,
    accesses: Vec<Access>,
}

impl<'a> Analysis<'a> {
    fn learn(&mut self, number: Number, range: Range) {
        let old = self.facts.get(&number).cloned();
        let new = match &old {
            Some(old) => range.and(old),
            None => range,
        };
        self.facts.insert(number, new);
        self.log.push((number, old));
    }

    fn forget(&mut self, mark: usize) {
        for (number, old) in self.log.split_off(mark).into_iter().rev() {
            match old {
                Some(old) => self.facts.insert(number, old),
                None => self.facts.remove(&number),
            };
        }
    }

    /// What is known about an expression here; of those that are no `u32`, nothing.
    fn range(&self, id: ExprId) -> Range {
        let expr = self.kernel.expr(id);
        if expr.ty != ValueType::Scalar(Scalar::U32) {
            return Range::any();
        }
        let by_form = match &expr.kind {
            ExprKind::Lit(bits) => Range::new(*bits as u32, *bits as u32),
            ExprKind::Builtin(builtin) => self.builtin(*builtin),
            ExprKind::Len(buffer) => {
                let mut range = match self.kernel.buffer(*buffer).count {
                    Some(count) => Range::new(count, count),
                    None => Range::any(),
                };
                range.at_most.insert(*buffer);
                range
            }
            // Elements narrower than the value they load as.
            ExprKind::Load(buffer, _) => match self.kernel.buffer(*buffer).element.bits() {
                Some(bits @ 1..32) => Range::new(0, u32::MAX >> (32 - bits)),
                Some(_) | None => Range::any(),
            },
            ExprKind::Unary(op, Scalar::U32, a) => unary(*op, &self.range(*a)),
            ExprKind::Binary(op, Scalar::U32, a, b) => binary(*op, &self.range(*a), &self.range(*b)),
            ExprKind::Ternary(TernaryOp::Select, _, [_, yes, no]) => self.range(*yes).or(&self.range(*no)),
            ExprKind::Cast(Scalar::U32, _, value) => self.range(*value),
            ExprKind::Cast(Scalar::Bool, _, _) => Range::new(0, 1),
            // The bit counts of wider types.
            ExprKind::Unary(UnaryOp::Popcount | UnaryOp::Clz | UnaryOp::Ctz, ty, _) => Range::new(0, ty.bits()),
            ExprKind::Unary(..)
            | ExprKind::Binary(..)
            | ExprKind::Ternary(TernaryOp::Fma, ..)
            | ExprKind::Cast(..)
            | ExprKind::Var(_)
            | ExprKind::Bitcast(..)
            | ExprKind::Vector(_)
            | ExprKind::Extract(..) => Range::any(),
        };
        match self.facts.get(&self.numbers.expr(id)) {
            Some(known) => by_form.and(known),
            None => by_form,
        }
    }

    fn builtin(&self, builtin: Builtin) -> Range {
        // Sizes are at least 1.
        let below = |size: u32| Range::new(0, size.saturating_sub(1));
        match builtin {
            Builtin::Local(axis) => below(self.kernel.workgroup_size[axis as usize]),
            Builtin::LocalCount(axis) => {
                let size = self.kernel.workgroup_size[axis as usize];
                Range::new(size, size)
            }
            Builtin::SubgroupLane => self.kernel.subgroup.map_or(Range::any(), below),
            Builtin::SubgroupSize => self.kernel.subgroup.map_or(Range::any(), |size| Range::new(size, size)),
            // A launch has at most 2³² − 1 invocations, and at least one.
            Builtin::InvocationCount(_) | Builtin::WorkgroupCount(_) => Range::new(1, u32::MAX),
            Builtin::Invocation(_) | Builtin::Workgroup(_) => below(u32::MAX),
        }
    }

    /// The statements of a body; gives whether control never reaches its end.
    fn body(&mut self, body: &'a [Stmt]) -> bool {
        let mut ended = false;
        for stmt in body {
            ended |= self.stmt(stmt);
        }
        ended
    }

    fn stmt(&mut self, stmt: &'a Stmt) -> bool {
        for id in stmt.kind.exprs() {
            self.loads(id);
        }
        match &stmt.kind {
            StmtKind::Let(_, value) | StmtKind::Assign(_, value) => {
                if let Some(number) = self.numbers.given(stmt.place) {
                    let range = self.range(*value);
                    self.learn(number, range);
                    if self.kernel.expr(*value).ty == ValueType::Scalar(Scalar::Bool) {
                        self.conditions.entry(number).or_insert(*value);
                    }
                }
                false
            }
            StmtKind::Store(buffer, index, _) | StmtKind::Atomic { buffer, index, .. } => {
                self.access(stmt.place, *buffer, *index);
                false
            }
            StmtKind::If(cond, then, otherwise) => {
                let then_ends = self.arm(*cond, true, then);
                let otherwise_ends = self.arm(*cond, false, otherwise);
                match (then_ends, otherwise_ends) {
                    (true, false) => self.assume(*cond, false),
                    (false, true) => self.assume(*cond, true),
                    (true, true) | (false, false) => {}
                }
                then_ends && otherwise_ends
            }
            StmtKind::Loop(_, from, to, body) => {
                let counter = self.range(*to).less(self.range(*from).low, u32::MAX);
                let mark = self.log.len();
                if let Some(number) = self.numbers.given(stmt.place) {
                    self.learn(number, counter);
                }
                self.body(body);
                self.forget(mark);
                false
            }
            // What holds at the end of a scope holds behind it.
            StmtKind::Scope(body) => self.body(body),
            StmtKind::Break | StmtKind::Continue | StmtKind::Return | StmtKind::Trap(_) => true,
            StmtKind::Subgroup { .. } | StmtKind::Barrier | StmtKind::GridSync => false,
        }
    }

    fn arm(&mut self, cond: ExprId, holds: bool, body: &'a [Stmt]) -> bool {
        let mark = self.log.len();
        self.assume(cond, holds);
        let ends = self.body(body);
        self.forget(mark);
        ends
    }

    /// Notes every load in an expression.
    fn loads(&mut self, id: ExprId) {
        let expr = self.kernel.expr(id);
        if let ExprKind::Load(buffer, index) = expr.kind {
            self.access(expr.place, buffer, index);
        }
        for operand in expr.kind.operands() {
            self.loads(operand);
        }
    }

    fn access(&mut self, place: NodeId, buffer: BufferId, index: ExprId) {
        let index = self.range(index);
        let proven = index.below.contains(&buffer) || self.kernel.buffer(buffer).count.is_some_and(|count| index.high < count);
        self.accesses.push(Access { place, buffer, proven });
    }

    /// Learns what follows from a condition that holds, or does not.
    fn assume(&mut self, cond: ExprId, holds: bool) {
        // A condition can be made of one variable many times over.
        let mut seen = HashSet::new();
        let mut pending = vec![(cond, holds)];
        while let Some((mut id, holds)) = pending.pop() {
            // A definition precedes its uses, so this ends.
            while let ExprKind::Var(_) = self.kernel.expr(id).kind {
                match self.conditions.get(&self.numbers.expr(id)) {
                    Some(value) => id = *value,
                    None => break,
                }
            }
            if !seen.insert((self.numbers.expr(id), holds)) {
                continue;
            }
            match &self.kernel.expr(id).kind {
                ExprKind::Unary(UnaryOp::Not, Scalar::Bool, a) => pending.push((*a, !holds)),
                ExprKind::Binary(BinaryOp::And, _, a, b) if holds => pending.extend([(*b, true), (*a, true)]),
                ExprKind::Binary(BinaryOp::Or, _, a, b) if !holds => pending.extend([(*b, false), (*a, false)]),
                ExprKind::Binary(op, Scalar::U32, a, b) => self.assume_comparison(*op, *a, *b, holds),
                ExprKind::Binary(..)
                | ExprKind::Unary(..)
                | ExprKind::Var(_)
                | ExprKind::Lit(_)
                | ExprKind::Builtin(_)
                | ExprKind::Len(_)
                | ExprKind::Load(..)
                | ExprKind::Ternary(..)
                | ExprKind::Cast(..)
                | ExprKind::Bitcast(..)
                | ExprKind::Vector(_)
                | ExprKind::Extract(..) => {}
            }
        }
    }

    /// Learns from a comparison of two `u32`.
    fn assume_comparison(&mut self, op: BinaryOp, a: ExprId, b: ExprId, holds: bool) {
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
            // No other op compares.
            _ => {}
        }
    }

    fn assume_less(&mut self, a: ExprId, b: ExprId) {
        let (small, large) = (self.range(a), self.range(b));
        self.learn(self.numbers.expr(a), large.less(0, u32::MAX));
        self.learn(self.numbers.expr(b), Range::new(small.low.saturating_add(1), u32::MAX));
    }

    fn assume_not_more(&mut self, a: ExprId, b: ExprId) {
        let (small, large) = (self.range(a), self.range(b));
        self.learn(self.numbers.expr(a), large.not_more(0, u32::MAX));
        self.learn(self.numbers.expr(b), Range::new(small.low, u32::MAX));
    }

    /// A number that is not one of the ends of its range is inside.
    fn assume_other(&mut self, a: ExprId, b: ExprId) {
        let (range, Some(other)) = (self.range(a), self.range(b).exact()) else { return };
        if range.low == other {
            self.learn(self.numbers.expr(a), Range::new(other.saturating_add(1), u32::MAX));
        } else if range.high == other {
            self.learn(self.numbers.expr(a), Range::new(0, other.saturating_sub(1)));
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
        let mut range = range.clone();
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
            assert!(!range.below.contains(&buffer) || value < *length, "{what}: {value} is not below {length}");
            assert!(!range.at_most.contains(&buffer) || value <= *length, "{what}: {value} exceeds {length}");
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
                        let sides = [
                            (with_lengths(left, *a, lengths), Some(right.clone())),
                            (Some(left.clone()), with_lengths(right, *b, lengths)),
                        ];
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
                        check("and", &left.clone().and(&right), *a, lengths);
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
