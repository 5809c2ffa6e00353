//! `vyre test` as a real process.

use std::path::Path;
use std::process::{Command, Output, Stdio};

fn vyre(args: &[&str]) -> Output {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let mut command = Command::new(env!("CARGO_BIN_EXE_vyre"));
    command.args(args).current_dir(root).stdin(Stdio::null()).output().expect("the command starts")
}

fn said(output: &Output) -> (String, String) {
    (String::from_utf8_lossy(&output.stdout).into_owned(), String::from_utf8_lossy(&output.stderr).into_owned())
}

const RIGHT: &str = "// run: a=[1, 2] -> out=[2, 3]\nprogram p {\n  workgroup 4\n  buffer a: read u32 @0\n  buffer out: output u32 @1\n  \
                     if gid.x < len(out) { out[gid.x] = a[gid.x] + 1 }\n}\n";

#[test]
fn exit_status_and_words_of_every_edge() {
    let folder = tempfile::tempdir().expect("there is room");
    let file = |name: &str, content: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("it is made");
        std::fs::write(&path, content).expect("it is written");
        path.display().to_string()
    };
    let right = file("right.vyre", RIGHT);
    let wrong = file("wrong.vyre", &RIGHT.replace("[2, 3]", "[2, 4]"));
    let both = file("both.vyre", &format!("// run: a=[7] -> out=[9]\n{RIGHT}"));
    let no_trap = file("trap.vyre", &format!("// trap: a=[7] -> 3 at 0,0,0\n{RIGHT}"));
    let no_refusal = file("refuse.vyre", &format!("// refuse: a=[7] -> E0704 about a\n{RIGHT}"));
    let nothing = file("nothing.vyre", RIGHT.split_once('\n').expect("two lines").1);
    let directive = file("directive.vyre", &RIGHT.replace("->", "=>"));
    let racy = file("racy.vyre", &RIGHT.replace("out[gid.x] = a[gid.x] + 1", "out[0] = gid.x").replace("[2, 3]", "[0, 0]"));
    let unreadable = file("unreadable.vyre", "// error: E0101 at 2:1\nprogram {\n");
    let binary = file("binary.vyre", "\u{0}\u{1}");
    file("folder/a/one.vyre", RIGHT);
    file("folder/two.vyre", RIGHT);
    file("folder/three.txt", "not a kernel");
    let below = folder.path().join("folder").display().to_string();
    let empty = folder.path().join("empty");
    std::fs::create_dir(&empty).expect("it is made");
    let empty = empty.display().to_string();
    let missing = folder.path().join("missing.vyre").display().to_string();
    // Arguments, exit status, and words of what is said.
    let edges: &[(&[&str], i32, &[&str])] = &[
        (&[&right], 0, &["right.vyre  passed", "1 held", "1 passed, 0 failed, 0 skipped on cpu"]),
        (&["--backend", "reference", &right], 0, &["on reference"]),
        (
            &[&wrong],
            1,
            &[
                "failed",
                "wrong.vyre:1: `out`: expected [2, 4], found [2, 3]",
                "to run the first failure again: vyre test --backend cpu",
            ],
        ),
        (&[&both], 1, &["1 of 2", "expected [9], found [8]"]),
        (&[&no_trap], 1, &["expected trap 3 at [0, 0, 0], but it ran to the end"]),
        (&[&no_refusal], 1, &["expected E0704, but it ran"]),
        (&[&nothing], 1, &["has no directive"]),
        (&[&directive], 1, &["line 1: inputs and expectation are separated by ->"]),
        (&[&binary], 1, &["has no directive"]),
        (&[&racy], 3, &["skipped", "the result may depend on the order of invocations", "nothing was run on cpu: 1 skipped"]),
        (&[&unreadable], 3, &["cannot be read, so there is nothing to run"]),
        (&[&racy, &right], 0, &["1 passed, 0 failed, 1 skipped"]),
        (&[&right, &wrong], 1, &["1 passed, 1 failed"]),
        (&[&below], 0, &["one.vyre", "two.vyre", "2 passed"]),
        (&[&empty], 2, &["there is no .vyre file below"]),
        (&[&missing], 2, &["cannot read"]),
        (&[&missing, &right], 2, &["cannot read", "1 passed"]),
        (&[&wrong, &missing], 2, &["1 failed", "cannot read"]),
        (&["--backend", "gpu", &right], 2, &["use one of cpu, bulk, reference"]),
        (&["--backend"], 2, &["--backend"]),
        (&[&right, "--junit", &right], 2, &["is read by the command"]),
        (&[&right, "--junit", "/nowhere/at/all.xml"], 2, &["/nowhere/at/all.xml"]),
        (&["-"], 1, &["has no directive"]),
    ];
    for (args, status, words) in edges {
        let output = vyre(&[&["test"], *args].concat());
        let (out, err) = said(&output);
        assert_eq!(output.status.code(), Some(*status), "{args:?}\n{out}{err}");
        for word in *words {
            assert!(out.contains(word) || err.contains(word), "`{word}` after {args:?}\n{out}{err}");
        }
    }
    assert_eq!(std::fs::read_to_string(Path::new(&right)).expect("it is there"), RIGHT, "nothing was written over it");
}

#[test]
fn json_is_one_object_per_file_and_one_for_all() {
    let output = vyre(&["test", "--backend", "bulk", "--json", "checks/readme.vyre", "checks/run/atomics/add.vyre"]);
    assert!(output.status.success());
    let lines: Vec<serde_json::Value> =
        said(&output).0.lines().map(|line| serde_json::from_str(line).expect("it is JSON")).collect();
    assert_eq!(lines.len(), 3);
    assert_eq!((&lines[0]["file"], &lines[0]["outcome"]), (&"checks/readme.vyre".into(), &"passed".into()));
    assert!(lines[0]["held"].as_u64() > Some(5) && lines[1]["failures"] == serde_json::json!([]));
    assert_eq!((&lines[2]["passed"], &lines[2]["failed"]), (&2.into(), &0.into()));
    let unknown = vyre(&["test", "--backend", "gpu", "--json"]);
    let usage: serde_json::Value = serde_json::from_slice(&unknown.stdout).expect("it is JSON");
    assert!(usage["usage"].as_str().is_some_and(|text| text.contains("bulk")));
}

#[test]
fn junit_has_every_file_with_its_reason() {
    let folder = tempfile::tempdir().expect("there is room");
    let at = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(at("right.vyre"), RIGHT).expect("it is written");
    std::fs::write(at("wrong.vyre"), RIGHT.replace("[2, 3]", "[2, 4]")).expect("it is written");
    std::fs::write(at("text.vyre"), "// error: E0101 at 2:1\nprogram <&> {\n").expect("it is written");
    let files = [at("right.vyre"), at("wrong.vyre"), at("text.vyre")];
    let output = vyre(&["test", &files[0], &files[1], &files[2], "--junit", &at("out.xml")]);
    assert_eq!(output.status.code(), Some(1), "{:?}", said(&output));
    let xml = std::fs::read_to_string(at("out.xml")).expect("it was written");
    for words in ["tests=\"3\"", "failures=\"1\"", "skipped", "expected [2, 4], found [2, 3]", "wrong.vyre"] {
        assert!(xml.contains(words), "`{words}` in\n{xml}");
    }
}

#[test]
fn the_files_of_vyre_hold_on_its_backends() {
    for backend in ["cpu", "bulk"] {
        let output = vyre(&["test", "--backend", backend]);
        let (out, err) = said(&output);
        let last = out.lines().last().unwrap_or_default();
        let failed: String = out.lines().filter(|line| line.contains("failed")).collect();
        assert!(output.status.success(), "{backend}: {err}\n{last}\n{failed}");
        let passed: u32 = last.split(' ').next().and_then(|n| n.parse().ok()).expect("a number");
        assert!(passed > 700, "{backend}: {last}");
    }
}
