//! What each pure op does to bits, and what one element of memory means: the arithmetic half of the semantics table.
//!
//! Everything here is safe Rust and uses only IEEE additions, multiplications, divisions and square roots, conversions and
//! integers, so the answers are the same on every machine. Of the platform's math library at most the square root is called,
//! where the CPU has no instruction for it, and its result is fixed by IEEE 754.
//!
//! **Representation.** A scalar value is its bits in the low part of a `u64`, with zeros above: `bool` is 0 or 1, 32-bit types
//! are zero-extended, also the signed one. Float values in flight are always *canonical* for the program's
//! [`FloatMode`](vyre_spec::FloatMode): there is one NaN, and under `Canonical` everything of magnitude at most 2⁻¹²⁶ (f64:
//! 2⁻¹⁰²²) is +0. Loads, literals and conversions establish this through [`canonicalize`], and every function here keeps it.
//!
//! **Two layers.** The modules [`int`], [`float`], [`elementary`] and [`small`] work on native types, are generic where the types
//! differ only in width, and inline, so that a loop over slices can be built from them. [`unary`], [`binary`], [`ternary`],
//! [`cast`] and [`bitcast`] choose among them by op and type. The validator guarantees that the op is defined on the type
//! (`op.info().over`); a violation is our bug and panics.
//!
//! # Against other implementations
//!
//! That the answers are the right ones is tested against implementations that others wrote. Each of these tests has a short
//! form, which takes a second or two and always runs, and a long one.
//!
//! | test | what | against | long form |
//! |---|---|---|---|
//! | `proven` | the elementary functions of one operand | CORE-MATH | all 2³² inputs, and their digest |
//! | `pow` | `pow`, whose error bounds are derived in `src/elementary/pow.rs` | CORE-MATH | 1.2 × 10⁹ pairs, and a search for hard ones |
//! | `arithmetic` | `+ - * / % sqrt fma`, rounding to integers, casts | `rustc_apfloat` | 10⁸ cases each |
//! | `formats` | loads and stores of the types below 32 bits | `rustc_apfloat` | all patterns, all 2³² f32 |
//! | `vectors` | the elementary functions, on the hardest inputs there are | MPFR | the same: 14,000 vectors |
//!
//! The long forms, in both float modes, take about an hour of one processor and print what was compared:
//!
//! ```sh
//! VYRE_LONG=1 cargo test --release -p vyre-scalar -- --nocapture --test-threads 1
//! VYRE_LONG=1 cargo test --release -p vyre-scalar --test proven -- --nocapture tan_is_correctly_rounded
//! ```
//!
//! Elementary functions take other instructions on other machines. `VYRE_LONG=digests` with `--test proven` computes all results
//! there and compares their digests with the committed ones, which is a proof that does not need CORE-MATH.

mod apply;
mod atomic;
mod convert;
pub mod elementary;
pub mod float;
pub mod int;
pub mod memory;
mod reduce;
pub mod small;
mod value;

pub use apply::{binary, canonicalize, ternary, unary};
pub use atomic::atomic;
pub use convert::{bitcast, cast};
pub use reduce::{identity, reduce};
pub use value::Value;

#[cfg(test)]
mod laws;
#[cfg(test)]
mod random;
#[cfg(test)]
mod samples;
