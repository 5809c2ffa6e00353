//! The CPU backend, `cpu`: kernels as machine code, spread over threads. Always there, nothing to install.
//!
//! A kernel goes through [`compile`]: from the SSA form of the foundation to vectors of invocations, to machine code for CPUs with AVX2 and
//! FMA. Other CPUs, and kernels that the compiler refuses, run on the bulk evaluator over the same threads; `Ran::lowering` says which.

mod compile;
mod machine;
