//! Certificates: what a run has shown, signed.
//!
//! A certificate is a claim: whoever holds the key says that this device gave these bytes. The bytes of a device that passes are public,
//! because the suite says what they are, so a signature proves nothing about the device by itself. But anyone who has such a device can
//! run units again ([`audit`]) and refute a claim that is false.
//!
//! The file is a DSSE envelope ([`envelope`](self)) around an in-toto statement. `docs/certificates.md` has every field.

mod audit;
mod envelope;
mod key;
mod statement;

pub use audit::{Audit, AuditError, Audited, Outcome, Rerun, audit, same_run};
pub use envelope::PAYLOAD_TYPE;
pub use key::{KeyError, PublicKey, SecretKey};
pub use statement::{Certificate, Counts, Exception, PREDICATE_TYPE, Tested, Unsigned};

use serde::de::DeserializeOwned;
use std::fmt;

/// Why a certificate is not accepted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CertError {
    /// It is not what was signed, or not by this key.
    Rejected {
        /// Where: a field, the signature, or a byte.
        place: String,
        /// What is wrong there.
        why: String,
    },
    /// It is signed, and says something that this version does not know.
    Version(String),
}

impl fmt::Display for CertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CertError::Rejected { place, why } => write!(f, "the certificate is rejected, at {place}: {why}"),
            CertError::Version(found) => {
                write!(f, "the certificate is a `{found}`, and this vyre knows `{PREDICATE_TYPE}`: use a later version")
            }
        }
    }
}

impl std::error::Error for CertError {}

fn rejected(place: impl Into<String>, why: impl Into<String>) -> CertError {
    CertError::Rejected { place: place.into(), why: why.into() }
}

/// Reads JSON, and names the field or the byte that is wrong.
fn from_json<T: DeserializeOwned>(bytes: &[u8], what: &str) -> Result<T, CertError> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let read = serde_path_to_error::deserialize(&mut deserializer);
    let value = read.map_err(|error| {
        let path = error.path().to_string();
        let place = if path == "." { what.to_string() } else { format!("`{path}` of {what}") };
        rejected(place, error.inner().to_string())
    })?;
    deserializer.end().map_err(|error| rejected(what, error.to_string()))?;
    Ok(value)
}
