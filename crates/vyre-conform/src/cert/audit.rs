//! Running units of a certified run again.
//!
//! The certificate has the roots, the ledger has the leaves. First the ledger must be the one that was signed; then units of it are
//! drawn at random, run again, and compared leaf by leaf. Whoever forged a fraction p of the units escapes k draws with probability
//! (1 − p)ᵏ.

use super::Certificate;
use crate::digest::Digest;
use crate::evidence::{Bound, RunData, profiles};
use crate::ledger::{LedgerError, Store, UnitRecord};
use std::collections::BTreeSet;
use std::fmt;

/// Whoever can run a unit of a suite on a device.
pub trait Rerun {
    /// Runs the unit of a section that begins with this case, on the device that is audited. The text says why it could not be run.
    fn unit(&mut self, section: &str, first: u64) -> Result<UnitRecord, String>;
}

/// What came of a unit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The leaf that was signed.
    Same,
    /// Another leaf: the claim is refuted.
    Differs {
        /// The record that was signed.
        signed: Box<UnitRecord>,
        /// What the device gave now.
        found: Box<UnitRecord>,
    },
    /// It could not be run, and this is why.
    NotRun(String),
}

/// A unit that was run again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Audited {
    /// Its section.
    pub section: String,
    /// Its first case.
    pub first: u64,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of all.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Audit {
    /// The units, in the order of the ledger.
    pub units: Vec<Audited>,
    /// Units of the whole run.
    pub of: u64,
}

impl Audit {
    /// Units with another leaf than the one that was signed.
    pub fn refuted(&self) -> impl Iterator<Item = &Audited> {
        self.units.iter().filter(|unit| matches!(unit.outcome, Outcome::Differs { .. }))
    }

    /// Units that could not be run.
    pub fn not_run(&self) -> impl Iterator<Item = &Audited> {
        self.units.iter().filter(|unit| matches!(unit.outcome, Outcome::NotRun(_)))
    }

    /// How sure the units that were the same make.
    #[must_use]
    pub fn bound(&self) -> Bound {
        Bound { n: self.units.iter().filter(|unit| unit.outcome == Outcome::Same).count() as u64 }
    }
}

/// Why nothing was audited.
#[derive(Debug)]
pub enum AuditError {
    /// The ledger cannot be read.
    Ledger(LedgerError),
    /// The ledger is not the one whose roots were signed; what is different.
    OtherRun(String),
    /// The system gives no random numbers.
    NoRandomness(String),
}

impl fmt::Display for AuditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AuditError::Ledger(error) => error.fmt(f),
            AuditError::OtherRun(what) => write!(f, "the run is not the one that was signed: {what}"),
            AuditError::NoRandomness(why) => write!(f, "the system gives no random numbers: {why}"),
        }
    }
}

impl std::error::Error for AuditError {}

impl From<LedgerError> for AuditError {
    fn from(error: LedgerError) -> AuditError {
        AuditError::Ledger(error)
    }
}

/// Runs so many units again, or all if there are fewer, each drawn with the same probability.
pub fn audit(
    certificate: &Certificate,
    ledger: &dyn Store,
    run: &RunData,
    units: u64,
    rerun: &mut dyn Rerun,
) -> Result<Audit, AuditError> {
    same_run(certificate, run)?;
    let of = certificate.counts.units;
    let chosen = draw(units.min(of), of)?;
    let mut records = Vec::with_capacity(chosen.len());
    let mut number = 0;
    ledger.for_each_unit(&mut |section, record| {
        if chosen.contains(&number) {
            records.push((section.to_string(), record));
        }
        number += 1;
    })?;
    let again = |(section, signed): (String, UnitRecord)| {
        let first = signed.first;
        let outcome = match rerun.unit(&section, first) {
            Ok(found) if found.leaf(&section) == signed.leaf(&section) => Outcome::Same,
            Ok(found) => Outcome::Differs { signed: Box::new(signed), found: Box::new(found) },
            Err(why) => Outcome::NotRun(why),
        };
        Audited { section, first, outcome }
    };
    Ok(Audit { units: records.into_iter().map(again).collect(), of })
}

/// Whether a run is the one that a certificate was signed for.
pub fn same_run(certificate: &Certificate, run: &RunData) -> Result<(), AuditError> {
    let differs = |what: &str, signed: &Digest, found: &Digest| {
        Err(AuditError::OtherRun(format!("{what} is {signed} in the certificate and {found} in the ledger")))
    };
    if certificate.root != run.root {
        return differs("the root", &certificate.root, &run.root);
    }
    if let Some((what, signed, found)) = certificate.identity.differences(&run.identity).first() {
        return Err(AuditError::OtherRun(format!("{what} is `{signed}` in the certificate and `{found}` in the ledger")));
    }
    let found = profiles(run);
    for (name, signed) in &certificate.profiles {
        match found.get(name) {
            Some(found) if found == signed => {}
            Some(found) => return differs(&format!("profile `{name}`"), &signed.root, &found.root),
            None => return Err(AuditError::OtherRun(format!("it has no profile `{name}`"))),
        }
    }
    Ok(())
}

/// So many different numbers below another, none more likely than the other (Floyd's algorithm).
fn draw(count: u64, below: u64) -> Result<BTreeSet<u64>, AuditError> {
    let mut chosen = BTreeSet::new();
    for last in below - count..below {
        let number = random(last + 1)?;
        if !chosen.insert(number) {
            chosen.insert(last);
        }
    }
    Ok(chosen)
}

/// A number below another that is above 0.
fn random(below: u64) -> Result<u64, AuditError> {
    // What lies above the last multiple would make small numbers more likely.
    let most = u64::MAX - u64::MAX % below;
    loop {
        let number = getrandom::u64().map_err(|error| AuditError::NoRandomness(error.to_string()))?;
        if number < most {
            return Ok(number % below);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_drawn_as_often_as_the_other() {
        let mut counts = [0u32; 10];
        for _ in 0..10_000 {
            let drawn = draw(3, 10).unwrap();
            assert_eq!(drawn.len(), 3);
            drawn.iter().for_each(|number| counts[*number as usize] += 1);
        }
        // 3000 each, give or take six standard deviations.
        assert!(counts.iter().all(|count| (2700..3300).contains(count)), "{counts:?}");
        assert_eq!(draw(5, 5).unwrap().len(), 5);
        assert!(draw(0, 0).unwrap().is_empty());
    }
}
