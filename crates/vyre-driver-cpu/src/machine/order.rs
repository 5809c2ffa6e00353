//! Puts straight code into an order in which fewer registers are held at once.
//!
//! Lowering writes an op for all vectors of a block before the next op, so that everything on the way is held once for each of them. Here the
//! code goes on with one result until it is there: operands right before what needs them, and of the results that nothing else in the stretch
//! waits for the one first that is reached soonest. Vectors of a block come one after the other then, and share the registers that they need
//! on the way. The machine looks ahead far enough to run them at the same time, as long as stretches are not too long, so they are cut.
//!
//! What stays in order: reads and writes of a register, and of memory. Jumps, labels and calls end a stretch.

use super::lir::{AnyReg, Base, GSrc, Inst, Mem, Role, Src};
use smallvec::SmallVec;

/// How many instructions are put in order together: about what the machine looks ahead.
const STRETCH: usize = 160;

const NONE: u32 = u32::MAX;

/// Changes the order of code between jumps.
pub(crate) fn reorder(code: &mut Vec<Inst>, general: u32, vectors: u32) {
    let mut order = Order::new(general, vectors);
    let mut ordered = Vec::with_capacity(code.len() + code.len() / 4);
    for inst in code.iter_mut() {
        if let Inst::Mark(stmt) = inst {
            order.mark = *stmt;
            continue;
        }
        if inst.is_control() || matches!(inst, Inst::Call { .. }) {
            order.write(&mut ordered);
            order.mark_here(&mut ordered, order.mark);
            ordered.push(*inst);
        } else {
            order.add(*inst);
            if order.nodes.len() == STRETCH {
                order.write(&mut ordered);
            }
        }
    }
    order.write(&mut ordered);
    *code = ordered;
}

/// An instruction of a stretch.
struct Node {
    inst: Inst,
    mark: u32,
    /// What has to come before it.
    after: SmallVec<[u32; 6]>,
    /// Whether another one of the stretch reads what it writes.
    is_read: bool,
    /// Whether it writes a register that the stretch has not mentioned before.
    begins: bool,
    /// What comes before it, directly or not, and itself.
    way: Set,
}

/// Instructions of a stretch, one bit each.
#[derive(Clone, Copy, Default)]
struct Set([u64; STRETCH.div_ceil(64)]);

impl Set {
    fn insert(&mut self, n: u32) {
        self.0[n as usize / 64] |= 1 << (n % 64);
    }

    fn contains(&self, n: u32) -> bool {
        self.0[n as usize / 64] >> (n % 64) & 1 == 1
    }

    fn extend(&mut self, other: &Set) {
        self.0.iter_mut().zip(other.0).for_each(|(word, other)| *word |= other);
    }

    /// How many are here and not there.
    fn count_without(&self, other: &Set) -> u32 {
        self.0.iter().zip(other.0).map(|(word, other)| (word & !other).count_ones()).sum()
    }
}

/// What a stretch has done with a register.
#[derive(Clone, Default)]
struct Mentions {
    /// The stretch that this is about.
    stretch: u32,
    /// Who wrote it last.
    writer: Option<u32>,
    /// Who has read it since.
    readers: SmallVec<[u32; 4]>,
}

struct Order {
    nodes: Vec<Node>,
    /// General registers, and vectors behind them.
    mentions: Vec<Mentions>,
    general: u32,
    stretch: u32,
    memory: Mentions,
    /// Who is written already.
    written: Set,
    /// Who is not read by another one of the stretch, and not written yet.
    ends: Vec<u32>,
    /// The statement of what is added, and of what was written last.
    mark: u32,
    marked: u32,
    stack: Vec<(u32, u32)>,
}

impl Order {
    fn new(general: u32, vectors: u32) -> Order {
        Order {
            nodes: Vec::with_capacity(STRETCH),
            mentions: vec![Mentions::default(); (general + vectors) as usize],
            general,
            stretch: 1,
            memory: Mentions::default(),
            written: Set::default(),
            ends: Vec::new(),
            mark: NONE,
            marked: NONE,
            stack: Vec::new(),
        }
    }

    fn mark_here(&mut self, to: &mut Vec<Inst>, mark: u32) {
        if self.marked != mark {
            self.marked = mark;
            to.push(Inst::Mark(mark));
        }
    }

    fn add(&mut self, mut inst: Inst) {
        let own = self.nodes.len() as u32;
        let (general, stretch) = (self.general, self.stretch);
        let (nodes, mentions) = (&mut self.nodes, &mut self.mentions);
        // Who still reads what is written here comes first: then the result can be computed where it goes.
        let (mut after, mut operands): (SmallVec<[u32; 6]>, SmallVec<[u32; 6]>) = Default::default();
        let mut begins = false;
        inst.for_each_reg(&mut |reg, role| {
            let number = match reg {
                AnyReg::G(reg) => reg.0,
                AnyReg::V(reg) => general + reg.0,
            };
            let known = &mut mentions[number as usize];
            if known.stretch != stretch {
                *known = Mentions { stretch, ..Mentions::default() };
                begins |= matches!(role, Role::Write | Role::Early);
            }
            if let Role::Read | Role::Clobber = role {
                if let Some(writer) = known.writer {
                    nodes[writer as usize].is_read = true;
                }
                known.read(own, &mut operands);
            }
            if let Role::Write | Role::Early | Role::Clobber = role {
                known.write(own, &mut after);
            }
        });
        match inst.memory() {
            Memory::Untouched => {}
            Memory::Read => self.memory.read(own, &mut operands),
            Memory::Written => self.memory.write(own, &mut after),
        }
        after.extend(operands);
        let mut way = Set::default();
        way.insert(own);
        for before in &after {
            way.extend(&self.nodes[*before as usize].way);
        }
        self.nodes.push(Node { inst, mark: self.mark, after, is_read: false, begins, way });
    }

    /// Writes the stretch, and begins the next.
    fn write(&mut self, to: &mut Vec<Inst>) {
        self.ends.extend((0..).zip(&self.nodes).filter(|(_, node)| !node.is_read).map(|(n, _)| n));
        while let Some(end) = self.nearest() {
            self.write_up_to(end, to);
        }
        debug_assert!(
            (0..self.nodes.len() as u32).all(|n| self.written.contains(n)),
            "every instruction of a stretch leads to an end"
        );
        self.nodes.clear();
        self.stretch += 1;
        self.memory = Mentions::default();
        self.written = Set::default();
    }

    /// Which end is to be written next: results that need no new register first, and of these the one that is reached soonest.
    fn nearest(&mut self) -> Option<u32> {
        let key = |end: &u32| {
            let node = &self.nodes[*end as usize];
            (node.begins, node.way.count_without(&self.written))
        };
        let (nearest, _) = self.ends.iter().map(key).enumerate().min_by_key(|(_, key)| *key)?;
        Some(self.ends.remove(nearest))
    }

    /// Writes an instruction, after everything that has to come before it.
    fn write_up_to(&mut self, end: u32, to: &mut Vec<Inst>) {
        self.stack.clear();
        self.stack.push((end, 0));
        while let Some((n, next)) = self.stack.pop() {
            if self.written.contains(n) {
                continue;
            }
            let node = &self.nodes[n as usize];
            if let Some(before) = node.after.get(next as usize) {
                self.stack.extend([(n, next + 1), (*before, 0)]);
                continue;
            }
            let (inst, mark) = (node.inst, node.mark);
            self.written.insert(n);
            self.mark_here(to, mark);
            to.push(inst);
        }
    }
}

impl Mentions {
    fn read(&mut self, own: u32, after: &mut SmallVec<[u32; 6]>) {
        after.extend(self.writer.filter(|writer| *writer != own));
        self.readers.push(own);
    }

    fn write(&mut self, own: u32, after: &mut SmallVec<[u32; 6]>) {
        after.extend(self.writer.filter(|writer| *writer != own));
        after.extend(self.readers.drain(..).filter(|reader| *reader != own));
        self.writer = Some(own);
    }
}

/// What an instruction does with memory that others may change.
pub(super) enum Memory {
    Untouched,
    Read,
    Written,
}

impl Inst {
    pub(super) fn memory(&self) -> Memory {
        let of_mem = |mem: &Mem| if mem.base == Base::Pool { Memory::Untouched } else { Memory::Read };
        let of_src = |src: &Src| match src {
            Src::Reg(_) => Memory::Untouched,
            Src::Mem(mem) => of_mem(mem),
        };
        let of_gsrc = |src: &GSrc| match src {
            GSrc::Reg(_) | GSrc::Imm(_) => Memory::Untouched,
            GSrc::Mem(mem) => of_mem(mem),
        };
        match self {
            Inst::V3 { b, .. } | Inst::V3I { b, .. } | Inst::Blend { b, .. } | Inst::Fma { c: b, .. } => of_src(b),
            Inst::V2 { a, .. } | Inst::V2I { a, .. } | Inst::Widen { a, .. } => of_src(a),
            Inst::G2 { b, .. } | Inst::GMul { b, .. } | Inst::Set { b, .. } | Inst::Choose { b, .. } | Inst::JumpIf { b, .. } => {
                of_gsrc(b)
            }
            Inst::Load { from, .. } | Inst::MaskLoad { from, .. } | Inst::GLoad { from, .. } => of_mem(from),
            Inst::Gather { .. } | Inst::GatherWide { .. } | Inst::JumpIfByte { .. } => Memory::Read,
            Inst::Store { .. }
            | Inst::MaskStore { .. }
            | Inst::GStore { .. }
            | Inst::Rmw { .. }
            | Inst::Change { .. }
            | Inst::CompareExchange { .. }
            | Inst::Call { .. } => Memory::Written,
            Inst::Shift { .. }
            | Inst::Narrow { .. }
            | Inst::ToHalf { .. }
            | Inst::VMov { .. }
            | Inst::Zero { .. }
            | Inst::Ones { .. }
            | Inst::Join { .. }
            | Inst::High { .. }
            | Inst::Splat { .. }
            | Inst::First { .. }
            | Inst::Signs { .. }
            | Inst::GShift { .. }
            | Inst::GShiftBy { .. }
            | Inst::GMov { .. }
            | Inst::GImm { .. }
            | Inst::Lea { .. }
            | Inst::Prefetch { .. }
            | Inst::LowestBit { .. }
            | Inst::ClearLowest { .. }
            | Inst::PopCount { .. }
            | Inst::Label(_)
            | Inst::Jump(_)
            | Inst::LoopBegin
            | Inst::LoopEnd
            | Inst::ColdBegin
            | Inst::ColdEnd
            | Inst::Mark(_)
            | Inst::Return => Memory::Untouched,
        }
    }
}
