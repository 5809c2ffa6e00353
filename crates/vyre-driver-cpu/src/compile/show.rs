//! What the compiler makes of a program, for people: its decisions, and its code.

use super::Refused;
use super::bytes::Pieces;
use super::choose::Choice;
#[cfg(feature = "listing")]
use super::choose::Phase;
use super::geometry::Geometry;
use super::segments::{self, Item};
use super::shape::{Shape, Shapes};
use std::fmt::Write;
use std::sync::Arc;
use vyre_foundation::analysis::Bounds;
use vyre_foundation::ir::Program;
use vyre_foundation::kernel::AccessId;
use vyre_foundation::ssa::{InstKind, Ssa};
use vyre_foundation::{Location, Report};

/// The SSA form that code is made from, with what was decided: how invocations become lanes, which values are scalars, how memory is
/// accessed and why, and where barriers cut the program.
///
/// # Errors
///
/// If the program is not valid.
pub fn decisions(program: &Program) -> Result<String, Report> {
    let ssa = super::prepared(program.validated().map_err(Clone::clone)?.kernel(), None);
    let kernel = &ssa.kernel;
    let mut text = String::new();
    let Choice { attempt, geometry, tried } = match super::choose::choose(&ssa, None) {
        Ok(chosen) => chosen,
        Err(Refused(why)) => return Ok(format!("; left to the portable evaluator: {why}\n{ssa}")),
    };
    let Geometry { size: [x, y, z], parts, flat, rows } = geometry;
    if let [_, declared, _] = program.workgroup_size()
        && declared != y
    {
        let _ = writeln!(text, "; {} rows of a workgroup at once", declared / y);
    }
    let _ = writeln!(text, "; {parts} x 8 lanes of a workgroup of {x} x {y} x {z}{}", tail(&geometry));
    for (parts, spilled) in tried {
        let _ = writeln!(
            text,
            ";   with {parts} vectors {:.1} % more instructions, between registers and the frame",
            100.0 * spilled
        );
    }
    if flat {
        let _ = writeln!(
            text,
            "; workgroups along x are one range of invocations for each of their rows: nothing in the kernel can tell them apart"
        );
    } else {
        let _ = writeln!(text, "; {} blocks a workgroup", geometry.blocks());
    }
    if !rows {
        let _ = writeln!(text, "; a block has more than one row, so that ids along x are vectors");
    }
    let shapes = Shapes::of(&ssa, &geometry, None);
    let bounds = Bounds::of(&ssa);
    let mut phases = segments::phases(&ssa, &|id| shapes.escapes(id).leaves_loop);
    super::fuse::fuse(&ssa, &mut phases);
    for (n, items) in phases.iter().enumerate() {
        let _ = writeln!(text, "; phase {n}: {}, {} bytes for what crosses barriers", segments(items), attempt.slots_bytes);
    }
    let mut uniform = 0;
    let mut linear = 0;
    let mut varying = 0;
    ssa.for_each_inst(ssa.root, &mut |id, inst| {
        for result in &inst.results {
            match shapes.shape(*result) {
                Shape::Uniform => uniform += 1,
                Shape::Linear(_) => linear += 1,
                Shape::Varying => varying += 1,
            }
        }
        if let InstKind::Loop { .. } = inst.kind
            && shapes.is_divergent(id)
        {
            let _ = writeln!(text, "; lanes leave {} at different times", stmt(program, kernel, inst.stmt.index()));
        }
    });
    let _ = writeln!(text, "; values: {uniform} uniform, {linear} linear, {varying} varying");
    let pieces = Pieces::of(&ssa, &shapes, &super::facts::count_uses(&ssa));
    let notes = access_notes(&ssa, &shapes, &bounds, &pieces);
    let _ = write!(text, "{}", ssa.with_notes(move |access: AccessId| notes[access.index()]));
    Ok(text)
}

fn tail(geometry: &Geometry) -> &'static str {
    match (geometry.has_tail(), geometry.flat && geometry.parts > 1) {
        (false, _) => "",
        (true, false) => ", the last block under a mask",
        (true, true) => ", what is left of a range one vector at a time",
    }
}

fn segments(items: &[Item]) -> String {
    fn count(items: &[Item]) -> usize {
        items
            .iter()
            .map(|item| match item {
                Item::Segment(_) => 1,
                Item::If { then, otherwise, .. } => count(then) + count(otherwise),
                Item::Loop { body, .. } => count(body),
                Item::Break | Item::Continue | Item::Retire(_) => 0,
            })
            .sum()
    }
    match count(items) {
        1 => "1 segment".into(),
        n => format!("{n} segments"),
    }
}

/// By access: how it is done.
fn access_notes(ssa: &Ssa, shapes: &Shapes, bounds: &Bounds, pieces: &Pieces) -> Vec<&'static str> {
    let mut notes = vec![""; ssa.kernel.accesses.len()];
    ssa.for_each_inst(ssa.root, &mut |_, inst| {
        let (access, index) = match inst.kind {
            InstKind::Load { access, index, .. } | InstKind::Store { access, index, .. } => (access, index),
            InstKind::Atomic { access, .. } => {
                notes[access.index()] = "one lane after the other";
                return;
            }
            InstKind::Op(_)
            | InstKind::Subgroup { .. }
            | InstKind::If { .. }
            | InstKind::Loop { .. }
            | InstKind::Barrier
            | InstKind::GridSync => return,
        };
        if inst.results.first().is_some_and(|word| pieces.skips(*word)) {
            notes[access.index()] = "bytes or halves of words, contiguous";
            return;
        }
        notes[access.index()] = match (shapes.shape(index), bounds.is_proven(access)) {
            (Shape::Uniform, true) => "once, in bounds",
            (Shape::Uniform, false) => "once, checked",
            (Shape::Linear(1), true) => "contiguous, in bounds where all lanes are active",
            (Shape::Linear(1), false) => "contiguous, one check a block",
            (Shape::Linear(_) | Shape::Varying, true) => "by lane, in bounds where all lanes are active",
            (Shape::Linear(_) | Shape::Varying, false) => "by lane, each checked",
        };
    });
    notes
}

/// The first line of a statement, and where it is.
fn stmt(program: &Program, kernel: &vyre_foundation::kernel::Kernel, number: usize) -> String {
    let source = program.source().cloned().unwrap_or_else(|| Arc::new(vyre_foundation::text::print(program)));
    let Some(stmt) = kernel.stmts.get(number) else { return String::new() };
    let span = source.span(Location::Tree(stmt.node));
    let (line, _) = source.line_column(span.start);
    let text = source.text.get(span.start as usize..).and_then(|text| text.lines().next()).unwrap_or("").trim();
    format!("{line}: {text}")
}

/// Machine code with the statement above the code that it is for; one listing per phase.
///
/// # Errors
///
/// If the program is not valid.
#[cfg(feature = "listing")]
pub fn machine_code(program: &Program) -> Result<String, Report> {
    use crate::machine::encode::encode;
    let ssa = super::prepared(program.validated().map_err(Clone::clone)?.kernel(), None);
    let Choice { attempt, .. } = match super::choose::choose(&ssa, None) {
        Ok(chosen) => chosen,
        Err(Refused(why)) => return Ok(format!("; left to the portable evaluator: {why}\n")),
    };
    let mut text = String::new();
    for (n, Phase { code, labels, scratch, pool, allocation }) in attempt.phases.iter().enumerate() {
        if attempt.phases.len() > 1 {
            let _ = writeln!(text, "; phase {n}");
        }
        let encoded = encode(code, *labels, *scratch, &pool.bytes, allocation);
        let statement = |number: u32| Some(stmt(program, &ssa.kernel, number as usize)).filter(|text| !text.is_empty());
        text.push_str(&crate::machine::listing::listing(&encoded, statement));
    }
    Ok(text)
}
