//! What the kernels of `checks/emit` become, byte for byte: `NAME.wgsl` beside `NAME.vyre`. `VYRE_BLESS=1` writes them.

use std::path::{Path, PathBuf};
use vyre_emit::{Shader, Target};

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../checks/emit");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "vyre"));
    files.sort();
    files
}

fn shader(path: &Path) -> Shader {
    let program = vyre_foundation::text::parse("test", &std::fs::read_to_string(path).unwrap()).unwrap();
    let kernel = program.validated().unwrap().kernel().clone();
    Shader::of(&kernel, &Target::default()).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn every_kernel_becomes_what_its_file_says() {
    let bless = std::env::var_os("VYRE_BLESS").is_some();
    let mut differ = Vec::new();
    let files = files();
    assert!(!files.is_empty());
    for path in files {
        let wgsl = shader(&path).wgsl;
        let expected = path.with_extension("wgsl");
        if bless {
            std::fs::write(&expected, &wgsl).unwrap();
        } else if std::fs::read_to_string(&expected).ok() != Some(wgsl) {
            differ.push(expected);
        }
    }
    assert!(differ.is_empty(), "these are not what the kernels become: {differ:?}; VYRE_BLESS=1 writes them anew");
}

#[test]
fn spirv_forbids_to_rewrite_floats_and_says_what_it_is() {
    for path in files() {
        let words = shader(&path).spirv().unwrap();
        assert_eq!(words[0], 0x0723_0203, "{}", path.display());
        // Instructions follow each other without a gap to the end.
        let mut at = 5;
        while at < words.len() {
            assert_ne!(words[at] >> 16, 0, "{} at word {at}", path.display());
            at += (words[at] >> 16) as usize;
        }
        assert_eq!(at, words.len(), "{}", path.display());
    }
}
