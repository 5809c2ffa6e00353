//! Subgroups, in registers.
//!
//! The lanes of a subgroup are next to each other: half a vector, a vector or several. What all lanes get is folded by halves: vectors with
//! each other, then a vector with itself, its elements exchanged, so that the result is everywhere at once. A scan takes in what is one,
//! two, four lanes before, and then what the vectors before come to. Values move between lanes by their numbers, one permutation per vector
//! that they may come from. Elements of 64 bits are moved as words.
//!
//! Lanes that are not there bring the identity, or zero.

use super::geometry::WIDTH;
use super::lower::{Lower, is_wide};
use super::places::{Loc, Mask, Parts};
use crate::faults::Fault;
use crate::machine::lir::{Inst, Shift, Src, V2I, V3, V3I};
use crate::machine::reg::V;
use smallvec::smallvec;
use vyre_foundation::ir::{BinaryOp, SubgroupOp};
use vyre_foundation::ssa::Value;
use vyre_scalar::identity;
use vyre_spec::{ReduceOp, Scalar, ShuffleFrom, SubgroupShape, Vote};

impl Lower<'_> {
    pub fn subgroup(&mut self, result: Value, op: SubgroupOp, ty: Scalar, operands: &[Value]) {
        let values = self.vectors(operands[0], 0);
        let parts = match op.shape() {
            SubgroupShape::Vote(vote) => self.vote(vote, values),
            SubgroupShape::Shuffle(from) => self.shuffle(from, ty, values, operands[1]),
            SubgroupShape::Reduce(with) => {
                let values = self.or_identity(with, ty, values);
                self.fold(with.binary(), ty, &values)
            }
            SubgroupShape::Inclusive(with) => self.scan(with, ty, values, true),
            SubgroupShape::Exclusive(with) => self.scan(with, ty, values, false),
        };
        self.set(result, Loc::Parts(parts));
    }

    /// The lanes that take part.
    fn present(&self) -> Mask {
        if self.planted(Fault::SubgroupTakesAll) { None } else { self.mask.clone() }
    }

    fn subgroup_size(&self) -> u32 {
        self.ssa.kernel.subgroup.unwrap_or(1)
    }

    /// How many elements of a type a vector has, of one subgroup, and how many vectors a subgroup has.
    fn lanes_and_vectors(&self, ty: Scalar) -> (u32, usize) {
        let elements = if is_wide(ty) { WIDTH / 2 } else { WIDTH };
        let size = self.subgroup_size();
        let lanes = if self.planted(Fault::SubgroupsShareVectors) { elements } else { size.min(elements) };
        (lanes, size.div_ceil(elements) as usize)
    }

    /// Values of those who are there, and what changes nothing for the others.
    fn or_identity(&mut self, with: ReduceOp, ty: Scalar, values: Parts) -> Parts {
        match self.present() {
            None => values,
            Some(mask) => self.or_bits(ty, values, &mask, identity(with, ty)),
        }
    }

    /// Values where the mask is set, and the same number everywhere else.
    fn or_bits(&mut self, ty: Scalar, values: Parts, mask: &Parts, bits: u64) -> Parts {
        let masks = self.masks_for(ty, mask);
        let other = self.constant_v(ty, bits);
        values.into_iter().zip(masks).map(|(v, mask)| self.blend(other, v, mask)).collect()
    }

    /// What the op makes of all lanes, for each of them.
    fn fold(&mut self, op: BinaryOp, ty: Scalar, values: &Parts) -> Parts {
        let (lanes, vectors) = self.lanes_and_vectors(ty);
        let mut all = Parts::new();
        for group in values.chunks(vectors) {
            let mut sum = group[0];
            for v in &group[1..] {
                sum = self.binary_v(op, ty, sum, Src::Reg(*v));
            }
            let mut distance = lanes / 2;
            while distance > 0 {
                let other = self.exchanged(ty, sum, distance);
                sum = self.binary_v(op, ty, sum, Src::Reg(other));
                distance /= 2;
            }
            all.extend(std::iter::repeat_n(sum, group.len()));
        }
        all
    }

    /// Every element and the one that is this far from it, exchanged.
    fn exchanged(&mut self, ty: Scalar, v: V, distance: u32) -> V {
        let words = if is_wide(ty) { 2 * distance } else { distance };
        let (op, imm) = match words {
            4 => (V2I::vpermq, 0x4E),
            2 => (V2I::vpshufd, 0x4E),
            _ => (V2I::vpshufd, 0xB1),
        };
        let d = self.new_v();
        self.push(Inst::V2I { op, d, a: Src::Reg(v), imm });
        d
    }

    /// What the op makes of the lanes up to each one, with it or without it.
    fn scan(&mut self, with: ReduceOp, ty: Scalar, values: Parts, inclusive: bool) -> Parts {
        let values = self.or_identity(with, ty, values);
        let (op, (lanes, vectors)) = (with.binary(), self.lanes_and_vectors(ty));
        let nothing = self.constant_v(ty, identity(with, ty));
        let mut all = Parts::new();
        for group in values.chunks(vectors) {
            // In every element: what the vectors before come to.
            let mut carry: Option<V> = None;
            for v in group {
                let (mut sum, mut distance) = (*v, 1);
                while distance < lanes {
                    let before = self.before(ty, sum, distance, nothing);
                    sum = self.binary_v(op, ty, before, Src::Reg(sum));
                    distance *= 2;
                }
                if let Some(carry) = carry {
                    sum = self.binary_v(op, ty, carry, Src::Reg(sum));
                }
                all.push(if inclusive { sum } else { self.before(ty, sum, 1, carry.unwrap_or(nothing)) });
                if group.len() > 1 {
                    carry = Some(self.permuted(sum, |word| if is_wide(ty) { 6 + word % 2 } else { 7 }));
                }
            }
        }
        all
    }

    /// Of every element the one so many lanes before it; the first ones of a subgroup are taken from `first`.
    fn before(&mut self, ty: Scalar, v: V, distance: u32, first: V) -> V {
        let (lanes, _) = self.lanes_and_vectors(ty);
        let words = if is_wide(ty) { 2 } else { 1 };
        let a = self.permuted(v, |word| word.wrapping_sub(words * distance) % WIDTH);
        let imm = (0..WIDTH).filter(|word| word / words % lanes < distance).fold(0, |bits, word| bits | 1 << word);
        let d = self.new_v();
        self.push(Inst::V3I { op: V3I::vpblendd, d, a, b: Src::Reg(first), imm });
        d
    }

    /// The words of a vector in another order, which is known.
    fn permuted(&mut self, v: V, from: impl Fn(u32) -> u32) -> V {
        let order = Src::Mem(self.pool.place(std::array::from_fn(|word| from(word as u32))));
        let order = self.in_reg(order);
        self.v3(V3::vpermd, order, v)
    }

    fn vote(&mut self, vote: Vote, values: Parts) -> Parts {
        let present = self.present();
        let absent = if vote == Vote::All { u64::from(u32::MAX) } else { 0 };
        let mut values = match &present {
            None => values,
            Some(mask) => self.or_bits(Scalar::U32, values, mask, absent),
        };
        if vote == Vote::Ballot {
            for (part, v) in values.iter_mut().enumerate() {
                let bits = self.by_lane(part, |lane| 1 << lane);
                *v = self.v3(V3::vpand, *v, bits);
            }
        }
        let op = if vote == Vote::All { BinaryOp::BitAnd } else { BinaryOp::BitOr };
        self.fold(op, Scalar::U32, &values)
    }

    /// A number for each lane of a vector of 32-bit elements, from its place in the subgroup.
    fn by_lane(&mut self, part: usize, number: impl Fn(u32) -> u32) -> Src {
        let size = self.subgroup_size();
        Src::Mem(self.pool.place(std::array::from_fn(|n| number((part as u32 * WIDTH + n as u32) % size))))
    }

    /// Values of other lanes: 0 of one that is not there, the own value for one outside of the subgroup.
    fn shuffle(&mut self, from: ShuffleFrom, ty: Scalar, own: Parts, operand: Value) -> Parts {
        let size = self.subgroup_size();
        let operands = self.vectors(operand, 0);
        let is_lane = self.facts.ranges.of_value(operand).high < size;
        let is_inside =
            matches!(from, ShuffleFrom::Named | ShuffleFrom::Xor) && is_lane || self.planted(Fault::ShuffleOutsideWraps);
        let (mut sources, mut inside) = (Parts::new(), Parts::new());
        for (part, operand) in operands.into_iter().enumerate() {
            let lane = self.by_lane(part, |lane| lane);
            let (source, most) = match from {
                ShuffleFrom::Named => (operand, self.by_lane(part, |_| size - 1)),
                ShuffleFrom::Xor => (self.v3(V3::vpxor, operand, lane), self.by_lane(part, |_| size - 1)),
                ShuffleFrom::Up => {
                    let lane = self.in_reg(lane);
                    (self.v3(V3::vpsubd, lane, operand), Src::Reg(lane))
                }
                ShuffleFrom::Down => (self.v3(V3::vpaddd, operand, lane), self.by_lane(part, |lane| size - 1 - lane)),
            };
            sources.push(source);
            if !is_inside {
                let least = self.v3(V3::vpminud, operand, most);
                inside.push(self.v3(V3::vpcmpeqd, least, operand));
            }
        }
        let theirs = match self.present() {
            None => own.clone(),
            Some(mask) => self.or_bits(ty, own.clone(), &mask, 0),
        };
        let picked = if is_wide(ty) {
            let [low, high] = self.words_of(&theirs).map(|words| self.pick(&words, &sources));
            low.into_iter().zip(high).flat_map(|(low, high)| self.of_words(low, high)).collect()
        } else {
            self.pick(&theirs, &sources)
        };
        if is_inside {
            return picked;
        }
        let inside = self.masks_for(ty, &inside);
        (0..own.len()).map(|n| self.blend(own[n], picked[n], inside[n])).collect()
    }

    /// For each lane the word of the lane that it names, of those of its subgroup.
    fn pick(&mut self, words: &Parts, sources: &Parts) -> Parts {
        let size = self.subgroup_size();
        let (_, vectors) = self.lanes_and_vectors(Scalar::U32);
        let mut all = Parts::new();
        for (part, source) in sources.iter().enumerate() {
            let source = if size < WIDTH {
                // Several subgroups in a vector: its lanes begin where the subgroup does.
                let starts = self.pool.place(std::array::from_fn(|n| n as u32 / size * size));
                self.v3(V3::vpaddd, *source, Src::Mem(starts))
            } else {
                *source
            };
            let group = part / vectors * vectors;
            let mut found: Parts = smallvec![];
            for v in &words[group..group + vectors] {
                found.push(self.v3(V3::vpermd, source, *v));
            }
            // The bits above the lowest three say which vector.
            let mut bit = WIDTH.trailing_zeros() as u8;
            while found.len() > 1 {
                let upper = self.shift_imm(Shift::vpslld, source, 31 - bit);
                found = found.chunks(2).map(|pair| self.blend(pair[0], pair[1], upper)).collect();
                bit += 1;
            }
            all.push(found[0]);
        }
        all
    }

    /// The low and the high words of 64-bit elements.
    fn words_of(&mut self, values: &Parts) -> [Parts; 2] {
        let low = values.chunks(2).map(|pair| self.narrow_pair(pair[0], pair[1])).collect();
        let high = values
            .chunks(2)
            .map(|pair| {
                let (mixed, d) = (self.new_v(), self.new_v());
                self.push(Inst::V3I { op: V3I::vshufps, d: mixed, a: pair[0], b: Src::Reg(pair[1]), imm: 0xDD });
                self.push(Inst::V2I { op: V2I::vpermq, d, a: Src::Reg(mixed), imm: 0xD8 });
                d
            })
            .collect();
        [low, high]
    }

    /// 64-bit elements of their low and high words.
    fn of_words(&mut self, low: V, high: V) -> [V; 2] {
        let [low, high] = [low, high].map(|v| {
            let d = self.new_v();
            self.push(Inst::V2I { op: V2I::vpermq, d, a: Src::Reg(v), imm: 0xD8 });
            d
        });
        [V3::vpunpckldq, V3::vpunpckhdq].map(|op| self.v3(op, low, high))
    }
}
