//! Which virtual register lives where: linear scan.
//!
//! A register is held from its first to its last mention, and through every loop that it is mentioned both inside and outside of. Where
//! more are held than there are, the one that is used least for the time it is held goes to the frame, for all of its life. An
//! instruction that finds an operand in the frame reads it there, or through registers that the encoder keeps for that: they are taken away
//! from allocation only if something went to the frame at all.

use super::lir::{AnyReg, Inst, Role};
use super::reg::{G, Place, V};

/// The general registers that allocation gives out. rax, rcx and rdx are the encoder's, r15 is the context, rsp the frame.
const GENERAL: [u8; 11] = [3, 5, 12, 13, 14, 6, 7, 8, 9, 10, 11];

/// Of these, the ones that functions which are called leave as they are.
const KEPT_BY_CALLS: [u8; 5] = [3, 5, 12, 13, 14];

/// Vector registers, if some go to the frame and the encoder needs the last two.
const VECTORS_WITH_FRAME: u8 = 14;

/// What allocation found out.
pub(crate) struct Allocation {
    pub general: Vec<Place>,
    pub vectors: Vec<Place>,
    /// Slots of 8 and of 32 bytes.
    pub general_slots: u32,
    pub vector_slots: u32,
    /// One per call, in order: the registers that it has to leave as they are and would not.
    pub saved: Vec<Saved>,
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

/// The life of one register. Reads happen at even, writes at odd times.
#[derive(Clone, Copy)]
struct Life {
    start: u32,
    end: u32,
    /// How often it is used, iterations counted.
    uses: f32,
    /// A register whose place this one likes to take over.
    hint: u32,
}

const NEVER: Life = Life { start: u32::MAX, end: 0, uses: 0.0, hint: u32::MAX };

impl Life {
    fn mention(&mut self, time: u32, uses: f32) {
        self.start = self.start.min(time);
        self.end = self.end.max(time);
        self.uses += uses;
    }

    fn density(&self) -> f32 {
        self.uses / (self.end - self.start + 1) as f32
    }
}

/// Finds a place for every register.
pub(crate) fn allocate(code: &mut [Inst], general: u32, vectors: u32) -> Allocation {
    let mut lives = Lives { g: vec![NEVER; general as usize], v: vec![NEVER; vectors as usize], calls: Vec::new() };
    lives.find(code);
    let general = scan(&lives.g, &GENERAL);
    let all: [u8; 16] = std::array::from_fn(|n| n as u8);
    let mut vectors = scan(&lives.v, &all);
    if vectors.slots > 0 {
        vectors = scan(&lives.v, &all[..usize::from(VECTORS_WITH_FRAME)]);
    }
    let saved = lives.calls.iter().map(|time| {
        let across = |lives: &[Life], places: &[Place]| {
            lives.iter().zip(places).fold(0u16, |bits, (life, place)| match place {
                Place::Reg(reg) if life.start < *time && life.end > *time => bits | 1 << reg,
                Place::Reg(_) | Place::Slot(_) | Place::Nowhere => bits,
            })
        };
        let kept = KEPT_BY_CALLS.iter().fold(0u16, |bits, reg| bits | 1 << reg);
        Saved { general: across(&lives.g, &general.places) & !kept, vectors: across(&lives.v, &vectors.places) }
    });
    Allocation {
        saved: saved.collect(),
        general: general.places,
        vectors: vectors.places,
        general_slots: general.slots,
        vector_slots: vectors.slots,
    }
}

struct Lives {
    g: Vec<Life>,
    v: Vec<Life>,
    /// When calls happen.
    calls: Vec<u32>,
}

impl Lives {
    fn find(&mut self, code: &mut [Inst]) {
        let mut depth = 0i32;
        let mut loops: Vec<(u32, u32)> = Vec::new();
        let mut open = Vec::new();
        for (inst, n) in code.iter_mut().zip(0u32..) {
            match inst {
                Inst::LoopBegin => {
                    open.push(loops.len());
                    loops.push((2 * n, u32::MAX));
                    depth += 1;
                }
                Inst::LoopEnd => {
                    if let Some(last) = open.pop() {
                        loops[last].1 = 2 * n;
                    }
                    depth -= 1;
                }
                Inst::Call { .. } => self.calls.push(2 * n),
                _ => {}
            }
            let uses = 8f32.powi(depth.min(6));
            let (mut g_read, mut v_read) = (u32::MAX, u32::MAX);
            inst.for_each_reg(&mut |reg, role| {
                let time = 2 * n + u32::from(role == Role::Write);
                match reg {
                    AnyReg::G(reg) => {
                        self.g[reg.0 as usize].mention(time, uses);
                        if role == Role::Read && g_read == u32::MAX {
                            g_read = reg.0;
                        } else if role == Role::Write {
                            self.g[reg.0 as usize].hint = g_read;
                        }
                    }
                    AnyReg::V(reg) => {
                        self.v[reg.0 as usize].mention(time, uses);
                        if role == Role::Read && v_read == u32::MAX {
                            v_read = reg.0;
                        } else if role == Role::Write {
                            self.v[reg.0 as usize].hint = v_read;
                        }
                    }
                }
            });
        }
        // What is mentioned inside and outside of a loop is held all through it.
        let mut open: Vec<(u32, u32)> = Vec::new();
        let mut next = loops.iter();
        let bounds: (Vec<(u32, u32)>, Vec<(u32, u32)>) = (
            self.g.iter().map(|life| (life.start, life.end)).collect(),
            self.v.iter().map(|life| (life.start, life.end)).collect(),
        );
        for inst in code.iter_mut() {
            match inst {
                Inst::LoopBegin => open.extend(next.next().copied()),
                Inst::LoopEnd => {
                    open.pop();
                }
                _ => {}
            }
            if open.is_empty() {
                continue;
            }
            inst.for_each_reg(&mut |reg, _| {
                let (life, (start, end)) = match reg {
                    AnyReg::G(reg) => (&mut self.g[reg.0 as usize], bounds.0[reg.0 as usize]),
                    AnyReg::V(reg) => (&mut self.v[reg.0 as usize], bounds.1[reg.0 as usize]),
                };
                // Outer loops come first; one that holds all mentions holds those of the loops inside it too.
                if let Some((from, to)) = open.iter().find(|(from, to)| start < *from || end > *to) {
                    life.start = life.start.min(*from);
                    life.end = life.end.max(*to);
                }
            });
        }
    }
}

struct Scan {
    places: Vec<Place>,
    slots: u32,
}

fn scan(lives: &[Life], registers: &[u8]) -> Scan {
    let mut order: Vec<u32> = (0..lives.len() as u32).filter(|n| lives[*n as usize].start != u32::MAX).collect();
    order.sort_unstable_by_key(|n| lives[*n as usize].start);
    let mut places = vec![Place::Nowhere; lives.len()];
    let mut slots = 0;
    let mut free: u16 = registers.iter().fold(0, |bits, reg| bits | 1 << reg);
    let mut active: Vec<u32> = Vec::with_capacity(registers.len());
    for n in order {
        let life = &lives[n as usize];
        active.retain(|other| {
            let over = lives[*other as usize].end < life.start;
            if let (true, Place::Reg(reg)) = (over, places[*other as usize]) {
                free |= 1 << reg;
            }
            !over
        });
        let liked = match lives[n as usize].hint {
            u32::MAX => None,
            hint => match places[hint as usize] {
                Place::Reg(reg) if free >> reg & 1 == 1 => Some(reg),
                Place::Reg(_) | Place::Slot(_) | Place::Nowhere => None,
            },
        };
        let reg = liked.or_else(|| registers.iter().copied().find(|reg| free >> reg & 1 == 1));
        if let Some(reg) = reg {
            free &= !(1 << reg);
            places[n as usize] = Place::Reg(reg);
            active.push(n);
            continue;
        }
        let cheapest = active
            .iter()
            .enumerate()
            .min_by(|one, other| lives[*one.1 as usize].density().total_cmp(&lives[*other.1 as usize].density()));
        match cheapest {
            Some((at, other)) if lives[*other as usize].density() < life.density() => {
                places[n as usize] = places[*other as usize];
                places[*other as usize] = Place::Slot(slots);
                active[at] = n;
            }
            Some(_) | None => places[n as usize] = Place::Slot(slots),
        }
        slots += 1;
    }
    Scan { places, slots }
}
