//! Proof that a backend gives the reference's bytes.
//!
//! - [`OpSpec`]: an op as the suite sees it: a program, the same in plain Rust, and what a case is.
//! - [`space`]: where cases come from.
//! - [`checks`]: check files, and what they say on a backend.
//! - [`backend_tests!`]: all of that as the tests of a backend author's crate; see [`kit`].
//! - [`litmus`]: what atomics and barriers may show, and what they do show.
//! - [`agreement`]: whether all backends give the same; [`law`]: what holds for an op whatever its operands are.
//! - [`swap`]: sequences of dispatches that go from backend to backend.
//! - [`StreamingRunner`]: runs ops on a backend over cases of the user's own.

pub mod agreement;
pub mod checks;
mod digest;
mod examine;
mod in_process;
pub mod kit;
pub mod law;
pub mod ledger;
pub mod litmus;
mod order;
mod report;
pub mod space;
pub mod spec;
mod stream;
pub mod swap;
mod unit;

pub use digest::Digest;
pub use examine::FindingKind;
pub use report::{ParityFailure, Remark, RunReport, Summary};
pub use space::{Draw, Evidence, Space};
pub use spec::{Columns, Comparator, Extent, OpSignature, OpSpec, OpSpecBuilder, Shape, SpecError};
pub use stream::{FnProgress, InputGenerator, ProgressSink, RunError, StreamingProgress, StreamingRunner, UNIT};
pub use swap::{ConformDispatchConfig, ExecutionModel, SwapBackend, WgslBackend, with_backend_swap};
