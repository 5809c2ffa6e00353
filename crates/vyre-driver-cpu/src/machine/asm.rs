//! An assembler for the part of x86-64 that the encoder uses: which bytes an instruction with registers of the machine is.
//!
//! There are two shapes, VEX and the older one with REX, and both end with an operand in a register or in memory ([`Rm`]). What differs
//! from instruction to instruction is a few numbers of Intel's manual: a [`Vex`] or an [`Op`]. Tests let another disassembler read
//! every one of them with every kind of register and address.
//!
//! This is not left to a crate: of the hundred vector instructions needed here, `dynasm` 5.1 encodes ten as others (`vfmadd213pd` as
//! `vfmadd213ps`, `vpgatherdq` as `vpgatherdd`, `vcmpps` with operands exchanged and its address dropped).

/// The prefix that belongs to the opcode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Prefix {
    None,
    P66,
    PF3,
    PF2,
}

/// The table of opcodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Map {
    M0F = 1,
    M0F38 = 2,
    M0F3A = 3,
}

/// What a VEX instruction is, apart from its operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Vex {
    pub prefix: Prefix,
    pub map: Map,
    /// The W bit: elements of 64 bits, as a rule.
    pub wide: bool,
    pub code: u8,
}

/// How many bits of vector registers an instruction is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Bits {
    B128,
    B256,
}

/// What an instruction of the older shape is, apart from its operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Op {
    pub prefix: Prefix,
    /// Whether 0F is before the opcode.
    pub escape: bool,
    pub code: u8,
}

impl Op {
    pub const fn plain(code: u8) -> Op {
        Op { prefix: Prefix::None, escape: false, code }
    }

    pub const fn escaped(code: u8) -> Op {
        Op { prefix: Prefix::None, escape: true, code }
    }

    pub const fn with(self, prefix: Prefix) -> Op {
        Op { prefix, ..self }
    }
}

/// The size of a general operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Size {
    /// The low bytes of registers, never ah and its like.
    B1,
    /// Nothing else says so: the instruction needs [`Prefix::P66`] too.
    B2,
    B4,
    B8,
}

/// An address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Addr {
    Plain(u8, i32),
    /// Base, index, scale of 1, 2, 4 or 8. The index is a general register other than rsp.
    Indexed(u8, u8, u8, i32),
    /// Base, vector of indices, scale.
    Gather(u8, u8, u8),
    /// So many bytes behind the beginning of the constants.
    Pool(i32),
}

/// The operand that may be in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rm {
    Reg(u8),
    Mem(Addr),
}

impl Rm {
    /// The bits of register numbers that do not fit the operand's own byte: of the index, of the base or the register.
    fn high_bits(self) -> (u8, u8) {
        match self {
            Rm::Reg(reg) | Rm::Mem(Addr::Plain(reg, _)) => (0, reg >> 3),
            Rm::Mem(Addr::Indexed(base, index, ..) | Addr::Gather(base, index, _)) => (index >> 3, base >> 3),
            Rm::Mem(Addr::Pool(_)) => (0, 0),
        }
    }
}

/// A place in the code, known or not yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Target(u32);

const UNPLACED: usize = usize::MAX;

/// Code that is being written.
pub(crate) struct Asm {
    bytes: Vec<u8>,
    /// Where targets are.
    targets: Vec<usize>,
    /// Four bytes that will be the way from their end to a target.
    jumps: Vec<(usize, Target)>,
    pool: Vec<PoolUse>,
}

/// Four bytes that will be the way to a constant.
struct PoolUse {
    at: usize,
    /// Where the instruction ends.
    end: usize,
    disp: i32,
}

impl Asm {
    pub fn new(capacity: usize) -> Asm {
        Asm { bytes: Vec::with_capacity(capacity), targets: Vec::new(), jumps: Vec::new(), pool: Vec::new() }
    }

    pub fn target(&mut self) -> Target {
        self.targets.push(UNPLACED);
        Target(self.targets.len() as u32 - 1)
    }

    pub fn place(&mut self, target: Target) {
        self.targets[target.0 as usize] = self.bytes.len();
    }

    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The code and the constants behind it, and where these begin after what fills up to a multiple of 32.
    pub fn finish(mut self, pool: &[u8]) -> (Vec<u8>, usize) {
        for (at, target) in self.jumps {
            let to = self.targets[target.0 as usize];
            assert_ne!(to, UNPLACED, "every target of a jump is placed");
            let way = to as i64 - (at as i64 + 4);
            self.bytes[at..at + 4].copy_from_slice(&(way as i32).to_le_bytes());
        }
        let code_len = self.bytes.len();
        self.bytes.resize(code_len.next_multiple_of(32), 0xCC);
        let start = self.bytes.len() as i64;
        self.bytes.extend_from_slice(pool);
        for PoolUse { at, end, disp } in self.pool {
            let way = start + i64::from(disp) - end as i64;
            self.bytes[at..at + 4].copy_from_slice(&(way as i32).to_le_bytes());
        }
        (self.bytes, code_len)
    }

    /// A VEX instruction: `reg` is mostly the result, `first` the first operand (0 if there is none), `rm` the second.
    #[inline]
    pub fn vex(&mut self, op: Vex, bits: Bits, reg: u8, first: u8, rm: Rm) {
        self.vex_opcode(op, bits, reg, first, rm);
        self.operand(reg, rm, 0);
    }

    /// A VEX instruction with a number at the end.
    #[inline]
    pub fn vex_imm(&mut self, op: Vex, bits: Bits, reg: u8, first: u8, rm: Rm, imm: u8) {
        self.vex_opcode(op, bits, reg, first, rm);
        self.operand(reg, rm, 1);
        self.bytes.push(imm);
    }

    fn vex_opcode(&mut self, op: Vex, bits: Bits, reg: u8, first: u8, rm: Rm) {
        let (x, b) = rm.high_bits();
        let prefix = match op.prefix {
            Prefix::None => 0,
            Prefix::P66 => 1,
            Prefix::PF3 => 2,
            Prefix::PF2 => 3,
        };
        let length = match bits {
            Bits::B128 => 0,
            Bits::B256 => 4,
        };
        // The high bit of `reg`, and all of `first`, are written inverted.
        let r = !(reg >> 3) << 7;
        let last = !first << 3 & 0x78 | length | prefix;
        if op.map == Map::M0F && !op.wide && x | b == 0 {
            self.bytes.extend([0xC5, r | last, op.code]);
        } else {
            let maps = r | (x ^ 1) << 6 | (b ^ 1) << 5 | op.map as u8;
            self.bytes.extend([0xC4, maps, u8::from(op.wide) << 7 | last, op.code]);
        }
    }

    /// An instruction of the older shape.
    pub fn op(&mut self, op: Op, size: Size, reg: u8, rm: Rm) {
        self.opcode(op, size, reg, rm);
        self.operand(reg, rm, 0);
    }

    /// An instruction with one byte at the end.
    pub fn op_imm8(&mut self, op: Op, size: Size, reg: u8, rm: Rm, imm: u8) {
        self.opcode(op, size, reg, rm);
        self.operand(reg, rm, 1);
        self.bytes.push(imm);
    }

    /// An instruction with four bytes at the end.
    pub fn op_imm32(&mut self, op: Op, size: Size, reg: u8, rm: Rm, imm: i32) {
        self.opcode(op, size, reg, rm);
        self.operand(reg, rm, 4);
        self.bytes.extend(imm.to_le_bytes());
    }

    /// An instruction whose register is part of the opcode.
    pub fn op_short(&mut self, code: u8, size: Size, reg: u8) {
        let rex = u8::from(size == Size::B8) << 3 | reg >> 3;
        if rex != 0 {
            self.bytes.push(0x40 | rex);
        }
        self.bytes.push(code | reg & 7);
    }

    fn opcode(&mut self, op: Op, size: Size, reg: u8, rm: Rm) {
        match op.prefix {
            Prefix::None => {}
            Prefix::P66 => self.bytes.push(0x66),
            Prefix::PF3 => self.bytes.push(0xF3),
            Prefix::PF2 => self.bytes.push(0xF2),
        }
        let (x, b) = rm.high_bits();
        let rex = u8::from(size == Size::B8) << 3 | (reg >> 3) << 2 | x << 1 | b;
        // Without this byte, the byte registers 4 to 7 are ah, ch, dh and bh.
        if rex != 0 || size == Size::B1 {
            self.bytes.push(0x40 | rex);
        }
        if op.escape {
            self.bytes.push(0x0F);
        }
        self.bytes.push(op.code);
    }

    /// The bytes that say where operands are. `after` bytes of the instruction follow.
    fn operand(&mut self, reg: u8, rm: Rm, after: usize) {
        let reg = (reg & 7) << 3;
        match rm {
            Rm::Reg(rm) => self.bytes.push(0xC0 | reg | rm & 7),
            Rm::Mem(Addr::Plain(base, disp)) => {
                let form = form(base, disp);
                // Register number 4 would mean that an index follows: one that is none.
                match base & 7 {
                    4 => self.bytes.extend([form | reg | 4, 0x24]),
                    low => self.bytes.push(form | reg | low),
                }
                self.displacement(form, disp);
            }
            Rm::Mem(Addr::Indexed(base, index, scale, disp)) => {
                let form = form(base, disp);
                self.bytes.extend([form | reg | 4, scale_bits(scale) | (index & 7) << 3 | base & 7]);
                self.displacement(form, disp);
            }
            Rm::Mem(Addr::Gather(base, index, scale)) => {
                let form = form(base, 0);
                self.bytes.extend([form | reg | 4, scale_bits(scale) | (index & 7) << 3 | base & 7]);
                self.displacement(form, 0);
            }
            Rm::Mem(Addr::Pool(disp)) => {
                self.bytes.push(reg | 5);
                let at = self.bytes.len();
                self.bytes.extend([0; 4]);
                self.pool.push(PoolUse { at, end: at + 4 + after, disp });
            }
        }
    }

    fn displacement(&mut self, form: u8, disp: i32) {
        match form {
            0 => {}
            BYTE => self.bytes.push(disp as u8),
            _ => self.bytes.extend(disp.to_le_bytes()),
        }
    }

    /// Makes the next instruction one step for all threads.
    pub fn lock(&mut self) {
        self.bytes.push(0xF0);
    }

    pub fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub fn jump(&mut self, to: Target) {
        self.jump_with(&[0xE9], 0xEB, to);
    }

    /// A jump under a condition, which is a number from 0 to 15.
    pub fn jump_if(&mut self, condition: u8, to: Target) {
        self.jump_with(&[0x0F, 0x80 | condition], 0x70 | condition, to);
    }

    fn jump_with(&mut self, long: &[u8], short: u8, to: Target) {
        let known = self.targets[to.0 as usize];
        if known != UNPLACED {
            let way = known as i64 - (self.bytes.len() as i64 + 2);
            if let Ok(way) = i8::try_from(way) {
                self.bytes.extend([short, way as u8]);
                return;
            }
        }
        self.bytes.extend_from_slice(long);
        self.jumps.push((self.bytes.len(), to));
        self.bytes.extend([0; 4]);
    }

    /// Instructions that do nothing, up to a multiple of 16 or 32.
    pub fn align(&mut self, multiple: usize) {
        const NOPS: [&[u8]; 9] = [
            &[0x90],
            &[0x66, 0x90],
            &[0x0F, 0x1F, 0x00],
            &[0x0F, 0x1F, 0x40, 0],
            &[0x0F, 0x1F, 0x44, 0, 0],
            &[0x66, 0x0F, 0x1F, 0x44, 0, 0],
            &[0x0F, 0x1F, 0x80, 0, 0, 0, 0],
            &[0x0F, 0x1F, 0x84, 0, 0, 0, 0, 0],
            &[0x66, 0x0F, 0x1F, 0x84, 0, 0, 0, 0, 0],
        ];
        loop {
            match self.bytes.len().next_multiple_of(multiple) - self.bytes.len() {
                0 => return,
                missing => self.bytes.extend_from_slice(NOPS[missing.min(9) - 1]),
            }
        }
    }
}

const BYTE: u8 = 0x40;
const WORDS: u8 = 0x80;

/// How long the displacement is. Base registers 5 and 13 cannot be without one.
fn form(base: u8, disp: i32) -> u8 {
    match i8::try_from(disp) {
        Ok(0) if base & 7 != 5 => 0,
        Ok(_) => BYTE,
        Err(_) => WORDS,
    }
}

fn scale_bits(scale: u8) -> u8 {
    match scale {
        1 => 0,
        2 => 0x40,
        4 => 0x80,
        8 => 0xC0,
        other => unreachable!("no address has an index times {other}"),
    }
}
