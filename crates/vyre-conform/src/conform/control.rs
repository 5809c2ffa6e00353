//! Blind controls: units that must fail, hidden among the others.
//!
//! Among every fifty units of a shard there is one that is run once more with a single bit flipped in what the device gave. Where, and
//! which bit, follows from a secret whose hash is written down before anything runs; the judge is not told. A control that is not found
//! out means that the suite cannot see, and takes away the verdict.

use super::number;
use super::unit::UnitDone;
use crate::digest::Digest;
use crate::examine::Flip;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::time::SystemTime;

/// The kind of remark that says what came of a control.
pub(super) const REMARK: &str = "control";

/// What such a remark begins with if the control was not found out.
pub(super) const SURVIVED: &str = "not noticed: ";

/// One control in so many units.
const BLOCK: u64 = 50;

/// A number that nobody can guess: what the standard library seeds its hash maps with, and the time.
pub(super) fn secret() -> Digest {
    let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
    let random = || RandomState::new().build_hasher().finish().to_le_bytes();
    Digest::of([random(), random(), random(), random(), (time as u64).to_le_bytes()])
}

/// What is written down before the run.
pub(super) fn commitment(secret: Digest) -> Digest {
    Digest::of([b"controls".as_slice(), &secret.0])
}

/// Where controls are.
pub(super) struct Places {
    secret: Digest,
    units: u64,
}

impl Places {
    /// In a shard of so many units.
    pub fn new(secret: Digest, units: u64) -> Places {
        Places { secret, units }
    }

    /// The control behind the unit at this position of the shard, if there is one.
    pub fn at(&self, position: u64) -> Option<Control> {
        let block = position / BLOCK;
        let length = BLOCK.min(self.units - block * BLOCK);
        let draw = |what: &str| number(&[&self.secret.0, what.as_bytes(), &block.to_le_bytes()]);
        (position % BLOCK == draw("place") % length).then(|| Control {
            flip: Flip { dispatch: draw("dispatch"), output: draw("output"), case: draw("case"), bit: draw("bit") },
        })
    }
}

/// One planted fault.
#[derive(Clone, Copy, Debug)]
pub(super) struct Control {
    pub flip: Flip,
}

impl Control {
    /// What came of it; `None` if the device could not run the unit, so that nothing could be planted.
    pub fn remark(&self, unit: &UnitDone) -> Option<String> {
        if unit.skipped.is_some() {
            return None;
        }
        let planted = format!("bit {} of case {} flipped in the device's output", self.flip.bit, self.flip.case);
        Some(if unit.record.failed == 0 { format!("{SURVIVED}{planted}") } else { format!("noticed: {planted}") })
    }
}
