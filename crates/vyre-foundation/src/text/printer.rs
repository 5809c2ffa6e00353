//! IR to text, so that parsing gives the same IR back.
//!
//! That holds for every program that does not nest deeper than the limit, valid or not: names are quoted where they must be,
//! parentheses stand where precedence asks for them, and a `u32` goes without suffix only where [`super::infer`] gives it the same
//! type again. The spans of the printed text come from parsing it, so that they mean the same as those of any other text.

use super::ast::OpenInt;
use super::expressions::COMPONENTS;
use super::infer;
use super::lexer::is_word;
use super::names::{is_reserved, write_name, write_quoted};
use super::number::suffix_of;
use super::types::is_type_word;
use super::value::float_text;
use super::{is_too_large, read};
use crate::diagnostic::{Poison, Source};
use crate::ir::{BufferDecl, Element, Expr, Item, Literal, Name, Node, Parts, Program, Scalar, Size, SpecValue, UnaryOp, Walk};
use crate::memory_model::MemoryOrdering;
use std::fmt::{self, Write};
use vyre_spec::limits::MAX_NESTING;
use vyre_spec::{FloatMode, Precedence, Spelling};

/// The program as text, with the spans of all its parts. A program that nests too deep gives a comment that says so.
#[must_use]
pub fn print(program: &Program) -> Source {
    let parts = program.parts();
    let text = match text_of(program, parts) {
        Some(text) => text,
        None => format!("// a program that is nested more than {MAX_NESTING} deep is not printed\n"),
    };
    let mut source = Source { name: "<program>".into(), text, spans: Default::default() };
    if !is_too_large(source.text.len())
        && let Some((_, spans, _)) = read(&source.text).program
    {
        source.spans = spans;
    }
    source
}

fn text_of(program: &Program, parts: &Parts) -> Option<String> {
    if program.too_deep().is_some() {
        return None;
    }
    let mut out = String::new();
    let mut printer = Printer { out: &mut out, suffixes: Suffixes::of(parts), indent: 0 };
    printer.program(program.name(), parts).ok()?;
    Some(out)
}

fn nests_too_deep(mut walk: Walk<'_>) -> bool {
    walk.any(|(_, depth)| depth > MAX_NESTING)
}

/// One expression; integers have suffixes, for nothing around it says their type.
pub(super) fn write_expr(out: &mut dyn Write, expr: &Expr) -> fmt::Result {
    if nests_too_deep(Walk::expr(expr)) {
        return write!(out, "…nested more than {MAX_NESTING} deep…");
    }
    Printer { out, suffixes: Suffixes::all(), indent: 0 }.expr(expr, Level::LOWEST)
}

/// One statement, without a line end after it; integers have suffixes, for nothing around it says their type.
pub(super) fn write_node(out: &mut dyn Write, node: &Node) -> fmt::Result {
    if nests_too_deep(Walk::body(std::slice::from_ref(node))) {
        return write!(out, "…nested more than {MAX_NESTING} deep…");
    }
    Printer { out, suffixes: Suffixes::all(), indent: 0 }.node(node)
}

/// Which `u32` literals need a suffix, in the order of the walk, which is that of printing.
struct Suffixes(std::vec::IntoIter<bool>);

impl Suffixes {
    fn all() -> Self {
        Suffixes(Vec::new().into_iter())
    }

    fn of(parts: &Parts) -> Self {
        let contexts = infer::contexts(parts, |_, literal| matches!(literal, Literal::U32(_)), &Poison::default());
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

struct Printer<'a> {
    out: &'a mut dyn Write,
    suffixes: Suffixes,
    indent: usize,
}

impl Printer<'_> {
    fn program(&mut self, name: Option<&Name>, parts: &Parts) -> fmt::Result {
        let body = match (name, &parts.body[..]) {
            (Some(name), [Node::Region { body, .. }]) => {
                self.out.write_str("program ")?;
                write_name(self.out, name)?;
                body
            }
            _ => {
                self.out.write_str("raw")?;
                &parts.body
            }
        };
        self.out.write_str(" {")?;
        self.indent = 1;
        self.header(parts)?;
        if !body.is_empty() {
            self.out.write_char('\n')?;
        }
        for node in body.iter() {
            self.line()?;
            self.node(node)?;
        }
        self.out.write_str("\n}\n")
    }

    /// Begins a line.
    fn line(&mut self) -> fmt::Result {
        write!(self.out, "\n{:1$}", "", self.indent * 2)
    }

    fn header(&mut self, parts: &Parts) -> fmt::Result {
        self.line()?;
        self.out.write_str("workgroup")?;
        let shown = parts.workgroup.iter().rposition(|size| *size != Size::Lit(1)).unwrap_or(0);
        for size in &parts.workgroup[..=shown] {
            self.out.write_char(' ')?;
            self.size(size)?;
        }
        if parts.floats != FloatMode::default() {
            self.line()?;
            write!(self.out, "floats {}", parts.floats)?;
        }
        if let Some(size) = parts.subgroup {
            self.line()?;
            write!(self.out, "subgroup {size}")?;
        }
        for decl in &parts.consts {
            self.line()?;
            self.out.write_str("const ")?;
            write_name(self.out, &decl.name)?;
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

    fn size(&mut self, size: &Size) -> fmt::Result {
        match size {
            Size::Lit(value) => write!(self.out, "{value}"),
            Size::Const(name) => write_name(self.out, name),
        }
    }

    fn buffer(&mut self, buffer: &BufferDecl) -> fmt::Result {
        self.out.write_str("buffer ")?;
        write_name(self.out, &buffer.name)?;
        write!(self.out, ": {} ", buffer.access)?;
        match &buffer.element {
            Element::Type(data_type) => write!(self.out, "{data_type}")?,
            Element::Const(name) if is_word(name) && !is_reserved(name) && !is_type_word(name) => self.out.write_str(name)?,
            Element::Const(name) => write_quoted(self.out, name, '`')?,
        }
        if let Some(count) = &buffer.count {
            self.out.write_char('[')?;
            self.size(count)?;
            self.out.write_char(']')?;
        }
        if let Some(binding) = buffer.binding {
            write!(self.out, " @{binding}")?;
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
        match node {
            Node::Let { name, value } => {
                self.result(Some(name))?;
                self.expr(value, Level::LOWEST)
            }
            Node::Assign { name, value } => {
                write_name(self.out, name)?;
                self.out.write_str(" = ")?;
                self.expr(value, Level::LOWEST)
            }
            Node::Store { buffer, index, value } => {
                write_name(self.out, buffer)?;
                self.out.write_char('[')?;
                self.expr(index, Level::LOWEST)?;
                self.out.write_str("] = ")?;
                self.expr(value, Level::LOWEST)
            }
            Node::Atomic { result, op, buffer, index, operands } => {
                self.result(result.as_ref())?;
                write!(self.out, "atomic.{op}(")?;
                write_name(self.out, buffer)?;
                self.out.write_str(", ")?;
                self.expr(index, Level::LOWEST)?;
                for operand in operands {
                    self.out.write_str(", ")?;
                    self.expr(operand, Level::LOWEST)?;
                }
                self.out.write_char(')')
            }
            Node::Subgroup { result, op, operands } => {
                self.result(result.as_ref())?;
                write!(self.out, "subgroup.{op}")?;
                self.arguments(operands.iter())
            }
            Node::If { cond, then, otherwise } => {
                self.out.write_str("if ")?;
                self.expr(cond, Level::LOWEST)?;
                self.out.write_char(' ')?;
                self.block(then)?;
                match &otherwise[..] {
                    [] => Ok(()),
                    [only @ Node::If { .. }] => {
                        self.out.write_str(" else ")?;
                        self.node(only)
                    }
                    _ => {
                        self.out.write_str(" else ")?;
                        self.block(otherwise)
                    }
                }
            }
            Node::Loop { var, from, to, body } => {
                self.out.write_str("for ")?;
                write_name(self.out, var)?;
                self.out.write_str(" in ")?;
                self.expr(from, Level::LOWEST)?;
                self.out.write_str("..")?;
                self.expr(to, Level::LOWEST)?;
                self.out.write_char(' ')?;
                self.block(body)
            }
            Node::Break => self.out.write_str("break"),
            Node::Continue => self.out.write_str("continue"),
            Node::Return => self.out.write_str("return"),
            Node::Barrier { ordering: MemoryOrdering::SeqCst } => self.out.write_str("barrier"),
            Node::Barrier { ordering } => write!(self.out, "barrier.{ordering}"),
            Node::Trap { tag } => write!(self.out, "trap({tag})"),
            Node::Block(body) => self.block(body),
            Node::Region { generator, body } => {
                self.out.write_str("region ")?;
                write_quoted(self.out, generator, '"')?;
                self.out.write_char(' ')?;
                self.block(body)
            }
        }
    }

    fn result(&mut self, name: Option<&Name>) -> fmt::Result {
        match name {
            Some(name) => {
                self.out.write_str("let ")?;
                write_name(self.out, name)?;
                self.out.write_str(" = ")
            }
            None => Ok(()),
        }
    }

    fn arguments<'a>(&mut self, arguments: impl Iterator<Item = &'a Expr>) -> fmt::Result {
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
        match expr {
            Expr::Lit(literal) => self.literal(*literal),
            Expr::Var(name) => write_name(self.out, name),
            Expr::Builtin(builtin) => write!(self.out, "{builtin}"),
            Expr::Len(buffer) => {
                self.out.write_str("len(")?;
                write_name(self.out, buffer)?;
                self.out.write_char(')')
            }
            Expr::Load { buffer, index } => {
                write_name(self.out, buffer)?;
                self.out.write_char('[')?;
                self.expr(index, Level::LOWEST)?;
                self.out.write_char(']')
            }
            Expr::Unary { op, operand } => match op.info().spelling {
                Spelling::Prefix(token) => {
                    self.out.write_str(token)?;
                    // A minus and a number would be one literal.
                    let one_literal = *op == UnaryOp::Neg && matches!(&**operand, Expr::Lit(_));
                    self.expr(operand, if one_literal { Level::POSTFIX } else { Level::PREFIX })
                }
                Spelling::Infix(..) | Spelling::Call => self.call(op.mnemonic(), expr),
            },
            Expr::Binary { op, left, right } => match op.info().spelling {
                Spelling::Infix(token, precedence) => {
                    let level = Level::infix(precedence);
                    self.expr(left, if precedence == Precedence::Compare { level.tighter() } else { level })?;
                    write!(self.out, " {token} ")?;
                    self.expr(right, level.tighter())
                }
                Spelling::Prefix(_) | Spelling::Call => self.call(op.mnemonic(), expr),
            },
            Expr::Ternary { op, .. } => self.call(op.mnemonic(), expr),
            Expr::Cast { to, .. } => self.call(to.name(), expr),
            Expr::Bitcast { to, .. } => {
                write!(self.out, "bitcast<{to}>")?;
                self.arguments(expr.children())
            }
            Expr::Vector { .. } => self.call("vec", expr),
            Expr::Extract { vector, component } => {
                self.expr(vector, Level::POSTFIX)?;
                match COMPONENTS.get(usize::from(*component)) {
                    Some(name) => write!(self.out, ".{name}"),
                    None => write!(self.out, ".c{component}"),
                }
            }
        }
    }

    fn call(&mut self, function: &str, expr: &Expr) -> fmt::Result {
        self.out.write_str(function)?;
        self.arguments(expr.children())
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
        | Expr::Load { .. }
        | Expr::Cast { .. }
        | Expr::Bitcast { .. }
        | Expr::Vector { .. }
        | Expr::Extract { .. } => Level::POSTFIX,
    }
}
