//! How far a campaign is, in numbers.

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
    /// Seconds since it was created.
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
    /// The name of the device, once a worker has come.
    pub device: Option<String>,
    /// Units that are done.
    pub done: u64,
    /// Units that are being run.
    pub claimed: u64,
    /// Units that a second worker has run or is to run.
    pub checked: u64,
    /// Those of them that are still to be run.
    pub checks_open: u64,
    /// Units with which three workers were lost, and that are not done.
    pub quarantined: u64,
    /// Cases that failed, as far as they are kept.
    pub failures: u64,
    /// Pairs of answers that differ and are not settled.
    pub conflicts_open: u64,
    /// What settling conflicts has shown, for people.
    pub findings: Vec<String>,
    /// Units per second, over the last minute.
    pub rate: f64,
    /// Answers that came too late and did not count.
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
    /// `works`, `left`, `lost` (not heard from within a lease) or `not believed`.
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

/// A number of things: `1 worker`, `2 workers`.
#[must_use]
pub fn counted(count: u64, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

impl ClassStatus {
    /// Seconds until all units are done at the present rate, if there is one.
    #[must_use]
    pub fn left(&self, units: u64) -> Option<f64> {
        (self.rate > 0.0).then(|| units.saturating_sub(self.done) as f64 / self.rate)
    }

    /// Whether all units are done and no two answers differ.
    #[must_use]
    pub fn is_complete(&self, units: u64) -> bool {
        self.done == units && self.conflicts_open == 0
    }

    /// Workers that are alive.
    pub fn there(&self) -> impl Iterator<Item = &WorkerStatus> {
        self.workers.iter().filter(|worker| worker.state == "works")
    }

    /// The share of the units that are done which a second worker has run.
    #[must_use]
    pub fn checked_share(&self) -> f64 {
        if self.done == 0 { 0.0 } else { self.checked.saturating_sub(self.checks_open) as f64 / self.done as f64 }
    }

    /// What second runs of this share of the units find, and what they miss.
    #[must_use]
    pub fn sampling(&self) -> String {
        let share = self.checked_share();
        if share <= 0.0 {
            return "no unit was run by a second worker: a wrong answer of a worker would not have been noticed".into();
        }
        let missed = |lies: u64| 100.0 * Bound { n: lies }.escape(share.min(0.999_999));
        format!(
            "{:.1} % of the units were run by a second worker; a worker that lies about 1 range of units is missed with a probability of \
             {:.0} %, about 10 with {:.0} %, about 100 with {:.0} %, about 300 with {:.1} %",
            100.0 * share,
            missed(1),
            missed(10),
            missed(100),
            missed(300)
        )
    }
}

impl Status {
    /// Reads the state of the campaign of this name.
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

    /// The same as text.
    #[must_use]
    pub fn text(&self) -> String {
        let devices = counted(self.classes.len() as u64, "device");
        let mut text = format!("{}: {} for each of {devices}", self.campaign, counted(self.units, "unit"));
        text += if self.is_cancelled { ", cancelled\n" } else { "\n" };
        for class in &self.classes {
            let device = class.device.as_deref().unwrap_or("no worker has come yet");
            let left = match class.left(self.units) {
                Some(_) | None if class.is_complete(self.units) => "all done".into(),
                Some(left) => format!("{:.1} units/s, {left:.0} s left", class.rate),
                None => "no units in the last minute".to_string(),
            };
            let _ = writeln!(
                text,
                "{}: {} of {} units, {left}; {} claimed, {}, {} ({device})",
                class.name,
                class.done,
                self.units,
                class.claimed,
                counted(class.there().count() as u64, "worker"),
                counted(class.failures, "failure"),
            );
            let _ = writeln!(text, "  {}", class.sampling());
            if class.quarantined > 0 {
                let _ = writeln!(text, "  {} units on which three workers were lost are run case by case", class.quarantined);
            }
            if class.conflicts_open > 0 {
                let _ =
                    writeln!(text, "  {} pairs of answers differ: a third worker has to run their units", class.conflicts_open);
            }
            if class.late > 0 {
                let _ = writeln!(text, "  {} answers came too late and did not count", class.late);
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
