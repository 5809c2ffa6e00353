//! The sum over the batches of a unit.

use crate::digest::Digest;
use crate::examine::{Confirmed, Examined};
use crate::ledger::UnitRecord;

/// What came of the batches of a unit so far. Columns are hashed apart, so that it does not show how a unit was cut into batches.
#[derive(Default)]
pub(crate) struct UnitSum {
    first: u64,
    cases: u64,
    tested: u64,
    failed: u64,
    skipped: u64,
    referred: u64,
    is_confirmed: Option<bool>,
    inputs: Vec<blake3::Hasher>,
    expected: Vec<blake3::Hasher>,
    /// As long as all bytes are as expected there is nothing to hash twice.
    actual: Option<Vec<blake3::Hasher>>,
}

impl UnitSum {
    /// A unit that begins with this case.
    pub fn new(first: u64) -> UnitSum {
        UnitSum { first, ..UnitSum::default() }
    }

    /// Adds cases that were asked for, whatever came of them.
    pub fn cases(&mut self, count: u64) {
        self.cases += count;
    }

    /// Adds inputs that do not follow from numbers.
    pub fn inputs(&mut self, columns: &[Vec<u8>]) {
        update(&mut self.inputs, columns);
    }

    /// Adds cases that failed before anything was dispatched.
    pub fn fail(&mut self, count: u64) {
        self.tested += count;
        self.failed += count;
    }

    /// Adds cases that the device cannot run.
    pub fn skip(&mut self, count: u64) {
        self.skipped += count;
    }

    /// Adds what came of a batch of so many cases.
    pub fn take(&mut self, examined: &Examined, cases: u64) {
        self.tested += examined.tested;
        self.failed += examined.findings.len() as u64;
        self.referred += examined.referred;
        self.skipped += if examined.skipped.is_none() { examined.unsupported } else { 0 };
        if examined.skipped.is_some() {
            self.skipped += cases - examined.tested;
            return;
        }
        let is_confirmed = examined.confirmed == Confirmed::Yes;
        self.is_confirmed = Some(self.is_confirmed.unwrap_or(true) && is_confirmed);
        if self.actual.is_none() && examined.actual != examined.expected {
            self.actual = Some(self.expected.clone());
        }
        if let Some(actual) = &mut self.actual {
            update(actual, &examined.actual);
        }
        update(&mut self.expected, &examined.expected);
    }

    /// The record of the whole unit.
    pub fn record(self) -> UnitRecord {
        let is_generated = !self.inputs.is_empty();
        let inputs = digest(&self.inputs);
        let expected = digest(&self.expected);
        let actual = self.actual.as_deref().map_or(expected, digest);
        UnitRecord {
            first: self.first,
            cases: self.cases,
            inputs: is_generated.then_some(inputs),
            expected,
            actual,
            tested: self.tested,
            failed: self.failed,
            skipped: self.skipped,
            referred: self.referred,
            confirmed: self.is_confirmed.unwrap_or(false),
        }
    }
}

fn update(hashers: &mut Vec<blake3::Hasher>, columns: &[Vec<u8>]) {
    hashers.resize_with(columns.len().max(hashers.len()), blake3::Hasher::new);
    hashers.iter_mut().zip(columns).for_each(|(hasher, column)| {
        hasher.update(column);
    });
}

fn digest(hashers: &[blake3::Hasher]) -> Digest {
    Digest::of(hashers.iter().map(|hasher| *hasher.finalize().as_bytes()))
}
