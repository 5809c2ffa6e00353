//! One workgroup, invocation by invocation: which accesses of two of its invocations may meet between the same two barriers.
//!
//! Tiles are filled, folded and permuted by indices that are made of local ids, literals and the steps of short loops: `lid.x ^ reach`,
//! `half = half / 2`, the border of a tile. As sums these are hard to compare, but a workgroup has at most 1024 invocations, so this
//! simply goes through the program with all of them, as an evaluator would, and notes who touches which element since the last barrier.
//!
//! What it does not know it leaves open. A value is a number, or a *symbol* and a number that is added to it, or anything. A symbol
//! stands for a number that depends on the workgroup and the launch, not on the invocation: `wid.x`, a length, an element of a buffer
//! that nobody writes, what a uniform variable holds. What is computed from symbols is a symbol too, the same one for the same
//! computation. Two indices with the same symbol meet if and only if the numbers are equal; indices with different symbols may always
//! meet. Loads of memory that is written, atomics and subgroup operations give anything (or a symbol if all get the same).
//!
//! **Control.** Where a condition is not a number, an invocation may take both arms. A loop whose bounds are numbers is run iteration by
//! iteration. Any other loop is walked twice with anything in what it carries: two iterations that may meet without a barrier
//! between are then the first walk and the second, and what the first leaves behind is all that any number of iterations would.
//! So everything that an invocation can do in any launch is among what is noted, and accesses that do not meet here never do.
//!
//! Only what indices, conditions and bounds depend on is computed. The work is limited: where [`MAX_STEPS`] are not enough, longer loops
//! are taken for loops with unknown bounds, and if that does not help either, nothing is known.

use crate::analysis::uniformity::{Scope, Uniformity};
use crate::ir::{Access, Axis, BinaryOp, Builtin, Scalar, TernaryOp};
use crate::kernel::{AccessId, BufferId};
use crate::ssa::{Def, InstId, InstKind, Leaf, Op, RegionId, Ssa, Terminator, Value};
use std::collections::{HashMap, HashSet};
use vyre_spec::ValueType;

/// Steps at most: values computed and accesses compared, each for one invocation.
const MAX_STEPS: u64 = 1 << 21;

/// Iterations of a loop that are run one by one, at most; the smaller number if the larger makes too many steps.
const MAX_ITERATIONS: [u32; 2] = [4096, 32];

/// Which pairs of accesses may meet within a workgroup.
pub(super) struct Meetings(HashSet<(AccessId, AccessId)>);

impl Meetings {
    /// The meetings of a form whose workgroups have the declared size in every launch; `None` if that is too much work.
    pub fn of(ssa: &Ssa, uniformity: &Uniformity) -> Option<Meetings> {
        MAX_ITERATIONS.into_iter().find_map(|iterations| {
            let mut run = Run::new(ssa, uniformity, iterations);
            let all = Mask::all(run.lanes);
            run.region(ssa.root, &all).ok()?;
            Some(Meetings(run.meetings))
        })
    }

    /// Whether two invocations of one workgroup may touch one element by these accesses, without a barrier in between.
    pub fn contain(&self, a: AccessId, b: AccessId) -> bool {
        self.0.contains(&(a.min(b), a.max(b)))
    }
}

/// A number that is the same for the whole workgroup, whatever it is. The first is 0.
type Symbol = u32;

const ZERO: Symbol = 0;

/// What is known of a value of one invocation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Known {
    /// These bits.
    Bits(u64),
    /// A `u32` that is a symbol plus this, modulo 2³².
    Plus(Symbol, u32),
    /// It can be anything.
    Anything,
}

/// A value of all invocations.
#[derive(Clone, Debug)]
enum Column {
    All(Known),
    Each(Vec<Known>),
}

impl Column {
    fn at(&self, lane: usize) -> Known {
        match self {
            Column::All(known) => *known,
            Column::Each(lanes) => lanes[lane],
        }
    }
}

/// Invocations that may get somewhere.
#[derive(Clone, Debug)]
struct Mask(Vec<bool>);

impl Mask {
    fn all(lanes: usize) -> Mask {
        Mask(vec![true; lanes])
    }

    fn none(lanes: usize) -> Mask {
        Mask(vec![false; lanes])
    }

    fn is_empty(&self) -> bool {
        !self.0.contains(&true)
    }

    fn lanes(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().enumerate().filter(|(_, active)| **active).map(|(lane, _)| lane)
    }

    fn filter(&self, keep: impl Fn(usize) -> bool) -> Mask {
        Mask(self.0.iter().enumerate().map(|(lane, active)| *active && keep(lane)).collect())
    }

    fn add(&mut self, other: &Mask) {
        self.0.iter_mut().zip(&other.0).for_each(|(active, other)| *active |= *other);
    }
}

/// Someone who touched something: by which access, and who, if it was only one.
#[derive(Clone, Copy)]
struct Toucher {
    access: AccessId,
    writes: bool,
    lane: usize,
    several: bool,
}

fn note(touchers: &mut Vec<Toucher>, new: Toucher) {
    match touchers.iter_mut().find(|toucher| toucher.access == new.access) {
        Some(toucher) => toucher.several |= new.several || toucher.lane != new.lane,
        None => touchers.push(new),
    }
}

/// What was touched of a buffer since the last barrier.
#[derive(Clone, Default)]
struct Touched {
    elements: HashMap<(Symbol, u32), Vec<Toucher>>,
    /// By symbol: whoever touched an element with it.
    symbols: Vec<(Symbol, Vec<Toucher>)>,
    /// Those whose index can be anything.
    anywhere: Vec<Toucher>,
    all: Vec<Toucher>,
}

impl Touched {
    /// Calls `meet` with everyone who may have touched the element.
    fn for_each(&self, index: Known, meet: &mut impl FnMut(&Toucher)) {
        let Some((symbol, plus)) = element(index) else { return self.all.iter().for_each(meet) };
        self.anywhere.iter().for_each(&mut *meet);
        self.elements.get(&(symbol, plus)).into_iter().flatten().for_each(&mut *meet);
        let others = self.symbols.iter().filter(|(other, _)| *other != symbol);
        others.flat_map(|(_, touchers)| touchers).for_each(meet);
    }

    fn add(&mut self, index: Known, toucher: Toucher) {
        note(&mut self.all, toucher);
        let Some((symbol, plus)) = element(index) else { return note(&mut self.anywhere, toucher) };
        note(self.elements.entry((symbol, plus)).or_default(), toucher);
        match self.symbols.iter_mut().find(|(other, _)| *other == symbol) {
            Some((_, touchers)) => note(touchers, toucher),
            None => self.symbols.push((symbol, vec![toucher])),
        }
    }

    fn join(&mut self, other: &Touched) {
        for (element, touchers) in &other.elements {
            let into = self.elements.entry(*element).or_default();
            touchers.iter().for_each(|toucher| note(into, *toucher));
        }
        for (symbol, touchers) in &other.symbols {
            match self.symbols.iter_mut().find(|(other, _)| other == symbol) {
                Some((_, into)) => touchers.iter().for_each(|toucher| note(into, *toucher)),
                None => self.symbols.push((*symbol, touchers.clone())),
            }
        }
        other.anywhere.iter().for_each(|toucher| note(&mut self.anywhere, *toucher));
        other.all.iter().for_each(|toucher| note(&mut self.all, *toucher));
    }
}

/// The element that an index is, as far as it is known.
fn element(index: Known) -> Option<(Symbol, u32)> {
    match index {
        Known::Bits(bits) => Some((ZERO, bits as u32)),
        Known::Plus(symbol, plus) => Some((symbol, plus)),
        Known::Anything => None,
    }
}

/// By buffer.
type Epoch = Vec<Touched>;

fn join(into: &mut Epoch, other: &Epoch) {
    into.iter_mut().zip(other).for_each(|(into, other)| into.join(other));
}

/// What makes a symbol: the same symbol for the same.
#[derive(PartialEq, Eq, Hash)]
enum Made {
    /// By itself.
    Leaf(Leaf),
    /// The op, without its operands, and these.
    Op(Op, Vec<Known>),
    /// An element of a buffer that nobody writes.
    Load(BufferId, Known),
}

/// The loop around, as far as it has come in this iteration.
struct Frame {
    /// What is carried to the next iteration, and what the loop is left with; by invocation, `None` where none got there.
    next: Vec<Vec<Option<Known>>>,
    left: Vec<Vec<Option<Known>>>,
    continues: Mask,
    breaks: Mask,
    /// Whether the loop has a barrier: then there may be less to meet at its end than at a `continue` or `break`.
    waits: bool,
    /// What was touched where a `continue` or a `break` stands, if there is a barrier.
    at_continue: Option<Epoch>,
    at_break: Option<Epoch>,
}

/// Too much work.
struct TooMuch;

struct Run<'a> {
    ssa: &'a Ssa,
    uniformity: &'a Uniformity,
    lanes: usize,
    iterations: u32,
    /// By value: whether an index, a condition or a bound depends on it.
    needed: Vec<bool>,
    /// By region: whether it holds a barrier, or an access that is noted.
    waits: Vec<bool>,
    touches: Vec<bool>,
    columns: Vec<Option<Column>>,
    symbols: HashMap<Made, Symbol>,
    next_symbol: Symbol,
    frames: Vec<Frame>,
    epoch: Epoch,
    meetings: HashSet<(AccessId, AccessId)>,
    steps: u64,
}

impl<'a> Run<'a> {
    fn new(ssa: &'a Ssa, uniformity: &'a Uniformity, iterations: u32) -> Run<'a> {
        let lanes = ssa.kernel.workgroup_size.iter().map(|size| *size as usize).product();
        let mut run = Run {
            ssa,
            uniformity,
            lanes,
            iterations,
            needed: vec![false; ssa.values.len()],
            waits: vec![false; ssa.regions.len()],
            touches: vec![false; ssa.regions.len()],
            columns: vec![None; ssa.values.len()],
            symbols: HashMap::new(),
            next_symbol: ZERO + 1,
            frames: Vec::new(),
            epoch: vec![Touched::default(); ssa.kernel.buffers.len()],
            meetings: HashSet::new(),
            steps: 0,
        };
        run.survey(ssa.root);
        run.find_needed();
        run
    }

    /// Notes what a region holds.
    fn survey(&mut self, id: RegionId) {
        let ssa = self.ssa;
        for inst in &ssa.region(id).insts {
            let kind = &ssa.inst(*inst).kind;
            match kind {
                InstKind::Barrier | InstKind::GridSync => self.waits[id.index()] = true,
                InstKind::Load { buffer, .. } | InstKind::Store { buffer, .. } | InstKind::Atomic { buffer, .. } => {
                    self.touches[id.index()] |= ssa.kernel.buffer(*buffer).access.is_writable();
                }
                InstKind::Op(_) | InstKind::Subgroup { .. } | InstKind::If { .. } | InstKind::Loop { .. } => {}
            }
            for inner in kind.regions() {
                self.survey(inner);
                self.waits[id.index()] |= self.waits[inner.index()];
                self.touches[id.index()] |= self.touches[inner.index()];
            }
        }
    }

    fn matters(&self, region: RegionId) -> bool {
        self.waits[region.index()] || self.touches[region.index()]
    }

    fn find_needed(&mut self) {
        let ssa = self.ssa;
        // What each result of an `if`, and each result and argument of a loop, may be.
        let mut sources: HashMap<Value, Vec<Value>> = HashMap::new();
        let mut pending: Vec<Value> = Vec::new();
        collect(ssa, ssa.root, &mut Vec::new(), &mut sources, &mut pending);
        while let Some(value) = pending.pop() {
            if std::mem::replace(&mut self.needed[value.index()], true) {
                continue;
            }
            pending.extend(sources.get(&value).into_iter().flatten());
            if let Def::Result(inst, _) = ssa.value(value).def {
                match &ssa.inst(inst).kind {
                    InstKind::Op(op) => pending.extend(op.operands().iter()),
                    InstKind::Load { buffer, index, .. } if !ssa.kernel.buffer(*buffer).access.is_writable() => {
                        pending.push(*index);
                    }
                    InstKind::Load { .. }
                    | InstKind::Store { .. }
                    | InstKind::Atomic { .. }
                    | InstKind::Subgroup { .. }
                    | InstKind::If { .. }
                    | InstKind::Loop { .. }
                    | InstKind::Barrier
                    | InstKind::GridSync => {}
                }
            }
        }
    }

    fn step(&mut self, steps: usize) -> Result<(), TooMuch> {
        self.steps += steps as u64;
        if self.steps > MAX_STEPS { Err(TooMuch) } else { Ok(()) }
    }

    fn fresh(&mut self) -> Known {
        self.next_symbol += 1;
        Known::Plus(self.next_symbol - 1, 0)
    }

    fn symbol(&mut self, made: Made) -> Known {
        let next = self.next_symbol;
        let symbol = *self.symbols.entry(made).or_insert(next);
        if symbol == next {
            self.next_symbol += 1;
        }
        Known::Plus(symbol, 0)
    }

    /// The position of an invocation in its workgroup.
    fn local(&self, lane: usize, axis: Axis) -> u32 {
        let [x, y, _] = self.ssa.kernel.workgroup_size.map(|size| size as usize);
        let position = match axis {
            Axis::X => lane % x,
            Axis::Y => lane / x % y,
            Axis::Z => lane / x / y,
        };
        position as u32
    }

    fn column(&mut self, value: Value) -> Column {
        if let Some(column) = &self.columns[value.index()] {
            return column.clone();
        }
        let column = match self.ssa.value(value).def {
            Def::Leaf(leaf) => self.leaf(leaf),
            // What is not computed because nothing needs it.
            Def::Result(..) | Def::Argument(..) => return Column::All(Known::Anything),
        };
        self.columns[value.index()] = Some(column.clone());
        column
    }

    fn leaf(&mut self, leaf: Leaf) -> Column {
        let kernel = &self.ssa.kernel;
        let number = |n: u32| Known::Bits(u64::from(n));
        match leaf {
            Leaf::Lit { bits } => Column::All(Known::Bits(bits)),
            Leaf::Len { buffer } => match kernel.buffer(buffer).count {
                Some(count) => Column::All(number(count)),
                None => Column::All(self.symbol(Made::Leaf(leaf))),
            },
            Leaf::Builtin { builtin } => match builtin {
                Builtin::Local(axis) => Column::Each((0..self.lanes).map(|lane| number(self.local(lane, axis))).collect()),
                Builtin::Invocation(axis) => {
                    // The first of the workgroup, which is not what the leaf is for the others.
                    let Known::Plus(first, _) = self.symbol(Made::Leaf(leaf)) else { return Column::All(Known::Anything) };
                    Column::Each((0..self.lanes).map(|lane| Known::Plus(first, self.local(lane, axis))).collect())
                }
                Builtin::LocalCount(axis) => Column::All(number(kernel.workgroup_size[axis as usize])),
                Builtin::SubgroupLane => match kernel.subgroup {
                    Some(size) => Column::Each((0..self.lanes).map(|lane| number(lane as u32 % size)).collect()),
                    None => Column::All(Known::Anything),
                },
                Builtin::SubgroupSize => Column::All(kernel.subgroup.map_or(Known::Anything, number)),
                Builtin::Workgroup(_) | Builtin::InvocationCount(_) | Builtin::WorkgroupCount(_) => {
                    Column::All(self.symbol(Made::Leaf(leaf)))
                }
            },
        }
    }

    /// What one invocation computes.
    fn op(&mut self, op: &Op, operands: &[Known]) -> Known {
        let mode = self.ssa.kernel.floats;
        let bits = |n: usize| match operands[n] {
            Known::Bits(bits) => Some(bits),
            Known::Plus(..) | Known::Anything => None,
        };
        let exact = match *op {
            Op::Unary { op, ty, .. } => bits(0).map(|a| vyre_scalar::unary(op, ty, mode, a)),
            Op::Binary { op, ty, .. } => bits(0).zip(bits(1)).map(|(a, b)| vyre_scalar::binary(op, ty, mode, a, b)),
            Op::Ternary { op, ty, .. } => match (bits(0), bits(1), bits(2)) {
                (Some(a), Some(b), Some(c)) => Some(vyre_scalar::ternary(op, ty, mode, a, b, c)),
                (_, _, _) => None,
            },
            Op::Cast { from, to, .. } => bits(0).map(|a| vyre_scalar::cast(from, to, mode, a)),
            Op::Bitcast { from, to, .. } => bits(0).map(|a| vyre_scalar::bitcast(from, to, mode, a)),
            Op::Vector { .. } | Op::Extract { .. } => return Known::Anything,
        };
        if let Some(bits) = exact {
            return Known::Bits(bits);
        }
        let sum = |known: Known, plus: u32| match known {
            Known::Plus(symbol, old) => Known::Plus(symbol, old.wrapping_add(plus)),
            Known::Bits(_) | Known::Anything => Known::Anything,
        };
        match *op {
            Op::Ternary { op: TernaryOp::Select, .. } if bits(0).is_some() => {
                return if bits(0) == Some(0) { operands[2] } else { operands[1] };
            }
            Op::Binary { op: BinaryOp::And, ty: Scalar::Bool, .. } if bits(0) == Some(0) || bits(1) == Some(0) => {
                return Known::Bits(0);
            }
            Op::Binary { op: BinaryOp::Or, ty: Scalar::Bool, .. } if bits(0) == Some(1) || bits(1) == Some(1) => {
                return Known::Bits(1);
            }
            Op::Binary { op, ty: Scalar::U32, .. } => match (op, operands[0], operands[1]) {
                (BinaryOp::Add, known @ Known::Plus(..), Known::Bits(bits))
                | (BinaryOp::Add, Known::Bits(bits), known @ Known::Plus(..)) => return sum(known, bits as u32),
                (BinaryOp::Sub, known @ Known::Plus(..), Known::Bits(bits)) => return sum(known, (bits as u32).wrapping_neg()),
                (BinaryOp::Sub, Known::Plus(one, a), Known::Plus(other, b)) if one == other => {
                    return Known::Bits(u64::from(a.wrapping_sub(b)));
                }
                // Sums and multiples are exact modulo 2³², so that what is added stays apart from what is not known.
                (BinaryOp::Add, Known::Plus(one, a), Known::Plus(other, b)) => {
                    let symbols = vec![Known::Plus(one.min(other), 0), Known::Plus(one.max(other), 0)];
                    let made = self.symbol(Made::Op(number_op(BinaryOp::Add), symbols));
                    return sum(made, a.wrapping_add(b));
                }
                (BinaryOp::Sub, Known::Plus(one, a), Known::Plus(other, b)) => {
                    let symbols = vec![Known::Plus(one, 0), Known::Plus(other, 0)];
                    let made = self.symbol(Made::Op(number_op(BinaryOp::Sub), symbols));
                    return sum(made, a.wrapping_sub(b));
                }
                (BinaryOp::Mul, Known::Plus(symbol, plus), Known::Bits(bits))
                | (BinaryOp::Mul, Known::Bits(bits), Known::Plus(symbol, plus)) => {
                    let operands = vec![Known::Plus(symbol, 0), Known::Bits(bits)];
                    let made = self.symbol(Made::Op(number_op(BinaryOp::Mul), operands));
                    return sum(made, plus.wrapping_mul(bits as u32));
                }
                (BinaryOp::Eq, Known::Plus(one, a), Known::Plus(other, b)) if one == other => {
                    return Known::Bits(u64::from(a == b));
                }
                (BinaryOp::Ne, Known::Plus(one, a), Known::Plus(other, b)) if one == other => {
                    return Known::Bits(u64::from(a != b));
                }
                (_, _, _) => {}
            },
            Op::Unary { .. }
            | Op::Binary { .. }
            | Op::Ternary { .. }
            | Op::Cast { .. }
            | Op::Bitcast { .. }
            | Op::Vector { .. }
            | Op::Extract { .. } => {}
        }
        Known::Anything
    }

    /// What one invocation computes, a symbol if it is a number that only depends on symbols.
    fn op_or_symbol(&mut self, op: &Op, result: Value, operands: Vec<Known>) -> Known {
        match self.op(op, &operands) {
            Known::Anything if self.is_number(result) && !operands.contains(&Known::Anything) => {
                let mut key = *op;
                key.for_each_operand_mut(&mut |operand| *operand = Value(0));
                self.symbol(Made::Op(key, operands))
            }
            known @ (Known::Bits(_) | Known::Plus(..) | Known::Anything) => known,
        }
    }

    fn is_number(&self, value: Value) -> bool {
        self.ssa.value(value).ty == ValueType::Scalar(Scalar::U32)
    }

    /// What a value is of which nothing is known but whether all agree on it.
    fn unknown(&mut self, value: Value) -> Known {
        match self.is_number(value) && self.uniformity.is_uniform(value, Scope::Workgroup) {
            true => self.fresh(),
            false => Known::Anything,
        }
    }

    fn compute(&mut self, result: Value, op: &Op) -> Result<(), TooMuch> {
        let columns: Vec<Column> = op.operands().iter().map(|operand| self.column(*operand)).collect();
        let is_one = columns.iter().all(|column| matches!(column, Column::All(_)));
        let at = |run: &mut Self, lane: usize| {
            let operands = columns.iter().map(|column| column.at(lane)).collect();
            run.op_or_symbol(op, result, operands)
        };
        let column = if is_one {
            self.step(1)?;
            Column::All(at(self, 0))
        } else {
            self.step(self.lanes)?;
            Column::Each((0..self.lanes).map(|lane| at(self, lane)).collect())
        };
        self.columns[result.index()] = Some(column);
        Ok(())
    }

    /// Walks a region with those who may be in it; gives those who may get to its end.
    fn region(&mut self, id: RegionId, mask: &Mask) -> Result<Mask, TooMuch> {
        let ssa = self.ssa;
        let mut mask = mask.clone();
        for inst in &ssa.region(id).insts {
            if mask.is_empty() {
                break;
            }
            self.step(1)?;
            self.inst(*inst, &mut mask)?;
        }
        let end = &ssa.region(id).end;
        match end {
            Terminator::Yield(_) => Ok(mask),
            Terminator::Break(values) | Terminator::Continue(values) => {
                let columns: Vec<Column> = values.iter().map(|value| self.column(*value)).collect();
                let is_break = matches!(end, Terminator::Break(_));
                let epoch = if self.frames.last().is_some_and(|frame| frame.waits) { Some(self.copy()?) } else { None };
                if let Some(frame) = self.frames.last_mut().filter(|_| !mask.is_empty()) {
                    let (into, reached, at) = match is_break {
                        true => (&mut frame.left, &mut frame.breaks, &mut frame.at_break),
                        false => (&mut frame.next, &mut frame.continues, &mut frame.at_continue),
                    };
                    hand_on(into, &columns, &mask);
                    reached.add(&mask);
                    match (at.as_mut(), epoch) {
                        (Some(at), Some(epoch)) => join(at, &epoch),
                        (None, epoch) => *at = epoch,
                        (Some(_), None) => {}
                    }
                }
                Ok(Mask::none(self.lanes))
            }
            Terminator::Return | Terminator::Trap(_) | Terminator::Unreachable => Ok(Mask::none(self.lanes)),
        }
    }

    /// What was touched so far.
    fn copy(&mut self) -> Result<Epoch, TooMuch> {
        let size = self.epoch.iter().map(|touched| touched.elements.len() + touched.all.len()).sum();
        self.step(size)?;
        Ok(self.epoch.clone())
    }

    fn inst(&mut self, id: InstId, mask: &mut Mask) -> Result<(), TooMuch> {
        let ssa = self.ssa;
        let inst = ssa.inst(id);
        match &inst.kind {
            InstKind::Op(op) => {
                if self.needed[inst.results[0].index()] {
                    self.compute(inst.results[0], op)?;
                }
            }
            InstKind::Load { access, buffer, index } => {
                let result = inst.results[0];
                match ssa.kernel.buffer(*buffer).access {
                    Access::Read | Access::Uniform => {
                        if self.needed[result.index()] {
                            self.load(result, *buffer, *index)?;
                        }
                    }
                    Access::ReadWrite | Access::Output | Access::Workgroup => {
                        self.columns[result.index()] = Some(Column::All(Known::Anything));
                        self.touch(*access, *buffer, *index, mask)?;
                    }
                }
            }
            InstKind::Store { access, buffer, index, .. } => self.touch(*access, *buffer, *index, mask)?,
            InstKind::Atomic { access, buffer, index, .. } => {
                inst.results.iter().for_each(|result| self.columns[result.index()] = Some(Column::All(Known::Anything)));
                self.touch(*access, *buffer, *index, mask)?;
            }
            InstKind::Subgroup { .. } => {
                for result in &inst.results {
                    self.columns[result.index()] = Some(Column::All(self.unknown(*result)));
                }
            }
            InstKind::Barrier | InstKind::GridSync => {
                self.epoch.iter_mut().for_each(|touched| *touched = Touched::default());
            }
            InstKind::If { cond, then, otherwise } => self.branch(id, *cond, [*then, *otherwise], mask)?,
            InstKind::Loop { from, to, inits, body } => self.repeat(id, [*from, *to], inits, *body, mask)?,
        }
        Ok(())
    }

    fn load(&mut self, result: Value, buffer: BufferId, index: Value) -> Result<(), TooMuch> {
        let is_number = self.is_number(result);
        let index = self.column(index);
        let at = |run: &mut Self, index: Known| match index {
            Known::Bits(_) | Known::Plus(..) if is_number => run.symbol(Made::Load(buffer, index)),
            Known::Bits(_) | Known::Plus(..) | Known::Anything => Known::Anything,
        };
        let column = match index {
            Column::All(index) => Column::All(at(self, index)),
            Column::Each(lanes) => {
                self.step(lanes.len())?;
                Column::Each(lanes.into_iter().map(|index| at(self, index)).collect())
            }
        };
        self.columns[result.index()] = Some(column);
        Ok(())
    }

    /// Notes an access of those who may be here.
    fn touch(&mut self, access: AccessId, buffer: BufferId, index: Value, mask: &Mask) -> Result<(), TooMuch> {
        let writes = self.ssa.kernel.access(access).kind.writes();
        let column = self.column(index);
        // If all have the same index, two of them show whatever there is to see.
        let most = if let Column::All(_) = column { 2 } else { self.lanes };
        let lanes: Vec<usize> = mask.lanes().take(most).collect();
        let mut steps = 0;
        for lane in lanes {
            let toucher = Toucher { access, writes, lane, several: false };
            let touched = &mut self.epoch[buffer.index()];
            let meetings = &mut self.meetings;
            touched.for_each(column.at(lane), &mut |other| {
                steps += 1;
                if (other.several || other.lane != lane) && (other.writes || writes) {
                    meetings.insert((access.min(other.access), access.max(other.access)));
                }
            });
            touched.add(column.at(lane), toucher);
            steps += 2;
        }
        self.step(steps)
    }

    fn branch(&mut self, id: InstId, cond: Value, arms: [RegionId; 2], mask: &mut Mask) -> Result<(), TooMuch> {
        let ssa = self.ssa;
        let results = &ssa.inst(id).results;
        let cond = self.column(cond);
        // If an arm has a barrier, then all take it or none.
        let waits = arms.iter().any(|arm| self.waits[arm.index()]);
        let before = if waits { Some(self.copy()?) } else { None };
        let mut ends: Vec<Epoch> = Vec::new();
        let mut merged: Vec<Vec<Option<Known>>> = vec![vec![None; self.lanes]; results.len()];
        let mut after = Mask::none(self.lanes);
        for (arm, other) in arms.into_iter().zip([0, 1]) {
            let inside = mask.filter(|lane| cond.at(lane) != Known::Bits(other));
            if inside.is_empty() {
                continue;
            }
            if let Some(before) = &before {
                self.epoch.clone_from(before);
            }
            let end = self.region(arm, &inside)?;
            if let Terminator::Yield(values) = &ssa.region(arm).end
                && !end.is_empty()
            {
                let columns: Vec<Column> = values.iter().map(|value| self.column(*value)).collect();
                self.step(columns.len() * self.lanes)?;
                hand_on(&mut merged, &columns, &end);
                after.add(&end);
                if waits {
                    ends.push(self.copy()?);
                }
            }
        }
        if waits {
            let mut ends = ends.into_iter();
            self.epoch = ends.next().unwrap_or_else(|| vec![Touched::default(); ssa.kernel.buffers.len()]);
            ends.for_each(|end| join(&mut self.epoch, &end));
        }
        self.define(results, merged);
        *mask = after;
        Ok(())
    }

    /// Gives results what was handed on to them. Where two different things were, it is something that all agree on, or anything.
    fn define(&mut self, results: &[Value], values: Vec<Vec<Option<Known>>>) {
        for (result, lanes) in results.iter().zip(values) {
            if !self.needed[result.index()] {
                continue;
            }
            let column = match lanes.iter().flatten().any(|known| *known == Known::Anything) {
                true => {
                    let unknown = self.unknown(*result);
                    let known = |known: Option<Known>| known.filter(|known| *known != Known::Anything).unwrap_or(unknown);
                    Column::Each(lanes.into_iter().map(known).collect())
                }
                false => Column::Each(lanes.into_iter().map(|known| known.unwrap_or(Known::Anything)).collect()),
            };
            self.columns[result.index()] = Some(simplified(column));
        }
    }

    fn repeat(
        &mut self,
        id: InstId,
        [from, to]: [Value; 2],
        inits: &[Value],
        body: RegionId,
        mask: &mut Mask,
    ) -> Result<(), TooMuch> {
        let results = &self.ssa.inst(id).results;
        if !self.matters(body) && !results.iter().any(|result| self.needed[result.index()]) {
            return Ok(());
        }
        let (from, to) = (self.column(from), self.column(to));
        let trips = |lane: usize| match (from.at(lane), to.at(lane)) {
            (Known::Bits(from), Known::Bits(to)) => Some((to as u32).saturating_sub(from as u32)),
            (_, _) => None,
        };
        let trips: Option<Vec<u32>> = (0..self.lanes).map(|lane| if mask.0[lane] { trips(lane) } else { Some(0) }).collect();
        match trips {
            Some(trips) if trips.iter().all(|trips| *trips <= self.iterations) => {
                self.run_loop(id, &from, &trips, inits, body, mask)
            }
            Some(_) | None => self.walk_twice(id, &from, inits, body, mask),
        }
    }

    fn frame(&self, count: usize, waits: bool) -> Frame {
        let none = || vec![vec![None; self.lanes]; count];
        Frame {
            next: none(),
            left: none(),
            continues: Mask::none(self.lanes),
            breaks: Mask::none(self.lanes),
            waits,
            at_continue: None,
            at_break: None,
        }
    }

    /// Runs the iterations of a loop whose bounds are numbers.
    fn run_loop(
        &mut self,
        id: InstId,
        from: &Column,
        trips: &[u32],
        inits: &[Value],
        body: RegionId,
        mask: &mut Mask,
    ) -> Result<(), TooMuch> {
        let ssa = self.ssa;
        let (counter, carried) = ssa.region(body).args.split_first().expect("a loop has a counter");
        let mut columns: Vec<Column> = inits.iter().map(|init| self.column(*init)).collect();
        let mut left: Vec<Vec<Option<Known>>> = vec![vec![None; self.lanes]; inits.len()];
        let mut inside = mask.clone();
        let mut after = Mask::none(self.lanes);
        let mut epochs: Option<Epoch> = None;
        for n in 0..=u32::MAX {
            // Those who have had all iterations leave with what the next would have started with.
            let done = inside.filter(|lane| trips[lane] <= n);
            if !done.is_empty() {
                hand_on(&mut left, &columns, &done);
                after.add(&done);
                also(&mut epochs, self.waits[body.index()].then_some(&self.epoch));
                inside = inside.filter(|lane| trips[lane] > n);
            }
            if inside.is_empty() {
                break;
            }
            self.step(1 + inits.len() * self.lanes)?;
            let count = |lane: usize| match from.at(lane) {
                Known::Bits(from) => Known::Bits(u64::from((from as u32).wrapping_add(n))),
                Known::Plus(..) | Known::Anything => Known::Anything,
            };
            let count = match from {
                Column::All(_) => Column::All(count(0)),
                Column::Each(_) => Column::Each((0..self.lanes).map(count).collect()),
            };
            self.columns[counter.index()] = Some(count);
            for (arg, column) in carried.iter().zip(columns) {
                self.columns[arg.index()] = Some(column);
            }
            let (frame, end) = self.iteration(body, &inside, inits.len())?;
            for (into, broken) in left.iter_mut().zip(&frame.left) {
                into.iter_mut().zip(broken).for_each(|(into, broken)| *into = either(*into, *broken));
            }
            after.add(&frame.breaks);
            also(&mut epochs, frame.at_break.as_ref());
            inside = end;
            inside.add(&frame.continues);
            if let Some(at_continue) = &frame.at_continue {
                join(&mut self.epoch, at_continue);
            }
            self.define(carried, frame.next);
            columns = carried.iter().map(|arg| self.column(*arg)).collect();
        }
        if let Some(epochs) = epochs {
            match self.waits[body.index()] {
                true => self.epoch = epochs,
                false => join(&mut self.epoch, &epochs),
            }
        }
        self.define(&ssa.inst(id).results, left);
        *mask = after;
        Ok(())
    }

    /// One iteration: how it was left, with what is carried on at its end, and who gets there.
    fn iteration(&mut self, body: RegionId, inside: &Mask, count: usize) -> Result<(Frame, Mask), TooMuch> {
        let frame = self.frame(count, self.waits[body.index()]);
        self.frames.push(frame);
        let end = self.region(body, inside)?;
        let mut frame = self.frames.pop().ok_or(TooMuch)?;
        if let Terminator::Yield(values) = &self.ssa.region(body).end {
            let columns: Vec<Column> = values.iter().map(|value| self.column(*value)).collect();
            hand_on(&mut frame.next, &columns, &end);
        }
        Ok((frame, end))
    }

    /// Walks a loop of which is not known how often it runs.
    fn walk_twice(&mut self, id: InstId, from: &Column, inits: &[Value], body: RegionId, mask: &mut Mask) -> Result<(), TooMuch> {
        let ssa = self.ssa;
        let (counter, carried) = ssa.region(body).args.split_first().expect("a loop has a counter");
        let mut after = self.copy()?;
        for _ in 0..2 {
            // How many iterations were before this one.
            let ordinal = self.fresh();
            let count = |run: &mut Self, lane: usize| match (from.at(lane), ordinal) {
                (Known::Bits(from), Known::Plus(symbol, _)) => Known::Plus(symbol, from as u32),
                (from @ Known::Plus(..), ordinal) => run.op(&number_op(BinaryOp::Add), &[from, ordinal]),
                (_, _) => Known::Anything,
            };
            let count = match from {
                Column::All(_) => Column::All(count(self, 0)),
                Column::Each(_) => Column::Each((0..self.lanes).map(|lane| count(self, lane)).collect()),
            };
            self.columns[counter.index()] = Some(count);
            for arg in carried {
                self.columns[arg.index()] = Some(Column::All(self.unknown(*arg)));
            }
            let (frame, _) = self.iteration(body, mask, inits.len())?;
            for epoch in frame.at_continue.iter().chain(&frame.at_break) {
                join(&mut after, epoch);
            }
            join(&mut after, &self.epoch);
            self.copy()?;
            self.epoch.clone_from(&after);
        }
        for result in &ssa.inst(id).results {
            self.columns[result.index()] = Some(Column::All(self.unknown(*result)));
        }
        // Whoever got here may get behind it: there may be no iteration at all.
        Ok(())
    }
}

/// An op on two `u32`, without its operands.
fn number_op(op: BinaryOp) -> Op {
    Op::Binary { op, ty: Scalar::U32, left: Value(0), right: Value(0) }
}

/// What may be the one or the other.
fn either(one: Option<Known>, other: Option<Known>) -> Option<Known> {
    match (one, other) {
        (Some(one), Some(other)) if one == other => Some(one),
        (Some(_), Some(_)) => Some(Known::Anything),
        (known, None) | (None, known) => known,
    }
}

/// Hands values on for those who may be here.
fn hand_on(into: &mut [Vec<Option<Known>>], columns: &[Column], mask: &Mask) {
    for (into, column) in into.iter_mut().zip(columns) {
        for lane in mask.lanes() {
            into[lane] = either(into[lane], Some(column.at(lane)));
        }
    }
}

fn also(epochs: &mut Option<Epoch>, epoch: Option<&Epoch>) {
    match (epochs.as_mut(), epoch) {
        (Some(epochs), Some(epoch)) => join(epochs, epoch),
        (None, epoch) => *epochs = epoch.cloned(),
        (Some(_), None) => {}
    }
}

/// The same column, as one value if all are equal.
fn simplified(column: Column) -> Column {
    match column {
        Column::Each(lanes) if lanes.iter().all(|known| *known == lanes[0]) => Column::All(lanes[0]),
        Column::Each(_) | Column::All(_) => column,
    }
}

/// Finds what results and arguments may be, and what indices, conditions and bounds are.
fn collect(ssa: &Ssa, id: RegionId, loops: &mut Vec<InstId>, sources: &mut HashMap<Value, Vec<Value>>, needed: &mut Vec<Value>) {
    for inst_id in &ssa.region(id).insts {
        let inst = ssa.inst(*inst_id);
        match &inst.kind {
            InstKind::Load { buffer, index, .. }
            | InstKind::Store { buffer, index, .. }
            | InstKind::Atomic { buffer, index, .. } => {
                if ssa.kernel.buffer(*buffer).access.is_writable() {
                    needed.push(*index);
                }
            }
            InstKind::If { cond, then, otherwise } => {
                needed.push(*cond);
                for arm in [*then, *otherwise] {
                    if let Terminator::Yield(values) = &ssa.region(arm).end {
                        for (result, value) in inst.results.iter().zip(values) {
                            sources.entry(*result).or_default().push(*value);
                        }
                    }
                }
            }
            InstKind::Loop { from, to, inits, body } => {
                needed.extend([*from, *to]);
                hand_over(ssa, *inst_id, inits, sources);
                if let Terminator::Yield(values) = &ssa.region(*body).end {
                    hand_over(ssa, *inst_id, values, sources);
                }
            }
            InstKind::Op(_) | InstKind::Subgroup { .. } | InstKind::Barrier | InstKind::GridSync => {}
        }
        let is_loop = matches!(inst.kind, InstKind::Loop { .. });
        if is_loop {
            loops.push(*inst_id);
        }
        inst.kind.regions().for_each(|inner| collect(ssa, inner, loops, sources, needed));
        if is_loop {
            loops.pop();
        }
    }
    match (&ssa.region(id).end, loops.last()) {
        (Terminator::Break(values) | Terminator::Continue(values), Some(around)) => hand_over(ssa, *around, values, sources),
        (
            Terminator::Break(_)
            | Terminator::Continue(_)
            | Terminator::Yield(_)
            | Terminator::Return
            | Terminator::Trap(_)
            | Terminator::Unreachable,
            _,
        ) => {}
    }
}

/// Notes that a loop may carry these values, and result in them.
fn hand_over(ssa: &Ssa, id: InstId, values: &[Value], sources: &mut HashMap<Value, Vec<Value>>) {
    let InstKind::Loop { body, .. } = ssa.inst(id).kind else { return };
    let args = ssa.region(body).args.iter().skip(1);
    for ((arg, result), value) in args.zip(&ssa.inst(id).results).zip(values) {
        sources.entry(*arg).or_default().push(*value);
        // A loop results in what it carries when it ends.
        sources.entry(*result).or_default().extend([*value, *arg]);
    }
}
