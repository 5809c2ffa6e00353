//! Records of units, and the root over them.

use super::{Controls, Seal};
use crate::digest::Digest;
use crate::report::Summary;
use crate::space::Evidence;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a run is about: only a run with the same may go on where it was cut off.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Identity {
    /// The hash of all specs, programs and spaces.
    pub suite: String,
    /// Which part of them.
    pub selection: String,
    /// Seed, shard, and whatever else changes what is run.
    pub settings: String,
    /// The backend's id.
    pub backend: String,
    /// Its version; `None` if it does not say one, and then nothing is ever resumed.
    pub version: Option<String>,
    /// The device's fingerprint.
    pub device: String,
}

impl Identity {
    /// What is different, with both values.
    #[must_use]
    pub fn differences(&self, other: &Identity) -> Vec<(String, String, String)> {
        let version = |version: &Option<String>| version.clone().unwrap_or_else(|| "not said".into());
        let rows = [
            ("suite", self.suite.clone(), other.suite.clone()),
            ("selection", self.selection.clone(), other.selection.clone()),
            ("settings", self.settings.clone(), other.settings.clone()),
            ("backend", self.backend.clone(), other.backend.clone()),
            ("version of the backend", version(&self.version), version(&other.version)),
            ("device", self.device.clone(), other.device.clone()),
        ];
        let differs = |(what, one, other): (&str, String, String)| (one != other).then(|| (what.to_string(), one, other));
        rows.into_iter().filter_map(differs).collect()
    }
}

/// What changes what is run, in the words of [`Identity::settings`].
#[must_use]
pub fn settings(is_nonce: bool, seed: u64, shard: (u64, u64), tier: Option<&str>, controls: bool, forms: &str) -> String {
    let drawn = if is_nonce { "nonce" } else { "seed" };
    let (shard, shards) = shard;
    let tier = tier.unwrap_or("none");
    format!("{drawn} {seed}, shard {shard} of {shards}, tier {tier}, controls {controls}, forms {forms}")
}

/// The shard that settings say, of how many.
pub(super) fn shard_of(settings: &str) -> Option<(u64, u64)> {
    let part = settings.split(", ").find_map(|part| part.strip_prefix("shard "))?;
    let (shard, shards) = part.split_once(" of ")?;
    Some((shard.parse().ok()?, shards.parse().ok()?))
}

/// A part of the suite that has one program, one workgroup size and one space of cases.
///
/// Its name is `OP:wg=N:SPACE`, with `:alt=NAME` behind the op if the program is an alternative one; a unit's is that and the number of
/// its first case.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SectionInfo {
    /// Its name.
    pub id: String,
    /// The op: `ops.int.add:u32`.
    pub op: String,
    /// The op's edition.
    pub version: u32,
    /// The alternative program, if it is one.
    pub alternative: Option<String>,
    /// Invocations along x of a workgroup.
    pub workgroup: u32,
    /// Where its cases come from.
    pub space: String,
    /// What it proves if all cases of the space pass.
    pub evidence: Evidence,
    /// Cases of the whole space.
    pub space_cases: u64,
    /// Cases of it that the run was asked for.
    pub cases: u64,
    /// Dispatches that these take: a fault of geometry shows once per dispatch, not once per case.
    pub launches: u64,
    /// What a device must be capable of to be asked: `core`, `f64`, `subgroups`, `wide`.
    pub profile: String,
    /// The element types of its outputs, by binding, as the text form spells them.
    pub outputs: Vec<String>,
    /// Whether what is right may depend on the order in which the device happens to do things, as with litmus tests. Such sections are
    /// outside the roots of profiles, because two right devices differ in them.
    pub is_order_dependent: bool,
}

/// What is known about a run as a whole.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct RunInfo {
    /// `smoke`, `standard` or `deep`, if it was one of these.
    pub tier: Option<String>,
    /// The command that runs it again.
    pub command: String,
    /// Seconds since 1970 when it began.
    pub began: u64,
    /// Milliseconds that it took, all parts together.
    pub took_ms: u64,
    /// The device, for people.
    pub device_name: String,
    /// Versions of what took part, by name.
    pub versions: BTreeMap<String, String>,
    /// The number that a verifier chose for the sampled cases, if one did.
    #[serde(default)]
    pub nonce: Option<u64>,
    /// The blind controls of the run.
    pub controls: Controls,
    /// What failed in an earlier run, ran first in this one, and fails still. It is outside the tree.
    #[serde(default)]
    pub still_failing: Vec<StillFailing>,
}

/// A case that failed in an earlier run and fails still.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct StillFailing {
    /// The op.
    pub op: String,
    /// Invocations along x of its workgroups.
    pub workgroup: u32,
    /// The hash of the bundle that it is kept in.
    pub bundle: String,
}

/// What came of a unit.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct UnitRecord {
    /// The number of its first case.
    pub first: u64,
    /// How many cases it has.
    pub cases: u64,
    /// The hash of its inputs, where they do not follow from the section's name and the numbers.
    pub inputs: Option<Digest>,
    /// The hash of what was expected.
    pub expected: Digest,
    /// The hash of what the device gave.
    pub actual: Digest,
    /// Cases that were judged.
    pub tested: u64,
    /// Those that failed.
    pub failed: u64,
    /// Cases that the device cannot run.
    pub skipped: u64,
    /// Cases that the reference was asked about too. Not part of the leaf.
    pub referred: u64,
    /// Whether the device said that it ran the workgroup size that it was asked for. Not part of the leaf.
    pub confirmed: bool,
}

impl UnitRecord {
    /// Its cases, as they count in a summary.
    #[must_use]
    pub fn counts(&self) -> Summary {
        Summary {
            tested: self.tested,
            passed: self.tested - self.failed,
            failed: self.failed,
            skipped: self.skipped,
            regressions: 0,
            referred: self.referred,
        }
    }

    /// The hash of what the unit says about the bytes of this section.
    #[must_use]
    pub fn leaf(&self, section: &str) -> Digest {
        let UnitRecord { first, cases, inputs, expected, actual, tested, failed, skipped, referred: _, confirmed: _ } = self;
        let [first, cases, tested, failed, skipped] = [first, cases, tested, failed, skipped].map(|n| n.to_le_bytes());
        let inputs: &[u8] = inputs.as_ref().map_or(&[], |digest| &digest.0);
        let parts: [&[u8]; 9] = [section.as_bytes(), &first, &cases, inputs, &expected.0, &actual.0, &tested, &failed, &skipped];
        Digest::of(parts)
    }
}

/// The root over leaves by section and first case: a tree for each section, and a tree over the sections by name.
#[must_use]
pub fn root_of(sections: &BTreeMap<String, BTreeMap<u64, Digest>>) -> Digest {
    let section = |(name, leaves): (&String, &BTreeMap<u64, Digest>)| {
        let leaves: Vec<Digest> = leaves.values().copied().collect();
        Seal::node(name, leaves.len() as u64, &Digest::tree(&leaves))
    };
    Digest::tree(&sections.iter().map(section).collect::<Vec<_>>())
}
