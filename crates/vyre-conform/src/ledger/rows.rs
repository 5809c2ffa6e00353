//! What stands in the tables of a ledger, and how it is known to be whole.
//!
//! Every value carries a hash over itself and its place, because the database checks its pages only when it repairs itself: a byte that
//! changes on the disk is found, and the message says in which table and at which key.

use super::LedgerError;
use crate::digest::Digest;
use redb::TableDefinition;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::Path;

/// The layout of the file, and nothing else: it can be read whatever the other tables have become.
pub(super) const ABOUT: TableDefinition<'_, &str, &str> = TableDefinition::new("about");
/// `identity`, `run`, and `finished`, the root of a run that has come to its end.
pub(super) const FACTS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("facts");
pub(super) const UNITS: TableDefinition<'_, (&str, u64), &[u8]> = TableDefinition::new("units");
pub(super) const FAILURES: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("failures");
pub(super) const SECTIONS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("sections");
pub(super) const REMARKS: TableDefinition<'_, (&str, &str), &[u8]> = TableDefinition::new("remarks");
pub(super) const SEALS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("seals");

/// Bytes of the hash behind a value. It is there for accidents: whoever changes a ledger on purpose also changes its roots.
const MARK: usize = 16;

fn mark(table: &str, key: &str, bytes: &[u8]) -> [u8; MARK] {
    *Digest::of([table.as_bytes(), key.as_bytes(), bytes]).0.first_chunk().expect("a digest is longer")
}

/// The bytes with their hash behind them.
pub(super) fn marked(table: &str, key: &str, mut bytes: Vec<u8>) -> Vec<u8> {
    let mark = mark(table, key, &bytes);
    bytes.extend(mark);
    bytes
}

/// A value of JSON with its hash.
pub(super) fn json<T: Serialize>(table: &str, key: &str, value: &T) -> Vec<u8> {
    // What is written are our own structs of numbers and strings: nothing in them can fail.
    marked(table, key, serde_json::to_vec(value).expect("records are JSON"))
}

/// A value of the binary form with its hash.
pub(super) fn binary<T: Serialize>(table: &str, key: &str, value: &T) -> Vec<u8> {
    marked(table, key, postcard::to_allocvec(value).expect("records have a binary form"))
}

/// Bytes whose hash is right, without it.
fn whole<'b>(path: &Path, table: &str, key: &str, bytes: &'b [u8]) -> Result<&'b [u8], LedgerError> {
    let split = bytes.split_last_chunk::<MARK>().filter(|(bytes, found)| mark(table, key, bytes) == **found);
    split.map(|(bytes, _)| bytes).ok_or_else(|| damaged(path, table, key))
}

/// A value that was written with [`json`].
pub(super) fn from_json<T: DeserializeOwned>(path: &Path, table: &str, key: &str, bytes: &[u8]) -> Result<T, LedgerError> {
    serde_json::from_slice(whole(path, table, key, bytes)?).map_err(|error| {
        LedgerError::Damaged(path.into(), format!("the table `{table}` at `{key}` is not what this vyre writes: {error}"))
    })
}

/// A value that was written with [`binary`].
pub(super) fn from_binary<T: DeserializeOwned>(path: &Path, table: &str, key: &str, bytes: &[u8]) -> Result<T, LedgerError> {
    postcard::from_bytes(whole(path, table, key, bytes)?).map_err(|_| damaged(path, table, key))
}

fn damaged(path: &Path, table: &str, key: &str) -> LedgerError {
    LedgerError::Damaged(path.into(), format!("the table `{table}` at `{key}` does not have the bytes that were written"))
}
