//! The types a kernel computes on: seven scalars, short vectors of the 32-bit ones, and sets of scalars for the op tables.

use std::fmt;

/// A type that values inside a kernel can have. Everything narrower exists in memory only (see [`crate::Storage`]).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Scalar {
    /// `true` or `false`; four bytes in memory.
    Bool,
    /// Unsigned, 32 bits; the type of indices, counts and shift amounts.
    U32,
    /// Two's complement, 32 bits.
    I32,
    /// Unsigned, 64 bits.
    U64,
    /// Two's complement, 64 bits.
    I64,
    /// IEEE 754 binary32 with one anonymous NaN.
    F32,
    /// IEEE 754 binary64 with one anonymous NaN.
    F64,
}

impl Scalar {
    /// Every scalar, in the order of the declaration.
    pub const ALL: [Scalar; 7] = [Scalar::Bool, Scalar::U32, Scalar::I32, Scalar::U64, Scalar::I64, Scalar::F32, Scalar::F64];

    /// Its spelling in the text form, which is also the name of the cast to it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Scalar::Bool => "bool",
            Scalar::U32 => "u32",
            Scalar::I32 => "i32",
            Scalar::U64 => "u64",
            Scalar::I64 => "i64",
            Scalar::F32 => "f32",
            Scalar::F64 => "f64",
        }
    }

    /// Bytes of one element in memory; a `bool` takes four.
    #[must_use]
    pub const fn bytes(self) -> u32 {
        match self {
            Scalar::Bool | Scalar::U32 | Scalar::I32 | Scalar::F32 => 4,
            Scalar::U64 | Scalar::I64 | Scalar::F64 => 8,
        }
    }

    /// Width in bits for shifts, rotates and bit counts; `bool` counts as one bit.
    #[must_use]
    pub const fn bits(self) -> u32 {
        match self {
            Scalar::Bool => 1,
            Scalar::U32 | Scalar::I32 | Scalar::F32 => 32,
            Scalar::U64 | Scalar::I64 | Scalar::F64 => 64,
        }
    }

    /// Whether this is one of the four integer types.
    #[must_use]
    pub const fn is_int(self) -> bool {
        TypeSet::INT.contains(self)
    }

    /// Whether this is `f32` or `f64`.
    #[must_use]
    pub const fn is_float(self) -> bool {
        TypeSet::FLOAT.contains(self)
    }

    /// Whether this is `i32` or `i64`.
    #[must_use]
    pub const fn is_signed_int(self) -> bool {
        matches!(self, Scalar::I32 | Scalar::I64)
    }

    /// The unsigned integer of the same width (`bool` counts as `u32`).
    #[must_use]
    pub const fn unsigned(self) -> Scalar {
        match self {
            Scalar::Bool | Scalar::U32 | Scalar::I32 | Scalar::F32 => Scalar::U32,
            Scalar::U64 | Scalar::I64 | Scalar::F64 => Scalar::U64,
        }
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The type of an expression or a variable.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ValueType {
    /// One scalar.
    Scalar(Scalar),
    /// Two to four `u32`, `i32` or `f32`; built, taken apart, loaded and stored, never computed on.
    Vector(Scalar, u8),
}

impl ValueType {
    /// The scalar, if this is one.
    #[must_use]
    pub const fn scalar(self) -> Option<Scalar> {
        match self {
            ValueType::Scalar(scalar) => Some(scalar),
            ValueType::Vector(..) => None,
        }
    }

    /// Bytes of one element of this type in memory.
    #[must_use]
    pub const fn bytes(self) -> u32 {
        match self {
            ValueType::Scalar(scalar) => scalar.bytes(),
            ValueType::Vector(scalar, count) => scalar.bytes() * count as u32,
        }
    }
}

impl From<Scalar> for ValueType {
    fn from(scalar: Scalar) -> Self {
        ValueType::Scalar(scalar)
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValueType::Scalar(scalar) => scalar.fmt(f),
            ValueType::Vector(scalar, count) => write!(f, "vec{count}<{scalar}>"),
        }
    }
}

/// A set of scalars: what the type variable of an op may stand for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TypeSet(u8);

impl TypeSet {
    /// `bool`.
    pub const BOOL: TypeSet = TypeSet::of(&[Scalar::Bool]);
    /// `u32 i32`.
    pub const INT32: TypeSet = TypeSet::of(&[Scalar::U32, Scalar::I32]);
    /// `u32 i32 u64 i64`.
    pub const INT: TypeSet = TypeSet::of(&[Scalar::U32, Scalar::I32, Scalar::U64, Scalar::I64]);
    /// `f32`.
    pub const F32: TypeSet = TypeSet::of(&[Scalar::F32]);
    /// `f32 f64`.
    pub const FLOAT: TypeSet = TypeSet::of(&[Scalar::F32, Scalar::F64]);
    /// All integers and floats.
    pub const NUMBER: TypeSet = TypeSet::INT.union(TypeSet::FLOAT);
    /// Integers and `bool`.
    pub const LOGICAL: TypeSet = TypeSet::INT.union(TypeSet::BOOL);
    /// Integers and `f32`: what subgroup `min` and `max` reduce.
    pub const INT_F32: TypeSet = TypeSet::INT.union(TypeSet::F32);
    /// Every scalar.
    pub const ALL: TypeSet = TypeSet::NUMBER.union(TypeSet::BOOL);

    /// The set of exactly these scalars.
    #[must_use]
    pub const fn of(scalars: &[Scalar]) -> TypeSet {
        let mut bits = 0;
        let mut i = 0;
        while i < scalars.len() {
            bits |= 1 << scalars[i] as u8;
            i += 1;
        }
        TypeSet(bits)
    }

    /// Both sets together.
    #[must_use]
    pub const fn union(self, other: TypeSet) -> TypeSet {
        TypeSet(self.0 | other.0)
    }

    /// Whether `scalar` is in the set.
    #[must_use]
    pub const fn contains(self, scalar: Scalar) -> bool {
        self.0 & (1 << scalar as u8) != 0
    }

    /// The members, in the order of [`Scalar::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Scalar> {
        Scalar::ALL.into_iter().filter(move |scalar| self.contains(*scalar))
    }
}

impl fmt::Display for TypeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, scalar) in self.iter().enumerate() {
            if i > 0 {
                f.write_str(" ")?;
            }
            scalar.fmt(f)?;
        }
        Ok(())
    }
}

/// What a program does with floats too small for every device to keep: the attribute `floats`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum FloatMode {
    /// IEEE 754 with subnormals and signed zeros.
    #[default]
    Ieee,
    /// Every float value of magnitude at most 2⁻¹²⁶ (f64: 2⁻¹⁰²²) is +0.
    Canonical,
}

impl FloatMode {
    /// Both modes.
    pub const ALL: [FloatMode; 2] = [FloatMode::Ieee, FloatMode::Canonical];

    /// Its spelling after `floats`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            FloatMode::Ieee => "ieee",
            FloatMode::Canonical => "canonical",
        }
    }
}

impl fmt::Display for FloatMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
