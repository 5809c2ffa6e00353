//! Sums of products of numbers that are not negative, in integers: what indices, bounds and conditions are made of.

use super::launch::Known;
use crate::ir::Builtin;
use crate::ssa::Value;
use std::collections::BTreeMap;

/// What a sum is made of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Atom {
    /// A value of the form.
    Value(Value),
    /// A count, for which there may be no value.
    Count(Builtin),
    /// The largest that a quotient of ids can be in a launch.
    Most(Value),
}

/// A sum of products of numbers that are not negative; in integers, nothing wraps.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Sum(pub(super) BTreeMap<Vec<Atom>, i128>);

impl Sum {
    pub(super) fn number(n: i128) -> Sum {
        Sum::product(Vec::new(), n)
    }

    pub(super) fn product(atoms: Vec<Atom>, times: i128) -> Sum {
        let mut sum = Sum::default();
        sum.add(atoms, times);
        sum
    }

    pub(super) fn add(&mut self, mut atoms: Vec<Atom>, times: i128) {
        atoms.sort_unstable();
        let entry = self.0.entry(atoms);
        let value = entry.or_insert(0);
        *value = value.saturating_add(times);
        self.0.retain(|_, times| *times != 0);
    }

    pub(super) fn plus(mut self, other: &Sum, times: i128) -> Sum {
        for (atoms, n) in &other.0 {
            self.add(atoms.clone(), n.saturating_mul(times));
        }
        self
    }

    pub(super) fn times(&self, other: &Sum) -> Sum {
        let mut product = Sum::default();
        for (left, n) in &self.0 {
            for (right, m) in &other.0 {
                product.add(left.iter().chain(right).copied().collect(), n.saturating_mul(*m));
            }
        }
        product
    }

    /// The number, if it is one.
    pub(super) fn exact(&self) -> Option<i128> {
        self.0.keys().all(Vec::is_empty).then(|| self.0.values().sum())
    }

    /// The numbers that its atoms can be if it is not negative and others are within bounds.
    pub(super) fn bounds(&self, bounds: &impl Fn(Atom) -> (i128, i128)) -> Vec<(Atom, i128, i128)> {
        let of = |atom: Atom| {
            let (rest, factor) = self.apart(atom);
            // times·x + rest >= 0, where the rest is at most this.
            let (most, times) = (rest.range_by_parts(bounds)?.1, factor.exact()?);
            match times > 0 {
                true => Some((atom, most.checked_neg()?.div_euclid(times) + i128::from(most.rem_euclid(times) != 0), i128::MAX)),
                false => Some((atom, i128::MIN, most.div_euclid(-times))),
            }
        };
        self.atoms().into_iter().filter_map(of).collect()
    }

    /// The atom that it bounds by not being negative, if there is only one, and the largest number it can be.
    pub(super) fn upper_bound(&self) -> Option<(Atom, i128)> {
        match self.bounds(&|_| (0, i128::from(u32::MAX)))[..] {
            [(atom, _, most)] if self.atoms().len() == 1 => Some((atom, most)),
            _ => None,
        }
    }

    /// The atoms in it, each once.
    pub(super) fn atoms(&self) -> Vec<Atom> {
        let mut atoms: Vec<Atom> = self.0.keys().flatten().copied().collect();
        atoms.sort_unstable();
        atoms.dedup();
        atoms
    }

    /// It without its multiples of an atom, and what the atom is multiplied with in those.
    fn apart(&self, atom: Atom) -> (Sum, Sum) {
        let (mut rest, mut factor) = (Sum::default(), Sum::default());
        for (atoms, times) in &self.0 {
            match atoms.iter().position(|other| *other == atom) {
                None => rest.add(atoms.clone(), *times),
                Some(at) => {
                    let mut atoms = atoms.clone();
                    atoms.remove(at);
                    factor.add(atoms, *times);
                }
            }
        }
        (rest, factor)
    }

    /// The sum divided by an atom, if every part has it.
    pub(super) fn divided(&self, atom: Atom) -> Option<Sum> {
        let (rest, factor) = self.apart(atom);
        rest.0.is_empty().then_some(factor)
    }

    /// The sum divided by a number, if every part is a multiple.
    pub(super) fn divided_by(&self, n: i128) -> Option<Sum> {
        let is_multiple = n > 0 && self.0.values().all(|times| times % n == 0);
        is_multiple.then(|| Sum(self.0.iter().map(|(atoms, times)| (atoms.clone(), times / n)).collect()))
    }

    /// The smallest and the largest that it can be if atoms are within bounds.
    pub(super) fn range(&self, bounds: &impl Fn(Atom) -> (i128, i128)) -> (i128, i128) {
        let anything = (i128::MIN, i128::MAX);
        let (mut least, mut most) = self.range_by_parts(bounds).unwrap_or(anything);
        // `w·n − w` is at least 0 if n is at least 1, which is seen once w is set apart: `w·(n − 1)`.
        for atom in self.atoms() {
            let by_atom = || {
                let (rest, factor) = self.apart(atom);
                let ((low, high), (rest_low, rest_high)) = (factor.range_by_parts(bounds)?, rest.range_by_parts(bounds)?);
                let (small, large) = bounds(atom);
                let smallest = low.checked_mul(if low >= 0 { small } else { large })?;
                let largest = high.checked_mul(if high >= 0 { large } else { small })?;
                Some((smallest.checked_add(rest_low)?, largest.checked_add(rest_high)?))
            };
            let (low, high) = by_atom().unwrap_or(anything);
            (least, most) = (least.max(low), most.min(high));
        }
        (least, most)
    }

    /// Each part by itself; `None` if the numbers become too large.
    fn range_by_parts(&self, bounds: &impl Fn(Atom) -> (i128, i128)) -> Option<(i128, i128)> {
        let (mut least, mut most) = (0i128, 0i128);
        for (atoms, times) in &self.0 {
            let (mut low, mut high) = (1i128, 1i128);
            for (least, most) in atoms.iter().map(|atom| bounds(*atom)) {
                (low, high) = (low.checked_mul(least)?, high.checked_mul(most)?);
            }
            // A launch has fewer than 2³² invocations, and workgroups.
            if !atoms.is_empty() && is_part_of_all(atoms) {
                high = high.min(i128::from(u32::MAX));
            }
            let (small, large) = if *times > 0 { (low, high) } else { (high, low) };
            least = least.checked_add(times.checked_mul(small)?)?;
            most = most.checked_add(times.checked_mul(large)?)?;
        }
        Some((least, most))
    }

    /// As simple a sum that is not negative if and only if this is not: without common factors.
    pub(super) fn simplified(mut self, bounds: &impl Fn(Atom) -> (i128, i128)) -> Sum {
        for atom in self.atoms() {
            while bounds(atom).0 >= 1
                && let Some(divided) = self.divided(atom)
            {
                self = divided;
            }
        }
        let factors = self.0.iter().filter(|(atoms, _)| !atoms.is_empty());
        let common = factors.fold(0i128, |common, (_, times)| gcd(common, times.abs()));
        if common > 1 {
            self.0.iter_mut().for_each(|(_, times)| *times = times.div_euclid(common));
            self.0.retain(|_, times| *times != 0);
        }
        self
    }

    pub(super) fn evaluate(&self, known: &Known<'_>) -> Option<i128> {
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

/// A factor without its sign; `None` if it is not known.
pub(super) fn magnitude(factor: &Sum) -> Option<Sum> {
    if factor.0.values().all(|times| *times > 0) {
        Some(factor.clone())
    } else if factor.0.values().all(|times| *times < 0) {
        Some(Sum::default().plus(factor, -1))
    } else {
        None
    }
}

/// Whether these are counts of invocations, or of workgroups, each along another axis.
pub(super) fn is_part_of_all(atoms: &[Atom]) -> bool {
    let axis = |atom: &Atom, of_workgroups: bool| match atom {
        Atom::Count(Builtin::InvocationCount(axis)) if !of_workgroups => Some(*axis),
        Atom::Count(Builtin::WorkgroupCount(axis)) if of_workgroups => Some(*axis),
        Atom::Count(_) | Atom::Value(_) | Atom::Most(_) => None,
    };
    [true, false].into_iter().any(|of_workgroups| {
        let mut seen = [false; 3];
        atoms.iter().all(|atom| axis(atom, of_workgroups).is_some_and(|axis| !std::mem::replace(&mut seen[axis as usize], true)))
    })
}

fn gcd(a: i128, b: i128) -> i128 {
    if b == 0 { a } else { gcd(b, a % b) }
}
