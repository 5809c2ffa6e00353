//! Every instruction that the encoder makes, read back by another disassembler.

use super::super::alloc::Allocation;
use super::super::encode::encode;
use super::super::lir::{
    Base, Cond, Fma, G2, GLoadKind, GShift, GSrc, GStoreKind, Inst, Label, LoadKind, Mem, Narrow, Rmw, Shift, Src, StoreKind, V2,
    V2I, V3, V3I, Widen, Width,
};
use super::super::reg::{G, Place, V};
use Arg::{At, Imm, R8, R16, R32, R64, X, Y};
use iced_x86::{CpuidFeature, Decoder, DecoderOptions, Instruction, OpKind, Register};

/// An operand, as asked for and as read back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Arg {
    Y(u8),
    X(u8),
    R64(u8),
    R32(u8),
    R16(u8),
    R8(u8),
    /// An address, and how many bytes are there.
    At(Place0, usize),
    Imm(i64),
    To(u64),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place0 {
    /// Base, index, scale, displacement.
    Regs(u8, Option<(Index, u8)>, i32),
    Pool(i32),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Index {
    General(u8),
    Vector(u8),
    VectorHalf(u8),
}

/// A mnemonic and operands.
type Asked = (String, Vec<Arg>);

/// The features that a CPU needs to have for this backend, beside those that every x86-64 has.
const FEATURES: [CpuidFeature; 15] = [
    CpuidFeature::INTEL8086,
    CpuidFeature::INTEL186,
    CpuidFeature::INTEL386,
    CpuidFeature::INTEL486,
    CpuidFeature::X64,
    CpuidFeature::CMOV,
    CpuidFeature::SSE,
    CpuidFeature::MULTIBYTENOP,
    CpuidFeature::AVX,
    CpuidFeature::AVX2,
    CpuidFeature::FMA,
    CpuidFeature::BMI1,
    CpuidFeature::BMI2,
    CpuidFeature::F16C,
    CpuidFeature::POPCNT,
];

fn register(register: Register) -> Arg {
    let number = register.number() as u8;
    match () {
        () if register.is_ymm() => Y(number),
        () if register.is_xmm() => X(number),
        () if register.is_gpr64() => R64(number),
        () if register.is_gpr32() => R32(number),
        () if register.is_gpr16() => R16(number),
        // Registers 4 to 7 are ah and its like.
        () if register.is_gpr8() && !(4..8).contains(&number) => R8(if number >= 8 { number - 4 } else { number }),
        () => panic!("{register:?}"),
    }
}

fn argument(inst: &Instruction, n: u32, start: u64, pool: u64) -> Arg {
    let kind = inst.op_kind(n);
    if kind == OpKind::Register {
        return register(inst.op_register(n));
    }
    if kind == OpKind::NearBranch64 {
        return Arg::To(inst.near_branch64() - start);
    }
    if kind == OpKind::Immediate32 {
        return Imm((inst.immediate32() as i32).into());
    }
    if kind != OpKind::Memory {
        return Imm(inst.immediate(n) as i64);
    }
    let (size, base, index) = (inst.memory_size().size(), inst.memory_base(), inst.memory_index());
    if base == Register::RIP {
        return At(Place0::Pool(inst.memory_displacement64().wrapping_sub(pool) as i32), size);
    }
    let index = (index != Register::None).then(|| {
        let number = index.number() as u8;
        let index = match (index.is_ymm(), index.is_xmm()) {
            (true, _) => Index::Vector(number),
            (_, true) => Index::VectorHalf(number),
            (false, false) => Index::General(number),
        };
        (index, inst.memory_index_scale() as u8)
    });
    assert!(base.is_gpr64(), "{inst:?}");
    At(Place0::Regs(base.number() as u8, index, inst.memory_displacement64() as i32), size)
}

/// What the code of an instruction is, with registers in places that have the same numbers.
fn read_back(inst: Inst) -> Vec<Asked> {
    let numbered: Vec<Place> = (0..16).map(Place::Reg).collect();
    let allocation = Allocation {
        general: numbered.clone(),
        vectors: numbered,
        general_slots: 0,
        vector_slots: 0,
        saved: Vec::new(),
        spilled: 0.0,
    };
    let start = encode(&[], 1, 0, &[], &allocation).code_len;
    let encoded = encode(&[Inst::Label(Label(0)), inst], 1, 0, &[0; 64], &allocation);
    let pool = encoded.code_len.next_multiple_of(32) as u64;
    let code = &encoded.bytes[start..encoded.code_len];
    let mut result = Vec::new();
    for inst in Decoder::with_ip(64, code, start as u64, DecoderOptions::NONE) {
        assert!(!inst.is_invalid(), "{code:02X?}");
        assert!(inst.cpuid_features().iter().all(|feature| FEATURES.contains(feature)), "{inst:?} {:?}", inst.cpuid_features());
        let lock = if inst.has_lock_prefix() { "lock " } else { "" };
        let arguments = (0..inst.op_count()).map(|n| argument(&inst, n, start as u64, pool));
        result.push((format!("{lock}{:?}", inst.mnemonic()).to_lowercase(), arguments.collect()));
    }
    result
}

fn check(inst: Inst, asked: &[(&str, &[Arg])]) {
    let asked: Vec<Asked> = asked.iter().map(|(name, args)| (name.to_string(), args.to_vec())).collect();
    assert_eq!(read_back(inst), asked, "{inst:?}");
}

/// The registers that allocation gives out and instructions treat differently, and two others.
const GENERAL: [u8; 8] = [3, 5, 6, 7, 8, 11, 12, 13];
const VECTORS: [u8; 6] = [0, 5, 7, 8, 13, 15];

/// Addresses of all kinds, each with what it has to be read back as.
fn addresses() -> Vec<(Mem, Place0)> {
    let mut result = Vec::new();
    let displacements = [0, 1, -1, 127, -128, 128, -129, 0x1234_5678];
    for disp in displacements {
        result.push((Mem { base: Base::Pool, index: None, disp }, Place0::Pool(disp)));
        let registers = GENERAL.map(|base| (Base::Reg(G(base.into())), base));
        for (base, number) in registers.into_iter().chain([(Base::Context, 15), (Base::Frame, 4)]) {
            result.push((Mem { base, index: None, disp }, Place0::Regs(number, None, disp)));
            for index in GENERAL {
                for scale in [1, 2, 4, 8] {
                    let mem = Mem { base, index: Some((G(index.into()), scale)), disp };
                    result.push((mem, Place0::Regs(number, Some((Index::General(index), scale)), disp)));
                }
            }
        }
    }
    result
}

/// Second operands: registers, and every address, each with how it is read back as 32 or 16 bytes.
fn sources() -> Vec<(Src, Arg, Arg)> {
    let registers = VECTORS.map(|reg| (Src::Reg(V(reg.into())), Y(reg), X(reg)));
    let memory = addresses().into_iter().map(|(mem, place)| (Src::Mem(mem), At(place, 32), At(place, 16)));
    // Each register as often as all addresses, so that it meets every instruction.
    registers.into_iter().cycle().take(600).chain(memory).collect()
}

/// Calls `each` with two registers, in all combinations, over and over.
fn pairs(mut each: impl FnMut(usize, u8, u8)) {
    for n in 0..4000 {
        each(n, VECTORS[n % 6], VECTORS[n / 6 % 6]);
    }
}

fn v(reg: u8) -> V {
    V(reg.into())
}

fn g(reg: u8) -> G {
    G(reg.into())
}

#[test]
fn vectors() {
    let sources = sources();
    for (group, (b, wide, half)) in sources.iter().enumerate() {
        let (b, wide, half) = (*b, *wide, *half);
        let (d, a, mask) = (VECTORS[group % 6], VECTORS[group / 6 % 6], VECTORS[group / 7 % 6]);
        let imm = (group * 37) as u8;
        let number = Imm(imm.into());
        // Registers meet every instruction, addresses take turns.
        let each = |count: usize| if group < 600 { 0..count } else { group % count..group % count + 1 };
        for &op in &V3::ALL[each(V3::ALL.len())] {
            check(Inst::V3 { op, d: v(d), a: v(a), b }, &[(&format!("{op:?}"), &[Y(d), Y(a), wide])]);
        }
        for &op in &V3I::ALL[each(V3I::ALL.len())] {
            check(Inst::V3I { op, d: v(d), a: v(a), b, imm }, &[(&format!("{op:?}"), &[Y(d), Y(a), wide, number])]);
        }
        for &op in &V2::ALL[each(V2::ALL.len())] {
            check(Inst::V2 { op, d: v(d), a: b }, &[(&format!("{op:?}"), &[Y(d), wide])]);
        }
        for &op in &V2I::ALL[each(V2I::ALL.len())] {
            check(Inst::V2I { op, d: v(d), a: b, imm }, &[(&format!("{op:?}"), &[Y(d), wide, number])]);
        }
        for &op in &Widen::ALL[each(Widen::ALL.len())] {
            check(Inst::Widen { op, d: v(d), a: b }, &[(&format!("{op:?}"), &[Y(d), half])]);
        }
        check(Inst::Blend { d: v(d), a: v(a), b, mask: v(mask) }, &[("vblendvps", &[Y(d), Y(a), wide, Y(mask)])]);
        for (op, first, third) in [(Fma::ps, "vfmadd213ps", "vfmadd231ps"), (Fma::pd, "vfmadd213pd", "vfmadd231pd")] {
            let inst = Inst::Fma { op, d: v(d), a: v(a), b: v(mask), c: b };
            let (a, b) = (Y(a), Y(mask));
            match Y(d) {
                d if d == wide => check(inst, &[(third, &[d, a, b])]),
                d if d == b => check(inst, &[(first, &[d, a, wide])]),
                d if d == a => check(inst, &[(first, &[d, b, wide])]),
                d => check(inst, &[("vmovdqa", &[d, a]), (first, &[d, b, wide])]),
            }
        }
    }
}

#[test]
fn vectors_without_memory() {
    pairs(|n, d, a| {
        let imm = (n * 7) as u8;
        let other = VECTORS[n / 36 % 6];
        for &op in Shift::ALL {
            check(Inst::Shift { op, d: v(d), a: v(a), imm }, &[(&format!("{op:?}"), &[Y(d), Y(a), Imm(imm.into())])]);
        }
        for &op in Narrow::ALL {
            check(Inst::Narrow { op, d: v(d), a: v(a) }, &[(&format!("{op:?}"), &[X(d), Y(a)])]);
        }
        check(Inst::ToHalf { d: v(d), a: v(a) }, &[("vcvtps2ph", &[X(d), Y(a), Imm(0)])]);
        check(Inst::High { d: v(d), a: v(a) }, &[("vextracti128", &[X(d), Y(a), Imm(1)])]);
        check(Inst::Join { d: v(d), low: v(a), high: v(other) }, &[("vinserti128", &[Y(d), Y(a), X(other), Imm(1)])]);
        check(Inst::Zero { d: v(d) }, &[("vpxor", &[X(d); 3])]);
        check(Inst::Ones { d: v(d) }, &[("vpcmpeqd", &[Y(d); 3])]);
        match d == a {
            true => check(Inst::VMov { d: v(d), a: v(a) }, &[]),
            false => check(Inst::VMov { d: v(d), a: v(a) }, &[("vmovdqa", &[Y(d), Y(a)])]),
        }
        let general = GENERAL[n / 5 % 8];
        check(Inst::Signs { d: g(general), a: v(a) }, &[("vmovmskps", &[R32(general), Y(a)])]);
        check(Inst::First { width: Width::W32, d: g(general), a: v(a) }, &[("vmovd", &[R32(general), X(a)])]);
        check(Inst::First { width: Width::W64, d: g(general), a: v(a) }, &[("vmovq", &[R64(general), X(a)])]);
        check(
            Inst::Splat { width: Width::W32, d: v(d), a: g(general) },
            &[("vmovd", &[X(d), R32(general)]), ("vpbroadcastd", &[Y(d), X(d)])],
        );
        check(
            Inst::Splat { width: Width::W64, d: v(d), a: g(general) },
            &[("vmovq", &[X(d), R64(general)]), ("vpbroadcastq", &[Y(d), X(d)])],
        );
        if d != a && d != other && a != other {
            let at = |index, scale, size| At(Place0::Regs(general, Some((index, scale)), 0), size);
            check(
                Inst::Gather { d: v(d), base: g(general), index: v(a), mask: v(other) },
                &[("vpxor", &[X(d); 3]), ("vpgatherdd", &[Y(d), at(Index::Vector(a), 4, 4), Y(other)])],
            );
            check(
                Inst::GatherWide { d: v(d), base: g(general), index: v(a), mask: v(other) },
                &[("vpxor", &[X(d); 3]), ("vpgatherdq", &[Y(d), at(Index::VectorHalf(a), 8, 8), Y(other)])],
            );
        }
    });
}

#[test]
fn loads_and_stores() {
    for (n, (mem, place)) in addresses().into_iter().enumerate() {
        let (d, mask, general) = (VECTORS[n % 6], VECTORS[n / 6 % 6], GENERAL[n % 8]);
        for (kind, name, to, size) in [
            (LoadKind::Full, "vmovdqu", Y(d), 32),
            (LoadKind::Half, "vmovdqu", X(d), 16),
            (LoadKind::Quarter, "vmovq", X(d), 8),
            (LoadKind::Eighth, "vmovd", X(d), 4),
            (LoadKind::U8, "vpmovzxbd", Y(d), 8),
            (LoadKind::I8, "vpmovsxbd", Y(d), 8),
            (LoadKind::U16, "vpmovzxwd", Y(d), 16),
            (LoadKind::I16, "vpmovsxwd", Y(d), 16),
            (LoadKind::Halves, "vpmovsxbw", X(d), 8),
            (LoadKind::Splat32, "vpbroadcastd", Y(d), 4),
            (LoadKind::Splat64, "vpbroadcastq", Y(d), 8),
        ] {
            check(Inst::Load { kind, d: v(d), from: mem }, &[(name, &[to, At(place, size)])]);
        }
        for (kind, name, from, size) in [
            (StoreKind::Full, "vmovdqu", Y(d), 32),
            (StoreKind::Half, "vmovdqu", X(d), 16),
            (StoreKind::Quarter, "vmovq", X(d), 8),
            (StoreKind::Eighth, "vmovd", X(d), 4),
        ] {
            check(Inst::Store { kind, to: mem, v: v(d) }, &[(name, &[At(place, size), from])]);
        }
        for (wide, name) in [(false, "vpmaskmovd"), (true, "vpmaskmovq")] {
            let at = At(place, 32);
            check(Inst::MaskStore { wide, to: mem, mask: v(mask), v: v(d) }, &[(name, &[at, Y(mask), Y(d)])]);
            check(Inst::MaskLoad { wide, d: v(d), mask: v(mask), from: mem }, &[(name, &[Y(d), Y(mask), at])]);
        }
        for (kind, name, to, size) in [
            (GLoadKind::U8, "movzx", R32(general), 1),
            (GLoadKind::I8, "movsx", R32(general), 1),
            (GLoadKind::U16, "movzx", R32(general), 2),
            (GLoadKind::I16, "movsx", R32(general), 2),
            (GLoadKind::W32, "mov", R32(general), 4),
            (GLoadKind::W64, "mov", R64(general), 8),
        ] {
            check(Inst::GLoad { kind, d: g(general), from: mem }, &[(name, &[to, At(place, size)])]);
        }
        for (kind, from, size) in [
            (GStoreKind::B1, R8(general), 1),
            (GStoreKind::B2, R16(general), 2),
            (GStoreKind::B4, R32(general), 4),
            (GStoreKind::B8, R64(general), 8),
        ] {
            check(Inst::GStore { kind, to: mem, a: g(general) }, &[("mov", &[At(place, size), from])]);
        }
        check(Inst::Lea { d: g(general), from: mem }, &[("lea", &[R64(general), At(place, 0)])]);
        check(Inst::Prefetch { from: mem }, &[("prefetcht0", &[At(place, 1)])]);
        check(
            Inst::JumpIfByte { at: mem, to: Label(0) },
            &[("mov", &[R64(0), At(place, 8)]), ("cmp", &[At(Place0::Regs(0, None, 0), 1), Imm(0)]), ("jne", &[Arg::To(0)])],
        );
        for (op, name) in [(G2::add, "add"), (G2::sub, "sub"), (G2::and, "and"), (G2::or, "or"), (G2::xor, "xor")] {
            let locked = format!("lock {name}");
            let change = |locked, a| Inst::Change { op, locked, at: mem, a };
            check(change(false, GSrc::Reg(g(general))), &[(name, &[At(place, 4), R32(general)])]);
            check(change(true, GSrc::Reg(g(general))), &[(&locked, &[At(place, 4), R32(general)])]);
            check(change(false, GSrc::Imm(5)), &[(name, &[At(place, 4), Imm(5)])]);
            check(change(true, GSrc::Imm(1 << 20)), &[(&locked, &[At(place, 4), Imm(1 << 20)])]);
        }
        for op in [Rmw::Add, Rmw::Exchange] {
            let name = if op == Rmw::Add { "lock xadd" } else { "xchg" };
            let mut asked = Vec::new();
            // An address with an index is computed first.
            let mut at = At(place, 4);
            if let Place0::Regs(_, Some(_), _) = place {
                asked.push(("lea".to_owned(), vec![R64(1), At(place, 0)]));
                at = At(Place0::Regs(1, None, 0), 4);
            }
            asked.push(("mov".to_owned(), vec![R32(0), R32(general)]));
            asked.push((name.to_owned(), vec![at, R32(0)]));
            asked.push(("mov".to_owned(), vec![R64(3), R64(0)]));
            assert_eq!(read_back(Inst::Rmw { op, locked: true, d: g(3), at: mem, a: g(general) }), asked);
        }
    }
}

const CONDITIONS: [(Cond, &str); 10] = [
    (Cond::Equal, "e"),
    (Cond::NotEqual, "ne"),
    (Cond::Below, "b"),
    (Cond::AboveEqual, "ae"),
    (Cond::Above, "a"),
    (Cond::BelowEqual, "be"),
    (Cond::Less, "l"),
    (Cond::GreaterEqual, "ge"),
    (Cond::Greater, "g"),
    (Cond::LessEqual, "le"),
];

#[test]
fn general_registers() {
    for n in 0..512 {
        let (d, a, b) = (GENERAL[n % 8], GENERAL[n / 8 % 8], GENERAL[n / 64 % 8]);
        for width in [Width::W32, Width::W64] {
            let r = |reg| match width {
                Width::W32 => R32(reg),
                Width::W64 => R64(reg),
            };
            for op in [G2::sub, G2::and, G2::or, G2::xor, G2::add] {
                let name = format!("{op:?}");
                check(Inst::G2 { op, width, d: g(d), a: g(d), b: GSrc::Reg(g(b)) }, &[(&name, &[r(d), r(b)])]);
                for imm in [1, -1, 127, 128, -128, -129, i32::MAX, i32::MIN] {
                    let number = imm.into();
                    let inst = Inst::G2 { op, width, d: g(d), a: g(d), b: GSrc::Imm(imm) };
                    check(inst, &[(&name, &[r(d), Imm(number)])]);
                    let mul = Inst::GMul { width, d: g(d), a: g(a), b: GSrc::Imm(imm) };
                    check(mul, &[("imul", &[r(d), r(a), Imm(number)])]);
                }
            }
            for (op, fixed, by_register) in
                [(GShift::Left, "shl", "shlx"), (GShift::Right, "shr", "shrx"), (GShift::ArithmeticRight, "sar", "sarx")]
            {
                let imm = 1 + (n % 31) as u8;
                let inst = Inst::GShift { op, width, d: g(d), a: g(d), imm };
                check(inst, &[(fixed, &[r(d), Imm(imm.into())])]);
                let inst = Inst::GShiftBy { op, width, d: g(d), a: g(a), by: g(b) };
                check(inst, &[(by_register, &[r(d), r(a), r(b)])]);
            }
            check(Inst::GMul { width, d: g(d), a: g(d), b: GSrc::Reg(g(b)) }, &[("imul", &[r(d), r(b)])]);
            check(Inst::PopCount { width, d: g(d), a: g(a) }, &[("popcnt", &[r(d), r(a)])]);
            for (cond, name) in CONDITIONS {
                let compare = ("cmp", &[r(a), r(b)][..]);
                check(
                    Inst::JumpIf { cond, width, a: g(a), b: GSrc::Reg(g(b)), to: Label(0) },
                    &[compare, (&format!("j{name}"), &[Arg::To(0)])],
                );
                check(
                    Inst::Set { cond, width, d: g(d), a: g(a), b: GSrc::Reg(g(b)) },
                    &[compare, (&format!("set{name}"), &[R8(d)]), ("movzx", &[R32(d), R8(d)])],
                );
                let x = GENERAL[n % 7];
                if x != d {
                    check(
                        Inst::Choose { cond, width, a: g(a), b: GSrc::Reg(g(b)), d: g(d), x: g(x), y: g(d) },
                        &[compare, (&format!("cmov{name}"), &[R64(d), R64(x)])],
                    );
                }
            }
        }
        check(Inst::LowestBit { d: g(d), a: g(a) }, &[("tzcnt", &[R64(d), R64(a)])]);
        check(Inst::ClearLowest { d: g(d), a: g(a) }, &[("blsr", &[R64(d), R64(a)])]);
        check(Inst::GMov { width: Width::W32, d: g(d), a: g(a) }, &[("mov", &[R32(d), R32(a)])]);
    }
}

#[test]
fn numbers() {
    for d in GENERAL {
        check(Inst::GImm { d: g(d), imm: 0 }, &[("xor", &[R32(d), R32(d)])]);
        for imm in [1, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF] {
            check(Inst::GImm { d: g(d), imm }, &[("mov", &[R32(d), Imm((imm as i32).into())])]);
        }
        for imm in [u64::MAX, 1 << 32, 1 << 63, 0xFFFF_FFFF_8000_0000, 0x0123_4567_89AB_CDEF] {
            check(Inst::GImm { d: g(d), imm }, &[("mov", &[R64(d), Imm(imm as i64)])]);
        }
    }
}
