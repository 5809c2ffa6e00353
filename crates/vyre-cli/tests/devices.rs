//! `vyre devices` and the flags of `vyre run` that are about backends, as real processes.

use std::process::{Command, Output};

fn vyre(args: &[&str]) -> Output {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    Command::new(env!("CARGO_BIN_EXE_vyre")).args(args).current_dir(root).output().expect("the command starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("it is UTF-8")
}

const XOR: [&str; 6] = ["run", "examples/xor.vyre", "--in", "a=1,2,3", "--in", "b=7,7,7"];

#[test]
fn devices_lists_what_can_run_programs() {
    let shown = vyre(&["devices"]);
    assert!(shown.status.success());
    let shown = text(&shown.stdout);
    let lines: Vec<&str> = shown.lines().collect();
    let [head, cpu, bulk, reference] = lines[..] else { panic!("a head and three rows in\n{shown}") };
    for (row, id, device) in [(cpu, "cpu", std::env::consts::ARCH), (bulk, "bulk", "bulk evaluator 0")] {
        for (heading, cell) in [("id", id), ("device", device), ("workgroup", "1024 of 1024"), ("capabilities", "subgroups, f16")]
        {
            let column = head.find(heading).expect("there is such a column");
            assert!(row[column..].starts_with(cell), "{cell} below {heading} in\n{shown}");
        }
    }
    assert!(reference.starts_with("reference ") && reference.ends_with("f64, grid barriers"), "{shown}");
    let listed: serde_json::Value = serde_json::from_slice(&vyre(&["devices", "--json"]).stdout).expect("it is JSON");
    assert_eq!(listed["backends"][0]["id"], "cpu");
    assert_eq!(listed["backends"][0]["capabilities"]["f64"], true);
}

#[test]
fn every_backend_gives_the_same_bytes() {
    for backend in ["reference", "bulk", "cpu", "auto"] {
        let ran = vyre(&[&XOR[..], &["--backend", backend]].concat());
        assert_eq!(text(&ran.stdout), "out: u32[3] = 6 5 4\n", "{}", text(&ran.stderr));
    }
    let unknown = vyre(&[&XOR[..], &["--backend", "gpu"]].concat());
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown.stderr).contains("use one of cpu, bulk, reference"));
    let timed: serde_json::Value =
        serde_json::from_slice(&vyre(&[&XOR[..], &["--backend", "bulk", "--timed", "--json"]].concat()).stdout)
            .expect("it is JSON");
    assert!(timed["wall_ns"].as_u64().is_some_and(|time| time > 0));
    let explained = vyre(&[&XOR[..], &["--backend", "auto", "--explain"]].concat());
    assert_eq!(text(&explained.stderr), "cpu: fits\n");
    let fuel = vyre(&[&XOR[..], &["--backend", "bulk", "--fuel", "9"]].concat());
    assert_eq!(fuel.status.code(), Some(2));
}

#[test]
fn a_manifest_runs_the_same_pipeline_again() {
    let path = std::env::temp_dir().join(format!("vyre-manifest-{}.json", std::process::id()));
    let file = path.to_str().expect("a plain path");
    let saved = vyre(&[&XOR[..], &["--backend", "bulk", "--save-manifest", file]].concat());
    assert!(saved.status.success(), "{}", text(&saved.stderr));
    let again = vyre(&["run", "--manifest", file, "--in", "a=1,2,3", "--in", "b=7,7,7"]);
    assert_eq!(text(&again.stdout), "out: u32[3] = 6 5 4\n", "{}", text(&again.stderr));
    let document = std::fs::read_to_string(&path).expect("it was written");
    std::fs::write(&path, document.replace("a[i] ^ b[i]", "a[i] | b[i]")).expect("it can be written");
    let changed = vyre(&["run", "--manifest", file, "--in", "a=1,2,3", "--in", "b=7,7,7"]);
    assert_eq!(changed.status.code(), Some(1));
    assert!(text(&changed.stderr).contains("does not have the digest"), "{}", text(&changed.stderr));
    std::fs::remove_file(&path).expect("it is there");
}

#[test]
fn backends_are_fuzzed_against_the_reference() {
    let out = std::env::temp_dir().join(format!("vyre-devices-{}", std::process::id()));
    let out = out.to_str().expect("a plain path");
    let flags = ["--seed", "3", "--programs", "200", "--inputs", "2", "--out", out];
    for backend in ["cpu", "bulk", "reference"] {
        let ran = vyre(&[&["fuzz", "--backend", backend, "--against", "reference"][..], &flags].concat());
        assert!(ran.status.success(), "{}{}", text(&ran.stdout), text(&ran.stderr));
    }
    let otherwise = vyre(&[&["fuzz", "--subject", "metamorphic:bulk"][..], &flags].concat());
    assert!(otherwise.status.success(), "{}{}", text(&otherwise.stdout), text(&otherwise.stderr));
    let unknown = vyre(&["fuzz", "--backend", "gpu"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown.stderr).contains("the backends are cpu, bulk, reference"), "{}", text(&unknown.stderr));
}
