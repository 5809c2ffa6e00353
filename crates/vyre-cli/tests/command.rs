//! The command itself: traces, help, completions, manual pages, colour, times, and usage errors for programs.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

struct Outcome {
    code: Option<i32>,
    out: String,
    err: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn vyre_at(width: &str, arguments: &[&str]) -> Outcome {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vyre"));
    let output = command.args(arguments).env("COLUMNS", width).current_dir(root()).output().expect("the command runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    Outcome { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

fn vyre(arguments: &[&str]) -> Outcome {
    vyre_at("100", arguments)
}

/// A program in a file that is gone with the value.
fn file(text: &str) -> tempfile::NamedTempFile {
    let file = tempfile::Builder::new().suffix(".vyre").tempfile().expect("a file");
    std::fs::write(file.path(), text).expect("it can be written");
    file
}

const TRACED: &str = "\
program traced {
  workgroup 4
  subgroup 4
  const scale: u32 = 3
  buffer x: read u32 @0
  buffer bytes: output u8[4] @1
  buffer count: output u32[1] @2
  buffer out: output u32 @3

  let i = gid.x
  let sum = 0
  for k in 0..3 {            // loads past the end are 0
    if k == 1 {
      continue
    }
    sum = sum + x[i + k] * scale
  }
  barrier
  let all = subgroup.add(sum)
  let old = atomic.add(count, 0, all)
  if i < 2 {
    bytes[i] = sum + 256
  } else if i == 3 {
    out[i + 9] = old
    return
  } else {
    out[i] = max(sum, 7)
  }
}
";

#[test]
fn a_trace_has_every_value_of_one_invocation() {
    let file = file(TRACED);
    let path = file.path().to_str().expect("a path");
    let traced = |id: &str| vyre(&["run", path, "--in", "x=1,2,3,4", "--trace", id, "--backend", "cpu"]);
    let outcome = traced("3");
    assert_eq!((outcome.code, outcome.err.as_str()), (Some(0), ""));
    let (trace, outputs) = outcome.out.split_once("\n\n").expect("a trace, then outputs");
    assert_eq!(
        trace,
        "\
invocation 3,0,0 (workgroup 0,0,0, local 3,0,0)
10 |   let i = gid.x                        i = 3
11 |   let sum = 0                          sum = 0
12 |   for k in 0..3 {                      k = 0
13 |     if k == 1 {                        k = 0, k == 1 = false, not taken
16 |     sum = sum + x[i + k] * scale       sum = 0, i = 3, k = 0, i + k = 3, x[3] = 4,
   |                                        scale = 3, x[i + k] * scale = 12, sum = 12
12 |   for k in 0..3 {                      k = 1
13 |     if k == 1 {                        k = 1, k == 1 = true, taken
14 |       continue                         goes on with the next iteration
12 |   for k in 0..3 {                      k = 2
13 |     if k == 1 {                        k = 2, k == 1 = false, not taken
16 |     sum = sum + x[i + k] * scale       sum = 12, i = 3, k = 2, i + k = 5,
   |                                        x[5] = 0 (past the end: len(x) = 4), scale = 3,
   |                                        x[i + k] * scale = 0
12 |   for k in 0..3 {                      ends after 3 iterations
18 |   barrier                              waits for the others
19 |   let all = subgroup.add(sum)          sum = 12, all = 51
20 |   let old = atomic.add(count, 0, all)  all = 51, count[0] = 204 (was 153), old = 153
21 |   if i < 2 {                           i = 3, i < 2 = false, else
23 |   } else if i == 3 {                   i = 3, i == 3 = true, taken
24 |     out[i + 9] = old                   i = 3, i + 9 = 12, old = 153,
   |                                        out[12] = 153 (dropped, past the end: len(out) = 4)
25 |     return                             ends here"
    );
    assert!(outputs.starts_with("bytes: u8[4] = "), "{outputs}");
    // What a store leaves in memory.
    let outcome = traced("1,0,0");
    assert!(outcome.out.contains("bytes[1] = 18 (made of 274)"), "{}", outcome.out);
    let outcome = traced("2");
    assert!(outcome.out.contains("sum = 9, out[2] = 9"), "{}", outcome.out);
    // Invocations that there are not, and ids that are none.
    for (id, says) in [("4", "there is no such invocation along x: they are 0 to 3"), ("0,1", "along y: they are 0 to 0")] {
        let outcome = traced(id);
        assert_eq!(outcome.code, Some(2));
        assert!(outcome.err.contains(says), "{}", outcome.err);
    }
    assert!(traced("a").err.contains("`a` in `a` is not a number"));
    let outcome = vyre(&["run", path, "--in", "x=1,2,3,4", "--trace", "0", "--json"]);
    let object: Value = serde_json::from_str(&outcome.out).expect("one object");
    assert_eq!(object["trace"]["steps"][0], serde_json::json!({ "line": 10, "values": ["i = 0"] }));
}

#[test]
fn a_trace_shows_how_a_kernel_came_to_trap() {
    let file = file("program p {\n  workgroup 4\n  buffer x: read u32 @0\n\n  if x[gid.x] > 2 {\n    trap(7)\n  }\n}\n");
    let path = file.path().to_str().expect("a path");
    let outcome = vyre(&["run", path, "--in", "x=1,2,3", "--over", "x", "--trace", "2"]);
    assert_eq!(outcome.code, Some(1));
    assert!(outcome.out.contains("trap 7: ends here, and the dispatch has no outputs"), "{}", outcome.out);
    assert!(outcome.err.contains("error[E0713]"), "{}", outcome.err);
}

#[test]
fn long_traces_are_cut_unless_all_is_asked_for() {
    let file =
        file("program p {\n  workgroup 1\n  buffer out: output u32[1] @0\n\n  for i in 0..20000 {\n    out[0] = i\n  }\n}\n");
    let path = file.path().to_str().expect("a path");
    let lines = |flags: &[&str]| {
        let outcome = vyre(&[&["run", path, "--trace", "0"], flags].concat());
        (outcome.out.lines().count(), outcome.out.contains("… 30001 steps more (--full shows all)"))
    };
    assert_eq!(lines(&[]), (10_000 + 4, true));
    assert_eq!(lines(&["--full"]), (40_001 + 3, false));
}

#[test]
fn help_fits_the_terminal() {
    let commands = [
        "run",
        "check",
        "fmt",
        "emit",
        "devices",
        "reduce",
        "fuzz",
        "conform",
        "report",
        "diff",
        "cert",
        "test",
        "explain",
        "lsp",
        "completions",
        "man",
    ];
    for width in ["40", "60", "80", "100", "200"] {
        let limit: usize = width.parse::<usize>().expect("a number").min(100);
        for command in commands {
            let outcome = vyre_at(width, &["help", command]);
            assert_eq!(outcome.code, Some(0), "{command}");
            for line in outcome.out.lines() {
                // Commands to copy, the kernel, and words longer than the terminal stay whole.
                let is_whole = line.starts_with("  ") || line.starts_with("Usage:") || !line.trim().contains(' ');
                assert!(line.chars().count() <= limit || is_whole, "{command} at {width}: {line}");
            }
        }
    }
    // Beside the entries where there is room, below them where there is none.
    let wide = vyre_at("100", &["help", "run"]).out;
    assert!(wide.lines().any(|line| line.starts_with("  --grid 4 ") && line.contains(" 4 workgroups")), "{wide}");
    let narrow = vyre_at("50", &["help", "run"]).out;
    assert!(narrow.contains("\n  --in a=@file.bin\n"), "{narrow}");
}

#[test]
fn usage_errors_are_json_under_json() {
    for arguments in [
        &["run", "--json"][..],
        &["run", "--json", "--no-such-flag", "x.vyre"],
        &["nothing", "--json"],
        &["run", "x.vyre", "--grid", "a", "--json"],
        &["run", "no/such.vyre", "--json"],
        &["--json"],
    ] {
        let outcome = vyre(arguments);
        assert_eq!((outcome.code, outcome.err.as_str()), (Some(2), ""), "{arguments:?}: {}", outcome.out);
        let object: Value =
            serde_json::from_str(&outcome.out).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {}", outcome.out));
        assert!(object["usage"].as_str().is_some_and(|usage| !usage.is_empty() && !usage.contains('\n')), "{object}");
    }
    // Help is help.
    assert!(vyre(&["run", "--json", "--help"]).out.starts_with("Run a kernel"));
    // After `--` it is a file.
    assert_eq!(vyre(&["check", "--", "--json"]).out, "");
}

#[test]
fn colour_is_for_terminals_or_when_it_is_asked_for() {
    let wrong = ["check", "checks/validate/three-mistakes.vyre"];
    assert!(!vyre(&wrong).err.contains('\u{1b}'));
    assert!(vyre(&[&wrong[..], &["--color", "always"]].concat()).err.contains("\u{1b}["));
    assert!(!vyre(&[&["--color=never"], &wrong[..]].concat()).err.contains('\u{1b}'));
    assert!(vyre(&["--color", "always", "run"]).err.contains("\u{1b}["), "{}", vyre(&["--color", "always", "run"]).err);
    assert!(!vyre(&["run"]).err.contains('\u{1b}'));
    let outcome = vyre(&["--color", "sometimes", "devices"]);
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.err.contains("auto") && outcome.err.contains("never"), "{}", outcome.err);
}

#[test]
fn shells_and_man_know_the_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let outcome = vyre(&["completions", shell]);
        assert_eq!(outcome.code, Some(0));
        assert!(outcome.out.contains("explain") && outcome.out.contains("list-subjects"), "{shell}");
    }
    let outcome = vyre(&["man", "run"]);
    assert!(outcome.out.contains(".TH vyre-run 1") && outcome.out.contains("\\-\\-trace"), "{}", outcome.out);
    // Examples stay as they are laid out.
    assert!(outcome.out.contains(".nf\n") && outcome.out.contains("\n  vyre run examples/xor.vyre"), "{}", outcome.out);
    assert!(vyre(&["man"]).out.contains(".TH vyre 1"));
    assert!(vyre(&["man", "walk"]).err.contains("there is no command `walk`; the commands are run, check"));
    let folder = tempfile::tempdir().expect("a folder");
    // A folder that is not there is made.
    let folder = folder.path().join("man/man1");
    assert_eq!(vyre(&["man", "--all", folder.to_str().expect("a path")]).code, Some(0));
    let pages = std::fs::read_dir(&folder).expect("it is there").count();
    assert_eq!(pages, 17 + usize::from(cfg!(feature = "postgres")));
    assert!(!folder.join("vyre-worker.1").exists());
}

#[test]
fn subjects_are_listed_with_every_fault() {
    let outcome = vyre(&["fuzz", "--list-subjects"]);
    assert_eq!(outcome.code, Some(0));
    for name in [
        "bulk ",
        "passes ",
        "pass:fold ",
        "backend:cpu ",
        "fault:nan-compare ",
        "bulk-fault:",
        "mutant:cpu/",
        "mutant:operator/add.i32-is-sub ",
    ] {
        assert!(outcome.out.lines().any(|line| line.starts_with(name)), "{name}");
    }
    // Each can be used.
    let first = outcome
        .out
        .lines()
        .find(|line| line.starts_with("mutant:cpu/"))
        .and_then(|line| line.split(' ').next())
        .expect("a fault");
    let outcome = vyre(&["fuzz", "--subject", first, "--programs", "1", "--preset", "ints", "--findings", "/no/such/folder"]);
    assert_ne!(outcome.code, Some(2), "{}", outcome.err);
    let outcome = vyre(&["fuzz", "--list-subjects", "--json"]);
    let first: Value = serde_json::from_str(outcome.out.lines().next().unwrap_or_default()).expect("an object per line");
    assert_eq!(first["subject"], "bulk");
}

#[test]
fn one_output_needs_no_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("xor.bin");
    let path = path.to_str().expect("a path");
    let xor = ["run", "examples/xor.vyre", "--in", "a=1,2,3", "--in", "b=7,7,7", "--out"];
    for out in [path.to_string(), format!("out={path}"), format!("out=@{path}")] {
        let outcome = vyre(&[&xor[..], &[&out]].concat());
        assert_eq!(outcome.code, Some(0), "{}", outcome.err);
        assert_eq!(std::fs::read(path).expect("it is written"), [6, 0, 0, 0, 5, 0, 0, 0, 4, 0, 0, 0]);
        std::fs::remove_file(path).expect("it is there");
    }
    let outcome = vyre(&["run", "examples/quantize.vyre", "--in", "x=1", "--out", "q.bin"]);
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.err.contains("say which output it is, such as --out q=q.bin; the outputs are q, error"), "{}", outcome.err);
}
