//! What happens when two workers answer differently about the same units.
//!
//! Two answers that differ are a finding and are never ignored. First the reference is asked, on the machine of whoever owns the campaign:
//! what is expected follows from the suite alone, so a worker that claims something else about it has lied, or its memory is broken. If
//! both expect what the reference expects and their devices gave different bytes, a third worker runs the range, and the one that nobody
//! agrees with is not believed. A worker that is not believed gets no more work, and everything that it ever answered is run again. If all
//! three differ, the device does not repeat itself: then the answers in which it failed are the ones that count.

use crate::create::campaign;
use crate::db::{Connection, DbError, Param, get};
use crate::record;
use crate::runs::{Place, classes, sections};
use postgres::types::Type;
use vyre_conform::ledger::UnitRecord;
use vyre_conform::{FindingKind, ParityFailure};

/// In how many units of a conflict the reference is asked.
const ASKED: usize = 16;

/// What came of a conflict.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settled {
    /// The device class.
    pub class: String,
    /// What was found, for people.
    pub why: String,
}

/// Knows what is expected of a unit: gives the record of a device that is the reference.
pub type Judge<'a> = &'a mut dyn FnMut(u64) -> Result<UnitRecord, String>;

struct Answer {
    id: i64,
    worker: i64,
    name: String,
    lo: u64,
    records: Vec<u8>,
}

impl Answer {
    fn read(connection: &mut Connection, id: i64) -> Result<Option<Answer>, DbError> {
        let text = "SELECT a.id, a.worker, w.name, a.lo, a.records FROM vyre.answer a JOIN vyre.worker w ON w.id = a.worker \
                    WHERE a.id = $1 AND NOT a.void";
        let rows = connection.rows(text, &[(&id, Type::INT8)])?;
        let read = |row: &postgres::Row| {
            Ok(Answer {
                id: get(row, 0)?,
                worker: get(row, 1)?,
                name: get(row, 2)?,
                lo: get::<i64>(row, 3)? as u64,
                records: get(row, 4)?,
            })
        };
        rows.first().map(read).transpose()
    }

    fn hi(&self) -> u64 {
        self.lo + (self.records.len() / record::BYTES) as u64
    }

    /// Its record of a unit, as bytes.
    fn bytes(&self, number: u64) -> &[u8] {
        let at = (number - self.lo) as usize * record::BYTES;
        self.records.get(at..at + record::BYTES).unwrap_or_default()
    }

    /// Its record of a unit.
    fn unit(&self, place: &Place, number: u64) -> Result<UnitRecord, String> {
        let (first, cases) = place.cases(number);
        record::decode(&place.info.id, first, cases, self.bytes(number))
    }

    /// Whether it says the same of a unit as another answer.
    fn agrees(&self, other: &Answer, place: &Place, number: u64) -> bool {
        let leaf = |answer: &Answer| answer.unit(place, number).map(|record| record.leaf(&place.info.id));
        leaf(self) == leaf(other)
    }

    fn who(&self) -> String {
        format!("worker {} ({})", self.worker, self.name)
    }
}

/// What is known about two answers.
enum Finding {
    /// They say the same about bytes after all.
    Same,
    /// These are wrong, each with the reason.
    Wrong(Vec<(usize, String)>),
    /// Both expect what the reference expects of this unit; their devices gave different bytes.
    Undecided(u64),
}

/// Settles the conflicts of a campaign that can be settled.
///
/// # Errors
///
/// If the database cannot be asked. If the judge fails, the reason is in the list and the conflict stays.
pub fn settle(connection: &mut Connection, name: &str, judge: Judge<'_>) -> Result<Vec<Settled>, DbError> {
    let campaign = campaign(connection, name)?;
    let mut settled = Vec::new();
    for class in classes(connection, campaign.id)? {
        let text = "SELECT id, lo, hi, one, other, state FROM vyre.conflict WHERE class = $1 AND state < 2 ORDER BY id";
        let open = connection.rows(text, &[(&class.id, Type::INT4)])?;
        if open.is_empty() {
            continue;
        }
        let places = sections(connection, campaign.id)?;
        for row in open {
            let conflict = Conflict {
                id: get(&row, 0)?,
                class: class.id,
                places: &places,
                lo: get::<i64>(&row, 1)? as u64,
                hi: get::<i64>(&row, 2)? as u64,
                one: get(&row, 3)?,
                other: get(&row, 4)?,
                waits_for_third: get::<i16>(&row, 5)? == 1,
            };
            if let Some(why) = conflict.settle(connection, judge)? {
                settled.push(Settled { class: class.name.clone(), why });
            }
        }
    }
    Ok(settled)
}

struct Conflict<'a> {
    id: i64,
    class: i32,
    places: &'a [Place],
    lo: u64,
    hi: u64,
    one: i64,
    other: i64,
    waits_for_third: bool,
}

impl Conflict<'_> {
    fn settle(&self, connection: &mut Connection, judge: Judge<'_>) -> Result<Option<String>, DbError> {
        let (Some(one), Some(other)) = (Answer::read(connection, self.one)?, Answer::read(connection, self.other)?) else {
            // The worker that gave one of them is not believed any more, and what it said is run again.
            self.close(connection, None)?;
            return Ok(None);
        };
        let both = [&one, &other];
        if self.waits_for_third {
            return self.third(connection, both, judge);
        }
        let found = match self.compare(both, judge) {
            Ok(found) => found,
            Err(why) => return Ok(Some(format!("units {} to {}: {why}", self.lo, self.hi))),
        };
        match found {
            Finding::Same => {
                self.close(connection, None)?;
                Ok(None)
            }
            Finding::Wrong(wrong) => {
                let why: Vec<String> =
                    wrong.iter().map(|(n, how)| format!("{} is not believed: {how}", both[*n].who())).collect();
                let why = why.join("; ");
                let liars: Vec<&Answer> = wrong.iter().map(|(n, _)| both[*n]).collect();
                connection.together(|connection| {
                    self.ban(connection, &liars)?;
                    self.close(connection, Some(&why))
                })?;
                Ok(Some(why))
            }
            Finding::Undecided(unit) => {
                let (lo, hi) = (self.lo as i64, self.hi as i64);
                connection.together(|connection| {
                    connection.rows("UPDATE vyre.conflict SET state = 1 WHERE id = $1 AND state = 0", &[(&self.id, Type::INT8)])?;
                    connection.rows(
                        "INSERT INTO vyre.span (class, lo, hi, kind, answer, not_by) VALUES ($1, $2, $3, 2, $4, ARRAY[$5, $6]::bigint[])",
                        &[
                            (&self.class, Type::INT4),
                            (&lo, Type::INT8),
                            (&hi, Type::INT8),
                            (&one.id, Type::INT8),
                            (&one.worker, Type::INT8),
                            (&other.worker, Type::INT8),
                        ],
                    )
                })?;
                let (one, other) = (one.who(), other.who());
                Ok(Some(format!(
                    "{one} and {other} both expect what the reference expects of unit {unit}, and their devices gave different bytes: \
                     a third worker has to run it"
                )))
            }
        }
    }

    /// The units in which the bytes of two answers are to be the same, with their sections.
    fn units(&self, lo: u64, hi: u64) -> impl Iterator<Item = (u64, &Place)> {
        let place = |number| self.places.iter().find(|place| (place.before..place.before + place.units).contains(&number));
        let units = (lo.max(self.lo)..hi.min(self.hi)).filter_map(move |number| Some((number, place(number)?)));
        // Of litmus tests several outcomes are right.
        units.filter(|(_, place)| !place.info.is_order_dependent)
    }

    /// Asks the reference about the units in which two answers differ.
    fn compare(&self, both: [&Answer; 2], judge: Judge<'_>) -> Result<Finding, String> {
        let mut asked = 0;
        let mut undecided = None;
        for (number, place) in self.units(self.lo, self.hi) {
            let records = match both.map(|answer| answer.unit(place, number)) {
                [Ok(one), Ok(other)] => [one, other],
                records => {
                    let wrong = records.into_iter().enumerate().filter_map(|(n, record)| Some((n, record.err()?)));
                    return Ok(Finding::Wrong(wrong.collect()));
                }
            };
            let section = &place.info.id;
            if records[0].leaf(section) == records[1].leaf(section) {
                continue;
            }
            let reference = judge(number)?;
            let wrong = (0..2).filter(|n| contradicts(&records[*n], &reference));
            let wrong: Vec<_> = wrong.map(|n| (n, expects_otherwise(section, &reference))).collect();
            if !wrong.is_empty() {
                return Ok(Finding::Wrong(wrong));
            }
            undecided.get_or_insert(number);
            asked += 1;
            if asked == ASKED {
                break;
            }
        }
        Ok(undecided.map_or(Finding::Same, Finding::Undecided))
    }

    /// Looks with which of the two the third worker agrees.
    fn third(&self, connection: &mut Connection, both: [&Answer; 2], judge: Judge<'_>) -> Result<Option<String>, DbError> {
        let text = "SELECT a.id FROM vyre.span s LEFT JOIN vyre.answer a ON a.span = s.id AND NOT a.void \
                    WHERE s.class = $1 AND s.kind = 2 AND s.answer = $2 AND s.lo < $4 AND s.hi > $3 ORDER BY s.lo";
        let (lo, hi) = (self.lo as i64, self.hi as i64);
        let params: [Param<'_>; 4] = [(&self.class, Type::INT4), (&self.one, Type::INT8), (&lo, Type::INT8), (&hi, Type::INT8)];
        let mut agrees = [true, true];
        let mut differs = None;
        for row in connection.rows(text, &params)? {
            // Not all of it has been run.
            let Some(id) = get::<Option<i64>>(&row, 0)? else { return Ok(None) };
            let Some(third) = Answer::read(connection, id)? else { return Ok(None) };
            for (number, place) in self.units(third.lo, third.hi()) {
                let agreed = both.map(|answer| answer.agrees(&third, place, number));
                if agreed == [true, true] {
                    continue;
                }
                agrees = [agrees[0] && agreed[0], agrees[1] && agreed[1]];
                differs = Some((number, place));
                let how = match (third.unit(place, number), judge(number)) {
                    (Err(how), _) => Some(how),
                    (_, Err(why)) => return Ok(Some(format!("unit {number}: {why}"))),
                    (Ok(said), Ok(reference)) => {
                        contradicts(&said, &reference).then(|| expects_otherwise(&place.info.id, &reference))
                    }
                };
                if let Some(how) = how {
                    // Its range is free again, for yet another worker.
                    let why = format!("{} is not believed: {how}", third.who());
                    connection.together(|connection| {
                        self.ban(connection, &[&third])?;
                        connection.rows(
                            "INSERT INTO vyre.conflict (class, lo, hi, one, other, state, why) VALUES ($1, $2, $3, $4, $5, 2, $6)",
                            &[
                                (&self.class, Type::INT4),
                                (&lo, Type::INT8),
                                (&hi, Type::INT8),
                                (&self.one, Type::INT8),
                                (&third.id, Type::INT8),
                                (&why, Type::TEXT),
                            ],
                        )
                    })?;
                    return Ok(Some(why));
                }
            }
        }
        let Some((unit, place)) = differs else {
            // What the two differed in does not differ any more.
            self.close(connection, None)?;
            return Ok(None);
        };
        let why = match agrees {
            [true, false] | [false, true] => {
                let alone = both[usize::from(agrees[0])];
                let why = format!("{} is not believed: two others gave other bytes for unit {unit}", alone.who());
                connection.together(|connection| {
                    self.ban(connection, &[alone])?;
                    self.close(connection, Some(&why))
                })?;
                why
            }
            [false, false] | [true, true] => {
                let why = format!(
                    "three workers gave three different answers for unit {unit}: the device does not give the same bytes each time"
                );
                connection.together(|connection| {
                    self.fails(connection, both, place, &why)?;
                    self.close(connection, Some(&why))
                })?;
                why
            }
        };
        Ok(Some(why))
    }

    /// Of a device that does not repeat itself the answers in which it failed count: a unit that holds only sometimes does not hold.
    fn fails(&self, connection: &mut Connection, both: [&Answer; 2], place: &Place, why: &str) -> Result<(), DbError> {
        let [one, other] = both;
        let mut records = one.records.clone();
        for (number, place) in self.units(other.lo, other.hi()) {
            if other.unit(place, number).is_ok_and(|unit| unit.failed > 0) {
                let at = (number - one.lo) as usize * record::BYTES;
                records[at..at + record::BYTES].copy_from_slice(other.bytes(number));
            }
        }
        connection
            .rows("UPDATE vyre.answer SET records = $2 WHERE id = $1", &[(&one.id, Type::INT8), (&records, Type::BYTEA)])?;
        let failure = ParityFailure {
            op_id: place.info.op.clone(),
            generator: place.info.space.clone(),
            input_label: String::new(),
            input: Vec::new(),
            gpu_output: Vec::new(),
            cpu_output: Vec::new(),
            message: why.into(),
            spec_version: place.info.version,
            workgroup_size: place.info.workgroup,
            kind: FindingKind::Nondeterministic,
            unit: place.info.id.clone(),
        };
        let what = serde_json::to_string(&failure).map_err(|error| DbError::Damaged(error.to_string()))?;
        let text = "INSERT INTO vyre.failure (answer, class, op, what) VALUES ($1, $2, $3, $4)";
        let op = &place.info.op;
        connection
            .rows(text, &[(&one.id, Type::INT8), (&self.class, Type::INT4), (op, Type::TEXT), (&what, Type::TEXT)])
            .map(|_| ())
    }

    fn close(&self, connection: &mut Connection, why: Option<&str>) -> Result<(), DbError> {
        let text = "UPDATE vyre.conflict SET state = 2, why = $2 WHERE id = $1";
        connection.rows(text, &[(&self.id, Type::INT8), (&why, Type::TEXT)]).map(|_| ())
    }

    /// The workers that gave these answers are not believed: nothing that they ever said counts.
    fn ban(&self, connection: &mut Connection, answers: &[&Answer]) -> Result<(), DbError> {
        let liars: Vec<i64> = answers.iter().map(|answer| answer.worker).collect();
        let liars: Param<'_> = (&liars, Type::INT8_ARRAY);
        // Their rows first, as everywhere: an answer that is on its way waits, and is late then.
        connection.rows("UPDATE vyre.worker SET state = 2 WHERE id = ANY ($1)", std::slice::from_ref(&liars))?;
        // Nobody draws second runs meanwhile, and those that are lost here are drawn anew.
        let text = "UPDATE vyre.class SET root = NULL, is_drawn = false WHERE id = $1";
        connection.rows(text, &[(&self.class, Type::INT4)])?;
        // Nobody cuts a range in two meanwhile: the new part would not be seen here.
        connection.batch("LOCK TABLE vyre.span IN SHARE ROW EXCLUSIVE MODE")?;
        for text in [
            // Second and third runs of what they said show nothing any more.
            "DELETE FROM vyre.span WHERE kind > 0 AND answer IN (SELECT id FROM vyre.answer WHERE worker = ANY ($1))",
            "UPDATE vyre.answer SET void = true WHERE NOT void AND (worker = ANY ($1) \
               OR kind > 0 AND NOT EXISTS (SELECT FROM vyre.span WHERE span.id = answer.span))",
            // What they ran is free for others, second and third runs too.
            "UPDATE vyre.span SET state = 0, owner = NULL, fence = fence + 1, lost = 0 WHERE owner = ANY ($1) AND state > 0",
        ] {
            connection.rows(text, std::slice::from_ref(&liars))?;
        }
        Ok(())
    }
}

fn expects_otherwise(section: &str, reference: &UnitRecord) -> String {
    format!("the reference expects other bytes of {section}:{} than it said", reference.first)
}

/// Whether a record says about what is expected something else than the reference does.
fn contradicts(record: &UnitRecord, reference: &UnitRecord) -> bool {
    // What was skipped is not part of the hash, so that there is nothing to compare.
    record.tested == record.cases && reference.tested == reference.cases && record.expected != reference.expected
}
