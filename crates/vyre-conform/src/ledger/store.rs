//! Writing to a ledger and reading it.

use super::rows::{self, FACTS, FAILURES, REMARKS, SEALS, SECTIONS, UNITS};
use super::{LedgerError, RunInfo, Seal, SectionInfo, Store, UnitRecord};
use crate::digest::Digest;
use crate::report::ParityFailure;
use redb::{
    Database, ReadOnlyDatabase, ReadTransaction, ReadableDatabase, ReadableTable, ReadableTableMetadata, StorageError,
    TableError, TransactionError, WriteTransaction,
};
use std::path::{Path, PathBuf};
use vyre_worker::caught;

/// What a run has done so far, in a file.
pub struct Ledger {
    pub(super) file: File,
    pub(super) path: PathBuf,
    /// Failures that are in the file.
    pub(super) failures: u64,
    /// Whether units of a run that was cut off were found.
    pub(super) resumed: bool,
}

pub(super) enum File {
    Writable(Database),
    /// A finished run, which several may read at once and nobody changes.
    Read(ReadOnlyDatabase),
}

impl File {
    pub(super) fn begin_read(&self) -> Result<ReadTransaction, TransactionError> {
        match self {
            File::Writable(database) => database.begin_read(),
            File::Read(database) => database.begin_read(),
        }
    }

    fn begin_write(&self) -> Result<WriteTransaction, redb::Error> {
        match self {
            File::Writable(database) => Ok(database.begin_write()?),
            File::Read(_) => Err(redb::Error::Io(std::io::Error::other("it is open for reading only"))),
        }
    }
}

/// What is committed together.
#[derive(Clone, Default)]
pub struct Range {
    /// Section, and record.
    pub units: Vec<(String, UnitRecord)>,
    /// Cases that failed, those that are kept.
    pub failures: Vec<ParityFailure>,
    /// Section, kind ([`remark`](super::remark)), and text.
    pub remarks: Vec<(String, &'static str, String)>,
}

impl Ledger {
    /// Whether this goes on with a run that was cut off.
    #[must_use]
    pub fn is_resumed(&self) -> bool {
        self.resumed
    }

    fn error(&self, error: redb::Error) -> LedgerError {
        let said = error.to_string();
        if let redb::Error::Io(_) = error {
            return LedgerError::Io(self.path.clone(), said);
        }
        // Tables are there from the beginning, with their types: what is missing was lost.
        LedgerError::Damaged(self.path.clone(), said)
    }

    /// Writes what `write` does, all of it or nothing.
    pub(super) fn write(&self, write: impl FnOnce(&WriteTransaction) -> Result<(), redb::Error>) -> Result<(), LedgerError> {
        let written = (|| {
            let transaction = self.file.begin_write()?;
            write(&transaction)?;
            Ok(transaction.commit()?)
        })();
        written.map_err(|error| self.error(error))
    }

    /// Reads. What is damaged below the rows shows as an error or a panic of the library.
    fn rows<T>(&self, read: impl FnOnce(&ReadTransaction) -> Result<T, Unreadable>) -> Result<T, LedgerError> {
        let read = caught(|| read(&self.file.begin_read()?));
        match read {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(Unreadable::Library(error))) => Err(self.error(error)),
            Ok(Err(Unreadable::Row(error))) => Err(error),
            Err(said) => Err(LedgerError::Damaged(self.path.clone(), said)),
        }
    }

    /// Every row has a mark of its own, which tells nothing of a row that is not there: the file says how many a table has.
    fn complete(&self, table: &str, seen: u64, rows: u64) -> Result<(), Unreadable> {
        match seen == rows {
            true => Ok(()),
            false => {
                let said = format!("the table `{table}` has {seen} of {rows} rows");
                Err(Unreadable::Row(LedgerError::Damaged(self.path.clone(), said)))
            }
        }
    }

    /// Writes a range, all of it or nothing.
    pub fn commit(&mut self, range: &Range) -> Result<(), LedgerError> {
        let mut failures = self.failures;
        self.write(|write| {
            let mut units = write.open_table(UNITS)?;
            for (section, record) in &range.units {
                let bytes = rows::binary("units", &unit_key(section, record.first), record);
                units.insert((section.as_str(), record.first), bytes.as_slice())?;
            }
            let mut kept = write.open_table(FAILURES)?;
            for failure in &range.failures {
                kept.insert(failures, rows::json("failures", &failures.to_string(), failure).as_slice())?;
                failures += 1;
            }
            let mut remarks = write.open_table(REMARKS)?;
            for (section, kind, text) in &range.remarks {
                let bytes = rows::json("remarks", &format!("{section} {kind}"), text);
                remarks.insert((section.as_str(), *kind), bytes.as_slice())?;
            }
            Ok(())
        })?;
        self.failures = failures;
        Ok(())
    }

    /// The record of the unit of a section that begins with this case, if it is done.
    pub fn unit(&self, section: &str, first: u64) -> Result<Option<UnitRecord>, LedgerError> {
        self.rows(|read| {
            let found = read.open_table(UNITS)?.get((section, first))?;
            Ok(found.map(|value| self.decode(section, first, value.value())).transpose()?)
        })
    }

    fn decode(&self, section: &str, first: u64, bytes: &[u8]) -> Result<UnitRecord, LedgerError> {
        rows::from_binary(&self.path, "units", &unit_key(section, first), bytes)
    }

    /// Says which sections the run has.
    pub fn describe(&mut self, sections: &[SectionInfo]) -> Result<(), LedgerError> {
        self.write(|write| {
            let mut table = write.open_table(SECTIONS)?;
            for section in sections {
                table.insert(section.id.as_str(), rows::json("sections", &section.id, section).as_slice())?;
            }
            Ok(())
        })
    }

    /// Writes what is known about the run as a whole, in place of what was known before.
    pub fn set_info(&mut self, info: &RunInfo) -> Result<(), LedgerError> {
        self.write(|write| {
            write.open_table(FACTS)?.insert("run", rows::json("facts", "run", info).as_slice())?;
            Ok(())
        })
    }

    fn fact<T: serde::de::DeserializeOwned>(&self, key: &str) -> Result<Option<T>, LedgerError> {
        self.rows(|read| {
            let found = read.open_table(FACTS)?.get(key)?;
            let value = found.map(|value| rows::from_json(&self.path, "facts", key, value.value()));
            Ok(value.transpose()?)
        })
    }

    /// The run has come to its end; the next one begins anew.
    pub fn finish(&mut self, root: Digest) -> Result<(), LedgerError> {
        let seals = self.seal()?;
        self.write(|write| {
            let mut table = write.open_table(SEALS)?;
            for (section, seal) in &seals {
                table.insert(section.as_str(), rows::binary("seals", section, seal).as_slice())?;
            }
            write.open_table(FACTS)?.insert("finished", rows::json("facts", "finished", &root).as_slice())?;
            Ok(())
        })
    }
}

impl Store for Ledger {
    fn path(&self) -> &Path {
        &self.path
    }

    fn for_each_unit(&self, each: &mut dyn FnMut(&str, UnitRecord)) -> Result<(), LedgerError> {
        self.rows(|read| {
            let table = read.open_table(UNITS)?;
            let mut seen = 0;
            for entry in table.iter()? {
                let (key, value) = entry?;
                let (section, first) = key.value();
                each(section, self.decode(section, first, value.value())?);
                seen += 1;
            }
            self.complete("units", seen, table.len()?)
        })
    }

    fn units_between(&self, section: &str, from: u64, to: Option<u64>) -> Result<Vec<UnitRecord>, LedgerError> {
        self.rows(|read| {
            let table = read.open_table(UNITS)?;
            let last = to.map_or(u64::MAX, |to| to.saturating_sub(1));
            let mut found = Vec::new();
            if to.is_some_and(|to| to <= from) {
                return Ok(found);
            }
            for entry in table.range((section, from)..=(section, last))? {
                let (key, value) = entry?;
                found.push(self.decode(section, key.value().1, value.value())?);
            }
            Ok(found)
        })
    }

    fn failures(&self) -> Result<Vec<ParityFailure>, LedgerError> {
        self.rows(|read| {
            let table = read.open_table(FAILURES)?;
            let row = |entry: Result<(redb::AccessGuard<'_, u64>, redb::AccessGuard<'_, &[u8]>), StorageError>| {
                let (key, value) = entry?;
                rows::from_json(&self.path, "failures", &key.value().to_string(), value.value()).map_err(Unreadable::Row)
            };
            let failures: Vec<ParityFailure> = table.iter()?.map(row).collect::<Result<_, Unreadable>>()?;
            self.complete("failures", failures.len() as u64, table.len()?)?;
            Ok(failures)
        })
    }

    fn remarks(&self) -> Result<Vec<(String, String, String)>, LedgerError> {
        self.rows(|read| {
            let table = read.open_table(REMARKS)?;
            let mut remarks = Vec::new();
            for entry in table.iter()? {
                let (key, value) = entry?;
                let (section, kind) = key.value();
                let text = rows::from_json(&self.path, "remarks", &format!("{section} {kind}"), value.value())?;
                remarks.push((section.to_string(), kind.to_string(), text));
            }
            self.complete("remarks", remarks.len() as u64, table.len()?)?;
            Ok(remarks)
        })
    }

    fn sections(&self) -> Result<Vec<SectionInfo>, LedgerError> {
        self.rows(|read| {
            let table = read.open_table(SECTIONS)?;
            let row = |entry: Result<(redb::AccessGuard<'_, &str>, redb::AccessGuard<'_, &[u8]>), StorageError>| {
                let (key, value) = entry?;
                rows::from_json(&self.path, "sections", key.value(), value.value()).map_err(Unreadable::Row)
            };
            let sections: Vec<SectionInfo> = table.iter()?.map(row).collect::<Result<_, Unreadable>>()?;
            self.complete("sections", sections.len() as u64, table.len()?)?;
            Ok(sections)
        })
    }

    fn info(&self) -> Result<RunInfo, LedgerError> {
        Ok(self.fact("run")?.unwrap_or_default())
    }

    fn root(&self) -> Result<Option<Digest>, LedgerError> {
        self.fact("finished")
    }

    fn seals(&self) -> Result<Option<Vec<(String, Seal)>>, LedgerError> {
        if self.root()?.is_none() {
            return Ok(None);
        }
        self.rows(|read| {
            let table = read.open_table(SEALS)?;
            let row = |entry: Result<(redb::AccessGuard<'_, &str>, redb::AccessGuard<'_, &[u8]>), StorageError>| {
                let (key, value) = entry?;
                let seal = rows::from_binary(&self.path, "seals", key.value(), value.value())?;
                Ok((key.value().to_string(), seal))
            };
            let seals: Vec<(String, Seal)> = table.iter()?.map(row).collect::<Result<_, Unreadable>>()?;
            self.complete("seals", seals.len() as u64, table.len()?)?;
            Ok(Some(seals))
        })
    }
}

fn unit_key(section: &str, first: u64) -> String {
    format!("{section}:{first}")
}

/// Why a row was not read.
pub(super) enum Unreadable {
    Library(redb::Error),
    Row(LedgerError),
}

impl From<LedgerError> for Unreadable {
    fn from(error: LedgerError) -> Unreadable {
        Unreadable::Row(error)
    }
}

impl From<StorageError> for Unreadable {
    fn from(error: StorageError) -> Unreadable {
        Unreadable::Library(error.into())
    }
}

impl From<TableError> for Unreadable {
    fn from(error: TableError) -> Unreadable {
        Unreadable::Library(error.into())
    }
}

impl From<TransactionError> for Unreadable {
    fn from(error: TransactionError) -> Unreadable {
        Unreadable::Library(error.into())
    }
}
