//! Matrices: products, and products with small floats.

use crate::floats::canonical;
use crate::reduce::sum_of;
use crate::template::{Template, in_a_row};
use vyre_foundation::ir::{DataType, Program, SpecValue};

static MATMUL: Template = Template::new(include_str!("../kernels/matmul.vyre"));
static DOT: Template = Template::new(include_str!("../kernels/quantised_dot.vyre"));

/// Columns of the first matrix that a workgroup loads at a time.
const DEPTH: u32 = 16;

/// Rows and columns of the product that a workgroup of this size computes: as near to a square as it divides.
#[must_use]
pub fn matmul_tile(workgroup: [u32; 3]) -> [u32; 2] {
    let size = in_a_row(workgroup);
    let rows = (1..=size.isqrt()).rev().find(|rows| size.is_multiple_of(*rows)).unwrap_or(1);
    [rows, size / rows]
}

/// The product of two matrices of floats.
///
/// Every element is a chain of fused multiply-adds from +0: s ← fma(a, b, s) over the rows of B in their order.
///
/// | buffer | | |
/// |---|---|---|
/// | `dimensions` @0 | uniform u32, 3 elements | rows of A; columns of A and rows of B; columns of B |
/// | `a` @1 | read f32 | row by row |
/// | `b` @2 | read f32 | row by row |
/// | `c` @3 | output f32 | row by row |
///
/// Launch: a workgroup for each tile ([`matmul_tile`]) of C, tiles of a row of them along x. Tiles of A and B are in workgroup memory, so
/// that an element of A is loaded once for each tile along x, one of B once for each along y.
#[must_use]
pub fn matmul(workgroup: [u32; 3]) -> Program {
    let [high, wide] = matmul_tile(workgroup);
    let values = [
        ("high", high),
        ("wide", wide),
        ("deep", DEPTH),
        ("cells_of_a", high.saturating_mul(DEPTH)),
        ("cells_of_b", wide.saturating_mul(DEPTH)),
    ];
    MATMUL.program(workgroup, &values.map(|(name, value)| (name, SpecValue::U32(value))))
}

/// What [`matmul`] gives, row by row of B.
#[must_use]
pub fn matmul_on_cpu([m, inner, n]: [usize; 3], a: &[f32], b: &[f32]) -> Vec<f32> {
    let mut c = vec![0.0f32; m * n];
    for row in 0..m {
        let sums = &mut c[row * n..][..n];
        for k in 0..inner {
            for (sum, b) in sums.iter_mut().zip(&b[k * n..][..n]) {
                *sum = a[row * inner + k].mul_add(*b, *sum);
            }
        }
    }
    c.into_iter().map(canonical).collect()
}

/// How the weights of [`quantised_dot`] are stored.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Quantised {
    /// 8 bits, 4 of them for the exponent, without infinities.
    F8E4m3,
    /// 8 bits, 5 of them for the exponent.
    F8E5m2,
    /// 4 bits: the values of QLoRA. The first of two is in the low half of a byte.
    Nf4,
}

impl Quantised {
    /// All of them.
    pub const ALL: [Quantised; 3] = [Quantised::F8E4m3, Quantised::F8E5m2, Quantised::Nf4];

    /// The element type of the buffer.
    #[must_use]
    pub const fn data_type(self) -> DataType {
        match self {
            Quantised::F8E4m3 => DataType::F8E4M3,
            Quantised::F8E5m2 => DataType::F8E5M2,
            Quantised::Nf4 => DataType::NF4,
        }
    }

    /// Bytes that so many weights take.
    #[must_use]
    pub const fn bytes(self, weights: usize) -> usize {
        match self {
            Quantised::F8E4m3 | Quantised::F8E5m2 => weights,
            Quantised::Nf4 => weights.div_ceil(2),
        }
    }

    /// Weight `n` of a buffer.
    fn weight(self, bytes: &[u8], n: usize) -> f32 {
        match self {
            Quantised::F8E4m3 => small_float(bytes[n], 3, 7, false),
            Quantised::F8E5m2 => small_float(bytes[n], 2, 15, true),
            Quantised::Nf4 => NF4[usize::from(bytes[n / 2] >> (n % 2 * 4) & 15)],
        }
    }
}

/// As the paper about QLoRA prints them.
#[expect(clippy::excessive_precision, reason = "the digits are those of the paper")]
const NF4: [f32; 16] = [
    -1.0,
    -0.6961928009986877,
    -0.5250730514526367,
    -0.39491748809814453,
    -0.28444138169288635,
    -0.18477343022823334,
    -0.09105003625154495,
    0.0,
    0.07958029955625534,
    0.16093020141124725,
    0.24611230194568634,
    0.33791524171829224,
    0.44070982933044434,
    0.5626170039176941,
    0.7229568362236023,
    1.0,
];

/// The number of a sign, an exponent and `mantissa` bits.
fn small_float(bits: u8, mantissa: u32, bias: i32, has_infinity: bool) -> f32 {
    let fraction = u32::from(bits) & ((1 << mantissa) - 1);
    let exponent = i32::from(bits & 0x7F) >> mantissa;
    let largest = 0x7F >> mantissa;
    let magnitude = match (exponent, fraction) {
        (e, 0) if e == largest && has_infinity => f32::INFINITY,
        (e, _) if e == largest && has_infinity => f32::NAN,
        (e, f) if e == largest && f == (1 << mantissa) - 1 => f32::NAN,
        (0, f) => f as f32 * 2f32.powi(1 - bias - mantissa as i32),
        (e, f) => (f + (1 << mantissa)) as f32 * 2f32.powi(e - bias - mantissa as i32),
    };
    if bits & 0x80 == 0 { magnitude } else { -magnitude }
}

/// A matrix of small floats times a vector, a block of `block` weights of a row with one scale.
///
/// Within a block s ← s + w · x from +0, in order; a block comes to s · scale, and the blocks of a row are added up in the order of
/// [`row_sums`](crate::reduce::row_sums). Each operation is rounded to f32.
///
/// | buffer | | |
/// |---|---|---|
/// | `weights` @0 | read f8e4m3, f8e5m2 or nf4 | row by row, as long as `x` each |
/// | `scales` @1 | read f32 | row by row, one for each block; the last block of a row may be shorter |
/// | `x` @2 | read f32 | |
/// | `y` @3 | output f32 | one for each row |
///
/// Launch: a workgroup for each row.
#[must_use]
pub fn quantised_dot(workgroup: [u32; 3], weights: Quantised, block: u32) -> Program {
    DOT.program(workgroup, &[("T", SpecValue::DType(weights.data_type())), ("block", SpecValue::U32(block))])
}

/// What [`quantised_dot`] gives.
#[must_use]
pub fn quantised_dot_on_cpu(stored: Quantised, block: usize, weights: &[u8], scales: &[f32], x: &[f32], rows: usize) -> Vec<f32> {
    let blocks = x.len().div_ceil(block);
    let row = |row: usize| {
        sum_of(blocks, |b| {
            let columns = b * block..x.len().min((b + 1) * block);
            let dot = columns.fold(0.0, |sum, c| sum + stored.weight(weights, row * x.len() + c) * x[c]);
            dot * scales[row * blocks + b]
        })
    };
    (0..rows).map(|n| canonical(row(n))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked_out_by_hand() {
        assert_eq!(matmul_on_cpu([2, 2, 1], &[1.0, 2.0, 3.0, 4.0], &[5.0, 6.0]), [17.0, 39.0]);
        // Rounded once: with two roundings this is 0.
        let tiny = 1.0 + f32::EPSILON;
        assert_eq!(matmul_on_cpu([1, 2, 1], &[-1.0, tiny], &[1.0 + 2.0 * f32::EPSILON, tiny]), [f32::EPSILON * f32::EPSILON]);
        assert_eq!(matmul_tile([64, 1, 1]), [8, 8]);
        assert_eq!(matmul_tile([37, 1, 1]), [1, 37]);
    }

    /// From the tables of the OCP specification of 8-bit floats.
    #[test]
    fn small_floats() {
        let e4m3 = |bits| Quantised::F8E4m3.weight(&[bits], 0);
        assert_eq!(
            [0x01, 0x07, 0x08, 0x38, 0x7E, 0xFE].map(e4m3),
            [2f32.powi(-9), 0.875 * 2f32.powi(-6), 2f32.powi(-6), 1.0, 448.0, -448.0]
        );
        assert!(e4m3(0x7F).is_nan() && e4m3(0xFF).is_nan() && e4m3(0x80).to_bits() == 0x8000_0000);
        let e5m2 = |bits| Quantised::F8E5m2.weight(&[bits], 0);
        assert_eq!(
            [0x01, 0x03, 0x04, 0x3C, 0x7B, 0xFC].map(e5m2),
            [2f32.powi(-16), 0.75 * 2f32.powi(-14), 2f32.powi(-14), 1.0, 57344.0, f32::NEG_INFINITY]
        );
        assert!(e5m2(0x7D).is_nan() && e5m2(0xFF).is_nan());
        assert_eq!([Quantised::Nf4.weight(&[0x0F], 0), Quantised::Nf4.weight(&[0x0F], 1)], [1.0, -1.0]);
    }
}
