//! Litmus tests: what is allowed, what right devices do, and that wrong ones are found.

use std::collections::BTreeSet;
use vyre_conform::litmus::{LITMUS, Litmus, LitmusError, Stress, run};
use vyre_driver::backend::registry::acquire;
use vyre_driver::{BackendError, DispatchConfig, VyreBackend};
use vyre_driver_reference as _;
use vyre_foundation::ir::Program;
use vyre_foundation::text;
use vyre_reference::{Options, Schedule};

fn named(name: &str) -> &'static Litmus {
    Litmus::named(name).unwrap_or_else(|| panic!("there is no {name}"))
}

fn allowed(name: &str) -> BTreeSet<String> {
    named(name).allowed().unwrap_or_else(|error| panic!("{name}: {error}")).iter().map(ToString::to_string).collect()
}

fn set<const N: usize>(outcomes: [&str; N]) -> BTreeSet<String> {
    outcomes.map(String::from).into()
}

#[test]
fn names_are_unique() {
    assert_eq!(LITMUS.iter().map(|litmus| litmus.name).collect::<BTreeSet<_>>().len(), LITMUS.len());
}

/// Worked out from the semantics: relaxed atomics on two locations are seen in any order, on one location all agree.
#[test]
fn what_is_allowed_is_what_the_language_says() {
    let any = |a: &str, b: &str, rest: &str| {
        let one = |(x, y): (u32, u32)| format!("{a}={x} {b}={y}{rest}");
        [(0, 0), (0, 1), (1, 0), (1, 1)].into_iter().map(one).collect::<BTreeSet<_>>()
    };
    assert_eq!(allowed("MP"), any("r0", "r1", " x=1 y=1"));
    assert_eq!(allowed("LB"), any("r0", "r1", " x=1 y=1"), "a load may see what is stored behind the other's store");
    assert_eq!(allowed("SB"), any("r0", "r1", " x=1 y=1"));
    let s = set(["r0=0 x=1 y=1", "r0=0 x=2 y=1", "r0=1 x=1 y=1", "r0=1 x=2 y=1"]);
    assert_eq!(allowed("S"), s);
    assert_eq!(allowed("R"), set(["r0=0 x=1 y=1", "r0=0 x=1 y=2", "r0=1 x=1 y=1", "r0=1 x=1 y=2"]));
    assert_eq!(allowed("2+2W"), set(["x=1 y=1", "x=1 y=2", "x=2 y=1", "x=2 y=2"]));
    assert_eq!(allowed("CoRR"), set(["r0=0 r1=0 x=1", "r0=0 r1=1 x=1", "r0=1 r1=1 x=1"]));
    assert_eq!(allowed("CoWW"), set(["x=2"]));
    assert_eq!(allowed("CoWR"), set(["r0=1 x=1", "r0=1 x=2", "r0=2 x=2"]));
    assert_eq!(allowed("CoRW1"), set(["r0=0 x=1"]));
    assert_eq!(allowed("CoRW2"), set(["r0=0 x=1", "r0=0 x=2", "r0=2 x=1"]));
    assert_eq!(allowed("atomicity.exchange"), set(["r0=0 r1=1 x=2", "r0=2 r1=0 x=1"]));
    assert_eq!(allowed("atomicity.claim"), set(["r0=0 r1=1 x=1", "r0=2 r1=0 x=2"]));
    assert_eq!(allowed("atomicity.add.workgroup"), set(["r0=0 r1=1 x=2", "r0=1 r1=0 x=2"]));
    // A barrier between leaves only what comes before it open.
    assert_eq!(allowed("MP.barrier.storage"), set(["r0=0 r1=1 x=1 y=1"]));
    assert_eq!(allowed("LB.barrier.storage"), set(["r0=0 r1=0 x=1 y=1"]));
    assert_eq!(allowed("SB.barrier.workgroup"), set(["r0=1 r1=1 x=1 y=1"]));
    assert_eq!(allowed("S.barrier.storage"), set(["r0=0 x=1 y=1"]));
    assert_eq!(allowed("R.barrier.storage"), set(["r0=1 x=1 y=1"]));
    assert_eq!(allowed("2+2W.barrier.storage"), set(["x=2 y=2"]));
    assert_eq!(allowed("store-load.workgroup"), set(["r0=1 x=1"]));
    assert_eq!(allowed("load-store.storage"), set(["r0=0 x=1"]));
    assert_eq!(allowed("store-store.workgroup"), set(["x=2"]));
}

#[test]
fn right_backends_do_nothing_that_is_forbidden() {
    let (bulk, reference) = (acquire("bulk").unwrap(), acquire("reference").unwrap());
    for litmus in LITMUS {
        for stress in Stress::several() {
            let stress = Stress { blocks: 4, ..stress };
            for backend in [&*bulk, &*reference] {
                let report = run(backend, litmus, &stress, 1).unwrap_or_else(|error| panic!("{}: {error}", litmus.name));
                assert!(report.holds(), "{} on {}: {report}", litmus.name, backend.id());
                assert_eq!(report.seen.values().sum::<u64>(), u64::from(stress.instances()));
            }
        }
    }
}

/// The plain interpreter under a schedule, with programs changed before they are run.
struct Changed {
    schedule: Schedule,
    change: fn(&[&str]) -> Vec<String>,
}

impl VyreBackend for Changed {
    fn id(&self) -> &'static str {
        "changed"
    }

    fn dispatch(&self, program: &Program, _: &[Vec<u8>], config: &DispatchConfig) -> Result<Vec<Vec<u8>>, BackendError> {
        let printed = program.to_string();
        let changed = (self.change)(&printed.lines().collect::<Vec<_>>()).join("\n");
        let program = text::parse("changed", &changed).map_err(BackendError::from)?;
        let options = Options { launch: config.launch(), schedule: self.schedule.clone(), ..Options::default() };
        let result = vyre_reference::run(&program, &[], &options);
        result.map_err(|error| BackendError::new(error.to_string()))
    }
}

fn as_it_is(lines: &[&str]) -> Vec<String> {
    lines.iter().map(ToString::to_string).collect()
}

/// Every atomic of two operands becomes a load and a store.
fn without_atomics(lines: &[&str]) -> Vec<String> {
    let mut changed = Vec::new();
    for line in lines {
        let parts = line.trim().strip_prefix("let ").and_then(|rest| rest.split_once(" = atomic."));
        let split = parts.and_then(|(old, call)| {
            let (op, arguments) = call.strip_suffix(')')?.split_once('(')?;
            let arguments: Vec<&str> = arguments.split(", ").collect();
            Some((old.to_string(), op.to_string(), arguments))
        });
        match split {
            Some((old, op, arguments)) if ["add", "exchange"].contains(&op.as_str()) => {
                let (buffer, index, value) = (arguments[0], arguments[1], arguments[2]);
                changed.push(format!("let {old} = {buffer}[{index}]"));
                let new = if op == "add" { format!("{old} + {value}") } else { value.to_string() };
                changed.push(format!("{buffer}[{index}] = {new}"));
            }
            Some(_) | None => changed.push(line.to_string()),
        }
    }
    changed
}

fn without_barriers(lines: &[&str]) -> Vec<String> {
    lines.iter().filter(|line| line.trim() != "barrier").map(ToString::to_string).collect()
}

/// The two lines that do this change places.
fn swapped(lines: &[&str], what: &str) -> Vec<String> {
    let mut changed = as_it_is(lines);
    let at: Vec<usize> = (0..lines.len()).filter(|n| lines[*n].contains(what)).collect();
    if let [first, second] = at[..] {
        changed.swap(first, second);
        // The line behind a load puts its value into a register.
        if what.contains("load") {
            changed.swap(first + 1, second + 1);
        }
    }
    changed
}

fn stores_swapped(lines: &[&str]) -> Vec<String> {
    swapped(lines, "atomic.store")
}

fn loads_swapped(lines: &[&str]) -> Vec<String> {
    swapped(lines, "atomic.load")
}

/// A test on the interpreter as it is and changed, under schedules that mix invocations.
fn finds(name: &str, change: fn(&[&str]) -> Vec<String>) -> bool {
    let schedules = [Schedule::Interleave, Schedule::Shuffle(3), Schedule::Shuffle(4), Schedule::Late, Schedule::Reverse];
    let forbidden = |change: fn(&[&str]) -> Vec<String>, schedule: &Schedule| {
        let backend = Changed { schedule: schedule.clone(), change };
        let stress = Stress { copies: 16, blocks: 2, delay: 0, permute: 5, spacing: 3 };
        let report = run(&backend, named(name), &stress, 1).unwrap_or_else(|error| panic!("{name}: {error}"));
        report.forbidden().next().is_some()
    };
    for schedule in &schedules {
        assert!(!forbidden(as_it_is, schedule), "{name} under {schedule} as it is");
    }
    schedules.iter().any(|schedule| forbidden(change, schedule))
}

#[test]
fn atomics_that_are_none_are_found() {
    for name in ["atomicity.add", "atomicity.exchange", "atomicity.store", "atomicity.add.workgroup"] {
        assert!(finds(name, without_atomics), "{name}");
    }
}

#[test]
fn stores_and_loads_out_of_order_are_found() {
    assert!(finds("CoWW", stores_swapped));
    assert!(finds("CoWW.workgroup", stores_swapped));
    assert!(finds("CoRR", loads_swapped));
    assert!(finds("CoRR.storage", loads_swapped));
    // On two locations both orders are allowed.
    assert!(!finds("MP", stores_swapped));
}

#[test]
fn barriers_that_do_not_wait_are_found() {
    for litmus in LITMUS.iter().filter(|litmus| litmus.name.contains("barrier") || litmus.name.contains('-')) {
        assert!(finds(litmus.name, without_barriers), "{}", litmus.name);
    }
}

#[test]
fn a_report_tells_what_was_seen_and_what_was_not() {
    let bulk = acquire("bulk").unwrap();
    let report = run(&*bulk, named("MP"), &Stress::default(), 2).unwrap();
    assert_eq!(report.seen.values().sum::<u64>(), 2 * 64 * 32);
    assert_eq!(report.seen.len() + report.unseen().count(), 4);
    let told = report.to_string();
    assert!(told.starts_with("MP\n") && told.contains("not seen") && !told.contains("forbidden"), "{told}");
}

#[test]
fn parameters_that_cannot_be_are_refused() {
    let bulk = acquire("bulk").unwrap();
    let stress = Stress::default;
    for wrong in [
        Stress { copies: 0, ..stress() },
        Stress { copies: 48, ..stress() },
        Stress { copies: 256, ..stress() },
        Stress { blocks: 0, ..stress() },
        Stress { spacing: 0, ..stress() },
        Stress { permute: 4, ..stress() },
        Stress { blocks: u32::MAX, ..stress() },
        Stress { delay: u32::MAX, ..stress() },
    ] {
        assert!(matches!(run(&*bulk, named("MP"), &wrong, 1), Err(LitmusError::Stress(_))), "{wrong:?}");
    }
    assert!(!run(&*bulk, named("MP"), &stress(), 0).unwrap().holds(), "nothing was seen");
}
