//! Index forms: a `u32` as a sum of products of other values, modulo 2³².
//!
//! `+`, `-` and `*` of `u32` are exact modulo 2³², and so are shifts to the left by a literal. So `(gid.y * w + gid.x) * 4 + 3` *is*
//! `4·gid.y·w + 4·gid.x + 3`, whatever the numbers are. What is not such an op is an *atom*. That nothing wraps is not part of the form:
//! who needs order or one-to-one maps asks ranges for that. Contiguity needs none of it: neighbours whose index differs by one
//! read neighbouring elements, or wrap around where a check of the whole vector (`len ≥ W && base ≤ len − W`) sees it.
//!
//! Forms are kept small: of a sum with more than [`MAX_TERMS`] products, or a product of more than [`MAX_DEGREE`] atoms, the op that
//! makes it so is an atom itself.

use super::numbers::Numbers;
use super::uniformity::{Scope, Uniformity};
use crate::ir::{Axis, BinaryOp, Builtin, Scalar};
use crate::kernel::Few;
use crate::ssa::{InstKind, Leaf, Op, RegionId, Ssa, Value};
use vyre_spec::ValueType;

/// Products in a form at most.
const MAX_TERMS: usize = 8;
/// Atoms in a product at most.
const MAX_DEGREE: usize = 3;

/// Atoms that are multiplied, in order; each is the number of a value.
pub type Product = Few<Value, MAX_DEGREE>;

/// A sum of products and a number, modulo 2³².
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Affine {
    /// The products, each once, in order, and how often each is taken.
    pub terms: Vec<(Product, u32)>,
    /// What is added.
    pub constant: u32,
}

impl Affine {
    fn number(constant: u32) -> Affine {
        Affine { terms: Vec::new(), constant }
    }

    pub(super) fn one() -> Affine {
        Affine::number(1)
    }

    pub(super) fn atom(atom: Value) -> Affine {
        Affine { terms: vec![(Product::of(&[atom]), 1)], constant: 0 }
    }

    /// The number, if it is one.
    #[must_use]
    pub fn exact(&self) -> Option<u32> {
        self.terms.is_empty().then_some(self.constant)
    }

    pub(super) fn of_terms(mut terms: Vec<(Product, u32)>, constant: u32) -> Affine {
        terms.sort_unstable_by_key(|(product, _)| *product);
        terms.dedup_by(|later, earlier| {
            let same = later.0 == earlier.0;
            if same {
                earlier.1 = earlier.1.wrapping_add(later.1);
            }
            same
        });
        terms.retain(|(_, times)| *times != 0);
        Affine { terms, constant }
    }

    pub(super) fn plus(&self, other: &Affine, times: u32) -> Affine {
        let scaled = other.terms.iter().map(|(product, n)| (*product, n.wrapping_mul(times)));
        let terms = self.terms.iter().copied().chain(scaled).collect();
        Affine::of_terms(terms, self.constant.wrapping_add(other.constant.wrapping_mul(times)))
    }

    pub(super) fn times(&self, other: &Affine) -> Option<Affine> {
        let one = [(Product::of(&[]), 1)];
        let all = |form: &Affine| -> Vec<(Product, u32)> {
            let constant = one.iter().map(|(product, _)| (*product, form.constant));
            form.terms.iter().copied().chain(constant).filter(|(_, times)| *times != 0).collect()
        };
        let mut terms = Vec::new();
        let mut constant = 0u32;
        for (left, times) in all(self) {
            for (right, others) in all(other) {
                if left.len() + right.len() > MAX_DEGREE {
                    return None;
                }
                let times = times.wrapping_mul(others);
                let mut atoms: Vec<Value> = left.iter().chain(right.iter()).copied().collect();
                atoms.sort_unstable();
                match atoms.is_empty() {
                    true => constant = constant.wrapping_add(times),
                    false => terms.push((Product::of(&atoms), times)),
                }
            }
        }
        Some(Affine::of_terms(terms, constant))
    }
}

/// How an index changes from one lane to the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stride {
    /// By this much, modulo 2³²; 0 is the same for all lanes.
    Constant(u32),
    /// In some other way.
    Unknown,
}

/// The forms of all `u32` values.
#[derive(Clone, Debug)]
pub struct Forms {
    forms: Vec<Option<Affine>>,
}

impl Forms {
    /// The forms of an SSA form.
    #[must_use]
    pub fn of(ssa: &Ssa, numbers: &Numbers) -> Forms {
        let mut forms = Forms { forms: vec![None; ssa.values.len()] };
        forms.region(ssa, numbers, ssa.root);
        forms
    }

    /// The form of a `u32` value.
    #[must_use]
    pub fn form(&self, ssa: &Ssa, numbers: &Numbers, value: Value) -> Affine {
        match (&self.forms[value.index()], ssa.leaf(value)) {
            (Some(form), _) => form.clone(),
            (None, Some(Leaf::Lit { bits })) => Affine::number(bits as u32),
            (None, Some(Leaf::Builtin { .. } | Leaf::Len { .. }) | None) => Affine::atom(numbers.of_value(value)),
        }
    }

    /// How a value differs between the `width` lanes of a vector, whose first lane has a linear local index that is a multiple of
    /// `width`, in workgroups of this shape.
    #[must_use]
    pub fn stride(
        &self,
        ssa: &Ssa,
        numbers: &Numbers,
        uniformity: &Uniformity,
        value: Value,
        width: u32,
        shape: [u32; 3],
    ) -> Stride {
        let mut stride = 0u32;
        for (product, times) in &self.form(ssa, numbers, value).terms {
            let varies = |atom: &&Value| !uniformity.is_uniform(**atom, Scope::Workgroup);
            match product.iter().filter(varies).collect::<Vec<_>>()[..] {
                [] => {}
                [atom] if product.len() == 1 => match axis(ssa, *atom) {
                    Some(Axis::X) if shape[0].is_multiple_of(width) => stride = stride.wrapping_add(*times),
                    // Lanes of one row have the same position along the others.
                    Some(Axis::Y | Axis::Z) if shape[0].is_multiple_of(width) => {}
                    Some(_) | None => return Stride::Unknown,
                },
                _ => return Stride::Unknown,
            }
        }
        Stride::Constant(stride)
    }

    fn region(&mut self, ssa: &Ssa, numbers: &Numbers, id: RegionId) {
        for inst in &ssa.region(id).insts {
            let inst = ssa.inst(*inst);
            if let InstKind::Op(op) = &inst.kind
                && ssa.value(inst.results[0]).ty == ValueType::Scalar(Scalar::U32)
            {
                self.forms[inst.results[0].index()] = self.op(ssa, numbers, op);
            }
            inst.kind.regions().for_each(|inner| self.region(ssa, numbers, inner));
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "an op that is not a sum or product is an atom, also a new one")]
    fn op(&self, ssa: &Ssa, numbers: &Numbers, op: &Op) -> Option<Affine> {
        let form = |value: Value| self.form(ssa, numbers, value);
        let Op::Binary { op, ty: Scalar::U32, left, right } = op else { return None };
        let made = match op {
            BinaryOp::Add => form(*left).plus(&form(*right), 1),
            BinaryOp::Sub => form(*left).plus(&form(*right), u32::MAX),
            BinaryOp::Mul => form(*left).times(&form(*right))?,
            BinaryOp::Shl => form(*left).times(&Affine::number(1u32.wrapping_shl(form(*right).exact()?)))?,
            _ => return None,
        };
        (made.terms.len() <= MAX_TERMS).then_some(made)
    }
}

/// The axis of an id that differs between the lanes of a workgroup.
fn axis(ssa: &Ssa, value: Value) -> Option<Axis> {
    match ssa.leaf(value)? {
        Leaf::Builtin { builtin: Builtin::Invocation(axis) | Builtin::Local(axis) } => Some(axis),
        Leaf::Builtin { .. } | Leaf::Lit { .. } | Leaf::Len { .. } => None,
    }
}
