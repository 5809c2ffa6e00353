//! Every instruction with its operands in every combination of places: low and high registers, the frame, and the same place twice.
//!
//! Places are given by hand. Before each instruction all registers are loaded from the context, after it all are stored, so that one
//! which was changed without leave shows too.

use super::super::alloc::Allocation;
use super::super::lir::{
    AnyReg, Base, Cond, Fma, G2, GLoadKind, GShift, GSrc, GStoreKind, Inst, LoadKind, Mem, Narrow, Rmw, Shift, Src, StoreKind,
    V2, V2I, V3, V3I, Widen, Width,
};
use super::super::reg::{G, Place, V};
use super::{Context, Program, Random};

/// A set of places. Registers with these numbers live there.
struct Places {
    general: Vec<Place>,
    vectors: Vec<Place>,
}

/// With the frame, and without it, where the encoder's own vector registers are given out too.
fn places() -> [Places; 2] {
    let general = vec![Place::Reg(3), Place::Reg(5), Place::Reg(12), Place::Reg(13), Place::Reg(9)];
    let with = |mut registers: Vec<Place>, slots: u32| {
        registers.extend((0..slots).map(Place::Slot));
        registers
    };
    [
        Places { general: with(general.clone(), 4), vectors: with(vec![Place::Reg(0), Place::Reg(7), Place::Reg(13)], 4) },
        Places { general, vectors: vec![Place::Reg(1), Place::Reg(8), Place::Reg(14), Place::Reg(15)] },
    ]
}

fn slots(places: &[Place]) -> u32 {
    places.iter().filter(|place| matches!(place, Place::Slot(_))).count() as u32
}

/// Where the data that instructions read and write begins in the context, and how much there is.
const DATA: usize = 0;
const DATA_LEN: usize = 1024;
const NAN_LEN: usize = 64;

/// Runs instructions, each alone, and compares everything that they leave.
fn check(places: &Places, instructions: &[Inst], seed: u64) {
    let mut random = Random(seed);
    let (general, vectors) = (places.general.len(), places.vectors.len());
    let line = 8 * general.next_multiple_of(4) + 32 * vectors;
    let mut program =
        Program { general: general as u32, vectors: vectors as u32, scratch: 64, pool: pool(), ..Program::default() };
    // Inputs, then a line of outputs for each instruction.
    let inputs = DATA + DATA_LEN;
    let outputs = inputs + line;
    for (n, inst) in instructions.iter().enumerate() {
        transfer(&mut program, general, vectors, inputs, false);
        // Registers of addresses have addresses in the middle of the data; indices are small.
        if let Some(mem) = memory_of(inst) {
            if let Some((index, _)) = mem.index {
                program.code.push(Inst::GImm { d: index, imm: random.number() % 8 });
            }
            if let Base::Reg(base) = mem.base {
                program.code.push(Inst::Lea { d: base, from: Mem::context(DATA + 256) });
            }
        }
        if let Inst::Gather { base, index, .. } | Inst::GatherWide { base, index, .. } = inst {
            program.code.push(Inst::Lea { d: *base, from: Mem::context(DATA + 256) });
            program.code.push(Inst::Shift { op: Shift::vpsrad, d: *index, a: *index, imm: 27 });
        }
        // Half of the exchanges happen.
        if let Inst::CompareExchange { at, expected, .. } = inst
            && n % 2 == 0
            && at.base != Base::Reg(*expected)
            && at.index.is_none_or(|(index, _)| index != *expected)
        {
            program.code.push(Inst::GLoad { kind: GLoadKind::W32, d: *expected, from: *at });
        }
        program.code.push(*inst);
        if let Inst::Fma { op, d, .. } = inst {
            canonical(&mut program.code, *op, *d, V(vectors as u32));
        }
        // The mask of a gather is used up.
        if let Inst::Gather { mask, .. } | Inst::GatherWide { mask, .. } = inst {
            program.code.push(Inst::Zero { d: *mask });
        }
        transfer(&mut program, general, vectors, outputs + n * line, true);
    }
    program.code.push(Inst::Return);
    let mut context = Context::new(outputs + instructions.len() * line, &mut random);
    let mut allocation = Allocation {
        general: places.general.clone(),
        vectors: places.vectors.clone(),
        general_slots: slots(&places.general),
        vector_slots: slots(&places.vectors),
        saved: Vec::new(),
        spilled: 0.0,
    };
    // Where NaNs are made equal, after everything that could notice; see `canonical`.
    allocation.vectors.push(Place::Reg(4));
    program.vectors += 1;
    let [machine, model] = program.run(&allocation, &mut context);
    if let Some(at) = (0..machine.len()).find(|at| machine[*at] != model[*at]) {
        let n = at.checked_sub(outputs).map(|at| at / line);
        panic!(
            "byte {at}: {:?} leaves {:02X?} instead of {:02X?}",
            n.map(|n| instructions[n]),
            &machine[at / 32 * 32..][..32],
            &model[at / 32 * 32..][..32]
        );
    }
}

/// Gives every NaN of a fused multiply-add the same bits: whose it is depends on the form of the instruction.
pub fn canonical(code: &mut Vec<Inst>, op: Fma, d: V, mask: V) {
    let (compare, constant) = match op {
        Fma::ps => (V3I::vcmpps, 0),
        Fma::pd => (V3I::vcmppd, 32),
    };
    code.push(Inst::V3I { op: compare, d: mask, a: d, b: d.into(), imm: 3 });
    code.push(Inst::Blend { d, a: d, b: Src::Mem(Mem { base: Base::Pool, index: None, disp: constant }), mask });
}

/// The constants of [`canonical`], and some more.
pub fn pool() -> Vec<u8> {
    let mut pool = super::floats::FMA_NAN32.to_le_bytes().repeat(8);
    pool.extend(super::floats::FMA_NAN64.to_le_bytes().repeat(4));
    assert_eq!(pool.len(), NAN_LEN);
    let mut random = Random(1);
    pool.extend((0..256).map(|_| random.number() as u8));
    pool
}

fn transfer(program: &mut Program, general: usize, vectors: usize, at: usize, out: bool) {
    for n in 0..vectors {
        let (v, mem) = (V(n as u32), Mem::context(at + 32 * n));
        program.code.push(match out {
            true => Inst::Store { kind: StoreKind::Full, to: mem, v },
            false => Inst::Load { kind: LoadKind::Full, d: v, from: mem },
        });
    }
    for n in 0..general {
        let (a, mem) = (G(n as u32), Mem::context(at + 32 * vectors + 8 * n));
        program.code.push(match out {
            true => Inst::GStore { kind: GStoreKind::B8, to: mem, a },
            false => Inst::GLoad { kind: GLoadKind::W64, d: a, from: mem },
        });
    }
}

fn memory_of(inst: &Inst) -> Option<Mem> {
    if let Inst::V3 { b: Src::Mem(mem), .. }
    | Inst::V3I { b: Src::Mem(mem), .. }
    | Inst::V2 { a: Src::Mem(mem), .. }
    | Inst::V2I { a: Src::Mem(mem), .. }
    | Inst::Widen { a: Src::Mem(mem), .. }
    | Inst::Blend { b: Src::Mem(mem), .. }
    | Inst::Fma { c: Src::Mem(mem), .. }
    | Inst::Load { from: mem, .. }
    | Inst::Store { to: mem, .. }
    | Inst::MaskLoad { from: mem, .. }
    | Inst::MaskStore { to: mem, .. }
    | Inst::GLoad { from: mem, .. }
    | Inst::GStore { to: mem, .. }
    | Inst::Lea { from: mem, .. }
    | Inst::Prefetch { from: mem }
    | Inst::G2 { b: GSrc::Mem(mem), .. }
    | Inst::GMul { b: GSrc::Mem(mem), .. }
    | Inst::Set { b: GSrc::Mem(mem), .. }
    | Inst::Choose { b: GSrc::Mem(mem), .. }
    | Inst::Rmw { at: mem, .. }
    | Inst::Change { at: mem, .. }
    | Inst::CompareExchange { at: mem, .. } = *inst
    {
        return Some(mem);
    }
    None
}

/// An instruction with its registers replaced by all combinations of those that have places, or by `limit` random ones.
fn everywhere(inst: Inst, places: &Places, limit: usize, seed: u64) -> Vec<Inst> {
    let mut counts = Vec::new();
    let mut copy = inst;
    copy.for_each_reg(&mut |reg, _| {
        counts.push(match reg {
            AnyReg::G(_) => places.general.len(),
            AnyReg::V(_) => places.vectors.len(),
        });
    });
    let all: usize = counts.iter().product();
    let mut random = Random(seed);
    let mut result = Vec::new();
    for n in 0..all.min(limit) {
        let mut number = if all > limit { random.below(all) } else { n };
        let mut inst = inst;
        inst.for_each_reg(&mut |reg, _| match reg {
            AnyReg::G(reg) => {
                *reg = G((number % places.general.len()) as u32);
                number /= places.general.len();
            }
            AnyReg::V(reg) => {
                *reg = V((number % places.vectors.len()) as u32);
                number /= places.vectors.len();
            }
        });
        if allowed(&inst) {
            result.push(inst);
        }
    }
    result
}

/// What nobody may ask for: gathers with one vector twice, and here, where they are prepared one after the other, an address whose
/// registers are one.
fn allowed(inst: &Inst) -> bool {
    if let Inst::Gather { d, index, mask, .. } | Inst::GatherWide { d, index, mask, .. } = inst {
        return d != index && d != mask && index != mask;
    }
    memory_of(inst).is_none_or(|mem| !matches!((mem.base, mem.index), (Base::Reg(base), Some((index, _))) if base == index))
}

const V0: V = V(0);
const G0: G = G(0);

fn memories() -> Vec<Mem> {
    let index = |scale| Some((G0, scale));
    vec![
        Mem { base: Base::Reg(G0), index: None, disp: 0 },
        Mem { base: Base::Reg(G0), index: None, disp: -200 },
        Mem { base: Base::Reg(G0), index: index(1), disp: 3 },
        Mem { base: Base::Reg(G0), index: index(2), disp: 0 },
        Mem { base: Base::Reg(G0), index: index(4), disp: 200 },
        Mem { base: Base::Reg(G0), index: index(8), disp: -64 },
        Mem { base: Base::Context, index: None, disp: DATA as i32 + 5 },
        Mem { base: Base::Context, index: index(4), disp: DATA as i32 + 300 },
    ]
}

fn constants() -> [Mem; 2] {
    [Mem { base: Base::Pool, index: None, disp: 96 }, Mem { base: Base::Pool, index: Some((G0, 8)), disp: 64 }]
}

fn operands() -> Vec<Src> {
    [Src::Reg(V0)].into_iter().chain(memories().into_iter().chain(constants()).map(Src::Mem)).collect()
}

fn general_operands() -> Vec<GSrc> {
    let numbers = [0, 1, -1, 100, 1000, i32::MIN].map(GSrc::Imm);
    let memory = memories().into_iter().chain(constants()).map(GSrc::Mem);
    [GSrc::Reg(G0)].into_iter().chain(numbers).chain(memory).collect()
}

fn run(instructions: impl IntoIterator<Item = Inst>) {
    for (n, inst) in instructions.into_iter().enumerate() {
        for (set, places) in places().iter().enumerate() {
            // Where addresses are, their registers have been tried with every operand by all instructions together.
            let limit = if memory_of(&inst).is_some() { 80 } else { 400 };
            check(places, &everywhere(inst, places, limit, n as u64), (2 * n + set) as u64);
        }
    }
}

#[test]
fn two_vectors() {
    run(operands().into_iter().flat_map(|b| V3::ALL.iter().map(move |op| Inst::V3 { op: *op, d: V0, a: V0, b })));
}

#[test]
fn two_vectors_and_a_number() {
    let numbers = [0, 1, 2, 3, 5, 14, 17, 0x1B, 0x28, 0x31, 0x83, 0xE4, 0xFF];
    run(numbers.into_iter().flat_map(|imm| {
        [operands()[0], operands()[usize::from(imm) % 9 + 1]]
            .into_iter()
            .flat_map(move |b| V3I::ALL.iter().map(move |op| Inst::V3I { op: *op, d: V0, a: V0, b, imm }))
    }));
    // All predicates.
    run((0..32).map(|imm| Inst::V3I { op: V3I::vcmpps, d: V0, a: V0, b: Src::Reg(V0), imm }));
    run((0..32).map(|imm| Inst::V3I { op: V3I::vcmppd, d: V0, a: V0, b: Src::Reg(V0), imm }));
}

#[test]
fn one_vector() {
    run(operands().into_iter().flat_map(|a| {
        let plain = V2::ALL.iter().map(move |op| Inst::V2 { op: *op, d: V0, a });
        let wider = Widen::ALL.iter().map(move |op| Inst::Widen { op: *op, d: V0, a });
        let numbers = [8, 9, 10, 11, 0].into_iter();
        let numbered = numbers.flat_map(move |imm| V2I::ALL.iter().map(move |op| Inst::V2I { op: *op, d: V0, a, imm }));
        plain.chain(wider).chain(numbered)
    }));
    run([0x1B, 0x39, 0xB1, 0xFF]
        .into_iter()
        .flat_map(|imm| [V2I::vpermq, V2I::vpshufd].map(|op| Inst::V2I { op, d: V0, a: Src::Reg(V0), imm })));
    run([0, 1, 5, 31, 32, 63, 64, 255]
        .into_iter()
        .flat_map(|imm| Shift::ALL.iter().map(move |op| Inst::Shift { op: *op, d: V0, a: V0, imm })));
    run(Narrow::ALL.iter().map(|op| Inst::Narrow { op: *op, d: V0, a: V0 }));
    run([
        Inst::ToHalf { d: V0, a: V0 },
        Inst::VMov { d: V0, a: V0 },
        Inst::Zero { d: V0 },
        Inst::Ones { d: V0 },
        Inst::Join { d: V0, low: V0, high: V0 },
        Inst::High { d: V0, a: V0 },
    ]);
}

#[test]
fn three_vectors() {
    run(operands().into_iter().flat_map(|c| {
        let fused = [Fma::ps, Fma::pd].into_iter().map(move |op| Inst::Fma { op, d: V0, a: V0, b: V0, c });
        fused.chain([Inst::Blend { d: V0, a: V0, b: c, mask: V0 }])
    }));
}

#[test]
fn vectors_and_memory() {
    use LoadKind::{Eighth, Full, Half, Halves, I8, I16, Quarter, Splat32, Splat64, U8, U16};
    let loads = [Full, Half, Quarter, Eighth, U8, I8, U16, I16, Halves, Splat32, Splat64];
    run(memories().into_iter().chain(constants()).flat_map(|from| loads.map(|kind| Inst::Load { kind, d: V0, from })));
    let stores = [StoreKind::Full, StoreKind::Half, StoreKind::Quarter, StoreKind::Eighth];
    run(memories().into_iter().flat_map(|to| stores.map(|kind| Inst::Store { kind, to, v: V0 })));
    run(memories().into_iter().flat_map(|mem| {
        [false, true].into_iter().flat_map(move |wide| {
            [Inst::MaskStore { wide, to: mem, mask: V0, v: V0 }, Inst::MaskLoad { wide, d: V0, mask: V0, from: mem }]
        })
    }));
    // More combinations than others have.
    run((0..4).flat_map(|_| {
        [Inst::Gather { d: V0, base: G0, index: V0, mask: V0 }, Inst::GatherWide { d: V0, base: G0, index: V0, mask: V0 }]
    }));
}

#[test]
fn between_vectors_and_general_registers() {
    run([Width::W32, Width::W64].into_iter().flat_map(|width| {
        [Inst::Splat { width, d: V0, a: G0 }, Inst::First { width, d: G0, a: V0 }, Inst::Signs { d: G0, a: V0 }]
    }));
}

const WIDTHS: [Width; 2] = [Width::W32, Width::W64];
const CONDITIONS: [Cond; 10] = [
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
];

#[test]
fn general_registers() {
    for width in WIDTHS {
        let two = [G2::add, G2::sub, G2::and, G2::or, G2::xor];
        run(general_operands().into_iter().flat_map(|b| {
            let two = two.map(|op| Inst::G2 { op, width, d: G0, a: G0, b });
            two.into_iter().chain([Inst::GMul { width, d: G0, a: G0, b }])
        }));
        let shifts = [GShift::Left, GShift::Right, GShift::ArithmeticRight];
        run(shifts.into_iter().flat_map(|op| {
            let by = [0, 1, 31, 32, 63].map(|imm| Inst::GShift { op, width, d: G0, a: G0, imm });
            by.into_iter().chain([Inst::GShiftBy { op, width, d: G0, a: G0, by: G0 }])
        }));
        run([Inst::GMov { width, d: G0, a: G0 }, Inst::PopCount { width, d: G0, a: G0 }]);
        run(CONDITIONS.into_iter().enumerate().flat_map(|(n, cond)| {
            let operands = general_operands();
            // Each condition with registers and some other operand.
            [operands[0], operands[1 + n % 6], operands[7 + n]].into_iter().flat_map(move |b| {
                [Inst::Set { cond, width, d: G0, a: G0, b }, Inst::Choose { cond, width, a: G0, b, d: G0, x: G0, y: G0 }]
            })
        }));
    }
    run([0, 1, u64::MAX, 1 << 31, 1 << 32, 0x1234_5678_9ABC_DEF0].map(|imm| Inst::GImm { d: G0, imm }));
    run([Inst::LowestBit { d: G0, a: G0 }, Inst::ClearLowest { d: G0, a: G0 }]);
}

#[test]
fn general_registers_and_memory() {
    use GLoadKind::{I8, I16, U8, U16, W32, W64};
    use GStoreKind::{B1, B2, B4, B8};
    run(memories()
        .into_iter()
        .chain(constants())
        .flat_map(|from| [U8, I8, U16, I16, W32, W64].map(|kind| Inst::GLoad { kind, d: G0, from })));
    run(memories().into_iter().flat_map(|mem| {
        let stores = [B1, B2, B4, B8].map(|kind| Inst::GStore { kind, to: mem, a: G0 });
        stores.into_iter().chain([Inst::Lea { d: G0, from: mem }])
    }));
    let rmws = [Rmw::Add, Rmw::Exchange, Rmw::And, Rmw::Or, Rmw::Xor, Rmw::MinU, Rmw::MaxU, Rmw::MinS, Rmw::MaxS];
    run(memories().into_iter().flat_map(|at| {
        [false, true].into_iter().flat_map(move |locked| {
            let change = |op, a| Inst::Change { op, locked, at, a };
            let others = [
                Inst::CompareExchange { locked, d: G0, at, expected: G0, new: G0 },
                change(G2::add, GSrc::Reg(G0)),
                change(G2::xor, GSrc::Reg(G0)),
                change(G2::or, GSrc::Imm(1)),
                change(G2::and, GSrc::Imm(-256)),
                change(G2::sub, GSrc::Imm(1 << 20)),
            ];
            rmws.map(|op| Inst::Rmw { op, locked, d: G0, at, a: G0 }).into_iter().chain(others)
        })
    }));
}
