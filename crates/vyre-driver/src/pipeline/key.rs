//! The identity of a compiled pipeline: everything that can change its code, as one type.

use crate::backend::{DispatchConfig, VyreBackend};
use crate::specialization::SpecMap;
use std::hash::{Hash, Hasher};
use vyre_foundation::ir::{Fingerprint, Program};

/// Changes when the meaning of the fields below does.
const FORMAT: u32 = 2;

/// What makes two pipelines the same. Two that differ in anything that can change code have different keys.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PipelineKey {
    /// The program as it was given, constants not yet replaced.
    pub program: Fingerprint,
    /// The backend.
    pub backend: String,
    /// Its version.
    pub version: String,
    /// The device and driver.
    pub device: String,
    /// Values for constants.
    pub specialization: SpecMap,
    /// The workgroup size, if not the declared one.
    pub workgroup_override: Option<[u32; 3]>,
    /// The permission to be inexact.
    pub ulp_budget: Option<u8>,
    /// The tuning.
    pub profile: Option<String>,
}

impl PipelineKey {
    /// The key of a program on a backend.
    #[must_use]
    pub fn new(backend: &dyn VyreBackend, program: &Program, config: &DispatchConfig) -> Self {
        PipelineKey {
            program: program.fingerprint(),
            backend: backend.id().into(),
            version: backend.version().into(),
            device: backend.device_fingerprint(),
            specialization: config.specialization.clone(),
            workgroup_override: config.workgroup_override,
            ulp_budget: config.ulp_budget,
            profile: config.profile.clone(),
        }
    }

    /// All of it, so that different keys have different bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let PipelineKey { program, backend, version, device, specialization, workgroup_override, ulp_budget, profile } = self;
        let mut bytes = FORMAT.to_le_bytes().to_vec();
        bytes.extend_from_slice(program);
        for text in [Some(backend), Some(version), Some(device), profile.as_ref()] {
            // A length that no text has tells `None` from an empty text.
            bytes.extend_from_slice(&text.map_or(u64::MAX, |text| text.len() as u64).to_le_bytes());
            bytes.extend_from_slice(text.map_or(&[], |text| text.as_bytes()));
        }
        specialization.encode(&mut bytes);
        for part in [*workgroup_override, ulp_budget.map(|ulp| [u32::from(ulp), 0, 0])] {
            bytes.push(u8::from(part.is_some()));
            part.iter().flatten().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
        }
        bytes
    }

    /// The hash of [`PipelineKey::to_bytes`] as people write it.
    #[must_use]
    pub fn to_hex(&self) -> String {
        blake3::hash(&self.to_bytes()).to_hex().to_string()
    }
}

impl Hash for PipelineKey {
    /// Backend and device are left out: one cache has one of each, and equality compares them.
    fn hash<H: Hasher>(&self, state: &mut H) {
        let PipelineKey { program, backend: _, version: _, device: _, specialization, workgroup_override, ulp_budget, profile } =
            self;
        program.hash(state);
        if !specialization.is_empty() {
            specialization.cache_hash().hash(state);
        }
        workgroup_override.hash(state);
        ulp_budget.hash(state);
        profile.hash(state);
    }
}
