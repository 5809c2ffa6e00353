//! `vyre reduce` as users meet it: predicates that are shell commands, and that print, crash, hang and contradict themselves.

#![cfg(unix)]

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const LARGE: &str = "\
program large {
  workgroup 16
  const scale: u32 = 3
  buffer a: read u32 @0
  buffer b: read f32 @1
  buffer out: output u32 @4
  buffer fout: output f32 @7
  buffer tile: workgroup u32[16]

  let i = gid.x
  if i >= len(out) {
    return
  }
  let x = a[i] * scale + 7
  let y = b[i] / 3.0
  tile[lid.x] = x ^ 0xff
  for k in 0..4 {
    let t = y * f32(k) + 1.5
    fout[i] = t / 2.0
    if t > 10.0 {
      fout[i] = -t
    } else {
      out[i] = out[i] + (x >> k)
    }
  }
  out[i] = out[i] + x % 5
}
";

/// A folder that is gone when the test is, with `large.vyre` in it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("vyre-cli-reduce-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a temporary folder");
        std::fs::write(path.join("large.vyre"), LARGE).expect("a temporary file");
        Folder(path)
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_vyre"));
        command.args(args).current_dir(&self.0).stdin(Stdio::null());
        command
    }

    fn vyre(&self, args: &[&str]) -> (i32, String, String) {
        let output = self.command(args).output().expect("vyre starts");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
        (output.status.code().expect("it ends by itself"), text(output.stdout), text(output.stderr))
    }

    /// Runs `vyre reduce large.vyre` and gives its JSON.
    fn reduced(&self, args: &[&str]) -> Value {
        let all: Vec<&str> = ["reduce", "large.vyre", "--json"].iter().chain(args).copied().collect();
        let (code, out, err) = self.vyre(&all);
        assert_eq!(code, 0, "{out}{err}");
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const INPUTS: [&str; 4] = ["--in", "a=0..40", "--in", "b=0..40"];

#[test]
fn the_path_is_put_after_a_command_and_the_best_is_in_the_file() {
    let folder = Folder::new("grep");
    let (code, out, err) = folder.vyre(&["reduce", "large.vyre", "--predicate", "grep -q 'tile\\[.*='"]);
    assert_eq!(code, 0, "{err}");
    let file = folder.read("large.reduced.vyre");
    // The name that the predicate wants is kept, all others are clean.
    assert!(
        file.ends_with("\nprogram reduced {\n  workgroup 1\n  buffer tile: workgroup u32[1]\n\n  tile[0] = 0\n}\n"),
        "{file}"
    );
    assert!(out.contains("  tile[0] = 0\n") && out.contains("large.reduced.vyre: 4 nodes, 0 input words"), "{out}");
    assert_eq!(folder.vyre(&["check", "large.reduced.vyre"]).0, 0);
}

#[test]
fn inputs_and_launch_reach_the_predicate_and_shrink() {
    let folder = Folder::new("run");
    let predicate = "$VYRE run $VYRE_FILE $VYRE_ARGS | grep -q 128 && test -f \"$VYRE_INPUT_a\" && $VYRE check $VYRE_WIRE";
    let args = [&INPUTS[..], &["--predicate", predicate, "--out", "small.vyre"]].concat();
    let result = folder.reduced(&args);
    assert_eq!(result["stable"], true);
    assert_eq!(result["end"], "minimal");
    assert_eq!(result["from"]["invocations"], 48);
    assert!(result["size"]["nodes"].as_u64() <= Some(6) && result["size"]["input_words"].as_u64() <= Some(1), "{result}");
    // The file says what the reference makes of it, and the command at the end shows it.
    let file = folder.read("small.vyre");
    assert!(file.contains("\n// run") && file.contains("128"), "{file}");
    let again: Vec<&str> = result["run"].as_str().expect("a command").split(' ').skip(1).collect();
    let (code, out, err) = folder.vyre(&again);
    assert!(code == 0 && out.contains("128"), "{again:?}: {out}{err}");
}

#[test]
fn what_is_not_interesting_is_told_with_what_the_predicate_said() {
    let folder = Folder::new("no");
    let (code, _, err) = folder.vyre(&["reduce", "large.vyre", "--predicate", "echo it is $((3 + 4)); grep -q nothing"]);
    assert_eq!(code, 1);
    assert!(err.contains("says no to large.vyre itself: exit status: 1") && err.contains("| it is 7"), "{err}");
    assert!(!folder.0.join("large.reduced.vyre").exists());
    let (code, _, err) = folder.vyre(&["reduce", "large.vyre", "--predicate", "no-such-command"]);
    assert!(code == 1 && err.contains("no-such-command"), "{err}");
    let (code, out, _) = folder.vyre(&["reduce", "large.vyre", "--predicate", "false", "--json"]);
    let object: Value = serde_json::from_str(&out).expect("JSON");
    assert!(code == 1 && object["refused"].as_str().is_some_and(|text| text.contains("says no")), "{out}");
    let (code, _, err) = folder.vyre(&["reduce", "large.vyre", "--predicate", "sleep 60;:", "--timeout", "100ms"]);
    assert!(code == 1 && err.contains("no answer for 100ms"), "{err}");
}

#[test]
fn programs_and_flags_that_are_wrong_are_refused() {
    let folder = Folder::new("wrong");
    std::fs::write(folder.0.join("bad.vyre"), "program p {\n  workgroup 1\n  x = 1\n}\n").expect("a file");
    let (code, _, err) = folder.vyre(&["reduce", "bad.vyre", "--predicate", "true"]);
    assert!(code == 1 && err.contains("error[E02"), "{err}");
    let (code, _, err) = folder.vyre(&["reduce", "large.vyre", "--predicate", "true", "--in", "a=1"]);
    assert!(code == 1 && err.contains("E0701"), "{err}");
    for args in [
        &["reduce", "large.vyre"][..],
        &["reduce", "none.vyre", "--predicate", "true"],
        &["reduce", "large.vyre", "--predicate", "true", "--timeout", "soon"],
        &["reduce", "large.vyre", "--predicate", "true", "--out", "no/such/folder/x.vyre"],
    ] {
        assert_eq!(folder.vyre(args).0, 2, "{args:?}");
    }
    let racy = "program p {\n  workgroup 4\n  buffer out: output u32[1] @0\n  out[0] = gid.x\n}\n";
    std::fs::write(folder.0.join("racy.vyre"), racy).expect("a file");
    let (code, _, err) = folder.vyre(&["reduce", "racy.vyre", "--grid", "1", "--predicate", "true", "--race-free"]);
    assert!(code == 1 && err.contains("depends on the schedule"), "{err}");
}

#[test]
fn programs_come_in_wire_form_and_through_standard_input() {
    let folder = Folder::new("wire");
    assert_eq!(folder.vyre(&["emit", "large.vyre", "--to", "wire", "--out", "large.vyreb"]).0, 0);
    let (code, _, err) = folder.vyre(&["reduce", "large.vyreb", "--predicate", "grep -q barrier || grep -q return"]);
    assert_eq!(code, 0, "{err}");
    assert!(folder.read("large.reduced.vyre").contains("\n  return\n"));
    let mut child = folder.command(&["reduce", "-", "--predicate", "grep -q return"]);
    let output = child.stdin(std::fs::File::open(folder.0.join("large.vyre")).expect("the file")).output().expect("it runs");
    assert!(output.status.success());
    assert!(folder.read("reduced.vyre").contains("\n  return\n"));
}

/// Whether a process is there and not a zombie.
fn is_alive(pid: &str) -> bool {
    let status = std::fs::read_to_string(Path::new("/proc").join(pid).join("stat"));
    status.is_ok_and(|status| !status.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z')))
}

#[test]
fn a_predicate_that_hangs_is_ended_with_what_it_started() {
    let folder = Folder::new("hang");
    // Hangs in a child of a child, unless there is a division.
    let predicate = "grep -q / $VYRE_FILE || { (sleep 600 & echo $! >> pids; wait); }";
    let start = Instant::now();
    let result = folder.reduced(&["--predicate", predicate, "--timeout", "60ms", "--attempts", "40"]);
    assert!(start.elapsed() < Duration::from_secs(60));
    assert!(result["hung"].as_u64() > Some(0), "{result}");
    assert!(result["program"].as_str().is_some_and(|text| text.contains('/')), "{result}");
    assert!(result["size"]["nodes"].as_u64() < result["from"]["nodes"].as_u64(), "{result}");
    let pids = folder.read("pids");
    assert!(pids.lines().count() > 0);
    if Path::new("/proc/self/stat").exists() {
        // A signal takes a moment.
        let gone = || !pids.lines().any(is_alive);
        let deadline = Instant::now() + Duration::from_secs(5);
        while !gone() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(gone(), "still there: {pids}");
    }
}

#[test]
fn a_predicate_that_crashes_and_prints_counts_as_no() {
    let folder = Folder::new("crash");
    let predicate = "yes | head -c 200000; grep -q / $VYRE_FILE || kill -SEGV $$";
    let result = folder.reduced(&["--predicate", predicate]);
    assert!(result["failures"].as_u64() > Some(0) && result["hung"] == 0, "{result}");
    assert_eq!(result["size"]["nodes"], 5, "{result}");
}

#[test]
fn a_predicate_that_contradicts_itself_is_told_and_the_best_is_kept() {
    let folder = Folder::new("flaky");
    // Says yes to each text once.
    let predicate = "f=seen$(cksum < $VYRE_FILE | tr -d ' '); test ! -e $f && touch $f";
    let (code, out, err) = folder.vyre(&["reduce", "large.vyre", "--predicate", predicate]);
    assert_eq!(code, 1, "{out}{err}");
    assert!(err.contains("said yes to this program and, asked again, did not"), "{err}");
    assert_eq!(folder.vyre(&["check", "large.reduced.vyre"]).0, 0);
    assert!(folder.read("large.reduced.vyre").len() < LARGE.len());
}

#[test]
fn attempts_and_time_are_limits() {
    let folder = Folder::new("limits");
    let predicate = "echo >> asked; grep -q '>>' $VYRE_FILE";
    let result = folder.reduced(&["--predicate", predicate, "--attempts", "9"]);
    assert_eq!((&result["end"], &result["attempts"]), (&"out of attempts".into(), &9.into()));
    assert_eq!(folder.read("asked").lines().count(), 9);
    let result = folder.reduced(&["--predicate", "sleep 0.05; grep -q '>>' $VYRE_FILE", "--time", "0.3s"]);
    assert_eq!(result["end"], "out of time");
    assert!(folder.read("large.reduced.vyre").contains(">>"));
}

#[test]
fn killing_it_in_the_middle_loses_nothing() {
    let folder = Folder::new("kill");
    let predicate = "sleep 0.02; grep -q / $VYRE_FILE";
    let mut child = folder
        .command(&[&["reduce", "large.vyre", "--predicate", predicate][..], &INPUTS].concat())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("vyre starts");
    let out = folder.0.join("large.reduced.vyre");
    let deadline = Instant::now() + Duration::from_secs(60);
    // Until it has found something, and a little longer.
    while !out.exists() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(150));
    child.kill().expect("it can be ended");
    let ended = child.wait().expect("it ends");
    assert!(!ended.success(), "it ended by itself, before it was killed");
    let best = folder.read("large.reduced.vyre");
    assert!(best.find("program").is_some_and(|at| best.len() - at < LARGE.len()), "{best}");
    assert!(best.contains('/'));
    let (code, _, err) = folder.vyre(&["check", "large.reduced.vyre"]);
    assert_eq!(code, 0, "{err}\n{best}");
    // And it goes on from there.
    let (code, _, err) = folder.vyre(&["reduce", "large.reduced.vyre", "--predicate", "grep -q ' / '", "--out", "again.vyre"]);
    assert_eq!(code, 0, "{err}");
    assert!(folder.read("again.vyre").contains(" / "));
}

/// A signal that asks it to end ends the predicate, with all that it has started, and takes the temporary folder away; the best
/// program so far stays.
#[test]
fn a_signal_ends_the_predicate_and_leaves_nothing_but_the_result() {
    use std::os::unix::process::ExitStatusExt;
    for (name, number) in [("INT", 2), ("TERM", 15), ("HUP", 1)] {
        let folder = Folder::new(&format!("signal-{name}"));
        let temporary = folder.0.join("temporary");
        std::fs::create_dir(&temporary).expect("a folder");
        // Says yes a few times, and then takes very long, in a child of a child.
        let predicate =
            "test -e $VYRE_FILE && echo >> asked; test $(wc -l < asked) -lt 6 || { (sleep 600 & echo $! >> pids; wait); }";
        let mut child = folder
            .command(&["reduce", "large.vyre", "--predicate", predicate, "--timeout", "10m"])
            .env("TMPDIR", &temporary)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("vyre starts");
        let deadline = Instant::now() + Duration::from_secs(60);
        while std::fs::read_to_string(folder.0.join("pids")).map_or(0, |pids| pids.lines().count()) == 0 {
            assert!(Instant::now() < deadline, "the predicate is not asked");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(std::fs::read_dir(&temporary).expect("the folder").count(), 1);
        let start = Instant::now();
        let sent = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()));
        while child.try_wait().expect("it can be waited for").is_none() {
            if start.elapsed() > Duration::from_secs(20) {
                child.kill().expect("it can be ended");
                panic!("{name}: it goes on");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let output = child.wait_with_output().expect("it has ended");
        // A shell that called it sees the signal, and stops too.
        assert_eq!(output.status.signal(), Some(number), "{name}: {}", output.status);
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("interrupted after ") && said.contains("large.reduced.vyre"), "{name}: {said}");
        assert_eq!(std::fs::read_dir(&temporary).expect("the folder").count(), 0, "{name}: the temporary folder is left");
        let pid = folder.read("pids");
        let deadline = Instant::now() + Duration::from_secs(5);
        while is_alive(pid.trim()) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(!is_alive(pid.trim()), "{name}: the predicate goes on");
        let names = std::fs::read_dir(&folder.0).expect("the folder").map(|file| file.expect("a file").file_name());
        let names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
        assert!(!names.iter().any(|name| name.ends_with(".tmp")), "{name}: {names:?}");
        assert_eq!(folder.vyre(&["check", "large.reduced.vyre"]).0, 0, "{name}");
    }
}
