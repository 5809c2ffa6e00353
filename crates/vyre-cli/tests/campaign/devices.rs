//! What devices have shown: the same as in a run on one machine, and side by side.

use crate::{Place, ended};
use serde_json::Value;
use std::time::{Duration, Instant};
use vyre_test_postgres::Server;

/// A part of the suite with ops, whole programs, a law and f64.
const PART: [&str; 4] = ["ops.int.add:u32", "law.ops.int.add:u32", "programs.atomics", "ops.float.add:f64"];

fn root(place: &Place, run: &str) -> Value {
    let (_, out, err) = place.vyre(&["report", run, "--json"]);
    let line = out.lines().next().unwrap_or_else(|| panic!("{err}"));
    serde_json::from_str::<Value>(line).expect("JSON")["root"].clone()
}

pub fn same_root(server: &mut Server) {
    let place = Place::new(server);
    let alone: Vec<&str> =
        ["conform"].into_iter().chain(PART).chain(["--backend", "bulk", "--in-process", "--state", "alone", "--json"]).collect();
    let told = place.json(&alone);
    let create: Vec<&str> =
        ["campaign", "create", "c"].into_iter().chain(PART).chain(["--device", "bulk", "--second", "30", "--json"]).collect();
    let made = place.json(&create);
    assert_eq!(made["units"], told["units"]);
    let work = ["campaign", "work", "c", "--jobs", "1", "--claim", "0.2", "--json"];
    // One in this process, one with the device in others.
    let in_process: Vec<&str> = work.into_iter().chain(["--in-process"]).collect();
    let workers = [place.start(&work), place.start(&in_process)];
    for worker in workers {
        let (code, out, err) = ended(worker);
        assert_eq!(code, 0, "{out}{err}");
    }
    let run = format!("{}#c/bulk", place.url);
    assert_eq!(root(&place, &run), told["root"], "the root of one machine");
    // What reads runs reads this one: the same units, the same identity but for nothing.
    let (code, out, err) = place.vyre(&["diff", "alone", &run, "--json"]);
    assert_eq!(code, 0, "{out}{err}");
    let difference: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(difference["difference"]["runs"], Value::Array(Vec::new()), "{difference}");
    let (code, out, err) = place.vyre(&["report", &run, "--html", "page.html", "--junit", "report.xml"]);
    assert_eq!(code, 0, "{out}{err}");
    assert_eq!(place.vyre(&["cert", "keygen", "key"]).0, 0);
    let (code, out, err) = place.vyre(&["cert", "sign", &run, "--key", "key.key", "--out", "cert.json"]);
    assert_eq!(code, 0, "{out}{err}");
    assert_eq!(place.vyre(&["cert", "verify", "cert.json", "--key", "key.pub"]).0, 0);
    let (code, out, err) = place.vyre(&["cert", "audit", "cert.json", &run, "--key", "key.pub", "-k", "3"]);
    assert_eq!(code, 0, "{out}{err}");
    // A unit that is changed after it was signed is not the run that was signed.
    server.sql(
        &place.database,
        "UPDATE vyre.answer SET records = set_byte(records, 0, get_byte(records, 0) # 1) WHERE lo = 0 AND kind = 0",
    );
    let (code, _, err) = place.vyre(&["report", &run]);
    assert!(code == 1 && err.contains("does not have the bytes that were written"), "{err}");
}

pub fn matrix(server: &mut Server) {
    let place = Place::new(server);
    let mutant = "mutant:operator/add.u32-is-sub";
    let wrong = format!("wrong:{mutant}");
    place.json(&[
        "campaign",
        "create",
        "m",
        "ops.int.add:u32:wg=64",
        "ops.int.sub:u32:wg=64",
        "--device",
        "bulk",
        "--device",
        "cpu",
        "--device",
        &wrong,
        "--json",
    ]);
    // Without a backend, those of this machine have their turn.
    let (code, out, err) = place.vyre(&["campaign", "work", "m", "--in-process"]);
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains("cpu: done") && out.contains("bulk: done"), "{out}");
    let (code, _, _) = place.vyre(&["campaign", "report", "m"]);
    assert_eq!(code, 3, "a device has not come");
    let (code, out, err) = place.vyre(&["campaign", "work", "m", "--backend", mutant, "--in-process", "--bundles", "kept"]);
    assert_eq!(code, 0, "{out}{err}");
    let (code, out, err) = place.vyre(&["campaign", "report", "m", "--html", "page.html", "--markdown", "page.md"]);
    assert_eq!(code, 1, "{out}{err}");
    let line = |op: &str| out.lines().find(|line| line.starts_with(op)).unwrap_or_else(|| panic!("{op}: {out}")).to_string();
    assert!(line("ops.int.add:u32").contains("FAIL") && !line("ops.int.sub:u32").contains("FAIL"), "{out}");
    assert!(out.contains("bulk and cpu gave the same bytes") && out.contains("wrong against bulk: "), "{out}");
    assert!(out.contains("bulk: holds; root ") && out.contains("wrong: fails; root "), "{out}");
    let read = |name: &str| std::fs::read_to_string(place.path().join(name)).expect("it was written");
    assert!(read("page.html").contains("<h2>Devices</h2>") && read("page.md").contains("| op | bulk | cpu | wrong |"));
    assert!(std::fs::read_dir(place.path().join("kept/regressions")).expect("bundles").count() > 0);
    // One device's failures, with the program and the bytes, as of any run.
    let (code, out, _) = place.vyre(&["report", &format!("{}#m/wrong", place.url), "--json"]);
    assert!(code == 1 && out.contains("\"type\":\"failure\""), "{out}");
    let (code, _, err) = place.vyre(&["report", &format!("{}#m", place.url)]);
    assert!(code == 2 && err.contains("which device?") && err.contains("bulk, cpu, wrong"), "{err}");
}

pub fn watch(server: &mut Server) {
    let place = Place::new(server);
    place.json(&["campaign", "create", "w", "ops.int.add:u32:wg=64", "--device", "bulk", "--json"]);
    let watcher = place.start(&["campaign", "report", "w", "--html", "live.html", "--watch", "--every", "1"]);
    let page = || std::fs::read_to_string(place.path().join("live.html")).unwrap_or_default();
    let began = Instant::now();
    while !page().contains("http-equiv=\"refresh\" content=\"1\"") {
        assert!(began.elapsed() < Duration::from_secs(60), "there is no page");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(page().contains("no worker has come yet"), "{}", page());
    // The server is away for longer than it takes to look twice.
    server.stop();
    std::thread::sleep(Duration::from_millis(2500));
    server.start_again();
    assert_eq!(place.vyre(&["campaign", "work", "w", "--in-process"]).0, 0);
    let (code, out, err) = ended(watcher);
    assert_eq!(code, 0, "{out}{err}");
    assert!(err.contains("the page stays as it is") && err.contains("is back"), "{err}");
    assert!(!page().contains("http-equiv") && page().contains("complete"), "{}", page());
    let (code, _, err) = place.vyre(&["campaign", "top", "w"]);
    assert!(code == 2 && err.contains("needs a terminal"), "{err}");
}

/// A device that ends the process it is in, at one number in a thousand. In the worker's own process that ends the worker: after three of
/// them the units go their own ways, and at last the cases do.
pub fn case_by_case(server: &mut Server) {
    let place = Place::new(server);
    let device = format!("fragile:{CRASHES}");
    place.json(&["campaign", "create", "q", QUERY, "--device", &device, "--lease", "0.5", "--second", "0", "--json"]);
    let work = ["campaign", "work", "q", "--backend", CRASHES, "--in-process", "--test-subjects", "--jobs", "1", "--claim", "5"];
    let mut lost = 0;
    loop {
        let (code, out, err) = place.vyre(&work);
        if code == 0 {
            break;
        }
        lost += 1;
        assert!(code == -1 && lost < 40, "it is ended by a signal: {code} {out}{err}");
        std::thread::sleep(Duration::from_millis(600));
    }
    assert!(lost >= 3, "{lost} workers were lost");
    let (_, out, err) = place.vyre(&["report", &format!("{}#q/fragile", place.url), "--json"]);
    let failures: Vec<Value> = out
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"))
        .filter(|line| line["type"] == "failure" && line.to_string().contains("no worker survives this case"))
        .collect();
    assert!(!failures.is_empty(), "{out}{err}");
    let status = place.json(&["campaign", "status", "q", "--json"]);
    assert_eq!(status["is_complete"], true, "{status}");
}

/// The device of that, and the part of the suite that it is asked for: 7 is among its numbers, and nothing that hangs.
const CRASHES: &str = "test:rarely";
const QUERY: &str = "ops.int.not:u32:wg=64:boundary";
