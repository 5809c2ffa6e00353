//! Compiled code on disk, for the next process: one file per key, named by the hash of the key.
//!
//! A file says which key it is of, in full, and ends with a checksum over everything before it. It is written by [`files`], so that
//! readers in any process see a whole file or none. A file that is not exactly right is a [`Miss`] and is
//! removed because of what is in it; one that cannot be opened or read may be right, and stays. A process may remove a good file that
//! another has just put in the place of a bad one: the next who asks compiles again. Code of a backend that does not say which version
//! it is cannot be told from that of another, and is never here.
//!
//! The time of a file's last change is that of its last use. Every store lists the directory to keep the bound, which is small
//! against the compilation before it; the bound holds when all stores have ended. Files whose names are not ours are left alone.
//!
//! ```text
//! magic [8]  version u32  key length u64  key  payload length u64  payload  blake3 of all before [32]     (little endian)
//! ```

use super::PipelineKey;
use crate::backend::{BackendError, UNVERSIONED};
use crate::files;
use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

const MAGIC: [u8; 8] = *b"vyrepipe";
const VERSION: u32 = 1;
const CHECKSUM: u64 = blake3::OUT_LEN as u64;
/// A file that has been written for so long was left by a process that ended.
const ABANDONED: Duration = Duration::from_secs(60 * 60);

/// Compiled code on disk, of several processes at once.
#[derive(Clone, Debug)]
pub struct DiskCache {
    directory: PathBuf,
    limit: u64,
}

/// Why there is no payload.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Miss {
    /// There is no file.
    Absent,
    /// The file ends too early.
    Truncated,
    /// The file is not as it was written.
    Corrupt,
    /// The file is of another key, or nothing that a cache wrote.
    Foreign,
    /// The file has another format.
    OtherVersion,
    /// What stands there is no file, or one that is larger than the whole cache; with its path.
    Unfit(String),
    /// The file cannot be opened or read, and may be right; with its path and what the system said.
    Unreadable(String),
}

/// Code that was in the cache or was built for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fetched {
    /// The code.
    pub payload: Vec<u8>,
    /// Why it had to be built; `None` if it was there.
    pub miss: Option<Miss>,
    /// Why it will have to be built again next time.
    pub not_stored: Option<BackendError>,
}

impl DiskCache {
    /// A cache of at most so many bytes. The directory is made when something is first stored.
    #[must_use]
    pub fn new(directory: impl Into<PathBuf>, limit: u64) -> Self {
        DiskCache { directory: directory.into(), limit }
    }

    /// The code of a key, which `build` makes if it is not here. A cache that cannot be read or written makes it slower, never
    /// fails it.
    ///
    /// # Errors
    ///
    /// Those of `build`.
    pub fn fetch(
        &self,
        key: &PipelineKey,
        build: impl FnOnce() -> Result<Vec<u8>, BackendError>,
    ) -> Result<Fetched, BackendError> {
        let miss = match self.load(key) {
            Ok(payload) => return Ok(Fetched { payload, miss: None, not_stored: None }),
            Err(miss) => miss,
        };
        let payload = build()?;
        let not_stored = self.store(key, &payload).err();
        if let Some(error) = &not_stored {
            tracing::warn!(%error, "a pipeline was not stored");
        }
        Ok(Fetched { payload, miss: Some(miss), not_stored })
    }

    /// The payload that was stored for a key.
    pub fn load(&self, key: &PipelineKey) -> Result<Vec<u8>, Miss> {
        if key.version == UNVERSIONED {
            return Err(Miss::Absent);
        }
        let key = key.to_bytes();
        let path = self.path(&key);
        let result = read(&path, &key, self.limit);
        match &result {
            Ok(_) | Err(Miss::Absent) => {}
            Err(miss @ Miss::Unreadable(_)) => tracing::warn!(%miss, "a cached pipeline cannot be used"),
            Err(miss @ (Miss::Truncated | Miss::Corrupt | Miss::Foreign | Miss::OtherVersion | Miss::Unfit(_))) => {
                tracing::warn!(path = %path.display(), %miss, "a cached pipeline cannot be used");
                // It stays a miss if it cannot be removed, and a store replaces it.
                if let Err(error) = remove(&path) {
                    tracing::warn!(%error, "a cached pipeline that cannot be used stays");
                }
            }
        }
        result
    }

    /// Stores a payload in the place of what was stored for its key, and removes what was used longest ago to keep the bound.
    /// `false` if the payload alone is above it, or the key does not say which version of its backend it is of.
    ///
    /// # Errors
    ///
    /// Names the path that cannot be written or removed.
    pub fn store(&self, key: &PipelineKey, payload: &[u8]) -> Result<bool, BackendError> {
        if key.version == UNVERSIONED {
            return Ok(false);
        }
        let key = key.to_bytes();
        let mut content = header(&key, payload.len() as u64);
        if content.len() as u64 + payload.len() as u64 + CHECKSUM > self.limit {
            return Ok(false);
        }
        content.extend_from_slice(payload);
        let checksum = blake3::hash(&content);
        content.extend_from_slice(checksum.as_bytes());
        fs::create_dir_all(&self.directory).map_err(|error| failed("make", &self.directory, &error))?;
        let path = self.path(&key);
        // A link here is not the cache's, and neither is what it points to.
        if fs::symlink_metadata(&path).is_ok_and(|data| data.is_symlink()) {
            remove(&path)?;
        }
        files::replace(&path, &content).map_err(|error| failed("write", &path, &error.error))?;
        // The system's own times of files are too coarse to tell a store from a load just before it.
        match File::options().write(true).open(&path) {
            Ok(file) => note_use(&path, &file),
            Err(error) => tracing::debug!(path = %path.display(), %error, "another process removed a cached pipeline"),
        }
        self.keep_the_bound()?;
        Ok(true)
    }

    fn path(&self, key: &[u8]) -> PathBuf {
        self.directory.join(blake3::hash(key).to_hex().as_str())
    }

    fn keep_the_bound(&self) -> Result<(), BackendError> {
        let about = |error: io::Error| failed("list", &self.directory, &error);
        let mut files = Vec::new();
        let mut abandoned = Vec::new();
        for entry in fs::read_dir(&self.directory).map_err(about)? {
            let entry = entry.map_err(about)?;
            let Some(kind) = Name::of(&entry.file_name()) else { continue };
            let (length, last_use) = match entry.metadata().and_then(|data| Ok((data.is_dir(), data.len(), data.modified()?))) {
                // Nothing of ours, and nothing that can be removed like a file.
                Ok((true, _, _)) => continue,
                Ok((false, length, last_use)) => (length, last_use),
                // Another process has removed it.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(failed("look at", &entry.path(), &error)),
            };
            match kind {
                Name::Stored => files.push((last_use, entry.path(), length)),
                Name::Temporary => abandoned.push((last_use, entry.path())),
            }
        }
        let now = SystemTime::now();
        for (began, path) in abandoned {
            if now.duration_since(began).is_ok_and(|age| age > ABANDONED) {
                remove(&path)?;
            }
        }
        let mut total: u64 = files.iter().map(|(_, _, length)| length).sum();
        // A time that is still to come, from a clock that was wrong, says nothing: such a file must not stay for ever.
        files.sort_by_key(|(last_use, path, _)| (*last_use <= now, *last_use, path.clone()));
        for (_, path, length) in &files {
            if total <= self.limit {
                break;
            }
            remove(path)?;
            total -= length;
        }
        Ok(())
    }
}

/// The kinds of names that the cache gives.
enum Name {
    Stored,
    Temporary,
}

impl Name {
    fn of(name: &OsStr) -> Option<Name> {
        let name = name.to_str()?;
        if files::is_temporary(name) {
            return Some(Name::Temporary);
        }
        let is_hash = name.len() == 2 * blake3::OUT_LEN && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        is_hash.then_some(Name::Stored)
    }
}

fn header(key: &[u8], payload_length: u64) -> Vec<u8> {
    let mut header = MAGIC.to_vec();
    header.extend_from_slice(&VERSION.to_le_bytes());
    header.extend_from_slice(&(key.len() as u64).to_le_bytes());
    header.extend_from_slice(key);
    header.extend_from_slice(&payload_length.to_le_bytes());
    header
}

/// The payload of the file, if it is exactly as [`DiskCache::store`] wrote it for this key. Nothing is reserved for a payload before
/// the file is known to be of the key and to have the length it says. A file with holes can have any length at no cost: what is larger
/// than the whole cache is not read.
fn read(path: &Path, key: &[u8], limit: u64) -> Result<Vec<u8>, Miss> {
    let unreadable = |error: io::Error| {
        if error.kind() == ErrorKind::NotFound {
            Miss::Absent
        } else if error.kind() == ErrorKind::UnexpectedEof {
            Miss::Truncated
        } else {
            Miss::Unreadable(format!("{}: {error}", path.display()))
        }
    };
    // Opening a pipe would wait for a writer.
    if !fs::symlink_metadata(path).map_err(unreadable)?.is_file() {
        return Err(Miss::Unfit(format!("{}: it is not a file", path.display())));
    }
    let mut file = File::open(path).map_err(unreadable)?;
    let length = file.metadata().map_err(unreadable)?.len();

    let mut head = vec![0; header(key, 0).len()];
    let available = usize::try_from(length).unwrap_or(usize::MAX).min(head.len());
    file.read_exact(&mut head[..available]).map_err(unreadable)?;
    let mut rest = &head[..available];
    let mut expect = |expected: &[u8], otherwise: Miss| {
        let (found, after) = rest.split_at(rest.len().min(expected.len()));
        rest = after;
        match found == expected {
            true => Ok(()),
            false if expected.starts_with(found) => Err(Miss::Truncated),
            false => Err(otherwise),
        }
    };
    expect(&MAGIC, Miss::Foreign)?;
    expect(&VERSION.to_le_bytes(), Miss::OtherVersion)?;
    expect(&(key.len() as u64).to_le_bytes(), Miss::Foreign)?;
    expect(key, Miss::Foreign)?;
    let payload_length = u64::from_le_bytes(rest.try_into().map_err(|_| Miss::Truncated)?);
    match (head.len() as u64).checked_add(payload_length).and_then(|end| end.checked_add(CHECKSUM)) {
        Some(expected) if expected == length => {}
        Some(expected) if expected < length => return Err(Miss::Corrupt),
        Some(_) | None => return Err(Miss::Truncated),
    }

    if length > limit {
        return Err(Miss::Unfit(format!("{}: it has {length} bytes, and the cache at most {limit}", path.display())));
    }
    let mut payload = Vec::new();
    let reserved = usize::try_from(payload_length).is_ok_and(|length| payload.try_reserve_exact(length).is_ok());
    if !reserved {
        return Err(Miss::Unreadable(format!("{}: there is no memory for {payload_length} bytes", path.display())));
    }
    (&mut file).take(payload_length).read_to_end(&mut payload).map_err(unreadable)?;
    if payload.len() as u64 != payload_length {
        return Err(Miss::Truncated);
    }
    let mut checksum = [0; blake3::OUT_LEN];
    file.read_exact(&mut checksum).map_err(unreadable)?;
    if blake3::Hasher::new().update(&head).update(&payload).finalize() != checksum {
        return Err(Miss::Corrupt);
    }
    note_use(path, &file);
    Ok(payload)
}

fn note_use(path: &Path, file: &File) {
    if let Err(error) = file.set_modified(SystemTime::now()) {
        tracing::debug!(path = %path.display(), %error, "the last use of a cached pipeline is not recorded");
    }
}

/// Removes a file that another process may have removed already.
fn remove(path: &Path) -> Result<(), BackendError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(failed("remove", path, &error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn failed(what: &str, path: &Path, error: &io::Error) -> BackendError {
    BackendError::new(format!(
        "the pipeline cache cannot {what} {}: {error}. Fix: make its directory writable, or choose another",
        path.display()
    ))
}

impl fmt::Display for Miss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Miss::Absent => f.write_str("there is no file"),
            Miss::Truncated => f.write_str("the file ends too early"),
            Miss::Corrupt => f.write_str("the file is not as it was written"),
            Miss::Foreign => f.write_str("the file belongs to another key"),
            Miss::OtherVersion => f.write_str("the file has another format"),
            Miss::Unfit(why) => write!(f, "the file is not one of the cache: {why}"),
            Miss::Unreadable(why) => write!(f, "the file cannot be read: {why}"),
        }
    }
}

impl std::error::Error for Miss {}
