//! Units that no device runs: their records follow from their numbers, so that what is tested or measured is the queue alone.

use std::sync::Arc;
use vyre_conform::cases::Work;
use vyre_conform::ledger::UnitRecord;
use vyre_conform::{Cases, Digest, Plan, Selection, Tier};

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
        unreachable!("no device runs these units")
    }
}

/// A plan of so many units of 64 cases, in sections of at most 5000 units.
#[must_use]
pub fn plan(units: u64) -> Plan {
    let section =
        |n: u64| Arc::new(Numbers { op: format!("test.part{n:03}"), units: (units - n * 5000).min(5000) }) as Arc<dyn Cases>;
    let sections = (0..units.div_ceil(5000)).map(section).collect();
    Plan::new(Vec::new(), sections, &Selection::new(Vec::<String>::new()).expect("everything"), Tier::Deep).expect("a plan")
}

/// The record of a unit of such a plan on a device that is right, and its section.
#[must_use]
pub fn record(plan: &Plan, number: u64) -> (String, UnitRecord) {
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
