//! Runs, wherever they are kept: in a folder, in a file, or as a device of a campaign in a database.

use crate::{Failure, report};
use std::path::Path;
use vyre_conform::evidence::RunData;
use vyre_conform::ledger::{Identity, Ledger, Store};

/// A run that can be read.
pub struct Opened {
    /// Its units, and what is known about it.
    pub store: Box<dyn Store>,
    /// What it is about.
    pub identity: Identity,
    is_finished: bool,
}

impl Opened {
    /// All that it says, checked.
    pub fn data(&self) -> Result<RunData, Failure> {
        RunData::of(&*self.store, self.identity.clone(), self.is_finished).map_err(report::ledger)
    }
}

/// Opens the run that a command line names.
pub fn open(run: &Path) -> Result<Opened, Failure> {
    if run.to_str().is_some_and(|run| run.starts_with("postgres://") || run.starts_with("postgresql://")) {
        return of_campaign(run);
    }
    let (ledger, identity, is_finished) = Ledger::read(run).map_err(report::ledger)?;
    Ok(Opened { store: Box::new(ledger), identity, is_finished })
}

/// What such a run says.
pub fn data(run: &Path) -> Result<RunData, Failure> {
    open(run)?.data()
}

#[cfg(feature = "postgres")]
fn of_campaign(run: &Path) -> Result<Opened, Failure> {
    let runs = vyre_campaign::Runs::open(&run.to_string_lossy()).map_err(crate::campaign::failure)?;
    Ok(Opened { identity: runs.identity(), is_finished: runs.is_finished(), store: Box::new(runs) })
}

#[cfg(not(feature = "postgres"))]
fn of_campaign(_: &Path) -> Result<Opened, Failure> {
    Err(Failure::Usage("this vyre was built without PostgreSQL: build it with `--features postgres`".into()))
}
