//! What a caller can say about a dispatch beside program and inputs.

use crate::Report;
use crate::ir::Program;
use crate::launch::LaunchConfig;
use crate::specialize::{SpecValue, specialize};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::time::Duration;

/// What a caller can say about a dispatch. `None` and empty mean that nothing is said.
///
/// A pipeline is compiled with one and dispatched with another: per field, and per name where names have values, what the call says
/// wins. What changes compiled code cannot change from call to call; see [`DispatchConfig::over`].
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DispatchConfig {
    /// Workgroups along x, y and z.
    #[serde(rename = "grid")]
    pub grid_override: Option<[u32; 3]>,
    /// Another workgroup size than the declared one, where the program cannot tell. Changes compiled code.
    #[serde(rename = "workgroup")]
    pub workgroup_override: Option<[u32; 3]>,
    /// Lengths of outputs that declare none, by name.
    pub output_counts: BTreeMap<String, u32>,
    /// Bytes that all outputs may take together; 1 GiB if nothing is said.
    pub max_output_bytes: Option<u64>,
    /// Values for specialization constants. Changes compiled code.
    pub specialization: SpecMap,
    /// Permission to be off by so many units in the last place in elementary functions. Changes compiled code; never used silently.
    pub ulp_budget: Option<u8>,
    /// When to give up. A dispatch whose time is already over does not start.
    #[serde(default, with = "duration")]
    pub timeout: Option<Duration>,
    /// Refuse a program whose bytes are not proven the same under every schedule.
    pub require_deterministic: Option<bool>,
    /// Which tuning of the backend to use. A device refuses names it does not know; a hand-written backend gets them as they are. A
    /// tuning changes how fast code is and never what it gives, so that a pipeline that was compiled with another one keeps that; what
    /// ran is told with the result.
    pub profile: Option<String>,
    /// A name for traces.
    pub label: Option<String>,
}

impl DispatchConfig {
    /// The part that lengths and geometry follow from.
    #[must_use]
    pub fn launch(&self) -> LaunchConfig {
        let defaults = LaunchConfig::default();
        LaunchConfig {
            grid: self.grid_override,
            workgroup_override: self.workgroup_override,
            output_counts: self.output_counts.clone(),
            max_output_bytes: self.max_output_bytes.unwrap_or(defaults.max_output_bytes),
        }
    }

    /// The same without values for constants, for a program in which they are replaced. Names are not copied only to be dropped.
    #[must_use]
    pub fn without_specialization(&self) -> DispatchConfig {
        DispatchConfig {
            grid_override: self.grid_override,
            workgroup_override: self.workgroup_override,
            output_counts: self.output_counts.clone(),
            max_output_bytes: self.max_output_bytes,
            specialization: SpecMap::new(),
            ulp_budget: self.ulp_budget,
            timeout: self.timeout,
            require_deterministic: self.require_deterministic,
            profile: self.profile.clone(),
            label: self.label.clone(),
        }
    }

    /// What holds for a call with this config of a pipeline that was compiled with `compiled`. Nothing is copied where one of them
    /// says nothing.
    ///
    /// # Errors
    ///
    /// If the call says something else than the pipeline was compiled with, and that changes code.
    pub fn over<'a>(&'a self, compiled: &'a DispatchConfig) -> Result<Cow<'a, DispatchConfig>, Conflict> {
        static NOTHING: std::sync::OnceLock<DispatchConfig> = std::sync::OnceLock::new();
        let nothing = NOTHING.get_or_init(DispatchConfig::default);
        if self == nothing || self == compiled {
            return Ok(Cow::Borrowed(compiled));
        }
        let fixed = |what: &str, differs: bool| if differs { Err(Conflict::about(what)) } else { Ok(()) };
        fixed("workgroup override", self.workgroup_override.is_some() && self.workgroup_override != compiled.workgroup_override)?;
        fixed("ulp budget", self.ulp_budget.is_some() && self.ulp_budget != compiled.ulp_budget)?;
        self.specialization.check_within(&compiled.specialization)?;
        if compiled == nothing {
            return Ok(Cow::Borrowed(self));
        }
        Ok(Cow::Owned(DispatchConfig {
            grid_override: self.grid_override.or(compiled.grid_override),
            workgroup_override: compiled.workgroup_override,
            output_counts: compiled.output_counts.iter().chain(&self.output_counts).map(|(name, n)| (name.clone(), *n)).collect(),
            max_output_bytes: self.max_output_bytes.or(compiled.max_output_bytes),
            specialization: compiled.specialization.clone(),
            ulp_budget: compiled.ulp_budget,
            timeout: self.timeout.or(compiled.timeout),
            require_deterministic: self.require_deterministic.or(compiled.require_deterministic),
            profile: self.profile.clone().or_else(|| compiled.profile.clone()),
            label: self.label.clone().or_else(|| compiled.label.clone()),
        }))
    }
}

/// A call says something else than its pipeline was compiled with; the text says what, and what to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Conflict(String);

impl Conflict {
    fn about(what: &str) -> Conflict {
        Conflict(format!("the pipeline was compiled with another {what}. Fix: compile it again with the {what} of this call"))
    }
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Conflict {}

/// Values by name, in the order of the names.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
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

    /// Takes a value out.
    pub fn remove(&mut self, name: &str) -> Option<SpecValue> {
        self.entries.remove(name)
    }

    /// Keeps the values of which this is true.
    pub fn retain(&mut self, mut keep: impl FnMut(&str) -> bool) {
        self.entries.retain(|name, _| keep(name));
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

    /// The value that code which was compiled with `compiled` does not have, if there is one.
    pub fn check_within(&self, compiled: &SpecMap) -> Result<(), Conflict> {
        let Some((name, value)) = self.iter().find(|(name, value)| compiled.get(name) != Some(value)) else { return Ok(()) };
        let had = compiled.get(name).map_or("none".to_string(), ToString::to_string);
        Err(Conflict(format!(
            "the pipeline was compiled with another specialization: this call says {value} for `{name}`, and it was given {had}. \
             Fix: compile it again with the values of this call"
        )))
    }

    /// Names and values, so that different maps have different bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
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

impl IntoIterator for SpecMap {
    type Item = (String, SpecValue);
    type IntoIter = std::collections::btree_map::IntoIter<String, SpecValue>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.into_iter()
    }
}

impl From<SpecMap> for BTreeMap<String, SpecValue> {
    fn from(map: SpecMap) -> Self {
        map.entries
    }
}

/// A duration as seconds and nanoseconds. What serde has for it carries nanoseconds over into seconds; here there are fewer than a
/// second of them, so that equal durations are written alike.
mod duration {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::time::Duration;

    #[derive(Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Parts {
        secs: u64,
        nanos: u32,
    }

    pub(super) fn serialize<S: Serializer>(limit: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
        limit.map(|limit| Parts { secs: limit.as_secs(), nanos: limit.subsec_nanos() }).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
        match Option::<Parts>::deserialize(deserializer)? {
            Some(Parts { nanos: 1_000_000_000.., .. }) => Err(D::Error::custom("nanoseconds that are a second or more")),
            Some(Parts { secs, nanos }) => Ok(Some(Duration::new(secs, nanos))),
            None => Ok(None),
        }
    }
}
