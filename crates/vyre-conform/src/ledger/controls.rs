//! Blind controls, as a ledger knows them.
//!
//! Units of a shard, in the order of the ledger, stand in blocks of fifty, and one of each block is run once more with a planted fault.
//! Which one follows from a secret. Its hash is written down before anything runs, and the secret is told with the results, so that anyone
//! can see that the places were not chosen afterwards.

use crate::digest::Digest;
use serde::{Deserialize, Serialize};

/// One control in so many units.
const BLOCK: u64 = 50;

/// What the remark about a control begins with if it was not found out.
pub(crate) const SURVIVED: &str = "not noticed: ";

/// Units that must fail, hidden among the others: on devices with a planted fault, or with a bit flipped in what the device gave.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Controls {
    /// The hash of the secret that their places come from, written before the run began.
    pub commitment: Option<Digest>,
    /// The secret, told when the run has ended.
    pub secret: Option<Digest>,
    /// How many ran.
    pub ran: u64,
    /// How many were found out.
    pub caught: u64,
    /// Those that were not: what was planted where.
    pub survived: Vec<String>,
    /// Of a run that was put together from shards: the commitment and the secret of each, in order. Then it has none of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shards: Vec<(Digest, Digest)>,
}

impl Controls {
    /// Those of a run that begins, at the places that follow from a secret.
    #[must_use]
    pub fn committed(secret: Digest) -> Controls {
        Controls { commitment: Some(commitment(secret)), secret: Some(secret), ..Controls::default() }
    }

    /// Adds those of the next shard.
    pub(super) fn join(&mut self, next: Controls) {
        self.ran += next.ran;
        self.caught += next.caught;
        self.survived.extend(next.survived);
        // A shard without them says so by a secret that was not committed to.
        self.shards.push((next.commitment.unwrap_or_default(), next.secret.unwrap_or_default()));
    }

    /// Where they are in a run of so many units, if its secrets are known.
    #[must_use]
    pub fn places(&self, units: u64) -> Option<Vec<Places>> {
        if self.shards.is_empty() {
            return self.secret.map(|secret| vec![Places::new(secret, units)]);
        }
        let count = self.shards.len() as u64;
        let mine = |number: u64| units.saturating_sub(number).div_ceil(count);
        Some((0..).zip(&self.shards).map(|(number, (_, secret))| Places::new(*secret, mine(number))).collect())
    }

    /// Counts one, by the place of its unit and what was remarked about it.
    pub fn add(&mut self, place: &str, remark: &str) {
        self.ran += 1;
        match remark.strip_prefix(SURVIVED) {
            None => self.caught += 1,
            Some(planted) => self.survived.push(format!("{place}: {planted}")),
        }
    }

    /// Why they show nothing about a run that has judged something, if so.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        let Controls { commitment: committed, secret, ran, caught, survived, shards } = self;
        if *ran == 0 {
            return Some("the run has no controls, so it does not show that a fault would have been noticed".into());
        }
        if caught != ran || !survived.is_empty() {
            let first = survived.first().map_or(String::new(), |what| format!(", first {what}"));
            let survived = ran.saturating_sub(*caught).max(survived.len() as u64);
            return Some(format!("{survived} of {ran} planted faults were not noticed{first}"));
        }
        if !shards.is_empty() {
            let is_other = |(committed, secret): &(Digest, Digest)| commitment(*secret) != *committed;
            let shard = shards.iter().position(is_other)?;
            return Some(format!("the secret of the controls of shard {shard} is not the one that was committed to before it"));
        }
        match (committed, secret) {
            (Some(committed), Some(secret)) if commitment(*secret) == *committed => None,
            (Some(_), Some(_)) => Some("the secret of the controls is not the one that was committed to before the run".into()),
            (None, _) | (_, None) => Some("nothing shows that the places of the controls were fixed before the run".into()),
        }
    }

    /// The fewest that a run of so many units must have, if so many of these have cases that the device cannot run.
    #[must_use]
    pub fn fewest(units: u64, skipped: u64) -> u64 {
        units.div_ceil(BLOCK).saturating_sub(skipped)
    }
}

/// What is written down before the run.
fn commitment(secret: Digest) -> Digest {
    Digest::of([b"controls".as_slice(), &secret.0])
}

/// Where the controls of a shard are.
#[derive(Clone, Copy, Debug)]
pub struct Places {
    secret: Digest,
    units: u64,
}

impl Places {
    /// In a shard of so many units.
    #[must_use]
    pub fn new(secret: Digest, units: u64) -> Places {
        Places { secret, units }
    }

    /// Whether the unit at this position of the shard has a control; positions are counted from 0, in the order of the ledger.
    #[must_use]
    pub fn has(&self, position: u64) -> bool {
        let block = position / BLOCK;
        let length = BLOCK.min(self.units - block * BLOCK);
        position % BLOCK == self.draw("place", position) % length
    }

    /// A number that says something about the control of the block of this position.
    pub(crate) fn draw(&self, what: &str, position: u64) -> u64 {
        Digest::of([&self.secret.0, what.as_bytes(), &(position / BLOCK).to_le_bytes()]).number()
    }
}
