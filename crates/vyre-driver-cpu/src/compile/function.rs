//! The frame of a function: the loops over workgroups and their blocks, and what stands in front of them.

use super::context::Context;
use super::facts::Facts;
use super::geometry::{Geometry, WIDTH};
use super::lower::{Lower, Pool};
use super::places::Places;
use super::segments::Item;
use super::shared;
use super::slots::Slots;
use crate::faults::Fault;
use crate::machine::lir::{Base, Cond, G2, GLoadKind, GSrc, Inst, Label, Mem, Width};
use crate::machine::reg::G;
use std::collections::HashMap;
use std::mem::offset_of;
use vyre_foundation::ssa::Ssa;

impl<'a> Lower<'a> {
    pub fn new(ssa: &'a Ssa, facts: &'a Facts, geometry: Geometry, fault: Option<Fault>) -> Lower<'a> {
        Lower {
            ssa,
            facts,
            geometry,
            mode: ssa.kernel.floats,
            entry: Vec::new(),
            group_head: Vec::new(),
            block_head: Vec::new(),
            code: Vec::new(),
            generals: 0,
            vectors: 0,
            labels: 1,
            pool: Pool::default(),
            tables: HashMap::new(),
            locs: Places::new(ssa.values.len()),
            splats: HashMap::new(),
            splatted: Vec::new(),
            leaves: HashMap::new(),
            vector_leaves: HashMap::new(),
            lengths: HashMap::new(),
            word_counts: HashMap::new(),
            mask: None,
            scopes: Vec::new(),
            arm: None,
            nobody: Label(0),
            loops: Vec::new(),
            bail: Label(0),
            block: None,
            flat_end: None,
            row: None,
            group: None,
            scratch: 0,
            slots: Slots::default(),
            rewritten: Vec::new(),
            in_block_head: false,
            in_cold: false,
            is_whole: false,
            decided: None,
            prefix: None,
            refused: None,
            fault,
        }
    }

    /// The function of one phase.
    pub fn function(&mut self, items: &[Item], is_first: bool) {
        if self.geometry.flat {
            self.flat_function();
        } else {
            self.group_function(items, is_first);
        }
        let entry = std::mem::take(&mut self.entry);
        self.code.splice(0..0, entry);
        self.push(Inst::Label(self.bail));
        self.push(Inst::Return);
    }

    /// Workgroups that are one range of invocations for each of their rows: a loop over blocks of it, inside of one over rows.
    fn flat_function(&mut self) {
        let [size, rows @ ..] = self.geometry.size;
        let (start, end) = (self.new_g(), self.new_g());
        for (d, offset) in [(start, offset_of!(Context, first_group)), (end, offset_of!(Context, end_group))] {
            let group = self.load_g(GLoadKind::W32, Mem::context(offset));
            self.push(Inst::GMul { width: Width::W64, d, a: group, b: GSrc::Imm(size as i32) });
        }
        let one_row = self.geometry.row_count() == 1;
        let block = if one_row { start } else { self.new_g() };
        self.row = (!one_row).then(|| [self.new_g(), self.new_g()]);
        (self.block, self.flat_end) = (Some(block), Some(end));
        // What is left of a range that is not whole blocks is done one vector at a time, so that no other block has a mask.
        let whole = self.geometry.parts;
        self.is_whole = whole > 1 && self.geometry.has_tail();
        let (head, body) = self.block_code();
        let rest = std::mem::replace(&mut self.is_whole, false).then(|| {
            self.forget_blocks();
            self.set_parts(1);
            let rest = self.block_code();
            self.set_parts(whole);
            rest
        });
        // The loops over z and y, from the outside.
        let around = self.row.map(|[y, z]| [(z, rows[1]), (y, rows[0])]);
        let heads: Vec<(G, u32, Label)> =
            around.into_iter().flatten().map(|(row, count)| (row, count, self.new_label())).collect();
        let lanes = self.geometry.lanes() as i32;
        let last = rest.is_some().then(|| self.g2(G2::sub, Width::W64, end, GSrc::Imm(lanes)));
        for (row, _, again) in &heads {
            self.push(Inst::GImm { d: *row, imm: 0 });
            self.push(Inst::LoopBegin);
            self.push(Inst::Label(*again));
        }
        if !one_row {
            self.push(Inst::GMov { width: Width::W64, d: block, a: start });
        }
        match (last, rest) {
            (Some(last), Some((rest_head, rest))) => {
                let (few, done) = (self.new_label(), self.new_label());
                // With its sign: a range may be shorter than a block.
                self.push(Inst::JumpIf { cond: Cond::Greater, width: Width::W64, a: block, b: last.into(), to: few });
                self.flat_blocks(block, lanes, (head, body), Cond::LessEqual, last);
                self.push(Inst::Label(few));
                self.push(Inst::JumpIf { cond: Cond::AboveEqual, width: Width::W64, a: block, b: end.into(), to: done });
                self.flat_blocks(block, WIDTH as i32, (rest_head, rest), Cond::Below, end);
                self.push(Inst::Label(done));
            }
            (_, _) => self.flat_blocks(block, lanes, (head, body), Cond::Below, end),
        }
        for (row, count, again) in heads.into_iter().rev() {
            self.push(Inst::G2 { op: G2::add, width: Width::W32, d: row, a: row, b: GSrc::Imm(1) });
            let b = GSrc::Imm(count as i32);
            self.push(Inst::JumpIf { cond: Cond::Below, width: Width::W32, a: row, b, to: again });
            self.push(Inst::LoopEnd);
        }
        // Leaves of workgroups do not change in between.
        let group_head = std::mem::take(&mut self.group_head);
        self.entry.extend(group_head);
    }

    /// A loop over blocks of so many lanes, again as long as the next one's first lane compares with a limit like this.
    fn flat_blocks(&mut self, block: G, lanes: i32, (head, body): (Vec<Inst>, Vec<Inst>), cond: Cond, limit: G) {
        let again = self.new_label();
        self.push(Inst::LoopBegin);
        self.push(Inst::Label(again));
        self.code.extend(head);
        self.code.extend(body);
        self.push(Inst::G2 { op: G2::add, width: Width::W64, d: block, a: block, b: GSrc::Imm(lanes) });
        self.push(Inst::JumpIf { cond, width: Width::W64, a: block, b: limit.into(), to: again });
        self.push(Inst::LoopEnd);
    }

    /// The code of a block, and what stands at its beginning.
    fn block_code(&mut self) -> (Vec<Inst>, Vec<Inst>) {
        let before = std::mem::take(&mut self.code);
        self.whole_block();
        let body = std::mem::replace(&mut self.code, before);
        (std::mem::take(&mut self.block_head), body)
    }

    /// All of the program for one block.
    fn whole_block(&mut self) {
        let next = self.new_label();
        self.enter_block(true, next);
        let root = self.ssa.root;
        self.region(root);
        self.push(Inst::Label(next));
        self.scopes.clear();
        self.mask = None;
    }

    fn group_function(&mut self, items: &[Item], is_first: bool) {
        let group = self.new_g();
        self.group = Some(group);
        self.push(Inst::GLoad { kind: GLoadKind::W32, d: group, from: Mem::context(offset_of!(Context, first_group)) });
        let again = self.new_label();
        self.push(Inst::LoopBegin);
        self.push(Inst::Label(again));
        let ranges = shared::to_clear(self.ssa, self.facts, items);
        self.clear_shared(&ranges);
        let before = std::mem::take(&mut self.code);
        if self.slots.block_bytes > 0 || self.is_planned() {
            self.items(items, is_first);
        } else {
            self.single_segment();
        }
        let body = std::mem::replace(&mut self.code, before);
        let head = std::mem::take(&mut self.group_head);
        self.code.extend(head);
        self.code.extend(body);
        self.push(Inst::G2 { op: G2::add, width: Width::W32, d: group, a: group, b: GSrc::Imm(1) });
        let b = GSrc::Mem(Mem { base: Base::Context, index: None, disp: offset_of!(Context, end_group) as i32 });
        self.push(Inst::JumpIf { cond: Cond::Below, width: Width::W32, a: group, b, to: again });
        self.push(Inst::LoopEnd);
    }

    /// A program without barriers, or of a single block: a loop over blocks of all of it.
    fn single_segment(&mut self) {
        let block = (self.geometry.blocks() > 1).then(|| self.new_g());
        self.block = block;
        let (head, body) = self.block_code();
        let Some(block) = block else {
            self.code.extend(head);
            self.code.extend(body);
            return;
        };
        let again = self.new_label();
        self.push(Inst::GImm { d: block, imm: 0 });
        self.push(Inst::LoopBegin);
        self.push(Inst::Label(again));
        self.code.extend(head);
        self.code.extend(body);
        let (lanes, total) = (self.geometry.lanes() as i32, self.geometry.total() as i32);
        self.push(Inst::G2 { op: G2::add, width: Width::W32, d: block, a: block, b: GSrc::Imm(lanes) });
        self.push(Inst::JumpIf { cond: Cond::Below, width: Width::W32, a: block, b: GSrc::Imm(total), to: again });
        self.push(Inst::LoopEnd);
    }
}
