//! Kernels as WGSL and SPIR-V.
//!
//! [`Shader::of`] lowers a kernel, by way of its SSA form and what is proven about it, to a module of WGSL that gives the reference's
//! bytes whatever the driver below does where WGSL leaves it a choice: bounds, divisors, shifts and conversions are guarded here, memory
//! of a workgroup is cleared here, and floats are computed on bits. Everything that is made is validated by naga.

mod error;
pub mod floats;
mod module;
mod spirv;
mod wgsl;

pub use error::EmitError;
pub use module::{Layout, Rounds, Shader, Target};
