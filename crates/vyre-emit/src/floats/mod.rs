//! f32 that is exact on devices whose f32 is not: a library of WGSL functions on bit patterns.
//!
//! # For whoever emits WGSL
//!
//! * Every f32 is a `u32` that holds its pattern, and always *canonical* for the program's [`FloatMode`], as in `vyre-scalar`: the
//!   only NaN is 7FC00000, and under `Canonical` everything of magnitude at most 2⁻¹²⁶ is +0. The functions rely on it and keep it.
//!   Patterns that come from elsewhere (loads of f32, bitcasts from integers) go through [`FloatOp::Canonicalize`]; literals are
//!   canonical when they are written. Stores of f32 and bitcasts to integers need nothing.
//! * [`Library::new`] takes the float mode and the [`FloatProfile`] of the device. [`Library::function`] gives the name to call for
//!   an op, [`Library::source`] afterwards the text of all functions that were asked for, with what they need, each once, in an order
//!   that depends on nothing but the set.
//! * Operands and results: floats and 32-bit integers are `u32` (i32 as its pattern), 64-bit integers `vec2<u32>` with the low word
//!   first, booleans `bool`; elements of small formats are patterns in the low bits of a `u32`, with zeros above.
//! * The module around it defines `fn vy_zero() -> u32`, a zero that the compiler cannot know, loaded from a uniform or storage
//!   buffer, and `fn vy_table(i: u32) -> u32`, word `i` of [`table`], which has to lie in a buffer of its own: indexing a constant
//!   array is three times as slow on some devices. [`Library::uses_zero`] and [`Library::uses_table`] tell whether they are called.
//! * All names of the library start with `vy_`, `VY_` or `Vy`.
//!
//! # The ladder
//!
//! An op that devices have an instruction for has lowerings of increasing cost, see [`Rung`]. The bytes are the same on each; which
//! are right on a device is found out there, by [`probe`], and its [`FloatProfile`] says so. Everything else has one lowering, in integers.
//!
//! A driver implements [`probe::Runner`], calls [`probe::profile`] when it opens a device for the first time, and keeps the answer by
//! device, driver and version. [`probe::library`] tries the integer forms too.

pub mod cost;
mod fixed;
pub mod kernel;
mod library;
pub mod probe;
mod profile;
pub mod samples;
mod table;

pub use library::{FloatOp, Library, SmallFloat};
pub use profile::{FloatProfile, LadderOp, Rung, Rungs};
pub use table::table;

#[cfg(doc)]
use vyre_spec::FloatMode;
