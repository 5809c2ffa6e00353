//! The law that an op's row names is kept on every value that is tried, of every type and in both float modes; an op whose row does
//! not name it breaks it for some. So a row can neither claim too much nor forget.

use crate::samples::values;
use crate::{atomic, binary, ternary, unary};
use vyre_spec::{AtomicClass, AtomicOp, BinaryOp, FloatMode, Law, Scalar, TernaryOp, UnaryOp};

/// Every combination of type and float mode that an op is defined on.
fn settings(over: vyre_spec::TypeSet) -> impl Iterator<Item = (Scalar, FloatMode)> {
    over.iter().flat_map(|ty| FloatMode::ALL.map(|mode| (ty, mode)))
}

#[test]
fn involutions_give_the_operand_back_and_no_other_op_does() {
    for op in UnaryOp::ALL {
        let info = op.info();
        let keeps = settings(info.over).all(|(ty, mode)| {
            let twice = |x| unary(*op, ty, mode, unary(*op, ty, mode, x));
            info.result_type(ty) == Some(ty) && values(ty, mode).into_iter().all(|x| twice(x) == x)
        });
        assert_eq!(keeps, info.law == Law::Involution, "{op}");
    }
}

#[test]
fn operands_of_ops_that_commute_can_be_swapped_and_no_others() {
    for op in BinaryOp::ALL {
        let info = op.info();
        let keeps = info.operands[0] == info.operands[1]
            && settings(info.over).all(|(ty, mode)| {
                let values = values(ty, mode);
                let same = |a, b| binary(*op, ty, mode, a, b) == binary(*op, ty, mode, b, a);
                values.iter().all(|a| values.iter().all(|b| same(*a, *b)))
            });
        assert_eq!(keeps, info.law == Law::Commutes, "{op}");
    }
    for op in TernaryOp::ALL {
        let info = op.info();
        let keeps = info.operands[0] == info.operands[1]
            && settings(info.over).all(|(ty, mode)| {
                let values = values(ty, mode);
                let thirds = || values.iter().step_by(7).chain([&values[0]]);
                let same = |a, b, c| ternary(*op, ty, mode, a, b, c) == ternary(*op, ty, mode, b, a, c);
                values.iter().all(|a| values.iter().all(|b| thirds().all(|c| same(*a, *b, *c))))
            });
        assert_eq!(keeps, info.law == Law::Commutes, "{op}");
    }
}

/// What memory holds after two atomics, and what loads among them gave: those are there to be read.
fn after(ty: Scalar, held: u64, order: [(AtomicOp, &[u64]); 2]) -> (u64, [Option<u64>; 2]) {
    let mut held = held;
    let given = order.map(|(op, operands)| {
        let before = held;
        held = atomic(op, ty, before, operands).unwrap_or(before);
        (op.class() == Some(AtomicClass::Load)).then_some(before)
    });
    (held, given)
}

/// Every pair of kinds: atomics of one class leave the same in both orders, those of others do not, and an op without class does not
/// even with itself. Of classes that ask for it, the operands are equal.
#[test]
fn atomics_of_one_class_come_in_any_order_and_no_others() {
    for (a, b) in AtomicOp::ALL.iter().flat_map(|a| AtomicOp::ALL.iter().map(move |b| (*a, *b))) {
        let (mut always, mut if_equal) = (true, true);
        for ty in a.info().over.iter() {
            let values = [0u64, 1, 2, 3, 5, 6, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF];
            for held in &values {
                for (x, y) in values.iter().flat_map(|x| values.map(|y| (*x, y))) {
                    for expected in &values {
                        // Of a compare-exchange, what it expects comes before what it stores.
                        let operands = |op: AtomicOp, value: u64| -> Vec<u64> {
                            let all = [*expected, value];
                            all[AtomicOp::MAX_OPERANDS - op.info().operands.len()..].into()
                        };
                        let (with_a, with_b) = (operands(a, x), operands(b, y));
                        let (left, [a_first, b_second]) = after(ty, *held, [(a, &with_a), (b, &with_b)]);
                        let (other, [b_first, a_second]) = after(ty, *held, [(b, &with_b), (a, &with_a)]);
                        let same = (left, a_first, b_second) == (other, a_second, b_first);
                        always &= same;
                        if_equal &= same || x != y;
                    }
                }
            }
        }
        let class = a.class().filter(|class| b.class() == Some(*class));
        assert_eq!(always, class.is_some_and(|class| !class.only_if_equal()), "{a} and {b}");
        if let Some(class) = class {
            assert!(if_equal, "{a} and {b} with equal operands");
            let changes = |op: AtomicOp| op.info().effect == vyre_spec::Effect::AtomicWrite;
            assert_eq!(class.accumulates(), always && changes(a) && changes(b), "{a} and {b}");
        }
    }
}

#[test]
fn every_class_has_ops() {
    for class in AtomicClass::ALL {
        assert!(class.ops().next().is_some(), "{class:?}");
    }
    let ordered: Vec<&AtomicOp> = AtomicOp::ALL.iter().filter(|op| op.class().is_none()).collect();
    assert_eq!(ordered, [&AtomicOp::CompareExchange]);
}
