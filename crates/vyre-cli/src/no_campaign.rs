//! `vyre campaign` in a build without PostgreSQL.

use crate::Failure;

/// Prove backends on many machines; this vyre was built without it.
#[derive(clap::Args)]
pub struct Args {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

impl Args {
    /// Whether the answer is JSON.
    pub fn json(&self) -> bool {
        self.words.iter().any(|word| word == "--json")
    }
}

pub fn campaign(_: &Args) -> Result<(), Failure> {
    Err(Failure::Usage("this vyre was built without PostgreSQL: build it with `--features postgres`".into()))
}
