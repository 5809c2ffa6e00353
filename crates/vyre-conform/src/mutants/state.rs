//! Faults of what is kept between dispatches: buffers that still hold what was there before, and code that belongs to another program.

use super::fault::Fault;
use std::borrow::Cow;
use vyre_foundation::config::SpecMap;
use vyre_foundation::interface::Interface;
use vyre_foundation::ir::{Access, BinaryOp, DataType, Expr, Item, Literal, Program, Scalar};
use vyre_spec::FloatMode;

/// What is taken over from the dispatch before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stale {
    pub what: What,
    pub when: When,
}

/// Which bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum What {
    /// An output begins with what it held, not with zeros.
    Outputs,
    /// The last output alone.
    LastOutput,
    /// An output begins with what it held from this byte on.
    OutputsFrom(usize),
    /// A buffer that is read and written begins with what it held.
    ReadWrite,
    /// The n-th input.
    Input(usize),
    /// The last input.
    LastInput,
    /// Every input.
    AllInputs,
    /// The first so many bytes of every input.
    Head(usize),
    /// What is behind so many bytes of every input.
    From(usize),
}

impl What {
    /// Whether it is about what a dispatch reads, and not about what its outputs begin with.
    fn is_input(self) -> bool {
        match self {
            What::Input(_) | What::LastInput | What::AllInputs | What::Head(_) | What::From(_) => true,
            What::Outputs | What::LastOutput | What::OutputsFrom(_) | What::ReadWrite => false,
        }
    }
}

/// At which dispatches, if buffers are as long as they were.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum When {
    /// At all of them.
    Always,
    /// If the dispatch before was of the same program.
    SameProgram,
    /// If the dispatch before was of another program.
    OtherProgram,
    /// At every n-th.
    Every(u64),
    /// Where a buffer has so many bytes or more.
    Large(usize),
}

impl Stale {
    pub fn applies(&self, program: &Program) -> bool {
        let has = |wanted: fn(Access) -> bool| program.buffers().iter().filter(|buffer| wanted(buffer.access)).count();
        match self.what {
            What::Outputs | What::LastOutput | What::OutputsFrom(_) => has(|access| access == Access::Output) > 0,
            What::ReadWrite => has(|access| access == Access::ReadWrite) > 0,
            What::Input(n) => has(Access::is_input) > n,
            What::LastInput | What::AllInputs | What::Head(_) | What::From(_) => has(Access::is_input) > 0,
        }
    }
}

/// What the dispatch before left.
#[derive(Default)]
pub(super) struct Before {
    dispatches: u64,
    program: Option<Program>,
    inputs: Vec<Vec<u8>>,
    outputs: Vec<Vec<u8>>,
}

impl Before {
    fn is_time(&self, when: When, program: &Program, bytes: usize) -> bool {
        match when {
            When::Always => true,
            When::SameProgram => self.program.as_ref() == Some(program),
            When::OtherProgram => self.program.as_ref().is_some_and(|before| before != program),
            When::Every(n) => self.dispatches % n == n - 1,
            When::Large(least) => bytes >= least,
        }
    }

    /// The inputs that a dispatch sees; `None` if they are the right ones.
    pub fn inputs<'a>(&'a self, fault: &Fault, program: &Program, inputs: &[&'a [u8]]) -> Option<Vec<Cow<'a, [u8]>>> {
        let stale = fault.stale().filter(|stale| stale.what.is_input())?;
        let last = inputs.len().checked_sub(1)?;
        let one = |(n, bytes): (usize, &&'a [u8])| {
            let before = self.inputs.get(n).filter(|before| before.len() == bytes.len());
            let part = match stale.what {
                What::Input(which) if which == n => 0..bytes.len(),
                What::LastInput if n == last => 0..bytes.len(),
                What::AllInputs => 0..bytes.len(),
                What::Head(count) => 0..count.min(bytes.len()),
                What::From(count) => count.min(bytes.len())..bytes.len(),
                What::Outputs | What::LastOutput | What::OutputsFrom(_) | What::ReadWrite | What::Input(_) | What::LastInput => {
                    0..0
                }
            };
            match before.filter(|_| self.is_time(stale.when, program, bytes.len())) {
                Some(before) if part.len() == bytes.len() => Cow::Borrowed(&before[..]),
                Some(before) if !part.is_empty() => {
                    let mut mixed = bytes.to_vec();
                    mixed[part.clone()].copy_from_slice(&before[part]);
                    Cow::Owned(mixed)
                }
                Some(_) | None => Cow::Borrowed(*bytes),
            }
        };
        Some(inputs.iter().enumerate().map(one).collect())
    }

    /// Makes outputs, which hold what they should begin with, begin with something else.
    pub fn outputs(&self, fault: &Fault, program: &Program, interface: &Interface, outputs: &mut [&mut [u8]]) {
        let Some(stale) = fault.stale().filter(|stale| !stale.what.is_input()) else { return };
        let last = interface.outputs.len().saturating_sub(1);
        for (n, i) in interface.outputs.iter().enumerate() {
            let is_output = program.buffers()[*i].access == Access::Output;
            let from = match stale.what {
                What::Outputs if is_output => 0,
                What::LastOutput if is_output && n == last => 0,
                What::OutputsFrom(byte) if is_output => byte,
                What::ReadWrite if !is_output => 0,
                What::Outputs
                | What::LastOutput
                | What::OutputsFrom(_)
                | What::ReadWrite
                | What::Input(_)
                | What::LastInput
                | What::AllInputs
                | What::Head(_)
                | What::From(_) => continue,
            };
            let place = &mut *outputs[n];
            if let Some(before) = self.outputs.get(n).filter(|_| self.is_time(stale.when, program, place.len())) {
                let end = before.len().min(place.len());
                if from < end {
                    place[from..end].copy_from_slice(&before[from..end]);
                }
            }
        }
    }

    /// Remembers a dispatch.
    pub fn keep(&mut self, fault: &Fault, program: &Program, inputs: &[&[u8]], outputs: &[&mut [u8]]) {
        let Some(stale) = fault.stale() else { return };
        self.dispatches += 1;
        self.program = Some(program.clone());
        if stale.what.is_input() {
            copy(&mut self.inputs, inputs.iter().copied());
        } else {
            copy(&mut self.outputs, outputs.iter().map(|bytes| &**bytes));
        }
    }
}

/// Copies bytes into the memory that is there.
fn copy<'a>(into: &mut Vec<Vec<u8>>, from: impl ExactSizeIterator<Item = &'a [u8]>) {
    into.resize_with(from.len(), Vec::new);
    for (place, bytes) in into.iter_mut().zip(from) {
        place.clear();
        place.extend_from_slice(bytes);
    }
}

/// What a cache takes for the identity of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum WeakKey {
    /// All but the values of constants.
    NoConstants,
    /// All but the values of constants of this type.
    NoConstantsOf(Scalar),
    /// The values of constants without their names.
    ConstantsByOrder,
    /// All but literals.
    NoLiterals,
    /// All but literals of this type.
    NoLiteralsOf(Scalar),
    /// All, but of integer literals only so many low bits.
    LowLiterals(u32),
    /// All but which op on two operands it is.
    NoBinaryOps,
    /// All but which op on one operand it is.
    NoUnaryOps,
    /// All but `floats canonical`.
    NoFloatMode,
    /// Buffers and nothing of the body.
    Interface,
    /// The length of the encoded program.
    Length,
    /// So many first bytes of the encoded program.
    Head(usize),
    /// So many last bytes of the encoded program.
    End(usize),
    /// The sum of the bytes of the encoded program.
    Sum,
    /// So many bits of the right key.
    Bits(u32),
    /// How many statements and expressions there are.
    Count,
}

impl WeakKey {
    /// The key of a program with these values for its constants.
    pub fn of(&self, program: &Program, values: &SpecMap) -> Vec<u8> {
        let mut constants = Vec::new();
        match self {
            WeakKey::NoConstants => {}
            WeakKey::NoConstantsOf(scalar) => {
                let mut kept = values.clone();
                kept.retain(|name| {
                    let value = values.get(name).map(|value| value.kind().to_string());
                    value.as_deref() != Some(scalar.name())
                });
                kept.encode(&mut constants);
            }
            WeakKey::ConstantsByOrder => {
                let mut sorted: Vec<String> = values.iter().map(|(_, value)| value.to_string()).collect();
                sorted.sort();
                constants.extend(sorted.join(",").bytes());
            }
            WeakKey::NoLiterals
            | WeakKey::NoLiteralsOf(_)
            | WeakKey::LowLiterals(_)
            | WeakKey::NoBinaryOps
            | WeakKey::NoUnaryOps
            | WeakKey::NoFloatMode
            | WeakKey::Interface
            | WeakKey::Length
            | WeakKey::Head(_)
            | WeakKey::End(_)
            | WeakKey::Sum
            | WeakKey::Bits(_)
            | WeakKey::Count => values.encode(&mut constants),
        }
        let mut key = self.of_body(program);
        if let WeakKey::Bits(bits) = self {
            key.extend(&constants);
            let hash = blake3::hash(&key);
            let low = u64::from_le_bytes(*hash.as_bytes().first_chunk().unwrap_or(&[0; 8]));
            return (low & ((1 << bits) - 1)).to_le_bytes().to_vec();
        }
        key.extend(constants);
        key
    }

    fn of_body(&self, program: &Program) -> Vec<u8> {
        let wire = program.wire_body();
        let without = |change: &dyn Fn(&Expr) -> Option<Expr>| erased(program, change).wire_body().to_vec();
        let literal = |keep: &dyn Fn(Literal) -> Option<u64>| {
            without(&|expr| {
                let Expr::Lit(literal) = expr else { return None };
                keep(*literal).map(|bits| Expr::Lit(Literal::from_bits(literal.scalar(), bits)))
            })
        };
        match self {
            WeakKey::NoConstants | WeakKey::NoConstantsOf(_) | WeakKey::ConstantsByOrder | WeakKey::Bits(_) => wire.to_vec(),
            WeakKey::NoLiterals => literal(&|_| Some(0)),
            WeakKey::NoLiteralsOf(scalar) => literal(&|literal| (literal.scalar() == *scalar).then_some(0)),
            WeakKey::LowLiterals(bits) => {
                literal(&|literal| literal.scalar().is_int().then(|| literal.bits() & ((1 << bits) - 1)))
            }
            WeakKey::NoBinaryOps => without(&|expr| match expr {
                Expr::Binary { left, right, .. } => Some(Expr::binary(BinaryOp::Add, Expr::clone(left), Expr::clone(right))),
                Expr::Lit(_)
                | Expr::Var(_)
                | Expr::Builtin(_)
                | Expr::Len(_)
                | Expr::Load(_)
                | Expr::Unary { .. }
                | Expr::Ternary { .. }
                | Expr::Cast { .. }
                | Expr::Bitcast { .. }
                | Expr::Vector { .. }
                | Expr::Extract { .. } => None,
            }),
            WeakKey::NoUnaryOps => without(&|expr| {
                let Expr::Unary { operand, .. } = expr else { return None };
                Some(Expr::neg(Expr::clone(operand)))
            }),
            WeakKey::NoFloatMode => program.clone().edit(|parts| parts.floats = FloatMode::Ieee).wire_body().to_vec(),
            WeakKey::Interface => format!("{:?}", Fits::of(program)).into_bytes(),
            WeakKey::Length => wire.len().to_le_bytes().to_vec(),
            WeakKey::Head(count) => wire[..wire.len().min(*count)].to_vec(),
            WeakKey::End(count) => wire[wire.len().saturating_sub(*count)..].to_vec(),
            WeakKey::Sum => wire.iter().map(|byte| u64::from(*byte)).sum::<u64>().to_le_bytes().to_vec(),
            WeakKey::Count => {
                let (nodes, exprs) = program.walk().fold((0u64, 0u64), |(nodes, exprs), (item, _)| match item {
                    Item::Node(_) => (nodes + 1, exprs),
                    Item::Expr(_) => (nodes, exprs + 1),
                });
                [nodes.to_le_bytes(), exprs.to_le_bytes()].concat()
            }
        }
    }
}

/// The program with expressions replaced, valid or not: nobody runs it.
fn erased(program: &Program, change: &dyn Fn(&Expr) -> Option<Expr>) -> Program {
    fn expr(here: &mut Expr, change: &dyn Fn(&Expr) -> Option<Expr>) {
        here.children_mut().for_each(|child| expr(child, change));
        if let Some(instead) = change(here) {
            *here = instead;
        }
    }
    fn body(here: &mut vyre_foundation::ir::Body, change: &dyn Fn(&Expr) -> Option<Expr>) {
        for node in here.iter_mut() {
            node.exprs_mut().for_each(|here| expr(here, change));
            node.bodies_mut().for_each(|here| body(here, change));
        }
    }
    program.clone().edit(|parts| body(&mut parts.body, change))
}

/// What code of one program needs of a launch that was planned for another.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Fits {
    buffers: Vec<(Access, Option<u32>, DataType, Option<u32>)>,
    workgroup: [u32; 3],
    subgroup: Option<u32>,
}

impl Fits {
    /// What a program needs of a launch.
    pub fn of(program: &Program) -> Fits {
        let kernel = program.validated().ok().map(|validated| validated.kernel());
        let buffers = kernel.iter().flat_map(|kernel| &kernel.buffers);
        Fits {
            buffers: buffers.map(|it| (it.access, it.binding, it.element.clone(), it.count)).collect(),
            workgroup: program.workgroup_size(),
            subgroup: program.parts().subgroup,
        }
    }
}
