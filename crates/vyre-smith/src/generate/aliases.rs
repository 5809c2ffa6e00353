//! Accesses to a few elements, one after the other, that turn out to be the same element or not when the program runs: a store must
//! not be forwarded past another that may have hit its element, and two loads or atomics are two.

use super::{Generator, Variable};
use vyre_foundation::ir::{AtomicOp, Expr, Node, Scalar};
use vyre_spec::ResultRule;

impl Generator<'_> {
    /// Stores, loads and atomics on elements of the invocation's own.
    pub(super) fn aliases(&mut self, nodes: &mut Vec<Node>) {
        let count = self.buffers.len();
        let start = self.dna.below(count as u32) as usize;
        let writable = |b: &usize| self.buffers[*b].access.is_writable() && !self.buffers[*b].sink;
        let candidates: Vec<usize> = (0..count).map(|n| (start + n) % count).filter(writable).collect();
        for b in candidates {
            if let Some((first, stride, per)) = self.own_row(b) {
                return self.alias(b, first, stride, per, nodes);
            }
        }
        self.store(nodes);
    }

    fn alias(&mut self, b: usize, first: Expr, stride: u32, per: u32, nodes: &mut Vec<Node>) {
        let (name, ty) = (self.buffers[b].name.clone(), self.buffers[b].value);
        let mut places = Vec::new();
        for _ in 0..2 {
            let number = if self.dna.chance(30) { Expr::u32(self.dna.below(per)) } else { self.number_below(per) };
            let place = Expr::add(first.clone(), Expr::mul(number, Expr::u32(stride)));
            if self.dna.chance(40) {
                places.push(place);
                continue;
            }
            // Nobody may change it: it says which elements are the invocation's.
            let index = self.fresh_name();
            nodes.push(Node::let_bind(&index, place));
            self.variables.push(Variable { name: index.clone(), ty: Scalar::U32.into(), uniform: false, assignable: false });
            places.push(Expr::var(index));
            self.steps += self.iterations;
        }
        let atomics = self.buffers[b].takes_atomics() && self.config.weights.atomic > 0;
        // First one, then the other, then the first again: mostly.
        for n in 0..3 + self.dna.below(3) {
            let at = if self.dna.chance(75) { (n % 2) as usize } else { self.dna.below(2) as usize };
            let place = places[at].clone();
            self.steps += self.iterations;
            let kind = if n == 2 && self.dna.chance(60) { 3 } else { self.dna.below(if atomics { 6 } else { 4 }) };
            match kind {
                0 | 1 => {
                    let value = self.value(ty, 1, false);
                    nodes.push(Node::store(&name, place, value));
                }
                2 | 3 => {
                    let shown = Variable { name: self.declare(ty, false), ty, uniform: false, assignable: true };
                    nodes.push(Node::let_bind(&shown.name, Expr::load(&name, place)));
                    if self.dna.chance(60) {
                        self.show_variable(&shown, nodes);
                    }
                }
                _ => {
                    let op: AtomicOp = self.dna.pick(AtomicOp::ALL);
                    let scalar = ty.scalar().unwrap_or(Scalar::U32);
                    let operands = op.info().operands.iter().map(|_| self.leaf(scalar, 0, false)).collect();
                    if op.info().result == ResultRule::None {
                        nodes.push(Node::atomic(op, &name, place, operands));
                        continue;
                    }
                    let shown = Variable { name: self.declare(ty, false), ty, uniform: false, assignable: true };
                    nodes.push(Node::let_atomic(&shown.name, op, &name, place, operands));
                    if self.dna.chance(60) {
                        self.show_variable(&shown, nodes);
                    }
                }
            }
        }
    }
}
