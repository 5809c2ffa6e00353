//! Check files again, in a process whose float state is not the default: everything they say must hold under each such state, and
//! the state must be left as it was. Selected are the files in which floats are read, computed, folded, stored or printed.

use crate::check_file;
use libtest_mimic::{Failed, Trial};
use std::path::{Path, PathBuf};
use vyre_host_floats::hostile;

/// Whether a text has to do with floats.
fn has_floats(content: &str) -> bool {
    ["f32", "f64", "f16", "bf16", "f8e", "fp4", "nf4"].iter().any(|name| content.contains(name))
}

pub fn trials(root: &Path, files: &[PathBuf]) -> Vec<Trial> {
    let selected: Vec<PathBuf> = files
        .iter()
        .filter(|path| std::fs::read(path).is_ok_and(|bytes| has_floats(&String::from_utf8_lossy(&bytes))))
        .cloned()
        .collect();
    let one = |state: hostile::State| {
        let (root, selected) = (root.to_path_buf(), selected.clone());
        Trial::test(format!("float state/{state}"), move || {
            let mut failed = Vec::new();
            for path in &selected {
                if let Err(problem) = hostile::under(state, || check_file(path, false)) {
                    failed.push(format!("{}: {problem}", path.strip_prefix(&root).unwrap_or(path).display()));
                }
            }
            if failed.is_empty() { Ok(()) } else { Err(Failed::from(failed.join("\n"))) }
        })
    };
    hostile::states().map(one).collect()
}
