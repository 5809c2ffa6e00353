//! Names: unique ones to work with, and short ones to read at the end.
//!
//! The names to read follow from what a thing is and from its position alone, so that two reductions that end in the same program spell
//! it the same: inputs are `a`, `b`, …, outputs `out`, counters `i`, `j`, …, other variables `x`, `y`, …

use super::view::Draft;
use std::collections::{HashMap, HashSet};
use vyre_foundation::interface::Interface;
use vyre_foundation::ir::{Body, Element, Expr, Item, Name, Node, Parts, Program, Size, Walk};

/// What to give clean names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Which {
    All,
    Program,
    Buffers,
    Variables,
}

/// The clean name of a program and of every region in it.
const PROGRAM: &str = "reduced";
const REGION: &str = "r";

/// How many names are not as they would be after cleaning.
pub(super) fn unclean(program: &Program) -> u64 {
    let parts = program.parts();
    let names = buffer_names(parts).chain(variable_names(parts)).filter(|(old, new)| old != new).count();
    let regions = program.walk().enumerate().filter(|(n, (item, _))| match item {
        Item::Node(Node::Region { generator, .. }) => *generator != region_name(program.is_wrapped(), *n),
        Item::Node(_) | Item::Expr(_) => false,
    });
    (names + regions.count()) as u64
}

fn region_name(wrapped: bool, place: usize) -> &'static str {
    if wrapped && place == 0 { PROGRAM } else { REGION }
}

/// Gives clean names to some things, everywhere they are named.
pub(super) fn clean(draft: &mut Draft, which: Which) {
    let (program, buffers, variables) = match which {
        Which::All => (true, true, true),
        Which::Program => (true, false, false),
        Which::Buffers => (false, true, false),
        Which::Variables => (false, false, true),
    };
    let mut names = HashMap::new();
    if buffers {
        names.extend(buffer_names(&draft.parts));
    }
    if variables {
        names.extend(variable_names(&draft.parts));
    }
    if program {
        let wrapped = matches!(&draft.parts.body[..], [Node::Region { .. }]);
        rename_regions(&mut draft.parts.body, wrapped);
    }
    rename(draft, &names);
}

fn rename_regions(body: &mut Body, outermost_is_program: bool) {
    for node in body.iter_mut() {
        if let Node::Region { generator, .. } = node {
            *generator = region_name(outermost_is_program, 0).into();
        }
        node.bodies_mut().for_each(|body| rename_regions(body, false));
    }
}

/// Every buffer and constant with its clean name.
fn buffer_names(parts: &Parts) -> impl Iterator<Item = (Name, Name)> {
    let interface = Interface::of(parts);
    let name = |i: &usize| parts.buffers[*i].name.clone();
    let inputs = numbered(interface.inputs.iter().map(name).collect(), &["a", "b", "c", "d", "e", "f", "g"]);
    let only_outputs = interface.outputs.iter().filter(|i| !interface.inputs.contains(i));
    let outputs = numbered(only_outputs.map(name).collect(), &["out"]);
    let tiles = numbered(interface.workgroup.iter().map(name).collect(), &["tile"]);
    let constants = numbered(parts.consts.iter().map(|decl| decl.name.clone()).collect(), &["k"]);
    inputs.into_iter().chain(outputs).chain(tiles).chain(constants)
}

/// Every variable with its clean name.
fn variable_names(parts: &Parts) -> impl Iterator<Item = (Name, Name)> {
    let (mut counters, mut others) = (Vec::new(), Vec::new());
    for (item, _) in Walk::body(&parts.body) {
        let (list, name) = match item {
            Item::Node(node) if node.counter().is_some() => (&mut counters, node.counter()),
            Item::Node(node) => (&mut others, node.declares()),
            Item::Expr(_) => continue,
        };
        if let Some(name) = name
            && !list.contains(name)
        {
            list.push(name.clone());
        }
    }
    // A name that is a counter here and another variable there gets the name of a counter.
    others.retain(|name| !counters.contains(name));
    numbered(counters, &["i", "j", "l"]).into_iter().chain(numbered(others, &["x", "y", "z", "w"]))
}

/// The first names are these, the next ones the first of these with a number.
fn numbered(old: Vec<Name>, stems: &[&str]) -> Vec<(Name, Name)> {
    let new = |n: usize| stems.get(n).map_or_else(|| format!("{}{}", stems[0], n + 1).into(), |stem| Name::from(*stem));
    old.into_iter().enumerate().map(|(n, old)| (old, new(n))).collect()
}

/// Gives every variable a name of its own, so that statements can move between scopes. `false` if that changes nothing.
pub(super) fn make_unique(draft: &mut Draft) -> bool {
    let mut taken: HashSet<Name> = HashSet::new();
    taken.extend(draft.parts.buffers.iter().map(|decl| decl.name.clone()));
    taken.extend(draft.parts.consts.iter().map(|decl| decl.name.clone()));
    let mut unique = Unique { taken, visible: Vec::new(), changed: false };
    unique.body(&mut draft.parts.body);
    unique.changed
}

struct Unique {
    taken: HashSet<Name>,
    /// Old and new names, the innermost last.
    visible: Vec<(Name, Name)>,
    changed: bool,
}

impl Unique {
    fn body(&mut self, body: &mut Body) {
        let outside = self.visible.len();
        for node in body.iter_mut() {
            node.exprs_mut().for_each(|expr| self.expr(expr));
            node.assigns_mut().into_iter().for_each(|name| self.refer(name));
            node.declares_mut().into_iter().for_each(|name| self.declare(name));
            let inside = self.visible.len();
            node.counter_mut().into_iter().for_each(|name| self.declare(name));
            node.bodies_mut().for_each(|body| self.body(body));
            self.visible.truncate(inside);
        }
        self.visible.truncate(outside);
    }

    fn declare(&mut self, name: &mut Name) {
        let old = name.clone();
        let mut number = 1;
        while !self.taken.insert(name.clone()) {
            number += 1;
            *name = format!("{old}_{number}", old = old.as_str()).into();
            self.changed = true;
        }
        self.visible.push((old, name.clone()));
    }

    fn refer(&self, name: &mut Name) {
        if let Some((_, new)) = self.visible.iter().rev().find(|(old, _)| old == name) {
            *name = new.clone();
        }
    }

    fn expr(&self, expr: &mut Expr) {
        if let Expr::Var(name) = expr {
            self.refer(name);
        }
        expr.children_mut().for_each(|child| self.expr(child));
    }
}

/// Replaces names of buffers, constants and variables, all at once.
fn rename(draft: &mut Draft, names: &HashMap<Name, Name>) {
    let new = |name: &Name| names.get(name).unwrap_or(name).clone();
    let text = |name: String| names.get(name.as_str()).map_or(name, |new| new.as_str().to_string());
    for decl in &mut draft.parts.buffers {
        decl.name = new(&decl.name);
        if let Some(Size::Const(name)) = &mut decl.count {
            *name = new(name);
        }
        if let Element::Const(name) = &mut decl.element {
            *name = new(name);
        }
    }
    for size in &mut draft.parts.workgroup {
        if let Size::Const(name) = size {
            *name = new(name);
        }
    }
    draft.parts.consts.iter_mut().for_each(|decl| decl.name = new(&decl.name));
    draft.inputs = std::mem::take(&mut draft.inputs).into_iter().map(|(name, bytes)| (new(&name), bytes)).collect();
    let counts = std::mem::take(&mut draft.config.output_counts);
    draft.config.output_counts = counts.into_iter().map(|(name, count)| (text(name), count)).collect();
    let values = std::mem::take(&mut draft.config.specialization);
    draft.config.specialization = values.into_iter().map(|(name, value)| (text(name), value)).collect();
    rename_body(&mut draft.parts.body, &new);
}

/// Replaces every name that statements and expressions mention.
pub(super) fn rename_body(body: &mut Body, new: &dyn Fn(&Name) -> Name) {
    for node in body.iter_mut() {
        node.exprs_mut().for_each(|expr| rename_expr(expr, new));
        node.names_mut().for_each(|name| *name = new(name));
        node.bodies_mut().for_each(|body| rename_body(body, new));
    }
}

fn rename_expr(expr: &mut Expr, new: &dyn Fn(&Name) -> Name) {
    expr.name_mut().into_iter().for_each(|name| *name = new(name));
    expr.children_mut().for_each(|child| rename_expr(child, new));
}
