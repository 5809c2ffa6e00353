//! Parts of the suite whose cases are dispatches of their own or whose judge is not the reference: traps, check files, litmus tests, laws,
//! what is large. A right device holds, and each kind of wrong one is found by the part that is about it.

mod support;

use std::collections::BTreeSet;
use std::sync::Arc;
use support::{How, conform};
use vyre_conform::cases::{SequenceCases, TwinCases, Work};
use vyre_conform::checks::directive::{self, Kind};
use vyre_conform::checks::{EMBEDDED, on_backend, stated};
use vyre_conform::conform::Conformed;
use vyre_conform::evidence::Verdict;
use vyre_conform::mutants;
use vyre_conform::suite::dispatches;
use vyre_conform::teeth::{Faulty, measure};
use vyre_conform::{Cases, CheckCases, FindingKind, LargeCases, LitmusCases, OpSpec, Plan, Selection, Tier, cases, suite};
use vyre_driver::backend::registry::acquire;
use vyre_driver_reference as _;
use vyre_worker::{Answer, Case, Failure};

fn some(specs: Vec<OpSpec>, cases: Vec<Arc<dyn Cases>>, query: &str, tier: Tier) -> Plan {
    Plan::new(specs, cases, &Selection::new([query]).unwrap(), tier).expect("a plan")
}

fn with(plan: &Plan, change: fn(&Case, &mut Answer)) -> Conformed {
    conform(plan, &How { change, ..How::default() }).expect("it runs")
}

fn right(_: &Case, _: &mut Answer) {}

fn assert_holds(conformed: &Conformed) {
    let messages: Vec<&str> = conformed.report.failures.iter().map(|failure| failure.message.as_str()).collect();
    assert_eq!(conformed.verdict, Verdict::Holds, "{messages:?}");
}

/// Adds to the first word of the first output.
fn add(answer: &mut Answer, n: u8) {
    if let Some(byte) = answer.outcome.as_mut().ok().and_then(|outputs| outputs.first_mut()?.first_mut()) {
        *byte = byte.wrapping_add(n);
    }
}

#[test]
fn a_trap_is_the_smallest_one_with_its_tag() {
    let plan = || some(dispatches(), Vec::new(), "trap", Tier::Smoke);
    let whole = with(&plan(), right);
    assert_holds(&whole);
    assert!(whole.report.summary.tested > 100);
    // The last trapping invocation, another tag, outputs in place of a trap, a trap in place of outputs.
    let changes: [fn(&Case, &mut Answer); 4] = [
        |_, answer| {
            if let Err(Failure::Trap { invocation, .. }) = &mut answer.outcome {
                invocation[1] += 1;
            }
        },
        |_, answer| {
            if let Err(Failure::Trap { tag, .. }) = &mut answer.outcome {
                *tag = tag.wrapping_add(1);
            }
        },
        |case, answer| {
            if let Err(Failure::Trap { .. }) = &answer.outcome {
                answer.outcome = Ok(vec![vec![0; case.inputs[0].len()]]);
            }
        },
        |_, answer| {
            if answer.outcome.is_ok() {
                answer.outcome = Err(Failure::Trap { tag: 7, invocation: [0; 3] });
            }
        },
    ];
    for (n, change) in changes.into_iter().enumerate() {
        let found = with(&plan(), change);
        assert_eq!(found.verdict, Verdict::Fails, "change {n}");
        let is_told = |kind: FindingKind| matches!(kind, FindingKind::Mismatch | FindingKind::Dispatch);
        assert!(found.report.failures.iter().all(|failure| is_told(failure.kind)), "change {n}");
        assert_ne!(found.report.root, whole.report.root, "change {n}: it shows in the root");
    }
}

#[test]
fn a_spec_of_elements_cannot_trap() {
    let error = support::parts("demo.xor", 1).trap_fn(|_| None).build().unwrap_err();
    assert!(error.problem.contains("can trap"), "{error}");
}

#[test]
fn check_files_are_cases() {
    let all = CheckCases::all();
    let there: BTreeSet<String> = all.iter().map(|cases| format!("{}:{}", cases.op(), cases.space())).collect();
    assert!(all.len() > 900 && there.len() == all.len(), "{} files", all.len());
    // Every file that says what a dispatch gives is there, but for those in which the order of invocations may show.
    let bulk = acquire("bulk").expect("bulk is there");
    for (path, bytes) in EMBEDDED {
        let directives = directive::parse(&String::from_utf8_lossy(bytes)).expect("a check file");
        let says = directives.iter().any(|it| matches!(it.kind, Kind::Run(..) | Kind::Trap(..)));
        let (folder, name) = path.strip_suffix(".vyre").and_then(|path| path.rsplit_once('/')).unwrap_or(("", "readme"));
        let id = if folder.is_empty() { format!("checks:{name}") } else { format!("checks.{}:{name}", folder.replace('/', ".")) };
        if says && !there.contains(&id) {
            let verdict = on_backend(&*bulk, bytes).expect("a check file");
            assert!(verdict.skips.iter().any(|skip| skip.text.contains("order of invocations")), "{path}: {verdict:?}");
        }
    }
    let as_cases = || CheckCases::all().into_iter().map(|it| Arc::new(it) as Arc<dyn Cases>).collect::<Vec<_>>();
    let plan = some(Vec::new(), as_cases(), "checks.run.control", Tier::Smoke);
    assert!(plan.sections().iter().any(|section| section.info().id == "checks.run.control:trap-order-3d"));
    assert_holds(&with(&plan, right));
    // Where the workgroup size is a constant, what runs is the program with its value.
    assert_holds(&with(&some(Vec::new(), as_cases(), "checks.run.launch", Tier::Smoke), right));
    let found = with(&plan, |case, answer| {
        // One file alone.
        if case.program.to_string().starts_with("program breaks") {
            add(answer, 1);
        }
    });
    assert_eq!(found.verdict, Verdict::Fails);
    assert!(found.report.failures.iter().all(|failure| failure.unit == "checks.run.control:break"));
    let trapped = with(&plan, |_, answer| {
        if let Err(Failure::Trap { tag, .. }) = &mut answer.outcome {
            *tag ^= 1;
        }
    });
    assert_eq!(trapped.verdict, Verdict::Fails);
    assert!(trapped.report.failures.iter().all(|failure| failure.unit.starts_with("checks.run.control:")));
}

/// The file has the last word about its outcome, and it is the reference's too.
#[test]
fn what_files_state_is_what_the_reference_gives() {
    let mut compared = 0;
    for (path, bytes) in EMBEDDED {
        for run in stated(bytes).unwrap_or_else(|problem| panic!("{path}: {problem}")) {
            let given = vyre_smith::subjects::expected(&run.case);
            assert_eq!(given, run.outcome, "{path}:{}", run.line);
            compared += 1;
        }
    }
    assert!(compared > 1000, "{compared}");
}

#[test]
fn a_forbidden_outcome_of_a_litmus_test_is_a_failure() {
    let as_cases = || LitmusCases::all().into_iter().map(|it| Arc::new(it) as Arc<dyn Cases>).collect::<Vec<_>>();
    let plan = some(Vec::new(), as_cases(), "litmus", Tier::Smoke);
    assert!(plan.sections().iter().all(|section| section.info().is_order_dependent));
    let whole = with(&plan, right);
    assert_holds(&whole);
    // Every store is lost in the first copy, or another value comes out than was ever stored.
    let changes: [fn(&Case, &mut Answer); 2] =
        [|_, answer| answer.outcome.iter_mut().for_each(|outputs| outputs[0].fill(0)), |_, answer| add(answer, 7)];
    for change in changes {
        let found = with(&plan, change);
        assert_eq!(found.verdict, Verdict::Fails);
        let failure = &found.report.failures[0];
        assert!(failure.kind == FindingKind::Mismatch && failure.message.contains("forbids"), "{}", failure.message);
    }
    // Two dispatches that show different things that are allowed are no failure.
    let alone = Selection::new(["litmus.SB", "!litmus.SB.*"]).unwrap();
    let plan = Plan::new(Vec::new(), as_cases(), &alone, Tier::Smoke).expect("a plan");
    let other = with(&plan, |_, answer| {
        static TURN: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        let turn = TURN.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        // The registers of the first copy: both see the other's store, or neither does.
        answer.outcome.iter_mut().for_each(|outputs| outputs[1][..8].copy_from_slice(&[(turn % 2) as u8, 0, 0, 0].repeat(2)));
    });
    assert_holds(&other);
}

#[test]
fn laws_are_tried_on_the_device() {
    let plan = |query: &str| some(suite::elementwise(), Vec::new(), query, Tier::Smoke);
    let whole = with(&plan("law"), right);
    assert_holds(&whole);
    assert!(whole.report.not_confirmed.is_empty());
    // An op that says nothing of a law has no such part.
    let without = support::plan(vec![support::xor(10)]);
    assert!(without.sections().iter().all(|section| !section.info().op.starts_with("law")));
    // Wrong if the first operand is larger: swapped operands show it.
    let found = with(&plan("law.ops.int.add:u32"), |case, answer| {
        let Ok(outputs) = &mut answer.outcome else { return };
        let pairs = case.inputs[0].chunks_exact(4).zip(case.inputs[1].chunks_exact(4));
        for ((a, b), out) in pairs.zip(outputs[0].chunks_exact_mut(4)) {
            out[0] ^= u8::from(a > b);
        }
    });
    assert_eq!(found.verdict, Verdict::Fails);
    assert!(found.report.failures[0].message.contains("swapped"), "{}", found.report.failures[0].message);
    // Not its own inverse any more.
    let found = with(&plan("law.ops.int.reverse_bits:u32"), |_, answer| {
        let Ok(outputs) = &mut answer.outcome else { return };
        outputs[0].chunks_exact_mut(4).for_each(|out| out.copy_from_slice(&[out[1], out[2], out[3], out[0]]));
    });
    assert_eq!(found.verdict, Verdict::Fails);
}

#[test]
fn large_things_belong_to_the_deep_tier() {
    let as_cases = || LargeCases::all().into_iter().map(|it| Arc::new(it) as Arc<dyn Cases>).collect::<Vec<_>>();
    assert!(Plan::new(Vec::new(), as_cases(), &Selection::new(["large"]).unwrap(), Tier::Standard).is_err());
    let plan = some(Vec::new(), as_cases(), "large.grid", Tier::Deep);
    assert_holds(&with(&plan, right));
    // The last workgroup of a grid beyond 65,535 did not run.
    let found = with(&plan, |_, answer| {
        answer.outcome.iter_mut().for_each(|outputs| outputs[0].iter_mut().rev().take(4).for_each(|byte| *byte = 0));
    });
    assert_eq!(found.verdict, Verdict::Fails);
}

/// A machine without the memory skips, which is not a pass.
#[test]
fn what_the_machine_lacks_is_skipped_with_its_reason() {
    struct Lacking(LargeCases);
    impl Cases for Lacking {
        fn op(&self) -> &str {
            self.0.op()
        }
        fn space(&self) -> &str {
            self.0.space()
        }
        fn cases(&self) -> u64 {
            self.0.cases()
        }
        fn profile(&self) -> String {
            self.0.profile()
        }
        fn identity(&self) -> Vec<u8> {
            self.0.identity()
        }
        fn case(&self, seed: u64, number: u64) -> Work {
            self.0.case(seed, number)
        }
        fn lacking(&self) -> Option<String> {
            Some("no memory today".into())
        }
    }
    let read = LargeCases::all().into_iter().find(|it| it.op() == "large.read:u32").expect("it is there");
    let plan = some(Vec::new(), vec![Arc::new(Lacking(read))], "large", Tier::Deep);
    let conformed = with(&plan, right);
    assert!(matches!(&conformed.verdict, Verdict::None(why) if why.contains("no memory today")), "{:?}", conformed.verdict);
}

/// Names are unique, and the parts can be asked for.
#[test]
fn every_part_can_be_selected() {
    let all = || Plan::new(suite::all(), cases::all(), &Selection::default(), Tier::Deep).expect("a plan");
    let plan = all();
    for query in [
        "checks",
        "checks.run.ops",
        "litmus.MP",
        "law",
        "law.ops.float",
        "large",
        "index.uniform",
        "geometry",
        "trap",
        "retire",
        "grid",
        "lengths",
        "twins",
        "resident",
    ] {
        let selection = Selection::new([query]).unwrap();
        assert!(plan.sections().iter().any(|section| selection.means(&section.info().id)), "{query}");
    }
}

fn twins_and_sequences() -> Vec<Arc<dyn Cases>> {
    let twins = TwinCases::all().into_iter().map(|cases| Arc::new(cases) as Arc<dyn Cases>);
    twins.chain(SequenceCases::all().into_iter().map(|cases| Arc::new(cases) as Arc<dyn Cases>)).collect()
}

/// A device that keeps too much or too little between dispatches is right about each of them alone. These parts find it out.
#[test]
fn what_is_kept_between_dispatches_is_noticed() {
    let plan = Plan::new(Vec::new(), twins_and_sequences(), &Selection::default(), Tier::Smoke).expect("a plan");
    let about_it = |faulty: &Faulty<'_>| ["cache-key", "resident"].contains(&faulty.class.as_str());
    let faulty: Vec<Faulty<'_>> = mutants::all().iter().map(Faulty::from).filter(about_it).collect();
    assert!(faulty.len() > 40, "{} mutants", faulty.len());
    let bites = measure(&plan, &faulty, 0, 2, &false.into(), &|_| ());
    let missed: Vec<&str> = bites.iter().filter(|bite| bite.killed_by.is_none()).map(|bite| bite.mutant.as_str()).collect();
    assert!(missed.is_empty() && bites.len() == faulty.len(), "not noticed: {missed:?}");
}

/// Twins differ, and their results do, or a device that takes one for the other could not be found out.
#[test]
fn twins_are_not_the_same() {
    for cases in TwinCases::all() {
        let mut differ = 0;
        for number in 0..64 {
            let pair = [2 * number, 2 * number + 1].map(|number| match cases.case(7, number) {
                Work::Dispatch(case) => case,
                Work::Sequence(_) => unreachable!("twins are dispatches"),
            });
            let [one, other] = &pair;
            assert!((&one.program, &one.config) != (&other.program, &other.config), "{}:{} {number}", cases.op(), cases.space());
            // Buffers of other lengths begin alike.
            let length = one.inputs[0].len().min(other.inputs[0].len());
            assert_eq!(one.inputs[0][..length], other.inputs[0][..length]);
            let [one, other] = pair.each_ref().map(vyre_smith::subjects::expected);
            differ += usize::from(one != other);
        }
        assert!(differ > 48, "{}:{}: only {differ} of 64 pairs give other bytes", cases.op(), cases.space());
    }
}
