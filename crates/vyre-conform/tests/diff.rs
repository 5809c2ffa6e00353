//! Differences between runs.

mod sample;

use sample::{Sample, section, unit};
use std::path::Path;
use vyre_conform::Evidence;
use vyre_conform::diff::{Difference, Kind, diff};
use vyre_conform::ledger::{CHUNK, Ledger};

fn compare(one: &Path, other: &Path) -> Option<Difference> {
    let (one, one_is, _) = Ledger::read(one).unwrap();
    let (other, other_is, _) = Ledger::read(other).unwrap();
    diff((&one, &one_is), (&other, &other_is)).unwrap()
}

fn between(one: &Sample, other: &Sample) -> Option<Difference> {
    compare(one.folder().path(), other.folder().path())
}

#[test]
fn a_run_is_the_same_as_itself_and_nothing_is_read() {
    let folder = Sample::small().folder();
    let found = compare(folder.path(), folder.path()).unwrap();
    assert!(found.is_same() && found.read == 0 && found.runs.is_empty());
    // Also as another device's, which the leaves do not know.
    let mut other = Sample::small();
    other.identity.device = "another".into();
    let found = between(&Sample::small(), &other).unwrap();
    assert!(found.is_same() && found.read == 0);
    assert_eq!(found.runs[0].0, "device");
}

#[test]
fn every_kind_of_difference_is_told() {
    const ADD: &str = "ops.int.add:u32:wg=64:random";
    const NOT: &str = "ops.int.not:u32:wg=64:all";
    let mut one = Sample::small();
    let mut other = one.clone();
    other.fail(ADD, 0, 3);
    one.fail(ADD, 65_536, 2);
    one.fail(NOT, 0, 2);
    other.fail(NOT, 0, 4);
    other.skip(NOT, 65_536, "no");
    one.skip(NOT, 2 << 16, "no");
    other.units.remove(&(NOT.to_string(), 3 << 16));
    one.units.retain(|(section, _), _| section != "ops.int.add:u32:wg=1:edges");
    let found = between(&one, &other).unwrap();
    let kinds = |section: &str| -> Vec<(Kind, u64, u64)> {
        found
            .sections
            .get(section)
            .into_iter()
            .flatten()
            .map(|(kind, units)| (*kind, units.count, units.first[0].first))
            .collect()
    };
    assert_eq!(kinds(ADD), [(Kind::New, 1, 0), (Kind::Fixed, 1, 65_536)]);
    assert_eq!(kinds(NOT), [(Kind::Changed, 1, 0), (Kind::NotRun, 2, 65_536), (Kind::Added, 1, 2 << 16)]);
    assert_eq!(kinds("ops.int.add:u32:wg=1:edges"), [(Kind::Added, 1, 0)]);
    assert_eq!(found.sections.len(), 3);
    let text = found.text();
    assert!(text.starts_with("1 new, 1 changed, 2 not run, 1 fixed, 2 added (units)\n"), "{text}");
    assert!(found.markdown().starts_with("### ❌ 1 new"), "{}", found.markdown());
}

#[test]
fn only_subtrees_that_differ_are_read() {
    let mut one = Sample::empty();
    one.sections.push(section("ops.int.not:u32", 64, "all", Evidence::Sampled, 10 * CHUNK as u64));
    let name = one.sections[0].id.clone();
    for first in 0..10 * CHUNK as u64 {
        one.units.insert((name.clone(), first), unit(&name, first, 1));
    }
    let mut other = one.clone();
    other.fail(&name, 3 * CHUNK as u64 + 7, 1);
    let found = between(&one, &other).unwrap();
    assert_eq!((found.count(Kind::New), found.read), (1, 2 * CHUNK as u64));
    // A unit that is missing shifts all behind it.
    other.units.remove(&(name.clone(), 8 * CHUNK as u64 + 1));
    let found = between(&one, &other).unwrap();
    assert_eq!((found.count(Kind::New), found.count(Kind::NotRun)), (1, 1));
    assert!(found.read < 8 * CHUNK as u64, "{}", found.read);
    // And from the other side.
    let back = between(&other, &one).unwrap();
    assert_eq!((back.count(Kind::Fixed), back.count(Kind::Added)), (1, 1));
    // The first unit is missing.
    other.units.remove(&(name, 0));
    let found = between(&one, &other).unwrap();
    assert_eq!((found.count(Kind::New), found.count(Kind::NotRun)), (1, 2));
}

#[test]
fn a_difference_is_found_wherever_it_is() {
    // What a comparison of all units finds, for trees of every shape.
    for units in [1, 2, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK - 1, 3 * CHUNK] {
        let mut one = Sample::empty();
        one.sections.push(section("ops.a", 1, "all", Evidence::Sampled, units as u64));
        let name = one.sections[0].id.clone();
        for first in 0..units as u64 {
            one.units.insert((name.clone(), first), unit(&name, first, 1));
        }
        let before = one.folder();
        for at in [0, units / 2, units - 1] {
            let mut changed = one.clone();
            changed.unit_mut(&name, at as u64).actual = sample::digest("x");
            let mut removed = one.clone();
            removed.units.remove(&(name.clone(), at as u64));
            let found = compare(before.path(), changed.folder().path()).unwrap();
            assert_eq!(found.sections[&name][&Kind::Changed].first[0].first, at as u64);
            if units > 1 {
                let found = compare(before.path(), removed.folder().path()).unwrap();
                assert_eq!((found.count(Kind::NotRun), found.sections[&name].len()), (1, 1), "{at} of {units}");
            }
        }
    }
}

#[test]
fn a_run_that_was_cut_off_is_compared_as_far_as_it_came() {
    let mut cut_off = Sample::small();
    cut_off.is_finished = false;
    cut_off.units.retain(|(section, _), _| section.starts_with("ops.int"));
    let found = between(&Sample::small(), &cut_off).unwrap();
    assert_eq!(found.count(Kind::NotRun), 4);
    assert_eq!(found.sections.len(), 2);
}

#[test]
fn runs_without_a_common_section_are_not_compared() {
    let mut other = Sample::empty();
    other.add(section("demo.xor", 64, "all", Evidence::Sampled, 100));
    assert_eq!(between(&Sample::small(), &other), None);
    assert_eq!(between(&Sample::small(), &Sample::empty()), None);
}
