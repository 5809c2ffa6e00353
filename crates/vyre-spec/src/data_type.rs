//! Element types of buffers.
//!
//! Three kinds, told apart by [`DataType::storage`]: *computed on* (the scalars and short vectors), *stored* (narrow types converted
//! at each load and store, or at loads only), and *described*: types that programs may name and size but no kernel touches.
//!
//! All types are rows of one table, `data_types!` below; tags are part of the wire form and never change. A type is a chain: each
//! has at most one other type below it. Code can build chains of any length, so everything here follows them in loops.

use crate::scalar::{Scalar, ValueType};
use smallvec::SmallVec;
use std::fmt;
use std::hash::{Hash, Hasher};

/// The number of a type that a host defines: the payload of [`DataType::Handle`] and [`DataType::Opaque`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TypeId(pub u32);

/// Makes everything that is one entry per type out of the table: the enum, the lists, tags and spellings. The table has three parts,
/// each in the order in which its types are listed to people:
/// types without parameters that kernels load one value of, other types without parameters (both with the bits of one element and
/// how kernels meet it), and families of types with parameters, spelled `word<…>`.
macro_rules! data_types {
    (
        scalars { $( $(#[$scalar_doc:meta])* $scalar:ident = $scalar_tag:literal, $scalar_word:literal, $scalar_bits:expr, $scalar_storage:expr; )* }
        others { $( $(#[$other_doc:meta])* $other:ident = $other_tag:literal, $other_word:literal, $other_bits:expr, $other_storage:expr; )* }
        families { $( $(#[$family_doc:meta])* $family:ident $fields:tt = $family_tag:literal, $family_word:literal; )* }
    ) => {
        /// The element type of a buffer.
        pub enum DataType {
            $( $(#[$scalar_doc])* $scalar, )*
            $( $(#[$other_doc])* $other, )*
            $( $(#[$family_doc])* $family $fields, )*
        }

        /// The types that have parameters, without them: what stands before the `<`.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum TypeFamily {
            $( $(#[$family_doc])* $family, )*
        }

        impl TypeFamily {
            /// Every family.
            pub const ALL: &[TypeFamily] = &[$( TypeFamily::$family ),*];

            /// The word before the `<`; a vector has its count between them.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self { $( TypeFamily::$family => $family_word, )* }
            }

            /// The stable number of its types.
            #[must_use]
            pub const fn tag(self) -> u32 {
                match self { $( TypeFamily::$family => $family_tag, )* }
            }
        }

        impl DataType {
            /// The types that a kernel loads single values of.
            pub const KERNEL_SCALARS: [DataType; [$( $scalar_tag ),*].len()] = [$( DataType::$scalar ),*];

            /// The other types that have no parameters.
            pub const OTHER_PLAIN: [DataType; [$( $other_tag ),*].len()] = [$( DataType::$other ),*];

            /// The stable number of this variant, without its parameters.
            #[must_use]
            pub const fn tag(&self) -> u32 {
                match self {
                    $( DataType::$scalar => $scalar_tag, )*
                    $( DataType::$other => $other_tag, )*
                    $( DataType::$family { .. } => $family_tag, )*
                }
            }

            /// Its family, if it has parameters.
            #[must_use]
            pub const fn family(&self) -> Option<TypeFamily> {
                match self {
                    $( DataType::$scalar => None, )*
                    $( DataType::$other => None, )*
                    $( DataType::$family { .. } => Some(TypeFamily::$family), )*
                }
            }

            /// The spelling without parameters.
            const fn word(&self) -> &'static str {
                match self {
                    $( DataType::$scalar => $scalar_word, )*
                    $( DataType::$other => $other_word, )*
                    $( DataType::$family { .. } => $family_word, )*
                }
            }

            /// The row of a type without parameters: itself, its bits and how kernels meet it.
            const fn plain(&self) -> Option<(DataType, Option<u64>, Storage)> {
                match self {
                    $( DataType::$scalar => Some((DataType::$scalar, $scalar_bits, $scalar_storage)), )*
                    $( DataType::$other => Some((DataType::$other, $other_bits, $other_storage)), )*
                    $( DataType::$family { .. } => None, )*
                }
            }
        }

        /// The pattern of all types without parameters.
        #[macro_export]
        macro_rules! plain_data_type {
            () => {
                $( $crate::DataType::$scalar )|* $( | $crate::DataType::$other )*
            };
        }
    };
}

const fn computed(scalar: Scalar) -> Storage {
    Storage::Computed(ValueType::Scalar(scalar))
}

const fn vector(scalar: Scalar, count: u8) -> Storage {
    Storage::Computed(ValueType::Vector(scalar, count))
}

data_types! {
    scalars {
        /// Unsigned, 32 bits.
        U32 = 0x01, "u32", Some(32), computed(Scalar::U32);
        /// Two's complement, 32 bits.
        I32 = 0x02, "i32", Some(32), computed(Scalar::I32);
        /// Unsigned, 64 bits, as two little-endian words.
        U64 = 0x03, "u64", Some(64), computed(Scalar::U64);
        /// Four bytes; nonzero loads as true, stores write 0 or 1.
        Bool = 0x06, "bool", Some(32), computed(Scalar::Bool);
        /// IEEE binary16; loads and stores convert from and to f32.
        F16 = 0x09, "f16", Some(16), Storage::Converted(Scalar::F32);
        /// The upper half of a binary32; loads and stores convert from and to f32.
        BF16 = 0x0A, "bf16", Some(16), Storage::Converted(Scalar::F32);
        /// IEEE binary32.
        F32 = 0x0B, "f32", Some(32), computed(Scalar::F32);
        /// IEEE binary64.
        F64 = 0x0C, "f64", Some(64), computed(Scalar::F64);
        /// Unsigned byte; loads and stores convert from and to u32.
        U8 = 0x0E, "u8", Some(8), Storage::Converted(Scalar::U32);
        /// Unsigned, 16 bits; loads and stores convert from and to u32.
        U16 = 0x0F, "u16", Some(16), Storage::Converted(Scalar::U32);
        /// Signed byte; loads and stores convert from and to i32.
        I8 = 0x10, "i8", Some(8), Storage::Converted(Scalar::I32);
        /// Signed, 16 bits; loads and stores convert from and to i32.
        I16 = 0x11, "i16", Some(16), Storage::Converted(Scalar::I32);
        /// Two's complement, 64 bits, as two little-endian words.
        I64 = 0x12, "i64", Some(64), computed(Scalar::I64);
        /// OCP 8-bit float, 4 exponent bits, finite with one NaN per sign; converts from and to f32, saturating.
        F8E4M3 = 0x19, "f8e4m3", Some(8), Storage::Converted(Scalar::F32);
        /// OCP 8-bit float, 5 exponent bits; converts from and to f32, saturating.
        F8E5M2 = 0x1A, "f8e5m2", Some(8), Storage::Converted(Scalar::F32);
        /// Load only: two's complement nibble, loads as i32.
        I4 = 0x1B, "i4", Some(4), Storage::LoadOnly(Scalar::I32);
        /// Load only: OCP E2M1 nibble, loads as f32.
        FP4 = 0x1C, "fp4", Some(4), Storage::LoadOnly(Scalar::F32);
        /// Load only: NormalFloat nibble, loads as f32.
        NF4 = 0x1D, "nf4", Some(4), Storage::LoadOnly(Scalar::F32);
    }
    others {
        /// Two `u32`; the same kernel type as `Vec { U32, 2 }`.
        Vec2U32 = 0x04, "vec2u32", Some(64), vector(Scalar::U32, 2);
        /// Four `u32`; the same kernel type as `Vec { U32, 4 }`.
        Vec4U32 = 0x05, "vec4u32", Some(128), vector(Scalar::U32, 4);
        /// Described only: bytes without structure.
        Bytes = 0x07, "bytes", Some(8), Storage::Described;
        /// Described only: a tensor of unknown shape.
        Tensor = 0x0D, "tensor", None, Storage::Described;
    }
    families {
        /// Described only: elements of a fixed number of bytes.
        Array {
            /// Bytes of one element.
            element_size: usize,
        } = 0x08, "array";
        /// Described only: a handle to an object of the host.
        Handle(TypeId) = 0x13, "handle";
        /// Described only: a type of the host that vyre knows nothing about.
        Opaque(TypeId) = 0x80, "opaque";
        /// `count` scalars side by side; a kernel accepts 2 to 4 of `u32`, `i32` or `f32`.
        Vec {
            /// The type of one component.
            element: Box<DataType>,
            /// How many components.
            count: u8,
        } = 0x14, "vec";
        /// Described only: a tensor of this shape.
        TensorShaped {
            /// The type of one component.
            element: Box<DataType>,
            /// Extents, outermost first.
            shape: SmallVec<[u32; 4]>,
        } = 0x15, "tensor";
        /// Described only: compressed sparse rows.
        SparseCsr {
            /// The type of one stored value.
            element: Box<DataType>,
        } = 0x16, "csr";
        /// Described only: coordinate list.
        SparseCoo {
            /// The type of one stored value.
            element: Box<DataType>,
        } = 0x17, "coo";
        /// Described only: block sparse rows.
        SparseBsr {
            /// The type of one stored value.
            element: Box<DataType>,
            /// Rows of one block.
            block_rows: u32,
            /// Columns of one block.
            block_cols: u32,
        } = 0x18, "bsr";
        /// Described only: the axes of a mesh of devices.
        DeviceMesh {
            /// Extents, outermost first.
            axes: SmallVec<[u32; 3]>,
        } = 0x1E, "mesh";
    }
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

impl TypeFamily {
    /// The family with this tag.
    #[must_use]
    pub fn from_tag(tag: u32) -> Option<TypeFamily> {
        TypeFamily::ALL.iter().copied().find(|family| family.tag() == tag)
    }

    /// The family with this word before the `<`.
    #[must_use]
    pub fn from_word(word: &str) -> Option<TypeFamily> {
        TypeFamily::ALL.iter().copied().find(|family| family.word() == word)
    }
}

// Statics: a constant would be made and dropped for every look.
static KERNEL_SCALARS: &[DataType] = &DataType::KERNEL_SCALARS;
static OTHER_PLAIN: &[DataType] = &DataType::OTHER_PLAIN;

impl DataType {
    /// Every type without parameters and its spelling, in the order of the table.
    pub fn all_plain() -> impl Iterator<Item = (&'static str, &'static DataType)> {
        KERNEL_SCALARS.iter().chain(OTHER_PLAIN).map(|ty| (ty.word(), ty))
    }

    /// The type with this tag, if it has no parameters.
    #[must_use]
    pub fn plain_from_tag(tag: u32) -> Option<DataType> {
        DataType::all_plain().find(|(_, ty)| ty.tag() == tag).map(|(_, ty)| ty.clone())
    }

    /// The type with this spelling, if it has no parameters.
    #[must_use]
    pub fn plain_from_word(word: &str) -> Option<DataType> {
        DataType::all_plain().find(|(spelling, _)| *spelling == word).map(|(_, ty)| ty.clone())
    }

    /// `count` components of `element`.
    #[must_use]
    pub fn vector(element: Scalar, count: u8) -> DataType {
        DataType::Vec { element: Box::new(element.into()), count }
    }

    /// The type below this one.
    #[must_use]
    pub fn element(&self) -> Option<&DataType> {
        match self {
            DataType::Vec { element, .. }
            | DataType::TensorShaped { element, .. }
            | DataType::SparseCsr { element }
            | DataType::SparseCoo { element }
            | DataType::SparseBsr { element, .. } => Some(element),
            plain_data_type!()
            | DataType::Array { .. }
            | DataType::Handle(_)
            | DataType::DeviceMesh { .. }
            | DataType::Opaque(_) => None,
        }
    }

    fn element_mut(&mut self) -> Option<&mut DataType> {
        match self {
            DataType::Vec { element, .. }
            | DataType::TensorShaped { element, .. }
            | DataType::SparseCsr { element }
            | DataType::SparseCoo { element }
            | DataType::SparseBsr { element, .. } => Some(element),
            plain_data_type!()
            | DataType::Array { .. }
            | DataType::Handle(_)
            | DataType::DeviceMesh { .. }
            | DataType::Opaque(_) => None,
        }
    }

    /// This type and those below it, outermost first.
    pub fn levels(&self) -> impl Iterator<Item = &DataType> {
        std::iter::successors(Some(self), |level| level.element())
    }

    /// The parameters that are numbers, in the order of their spelling.
    #[must_use]
    pub fn numbers(&self) -> SmallVec<[u64; 4]> {
        let one = |number: u64| SmallVec::from_slice(&[number]);
        match self {
            plain_data_type!() | DataType::SparseCsr { .. } | DataType::SparseCoo { .. } => SmallVec::new(),
            DataType::Array { element_size } => one(*element_size as u64),
            DataType::Handle(TypeId(id)) | DataType::Opaque(TypeId(id)) => one(u64::from(*id)),
            DataType::Vec { count, .. } => one(u64::from(*count)),
            DataType::TensorShaped { shape, .. } => shape.iter().copied().map(u64::from).collect(),
            DataType::SparseBsr { block_rows, block_cols, .. } => {
                SmallVec::from_slice(&[u64::from(*block_rows), u64::from(*block_cols)])
            }
            DataType::DeviceMesh { axes } => axes.iter().copied().map(u64::from).collect(),
        }
    }

    /// The same type over another one.
    fn over(&self, below: Option<DataType>) -> DataType {
        let element = || Box::new(below.unwrap_or(DataType::Bool));
        match self {
            plain_data_type!() => self.plain().map_or(DataType::Bool, |(plain, ..)| plain),
            DataType::Array { element_size } => DataType::Array { element_size: *element_size },
            DataType::Handle(id) => DataType::Handle(*id),
            DataType::Opaque(id) => DataType::Opaque(*id),
            DataType::Vec { count, .. } => DataType::Vec { element: element(), count: *count },
            DataType::TensorShaped { shape, .. } => DataType::TensorShaped { element: element(), shape: shape.clone() },
            DataType::SparseCsr { .. } => DataType::SparseCsr { element: element() },
            DataType::SparseCoo { .. } => DataType::SparseCoo { element: element() },
            DataType::SparseBsr { block_rows, block_cols, .. } => {
                DataType::SparseBsr { element: element(), block_rows: *block_rows, block_cols: *block_cols }
            }
            DataType::DeviceMesh { axes } => DataType::DeviceMesh { axes: axes.clone() },
        }
    }

    /// How a kernel meets elements of this type.
    #[must_use]
    pub fn storage(&self) -> Storage {
        if let Some((_, _, storage)) = self.plain() {
            return storage;
        }
        // Vectors are of plain types, so this is the only level below that is looked at.
        match self {
            DataType::Vec { element, count: count @ 2..=4 } => match element.plain() {
                Some((_, _, Storage::Computed(ValueType::Scalar(part @ (Scalar::U32 | Scalar::I32 | Scalar::F32))))) => {
                    vector(part, *count)
                }
                Some((_, _, Storage::Computed(_) | Storage::Converted(_) | Storage::LoadOnly(_) | Storage::Described)) | None => {
                    Storage::Described
                }
            },
            plain_data_type!()
            | DataType::Vec { .. }
            | DataType::Array { .. }
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
        let levels: SmallVec<[&DataType; 4]> = self.levels().collect();
        let mut below = None;
        for level in levels.into_iter().rev() {
            below = match level {
                plain_data_type!() => level.plain().and_then(|(_, bits, _)| bits),
                DataType::Array { element_size } => (*element_size as u64).checked_mul(8),
                DataType::Vec { count, .. } => below.and_then(|bits: u64| bits.checked_mul(u64::from(*count))),
                DataType::TensorShaped { shape, .. } => {
                    shape.iter().try_fold(below?, |bits, extent| bits.checked_mul(u64::from(*extent)))
                }
                DataType::Handle(_)
                | DataType::SparseCsr { .. }
                | DataType::SparseCoo { .. }
                | DataType::SparseBsr { .. }
                | DataType::DeviceMesh { .. }
                | DataType::Opaque(_) => None,
            };
        }
        below
    }
}

impl Drop for DataType {
    fn drop(&mut self) {
        // What is taken out of a level leaves a type without parameters there, so dropping the level goes no deeper.
        let take = |level: &mut DataType| {
            let element = level.element_mut().filter(|element| element.element().is_some())?;
            Some(std::mem::replace(element, DataType::Bool))
        };
        let mut next = take(self);
        while let Some(mut level) = next {
            next = take(&mut level);
        }
    }
}

impl Clone for DataType {
    fn clone(&self) -> Self {
        if self.element().is_none() {
            return self.over(None);
        }
        let levels: Vec<&DataType> = self.levels().collect();
        let mut below = None;
        for level in levels.into_iter().rev() {
            below = Some(level.over(below));
        }
        below.unwrap_or(DataType::Bool)
    }
}

impl PartialEq for DataType {
    fn eq(&self, other: &Self) -> bool {
        // As long as tags are equal, so is whether there is another level.
        self.levels().zip(other.levels()).all(|(a, b)| a.tag() == b.tag() && (a.family().is_none() || a.numbers() == b.numbers()))
    }
}

impl Eq for DataType {}

impl Hash for DataType {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for level in self.levels() {
            (level.tag(), level.numbers()).hash(state);
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
        if self.family().is_none() {
            return f.write_str(self.word());
        }
        let levels: Vec<&DataType> = self.levels().collect();
        for level in &levels {
            f.write_str(level.word())?;
            if let DataType::Vec { count, .. } = level {
                write!(f, "{count}")?;
            }
            if level.family().is_some() {
                f.write_str("<")?;
            }
        }
        for level in levels.into_iter().rev().filter(|level| level.family().is_some()) {
            let numbers = if level.family() == Some(TypeFamily::Vec) { SmallVec::new() } else { level.numbers() };
            for (i, number) in numbers.iter().enumerate() {
                let comma = if i > 0 || level.element().is_some() { ", " } else { "" };
                write!(f, "{comma}{number}")?;
            }
            f.write_str(">")?;
        }
        Ok(())
    }
}

/// The spelling in the text form.
impl fmt::Debug for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
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

    /// Deeper than any stack; every other level is of another kind.
    fn deep(levels: usize) -> DataType {
        (0..levels).fold(DataType::U8, |element, level| {
            let element = Box::new(element);
            match level % 5 {
                0 => DataType::Vec { element, count: 1 },
                1 => DataType::TensorShaped { element, shape: smallvec::smallvec![1; 6] },
                2 => DataType::SparseCsr { element },
                3 => DataType::SparseCoo { element },
                _ => DataType::SparseBsr { element, block_rows: 1, block_cols: 2 },
            }
        })
    }

    #[test]
    fn types_a_million_levels_deep_do_not_overflow_the_stack() {
        use std::hash::DefaultHasher;
        let hash = |ty: &DataType| {
            let mut hasher = DefaultHasher::new();
            ty.hash(&mut hasher);
            hasher.finish()
        };
        let (ty, other) = (deep(1_000_000), deep(999_999));
        let copy = ty.clone();
        assert!(ty == copy && ty != other);
        assert!(hash(&ty) == hash(&copy) && hash(&ty) != hash(&other));
        assert_eq!(ty.to_string(), format!("{copy:?}"));
        assert!(ty.to_string().starts_with("bsr<coo<csr<tensor<vec1<bsr<"));
        assert_eq!((ty.tag(), ty.storage(), ty.value_type(), ty.bits()), (0x18, Storage::Described, None, None));
        let vectors = (0..1_000_000).fold(DataType::U8, |element, _| DataType::Vec { element: Box::new(element), count: 1 });
        assert_eq!((vectors.bits(), vectors.value_type()), (Some(8), None));
    }

    #[test]
    fn every_parameter_is_compared_hashed_cloned_and_spelled() {
        let boxed = || Box::new(DataType::U8);
        let types = [
            DataType::Array { element_size: 1 },
            DataType::Array { element_size: 2 },
            DataType::Handle(TypeId(1)),
            DataType::Handle(TypeId(2)),
            DataType::Opaque(TypeId(1)),
            DataType::Vec { element: boxed(), count: 1 },
            DataType::Vec { element: boxed(), count: 2 },
            DataType::Vec { element: Box::new(DataType::I8), count: 2 },
            DataType::TensorShaped { element: boxed(), shape: smallvec::smallvec![] },
            DataType::TensorShaped { element: boxed(), shape: smallvec::smallvec![1] },
            DataType::TensorShaped { element: boxed(), shape: smallvec::smallvec![1, 2, 3, 4, 5] },
            DataType::TensorShaped { element: boxed(), shape: smallvec::smallvec![1, 2, 3, 4, 6] },
            DataType::SparseBsr { element: boxed(), block_rows: 1, block_cols: 2 },
            DataType::SparseBsr { element: boxed(), block_rows: 2, block_cols: 1 },
            DataType::DeviceMesh { axes: smallvec::smallvec![1, 2] },
            DataType::DeviceMesh { axes: smallvec::smallvec![2, 1] },
        ];
        let spelled = [
            "array<1>",
            "array<2>",
            "handle<1>",
            "handle<2>",
            "opaque<1>",
            "vec1<u8>",
            "vec2<u8>",
            "vec2<i8>",
            "tensor<u8>",
            "tensor<u8, 1>",
            "tensor<u8, 1, 2, 3, 4, 5>",
            "tensor<u8, 1, 2, 3, 4, 6>",
            "bsr<u8, 1, 2>",
            "bsr<u8, 2, 1>",
            "mesh<1, 2>",
            "mesh<2, 1>",
        ];
        for (i, a) in types.iter().enumerate() {
            assert_eq!((a.to_string().as_str(), &a.clone()), (spelled[i], a));
            for (j, b) in types.iter().enumerate() {
                assert_eq!(a == b, i == j, "{a} {b}");
            }
        }
        let set: std::collections::HashSet<DataType> = types.iter().cloned().collect();
        assert!(set.len() == types.len() && types.iter().all(|ty| set.contains(ty)));
    }
}
