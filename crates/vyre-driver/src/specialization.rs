//! Values for specialization constants, and the keys of what was compiled with them.
//!
//! A value changes the program before anything else looks at it (`vyre_foundation::specialize`); what is cached is the result. The
//! 64-bit hashes here are for backends' own tables and for people; the caches of this crate compare whole maps.

use crate::backend::BackendError;
use std::collections::{BTreeMap, HashMap};
use vyre_foundation::Report;
use vyre_foundation::ir::Program;
use vyre_foundation::specialize;

pub use vyre_foundation::specialize::SpecValue;

/// Values by name, in the order of the names.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SpecMap {
    entries: BTreeMap<String, SpecValue>,
}

impl SpecMap {
    /// No values.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds or replaces a value.
    pub fn insert(&mut self, name: impl Into<String>, value: SpecValue) {
        self.entries.insert(name.into(), value);
    }

    /// The value of a name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&SpecValue> {
        self.entries.get(name)
    }

    /// How many values there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Names and values, in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &SpecValue)> {
        self.entries.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// The values as numbers, for devices that take override constants so.
    #[must_use]
    pub fn to_numeric_constants(&self) -> HashMap<String, f64> {
        self.iter().map(|(name, value)| (name.to_string(), value.as_pipeline_f64())).collect()
    }

    /// FNV-1a over names and the hashes of values. Names of different lengths can give the same bytes in another division, so equal
    /// hashes do not prove equal maps.
    #[must_use]
    pub fn cache_hash(&self) -> u64 {
        let mut hash = 0xCBF2_9CE4_8422_2325u64;
        let mut add = |bytes: &[u8]| {
            for byte in bytes {
                hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3);
            }
        };
        for (name, value) in self.iter() {
            add(name.as_bytes());
            add(&value.cache_hash().to_le_bytes());
        }
        hash
    }

    /// The program with these values in the place of its constants; the result is what has to be valid.
    pub fn apply(&self, program: &Program) -> Result<Program, Report> {
        specialize(program, self.iter())
    }

    /// Refuses values that a pipeline was not compiled with.
    pub(crate) fn check_within(&self, compiled: &SpecMap) -> Result<(), BackendError> {
        let Some((name, value)) = self.iter().find(|(name, value)| compiled.get(name) != Some(value)) else { return Ok(()) };
        let had = compiled.get(name).map_or("none".to_string(), ToString::to_string);
        Err(BackendError::InvalidProgram {
            fix: format!(
                "the pipeline was compiled with another specialization: this call says {value} for `{name}`, and it was given {had}. \
                 Fix: compile it again with the values of this call"
            ),
        })
    }

    /// Names and values, so that different maps have different bytes.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.len() as u64).to_le_bytes());
        for (name, value) in self.iter() {
            let value = format!("{}:{value}", value.kind());
            for text in [name, &value] {
                out.extend_from_slice(&(text.len() as u64).to_le_bytes());
                out.extend_from_slice(text.as_bytes());
            }
        }
    }
}

impl FromIterator<(String, SpecValue)> for SpecMap {
    fn from_iter<I: IntoIterator<Item = (String, SpecValue)>>(entries: I) -> Self {
        let mut map = SpecMap::new();
        entries.into_iter().for_each(|(name, value)| map.insert(name, value));
        map
    }
}

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
