//! Known failures: a file that says what fails, on which backend, why, and until when.
//!
//! ```json
//! [
//!   {
//!     "query": "ops.float.exp:f32:wg=64:*",
//!     "backend": "wgpu:*",
//!     "reason": "the driver flushes subnormal results; reported as 1234",
//!     "expires": "2026-12-31"
//!   }
//! ]
//! ```
//!
//! A query is what `vyre conform` takes ([`Selection`]), about sections and, in the same words, about backends. What a file says must be
//! so: a section that it names and that holds, an entry that names nothing of the suite, and an entry whose day has passed are failures
//! themselves. So the file cannot outlive what it is about. A run that was asked for a part of the suite says nothing about the rest:
//! entries for that are passed over, and a section of which another shard has units may still fail there.

use crate::date::Date;
use crate::evidence::{RunData, Verdict};
use crate::ledger::StillFailing;
use crate::query::Selection;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// One entry of the file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expectation {
    /// Which sections fail.
    pub query: Selection,
    /// On which backends.
    pub backend: Selection,
    /// Why.
    pub reason: String,
    /// The last day on which this is known.
    pub expires: Date,
}

/// The entries of a file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Expectations {
    /// In the order of the file.
    pub entries: Vec<Expectation>,
}

/// Why a file of known failures cannot be used.
#[derive(Debug)]
pub enum ExpectationsError {
    /// It cannot be read.
    Unreadable(PathBuf, std::io::Error),
    /// It does not say what such a file says, and where.
    Malformed(PathBuf, String),
}

/// What is wrong with an entry.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "problem", rename_all = "kebab-case")]
pub enum Problem {
    /// A section that it names holds.
    UnexpectedPass {
        /// The entry's query.
        query: String,
        /// The section.
        section: String,
    },
    /// Its day has passed.
    Expired {
        /// The entry's query.
        query: String,
        /// That day.
        expires: Date,
    },
    /// Nothing that ran has such a name.
    Unmatched {
        /// The entry's query.
        query: String,
    },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::UnexpectedPass { query, section } => {
                write!(
                    f,
                    "`{section}` holds, but `{query}` is listed as a known failure: remove the entry, or name only what fails"
                )
            }
            Problem::Expired { query, expires } => {
                write!(f, "`{query}` was a known failure until {expires}: the entry has expired")
            }
            Problem::Unmatched { query } => write!(f, "`{query}` is listed as a known failure, but nothing that it names ran"),
        }
    }
}

/// What a file of known failures makes of a run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Judged {
    /// By section that failed as known: which entry.
    pub known: BTreeMap<String, Expectation>,
    /// What is wrong with the file.
    pub problems: Vec<Problem>,
}

impl Judged {
    /// What a run says with its known failures.
    #[must_use]
    pub fn verdict(&self, run: &RunData) -> Verdict {
        let is_known = |still: &StillFailing| {
            let mut known = run.sections.iter().filter(|section| self.known.contains_key(&section.info.id));
            // Sections of whole programs have no workgroup size of their own.
            known.any(|section| section.info.op == still.op && [0, still.workgroup].contains(&section.info.workgroup))
        };
        match run.verdict(|section| self.known.contains_key(&section.info.id), is_known) {
            Verdict::Holds | Verdict::WithExceptions if !self.problems.is_empty() => Verdict::Fails,
            verdict @ (Verdict::Holds | Verdict::WithExceptions | Verdict::Fails | Verdict::None(_)) => verdict,
        }
    }
}

impl Expectations {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Expectations, ExpectationsError> {
        let text = std::fs::read_to_string(path).map_err(|error| ExpectationsError::Unreadable(path.into(), error))?;
        let malformed = |what: String| ExpectationsError::Malformed(path.into(), what);
        let entries: Vec<Expectation> = serde_json::from_str(&text).map_err(|error| malformed(error.to_string()))?;
        match entries.iter().position(|entry| entry.reason.trim().is_empty()) {
            Some(n) => Err(malformed(format!("entry {} has no reason", n + 1))),
            None => Ok(Expectations { entries }),
        }
    }

    /// Holds the entries against a run, on a day.
    #[must_use]
    pub fn judge(&self, run: &RunData, today: Date) -> Judged {
        let mut judged = Judged::default();
        for entry in self.entries.iter().filter(|entry| entry.backend.means(&run.identity.backend)) {
            let query = entry.query.to_string();
            if entry.expires < today {
                judged.problems.push(Problem::Expired { query, expires: entry.expires });
                continue;
            }
            let mut is_true = false;
            let mut is_asked = run.identity.selection == Selection::ALL;
            for section in run.sections.iter().filter(|section| entry.query.means(&section.info.id)) {
                is_asked = true;
                let section_id = section.info.id.clone();
                if section.seal.failed > 0 {
                    is_true = true;
                    judged.known.entry(section_id).or_insert_with(|| entry.clone());
                } else if section.not_run() > 0 {
                    // It may fail in the units that this run does not have.
                    is_true = true;
                } else if section.seal.tested > 0 {
                    is_true = true;
                    judged.problems.push(Problem::UnexpectedPass { query: query.clone(), section: section_id });
                }
            }
            if is_asked && !is_true {
                judged.problems.push(Problem::Unmatched { query });
            }
        }
        judged
    }
}

impl fmt::Display for ExpectationsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExpectationsError::Unreadable(path, error) => write!(f, "cannot read {}: {error}", path.display()),
            ExpectationsError::Malformed(path, what) => write!(f, "{} does not hold known failures: {what}", path.display()),
        }
    }
}

impl std::error::Error for ExpectationsError {}
