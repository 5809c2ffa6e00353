//! A value of any type a kernel computes on, small enough to copy.

/// Up to four components, each the bits of a scalar in the low part of a `u64`; scalars use component 0 and leave the rest zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Value(pub [u64; 4]);

impl Value {
    /// The bits of a scalar, or of a vector's first component.
    #[inline]
    #[must_use]
    pub const fn scalar(self) -> u64 {
        self.0[0]
    }
}

impl From<u64> for Value {
    #[inline]
    fn from(bits: u64) -> Self {
        Value([bits, 0, 0, 0])
    }
}
