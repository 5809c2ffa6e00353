//! Indices that are taken apart by division: `x = i % w`, `y = i / w`, and what is put together from them again.
//!
//! If `w` is not 0, then `i` is `y·w + x`, and `x` and `y` together are as good as `i` itself: invocations that differ in `i` differ in one
//! of them. So where both are in an index, they are digits of their own (`x * h + y`, a transpose), and where they are put
//! together as they were, they are `i` again. `x / 0` is `x` and `x % 0` is 0, which would spoil both, so that no divisor is 0 is always
//! part of the proof. Shifts to the right and masks by literals are divisions by powers of two.

use super::sums::{Atom, Sum};
use crate::analysis::affine::{Affine, Forms, Product};
use crate::analysis::numbers::Numbers;
use crate::ir::{BinaryOp, Scalar};
use crate::ssa::{Op, Ssa, Value};

/// A divisor: a number times values, none of which is 0.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Divisor {
    pub number: u64,
    /// In order.
    pub values: Vec<Value>,
}

impl Divisor {
    fn one() -> Divisor {
        Divisor { number: 1, values: Vec::new() }
    }

    fn times(&self, other: &Divisor) -> Option<Divisor> {
        let mut values: Vec<Value> = self.values.iter().chain(&other.values).copied().collect();
        values.sort_unstable();
        Some(Divisor { number: self.number.checked_mul(other.number)?, values })
    }

    pub fn sum(&self) -> Sum {
        Sum::product(self.values.iter().map(|value| Atom::Value(*value)).collect(), i128::from(self.number))
    }
}

/// A value that is another divided, rounding down; by 1, it is that other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Quotient {
    pub of: Value,
    pub by: Divisor,
}

/// What is left when a value is divided.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Remainder {
    pub of: Value,
    pub by: Divisor,
}

/// Values as quotients and remainders.
pub(super) struct Divisions<'a> {
    pub ssa: &'a Ssa,
    pub numbers: &'a Numbers,
    pub forms: &'a Forms,
}

impl Divisions<'_> {
    /// What a value divides by.
    fn divisor(&self, value: Value, needs: &mut Vec<Sum>) -> Option<Divisor> {
        if let Some(bits) = self.ssa.literal(value) {
            return (bits as u32 != 0).then_some(Divisor { number: u64::from(bits as u32), values: Vec::new() });
        }
        let form = self.forms.form(self.ssa, self.numbers, value);
        let divisor = match form.terms[..] {
            [(product, times)] if form.constant == 0 => Divisor { number: u64::from(times), values: product.to_vec() },
            _ => Divisor { number: 1, values: vec![self.numbers.of_value(value)] },
        };
        for value in &divisor.values {
            needs.push(Sum::atom(Atom::Value(*value)).plus_number(-1));
        }
        // A product that wraps is another number.
        if divisor.number > 1 || divisor.values.len() > 1 {
            needs.push(Sum::number(u32::MAX.into()).plus(&divisor.sum(), -1));
        }
        Some(divisor)
    }

    /// The operands of a division, whether it asks for the rest, and by what; with what has to hold for it.
    #[expect(clippy::wildcard_enum_match_arm, reason = "an op that does not divide says nothing here, also a new one")]
    fn division(&self, value: Value, needs: &mut Vec<Sum>) -> Option<(Value, bool, Divisor)> {
        let Some(Op::Binary { op, ty: Scalar::U32, left, right }) = self.ssa.op(value) else { return None };
        let literal = || self.ssa.literal(*right).map(|bits| bits as u32);
        let number = |number: u64| Divisor { number, values: Vec::new() };
        let (rest, by) = match op {
            BinaryOp::Div => (false, self.divisor(*right, needs)?),
            BinaryOp::Rem => (true, self.divisor(*right, needs)?),
            BinaryOp::Shr => (false, number(1 << (literal()? % 32))),
            BinaryOp::BitAnd if literal().is_some_and(|mask| (u64::from(mask) + 1).is_power_of_two()) => {
                (true, number(u64::from(literal()?) + 1))
            }
            _ => return None,
        };
        Some((self.numbers.of_value(*left), rest, by))
    }

    /// A value as a quotient.
    pub fn quotient(&self, value: Value, needs: &mut Vec<Sum>) -> Quotient {
        let mut quotient = Quotient { of: value, by: Divisor::one() };
        loop {
            let mut more = Vec::new();
            match self.division(quotient.of, &mut more) {
                Some((of, false, by)) => {
                    let Some(by) = quotient.by.times(&by) else { return quotient };
                    quotient = Quotient { of, by };
                    needs.extend(more);
                }
                Some((_, true, _)) | None => return quotient,
            }
        }
    }

    /// A value as a remainder.
    pub fn remainder(&self, value: Value, needs: &mut Vec<Sum>) -> Option<Remainder> {
        match self.division(value, needs)? {
            (of, true, by) => Some(Remainder { of, by }),
            (_, false, _) => None,
        }
    }

    /// Whether a quotient goes on where a remainder ends: together they are what the remainder is of.
    pub fn complete(&self, remainder: Value, quotient: Value, needs: &mut Vec<Sum>) -> Option<Remainder> {
        let mut more = Vec::new();
        let rest = self.remainder(remainder, &mut more)?;
        let inner = self.quotient(rest.of, &mut more);
        let outer = self.quotient(quotient, &mut more);
        let fits = inner.of == outer.of && inner.by.times(&rest.by)? == outer.by;
        fits.then(|| {
            needs.extend(more);
            rest
        })
    }

    /// The atoms of what a value is a quotient or remainder of.
    pub fn within(&self, value: Value) -> Vec<Value> {
        let mut found = Vec::new();
        let mut now = value;
        while let Some((of, _, _)) = self.division(now, &mut Vec::new()) {
            let form = self.forms.form(self.ssa, self.numbers, of);
            found.extend(form.terms.iter().flat_map(|(product, _)| product.iter().copied()));
            now = of;
        }
        found
    }

    /// An index in which what was taken apart and put together again is what it was, and what has to hold for that.
    pub fn folded(&self, mut index: Affine) -> (Affine, Vec<Sum>) {
        let mut needs = Vec::new();
        while let Some(next) = self.fold_once(&index, &mut needs) {
            index = next;
        }
        (index, needs)
    }

    fn fold_once(&self, index: &Affine, needs: &mut Vec<Sum>) -> Option<Affine> {
        for (n, (product, times)) in index.terms.iter().enumerate() {
            for rest in product.iter() {
                let others = without(product, *rest);
                for (m, (larger, more)) in index.terms.iter().enumerate().filter(|(m, _)| *m != n) {
                    for quotient in larger.iter() {
                        let mut found = Vec::new();
                        let Some(remainder) = self.complete(*rest, *quotient, &mut found) else { continue };
                        let mut expected: Vec<Value> = others.iter().chain(&remainder.by.values).copied().collect();
                        expected.sort_unstable();
                        // By a number that is a multiple of 2³² the products would not be told apart.
                        let factor = u32::try_from(remainder.by.number).ok();
                        if without(larger, *quotient) != expected || factor.map(|by| times.wrapping_mul(by)) != Some(*more) {
                            continue;
                        }
                        let kept = index.terms.iter().enumerate().filter(|(at, _)| *at != n && *at != m).map(|(_, term)| *term);
                        let kept = Affine::of_terms(kept.collect(), index.constant);
                        let whole = self.forms.form(self.ssa, self.numbers, remainder.of);
                        let others = Affine::of_terms(vec![(Product::of(&others), 1)], 0);
                        let whole = if product.len() == 1 { whole } else { whole.times(&others)? };
                        needs.extend(found);
                        return Some(kept.plus(&whole, *times));
                    }
                }
            }
        }
        None
    }
}

fn without(product: &Product, value: Value) -> Vec<Value> {
    let mut values = product.to_vec();
    if let Some(at) = values.iter().position(|other| *other == value) {
        values.remove(at);
    }
    values
}
