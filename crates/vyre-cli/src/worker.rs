//! `vyre worker`: a process that runs cases for a judge, started by `vyre fuzz --isolated` and not by people.

use crate::{Failure, fuzz};
use vyre_worker::serve_judge;

/// For a worker inside this worker. The judge has its own.
const DEADLINE: std::time::Duration = std::time::Duration::from_secs(3600);

/// Run cases for the process that started this one.
#[derive(clap::Args)]
pub struct Args {
    /// What runs them
    #[arg(long)]
    subject: String,
    #[arg(long, hide = true)]
    test_subjects: bool,
}

pub fn worker(args: &Args) -> Result<(), Failure> {
    // A name that is not known is told before anything is served.
    drop(fuzz::known_subject(&args.subject, args.test_subjects, DEADLINE)?);
    let again = || match fuzz::known_subject(&args.subject, args.test_subjects, DEADLINE) {
        Ok(subject) => subject,
        Err(_) => unreachable!("the name was known a moment ago"),
    };
    serve_judge(again).map_err(|error| Failure::Usage(format!("the judge cannot be served: {error}")))
}
