//! The reducer against predicates that are easy to judge, against faulty evaluations of large programs, and against bad predicates.

mod generated;
mod programs;

use programs::{FAULTS, Rng, large, options, plain, shows, sized};
use std::collections::HashSet;
use std::time::{Duration, Instant};
use vyre_conform::checks::directive;
use vyre_foundation::ir::*;
use vyre_foundation::text;
use vyre_reference::checked::{Effort, check};
use vyre_reference::{Options, RunError, Schedule, run};
use vyre_smith::reduce::{Config, End, Error, Interest, Reduced, check_file, reduce, smaller};
use vyre_worker::{Case, Failure};

/// A program; a semicolon ends a line.
fn parsed(text: &str) -> Program {
    text::parse("test.vyre", &text.replace(';', "\n")).unwrap_or_else(|report| panic!("{report}"))
}

fn reduced(case: Case, interesting: impl Fn(&Case) -> bool) -> Reduced {
    reduce(case, &Config::default(), &mut |case| interesting(case).into(), &mut |_| {}).expect("interesting to begin with")
}

fn has(program: &Program, wanted: impl Fn(Item<'_>) -> bool) -> bool {
    program.walk().any(|(item, _)| wanted(item))
}

/// Whether a quotient of floats is stored.
fn divides_floats(case: &Case) -> bool {
    let floats = |name: &Name| {
        case.program.buffers().iter().any(|decl| decl.name == *name && decl.element == Element::Type(DataType::F32))
    };
    let divides =
        |value: &Expr| Walk::expr(value).any(|(item, _)| matches!(item, Item::Expr(Expr::Binary { op: BinaryOp::Div, .. })));
    assert!(case.program.validated().is_ok(), "only valid candidates are offered");
    has(&case.program, |item| matches!(item, Item::Node(Node::Store(store)) if floats(&store.buffer) && divides(&store.value)))
}

/// Large programs that store quotients of floats.
fn dividing(count: usize) -> Vec<Case> {
    (0..100).map(large).filter(divides_floats).take(count).collect()
}

#[test]
fn a_float_division_and_a_store_are_all_that_is_left() {
    let result = reduced(dividing(1).remove(0), divides_floats);
    assert_eq!(
        result.case.program.to_string(),
        "program reduced {\n  workgroup 1\n  buffer out: output f32[1] @0\n\n  out[0] = 0.0 / 0.0\n}\n"
    );
    assert_eq!((result.end, result.stable), (End::Minimal, true));
    assert_eq!((result.size.nodes, result.size.input_words), (6, 0));
    assert!(result.case.inputs.is_empty());
    assert!(result.from.nodes > 400, "{:?}", result.from);
}

/// Cases in which a fault shows, one seed after the other.
fn failing(fault: programs::Fault, count: usize) -> Vec<Case> {
    (0..1000).map(large).filter(|case| shows(case, fault)).take(count).collect()
}

#[test]
fn what_is_left_of_500_nodes_shows_the_fault_and_little_else() {
    let mut all = Vec::new();
    for (name, fault) in FAULTS {
        for case in failing(fault, 4) {
            assert!(case.program.walk().count() > 400);
            let result = reduced(case, |case| shows(case, fault));
            assert!(shows(&result.case, fault), "{name}");
            assert!(result.stable && result.end == End::Minimal, "{name}");
            assert!(result.size.nodes <= 16, "{name}: {}\n{}", result.size, result.case.program);
            all.push((result.size.nodes, result.size.input_words, result.attempts));
        }
    }
    assert!(all.len() >= 20, "faults show in few programs: {}", all.len());
    let middle = all.len() / 2;
    let sorted = |part: fn(&(u64, u64, u64)) -> u64| {
        let mut values: Vec<u64> = all.iter().map(part).collect();
        values.sort_unstable();
        values
    };
    let (nodes, words, attempts) = (sorted(|all| all.0), sorted(|all| all.1), sorted(|all| all.2));
    println!("nodes {nodes:?}\ninput words {words:?}\nattempts {attempts:?}");
    assert!(nodes[middle] <= 10, "{nodes:?}");
    assert!(words[middle] <= 4, "{words:?}");
    assert!(attempts[middle] <= 2000, "{attempts:?}");
}

#[test]
fn at_the_end_no_single_step_is_interesting() {
    for (name, fault) in FAULTS {
        for case in failing(fault, 1) {
            let result = reduced(case, |case| shows(case, fault));
            for candidate in smaller(&result.case).expect("valid") {
                assert!(!shows(&candidate, fault), "{name}:\n{}\ncould be\n{}", result.case.program, candidate.program);
            }
        }
    }
    let result = reduced(dividing(2).remove(1), divides_floats);
    assert!(smaller(&result.case).expect("valid").iter().all(|candidate| !divides_floats(candidate)));
}

#[test]
fn every_offer_is_valid_and_smaller_in_some_way() {
    let case = sized(5, 100);
    let candidates = smaller(&case).expect("valid");
    assert!(candidates.len() > 300, "{}", candidates.len());
    for candidate in candidates {
        assert!(candidate.program.validated().is_ok());
        assert!(candidate != case);
        assert!(candidate.program.walk().count() <= case.program.walk().count());
    }
}

#[test]
fn two_reductions_of_one_case_are_the_same() {
    let (_, fault) = FAULTS[0];
    let case = failing(fault, 1).remove(0);
    let offered = |case: &Case| {
        let mut offered = Vec::new();
        let result = reduce(
            case.clone(),
            &Config::default(),
            &mut |case| {
                offered.push(case.clone());
                shows(case, fault).into()
            },
            &mut |_| {},
        );
        (offered, result)
    };
    let (first, second) = (offered(&case), offered(&case));
    assert!(first == second);
}

#[test]
fn no_candidate_is_offered_twice_but_the_last() {
    let (_, fault) = FAULTS[1];
    let mut offered: Vec<Case> = Vec::new();
    let case = failing(fault, 1).remove(0);
    let result = reduce(
        case,
        &Config::default(),
        &mut |case| {
            offered.push(case.clone());
            shows(case, fault).into()
        },
        &mut |_| {},
    )
    .expect("interesting");
    let last = offered.pop().expect("asked");
    assert_eq!(last, result.case);
    let different: HashSet<String> = offered.iter().map(|case| format!("{case:?}")).collect();
    assert_eq!(different.len(), offered.len());
}

#[test]
fn a_predicate_that_panics_counts_as_no_and_loses_nothing() {
    let case = dividing(1).remove(0);
    let mut asked = 0;
    let mut yes: Vec<Case> = Vec::new();
    let result = reduce(
        case,
        &Config::default(),
        &mut |case| {
            asked += 1;
            assert!(asked == 1 || asked % 3 != 0, "a bad day");
            if divides_floats(case) {
                yes.push(case.clone());
                return Interest::Yes;
            }
            Interest::No
        },
        &mut |_| {},
    )
    .expect("interesting");
    assert!(yes.contains(&result.case));
    assert!(result.failures > 0);
    assert!(result.first_failure.is_some_and(|why| why.contains("a bad day")));
    assert!(result.size.nodes < 60, "{}", result.size);
}

/// A dispatch of no invocations is the smallest of all and shows nothing, whatever the predicate says about it.
#[test]
fn a_dispatch_in_which_nothing_runs_never_wins() {
    for number in 0..12 {
        let mut case = large(number);
        // Without a grid the number of invocations follows from lengths, which can become zero.
        case.config.grid_override = None;
        if case.plan().is_err() {
            continue;
        }
        let result = reduced(case.clone(), |_| true);
        assert!(result.size.invocations > 0, "{number}: {}\n{}", result.size, result.case.program);
        for candidate in smaller(&case).expect("valid") {
            assert!(candidate.plan().expect("valid").invocations() > 0, "{}", candidate.program);
        }
    }
}

/// What it says about itself holds for every number of questions: without the last one nothing is claimed.
#[test]
fn nothing_is_called_stable_that_was_not_asked_again() {
    for attempts in 1..40 {
        let mut seen = Vec::new();
        let mut once = |case: &Case| {
            let new = !seen.contains(case);
            seen.push(case.clone());
            Interest::from(new)
        };
        let config = Config { attempts, ..Config::default() };
        let result = reduce(large(4), &config, &mut once, &mut |_| {}).expect("interesting");
        assert!(!result.stable, "after {attempts} questions");
        let mut asked = 0;
        let mut always = |_: &Case| {
            asked += 1;
            Interest::Yes
        };
        let result = reduce(large(4), &config, &mut always, &mut |_| {}).expect("interesting");
        assert_eq!(result.stable, attempts > 1, "after {asked} of {attempts} questions");
    }
}

/// Nothing can be taken out of a program without statements, and that is seen.
#[test]
fn a_program_of_nothing_is_reduced_to_nothing() {
    let parts = parsed("program p {; workgroup 4; buffer out: output u32[1] @0; }").parts().clone();
    for body in [vec![], vec![Node::block(vec![Node::block(vec![])])], vec![Node::Return]] {
        let case = Case::new(Program::from_parts(Parts { body: body.into(), ..parts.clone() }), vec![]);
        let result = reduce(case, &Config::default(), &mut |_| Interest::Yes, &mut |_| {}).expect("interesting");
        assert_eq!((result.size.nodes, result.end, result.stable), (0, End::Minimal, true), "{}", result.case.program);
    }
}

/// A predicate that has had enough is not asked again, and what it liked until then is kept.
#[test]
fn a_predicate_can_end_the_reduction() {
    let case = large(4);
    assert_eq!(reduce(case.clone(), &Config::default(), &mut |_| Interest::Stop, &mut |_| {}).err(), Some(Error::Stopped));
    let (mut asked, mut liked) = (0, None);
    let mut predicate = |case: &Case| {
        asked += 1;
        assert!(asked <= 7, "it is asked again");
        if asked == 7 {
            return Interest::Stop;
        }
        liked = Some(case.clone());
        Interest::Yes
    };
    let result = reduce(case, &Config::default(), &mut predicate, &mut |_| {}).expect("interesting");
    assert_eq!((result.end, result.stable, result.attempts, Some(result.case)), (End::Stopped, false, 7, liked));
}

#[test]
fn a_predicate_that_contradicts_itself_is_told_and_the_best_is_kept() {
    // It says yes to everything once, and no when it sees it again.
    let mut seen = Vec::new();
    let mut flaky = |case: &Case| {
        let new = !seen.contains(case);
        seen.push(case.clone());
        Interest::from(new)
    };
    let result = reduce(large(4), &Config::default(), &mut flaky, &mut |_| {}).expect("interesting");
    assert!(!result.stable);
    assert!(seen.contains(&result.case));
    assert_eq!(result.size.nodes, 1);

    // One that says yes or no by the toss of a coin: whatever comes out was said yes to.
    let mut rng = Rng(9);
    let mut yes = Vec::new();
    let mut coin = |case: &Case| {
        let answer = yes.is_empty() || rng.below(2) == 0;
        if answer {
            yes.push(case.clone());
        }
        Interest::from(answer)
    };
    let result = reduce(large(4), &Config::default(), &mut coin, &mut |_| {}).expect("interesting");
    assert!(yes.contains(&result.case));
}

#[test]
fn what_is_not_interesting_or_not_valid_is_not_reduced() {
    let nothing = reduce(large(0), &Config::default(), &mut |_| Interest::No, &mut |_| {});
    assert_eq!(nothing, Err(Error::NotInteresting));
    let panics = reduce(large(0), &Config::default(), &mut |_| panic!("at once"), &mut |_| {});
    assert!(matches!(panics, Err(Error::Failed(why)) if why.contains("at once")));
    let invalid = Case::new(parsed("program p {; workgroup 1; buffer out: output u32[1] @0; out[0] = 1.5; }"), vec![]);
    let mut asked = false;
    let result = reduce(
        invalid,
        &Config::default(),
        &mut |_| {
            asked = true;
            Interest::Yes
        },
        &mut |_| {},
    );
    assert!(matches!(result, Err(Error::Invalid(_))));
    assert!(!asked);
    let short =
        Case::new(parsed("program p {; workgroup 1; buffer a: read u32 @0; buffer out: output u32 @1; out[0] = a[0]; }"), vec![]);
    assert!(matches!(reduce(short, &Config::default(), &mut |_| Interest::Yes, &mut |_| {}), Err(Error::Invalid(_))));
}

#[test]
fn attempts_and_time_are_limits_and_the_best_so_far_is_given_back() {
    for attempts in [1, 2, 3, 10, 20] {
        let mut asked = 0;
        let config = Config { attempts, ..Config::default() };
        let mut ask = |case: &Case| {
            asked += 1;
            divides_floats(case).into()
        };
        let result = reduce(dividing(1).remove(0), &config, &mut ask, &mut |_| {}).expect("interesting");
        assert!(asked <= attempts && result.attempts == asked, "{asked} of {attempts}");
        assert_eq!(result.end, End::Attempts);
        assert!(divides_floats(&result.case));
    }
    let config = Config { deadline: Some(Instant::now() + Duration::from_millis(30)), ..Config::default() };
    let mut slow = |case: &Case| {
        std::thread::sleep(Duration::from_millis(10));
        divides_floats(case).into()
    };
    let result = reduce(dividing(1).remove(0), &config, &mut slow, &mut |_| {}).expect("interesting");
    assert_eq!(result.end, End::Deadline);
    assert!(result.attempts < 10 && divides_floats(&result.case));
}

#[test]
fn progress_never_goes_back() {
    let (_, fault) = FAULTS[3];
    let mut last = None;
    let mut calls = 0;
    let case = failing(fault, 1).remove(0);
    let result = reduce(case, &Config::default(), &mut |case| shows(case, fault).into(), &mut |progress| {
        calls += 1;
        assert!(last.is_none_or(|last| (progress.attempts, progress.accepted) > last));
        last = Some((progress.attempts, progress.accepted));
        assert!(progress.size.nodes == progress.best.program.walk().count() as u64);
    })
    .expect("interesting");
    // Not for the first question and not for the last.
    assert_eq!(calls + 2, result.attempts);
}

const SUM: &str = "
program sum {
  workgroup 8
  buffer x: read u32 @0
  buffer out: output u32 @1
  buffer part: workgroup u32[8]

  part[lid.x] = x[gid.x]
  barrier
  if lid.x == 0 {
    let total = 0
    for i in 0..8 {
      total = total + part[i]
    }
    out[wid.x] = total
  }
}";

fn words(values: impl IntoIterator<Item = u32>) -> Vec<u8> {
    values.into_iter().flat_map(u32::to_le_bytes).collect()
}

fn without_barriers(nodes: &mut Body) {
    nodes.retain(|node| !matches!(node, Node::Barrier { .. }));
    nodes.iter_mut().flat_map(Node::bodies_mut).for_each(without_barriers);
}

#[test]
fn races_are_refused_when_asked() {
    let case = Case::new(parsed(SUM), vec![words(1..17)]);
    let is_clean = |case: &Case| {
        check(&case.program, &case.input_slices(), &options(case), &Effort::default()).is_ok_and(|report| report.holds())
    };
    let has_barrier = |case: &Case| has(&case.program, |item| matches!(item, Item::Node(Node::Barrier { .. })));
    // Whether barriers are needed for the result, or would be.
    let needs_barriers = |case: &Case| {
        let bare = case.program.clone().edit(|parts| without_barriers(&mut parts.body));
        let expected = plain(case);
        [Schedule::Forward, Schedule::Reverse]
            .into_iter()
            .any(|schedule| run(&bare, &case.input_slices(), &Options { schedule, ..options(case) }) != expected)
    };
    assert!(is_clean(&case));
    let config = Config { race_free: true, ..Config::default() };
    let mut ask = |case: &Case| {
        assert!(is_clean(case), "a racy candidate was offered:\n{}", case.program);
        needs_barriers(case).into()
    };
    let free = reduce(case.clone(), &config, &mut ask, &mut |_| {}).expect("interesting");
    assert_eq!(free.failures, 0, "{:?}", free.first_failure);
    assert!(has_barrier(&free.case), "{}", free.case.program);
    assert!(free.size.nodes <= 14, "{}", free.case.program);
    let any = reduced(case, needs_barriers);
    assert!(!has_barrier(&any.case), "{}", any.case.program);
    // A case that is not clean itself is refused.
    let racy = Case::new(parsed("program p {; workgroup 2; buffer out: output u32[1] @0; out[0] = gid.x; }"), vec![]);
    assert_eq!(reduce(racy, &config, &mut |_| Interest::Yes, &mut |_| {}), Err(Error::NotDeterministic));
}

#[test]
fn candidates_that_would_run_forever_are_not_offered() {
    // Without the remainder the loop takes four billion iterations.
    let program = parsed(
        "program p {; workgroup 1; buffer a: read u32 @0; buffer out: output u32[1] @1
           let n = a[0] % 5
           for i in 0..n {; out[0] = out[0] + i; }; }",
    );
    let case = Case::new(program, vec![words([u32::MAX])]);
    let mut looped = |case: &Case| {
        assert!(!matches!(plain(case), Err(RunError::OutOfFuel { .. })), "out of fuel:\n{}", case.program);
        // The iterations are told by the input, which stays as it is.
        let told = has(&case.program, |item| matches!(item, Item::Expr(Expr::Load(load)) if load.buffer != "out"));
        let looped = has(&case.program, |item| matches!(item, Item::Node(Node::Loop(_))));
        (looped && told && case.inputs[0] == words([u32::MAX])).into()
    };
    let config = Config { fuel: Some(1 << 16), ..Config::default() };
    let result = reduce(case, &config, &mut looped, &mut |_| {}).expect("interesting");
    assert_eq!(result.failures, 0, "{:?}", result.first_failure);
    assert!(result.size.nodes < 10, "{}", result.case.program);
}

#[test]
fn a_declared_count_shrinks_with_its_input() {
    let text = "program p {; workgroup 4; buffer a: read u32[48] @0; buffer out: output u32 @1; out[gid.x] = a[gid.x] + 1; }";
    let mut case = Case::new(parsed(text), vec![words(0..48)]);
    case.config.output_counts.insert("out".into(), 48);
    let result = reduced(case, |case| {
        let loads = has(&case.program, |item| matches!(item, Item::Expr(Expr::Load(_))));
        loads && plain(case).is_ok_and(|outputs| outputs.iter().flatten().any(|byte| *byte == 47))
    });
    assert_eq!(result.size.input_words, 1, "{}", result.case.program);
    assert_eq!(result.case.program.buffers()[0].count, Some(Size::Lit(1)), "{}", result.case.program);
}

#[test]
fn constants_lengths_and_overrides_are_written_out_or_kept_if_they_matter() {
    let text = "
program p {
  workgroup size
  const size: u32 = 4
  const scale: i32 = -3
  const kind: dtype = f16
  buffer a: read kind @3
  buffer out: output i32 @7

  if gid.x < len(out) {
    out[gid.x] = i32(a[gid.x]) * scale
  }
}";
    let mut case = Case::new(parsed(text), vec![vec![0, 0x3C, 0, 0x40, 0, 0x42]]);
    case.config.specialization.insert("scale", SpecValue::I32(7));
    case.config.output_counts.insert("out".into(), 5);
    assert_eq!(plain(&case).expect("runs")[0], words([7, 14, 21, 0, 0]));
    let gives_14 = |case: &Case| {
        plain(case).is_ok_and(|outputs| outputs.iter().any(|output| output.chunks(4).any(|word| *word == 14u32.to_le_bytes())))
    };
    let result = reduced(case.clone(), gives_14);
    assert!(result.case.program.parts().consts.is_empty() && result.case.config.specialization.is_empty());
    assert_eq!(result.size.nodes, 4, "{}", result.case.program);
    // A predicate that wants the constant keeps it, and its value.
    let keeps = |case: &Case| case.config.specialization.get("scale").is_some() && gives_14(case);
    let result = reduced(case.clone(), keeps);
    assert_eq!(result.case.config.specialization.len(), 1);
    // One that wants the length to be said keeps that.
    let keeps = |case: &Case| case.config.output_counts.contains_key("out") && gives_14(case);
    assert_eq!(reduced(case, keeps).case.config.output_counts.len(), 1);
    // An override that cannot be told is declared.
    let mut case = Case::new(parsed("program p {; workgroup 8; buffer out: output u32[8] @0; out[gid.x] = gid.x; }"), vec![]);
    case.config.workgroup_override = Some([4, 1, 1]);
    let result = reduced(case, |case| {
        plain(case).is_ok_and(|outputs| outputs.iter().any(|output| output.chunks(4).any(|word| *word == 3u32.to_le_bytes())))
    });
    assert_eq!((result.case.config.workgroup_override, result.size.nodes), (None, 4), "{}", result.case.program);
}

#[test]
fn subgroups_atomics_traps_and_narrow_buffers_become_plain() {
    let text = "
program p {
  workgroup 32
  subgroup 16
  floats canonical
  buffer a: read u8 @4
  buffer total: read_write u32 @6
  buffer out: output u32 @9

  let s = subgroup.add(a[gid.x] + 1)
  let old = atomic.add(total, 0, s)
  {
    region \"inner\" {
      barrier.acquire
      out[gid.x] = s + 2
      if s == 77777 {
        trap(1234)
      }
    }
  }
}";
    let case = Case::new(parsed(text), vec![(0..64).collect(), words([5])]);
    let nonzero = |case: &Case| plain(case).is_ok_and(|outputs| outputs.iter().flatten().any(|byte| *byte != 0));
    let result = reduced(case.clone(), nonzero);
    assert_eq!(result.case.program.parts().subgroup, None);
    assert!(result.size.nodes <= 4 && result.size.invocations <= 1, "{}\n{}", result.size, result.case.program);
    let traps = |case: &Case| {
        matches!(plain(case), Err(RunError::Trap { .. }))
            || has(&case.program, |item| matches!(item, Item::Node(Node::Trap { .. })))
    };
    let result = reduced(case.clone(), traps);
    assert_eq!(result.case.program.to_string(), "program reduced {\n  workgroup 1\n\n  trap(0)\n}\n");
    // A narrow buffer that has to be there becomes one of words, with the same values.
    let loads = |case: &Case| nonzero(case) && has(&case.program, |item| matches!(item, Item::Expr(Expr::Load(_))));
    let result = reduced(case, |case| loads(case) && !case.inputs.is_empty());
    let elements: Vec<&Element> = result.case.program.buffers().iter().map(|decl| &decl.element).collect();
    assert!(elements.iter().all(|element| **element == Element::Type(DataType::U32)), "{}", result.case.program);
}

#[test]
fn what_one_invocation_reads_moves_to_the_first() {
    // Only the 37th elements of both inputs have what it takes.
    let text = "program p {; workgroup 16; buffer a: read u32 @0; buffer b: read u32 @1; buffer out: output u32 @2
        let i = gid.x
        out[i] = a[i] * b[i]; }";
    let mut a = vec![3; 48];
    let mut b = vec![5; 48];
    (a[37], b[37]) = (0x1_0001, 0x1_0001);
    let case = Case::new(parsed(text), vec![words(a), words(b)]);
    let overflows = |case: &Case| {
        has(&case.program, |item| {
            matches!(item, Item::Expr(Expr::Binary { op: BinaryOp::Mul, left, right })
            if matches!(**left, Expr::Load(_)) && matches!(**right, Expr::Load(_)))
        }) && plain(case)
            .is_ok_and(|outputs| outputs.iter().any(|output| output.chunks(4).any(|word| *word == 0x2_0001u32.to_le_bytes())))
    };
    let result = reduced(case, overflows);
    assert!(result.size.input_words <= 2 && result.size.invocations == 1, "{}\n{}", result.size, result.case.program);
}

/// What the check harness makes of a text: the directive in it, run on the program in it.
fn holds(text: &str) -> Result<(), String> {
    let directives = directive::parse(text)?;
    let program = text::parse("check.vyre", text).map_err(|report| report.to_string())?;
    let [only] = &directives[..] else { return Err(format!("{} directives", directives.len())) };
    let (directive::Kind::Run(launch, _) | directive::Kind::Trap(launch, ..)) = &only.kind else {
        return Err("another directive".into());
    };
    let (options, inputs) = launch.resolve(&program)?;
    let named: Vec<(&str, &[u8])> = inputs.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
    let ordered = vyre::launch::inputs_by_name(&program, &named).map_err(|report| report.to_string())?;
    let outcome = run(&program, &ordered, &options);
    match (&only.kind, outcome) {
        (directive::Kind::Run(_, expected), Ok(outputs)) => {
            let resolved =
                vyre::specialize::specialize(&program, options.specialization.iter().map(|(name, value)| (name.as_str(), value)))
                    .map_err(|report| report.to_string())?;
            let elements = directive::elements(&resolved);
            let names: Vec<String> =
                resolved.interface().outputs.iter().map(|i| resolved.buffers()[*i].name.to_string()).collect();
            if names.len() != expected.len() {
                return Err("not every output is named".into());
            }
            for ((name, bytes), binding) in names.iter().zip(&outputs).zip(expected) {
                if *name != binding.name || directive::encode(&elements[name], &binding.text)? != *bytes {
                    return Err(format!("{name} is not {}", binding.text));
                }
            }
            Ok(())
        }
        (directive::Kind::Trap(_, tag, at), Err(RunError::Trap { tag: found, invocation, .. }))
            if (*tag, *at) == (found, invocation) =>
        {
            Ok(())
        }
        (_, outcome) => Err(format!("{outcome:?}")),
    }
}

fn outcome(case: &Case) -> Result<Vec<Vec<u8>>, Failure> {
    plain(case).map_err(|error| match error {
        RunError::Trap { tag, invocation, .. } => Failure::Trap { tag, invocation },
        error @ (RunError::Rejected(_) | RunError::OutOfFuel { .. } | RunError::Timeout | RunError::Cancelled) => {
            Failure::Refused(error.to_string())
        }
    })
}

#[test]
fn check_files_hold_in_the_harness() {
    let (_, fault) = FAULTS[0];
    let case = failing(fault, 1).remove(0);
    let mut cases =
        vec![case.clone(), reduced(case, |case| shows(case, fault)).case, Case::new(parsed(SUM), vec![words(0..100)])];
    let mut all = Case::new(
        parsed(
            "program p {; workgroup n; const n: u32 = 4; const x: f32 = 1.5; const ok: bool = true; const t: dtype = f16
               buffer a: read t @0; buffer b: read vec2<f32> @1; buffer c: uniform i4 @2
               buffer out: output f32 @3; buffer two: read_write f32 @4
               if ok {; out[gid.x] = a[gid.x] * x + b[gid.x].y + f32(c[gid.x]); }; }",
        ),
        // A NaN with a payload has no spelling as a value.
        vec![vec![0, 0x3C, 1, 0x7C], words([1f32.to_bits(), 0, 0x7FC0_0001, 5]), vec![0x9F], words([0x7F80_0001])],
    );
    all.config.output_counts.insert("out".into(), 3);
    all.config.grid_override = Some([2, 1, 1]);
    all.config.specialization.insert("x", SpecValue::F32(-0.0));
    all.config.specialization.insert("t", SpecValue::DType(DataType::BF16));
    all.config.specialization.insert("n", SpecValue::U32(2));
    cases.push(all);
    let mut overridden =
        Case::new(parsed("program p {; workgroup 4; buffer out: output u32[4] @0; if gid.x == 2 {; trap(9); }; }"), vec![]);
    overridden.config.workgroup_override = Some([2, 1, 1]);
    cases.push(overridden);
    for case in cases {
        let text = check_file(&case, &outcome(&case), "run: is the word it begins with\n== after nothing ==\n\n12 things")
            .expect("an outcome");
        holds(&text).unwrap_or_else(|problem| panic!("{problem}:\n{text}"));
        assert!(text.lines().all(|line| line.len() <= 130 || !line.starts_with("//")), "{text}");
        // Another outcome does not hold.
        let wrong = match outcome(&case) {
            Ok(mut outputs) => {
                outputs.iter_mut().flatten().next().into_iter().for_each(|byte| *byte ^= 1);
                Ok(outputs)
            }
            Err(_) => Err(Failure::Trap { tag: 8, invocation: [0, 0, 0] }),
        };
        assert!(holds(&check_file(&case, &wrong, "").expect("an outcome")).is_err());
    }
    let case = Case::new(parsed(SUM), vec![words(0..4)]);
    assert_eq!(check_file(&case, &Err(Failure::OutOfFuel), "no outcome"), None);
}
