//! What the instructions mean, in plain Rust: an interpreter of code before it has places and bytes.

use super::super::lir::{
    Base, Cond, Fma, G2, GLoadKind, GShift, GSrc, GStoreKind, Inst, LoadKind, Mem, Rmw, Src, StoreKind, Width,
};
use super::super::reg::{G, V};
use super::Program;
use super::floats;
use super::vectors::{Vector, from32, from64, lanes32, lanes64, narrow, shift, v2, v2i, v3, v3i, widen};

/// The registers and memory of a run.
pub struct Model<'a> {
    pub g: Vec<u64>,
    pub v: Vec<Vector>,
    frame: Vec<u8>,
    program: &'a Program,
    context: *mut u8,
    len: usize,
}

pub fn holds(cond: Cond, width: Width, a: u64, b: u64) -> bool {
    let (a, b, signed_a, signed_b) = match width {
        Width::W32 => (a & 0xFFFF_FFFF, b & 0xFFFF_FFFF, i64::from(a as i32), i64::from(b as i32)),
        Width::W64 => (a, b, a as i64, b as i64),
    };
    match cond {
        Cond::Equal => a == b,
        Cond::NotEqual => a != b,
        Cond::Below => a < b,
        Cond::AboveEqual => a >= b,
        Cond::Above => a > b,
        Cond::BelowEqual => a <= b,
        Cond::Less => signed_a < signed_b,
        Cond::GreaterEqual => signed_a >= signed_b,
        Cond::Greater => signed_a > signed_b,
        Cond::LessEqual => signed_a <= signed_b,
    }
}

fn g2(op: G2, a: u64, b: u64) -> u64 {
    match op {
        G2::add => a.wrapping_add(b),
        G2::sub => a.wrapping_sub(b),
        G2::and => a & b,
        G2::or => a | b,
        G2::xor => a ^ b,
    }
}

fn cut(width: Width, value: u64) -> u64 {
    match width {
        Width::W32 => value & 0xFFFF_FFFF,
        Width::W64 => value,
    }
}

fn gshift(op: GShift, width: Width, a: u64, by: u64) -> u64 {
    match (width, op) {
        (Width::W32, GShift::Left) => u64::from((a as u32) << (by & 31)),
        (Width::W32, GShift::Right) => u64::from(a as u32 >> (by & 31)),
        (Width::W32, GShift::ArithmeticRight) => u64::from((a as i32 >> (by & 31)) as u32),
        (Width::W64, GShift::Left) => a << (by & 63),
        (Width::W64, GShift::Right) => a >> (by & 63),
        (Width::W64, GShift::ArithmeticRight) => (a as i64 >> (by & 63)) as u64,
    }
}

pub fn rmw(op: Rmw, old: u32, a: u32) -> u32 {
    match op {
        Rmw::Add => old.wrapping_add(a),
        Rmw::Exchange => a,
        Rmw::And => old & a,
        Rmw::Or => old | a,
        Rmw::Xor => old ^ a,
        Rmw::MinU => old.min(a),
        Rmw::MaxU => old.max(a),
        Rmw::MinS => (old as i32).min(a as i32) as u32,
        Rmw::MaxS => (old as i32).max(a as i32) as u32,
    }
}

impl<'a> Model<'a> {
    /// The context is `len` bytes, nothing outside of which may be touched.
    pub fn new(program: &'a Program, context: *mut u8, len: usize) -> Model<'a> {
        let frame = vec![0; program.scratch];
        Model { g: vec![0; program.general as usize], v: vec![[0; 32]; program.vectors as usize], frame, program, context, len }
    }

    pub fn run(&mut self) {
        let code = &self.program.code;
        let mut at = 0;
        let to = |label| code.iter().position(|inst| matches!(inst, Inst::Label(own) if *own == label)).unwrap();
        loop {
            let inst = code[at];
            at += 1;
            if let Inst::Return = inst {
                return;
            } else if let Inst::Jump(label) = inst {
                at = to(label);
            } else if let Inst::JumpIf { cond, width, a, b, to: label } = inst {
                if holds(cond, width, self.g(a), self.gsrc(width, b)) {
                    at = to(label);
                }
            } else if let Inst::JumpIfByte { at: from, to: label } = inst {
                let address = u64::from_le_bytes(self.read(from)) as usize;
                if self.read_at::<1>(address) != [0] {
                    at = to(label);
                }
            } else if let Inst::ColdBegin = inst {
                // Cold parts are entered by jumps.
                let mut open = 1;
                while open > 0 {
                    open += code[at].cold_depth();
                    at += 1;
                }
            } else if let Inst::Call { helper, argument } = inst {
                helper(self.frame.as_mut_ptr(), self.context, argument);
            } else {
                self.step(inst);
            }
        }
    }

    fn address(&self, mem: Mem) -> usize {
        let base = match mem.base {
            Base::Reg(reg) => self.g(reg) as usize,
            Base::Context => self.context as usize,
            Base::Frame => self.frame.as_ptr() as usize,
            Base::Pool => self.program.pool.as_ptr() as usize,
        };
        let index = mem.index.map_or(0, |(index, scale)| (self.g(index) as usize).wrapping_mul(scale.into()));
        base.wrapping_add(index).wrapping_add(mem.disp as usize)
    }

    fn check(&self, address: usize, len: usize) {
        let inside = |start: *const u8, all: usize| address >= start as usize && address + len <= start as usize + all;
        let pool = &self.program.pool;
        assert!(
            inside(self.context, self.len) || inside(self.frame.as_ptr(), self.frame.len()) || inside(pool.as_ptr(), pool.len()),
            "an access outside of memory"
        );
    }

    fn read<const N: usize>(&self, mem: Mem) -> [u8; N] {
        self.read_at(self.address(mem))
    }

    fn read_at<const N: usize>(&self, address: usize) -> [u8; N] {
        self.check(address, N);
        // SAFETY: these bytes belong to this run.
        unsafe { (address as *const [u8; N]).read_unaligned() }
    }

    fn read_some(&self, address: usize, to: &mut [u8]) {
        to.iter_mut().zip(address..).for_each(|(byte, address)| [*byte] = self.read_at(address));
    }

    fn write(&self, mem: Mem, bytes: &[u8]) {
        self.write_at(self.address(mem), bytes);
    }

    fn write_at(&self, address: usize, bytes: &[u8]) {
        self.check(address, bytes.len());
        // SAFETY: these bytes belong to this run, and no program writes its constants.
        unsafe { (address as *mut u8).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }

    fn g(&self, reg: G) -> u64 {
        self.g[reg.0 as usize]
    }

    fn v(&self, reg: V) -> Vector {
        self.v[reg.0 as usize]
    }

    fn src(&self, src: Src) -> Vector {
        match src {
            Src::Reg(reg) => self.v(reg),
            Src::Mem(mem) => self.read(mem),
        }
    }

    fn half_src(&self, src: Src) -> Vector {
        match src {
            Src::Reg(reg) => self.v(reg),
            Src::Mem(mem) => zeros_behind(self.read::<16>(mem)),
        }
    }

    fn gsrc(&self, width: Width, src: GSrc) -> u64 {
        match (src, width) {
            (GSrc::Reg(reg), _) => self.g(reg),
            (GSrc::Imm(imm), _) => i64::from(imm) as u64,
            (GSrc::Mem(mem), Width::W32) => u32::from_le_bytes(self.read(mem)).into(),
            (GSrc::Mem(mem), Width::W64) => u64::from_le_bytes(self.read(mem)),
        }
    }

    fn step(&mut self, inst: Inst) {
        match inst {
            Inst::V3 { op, d, a, b } => self.v[d.0 as usize] = v3(op, self.v(a), self.src(b)),
            Inst::V3I { op, d, a, b, imm } => self.v[d.0 as usize] = v3i(op, self.v(a), self.src(b), imm),
            Inst::V2 { op, d, a } => self.v[d.0 as usize] = v2(op, self.src(a)),
            Inst::V2I { op, d, a, imm } => self.v[d.0 as usize] = v2i(op, self.src(a), imm),
            Inst::Shift { op, d, a, imm } => self.v[d.0 as usize] = shift(op, self.v(a), imm),
            Inst::Widen { op, d, a } => self.v[d.0 as usize] = widen(op, self.half_src(a)),
            Inst::Narrow { op, d, a } => self.v[d.0 as usize] = narrow(op, self.v(a)),
            Inst::ToHalf { d, a } => {
                let halves = lanes32(self.v(a)).map(floats::to_half);
                let bytes: [u8; 16] = std::array::from_fn(|n| halves[n / 2].to_le_bytes()[n % 2]);
                self.v[d.0 as usize] = zeros_behind(bytes);
            }
            Inst::Blend { d, a, b, mask } => {
                let (a, b, mask) = (self.v(a), self.src(b), self.v(mask));
                self.v[d.0 as usize] = std::array::from_fn(|n| if mask[n | 3] & 0x80 != 0 { b[n] } else { a[n] });
            }
            Inst::Fma { op, d, a, b, c } => {
                let (a, b, c) = (self.v(a), self.v(b), self.src(c));
                self.v[d.0 as usize] = match op {
                    Fma::ps => {
                        let (a, b, c) = (lanes32(a), lanes32(b), lanes32(c));
                        from32(std::array::from_fn(|n| floats::fma32(a[n], b[n], c[n])))
                    }
                    Fma::pd => {
                        let (a, b, c) = (lanes64(a), lanes64(b), lanes64(c));
                        from64(std::array::from_fn(|n| floats::fma64(a[n], b[n], c[n])))
                    }
                };
            }
            Inst::VMov { d, a } => self.v[d.0 as usize] = self.v(a),
            Inst::Zero { d } => self.v[d.0 as usize] = [0; 32],
            Inst::Ones { d } => self.v[d.0 as usize] = [0xFF; 32],
            Inst::Join { d, low, high } => {
                let (low, high) = (self.v(low), self.v(high));
                self.v[d.0 as usize] = std::array::from_fn(|n| if n < 16 { low[n] } else { high[n - 16] });
            }
            Inst::High { d, a } => {
                let a = self.v(a);
                self.v[d.0 as usize] = std::array::from_fn(|n| if n < 16 { a[n + 16] } else { 0 });
            }
            Inst::Load { kind, d, from } => self.v[d.0 as usize] = self.load(kind, from),
            Inst::Store { kind, to, v } => {
                let len = match kind {
                    StoreKind::Full => 32,
                    StoreKind::Half => 16,
                    StoreKind::Quarter => 8,
                    StoreKind::Eighth => 4,
                };
                self.write(to, &self.v(v)[..len]);
            }
            Inst::MaskStore { wide, to, mask, v } => {
                let (size, v, mask) = (if wide { 8 } else { 4 }, self.v(v), self.v(mask));
                for at in (0..32).step_by(size).filter(|at| mask[at + size - 1] & 0x80 != 0) {
                    self.write_at(self.address(to) + at, &v[at..at + size]);
                }
            }
            Inst::MaskLoad { wide, d, mask, from } => {
                let (size, mask, mut result) = (if wide { 8 } else { 4 }, self.v(mask), [0; 32]);
                for at in (0..32).step_by(size).filter(|at| mask[at + size - 1] & 0x80 != 0) {
                    self.read_some(self.address(from) + at, &mut result[at..at + size]);
                }
                self.v[d.0 as usize] = result;
            }
            Inst::Gather { d, base, index, mask } => self.gather(4, d, base, index, mask),
            Inst::GatherWide { d, base, index, mask } => self.gather(8, d, base, index, mask),
            Inst::Splat { width, d, a } => {
                self.v[d.0 as usize] = match width {
                    Width::W32 => from32([self.g(a) as u32; 8]),
                    Width::W64 => from64([self.g(a); 4]),
                };
            }
            Inst::First { width, d, a } => self.g[d.0 as usize] = cut(width, lanes64(self.v(a))[0]),
            Inst::Signs { d, a } => {
                let lanes = lanes32(self.v(a));
                self.g[d.0 as usize] = (0..8).map(|n| u64::from(lanes[n] >> 31) << n).sum();
            }
            Inst::G2 { op, width, d, a, b } => self.g[d.0 as usize] = cut(width, g2(op, self.g(a), self.gsrc(width, b))),
            Inst::GMul { width, d, a, b } => {
                self.g[d.0 as usize] = cut(width, self.g(a).wrapping_mul(self.gsrc(width, b)));
            }
            Inst::GShift { op, width, d, a, imm } => self.g[d.0 as usize] = gshift(op, width, self.g(a), imm.into()),
            Inst::GShiftBy { op, width, d, a, by } => self.g[d.0 as usize] = gshift(op, width, self.g(a), self.g(by)),
            Inst::GMov { width, d, a } => self.g[d.0 as usize] = cut(width, self.g(a)),
            Inst::GImm { d, imm } => self.g[d.0 as usize] = imm,
            Inst::GLoad { kind, d, from } => {
                self.g[d.0 as usize] = match kind {
                    GLoadKind::U8 => self.read::<1>(from)[0].into(),
                    GLoadKind::I8 => u64::from(i32::from(self.read::<1>(from)[0] as i8) as u32),
                    GLoadKind::U16 => u16::from_le_bytes(self.read(from)).into(),
                    GLoadKind::I16 => u64::from(i32::from(i16::from_le_bytes(self.read(from))) as u32),
                    GLoadKind::W32 => u32::from_le_bytes(self.read(from)).into(),
                    GLoadKind::W64 => u64::from_le_bytes(self.read(from)),
                };
            }
            Inst::GStore { kind, to, a } => {
                let len = match kind {
                    GStoreKind::B1 => 1,
                    GStoreKind::B2 => 2,
                    GStoreKind::B4 => 4,
                    GStoreKind::B8 => 8,
                };
                self.write(to, &self.g(a).to_le_bytes()[..len]);
            }
            Inst::Lea { d, from } => self.g[d.0 as usize] = self.address(from) as u64,
            Inst::Set { cond, width, d, a, b } => {
                self.g[d.0 as usize] = holds(cond, width, self.g(a), self.gsrc(width, b)).into();
            }
            Inst::Choose { cond, width, a, b, d, x, y } => {
                let chosen = if holds(cond, width, self.g(a), self.gsrc(width, b)) { x } else { y };
                self.g[d.0 as usize] = self.g(chosen);
            }
            Inst::LowestBit { d, a } => self.g[d.0 as usize] = self.g(a).trailing_zeros().into(),
            Inst::ClearLowest { d, a } => {
                let a = self.g(a);
                self.g[d.0 as usize] = a & a.wrapping_sub(1);
            }
            Inst::PopCount { width, d, a } => self.g[d.0 as usize] = cut(width, self.g(a)).count_ones().into(),
            Inst::Rmw { op, d, at, a, locked: _ } => {
                let old = u32::from_le_bytes(self.read(at));
                self.write(at, &rmw(op, old, self.g(a) as u32).to_le_bytes());
                self.g[d.0 as usize] = old.into();
            }
            Inst::Change { op, at, a, locked: _ } => {
                let old = u32::from_le_bytes(self.read(at));
                let new = g2(op, old.into(), self.gsrc(Width::W32, a));
                self.write(at, &(new as u32).to_le_bytes());
            }
            Inst::CompareExchange { d, at, expected, new, locked: _ } => {
                let old = u32::from_le_bytes(self.read(at));
                if old == self.g(expected) as u32 {
                    self.write(at, &(self.g(new) as u32).to_le_bytes());
                }
                self.g[d.0 as usize] = old.into();
            }
            Inst::Prefetch { .. } | Inst::Label(_) | Inst::LoopBegin | Inst::LoopEnd | Inst::ColdEnd | Inst::Mark(_) => {}
            Inst::Jump(_)
            | Inst::JumpIf { .. }
            | Inst::JumpIfByte { .. }
            | Inst::Call { .. }
            | Inst::ColdBegin
            | Inst::Return => {
                unreachable!("control is not a step")
            }
        }
    }

    fn load(&self, kind: LoadKind, from: Mem) -> Vector {
        match kind {
            LoadKind::Full => self.read(from),
            LoadKind::Half => zeros_behind(self.read::<16>(from)),
            LoadKind::Quarter => zeros_behind(self.read::<8>(from)),
            LoadKind::Eighth => zeros_behind(self.read::<4>(from)),
            LoadKind::U8 => from32(self.read::<8>(from).map(u32::from)),
            LoadKind::I8 => from32(self.read::<8>(from).map(|byte| i32::from(byte as i8) as u32)),
            LoadKind::Halves => {
                let bytes: [u8; 8] = self.read(from);
                let words = bytes.map(|byte| i16::from(byte as i8).to_le_bytes());
                std::array::from_fn(|n| words.as_flattened().get(n).copied().unwrap_or(0))
            }
            LoadKind::U16 | LoadKind::I16 => {
                let bytes: [u8; 16] = self.read(from);
                from32(std::array::from_fn(|n| match (kind, u16::from_le_bytes([bytes[2 * n], bytes[2 * n + 1]])) {
                    (LoadKind::I16, word) => i32::from(word as i16) as u32,
                    (_, word) => word.into(),
                }))
            }
            LoadKind::Splat32 => from32([u32::from_le_bytes(self.read(from)); 8]),
            LoadKind::Splat64 => from64([u64::from_le_bytes(self.read(from)); 4]),
        }
    }

    fn gather(&mut self, size: usize, d: V, base: G, index: V, mask: V) {
        let (indices, mask, mut result) = (lanes32(self.v(index)), self.v(mask), [0; 32]);
        for (at, index) in (0..32).step_by(size).zip(indices) {
            if mask[at + size - 1] & 0x80 != 0 {
                let address = (self.g(base) as usize).wrapping_add((index as i32 as usize).wrapping_mul(size));
                self.read_some(address, &mut result[at..at + size]);
            }
        }
        self.v[d.0 as usize] = result;
    }
}

fn zeros_behind<const N: usize>(bytes: [u8; N]) -> Vector {
    std::array::from_fn(|n| bytes.get(n).copied().unwrap_or(0))
}
