//! Workers, one and many: what they hold, lose and give back.

use crate::{Made, connect, range, record};
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use vyre_campaign::{Claim, Claimed, Device, Ended, Hand, Heard, Joined, Link, Settings, Status, Taken, Work, work};
use vyre_conform::Plan;
use vyre_conform::ledger::{Range, UnitRecord};
use vyre_test_postgres::Server;

/// A device that gives right answers, or not.
pub struct Fake<'a> {
    pub plan: &'a Plan,
    pub delay: Duration,
    /// Changes a record.
    pub change: fn(&mut UnitRecord),
    /// Units that were run alone.
    pub alone: Option<&'a Mutex<BTreeSet<u64>>>,
}

impl Hand for Fake<'_> {
    fn run(&mut self, unit: u64, _: bool, range: &mut Range) -> Result<(), String> {
        std::thread::sleep(self.delay);
        let (section, mut record) = record(self.plan, unit);
        (self.change)(&mut record);
        range.units.push((section, record));
        Ok(())
    }

    fn alone(&mut self, unit: u64, range: &mut Range) -> Result<(), String> {
        if let Some(alone) = self.alone {
            alone.lock().expect("nobody panics").insert(unit);
        }
        self.run(unit, true, range)
    }
}

pub fn settings(name: &str) -> Settings {
    let (claim, patience) = (Duration::from_millis(50), Duration::from_secs(60));
    Settings { campaign: "c".into(), name: name.into(), claim, patience }
}

pub fn device() -> Device {
    Device {
        backend: "dev".into(),
        version: Some("1".into()),
        fingerprint: "f".into(),
        name: "a device".into(),
        forms: "one".into(),
        caps: Vec::new(),
    }
}

pub fn quiet(_: &str) {}

/// Nobody is told to stop.
pub static GO: AtomicBool = AtomicBool::new(false);

pub fn join(made: &Made, name: &str) -> (Link, Heard) {
    match Link::join(&made.db, &settings(name), &device(), &GO, &quiet).expect("the server is there") {
        Joined::In(joined) => joined,
        Joined::NoClass(there) => panic!("there is only {there}"),
    }
}

pub fn claim(link: &Link, units: u64) -> Claim {
    match link.claim(units, &GO, &quiet).expect("the server is there") {
        Claimed::Range(claim) => claim,
        other @ (Claimed::Wait(_) | Claimed::Over(_)) => panic!("{other:?}"),
    }
}

pub fn answer(made: &Made, link: &Link, claim: &Claim) -> Taken {
    link.finish(claim, &range(&made.plan, claim.lo..claim.hi), &GO, &quiet).expect("the server is there")
}

pub fn run(made: &Made, name: &str, stop: &AtomicBool, delay: Duration, change: fn(&mut UnitRecord)) -> Work {
    let (link, heard) = join(made, name);
    let make = || Ok(Box::new(Fake { plan: &made.plan, delay, change, alone: None }) as Box<dyn Hand>);
    work(&link, &heard, &settings(name), vec![Box::new(make)], stop, &quiet).expect("the server is there")
}

pub fn right(_: &mut UnitRecord) {}

pub fn one_alone(server: &mut Server) {
    let made = Made::new(server, 300, 30.0, 0.02);
    let done = run(&made, "one", &GO, Duration::ZERO, right);
    assert_eq!((done.ended, done.units, done.late), (Ended::Done, 300, 0));
    made.check(server);
    let status = Status::read(&mut connect(&made.db), "c").expect("a campaign");
    assert!(
        status.is_complete() && status.classes[0].sampling().contains("no unit was run by a second worker"),
        "{}",
        status.text()
    );
}

pub fn many(server: &mut Server) {
    let made = Made::new(server, 3000, 30.0, 0.02);
    let units = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for n in 0..16 {
            let (made, units) = (&made, &units);
            scope.spawn(move || {
                let done = run(made, &format!("w{n}"), &GO, Duration::from_millis(1), right);
                assert_eq!((done.ended, done.late), (Ended::Done, 0));
                units.fetch_add(done.units, Ordering::Relaxed);
            });
        }
    });
    made.check(server);
    let status = Status::read(&mut connect(&made.db), "c").expect("a campaign");
    let class = &status.classes[0];
    assert!(class.checked_share() >= 0.02, "{}", status.text());
    assert!(units.load(Ordering::Relaxed) >= 3060, "first and second runs together");
    assert!(class.sampling().contains("% of the units were run by a second worker"), "{}", class.sampling());
    // Who ran a unit first did not run it again.
    let same = "SELECT count(*) FROM vyre.answer a JOIN vyre.answer b ON a.kind = 0 AND b.kind = 1 AND a.lo < b.hi AND b.lo < a.hi AND a.worker = b.worker";
    assert_eq!(server.sql(&made.database, same), "0");
}

/// Time passes for a worker.
fn expire(server: &Server, made: &Made, name: &str) {
    server.sql(
        &made.database,
        &format!(
            "UPDATE vyre.worker SET seen = seen - interval '1 hour' WHERE name = '{name}'; SELECT vyre.sweep(1, interval '-1 s')"
        ),
    );
}

pub fn late(server: &mut Server) {
    let made = Made::new(server, 4, 30.0, 0.0);
    let (slow, _) = join(&made, "slow");
    let held = claim(&slow, 1);
    expire(server, &made, "slow");
    let (other, _) = join(&made, "other");
    let again = loop {
        let claim = claim(&other, 1);
        if claim.lo == held.lo {
            break claim;
        }
        assert_eq!(answer(&made, &other, &claim), Taken::Yes);
    };
    assert!(again.fence > held.fence);
    // While the other runs it, and after the other has answered.
    assert_eq!(answer(&made, &slow, &held), Taken::Late);
    assert_eq!(answer(&made, &other, &again), Taken::Yes);
    assert_eq!(answer(&made, &slow, &held), Taken::Late);
    assert_eq!(answer(&made, &other, &again), Taken::Yes, "said twice is the same as said once");
    assert_eq!(server.sql(&made.database, "SELECT late FROM vyre.worker WHERE name = 'slow'"), "2");
    run(&made, "rest", &GO, Duration::ZERO, right);
    made.check(server);
}

pub fn lost_claim(server: &mut Server) {
    let made = Made::new(server, 10, 30.0, 0.0);
    let (link, heard) = join(&made, "deaf");
    // A claim that the server made, and that the worker never heard of.
    let lost = format!("SELECT vyre.claim(jsonb_build_object('token', '{}', 'units', 1))", link.token());
    server.sql(&made.database, &lost);
    assert_eq!(server.sql(&made.database, "SELECT count(*) FROM vyre.span WHERE state = 1"), "1");
    // The next beat, which is before the end of the lease, gives it back: the worker runs all units itself.
    server.sql(&made.database, "UPDATE vyre.campaign SET lease = 1");
    let heard = Heard { lease: Duration::from_millis(400), ..heard };
    let make =
        || Ok(Box::new(Fake { plan: &made.plan, delay: Duration::from_millis(1), change: right, alone: None }) as Box<dyn Hand>);
    let done = work(&link, &heard, &settings("deaf"), vec![Box::new(make)], &GO, &quiet).expect("the server is there");
    assert_eq!((done.ended, done.units), (Ended::Done, 10));
    assert_eq!(server.sql(&made.database, "SELECT sum(lost) FROM vyre.span"), "0", "nobody was lost with it");
    made.check(server);
    // A worker that asks for more has it back at once: as long as it asks it is heard from, and no lease would ever end.
    let made = Made::new(server, 2, 30.0, 0.0);
    let (link, _) = join(&made, "asks");
    server.sql(&made.database, &format!("SELECT vyre.claim(jsonb_build_object('token', '{}', 'units', 1))", link.token()));
    let held = [claim(&link, 1), claim(&link, 1)];
    assert_eq!(held.map(|claim| claim.lo), [0, 1], "both units are there, and the first is not given twice");
}

pub fn drains(server: &mut Server) {
    let made = Made::new(server, 5000, 30.0, 0.0);
    // One range, so that all of it is claimed and a part given back.
    server.sql(&made.database, "DELETE FROM vyre.span; INSERT INTO vyre.span (class, lo, hi) VALUES (1, 0, 5000)");
    let stop = AtomicBool::new(false);
    let done = std::thread::scope(|scope| {
        let worker = scope.spawn(|| run(&made, "told", &stop, Duration::from_millis(5), right));
        let done = "SELECT coalesce(sum(hi - lo), 0) FROM vyre.answer";
        while server.sql(&made.database, done) == "0" {
            std::thread::sleep(Duration::from_millis(1));
        }
        stop.store(true, Ordering::Relaxed);
        worker.join().expect("it ends")
    });
    assert_eq!(done.ended, Ended::Stopped);
    let row = server.sql(
        &made.database,
        "SELECT coalesce(sum(hi - lo) FILTER (WHERE state = 2), 0), count(*) FILTER (WHERE state = 1), sum(lost) FROM vyre.span",
    );
    assert_eq!(row, format!("{}|0|0", done.units), "what it did is in, and it holds nothing");
    assert!(done.units > 0 && done.units < 5000, "{}", done.units);
    assert_eq!(server.sql(&made.database, "SELECT state FROM vyre.worker"), "1", "it has said goodbye");
    run(&made, "rest", &GO, Duration::ZERO, right);
    made.check(server);
}

pub fn splits(server: &mut Server) {
    let made = Made::new(server, 64, 30.0, 0.0);
    server.sql(&made.database, "DELETE FROM vyre.span; INSERT INTO vyre.span (class, lo, hi) VALUES (1, 0, 64)");
    // The first units are fast, so that a long range is claimed; then each takes longer than a claim is worth.
    struct Slow<'a>(&'a Plan);
    impl Hand for Slow<'_> {
        fn run(&mut self, unit: u64, _: bool, range: &mut Range) -> Result<(), String> {
            std::thread::sleep(Duration::from_millis(if unit < 4 { 1 } else { 60 }));
            range.units.push(record(self.0, unit));
            Ok(())
        }

        fn alone(&mut self, _: u64, _: &mut Range) -> Result<(), String> {
            Err("nothing is lost here".into())
        }
    }
    let (link, heard) = join(&made, "slow");
    let make = || Ok(Box::new(Slow(&made.plan)) as Box<dyn Hand>);
    let done = work(&link, &heard, &settings("slow"), vec![Box::new(make)], &GO, &quiet).expect("the server is there");
    assert_eq!((done.ended, done.units, done.late), (Ended::Done, 64, 0));
    // No claim of units of 60 ms took more than three times its 50 ms and the unit that was running.
    let longest = server.sql(&made.database, "SELECT max(hi - lo) FROM vyre.answer WHERE lo >= 4");
    assert!(longest.parse::<u64>().expect("a number") <= 5, "{longest}");
    made.check(server);
}

pub fn quarantine(server: &mut Server) {
    let made = Made::new(server, 12, 30.0, 0.0);
    server.sql(&made.database, "DELETE FROM vyre.span; INSERT INTO vyre.span (class, lo, hi) VALUES (1, 0, 12)");
    // Three workers are lost with the whole range: its units go their own ways. One is lost once more.
    for n in 0..3 {
        let name = format!("lost{n}");
        let held = claim(&join(&made, &name).0, 12);
        assert_eq!((held.lo, held.hi, held.is_alone), (0, 12, false));
        expire(server, &made, &name);
    }
    assert_eq!(server.sql(&made.database, "SELECT count(*), max(hi - lo), min(lost) FROM vyre.span"), "12|1|2");
    let (last, _) = join(&made, "last");
    let held = claim(&last, 12);
    assert_eq!((held.hi - held.lo, held.is_alone), (1, false));
    expire(server, &made, "last");
    let status = Status::read(&mut connect(&made.db), "c").expect("a campaign");
    assert_eq!(status.classes[0].quarantined, 1, "{}", status.text());
    let alone = Mutex::new(BTreeSet::new());
    let (link, heard) = join(&made, "rest");
    let make =
        || Ok(Box::new(Fake { plan: &made.plan, delay: Duration::ZERO, change: right, alone: Some(&alone) }) as Box<dyn Hand>);
    let done = work(&link, &heard, &settings("rest"), vec![Box::new(make)], &GO, &quiet).expect("the server is there");
    assert_eq!((done.ended, done.units), (Ended::Done, 12));
    assert_eq!(*alone.lock().expect("nobody panics"), BTreeSet::from([held.lo]));
    made.check(server);
}

pub fn classes(server: &mut Server) {
    let made = Made::new(server, 4, 30.0, 0.0);
    // The class of this one is of the first device that comes.
    server.sql(&made.database, "INSERT INTO vyre.class (campaign, name, backend, any_device, secret) VALUES (1, 'gpu', 'gpu', false, decode(repeat('00', 32), 'hex')); INSERT INTO vyre.span (class, lo, hi) VALUES (2, 0, 4)");
    let come = |backend: &str, fingerprint: &str, version: &str| {
        let device =
            Device { backend: backend.into(), fingerprint: fingerprint.into(), version: Some(version.into()), ..device() };
        match Link::join(&made.db, &settings("w"), &device, &GO, &quiet).expect("the server is there") {
            Joined::In((_, heard)) => Ok(heard.class),
            Joined::NoClass(there) => Err(there),
        }
    };
    assert_eq!(come("gpu", "A", "1"), Ok("gpu".into()));
    assert_eq!(come("gpu", "A", "1"), Ok("gpu".into()));
    assert_eq!(come("gpu", "B", "1"), Err("dev, gpu (A)".into()), "another device is another device");
    assert_eq!(come("gpu", "A", "2"), Err("dev, gpu (A)".into()), "and so is another driver");
    assert_eq!(come("dev", "x", "1"), Ok("dev".into()));
    assert_eq!(come("dev", "y", "2"), Ok("dev".into()), "any device is any device");
    assert_eq!(come("tpu", "x", "1"), Err("dev (*), gpu (A)".into()));
}
