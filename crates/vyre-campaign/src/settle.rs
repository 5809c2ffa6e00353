//! What happens when two workers answer differently about the same units.
//!
//! A conflict is a finding, and is never passed over. The reference is asked first, on the machine of whoever owns the campaign: what is
//! expected follows from the suite alone, so a worker that says something else about that has lied, or its memory has. If both say what the
//! reference says and their devices gave different bytes, a third worker runs the range, and whoever stands alone is not believed. Who is
//! not believed is asked for nothing more, and all that it ever answered is run again.

use crate::create::campaign;
use crate::db::{Connection, DbError, Param, get};
use crate::record;
use crate::runs::{Place, classes, sections};
use postgres::types::Type;
use vyre_conform::ledger::UnitRecord;

/// Units of a conflict that the reference is asked about.
const ASKED: usize = 16;

/// What came of a conflict.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settled {
    /// The device class.
    pub class: String,
    /// What was found, for people.
    pub why: String,
}

/// Someone who knows what is expected of a unit: the record that a device gives that is the reference.
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

    /// Its record of a unit.
    fn unit(&self, place: &Place, number: u64) -> Result<UnitRecord, String> {
        let at = (number - self.lo) as usize * record::BYTES;
        let (first, cases) = place.cases(number);
        record::decode(&place.info.id, first, cases, self.records.get(at..at + record::BYTES).unwrap_or_default())
    }

    fn who(&self) -> String {
        format!("worker {} ({})", self.worker, self.name)
    }
}

/// What is known about two answers.
enum Finding {
    /// They say the same about bytes after all.
    Same,
    /// These are wrong, and this is how one sees it.
    Wrong(Vec<usize>, String),
    /// Both know what is expected; their devices gave different bytes.
    Undecided(u64),
}

/// Decides about the conflicts of a campaign that can be decided.
///
/// # Errors
///
/// If the database cannot be asked; what the judge cannot do is a text in the list, and the conflict stays.
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
                lo: get::<i64>(&row, 1)? as u64,
                hi: get::<i64>(&row, 2)? as u64,
                one: get(&row, 3)?,
                other: get(&row, 4)?,
                waits_for_third: get::<i16>(&row, 5)? == 1,
            };
            if let Some(why) = conflict.settle(connection, &places, judge)? {
                settled.push(Settled { class: class.name.clone(), why });
            }
        }
    }
    Ok(settled)
}

struct Conflict {
    id: i64,
    class: i32,
    lo: u64,
    hi: u64,
    one: i64,
    other: i64,
    waits_for_third: bool,
}

impl Conflict {
    fn settle(&self, connection: &mut Connection, places: &[Place], judge: Judge<'_>) -> Result<Option<String>, DbError> {
        let (Some(one), Some(other)) = (Answer::read(connection, self.one)?, Answer::read(connection, self.other)?) else {
            // Whoever gave one of them is not believed any more, and what it said is run again.
            self.close(connection, None, None)?;
            return Ok(None);
        };
        let both = [&one, &other];
        if self.waits_for_third {
            return self.third(connection, places, both);
        }
        let found = match self.compare(places, both, judge) {
            Ok(found) => found,
            Err(why) => return Ok(Some(format!("units {} to {}: {why}", self.lo, self.hi))),
        };
        match found {
            Finding::Same => {
                self.close(connection, None, None)?;
                Ok(None)
            }
            Finding::Wrong(who, how) => {
                let mut said = Vec::new();
                for n in who {
                    said.push(format!("{} is not believed: {how}", both[n].who()));
                    self.ban(connection, both[n], &said[said.len() - 1])?;
                }
                Ok(Some(said.join("; ")))
            }
            Finding::Undecided(unit) => {
                connection.together(|connection| {
                    connection.rows("UPDATE vyre.conflict SET state = 1 WHERE id = $1 AND state = 0", &[(&self.id, Type::INT8)])?;
                    connection.rows(
                        "INSERT INTO vyre.span (class, lo, hi, kind, answer, not_by) VALUES ($1, $2, $3, 2, $4, ARRAY[$5, $6]::bigint[])",
                        &[
                            (&self.class, Type::INT4),
                            (&(self.lo as i64), Type::INT8),
                            (&(self.hi as i64), Type::INT8),
                            (&one.id, Type::INT8),
                            (&one.worker, Type::INT8),
                            (&other.worker, Type::INT8),
                        ],
                    )
                })?;
                let (one, other) = (one.who(), other.who());
                Ok(Some(format!(
                    "{one} and {other} know what is expected of unit {unit}, and their devices gave different bytes: a third worker runs it"
                )))
            }
        }
    }

    /// Asks the reference about the units in which two answers differ.
    fn compare(&self, places: &[Place], both: [&Answer; 2], judge: Judge<'_>) -> Result<Finding, String> {
        let mut asked = 0;
        let mut undecided = None;
        for number in self.lo..self.hi {
            let Some(place) = places.iter().find(|place| (place.before..place.before + place.units).contains(&number)) else {
                continue;
            };
            let records = match both.map(|answer| answer.unit(place, number)) {
                [Ok(one), Ok(other)] => [one, other],
                records => {
                    let wrong: Vec<usize> = (0..2).filter(|n| records[*n].is_err()).collect();
                    let how = records.into_iter().find_map(Result::err).unwrap_or_default();
                    return Ok(Finding::Wrong(wrong, how));
                }
            };
            let section = &place.info.id;
            // Of litmus tests several outcomes are right.
            if place.info.is_order_dependent || records[0].leaf(section) == records[1].leaf(section) {
                continue;
            }
            let reference = judge(number)?;
            let wrong: Vec<usize> = (0..2).filter(|n| contradicts(&records[*n], &reference)).collect();
            if !wrong.is_empty() {
                let first = reference.first;
                return Ok(Finding::Wrong(wrong, format!("the reference expects other bytes of {section}:{first} than it said")));
            }
            undecided.get_or_insert(number);
            asked += 1;
            if asked == ASKED {
                break;
            }
        }
        Ok(undecided.map_or(Finding::Same, Finding::Undecided))
    }

    /// Looks whether the third worker agrees with one of the two.
    fn third(&self, connection: &mut Connection, places: &[Place], both: [&Answer; 2]) -> Result<Option<String>, DbError> {
        let text = "SELECT a.id FROM vyre.span s LEFT JOIN vyre.answer a ON a.span = s.id AND NOT a.void \
                    WHERE s.class = $1 AND s.kind = 2 AND s.answer = $2 AND s.lo < $4 AND s.hi > $3 ORDER BY s.lo";
        let (lo, hi) = (self.lo as i64, self.hi as i64);
        let params: [Param<'_>; 4] = [(&self.class, Type::INT4), (&self.one, Type::INT8), (&lo, Type::INT8), (&hi, Type::INT8)];
        let mut agrees = [true, true];
        let mut differs = None;
        for row in connection.rows(text, &params)? {
            let Some(id) = get::<Option<i64>>(&row, 0)? else { return Ok(None) };
            let Some(third) = Answer::read(connection, id)? else { return Ok(None) };
            let end = third.lo + (third.records.len() / record::BYTES) as u64;
            for number in third.lo.max(self.lo)..end.min(self.hi) {
                let Some(place) = places.iter().find(|place| (place.before..place.before + place.units).contains(&number)) else {
                    continue;
                };
                if place.info.is_order_dependent {
                    continue;
                }
                let leaf = |answer: &Answer| answer.unit(place, number).map(|record| record.leaf(&place.info.id));
                for (agrees, answer) in agrees.iter_mut().zip(both) {
                    if leaf(answer) != leaf(&third) {
                        *agrees = false;
                        differs = Some(number);
                    }
                }
            }
        }
        let unit = differs.unwrap_or(self.lo);
        match agrees {
            [true, false] | [false, true] => {
                let alone = both[usize::from(agrees[0])];
                let why = format!("{} is not believed: two others gave other bytes for unit {unit}", alone.who());
                self.ban(connection, alone, &why)?;
                Ok(Some(why))
            }
            [false, false] | [true, true] => {
                let why = format!(
                    "three workers gave three answers about unit {unit}: the device does not give the same bytes each time"
                );
                self.close(connection, None, Some(&why))?;
                Ok(Some(why))
            }
        }
    }

    fn close(&self, connection: &mut Connection, liar: Option<i64>, why: Option<&str>) -> Result<(), DbError> {
        connection
            .rows(
                "UPDATE vyre.conflict SET state = 2, liar = $2, why = $3 WHERE id = $1",
                &[(&self.id, Type::INT8), (&liar, Type::INT8), (&why, Type::TEXT)],
            )
            .map(|_| ())
    }

    /// Whoever gave this answer is not believed: nothing that it ever said stands.
    fn ban(&self, connection: &mut Connection, answer: &Answer, why: &str) -> Result<(), DbError> {
        let liar = answer.worker;
        connection.together(|connection| {
            // Its row first, as everywhere: an answer that is on its way waits, and is late then.
            connection.rows("UPDATE vyre.worker SET state = 2 WHERE id = $1", &[(&liar, Type::INT8)])?;
            for text in [
                // Second runs by it, and of what it said, say nothing.
                "WITH gone AS (DELETE FROM vyre.span WHERE kind > 0 \
                   AND (owner = $1 OR answer IN (SELECT id FROM vyre.answer WHERE worker = $1)) RETURNING id) \
                 UPDATE vyre.answer SET void = true WHERE NOT void AND kind > 0 AND span IN (SELECT id FROM gone)",
                "UPDATE vyre.answer SET void = true WHERE NOT void AND worker = $1",
                "UPDATE vyre.span SET state = 0, owner = NULL, fence = fence + 1, lost = 0 WHERE owner = $1 AND state > 0",
                "UPDATE vyre.class SET root = NULL WHERE id = (SELECT class FROM vyre.worker WHERE id = $1)",
            ] {
                connection.rows(text, &[(&liar, Type::INT8)])?;
            }
            self.close(connection, Some(liar), Some(why))
        })
    }
}

/// Whether a record says about what is expected something else than the reference does.
fn contradicts(record: &UnitRecord, reference: &UnitRecord) -> bool {
    // What was skipped is not part of the hash, so that there is nothing to compare.
    record.tested == record.cases && reference.tested == reference.cases && record.expected != reference.expected
}
