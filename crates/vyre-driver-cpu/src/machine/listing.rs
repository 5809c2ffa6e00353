//! Machine code for people: instructions, their bytes, and the statement that they are for.

use super::encode::Encoded;
use iced_x86::{Decoder, DecoderOptions, Formatter, Instruction, NasmFormatter, OpKind, SymbolResolver, SymbolResult};
use std::collections::BTreeMap;
use std::fmt::Write;

/// How many bytes of an instruction are on a line; longer ones go on below.
const BYTES: usize = 10;
const WIDTH: usize = 3 * BYTES - 1;

/// Writes code with what `statement` says of a mark above the instructions that it begins, and the constants at the end. Jumps and
/// constants have names. Code that comes before the first mark is the entry.
pub(crate) fn listing(encoded: &Encoded, statement: impl Fn(u32) -> Option<String>) -> String {
    let (code, rest) = encoded.bytes.split_at(encoded.code_len);
    let padding = encoded.code_len.next_multiple_of(32) - encoded.code_len;
    let constants = rest.get(padding..).unwrap_or_default();
    let instructions: Vec<Instruction> = Decoder::with_ip(64, code, 0, DecoderOptions::NONE).into_iter().collect();
    let names = Names::new(&instructions, encoded.code_len + padding);
    let mut formatter = NasmFormatter::with_options(Some(Box::new(names.clone())), None);
    formatter.options_mut().set_space_after_operand_separator(true);
    let mut marks = encoded.marks.iter().peekable();
    let mut text = String::new();
    let mut last = None;
    for inst in &instructions {
        let at = inst.ip() as usize;
        // Of several marks at one place, the last has the code.
        let mut mark = None;
        while let Some((_, number)) = marks.next_if(|(place, _)| *place <= at) {
            mark = Some(*number);
        }
        if let Some(number) = mark.filter(|number| last != Some(*number)) {
            last = Some(number);
            if let Some(statement) = statement(number) {
                statement.lines().for_each(|line| push(&mut text, format_args!("; {line}")));
            }
        }
        if let Some(name) = names.names.get(&inst.ip()) {
            push(&mut text, format_args!("{name}:"));
        }
        let mut spelled = String::new();
        formatter.format(inst, &mut spelled);
        let mut rows = code[at..at + inst.len()].chunks(BYTES);
        let first = rows.next().unwrap_or_default();
        push(&mut text, format_args!("  {at:05x}  {:WIDTH$}  {spelled}", hex(first)));
        for row in rows {
            push(&mut text, format_args!("         {}", hex(row)));
        }
    }
    for (row, bytes) in constants.chunks(32).enumerate() {
        if row == 0 {
            push(&mut text, format_args!("; constants"));
        }
        push(&mut text, format_args!("  {:7}  {}", constant(32 * row), words(bytes)));
    }
    text
}

fn push(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{line}");
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}

/// Numbers of four bytes, as registers show them.
fn words(bytes: &[u8]) -> String {
    let word = |chunk: &[u8]| chunk.iter().rev().map(|byte| format!("{byte:02x}")).collect::<String>();
    bytes.chunks(4).map(word).collect::<Vec<_>>().join(" ")
}

fn constant(offset: usize) -> String {
    format!("c{offset:x}")
}

/// What addresses are called.
#[derive(Clone)]
struct Names {
    names: BTreeMap<u64, String>,
}

impl Names {
    fn new(instructions: &[Instruction], pool: usize) -> Names {
        let mut names = BTreeMap::new();
        for inst in instructions {
            if inst.op_count() > 0 && inst.op0_kind() == OpKind::NearBranch64 {
                names.insert(inst.near_branch64(), String::new());
            }
        }
        names.values_mut().enumerate().for_each(|(n, name)| *name = format!("l{n}"));
        for inst in instructions {
            if inst.is_ip_rel_memory_operand() {
                let address = inst.ip_rel_memory_address();
                names.insert(address, constant((address as usize).wrapping_sub(pool)));
            }
        }
        Names { names }
    }
}

impl SymbolResolver for Names {
    fn symbol(&mut self, inst: &Instruction, _: u32, operand: Option<u32>, address: u64, _: u32) -> Option<SymbolResult<'_>> {
        // Other numbers are not addresses.
        let kind = inst.op_kind(operand?);
        let named = kind == OpKind::NearBranch64 || kind == OpKind::Memory && inst.is_ip_rel_memory_operand();
        self.names.get(&address).filter(|_| named).map(|name| SymbolResult::with_str(address, name))
    }
}
