//! What a device class has shown, as a store of records like the ledger of a run on one machine.

use crate::create::{Campaign, campaign, campaigns};
use crate::db::{Connection, Db, DbError, Param, get};
use crate::record;
use postgres::types::Type;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use vyre_conform::ledger::{Controls, Identity, LedgerError, RunInfo, Seal, SectionInfo, Store, UnitRecord, remark, settings};
use vyre_conform::{Digest, ParityFailure, Selection};

/// Whether the name of a run is the URL of a database.
#[must_use]
pub fn is_url(text: &str) -> bool {
    text.starts_with("postgres://") || text.starts_with("postgresql://")
}

/// A device class of a campaign.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Class {
    pub id: i32,
    pub name: String,
    pub backend: String,
    pub fingerprint: Option<String>,
    pub version: Option<String>,
    pub device: Option<String>,
    pub forms: Option<String>,
    pub secret: Digest,
    pub root: Option<Digest>,
}

/// A section, and where its units are.
pub(crate) struct Place {
    pub before: u64,
    pub units: u64,
    unit: u64,
    pub info: SectionInfo,
}

impl Place {
    /// First case and number of cases of the unit of this number.
    pub fn cases(&self, number: u64) -> (u64, u64) {
        let first = (number - self.before) * self.unit;
        (first, self.unit.min(self.info.cases.saturating_sub(first)))
    }
}

/// What one device class of a campaign has shown.
pub struct Runs {
    path: PathBuf,
    connection: RefCell<Connection>,
    campaign: Campaign,
    class: Class,
    sections: Vec<Place>,
    is_finished: bool,
    /// Seconds since 1970 when the last answer came.
    last: u64,
}

impl Runs {
    /// The run that a URL with a name behind it means: `postgres://…/db#CAMPAIGN/CLASS`. The class may be left out if there is only one, and
    /// so may the campaign.
    ///
    /// # Errors
    ///
    /// If there is no such run, or the database cannot be asked.
    pub fn open(url: &str) -> Result<Runs, DbError> {
        let (url, name) = url.split_once('#').unwrap_or((url, ""));
        let (name, class) = name.split_once('/').unwrap_or((name, ""));
        let db = Db::new(url)?;
        let mut connection = db.connect()?;
        let name = match name {
            "" => {
                let names: Vec<String> = campaigns(&mut connection)?.into_iter().map(|campaign| campaign.name).collect();
                match names.as_slice() {
                    [one] => one.clone(),
                    [] => return Err(DbError::Refused(format!("{} has no campaign", db.place()))),
                    several => {
                        return Err(DbError::Refused(format!(
                            "which campaign? Write #NAME after the URL: {}",
                            several.join(", ")
                        )));
                    }
                }
            }
            name => name.to_string(),
        };
        let campaign = campaign(&mut connection, &name)?;
        let classes = classes(&mut connection, campaign.id)?;
        let names = || classes.iter().map(|class| class.name.as_str()).collect::<Vec<_>>().join(", ");
        let class = match (class, classes.as_slice()) {
            ("", [one]) => one.clone(),
            ("", _) => return Err(DbError::Refused(format!("which device? Write #{name}/DEVICE after the URL: {}", names()))),
            (wanted, classes) => match classes.iter().find(|class| class.name == wanted) {
                Some(class) => class.clone(),
                None => return Err(DbError::Refused(format!("`{name}` has no device `{wanted}`; there are: {}", names()))),
            },
        };
        Runs::of(connection, campaign, class)
    }

    pub(crate) fn of(mut connection: Connection, campaign: Campaign, class: Class) -> Result<Runs, DbError> {
        let path = PathBuf::from(format!("{}#{}/{}", connection.db().place(), campaign.name, class.name));
        let sections = sections(&mut connection, campaign.id)?;
        let row = connection.row(
            "SELECT NOT EXISTS (SELECT FROM vyre.span WHERE class = $1 AND state < 2 AND kind = 0) \
               AND NOT EXISTS (SELECT FROM vyre.conflict WHERE class = $1 AND state < 2), \
             coalesce((SELECT extract(epoch FROM max(at))::bigint FROM vyre.answer WHERE class = $1 AND NOT void), 0)",
            &[(&class.id, Type::INT4)],
        )?;
        let (is_finished, last) = (get(&row, 0)?, get::<i64>(&row, 1)? as u64);
        Ok(Runs { path, connection: RefCell::new(connection), campaign, class, sections, is_finished, last })
    }

    /// Whether every unit is done and no two answers differ.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.is_finished
    }

    /// What the run is about.
    #[must_use]
    pub fn identity(&self) -> Identity {
        let Runs { campaign, class, .. } = self;
        let spec = &campaign.spec;
        let selection = if spec.queries.is_empty() { Selection::ALL.into() } else { spec.queries.join(" ") };
        let forms = class.forms.as_deref().unwrap_or_default();
        Identity {
            suite: spec.suite.clone(),
            selection,
            settings: settings(spec.is_nonce, spec.seed, (0, 1), Some(&spec.tier), true, forms),
            backend: class.backend.clone(),
            version: class.version.clone(),
            device: class.fingerprint.clone().unwrap_or_default(),
        }
    }

    /// Stores the root of a class that is finished.
    pub(crate) fn keep_root(&self, root: Digest) -> Result<(), DbError> {
        let text = "UPDATE vyre.class SET root = $2 WHERE id = $1 AND root IS NULL";
        self.connection.borrow_mut().rows(text, &[(&self.class.id, Type::INT4), (&root.0.as_slice(), Type::BYTEA)]).map(|_| ())
    }

    fn damaged(&self, what: impl Into<String>) -> LedgerError {
        LedgerError::Damaged(self.path.clone(), what.into())
    }

    fn error(&self, error: DbError) -> LedgerError {
        match error {
            DbError::Damaged(what) => LedgerError::Damaged(self.path.clone(), what),
            DbError::Layout { found, .. } => LedgerError::Version(self.path.clone(), found),
            error @ (DbError::Url(_) | DbError::Away(_) | DbError::Denied(_) | DbError::NoCampaigns(_) | DbError::Refused(_)) => {
                LedgerError::Io(self.path.clone(), error.to_string())
            }
        }
    }

    /// Reads the units from one number to another.
    fn between(&self, from: u64, to: u64, each: &mut dyn FnMut(&str, UnitRecord)) -> Result<(), LedgerError> {
        let text = "SELECT lo, hi, records FROM vyre.answer \
                    WHERE class = $1 AND kind = 0 AND NOT void AND lo < $3 AND hi > $2 ORDER BY lo";
        let (mut end, mut section) = (0, 0);
        let mut problem = None;
        let (first, behind) = (from as i64, to as i64);
        let params: [Param<'_>; 3] = [(&self.class.id, Type::INT4), (&first, Type::INT8), (&behind, Type::INT8)];
        self.connection
            .borrow_mut()
            .each(text, &params, |row| {
                let (lo, hi): (i64, i64) = (get(row, 0)?, get(row, 1)?);
                let records: &[u8] = get(row, 2)?;
                let units = (hi - lo).max(0) as usize;
                if lo < end || records.len() != units * record::BYTES || hi as u64 > self.campaign.units {
                    problem.get_or_insert_with(|| {
                        format!("the answer to the units {lo} to {hi} overlaps another or has the wrong length")
                    });
                    return Ok(());
                }
                end = hi;
                for (number, bytes) in (lo as u64..).zip(records.chunks(record::BYTES)) {
                    if problem.is_some() || number < from || number >= to {
                        continue;
                    }
                    while self.sections.get(section).is_some_and(|place| number >= place.before + place.units) {
                        section += 1;
                    }
                    let Some(place) = self.sections.get(section) else { continue };
                    let (first, cases) = place.cases(number);
                    match record::decode(&place.info.id, first, cases, bytes) {
                        Ok(record) => each(&place.info.id, record),
                        Err(what) => problem = Some(what),
                    }
                }
                Ok(())
            })
            .map_err(|error| self.error(error))?;
        problem.map_or(Ok(()), |what| Err(self.damaged(what)))
    }
}

/// The classes of a campaign, in the order in which `create` named them.
pub(crate) fn classes(connection: &mut Connection, campaign: i32) -> Result<Vec<Class>, DbError> {
    let text = "SELECT id, name, backend, fingerprint, version, device, forms, secret, root FROM vyre.class WHERE campaign = $1 ORDER BY id";
    let digest =
        |bytes: &[u8]| bytes.try_into().map(Digest).map_err(|_| DbError::Damaged("a hash does not have 32 bytes".into()));
    let read = |row: &postgres::Row| {
        Ok(Class {
            id: get(row, 0)?,
            name: get(row, 1)?,
            backend: get(row, 2)?,
            fingerprint: get(row, 3)?,
            version: get(row, 4)?,
            device: get(row, 5)?,
            forms: get(row, 6)?,
            secret: digest(get(row, 7)?)?,
            root: get::<Option<&[u8]>>(row, 8)?.map(digest).transpose()?,
        })
    };
    connection.rows(text, &[(&campaign, Type::INT4)])?.iter().map(read).collect()
}

/// The sections of a campaign, in order.
pub(crate) fn sections(connection: &mut Connection, campaign: i32) -> Result<Vec<Place>, DbError> {
    let text = "SELECT before, units, unit, info FROM vyre.section WHERE campaign = $1 ORDER BY number";
    let mut places: Vec<Place> = Vec::new();
    for row in connection.rows(text, &[(&campaign, Type::INT4)])? {
        let [before, units, unit] = [get::<i64>(&row, 0)?, get(&row, 1)?, get(&row, 2)?].map(|n| n as u64);
        let info: String = get(&row, 3)?;
        let info: SectionInfo = serde_json::from_str(&info).map_err(|error| DbError::Damaged(format!("a section: {error}")))?;
        let follows = places.last().is_none_or(|last| last.before + last.units == before && last.info.id < info.id);
        if !follows || unit == 0 || info.cases.div_ceil(unit) != units {
            return Err(DbError::Damaged(format!("the section `{}` is not at its place", info.id)));
        }
        places.push(Place { before, units, unit, info });
    }
    Ok(places)
}

impl Store for Runs {
    fn path(&self) -> &Path {
        &self.path
    }

    fn for_each_unit(&self, each: &mut dyn FnMut(&str, UnitRecord)) -> Result<(), LedgerError> {
        self.between(0, self.campaign.units, each)
    }

    fn units_between(&self, section: &str, from: u64, to: Option<u64>) -> Result<Vec<UnitRecord>, LedgerError> {
        let Some(place) = self.sections.iter().find(|place| place.info.id == section) else { return Ok(Vec::new()) };
        let number = |case: u64| place.before + case.div_ceil(place.unit).min(place.units);
        let mut found = Vec::new();
        self.between(number(from), to.map_or(place.before + place.units, number), &mut |_, record| found.push(record))?;
        Ok(found)
    }

    fn failures(&self) -> Result<Vec<ParityFailure>, LedgerError> {
        let text = "SELECT f.what FROM vyre.failure f JOIN vyre.answer a ON a.id = f.answer \
                    WHERE f.class = $1 AND NOT a.void ORDER BY a.lo, f.id";
        let rows = self.connection.borrow_mut().rows(text, &[(&self.class.id, Type::INT4)]).map_err(|error| self.error(error))?;
        let read = |row: &postgres::Row| {
            let what: String = get(row, 0).map_err(|error| self.error(error))?;
            serde_json::from_str(&what).map_err(|error| self.damaged(format!("a failure: {error}")))
        };
        rows.iter().map(read).collect()
    }

    fn remarks(&self) -> Result<Vec<(String, String, String)>, LedgerError> {
        let text = "SELECT r.section, r.kind, r.what FROM vyre.remark r JOIN vyre.answer a ON a.id = r.answer \
                    WHERE r.class = $1 AND NOT a.void ORDER BY a.lo, r.id";
        let rows = self.connection.borrow_mut().rows(text, &[(&self.class.id, Type::INT4)]).map_err(|error| self.error(error))?;
        // The last one stands, as in a file.
        let mut remarks = BTreeMap::new();
        for row in rows {
            let read = || Ok::<_, DbError>(((get(&row, 0)?, get(&row, 1)?), get(&row, 2)?));
            let (key, what): ((String, String), String) = read().map_err(|error| self.error(error))?;
            remarks.insert(key, what);
        }
        Ok(remarks.into_iter().map(|((section, kind), what)| (section, kind, what)).collect())
    }

    fn sections(&self) -> Result<Vec<SectionInfo>, LedgerError> {
        Ok(self.sections.iter().map(|place| place.info.clone()).collect())
    }

    fn info(&self) -> Result<RunInfo, LedgerError> {
        let Runs { campaign, class, .. } = self;
        let spec = &campaign.spec;
        let mut controls = Controls::committed(class.secret);
        for (place, kind, what) in self.remarks()? {
            if kind == remark::CONTROL {
                controls.add(&place, &what);
            }
        }
        let drawn = if spec.is_nonce { "nonce" } else { "seed" };
        let mut command = format!("vyre conform --backend {} --tier {} --{drawn} {}", class.backend, spec.tier, spec.seed);
        spec.queries.iter().for_each(|query| command += &format!(" '{query}'"));
        Ok(RunInfo {
            tier: Some(spec.tier.clone()),
            command,
            began: campaign.created,
            took_ms: self.last.saturating_sub(campaign.created) * 1000,
            device_name: class.device.clone().unwrap_or_else(|| class.backend.clone()),
            versions: BTreeMap::from([("vyre".to_string(), env!("CARGO_PKG_VERSION").to_string())]),
            nonce: spec.is_nonce.then_some(spec.seed),
            controls,
            still_failing: Vec::new(),
        })
    }

    fn root(&self) -> Result<Option<Digest>, LedgerError> {
        Ok(self.class.root)
    }

    fn seals(&self) -> Result<Option<Vec<(String, Seal)>>, LedgerError> {
        // To know the hash of a section its units have to be read, so nothing is gained by having seals.
        Ok(None)
    }
}
