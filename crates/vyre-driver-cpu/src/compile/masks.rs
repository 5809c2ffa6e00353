//! Masks: which lanes are active, as vectors, as bits and as conditions of jumps.

use super::lower::{Lower, is_wide};
use super::places::{Mask, Parts};
use crate::machine::lir::{Cond, G2, GShift, GSrc, Inst, Label, V2I, V3, V3I, Widen, Width};
use crate::machine::reg::{G, V};
use smallvec::smallvec;
use vyre_spec::Scalar;

impl Lower<'_> {
    /// A mask for elements of a type: as it is for 32 bits, widened for 64.
    pub fn masks_for(&mut self, ty: Scalar, mask: &Parts) -> Parts {
        if !is_wide(ty) {
            return mask.clone();
        }
        mask.iter().copied().collect::<Parts>().into_iter().flat_map(|part| self.widen_mask(part)).collect()
    }

    pub fn widen_mask(&mut self, mask: V) -> [V; 2] {
        let (low, upper, high) = (self.new_v(), self.new_v(), self.new_v());
        self.push(Inst::Widen { op: Widen::vpmovsxdq, d: low, a: mask.into() });
        self.push(Inst::High { d: upper, a: mask });
        self.push(Inst::Widen { op: Widen::vpmovsxdq, d: high, a: upper.into() });
        [low, high]
    }

    /// The low 32 bits of the elements of two vectors of 64-bit elements, as one.
    pub fn narrow_pair(&mut self, low: V, high: V) -> V {
        let (mixed, d) = (self.new_v(), self.new_v());
        self.push(Inst::V3I { op: V3I::vshufps, d: mixed, a: low, b: high.into(), imm: 0x88 });
        self.push(Inst::V2I { op: V2I::vpermq, d, a: mixed.into(), imm: 0xD8 });
        d
    }

    /// Jumps if no lane of the mask is active.
    pub fn jump_if_none(&mut self, mask: &Parts, to: Label) {
        let bits = self.any_bits(mask);
        self.push(Inst::JumpIf { cond: Cond::Equal, width: Width::W32, a: bits, b: GSrc::Imm(0), to });
    }

    /// Jumps if a lane of the mask is active.
    pub fn jump_if_some(&mut self, mask: &Parts, to: Label) {
        let bits = self.any_bits(mask);
        self.push(Inst::JumpIf { cond: Cond::NotEqual, width: Width::W32, a: bits, b: GSrc::Imm(0), to });
    }

    /// A number that is zero iff no lane is active.
    fn any_bits(&mut self, mask: &Parts) -> G {
        let mut any = mask[0];
        for part in &mask[1..] {
            any = self.v3(V3::vpor, any, *part);
        }
        let bits = self.new_g();
        self.push(Inst::Signs { d: bits, a: any });
        bits
    }

    /// Jumps if a lane of the mask is not active.
    pub fn jump_unless_all(&mut self, mask: &Parts, to: Label) {
        let mut all = mask[0];
        for part in &mask[1..] {
            all = self.v3(V3::vpand, all, *part);
        }
        let bits = self.new_g();
        self.push(Inst::Signs { d: bits, a: all });
        self.push(Inst::JumpIf { cond: Cond::NotEqual, width: Width::W32, a: bits, b: GSrc::Imm(0xFF), to });
    }

    /// One bit per lane that is active.
    pub fn mask_bits(&mut self, mask: &Mask) -> G {
        let Some(mask) = mask else { return self.imm(u64::MAX >> (64 - self.geometry.lanes())) };
        let mut all: Option<G> = None;
        for (part, v) in mask.clone().into_iter().enumerate() {
            let bits = self.new_g();
            self.push(Inst::Signs { d: bits, a: v });
            all = Some(match all {
                None => bits,
                Some(all) => {
                    let shifted = self.new_g();
                    let op = GShift::Left;
                    self.push(Inst::GShift { op, width: Width::W64, d: shifted, a: bits, imm: 8 * part as u8 });
                    self.g2(G2::or, Width::W64, all, shifted)
                }
            });
        }
        all.unwrap_or_else(|| self.imm(0))
    }

    /// The active lanes as vectors.
    pub fn mask_vectors(&mut self) -> Parts {
        match self.mask.clone() {
            Some(mask) => mask,
            None => {
                let ones = self.ones();
                smallvec![ones; self.parts()]
            }
        }
    }
}
