//! What a certificate says.

use super::key::{PublicKey, SecretKey};
use super::{CertError, envelope, from_json, rejected};
use crate::date::Date;
use crate::digest::Digest;
use crate::evidence::{KillRates, OpEvidence, ProfileRoot, RunData, Totals, Verdict, profiles};
use crate::expectations::Judged;
use crate::ledger::{Controls, Identity};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Which kind of statement it is, with its edition.
pub const PREDICATE_TYPE: &str = "urn:vyre:certificate:1";
const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";

/// What a run has shown.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Certificate {
    /// What was tested: suite, selection, settings, backend, its version, and the device's fingerprint.
    pub identity: Identity,
    /// How it was tested.
    pub tested: Tested,
    /// Whether everything holds, or all but known failures.
    pub holds_with_exceptions: bool,
    /// How many cases there were.
    pub counts: Counts,
    /// The root over all units of the run.
    pub root: Digest,
    /// By profile: the root that all devices that claim it have in common, and its size.
    pub profiles: BTreeMap<String, ProfileRoot>,
    /// By op: what kind of evidence there is.
    pub ops: Vec<OpEvidence>,
    /// How many planted faults this suite finds, by class; `None` if that was not measured for it.
    pub kills: Option<KillRates>,
    /// The blind controls of the run.
    pub controls: Controls,
    /// What fails, and is known to.
    pub exceptions: Vec<Exception>,
}

/// How a device was tested.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tested {
    /// The tier, if it was one.
    pub tier: Option<String>,
    /// The command that runs it again.
    pub command: String,
    /// Seconds since 1970 when it began.
    pub began: u64,
    /// Milliseconds that it took.
    pub took_ms: u64,
    /// The device, for people.
    pub device_name: String,
    /// Versions of what took part.
    pub versions: BTreeMap<String, String>,
    /// The number that a verifier chose for the sampled cases, if one did.
    pub nonce: Option<u64>,
}

/// How many there were. See [`Totals`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the names are those of Totals")]
pub struct Counts {
    pub units: u64,
    pub tested: u64,
    pub failed: u64,
    pub skipped: u64,
    pub not_run: u64,
    pub referred: u64,
    pub launches: u64,
}

/// A section that fails, and is known to.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exception {
    /// The section.
    pub section: String,
    /// How many of its cases fail.
    pub failed: u64,
    /// Why.
    pub reason: String,
    /// Until when that is known.
    pub expires: Date,
}

/// Why there is nothing to sign.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Unsigned {
    /// Something does not hold, and is not known to.
    Fails(String),
    /// The run says nothing.
    NoVerdict(String),
}

impl fmt::Display for Unsigned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unsigned::Fails(what) => write!(f, "there is nothing to sign: {what}"),
            Unsigned::NoVerdict(why) => write!(f, "there is nothing to sign, because the run has no verdict: {why}"),
        }
    }
}

impl std::error::Error for Unsigned {}

/// An in-toto statement about the roots.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Statement {
    #[serde(rename = "_type")]
    kind: String,
    subject: Vec<Subject>,
    predicate_type: String,
    predicate: Predicate,
}

#[derive(PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Subject {
    name: String,
    digest: BTreeMap<String, Digest>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Predicate {
    certificate: Certificate,
    /// By field of the certificate, its hash: they do not make it any safer, they tell what was changed.
    hashes: BTreeMap<String, Digest>,
}

impl Certificate {
    /// The certificate of a run, with the failures that are known.
    ///
    /// # Errors
    ///
    /// If the run has no verdict, or something fails that is not known to.
    pub fn of(run: &RunData, known: &Judged, kills: Option<KillRates>) -> Result<Certificate, Unsigned> {
        let holds_with_exceptions = match known.verdict(run) {
            Verdict::Holds => false,
            Verdict::WithExceptions => true,
            Verdict::Fails => return Err(Unsigned::Fails(what_fails(run, known))),
            Verdict::None(why) => return Err(Unsigned::NoVerdict(why)),
        };
        let Totals { units, tested, passed: _, failed, skipped, not_run, referred, launches } = run.totals();
        let info = run.info.clone();
        let failing = run.sections.iter().filter_map(|section| known.known.get(&section.info.id).map(|entry| (section, entry)));
        let exceptions = failing.map(|(section, entry)| Exception {
            section: section.info.id.clone(),
            failed: section.seal.failed,
            reason: entry.reason.clone(),
            expires: entry.expires,
        });
        Ok(Certificate {
            identity: run.identity.clone(),
            tested: Tested {
                tier: info.tier,
                command: info.command,
                began: info.began,
                took_ms: info.took_ms,
                device_name: info.device_name,
                versions: info.versions,
                nonce: info.nonce,
            },
            holds_with_exceptions,
            counts: Counts { units, tested, failed, skipped, not_run, referred, launches },
            root: run.root,
            profiles: profiles(run),
            ops: run.ops(),
            kills: kills.filter(|rates| rates.is_of(&run.identity.suite, run.info.tier.as_deref())),
            controls: info.controls,
            exceptions: exceptions.collect(),
        })
    }

    /// The file: the certificate in its envelope.
    #[must_use]
    pub fn sign(&self, key: &SecretKey) -> String {
        let statement = Statement {
            kind: STATEMENT_TYPE.into(),
            subject: self.subjects(),
            predicate_type: PREDICATE_TYPE.into(),
            predicate: Predicate { certificate: self.clone(), hashes: self.hashes() },
        };
        // Our own structs of numbers and strings: nothing in them can fail.
        let payload = serde_json::to_vec(&statement).expect("a certificate is JSON");
        envelope::seal(&payload, key)
    }

    /// Reads a file that this key has signed. Nothing is believed that is not signed, and no key is taken from the file.
    ///
    /// # Errors
    ///
    /// If any byte of it is not the one that was written.
    pub fn verify(file: &[u8], key: &PublicKey) -> Result<Certificate, CertError> {
        let (payload, is_signed) = envelope::open(file, key)?;
        if !is_signed {
            return Err(changed(&payload));
        }
        // An envelope of this type that the key has signed: what is not understood was written by another version.
        let said: Kind = from_json(&payload, "the payload")?;
        if said.predicate_type != PREDICATE_TYPE {
            return Err(CertError::Version(said.predicate_type));
        }
        check(&payload)
    }

    /// Whether sampled cases were drawn from the number that the reader chose, and not from one that whoever ran it did.
    ///
    /// # Errors
    ///
    /// If they were not.
    pub fn answers(&self, nonce: u64) -> Result<(), CertError> {
        let why = match self.tested.nonce {
            Some(found) if found == nonce => return Ok(()),
            Some(found) => format!("the cases were drawn from the nonce {found}, and {nonce} was asked for"),
            None => format!("the cases were drawn without a nonce, and {nonce} was asked for"),
        };
        Err(rejected("`predicate.certificate.tested.nonce` of the payload", why))
    }

    /// Why the controls say nothing about the rest, if so.
    fn controls_problem(&self) -> Option<String> {
        let skipped = self.profiles.values().map(|profile| profile.skipped_units).sum();
        let fewest = Controls::fewest(self.counts.units, skipped);
        let too_few = || format!("there were {} for {} units, and {fewest} are needed", self.controls.ran, self.counts.units);
        self.controls.problem().or_else(|| (self.controls.ran < fewest).then(too_few))
    }

    fn subjects(&self) -> Vec<Subject> {
        let subject = |name: String, root: Digest| Subject { name, digest: BTreeMap::from([("blake3".to_string(), root)]) };
        let profiles = self.profiles.iter().map(|(name, profile)| subject(format!("profile/{name}"), profile.root));
        std::iter::once(subject("run".into(), self.root)).chain(profiles).collect()
    }

    fn hashes(&self) -> BTreeMap<String, Digest> {
        fn json<T: Serialize>(value: &T) -> Vec<u8> {
            serde_json::to_vec(value).expect("a certificate is JSON")
        }
        let Certificate { identity, tested, holds_with_exceptions, counts, root, profiles, ops, kills, controls, exceptions } =
            self;
        let fields = [
            ("identity", json(identity)),
            ("tested", json(tested)),
            ("holds_with_exceptions", json(holds_with_exceptions)),
            ("counts", json(counts)),
            ("root", json(root)),
            ("profiles", json(profiles)),
            ("ops", json(ops)),
            ("kills", json(kills)),
            ("controls", json(controls)),
            ("exceptions", json(exceptions)),
        ];
        fields.into_iter().map(|(name, bytes)| (name.to_string(), Digest::of([name.as_bytes(), &bytes]))).collect()
    }
}

/// The part of a statement that every edition has.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Kind {
    predicate_type: String,
}

/// Reads a payload, in which every part must agree with every other.
fn check(payload: &[u8]) -> Result<Certificate, CertError> {
    let statement: Statement = from_json(payload, "the payload")?;
    let Statement { kind, subject, predicate_type, predicate: Predicate { certificate, hashes } } = statement;
    if kind != STATEMENT_TYPE {
        return Err(rejected("`_type` of the payload", format!("it is `{kind}`, and not `{STATEMENT_TYPE}`")));
    }
    if predicate_type != PREDICATE_TYPE {
        return Err(rejected("`predicateType` of the payload", format!("it is `{predicate_type}`, and not `{PREDICATE_TYPE}`")));
    }
    let wanted = certificate.hashes();
    for (field, hash) in &wanted {
        if hashes.get(field) != Some(hash) {
            let place = format!("`predicate.certificate.{field}` of the payload");
            return Err(rejected(place, "it does not have the hash that the payload says"));
        }
    }
    if hashes.len() != wanted.len() {
        return Err(rejected("`predicate.hashes` of the payload", "it has a hash of something else"));
    }
    if subject != certificate.subjects() {
        return Err(rejected("`subject` of the payload", "it does not have the roots of the certificate"));
    }
    if let Some(problem) = certificate.controls_problem() {
        return Err(rejected("`predicate.certificate.controls` of the payload", problem));
    }
    Ok(certificate)
}

/// What was changed in a payload that is not the one that was signed, as far as it shows.
fn changed(payload: &[u8]) -> CertError {
    match check(payload) {
        Err(found) => found,
        Ok(_) => rejected("signatures[0].sig", "it is not the signature of this payload by this key"),
    }
}

/// What fails and is not known to, in one line.
fn what_fails(run: &RunData, known: &Judged) -> String {
    if let Some(problem) = known.problems.first() {
        return problem.to_string();
    }
    let is_new = |id: &str| !known.known.contains_key(id);
    let still = &run.info.still_failing;
    if run.sections.iter().all(|one| one.seal.failed == 0) && !still.is_empty() {
        return format!("{} cases that failed in an earlier run still fail, the first of `{}`", still.len(), still[0].op);
    }
    let failing: Vec<_> = run.sections.iter().filter(|one| one.seal.failed > 0 && is_new(&one.info.id)).collect();
    let first = failing.first().map_or(String::new(), |one| format!(", first `{}`: {} cases", one.info.id, one.seal.failed));
    format!("{} sections fail and are not known to{first}", failing.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_of_another_edition_is_neither_accepted_nor_called_forged() {
        let key = SecretKey::from_seed([7; 32]);
        let file = envelope::seal(br#"{"predicateType":"urn:vyre:certificate:2","more":1}"#, &key);
        let found = Certificate::verify(file.as_bytes(), &key.public());
        assert_eq!(found, Err(CertError::Version("urn:vyre:certificate:2".into())));
        // But one that nobody signed is.
        let forged = file.replace("Im1vcmUiOjF9", "Im1vcmUiOjJ9");
        assert_ne!(file, forged);
        assert!(matches!(Certificate::verify(forged.as_bytes(), &key.public()), Err(CertError::Rejected { .. })));
    }
}
