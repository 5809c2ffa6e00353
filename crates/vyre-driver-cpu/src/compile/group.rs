//! The code of a workgroup: its control, and segments as loops over blocks of lanes.
//!
//! Where a workgroup is a single block, barriers are nothing, and all of it is one segment.

use super::active::{Blocks, Extent};
use super::control::End;
use super::fuse::{Order, accesses};
use super::geometry::WIDTH;
use super::leaves::MachineLeaf;
use super::lower::{Lower, Scope};
use super::places::{Loc, Parts};
use super::segments::{Item, Segment, ssa_retires};
use crate::faults::Fault;
use crate::machine::lir::{Cond, G2, GSrc, Inst, Label, LoadKind, Mem, Src, StoreKind, V3, Width};
use crate::machine::reg::G;
use std::ops::Range;
use vyre_foundation::ssa::{InstId, InstKind, Leaf};
use vyre_spec::Scalar;

/// A loop of the workgroup.
struct GroupLoop {
    exit: Label,
    latch: Label,
}

impl Lower<'_> {
    /// The code of a phase, over blocks.
    pub fn items(&mut self, items: &[Item], is_first: bool) {
        let mut loops = Vec::new();
        let end = self.new_label();
        // Between segments there is no block: what is needed is made where it is needed.
        self.in_block_head = true;
        self.item_list(items, &mut loops, end, is_first);
        self.in_block_head = false;
        self.push(Inst::Label(end));
    }

    fn item_list(&mut self, items: &[Item], loops: &mut Vec<GroupLoop>, end: Label, mut is_first: bool) {
        for item in items {
            if self.refused.is_some() {
                return;
            }
            match item {
                Item::Segment(segment) => self.segment(segment, is_first, end, None),
                Item::If { cond, then, otherwise } => {
                    let (other, done) = (self.new_label(), self.new_label());
                    let cond = self.g(*cond);
                    self.push(Inst::JumpIf { cond: Cond::Equal, width: Width::W32, a: cond, b: GSrc::Imm(0), to: other });
                    self.item_list(then, loops, end, false);
                    self.push(Inst::Jump(done));
                    self.push(Inst::Label(other));
                    self.item_list(otherwise, loops, end, false);
                    self.push(Inst::Label(done));
                }
                Item::Loop { inst, body } => self.group_loop(*inst, body, loops, end),
                Item::Break => {
                    if let Some(around) = loops.last() {
                        let to = around.exit;
                        self.push(Inst::Jump(to));
                    }
                }
                Item::Continue => {
                    if let Some(around) = loops.last() {
                        let to = around.latch;
                        self.push(Inst::Jump(to));
                    }
                }
                Item::Retire(tag) => {
                    self.segment(&Segment::default(), is_first, end, Some(*tag));
                    self.push(Inst::Jump(end));
                }
            }
            is_first = false;
        }
    }

    fn group_loop(&mut self, id: InstId, items: &[Item], loops: &mut Vec<GroupLoop>, end: Label) {
        let ssa = self.ssa;
        let InstKind::Loop { from, to, body, .. } = ssa.inst(id).kind else { return };
        let (head, latch, exit) = (self.new_label(), self.new_label(), self.new_label());
        let counter = self.new_g();
        let start = self.loc(from, 0);
        self.copy_to(Scalar::U32, &Loc::G(counter), &start, &None);
        let limit = self.g_src(to);
        let args = &ssa.region(body).args;
        self.set(args[0], Loc::G(counter));
        self.push(Inst::JumpIf { cond: Cond::AboveEqual, width: Width::W32, a: counter, b: limit, to: exit });
        self.push(Inst::LoopBegin);
        self.push(Inst::Label(head));
        self.stop_if_asked();
        loops.push(GroupLoop { exit, latch });
        self.item_list(items, loops, end, false);
        loops.pop();
        self.push(Inst::Label(latch));
        self.push(Inst::G2 { op: G2::add, width: Width::W32, d: counter, a: counter, b: GSrc::Imm(1) });
        self.push(Inst::JumpIf { cond: Cond::Below, width: Width::W32, a: counter, b: limit, to: head });
        self.push(Inst::LoopEnd);
        self.push(Inst::Label(exit));
        for (result, arg) in ssa.inst(id).results.iter().zip(&args[1..]) {
            if self.slots.kept.contains(arg) {
                if let Some(locs) = self.locs.get(*arg).cloned() {
                    self.locs.set(*result, locs);
                }
                self.slots.kept.insert(*result);
            }
        }
    }

    /// A segment: a loop over blocks. `retire` ends all lanes, with a trap if it says so.
    fn segment(&mut self, segment: &Segment, is_first: bool, end: Label, retire: Option<Option<u32>>) {
        match self.decided_from(segment).filter(|_| retire.is_none()) {
            None => self.segment_blocks(segment, is_first, end, retire, None),
            Some((from, size)) => {
                let whole = self.geometry.parts;
                let mut ranges = self.ranges(from, size);
                if segment.order == Order::Descending {
                    ranges.reverse();
                }
                for range in ranges {
                    // What is less than a block is a block of fewer vectors.
                    self.set_parts((range.len() as u32 / WIDTH).min(whole));
                    self.slots.known = Some(range.clone());
                    self.segment_blocks(segment, is_first, end, None, Some(range));
                    self.set_parts(whole);
                }
                self.slots.known = None;
            }
        }
        self.register_copies(&segment.copies);
    }

    /// The blocks of a segment, or those that begin in a range.
    fn segment_blocks(
        &mut self,
        segment: &Segment,
        is_first: bool,
        end: Label,
        retire: Option<Option<u32>>,
        range: Option<Range<u32>>,
    ) {
        self.forget_blocks();
        let mut touches = Vec::new();
        segment.insts.iter().for_each(|id| accesses(self.ssa, *id, &mut touches));
        self.rewritten = touches.into_iter().filter(|touch| touch.writes).map(|touch| touch.buffer).collect();
        let several = self.geometry.blocks() > 1;
        let before = std::mem::take(&mut self.code);
        let outer_head = std::mem::take(&mut self.block_head);
        let extent = if retire.is_none() && several { self.extent(segment) } else { Extent::All };
        let before_blocks = std::mem::take(&mut self.code);
        self.forget_blocks();
        self.in_block_head = false;
        let whole = self.geometry.parts;
        let blocks = match (range, self.begin_extent(&extent)) {
            (Some(range), Blocks::Several(_)) if range.len() == self.geometry.lanes() as usize => Blocks::One(range.start),
            (Some(range), Blocks::Several(_)) => Blocks::From(range.start, range.end),
            (_, blocks) => blocks,
        };
        // The block that begins with the workgroup has no register for where it begins.
        let block = (several && blocks != Blocks::One(0)).then(|| self.new_g());
        self.block = block;
        let next = self.new_label();
        let alive_any = (self.slots.alive.is_some() && self.slots.enabled).then(|| self.new_g());
        self.enter_block(is_first, next);
        let mut ended = End::Reached;
        for id in &segment.insts {
            if self.inst(*id) == End::Left {
                ended = End::Left;
                break;
            }
        }
        if let (End::Reached, Some(tag)) = (ended, retire) {
            if let Some(tag) = tag {
                self.trap(tag);
            }
            if let Some(scope) = self.scopes.last() {
                for v in scope.here.clone() {
                    self.push(Inst::Zero { d: v });
                }
            }
        }
        if ended == End::Reached {
            self.slot_copies(&segment.copies);
        }
        self.push(Inst::Label(next));
        self.leave_block(alive_any);
        let body = std::mem::replace(&mut self.code, before);
        let head = std::mem::replace(&mut self.block_head, outer_head);
        // What only moves values that stay where they are has nothing to do for any block, unless later segments find them there.
        let found_later = segment.insts.iter().flat_map(|id| &self.ssa.inst(*id).results).any(|result| self.is_kept(*result));
        let is_idle =
            alive_any.is_none() && !found_later && body.iter().all(|inst| matches!(inst, Inst::Label(_) | Inst::Mark(_)));
        let blocks = if is_idle { Blocks::Nothing } else { blocks };
        self.in_block_head = true;
        self.block = None;
        self.code.extend(before_blocks);
        if let Some(any) = alive_any {
            self.push(Inst::GImm { d: any, imm: 0 });
        }
        match (block, blocks) {
            (_, Blocks::Nothing) => {}
            (None, _) => {
                self.code.extend(head);
                self.code.extend(body);
            }
            (Some(block), Blocks::One(first)) => {
                self.push(Inst::GImm { d: block, imm: u64::from(first) });
                self.code.extend(head);
                self.code.extend(body);
            }
            (Some(block), Blocks::Several(end) | Blocks::From(_, end)) if segment.order == Order::Descending => {
                let (again, lanes) = (self.new_label(), self.geometry.lanes());
                let first = if let Blocks::From(first, _) = blocks { first as i32 } else { 0 };
                self.push(Inst::GImm { d: block, imm: u64::from((end - 1) / lanes * lanes) });
                self.push(Inst::LoopBegin);
                self.push(Inst::Label(again));
                self.code.extend(head);
                self.code.extend(body);
                self.push(Inst::G2 { op: G2::sub, width: Width::W64, d: block, a: block, b: GSrc::Imm(lanes as i32) });
                let (cond, b) = (Cond::GreaterEqual, GSrc::Imm(first));
                self.push(Inst::JumpIf { cond, width: Width::W64, a: block, b, to: again });
                self.push(Inst::LoopEnd);
            }
            (Some(block), Blocks::Several(_) | Blocks::From(..) | Blocks::UpTo(_)) => {
                let (again, over) = (self.new_label(), self.new_label());
                let lanes = self.geometry.lanes() as i32;
                let first = if let Blocks::From(first, _) = blocks { first } else { 0 };
                self.push(Inst::GImm { d: block, imm: u64::from(first) });
                let end = match blocks {
                    Blocks::UpTo(end) => {
                        let (cond, width) = (Cond::AboveEqual, Width::W32);
                        self.push(Inst::JumpIf { cond, width, a: block, b: end.into(), to: over });
                        GSrc::Reg(end)
                    }
                    Blocks::Several(end) | Blocks::From(_, end) => GSrc::Imm(end as i32),
                    Blocks::Nothing | Blocks::One(_) => GSrc::Imm(0),
                };
                self.push(Inst::LoopBegin);
                self.push(Inst::Label(again));
                self.code.extend(head);
                self.code.extend(body);
                self.push(Inst::G2 { op: G2::add, width: Width::W32, d: block, a: block, b: GSrc::Imm(lanes) });
                self.push(Inst::JumpIf { cond: Cond::Below, width: Width::W32, a: block, b: end, to: again });
                self.push(Inst::LoopEnd);
                self.push(Inst::Label(over));
            }
        }
        self.end_extent(whole);
        self.forget_blocks();
        if let Some(any) = alive_any {
            self.push(Inst::JumpIf { cond: Cond::Equal, width: Width::W32, a: any, b: GSrc::Imm(0), to: end });
        }
    }

    /// The mask that a block begins with.
    pub fn enter_block(&mut self, is_first: bool, next: Label) {
        // Where it is known who has something to do, nobody else does anything that can be seen.
        let tail = if self.geometry.has_tail() && !self.is_whole && !self.is_decided() && !self.planted(Fault::TailIsThere) {
            Some(self.tail_mask())
        } else {
            None
        };
        self.mask = tail;
        if !ssa_retires(self.ssa) {
            return;
        }
        let kept = self.slots.alive.filter(|_| self.slots.enabled && !is_first);
        let here: Parts = match kept {
            Some(place) => {
                let at = Mem::at(self.slot_base()).plus(place);
                (0..self.parts()).map(|part| self.load(LoadKind::Full, at.plus(32 * part))).collect()
            }
            None => {
                let mask = self.mask_vectors();
                mask.iter()
                    .map(|v| {
                        let d = self.new_v();
                        self.push(Inst::VMov { d, a: *v });
                        d
                    })
                    .collect()
            }
        };
        if kept.is_some() {
            self.jump_if_none(&here, next);
            self.mask = Some(here.clone());
        }
        self.scopes.push(Scope { here, stay: None });
        self.nobody = next;
    }

    fn leave_block(&mut self, alive_any: Option<G>) {
        if let Some(scope) = self.scopes.pop()
            && let (Some(place), Some(any), true) = (self.slots.alive, alive_any, self.slots.enabled)
        {
            let at = Mem::at(self.slot_base()).plus(place);
            if self.planted(Fault::RetiredReturn) {
                scope.here.iter().for_each(|v| self.push(Inst::Ones { d: *v }));
            }
            for (part, v) in scope.here.iter().enumerate() {
                self.push(Inst::Store { kind: StoreKind::Full, to: at.plus(32 * part), v: *v });
            }
            let bits = self.mask_bits(&Some(scope.here));
            self.push(Inst::G2 { op: G2::or, width: Width::W32, d: any, a: any, b: bits.into() });
        }
        self.mask = None;
    }

    /// The lanes of a block that are somebody.
    fn tail_mask(&mut self) -> Parts {
        let left = self.lanes_left();
        let left = self.splat_g(Width::W32, left);
        (0..self.geometry.parts)
            .map(|part| {
                let numbers = std::array::from_fn(|n| part * WIDTH + n as u32);
                let numbers = Src::Mem(self.pool.place(numbers));
                self.v3(V3::vpcmpgtd, left, numbers)
            })
            .collect()
    }

    /// How many lanes the block has at the most, of those that follow its first.
    fn lanes_left(&mut self) -> G {
        let total = self.geometry.total();
        if self.geometry.flat {
            // The end is below 2³² + 2¹⁰, the difference is cut to what a block has.
            let end = self.flat_end;
            let Some((block, end)) = self.block.zip(end) else { return self.imm(u64::from(total)) };
            let left = self.g2(G2::sub, Width::W64, end, block);
            let lanes = self.imm(u64::from(self.geometry.lanes()));
            let d = self.new_g();
            let (cond, width) = (Cond::Below, Width::W64);
            self.push(Inst::Choose { cond, width, a: left, b: lanes.into(), d, x: left, y: lanes });
            return d;
        }
        let all = self.imm(u64::from(total));
        match self.block {
            None => all,
            Some(block) => self.g2(G2::sub, Width::W32, all, block),
        }
    }

    /// What belongs to one block is not known in the next.
    pub fn forget_blocks(&mut self) {
        self.leaves.retain(|leaf, _| !matches!(leaf, MachineLeaf::LocalBase(_) | MachineLeaf::GlobalBase(_)));
        self.vector_leaves.clear();
        self.splats.retain(|(value, _), _| matches!(self.ssa.leaf(*value), Some(Leaf::Len { .. } | Leaf::Lit { .. })));
        self.splatted.clear();
        self.slots.base = None;
        let slots = &self.slots;
        self.locs.forget_all_but(|value| slots.kept.contains(&value));
    }
}
