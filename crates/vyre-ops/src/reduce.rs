//! Reductions of whole buffers of integers to one number, and sums of rows of floats.

use crate::floats::canonical;
use crate::template::{Template, in_a_row};
use vyre_foundation::ir::{AtomicOp, Axis, BinaryOp, BufferDecl, Builtin, DataType, Expr, Node, Program, SpecValue};
use vyre_foundation::memory_model::MemoryOrdering;

/// How two numbers become one. Each of these commutes and associates, so that the order does not matter.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Combine {
    /// The sum, wrapping.
    Add,
    /// The smaller.
    Min,
    /// The larger.
    Max,
    /// Bits set in both.
    And,
    /// Bits set in either.
    Or,
    /// Bits set in exactly one.
    Xor,
}

impl Combine {
    /// All of them.
    pub const ALL: [Combine; 6] = [Combine::Add, Combine::Min, Combine::Max, Combine::And, Combine::Or, Combine::Xor];

    /// Its name in the language.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Combine::Add => "add",
            Combine::Min => "min",
            Combine::Max => "max",
            Combine::And => "and",
            Combine::Or => "or",
            Combine::Xor => "xor",
        }
    }

    const fn ops(self) -> (BinaryOp, AtomicOp) {
        match self {
            Combine::Add => (BinaryOp::Add, AtomicOp::Add),
            Combine::Min => (BinaryOp::Min, AtomicOp::Min),
            Combine::Max => (BinaryOp::Max, AtomicOp::Max),
            Combine::And => (BinaryOp::BitAnd, AtomicOp::And),
            Combine::Or => (BinaryOp::BitOr, AtomicOp::Or),
            Combine::Xor => (BinaryOp::BitXor, AtomicOp::Xor),
        }
    }
}

/// The integers that can be reduced.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Integer {
    /// Without sign.
    U32,
    /// With sign.
    I32,
}

impl Integer {
    /// Both of them.
    pub const ALL: [Integer; 2] = [Integer::U32, Integer::I32];

    /// The element type of buffers.
    #[must_use]
    pub const fn data_type(self) -> DataType {
        match self {
            Integer::U32 => DataType::U32,
            Integer::I32 => DataType::I32,
        }
    }

    /// The number that changes nothing when it is combined with another.
    fn identity(self, combine: Combine) -> Expr {
        match (self, combine) {
            (Integer::U32, Combine::Add | Combine::Or | Combine::Xor | Combine::Max) => Expr::u32(0),
            (Integer::U32, Combine::Min | Combine::And) => Expr::u32(u32::MAX),
            (Integer::I32, Combine::Add | Combine::Or | Combine::Xor) => Expr::i32(0),
            (Integer::I32, Combine::Min) => Expr::i32(i32::MAX),
            (Integer::I32, Combine::Max) => Expr::i32(i32::MIN),
            (Integer::I32, Combine::And) => Expr::i32(-1),
        }
    }
}

/// All elements of a buffer combined to one number; those of an empty one to the identity: 0, the largest or smallest number, or all bits.
///
/// | buffer | | |
/// |---|---|---|
/// | `x` @0 | read u32 or i32 | |
/// | `result` @1 | output, 1 element | |
///
/// Launch: any grid along x; a few workgroups for each processor are best. Every invocation takes every so many-th element, a workgroup
/// combines what its invocations have by a tree, and one atomic a workgroup does the rest. A result does not begin as zero if that is not
/// the identity: then a grid barrier comes first.
#[must_use]
pub fn reduce(workgroup: [u32; 3], combine: Combine, integer: Integer) -> Program {
    let size = in_a_row(workgroup);
    let (op, atomic) = combine.ops();
    let identity = || integer.identity(combine);
    let all = || Expr::builtin(Builtin::InvocationCount(Axis::X));
    let (i, sum, tile) = (|| Expr::var("i"), || Expr::var("sum"), |at: Expr| Expr::load("tile", at));
    let is_zero = identity() == Expr::u32(0) || identity() == Expr::i32(0);

    let mut nodes = Vec::new();
    if !is_zero {
        nodes.push(Node::if_then(Expr::eq(Expr::gid_x(), Expr::u32(0)), vec![Node::store("result", Expr::u32(0), identity())]));
        nodes.push(Node::barrier_with_ordering(MemoryOrdering::GridSync));
    }
    let take = Node::assign("sum", Expr::binary(op, sum(), Expr::load("x", i())));
    let every = vec![
        Node::let_bind("i", Expr::add(Expr::mul(Expr::var("t"), all()), Expr::gid_x())),
        Node::if_then(Expr::lt(i(), Expr::buf_len("x")), vec![take]),
    ];
    let rounds = Expr::add(Expr::div(Expr::buf_len("x"), all()), Expr::u32(1));
    // The halves of a workgroup that is no power of two: the upper one is shorter.
    let other = || Expr::add(Expr::lid_x(), Expr::var("half"));
    let has_other = Expr::and(Expr::lt(Expr::lid_x(), Expr::var("half")), Expr::lt(other(), Expr::u32(size)));
    let steps = u32::BITS - size.saturating_sub(1).leading_zeros();
    let step = vec![
        Node::let_bind("half", Expr::shr(Expr::u32(1 << steps.saturating_sub(1)), Expr::var("step"))),
        Node::if_then(has_other, vec![Node::store("tile", Expr::lid_x(), Expr::binary(op, tile(Expr::lid_x()), tile(other())))]),
        Node::barrier(),
    ];
    let once = vec![Node::atomic(atomic, "result", Expr::u32(0), vec![tile(Expr::u32(0))])];
    nodes.extend([
        Node::let_bind("sum", identity()),
        Node::loop_for("t", Expr::u32(0), rounds, every),
        Node::store("tile", Expr::lid_x(), sum()),
        Node::barrier(),
        Node::loop_for("step", Expr::u32(0), Expr::u32(steps), step),
        Node::if_then(Expr::eq(Expr::lid_x(), Expr::u32(0)), once),
    ]);
    let buffers = vec![
        BufferDecl::read("x", 0, integer.data_type()),
        BufferDecl::output("result", 1, integer.data_type()).with_count(1),
        BufferDecl::workgroup("tile", integer.data_type()).with_count(size),
    ];
    Program::wrapped(buffers, [size, 1, 1], nodes).with_name(format!("reduce_{}", combine.name()))
}

/// What [`reduce`] gives for `u32`, from one end to the other.
#[must_use]
pub fn reduce_u32_on_cpu(combine: Combine, x: &[u32]) -> u32 {
    let x = x.iter().copied();
    match combine {
        Combine::Add => x.fold(0, u32::wrapping_add),
        Combine::Min => x.min().unwrap_or(u32::MAX),
        Combine::Max => x.max().unwrap_or(0),
        Combine::And => x.fold(u32::MAX, |a, b| a & b),
        Combine::Or => x.fold(0, |a, b| a | b),
        Combine::Xor => x.fold(0, |a, b| a ^ b),
    }
}

/// What [`reduce`] gives for `i32`, from one end to the other.
#[must_use]
pub fn reduce_i32_on_cpu(combine: Combine, x: &[i32]) -> i32 {
    let x = x.iter().copied();
    match combine {
        Combine::Add => x.fold(0, i32::wrapping_add),
        Combine::Min => x.min().unwrap_or(i32::MAX),
        Combine::Max => x.max().unwrap_or(i32::MIN),
        Combine::And => x.fold(-1, |a, b| a & b),
        Combine::Or => x.fold(0, |a, b| a | b),
        Combine::Xor => x.fold(0, |a, b| a ^ b),
    }
}

static ROW_SUM: Template = Template::new(include_str!("../kernels/sum.vyre"));

/// How many partial sums of a row are added up side by side. It is part of what the sum means.
pub(crate) const LANES: usize = 256;

/// The sums of rows of `columns` floats each.
///
/// The order is fixed: 256 lanes begin at +0, and lane n adds elements n, n + 256, n + 512, … in this order. Then, with half = 128, 64, …,
/// 1, every lane n < half adds that of lane n + half. Lane 0 has the sum.
///
/// | buffer | | |
/// |---|---|---|
/// | `x` @0 | read f32 | one row after the other |
/// | `sums` @1 | output f32 | one for each row |
///
/// Launch: a workgroup for each row. One addition an element and 255 more.
#[must_use]
pub fn row_sums(workgroup: [u32; 3], columns: u32) -> Program {
    ROW_SUM.program(workgroup, &[("columns", SpecValue::U32(columns))]).with_name("row_sums")
}

/// The sum of one row, as [`row_sums`] adds it up.
#[must_use]
pub fn row_sum_on_cpu(row: &[f32]) -> f32 {
    canonical(sum_of(row.len(), |n| row[n]))
}

/// Numbers 0 to `count`, added up as [`row_sums`] does it: the tree as a recursion from its root.
pub(crate) fn sum_of(count: usize, number: impl Fn(usize) -> f32) -> f32 {
    fn tree(lane: &impl Fn(usize) -> f32, first: usize, stride: usize) -> f32 {
        if stride == LANES { lane(first) } else { tree(lane, first, stride * 2) + tree(lane, first + stride, stride * 2) }
    }
    tree(&|lane| (lane..count).step_by(LANES).fold(0.0, |sum, n| sum + number(n)), 0, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked_out_by_hand() {
        let x = [0xFFFF_FFF0, 3, 0x15];
        let found = Combine::ALL.map(|combine| reduce_u32_on_cpu(combine, &x));
        assert_eq!(found, [8, 3, 0xFFFF_FFF0, 0, 0xFFFF_FFF7, 0xFFFF_FFE6]);
        let found = Combine::ALL.map(|combine| reduce_i32_on_cpu(combine, &x.map(|x| x as i32)));
        assert_eq!(found, [8, -16, 0x15, 0, -9, -26]);
        assert_eq!(Combine::ALL.map(|combine| reduce_i32_on_cpu(combine, &[])), [0, i32::MAX, i32::MIN, -1, 0, 0]);
    }

    /// A number that is lost in the sum of its own lane, and one that is not because its lane is added later.
    #[test]
    fn the_order_shows() {
        let mut row = vec![0.0; 600];
        (row[0], row[256], row[512]) = (1e8, 1.0, -1e8);
        assert_eq!(row_sum_on_cpu(&row), 0.0);
        (row[0], row[256], row[512], row[1]) = (1e8, -1e8, 0.0, 1.0);
        assert_eq!(row_sum_on_cpu(&row), 1.0);
        // Lane 128 comes to lane 0 first, lane 1 last.
        let mut row = vec![0.0; 256];
        (row[0], row[128], row[1]) = (1e8, -1e8, 1.0);
        assert_eq!(row_sum_on_cpu(&row), 1.0);
        (row[0], row[128], row[1]) = (1e8, 1.0, -1e8);
        assert_eq!(row_sum_on_cpu(&row), 0.0);
    }
}
