//! The IR of vyre and everything that gives a program meaning before it runs.
//!
//! - [`ir`]: programs, statements, expressions and their builders.
//! - [`text`]: the text form: parser, printer, formatter, drawn errors.
//! - [`validate`]: the rules of the language, and the resolved kernel that a valid program gives.
//! - [`specialize`](specialize()): values for specialization constants.
//! - [`launch`]: buffer lengths and geometry of one dispatch.
//! - [`config`]: what a caller can say about a dispatch.
//! - [`case`]: a dispatch as a value: program, inputs, config.
//! - [`wire`]: programs as bytes.
//! - [`json`]: programs for tools.
//! - [`values`]: elements of buffers as people write them.
//! - [`kernel`]: a valid program with names resolved, which everything that runs programs reads.
//! - [`ssa`]: the form that compilers and passes read.
//! - [`analysis`]: what can be known without running a program: uniformity, ranges, bounds, determinism.
//! - [`passes`]: the same bytes with less work.

pub mod analysis;
pub mod case;
pub mod config;
pub mod diagnostic;
mod hash;
pub mod interface;
pub mod ir;
pub mod json;
pub mod kernel;
pub mod launch;
pub mod memory_model;
pub mod passes;
pub mod specialize;
pub mod ssa;
pub mod text;
pub mod validate;
pub mod values;
pub mod wire;

pub use diagnostic::{Diagnostic, Location, Report, Source};
pub use specialize::specialize;
