//! `vyre diff`: what is different between two conformance runs.

use crate::{Failure, print, report, runs};
use serde_json::json;
use std::path::PathBuf;
use vyre_conform::diff::{Difference, diff};

/// Compare two conformance runs: two devices, two drivers, or before and after a change.
#[derive(clap::Args)]
#[command(after_help = "\
A unit is *new* if it fails but held before, *fixed* if it holds but failed before, *changed* if its bytes differ, *not run* if it was
judged before but not now, and *added* if it was not judged before. Parts whose hashes are equal are not read.

Examples:
  vyre diff before after
  vyre diff nvidia amd --markdown > difference.md
  vyre diff before after --json
  vyre diff 'postgres://host/db#nightly/cpu' 'postgres://host/db#nightly/wgpu'

Exit status: 0 both runs have the same results, 1 they differ or a file is damaged, 2 the command line is wrong or a file cannot be
read, 3 the runs have nothing in common.")]
pub struct Args {
    /// The run to compare with: its state folder, or its file
    #[arg(value_name = "RUN1")]
    one: PathBuf,
    /// The run that is compared
    #[arg(value_name = "RUN2")]
    other: PathBuf,
    /// Markdown for a pull request
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let (one, other) = (runs::open(&args.one)?, runs::open(&args.other)?);
    let found = diff((&*one.store, &one.identity), (&*other.store, &other.identity)).map_err(report::ledger)?;
    let Some(found) = found else {
        return Err(Failure::NoVerdict("the runs have no section in common, so there is nothing to compare".into()));
    };
    if args.json {
        print(&format!("{}\n", json!({ "is_same": found.is_same(), "difference": found })));
    } else if args.markdown {
        print(&found.markdown());
    } else {
        print(&found.text());
    }
    status(&found)
}

fn status(found: &Difference) -> Result<(), Failure> {
    if found.is_same() { Ok(()) } else { Err(Failure::Said) }
}
