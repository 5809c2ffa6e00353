//! `vyre check --passes` as users meet it.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

fn vyre(args: &[&str]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    Command::new(env!("CARGO_BIN_EXE_vyre")).args(args).current_dir(root).output().expect("vyre starts")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("output is UTF-8")
}

/// A kernel as a file.
fn kernel(name: &str, content: &str) -> std::path::PathBuf {
    let path = std::env::temp_dir().join(format!("vyre-passes-{name}-{}.vyre", std::process::id()));
    std::fs::write(&path, content).expect("a temporary file");
    path
}

const SCALED: &str = "program scaled {
  workgroup 4
  const scale: u32 = 2
  buffer a: read u32 @0
  buffer out: output u32 @1

  let i = gid.x
  let unused = a[i + 1]
  if i < len(out) {
    out[i] = a[i] * (scale - 1)
  }
}
";

#[test]
fn every_pass_that_changes_the_program_is_shown_in_order_and_then_what_is_in_bounds() {
    let path = kernel("shown", SCALED);
    let output = vyre(&["check", "--passes", path.to_str().expect("a path")]);
    let _ = std::fs::remove_file(&path);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let out = text(&output.stdout);
    let headers: Vec<&str> = out.lines().filter(|line| line.starts_with("// ")).collect();
    assert_eq!(
        headers,
        ["// after specialize", "// after fold", "// after dead", "// in bounds: out[i]", "// not proven: a[i]"],
        "{out}"
    );
    let after_dead = out.split("// after dead\n").nth(1).and_then(|rest| rest.split("// in bounds").next()).expect("a program");
    let expected = "program scaled {
  workgroup 4
  buffer a: read u32 @0
  buffer out: output u32 @1

  let i = gid.x
  if i < len(out) {
    out[i] = a[i]
  }
}
";
    assert_eq!(after_dead, expected);
}

#[test]
fn a_program_that_no_pass_changes_says_so() {
    let output = vyre(&["check", "--passes", "examples/reduce.vyre"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let out = text(&output.stdout);
    assert!(out.contains("// no pass changes it\n") && out.contains("// not proven: x[gid.x], sums[wid.x]\n"), "{out}");
}

#[test]
fn the_same_as_json() {
    let path = kernel("json", SCALED);
    let output = vyre(&["check", "--passes", "--json", path.to_str().expect("a path")]);
    let _ = std::fs::remove_file(&path);
    let value: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    let steps = value["passes"]["steps"].as_array().expect("a list");
    let names: Vec<&str> = steps.iter().filter_map(|step| step["pass"].as_str()).collect();
    assert_eq!(names, ["specialize", "fold", "dead"]);
    assert!(steps[2]["program"].as_str().is_some_and(|program| !program.contains("unused")), "{value}");
    let in_bounds: Vec<(&str, bool)> = value["passes"]["accesses"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|access| Some((access["access"].as_str()?, access["in_bounds"].as_bool()?)))
        .collect();
    assert_eq!(in_bounds, [("out[i]", true), ("a[i]", false)]);
}

#[test]
fn a_program_with_mistakes_is_refused_as_without_the_flag() {
    let output = vyre(&["check", "--passes", "checks/validate/three-mistakes.vyre"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stdout));
    assert!(!text(&output.stdout).contains("// after"), "{}", text(&output.stdout));
}
