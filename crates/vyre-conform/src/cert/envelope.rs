//! The envelope around a certificate: DSSE, with one signature.
//!
//! What is signed is `DSSEv1 LENGTH TYPE LENGTH PAYLOAD`, so that nothing else that a key signs can pass for a certificate. The file has
//! one form only: what is read must be what would be written, byte for byte, so that no byte of it can change unnoticed.

use super::key::{PublicKey, SecretKey};
use super::{CertError, rejected};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

/// The type of what is in the envelope.
pub const PAYLOAD_TYPE: &str = "application/vnd.vyre.certificate+json";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Envelope {
    payload_type: String,
    payload: String,
    signatures: Vec<Signed>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Signed {
    keyid: String,
    sig: String,
}

/// What is signed.
fn authenticated(payload: &[u8]) -> Vec<u8> {
    let mut bytes = format!("DSSEv1 {} {PAYLOAD_TYPE} {} ", PAYLOAD_TYPE.len(), payload.len()).into_bytes();
    bytes.extend(payload);
    bytes
}

/// The file.
fn text(envelope: &Envelope) -> String {
    // Strings only: nothing can fail.
    serde_json::to_string_pretty(envelope).expect("an envelope is JSON") + "\n"
}

/// Signs.
pub(super) fn seal(payload: &[u8], key: &SecretKey) -> String {
    let sig = STANDARD.encode(key.sign(&authenticated(payload)));
    let signatures = vec![Signed { keyid: key.public().id().to_string(), sig }];
    text(&Envelope { payload_type: PAYLOAD_TYPE.into(), payload: STANDARD.encode(payload), signatures })
}

/// What is in an envelope, and whether the key has signed it.
pub(super) fn open(bytes: &[u8], key: &PublicKey) -> Result<(Vec<u8>, bool), CertError> {
    let envelope: Envelope = super::from_json(bytes, "the envelope")?;
    let whole = text(&envelope);
    if whole.as_bytes() != bytes {
        let at = whole.bytes().zip(bytes).take_while(|(one, other)| one == *other).count();
        return Err(rejected(format!("byte {at} of the envelope"), "it is not in the form in which envelopes are written"));
    }
    let Envelope { payload_type, payload, signatures } = envelope;
    if payload_type != PAYLOAD_TYPE {
        return Err(rejected("payloadType", format!("it is `{payload_type}`, and a certificate has `{PAYLOAD_TYPE}`")));
    }
    let [Signed { keyid, sig }] = &signatures[..] else {
        return Err(rejected("signatures", format!("there are {}, and a certificate has one", signatures.len())));
    };
    let id = key.id().to_string();
    if *keyid != id {
        return Err(rejected("signatures[0].keyid", format!("the key that signed is `{keyid}`, and the one given is `{id}`")));
    }
    let decoded = |place: &str, text: &str| STANDARD.decode(text).map_err(|error| rejected(place, error.to_string()));
    let payload = decoded("payload", &payload)?;
    let signature = decoded("signatures[0].sig", sig)?;
    let Ok(signature) = <[u8; 64]>::try_from(signature.as_slice()) else {
        return Err(rejected("signatures[0].sig", format!("it has {} bytes, and a signature has 64", signature.len())));
    };
    let is_signed = key.has_signed(&authenticated(&payload), &signature);
    Ok((payload, is_signed))
}
