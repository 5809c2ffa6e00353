//! What a run says in the end, for people and for other tools.
//!
//! [`Report`] is a run as it is told; each of its methods writes it in one form. What a form leaves out, it counts.

mod failing;
mod hex;
mod html;
mod junit;
mod lines;
mod markdown;
mod reduced;
mod text;
mod whole;

pub use hex::{Cell, HexDiff, Lane, Row, lane};
pub(crate) use markdown::{code, cut, escaped};
pub use reduced::ReducedFailure;
pub use whole::Report;
pub(crate) use whole::{duration, grouped};

use crate::digest::Digest;
use crate::examine::FindingKind;
use crate::ledger::{LedgerError, Store, remark, root_of};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use vyre_foundation::case::bytes;

/// One case on which a backend and the reference do not agree, with everything that shows it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ParityFailure {
    /// The op.
    pub op_id: String,
    /// Where the case comes from: a generator or a space, or `regression`.
    pub generator: String,
    /// Its name there.
    pub input_label: String,
    /// The bytes of the case.
    #[serde(with = "bytes")]
    pub input: Vec<u8>,
    /// What the device gave, if it gave something.
    #[serde(with = "bytes")]
    pub gpu_output: Vec<u8>,
    /// What was expected, if that is known.
    #[serde(with = "bytes")]
    pub cpu_output: Vec<u8>,
    /// What is wrong, for people; `[alt:NAME]` before it if an alternative program was run.
    pub message: String,
    /// The edition of the op.
    pub spec_version: u32,
    /// Invocations along x of the workgroups that it ran in.
    pub workgroup_size: u32,
    /// How it failed.
    pub kind: FindingKind,
    /// The unit that it belongs to, as a query takes it; empty for regressions.
    pub unit: String,
}

/// How many cases there were.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Summary {
    /// Cases that were judged, each at each workgroup size and with each program.
    pub tested: u64,
    /// Those that hold.
    pub passed: u64,
    /// Those that do not.
    pub failed: u64,
    /// Cases that the device cannot run, and says so.
    pub skipped: u64,
    /// Of those that were judged, the ones that failed in an earlier run and ran first.
    pub regressions: u64,
    /// Of those that were judged, the ones that the reference was asked about too.
    pub referred: u64,
}

impl Summary {
    pub(crate) fn add(&mut self, other: &Summary) {
        let Summary { tested, passed, failed, skipped, regressions, referred } = other;
        self.tested += tested;
        self.passed += passed;
        self.failed += failed;
        self.skipped += skipped;
        self.regressions += regressions;
        self.referred += referred;
    }
}

/// A program of an op at a workgroup size that the device did not run, or did not say that it ran.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Remark {
    /// Which part of the suite.
    pub section: String,
    /// What about it.
    pub what: String,
}

/// What came of a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RunReport {
    /// The failures that were kept; [`Summary::failed`] counts all.
    pub failures: Vec<ParityFailure>,
    /// How many cases there were.
    pub summary: Summary,
    /// The root over all units of the run: equal for runs that gave equal bytes, however they were divided, cut off or ordered.
    pub root: Digest,
    /// Units that the run has judged.
    pub units: u64,
    /// What was skipped, with the device's reason.
    pub skipped: Vec<Remark>,
    /// What was not run because the device hangs, with what it hangs on.
    pub given_up: Vec<Remark>,
    /// Workgroup sizes that were asked for and that the device did not say it ran.
    pub not_confirmed: Vec<Remark>,
}

impl RunReport {
    /// What is committed to a ledger, beside counts and failures of what is not part of it.
    pub(crate) fn of(
        ledger: &dyn Store,
        mut summary: Summary,
        mut failures: Vec<ParityFailure>,
    ) -> Result<RunReport, LedgerError> {
        let mut leaves: BTreeMap<String, BTreeMap<u64, Digest>> = BTreeMap::new();
        let mut not_confirmed = BTreeSet::new();
        let mut units = 0;
        ledger.for_each_unit(&mut |section, record| {
            summary.add(&record.counts());
            if !record.confirmed && record.tested > 0 {
                not_confirmed.insert(section.to_string());
            }
            units += 1;
            leaves.entry(section.into()).or_default().insert(record.first, record.leaf(section));
        })?;
        failures.extend(ledger.failures()?);
        let remarks = ledger.remarks()?;
        let of = |kind: &str| {
            let remarks = remarks.iter().filter(|(_, of, _)| of == kind);
            remarks.map(|(section, _, what)| Remark { section: section.clone(), what: what.clone() }).collect()
        };
        let (skipped, given_up) = (of(remark::SKIPPED), of(remark::GIVEN_UP));
        let unsaid = |section| Remark { section, what: "the device does not say which workgroup size it ran".into() };
        let not_confirmed = not_confirmed.into_iter().map(unsaid).collect();
        Ok(RunReport { failures, summary, root: root_of(&leaves), units, skipped, given_up, not_confirmed })
    }
}
