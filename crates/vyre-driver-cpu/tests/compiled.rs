//! The compiler refuses none of our kernels: check files, examples and what is measured.

#![cfg(target_arch = "x86_64")]

use std::path::{Path, PathBuf};

/// All kernels below a folder.
fn kernels(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.expect("the folder can be read").path();
        if path.is_dir() {
            kernels(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "vyre") {
            found.push(path);
        }
    }
}

#[test]
fn every_kernel_of_ours_becomes_machine_code() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for folder in ["checks", "examples", "bench/kernels"] {
        kernels(&root.join(folder), &mut files);
    }
    let mut compiled = 0;
    for file in files {
        // Check files of mistakes are not kernels, and one is not even text.
        let Ok(text) = std::fs::read_to_string(&file) else { continue };
        let Ok(program) = vyre_foundation::text::parse(&file.display().to_string(), &text) else { continue };
        let Ok(program) = vyre_foundation::specialize(&program, []) else { continue };
        let Ok(decisions) = vyre_driver_cpu::decisions(&program) else { continue };
        assert!(!decisions.contains("left to the portable evaluator"), "{}\n{decisions}", file.display());
        compiled += 1;
    }
    assert!(compiled > 1000, "only {compiled} kernels were found");
}
