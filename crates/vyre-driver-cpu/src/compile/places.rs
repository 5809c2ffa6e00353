//! Where values are: in which registers, as vectors or as what a block has in common.

use super::geometry::WIDTH;
use super::leaves::MachineLeaf;
use super::lower::{Lower, components_of, is_float, is_wide, scalar_of, width_of};
use super::shape::Shape;
use crate::faults::Fault;
use crate::machine::lir::{G2, GSrc, Inst, Src, V3, Width};
use crate::machine::reg::{G, V};
use smallvec::{SmallVec, smallvec};
use vyre_foundation::ssa::{Leaf, Value};
use vyre_spec::Scalar;

/// The vectors of a varying value: one per part, two where elements have 64 bits.
pub(crate) type Parts = SmallVec<[V; 8]>;

/// Where the value of a scalar is.
#[derive(Clone, Debug)]
pub(crate) enum Loc {
    /// It is a literal.
    Lit(u64),
    /// Uniform, an integer or a `bool`, which is 0 or 1.
    G(G),
    /// Linear: the value of lane 0.
    Linear(G, u32),
    /// Uniform, a float: in every element of one vector.
    Splat(V),
    /// Varying; a `bool` is all ones or all zeros in 32 bits.
    Parts(Parts),
}

/// Where a value is: the components of a vector, or the only one.
pub(crate) type Locs = SmallVec<[Loc; 1]>;

/// A mask: active lanes are all ones. `None` if all of them are.
pub(crate) type Mask = Option<Parts>;

/// By value: where it is.
pub(crate) struct Places {
    by_value: Vec<Option<Locs>>,
    /// Those that were given a place, some of them more than once.
    placed: Vec<Value>,
}

impl Places {
    pub fn new(values: usize) -> Places {
        Places { by_value: vec![None; values], placed: Vec::new() }
    }

    pub fn get(&self, value: Value) -> Option<&Locs> {
        self.by_value[value.index()].as_ref()
    }

    pub fn set(&mut self, value: Value, locs: Locs) {
        if self.by_value[value.index()].replace(locs).is_none() {
            self.placed.push(value);
        }
    }

    pub fn forget(&mut self, value: Value) {
        self.by_value[value.index()] = None;
    }

    /// Forgets all but some; takes as long as there are values with a place.
    pub fn forget_all_but(&mut self, keep: impl Fn(Value) -> bool) {
        let by_value = &mut self.by_value;
        self.placed.retain(|value| {
            let stays = keep(*value) && by_value[value.index()].is_some();
            if !stays {
                by_value[value.index()] = None;
            }
            stays
        });
    }
}

impl Lower<'_> {
    /// Where a component of a value is.
    pub fn loc(&mut self, value: Value, component: u8) -> Loc {
        if let Some(leaf) = self.ssa.leaf(value) {
            return match leaf {
                Leaf::Lit { bits } => Loc::Lit(bits),
                Leaf::Builtin { builtin } => self.builtin(builtin),
                Leaf::Len { buffer } => Loc::G(self.machine_leaf(MachineLeaf::Length(buffer))),
            };
        }
        self.find_slot(value);
        match self.locs.get(value) {
            Some(locs) => locs[usize::from(component)].clone(),
            None => {
                self.refuse("a value is used where it is not there");
                Loc::Lit(0)
            }
        }
    }

    pub fn set(&mut self, value: Value, loc: Loc) {
        self.locs.set(value, smallvec![loc]);
    }

    pub fn ty(&self, value: Value) -> Scalar {
        scalar_of(self.ssa.value(value).ty)
    }

    /// A uniform integer or `bool`, or the value of lane 0 of a linear one, in a general register.
    pub fn g(&mut self, value: Value) -> G {
        match self.loc(value, 0) {
            Loc::Lit(bits) => self.imm(bits),
            Loc::G(reg) | Loc::Linear(reg, _) => reg,
            Loc::Splat(v) => {
                let d = self.new_g();
                let width = width_of(self.ty(value));
                self.push(Inst::First { width, d, a: v });
                d
            }
            Loc::Parts(parts) => {
                let d = self.new_g();
                self.push(Inst::First { width: width_of(self.ty(value)), d, a: parts[0] });
                d
            }
        }
    }

    /// The same, as an operand that may be a number.
    pub fn g_src(&mut self, value: Value) -> GSrc {
        match self.loc(value, 0) {
            Loc::Lit(bits) => match (is_wide(self.ty(value)), i32::try_from(bits as i64)) {
                (false, _) => GSrc::Imm(bits as u32 as i32),
                (true, Ok(small)) => GSrc::Imm(small),
                (true, Err(_)) => GSrc::Reg(self.imm(bits)),
            },
            Loc::G(_) | Loc::Linear(..) | Loc::Splat(_) | Loc::Parts(_) => GSrc::Reg(self.g(value)),
        }
    }

    /// A value as vectors.
    pub fn vectors(&mut self, value: Value, component: u8) -> Parts {
        let ty = self.ty(value);
        match self.loc(value, component) {
            Loc::Parts(parts) => parts,
            Loc::Lit(bits) => {
                let v = self.constant_v(ty, bits);
                smallvec![v; self.vectors_of(ty)]
            }
            loc @ (Loc::G(_) | Loc::Linear(..) | Loc::Splat(_)) => {
                // What hardly ever runs makes its own, so that nobody keeps them for it.
                if self.in_cold {
                    return self.as_vectors(ty, &loc);
                }
                if let Some(known) = self.splats.get(&(value, component)) {
                    return known.clone();
                }
                // Vectors of leaves are made where the leaves are, and stay.
                let parts = match self.ssa.leaf(value) {
                    Some(Leaf::Len { .. } | Leaf::Lit { .. }) => self.at_entry(|lower| lower.as_vectors(ty, &loc)),
                    Some(Leaf::Builtin { .. }) => self.at_block(|lower| lower.as_vectors(ty, &loc)),
                    None => {
                        self.splatted.push((value, component));
                        self.as_vectors(ty, &loc)
                    }
                };
                self.splats.insert((value, component), parts.clone());
                parts
            }
        }
    }

    /// A value as operands, which may be constants in memory.
    pub fn sources(&mut self, value: Value) -> SmallVec<[Src; 8]> {
        match self.loc(value, 0) {
            Loc::Lit(bits) => {
                let ty = self.ty(value);
                let src = self.constant(ty, bits);
                smallvec![src; self.vectors_of(ty)]
            }
            Loc::G(_) | Loc::Linear(..) | Loc::Splat(_) | Loc::Parts(_) => {
                self.vectors(value, 0).into_iter().map(Src::Reg).collect()
            }
        }
    }

    pub fn as_vectors(&mut self, ty: Scalar, loc: &Loc) -> Parts {
        match loc {
            Loc::Parts(parts) => parts.clone(),
            Loc::Lit(bits) => {
                let v = self.constant_v(ty, *bits);
                smallvec![v; self.vectors_of(ty)]
            }
            Loc::Splat(v) => smallvec![*v; self.vectors_of(ty)],
            Loc::G(reg) => {
                let v = self.splat_scalar(ty, *reg);
                smallvec![v; self.vectors_of(ty)]
            }
            Loc::Linear(base, stride) => {
                let base = self.splat_g(Width::W32, *base);
                (0..self.geometry.parts)
                    .map(|part| {
                        let first = if self.planted(Fault::PartsAlike) { 0 } else { part * WIDTH };
                        let steps = std::array::from_fn(|n| (first + n as u32).wrapping_mul(*stride));
                        let steps = Src::Mem(self.pool.place(steps));
                        self.v3(V3::vpaddd, base, steps)
                    })
                    .collect()
            }
        }
    }

    /// A uniform integer or `bool` in every element.
    pub fn splat_scalar(&mut self, ty: Scalar, reg: G) -> V {
        if ty == Scalar::Bool {
            let none = self.imm(0);
            let all = self.g2(G2::sub, Width::W32, none, reg);
            return self.splat_g(Width::W32, all);
        }
        self.splat_g(width_of(ty), reg)
    }

    /// Forgets vectors of uniform values that were made since.
    pub fn forget_splats(&mut self, since: usize) {
        for key in self.splatted.drain(since..) {
            self.splats.remove(&key);
        }
    }

    /// The shape of a value.
    pub fn shape(&self, value: Value) -> Shape {
        self.facts.shapes.shape(value)
    }

    /// A new place of the shape that the value has.
    pub fn new_loc(&mut self, ty: Scalar, shape: Shape) -> Loc {
        match shape {
            Shape::Uniform if is_float(ty) => Loc::Splat(self.new_v()),
            Shape::Uniform => Loc::G(self.new_g()),
            Shape::Linear(stride) => Loc::Linear(self.new_g(), stride),
            Shape::Varying => Loc::Parts((0..self.vectors_of(ty)).map(|_| self.new_v()).collect()),
        }
    }

    pub fn new_locs(&mut self, value: Value) -> Locs {
        let (ty, shape) = (self.ssa.value(value).ty, self.shape(value));
        (0..components_of(ty)).map(|_| self.new_loc(scalar_of(ty), shape)).collect()
    }

    /// Copies a value to a place that has its shape, or a more general one; under a mask only active lanes of a varying one.
    pub fn copy_to(&mut self, ty: Scalar, to: &Loc, from: &Loc, mask: &Mask) {
        match to {
            Loc::Lit(_) => {}
            Loc::G(d) | Loc::Linear(d, _) => match from {
                Loc::Lit(bits) => self.push(Inst::GImm { d: *d, imm: *bits }),
                Loc::G(a) | Loc::Linear(a, _) => self.push(Inst::GMov { width: Width::W64, d: *d, a: *a }),
                Loc::Splat(_) | Loc::Parts(_) => self.refuse("a uniform place is given a varying value"),
            },
            Loc::Splat(d) => match from {
                Loc::Lit(bits) => {
                    let a = self.constant_v(ty, *bits);
                    self.push(Inst::VMov { d: *d, a });
                }
                Loc::Splat(a) => self.push(Inst::VMov { d: *d, a: *a }),
                Loc::G(_) | Loc::Linear(..) | Loc::Parts(_) => self.refuse("a uniform float is given something else"),
            },
            Loc::Parts(to) => {
                let from = self.as_vectors(ty, from);
                let masks = mask.as_ref().map(|mask| self.masks_for(ty, mask));
                for n in 0..to.len() {
                    match &masks {
                        None => self.push(Inst::VMov { d: to[n], a: from[n] }),
                        Some(masks) => self.push(Inst::Blend { d: to[n], a: to[n], b: from[n].into(), mask: masks[n] }),
                    }
                }
            }
        }
    }
}
