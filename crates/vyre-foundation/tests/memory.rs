//! Memory that reading and walking programs takes, at its peak, in proportion to what is read.

use vyre_foundation::ir::{Expr, Node, Program};
use vyre_foundation::wire::{self, checksum};

/// What a file or a walk may take that has nothing to do with its size.
const SMALL: u64 = 16 * 1024;

fn peak<T>(work: impl FnOnce() -> T) -> (u64, T) {
    let mut result = None;
    let info = allocation_counter::measure(|| result = Some(work()));
    (info.bytes_max, result.expect("the work was done"))
}

fn many(node: impl Fn() -> Node) -> Program {
    Program::new(vec![], [1, 1, 1], (0..200_000).map(|_| node()).collect())
}

/// The densest statements, in bytes of the wire form.
fn dense() -> Vec<Program> {
    vec![
        many(Node::return_),
        many(|| Node::block(vec![])),
        many(|| Node::block(vec![Node::Break])),
        many(|| Node::store("", Expr::gid_x(), Expr::gid_x())),
        many(|| Node::if_then_else(Expr::gid_x(), vec![Node::Return], vec![Node::Return])),
        many(|| Node::let_bind("", Expr::vector([Expr::gid_x(), Expr::gid_x()]))),
    ]
}

#[test]
fn decoding_takes_no_more_than_a_statement_for_each_byte() {
    for program in dense() {
        let bytes = wire::to_wire(&program).unwrap_or_else(|error| panic!("{error}"));
        let (taken, decoded) = peak(|| wire::from_wire(&bytes));
        assert!(decoded.is_ok_and(|decoded| decoded == program));
        let allowed = (bytes.len() * size_of::<Node>() * 65 / 64) as u64 + SMALL;
        assert!(taken <= allowed, "{taken} bytes for a file of {}", bytes.len());
    }
}

#[test]
fn lengths_that_promise_the_same_bytes_again_and_again_reserve_them_once() {
    // Each block says that all bytes behind it are statements of its own; so does each branch of an `if`.
    for opening in [&[0x0D][..], &[0x06, 0x00]] {
        let program = Program::new(vec![], [1, 1, 1], vec![Node::Return; 1_000_000]);
        let mut bytes = wire::to_wire(&program).unwrap_or_else(|error| panic!("{error}"));
        bytes.truncate(bytes.len() - 32);
        let mut at = bytes.len() - 1_000_000;
        for _ in 0..100 {
            bytes[at..at + opening.len()].copy_from_slice(opening);
            at += opening.len();
            let claim = bytes.len() - at - 8;
            let number = [(claim & 0x7F) as u8 | 0x80, (claim >> 7 & 0x7F) as u8 | 0x80, (claim >> 14) as u8];
            bytes[at..at + 3].copy_from_slice(&number);
            at += 3;
            if opening.len() > 1 {
                // The condition.
                bytes[at..at + 2].copy_from_slice(&[0x03, 0x00]);
                at += 2;
            }
        }
        bytes.extend(checksum(&bytes));
        let (taken, decoded) = peak(|| wire::from_wire(&bytes));
        let error = decoded.expect_err("the bytes cannot be those of all of them");
        assert_eq!(error.code.name(), "E0603", "{error}");
        let allowed = (bytes.len() * size_of::<Node>() * 65 / 64) as u64 + SMALL;
        assert!(taken <= allowed, "{taken} bytes for a file of {}", bytes.len());
    }
}

#[test]
fn a_walk_takes_memory_with_the_depth_and_not_with_the_width() {
    for program in dense() {
        let (taken, items) = peak(|| program.walk().count());
        assert!(items >= 200_000 && taken <= SMALL, "{taken} bytes for a walk over {items}");
    }
    let wide = Program::new(vec![], [1, 1, 1], vec![Node::let_bind("v", Expr::vector((0..200_000).map(Expr::u32)))]);
    let (taken, items) = peak(|| wide.walk().count());
    assert!(items == 200_002 && taken <= SMALL, "{taken} bytes for a walk over {items}");
}
