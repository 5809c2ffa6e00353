//! Random programs with branches, loops, calls and any number of registers, through allocation and encoder against the model.

use super::super::lir::{
    Base, Cond, Fma, G2, GLoadKind, GShift, GSrc, GStoreKind, Inst, Label, LoadKind, Mem, Narrow, Rmw, Shift, Src, StoreKind, V2,
    V2I, V3, V3I, Widen, Width,
};
use super::super::reg::{G, V};
use super::aliasing::{canonical, pool};
use super::execution::helper;
use super::{Context, Program, Random};

/// Where things are in the context: what calls change, the address of a byte and that byte, data, and results.
const FLAG_ADDRESS: usize = 8;
const FLAG: usize = 16;
const DATA: usize = 32;
const DATA_LEN: usize = 2048;
const RESULTS: usize = DATA + DATA_LEN;
const SCRATCH: usize = 256;

struct Generator {
    program: Program,
    random: Random,
    /// Registers that have a value here, whatever way was taken.
    g: Vec<G>,
    v: Vec<V>,
    /// Registers that programs write, for whatever they like.
    all_g: Vec<G>,
    all_v: Vec<V>,
    /// Registers with an address in the middle of the data, which stay.
    bases: Vec<G>,
    /// Registers that will be moved to others.
    moves_g: Vec<(G, G)>,
    moves_v: Vec<(V, V)>,
    results: usize,
    depth: usize,
}

impl Generator {
    fn new(seed: u64) -> Generator {
        let mut random = Random(seed);
        let mut program = Program { scratch: SCRATCH, pool: pool(), ..Program::default() };
        let (general, vectors, bases) = match random.below(3) {
            0 => (3, 4, 1),
            1 => (9, 13, 2),
            _ => (30, 40, 4),
        };
        let (general, vectors) = (1 + random.below(general), 1 + random.below(vectors));
        let all_g = (0..general).map(|_| program.g()).collect();
        let all_v = (0..vectors).map(|_| program.v()).collect();
        let bases = (0..bases).map(|_| program.g()).collect();
        let mut generator = Generator {
            program,
            random,
            g: Vec::new(),
            v: Vec::new(),
            all_g,
            all_v,
            bases,
            moves_g: Vec::new(),
            moves_v: Vec::new(),
            results: RESULTS,
            depth: 0,
        };
        for base in generator.bases.clone() {
            generator.push(Inst::Lea { d: base, from: Mem::context(DATA + DATA_LEN / 2) });
        }
        // The scratch area begins as anything, so that programs do not see it.
        let zero = generator.program.v();
        generator.push(Inst::Zero { d: zero });
        for at in (0..SCRATCH).step_by(32) {
            generator.push(Inst::Store { kind: StoreKind::Full, to: Mem::frame(at), v: zero });
        }
        let some = 1 + generator.random.below(generator.all_g.len());
        let chosen: Vec<G> = generator.all_g[..some].into();
        for d in chosen {
            let from = generator.data(8);
            generator.push(Inst::GLoad { kind: GLoadKind::W64, d, from });
            generator.g.push(d);
        }
        let some = 1 + generator.random.below(generator.all_v.len());
        let chosen: Vec<V> = generator.all_v[..some].into();
        for d in chosen {
            let from = generator.data(32);
            generator.push(Inst::Load { kind: LoadKind::Full, d, from });
            generator.v.push(d);
        }
        generator
    }

    fn push(&mut self, inst: Inst) {
        self.program.code.push(inst);
    }

    fn label(&mut self) -> Label {
        self.program.labels += 1;
        Label(self.program.labels - 1)
    }

    /// A place in the data, with an address that needs no register.
    fn data(&mut self, len: usize) -> Mem {
        Mem::context(DATA + self.random.below(DATA_LEN - len))
    }

    /// Memory of any kind; there may be code before that computes an index.
    fn memory(&mut self, len: usize) -> Mem {
        match self.random.below(6) {
            0 => self.data(len),
            1 => Mem::frame(self.random.below(SCRATCH - len)),
            kind => {
                let base = self.random.pick(&self.bases);
                let disp = self.random.below(512) as i32 - 256;
                if kind < 4 {
                    return Mem { disp, ..Mem::at(base) };
                }
                let (index, a) = (self.program.g(), self.g());
                self.push(Inst::G2 { op: G2::and, width: Width::W64, d: index, a, b: GSrc::Imm(63) });
                Mem { disp, ..Mem::indexed(base, index, self.random.pick(&[1, 2, 4, 8])) }
            }
        }
    }

    /// Memory that is only read.
    fn readable(&mut self, len: usize) -> Mem {
        if self.random.once_in(4) {
            return Mem { base: Base::Pool, index: None, disp: self.random.below(self.program.pool.len() - len) as i32 };
        }
        self.memory(len)
    }

    fn g(&mut self) -> G {
        self.random.pick(&self.g)
    }

    fn v(&mut self) -> V {
        self.random.pick(&self.v)
    }

    fn src(&mut self, len: usize) -> Src {
        match self.random.once_in(4) {
            true => Src::Mem(self.readable(len)),
            false => Src::Reg(self.v()),
        }
    }

    fn gsrc(&mut self) -> GSrc {
        match self.random.below(4) {
            0 => GSrc::Mem(self.readable(8)),
            1 => GSrc::Imm(self.random.number() as i32 >> self.random.below(32)),
            _ => GSrc::Reg(self.g()),
        }
    }

    fn width(&mut self) -> Width {
        self.random.pick(&[Width::W32, Width::W64])
    }

    fn cond(&mut self) -> Cond {
        self.random.pick(&[
            Cond::Equal,
            Cond::NotEqual,
            Cond::Below,
            Cond::AboveEqual,
            Cond::Above,
            Cond::BelowEqual,
            Cond::Less,
            Cond::GreaterEqual,
            Cond::Greater,
            Cond::LessEqual,
        ])
    }

    /// Writes a vector, now or by a move later; which.
    fn set_v(&mut self, make: impl FnOnce(V) -> Inst) -> V {
        let d = self.random.pick(&self.all_v);
        if self.random.once_in(4) {
            let first = self.program.v();
            self.push(make(first));
            self.moves_v.push((d, first));
            return first;
        }
        self.push(make(d));
        self.has_v(d);
        d
    }

    fn has_v(&mut self, d: V) {
        if !self.v.contains(&d) {
            self.v.push(d);
        }
    }

    fn set_g(&mut self, make: impl FnOnce(G) -> Inst) {
        let d = self.random.pick(&self.all_g);
        if self.random.once_in(4) {
            let first = self.program.g();
            self.push(make(first));
            self.moves_g.push((d, first));
            return;
        }
        self.push(make(d));
        self.has_g(d);
    }

    fn has_g(&mut self, d: G) {
        if !self.g.contains(&d) {
            self.g.push(d);
        }
    }

    /// Makes moves until no more than so many are left.
    fn moves(&mut self, left: usize) {
        while self.moves_g.len() > left {
            let (d, a) = self.moves_g.swap_remove(self.random.below(self.moves_g.len()));
            self.push(Inst::GMov { width: Width::W64, d, a });
            self.has_g(d);
        }
        while self.moves_v.len() > left {
            let (d, a) = self.moves_v.swap_remove(self.random.below(self.moves_v.len()));
            self.push(Inst::VMov { d, a });
            self.has_v(d);
        }
    }

    fn vector(&mut self) {
        match self.random.below(20) {
            0..=5 => {
                let (op, a, b) = (self.random.pick(V3::ALL), self.v(), self.src(32));
                self.set_v(|d| Inst::V3 { op, d, a, b });
            }
            6 => {
                let (op, a, b, imm) = (self.random.pick(V3I::ALL), self.v(), self.src(32), self.random.number() as u8);
                self.set_v(|d| Inst::V3I { op, d, a, b, imm });
            }
            7 => {
                let (op, a) = (self.random.pick(V2::ALL), self.src(32));
                self.set_v(|d| Inst::V2 { op, d, a });
            }
            8 => {
                let (op, a) = (self.random.pick(V2I::ALL), self.src(32));
                // A rounding mode of its own, not that of the thread.
                let imm = match op {
                    V2I::vroundps | V2I::vroundpd => 8 | self.random.number() as u8 & 3,
                    V2I::vpermq | V2I::vpshufd => self.random.number() as u8,
                };
                self.set_v(|d| Inst::V2I { op, d, a, imm });
            }
            9 => {
                let (op, a, imm) = (self.random.pick(Shift::ALL), self.v(), self.random.below(70) as u8);
                self.set_v(|d| Inst::Shift { op, d, a, imm });
            }
            10 => {
                let (op, a) = (self.random.pick(Widen::ALL), self.src(16));
                self.set_v(|d| Inst::Widen { op, d, a });
            }
            11 => {
                let (op, a, half) = (self.random.pick(Narrow::ALL), self.v(), self.random.once_in(2));
                self.set_v(|d| if half { Inst::ToHalf { d, a } } else { Inst::Narrow { op, d, a } });
            }
            12 => {
                let (a, b, mask) = (self.v(), self.src(32), self.v());
                self.set_v(|d| Inst::Blend { d, a, b, mask });
            }
            13..=15 => {
                let (op, a, b, c) = (self.random.pick(&[Fma::ps, Fma::pd]), self.v(), self.v(), self.src(32));
                let d = self.set_v(|d| Inst::Fma { op, d, a, b, c });
                let mask = self.program.v();
                canonical(&mut self.program.code, op, d, mask);
            }
            16 => {
                let (low, high, which) = (self.v(), self.v(), self.random.below(5));
                self.set_v(|d| match which {
                    0 => Inst::Zero { d },
                    1 => Inst::Ones { d },
                    2 => Inst::High { d, a: low },
                    3 => Inst::VMov { d, a: low },
                    _ => Inst::Join { d, low, high },
                });
            }
            17 => self.gather(),
            18 => {
                let (width, a) = (self.width(), self.g());
                self.set_v(|d| Inst::Splat { width, d, a });
            }
            _ => {
                let (width, a, signs) = (self.width(), self.v(), self.random.once_in(2));
                self.set_g(|d| if signs { Inst::Signs { d, a } } else { Inst::First { width, d, a } });
            }
        }
    }

    fn gather(&mut self) {
        let (base, wide) = (self.random.pick(&self.bases), self.random.once_in(2));
        let (index, mask, d) = (self.program.v(), self.program.v(), self.program.v());
        let (a, b) = (self.v(), self.v());
        self.push(Inst::Shift { op: Shift::vpsrad, d: index, a, imm: 26 });
        self.push(Inst::VMov { d: mask, a: b });
        self.push(match wide {
            false => Inst::Gather { d, base, index, mask },
            true => Inst::GatherWide { d, base, index, mask },
        });
        self.set_v(|to| Inst::VMov { d: to, a: d });
    }

    fn memory_access(&mut self) {
        use LoadKind::{Eighth, Full, Half, I8, I16, Quarter, Splat32, Splat64, U8, U16};
        match self.random.below(8) {
            0 | 1 => {
                let kind = self.random.pick(&[Full, Half, Quarter, Eighth, U8, I8, U16, I16, Splat32, Splat64]);
                let from = self.readable(32);
                self.set_v(|d| Inst::Load { kind, d, from });
            }
            2 => {
                let kind = self.random.pick(&[StoreKind::Full, StoreKind::Half, StoreKind::Quarter, StoreKind::Eighth]);
                let (to, v) = (self.memory(32), self.v());
                self.push(Inst::Store { kind, to, v });
            }
            3 => {
                let (wide, to, mask, v) = (self.random.once_in(2), self.memory(32), self.v(), self.v());
                self.push(Inst::MaskStore { wide, to, mask, v });
            }
            4 => {
                let (wide, from, mask) = (self.random.once_in(2), self.memory(32), self.v());
                self.set_v(|d| Inst::MaskLoad { wide, d, mask, from });
            }
            5 => {
                use GLoadKind::{I8, I16, U8, U16, W32, W64};
                let (kind, from) = (self.random.pick(&[I8, I16, U8, U16, W32, W64]), self.readable(8));
                self.set_g(|d| Inst::GLoad { kind, d, from });
            }
            6 => {
                let kind = self.random.pick(&[GStoreKind::B1, GStoreKind::B2, GStoreKind::B4, GStoreKind::B8]);
                let (to, a) = (self.memory(8), self.g());
                self.push(Inst::GStore { kind, to, a });
            }
            _ => {
                let (locked, at, a, new) = (self.random.once_in(2), self.memory(4), self.g(), self.g());
                let ops = [Rmw::Add, Rmw::Exchange, Rmw::And, Rmw::Or, Rmw::Xor, Rmw::MinU, Rmw::MaxU, Rmw::MinS, Rmw::MaxS];
                match self.random.below(15) {
                    n @ 12..15 => {
                        let b = [GSrc::Reg(a), GSrc::Imm(n as i32 - 13), GSrc::Imm(1 << 20)][n - 12];
                        let op = self.random.pick(&[G2::add, G2::sub, G2::and, G2::or, G2::xor]);
                        self.push(Inst::Change { op, locked, at, a: b });
                    }
                    n @ 0..9 => self.set_g(|d| Inst::Rmw { op: ops[n], locked, d, at, a }),
                    _ => self.set_g(|d| Inst::CompareExchange { locked, d, at, expected: a, new }),
                }
            }
        }
    }

    fn general(&mut self) {
        let (width, a, b) = (self.width(), self.g(), self.gsrc());
        let shift = self.random.pick(&[GShift::Left, GShift::Right, GShift::ArithmeticRight]);
        match self.random.below(10) {
            0..=2 => {
                let op = self.random.pick(&[G2::add, G2::sub, G2::and, G2::or, G2::xor]);
                self.set_g(|d| Inst::G2 { op, width, d, a, b });
                if self.random.once_in(3) {
                    self.ask_about_zero();
                }
            }
            3 => self.set_g(|d| Inst::GMul { width, d, a, b }),
            4 => {
                let imm = self.random.below(64) as u8;
                self.set_g(|d| Inst::GShift { op: shift, width, d, a, imm });
            }
            5 => {
                let by = self.g();
                self.set_g(|d| Inst::GShiftBy { op: shift, width, d, a, by });
            }
            6 => {
                let imm = self.random.number() >> self.random.below(64);
                self.set_g(|d| Inst::GImm { d, imm });
            }
            7 => {
                let cond = self.cond();
                self.set_g(|d| Inst::Set { cond, width, d, a, b });
            }
            8 => {
                let (cond, x, y) = (self.cond(), self.g(), self.g());
                self.set_g(|d| Inst::Choose { cond, width, a, b, d, x, y });
            }
            _ => {
                let which = self.random.below(4);
                self.set_g(|d| match which {
                    0 => Inst::GMov { width, d, a },
                    1 => Inst::LowestBit { d, a },
                    2 => Inst::ClearLowest { d, a },
                    _ => Inst::PopCount { width, d, a },
                });
            }
        }
    }

    /// Compares with zero, which flags may tell: perhaps another register than that of the last instruction, perhaps more of it.
    fn ask_about_zero(&mut self) {
        if self.random.once_in(3) {
            self.push(Inst::Mark(0));
        }
        let last = match self.program.code.last() {
            Some(Inst::G2 { d, .. }) => *d,
            _ => self.g(),
        };
        let (width, cond) = (self.width(), self.random.pick(&[Cond::Equal, Cond::NotEqual, Cond::Less]));
        let (a, x, y, b) = (if self.g.contains(&last) { last } else { self.g() }, self.g(), self.g(), GSrc::Imm(0));
        let set = self.random.once_in(2);
        self.set_g(|d| match set {
            true => Inst::Set { cond, width, d, a, b },
            false => Inst::Choose { cond, width, a, b, d, x, y },
        });
    }

    /// Stores what a register has, where nothing else is stored.
    fn result(&mut self) {
        let to = Mem::context(self.results);
        self.results += 32;
        if self.random.once_in(2) {
            let v = self.v();
            self.push(Inst::Store { kind: StoreKind::Full, to, v });
        } else {
            let a = self.g();
            self.push(Inst::GStore { kind: GStoreKind::B8, to, a });
        }
    }

    /// Jumps over code under a condition.
    fn branch(&mut self, budget: usize) {
        let (cond, width, a, b, to) = (self.cond(), self.width(), self.g(), self.gsrc(), self.label());
        match self.random.once_in(6) {
            true => self.push(Inst::JumpIfByte { at: Mem::context(FLAG_ADDRESS), to }),
            false => self.push(Inst::JumpIf { cond, width, a, b, to }),
        }
        let (g, v) = (self.g.clone(), self.v.clone());
        self.body(budget / 2);
        if self.random.once_in(2) {
            // With another way.
            let end = self.label();
            self.push(Inst::Jump(end));
            self.push(Inst::Label(to));
            let (first_g, first_v) = (std::mem::replace(&mut self.g, g), std::mem::replace(&mut self.v, v));
            self.body(budget / 2);
            self.push(Inst::Label(end));
            self.g.retain(|reg| first_g.contains(reg));
            self.v.retain(|reg| first_v.contains(reg));
        } else {
            self.push(Inst::Label(to));
            (self.g, self.v) = (g, v);
        }
    }

    /// Jumps to code that is put elsewhere and comes back.
    fn cold(&mut self, budget: usize) {
        let (cond, width, a, b) = (self.cond(), self.width(), self.g(), self.gsrc());
        let (cold, back) = (self.label(), self.label());
        self.push(Inst::JumpIf { cond, width, a, b, to: cold });
        let (g, v) = (self.g.clone(), self.v.clone());
        self.body(budget / 3);
        self.push(Inst::ColdBegin);
        self.push(Inst::Label(cold));
        let (first_g, first_v) = (std::mem::replace(&mut self.g, g), std::mem::replace(&mut self.v, v));
        self.body(budget - budget / 3);
        self.push(Inst::Jump(back));
        self.push(Inst::ColdEnd);
        self.push(Inst::Label(back));
        self.g.retain(|reg| first_g.contains(reg));
        self.v.retain(|reg| first_v.contains(reg));
    }

    /// Runs code several times; sometimes leaves it early.
    fn repeat(&mut self, budget: usize) {
        let (counter, head, end) = (self.program.g(), self.label(), self.label());
        let times = 1 + self.random.number() % 5;
        self.push(Inst::GImm { d: counter, imm: times });
        self.push(Inst::LoopBegin);
        self.push(Inst::Label(head));
        let part = self.random.below(budget + 1);
        self.body(part);
        let left = self.random.once_in(3).then(|| {
            let (cond, width, a, b) = (self.cond(), self.width(), self.g(), self.gsrc());
            self.push(Inst::JumpIf { cond, width, a, b, to: end });
            (self.g.clone(), self.v.clone())
        });
        self.body(budget - part);
        self.push(Inst::G2 { op: G2::sub, width: Width::W32, d: counter, a: counter, b: GSrc::Imm(1) });
        self.push(Inst::JumpIf { cond: Cond::NotEqual, width: Width::W32, a: counter, b: GSrc::Imm(0), to: head });
        self.push(Inst::LoopEnd);
        self.push(Inst::Label(end));
        if let Some((g, v)) = left {
            (self.g, self.v) = (g, v);
        }
    }

    fn body(&mut self, mut budget: usize) {
        self.depth += 1;
        // Moves that are left from outside happen behind.
        let outside = (std::mem::take(&mut self.moves_g), std::mem::take(&mut self.moves_v));
        while budget > 0 {
            if self.random.once_in(3) {
                let left = self.random.below(3);
                self.moves(left);
            }
            let inner = 1 + self.random.below(budget);
            match self.random.below(40) {
                0..=15 => self.vector(),
                16..=23 => self.general(),
                24..=31 => self.memory_access(),
                32..=34 => self.result(),
                35 => {
                    let argument = self.random.number() >> self.random.below(64);
                    self.push(Inst::Call { helper, argument });
                }
                36 => {
                    let mark = self.random.number() as u32;
                    self.push(Inst::Mark(mark));
                }
                37 if self.depth < 5 => {
                    match self.random.once_in(2) {
                        true => self.branch(inner),
                        false => self.cold(inner),
                    }
                    budget -= inner;
                    continue;
                }
                38 | 39 if self.depth < 4 => {
                    self.repeat(inner);
                    budget -= inner;
                    continue;
                }
                _ => self.general(),
            }
            budget -= 1;
        }
        self.moves(0);
        (self.moves_g, self.moves_v) = outside;
        self.depth -= 1;
    }
}

fn check(seed: u64) {
    let mut generator = Generator::new(seed);
    let budget = 1 + generator.random.below(if seed.is_multiple_of(50) { 600 } else { 80 });
    generator.body(budget);
    for _ in 0..generator.random.below(40) {
        generator.result();
    }
    generator.push(Inst::Return);
    let len = generator.results;
    let program = generator.program;
    let mut context = Context::new(len, &mut Random(seed));
    let flag = context.address() as u64 + FLAG as u64;
    context.bytes()[FLAG_ADDRESS..FLAG_ADDRESS + 8].copy_from_slice(&flag.to_le_bytes());
    context.bytes()[FLAG] = (seed % 2) as u8;
    let [machine, model] = program.run_allocated(&mut context);
    if let Some(at) = (0..len).find(|at| machine[*at] != model[*at]) {
        for (n, inst) in program.code.iter().enumerate() {
            eprintln!("{n:4} {inst:?}");
        }
        panic!("seed {seed}: byte {at} is {:02X} instead of {:02X}", machine[at], model[at]);
    }
}

#[test]
fn random_programs() {
    (0..20_000).for_each(check);
}
