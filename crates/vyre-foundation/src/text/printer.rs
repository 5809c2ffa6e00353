//! IR to text, so that parsing gives the same IR back.
//!
//! That holds for every program that does not nest deeper than the limit, valid or not: names are quoted where they must be,
//! parentheses stand where precedence asks for them, and a `u32` goes without suffix only where [`super::infer`] gives it the same
//! type again. While it writes a program the printer notes where its parts are; the spans are those that reading the text would give.

use super::ast::OpenInt;
use super::expressions::COMPONENTS;
use super::infer;
use super::is_too_large;
use super::lexer::is_word;
use super::names::{is_reserved, write_name, write_quoted};
use super::number::suffix_of;
use super::types::is_type_word;
use super::value::float_text;
use crate::diagnostic::{Poison, Source, Span, Spans, TreeSpans};
use crate::ir::{
    Atomic, BufferDecl, Element, Expr, Item, Literal, Loop, Name, Node, NodeId, Parts, Program, Scalar, Size, SpecValue, Store,
    Subgroup, UnaryOp, Walk,
};
use crate::memory_model::MemoryOrdering;
use std::fmt::{self, Write};
use vyre_spec::limits::MAX_NESTING;
use vyre_spec::{FloatMode, Precedence, Spelling};

/// The program as text, with the spans of all its parts. A program that nests too deep gives a comment that says so.
#[must_use]
pub fn print(program: &Program) -> Source {
    let mut text = String::new();
    let mut noted = Noted::default();
    // Strings take everything.
    let _ = write_program(&mut text, program, Some(&mut noted));
    if is_too_large(text.len()) {
        noted = Noted::default();
    }
    Source::new("<program>", text, noted.spans).with_tree(noted.tree)
}

/// Where the parts of a program were written.
#[derive(Default)]
pub(super) struct Noted {
    spans: Spans,
    tree: TreeSpans,
}

/// The program as text; see [`print`].
pub(super) fn write_program(out: &mut dyn Write, program: &Program, noted: Option<&mut Noted>) -> fmt::Result {
    if program.too_deep().is_some() {
        return writeln!(out, "// a program that is nested more than {MAX_NESTING} deep is not printed");
    }
    let parts = program.parts();
    Printer::new(out, Suffixes::of(parts), noted).program(program.name(), parts)
}

fn nests_too_deep(mut walk: Walk<'_>) -> bool {
    walk.any(|(_, depth)| depth > MAX_NESTING)
}

/// One expression; integers have suffixes, for nothing around it says their type.
pub(super) fn write_expr(out: &mut dyn Write, expr: &Expr) -> fmt::Result {
    if nests_too_deep(Walk::expr(expr)) {
        return write!(out, "…nested more than {MAX_NESTING} deep…");
    }
    Printer::new(out, Suffixes::all(), None).expr(expr, Level::LOWEST)
}

/// One statement, without a line end after it; integers have suffixes, for nothing around it says their type.
pub(super) fn write_node(out: &mut dyn Write, node: &Node) -> fmt::Result {
    if nests_too_deep(Walk::body(std::slice::from_ref(node))) {
        return write!(out, "…nested more than {MAX_NESTING} deep…");
    }
    Printer::new(out, Suffixes::all(), None).node(node)
}

/// Which `u32` literals need a suffix, in the order of the walk, which is that of printing.
struct Suffixes(std::vec::IntoIter<bool>);

impl Suffixes {
    fn all() -> Self {
        Suffixes(Vec::new().into_iter())
    }

    fn of(parts: &Parts) -> Self {
        let contexts = infer::contexts(parts, |_, literal| matches!(literal, Literal::U32(_)), &Poison::default(), 0);
        let values = Walk::body(&parts.body).filter_map(|(item, _)| match item {
            Item::Expr(Expr::Lit(Literal::U32(value))) => Some(*value),
            Item::Expr(_) | Item::Node(_) => None,
        });
        let needed = values.zip(contexts).map(|(value, context)| {
            let open = OpenInt { negative: false, magnitude: Some(value.into()) };
            context.literal(open) != Ok(Literal::U32(value))
        });
        Suffixes(needed.collect::<Vec<bool>>().into_iter())
    }

    fn next(&mut self) -> bool {
        self.0.next().unwrap_or(true)
    }
}

/// How tightly an expression binds, or must bind where it stands.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
struct Level(u8);

impl Level {
    const LOWEST: Level = Level(0);
    const PREFIX: Level = Level(Precedence::Product as u8 + 2);
    const POSTFIX: Level = Level(Precedence::Product as u8 + 3);

    fn infix(precedence: Precedence) -> Level {
        Level(precedence as u8 + 1)
    }

    fn tighter(self) -> Level {
        Level(self.0 + 1)
    }
}

/// What takes the text, and how much it has taken.
struct Counted<'a> {
    out: &'a mut dyn Write,
    bytes: usize,
}

impl Write for Counted<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.bytes += text.len();
        self.out.write_str(text)
    }
}

struct Printer<'a> {
    out: Counted<'a>,
    suffixes: Suffixes,
    indent: usize,
    /// Where to note the places of parts, if anybody wants to know.
    noted: Option<&'a mut Noted>,
}

impl<'a> Printer<'a> {
    fn new(out: &'a mut dyn Write, suffixes: Suffixes, noted: Option<&'a mut Noted>) -> Self {
        Printer { out: Counted { out, bytes: 0 }, suffixes, indent: 0, noted }
    }

    /// Where the next character goes. Spans of a text of 4 GiB are not used.
    fn at(&self) -> u32 {
        self.out.bytes as u32
    }

    /// From there to here.
    fn since(&self, start: u32) -> Span {
        Span { start, end: self.at() }
    }

    fn word(&mut self, word: &str) -> Result<Span, fmt::Error> {
        let start = self.at();
        self.out.write_str(word)?;
        Ok(self.since(start))
    }

    fn name(&mut self, name: &str) -> Result<Span, fmt::Error> {
        let start = self.at();
        write_name(&mut self.out, name)?;
        Ok(self.since(start))
    }

    /// Takes the next place of the walk.
    fn place(&mut self) -> usize {
        match &mut self.noted {
            Some(Noted { tree, .. }) => {
                tree.tree.push(<(Span, Span)>::default());
                tree.tree.len() - 1
            }
            None => 0,
        }
    }

    /// Notes what is at a place.
    fn note(&mut self, place: usize, whole: Span, head: Span) {
        if let Some(Noted { tree, .. }) = &mut self.noted {
            tree.tree[place] = (whole, head);
        }
    }

    fn program(&mut self, name: Option<&Name>, parts: &Parts) -> fmt::Result {
        let (body, head) = match (name, &parts.body[..]) {
            (Some(name), [Node::Region { body, .. }]) => {
                self.out.write_str("program ")?;
                let place = self.place();
                let head = self.name(name)?;
                self.note(place, Span::default(), head);
                (body, head)
            }
            _ => (&parts.body, self.word("raw")?),
        };
        self.out.write_str(" {")?;
        self.indent = 1;
        if let Some(Noted { spans, .. }) = &mut self.noted {
            spans.program = head;
            spans.subgroup = head;
        }
        self.header(parts)?;
        if !body.is_empty() {
            self.out.write_char('\n')?;
        }
        for node in body.iter() {
            self.line()?;
            self.node(node)?;
        }
        self.out.write_str("\n}")?;
        if name.is_some() {
            let whole = self.since(0);
            self.note(0, whole, head);
        }
        self.out.write_char('\n')
    }

    /// Begins a line.
    fn line(&mut self) -> fmt::Result {
        write!(self.out, "\n{:1$}", "", self.indent * 2)
    }

    fn header(&mut self, parts: &Parts) -> fmt::Result {
        self.line()?;
        self.out.write_str("workgroup")?;
        let shown = parts.workgroup.iter().rposition(|size| *size != Size::Lit(1)).unwrap_or(0);
        let start = self.at() + 1;
        let mut axes = [None; 3];
        for (size, axis) in parts.workgroup[..=shown].iter().zip(&mut axes) {
            self.out.write_char(' ')?;
            *axis = Some(self.size(size)?);
        }
        let whole = self.since(start);
        if let Some(Noted { spans, .. }) = &mut self.noted {
            spans.workgroup = whole;
            spans.workgroup_axes = axes.map(|axis| axis.unwrap_or(whole));
        }
        if parts.floats != FloatMode::default() {
            self.line()?;
            write!(self.out, "floats {}", parts.floats)?;
        }
        if let Some(size) = parts.subgroup {
            self.line()?;
            self.out.write_str("subgroup ")?;
            let start = self.at();
            write!(self.out, "{size}")?;
            let span = self.since(start);
            if let Some(Noted { spans, .. }) = &mut self.noted {
                spans.subgroup = span;
            }
        }
        for decl in &parts.consts {
            self.line()?;
            self.out.write_str("const ")?;
            let span = self.name(&decl.name)?;
            if let Some(Noted { spans, .. }) = &mut self.noted {
                spans.consts.push(span);
            }
            write!(self.out, ": {} = ", decl.default.kind())?;
            match &decl.default {
                SpecValue::U32(value) => write!(self.out, "{value}")?,
                SpecValue::I32(value) => write!(self.out, "{value}")?,
                SpecValue::F32(value) => self.out.write_str(&float_text(Literal::F32((*value).into())))?,
                SpecValue::Bool(value) => write!(self.out, "{value}")?,
                SpecValue::DType(data_type) => write!(self.out, "{data_type}")?,
            }
        }
        for buffer in &parts.buffers {
            self.line()?;
            self.buffer(buffer)?;
        }
        Ok(())
    }

    fn size(&mut self, size: &Size) -> Result<Span, fmt::Error> {
        let start = self.at();
        match size {
            Size::Lit(value) => write!(self.out, "{value}")?,
            Size::Const(name) => write_name(&mut self.out, name)?,
        }
        Ok(self.since(start))
    }

    fn buffer(&mut self, buffer: &BufferDecl) -> fmt::Result {
        let start = self.at();
        self.out.write_str("buffer ")?;
        let name = self.name(&buffer.name)?;
        write!(self.out, ": {} ", buffer.access)?;
        let element = self.at();
        match &buffer.element {
            Element::Type(data_type) => write!(self.out, "{data_type}")?,
            Element::Const(name) if is_word(name) && !is_reserved(name) && !is_type_word(name) => self.out.write_str(name)?,
            Element::Const(name) => write_quoted(&mut self.out, name, '`')?,
        }
        let element = self.since(element);
        let mut count = self.since(self.at());
        if let Some(size) = &buffer.count {
            self.out.write_char('[')?;
            count = self.size(size)?;
            self.out.write_char(']')?;
        }
        let mut binding = self.since(self.at());
        if let Some(number) = buffer.binding {
            self.out.write_char(' ')?;
            let start = self.at();
            write!(self.out, "@{number}")?;
            binding = self.since(start);
        }
        let whole = self.since(start);
        if let Some(Noted { spans, .. }) = &mut self.noted {
            spans.buffers.push([whole, name, element, count, binding]);
        }
        Ok(())
    }

    fn block(&mut self, body: &[Node]) -> fmt::Result {
        self.out.write_char('{')?;
        self.indent += 1;
        for node in body {
            self.line()?;
            self.node(node)?;
        }
        self.indent -= 1;
        self.line()?;
        self.out.write_char('}')
    }

    fn node(&mut self, node: &Node) -> fmt::Result {
        let place = self.place();
        let start = self.at();
        let head = self.node_at(node, place)?;
        let whole = self.since(start);
        self.note(place, whole, head);
        Ok(())
    }

    /// The statement; gives its head.
    fn node_at(&mut self, node: &Node, place: usize) -> Result<Span, fmt::Error> {
        Ok(match node {
            Node::Let { name, value } => {
                self.out.write_str("let ")?;
                let head = self.name(name)?;
                self.out.write_str(" = ")?;
                self.expr(value, Level::LOWEST)?;
                head
            }
            Node::Assign { name, value } => {
                let head = self.name(name)?;
                self.out.write_str(" = ")?;
                self.expr(value, Level::LOWEST)?;
                head
            }
            Node::Store(store) => {
                let Store { buffer, index, value } = &**store;
                let head = self.name(buffer)?;
                self.out.write_char('[')?;
                self.expr(index, Level::LOWEST)?;
                self.out.write_str("] = ")?;
                self.expr(value, Level::LOWEST)?;
                head
            }
            Node::Atomic(atomic) => {
                let Atomic { result, op, buffer, index, operands } = &**atomic;
                self.result(result.as_ref(), place)?;
                let start = self.at();
                write!(self.out, "atomic.{op}")?;
                let function = self.since(start);
                if let Some(Noted { tree, .. }) = &mut self.noted {
                    tree.operations.push((NodeId(place as u32), function));
                }
                self.out.write_char('(')?;
                let head = self.name(buffer)?;
                self.out.write_str(", ")?;
                self.expr(index, Level::LOWEST)?;
                for operand in operands {
                    self.out.write_str(", ")?;
                    self.expr(operand, Level::LOWEST)?;
                }
                self.out.write_char(')')?;
                head
            }
            Node::Subgroup(subgroup) => {
                let Subgroup { result, op, operands } = &**subgroup;
                self.result(result.as_ref(), place)?;
                let start = self.at();
                write!(self.out, "subgroup.{op}")?;
                let head = self.since(start);
                self.arguments(operands.iter())?;
                head
            }
            Node::If { cond, then, otherwise } => {
                let head = self.word("if")?;
                self.out.write_char(' ')?;
                self.expr(cond, Level::LOWEST)?;
                self.out.write_char(' ')?;
                self.block(then)?;
                match &otherwise[..] {
                    [] => {}
                    [only @ Node::If { .. }] => {
                        self.out.write_str(" else ")?;
                        self.node(only)?;
                    }
                    _ => {
                        self.out.write_str(" else ")?;
                        self.block(otherwise)?;
                    }
                }
                head
            }
            Node::Loop(repeat) => {
                let Loop { var, from, to, body } = &**repeat;
                self.out.write_str("for ")?;
                let head = self.name(var)?;
                self.out.write_str(" in ")?;
                self.expr(from, Level::LOWEST)?;
                self.out.write_str("..")?;
                self.expr(to, Level::LOWEST)?;
                self.out.write_char(' ')?;
                self.block(body)?;
                head
            }
            Node::Break => self.word("break")?,
            Node::Continue => self.word("continue")?,
            Node::Return => self.word("return")?,
            Node::Barrier { ordering } => {
                let start = self.at();
                match ordering {
                    MemoryOrdering::SeqCst => self.out.write_str("barrier")?,
                    MemoryOrdering::Relaxed
                    | MemoryOrdering::Acquire
                    | MemoryOrdering::Release
                    | MemoryOrdering::AcqRel
                    | MemoryOrdering::GridSync => write!(self.out, "barrier.{ordering}")?,
                }
                self.since(start)
            }
            Node::Trap { tag } => {
                let head = self.word("trap")?;
                write!(self.out, "({tag})")?;
                head
            }
            Node::Block(body) => {
                let start = self.at();
                self.block(body)?;
                Span { start, end: start + 1 }
            }
            Node::Region { generator, body } => {
                self.out.write_str("region ")?;
                let start = self.at();
                write_quoted(&mut self.out, generator, '"')?;
                let head = self.since(start);
                self.out.write_char(' ')?;
                self.block(body)?;
                head
            }
        })
    }

    fn result(&mut self, name: Option<&Name>, place: usize) -> fmt::Result {
        let Some(name) = name else { return Ok(()) };
        self.out.write_str("let ")?;
        let span = self.name(name)?;
        if let Some(Noted { tree, .. }) = &mut self.noted {
            tree.results.push((NodeId(place as u32), span));
        }
        self.out.write_str(" = ")
    }

    fn arguments<'e>(&mut self, arguments: impl Iterator<Item = &'e Expr>) -> fmt::Result {
        self.out.write_char('(')?;
        for (i, argument) in arguments.enumerate() {
            if i > 0 {
                self.out.write_str(", ")?;
            }
            self.expr(argument, Level::LOWEST)?;
        }
        self.out.write_char(')')
    }

    /// The expression, in parentheses if it binds less tightly than what stands in its place must.
    fn expr(&mut self, expr: &Expr, place: Level) -> fmt::Result {
        if level(expr) < place {
            self.out.write_char('(')?;
            self.bare(expr)?;
            return self.out.write_char(')');
        }
        self.bare(expr)
    }

    fn bare(&mut self, expr: &Expr) -> fmt::Result {
        let place = self.place();
        let start = self.at();
        let head = self.bare_at(expr)?;
        let whole = self.since(start);
        self.note(place, whole, head.unwrap_or(whole));
        Ok(())
    }

    /// The expression; gives its head, if that is not all of it.
    fn bare_at(&mut self, expr: &Expr) -> Result<Option<Span>, fmt::Error> {
        Ok(match expr {
            Expr::Lit(literal) => {
                self.literal(*literal)?;
                None
            }
            Expr::Var(name) => Some(self.name(name)?),
            Expr::Builtin(builtin) => {
                write!(self.out, "{builtin}")?;
                None
            }
            Expr::Len(buffer) => {
                self.out.write_str("len(")?;
                let head = self.name(buffer)?;
                self.out.write_char(')')?;
                Some(head)
            }
            Expr::Load(load) => {
                let head = self.name(&load.buffer)?;
                self.out.write_char('[')?;
                self.expr(&load.index, Level::LOWEST)?;
                self.out.write_char(']')?;
                Some(head)
            }
            Expr::Unary { op, operand } => match op.info().spelling {
                Spelling::Prefix(token) => {
                    let head = self.word(token)?;
                    // A minus and a number would be one literal.
                    let one_literal = *op == UnaryOp::Neg && matches!(&**operand, Expr::Lit(_));
                    self.expr(operand, if one_literal { Level::POSTFIX } else { Level::PREFIX })?;
                    Some(head)
                }
                Spelling::Infix(..) | Spelling::Call => Some(self.call(op.mnemonic(), expr)?),
            },
            Expr::Binary { op, left, right } => match op.info().spelling {
                Spelling::Infix(token, precedence) => {
                    let level = Level::infix(precedence);
                    self.expr(left, if precedence == Precedence::Compare { level.tighter() } else { level })?;
                    self.out.write_char(' ')?;
                    let head = self.word(token)?;
                    self.out.write_char(' ')?;
                    self.expr(right, level.tighter())?;
                    Some(head)
                }
                Spelling::Prefix(_) | Spelling::Call => Some(self.call(op.mnemonic(), expr)?),
            },
            Expr::Ternary { op, .. } => Some(self.call(op.mnemonic(), expr)?),
            Expr::Cast { to, .. } => Some(self.call(to.name(), expr)?),
            Expr::Bitcast { to, .. } => {
                let head = self.word("bitcast")?;
                write!(self.out, "<{to}>")?;
                self.arguments(expr.children())?;
                Some(head)
            }
            Expr::Vector { .. } => Some(self.call("vec", expr)?),
            Expr::Extract { vector, component } => {
                self.expr(vector, Level::POSTFIX)?;
                self.out.write_char('.')?;
                let start = self.at();
                match COMPONENTS.get(usize::from(*component)) {
                    Some(name) => self.out.write_str(name)?,
                    None => write!(self.out, "c{component}")?,
                }
                Some(self.since(start))
            }
        })
    }

    /// A call; gives the function.
    fn call(&mut self, function: &str, expr: &Expr) -> Result<Span, fmt::Error> {
        let head = self.word(function)?;
        self.arguments(expr.children())?;
        Ok(head)
    }

    fn literal(&mut self, literal: Literal) -> fmt::Result {
        match literal {
            Literal::Bool(value) => write!(self.out, "{value}"),
            Literal::U32(value) => {
                let suffix = if self.suffixes.next() { suffix_of(Scalar::U32) } else { "" };
                write!(self.out, "{value}{suffix}")
            }
            Literal::I32(value) => write!(self.out, "{value}{}", suffix_of(Scalar::I32)),
            Literal::U64(value) => write!(self.out, "{value}{}", suffix_of(Scalar::U64)),
            Literal::I64(value) => write!(self.out, "{value}{}", suffix_of(Scalar::I64)),
            Literal::F32(_) | Literal::F64(_) => {
                self.out.write_str(&float_text(literal))?;
                self.out.write_str(suffix_of(literal.scalar()))
            }
        }
    }
}

/// How tightly the spelling of an expression binds. Literals count as prefixed even without a sign: a number before `.x` is too easy
/// to misread.
fn level(expr: &Expr) -> Level {
    let by_spelling = |spelling| match spelling {
        Spelling::Prefix(_) => Level::PREFIX,
        Spelling::Infix(_, precedence) => Level::infix(precedence),
        Spelling::Call => Level::POSTFIX,
    };
    match expr {
        Expr::Lit(_) => Level::PREFIX,
        Expr::Unary { op, .. } => by_spelling(op.info().spelling),
        Expr::Binary { op, .. } => by_spelling(op.info().spelling),
        Expr::Ternary { op, .. } => by_spelling(op.info().spelling),
        Expr::Var(_)
        | Expr::Builtin(_)
        | Expr::Len(_)
        | Expr::Load(_)
        | Expr::Cast { .. }
        | Expr::Bitcast { .. }
        | Expr::Vector { .. }
        | Expr::Extract { .. } => Level::POSTFIX,
    }
}
