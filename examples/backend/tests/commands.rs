//! The commands of `vyre` find the backend that is linked in, run it, refuse for it, and judge it.

use std::process::{Command, Output};

fn vyre(args: &[&str]) -> Output {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    Command::new(env!("CARGO_BIN_EXE_vyre-example")).current_dir(root).args(args).output().expect("the command runs")
}

fn said(output: &Output) -> (String, String) {
    (String::from_utf8_lossy(&output.stdout).into_owned(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn it_is_listed_beside_the_others() {
    let (out, _) = said(&vyre(&["devices"]));
    assert!(["bulk", "reference", "example"].iter().all(|id| out.lines().any(|line| line.starts_with(id))), "{out}");
}

#[test]
fn it_runs_a_kernel() {
    let output = vyre(&["run", "examples/xor.vyre", "--backend", "example", "--in", "a=1,2,3", "--in", "b=7,7,7"]);
    assert_eq!(said(&output), ("out: u32[3] = 6 5 4\n".into(), String::new()));
}

#[test]
fn it_refuses_by_name_what_it_cannot_run() {
    let output = vyre(&["run", "examples/saxpy.vyre", "--backend", "example", "--in", "x=1", "--in", "y=2", "--in", "a=3"]);
    let (_, err) = said(&output);
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(err.contains("E0801") && err.contains("example"), "{err}");
}

#[test]
fn it_is_judged_on_random_programs_in_processes_of_its_own() {
    let output = vyre(&["fuzz", "--backend", "example", "--programs", "300", "--seed", "1", "--isolated"]);
    let (out, err) = said(&output);
    assert_eq!(output.status.code(), Some(0), "{out}{err}");
}
