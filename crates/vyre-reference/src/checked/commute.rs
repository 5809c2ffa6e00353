//! When the order of two atomics on one element cannot be seen.
//!
//! Which atomics leave the same value in every order says a column of their rows, [`AtomicClass`]. Everything else may show its order:
//! the result of an atomic that somebody reads, and atomics of different classes. The relation is an equivalence on those that commute
//! with themselves, so a whole set of accesses is described by one [`Class`].

use vyre_foundation::ir::AtomicOp;
use vyre_spec::{AtomicClass, ResultRule};

/// What a set of atomics on one element commutes with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Class {
    /// There are none.
    #[default]
    Nothing,
    /// All are of this class, and nobody reads a result that depends on the order.
    One(AtomicClass),
    /// Their order may show.
    Ordered,
}

impl Class {
    /// The class of one atomic; `observed` if somebody reads its result.
    pub fn of(op: AtomicOp, observed: bool) -> Class {
        match op.class() {
            Some(class) if !observed || class == AtomicClass::Load || op.info().result == ResultRule::None => Class::One(class),
            Some(_) | None => Class::Ordered,
        }
    }

    /// The class of both sets; `equal` if they are stores of the same value.
    pub fn join(self, other: Class, equal: bool) -> Class {
        match (self, other) {
            (Class::Nothing, class) | (class, Class::Nothing) => class,
            (Class::One(a), Class::One(b)) if a == b && (equal || !a.only_if_equal()) => self,
            (Class::One(_) | Class::Ordered, Class::One(_) | Class::Ordered) => Class::Ordered,
        }
    }

    /// Whether an access of one class commutes with one of the other; `equal` if they are stores of the same value.
    pub fn commutes(self, other: Class, equal: bool) -> bool {
        self.join(other, equal) != Class::Ordered
    }
}

#[cfg(test)]
mod tests {
    use super::Class;
    use vyre_foundation::ir::{AtomicOp, Scalar};
    use vyre_spec::AtomicClass;

    /// Two atomics with these operands, one after the other: what is left, and what they give to those who look.
    fn in_order(held: u64, first: (AtomicOp, &[u64], bool), second: (AtomicOp, &[u64], bool)) -> (u64, [Option<u64>; 2]) {
        let mut held = held;
        let given = [first, second].map(|(op, operands, observed)| {
            let before = held;
            held = vyre_scalar::atomic(op, Scalar::U32, before, operands).unwrap_or(before);
            observed.then_some(before)
        });
        (held, given)
    }

    /// Those that are said to commute do so on all values that are tried; of the others some order shows.
    #[test]
    fn atomics_commute_if_no_order_shows() {
        let values = [0, 1, 2, 3, 5, 6, 0xFFFF_FFFF];
        for a in AtomicOp::ALL {
            for b in AtomicOp::ALL {
                for (sees_a, sees_b) in [(false, false), (true, false), (true, true)] {
                    // A load is there to be seen, and a store gives nothing.
                    let sees = |op: AtomicOp, sees: bool| op == AtomicOp::Load || (sees && op != AtomicOp::Store);
                    let (sees_a, sees_b) = (sees(*a, sees_a), sees(*b, sees_b));
                    let (class_a, class_b) = (Class::of(*a, sees_a), Class::of(*b, sees_b));
                    let (mut always, mut if_equal) = (true, true);
                    for held in values {
                        for [x, y, z] in values.iter().flat_map(|x| values.iter().flat_map(|y| values.map(|z| [*x, *y, z]))) {
                            // Of a compare-exchange, what it expects comes before what it stores.
                            let (count_a, count_b) = (a.info().operands.len(), b.info().operands.len());
                            let (with_a, with_b) = ([z, x], [z, y]);
                            let (with_a, with_b) = (&with_a[2 - count_a..], &with_b[2 - count_b..]);
                            let (left, [seen_a, seen_b]) = in_order(held, (*a, with_a, sees_a), (*b, with_b, sees_b));
                            let (other, [b_first, a_last]) = in_order(held, (*b, with_b, sees_b), (*a, with_a, sees_a));
                            let same = (left, seen_a, seen_b) == (other, a_last, b_first);
                            always &= same;
                            if_equal &= same || x != y;
                        }
                    }
                    let said = [false, true].map(|equal| class_a.commutes(class_b, equal));
                    assert_eq!(said, [always, if_equal && said[1]], "{a} {sees_a} and {b} {sees_b}");
                    let store = Class::One(AtomicClass::Store);
                    let stores = (class_a, class_b) == (store, store);
                    assert_eq!(said[0] != said[1], stores, "{a} {sees_a} and {b} {sees_b}");
                }
            }
        }
    }
}
