//! How many values a form holds at once, told before any code is made for it.
//!
//! It counts what differs between lanes, once for each vector that one vector's lanes take. One walk over the form, and the lives of values as
//! code has them: from where they are defined to where they are read last, and to the end of loops that only read them.

use super::lower::{components_of, is_wide, scalar_of};
use super::shape::{Shape, Shapes};
use vyre_foundation::ssa::{InstKind, RegionId, Ssa, Value};

/// The most vectors that are held at once, where a block is one vector.
pub(crate) fn pressure(ssa: &Ssa, shapes: &Shapes) -> u32 {
    let mut lives = Lives { ssa, lives: vec![None; ssa.values.len()], time: 0, loops: Vec::new() };
    lives.region(ssa.root);
    let mut changes = vec![0i32; lives.time as usize + 1];
    for Life { value, start, end } in lives.lives.into_iter().flatten() {
        if shapes.shape(value) == Shape::Varying {
            let ty = ssa.value(value).ty;
            let vectors = i32::from(components_of(ty)) * if is_wide(scalar_of(ty)) { 2 } else { 1 };
            changes[start as usize] += vectors;
            changes[end as usize] -= vectors;
        }
    }
    let held = changes.iter().scan(0, |held, change| {
        *held += change;
        Some(*held)
    });
    held.max().unwrap_or(0).unsigned_abs()
}

#[derive(Clone, Copy)]
struct Life {
    value: Value,
    start: u32,
    end: u32,
}

struct Lives<'a> {
    ssa: &'a Ssa,
    /// By value that an instruction defines or a region is given.
    lives: Vec<Option<Life>>,
    time: u32,
    /// Loops that the walk is in: when they began, and what they read from before.
    loops: Vec<(u32, Vec<Value>)>,
}

impl Lives<'_> {
    fn define(&mut self, value: Value) {
        self.lives[value.index()] = Some(Life { value, start: self.time, end: self.time });
    }

    fn read(&mut self, value: Value) {
        if let Some(life) = &mut self.lives[value.index()] {
            life.end = self.time;
            if let Some((began, read)) = self.loops.last_mut()
                && life.start < *began
            {
                read.push(value);
            }
        }
    }

    fn region(&mut self, region: RegionId) {
        let region = self.ssa.region(region);
        region.args.iter().for_each(|arg| self.define(*arg));
        for id in &region.insts {
            let inst = self.ssa.inst(*id);
            self.time += 1;
            inst.kind.for_each_operand(&mut |value| self.read(value));
            let is_loop = matches!(inst.kind, InstKind::Loop { .. });
            if is_loop {
                self.time += 1;
                self.loops.push((self.time, Vec::new()));
            }
            inst.kind.regions().for_each(|inner| self.region(inner));
            if is_loop && let Some((_, read)) = self.loops.pop() {
                read.into_iter().for_each(|value| self.read(value));
            }
            inst.results.iter().for_each(|result| self.define(*result));
        }
        self.time += 1;
        region.end.values().iter().for_each(|value| self.read(*value));
    }
}
