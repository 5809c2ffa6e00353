//! Failure bundles: everything that is needed to see a failure again, in one file.
//!
//! A bundle is a JSON object, laid out for people: the program as text, bytes in hex. It holds the program itself and never only the
//! seed it came from, so it outlives the generator; the program stands in it in wire form too, and if a later wire form no longer
//! reads that one, the text counts. Names of fields are only ever added.
//!
//! A file is named for the hash of its content, written beside its place and then renamed, and never overwritten. The hash also
//! stands inside and covers all fields but itself and the command that replays the bundle, whose path depends on where the file is.

use crate::subject::{Case, Failure, Outputs};
use crate::verdict::Kind;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use vyre_foundation::ir::{F32Bits, Program, SpecValue};
use vyre_foundation::launch::LaunchConfig;
use vyre_foundation::text::{parse, parse_data_type};
use vyre_foundation::wire::{self, from_wire, to_wire};
use vyre_spec::ErrorCode;

/// The version of the layout that is written here.
pub const VERSION: u64 = 1;

/// One failure.
#[derive(Clone, PartialEq, Debug)]
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
    pub expected: Result<Outputs, Failure>,
    /// What the subject gave.
    pub got: Result<Outputs, Failure>,
    /// The case before it was reduced.
    pub original: Option<Case>,
    /// Where the case comes from.
    pub origin: Option<Origin>,
    /// Versions of what took part, by name.
    pub versions: BTreeMap<String, String>,
}

/// How a generated case is made again, by the generator of the same version.
#[derive(Clone, PartialEq, Eq, Debug)]
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
            BundleError::NoJson(why) => write!(f, "it is no JSON object: {why}"),
            BundleError::Later(version) => {
                write!(f, "it has layout {version}, and this vyre knows layouts up to {VERSION}")
            }
            BundleError::Field(name, why) => write!(f, "`{name}` {why}"),
            BundleError::Changed => f.write_str("its content does not fit the hash in it: it is damaged, or was edited"),
        }
    }
}

impl std::error::Error for BundleError {}

impl Bundle {
    /// The hash of the content, as it stands in the name of the file.
    #[must_use]
    pub fn hash(&self) -> String {
        hash(&self.to_json())
    }

    /// Writes it into a folder, which is made if there is none; gives the file. `replay` makes the command that replays it out of
    /// the file. A bundle that is there already is left as it is.
    pub fn write(&self, folder: &Path, replay: impl Fn(&Path) -> String) -> io::Result<PathBuf> {
        fs::create_dir_all(folder)?;
        let mut content = self.to_json();
        let hash = hash(&content);
        for attempt in 1.. {
            let suffix = if attempt == 1 { String::new() } else { format!("-{attempt}") };
            let path = folder.join(format!("{}-{}{suffix}.json", self.kind, &hash[..16]));
            if path.exists() {
                match Bundle::read(&path) {
                    Ok(there) if there == *self => return Ok(path),
                    // Whatever is there under this name, it is evidence of something.
                    Ok(_) | Err(_) => continue,
                }
            }
            content.insert("hash".into(), json!(hash));
            content.insert("replay".into(), json!(replay(&path)));
            let mut text = serde_json::to_string_pretty(&content).map_err(io::Error::from)?;
            text.push('\n');
            let beside = folder.join(format!(".{}-{}.part", &hash[..16], std::process::id()));
            let mut file = File::create(&beside)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&beside, &path)?;
            return Ok(path);
        }
        unreachable!("there is always a next name")
    }

    /// Reads a file back.
    pub fn read(path: &Path) -> Result<Bundle, BundleError> {
        Bundle::parse(&fs::read(path).map_err(BundleError::Unreadable)?)
    }

    /// Reads the content of a file.
    pub fn parse(bytes: &[u8]) -> Result<Bundle, BundleError> {
        let mut content: Map<String, Value> =
            serde_json::from_slice(bytes).map_err(|error| BundleError::NoJson(error.to_string()))?;
        let fields = Fields { object: &content, path: "" };
        let version = fields.number("bundle")?;
        if version > VERSION {
            return Err(BundleError::Later(version));
        }
        let stated = fields.text("hash")?.to_string();
        content.remove("hash");
        content.remove("replay");
        if hash(&content) != stated {
            return Err(BundleError::Changed);
        }
        Fields { object: &content, path: "" }.bundle()
    }

    fn to_json(&self) -> Map<String, Value> {
        let mut object = Map::new();
        let mut put = |name: &str, value: Value| object.insert(name.to_string(), value);
        put("bundle", json!(VERSION));
        put("subject", json!(self.subject));
        put("kind", json!(self.kind.name()));
        put("signature", json!(self.signature));
        put("case", case_json(&self.case));
        put("before", self.before.iter().map(case_json).collect());
        put("expected", outcome_json(&self.expected));
        put("got", outcome_json(&self.got));
        put("original", self.original.as_ref().map_or(Value::Null, case_json));
        put("versions", json!(self.versions));
        put(
            "origin",
            self.origin.as_ref().map_or(Value::Null, |origin| {
                json!({
                    "generator": origin.generator,
                    "preset": origin.preset,
                    "seed": origin.seed,
                    "number": origin.number,
                    "input": origin.input,
                    "dna": hex(&origin.dna),
                })
            }),
        );
        object
    }
}

fn hash(content: &Map<String, Value>) -> String {
    // The keys of a map are sorted, so equal content is equal text.
    blake3::hash(Value::Object(content.clone()).to_string().as_bytes()).to_hex().to_string()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn hex_list(lists: &[Vec<u8>]) -> Value {
    lists.iter().map(|bytes| json!(hex(bytes))).collect()
}

fn case_json(case: &Case) -> Value {
    let constants: Map<String, Value> = case
        .specialization
        .iter()
        .map(|(name, value)| {
            let value = match value {
                SpecValue::U32(value) => json!({ "u32": value }),
                SpecValue::I32(value) => json!({ "i32": value }),
                // JSON has no NaN and no sign of zero.
                SpecValue::F32(value) => json!({ "f32": hex(&F32Bits::from(*value).bits().to_be_bytes()) }),
                SpecValue::Bool(value) => json!({ "bool": value }),
                SpecValue::DType(data_type) => json!({ "dtype": data_type.to_string() }),
            };
            (name.clone(), value)
        })
        .collect();
    let wire = to_wire(&case.program).ok();
    json!({
        "program": case.program.to_string().lines().collect::<Vec<_>>(),
        "wire": wire.map(|bytes| hex(&bytes)),
        "inputs": hex_list(&case.inputs),
        "grid": case.launch.grid,
        "workgroup": case.launch.workgroup_override,
        "lengths": case.launch.output_counts,
        "max_output_bytes": case.launch.max_output_bytes,
        "constants": constants,
        "fuel": case.fuel,
    })
}

fn outcome_json(outcome: &Result<Outputs, Failure>) -> Value {
    match outcome {
        Ok(outputs) => json!({ "outputs": hex_list(outputs) }),
        Err(Failure::Trap { tag, invocation }) => json!({ "trap": tag, "invocation": invocation }),
        Err(Failure::OutOfFuel) => json!({ "failure": "fuel" }),
        Err(Failure::Hung(time)) => json!({ "failure": "hung", "milliseconds": time.as_millis() as u64 }),
        Err(Failure::Refused(why)) => json!({ "failure": "refused", "why": why }),
        Err(Failure::Unsupported(why)) => json!({ "failure": "unsupported", "why": why }),
        Err(Failure::Panicked(why)) => json!({ "failure": "panicked", "why": why }),
        Err(Failure::Crashed(why)) => json!({ "failure": "crashed", "why": why }),
        Err(Failure::Device(why)) => json!({ "failure": "device", "why": why }),
        Err(Failure::NotRun(why)) => json!({ "failure": "not run", "why": why }),
    }
}

/// The fields of one object; `path` says where it is.
#[derive(Clone, Copy)]
struct Fields<'a> {
    object: &'a Map<String, Value>,
    path: &'a str,
}

impl<'a> Fields<'a> {
    fn wrong<T>(&self, name: &str, why: impl Into<String>) -> Result<T, BundleError> {
        Err(BundleError::Field(format!("{}{name}", self.path), why.into()))
    }

    fn get(&self, name: &str) -> Result<&'a Value, BundleError> {
        match self.object.get(name) {
            Some(value) => Ok(value),
            None => self.wrong(name, "is missing"),
        }
    }

    fn known<T>(&self, name: &str, what: &str, get: impl FnOnce(&'a Value) -> Option<T>) -> Result<T, BundleError> {
        match get(self.get(name)?) {
            Some(value) => Ok(value),
            None => self.wrong(name, format!("is no {what}")),
        }
    }

    fn text(&self, name: &str) -> Result<&'a str, BundleError> {
        self.known(name, "text", Value::as_str)
    }

    fn number(&self, name: &str) -> Result<u64, BundleError> {
        self.known(name, "number", Value::as_u64)
    }

    fn u32(&self, name: &str) -> Result<u32, BundleError> {
        self.known(name, "number below 2^32", as_u32)
    }

    fn bytes(&self, name: &str) -> Result<Vec<u8>, BundleError> {
        self.known(name, "hex", from_hex)
    }

    fn list_of_bytes(&self, name: &str) -> Result<Vec<Vec<u8>>, BundleError> {
        self.known(name, "list of hex", |value| value.as_array()?.iter().map(from_hex).collect())
    }

    fn triple(&self, name: &str) -> Result<Option<[u32; 3]>, BundleError> {
        if self.get(name)?.is_null() {
            return Ok(None);
        }
        self.known(name, "list of three numbers", as_triple).map(Some)
    }

    fn below<T>(&self, name: &str, read: impl FnOnce(Fields<'_>) -> Result<T, BundleError>) -> Result<T, BundleError> {
        let object = self.known(name, "object", Value::as_object)?;
        read(Fields { object, path: &format!("{}{name}.", self.path) })
    }

    fn bundle(&self) -> Result<Bundle, BundleError> {
        let is_null = |name| self.get(name).map(Value::is_null);
        let mut before = Vec::new();
        for (n, item) in self.known("before", "list", Value::as_array)?.iter().enumerate() {
            let path = format!("before.{n}.");
            match item.as_object() {
                Some(object) => before.push(Fields { object, path: &path }.case()?),
                None => return self.wrong("before", "is no list of objects"),
            }
        }
        Ok(Bundle {
            subject: self.text("subject")?.to_string(),
            kind: self.known("kind", "kind of failure", |value| {
                Kind::ALL.into_iter().find(|kind| value.as_str() == Some(kind.name()))
            })?,
            signature: self.text("signature")?.to_string(),
            case: self.below("case", |fields| fields.case())?,
            before,
            expected: self.below("expected", |fields| fields.outcome())?,
            got: self.below("got", |fields| fields.outcome())?,
            original: if is_null("original")? { None } else { Some(self.below("original", |fields| fields.case())?) },
            origin: if is_null("origin")? { None } else { Some(self.below("origin", |fields| fields.origin())?) },
            versions: self.known("versions", "object of texts", |value| {
                value.as_object()?.iter().map(|(name, value)| Some((name.clone(), value.as_str()?.to_string()))).collect()
            })?,
        })
    }

    fn origin(&self) -> Result<Origin, BundleError> {
        Ok(Origin {
            generator: self.u32("generator")?,
            preset: self.text("preset")?.to_string(),
            seed: self.number("seed")?,
            number: self.number("number")?,
            input: self.u32("input")?,
            dna: self.bytes("dna")?,
        })
    }

    fn case(&self) -> Result<Case, BundleError> {
        let output_counts = self.known("lengths", "object of numbers", |value| {
            value.as_object()?.iter().map(|(name, value)| Some((name.clone(), as_u32(value)?))).collect()
        })?;
        let launch = LaunchConfig {
            grid: self.triple("grid")?,
            workgroup_override: self.triple("workgroup")?,
            output_counts,
            max_output_bytes: self.number("max_output_bytes")?,
        };
        let specialization = self.known("constants", "object of constants", |value| {
            value.as_object()?.iter().map(|(name, value)| Some((name.clone(), as_spec_value(value)?))).collect()
        })?;
        Ok(Case {
            program: self.program()?,
            inputs: self.list_of_bytes("inputs")?,
            launch,
            specialization,
            fuel: self.number("fuel")?,
        })
    }

    /// The program: in wire form, or as text where the wire form is of another version or was too deep for one.
    fn program(&self) -> Result<Program, BundleError> {
        if !self.get("wire")?.is_null() {
            match from_wire(&self.bytes("wire")?) {
                Ok(program) => return Ok(program),
                Err(error) if error.code == ErrorCode::E0602 => {}
                Err(error) => return self.wrong("wire", format!("is no program: {error}")),
            }
        }
        let lines: Option<Vec<&str>> =
            self.known("program", "list of lines", Value::as_array)?.iter().map(Value::as_str).collect();
        match lines {
            Some(lines) => {
                parse("bundle", &lines.join("\n")).or_else(|report| self.wrong("program", format!("is no program: {report}")))
            }
            None => self.wrong("program", "is no list of lines"),
        }
    }

    fn outcome(&self) -> Result<Result<Outputs, Failure>, BundleError> {
        if self.object.contains_key("outputs") {
            return Ok(Ok(self.list_of_bytes("outputs")?));
        }
        if self.object.contains_key("trap") {
            let invocation = self.known("invocation", "list of three numbers", as_triple)?;
            return Ok(Err(Failure::Trap { tag: self.u32("trap")?, invocation }));
        }
        let why = || self.text("why").map(str::to_string);
        Ok(Err(match self.text("failure")? {
            "fuel" => Failure::OutOfFuel,
            "hung" => Failure::Hung(Duration::from_millis(self.number("milliseconds")?)),
            "refused" => Failure::Refused(why()?),
            "unsupported" => Failure::Unsupported(why()?),
            "panicked" => Failure::Panicked(why()?),
            "crashed" => Failure::Crashed(why()?),
            "device" => Failure::Device(why()?),
            "not run" => Failure::NotRun(why()?),
            other => return self.wrong("failure", format!("is `{other}`, which is no kind of failure")),
        }))
    }
}

fn as_u32(value: &Value) -> Option<u32> {
    u32::try_from(value.as_u64()?).ok()
}

fn as_triple(value: &Value) -> Option<[u32; 3]> {
    let numbers: Vec<u32> = value.as_array()?.iter().map(as_u32).collect::<Option<_>>()?;
    numbers.try_into().ok()
}

fn from_hex(value: &Value) -> Option<Vec<u8>> {
    let (pairs, rest) = value.as_str()?.as_bytes().as_chunks::<2>();
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let byte = |[high, low]: &[u8; 2]| Some((digit(*high)? << 4 | digit(*low)?) as u8);
    if rest.is_empty() { pairs.iter().map(byte).collect() } else { None }
}

fn as_spec_value(value: &Value) -> Option<SpecValue> {
    let (kind, value) = value.as_object()?.iter().next()?;
    match kind.as_str() {
        "u32" => as_u32(value).map(SpecValue::U32),
        "i32" => i32::try_from(value.as_i64()?).ok().map(SpecValue::I32),
        "f32" => Some(SpecValue::F32(f32::from_bits(u32::from_be_bytes(from_hex(value)?.try_into().ok()?)))),
        "bool" => value.as_bool().map(SpecValue::Bool),
        "dtype" => parse_data_type(value.as_str()?).map(SpecValue::DType),
        _ => None,
    }
}

/// The versions that every bundle names.
#[must_use]
pub fn versions() -> BTreeMap<String, String> {
    BTreeMap::from([("vyre".to_string(), env!("CARGO_PKG_VERSION").to_string()), ("wire".to_string(), wire::VERSION.to_string())])
}
