//! Check files: programs that say in comments what must hold for them.
//!
//! `checks/readme.vyre` explains the format to people; [`directive`] reads it. What a file says about runs must hold on every backend:
//! [`on_backend`] tries that. The files of vyre itself are part of this crate: [`EMBEDDED`].

pub mod directive;
mod run;

pub use run::{FileOutcome, FileVerdict, Problem, Stated, on_backend, stated};

/// Every check file of vyre: its path below `checks/`, and its bytes.
pub const EMBEDDED: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/checks.rs"));
