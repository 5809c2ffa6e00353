//! Kernels that programs are made of: hashes, scans, sorts, matrices, text, transforms.
//!
//! Each module has builders of programs, and the same computation in plain Rust, written apart from them.
