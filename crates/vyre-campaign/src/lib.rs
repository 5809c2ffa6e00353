//! Campaigns: one conformance run over many machines.
//!
//! PostgreSQL is queue and ledger at once; what starts workers (systemd, Slurm, Kubernetes, a shell) does nothing else. A campaign has the
//! units of a plan once for each of its *device classes*. Workers claim ranges of units, run them, and answer with one record per unit
//! ([`record`]); one commit marks the range as done and stores its records. A leaf contains nothing about workers, so a class gets the
//! same root as from one worker alone.
//!
//! - [`Db`]: a server, and what its errors mean. [`create`]: the tables (`schema.sql` says how they work together) and campaigns.
//! - [`work()`]: a worker, which may call three functions of the database and nothing else.
//! - [`Runs`]: what a class has shown, as a [`Store`](vyre_conform::ledger::Store), for evidence, reports, differences, certificates.
//! - [`settle`]: what happens when answers of workers differ. [`Status`]: how far a campaign is. [`Matrix`]: its devices side by side.

mod create;
mod db;
mod matrix;
mod page;
pub mod record;
mod runs;
mod settle;
mod status;
mod work;

pub use create::{Campaign, DeviceClass, LAYOUT, New, Spec, WORKERS, WhichDevice, campaigns, cancel, create};
pub use db::{Connection, Db, DbError};
pub use matrix::{Column, Matrix, Pair};
pub use runs::{Runs, is_url};
pub use settle::{Judge, Settled, settle};
pub use status::{ClassStatus, Status, WorkerStatus, counted};
pub use work::{Claim, Claimed, Device, Ended, Hand, Heard, Joined, Link, MakeHand, Settings, Taken, Tell, Wait, Work, work};
