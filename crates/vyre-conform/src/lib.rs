//! Proof that a backend gives the reference's bytes.
//!
//! - [`OpSpec`]: an op as the suite sees it: a program, the same in plain Rust, and what a case is.
//! - [`cpu`]: what ops mean, in plain Rust.
//! - [`space`]: where cases come from.
//! - [`suite`]: the specs of the language.
//! - [`StreamingRunner`]: runs ops on a backend over cases of the user's own.

pub mod cases;
pub mod conform;
pub mod cpu;
mod digest;
mod error;
mod examine;
mod in_process;
pub mod ledger;
pub mod mutants;
mod plan;
mod query;
mod regression;
mod report;
pub mod space;
pub mod spec;
mod stream;
pub mod suite;
pub mod teeth;
mod unit;

pub use cases::{Cases, KernelCases, ProgramCases};
pub use digest::Digest;
pub use error::RunError;
pub use examine::FindingKind;
pub use plan::{Plan, Section, Tier, Unit};
pub use query::Selection;
pub use report::{ParityFailure, Remark, RunReport, Summary};
pub use space::{Draw, Evidence, Space};
pub use spec::{Columns, Comparator, Extent, OpSignature, OpSpec, OpSpecBuilder, Shape, SpecError};
pub use stream::{FnProgress, InputGenerator, ProgressSink, StreamingProgress, StreamingRunner, UNIT};
