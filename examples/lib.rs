//! Programs that use vyre: each `.rs` file beside this one is one (`cargo run --release -p vyre-examples --bin first_kernel`).
//!
//! [`kernels`] has ten kernels as they are built in Rust; `examples/kernels/` has the same as text.

pub mod kernels;
