//! One dispatch as a value: what bundles keep, workers are sent, generators make and the command line says.

use crate::Report;
use crate::config::DispatchConfig;
use crate::ir::Program;
use crate::launch::{Launch, plan};
use serde::{Deserialize, Serialize};

/// One dispatch: a program, the bytes of its inputs in the order of its interface, and what is said about it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The program, constants not yet replaced.
    pub program: Program,
    /// In the order of the program's interface.
    #[serde(with = "bytes::lists")]
    pub inputs: Vec<Vec<u8>>,
    /// Grid, lengths of outputs, values for constants, and the rest.
    pub config: DispatchConfig,
    /// The steps in which the reference ends it. Whoever counts steps may take as many; whoever does not ignores it.
    pub fuel: u64,
}

impl Case {
    /// A dispatch about which nothing is said beside its inputs; 4 billion steps.
    #[must_use]
    pub fn new(program: Program, inputs: Vec<Vec<u8>>) -> Case {
        Case { program, inputs, config: DispatchConfig::default(), fuel: 1 << 32 }
    }

    /// The inputs as slices, as everything that runs programs takes them.
    #[must_use]
    pub fn input_slices(&self) -> Vec<&[u8]> {
        self.inputs.iter().map(Vec::as_slice).collect()
    }

    /// The lengths of the inputs in bytes.
    #[must_use]
    pub fn input_sizes(&self) -> Vec<u64> {
        self.inputs.iter().map(|bytes| bytes.len() as u64).collect()
    }

    /// The program with its constants replaced.
    pub fn specialized(&self) -> Result<Program, Report> {
        self.config.specialization.apply(&self.program)
    }

    /// The shape of the dispatch, of the program with its constants replaced.
    pub fn plan(&self) -> Result<Launch, Report> {
        plan(&self.specialized()?, &self.input_sizes(), &self.config.launch())
    }
}

/// Bytes in messages and files: hex in formats for people, as they are in others.
pub mod bytes {
    use serde::de::{Error, Visitor};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::fmt;

    /// Bytes that are written so.
    pub struct Bytes<T>(pub T);

    impl<T: AsRef<[u8]>> Serialize for Bytes<T> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let bytes = self.0.as_ref();
            if !serializer.is_human_readable() {
                return serializer.serialize_bytes(bytes);
            }
            let digit = |n: u8| char::from_digit(u32::from(n), 16).unwrap_or_default();
            let text: String = bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect();
            serializer.serialize_str(&text)
        }
    }

    impl<'de> Deserialize<'de> for Bytes<Vec<u8>> {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct Either;

            impl<'de> Visitor<'de> for Either {
                type Value = Bytes<Vec<u8>>;

                fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str("bytes in hex")
                }

                fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Self::Value, E> {
                    Ok(Bytes(bytes.to_vec()))
                }

                fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
                    let digit = |byte: u8| char::from(byte).to_digit(16);
                    let byte = |[high, low]: &[u8; 2]| Some((digit(*high)? << 4 | digit(*low)?) as u8);
                    let bytes = if rest.is_empty() { pairs.iter().map(byte).collect() } else { None };
                    bytes.map(Bytes).ok_or_else(|| E::custom("this is not hex"))
                }
            }

            if deserializer.is_human_readable() {
                deserializer.deserialize_str(Either)
            } else {
                deserializer.deserialize_bytes(Either)
            }
        }
    }

    /// For a field of bytes.
    pub fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        Bytes(bytes).serialize(serializer)
    }

    /// For a field of bytes.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        Bytes::deserialize(deserializer).map(|Bytes(bytes)| bytes)
    }

    /// The same for a list of them.
    pub mod lists {
        use super::Bytes;
        use serde::{Deserialize, Deserializer, Serializer};

        /// For a field that is a list of bytes.
        pub fn serialize<S: Serializer>(lists: &[Vec<u8>], serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_seq(lists.iter().map(Bytes))
        }

        /// For a field that is a list of bytes.
        pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Vec<u8>>, D::Error> {
            let lists = Vec::<Bytes<Vec<u8>>>::deserialize(deserializer)?;
            Ok(lists.into_iter().map(|Bytes(bytes)| bytes).collect())
        }
    }
}
