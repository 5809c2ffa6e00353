//! What the units of a section come to, with the hashes that let two runs be compared from the top.

use super::UnitRecord;
use crate::digest::Digest;
use serde::{Deserialize, Serialize};

/// Leaves below one [`Chunk`]: a power of two, so that chunks are subtrees of the section's tree.
pub const CHUNK: usize = 64;

/// The sum over the units of a section.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Seal {
    /// Units that were judged.
    pub units: u64,
    /// Their cases.
    pub cases: u64,
    /// Cases that were judged.
    pub tested: u64,
    /// Cases that failed.
    pub failed: u64,
    /// Cases that the device cannot run.
    pub skipped: u64,
    /// Units with skipped cases. They are outside the roots of profiles.
    pub skipped_units: u64,
    /// Cases that the reference was asked about too.
    pub referred: u64,
    /// Units of which the device did not say that it ran the workgroup size.
    pub unconfirmed_units: u64,
    /// The root over all units.
    pub root: Digest,
    /// The root over the units without skipped cases.
    pub without_skips: Digest,
    /// The tree between root and leaves.
    pub chunks: Vec<Chunk>,
}

/// A subtree of [`CHUNK`] leaves; the last of a section may have fewer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Chunk {
    /// The first case of its first unit.
    pub first: u64,
    /// Its root.
    pub root: Digest,
}

impl Seal {
    /// The hash of a section in the tree over sections.
    #[must_use]
    pub fn node(name: &str, units: u64, root: &Digest) -> Digest {
        Digest::of([name.as_bytes(), &units.to_le_bytes(), &root.0])
    }
}

/// Units of a section are added in the order of their cases, and make a [`Seal`].
#[derive(Default)]
pub struct Sealer {
    seal: Seal,
    leaves: Vec<Digest>,
    without_skips: Vec<Digest>,
}

impl Sealer {
    /// Adds the next unit of the section of this name.
    pub fn add(&mut self, section: &str, record: &UnitRecord) {
        let leaf = record.leaf(section);
        if self.leaves.len().is_multiple_of(CHUNK) {
            self.seal.chunks.push(Chunk { first: record.first, root: Digest::default() });
        }
        self.leaves.push(leaf);
        let Seal { units, cases, tested, failed, skipped, skipped_units, referred, unconfirmed_units, .. } = &mut self.seal;
        *units += 1;
        *cases += record.cases;
        *tested += record.tested;
        *failed += record.failed;
        *skipped += record.skipped;
        *referred += record.referred;
        *unconfirmed_units += u64::from(!record.confirmed && record.tested > 0);
        if record.skipped > 0 {
            *skipped_units += 1;
        } else {
            self.without_skips.push(leaf);
        }
    }

    /// The sum, with its hashes.
    #[must_use]
    pub fn done(self) -> Seal {
        let Sealer { mut seal, leaves, without_skips } = self;
        seal.chunks.iter_mut().zip(leaves.chunks(CHUNK)).for_each(|(chunk, leaves)| chunk.root = Digest::tree(leaves));
        seal.root = Digest::tree(&leaves);
        seal.without_skips = if without_skips.len() == leaves.len() { seal.root } else { Digest::tree(&without_skips) };
        seal
    }
}
