//! The command as users meet it: a real process, real files, its output and exit status.

use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

struct Outcome {
    code: i32,
    out: String,
    err: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn outcome(output: Output) -> Outcome {
    Outcome {
        code: output.status.code().expect("the process ended by itself"),
        out: String::from_utf8(output.stdout).expect("output is UTF-8"),
        err: String::from_utf8(output.stderr).expect("errors are UTF-8"),
    }
}

fn vyre(args: &[&str]) -> Outcome {
    let output = Command::new(env!("CARGO_BIN_EXE_vyre")).args(args).current_dir(root()).output().expect("vyre starts");
    outcome(output)
}

fn vyre_with_input(args: &[&str], input: &[u8]) -> Outcome {
    let mut child = Command::new(env!("CARGO_BIN_EXE_vyre"))
        .args(args)
        .current_dir(root())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("vyre starts");
    // A process that refuses its flags does not read; that is no failure of the test.
    let _ = child.stdin.take().expect("stdin is piped").write_all(input);
    outcome(child.wait_with_output().expect("vyre ends"))
}

fn fails(args: &[&str], code: i32, says: &str) {
    let outcome = vyre(args);
    assert_eq!(outcome.code, code, "{args:?}: {}{}", outcome.out, outcome.err);
    assert!(outcome.err.contains(says), "{args:?} does not say `{says}`:\n{}", outcome.err);
    assert!(!outcome.err.contains("panicked"), "{args:?}: {}", outcome.err);
}

/// A folder that is gone when the test is.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("vyre-cli-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a temporary folder");
        Folder(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        std::fs::write(self.0.join(name), content).expect("a temporary file");
        self.path(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const XOR: &str = "examples/xor.vyre";
/// Its input is of i8.
const NARROW: &str = "checks/run/memory/load.i8.vyre";

/// Every `$ cargo run --release -- …` in the README and in the pages of the book gives what stands below it.
#[test]
fn commands_in_the_pages_print_what_they_show() {
    let docs =
        std::fs::read_dir(root().join("docs")).expect("there are pages").map(|entry| entry.expect("it can be read").path());
    let pages = docs.filter(|path| path.extension().is_some_and(|extension| extension == "md")).chain([root().join("README.md")]);
    let text: String = pages.map(|page| std::fs::read_to_string(page).expect("a page")).collect();
    let mut commands = 0;
    for block in text.split("```console\n").skip(1) {
        let block = block.split("```").next().unwrap_or(block);
        let (command, shown) = block.split_once('\n').unwrap_or((block, ""));
        let Some(args) = command.strip_prefix("$ cargo run --release -- ") else { continue };
        let args: Vec<&str> = args.split_whitespace().collect();
        let outcome = vyre(&args);
        let trimmed = |text: &str| text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim().to_string();
        assert_eq!(trimmed(&(outcome.out + &outcome.err)), trimmed(shown), "{command}");
        commands += 1;
    }
    assert!(commands >= 9, "the pages show {commands} commands");
}

#[test]
fn run_shows_typed_values() {
    let outcome = vyre(&["run", XOR, "--in", "a=1,2,3", "--in", "b=u32:7,7,7"]);
    assert_eq!((outcome.code, outcome.out.as_str()), (0, "out: u32[3] = 6 5 4\n"));
    let outcome = vyre(&["run", XOR, "--in", "a=1,2,3", "--in", "b=7,7,7", "--const", "mask=1", "--json"]);
    let value: Value = serde_json::from_str(&outcome.out).expect("one JSON object");
    assert_eq!(value["outputs"][0]["values"], serde_json::json!([0, 1, 0]));
    assert_eq!(value["grid"], serde_json::json!([1, 1, 1]));
}

#[test]
fn run_reads_and_writes_files() {
    let folder = Folder::new("files");
    let bytes = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let a = folder.write("a.bin", bytes(&[1, 2, 3]));
    let out = folder.path("out.bin");
    let (in_a, out_arg) = (format!("a=@{a}"), format!("out=@{out}"));
    let outcome = vyre(&["run", XOR, "--in", &in_a, "--in", "b=7,7,7", "--out", &out_arg]);
    assert_eq!(outcome.code, 0, "{}", outcome.err);
    assert_eq!(std::fs::read(&out).expect("the output file"), bytes(&[6, 5, 4]));
    assert!(outcome.out.contains("12 bytes"), "{}", outcome.out);
    let outcome = vyre_with_input(&["run", XOR, "--in", "a=@-", "--in", "b=7"], &bytes(&[9]));
    assert_eq!(outcome.out, "out: u32[1] = 14\n", "{}", outcome.err);
}

#[test]
fn a_program_can_come_from_standard_input() {
    let text = "program p {\n  workgroup 1\n  buffer out: output f32[1] @0\n  out[0] = 0.1 + 0.2\n}\n";
    let outcome = vyre_with_input(&["run", "-"], text.as_bytes());
    assert_eq!((outcome.code, outcome.out.as_str()), (0, "out: f32[1] = 0.3\n"), "{}", outcome.err);
}

#[test]
fn mistakes_in_inputs_name_the_buffer_and_what_was_expected() {
    fails(&["run", XOR, "--in", "a=1"], 1, "the input `b` is missing");
    fails(&["run", NARROW, "--in", "x=1,200"], 1, "`200` does not fit i8");
    fails(&["run", XOR, "--in", "a=1"], 1, "--in b=@FILE");
    fails(&["run", XOR, "--in", "a=1,,2", "--in", "b=1"], 1, "a value is missing in `1,,2`");
    fails(&["run", XOR, "--in", "a=1", "--in", "b=1", "--in", "c=1"], 1, "no input `c`");
    fails(&["run", XOR, "--in", "a=1", "--in", "b=1", "--in", "out=1"], 1, "takes no bytes");
    fails(&["run", XOR, "--in", "a=1", "--in", "b=1", "--in", "a=1"], 1, "`a` is given twice");
    fails(&["run", XOR, "--in", "a=1", "--in", "b=f32:1.0"], 1, "`b` holds u32, and the values are given as f32");
    fails(&["run", XOR, "--in", "a=1", "--in", "b=-1"], 1, "`-1` is not a u32");
    fails(&["run", XOR, "--in", "a=1", "--in", "b=4294967296"], 1, "`4294967296` is not a u32");
    fails(&["run", XOR, "--in", "a=1", "--in", "b=bogus:1"], 1, "no type `bogus`");
    fails(&["run", XOR, "--in", "a=1", "--in", "b=0..99999999999"], 1, "pass a file instead");
    fails(&["run", XOR, "--in", "a=1", "--in", "b=0;99999999999"], 1, "pass a file instead");
    let folder = Folder::new("ragged");
    let ragged = format!("a=@{}", folder.write("a.bin", [1, 2, 3, 4, 5]));
    fails(&["run", XOR, "--in", &ragged, "--in", "b=1"], 1, "multiple of 4 bytes");
    fails(&["run", "examples/saxpy.vyre", "--in", "a=1,2", "--in", "x=1", "--in", "y=1"], 1, "too long");
    fails(&["run", "examples/saxpy.vyre", "--in", "a=", "--in", "x=1", "--in", "y=1"], 1, "too short");
}

#[test]
fn mistakes_in_the_launch_say_what_to_do() {
    fails(&["run", XOR, "--in", "a=1", "--in", "b=1", "--grid", "0"], 1, "E0707");
    fails(&["run", XOR, "--in", "a=1", "--in", "b=1", "--grid", "4294967295,4294967295,4294967295"], 1, "E0708");
    fails(&["run", XOR, "--in", "a=1", "--in", "b=1", "--len", "out=4000000000"], 1, "raise the limit");
    fails(&["run", XOR, "--in", "a=1", "--in", "b=1", "--len", "a=4"], 1, "one of out");
    fails(&["run", XOR, "--in", "a=1", "--in", "b=1", "--const", "msak=4"], 1, "E0709");
    fails(&["run", XOR, "--in", "a=1", "--in", "b=1", "--const", "mask=-4"], 1, "E0710");
    fails(&["run", XOR, "--in", "a=1", "--in", "b=1", "--fuel", "3"], 1, "E0712");
    fails(&["run", XOR, "--in", "a=1", "--in", "b=1", "--out", "o=@x"], 1, "no output `o`");
    fails(&["run", "examples/transpose.vyre", "--in", "m=0..16"], 1, "--grid");
}

#[test]
fn mistakes_in_the_command_line_exit_with_2() {
    fails(&[], 2, "Usage");
    fails(&["run"], 2, "FILE");
    fails(&["walk", XOR], 2, "unrecognized subcommand");
    fails(&["run", XOR, "--in", "a"], 2, "NAME=VALUE");
    fails(&["run", XOR, "--grid", "1,2,3,4"], 2, "three dimensions");
    fails(&["run", XOR, "--grid", "many"], 2, "is not a number");
    fails(&["run", XOR, "--len", "out=many", "--in", "a=1", "--in", "b=1"], 2, "is not a number of elements");
    fails(&["run", "no/such/file.vyre"], 2, "cannot read no/such/file.vyre");
    fails(&["run", XOR, "--in", "a=@no/such/file", "--in", "b=1"], 2, "cannot read no/such/file");
    fails(&["run", XOR, "--in", "a=1", "--in", "b=1", "--out", "out=@no/such/folder/x"], 2, "cannot write");
    fails(&["run", XOR, "--in", "a=1", "--in", "b=1", "--out", "out=@-"], 2, "name a file to write the bytes to");
    let quantize = ["run", "examples/quantize.vyre", "--in", "x=1", "--out", "q=@no/x", "--out", "error=@no/x"];
    fails(&quantize, 2, "another output goes to that file");
    fails(&["run", "--manifest", XOR], 1, "examples/xor.vyre: the manifest cannot be used");
    fails(&["check", "examples"], 2, "cannot read examples");
}

#[test]
fn a_trap_is_drawn_into_the_program() {
    let folder = Folder::new("trap");
    let text = "program p {\n  workgroup 4\n  buffer out: output u32[8] @0\n  if gid.x > 4 {\n    trap(7)\n  }\n}\n";
    let path = folder.write("trap.vyre", text);
    fails(&["run", &path], 1, "trap 7 in invocation 5,0,0");
    let outcome = vyre(&["run", &path, "--json"]);
    let value: Value = serde_json::from_str(&outcome.out).expect("one JSON object");
    assert_eq!(value["errors"][0]["code"], "E0713");
    assert_eq!(value["errors"][0]["line"], 5);
}

#[test]
fn check_reports_all_files_and_every_mistake() {
    let outcome = vyre(&["check", XOR, "checks/validate/three-mistakes.vyre", "examples/reduce.vyre"]);
    assert_eq!(outcome.code, 1);
    assert!(outcome.out.contains("examples/xor.vyre: ok") && outcome.out.contains("examples/reduce.vyre: ok"), "{}", outcome.out);
    for code in ["E0204", "E0301", "E0408"] {
        assert!(outcome.err.contains(code), "{}", outcome.err);
    }
    let outcome = vyre(&["check", "checks/validate/three-mistakes.vyre", "--json"]);
    let value: Value = serde_json::from_str(&outcome.out).expect("one JSON object");
    assert_eq!(value["errors"].as_array().map(Vec::len), Some(3));
    assert_eq!(value["errors"][0]["file"], "checks/validate/three-mistakes.vyre");
}

#[test]
fn of_very_many_mistakes_the_first_are_told_and_the_rest_are_counted() {
    let folder = Folder::new("many");
    let lines = "  let a = b\n  out[0] = c + 1.5\n".repeat(10_000);
    let path = folder.write("many.vyre", format!("program p {{\n  workgroup 1\n  buffer out: output u32 @0\n{lines}}}\n"));
    // On each second line the name is taken, too.
    fails(&["check", &path], 1, "… and 29899 more");
    let outcome = vyre(&["check", &path, "--json"]);
    let value: Value = serde_json::from_str(&outcome.out).expect("one JSON object");
    assert_eq!(value["errors"].as_array().map(Vec::len), Some(100));
    assert_eq!(value["more_errors"], 29_899);
    assert_eq!((&value["errors"][99]["line"], &value["errors"][99]["column"]), (&70.into(), &11.into()));
}

#[test]
fn check_portable_warns_and_still_succeeds() {
    let folder = Folder::new("portable");
    let path = folder.write("big.vyre", "program p {\n  workgroup 512\n  buffer out: output u32 @0\n}\n");
    let outcome = vyre(&["check", &path, "--portable"]);
    assert_eq!(outcome.code, 0);
    assert!(outcome.err.contains("warning[W0401]"), "{}", outcome.err);
    let outcome = vyre(&["check", &path]);
    assert_eq!((outcome.code, outcome.err.as_str()), (0, ""));
}

#[test]
fn fmt_formats_in_place_and_leaves_what_does_not_parse() {
    let folder = Folder::new("fmt");
    let text = "program  p{ // name\nworkgroup   64\nbuffer out:output u32@0\n\n\n\nout[gid.x]=1+2*gid.x // three\n}";
    let path = folder.write("p.vyre", text);
    assert_eq!(vyre(&["fmt", "--check", &path]).code, 1);
    assert_eq!(std::fs::read_to_string(&path).expect("the file"), text, "--check changes nothing");
    assert_eq!(vyre(&["fmt", &path]).code, 0);
    let formatted = std::fs::read_to_string(&path).expect("the file");
    assert!(formatted.contains("  out[gid.x] = 1 + 2 * gid.x") && formatted.contains("// three"), "{formatted}");
    assert_eq!(vyre(&["fmt", "--check", &path]).code, 0);
    let broken = folder.write("broken.vyre", "program p {\n  workgroup\n}");
    fails(&["fmt", &broken], 1, "E0104");
    assert_eq!(std::fs::read_to_string(&broken).expect("the file"), "program p {\n  workgroup\n}");
    let outcome = vyre_with_input(&["fmt", "-"], text.as_bytes());
    assert_eq!(outcome.out, formatted);
}

#[test]
fn any_bytes_as_a_program_are_refused_with_a_place() {
    let folder = Folder::new("bytes");
    let not_utf8 = folder.write("bytes.vyre", b"program p {\n  \xff\n}");
    fails(&["check", &not_utf8], 1, "E0111");
    let nul = folder.write("nul.vyre", "program p {\0");
    fails(&["check", &nul], 1, "E0101");
    let empty = folder.write("empty.vyre", "");
    fails(&["check", &empty], 1, "E0104");
    for (name, text) in [
        ("parens", format!("program p {{\n  workgroup 1\n  let x = {}1{}\n}}\n", "(".repeat(100_000), ")".repeat(100_000))),
        ("ifs", format!("program p {{\n  workgroup 1\n{}{}\n}}\n", "if true {\n".repeat(100_000), "}\n".repeat(100_000))),
        ("open", format!("program p {{\n  workgroup 1\n  let x = {}", "(".repeat(100_000))),
        ("minus", format!("program p {{\n  workgroup 1\n  let x = {}1\n}}\n", "-".repeat(100_000))),
        ("sum", format!("program p {{\n  workgroup 1\n  let x = 1{}\n}}\n", " + 1".repeat(100_000))),
    ] {
        let path = folder.write(name, text);
        fails(&["check", &path], 1, "E0107");
        fails(&["run", &path], 1, "E0107");
        fails(&["fmt", &path], 1, "E0107");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_panic() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_vyre"))
        .args(["run", XOR, "--in", "a=0..100000", "--in", "b=0;100000", "--full"])
        .current_dir(root())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("vyre starts");
    drop(child.stdout.take());
    let outcome = outcome(child.wait_with_output().expect("vyre ends"));
    assert!(!outcome.err.contains("panicked"), "{}", outcome.err);
}

/// A full disk is not a reader that has gone away.
#[cfg(target_os = "linux")]
#[test]
fn an_answer_that_cannot_be_written_is_no_success() {
    for args in [
        &["run", XOR, "--in", "a=1", "--in", "b=1"][..],
        &["emit", XOR, "--to", "wire"],
        &["emit", XOR, "--to", "text"],
        &["check", XOR, "--json"],
    ] {
        let full = std::fs::File::options().write(true).open("/dev/full").expect("the device that is full");
        let output = Command::new(env!("CARGO_BIN_EXE_vyre")).args(args).current_dir(root()).stdout(full).output();
        let outcome = outcome(output.expect("vyre starts"));
        assert_eq!(outcome.code, 2, "{args:?}");
        assert!(outcome.err.contains("cannot write standard output"), "{args:?}: {}", outcome.err);
    }
}

#[test]
fn standard_input_is_read_once() {
    let text = std::fs::read(root().join(XOR)).expect("an example");
    for args in
        [&["run", "-", "--in", "a=@-", "--in", "b=1"][..], &["run", XOR, "--in", "a=@-", "--in", "b=@-"], &["check", "-", "-"]]
    {
        let outcome = vyre_with_input(args, &text);
        assert_eq!(outcome.code, 2, "{args:?}: {}", outcome.out);
        assert!(outcome.err.contains("can be read only once"), "{args:?}: {}", outcome.err);
    }
}

#[test]
fn a_file_that_cannot_be_read_does_not_hide_the_others() {
    let folder = Folder::new("others");
    let spread = folder.write("spread.vyre", "program  p {\n  workgroup 1\n}\n");
    let missing = folder.path("missing.vyre");
    let outcome = vyre(&["check", &missing, "checks/validate/three-mistakes.vyre", &spread]);
    assert_eq!(outcome.code, 2);
    assert!(outcome.err.contains("cannot read") && outcome.err.contains("E0204"), "{}", outcome.err);
    assert!(outcome.out.contains("spread.vyre: ok"), "{}", outcome.out);
    assert_eq!(vyre(&["fmt", &missing, &spread]).code, 2);
    assert_eq!(vyre(&["fmt", "--check", &spread]).code, 0, "it has been formatted");
    let outcome = vyre(&["check", &missing, &spread, "--json"]);
    let objects: Vec<Value> = outcome.out.lines().map(|line| serde_json::from_str(line).expect("an object a line")).collect();
    assert_eq!((objects.len(), &objects[0]["file"]), (2, &Value::from(missing)));
    assert!(objects[0]["usage"].is_string() && objects[1]["fingerprint"].is_string(), "{}", outcome.out);
}

#[cfg(unix)]
#[test]
fn fmt_writes_through_links_and_not_to_read_only_files() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = Folder::new("links");
    let text = "program  p {\n  workgroup 1\n}\n";
    let (file, link) = (folder.write("file.vyre", text), folder.path("link.vyre"));
    symlink("file.vyre", &link).expect("a link");
    assert_eq!(vyre(&["fmt", &link]).code, 0);
    assert!(std::fs::symlink_metadata(&link).expect("the link").is_symlink());
    assert_eq!(std::fs::read_to_string(&file).expect("the file"), "program p {\n  workgroup 1\n}\n");
    let kept = folder.write("kept.vyre", text);
    std::fs::set_permissions(&kept, PermissionsExt::from_mode(0o444)).expect("permissions");
    fails(&["fmt", &kept], 2, "read-only");
    assert_eq!(std::fs::read_to_string(&kept).expect("the file"), text);
}

#[test]
fn a_file_in_wire_form_is_told_by_its_name() {
    let folder = Folder::new("wire");
    let wire = folder.path("xor.vyreb");
    assert_eq!(vyre(&["emit", XOR, "--to", "wire", "--out", &wire]).code, 0);
    fails(&["fmt", &wire], 2, "--to text");
    fails(&["run", &wire, "--in", "a=1"], 1, "xor.vyreb as text:5:3");
    let whole = std::fs::read(&wire).expect("the file");
    let cut = folder.write("cut.vyreb", &whole[..60]);
    fails(&["check", &cut], 1, "cut.vyreb: byte 28: the checksum");
}

#[test]
fn json_is_all_that_standard_output_has() {
    let outcome = vyre_with_input(&["fmt", "-", "--json"], b"program  p {\nworkgroup 1\n}");
    let value: Value = serde_json::from_str(&outcome.out).expect("one JSON object");
    assert_eq!((&value["formatted"], &value["text"]), (&Value::from(false), &Value::from("program p {\n  workgroup 1\n}\n")));
    // What would mend a mistake, as a change of the text.
    let outcome = vyre_with_input(&["check", "-", "--json"], b"program p {\n  workgroup 1\n  buffer a: read u33 @0\n}");
    let value: Value = serde_json::from_str(&outcome.out).expect("one JSON object");
    let fix = serde_json::json!({ "line": 3, "column": 18, "end_line": 3, "end_column": 21, "text": "u32" });
    assert_eq!(value["errors"][0]["fix"], fix);
}

#[test]
fn help_teaches_with_examples_that_work() {
    let help = vyre(&["help"]);
    assert_eq!(help.code, 0);
    let commands: Vec<&str> = help.out.lines().filter_map(|line| line.trim().strip_prefix("vyre run examples")).collect();
    assert!(!commands.is_empty(), "{}", help.out);
    let run_help = vyre(&["help", "run"]).out;
    for line in help.out.lines().chain(run_help.lines()) {
        let Some(rest) = line.trim().strip_prefix("vyre run ") else { continue };
        if rest.contains(".bin") {
            continue;
        }
        let args: Vec<&str> = rest.split("    ").next().unwrap_or(rest).split_whitespace().collect();
        let outcome = vyre(&[&["run"], args.as_slice()].concat());
        assert_eq!(outcome.code, 0, "{rest}: {}", outcome.err);
    }
}

#[test]
fn check_tells_under_which_conditions_a_proof_holds() {
    let answer = "determinism: cross-backend if gid_count.z <= 1 and w * size[1] <= 4294967296\n";
    let outcome = vyre(&["check", "bench/kernels/blur.vyre"]);
    assert_eq!((outcome.code, outcome.err.as_str()), (0, ""));
    assert!(outcome.out.ends_with(answer), "{}", outcome.out);
    let object: Value = serde_json::from_str(&vyre(&["check", "--json", "bench/kernels/blur.vyre"]).out).expect("JSON");
    let determinism = &object["determinism"];
    assert_eq!(determinism["proven"], true);
    assert_eq!(determinism["conditions"][1]["text"], "w * size[1] <= 4294967296");
    assert_eq!(determinism["conditions"][1]["line"], 22);
    // Proven outright: no conditions.
    let object: Value = serde_json::from_str(&vyre(&["check", "--json", "examples/histogram.vyre"]).out).expect("JSON");
    assert_eq!(object["determinism"], serde_json::json!({ "proven": true, "conditions": [] }));
}

#[test]
fn check_draws_what_stands_in_the_way_of_a_proof() {
    let folder = Folder::new("unproven");
    let kernel = "\
program race {
  workgroup 4
  buffer a: read u32 @0
  buffer out: output u32 @1
  buffer tile: workgroup u32[4]

  tile[lid.x] = a[gid.x]

  out[gid.x] = tile[3 - lid.x]
}
";
    let path = folder.0.join("race.vyre");
    std::fs::write(&path, kernel).expect("a file");
    let path = path.to_str().expect("a path in UTF-8");
    let outcome = vyre(&["check", path]);
    let drawn = format!(
        "\
warning[W0505]: one invocation may touch an element of `tile` that another of its workgroup writes
 --> {path}:7:3
  |
7 |   tile[lid.x] = a[gid.x]
  |   ^^^^^^^^^^^^^^^^^^^^^^
8 |
9 |   out[gid.x] = tile[3 - lid.x]
  |                --------------- the other access
  |
  = help: put a `barrier` between them (`barrier.grid` between workgroups), or give each invocation elements of its own
"
    );
    assert_eq!(outcome.err, drawn);
    assert_eq!(outcome.code, 0);
    assert!(outcome.out.contains("determinism: unproven: one invocation may touch an element of `tile`"), "{}", outcome.out);
    let outcome = vyre(&["check", "--json", path]);
    assert_eq!((outcome.code, outcome.err.as_str()), (0, ""));
    let object: Value = serde_json::from_str(&outcome.out).expect("JSON");
    let determinism = &object["determinism"];
    assert_eq!(determinism["proven"], false);
    assert_eq!(determinism["reason"], "one invocation may touch an element of `tile` that another of its workgroup writes");
    assert!(determinism["help"].as_str().is_some_and(|help| help.starts_with("put a `barrier` between them")), "{object}");
    assert_eq!((&determinism["line"], &determinism["column"]), (&Value::from(7), &Value::from(3)));
    assert_eq!(determinism["other"], serde_json::json!({ "line": 9, "column": 16 }));
}
