//! Writing files: whoever looks at one finds all of the new bytes or all of the old, also after the machine has lost its power; and
//! reading those that may have no end.
//!
//! Bytes go to a temporary file beside the place, are synchronised with the disk, and are renamed into it. A link stays a link: what it
//! points to is replaced. Only regular files are replaced, never a device, a pipe or a folder, and a file that may not be written is
//! left alone although its folder would allow it. The new file has the permissions of the old one. What was begun and not finished
//! is removed.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Why a file was not written.
#[derive(Debug)]
pub struct FileError {
    /// The file, as it was named.
    pub path: PathBuf,
    /// What the system says, or what is wrong with the place.
    pub error: io::Error,
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot write {}: {}", self.path.display(), self.error)
    }
}

impl std::error::Error for FileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

/// The bytes of a file, or `None` if there are more than so many: of a device or a pipe without end no more are read.
pub fn read_at_most(path: impl AsRef<Path>, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let file = File::open(path)?;
    let data = file.metadata()?;
    if data.is_file() && data.len() > limit {
        return Ok(None);
    }
    at_most(file, limit)
}

/// The bytes of something that is read, or `None` if there are more than so many.
pub fn at_most(from: impl Read, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    from.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= limit).then_some(bytes))
}

/// Puts bytes in the place of what a file holds, or makes the file.
pub fn replace(path: impl AsRef<Path>, bytes: &[u8]) -> Result<(), FileError> {
    replace_all(&[(path.as_ref(), bytes)])
}

/// The same for several files: if one cannot be written, none has changed. (Only if the system fails between two renames some have.)
pub fn replace_all(files: &[(&Path, &[u8])]) -> Result<(), FileError> {
    let about = |path: &Path| {
        let path = path.to_path_buf();
        move |error| FileError { path, error }
    };
    let mut prepared = Vec::with_capacity(files.len());
    for (path, bytes) in files {
        prepared.push((*path, Prepared::new(path, bytes).map_err(about(path))?));
    }
    for (path, prepared) in prepared {
        prepared.commit().map_err(about(path))?;
    }
    Ok(())
}

/// Makes a file, unless something has its name already; gives whether it was made. Of several that make it at once one does.
pub fn create(path: impl AsRef<Path>, bytes: &[u8]) -> Result<bool, FileError> {
    let path = path.as_ref();
    let made = || match fs::symlink_metadata(path) {
        Ok(_) => Ok(false),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Prepared::new(path, bytes)?.commit_new(),
        Err(error) => Err(error),
    };
    made().map_err(|error| FileError { path: path.to_path_buf(), error })
}

/// Whether a name is that of a file that somebody is writing, or was writing when their process ended.
pub(crate) fn is_temporary(name: &str) -> bool {
    name.starts_with(PREFIX) && name.ends_with(SUFFIX)
}

const PREFIX: &str = ".vyre-";
const SUFFIX: &str = ".tmp";

/// A file that does not exist yet.
#[derive(Clone, Copy, Debug)]
pub struct NewFile<'f> {
    /// Where it goes.
    pub path: &'f Path,
    /// What it holds.
    pub bytes: &'f [u8],
    /// Whether only its owner may read it.
    pub is_secret: bool,
}

/// Makes files, none of them over one that is there: if one cannot be made, none is.
pub fn create_all(files: &[NewFile<'_>]) -> Result<(), FileError> {
    let about = |path: &Path| {
        let path = path.to_path_buf();
        move |error| FileError { path, error }
    };
    let mut prepared = Vec::with_capacity(files.len());
    for new in files {
        prepared.push((new.path, Prepared::new_file(new).map_err(about(new.path))?));
    }
    let mut made: Vec<PathBuf> = Vec::new();
    for (path, Prepared { file, place }) in prepared {
        if let Err(error) = file.persist_noclobber(&place) {
            // Somebody was faster; what this call has made goes again.
            made.iter().for_each(|place| drop(fs::remove_file(place)));
            return Err(about(path)(error.error));
        }
        made.push(place.clone());
        synchronise_name(&place).map_err(about(path))?;
    }
    Ok(())
}

/// Whether a file could be written now; nothing changes.
pub fn can_replace(path: impl AsRef<Path>) -> Result<(), FileError> {
    let path = path.as_ref();
    Prepared::new(path, b"").map(drop).map_err(|error| FileError { path: path.to_path_buf(), error })
}

/// Whether two paths lead to one file, by whatever names; files that do not exist yet are compared by their places.
#[must_use]
pub fn is_same(one: impl AsRef<Path>, other: impl AsRef<Path>) -> bool {
    match (place(one.as_ref()), place(other.as_ref())) {
        (Ok(one), Ok(other)) => one == other || same_inode(&one, &other),
        // Nothing can be written there; but the same words mean the same.
        (Err(_), _) | (_, Err(_)) => one.as_ref() == other.as_ref(),
    }
}

#[cfg(unix)]
fn same_inode(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let number = |path: &Path| fs::metadata(path).map(|data| (data.dev(), data.ino())).ok();
    number(one).is_some_and(|one| number(other) == Some(one))
}

#[cfg(not(unix))]
fn same_inode(_: &Path, _: &Path) -> bool {
    false
}

/// New bytes beside their place.
struct Prepared {
    file: NamedTempFile,
    place: PathBuf,
}

impl Prepared {
    fn new(path: &Path, bytes: &[u8]) -> io::Result<Prepared> {
        let place = place(path)?;
        let folder = place.parent().ok_or_else(|| io::Error::other("it is not the path of a file"))?;
        let old = match fs::metadata(&place) {
            Ok(data) if !data.is_file() => return Err(io::Error::other("it is not a regular file")),
            Ok(data) if data.permissions().readonly() => return Err(io::Error::other("it is read-only")),
            Ok(data) => Some(data.permissions()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let mut file = builder().tempfile_in(folder)?;
        file.write_all(bytes)?;
        if let Some(permissions) = old {
            file.as_file().set_permissions(permissions)?;
        }
        file.as_file().sync_all()?;
        Ok(Prepared { file, place })
    }

    fn new_file(new: &NewFile<'_>) -> io::Result<Prepared> {
        if new.path.symlink_metadata().is_ok() {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "the file exists already"));
        }
        let place = place(new.path)?;
        let folder = place.parent().ok_or_else(|| io::Error::other("it is not the path of a file"))?;
        let mut builder = builder();
        #[cfg(unix)]
        if new.is_secret {
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(fs::Permissions::from_mode(0o600));
        }
        let mut file = builder.tempfile_in(folder)?;
        file.write_all(new.bytes)?;
        file.as_file().sync_all()?;
        Ok(Prepared { file, place })
    }

    fn commit(self) -> io::Result<()> {
        self.file.persist(&self.place).map_err(|error| error.error)?;
        synchronise_name(&self.place)
    }

    /// `false` if somebody has made it in between.
    fn commit_new(self) -> io::Result<bool> {
        match self.file.persist_noclobber(&self.place) {
            Ok(_) => synchronise_name(&self.place).map(|()| true),
            Err(lost) if lost.error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(lost) => Err(lost.error),
        }
    }
}

fn synchronise_name(place: &Path) -> io::Result<()> {
    // The name is on the disk when its folder is. Not every system lets folders be synchronised.
    match place.parent().map(File::open) {
        Some(Ok(folder)) => folder.sync_all().or(Ok(())),
        Some(Err(_)) | None => Ok(()),
    }
}

/// Temporary files that get the permissions of any new file when they stay.
fn builder() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(PREFIX).suffix(SUFFIX);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // What the user's mask leaves of it.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder
}

/// Where the bytes of a path are: links are followed, also one that leads to a file which does not exist yet.
fn place(path: &Path) -> io::Result<PathBuf> {
    const MAX_LINKS: usize = 40;
    let mut path = path.to_path_buf();
    for _ in 0..MAX_LINKS {
        match fs::canonicalize(&path) {
            Ok(place) => return Ok(place),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let folder = match path.parent() {
            Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
            Some(folder) => folder,
            None => return Err(io::Error::other("it is not the path of a file")),
        };
        let folder = fs::canonicalize(folder)?;
        match fs::read_link(&path) {
            Ok(target) => path = folder.join(target),
            Err(_) => {
                let name = path.file_name().ok_or_else(|| io::Error::other("it is not the path of a file"))?;
                return Ok(folder.join(name));
            }
        }
    }
    Err(io::Error::other("it is a link that leads nowhere"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().expect("a temporary folder")
    }

    /// What is in a folder, by name.
    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn files_are_made_and_replaced_and_nothing_is_left_beside_them() {
        let folder = folder();
        let path = folder.path().join("a");
        replace(&path, b"one").unwrap();
        replace(&path, b"two").unwrap();
        assert_eq!((fs::read(&path).unwrap(), names(folder.path())), (b"two".to_vec(), vec!["a".to_string()]));
    }

    #[test]
    fn what_is_made_anew_takes_nobodys_place() {
        let folder = folder();
        let path = folder.path().join("a");
        assert!(create(&path, b"one").unwrap() && !create(&path, b"two").unwrap());
        assert_eq!((fs::read(&path).unwrap(), names(folder.path())), (b"one".to_vec(), vec!["a".to_string()]));
        // Of many at once one makes it, and it is whole.
        let contested = folder.path().join("b");
        let made = std::thread::scope(|scope| {
            let make = |n: u8| create(&contested, &[n; 100_000]).unwrap();
            let threads: Vec<_> = (0..8).map(|n| scope.spawn(move || make(n))).collect();
            threads.into_iter().filter_map(|thread| thread.join().ok()).filter(|made| *made).count()
        });
        let bytes = fs::read(&contested).unwrap();
        assert!(made == 1 && bytes.len() == 100_000 && bytes.iter().all(|byte| *byte == bytes[0]));
        assert_eq!(names(folder.path()), ["a", "b"]);
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("nowhere", folder.path().join("link")).unwrap();
            assert!(!create(folder.path().join("link"), b"").unwrap() && !folder.path().join("nowhere").exists());
        }
        assert!(create(folder.path().join("no/such"), b"").is_err());
    }

    #[cfg(unix)]
    #[test]
    fn permissions_and_links_stay() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = folder();
        let [file, link, ahead] = ["file", "link", "ahead"].map(|name| folder.path().join(name));
        replace(&file, b"one").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o750)).unwrap();
        symlink("file", &link).unwrap();
        replace(&link, b"two").unwrap();
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o750);
        assert_eq!(fs::read(&file).unwrap(), b"two");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert!(is_same(&file, &link) && !is_same(&file, &ahead));
        // A link to a file that does not exist yet makes that file.
        symlink("later", &ahead).unwrap();
        replace(&ahead, b"three").unwrap();
        assert_eq!(fs::read(folder.path().join("later")).unwrap(), b"three");
        fs::hard_link(&file, folder.path().join("hard")).unwrap();
        assert!(is_same(&file, folder.path().join("hard")));
        symlink("round", folder.path().join("round")).unwrap();
        assert!(replace(folder.path().join("round"), b"").is_err());
    }

    #[test]
    fn what_is_not_a_file_or_may_not_be_written_is_left_alone() {
        let folder = folder();
        let inner = folder.path().join("inner");
        fs::create_dir(&inner).unwrap();
        let error = replace(&inner, b"x").unwrap_err().to_string();
        assert!(error.contains("inner") && error.contains("not a regular file"), "{error}");
        let kept = folder.path().join("kept");
        replace(&kept, b"old").unwrap();
        let mut permissions = fs::metadata(&kept).unwrap().permissions();
        permissions.set_readonly(true);
        fs::set_permissions(&kept, permissions).unwrap();
        assert!(replace(&kept, b"new").unwrap_err().to_string().contains("read-only"));
        assert_eq!(fs::read(&kept).unwrap(), b"old");
        assert!(replace(folder.path().join("no/such/folder"), b"x").is_err());
        assert!(can_replace(&kept).is_err() && can_replace(folder.path().join("new")).is_ok());
        assert_eq!(names(folder.path()), ["inner", "kept"]);
    }

    #[test]
    fn what_is_longer_than_allowed_is_not_read() {
        let folder = folder();
        let path = folder.path().join("a");
        replace(&path, b"four").unwrap();
        assert_eq!(read_at_most(&path, 4).unwrap(), Some(b"four".to_vec()));
        assert_eq!(read_at_most(&path, 3).unwrap(), None);
        assert_eq!(at_most(io::repeat(7), 1000).unwrap(), None);
        assert_eq!(at_most(io::repeat(7).take(1000), 1000).unwrap(), Some(vec![7; 1000]));
        #[cfg(unix)]
        assert_eq!(read_at_most("/dev/zero", 1000).unwrap(), None);
        // A file of holes is long, and takes no room until it is read.
        File::create(&path).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(read_at_most(&path, 1 << 30).unwrap(), None);
        assert!(read_at_most(folder.path().join("none"), 1).is_err());
    }

    #[test]
    fn new_files_are_made_together_and_never_over_others() {
        let folder = folder();
        let [one, two, bad] = ["one", "two", "no/file"].map(|name| folder.path().join(name));
        fn new(path: &Path, is_secret: bool) -> NewFile<'_> {
            NewFile { path, bytes: b"new", is_secret }
        }
        assert!(create_all(&[new(&one, true), new(&bad, false)]).is_err());
        assert!(names(folder.path()).is_empty());
        replace(&two, b"old").unwrap();
        let error = create_all(&[new(&one, true), new(&two, false)]).unwrap_err().to_string();
        assert!(error.contains("two") && error.contains("already"), "{error}");
        assert_eq!((fs::read(&two).unwrap(), names(folder.path())), (b"old".to_vec(), vec!["two".to_string()]));
        // One file under two names: the second finds the first.
        assert!(create_all(&[new(&one, true), new(&one, false)]).is_err());
        assert_eq!(names(folder.path()), ["two"]);
        create_all(&[new(&one, true)]).unwrap();
        assert_eq!(fs::read(&one).unwrap(), b"new");
        #[cfg(unix)]
        {
            use std::os::unix::fs::{PermissionsExt, symlink};
            assert_eq!(fs::metadata(&one).unwrap().permissions().mode() & 0o777, 0o600);
            // A link to a file that is not there yet is a name that is taken.
            symlink("later", folder.path().join("link")).unwrap();
            assert!(create_all(&[new(&folder.path().join("link"), true)]).is_err());
        }
    }

    #[test]
    fn of_several_files_all_are_written_or_none() {
        let folder = folder();
        let [one, two, bad] = ["one", "two", "no/file"].map(|name| folder.path().join(name));
        replace(&one, b"old").unwrap();
        assert!(replace_all(&[(&one, b"new"), (&two, b"new"), (&bad, b"new")]).is_err());
        assert_eq!((fs::read(&one).unwrap(), names(folder.path())), (b"old".to_vec(), vec!["one".to_string()]));
        replace_all(&[(&one, b"new"), (&two, b"new")]).unwrap();
        assert_eq!((fs::read(&one).unwrap(), fs::read(&two).unwrap()), (b"new".to_vec(), b"new".to_vec()));
    }
}
