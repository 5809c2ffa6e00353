//! Generated programs on interpreters with one fault each, reduced.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use vyre_reference::faults::{self, Fault};
use vyre_reference::{Options, RunError, run};
use vyre_smith::generate::{Preset, dna, generate};
use vyre_smith::reduce::{Config, End, Reduced, reduce};
use vyre_worker::Case;

/// Whether a fault shows: in the bytes, or in who traps.
fn shows(case: &Case, fault: Fault) -> bool {
    let options = Options { fuel: case.fuel.min(1 << 22), ..Options::from(case) };
    let said = |outcome: Result<Vec<Vec<u8>>, RunError>| match outcome {
        Ok(outputs) => Some(Ok(outputs)),
        Err(RunError::Trap { tag, invocation, .. }) => Some(Err((tag, invocation))),
        Err(RunError::Rejected(_) | RunError::OutOfFuel { .. } | RunError::Timeout | RunError::Cancelled) => None,
    };
    let right = said(run(&case.program, &case.input_slices(), &options));
    let wrong = said(faults::run(fault, &case.program, &case.input_slices(), &options));
    right.is_some() && wrong.is_some() && right != wrong
}

/// The largest of the first few generated cases in which each fault shows.
fn failing(programs: u64, few: usize) -> BTreeMap<Fault, Case> {
    let mut found: BTreeMap<Fault, Vec<Case>> = BTreeMap::new();
    for number in 0..programs {
        let open: Vec<Fault> =
            Fault::ALL.iter().copied().filter(|fault| found.get(fault).is_none_or(|cases| cases.len() < few)).collect();
        let bytes = dna(3, number);
        let case = generate(Preset::mixed(number), &bytes).case(&bytes);
        for fault in open {
            if shows(&case, fault) {
                found.entry(fault).or_default().push(case.clone());
            }
        }
    }
    let largest = |cases: Vec<Case>| cases.into_iter().max_by_key(|case| case.program.walk().count());
    found.into_iter().filter_map(|(fault, cases)| Some((fault, largest(cases)?))).collect()
}

#[test]
fn faults_that_generated_programs_show_are_reduced_to_a_few_nodes() {
    let long = std::env::var_os("VYRE_LONG").is_some();
    let cases = failing(if long { 60_000 } else { 1500 }, if long { 20 } else { 4 });
    assert!(cases.len() >= if long { Fault::ALL.len() } else { Fault::ALL.len() / 2 }, "{} faults show", cases.len());
    let mut all: Vec<(Fault, Reduced, Duration)> = Vec::new();
    for (fault, case) in cases {
        let start = Instant::now();
        let config = Config { race_free: true, ..Config::default() };
        let reduced = reduce(case, &config, &mut |case| shows(case, fault).into(), &mut |_| {}).expect("it shows");
        assert!(shows(&reduced.case, fault) && reduced.stable && reduced.end == End::Minimal, "{}", fault.name());
        all.push((fault, reduced, start.elapsed()));
    }
    for (fault, reduced, time) in &all {
        println!("{:20} {} -> {}; {} attempts, {time:?}", fault.name(), reduced.from, reduced.size, reduced.attempts);
        if reduced.size.nodes > 12 || reduced.size.input_words > 4 {
            println!("{:?}", reduced.case);
        }
    }
    let sorted = |part: fn(&Reduced) -> u64| {
        let mut values: Vec<u64> = all.iter().map(|(_, reduced, _)| part(reduced)).collect();
        values.sort_unstable();
        values
    };
    let (nodes, words) = (sorted(|reduced| reduced.size.nodes), sorted(|reduced| reduced.size.input_words));
    assert!(nodes[nodes.len() / 2] <= 10 && nodes[nodes.len() * 19 / 20] <= 25, "{nodes:?}");
    assert!(words[words.len() / 2] <= 4, "{words:?}");
}

#[test]
fn programs_of_the_large_presets_are_reduced_as_well() {
    for preset in Preset::large() {
        // A fault that shows in nearly every program.
        let fault = Fault::SubSwapped;
        let case = (0..200).find_map(|number| {
            let bytes = dna(4, number);
            let case = generate(*preset, &bytes).case(&bytes);
            shows(&case, fault).then_some(case)
        });
        let case = case.unwrap_or_else(|| panic!("{} does not show in {}", fault.name(), preset.name()));
        let config = Config { race_free: true, ..Config::default() };
        let reduced = reduce(case, &config, &mut |case| shows(case, fault).into(), &mut |_| {}).expect("it shows");
        println!("{}: {} -> {}; {} attempts", preset.name(), reduced.from, reduced.size, reduced.attempts);
        assert!(shows(&reduced.case, fault) && reduced.stable && reduced.end == End::Minimal, "{}", preset.name());
        assert!(reduced.size.nodes <= 12, "{}: {} nodes\n{}", preset.name(), reduced.size.nodes, reduced.case.program);
    }
}
