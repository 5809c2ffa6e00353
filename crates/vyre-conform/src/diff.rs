//! What is different between two runs.
//!
//! Runs are compared from the top: sections whose trees have one root are not read, and of the others only the subtrees that differ. So
//! the time follows the number of differences and not the number of units.

use crate::digest::Digest;
use crate::ledger::{Identity, LedgerError, Seal, Store, UnitRecord};
use serde::Serialize;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::iter::Peekable;

/// Units of each kind and section that are named; all are counted.
const NAMED: usize = 16;

/// How a unit of the second run differs from that of the first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// It fails, and held before.
    New,
    /// It holds, and failed before.
    Fixed,
    /// It holds or fails as before, and the bytes or the number of failures are others.
    Changed,
    /// It was judged before, and is not now: skipped, left out, or not reached.
    NotRun,
    /// It is judged now, and was not before.
    Added,
}

impl Kind {
    /// All, in the order in which they are told.
    pub const ALL: [Kind; 5] = [Kind::New, Kind::Changed, Kind::NotRun, Kind::Fixed, Kind::Added];

    /// What it is called in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::New => "new",
            Kind::Fixed => "fixed",
            Kind::Changed => "changed",
            Kind::NotRun => "not run",
            Kind::Added => "added",
        }
    }
}

/// A unit that differs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct UnitDifference {
    /// Its first case.
    pub first: u64,
    /// Its cases.
    pub cases: u64,
    /// Cases that failed in the first run, if it was judged there.
    pub failed_before: Option<u64>,
    /// Cases that fail in the second, if it is judged there.
    pub failed_now: Option<u64>,
    /// Whether what is expected is another too: then the suite has changed, and not only the device.
    pub is_expected_changed: bool,
}

/// Units of one kind in a section.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Units {
    /// How many.
    pub count: u64,
    /// The first of them.
    pub first: Vec<UnitDifference>,
}

/// What is different between two runs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Difference {
    /// What the two runs do not have in common: in which words, in the first and in the second.
    pub runs: Vec<(String, String, String)>,
    /// The roots.
    pub roots: [Digest; 2],
    /// By section and kind.
    pub sections: BTreeMap<String, BTreeMap<Kind, Units>>,
    /// Sections that both have.
    pub compared: u64,
    /// Units of both that had to be read.
    pub read: u64,
}

impl Difference {
    /// Units of a kind.
    #[must_use]
    pub fn count(&self, kind: Kind) -> u64 {
        self.sections.values().filter_map(|kinds| kinds.get(&kind)).map(|units| units.count).sum()
    }

    /// Whether the runs judged the same units with the same results.
    #[must_use]
    pub fn is_same(&self) -> bool {
        self.sections.is_empty()
    }
}

/// Compares two runs; `None` if they have no section in common.
pub fn diff(one: (&dyn Store, &Identity), other: (&dyn Store, &Identity)) -> Result<Option<Difference>, LedgerError> {
    let (seals_one, seals_other) = (seals(one.0)?, seals(other.0)?);
    let root = |seals: &BTreeMap<String, Seal>| {
        Digest::tree(&seals.iter().map(|(name, seal)| Seal::node(name, seal.units, &seal.root)).collect::<Vec<_>>())
    };
    let mut difference = Difference {
        runs: one.1.differences(other.1),
        roots: [root(&seals_one), root(&seals_other)],
        sections: BTreeMap::new(),
        compared: seals_one.keys().filter(|name| seals_other.contains_key(*name)).count() as u64,
        read: 0,
    };
    if difference.compared == 0 {
        return Ok(None);
    }
    let mut names: Vec<&String> = seals_one.keys().chain(seals_other.keys()).collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        let ranges = ranges(seals_one.get(name), seals_other.get(name));
        let mut found: BTreeMap<Kind, Units> = BTreeMap::new();
        for (from, to) in ranges {
            let (mine, theirs) = (one.0.units_between(name, from, to)?, other.0.units_between(name, from, to)?);
            difference.read += (mine.len() + theirs.len()) as u64;
            merge(mine, theirs, &mut found);
        }
        if !found.is_empty() {
            difference.sections.insert(name.clone(), found);
        }
    }
    Ok(Some(difference))
}

fn seals(ledger: &dyn Store) -> Result<BTreeMap<String, Seal>, LedgerError> {
    let ended = ledger.seals()?;
    Ok(match ended {
        Some(seals) => seals,
        None => ledger.seal()?,
    }
    .into_iter()
    .collect())
}

/// The ranges of cases in which two trees differ.
fn ranges(one: Option<&Seal>, other: Option<&Seal>) -> Vec<(u64, Option<u64>)> {
    let (Some(one), Some(other)) = (one, other) else { return vec![(0, None)] };
    if one.root == other.root && one.units == other.units {
        return Vec::new();
    }
    let mut ranges: Vec<(u64, Option<u64>)> = Vec::new();
    let mut number = 0;
    // As long as subtrees begin with the same case, they are about the same units.
    while let (Some(mine), Some(theirs)) = (one.chunks.get(number), other.chunks.get(number)) {
        let end = |seal: &Seal| seal.chunks.get(number + 1).map(|chunk| chunk.first);
        let (my_end, their_end) = (end(one), end(other));
        let from = if number == 0 { 0 } else { mine.first };
        if (number > 0 && mine.first != theirs.first) || my_end != their_end {
            ranges.push((from.min(theirs.first), None));
            return ranges;
        }
        if mine != theirs {
            match ranges.last_mut() {
                Some((_, to)) if *to == Some(from) => *to = my_end,
                Some(_) | None => ranges.push((from, my_end)),
            }
        }
        number += 1;
    }
    ranges
}

/// Goes through units of both runs in the order of their cases.
fn merge(one: Vec<UnitRecord>, other: Vec<UnitRecord>, found: &mut BTreeMap<Kind, Units>) {
    let (mut one, mut other) = (one.into_iter().peekable(), other.into_iter().peekable());
    loop {
        let take = |units: &mut Peekable<std::vec::IntoIter<UnitRecord>>, first: u64| units.next_if(|unit| unit.first == first);
        let first = match (one.peek(), other.peek()) {
            (None, None) => return,
            (Some(unit), None) | (None, Some(unit)) => unit.first,
            (Some(mine), Some(theirs)) => mine.first.min(theirs.first),
        };
        let (before, now) = (take(&mut one, first), take(&mut other, first));
        let Some(kind) = kind(before.as_ref(), now.as_ref()) else { continue };
        let failed = |unit: &Option<UnitRecord>| unit.as_ref().filter(|unit| unit.tested > 0).map(|unit| unit.failed);
        let units = match found.entry(kind) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(Units::default()),
        };
        units.count += 1;
        if units.first.len() < NAMED {
            units.first.push(UnitDifference {
                first,
                cases: now.as_ref().or(before.as_ref()).map_or(0, |unit| unit.cases),
                failed_before: failed(&before),
                failed_now: failed(&now),
                is_expected_changed: matches!((&before, &now), (Some(one), Some(other)) if one.expected != other.expected),
            });
        }
    }
}

fn kind(before: Option<&UnitRecord>, now: Option<&UnitRecord>) -> Option<Kind> {
    let judged = |unit: &&UnitRecord| unit.tested > 0;
    match (before.filter(judged), now.filter(judged)) {
        (None, None) => None,
        (Some(_), None) => Some(Kind::NotRun),
        (None, Some(now)) if now.failed > 0 => Some(Kind::New),
        (None, Some(_)) => Some(Kind::Added),
        (Some(before), Some(now)) if before.failed == 0 && now.failed > 0 => Some(Kind::New),
        (Some(before), Some(now)) if before.failed > 0 && now.failed == 0 => Some(Kind::Fixed),
        // Fewer cases judged of the same unit is a part that was not run.
        (Some(before), Some(now)) if now.tested < before.tested => Some(Kind::NotRun),
        (Some(before), Some(now)) => {
            let about =
                |unit: &UnitRecord| (unit.actual, unit.expected, unit.inputs, unit.tested, unit.failed, unit.skipped, unit.cases);
            (about(before) != about(now)).then_some(Kind::Changed)
        }
    }
}
