//! A large campaign, as large ones are.

use crate::{Made, record, root};
use std::time::Instant;
use vyre_campaign::Runs;
use vyre_conform::evidence::RunData;
use vyre_test_postgres::{OWNER, Server};

/// Units that are read: a million with `VYRE_MILLION=1`, else a twentieth of that.
pub fn million(server: &mut Server) {
    let units: u64 = if std::env::var_os("VYRE_MILLION").is_some() { 1_000_000 } else { 50_000 };
    let made = Made::new(server, units, 30.0, 0.0);
    let mut client = postgres::Client::connect(&server.url(OWNER, &made.database), postgres::NoTls).expect("the server is there");
    client.batch_execute("DELETE FROM vyre.span; INSERT INTO vyre.worker (class, token, name, fingerprint, caps) VALUES (1, 't', 'w', 'f', '{}')").expect("a worker");
    let text = "WITH s AS (INSERT INTO vyre.span (class, lo, hi, state, owner, fence) VALUES (1, $1, $2, 2, 1, 1) RETURNING id)
        INSERT INTO vyre.answer (class, span, kind, lo, hi, worker, fence, records) SELECT 1, id, 0, $1, $2, 1, 1, $3 FROM s";
    let mut lo = 0;
    while lo < units {
        let hi = units.min(lo + 400);
        let mut bytes = Vec::new();
        for number in lo..hi {
            let (section, record) = record(&made.plan, number);
            vyre_campaign::record::encode(&section, &record, &mut bytes);
        }
        client.execute(text, &[&(lo as i64), &(hi as i64), &bytes]).expect("an answer");
        lo = hi;
    }
    let began = Instant::now();
    let runs = Runs::open(&server.url(OWNER, &made.database)).expect("the run");
    let data = RunData::of(&runs, runs.identity(), runs.is_finished()).expect("it is whole");
    eprintln!("{units} units read and checked in {:?}", began.elapsed());
    assert_eq!((data.root, data.totals().units), (root(&made.plan), units));
    // A byte that changed on the way is found, and named.
    client
        .batch_execute(
            "UPDATE vyre.answer SET records = set_byte(records, 97 * 7 + 3, get_byte(records, 97 * 7 + 3) # 1) WHERE lo = 400",
        )
        .expect("a change");
    let error = RunData::of(&runs, runs.identity(), true).expect_err("it is damaged").to_string();
    assert!(error.contains("the record of test.part000:numbers:26048"), "{error}");
}
