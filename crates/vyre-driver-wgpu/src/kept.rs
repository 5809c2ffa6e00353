//! Float profiles on disk, for the next process: one file per device and driver.
//!
//! A profile that is wrong would give wrong bytes, so a file is taken only if it says in full what it is about: the device and its driver,
//! the probes that were run, the build that ran them; and if its first line is the checksum of the rest. Anything else is as good as no
//! file: the probes run, and their answer takes its place. A file that cannot be read or written makes opening slower and fails nothing.
//!
//! ```text
//! blake3 of the second line, in hexadecimal
//! {"device":"Vulkan …","probes":"…","build":"0.1.0","full":false,"profile":{"ieee":{"add":"protected",…},"canonical":{…}}}
//! ```

use serde::{Deserialize, Serialize};
use std::env;
use std::path::{Path, PathBuf};
use vyre_driver::files;
use vyre_emit::floats::FloatProfile;

/// No file of ours is longer.
const LIMIT: u64 = 1 << 16;

/// What a file says.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
#[serde(deny_unknown_fields)]
pub(crate) struct Kept {
    /// What tells the device and its driver from others.
    pub device: String,
    /// What tells the probes from others.
    pub probes: String,
    /// The build that ran them.
    pub build: String,
    /// Whether the full probes were run.
    pub full: bool,
    /// What they have shown.
    pub profile: FloatProfile,
}

/// Where profiles are kept: `VYRE_CACHE`, or the place that this system has for such files. `None` if there is none, or if the variable is
/// empty.
pub(crate) fn folder() -> Option<PathBuf> {
    if let Some(folder) = env::var_os("VYRE_CACHE") {
        return Some(PathBuf::from(folder)).filter(|folder| !folder.as_os_str().is_empty());
    }
    // A path that is relative would be another folder in each working directory.
    let at = |name: &str| env::var_os(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
    let folder = if cfg!(windows) {
        at("LOCALAPPDATA")?
    } else if cfg!(target_os = "macos") {
        at("HOME")?.join("Library/Caches")
    } else {
        at("XDG_CACHE_HOME").or_else(|| Some(at("HOME")?.join(".cache")))?
    };
    Some(folder.join("vyre"))
}

/// The file of a device.
fn path(folder: &Path, device: &str) -> PathBuf {
    folder.join(format!("floats-{}.json", &blake3::hash(device.as_bytes()).to_hex()[..32]))
}

impl Kept {
    /// What is kept about the same device, found by the same probes of the same build.
    pub fn load(folder: &Path, device: &str, probes: &str, build: &str) -> Option<Kept> {
        let path = path(folder, device);
        let bytes = match files::read_at_most(&path, LIMIT) {
            Ok(bytes) => bytes,
            Err(error) => {
                tracing::debug!(path = %path.display(), %error, "no float profile is kept");
                return None;
            }
        };
        let kept = bytes.and_then(|bytes| read(&bytes));
        let kept = kept.filter(|kept| kept.device == device && kept.probes == probes && kept.build == build);
        if kept.is_none() {
            tracing::debug!(path = %path.display(), "a float profile that is kept is damaged, or about something else");
        }
        kept
    }

    /// Keeps it, in the place of what was kept about the device.
    pub fn store(&self, folder: &Path) {
        let path = path(folder, &self.device);
        let stored = std::fs::create_dir_all(folder)
            .map_err(|error| error.to_string())
            .and_then(|()| serde_json::to_string(self).map_err(|error| error.to_string()))
            .and_then(|line| {
                let bytes = format!("{}\n{line}\n", blake3::hash(line.as_bytes()).to_hex());
                files::replace(&path, bytes.as_bytes()).map_err(|error| error.to_string())
            });
        if let Err(error) = stored {
            tracing::debug!(path = %path.display(), %error, "a float profile is not kept");
        }
    }
}

fn read(bytes: &[u8]) -> Option<Kept> {
    let text = str::from_utf8(bytes).ok()?;
    let (sum, line) = text.strip_suffix('\n')?.split_once('\n')?;
    let is_whole = blake3::hash(line.as_bytes()).to_hex().as_str() == sum;
    is_whole.then(|| serde_json::from_str(line).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use vyre_emit::floats::{LadderOp, Rung};
    use vyre_spec::FloatMode;

    fn kept() -> Kept {
        let mut profile = FloatProfile::INTEGER;
        profile.set(FloatMode::Ieee, LadderOp::Add, Rung::Protected);
        let [device, probes, build] = ["one", "two", "three"].map(String::from);
        Kept { device, probes, build, full: false, profile }
    }

    #[test]
    fn what_is_kept_is_found_again_for_the_same_question_only() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("made/when/needed");
        assert_eq!(Kept::load(&folder, "one", "two", "three"), None);
        kept().store(&folder);
        assert_eq!(Kept::load(&folder, "one", "two", "three"), Some(kept()));
        for (device, probes, build) in [("other", "two", "three"), ("one", "other", "three"), ("one", "two", "other")] {
            assert_eq!(Kept::load(&folder, device, probes, build), None);
        }
        // A file of another device under this one's name.
        std::fs::copy(path(&folder, "one"), path(&folder, "other")).unwrap();
        assert_eq!(Kept::load(&folder, "other", "two", "three"), None);
        let next = Kept { full: true, ..kept() };
        next.store(&folder);
        assert_eq!(Kept::load(&folder, "one", "two", "three"), Some(next));
    }

    #[test]
    fn a_file_that_is_damaged_anywhere_is_not_taken_and_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        kept().store(folder);
        let path = path(folder, "one");
        let whole = std::fs::read(&path).unwrap();
        for at in 0..whole.len() {
            for bit in [0x01, 0x10, 0x80] {
                let mut bytes = whole.clone();
                bytes[at] ^= bit;
                std::fs::write(&path, &bytes).unwrap();
                assert_eq!(Kept::load(folder, "one", "two", "three"), None, "byte {at}");
            }
            std::fs::write(&path, &whole[..at]).unwrap();
            assert_eq!(Kept::load(folder, "one", "two", "three"), None, "{at} bytes");
        }
        // The right sum of a line that says less than everything.
        for line in ["{}", "null", r#"{"device":"one","probes":"two","build":"three","full":false}"#] {
            std::fs::write(&path, format!("{}\n{line}\n", blake3::hash(line.as_bytes()).to_hex())).unwrap();
            assert_eq!(Kept::load(folder, "one", "two", "three"), None, "{line}");
        }
        kept().store(folder);
        assert_eq!(Kept::load(folder, "one", "two", "three"), Some(kept()));
    }

    #[test]
    fn a_place_where_nothing_can_be_kept_fails_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        kept().store(&file);
        assert_eq!(Kept::load(&file, "one", "two", "three"), None);
    }
}
