//! `vyre report`, `vyre diff` and `vyre cert`, as real processes: answers, files, and what is said about bad input.

#[path = "../../vyre-conform/tests/sample/mod.rs"]
mod sample;

use sample::Sample;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// A folder in which commands run.
struct Place(TempDir);

impl Place {
    fn new() -> Place {
        Place(tempfile::tempdir().expect("a temporary folder"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn run(&self, command: &str) -> Output {
        let arguments = command.split_whitespace();
        Command::new(env!("CARGO_BIN_EXE_vyre")).args(arguments).current_dir(self.0.path()).output().expect("the command starts")
    }

    /// Runs a command that must end with this status; gives all that it says.
    fn ends(&self, status: i32, command: &str) -> String {
        let output = self.run(command);
        let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(status), "vyre {command}\n{said}");
        said
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("it is UTF-8")
}

fn failing() -> Sample {
    let mut sample = Sample::small();
    sample.fail("ops.int.add:u32:wg=64:random", 0, 2);
    sample
}

const KNOWN: &str = r#"[{"query":"ops.int.add:u32:wg=64:random","backend":"bulk","reason":"because","expires":"2999-12-31"}]"#;

#[test]
fn a_run_is_reported_in_every_form() {
    let place = Place::new();
    Sample::small().write(&place.path("good"));
    failing().write(&place.path("bad"));
    let said = place.ends(0, "report good");
    assert!(said.starts_with("bulk: The bytes are the reference's\nAll 1"), "{said}");
    let said = place.ends(1, "report bad --html r.html --junit r.xml --markdown r.md");
    assert!(said.contains("ops.int.add:u32 fails: 2 of") && said.contains("again: vyre fuzz --replay"), "{said}");
    assert!(fs::read_to_string(place.path("r.html")).unwrap().starts_with("<!doctype html>"));
    assert!(fs::read_to_string(place.path("r.xml")).unwrap().contains("<testsuite"));
    assert!(fs::read_to_string(place.path("r.md")).unwrap().starts_with("### ❌"));
    let lines = place.ends(1, "report bad --json");
    assert!(lines.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()), "{lines}");
    fs::write(place.path("known.json"), KNOWN).unwrap();
    let said = place.ends(0, "report bad --known known.json");
    assert!(said.contains("with exceptions"), "{said}");
    // What is known to fail and holds is a failure.
    let said = place.ends(1, "report good --known known.json");
    assert!(said.contains("`ops.int.add:u32:wg=64:random` holds"), "{said}");
}

#[test]
fn runs_are_compared() {
    let place = Place::new();
    Sample::small().write(&place.path("one"));
    failing().write(&place.path("other"));
    let mut foreign = Sample::empty();
    foreign.add(sample::section("demo.xor", 64, "all", vyre_conform::Evidence::Sampled, 100));
    foreign.write(&place.path("foreign"));
    assert!(place.ends(0, "diff one one").contains("the same results"));
    assert!(place.ends(1, "diff one other").starts_with("1 new, 0 changed"));
    assert!(place.ends(1, "diff other one").contains("1 fixed"));
    assert!(place.ends(1, "diff one other --markdown").contains("| new | <code>ops.int.add:u32:wg=64:random"));
    let object: serde_json::Value = serde_json::from_str(&place.ends(1, "diff one other --json")).expect("it is JSON");
    assert_eq!(object["difference"]["sections"]["ops.int.add:u32:wg=64:random"]["new"]["count"], 1);
    assert_eq!(object["is_same"], false);
    assert!(place.ends(3, "diff one foreign").contains("no section in common"));
    assert!(place.ends(2, "diff one other --json --markdown").contains("cannot be used with"));
}

#[test]
fn a_run_is_signed_and_the_certificate_checked() {
    let place = Place::new();
    Sample::small().write(&place.path("state"));
    failing().write(&place.path("bad"));
    place.ends(0, "cert keygen mine");
    place.ends(0, "cert keygen other");
    assert!(place.ends(2, "cert keygen mine").contains("mine.key: the file exists already"));
    let said = place.ends(0, "cert sign state --key mine.key --out c.json");
    assert!(said.contains("c.json: signed with key"), "{said}");
    let said = place.ends(0, "cert verify c.json --key mine.pub");
    assert!(said.contains("bulk 0.1.0 on Bulk evaluator") && said.contains("signed claim"), "{said}");
    let object: serde_json::Value = serde_json::from_str(&place.ends(0, "cert verify c.json --key mine.pub --json")).unwrap();
    assert_eq!(object["certificate"]["identity"]["backend"], "bulk");
    assert!(place.ends(1, "cert verify c.json --key other.pub").contains("signatures[0].keyid"));
    // A run that fails is signed only with what is known.
    let said = place.ends(1, "cert sign bad --key mine.key --out bad.json");
    assert!(said.contains("nothing to sign") && !place.path("bad.json").exists(), "{said}");
    fs::write(place.path("known.json"), KNOWN).unwrap();
    let said = place.ends(0, "cert sign bad --key mine.key --out bad.json --known known.json");
    assert!(said.contains("holds with exceptions"), "{said}");
    let said = place.ends(1, "cert audit c.json bad --key mine.pub -k 5");
    assert!(said.contains("the run is not the one that was signed"), "{said}");
}

#[test]
fn openssl_has_the_same_keys() {
    // A key of openssl: its files are read, and a certificate signed with one is checked with the other.
    const SECRET: &str = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEII3hEbsXNkerhF0KBDkW8yIuK2gtXBgzJg9iaMugZBqW\n-----END PRIVATE KEY-----\n";
    const PUBLIC: &str =
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEArAPhsvRllslVffZDrb3UksKjMHWGN7LmHJzuUU7ggL4=\n-----END PUBLIC KEY-----\n";
    let place = Place::new();
    Sample::small().write(&place.path("state"));
    fs::write(place.path("o.key"), SECRET).unwrap();
    fs::write(place.path("o.pub"), PUBLIC).unwrap();
    place.ends(0, "cert sign state --key o.key --out c.json");
    place.ends(0, "cert verify c.json --key o.pub");
}

#[test]
fn bad_input_is_refused_with_its_place() {
    let place = Place::new();
    Sample::small().write(&place.path("state"));
    let mut cut_off = Sample::small();
    cut_off.is_finished = false;
    cut_off.write(&place.path("cut"));
    let mut blind = Sample::small();
    blind.info.controls.survived = vec!["a lost bit".into()];
    blind.write(&place.path("blind"));
    place.ends(0, "cert keygen mine");
    place.ends(0, "cert sign state --key mine.key --out c.json");
    // A certificate, a ledger and a bundle that are damaged in one byte.
    let flip = |from: &Path, to: &str, at: usize| {
        let mut bytes = fs::read(from).unwrap();
        bytes[at] ^= 1;
        fs::write(place.path(to), bytes).unwrap();
    };
    let certificate = fs::read(place.path("c.json")).unwrap();
    flip(&place.path("c.json"), "changed.json", certificate.len() / 2);
    flip(&place.path("c.json"), "unsigned.json", certificate.len() - 20);
    // Pages that are no longer used have the same bytes: every copy is changed.
    let mut ledger = fs::read(place.path("state/run.redb")).unwrap();
    let name = b"seed 7";
    let copies: Vec<usize> = (0..ledger.len() - name.len()).filter(|at| ledger[*at..].starts_with(name)).collect();
    assert!(!copies.is_empty(), "settings are in the ledger");
    copies.iter().for_each(|at| ledger[*at] ^= 1);
    fs::write(place.path("damaged.redb"), ledger).unwrap();
    fs::write(place.path("text.redb"), "hello").unwrap();
    fs::write(place.path("empty.redb"), "").unwrap();
    fs::write(place.path("wrong.json"), "[{}]").unwrap();
    fs::write(place.path("text.key"), "hello").unwrap();
    fs::create_dir(place.path("empty")).unwrap();
    let table = [
        ("report none", 2, "there is no run"),
        ("report empty", 2, "there is no run"),
        ("report text.redb", 1, "text.redb` is damaged"),
        ("report empty.redb", 1, "it is empty"),
        ("report damaged.redb", 1, "the table `facts` at `identity`"),
        ("report cut", 3, "the run is not finished"),
        ("report blind", 3, "a lost bit"),
        ("report state --html none/r.html", 2, "cannot write none/r.html"),
        ("report state --html state", 2, "not a regular file"),
        ("report state --html state/run.redb", 2, "is read by the command"),
        ("report state --html r --junit r", 2, "two forms"),
        ("report state --known none.json", 2, "cannot read none.json"),
        ("report state --known wrong.json", 1, "missing field `query`"),
        ("report state --kills none.json", 2, "cannot read none.json"),
        ("report state --kills wrong.json", 1, "does not hold kill rates"),
        ("report", 2, "RUN"),
        ("diff state none", 2, "there is no run"),
        ("diff damaged.redb state", 1, "is damaged"),
        ("diff state", 2, "RUN2"),
        ("cert", 2, "Usage"),
        ("cert keygen none/mine", 2, "cannot write none/mine.key"),
        ("cert sign none --key mine.key --out x.json", 2, "there is no run"),
        ("cert sign damaged.redb --key mine.key --out x.json", 1, "is damaged"),
        ("cert sign cut --key mine.key --out x.json", 3, "no verdict"),
        ("cert sign blind --key mine.key --out x.json", 3, "a lost bit"),
        ("cert sign state --key none.key --out x.json", 2, "cannot read none.key"),
        ("cert sign state --key text.key --out x.json", 1, "line 1 is not"),
        ("cert sign state --key mine.pub --out x.json", 1, "a secret one is needed"),
        ("cert sign state --key mine.key --out none/x.json", 2, "cannot write none/x.json"),
        ("cert sign state --key mine.key --out mine.key", 2, "is read by the command"),
        ("cert sign state --key mine.key", 2, "--out"),
        ("cert verify none.json --key mine.pub", 2, "cannot read none.json"),
        ("cert verify c.json --key mine.key", 1, "a public one is needed"),
        ("cert verify c.json --key none.pub", 2, "cannot read none.pub"),
        ("cert verify c.json", 2, "--key"),
        ("cert verify changed.json --key mine.pub", 1, "rejected, at"),
        ("cert verify unsigned.json --key mine.pub", 1, "signatures[0].sig"),
        ("cert verify text.redb --key mine.pub", 1, "rejected, at the envelope"),
        ("cert audit c.json none --key mine.pub", 2, "there is no run"),
        ("cert audit changed.json state --key mine.pub", 1, "rejected, at"),
        ("cert audit c.json state --key mine.pub -k 0", 2, "0"),
    ];
    for (command, status, words) in table {
        let said = place.ends(status, command);
        assert!(said.contains(words), "vyre {command}: `{words}` is not in\n{said}");
        assert!(!said.contains("panicked"), "{said}");
        // The same as JSON, where there is something to read.
        if status != 2 || said.starts_with("error: cannot") {
            let output = place.run(&format!("{command} --json"));
            assert_eq!(output.status.code(), Some(status), "vyre {command} --json");
            let first = text(&output.stdout);
            let is_json = first.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok());
            assert!(is_json && !first.is_empty(), "vyre {command} --json\n{first}");
        }
    }
    // Nothing was written where something was refused.
    assert!(!place.path("x.json").exists() && !place.path("r").exists());
    let names: Vec<String> =
        fs::read_dir(place.0.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert!(names.iter().all(|name| !name.contains(".tmp")), "{names:?}");
}

#[cfg(unix)]
#[test]
fn a_run_that_another_process_writes_is_not_read() {
    let place = Place::new();
    let sample = Sample::small();
    sample.write(&place.path("state"));
    let ledger = vyre_conform::ledger::Ledger::open(Some(&place.path("state")), &sample.identity).expect("the next run begins");
    assert!(place.ends(2, "report state").contains("another run uses"));
    drop(ledger);
}
