//! Puts the check files into the crate, so that a backend author's tests have them without a checkout of vyre.
//!
//! A script and not a macro, because only a script is run again when a file is added.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let crate_folder = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").ok_or_else(|| io::Error::other("run by cargo"))?);
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("run by cargo"))?);
    let checks = crate_folder.join("checks").canonicalize()?;
    println!("cargo::rerun-if-changed={}", checks.display());
    let mut files = Vec::new();
    collect(&checks, &checks, &mut files)?;
    files.sort();
    let mut list = String::from("&[\n");
    for (name, path) in files {
        writeln!(list, "    ({name:?}, include_bytes!({path:?})),").map_err(io::Error::other)?;
    }
    list.push(']');
    fs::write(out.join("checks.rs"), list)
}

/// Every `.vyre` file below a folder: its name from the root with `/`, and where it is.
fn collect(root: &Path, folder: &Path, files: &mut Vec<(String, PathBuf)>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(root, &path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "vyre") {
            let name = path.strip_prefix(root).map_err(io::Error::other)?;
            let words: Vec<_> = name.components().map(|part| part.as_os_str().to_string_lossy()).collect();
            files.push((words.join("/"), path));
        }
    }
    Ok(())
}
