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
//! A query names sections, with `*` for anything; one without the last parts stands for all sections that begin with it. What a file
//! says must be so: a section that it names and that holds, an entry that names nothing that ran, and an entry whose day has passed are
//! failures themselves. So the file cannot outlive what it is about.

use crate::date::Date;
use crate::evidence::{RunData, Section, Verdict};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// One entry of the file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expectation {
    /// Which sections fail.
    pub query: String,
    /// On which backends, with `*` for anything.
    pub backend: String,
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
    /// No section that ran has such a name.
    Unmatched {
        /// The entry's query.
        query: String,
    },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::UnexpectedPass { query, section } => {
                write!(f, "`{section}` holds, and `{query}` is known to fail: remove the entry, or name only what fails")
            }
            Problem::Expired { query, expires } => write!(f, "that `{query}` fails was known until {expires}"),
            Problem::Unmatched { query } => write!(f, "`{query}` is known to fail, and nothing of that name ran"),
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
        match run.verdict(|section| self.known.contains_key(&section.info.id)) {
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
        for (n, entry) in entries.iter().enumerate() {
            let Expectation { query, backend, reason, expires: _ } = entry;
            for (name, text) in [("query", query), ("backend", backend), ("reason", reason)] {
                if text.trim().is_empty() {
                    return Err(malformed(format!("entry {} has no {name}", n + 1)));
                }
            }
        }
        Ok(Expectations { entries })
    }

    /// Holds the entries against a run, on a day.
    #[must_use]
    pub fn judge(&self, run: &RunData, today: Date) -> Judged {
        let mut judged = Judged::default();
        for entry in self.entries.iter().filter(|entry| matches(&entry.backend, &run.identity.backend)) {
            let query = entry.query.clone();
            if entry.expires < today {
                judged.problems.push(Problem::Expired { query, expires: entry.expires });
                continue;
            }
            let ran = |section: &&Section| section.seal.tested > 0 && names(&entry.query, &section.info.id);
            let mut is_unmatched = true;
            for section in run.sections.iter().filter(ran) {
                is_unmatched = false;
                let section_id = section.info.id.clone();
                if section.seal.failed > 0 {
                    judged.known.entry(section_id).or_insert_with(|| entry.clone());
                } else {
                    judged.problems.push(Problem::UnexpectedPass { query: query.clone(), section: section_id });
                }
            }
            if is_unmatched {
                judged.problems.push(Problem::Unmatched { query });
            }
        }
        judged
    }
}

/// Whether a query names a section, or its beginning up to a colon.
fn names(query: &str, section: &str) -> bool {
    matches(query, section) || matches(&format!("{query}:*"), section)
}

/// Whether a text has a pattern, in which `*` stands for any characters.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(start) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let end = parts.pop().unwrap_or("");
    for part in parts {
        // The first place is as good as any later one, because more of the text is left behind it.
        let Some(at) = text.find(part) else { return false };
        text = &text[at + part.len()..];
    }
    text.ends_with(end)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_anything() {
        for (pattern, text, is_match) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("*", "", true),
            ("a*", "abc", true),
            ("*c", "abc", true),
            ("a*c", "abc", true),
            ("a*c", "ac", true),
            ("a*a", "a", false),
            ("*b*", "abc", true),
            ("a*b*c", "aXbYc", true),
            ("a*b*c", "aXcYb", false),
            ("*ab*ab", "abab", true),
            ("*ab*ab", "ab", false),
            ("é*", "éa", true),
        ] {
            assert_eq!(matches(pattern, text), is_match, "{pattern} {text}");
        }
        assert!(names("ops.add:u32", "ops.add:u32:wg=64:all") && !names("ops.add:u3", "ops.add:u32:wg=64:all"));
        assert!(names("ops.add:u32:wg=64", "ops.add:u32:wg=64:all") && !names("ops.add:u32:wg=6", "ops.add:u32:wg=64:all"));
    }
}
