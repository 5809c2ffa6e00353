//! When the order of two atomics on one element cannot be seen.
//!
//! Atomics of one kind whose results nobody reads leave the same value in every order, loads do not disturb each other, and neither
//! do stores of equal values. Everything else may show its order: the result of an atomic that somebody reads, and atomics of
//! different kinds. The relation is an equivalence on those that commute with themselves, so a whole set of accesses is described
//! by one [`Class`].

use vyre_foundation::ir::AtomicOp;

/// What a set of atomics on one element commutes with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Class {
    /// There are none.
    #[default]
    Nothing,
    Load,
    Add,
    Min,
    Max,
    And,
    Or,
    Xor,
    /// Stores of one value.
    Store,
    /// Their order may show.
    Ordered,
}

impl Class {
    /// The class of one atomic; `observed` if somebody reads its result.
    pub fn of(op: AtomicOp, observed: bool) -> Class {
        match op {
            AtomicOp::Load => Class::Load,
            AtomicOp::Add | AtomicOp::Sub if !observed => Class::Add,
            AtomicOp::Min if !observed => Class::Min,
            AtomicOp::Max if !observed => Class::Max,
            AtomicOp::And if !observed => Class::And,
            AtomicOp::Or if !observed => Class::Or,
            AtomicOp::Xor if !observed => Class::Xor,
            AtomicOp::Store => Class::Store,
            AtomicOp::Exchange if !observed => Class::Store,
            AtomicOp::Add
            | AtomicOp::Sub
            | AtomicOp::Min
            | AtomicOp::Max
            | AtomicOp::And
            | AtomicOp::Or
            | AtomicOp::Xor
            | AtomicOp::Exchange
            | AtomicOp::CompareExchange => Class::Ordered,
        }
    }

    /// The class of both sets; `equal` if they are stores of the same value.
    pub fn join(self, other: Class, equal: bool) -> Class {
        match (self, other) {
            (Class::Nothing, class) | (class, Class::Nothing) => class,
            (a, b) if a == b && (a != Class::Store || equal) => a,
            _ => Class::Ordered,
        }
    }

    /// Whether an access of one class commutes with one of the other; `equal` if they are stores of the same value.
    pub fn commutes(self, other: Class, equal: bool) -> bool {
        self.join(other, equal) != Class::Ordered
    }
}
