//! Bytes and halves of words, as programs take them: `w[x >> 2] >> (x & 3) * 8 & 255`.
//!
//! Memory is little-endian, so that this is byte `x` of the buffer. Where `x` grows by one from lane to lane, the lanes' bytes lie side by
//! side, and are read as such: the words are not gathered. Only buffers that nobody writes are read this way, since the byte is read where
//! it is cut out, and the word would have been read before.

use super::leaves::MachineLeaf;
use super::lower::Lower;
use super::places::{Loc, Parts};
use super::shape::{Shape, Shapes};
use crate::machine::lir::{Cond, Inst, LoadKind, Mem, Shift, V3, Width};
use smallvec::smallvec;
use std::collections::{HashMap, HashSet};
use vyre_foundation::ir::{Access, BinaryOp, DataType};
use vyre_foundation::kernel::{AccessId, BufferId};
use vyre_foundation::ssa::{Def, InstKind, Op, RegionId, Ssa, Value};
use vyre_spec::Scalar;

/// A byte or a half of a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Piece {
    access: AccessId,
    buffer: BufferId,
    /// Its number among all of the buffer.
    index: Value,
    /// How many there are in a word: 1 for halves, 2 for bytes, the power of two of it.
    log: u8,
}

/// The pieces that a form reads.
#[derive(Default)]
pub(crate) struct Pieces {
    found: HashMap<Value, Piece>,
    /// Words, and words that were shifted, that nobody needs.
    skipped: HashSet<Value>,
}

impl Pieces {
    pub fn of(ssa: &Ssa, shapes: &Shapes, uses: &[u32]) -> Pieces {
        let mut places = Places { ssa, epochs: vec![0; ssa.values.len()], epoch: 0 };
        if ssa.kernel.uses.barrier || ssa.kernel.uses.grid_sync {
            places.region(ssa.root);
        }
        let mut pieces = Pieces::default();
        // By word and shifted word: how many of its uses are pieces.
        let mut taken: HashMap<Value, u32> = HashMap::new();
        let mut shifted_words = Vec::new();
        ssa.for_each_inst(ssa.root, &mut |_, inst| {
            let InstKind::Op(op) = inst.kind else { return };
            if let Some((piece, word, shifted)) = places.piece(&op, inst.results[0])
                && shapes.shape(piece.index) == Shape::Linear(1)
            {
                pieces.found.insert(inst.results[0], piece);
                *taken.entry(shifted).or_default() += 1;
                shifted_words.push((word, shifted));
            }
        });
        shifted_words.sort_unstable();
        shifted_words.dedup();
        for (word, shifted) in shifted_words {
            if taken.get(&shifted) == Some(&uses[shifted.index()]) {
                pieces.skipped.insert(shifted);
                *taken.entry(word).or_default() += 1;
                if taken.get(&word) == Some(&uses[word.index()]) {
                    pieces.skipped.insert(word);
                }
            }
        }
        pieces
    }

    pub fn get(&self, value: Value) -> Option<Piece> {
        self.found.get(&value).copied()
    }

    /// Whether a value is not computed, because only pieces of it are wanted.
    pub fn skips(&self, value: Value) -> bool {
        self.skipped.contains(&value)
    }
}

/// Between which barriers values are computed: code for one stretch finds nothing of another in its registers.
struct Places<'a> {
    ssa: &'a Ssa,
    epochs: Vec<u32>,
    epoch: u32,
}

impl Places<'_> {
    fn region(&mut self, region: RegionId) {
        let ssa = self.ssa;
        self.epoch += 1;
        for id in &ssa.region(region).insts {
            let inst = ssa.inst(*id);
            inst.results.iter().for_each(|result| self.epochs[result.index()] = self.epoch);
            let before = self.epoch;
            inst.kind.regions().for_each(|inner| self.region(inner));
            if self.epoch != before || matches!(inst.kind, InstKind::Barrier | InstKind::GridSync) {
                self.epoch += 1;
            }
        }
    }

    /// The op that a value is the result of, if it is computed where another is.
    fn op_beside(&self, value: Value, other: Value) -> Option<Op> {
        let beside = self.epochs[value.index()] == self.epochs[other.index()];
        self.ssa.op(value).filter(|_| beside).copied()
    }

    /// What a value is with a number on the right, if it is an op of this kind.
    fn with_number(&self, value: Value, beside: Value, wanted: BinaryOp) -> Option<(Value, u64)> {
        match self.op_beside(value, beside)? {
            Op::Binary { op, ty: Scalar::U32, left, right } if op == wanted => Some((left, self.ssa.literal(right)?)),
            Op::Unary { .. }
            | Op::Binary { .. }
            | Op::Ternary { .. }
            | Op::Cast { .. }
            | Op::Bitcast { .. }
            | Op::Vector { .. }
            | Op::Extract { .. } => None,
        }
    }

    /// The piece that an op cuts out, the word, and the word shifted.
    fn piece(&self, op: &Op, result: Value) -> Option<(Piece, Value, Value)> {
        let ssa = self.ssa;
        let Op::Binary { op: BinaryOp::BitAnd, ty: Scalar::U32, left: shifted, right: mask } = *op else { return None };
        let log = match ssa.literal(mask)? {
            0xFF => 2,
            0xFFFF => 1,
            _ => return None,
        };
        let Op::Binary { op: BinaryOp::Shr, ty: Scalar::U32, left: word, right: amount } = self.op_beside(shifted, result)?
        else {
            return None;
        };
        let bits = 32 >> log;
        let low = match (self.with_number(amount, result, BinaryOp::Mul), self.with_number(amount, result, BinaryOp::Shl)) {
            (Some((low, times)), _) if times == bits => low,
            (_, Some((low, by))) if 1 << by.min(31) == bits => low,
            (_, _) => return None,
        };
        let (index, ones) = self.with_number(low, result, BinaryOp::BitAnd)?;
        let Def::Result(load, _) = ssa.value(word).def else { return None };
        let InstKind::Load { access, buffer, index: place } = ssa.inst(load).kind else { return None };
        let declared = ssa.kernel.buffer(buffer);
        let (whole, by) = self.with_number(place, result, BinaryOp::Shr)?;
        let fits = ones == (1 << log) - 1
            && whole == index
            && by == u64::from(log)
            && declared.element == DataType::U32
            && matches!(declared.access, Access::Read | Access::Uniform)
            && self.epochs[word.index()] == self.epochs[result.index()];
        fits.then_some((Piece { access, buffer, index, log }, word, shifted))
    }
}

impl Lower<'_> {
    /// Pieces that lie side by side: one check for all of them, and the words of each where that fails.
    pub fn load_pieces(&mut self, result: Value, piece: Piece) {
        let Piece { access, buffer, index, log } = piece;
        let checked = !(self.facts.bounds.is_proven(access) && self.mask.is_none());
        let base = self.g(index);
        let parts: Parts = (0..self.parts()).map(|_| self.new_v()).collect();
        let (slow, done) = (self.new_label(), self.new_label());
        if checked {
            let limit = self.machine_leaf(MachineLeaf::PieceLimit(buffer, self.geometry.lanes(), log));
            let (cond, width) = (Cond::AboveEqual, Width::W64);
            self.push(Inst::JumpIf { cond, width, a: base, b: limit.into(), to: slow });
        }
        let address = self.machine_leaf(MachineLeaf::Address(buffer));
        let (kind, bytes) = if log == 2 { (LoadKind::U8, 1) } else { (LoadKind::U16, 2) };
        let at = Mem::indexed(address, base, bytes);
        for (n, d) in parts.iter().enumerate() {
            self.push(Inst::Load { kind, d: *d, from: at.plus(8 * usize::from(bytes) * n) });
        }
        if checked {
            self.push(Inst::ColdBegin);
            self.push(Inst::Label(slow));
            let around = std::mem::replace(&mut self.in_cold, true);
            let indices = self.vectors(index, 0);
            let places: Parts = indices.iter().map(|v| self.shifted(Shift::vpsrld, *v, log)).collect();
            let words = self.gather_checked(Scalar::U32, buffer, &places, u32::MAX >> log);
            for ((d, word), index) in parts.iter().zip(words).zip(indices) {
                let ones = self.constant32((1 << log) - 1);
                let low = self.v3(V3::vpand, index, ones);
                let by = self.shifted(Shift::vpslld, low, 5 - log);
                let shifted = self.v3(V3::vpsrlvd, word, by);
                let mask = self.constant32(if log == 2 { 0xFF } else { 0xFFFF });
                self.push(Inst::V3 { op: V3::vpand, d: *d, a: shifted, b: mask });
            }
            self.in_cold = around;
            self.push(Inst::Jump(done));
            self.push(Inst::ColdEnd);
            self.push(Inst::Label(done));
        }
        self.locs.set(result, smallvec![Loc::Parts(parts)]);
    }

    fn shifted(&mut self, op: Shift, a: crate::machine::reg::V, imm: u8) -> crate::machine::reg::V {
        let d = self.new_v();
        self.push(Inst::Shift { op, d, a, imm });
        d
    }
}
