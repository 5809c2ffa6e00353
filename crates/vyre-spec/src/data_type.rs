//! Element types of buffers.
//!
//! Three kinds, told apart by [`DataType::storage`]: *computed on* (the scalars and short vectors), *stored* (narrow types converted
//! at each load and store, or at loads only), and *described*: types that programs may name and size but no kernel touches.
//! Tags are part of the wire form and never change.

use crate::scalar::{Scalar, ValueType};
use smallvec::SmallVec;
use std::fmt;

/// The number of a type that a host defines: the payload of [`DataType::Handle`] and [`DataType::Opaque`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TypeId(pub u32);

/// The element type of a buffer.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum DataType {
    /// Unsigned, 32 bits.
    U32,
    /// Two's complement, 32 bits.
    I32,
    /// Unsigned, 64 bits, as two little-endian words.
    U64,
    /// Two `u32`; the same kernel type as `Vec { U32, 2 }`.
    Vec2U32,
    /// Four `u32`; the same kernel type as `Vec { U32, 4 }`.
    Vec4U32,
    /// Four bytes; nonzero loads as true, stores write 0 or 1.
    Bool,
    /// Described only: bytes without structure.
    Bytes,
    /// Described only: elements of a fixed number of bytes.
    Array {
        /// Bytes of one element.
        element_size: usize,
    },
    /// IEEE binary16; loads and stores convert from and to f32.
    F16,
    /// The upper half of a binary32; loads and stores convert from and to f32.
    BF16,
    /// IEEE binary32.
    F32,
    /// IEEE binary64.
    F64,
    /// Described only: a tensor of unknown shape.
    Tensor,
    /// Unsigned byte; loads and stores convert from and to u32.
    U8,
    /// Unsigned, 16 bits; loads and stores convert from and to u32.
    U16,
    /// Signed byte; loads and stores convert from and to i32.
    I8,
    /// Signed, 16 bits; loads and stores convert from and to i32.
    I16,
    /// Two's complement, 64 bits, as two little-endian words.
    I64,
    /// Described only: a handle to an object of the host.
    Handle(TypeId),
    /// `count` scalars side by side; a kernel accepts 2 to 4 of `u32`, `i32` or `f32`.
    Vec {
        /// The type of one component.
        element: Box<DataType>,
        /// How many components.
        count: u8,
    },
    /// Described only: a tensor of this shape.
    TensorShaped {
        /// The type of one component.
        element: Box<DataType>,
        /// Extents, outermost first.
        shape: SmallVec<[u32; 4]>,
    },
    /// Described only: compressed sparse rows.
    SparseCsr {
        /// The type of one stored value.
        element: Box<DataType>,
    },
    /// Described only: coordinate list.
    SparseCoo {
        /// The type of one stored value.
        element: Box<DataType>,
    },
    /// Described only: block sparse rows.
    SparseBsr {
        /// The type of one stored value.
        element: Box<DataType>,
        /// Rows of one block.
        block_rows: u32,
        /// Columns of one block.
        block_cols: u32,
    },
    /// OCP 8-bit float, 4 exponent bits, finite with one NaN per sign; converts from and to f32, saturating.
    F8E4M3,
    /// OCP 8-bit float, 5 exponent bits; converts from and to f32, saturating.
    F8E5M2,
    /// Load only: two's complement nibble, loads as i32.
    I4,
    /// Load only: OCP E2M1 nibble, loads as f32.
    FP4,
    /// Load only: NormalFloat nibble, loads as f32.
    NF4,
    /// Described only: the axes of a mesh of devices.
    DeviceMesh {
        /// Extents, outermost first.
        axes: SmallVec<[u32; 3]>,
    },
    /// Described only: a type of the host that vyre knows nothing about.
    Opaque(TypeId),
}

/// How a kernel meets an element type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Storage {
    /// Loads and stores copy the value (a NaN becomes the one NaN, a bool 0 or 1).
    Computed(ValueType),
    /// Loads widen to this scalar, stores narrow from it.
    Converted(Scalar),
    /// Loads widen to this scalar; there are no stores.
    LoadOnly(Scalar),
    /// No kernel may use it.
    Described,
}

impl DataType {
    /// The types a kernel accepts that have no parameters, by tag.
    pub const KERNEL_SCALARS: [DataType; 18] = [
        DataType::U32,
        DataType::I32,
        DataType::U64,
        DataType::Bool,
        DataType::F16,
        DataType::BF16,
        DataType::F32,
        DataType::F64,
        DataType::U8,
        DataType::U16,
        DataType::I8,
        DataType::I16,
        DataType::I64,
        DataType::F8E4M3,
        DataType::F8E5M2,
        DataType::I4,
        DataType::FP4,
        DataType::NF4,
    ];

    /// The other types that have no parameters.
    pub const OTHER_PLAIN: [DataType; 4] = [DataType::Vec2U32, DataType::Vec4U32, DataType::Bytes, DataType::Tensor];

    /// The type with this tag, if it has no parameters.
    #[must_use]
    pub fn plain_from_tag(tag: u32) -> Option<DataType> {
        // Statics: a constant would be made and dropped for every look.
        static KERNEL_SCALARS: [DataType; 18] = DataType::KERNEL_SCALARS;
        static OTHER_PLAIN: [DataType; 4] = DataType::OTHER_PLAIN;
        KERNEL_SCALARS.iter().chain(&OTHER_PLAIN).find(|ty| ty.tag() == tag).cloned()
    }

    /// `count` components of `element`.
    #[must_use]
    pub fn vector(element: Scalar, count: u8) -> DataType {
        DataType::Vec { element: Box::new(element.into()), count }
    }

    /// The stable number of this variant, without its parameters.
    #[must_use]
    pub const fn tag(&self) -> u32 {
        match self {
            DataType::U32 => 0x01,
            DataType::I32 => 0x02,
            DataType::U64 => 0x03,
            DataType::Vec2U32 => 0x04,
            DataType::Vec4U32 => 0x05,
            DataType::Bool => 0x06,
            DataType::Bytes => 0x07,
            DataType::Array { .. } => 0x08,
            DataType::F16 => 0x09,
            DataType::BF16 => 0x0A,
            DataType::F32 => 0x0B,
            DataType::F64 => 0x0C,
            DataType::Tensor => 0x0D,
            DataType::U8 => 0x0E,
            DataType::U16 => 0x0F,
            DataType::I8 => 0x10,
            DataType::I16 => 0x11,
            DataType::I64 => 0x12,
            DataType::Handle(_) => 0x13,
            DataType::Vec { .. } => 0x14,
            DataType::TensorShaped { .. } => 0x15,
            DataType::SparseCsr { .. } => 0x16,
            DataType::SparseCoo { .. } => 0x17,
            DataType::SparseBsr { .. } => 0x18,
            DataType::F8E4M3 => 0x19,
            DataType::F8E5M2 => 0x1A,
            DataType::I4 => 0x1B,
            DataType::FP4 => 0x1C,
            DataType::NF4 => 0x1D,
            DataType::DeviceMesh { .. } => 0x1E,
            DataType::Opaque(_) => 0x80,
        }
    }

    /// How a kernel meets elements of this type.
    #[must_use]
    pub fn storage(&self) -> Storage {
        let scalar = |scalar| Storage::Computed(ValueType::Scalar(scalar));
        match self {
            DataType::Bool => scalar(Scalar::Bool),
            DataType::U32 => scalar(Scalar::U32),
            DataType::I32 => scalar(Scalar::I32),
            DataType::U64 => scalar(Scalar::U64),
            DataType::I64 => scalar(Scalar::I64),
            DataType::F32 => scalar(Scalar::F32),
            DataType::F64 => scalar(Scalar::F64),
            DataType::Vec2U32 => Storage::Computed(ValueType::Vector(Scalar::U32, 2)),
            DataType::Vec4U32 => Storage::Computed(ValueType::Vector(Scalar::U32, 4)),
            DataType::Vec { element, count } => match (element.storage(), count) {
                (Storage::Computed(ValueType::Scalar(part @ (Scalar::U32 | Scalar::I32 | Scalar::F32))), 2..=4) => {
                    Storage::Computed(ValueType::Vector(part, *count))
                }
                (Storage::Computed(_) | Storage::Converted(_) | Storage::LoadOnly(_) | Storage::Described, _) => {
                    Storage::Described
                }
            },
            DataType::U8 | DataType::U16 => Storage::Converted(Scalar::U32),
            DataType::I8 | DataType::I16 => Storage::Converted(Scalar::I32),
            DataType::F16 | DataType::BF16 | DataType::F8E4M3 | DataType::F8E5M2 => Storage::Converted(Scalar::F32),
            DataType::I4 => Storage::LoadOnly(Scalar::I32),
            DataType::FP4 | DataType::NF4 => Storage::LoadOnly(Scalar::F32),
            DataType::Bytes
            | DataType::Array { .. }
            | DataType::Tensor
            | DataType::Handle(_)
            | DataType::TensorShaped { .. }
            | DataType::SparseCsr { .. }
            | DataType::SparseCoo { .. }
            | DataType::SparseBsr { .. }
            | DataType::DeviceMesh { .. }
            | DataType::Opaque(_) => Storage::Described,
        }
    }

    /// The type a load of one element gives; `None` when no kernel may use the type.
    #[must_use]
    pub fn value_type(&self) -> Option<ValueType> {
        match self.storage() {
            Storage::Computed(value) => Some(value),
            Storage::Converted(scalar) | Storage::LoadOnly(scalar) => Some(ValueType::Scalar(scalar)),
            Storage::Described => None,
        }
    }

    /// Bits of one element in memory; `None` when the type has no fixed size or it does not fit a `u64`.
    #[must_use]
    pub fn bits(&self) -> Option<u64> {
        match self {
            DataType::I4 | DataType::FP4 | DataType::NF4 => Some(4),
            DataType::U8 | DataType::I8 | DataType::F8E4M3 | DataType::F8E5M2 | DataType::Bytes => Some(8),
            DataType::U16 | DataType::I16 | DataType::F16 | DataType::BF16 => Some(16),
            DataType::Bool | DataType::U32 | DataType::I32 | DataType::F32 => Some(32),
            DataType::U64 | DataType::I64 | DataType::F64 | DataType::Vec2U32 => Some(64),
            DataType::Vec4U32 => Some(128),
            DataType::Array { element_size } => (*element_size as u64).checked_mul(8),
            DataType::Vec { element, count } => element.bits()?.checked_mul(u64::from(*count)),
            DataType::TensorShaped { element, shape } => {
                shape.iter().try_fold(element.bits()?, |bits, extent| bits.checked_mul(u64::from(*extent)))
            }
            DataType::Tensor
            | DataType::Handle(_)
            | DataType::SparseCsr { .. }
            | DataType::SparseCoo { .. }
            | DataType::SparseBsr { .. }
            | DataType::DeviceMesh { .. }
            | DataType::Opaque(_) => None,
        }
    }
}

impl From<Scalar> for DataType {
    fn from(scalar: Scalar) -> Self {
        match scalar {
            Scalar::Bool => DataType::Bool,
            Scalar::U32 => DataType::U32,
            Scalar::I32 => DataType::I32,
            Scalar::U64 => DataType::U64,
            Scalar::I64 => DataType::I64,
            Scalar::F32 => DataType::F32,
            Scalar::F64 => DataType::F64,
        }
    }
}

/// The spelling in the text form, such as `bf16`, `vec4<f32>` or `tensor<f32, 2, 3>`.
impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = match self {
            DataType::U32 => "u32",
            DataType::I32 => "i32",
            DataType::U64 => "u64",
            DataType::Vec2U32 => "vec2u32",
            DataType::Vec4U32 => "vec4u32",
            DataType::Bool => "bool",
            DataType::Bytes => "bytes",
            DataType::F16 => "f16",
            DataType::BF16 => "bf16",
            DataType::F32 => "f32",
            DataType::F64 => "f64",
            DataType::Tensor => "tensor",
            DataType::U8 => "u8",
            DataType::U16 => "u16",
            DataType::I8 => "i8",
            DataType::I16 => "i16",
            DataType::I64 => "i64",
            DataType::F8E4M3 => "f8e4m3",
            DataType::F8E5M2 => "f8e5m2",
            DataType::I4 => "i4",
            DataType::FP4 => "fp4",
            DataType::NF4 => "nf4",
            DataType::Array { element_size } => return write!(f, "array<{element_size}>"),
            DataType::Handle(TypeId(id)) => return write!(f, "handle<{id}>"),
            DataType::Opaque(TypeId(id)) => return write!(f, "opaque<{id}>"),
            DataType::Vec { element, count } => return write!(f, "vec{count}<{element}>"),
            DataType::SparseCsr { element } => return write!(f, "csr<{element}>"),
            DataType::SparseCoo { element } => return write!(f, "coo<{element}>"),
            DataType::SparseBsr { element, block_rows, block_cols } => {
                return write!(f, "bsr<{element}, {block_rows}, {block_cols}>");
            }
            DataType::TensorShaped { element, shape } => {
                write!(f, "tensor<{element}")?;
                for extent in shape {
                    write!(f, ", {extent}")?;
                }
                return f.write_str(">");
            }
            DataType::DeviceMesh { axes } => {
                f.write_str("mesh<")?;
                for (i, extent) in axes.iter().enumerate() {
                    write!(f, "{}{extent}", if i > 0 { ", " } else { "" })?;
                }
                return f.write_str(">");
            }
        };
        f.write_str(plain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_unique_and_spellings_differ() {
        let mut types = DataType::KERNEL_SCALARS.to_vec();
        types.extend([
            DataType::Vec2U32,
            DataType::Vec4U32,
            DataType::Bytes,
            DataType::Array { element_size: 1 },
            DataType::Tensor,
            DataType::Handle(TypeId(0)),
            DataType::vector(Scalar::U32, 3),
            DataType::TensorShaped { element: Box::new(DataType::U32), shape: smallvec::smallvec![1] },
            DataType::SparseCsr { element: Box::new(DataType::U32) },
            DataType::SparseCoo { element: Box::new(DataType::U32) },
            DataType::SparseBsr { element: Box::new(DataType::U32), block_rows: 1, block_cols: 1 },
            DataType::DeviceMesh { axes: smallvec::smallvec![1] },
            DataType::Opaque(TypeId(0)),
        ]);
        let mut tags: Vec<u32> = types.iter().map(DataType::tag).collect();
        tags.sort_unstable();
        let expected: Vec<u32> = (0x01..=0x1E).chain([0x80]).collect();
        assert_eq!(tags, expected);
        let mut names: Vec<String> = types.iter().map(ToString::to_string).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), types.len());
    }

    #[test]
    fn sizes_that_do_not_fit_are_unknown_not_wrapped() {
        let huge =
            DataType::TensorShaped { element: Box::new(DataType::U64), shape: smallvec::smallvec![u32::MAX, u32::MAX, u32::MAX] };
        assert_eq!(huge.bits(), None);
        assert_eq!(DataType::vector(Scalar::F32, 3).bits(), Some(96));
        assert_eq!(DataType::NF4.bits(), Some(4));
    }
}
