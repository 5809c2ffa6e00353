//! Passes and the SSA form on generated programs: whatever is done to a program, its bytes stay, and what is said to be in bounds is.
//!
//! Every program is made into SSA and written back; every pass is tried by itself, and all of them together. `VYRE_SMITH_PROGRAMS` sets
//! how many are tried; a failure names the preset and the number of the program.

use std::sync::atomic::{AtomicU64, Ordering};
use vyre_foundation::analysis::Bounds;
use vyre_foundation::ir::{Expr, Item, Name, Node, NodeId, Program, Walk};
use vyre_foundation::passes::{PASSES, optimize};
use vyre_foundation::{specialize, text, wire};
use vyre_reference::{Options, RunError, run};
use vyre_smith::generate::{Figure, Numbered};
use vyre_worker::Case;

const SEED: u64 = 2;

/// Calls `each` with every deterministic program of a figure, its constants replaced, on two threads.
fn for_each(figure: &Figure, each: impl Fn(&str, &Case) + Sync) {
    figure.count(|numbered: &Numbered, _: &mut ()| {
        let mut case = numbered.case();
        let values = std::mem::take(&mut case.config.specialization);
        let values = values.iter();
        case.program = specialize(&case.program, values).unwrap_or_else(|report| panic!("{report}"));
        each(&format!("program {} of {}", numbered.number, numbered.preset.name()), &case);
    });
}

/// What a run gives: outputs, or the tag and invocation of a trap. Where the trap stands may change.
type Outcome = Result<Vec<Vec<u8>>, (u32, [u32; 3])>;

fn outcome(who: &str, case: &Case, program: &Program) -> Outcome {
    let options = Options { launch: case.config.launch(), fuel: case.fuel.saturating_mul(4), ..Options::default() };
    match run(program, &case.input_slices(), &options) {
        Ok(outputs) => Ok(outputs),
        Err(RunError::Trap { tag, invocation, .. }) => Err((tag, invocation)),
        Err(other) => panic!("{who}: {other}\n{program}"),
    }
}

/// That the program is a proper program of the same shape, is read back from its text and wire forms, and gives the same bytes.
fn same(who: &str, what: &str, case: &Case, expected: &Outcome, after: &Program) {
    let before = &case.program;
    if let Err(report) = after.validated() {
        panic!("{who}: {what} makes an invalid program\n{report}\nof\n{before}");
    }
    let (old, new) = (before.parts(), after.parts());
    assert!(
        old.buffers == new.buffers
            && old.workgroup == new.workgroup
            && (old.floats, old.subgroup) == (new.floats, new.subgroup)
            && before.name() == after.name(),
        "{who}: {what} changes more than statements\n{before}\n{after}"
    );
    let printed = after.to_string();
    let parsed = text::parse("printed", &printed).unwrap_or_else(|report| panic!("{who}: after {what}\n{report}"));
    assert!(parsed == *after, "{who}: after {what}, print and parse change the program\n{printed}\n{parsed}");
    let bytes = wire::to_wire(after).expect("a valid program is not too deep");
    let decoded = wire::from_wire(&bytes).unwrap_or_else(|error| panic!("{who}: after {what}\n{error}"));
    assert!(decoded == *after, "{who}: after {what}, the wire form changes the program\n{printed}\n{decoded}");
    let found = outcome(who, case, after);
    assert!(found == *expected, "{who}: {what} changes the bytes\n{before}\n{after}\n{expected:?}\n{found:?}\n{case:?}");
}

#[test]
fn a_program_made_into_ssa_and_written_back_gives_the_same_bytes() {
    for_each(&Figure::asked(SEED, 8_000), |who, case| {
        let ssa = case.program.validated().unwrap_or_else(|report| panic!("{report}")).ssa();
        ssa.verify().unwrap_or_else(|broken| panic!("{who}: {broken}\n{}\n{ssa}", case.program));
        same(who, "SSA", case, &outcome(who, case, &case.program), &ssa.to_program(&case.program));
    });
}

#[test]
fn passes_keep_the_bytes() {
    let changed: Vec<AtomicU64> = PASSES.iter().map(|_| AtomicU64::new(0)).collect();
    let smaller = AtomicU64::new(0);
    let figure = Figure::asked(SEED, 8_000);
    let count = figure.programs();
    for_each(&figure, |who, case| {
        let expected = outcome(who, case, &case.program);
        for (pass, changed) in PASSES.iter().zip(&changed) {
            let after = pass.apply(&case.program);
            if after != case.program {
                changed.fetch_add(1, Ordering::Relaxed);
                same(who, pass.name, case, &expected, &after);
            }
        }
        let after = optimize(&case.program);
        same(who, "optimize", case, &expected, &after);
        let again = optimize(&after);
        assert!(again == after, "{who}: optimizing again changes the program\n{after}\n{again}");
        smaller.fetch_add(u64::from(after.walk().count() < case.program.walk().count()), Ordering::Relaxed);
    });
    println!("{count} programs, {} made smaller", smaller.into_inner());
    for (pass, changed) in PASSES.iter().zip(changed) {
        let changed = changed.into_inner();
        println!("{} changed {changed}", pass.name);
        // A pass that does nothing keeps all bytes.
        assert!(changed * 100 > count * 4, "{} changed only {changed} of {count} programs", pass.name);
    }
}

/// A number that no generated program traps with: its tags are below 1000.
const OUT_OF_BOUNDS: u32 = 0x0B0B_0B0B;

/// The program with a trap before every statement that has one of these accesses, for the case that it is out of bounds.
fn with_traps(program: &Program, wanted: &dyn Fn(NodeId) -> bool) -> Program {
    fn trap_unless_below(buffer: &Name, index: &Expr) -> Node {
        Node::if_then(Expr::ge(index.clone(), Expr::buf_len(buffer)), vec![Node::trap(OUT_OF_BOUNDS)])
    }
    fn body(nodes: &[Node], next: &mut u32, wanted: &dyn Fn(NodeId) -> bool) -> Vec<Node> {
        let mut out = Vec::new();
        for node in nodes {
            let id = NodeId(*next);
            *next += 1;
            if let Some((buffer, index)) = node.access()
                && wanted(id)
            {
                out.push(trap_unless_below(buffer, index));
            }
            for expr in node.exprs() {
                for (item, _) in Walk::expr(expr) {
                    if let Item::Expr(Expr::Load(load)) = item
                        && wanted(NodeId(*next))
                    {
                        out.push(trap_unless_below(&load.buffer, &load.index));
                    }
                    *next += 1;
                }
            }
            let mut new = node.clone();
            for (new, old) in new.bodies_mut().zip(node.bodies()) {
                *new = body(old, next, wanted).into();
            }
            out.push(new);
        }
        out
    }
    let nodes = body(&program.parts().body, &mut 0, wanted);
    program.clone().edit(|parts| parts.body = nodes.into())
}

#[test]
fn what_is_proven_in_bounds_is() {
    let [accesses, proven, elsewhere] = [const { AtomicU64::new(0) }; 3];
    let figure = Figure::asked(SEED, 5_000);
    let count = figure.programs();
    for_each(&figure, |who, case| {
        for program in [&case.program, &optimize(&case.program)] {
            let expected = outcome(who, case, program);
            let validated = program.validated().unwrap_or_else(|report| panic!("{report}"));
            let facts = Bounds::of(validated.ssa());
            let of = |wanted: bool| -> std::collections::HashSet<NodeId> {
                let all = (0..).zip(&validated.kernel().accesses);
                let all = all.filter(|(n, _)| facts.is_proven(vyre_foundation::kernel::AccessId(*n)) == wanted);
                all.map(|(_, access)| access.node).collect()
            };
            let (known, others) = (of(true), of(false));
            proven.fetch_add(known.len() as u64, Ordering::Relaxed);
            accesses.fetch_add((known.len() + others.len()) as u64, Ordering::Relaxed);
            let found = outcome(who, case, &with_traps(program, &|node| known.contains(&node)));
            assert!(found == expected, "{who}: not in bounds, though proven: {:?}\n{program}", facts.spelled(program));
            // Accesses that are not proven do go out of bounds, and this is how it would be seen.
            let unproven = outcome(who, case, &with_traps(program, &|node| others.contains(&node)));
            elsewhere.fetch_add(u64::from(unproven.is_err_and(|(tag, _)| tag == OUT_OF_BOUNDS)), Ordering::Relaxed);
        }
    });
    let [accesses, proven, elsewhere] = [accesses, proven, elsewhere].map(AtomicU64::into_inner);
    println!("{accesses} accesses, {proven} proven in bounds; {elsewhere} programs go out of bounds elsewhere");
    // Both happen often enough for a wrong proof to be met.
    assert!(proven > count / 2, "only {proven} accesses of {count} programs are proven to be in bounds");
    assert!(elsewhere > count / 10, "only {elsewhere} of {count} programs go out of bounds");
}
