//! Opening ledgers: for a run that begins or goes on, or only to read.

use super::rows::{self, ABOUT, FACTS, FAILURES, REMARKS, SEALS, SECTIONS, UNITS};
use super::store::{File, Unreadable};
use super::{Identity, Ledger, LedgerError};
use redb::{Database, DatabaseError, ReadOnlyDatabase, ReadableTable, StorageError, TableError};
use std::fs;
use std::path::{Path, PathBuf};
use vyre_worker::caught;

/// The layout of the file. Another number is refused.
pub(super) const LAYOUT: &str = "2";

/// The file of the current or the last run, and where the one before that goes.
const FILE: &str = "run.redb";
const BEFORE: &str = "before.redb";

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
            return Ledger::begin(database, path, identity);
        };
        let io = |error: std::io::Error| LedgerError::Io(folder.into(), error.to_string());
        fs::create_dir_all(folder).map_err(io)?;
        let path = folder.join(FILE);
        if !path.exists() {
            return Ledger::begin(create(&path, folder)?, path, identity);
        }
        let file = File::Writable(create(&path, folder)?);
        let found = about(&file, &path)?;
        let File::Writable(database) = file else { unreachable!("it was opened for writing") };
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
            return Ok(Ledger { file: File::Writable(database), path, failures: about.failures, resumed: true });
        }
        begin_anew(database, path, folder, identity)
    }

    /// A ledger that is only read: that of the current or the last run in a folder, or a file. Also says whether the run has come to
    /// its end. Several may read one run at the same time.
    pub fn read(folder: &Path) -> Result<(Ledger, Identity, bool), LedgerError> {
        let path = if folder.is_dir() { folder.join(FILE) } else { folder.to_path_buf() };
        match fs::metadata(&path) {
            Ok(data) if data.len() == 0 => return Err(LedgerError::Damaged(path, "it is empty".into())),
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(LedgerError::Io(path, "there is no run".into()));
            }
            Err(error) => return Err(LedgerError::Io(path, error.to_string())),
        }
        // The library is careful, but a damaged file is hostile input.
        let opened = caught(|| ReadOnlyDatabase::open(&path)).map_err(|said| LedgerError::Damaged(path.clone(), said))?;
        let file = match opened {
            Ok(database) => File::Read(database),
            // The process that wrote it was killed.
            Err(DatabaseError::RepairAborted) => File::Writable(create(&path, folder)?),
            Err(error) => return Err(refused(error, &path, folder)),
        };
        let Some(about) = about(&file, &path)? else {
            return Err(LedgerError::Damaged(path, "it says nothing about its run".into()));
        };
        let is_finished = about.is_finished;
        Ok((Ledger { file, path, failures: about.failures, resumed: true }, about.identity, is_finished))
    }

    fn begin(database: Database, path: PathBuf, identity: &Identity) -> Result<Ledger, LedgerError> {
        let ledger = Ledger { file: File::Writable(database), path, failures: 0, resumed: false };
        ledger.write(|write| {
            write.open_table(ABOUT)?.insert("layout", LAYOUT)?;
            write.open_table(FACTS)?.insert("identity", rows::json("facts", "identity", identity).as_slice())?;
            write.open_table(UNITS)?;
            write.open_table(FAILURES)?;
            write.open_table(REMARKS)?;
            write.open_table(SECTIONS)?;
            write.open_table(SEALS)?;
            Ok(())
        })?;
        Ok(ledger)
    }
}

/// Opens or makes the file. It is locked while it is open.
fn create(path: &Path, folder: &Path) -> Result<Database, LedgerError> {
    let opened = caught(|| Database::create(path)).map_err(|said| LedgerError::Damaged(path.into(), said))?;
    opened.map_err(|error| refused(error, path, folder))
}

fn refused(error: DatabaseError, path: &Path, folder: &Path) -> LedgerError {
    if let DatabaseError::DatabaseAlreadyOpen = error {
        return LedgerError::Busy(folder.into());
    }
    if let DatabaseError::UpgradeRequired(found) = error {
        return LedgerError::Version(path.into(), format!("of file format {found}"));
    }
    let is_invalid = |error: &std::io::Error| error.kind() == std::io::ErrorKind::InvalidData;
    let is_damaged = matches!(&error, DatabaseError::RepairAborted | DatabaseError::Storage(StorageError::Corrupted(_)))
        || matches!(&error, DatabaseError::Storage(StorageError::Io(error)) if is_invalid(error));
    let said = error.to_string();
    if is_damaged { LedgerError::Damaged(path.into(), said) } else { LedgerError::Io(path.into(), said) }
}

struct About {
    identity: Identity,
    is_finished: bool,
    failures: u64,
}

/// What a file says about its run; `None` if nothing was ever committed to it.
fn about(file: &File, path: &Path) -> Result<Option<About>, LedgerError> {
    let damaged = |what: String| LedgerError::Damaged(path.into(), what);
    let read = || -> Result<Option<About>, Unreadable> {
        let read = file.begin_read()?;
        let layout = match read.open_table(ABOUT) {
            Ok(table) => table.get("layout")?.map(|value| value.value().to_string()),
            Err(TableError::TableDoesNotExist(_)) => return Ok(None),
            Err(error) => return Err(Unreadable::Library(error.into())),
        };
        match layout.as_deref() {
            Some(LAYOUT) => {}
            Some(other) => return Err(Unreadable::Row(LedgerError::Version(path.into(), other.into()))),
            None => return Err(Unreadable::Row(damaged("it does not say its layout".into()))),
        }
        let facts = read.open_table(FACTS)?;
        let Some(identity) = facts.get("identity")? else {
            return Err(Unreadable::Row(damaged("it does not say which run it is of".into())));
        };
        let identity = rows::from_json(path, "facts", "identity", identity.value())?;
        let mut is_finished = false;
        for entry in facts.iter()? {
            match entry?.0.value() {
                "identity" | "run" => {}
                "finished" => is_finished = true,
                other => return Err(Unreadable::Row(damaged(format!("the table `facts` has a row `{other}`")))),
            }
        }
        let failures = read.open_table(FAILURES)?;
        let failures = failures.last()?.map_or(0, |(key, _)| key.value() + 1);
        Ok(Some(About { identity, is_finished, failures }))
    };
    match caught(read) {
        Ok(Ok(about)) => Ok(about),
        Ok(Err(Unreadable::Row(error))) => Err(error),
        Ok(Err(Unreadable::Library(error))) => Err(damaged(error.to_string())),
        Err(said) => Err(damaged(said)),
    }
}

/// Puts a finished run aside and begins the next.
fn begin_anew(database: Database, path: PathBuf, folder: &Path, identity: &Identity) -> Result<Ledger, LedgerError> {
    drop(database);
    fs::rename(&path, folder.join(BEFORE)).map_err(|error| LedgerError::Io(path.clone(), error.to_string()))?;
    Ledger::begin(create(&path, folder)?, path, identity)
}
