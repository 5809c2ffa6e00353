//! The reference: what a program means is what [`run`] gives.
//!
//! The plain interpreter is written to be obviously right. It walks the resolved kernel one invocation at a time, keeps every
//! invocation's position on an explicit stack so that it can stop at barriers, and does nothing clever. The checked mode
//! ([`checked`]) watches it through an observer and finds what makes a dispatch depend on the schedule.

pub mod bulk;
pub mod checked;
mod dispatch;
mod error;
pub mod faults;
mod fuel;
mod group;
mod interleave;
mod invocation;
mod observe;
mod plain;
mod room;
mod schedule;
mod subgroup;
pub mod trace;

pub use error::RunError;
pub use fuel::Limits;
pub use plain::{Options, run};
pub use schedule::Schedule;
