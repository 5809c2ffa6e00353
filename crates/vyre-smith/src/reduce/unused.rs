//! Everything that is declared and never mentioned, taken out at once.

use super::step::remove_buffers;
use super::tree::{repair, rewrite_nodes};
use super::view::{Draft, View};
use std::collections::HashSet;
use vyre_foundation::ir::{Element, Item, Name, Parts, Size, Walk};

/// The case without what is unused; `None` if there is none.
pub(super) fn without(view: &View) -> Option<Draft> {
    let mut draft = Draft::of(&view.case);
    let mut changed = false;
    // What only something unused mentions is unused in the next round.
    while remove_variables(&mut draft.parts) {
        repair(&mut draft.parts, view.kernel());
        changed = true;
    }
    let used = used(&draft.parts);
    let unused: Vec<usize> = (0..draft.parts.buffers.len()).filter(|i| !used.contains(&draft.parts.buffers[*i].name)).collect();
    if !unused.is_empty() {
        remove_buffers(&mut draft, view, &|i| unused.contains(&i));
        changed = true;
    }
    let consts = draft.parts.consts.len();
    draft.parts.consts.retain(|decl| used.contains(&decl.name));
    draft.config.specialization.retain(|name| used.contains(name));
    (changed || consts != draft.parts.consts.len()).then_some(draft)
}

/// Takes out variables that nothing reads, and results that nothing asks for.
fn remove_variables(parts: &mut Parts) -> bool {
    let used = read(parts);
    let mut changed = false;
    rewrite_nodes(&mut parts.body, &mut |_, node| {
        let name = node.declares()?;
        if used.contains(name) {
            return None;
        }
        changed = true;
        let mut node = node.clone();
        Some(match node.result_mut() {
            Some(result) => {
                *result = None;
                vec![node]
            }
            None => Vec::new(),
        })
    });
    changed
}

/// Names that expressions mention.
fn read(parts: &Parts) -> HashSet<Name> {
    let names = Walk::body(&parts.body).filter_map(|(item, _)| match item {
        Item::Expr(expr) => expr.name().cloned(),
        Item::Node(_) => None,
    });
    names.collect()
}

/// Names that anything mentions.
fn used(parts: &Parts) -> HashSet<Name> {
    let mut used = read(parts);
    for (item, _) in Walk::body(&parts.body) {
        if let Item::Node(node) = item
            && let Some((buffer, _)) = node.access()
        {
            used.insert(buffer.clone());
        }
    }
    let sizes = parts.workgroup.iter().chain(parts.buffers.iter().filter_map(|decl| decl.count.as_ref()));
    used.extend(sizes.filter_map(|size| match size {
        Size::Const(name) => Some(name.clone()),
        Size::Lit(_) => None,
    }));
    used.extend(parts.buffers.iter().filter_map(|decl| match &decl.element {
        Element::Const(name) => Some(name.clone()),
        Element::Type(_) => None,
    }));
    used
}
