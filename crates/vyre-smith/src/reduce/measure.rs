//! What "smaller" means. Every candidate that is taken is smaller by this order, which has no endless descent, so reduction ends.

use super::literal::magnitude;
use super::view::View;
use std::fmt;
use vyre_foundation::ir::{Access, Element, Expr, FloatMode, Item, Literal, Node, Program, Scalar, Size as Extent, ValueType};
use vyre_foundation::memory_model::MemoryOrdering;
use vyre_scalar::memory::{element_count, load};
use vyre_spec::DataType;
use vyre_worker::Case;

/// How much there is to look at in a case; compared in the order of the fields.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Size {
    /// Statements and expressions.
    pub nodes: u64,
    /// 32-bit words of all inputs.
    pub input_words: u64,
    /// Invocations of the dispatch.
    pub invocations: u64,
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |count: u64, one: &str, many: &str| format!("{count} {}", if count == 1 { one } else { many });
        write!(
            f,
            "{}, {}, {}",
            plural(self.nodes, "node", "nodes"),
            plural(self.input_words, "input word", "input words"),
            plural(self.invocations, "invocation", "invocations")
        )
    }
}

/// The order of reduction: the size, then how many things are declared, then what kinds of things there are, then how large the numbers
/// are, then the names.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Measure {
    pub(super) size: Size,
    declarations: u64,
    kinds: u64,
    numbers: u128,
    names: u64,
}

impl Measure {
    pub(super) fn of(view: &View) -> Measure {
        let case = &view.case;
        let parts = case.program.parts();
        let launch = &case.config.launch();
        let declarations = parts.buffers.len()
            + parts.consts.len()
            + case.config.specialization.len()
            + launch.output_counts.len()
            + usize::from(launch.workgroup_override.is_some())
            + usize::from(launch.grid.is_some())
            + usize::from(parts.subgroup.is_some())
            + usize::from(parts.floats == FloatMode::Canonical);
        let mut kinds = 0;
        let mut numbers = u128::from(parts.subgroup.unwrap_or(0));
        for decl in &parts.buffers {
            kinds += match decl.access {
                Access::Read | Access::Output => 0,
                Access::Uniform | Access::Workgroup => 1,
                Access::ReadWrite => 2,
            } + u64::from(!is_plain(&decl.element));
            numbers += u128::from(decl.binding.unwrap_or(0));
            if let Some(Extent::Lit(count)) = decl.count {
                numbers += u128::from(count);
            }
        }
        for (item, _) in case.program.walk() {
            match item {
                Item::Node(node) => {
                    kinds += node_kind(node);
                    if let Node::Trap { tag } = node {
                        numbers += u128::from(*tag);
                    }
                }
                Item::Expr(expr) => {
                    kinds += expr_kind(expr);
                    if let Expr::Lit(literal) = expr {
                        numbers += magnitude(*literal);
                    }
                }
            }
        }
        for (i, bytes) in case.program.interface().inputs.iter().zip(&case.inputs) {
            numbers = numbers.saturating_add(input_numbers(&view.kernel().buffers[*i].element, bytes));
        }
        Measure {
            size: Size { nodes: nodes(&case.program), input_words: input_words(case), invocations: view.launch.invocations() },
            declarations: declarations as u64,
            kinds,
            numbers,
            names: super::rename::unclean(&case.program),
        }
    }

    /// Whether a case of this measure may take the place of one of that. A dispatch in which nothing runs is the smallest of all and
    /// shows nothing, so it never takes the place of another.
    pub(super) fn is_below(&self, best: &Measure) -> bool {
        self < best && (self.size.invocations > 0 || best.size.invocations == 0)
    }
}

/// Statements and expressions of a program.
pub(super) fn nodes(program: &Program) -> u64 {
    program.walk().count() as u64
}

/// 32-bit words of all inputs, each rounded up.
pub(super) fn input_words(case: &Case) -> u64 {
    case.inputs.iter().map(|bytes| bytes.len().div_ceil(4) as u64).sum()
}

/// Whether an element type is one that needs no conversion and no second word.
fn is_plain(element: &Element) -> bool {
    matches!(element, Element::Type(DataType::U32 | DataType::I32 | DataType::F32))
}

fn input_numbers(element: &DataType, bytes: &[u8]) -> u128 {
    let (scalar, components) = match element.value_type() {
        Some(ValueType::Scalar(scalar)) => (scalar, 1),
        Some(ValueType::Vector(scalar, count)) => (scalar, usize::from(count)),
        None => return 0,
    };
    let count = element_count(element, bytes.len() as u64).unwrap_or(0).min(u64::from(u32::MAX)) as u32;
    let mut sum = 0u128;
    for i in 0..count {
        let value = load(element, FloatMode::Ieee, bytes, i);
        for bits in &value.0[..components] {
            sum = sum.saturating_add(magnitude(Literal::from_bits(scalar, *bits)));
        }
    }
    sum
}

fn node_kind(node: &Node) -> u64 {
    match node {
        Node::Let { .. } | Node::Break | Node::Continue | Node::Return | Node::Block(_) | Node::Region { .. } => 1,
        Node::Assign { .. } | Node::Store(_) | Node::Trap { .. } => 2,
        Node::If { .. } => 3,
        Node::Loop(_) => 4,
        Node::Atomic(_) | Node::Subgroup(_) => 10 + u64::from(node.result().is_some()),
        Node::Barrier { ordering } => match ordering {
            MemoryOrdering::SeqCst => 1,
            MemoryOrdering::Relaxed | MemoryOrdering::Acquire | MemoryOrdering::Release | MemoryOrdering::AcqRel => 2,
            MemoryOrdering::GridSync => 3,
        },
    }
}

fn expr_kind(expr: &Expr) -> u64 {
    match expr {
        Expr::Lit(literal) => match magnitude(*literal) {
            0 => 0,
            _ if literal.scalar() == Scalar::Bool || super::literal::one(literal.scalar().into()) == *expr => 1,
            _ => 2,
        },
        Expr::Var(_) => 3,
        Expr::Builtin(_) => 4,
        Expr::Len(_) => 5,
        Expr::Load(_)
        | Expr::Unary { .. }
        | Expr::Binary { .. }
        | Expr::Ternary { .. }
        | Expr::Cast { .. }
        | Expr::Bitcast { .. }
        | Expr::Vector { .. }
        | Expr::Extract { .. } => 6,
    }
}
