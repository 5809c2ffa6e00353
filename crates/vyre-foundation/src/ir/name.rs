//! Names of programs, buffers, constants and variables.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

/// A name; cheap to clone. Any text can be a name: the text form quotes those that are not identifiers.
#[derive(Clone, PartialEq, Eq)]
pub struct Name(Repr);

/// Most names are short, and programs are full of them: those are kept in place, which needs no memory and no counting.
#[derive(Clone, PartialEq, Eq)]
enum Repr {
    /// Every name of up to [`SHORT`] bytes: its length, its bytes, zeros.
    Short([u8; 1 + SHORT]),
    /// All others.
    Long(Arc<str>),
}

/// What fits beside the pointer that a long name takes, and a length.
const SHORT: usize = 7;

impl Name {
    /// The name of these bytes, if they are ASCII and few: without the way over a text.
    #[inline]
    pub(crate) fn short_ascii(text: &[u8]) -> Option<Name> {
        if text.len() > SHORT {
            return None;
        }
        // Put together in a register: what is written byte by byte cannot be read soon as a whole.
        let word = text.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)) << 8 | text.len() as u64;
        (word & 0x8080_8080_8080_8080 == 0).then_some(Name(Repr::Short(word.to_le_bytes())))
    }

    /// The text of the name, without quotes.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Repr::Short(_) => std::str::from_utf8(self.as_bytes()).expect("a name is made of a text"),
            Repr::Long(text) => text,
        }
    }

    /// The same, as bytes of UTF-8.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Repr::Short([length, bytes @ ..]) => &bytes[..usize::from(*length)],
            Repr::Long(text) => text.as_bytes(),
        }
    }
}

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Self {
        if text.len() > SHORT {
            return Name(Repr::Long(text.into()));
        }
        let mut short = [0; 1 + SHORT];
        short[0] = text.len() as u8;
        short[1..=text.len()].copy_from_slice(text.as_bytes());
        Name(Repr::Short(short))
    }
}

impl From<String> for Name {
    fn from(text: String) -> Self {
        Name::from(text.as_str())
    }
}

/// As texts are ordered.
impl Ord for Name {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_bytes().cmp(other.as_bytes())
    }
}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// As the text, which stands for the name in maps.
impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl From<&Name> for Name {
    fn from(name: &Name) -> Self {
        name.clone()
    }
}

impl std::borrow::Borrow<str> for Name {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl PartialEq<str> for Name {
    fn eq(&self, other: &str) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl PartialEq<&str> for Name {
    fn eq(&self, other: &&str) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

/// The spelling in the text form: bare where possible, else in backticks.
impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::text::write_name(f, self)
    }
}

/// The name in backticks, as messages show it.
impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn short_and_long_names_are_their_texts() {
        let texts = ["", "i", "sum", "seventy", "eight888", "größen", "größe", "größer", "a name of many bytes", "i\0"];
        let mut map: HashMap<Name, &str> = HashMap::new();
        for a in texts {
            let name = Name::from(a);
            assert_eq!((name.as_str(), name.as_bytes(), name.len()), (a, a.as_bytes(), a.len()));
            assert!(name == *a && Name::from(a.to_string()) == name);
            for b in texts {
                let other = Name::from(b);
                assert_eq!((name == other, name.cmp(&other)), (a == b, a.cmp(b)), "{a} {b}");
            }
            map.insert(name, a);
        }
        assert!(texts.iter().all(|text| map.get(*text) == Some(text)));
        assert_eq!(size_of::<Name>(), size_of::<Arc<str>>());
    }
}
