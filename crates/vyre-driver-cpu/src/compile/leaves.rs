//! What code finds by itself: addresses and lengths of buffers, where a workgroup and a block begin, the numbers of invocations.
//!
//! Each is found once, at the outermost place where it is known.

use super::context::{Context, buffer_address, buffer_length};
use super::lower::Lower;
use super::places::{Loc, Parts};
use super::shape::Shape;
use crate::faults::Fault;
use crate::machine::lir::{Cond, G2, GLoadKind, GShift, GSrc, Inst, LoadKind, Mem, V3, Width};
use crate::machine::reg::G;
use std::mem::offset_of;
use vyre_foundation::ir::{Axis, Builtin};
use vyre_foundation::kernel::BufferId;

/// Something that every workgroup finds in the same place.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum MachineLeaf {
    Address(BufferId),
    Length(BufferId),
    /// Where contiguous accesses of a block may begin: below this.
    Limit(BufferId, u32),
    /// The same for pieces of words, of which a word has 2 to this power; 64 bits.
    PieceLimit(BufferId, u32, u8),
    Context(usize),
    /// First invocation of the block along an axis, in its workgroup.
    LocalBase(Axis),
    GlobalBase(Axis),
    GroupTimesSize(Axis),
    Slots,
}

/// Something that every block finds as vectors.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum VectorLeaf {
    Builtin(Builtin),
}

impl Lower<'_> {
    pub fn machine_leaf(&mut self, leaf: MachineLeaf) -> G {
        if let Some(known) = self.leaves.get(&leaf) {
            return *known;
        }
        let reg = match leaf {
            MachineLeaf::Address(buffer) => {
                let from = buffer_address(self.ssa, buffer);
                self.at_entry(|lower| lower.load_g(GLoadKind::W64, from))
            }
            MachineLeaf::Length(buffer) => {
                let from = buffer_length(self.ssa, buffer);
                self.at_entry(|lower| match from {
                    Ok(from) => lower.load_g(GLoadKind::W32, from),
                    Err(count) => lower.imm(u64::from(count)),
                })
            }
            MachineLeaf::Limit(buffer, lanes) => {
                let length = self.machine_leaf(MachineLeaf::Length(buffer));
                self.at_entry(|lower| {
                    let (limit, none) = (lower.new_g(), lower.imm(0));
                    let further = lanes as i32 - 1 - i32::from(lower.planted(Fault::LimitOneMore));
                    let less = lower.g2(G2::sub, Width::W32, length, GSrc::Imm(further));
                    let (cond, width, b) = (Cond::Below, Width::W32, GSrc::Imm(lanes as i32));
                    lower.push(Inst::Choose { cond, width, a: length, b, d: limit, x: none, y: less });
                    limit
                })
            }
            MachineLeaf::PieceLimit(buffer, lanes, log) => {
                let length = self.machine_leaf(MachineLeaf::Length(buffer));
                self.at_entry(|lower| {
                    // An index has 32 bits, and none of the block's may wrap.
                    let (pieces, end, limit) = (lower.new_g(), lower.new_g(), lower.new_g());
                    lower.push(Inst::GShift { op: GShift::Left, width: Width::W64, d: pieces, a: length, imm: log });
                    let (all, none) = (lower.imm(1 << 32), lower.imm(0));
                    let (cond, width) = (Cond::Below, Width::W64);
                    lower.push(Inst::Choose { cond, width, a: pieces, b: all.into(), d: end, x: pieces, y: all });
                    let less = lower.g2(G2::sub, Width::W64, end, GSrc::Imm(lanes as i32 - 1));
                    lower.push(Inst::Choose { cond, width, a: end, b: GSrc::Imm(lanes as i32), d: limit, x: none, y: less });
                    limit
                })
            }
            MachineLeaf::Context(offset) => self.at_entry(|lower| lower.load_g(GLoadKind::W32, Mem::context(offset))),
            MachineLeaf::Slots => {
                let from = Mem::context(offset_of!(Context, slots));
                self.at_entry(|lower| lower.load_g(GLoadKind::W64, from))
            }
            MachineLeaf::GroupTimesSize(axis) => {
                let size = self.geometry.size[axis as usize];
                let id = self.group_id(axis);
                self.at_group(|lower| {
                    let d = lower.new_g();
                    lower.push(Inst::GMul { width: Width::W32, d, a: id, b: GSrc::Imm(size as i32) });
                    d
                })
            }
            MachineLeaf::LocalBase(axis) => self.local_base(axis),
            MachineLeaf::GlobalBase(axis) => {
                let local = self.machine_leaf(MachineLeaf::LocalBase(axis));
                if self.geometry.flat && axis == Axis::X {
                    local
                } else {
                    let group = self.machine_leaf(MachineLeaf::GroupTimesSize(axis));
                    self.at_block(|lower| lower.g2(G2::add, Width::W32, local, group))
                }
            }
        };
        self.leaves.insert(leaf, reg);
        reg
    }

    /// Where the block begins along an axis, where all of its lanes lie along x.
    fn local_base(&mut self, axis: Axis) -> G {
        let [nx, ny, _] = self.geometry.size;
        let Some(block) = self.block else { return self.at_block(|lower| lower.imm(0)) };
        if self.geometry.flat || self.geometry.total() == nx {
            return match (axis, self.row) {
                (Axis::X, _) => block,
                (Axis::Y, Some([y, _])) => y,
                (Axis::Z, Some([_, z])) => z,
                (Axis::Y | Axis::Z, None) => self.at_block(|lower| lower.imm(0)),
            };
        }
        let lanes = self.geometry.lanes();
        if nx.is_power_of_two() && ny.is_power_of_two() {
            // Its bits are those of x, then those of y, then those of z.
            let (below, own) = match axis {
                Axis::X => (0, nx),
                Axis::Y => (nx.trailing_zeros(), ny),
                Axis::Z => (nx.trailing_zeros() + ny.trailing_zeros(), 1 << 10),
            };
            if axis == Axis::X && nx == lanes {
                return self.at_block(|lower| lower.imm(0));
            }
            // The block's number is less than the size, so that nothing is above the bits of the last axis.
            let is_last = 1 << below << own.trailing_zeros() >= self.geometry.total();
            return self.at_block(|lower| {
                let shifted = lower.new_g();
                let op = GShift::Right;
                lower.push(Inst::GShift { op, width: Width::W32, d: shifted, a: block, imm: below as u8 });
                if is_last {
                    return shifted;
                }
                lower.g2(G2::and, Width::W32, shifted, GSrc::Imm(own as i32 - 1))
            });
        }
        // A table by block: where it begins along x, y and z.
        let starts: Vec<u32> = (0..self.geometry.blocks())
            .map(|n| {
                let first = n * lanes;
                match axis {
                    Axis::X => first % nx,
                    Axis::Y => first / nx % ny,
                    Axis::Z => first / nx / ny,
                }
            })
            .collect();
        let table = self.pool.table(&starts);
        self.at_block(|lower| {
            let start = lower.new_g();
            lower.push(Inst::Lea { d: start, from: table });
            let shift = lanes.trailing_zeros() as u8;
            let number = lower.new_g();
            let op = GShift::Right;
            lower.push(Inst::GShift { op, width: Width::W32, d: number, a: block, imm: shift });
            lower.load_g(GLoadKind::W32, Mem::indexed(start, number, 4))
        })
    }

    fn group_id(&mut self, axis: Axis) -> G {
        match (axis, self.group) {
            (Axis::X, Some(group)) => group,
            (Axis::X, None) => self.machine_leaf(MachineLeaf::Context(offset_of!(Context, first_group))),
            (Axis::Y, _) => self.machine_leaf(MachineLeaf::Context(offset_of!(Context, group_y))),
            (Axis::Z, _) => self.machine_leaf(MachineLeaf::Context(offset_of!(Context, group_z))),
        }
    }

    pub fn load_g(&mut self, kind: GLoadKind, from: Mem) -> G {
        let d = self.new_g();
        self.push(Inst::GLoad { kind, d, from });
        d
    }

    /// Where an id or a count is.
    pub fn builtin(&mut self, builtin: Builtin) -> Loc {
        match builtin {
            Builtin::Invocation(axis) => match (self.facts_shape_of_axis(axis), self.geometry.size[axis as usize]) {
                (Shape::Linear(stride), _) => Loc::Linear(self.machine_leaf(MachineLeaf::GlobalBase(axis)), stride),
                (Shape::Uniform, 1) => Loc::G(self.group_id(axis)),
                (Shape::Uniform, _) => Loc::G(self.machine_leaf(MachineLeaf::GlobalBase(axis))),
                (Shape::Varying, _) => Loc::Parts(self.vector_leaf(VectorLeaf::Builtin(builtin))),
            },
            Builtin::Local(axis) => match (self.facts_shape_of_axis(axis), self.geometry.size[axis as usize]) {
                (Shape::Linear(stride), _) => Loc::Linear(self.machine_leaf(MachineLeaf::LocalBase(axis)), stride),
                (Shape::Uniform, 1) => Loc::Lit(0),
                (Shape::Uniform, _) => Loc::G(self.machine_leaf(MachineLeaf::LocalBase(axis))),
                (Shape::Varying, _) => Loc::Parts(self.vector_leaf(VectorLeaf::Builtin(builtin))),
            },
            Builtin::SubgroupLane => Loc::Parts(self.vector_leaf(VectorLeaf::Builtin(builtin))),
            Builtin::Workgroup(axis) => Loc::G(self.group_id(axis)),
            Builtin::WorkgroupCount(axis) => {
                Loc::G(self.machine_leaf(MachineLeaf::Context(offset_of!(Context, grid) + 4 * axis as usize)))
            }
            Builtin::InvocationCount(axis) => {
                Loc::G(self.machine_leaf(MachineLeaf::Context(offset_of!(Context, invocations) + 4 * axis as usize)))
            }
            Builtin::LocalCount(axis) => Loc::Lit(u64::from(self.geometry.size[axis as usize])),
            Builtin::SubgroupSize => Loc::Lit(u64::from(self.ssa.kernel.subgroup.unwrap_or(1))),
        }
    }

    fn facts_shape_of_axis(&self, axis: Axis) -> Shape {
        match axis {
            Axis::X if self.geometry.rows => Shape::Linear(1),
            Axis::X => Shape::Varying,
            Axis::Y | Axis::Z if self.geometry.rows || self.geometry.size[axis as usize] == 1 => Shape::Uniform,
            Axis::Y | Axis::Z => Shape::Varying,
        }
    }

    fn vector_leaf(&mut self, leaf: VectorLeaf) -> Parts {
        if let Some(known) = self.vector_leaves.get(&leaf) {
            return known.clone();
        }
        let VectorLeaf::Builtin(builtin) = leaf;
        let [nx, ny, _] = self.geometry.size;
        let position = |n: u32| -> u32 {
            match builtin {
                Builtin::Local(axis) | Builtin::Invocation(axis) => match axis {
                    Axis::X => n % nx,
                    Axis::Y => n / nx % ny,
                    Axis::Z => n / nx / ny,
                },
                Builtin::Workgroup(_)
                | Builtin::InvocationCount(_)
                | Builtin::WorkgroupCount(_)
                | Builtin::LocalCount(_)
                | Builtin::SubgroupLane
                | Builtin::SubgroupSize => n % self.ssa.kernel.subgroup.unwrap_or(1),
            }
        };
        let positions: Vec<u32> = (0..self.geometry.blocks() * self.geometry.lanes()).map(position).collect();
        let table = self.pool.table(&positions);
        let group = match builtin {
            Builtin::Invocation(axis) => Some(self.machine_leaf(MachineLeaf::GroupTimesSize(axis))),
            Builtin::Workgroup(_)
            | Builtin::Local(_)
            | Builtin::InvocationCount(_)
            | Builtin::WorkgroupCount(_)
            | Builtin::LocalCount(_)
            | Builtin::SubgroupLane
            | Builtin::SubgroupSize => None,
        };
        let (block, parts) = (self.block, self.parts());
        let result: Parts = self.at_block(|lower| {
            let start = lower.new_g();
            lower.push(Inst::Lea { d: start, from: table });
            let group = group.map(|group| lower.splat_g(Width::W32, group));
            (0..parts)
                .map(|part| {
                    let from = match block {
                        Some(block) => Mem::indexed(start, block, 4),
                        None => Mem::at(start),
                    };
                    let own = lower.load(LoadKind::Full, from.plus(32 * part));
                    match group {
                        Some(group) => lower.v3(V3::vpaddd, own, group),
                        None => own,
                    }
                })
                .collect()
        });
        self.vector_leaves.insert(leaf, result.clone());
        result
    }
}
