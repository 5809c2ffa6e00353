//! The kernels of `vyre-ops` as specs: algorithms in which many ops work together, and which people run as they are.
//!
//! What a case is follows from who works on it: an invocation alone on a record (`records.rs`), a workgroup on a row (`rows.rs`), or a
//! dispatch on whole buffers (`whole.rs`).

mod cases;
mod records;
mod rows;
mod whole;

use crate::spec::{OpSpec, OpSpecBuilder};

/// One spec for each composition and type.
#[must_use]
pub fn compositions() -> Vec<OpSpec> {
    let all = records::specs().into_iter().chain(rows::specs()).chain(whole::specs());
    let build = |spec: OpSpecBuilder| spec.build().unwrap_or_else(|error| panic!("the suite's own specs are complete: {error}"));
    all.map(build).collect()
}
