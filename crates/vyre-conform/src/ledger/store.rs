//! The ledger as a database file.

use super::{Identity, LedgerError, RunInfo, SectionInfo, UnitRecord};
use crate::digest::Digest;
use crate::report::ParityFailure;
use redb::{Database, DatabaseError, ReadableDatabase, ReadableTable, StorageError, TableDefinition, TableError};
use std::fs;
use std::path::{Path, PathBuf};
use vyre_worker::caught;

/// The layout of the file. Another number is refused.
pub(super) const LAYOUT: &str = "1";

const ABOUT: TableDefinition<'_, &str, &str> = TableDefinition::new("about");
const UNITS: TableDefinition<'_, (&str, u64), &[u8]> = TableDefinition::new("units");
const FAILURES: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("failures");
const SECTIONS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("sections");
const REMARKS: TableDefinition<'_, (&str, &str), &str> = TableDefinition::new("remarks");

/// The file of the current or the last run, and where the one before that goes.
const FILE: &str = "run.redb";
const BEFORE: &str = "before.redb";

/// What a run has done so far.
pub struct Ledger {
    database: Open,
    path: PathBuf,
    /// Failures that are in the file.
    failures: u64,
    /// Whether units of a run that was cut off were found.
    resumed: bool,
}

/// What is committed together.
#[derive(Default)]
pub(crate) struct Range {
    /// Section, and record.
    pub units: Vec<(String, UnitRecord)>,
    pub failures: Vec<ParityFailure>,
    /// Section, kind, and text.
    pub remarks: Vec<(String, &'static str, String)>,
}

impl Ledger {
    /// The ledger of a run in a folder, which is made if there is none; without a folder, one in memory.
    ///
    /// # Errors
    ///
    /// If another run uses the folder, or its file is of another run that was cut off, damaged or out of reach.
    pub fn open(folder: Option<&Path>, identity: &Identity) -> Result<Ledger, LedgerError> {
        let Some(folder) = folder else {
            let memory = redb::backends::InMemoryBackend::new();
            let path = PathBuf::from("memory");
            let made = Database::builder().create_with_backend(memory);
            let database = made.map_err(|error| LedgerError::Io(path.clone(), error.to_string()))?;
            return Ledger::begin(Open(Some(database)), path, identity);
        };
        let io = |error: std::io::Error| LedgerError::Io(folder.into(), error.to_string());
        fs::create_dir_all(folder).map_err(io)?;
        let path = folder.join(FILE);
        if !path.exists() {
            return Ledger::begin(create(&path, folder)?, path, identity);
        }
        let database = create(&path, folder)?;
        let found = about(&database, &path)?;
        // A process that ended before its first commit leaves a file that says nothing.
        let Some(about) = found else { return Ledger::begin(database, path, identity) };
        if !about.is_finished {
            let mut differences = about.identity.differences(identity);
            if identity.version.is_none() {
                // Nobody can tell whether it is the same backend, so what it did says nothing.
                return begin_anew(database, path, folder, identity);
            }
            if !differences.is_empty() {
                differences.truncate(6);
                return Err(LedgerError::OtherRun { folder: folder.into(), differences });
            }
            return Ok(Ledger { database, path, failures: about.failures, resumed: true });
        }
        begin_anew(database, path, folder, identity)
    }

    /// A ledger that is only read: that of the current or the last run in a folder, or a file.
    pub fn read(folder: &Path) -> Result<(Ledger, Identity, bool), LedgerError> {
        let path = if folder.is_dir() { folder.join(FILE) } else { folder.to_path_buf() };
        if !path.exists() {
            return Err(LedgerError::Io(path, "there is no run".into()));
        }
        let database = create(&path, folder)?;
        let Some(about) = about(&database, &path)? else {
            return Err(LedgerError::Damaged(path, "it says nothing about its run".into()));
        };
        let is_finished = about.is_finished;
        Ok((Ledger { database, path, failures: about.failures, resumed: true }, about.identity, is_finished))
    }

    fn begin(database: Open, path: PathBuf, identity: &Identity) -> Result<Ledger, LedgerError> {
        let text = serde_json::to_string(identity).map_err(|error| LedgerError::Io(path.clone(), error.to_string()))?;
        let written = guarded(|| {
            let write = database.begin_write()?;
            {
                let mut about = write.open_table(ABOUT)?;
                about.insert("layout", LAYOUT)?;
                about.insert("identity", text.as_str())?;
                write.open_table(UNITS)?;
                write.open_table(FAILURES)?;
                write.open_table(REMARKS)?;
                write.open_table(SECTIONS)?;
            }
            Ok(write.commit()?)
        });
        written.map_err(|error| LedgerError::Io(path.clone(), error.to_string()))?;
        Ok(Ledger { database, path, failures: 0, resumed: false })
    }

    /// Whether this goes on with a run that was cut off.
    #[must_use]
    pub fn is_resumed(&self) -> bool {
        self.resumed
    }

    fn error(&self, error: redb::Error) -> LedgerError {
        match error {
            // What is wrong with it has made the library itself stumble.
            redb::Error::Corrupted(what) => LedgerError::Damaged(self.path.clone(), what),
            error => LedgerError::Io(self.path.clone(), error.to_string()),
        }
    }

    /// Writes a range, all of it or nothing.
    pub(crate) fn commit(&mut self, range: &Range) -> Result<(), LedgerError> {
        let mut failures = self.failures;
        let written = guarded(|| {
            let write = self.database.begin_write()?;
            {
                let mut units = write.open_table(UNITS)?;
                for (section, record) in &range.units {
                    let bytes = postcard::to_allocvec(&(record, record.leaf(section).0)).unwrap_or_default();
                    units.insert((section.as_str(), record.first), bytes.as_slice())?;
                }
                let mut kept = write.open_table(FAILURES)?;
                for failure in &range.failures {
                    kept.insert(failures, serde_json::to_vec(failure).unwrap_or_default().as_slice())?;
                    failures += 1;
                }
                let mut remarks = write.open_table(REMARKS)?;
                for (section, kind, text) in &range.remarks {
                    remarks.insert((section.as_str(), *kind), text.as_str())?;
                }
            }
            Ok(write.commit()?)
        });
        written.map_err(|error| self.error(error))?;
        self.failures = failures;
        Ok(())
    }

    /// The record of the unit of a section that begins with this case, if it is done.
    pub fn unit(&self, section: &str, first: u64) -> Result<Option<UnitRecord>, LedgerError> {
        let read = guarded(|| {
            let table = self.database.begin_read()?.open_table(UNITS)?;
            Ok(table.get((section, first))?.map(|value| value.value().to_vec()))
        });
        match read.map_err(|error| self.error(error))? {
            None => Ok(None),
            Some(bytes) => self.decode(section, first, &bytes).map(Some),
        }
    }

    fn decode(&self, section: &str, first: u64, bytes: &[u8]) -> Result<UnitRecord, LedgerError> {
        let damaged = || LedgerError::Damaged(self.path.clone(), format!("the record of unit {section}:{first}"));
        let (record, leaf): (UnitRecord, [u8; 32]) = postcard::from_bytes(bytes).map_err(|_| damaged())?;
        if record.leaf(section).0 != leaf || record.first != first {
            return Err(damaged());
        }
        Ok(record)
    }

    /// Calls `each` with every unit, by section and first case.
    pub fn for_each_unit(&self, mut each: impl FnMut(&str, UnitRecord)) -> Result<(), LedgerError> {
        let mut damage = None;
        let read = guarded(|| {
            let table = self.database.begin_read()?.open_table(UNITS)?;
            for entry in table.iter()? {
                let (key, value) = entry?;
                let (section, first) = key.value();
                match self.decode(section, first, value.value()) {
                    Ok(record) => each(section, record),
                    Err(error) => {
                        damage = Some(error);
                        break;
                    }
                }
            }
            Ok(())
        });
        read.map_err(|error| self.error(error))?;
        damage.map_or(Ok(()), Err)
    }

    /// The failures that were kept, in the order in which they were found.
    pub fn failures(&self) -> Result<Vec<ParityFailure>, LedgerError> {
        let read = guarded(|| {
            let table = self.database.begin_read()?.open_table(FAILURES)?;
            let all = table.iter()?.map(|entry| Ok(entry?.1.value().to_vec()));
            all.collect::<Result<_, StorageError>>().map_err(redb::Error::from)
        });
        let damaged = |_| LedgerError::Damaged(self.path.clone(), "a failure in it".into());
        let all: Vec<Vec<u8>> = read.map_err(|error| self.error(error))?;
        all.iter().map(|bytes| serde_json::from_slice(bytes).map_err(damaged)).collect()
    }

    /// What was remarked about sections: section, kind, text.
    pub fn remarks(&self) -> Result<Vec<(String, String, String)>, LedgerError> {
        let read = guarded(|| {
            let table = self.database.begin_read()?.open_table(REMARKS)?;
            let row = |entry: Result<(redb::AccessGuard<'_, (&str, &str)>, redb::AccessGuard<'_, &str>), StorageError>| {
                let (key, value) = entry?;
                let (section, kind) = key.value();
                Ok((section.to_string(), kind.to_string(), value.value().to_string()))
            };
            table.iter()?.map(row).collect::<Result<_, StorageError>>().map_err(redb::Error::from)
        });
        read.map_err(|error| self.error(error))
    }

    /// Says which sections the run has.
    pub fn describe(&mut self, sections: &[SectionInfo]) -> Result<(), LedgerError> {
        let written = guarded(|| {
            let write = self.database.begin_write()?;
            {
                let mut table = write.open_table(SECTIONS)?;
                for section in sections {
                    table.insert(section.id.as_str(), serde_json::to_vec(section).unwrap_or_default().as_slice())?;
                }
            }
            Ok(write.commit()?)
        });
        written.map_err(|error| self.error(error))
    }

    /// The sections of the run, by name.
    pub fn sections(&self) -> Result<Vec<SectionInfo>, LedgerError> {
        let read = guarded(|| {
            let table = self.database.begin_read()?.open_table(SECTIONS)?;
            let all = table.iter()?.map(|entry| Ok(entry?.1.value().to_vec()));
            all.collect::<Result<_, StorageError>>().map_err(redb::Error::from)
        });
        let damaged = |_| LedgerError::Damaged(self.path.clone(), "a section in it".into());
        let all: Vec<Vec<u8>> = read.map_err(|error| self.error(error))?;
        all.iter().map(|bytes| serde_json::from_slice(bytes).map_err(damaged)).collect()
    }

    /// Writes what is known about the run as a whole, in place of what was known before.
    pub fn set_info(&mut self, info: &RunInfo) -> Result<(), LedgerError> {
        let text = serde_json::to_string(info).map_err(|error| LedgerError::Io(self.path.clone(), error.to_string()))?;
        let written = guarded(|| {
            let write = self.database.begin_write()?;
            write.open_table(ABOUT)?.insert("run", text.as_str())?;
            Ok(write.commit()?)
        });
        written.map_err(|error| self.error(error))
    }

    /// What is known about the run as a whole.
    pub fn info(&self) -> Result<RunInfo, LedgerError> {
        let read = guarded(|| {
            let table = self.database.begin_read()?.open_table(ABOUT)?;
            Ok(table.get("run")?.map(|value| value.value().to_string()))
        });
        let Some(text) = read.map_err(|error| self.error(error))? else { return Ok(RunInfo::default()) };
        serde_json::from_str(&text).map_err(|_| LedgerError::Damaged(self.path.clone(), "what it says about the run".into()))
    }

    /// The run has come to its end; the next one begins anew.
    pub fn finish(&mut self, root: Digest) -> Result<(), LedgerError> {
        let written = guarded(|| {
            let write = self.database.begin_write()?;
            write.open_table(ABOUT)?.insert("finished", root.to_string().as_str())?;
            Ok(write.commit()?)
        });
        written.map_err(|error| self.error(error))
    }
}

/// Does something with a database. The library is careful, but a damaged file is hostile input: where it panics, the file is to blame.
fn guarded<T>(work: impl FnOnce() -> Result<T, redb::Error>) -> Result<T, redb::Error> {
    caught(work).unwrap_or_else(|said| Err(redb::Error::Corrupted(said)))
}

/// A database that is closed without a panic, whatever is wrong with its file. Nothing is lost: what was committed is on the disk.
struct Open(Option<Database>);

impl std::ops::Deref for Open {
    type Target = Database;

    fn deref(&self) -> &Database {
        self.0.as_ref().expect("it is open until it is dropped")
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let database = self.0.take();
        // Nobody is left to be told, and the next one who opens the file is.
        let _ = caught(|| drop(database));
    }
}

/// Opens or makes the file. It is locked while it is open.
fn create(path: &Path, folder: &Path) -> Result<Open, LedgerError> {
    let opened = caught(|| Database::create(path)).map_err(|said| LedgerError::Damaged(path.into(), said))?;
    opened.map(|database| Open(Some(database))).map_err(|error| match error {
        DatabaseError::DatabaseAlreadyOpen => LedgerError::Busy(folder.into()),
        DatabaseError::UpgradeRequired(found) => LedgerError::Version(path.into(), format!("of file format {found}")),
        DatabaseError::RepairAborted => LedgerError::Damaged(path.into(), "it cannot be repaired".into()),
        DatabaseError::Storage(StorageError::Corrupted(what)) => LedgerError::Damaged(path.into(), what),
        DatabaseError::Storage(StorageError::Io(error)) if error.kind() == std::io::ErrorKind::InvalidData => {
            LedgerError::Damaged(path.into(), error.to_string())
        }
        error => LedgerError::Io(path.into(), error.to_string()),
    })
}

struct About {
    identity: Identity,
    is_finished: bool,
    failures: u64,
}

/// What a file says about its run; `None` if nothing was ever committed to it.
fn about(database: &Open, path: &Path) -> Result<Option<About>, LedgerError> {
    let io = |error: redb::Error| LedgerError::Damaged(path.into(), error.to_string());
    let read = guarded(|| {
        let read = database.begin_read()?;
        let table = match read.open_table(ABOUT) {
            Ok(table) => table,
            Err(TableError::TableDoesNotExist(_)) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let text = |key: &str| Ok::<_, redb::Error>(table.get(key)?.map(|value| value.value().to_string()));
        let last = read.open_table(FAILURES)?.last()?.map_or(0, |(key, _)| key.value() + 1);
        let finished = text("finished")?.is_some();
        Ok(Some((text("layout")?.unwrap_or_default(), text("identity")?.unwrap_or_default(), finished, last)))
    });
    let Some((layout, identity, is_finished, failures)) = read.map_err(io)? else { return Ok(None) };
    if layout != LAYOUT {
        return Err(LedgerError::Version(path.into(), layout));
    }
    let identity = serde_json::from_str(&identity);
    let identity = identity.map_err(|error| LedgerError::Damaged(path.into(), format!("what it says about its run: {error}")))?;
    Ok(Some(About { identity, is_finished, failures }))
}

/// Puts a finished run aside and begins the next.
fn begin_anew(database: Open, path: PathBuf, folder: &Path, identity: &Identity) -> Result<Ledger, LedgerError> {
    drop(database);
    fs::rename(&path, folder.join(BEFORE)).map_err(|error| LedgerError::Io(path.clone(), error.to_string()))?;
    Ledger::begin(create(&path, folder)?, path, identity)
}
