//! Functions written in WGSL, and the choice of those that a module needs.
//!
//! A library is a text of functions whose names begin with `vy`. What a function calls is read off its text, so that nobody has to keep
//! a list.

use std::collections::BTreeSet;

/// Integer ops that WGSL has not.
pub(super) const INTEGERS: &str = include_str!("integers.wgsl");

/// The functions of a text, each with its name.
fn split(text: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    text.split("\nfn ").skip(1).map(|function| {
        let name = function.split('(').next().unwrap_or_default();
        let end = function.find("\n}").map_or(function.len(), |end| end + 2);
        (name, &function[..end])
    })
}

/// The names of our functions that a text mentions.
fn mentioned(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| word.starts_with("vy"))
}

/// The functions of a library that a text needs, with all that these need, in the order of the library.
pub(super) fn needed(library: &'static str, text: &str) -> String {
    let functions: Vec<(&str, &str)> = split(library).collect();
    let mut names: BTreeSet<&str> = BTreeSet::new();
    let mut texts = vec![text];
    while let Some(text) = texts.pop() {
        for name in mentioned(text) {
            if let Some((name, body)) = functions.iter().find(|(known, _)| *known == name)
                && names.insert(name)
            {
                texts.push(body);
            }
        }
    }
    functions.iter().filter(|(name, _)| names.contains(name)).map(|(_, body)| format!("\nfn {body}\n")).collect()
}
