//! The canonical encoding of programs: what identity and fingerprints are made of.
//!
//! Numbers are LEB128 in their shortest form, names and lists are preceded by their length, trees are written in the order of
//! [`crate::ir::Walk`] with every statement and expression preceded by its tag and the lengths of what follows, so that equal bytes
//! mean equal programs and nothing has to be looked up to read them.

mod encode;

pub(crate) use encode::{encode_expr, encode_nodes, encode_parts};
