//! Proof that a backend gives the reference's bytes.
//!
//! - [`OpSpec`]: an op as the suite sees it: a program, the same in plain Rust, and what a case is.
//! - [`space`]: where cases come from.
//! - [`mutants`]: devices with one fault each, to see whether a suite notices.

pub mod mutants;
pub mod space;
pub mod spec;

pub use space::{Draw, Evidence, Space};
pub use spec::{Columns, Comparator, Extent, OpSignature, OpSpec, OpSpecBuilder, Shape, SpecError};
