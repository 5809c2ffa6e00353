//! Every program and command of docs/errors.md, run as it stands there: the wrong one gives its code and no other, the right one none.
//! (What is in Rust is not run here.)

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

const PAGE: &str = include_str!("../../../docs/errors.md");

/// The blocks of an example: language and text.
fn blocks(text: &str) -> Vec<(&str, &str)> {
    let blocks = text.split("```").skip(1).step_by(2);
    blocks.map(|block| block.split_once('\n').expect("a block begins with its language")).collect()
}

/// Writes the programs of an example and does what it says, or checks them; what came of it, and whether it succeeded.
fn run(folder: &Path, blocks: &[(&str, &str)]) -> (String, bool) {
    let mut names = Vec::new();
    for (_, text) in blocks.iter().filter(|(language, _)| *language == "vyre") {
        let name = text.strip_prefix("program ").and_then(|rest| rest.split(' ').next()).expect("a program has a name");
        std::fs::write(folder.join(format!("{name}.vyre")), text).expect("the folder can be written");
        names.push(name);
    }
    let mut commands: Vec<String> =
        blocks.iter().filter(|(language, _)| *language == "sh").map(|(_, text)| text.to_string()).collect();
    if commands.is_empty() {
        commands = names.iter().map(|name| format!("vyre check {name}.vyre")).collect();
    }
    let binary = Path::new(env!("CARGO_BIN_EXE_vyre")).parent().expect("the command is in a folder");
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap_or_default());
    let script = format!("set -e\n{}", commands.join("\n"));
    let output = Command::new("sh").arg("-c").arg(script).current_dir(folder).env("PATH", path).output().expect("sh runs");
    (String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned(), output.status.success())
}

/// The codes that an output names as `error[…]` or `warning[…]`.
fn codes(output: &str) -> BTreeSet<&str> {
    let parts = output.split("error[").skip(1).chain(output.split("warning[").skip(1));
    parts.filter_map(|part| part.split(']').next()).collect()
}

#[test]
fn every_example_gives_its_code_or_none() {
    let mut ran = 0;
    for section in PAGE.split("\n## ").skip(1) {
        let code = &section[..5];
        let (_, examples) = section.split_once("\nWrong:\n").expect("an example that is wrong");
        let (wrong, right) = examples.split_once("\nRight:\n").expect("an example that is right");
        let (wrong, mut right) = (blocks(wrong), blocks(right));
        if wrong.iter().chain(&right).any(|(language, _)| language.starts_with("rust")) {
            continue;
        }
        // The right command is about the same program, if it shows none.
        if !right.iter().any(|(language, _)| *language == "vyre") {
            let programs = wrong.iter().filter(|(language, _)| *language == "vyre");
            right.splice(0..0, programs.copied().collect::<Vec<_>>());
        }
        let folder = tempfile::tempdir().expect("a folder");
        let (output, _) = run(folder.path(), &wrong);
        assert_eq!(codes(&output), BTreeSet::from([code]), "{code}, wrong:\n{output}");
        let folder = tempfile::tempdir().expect("a folder");
        let (output, succeeded) = run(folder.path(), &right);
        assert!(succeeded && codes(&output).is_empty(), "{code}, right:\n{output}");
        ran += 2;
    }
    assert!(ran >= 150, "{ran} examples");
}

#[test]
fn a_code_is_explained() {
    let vyre = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_vyre")).args(arguments).output().expect("the command runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (text, String::from_utf8_lossy(&output.stderr).into_owned(), output.status.code())
    };
    let (text, _, status) = vyre(&["explain", "e305"]);
    assert_eq!(status, Some(0));
    assert_eq!(
        text,
        "\
E0305: a condition must be bool

Numbers are not conditions: compare them.

wrong:

    program p {
      workgroup 64
      buffer x: read f32 @0
      buffer out: output f32 @1

      if gid.x & 1 {
        out[gid.x] = x[gid.x]
      }
    }

right:

    program p {
      workgroup 64
      buffer x: read f32 @0
      buffer out: output f32 @1

      if gid.x & 1 != 0 {
        out[gid.x] = x[gid.x]
      }
    }
"
    );
    let (text, _, _) = vyre(&["explain", "E0701", "--json"]);
    let object: serde_json::Value = serde_json::from_str(&text).expect("one object");
    assert_eq!((&object["code"], &object["wrong"][1]["language"]), (&"E0701".into(), &"sh".into()));
    // A word finds the codes that are about it, and without a word there are all.
    let (text, _, _) = vyre(&["explain", "grid barrier"]);
    assert!(text.starts_with("E0503: "), "{text}");
    assert!(vyre(&["explain"]).0.lines().count() > 90);
    let (_, said, status) = vyre(&["explain", "E9999"]);
    assert_eq!(
        (said.as_str(), status),
        ("error: there is no error code `e9999`, and no code is about that word; `vyre explain` lists all codes\n", Some(2))
    );
    // Colour is for terminals, unless it is asked for.
    assert!(!vyre(&["explain", "E0305"]).0.contains('\u{1b}'));
    assert!(vyre(&["--color", "always", "explain", "E0305"]).0.contains("\u{1b}[1mE0305\u{1b}[0m"));
    assert!(vyre(&["explain", "E0305", "--color=always"]).0.contains('\u{1b}'));
}
