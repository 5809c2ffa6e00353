//! Everything that is needed to make the same pipeline elsewhere, as JSON.

use crate::backend::{BackendError, DispatchConfig, VyreBackend};
use serde::{Deserialize, Serialize};
use vyre_foundation::ir::Program;
use vyre_foundation::text;

/// A pipeline as a document: program, config, and what it ran on.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PipelineReproManifest {
    /// The format, [`PipelineReproManifest::SCHEMA`].
    pub schema: String,
    /// The backend.
    pub backend_id: String,
    /// Its version.
    pub backend_version: String,
    /// Its device and driver.
    pub device_fingerprint: String,
    /// The pipeline.
    pub pipeline_id: String,
    /// The program's fingerprint in hex.
    pub program_digest: String,
    /// The program's text form.
    pub program: String,
    /// What it was compiled with.
    pub config: DispatchConfig,
}

impl PipelineReproManifest {
    /// The format that this version writes and reads.
    pub const SCHEMA: &'static str = "vyre-pipeline-1";

    pub(super) fn new(backend: &dyn VyreBackend, pipeline_id: &str, program: &Program, config: DispatchConfig) -> Self {
        PipelineReproManifest {
            schema: Self::SCHEMA.into(),
            backend_id: backend.id().into(),
            backend_version: backend.version().into(),
            device_fingerprint: backend.device_fingerprint(),
            pipeline_id: pipeline_id.into(),
            program_digest: digest(program),
            program: program.to_string(),
            config,
        }
    }

    /// The document.
    pub fn to_json(&self) -> Result<String, BackendError> {
        serde_json::to_string_pretty(self).map_err(|error| BackendError::new(error.to_string()))
    }

    /// Reads a document that [`PipelineReproManifest::to_json`] wrote. A field that is not known is refused: what it says would not be
    /// reproduced.
    pub fn from_json(text: &str) -> Result<Self, BackendError> {
        /// What is looked at first: another schema has other fields.
        #[derive(Deserialize)]
        struct Head {
            schema: String,
        }

        let Head { schema } = read(text)?;
        if schema != Self::SCHEMA {
            return Err(wrong(format!("its schema is `{schema}`, and this version reads `{}`", Self::SCHEMA)));
        }
        let manifest: PipelineReproManifest = read(text)?;
        manifest.program()?;
        Ok(manifest)
    }

    /// The program, which must have the digest that the manifest says.
    pub fn program(&self) -> Result<Program, BackendError> {
        let program = text::parse("manifest", &self.program)?;
        match digest(&program) == self.program_digest {
            true => Ok(program),
            false => Err(wrong("its program does not have the digest that it states".into())),
        }
    }
}

fn read<T: for<'de> Deserialize<'de>>(text: &str) -> Result<T, BackendError> {
    serde_path_to_error::deserialize(&mut serde_json::Deserializer::from_str(text))
        .map_err(|error| wrong(format!("`{}`: {}", error.path(), error.inner())))
}

fn digest(program: &Program) -> String {
    blake3::Hash::from_bytes(program.fingerprint()).to_hex().to_string()
}

fn wrong(what: String) -> BackendError {
    BackendError::InvalidProgram { fix: format!("the manifest cannot be used: {what}") }
}
