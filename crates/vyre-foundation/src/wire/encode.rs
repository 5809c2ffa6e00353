//! Programs to bytes; keeps its own stack through [`Walk`], so any depth is encoded.

use crate::ir::{
    Atomic, BufferDecl, DataType, Element, Expr, Item, Literal, Loop, Name, Node, Parts, Size, Store, Subgroup, Walk,
};
use crate::specialize::SpecValue;
use crate::wire::Section;
use crate::wire::tags::{ExprTag, NodeTag};
use vyre_spec::{FloatMode, Scalar, TypeFamily};

pub(crate) fn encode_parts(parts: &Parts) -> Vec<u8> {
    let mut out = Encoder(Vec::with_capacity(1024));
    out.section(Section::Attributes, |out| {
        out.byte(match parts.floats {
            FloatMode::Ieee => 0,
            FloatMode::Canonical => 1,
        });
        out.number(parts.subgroup.map_or(0, |lanes| u64::from(lanes) + 1));
        parts.workgroup.iter().for_each(|size| out.size(size));
    });
    out.section(Section::Consts, |out| {
        out.length(parts.consts.len());
        for decl in &parts.consts {
            out.name(&decl.name);
            out.spec_value(&decl.default);
        }
    });
    out.section(Section::Buffers, |out| {
        out.length(parts.buffers.len());
        parts.buffers.iter().for_each(|buffer| out.buffer(buffer));
    });
    out.section(Section::Body, |out| out.nodes(&parts.body));
    out.0
}

pub(crate) fn encode_nodes(nodes: &[Node]) -> Vec<u8> {
    let mut out = Encoder(Vec::new());
    out.nodes(nodes);
    out.0
}

pub(crate) fn encode_expr(expr: &Expr) -> Vec<u8> {
    let mut out = Encoder(Vec::new());
    out.items(Walk::expr(expr));
    out.0
}

struct Encoder(Vec<u8>);

impl Encoder {
    /// A section: its number, its length in bytes, its content.
    fn section(&mut self, section: Section, content: impl FnOnce(&mut Self)) {
        self.byte(section as u8);
        let length_at = self.0.len();
        self.0.extend_from_slice(&[0; 4]);
        content(self);
        // A section of 4 GiB cannot be decoded again, which `to_wire` checks; for identity any length will do.
        let length = (self.0.len() - length_at - 4) as u32;
        self.0[length_at..length_at + 4].copy_from_slice(&length.to_le_bytes());
    }

    fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.byte(value as u8 | 0x80);
            value >>= 7;
        }
        self.byte(value as u8);
    }

    fn length(&mut self, length: usize) {
        self.number(length as u64);
    }

    fn name(&mut self, name: &Name) {
        self.length(name.as_bytes().len());
        self.0.extend_from_slice(name.as_bytes());
    }

    /// A name that may be missing; the length is one more than that of the name.
    fn optional_name(&mut self, name: Option<&Name>) {
        match name {
            None => self.number(0),
            Some(name) => {
                self.length(name.as_bytes().len() + 1);
                self.0.extend_from_slice(name.as_bytes());
            }
        }
    }

    fn size(&mut self, size: &Size) {
        match size {
            Size::Lit(value) => {
                self.byte(0);
                self.number(u64::from(*value));
            }
            Size::Const(name) => {
                self.byte(1);
                self.name(name);
            }
        }
    }

    fn spec_value(&mut self, value: &SpecValue) {
        let literal = match value {
            SpecValue::U32(value) => Literal::U32(*value),
            SpecValue::I32(value) => Literal::I32(*value),
            SpecValue::F32(value) => Literal::F32((*value).into()),
            SpecValue::Bool(value) => Literal::Bool(*value),
            SpecValue::DType(data_type) => {
                self.byte(0xFF);
                return self.data_type(data_type);
            }
        };
        self.literal(literal);
    }

    fn scalar(&mut self, scalar: Scalar) {
        self.byte(DataType::from(scalar).tag() as u8);
    }

    fn literal(&mut self, literal: Literal) {
        self.scalar(literal.scalar());
        self.number(literal.bits());
    }

    /// Types nest as deep as their builder made them: one level after the other, outermost first.
    fn data_type(&mut self, data_type: &DataType) {
        for level in data_type.levels() {
            self.number(u64::from(level.tag()));
            let numbers = level.numbers();
            match level.family() {
                None | Some(TypeFamily::SparseCsr | TypeFamily::SparseCoo) => {}
                Some(TypeFamily::Vec) => self.byte(numbers[0] as u8),
                Some(TypeFamily::TensorShaped | TypeFamily::DeviceMesh) => {
                    self.length(numbers.len());
                    numbers.iter().for_each(|number| self.number(*number));
                }
                Some(TypeFamily::Array | TypeFamily::Handle | TypeFamily::Opaque | TypeFamily::SparseBsr) => {
                    numbers.iter().for_each(|number| self.number(*number));
                }
            }
        }
    }

    fn buffer(&mut self, buffer: &BufferDecl) {
        self.name(&buffer.name);
        self.byte(buffer.access.tag());
        match &buffer.element {
            Element::Type(data_type) => {
                self.byte(0);
                self.data_type(data_type);
            }
            Element::Const(name) => {
                self.byte(1);
                self.name(name);
            }
        }
        match &buffer.count {
            None => self.byte(0xFF),
            Some(size) => self.size(size),
        }
        self.number(buffer.binding.map_or(0, |binding| u64::from(binding) + 1));
    }

    fn nodes(&mut self, nodes: &[Node]) {
        self.length(nodes.len());
        self.items(Walk::body(nodes));
    }

    fn items(&mut self, walk: Walk<'_>) {
        for (item, _) in walk {
            match item {
                Item::Node(node) => self.node_head(node),
                Item::Expr(expr) => self.expr_head(expr),
            }
        }
    }

    fn node_head(&mut self, node: &Node) {
        match node {
            Node::Let { name, .. } => {
                self.byte(NodeTag::Let as u8);
                self.name(name);
            }
            Node::Assign { name, .. } => {
                self.byte(NodeTag::Assign as u8);
                self.name(name);
            }
            Node::Store(store) => {
                let Store { buffer, .. } = &**store;
                self.byte(NodeTag::Store as u8);
                self.name(buffer);
            }
            Node::Atomic(atomic) => {
                let Atomic { result, op, buffer, operands, .. } = &**atomic;
                self.byte(NodeTag::Atomic as u8);
                self.optional_name(result.as_ref());
                self.byte(op.info().tag);
                self.name(buffer);
                self.length(operands.len());
            }
            Node::Subgroup(subgroup) => {
                let Subgroup { result, op, operands } = &**subgroup;
                self.byte(NodeTag::Subgroup as u8);
                self.optional_name(result.as_ref());
                self.byte(op.info().tag);
                self.length(operands.len());
            }
            Node::If { then, otherwise, .. } => {
                self.byte(NodeTag::If as u8);
                self.length(then.len());
                self.length(otherwise.len());
            }
            Node::Loop(repeat) => {
                let Loop { var, body, .. } = &**repeat;
                self.byte(NodeTag::Loop as u8);
                self.name(var);
                self.length(body.len());
            }
            Node::Break => self.byte(NodeTag::Break as u8),
            Node::Continue => self.byte(NodeTag::Continue as u8),
            Node::Return => self.byte(NodeTag::Return as u8),
            Node::Barrier { ordering } => {
                self.byte(NodeTag::Barrier as u8);
                self.byte(ordering.tag());
            }
            Node::Trap { tag } => {
                self.byte(NodeTag::Trap as u8);
                self.number(u64::from(*tag));
            }
            Node::Block(body) => {
                self.byte(NodeTag::Block as u8);
                self.length(body.len());
            }
            Node::Region { generator, body } => {
                self.byte(NodeTag::Region as u8);
                self.name(generator);
                self.length(body.len());
            }
        }
    }

    fn expr_head(&mut self, expr: &Expr) {
        match expr {
            Expr::Lit(literal) => {
                self.byte(ExprTag::Lit as u8);
                self.literal(*literal);
            }
            Expr::Var(name) => {
                self.byte(ExprTag::Var as u8);
                self.name(name);
            }
            Expr::Builtin(builtin) => {
                self.byte(ExprTag::Builtin as u8);
                self.byte(builtin.tag());
            }
            Expr::Len(buffer) => {
                self.byte(ExprTag::Len as u8);
                self.name(buffer);
            }
            Expr::Load(load) => {
                self.byte(ExprTag::Load as u8);
                self.name(&load.buffer);
            }
            Expr::Unary { op, .. } => {
                self.byte(ExprTag::Unary as u8);
                self.byte(op.info().tag);
            }
            Expr::Binary { op, .. } => {
                self.byte(ExprTag::Binary as u8);
                self.byte(op.info().tag);
            }
            Expr::Ternary { op, .. } => {
                self.byte(ExprTag::Ternary as u8);
                self.byte(op.info().tag);
            }
            Expr::Cast { to, .. } => {
                self.byte(ExprTag::Cast as u8);
                self.scalar(*to);
            }
            Expr::Bitcast { to, .. } => {
                self.byte(ExprTag::Bitcast as u8);
                self.scalar(*to);
            }
            Expr::Vector { components } => {
                self.byte(ExprTag::Vector as u8);
                self.length(components.len());
            }
            Expr::Extract { component, .. } => {
                self.byte(ExprTag::Extract as u8);
                self.byte(*component);
            }
        }
    }
}
