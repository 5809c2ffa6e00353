//! `vyre check --checked` and `vyre run --schedule` as users meet them.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Exit status, standard output and standard error.
fn vyre(args: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_vyre")).args(args).current_dir(root()).output().expect("vyre starts");
    let text = |bytes| String::from_utf8(bytes).expect("it writes UTF-8");
    (output.status.code().expect("it ended by itself"), text(output.stdout), text(output.stderr))
}

fn says(args: &[&str], code: i32, out: &[&str], err: &[&str]) {
    let (found, stdout, stderr) = vyre(args);
    assert_eq!(found, code, "{args:?}\n{stdout}{stderr}");
    for (words, text) in [(out, &stdout), (err, &stderr)] {
        for word in words {
            assert!(text.contains(word), "{args:?} does not say `{word}`:\n{stdout}{stderr}");
        }
    }
    assert!(!stderr.contains("panicked"), "{args:?}\n{stderr}");
}

const RACE: &str = "checks/checked/racy/neighbour-in-place.vyre";
const TICKETS: &str = "checks/checked/order/tickets.vyre";
const UNWRITTEN: &str = "checks/checked/unwritten/part-of-a-tile.vyre";
const CLEAN: &str = "checks/checked/clean/reduction-of-7.vyre";

#[test]
fn a_clean_dispatch_is_clean_under_every_schedule() {
    says(&["check", "--checked", CLEAN, "--in", "x=1,2,3,4,5,6,7"], 0, &["deterministic under every schedule"], &[]);
    let (_, _, stderr) = vyre(&["check", "--checked", CLEAN, "--in", "x=1,2,3,4,5,6,7"]);
    assert_eq!(stderr, "");
}

#[test]
fn a_race_is_drawn_with_both_sides_and_fails() {
    let args = ["check", RACE, "--checked", "--in", "x=1,2,3"];
    let drawn = ["warning[W0501]", "data race on `x[1]`", "a store by invocation 1,0,0", "a load by invocation 0,0,0"];
    says(&args, 1, &["racy, 1 finding"], &drawn);
    says(&args, 1, &["`x[0]` is 2 under forward, 3 under reverse", "--schedule reverse"], &["again: vyre check"]);
}

/// The last line of a finding is a command that shows it again.
#[test]
fn the_command_that_is_printed_reproduces_the_finding() {
    for args in
        [&["check", RACE, "--checked", "--in", "x=1;3", "--fuel", "1000"][..], &["check", "--checked", TICKETS, "--grid", "1"]]
    {
        let (_, stdout, stderr) = vyre(args);
        let again = stderr.lines().find_map(|line| line.strip_prefix("again: vyre ")).expect("a command");
        let words: Vec<String> = again.split(' ').map(|word| word.trim_matches('\'').to_string()).collect();
        let (code, _, again_stderr) = vyre(&words.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(code, 1, "{again}");
        let title = |text: &str| text.lines().next().map(str::to_string);
        assert_eq!(title(&stderr), title(&again_stderr), "{again}\n{stdout}");
    }
}

#[test]
fn an_order_that_shows_comes_with_the_legal_outcomes() {
    let lines = ["order-dependent, 1 finding", "6 legal outcomes", "out=2,1,0", "out=0,1,2"];
    says(&["check", "--checked", TICKETS, "--grid", "1"], 1, &lines, &["warning[W0502]"]);
    says(&["run", TICKETS, "--grid", "1", "--schedule", "atomics:1,2,0"], 0, &["out: u32[3] = 1 2 0"], &[]);
    says(&["run", TICKETS, "--grid", "1", "--schedule", "reverse"], 0, &["out: u32[3] = 2 1 0"], &[]);
    says(&["run", TICKETS, "--grid", "1"], 0, &["out: u32[3] = 0 1 2"], &[]);
}

#[test]
fn legal_oddities_are_told_and_do_not_fail() {
    says(&["check", "--checked", UNWRITTEN], 0, &["deterministic"], &["warning[W0503]", "which was never written"]);
    let past_the_end = "reads `x[3]`, which is past the end (5 times)";
    says(
        &["check", "--checked", "examples/reduce.vyre", "--grid", "1", "--in", "x=1,2,3"],
        0,
        &["deterministic"],
        &[past_the_end],
    );
}

#[test]
fn a_trap_is_told_and_fails() {
    let args = ["check", "--checked", "checks/checked/clean/traps-everywhere.vyre", "--grid", "2"];
    says(&args, 1, &["deterministic under every schedule"], &["error[E0713]", "trap 5 in invocation 1,0,0"]);
}

#[test]
fn json_has_everything() {
    let (code, out, _) = vyre(&["check", "--checked", TICKETS, "--grid", "1", "--json"]);
    assert_eq!(code, 1);
    let object: Value = serde_json::from_str(&out).expect("one JSON object");
    let checked = &object["checked"];
    assert_eq!(checked["verdict"], "order-dependent");
    assert_eq!(checked["exhaustive"], true);
    assert_eq!(checked["legal_outcomes"].as_array().map(Vec::len), Some(6));
    assert_eq!(checked["difference"]["output"], "out");
    let finding = &checked["findings"][0];
    assert_eq!(finding["code"], "W0502");
    assert_eq!((finding["line"].as_u64(), finding["column"].as_u64()), (Some(9), Some(3)));
    assert_eq!(finding["other"]["line"], 9);
    assert_eq!(finding["buffer"], "next");
    assert_eq!(finding["element"], 0);
    assert!(finding["again"].as_str().is_some_and(|command| command.starts_with("vyre check")));
    let (code, out, _) = vyre(&["check", "--checked", CLEAN, "--in", "x=1,2,3,4,5,6,7", "--json"]);
    assert_eq!(code, 0);
    let object: Value = serde_json::from_str(&out).expect("one JSON object");
    assert_eq!(object["checked"]["verdict"], "deterministic");
    assert_eq!(object["checked"]["findings"].as_array().map(Vec::len), Some(0));
}

#[test]
fn several_files_are_checked_and_mistakes_in_one_do_not_hide_the_others() {
    let (code, out, err) =
        vyre(&["check", "--checked", "checks/validate/three-mistakes.vyre", UNWRITTEN, TICKETS, "--grid", "1"]);
    assert_eq!(code, 1);
    assert!(out.contains("part-of-a-tile.vyre: deterministic") && out.contains("tickets.vyre: order-dependent"), "{out}");
    assert!(err.contains("E0204") && err.contains("W0502"), "{err}");
}

#[test]
fn flags_that_make_no_sense_are_refused() {
    says(&["check", CLEAN, "--in", "x=1"], 2, &[], &["for --checked"]);
    says(&["check", CLEAN, "--schedule", "reverse"], 2, &[], &["--checked"]);
    says(&["check", "--checked", CLEAN, "--schedule", "sideways"], 2, &[], &["write forward, reverse"]);
    says(&["run", CLEAN, "--schedule", "stride:0"], 2, &[], &["not a stride"]);
    says(&["check", "--checked", CLEAN], 1, &[], &["E0701"]);
    // Too few steps to tell: neither yes nor no.
    says(&["check", "--checked", CLEAN, "--in", "x=1", "--fuel", "3"], 3, &[], &["no verdict", "E0712", "--fuel"]);
}
