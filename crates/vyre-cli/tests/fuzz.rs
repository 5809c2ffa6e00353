//! `vyre fuzz` as users meet it, on subjects that go wrong on purpose: real processes, real files.

use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

/// A folder to run in, gone when the test is.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("vyre-cli-fuzz-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a temporary folder");
        Folder(path)
    }

    /// Exit status, standard output and standard error.
    fn vyre(&self, args: &str) -> (i32, String, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_vyre"));
        let output = command.args(args.split(' ')).current_dir(&self.0).output().expect("vyre starts");
        let text = |bytes| String::from_utf8(bytes).expect("it writes UTF-8");
        (output.status.code().expect("it ended by itself"), text(output.stdout), text(output.stderr))
    }

    fn files(&self, folder: &str) -> Vec<String> {
        let files = std::fs::read_dir(self.0.join(folder)).into_iter().flatten().flatten();
        let mut names: Vec<String> = files.map(|file| file.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn again(out: &str) -> &str {
    out.lines().find_map(|line| line.strip_prefix("again: vyre ")).expect("a command that shows it again")
}

#[test]
fn a_mismatch_is_found_reduced_kept_and_replayed() {
    let folder = Folder::new("bytes");
    let (code, out, err) = folder.vyre("fuzz --subject test:bytes --test-subjects --preset ints --programs 60 --seed 1");
    assert_eq!(code, 1, "{out}{err}");
    assert!(out.contains("finding 1: bytes, test:bytes: bitxor"), "{out}");
    assert!(out.contains("60 programs, 240 cases"), "{out}");
    let files = folder.files("findings");
    assert_eq!(files.len(), 2, "{files:?}");
    let (code, replayed, err) = folder.vyre(again(&out));
    assert_eq!(code, 1, "{replayed}{err}");
    assert!(replayed.contains("still wrong: bytes, test:bytes: bitxor"), "{replayed}");
    // The same bundle on a subject that is right.
    let (code, fixed, _) = folder.vyre(&format!("{} --subject bulk", again(&out)));
    assert_eq!((code, fixed.contains("bulk agrees with the reference now")), (0, true), "{fixed}");
    let (code, fixed, _) = folder.vyre(&format!("{} --backend reference", again(&out)));
    assert_eq!((code, fixed.contains("backend:reference agrees with the reference now")), (0, true), "{fixed}");
    // What is written for checks/ holds.
    let check = files.iter().find(|name| name.ends_with(".vyre")).expect("a check file");
    assert_eq!(folder.vyre(&format!("check findings/{check}")).0, 0);
    // A second run knows it.
    let (code, out, _) = folder.vyre("fuzz --subject test:bytes --test-subjects --preset ints --programs 60 --seed 1");
    assert_eq!((code, out.contains("known before")), (1, true), "{out}");
    assert_eq!(folder.files("findings"), files);
}

#[test]
fn a_crash_is_contained_and_found() {
    let folder = Folder::new("crash");
    let (code, out, err) = folder
        .vyre("fuzz --subject test:crash --test-subjects --isolated --preset ints --programs 16 --inputs 1 --seed 1 --jobs 2");
    assert_eq!(code, 1, "{out}{err}");
    assert!(out.contains("finding 1: crash, test:crash: signal 6, aborted"), "{out}");
    assert!(out.contains("16 programs, 16 cases"), "{out}");
    let (code, out, _) = folder.vyre(again(&out));
    assert_eq!((code, out.contains("still wrong: crash")), (1, true), "{out}");
}

/// Of the programs of a batch those that crash are told, each once, and no others: the first of them is the finding.
#[test]
fn a_crash_is_blamed_on_the_program_that_crashes() {
    use vyre_smith::fuzz::{Programs, Source};
    use vyre_smith::generate::Preset;
    const PROGRAMS: u64 = 48;
    let crashing = |seed| -> Vec<u64> {
        let source = Programs { preset: Some(Preset::Ints), seed, inputs: 2 };
        (0..PROGRAMS).filter(|number| source.cases(*number)[0].program.to_string().contains(" ^ ")).collect()
    };
    // Neither the first nor the last of the first batch crash it.
    let seed = (1..).find(|seed| crashing(*seed)[0] > 1 && !crashing(*seed).contains(&15)).expect("there are many seeds");
    let crashing = crashing(seed);
    let folder = Folder::new("blame");
    let (code, out, err) = folder.vyre(&format!(
        "fuzz --subject test:crash --test-subjects --isolated --preset ints --programs {PROGRAMS} --inputs 2 --seed {seed} --jobs 1 \
         --no-reduce --json"
    ));
    assert_eq!(code, 1, "{out}{err}");
    let lines: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let [finding, sums] = &lines[..] else { panic!("{out}") };
    assert_eq!(finding["finding"]["program"], crashing[0], "{finding}");
    assert_eq!((&sums["wrong"], &sums["cases"]), (&(crashing.len() as u64).into(), &(2 * PROGRAMS).into()), "{sums}");
}

/// The command for the same programs again has every flag that matters, quoted.
#[test]
fn the_same_programs_can_be_run_again() {
    let folder = Folder::new("again");
    let flags = "--test-subjects --isolated --preset ints --programs 8 --inputs 1 --seed 1 --no-reduce --deadline 700ms";
    let (_, out, err) = folder.vyre(&format!("fuzz --subject test:crash {flags}"));
    let command = out.lines().find_map(|line| line.strip_prefix("the same programs again: vyre "));
    let command = command.unwrap_or_else(|| panic!("{out}{err}"));
    for flag in flags.split(" --").filter(|flag| !flag.ends_with("no-reduce")) {
        assert!(command.contains(flag), "`{flag}` is lost in: {command}");
    }
    assert_eq!(folder.vyre(command).0, 1, "{command}");
    // A subject with spaces in it is one word to a shell.
    let worker = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/worker.py");
    let text = std::fs::read_to_string(worker).expect("the example").replace("lambda a, b: a ^ b", "lambda a, b: a - b");
    std::fs::write(folder.0.join("wrong worker.py"), text).expect("a file");
    let subject = "exec:python3 'wrong worker.py'";
    let args = ["fuzz", "--subject", subject, "--preset", "ints", "--programs", "300", "--seed", "5", "--no-reduce"];
    let output = Command::new(env!("CARGO_BIN_EXE_vyre")).args(args).current_dir(&folder.0).output().expect("vyre starts");
    let out = String::from_utf8_lossy(&output.stdout);
    for start in ["the same programs again: vyre ", "again: vyre "] {
        let command = out.lines().find_map(|line| line.strip_prefix(start)).unwrap_or_else(|| panic!("{out}"));
        let script = format!("exec \"$0\" {command}");
        let status = Command::new("sh").args(["-c", &script, env!("CARGO_BIN_EXE_vyre")]).current_dir(&folder.0).output();
        assert_eq!(status.expect("sh starts").status.code(), Some(1), "{command}");
    }
}

#[test]
fn a_hang_is_contained_and_found() {
    let folder = Folder::new("hang");
    let (code, out, err) = folder.vyre(
        "fuzz --subject test:hang --test-subjects --isolated --deadline 0.5 --preset ints --programs 2 --inputs 1 --seed 1 --no-reduce",
    );
    assert_eq!(code, 1, "{out}{err}");
    assert!(out.contains("finding 1: hang, test:hang"), "{out}");
    // The command has the deadline that it was found with.
    let (code, out, _) = folder.vyre(again(&out));
    assert_eq!((code, out.contains("gave no answer for 500ms")), (1, true), "{out}");
}

#[test]
fn a_panic_is_found_with_and_without_a_process() {
    for (name, flag) in [("inside", ""), ("isolated", " --isolated")] {
        let folder = Folder::new(name);
        let (code, out, err) =
            folder.vyre(&format!("fuzz --subject test:panic --test-subjects --preset ints --programs 32 --seed 1{flag}"));
        assert_eq!(code, 1, "{out}{err}");
        assert!(out.contains("finding 1: panic, test:panic: ") && out.contains("an xor was met"), "{out}");
        assert!(!err.contains("panicked"), "{err}");
    }
}

#[test]
fn what_a_subject_prints_is_no_answer() {
    let folder = Folder::new("prints");
    let (code, out, err) =
        folder.vyre("fuzz --subject test:prints --test-subjects --isolated --preset ints --programs 32 --seed 1 --json");
    assert_eq!(code, 0, "{out}{err}");
    assert_eq!(out.lines().count(), 1, "{out}");
}

#[test]
fn nothing_wrong_leaves_nothing_behind() {
    let folder = Folder::new("right");
    for flags in ["--subject bulk", "--subject passes", "--subject bulk --isolated"] {
        let (code, out, err) = folder.vyre(&format!("fuzz {flags} --programs 64 --seed 5 --coverage"));
        assert_eq!(code, 0, "{out}{err}");
        assert!(out.contains("64 programs, 256 cases") && out.contains("no findings") && out.contains("cells reached"), "{out}");
    }
    assert!(folder.files(".").is_empty());
}

#[test]
fn json_says_the_same_with_any_number_of_jobs() {
    let run = |jobs| {
        let folder = Folder::new(&format!("json{jobs}"));
        let (code, out, err) = folder.vyre(&format!(
            "fuzz --subject test:bytes --test-subjects --preset ints --programs 100 --seed 9 --json --jobs {jobs}"
        ));
        assert_eq!(code, 1, "{out}{err}");
        assert_eq!(err, "");
        let mut objects: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let sums = objects.pop().expect("the sums come last");
        assert_eq!((&sums["programs"], &sums["seed"]), (&100.into(), &9.into()));
        assert_eq!(objects[0]["finding"]["kind"], "bytes");
        (objects, sums["wrong"].clone(), sums["findings"].clone(), sums["coverage"].clone())
    };
    assert_eq!(run(1), run(2));
}

#[test]
fn mistakes_in_flags_are_told() {
    let folder = Folder::new("flags");
    let says = |args: &str, code: i32, words: &str| {
        let (found, out, err) = folder.vyre(args);
        assert_eq!(found, code, "{args}: {out}{err}");
        assert!(err.contains(words), "{args} does not say `{words}`: {out}{err}");
        assert!(!err.contains("panicked"), "{args}: {err}");
    };
    says("fuzz --subject bluk", 2, "did you mean `bulk`?");
    says("fuzz --subject test:crash", 2, "there is no subject `test:crash`");
    says("fuzz --preset int", 2, "did you mean `ints`?");
    says("fuzz --time soon", 2, "write a time like 500ms, 10s, 2m or 1h");
    says("fuzz --inputs 0", 2, "--inputs");
    says("fuzz --replay none.json", 2, "none.json is not a bundle");
    says("fuzz --programs 0", 3, "nothing was compared");
    says("worker --subject bulk", 2, "a worker must be started by a judge");
    says("worker --subject bluk", 2, "did you mean `bulk`?");
    std::fs::write(folder.0.join("broken.json"), "{}").expect("the folder can be written");
    says("fuzz --replay broken.json", 2, "`bundle` is missing");
    std::fs::write(folder.0.join("file"), "").expect("the folder can be written");
    says("fuzz --programs 1 --out file/findings", 2, "cannot write file/findings");
}

/// `examples/worker.py` is a backend in another language: what it runs is right, what it cannot run it says, and a mistake in it is
/// found, reduced and replayed like any other.
#[test]
fn a_worker_in_another_language_is_fuzzed() {
    let folder = Folder::new("python");
    let example = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/worker.py");
    std::fs::copy(&example, folder.0.join("worker.py")).expect("the example");
    let right = "python3 worker.py";
    let run = |worker: &str, more: &[&str]| {
        let subject = format!("exec:{worker}");
        let mut args = vec!["fuzz", "--subject", &subject, "--preset", "ints", "--seed", "5", "--jobs", "1", "--json"];
        args.extend(more);
        let output = Command::new(env!("CARGO_BIN_EXE_vyre")).args(&args).current_dir(&folder.0).output().expect("vyre starts");
        let lines = String::from_utf8(output.stdout).expect("UTF-8");
        let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        (output.status.code(), lines, String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, lines, err) = run(right, &["--programs", "500"]);
    assert_eq!(code, Some(0), "{lines:?}{err}");
    let sums = lines.last().expect("the sums");
    let (cases, skipped) = (sums["cases"].as_u64().unwrap_or(0), sums["skipped"].as_u64().unwrap_or(0));
    assert!(cases >= 20 && skipped > 0, "{sums}");
    // The same worker, which subtracts where it should exclude.
    let text = std::fs::read_to_string(&example).expect("the example");
    let wrong = text.replace("lambda a, b: a ^ b", "lambda a, b: a - b");
    assert_ne!(wrong, text);
    std::fs::write(folder.0.join("wrong.py"), wrong).expect("a file");
    let (code, lines, err) = run("'python3' \"wrong.py\"", &["--programs", "600"]);
    assert_eq!(code, Some(1), "{lines:?}{err}");
    let finding = &lines[0]["finding"];
    assert_eq!(finding["kind"], "bytes", "{finding}");
    assert!(finding["signature"].as_str().is_some_and(|text| text.contains("bitxor")), "{finding}");
    let bundle = finding["bundle"].as_str().expect("a file");
    let (code, out, err) = folder.vyre(&format!("fuzz --replay {bundle}"));
    assert!(code == 1 && out.contains("still wrong"), "{out}{err}");
    // What cannot be started, or is no worker, is told.
    let (code, _, err) = run("python3 none.py", &["--programs", "1"]);
    assert_eq!(code, Some(2), "{err}");
    let (code, out, _) = folder.vyre("fuzz --subject exec: --programs 1 --json");
    assert!(code == 2 && out.contains("needs a command"), "{out}");
}

#[test]
fn every_subject_can_be_metamorphic_and_every_form_of_a_backend_fuzzed() {
    let folder = Folder::new("forms");
    for subject in ["metamorphic:backend:bulk", "metamorphic:test:prints", "backend:bulk/sequence", "backend:bulk/split"] {
        let (code, out, err) = folder.vyre(&format!("fuzz --subject {subject} --test-subjects --programs 40 --seed 3"));
        assert_eq!(code, 0, "{subject}: {out}{err}");
    }
    let (code, _, err) = folder.vyre("fuzz --backend bulk/sideways --programs 1");
    assert!(code == 2 && err.contains("there is no form `sideways`"), "{err}");
}

/// Two traps with the same number in different invocations are two outcomes.
#[test]
fn the_invocation_that_trapped_counts() {
    let folder = Folder::new("trap-last");
    let (code, out, err) = folder.vyre("fuzz --subject fault:trap-last --programs 3000 --seed 1 --no-reduce");
    assert_eq!(code, 1, "{out}{err}");
    assert!(out.contains("finding 1: trap, fault:trap-last"), "{out}");
}

#[test]
fn a_mutant_is_found_by_its_name_here_and_in_a_process_of_its_own() {
    for (name, how) in [("mutant", ""), ("mutant-isolated", " --isolated")] {
        let folder = Folder::new(name);
        let args = "fuzz --subject mutant:operator/add.u32-is-sub --preset ints --programs 40 --seed 1 --no-reduce";
        let (code, out, err) = folder.vyre(&format!("{args}{how}"));
        assert_eq!(code, 1, "{out}{err}");
        assert!(out.contains("bytes, mutant:operator/add.u32-is-sub"), "{out}");
    }
    let folder = Folder::new("mutant-unknown");
    let (code, _, err) = folder.vyre("fuzz --subject mutant:operator/add.u32-is-sbu --programs 1");
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("did you mean `operator/add.u32-is-sub`?"), "{err}");
}
