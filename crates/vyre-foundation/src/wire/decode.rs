//! Bytes to programs. Nothing about the bytes is trusted.
//!
//! Nesting is counted, and whatever the encoder would have written differently is refused: decoding and encoding again gives the
//! same bytes.
//!
//! A length is believed only as far as bytes are left to back it: every item takes at least one, those that are still to come in the
//! lists around included. So lists are reserved as long as they say, and all of them together are reserved for no more items than
//! the file has bytes. A long list is reserved as a whole only when its first items have been read: a length that lies costs little.

use crate::ir::{
    Access, Atomic, AtomicOp, BinaryOp, Body, BufferDecl, Builtin, ConstDecl, DataType, Element, Expr, FloatMode, Literal, Load,
    Loop, Name, Node, Parts, Scalar, Size, Subgroup, SubgroupOp, TernaryOp, UnaryOp,
};
use crate::memory_model::MemoryOrdering;
use crate::specialize::SpecValue;
use crate::wire::tags::{ExprTag, NodeTag};
use crate::wire::{Section, WireError};
use vyre_spec::limits::MAX_NESTING;
use vyre_spec::{ErrorCode, TypeFamily, TypeId};

/// For so many items a list is reserved by its length alone. Those are copied if there are more, so they are few.
const UNPROVEN: usize = 64;

/// The error is boxed so that the way of the programs that are fine, which is through many small results, stays light.
type Result<T> = std::result::Result<T, Box<WireError>>;

/// The parts in `bytes`, which begin at `offset` of the file.
pub(super) fn decode_parts(bytes: &[u8], offset: usize) -> Result<Parts> {
    let mut input = Decoder { bytes, offset, at: 0, end: bytes.len(), owed: 0, names: Names::default() };
    input.section(Section::Attributes)?;
    let floats = match input.byte()? {
        0 => FloatMode::Ieee,
        1 => FloatMode::Canonical,
        other => return Err(input.malformed(format!("float mode {other}"))),
    };
    let subgroup = input.one_more()?;
    let workgroup = [input.size()?, input.size()?, input.size()?];
    input.finish()?;

    input.section(Section::Consts)?;
    let consts = input.list(|input| Ok(ConstDecl { name: input.name()?, default: input.spec_value()? }))?;
    input.finish()?;

    input.section(Section::Buffers)?;
    let buffers = input.list(Decoder::buffer)?;
    input.finish()?;

    input.section(Section::Body)?;
    let count = input.length()?;
    let body = input.nodes(count, 1)?;
    input.finish()?;
    input.finish()?;
    Ok(Parts { buffers, consts, workgroup, floats, subgroup, body })
}

struct Decoder<'a> {
    bytes: &'a [u8],
    /// Where `bytes` begin in the file.
    offset: usize,
    at: usize,
    /// Where the section ends, and between sections the bytes.
    end: usize,
    /// Items that lengths have promised and that have not been begun; each takes at least a byte.
    owed: usize,
    names: Names,
}

/// Long names seen lately: most are used many times, and sharing them is cheaper than making them. Each has one place where it
/// can be, which it takes from any other.
#[derive(Default)]
struct Names(Vec<Option<Name>>);

impl Names {
    /// The place for a name with these bytes; `size` is that of the file.
    fn place(&mut self, bytes: &[u8], size: usize) -> &mut Option<Name> {
        if self.0.is_empty() {
            self.0.resize((size / 32).next_power_of_two().clamp(16, 1024), None);
        }
        let hash = bytes.iter().fold(bytes.len() as u32, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x9E37_79B1));
        let places = self.0.len();
        &mut self.0[(hash >> 16) as usize & (places - 1)]
    }
}

impl<'a> Decoder<'a> {
    #[cold]
    fn error(&self, code: ErrorCode, reason: String) -> Box<WireError> {
        Box::new(WireError { code, offset: self.offset + self.at, reason })
    }

    #[cold]
    fn malformed(&self, found: String) -> Box<WireError> {
        let mut error = self.error(ErrorCode::E0605, format!("there is no {found}"));
        error.offset = error.offset.saturating_sub(1);
        error
    }

    fn left(&self) -> usize {
        self.end - self.at
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        if count > self.left() {
            return Err(self.error(ErrorCode::E0603, format!("{count} bytes are needed here and {} are left", self.left())));
        }
        let start = self.at;
        self.at += count;
        Ok(&self.bytes[start..self.at])
    }

    fn byte(&mut self) -> Result<u8> {
        Ok(self.take(1)?[0])
    }

    /// Goes into a section, up to [`Decoder::finish`].
    fn section(&mut self, section: Section) -> Result<()> {
        let found = self.byte()?;
        if found != section as u8 {
            return Err(self.malformed(format!("section {found} here; the {section:?} section is expected")));
        }
        let length = u32::from_le_bytes(self.take(4)?.try_into().expect("four bytes")) as usize;
        let start = self.at;
        self.take(length)?;
        (self.at, self.end) = (start, self.at);
        Ok(())
    }

    /// Everything must have been read, of a section or of all bytes.
    fn finish(&mut self) -> Result<()> {
        match self.left() {
            0 => self.end = self.bytes.len(),
            left => return Err(self.error(ErrorCode::E0606, format!("{left} bytes are left over"))),
        }
        Ok(())
    }

    #[inline]
    fn number(&mut self) -> Result<u64> {
        match self.bytes[self.at..self.end].first() {
            Some(byte) if *byte < 0x80 => {
                self.at += 1;
                Ok(u64::from(*byte))
            }
            _ => self.long_number(),
        }
    }

    fn long_number(&mut self) -> Result<u64> {
        let rest = &self.bytes[self.at..self.end];
        let mut value = 0u64;
        for (byte, shift) in rest.iter().zip((0..64).step_by(7)) {
            let part = u64::from(byte & 0x7F);
            if part << shift >> shift != part {
                break;
            }
            value |= part << shift;
            if byte & 0x80 == 0 {
                if *byte == 0 && shift > 0 {
                    return Err(self.error(ErrorCode::E0606, "a number is longer than it has to be".into()));
                }
                self.at += shift / 7 + 1;
                return Ok(value);
            }
        }
        if rest.len() < 10 && rest.iter().all(|byte| byte & 0x80 != 0) {
            self.at = self.end;
            self.byte()?;
        }
        Err(self.error(ErrorCode::E0605, "a number does not fit 64 bits".into()))
    }

    fn u32(&mut self) -> Result<u32> {
        let start = self.at;
        u32::try_from(self.number()?).map_err(|_| {
            self.at = start;
            self.error(ErrorCode::E0605, "a number does not fit 32 bits".into())
        })
    }

    /// A number that may be missing; what is written is one more, and 0 for none.
    fn one_more(&mut self) -> Result<Option<u32>> {
        let start = self.at;
        let Some(value) = self.number()?.checked_sub(1) else { return Ok(None) };
        u32::try_from(value).map(Some).map_err(|_| {
            self.at = start;
            self.error(ErrorCode::E0605, "a number does not fit 32 bits".into())
        })
    }

    /// A number of things that take at least a byte each.
    fn length(&mut self) -> Result<usize> {
        let start = self.at;
        let length = self.number()?;
        let left = self.left().saturating_sub(self.owed);
        match usize::try_from(length) {
            Ok(length) if length <= left => Ok(length),
            _ => {
                self.at = start;
                Err(self.error(ErrorCode::E0603, format!("a length of {length} is given and {left} bytes are left for it")))
            }
        }
    }

    /// So many items, which the lengths that were read before them promised.
    fn items<T>(&mut self, count: usize, mut item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        // The length may have been read before others that were promised as much.
        let left = self.left().saturating_sub(self.owed);
        if count > left {
            return Err(self.error(ErrorCode::E0603, format!("{count} items follow and {left} bytes are left for them")));
        }
        let mut items = Vec::with_capacity(count.min(UNPROVEN));
        self.owed += count;
        for _ in 0..count {
            self.owed -= 1;
            if items.len() == items.capacity() {
                items.reserve_exact(count - items.len());
            }
            items.push(item(self)?);
        }
        Ok(items)
    }

    fn list<T>(&mut self, item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let length = self.length()?;
        self.items(length, item)
    }

    fn text(&mut self, length: usize) -> Result<Name> {
        let start = self.at;
        let bytes = self.take(length)?;
        if let Some(name) = Name::short_ascii(bytes) {
            return Ok(name);
        }
        let known = self.names.place(bytes, self.bytes.len());
        if let Some(name) = known
            && name.as_bytes() == bytes
        {
            return Ok(name.clone());
        }
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(known.insert(text.into()).clone()),
            Err(error) => {
                self.at = start + error.valid_up_to();
                Err(self.error(ErrorCode::E0605, "a name is not UTF-8".into()))
            }
        }
    }

    fn name(&mut self) -> Result<Name> {
        let length = self.length()?;
        self.text(length)
    }

    fn optional_name(&mut self) -> Result<Option<Name>> {
        let start = self.at;
        let Some(length) = self.number()?.checked_sub(1) else { return Ok(None) };
        match usize::try_from(length) {
            Ok(length) if length <= self.left() => self.text(length).map(Some),
            _ => {
                self.at = start;
                Err(self.error(ErrorCode::E0603, format!("a name of {length} bytes does not fit what is left")))
            }
        }
    }

    fn size(&mut self) -> Result<Size> {
        match self.byte()? {
            0 => Ok(Size::Lit(self.u32()?)),
            1 => Ok(Size::Const(self.name()?)),
            other => Err(self.malformed(format!("kind of size {other}"))),
        }
    }

    fn scalar(&mut self) -> Result<Scalar> {
        let tag = self.byte()?;
        let found = Scalar::ALL.into_iter().find(|scalar| DataType::from(*scalar).tag() == u32::from(tag));
        found.ok_or_else(|| self.malformed(format!("scalar type {tag:#04x}")))
    }

    fn literal(&mut self) -> Result<Literal> {
        let scalar = self.scalar()?;
        let start = self.at;
        let bits = self.number()?;
        let literal = Literal::from_bits(scalar, bits);
        if literal.bits() != bits {
            self.at = start;
            return Err(self.error(ErrorCode::E0606, format!("{bits:#x} are not the bits of a {scalar}")));
        }
        Ok(literal)
    }

    fn spec_value(&mut self) -> Result<SpecValue> {
        if self.bytes[self.at..self.end].first() == Some(&0xFF) {
            self.at += 1;
            return Ok(SpecValue::DType(self.data_type(1)?));
        }
        match self.literal()? {
            Literal::U32(value) => Ok(SpecValue::U32(value)),
            Literal::I32(value) => Ok(SpecValue::I32(value)),
            Literal::F32(value) => Ok(SpecValue::F32(value.value())),
            Literal::Bool(value) => Ok(SpecValue::Bool(value)),
            other @ (Literal::U64(_) | Literal::I64(_) | Literal::F64(_)) => {
                Err(self.malformed(format!("constant of type {}", other.scalar())))
            }
        }
    }

    fn data_type(&mut self, depth: u32) -> Result<DataType> {
        self.nested(depth)?;
        let element = |input: &mut Self| input.data_type(depth + 1).map(Box::new);
        let extents = |input: &mut Self| input.list(Decoder::u32);
        let tag = self.u32()?;
        if let Some(plain) = DataType::plain_from_tag(tag) {
            return Ok(plain);
        }
        let family = TypeFamily::from_tag(tag).ok_or_else(|| self.malformed(format!("data type {tag:#04x}")))?;
        Ok(match family {
            TypeFamily::Array => {
                let size = self.number()?;
                let element_size = usize::try_from(size).map_err(|_| self.malformed(format!("element of {size} bytes")))?;
                DataType::Array { element_size }
            }
            TypeFamily::Handle => DataType::Handle(TypeId(self.u32()?)),
            TypeFamily::Opaque => DataType::Opaque(TypeId(self.u32()?)),
            TypeFamily::Vec => {
                let count = self.byte()?;
                DataType::Vec { count, element: element(self)? }
            }
            TypeFamily::TensorShaped => {
                let shape = extents(self)?.into();
                DataType::TensorShaped { shape, element: element(self)? }
            }
            TypeFamily::SparseCsr => DataType::SparseCsr { element: element(self)? },
            TypeFamily::SparseCoo => DataType::SparseCoo { element: element(self)? },
            TypeFamily::SparseBsr => {
                let (block_rows, block_cols) = (self.u32()?, self.u32()?);
                DataType::SparseBsr { block_rows, block_cols, element: element(self)? }
            }
            TypeFamily::DeviceMesh => DataType::DeviceMesh { axes: extents(self)?.into() },
        })
    }

    fn buffer(&mut self) -> Result<BufferDecl> {
        let name = self.name()?;
        let tag = self.byte()?;
        let access = Access::ALL.into_iter().find(|access| access.tag() == tag);
        let access = access.ok_or_else(|| self.malformed(format!("access mode {tag}")))?;
        let element = match self.byte()? {
            0 => Element::Type(self.data_type(1)?),
            1 => Element::Const(self.name()?),
            other => return Err(self.malformed(format!("kind of element {other}"))),
        };
        let count = if self.bytes[self.at..self.end].first() == Some(&0xFF) {
            self.at += 1;
            None
        } else {
            Some(self.size()?)
        };
        let binding = self.one_more()?;
        Ok(BufferDecl { name, access, element, count, binding })
    }

    fn nested(&self, depth: u32) -> Result<()> {
        if depth > MAX_NESTING {
            return Err(self.error(ErrorCode::E0607, format!("nested more than {MAX_NESTING} deep")));
        }
        Ok(())
    }

    fn nodes(&mut self, count: usize, depth: u32) -> Result<Body> {
        self.items(count, |input| input.node(depth)).map(Body::from)
    }

    fn node(&mut self, depth: u32) -> Result<Node> {
        self.nested(depth)?;
        let below = depth + 1;
        Ok(match self.op(NodeTag::from_byte, "statement")? {
            NodeTag::Let => {
                let name = self.name()?;
                Node::Let { name, value: self.expr(below)? }
            }
            NodeTag::Assign => {
                let name = self.name()?;
                Node::Assign { name, value: self.expr(below)? }
            }
            NodeTag::Store => {
                let buffer = self.name()?;
                Node::store(buffer, self.expr::<Expr>(below)?, self.expr::<Expr>(below)?)
            }
            NodeTag::Atomic => {
                let result = self.optional_name()?;
                let op = self.op(AtomicOp::from_tag, "atomic op")?;
                let buffer = self.name()?;
                let count = self.length()?;
                let index = self.expr(below)?;
                Atomic { result, op, buffer, index, operands: self.exprs(count, below)? }.into()
            }
            NodeTag::Subgroup => {
                let result = self.optional_name()?;
                let op = self.op(SubgroupOp::from_tag, "subgroup op")?;
                let count = self.length()?;
                Subgroup { result, op, operands: self.exprs(count, below)? }.into()
            }
            NodeTag::If => {
                let (then, otherwise) = (self.length()?, self.length()?);
                let cond = self.expr(below)?;
                Node::If { cond, then: self.nodes(then, below)?, otherwise: self.nodes(otherwise, below)? }
            }
            NodeTag::Loop => {
                let var = self.name()?;
                let count = self.length()?;
                let (from, to) = (self.expr(below)?, self.expr(below)?);
                Loop { var, from, to, body: self.nodes(count, below)? }.into()
            }
            NodeTag::Break => Node::Break,
            NodeTag::Continue => Node::Continue,
            NodeTag::Return => Node::Return,
            NodeTag::Barrier => {
                let tag = self.byte()?;
                let ordering = MemoryOrdering::ALL.into_iter().find(|ordering| ordering.tag() == tag);
                Node::Barrier { ordering: ordering.ok_or_else(|| self.malformed(format!("ordering {tag}")))? }
            }
            NodeTag::Trap => Node::Trap { tag: self.u32()? },
            NodeTag::Block => {
                let count = self.length()?;
                Node::Block(self.nodes(count, below)?)
            }
            NodeTag::Region => {
                let generator = self.name()?;
                let count = self.length()?;
                Node::Region { generator, body: self.nodes(count, below)? }
            }
        })
    }

    fn op<T>(&mut self, from_tag: impl Fn(u8) -> Option<T>, what: &str) -> Result<T> {
        let tag = self.byte()?;
        from_tag(tag).ok_or_else(|| self.malformed(format!("{what} {tag:#04x}")))
    }

    fn exprs<T: From<Expr>>(&mut self, count: usize, depth: u32) -> Result<Vec<T>> {
        self.items(count, |input| input.expr(depth))
    }

    /// An expression or, without moving it there, what holds one.
    fn expr<T: From<Expr>>(&mut self, depth: u32) -> Result<T> {
        self.nested(depth)?;
        let below = depth + 1;
        Ok(match self.op(ExprTag::from_byte, "expression")? {
            ExprTag::Lit => Expr::Lit(self.literal()?).into(),
            ExprTag::Var => Expr::Var(self.name()?).into(),
            ExprTag::Builtin => Expr::Builtin(self.op(Builtin::from_tag, "builtin")?).into(),
            ExprTag::Len => Expr::Len(self.name()?).into(),
            ExprTag::Load => {
                let buffer = self.name()?;
                Expr::from(Load { buffer, index: self.expr(below)? }).into()
            }
            ExprTag::Unary => {
                let op = self.op(UnaryOp::from_tag, "unary op")?;
                Expr::Unary { op, operand: self.expr(below)? }.into()
            }
            ExprTag::Binary => {
                let op = self.op(BinaryOp::from_tag, "binary op")?;
                Expr::Binary { op, left: self.expr(below)?, right: self.expr(below)? }.into()
            }
            ExprTag::Ternary => {
                let op = self.op(TernaryOp::from_tag, "ternary op")?;
                Expr::Ternary { op, operands: Box::new([self.expr(below)?, self.expr(below)?, self.expr(below)?]) }.into()
            }
            ExprTag::Cast => {
                let to = self.scalar()?;
                Expr::Cast { to, value: self.expr(below)? }.into()
            }
            ExprTag::Bitcast => {
                let to = self.scalar()?;
                Expr::Bitcast { to, value: self.expr(below)? }.into()
            }
            ExprTag::Vector => {
                let count = self.length()?;
                Expr::Vector { components: self.exprs(count, below)?.into() }.into()
            }
            ExprTag::Extract => {
                let component = self.byte()?;
                Expr::Extract { component, vector: self.expr(below)? }.into()
            }
        })
    }
}
