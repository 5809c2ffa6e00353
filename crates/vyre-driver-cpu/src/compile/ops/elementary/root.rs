//! The reciprocal square root.
//!
//! What `vyre_scalar` does, step by step: (1 / x) √x in f64, whose rounding to f32 is proven there to be right on every input. So nothing is
//! left to test. Arguments that are not positive and finite are left to the scalar function.

use super::Value;
use super::math::Math;
use crate::machine::reg::V;

pub(super) fn rsqrt(m: &mut Math<'_, '_>, x: V) -> Value {
    let outside = m.is_outside(x, 1, f32::MAX.to_bits());
    let wide = m.widen(x);
    let reciprocal = m.div(1.0, wide);
    let root = m.sqrt(wide);
    let result = m.mul(reciprocal, root);
    Value { result: m.narrow(result), unsure: None, outside: Some(outside) }
}
