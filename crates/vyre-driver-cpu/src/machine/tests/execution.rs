//! Whole small programs: control, calls, memory next to forbidden pages, threads, frames.

use super::super::lir::{
    Base, Cond, G2, GLoadKind, GSrc, GStoreKind, Inst, Label, LoadKind, Mem, Rmw, Shift, StoreKind, V3, Width,
};
use super::super::reg::{G, V};
use super::{Context, Program, Random, call};
use std::arch::asm;

/// Runs a program with places of allocation, and compares.
fn check(program: Program, len: usize) -> Vec<u8> {
    let mut context = Context::new(len, &mut Random(7));
    let [machine, model] = program.run_allocated(&mut context);
    assert_eq!(machine, model);
    machine
}

/// Spoils every register that a function may, and adds to what is in the scratch area and in the context.
pub extern "sysv64" fn helper(frame: *mut u8, context: *mut u8, argument: u64) {
    // SAFETY: these registers are the function's to change, which the compiler is told; both places have 8 bytes.
    unsafe {
        asm!(
            "vpcmpeqd ymm0, ymm0, ymm0", "vmovdqa ymm1, ymm0", "vmovdqa ymm2, ymm0", "vmovdqa ymm3, ymm0", "vmovdqa ymm4, ymm0",
            "vmovdqa ymm5, ymm0", "vmovdqa ymm6, ymm0", "vmovdqa ymm7, ymm0", "vmovdqa ymm8, ymm0", "vmovdqa ymm9, ymm0",
            "vmovdqa ymm10, ymm0", "vmovdqa ymm11, ymm0", "vmovdqa ymm12, ymm0", "vmovdqa ymm13, ymm0", "vmovdqa ymm14, ymm0",
            "vmovdqa ymm15, ymm0", "mov rcx, 3", "mov rsi, 5", "mov rdi, 7", "mov r8, 9", "mov r9, 11", "mov r10, 13", "mov r11, 15",
            "vzeroupper",
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
            out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _, out("xmm12") _, out("xmm13") _, out("xmm14") _,
            out("xmm15") _, out("rcx") _, out("rsi") _, out("rdi") _, out("r8") _, out("r9") _, out("r10") _, out("r11") _,
        );
        let frame = frame.cast::<u64>();
        frame.write_unaligned(frame.read_unaligned().wrapping_mul(3).wrapping_add(argument));
        let context = context.cast::<u64>();
        context.write_unaligned(context.read_unaligned() ^ frame.read_unaligned());
    }
}

fn load(program: &mut Program, at: usize) -> V {
    let d = program.v();
    program.code.push(Inst::Load { kind: LoadKind::Full, d, from: Mem::context(at) });
    d
}

fn store(program: &mut Program, at: usize, v: V) {
    program.code.push(Inst::Store { kind: StoreKind::Full, to: Mem::context(at), v });
}

#[test]
fn calls_keep_all_registers() {
    for count in [1, 5, 15, 16, 17, 60] {
        let mut program = Program { scratch: 8, ..Program::default() };
        program.code.push(Inst::GStore { kind: GStoreKind::B8, to: Mem::frame(0), a: G(0) });
        program.code.insert(0, Inst::GImm { d: G(0), imm: 5 });
        program.general = 1;
        let vectors: Vec<V> = (0..count).map(|n| load(&mut program, 32 + 32 * n)).collect();
        let general: Vec<G> = (0..count)
            .map(|n| {
                let d = program.g();
                program.code.push(Inst::GLoad { kind: GLoadKind::W64, d, from: Mem::context(32 + 8 * n) });
                d
            })
            .collect();
        for argument in [0, 1, u64::MAX, 1 << 40] {
            program.code.push(Inst::Call { helper, argument });
        }
        for (n, v) in vectors.iter().enumerate() {
            store(&mut program, 4096 + 32 * n, *v);
        }
        for (n, a) in general.iter().enumerate() {
            program.code.push(Inst::GStore { kind: GStoreKind::B8, to: Mem::context(8192 + 8 * n), a: *a });
        }
        program.code.push(Inst::Return);
        check(program, 16384);
    }
}

#[test]
fn the_caller_finds_its_registers_as_they_were() {
    let mut program = Program { scratch: 8, ..Program::default() };
    let numbers: Vec<G> = (0..14)
        .map(|n| {
            let d = program.g();
            program.code.push(Inst::GImm { d, imm: n });
            d
        })
        .collect();
    program.code.push(Inst::Call { helper, argument: 1 });
    for (n, a) in numbers.iter().enumerate() {
        program.code.push(Inst::GStore { kind: GStoreKind::B8, to: Mem::context(8 * n), a: *a });
    }
    program.code.push(Inst::Return);
    let allocation = program.allocate();
    let code = program.assemble(&allocation);
    let mut context = Context::new(256, &mut Random(1));
    let changed: u64;
    // SAFETY: the code is a function with this convention; what it may change is told.
    unsafe {
        asm!(
            "push rbx", "push rbp",
            "mov rbx, 0x1111", "mov rbp, 0x2222", "mov r12, 0x3333", "mov r13, 0x4444", "mov r14, 0x5555", "mov r15, 0x6666",
            "call rax",
            "xor rbx, 0x1111", "xor rbp, 0x2222", "xor r12, 0x3333", "xor r13, 0x4444", "xor r14, 0x5555", "xor r15, 0x6666",
            "mov rax, rbx", "or rax, rbp", "or rax, r12", "or rax, r13", "or rax, r14", "or rax, r15",
            "pop rbp", "pop rbx",
            inout("rax") code.entry() => changed,
            in("rdi") context.address(),
            out("r12") _, out("r13") _, out("r14") _, out("r15") _,
            clobber_abi("sysv64"),
        );
    }
    assert_eq!(changed, 0);
}

/// The sum of 1 to n, in a loop with a loop inside.
#[test]
fn loops() {
    let mut program = Program::default();
    let (outer, inner, sum) = (program.g(), program.g(), program.g());
    let (head, inner_head, end) = (Label(0), Label(1), Label(2));
    program.labels = 3;
    let one = |op, d| Inst::G2 { op, width: Width::W64, d, a: d, b: GSrc::Imm(1) };
    program.code = vec![
        Inst::GImm { d: sum, imm: 0 },
        Inst::GImm { d: outer, imm: 0 },
        Inst::LoopBegin,
        Inst::Label(head),
        Inst::JumpIf { cond: Cond::Equal, width: Width::W32, a: outer, b: GSrc::Imm(100), to: end },
        one(G2::add, outer),
        Inst::GMov { width: Width::W64, d: inner, a: outer },
        Inst::LoopBegin,
        Inst::Label(inner_head),
        one(G2::add, sum),
        one(G2::sub, inner),
        Inst::JumpIf { cond: Cond::NotEqual, width: Width::W64, a: inner, b: GSrc::Imm(0), to: inner_head },
        Inst::LoopEnd,
        Inst::Jump(head),
        Inst::LoopEnd,
        Inst::Label(end),
        Inst::GStore { kind: GStoreKind::B8, to: Mem::context(0), a: sum },
        Inst::Return,
    ];
    assert_eq!(check(program, 32)[..8], 5050u64.to_le_bytes());
}

#[test]
fn a_flag_that_is_set_ends_the_code() {
    for flag in [0u8, 1, 0x80] {
        let mut program = Program { labels: 1, general: 1, ..Program::default() };
        program.code = vec![
            Inst::JumpIfByte { at: Mem::context(8), to: Label(0) },
            Inst::GImm { d: G(0), imm: 77 },
            Inst::GStore { kind: GStoreKind::B8, to: Mem::context(0), a: G(0) },
            Inst::Label(Label(0)),
            Inst::Return,
        ];
        let mut context = Context::new(64, &mut Random(1));
        let address = context.address() as u64 + 40;
        context.bytes()[8..16].copy_from_slice(&address.to_le_bytes());
        context.bytes()[40] = flag;
        context.bytes()[0] = 1;
        let [machine, model] = program.run_allocated(&mut context);
        assert_eq!(machine, model);
        assert_eq!(machine[0], if flag == 0 { 77 } else { 1 });
    }
}

#[test]
fn frames_of_many_pages() {
    for scratch in [4000, 4096, 8160, 100_000, 1_000_000] {
        let mut program = Program { scratch, ..Program::default() };
        let v = load(&mut program, 0);
        for at in [0, scratch / 2, scratch - 32] {
            program.code.push(Inst::Store { kind: StoreKind::Full, to: Mem::frame(at), v });
            let back = program.v();
            program.code.push(Inst::Load { kind: LoadKind::Full, d: back, from: Mem::frame(at) });
            store(&mut program, 32, back);
        }
        program.code.push(Inst::Return);
        check(program, 64);
    }
}

/// Constants are where the code looks for them.
#[test]
fn tables_among_the_constants() {
    let mut program = Program { pool: (0..128).collect(), ..Program::default() };
    let (index, base, value) = (program.g(), program.g(), program.g());
    let table = Mem { base: Base::Pool, index: None, disp: 32 };
    program.code = vec![
        Inst::GImm { d: index, imm: 3 },
        Inst::Lea { d: base, from: table },
        Inst::GLoad { kind: GLoadKind::U8, d: value, from: Mem::indexed(base, index, 8) },
        Inst::GStore { kind: GStoreKind::B1, to: Mem::context(0), a: value },
        Inst::GLoad { kind: GLoadKind::U8, d: value, from: Mem { index: Some((index, 2)), ..table } },
        Inst::GStore { kind: GStoreKind::B1, to: Mem::context(1), a: value },
        Inst::Return,
    ];
    let allocation = program.allocate();
    let code = program.assemble(&allocation);
    let mut context = Context::new(32, &mut Random(1));
    call(&code, context.address());
    assert_eq!(context.bytes()[..2], [56, 38]);
}

/// Two pages of which the second cannot be touched.
#[cfg(unix)]
struct Guarded(*mut u8);

#[cfg(unix)]
impl Guarded {
    const PAGE: usize = 4096;

    fn new() -> Guarded {
        // SAFETY: new memory, of which the second half is closed.
        unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let memory = libc::mmap(std::ptr::null_mut(), 2 * Self::PAGE, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
            assert_ne!(memory, libc::MAP_FAILED);
            assert_eq!(libc::mprotect(memory.wrapping_byte_add(Self::PAGE), Self::PAGE, libc::PROT_NONE), 0);
            Guarded(memory.cast())
        }
    }
}

#[cfg(unix)]
impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: mapped in `new`, and nobody has it any more.
        unsafe { libc::munmap(self.0.cast(), 2 * Self::PAGE) };
    }
}

/// With the last elements masked, what is behind the end of memory is not touched; neither are masked elements inside.
#[cfg(unix)]
#[test]
fn masked_elements_are_not_touched() {
    for (wide, size) in [(false, 4), (true, 8)] {
        for pattern in 0u32..1 << (32 / size) {
            // As many elements before the closed page as the highest one that is touched.
            let elements = 32 - pattern.leading_zeros() as usize;
            let memory = Guarded::new();
            let data = memory.0.wrapping_add(Guarded::PAGE - elements * size);
            // The context begins with a mask and 32 bytes to write, 32 that are read, 32 that are gathered, and an address.
            let mut context = Context::new(256, &mut Random(pattern.into()));
            let mask: Vec<u8> = (0..32).map(|at| if pattern >> (at / size) & 1 == 1 { 0xFF } else { 0x7F }).collect();
            context.bytes()[..32].copy_from_slice(&mask);
            let lanes: Vec<u8> = (0..32u8).map(|at| if at % 4 == 0 { at / 4 } else { 0 }).collect();
            context.bytes()[128..160].copy_from_slice(&lanes);
            context.bytes()[160..168].copy_from_slice(&(data as u64).to_le_bytes());
            let mut program = Program::default();
            let (mask, value) = (load(&mut program, 0), load(&mut program, 32));
            let (index, loaded, gathered) = (load(&mut program, 128), program.v(), program.v());
            let base = program.g();
            program.code.extend([
                Inst::GLoad { kind: GLoadKind::W64, d: base, from: Mem::context(160) },
                Inst::MaskStore { wide, to: Mem::at(base), mask, v: value },
                Inst::MaskLoad { wide, d: loaded, mask, from: Mem::at(base) },
            ]);
            store(&mut program, 64, loaded);
            program.code.push(match wide {
                false => Inst::Gather { d: gathered, base, index, mask },
                true => Inst::GatherWide { d: gathered, base, index, mask },
            });
            store(&mut program, 96, gathered);
            program.code.push(Inst::Return);
            let allocation = program.allocate();
            call(&program.assemble(&allocation), context.address());
            let bytes = context.bytes();
            for at in 0..32 {
                let active = pattern >> (at / size) & 1 == 1;
                let expected = if active { bytes[32 + at] } else { 0 };
                assert_eq!((bytes[64 + at], bytes[96 + at]), (expected, expected), "{pattern:b}, byte {at}");
                if at < elements * size {
                    // SAFETY: before the closed page.
                    assert_eq!(unsafe { data.add(at).read() }, expected, "{pattern:b}, byte {at}");
                }
            }
        }
    }
}

/// Loads and stores of fewer bytes than a vector end where they should.
#[cfg(unix)]
#[test]
fn partial_loads_and_stores_end_at_the_page() {
    use LoadKind::{Eighth, Full, Half, Halves, I8, I16, Quarter, Splat32, Splat64, U8, U16};
    let words = [(Full, 32), (Half, 16), (Quarter, 8), (Eighth, 4), (Splat32, 4), (Splat64, 8)];
    let loads = words.into_iter().chain([(U8, 8), (I8, 8), (U16, 16), (I16, 16), (Halves, 8)]);
    let stores = [(StoreKind::Full, 32), (StoreKind::Half, 16), (StoreKind::Quarter, 8), (StoreKind::Eighth, 4)];
    let memory = Guarded::new();
    let mut context = Context::new(64, &mut Random(3));
    let mut program = Program::default();
    let (base, v) = (program.g(), program.v());
    let end = memory.0 as u64 + Guarded::PAGE as u64;
    program.code.push(Inst::GImm { d: base, imm: end });
    for (kind, bytes) in loads {
        program.code.push(Inst::Load { kind, d: v, from: Mem { disp: -bytes, ..Mem::at(base) } });
    }
    for (kind, bytes) in stores {
        program.code.push(Inst::Store { kind, to: Mem { disp: -bytes, ..Mem::at(base) }, v });
    }
    program.code.push(Inst::Return);
    let allocation = program.allocate();
    call(&program.assemble(&allocation), context.address());
}

/// Runs code in two threads at once.
fn twice(program: &mut Program, context: &mut Context) {
    let allocation = program.allocate();
    let code = program.assemble(&allocation);
    let address = context.address() as usize;
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| call(&code, address as *mut u8));
        }
    });
}

const ROUNDS: u64 = 200_000;

/// A loop of [`ROUNDS`] around instructions that are given the counter.
fn repeated(program: &mut Program, body: impl FnOnce(&mut Program, G)) {
    let counter = program.g();
    let head = Label(program.labels);
    program.labels += 1;
    program.code.extend([Inst::GImm { d: counter, imm: ROUNDS }, Inst::LoopBegin, Inst::Label(head)]);
    body(program, counter);
    let (width, b) = (Width::W64, GSrc::Imm(1));
    program.code.push(Inst::G2 { op: G2::sub, width, d: counter, a: counter, b });
    program.code.push(Inst::JumpIf { cond: Cond::NotEqual, width, a: counter, b: GSrc::Imm(0), to: head });
    program.code.extend([Inst::LoopEnd, Inst::Return]);
}

#[test]
fn locked_sums_of_two_threads() {
    let mut program = Program::default();
    let one = program.g();
    program.code.push(Inst::GImm { d: one, imm: 1 });
    repeated(&mut program, |program, counter| {
        let old = program.g();
        let locked = true;
        program.code.extend([
            Inst::Rmw { op: Rmw::Add, locked, d: old, at: Mem::context(0), a: one },
            Inst::Rmw { op: Rmw::Xor, locked, d: old, at: Mem::context(4), a: counter },
            Inst::Rmw { op: Rmw::MaxU, locked, d: old, at: Mem::context(8), a: counter },
            Inst::Rmw { op: Rmw::MinS, locked, d: old, at: Mem::context(12), a: counter },
        ]);
        // A sum by compare-exchange, and one of what exchanges take out: nothing is lost.
        let (again, new, seen) = (Label(program.labels), program.g(), program.g());
        program.labels += 1;
        program.code.extend([
            Inst::GLoad { kind: GLoadKind::W32, d: old, from: Mem::context(16) },
            Inst::LoopBegin,
            Inst::Label(again),
            Inst::G2 { op: G2::add, width: Width::W32, d: new, a: old, b: GSrc::Imm(1) },
            Inst::GMov { width: Width::W64, d: seen, a: old },
            Inst::CompareExchange { locked, d: old, at: Mem::context(16), expected: seen, new },
            Inst::JumpIf { cond: Cond::NotEqual, width: Width::W32, a: old, b: seen.into(), to: again },
            Inst::LoopEnd,
            Inst::Rmw { op: Rmw::Exchange, locked, d: new, at: Mem::context(20), a: one },
            Inst::Rmw { op: Rmw::Add, locked, d: old, at: Mem::context(24), a: new },
        ]);
    });
    let mut context = Context::new(64, &mut Random(0));
    context.bytes().fill(0);
    twice(&mut program, &mut context);
    let words: Vec<u32> = context.bytes().chunks(4).map(|bytes| u32::from_le_bytes(bytes.try_into().unwrap())).collect();
    let both = 2 * ROUNDS as u32;
    assert_eq!(words[..6], [both, 0, ROUNDS as u32, 0, both, 1]);
    // The first exchange of all found zero.
    assert_eq!(words[6], both - 1);
}

#[test]
fn bits_that_two_threads_set_and_clear() {
    for op in [Rmw::Or, Rmw::And] {
        let mut program = Program::default();
        let (number, bit) = (program.g(), program.g());
        program.code.extend([
            // Each thread has its own bit.
            Inst::GImm { d: bit, imm: 1 },
            Inst::Rmw { op: Rmw::Add, locked: true, d: number, at: Mem::context(0), a: bit },
            Inst::GShiftBy { op: super::super::lir::GShift::Left, width: Width::W32, d: bit, a: bit, by: number },
        ]);
        repeated(&mut program, |program, _| {
            let (inverse, old) = (program.g(), program.g());
            program.code.push(Inst::G2 { op: G2::xor, width: Width::W32, d: inverse, a: bit, b: GSrc::Imm(-1) });
            let at = Mem::context(4);
            let (set, clear) = (
                Inst::Rmw { op: Rmw::Or, locked: true, d: old, at, a: bit },
                Inst::Rmw { op: Rmw::And, locked: true, d: old, at, a: inverse },
            );
            program.code.extend(if op == Rmw::Or { [clear, set] } else { [set, clear] });
        });
        let mut context = Context::new(32, &mut Random(0));
        context.bytes()[..4].fill(0);
        context.bytes()[4..8].fill(0xF0);
        twice(&mut program, &mut context);
        let expected = if op == Rmw::Or { 0xF3 } else { 0xF0 };
        assert_eq!(context.bytes()[4], expected);
    }
}

/// More vectors at once than there are registers, used in every order.
#[test]
fn three_hundred_live_vectors() {
    let mut program = Program::default();
    let vectors: Vec<V> = (0..300).map(|n| load(&mut program, 32 * n)).collect();
    let mut sum = vectors[0];
    for (n, v) in vectors.iter().enumerate().skip(1) {
        let (d, shifted) = (program.v(), program.v());
        program.code.push(Inst::Shift { op: Shift::vpslld, d: shifted, a: sum, imm: (n % 5) as u8 });
        program.code.push(Inst::V3 { op: V3::vpaddd, d, a: *v, b: shifted.into() });
        sum = d;
    }
    store(&mut program, 0, sum);
    for (n, v) in vectors.iter().enumerate().rev() {
        store(&mut program, 32 * (n + 300), *v);
    }
    program.code.push(Inst::Return);
    check(program, 32 * 600);
}
