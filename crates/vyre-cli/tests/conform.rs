//! `vyre conform` as users meet it: real processes, real files, signals, and backends that go wrong.

use serde_json::Value;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vyre"));
    command.arg("conform").args(args).current_dir(folder);
    command
}

/// Exit status, standard output and standard error.
fn conform(folder: &Path, args: &[&str]) -> (i32, String, String) {
    let output = command(folder, args).output().expect("vyre starts");
    let text = |bytes| String::from_utf8(bytes).expect("it writes UTF-8");
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

/// The last line of JSON: the whole.
fn whole(out: &str) -> Value {
    serde_json::from_str(out.lines().last().expect("a line")).expect("JSON")
}

#[test]
fn a_right_backend_holds_and_says_what_was_done() {
    let folder = folder();
    let (code, out, err) = conform(folder.path(), &["ops.int.add:u32", "programs.atomics", "--backend", "bulk"]);
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains("0 failed") && out.contains("planted faults noticed") && out.contains("holds: "), "{out}");
    assert!(folder.path().join(".vyre/conform/bulk-smoke/run.redb").exists());
    let (code, out, _) = conform(folder.path(), &["ops.int.add:u32", "programs.atomics", "--in-process", "--json"]);
    let told = whole(&out);
    assert_eq!((code, &told["verdict"], told["summary"]["failed"].as_u64()), (0, &Value::from("holds"), Some(0)));
    assert!(
        told["run"]["controls"]["ran"].as_u64() > Some(0) && told["not_confirmed"].as_array().is_some_and(Vec::is_empty),
        "{told}"
    );
}

#[test]
fn mistakes_are_told_and_nothing_is_run() {
    let folder = folder();
    std::fs::write(folder.path().join("bad.vyre"), "program p {\n  out[0] = 1\n}\n").expect("it is written");
    std::fs::write(folder.path().join("known.json"), "[{}]").expect("it is written");
    let rows: [(&[&str], i32, &str); 12] = [
        (&["ops.int.ad"], 2, "`ops.int.ad` matches nothing in the suite"),
        (&["ops::u32"], 2, "has an empty word"),
        (&["--backend", "bluk"], 2, "bluk"),
        (&["--backend", "exec:/does/not/exist"], 2, "/does/not/exist"),
        (&["--tier", "enormous"], 2, "smoke, standard, deep"),
        (&["--shard", "5/4"], 2, "there is no shard 5 of 4"),
        (&["--shard", "x"], 2, "0/4"),
        (&["bad.vyre"], 1, "E0204"),
        (&["missing.vyre"], 2, "missing.vyre"),
        (&["--known", "missing.json"], 2, "missing.json"),
        (&["--known", "known.json"], 1, "missing field `query`"),
        (&["--known", "known.json", "--list"], 2, "--list"),
    ];
    for (args, code, says) in rows {
        let (found, out, err) = conform(folder.path(), args);
        assert_eq!(found, code, "{args:?}: {out}{err}");
        assert!(out.contains(says) || err.contains(says), "{args:?} does not say `{says}`:\n{out}{err}");
        assert!(!err.contains("panicked"), "{args:?}: {err}");
    }
    assert!(!folder.path().join(".vyre").exists());
}

#[test]
fn the_list_has_names_that_queries_take() {
    let folder = folder();
    let (code, out, _) = conform(folder.path(), &["--list", "ops.int.add:u32:wg=64"]);
    assert_eq!(code, 0);
    let names: Vec<&str> = out.lines().collect();
    assert!(names.len() > 1 && names.iter().all(|name| name.starts_with("ops.int.add:u32:")), "{out}");
    let (section, _) = names[0].rsplit_once(':').expect("a section and a number");
    let (_, again, _) = conform(folder.path(), &["--list", section]);
    assert!(again.lines().all(|name| name.starts_with(section)), "{again}");
}

#[test]
fn a_kernel_of_the_users_is_proven_on_a_device() {
    let folder = folder();
    let kernel = "program third {\n  workgroup 64\n  buffer a: read f32 @0\n  buffer out: output f32 @1\n\n  if gid.x < len(out) {\n    out[gid.x] = exp(a[gid.x]) / 3.0\n  }\n}\n";
    std::fs::write(folder.path().join("third.vyre"), kernel).expect("it is written");
    let (code, out, err) = conform(folder.path(), &["third.vyre", "--backend", "bulk", "--json"]);
    assert_eq!(code, 0, "{out}{err}");
    assert_eq!(whole(&out)["summary"]["tested"].as_u64(), Some(512));
    let mutant = ["third.vyre", "--backend", "mutant:operator/div.f32-is-min", "--json"];
    let (code, out, err) = conform(folder.path(), &mutant);
    assert_eq!(code, 1, "{out}{err}");
}

#[test]
fn a_worker_of_somebody_elses_is_judged_like_any_other() {
    let folder = folder();
    let worker = concat!("exec:python3 ", env!("CARGO_MANIFEST_DIR"), "/../../examples/worker.py");
    let (code, out, err) = conform(folder.path(), &["ops.int.add:u32:wg=64:boundary", "--backend", worker, "--json"]);
    let told = whole(&out);
    assert_eq!(code, 0, "{out}{err}");
    assert!(told["summary"]["tested"].as_u64() > Some(0), "{told}");
    let (code, _, err) = conform(folder.path(), &["ops.float.exp:f32:wg=64:boundary", "--backend", worker]);
    assert!(code == 3 && err.contains("cannot run any"), "{err}");
}

#[test]
fn failures_that_are_known_are_exceptions() {
    let folder = folder();
    let write = |query: &str, expires: &str| {
        let text = format!(r#"[{{"query":"{query}","backend":"mutant:*","reason":"planted","expires":"{expires}"}}]"#);
        std::fs::write(folder.path().join("known.json"), text).expect("it is written");
    };
    let mutant = ["ops.int.add:u32:wg=64", "--backend", "mutant:operator/add.u32-is-sub", "--known", "known.json"];
    let right = ["ops.int.add:u32:wg=64", "--backend", "bulk", "--known", "known.json"];
    let rows: [(&str, &str, &[&str], i32, &str); 5] = [
        ("ops.int.add", "2999-12-31", &mutant, 0, "known failure until 2999-12-31: planted"),
        ("ops.int.add:sampled", "2999-12-31", &mutant, 1, "does not hold"),
        ("ops.int.add", "2020-01-01", &mutant, 1, "was a known failure until 2020-01-01"),
        ("ops.int.add:wg=1", "2999-12-31", &mutant, 1, "does not hold"),
        // Entries for other backends are passed over.
        ("ops.int.add", "2999-12-31", &right, 0, "holds: "),
    ];
    for (query, expires, args, code, says) in rows {
        write(query, expires);
        let (found, out, err) = conform(folder.path(), args);
        assert_eq!(found, code, "{query} {expires} {args:?}: {out}{err}");
        assert!(out.contains(says), "{query} {args:?} does not say `{says}`:\n{out}{err}");
    }
    // What is known to fail and holds is a failure.
    std::fs::write(
        folder.path().join("known.json"),
        r#"[{"query":"ops.int.add","backend":"*","reason":"so","expires":"2999-12-31"}]"#,
    )
    .expect("it is written");
    let (code, out, _) = conform(folder.path(), &[&right[..], &["--json"]].concat());
    let told = whole(&out);
    assert_eq!((code, &told["verdict"]), (1, &Value::from("fails")), "{out}");
    assert!(told["known_and_not_so"].as_array().is_some_and(|all| !all.is_empty()), "{told}");
}

/// Crashes and hangs are found one by one, and nothing else is affected: one case in 1,000 and one in 10,000; with `VYRE_LONG=1` ten
/// times as many.
#[test]
fn cases_that_crash_or_hang_are_found_one_by_one() {
    let folder = folder();
    let section = "ops.int.not:u32:wg=64:sampled";
    let long = std::env::var("VYRE_LONG").is_ok_and(|value| value == "1");
    let (backend, one_in) = if long { ("test:often", [100, 1_000]) } else { ("test:rarely", [1_000, 10_000]) };
    let flags = [section, "--backend", backend, "--test-subjects", "--deadline", "0.3", "--json"];
    let (code, out, err) = conform(folder.path(), &flags);
    assert_eq!(code, 1, "{out}{err}");
    let told = whole(&out);
    let failures: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let failures: Vec<&Value> = failures.iter().map(|it: &Value| &it["failure"]).filter(|it| !it.is_null()).collect();
    assert_eq!(told["summary"]["failed"].as_u64(), Some(failures.len() as u64));
    let mut found = [0, 0];
    for failure in &failures {
        let hex = failure["input"].as_str().expect("hex");
        let bytes: Vec<u8> = (0..4).map(|n| u8::from_str_radix(&hex[2 * n..2 * n + 2], 16).expect("hex")).collect();
        let word = u32::from_le_bytes(bytes.try_into().expect("a word"));
        let to_blame = [word % one_in[0] == 7, word % one_in[1] == 13];
        assert!(to_blame.contains(&true), "{word} is not to blame: {failure}");
        (0..2).for_each(|kind| found[kind] += u32::from(to_blame[kind]));
    }
    assert!(found[0] > 0 && (found[1] > 0 || !long), "{found:?}\n{out}");
}

/// Runs that are killed, again and again, and go on each time: `VYRE_KILLS` says how often.
#[test]
fn a_run_that_is_killed_again_and_again_ends_with_the_same_root() {
    let kills: u32 = std::env::var("VYRE_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(6);
    let selection = ["ops.int.add", "ops.int.mul", "programs", "--seed", "7", "--json"];
    let undisturbed = folder();
    let (code, out, err) = conform(undisturbed.path(), &selection);
    assert_eq!(code, 0, "{err}");
    let undisturbed = whole(&out);
    let began = std::time::Instant::now();
    let folder = folder();
    let mut killed = 0;
    let mut wait = 150;
    let last = loop {
        let mut run = start(folder.path(), &selection);
        // Pseudo-random moments, later and later, so that the run gets somewhere whatever the machine does.
        wait = (wait * 7919 + 104_729) % 2_000;
        std::thread::sleep(Duration::from_millis(50 + wait));
        if killed < kills && run.try_wait().expect("it can be waited for").is_none() {
            run.kill().expect("it is killed");
            run.wait().expect("it has ended");
            killed += 1;
            continue;
        }
        let output = run.wait_with_output().expect("it ends");
        if killed < kills && began.elapsed() < Duration::from_secs(600) {
            // It was through before its turn: another one, from the beginning.
            assert_eq!(whole(&String::from_utf8_lossy(&output.stdout))["root"], undisturbed["root"]);
            continue;
        }
        break output;
    };
    let told = whole(&String::from_utf8_lossy(&last.stdout));
    assert_eq!((&told["root"], &told["summary"]), (&undisturbed["root"], &undisturbed["summary"]), "after {killed} kills");
}

fn start(folder: &Path, args: &[&str]) -> Child {
    command(folder, args).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("vyre starts")
}

#[cfg(unix)]
#[test]
fn a_signal_commits_what_is_done_and_the_same_command_goes_on() {
    let folder = folder();
    let selection = ["ops.int", "--state", "state", "--json"];
    let run = start(folder.path(), &selection);
    // Not before it has begun, however slow the machine is.
    while !folder.path().join("state/run.redb").exists() {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(700));
    let pid = rustix::process::Pid::from_child(&run);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it is signalled");
    let output = run.wait_with_output().expect("it ends");
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.code() == Some(0) {
        // It was through before the signal came.
        return;
    }
    assert_eq!(output.status.code(), Some(3), "{out}");
    let (code, rest, err) = conform(folder.path(), &selection);
    assert_eq!(code, 0, "{rest}{err}");
    let undisturbed = self::folder();
    let (_, out, _) = conform(undisturbed.path(), &selection);
    assert_eq!(whole(&rest)["root"], whole(&out)["root"]);
}

/// Lines of a stream as they come.
fn lines(from: impl std::io::Read + Send + 'static) -> std::sync::mpsc::Receiver<String> {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let lines = std::io::BufRead::lines(std::io::BufReader::new(from));
        lines.map_while(Result::ok).try_for_each(|line| sender.send(line)).ok()
    });
    receiver
}

/// The next line that says this.
fn next_line(lines: &std::sync::mpsc::Receiver<String>, says: &str) -> String {
    let until = std::time::Instant::now() + Duration::from_secs(300);
    loop {
        let left = until.saturating_duration_since(std::time::Instant::now());
        let line = lines.recv_timeout(left).unwrap_or_else(|_| panic!("nothing says `{says}`"));
        if line.contains(says) {
            return line;
        }
    }
}

#[cfg(unix)]
fn interrupt(run: &Child) {
    let pid = rustix::process::Pid::from_child(run);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it is signalled");
}

/// A unit that hangs is named while it runs, and a signal ends it at once: nobody waits for its deadline of an hour.
#[cfg(unix)]
#[test]
fn a_run_that_hangs_says_where_and_a_signal_ends_it() {
    let folder = folder();
    let selection =
        ["ops.int.bitxor:u32:wg=64:boundary", "--backend", "test:hang", "--test-subjects", "--deadline", "3600s", "--jobs", "1"];
    let mut run = command(folder.path(), &[&selection[..], &["--state", "state"]].concat());
    let mut run = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("vyre starts");
    let err = lines(run.stderr.take().expect("it is piped"));
    let line = next_line(&err, "still running");
    assert!(line.contains("ops.int.bitxor:u32:") && line.contains(":wg=64:boundary:0 for "), "{line}");
    let began = std::time::Instant::now();
    interrupt(&run);
    let line = next_line(&err, "stopping");
    assert!(line.contains("1 unit is running; what is done is kept; again to stop now"), "{line}");
    assert_eq!(run.wait().expect("it ends").code(), Some(3));
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    // What is kept can be gone on with, by the same command.
    let again = conform(folder.path(), &["ops.int.bitxor:u32:wg=64:boundary", "--backend", "bulk", "--state", "state"]);
    assert!(again.0 == 2 && again.2.contains("has an interrupted run"), "{again:?}");
}

/// What runs in this process cannot be ended by itself: the second signal ends all of it, and the ledger is whole.
#[cfg(unix)]
#[test]
fn a_second_signal_ends_a_run_at_once() {
    let folder = folder();
    let selection = ["ops.int", "--backend", "test:hang", "--test-subjects", "--in-process", "--jobs", "1", "--state", "state"];
    let mut run = command(folder.path(), &selection);
    let mut run = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("vyre starts");
    let err = lines(run.stderr.take().expect("it is piped"));
    next_line(&err, "still running: ops.int.");
    interrupt(&run);
    next_line(&err, "stopping");
    interrupt(&run);
    assert_eq!(run.wait().expect("it ends").code(), Some(3));
    let (run, ..) = vyre_conform::ledger::Ledger::read(&folder.path().join("state")).expect("it can be read");
    vyre_conform::ledger::Store::for_each_unit(&run, &mut |_, _| ()).expect("it is whole");
}

/// What fails is told when it is found, a few lines for each op.
#[test]
fn failures_are_told_while_it_runs() {
    let folder = folder();
    let (code, _, err) = conform(folder.path(), &["ops.int.add:u32", "--backend", "mutant:operator/add.u32-is-sub"]);
    let told: Vec<&str> = err.lines().filter(|line| line.starts_with("wrong: ops.int.add:u32:")).collect();
    assert!(code == 1 && told.len() == 3 && told[2].contains("more of ops.int.add:u32"), "{err}");
}

#[test]
fn two_runs_on_one_folder_the_second_is_refused() {
    let folder = folder();
    let selection = ["ops.int", "--state", "state"];
    let mut first = start(folder.path(), &selection);
    std::thread::sleep(Duration::from_millis(700));
    let (code, out, err) = conform(folder.path(), &selection);
    if first.try_wait().expect("it can be waited for").is_none() {
        assert!(code == 2 && err.contains("another run uses the state folder `state`"), "{code} {out}{err}");
    }
    first.wait().expect("it ends");
}

#[cfg(unix)]
#[test]
fn a_full_disk_is_told() {
    let folder = folder();
    let script = format!("trap '' XFSZ; ulimit -f 40; exec {} conform ops.int --jobs 1", env!("CARGO_BIN_EXE_vyre"));
    let output = Command::new("sh").args(["-c", &script]).current_dir(folder.path()).output().expect("sh starts");
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(2) && err.contains("run.redb") && !err.contains("panicked"),
        "{:?} {err}",
        output.status
    );
}

/// Keys, a signature over a real run, and units of it run again.
#[test]
fn a_run_is_signed_verified_and_audited() {
    let folder = folder();
    let vyre = |args: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_vyre"));
        let output = command.args(args.split(' ')).current_dir(folder.path()).output().expect("vyre starts");
        let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        (output.status.code().unwrap_or(-1), said)
    };
    assert_eq!(conform(folder.path(), &["ops.int.add", "--backend", "bulk", "--state", "state", "--nonce", "4711"]).0, 0);
    assert_eq!(conform(folder.path(), &["ops.int.add", "--backend", "bulk", "--state", "seeded", "--seed", "4711"]).0, 0);
    for (args, code) in [
        ("report state --html page.html --junit j.xml --markdown m.md", 0),
        ("cert keygen mine", 0),
        ("cert sign state --key mine.key --out c.json", 0),
        ("cert verify c.json --key mine.pub", 0),
        ("cert verify c.json --key mine.pub --nonce 4711", 0),
        ("cert verify c.json --key mine.pub --nonce 4712", 1),
        ("cert audit c.json state --key mine.pub -k 6", 0),
        // The same cases, but nobody says that a verifier chose them.
        ("cert sign seeded --key mine.key --out s.json", 0),
        ("cert verify s.json --key mine.pub", 0),
        ("cert verify s.json --key mine.pub --nonce 4711", 1),
        ("diff state state", 0),
    ] {
        let (found, said) = vyre(args);
        assert_eq!(found, code, "{args}: {said}");
    }
    assert!(folder.path().join("page.html").exists());
}

/// Ops whose cases are whole dispatches or workgroups, with atomics in them, are reduced like programs that were generated.
#[test]
fn failing_atomics_are_reduced_to_small_programs() {
    let folder = folder();
    let sections = ["index.storage.atomic.add.lane:u32:wg=64:edges", "atomic.add.tickets:u32:wg=64:sampled", "--state", "state"];
    let backend = ["--backend", "mutant:atomic/add.u32-gives-new-value"];
    let (code, out, err) = conform(folder.path(), &[&sections[..], &backend].concat());
    assert_eq!(code, 1, "{out}{err}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_vyre"));
    let output = command.args(["report", "state", "--json"]).current_dir(folder.path()).output().expect("vyre starts");
    let lines = String::from_utf8(output.stdout).expect("it writes UTF-8");
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    for op in ["index.storage.atomic.add.lane:u32", "atomic.add.tickets:u32"] {
        let of_op = |line: &&Value| line["type"] == "failure" && line.to_string().contains(op);
        let failure = lines.iter().find(of_op).unwrap_or_else(|| panic!("no failure of {op}: {lines:?}"));
        let reduced = &failure["reduced"]["failure"];
        let (from, to) = (reduced["from_nodes"].as_u64(), reduced["nodes"].as_u64());
        assert!(to < from && to <= Some(16), "{op}: {failure}");
        let program = reduced["program"].as_str().expect("a program");
        assert!(program.contains("atomic.add"), "{program}");
    }
}

/// A planted fault, found by generated programs: made small, blamed on its op, and shown again by the command that the report has.
#[test]
fn a_program_that_fails_is_reduced_and_its_command_shows_it_again() {
    let folder = folder();
    let mutant =
        ["programs.ints", "--backend", "mutant:operator/add.u32-is-sub", "--state", "state", "--deadline", "5s", "--json"];
    let (code, out, err) = conform(folder.path(), &mutant);
    assert_eq!(code, 1, "{out}{err}");
    let vyre = |args: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_vyre"));
        let output = command.args(args.split(' ')).current_dir(folder.path()).output().expect("vyre starts");
        (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (code, lines) = vyre("report state --json --html page.html --markdown page.md");
    assert_eq!(code, 1, "{lines}");
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let failure = lines.iter().find(|line| line["type"] == "failure").expect("a failure");
    let reduced = &failure["reduced"]["failure"];
    let program = reduced["program"].as_str().expect("a program");
    assert!(reduced["nodes"].as_u64() <= Some(12) && program.contains(" + "), "{reduced}");
    assert!(failure["reduced"]["first_wrong_lane"].is_u64(), "{failure}");
    for (page, words) in [("page.html", "the smallest program that fails in the same way"), ("page.md", "reduced from")] {
        let text = std::fs::read_to_string(folder.path().join(page)).expect("it was written");
        assert!(text.contains(words), "{page} does not say `{words}`");
    }
    let again = reduced["again"].as_str().expect("a command").strip_prefix("vyre ").expect("a command of ours");
    let (code, said) = vyre(again);
    assert!(code == 1 && said.contains("still wrong"), "{code} {said}");
}
