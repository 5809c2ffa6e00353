//! Softmax and layer norm of rows.

use crate::floats::{canonical, exp, max};
use crate::reduce::sum_of;
use crate::template::Template;
use vyre_foundation::ir::{Program, SpecValue};

static SOFTMAX: Template = Template::new(include_str!("../kernels/softmax.vyre"));
static LAYER_NORM: Template = Template::new(include_str!("../kernels/layer_norm.vyre"));

/// The softmax of rows of `columns` floats each.
///
/// m is the largest number of the row (NaN only if there is no number), e = exp(x − m) for each element, s the sum of all e in the order
/// of [`row_sums`](crate::reduce::row_sums), and the result e / s; each operation is rounded to f32, exp correctly.
///
/// | buffer | | |
/// |---|---|---|
/// | `x` @0 | read f32 | one row after the other |
/// | `y` @1 | output f32 | as long as `x` |
///
/// Launch: a workgroup for each row. Three passes over a row, one exp an element.
#[must_use]
pub fn softmax(workgroup: [u32; 3], columns: u32) -> Program {
    SOFTMAX.program(workgroup, &[("columns", SpecValue::U32(columns))])
}

/// The softmax of one row.
#[must_use]
pub fn softmax_on_cpu(row: &[f32]) -> Vec<f32> {
    let largest = row.iter().copied().fold(f32::NAN, max);
    let powers: Vec<f32> = row.iter().map(|x| exp(x - largest)).collect();
    let sum = sum_of(powers.len(), |n| powers[n]);
    powers.iter().map(|power| canonical(power / sum)).collect()
}

/// The layer norm of rows that are as long as `gain`.
///
/// With n the length of a row as f32, mean = sum of x / n, d = x − mean, variance = sum of d · d / n, and deviation = √(variance + epsilon),
/// the result is ((d / deviation) · gain) + bias; each operation is rounded to f32, and sums are added up in the order of
/// [`row_sums`](crate::reduce::row_sums).
///
/// | buffer | | |
/// |---|---|---|
/// | `x` @0 | read f32 | one row after the other |
/// | `gain` @1 | read f32 | one for each column |
/// | `bias` @2 | read f32 | one for each column |
/// | `y` @3 | output f32 | as long as `x` |
///
/// Launch: a workgroup for each row. Three passes over a row.
#[must_use]
pub fn layer_norm(workgroup: [u32; 3], epsilon: f32) -> Program {
    LAYER_NORM.program(workgroup, &[("epsilon", SpecValue::F32(epsilon))])
}

/// The layer norm of one row.
#[must_use]
pub fn layer_norm_on_cpu(row: &[f32], gain: &[f32], bias: &[f32], epsilon: f32) -> Vec<f32> {
    let n = row.len() as f32;
    let mean = sum_of(row.len(), |c| row[c]) / n;
    let squares: Vec<f32> = row.iter().map(|x| (x - mean) * (x - mean)).collect();
    let deviation = (sum_of(row.len(), |c| squares[c]) / n + epsilon).sqrt();
    let normal = row.iter().map(|x| (x - mean) / deviation);
    normal.zip(gain).zip(bias).map(|((x, gain), bias)| canonical(x * gain + bias)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked_out_by_hand() {
        assert_eq!(softmax_on_cpu(&[3.0, 3.0, f32::NEG_INFINITY, 3.0, 3.0]), [0.25, 0.25, 0.0, 0.25, 0.25]);
        assert!(softmax_on_cpu(&[1.0, f32::INFINITY]).iter().all(|y| y.to_bits() == 0x7FC0_0000));
        assert_eq!(layer_norm_on_cpu(&[1.0, 3.0], &[2.0, 1.0], &[0.5, 0.0], 0.0), [-1.5, 1.0]);
    }
}
