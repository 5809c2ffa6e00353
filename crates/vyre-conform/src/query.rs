//! Which parts of the suite are meant.
//!
//! A name is an op and words behind it, with colons between them: `ops.int.add:u32:wg=64:boundary`. A query is written the same way and
//! says less: its first word is an op or what ops have in common before a dot (`ops.int`), and the others must be found in the name in
//! their order. `*` stands for any letters within a word, and alone for any words. `!` before a query takes away what it means.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Several queries, as one. In files it is a single query, as text.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Selection {
    meant: Vec<Query>,
    not_meant: Vec<Query>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Query {
    text: String,
    words: Vec<String>,
}

impl Selection {
    /// How the selection of everything is written.
    pub const ALL: &str = "all";

    /// What these queries mean together: everything that one of those without `!` means, or all if there is none, without what those
    /// with `!` mean.
    ///
    /// # Errors
    ///
    /// The text of a query that is empty or has an empty word.
    pub fn new<T: AsRef<str>>(queries: impl IntoIterator<Item = T>) -> Result<Selection, String> {
        let mut selection = Selection::default();
        for text in queries {
            let text = text.as_ref();
            let (list, rest) = match text.strip_prefix('!') {
                Some(rest) => (&mut selection.not_meant, rest),
                None => (&mut selection.meant, text),
            };
            let words: Vec<String> = rest.split(':').map(str::to_string).collect();
            if words.iter().any(String::is_empty) {
                return Err(format!("`{text}` has an empty word; write `ops.int.add:u32:wg=64` or parts of it"));
            }
            list.push(Query { text: text.into(), words });
        }
        Ok(selection)
    }

    /// Whether the thing of this name is meant.
    #[must_use]
    pub fn means(&self, name: &str) -> bool {
        let words: Vec<&str> = name.split(':').collect();
        let any = |queries: &[Query]| queries.iter().any(|query| query.means(&words));
        (self.meant.is_empty() || any(&self.meant)) && !any(&self.not_meant)
    }

    /// The queries without `!` that mean none of these names: mistakes, or parts that are gone.
    pub fn means_nothing<'n>(&self, names: impl Iterator<Item = &'n str>) -> Vec<&str> {
        let mut idle: Vec<&Query> = self.meant.iter().collect();
        for name in names {
            if idle.is_empty() {
                break;
            }
            let words: Vec<&str> = name.split(':').collect();
            idle.retain(|query| !query.means(&words));
        }
        idle.into_iter().map(|query| query.text.as_str()).collect()
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.meant.is_empty() && self.not_meant.is_empty() {
            return f.write_str(Selection::ALL);
        }
        let all: Vec<&str> = self.meant.iter().chain(&self.not_meant).map(|query| query.text.as_str()).collect();
        f.write_str(&all.join(" "))
    }
}

impl TryFrom<String> for Selection {
    type Error = String;

    fn try_from(query: String) -> Result<Selection, String> {
        Selection::new([query])
    }
}

impl From<Selection> for String {
    fn from(selection: Selection) -> String {
        selection.to_string()
    }
}

impl Query {
    fn means(&self, name: &[&str]) -> bool {
        let (Some((path, rest)), Some((op, words))) = (self.words.split_first(), name.split_first()) else { return false };
        let is_below = || op.strip_prefix(path.as_str()).is_some_and(|below| below.starts_with('.'));
        if !glob(path, op) && !is_below() {
            return false;
        }
        let mut words = words.iter();
        rest.iter().filter(|word| *word != "*").all(|word| words.any(|found| glob(word, found)))
    }
}

/// Whether a word with `*` in it fits another.
fn glob(pattern: &str, word: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == word };
    let Some(mut left) = word.strip_prefix(start) else { return false };
    let mut parts = rest.split('*').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return left.ends_with(part);
        }
        let Some(at) = left.find(part) else { return false };
        left = &left[at + part.len()..];
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_mean_what_they_say() {
        let name = "ops.int.add:u32:wg=64:boundary";
        let rows = [
            ("ops", true),
            ("ops.int", true),
            ("ops.in", false),
            ("ops.in*", true),
            ("ops.int.add", true),
            ("ops.int.add:u32", true),
            ("ops.int.add:i32", false),
            ("ops.int.add:u32:wg=64:*", true),
            ("ops.int.add:wg=64", true),
            ("ops.int.add:wg=6", false),
            ("*:wg=64", true),
            ("*:boundary:u32", false),
            ("*.add:*:boundary", true),
            ("*.sub", false),
            ("o*i*a*d", true),
            ("o*i*a*x", false),
        ];
        for (query, means) in rows {
            assert_eq!(Selection::new([query]).unwrap().means(name), means, "{query}");
            assert_eq!(Selection::new([format!("!{query}")]).unwrap().means(name), !means, "!{query}");
        }
        assert!(Selection::default().means(name));
        assert!(!Selection::new(["ops", "!*:u32"]).unwrap().means(name));
        assert!(Selection::new(["ops::u32"]).is_err() && Selection::new([""]).is_err());
        assert_eq!(Selection::new(["cast", "ops"]).unwrap().means_nothing([name].into_iter()), ["cast"]);
    }
}
