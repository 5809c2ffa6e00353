//! Large programs to be reduced, and evaluations of them that are wrong in one way.

use vyre_foundation::ir::*;
use vyre_foundation::kernel::ExprKind;
use vyre_reference::{Options, RunError, run};
use vyre_worker::Case;

/// splitmix64.
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

const TYPES: [Scalar; 3] = [Scalar::U32, Scalar::I32, Scalar::F32];

struct Builder {
    rng: Rng,
    vars: Vec<(Name, Scalar)>,
    made: u32,
    nodes: usize,
}

/// A case of about 500 nodes.
pub fn large(seed: u64) -> Case {
    sized(seed, 490)
}

/// A case of about so many nodes: integers and floats, branches, loops, workgroup memory; each invocation has its own elements.
pub fn sized(seed: u64, nodes: usize) -> Case {
    let mut builder = Builder { rng: Rng(seed), vars: vec![("id".into(), Scalar::U32)], made: 0, nodes: 0 };
    let mut body = vec![Node::let_bind("id", Expr::gid_x())];
    while builder.nodes < nodes {
        body.extend(builder.statement(3));
    }
    let buffers = vec![
        BufferDecl::read("in_u", 0, DataType::U32),
        BufferDecl::read("in_i", 1, DataType::I32).with_count(48),
        BufferDecl::read("in_f", 2, DataType::F32),
        BufferDecl::output("out_u", 3, DataType::U32),
        BufferDecl::read_write("out_i", 5, DataType::I32),
        BufferDecl::output("out_f", 9, DataType::F32).with_count(48),
        BufferDecl::workgroup("shared", DataType::U32).with_count(16),
    ];
    let program = Program::wrapped(buffers, [16, 1, 1], body)
        .with_name("large")
        .with_const("limit", SpecValue::U32(7))
        .with_floats(if seed.is_multiple_of(2) { FloatMode::Ieee } else { FloatMode::Canonical });
    let mut input = |float: bool| -> Vec<u8> {
        let word = |rng: &mut Rng| match rng.below(4) {
            0 => rng.next() as u32,
            1 => (rng.next() % 9) as u32,
            2 if float => ((rng.next() % 2000) as f32 / 16.0 - 60.0).to_bits(),
            _ => [0, 1, 0x8000_0000, 0x7FFF_FFFF, u32::MAX, 0x3F80_0000][rng.below(6)],
        };
        (0..48).flat_map(|_| word(&mut builder.rng).to_le_bytes()).collect()
    };
    let inputs = vec![input(false), input(false), input(true), input(false)];
    Case::new(program, inputs)
}

impl Builder {
    fn fresh(&mut self, scalar: Scalar) -> Name {
        self.made += 1;
        let name = Name::from(format!("v{}", self.made));
        self.vars.push((name.clone(), scalar));
        name
    }

    fn statement(&mut self, depth: u32) -> Vec<Node> {
        self.nodes += 1;
        let scalar = TYPES[self.rng.below(3)];
        let visible = self.vars.len();
        match self.rng.below(10) {
            0..=3 => {
                let value = self.expr(scalar, 4);
                vec![Node::let_bind(self.fresh(scalar), value)]
            }
            4 => {
                let targets: Vec<(Name, Scalar)> = self.vars.iter().filter(|(name, _)| name.starts_with('v')).cloned().collect();
                if targets.is_empty() {
                    return vec![];
                }
                let (name, scalar) = targets[self.rng.below(targets.len())].clone();
                vec![Node::assign(name, self.expr(scalar, 4))]
            }
            5 if depth > 0 => {
                let cond = self.compare();
                let (then, otherwise) = (self.body(depth - 1), self.body(depth - 1));
                self.vars.truncate(visible);
                vec![Node::if_then_else(cond, then, otherwise)]
            }
            6 if depth > 0 => {
                self.made += 1;
                let counter = Name::from(format!("n{}", self.made));
                self.vars.push((counter.clone(), Scalar::U32));
                let body = self.body(depth - 1);
                self.vars.truncate(visible);
                let to = if self.rng.below(2) == 0 { Expr::var("limit") } else { Expr::u32(3) };
                self.nodes += 2;
                vec![Node::loop_for(counter, Expr::u32(1), to, body)]
            }
            7 if depth == 3 => {
                let value = self.expr(Scalar::U32, 3);
                let load = Expr::load("shared", Expr::bitxor(Expr::lid_x(), Expr::u32(1)));
                self.nodes += 9;
                let name = self.fresh(Scalar::U32);
                vec![Node::barrier(), Node::store("shared", Expr::lid_x(), value), Node::barrier(), Node::let_bind(name, load)]
            }
            _ => {
                let out = match scalar {
                    Scalar::U32 => "out_u",
                    Scalar::I32 => "out_i",
                    Scalar::F32 | Scalar::Bool | Scalar::U64 | Scalar::I64 | Scalar::F64 => "out_f",
                };
                self.nodes += 1;
                vec![Node::store(out, Expr::var("id"), self.expr(scalar, 4))]
            }
        }
    }

    fn body(&mut self, depth: u32) -> Vec<Node> {
        let visible = self.vars.len();
        let nodes = (0..1 + self.rng.below(4)).flat_map(|_| self.statement(depth)).collect();
        self.vars.truncate(visible);
        nodes
    }

    fn compare(&mut self) -> Expr {
        let scalar = TYPES[self.rng.below(3)];
        self.nodes += 1;
        let (a, b) = (self.expr(scalar, 2), self.expr(scalar, 2));
        match self.rng.below(3) {
            0 => Expr::lt(a, b),
            1 => Expr::ne(a, b),
            _ => Expr::ge(a, b),
        }
    }

    fn expr(&mut self, scalar: Scalar, depth: u32) -> Expr {
        self.nodes += 1;
        if depth == 0 || self.rng.below(5) == 0 {
            return self.leaf(scalar);
        }
        if self.rng.below(8) == 0 {
            let from = TYPES[self.rng.below(3)];
            let value = self.expr(from, depth - 1);
            return if self.rng.below(2) == 0 { Expr::cast(scalar, value) } else { Expr::bitcast(scalar, value) };
        }
        if self.rng.below(8) == 0 {
            let cond = self.compare();
            return Expr::select(cond, self.expr(scalar, depth - 1), self.expr(scalar, depth - 1));
        }
        let (a, b) = (self.expr(scalar, depth - 1), self.expr(scalar, depth - 1));
        match (scalar, self.rng.below(7)) {
            (_, 0) => Expr::add(a, b),
            (_, 1) => Expr::sub(a, b),
            (_, 2) => Expr::mul(a, b),
            (_, 3) => Expr::min(a, b),
            (_, 4) => Expr::div(a, b),
            (Scalar::F32, 5) => Expr::fma(a, b, self.leaf(Scalar::F32)),
            (Scalar::F32, _) => Expr::copysign(a, b),
            (_, 5) => Expr::shr(a, Expr::cast(Scalar::U32, b)),
            (_, _) => Expr::bitxor(a, b),
        }
    }

    fn leaf(&mut self, scalar: Scalar) -> Expr {
        let vars: Vec<Name> = self.vars.iter().filter(|(_, ty)| *ty == scalar).map(|(name, _)| name.clone()).collect();
        if !vars.is_empty() && self.rng.below(3) > 0 {
            return Expr::var(vars[self.rng.below(vars.len())].clone());
        }
        let bits = self.rng.next() as u32;
        let input = match scalar {
            Scalar::U32 => "in_u",
            Scalar::I32 => "in_i",
            Scalar::F32 | Scalar::Bool | Scalar::U64 | Scalar::I64 | Scalar::F64 => "in_f",
        };
        match (self.rng.below(3), scalar) {
            (0, Scalar::U32) => Expr::u32(bits),
            (0, Scalar::I32) => Expr::i32(bits as i32 >> (bits % 32)),
            (0, _) => Expr::f32(bits as f32 / 65536.0),
            (_, _) => {
                self.nodes += 1;
                Expr::load(input, Expr::var("id"))
            }
        }
    }
}

/// One thing that an evaluator gets wrong: a replacement for some operations.
pub type Fault = fn(&ExprKind, &Expr) -> Option<Expr>;

fn operands(expr: &Expr) -> Vec<Expr> {
    expr.children().cloned().collect()
}

/// Faults by name.
pub const FAULTS: [(&str, Fault); 6] = [
    ("signed >> is logical", |kind, expr| {
        let ExprKind::Binary { op: BinaryOp::Shr, ty: Scalar::I32, .. } = kind else { return None };
        let [left, right] = operands(expr).try_into().ok()?;
        Some(Expr::bitcast(Scalar::I32, Expr::shr(Expr::bitcast(Scalar::U32, left), right)))
    }),
    ("- has its operands swapped", |kind, expr| {
        let ExprKind::Binary { op: BinaryOp::Sub, ty: Scalar::U32, .. } = kind else { return None };
        let [left, right] = operands(expr).try_into().ok()?;
        Some(Expr::sub(right, left))
    }),
    ("fma rounds twice", |kind, expr| {
        let ExprKind::Ternary { op: TernaryOp::Fma, .. } = kind else { return None };
        let [a, b, c] = operands(expr).try_into().ok()?;
        Some(Expr::add(Expr::mul(a, b), c))
    }),
    ("x / 0 is 0", |kind, expr| {
        let ExprKind::Binary { op: BinaryOp::Div, ty: scalar @ (Scalar::U32 | Scalar::I32), .. } = kind else { return None };
        let [a, b] = operands(expr).try_into().ok()?;
        let zero = || Expr::cast(*scalar, Expr::u32(0));
        Some(Expr::select(Expr::eq(b.clone(), zero()), zero(), Expr::div(a, b)))
    }),
    ("float to int rounds to nearest", |kind, expr| {
        let ExprKind::Cast { from: Scalar::F32, to: to @ (Scalar::U32 | Scalar::I32), .. } = kind else { return None };
        let [value] = operands(expr).try_into().ok()?;
        Some(Expr::cast(*to, Expr::round(value)))
    }),
    ("workgroup memory reads the neighbour", |kind, expr| {
        let (ExprKind::Load { .. }, Expr::Load(load)) = (kind, expr) else { return None };
        (load.buffer == "shared" || load.buffer == "tile")
            .then(|| Expr::load(load.buffer.clone(), Expr::bitxor(load.index.clone().into_inner(), Expr::u32(1))))
    }),
];

/// The program as the faulty evaluator understands it.
pub fn faulty(program: &Program, fault: Fault) -> Program {
    let kernel = program.validated().expect("valid").kernel();
    let mut kinds: Vec<Option<&ExprKind>> = vec![None; program.walk().count()];
    kernel.exprs.iter().for_each(|expr| kinds[expr.node.0 as usize] = Some(&expr.kind));
    fn change(expr: &mut Expr, next: &mut usize, kinds: &[Option<&ExprKind>], fault: Fault) {
        let kind = kinds[*next];
        *next += 1;
        expr.children_mut().for_each(|child| change(child, next, kinds, fault));
        if let Some(new) = kind.and_then(|kind| fault(kind, expr)) {
            *expr = new;
        }
    }
    fn body(nodes: &mut Body, next: &mut usize, kinds: &[Option<&ExprKind>], fault: Fault) {
        for node in nodes.iter_mut() {
            *next += 1;
            node.exprs_mut().for_each(|root| change(root, next, kinds, fault));
            node.bodies_mut().for_each(|inner| body(inner, next, kinds, fault));
        }
    }
    program.clone().edit(|parts| body(&mut parts.body, &mut 0, &kinds, fault))
}

/// What the reference gives; 1 million steps.
pub fn plain(case: &Case) -> Result<Vec<Vec<u8>>, RunError> {
    run(&case.program, &case.input_slices(), &options(case))
}

pub fn options(case: &Case) -> Options {
    Options { fuel: 1 << 20, ..Options::from(case) }
}

/// Whether a fault shows.
pub fn shows(case: &Case, fault: Fault) -> bool {
    let wrong = Case { program: faulty(&case.program, fault), ..case.clone() };
    match (plain(case), plain(&wrong)) {
        (Ok(right), Ok(wrong)) => right != wrong,
        _ => false,
    }
}
