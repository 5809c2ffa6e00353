//! A worker: claims ranges of units, runs them, answers.
//!
//! It calls three functions of the database and does nothing else there. With every call it says which ranges it holds, so that a range
//! whose number got lost on the way to the worker becomes free again. While the database is out of reach the worker waits and repeats what it
//! said; an answer that is given twice counts once.
//!
//! The clock of a worker only measures how long something takes.

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

/// The longest pause before the next try to reach a database that is out of reach.
const RECONNECT: Duration = Duration::from_secs(5);

/// Runs units: a device with the suite.
pub trait Hand {
    /// Runs a unit and adds the results to the range. A first run has the unit's blind control behind it, if it has one.
    ///
    /// # Errors
    ///
    /// Why the unit could not be run.
    fn run(&mut self, unit: u64, is_first: bool, range: &mut Range) -> Result<(), String>;

    /// The same for a unit with which three workers were lost: nothing that it does may end this process.
    ///
    /// # Errors
    ///
    /// Why the unit could not be run.
    fn alone(&mut self, unit: u64, range: &mut Range) -> Result<(), String>;
}

/// A device, as a worker tells it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Device {
    /// The backend's id.
    pub backend: String,
    /// Its version, if it says one.
    pub version: Option<String>,
    /// What tells the device from others.
    pub fingerprint: String,
    /// The device, for people.
    pub name: String,
    /// The forms in which units are run, as a run's settings name them.
    pub forms: String,
    /// What it is capable of: `f64`, `subgroups`, `grid-sync`, `wide`.
    pub caps: Vec<String>,
}

/// Settings of a worker.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The campaign.
    pub campaign: String,
    /// The worker, for people: its host and process.
    pub name: String,
    /// How long the units of one claim are to take.
    pub claim: Duration,
    /// How long the worker waits for a database that is out of reach.
    pub patience: Duration,
}

/// What a worker is told when it joins.
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
    /// The secret that says where controls are.
    pub secret: Digest,
}

/// Why a worker ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ended {
    /// Everything is done.
    Done,
    /// The campaign was cancelled.
    Cancelled,
    /// It is not believed: the reference or two other workers contradict it.
    Banned,
    /// It was told to stop.
    Stopped,
}

/// What a worker has done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Work {
    /// Why it ended.
    pub ended: Ended,
    /// Units whose answers were taken.
    pub units: u64,
    /// Ranges whose answers were taken.
    pub claims: u64,
    /// Answers that came too late.
    pub late: u64,
    /// Why units could not be run: the first reason.
    pub problem: Option<String>,
}

/// A range that a worker holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Claim {
    /// Its number.
    pub span: i64,
    /// The first unit.
    pub lo: u64,
    /// Behind the last one.
    pub hi: u64,
    /// The number that an answer has to have.
    pub fence: i64,
    /// 0 for a first run, 1 for a second, 2 for a third.
    pub kind: i64,
    /// Whether three workers were lost with it, so that it is run case by case.
    pub is_alone: bool,
}

/// The reply to a claim.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Claimed {
    /// A range.
    Range(Claim),
    /// There is none at this moment.
    Wait(Wait),
    /// There is none any more.
    Over(Ended),
}

/// What a worker waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// Ranges that other workers hold, which may become free.
    Others,
    /// Somebody has to decide about answers that differ, with [`settle`](crate::settle).
    Judge,
}

/// The reply to an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Taken {
    /// It counts.
    Yes,
    /// It came too late: the range was taken back.
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
    /// Whether the user was told that the database is out of reach.
    is_away: bool,
}

/// Makes a hand, in the thread that it works in.
pub type MakeHand<'h> = Box<dyn FnOnce() -> Result<Box<dyn Hand + 'h>, String> + Send + 'h>;

/// Is told what happens while a worker works.
pub type Tell<'a> = &'a (dyn Fn(&str) + Sync);

/// What came of joining a campaign.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Joined<T> {
    /// The worker has joined.
    In(T),
    /// No device class is for its device; these are the ones that there are.
    NoClass(String),
}

impl Link {
    /// Joins a campaign with a device.
    ///
    /// # Errors
    ///
    /// If there is no such campaign, or the database is out of reach or does not let the worker in.
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
        let malformed = |what: &str| DbError::Damaged(format!("{}: the answer of beat() has no {what}", db.place()));
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
        // A thread that panicked left nothing half done: what is held changes in one step.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls one of the three functions, again and again until the database has heard it or patience ends.
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
        // Text in the database cannot contain a zero.
        let ask = ask.to_string().replace("\\u0000", "\\ufffd");
        loop {
            let error = match self.once(inner, text, &ask, records) {
                Ok(value) => {
                    if std::mem::take(&mut inner.is_away) {
                        tell(&format!("{} is back", self.db.place()));
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
            // A worker that is told to stop waits as long as a restart of the server takes, and no longer.
            let is_told = stop.load(Ordering::Relaxed);
            if began.elapsed() > if is_told { self.patience.min(Duration::from_secs(10)) } else { self.patience } {
                return Err(DbError::Away(error));
            }
            std::thread::sleep(jittered(pause));
            pause = (pause * 2).min(RECONNECT);
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

    /// Says that the worker is alive, and what it holds.
    fn beat(&self, leaves: bool, stop: &AtomicBool, tell: Tell<'_>) -> Result<Value, DbError> {
        let mut inner = self.inner();
        let mut hello = self.hello.clone();
        hello["holds"] = json!(inner.holds);
        hello["leaves"] = json!(leaves);
        self.call(&mut inner, "SELECT vyre.beat($1::text::jsonb)::text", &hello, None, stop, tell)
    }

    /// The same, for workers that do not call [`work`].
    ///
    /// # Errors
    ///
    /// If the database is out of reach for too long, or refuses.
    pub fn alive(&self, stop: &AtomicBool, tell: Tell<'_>) -> Result<(), DbError> {
        self.beat(false, stop, tell).map(|_| ())
    }

    /// Asks for a range of at most so many units.
    ///
    /// # Errors
    ///
    /// If the database is out of reach for too long, or refuses.
    pub fn claim(&self, units: u64, stop: &AtomicBool, tell: Tell<'_>) -> Result<Claimed, DbError> {
        let mut inner = self.inner();
        let ask = json!({ "token": self.token, "units": units, "holds": inner.holds });
        let said = self.call(&mut inner, "SELECT vyre.claim($1::text::jsonb)::text", &ask, None, stop, tell)?;
        if let Some(wait) = said["wait"].as_str() {
            return Ok(Claimed::Wait(if wait == "judge" { Wait::Judge } else { Wait::Others }));
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
    /// If the database is out of reach for too long, or refuses.
    pub fn finish(&self, claim: &Claim, range: &Range, stop: &AtomicBool, tell: Tell<'_>) -> Result<Taken, DbError> {
        let mut records = Vec::with_capacity(range.units.len() * record::BYTES);
        range.units.iter().for_each(|(section, unit)| record::encode(section, unit, &mut records));
        let ask = json!({
            "token": self.token, "span": claim.span, "fence": claim.fence, "to": claim.lo + range.units.len() as u64,
            "failures": range.failures, "remarks": range.remarks,
        });
        self.answer(claim, &ask, &records, stop, tell)
    }

    /// Says that a range cannot be run by this worker.
    ///
    /// # Errors
    ///
    /// If the database is out of reach for too long, or refuses.
    pub fn give_up(&self, claim: &Claim, why: &str, stop: &AtomicBool, tell: Tell<'_>) -> Result<Taken, DbError> {
        let ask = json!({ "token": self.token, "span": claim.span, "fence": claim.fence, "to": claim.lo, "gives_up": why });
        self.answer(claim, &ask, &[], stop, tell)
    }

    /// What [`Link::finish`] and [`Link::give_up`] say, as the database reads it.
    ///
    /// # Errors
    ///
    /// If the database is out of reach for too long, or refuses.
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

    /// The worker's token, for answers as the database reads them.
    #[must_use]
    pub fn token(&self) -> &str {
        &self.token
    }
}

/// A pause of about this length, so that workers which wait do not all come back at once.
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
    /// Set when the campaign was cancelled, or does not believe this worker any more.
    is_over: AtomicBool,
    /// The longest pause between two claims while there is nothing to do.
    longest_pause: Duration,
    /// Whether the user was told that somebody has to decide about answers that differ.
    is_judge_missed: AtomicBool,
}

/// Works until everything is done or it is told to stop: then the units that are running are finished, and the rest of their ranges goes
/// back. There is one thread for each hand.
///
/// # Errors
///
/// If the database is out of reach for too long, or refuses.
pub fn work<'h>(
    link: &Link,
    heard: &Heard,
    settings: &Settings,
    hands: Vec<MakeHand<'h>>,
    stop: &AtomicBool,
    tell: Tell<'_>,
) -> Result<Work, DbError> {
    let work = Work { ended: Ended::Stopped, units: 0, claims: 0, late: 0, problem: None };
    let shared = Shared {
        link,
        settings,
        stop,
        tell,
        work: Mutex::new(work),
        is_over: AtomicBool::new(false),
        longest_pause: heard.lease / 4,
        is_judge_missed: AtomicBool::new(false),
    };
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
    // If this cannot be said, the lease ends instead.
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

    /// Waits for a while that grows with the time since there was nothing to do: what this adds stays small beside it, and ten thousand
    /// workers that wait for the last one do not ask all the time.
    fn rest(&self, since: Instant) {
        let pause = (since.elapsed() / 4).clamp(Duration::from_millis(20), self.longest_pause.max(Duration::from_millis(20)));
        let until = Instant::now() + jittered(pause);
        while !self.is_to_stop() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            std::thread::sleep(left.min(Duration::from_millis(100)));
        }
    }
}

/// Says that the worker is alive, four times in a lease.
fn beats(shared: &Shared<'_>, lease: Duration, ended: &AtomicBool) {
    while !ended.load(Ordering::Relaxed) {
        std::thread::park_timeout(lease / 4);
        if ended.load(Ordering::Relaxed) {
            return;
        }
        // The threads that work meet the same errors, and tell them.
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
    // Nobody knows yet how long a unit takes, so the first claim is one unit.
    let mut units = 1;
    let mut idle_since = None;
    let mut gave_up = 0;
    while !stop.load(Ordering::Relaxed) {
        let claim = match link.claim(units, stop, *tell)? {
            Claimed::Range(claim) => claim,
            Claimed::Wait(wait) => {
                if wait == Wait::Judge && !shared.is_judge_missed.swap(true, Ordering::Relaxed) {
                    let name = &settings.campaign;
                    tell(&format!(
                        "answers of two workers differ, and this one waits until it is decided who is right: \
                         `vyre campaign status {name}` does that, on the machine of the campaign's owner"
                    ));
                }
                shared.rest(*idle_since.get_or_insert_with(Instant::now));
                continue;
            }
            Claimed::Over(ended) => {
                shared.note(|work| work.ended = ended);
                return Ok(());
            }
        };
        idle_since = None;
        let began = Instant::now();
        let (range, problem) = run(shared, &mut *hand, &claim, began);
        let (count, took) = (range.units.len() as u64, began.elapsed());
        let taken = match &problem {
            Some(why) if count == 0 => link.give_up(&claim, why, stop, *tell)?,
            Some(_) | None => link.finish(&claim, &range, stop, *tell)?,
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
                // A worker that can run nothing must not take every range from those that can.
                return Ok(());
            }
        } else if count > 0 {
            gave_up = 0;
            units = next(units, count, took, settings.claim);
        }
    }
    Ok(())
}

/// How many units the next claim is to have, judging by how long the last ones took. At most eight times as many as before: the next ones may
/// be slower.
fn next(units: u64, count: u64, took: Duration, claim: Duration) -> u64 {
    let each = took.as_secs_f64().max(1e-6) / count as f64;
    ((claim.as_secs_f64() / each) as u64).clamp(1, (units * 8).max(1))
}

/// Runs the units of a range, and stops early once it has taken three times as long as a claim is to take.
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
        // A millisecond each: 20,000 are wanted, and reached step by step.
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
