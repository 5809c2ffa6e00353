//! The transformations: each is one small change that makes a case smaller or simpler. [`all`] lists those that a case offers; reduction
//! ends when none of them is interesting.

use super::literal::{one, simpler, zero};
use super::rename::{Which, clean, rename_body};
use super::tree::{expr_size, node_size, repair, rewrite, rewrite_exprs, rewrite_nodes, substitute};
use super::view::{Draft, View};
use super::{elements, observe};
use std::collections::HashMap;
use std::ops::Range;
use vyre_foundation::ir::{
    Access, Atomic, Body, DataType, Element, Expr, FloatMode, Item, Literal, Name, Node, NodeId, Scalar, Size, SpecValue, Store,
    ValueType, Walk,
};
use vyre_spec::limits::SUBGROUP_SIZES;
use vyre_spec::{Axis, Builtin};

/// One change.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Step {
    /// Takes a statement out, with all below it.
    Remove(NodeId),
    /// Takes statements out; of a statement with bodies that is not in the list all is kept that is not.
    RemoveAll(Vec<NodeId>),
    /// Takes out every statement with empty bodies.
    Prune,
    /// Puts one of a statement's bodies in its place; a loop's counter becomes a variable.
    Hoist(NodeId, usize),
    /// Empties the second arm of an `if`.
    DropElse(NodeId),
    /// Puts the write that is all an `if` does in its place, with what stands at the second place in the condition as its value, or
    /// with the condition itself as a number.
    WriteCondition(NodeId, Option<NodeId>),
    /// Takes out everything that is declared and never mentioned.
    Unused,
    /// Writes the value of a `let` wherever its variable is used.
    Inline(NodeId),
    /// Declares a variable where it is assigned, and not before.
    LetHere(NodeId),
    /// Takes out the stores to a buffer; its loads become the value stored here.
    Forward(NodeId),
    /// Does not name the result of an atomic or subgroup operation.
    Ignore(NodeId),
    /// Puts an operand in the place of an atomic or subgroup operation.
    Operand(NodeId, usize),
    /// Puts a plain load or store in the place of an atomic operation.
    NotAtomic(NodeId),
    /// Makes a barrier the plain one.
    PlainBarrier(NodeId),
    /// Another tag of a trap.
    Tag(NodeId, u32),
    /// Puts something else in the place of an expression.
    Replace(NodeId, With),
    /// Puts something else in the place of an expression and of all that are equal to it.
    ReplaceAlike(NodeId, With),
    /// Takes a statement out and puts one of its expressions, by number, in the place of one elsewhere.
    Move(NodeId, usize, NodeId),
    /// Stores what is below the stored value, in a buffer of its type.
    Retype(NodeId, NodeId),
    /// Makes the elements of a buffer of vectors one component of them.
    Component(usize, u8),
    /// Makes all of these expressions zero.
    ZeroAll(Vec<NodeId>),
    /// Writes the value of every constant where it is named.
    Constants,
    /// Writes the value of one constant where it is named.
    Constant(usize),
    /// Takes a buffer out.
    RemoveBuffer(usize),
    /// Uses the second buffer wherever the first was used.
    Merge(usize, usize),
    /// Another access mode.
    Access(usize, Access),
    /// An output that starts from zero, and a store to it that shows: it writes one.
    Fresh(usize, NodeId),
    /// Another element type that loads as the same.
    Element(usize, DataType),
    /// Another count of an output or workgroup buffer.
    Count(usize, u32),
    /// Numbers bindings from 0.
    Bindings,
    /// Subnormals are kept.
    Ieee,
    /// Another subgroup size, or none.
    Subgroup(Option<u32>),
    /// Another workgroup size.
    Workgroup([u32; 3]),
    /// Another grid.
    Grid(Option<[u32; 3]>),
    /// One invocation.
    Single,
    /// Takes these elements out of every input.
    Columns(Range<u32>),
    /// Takes these elements out of an input; a declared count follows.
    Cut(usize, Range<u32>),
    /// Makes elements of inputs zero.
    Zeros(Vec<(usize, u32)>),
    /// Another value of one component of an element.
    Value(usize, u32, usize, Literal),
    /// Clean names.
    Names(Which),
}

/// What is put in the place of an expression.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum With {
    /// The zero of its type.
    Zero,
    /// The one of its type.
    One,
    /// What stands below it at this place.
    Below(NodeId),
    /// A constant.
    Literal(Literal),
    /// A variable.
    Var(Name),
    /// `gid.x`
    Gid,
    /// Whether a variable is, or is not, other than 0.
    Holds(Name, bool),
}

/// Every step that a case offers, those that take much away first.
pub(super) fn all(view: &View) -> Vec<Step> {
    let mut steps = vec![Step::Constants];
    steps.extend((0..view.case.program.parts().consts.len()).map(Step::Constant));
    steps.extend([Step::Unused, Step::Prune, Step::Single]);
    steps.extend(statements(view));
    steps.extend((0..view.case.program.buffers().len()).map(Step::RemoveBuffer));
    steps.extend(geometry(view));
    steps.extend(lengths(view));
    steps.extend(expressions(view));
    steps.extend(alike(view));
    steps.extend(statement_kinds(view));
    steps.extend(stored_types(view));
    steps.extend(declarations(view));
    steps.extend(moves(view));
    steps.extend(input_values(view));
    steps.extend([Step::Bindings, Step::Grid(None)]);
    steps.extend([Which::All, Which::Program, Which::Buffers, Which::Variables].map(Step::Names));
    steps
}

/// Every statement but the root region, with its place; the largest first.
fn listed(view: &View) -> Vec<(NodeId, &Node)> {
    let root = view.case.program.is_wrapped();
    let mut nodes: Vec<(NodeId, &Node)> = view
        .case
        .program
        .walk()
        .enumerate()
        .filter_map(|(n, (item, _))| match item {
            Item::Node(node) if !(root && n == 0) => Some((NodeId(n as u32), node)),
            Item::Node(_) | Item::Expr(_) => None,
        })
        .collect();
    // A stable sort, and each size once: the order of the list is that of the program among equals.
    nodes.sort_by_cached_key(|(_, node)| std::cmp::Reverse(node_size(node)));
    nodes
}

/// The statements but the root region, in the order of the program.
pub(super) fn statement_places(view: &View) -> Vec<NodeId> {
    let mut places: Vec<NodeId> = listed(view).into_iter().map(|(place, _)| place).collect();
    places.sort();
    places
}

/// The expressions that stand right in a statement and have something below them, in the order of the program.
pub(super) fn roots(view: &View) -> Vec<NodeId> {
    let mut places = Vec::new();
    for (n, (item, _)) in view.case.program.walk().enumerate() {
        if let Item::Node(node) = item {
            let mut place = n as u32 + 1;
            for expr in node.exprs() {
                if !expr.is_leaf() {
                    places.push(NodeId(place));
                }
                place += expr_size(expr);
            }
        }
    }
    places
}

/// Statements that can go, and bodies that can stand in for them.
pub(super) fn statements(view: &View) -> Vec<Step> {
    let mut steps = Vec::new();
    for (place, node) in listed(view) {
        steps.push(Step::Remove(place));
        steps.extend((0..node.bodies().count()).map(|n| Step::Hoist(place, n)));
        if matches!(node, Node::If { otherwise, .. } if !otherwise.is_empty()) {
            steps.push(Step::DropElse(place));
        }
        if let Node::If { cond, .. } = node
            && only_write(node).is_some()
        {
            let parts = (place.0 + 1..place.0 + 1 + expr_size(cond)).map(|n| Some(NodeId(n)));
            steps.extend(parts.chain([None]).map(|part| Step::WriteCondition(place, part)));
        }
    }
    steps
}

/// The write that is all a statement does if its condition holds.
fn only_write(node: &Node) -> Option<&Node> {
    let Node::If { then, otherwise, .. } = node else { return None };
    let [write @ (Node::Store(_) | Node::Assign { .. })] = &then[..] else { return None };
    otherwise.is_empty().then_some(write)
}

/// Statements that simpler ones can stand in for.
pub(super) fn statement_kinds(view: &View) -> Vec<Step> {
    let mut steps = Vec::new();
    for (place, node) in listed(view) {
        match node {
            Node::Let { .. } => steps.push(Step::Inline(place)),
            Node::Assign { .. } => steps.push(Step::LetHere(place)),
            Node::Store(_) => steps.push(Step::Forward(place)),
            Node::Atomic(atomic) => {
                steps.push(Step::NotAtomic(place));
                steps.extend((0..atomic.operands.len()).map(|n| Step::Operand(place, n)));
                steps.push(Step::Ignore(place));
            }
            Node::Subgroup(subgroup) => {
                steps.extend((0..subgroup.operands.len()).map(|n| Step::Operand(place, n)));
                steps.push(Step::Ignore(place));
            }
            Node::Barrier { .. } => steps.push(Step::PlainBarrier(place)),
            Node::Trap { tag } => {
                let smaller = simpler(Literal::U32(*tag)).into_iter().map(|tag| Step::Tag(place, tag.bits() as u32));
                steps.extend(smaller);
            }
            Node::If { .. }
            | Node::Loop(_)
            | Node::Break
            | Node::Continue
            | Node::Return
            | Node::Block(_)
            | Node::Region { .. } => {}
        }
    }
    steps
}

/// Larger than this, an expression is replaced by what is right below it and not by everything below it.
const SMALL: u32 = 16;

/// What can stand in for each expression.
pub(super) fn expressions(view: &View) -> Vec<Step> {
    let values = observe::values(view);
    let mut variables: Vec<(NodeId, &Name)> = Vec::new();
    let mut steps = Vec::new();
    let kinds: HashMap<&Name, ValueType> = view.kernel().vars.iter().map(|var| (&var.name, var.ty)).collect();
    for (n, (item, _)) in view.case.program.walk().enumerate() {
        let place = NodeId(n as u32);
        let expr = match item {
            Item::Node(node) => {
                variables.extend(node.declares().or(node.counter()).map(|name| (place, name)));
                continue;
            }
            Item::Expr(expr) => expr,
        };
        let Some(ty) = view.types[n] else { continue };
        let mut with = vec![With::Zero];
        with.extend(below(view, place, expr, ty).map(With::Below));
        with.extend(values.get(&place).into_iter().flatten().map(|literal| With::Literal(*literal)));
        with.push(With::One);
        if expr.is_leaf() {
            if let Expr::Lit(literal) = expr {
                with.extend(simpler(*literal).into_iter().map(With::Literal));
            }
        } else {
            let alike = variables.iter().rev().filter(|(_, name)| kinds.get(name) == Some(&ty));
            with.extend(alike.take(2).map(|(_, name)| With::Var((*name).clone())));
        }
        if ty == Scalar::U32.into() {
            with.push(With::Gid);
        }
        if ty == Scalar::Bool.into() && expr_size(expr) > 2 {
            let counters = variables.iter().rev().filter(|(_, name)| kinds.get(name) == Some(&Scalar::U32.into())).take(2);
            with.extend(counters.flat_map(|(_, name)| [true, false].map(|holds| With::Holds((*name).clone(), holds))));
        }
        steps.extend(with.into_iter().map(|with| Step::Replace(place, with)));
    }
    steps
}

/// Programs larger than this are not searched for equal expressions.
const COMPARED: usize = 200;

/// What can stand in for expressions that occur more than once: changing one alone may break what they have in common.
fn alike(view: &View) -> Vec<Step> {
    if view.types.len() > COMPARED {
        return Vec::new();
    }
    let mut first: Vec<(&Expr, NodeId, bool)> = Vec::new();
    for (n, (item, _)) in view.case.program.walk().enumerate() {
        let Item::Expr(expr) = item else { continue };
        match first.iter_mut().find(|(other, ..)| *other == expr) {
            Some((_, _, again)) => *again = true,
            None if !matches!(expr, Expr::Lit(_)) => first.push((expr, NodeId(n as u32), false)),
            None => {}
        }
    }
    let mut steps = Vec::new();
    for (expr, place, _) in first.into_iter().filter(|(_, _, again)| *again) {
        let Some(ty) = view.types[place.0 as usize] else { continue };
        let with = [With::Zero, With::One].into_iter().chain(below(view, place, expr, ty).map(With::Below));
        steps.extend(with.map(|with| Step::ReplaceAlike(place, with)));
    }
    steps
}

/// What is below an expression and has its type, the nearest first.
fn below<'a>(view: &'a View, place: NodeId, expr: &'a Expr, ty: ValueType) -> impl Iterator<Item = NodeId> + 'a {
    let mut found: Vec<(u32, NodeId)> = Vec::new();
    // Depths of those that were found on the way to where the walk is.
    let mut open: Vec<u32> = Vec::new();
    let small = expr_size(expr) <= SMALL;
    for (n, (_, depth)) in Walk::expr(expr).enumerate().skip(1) {
        let here = NodeId(place.0 + n as u32);
        while open.last().is_some_and(|last| *last >= depth) {
            open.pop();
        }
        if view.types.get(here.0 as usize).copied().flatten() == Some(ty) {
            if small || open.is_empty() {
                found.push((depth, here));
            }
            open.push(depth);
        }
    }
    found.sort();
    found.into_iter().map(|(_, place)| place)
}

/// Buffers of the type of what is below a stored value.
fn stored_types(view: &View) -> Vec<Step> {
    let mut steps = Vec::new();
    for (place, node) in listed(view) {
        let Node::Store(store) = node else { continue };
        let Store { index, value, .. } = &**store;
        let first = place.0 + 1 + expr_size(index);
        let ty = |n: u32| view.types.get(n as usize).copied().flatten();
        let other = (first + 1..first + expr_size(value)).filter(|n| ty(*n) != ty(first));
        steps.extend(other.map(|n| Step::Retype(place, NodeId(n))));
    }
    for (i, buffer) in view.kernel().buffers.iter().enumerate() {
        if let ValueType::Vector(_, count) = buffer.value {
            steps.extend((0..count).map(|component| Step::Component(i, component)));
        }
    }
    steps
}

/// Programs larger than this are not tried with every expression in every other place.
const MOVABLE: usize = 40;

/// Expressions that can stand in for others when their statement goes.
fn moves(view: &View) -> Vec<Step> {
    if view.types.len() > MOVABLE {
        return Vec::new();
    }
    let mut steps = Vec::new();
    for (place, node) in listed(view) {
        let mut root = place.0 + 1;
        for (which, expr) in node.exprs().enumerate() {
            let ty = view.types.get(root as usize).copied().flatten();
            // Those in front too: in a loop they come after it, an iteration later.
            let targets = (place.0 + node_size(node)..view.types.len() as u32).chain(0..place.0);
            let alike = targets.filter(|n| ty.is_some() && view.types[*n as usize] == ty && !expr.is_leaf());
            steps.extend(alike.map(|target| Step::Move(place, which, NodeId(target))));
            root += expr_size(expr);
        }
    }
    steps
}

/// Smaller dispatches.
pub(super) fn geometry(view: &View) -> Vec<Step> {
    let mut steps = Vec::new();
    let smaller = |size: [u32; 3], axis: usize, step: fn([u32; 3]) -> Step| {
        let extents =
            [1, size[axis] / 2, size[axis].wrapping_sub(1)].into_iter().filter(move |extent| (1..size[axis]).contains(extent));
        let with = move |extent| {
            let mut new = size;
            new[axis] = extent;
            step(new)
        };
        extents.map(with).collect::<Vec<_>>()
    };
    let size = view.kernel().workgroup_size;
    for axis in 0..3 {
        if let Some(grid) = view.case.config.grid_override {
            steps.extend(smaller(grid, axis, |grid| Step::Grid(Some(grid))));
        }
        // One subgroup is the least that a workgroup with subgroups can have.
        let one = view.case.program.parts().subgroup.filter(|lanes| axis == 0 && *lanes < size[0]);
        steps.extend(one.map(|lanes| Step::Workgroup([lanes, size[1], size[2]])));
        steps.extend(smaller(size, axis, Step::Workgroup));
    }
    steps
}

/// Inputs longer than this are not tried without each single element.
const SINGLES: u32 = 64;

/// Shorter inputs.
pub(super) fn lengths(view: &View) -> Vec<Step> {
    let mut steps = Vec::new();
    let inputs = &view.case.program.interface().inputs;
    let longest = inputs.iter().map(|i| view.launch.lengths[*i]).max().unwrap_or(0);
    if inputs.len() > 1 {
        steps.extend(cuts(longest).into_iter().map(Step::Columns));
    }
    for i in inputs {
        steps.extend(cuts(view.launch.lengths[*i]).into_iter().map(|range| Step::Cut(*i, range)));
    }
    steps
}

fn cuts(length: u32) -> Vec<Range<u32>> {
    let mut cuts = vec![0..length, 1..length, length / 2..length, 0..length / 2, length.saturating_sub(1)..length];
    if length <= SINGLES {
        cuts.extend((0..length).map(|n| n..n + 1));
    }
    cuts.retain(|range| !range.is_empty());
    cuts
}

/// Simpler declarations.
pub(super) fn declarations(view: &View) -> Vec<Step> {
    let parts = view.case.program.parts();
    let kernel = view.kernel();
    let mut steps = Vec::new();
    for (i, buffer) in kernel.buffers.iter().enumerate() {
        let alike = |j: &usize| *j != i && kernel.buffers[*j].value == buffer.value;
        steps.extend((0..kernel.buffers.len()).filter(alike).map(|j| Step::Merge(i, j)));
        steps.extend(match buffer.access {
            Access::ReadWrite => {
                let stores = listed(view)
                    .into_iter()
                    .filter(|(_, node)| matches!(node, Node::Store(store) if store.buffer == buffer.name));
                let fresh = stores.map(|(place, _)| Step::Fresh(i, place));
                [Step::Access(i, Access::Read), Step::Access(i, Access::Output)].into_iter().chain(fresh).collect()
            }
            Access::Uniform => vec![Step::Access(i, Access::Read)],
            Access::Read | Access::Output | Access::Workgroup => Vec::new(),
        });
        if let ValueType::Scalar(scalar) = buffer.value
            && DataType::from(scalar) != buffer.element
        {
            steps.push(Step::Element(i, scalar.into()));
        }
        if !buffer.access.is_input() {
            let count = view.launch.lengths[i];
            let mut counts = vec![1, count / 2, count.saturating_sub(1)];
            counts.dedup();
            steps.extend(counts.into_iter().filter(|smaller| (1..count).contains(smaller)).map(|count| Step::Count(i, count)));
        }
    }
    if parts.floats == FloatMode::Canonical {
        steps.push(Step::Ieee);
    }
    if let Some(lanes) = parts.subgroup {
        let smaller = SUBGROUP_SIZES.into_iter().filter(|size| *size < lanes);
        steps.extend([None].into_iter().chain(smaller.map(Some)).map(Step::Subgroup));
    }
    steps
}

/// The elements of inputs that are not zero.
pub(super) fn cells(view: &View) -> Vec<(usize, u32)> {
    let mut cells = Vec::new();
    for (i, bytes) in view.case.program.interface().inputs.iter().zip(&view.case.inputs) {
        let element = &view.kernel().buffers[*i].element;
        cells.extend((0..view.launch.lengths[*i]).filter(|n| !elements::is_zero(element, bytes, *n)).map(|n| (*i, n)));
    }
    cells
}

/// Simpler elements.
pub(super) fn input_values(view: &View) -> Vec<Step> {
    let mut steps = Vec::new();
    let inputs = &view.case.program.interface().inputs;
    for (i, n) in cells(view) {
        steps.push(Step::Zeros(vec![(i, n)]));
        let Some(bytes) = inputs.iter().position(|input| *input == i).map(|input| &view.case.inputs[input]) else { continue };
        for (component, literal) in elements::components(&view.kernel().buffers[i].element, bytes, n).into_iter().enumerate() {
            steps.extend(simpler(literal).into_iter().map(|literal| Step::Value(i, n, component, literal)));
        }
    }
    steps
}

/// The case after a step; `None` if the step changes nothing or has no meaning here.
pub(super) fn apply(view: &View, step: &Step) -> Option<Draft> {
    let mut draft = Draft::of(&view.case);
    let kernel = view.kernel();
    match step {
        Step::Remove(place) => rewrite_nodes(&mut draft.parts.body, &mut |here, _| (here == *place).then(Vec::new)),
        Step::RemoveAll(places) => rewrite_nodes(&mut draft.parts.body, &mut |here, node| remove_listed(here, node, places)),
        Step::Prune => prune(&mut draft.parts.body, view.case.program.is_wrapped()),
        Step::Hoist(place, which) => rewrite_nodes(&mut draft.parts.body, &mut |here, node| {
            if here != *place {
                return None;
            }
            let body = node.bodies().nth(*which)?.clone().into_inner();
            let mut nodes = Vec::new();
            if let Node::Loop(repeat) = node {
                nodes.push(Node::let_bind(&repeat.var, repeat.from.clone()));
            }
            nodes.extend(body);
            Some(nodes)
        }),
        Step::DropElse(place) => change_node(&mut draft.parts.body, *place, &mut |node| {
            let Node::If { otherwise, .. } = node else { return false };
            otherwise.clear();
            true
        })?,
        Step::WriteCondition(place, part) => {
            let node = node_at(view, *place)?;
            let Node::If { cond, .. } = node else { return None };
            let mut write = only_write(node)?.clone();
            let value = write.value_mut()?;
            // The value stands last in its statement, which is the last of the arm.
            let old = NodeId(place.0 + node_size(node) - expr_size(value));
            let ty = view.types.get(old.0 as usize).copied().flatten()?;
            let new = match part {
                Some(part) if view.types.get(part.0 as usize).copied().flatten() == Some(ty) => {
                    Walk::expr(cond).nth((part.0 - place.0 - 1) as usize).and_then(|(item, _)| match item {
                        Item::Expr(expr) => Some(expr.clone()),
                        Item::Node(_) => None,
                    })?
                }
                Some(_) => return None,
                None => Expr::cast(ty.scalar().filter(|scalar| scalar.is_int())?, Expr::clone(cond)),
            };
            *value = new;
            rewrite_nodes(&mut draft.parts.body, &mut |here, _| (here == *place).then(|| vec![write.clone()]));
        }
        Step::Unused => return super::unused::without(view),
        Step::Inline(place) => {
            let Node::Let { name, value } = node_at(view, *place)? else { return None };
            if writes(&draft.parts.body, name) != 1 {
                return None;
            }
            rewrite_nodes(&mut draft.parts.body, &mut |here, _| (here == *place).then(Vec::new));
            substitute(&mut draft.parts.body, name, value);
        }
        Step::LetHere(place) => {
            let Node::Assign { name, value } = node_at(view, *place)? else { return None };
            rewrite_nodes(&mut draft.parts.body, &mut |here, node| {
                if here == *place {
                    return Some(vec![Node::let_bind(name, Expr::clone(value))]);
                }
                (node.declares() == Some(name)).then(Vec::new)
            });
        }
        Step::Forward(place) => {
            let Node::Store(store) = node_at(view, *place)? else { return None };
            let Store { buffer, value, .. } = &**store;
            rewrite_nodes(&mut draft.parts.body, &mut |_, node| {
                matches!(node, Node::Store(other) if other.buffer == *buffer).then(Vec::new)
            });
            let mut loads = false;
            rewrite_exprs(&mut draft.parts.body, &mut |_, expr| {
                let load = matches!(expr, Expr::Load(load) if load.buffer == *buffer);
                loads |= load;
                load.then(|| value.clone())
            });
            if !loads {
                return None;
            }
        }
        Step::Ignore(place) => change_node(&mut draft.parts.body, *place, &mut |node| {
            node.result_mut().is_some_and(|result| result.take().is_some())
        })?,
        Step::Operand(place, which) => change_node(&mut draft.parts.body, *place, &mut |node| {
            let Some(value) = node.operands().get(*which).cloned() else { return false };
            let Some(name) = node.result_mut().and_then(Option::take) else { return false };
            *node = Node::let_bind(name, value);
            true
        })?,
        Step::NotAtomic(place) => change_node(&mut draft.parts.body, *place, &mut |node| {
            let Node::Atomic(atomic) = node else { return false };
            let Atomic { result, buffer, index, operands, .. } = &mut **atomic;
            // Of two operands the last is what is written.
            let plain = match (result.take(), operands.pop()) {
                (Some(name), _) => Node::let_bind(name, Expr::load(buffer.clone(), index.clone())),
                (None, Some(value)) => Node::store(buffer.clone(), index.clone(), value),
                (None, None) => return false,
            };
            *node = plain;
            true
        })?,
        Step::PlainBarrier(place) => change_node(&mut draft.parts.body, *place, &mut |node| {
            *node = Node::barrier();
            true
        })?,
        Step::Tag(place, new) => change_node(&mut draft.parts.body, *place, &mut |node| {
            let Node::Trap { tag } = node else { return false };
            std::mem::replace(tag, *new) != *new
        })?,
        Step::Replace(place, with) => {
            let ty = view.types.get(place.0 as usize).copied().flatten()?;
            let mut changed = false;
            rewrite_exprs(&mut draft.parts.body, &mut |here, expr| {
                if here != *place {
                    return None;
                }
                let new = replacement(with, ty, here, expr)?;
                changed = new != *expr;
                Some(new)
            });
            if !changed {
                return None;
            }
        }
        Step::ReplaceAlike(place, with) => {
            let ty = view.types.get(place.0 as usize).copied().flatten()?;
            let Item::Expr(old) = view.case.program.walk().nth(place.0 as usize)?.0 else { return None };
            let new = replacement(with, ty, *place, old)?;
            rewrite_exprs(&mut draft.parts.body, &mut |_, expr| (expr == old).then(|| new.clone()));
        }
        Step::Move(place, which, target) => {
            let expr = node_at(view, *place)?.exprs().nth(*which)?;
            rewrite(&mut draft.parts.body, &mut |here, _| (here == *place).then(Vec::new), &mut |here, _| {
                (here == *target).then(|| expr.clone())
            });
        }
        Step::Retype(place, new) => {
            let scalar = view.types.get(new.0 as usize).copied().flatten()?.scalar()?;
            let Node::Store(store) = node_at(view, *place)? else { return None };
            let Store { buffer, index, value } = &**store;
            let first = place.0 + 1 + expr_size(index);
            let Item::Expr(below) = Walk::expr(value).nth(new.0.checked_sub(first)? as usize)?.0 else { return None };
            let decl = draft.parts.buffers.iter_mut().find(|decl| decl.name == *buffer)?;
            decl.element = Element::Type(scalar.into());
            change_node(&mut draft.parts.body, *place, &mut |node| {
                *node = Node::store(buffer.clone(), index.clone(), below.clone());
                true
            })?;
        }
        Step::Component(i, component) => {
            let (buffer, decl) = (kernel.buffers.get(*i)?, draft.parts.buffers.get_mut(*i)?);
            let ValueType::Vector(scalar, count) = buffer.value else { return None };
            decl.element = Element::Type(scalar.into());
            if let Some(bytes) = draft.inputs.get_mut(&buffer.name) {
                let words: Vec<&[u8]> = bytes.chunks_exact(scalar.bytes() as usize).collect();
                *bytes = words.chunks_exact(count.into()).flat_map(|words| words[usize::from(*component)].to_vec()).collect();
            }
            of_component(&mut draft.parts.body, &buffer.name, *component);
        }
        Step::ZeroAll(places) => rewrite_exprs(&mut draft.parts.body, &mut |here, _| {
            let ty = view.types.get(here.0 as usize).copied().flatten()?;
            places.binary_search(&here).is_ok().then(|| zero(ty))
        }),
        Step::Constants => {
            if draft.parts.consts.is_empty() {
                return None;
            }
            draft.parts = view.resolved().parts().clone();
            draft.config.specialization = vyre_foundation::config::SpecMap::new();
        }
        Step::Constant(n) => {
            let decl = (*n < draft.parts.consts.len()).then(|| draft.parts.consts.remove(*n))?;
            let value = draft.config.specialization.remove(decl.name.as_str()).unwrap_or(decl.default);
            write_out(&mut draft, &decl.name, &value);
        }
        Step::RemoveBuffer(i) => remove_buffers(&mut draft, view, &|j| j == *i),
        Step::Merge(i, j) => {
            let (old, new) = (kernel.buffers.get(*i)?.name.clone(), kernel.buffers.get(*j)?.name.clone());
            rename_body(&mut draft.parts.body, &|name| if *name == old { new.clone() } else { name.clone() });
            remove_buffers(&mut draft, view, &|j| j == *i);
        }
        Step::Access(i, access) => change_access(&mut draft, view, *i, *access)?,
        Step::Fresh(i, place) => {
            change_access(&mut draft, view, *i, Access::Output)?;
            let ty = kernel.buffers.get(*i)?.value;
            change_node(&mut draft.parts.body, *place, &mut |node| {
                let Node::Store(store) = node else { return false };
                store.value = one(ty);
                true
            })?;
        }
        Step::Element(i, element) => {
            let decl = draft.parts.buffers.get_mut(*i)?;
            decl.element = Element::Type(element.clone());
            if let Some(bytes) = draft.inputs.get_mut(&decl.name) {
                *bytes = elements::converted(&kernel.buffers[*i].element, element, bytes)?;
            }
        }
        Step::Count(i, count) => {
            let decl = draft.parts.buffers.get_mut(*i)?;
            draft.config.output_counts.remove(decl.name.as_str());
            decl.count = Some(Size::Lit(*count));
        }
        Step::Bindings => {
            let mut bindings: Vec<u32> = draft.parts.buffers.iter().filter_map(|decl| decl.binding).collect();
            bindings.sort_unstable();
            for binding in draft.parts.buffers.iter_mut().filter_map(|decl| decl.binding.as_mut()) {
                *binding = bindings.partition_point(|other| other < binding) as u32;
            }
        }
        Step::Ieee => draft.parts.floats = FloatMode::Ieee,
        Step::Subgroup(lanes) => draft.parts.subgroup = *lanes,
        Step::Workgroup(size) => draft.parts.workgroup = size.map(Size::Lit),
        Step::Grid(grid) => draft.config.grid_override = *grid,
        Step::Single => {
            let lanes = draft.parts.subgroup.unwrap_or(1);
            draft.parts.workgroup = [lanes, 1, 1].map(Size::Lit);
            draft.config.workgroup_override = None;
            draft.config.grid_override = Some([1, 1, 1]);
        }
        Step::Columns(range) => {
            for i in &view.case.program.interface().inputs {
                let end = range.end.min(view.launch.lengths[*i]);
                if range.start < end {
                    cut(&mut draft, view, *i, range.start..end)?;
                }
            }
        }
        Step::Cut(i, range) => cut(&mut draft, view, *i, range.clone())?,
        Step::Zeros(cells) => {
            for (i, n) in cells {
                let buffer = kernel.buffers.get(*i)?;
                elements::clear(&buffer.element, draft.inputs.get_mut(&buffer.name)?, *n);
            }
        }
        Step::Value(i, n, component, literal) => {
            let buffer = kernel.buffers.get(*i)?;
            elements::put(&buffer.element, draft.inputs.get_mut(&buffer.name)?, *n, *component, *literal);
        }
        Step::Names(which) => clean(&mut draft, *which),
    }
    repair(&mut draft.parts, kernel);
    Some(draft)
}

fn node_at(view: &View, place: NodeId) -> Option<&Node> {
    match view.case.program.walk().nth(place.0 as usize)?.0 {
        Item::Node(node) => Some(node),
        Item::Expr(_) => None,
    }
}

/// A statement that is in the list goes if all statements below it are in the list too.
fn remove_listed(here: NodeId, node: &Node, places: &[NodeId]) -> Option<Vec<Node>> {
    places.binary_search(&here).ok()?;
    let mut all = true;
    for (n, (item, _)) in Walk::body(std::slice::from_ref(node)).enumerate() {
        all &= matches!(item, Item::Expr(_)) || places.binary_search(&NodeId(here.0 + n as u32)).is_ok();
    }
    all.then(Vec::new)
}

fn prune(body: &mut Body, outermost_stays: bool) {
    for node in body.iter_mut() {
        node.bodies_mut().for_each(|body| prune(body, false));
    }
    let empty = |node: &Node| node.bodies().next().is_some() && node.bodies().all(|body| body.is_empty());
    if !outermost_stays {
        body.retain(|node| !empty(node));
    }
}

/// Changes the statement at a place; `None` if `change` says that there is nothing to change.
fn change_node(body: &mut Body, place: NodeId, change: &mut dyn FnMut(&mut Node) -> bool) -> Option<()> {
    let mut changed = false;
    rewrite_nodes(body, &mut |here, node| {
        if here != place {
            return None;
        }
        let mut node = node.clone();
        changed = change(&mut node);
        Some(vec![node])
    });
    changed.then_some(())
}

/// Statements that declare or assign a variable.
fn writes(body: &Body, name: &Name) -> usize {
    let is = |node: &Node| {
        matches!(node, Node::Assign { name: other, .. } if other == name)
            || [node.declares(), node.counter()].contains(&Some(name))
    };
    Walk::body(body).filter(|(item, _)| matches!(item, Item::Node(node) if is(node))).count()
}

fn replacement(with: &With, ty: ValueType, here: NodeId, expr: &Expr) -> Option<Expr> {
    Some(match with {
        With::Zero => zero(ty),
        With::One => one(ty),
        With::Below(place) => match Walk::expr(expr).nth(place.0.checked_sub(here.0)? as usize)?.0 {
            Item::Expr(below) => below.clone(),
            Item::Node(_) => return None,
        },
        With::Literal(literal) => Expr::Lit(*literal),
        With::Var(name) => Expr::Var(name.clone()),
        With::Gid => Expr::Builtin(Builtin::Invocation(Axis::X)),
        With::Holds(name, true) => Expr::cast(Scalar::Bool, Expr::Var(name.clone())),
        With::Holds(name, false) => Expr::not(Expr::cast(Scalar::Bool, Expr::Var(name.clone()))),
    })
}

/// Stores one component to a buffer and loads it where any is taken.
fn of_component(body: &mut Body, name: &Name, component: u8) {
    fn loads(expr: &mut Expr, name: &Name) {
        if let Expr::Extract { vector, .. } = expr
            && matches!(&**vector, Expr::Load(load) if load.buffer == *name)
        {
            *expr = std::mem::replace(&mut **vector, Expr::bool(false));
        }
        expr.children_mut().for_each(|child| loads(child, name));
    }
    for node in body.iter_mut() {
        if let Node::Store(store) = node
            && store.buffer == *name
        {
            let value = &mut store.value;
            *value = if let Expr::Vector { components } = value
                && usize::from(component) < components.len()
            {
                Expr::clone(&components[usize::from(component)])
            } else {
                Expr::extract(value.clone(), component)
            };
        }
        node.exprs_mut().for_each(|expr| loads(expr, name));
        node.bodies_mut().for_each(|body| of_component(body, name, component));
    }
}

/// Writes the value of a constant wherever its name stands.
fn write_out(draft: &mut Draft, name: &Name, value: &SpecValue) {
    let sizes = draft.parts.workgroup.iter_mut().chain(draft.parts.buffers.iter_mut().filter_map(|decl| decl.count.as_mut()));
    if let SpecValue::U32(value) = value {
        sizes.filter(|size| **size == Size::Const(name.clone())).for_each(|size| *size = Size::Lit(*value));
    }
    if let SpecValue::DType(element) = value {
        let named = draft.parts.buffers.iter_mut().filter(|decl| decl.element == Element::Const(name.clone()));
        named.for_each(|decl| decl.element = Element::Type(element.clone()));
    }
    if let Some(literal) = value.literal() {
        substitute(&mut draft.parts.body, name, &Expr::Lit(literal));
    }
}

fn change_access(draft: &mut Draft, view: &View, i: usize, access: Access) -> Option<()> {
    let length = *view.launch.lengths.get(i)?;
    let decl = draft.parts.buffers.get_mut(i)?;
    decl.access = access;
    if !access.is_input() {
        decl.count.get_or_insert(Size::Lit(length));
        draft.inputs.remove(&decl.name);
        pin_outputs(draft, view);
    }
    Some(())
}

/// Takes buffers out with their inputs; what is left in the program of them is for the repair.
pub(super) fn remove_buffers(draft: &mut Draft, view: &View, gone: &dyn Fn(usize) -> bool) {
    let mut n = 0;
    let (inputs, counts) = (&mut draft.inputs, &mut draft.config.output_counts);
    draft.parts.buffers.retain(|decl| {
        n += 1;
        if gone(n - 1) {
            inputs.remove(&decl.name);
            counts.remove(decl.name.as_str());
        }
        !gone(n - 1)
    });
    pin_outputs(draft, view);
}

/// Declares the counts of outputs whose length can no longer be told from an input's.
fn pin_outputs(draft: &mut Draft, view: &View) {
    if draft.parts.buffers.iter().any(|decl| decl.access.is_input() && decl.count.is_none()) {
        return;
    }
    for decl in &mut draft.parts.buffers {
        let open = decl.access == Access::Output && decl.count.is_none();
        let length = view.kernel().buffers.iter().zip(&view.launch.lengths).find(|(buffer, _)| buffer.name == decl.name);
        if let Some((_, length)) = length.filter(|_| open && !draft.config.output_counts.contains_key(decl.name.as_str())) {
            decl.count = Some(Size::Lit(*length));
        }
    }
}

/// Takes elements out of an input.
fn cut(draft: &mut Draft, view: &View, i: usize, range: Range<u32>) -> Option<()> {
    let buffer = view.kernel().buffers.get(i)?;
    let bytes = draft.inputs.get_mut(&buffer.name)?;
    *bytes = elements::without(&buffer.element, bytes, view.launch.lengths[i], range.clone())?;
    match &mut draft.parts.buffers.get_mut(i)?.count {
        None => {}
        Some(Size::Lit(count)) => *count = count.checked_sub(range.len() as u32)?,
        Some(Size::Const(_)) => return None,
    }
    pin_outputs(draft, view);
    Some(())
}
