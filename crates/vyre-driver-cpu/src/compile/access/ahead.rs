//! Loads ask for what is read later.
//!
//! Where workgroups have barriers, the machine does not look ahead to the loads of the next one: each asks for what is read as far ahead.
//!
//! Loads of loops that stride through memory ask for what they read some iterations later.
//!
//! Where iterations read what lies side by side the machine finds out by itself what comes next. It does not across pages: a loop that goes
//! down a column of a matrix waits for memory, and for the address of a page, in each iteration. How far the next iteration's elements are
//! away is what the counter is multiplied by in the index. Asking is no access: it changes nothing, and may be for an address that is
//! nothing, so that it needs no check and no mask, and may wrap.

use super::super::lower::Lower;
use super::super::shape::Shape;
use super::elements::Element;
use crate::machine::lir::{Inst, Mem};
use crate::machine::reg::G;
use vyre_foundation::ir::{Access, BinaryOp};
use vyre_foundation::kernel::BufferId;
use vyre_foundation::ssa::{InstKind, Op, Ssa, Value};
use vyre_spec::Scalar;

/// How many iterations before it is read a line is asked for; as the scale of an address it costs nothing.
const AHEAD: u8 = 8;

/// The fewest bytes from one iteration to the next that are worth it.
const FAR: u64 = 1024;

/// The fewest iterations of a loop that is known to have so few.
const SHORT: u32 = 4 * AHEAD as u32;

/// The most bytes ahead, so that they fit an address.
const MOST: u64 = 1 << 28;

/// How many workgroups ahead of the one that reads.
const GROUPS_AHEAD: usize = 2;

/// Bytes of a line.
const LINE: usize = 64;

/// By how much an index grows when a counter does by one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Number(u64),
    Value(Value),
}

/// `None` if the index does not depend on the counter, or in a way that is not looked into.
fn step(ssa: &Ssa, index: Value, counter: Value, depth: u32) -> Option<Step> {
    if index == counter {
        return Some(Step::Number(1));
    }
    if depth == 0 {
        return None;
    }
    let Some(Op::Binary { op, ty: Scalar::U32, left, right }) = ssa.op(index).copied() else { return None };
    let [of_left, of_right] = [left, right].map(|side| step(ssa, side, counter, depth - 1));
    let times = |step: Step, by: Value| match (step, ssa.literal(by)) {
        (Step::Number(n), Some(by)) => n.checked_mul(by).map(Step::Number),
        (Step::Number(1), None) => Some(Step::Value(by)),
        (Step::Number(_) | Step::Value(_), _) => None,
    };
    match (op, of_left, of_right) {
        (BinaryOp::Add, Some(step), None) | (BinaryOp::Add, None, Some(step)) | (BinaryOp::Sub, Some(step), None) => Some(step),
        (BinaryOp::Mul, Some(step), None) => times(step, right),
        (BinaryOp::Mul, None, Some(step)) => times(step, left),
        (BinaryOp::Shl, Some(Step::Number(n)), None) => {
            ssa.literal(right).and_then(|by| n.checked_mul(1 << (by % 32))).map(Step::Number)
        }
        (_, _, _) => None,
    }
}

impl Lower<'_> {
    /// Asks for what a load of elements side by side, which begin at `at`, reads some iterations later.
    pub(super) fn ask_ahead(&mut self, buffer: BufferId, element: Element, index: Value, first: G, at: Mem) {
        if self.in_cold {
            return;
        }
        let Some(around) = self.loops.last().map(|around| around.inst) else { return self.ask_for_next(buffer, element, at) };
        let ssa = self.ssa;
        let InstKind::Loop { body, .. } = ssa.inst(around).kind else { return };
        let few = self.facts.loops.trips(around).is_some_and(|trips| trips.at_most < SHORT);
        if few || ssa.kernel.buffer(buffer).access == Access::Workgroup {
            return;
        }
        let Some(step) = step(ssa, index, ssa.region(body).args[0], 4) else { return };
        let bytes = element.bytes();
        let from = match step {
            Step::Number(step) => {
                let Some(away) = step.checked_mul(bytes as u64).filter(|away| *away >= FAR) else { return };
                let away = away.saturating_mul(AHEAD.into());
                if away > MOST {
                    return;
                }
                at.plus(away as usize)
            }
            Step::Value(step) if self.shape(step) == Shape::Uniform => {
                let (step, there) = (self.g(step), self.new_g());
                self.push(Inst::Lea { d: there, from: Mem::indexed(first, step, AHEAD) });
                self.element_at(buffer, element, there)
            }
            Step::Value(_) => return,
        };
        // Mostly they do not begin with a line, and end in one more.
        let length = self.geometry.lanes() as usize * bytes;
        for byte in (0..length).step_by(LINE).chain([length - 1]) {
            self.push(Inst::Prefetch { from: from.plus(byte) });
        }
    }

    /// Asks for what workgroups to come read there.
    fn ask_for_next(&mut self, buffer: BufferId, element: Element, at: Mem) {
        let one_row = self.geometry.total() == self.geometry.size[0];
        let is_own = self.ssa.kernel.buffer(buffer).access == Access::Workgroup;
        if !self.is_planned() || !one_row || is_own || self.mask.is_some() {
            return;
        }
        let bytes = element.bytes();
        let ahead = GROUPS_AHEAD * self.geometry.size[0] as usize * bytes;
        let length = self.geometry.lanes() as usize * bytes;
        for byte in (0..length).step_by(LINE) {
            self.push(Inst::Prefetch { from: at.plus(ahead + byte) });
        }
    }
}
