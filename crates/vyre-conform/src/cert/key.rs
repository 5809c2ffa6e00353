//! Keys, as files of the user's.
//!
//! Files are PEM as `openssl genpkey -algorithm ed25519` and `openssl pkey -pubout` write it: PKCS #8 for the secret key, X.509
//! SubjectPublicKeyInfo for the public one. For ed25519 both are a constant prefix and 32 bytes.

use crate::digest::Digest;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use std::fmt;
use std::path::{Path, PathBuf};
use vyre_driver::files;

const SECRET: (&str, [u8; 16]) = ("PRIVATE KEY", [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20]);
const PUBLIC: (&str, [u8; 12]) = ("PUBLIC KEY", [0x30, 0x2a, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 3, 0x21, 0]);

/// A key that signs.
pub struct SecretKey(SigningKey);

/// A key that says who signed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PublicKey(VerifyingKey);

/// Why there is no key.
#[derive(Debug)]
pub enum KeyError {
    /// The file cannot be read.
    Unreadable(PathBuf, std::io::Error),
    /// The file does not hold such a key.
    Malformed(PathBuf, String),
    /// The files cannot be made; a file that is there is never written over.
    Unwritable(files::FileError),
    /// The system gives no random numbers.
    NoRandomness(String),
}

impl SecretKey {
    /// A new key, from the system's random numbers.
    pub fn generate() -> Result<SecretKey, KeyError> {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(|error| KeyError::NoRandomness(error.to_string()))?;
        Ok(SecretKey(SigningKey::from_bytes(&seed)))
    }

    /// The key of 32 bytes, for tests that need the same one every time.
    #[must_use]
    pub fn from_seed(seed: [u8; 32]) -> SecretKey {
        SecretKey(SigningKey::from_bytes(&seed))
    }

    /// Reads a file.
    pub fn read(path: &Path) -> Result<SecretKey, KeyError> {
        Ok(SecretKey(SigningKey::from_bytes(&read(path, SECRET.0, &SECRET.1)?)))
    }

    /// The key that others check signatures with.
    #[must_use]
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }

    /// Makes two files: this key, which only its owner may read, and the public one. Neither may exist.
    pub fn create(&self, secret: &Path, public: &Path) -> Result<(), KeyError> {
        let mine = pem(SECRET.0, &SECRET.1, self.0.as_bytes());
        let others = self.public().to_pem();
        let made = files::create_all(&[
            files::NewFile { path: secret, bytes: mine.as_bytes(), is_secret: true },
            files::NewFile { path: public, bytes: others.as_bytes(), is_secret: false },
        ]);
        made.map_err(KeyError::Unwritable)
    }

    pub(super) fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.0.sign(message).to_bytes()
    }
}

impl PublicKey {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<PublicKey, KeyError> {
        let malformed = |what: &str| KeyError::Malformed(path.into(), what.into());
        let bytes = read(path, PUBLIC.0, &PUBLIC.1)?;
        let key = VerifyingKey::from_bytes(&bytes).map_err(|_| malformed("its 32 bytes are not a point of the curve"))?;
        // With such a key anybody can sign.
        if key.is_weak() { Err(malformed("the key is weak")) } else { Ok(PublicKey(key)) }
    }

    /// The file's text.
    #[must_use]
    pub fn to_pem(&self) -> String {
        pem(PUBLIC.0, &PUBLIC.1, self.0.as_bytes())
    }

    /// What it is called in envelopes: the hash of its 32 bytes.
    #[must_use]
    pub fn id(&self) -> Digest {
        Digest(blake3::hash(self.0.as_bytes()).into())
    }

    /// Whether this signature of this message is of this key, and the only one that is.
    pub(super) fn has_signed(&self, message: &[u8], signature: &[u8; 64]) -> bool {
        self.0.verify_strict(message, &Signature::from_bytes(signature)).is_ok()
    }
}

fn pem(label: &str, prefix: &[u8], key: &[u8; 32]) -> String {
    let body = STANDARD.encode([prefix, key].concat());
    format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n")
}

fn read(path: &Path, label: &str, prefix: &[u8]) -> Result<[u8; 32], KeyError> {
    let bytes = std::fs::read(path).map_err(|error| KeyError::Unreadable(path.into(), error))?;
    let malformed = |what: String| KeyError::Malformed(path.into(), what);
    let text = str::from_utf8(&bytes).map_err(|error| malformed(format!("byte {} is not text", error.valid_up_to())))?;
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let wanted = format!("-----BEGIN {label}-----");
    let begin = *lines.first().ok_or_else(|| malformed("it is empty".into()))?;
    if begin != wanted {
        let found = begin.strip_prefix("-----BEGIN ").and_then(|rest| rest.strip_suffix("-----"));
        return Err(malformed(match found {
            Some(found) if found == SECRET.0 => "it is a secret key, and a public one is needed here".into(),
            Some(found) if found == PUBLIC.0 => "it is a public key, and a secret one is needed here".into(),
            Some(found) => format!("it holds a {found}, and a {label} of ed25519 is needed"),
            None => format!("line 1 is not `{wanted}`"),
        }));
    }
    let ended = lines[1..].split_last().filter(|(end, _)| **end == format!("-----END {label}-----"));
    let Some((_, body)) = ended else {
        return Err(malformed(format!("line {} is not `-----END {label}-----`", lines.len())));
    };
    let bytes = STANDARD.decode(body.concat()).map_err(|error| malformed(format!("what is between the lines: {error}")))?;
    let key = bytes.strip_prefix(prefix).and_then(|key| <[u8; 32]>::try_from(key).ok());
    key.ok_or_else(|| malformed("it is not a key of ed25519, or of another version of its format".into()))
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyError::Unreadable(path, error) => write!(f, "cannot read {}: {error}", path.display()),
            KeyError::Malformed(path, what) => write!(f, "{} does not hold the key: {what}", path.display()),
            KeyError::Unwritable(error) => write!(f, "{error}"),
            KeyError::NoRandomness(why) => write!(f, "the system gives no random numbers: {why}"),
        }
    }
}

impl std::error::Error for KeyError {}
