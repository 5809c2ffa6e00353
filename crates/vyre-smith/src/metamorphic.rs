//! The same program written otherwise: what must not change a byte on one and the same subject.
//!
//! No reference is asked, so this judges what the reference cannot run, and finds what it would get wrong too. Rewrites are exact
//! identities of our semantics (NaN is anonymous, so that `a + b` is `b + a`; `x + 0` is for integers alone, since -0 + 0 is +0), code
//! that never runs, a peeled first iteration of a loop, and values that get a name. Each finds its places in whatever program it is given,
//! so a list of them can be shortened like any list: what is left names the rewrite that matters.

use crate::dna::Dna;
use crate::reduce::tree::rewrite;
use std::collections::BTreeMap;
use std::fmt;
use vyre_foundation::ir::{
    Axis, BinaryOp, Body, Builtin, Expr, Item, Literal, Loop, Name, Node, NodeId, Program, Scalar, TernaryOp, UnaryOp, ValueType,
};
use vyre_spec::Law;
use vyre_worker::{Case, Failure, Outputs, Subject};

macro_rules! rewrites {
    ($( $variant:ident $name:literal; )*) => {
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        enum Kind { $( $variant, )* }

        impl Kind {
            const ALL: &'static [Kind] = &[$( Kind::$variant ),*];

            const fn name(self) -> &'static str {
                match self { $( Kind::$variant => $name, )* }
            }
        }
    };
}

rewrites! {
    Commute "operands of a commuting op swapped";
    Mirror "a comparison turned around";
    Difference "a - b as a + -b";
    Twice "an op that undoes itself, done twice";
    Nothing "an op that does nothing";
    Choice "a choice between equals";
    Bits "bits there and back";
    Named "a value that has a name first";
    Scope "a scope around a statement";
    NeverBranch "a branch that is never taken";
    NeverLoop "a loop without iterations";
    Peel "the first iteration of a loop by itself";
}

/// One change, at the n-th of the places where it can be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rewrite {
    kind: Kind,
    place: u32,
}

impl fmt::Display for Rewrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (place {})", self.kind.name(), self.place)
    }
}

/// The rewrites that these bytes say.
#[must_use]
pub fn rewrites(dna: &[u8]) -> Vec<Rewrite> {
    let mut dna = Dna::new(dna);
    (0..2 + dna.below(6)).map(|_| Rewrite { kind: dna.pick(Kind::ALL), place: dna.below(1 << 16) }).collect()
}

/// A valid program without constants, written otherwise. A rewrite that has no place in it changes nothing.
#[must_use]
pub fn rewritten(program: &Program, rewrites: &[Rewrite]) -> Program {
    rewrites.iter().enumerate().fold(program.clone(), |program, (n, rewrite)| {
        one(&program, *rewrite, n).filter(|changed| changed.validated().is_ok()).unwrap_or(program)
    })
}

fn one(program: &Program, Rewrite { kind, place }: Rewrite, number: usize) -> Option<Program> {
    let kernel = program.validated().ok()?.kernel();
    let types: BTreeMap<NodeId, ValueType> = kernel.exprs.iter().map(|expr| (expr.node, expr.ty)).collect();
    let fresh = |what: &str| Name::from(format!("{what} {number}"));
    // Where it can be made.
    let change_expr = |place: NodeId, expr: &Expr| otherwise(kind, expr, *types.get(&place)?, program);
    let change_node = |node: &Node| otherwise_statement(kind, node, &fresh);
    let mut places: Vec<NodeId> = Vec::new();
    for ((item, _), n) in program.walk().zip(0..) {
        let fits = match item {
            Item::Expr(expr) => change_expr(NodeId(n), expr).is_some(),
            // The root region stays the root.
            Item::Node(node) => (n > 0 || !program.is_wrapped()) && change_node(node).is_some(),
        };
        places.extend(fits.then_some(NodeId(n)));
    }
    let chosen = *places.get(place as usize % places.len().max(1))?;
    Some(program.clone().edit(|parts| {
        rewrite(&mut parts.body, &mut |here, node| (here == chosen).then(|| change_node(node)).flatten(), &mut |here, expr| {
            (here == chosen).then(|| change_expr(here, expr)).flatten()
        });
    }))
}

/// The expression written otherwise, if this kind of rewrite is about it.
fn otherwise(kind: Kind, expr: &Expr, ty: ValueType, program: &Program) -> Option<Expr> {
    let scalar = ty.scalar()?;
    let binary = || {
        let Expr::Binary { op, left, right } = expr else { return None };
        Some((*op, Expr::clone(left), Expr::clone(right)))
    };
    match kind {
        Kind::Commute => {
            binary().filter(|(op, ..)| op.info().law == Law::Commutes).map(|(op, left, right)| Expr::binary(op, right, left))
        }
        Kind::Mirror => binary().and_then(|(op, left, right)| Some(Expr::binary(mirrored(op)?, right, left))),
        Kind::Difference => {
            binary().filter(|(op, ..)| *op == BinaryOp::Sub).map(|(_, left, right)| Expr::add(left, Expr::neg(right)))
        }
        Kind::Twice => {
            let op = match scalar {
                Scalar::Bool => UnaryOp::Not,
                Scalar::U32 | Scalar::I32 => UnaryOp::ReverseBits,
                Scalar::U64 | Scalar::I64 => UnaryOp::SwapBytes,
                Scalar::F32 | Scalar::F64 => UnaryOp::Neg,
            };
            // Under `floats canonical`, -0 is +0 already, and so is what comes back.
            Some(Expr::unary(op, Expr::unary(op, expr.clone())))
        }
        Kind::Nothing => {
            let literal = |bits| Expr::Lit(Literal::from_bits(scalar, bits));
            Some(match scalar {
                Scalar::Bool => Expr::bitxor(expr.clone(), literal(0)),
                Scalar::U32 | Scalar::I32 => Expr::add(expr.clone(), literal(0)),
                Scalar::U64 | Scalar::I64 => Expr::bitor(expr.clone(), literal(0)),
                Scalar::F32 => Expr::mul(expr.clone(), Expr::f32(1.0)),
                Scalar::F64 => Expr::div(expr.clone(), Expr::f64(1.0)),
            })
        }
        Kind::Choice => {
            let cond = match program.buffers().first() {
                Some(buffer) => Expr::lt(Expr::u32(2), Expr::buf_len(&buffer.name)),
                None => Expr::bool(true),
            };
            Some(Expr::ternary(TernaryOp::Select, cond, expr.clone(), expr.clone()))
        }
        Kind::Bits => {
            let to = match scalar {
                Scalar::Bool => return None,
                Scalar::U32 => Scalar::I32,
                Scalar::I32 | Scalar::F32 => Scalar::U32,
                Scalar::U64 => Scalar::I64,
                Scalar::I64 | Scalar::F64 => Scalar::U64,
            };
            Some(Expr::bitcast(scalar, Expr::bitcast(to, expr.clone())))
        }
        Kind::Named | Kind::Scope | Kind::NeverBranch | Kind::NeverLoop | Kind::Peel => None,
    }
}

/// The statement written otherwise, if this kind of rewrite is about it.
fn otherwise_statement(kind: Kind, node: &Node, fresh: &dyn Fn(&str) -> Name) -> Option<Vec<Node>> {
    match kind {
        Kind::Named => {
            let (name, mut named) = (fresh("named"), node.clone());
            let value = named.value_mut()?;
            let value = std::mem::replace(value, Expr::var(&name));
            Some(vec![Node::let_bind(&name, value), named])
        }
        // What a scope would hide stays outside.
        Kind::Scope => node.declares().is_none().then(|| vec![Node::block(vec![node.clone()])]),
        Kind::NeverBranch => {
            // A count of workgroups or of their invocations would forbid a launch to override the workgroup size.
            let never = Expr::eq(Expr::builtin(Builtin::InvocationCount(Axis::X)), Expr::u32(0));
            Some(vec![Node::if_then(never, vec![Node::trap(666)]), node.clone()])
        }
        Kind::NeverLoop => {
            let again = matches!(node, Node::Store(_)).then(|| node.clone());
            let body = again.into_iter().chain([Node::Return]).collect();
            Some(vec![Node::loop_for(fresh("never"), Expr::u32(1), Expr::u32(0), body), node.clone()])
        }
        Kind::Peel => {
            let Node::Loop(repeat) = node else { return None };
            let Loop { var, from, to, body } = &**repeat;
            // An iteration that is cut short has no loop to go on with when it stands by itself.
            if leaves(body) {
                return None;
            }
            let (first, end) = (fresh("first"), fresh("end"));
            let mut iteration = vec![Node::let_bind(var, Expr::var(&first))];
            iteration.extend(body.clone().into_inner());
            // Names of the body would be declared twice in scopes that do not overlap, which is allowed.
            let rest = Expr::sat_add(Expr::var(&first), Expr::u32(1));
            Some(vec![
                Node::let_bind(&first, from.clone()),
                Node::let_bind(&end, to.clone()),
                Node::if_then(Expr::lt(Expr::var(&first), Expr::var(&end)), iteration),
                Node::loop_for(var, rest, Expr::var(&end), body.clone().into_inner()),
            ])
        }
        Kind::Commute | Kind::Mirror | Kind::Difference | Kind::Twice | Kind::Nothing | Kind::Choice | Kind::Bits => None,
    }
}

/// Whether a `break` or `continue` in this body is about the loop around it.
fn leaves(body: &Body) -> bool {
    let inside = |node: &Node| !matches!(node, Node::Loop(_)) && node.bodies().any(leaves);
    body.iter().any(|node| matches!(node, Node::Break | Node::Continue) || inside(node))
}

fn mirrored(op: BinaryOp) -> Option<BinaryOp> {
    use BinaryOp::{Ge, Gt, Le, Lt};
    [(Lt, Gt), (Gt, Lt), (Le, Ge), (Ge, Le)].into_iter().find(|(from, _)| *from == op).map(|(_, to)| to)
}

/// What stands before the name of a subject to make it one that runs every program twice.
pub const METAMORPHIC: &str = "metamorphic:";

/// A subject that runs every program twice, the second time written otherwise, and fails if the bytes differ.
pub struct Metamorphic {
    name: String,
    inner: Box<dyn Subject>,
}

impl Metamorphic {
    /// Over any subject.
    #[must_use]
    pub fn new(inner: Box<dyn Subject>) -> Self {
        Metamorphic { name: format!("{METAMORPHIC}{}", inner.name()), inner }
    }

    fn outcome(&mut self, program: &Program, case: &Case) -> Result<Outputs, Failure> {
        // What is rewritten takes more steps.
        let fuel = case.fuel.saturating_mul(8).saturating_add(1000);
        let case = Case { program: program.clone(), config: case.config.without_specialization(), fuel, ..case.clone() };
        self.inner.run(&case)
    }
}

impl Subject for Metamorphic {
    fn name(&self) -> &str {
        &self.name
    }

    fn run(&mut self, case: &Case) -> Result<Outputs, Failure> {
        let program = case.specialized().map_err(|report| Failure::Refused(report.to_string()))?;
        program.validated().map_err(|report| Failure::Refused(report.to_string()))?;
        let as_it_was = self.outcome(&program, case);
        // Reducing keeps what the rewrites are: they follow from nothing but their number.
        for number in 0..4 {
            let mut list = rewrites(&crate::dna::dna(LISTS, number));
            if self.outcome(&rewritten(&program, &list), case) == as_it_was {
                continue;
            }
            let mut n = 0;
            while n < list.len() {
                let mut shorter = list.clone();
                shorter.remove(n);
                if self.outcome(&rewritten(&program, &shorter), case) == as_it_was {
                    n += 1;
                } else {
                    list = shorter;
                }
            }
            let said: Vec<String> = list.iter().map(ToString::to_string).collect();
            return Err(Failure::Device(format!("an equivalent program gives other bytes: {}", said.join(", "))));
        }
        as_it_was
    }
}

/// The seed of the lists of rewrites.
const LISTS: u64 = 0x6D65_7461;
