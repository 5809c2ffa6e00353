//! Every order in which two workers and the sweeper can take their steps, on the functions of the database themselves.
//!
//! Each call is one transaction that locks what it changes, so what two workers and a sweeper do is a sequence of calls. All sequences are
//! tried: one is a branch of a tree, and the database goes back up the tree with savepoints. After every step the ranges must be a partition
//! of the units, every range that is done has one answer, and an answer is taken if and only if its worker still held the range. At every
//! leaf a third worker runs what is left, and all units must be in, once.

use crate::{Made, record};
use postgres::types::Type;
use postgres::{Client, NoTls};
use serde_json::{Value, json};
use vyre_test_postgres::{OWNER, Server};

const UNITS: u64 = 4;

/// A step of somebody.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Asks for so many units.
    Claim(u64),
    /// Answers all of what it claimed last.
    Finish,
    /// Answers the first unit of it, and gives back the rest.
    FinishOne,
    /// Answers the same once more, as a worker does that did not hear what was said.
    Again,
    /// Says that it cannot run it.
    GiveUp,
    /// Is there, and holds what it claimed last, or does not know of it.
    Beat(bool),
    /// The lease of this worker ends, and somebody notices.
    Expire(usize),
}

/// Whoever takes steps: two workers, then the sweeper.
const PROGRAMS: [[&[Step]; 3]; 4] = [
    [
        &[Step::Claim(3), Step::Finish, Step::Again],
        &[Step::Claim(2), Step::FinishOne, Step::Claim(9), Step::Finish],
        &[Step::Expire(0), Step::Expire(1)],
    ],
    [
        &[Step::Claim(2), Step::Beat(true), Step::Finish],
        &[Step::Claim(4), Step::Beat(false), Step::Finish],
        &[Step::Expire(0), Step::Expire(1)],
    ],
    [
        &[Step::Claim(4), Step::GiveUp, Step::Claim(4), Step::Finish],
        &[Step::Claim(4), Step::GiveUp, Step::Claim(1)],
        &[Step::Expire(0), Step::Expire(1)],
    ],
    [
        &[Step::Claim(1), Step::FinishOne, Step::Again],
        &[Step::Claim(1), Step::Finish, Step::Again],
        &[Step::Expire(1), Step::Expire(0)],
    ],
];

/// Orders of all that: (3 + 4 + 2)! / (3! 4! 2!) and so on.
const ORDERS: u64 = 1260 + 560 + 1260 + 560;

/// What a worker knows, and what is true.
#[derive(Clone, Default)]
struct Held {
    /// Range, first unit, behind the last, fence.
    claim: Option<(i64, u64, u64, i64)>,
    /// Whether the database still holds it to be this worker's.
    is_valid: bool,
    /// The answer that was given last, and whether it was taken.
    said: Option<(Value, Vec<u8>, bool)>,
}

struct Tree<'a> {
    client: Client,
    made: &'a Made,
    leaves: u64,
    steps: u64,
}

pub fn every_order(server: &mut Server) {
    let made = Made::new(server, UNITS, 1000.0, 0.0);
    server.sql(&made.database, "DELETE FROM vyre.span; INSERT INTO vyre.span (class, lo, hi) VALUES (1, 0, 4)");
    let mut client = Client::connect(&server.url(OWNER, &made.database), NoTls).expect("the server is there");
    for worker in 0..3 {
        let hello = json!({
            "layout": 1, "campaign": "c", "token": format!("w{worker}"), "name": "w", "backend": "dev", "fingerprint": "f",
            "version": "1", "device": "d", "forms": "", "caps": [],
        });
        client.query_typed("SELECT vyre.beat($1::text::jsonb)::text", &[(&hello.to_string(), Type::TEXT)]).expect("it is in");
    }
    let mut tree = Tree { client, made: &made, leaves: 0, steps: 0 };
    for programs in PROGRAMS {
        tree.batch("BEGIN");
        tree.grow(&programs, [0; 3], &mut [Held::default(), Held::default()], &mut Vec::new());
        tree.batch("ROLLBACK");
        // What was rolled back is out of the way of the next.
        tree.batch("VACUUM");
    }
    assert_eq!(tree.leaves, ORDERS, "{} steps were taken", tree.steps);
}

impl Tree<'_> {
    fn batch(&mut self, text: &str) {
        self.client.batch_execute(text).expect("a statement");
    }

    fn call(&mut self, text: &str, ask: &Value, records: Option<&[u8]>) -> Value {
        let ask = ask.to_string();
        let rows = match records {
            None => self.client.query_typed(text, &[(&ask, Type::TEXT)]),
            Some(records) => self.client.query_typed(text, &[(&ask, Type::TEXT), (&records, Type::BYTEA)]),
        };
        let rows = rows.unwrap_or_else(|error| panic!("{text} {ask}: {error:?}"));
        serde_json::from_str(rows[0].get(0)).expect("JSON")
    }

    /// Tries every order of what is left of the programs.
    fn grow(&mut self, programs: &[&[Step]; 3], at: [usize; 3], held: &mut [Held; 2], path: &mut Vec<(usize, Step)>) {
        let mut is_leaf = true;
        for who in 0..3 {
            let Some(step) = programs[who].get(at[who]) else { continue };
            is_leaf = false;
            let before = held.clone();
            let depth = path.len();
            self.batch(&format!("SAVEPOINT s{depth}"));
            path.push((who, *step));
            self.step(who, *step, held, path);
            self.partition(path);
            let mut next = at;
            next[who] += 1;
            self.grow(programs, next, held, path);
            path.pop();
            self.batch(&format!("ROLLBACK TO SAVEPOINT s{depth}; RELEASE SAVEPOINT s{depth}"));
            *held = before;
        }
        if is_leaf {
            self.leaves += 1;
            let depth = path.len();
            self.batch(&format!("SAVEPOINT s{depth}"));
            self.rest(path);
            self.batch(&format!("ROLLBACK TO SAVEPOINT s{depth}; RELEASE SAVEPOINT s{depth}"));
        }
    }

    fn step(&mut self, who: usize, step: Step, held: &mut [Held; 2], path: &[(usize, Step)]) {
        self.steps += 1;
        match step {
            Step::Claim(units) => {
                let said = self.call(
                    "SELECT vyre.claim($1::text::jsonb)::text",
                    &json!({ "token": format!("w{who}"), "units": units }),
                    None,
                );
                let Some(span) = said["span"].as_i64() else {
                    assert!(said["wait"].is_string() || said["over"].is_string(), "{path:?}: {said}");
                    return;
                };
                let number = |key: &str| said[key].as_i64().expect("a number");
                held[who] = Held {
                    claim: Some((span, number("lo") as u64, number("hi") as u64, number("fence"))),
                    is_valid: true,
                    said: None,
                };
            }
            Step::Finish | Step::FinishOne | Step::GiveUp => {
                let Some((span, lo, hi, fence)) = held[who].claim else { return };
                let to = match step {
                    Step::FinishOne => lo + 1,
                    Step::GiveUp => lo,
                    Step::Claim(_) | Step::Finish | Step::Again | Step::Beat(_) | Step::Expire(_) => hi,
                };
                let mut ask = json!({ "token": format!("w{who}"), "span": span, "fence": fence, "to": to });
                if let Step::GiveUp = step {
                    ask["gives_up"] = json!("because");
                }
                let mut bytes = Vec::new();
                for number in lo..to {
                    let (section, record) = record(&self.made.plan, number);
                    vyre_campaign::record::encode(&section, &record, &mut bytes);
                }
                let taken = self.finish(&ask, &bytes);
                assert_eq!(taken, held[who].is_valid, "{path:?}: an answer counts if and only if its worker holds the range");
                let is_answer = !matches!(step, Step::GiveUp);
                held[who].said = is_answer.then_some((ask, bytes, taken));
                held[who].is_valid = false;
                held[who].claim = None;
            }
            Step::Again => {
                let Some((ask, bytes, was_taken)) = held[who].said.clone() else { return };
                assert_eq!(self.finish(&ask, &bytes), was_taken, "{path:?}: said twice it is the same as said once");
            }
            Step::Beat(knows) => {
                let holds: Vec<i64> = held[who].claim.iter().filter(|_| knows).map(|(span, ..)| *span).collect();
                let ask = json!({ "layout": 1, "campaign": "c", "token": format!("w{who}"), "holds": holds });
                self.call("SELECT vyre.beat($1::text::jsonb)::text", &ask, None);
                held[who].is_valid &= knows;
            }
            Step::Expire(worker) => {
                self.batch(&format!(
                    "UPDATE vyre.worker SET seen = seen - interval '1 hour' WHERE token = 'w{worker}'; SELECT vyre.sweep(1, interval '-1 s')"
                ));
                held[worker].is_valid = false;
            }
        }
    }

    fn finish(&mut self, ask: &Value, bytes: &[u8]) -> bool {
        let said = self.call("SELECT vyre.finish($1::text::jsonb, $2)::text", ask, Some(bytes));
        said["taken"].as_bool() == Some(true)
    }

    /// Ranges are a partition of the units, and exactly those that are done have an answer, which is that of the last fence.
    fn partition(&mut self, path: &[(usize, Step)]) {
        let text = "SELECT (SELECT sum(hi - lo) FROM vyre.span WHERE kind = 0)::bigint, \
                      (SELECT count(*) FROM vyre.span a JOIN vyre.span b ON a.id < b.id AND a.lo < b.hi AND b.lo < a.hi), \
                      (SELECT count(*) FROM vyre.span s WHERE (s.state = 2) <> EXISTS (SELECT FROM vyre.answer a WHERE a.span = s.id \
                        AND NOT a.void AND a.lo = s.lo AND a.hi = s.hi AND a.fence = s.fence AND a.worker = s.owner))";
        let row = self.client.query_typed(text, &[]).expect("a row").pop().expect("a row");
        assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1), row.get::<_, i64>(2)), (UNITS as i64, 0, 0), "{path:?}");
    }

    /// A third worker runs what nobody has run.
    fn rest(&mut self, path: &[(usize, Step)]) {
        self.batch("UPDATE vyre.worker SET seen = seen - interval '1 hour' WHERE token <> 'w2'");
        for _ in 0..20 {
            let said = self.call("SELECT vyre.claim($1::text::jsonb)::text", &json!({ "token": "w2", "units": 2 }), None);
            let Some(span) = said["span"].as_i64() else {
                assert_eq!(said["over"], "done", "{path:?}");
                let done = "SELECT coalesce(sum(hi - lo), 0)::bigint FROM vyre.answer WHERE NOT void";
                let row = self.client.query_typed(done, &[]).expect("a row").pop().expect("a row");
                assert_eq!(row.get::<_, i64>(0), UNITS as i64, "{path:?}");
                return;
            };
            let number = |key: &str| said[key].as_i64().expect("a number");
            let (lo, hi) = (number("lo") as u64, number("hi") as u64);
            let mut bytes = Vec::new();
            for number in lo..hi {
                let (section, record) = record(&self.made.plan, number);
                vyre_campaign::record::encode(&section, &record, &mut bytes);
            }
            let ask = json!({ "token": "w2", "span": span, "fence": number("fence"), "to": hi });
            assert!(self.finish(&ask, &bytes), "{path:?}");
        }
        panic!("{path:?}: it does not come to an end");
    }
}
