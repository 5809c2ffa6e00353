//! Static shards and `vyre conform merge`; and the files in deploy/, of which everything is run here that can be run without Slurm,
//! Kubernetes and GitHub.

use crate::Place;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use vyre_test_postgres::Server;

const PART: [&str; 3] = ["ops.int.add", "programs.atomics", "law.ops.int.add"];

fn shard(place: &Place, shard: &str, state: &str, more: &[&str]) -> i32 {
    let args: Vec<&str> = ["conform"]
        .into_iter()
        .chain(PART)
        .chain(["--backend", "bulk", "--in-process", "--shard", shard, "--state", state])
        .chain(more.iter().copied())
        .collect();
    place.vyre(&args).0
}

pub fn shards(server: &mut Server) {
    let place = Place::new(server);
    assert_eq!(shard(&place, "0/1", "alone", &[]), 0);
    for n in 0..3 {
        assert_eq!(shard(&place, &format!("{n}/3"), &format!("s{n}"), &[]), 0);
    }
    let (code, out, err) = place.vyre(&["conform", "merge", "whole", "s1", "s0", "s2/run.redb"]);
    assert_eq!(code, 0, "{out}{err}");
    // The same run, identity included, with controls where each shard had them; it can be signed.
    let (code, out, err) = place.vyre(&["diff", "alone", "whole", "--json"]);
    assert_eq!(code, 0, "{out}{err}");
    let difference: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(difference["difference"]["runs"], Value::Array(Vec::new()), "{difference}");
    assert_eq!(place.vyre(&["report", "whole"]).0, 0);
    assert_eq!(place.vyre(&["cert", "keygen", "key"]).0, 0);
    let (code, out, err) = place.vyre(&["cert", "sign", "whole", "--key", "key.key", "--out", "cert.json"]);
    assert_eq!(code, 0, "{out}{err}");
    assert_eq!(place.vyre(&["cert", "verify", "cert.json", "--key", "key.pub"]).0, 0);
    let (code, out, err) = place.vyre(&["cert", "audit", "cert.json", "whole", "--key", "key.pub", "-k", "2"]);
    assert_eq!(code, 0, "{out}{err}");
    assert_eq!(shard(&place, "2/3", "other", &["--seed", "9"]), 0);
    let rows: [(&[&str], &str); 6] = [
        (&["x", "s0", "s1"], "shard 2 of 3 is missing"),
        (&["x", "s0", "s1", "s2", "s2"], "shard 2 of 3 is given 2 times"),
        (&["x", "s0", "s1", "other"], "settings is"),
        (&["x", "s0", "s1", "alone"], "is one of 1, and others are of 3"),
        (&["x", "s0", "s1", "missing"], "there is no run"),
        (&["x"], "SHARD"),
    ];
    for (args, says) in rows {
        let all: Vec<&str> = ["conform", "merge"].into_iter().chain(args.iter().copied()).collect();
        let (code, _, err) = place.vyre(&all);
        assert!(code == 2 && err.contains(says), "{args:?}: {code} {err}");
        assert!(!place.path().join("x").exists(), "nothing is written");
    }
}

fn deploy(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(name)
}

/// A file of YAML, read by Python.
fn yaml(name: &str) -> Value {
    let read = "import json, sys, yaml; print(json.dumps(yaml.load(open(sys.argv[1]), Loader=yaml.BaseLoader)))";
    let outputs =
        ["python3", "/usr/bin/python3"].map(|python| Command::new(python).args(["-c", read]).arg(deploy(name)).output());
    let output = outputs.into_iter().flatten().find(|output| output.status.success());
    let output = output.expect("python3-yaml is not installed, and files of YAML are under test: apt-get install python3-yaml");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

pub fn files(server: &mut Server) {
    let place = Place::new(server);
    let create = |name: &str| {
        place.json(&["campaign", "create", name, "ops.int.add:u32:wg=64:boundary", "--device", "bulk", "--json"]);
    };
    let is_done = |name: &str| place.json(&["campaign", "status", name, "--json"])["is_complete"] == Value::Bool(true);
    let bin = Path::new(env!("CARGO_BIN_EXE_vyre")).parent().expect("a folder").display().to_string();
    let path = format!("{bin}:{}", std::env::var("PATH").unwrap_or_default());

    // Slurm: the script is the task of an array.
    create("array");
    let script = deploy("slurm.sbatch");
    let mut task = Command::new("bash");
    task.arg(&script).arg("array").env("PATH", &path).env("VYRE_DB", &place.url).env("SLURM_CPUS_PER_TASK", "2");
    let output = task.output().expect("bash");
    assert!(output.status.success() && is_done("array"), "{}", String::from_utf8_lossy(&output.stderr));
    let output = Command::new("bash").arg(&script).arg("array").env_remove("VYRE_DB").output().expect("bash");
    assert!(String::from_utf8_lossy(&output.stderr).contains("the database, postgres://"));

    // Kubernetes: the container of the pod runs `vyre` with these words.
    create("nightly");
    let job = yaml("kubernetes.yaml");
    assert_eq!((&job["kind"], &job["spec"]["completionMode"]), (&Value::from("Job"), &Value::from("Indexed")));
    let container = &job["spec"]["template"]["spec"]["containers"][0];
    let words: Vec<&str> = container["args"].as_array().expect("words").iter().filter_map(Value::as_str).collect();
    assert_eq!(container["env"][0]["name"], "VYRE_DB");
    assert_eq!(place.vyre(&words).0, 0);
    assert!(is_done("nightly"));

    // systemd: what it says of the unit, and the command in it.
    let unit = std::fs::read_to_string(deploy("vyre-worker@.service")).expect("it is there");
    let start = unit.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/local/bin/vyre ")).expect("a command");
    create("unit");
    let start = start.replace("%i", "unit").replace("%S", &place.path().display().to_string());
    assert_eq!(place.vyre(&start.split(' ').collect::<Vec<_>>()).0, 0);
    assert!(is_done("unit"));
    let here = place.path().join("vyre-worker@.service");
    std::fs::write(&here, unit.replace("/usr/local/bin/vyre", env!("CARGO_BIN_EXE_vyre"))).expect("it is written");
    if let Ok(output) = Command::new("systemd-analyze").arg("verify").arg(place.path().join("vyre-worker@x.service")).output() {
        let said = String::from_utf8_lossy(&output.stderr).to_string();
        assert!(!said.contains("vyre-worker@"), "{said}");
    }

    // GitHub: the commands of the steps, shard by shard, and then of the whole.
    let workflow = yaml("github-actions.yml");
    let step = |job: &str, name: &str| {
        let steps = workflow["jobs"][job]["steps"].as_array().expect("steps");
        let step = steps.iter().find(|step| step["name"] == name).unwrap_or_else(|| panic!("no step {name}"));
        step["run"].as_str().expect("a command").to_string()
    };
    let run = |text: &str| {
        let text = text.replace("vyre conform --shard", "vyre conform ops.int.add:u32 --backend bulk --in-process --shard");
        let mut shell = Command::new("bash");
        shell.args(["-e", "-o", "pipefail", "-c", &text]).current_dir(place.path()).env("PATH", &path);
        let output = shell.env("GITHUB_STEP_SUMMARY", place.path().join("summary.md")).output().expect("bash");
        assert!(output.status.success(), "{text}: {}", String::from_utf8_lossy(&output.stderr));
    };
    for shard in workflow["jobs"]["shard"]["strategy"]["matrix"]["shard"].as_array().expect("shards") {
        run(&step("shard", "conform").replace("${{ matrix.shard }}", shard.as_str().expect("a number")));
    }
    run(&step("whole", "merge"));
    run(&step("whole", "report"));
    assert!(std::fs::read_to_string(place.path().join("summary.md")).expect("it was written").contains("ops.int.add"));
}
