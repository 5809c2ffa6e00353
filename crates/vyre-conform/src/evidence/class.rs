//! Classes of evidence, op by op.

use super::{Bound, RunData, Section};
use crate::space::Evidence;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// What kind of evidence there is, the strongest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Every value that the operands can have was judged, at the workgroup sizes that are named.
    Exhaustive,
    /// Every combination of the values at which ops go wrong was.
    Boundary,
    /// Values that were drawn at random were; (1 − p)ⁿ bounds what escaped.
    Sampled,
    /// Some values were, and nobody drew them: a part of a space, or what a generator of the user's chose. There is no bound.
    Chosen,
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Class::Exhaustive => "exhaustive",
            Class::Boundary => "boundary",
            Class::Sampled => "sampled",
            Class::Chosen => "chosen",
        })
    }
}

/// What holds for an op: one of its programs, on the cases of a space, at these workgroup sizes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// How much that says.
    pub class: Class,
    /// Where the cases come from.
    pub space: String,
    /// The alternative program, if it is one.
    pub alternative: Option<String>,
    /// Workgroup sizes at which all of it holds.
    pub workgroups: Vec<u32>,
    /// Values that were judged: n for faults of values. The same draws at another workgroup size are not new ones, so this is the
    /// number at the size that has the most.
    pub values: u64,
    /// Values that the space has; 0 if nobody knows.
    pub of: u64,
    /// Dispatches: n for faults of geometry, which show once in a dispatch however many cases it has.
    pub launches: u64,
}

impl Claim {
    /// The bound for faults of values, where there is one.
    #[must_use]
    pub fn bound(&self) -> Option<Bound> {
        (self.class == Class::Sampled).then_some(Bound { n: self.values })
    }
}

/// Workgroup sizes of an op.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sizes {
    /// The device said that it ran them.
    pub confirmed: Vec<u32>,
    /// They were asked for, and the device did not say what it ran.
    pub not_confirmed: Vec<u32>,
}

/// What a run says about an op.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpEvidence {
    /// The op.
    pub op: String,
    /// Its edition.
    pub version: u32,
    /// What a device must be capable of.
    pub profile: String,
    /// What holds, the strongest first. Sections in which something failed are not here.
    pub claims: Vec<Claim>,
    /// Cases that were judged.
    pub tested: u64,
    /// Cases that failed.
    pub failed: u64,
    /// Cases that the device cannot run.
    pub skipped: u64,
    /// Cases that were asked for and not run.
    pub not_run: u64,
    /// Why cases were skipped: section, and the device's reason.
    pub skips: BTreeMap<String, String>,
    /// Workgroup sizes.
    pub sizes: Sizes,
}

impl OpEvidence {
    /// The strongest class.
    #[must_use]
    pub fn class(&self) -> Option<Class> {
        self.claims.iter().map(|claim| claim.class).min()
    }

    /// All dispatches that hold.
    #[must_use]
    pub fn launches(&self) -> u64 {
        self.claims.iter().map(|claim| claim.launches).sum()
    }
}

/// What a section says, if anything was judged.
fn class(section: &Section) -> Option<Class> {
    let tested = section.seal.tested;
    if tested == 0 {
        return None;
    }
    let is_whole = section.is_described && tested == section.info.cases && tested == section.info.space_cases;
    Some(match section.evidence() {
        Some(Evidence::Exhaustive) if is_whole => Class::Exhaustive,
        Some(Evidence::Boundary) if is_whole => Class::Boundary,
        Some(Evidence::Sampled) => Class::Sampled,
        Some(Evidence::Exhaustive | Evidence::Boundary) | None => Class::Chosen,
    })
}

pub(super) fn ops(run: &RunData) -> Vec<OpEvidence> {
    let mut ops: BTreeMap<&str, Vec<&Section>> = BTreeMap::new();
    for section in &run.sections {
        ops.entry(&section.info.op).or_default().push(section);
    }
    ops.into_iter().map(|(op, sections)| evidence(op, &sections)).collect()
}

fn evidence(op: &str, sections: &[&Section]) -> OpEvidence {
    let mut claims: BTreeMap<(Class, &str, Option<&str>), Claim> = BTreeMap::new();
    let mut skips = BTreeMap::new();
    let (mut confirmed, mut not_confirmed) = (BTreeSet::new(), BTreeSet::new());
    for section in sections {
        let info = &section.info;
        if let Some(reason) = &section.skipped {
            skips.insert(info.id.clone(), reason.clone());
        }
        if section.seal.tested > 0 {
            let sizes = if section.seal.unconfirmed_units == 0 { &mut confirmed } else { &mut not_confirmed };
            sizes.insert(info.workgroup);
        }
        let Some(class) = class(section).filter(|_| section.seal.failed == 0) else { continue };
        let claim = claims.entry((class, &info.space, info.alternative.as_deref())).or_insert_with(|| Claim {
            class,
            space: info.space.clone(),
            alternative: info.alternative.clone(),
            workgroups: Vec::new(),
            values: 0,
            of: info.space_cases,
            launches: 0,
        });
        claim.workgroups.push(info.workgroup);
        claim.values = claim.values.max(section.seal.tested);
        claim.launches += section.launches();
    }
    claims.values_mut().for_each(|claim| claim.workgroups.sort_unstable());
    let sum = |count: fn(&Section) -> u64| sections.iter().map(|section| count(section)).sum();
    // A size is confirmed if the device said so every time.
    let confirmed = confirmed.difference(&not_confirmed).copied().collect();
    OpEvidence {
        op: op.into(),
        version: sections.iter().map(|section| section.info.version).max().unwrap_or(0),
        profile: sections.first().map_or(String::new(), |section| section.info.profile.clone()),
        claims: claims.into_values().collect(),
        tested: sum(|section| section.seal.tested),
        failed: sum(|section| section.seal.failed),
        skipped: sum(|section| section.seal.skipped),
        not_run: sum(Section::not_run),
        skips,
        sizes: Sizes { confirmed, not_confirmed: not_confirmed.into_iter().collect() },
    }
}
