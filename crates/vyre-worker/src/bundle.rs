//! Failure bundles: everything that is needed to see a failure again, in one file.
//!
//! A bundle is a JSON object. It holds the program itself and never only the seed it came from, so it outlives the generator: in the
//! JSON form, which `docs/workers.md` specifies, and beside it as text for people. Names of fields are only ever added; files of
//! older layouts are read.
//!
//! A file is named for the hash of its content, appears whole, and is never overwritten. The hash also
//! stands inside and covers all fields but itself and the command that replays the bundle, whose path depends on where the file is.

use crate::subject::{Failure, Outputs};
use crate::verdict::Kind;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use vyre_driver::files::{self, FileError};
use vyre_foundation::case::{Case, bytes};
use vyre_foundation::wire;

/// The version of the layout that is written here.
pub const VERSION: u64 = 2;
/// Bytes of a file that is read, at most.
const LONGEST: u64 = 1 << 28;

/// One failure.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Bundle {
    /// Who was wrong, as the command line takes it.
    pub subject: String,
    /// How.
    pub kind: Kind,
    /// What is taken to be the same failure.
    pub signature: String,
    /// What it was wrong about; reduced, if it was.
    pub case: Case,
    /// What has to run before the case, in the same process; for nearly all failures nothing.
    pub before: Vec<Case>,
    /// What the reference gives.
    #[serde(with = "outcome")]
    pub expected: Result<Outputs, Failure>,
    /// What the subject gave.
    #[serde(with = "outcome")]
    pub got: Result<Outputs, Failure>,
    /// The case before it was reduced.
    pub original: Option<Case>,
    /// Where the case comes from.
    pub origin: Option<Origin>,
    /// Versions of what took part, by name.
    pub versions: BTreeMap<String, String>,
}

/// How a generated case is made again, by the generator of the same version.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// The version of the generator.
    pub generator: u32,
    /// What kind of programs.
    pub preset: String,
    /// The seed of the run.
    pub seed: u64,
    /// The number of the program.
    pub number: u64,
    /// Which of the program's inputs.
    pub input: u32,
    /// The bytes that the program was made of.
    #[serde(with = "bytes")]
    pub dna: Vec<u8>,
}

/// Why a file is no bundle.
#[derive(Debug)]
pub enum BundleError {
    /// It cannot be read.
    Unreadable(io::Error),
    /// It is no JSON object.
    NoJson(String),
    /// It was written by a later version.
    Later(u64),
    /// A field is missing or is not what it should be.
    Field(String, String),
    /// Its content does not have the hash that stands in it: it is damaged, or was edited.
    Changed,
}

impl fmt::Display for BundleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BundleError::Unreadable(error) => error.fmt(f),
            BundleError::NoJson(why) => write!(f, "it is not a JSON object: {why}"),
            BundleError::Later(version) => {
                write!(f, "it has layout {version}, and this vyre knows layouts up to {VERSION}")
            }
            BundleError::Field(name, why) => write!(f, "`{name}` {why}"),
            BundleError::Changed => f.write_str("its content does not match the hash in it: it is damaged, or was edited"),
        }
    }
}

impl std::error::Error for BundleError {}

impl Bundle {
    /// The hash of the content, as it stands in the name of the file.
    #[must_use]
    pub fn hash(&self) -> String {
        hash(&self.content())
    }

    /// Writes it into a folder, which is made if there is none; gives the file. `replay` makes the command that replays it out of
    /// the file. A bundle that is there already is left as it is.
    pub fn write(&self, folder: &Path, replay: impl Fn(&Path) -> String) -> Result<PathBuf, FileError> {
        let cannot = |error| FileError { path: folder.to_path_buf(), error };
        fs::create_dir_all(folder).map_err(cannot)?;
        let mut content = self.content();
        let hash = hash(&content);
        content.insert("hash".into(), json!(hash));
        for attempt in 1.. {
            let suffix = if attempt == 1 { String::new() } else { format!("-{attempt}") };
            let path = folder.join(format!("{}-{}{suffix}.json", self.kind, &hash[..16]));
            content.insert("replay".into(), json!(replay(&path)));
            let mut text = serde_json::to_string_pretty(&content).map_err(|error| cannot(error.into()))?;
            text.push('\n');
            if files::create(&path, text.as_bytes())? || Bundle::read(&path).is_ok_and(|there| there == *self) {
                return Ok(path);
            }
            // Whatever else is there under this name, it is evidence of something.
        }
        unreachable!("there is always a next name")
    }

    /// Reads a file back.
    pub fn read(path: &Path) -> Result<Bundle, BundleError> {
        match files::read_at_most(path, LONGEST).map_err(BundleError::Unreadable)? {
            Some(bytes) => Bundle::parse(&bytes),
            None => Err(BundleError::Unreadable(io::Error::other(format!("it has more than {LONGEST} bytes")))),
        }
    }

    /// Reads the content of a file.
    pub fn parse(bytes: &[u8]) -> Result<Bundle, BundleError> {
        let mut content: Map<String, Value> =
            serde_json::from_slice(bytes).map_err(|error| BundleError::NoJson(error.to_string()))?;
        let field = |name: &str| content.get(name).ok_or_else(|| BundleError::Field(name.into(), "is missing".into()));
        let is_not = |name: &str, what: &str| BundleError::Field(name.into(), format!("is not {what}"));
        let version = field("bundle")?.as_u64().ok_or_else(|| is_not("bundle", "a number"))?;
        if version > VERSION {
            return Err(BundleError::Later(version));
        }
        let stated = field("hash")?.as_str().ok_or_else(|| is_not("hash", "a text"))?.to_string();
        content.remove("hash");
        content.remove("replay");
        if hash(&content) != stated {
            return Err(BundleError::Changed);
        }
        if version == 1 {
            layout_1::upgrade(&mut content)?;
        }
        serde_path_to_error::deserialize(Value::Object(content))
            .map_err(|error| BundleError::Field(error.path().to_string(), error.inner().to_string()))
    }

    /// All fields but the hash and the command that replays it.
    fn content(&self) -> Map<String, Value> {
        let written = serde_json::to_value(self);
        let Ok(Value::Object(mut content)) = written else { unreachable!("a bundle is an object: {written:?}") };
        content.insert("bundle".into(), json!(VERSION));
        content.insert("text".into(), self.case.program.to_string().lines().collect());
        content
    }
}

fn hash(content: &Map<String, Value>) -> String {
    // The keys of a map are sorted, so equal content is equal text.
    blake3::hash(Value::Object(content.clone()).to_string().as_bytes()).to_hex().to_string()
}

/// Outcomes in files and messages: `outputs`, or how it failed.
pub(crate) mod outcome {
    use crate::subject::{Failure, Outputs};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use vyre_foundation::case::bytes;

    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Outcome {
        Outputs(#[serde(with = "bytes::lists")] Outputs),
        Failure(Failure),
    }

    pub(crate) fn serialize<S: Serializer>(outcome: &Result<Outputs, Failure>, serializer: S) -> Result<S::Ok, S::Error> {
        match outcome.clone() {
            Ok(outputs) => Outcome::Outputs(outputs),
            Err(failure) => Outcome::Failure(failure),
        }
        .serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Result<Outputs, Failure>, D::Error> {
        Ok(match Outcome::deserialize(deserializer)? {
            Outcome::Outputs(outputs) => Ok(outputs),
            Outcome::Failure(failure) => Err(failure),
        })
    }
}

/// The layout in which programs were text and wire bytes, and the launch was fields of the case.
mod layout_1 {
    use super::BundleError;
    use serde_json::{Map, Value, json};
    use vyre_foundation::ir::Program;
    use vyre_foundation::launch::LaunchConfig;
    use vyre_foundation::specialize::SpecValue;
    use vyre_foundation::text::parse;
    use vyre_foundation::wire::from_wire;
    use vyre_spec::ErrorCode;

    /// The same bundle as it is written now. What is not as it was written then is left for the reader to complain about.
    pub(super) fn upgrade(content: &mut Map<String, Value>) -> Result<(), BundleError> {
        for name in ["case", "original"] {
            content.get_mut(name).map_or(Ok(()), |old| case(old, name))?;
        }
        let before = content.get_mut("before").and_then(Value::as_array_mut);
        before.into_iter().flatten().enumerate().try_for_each(|(n, old)| case(old, &format!("before.{n}")))?;
        for name in ["expected", "got"] {
            content.get_mut(name).into_iter().for_each(outcome);
        }
        Ok(())
    }

    fn case(value: &mut Value, path: &str) -> Result<(), BundleError> {
        let Some(old) = value.as_object_mut() else { return Ok(()) };
        let program = program(old, path)?;
        let mut take = |name: &str| old.remove(name).unwrap_or(Value::Null);
        let mut constants = take("constants");
        constants.as_object_mut().into_iter().flatten().for_each(|(_, value)| constant(value));
        let limit = take("max_output_bytes");
        let limit = if limit == json!(LaunchConfig::default().max_output_bytes) { Value::Null } else { limit };
        *value = json!({
            "program": program,
            "inputs": take("inputs"),
            "config": {
                "grid": take("grid"),
                "workgroup": take("workgroup"),
                "output_counts": take("lengths"),
                "max_output_bytes": limit,
                "specialization": constants,
            },
            "fuel": take("fuel"),
        });
        Ok(())
    }

    /// The program: in wire form, or as text where the wire form is of another version or was too deep for one.
    fn program(old: &Map<String, Value>, path: &str) -> Result<Program, BundleError> {
        let wrong = |name: &str, why: String| BundleError::Field(format!("{path}.{name}"), format!("is not a program: {why}"));
        if let Some(wire) = old.get("wire").filter(|wire| !wire.is_null()) {
            let bytes = vyre_foundation::case::bytes::deserialize(wire).map_err(|error| wrong("wire", error.to_string()))?;
            match from_wire(&bytes) {
                Ok(program) => return Ok(program),
                Err(error) if error.code == ErrorCode::E0602 => {}
                Err(error) => return Err(wrong("wire", error.to_string())),
            }
        }
        let lines = old.get("program").and_then(Value::as_array);
        let lines: Option<Vec<&str>> = lines.and_then(|lines| lines.iter().map(Value::as_str).collect());
        let lines = lines.ok_or_else(|| wrong("program", "there are no lines".into()))?;
        parse("bundle", &lines.join("\n")).map_err(|report| wrong("program", report.to_string()))
    }

    /// `{ "u32": 7 }`; floats were the hex of their bits.
    fn constant(value: &mut Value) {
        let Some((kind, old)) = value.as_object().and_then(|object| object.iter().next()) else { return };
        let bits = old.as_str().and_then(|text| u32::from_str_radix(text, 16).ok());
        let text = match (kind.as_str(), bits, old.as_str()) {
            ("f32", Some(bits), _) => SpecValue::F32(f32::from_bits(bits)).to_string(),
            (_, _, Some(text)) => text.to_string(),
            (_, _, None) => old.to_string(),
        };
        *value = json!({ "kind": kind, "value": text });
    }

    fn outcome(value: &mut Value) {
        let Some(old) = value.as_object() else { return };
        let why = || old.get("why").cloned().unwrap_or(Value::Null);
        let failure = match (old.get("trap"), old.get("failure").and_then(Value::as_str)) {
            (Some(tag), _) => json!({ "trap": { "tag": tag, "invocation": old.get("invocation") } }),
            (None, Some("fuel")) => json!("out_of_fuel"),
            (None, Some("hung")) => {
                let time = old.get("milliseconds").and_then(Value::as_u64).unwrap_or_default();
                json!({ "hung": { "secs": time / 1000, "nanos": time % 1000 * 1_000_000 } })
            }
            (None, Some("not run")) => json!({ "not_run": why() }),
            (None, Some(kind)) => json!({ kind: why() }),
            (None, None) => return,
        };
        *value = json!({ "failure": failure });
    }
}

/// The versions that every bundle names.
#[must_use]
pub fn versions() -> BTreeMap<String, String> {
    BTreeMap::from([("vyre".to_string(), env!("CARGO_PKG_VERSION").to_string()), ("wire".to_string(), wire::VERSION.to_string())])
}
