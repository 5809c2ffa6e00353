//! Buffers, and access to their elements.
//!
//! A buffer is an array of *cells*: words, pairs of words, or vectors of four. Elements of less than 32 bits share words, elements of three
//! words take three cells. Buffers with atomics, and those with elements that share words and are written, are arrays of atomics: what
//! others write into the same word is kept by clearing and setting the element's own bits.
//!
//! Every access out of bounds is kept from memory here, unless the facts prove that there is none; then the index is below the length, as
//! it is below 2^30 words of a buffer.

use super::{Emitter, type_name};
use crate::error::EmitError;
use crate::floats::{FloatOp, SmallFloat};
use vyre_foundation::ir::{AtomicOp, DataType};
use vyre_foundation::kernel::{AccessId, BufferId};
use vyre_foundation::ssa::{InstKind, Ssa, Value};
use vyre_spec::{Scalar, ValueType};

/// How the elements of a buffer lie in the shader's memory.
#[derive(Clone, Debug)]
pub(super) struct Place {
    element: Element,
    /// Whether its cells are atomics, and signed ones.
    atomic: Option<Atomic>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Atomic {
    Unsigned,
    Signed,
}

/// An element in cells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Element {
    /// A word.
    Word,
    /// So many words in one cell.
    Wide(u32),
    /// Three cells of a word.
    Three,
    /// So many bits of a word.
    Part(u32),
}

impl Place {
    /// Those of all buffers.
    pub fn of_all(ssa: &Ssa) -> Vec<Place> {
        let kernel = &ssa.kernel;
        let mut places: Vec<Place> = kernel
            .buffers
            .iter()
            .map(|buffer| {
                let element = match buffer.element.bits().unwrap_or(32) {
                    32 => Element::Word,
                    64 => Element::Wide(2),
                    128 => Element::Wide(4),
                    96 => Element::Three,
                    bits => Element::Part(bits as u32),
                };
                Place { element, atomic: None }
            })
            .collect();
        for inst in &ssa.insts {
            match &inst.kind {
                InstKind::Atomic { buffer, .. } => {
                    let signed = kernel.buffer(*buffer).value == ValueType::Scalar(Scalar::I32);
                    places[buffer.index()].atomic = Some(if signed { Atomic::Signed } else { Atomic::Unsigned });
                }
                InstKind::Store { buffer, .. } if matches!(places[buffer.index()].element, Element::Part(_)) => {
                    places[buffer.index()].atomic = Some(Atomic::Unsigned);
                }
                InstKind::Store { .. }
                | InstKind::Op(_)
                | InstKind::Load { .. }
                | InstKind::Subgroup { .. }
                | InstKind::If { .. }
                | InstKind::Loop { .. }
                | InstKind::Barrier
                | InstKind::GridSync => {}
            }
        }
        places
    }

    /// The type of a cell.
    pub fn cell(&self) -> &'static str {
        match (self.atomic, self.element) {
            (Some(Atomic::Unsigned), _) => "atomic<u32>",
            (Some(Atomic::Signed), _) => "atomic<i32>",
            (None, Element::Wide(2)) => "vec2<u32>",
            (None, Element::Wide(_)) => "vec4<u32>",
            (None, Element::Word | Element::Three | Element::Part(_)) => "u32",
        }
    }

    pub fn cell_bytes(&self) -> u32 {
        match self.element {
            Element::Wide(words) => 4 * words,
            Element::Word | Element::Three | Element::Part(_) => 4,
        }
    }

    /// Cells of so many elements.
    pub fn cells(&self, count: u32) -> u32 {
        match self.element {
            Element::Word | Element::Wide(_) => count,
            Element::Three => count.saturating_mul(3),
            Element::Part(bits) => count.div_ceil(32 / bits),
        }
    }

    /// A statement that clears the cell `$`.
    pub fn zero(&self) -> String {
        match (self.atomic, self.element) {
            (Some(Atomic::Unsigned), _) => "atomicStore(&$, 0u);".into(),
            (Some(Atomic::Signed), _) => "atomicStore(&$, 0i);".into(),
            (None, Element::Wide(words)) => format!("$ = vec{words}<u32>();"),
            (None, Element::Word | Element::Three | Element::Part(_)) => "$ = 0u;".into(),
        }
    }

    fn read(&self, name: &str, index: &str) -> String {
        match self.atomic {
            Some(Atomic::Unsigned) => format!("atomicLoad(&{name}[{index}])"),
            Some(Atomic::Signed) => format!("bitcast<u32>(atomicLoad(&{name}[{index}]))"),
            None => format!("{name}[{index}]"),
        }
    }

    fn write(&self, name: &str, index: &str, value: &str) -> String {
        match self.atomic {
            Some(Atomic::Unsigned) => format!("atomicStore(&{name}[{index}], {value});"),
            Some(Atomic::Signed) => format!("atomicStore(&{name}[{index}], bitcast<i32>({value}));"),
            None => format!("{name}[{index}] = {value};"),
        }
    }
}

impl Emitter<'_> {
    /// Makes a function of the kernel's own, once.
    fn accessor(&mut self, text: String) {
        if !self.accessors.contains(&text) {
            self.accessors.push(text);
        }
    }

    /// An index. One that is known and not proven is kept from compilers, which refuse it where it is out of bounds; so is one that is proven
    /// behind a condition that does not hold, and negative to a compiler that counts in 32 bits with a sign.
    fn index(&self, access: AccessId, index: Value) -> String {
        let text = self.value(index);
        match self.literal_bits(index) {
            Some(bits) if bits >= 1 << 31 || !self.bounds.is_proven(access) => format!("vyk_lit({text})"),
            Some(_) | None => text,
        }
    }

    /// The raw bits of an element whose index is in bounds.
    fn raw(&mut self, id: BufferId, index: &str) -> String {
        let (name, place) = (self.buffer_name(id), self.places[id.index()].clone());
        match place.element {
            Element::Word | Element::Wide(_) => place.read(&name, index),
            Element::Three => {
                let part = |n: u32| place.read(&name, &format!("3u * {index} + {n}u"));
                format!("vec3<u32>({}, {}, {})", part(0), part(1), part(2))
            }
            Element::Part(bits) => {
                let per_word = 32 / bits;
                let word = place.read(&name, &format!("{index} / {per_word}u"));
                format!("(({word} >> ({bits}u * ({index} % {per_word}u))) & {:#x}u)", (1u32 << bits) - 1)
            }
        }
    }

    pub fn load(&mut self, access: AccessId, id: BufferId, index: Value) -> Result<String, EmitError> {
        let buffer = self.kernel.buffer(id);
        let index = self.index(access, index);
        let expression = match self.bounds.is_proven(access) {
            true => {
                let raw = self.raw(id, &index);
                self.widen(&buffer.element, raw)?
            }
            false => {
                let raw = self.raw(id, "i");
                let element = self.widen(&buffer.element, raw)?;
                let (name, ty, len) = (self.buffer_name(id), type_name(buffer.value), self.len(id));
                self.accessor(format!(
                    "fn {name}_load(i: u32) -> {ty} {{\n    var x = {ty}();\n    if (i < {len}) {{\n        x = {element};\n    }}\n    return x;\n}}"
                ));
                format!("{name}_load({index})")
            }
        };
        Ok(expression)
    }

    /// A value from the bits of an element.
    fn widen(&mut self, element: &DataType, raw: String) -> Result<String, EmitError> {
        Ok(match element {
            DataType::U32 | DataType::I32 | DataType::U64 | DataType::I64 | DataType::U8 | DataType::U16 => raw,
            DataType::Bool => format!("({raw} != 0u)"),
            DataType::F32 => self.float_op(FloatOp::Canonicalize, &[&raw])?,
            DataType::I8 => format!("bitcast<u32>(bitcast<i32>({raw} << 24u) >> 24u)"),
            DataType::I16 => format!("bitcast<u32>(bitcast<i32>({raw} << 16u) >> 16u)"),
            DataType::I4 => format!("bitcast<u32>(bitcast<i32>({raw} << 28u) >> 28u)"),
            DataType::Vec2U32 | DataType::Vec4U32 => raw,
            DataType::Vec { element, count } if **element == DataType::F32 => {
                let parts: Vec<String> = ["x.x", "x.y", "x.z", "x.w"][..usize::from(*count)]
                    .iter()
                    .map(|part| self.float_op(FloatOp::Canonicalize, &[part]))
                    .collect::<Result<_, _>>()?;
                let (ty, parts) = (format!("vec{count}<u32>"), parts.join(", "));
                self.accessor(format!("fn vyk_floats{count}(x: {ty}) -> {ty} {{\n    return {ty}({parts});\n}}"));
                format!("vyk_floats{count}({raw})")
            }
            DataType::Vec { .. } => raw,
            DataType::F16 | DataType::BF16 | DataType::F8E4M3 | DataType::F8E5M2 | DataType::FP4 | DataType::NF4 => {
                match SmallFloat::of(element) {
                    Some(small) => self.float_op(FloatOp::Load(small), &[&raw])?,
                    None => unreachable!("all of them are small floats"),
                }
            }
            DataType::F64 => return Err(EmitError::unsupported("f64")),
            DataType::Bytes
            | DataType::Array { .. }
            | DataType::Tensor
            | DataType::Handle(_)
            | DataType::TensorShaped { .. }
            | DataType::SparseCsr { .. }
            | DataType::SparseCoo { .. }
            | DataType::SparseBsr { .. }
            | DataType::DeviceMesh { .. }
            | DataType::Opaque(_) => unreachable!("no kernel has elements that are described only"),
        })
    }

    /// The bits of an element from a value.
    fn narrow(&mut self, element: &DataType, value: &str) -> Result<String, EmitError> {
        Ok(match element {
            DataType::U32 | DataType::I32 | DataType::F32 | DataType::U64 | DataType::I64 => value.into(),
            DataType::Bool => format!("select(0u, 1u, {value})"),
            DataType::U8 | DataType::I8 => format!("({value} & 0xffu)"),
            DataType::U16 | DataType::I16 => format!("({value} & 0xffffu)"),
            DataType::Vec2U32 | DataType::Vec4U32 | DataType::Vec { .. } => value.into(),
            DataType::F16 | DataType::BF16 | DataType::F8E4M3 | DataType::F8E5M2 => match SmallFloat::of(element) {
                Some(small) => self.float_op(FloatOp::Store(small), &[value])?,
                None => unreachable!("all of them are small floats"),
            },
            DataType::F64 => return Err(EmitError::unsupported("f64")),
            DataType::I4
            | DataType::FP4
            | DataType::NF4
            | DataType::Bytes
            | DataType::Array { .. }
            | DataType::Tensor
            | DataType::Handle(_)
            | DataType::TensorShaped { .. }
            | DataType::SparseCsr { .. }
            | DataType::SparseCoo { .. }
            | DataType::SparseBsr { .. }
            | DataType::DeviceMesh { .. }
            | DataType::Opaque(_) => unreachable!("the validator refuses stores to them"),
        })
    }

    pub fn store(&mut self, access: AccessId, id: BufferId, index: Value, value: Value) -> Result<(), EmitError> {
        let (name, place) = (self.buffer_name(id), self.places[id.index()].clone());
        let (index, value) = (self.index(access, index), self.value(value));
        let raw = self.narrow(&self.kernel.buffer(id).element, &value)?;
        let proven = self.bounds.is_proven(access);
        if !proven {
            let len = self.len(id);
            self.open(format!("if ({index} < {len}) {{"));
        }
        match place.element {
            Element::Word | Element::Wide(_) => self.line(place.write(&name, &index, &raw)),
            Element::Three => {
                for (n, part) in ["x", "y", "z"].iter().enumerate() {
                    self.line(place.write(&name, &format!("3u * {index} + {n}u"), &format!("{raw}.{part}")));
                }
            }
            Element::Part(bits) => {
                let per_word = 32 / bits;
                let (word, shift) = (self.fresh("word"), self.fresh("shift"));
                let mask = (1u32 << bits) - 1;
                // Two steps, each of which leaves the other elements of the word alone.
                if proven {
                    self.line("{");
                }
                self.line(format!("let {word} = {index} / {per_word}u;"));
                self.line(format!("let {shift} = {bits}u * ({index} % {per_word}u);"));
                self.line(format!("atomicAnd(&{name}[{word}], ~({mask:#x}u << {shift}));"));
                self.line(format!("atomicOr(&{name}[{word}], {raw} << {shift});"));
                if proven {
                    self.line("}");
                }
            }
        }
        if !proven {
            self.close();
        }
        Ok(())
    }

    pub fn atomic(
        &mut self,
        access: AccessId,
        op: AtomicOp,
        id: BufferId,
        index: Value,
        operands: &[Value],
        result: Option<Value>,
    ) {
        let name = self.buffer_name(id);
        let signed = self.places[id.index()].atomic == Some(Atomic::Signed);
        let index = self.index(access, index);
        let operands: Vec<String> = operands
            .iter()
            .map(|operand| {
                let operand = self.value(*operand);
                if signed { format!("bitcast<i32>({operand})") } else { operand }
            })
            .collect();
        let call = |function: &str| {
            let operands: String = operands.iter().map(|operand| format!(", {operand}")).collect();
            format!("{function}(&{name}[{index}]{operands})")
        };
        let expression = match op {
            AtomicOp::Load => call("atomicLoad"),
            AtomicOp::Store => call("atomicStore"),
            AtomicOp::Exchange => call("atomicExchange"),
            AtomicOp::CompareExchange => String::new(),
            AtomicOp::Add => call("atomicAdd"),
            AtomicOp::Sub => call("atomicSub"),
            AtomicOp::Min => call("atomicMin"),
            AtomicOp::Max => call("atomicMax"),
            AtomicOp::And => call("atomicAnd"),
            AtomicOp::Or => call("atomicOr"),
            AtomicOp::Xor => call("atomicXor"),
        };
        if let Some(result) = result {
            self.declare(result);
        }
        let proven = self.bounds.is_proven(access);
        match (proven, self.len(id)) {
            (true, _) => self.open("{"),
            (false, len) => self.open(format!("if ({index} < {len}) {{")),
        }
        let old = |expression: &str| if signed { format!("bitcast<u32>({expression})") } else { expression.into() };
        let result = result.map(|result| self.name(result));
        if op == AtomicOp::CompareExchange {
            // WGSL's exchange is weak: it may fail without a reason, and is then tried again.
            let (seen, expected) = (self.fresh("seen"), operands[0].clone());
            self.open("loop {");
            self.line(format!("let {seen} = {};", call("atomicCompareExchangeWeak")));
            if let Some(result) = &result {
                self.line(format!("{result} = {};", old(&format!("{seen}.old_value"))));
            }
            self.line(format!("if ({seen}.exchanged || {seen}.old_value != {expected}) {{ break; }}"));
            self.close();
        } else {
            match &result {
                Some(result) => self.line(format!("{result} = {};", old(&expression))),
                None if op == AtomicOp::Load => self.line(format!("_ = {expression};")),
                None => self.line(format!("{expression};")),
            }
        }
        self.close();
    }
}
