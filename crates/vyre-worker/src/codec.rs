//! Cases and outcomes as bytes, for the channel between a judge and its worker.
//!
//! A frame is its length as a u32 and that many bytes. The judge sends batches of cases; the worker greets once and then sends one
//! frame per case, so that the judge knows which case a process died of. A program that is the same as in the case before is not
//! sent again, and is then the same shared program in the worker too, with its proof of validity.

use crate::bundle::outcome;
use crate::subject::{Failure, Outputs};
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};
use vyre_foundation::case::{Case, bytes};
use vyre_foundation::config::DispatchConfig;
use vyre_foundation::ir::Program;

/// What a worker says first; judge and worker of different protocols do not talk.
const GREETING: &str = "vyre-worker 1";

/// Writes one frame at once.
pub(crate) fn write_frame(out: &mut impl Write, content: &[u8]) -> io::Result<()> {
    let length = u32::try_from(content.len()).map_err(|_| io::Error::other("a frame of more than 4 GiB"))?;
    let mut bytes = Vec::with_capacity(4 + content.len());
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(content);
    out.write_all(&bytes)?;
    out.flush()
}

/// The next frame, or `None` at the end. Memory grows with what arrives, not with what the length promises.
pub(crate) fn read_frame(input: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; 4];
    let mut have = 0;
    while have < length.len() {
        match input.read(&mut length[have..]) {
            Ok(0) if have == 0 => return Ok(None),
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => have += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let length = u32::from_le_bytes(length);
    let mut content = Vec::with_capacity((length as usize).min(1 << 16));
    input.take(u64::from(length)).read_to_end(&mut content)?;
    if content.len() < length as usize {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Some(content))
}

#[derive(Serialize, Deserialize)]
struct Sent {
    program: Option<Program>,
    #[serde(with = "bytes::lists")]
    inputs: Vec<Vec<u8>>,
    config: DispatchConfig,
    fuel: u64,
}

#[derive(Serialize, Deserialize)]
struct Told(u32, #[serde(with = "outcome")] Result<Outputs, Failure>);

/// What a worker says first: which subject it is.
pub(crate) fn encode_greeting(subject: &str) -> Vec<u8> {
    postcard::to_allocvec(&(GREETING, subject)).unwrap_or_default()
}

/// The subject that a worker says it is.
pub(crate) fn decode_greeting(bytes: &[u8]) -> Result<String, String> {
    match postcard::from_bytes(bytes) {
        Ok((GREETING, name)) => Ok(name),
        _ => Err("this is no worker of this version".into()),
    }
}

/// A batch of cases. A program that is nested too deep has no bytes.
pub fn encode_batch<'a>(cases: impl IntoIterator<Item = &'a Case>) -> Result<Vec<u8>, String> {
    let mut before: Option<&Program> = None;
    let mut sent = Vec::new();
    for case in cases {
        sent.push(Sent {
            program: (before != Some(&case.program)).then(|| case.program.clone()),
            inputs: case.inputs.clone(),
            config: case.config.clone(),
            fuel: case.fuel,
        });
        before = Some(&case.program);
    }
    postcard::to_allocvec(&sent).map_err(|error| error.to_string())
}

/// The cases of a batch.
pub fn decode_batch(bytes: &[u8]) -> Result<Vec<Case>, String> {
    let sent: Vec<Sent> = postcard::from_bytes(bytes).map_err(|error| error.to_string())?;
    let mut cases: Vec<Case> = Vec::new();
    for Sent { program, inputs, config, fuel } in sent {
        let program = program.or_else(|| cases.last().map(|case| case.program.clone())).ok_or("the first case has no program")?;
        cases.push(Case { program, inputs, config, fuel });
    }
    Ok(cases)
}

/// What came of the case with this number in its batch.
pub fn encode_outcome(number: u32, outcome: Result<Outputs, Failure>) -> Vec<u8> {
    postcard::to_allocvec(&Told(number, outcome)).unwrap_or_default()
}

/// The number of a case in its batch and what came of it.
pub fn decode_outcome(bytes: &[u8]) -> Result<(u32, Result<Outputs, Failure>), String> {
    let Told(number, outcome) = postcard::from_bytes(bytes).map_err(|error| error.to_string())?;
    Ok((number, outcome))
}
