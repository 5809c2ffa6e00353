//! Runs that never happened, as ledgers, for tests of what is made of them.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::collections::BTreeMap;
use std::path::Path;
use vyre_conform::ledger::{
    Controls, Identity, Ledger, Places, Range, RunInfo, SectionInfo, StillFailing, UnitRecord, remark, root_of,
};
use vyre_conform::report::ReducedFailure;
use vyre_conform::{Digest, Evidence, FindingKind, ParityFailure};

/// A run in the making.
#[derive(Clone)]
pub struct Sample {
    pub identity: Identity,
    pub info: RunInfo,
    pub sections: Vec<SectionInfo>,
    pub units: BTreeMap<(String, u64), UnitRecord>,
    pub failures: Vec<ParityFailure>,
    pub remarks: Vec<(String, &'static str, String)>,
    pub is_finished: bool,
    /// The secret that its controls are placed by.
    pub placed_by: Digest,
}

pub fn digest(of: &str) -> Digest {
    Digest::of([of])
}

/// A unit that holds.
pub fn unit(section: &str, first: u64, cases: u64) -> UnitRecord {
    let bytes = digest(&format!("{section} {first}"));
    UnitRecord {
        first,
        cases,
        inputs: None,
        expected: bytes,
        actual: bytes,
        tested: cases,
        failed: 0,
        skipped: 0,
        referred: cases / 100,
        confirmed: true,
    }
}

pub fn section(op: &str, workgroup: u32, space: &str, evidence: Evidence, cases: u64) -> SectionInfo {
    let of = op.split_once(':').map_or("u32", |(_, of)| of);
    SectionInfo {
        id: format!("{op}:wg={workgroup}:{space}"),
        op: op.into(),
        version: 1,
        alternative: None,
        workgroup,
        space: space.into(),
        evidence,
        space_cases: cases,
        cases,
        launches: cases.div_ceil(4096),
        profile: if op.ends_with(":f64") { "f64" } else { "core" }.into(),
        outputs: vec![of.into()],
        is_order_dependent: false,
    }
}

impl Sample {
    /// A run without sections that has come to its end, with controls that were all noticed.
    pub fn empty() -> Sample {
        Sample {
            identity: Identity {
                suite: "5uite".into(),
                selection: "all".into(),
                settings: "seed 7".into(),
                backend: "bulk".into(),
                version: Some("0.1.0".into()),
                device: "bulk-evaluator-x86_64".into(),
            },
            info: RunInfo {
                tier: Some("smoke".into()),
                command: "vyre conform --backend bulk --tier smoke --seed 7".into(),
                began: 1_795_000_000,
                took_ms: 48_250,
                device_name: "Bulk evaluator, 2 threads".into(),
                versions: BTreeMap::from([("vyre".into(), "0.1.0".into()), ("rustc".into(), "1.95.0".into())]),
                nonce: None,
                controls: Controls { ran: 64, caught: 64, ..Controls::committed(digest("secret")) },
                still_failing: Vec::new(),
            },
            sections: Vec::new(),
            units: BTreeMap::new(),
            failures: Vec::new(),
            remarks: Vec::new(),
            is_finished: true,
            placed_by: digest("secret"),
        }
    }

    /// Two ops on one type each, exhaustive, boundary and sampled; all holds.
    pub fn small() -> Sample {
        let mut sample = Sample::empty();
        for size in [1, 64] {
            sample.add(section("ops.int.not:u32", size, "all", Evidence::Exhaustive, 1 << 18));
            sample.add(section("ops.int.add:u32", size, "edges", Evidence::Boundary, 1024));
            sample.add(section("ops.int.add:u32", size, "random", Evidence::Sampled, 200_000));
            sample.add(section("ops.float.add:f64", size, "random", Evidence::Sampled, 100_000));
        }
        sample
    }

    /// Adds a section with all its units.
    pub fn add(&mut self, section: SectionInfo) {
        let mut first = 0;
        while first < section.cases {
            let cases = (section.cases - first).min(1 << 16);
            self.units.insert((section.id.clone(), first), unit(&section.id, first, cases));
            first += cases;
        }
        self.sections.push(section);
    }

    pub fn unit_mut(&mut self, section: &str, first: u64) -> &mut UnitRecord {
        self.units.get_mut(&(section.to_string(), first)).expect("there is such a unit")
    }

    /// A case of an earlier run that fails still.
    pub fn still_fails(&mut self, op: &str, workgroup: u32) {
        self.info.still_failing.push(StillFailing { op: op.into(), workgroup, bundle: "b0nd1e".into() });
    }

    /// Makes cases of a unit fail.
    pub fn fail(&mut self, section: &str, first: u64, count: u64) {
        let unit = self.unit_mut(section, first);
        unit.failed = count;
        unit.actual = digest("other bytes");
        let info = self.sections.iter().find(|one| one.id == section).expect("there is such a section").clone();
        for n in 0..count.min(3) {
            self.failures.push(ParityFailure {
                op_id: info.op.clone(),
                generator: info.space.clone(),
                input_label: format!("case {}", first + n),
                input: vec![1, 2, 3, 4],
                gpu_output: vec![0, 0, 0x80, 0x3f],
                cpu_output: vec![0, 0, 0x80, 0xbf],
                message: "byte 3 is 3f, and bf is expected".into(),
                spec_version: 1,
                workgroup_size: info.workgroup,
                kind: FindingKind::Mismatch,
                unit: info.id.clone(),
            });
        }
        self.remarks.push((
            section.into(),
            remark::PROGRAM,
            "program demo {\n  workgroup 64\n  out[gid.x] = -x[gid.x]\n}\n".into(),
        ));
        self.remarks.push((section.into(), remark::AGAIN, "vyre fuzz --replay state/regressions/bytes-01.json".into()));
    }

    /// Says that a program of a section was made small.
    pub fn reduce(&mut self, section: &str, program: &str) {
        let words = |words: [u32; 3]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
        let reduced = ReducedFailure {
            program: program.into(),
            from_nodes: 48,
            nodes: 7,
            inputs: vec![("x".into(), "1 2 <3>".into())],
            output: Some(("y".into(), "u32".into())),
            expected: words([9, 8, 7]),
            found: words([9, 8, 6]),
            message: "byte 8 of output 0 is 0x06, and 0x07 is expected".into(),
            again: Some("vyre fuzz --replay state/regressions/bytes-02.json".into()),
        };
        let text = serde_json::to_string(&reduced).expect("it is JSON");
        self.remarks.push((section.into(), remark::REDUCED, text));
    }

    /// Makes a unit one that the device cannot run.
    pub fn skip(&mut self, section: &str, first: u64, reason: &str) {
        let unit = self.unit_mut(section, first);
        (unit.tested, unit.skipped, unit.referred, unit.confirmed) = (0, unit.cases, 0, false);
        (unit.expected, unit.actual) = (digest("nothing"), digest("nothing"));
        self.remarks.push((section.into(), remark::SKIPPED, reason.into()));
    }

    pub fn root(&self) -> Digest {
        let mut leaves: BTreeMap<String, BTreeMap<u64, Digest>> = BTreeMap::new();
        for ((section, first), record) in &self.units {
            leaves.entry(section.clone()).or_default().insert(*first, record.leaf(section));
        }
        root_of(&leaves)
    }

    /// Writes the ledger into a folder.
    pub fn write(&self, folder: &Path) {
        let mut ledger = Ledger::open(Some(folder), &self.identity).expect("a new ledger");
        ledger.describe(&self.sections).expect("sections are written");
        ledger.set_info(&self.info).expect("facts are written");
        let units = self.units.iter().map(|((section, _), record)| (section.clone(), record.clone())).collect();
        let places = Places::new(self.placed_by, self.units.len() as u64);
        let with_control = (0..).zip(&self.units).filter(|(position, (_, unit))| places.has(*position) && unit.skipped == 0);
        let controls = with_control
            .map(|(_, ((section, first), _))| (format!("{section}:{first}"), remark::CONTROL, "noticed: a lost bit".to_string()));
        let remarks = self.remarks.iter().cloned().chain(controls).collect();
        let range = Range { units, failures: self.failures.clone(), remarks };
        ledger.commit(&range).expect("units are written");
        if self.is_finished {
            ledger.finish(self.root()).expect("the run ends");
        }
    }

    /// The ledger in a folder that goes away with what is returned.
    pub fn folder(&self) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a temporary folder");
        self.write(folder.path());
        folder
    }
}
