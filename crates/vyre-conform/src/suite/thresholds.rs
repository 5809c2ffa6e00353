//! Values at which single ops go wrong, beside those of the type: where results overflow, underflow, or change their kind.

use crate::cpu::narrow::{BF16, F8E4M3, F8E5M2, F16, Format};
use vyre_spec::{BinaryOp, DataType, Scalar, TernaryOp, UnaryOp};

/// By operand: values as bytes.
pub(super) type Values = Vec<Vec<Vec<u8>>>;

/// Each value, its negative, and the floats next to them.
fn around(values: &[f64]) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for value in values {
        let bits = (*value as f32).abs().to_bits();
        for near in [bits.saturating_sub(1), bits, bits.saturating_add(1)] {
            all.extend([near, near | 1 << 31].map(|it| it.to_le_bytes().to_vec()));
        }
    }
    all
}

/// Multiples of π / 4, small ones and ones so large that their reduction needs every digit of π.
fn angles() -> Vec<Vec<u8>> {
    use std::f64::consts::FRAC_PI_4;
    let mut values: Vec<f64> = (1..=16).map(|n| f64::from(n) * FRAC_PI_4).collect();
    values.extend([100, 1000, 12345, 1 << 20, 1 << 24].map(|n| f64::from(n) * FRAC_PI_4));
    // Hard to reduce: very near to a multiple of π / 2.
    values.extend([0x5922_AA80, 0x6115_CB11, 0x7388_6C94, 0x5BB8_3F1E, 0x4AFD_A000].map(|bits| f64::from(f32::from_bits(bits))));
    values.extend([1e-4, 1e-3, 0.1, 1e10, 1e20, 1e38]);
    around(&values)
}

/// For an op with one operand.
pub(super) fn unary(op: UnaryOp, t: Scalar) -> Values {
    if t != Scalar::F32 {
        return Values::new();
    }
    let values = match op {
        // Overflow, the smallest normal result, the smallest result, and where e^x begins to differ from 1.
        UnaryOp::Exp => around(&[88.722_84, 87.336_54, 103.278_93, 103.972_08, 104.0, 5.96e-8, 2.98e-8, 1.0]),
        UnaryOp::Exp2 => around(&[128.0, 126.0, 149.0, 150.0, 151.0, 8.6e-8, 4.3e-8, 0.5, 1.0, 2.0, 10.0, 127.0]),
        UnaryOp::Log | UnaryOp::Log2 => {
            around(&[1.0, 2.0, 0.5, 4.0, 1024.0, 1.175_494_35e-38, 1e-45, 3.4e38, std::f64::consts::E])
        }
        UnaryOp::Sin | UnaryOp::Cos | UnaryOp::Tan => angles(),
        // Where the result becomes 1, and where it begins to differ from the operand.
        UnaryOp::Tanh => around(&[9.010_913, 9.010_914, 8.664, 4.4e-4, 3.45e-4, 0.55, 20.0]),
        UnaryOp::Atan => around(&[1.0, 0.4375, 0.6875, 1.1875, 2.4375, 4.4e-4, 3.45e-4, 1.67e7, 2.6e7, 1e10]),
        UnaryOp::Sqrt | UnaryOp::Rsqrt => around(&[4.0, 2.0, 3.0, 16_777_215.0, 16_777_217.0, 1.175_494_35e-38, 1e-45, 0.25]),
        UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Trunc | UnaryOp::Round | UnaryOp::Fract => {
            around(&[0.25, 0.5, 1.5, 2.5, 3.5, 4_194_303.5, 4_194_304.5, 8_388_607.5, 8_388_608.0, 1e-30])
        }
        UnaryOp::Neg
        | UnaryOp::Not
        | UnaryOp::Abs
        | UnaryOp::Popcount
        | UnaryOp::Clz
        | UnaryOp::Ctz
        | UnaryOp::ReverseBits
        | UnaryOp::SwapBytes
        | UnaryOp::Sign
        | UnaryOp::IsNan
        | UnaryOp::IsInf => return Values::new(),
    };
    vec![values]
}

/// For an op with two operands.
pub(super) fn binary(op: BinaryOp, t: Scalar) -> Values {
    let amounts =
        || (0..=66_u32).chain([95, 96, 127, 128, 255, 256, 1 << 16, 1 << 31]).map(|it| it.to_le_bytes().to_vec()).collect();
    match op {
        BinaryOp::Shl | BinaryOp::Shr | BinaryOp::Rotl | BinaryOp::Rotr => vec![Vec::new(), amounts()],
        // Squares, cubes and roots that are exact or halfway; exponents that are odd, even, no integers, and that overflow.
        BinaryOp::Pow => vec![
            around(&[
                3.0,
                5.0,
                7.0,
                9.0,
                10.0,
                25.0,
                81.0,
                625.0,
                4097.0,
                2049.0,
                4096.5,
                16_777_215.0,
                0.25,
                0.75,
                1e-40,
                1.0001,
            ]),
            around(&[
                3.0,
                4.0,
                5.0,
                0.25,
                0.75,
                1.5,
                2.5,
                7.0,
                8.0,
                127.0,
                128.0,
                126.0,
                149.0,
                150.0,
                16_777_215.0,
                1e30,
                0.125,
            ]),
        ],
        BinaryOp::Rem if t == Scalar::F32 => {
            vec![around(&[5.5, 7.0, 1e30, 3.4e38, 1e-45]), around(&[0.1, 3.0, 1e-45, 1e-38, 7e-39])]
        }
        BinaryOp::Rem
        | BinaryOp::Add
        | BinaryOp::Sub
        | BinaryOp::Mul
        | BinaryOp::Mulhi
        | BinaryOp::Div
        | BinaryOp::AbsDiff
        | BinaryOp::Min
        | BinaryOp::Max
        | BinaryOp::BitAnd
        | BinaryOp::BitOr
        | BinaryOp::BitXor
        | BinaryOp::SatAdd
        | BinaryOp::SatSub
        | BinaryOp::Copysign
        | BinaryOp::And
        | BinaryOp::Or
        | BinaryOp::Eq
        | BinaryOp::Ne
        | BinaryOp::Lt
        | BinaryOp::Le
        | BinaryOp::Gt
        | BinaryOp::Ge => Values::new(),
    }
}

/// For an op with three operands.
pub(super) fn ternary(op: TernaryOp) -> Values {
    match op {
        TernaryOp::Fma | TernaryOp::Select => Values::new(),
    }
}

/// For stores to this type: the middles between neighbours, and what is next to them.
pub(super) fn store(ty: &DataType) -> Values {
    let format = match ty {
        DataType::F16 => F16,
        DataType::BF16 => BF16,
        DataType::F8E4M3 => F8E4M3,
        DataType::F8E5M2 => F8E5M2,
        DataType::U8
        | DataType::I8
        | DataType::U16
        | DataType::I16
        | DataType::U32
        | DataType::I32
        | DataType::U64
        | DataType::I64
        | DataType::Bool
        | DataType::F32
        | DataType::F64
        | DataType::I4
        | DataType::FP4
        | DataType::NF4
        | DataType::Vec2U32
        | DataType::Vec4U32
        | DataType::Bytes
        | DataType::Tensor
        | DataType::Array { .. }
        | DataType::Handle(_)
        | DataType::Opaque(_)
        | DataType::Vec { .. }
        | DataType::TensorShaped { .. }
        | DataType::SparseCsr { .. }
        | DataType::SparseCoo { .. }
        | DataType::SparseBsr { .. }
        | DataType::DeviceMesh { .. } => return Values::new(),
    };
    vec![middles(format)]
}

fn middles(format: Format) -> Vec<Vec<u8>> {
    // All codes of the small formats; of the others those around every power of two.
    let largest = format.encode(f32::MAX);
    let codes = (0..=largest).filter(|code| largest < 256 || (code + 2) % (largest / 256).max(1) < 4);
    let middles = codes.map(|code| (f64::from(format.decode(code)) + f64::from(format.decode(code + 1))) / 2.0);
    around(&middles.filter(|middle| middle.is_finite()).collect::<Vec<_>>())
}
