//! The queue on a real server: every order of steps, many workers that are killed and stopped, workers that lie, and errors told.
//!
//! Units are not run on devices here: a unit's record is made from its number, so that what is tested is who runs what, how often, and
//! whose answers stand. Workers that are killed are processes of this program, which starts itself.

#[path = "../server/mod.rs"]
mod server;

mod chaos;
mod errors;
mod order;
mod paper;
mod workers;

use libtest_mimic::{Arguments, Failed, Trial};
use server::{OWNER, Server};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use vyre_campaign::{Connection, Db, DeviceClass, New, Spec, WhichDevice, create};
use vyre_conform::cases::Work;
use vyre_conform::ledger::{Range, UnitRecord};
use vyre_conform::{Cases, Digest, Plan, Selection, Tier};

fn main() -> ExitCode {
    if let Some(how) = std::env::var_os("VYRE_QUEUE_WORKER") {
        return chaos::worker(&how.to_string_lossy());
    }
    let arguments = Arguments::from_args();
    // Listing needs no server.
    let server = (!arguments.list).then(|| Server::start(&[]));
    let shared = Arc::new(Mutex::new(server));
    type Test = (&'static str, fn(&mut Server));
    let tests: [Test; 16] = [
        ("every_order_of_steps_keeps_every_unit_once", order::every_order),
        ("one_worker_gives_the_root_of_the_units", workers::one_alone),
        ("many_workers_give_the_same_root_and_no_unit_twice", workers::many),
        ("a_late_answer_changes_nothing", workers::late),
        ("an_answer_that_was_lost_on_the_way_is_given_back", workers::lost_claim),
        ("a_worker_that_is_told_to_stop_gives_back_what_is_left", workers::drains),
        ("slow_ranges_are_split", workers::splits),
        ("units_that_three_workers_are_lost_with_are_run_alone", workers::quarantine),
        ("a_worker_that_lies_is_named_and_all_it_said_is_run_again", workers::liar),
        ("two_devices_that_differ_are_decided_by_a_third", workers::third),
        ("only_devices_that_a_campaign_asks_for_may_come", workers::classes),
        ("workers_may_call_three_functions_and_nothing_else", errors::rights),
        ("errors_of_a_database_say_what_to_do", errors::messages),
        ("a_connection_that_is_cut_in_a_commit_loses_nothing", errors::cut),
        ("a_million_units_are_read", paper::million),
        ("chaos", chaos::chaos),
    ];
    let trial = |(name, test): Test| {
        let shared = shared.clone();
        Trial::test(name, move || {
            let mut server = shared.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let server = server.as_mut().expect("it was started");
            let run = std::panic::AssertUnwindSafe(|| test(server));
            std::panic::catch_unwind(run).map_err(|said| {
                let text = said.downcast_ref::<String>().cloned();
                Failed::from(text.or_else(|| said.downcast_ref::<&str>().map(|text| (*text).to_string())).unwrap_or_default())
            })
        })
    };
    let conclusion = libtest_mimic::run(&arguments, tests.into_iter().map(trial).collect());
    drop(shared);
    conclusion.exit_code()
}

/// Units that nobody runs: 64 cases each.
struct Numbers {
    op: String,
    units: u64,
}

impl Cases for Numbers {
    fn op(&self) -> &str {
        &self.op
    }

    fn space(&self) -> &str {
        "numbers"
    }

    fn cases(&self) -> u64 {
        self.units * 64
    }

    fn profile(&self) -> String {
        "core".into()
    }

    fn identity(&self) -> Vec<u8> {
        self.op.as_bytes().to_vec()
    }

    fn case(&self, _: u64, _: u64) -> Work {
        unreachable!("units of these tests are not run on devices")
    }
}

/// A plan of so many units, in sections of at most 5000.
fn plan(units: u64) -> Plan {
    let section =
        |n: u64| Arc::new(Numbers { op: format!("test.part{n:03}"), units: (units - n * 5000).min(5000) }) as Arc<dyn Cases>;
    let sections = (0..units.div_ceil(5000)).map(section).collect();
    Plan::new(Vec::new(), sections, &Selection::new(Vec::<String>::new()).expect("everything"), Tier::Deep).expect("a plan")
}

/// What a right device gives.
fn record(plan: &Plan, number: u64) -> (String, UnitRecord) {
    let unit = plan.unit(number);
    let section = plan.sections()[unit.section].info().id.clone();
    let bytes = Digest::of([section.as_bytes(), &unit.first.to_le_bytes()]);
    let record = UnitRecord {
        first: unit.first,
        cases: unit.cases,
        inputs: None,
        expected: bytes,
        actual: bytes,
        tested: unit.cases,
        failed: 0,
        skipped: 0,
        referred: 1,
        confirmed: true,
    };
    (section, record)
}

/// The root of all that, without any queue.
fn root(plan: &Plan) -> Digest {
    let mut leaves = std::collections::BTreeMap::<String, std::collections::BTreeMap<u64, Digest>>::new();
    for number in 0..plan.units() {
        let (section, record) = record(plan, number);
        leaves.entry(section.clone()).or_default().insert(record.first, record.leaf(&section));
    }
    vyre_conform::ledger::root_of(&leaves)
}

/// A campaign `c` in a database of its own, with one class `dev`.
struct Made {
    database: String,
    db: Db,
    plan: Plan,
}

impl Made {
    fn new(server: &Server, units: u64, lease: f64, second: f64) -> Made {
        let database = server.database();
        let db = Db::new(&server.url(OWNER, &database)).expect("an address");
        let plan = plan(units);
        let class = DeviceClass { name: "dev".into(), backend: "dev".into(), device: WhichDevice::Any };
        create(&mut connect(&db), &New { name: "c", spec: &spec(&plan), plan: &plan, classes: &[class], lease, second })
            .expect("a campaign");
        Made { database, db, plan }
    }

    /// What must hold when all is done, whatever happened before.
    fn check(&self, server: &Server) {
        let units = self.plan.units();
        let sql = |text: &str| server.sql(&self.database, text);
        assert_eq!(sql("SELECT count(*) FROM vyre.span WHERE kind = 0 AND state <> 2"), "0", "a unit is lost");
        let counts = sql("SELECT sum(hi - lo), min(lo), max(hi) FROM vyre.answer WHERE kind = 0 AND NOT void");
        assert_eq!(counts, format!("{units}|0|{units}"), "a unit is lost or counted twice");
        let late = "SELECT count(*) FROM vyre.answer a JOIN vyre.span s ON s.id = a.span WHERE NOT a.void AND (a.fence <> s.fence OR a.worker <> s.owner)";
        assert_eq!(sql(late), "0", "a late answer was taken");
        let runs = vyre_campaign::Runs::open(&format!("{}#c/dev", server.url(OWNER, &self.database))).expect("the run");
        assert!(runs.is_finished());
        let data = vyre_conform::evidence::RunData::of(&runs, runs.identity(), true).expect("it is whole");
        assert_eq!(data.root, root(&self.plan));
        assert_eq!(data.totals().units, units);
    }
}

fn spec(plan: &Plan) -> Spec {
    Spec { suite: plan.suite().to_string(), queries: Vec::new(), tier: "deep".into(), seed: 0, is_nonce: false }
}

fn connect(db: &Db) -> Connection {
    db.connect().expect("the server is there")
}

/// A range of records.
fn range(plan: &Plan, units: std::ops::Range<u64>) -> Range {
    Range { units: units.map(|number| record(plan, number)).collect(), ..Range::default() }
}
