//! Creates the tables, and campaigns in them.

use crate::db::{Connection, DbError, get};
use postgres::types::Type;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use vyre_conform::Plan;
use vyre_conform::conform::secret;

/// The version of the tables. Any other is refused.
pub const LAYOUT: i32 = 1;

/// The role that may call the functions for workers.
pub const WORKERS: &str = "vyre_worker";

const SCHEMA: &str = include_str!("schema.sql");

/// How many ranges a class begins with, and the most units of one. Claims cut them into smaller ones.
const RANGES: u64 = 256;
const LONGEST: u64 = 1 << 16;

/// What a campaign is about: all that workers take from the database, beside numbers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// The hash of the suite.
    pub suite: String,
    /// Which parts of it; everything if empty.
    pub queries: Vec<String>,
    /// How much of it.
    pub tier: String,
    /// The seed of the sampled cases.
    pub seed: u64,
    /// Whether a verifier chose the seed.
    pub is_nonce: bool,
}

/// What is tested: a device, or all devices of a backend as if they were one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceClass {
    /// Its name in the campaign.
    pub name: String,
    /// The backend's id.
    pub backend: String,
    /// Which of the devices that have it.
    pub device: WhichDevice,
}

/// Which devices of a backend belong to a class.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WhichDevice {
    /// The device of the first worker that comes.
    First,
    /// The device with this fingerprint.
    Fingerprint(String),
    /// All of them, as if they were one device.
    Any,
}

/// A campaign that is to be created.
pub struct New<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it is about.
    pub spec: &'a Spec,
    /// The units that follow from that.
    pub plan: &'a Plan,
    /// The devices.
    pub classes: &'a [DeviceClass],
    /// Seconds without a word from a worker after which its ranges are taken back.
    pub lease: f64,
    /// The share of units that a second worker runs.
    pub second: f64,
}

/// A campaign in a database.
#[derive(Clone, PartialEq, Debug)]
pub struct Campaign {
    /// Its number.
    pub id: i32,
    /// Its name.
    pub name: String,
    /// What it is about.
    pub spec: Spec,
    /// Units of each class.
    pub units: u64,
    /// When it was created, in seconds since 1970.
    pub created: u64,
    /// Whether it was cancelled.
    pub is_cancelled: bool,
    /// Its lease in seconds.
    pub lease: f64,
    /// The share of units that a second worker runs.
    pub second: f64,
}

/// Creates a campaign, and the tables if there are none.
///
/// # Errors
///
/// If the tables are of another version or cannot be created, or there is a campaign of this name already.
pub fn create(connection: &mut Connection, new: &New<'_>) -> Result<Campaign, DbError> {
    connection.together(|connection| {
        // Two that begin at the same time must not both create the tables.
        connection.batch("SELECT pg_advisory_xact_lock(8031)")?;
        tables(connection)?;
        let taken = connection.rows("SELECT 1 FROM vyre.campaign WHERE name = $1", &[(&new.name, Type::TEXT)])?;
        if !taken.is_empty() {
            return Err(DbError::Refused(format!("there is already a campaign `{}`; choose another name", new.name)));
        }
        let units = new.plan.units();
        let spec = serde_json::to_string(new.spec).expect("a spec is JSON");
        let row = connection.row(
            "INSERT INTO vyre.campaign (name, spec, units, lease, second) VALUES ($1, $2::text::jsonb, $3, $4, $5) RETURNING id",
            &[
                (&new.name, Type::TEXT),
                (&spec, Type::TEXT),
                (&(units as i64), Type::INT8),
                (&new.lease, Type::FLOAT8),
                (&new.second, Type::FLOAT8),
            ],
        )?;
        let id: i32 = get(&row, 0)?;
        sections(connection, id, new.plan)?;
        let ranges = ranges(new.plan);
        for class in new.classes {
            let fingerprint = match &class.device {
                WhichDevice::Fingerprint(fingerprint) => Some(fingerprint.as_str()),
                WhichDevice::First | WhichDevice::Any => None,
            };
            let row = connection.row(
                "INSERT INTO vyre.class (campaign, name, backend, any_device, fingerprint, secret) \
                 VALUES ($1, $2, $3, $4, $5, $6) RETURNING id",
                &[
                    (&id, Type::INT4),
                    (&class.name, Type::TEXT),
                    (&class.backend, Type::TEXT),
                    (&(class.device == WhichDevice::Any), Type::BOOL),
                    (&fingerprint, Type::TEXT),
                    (&secret().0.as_slice(), Type::BYTEA),
                ],
            )?;
            let class: i32 = get(&row, 0)?;
            let (los, his, needs): (Vec<i64>, Vec<i64>, Vec<String>) = columns(&ranges);
            connection.rows(
                "INSERT INTO vyre.span (class, lo, hi, needs) \
                 SELECT $1, lo, hi, string_to_array(needs, '+') FROM unnest($2::bigint[], $3::bigint[], $4::text[]) AS r (lo, hi, needs)",
                &[(&class, Type::INT4), (&los, Type::INT8_ARRAY), (&his, Type::INT8_ARRAY), (&needs, Type::TEXT_ARRAY)],
            )?;
        }
        campaign(connection, new.name)
    })
}

/// Creates the tables if there are none, and checks the version of those that there are.
fn tables(connection: &mut Connection) -> Result<(), DbError> {
    let place = connection.db().place().to_string();
    let found = connection.rows("SELECT 1 FROM pg_namespace WHERE nspname = 'vyre'", &[])?;
    if !found.is_empty() {
        return layout(connection);
    }
    let role = format!(
        "DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{WORKERS}') THEN CREATE ROLE {WORKERS} NOLOGIN; END IF; END $$;
         GRANT USAGE ON SCHEMA vyre TO {WORKERS};
         GRANT EXECUTE ON FUNCTION vyre.claim(jsonb), vyre.finish(jsonb, bytea), vyre.beat(jsonb) TO {WORKERS};"
    );
    connection.batch(SCHEMA).and_then(|()| connection.batch(&role)).map_err(|error| match error {
        DbError::Denied(why) => DbError::Denied(format!(
            "{why}; creating the first campaign needs CREATE on the database, and CREATEROLE unless {place} has a role {WORKERS} already"
        )),
        error @ (DbError::Url(_)
        | DbError::Away(_)
        | DbError::NoCampaigns(_)
        | DbError::Layout { .. }
        | DbError::Refused(_)
        | DbError::Damaged(_)) => error,
    })
}

/// Checks that the tables are there, and their version.
pub(crate) fn layout(connection: &mut Connection) -> Result<(), DbError> {
    let row = connection.row("SELECT layout FROM vyre.about", &[])?;
    match get::<i32>(&row, 0)? {
        LAYOUT => Ok(()),
        other => Err(DbError::Layout { found: other.to_string(), place: connection.db().place().into() }),
    }
}

fn sections(connection: &mut Connection, campaign: i32, plan: &Plan) -> Result<(), DbError> {
    let (mut befores, mut counts, mut cases, mut infos) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut before = 0;
    for section in plan.sections() {
        befores.push(before as i64);
        counts.push(section.units() as i64);
        cases.push(plan.unit(before).cases as i64);
        infos.push(serde_json::to_string(section.info()).expect("a section is JSON"));
        before += section.units();
    }
    connection.rows(
        "INSERT INTO vyre.section (campaign, number, before, units, unit, info) SELECT $1, n - 1, b, u, c, i \
         FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::text[]) WITH ORDINALITY AS r (b, u, c, i, n)",
        &[
            (&campaign, Type::INT4),
            (&befores, Type::INT8_ARRAY),
            (&counts, Type::INT8_ARRAY),
            (&cases, Type::INT8_ARRAY),
            (&infos, Type::TEXT_ARRAY),
        ],
    )?;
    Ok(())
}

/// The ranges that a class begins with, and what a device must be capable of to run all of each.
fn ranges(plan: &Plan) -> Vec<(u64, u64, String)> {
    let units = plan.units();
    let length = units.div_ceil(RANGES).clamp(1, LONGEST);
    let mut ranges = Vec::new();
    let mut lo = 0;
    while lo < units {
        let hi = units.min(lo + length);
        let profiles: BTreeSet<&str> = (plan.unit(lo).section..=plan.unit(hi - 1).section)
            .flat_map(|section| plan.sections()[section].info().profile.split('+'))
            .filter(|word| !matches!(*word, "core" | "mixed"))
            .collect();
        ranges.push((lo, hi, profiles.into_iter().collect::<Vec<_>>().join("+")));
        lo = hi;
    }
    ranges
}

fn columns(ranges: &[(u64, u64, String)]) -> (Vec<i64>, Vec<i64>, Vec<String>) {
    let mut columns = (Vec::new(), Vec::new(), Vec::new());
    for (lo, hi, needs) in ranges {
        columns.0.push(*lo as i64);
        columns.1.push(*hi as i64);
        columns.2.push(needs.clone());
    }
    columns
}

const CAMPAIGN: &str = "SELECT id, name, spec::text, units, extract(epoch FROM created)::bigint, cancelled IS NOT NULL, lease, second \
     FROM vyre.campaign";

fn read(row: &postgres::Row) -> Result<Campaign, DbError> {
    let spec: String = get(row, 2)?;
    let name: String = get(row, 1)?;
    let malformed = |error: serde_json::Error| DbError::Damaged(format!("what the campaign `{name}` is about: {error}"));
    Ok(Campaign {
        id: get(row, 0)?,
        spec: serde_json::from_str(&spec).map_err(malformed)?,
        units: get::<i64>(row, 3)? as u64,
        created: get::<i64>(row, 4)? as u64,
        is_cancelled: get(row, 5)?,
        lease: get(row, 6)?,
        second: get(row, 7)?,
        name,
    })
}

/// The campaigns of a database, by name.
pub fn campaigns(connection: &mut Connection) -> Result<Vec<Campaign>, DbError> {
    layout(connection)?;
    connection.rows(&format!("{CAMPAIGN} ORDER BY name"), &[])?.iter().map(read).collect()
}

/// The campaign of this name.
pub(crate) fn campaign(connection: &mut Connection, name: &str) -> Result<Campaign, DbError> {
    layout(connection)?;
    let found = connection.rows(&format!("{CAMPAIGN} WHERE name = $1"), &[(&name, Type::TEXT)])?;
    match found.first() {
        Some(row) => read(row),
        None => {
            let names: Vec<String> = campaigns(connection)?.into_iter().map(|campaign| campaign.name).collect();
            let others = if names.is_empty() { "there are none".into() } else { format!("there are: {}", names.join(", ")) };
            Err(DbError::Refused(format!("there is no campaign `{name}`; {others}")))
        }
    }
}

/// Makes workers leave. What they have done is kept, unless `removes` says otherwise.
pub fn cancel(connection: &mut Connection, name: &str, removes: bool) -> Result<(), DbError> {
    let campaign = campaign(connection, name)?;
    let text = match removes {
        false => "UPDATE vyre.campaign SET cancelled = coalesce(cancelled, clock_timestamp()) WHERE id = $1",
        true => "DELETE FROM vyre.campaign WHERE id = $1",
    };
    connection.rows(text, &[(&campaign.id, Type::INT4)]).map(|_| ())
}
