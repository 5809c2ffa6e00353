//! The facts about a program, and a watcher of its runs that holds them against what happens.

mod path;

use path::{Path, Step};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::num::FpCategory;
use std::sync::atomic::{AtomicU64, Ordering};
use vyre_foundation::analysis::{
    Affine, Beginning, Bounds, Epochs, Floats, Forms, Kinds, Liveness, Loops, Numbers, Outputs, Range, Ranges, Scope, Stride,
    Trips, Uniformity,
};
use vyre_foundation::ir::{FloatMode, Scalar};
use vyre_foundation::kernel::{AccessId, AccessKind, BufferId, ExprId, Kernel, MemoryAccess, StmtId, StmtKind};
use vyre_foundation::launch::Launch;
use vyre_foundation::ssa::{Def, InstId, InstKind, Leaf, RegionId, Ssa, Value as SsaValue};
use vyre_foundation::validate::Validated;
use vyre_reference::trace::{At, Sink};
use vyre_scalar::Value;
use vyre_spec::ValueType;

macro_rules! claims {
    ($( $name:ident $least:literal $what:literal; )*) => {
        /// A kind of claim.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Claim { $( #[doc = $what] $name, )* }

        /// Every kind, what is counted, and how many there are at least in 1000 programs.
        const CLAIMS: &[(Claim, &str, u64)] = &[$( (Claim::$name, $what, $least) ),*];
    };
}

claims! {
    UniformInDispatch 1000 "values that two invocations of the dispatch agreed on, as they had to";
    UniformInWorkgroup 1000 "values that two invocations of a workgroup agreed on, as they had to";
    UniformInSubgroup 1000 "values that two invocations of a subgroup agreed on, as they had to";
    Branch 1000 "branches that two invocations took alike";
    LoopLeft 1000 "loops that two invocations left after as many iterations";
    Exit 100 "iterations that were ended by a `break` or `continue` for all or for none";
    Together 1000 "regions that were reached by all that were not retired";
    Synchronises 100 "rendezvous below statements that say so";
    Number 1000 "expressions equal to another one before";
    Range 1000 "numbers in a range that is not everything";
    Length 100 "numbers below a length, or not above it";
    Form 1000 "values that are the sum of their form";
    Same 1000 "values without a stride that are equal in two lanes";
    Stride 1000 "values that differ by a stride in two lanes";
    InBounds 1000 "accesses that are proven to be in bounds";
    GroupEpoch 100 "pairs of accesses that no epoch of a workgroup has both of";
    GridEpoch 10 "pairs of accesses that no epoch of the grid has both of";
    Iterations 100 "accesses in loops whose iterations are kept apart by a barrier";
    GroupBeginning 1000 "accesses behind the barrier, or the start, that their epoch begins with";
    GridBeginning 100 "accesses behind the grid barrier, or the start, that their epoch begins with";
    Trips 1000 "loops that were left after a number of iterations that has a bound";
    ExactTrips 1000 "loops that were left after the one number of iterations that it can be";
    ExactBound 100 "loops that ended by bounds that are known, with ways out that were not taken";
    NoBreak 1000 "loops that nothing could leave but their bounds";
    Covered 100 "elements of outputs that are said to be written completely";
    CoveredBySeveral 0 "outputs with more elements than there are invocations that are said to be written completely";
    CoveredByRows 0 "outputs with more elements than there are invocations in a row that are said to be written completely";
    CoveredOverridden 0 "outputs that are said to be written completely by workgroups of another shape than the declared one";
    Poisoned 10 "launches that gave the same bytes when such outputs were not zero at the start";
    NotNan 100 "floats that were said not to be NaN";
    NotInfinite 100 "floats that were said not to be infinite";
    NotSubnormal 100 "floats that were said not to be subnormal, under `floats ieee`";
    NotNegativeZero 100 "floats that were said not to be −0, under `floats ieee`";
    Canonical 100 "floats under `floats canonical`";
    NarrowCanonical 100 "floats under `floats canonical` of which more is known";
    DeadAtBarrier 100 "values that a barrier does not have to keep";
    DeadAfterLoop 1000 "values that are not needed behind a loop";
    Pressure 100 "ways that held as many words at once as is said to be the most";
    Deterministic 200 "launches that are proven to be deterministic";
}

/// How often each kind of claim was met.
pub struct Counts([u64; CLAIMS.len()]);

impl Default for Counts {
    fn default() -> Counts {
        Counts([0; CLAIMS.len()])
    }
}

impl Counts {
    pub fn add(&mut self, claim: Claim) {
        self.0[claim as usize] += 1;
    }

    pub fn totals() -> Vec<AtomicU64> {
        CLAIMS.iter().map(|_| AtomicU64::new(0)).collect()
    }

    pub fn add_to(&self, totals: &[AtomicU64]) {
        for (total, count) in totals.iter().zip(self.0) {
            total.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// Prints the totals, and demands that each kind occurred.
    pub fn check(totals: &[AtomicU64], programs: u64) {
        for ((claim, what, least), total) in CLAIMS.iter().zip(totals) {
            let total = total.load(Ordering::Relaxed);
            println!("{total:>12} {what}");
            assert!(total * 1000 >= least * programs, "{claim:?}: only {total} in {programs} programs");
        }
    }
}

/// For small keys: multiply and rotate.
#[derive(Default)]
pub struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64((*byte).into()));
    }

    fn write_u32(&mut self, n: u32) {
        self.write_u64(n.into());
    }

    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0.rotate_left(26) ^ n).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 ^= self.0 >> 32;
    }
}

type Map<K, V> = HashMap<K, V, BuildHasherDefault<Mix>>;

/// What is claimed about a program.
pub struct Facts<'a> {
    kernel: &'a Kernel,
    ssa: &'a Ssa,
    uniformity: &'a Uniformity,
    numbers: Numbers,
    bounds: Bounds,
    group_epochs: Epochs,
    grid_epochs: Epochs,
    floats: Floats,
    liveness: Liveness,
    lengths: &'a [u32],
    /// Invocations of a workgroup, and of the dispatch.
    per_workgroup: u32,
    invocations: u32,
    /// By value: how many loops are around where it is defined.
    depths: Vec<usize>,
    /// By number: how many loops are around all values that have it.
    number_depths: Vec<usize>,
    ranges: Vec<Option<Range>>,
    forms: Vec<Option<Affine>>,
    /// By value: how it differs from lane to lane of a vector of `width`.
    strides: Vec<Option<u32>>,
    width: u32,
    /// By expression: the `if` whose condition it is.
    conditions: Vec<Option<StmtId>>,
    /// By `if` and loop: the regions below, `then` first.
    regions: Vec<Vec<RegionId>>,
    /// By statement and region: the widest scope for which they do not diverge, or are reached together.
    stmts: Vec<Option<Scope>>,
    together: Vec<Option<Scope>>,
    /// By loop: whether a `break` or `continue` of it is said not to diverge, or it itself.
    watched_exits: Vec<bool>,
    /// By loop: whether every iteration has a barrier.
    synchronised: Vec<bool>,
    /// By loop: what is known of its iterations.
    trips: Vec<Option<Trips>>,
    /// By barrier: its instruction.
    barriers: Vec<Option<InstId>>,
    /// By buffer: whether all of it is said to be written.
    covered: Vec<bool>,
}

const SCOPES: [Scope; 3] = [Scope::Dispatch, Scope::Workgroup, Scope::Subgroup];

impl<'a> Facts<'a> {
    pub fn of(validated: &'a Validated, launch: &'a Launch, width: u32) -> Facts<'a> {
        let (kernel, ssa, uniformity) = (validated.kernel(), validated.ssa(), validated.uniformity());
        let numbers = Numbers::of(ssa);
        let group_epochs = Epochs::of_workgroup(ssa);
        let values = || (0..ssa.values.len() as u32).map(SsaValue);
        let is_u32 = |value: SsaValue| ssa.value(value).ty == ValueType::Scalar(Scalar::U32);

        let mut chains =
            Chains { ssa, regions: vec![Vec::new(); kernel.stmts.len()], chains: vec![Vec::new(); ssa.values.len()] };
        chains.region(ssa.root, &mut Vec::new());
        let Chains { regions, chains, .. } = chains;
        let mut common: Vec<Option<&[StmtId]>> = vec![None; ssa.values.len()];
        for value in values() {
            let chain = &chains[value.index()][..];
            let common = &mut common[numbers.of_value(value).index()];
            *common = Some(match *common {
                None => chain,
                Some(old) => &old[..old.iter().zip(chain).take_while(|(a, b)| a == b).count()],
            });
        }
        let number_depths = common.iter().map(|chain| chain.map_or(0, <[_]>::len)).collect();

        let known = Ranges::of(ssa);
        let ranges = values().map(|value| {
            let range = known.of_value(value);
            let says = range.low > 0 || range.high < u32::MAX || (0..64).any(|n| range.not_above().contains(BufferId(n)));
            let typed = is_u32(value) || ssa.value(value).ty == ValueType::Scalar(Scalar::Bool);
            Some(range).filter(|_| says && typed)
        });
        let all_forms = Forms::of(ssa, &numbers);
        let form = |value: SsaValue| is_u32(value).then(|| all_forms.form(ssa, &numbers, value));
        let is_atom = |form: &Affine| form.constant == 0 && matches!(&form.terms[..], [(product, 1)] if product.len() == 1);
        let stride = |value: SsaValue| match all_forms.stride(ssa, &numbers, uniformity, value, width, launch.workgroup_size) {
            Stride::Constant(stride) => Some(stride),
            Stride::Unknown => None,
        };
        let widest = |holds: &dyn Fn(Scope) -> bool| SCOPES.into_iter().find(|scope| holds(*scope));
        let stmts: Vec<Option<Scope>> =
            (0..kernel.stmts.len() as u32).map(|n| widest(&|scope| !uniformity.diverges(StmtId(n), scope))).collect();
        let mut conditions = vec![None; kernel.exprs.len()];
        let mut watched_exits = vec![false; kernel.stmts.len()];
        let mut around: Vec<StmtId> = Vec::new();
        for (n, stmt) in kernel.stmts.iter().enumerate() {
            let id = StmtId(n as u32);
            around.retain(|outer| id < kernel.stmt(*outer).end);
            match stmt.kind {
                StmtKind::If { cond, .. } => conditions[cond.index()] = Some(id),
                StmtKind::Loop { .. } => {
                    watched_exits[n] = stmts[n].is_some();
                    around.push(id);
                }
                StmtKind::Break | StmtKind::Continue => {
                    if let (Some(inner), Some(_)) = (around.last(), stmts[n]) {
                        watched_exits[inner.index()] = true;
                    }
                }
                StmtKind::Let { .. }
                | StmtKind::Assign { .. }
                | StmtKind::Store { .. }
                | StmtKind::Atomic { .. }
                | StmtKind::Subgroup { .. }
                | StmtKind::Return
                | StmtKind::Barrier
                | StmtKind::GridSync
                | StmtKind::Trap { .. }
                | StmtKind::Scope { .. } => {}
            }
        }
        let known = Loops::of(ssa);
        let mut trips = vec![None; kernel.stmts.len()];
        let mut barriers = vec![None; kernel.stmts.len()];
        ssa.for_each_inst(ssa.root, &mut |id, inst| match inst.kind {
            InstKind::Loop { .. } => trips[inst.stmt.index()] = known.trips(id),
            InstKind::Barrier | InstKind::GridSync => barriers[inst.stmt.index()] = Some(id),
            InstKind::Op(_)
            | InstKind::Load { .. }
            | InstKind::Store { .. }
            | InstKind::Atomic { .. }
            | InstKind::Subgroup { .. }
            | InstKind::If { .. } => {}
        });
        let outputs = Outputs::of(ssa);
        let covered = (0..kernel.buffers.len() as u32).map(|n| outputs.is_covered(BufferId(n), launch)).collect();
        let synchronised = (0..kernel.stmts.len())
            .map(|n| {
                let is_loop = matches!(kernel.stmts[n].kind, StmtKind::Loop { .. });
                is_loop && regions[n].first().is_some_and(|body| group_epochs.is_synchronised(*body))
            })
            .collect();
        Facts {
            kernel,
            ssa,
            uniformity,
            bounds: Bounds::of(ssa),
            grid_epochs: Epochs::of_grid(ssa),
            group_epochs,
            floats: Floats::of(ssa),
            liveness: Liveness::of(ssa),
            lengths: &launch.lengths,
            per_workgroup: launch.workgroup_size.iter().product(),
            invocations: launch.invocations() as u32,
            depths: chains.iter().map(Vec::len).collect(),
            number_depths,
            ranges: ranges.collect(),
            forms: values().map(|value| form(value).filter(|form| !is_atom(form))).collect(),
            strides: values().map(|value| is_u32(value).then(|| stride(value)).flatten()).collect(),
            width,
            conditions,
            together: (0..ssa.regions.len() as u32)
                .map(|n| widest(&|scope| uniformity.is_reached_together(RegionId(n), scope)))
                .collect(),
            regions,
            stmts,
            watched_exits,
            synchronised,
            trips,
            barriers,
            covered,
            numbers,
        }
    }

    /// The outputs that the launch writes completely.
    pub fn covered(&self) -> impl Iterator<Item = BufferId> {
        (0..self.covered.len() as u32).map(BufferId).filter(|buffer| self.covered[buffer.index()])
    }

    /// Which of the workgroups, or of the subgroups, an invocation is part of.
    fn instance(&self, scope: Scope, invocation: u32) -> u32 {
        match scope {
            Scope::Dispatch => 0,
            Scope::Workgroup => invocation / self.per_workgroup,
            // A subgroup divides the workgroup, and lanes are numbered along.
            Scope::Subgroup => invocation / self.kernel.subgroup.expect("what is uniform in a subgroup has one"),
        }
    }
}

/// Finds the loops around every value, and the regions below every statement.
struct Chains<'a> {
    ssa: &'a Ssa,
    regions: Vec<Vec<RegionId>>,
    chains: Vec<Vec<StmtId>>,
}

impl Chains<'_> {
    fn region(&mut self, id: RegionId, around: &mut Vec<StmtId>) {
        let ssa = self.ssa;
        for inst in &ssa.region(id).insts {
            let inst = ssa.inst(*inst);
            inst.results.iter().for_each(|value| self.chains[value.index()].clone_from(around));
            let is_loop = matches!(inst.kind, InstKind::Loop { .. });
            if is_loop {
                around.push(inst.stmt);
            }
            for inner in inst.kind.regions() {
                self.regions[inst.stmt.index()].push(inner);
                ssa.region(inner).args.iter().for_each(|value| self.chains[value.index()].clone_from(around));
                self.region(inner, around);
            }
            if is_loop {
                around.pop();
            }
        }
    }
}

/// An iteration of a loop, for all invocations that are in it: 0 is the program itself.
type Iteration = u32;

/// Where an invocation is, such that what comes first in the program comes first in order.
type Position = Vec<u32>;

fn position(at: At<'_>, stmt: StmtId) -> Position {
    at.loops.iter().flat_map(|(stmt, ordinal)| [stmt.0, *ordinal]).chain([stmt.0]).collect()
}

#[derive(Clone, Default)]
struct Invocation {
    /// The iterations it is in, the innermost last.
    iterations: Vec<Iteration>,
    /// By number: the last value that was seen, in which iteration and by which expression.
    seen: Vec<Option<(Iteration, ExprId, Value)>>,
    retired: Option<Position>,
    /// Whether its iteration was ended by a `break` or `continue`.
    cut: bool,
    /// Whether it has just met a `break`.
    breaks: bool,
    /// The last barrier, and the last grid barrier, that it came to.
    barrier: Option<InstId>,
    grid_barrier: Option<InstId>,
}

impl Invocation {
    /// The iteration of the loop at this depth, counted from the outside.
    fn iteration(&self, depth: usize) -> Option<Iteration> {
        match depth {
            0 => Some(0),
            _ => self.iterations.get(depth - 1).copied(),
        }
    }

    fn innermost(&self) -> Iteration {
        self.iterations.last().copied().unwrap_or(0)
    }
}

/// What several invocations have to agree on.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Shared {
    Value(u32),
    Branch(u32),
    Left(u32),
    Vector(u32),
}

/// Accesses of an epoch.
#[derive(Clone, Default)]
struct Epoch {
    accesses: Vec<AccessId>,
    has: Vec<bool>,
}

impl Epoch {
    fn add(&mut self, access: AccessId) {
        if self.has.len() <= access.index() {
            self.has.resize(access.index() + 1, false);
        }
        if !std::mem::replace(&mut self.has[access.index()], true) {
            self.accesses.push(access);
        }
    }

    /// Ends it; gives two accesses in it that should not have met.
    fn end(&mut self, epochs: &Epochs) -> Option<(AccessId, AccessId)> {
        self.has.clear();
        let accesses = std::mem::take(&mut self.accesses);
        let pairs = accesses.iter().enumerate().flat_map(|(n, a)| accesses[..=n].iter().map(|b| (*a, *b)));
        pairs.into_iter().find(|(a, b)| !epochs.may_meet(*a, *b))
    }
}

/// What a float with these bits is: its kind, and whether it is NaN, infinite, subnormal, −0.
fn kind(ty: Scalar, bits: u64) -> (Kinds, [bool; 4]) {
    let (category, is_negative) = match ty {
        Scalar::F64 => (f64::from_bits(bits).classify(), f64::from_bits(bits).is_sign_negative()),
        Scalar::F32 | Scalar::Bool | Scalar::U32 | Scalar::I32 | Scalar::U64 | Scalar::I64 => {
            (f32::from_bits(bits as u32).classify(), f32::from_bits(bits as u32).is_sign_negative())
        }
    };
    let [positive, negative] = match category {
        FpCategory::Nan => [Kinds::NAN; 2],
        FpCategory::Infinite => [Kinds::INFINITY, Kinds::NEGATIVE_INFINITY],
        FpCategory::Subnormal => [Kinds::SUBNORMAL, Kinds::NEGATIVE_SUBNORMAL],
        FpCategory::Zero => [Kinds::ZERO, Kinds::NEGATIVE_ZERO],
        FpCategory::Normal => [Kinds::POSITIVE, Kinds::NEGATIVE],
    };
    let is = |other: FpCategory| category == other;
    let is_negative_zero = is(FpCategory::Zero) && is_negative;
    let kind = if is_negative { negative } else { positive };
    (kind, [is(FpCategory::Nan), is(FpCategory::Infinite), is(FpCategory::Subnormal), is_negative_zero])
}

/// Those whose choices are kept: one in the middle, and the last.
fn watched_paths(invocations: u32) -> Vec<(u32, Path)> {
    let mut watched = vec![invocations / 3, invocations.saturating_sub(1)];
    watched.dedup();
    watched.into_iter().map(|who| (who, Path::default())).filter(|(who, _)| *who < invocations).collect()
}

/// How an iteration ended: by a statement, or at the end of the body.
type Ended = Option<StmtId>;

/// A run that is held against the facts.
pub struct Watch<'f, 'a, 'c> {
    facts: &'f Facts<'a>,
    counts: &'c mut Counts,
    wrong: Option<String>,
    invocations: Vec<Invocation>,
    iterations: Map<(Iteration, u32, u32), Iteration>,
    /// By what, where, and among whom: who said first what it is.
    shared: Map<(Shared, Iteration, u32), (u32, Value)>,
    exits: Map<Iteration, (StmtId, Vec<(u32, Ended)>)>,
    reached: Map<(u32, Iteration), (Position, Vec<u32>)>,
    /// By workgroup, and of the grid.
    epochs: Vec<Epoch>,
    grid: Epoch,
    /// By workgroup, loop and the iteration around it: the first and the last iteration in which there was an access in this epoch.
    spans: Map<(u32, u32, Iteration), (u32, u32)>,
    accessed: Vec<bool>,
    /// By buffer that is said to be written completely: the elements that were stored to.
    written: Vec<Option<Vec<bool>>>,
    /// The choices of some invocations.
    paths: Vec<(u32, Path)>,
}

impl<'f, 'a, 'c> Watch<'f, 'a, 'c> {
    pub fn new(facts: &'f Facts<'a>, counts: &'c mut Counts) -> Self {
        Watch {
            facts,
            counts,
            wrong: None,
            invocations: vec![Invocation::default(); facts.invocations as usize],
            iterations: Map::default(),
            shared: Map::default(),
            exits: Map::default(),
            reached: Map::default(),
            epochs: vec![Epoch::default(); (facts.invocations / facts.per_workgroup.max(1)) as usize],
            grid: Epoch::default(),
            spans: Map::default(),
            accessed: vec![false; facts.kernel.accesses.len()],
            written: facts
                .covered
                .iter()
                .zip(facts.lengths)
                .map(|(covered, length)| covered.then(|| vec![false; *length as usize]))
                .collect(),
            paths: watched_paths(facts.invocations),
        }
    }

    fn step(&mut self, who: u32, step: Step) {
        if let Some((_, path)) = self.paths.iter_mut().find(|(of, _)| *of == who) {
            path.push(step);
        }
    }

    fn fail(&mut self, what: impl FnOnce() -> String) {
        if self.wrong.is_none() {
            self.wrong = Some(what());
        }
    }

    /// Notes what an invocation says; gives who said something else before.
    fn agree(&mut self, what: Shared, iteration: Iteration, among: u32, who: u32, value: Value) -> Result<bool, (u32, Value)> {
        let (first, said) = *self.shared.entry((what, iteration, among)).or_insert((who, value));
        if said == value { Ok(first != who) } else { Err((first, said)) }
    }

    fn number(&mut self, who: u32, expr: ExprId, ssa: SsaValue, value: Value) {
        let facts = self.facts;
        let number = facts.numbers.of_value(ssa);
        let own = &mut self.invocations[who as usize];
        own.seen.resize(facts.ssa.values.len(), None);
        let Some(iteration) = own.iteration(facts.number_depths[number.index()]) else {
            return self.fail(|| format!("%{} is used outside of its loop", ssa.0));
        };
        let before = own.seen[number.index()].replace((iteration, expr, value));
        if let Some((then, other, old)) = before
            && then == iteration
        {
            if old != value {
                self.fail(|| format!("invocation {who}: %{} is {value:?}, and by its number {old:?}", ssa.0));
            } else if other != expr {
                self.counts.add(Claim::Number);
            }
        }
    }

    fn uniform(&mut self, who: u32, ssa: SsaValue, iteration: Iteration, value: Value) {
        let facts = self.facts;
        let Some(scope) = facts.uniformity.width(ssa) else { return };
        match self.agree(Shared::Value(ssa.0), iteration, facts.instance(scope, who), who, value) {
            Ok(false) => {}
            Ok(true) => self.counts.add(match scope {
                Scope::Dispatch => Claim::UniformInDispatch,
                Scope::Workgroup => Claim::UniformInWorkgroup,
                Scope::Subgroup => Claim::UniformInSubgroup,
            }),
            Err((other, said)) => {
                self.fail(|| {
                    format!("%{} is uniform in the {scope:?}, and {value:?} in invocation {who}, {said:?} in {other}", ssa.0)
                });
            }
        }
    }

    fn range(&mut self, who: u32, ssa: SsaValue, number: u32) {
        let Some(range) = &self.facts.ranges[ssa.index()] else { return };
        let mut inside = (range.low..=range.high).contains(&number);
        for (n, length) in self.facts.lengths.iter().enumerate() {
            let buffer = BufferId(n as u32);
            let (below, at_most) = (range.below.contains(buffer), range.at_most.contains(buffer));
            inside &= (!below || number < *length) && (!at_most || number <= *length);
            if below || at_most {
                self.counts.add(Claim::Length);
            }
        }
        self.counts.add(Claim::Range);
        if !inside {
            let lengths = self.facts.lengths;
            self.fail(|| format!("invocation {who}: %{} is {number}, and said to be in {range:?}, lengths {lengths:?}", ssa.0));
        }
    }

    fn form(&mut self, who: u32, ssa: SsaValue, number: u32) {
        let facts = self.facts;
        let Some(form) = &facts.forms[ssa.index()] else { return };
        let own = &self.invocations[who as usize];
        let atom = |atom: SsaValue| {
            let (iteration, _, value) = own.seen[atom.index()]?;
            (own.iteration(facts.number_depths[atom.index()]) == Some(iteration)).then(|| value.scalar() as u32)
        };
        let sum = form.terms.iter().try_fold(form.constant, |sum, (product, times)| {
            let product = product.iter().try_fold(*times, |product, factor| Some(product.wrapping_mul(atom(*factor)?)))?;
            Some(sum.wrapping_add(product))
        });
        if sum == Some(number) {
            self.counts.add(Claim::Form);
        } else {
            self.fail(|| format!("invocation {who}: %{} is {number}, and its form {form:?} gives {sum:?}", ssa.0));
        }
    }

    fn stride(&mut self, who: u32, ssa: SsaValue, iteration: Iteration, number: u32) {
        let facts = self.facts;
        let Some(stride) = facts.strides[ssa.index()] else { return };
        let (group, lane) = (who / facts.per_workgroup, who % facts.per_workgroup);
        let vector = group * facts.per_workgroup.div_ceil(facts.width) + lane / facts.width;
        // What the first lane of the vector has.
        let base = number.wrapping_sub((lane % facts.width).wrapping_mul(stride));
        match self.agree(Shared::Vector(ssa.0), iteration, vector, who, u64::from(base).into()) {
            Ok(false) => {}
            Ok(true) => self.counts.add(if stride == 0 { Claim::Same } else { Claim::Stride }),
            Err((other, _)) => {
                let width = facts.width;
                self.fail(|| format!("%{} differs by {stride} in {width} lanes, and not so in {who} and {other}", ssa.0));
            }
        }
    }

    fn float(&mut self, who: u32, ssa: SsaValue, value: Value) {
        let facts = self.facts;
        let (ty, count) = match facts.ssa.value(ssa).ty {
            ValueType::Scalar(ty) => (ty, 1),
            ValueType::Vector(ty, count) => (ty, usize::from(count)),
        };
        if !ty.is_float() {
            return;
        }
        let kinds = facts.floats.kinds(ssa);
        let may_be = [kinds.may_be_nan(), kinds.may_be_infinite(), kinds.may_be_subnormal(), kinds.may_be_negative_zero()];
        let claims = [Claim::NotNan, Claim::NotInfinite, Claim::NotSubnormal, Claim::NotNegativeZero];
        match facts.kernel.floats {
            FloatMode::Ieee => {
                may_be.iter().zip(claims).filter(|(may_be, _)| !**may_be).for_each(|(_, claim)| self.counts.add(claim));
            }
            FloatMode::Canonical => {
                let [nan, infinite, subnormal, negative_zero] = may_be;
                self.counts.add(Claim::Canonical);
                if !nan || !infinite {
                    self.counts.add(Claim::NarrowCanonical);
                }
                if subnormal || negative_zero {
                    self.fail(|| format!("%{} is {kinds:?} under `floats canonical`", ssa.0));
                }
            }
        }
        for bits in &value.0[..count] {
            let (kind, is) = kind(ty, *bits);
            if !kinds.meets(kind) || is.iter().zip(may_be).any(|(is, may_be)| *is && !may_be) {
                self.fail(|| format!("invocation {who}: %{} is {bits:#x}, and its kinds are {kinds:?}", ssa.0));
            }
        }
    }

    fn trips(&mut self, who: u32, stmt: StmtId, iterations: u32) {
        let broke = std::mem::take(&mut self.invocations[who as usize].breaks);
        let Some(trips) = self.facts.trips[stmt.index()] else {
            return self.fail(|| format!("nothing is known of {stmt:?}, and it was reached"));
        };
        let exact = trips.exact();
        let fits = iterations <= trips.at_most
            && (broke || iterations >= trips.at_least)
            && (!broke || trips.breaks)
            && exact.is_none_or(|exact| iterations == exact);
        if !fits {
            return self.fail(|| format!("{stmt:?} has {trips:?}, and {who} leaves it after {iterations}, by a break: {broke}"));
        }
        if trips.at_most < u32::MAX {
            self.counts.add(Claim::Trips);
        }
        if exact.is_some() {
            self.counts.add(Claim::ExactTrips);
        } else if !broke && trips.at_least == trips.at_most {
            self.counts.add(Claim::ExactBound);
        }
        if !trips.breaks && !trips.retires {
            self.counts.add(Claim::NoBreak);
        }
    }

    fn beginning(&mut self, who: u32, access: AccessId) {
        let facts = self.facts;
        let own = &self.invocations[who as usize];
        let uses = &facts.kernel.uses;
        let sides = [
            (&facts.group_epochs, own.barrier, uses.barrier || uses.grid_sync, Claim::GroupBeginning),
            (&facts.grid_epochs, own.grid_barrier, uses.grid_sync, Claim::GridBeginning),
        ];
        for (epochs, barrier, has_any, claim) in sides {
            let Some(beginnings) = epochs.common(access, access) else { continue };
            let began = barrier.map_or(Beginning::Start, Beginning::Barrier);
            if !beginnings.contains(&began) {
                self.fail(|| format!("{access:?} is in epochs that begin with {beginnings:?}, and in {who} it was {began:?}"));
            } else if has_any {
                self.counts.add(claim);
            }
        }
    }

    /// Notes that an element of an output was touched.
    fn written(&mut self, who: u32, access: AccessId, element: u32) {
        let MemoryAccess { kind, buffer, .. } = self.facts.kernel.accesses[access.index()];
        let Some(written) = &mut self.written[buffer.index()] else { return };
        match kind {
            AccessKind::Store => written[element as usize] = true,
            AccessKind::Load | AccessKind::AtomicLoad | AccessKind::Atomic => {
                let is_written = written[element as usize];
                if !is_written {
                    self.fail(|| format!("{buffer:?} is written before it is read, and {who} reads element {element} first"));
                }
            }
        }
    }

    fn branch(&mut self, at: At<'_>, stmt: StmtId, taken: bool) {
        let facts = self.facts;
        let who = at.invocation;
        self.step(who, Step::Branch(taken));
        let iteration = self.invocations[who as usize].innermost();
        if let Some(scope) = facts.stmts[stmt.index()] {
            let among = facts.instance(scope, who);
            match self.agree(Shared::Branch(stmt.0), iteration, among, who, u64::from(taken).into()) {
                Ok(false) => {}
                Ok(true) => self.counts.add(Claim::Branch),
                Err((other, _)) => self.fail(|| format!("{stmt:?} does not diverge, and {who} and {other} part")),
            }
        }
        let region = facts.regions[stmt.index()][usize::from(!taken)];
        self.reach(at, region, iteration, stmt);
    }

    fn reach(&mut self, at: At<'_>, region: RegionId, iteration: Iteration, stmt: StmtId) {
        if self.facts.together[region.index()].is_some() {
            let who = &mut self.reached.entry((region.0, iteration)).or_insert_with(|| (position(at, stmt), Vec::new())).1;
            who.push(at.invocation);
        }
    }

    fn ended(&mut self, who: u32, iteration: Iteration, stmt: StmtId, how: Ended) {
        if self.facts.watched_exits[stmt.index()] {
            self.exits.entry(iteration).or_insert((stmt, Vec::new())).1.push((who, how));
        }
    }

    /// After the run: what can only be told then. Gives what was wrong. A run that trapped has no outputs.
    pub fn finish(mut self, trapped: bool) -> Option<String> {
        for (who, path) in std::mem::take(&mut self.paths) {
            if let Some(wrong) = path::wrong(self.facts.ssa, &self.facts.liveness, &path, self.counts) {
                self.fail(|| format!("invocation {who}: {wrong}"));
            }
        }
        for (n, written) in std::mem::take(&mut self.written).into_iter().enumerate() {
            let Some(written) = written.filter(|_| !trapped) else { continue };
            match written.iter().position(|written| !written) {
                Some(element) => self.fail(|| format!("buffer {n} is written completely, and element {element} is not")),
                None => written.iter().for_each(|_| self.counts.add(Claim::Covered)),
            }
        }
        (0..self.epochs.len()).for_each(|n| self.end_epoch(n));
        self.end_grid_epoch();
        self.check_exits();
        self.check_reached();
        let facts = self.facts;
        let accessed: Vec<AccessId> =
            (0..self.accessed.len()).filter(|n| self.accessed[*n]).map(|n| AccessId(n as u32)).collect();
        for (n, a) in accessed.iter().enumerate() {
            for b in &accessed[..n] {
                if !facts.group_epochs.may_meet(*a, *b) {
                    self.counts.add(Claim::GroupEpoch);
                }
                if !facts.grid_epochs.may_meet(*a, *b) {
                    self.counts.add(Claim::GridEpoch);
                }
            }
        }
        self.wrong
    }

    fn end_epoch(&mut self, workgroup: usize) {
        let met = self.epochs[workgroup].end(&self.facts.group_epochs);
        self.spans.retain(|(group, _, _), _| *group as usize != workgroup);
        if let Some(pair) = met {
            self.fail(|| format!("{pair:?} never meet in an epoch of a workgroup, and did"));
        }
    }

    fn end_grid_epoch(&mut self) {
        if let Some(pair) = self.grid.end(&self.facts.grid_epochs) {
            self.fail(|| format!("{pair:?} never meet in an epoch of the grid, and did"));
        }
    }

    fn check_exits(&mut self) {
        let facts = self.facts;
        for (of, exits) in std::mem::take(&mut self.exits).into_values() {
            // By scope and its instance: how each ended the iteration.
            for scope in SCOPES {
                if scope == Scope::Subgroup && facts.kernel.subgroup.is_none() {
                    continue;
                }
                let claims = |stmt: StmtId| facts.stmts[stmt.index()].is_some_and(|widest| widest >= scope);
                let mut groups: Map<u32, Vec<Ended>> = Map::default();
                for (who, how) in &exits {
                    groups.entry(facts.instance(scope, *who)).or_default().push(*how);
                }
                for hows in groups.into_values().filter(|hows| hows.len() > 1) {
                    let differ = hows.iter().find(|how| **how != hows[0]);
                    let says = |how: &Ended| how.is_some_and(claims);
                    match differ {
                        None if says(&hows[0]) => self.counts.add(Claim::Exit),
                        None => {}
                        Some(_) if claims(of) => {
                            self.fail(|| format!("{of:?} does not diverge in the {scope:?}, and iterations ended by {hows:?}"));
                        }
                        Some(_) => {
                            if let Some(Some(stmt)) = hows.iter().find(|how| says(how)) {
                                self.fail(|| format!("{stmt:?} does not diverge in the {scope:?}: iterations ended by {hows:?}"));
                            }
                        }
                    }
                }
            }
        }
    }

    fn check_reached(&mut self) {
        let facts = self.facts;
        for ((region, _), (position, mut who)) in std::mem::take(&mut self.reached) {
            let Some(scope) = facts.together[region as usize] else { continue };
            who.sort_unstable();
            let mut instances: Vec<u32> = who.iter().map(|who| facts.instance(scope, *who)).collect();
            instances.dedup();
            let size = match scope {
                Scope::Dispatch => facts.invocations,
                Scope::Workgroup => facts.per_workgroup,
                Scope::Subgroup => facts.kernel.subgroup.unwrap_or(1),
            };
            for instance in instances {
                for other in instance * size..(instance + 1) * size {
                    if who.binary_search(&other).is_ok() {
                        self.counts.add(Claim::Together);
                        continue;
                    }
                    let gone = self.invocations[other as usize].retired.as_ref().is_some_and(|retired| *retired < position);
                    if !gone {
                        self.fail(|| {
                            format!("region {region} is reached together in the {scope:?}, and not by {other}, at {position:?}")
                        });
                    }
                }
            }
        }
    }
}

impl Sink for Watch<'_, '_, '_> {
    fn statement(&mut self, at: At<'_>, stmt: StmtId) {
        let facts = self.facts;
        let who = at.invocation as usize;
        let kind = &facts.kernel.stmt(stmt).kind;
        match kind {
            StmtKind::Break | StmtKind::Continue => {
                self.invocations[who].cut = true;
                self.invocations[who].breaks = matches!(kind, StmtKind::Break);
                let says = |trips: Trips| if matches!(kind, StmtKind::Break) { trips.breaks } else { trips.continues };
                if !at.loops.last().and_then(|(of, _)| facts.trips[of.index()]).is_some_and(says) {
                    self.fail(|| format!("{stmt:?} ends an iteration, and its loop does not say so"));
                }
                let iteration = self.invocations[who].innermost();
                if let Some((of, _)) = at.loops.last() {
                    self.ended(at.invocation, iteration, *of, Some(stmt));
                }
            }
            StmtKind::Return | StmtKind::Trap { .. } => {
                self.invocations[who].retired = Some(position(at, stmt));
                for (of, ordinal) in at.loops {
                    let says = |trips: Trips| trips.retires && trips.exact().is_none_or(|exact| exact == ordinal + 1);
                    if !facts.trips[of.index()].is_some_and(says) {
                        self.fail(|| format!("{stmt:?} retires {who} in iteration {ordinal} of {of:?}, which does not say so"));
                    }
                }
            }
            StmtKind::Barrier | StmtKind::GridSync | StmtKind::Subgroup { .. } => {
                if let Some(barrier) = facts.barriers[stmt.index()] {
                    self.invocations[who].barrier = Some(barrier);
                    if matches!(kind, StmtKind::GridSync) {
                        self.invocations[who].grid_barrier = Some(barrier);
                    }
                }
                for around in at.loops.iter().map(|(stmt, _)| *stmt).chain([stmt]) {
                    match facts.uniformity.synchronises(around) {
                        true => self.counts.add(Claim::Synchronises),
                        false => self.fail(|| format!("{stmt:?} waits, and {around:?} does not say so")),
                    }
                }
            }
            StmtKind::Let { .. }
            | StmtKind::Assign { .. }
            | StmtKind::Store { .. }
            | StmtKind::Atomic { .. }
            | StmtKind::If { .. }
            | StmtKind::Loop { .. }
            | StmtKind::Scope { .. } => {}
        }
    }

    fn expression(&mut self, at: At<'_>, expr: ExprId, value: Value) {
        let facts = self.facts;
        let who = at.invocation;
        let Some(ssa) = facts.ssa.expr(expr) else {
            return self.fail(|| format!("{expr:?} is never reached, and it was"));
        };
        if let Def::Leaf(Leaf::Lit { bits }) = facts.ssa.value(ssa).def {
            if bits != value.scalar() {
                self.fail(|| format!("the literal %{} is {value:?}", ssa.0));
            }
            self.float(who, ssa, value);
            if let Some(stmt) = facts.conditions[expr.index()] {
                self.branch(at, stmt, value.scalar() != 0);
            }
            return;
        }
        self.float(who, ssa, value);
        self.number(who, expr, ssa, value);
        let Some(iteration) = self.invocations[who as usize].iteration(facts.depths[ssa.index()]) else {
            return self.fail(|| format!("%{} is used outside of its loop", ssa.0));
        };
        self.uniform(who, ssa, iteration, value);
        if let ValueType::Scalar(_) = facts.ssa.value(ssa).ty {
            let number = value.scalar() as u32;
            self.range(who, ssa, number);
            self.form(who, ssa, number);
            self.stride(who, ssa, iteration, number);
        }
        if let Some(stmt) = facts.conditions[expr.index()] {
            self.branch(at, stmt, value.scalar() != 0);
        }
    }

    fn iteration(&mut self, at: At<'_>) {
        let Some((stmt, ordinal)) = at.loops.last().copied() else { return };
        self.step(at.invocation, Step::Iteration);
        match self.facts.trips[stmt.index()] {
            Some(trips) if ordinal < trips.at_most => {}
            trips => self.fail(|| format!("{stmt:?} has {trips:?}, and {} begins iteration {ordinal}", at.invocation)),
        }
        let own = &mut self.invocations[at.invocation as usize];
        if ordinal > 0
            && let Some(last) = own.iterations.pop()
            && !std::mem::take(&mut own.cut)
        {
            self.ended(at.invocation, last, stmt, None);
        }
        let own = &mut self.invocations[at.invocation as usize];
        let next = self.iterations.len() as u32 + 1;
        let iteration = *self.iterations.entry((own.innermost(), stmt.0, ordinal)).or_insert(next);
        own.iterations.push(iteration);
        let body = self.facts.regions[stmt.index()][0];
        self.reach(at, body, iteration, stmt);
    }

    fn loop_ends(&mut self, at: At<'_>, stmt: StmtId, iterations: u32) {
        let facts = self.facts;
        let who = at.invocation;
        self.step(who, Step::LoopEnds);
        self.trips(who, stmt, iterations);
        let own = &mut self.invocations[who as usize];
        if iterations > 0
            && let Some(last) = own.iterations.pop()
            && !std::mem::take(&mut own.cut)
        {
            self.ended(who, last, stmt, None);
        }
        if let Some(scope) = facts.stmts[stmt.index()] {
            let around = self.invocations[who as usize].innermost();
            match self.agree(Shared::Left(stmt.0), around, facts.instance(scope, who), who, u64::from(iterations).into()) {
                Ok(false) => {}
                Ok(true) => self.counts.add(Claim::LoopLeft),
                Err((other, _)) => {
                    self.fail(|| format!("{stmt:?} does not diverge, and {who} and {other} leave it in different iterations"))
                }
            }
        }
    }

    fn access(&mut self, at: At<'_>, access: AccessId, element: u32, in_bounds: bool) {
        let facts = self.facts;
        if facts.bounds.is_proven(access) {
            self.counts.add(Claim::InBounds);
            if !in_bounds {
                self.fail(|| format!("{access:?} is proven to be in bounds, and element {element} is not"));
            }
        }
        self.accessed[access.index()] = true;
        self.beginning(at.invocation, access);
        if in_bounds {
            self.written(at.invocation, access, element);
        }
        let workgroup = at.invocation / facts.per_workgroup;
        self.epochs[workgroup as usize].add(access);
        self.grid.add(access);
        for (depth, (stmt, ordinal)) in at.loops.iter().enumerate() {
            if facts.synchronised[stmt.index()] {
                let around = self.invocations[at.invocation as usize].iteration(depth).unwrap_or(0);
                let (first, last) = self.spans.entry((workgroup, stmt.0, around)).or_insert((*ordinal, *ordinal));
                (*first, *last) = ((*first).min(*ordinal), (*last).max(*ordinal));
                let apart = *last - *first;
                self.counts.add(Claim::Iterations);
                if apart > 1 {
                    self.fail(|| format!("{stmt:?} has a barrier in every iteration, and {apart} went by without"));
                }
            }
        }
    }

    fn barrier(&mut self, workgroup: u32) {
        self.end_epoch(workgroup as usize);
    }

    fn grid_barrier(&mut self) {
        (0..self.epochs.len()).for_each(|n| self.end_epoch(n));
        self.end_grid_epoch();
    }
}
