//! The identity of a compiled pipeline: everything that can change its code, as one type.

use crate::backend::{DispatchConfig, VyreBackend};
use crate::specialization::SpecMap;
use vyre_foundation::ir::{Fingerprint, Program};

/// Changes when the meaning of the fields below does.
const FORMAT: u32 = 1;

/// What makes two pipelines the same. Two that differ in anything that can change code have different keys.
#[derive(Clone, PartialEq, Debug)]
pub struct PipelineKey {
    /// The program as it was given, constants not yet replaced.
    pub program: Fingerprint,
    /// The backend and its version.
    pub backend: String,
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
            backend: format!("{} {}", backend.id(), backend.version()),
            device: backend.device_fingerprint(),
            specialization: config.specialization.clone(),
            workgroup_override: config.workgroup_override,
            ulp_budget: config.ulp_budget,
            profile: config.profile.clone(),
        }
    }

    /// A hash over all of it.
    #[must_use]
    pub fn hash(&self) -> [u8; 32] {
        let mut bytes = FORMAT.to_le_bytes().to_vec();
        bytes.extend_from_slice(&self.program);
        for text in [Some(&self.backend), Some(&self.device), self.profile.as_ref()] {
            // A length that no text has tells `None` from an empty text.
            bytes.extend_from_slice(&text.map_or(u64::MAX, |text| text.len() as u64).to_le_bytes());
            bytes.extend_from_slice(text.map_or(&[], |text| text.as_bytes()));
        }
        self.specialization.encode(&mut bytes);
        for part in [self.workgroup_override, self.ulp_budget.map(|ulp| [u32::from(ulp), 0, 0])] {
            bytes.push(u8::from(part.is_some()));
            part.iter().flatten().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
        }
        *blake3::hash(&bytes).as_bytes()
    }

    /// The hash as people write it.
    #[must_use]
    pub fn to_hex(&self) -> String {
        blake3::Hash::from_bytes(self.hash()).to_hex().to_string()
    }
}
