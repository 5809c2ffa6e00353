//! Passes on random programs: whatever a pass does to a program, its bytes stay, and what is said to be in bounds is.
//!
//! Every pass is tried on every program by itself, and all of them together. Programs with data races are not left out: a schedule
//! that runs an invocation without a pause from one rendezvous to the next must give them the same bytes too, since passes move
//! nothing across a rendezvous. For programs that are proven deterministic, schedules that interleave statements are tried as well.
//! A failure names the program and prints it before and after. `VYRE_SMITH_PROGRAMS` sets how many are tried.

use vyre::ir::{Expr, Item, Node, NodeId, Program, Walk};
use vyre::launch::plan;
use vyre::passes::{InBounds, PASSES, in_bounds, optimize};
use vyre::reference::{Options, RunError, Schedule, run};
use vyre_smith::generate::{Figure, Numbered};

const SEED: u64 = 23;

/// What a run gives: outputs, or the tag and invocation of a trap. Where the trap stands may change.
type Outcome = Result<Vec<Vec<u8>>, (u32, [u32; 3])>;

/// How much there was to see, so that the test itself can be judged.
#[derive(Default, Debug)]
struct Tally {
    /// By pass: how many programs it changed.
    changed: [u64; PASSES.len()],
    smaller: u64,
    proven: u64,
    accesses: u64,
    in_bounds: u64,
    out_of_bounds_elsewhere: u64,
}

struct Case {
    seed: String,
    inputs: Vec<Vec<u8>>,
    options: Options,
}

impl Case {
    fn run(&self, program: &Program, schedule: &Schedule) -> Outcome {
        let inputs: Vec<&[u8]> = self.inputs.iter().map(Vec::as_slice).collect();
        let options = Options { schedule: schedule.clone(), ..self.options.clone() };
        match run(program, &inputs, &options) {
            Ok(outputs) => Ok(outputs),
            Err(RunError::Trap { tag, invocation, .. }) => Err((tag, invocation)),
            Err(other) => panic!("{}: {other}\n{program}", self.seed),
        }
    }
}

/// That the program after a pass is a proper program of the same shape, and is read back from its text and wire forms.
fn well_formed(seed: &str, pass: &str, before: &Program, after: &Program) {
    if let Err(report) = after.validated() {
        panic!("{seed}: {pass} makes an invalid program\n{report}\nof\n{before}");
    }
    let (old, new) = (before.parts(), after.parts());
    assert!(
        old.buffers == new.buffers
            && old.workgroup == new.workgroup
            && (old.floats, old.subgroup) == (new.floats, new.subgroup)
            && before.name() == after.name(),
        "{seed}: {pass} changes more than statements\n{before}\n{after}"
    );
    let printed = after.to_string();
    let parsed = vyre::text::parse("printed", &printed).unwrap_or_else(|report| panic!("{seed}: after {pass}\n{report}"));
    assert!(parsed == *after, "{seed}: after {pass}, print and parse change the program\n{printed}\n{parsed}");
    let wire = vyre::wire::to_wire(after).expect("a valid program is not too deep");
    let decoded = vyre::wire::from_wire(&wire).unwrap_or_else(|error| panic!("{seed}: after {pass}\n{error}"));
    assert!(decoded == *after, "{seed}: after {pass}, the wire form changes the program\n{printed}\n{decoded}");
}

/// A number that no generated program traps with, but by a chance of 1 in 2³².
const OUT_OF_BOUNDS: u32 = 0x0B0B_0B0B;

/// The program with a trap before every statement that has an access which is proven to be in bounds, for the case that it is not.
/// With `proven` false, the same for the other accesses.
fn with_traps(program: &Program, facts: &InBounds, proven: bool) -> Program {
    fn trap_unless_below(buffer: &vyre::ir::Name, index: &Expr) -> Node {
        Node::if_then(Expr::ge(index.clone(), Expr::buf_len(buffer)), vec![Node::trap(OUT_OF_BOUNDS)])
    }
    fn body(nodes: &[Node], next: &mut u32, wanted: &dyn Fn(NodeId) -> bool) -> Vec<Node> {
        let mut out = Vec::new();
        for node in nodes {
            let place = NodeId(*next);
            *next += 1;
            if let Node::Store { buffer, index, .. } | Node::Atomic { buffer, index, .. } = node
                && wanted(place)
            {
                out.push(trap_unless_below(buffer, index));
            }
            for expr in node.exprs() {
                for (item, _) in Walk::expr(expr) {
                    if let Item::Expr(Expr::Load { buffer, index }) = item
                        && wanted(NodeId(*next))
                    {
                        out.push(trap_unless_below(buffer, index));
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
    let wanted = |place| facts.accesses().iter().any(|access| access.place == place && access.proven == proven);
    let nodes = body(&program.parts().body, &mut 0, &wanted);
    program.clone().edit(|parts| parts.body = nodes.into())
}

fn one_program(numbered: &Numbered, tally: &mut Tally) {
    let made = numbered.case();
    let seed = &format!("program {} of {}, seed {SEED}", numbered.number, numbered.preset.name());
    // One without values for its constants keeps them for the first pass to replace.
    let values = made.specialization.iter().map(|(name, value)| (name.as_str(), value));
    let program = match made.specialization.is_empty() {
        true => made.program.clone(),
        false => vyre::specialize(&made.program, values).expect("its values fit"),
    };
    let sizes: Vec<u64> = made.inputs.iter().map(|bytes| bytes.len() as u64).collect();
    let grid = plan(&program, &sizes, &made.launch).unwrap_or_else(|report| panic!("{report}")).grid;
    // Steps are not what passes keep.
    let options = Options { launch: made.launch, fuel: 8 * made.fuel + 1000, ..Options::default() };
    let case = Case { seed: seed.clone(), inputs: made.inputs, options };
    let proven = program.determinism().expect("it is valid").holds_for(grid);
    let whole = [Schedule::Forward, Schedule::Reverse, Schedule::Random(numbered.number)];
    let schedules: Vec<Schedule> = match proven {
        true => whole.into_iter().chain([Schedule::Interleave, Schedule::Shuffle(numbered.number)]).collect(),
        false => whole.into(),
    };
    tally.proven += u64::from(proven);
    let expected: Vec<Outcome> = schedules.iter().map(|schedule| case.run(&program, schedule)).collect();
    let same = |pass: &str, before: &Program, after: &Program, schedules: &[Schedule]| {
        for (schedule, expected) in schedules.iter().zip(&expected) {
            let found = case.run(after, schedule);
            assert!(
                found == *expected,
                "{seed}: {pass} changes the bytes under `{schedule}`\n{before}\n{after}\n{expected:?}\n{found:?}"
            );
        }
    };

    let special = PASSES[0].apply(&program);
    for (n, pass) in PASSES.iter().enumerate() {
        let before = if n == 0 { &program } else { &special };
        let after = pass.apply(before);
        if after != *before {
            tally.changed[n] += 1;
            well_formed(seed, pass.name, &special, &after);
            same(pass.name, before, &after, &schedules[..2]);
        }
        let still = |program: &Program| program.determinism().is_ok_and(|answer| answer.holds_for(grid));
        assert!(!still(before) || still(&after), "{seed}: {} loses the proof of determinism\n{before}\n{after}", pass.name);
    }

    let after = optimize(&program);
    well_formed(seed, "optimize", &special, &after);
    same("optimize", &program, &after, &schedules);
    let again = optimize(&after);
    assert!(again == after, "{seed}: optimizing again changes the program\n{after}\n{again}");
    tally.smaller += u64::from(after.walk().count() < special.walk().count());

    for program in [&special, &after] {
        let facts = in_bounds(program.validated().expect("it is valid"));
        tally.accesses += facts.accesses().len() as u64;
        tally.in_bounds += facts.accesses().iter().filter(|access| access.proven).count() as u64;
        let checked = with_traps(program, &facts, true);
        for (schedule, expected) in schedules.iter().zip(&expected) {
            let found = case.run(&checked, schedule);
            assert!(
                found == *expected,
                "{seed}: not in bounds under `{schedule}`, though proven: {:?}\n{program}\n{expected:?}\n{found:?}",
                facts.spelled(program)
            );
        }
    }
    // Accesses that are not proven do go out of bounds, and this is how it would be seen.
    let facts = in_bounds(special.validated().expect("it is valid"));
    let unproven = case.run(&with_traps(&special, &facts, false), &Schedule::Forward);
    tally.out_of_bounds_elsewhere += u64::from(unproven.is_err_and(|(tag, _)| tag == OUT_OF_BOUNDS));
}

#[test]
fn passes_keep_the_bytes_of_random_programs_and_what_is_proven_in_bounds_is() {
    let figure = Figure::asked(SEED, 4_000).and_undetermined();
    let count = figure.programs();
    let totals: Vec<Tally> = figure.count(one_program);
    let sum = |of: fn(&Tally) -> u64| totals.iter().map(of).sum::<u64>();
    println!("{count} programs, {} proven deterministic, {} made smaller", sum(|t| t.proven), sum(|t| t.smaller));
    println!(
        "{} accesses, {} proven in bounds; {} programs go out of bounds elsewhere",
        sum(|t| t.accesses),
        sum(|t| t.in_bounds),
        sum(|t| t.out_of_bounds_elsewhere)
    );
    for (n, pass) in PASSES.iter().enumerate() {
        let changed: u64 = totals.iter().map(|tally| tally.changed[n]).sum();
        println!("{} changed {changed}", pass.name);
        // A pass that does nothing keeps all bytes.
        assert!(changed * 100 > count * 5, "{} changed only {changed} of {count} programs", pass.name);
    }
    // About two in a program: an analysis that proves nothing is never wrong.
    assert!(sum(|t| t.in_bounds) > count, "too few accesses are proven to be in bounds");
    assert!(sum(|t| t.out_of_bounds_elsewhere) * 10 > count, "too few programs go out of bounds");
}

/// Programs on which an analysis that visits something twice per level, or per definition, would not end.
#[test]
fn deep_and_long_programs_end() {
    use vyre::ir::{BufferDecl, DataType};
    let buffers = || vec![BufferDecl::output("out", 0, DataType::U32), BufferDecl::read("a", 1, DataType::U32)];
    let x = || Expr::var("x");
    let add = |name: String| Expr::add(Expr::var(name.as_str()), Expr::var(name.as_str()));
    let guarded = || Node::if_then(Expr::lt(x(), Expr::buf_len("out")), vec![Node::store("out", x(), Expr::load("a", x()))]);

    let mut deep = vec![Node::assign("x", Expr::add(x(), Expr::u32(1))), guarded()];
    for n in 0..80 {
        let to = Expr::load("a", Expr::u32(n));
        deep.insert(0, Node::assign("x", Expr::mul(x(), Expr::load("a", x()))));
        deep = vec![Node::loop_for(format!("i{n}"), Expr::u32(0), to, deep), guarded()];
        deep = vec![Node::if_then_else(Expr::gt(x(), Expr::u32(n)), deep.clone(), vec![guarded()]), Node::assign("x", x())];
    }
    deep.insert(0, Node::let_bind("x", Expr::gid_x()));

    let mut long =
        vec![Node::let_bind("v0", Expr::gid_x()), Node::let_bind("c0", Expr::lt(Expr::var("v0"), Expr::buf_len("out")))];
    for n in 1..2000 {
        long.push(Node::let_bind(format!("v{n}"), add(format!("v{}", n - 1))));
        let before = || Expr::var(format!("c{}", n - 1));
        long.push(Node::let_bind(format!("c{n}"), Expr::and(before(), before())));
    }
    long.push(Node::if_then(Expr::var("c1999"), vec![Node::store("out", Expr::var("v0"), Expr::var("v1999"))]));

    for nodes in [deep, long] {
        let program = Program::wrapped(buffers(), [4, 1, 1], nodes);
        program.validated().unwrap_or_else(|report| panic!("{report}"));
        let after = optimize(&program);
        let facts = in_bounds(after.validated().expect("it stays valid"));
        assert!(facts.accesses().iter().any(|access| access.proven));
    }
}
