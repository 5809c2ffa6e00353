//! Values for specialization constants, and the keys of what was compiled with them.
//!
//! A value changes the program before anything else looks at it (`vyre_foundation::specialize`); what is cached is the result. The
//! 64-bit hashes here are for backends' own tables and for people; the caches of this crate compare whole maps.

use vyre_foundation::ir::Program;

pub use vyre_foundation::config::SpecMap;
pub use vyre_foundation::specialize::SpecValue;

/// The identity of a backend's compiled module with its values.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SpecCacheKey {
    /// Hash of the module.
    pub shader_hash: u64,
    /// What its bindings look like.
    pub binding_sig: u64,
    /// The workgroup size it was compiled for.
    pub workgroup_size: [u32; 3],
    /// Hash of the values.
    pub spec_hash: u64,
}

impl SpecCacheKey {
    /// The key of a module with these values.
    #[must_use]
    pub fn new(shader_hash: u64, binding_sig: u64, workgroup_size: [u32; 3], specs: &SpecMap) -> Self {
        SpecCacheKey { shader_hash, binding_sig, workgroup_size, spec_hash: specs.cache_hash() }
    }
}

/// The program's identity in the upper half, the hash of its values in the lower.
#[must_use]
pub fn vsa_specialization_key(program: &Program, spec_hash: u64) -> u128 {
    let words = crate::launch::program_vsa_fingerprint_words(program);
    let identity = u64::from(words[0]) | u64::from(words[1]) << 32;
    u128::from(identity) << 64 | u128::from(spec_hash)
}

/// The name of an artifact that was compiled ahead of time: hex of a hash over version, values and backend, each with its length. The
/// words between them are part of the format: artifacts of other builds have the same names.
#[must_use]
pub fn versioned_specialization_artifact_key(cache_version: u32, spec_hash: &str, backend_fingerprint: &str) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"vyre-specialization-artifact-key-v1\0version\0");
    hasher.update(&cache_version.to_le_bytes());
    for (field, text) in [("\0spec\0", spec_hash), ("\0backend\0", backend_fingerprint)] {
        hasher.update(field.as_bytes());
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    }
    hasher.finalize().to_hex().to_string()
}
