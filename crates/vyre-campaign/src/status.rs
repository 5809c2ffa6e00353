//! How far a campaign is: one look at the tables, as numbers.

use crate::create::{Campaign, campaign};
use crate::db::{Connection, DbError, get};
use crate::runs::classes;
use postgres::types::Type;
use serde::Serialize;
use std::fmt::Write;
use vyre_conform::evidence::Bound;

/// A campaign at this moment.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Status {
    /// Its name.
    pub campaign: String,
    /// Whether it was cancelled.
    pub is_cancelled: bool,
    /// Units of each class.
    pub units: u64,
    /// Seconds since it was made.
    pub age: u64,
    /// The share of units that a second worker is to run.
    pub second: f64,
    /// Its device classes.
    pub classes: Vec<ClassStatus>,
}

/// A device class at this moment.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ClassStatus {
    /// Its name.
    pub name: String,
    /// The device, for people, once one has come.
    pub device: Option<String>,
    /// Units that are done.
    pub done: u64,
    /// Units that somebody runs at this moment.
    pub claimed: u64,
    /// Units that a second worker has run, or is to run.
    pub checked: u64,
    /// Of these, the ones that are still to be run.
    pub checks_open: u64,
    /// Units that three workers were lost with, and that are not done.
    pub quarantined: u64,
    /// Failures that were kept.
    pub failures: u64,
    /// Pairs of answers that differ and that nobody has decided about.
    pub conflicts_open: u64,
    /// What was decided about those that were, for people.
    pub findings: Vec<String>,
    /// Units in the last minute, by the second.
    pub rate: f64,
    /// Answers that came too late and changed nothing.
    pub late: u64,
    /// Workers.
    pub workers: Vec<WorkerStatus>,
}

/// A worker at this moment.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct WorkerStatus {
    /// Its number.
    pub id: i64,
    /// Its host and process.
    pub name: String,
    /// Its device.
    pub fingerprint: String,
    /// Whether it was heard from within a lease, has left, is lost, or is not believed.
    pub state: String,
    /// Seconds since it was heard from.
    pub silent: f64,
    /// Units whose answers were taken.
    pub units: u64,
    /// Ranges whose answers were taken.
    pub claims: u64,
    /// Answers that came too late.
    pub late: u64,
}

impl ClassStatus {
    /// Seconds until all units are done at this rate, if something moves.
    #[must_use]
    pub fn left(&self, units: u64) -> Option<f64> {
        (self.rate > 0.0).then(|| units.saturating_sub(self.done) as f64 / self.rate)
    }

    /// Whether all units are in, and nobody contradicts them.
    #[must_use]
    pub fn is_complete(&self, units: u64) -> bool {
        self.done == units && self.conflicts_open == 0
    }

    /// Workers that are heard from.
    pub fn there(&self) -> impl Iterator<Item = &WorkerStatus> {
        self.workers.iter().filter(|worker| worker.state == "works")
    }

    /// Units that a second worker has run, as a share of those that are done.
    #[must_use]
    pub fn checked_share(&self) -> f64 {
        if self.done == 0 { 0.0 } else { self.checked.saturating_sub(self.checks_open) as f64 / self.done as f64 }
    }

    /// What second runs of so many units find, and what they miss.
    #[must_use]
    pub fn sampling(&self) -> String {
        let share = self.checked_share();
        if share <= 0.0 {
            return "no unit was run by a second worker: a lie about one would not have been noticed".into();
        }
        let missed = |lies: u64| 100.0 * Bound { n: lies }.escape(share.min(0.999_999));
        format!(
            "{:.1} % of the units were run by a second worker: whoever lies in 1 range of units is missed with {:.0} %, in 10 with {:.0} %, \
             in 100 with {:.0} %, in 300 with {:.1} %",
            100.0 * share,
            missed(1),
            missed(10),
            missed(100),
            missed(300)
        )
    }
}

impl Status {
    /// Looks at the campaign of this name.
    ///
    /// # Errors
    ///
    /// If there is none, or the database cannot be asked.
    pub fn read(connection: &mut Connection, name: &str) -> Result<Status, DbError> {
        let campaign = campaign(connection, name)?;
        let Campaign { id, name, units, is_cancelled, second, lease, .. } = &campaign;
        let row = connection.row("SELECT extract(epoch FROM clock_timestamp())::bigint", &[])?;
        let age = (get::<i64>(&row, 0)? as u64).saturating_sub(campaign.created);
        let mut found = Vec::new();
        for class in classes(connection, *id)? {
            let row = connection.row(
                "SELECT coalesce(sum(hi - lo) FILTER (WHERE kind = 0 AND state = 2), 0)::bigint, \
                   coalesce(sum(hi - lo) FILTER (WHERE kind = 0 AND state = 1), 0)::bigint, \
                   coalesce(sum(hi - lo) FILTER (WHERE kind = 1), 0)::bigint, \
                   coalesce(sum(hi - lo) FILTER (WHERE kind = 1 AND state < 2), 0)::bigint, \
                   coalesce(sum(hi - lo) FILTER (WHERE state < 2 AND lost >= 3), 0)::bigint, \
                   (SELECT count(*) FROM vyre.failure f JOIN vyre.answer a ON a.id = f.answer WHERE f.class = $1 AND NOT a.void), \
                   (SELECT count(*) FROM vyre.conflict WHERE class = $1 AND state < 2), \
                   (SELECT coalesce(sum(hi - lo), 0)::float8 / 60 FROM vyre.answer \
                     WHERE class = $1 AND NOT void AND kind = 0 AND at > clock_timestamp() - interval '60 s') \
                 FROM vyre.span WHERE class = $1",
                &[(&class.id, Type::INT4)],
            )?;
            let count = |n: usize| get::<i64>(&row, n).map(|count| count as u64);
            let findings = connection.rows(
                "SELECT why FROM vyre.conflict WHERE class = $1 AND state = 2 AND why IS NOT NULL ORDER BY id LIMIT 100",
                &[(&class.id, Type::INT4)],
            )?;
            let workers = workers(connection, class.id, *lease)?;
            found.push(ClassStatus {
                name: class.name,
                device: class.device,
                done: count(0)?,
                claimed: count(1)?,
                checked: count(2)?,
                checks_open: count(3)?,
                quarantined: count(4)?,
                failures: count(5)?,
                conflicts_open: count(6)?,
                findings: findings.iter().map(|row| get(row, 0)).collect::<Result<_, _>>()?,
                rate: get(&row, 7)?,
                late: workers.iter().map(|worker| worker.late).sum(),
                workers,
            });
        }
        let (campaign, is_cancelled, units, second) = (name.clone(), *is_cancelled, *units, *second);
        Ok(Status { campaign, is_cancelled, units, age, second, classes: found })
    }

    /// Whether all classes are complete.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.classes.iter().all(|class| class.is_complete(self.units))
    }

    /// The same for people.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!("{}: {} units for each of {} devices", self.campaign, self.units, self.classes.len());
        text += if self.is_cancelled { ", cancelled\n" } else { "\n" };
        for class in &self.classes {
            let device = class.device.as_deref().unwrap_or("no worker has come yet");
            let left = match class.left(self.units) {
                Some(_) | None if class.is_complete(self.units) => "all done".into(),
                Some(left) => format!("{:.1} units/s, {left:.0} s left", class.rate),
                None => "nothing moves".to_string(),
            };
            let _ = writeln!(
                text,
                "{}: {} of {} units, {left}; {} claimed, {} workers, {} failures ({device})",
                class.name,
                class.done,
                self.units,
                class.claimed,
                class.there().count(),
                class.failures,
            );
            let _ = writeln!(text, "  {}", class.sampling());
            if class.quarantined > 0 {
                let _ = writeln!(text, "  {} units that three workers were lost with are run case by case", class.quarantined);
            }
            if class.conflicts_open > 0 {
                let _ = writeln!(text, "  {} pairs of answers differ and are not decided yet", class.conflicts_open);
            }
            if class.late > 0 {
                let _ = writeln!(text, "  {} answers came too late and changed nothing", class.late);
            }
            class.findings.iter().for_each(|why| {
                let _ = writeln!(text, "  {why}");
            });
        }
        text
    }
}

fn workers(connection: &mut Connection, class: i32, lease: f64) -> Result<Vec<WorkerStatus>, DbError> {
    let text = "SELECT id, name, fingerprint, state, extract(epoch FROM clock_timestamp() - seen)::float8, units, claims, late \
                FROM vyre.worker WHERE class = $1 ORDER BY id";
    let read = |row: &postgres::Row| {
        let silent: f64 = get(row, 4)?;
        let state = match get::<i16>(row, 3)? {
            0 if silent <= lease => "works",
            0 => "lost",
            1 => "left",
            _ => "not believed",
        };
        Ok(WorkerStatus {
            id: get(row, 0)?,
            name: get(row, 1)?,
            fingerprint: get(row, 2)?,
            state: state.into(),
            silent,
            units: get::<i64>(row, 5)? as u64,
            claims: get::<i64>(row, 6)? as u64,
            late: get::<i64>(row, 7)? as u64,
        })
    };
    connection.rows(text, &[(&class, Type::INT4)])?.iter().map(read).collect()
}
