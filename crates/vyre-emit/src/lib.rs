//! Kernels as WGSL and SPIR-V.
