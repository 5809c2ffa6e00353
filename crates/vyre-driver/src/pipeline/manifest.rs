//! Everything that is needed to make the same pipeline elsewhere, as JSON.

use crate::backend::{BackendError, DispatchConfig, VyreBackend};
use crate::specialization::{SpecMap, SpecValue};
use serde_json::{Map, Value, json};
use std::time::Duration;
use vyre_foundation::ir::Program;
use vyre_foundation::text;

/// A pipeline as a document: program, config, and what it ran on.
#[derive(Clone, PartialEq, Debug)]
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
        let config = &self.config;
        let specialization: Map<String, Value> = config
            .specialization
            .iter()
            .map(|(name, value)| (name.to_string(), json!({ "kind": value.kind(), "value": value.to_string() })))
            .collect();
        let document = json!({
            "schema": self.schema,
            "backend_id": self.backend_id,
            "backend_version": self.backend_version,
            "device_fingerprint": self.device_fingerprint,
            "pipeline_id": self.pipeline_id,
            "program_digest": self.program_digest,
            "program": self.program,
            "config": {
                "grid": config.grid_override,
                "workgroup": config.workgroup_override,
                "output_counts": config.output_counts,
                "max_output_bytes": config.max_output_bytes,
                "specialization": specialization,
                "ulp_budget": config.ulp_budget,
                "timeout": config.timeout.map(|limit| json!({ "secs": limit.as_secs(), "nanos": limit.subsec_nanos() })),
                "require_deterministic": config.require_deterministic,
                "profile": config.profile,
                "label": config.label,
            },
        });
        serde_json::to_string_pretty(&document).map_err(|error| BackendError::new(error.to_string()))
    }

    /// Reads a document that [`PipelineReproManifest::to_json`] wrote.
    pub fn from_json(text: &str) -> Result<Self, BackendError> {
        let document: Value = serde_json::from_str(text).map_err(|error| wrong(format!("it is no JSON: {error}")))?;
        let field =
            |name: &str| document[name].as_str().map(String::from).ok_or_else(|| wrong(format!("it has no text `{name}`")));
        let schema = field("schema")?;
        if schema != Self::SCHEMA {
            return Err(wrong(format!("its schema is `{schema}`, and this version reads `{}`", Self::SCHEMA)));
        }
        expect_fields(&document, "", &FIELDS)?;
        let manifest = PipelineReproManifest {
            schema,
            backend_id: field("backend_id")?,
            backend_version: field("backend_version")?,
            device_fingerprint: field("device_fingerprint")?,
            pipeline_id: field("pipeline_id")?,
            program_digest: field("program_digest")?,
            program: field("program")?,
            config: read_config(&document["config"])?,
        };
        manifest.program()?;
        Ok(manifest)
    }

    /// The program, which must have the digest that the manifest says.
    pub fn program(&self) -> Result<Program, BackendError> {
        let program = text::parse("manifest", &self.program)?;
        match digest(&program) == self.program_digest {
            true => Ok(program),
            false => Err(wrong("its program has another digest than it says".into())),
        }
    }
}

/// The fields of a document, and those of its config.
const FIELDS: [&str; 8] =
    ["schema", "backend_id", "backend_version", "device_fingerprint", "pipeline_id", "program_digest", "program", "config"];
const CONFIG_FIELDS: [&str; 10] = [
    "grid",
    "workgroup",
    "output_counts",
    "max_output_bytes",
    "specialization",
    "ulp_budget",
    "timeout",
    "require_deterministic",
    "profile",
    "label",
];

/// Refuses fields that are not read: what they say would not be reproduced.
fn expect_fields(object: &Value, inside: &str, known: &[&str]) -> Result<(), BackendError> {
    let names = object.as_object().into_iter().flat_map(Map::keys);
    match names.into_iter().find(|name| !known.contains(&name.as_str())) {
        Some(unknown) => Err(wrong(format!("it has a field `{inside}{unknown}`, which this version does not know"))),
        None => Ok(()),
    }
}

fn digest(program: &Program) -> String {
    blake3::Hash::from_bytes(program.fingerprint()).to_hex().to_string()
}

fn wrong(what: String) -> BackendError {
    BackendError::InvalidProgram { fix: format!("the manifest cannot be used: {what}") }
}

fn read_config(config: &Value) -> Result<DispatchConfig, BackendError> {
    expect_fields(config, "config.", &CONFIG_FIELDS)?;
    let is_wrong = |name: &str| wrong(format!("its `config.{name}` is no such value"));
    let given = |name: &str| Some(&config[name]).filter(|value| !value.is_null());
    let number = |name: &str| given(name).map(|value| value.as_u64().ok_or_else(|| is_wrong(name))).transpose();
    let words = |name: &str| -> Result<Option<[u32; 3]>, BackendError> {
        given(name).map(|value| serde_json::from_value(value.clone()).map_err(|_| is_wrong(name))).transpose()
    };
    let string = |name: &str| given(name).map(|value| value.as_str().map(String::from).ok_or_else(|| is_wrong(name))).transpose();
    let flag = |name: &str| given(name).map(|value| value.as_bool().ok_or_else(|| is_wrong(name))).transpose();
    let mut specialization = SpecMap::new();
    for (name, entry) in config["specialization"].as_object().ok_or_else(|| is_wrong("specialization"))? {
        let value = entry["kind"].as_str().zip(entry["value"].as_str()).and_then(|(kind, text)| SpecValue::parse(kind, text));
        specialization.insert(name, value.ok_or_else(|| is_wrong("specialization"))?);
    }
    Ok(DispatchConfig {
        grid_override: words("grid")?,
        workgroup_override: words("workgroup")?,
        output_counts: serde_json::from_value(config["output_counts"].clone()).map_err(|_| is_wrong("output_counts"))?,
        max_output_bytes: number("max_output_bytes")?,
        specialization,
        ulp_budget: number("ulp_budget")?.map(u8::try_from).transpose().map_err(|_| is_wrong("ulp_budget"))?,
        timeout: given("timeout").map(|value| read_duration(value).ok_or_else(|| is_wrong("timeout"))).transpose()?,
        require_deterministic: flag("require_deterministic")?,
        profile: string("profile")?,
        label: string("label")?,
    })
}

fn read_duration(value: &Value) -> Option<Duration> {
    let nanos = u32::try_from(value["nanos"].as_u64()?).ok().filter(|nanos| *nanos < 1_000_000_000)?;
    Some(Duration::new(value["secs"].as_u64()?, nanos))
}
