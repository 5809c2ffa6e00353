//! The wire form: programs as bytes, one encoding per program.
//!
//! ```text
//! "vyre"  version: u16  sections  blake3 of everything before: [u8; 32]
//! section = number: u8  length: u32  content      attributes, constants, buffers, body, in this order
//! ```
//!
//! Fixed-width numbers are little-endian; all others are LEB128 in their shortest form. Names and lists are preceded by their
//! length. The body is written in the order of [`crate::ir::Walk`], every statement and expression preceded by its tag and the lengths
//! of what follows, so that nothing has to be looked up to read it.
//!
//! The sections alone are a program's identity ([`Program::wire_body`]): equal bytes, and only those, are equal programs. The encoder
//! takes programs of any depth; the decoder, which cannot trust its bytes, stops at the depth that the validator accepts.

mod decode;
mod encode;
mod tags;

use crate::diagnostic::{Diagnostic, Report};
use crate::ir::Program;
use std::fmt;
use vyre_spec::ErrorCode;
use vyre_spec::limits::MAX_NESTING;

pub(crate) use encode::{encode_expr, encode_nodes, encode_parts};

/// What every wire file begins with.
pub const MAGIC: [u8; 4] = *b"vyre";

/// The version this crate writes, and the only one there has been.
pub const VERSION: u16 = 1;

const HEADER: usize = MAGIC.len() + 2;
const CHECKSUM: usize = 32;

/// The parts of a file, by their numbers.
#[derive(Clone, Copy, Debug)]
enum Section {
    Attributes = 1,
    Consts = 2,
    Buffers = 3,
    Body = 4,
}

/// Why bytes are no program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WireError {
    /// The kind of mistake, E06xx.
    pub code: ErrorCode,
    /// The byte at which decoding stopped.
    pub offset: usize,
    /// What is wrong there.
    pub reason: String,
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: byte {}: {}", self.code, self.offset, self.reason)
    }
}

impl std::error::Error for WireError {}

impl From<WireError> for Report {
    fn from(error: WireError) -> Self {
        Report::single(Diagnostic::new(error.code, format!("byte {}: {}", error.offset, error.reason)))
    }
}

/// The bytes of a program. One that is nested too deep, or too large, for any decoder has none.
pub fn to_wire(program: &Program) -> Result<Vec<u8>, WireError> {
    let refuse = |code, reason| Err(WireError { code, offset: 0, reason });
    if program.too_deep().is_some() {
        return refuse(ErrorCode::E0607, format!("the program is nested more than {MAX_NESTING} deep"));
    }
    let body = program.wire_body();
    if body.len() > u32::MAX as usize {
        return refuse(ErrorCode::E0603, "the program takes more than 4 GiB".into());
    }
    let mut bytes = Vec::with_capacity(HEADER + body.len() + CHECKSUM);
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(body);
    bytes.extend_from_slice(&checksum(&bytes));
    Ok(bytes)
}

/// What stands at the end of a file whose other bytes are these.
#[must_use]
pub fn checksum(bytes: &[u8]) -> [u8; CHECKSUM] {
    *blake3::hash(bytes).as_bytes()
}

/// Whether bytes claim to be a program in wire form, so that a file can be told from text.
#[must_use]
pub fn is_wire(bytes: &[u8]) -> bool {
    // The version follows; in a text, a program's name or a space would.
    bytes.starts_with(&MAGIC) && bytes.get(MAGIC.len() + 1).is_some_and(|high| *high == 0)
}

/// The program in these bytes. The program may still be invalid: see [`Program::validated`].
pub fn from_wire(bytes: &[u8]) -> Result<Program, WireError> {
    let error = |code, offset, reason: String| Err(WireError { code, offset, reason });
    if !bytes.starts_with(&MAGIC) {
        return error(ErrorCode::E0601, 0, "the bytes do not begin with `vyre`".into());
    }
    let Some((head, seal)) = bytes.split_last_chunk::<CHECKSUM>().filter(|(head, _)| head.len() >= HEADER) else {
        return error(ErrorCode::E0603, bytes.len(), "a program takes more bytes than these".into());
    };
    let version = u16::from_le_bytes([head[4], head[5]]);
    if version != VERSION {
        let reason = format!("the file is of version {version}; this is version {VERSION}, and there is no older one");
        return error(ErrorCode::E0602, MAGIC.len(), reason);
    }
    if checksum(head) != *seal {
        return error(ErrorCode::E0604, head.len(), "the checksum does not belong to these bytes".into());
    }
    decode::decode_parts(&head[HEADER..], HEADER).map(Program::from_parts).map_err(|error| *error)
}
