//! The specs that the suite consists of.

mod compositions;

pub use compositions::compositions;
