//! What shows that a mutant is wrong: small programs over the values at which ops go wrong, and noise.

use vyre_foundation::ir::{BufferDecl, DataType, Expr, Node, OpId, Program, Scalar};
use vyre_foundation::text::parse;
use vyre_spec::{Operand, Storage};
use vyre_worker::{Case, Sequence};

/// Something that a mutant does wrong.
#[derive(Clone, PartialEq, Debug)]
pub enum Witness {
    /// Dispatches one after the other on one subject; at least one of them is wrong.
    Cases(Vec<Case>),
    /// Dispatches over buffers that stay.
    Sequence(Sequence),
}

/// splitmix64.
pub(super) fn mix(n: u64) -> u64 {
    let mut z = n.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The bits of values of a type at which ops go wrong.
pub(super) fn edges(ty: Scalar) -> Vec<u64> {
    let ints = |bits: u32, more: &[u64]| {
        let mask = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
        let powers = [1u32, 2, 5, 8, 16, 24, 31, 32, 33, 63].into_iter().filter(|k| *k < bits).map(|k| 1u64 << k);
        let around = powers.flat_map(|power| [power, power - 1, power.wrapping_neg()]);
        let mut all: Vec<u64> = [0, 1, 3, 7, 10, 100, bits.into(), u64::from(bits) + 1].into_iter().chain(around).collect();
        all.extend([u64::MAX, u64::MAX - 6]);
        all.extend(more);
        all.iter_mut().for_each(|value| *value &= mask);
        all.sort_unstable();
        all.dedup();
        all
    };
    let both = |positive: Vec<u64>, sign: u64, nan: u64| -> Vec<u64> {
        let negative: Vec<u64> = positive.iter().map(|bits| bits | sign).collect();
        positive.into_iter().chain(negative).chain([nan]).collect()
    };
    match ty {
        Scalar::Bool => vec![0, 1],
        Scalar::U32 | Scalar::I32 => ints(32, &[0x0100_0001, 0x7FFF_FFFD]),
        // The last ones are just above half of an f32's last place, by less than an f64 can tell.
        Scalar::U64 | Scalar::I64 => ints(64, &[(1 << 62) + (1 << 38) + 1, (1 << 63) + (1 << 39) + 1, (1 << 53) + 3]),
        Scalar::F32 => {
            let numbers =
                [0.5f32, 1.0, 1.5, 2.5, 3.0, 1.0 / 3.0, 3.7, 10.1, 8_388_609.5, 2_147_483_648.0, 4_294_967_296.0, 1.2e19, 0.1];
            let bits =
                [0, 1, 0x0040_0001, 0x0080_0000, 0x0080_0003, 0x3F80_0001, 0x3F7F_FFFF, 0x7F7F_FFFF, 0x7F80_0000, 0x4F7F_FFFF];
            let all = numbers.iter().map(|x| u64::from(x.to_bits())).chain(bits);
            both(all.collect(), 1 << 31, 0x7FC0_0000)
        }
        Scalar::F64 => {
            let numbers =
                [0.5f64, 1.0, 1.5, 2.5, 3.0, 1.0 / 3.0, 3.7, 10.1, 2_147_483_648.5, 1.0e19, 1.0e-40, 3.5e38, 1.000_000_06];
            let bits = [0, 1, 0x0008_0000_0000_0001, 0x0010_0000_0000_0000, 0x0010_0000_0000_0003, 0x3FF0_0000_0000_0001];
            let more = [0x7FEF_FFFF_FFFF_FFFF, 0x7FF0_0000_0000_0000, 0x3FF0_0000_1000_0000];
            let all = numbers.iter().map(|x| x.to_bits()).chain(bits).chain(more);
            both(all.collect(), 1 << 63, 0x7FF8_0000_0000_0000)
        }
    }
}

/// Noise of a type; of floats most are of about the size of 1, so that sums of them round.
pub(super) fn noise(ty: Scalar, n: u64) -> u64 {
    let bits = mix(n);
    match ty {
        Scalar::Bool => bits & 1,
        Scalar::U32 | Scalar::I32 => bits >> 32 >> (bits % 4 * 7),
        Scalar::U64 | Scalar::I64 => bits >> (mix(bits) % 4 * 13),
        Scalar::F32 if !n.is_multiple_of(4) => (bits & 0x807F_FFFF) | (120 + (bits >> 40) % 16) << 23,
        Scalar::F64 if !n.is_multiple_of(4) => (bits & 0x800F_FFFF_FFFF_FFFF) | (1015 + mix(bits) % 16) << 52,
        Scalar::F32 => bits & 0xFFFF_FFFF,
        Scalar::F64 => bits,
    }
}

/// Operands of these types, side by side.
pub(super) fn operands(types: &[Scalar]) -> Vec<Vec<u64>> {
    const NOISE: u64 = 600;
    let lists: Vec<Vec<u64>> = types.iter().map(|ty| edges(*ty)).collect();
    let mut columns: Vec<Vec<u64>> = vec![Vec::new(); types.len()];
    let cases = match &lists[..] {
        [one] => one.len(),
        [one, two] => one.len() * two.len(),
        _ => 3000,
    };
    for n in 0..cases {
        let mut rest = if lists.len() > 2 { mix(n as u64) as usize >> 8 } else { n };
        for (column, list) in columns.iter_mut().zip(&lists) {
            column.push(list[rest % list.len()]);
            rest /= list.len();
        }
    }
    for n in 0..NOISE {
        for (k, (column, ty)) in columns.iter_mut().zip(types).enumerate() {
            column.push(noise(*ty, mix(n) ^ k as u64));
        }
    }
    columns
}

/// Values as they stand in memory.
pub(super) fn bytes(ty: Scalar, values: &[u64]) -> Vec<u8> {
    let width = ty.bytes() as usize;
    values.iter().flat_map(|value| value.to_le_bytes().into_iter().take(width)).collect()
}

/// The element type that memory of this scalar has.
pub(super) fn element(ty: Scalar) -> DataType {
    match ty {
        Scalar::Bool => DataType::Bool,
        Scalar::U32 => DataType::U32,
        Scalar::I32 => DataType::I32,
        Scalar::U64 => DataType::U64,
        Scalar::I64 => DataType::I64,
        Scalar::F32 => DataType::F32,
        Scalar::F64 => DataType::F64,
    }
}

/// What an element of memory is once it is loaded; a vector counts as words.
pub(super) fn value(element: &DataType) -> Scalar {
    match element.storage() {
        Storage::Computed(ty) => ty.scalar().unwrap_or(Scalar::U32),
        Storage::Converted(scalar) | Storage::LoadOnly(scalar) => scalar,
        Storage::Described => Scalar::U32,
    }
}

/// A dispatch that computes one value from operands of these types, over all that is worth trying.
pub(super) fn of_expr(types: &[Scalar], result: Scalar, value: impl Fn(Vec<Expr>) -> Expr) -> Witness {
    of_operands(types, operands(types), result, value)
}

/// The same over these operands.
pub(super) fn of_operands(
    types: &[Scalar],
    columns: Vec<Vec<u64>>,
    result: Scalar,
    value: impl Fn(Vec<Expr>) -> Expr,
) -> Witness {
    let inputs = types.iter().zip(&columns).map(|(ty, column)| bytes(*ty, column)).collect();
    let elements: Vec<DataType> = types.iter().map(|ty| element(*ty)).collect();
    let program = program(&elements, element(result), columns.first().map_or(0, Vec::len), value);
    Witness::Cases(vec![Case::new(program, inputs)])
}

/// A program that loads an element of each input and stores what comes of it.
pub(super) fn program(inputs: &[DataType], output: DataType, count: usize, value: impl Fn(Vec<Expr>) -> Expr) -> Program {
    let names: Vec<String> = (0..inputs.len()).map(|n| format!("x{n}")).collect();
    let mut buffers: Vec<BufferDecl> =
        inputs.iter().zip(&names).zip(0..).map(|((ty, name), n)| BufferDecl::read(&name[..], n, ty.clone())).collect();
    buffers.push(BufferDecl::output("out", inputs.len() as u32, output).with_count(count as u32));
    let loads = names.iter().map(|name| Expr::load(&name[..], Expr::gid_x())).collect();
    Program::wrapped(buffers, [64, 1, 1], vec![Node::store("out", Expr::gid_x(), value(loads))])
}

/// A dispatch of one pure op on one type.
pub(super) fn of_op(op: OpId, ty: Scalar) -> Witness {
    let (types, result) = signature(op, ty);
    of_expr(&types, result, |operands| apply(op, operands))
}

/// The types of the operands and of the result of a pure op.
pub(super) fn signature(op: OpId, ty: Scalar) -> (Vec<Scalar>, Scalar) {
    let operand = |operand: &Operand| match operand {
        Operand::T => ty,
        Operand::Fixed(scalar) => *scalar,
    };
    (op.info().operands.iter().map(operand).collect(), op.info().result_type(ty).unwrap_or(ty))
}

/// A pure op on operands, of which there are as many as it takes.
pub(super) fn apply(op: OpId, operands: Vec<Expr>) -> Expr {
    let mut operands = operands.into_iter();
    let mut next = || operands.next().unwrap_or_else(|| Expr::u32(0));
    match op {
        OpId::Unary(op) => Expr::unary(op, next()),
        OpId::Binary(op) => Expr::binary(op, next(), next()),
        OpId::Ternary(op) => Expr::ternary(op, next(), next(), next()),
        OpId::Atomic(_) | OpId::Subgroup(_) => unreachable!("these are statements"),
    }
}

/// One case of a program in text form.
pub(super) fn case(text: &str, inputs: Vec<Vec<u8>>) -> Case {
    match parse("witness.vyre", text) {
        Ok(program) => Case::new(program, inputs),
        Err(report) => unreachable!("a witness is a program: {report}"),
    }
}

/// Noise of 32 bits, small enough to tell apart and to count with.
pub(super) fn words(count: usize, below: u32) -> Vec<u8> {
    let word = |n: usize| (mix(n as u64 + 77) % u64::from(below)) as u32;
    (0..count).flat_map(|n| word(n).to_le_bytes()).collect()
}
