//! Constants in expressions.

use vyre_spec::Scalar;

/// An f32 as its bits, so that it can be compared and hashed; every NaN is the one NaN.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct F32Bits(u32);

/// An f64 as its bits, so that it can be compared and hashed; every NaN is the one NaN.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct F64Bits(u64);

impl F32Bits {
    /// The bits.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// The number.
    #[must_use]
    pub const fn value(self) -> f32 {
        f32::from_bits(self.0)
    }
}

impl F64Bits {
    /// The bits.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// The number.
    #[must_use]
    pub const fn value(self) -> f64 {
        f64::from_bits(self.0)
    }
}

impl From<f32> for F32Bits {
    fn from(value: f32) -> Self {
        // By bits: a comparison of floats would depend on the float state of the process.
        let bits = value.to_bits();
        F32Bits(if bits & 0x7FFF_FFFF > 0x7F80_0000 { 0x7FC0_0000 } else { bits })
    }
}

impl From<f64> for F64Bits {
    fn from(value: f64) -> Self {
        let bits = value.to_bits();
        F64Bits(if bits << 1 > 0x7FF0_0000_0000_0000 << 1 { 0x7FF8_0000_0000_0000 } else { bits })
    }
}

/// A typed constant.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Literal {
    /// `true`, `false`
    Bool(bool),
    /// `7`, `7u`
    U32(u32),
    /// `-7i`
    I32(i32),
    /// `7u64`
    U64(u64),
    /// `-7i64`
    I64(i64),
    /// `1.5`, `inf`, `nan`
    F32(F32Bits),
    /// `1.5d`, `infd`, `nand`
    F64(F64Bits),
}

impl Literal {
    /// The type of the constant.
    #[must_use]
    pub const fn scalar(self) -> Scalar {
        match self {
            Literal::Bool(_) => Scalar::Bool,
            Literal::U32(_) => Scalar::U32,
            Literal::I32(_) => Scalar::I32,
            Literal::U64(_) => Scalar::U64,
            Literal::I64(_) => Scalar::I64,
            Literal::F32(_) => Scalar::F32,
            Literal::F64(_) => Scalar::F64,
        }
    }

    /// The value's bits, zero-extended.
    #[must_use]
    pub const fn bits(self) -> u64 {
        match self {
            Literal::Bool(value) => value as u64,
            Literal::U32(value) => value as u64,
            Literal::I32(value) => value as u32 as u64,
            Literal::U64(value) => value,
            Literal::I64(value) => value as u64,
            Literal::F32(value) => value.0 as u64,
            Literal::F64(value) => value.0,
        }
    }

    /// The constant of type `scalar` whose bits are the low bits of `bits`.
    #[must_use]
    pub fn from_bits(scalar: Scalar, bits: u64) -> Literal {
        match scalar {
            Scalar::Bool => Literal::Bool(bits != 0),
            Scalar::U32 => Literal::U32(bits as u32),
            Scalar::I32 => Literal::I32(bits as u32 as i32),
            Scalar::U64 => Literal::U64(bits),
            Scalar::I64 => Literal::I64(bits as i64),
            Scalar::F32 => Literal::F32(f32::from_bits(bits as u32).into()),
            Scalar::F64 => Literal::F64(f64::from_bits(bits).into()),
        }
    }
}
