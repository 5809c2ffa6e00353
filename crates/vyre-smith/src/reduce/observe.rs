//! What expressions are when the case runs: the constants that can stand in their place without a change downstream.
//!
//! Before every statement, a store of each of its expressions' bits is put in, to memory that each invocation has for itself; the
//! plain interpreter runs that. This is a hint and no more: a candidate made of it is judged like any other.

use super::tree::rewrite_nodes;
use super::view::View;
use std::collections::HashMap;
use vyre_foundation::ir::{BufferDecl, Expr, Literal, Name, Node, NodeId, Program, Scalar, ValueType, Walk};
use vyre_foundation::ir::{DataType, Item};
use vyre_foundation::launch::LaunchConfig;
use vyre_reference::{Options, run};

/// Words that may be written, so that a large dispatch costs nothing.
const MAX_WORDS: u64 = 1 << 18;

/// Different values that are reported of one expression.
const MAX_VALUES: usize = 3;

/// Per expression of the program: whether it was evaluated, its low and its high word.
const WORDS: u32 = 3;

/// The values of every scalar expression that is no literal, by place; those of different invocations, the last of each.
pub(super) fn values(view: &View) -> HashMap<NodeId, Vec<Literal>> {
    observed(view).unwrap_or_default()
}

fn observed(view: &View) -> Option<HashMap<NodeId, Vec<Literal>>> {
    let program = view.resolved();
    let launch = &view.launch;
    let invocations = u32::try_from(launch.invocations()).ok().filter(|count| *count > 0)?;
    let mut slots: HashMap<NodeId, (u32, Scalar)> = HashMap::new();
    for (n, (item, _)) in program.walk().enumerate() {
        if let (Item::Expr(expr), Some(ValueType::Scalar(scalar))) = (item, view.types[n])
            && !matches!(expr, Expr::Lit(_))
        {
            slots.insert(NodeId(n as u32), (slots.len() as u32, scalar));
        }
    }
    let words = u64::from(invocations) * slots.len() as u64 * u64::from(WORDS);
    if slots.is_empty() || words > MAX_WORDS || view.case.config.workgroup_override.is_some() {
        return None;
    }
    let probe = unused_name(program);
    let binding = program.buffers().iter().filter_map(|decl| decl.binding).max().map_or(0, |binding| binding.wrapping_add(1));
    // Last by binding, so last among the outputs.
    let decl = BufferDecl::output(probe.clone(), binding, DataType::U32).with_count(words as u32);
    let extent = |axis: usize| launch.grid[axis].wrapping_mul(launch.workgroup_size[axis]);
    let row = Expr::add(Expr::gid_x(), Expr::mul(Expr::gid_y(), Expr::u32(extent(0))));
    let own = Expr::add(row, Expr::mul(Expr::gid_z(), Expr::u32(extent(0).wrapping_mul(extent(1)))));
    let instrumented = program.clone().edit(|parts| {
        parts.buffers.push(decl);
        let mut probes = Probes { slots: &slots, probe: &probe, own: &own, invocations };
        probes.body(&mut parts.body);
    });
    let config = LaunchConfig { grid: Some(launch.grid), workgroup_override: None, ..view.case.config.launch() };
    let config = LaunchConfig { max_output_bytes: u64::MAX, ..config };
    let options = Options { launch: config, fuel: 1 << 22, ..Options::default() };
    let outputs = run(&instrumented, &view.case.input_slices(), &options).ok()?;
    let memory = outputs.last()?;
    let word = |n: u32| {
        memory.get(n as usize * 4..n as usize * 4 + 4).map_or(0, |word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
    };
    let mut values = HashMap::new();
    for (place, (slot, scalar)) in slots {
        let mut seen: Vec<Literal> = Vec::new();
        for invocation in 0..invocations {
            let at = (slot * invocations + invocation) * WORDS;
            let literal = Literal::from_bits(scalar, u64::from(word(at + 1)) | u64::from(word(at + 2)) << 32);
            if word(at) != 0 && !seen.contains(&literal) {
                seen.push(literal);
                if seen.len() == MAX_VALUES {
                    break;
                }
            }
        }
        values.insert(place, seen);
    }
    Some(values)
}

fn unused_name(program: &Program) -> Name {
    let mut name = String::from("probe");
    let text = program.to_string();
    while text.contains(&name) {
        name.push('_');
    }
    name.into()
}

struct Probes<'a> {
    slots: &'a HashMap<NodeId, (u32, Scalar)>,
    probe: &'a Name,
    own: &'a Expr,
    invocations: u32,
}

impl Probes<'_> {
    fn body(&mut self, body: &mut vyre_foundation::ir::Body) {
        // First what is inside, so that places are still those of the program; then a second look puts the stores in.
        let mut before: HashMap<NodeId, Vec<Node>> = HashMap::new();
        for (n, (item, _)) in Walk::body(body).enumerate() {
            if let Item::Node(node) = item {
                let mut place = n as u32 + 1;
                let mut stores = Vec::new();
                for root in node.exprs() {
                    for (expr, _) in Walk::expr(root) {
                        if let (Item::Expr(expr), Some((slot, scalar))) = (expr, self.slots.get(&NodeId(place))) {
                            stores.extend(self.stores(expr, *slot, *scalar));
                        }
                        place += 1;
                    }
                }
                before.insert(NodeId(n as u32), stores);
            }
        }
        insert(body, &mut 0, &mut before);
        // A trap would leave no outputs; a return retires the invocation as well.
        rewrite_nodes(body, &mut |_, node| matches!(node, Node::Trap { .. }).then(|| vec![Node::Return]));
    }

    fn stores(&self, expr: &Expr, slot: u32, scalar: Scalar) -> Vec<Node> {
        let at = |word: u32| {
            let first = slot.wrapping_mul(self.invocations).wrapping_mul(WORDS).wrapping_add(word);
            Expr::add(Expr::mul(self.own.clone(), Expr::u32(WORDS)), Expr::u32(first))
        };
        let store = |word: u32, value: Expr| Node::store(self.probe.clone(), at(word), value);
        let mut stores = vec![store(0, Expr::u32(1))];
        match scalar {
            Scalar::U32 => stores.push(store(1, expr.clone())),
            Scalar::Bool => stores.push(store(1, Expr::cast(Scalar::U32, expr.clone()))),
            Scalar::I32 | Scalar::F32 => stores.push(store(1, Expr::bitcast(Scalar::U32, expr.clone()))),
            Scalar::U64 | Scalar::I64 | Scalar::F64 => {
                let bits = match scalar {
                    Scalar::U64 => expr.clone(),
                    Scalar::I64 | Scalar::F64 | Scalar::Bool | Scalar::U32 | Scalar::I32 | Scalar::F32 => {
                        Expr::bitcast(Scalar::U64, expr.clone())
                    }
                };
                stores.push(store(1, Expr::cast(Scalar::U32, bits.clone())));
                stores.push(store(2, Expr::cast(Scalar::U32, Expr::shr(bits, Expr::u32(32)))));
            }
        }
        stores
    }
}

/// Puts statements before those at their places.
fn insert(body: &mut vyre_foundation::ir::Body, next: &mut u32, before: &mut HashMap<NodeId, Vec<Node>>) {
    for mut node in std::mem::take(body).into_inner() {
        body.extend(before.remove(&NodeId(*next)).unwrap_or_default());
        *next += 1 + node.exprs().map(|expr| Walk::expr(expr).count() as u32).sum::<u32>();
        for inner in node.bodies_mut() {
            insert(inner, next, before);
        }
        body.push(node);
    }
}
