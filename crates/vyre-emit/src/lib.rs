//! Kernels as WGSL and SPIR-V.

pub mod floats;
