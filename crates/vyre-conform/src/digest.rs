//! Hashes, and trees of them.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// The blake3 hash of something. Its text is 64 hex digits, in JSON too; binary formats hold the 32 bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// The hash of parts, each behind its length, so that no two lists of parts are hashed alike.
    pub fn of<T: AsRef<[u8]>>(parts: impl IntoIterator<Item = T>) -> Digest {
        let mut hasher = blake3::Hasher::new();
        for part in parts {
            let part = part.as_ref();
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        Digest(hasher.finalize().into())
    }

    /// Its first eight bytes, as a number to draw with.
    pub(crate) fn number(&self) -> u64 {
        u64::from_le_bytes(*self.0.first_chunk().expect("a hash has 32 bytes"))
    }

    /// The root of a tree over these leaves, as RFC 6962 shapes it: the left half is the largest power of two that leaves something for
    /// the right. Leaves and inner nodes are hashed apart, so that none can pass for the other.
    #[must_use]
    pub fn tree(leaves: &[Digest]) -> Digest {
        match leaves {
            [] => Digest::of(["no leaves"]),
            [leaf] => Digest::of([b"leaf".as_slice(), &leaf.0]),
            _ => {
                let (left, right) = leaves.split_at(leaves.len().next_power_of_two() / 2);
                Digest::of([b"node".as_slice(), &Digest::tree(left).0, &Digest::tree(right).0])
            }
        }
    }
}

impl AsRef<[u8]> for Digest {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&blake3::Hash::from_bytes(self.0).to_hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = String;

    fn from_str(text: &str) -> Result<Digest, String> {
        let hash = blake3::Hash::from_hex(text).map_err(|_| format!("`{text}` is not 64 hex digits"))?;
        Ok(Digest(hash.into()))
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() { serializer.collect_str(self) } else { self.0.serialize(serializer) }
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if !deserializer.is_human_readable() {
            return <[u8; 32]>::deserialize(deserializer).map(Digest);
        }
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_of_other_leaves_or_another_order_have_other_roots() {
        let leaf = |n: u8| Digest([n; 32]);
        let lists: Vec<Vec<Digest>> = vec![
            vec![],
            vec![leaf(1)],
            vec![leaf(1), leaf(2)],
            vec![leaf(2), leaf(1)],
            vec![leaf(1), leaf(2), leaf(2)],
            vec![leaf(1), leaf(2), leaf(3)],
            vec![Digest::tree(&[leaf(1), leaf(2)]), leaf(3)],
            vec![Digest::tree(&[leaf(1), leaf(2)])],
        ];
        let roots: std::collections::BTreeSet<Digest> = lists.iter().map(|list| Digest::tree(list)).collect();
        assert_eq!(roots.len(), lists.len());
    }

    #[test]
    fn the_text_is_read_back() {
        let digest = Digest::of(["x"]);
        assert_eq!(digest.to_string().parse(), Ok(digest));
        assert!("12".parse::<Digest>().is_err());
    }
}
