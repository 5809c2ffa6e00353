//! Text: base64, UTF-8, and automata.

mod base64;
mod dfa;
mod utf8;

pub use base64::{base64_decode, base64_decode_on_cpu, base64_encode, base64_encode_on_cpu};
pub use dfa::{dfa_matches, dfa_matches_on_cpu};
pub use utf8::{utf8_rest, utf8_rest_on_cpu};
