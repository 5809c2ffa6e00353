//! `vyre emit` with passes, and the SSA form, as users meet them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn vyre(args: &[&str]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    Command::new(env!("CARGO_BIN_EXE_vyre")).args(args).current_dir(root).output().expect("vyre starts")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("output is UTF-8")
}

/// A file of this test that goes when it ends.
struct File(PathBuf);

impl File {
    fn new(name: &str, content: &str) -> File {
        let path = std::env::temp_dir().join(format!("vyre-emit-{}-{name}", std::process::id()));
        std::fs::write(&path, content).expect("a temporary file");
        File(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("a path in UTF-8")
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn emitted(args: &[&str]) -> String {
    let output = vyre(args);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    text(&output.stdout).to_string()
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
fn all_passes_give_a_program_that_runs() {
    let file = File::new("all.vyre", SCALED);
    let optimised = emitted(&["emit", file.path(), "--to", "text", "--passes", "all"]);
    let expected = "program scaled {
  workgroup 4
  buffer a: read u32 @0
  buffer out: output u32 @1

  if gid.x < len(out) {
    out[gid.x] = a[gid.x]
  }
}
";
    assert_eq!(optimised, expected);
    let again = File::new("again.vyre", &optimised);
    for path in [file.path(), again.path()] {
        assert_eq!(emitted(&["run", path, "--in", "a=5,6,7"]), "out: u32[3] = 5 6 7\n", "{path}");
    }
    // The wire form of the same.
    let wire = File::new("all.vyreb", "");
    emitted(&["emit", file.path(), "--to", "wire", "--passes", "all", "--out", wire.path()]);
    assert_eq!(emitted(&["emit", wire.path(), "--to", "text"]), optimised);
}

#[test]
fn named_passes_run_in_the_order_that_is_written() {
    let file = File::new("named.vyre", SCALED);
    let body = |passes: &str| {
        let out = emitted(&["emit", file.path(), "--to", "text", "--passes", passes]);
        out.lines().filter(|line| line.contains("out[") || line.contains("unused")).map(str::trim).collect::<Vec<_>>().join("; ")
    };
    assert_eq!(body("control"), "let unused = a[i + 1]; out[i] = a[i] * (2 - 1)");
    assert_eq!(body("dead"), "out[gid.x] = a[gid.x] * (2 - 1)");
    assert_eq!(body("dead,fold"), "out[gid.x] = a[gid.x]");
    // Two passes each of which makes work for the other.
    let chain = File::new(
        "chain.vyre",
        "program chain {
  workgroup 1
  buffer out: output u32[1] @0

  let x = 1
  if x == 1 {
    x = 2
  }
  out[0] = x
}
",
    );
    let ifs = |passes: &str| emitted(&["emit", chain.path(), "--to", "text", "--passes", passes]).contains("if ");
    assert!(ifs("control,fold") && !ifs("fold, control"));
}

#[test]
fn a_pass_that_is_not_known_is_refused_with_the_one_that_was_meant() {
    let refused = |passes: &str, said: &str| {
        let output = vyre(&["emit", "examples/xor.vyre", "--to", "text", "--passes", passes]);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stdout));
        assert!(text(&output.stderr).contains(said), "{}", text(&output.stderr));
    };
    refused("comon", "there is no pass `comon`; did you mean `common`?");
    refused("fold,daed", "there is no pass `daed`; did you mean `dead`?");
    refused("vectorize", "there is no pass `vectorize`; the passes are fold, control, dead, common, and `all` means all of them");
    refused("", "there is no pass ``");
}

#[test]
fn the_ssa_form_says_which_accesses_are_in_bounds() {
    let file = File::new("ssa.vyre", SCALED);
    let expected = "workgroup 4 1 1
buffer a: read u32 @0
buffer out: output u32 @1
  %5: bool = lt gid.x, len(out)
  if %5 {
    %6: u32 = load #1 a[gid.x]
    store #2 out[gid.x] = %6  ; in bounds
  }
";
    assert_eq!(emitted(&["emit", file.path(), "--to", "ssa", "--passes", "all"]), expected);
    let plain = emitted(&["emit", file.path(), "--to", "ssa"]);
    assert!(plain.contains("%unused.") && plain.contains("sub 2u, 1u"), "{plain}");
    let folded = emitted(&["emit", file.path(), "--to", "ssa", "--passes", "fold"]);
    assert!(folded.contains("%unused.") && !folded.contains("sub 2u, 1u"), "{folded}");
}

#[test]
fn a_program_with_mistakes_is_refused() {
    for form in ["text", "ssa"] {
        let output = vyre(&["emit", "checks/validate/three-mistakes.vyre", "--to", form, "--passes", "all"]);
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), ""));
    }
}
