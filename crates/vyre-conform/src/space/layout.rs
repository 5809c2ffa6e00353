//! The inputs of an op as columns of numbers: what spaces that are derived from a signature fill.

use crate::spec::{OpSpec, Shape};
use vyre_foundation::ir::DataType;
use vyre_spec::{Scalar, ValueType};

/// What the bits of a unit mean.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// An integer.
    Int {
        /// Whether it is two's complement.
        signed: bool,
    },
    /// A sign, an exponent of so many bits, a mantissa.
    Float {
        /// Bits of the exponent.
        exponent: u32,
    },
    /// False if it is 0.
    Bool,
    /// Two elements of half a byte.
    Nibbles,
}

/// The smallest part of an input that is a number of whole bytes: an element, a component of a vector, two elements of half a byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unit {
    /// Its bytes: 1, 2, 4 or 8.
    pub bytes: u32,
    /// What they mean.
    pub kind: Kind,
}

impl Unit {
    /// How elements of this type are made of units: the unit, and how many there are in an element or, for half bytes, how many elements
    /// there are in a unit. `None` if no kernel can use the type.
    fn of(ty: &DataType) -> Option<(Unit, Ratio)> {
        let int = |bytes, signed| (Unit { bytes, kind: Kind::Int { signed } }, Ratio::UnitsInElement(1));
        let float = |bytes, exponent| (Unit { bytes, kind: Kind::Float { exponent } }, Ratio::UnitsInElement(1));
        Some(match ty {
            DataType::U8 => int(1, false),
            DataType::I8 => int(1, true),
            DataType::U16 => int(2, false),
            DataType::I16 => int(2, true),
            DataType::U32 => int(4, false),
            DataType::I32 => int(4, true),
            DataType::U64 => int(8, false),
            DataType::I64 => int(8, true),
            DataType::Bool => (Unit { bytes: 4, kind: Kind::Bool }, Ratio::UnitsInElement(1)),
            DataType::F8E4M3 => float(1, 4),
            DataType::F8E5M2 => float(1, 5),
            DataType::F16 => float(2, 5),
            DataType::BF16 => float(2, 8),
            DataType::F32 => float(4, 8),
            DataType::F64 => float(8, 11),
            DataType::I4 | DataType::FP4 | DataType::NF4 => (Unit { bytes: 1, kind: Kind::Nibbles }, Ratio::ElementsInUnit(2)),
            DataType::Vec2U32 | DataType::Vec4U32 | DataType::Vec { .. } => match ty.value_type()? {
                ValueType::Scalar(_) => return None,
                ValueType::Vector(component, count) => (Unit::of_scalar(component), Ratio::UnitsInElement(count.into())),
            },
            DataType::Bytes
            | DataType::Tensor
            | DataType::Array { .. }
            | DataType::Handle(_)
            | DataType::Opaque(_)
            | DataType::TensorShaped { .. }
            | DataType::SparseCsr { .. }
            | DataType::SparseCoo { .. }
            | DataType::SparseBsr { .. }
            | DataType::DeviceMesh { .. } => return None,
        })
    }

    fn of_scalar(scalar: Scalar) -> Unit {
        let kind = match scalar {
            Scalar::Bool => Kind::Bool,
            Scalar::U32 | Scalar::U64 => Kind::Int { signed: false },
            Scalar::I32 | Scalar::I64 => Kind::Int { signed: true },
            Scalar::F32 => Kind::Float { exponent: 8 },
            Scalar::F64 => Kind::Float { exponent: 11 },
        };
        Unit { bytes: scalar.bytes(), kind }
    }
}

#[derive(Clone, Copy)]
enum Ratio {
    UnitsInElement(u32),
    ElementsInUnit(u32),
}

/// The inputs of an op.
#[derive(Clone)]
pub struct Layout {
    shape: Shape,
    units: Vec<(Unit, Ratio)>,
}

impl Layout {
    /// Of this op; `None` if a case is a dispatch, an input has a type without units, or there are no inputs.
    #[must_use]
    pub fn of(spec: &OpSpec) -> Option<Layout> {
        let units: Option<Vec<_>> = spec.signature().inputs.iter().map(Unit::of).collect();
        let shape = spec.shape().clone();
        match shape {
            Shape::Elements(_) | Shape::Workgroup(_) => {}
            Shape::Dispatch(_) => return None,
        }
        Some(Layout { shape, units: units.filter(|units| !units.is_empty())? })
    }

    /// Whether a case is the same at every workgroup size.
    #[must_use]
    pub fn is_fixed(&self) -> bool {
        match self.shape {
            Shape::Elements(_) => true,
            Shape::Workgroup(_) | Shape::Dispatch(_) => false,
        }
    }

    /// The units of each input.
    pub fn units(&self) -> impl ExactSizeIterator<Item = Unit> {
        self.units.iter().map(|(unit, _)| *unit)
    }

    /// How many units a case has of each input.
    #[must_use]
    pub fn counts(&self, workgroup: u32) -> Vec<u32> {
        let elements = self.shape.extent(workgroup).map_or_else(Vec::new, |extent| extent.inputs);
        let units = |((_, ratio), elements): (&(Unit, Ratio), u32)| match ratio {
            Ratio::UnitsInElement(units) => elements * units,
            Ratio::ElementsInUnit(in_unit) => elements.div_ceil(*in_unit),
        };
        self.units.iter().zip(elements).map(units).collect()
    }
}
