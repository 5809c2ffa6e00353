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
    assert!(["cpu", "bulk", "reference", "example"].iter().all(|id| out.lines().any(|line| line.starts_with(id))), "{out}");
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
fn it_gives_what_the_reference_gives() {
    let kernels = [
        "let i = gid.x\n let x = a[i] - 7\n if a[i] < b[i + 1] { x = x ^ b[i] }\n out[i] = x & 0xfff0_ffff",
        "if gid.x < len(out) { out[len(out) - 1 - gid.x] = a[gid.x] + gid.x } else { out[gid.x] = 5 }",
        "out[gid.x + 0xffff_ffff] = a[gid.x + 0xffff_ffff]",
    ];
    for (n, body) in kernels.iter().enumerate() {
        let text = format!(
            "program p {{\n workgroup 3\n buffer a: read u32 @2\n buffer b: read u32 @0\n buffer out: output u32 @1\n {body}\n}}\n"
        );
        let path = std::env::temp_dir().join(format!("vyre-example-{}-{n}.vyre", std::process::id()));
        std::fs::write(&path, text).expect("it is written");
        let on = |backend: &str| {
            let inputs = ["--in", "a=1,9,0xffff_ffff,4,5", "--in", "b=8,7,6,5,4"];
            let file = path.to_string_lossy();
            said(&vyre(&[&["run", &file, "--backend", backend, "--grid", "3,2,1"], &inputs[..]].concat()))
        };
        let (example, reference) = (on("example"), on("reference"));
        std::fs::remove_file(&path).expect("it was there");
        assert!(example.0.starts_with("out: u32[5] = "), "{example:?}");
        assert_eq!(example, reference, "{body}");
    }
}

#[test]
fn a_judge_that_could_compare_nothing_says_so() {
    let output = vyre(&["fuzz", "--backend", "example", "--programs", "50", "--seed", "1", "--isolated"]);
    let (out, err) = said(&output);
    assert_eq!(output.status.code(), Some(3), "{out}{err}");
    assert!(err.contains("nothing was compared") && out.contains("200 cases skipped"), "{out}{err}");
}
