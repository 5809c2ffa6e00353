//! The JSON form: programs for tools that read no other, such as workers in other languages. `docs/workers.md` specifies it.
//!
//! Statements and expressions stand in one flat list, each at the place of its number ([`NodeId`](crate::ir::NodeId)), and name those
//! below them by number. A reader looks a number up; nothing nests, so programs of any depth have this form and no reader recurses by
//! accident. Ops go by the mnemonics of their tables, types by their spelling in the text form, constants by their bits.
//!
//! Reading checks that every number is the one that a walk in source order gives: each item stands in exactly one place, and what was
//! read and written again is the same document.

use crate::ir::{
    Access, Atomic, AtomicOp, BinaryOp, Body, BufferDecl, Builtin, Child, ConstDecl, Element, Expr, FloatMode, Item, Literal,
    Load, Loop, Name, Node, Parts, Program, Scalar, Size, Store, Subgroup, SubgroupOp, TernaryOp, UnaryOp,
};
use crate::memory_model::MemoryOrdering;
use crate::specialize::SpecValue;
use crate::text::parse_data_type;
use crate::wire::{from_wire, to_wire};
use serde::de::{Error as _, Visitor};
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// The version of the form that is written here, and the only one there has been.
pub const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    vyre: u32,
    workgroup: [SizeRow; 3],
    floats: String,
    subgroup: Option<u32>,
    consts: Vec<ConstRow>,
    buffers: Vec<BufferRow>,
    /// The top-level statements.
    body: Vec<u32>,
    nodes: Vec<Row>,
}

/// A number, or the constant that has it.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum SizeRow {
    Lit(u32),
    Const { r#const: String },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ConstRow {
    name: String,
    default: SpecValue,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BufferRow {
    name: String,
    access: String,
    element: ElementRow,
    count: Option<SizeRow>,
    binding: Option<u32>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ElementRow {
    Type(String),
    Const(String),
}

/// One statement or expression; numbers are those of other rows.
#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
enum Row {
    Let { name: String, value: u32 },
    Assign { name: String, value: u32 },
    Store { buffer: String, index: u32, value: u32 },
    Atomic { result: Option<String>, op: String, buffer: String, index: u32, args: Vec<u32> },
    Subgroup { result: Option<String>, op: String, args: Vec<u32> },
    If { cond: u32, then: Vec<u32>, r#else: Vec<u32> },
    For { var: String, from: u32, to: u32, body: Vec<u32> },
    Break {},
    Continue {},
    Return {},
    Barrier { ordering: String },
    Trap { tag: u32 },
    Block { body: Vec<u32> },
    Region { generator: String, body: Vec<u32> },
    Lit { r#type: String, bits: u64 },
    Var { name: String },
    Builtin { name: String },
    Len { buffer: String },
    Load { buffer: String, index: u32 },
    Unary { op: String, args: [u32; 1] },
    Binary { op: String, args: [u32; 2] },
    Ternary { op: String, args: [u32; 3] },
    Cast { to: String, value: u32 },
    Bitcast { to: String, value: u32 },
    Vector { args: Vec<u32> },
    Extract { component: u8, vector: u32 },
}

impl From<&Size> for SizeRow {
    fn from(size: &Size) -> Self {
        match size {
            Size::Lit(value) => SizeRow::Lit(*value),
            Size::Const(name) => SizeRow::Const { r#const: name.as_str().into() },
        }
    }
}

impl From<SizeRow> for Size {
    fn from(size: SizeRow) -> Self {
        match size {
            SizeRow::Lit(value) => Size::Lit(value),
            SizeRow::Const { r#const } => Size::Const(r#const.into()),
        }
    }
}

impl Document {
    fn of(program: &Program) -> Document {
        let parts = program.parts();
        let (nodes, body) = rows(program);
        Document {
            vyre: VERSION,
            workgroup: parts.workgroup.each_ref().map(SizeRow::from),
            floats: parts.floats.name().to_string(),
            subgroup: parts.subgroup,
            consts: (parts.consts.iter())
                .map(|decl| ConstRow { name: decl.name.as_str().into(), default: decl.default.clone() })
                .collect(),
            buffers: parts.buffers.iter().map(BufferRow::of).collect(),
            body,
            nodes,
        }
    }

    fn into_program(self) -> Result<Program, String> {
        if self.vyre != VERSION {
            return Err(format!("the program is in version {} of the JSON form; this is version {VERSION}", self.vyre));
        }
        let floats = FloatMode::ALL.into_iter().find(|mode| mode.name() == self.floats);
        let consts = self.consts.into_iter().map(|row| ConstDecl { name: row.name.into(), default: row.default });
        Ok(Program::from_parts(Parts {
            floats: floats.ok_or_else(|| format!("there is no float mode `{}`", self.floats))?,
            subgroup: self.subgroup,
            workgroup: self.workgroup.map(Size::from),
            consts: consts.collect(),
            buffers: self.buffers.into_iter().map(BufferRow::into_decl).collect::<Result<_, _>>()?,
            body: body(self.nodes, &self.body)?,
        }))
    }
}

impl BufferRow {
    fn of(decl: &BufferDecl) -> BufferRow {
        BufferRow {
            name: decl.name.as_str().into(),
            access: decl.access.name().into(),
            element: match &decl.element {
                Element::Type(data_type) => ElementRow::Type(data_type.to_string()),
                Element::Const(name) => ElementRow::Const(name.as_str().into()),
            },
            count: decl.count.as_ref().map(SizeRow::from),
            binding: decl.binding,
        }
    }

    fn into_decl(self) -> Result<BufferDecl, String> {
        Ok(BufferDecl {
            access: Access::from_name(&self.access).ok_or_else(|| format!("there is no access mode `{}`", self.access))?,
            element: match self.element {
                ElementRow::Type(text) => {
                    Element::Type(parse_data_type(&text).ok_or_else(|| format!("there is no type `{text}`"))?)
                }
                ElementRow::Const(name) => Element::Const(name.into()),
            },
            name: self.name.into(),
            count: self.count.map(Size::from),
            binding: self.binding,
        })
    }
}

/// Every item as a row, and the numbers of the top-level statements.
fn rows(program: &Program) -> (Vec<Row>, Vec<u32>) {
    let items: Vec<(Item<'_>, u32)> = program.walk().collect();
    let mut below: Vec<Vec<u32>> = items.iter().map(|_| Vec::new()).collect();
    let mut top = Vec::new();
    // The items around the one that is looked at, outermost first.
    let mut around: Vec<usize> = Vec::new();
    for (id, (_, depth)) in items.iter().enumerate() {
        around.truncate(*depth as usize - 1);
        match around.last() {
            Some(parent) => below[*parent].push(id as u32),
            None => top.push(id as u32),
        }
        around.push(id);
    }
    (items.iter().zip(&below).map(|((item, _), below)| row(*item, below)).collect(), top)
}

/// The row of an item, given the numbers of those below it in source order.
fn row(item: Item<'_>, below: &[u32]) -> Row {
    let text = |name: &Name| name.as_str().to_string();
    let list = |from: usize| below[from..].to_vec();
    match item {
        Item::Node(node) => match node {
            Node::Let { name, .. } => Row::Let { name: text(name), value: below[0] },
            Node::Assign { name, .. } => Row::Assign { name: text(name), value: below[0] },
            Node::Store(store) => Row::Store { buffer: text(&store.buffer), index: below[0], value: below[1] },
            Node::Atomic(atomic) => Row::Atomic {
                result: atomic.result.as_ref().map(text),
                op: atomic.op.mnemonic().into(),
                buffer: text(&atomic.buffer),
                index: below[0],
                args: list(1),
            },
            Node::Subgroup(subgroup) => {
                Row::Subgroup { result: subgroup.result.as_ref().map(text), op: subgroup.op.mnemonic().into(), args: list(0) }
            }
            Node::If { then, .. } => {
                Row::If { cond: below[0], then: below[1..][..then.len()].to_vec(), r#else: list(1 + then.len()) }
            }
            Node::Loop(repeat) => Row::For { var: text(&repeat.var), from: below[0], to: below[1], body: list(2) },
            Node::Break => Row::Break {},
            Node::Continue => Row::Continue {},
            Node::Return => Row::Return {},
            Node::Barrier { ordering } => Row::Barrier { ordering: ordering.name().into() },
            Node::Trap { tag } => Row::Trap { tag: *tag },
            Node::Block(_) => Row::Block { body: list(0) },
            Node::Region { generator, .. } => Row::Region { generator: text(generator), body: list(0) },
        },
        Item::Expr(expr) => match expr {
            Expr::Lit(literal) => Row::Lit { r#type: literal.scalar().name().into(), bits: literal.bits() },
            Expr::Var(name) => Row::Var { name: text(name) },
            Expr::Builtin(builtin) => {
                let (base, field) = builtin.parts();
                Row::Builtin { name: format!("{base}.{field}") }
            }
            Expr::Len(buffer) => Row::Len { buffer: text(buffer) },
            Expr::Load(load) => Row::Load { buffer: text(&load.buffer), index: below[0] },
            Expr::Unary { op, .. } => Row::Unary { op: op.mnemonic().into(), args: [below[0]] },
            Expr::Binary { op, .. } => Row::Binary { op: op.mnemonic().into(), args: [below[0], below[1]] },
            Expr::Ternary { op, .. } => Row::Ternary { op: op.mnemonic().into(), args: [below[0], below[1], below[2]] },
            Expr::Cast { to, .. } => Row::Cast { to: to.name().into(), value: below[0] },
            Expr::Bitcast { to, .. } => Row::Bitcast { to: to.name().into(), value: below[0] },
            Expr::Vector { .. } => Row::Vector { args: list(0) },
            Expr::Extract { component, .. } => Row::Extract { component: *component, vector: below[0] },
        },
    }
}

enum Built {
    Node(Node),
    Expr(Expr),
}

/// What was built of the rows behind the one that is being built, and where the next of them has to stand.
struct Below<'a> {
    built: &'a mut [Option<Built>],
    /// By row: one past the last row below it.
    ends: &'a [usize],
    next: usize,
}

impl Below<'_> {
    fn take(&mut self, id: u32) -> Result<Built, String> {
        let (next, built) = (self.next, self.built.get_mut(id as usize).and_then(Option::take));
        match built {
            Some(built) if id as usize == next => {
                self.next = self.ends[next];
                Ok(built)
            }
            _ => Err(format!("node {next} is the next in source order, and {id} is named")),
        }
    }

    fn expr(&mut self, id: u32) -> Result<Expr, String> {
        match self.take(id)? {
            Built::Expr(expr) => Ok(expr),
            Built::Node(_) => Err(format!("node {id} is a statement where an expression is needed")),
        }
    }

    fn child(&mut self, id: u32) -> Result<Child, String> {
        self.expr(id).map(Child::from)
    }

    fn exprs<T: From<Expr>>(&mut self, ids: &[u32]) -> Result<Vec<T>, String> {
        ids.iter().map(|id| self.expr(*id).map(T::from)).collect()
    }

    fn body(&mut self, ids: &[u32]) -> Result<Body, String> {
        let nodes = ids.iter().map(|id| match self.take(*id)? {
            Built::Node(node) => Ok(node),
            Built::Expr(_) => Err(format!("node {id} is an expression where a statement is needed")),
        });
        nodes.collect::<Result<Vec<Node>, String>>().map(Body::from)
    }

    fn build(&mut self, row: Row) -> Result<Built, String> {
        Ok(match row {
            Row::Let { name, value } => Built::Node(Node::Let { name: name.into(), value: self.child(value)? }),
            Row::Assign { name, value } => Built::Node(Node::Assign { name: name.into(), value: self.child(value)? }),
            Row::Store { buffer, index, value } => {
                Built::Node(Store { buffer: buffer.into(), index: self.expr(index)?, value: self.expr(value)? }.into())
            }
            Row::Atomic { result, op, buffer, index, args } => {
                let op = AtomicOp::from_mnemonic(&op).ok_or_else(|| unknown("atomic op", &op))?;
                let (result, index) = (result.map(Name::from), self.expr(index)?);
                Built::Node(Atomic { result, op, buffer: buffer.into(), index, operands: self.exprs(&args)? }.into())
            }
            Row::Subgroup { result, op, args } => {
                let op = SubgroupOp::from_mnemonic(&op).ok_or_else(|| unknown("subgroup op", &op))?;
                Built::Node(Subgroup { result: result.map(Name::from), op, operands: self.exprs(&args)? }.into())
            }
            Row::If { cond, then, r#else } => {
                let (cond, then) = (self.child(cond)?, self.body(&then)?);
                Built::Node(Node::If { cond, then, otherwise: self.body(&r#else)? })
            }
            Row::For { var, from, to, body } => {
                let (from, to) = (self.expr(from)?, self.expr(to)?);
                Built::Node(Loop { var: var.into(), from, to, body: self.body(&body)? }.into())
            }
            Row::Break {} => Built::Node(Node::Break),
            Row::Continue {} => Built::Node(Node::Continue),
            Row::Return {} => Built::Node(Node::Return),
            Row::Barrier { ordering } => {
                let found = MemoryOrdering::ALL.into_iter().find(|known| known.name() == ordering);
                Built::Node(Node::Barrier { ordering: found.ok_or_else(|| unknown("ordering", &ordering))? })
            }
            Row::Trap { tag } => Built::Node(Node::Trap { tag }),
            Row::Block { body } => Built::Node(Node::Block(self.body(&body)?)),
            Row::Region { generator, body } => Built::Node(Node::Region { generator: generator.into(), body: self.body(&body)? }),
            Row::Lit { r#type, bits } => {
                let literal = Literal::from_bits(scalar(&r#type)?, bits);
                if literal.bits() != bits {
                    return Err(format!("{bits} are not the bits of a {}", r#type));
                }
                Built::Expr(Expr::Lit(literal))
            }
            Row::Var { name } => Built::Expr(Expr::Var(name.into())),
            Row::Builtin { name } => {
                let found = name.split_once('.').and_then(|(base, field)| Builtin::from_parts(base, field));
                Built::Expr(Expr::Builtin(found.ok_or_else(|| unknown("builtin", &name))?))
            }
            Row::Len { buffer } => Built::Expr(Expr::Len(buffer.into())),
            Row::Load { buffer, index } => Built::Expr(Load { buffer: buffer.into(), index: self.child(index)? }.into()),
            Row::Unary { op, args: [operand] } => {
                let op = UnaryOp::from_mnemonic(&op).ok_or_else(|| unknown("unary op", &op))?;
                Built::Expr(Expr::Unary { op, operand: self.child(operand)? })
            }
            Row::Binary { op, args: [left, right] } => {
                let op = BinaryOp::from_mnemonic(&op).ok_or_else(|| unknown("binary op", &op))?;
                Built::Expr(Expr::Binary { op, left: self.child(left)?, right: self.child(right)? })
            }
            Row::Ternary { op, args: [a, b, c] } => {
                let op = TernaryOp::from_mnemonic(&op).ok_or_else(|| unknown("ternary op", &op))?;
                Built::Expr(Expr::Ternary { op, operands: Box::new([self.child(a)?, self.child(b)?, self.child(c)?]) })
            }
            Row::Cast { to, value } => Built::Expr(Expr::Cast { to: scalar(&to)?, value: self.child(value)? }),
            Row::Bitcast { to, value } => Built::Expr(Expr::Bitcast { to: scalar(&to)?, value: self.child(value)? }),
            Row::Vector { args } => Built::Expr(Expr::Vector { components: self.exprs(&args)?.into() }),
            Row::Extract { component, vector } => Built::Expr(Expr::Extract { component, vector: self.child(vector)? }),
        })
    }
}

fn unknown(what: &str, name: &str) -> String {
    format!("there is no {what} `{name}`")
}

fn scalar(name: &str) -> Result<Scalar, String> {
    Scalar::ALL.into_iter().find(|scalar| scalar.name() == name).ok_or_else(|| unknown("scalar type", name))
}

/// The statements of these rows. What is below a row stands behind it, so that building begins with the last.
fn body(rows: Vec<Row>, top: &[u32]) -> Result<Body, String> {
    let count = rows.len();
    let mut built: Vec<Option<Built>> = rows.iter().map(|_| None).collect();
    let mut ends = vec![0; count];
    for (id, row) in rows.into_iter().enumerate().rev() {
        let mut below = Below { built: &mut built, ends: &ends, next: id + 1 };
        let item = below.build(row).map_err(|why| format!("node {id}: {why}"))?;
        let end = below.next;
        ends[id] = end;
        built[id] = Some(item);
    }
    let mut below = Below { built: &mut built, ends: &ends, next: 0 };
    let body = below.body(top).map_err(|why| format!("body: {why}"))?;
    match below.next == count {
        true => Ok(body),
        false => Err(format!("node {} stands nowhere", below.next)),
    }
}

/// In formats for people the JSON form, in others the bytes of the wire form.
impl Serialize for Program {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            return Document::of(self).serialize(serializer);
        }
        serializer.serialize_bytes(&to_wire(self).map_err(S::Error::custom)?)
    }
}

impl<'de> Deserialize<'de> for Program {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            return Document::deserialize(deserializer)?.into_program().map_err(D::Error::custom);
        }
        struct Wire;

        impl<'de> Visitor<'de> for Wire {
            type Value = Program;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a program in wire form")
            }

            fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<Program, E> {
                from_wire(bytes).map_err(E::custom)
            }
        }

        deserializer.deserialize_bytes(Wire)
    }
}

/// What a value is in formats for people: its kind and its spelling in the text form.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SpelledValue {
    kind: String,
    value: String,
}

/// What a value is in other formats; floats by bits.
#[derive(Serialize, Deserialize)]
enum EncodedValue {
    U32(u32),
    I32(i32),
    F32(u32),
    Bool(bool),
    DType(String),
}

impl Serialize for SpecValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            return SpelledValue { kind: self.kind().into(), value: self.to_string() }.serialize(serializer);
        }
        let encoded = match self {
            SpecValue::U32(value) => EncodedValue::U32(*value),
            SpecValue::I32(value) => EncodedValue::I32(*value),
            SpecValue::F32(value) => EncodedValue::F32(value.to_bits()),
            SpecValue::Bool(value) => EncodedValue::Bool(*value),
            SpecValue::DType(data_type) => EncodedValue::DType(data_type.to_string()),
        };
        encoded.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for SpecValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            let SpelledValue { kind, value } = SpelledValue::deserialize(deserializer)?;
            return SpecValue::parse(&kind, &value).ok_or_else(|| D::Error::custom(format!("`{value}` is not a {kind}")));
        }
        Ok(match EncodedValue::deserialize(deserializer)? {
            EncodedValue::U32(value) => SpecValue::U32(value),
            EncodedValue::I32(value) => SpecValue::I32(value),
            EncodedValue::F32(bits) => SpecValue::F32(f32::from_bits(bits)),
            EncodedValue::Bool(value) => SpecValue::Bool(value),
            EncodedValue::DType(text) => {
                SpecValue::DType(parse_data_type(&text).ok_or_else(|| D::Error::custom(unknown("type", &text)))?)
            }
        })
    }
}
