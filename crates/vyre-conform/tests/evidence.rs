//! What is read off ledgers: classes of evidence, roots of profiles, verdicts, known failures, damage.

mod sample;

use sample::{Sample, section};
use std::collections::BTreeSet;
use vyre_conform::evidence::{Class, RunData, Verdict, profiles};
use vyre_conform::expectations::{Expectation, Expectations, Judged, Problem};
use vyre_conform::ledger::{Ledger, LedgerError, Store};
use vyre_conform::{Evidence, Selection};

fn read(sample: &Sample) -> RunData {
    RunData::read(sample.folder().path()).expect("a ledger that is whole")
}

#[test]
fn everything_that_was_written_is_read() {
    let mut sample = Sample::small();
    sample.fail("ops.int.add:u32:wg=64:random", 65_536, 7);
    sample.skip("ops.float.add:f64:wg=1:random", 0, "no f64");
    let run = read(&sample);
    assert_eq!((&run.identity, &run.info, run.root), (&sample.identity, &sample.info, sample.root()));
    assert_eq!(run.sections.len(), 8);
    let totals = run.totals();
    assert_eq!((totals.failed, totals.skipped, totals.not_run), (7, 65_536, 0));
    assert_eq!(totals.tested, 2 * ((1 << 18) + 1024 + 200_000 + 100_000) - 65_536);
    let failing = run.section("ops.int.add:u32:wg=64:random").expect("it is there");
    assert!(failing.program.as_deref().is_some_and(|text| text.starts_with("program demo")));
    assert_eq!(failing.again.as_deref(), Some("vyre fuzz --replay state/regressions/bytes-01.json"));
    assert_eq!(run.section("ops.float.add:f64:wg=1:random").and_then(|one| one.skipped.as_deref()), Some("no f64"));
    assert_eq!(run.failures, sample.failures);
}

#[test]
fn a_class_is_claimed_only_for_what_was_run_whole() {
    let claims = |sample: &Sample, op: &str| {
        let run = read(sample);
        let op = run.ops().into_iter().find(|one| one.op == op).expect("there is such an op");
        op.claims.iter().map(|claim| (claim.class, claim.workgroups.clone(), claim.values, claim.launches)).collect::<Vec<_>>()
    };
    let whole = Sample::small();
    assert_eq!(claims(&whole, "ops.int.not:u32"), [(Class::Exhaustive, vec![1, 64], 1 << 18, 128)]);
    // The same draws at two sizes are not twice as many values; launches are.
    assert_eq!(
        claims(&whole, "ops.int.add:u32"),
        [(Class::Boundary, vec![1, 64], 1024, 2), (Class::Sampled, vec![1, 64], 200_000, 98)]
    );
    // One unit less, and it is no longer exhaustive.
    let mut part = whole.clone();
    part.units.remove(&("ops.int.not:u32:wg=64:all".to_string(), 65_536));
    assert_eq!(
        claims(&part, "ops.int.not:u32"),
        [(Class::Exhaustive, vec![1], 1 << 18, 64), (Class::Chosen, vec![64], 3 << 16, 48)]
    );
    // Neither is a space of which the run asked for a part.
    let mut part = Sample::empty();
    let mut asked = section("ops.int.not:u32", 64, "all", Evidence::Exhaustive, 1 << 18);
    asked.space_cases = 1 << 32;
    part.add(asked);
    assert_eq!(claims(&part, "ops.int.not:u32")[0].0, Class::Chosen);
    // What fails is not claimed.
    let mut wrong = whole.clone();
    wrong.fail("ops.int.not:u32:wg=64:all", 0, 1);
    assert_eq!(claims(&wrong, "ops.int.not:u32"), [(Class::Exhaustive, vec![1], 1 << 18, 64)]);
    // A run that does not describe its sections has cases that somebody chose.
    let mut silent = whole;
    silent.sections.clear();
    assert_eq!(claims(&silent, "ops.int.not:u32"), [(Class::Chosen, vec![1, 64], 1 << 18, 0)]);
}

#[test]
fn sizes_are_confirmed_if_the_device_always_said_so() {
    let mut sample = Sample::small();
    sample.unit_mut("ops.int.add:u32:wg=64:random", 65_536).confirmed = false;
    let run = read(&sample);
    let op = run.ops().into_iter().find(|one| one.op == "ops.int.add:u32").expect("it is there");
    assert_eq!((op.sizes.confirmed, op.sizes.not_confirmed), (vec![1], vec![64]));
}

#[test]
fn profiles_have_the_roots_that_right_devices_have_in_common() {
    let whole = profiles(&read(&Sample::small()));
    assert!(whole.values().all(|profile| profile.is_claimed()));
    // A device without f64 has the same root for the rest.
    let mut without = Sample::small();
    for size in [1, 64] {
        for first in [0, 65_536] {
            without.skip(&format!("ops.float.add:f64:wg={size}:random"), first, "no f64");
        }
    }
    let without = profiles(&read(&without));
    assert_eq!(without["core"], whole["core"]);
    assert_eq!((without["f64"].units, without["f64"].skipped_units), (0, 4));
    assert!(without["f64"].root != whole["f64"].root && !without["f64"].is_claimed());
    // A skip inside a profile takes the unit out, and the size says so.
    let mut one = Sample::small();
    one.skip("ops.int.add:u32:wg=64:random", 0, "too large");
    let one = profiles(&read(&one));
    assert_eq!(one["core"].units, whole["core"].units - 1);
    assert!(one["core"].root != whole["core"].root && !one["core"].is_claimed());
    // Sections whose results depend on order are counted and stay outside.
    let mut litmus = Sample::small();
    let mut order = section("ops.litmus.mp:u32", 64, "all", Evidence::Sampled, 1000);
    order.is_order_dependent = true;
    litmus.add(order);
    let litmus = profiles(&read(&litmus));
    assert_eq!((litmus["core"].root, litmus["core"].units), (whole["core"].root, whole["core"].units));
    assert_eq!(litmus["core"].order_dependent_units, 1);
    // Another verdict, another root.
    let mut wrong = Sample::small();
    wrong.fail("ops.int.add:u32:wg=64:random", 0, 1);
    assert_ne!(profiles(&read(&wrong))["core"].root, whole["core"].root);
}

#[test]
fn what_has_no_verdict_says_why() {
    let why = |change: &dyn Fn(&mut Sample)| {
        let mut sample = Sample::small();
        change(&mut sample);
        Judged::default().verdict(&read(&sample))
    };
    assert_eq!(why(&|_| ()), Verdict::Holds);
    assert_eq!(why(&|sample| sample.fail("ops.int.not:u32:wg=1:all", 0, 2)), Verdict::Fails);
    assert_eq!(why(&|sample| sample.still_fails("ops.int.not:u32", 64)), Verdict::Fails);
    type Change<'c> = &'c dyn Fn(&mut Sample);
    let table: [(&str, Change<'_>); 9] = [
        ("the run is not finished", &|sample| sample.is_finished = false),
        ("nothing was judged", &|sample| sample.units.clear()),
        ("no controls", &|sample| sample.info.controls.ran = 0),
        ("1 of 64 planted faults", &|sample| sample.info.controls.caught = 63),
        ("not the one that was committed to", &|sample| sample.info.controls.secret = Some(sample::digest("another"))),
        ("fixed before the run", &|sample| sample.info.controls.commitment = None),
        ("but the secret of the run puts", &|sample| sample.placed_by = sample::digest("another")),
        ("lost bit in add", &|sample| sample.info.controls.survived.push("lost bit in add".into())),
        ("nothing was judged", &|sample| {
            let all: Vec<(String, u64)> = sample.units.keys().cloned().collect();
            all.iter().for_each(|(section, first)| sample.skip(section, *first, "no"));
        }),
    ];
    for (words, change) in table {
        match why(change) {
            Verdict::None(why) => assert!(why.contains(words), "{why}"),
            other @ (Verdict::Holds | Verdict::WithExceptions | Verdict::Fails) => panic!("{other:?} where {words}"),
        }
    }
}

fn entry(query: &str, backend: &str, expires: &str) -> Expectation {
    let one = |text: &str| Selection::new([text]).unwrap();
    Expectation { query: one(query), backend: one(backend), reason: "known".into(), expires: expires.parse().unwrap() }
}

#[test]
fn known_failures_hold_only_as_long_as_they_are_so() {
    const FAILS: &str = "ops.int.add:u32:wg=64:random";
    let mut sample = Sample::small();
    sample.fail(FAILS, 0, 2);
    let run = read(&sample);
    let today = "2026-11-17".parse().unwrap();
    let judge = |entries: Vec<Expectation>| -> (Judged, Verdict) {
        let judged = Expectations { entries }.judge(&run, today);
        let verdict = judged.verdict(&run);
        (judged, verdict)
    };
    // Query, backend, last day; the verdict, and what is wrong with the entry.
    let table: [(&str, &str, &str, Verdict, &str); 18] = [
        (FAILS, "bulk", "2026-11-17", Verdict::WithExceptions, ""),
        (FAILS, "*", "2030-01-01", Verdict::WithExceptions, ""),
        (FAILS, "b*k", "2030-01-01", Verdict::WithExceptions, ""),
        ("*:u32:wg=64:random", "bulk", "2030-01-01", Verdict::WithExceptions, ""),
        (FAILS, "bulk", "2026-11-16", Verdict::Fails, "Expired"),
        (FAILS, "wgpu*", "2030-01-01", Verdict::Fails, ""),
        (FAILS, "wgpu*", "2020-01-01", Verdict::Fails, ""),
        ("ops.int.add:u32", "bulk", "2030-01-01", Verdict::Fails, "UnexpectedPass"),
        ("ops.int.add:u32:wg=64", "bulk", "2030-01-01", Verdict::Fails, "UnexpectedPass"),
        ("*", "bulk", "2030-01-01", Verdict::Fails, "UnexpectedPass"),
        ("ops.int.sub:u32", "bulk", "2030-01-01", Verdict::Fails, "Unmatched"),
        ("ops.int.add:u3", "bulk", "2030-01-01", Verdict::Fails, "Unmatched"),
        ("ops.int.add:u32:wg=6", "bulk", "2030-01-01", Verdict::Fails, "Unmatched"),
        ("ops.int.not:u32:wg=64:all", "bulk", "2030-01-01", Verdict::Fails, "UnexpectedPass"),
        // As on the command line: words may be left out, and an op stands for all below it.
        ("ops.int.add:wg=64:random", "bulk", "2030-01-01", Verdict::WithExceptions, ""),
        ("*.add:*:wg=64:ran*", "bulk", "2030-01-01", Verdict::Fails, "UnexpectedPass"),
        ("*.int.add:*:wg=64:ran*", "bulk", "2030-01-01", Verdict::WithExceptions, ""),
        ("ops.int:wg=64", "bulk", "2030-01-01", Verdict::Fails, "UnexpectedPass"),
    ];
    for (query, backend, expires, wanted, problem) in table {
        let (judged, verdict) = judge(vec![entry(query, backend, expires)]);
        assert_eq!(verdict, wanted, "{query} {backend} {expires}");
        let found: BTreeSet<&str> = judged
            .problems
            .iter()
            .map(|problem| match problem {
                Problem::UnexpectedPass { .. } => "UnexpectedPass",
                Problem::Expired { .. } => "Expired",
                Problem::Unmatched { .. } => "Unmatched",
            })
            .collect();
        assert_eq!(found.into_iter().collect::<Vec<_>>().join(" "), problem, "{query}");
    }
    // One entry that is right does not excuse another that is not.
    let right = entry(FAILS, "bulk", "2030-01-01");
    let wrong = entry("ops.int.sub:u32", "bulk", "2030-01-01");
    assert_eq!(judge(vec![right, wrong]).1, Verdict::Fails);
    // Nor does a file make a verdict of a run that has none.
    let mut cut_off = sample.clone();
    cut_off.is_finished = false;
    let run = read(&cut_off);
    let judged = Expectations { entries: vec![entry(FAILS, "bulk", "2030-01-01")] }.judge(&run, today);
    assert!(matches!(judged.verdict(&run), Verdict::None(_)));
    // A section that is not known is not excused by one that is, nor is a case of an earlier run by a section of another op.
    let mut two = sample.clone();
    two.fail("ops.int.not:u32:wg=64:all", 0, 1);
    let known = Expectations { entries: vec![entry(FAILS, "bulk", "2030-01-01")] };
    let verdict = |sample: &Sample| {
        let run = read(sample);
        known.judge(&run, today).verdict(&run)
    };
    assert_eq!(verdict(&two), Verdict::Fails);
    for (op, workgroup, wanted) in [
        ("ops.int.add:u32", 64, Verdict::WithExceptions),
        ("ops.int.add:u32", 1, Verdict::Fails),
        ("ops.int.not:u32", 64, Verdict::Fails),
    ] {
        let mut still = sample.clone();
        still.still_fails(op, workgroup);
        assert_eq!(verdict(&still), wanted, "{op} in workgroups of {workgroup}");
    }
    // A section that only skipped did not run.
    let mut skipped = Sample::small();
    (0..4).for_each(|n| skipped.skip(FAILS, n << 16, "no"));
    let judged = Expectations { entries: vec![entry(FAILS, "bulk", "2030-01-01")] }.judge(&read(&skipped), today);
    assert!(matches!(judged.problems[..], [Problem::Unmatched { .. }]));
}

#[test]
fn a_part_of_the_suite_says_nothing_about_the_rest_of_what_is_known() {
    const FAILS: &str = "ops.int.add:u32:wg=64:random";
    let today = "2026-11-17".parse().unwrap();
    let problems = |sample: &Sample, query: &str| {
        let run = read(sample);
        Expectations { entries: vec![entry(query, "bulk", "2030-01-01")] }.judge(&run, today).problems.len()
    };
    // Another shard has the unit that fails.
    let mut shard = Sample::small();
    shard.units.remove(&(FAILS.to_string(), 65_536));
    assert_eq!(problems(&shard, FAILS), 0);
    assert_eq!(problems(&Sample::small(), FAILS), 1);
    // The run was asked for other sections.
    let mut part = Sample::small();
    assert_eq!(problems(&part, "cast"), 1);
    part.identity.selection = "ops.int ops.float".into();
    assert_eq!(problems(&part, "cast"), 0);
    // Of those that it was asked for, it says something.
    assert_eq!(problems(&part, FAILS), 1);
    (0..4).for_each(|n| part.skip(FAILS, n << 16, "no"));
    assert_eq!(problems(&part, FAILS), 1);
}

#[test]
fn files_of_known_failures_are_read_or_refused_with_the_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("known.json");
    let read = |text: &str| {
        std::fs::write(&path, text).unwrap();
        Expectations::read(&path)
    };
    let good = r#"[{"query":"a","backend":"*","reason":"it does","expires":"2026-12-31"}]"#;
    assert_eq!(read(good).unwrap().entries.len(), 1);
    assert_eq!(read("[]").unwrap().entries.len(), 0);
    for (text, words) in [
        ("", "line 1"),
        ("{}", "line 1"),
        (&good.replace("it does", " "), "entry 1 has no reason"),
        (&good.replace("12-31", "12-32"), "2026-12-32"),
        (&good.replace("\"*\"", "\"\""), "`` has an empty word"),
        (&good.replace("\"a\"", "\"a::b\""), "`a::b` has an empty word"),
        (&good.replace("query", "quary"), "quary"),
        (&good.replace("\"reason\":\"it does\",", ""), "missing field `reason`"),
    ] {
        let error = read(text).expect_err("it is refused").to_string();
        assert!(error.contains(words) && error.contains("known.json"), "{error}");
    }
    assert!(Expectations::read(&folder.path().join("none")).unwrap_err().to_string().contains("cannot read"));
}

#[test]
fn a_changed_byte_of_a_ledger_is_found_or_changes_nothing() {
    let mut sample = Sample::small();
    sample.fail("ops.int.add:u32:wg=64:random", 0, 2);
    sample.skip("ops.float.add:f64:wg=1:random", 0, "no f64");
    let folder = sample.folder();
    let whole = RunData::read(folder.path()).unwrap();
    let path = folder.path().join("run.redb");
    let bytes = std::fs::read(&path).unwrap();
    let damaged = folder.path().join("damaged.redb");
    // The file is mostly empty pages: all bytes that are not zero, and some of the others.
    let places = (0..bytes.len()).filter(|at| bytes[*at] != 0 || at % 4099 == 0);
    let (mut found, mut unchanged) = (0, 0);
    let step = if cfg!(debug_assertions) { 7 } else { 1 };
    for at in places.step_by(step) {
        let mut changed = bytes.clone();
        changed[at] ^= 1 << (at % 8);
        std::fs::write(&damaged, &changed).unwrap();
        match RunData::read(&damaged) {
            Err(LedgerError::Damaged(..) | LedgerError::Version(..) | LedgerError::Io(..)) => found += 1,
            Err(other) => panic!("byte {at}: {other}"),
            Ok(read) => {
                let same = RunData { path: whole.path.clone(), ..read } == whole;
                assert!(same, "byte {at} changed what is read");
                unchanged += 1;
            }
        }
    }
    assert!(found > 1000, "{found} were found, {unchanged} changed nothing");
    // Cut short anywhere.
    for part in 0..16 {
        std::fs::write(&damaged, &bytes[..bytes.len() * part / 16]).unwrap();
        assert!(RunData::read(&damaged).is_err(), "{part}/16 of the file");
    }
}

#[test]
fn a_run_is_read_by_several_at_once_and_left_as_it_is() {
    let folder = Sample::small().folder();
    let path = folder.path().join("run.redb");
    let before = std::fs::read(&path).unwrap();
    let (one, ..) = Ledger::read(folder.path()).unwrap();
    let (other, ..) = Ledger::read(&path).unwrap();
    assert_eq!(one.root().unwrap(), other.root().unwrap());
    drop((one, other));
    assert_eq!(std::fs::read(&path).unwrap(), before);
}
