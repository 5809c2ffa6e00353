//! Names, types, declarations and structure (rules 2 to 21), and the resolved kernel.
//!
//! One walk in source order, counting places exactly as [`crate::ir::Walk`] does. Where a mistake leaves a name or a type unknown, the
//! kernel gets a placeholder that is uniform and has no type, so that the walk and the uniformity check after it can go on and find the
//! other mistakes. A kernel with placeholders is never handed out.

mod declarations;
mod expressions;
mod memory;
mod names;
mod sketch;
mod statements;
mod types;

pub(super) use declarations::exceeds;

use super::Wanted;
use crate::diagnostic::{Diagnostic, Location, Mistakes, Poison};
use crate::ir::{Counts, Name, NodeId, Parts, Program};
use crate::kernel::{ExprId, Kernel, StmtId, Uses};
use names::Binding;
use sketch::Sketch;
use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use vyre_spec::ValueType;

/// A checked expression: its number and its type, unless a mistake hides it.
#[derive(Clone, Copy)]
struct Typed {
    id: ExprId,
    ty: Option<ValueType>,
    place: NodeId,
    /// Whether it is a literal in the source.
    literal: bool,
}

struct Resolver<'a> {
    program: &'a Program,
    parts: &'a Parts,
    poison: &'a Poison,
    kernel: Kernel,
    mistakes: Mistakes,
    /// Every name that was declared up to here, with what it stood for last; see [`Resolver::visible`].
    names: HashMap<&'a Name, Binding>,
    /// All declarations of variables in the program, in order; made when the first name is not known.
    all_declared: OnceCell<HashMap<&'a Name, Vec<(NodeId, Location)>>>,
    /// The statement whose own expressions are being looked at: its place in the program, and its number.
    statement: NodeId,
    stmt: StmtId,
    /// Names declared in the open scopes, innermost last; see `scope`.
    declared: Vec<&'a Name>,
    /// By variable: whether its type is known.
    typed: Vec<bool>,
    next_place: u32,
    loops: u32,
    /// How many `if`s and loops are around the current statement.
    control: u32,
    /// The bindings that are used or have been suggested.
    bindings: HashSet<u32>,
    /// All bindings below this one are among them.
    next_binding: u32,
    /// By buffer: whether its declaration says what it holds.
    known_buffers: Vec<bool>,
    /// If the kernel will not be handed out anyway.
    sketch: Option<Sketch>,
}

/// The kernel, and every mistake against rules 2 to 21 outside of poisoned parts.
pub(super) fn resolve(program: &Program, counts: &Counts, poison: &Poison, wanted: Wanted) -> (Kernel, Mistakes) {
    let parts = program.parts();
    let whole = wanted == Wanted::Kernel;
    let mut resolver = Resolver {
        program,
        parts,
        poison,
        kernel: Kernel {
            buffers: Vec::with_capacity(parts.buffers.len()),
            vars: Vec::with_capacity(counts.vars),
            exprs: Vec::with_capacity(if whole { counts.exprs } else { 0 }),
            stmts: Vec::with_capacity(if whole { counts.stmts } else { 0 }),
            accesses: Vec::with_capacity(if whole { counts.accesses } else { 0 }),
            workgroup_size: program.workgroup_size(),
            floats: parts.floats,
            subgroup: parts.subgroup,
            uses: Uses::default(),
        },
        mistakes: Mistakes::default(),
        names: HashMap::with_capacity(parts.consts.len() + parts.buffers.len() + counts.vars),
        all_declared: OnceCell::new(),
        statement: NodeId(0),
        stmt: StmtId(0),
        declared: Vec::new(),
        typed: Vec::with_capacity(counts.vars),
        next_place: 0,
        loops: 0,
        control: 0,
        bindings: parts.buffers.iter().filter_map(|decl| decl.binding).collect(),
        next_binding: 0,
        known_buffers: Vec::new(),
        sketch: None,
    };
    if !whole {
        resolver.begin_sketch();
    }
    resolver.constants();
    resolver.buffers();
    let workgroup_known = resolver.workgroup();
    resolver.subgroup(workgroup_known);
    resolver.scope(&parts.body);
    debug_assert_eq!(resolver.next_place as usize, counts.stmts + counts.exprs, "places are counted as Walk counts them");
    (resolver.kernel, resolver.mistakes)
}

impl Resolver<'_> {
    #[inline]
    fn mistake(&mut self, diagnostic: Diagnostic) {
        self.mistakes.push(diagnostic);
    }

    #[inline]
    fn place(&mut self) -> NodeId {
        let place = NodeId(self.next_place);
        self.next_place += 1;
        place
    }
}
