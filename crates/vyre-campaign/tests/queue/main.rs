//! The queue on a real server: every order of steps, many workers that are killed and stopped, workers that lie, and errors told.
//!
//! No device runs units here: a unit's record follows from its number, so that what is tested is who runs what, how often, and whose answers
//! count. Workers that are killed are processes of this program, which starts itself.

mod chaos;
mod conflicts;
mod errors;
mod order;
mod paper;
mod workers;

use std::process::ExitCode;
use vyre_campaign::{Connection, Db, DeviceClass, New, Spec, WhichDevice, create};
use vyre_conform::ledger::Range;
use vyre_conform::{Digest, Plan};
use vyre_test_postgres::{OWNER, Server, plan, record};

fn main() -> ExitCode {
    if let Some(how) = std::env::var_os("VYRE_QUEUE_WORKER") {
        return chaos::worker(&how.to_string_lossy());
    }
    vyre_test_postgres::run(&[
        ("every_order_of_steps_keeps_every_unit_once", order::every_order),
        ("one_worker_gives_the_root_of_the_units", workers::one_alone),
        ("many_workers_give_the_same_root_and_no_unit_twice", workers::many),
        ("a_late_answer_changes_nothing", workers::late),
        ("an_answer_that_was_lost_on_the_way_is_given_back", workers::lost_claim),
        ("a_worker_that_is_told_to_stop_gives_back_what_is_left", workers::drains),
        ("slow_ranges_are_split", workers::splits),
        ("units_that_three_workers_are_lost_with_are_run_alone", workers::quarantine),
        ("a_worker_that_lies_is_named_and_all_it_said_is_run_again", conflicts::liar),
        ("two_devices_that_differ_are_decided_by_a_third", conflicts::third),
        ("two_workers_that_lie_are_both_named", conflicts::both_lie),
        ("a_third_worker_that_lies_decides_nothing", conflicts::third_lies),
        ("a_device_that_does_not_repeat_itself_fails", conflicts::unsteady),
        ("answers_that_come_while_a_conflict_is_settled_leave_nothing_behind", conflicts::answered_meanwhile),
        ("early_and_late_answers_are_drawn_alike", conflicts::drawn_evenly),
        ("only_devices_that_a_campaign_asks_for_may_come", workers::classes),
        ("workers_may_call_three_functions_and_nothing_else", errors::rights),
        ("errors_of_a_database_say_what_to_do", errors::messages),
        ("a_connection_that_is_cut_in_a_commit_loses_nothing", errors::cut),
        ("a_million_units_are_read", paper::million),
        ("chaos", chaos::chaos),
    ])
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
