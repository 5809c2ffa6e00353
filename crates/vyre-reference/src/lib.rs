//! The reference: what a program means is what [`run`] gives.
//!
//! The plain interpreter is written to be obviously right. It walks the resolved kernel one invocation at a time, keeps every
//! invocation's position on an explicit stack so that it can stop at barriers, and does nothing clever.

pub mod bulk;
mod error;
mod invocation;
mod plain;
mod subgroup;

pub use error::RunError;
pub use plain::{Options, Order, run};
