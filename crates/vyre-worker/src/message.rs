//! What judge and worker say to each other. `docs/workers.md` specifies it.
//!
//! A message is its length as a little-endian u32 and that many bytes. The first of each side are JSON: the judge says where the shared
//! memory is, the worker which subject it is and which [`Encoding`] it speaks from then on. Then the judge sends batches, and the worker
//! one message of answers for each; the bytes of buffers are in shared memory and never in messages.

use crate::memory::Region;
use crate::subject::Failure;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use vyre_driver::device::{Generation, Ran};
use vyre_foundation::config::DispatchConfig;
use vyre_foundation::ir::Program;

/// The version of all this.
pub(crate) const PROTOCOL: u32 = 2;

/// How messages and the programs in them are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Encoding {
    /// Messages in the format of `postcard`, programs in wire form.
    Wire,
    /// Messages and programs as JSON.
    Json,
}

impl Encoding {
    /// A message as bytes.
    pub fn encode<T: Serialize>(self, message: &T) -> Result<Vec<u8>, String> {
        match self {
            Encoding::Wire => postcard::to_allocvec(message).map_err(|error| error.to_string()),
            Encoding::Json => serde_json::to_vec(message).map_err(|error| error.to_string()),
        }
    }

    /// The message in these bytes; all of them.
    pub fn decode<T: DeserializeOwned>(self, bytes: &[u8]) -> Result<T, String> {
        match self {
            Encoding::Wire => match postcard::take_from_bytes(bytes) {
                Ok((message, [])) => Ok(message),
                Ok((_, rest)) => Err(format!("{} bytes are left over", rest.len())),
                Err(error) => Err(error.to_string()),
            },
            Encoding::Json => {
                let mut input = serde_json::Deserializer::from_slice(bytes);
                let message = serde_path_to_error::deserialize(&mut input)
                    .map_err(|error| format!("`{}`: {}", error.path(), error.inner()))?;
                input.end().map_err(|error| error.to_string())?;
                Ok(message)
            }
        }
    }
}

/// What the judge says first.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Hello {
    /// The version of the protocol.
    pub vyre_worker: u32,
    /// The number under which the worker has inherited the file of the shared memory.
    pub memory_fd: i32,
    /// The encodings that the judge speaks.
    pub encodings: Vec<Encoding>,
}

/// What the worker says first.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Greeting {
    /// The version of the protocol.
    pub vyre_worker: u32,
    /// Which subject it is.
    pub subject: String,
    /// What it speaks from here on.
    pub encoding: Encoding,
}

/// Cases to run, in this order.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Batch {
    /// How long the shared memory is. It only grows.
    pub memory: u64,
    /// Where its status words begin, one per case. Its buffers are behind them; the rest of the memory belongs to other batches.
    pub status: u64,
    /// The programs of the cases.
    pub programs: Vec<Program>,
    /// The cases.
    pub cases: Vec<Work>,
}

/// One case. Its buffers lie behind each other, inputs first, each behind those of the case before.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Work {
    /// What is run: one dispatch, or several over buffers that stay.
    pub run: Vec<Run>,
    /// The bytes of the inputs, not to be changed. Of one dispatch in the order of its interface; of several, those that the buffers
    /// begin with.
    pub inputs: Vec<Region>,
    /// Where outputs go, to be written completely. Of one dispatch in the order of its interface; of several, what is in the buffers
    /// at the end, in the same order.
    pub outputs: Vec<Region>,
    /// The steps that it may take.
    pub fuel: u64,
}

/// One dispatch of a case.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Which of the programs.
    pub program: u32,
    /// What is said about the dispatch.
    pub config: DispatchConfig,
    /// Workgroups along x, y and z that follow from config, inputs and outputs.
    pub grid: [u32; 3],
    /// Invocations of one of them along x, y and z.
    pub workgroup: [u32; 3],
    /// For dispatches over buffers that stay: which of them the program is bound to, by binding number. Otherwise there are none.
    pub buffers: Option<Vec<u32>>,
}

/// One answer per case, in their order.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answers {
    /// The answers.
    pub answers: Vec<Told>,
}

/// What came of a case.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Told {
    /// The outputs are in their places; what ran, of each dispatch, as far as the worker knows.
    Outputs(#[serde(with = "ran")] Vec<Ran>),
    /// There are none.
    Failure(Failure),
}

/// What ran, in messages. The compiler sees to it that no field is missed.
mod ran {
    use super::*;
    use serde::{Serializer, ser::SerializeSeq};

    /// Where serde sees a reference it takes it for one into the message.
    type StaticName = &'static str;

    #[derive(Serialize, Deserialize)]
    #[serde(remote = "Ran", deny_unknown_fields)]
    struct RanMessage {
        #[serde(deserialize_with = "device")]
        device: StaticName,
        #[serde(with = "generation")]
        generation: Generation,
        workgroup: [u32; 3],
        grid: [u32; 3],
        groups: Range<u64>,
        #[serde(with = "optional_text")]
        profile: Option<Arc<str>>,
        threads: u32,
        #[serde(with = "text")]
        lowering: Arc<str>,
        #[serde(default)]
        code: Option<[u8; 32]>,
        ulp: Option<u8>,
        cache_hit: bool,
        device_ns: Option<u64>,
    }

    #[derive(Serialize)]
    struct Lent<'a>(#[serde(with = "RanMessage")] &'a Ran);
    #[derive(Deserialize)]
    struct Owned(#[serde(with = "RanMessage")] Ran);

    pub(super) fn serialize<S: Serializer>(list: &[Ran], serializer: S) -> Result<S::Ok, S::Error> {
        let mut sequence = serializer.serialize_seq(Some(list.len()))?;
        list.iter().try_for_each(|ran| sequence.serialize_element(&Lent(ran)))?;
        sequence.end()
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Ran>, D::Error> {
        Ok(Vec::<Owned>::deserialize(deserializer)?.into_iter().map(|Owned(ran)| ran).collect())
    }

    /// Names of devices live as long as the process. There are few; a worker that makes them up is stopped.
    fn device<'de, D: Deserializer<'de>>(deserializer: D) -> Result<&'static str, D::Error> {
        use serde::de::Error;
        static KNOWN: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
        let name = String::deserialize(deserializer)?;
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        match known.get(name.as_str()) {
            Some(known) => Ok(known),
            None if known.len() >= 1000 || name.len() > 200 => Err(D::Error::custom("more devices than there can be")),
            None => {
                let name: &'static str = name.leak();
                known.insert(name);
                Ok(name)
            }
        }
    }

    mod generation {
        use super::*;

        pub(super) fn serialize<S: Serializer>(generation: &Generation, serializer: S) -> Result<S::Ok, S::Error> {
            generation.0.serialize(serializer)
        }

        pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Generation, D::Error> {
            u64::deserialize(deserializer).map(Generation)
        }
    }

    mod text {
        use super::*;

        pub(super) fn serialize<S: Serializer>(text: &Arc<str>, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_str(text)
        }

        pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<str>, D::Error> {
            String::deserialize(deserializer).map(Arc::from)
        }
    }

    mod optional_text {
        use super::*;

        pub(super) fn serialize<S: Serializer>(text: &Option<Arc<str>>, serializer: S) -> Result<S::Ok, S::Error> {
            text.as_deref().serialize(serializer)
        }

        pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Arc<str>>, D::Error> {
            Ok(Option::<String>::deserialize(deserializer)?.map(Arc::from))
        }
    }
}

/// The bytes of a message with their length before them.
pub fn framed(content: &[u8]) -> Result<Vec<u8>, String> {
    let length = u32::try_from(content.len()).map_err(|_| "a message of more than 4 GiB".to_string())?;
    let mut bytes = Vec::with_capacity(4 + content.len());
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(content);
    Ok(bytes)
}

/// Writes one message at once.
pub(crate) fn write_message(out: &mut impl Write, content: &[u8]) -> io::Result<()> {
    out.write_all(&framed(content).map_err(io::Error::other)?)?;
    out.flush()
}

/// The next message, or `None` at the end. Memory grows with what arrives, not with what the length promises.
pub(crate) fn read_message(input: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
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
