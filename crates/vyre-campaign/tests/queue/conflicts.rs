//! Workers whose answers differ: who is not believed, what is run again, and what is drawn for second runs.

use crate::workers::{GO, answer, claim, join, quiet, right, run};
use crate::{Made, connect, range, record};
use postgres::types::Type;
use postgres::{Client, NoTls};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use vyre_campaign::{Claim, Claimed, Ended, Link, Runs, Settled, Status, Taken, settle};
use vyre_conform::evidence::{RunData, Verdict};
use vyre_conform::ledger::UnitRecord;
use vyre_conform::{Digest, Plan};
use vyre_test_postgres::{OWNER, Server};

/// The reference of these tests.
pub fn judge(plan: &Plan) -> impl FnMut(u64) -> Result<UnitRecord, String> {
    move |number| Ok(record(plan, number).1)
}

pub fn liar(server: &mut Server) {
    // All units are run twice here, so that it does not depend on luck who is found.
    let made = Made::new(server, 60, 30.0, 1.0);
    let lies = |record: &mut UnitRecord| {
        record.expected = Digest::of(["a lie"]);
        record.actual = record.expected;
    };
    let over = AtomicBool::new(false);
    let found = std::thread::scope(|scope| {
        let honest: Vec<_> = (0..3)
            .map(|n| {
                let made = &made;
                scope.spawn(move || run(made, &format!("honest{n}"), &GO, Duration::from_millis(3), right))
            })
            .collect();
        let liar = scope.spawn(|| run(&made, "liar", &GO, Duration::from_millis(3), lies));
        let settler = scope.spawn(|| {
            let mut found = Vec::new();
            let mut connection = connect(&made.db);
            while !over.load(Ordering::Relaxed) {
                found.extend(settle(&mut connection, "c", &mut judge(&made.plan)).expect("the server is there"));
                std::thread::sleep(Duration::from_millis(20));
            }
            found
        });
        for worker in honest {
            assert_eq!(worker.join().expect("it ends").ended, Ended::Done);
        }
        assert_eq!(liar.join().expect("it ends").ended, Ended::Banned);
        over.store(true, Ordering::Relaxed);
        settler.join().expect("it ends")
    });
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].why.contains("(liar) is not believed: the reference expects other bytes of test.part000:numbers"),
        "{found:?}"
    );
    assert_eq!(server.sql(&made.database, "SELECT name FROM vyre.worker WHERE state = 2"), "liar");
    assert_eq!(
        server.sql(
            &made.database,
            "SELECT count(*) FROM vyre.answer a JOIN vyre.worker w ON w.id = a.worker WHERE NOT void AND w.name = 'liar'"
        ),
        "0"
    );
    let status = Status::read(&mut connect(&made.db), "c").expect("a campaign");
    assert!(status.classes[0].findings[0].contains("is not believed"), "a conflict stays a finding: {}", status.text());
    assert!(status.classes[0].checked_share() >= 0.999, "what the liar checked is checked again: {}", status.text());
    made.check(server);
}

pub fn third(server: &mut Server) {
    let made = Made::new(server, 3, 30.0, 1.0);
    server.sql(&made.database, "DELETE FROM vyre.span; INSERT INTO vyre.span (class, lo, hi) VALUES (1, 0, 3)");
    // It knows what is expected, and says that its device gave something else.
    let broken = |record: &mut UnitRecord| {
        record.actual = Digest::of(["broken memory"]);
        record.failed = 1;
    };
    let (one, _) = join(&made, "broken");
    let held = claim(&one, 3);
    let mut wrong = range(&made.plan, 0..3);
    broken(&mut wrong.units[1].1);
    assert_eq!(one.finish(&held, &wrong, &GO, &quiet).expect("it is there"), Taken::Yes);
    server.sql(&made.database, "SELECT vyre.sweep(1, interval '-1 s')");
    let (two, _) = join(&made, "two");
    let second = claim(&two, 3);
    assert_eq!((second.kind, second.lo, second.hi), (1, 0, 3));
    assert_eq!(answer(&made, &two, &second), Taken::Yes);
    let mut connection = connect(&made.db);
    let mut look = || settle(&mut connection, "c", &mut judge(&made.plan)).expect("the server is there");
    let undecided = look();
    assert!(undecided.len() == 1 && undecided[0].why.contains("a third worker has to run it"), "{undecided:?}");
    // Neither of the two gets it, and nobody is done.
    assert_eq!(two.claim(3, &GO, &quiet).expect("it is there"), Claimed::Over(Ended::Done), "nobody else is there to wait for");
    assert_eq!(look(), Vec::new(), "nothing is new");
    let (three, _) = join(&made, "three");
    let deciding = claim(&three, 3);
    assert_eq!(deciding.kind, 2);
    assert_eq!(answer(&made, &three, &deciding), Taken::Yes);
    let decided = look();
    assert!(
        decided.len() == 1 && decided[0].why.contains("(broken) is not believed: two others gave other bytes for unit 1"),
        "{decided:?}"
    );
    rest(server, &made);
}

/// One range of all units.
fn one_range(server: &Server, made: &Made) {
    let units = made.plan.units();
    server.sql(&made.database, &format!("DELETE FROM vyre.span; INSERT INTO vyre.span (class, lo, hi) VALUES (1, 0, {units})"));
}

/// A last worker runs what is free, and nobody else is alive to wait for.
fn rest(server: &Server, made: &Made) {
    server.sql(&made.database, "UPDATE vyre.worker SET seen = seen - interval '1 hour'");
    run(made, "rest", &GO, Duration::ZERO, right);
    made.check(server);
}

/// Its device gave something else, for this unit.
fn broken(record: &mut UnitRecord, what: &str) {
    record.actual = Digest::of([what]);
    record.failed = 1;
}

/// It claims that something else is expected.
fn lies(record: &mut UnitRecord) {
    record.expected = Digest::of(["a lie"]);
    record.actual = record.expected;
}

/// Claims all that is free, and answers it with one record changed.
fn answers(made: &Made, link: &Link, change: impl Fn(&mut UnitRecord)) -> Claim {
    let held = claim(link, made.plan.units());
    let mut said = range(&made.plan, held.lo..held.hi);
    change(&mut said.units[1].1);
    assert_eq!(link.finish(&held, &said, &GO, &quiet).expect("the server is there"), Taken::Yes);
    held
}

fn look(made: &Made) -> Vec<Settled> {
    settle(&mut connect(&made.db), "c", &mut judge(&made.plan)).expect("the server is there")
}

pub fn both_lie(server: &mut Server) {
    let made = Made::new(server, 3, 30.0, 1.0);
    one_range(server, &made);
    answers(&made, &join(&made, "one").0, lies);
    answers(&made, &join(&made, "other").0, |record| record.expected = Digest::of(["another lie"]));
    let found = look(&made);
    assert!(
        found.len() == 1 && found[0].why.contains("(one) is not believed") && found[0].why.contains("(other) is not believed"),
        "{found:?}"
    );
    let status = Status::read(&mut connect(&made.db), "c").expect("a campaign");
    assert_eq!(status.classes[0].findings, [found[0].why.clone()], "both stay named");
    assert_eq!(
        server.sql(&made.database, "SELECT string_agg(name, ',' ORDER BY name) FROM vyre.worker WHERE state = 2"),
        "one,other"
    );
    rest(server, &made);
}

pub fn third_lies(server: &mut Server) {
    let made = Made::new(server, 3, 30.0, 1.0);
    one_range(server, &made);
    answers(&made, &join(&made, "broken").0, |record| broken(record, "broken memory"));
    answers(&made, &join(&made, "right").0, right);
    assert!(look(&made)[0].why.contains("a third worker has to run it"));
    answers(&made, &join(&made, "liar").0, lies);
    let found = look(&made);
    assert!(found.len() == 1 && found[0].why.contains("(liar) is not believed: the reference expects other bytes"), "{found:?}");
    // It decides nothing: a fourth does.
    assert_eq!(look(&made), Vec::new());
    answers(&made, &join(&made, "fourth").0, right);
    let found = look(&made);
    assert!(found.len() == 1 && found[0].why.contains("(broken) is not believed: two others gave other bytes"), "{found:?}");
    rest(server, &made);
}

pub fn unsteady(server: &mut Server) {
    // The first answer holds, and no two are the same.
    let made = Made::new(server, 3, 30.0, 1.0);
    one_range(server, &made);
    let [one, two, three] = ["one", "two", "three"].map(|name| join(&made, name).0);
    answers(&made, &one, right);
    answers(&made, &two, |record| broken(record, "something"));
    look(&made);
    answers(&made, &three, |record| broken(record, "something else"));
    let found = look(&made);
    assert!(found.len() == 1 && found[0].why.contains("the device does not give the same bytes each time"), "{found:?}");
    let runs = Runs::open(&format!("{}#c/dev", server.url(OWNER, &made.database))).expect("the run");
    let data = RunData::of(&runs, runs.identity(), runs.is_finished()).expect("it is whole");
    assert_eq!(data.totals().failed, 1, "what holds only sometimes does not hold");
    let failures = &data.failures;
    assert!(failures.len() == 1 && failures[0].message.contains("three workers gave three different answers"), "{failures:?}");
    assert!(!matches!(data.verdict(|_| false, |_| false), Verdict::Holds));
}

/// While it is settled that a worker is not believed, another one answers a part of what compares with it.
pub fn answered_meanwhile(server: &mut Server) {
    let made = Made::new(server, 8, 30.0, 1.0);
    one_range(server, &made);
    let liar = join(&made, "liar").0;
    let first = claim(&liar, 4);
    let second = claim(&liar, 4);
    for (held, lie) in [(first, true), (second, false)] {
        let mut said = range(&made.plan, held.lo..held.hi);
        if lie {
            said.units.iter_mut().for_each(|(_, record)| lies(record));
        }
        assert_eq!(liar.finish(&held, &said, &GO, &quiet), Ok(Taken::Yes));
    }
    let (one, other) = (join(&made, "one").0, join(&made, "other").0);
    let (held, open) = (claim(&one, 4), claim(&other, 4));
    assert_eq!((held.kind, open.kind, held.lo), (1, 1, 0));
    assert_eq!(answer(&made, &one, &held), Taken::Yes);
    // Half of a range is answered, so that the rest becomes two more; the transaction is still open when it is settled.
    let mut slow = Client::connect(&server.url(OWNER, &made.database), NoTls).expect("the server is there");
    slow.batch_execute("BEGIN").expect("a transaction");
    let ask =
        serde_json::json!({ "token": other.token(), "span": open.span, "fence": open.fence, "to": open.lo + 2 }).to_string();
    let mut bytes = Vec::new();
    range(&made.plan, open.lo..open.lo + 2).units.iter().for_each(|(section, unit)| {
        vyre_campaign::record::encode(section, unit, &mut bytes);
    });
    slow.query_typed("SELECT vyre.finish($1::text::jsonb, $2)::text", &[(&ask, Type::TEXT), (&bytes.as_slice(), Type::BYTEA)])
        .expect("it is taken");
    let found = std::thread::scope(|scope| {
        let settles = scope.spawn(|| look(&made));
        let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
        while server.sql(&made.database, waits) == "0" {
            assert!(!settles.is_finished(), "it does not wait for the answer that is on its way");
            std::thread::sleep(Duration::from_millis(10));
        }
        slow.batch_execute("COMMIT").expect("it is in");
        settles.join().expect("it ends")
    });
    assert!(found.len() == 1 && found[0].why.contains("(liar) is not believed"), "{found:?}");
    let orphans = "SELECT (SELECT count(*) FROM vyre.span s WHERE kind > 0 AND NOT EXISTS \
                     (SELECT FROM vyre.answer a WHERE a.id = s.answer AND NOT a.void)), \
                   (SELECT count(*) FROM vyre.answer a WHERE NOT void AND NOT EXISTS (SELECT FROM vyre.span s WHERE s.id = a.span))";
    assert_eq!(server.sql(&made.database, orphans), "0|0", "nothing compares with an answer that does not count");
    rest(server, &made);
}

/// An answer is drawn for a second run with the same probability, whenever it comes.
pub fn drawn_evenly(server: &mut Server) {
    let made = Made::new(server, 400, 30.0, 0.5);
    let link = join(&made, "one").0;
    for _ in 0..400 {
        let held = claim(&link, 1);
        assert_eq!(answer(&made, &link, &held), Taken::Yes);
    }
    let drawn = |text: &str| -> u64 { server.sql(&made.database, text).parse().expect("a number") };
    // Of the last hundred about 50 +- 5: 20 and 80 are six standard deviations away.
    let last = drawn(
        "SELECT count(*) FROM vyre.span WHERE kind = 1 AND answer IN (SELECT id FROM vyre.answer ORDER BY id DESC LIMIT 100)",
    );
    assert!((20..=80).contains(&last), "{last}");
    // What chance left out of the share is drawn once all answers are in, and no more than that.
    server.sql(&made.database, "DELETE FROM vyre.span WHERE kind = 1; SELECT vyre.sweep(1, interval '-1 s')");
    assert_eq!(drawn("SELECT count(DISTINCT answer) FROM vyre.span WHERE kind = 1"), 200);
    // Nobody can choose what is drawn: setseed() does not matter.
    let twice = "SELECT setseed(0.5); SELECT vyre.draw(); SELECT setseed(0.5); SELECT vyre.draw()";
    let said = server.sql(&made.database, twice);
    let numbers: Vec<f64> = said.lines().filter_map(|line| line.parse().ok()).collect();
    assert!(numbers.len() == 2 && numbers[0] != numbers[1] && numbers.iter().all(|n| (0.0..1.0).contains(n)), "{said}");
}
