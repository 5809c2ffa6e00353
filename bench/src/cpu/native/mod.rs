//! The kernels by hand, with the vector instructions of AVX2: the fastest form found for the same algorithm and the same bytes.
//!
//! Each does what the kernel does per invocation, in any order of invocations; sums of integers may be taken in another order, sums of
//! floats may not, and products are never fused into them. Lengths are those of the cases, multiples of what one step takes, so that the
//! loops check nothing; what another length would leave undone shows when the columns are compared. Arithmetic is safe to call where
//! the target has the feature; loads and stores go through arrays whose length is known.

mod elementary;
mod integers;
mod matrix;
mod rows;
mod sha256;
mod vector;

use super::cases::Code;

/// The hand-written form of a kernel, where this processor can run it.
#[must_use]
pub fn of(name: &str) -> Option<Code> {
    let found =
        [std::is_x86_feature_detected!("avx2"), std::is_x86_feature_detected!("fma"), std::is_x86_feature_detected!("f16c")];
    if found != [true; 3] {
        return None;
    }
    macro_rules! by_hand {
        ($function:path) => {
            // SAFETY: the features that the function needs were found above.
            |inputs, out| unsafe { $function(inputs, out) }
        };
    }
    Some(match name {
        "xor" => by_hand!(integers::xor),
        "mix" => by_hand!(integers::mix),
        "mandelbrot" => by_hand!(matrix::mandelbrot),
        "matmul" => by_hand!(matrix::matmul),
        "reduction" => by_hand!(integers::reduction),
        "dfa" => by_hand!(integers::dfa),
        "prefix_sum" => by_hand!(rows::prefix_sum),
        "histogram" => rows::histogram,
        "sha256" => by_hand!(sha256::sha256),
        "blur" => by_hand!(rows::blur),
        "exp" => by_hand!(elementary::exp),
        "sin" => by_hand!(elementary::sin),
        "f8_dot" => by_hand!(rows::f8_dot),
        _ => return None,
    })
}
