//! One table per command: flags, and what comes of them: exit status, what is said, what JSON has, what is in files afterwards.

use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// What a call of the command gave.
struct Called {
    code: i32,
    out: String,
    err: String,
}

fn vyre(folder: &Path, args: &[&str]) -> Called {
    let output = Command::new(env!("CARGO_BIN_EXE_vyre")).args(args).current_dir(folder).output().expect("vyre starts");
    let text = |bytes| String::from_utf8(bytes).expect("it is text");
    Called { code: output.status.code().expect("it ends by itself"), out: text(output.stdout), err: text(output.stderr) }
}

/// A folder with kernels to run.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("it is written");
    write(
        "add.vyre",
        "program add {\n  workgroup 2\n  const k: i32 = 1\n  buffer a: read i32 @0\n  buffer out: output i32 @1\n\n  \
         out[gid.x] = a[gid.x] + k\n}\n",
    );
    write(
        "two.vyre",
        "program two {\n  workgroup 1\n  buffer a: read u32 @0\n  buffer x: output u32 @1\n  buffer y: output u32 @2\n\n  x[gid.x] = a[gid.x]\n  y[gid.x] = a[gid.x] + 1\n}\n",
    );
    write(
        "wide.vyre",
        "program wide {\n  workgroup 1\n  buffer out: output i64[2] @0\n\n  out[0] = -5i64\n  out[1] = 9223372036854775807i64\n}\n",
    );
    write(
        "count.vyre",
        "program count {\n  workgroup 4\n  buffer x: read u32 @0\n  buffer n: output u32[1] @1\n\n  if gid.x < len(x) {\n    atomic.add(n, 0, 1)\n  }\n}\n",
    );
    write("long.vyre", "program long {\n  workgroup 64\n  buffer out: output u32[300] @0\n\n  out[gid.x] = gid.x\n}\n");
    write("bad.vyre", "program bad {\n  workgroup 1\n  buffer out: output u32[1] @0\n\n  out[0] = 1.5\n}\n");
    write("ugly.vyre", "program ugly { workgroup 1\nbuffer out: output u32[1] @0\n out[0]=1\n}\n");
    write("racy.vyre", "program racy {\n  workgroup 2\n  buffer out: output u32[1] @0\n\n  out[0] = gid.x\n}\n");
    fs::write(folder.path().join("four.bin"), [7, 0, 0, 0]).expect("it is written");
    fs::write(folder.path().join("in=1.bin"), [7, 0, 0, 0]).expect("it is written");
    write(
        "it's racy.vyre",
        "program racy {\n  workgroup 2\n  const k: i32 = 1\n  buffer a: read i32 @0\n  buffer out: output i32 @1\n\n  \
         out[0] = a[gid.x] + k * i32(gid.x)\n}\n",
    );
    write("a=b.vyre", "program p {\n  workgroup 1\n  buffer out: output u32[1] @0\n\n  out[0] = 7\n}\n");
    folder
}

/// The same through a shell, which takes a command apart as people's do.
fn shell(folder: &Path, command: &str) -> Called {
    let words = command.strip_prefix("vyre ").unwrap_or_else(|| panic!("this is not a command of ours: {command}"));
    let script = format!("exec \"$0\" {words}");
    let output = Command::new("sh").args(["-c", &script, env!("CARGO_BIN_EXE_vyre")]).current_dir(folder).output();
    let output = output.expect("sh starts");
    let text = |bytes| String::from_utf8(bytes).expect("it is text");
    Called { code: output.status.code().expect("it ends by itself"), out: text(output.stdout), err: text(output.stderr) }
}

/// A row: the flags, the exit status, and what must be in the output or the errors.
type Row<'a> = (&'a [&'a str], i32, &'a str);

fn check(folder: &Path, rows: &[Row<'_>]) {
    for (args, code, says) in rows {
        let Called { code: found, out, err } = vyre(folder, args);
        assert_eq!(found, *code, "{args:?}: {out}{err}");
        assert!(out.contains(says) || err.contains(says), "{args:?} does not say `{says}`:\n{out}{err}");
        assert!(!err.contains("panicked"), "{args:?}: {err}");
    }
}

fn object(folder: &Path, args: &[&str]) -> (i32, Value) {
    let Called { code, out, err } = vyre(folder, args);
    (code, serde_json::from_str(&out).unwrap_or_else(|error| panic!("{args:?}: {error}\n{out}{err}")))
}

#[test]
fn run() {
    let folder = folder();
    let at = folder.path();
    check(
        at,
        &[
            (&["run", "add.vyre", "--in", "a=1,2"], 0, "out: i32[2] = 2 3"),
            (&["run", "add.vyre", "--in", "a=i32:1,2", "--const", "k=-4"], 0, "out: i32[2] = -3 -2"),
            (&["run", "a=b.vyre"], 0, "out: u32[1] = 7"),
            (&["run", "two.vyre", "--in", "a=@in=1.bin", "--out", "x=@out=1.bin"], 0, "out=1.bin, 4 bytes"),
            (&["run", "two.vyre", "--in", "a=@in=2.bin"], 2, "in=2.bin"),
            // The launch.
            (&["run", "count.vyre", "--in", "x=0..1000"], 1, "E0716"),
            (&["run", "count.vyre", "--in", "x=0..1000"], 1, "--over x"),
            (&["run", "count.vyre", "--in", "x=0..1000", "--over", "x"], 0, "n: u32[1] = 1000"),
            (&["run", "count.vyre", "--in", "x=0..1000", "--over", "n"], 0, "n: u32[1] = 4"),
            (&["run", "count.vyre", "--in", "x=0..1000", "--over", "8"], 0, "n: u32[1] = 8"),
            (&["run", "count.vyre", "--in", "x=0..1000", "--grid", "3"], 0, "n: u32[1] = 12"),
            (&["run", "count.vyre", "--in", "x=0..1000", "--over", "y"], 1, "E0702"),
            (&["run", "count.vyre", "--in", "x=0..1000", "--over", "0"], 1, "E0707"),
            (&["run", "count.vyre", "--in", "x=0..9", "--over", "x", "--grid", "1"], 2, "--grid"),
            // What is not shown is announced.
            (&["run", "long.vyre"], 0, "… (--full shows all)"),
            (&["run", "long.vyre", "--full"], 0, " 299\n"),
            // Where it runs.
            (&["run", "add.vyre", "--in", "a=1", "--backend", "auto", "--explain"], 0, "cpu: fits"),
            (&["run", "add.vyre", "--in", "a=1", "--timed"], 0, "on cpu, a grid of 1 x 1 x 1 workgroups of 2 x 1 x 1"),
            (&["run", "racy.vyre", "--schedule", "reverse"], 0, "out: u32[1] = 0"),
            (&["run", "racy.vyre", "--fuel", "1"], 1, "E0712"),
            (&["run", "racy.vyre", "--schedule", "reverse", "--backend", "bulk"], 2, "--schedule"),
            (&["run", "add.vyre", "--in", "a=1", "--backend", "cuda"], 2, "bulk"),
            // Files.
            (&["run", "two.vyre", "--in", "a=1", "--out", "x=@x.bin", "--out", "y=@x.bin"], 2, "x.bin"),
            (&["run", "two.vyre", "--in", "a=1", "--out", "x=@x.bin", "--out", "y=@./x.bin"], 2, "x.bin"),
            (&["run", "two.vyre", "--in", "a=1", "--out", "x=@two.vyre"], 2, "read by the command"),
            (&["run", "two.vyre", "--in", "a=1", "--out", "x=@/dev/null"], 2, "not a regular file"),
            (&["run", "bad.vyre"], 1, "E0304"),
            (&["run", "no.vyre"], 2, "no.vyre"),
        ],
    );
    // All outputs are written or none.
    let Called { code, err, .. } = vyre(at, &["run", "two.vyre", "--in", "a=1", "--out", "x=@x.bin", "--out", "y=@no/y.bin"]);
    assert!(code == 2 && err.contains("y.bin") && !at.join("x.bin").exists(), "{err}");
    fs::write(at.join("in.bin"), [5, 0, 0, 0]).unwrap();
    check(at, &[(&["run", "two.vyre", "--in", "a=@in.bin", "--out", "x=@in.bin"], 2, "read by the command")]);
    check(at, &[(&["run", "two.vyre", "--in", "a=@in.bin", "--out", "x=@x.bin", "--out", "y=@y.bin"], 0, "x.bin, 4 bytes")]);
    assert_eq!((fs::read(at.join("x.bin")).unwrap(), fs::read(at.join("y.bin")).unwrap()), (vec![5, 0, 0, 0], vec![6, 0, 0, 0]));
    // JSON has whole numbers as they are, and says where it ran.
    let (code, found) = object(at, &["run", "wide.vyre", "--json"]);
    assert_eq!((code, &found["outputs"][0]["values"]), (0, &json!([-5, 9_223_372_036_854_775_807i64])), "{found}");
    assert_eq!((&found["backend"], &found["grid"]), (&json!("cpu"), &json!([2, 1, 1])));
    let (code, found) = object(at, &["run", "add.vyre", "--in", "a=-7", "--json"]);
    assert_eq!((code, &found["outputs"][0]["values"]), (0, &json!([-6])), "{found}");
    let (code, found) = object(at, &["run", "count.vyre", "--in", "x=0..9", "--json"]);
    assert_eq!((code, &found["errors"][0]["code"]), (1, &json!("E0716")), "{found}");
}

#[test]
fn manifests() {
    let folder = folder();
    let at = folder.path();
    let save = ["run", "count.vyre", "--in", "x=0..100", "--grid", "3", "--save-manifest", "m.json"];
    check(at, &[(&save, 0, "n: u32[1] = 12")]);
    check(
        at,
        &[
            (&["run", "--manifest", "m.json", "--in", "x=0..100"], 0, "n: u32[1] = 12"),
            (&["run", "--manifest", "m.json", "--in", "x=0..100", "--grid", "5"], 0, "n: u32[1] = 20"),
            (&["run", "--manifest", "m.json", "--in", "x=0..100", "--over", "x"], 0, "n: u32[1] = 100"),
            (&["run", "--manifest", "m.json", "--in", "x=0..100", "--out", "n=@m.json"], 2, "read by the command"),
            (&["run", "count.vyre", "--in", "x=0..3", "--save-manifest", "count.vyre"], 2, "read by the command"),
        ],
    );
}

/// Whatever a manifest says about a dispatch holds for the one that it is run with, and is in the manifest of that one.
#[test]
fn every_field_of_a_manifest_counts() {
    let folder = folder();
    let at = folder.path();
    let racy = ["it's racy.vyre", "--in", "a=3,4", "--len", "out=2", "--grid", "1", "--backend", "bulk"];
    let save = [&["run"], &racy[..], &["--save-manifest", "m.json"]].concat();
    check(at, &[(&save, 0, "out: i32[2] = ")]);
    let saved: Value = serde_json::from_slice(&fs::read(at.join("m.json")).unwrap()).expect("a manifest is JSON");
    let fields = saved["config"].as_object().expect("a config has fields").keys().cloned().collect::<Vec<_>>();
    let rows = [
        ("grid", json!([2, 1, 1]), 0, "\"grid\":[2,1,1]"),
        ("workgroup", json!([1, 1, 1]), 0, "\"grid\":[2,1,1]"),
        ("output_counts", json!({ "out": 3 }), 0, "\"count\":3"),
        ("max_output_bytes", json!(4), 1, "E0708"),
        // Constants are put in before a program is in a manifest, so there are none that could have a value.
        ("specialization", json!({ "k": { "kind": "i32", "value": "5" } }), 1, "E0709"),
        // Of programs without elementary functions it is a permission only.
        ("ulp_budget", json!(2), 0, "\"count\":2"),
        ("timeout", json!({ "secs": 0, "nanos": 1 }), 1, "E0807"),
        ("require_deterministic", json!(true), 1, "not proven the same"),
        ("profile", json!("fast"), 1, "profile `fast`"),
        ("label", json!("mine"), 0, "\"count\":2"),
    ];
    assert_eq!(fields.len(), rows.len(), "a field has no row: {fields:?}");
    for (field, value, code, says) in rows {
        assert!(fields.iter().any(|known| known == field), "{field}");
        let mut other = saved.clone();
        other["config"][field] = value;
        fs::write(at.join("other.json"), other.to_string()).unwrap();
        let args =
            ["run", "--manifest", "other.json", "--in", "a=3,4", "--backend", "bulk", "--json", "--save-manifest", "next.json"];
        let Called { code: found, out, err } = vyre(at, &args);
        assert_eq!((found, out.contains(says)), (code, true), "{field}: {out}{err}");
        if code == 0 {
            let next: Value = serde_json::from_slice(&fs::read(at.join("next.json")).unwrap()).unwrap();
            assert_eq!(next["config"], other["config"], "{field} is lost on the way");
        }
    }
}

#[test]
fn check_of_files() {
    let folder = folder();
    let at = folder.path();
    check(
        at,
        &[
            (&["check", "add.vyre", "a=b.vyre"], 0, "a=b.vyre: ok"),
            (&["check", "add.vyre", "bad.vyre"], 1, "E0304"),
            (&["check", "bad.vyre", "no.vyre"], 2, "no.vyre"),
            (&["check", "no.vyre", "bad.vyre", "add.vyre"], 2, "add.vyre: ok"),
            (&["check", "--checked", "racy.vyre"], 1, "W0501"),
            // What cannot be decided is less than what is wrong, and that is less than what cannot be read.
            (&["check", "--checked", "--fuel", "1", "long.vyre"], 3, "E0712"),
            (&["check", "--checked", "--fuel", "1", "long.vyre", "bad.vyre"], 1, "E0712"),
            (&["check", "--checked", "--fuel", "1", "bad.vyre", "long.vyre"], 1, "E0712"),
            (&["check", "--checked", "--fuel", "1", "no.vyre", "bad.vyre", "long.vyre"], 2, "E0712"),
            (
                &["check", "--checked", "add.vyre", "--in", "a=1,2", "--const", "k=3", "--grid", "1"],
                0,
                "deterministic under every schedule",
            ),
        ],
    );
    // The command that shows a finding again has all flags, quoted.
    let flags = ["--in a=0;3", "--const k=-4", "--len out=5", "--over a", "--workgroup 1,1,1", "--fuel 100000"];
    let limits = ["--max-output-bytes 999", "--max-input-bytes 777"];
    let words = flags.iter().chain(&limits).flat_map(|flag| flag.split(' '));
    let args: Vec<&str> = ["check", "--checked", "it's racy.vyre"].into_iter().chain(words).collect();
    let Called { out, err, .. } = vyre(at, &args);
    let again = err.lines().find_map(|line| line.strip_prefix("again: ")).unwrap_or_else(|| panic!("{out}{err}"));
    let (_, found) = object(at, &[&args[..], &["--json"]].concat());
    assert_eq!(found["checked"]["findings"][0]["again"], again, "{found}");
    for flag in flags.iter().chain(&limits).chain(&["--checked", "--schedule forward"]) {
        let quoted = flag.replace("a=0;3", "'a=0;3'");
        assert!(again.contains(&quoted), "`{quoted}` is lost in: {again}");
    }
    let shown = shell(at, again);
    assert_eq!((shown.code, shown.err.contains("W0501")), (1, true), "{again}: {}", shown.err);
    // So has the one that runs it under the schedule that makes a difference.
    let run = out.lines().find_map(|line| line.split_once(": vyre run ")).unwrap_or_else(|| panic!("{out}{err}"));
    let shown = shell(at, &format!("vyre run {}", run.1));
    assert_eq!((shown.code, shown.out.contains("out: i32[5] = ")), (0, true), "{}: {}", run.1, shown.err);
    let grid = vyre(at, &["check", "--checked", "racy.vyre", "--grid", "1,1,1"]).err;
    assert!(grid.contains("--grid 1,1,1"), "{grid}");
    let (code, _) = object(at, &["check", "bad.vyre", "--json"]);
    assert_eq!(code, 1);
}

#[test]
fn formatting() {
    let folder = folder();
    let at = folder.path();
    check(
        at,
        &[
            (&["fmt", "--check", "add.vyre"], 0, ""),
            (&["fmt", "--check", "ugly.vyre"], 1, "not formatted"),
            (&["fmt", "--check", "add.vyre", "ugly.vyre", "no.vyre"], 2, "no.vyre"),
            (&["fmt", "bad-bytes"], 2, "bad-bytes"),
        ],
    );
    let (code, found) = object(at, &["fmt", "--check", "--json", "ugly.vyre"]);
    assert_eq!((code, &found["formatted"]), (1, &json!(false)));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(at.join("ugly.vyre"), fs::Permissions::from_mode(0o640)).unwrap();
        check(at, &[(&["fmt", "ugly.vyre"], 0, "")]);
        assert_eq!(fs::metadata(at.join("ugly.vyre")).unwrap().permissions().mode() & 0o777, 0o640);
    }
    check(at, &[(&["fmt", "--check", "ugly.vyre"], 0, "")]);
}

#[test]
fn emitting() {
    let folder = folder();
    let at = folder.path();
    check(
        at,
        &[
            (&["emit", "add.vyre", "--to", "wire", "--out", "add.vyreb"], 0, ""),
            (&["run", "add.vyreb", "--in", "a=4"], 0, "out: i32[1] = 5"),
            (&["emit", "add.vyre", "--to", "text", "--out", "add.vyre"], 2, "read by the command"),
            (&["emit", "add.vyre", "--to", "text", "--out", "no/such.vyre"], 2, "such.vyre"),
            (&["emit", "add.vyre", "--to", "text", "--json"], 2, "--out"),
            (&["emit", "bad.vyre", "--to", "text"], 1, "E0304"),
        ],
    );
}

#[test]
fn reducing() {
    let folder = folder();
    let at = folder.path();
    fs::write(at.join("mine.txt"), "kept").unwrap();
    check(
        at,
        &[
            (&["reduce", "add.vyre", "--predicate", "true", "--out", "mine.txt"], 2, "not written by `vyre reduce`"),
            (&["reduce", "add.vyre", "--predicate", "true", "--out", "add.vyre"], 2, "add.vyre"),
            (&["reduce", "add.vyre", "--predicate", "false", "--out", "new.vyre"], 1, ""),
            (&["reduce", "add.vyre", "--predicate", "grep -q program", "--out", "small.vyre"], 0, ""),
            // What it wrote itself it may write again.
            (&["reduce", "add.vyre", "--predicate", "grep -q program", "--out", "small.vyre"], 0, ""),
        ],
    );
    // The command that runs what is left.
    let args =
        ["reduce", "it's racy.vyre", "--in", "a=-1,-2", "--const", "k=5", "--predicate", "grep -q 'a\\['", "--out", "it's.vyre"];
    let Called { code, out, err } = vyre(at, &args);
    let again = out.lines().find_map(|line| line.strip_prefix("again: ")).unwrap_or_else(|| panic!("{out}{err}"));
    let shown = shell(at, again);
    assert_eq!((code, shown.code), (0, 0), "{again}: {}{}", shown.out, shown.err);
    assert_eq!(fs::read(at.join("mine.txt")).unwrap(), b"kept");
    assert!(!at.join("new.vyre").exists(), "a reduction that does not begin leaves nothing");
    assert!(fs::read_to_string(at.join("small.vyre")).unwrap().starts_with("// Reduced from add.vyre"));
}

/// What would take more memory than there is, or has no end, is told before the memory is asked for: these run with little of it.
#[cfg(unix)]
#[test]
fn sizes_are_checked_before_memory_is_asked_for() {
    let folder = folder();
    let at = folder.path();
    let write = |name: &str, buffers: &str, body: &str| {
        fs::write(at.join(name), format!("program p {{\n  workgroup 1\n{buffers}\n\n{body}\n}}\n")).expect("it is written");
    };
    write("wide-out.vyre", "  buffer out: output u8[200000000] @0", "  out[gid.x] = 1");
    write("wide-in.vyre", "  buffer x: read u32[1000000000] @0\n  buffer out: output u32[1] @1", "  out[0] = x[0]");
    write(
        "groups.vyre",
        "  buffer t: workgroup u32[8000]\n  buffer out: output u32[10000] @0",
        "  t[0] = 1\n  barrier.grid\n  out[gid.x] = t[1]",
    );
    let too_long = "with `a` from /dev/zero the inputs take more than";
    let rows: &[Row<'_>] = &[
        (&["run", "add.vyre", "--in", "a=@/dev/zero", "--max-input-bytes", "50000000"], 1, too_long),
        (&["check", "--checked", "add.vyre", "--in", "a=@/dev/zero", "--max-input-bytes", "50000000"], 1, "E0708"),
        (&["reduce", "add.vyre", "--predicate", "true", "--in", "a=@/dev/zero", "--max-input-bytes", "50000000"], 1, "E0708"),
        (&["run", "/dev/zero"], 2, "cannot read /dev/zero: it has more than 268435456 bytes"),
        (&["fmt", "/dev/zero"], 2, "more than 268435456 bytes"),
        (&["run", "--manifest", "/dev/zero"], 2, "more than 268435456 bytes"),
        (&["fuzz", "--replay", "/dev/zero"], 2, "more than 268435456 bytes"),
        (&["check", "--checked", "wide-out.vyre", "--grid", "1"], 1, "bytes of shadow memory"),
        (&["check", "--checked", "groups.vyre"], 1, "bytes of shadow memory"),
        (&["reduce", "wide-in.vyre", "--predicate", "true"], 1, "1000000001 elements, too many"),
        (&["reduce", "wide-out.vyre", "--grid", "1", "--predicate", "true"], 1, "200000000 elements, too many"),
        (&["reduce", "add.vyre", "--in", "a=@holes.bin", "--predicate", "true"], 1, "elements, too many"),
        (&["run", "add.vyre", "--in", "a=@more-holes.bin"], 1, "take more than 1073741824 bytes"),
    ];
    fs::File::create(at.join("holes.bin")).expect("a file").set_len(40_000_000).expect("it has holes");
    fs::File::create(at.join("more-holes.bin")).expect("a file").set_len(1 << 40).expect("it has holes");
    for (args, code, says) in rows {
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -v 1500000 && exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_vyre")]).args(*args);
        let output = command.current_dir(at).output().expect("sh starts");
        let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!((output.status.code(), said.contains(says)), (Some(*code), true), "{args:?}: {said}");
    }
    // What is within the limit is read, from what has an end too.
    check(
        at,
        &[
            (&["run", "add.vyre", "--in", "a=@four.bin", "--max-input-bytes", "4"], 0, "out: i32[1] = 8"),
            (&["run", "add.vyre", "--in", "a=@four.bin", "--max-input-bytes", "3"], 1, "--max-input-bytes"),
        ],
    );
}
