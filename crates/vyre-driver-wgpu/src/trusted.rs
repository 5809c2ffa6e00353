//! Shaders without the checks that wgpu would put into them: they have their own. The only unsafe code of this crate.

use std::borrow::Cow;
use vyre_emit::Shader;

/// A module of a shader that `vyre-emit` has made.
pub(crate) fn module(device: &wgpu::Device, shader: &Shader) -> wgpu::ShaderModule {
    let descriptor =
        wgpu::ShaderModuleDescriptor { label: None, source: wgpu::ShaderSource::Naga(Cow::Owned(shader.module.clone())) };
    // SAFETY: what the checks are for holds of every shader that `vyre_emit::Shader::of` gives, and nobody else makes a `Shader`. Accesses
    // to buffers are behind a comparison with the length that the launch has, or proven to be below it; the device binds at least so many
    // bytes (`steps.rs`). Loops count from one number to another and end. Divisors are not 0, and no quotient overflows, since
    // signed division divides magnitudes.
    unsafe { device.create_shader_module_trusted(descriptor, wgpu::ShaderRuntimeChecks::unchecked()) }
}
