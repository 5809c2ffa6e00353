//! Proof that a backend gives the reference's bytes.
//!
//! - [`OpSpec`]: an op as the suite sees it: a program, the same in plain Rust, and what a case is.
//! - [`space`]: where cases come from.
//! - [`evidence`]: what a run proves; [`cert`]: the same, signed; [`expectations`]: failures that are known; [`report`] and [`diff`]: for people and other tools.
//! - [`StreamingRunner`]: runs ops on a backend over cases of the user's own.

pub mod cert;
mod date;
pub mod diff;
mod digest;
pub mod evidence;
mod examine;
pub mod expectations;
mod in_process;
pub mod ledger;
pub mod report;
pub mod space;
pub mod spec;
mod stream;
mod unit;

pub use date::Date;
pub use digest::Digest;
pub use examine::FindingKind;
pub use report::{ParityFailure, Remark, RunReport, Summary};
pub use space::{Draw, Evidence, Space};
pub use spec::{Columns, Comparator, Extent, OpSignature, OpSpec, OpSpecBuilder, Shape, SpecError};
pub use stream::{FnProgress, InputGenerator, ProgressSink, RunError, StreamingProgress, StreamingRunner, UNIT};
