//! Reading what a run has done, wherever it is kept.

use super::{LedgerError, RunInfo, Seal, Sealer, SectionInfo, UnitRecord};
use crate::digest::Digest;
use crate::report::ParityFailure;
use std::path::Path;

/// What a run has done: the file of a run on one machine ([`Ledger`](super::Ledger)), or the tables of a campaign over many.
///
/// Evidence, reports, differences and certificates are made from this alone. Whoever implements it checks what it reads: a record that
/// is handed out is the one that was written, at its place, or there is an error.
pub trait Store {
    /// Where it is kept, for messages; a password is no part of it.
    fn path(&self) -> &Path;

    /// Calls `each` with every unit, by section and first case.
    fn for_each_unit(&self, each: &mut dyn FnMut(&str, UnitRecord)) -> Result<(), LedgerError>;

    /// The units of a section that begin with these cases, `to` not included.
    fn units_between(&self, section: &str, from: u64, to: Option<u64>) -> Result<Vec<UnitRecord>, LedgerError>;

    /// The failures that were kept, in the order in which they were found.
    fn failures(&self) -> Result<Vec<ParityFailure>, LedgerError>;

    /// What was remarked about sections: section, kind ([`remark`](super::remark)), text.
    fn remarks(&self) -> Result<Vec<(String, String, String)>, LedgerError>;

    /// The sections of the run, by name.
    fn sections(&self) -> Result<Vec<SectionInfo>, LedgerError>;

    /// What is known about the run as a whole.
    fn info(&self) -> Result<RunInfo, LedgerError>;

    /// The root that the run ended with, if it has ended.
    fn root(&self) -> Result<Option<Digest>, LedgerError>;

    /// The sums over the units of each section as they were when the run ended: no unit is read. `None` if it has not ended, or if
    /// nobody wrote them down.
    fn seals(&self) -> Result<Option<Vec<(String, Seal)>>, LedgerError>;

    /// The same, from the units themselves.
    fn seal(&self) -> Result<Vec<(String, Seal)>, LedgerError> {
        let mut seals: Vec<(String, Seal)> = Vec::new();
        let mut open: Option<(String, Sealer)> = None;
        self.for_each_unit(&mut |section, record| {
            if open.as_ref().is_none_or(|(name, _)| name != section) {
                let ended = open.replace((section.to_string(), Sealer::default()));
                seals.extend(ended.map(|(name, sealer)| (name, sealer.done())));
            }
            if let Some((_, sealer)) = &mut open {
                sealer.add(section, &record);
            }
        })?;
        seals.extend(open.map(|(name, sealer)| (name, sealer.done())));
        Ok(seals)
    }
}
