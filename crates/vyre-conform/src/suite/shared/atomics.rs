//! Atomics: every op on `u32` and `i32`, in storage and in workgroup memory.
//!
//! - `own`: each invocation has an element of its own, so the old value that it gets is known.
//! - `uniform`: all invocations of a workgroup apply the op with the same operands to one element. Whatever their order, the element
//!   takes the same values one after the other, so the old values are the same ones, and their sum is compared.
//! - `contested`: the same for `compare_exchange`, on a value that one in four cases expects: of all invocations one may succeed.
//! - `tickets`, `chain`: some invocations take a number each, or exchange what they have for what another had: which one gets which is
//!   open, and each must be given out once.
//! - `mixed`: with operands of their own, for ops that leave the same value in every order.
//! - `index`: the same in workgroup memory at indices of which many are out of bounds.

use super::{Count, Group, Grouped, finish, put, text};
use crate::spec::OpSpec;
use vyre_foundation::ir::DataType;
use vyre_spec::Scalar;
use vyre_spec::op::{AtomicOp, Effect};

/// The value that an op leaves.
pub(in crate::suite) fn left(op: AtomicOp, signed: bool, old: u32, a: u32, b: u32) -> u32 {
    let less = if signed { (a as i32) < old as i32 } else { a < old };
    match op {
        AtomicOp::Load => old,
        AtomicOp::Store | AtomicOp::Exchange => a,
        AtomicOp::CompareExchange => {
            if old == a {
                b
            } else {
                old
            }
        }
        AtomicOp::Add => old.wrapping_add(a),
        AtomicOp::Sub => old.wrapping_sub(a),
        AtomicOp::Min => {
            if less {
                a
            } else {
                old
            }
        }
        AtomicOp::Max => {
            if less {
                old
            } else {
                a
            }
        }
        AtomicOp::And => old & a,
        AtomicOp::Or => old | a,
        AtomicOp::Xor => old ^ a,
    }
}

pub(super) fn atomics() -> Vec<OpSpec> {
    let mut specs = Vec::new();
    for op in AtomicOp::ALL {
        for t in op.info().over.iter() {
            specs.push(own(*op, t));
            specs.push(uniform(*op, t));
            if op.class().is_some_and(|class| class.accumulates()) {
                specs.push(mixed(*op, t));
                specs.push(index(*op, t));
            }
            match op {
                AtomicOp::CompareExchange => specs.push(contested(t)),
                AtomicOp::Add => specs.push(tickets(*op, t, "OLD / k")),
                AtomicOp::Sub => specs.push(tickets(*op, t, "(0 - OLD) / k")),
                AtomicOp::Exchange => specs.push(chain(t)),
                AtomicOp::Load
                | AtomicOp::Store
                | AtomicOp::Min
                | AtomicOp::Max
                | AtomicOp::And
                | AtomicOp::Or
                | AtomicOp::Xor => {}
            }
        }
    }
    specs
}

/// What specs of an op have in common.
struct Op {
    op: AtomicOp,
    t: Scalar,
    /// How many operands it has.
    operands: usize,
    gives: bool,
    signed: bool,
}

impl Op {
    fn new(op: AtomicOp, t: Scalar) -> Op {
        let info = op.info();
        debug_assert!(matches!(info.effect, Effect::AtomicRead | Effect::AtomicWrite));
        Op { op, t, operands: info.operands.len(), gives: info.result_type(t).is_some(), signed: t.is_signed_int() }
    }

    fn id(&self, kind: &str) -> String {
        format!("atomic.{}.{kind}:{}", self.op, self.t)
    }

    /// Declarations of the operands at bindings from 1 on.
    fn declared(&self) -> String {
        (0..self.operands).map(|k| format!("buffer {}: read {} @{}\n", ["a", "b"][k], self.t, k + 1)).collect()
    }

    /// The statement, on an element, with operands at this index.
    fn statement(&self, buffer: &str, element: &str, operand: &str) -> String {
        self.statement_of(buffer, element, [&format!("a[{operand}]"), &format!("b[{operand}]")])
    }

    /// The statement, on an element, with the first of these operands.
    fn statement_of(&self, buffer: &str, element: &str, operands: [&str; 2]) -> String {
        let operands: String = operands[..self.operands].iter().map(|operand| format!(", {operand}")).collect();
        let gives = if self.gives { "let old = " } else { "" };
        format!("{gives}atomic.{}({buffer}, {element}{operands})\n", self.op)
    }

    /// The buffers: the element, operands, and what is told about old values.
    fn buffers(&self, cells: Count, operands: Count, olds: Count) -> Grouped {
        let ty = DataType::from(self.t);
        let mut inputs = vec![(ty.clone(), cells)];
        inputs.extend((0..self.operands).map(|_| (ty.clone(), operands)));
        let mut outputs = vec![(ty.clone(), cells)];
        outputs.extend(self.gives.then_some((ty, olds)));
        Grouped { inputs, outputs }
    }

    /// The operand `k` of all invocations; 0 if there is none.
    fn operand(&self, group: &Group<'_>, k: usize) -> u32 {
        if k < self.operands { group.u32s(1 + k)[0] } else { 0 }
    }
}

fn own(op: AtomicOp, t: Scalar) -> OpSpec {
    let it = Op::new(op, t);
    let last = it.operands + 1;
    let (declared, olds, keep) = (
        it.declared(),
        if it.gives { format!("buffer olds: output {t} @{last}\n") } else { String::new() },
        if it.gives { "olds[i] = old\n" } else { "" },
    );
    let head = format!("program p {{\nworkgroup SIZE\nbuffer cells: read_write {t} @0\n{declared}{olds}");
    let storage = format!("{head}let i = gid.x\nif i < len(cells) {{\n{}{keep}}}\n}}", it.statement("cells", "i", "i"));
    let local = format!(
        "{head}buffer tile: workgroup {t}[SIZE]\nlet i = gid.x\ntile[lid.x] = cells[i]\nif i < len(cells) {{\n{}{keep}}}\ncells[i] = tile[lid.x]\n}}",
        it.statement("tile", "lid.x", "i")
    );
    let spec = it.buffers(Count::Each, Count::Each, Count::Each).spec(it.id("own"), move |group, outputs| {
        let cells = group.u32s(0);
        let operands: Vec<Vec<u32>> = (0..it.operands).map(|k| group.u32s(1 + k)).collect();
        let operand = |k: usize, i: usize| operands.get(k).map_or(0, |all| all[i]);
        put((0..group.size).map(|i| left(it.op, it.signed, cells[i], operand(0, i), operand(1, i))), outputs[0]);
        if it.gives {
            put(cells, outputs[1]);
        }
    });
    finish(spec.law(op.info().law).program(text(storage)).alternative("workgroup", text(local)))
}

fn uniform(op: AtomicOp, t: Scalar) -> OpSpec {
    let it = Op::new(op, t);
    let last = it.operands + 1;
    let (declared, sums, add) = (
        it.declared(),
        if it.gives { format!("buffer sums: output {t} @{last}\n") } else { String::new() },
        if it.gives { "atomic.add(sums, wid.x, old)\n" } else { "" },
    );
    let head = format!("program p {{\nworkgroup SIZE\nbuffer cells: read_write {t} @0\n{declared}{sums}");
    // The first element of the workgroup; the others stay as they are.
    let storage = format!("{head}{}{add}}}", it.statement("cells", "wid.x * SIZE", "wid.x"));
    let local = format!(
        "{head}buffer tile: workgroup {t}[1]\nif lid.x == 0 {{\ntile[0] = cells[gid.x]\n}}\nbarrier\n{}{add}barrier\nif lid.x == 0 {{\ncells[gid.x] = tile[0]\n}}\n}}",
        it.statement("tile", "0", "wid.x")
    );
    let spec = it.buffers(Count::Each, Count::One, Count::One).spec(it.id("uniform"), move |group, outputs| {
        let (mut cells, mut sum) = (group.u32s(0), 0_u32);
        for _ in 0..group.size {
            sum = sum.wrapping_add(cells[0]);
            cells[0] = left(it.op, it.signed, cells[0], it.operand(group, 0), it.operand(group, 1));
        }
        put(cells, outputs[0]);
        if it.gives {
            put([sum], outputs[1]);
        }
    });
    finish(spec.law(op.info().law).program(text(storage)).alternative("workgroup", text(local)))
}

fn contested(t: Scalar) -> OpSpec {
    let it = Op::new(AtomicOp::CompareExchange, t);
    let head =
        format!("program p {{\nworkgroup SIZE\nbuffer cells: read_write {t} @0\n{}buffer sums: output {t} @3\n", it.declared());
    let act = |buffer: &str, element: &str| {
        format!("{}atomic.add(sums, wid.x, old)\n", it.statement_of(buffer, element, ["a[wid.x] & 3", "b[wid.x]"]))
    };
    let storage =
        format!("{head}if lid.x == 0 {{\ncells[gid.x] = cells[gid.x] & 3\n}}\nbarrier\n{}}}", act("cells", "wid.x * SIZE"));
    let local = format!(
        "{head}buffer tile: workgroup {t}[1]\nif lid.x == 0 {{\ntile[0] = cells[gid.x] & 3\n}}\nbarrier\n{}barrier\nif lid.x == 0 {{\ncells[gid.x] = tile[0]\n}}\n}}",
        act("tile", "0")
    );
    let spec = it.buffers(Count::Each, Count::One, Count::One).spec(it.id("contested"), move |group, outputs| {
        let (mut cells, mut sum) = (group.u32s(0), 0_u32);
        cells[0] &= 3;
        for _ in 0..group.size {
            sum = sum.wrapping_add(cells[0]);
            cells[0] = left(it.op, it.signed, cells[0], it.operand(group, 0) & 3, it.operand(group, 1));
        }
        put(cells, outputs[0]);
        put([sum], outputs[1]);
    });
    finish(spec.law(AtomicOp::CompareExchange.info().law).program(text(storage)).alternative("workgroup", text(local)))
}

/// Invocations with an odd flag take a ticket, `k` apart; `rank` is which one it was. Every rank is counted.
fn tickets(op: AtomicOp, t: Scalar, rank: &str) -> OpSpec {
    let (old, by) = if t == Scalar::U32 { ("old", "k") } else { ("u32(old)", "i32(k)") };
    let take = |buffer: &str, element: &str| {
        let rank = rank.replace("OLD", old);
        format!("let old = atomic.{op}({buffer}, {element}, {by})\natomic.add(marks, wid.x * SIZE + {rank}, 1)\n")
    };
    let head = |tile: &str| {
        format!(
            "program p {{\nworkgroup SIZE\nbuffer flags: read u32 @0\nbuffer step: read u32 @1\nbuffer next: output {t} @2\n\
             buffer marks: output u32 @3\n{tile}let k = step[wid.x] % 1000 + 1\nlet flag = flags[gid.x]\n"
        )
    };
    let storage = format!("{}if flag % 2 == 1 {{\n{}}}\n}}", head(""), take("next", "wid.x"));
    let returned = format!("{}if flag % 2 == 0 {{\nreturn\n}}\n{}}}", head(""), take("next", "wid.x"));
    let looped = format!(
        "{}for turn in 0..2 {{\nif flag % 2 == 1 && turn == flag / 2 % 2 {{\n{}}}\n}}\n}}",
        head(""),
        take("next", "wid.x")
    );
    let local = format!(
        "{}if flag % 2 == 1 {{\n{}}}\nbarrier\nif lid.x == 0 {{\nnext[wid.x] = tile[0]\n}}\n}}",
        head(&format!("buffer tile: workgroup {t}[1]\n")),
        take("tile", "0")
    );
    // One apart, which compilers add up for many invocations at once.
    let (one, times) = if t == Scalar::U32 { ("1", "k") } else { ("1i", "i32(k)") };
    let ones = format!(
        "{}if flag % 2 == 1 {{\nlet old = atomic.{op}(tile, 0, {one})\natomic.add(marks, wid.x * SIZE + {}, 1)\n}}\nbarrier\n\
         if lid.x == 0 {{\nnext[wid.x] = tile[0] * {times}\n}}\n}}",
        head(&format!("buffer tile: workgroup {t}[1]\n")),
        rank.replace("OLD", old).replace(" / k", "")
    );
    let buffers = Grouped::new(
        [(DataType::U32, Count::Each), (DataType::U32, Count::One)],
        [(DataType::from(t), Count::One), (DataType::U32, Count::Each)],
    );
    let spec = buffers.spec(format!("atomic.{op}.tickets:{t}"), move |group, outputs| {
        let taken = group.u32s(0).into_iter().filter(|flag| flag % 2 == 1).count() as u32;
        let sum = (group.u32s(1)[0] % 1000 + 1) * taken;
        put([if op == AtomicOp::Sub { sum.wrapping_neg() } else { sum }], outputs[0]);
        put((0..group.size as u32).map(|rank| u32::from(rank < taken)), outputs[1]);
    });
    let spec = spec.program(text(storage)).alternative("returned", text(returned)).alternative("looped", text(looped));
    finish(spec.alternative("workgroup", text(local)).alternative("ones", text(ones)))
}

/// Invocations with an odd flag leave their number and take the one that was there. Every number is taken once, or stays.
fn chain(t: Scalar) -> OpSpec {
    let (old, own, left) =
        if t == Scalar::U32 { ("old", "lid.x + 1", "tile[0]") } else { ("u32(old)", "i32(lid.x + 1)", "u32(tile[0])") };
    let program = |enter: &str, leave: &str| {
        format!(
            "program p {{\nworkgroup SIZE\nbuffer flags: read u32 @0\nbuffer marks: output u32 @1\nbuffer tile: workgroup {t}[1]\n\
             let flag = flags[gid.x]\n{enter}let old = atomic.exchange(tile, 0, {own})\nif {old} > 0 {{\n\
             atomic.add(marks, wid.x * SIZE + {old} - 1, 1)\n}}\n{leave}barrier\n\
             if lid.x == 0 && {left} > 0 {{\natomic.add(marks, wid.x * SIZE + {left} - 1, 1)\n}}\n}}"
        )
    };
    let direct = program("if flag % 2 == 1 {\n", "}\n");
    let looped = program("for turn in 0..2 {\nif flag % 2 == 1 && turn == flag / 2 % 2 {\n", "}\n}\n");
    let buffers = Grouped::new([(DataType::U32, Count::Each)], [(DataType::U32, Count::Each)]);
    let spec = buffers.spec(format!("atomic.exchange.chain:{t}"), move |group, outputs| {
        put(group.u32s(0).into_iter().map(|flag| flag % 2), outputs[0]);
    });
    finish(spec.program(text(direct)).alternative("looped", text(looped)))
}

fn mixed(op: AtomicOp, t: Scalar) -> OpSpec {
    let it = Op { gives: false, ..Op::new(op, t) };
    let head = format!("program p {{\nworkgroup SIZE\nbuffer cells: read_write {t} @0\n{}", it.declared());
    let storage = format!("{head}{}}}", it.statement("cells", "wid.x", "gid.x"));
    let local = format!(
        "{head}buffer tile: workgroup {t}[1]\nif lid.x == 0 {{\ntile[0] = cells[wid.x]\n}}\nbarrier\n{}barrier\nif lid.x == 0 {{\ncells[wid.x] = tile[0]\n}}\n}}",
        it.statement("tile", "0", "gid.x")
    );
    let spec = it.buffers(Count::One, Count::Each, Count::One).spec(it.id("mixed"), move |group, outputs| {
        let cell = group.u32s(1).into_iter().fold(group.u32s(0)[0], |cell, a| left(it.op, it.signed, cell, a, 0));
        put([cell], outputs[0]);
    });
    finish(spec.law(op.info().law).program(text(storage)).alternative("workgroup", text(local)))
}

fn index(op: AtomicOp, t: Scalar) -> OpSpec {
    let it = Op { gives: false, ..Op::new(op, t) };
    // Half of the indices are as they come, mostly far out of bounds; the others are in bounds or just behind.
    let program = format!(
        "program p {{\nworkgroup SIZE\nbuffer cells: read_write {t} @0\n{}buffer at: read u32 @2\nbuffer tile: workgroup {t}[SIZE]\n\
         tile[lid.x] = cells[gid.x]\nbarrier\nlet to = select(at[gid.x] >= 0x80000000, at[gid.x], at[gid.x] % (SIZE + 2))\n{}barrier\n\
         cells[gid.x] = tile[lid.x]\n}}",
        it.declared(),
        it.statement("tile", "to", "gid.x")
    );
    let mut buffers = it.buffers(Count::Each, Count::Each, Count::One);
    buffers.inputs.push((DataType::U32, Count::Each));
    let spec = buffers.spec(it.id("index"), move |group, outputs| {
        let (mut cells, operands) = (group.u32s(0), group.u32s(1));
        for (at, a) in group.u32s(2).into_iter().zip(operands) {
            let to = if at >= 1 << 31 { at as usize } else { at as usize % (group.size + 2) };
            if let Some(cell) = cells.get_mut(to) {
                *cell = left(it.op, it.signed, *cell, a, 0);
            }
        }
        put(cells, outputs[0]);
    });
    finish(spec.law(op.info().law).program(text(program)))
}
