//! A worker: claims ranges of units, runs them, answers.
//!
//! It may call three functions of the database and does nothing else there. What it holds is written down in one place, and told with
//! every beat, so that a claim whose answer was lost on the way is not lost for good. A database that is away is waited for: an answer is
//! given again until somebody has heard it, and given twice it is the same as given once.
//!
//! Clocks of workers are asked only for how long something took.

use crate::create::{LAYOUT, Spec};
use crate::db::{Connection, Db, DbError};
use crate::record;
use postgres::types::Type;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use vyre_conform::Digest;
use vyre_conform::ledger::Range;

/// Whoever runs units: a device with the suite.
pub trait Hand {
    /// Runs a unit and adds what came of it; a first run with what is planted behind it.
    ///
    /// # Errors
    ///
    /// Why nothing was learned.
    fn run(&mut self, unit: u64, is_first: bool, range: &mut Range) -> Result<(), String>;

    /// The same for a unit with which three workers were lost: nothing in it may end this process.
    ///
    /// # Errors
    ///
    /// Why nothing was learned.
    fn alone(&mut self, unit: u64, range: &mut Range) -> Result<(), String>;
}

/// A device, as a worker tells it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Device {
    /// The backend's id.
    pub backend: String,
    /// Its version, if it says one.
    pub version: Option<String>,
    /// What tells it from others.
    pub fingerprint: String,
    /// The device, for people.
    pub name: String,
    /// The forms in which units are run, as a run's settings name them.
    pub forms: String,
    /// What it is capable of: `f64`, `subgroups`, `grid-sync`.
    pub caps: Vec<String>,
}

/// How a worker works.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The campaign.
    pub campaign: String,
    /// The worker, for people: its host and process.
    pub name: String,
    /// What a claim is worth.
    pub claim: Duration,
    /// How long a database that is away is waited for.
    pub patience: Duration,
}

/// What a worker is told when it comes.
#[derive(Clone, PartialEq, Debug)]
pub struct Heard {
    /// The device class that it works for.
    pub class: String,
    /// What the campaign is about.
    pub spec: Spec,
    /// Units of the class.
    pub units: u64,
    /// The lease.
    pub lease: Duration,
    /// Where controls are.
    pub secret: Digest,
}

/// Why a worker came to its end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ended {
    /// Everything is done.
    Done,
    /// The campaign was cancelled.
    Cancelled,
    /// What it said is not believed: its answers were not those of others, nor of the reference.
    Banned,
    /// It was told to stop.
    Stopped,
}

/// What a worker has done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Work {
    /// Why it came to its end.
    pub ended: Ended,
    /// Units whose answers were taken.
    pub units: u64,
    /// Ranges whose answers were taken.
    pub claims: u64,
    /// Answers that came too late.
    pub late: u64,
    /// Units that could not be run, and why, the first time.
    pub problem: Option<String>,
}

/// A range that is held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Claim {
    /// Its number.
    pub span: i64,
    /// The first unit.
    pub lo: u64,
    /// Behind the last one.
    pub hi: u64,
    /// What an answer must have.
    pub fence: i64,
    /// 0 for a first run, 1 for a second, 2 for a third.
    pub kind: i64,
    /// Whether it is to be run case by case.
    pub is_alone: bool,
}

/// What is said to a claim.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Claimed {
    /// A range.
    Range(Claim),
    /// There is none at this moment; what is waited for.
    Wait(String),
    /// There is none any more.
    Over(Ended),
}

/// What is said to an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Taken {
    /// It is in.
    Yes,
    /// It came too late, and somebody else has the range.
    Late,
}

/// A worker's connection, with what it holds.
pub struct Link {
    db: Db,
    token: String,
    hello: Value,
    patience: Duration,
    inner: Mutex<Inner>,
}

struct Inner {
    connection: Option<Connection>,
    holds: BTreeSet<i64>,
    /// Whether it was said that the database is away.
    is_away: bool,
}

/// Makes a hand, in the thread that it works in.
pub type MakeHand<'h> = Box<dyn FnOnce() -> Result<Box<dyn Hand + 'h>, String> + Send + 'h>;

/// Hears what a worker has to say meanwhile.
pub type Tell<'a> = &'a (dyn Fn(&str) + Sync);

/// What a worker may say to a campaign that has no place for its device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Joined<T> {
    /// It is in.
    In(T),
    /// No class is of its device; these there are.
    NoClass(String),
}

impl Link {
    /// Comes to a campaign with a device.
    ///
    /// # Errors
    ///
    /// If there is no such campaign, or the database is away, or does not let the worker in.
    pub fn join(
        db: &Db,
        settings: &Settings,
        device: &Device,
        stop: &AtomicBool,
        tell: Tell<'_>,
    ) -> Result<Joined<(Link, Heard)>, DbError> {
        let random = || getrandom::u64().map_err(|error| DbError::Away(format!("the system gives no random numbers: {error}")));
        let token = format!("{:016x}{:016x}", random()?, random()?);
        let Device { backend, version, fingerprint, name, forms, caps } = device;
        let hello = json!({
            "layout": LAYOUT, "campaign": settings.campaign, "token": token, "name": settings.name, "backend": backend,
            "version": version, "fingerprint": fingerprint, "device": name, "forms": forms, "caps": caps,
        });
        let inner = Mutex::new(Inner { connection: None, holds: BTreeSet::new(), is_away: false });
        let link = Link { db: db.clone(), token, hello, patience: settings.patience, inner };
        let heard = link.beat(false, stop, tell)?;
        if let Some(classes) = heard.get("no_class") {
            let word = |class: &Value, key: &str| class[key].as_str().map(str::to_string);
            let said = |class: &Value| match (word(class, "backend"), word(class, "fingerprint")) {
                (Some(backend), Some(fingerprint)) => format!("{backend} ({fingerprint})"),
                (backend, _) => backend.unwrap_or_default(),
            };
            let classes: Vec<String> = classes.as_array().into_iter().flatten().map(said).collect();
            return Ok(Joined::NoClass(classes.join(", ")));
        }
        let malformed = |what: &str| DbError::Damaged(format!("{}: what beat() says has no {what}", db.place()));
        let secret = heard["secret"].as_str().and_then(|text| text.parse().ok()).ok_or_else(|| malformed("secret"))?;
        let heard = Heard {
            class: heard["class"].as_str().ok_or_else(|| malformed("class"))?.into(),
            spec: serde_json::from_value(heard["spec"].clone()).map_err(|error| malformed(&format!("spec: {error}")))?,
            units: heard["units"].as_u64().ok_or_else(|| malformed("units"))?,
            lease: heard["lease"].as_f64().and_then(|s| Duration::try_from_secs_f64(s).ok()).ok_or_else(|| malformed("lease"))?,
            secret,
        };
        Ok(Joined::In((link, heard)))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        // A thread that panicked has left nothing half done: what is held is changed in one step.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls one of the three functions, until it was heard or patience has an end.
    fn call(
        &self,
        inner: &mut Inner,
        text: &str,
        ask: &Value,
        records: Option<&[u8]>,
        stop: &AtomicBool,
        tell: Tell<'_>,
    ) -> Result<Value, DbError> {
        let began = Instant::now();
        let mut pause = Duration::from_millis(50);
        // The database has no text with a zero in it.
        let ask = ask.to_string().replace("\\u0000", "\\ufffd");
        loop {
            let error = match self.once(inner, text, &ask, records) {
                Ok(value) => {
                    if std::mem::take(&mut inner.is_away) {
                        tell(&format!("{} is there again", self.db.place()));
                    }
                    return Ok(value);
                }
                Err(DbError::Away(why)) => why,
                Err(error) => return Err(error),
            };
            inner.connection = None;
            if !std::mem::replace(&mut inner.is_away, true) {
                tell(&format!("{error}; nothing is lost, and it is tried again"));
            }
            // Whoever is told to stop gives a restart of the server its time, and no more.
            let is_told = stop.load(Ordering::Relaxed);
            if began.elapsed() > if is_told { self.patience.min(Duration::from_secs(10)) } else { self.patience } {
                return Err(DbError::Away(error));
            }
            std::thread::sleep(jittered(pause));
            pause = (pause * 2).min(Duration::from_secs(2));
        }
    }

    fn once(&self, inner: &mut Inner, text: &str, ask: &str, records: Option<&[u8]>) -> Result<Value, DbError> {
        let connection = match &mut inner.connection {
            Some(connection) => connection,
            none @ None => none.insert(self.db.connect()?),
        };
        let row = match records {
            None => connection.row(text, &[(&ask, Type::TEXT)])?,
            Some(records) => connection.row(text, &[(&ask, Type::TEXT), (&records, Type::BYTEA)])?,
        };
        let said: String = crate::db::get(&row, 0)?;
        serde_json::from_str(&said).map_err(|error| DbError::Damaged(format!("{}: {error}", self.db.place())))
    }

    /// Says that the worker is there, and what it holds.
    fn beat(&self, leaves: bool, stop: &AtomicBool, tell: Tell<'_>) -> Result<Value, DbError> {
        let mut inner = self.inner();
        let mut hello = self.hello.clone();
        hello["holds"] = json!(inner.holds);
        hello["leaves"] = json!(leaves);
        self.call(&mut inner, "SELECT vyre.beat($1::text::jsonb)::text", &hello, None, stop, tell)
    }

    /// Says that the worker is there, for those that do not [`work`].
    ///
    /// # Errors
    ///
    /// If the database is away for too long, or refuses.
    pub fn alive(&self, stop: &AtomicBool, tell: Tell<'_>) -> Result<(), DbError> {
        self.beat(false, stop, tell).map(|_| ())
    }

    /// Asks for a range of at most so many units.
    ///
    /// # Errors
    ///
    /// If the database is away for too long, or refuses.
    pub fn claim(&self, units: u64, stop: &AtomicBool, tell: Tell<'_>) -> Result<Claimed, DbError> {
        let mut inner = self.inner();
        let ask = json!({ "token": self.token, "units": units, "holds": inner.holds });
        let said = self.call(&mut inner, "SELECT vyre.claim($1::text::jsonb)::text", &ask, None, stop, tell)?;
        if let Some(wait) = said["wait"].as_str() {
            return Ok(Claimed::Wait(wait.into()));
        }
        if let Some(over) = said["over"].as_str() {
            return Ok(Claimed::Over(match over {
                "done" => Ended::Done,
                "banned" => Ended::Banned,
                _ => Ended::Cancelled,
            }));
        }
        let number = |key: &str| said[key].as_i64().filter(|n| *n >= 0);
        let claim = (|| {
            Some(Claim {
                span: number("span")?,
                lo: number("lo")? as u64,
                hi: number("hi")? as u64,
                fence: number("fence")?,
                kind: number("kind")?,
                is_alone: said["alone"].as_bool()?,
            })
        })();
        let claim = claim.ok_or_else(|| DbError::Damaged(format!("{}: claim() says {said}", self.db.place())))?;
        inner.holds.insert(claim.span);
        Ok(Claimed::Range(claim))
    }

    /// Gives the answer to a range, as far as it got: a record for each unit, in order.
    ///
    /// # Errors
    ///
    /// If the database is away for too long, or refuses.
    pub fn finish(
        &self,
        claim: &Claim,
        range: &Range,
        took: Duration,
        stop: &AtomicBool,
        tell: Tell<'_>,
    ) -> Result<Taken, DbError> {
        let mut records = Vec::with_capacity(range.units.len() * record::BYTES);
        range.units.iter().for_each(|(section, unit)| record::encode(section, unit, &mut records));
        let ask = json!({
            "token": self.token, "span": claim.span, "fence": claim.fence, "to": claim.lo + range.units.len() as u64,
            "took_ms": took.as_millis() as u64, "failures": range.failures, "remarks": range.remarks,
        });
        self.answer(claim, &ask, &records, stop, tell)
    }

    /// Says that a range cannot be run here.
    ///
    /// # Errors
    ///
    /// If the database is away for too long, or refuses.
    pub fn give_up(&self, claim: &Claim, why: &str, stop: &AtomicBool, tell: Tell<'_>) -> Result<Taken, DbError> {
        let ask = json!({ "token": self.token, "span": claim.span, "fence": claim.fence, "to": claim.lo, "gives_up": why });
        self.answer(claim, &ask, &[], stop, tell)
    }

    /// What both say, in the words of the database.
    ///
    /// # Errors
    ///
    /// If the database is away for too long, or refuses.
    pub fn answer(
        &self,
        claim: &Claim,
        ask: &Value,
        records: &[u8],
        stop: &AtomicBool,
        tell: Tell<'_>,
    ) -> Result<Taken, DbError> {
        let mut inner = self.inner();
        let text = "SELECT vyre.finish($1::text::jsonb, $2)::text";
        let said = self.call(&mut inner, text, ask, Some(records), stop, tell)?;
        inner.holds.remove(&claim.span);
        Ok(if said["taken"].as_bool() == Some(true) { Taken::Yes } else { Taken::Late })
    }

    /// The worker's token, for answers in the words of the database.
    #[must_use]
    pub fn token(&self) -> &str {
        &self.token
    }
}

/// A pause that is not the same for all who wait.
fn jittered(pause: Duration) -> Duration {
    let share = getrandom::u64().unwrap_or(1 << 63) >> 32;
    pause / 2 + pause.mul_f64(share as f64 / (1u64 << 32) as f64)
}

/// What the threads of a worker share.
struct Shared<'a> {
    link: &'a Link,
    settings: &'a Settings,
    stop: &'a AtomicBool,
    tell: Tell<'a>,
    work: Mutex<Work>,
    /// Becomes true when the campaign has no use for this worker any more.
    is_over: AtomicBool,
}

/// Works until everything is done or it is told to stop: what is begun is brought to the end of its unit, and what is left of a range
/// goes back. One thread for each hand.
///
/// # Errors
///
/// If the database is away for too long, or refuses.
pub fn work<'h>(
    link: &Link,
    heard: &Heard,
    settings: &Settings,
    hands: Vec<MakeHand<'h>>,
    stop: &AtomicBool,
    tell: Tell<'_>,
) -> Result<Work, DbError> {
    let work = Work { ended: Ended::Stopped, units: 0, claims: 0, late: 0, problem: None };
    let shared = Shared { link, settings, stop, tell, work: Mutex::new(work), is_over: AtomicBool::new(false) };
    let ended = AtomicBool::new(false);
    let worked = std::thread::scope(|scope| {
        let shared = &shared;
        let beats = scope.spawn(|| beats(shared, heard.lease, &ended));
        let threads: Vec<_> = hands.into_iter().map(|make| scope.spawn(move || one(shared, make))).collect();
        let panicked = |_| {
            shared.problem("a thread panicked");
            Ok(())
        };
        let ends: Vec<Result<(), DbError>> = threads.into_iter().map(|thread| thread.join().unwrap_or_else(panicked)).collect();
        ended.store(true, Ordering::Relaxed);
        beats.thread().unpark();
        let _ = beats.join();
        ends.into_iter().collect::<Result<Vec<()>, DbError>>()
    });
    // Whoever cannot say goodbye is missed after a lease.
    let _ = link.beat(true, stop, tell);
    worked?;
    Ok(shared.work.into_inner().unwrap_or_else(PoisonError::into_inner))
}

impl Shared<'_> {
    fn note(&self, note: impl FnOnce(&mut Work)) {
        note(&mut self.work.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn problem(&self, why: &str) {
        (self.tell)(why);
        self.note(|work| {
            work.problem.get_or_insert_with(|| why.to_string());
        });
    }

    fn is_to_stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.is_over.load(Ordering::Relaxed)
    }
}

/// Says that the worker is there, four times in a lease.
fn beats(shared: &Shared<'_>, lease: Duration, ended: &AtomicBool) {
    while !ended.load(Ordering::Relaxed) {
        std::thread::park_timeout(lease / 4);
        if ended.load(Ordering::Relaxed) {
            return;
        }
        // What is wrong with the database, the threads that work hear too.
        if let Ok(said) = shared.link.beat(false, shared.stop, shared.tell)
            && said["state"] != "works"
        {
            shared.is_over.store(true, Ordering::Relaxed);
        }
    }
}

/// One thread.
fn one<'h>(shared: &Shared<'_>, make: MakeHand<'h>) -> Result<(), DbError> {
    let mut hand = match make() {
        Ok(hand) => hand,
        Err(why) => {
            shared.problem(&why);
            return Ok(());
        }
    };
    let Shared { link, settings, stop, tell, .. } = shared;
    // Nothing is known about the first claim, so it is one unit.
    let mut units = 1;
    let mut pause = Duration::from_millis(20);
    let mut gave_up = 0;
    while !stop.load(Ordering::Relaxed) {
        let claim = match link.claim(units, stop, *tell)? {
            Claimed::Range(claim) => claim,
            Claimed::Wait(why) => {
                if why == "judge" {
                    pause = Duration::from_millis(500);
                }
                std::thread::sleep(jittered(pause));
                pause = (pause * 2).min(Duration::from_millis(500));
                continue;
            }
            Claimed::Over(ended) => {
                shared.note(|work| work.ended = ended);
                return Ok(());
            }
        };
        pause = Duration::from_millis(20);
        let began = Instant::now();
        let (range, problem) = run(shared, &mut *hand, &claim, began);
        let (count, took) = (range.units.len() as u64, began.elapsed());
        let taken = match &problem {
            Some(why) if count == 0 => link.give_up(&claim, why, stop, *tell)?,
            Some(_) | None => link.finish(&claim, &range, took, stop, *tell)?,
        };
        shared.note(|work| match taken {
            Taken::Yes => {
                work.units += count;
                work.claims += u64::from(count > 0);
            }
            Taken::Late => work.late += 1,
        });
        if let Some(why) = problem {
            shared.problem(&format!("unit {} cannot be run here: {why}", claim.lo + count));
            gave_up += 1;
            if gave_up >= 3 {
                // Whoever can run nothing is not to be lost with everything.
                return Ok(());
            }
        } else if count > 0 {
            gave_up = 0;
            units = next(units, count, took, settings.claim);
        }
    }
    Ok(())
}

/// How many units are worth a claim, from what the last ones took. At most eight times as many as before: the next ones may be slower.
fn next(units: u64, count: u64, took: Duration, claim: Duration) -> u64 {
    let each = took.as_secs_f64().max(1e-6) / count as f64;
    ((claim.as_secs_f64() / each) as u64).clamp(1, (units * 8).max(1))
}

/// Runs the units of a range, until it has taken three times what it was worth.
fn run(shared: &Shared<'_>, hand: &mut dyn Hand, claim: &Claim, began: Instant) -> (Range, Option<String>) {
    let mut range = Range::default();
    for unit in claim.lo..claim.hi {
        if shared.is_to_stop() || (unit > claim.lo && began.elapsed() > shared.settings.claim * 3) {
            break;
        }
        let before = range.units.len();
        let done = match claim.is_alone {
            false => hand.run(unit, claim.kind == 0, &mut range),
            true => hand.alone(unit, &mut range),
        };
        if let Err(why) = done {
            range.units.truncate(before);
            return (range, Some(why));
        }
    }
    (range, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_become_worth_what_was_asked_for() {
        let claim = Duration::from_secs(20);
        // A millisecond each: 20,000 are wanted, and reached in steps.
        let mut units = 1;
        for _ in 0..6 {
            units = next(units, units, Duration::from_millis(units), claim);
        }
        assert_eq!(units, 20_000);
        // Then they take a second each.
        assert_eq!(next(units, 60, Duration::from_secs(60), claim), 20);
        assert_eq!(next(units, 1, Duration::from_secs(600), claim), 1);
    }
}
