//! Running work that cannot be trusted.
//!
//! - [`Subject`]: whoever runs programs for a judge; a [`Case`] is what is run.
//! - [`Pool`]: a subject whose cases run in worker processes, so that a crash or a hang costs one case and no more.
//! - [`serve_judge`]: the other side, all that a worker process does; [`message`] is what the two say to each other.
//! - [`backend::BackendSubject`]: a backend as a subject, in every form of dispatch.
//! - [`judge`]: what it means that a subject and the reference disagree.
//! - [`Bundle`]: a failure as a file that shows it again.

pub mod backend;
pub mod bundle;
mod caught;
mod memory;
pub mod message;
mod pool;
mod process;
mod serve;
mod subject;
mod system;
mod verdict;

pub use bundle::{Bundle, BundleError, Origin};
pub use caught::{Contained, caught};
pub use memory::{Region, Side};
pub use pool::{Pool, Settings, Stats};
pub use process::Stop;
pub use serve::serve_judge;
pub use subject::{Answer, Failure, Job, Outputs, Patience, Sequence, SequenceStep, Subject};
pub use verdict::{Kind, Verdict, judge};
pub use vyre_driver::device::Ran;
pub use vyre_foundation::case::Case;
