//! The fast Fourier transform.

use crate::floats::{canonical, cos, sin};
use crate::template::Template;
use vyre_foundation::ir::{Program, SpecValue};

static KERNEL: Template = Template::new(include_str!("../kernels/fft.vyre"));

/// The sign of the exponent.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Direction {
    /// From signals to spectra: −1.
    Forward,
    /// From spectra to signals, not divided by the number of points: 1.
    Backward,
}

impl Direction {
    const fn sign(self) -> f32 {
        match self {
            Direction::Forward => -1.0,
            Direction::Backward => 1.0,
        }
    }
}

/// The discrete Fourier transform of rows of `points` complex numbers each, a power of two: sum over n of x\[n\] exp(± 2πi kn / points).
///
/// Decimation in time: the transforms E and O of the elements with even and with odd numbers give y\[k\] = E\[k\] + w · O\[k\] and y\[k + points/2\] =
/// E\[k\] − w · O\[k\]. With w = c + is, w · (a + ib) is (c · a − s · b) + i(c · b + s · a). c and s are the cosine and sine, correctly
/// rounded, of an angle in the first eighth of a turn, which is RN(2π) times that part of a turn; the other eighths follow by symmetry.
/// Each operation is rounded to f32.
///
/// | buffer | | |
/// |---|---|---|
/// | `x` @0 | read vec2\<f32\> | real and imaginary parts, one row after the other |
/// | `y` @1 | output vec2\<f32\> | as long as `x` |
///
/// Launch: a workgroup for each row. 5 · points · log2(points) operations and as many barriers as stages; a row is in workgroup memory,
/// 8 bytes a point.
#[must_use]
pub fn fft(workgroup: [u32; 3], points: u32, direction: Direction) -> Program {
    KERNEL.program(workgroup, &[("points", SpecValue::U32(points)), ("sign", SpecValue::F32(direction.sign()))])
}

/// The transform of one row, by recursion. The length must be a power of two.
#[must_use]
pub fn fft_on_cpu(row: &[[f32; 2]], direction: Direction) -> Vec<[f32; 2]> {
    transform(row, direction).into_iter().map(|value| value.map(canonical)).collect()
}

fn transform(x: &[[f32; 2]], direction: Direction) -> Vec<[f32; 2]> {
    if x.len() < 2 {
        return x.to_vec();
    }
    let half = |first: usize| transform(&x.iter().copied().skip(first).step_by(2).collect::<Vec<_>>(), direction);
    let (even, odd) = (half(0), half(1));
    let (mut low, mut high) = (Vec::new(), Vec::new());
    for (k, (e, o)) in even.iter().zip(&odd).enumerate() {
        let [c, s] = turned(k, x.len(), direction);
        let product = [c * o[0] - s * o[1], c * o[1] + s * o[0]];
        low.push([e[0] + product[0], e[1] + product[1]]);
        high.push([e[0] - product[0], e[1] - product[1]]);
    }
    low.append(&mut high);
    low
}

/// The point on the unit circle at the `k`-th of `n` parts of a turn, k < n / 2.
fn turned(k: usize, n: usize, direction: Direction) -> [f32; 2] {
    // In eighths of a part, so that everything but the angle is a whole number.
    let angle = |parts: usize| (parts as f32 / (8 * n) as f32) * std::f32::consts::TAU;
    let k = 8 * k;
    let from_axis = if k > 2 * n { 4 * n - k } else { k };
    let (c, s) = if from_axis > n {
        (sin(angle(2 * n - from_axis)), cos(angle(2 * n - from_axis)))
    } else {
        (cos(angle(from_axis)), sin(angle(from_axis)))
    };
    [if k > 2 * n { -c } else { c }, s * direction.sign()]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An impulse, a constant, and the four points of a turn.
    #[test]
    fn worked_out_by_hand() {
        let row = |values: &[f32]| values.iter().map(|x| [*x, 0.0]).collect::<Vec<_>>();
        assert!(fft_on_cpu(&row(&[0.0; 8]), Direction::Forward).iter().all(|y| *y == [0.0, 0.0]));
        assert!(fft_on_cpu(&row(&[1.0, 0.0, 0.0, 0.0]), Direction::Forward).iter().all(|y| *y == [1.0, 0.0]));
        assert_eq!(fft_on_cpu(&row(&[1.0, 1.0, 1.0, 1.0]), Direction::Forward), row(&[4.0, 0.0, 0.0, 0.0]));
        let shifted = fft_on_cpu(&row(&[0.0, 1.0, 0.0, 0.0]), Direction::Forward);
        assert_eq!(shifted, [[1.0, 0.0], [0.0, -1.0], [-1.0, 0.0], [0.0, 1.0]]);
        let back = fft_on_cpu(&row(&[0.0, 1.0, 0.0, 0.0]), Direction::Backward);
        assert_eq!(back, [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]]);
    }

    /// Against the definition, in f64.
    #[test]
    fn near_the_definition() {
        let n = 512;
        let row: Vec<[f32; 2]> = (0..n).map(|k| [(k * k % 101) as f32 / 50.0 - 1.0, (k * 7 % 13) as f32 / 6.0 - 1.0]).collect();
        let found = fft_on_cpu(&row, Direction::Forward);
        for (k, found) in found.iter().enumerate() {
            let mut sum = [0.0, 0.0];
            for (m, x) in row.iter().enumerate() {
                let (s, c) = (-std::f64::consts::TAU * ((k * m) % n) as f64 / n as f64).sin_cos();
                let [re, im] = x.map(f64::from);
                sum = [sum[0] + re * c - im * s, sum[1] + re * s + im * c];
            }
            let far = (f64::from(found[0]) - sum[0]).hypot(f64::from(found[1]) - sum[1]);
            assert!(far < 1e-4, "point {k}: {found:?} and {sum:?}");
        }
    }
}
