//! Sums of products of numbers that are not negative, in integers: what indices, bounds and conditions are made of.
//!
//! A proof asks thousands of times which numbers a sum can be, of sums with a few parts. So the parts are a sorted list, and the
//! question is answered without making other sums.

use super::launch::Known;
use crate::ir::Builtin;
use crate::ssa::Value;
use smallvec::{SmallVec, smallvec};

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

/// Atoms that are multiplied, in order.
pub(super) type Atoms = SmallVec<[Atom; 3]>;

/// A sum of products of numbers that are not negative; in integers, nothing wraps.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Sum {
    /// The products, each once, in order, and how often each is taken, which is not 0.
    parts: Vec<(Atoms, i128)>,
}

impl Sum {
    pub(super) fn number(n: i128) -> Sum {
        Sum::product(Atoms::new(), n)
    }

    pub(super) fn atom(atom: Atom) -> Sum {
        Sum::product(smallvec![atom], 1)
    }

    pub(super) fn product(atoms: Atoms, times: i128) -> Sum {
        let mut sum = Sum::default();
        sum.add(atoms, times);
        sum
    }

    /// The products, in order, and how often each is taken.
    pub(super) fn parts(&self) -> &[(Atoms, i128)] {
        &self.parts
    }

    pub(super) fn is_zero(&self) -> bool {
        self.parts.is_empty()
    }

    /// Whether every product is taken, and none taken away.
    pub(super) fn only_adds(&self) -> bool {
        self.parts.iter().all(|(_, times)| *times > 0)
    }

    pub(super) fn add(&mut self, mut atoms: Atoms, times: i128) {
        atoms.sort_unstable();
        match self.parts.binary_search_by(|(other, _)| other.cmp(&atoms)) {
            Ok(at) => {
                let now = &mut self.parts[at].1;
                *now = now.saturating_add(times);
                if *now == 0 {
                    self.parts.remove(at);
                }
            }
            Err(at) if times != 0 => self.parts.insert(at, (atoms, times)),
            Err(_) => {}
        }
    }

    pub(super) fn plus(mut self, other: &Sum, times: i128) -> Sum {
        for (atoms, n) in &other.parts {
            self.add(atoms.clone(), n.saturating_mul(times));
        }
        self
    }

    /// One more, or less, often 1.
    pub(super) fn plus_number(mut self, n: i128) -> Sum {
        self.add(Atoms::new(), n);
        self
    }

    pub(super) fn times(&self, other: &Sum) -> Sum {
        let mut product = Sum::default();
        for (left, n) in &self.parts {
            for (right, m) in &other.parts {
                product.add(left.iter().chain(right).copied().collect(), n.saturating_mul(*m));
            }
        }
        product
    }

    /// The number, if it is one.
    pub(super) fn exact(&self) -> Option<i128> {
        match &self.parts[..] {
            [] => Some(0),
            [(atoms, times)] if atoms.is_empty() => Some(*times),
            _ => None,
        }
    }

    /// The numbers that its atoms can be if it is not negative and others are within bounds.
    pub(super) fn bounds(&self, bounds: &impl Fn(Atom) -> (i128, i128)) -> Vec<(Atom, i128, i128)> {
        let of = |atom: Atom| {
            let (rest, factor) = (self.without(atom), self.factor(atom));
            let mut numbers = factor.clone().map(|(mut atoms, times)| atoms.next().is_none().then_some(times));
            let (Some(Some(times)), None) = (numbers.next(), numbers.next()) else { return None };
            // times·x + rest >= 0, where the rest is at most this.
            let most = range_of(rest, bounds)?.1;
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
    pub(super) fn atoms(&self) -> SmallVec<[Atom; 8]> {
        let mut atoms: SmallVec<[Atom; 8]> = self.parts.iter().flat_map(|(atoms, _)| atoms).copied().collect();
        atoms.sort_unstable();
        atoms.dedup();
        atoms
    }

    /// The parts that are not multiples of an atom.
    fn without(&self, atom: Atom) -> impl Iterator<Item = (impl Iterator<Item = Atom> + Clone, i128)> + Clone {
        let parts = self.parts.iter().filter(move |(atoms, _)| !atoms.contains(&atom));
        parts.map(|(atoms, times)| (atoms.iter().copied(), *times))
    }

    /// What an atom is multiplied with in those that are.
    fn factor(&self, atom: Atom) -> impl Iterator<Item = (impl Iterator<Item = Atom> + Clone, i128)> + Clone {
        self.parts.iter().filter_map(move |(atoms, times)| {
            let at = atoms.iter().position(|other| *other == atom)?;
            Some((atoms[..at].iter().chain(&atoms[at + 1..]).copied(), *times))
        })
    }

    /// The sum divided by an atom, if every part has it.
    pub(super) fn divided(&self, atom: Atom) -> Option<Sum> {
        if !self.parts.iter().all(|(atoms, _)| atoms.contains(&atom)) {
            return None;
        }
        let mut divided = Sum::default();
        self.factor(atom).for_each(|(atoms, times)| divided.add(atoms.collect(), times));
        Some(divided)
    }

    /// The sum divided by a number, if every part is a multiple.
    pub(super) fn divided_by(&self, n: i128) -> Option<Sum> {
        let is_multiple = n > 0 && self.parts.iter().all(|(_, times)| times % n == 0);
        is_multiple.then(|| Sum { parts: self.parts.iter().map(|(atoms, times)| (atoms.clone(), times / n)).collect() })
    }

    /// The smallest and the largest that it can be if atoms are within bounds.
    pub(super) fn range(&self, bounds: &impl Fn(Atom) -> (i128, i128)) -> (i128, i128) {
        let anything = (i128::MIN, i128::MAX);
        // Every atom is asked about again and again below.
        let known: SmallVec<[(Atom, (i128, i128)); 8]> = self.atoms().into_iter().map(|atom| (atom, bounds(atom))).collect();
        let bounds = |atom: Atom| known.iter().find(|(other, _)| *other == atom).map_or(anything, |(_, bounds)| *bounds);
        let parts = self.parts.iter().map(|(atoms, times)| (atoms.iter().copied(), *times));
        let (mut least, mut most) = range_of(parts, &bounds).unwrap_or(anything);
        // `w·n − w` is at least 0 if n is at least 1, which is seen once w is set apart: `w·(n − 1)`.
        for (atom, (small, large)) in &known {
            let by_atom = || {
                let (low, high) = range_of(self.factor(*atom), &bounds)?;
                let (rest_low, rest_high) = range_of(self.without(*atom), &bounds)?;
                let smallest = low.checked_mul(if low >= 0 { *small } else { *large })?;
                let largest = high.checked_mul(if high >= 0 { *large } else { *small })?;
                Some((smallest.checked_add(rest_low)?, largest.checked_add(rest_high)?))
            };
            let (low, high) = by_atom().unwrap_or(anything);
            (least, most) = (least.max(low), most.min(high));
        }
        (least, most)
    }

    /// As simple a sum that is not negative if and only if this is not: without common factors.
    pub(super) fn simplified(mut self, bounds: &impl Fn(Atom) -> (i128, i128)) -> Sum {
        for atom in self.atoms() {
            while let Some(divided) = self.divided(atom)
                && bounds(atom).0 >= 1
            {
                self = divided;
            }
        }
        let factors = self.parts.iter().filter(|(atoms, _)| !atoms.is_empty());
        let common = factors.fold(0i128, |common, (_, times)| gcd(common, times.abs()));
        if common > 1 {
            self.parts.iter_mut().for_each(|(_, times)| *times = times.div_euclid(common));
            self.parts.retain(|(_, times)| *times != 0);
        }
        self
    }

    pub(super) fn evaluate(&self, known: &Known<'_>) -> Option<i128> {
        let mut sum = 0i128;
        for (atoms, times) in &self.parts {
            let mut product = *times;
            for atom in atoms {
                product = product.checked_mul(i128::from(known.atom(*atom)?))?;
            }
            sum = sum.checked_add(product)?;
        }
        Some(sum)
    }
}

/// The smallest and the largest that a sum of these parts can be, each part by itself; `None` if the numbers become too large.
fn range_of<A: Iterator<Item = Atom> + Clone>(
    parts: impl Iterator<Item = (A, i128)>,
    bounds: &impl Fn(Atom) -> (i128, i128),
) -> Option<(i128, i128)> {
    let (mut least, mut most) = (0i128, 0i128);
    for (atoms, times) in parts {
        let (mut low, mut high) = (1i128, 1i128);
        for (least, most) in atoms.clone().map(bounds) {
            (low, high) = (low.checked_mul(least)?, high.checked_mul(most)?);
        }
        // A launch has fewer than 2³² invocations, and workgroups.
        if high > i128::from(u32::MAX) && is_part_of_all(atoms) {
            high = i128::from(u32::MAX);
        }
        let (small, large) = if times > 0 { (low, high) } else { (high, low) };
        least = least.checked_add(times.checked_mul(small)?)?;
        most = most.checked_add(times.checked_mul(large)?)?;
    }
    Some((least, most))
}

/// A factor without its sign; `None` if it is not known.
pub(super) fn magnitude(factor: &Sum) -> Option<Sum> {
    if factor.only_adds() {
        Some(factor.clone())
    } else if factor.parts.iter().all(|(_, times)| *times < 0) {
        Some(Sum::default().plus(factor, -1))
    } else {
        None
    }
}

/// Whether these are counts of invocations, or of workgroups, each along another axis.
fn is_part_of_all(atoms: impl Iterator<Item = Atom> + Clone) -> bool {
    let axis = |atom: Atom, of_workgroups: bool| match atom {
        Atom::Count(Builtin::InvocationCount(axis)) if !of_workgroups => Some(axis),
        Atom::Count(Builtin::WorkgroupCount(axis)) if of_workgroups => Some(axis),
        Atom::Count(_) | Atom::Value(_) | Atom::Most(_) => None,
    };
    [true, false].into_iter().any(|of_workgroups| {
        let mut seen = [false; 3];
        atoms.clone().all(|atom| axis(atom, of_workgroups).is_some_and(|axis| !std::mem::replace(&mut seen[axis as usize], true)))
    })
}

fn gcd(a: i128, b: i128) -> i128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Axis;

    /// Numbers that look drawn, always the same.
    struct Draw(u64);

    impl Draw {
        fn below(&mut self, n: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % n
        }

        fn sum(&mut self) -> Sum {
            let mut sum = Sum::default();
            for _ in 0..self.below(5) {
                let atoms = (0..self.below(4)).map(|_| ATOMS[self.below(ATOMS.len() as u64) as usize].0).collect();
                sum.add(atoms, i128::from(self.below(13)) - 6);
            }
            sum
        }
    }

    /// Atoms, and the smallest and the largest that each can be.
    const ATOMS: [(Atom, (i128, i128)); 5] = [
        (Atom::Value(Value(3)), (0, 4)),
        (Atom::Value(Value(1)), (1, 3)),
        (Atom::Count(Builtin::InvocationCount(Axis::X)), (2, 9)),
        (Atom::Count(Builtin::InvocationCount(Axis::Y)), (1, 1)),
        (Atom::Most(Value(1)), (0, 7)),
    ];

    fn bounds(atom: Atom) -> (i128, i128) {
        ATOMS.iter().find(|(other, _)| *other == atom).map_or((0, 0), |(_, bounds)| *bounds)
    }

    type Numbers = [i128; ATOMS.len()];

    fn at(sum: &Sum, numbers: &Numbers) -> i128 {
        let number = |atom: &Atom| numbers[ATOMS.iter().position(|(other, _)| other == atom).expect("one of them")];
        sum.parts().iter().map(|(atoms, times)| times * atoms.iter().map(number).product::<i128>()).sum()
    }

    #[test]
    fn sums_are_the_numbers_that_they_stand_for() {
        let mut draw = Draw(1);
        for _ in 0..20_000 {
            let (a, b, k) = (draw.sum(), draw.sum(), i128::from(draw.below(7)) - 3);
            let numbers: Numbers = ATOMS.map(|(_, (low, high))| low + i128::from(draw.below((high - low + 1) as u64)));
            let value = at(&a, &numbers);
            let (sum, product) = (a.clone().plus(&b, k), a.times(&b));
            assert_eq!(at(&sum, &numbers), value + k * at(&b, &numbers), "{a:?} {b:?} {k}");
            assert_eq!(at(&product, &numbers), value * at(&b, &numbers), "{a:?} {b:?}");
            for made in [&a, &sum, &product] {
                let in_order = made.parts().windows(2).all(|pair| pair[0].0 < pair[1].0);
                assert!(in_order && made.parts().iter().all(|(_, times)| *times != 0), "{made:?}");
            }
            let (least, most) = a.range(&bounds);
            assert!(least <= value && value <= most, "{a:?} is {value}, not in {least}..={most}");
            assert!(a.exact().is_none_or(|exact| exact == value), "{a:?}");
            let simplified = a.clone().simplified(&bounds);
            assert_eq!(at(&simplified, &numbers) >= 0, value >= 0, "{a:?} {simplified:?}");
            for (n, (atom, _)) in ATOMS.iter().enumerate() {
                assert!(a.divided(*atom).is_none_or(|divided| at(&divided, &numbers) * numbers[n] == value), "{a:?} {atom:?}");
                let mut about = a.bounds(&bounds).into_iter().filter(|(other, _, _)| other == atom);
                let within = about.all(|(_, low, high)| low <= numbers[n] && numbers[n] <= high);
                assert!(value < 0 || within, "{a:?} {atom:?} {numbers:?}");
            }
        }
    }

    #[test]
    fn a_range_sees_what_parts_have_in_common() {
        // w·n − w is not negative if n is at least 1.
        let [w, n] = [Value(1), Value(2)].map(Atom::Value);
        let sum = Sum::atom(w).times(&Sum::atom(n)).plus(&Sum::atom(w), -1);
        assert_eq!(sum.range(&|atom| if atom == n { (1, 5) } else { (0, 9) }), (0, 36));
        // A launch has fewer than 2³² invocations, whatever it has along each axis.
        let [x, y] = [Axis::X, Axis::Y].map(|axis| Atom::Count(Builtin::InvocationCount(axis)));
        let anything = |_| (0, i128::from(u32::MAX));
        assert_eq!(Sum::atom(x).times(&Sum::atom(y)).range(&anything).1, i128::from(u32::MAX));
        assert!(Sum::atom(x).times(&Sum::atom(x)).range(&anything).1 > i128::from(u32::MAX));
    }
}
