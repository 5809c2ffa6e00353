//! What is made of ledgers: differences between runs of a million units, and certificates of a run of 10⁸ cases.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;
use vyre_conform::cert::{Certificate, SecretKey};
use vyre_conform::diff::{Kind, diff};
use vyre_conform::evidence::RunData;
use vyre_conform::expectations::Judged;
use vyre_conform::ledger::{Controls, Identity, Ledger, Places, Range, RunInfo, SectionInfo, UnitRecord, remark, root_of};
use vyre_conform::report::Report;
use vyre_conform::{Digest, Evidence};

fn identity() -> Identity {
    Identity {
        suite: "measured".into(),
        selection: "all".into(),
        settings: "seed 1".into(),
        backend: "bulk".into(),
        version: Some("1".into()),
        device: "none".into(),
    }
}

/// Writes a ledger of so many sections with so many units each; every `wrong`-th unit has other bytes.
fn write(folder: &Path, sections: u64, units: u64, cases: u64, wrong: Option<u64>) {
    let mut ledger = Ledger::open(Some(folder), &identity()).expect("a ledger");
    let mut leaves: BTreeMap<String, BTreeMap<u64, Digest>> = BTreeMap::new();
    let mut infos = Vec::new();
    let mut range = Range::default();
    let mut number = 0;
    for section in 0..sections {
        let id = format!("ops.family{}.op{section}:u32:wg=64:strata", section % 16);
        infos.push(SectionInfo {
            id: id.clone(),
            op: format!("ops.family{}.op{section}:u32", section % 16),
            version: 1,
            alternative: None,
            workgroup: 64,
            space: "strata".into(),
            evidence: Evidence::Sampled,
            space_cases: units * cases,
            cases: units * cases,
            launches: units,
            profile: "core".into(),
            outputs: vec!["u32".into()],
            is_order_dependent: false,
        });
        for unit in 0..units {
            number += 1;
            let expected = Digest::of([number.to_string()]);
            let is_wrong = wrong.is_some_and(|wrong| number % wrong == 0);
            let record = UnitRecord {
                first: unit * cases,
                cases,
                inputs: None,
                expected,
                actual: if is_wrong { Digest::default() } else { expected },
                tested: cases,
                failed: 0,
                skipped: 0,
                referred: cases / 100,
                confirmed: true,
            };
            leaves.entry(id.clone()).or_default().insert(record.first, record.leaf(&id));
            range.units.push((id.clone(), record));
        }
        if range.units.len() > 50_000 {
            ledger.commit(&std::mem::take(&mut range)).expect("units are written");
        }
    }
    ledger.commit(&range).expect("units are written");
    ledger.describe(&infos).expect("sections are written");
    let units: Vec<(&String, &u64)> =
        leaves.iter().flat_map(|(section, of)| of.keys().map(move |first| (section, first))).collect();
    let secret = Digest::of(["secret"]);
    let places = Places::new(secret, units.len() as u64);
    let with_control = (0..).zip(&units).filter(|(position, _)| places.has(*position));
    let control =
        |(_, (section, first)): (u64, &(&String, &u64))| (format!("{section}:{first}"), remark::CONTROL, "noticed".into());
    let remarks: Vec<(String, &'static str, String)> = with_control.map(control).collect();
    let controls = Controls { ran: remarks.len() as u64, caught: remarks.len() as u64, ..Controls::committed(secret) };
    ledger.commit(&Range { remarks, ..Range::default() }).expect("remarks are written");
    ledger.set_info(&RunInfo { controls, ..RunInfo::default() }).expect("facts are written");
    ledger.finish(root_of(&leaves)).expect("the run ends");
}

pub fn evidence() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let place = |name: &str| folder.path().join(name);
    println!("differences between runs of 1,000,000 units in 500 sections (goal: 2 s)");
    write(&place("one"), 500, 2000, 1, None);
    for (name, wrong) in [("none", None), ("one in 100,000", Some(100_000)), ("one in 1000", Some(1000)), ("all", Some(1))] {
        let other = place(name);
        write(&other, 500, 2000, 1, wrong);
        let start = Instant::now();
        let (one, one_is, _) = Ledger::read(&place("one")).expect("a run");
        let (other, other_is, _) = Ledger::read(&other).expect("a run");
        let found = diff((&one, &one_is), (&other, &other_is)).expect("they are whole").expect("they have much in common");
        let time = start.elapsed();
        println!("  {name:16} {:9} changed {:9} units read {time:9.3?}", found.count(Kind::Changed), found.read);
    }
    println!("certificate of a run of 10⁸ cases, 2000 ops (goal: verify in 50 ms, page of 5 MB)");
    write(&place("cert"), 2000, 2, 25_000, None);
    let start = Instant::now();
    let run = RunData::read(&place("cert")).expect("a run");
    println!("  read the ledger     {:9.3?}", start.elapsed());
    let key = SecretKey::from_seed([1; 32]);
    let start = Instant::now();
    let file = Certificate::of(&run, &Judged::default(), None).expect("it holds").sign(&key);
    println!("  sign                {:9.3?}  {} bytes", start.elapsed(), file.len());
    let public = key.public();
    let best = (0..20).map(|_| {
        let start = Instant::now();
        Certificate::verify(file.as_bytes(), &public).expect("it is signed");
        start.elapsed()
    });
    println!("  verify              {:9.3?}", best.min().expect("some rounds"));
    let start = Instant::now();
    let page = Report::new(&run, &Judged::default(), None).html();
    println!("  page                {:9.3?}  {} bytes", start.elapsed(), page.len());
}
