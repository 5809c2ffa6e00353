//! Roots of profiles: what all devices that are capable of the same have in common.
//!
//! A profile (`core`, `f64`, `subgroups`, `wide`) is a part of the suite. Its tree has the sections of the profile by name, each with its units
//! in order, without units that have skipped cases and without sections whose right results depend on the order of things. So two
//! devices that give the right bytes and claim a profile have one root for it, and a device that leaves units out has another number of
//! units, which is signed with the root.

use super::RunData;
use crate::digest::Digest;
use crate::ledger::Seal;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The root of a profile, and how large it is.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProfileRoot {
    /// The root over the profile's units.
    pub root: Digest,
    /// Units in the tree.
    pub units: u64,
    /// Sections in the tree.
    pub sections: u64,
    /// Cases that were judged in it.
    pub cases: u64,
    /// Those that failed.
    pub failed: u64,
    /// Units that are left out because the device cannot run all of them.
    pub skipped_units: u64,
    /// Units that are left out because what is right depends on the order of things.
    pub order_dependent_units: u64,
    /// Cases that were asked for and not run.
    pub not_run: u64,
}

impl ProfileRoot {
    /// Whether a device has shown all of the profile: nothing failed, was skipped or left out.
    #[must_use]
    pub fn is_claimed(&self) -> bool {
        self.units > 0 && self.failed == 0 && self.skipped_units == 0 && self.not_run == 0
    }
}

/// The roots of all profiles that a run has units of, by name.
#[must_use]
pub fn profiles(run: &RunData) -> BTreeMap<String, ProfileRoot> {
    let mut nodes: BTreeMap<&str, Vec<Digest>> = BTreeMap::new();
    let mut roots: BTreeMap<String, ProfileRoot> = BTreeMap::new();
    // Sections are in the order of their names.
    for section in &run.sections {
        let root = roots.entry(section.info.profile.clone()).or_default();
        let Seal { units, tested, failed, skipped_units, without_skips, .. } = &section.seal;
        root.not_run += section.not_run();
        root.skipped_units += skipped_units;
        if section.info.is_order_dependent {
            root.order_dependent_units += units - skipped_units;
            root.failed += failed;
            continue;
        }
        let units = units - skipped_units;
        if units == 0 {
            continue;
        }
        root.units += units;
        root.sections += 1;
        root.cases += tested;
        root.failed += failed;
        nodes.entry(&section.info.profile).or_default().push(Seal::node(&section.info.id, units, without_skips));
    }
    for (name, root) in &mut roots {
        root.root = Digest::tree(nodes.get(name.as_str()).map_or(&[], Vec::as_slice));
    }
    roots
}
