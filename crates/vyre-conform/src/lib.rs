//! Proof that a backend gives the reference's bytes.
//!
//! - [`OpSpec`]: an op as the suite sees it: a program, the same in plain Rust, and what a case is.
//! - [`cpu`]: what ops mean, in plain Rust.
//! - [`space`]: where cases come from; [`cases`]: those that are whole dispatches with programs of their own.
//! - [`suite`]: the specs of the language; [`Plan`]: a part of it; [`mod@conform`]: a run of that on a device.
//! - [`ledger`]: what a run has done. [`evidence`]: what it proves; [`cert`]: the same, signed; [`expectations`]: failures that are
//!   known; [`report`] and [`diff`]: for people and other tools.
//! - [`mutants`]: devices with one fault each; [`teeth`]: which of them the suite notices.
//! - [`checks`]: check files, and what they say on a backend. [`backend_tests!`]: all of that as the tests of a backend author's crate;
//!   see [`kit`].
//! - [`litmus`]: what atomics and barriers may show, and what they do show. [`agreement`]: whether all backends give the same; [`law`]:
//!   what holds for an op whatever its operands are; [`swap`]: sequences of dispatches that go from backend to backend.
//! - [`StreamingRunner`]: runs ops on a backend over cases of the user's own.

pub mod agreement;
pub mod cases;
pub mod cert;
pub mod checks;
pub mod conform;
pub mod cpu;
mod date;
pub mod diff;
mod digest;
mod error;
pub mod evidence;
mod examine;
pub mod expectations;
mod in_process;
pub mod kit;
pub mod law;
pub mod ledger;
pub mod litmus;
pub mod mutants;
mod order;
mod plan;
mod query;
mod regression;
pub mod report;
pub mod space;
pub mod spec;
mod stream;
pub mod suite;
pub mod swap;
pub mod teeth;
mod unit;

pub use cases::{Cases, CheckCases, KernelCases, LargeCases, LitmusCases, ProgramCases};
pub use date::Date;
pub use digest::Digest;
pub use error::RunError;
pub use examine::FindingKind;
pub use plan::{Plan, Section, Tier, Unit};
pub use query::Selection;
pub use report::{ParityFailure, Remark, RunReport, Summary};
pub use space::{Draw, Evidence, Space};
pub use spec::{Columns, Comparator, Extent, OpSignature, OpSpec, OpSpecBuilder, Shape, SpecError, Trap};
pub use stream::{FnProgress, InputGenerator, ProgressSink, StreamingProgress, StreamingRunner, UNIT};
pub use swap::{
    ConformDispatchConfig, ExecutionModel, ProgramBackend, ShaderBackend, SwapBackend, WgslBackend, with_backend_swap,
};
