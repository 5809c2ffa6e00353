//! The specs of the language: every op on every type, and what invocations do together.

pub mod elementwise;
mod shared;
mod thresholds;

pub use elementwise::elementwise;
pub use shared::shared;
