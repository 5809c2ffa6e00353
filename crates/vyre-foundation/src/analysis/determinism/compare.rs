//! Two accesses compared as sums: why two invocations never have the same index.
//!
//! The ids that the two differ in are *digits*. An index `4·w·gid.y + 4·gid.x + k` is one-to-one if each digit's factor is larger than
//! everything that the smaller digits and the rest can add up to, and if nothing wraps: then different digits give different elements.
//! Digits are also what each invocation has of its own and both count with in the same way: the counter of a loop, the quotient and
//! remainder of an id, and a sum that a guard is about: with `x < h` around it, `y * h + x` has the digits `y` and `x` whatever `x` is
//! made of. Such a digit tells who is who only if the ids follow from it ([`View::covered`]). If none of this works, the two indices may
//! still lie apart: the largest of one below the smallest of the other.
//!
//! All of it is arithmetic in integers, on sums of products of numbers that are not negative. "Nothing wraps" means that the difference
//! of the two indices is less than 2³², so that indices which are equal modulo 2³² are equal.

use super::launch::{has_known_most, is_count, is_known_at_launch};
use super::quotients::Divisions;
use super::sites::Site;
use super::sums::{Atom, Atoms, Sum, magnitude};
use super::{Prover, drop_implied, is_contradiction, tightened};
use crate::analysis::affine::Affine;
use crate::analysis::epochs::Beginning;
use crate::analysis::uniformity::Scope;
use crate::ir::{Axis, Builtin};
use crate::ssa::{InstId, InstKind, Leaf, Ssa, Value};
use std::collections::BTreeMap;

/// What invocations have of their own that counts as digits, at most: their orders are tried.
const MAX_OWN: usize = 4;

/// A bound that is above this is looked for at the launch.
const MANY: u32 = 1 << 16;

/// Digits whose orders are tried.
const MAX_DIGITS: usize = 5;

/// Ways to be apart that are told, one of which a launch has to meet.
const MAX_ALTERNATIVES: usize = 3;

/// Several lists of sums: in one of the lists, no sum may be negative. An empty list asks for nothing.
pub(super) type Alternatives = Vec<Vec<Sum>>;

/// Which pairs of invocations are looked at.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Pairs {
    /// Any two.
    Any,
    /// Two of one workgroup.
    OneGroup,
    /// Two of different workgroups.
    TwoGroups,
}

/// One side of a comparison: an index over digits, what both sides share, and the rest.
pub(super) struct Side {
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
pub(super) struct View<'p, 'a> {
    proof: &'p Prover<'a>,
    a: &'p Site,
    b: &'p Site,
    pairs: Pairs,
    /// Whether upper bounds are those that conditions say, rather than numbers.
    guards: bool,
    /// Whether what conditions are about is not taken apart.
    groups: bool,
    /// The loops that both are in the same iteration of.
    in_step: Vec<InstId>,
    conditions: Vec<Sum>,
}

impl<'p, 'a> View<'p, 'a> {
    pub(super) fn new(proof: &'p Prover<'a>, a: &'p Site, b: &'p Site, pairs: Pairs) -> View<'p, 'a> {
        let in_step = if pairs == Pairs::OneGroup { in_step(proof, a, b) } else { Vec::new() };
        View { proof, a, b, pairs, guards: false, groups: false, in_step, conditions: Vec::new() }
    }

    /// The loops that both accesses are in the same iteration of.
    pub(super) fn in_step(&self) -> &[InstId] {
        &self.in_step
    }

    /// Whether the conditions around the accesses bound anything by a value.
    pub(super) fn has_guards(&self) -> bool {
        !(self.a.bounds.is_empty() && self.b.bounds.is_empty())
    }

    /// Whether both have an index in which what conditions are about is not taken apart.
    pub(super) fn has_groups(&self) -> bool {
        self.a.grouped.is_some() && self.b.grouped.is_some()
    }

    /// From now on with what the conditions around the accesses say, or without.
    pub(super) fn look_at(&mut self, guards: bool, groups: bool) {
        (self.guards, self.groups) = (guards, groups);
    }

    pub(super) fn ssa(&self) -> &'a Ssa {
        self.proof.ssa
    }

    /// The ids that two invocations of a pair may differ in.
    pub(super) fn owners(&self) -> [Builtin; 3] {
        Axis::ALL.map(|axis| match self.pairs {
            Pairs::Any => Builtin::Invocation(axis),
            Pairs::OneGroup => Builtin::Local(axis),
            Pairs::TwoGroups => Builtin::Workgroup(axis),
        })
    }

    pub(super) fn builtin(&self, value: Value) -> Option<Builtin> {
        match self.ssa().leaf(value)? {
            Leaf::Builtin { builtin } => Some(builtin),
            Leaf::Lit { .. } | Leaf::Len { .. } => None,
        }
    }

    pub(super) fn atom(&self, value: Value) -> Atom {
        self.builtin(value).map_or(Atom::Value(value), Atom::Count)
    }

    /// Whether both invocations have the same value, whatever iterations they are in.
    pub(super) fn is_shared(&self, value: Value) -> bool {
        let scope = match self.pairs {
            Pairs::OneGroup => Scope::Workgroup,
            Pairs::Any | Pairs::TwoGroups => Scope::Dispatch,
        };
        self.proof.uniformity.is_uniform(value, scope)
            && self.proof.loops_of(value).iter().all(|around| self.in_step.contains(around))
    }

    /// The one value of an id where an access stands, if conditions leave one.
    pub(super) fn only(&self, site: &Site, id: Builtin) -> Option<u32> {
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
    pub(super) fn products(&self, index: &Affine) -> Vec<(Atoms, i128)> {
        let signed = |n: u32| i128::from(n as i32);
        let mut products = vec![(Atoms::new(), signed(index.constant))];
        for (product, times) in &index.terms {
            let mut parts = vec![(Atoms::new(), signed(*times))];
            for atom in product.iter() {
                let split = match (self.builtin(*atom), self.pairs) {
                    (Some(Builtin::Invocation(axis)), Pairs::OneGroup | Pairs::TwoGroups) => Some(axis),
                    _ => None,
                };
                parts = parts
                    .into_iter()
                    .flat_map(|(atoms, times): (Atoms, i128)| {
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

    pub(super) fn as_builtin(&self, atom: Atom) -> Option<Builtin> {
        match atom {
            Atom::Count(builtin) => Some(builtin),
            Atom::Value(value) => self.builtin(value),
            Atom::Most(_) => None,
        }
    }

    pub(super) fn atom_is_shared(&self, atom: Atom) -> bool {
        match atom {
            Atom::Value(value) => self.is_shared(value),
            Atom::Most(_) => true,
            Atom::Count(Builtin::Workgroup(_)) => self.pairs == Pairs::OneGroup,
            Atom::Count(Builtin::Invocation(_) | Builtin::Local(_) | Builtin::SubgroupLane) => false,
            Atom::Count(
                Builtin::InvocationCount(_) | Builtin::WorkgroupCount(_) | Builtin::LocalCount(_) | Builtin::SubgroupSize,
            ) => true,
        }
    }

    /// The largest that an atom can be where an access stands.
    pub(super) fn high(&self, site: &Site, atom: Atom) -> Sum {
        let builtin = self.as_builtin(atom);
        let facts = match atom {
            Atom::Value(value) => site.facts.get(&value),
            Atom::Count(builtin) => site.ids.get(&builtin),
            Atom::Most(_) => None,
        };
        if self.guards
            && let Some(facts) = facts
        {
            for bound in &facts.below {
                if let Some(bound) = self.shared_number(*bound) {
                    return bound.plus_number(-1);
                }
            }
        }
        let number = facts.map_or(u32::MAX, |facts| facts.high);
        let size = |axis: Axis| i128::from(self.ssa().kernel.workgroup_size[axis as usize]);
        match builtin {
            Some(Builtin::Invocation(axis)) if number >= u32::MAX - 1 => {
                Sum::atom(Atom::Count(Builtin::InvocationCount(axis))).plus_number(-1)
            }
            Some(Builtin::Workgroup(axis)) if number >= u32::MAX - 1 => {
                Sum::atom(Atom::Count(Builtin::WorkgroupCount(axis))).plus_number(-1)
            }
            Some(Builtin::Local(axis)) => Sum::number((size(axis) - 1).min(i128::from(number))),
            _ => match atom {
                // What launches make of it is far less than what it could be at all.
                Atom::Value(value) if number > MANY && has_known_most(self.ssa(), value) => self.most_of(value),
                Atom::Value(_) | Atom::Count(_) | Atom::Most(_) => Sum::number(i128::from(number)),
            },
        }
    }

    pub(super) fn low(&self, site: &Site, atom: Atom) -> i128 {
        let facts = match atom {
            Atom::Value(value) => site.facts.get(&value),
            Atom::Count(builtin) => site.ids.get(&builtin),
            Atom::Most(_) => None,
        };
        i128::from(facts.map_or(0, |facts| facts.low))
    }

    /// A value that both share, as a number that does not wrap.
    pub(super) fn shared_number(&self, value: Value) -> Option<Sum> {
        self.is_shared(value).then(|| match self.ssa().literal(value) {
            Some(bits) => Sum::number(i128::from(bits as u32)),
            None => Sum::atom(self.atom(value)),
        })
    }

    pub(super) fn side(&self, site: &Site) -> Option<Side> {
        let index = site.grouped.as_ref().filter(|_| self.groups).unwrap_or(&site.index);
        self.side_of(site, index)
    }

    /// The side of an invocation that does an access, for another index than that of the access.
    fn side_of(&self, site: &Site, index: &Affine) -> Option<Side> {
        let mut side = Side {
            digits: BTreeMap::new(),
            shared: Sum::default(),
            own: BTreeMap::new(),
            low: Sum::default(),
            high: Sum::default(),
            only: self.owners().into_iter().filter_map(|id| Some((id, self.only(site, id)?))).collect(),
        };
        for (atoms, mut times) in self.products(index) {
            // Ids that can be only one number are that number.
            let mut kept = Atoms::new();
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
        side.digits.retain(|_, factor| !factor.is_zero());
        side.own.retain(|_, factor| !factor.is_zero());
        Some(side)
    }

    /// Adds what a product can be to the rest of a side. Everything is at least 0, so a product grows with each of its atoms.
    pub(super) fn spread(&self, site: &Site, side: &mut Side, atoms: Atoms, times: i128) {
        let mut high = Sum::number(times.abs());
        let mut low = times.abs();
        for atom in &atoms {
            let most = if self.atom_is_shared(*atom) { Sum::atom(*atom) } else { self.high(site, *atom) };
            high = high.times(&most);
            low = low.saturating_mul(self.low(site, *atom));
        }
        let low = Sum::number(low);
        let (least, most, sign) = if times > 0 { (&low, &high, 1) } else { (&high, &low, -1) };
        side.low = std::mem::take(&mut side.low).plus(least, sign);
        side.high = std::mem::take(&mut side.high).plus(most, sign);
    }

    /// Takes what each invocation has of its own for part of the rest, but for what counts as a digit.
    pub(super) fn settle(&self, site: &Site, side: &mut Side, digits: &[Atom]) {
        for (own, factor) in std::mem::take(&mut side.own) {
            if digits.contains(&own) {
                continue;
            }
            for (atoms, times) in factor.parts() {
                let atoms = atoms.iter().copied().chain([own]).collect();
                self.spread(site, side, atoms, *times);
            }
        }
    }

    /// Both indices are the same scan over the whole workgroup, and every invocation that gets here adds to it: each has a number of
    /// its own.
    pub(super) fn places(&mut self) -> Option<Alternatives> {
        let [(product, 1 | u32::MAX)] = self.a.index.terms[..] else { return None };
        let [atom] = product[..] else { return None };
        let same = self.a.index == self.b.index && self.a.needs.is_empty() && self.b.needs.is_empty();
        let same = same && self.pairs == Pairs::OneGroup;
        let whole = self.ssa().kernel.subgroup == Some(self.ssa().kernel.workgroup_invocations());
        let in_step = self.proof.loops_of(atom).iter().all(|around| self.in_step.contains(around));
        let counts = |site: &Site| site.adds.contains(&atom);
        (same && whole && in_step && counts(self.a) && counts(self.b)).then(|| vec![Vec::new()])
    }

    /// Different digits give different elements. What both have of their own with the same factor may be a digit too, or part of the
    /// rest. Such a digit tells nothing about who is who, unless it is a part of an id that was taken apart by division.
    pub(super) fn one_to_one(&mut self) -> Option<Alternatives> {
        let (a, b) = (self.side(self.a)?, self.side(self.b)?);
        let common: Vec<Atom> =
            a.own.iter().filter(|(own, factor)| b.own.get(own) == Some(factor)).map(|(own, _)| *own).take(MAX_OWN).collect();
        let with = if common.is_empty() { None } else { self.one_to_one_over(&common) };
        with.or_else(|| self.one_to_one_over(&[]))
    }

    fn one_to_one_over(&mut self, own: &[Atom]) -> Option<Alternatives> {
        self.conditions.clear();
        self.require_forms()?;
        let (mut a, mut b) = (self.side(self.a)?, self.side(self.b)?);
        let covered = self.covered(own)?;
        let mut digits: Vec<(Sum, Sum)> = Vec::new();
        for atom in own {
            let factor = magnitude(a.own.get(atom)?)?;
            digits.push((factor.clone(), self.span(&factor, *atom)));
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
        // Every id that may differ has a factor, or others tell it, or the launch leaves it one value.
        for id in self.owners() {
            if a.only.contains_key(&id) && a.only.get(&id) == b.only.get(&id) {
                continue;
            }
            let (one, other) = (self.high(self.a, Atom::Count(id)), self.high(self.b, Atom::Count(id)));
            let most = if one == other { one } else { self.extent(id) };
            match a.digits.get(&id) {
                Some(factor) => {
                    let factor = magnitude(factor)?;
                    digits.push((factor.clone(), factor.times(&most)));
                }
                None if covered.contains(&id) => {}
                // Asked again where the digit was taken out: it is the same condition.
                None => self.require(Sum::default().plus(&self.extent(id), -1))?,
            }
        }
        if digits.len() > MAX_DIGITS {
            return None;
        }
        let rest = a.shared.clone().plus(&b.shared, -1);
        let high = rest.clone().plus(&a.high, 1).plus(&b.low, -1);
        let low = rest.plus(&a.low, 1).plus(&b.high, -1);
        // The order of the factors is not known where they are not numbers: whichever need the least at the launch.
        let mut found = Alternatives::new();
        self.orders(&mut digits, 0, &high, &low, &mut |view| found.extend(view.alternative()));
        self.fewest(found)
    }

    /// What the indices being what they are asks for.
    fn require_forms(&mut self) -> Option<()> {
        self.a.needs.iter().chain(&self.b.needs).try_for_each(|need| self.require(need.clone()))
    }

    fn divisions(&self) -> Divisions<'p> {
        Divisions { ssa: self.proof.ssa, numbers: &self.proof.numbers, forms: &self.proof.forms }
    }

    /// The ids that follow from these values: where a quotient and its remainder are among them, so is what was divided.
    fn covered(&mut self, own: &[Atom]) -> Option<Vec<Builtin>> {
        let mut known: Vec<Value> =
            own.iter().filter_map(|atom| if let Atom::Value(value) = atom { Some(*value) } else { None }).collect();
        let mut covered = Vec::new();
        let divisions = self.divisions();
        let mut tried = 0;
        while tried < known.len() {
            let latest = known[tried];
            tried += 1;
            for n in 0..tried {
                for (rest, quotient) in [(latest, known[n]), (known[n], latest)] {
                    let mut needs = Vec::new();
                    let Some(remainder) = divisions.complete(rest, quotient, &mut needs) else { continue };
                    // Both must have divided by the same.
                    let whole = divisions.quotient(quotient, &mut Vec::new());
                    if whole.by.values.iter().any(|by| !self.is_shared(*by)) || known.contains(&remainder.of) {
                        continue;
                    }
                    needs.into_iter().try_for_each(|need| self.require(need))?;
                    known.push(remainder.of);
                }
            }
        }
        for value in known {
            match self.builtin(value) {
                Some(id) => covered.extend(self.owners().contains(&id).then_some(id)),
                None => covered.extend(self.told_by(value)),
            }
        }
        Some(covered)
    }

    /// The ids that invocations which have the same of a value agree on: it is one-to-one in them, whatever else is in it.
    fn told_by(&mut self, value: Value) -> Vec<Builtin> {
        let form = self.proof.forms.form(self.ssa(), &self.proof.numbers, value);
        let (Some(mut a), Some(mut b)) = (self.side_of(self.a, &form), self.side_of(self.b, &form)) else { return Vec::new() };
        if form == Affine::atom(value) || a.digits != b.digits {
            return Vec::new();
        }
        self.settle(self.a, &mut a, &[]);
        self.settle(self.b, &mut b, &[]);
        let mut digits = Vec::new();
        for (id, factor) in &a.digits {
            let Some(factor) = magnitude(factor) else { return Vec::new() };
            digits.push((factor.clone(), factor.times(&self.extent(*id))));
        }
        if digits.len() > MAX_DIGITS {
            return Vec::new();
        }
        let rest = a.shared.clone().plus(&b.shared, -1);
        let high = rest.clone().plus(&a.high, 1).plus(&b.low, -1);
        let low = rest.plus(&a.low, 1).plus(&b.high, -1);
        let mut fewest: Option<Vec<Sum>> = None;
        self.orders(&mut digits, 0, &high, &low, &mut |view| {
            if fewest.as_ref().is_none_or(|fewest| view.conditions.len() < fewest.len()) {
                fewest = Some(view.conditions.clone());
            }
        });
        match fewest {
            Some(conditions) => {
                self.conditions = conditions;
                a.digits.into_keys().collect()
            }
            None => Vec::new(),
        }
    }

    /// The most that a factor can make of something of its own, in either invocation.
    fn span(&mut self, factor: &Sum, atom: Atom) -> Sum {
        let (one, other) = (self.high(self.a, atom), self.high(self.b, atom));
        let most = match (one.exact(), other.exact()) {
            _ if one == other => one,
            (Some(one), Some(other)) => Sum::number(one.max(other)),
            (_, _) => Sum::number(u32::MAX.into()),
        };
        let whole = factor.times(&most);
        let Atom::Value(value) = atom else { return whole };
        if most != Sum::atom(Atom::Most(value)) {
            return whole;
        }
        let mut needs = Vec::new();
        // What is left of a division by w is at most w − 1.
        if let Some(rest) = self.divisions().remainder(value, &mut needs) {
            let by = rest.by.sum();
            let is_known = by.atoms().into_iter().all(|atom| self.atom_is_shared(atom)) && self.require_all(needs);
            return if is_known { factor.times(&by.plus_number(-1)) } else { whole };
        }
        // w·(i / w) is at most i.
        let quotient = self.divisions().quotient(value, &mut needs);
        let divided = quotient.by.values.iter().try_fold(factor.clone(), |factor, by| factor.divided(Atom::Value(*by)));
        match divided.and_then(|factor| factor.divided_by(i128::from(quotient.by.number))) {
            Some(factor) if self.require_all(needs) => factor.times(&self.most_of(quotient.of)),
            Some(_) | None => whole,
        }
    }

    /// Sees to it that nothing of this is negative; if that is not possible, nothing is asked for.
    fn require_all(&mut self, needs: Vec<Sum>) -> bool {
        let kept = self.conditions.len();
        let met = needs.into_iter().all(|need| self.require(need).is_some());
        if !met {
            self.conditions.truncate(kept);
        }
        met
    }

    /// The largest that a value can be in a launch, of which that is known.
    fn most_of(&self, value: Value) -> Sum {
        match self.builtin(value) {
            Some(id) => self.extent(id),
            None => Sum::atom(Atom::Most(value)),
        }
    }

    /// The conditions so far, without those that follow from others; `None` if no launch can meet them.
    fn alternative(&self) -> Option<Vec<Sum>> {
        let bounds = |atom: Atom| self.bounds(atom);
        if is_contradiction(&self.conditions, &bounds) {
            return None;
        }
        let mut conditions = self.conditions.clone();
        drop_implied(&mut conditions, &bounds);
        Some(conditions)
    }

    /// Those that ask for the least, and only a few: one that holds only where another does is none.
    pub(super) fn fewest(&self, mut found: Alternatives) -> Option<Alternatives> {
        found.sort_by_key(Vec::len);
        let bounds = |atom: Atom| self.bounds(atom);
        let implies = |all: &[Sum], other: &[Sum]| {
            let within = tightened(all, &bounds);
            other.iter().all(|sum| all.contains(sum) || sum.range(&within).0 >= 0)
        };
        let mut kept = Alternatives::new();
        for all in found {
            if kept.iter().any(|other| implies(&all, other)) {
                continue;
            }
            kept.retain(|other| !implies(other, &all));
            kept.push(all);
        }
        // One that asks for more than the shortest holds only in launches that are special some other way.
        let shortest = kept.first().map_or(0, Vec::len);
        kept.retain(|all| all.len() <= shortest);
        kept.truncate(MAX_ALTERNATIVES);
        (!kept.is_empty()).then_some(kept)
    }

    /// There is only one workgroup.
    pub(super) fn alone(&mut self) -> Option<Alternatives> {
        for id in self.owners() {
            self.require(Sum::default().plus(&self.extent(id), -1))?;
        }
        Some(vec![self.alternative()?])
    }

    /// Calls `found` for every order of the digits in which each factor is larger than all that comes before it can add up to, and
    /// nothing wraps; what that takes is among the conditions then, and only then. The digits before `placed` have their place, and what
    /// they and the rest add up to is between `-low` and `high`. An order is given up at its first digit that cannot have its place.
    fn orders(&mut self, digits: &mut [(Sum, Sum)], placed: usize, high: &Sum, low: &Sum, found: &mut dyn FnMut(&Self)) {
        let kept = self.conditions.len();
        if placed == digits.len() {
            let most = Sum::number(u32::MAX.into());
            if self.require(most.clone().plus(high, -1)).is_some() && self.require(most.plus(low, 1)).is_some() {
                found(self);
            }
            self.conditions.truncate(kept);
            return;
        }
        for n in placed..digits.len() {
            // The others keep their order.
            digits[placed..=n].rotate_right(1);
            let (factor, span) = &digits[placed];
            let least = factor.clone().plus_number(-1);
            if self.require(least.clone().plus(high, -1)).is_some() && self.require(least.plus(low, 1)).is_some() {
                let (high, low) = (high.clone().plus(span, 1), low.clone().plus(span, -1));
                self.orders(digits, placed + 1, &high, &low, found);
            }
            self.conditions.truncate(kept);
            digits[placed..=n].rotate_left(1);
        }
    }

    /// The largest index of one is below the smallest of the other.
    pub(super) fn disjoint(&mut self) -> Option<Alternatives> {
        let (mut a, mut b) = (self.side(self.a)?, self.side(self.b)?);
        self.settle(self.a, &mut a, &[]);
        self.settle(self.b, &mut b, &[]);
        let whole = |view: &Self, side: &Side, site: &Site| -> Option<(Sum, Sum)> {
            let (mut low, mut high) = (side.low.clone(), side.high.clone());
            for (id, factor) in &side.digits {
                let span = magnitude(factor)?.times(&view.high(site, Atom::Count(*id)));
                match factor.only_adds() {
                    true => high = high.plus(&span, 1),
                    false => low = low.plus(&span, -1),
                }
            }
            Some((low.plus(&side.shared, 1), high.plus(&side.shared, 1)))
        };
        let ((a_low, a_high), (b_low, b_high)) = (whole(self, &a, self.a)?, whole(self, &b, self.b)?);
        let mut found = Alternatives::new();
        for (low, high, other_low, other_high) in [(&a_low, &a_high, &b_low, &b_high), (&b_low, &b_high, &a_low, &a_high)] {
            self.conditions.clear();
            self.require_forms()?;
            let gap = other_low.clone().plus(high, -1).plus_number(-1);
            let span = Sum::number(u32::MAX.into()).plus(other_high, -1).plus(low, 1);
            if self.require(gap).is_some() && self.require(span).is_some() {
                found.extend(self.alternative());
            }
        }
        self.fewest(found)
    }

    /// The largest that an id can be in a launch.
    pub(super) fn extent(&self, id: Builtin) -> Sum {
        let count = |count: Builtin| Sum::atom(Atom::Count(count)).plus_number(-1);
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
        let bounds = |atom: Atom| self.bounds(atom);
        let (least, most) = not_negative.range(&bounds);
        if least >= 0 {
            return Some(());
        }
        let evaluable = not_negative.atoms().into_iter().all(|atom| match atom {
            Atom::Count(builtin) => is_count(builtin),
            Atom::Value(value) => is_known_at_launch(self.ssa(), value),
            Atom::Most(_) => true,
        });
        let simplified = not_negative.simplified(&bounds);
        // Numbers do not become others at the launch.
        if !evaluable || simplified.exact().is_some() {
            return None;
        }
        if most < 0 {
            self.proof.missed.borrow_mut().get_or_insert(simplified);
            return None;
        }
        if !self.conditions.contains(&simplified) {
            self.conditions.push(simplified);
        }
        Some(())
    }

    /// The numbers that something both share can be.
    fn bounds(&self, atom: Atom) -> (i128, i128) {
        let (low, high) = self.proof.bounds(atom);
        let Atom::Value(value) = atom else { return (low, high) };
        // What the guards of both accesses leave; a bound that something is below is at least 1.
        let of = |site: &Site| site.facts.get(&value).map_or((0, u32::MAX), |facts| (facts.low, facts.high));
        let (a, b) = (of(self.a), of(self.b));
        let is_bound = |site: &Site| site.bounds.binary_search(&value).is_ok();
        let least = u32::from(is_bound(self.a) || is_bound(self.b));
        (low.max(i128::from(a.0.max(b.0).max(least))), high.min(i128::from(a.1.min(b.1))))
    }
}

/// Gives a side, whose digit can only be one number, the other's factor for it.
fn borrow(side: &mut Side, other: &Side, id: Builtin, only: u32) {
    if let Some(factor) = other.digits.get(&id) {
        side.digits.insert(id, factor.clone());
        side.shared = std::mem::take(&mut side.shared).plus(factor, -i128::from(only));
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
