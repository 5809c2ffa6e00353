//! Whether a program's bytes are the same under every schedule, as far as can be told without running it.
//!
//! The answer is conservative. [`Determinism::CrossBackend`] is a proof, for every launch or for those that meet its conditions;
//! [`Determinism::Unproven`] only says that this analysis found none, and the checked reference decides for one launch.
//!
//! **What is proven**: no two invocations touch one element, one of them writing, without a barrier between them. Then every load has
//! one value, and so has everything else. Exempt are atomics that commute with each other and whose results nobody uses, and stores
//! of one and the same value to elements of at least 32 bits. A trap reports the smallest trapping invocation, so it is the same
//! everywhere too; subgroup operations exchange what each lane computes by itself.
//!
//! **How.** Two accesses to a buffer are compared as sums: where does the index of one invocation equal that of another? Three kinds of
//! pairs are told apart:
//!
//! - any two invocations of the dispatch, which differ in `gid`; only a grid barrier comes between them;
//! - two of one workgroup, which differ in `lid`; barriers come between them, and they agree on what is uniform in the workgroup, if it
//!   does not change between the same two barriers;
//! - two of different workgroups, which differ in `wid`.
//!
//! The first is enough. Where it fails the second and the third together are. For each, the ids are *digits*: an index
//! `4·w·gid.y + 4·gid.x + k` is one-to-one if each digit's factor is larger than everything that the smaller digits and the rest can add
//! up to, and if nothing wraps: then different digits give different elements. The counter of a loop may be a digit as well. If that
//! fails, the two indices may still lie apart: the largest of one below the smallest of the other.
//!
//! **Conditions.** What `w` is, is known at the launch. So an inequality that does not hold by itself but is made of lengths, counts
//! and values from `read` and `uniform` buffers becomes a condition, such as `w * gid_count.y <= 4294967296`, and
//! [`Program::proof_for`](crate::ir::Program::proof_for) evaluates it. With `w` = 2³¹ and three rows the index wraps, two invocations write one element, and the
//! launch is refused; with `w` = 640 it is proven.
//!
//! What is known about ids comes from the conditions around an access (`if gid.x < w`, `if lid.x == 0`), see `ranges.rs`.

use super::affine::{Affine, Forms};
use super::epochs::{Beginning, Epochs};
use super::ranges::Flow;
use super::uniformity::{Scope, Uniformity};
use crate::diagnostic::{Diagnostic, Location};
use crate::ir::{Access, AtomicOp, Axis, Builtin, NodeId};
use crate::kernel::{AccessId, AccessKind, BufferId};
use crate::ssa::{Def, InstId, InstKind, Leaf, Op, RegionId, Ssa, Value};
use std::collections::BTreeMap;
use std::fmt;
use vyre_spec::{ErrorCode, ReduceOp, Scalar, SubgroupShape};

/// The static answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Determinism {
    /// The same bytes on every backend and under every schedule, in launches for which all of these hold.
    CrossBackend {
        /// What has to hold; nothing if it is proven outright.
        conditions: Vec<Condition>,
    },
    /// No proof was found.
    Unproven(Reason),
}

/// The answer for one launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Proof<'a> {
    /// Its bytes are the same on every backend and under every schedule.
    Holds,
    /// They are if this is met, and it is not.
    Unmet(&'a Condition),
    /// Nothing is known.
    Missing(&'a Reason),
}

/// Something that is found out at the launch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Condition {
    /// In the words of the text form: `w * gid_count.y <= 4294967296`.
    pub text: String,
    /// The access that needs it.
    pub node: NodeId,
    /// This is not negative.
    not_negative: Sum,
}

/// Why no proof was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reason {
    /// In words.
    pub message: String,
    /// What would make it provable.
    pub help: &'static str,
    /// The access that stands in the way.
    pub node: NodeId,
    /// The access that it may meet, if that is another.
    pub other: Option<NodeId>,
}

impl Reason {
    /// The reason as something to draw.
    #[must_use]
    pub fn diagnostic(&self) -> Diagnostic {
        let diagnostic = Diagnostic::new(ErrorCode::W0505, &self.message).at(Location::Tree(self.node)).help(self.help);
        match self.other {
            Some(other) => diagnostic.related(Location::Tree(other), "the other access"),
            None => diagnostic,
        }
    }
}

impl Determinism {
    /// Whether the answer is a proof, maybe under conditions.
    #[must_use]
    pub fn is_proven(&self) -> bool {
        match self {
            Determinism::CrossBackend { .. } => true,
            Determinism::Unproven(_) => false,
        }
    }

    /// The answer for a launch of which this much is known; the form is the one that the answer is about. What cannot be told is
    /// met or not, as `in_doubt` says.
    pub(crate) fn for_launch(&self, known: &Known<'_>, in_doubt: bool) -> Proof<'_> {
        match self {
            Determinism::Unproven(reason) => Proof::Missing(reason),
            Determinism::CrossBackend { conditions } => {
                let is_met = |condition: &Condition| condition.not_negative.evaluate(known).map_or(in_doubt, |value| value >= 0);
                match conditions.iter().find(|condition| !is_met(condition)) {
                    Some(condition) => Proof::Unmet(condition),
                    None => Proof::Holds,
                }
            }
        }
    }
}

impl fmt::Display for Determinism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Determinism::CrossBackend { conditions } => {
                f.write_str("cross-backend")?;
                for (n, condition) in conditions.iter().enumerate() {
                    write!(f, "{} {}", if n == 0 { " if" } else { " and" }, condition.text)?;
                }
                Ok(())
            }
            Determinism::Unproven(reason) => write!(f, "unproven: {}", reason.message),
        }
    }
}

/// What a sum is made of: a value of the form, or a count, for which there may be no value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Atom {
    Value(Value),
    Count(Builtin),
}

/// A sum of products of numbers that are not negative; in integers, nothing wraps.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Sum(BTreeMap<Vec<Atom>, i128>);

impl Sum {
    fn number(n: i128) -> Sum {
        Sum::product(Vec::new(), n)
    }

    fn product(atoms: Vec<Atom>, times: i128) -> Sum {
        let mut sum = Sum::default();
        sum.add(atoms, times);
        sum
    }

    fn add(&mut self, mut atoms: Vec<Atom>, times: i128) {
        atoms.sort_unstable();
        let entry = self.0.entry(atoms);
        let value = entry.or_insert(0);
        *value = value.saturating_add(times);
        self.0.retain(|_, times| *times != 0);
    }

    fn plus(mut self, other: &Sum, times: i128) -> Sum {
        for (atoms, n) in &other.0 {
            self.add(atoms.clone(), n.saturating_mul(times));
        }
        self
    }

    fn times(&self, other: &Sum) -> Sum {
        let mut product = Sum::default();
        for (left, n) in &self.0 {
            for (right, m) in &other.0 {
                product.add(left.iter().chain(right).copied().collect(), n.saturating_mul(*m));
            }
        }
        product
    }

    fn evaluate(&self, known: &Known<'_>) -> Option<i128> {
        let mut sum = 0i128;
        for (atoms, times) in &self.0 {
            let mut product = *times;
            for atom in atoms {
                product = product.checked_mul(i128::from(known.atom(*atom)?))?;
            }
            sum = sum.checked_add(product)?;
        }
        Some(sum)
    }
}

/// What is known of a launch.
pub(crate) struct Known<'a> {
    pub ssa: &'a Ssa,
    pub workgroup_size: [u32; 3],
    pub grid: [u32; 3],
    /// By buffer; empty if nothing is known.
    pub lengths: &'a [u32],
    /// The bytes of inputs.
    pub inputs: Vec<(BufferId, &'a [u8])>,
}

impl Known<'_> {
    fn atom(&self, atom: Atom) -> Option<u32> {
        match atom {
            Atom::Value(value) => self.value(value).map(|bits| bits as u32),
            Atom::Count(builtin) => self.builtin(builtin),
        }
    }

    fn builtin(&self, builtin: Builtin) -> Option<u32> {
        let Known { workgroup_size: size, grid, .. } = self;
        match builtin {
            Builtin::InvocationCount(axis) => grid[axis as usize].checked_mul(size[axis as usize]),
            Builtin::WorkgroupCount(axis) => Some(grid[axis as usize]),
            Builtin::LocalCount(axis) => Some(size[axis as usize]),
            Builtin::SubgroupSize => self.ssa.kernel.subgroup,
            Builtin::Invocation(_) | Builtin::Workgroup(_) | Builtin::Local(_) | Builtin::SubgroupLane => None,
        }
    }

    fn value(&self, value: Value) -> Option<u64> {
        let mode = self.ssa.kernel.floats;
        match self.ssa.value(value).def {
            Def::Leaf(Leaf::Lit { bits }) => Some(bits),
            Def::Leaf(Leaf::Builtin { builtin }) => self.builtin(builtin).map(u64::from),
            Def::Leaf(Leaf::Len { buffer }) => self.lengths.get(buffer.index()).copied().map(u64::from),
            Def::Argument(..) => None,
            Def::Result(inst, _) => match &self.ssa.inst(inst).kind {
                InstKind::Load { buffer, index, .. } => {
                    let (index, length) = (self.value(*index)? as u32, *self.lengths.get(buffer.index())?);
                    let (_, bytes) = self.inputs.iter().find(|(input, _)| input == buffer)?;
                    let element = &self.ssa.kernel.buffer(*buffer).element;
                    if index >= length {
                        return Some(0);
                    }
                    // What is resident on a device is not here to be looked at.
                    let needed = vyre_scalar::memory::byte_length(element, u64::from(length))?;
                    (bytes.len() as u64 >= needed).then(|| vyre_scalar::memory::load(element, mode, bytes, index).scalar())
                }
                InstKind::Op(op) => match *op {
                    Op::Unary { op, ty, operand } => Some(vyre_scalar::unary(op, ty, mode, self.value(operand)?)),
                    Op::Binary { op, ty, left, right } => {
                        Some(vyre_scalar::binary(op, ty, mode, self.value(left)?, self.value(right)?))
                    }
                    Op::Ternary { op, ty, operands: [a, b, c] } => {
                        Some(vyre_scalar::ternary(op, ty, mode, self.value(a)?, self.value(b)?, self.value(c)?))
                    }
                    Op::Cast { from, to, value } => Some(vyre_scalar::cast(from, to, mode, self.value(value)?)),
                    Op::Bitcast { from, to, value } => Some(vyre_scalar::bitcast(from, to, mode, self.value(value)?)),
                    Op::Vector { .. } | Op::Extract { .. } => None,
                },
                InstKind::Store { .. }
                | InstKind::Atomic { .. }
                | InstKind::Subgroup { .. }
                | InstKind::If { .. }
                | InstKind::Loop { .. }
                | InstKind::Barrier
                | InstKind::GridSync => None,
            },
        }
    }
}

/// What holds for an atom where an access stands.
#[derive(Clone, PartialEq, Eq, Debug)]
struct AtomFacts {
    low: u32,
    high: u32,
    /// Values that it is below, by number.
    below: Vec<Value>,
}

/// One access to a buffer that can be written.
#[derive(Clone)]
struct Site {
    access: AccessId,
    kind: AccessKind,
    /// Of an atomic whose result nobody uses.
    unused: Option<AtomicOp>,
    /// Of a store of a value that is the same for all: that value.
    stored: Option<Value>,
    index: Affine,
    /// What holds for the atoms of the index, and for the ids.
    facts: BTreeMap<Value, AtomFacts>,
    ids: BTreeMap<Builtin, AtomFacts>,
    /// Atoms that are sums over lanes, which whoever gets here adds at least 1 to, and which do not wrap.
    adds: Vec<Value>,
}

/// Accesses to one buffer that are compared with each other at most; beyond, it is too much work for an answer.
const MAX_SITES: usize = 48;

/// Values that are computed at the launch for one atom of a condition, at most.
const MAX_WORK: u32 = 128;

/// What invocations have of their own that counts as digits, at most: their orders are tried.
const MAX_OWN: usize = 2;

/// Comparisons around an access that are looked at, the innermost.
const MAX_COMPARISONS: usize = 64;

/// The answer for a form, of which is known what is uniform.
#[must_use]
pub fn of_form(ssa: &Ssa, uniformity: &Uniformity) -> Determinism {
    let mut proof = Prover::new(ssa, uniformity);
    let sites = proof.sites();
    let mut conditions: Vec<Condition> = Vec::new();
    for (n, sites) in sites.iter().enumerate() {
        match proof.buffer(BufferId(n as u32), sites) {
            Ok(found) => {
                for condition in found {
                    if conditions.iter().all(|other| other.text != condition.text) {
                        conditions.push(condition);
                    }
                }
            }
            Err(reason) => return Determinism::Unproven(reason),
        }
    }
    Determinism::CrossBackend { conditions }
}

/// Which pairs of invocations are looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Pairs {
    /// Any two.
    Any,
    /// Two of one workgroup.
    OneGroup,
    /// Two of different workgroups.
    TwoGroups,
}

struct Prover<'a> {
    ssa: &'a Ssa,
    uniformity: &'a Uniformity,
    flow: Flow<'a>,
    workgroup: Epochs,
    grid: Epochs,
    /// By instruction: the loops and the regions around it, and its place in the order of the form.
    loops: Vec<Vec<InstId>>,
    within: Vec<Vec<RegionId>>,
    order: Vec<u32>,
    /// By region: the loop that it is the body of.
    bodies: Vec<Option<InstId>>,
    /// By access: the instruction that does it, if it is reached.
    insts: Vec<Option<InstId>>,
    used: Vec<bool>,
    /// Whether the workgroup has the declared size in every launch.
    fixed: bool,
}

impl<'a> Prover<'a> {
    fn new(ssa: &'a Ssa, uniformity: &'a Uniformity) -> Prover<'a> {
        let mut used = vec![false; ssa.values.len()];
        ssa.for_each_inst(ssa.root, &mut |_, inst| inst.kind.for_each_operand(&mut |value| used[value.index()] = true));
        ssa.for_each_region(ssa.root, &mut |_, region| {
            region.end.values().iter().for_each(|value| used[value.index()] = true);
        });
        let mut proof = Prover {
            ssa,
            uniformity,
            flow: Flow::new(ssa),
            workgroup: Epochs::of_workgroup(ssa),
            grid: Epochs::of_grid(ssa),
            loops: vec![Vec::new(); ssa.insts.len()],
            within: vec![Vec::new(); ssa.insts.len()],
            order: vec![0; ssa.insts.len()],
            bodies: vec![None; ssa.regions.len()],
            insts: vec![None; ssa.kernel.accesses.len()],
            used,
            fixed: ssa.kernel.size_matters().is_some(),
        };
        proof.find_loops(ssa.root, &mut Vec::new(), &mut Vec::new(), &mut 0);
        proof
    }

    fn find_loops(&mut self, region: RegionId, around: &mut Vec<InstId>, within: &mut Vec<RegionId>, next: &mut u32) {
        let ssa = self.ssa;
        within.push(region);
        for id in &ssa.region(region).insts {
            self.loops[id.index()].clone_from(around);
            self.within[id.index()].clone_from(within);
            self.order[id.index()] = *next;
            *next += 1;
            match ssa.inst(*id).kind {
                InstKind::Load { access, .. } | InstKind::Store { access, .. } | InstKind::Atomic { access, .. } => {
                    self.insts[access.index()] = Some(*id);
                }
                InstKind::Loop { body, .. } => self.bodies[body.index()] = Some(*id),
                InstKind::Op(_) | InstKind::Subgroup { .. } | InstKind::If { .. } | InstKind::Barrier | InstKind::GridSync => {}
            }
            let is_loop = matches!(ssa.inst(*id).kind, InstKind::Loop { .. });
            if is_loop {
                around.push(*id);
            }
            for inner in ssa.inst(*id).kind.regions() {
                self.find_loops(inner, around, within, next);
            }
            if is_loop {
                around.pop();
            }
        }
        within.pop();
    }

    /// The loops in whose iterations a value may be another.
    fn loops_of(&self, value: Value) -> Vec<InstId> {
        match self.ssa.value(value).def {
            Def::Leaf(_) => Vec::new(),
            Def::Result(inst, _) => self.loops[inst.index()].clone(),
            Def::Argument(region, _) => {
                let of = self.bodies[region.index()];
                of.iter().flat_map(|id| self.loops[id.index()].iter().chain([id])).copied().collect()
            }
        }
    }

    /// By buffer: its accesses, if it can be written.
    fn sites(&mut self) -> Vec<Vec<Site>> {
        let ssa = self.ssa;
        let numbers = self.flow.numbers.clone();
        let forms = Forms::of(ssa, &numbers);
        let mut sites: Vec<Vec<Site>> = vec![Vec::new(); ssa.kernel.buffers.len()];
        let used = &self.used;
        let ids: Vec<(Builtin, Value)> = (0..ssa.values.len() as u32)
            .map(Value)
            .filter_map(|value| match ssa.leaf(value) {
                Some(Leaf::Builtin { builtin }) => Some((builtin, value)),
                Some(Leaf::Lit { .. } | Leaf::Len { .. }) | None => None,
            })
            .collect();
        let uniformity = self.uniformity;
        let loops = &self.loops;
        self.flow.run(&mut |flow, id| {
            let inst = ssa.inst(id);
            let (access, buffer, index) = match inst.kind {
                InstKind::Load { access, buffer, index }
                | InstKind::Store { access, buffer, index, .. }
                | InstKind::Atomic { access, buffer, index, .. } => (access, buffer, index),
                InstKind::Op(_)
                | InstKind::Subgroup { .. }
                | InstKind::If { .. }
                | InstKind::Loop { .. }
                | InstKind::Barrier
                | InstKind::GridSync => return,
            };
            if !ssa.kernel.buffer(buffer).access.is_writable() {
                return;
            }
            let facts = |value: Value| {
                let range = flow.range(value);
                let number = flow.numbers.of_value(value);
                let near = flow.less.iter().rev().take(MAX_COMPARISONS);
                let below = near.filter(|(small, _)| *small == number).map(|(_, large)| *large).collect();
                AtomFacts { low: range.low, high: range.high, below }
            };
            let index = forms.form(ssa, &numbers, index);
            let atoms = index.terms.iter().flat_map(|(product, _)| product.iter().copied());
            let is_unused = inst.results.iter().all(|result| !used[result.index()]);
            let unused = if let InstKind::Atomic { op, .. } = inst.kind { Some(op).filter(|_| is_unused) } else { None };
            // A value that is one and the same in every invocation and iteration.
            let everywhere = |value: Value| {
                let settled = match ssa.value(value).def {
                    Def::Leaf(_) => true,
                    Def::Result(inst, _) => loops[inst.index()].is_empty(),
                    Def::Argument(..) => false,
                };
                settled && uniformity.is_uniform(value, Scope::Dispatch)
            };
            let stored = if let InstKind::Store { value, .. } = inst.kind { Some(numbers.of_value(value)) } else { None };
            let stored = stored.filter(|value| everywhere(*value));
            let adds = atoms.clone().filter(|atom| {
                let Def::Result(scan, _) = ssa.value(*atom).def else { return false };
                let InstKind::Subgroup { op, ty: Scalar::U32, operands } = ssa.inst(scan).kind else { return false };
                let is_sum = match op.shape() {
                    SubgroupShape::Inclusive(with) | SubgroupShape::Exclusive(with) => with == ReduceOp::Add,
                    SubgroupShape::Vote(_) | SubgroupShape::Shuffle(_) | SubgroupShape::Reduce(_) => false,
                };
                let most = u64::from(flow.ranges[operands[0].index()].high) * u64::from(ssa.kernel.subgroup.unwrap_or(0));
                is_sum && flow.refined(operands[0]).low >= 1 && most <= u64::from(u32::MAX)
            });
            sites[buffer.index()].push(Site {
                adds: adds.collect(),
                access,
                kind: ssa.kernel.access(access).kind,
                unused,
                stored,
                facts: atoms.map(|atom| (atom, facts(atom))).collect(),
                ids: ids.iter().map(|(builtin, value)| (*builtin, facts(*value))).collect(),
                index,
            });
        });
        sites
    }

    fn node(&self, site: &Site) -> NodeId {
        self.ssa.kernel.access(site.access).node
    }

    /// What has to hold for a buffer, or what stands in the way.
    fn buffer(&self, id: BufferId, all: &[Site]) -> Result<Vec<Condition>, Reason> {
        let name = &self.ssa.kernel.buffer(id).name;
        let Some(first_write) = all.iter().find(|site| site.kind.writes()) else { return Ok(Vec::new()) };
        // Accesses that are alike in everything that is asked are compared once.
        let mut sites: Vec<&Site> = Vec::new();
        for site in all {
            let alike = |other: &&Site| {
                (other.kind, &other.unused, &other.stored) == (site.kind, &site.unused, &site.stored)
                    && other.index == site.index
                    && other.facts == site.facts
                    && other.ids == site.ids
                    && self.same_epochs(other, site)
            };
            if !sites.iter().any(alike) {
                sites.push(site);
            }
            if sites.len() > MAX_SITES {
                return Err(Reason {
                    message: format!("`{name}` is accessed in more than {MAX_SITES} different ways, which are not compared"),
                    help: "use fewer different indices, or several buffers",
                    node: self.node(first_write),
                    other: None,
                });
            }
        }
        let mut conditions = Vec::new();
        for (n, a) in sites.iter().enumerate() {
            for b in &sites[..=n] {
                if let Some(found) = self.pair(id, a, b)? {
                    conditions.extend(found);
                }
            }
        }
        Ok(conditions)
    }

    fn same_epochs(&self, a: &Site, b: &Site) -> bool {
        self.workgroup.common(a.access, b.access) == self.workgroup.common(a.access, a.access)
            && self.workgroup.common(a.access, b.access) == self.workgroup.common(b.access, b.access)
            && self.grid.common(a.access, b.access) == self.grid.common(a.access, a.access)
            && self.loops_around(a) == self.loops_around(b)
    }

    fn inst(&self, site: &Site) -> Option<InstId> {
        self.insts[site.access.index()]
    }

    fn loops_around(&self, site: &Site) -> Vec<InstId> {
        self.inst(site).map(|id| self.loops[id.index()].clone()).unwrap_or_default()
    }

    /// What has to hold for two accesses not to get in each other's way; `None` if nothing can go wrong.
    fn pair(&self, id: BufferId, a: &Site, b: &Site) -> Result<Option<Vec<Condition>>, Reason> {
        let buffer = self.ssa.kernel.buffer(id);
        let wide = buffer.element.bits().is_some_and(|bits| bits >= 32);
        let commute = match (a.unused, b.unused) {
            (Some(a), Some(b)) => commute(a, b),
            (_, _) => false,
        };
        let same_value = wide && a.stored.is_some() && a.stored == b.stored;
        if !(a.kind.writes() || b.kind.writes()) || commute || same_value || !self.grid.may_meet(a.access, b.access) {
            return Ok(None);
        }
        let local = buffer.access == Access::Workgroup;
        let together = self.workgroup.may_meet(a.access, b.access);
        if local && !together {
            return Ok(None);
        }
        if !local && let Some(conditions) = self.apart(a, b, Pairs::Any) {
            return Ok(Some(conditions));
        }
        let mut conditions = Vec::new();
        let mut proven = self.fixed || local;
        if proven && together {
            match self.apart(a, b, Pairs::OneGroup) {
                Some(found) => conditions.extend(found),
                None => proven = false,
            }
        }
        if proven && !local {
            match self.apart(a, b, Pairs::TwoGroups).or_else(|| View::new(self, a, b, Pairs::TwoGroups, false).alone()) {
                Some(found) => conditions.extend(found),
                None => proven = false,
            }
        }
        if proven {
            return Ok(Some(conditions));
        }
        Err(self.refusal(&buffer.name, a, b))
    }

    fn refusal(&self, name: &str, a: &Site, b: &Site) -> Reason {
        // The one that writes is the one to look at.
        let (site, other) = if a.kind.writes() { (a, b) } else { (b, a) };
        let atomic = |site: &Site| match site.kind {
            AccessKind::Atomic | AccessKind::AtomicLoad => true,
            AccessKind::Load | AccessKind::Store => false,
        };
        let (message, help) = if atomic(a) && atomic(b) {
            match a.unused.is_some() && b.unused.is_some() {
                true => (
                    format!("the order of these atomics on `{name}` may show in what they leave"),
                    "use atomics that commute with each other, or a barrier between them",
                ),
                false => (
                    format!("the result of an atomic on `{name}` depends on the order of invocations"),
                    "do not use the result, or give each invocation an element of its own",
                ),
            }
        } else if a.access == b.access {
            (
                format!("two invocations may write one element of `{name}` here"),
                "use an index that is different for every invocation, such as `gid.y * gid_count.x + gid.x`, and guard what must not \
                 overlap: `if gid.x < w`",
            )
        } else {
            (
                format!("one invocation may touch an element of `{name}` that another writes"),
                "put a `barrier` between them (`barrier.grid` between workgroups), or give each invocation elements of its own",
            )
        };
        let other = Some(self.node(other)).filter(|_| a.access != b.access);
        Reason { message, help, node: self.node(site), other }
    }

    /// Why two invocations of such a pair never have the same index: what has to hold for it.
    fn apart(&self, a: &Site, b: &Site, pairs: Pairs) -> Option<Vec<Condition>> {
        // What conditions around the accesses say about ids may help, or stand in the way of comparing.
        [true, false].into_iter().find_map(|guards| {
            let mut view = View::new(self, a, b, pairs, guards);
            let of_scan = view.places();
            of_scan.or_else(|| view.one_to_one()).or_else(|| View::new(self, a, b, pairs, guards).disjoint())
        })
    }
}

/// Whether two atomics leave the same in either order.
fn commute(a: AtomicOp, b: AtomicOp) -> bool {
    a.class().is_some_and(|class| class.accumulates() && b.class() == Some(class))
}

/// One side of a comparison: an index over digits, what both sides share, and the rest.
struct Side {
    /// By digit: its factor.
    digits: BTreeMap<Builtin, Sum>,
    /// What both sides share.
    shared: Sum,
    /// By what each invocation has of its own, such as the counter of a loop: its factor.
    own: BTreeMap<Atom, Sum>,
    /// The smallest and the largest that the rest can be.
    low: Sum,
    high: Sum,
    /// By digit: its one value here, if there is one.
    only: BTreeMap<Builtin, u32>,
}

/// A comparison of two accesses.
struct View<'p, 'a> {
    proof: &'p Prover<'a>,
    a: &'p Site,
    b: &'p Site,
    pairs: Pairs,
    /// Whether upper bounds are those that conditions say, rather than numbers.
    guards: bool,
    /// The loops that both are in the same iteration of.
    in_step: Vec<InstId>,
    conditions: Vec<Condition>,
}

impl<'p, 'a> View<'p, 'a> {
    fn new(proof: &'p Prover<'a>, a: &'p Site, b: &'p Site, pairs: Pairs, guards: bool) -> View<'p, 'a> {
        let in_step = if pairs == Pairs::OneGroup { in_step(proof, a, b) } else { Vec::new() };
        View { proof, a, b, pairs, guards, in_step, conditions: Vec::new() }
    }

    fn ssa(&self) -> &'a Ssa {
        self.proof.ssa
    }

    /// The ids that two invocations of a pair may differ in.
    fn owners(&self) -> [Builtin; 3] {
        Axis::ALL.map(|axis| match self.pairs {
            Pairs::Any => Builtin::Invocation(axis),
            Pairs::OneGroup => Builtin::Local(axis),
            Pairs::TwoGroups => Builtin::Workgroup(axis),
        })
    }

    fn builtin(&self, value: Value) -> Option<Builtin> {
        match self.ssa().leaf(value)? {
            Leaf::Builtin { builtin } => Some(builtin),
            Leaf::Lit { .. } | Leaf::Len { .. } => None,
        }
    }

    fn atom(&self, value: Value) -> Atom {
        self.builtin(value).map_or(Atom::Value(value), Atom::Count)
    }

    /// Whether both invocations have the same value, whatever iterations they are in.
    fn is_shared(&self, value: Value) -> bool {
        let scope = match self.pairs {
            Pairs::OneGroup => Scope::Workgroup,
            Pairs::Any | Pairs::TwoGroups => Scope::Dispatch,
        };
        self.proof.uniformity.is_uniform(value, scope)
            && self.proof.loops_of(value).iter().all(|around| self.in_step.contains(around))
    }

    /// The one value of an id where an access stands, if conditions leave one.
    fn only(&self, site: &Site, id: Builtin) -> Option<u32> {
        let exact = |id: Builtin| site.ids.get(&id).filter(|facts| facts.low == facts.high).map(|facts| facts.low);
        let size = |axis: Axis| self.ssa().kernel.workgroup_size[axis as usize];
        exact(id).or_else(|| match id {
            Builtin::Local(axis) if size(axis) == 1 => Some(0),
            Builtin::Local(axis) if self.proof.fixed => Some(exact(Builtin::Invocation(axis))? % size(axis)),
            Builtin::Workgroup(axis) if self.proof.fixed => Some(exact(Builtin::Invocation(axis))? / size(axis)),
            Builtin::Local(_)
            | Builtin::Workgroup(_)
            | Builtin::Invocation(_)
            | Builtin::InvocationCount(_)
            | Builtin::WorkgroupCount(_)
            | Builtin::LocalCount(_)
            | Builtin::SubgroupLane
            | Builtin::SubgroupSize => None,
        })
    }

    /// The products of an index over the ids that matter here: `gid` is taken apart where workgroups are looked at.
    fn products(&self, index: &Affine) -> Vec<(Vec<Atom>, i128)> {
        let signed = |n: u32| i128::from(n as i32);
        let mut products = vec![(Vec::new(), signed(index.constant))];
        for (product, times) in &index.terms {
            let mut parts = vec![(Vec::new(), signed(*times))];
            for atom in product.iter() {
                let split = match (self.builtin(*atom), self.pairs) {
                    (Some(Builtin::Invocation(axis)), Pairs::OneGroup | Pairs::TwoGroups) => Some(axis),
                    _ => None,
                };
                parts = parts
                    .into_iter()
                    .flat_map(|(atoms, times): (Vec<Atom>, i128)| {
                        let with = |atom: Atom, factor: i128| {
                            let mut atoms = atoms.clone();
                            atoms.push(atom);
                            (atoms, times.saturating_mul(factor))
                        };
                        match split {
                            None => vec![with(self.atom(*atom), 1)],
                            Some(axis) => {
                                let size = self.ssa().kernel.workgroup_size[axis as usize];
                                vec![
                                    with(Atom::Count(Builtin::Local(axis)), 1),
                                    with(Atom::Count(Builtin::Workgroup(axis)), i128::from(size)),
                                ]
                            }
                        }
                    })
                    .collect();
            }
            products.extend(parts);
        }
        products
    }

    fn as_builtin(&self, atom: Atom) -> Option<Builtin> {
        match atom {
            Atom::Count(builtin) => Some(builtin),
            Atom::Value(value) => self.builtin(value),
        }
    }

    fn atom_is_shared(&self, atom: Atom) -> bool {
        match atom {
            Atom::Value(value) => self.is_shared(value),
            Atom::Count(Builtin::Workgroup(_)) => self.pairs == Pairs::OneGroup,
            Atom::Count(Builtin::Invocation(_) | Builtin::Local(_) | Builtin::SubgroupLane) => false,
            Atom::Count(
                Builtin::InvocationCount(_) | Builtin::WorkgroupCount(_) | Builtin::LocalCount(_) | Builtin::SubgroupSize,
            ) => true,
        }
    }

    /// The largest that an atom can be where an access stands.
    fn high(&self, site: &Site, atom: Atom) -> Sum {
        let builtin = self.as_builtin(atom);
        let facts = match atom {
            Atom::Value(value) => site.facts.get(&value),
            Atom::Count(builtin) => site.ids.get(&builtin),
        };
        if self.guards
            && let Some(facts) = facts
        {
            for bound in &facts.below {
                if let Some(bound) = self.shared_number(*bound) {
                    return bound.plus(&Sum::number(1), -1);
                }
            }
        }
        let number = facts.map_or(u32::MAX, |facts| facts.high);
        let size = |axis: Axis| i128::from(self.ssa().kernel.workgroup_size[axis as usize]);
        match builtin {
            Some(Builtin::Invocation(axis)) if number >= u32::MAX - 1 => {
                Sum::product(vec![Atom::Count(Builtin::InvocationCount(axis))], 1).plus(&Sum::number(1), -1)
            }
            Some(Builtin::Workgroup(axis)) if number >= u32::MAX - 1 => {
                Sum::product(vec![Atom::Count(Builtin::WorkgroupCount(axis))], 1).plus(&Sum::number(1), -1)
            }
            Some(Builtin::Local(axis)) => Sum::number((size(axis) - 1).min(i128::from(number))),
            _ => Sum::number(i128::from(number)),
        }
    }

    fn low(&self, site: &Site, atom: Atom) -> i128 {
        let facts = match atom {
            Atom::Value(value) => site.facts.get(&value),
            Atom::Count(builtin) => site.ids.get(&builtin),
        };
        i128::from(facts.map_or(0, |facts| facts.low))
    }

    /// A value that both share, as a number that does not wrap.
    fn shared_number(&self, value: Value) -> Option<Sum> {
        self.is_shared(value).then(|| match self.ssa().literal(value) {
            Some(bits) => Sum::number(i128::from(bits as u32)),
            None => Sum::product(vec![self.atom(value)], 1),
        })
    }

    fn side(&self, site: &Site) -> Option<Side> {
        let mut side = Side {
            digits: BTreeMap::new(),
            shared: Sum::default(),
            own: BTreeMap::new(),
            low: Sum::default(),
            high: Sum::default(),
            only: self.owners().into_iter().filter_map(|id| Some((id, self.only(site, id)?))).collect(),
        };
        for (atoms, mut times) in self.products(&site.index) {
            // Ids that can be only one number are that number.
            let mut kept = Vec::new();
            for atom in atoms {
                match self.as_builtin(atom).and_then(|id| self.only(site, id)) {
                    Some(number) => times = times.saturating_mul(i128::from(number)),
                    None => kept.push(atom),
                }
            }
            if times == 0 {
                continue;
            }
            let is_owner = |atom: &&Atom| self.as_builtin(**atom).is_some_and(|id| self.owners().contains(&id));
            let private = kept.iter().filter(|atom| !self.atom_is_shared(**atom)).count();
            match kept.iter().find(is_owner).copied() {
                Some(owner) if private == 1 => {
                    let id = self.as_builtin(owner)?;
                    kept.retain(|atom| *atom != owner);
                    side.digits.entry(id).or_default().add(kept, times);
                }
                None if private == 0 => side.shared.add(kept, times),
                None if private == 1 => {
                    let own = *kept.iter().find(|atom| !self.atom_is_shared(**atom))?;
                    let at = kept.iter().position(|atom| *atom == own)?;
                    kept.remove(at);
                    side.own.entry(own).or_default().add(kept, times);
                }
                Some(_) | None => self.spread(site, &mut side, kept, times),
            }
        }
        side.digits.retain(|_, factor| !factor.0.is_empty());
        side.own.retain(|_, factor| !factor.0.is_empty());
        Some(side)
    }

    /// Adds what a product can be to the rest of a side. Everything is at least 0, so a product grows with each of its atoms.
    fn spread(&self, site: &Site, side: &mut Side, atoms: Vec<Atom>, times: i128) {
        let mut high = Sum::number(times.abs());
        let mut low = times.abs();
        for atom in &atoms {
            let most = if self.atom_is_shared(*atom) { Sum::product(vec![*atom], 1) } else { self.high(site, *atom) };
            high = high.times(&most);
            low = low.saturating_mul(self.low(site, *atom));
        }
        let low = Sum::number(low);
        let (least, most, sign) = if times > 0 { (&low, &high, 1) } else { (&high, &low, -1) };
        side.low = std::mem::take(&mut side.low).plus(least, sign);
        side.high = std::mem::take(&mut side.high).plus(most, sign);
    }

    /// Takes what each invocation has of its own for part of the rest, but for what counts as a digit.
    fn settle(&self, site: &Site, side: &mut Side, digits: &[Atom]) {
        for (own, factor) in std::mem::take(&mut side.own) {
            if digits.contains(&own) {
                continue;
            }
            for (atoms, times) in factor.0 {
                let atoms = atoms.into_iter().chain([own]).collect();
                self.spread(site, side, atoms, times);
            }
        }
    }

    /// The largest that something of its own can be in either invocation.
    fn most(&self, atom: Atom) -> Sum {
        let (one, other) = (self.high(self.a, atom), self.high(self.b, atom));
        let number = |sum: &Sum| if sum.0.keys().all(Vec::is_empty) { Some(sum.0.values().sum::<i128>()) } else { None };
        match (number(&one), number(&other)) {
            _ if one == other => one,
            (Some(one), Some(other)) => Sum::number(one.max(other)),
            (_, _) => Sum::number(u32::MAX.into()),
        }
    }

    /// Both indices are the same scan over the whole workgroup, and every invocation that gets here adds to it: each has a number of
    /// its own.
    fn places(&self) -> Option<Vec<Condition>> {
        let [(product, 1 | u32::MAX)] = self.a.index.terms[..] else { return None };
        let [atom] = product[..] else { return None };
        let same = self.a.index == self.b.index && self.pairs == Pairs::OneGroup;
        let whole = self.ssa().kernel.subgroup == Some(self.ssa().kernel.workgroup_invocations());
        let in_step = self.proof.loops_of(atom).iter().all(|around| self.in_step.contains(around));
        let counts = |site: &Site| site.adds.contains(&atom);
        (same && whole && in_step && counts(self.a) && counts(self.b)).then(Vec::new)
    }

    /// Different digits give different elements. What both have of their own with the same factor may be a digit too, which tells
    /// nothing about who is who, or part of the rest.
    fn one_to_one(&mut self) -> Option<Vec<Condition>> {
        let (a, b) = (self.side(self.a)?, self.side(self.b)?);
        let common: Vec<Atom> =
            a.own.iter().filter(|(own, factor)| b.own.get(own) == Some(factor)).map(|(own, _)| *own).take(MAX_OWN).collect();
        let with = if common.is_empty() { None } else { self.one_to_one_over(&common) };
        with.or_else(|| self.one_to_one_over(&[]))
    }

    fn one_to_one_over(&mut self, own: &[Atom]) -> Option<Vec<Condition>> {
        self.conditions.clear();
        let (mut a, mut b) = (self.side(self.a)?, self.side(self.b)?);
        let mut digits: Vec<(Sum, Sum)> = Vec::new();
        for atom in own {
            digits.push((magnitude(a.own.get(atom)?)?, self.most(*atom)));
        }
        self.settle(self.a, &mut a, own);
        self.settle(self.b, &mut b, own);
        for id in self.owners() {
            match (a.only.get(&id).copied(), b.only.get(&id).copied()) {
                // They agree on it, so it does not tell them apart.
                (Some(one), Some(other)) if one == other => {}
                // They never agree on it, and may agree on everything else.
                (Some(_), Some(_)) => return None,
                // Where it can only be one number, any multiple of the difference to that number may be added.
                (Some(only), None) => borrow(&mut a, &b, id, only),
                (None, Some(only)) => borrow(&mut b, &a, id, only),
                (None, None) => {}
            }
        }
        // An id that only one of them counts with, or both differently, must have one value.
        for id in self.owners() {
            if a.digits.get(&id) != b.digits.get(&id) {
                self.require(Sum::default().plus(&self.extent(id), -1))?;
                a.digits.remove(&id);
                b.digits.remove(&id);
            }
        }
        // Every id that may differ has a factor, or the launch leaves it one value.
        for id in self.owners() {
            if a.only.contains_key(&id) && a.only.get(&id) == b.only.get(&id) {
                continue;
            }
            let (one, other) = (self.high(self.a, Atom::Count(id)), self.high(self.b, Atom::Count(id)));
            let most = if one == other { one } else { self.extent(id) };
            match a.digits.get(&id) {
                Some(factor) => digits.push((magnitude(factor)?, most)),
                // Asked again where the digit was taken out: it is the same condition.
                None => self.require(Sum::default().plus(&self.extent(id), -1))?,
            }
        }
        let rest = a.shared.clone().plus(&b.shared, -1);
        let high = rest.clone().plus(&a.high, 1).plus(&b.low, -1);
        let low = rest.plus(&a.low, 1).plus(&b.high, -1);
        // The order of the factors is not known where they are not numbers: whichever needs the least at the launch.
        let mut best = None;
        self.orders(&mut digits, 0, &high, &low, &mut best);
        best
    }

    /// Looks for an order of the digits in which each factor is larger than all that comes before it can add up to, and nothing wraps:
    /// the first of those that need the fewest conditions. The digits before `placed` have their place, and what they and the rest
    /// add up to is between `low` and `high`.
    fn orders(&mut self, digits: &mut [(Sum, Sum)], placed: usize, high: &Sum, low: &Sum, best: &mut Option<Vec<Condition>>) {
        // Conditions only become more.
        if best.as_ref().is_some_and(|best| self.conditions.len() >= best.len()) {
            return;
        }
        if placed == digits.len() {
            let most = Sum::number(u32::MAX.into());
            if self.require(most.clone().plus(high, -1)).is_some() && self.require(most.plus(low, 1)).is_some() {
                let fewer = best.as_ref().is_none_or(|best| self.conditions.len() < best.len());
                *best = if fewer { Some(self.conditions.clone()) } else { best.take() };
            }
            return;
        }
        for n in placed..digits.len() {
            // The others keep their order.
            digits[placed..=n].rotate_right(1);
            let kept = self.conditions.len();
            let (factor, most) = &digits[placed];
            let least = factor.clone().plus(&Sum::number(1), -1);
            if self.require(least.clone().plus(high, -1)).is_some() && self.require(least.plus(low, 1)).is_some() {
                let span = factor.times(most);
                self.orders(digits, placed + 1, &high.clone().plus(&span, 1), &low.clone().plus(&span, -1), best);
            }
            self.conditions.truncate(kept);
            digits[placed..=n].rotate_left(1);
        }
    }

    /// There is only one workgroup.
    fn alone(&mut self) -> Option<Vec<Condition>> {
        for id in self.owners() {
            self.require(Sum::default().plus(&self.extent(id), -1))?;
        }
        Some(std::mem::take(&mut self.conditions))
    }

    /// The largest index of one is below the smallest of the other.
    fn disjoint(&mut self) -> Option<Vec<Condition>> {
        let (mut a, mut b) = (self.side(self.a)?, self.side(self.b)?);
        self.settle(self.a, &mut a, &[]);
        self.settle(self.b, &mut b, &[]);
        let whole = |view: &Self, side: &Side, site: &Site| -> Option<(Sum, Sum)> {
            let (mut low, mut high) = (side.low.clone(), side.high.clone());
            for (id, factor) in &side.digits {
                let span = magnitude(factor)?.times(&view.high(site, Atom::Count(*id)));
                match factor.0.values().all(|times| *times > 0) {
                    true => high = high.plus(&span, 1),
                    false => low = low.plus(&span, -1),
                }
            }
            Some((low.plus(&side.shared, 1), high.plus(&side.shared, 1)))
        };
        let ((a_low, a_high), (b_low, b_high)) = (whole(self, &a, self.a)?, whole(self, &b, self.b)?);
        for (low, high, other_low, other_high) in [(&a_low, &a_high, &b_low, &b_high), (&b_low, &b_high, &a_low, &a_high)] {
            self.conditions.clear();
            let gap = other_low.clone().plus(high, -1).plus(&Sum::number(1), -1);
            let span = Sum::number(u32::MAX.into()).plus(other_high, -1).plus(low, 1);
            if self.require(gap).is_some() && self.require(span).is_some() {
                return Some(std::mem::take(&mut self.conditions));
            }
        }
        None
    }

    /// The largest that an id can be in a launch.
    fn extent(&self, id: Builtin) -> Sum {
        let count = |count: Builtin| Sum::product(vec![Atom::Count(count)], 1).plus(&Sum::number(1), -1);
        match id {
            Builtin::Invocation(axis) => count(Builtin::InvocationCount(axis)),
            Builtin::Workgroup(axis) => count(Builtin::WorkgroupCount(axis)),
            Builtin::Local(axis) => Sum::number(i128::from(self.ssa().kernel.workgroup_size[axis as usize]) - 1),
            Builtin::InvocationCount(_)
            | Builtin::WorkgroupCount(_)
            | Builtin::LocalCount(_)
            | Builtin::SubgroupLane
            | Builtin::SubgroupSize => Sum::number(u32::MAX.into()),
        }
    }

    /// Sees to it that a sum is not negative: by itself, or at the launch.
    fn require(&mut self, not_negative: Sum) -> Option<()> {
        let (mut least, mut most) = (0i128, 0i128);
        for (atoms, times) in &not_negative.0 {
            let (mut low, mut high) = (1i128, 1i128);
            for (least, most) in atoms.iter().map(|atom| self.bounds(*atom)) {
                (low, high) = (low.saturating_mul(least), high.saturating_mul(most));
            }
            // A launch has fewer than 2³² invocations, and workgroups.
            if is_part_of_all(atoms) {
                high = high.min(i128::from(u32::MAX));
            }
            let (small, large) = if *times > 0 { (low, high) } else { (high, low) };
            least = least.saturating_add(times.saturating_mul(small));
            most = most.saturating_add(times.saturating_mul(large));
        }
        if least >= 0 {
            return Some(());
        }
        if most < 0 {
            return None;
        }
        let evaluable = not_negative.0.keys().flatten().all(|atom| match atom {
            Atom::Count(builtin) => is_count(*builtin),
            Atom::Value(value) => self.is_known_at_launch(*value),
        });
        // Numbers do not become others at the launch.
        if !evaluable || not_negative.0.keys().all(Vec::is_empty) {
            return None;
        }
        let text = self.spelled(&not_negative);
        if self.conditions.iter().all(|condition| condition.text != text) {
            self.conditions.push(Condition { text, node: self.proof.node(self.a), not_negative });
        }
        Some(())
    }

    /// The numbers that something both share can be.
    fn bounds(&self, atom: Atom) -> (i128, i128) {
        let numbers = |low: u32, high: u32| (i128::from(low), i128::from(high));
        match atom {
            Atom::Count(Builtin::LocalCount(axis)) => {
                let size = self.ssa().kernel.workgroup_size[axis as usize];
                numbers(size, size)
            }
            Atom::Count(Builtin::Invocation(_) | Builtin::Workgroup(_) | Builtin::Local(_) | Builtin::SubgroupLane) => {
                numbers(0, u32::MAX)
            }
            // A launch that runs has a workgroup along every axis, whatever size it gives them.
            Atom::Count(Builtin::InvocationCount(axis)) => numbers(self.ssa().kernel.workgroup_size[axis as usize], u32::MAX),
            Atom::Count(Builtin::WorkgroupCount(_) | Builtin::SubgroupSize) => numbers(1, u32::MAX),
            Atom::Value(value) => {
                // What the guards of both accesses leave; a bound that something is below is at least 1.
                let range = self.proof.flow.ranges[value.index()];
                let of = |site: &Site| site.facts.get(&value).map_or((range.low, range.high), |facts| (facts.low, facts.high));
                let (a, b) = (of(self.a), of(self.b));
                let is_bound =
                    |site: &Site| site.facts.values().chain(site.ids.values()).any(|facts| facts.below.contains(&value));
                let least = u32::from(is_bound(self.a) || is_bound(self.b));
                numbers(a.0.max(b.0).max(range.low).max(least), a.1.min(b.1).min(range.high))
            }
        }
    }

    /// Whether a value can be computed from lengths, counts and inputs that nobody writes, with little work: it is computed anew for
    /// every use.
    fn is_known_at_launch(&self, value: Value) -> bool {
        self.is_known_within(value, &mut MAX_WORK.clone())
    }

    fn is_known_within(&self, value: Value, work: &mut u32) -> bool {
        let ssa = self.ssa();
        *work = work.saturating_sub(1);
        if *work == 0 {
            return false;
        }
        match ssa.value(value).def {
            Def::Leaf(Leaf::Lit { .. } | Leaf::Len { .. }) => true,
            Def::Leaf(Leaf::Builtin { builtin }) => is_count(builtin),
            Def::Argument(..) => false,
            Def::Result(inst, _) => match &ssa.inst(inst).kind {
                InstKind::Op(Op::Vector { .. } | Op::Extract { .. }) => false,
                InstKind::Op(op) => op.operands().iter().all(|operand| self.is_known_within(*operand, work)),
                InstKind::Load { buffer, index, .. } => {
                    let buffer = ssa.kernel.buffer(*buffer);
                    !buffer.access.is_writable() && buffer.value.scalar().is_some() && self.is_known_within(*index, work)
                }
                InstKind::Store { .. }
                | InstKind::Atomic { .. }
                | InstKind::Subgroup { .. }
                | InstKind::If { .. }
                | InstKind::Loop { .. }
                | InstKind::Barrier
                | InstKind::GridSync => false,
            },
        }
    }

    /// `not_negative >= 0` as people would write it: what is taken away on the left, what it is taken from on the right.
    fn spelled(&self, not_negative: &Sum) -> String {
        let part = |positive: bool| -> String {
            let mut parts: Vec<String> = Vec::new();
            for (atoms, times) in not_negative.0.iter().rev() {
                if (*times > 0) != positive {
                    continue;
                }
                let mut factors: Vec<String> = atoms.iter().map(|atom| self.name(*atom)).collect();
                if times.abs() != 1 || atoms.is_empty() {
                    factors.insert(0, times.abs().to_string());
                }
                parts.push(factors.join(" * "));
            }
            if parts.is_empty() { "0".into() } else { parts.join(" + ") }
        };
        format!("{} <= {}", part(false), part(true))
    }

    fn name(&self, atom: Atom) -> String {
        let ssa = self.ssa();
        match atom {
            Atom::Count(builtin) => builtin.to_string(),
            Atom::Value(value) => match (ssa.value(value).def, ssa.value(value).var) {
                (Def::Leaf(Leaf::Builtin { builtin }), _) => builtin.to_string(),
                (Def::Leaf(Leaf::Len { buffer }), _) => format!("len({})", ssa.kernel.buffer(buffer).name),
                (Def::Leaf(Leaf::Lit { bits }), _) => bits.to_string(),
                (_, Some(var)) => ssa.kernel.var(var).name.to_string(),
                (Def::Result(inst, _), None) => match &ssa.inst(inst).kind {
                    InstKind::Load { buffer, index, .. } => {
                        format!("{}[{}]", ssa.kernel.buffer(*buffer).name, self.name(Atom::Value(*index)))
                    }
                    InstKind::Op(Op::Binary { op, left, right, .. }) => {
                        format!("{op}({}, {})", self.name(Atom::Value(*left)), self.name(Atom::Value(*right)))
                    }
                    InstKind::Op(Op::Cast { to, value, .. }) => format!("{to}({})", self.name(Atom::Value(*value))),
                    InstKind::Op(_)
                    | InstKind::Store { .. }
                    | InstKind::Atomic { .. }
                    | InstKind::Subgroup { .. }
                    | InstKind::If { .. }
                    | InstKind::Loop { .. }
                    | InstKind::Barrier
                    | InstKind::GridSync => format!("%{}", value.0),
                },
                (Def::Argument(..), None) => format!("%{}", value.0),
            },
        }
    }
}

/// Whether these are counts of invocations, or of workgroups, each along another axis.
fn is_part_of_all(atoms: &[Atom]) -> bool {
    let axis = |atom: &Atom, of_workgroups: bool| match atom {
        Atom::Count(Builtin::InvocationCount(axis)) if !of_workgroups => Some(*axis),
        Atom::Count(Builtin::WorkgroupCount(axis)) if of_workgroups => Some(*axis),
        Atom::Count(_) | Atom::Value(_) => None,
    };
    [true, false].into_iter().any(|of_workgroups| {
        let mut seen = [false; 3];
        atoms.iter().all(|atom| axis(atom, of_workgroups).is_some_and(|axis| !std::mem::replace(&mut seen[axis as usize], true)))
    })
}

/// Whether all invocations of a launch read the same.
fn is_count(builtin: Builtin) -> bool {
    match builtin {
        Builtin::InvocationCount(_) | Builtin::WorkgroupCount(_) | Builtin::LocalCount(_) | Builtin::SubgroupSize => true,
        Builtin::Invocation(_) | Builtin::Workgroup(_) | Builtin::Local(_) | Builtin::SubgroupLane => false,
    }
}

/// Gives a side, whose digit can only be one number, the other's factor for it.
fn borrow(side: &mut Side, other: &Side, id: Builtin, only: u32) {
    if let Some(factor) = other.digits.get(&id) {
        side.digits.insert(id, factor.clone());
        side.shared = std::mem::take(&mut side.shared).plus(factor, -i128::from(only));
    }
}

/// A factor without its sign; `None` if it is not known.
fn magnitude(factor: &Sum) -> Option<Sum> {
    if factor.0.values().all(|times| *times > 0) {
        Some(factor.clone())
    } else if factor.0.values().all(|times| *times < 0) {
        Some(Sum::default().plus(factor, -1))
    } else {
        None
    }
}

/// The loops that two invocations of a workgroup are in the same iteration of, whenever both accesses happen between the same two
/// barriers.
///
/// Control around barriers is uniform, so all invocations go through the iterations of such a loop together, from barrier to barrier.
/// If every iteration has one, the time between two barriers holds the end of one iteration and the start of the next at most. Where
/// it begins outside the loop, both accesses are in the first iteration; where it begins inside, in the same one if both come
/// behind that barrier, or both in front of it.
fn in_step(proof: &Prover<'_>, a: &Site, b: &Site) -> Vec<InstId> {
    let Some(common) = proof.workgroup.common(a.access, b.access) else { return Vec::new() };
    let (Some(first), Some(second)) = (proof.inst(a), proof.inst(b)) else { return Vec::new() };
    let stays = |around: &InstId| {
        let InstKind::Loop { body, .. } = proof.ssa.inst(*around).kind else { return false };
        proof.workgroup.is_synchronised(body)
            && common.iter().all(|beginning| match beginning {
                Beginning::Start => true,
                Beginning::Barrier(barrier) if !proof.loops[barrier.index()].contains(around) => true,
                Beginning::Barrier(barrier) => {
                    // What the barrier's own region does not hold may come in front of it and behind.
                    let region = proof.within[barrier.index()].last();
                    let side = |inst: InstId| {
                        let holds = region.is_some_and(|region| proof.within[inst.index()].contains(region));
                        holds.then(|| proof.order[inst.index()] > proof.order[barrier.index()])
                    };
                    side(first).is_some() && side(first) == side(second)
                }
            })
    };
    let both = proof.loops[first.index()].iter().copied().filter(|id| proof.loops[second.index()].contains(id));
    both.filter(stays).collect()
}
