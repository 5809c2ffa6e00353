//! Which virtual register lives where: linear scan.
//!
//! A register is held from its first to its last mention, and through every loop that it is mentioned both inside and outside of. Where
//! more are held than there are, the one that is used least for the time it is held goes to the frame, for all of its life. An
//! instruction that finds an operand in the frame reads it there, or through registers that the encoder keeps for that: they are taken away
//! from allocation only if something went to the frame at all.
//!
//! A value that is computed only to be moved to another register, as loop variables are at the end of a loop, is computed there in the
//! first place where nothing reads the old value in between.
//!
//! All of it is one walk over the code, and one over the lives in the order of their beginnings for each kind of register; the time is
//! linear in both.

use super::fold::operand;
use super::lir::{AnyReg, Inst, Role, Src, Width};
use super::reg::{G, Place, V};
use crate::faults::Fault;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The general registers that allocation gives out. rax, rcx and rdx are the encoder's, r15 is the context, rsp the frame.
const GENERAL: [u8; 11] = [3, 5, 12, 13, 14, 6, 7, 8, 9, 10, 11];

/// Of these, as bits, the ones that functions which are called leave as they are.
const KEPT_BY_CALLS: u16 = 1 << 3 | 1 << 5 | 1 << 12 | 1 << 13 | 1 << 14;

const VECTORS: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

/// Vector registers, if some go to the frame and the encoder needs the last two.
const VECTORS_WITH_FRAME: usize = 14;

/// What allocation found out.
pub(crate) struct Allocation {
    pub general: Vec<Place>,
    pub vectors: Vec<Place>,
    /// Slots of 8 and of 32 bytes.
    pub general_slots: u32,
    pub vector_slots: u32,
    /// One per call, in order: the registers that it has to leave as they are and would not.
    pub saved: Vec<Saved>,
    /// How many instructions only bring vectors to the frame or back, as a part of those on vectors, iterations counted.
    pub spilled: f32,
}

/// Registers that are held across a call, as bits.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Saved {
    pub general: u16,
    pub vectors: u16,
}

impl Allocation {
    pub fn g(&self, reg: G) -> Place {
        self.general[reg.0 as usize]
    }

    pub fn v(&self, reg: V) -> Place {
        self.vectors[reg.0 as usize]
    }
}

/// Finds a place for every register.
pub(crate) fn allocate(code: &mut [Inst], general: u32, vectors: u32, fault: Option<Fault>) -> Allocation {
    let mut walk = Walk::new(general, vectors);
    walk.find(code, fault == Some(Fault::LoopLivesCut));
    let Walk { mut g, mut v, calls, moves, .. } = walk;
    for at in moves {
        compute_in_place(code, at, &mut g, &mut v, fault == Some(Fault::MovedCarelessly));
    }
    v.reuse_early = fault == Some(Fault::SlotsReusedEarly);
    let places_g = g.scan(code, &GENERAL, true).unwrap_or_default();
    let places_v =
        v.scan(code, &VECTORS, false).or_else(|| v.scan(code, &VECTORS[..VECTORS_WITH_FRAME], true)).unwrap_or_default();
    let mut saved = vec![Saved::default(); calls.len()];
    g.across(&places_g.places, &calls, |call, bits| saved[call].general = bits & !KEPT_BY_CALLS);
    if fault != Some(Fault::CallsSaveNothing) {
        v.across(&places_v.places, &calls, |call, bits| saved[call].vectors = bits);
    }
    let spilled = if places_v.slots > 0 { spilled(code, &places_v.places) } else { 0.0 };
    Allocation {
        saved,
        spilled,
        general: places_g.places,
        vectors: places_v.places,
        general_slots: places_g.slots,
        vector_slots: places_v.slots,
    }
}

/// The life of one register. Reads happen at even, writes at odd times.
#[derive(Clone, Copy)]
struct Life {
    start: u32,
    end: u32,
    /// How often it is used, iterations counted.
    uses: f32,
    /// How many instructions write it.
    writes: u32,
    /// The innermost loop that all of its mentions are in.
    home: u32,
    /// A loop that it is held to the end of.
    held: u32,
}

const NONE: u32 = u32::MAX;
const NEVER: Life = Life { start: NONE, end: 0, uses: 0.0, writes: 0, home: NONE, held: NONE };

impl Life {
    fn density(&self) -> f32 {
        self.uses / (self.end - self.start + 1) as f32
    }

    /// The instruction that mentions it first.
    fn first(&self) -> usize {
        self.start as usize / 2
    }
}

struct Loop {
    /// The loop around it.
    outer: u32,
    depth: u32,
    start: u32,
    end: u32,
}

/// The lives of all registers of one kind.
struct Lives {
    lives: Vec<Life>,
    /// Those that live at all, in the order of their beginnings.
    order: Vec<u32>,
    /// A mistake that is made on purpose: slots are given out before they are free.
    reuse_early: bool,
}

struct Walk {
    g: Lives,
    v: Lives,
    loops: Vec<Loop>,
    /// When calls happen.
    calls: Vec<u32>,
    /// Moves of one register to another.
    moves: Vec<usize>,
}

impl Walk {
    fn new(general: u32, vectors: u32) -> Walk {
        let lives =
            |count| Lives { lives: vec![NEVER; count as usize], order: Vec::with_capacity(count as usize), reuse_early: false };
        // All of the code is in loop 0, which nothing is outside of.
        let loops = vec![Loop { outer: 0, depth: 0, start: 0, end: u32::MAX - 1 }];
        Walk { g: lives(general), v: lives(vectors), loops, calls: Vec::new(), moves: Vec::new() }
    }

    fn find(&mut self, code: &mut [Inst], cut: bool) {
        let mut inside = 0u32;
        let mut weight = 1f32;
        let mut cold = 0;
        for (inst, n) in code.iter_mut().zip(0u32..) {
            if let Inst::LoopBegin = inst {
                let depth = self.loops[inside as usize].depth + 1;
                self.loops.push(Loop { outer: inside, depth, start: 2 * n, end: 2 * n });
                inside = self.loops.len() as u32 - 1;
                weight = weight_at(depth);
            } else if let Inst::LoopEnd = inst {
                let ended = &mut self.loops[inside as usize];
                ended.end = 2 * n;
                inside = ended.outer;
                weight = weight_at(self.loops[inside as usize].depth);
            } else if let Inst::Call { .. } = inst {
                self.calls.push(2 * n);
            } else if let Inst::VMov { .. } | Inst::GMov { width: Width::W64, .. } = inst {
                self.moves.push(n as usize);
            }
            cold += inst.cold_depth();
            let (g, v, loops) = (&mut self.g, &mut self.v, &self.loops);
            let weight = if cold > 0 { 0.01 } else { weight };
            inst.for_each_reg(&mut |reg, role| {
                let writes = matches!(role, Role::Write | Role::Early | Role::Clobber);
                let time = 2 * n + u32::from(role == Role::Write);
                match reg {
                    AnyReg::G(reg) => g.mention(reg.0, time, writes, weight, inside, loops),
                    AnyReg::V(reg) => v.mention(reg.0, time, writes, weight, inside, loops),
                }
            });
        }
        for lives in [&mut self.g, &mut self.v] {
            for life in &mut lives.lives {
                if life.held != NONE && !cut {
                    life.end = life.end.max(self.loops[life.held as usize].end);
                }
            }
        }
    }
}

/// How often code in so many loops runs, as a guess.
fn weight_at(depth: u32) -> f32 {
    8f32.powi(depth.min(6) as i32)
}

/// How many instructions only bring vectors to the frame or back, as a part of those on vectors.
fn spilled(code: &mut [Inst], places: &[Place]) -> f32 {
    let in_frame = |reg: &V| matches!(places[reg.0 as usize], Place::Slot(_));
    let (mut all, mut moves) = (1f32, 0f32);
    let (mut depth, mut cold) = (0u32, 0);
    for inst in code {
        depth += u32::from(matches!(inst, Inst::LoopBegin));
        depth -= u32::from(matches!(inst, Inst::LoopEnd));
        cold += inst.cold_depth();
        let (mut mentions, mut away) = (0u32, 0u32);
        inst.for_each_reg(&mut |reg, _| {
            if let AnyReg::V(reg) = reg {
                mentions += 1;
                away += u32::from(in_frame(reg));
            }
        });
        if mentions == 0 {
            continue;
        }
        // One operand is read where it is, and a move is a load or a store anyway.
        let exchanged = matches!(inst, Inst::V3 { op, a, b: Src::Reg(b), .. } if op.commutes() && in_frame(a) && !in_frame(b));
        let in_place = matches!(operand(inst), Some(Src::Reg(reg)) if in_frame(reg));
        let saved = u32::from(away > 0 && (exchanged || in_place || matches!(inst, Inst::VMov { .. })));
        let weight = if cold > 0 { 0.01 } else { weight_at(depth) };
        all += weight;
        moves += weight * (away - saved) as f32;
    }
    moves / all
}

impl Lives {
    #[inline]
    fn mention(&mut self, reg: u32, time: u32, writes: bool, weight: f32, inside: u32, loops: &[Loop]) {
        let life = &mut self.lives[reg as usize];
        life.uses += weight;
        life.writes += u32::from(writes);
        if life.start == NONE {
            life.start = time;
            life.home = inside;
            self.order.push(reg);
        } else if life.home != inside {
            life.enter(inside, loops);
        }
        life.end = life.end.max(time);
    }
}

impl Life {
    /// A mention in another loop: the register is held through the outermost loops that have one mention and not the other.
    fn enter(&mut self, inside: u32, loops: &[Loop]) {
        let (mut here, mut there) = (self.home, inside);
        while here != there {
            let (one, other) = (&loops[here as usize], &loops[there as usize]);
            if one.depth >= other.depth {
                self.start = self.start.min(one.start);
                here = one.outer;
            } else {
                // This one is not over yet.
                self.held = there;
                there = other.outer;
            }
        }
        self.home = here;
    }
}

/// How far before a move a value may be computed to be computed in place.
const REACH: usize = 64;

/// Makes a move unnecessary: if what is moved was computed for that alone, in the same stretch of code without jumps, and nobody mentions the
/// register that it is moved to since then, it is computed there.
fn compute_in_place(code: &mut [Inst], at: usize, g: &mut Lives, v: &mut Lives, careless: bool) {
    let (lives, from, to) = if let Inst::VMov { d, a } = code[at] {
        (v, Register::V(a), Register::V(d))
    } else if let Inst::GMov { d, a, .. } = code[at] {
        (g, Register::G(a), Register::G(d))
    } else {
        return;
    };
    let moved = lives.lives[from.number()];
    let first = moved.first();
    if from == to || moved.writes != 1 || moved.start % 2 == 0 || moved.end != 2 * at as u32 || at - first > REACH {
        return;
    }
    let between = &mut code[first + 1..at];
    if between.iter_mut().any(|inst| inst.is_control() || to.is_mentioned(inst) && !careless) {
        return;
    }
    code[first..=at].iter_mut().for_each(|inst| from.becomes(to, inst));
    let life = &mut lives.lives[to.number()];
    life.start = life.start.min(moved.start);
    life.uses += moved.uses;
    lives.lives[from.number()] = NEVER;
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Register {
    G(G),
    V(V),
}

impl Register {
    fn number(self) -> usize {
        match self {
            Register::G(G(number)) | Register::V(V(number)) => number as usize,
        }
    }

    fn is_mentioned(self, inst: &mut Inst) -> bool {
        let mut mentioned = false;
        inst.for_each_reg(&mut |reg, _| {
            mentioned |= match reg {
                AnyReg::G(reg) => self == Register::G(*reg),
                AnyReg::V(reg) => self == Register::V(*reg),
            }
        });
        mentioned
    }

    fn becomes(self, to: Register, inst: &mut Inst) {
        inst.for_each_reg(&mut |reg, _| match (reg, self, to) {
            (AnyReg::G(reg), Register::G(own), Register::G(to)) if *reg == own => *reg = to,
            (AnyReg::V(reg), Register::V(own), Register::V(to)) if *reg == own => *reg = to,
            _ => {}
        });
    }
}

#[derive(Default)]
struct Scan {
    places: Vec<Place>,
    slots: u32,
}

impl Lives {
    /// Gives registers out. `None` if there are not enough and none may go to the frame.
    fn scan(&mut self, code: &[Inst], registers: &[u8], frame: bool) -> Option<Scan> {
        let lives = &self.lives;
        self.order.retain(|reg| lives[*reg as usize].start != NONE);
        // Mostly in order already.
        self.order.sort_by_key(|reg| lives[*reg as usize].start);
        let all: u16 = registers.iter().fold(0, |bits, reg| bits | 1 << reg);
        let mut places = vec![Place::Nowhere; lives.len()];
        let mut spilled = false;
        let mut free = all;
        let mut owners = [0u32; 16];
        // How densely they are used, found out when that is asked for.
        let mut densities = [None; 16];
        // No register that is given out becomes free before this.
        let mut next_end = u32::MAX;
        for reg in &self.order {
            let life = &lives[*reg as usize];
            if next_end < life.start {
                next_end = u32::MAX;
                for used in ones(all & !free) {
                    match lives[owners[used as usize] as usize].end {
                        end if end < life.start => free |= 1 << used,
                        end => next_end = next_end.min(end),
                    }
                }
            }
            let place = if free != 0 {
                let liked = likes(life, code).into_iter().find_map(|other| match places.get(other as usize) {
                    Some(Place::Reg(place)) if free >> place & 1 == 1 => Some(*place),
                    Some(Place::Reg(_) | Place::Slot(_) | Place::Nowhere) | None => None,
                });
                liked.or_else(|| registers.iter().copied().find(|place| free >> place & 1 == 1))
            } else if frame {
                spilled = true;
                let mut density =
                    |used: u8| *densities[used as usize].get_or_insert_with(|| lives[owners[used as usize] as usize].density());
                let cheapest = ones(all).map(|used| (used, density(used))).min_by(|(_, one), (_, other)| one.total_cmp(other));
                cheapest.filter(|(_, density)| *density < life.density()).map(|(used, _)| {
                    places[owners[used as usize] as usize] = Place::Slot(0);
                    used
                })
            } else {
                return None;
            };
            places[*reg as usize] = match place {
                Some(place) => {
                    free &= !(1 << place);
                    owners[place as usize] = *reg;
                    densities[place as usize] = None;
                    next_end = next_end.min(life.end);
                    Place::Reg(place)
                }
                None => Place::Slot(0),
            };
        }
        let slots = if spilled { self.number_slots(&mut places, self.reuse_early) } else { 0 };
        Some(Scan { places, slots })
    }

    /// Gives slots of the frame to what is there, each to many as long as they do not live at the same time.
    fn number_slots(&self, places: &mut [Place], early: bool) -> u32 {
        let mut used: BinaryHeap<Reverse<(u32, u32)>> = BinaryHeap::new();
        let mut slots = 0;
        for reg in &self.order {
            let life = &self.lives[*reg as usize];
            if let Place::Slot(slot) = &mut places[*reg as usize] {
                *slot = match used.peek() {
                    Some(Reverse((end, slot))) if *end < life.start || early => {
                        let slot = *slot;
                        used.pop();
                        slot
                    }
                    Some(_) | None => {
                        slots += 1;
                        slots - 1
                    }
                };
                used.push(Reverse((life.end, *slot)));
            }
        }
        slots
    }

    /// Tells for each call which registers are held across it.
    fn across(&self, places: &[Place], calls: &[u32], mut tell: impl FnMut(usize, u16)) {
        let mut ends = [0u32; 16];
        let mut calls = calls.iter().copied().enumerate().peekable();
        let mut tell_before = |time: u32, ends: &[u32; 16]| {
            while let Some((call, at)) = calls.next_if(|(_, at)| *at < time) {
                tell(call, (0..16).fold(0, |bits, reg| bits | u16::from(ends[reg] > at) << reg));
            }
        };
        for reg in &self.order {
            let life = &self.lives[*reg as usize];
            tell_before(life.start, &ends);
            if let Place::Reg(place) = places[*reg as usize] {
                ends[place as usize] = life.end;
            }
        }
        tell_before(u32::MAX, &ends);
    }
}

/// The registers whose places a register that begins its life likes to take over: those that an instruction needs to have where the
/// result goes.
fn likes(life: &Life, code: &[Inst]) -> [u32; 3] {
    let inst = code[life.first()];
    if let Inst::Fma { a, b, c, .. } = inst {
        match c {
            Src::Reg(c) => [c.0, a.0, b.0],
            Src::Mem(_) => [a.0, b.0, NONE],
        }
    } else if let Inst::VMov { a, .. } = inst {
        [a.0, NONE, NONE]
    } else if let Inst::G2 { a, .. } | Inst::GMul { a, .. } | Inst::GShift { a, .. } | Inst::GMov { a, .. } = inst {
        [a.0, NONE, NONE]
    } else if let Inst::Choose { x, y, .. } = inst {
        [y.0, x.0, NONE]
    } else {
        [NONE; 3]
    }
}

/// The numbers of the bits that are one.
fn ones(mut set: u16) -> impl Iterator<Item = u8> {
    std::iter::from_fn(move || {
        let lowest = set.trailing_zeros();
        set &= set.wrapping_sub(1);
        (lowest < 16).then_some(lowest as u8)
    })
}
