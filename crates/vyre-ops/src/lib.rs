//! Kernels that programs are made of: hashes, scans, sorts, matrices, text, transforms.
//!
//! Each module has builders of programs, and beside each the same computation in plain Rust, `…_on_cpu`, written apart from it and by
//! another algorithm where there is one. It is for those who want to know whether a device is right; the conformance suite is one.
//!
//! A builder takes the size of a workgroup, and the numbers that the kernel is built for, such as the length of a message. Most kernels
//! are one-dimensional; they run in workgroups of `x * y * z` invocations in a row. What cannot be run, such as a workgroup of nothing or
//! a tile that does not fit, is told by [`Program::validated`](vyre_foundation::ir::Program::validated), as for any program.
//!
//! Kernels with floats say in which order they compute: that order is part of what they mean, and the bytes are the same for every
//! workgroup size, grid and device. What is computed on the host assumes the host's default float state: rounding to nearest, subnormals
//! kept.
//!
//! ```
//! use vyre_ops::hash::{crc32, crc32_on_cpu};
//!
//! let program = crc32([64, 1, 1], 9);
//! let mut options = vyre::reference::Options::default();
//! options.launch.grid = Some([1, 1, 1]);
//! options.launch.output_counts.insert("sums".into(), 1);
//! let sums = vyre::reference::run(&program, &[b"123456789"], &options).unwrap();
//! assert_eq!(sums[0], crc32_on_cpu(b"123456789").to_le_bytes());
//! ```

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
