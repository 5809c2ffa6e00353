//! What a run has done, kept so that nothing is done twice and nothing is believed that was not done.
//!
//! The ledger is an embedded database in the state folder. A *unit* is a range of cases of one section (an op, one of its programs, a
//! workgroup size, a space); its record has the hashes of the expected and the actual bytes and the counts, and the hash of all that is
//! a leaf. A leaf knows nothing of the backend, of time, or of how the run was divided, so runs that give the same bytes have the same
//! root. Units are committed by the range; what is committed survives whatever happens to the process.
//!
//! What reads a ledger reads any [`Store`]: campaigns over many machines keep theirs elsewhere.
//!
//! A ledger belongs to one run: same suite, selection, settings, backend and device ([`Identity`]).

mod controls;
mod merge;
mod open;
mod reading;
mod record;
mod rows;
mod seal;
mod store;

pub(crate) use controls::SURVIVED;
pub use controls::{Controls, Places};
pub use merge::{MergeError, merge};
pub use reading::Store;
pub use record::{Identity, RunInfo, SectionInfo, StillFailing, UnitRecord, root_of, settings};
pub use seal::{CHUNK, Chunk, Seal, Sealer};
pub use store::{Ledger, Range};

/// Kinds of remarks about a section.
pub mod remark {
    /// The device cannot run it; the text is the device's reason.
    pub const SKIPPED: &str = "skipped";
    /// Cases of it were given up because the device hangs; the text says what it hangs on.
    pub const GIVEN_UP: &str = "given-up";
    /// Something of it failed; the text is the program that ran.
    pub const PROGRAM: &str = "program";
    /// Something of it failed; the text is the command that shows the first failure again.
    pub const AGAIN: &str = "again";
    /// Something of it failed, and its program and inputs are told, made small where programs were generated;
    /// the text is a [`ReducedFailure`](crate::report::ReducedFailure) as JSON.
    pub const REDUCED: &str = "reduced";
    /// Something of it failed, and there is no smaller program; the text is why.
    pub const UNREDUCED: &str = "unreduced";
    /// The unit that the remark is about had a blind control; the text says what came of it.
    pub const CONTROL: &str = "control";

    /// The kind of this name.
    pub(crate) fn known(kind: &str) -> Option<&'static str> {
        [SKIPPED, GIVEN_UP, PROGRAM, AGAIN, REDUCED, UNREDUCED, CONTROL].into_iter().find(|known| *known == kind)
    }
}

use std::fmt;
use std::path::PathBuf;

/// Why a ledger cannot be used.
#[derive(Debug)]
pub enum LedgerError {
    /// Another run uses the folder at this moment.
    Busy(PathBuf),
    /// The folder has the state of another run that was cut off.
    OtherRun {
        /// The folder.
        folder: PathBuf,
        /// What is different: in which words, there and here.
        differences: Vec<(String, String, String)>,
    },
    /// The file is damaged; where, as far as that is known.
    Damaged(PathBuf, String),
    /// It was written by another version of the layout.
    Version(PathBuf, String),
    /// The file cannot be read or written: a full disk, a folder without permission.
    Io(PathBuf, String),
}

impl fmt::Display for LedgerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LedgerError::Busy(path) => write!(f, "another run uses the state folder `{}`", path.display()),
            LedgerError::OtherRun { folder, differences } => {
                write!(f, "`{}` has an interrupted run, which is not this one:", folder.display())?;
                for (what, there, here) in differences {
                    write!(f, " {what} is `{there}` there and `{here}` here;")?;
                }
                f.write_str(" finish that run, or use another state folder")
            }
            LedgerError::Damaged(path, what) => write!(f, "`{}` is damaged: {what}", path.display()),
            LedgerError::Version(path, found) => {
                write!(f, "`{}` has layout {found}, and this vyre knows layout {}", path.display(), open::LAYOUT)
            }
            LedgerError::Io(path, what) => write!(f, "`{}`: {what}", path.display()),
        }
    }
}

impl std::error::Error for LedgerError {}
