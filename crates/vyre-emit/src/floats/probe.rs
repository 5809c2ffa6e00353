//! Finding out which rungs are right on a device: shaders that compute each op on each rung, alone and in the company that makes
//! compilers rewrite it, judged by `vyre-scalar`.
//!
//! A shader has many *columns*, each an expression over the same operands in one mode on one rung, because compiling is what takes the
//! time. An op is proven on a rung in a mode if its own column is right and every column in which it stands together with other ops
//! that are right alone. [`FloatProfile`] then has the cheapest proven rung from `lowest` up; integers need no proof here, but
//! [`library`] gives one.

use super::kernel::{HEADER, Job, Operands, WORKGROUP, constants, kernel};
use super::library::{FloatOp, Library};
use super::profile::{FloatProfile, LadderOp, Rung};
use super::samples::Samples;
use std::collections::BTreeSet;
use std::fmt;
use vyre_spec::FloatMode;

/// What runs probes: a device, or something that pretends to be one.
pub trait Runner {
    /// Runs the job with the same compiler, and the same promises of the language, that kernels will be compiled with. An error is a
    /// finding like any other: what the shader was to prove is not proven.
    ///
    /// # Errors
    ///
    /// Why the outputs are not there, in words.
    fn run(&mut self, job: &Job) -> Result<Vec<u32>, String>;
}

/// How many operands are tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Depth {
    /// When a device is opened for the first time.
    Short,
    /// When somebody asks for it.
    Full,
}

/// An operand of an expression.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Leaf {
    A,
    B,
    C,
    /// A pattern that stands in the shader, so that the compiler knows it.
    Literal(u32),
}

/// An op of which every operand is a leaf or another op.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Expression {
    Leaf(Leaf),
    Op(LadderOp, Vec<Expression>),
}

impl Expression {
    fn ops(&self, into: &mut BTreeSet<LadderOp>) {
        match self {
            Expression::Leaf(_) => {}
            Expression::Op(op, operands) => {
                into.insert(*op);
                operands.iter().for_each(|operand| operand.ops(into));
            }
        }
    }

    /// Its text; `None` if one of its ops does not have the rung.
    fn text(&self, library: &mut Library, mode: FloatMode, rung: Rung) -> Option<String> {
        match self {
            Expression::Leaf(Leaf::Literal(pattern)) => {
                Some(format!("{:#x}u", FloatOp::Canonicalize.meaning(mode, &[*pattern])[0]))
            }
            Expression::Leaf(leaf) => Some(format!("{}_{mode}", leaf.name())),
            Expression::Op(op, operands) => {
                let function = library.on_rung(*op, rung)?;
                let operands: Option<Vec<String>> = operands.iter().map(|operand| operand.text(library, mode, rung)).collect();
                Some(format!("{function}({})", operands?.join(", ")))
            }
        }
    }

    fn value(&self, mode: FloatMode, operands: &[u32]) -> u32 {
        let canonical = |pattern: u32| FloatOp::Canonicalize.meaning(mode, &[pattern])[0];
        match self {
            Expression::Leaf(Leaf::A) => canonical(operands[0]),
            Expression::Leaf(Leaf::B) => canonical(operands[1]),
            Expression::Leaf(Leaf::C) => canonical(operands[2]),
            Expression::Leaf(Leaf::Literal(pattern)) => canonical(*pattern),
            Expression::Op(op, arguments) => {
                let arguments: Vec<u32> = arguments.iter().map(|argument| argument.value(mode, operands)).collect();
                op.op().meaning(mode, &arguments)[0]
            }
        }
    }
}

impl Leaf {
    const fn name(self) -> &'static str {
        match self {
            Leaf::A => "a",
            Leaf::B => "b",
            Leaf::C => "c",
            Leaf::Literal(_) => "literal",
        }
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expression::Leaf(Leaf::Literal(pattern)) => write!(f, "{:?}", f32::from_bits(*pattern)),
            Expression::Leaf(leaf) => f.write_str(leaf.name()),
            Expression::Op(op, operands) => {
                let operands: Vec<String> = operands.iter().map(Expression::to_string).collect();
                write!(f, "{}({})", op.name(), operands.join(", "))
            }
        }
    }
}

/// Each op alone, then what compilers are known to rewrite, or could: identities that hold for numbers but not for floats.
fn expressions() -> Vec<Expression> {
    use LadderOp::{Add, Div, Fma, Mul, Sqrt, Sub};
    const ZERO: u32 = 0;
    const MINUS_ZERO: u32 = 0x8000_0000;
    const ONE: u32 = 0x3F80_0000;
    const MINUS_ONE: u32 = 0xBF80_0000;
    const TWO: u32 = 0x4000_0000;
    const THREE: u32 = 0x4040_0000;
    let [a, b, c] = [Leaf::A, Leaf::B, Leaf::C].map(Expression::Leaf);
    let (a, b, c) = (|| a.clone(), || b.clone(), || c.clone());
    let literal = |pattern| Expression::Leaf(Leaf::Literal(pattern));
    let op = |op, operands: &[Expression]| Expression::Op(op, operands.to_vec());
    vec![
        op(Add, &[a(), b()]),
        op(Sub, &[a(), b()]),
        op(Mul, &[a(), b()]),
        op(Div, &[a(), b()]),
        op(Sqrt, &[a()]),
        op(Fma, &[a(), b(), c()]),
        op(Sub, &[a(), a()]),
        op(Div, &[a(), a()]),
        op(Add, &[a(), literal(ZERO)]),
        op(Add, &[literal(MINUS_ZERO), a()]),
        op(Sub, &[a(), literal(ZERO)]),
        op(Sub, &[literal(ZERO), a()]),
        op(Mul, &[a(), literal(ZERO)]),
        op(Mul, &[literal(ZERO), a()]),
        op(Mul, &[a(), literal(ONE)]),
        op(Mul, &[literal(MINUS_ONE), a()]),
        op(Div, &[a(), literal(ONE)]),
        op(Div, &[literal(ONE), a()]),
        op(Div, &[a(), literal(THREE)]),
        op(Div, &[literal(ZERO), a()]),
        op(Fma, &[a(), b(), literal(ZERO)]),
        op(Fma, &[a(), literal(ONE), c()]),
        op(Sub, &[op(Add, &[a(), b()]), a()]),
        op(Add, &[op(Sub, &[a(), b()]), b()]),
        op(Add, &[op(Add, &[a(), b()]), c()]),
        op(Add, &[a(), op(Add, &[b(), c()])]),
        op(Mul, &[op(Mul, &[a(), b()]), c()]),
        op(Add, &[op(Mul, &[a(), b()]), c()]),
        op(Sub, &[op(Mul, &[a(), b()]), c()]),
        op(Sub, &[c(), op(Mul, &[a(), b()])]),
        op(Add, &[op(Mul, &[a(), c()]), op(Mul, &[b(), c()])]),
        op(Div, &[op(Mul, &[a(), literal(TWO)]), literal(TWO)]),
        op(Div, &[op(Mul, &[a(), b()]), b()]),
        op(Mul, &[op(Div, &[a(), b()]), b()]),
        op(Sqrt, &[op(Mul, &[a(), a()])]),
        op(Div, &[literal(ONE), op(Sqrt, &[a()])]),
        op(Mul, &[op(Sqrt, &[a()]), op(Sqrt, &[a()])]),
    ]
}

struct Column {
    expression: Expression,
    mode: FloatMode,
    rung: Rung,
    text: String,
    /// The ops in it.
    ops: BTreeSet<LadderOp>,
}

/// What was wrong with one column, at the first operands where it was.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The expression, as calls of ops.
    pub expression: String,
    /// The float mode it was computed in.
    pub mode: FloatMode,
    /// The rung of its ops.
    pub rung: Rung,
    /// The ops that stand in it.
    pub ops: Vec<LadderOp>,
    /// What was wrong.
    pub what: Wrong,
}

/// What can be wrong with results.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Wrong {
    /// They differ from the meaning.
    Differs {
        /// The words of the operands.
        operands: Vec<u32>,
        /// What the device gave.
        found: Vec<u32>,
        /// What the op means.
        expected: Vec<u32>,
        /// Of how many cases this was wrong.
        wrong: usize,
    },
    /// There are none, for this reason.
    Missing(String),
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {}, {}: {}", self.expression, self.mode, self.rung.name(), self.what)
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wrong::Differs { operands, found, expected, wrong } => {
                write!(f, "{operands:08x?} gives {found:08x?}, not {expected:08x?}, and {wrong} cases in all are wrong")
            }
            Wrong::Missing(why) => write!(f, "no results: {why}"),
        }
    }
}

/// What probes of a device have shown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// The rungs to use.
    pub profile: FloatProfile,
    /// Why they are no lower.
    pub findings: Vec<Finding>,
    /// Operands that each expression was tried on.
    pub cases: usize,
}

impl Depth {
    /// Operands that each expression of the ladder is tried on.
    const fn cases(self) -> usize {
        match self {
            Depth::Short => 1 << 13,
            Depth::Full => 1 << 19,
        }
    }

    fn samples(self) -> Samples {
        match self {
            Depth::Short => Samples::few(3),
            Depth::Full => Samples::many(3),
        }
    }
}

/// What probes of the ladder try, in words: their shader as naga compiles it, and operands. A profile that was found by others says
/// nothing about the functions that kernels call now, or about those of another naga. `None` if naga refuses the shader.
#[must_use]
pub fn subject(lowest: Rung) -> Option<Vec<u32>> {
    let module = naga::front::wgsl::parse_str(&shader(lowest).1).ok()?;
    let (flags, capabilities) = (naga::valid::ValidationFlags::all(), naga::valid::Capabilities::empty());
    let info = naga::valid::Validator::new(flags, capabilities).validate(&module).ok()?;
    let mut words = naga::back::spv::write_vec(&module, &info, &naga::back::spv::Options::default(), None).ok()?;
    for depth in [Depth::Short, Depth::Full] {
        words.push(depth.cases() as u32);
        words.extend(depth.samples().patterns(1 << 10));
    }
    Some(words)
}

/// Runs the probes of the ladder. `lowest` is [`Rung::Protected`] unless the runner compiles under a promise that nothing is rewritten.
///
/// The short form is one shader. The bytes of kernels do not depend on the answer, only their speed.
pub fn profile(runner: &mut dyn Runner, lowest: Rung, depth: Depth) -> Outcome {
    let cases = depth.cases();
    let (columns, wgsl) = shader(lowest);
    let mut wrong: Vec<Option<Wrong>> = columns.iter().map(|_| None).collect();
    let mut samples = depth.samples();
    let mut left = cases;
    while left > 0 {
        let count = left.min(1 << 16);
        left -= count;
        let job = Job {
            wgsl: wgsl.clone(),
            inputs: samples.patterns(count),
            outputs: count * columns.len(),
            constants: constants(),
            workgroups: (count as u32).div_ceil(WORKGROUP),
        };
        let outputs = runner.run(&job).and_then(|outputs| match outputs.len() == job.outputs {
            true => Ok(outputs),
            false => Err(format!("{} words instead of {}", outputs.len(), job.outputs)),
        });
        for (index, column) in columns.iter().enumerate() {
            let outputs = match &outputs {
                Ok(outputs) => outputs,
                Err(why) => {
                    wrong[index].get_or_insert_with(|| Wrong::Missing(why.clone()));
                    continue;
                }
            };
            for (operands, row) in job.inputs.chunks(3).zip(outputs.chunks(columns.len())) {
                let expected = column.expression.value(column.mode, operands);
                if row[index] != expected {
                    note(&mut wrong[index], operands, &[row[index]], &[expected]);
                }
            }
        }
    }

    let mut profile = FloatProfile::INTEGER;
    for mode in FloatMode::ALL {
        // From the most expensive rung down, so that the cheapest one that is proven is set last.
        for rung in Rung::ALL.into_iter().rev().filter(|rung| *rung != Rung::Integer) {
            let here = |column: &Column| column.mode == mode && column.rung == rung;
            let alone = |column: &Column| column.ops.len() == 1;
            let failed = |keep: &dyn Fn(&Column) -> bool| -> BTreeSet<LadderOp> {
                let columns =
                    columns.iter().zip(&wrong).filter(|(column, wrong)| here(column) && wrong.is_some() && keep(column));
                columns.flat_map(|(column, _)| column.ops.iter().copied()).collect()
            };
            let alone = failed(&alone);
            // An op that is wrong by itself says nothing about those it stands with.
            let together = failed(&|column| column.ops.is_disjoint(&alone));
            for op in LadderOp::ALL {
                let tried = columns.iter().any(|column| here(column) && column.ops.contains(&op));
                if tried && !alone.contains(&op) && !together.contains(&op) {
                    profile.set(mode, op, rung);
                }
            }
        }
    }
    let findings = columns.into_iter().zip(wrong).filter_map(|(column, wrong)| {
        Some(Finding {
            expression: column.expression.to_string(),
            mode: column.mode,
            rung: column.rung,
            ops: column.ops.into_iter().collect(),
            what: wrong?,
        })
    });
    Outcome { profile, findings: findings.collect(), cases }
}

fn note(wrong: &mut Option<Wrong>, operands: &[u32], found: &[u32], expected: &[u32]) {
    match wrong {
        Some(Wrong::Differs { wrong, .. }) => *wrong += 1,
        Some(Wrong::Missing(_)) => {}
        None => {
            let [operands, found, expected] = [operands, found, expected].map(<[u32]>::to_vec);
            *wrong = Some(Wrong::Differs { operands, found, expected, wrong: 1 });
        }
    }
}

/// One shader with a column for each expression, mode and rung from `lowest` up but the last.
fn shader(lowest: Rung) -> (Vec<Column>, String) {
    let mut columns = Vec::new();
    let mut source = Vec::new();
    for mode in FloatMode::ALL {
        let mut library = Library::new(mode, FloatProfile::INTEGER);
        for expression in expressions() {
            for rung in Rung::ALL.into_iter().filter(|rung| *rung >= lowest && *rung != Rung::Integer) {
                if let Some(text) = expression.text(&mut library, mode, rung) {
                    let mut ops = BTreeSet::new();
                    expression.ops(&mut ops);
                    columns.push(Column { expression: expression.clone(), mode, rung, text, ops });
                }
            }
        }
        let canonicalize = library.function(FloatOp::Canonicalize);
        source.push((mode, library, canonicalize.unwrap_or_default()));
    }
    let mut wgsl = String::from(HEADER);
    wgsl.push_str(&Library::together(source.iter().map(|(_, library, _)| library)));
    wgsl.push_str(&format!(
        "@compute @workgroup_size({WORKGROUP})\nfn main(@builtin(global_invocation_id) id: vec3<u32>) {{\n  \
         if 3u * id.x + 2u >= arrayLength(&inputs) {{\n    return;\n  }}\n"
    ));
    for (mode, _, canonicalize) in &source {
        for (index, leaf) in [Leaf::A, Leaf::B, Leaf::C].into_iter().enumerate() {
            wgsl.push_str(&format!("  let {}_{mode} = {canonicalize}(inputs[3u * id.x + {index}u]);\n", leaf.name()));
        }
    }
    wgsl.push_str(&format!("  let at = {}u * id.x;\n", columns.len()));
    for (index, column) in columns.iter().enumerate() {
        wgsl.push_str(&format!("  outputs[at + {index}u] = {};\n", column.text));
    }
    wgsl.push_str("}\n");
    (columns, wgsl)
}

/// Runs every op of the library in integers, each in a shader of its own, and gives what is wrong. An op that is found here must not be
/// used on the device.
pub fn library(runner: &mut dyn Runner, depth: Depth) -> Vec<(FloatOp, FloatMode, Wrong)> {
    let (cases, samples): (_, fn(usize) -> Samples) = match depth {
        Depth::Short => (1 << 12, Samples::few),
        Depth::Full => (1 << 18, Samples::many),
    };
    let mut found = Vec::new();
    for op in FloatOp::all() {
        for mode in FloatMode::ALL {
            let Some((wgsl, (stride, width))) = kernel(op, mode, FloatProfile::INTEGER, Operands::Listed).zip(op.words()) else {
                continue;
            };
            let job = Job {
                wgsl,
                inputs: samples(stride).operands(op, mode, cases),
                outputs: cases * width,
                constants: constants(),
                workgroups: (cases as u32).div_ceil(WORKGROUP),
            };
            let mut wrong = None;
            match runner.run(&job) {
                Ok(outputs) => {
                    for (operands, result) in job.inputs.chunks(stride).zip(outputs.chunks(width)) {
                        let expected = &op.meaning(mode, operands)[..width];
                        if result != expected {
                            note(&mut wrong, operands, result, expected);
                        }
                    }
                }
                Err(why) => wrong = Some(Wrong::Missing(why)),
            }
            found.extend(wrong.map(|wrong| (op, mode, wrong)));
        }
    }
    found
}
