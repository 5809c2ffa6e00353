//! Certificates: what is signed, what is refused, and how a claim is refuted.

mod sample;

use sample::Sample;
use std::fs;
use vyre_conform::cert::{AuditError, CertError, Certificate, KeyError, Outcome, PublicKey, Rerun, SecretKey, Unsigned, audit};
use vyre_conform::evidence::{KillRates, Killed, RunData};
use vyre_conform::expectations::{Expectations, Judged};
use vyre_conform::ledger::{Ledger, UnitRecord};

fn key() -> SecretKey {
    SecretKey::from_seed([7; 32])
}

fn certificate(sample: &Sample) -> Result<Certificate, Unsigned> {
    let run = RunData::read(sample.folder().path()).expect("a ledger that is whole");
    Certificate::of(&run, &Judged::default(), None)
}

#[test]
fn what_was_signed_is_what_is_read() {
    let signed = certificate(&Sample::small()).unwrap();
    let file = signed.sign(&key());
    assert_eq!(Certificate::verify(file.as_bytes(), &key().public()), Ok(signed.clone()));
    assert_eq!(signed.profiles.keys().collect::<Vec<_>>(), ["core", "f64"]);
    assert_eq!(signed.ops.len(), 3);
    assert!(
        signed.text().contains("kill rate: not measured") && signed.text().contains("n = 100000 values"),
        "{}",
        signed.text()
    );
}

/// Certificates with everything that one can have, and with as little as possible.
fn certificates() -> [Certificate; 2] {
    let mut full = Sample::small();
    full.info.nonce = Some(77);
    full.fail("ops.int.add:u32:wg=64:random", 0, 3);
    full.skip("ops.float.add:f64:wg=1:random", 0, "no f64");
    let run = RunData::read(full.folder().path()).unwrap();
    let entries = serde_json::from_value(serde_json::json!([
        { "query": "ops.int.add:u32:wg=64:random", "backend": "bulk", "reason": "because", "expires": "2030-01-01" }
    ]));
    let known = Expectations { entries: entries.unwrap() }.judge(&run, "2026-11-17".parse().unwrap());
    let classes = [("operator".to_string(), Killed { killed: 19, of: 20 })].into();
    let kills = KillRates { suite: "5uite".into(), tier: Some("smoke".into()), classes };
    [certificate(&Sample::small()).unwrap(), Certificate::of(&run, &known, Some(kills)).unwrap()]
}

#[test]
fn any_changed_byte_is_rejected_and_the_place_named() {
    let public = key().public();
    let [_, signed] = certificates();
    let file = signed.sign(&key());
    let bytes = file.as_bytes();
    let is_rejected = |changed: &[u8], what: &str| match Certificate::verify(changed, &public) {
        Err(CertError::Rejected { place, why }) => {
            let is_named = ["payload", "envelope", "signatures", "payloadType"].iter().any(|part| place.contains(part));
            assert!(is_named && !why.is_empty(), "{what}: {place}: {why}");
        }
        other => panic!("{what}: {other:?}"),
    };
    for at in 0..bytes.len() {
        // Two of its bits, which are others for the next byte.
        for bit in [at % 8, (at + 3) % 8] {
            let mut changed = bytes.to_vec();
            changed[at] ^= 1 << bit;
            is_rejected(&changed, &format!("byte {at}, bit {bit}"));
        }
    }
    // One less, one twice, two that changed places: at each byte.
    for at in (0..bytes.len()).step_by(3) {
        let (before, behind) = bytes.split_at(at);
        is_rejected(&[before, &behind[1..]].concat(), &format!("without byte {at}"));
        is_rejected(&[before, &behind[..1], behind].concat(), &format!("byte {at} twice"));
        is_rejected(before, &format!("cut at {at}"));
        if let [one, other, rest @ ..] = behind
            && one != other
        {
            is_rejected(&[before, &[*other, *one], rest].concat(), &format!("bytes {at} and {} exchanged", at + 1));
        }
    }
    for (changed, what) in [([bytes, b"\n"].concat(), "one more"), ([b" ", bytes].concat(), "one before"), (Vec::new(), "none")] {
        is_rejected(&changed, what);
    }
}

/// Whoever has the key can sign anything; what says of itself that it shows nothing is not accepted all the same.
#[test]
fn a_certificate_whose_controls_show_nothing_is_rejected() {
    type Change = fn(&mut Certificate);
    let changes: [(&str, Change); 6] = [
        ("not the one that was committed to", |it| it.controls.secret = Some(sample::digest("another"))),
        ("not the one that was committed to", |it| it.controls.commitment = Some(sample::digest("another"))),
        ("fixed before the run", |it| it.controls.secret = None),
        ("no controls", |it| it.controls.ran = 0),
        ("1 of 64 planted faults", |it| it.controls.caught = 63),
        ("and 100 are needed", |it| it.counts.units = 5000),
    ];
    for (words, change) in changes {
        let [mut certificate, _] = certificates();
        change(&mut certificate);
        match Certificate::verify(certificate.sign(&key()).as_bytes(), &key().public()) {
            Err(CertError::Rejected { place, why }) => {
                assert!(place.contains("predicate.certificate.controls") && why.contains(words), "{place}: {why}");
            }
            other => panic!("{words}: {other:?}"),
        }
    }
}

#[test]
fn a_reader_can_demand_the_number_that_cases_were_drawn_from() {
    let [without, with] = certificates();
    assert_eq!(with.answers(77), Ok(()));
    assert!(with.text().contains("the nonce 77") && !without.text().contains("nonce"));
    for (certificate, nonce) in [(&without, 0), (&without, 77), (&with, 78)] {
        match certificate.answers(nonce) {
            Err(CertError::Rejected { place, why }) => {
                assert!(place.contains("tested.nonce") && why.contains(&format!("{nonce} was asked for")), "{place}: {why}");
            }
            other => panic!("{other:?}"),
        }
    }
}

/// The place that is named when a text of the payload is another one and nothing else is.
fn place(from: &str, to: &str) -> String {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    let file = certificate(&Sample::small()).unwrap().sign(&key());
    let envelope: serde_json::Value = serde_json::from_str(&file).unwrap();
    let encoded = envelope["payload"].as_str().unwrap();
    let payload = String::from_utf8(STANDARD.decode(encoded).unwrap()).unwrap();
    assert!(payload.contains(from), "{from} is in {payload}");
    let text = file.replacen(encoded, &STANDARD.encode(payload.replacen(from, to, 1)), 1);
    match Certificate::verify(text.as_bytes(), &key().public()) {
        Err(CertError::Rejected { place, .. }) => place,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_place_is_the_field_that_was_changed() {
    for (from, to, named) in [
        ("\"backend\":\"bulk\"", "\"backend\":\"cuda\"", "predicate.certificate.identity"),
        ("\"tier\":\"smoke\"", "\"tier\":\"deep!\"", "predicate.certificate.tested"),
        ("\"holds_with_exceptions\":false", "\"holds_with_exceptions\":true", "predicate.certificate.holds_with_exceptions"),
        ("\"failed\":0", "\"failed\":9", "predicate.certificate.counts"),
        ("\"caught\":64", "\"caught\":65", "predicate.certificate.controls"),
        ("\"class\":\"sampled\"", "\"class\":\"exhaustive\"", "predicate.certificate.ops"),
        ("\"kills\":null", "\"kills\":12", "predicate.certificate.kills"),
        ("profile/core", "profile/cora", "subject"),
        ("Statement/v1", "Statement/v2", "_type"),
        ("urn:vyre:certificate:1", "urn:vyre:certificate:9", "predicateType"),
        ("\"hashes\"", "\"hushes\"", "predicate"),
    ] {
        let found = place(from, to);
        assert!(found.contains(named), "{from}: {found}");
    }
}

#[test]
fn another_key_is_rejected_whatever_the_file_says() {
    let file = certificate(&Sample::small()).unwrap().sign(&key());
    let other = SecretKey::from_seed([8; 32]).public();
    let named = |file: &str| match Certificate::verify(file.as_bytes(), &other) {
        Err(CertError::Rejected { place, .. }) => place,
        found => panic!("{found:?}"),
    };
    assert_eq!(named(&file), "signatures[0].keyid");
    // A file that says it is by the other key.
    let claimed = file.replace(&key().public().id().to_string(), &other.id().to_string());
    assert_eq!(named(&claimed), "signatures[0].sig");
}

#[test]
fn runs_that_do_not_hold_are_not_signed() {
    let mut fails = Sample::small();
    fails.fail("ops.int.add:u32:wg=64:random", 0, 3);
    match certificate(&fails) {
        Err(Unsigned::Fails(what)) => {
            assert!(what.contains("ops.int.add:u32:wg=64:random") && what.contains("3 cases"), "{what}")
        }
        other => panic!("{other:?}"),
    }
    for change in [
        |sample: &mut Sample| sample.is_finished = false,
        |sample: &mut Sample| sample.info.controls.ran = 0,
        |sample: &mut Sample| sample.info.controls.caught -= 1,
        |sample: &mut Sample| sample.units.clear(),
    ] {
        let mut sample = Sample::small();
        change(&mut sample);
        assert!(matches!(certificate(&sample), Err(Unsigned::NoVerdict(_))));
    }
}

#[test]
fn known_failures_are_signed_as_exceptions() {
    let mut sample = Sample::small();
    sample.fail("ops.int.add:u32:wg=64:random", 0, 3);
    let run = RunData::read(sample.folder().path()).unwrap();
    let entries = serde_json::from_value(serde_json::json!([
        { "query": "ops.int.add:u32:wg=64:random", "backend": "bulk", "reason": "because", "expires": "2030-01-01" }
    ]));
    let known = Expectations { entries: entries.unwrap() }.judge(&run, "2026-11-17".parse().unwrap());
    let certificate = Certificate::of(&run, &known, None).unwrap();
    assert!(certificate.holds_with_exceptions && certificate.text().contains("holds with exceptions"));
    let [exception] = &certificate.exceptions[..] else { panic!("one exception") };
    assert_eq!((exception.failed, exception.reason.as_str()), (3, "because"));
    assert!(!certificate.profiles["core"].is_claimed());
}

#[test]
fn kill_rates_of_another_suite_or_tier_are_not_measured() {
    let run = RunData::read(Sample::small().folder().path()).unwrap();
    let rates = |suite: &str, tier: Option<&str>| KillRates {
        suite: suite.into(),
        tier: tier.map(String::from),
        classes: [("operator".to_string(), Killed { killed: 19, of: 20 })].into(),
    };
    let kept = |rates| Certificate::of(&run, &Judged::default(), Some(rates)).unwrap().kills.is_some();
    assert!(kept(rates("5uite", Some("smoke"))) && kept(rates("5uite", None)));
    assert!(!kept(rates("other", Some("smoke"))) && !kept(rates("5uite", Some("deep"))));
}

#[test]
fn keys_are_files_of_their_owner_and_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let [secret, public] = ["mine.key", "mine.pub"].map(|name| folder.path().join(name));
    let key = SecretKey::generate().unwrap();
    key.create(&secret, &public).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&secret).unwrap().permissions().mode() & 0o777, 0o600);
    }
    assert_eq!(PublicKey::read(&public).unwrap(), key.public());
    assert_eq!(SecretKey::read(&secret).unwrap().public(), key.public());
    let before = fs::read(&secret).unwrap();
    assert!(matches!(SecretKey::generate().unwrap().create(&secret, &public), Err(KeyError::Unwritable(_))));
    fs::remove_file(&secret).unwrap();
    // The public file is still there, so no secret one is made.
    assert!(matches!(SecretKey::generate().unwrap().create(&secret, &public), Err(KeyError::Unwritable(_))));
    assert!(!secret.exists());
    fs::write(&secret, before).unwrap();
    // What openssl writes for the seed 7 7 7 …
    let pem = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIAcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcH\n-----END PRIVATE KEY-----\n";
    fs::write(&secret, pem).unwrap();
    assert_eq!(SecretKey::read(&secret).unwrap().public(), SecretKey::from_seed([7; 32]).public());
    for (text, words) in [
        ("", "empty"),
        ("hello\nworld\n", "line 1"),
        (pem.trim_end_matches("-----END PRIVATE KEY-----\n"), "END"),
        (&pem.replace("MC4C", "MC5C"), "not a key of ed25519"),
        (&pem.replace("BwcH\n", "Bwc\n"), "between the lines"),
        (&pem.replace("PRIVATE", "RSA PRIVATE"), "RSA PRIVATE KEY"),
        (&key.public().to_pem(), "a secret one is needed"),
    ] {
        fs::write(&secret, text).unwrap();
        match SecretKey::read(&secret) {
            Err(KeyError::Malformed(_, what)) => assert!(what.contains(words), "{what}"),
            other => panic!("{words}: {:?}", other.map(|key| key.public())),
        }
    }
    assert!(matches!(PublicKey::read(&folder.path().join("none")), Err(KeyError::Unreadable(..))));
    // The point of order one: whoever uses it accepts what anybody signs.
    let weak =
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAAQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n-----END PUBLIC KEY-----\n";
    fs::write(&public, weak).unwrap();
    assert!(PublicKey::read(&public).unwrap_err().to_string().contains("weak"));
}

/// A device that gives what a sample says, but for one unit.
struct Device {
    sample: Sample,
    wrong: Option<(String, u64)>,
    asked: u64,
}

impl Rerun for Device {
    fn unit(&mut self, section: &str, first: u64) -> Result<UnitRecord, String> {
        self.asked += 1;
        let key = (section.to_string(), first);
        let mut record = self.sample.units.get(&key).cloned().ok_or("there is no such unit")?;
        if self.wrong.as_ref() == Some(&key) {
            record.actual = sample::digest("other");
            record.failed = 1;
        }
        // What is not in the leaf may differ.
        record.confirmed = !record.confirmed;
        record.referred += 1;
        Ok(record)
    }
}

#[test]
fn an_audit_refutes_what_the_device_does_not_give() {
    let sample = Sample::small();
    let folder = sample.folder();
    let certificate = certificate(&sample).unwrap();
    let (ledger, identity, is_finished) = Ledger::read(folder.path()).unwrap();
    let run = RunData::of(&ledger, identity, is_finished).unwrap();
    let mut device = Device { sample: sample.clone(), wrong: None, asked: 0 };
    let found = audit(&certificate, &ledger, &run, 5, &mut device).unwrap();
    assert_eq!((device.asked, found.units.len() as u64, found.of), (5, 5, certificate.counts.units));
    assert!(found.refuted().next().is_none());
    assert_eq!(found.bound().n, 5);
    // All units are run if more are asked for than there are, and the one that is wrong is among them.
    let wrong = ("ops.int.not:u32:wg=64:all".to_string(), 65_536);
    let mut device = Device { wrong: Some(wrong.clone()), sample: sample.clone(), asked: 0 };
    let found = audit(&certificate, &ledger, &run, 1_000_000, &mut device).unwrap();
    assert_eq!(device.asked, certificate.counts.units);
    let refuted: Vec<(String, u64)> = found.refuted().map(|unit| (unit.section.clone(), unit.first)).collect();
    assert_eq!(refuted, [wrong]);
    // A unit that cannot be run is neither.
    let mut empty = Device { sample: Sample::empty(), wrong: None, asked: 0 };
    let found = audit(&certificate, &ledger, &run, 3, &mut empty).unwrap();
    assert_eq!((found.not_run().count(), found.bound().n), (3, 0));
    assert!(matches!(&found.units[0].outcome, Outcome::NotRun(why) if why.contains("no such unit")));
}

#[test]
fn an_audit_needs_the_run_that_was_signed() {
    let certificate = certificate(&Sample::small()).unwrap();
    type Change = fn(&mut Sample);
    let changes: [(&str, Change); 3] = [
        ("the root", |sample| {
            sample.unit_mut("ops.int.not:u32:wg=64:all", 0).actual = sample::digest("other");
        }),
        ("backend", |sample| sample.identity.backend = "cuda".into()),
        ("profile", |sample| sample.sections[0].profile = "f64".into()),
    ];
    for (words, change) in changes {
        let mut sample = Sample::small();
        change(&mut sample);
        let folder = sample.folder();
        let (ledger, identity, is_finished) = Ledger::read(folder.path()).unwrap();
        let run = RunData::of(&ledger, identity, is_finished).unwrap();
        let mut device = Device { sample, wrong: None, asked: 0 };
        match audit(&certificate, &ledger, &run, 5, &mut device) {
            Err(AuditError::OtherRun(what)) => assert!(what.contains(words), "{what}"),
            other => panic!("{words}: {other:?}"),
        }
        assert_eq!(device.asked, 0);
    }
}
