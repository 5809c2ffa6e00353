//! Whether the specs of compositions notice faults: each kernel is broken at one place after the other (a constant, an operator, a
//! barrier), and its cases must tell.
//!
//! Many changes change nothing: a loop that runs longer over a guard that holds it back, an identity that is written by others as well, a
//! comparison at a value that is never met. They are why the limits below are far from 100 %; what is not noticed is printed. A barrier
//! is never without reason: leaving one out must be found every time.

use vyre_conform::suite::compositions;
use vyre_conform::{Draw, OpSpec, Shape};
use vyre_foundation::config::DispatchConfig;
use vyre_foundation::ir::{BinaryOp, Expr, Literal, Node, Program};
use vyre_foundation::memory_model::MemoryOrdering;
use vyre_reference::checked::{CheckedReport, Effort, Verdict, check};
use vyre_reference::{Options, bulk};

/// Small, so that a few hundred elements are many workgroups, and odd.
const WORKGROUP: u32 = 5;
/// Constants and operators that are tried of each kernel, and barriers, all over it. Only the sort has more barriers.
const PLACES: usize = 20;
/// Dispatches that are run with each, until one tells.
const DISPATCHES: u64 = 10;
/// Those that the checked mode looks at as well.
const CHECKED: usize = 3;

/// A place that can be broken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Value,
    Barrier,
}

/// Breaks the program at place `at` of this kind; `None` if there are not so many.
fn broken(program: &Program, kind: Kind, at: usize) -> Option<(Program, String)> {
    let mut left = at;
    let mut what = None;
    let program = program.clone().edit(|parts| nodes(&mut parts.body, kind, &mut left, &mut what));
    what.map(|what| (program, what))
}

/// How many places of this kind there are.
fn places(program: &Program, kind: Kind) -> usize {
    let mut left = usize::MAX;
    let _ = program.clone().edit(|parts| nodes(&mut parts.body, kind, &mut left, &mut None));
    usize::MAX - left
}

/// At most `PLACES` of the places, all over the program.
fn some_places(program: &Program, kind: Kind) -> Vec<usize> {
    let all = places(program, kind);
    let some = all.min(PLACES);
    (0..some).map(|n| n * all / some).collect()
}

fn nodes(body: &mut [Node], kind: Kind, left: &mut usize, what: &mut Option<String>) {
    for node in body {
        if let Node::Barrier { ordering } = node {
            if kind == Kind::Barrier && what.is_none() {
                if *left == 0 {
                    *what = Some(format!("left out: {ordering:?}"));
                    *node = match ordering {
                        // Of the workgroup alone.
                        MemoryOrdering::GridSync => Node::barrier(),
                        MemoryOrdering::Relaxed
                        | MemoryOrdering::Acquire
                        | MemoryOrdering::Release
                        | MemoryOrdering::AcqRel
                        | MemoryOrdering::SeqCst => Node::block(Vec::new()),
                    };
                    return;
                }
                *left -= 1;
            }
            continue;
        }
        if kind == Kind::Value {
            node.exprs_mut().for_each(|expr| exprs(expr, left, what));
        }
        node.bodies_mut().for_each(|body| nodes(body, kind, left, what));
    }
}

fn exprs(expr: &mut Expr, left: &mut usize, what: &mut Option<String>) {
    let changed = match expr {
        Expr::Lit(Literal::U32(value)) => Some(Expr::u32(value.wrapping_add(1))),
        Expr::Lit(Literal::U64(value)) => Some(Expr::u64(value.wrapping_add(1))),
        Expr::Lit(Literal::F32(value)) => Some(Expr::f32(value.value() + 1.0)),
        Expr::Binary { op, left, right } => other(*op).map(|op| Expr::binary(op, (**left).clone(), (**right).clone())),
        Expr::Lit(_)
        | Expr::Var(_)
        | Expr::Builtin(_)
        | Expr::Len(_)
        | Expr::Load(_)
        | Expr::Unary { .. }
        | Expr::Ternary { .. }
        | Expr::Cast { .. }
        | Expr::Bitcast { .. }
        | Expr::Vector { .. }
        | Expr::Extract { .. } => None,
    };
    if let Some(changed) = changed
        && what.is_none()
    {
        if *left == 0 {
            *what = Some(format!("{expr} → {changed}"));
            *expr = changed;
            return;
        }
        *left -= 1;
    }
    expr.children_mut().for_each(|child| exprs(child, left, what));
}

/// The op that is mistaken for this one.
fn other(op: BinaryOp) -> Option<BinaryOp> {
    let pairs = [
        (BinaryOp::Add, BinaryOp::Sub),
        (BinaryOp::Mul, BinaryOp::Add),
        (BinaryOp::Div, BinaryOp::Mul),
        (BinaryOp::Rem, BinaryOp::Div),
        (BinaryOp::Min, BinaryOp::Max),
        (BinaryOp::BitAnd, BinaryOp::BitOr),
        (BinaryOp::BitXor, BinaryOp::BitOr),
        (BinaryOp::Shl, BinaryOp::Shr),
        (BinaryOp::Rotl, BinaryOp::Rotr),
        (BinaryOp::And, BinaryOp::Or),
        (BinaryOp::Lt, BinaryOp::Le),
        (BinaryOp::Gt, BinaryOp::Ge),
        (BinaryOp::Eq, BinaryOp::Ne),
    ];
    pairs.iter().find_map(|(a, b)| if *a == op { Some(*b) } else { (*b == op).then_some(*a) })
}

/// A dispatch of cases of a spec, and its result in plain Rust.
struct Trial {
    inputs: Vec<Vec<u8>>,
    config: DispatchConfig,
    expected: Vec<u8>,
}

/// One dispatch; those that are not of their own have some cases side by side.
fn trial(spec: &OpSpec, number: u64) -> Trial {
    let cpu = spec.cpu_fn().expect("all have it");
    let space = &spec.spaces()[0];
    let draw = |case: u64| {
        let mut columns = vec![Vec::new(); spec.signature().inputs.len()];
        space.fill(Draw { seed: 7, workgroup: WORKGROUP }, case..case + 1, &mut columns);
        columns
    };
    match spec.shape() {
        Shape::Dispatch(launch) => {
            let inputs = draw(number);
            let config = launch(WORKGROUP, &inputs.iter().map(Vec::as_slice).collect::<Vec<_>>());
            Trial { expected: cpu(&vyre_conform::spec::frame(&inputs)), inputs, config }
        }
        Shape::Elements(_) | Shape::Workgroup(_) => {
            let cases = if matches!(spec.shape(), Shape::Elements(_)) { 40 } else { 2 };
            let extent = spec.shape().extent(WORKGROUP).expect("it is not a dispatch of its own");
            let each: Vec<Vec<Vec<u8>>> = (number * cases..(number + 1) * cases).map(draw).collect();
            let inputs =
                (0..spec.signature().inputs.len()).map(|n| each.iter().flat_map(|case| case[n].clone()).collect()).collect();
            let results: Vec<Vec<u8>> = each.iter().map(|case| cpu(&case.concat())).collect();
            let bytes = |n: usize| {
                let bits = spec.signature().outputs[n].bits().expect("it has a size");
                (bits * u64::from(extent.outputs[n]) / 8) as usize
            };
            let mut expected = Vec::new();
            let mut start = 0;
            for n in 0..extent.outputs.len() {
                results.iter().for_each(|result| expected.extend(&result[start..][..bytes(n)]));
                start += bytes(n);
            }
            let program = spec.program([WORKGROUP, 1, 1]);
            let names = program.interface().outputs.iter().map(|buffer| program.buffers()[*buffer].name.to_string());
            let groups = (cases as u32 * extent.invocations).div_ceil(WORKGROUP);
            let config = DispatchConfig {
                grid_override: Some([groups, 1, 1]),
                output_counts: names.zip(&extent.outputs).map(|(name, count)| (name, count * cases as u32)).collect(),
                ..DispatchConfig::default()
            };
            Trial { inputs, config, expected }
        }
    }
}

impl Trial {
    fn inputs(&self) -> Vec<&[u8]> {
        self.inputs.iter().map(Vec::as_slice).collect()
    }

    /// Enough for every kernel that is right, too little for loops that are nearly endless.
    fn options(&self) -> Options {
        Options { launch: self.config.launch(), fuel: 2_000_000, ..Options::default() }
    }

    /// Whether the outputs of this program, or that it has none, say that it is broken.
    fn tells(&self, program: &Program) -> bool {
        bulk::run(program, &self.inputs(), &self.options()).map_or(true, |outputs| outputs.concat() != self.expected)
    }

    /// Whether the checked mode says that it is broken: some schedule gives something else, or memory is read that nobody has written or
    /// that there is not.
    fn is_found(&self, program: &Program) -> bool {
        let effort = Effort { executions: 0, ..Effort::default() };
        match check(program, &self.inputs(), &self.options(), &effort) {
            Ok(CheckedReport { verdict: Verdict::Deterministic, findings, outcome: Ok(outputs), .. }) => {
                !findings.is_empty() || outputs.concat() != self.expected
            }
            Ok(_) | Err(_) => true,
        }
    }
}

#[test]
fn broken_kernels_are_noticed() {
    let (mut all, mut noticed, mut failures) = (0, 0, Vec::new());
    for spec in compositions() {
        let trials: Vec<Trial> = (0..DISPATCHES).map(|n| trial(&spec, n)).collect();
        let program = spec.program([WORKGROUP, 1, 1]);
        assert!(trials.iter().all(|trial| !trial.tells(&program)), "{} is right", spec.id());
        assert!(trials[..CHECKED].iter().all(|trial| !trial.is_found(&program)), "{} is clean", spec.id());

        let tried = some_places(&program, Kind::Value);
        let mut survivors = Vec::new();
        for at in &tried {
            let Some((mutant, what)) = broken(&program, Kind::Value, *at) else { continue };
            let noticed =
                || trials.iter().any(|trial| trial.tells(&mutant)) || trials[..CHECKED].iter().any(|it| it.is_found(&mutant));
            if mutant.validated().is_ok() && !noticed() {
                survivors.push(what);
            }
        }
        for at in some_places(&program, Kind::Barrier) {
            let Some((mutant, what)) = broken(&program, Kind::Barrier, at) else { continue };
            if !trials.iter().any(|trial| trial.is_found(&mutant)) {
                failures.push(format!("{}: barrier {at}, {what}", spec.id()));
            }
        }
        println!("{}: {} of {} noticed; not: {survivors:?}", spec.id(), tried.len() - survivors.len(), tried.len());
        all += tried.len();
        noticed += tried.len() - survivors.len();
        if (tried.len() - survivors.len()) * 10 < tried.len() * 6 {
            failures.push(format!("{}: {survivors:?}", spec.id()));
        }
    }
    println!("{noticed} of {all} noticed");
    assert!(failures.is_empty(), "not noticed: {failures:#?}");
    assert!(noticed * 4 >= all * 3, "{noticed} of {all} noticed");
}
