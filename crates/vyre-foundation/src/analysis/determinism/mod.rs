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
//! **How.** Every two accesses to a buffer are compared, for three kinds of pairs of invocations:
//!
//! - any two of the dispatch, which differ in `gid`; only a grid barrier comes between them;
//! - two of one workgroup, which differ in `lid`; barriers come between them, and they agree on what is uniform in the workgroup, if it
//!   does not change between the same two barriers;
//! - two of different workgroups, which differ in `wid`.
//!
//! The first is enough. Where it fails the second and the third together are. Indices are compared as sums over ids (`compare.rs`,
//! with divisions in `quotients.rs`). For two of one workgroup there is another way: to go through the program with all of them
//! (`lanes.rs`). What is known about an access comes from the conditions around it, `if gid.x < w`, `if lid.x == 0` (`sites.rs`).
//!
//! **Conditions.** What `w` is, is known at the launch. So an inequality that does not hold by itself but is made of lengths, counts
//! and values from `read` and `uniform` buffers becomes a condition, such as `w * gid_count.y <= 4294967296`, and
//! [`Program::proof_for`](crate::ir::Program::proof_for) evaluates it (`launch.rs`). With `w` = 2³¹ and three rows the index wraps, two
//! invocations write one element, and the launch is refused; with `w` = 640 it is proven. Where one of several ways to be apart
//! would do, as for two halves of a buffer that change places, the condition has alternatives. What no launch meets is no condition
//! but a refusal (`words.rs`).

mod compare;
mod lanes;
mod launch;
mod quotients;
mod sites;
mod sums;
mod words;

use super::affine::{Affine, Forms};
use super::epochs::Epochs;
use super::numbers::Numbers;
use super::ranges::Flow;
use super::uniformity::Uniformity;
use crate::diagnostic::{Diagnostic, Location};
use crate::hash::Table;
use crate::ir::{Access, AtomicOp, Axis, Builtin, NodeId};
use crate::kernel::BufferId;
use crate::ssa::{Def, InstId, InstKind, RegionId, Ssa, Value};
use compare::{Alternatives, Pairs, View};
use lanes::Meetings;
pub(crate) use launch::Known;
use sites::Site;
use std::cell::{OnceCell, RefCell};
use std::fmt;
use sums::{Atom, Sum};
use vyre_spec::ErrorCode;

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
    /// In one of these, nothing is negative.
    any_of: Alternatives,
}

impl Condition {
    /// What is not negative wherever it is met, as far as there are no alternatives.
    fn always(&self) -> &[Sum] {
        match &self.any_of[..] {
            [all] => all,
            _ => &[],
        }
    }
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
                let holds = |sum: &Sum| sum.evaluate(known).map_or(in_doubt, |value| value >= 0);
                let is_met = |condition: &Condition| condition.any_of.iter().any(|all| all.iter().all(holds));
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

/// Accesses to one buffer that are compared with each other at most; beyond, it is too much work for an answer.
const MAX_SITES: usize = 48;

/// Accesses with one index that another is held against at most, to see whether it is alike.
const MAX_LIKE: usize = 8;

/// The answer for a form, of which is known what is uniform.
#[must_use]
pub fn of_form(ssa: &Ssa, uniformity: &Uniformity) -> Determinism {
    let mut proof = Prover::new(ssa, uniformity);
    let sites = proof.sites();
    let mut conditions: Vec<Condition> = Vec::new();
    for (n, sites) in sites.iter().enumerate() {
        if let Err(reason) = proof.buffer(BufferId(n as u32), sites, &mut conditions) {
            return Determinism::Unproven(reason);
        }
    }
    // What follows from the others.
    let bounds = |atom: Atom| proof.bounds(atom);
    for n in (0..conditions.len()).rev() {
        let condition = conditions.remove(n);
        let others: Vec<Sum> = conditions.iter().flat_map(Condition::always).cloned().collect();
        let within = tightened(&others, &bounds);
        if condition.any_of.iter().all(|all| all.iter().any(|sum| sum.range(&within).0 < 0)) {
            conditions.insert(n, condition);
        }
    }
    Determinism::CrossBackend { conditions }
}

/// Two accesses by likeness, which pairs of invocations, and the loops that those are in the same iteration of.
type Compared = (u32, u32, Pairs, Vec<InstId>);

/// Why they are apart, if they are, and what no launch meets of what that would need.
type Comparison = (Option<Alternatives>, Option<Sum>);

/// Accesses of which no two compare alike.
#[derive(Default)]
struct Distinct {
    sites: Vec<Site>,
    /// By index: their numbers.
    by_index: Table<Affine, Vec<u32>>,
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
    /// What meets within a workgroup, if it was asked for; `None` if that is not known.
    meetings: OnceCell<Option<Meetings>>,
    numbers: Numbers,
    forms: Forms,
    /// Accesses that compare differently.
    distinct: RefCell<Distinct>,
    /// What comparing gave, by what was compared.
    compared: RefCell<Table<Compared, Comparison>>,
    /// What no launch meets of what two accesses would need, while they are compared.
    missed: RefCell<Option<Sum>>,
}

impl<'a> Prover<'a> {
    fn new(ssa: &'a Ssa, uniformity: &'a Uniformity) -> Prover<'a> {
        let mut used = vec![false; ssa.values.len()];
        ssa.for_each_inst(ssa.root, &mut |_, inst| inst.kind.for_each_operand(&mut |value| used[value.index()] = true));
        ssa.for_each_region(ssa.root, &mut |_, region| {
            region.end.values().iter().for_each(|value| used[value.index()] = true);
        });
        let flow = Flow::new(ssa);
        let numbers = flow.numbers.clone();
        let mut proof = Prover {
            ssa,
            uniformity,
            flow,
            forms: Forms::of(ssa, &numbers),
            numbers,
            distinct: RefCell::default(),
            compared: RefCell::default(),
            missed: RefCell::new(None),
            workgroup: Epochs::of_workgroup(ssa),
            grid: Epochs::of_grid(ssa),
            loops: vec![Vec::new(); ssa.insts.len()],
            within: vec![Vec::new(); ssa.insts.len()],
            order: vec![0; ssa.insts.len()],
            bodies: vec![None; ssa.regions.len()],
            insts: vec![None; ssa.kernel.accesses.len()],
            used,
            fixed: ssa.kernel.size_matters().is_some(),
            meetings: OnceCell::new(),
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

    fn node(&self, site: &Site) -> NodeId {
        self.ssa.kernel.access(site.access).node
    }

    /// What has to hold for a buffer, or what stands in the way.
    fn buffer(&self, id: BufferId, all: &[Site], conditions: &mut Vec<Condition>) -> Result<(), Reason> {
        let name = &self.ssa.kernel.buffer(id).name;
        let Some(first_write) = all.iter().find(|site| site.kind.writes()) else { return Ok(()) };
        // Accesses that are alike in everything that is asked are compared once.
        let mut sites: Vec<Site> = Vec::new();
        for site in all {
            let alike = |other: &&mut Site| {
                (other.kind, &other.unused, &other.stored) == (site.kind, &site.unused, &site.stored)
                    && other.compares_like(site)
                    && self.same_epochs(other, site)
            };
            match sites.iter_mut().find(alike) {
                Some(other) => other.alike.push(site.access),
                None => sites.push(Site { likeness: self.likeness(site), ..site.clone() }),
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
        for (n, a) in sites.iter().enumerate() {
            for b in &sites[..=n] {
                for alternatives in self.pair(id, a, b)? {
                    self.demand(a, b, alternatives, conditions)?;
                }
            }
        }
        Ok(())
    }

    /// Adds to the conditions of a launch what two accesses need: all that the alternatives have in common, and one of what is left.
    fn demand(&self, a: &Site, b: &Site, mut alternatives: Alternatives, conditions: &mut Vec<Condition>) -> Result<(), Reason> {
        // With what other accesses need, some may be impossible.
        let fixed: Vec<Sum> = conditions.iter().flat_map(Condition::always).cloned().collect();
        let bounds = |atom: Atom| self.bounds(atom);
        let possible = |all: &Vec<Sum>| !is_contradiction(&[fixed.as_slice(), all].concat(), &bounds);
        if !alternatives.iter().any(possible) {
            let needs = alternatives.into_iter().next().unwrap_or_default();
            let needs: Vec<String> = needs.iter().map(|sum| format!("`{}`", self.spelled(sum))).collect();
            let message = format!(
                "no launch can meet what this access to `{}` needs, {}, together with what the accesses before it need",
                self.ssa.kernel.buffer(self.ssa.kernel.access(a.access).buffer).name,
                needs.join(" and ")
            );
            let other = Some(self.node(b)).filter(|_| a.access != b.access);
            let help = "give each invocation elements of its own that do not depend on the size of the launch";
            return Err(Reason { message, help, node: self.node(a), other });
        }
        alternatives.retain(possible);
        let common: Vec<Sum> =
            alternatives[0].iter().filter(|sum| alternatives.iter().all(|all| all.contains(sum))).cloned().collect();
        let mut rest: Alternatives =
            alternatives.iter().map(|all| all.iter().filter(|sum| !common.contains(sum)).cloned().collect()).collect();
        if rest.iter().any(Vec::is_empty) {
            rest.clear();
        }
        let mut add = |text: String, any_of: Alternatives| {
            // Two values can have one name, so it is not the text that says whether it is the same.
            if conditions.iter().all(|other| other.any_of != any_of) {
                conditions.push(Condition { text, node: self.node(a), any_of });
            }
        };
        for sum in common {
            add(self.spelled(&sum), vec![vec![sum]]);
        }
        if !rest.is_empty() {
            let spelled = |all: &Vec<Sum>| all.iter().map(|sum| self.spelled(sum)).collect::<Vec<_>>().join(" and ");
            add(format!("({})", rest.iter().map(spelled).collect::<Vec<_>>().join(" or ")), rest);
        }
        Ok(())
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

    /// What has to hold for two accesses not to get in each other's way: one of each of these alternatives.
    fn pair(&self, id: BufferId, a: &Site, b: &Site) -> Result<Vec<Alternatives>, Reason> {
        let buffer = self.ssa.kernel.buffer(id);
        let wide = buffer.element.bits().is_some_and(|bits| bits >= 32);
        let commute = match (a.unused, b.unused) {
            (Some(a), Some(b)) => commute(a, b),
            (_, _) => false,
        };
        let same_value = wide && a.stored.is_some() && a.stored == b.stored;
        if !(a.kind.writes() || b.kind.writes()) || commute || same_value || !self.grid.may_meet(a.access, b.access) {
            return Ok(Vec::new());
        }
        let local = buffer.access == Access::Workgroup;
        let together = self.workgroup.may_meet(a.access, b.access);
        if local && !together {
            return Ok(Vec::new());
        }
        *self.missed.borrow_mut() = None;
        if !local && let Some(alternatives) = self.apart(a, b, Pairs::Any) {
            return Ok(vec![alternatives]);
        }
        if !(self.fixed || local) {
            return Err(self.refusal(id, a, b, Pairs::Any));
        }
        let mut needed = Vec::new();
        if together {
            match self.apart(a, b, Pairs::OneGroup) {
                Some(found) if found.iter().any(Vec::is_empty) => {}
                _ if self.never_meet(a, b) => {}
                Some(found) => needed.push(found),
                None => return Err(self.refusal(id, a, b, Pairs::OneGroup)),
            }
        }
        if !local {
            match self.apart(a, b, Pairs::TwoGroups).or_else(|| View::new(self, a, b, Pairs::TwoGroups).alone()) {
                Some(found) => needed.push(found),
                None => return Err(self.refusal(id, a, b, Pairs::TwoGroups)),
            }
        }
        Ok(needed)
    }

    /// Whether two invocations of a workgroup never touch one element by these accesses between the same two barriers.
    fn never_meet(&self, a: &Site, b: &Site) -> bool {
        let meetings = self.meetings.get_or_init(|| Meetings::of(self.ssa, self.uniformity));
        // Accesses that are alike as sums may be under conditions that only this looks at.
        let pairs = |meetings: &Meetings| a.alike.iter().any(|one| b.alike.iter().any(|other| meetings.contain(*one, *other)));
        meetings.as_ref().is_some_and(|meetings| !pairs(meetings))
    }

    /// Why two invocations of such a pair never have the same index: what has to hold for it, one of these.
    ///
    /// Programs have many accesses that compare alike, to several buffers, so what was found is kept.
    fn apart(&self, a: &Site, b: &Site, pairs: Pairs) -> Option<Alternatives> {
        let view = View::new(self, a, b, pairs);
        let key = (a.likeness, b.likeness, pairs, view.in_step().to_vec());
        let known = self.compared.borrow().get(&key).cloned();
        let (found, missed) = known.unwrap_or_else(|| {
            let before = self.missed.take();
            let found = self.compare(view);
            let result = (found, self.missed.replace(before));
            self.compared.borrow_mut().insert(key, result.clone());
            result
        });
        let mut first = self.missed.borrow_mut();
        *first = first.take().or(missed);
        found
    }

    /// A number that accesses which compare alike have in common; not all of them, if there are many that almost do.
    fn likeness(&self, site: &Site) -> u32 {
        let mut distinct = self.distinct.borrow_mut();
        let Distinct { sites, by_index } = &mut *distinct;
        let same_index = by_index.entry(site.index.clone()).or_default();
        let latest = same_index.iter().rev().take(MAX_LIKE);
        if let Some(number) = latest.copied().find(|number| sites[*number as usize].compares_like(site)) {
            return number;
        }
        let number = sites.len() as u32;
        sites.push(site.clone());
        same_index.push(number);
        number
    }

    fn compare(&self, mut view: View<'_, '_>) -> Option<Alternatives> {
        let mut found = Alternatives::new();
        // What conditions around the accesses say may help, or stand in the way of comparing.
        for (guards, groups) in [(true, false), (true, true), (false, false)] {
            if (groups && !view.has_groups()) || (!guards && !view.has_guards()) {
                continue;
            }
            view.look_at(guards, groups);
            for way in [View::places, View::one_to_one, View::disjoint] {
                let alternatives = way(&mut view).unwrap_or_default();
                if alternatives.iter().any(Vec::is_empty) {
                    return Some(vec![Vec::new()]);
                }
                // Without the conditions around, only what they do not help with.
                if guards || found.is_empty() {
                    found.extend(alternatives);
                }
            }
        }
        view.fewest(found)
    }

    /// The numbers that something which is the same in a whole launch can be.
    fn bounds(&self, atom: Atom) -> (i128, i128) {
        let numbers = |low: u32, high: u32| (i128::from(low), i128::from(high));
        let size = |axis: Axis| self.ssa.kernel.workgroup_size[axis as usize];
        match atom {
            Atom::Count(Builtin::LocalCount(axis)) => numbers(size(axis), size(axis)),
            Atom::Count(Builtin::Invocation(_) | Builtin::Workgroup(_) | Builtin::Local(_) | Builtin::SubgroupLane) => {
                numbers(0, u32::MAX)
            }
            // A launch that runs has a workgroup along every axis; one that overrides the size keeps the invocations along each.
            Atom::Count(Builtin::InvocationCount(axis)) => numbers(size(axis), u32::MAX),
            Atom::Count(Builtin::WorkgroupCount(axis)) if self.fixed => numbers(1, u32::MAX / size(axis).max(1)),
            Atom::Count(Builtin::WorkgroupCount(_) | Builtin::SubgroupSize) => numbers(1, u32::MAX),
            Atom::Value(value) => {
                let range = self.flow.of_number(value);
                numbers(range.low, range.high)
            }
            Atom::Most(value) => numbers(0, self.flow.of_number(value).high),
        }
    }
}

/// The numbers that an atom can be where none of these sums is negative.
fn tightened(sums: &[Sum], bounds: &impl Fn(Atom) -> (i128, i128)) -> impl Fn(Atom) -> (i128, i128) {
    let found: Vec<(Atom, i128, i128)> = sums.iter().flat_map(|sum| sum.bounds(bounds)).collect();
    move |atom| {
        let about = found.iter().filter(|(other, _, _)| *other == atom);
        about.fold(bounds(atom), |(low, high), (_, least, most)| (low.max(*least), high.min(*most)))
    }
}

/// Whether some of these must be negative.
fn is_contradiction(sums: &[Sum], bounds: &impl Fn(Atom) -> (i128, i128)) -> bool {
    let within = tightened(sums, bounds);
    sums.iter().any(|sum| {
        let is_empty = |atom: Atom| within(atom).0 > within(atom).1;
        sum.atoms().into_iter().any(is_empty) || sum.range(&within).1 < 0
    })
}

/// Takes out what follows from the others.
fn drop_implied(sums: &mut Vec<Sum>, bounds: &impl Fn(Atom) -> (i128, i128)) {
    for n in (0..sums.len()).rev() {
        let sum = sums.remove(n);
        if sum.range(&tightened(sums, bounds)).0 < 0 {
            sums.insert(n, sum);
        }
    }
}

/// Whether two atomics leave the same in either order.
fn commute(a: AtomicOp, b: AtomicOp) -> bool {
    a.class().is_some_and(|class| class.accumulates() && b.class() == Some(class))
}
