//! Arbitrary programs, most of them wrong: the text form must hold whatever the IR can.

use crate::ir::{
    Access, Atomic, AtomicOp, BinaryOp, BufferDecl, Builtin, ConstDecl, DataType, Element, Expr, FloatMode, Literal, Name, Node,
    Parts, Program, Scalar, Size, SpecValue, Subgroup, SubgroupOp, TernaryOp, UnaryOp,
};
use crate::memory_model::MemoryOrdering;
use vyre_spec::TypeId;

/// A xorshift generator: small, and the same everywhere.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 8
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    pub(super) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub(super) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

/// Few, so that many of them mean something where they are used.
const PLAIN_NAMES: [&str; 8] = ["a", "b", "i", "x", "buf", "out", "T", "n"];

const STRANGE_NAMES: [&str; 30] = [
    "min",
    "f32",
    "len",
    "vec",
    "if",
    "gid",
    "subgroup",
    "atomic",
    "",
    "a b",
    "é",
    "`",
    "\\",
    "\n",
    "1a",
    "program",
    "tensor",
    "bitcast",
    "\u{202e}",
    "//",
    "\"",
    "inf",
    "c7",
    "vec2",
    "u32",
    "_",
    "buffer",
    "\u{0}\r\t",
    "a`\\`",
    "日本",
];

pub(super) fn name(random: &mut Random) -> Name {
    if random.one_in(6) { (*random.pick(&STRANGE_NAMES)).into() } else { (*random.pick(&PLAIN_NAMES)).into() }
}

fn literal(random: &mut Random) -> Literal {
    let scalar = if random.one_in(2) { Scalar::U32 } else { *random.pick(&Scalar::ALL) };
    let bits = match random.below(6) {
        0 => random.next() << 8 | random.next() & 0xFF,
        1 => 1 << random.below(64),
        2 => u64::MAX,
        // Zeros, infinities, a NaN, the smallest and largest of both float types.
        3 => *random.pick(&[0x8000_0000, 0x7F80_0000, 0xFF80_0000, 0x7FC0_0000, 1, 0x7F7F_FFFF, 0x0080_0000, 0x3F80_0000]),
        4 => *random.pick(&[1 << 63, 0x7FF << 52, 0xFFF << 52, 0x7FF8 << 48, 0x3FF << 52, (0x7FF << 52) - 1]),
        _ => random.next() % 4,
    };
    Literal::from_bits(scalar, bits)
}

/// An expression of at most so many levels.
pub(super) fn expr(random: &mut Random, depth: u32) -> Expr {
    let leaf = depth <= 1 || random.one_in(4);
    let below = |random: &mut Random| expr(random, depth - 1);
    match random.below(if leaf { 6 } else { 14 }) {
        0..=2 => Expr::Lit(literal(random)),
        3 => Expr::Var(name(random)),
        4 => Expr::Builtin(*random.pick(&Builtin::ALL)),
        5 => Expr::Len(name(random)),
        6 => Expr::load(name(random), below(random)),
        7 => Expr::unary(*random.pick(UnaryOp::ALL), below(random)),
        8 | 9 => {
            let op = *random.pick(BinaryOp::ALL);
            let left = below(random);
            Expr::binary(op, left, below(random))
        }
        10 => {
            let op = *random.pick(TernaryOp::ALL);
            let (a, b) = (below(random), below(random));
            Expr::ternary(op, a, b, below(random))
        }
        11 => {
            let to = *random.pick(&Scalar::ALL);
            if random.one_in(2) { Expr::cast(to, below(random)) } else { Expr::bitcast(to, below(random)) }
        }
        12 => {
            let count = *random.pick(&[0, 1, 2, 2, 3, 4, 5]);
            Expr::vector((0..count).map(|_| below(random)).collect::<Vec<Expr>>())
        }
        _ => Expr::extract(below(random), *random.pick(&[0, 1, 2, 3, 4, 7, 255])),
    }
}

fn exprs(random: &mut Random, depth: u32, most: usize) -> Vec<Expr> {
    (0..random.below(most + 1)).map(|_| expr(random, depth)).collect()
}

fn body(random: &mut Random, depth: u32) -> Vec<Node> {
    let most = if depth > 4 { 5 } else { 3 };
    (0..random.below(most)).map(|_| node(random, depth)).collect()
}

/// A statement of at most so many levels, expressions included.
pub(super) fn node(random: &mut Random, depth: u32) -> Node {
    let simple = depth <= 2 || random.one_in(2);
    let value_depth = (depth - 1).clamp(1, 5);
    let result = if random.one_in(2) { Some(name(random)) } else { None };
    match random.below(if simple { 10 } else { 14 }) {
        0 | 1 => Node::let_bind(name(random), expr(random, value_depth)),
        2 => Node::assign(name(random), expr(random, value_depth)),
        3 => {
            let index = expr(random, value_depth);
            Node::store(name(random), index, expr(random, value_depth))
        }
        4 => {
            let (op, buffer) = (*random.pick(AtomicOp::ALL), name(random));
            let index = expr(random, value_depth);
            Atomic { result, op, buffer, index, operands: exprs(random, value_depth, 3) }.into()
        }
        5 => Subgroup { result, op: *random.pick(SubgroupOp::ALL), operands: exprs(random, value_depth, 3) }.into(),
        6 => random.pick(&[Node::Break, Node::Continue, Node::Return]).clone(),
        7 => Node::Barrier { ordering: *random.pick(&MemoryOrdering::ALL) },
        8 => Node::Trap { tag: *random.pick(&[0, 7, u32::MAX]) },
        9 | 10 => {
            let cond = expr(random, value_depth);
            let (then, otherwise) = if depth > 2 { (body(random, depth - 1), body(random, depth - 1)) } else { (vec![], vec![]) };
            Node::if_then_else(cond, then, otherwise)
        }
        11 => {
            let (from, to) = (expr(random, value_depth), expr(random, value_depth));
            Node::loop_for(name(random), from, to, body(random, depth - 1))
        }
        12 => Node::block(body(random, depth - 1)),
        _ => Node::region(name(random), body(random, depth - 1)),
    }
}

pub(super) fn data_type(random: &mut Random, depth: u32) -> DataType {
    let inner = |random: &mut Random| Box::new(data_type(random, depth - 1));
    let number = |random: &mut Random| *random.pick(&[0, 1, 16, u32::MAX]);
    match random.below(if depth <= 1 { 8 } else { 13 }) {
        0..=3 => random.pick(&DataType::KERNEL_SCALARS).clone(),
        4 => random.pick(&[DataType::Vec2U32, DataType::Vec4U32, DataType::Bytes, DataType::Tensor]).clone(),
        5 => DataType::Array { element_size: *random.pick(&[0, 12, usize::MAX]) },
        6 => DataType::Handle(TypeId(number(random))),
        7 => DataType::Opaque(TypeId(number(random))),
        8 => DataType::Vec { element: inner(random), count: *random.pick(&[0, 1, 2, 3, 4, 255]) },
        9 => DataType::TensorShaped { element: inner(random), shape: (0..random.below(6)).map(|_| number(random)).collect() },
        10 => DataType::SparseCsr { element: inner(random) },
        11 => DataType::SparseBsr { element: inner(random), block_rows: number(random), block_cols: number(random) },
        _ => {
            if random.one_in(2) {
                DataType::SparseCoo { element: inner(random) }
            } else {
                DataType::DeviceMesh { axes: (0..random.below(4)).map(|_| number(random)).collect() }
            }
        }
    }
}

fn size(random: &mut Random) -> Size {
    if random.one_in(4) { Size::Const(name(random)) } else { Size::Lit(*random.pick(&[0, 1, 1, 64, u32::MAX])) }
}

/// Any program of at most so many levels; every third is raw.
pub(super) fn program(random: &mut Random, depth: u32) -> Program {
    let consts = (0..random.below(4)).map(|_| {
        let default = match random.below(5) {
            0 => SpecValue::U32(random.next() as u32),
            1 => SpecValue::I32(random.next() as i32),
            2 => SpecValue::F32(*random.pick(&[0.0, -0.0, 1.5, 1e-45, f32::NAN, f32::NEG_INFINITY, f32::MAX])),
            3 => SpecValue::Bool(random.one_in(2)),
            _ => SpecValue::DType(data_type(random, 3)),
        };
        ConstDecl { name: name(random), default }
    });
    let consts: Vec<ConstDecl> = consts.collect();
    let buffers = (0..random.below(5)).map(|_| BufferDecl {
        name: name(random),
        access: *random.pick(&Access::ALL),
        element: if random.one_in(4) { Element::Const(name(random)) } else { Element::Type(data_type(random, 4)) },
        count: if random.one_in(2) { Some(size(random)) } else { None },
        binding: if random.one_in(4) { None } else { Some(*random.pick(&[0, 1, 2, u32::MAX])) },
    });
    let buffers: Vec<BufferDecl> = buffers.collect();
    let body = if random.one_in(3) { body(random, depth) } else { vec![Node::region(name(random), body(random, depth - 1))] };
    Program::from_parts(Parts {
        buffers,
        consts,
        workgroup: [size(random), size(random), size(random)],
        floats: *random.pick(&FloatMode::ALL),
        subgroup: *random.pick(&[None, None, Some(0), Some(8), Some(u32::MAX)]),
        body: body.into(),
    })
}
