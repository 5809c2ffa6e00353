//! `kernel!`: what it gives, and what the compiler says about mistakes in it. Files in `kernel_macro/` have the lines that must stand in
//! what it says, in their order, behind `//?`, and no other error may. The compiler is called directly, with the crate as it was built
//! for this test.

use std::path::{Path, PathBuf};
use std::process::Command;
use vyre::prelude::*;

vyre::kernel! {
    /// Every kind of element.
    pub(crate) program kinds {
        workgroup 4
        const shift: u32 = 1
        const scale: f32 = 0.5
        const flip: bool = false
        const offset: i32 = -3
        buffer match: read i32 @0            // a keyword of Rust
        buffer pairs: read vec2<u32> @1
        buffer halves: read f16 @2
        buffer wide: read_write u64 @3
        buffer out: output f32 @4
        /// also a comment
        let i = gid.x
        let sign = select(flip, -1.0, 1.0)
        out[i] = sign * scale * f32(match[i] + offset) + halves[i] * f32(pairs[i].y)
        wide[i] = wide[i] << shift
    }
}

vyre::kernel! { file = "../xor.vyre" }

vyre::kernel!(
    r#"program hex { workgroup 1
  buffer `the out`: output f32[1] @0
  `the out`[0] = 0x1.8p3
}"#
);

#[test]
fn buffers_and_constants_are_typed() {
    for id in ["cpu", "bulk", "reference"] {
        let backend = Backend::open(id).unwrap();
        let halves = [0x3C00u16, 0xC000];
        let kinds = Kinds::compile(&backend).unwrap();
        let KindsOutputs { wide, out } = kinds.run(&[5, -5], &[[1, 2], [3, 4]], &halves, &[1, 1 << 40]).unwrap();
        assert_eq!((wide, out), (vec![2, 1 << 41], vec![3.0, -12.0]));
        let constants = KindsConstants { flip: true, shift: 2, ..KindsConstants::default() };
        let kinds = Kinds::compile_with(&backend, constants).unwrap();
        let outputs = kinds.run(&vec![5, -5], &[[1, 2], [3, 4]], halves.as_slice(), &[1, 1 << 40]).unwrap();
        assert_eq!((outputs.wide, outputs.out), (vec![4, 1 << 42], vec![1.0, -4.0]));
        let short = kinds.dispatch(&[5], &[[1, 2]], &halves, &[1]).output_len("out", 1).run_timed().unwrap().0;
        assert_eq!(KindsOutputs::try_from(&short).unwrap().out, [1.0]);
        assert_eq!(Hex::compile(&backend).unwrap().run().unwrap().the_out, [12.0]);
    }
    let xor = Xor::compile_with(&Backend::preferred().unwrap(), XorConstants { mask: 6 }).unwrap();
    assert_eq!(xor.run(&[1, 2, 3], &[7, 7, 7]).unwrap().out, [6, 4, 4]);
}

#[test]
fn the_program_is_the_text() {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("xor.vyre")).unwrap();
    assert_eq!(Xor::TEXT, text);
    assert_eq!(*Xor::program(), text.parse().unwrap());
    assert_eq!(Kinds::program().to_string(), Kinds::TEXT.parse::<Program>().unwrap().to_string());
    assert!(Kinds::TEXT.starts_with("program kinds {\n    workgroup 4\n"), "{}", Kinds::TEXT);
    assert!(Kinds::program().validated().is_ok());
}

/// What rustc says about a file that uses the crate, with paths and line numbers that do not depend on where it lies.
fn compile(file: &Path) -> String {
    let deps = std::env::current_exe().unwrap().parent().unwrap().to_path_buf();
    let mut candidates: Vec<(std::time::SystemTime, PathBuf)> = std::fs::read_dir(&deps)
        .unwrap()
        .filter_map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name()?.to_str()?;
            let is_ours = name.starts_with("libvyre-") && name.ends_with(".rlib");
            is_ours.then(|| (path.metadata().unwrap().modified().unwrap(), path.clone()))
        })
        .collect();
    // Builds with other features may lie beside it.
    candidates.sort();
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    for (_, library) in candidates.into_iter().rev() {
        let output = Command::new(&rustc)
            .args(["--edition=2024", "--emit=metadata", "-o", "/dev/null", "--color=never", "--crate-name=user"])
            .arg("--extern")
            .arg(format!("vyre={}", library.display()))
            .arg(format!("-Ldependency={}", deps.display()))
            .arg(file.file_name().unwrap())
            .current_dir(file.parent().unwrap())
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        if !said.contains("E0514") && !said.contains("E0460") && !said.contains("E0463") && !said.contains("no `__kernel`") {
            return said;
        }
    }
    panic!("there is no library in {}", deps.display());
}

#[test]
fn mistakes_are_errors_at_their_place() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernel_macro");
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "rs"));
    files.sort();
    assert!(files.len() >= 10, "{files:?}");
    for file in files {
        let said = compile(&file);
        let text = std::fs::read_to_string(&file).unwrap();
        let expected: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("//? ")).collect();
        let mut rest = said.as_str();
        for line in &expected {
            let Some((_, after)) = rest.split_once(line) else {
                panic!("{}: `{line}` does not stand, or not behind what comes before it, in\n{said}", file.display())
            };
            rest = after;
        }
        let errors = |line: &&str| line.starts_with("error") && !line.starts_with("error: aborting");
        let count = expected.iter().filter(|line| errors(line)).count();
        assert!(count > 0 && said.lines().filter(|line| errors(line)).count() == count, "{}:\n{said}", file.display());
    }
}
