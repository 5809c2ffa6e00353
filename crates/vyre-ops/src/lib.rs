//! Kernels that programs are made of: hashes, scans, sorts, matrices, text, transforms.
//!
//! Each module has builders of programs, and beside each the same computation in plain Rust, `…_on_cpu`, written apart from it and by
//! another algorithm where there is one. It is for those who want to know whether a device is right; the conformance suite is one.
//!
//! A builder takes the size of a workgroup, and what is known about a launch only when it is built for. Most kernels are
//! one-dimensional; they run in workgroups of `x * y * z` invocations in a row. Everything that is asked for too much (a workgroup of
//! nothing, a tile that does not fit) is told by [`Program::validated`](vyre_foundation::ir::Program::validated).
//!
//! Kernels with floats say in which order they compute: that order is part of what they mean, and the bytes are the same for every
//! workgroup size, grid and device. What is computed on the host assumes the host's default float state: rounding to nearest, subnormals
//! kept.

pub mod compact;
pub mod fft;
mod floats;
pub mod graph;
pub mod hash;
pub mod histogram;
pub mod matrix;
pub mod norm;
pub mod random;
pub mod reduce;
pub mod scan;
pub mod sort;
pub mod stencil;
mod template;
pub mod text;
