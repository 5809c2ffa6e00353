//! The declarations at the top of a program.

use super::ast::OpenInt;
use super::lexer::Kind;
use super::number::Number;
use super::parser::{Parsed, Parser};
use super::types::is_type_word;
use crate::diagnostic::{Diagnostic, Fix, Location, Span};
use crate::ir::{Access, BufferDecl, ConstDecl, DataType, Element, FloatMode, Literal, Scalar, Size, SpecValue};
use vyre_spec::ErrorCode;

/// The words that begin declarations, with `subgroup`, which begins statements as well.
const WORDS: [&str; 5] = ["workgroup", "floats", "subgroup", "const", "buffer"];

/// One value of each kind a constant can have.
fn constant_kinds() -> [SpecValue; 5] {
    [SpecValue::U32(0), SpecValue::I32(0), SpecValue::F32(0.0), SpecValue::Bool(false), SpecValue::DType(DataType::U32)]
}

impl Parser<'_> {
    /// Whether a declaration begins here.
    pub(super) fn at_declaration(&self) -> bool {
        self.word().is_some_and(|word| WORDS.contains(&word)) && self.punct_ahead(1) != Some(".")
    }

    /// One declaration.
    pub(super) fn declaration(&mut self) -> Parsed<()> {
        let start = self.bump();
        match self.slice(start) {
            "workgroup" => {
                self.broken_workgroup = true;
                let (sizes, span) = self.workgroup()?;
                let earlier = self.header.workgroup.as_ref().map(|(_, span)| *span);
                self.once(start.to(span), earlier);
                self.header.workgroup.get_or_insert((sizes, span));
            }
            "floats" => {
                let mode = self.word().and_then(|word| FloatMode::ALL.into_iter().find(|mode| mode.name() == word));
                let Some(mode) = mode else {
                    let names = FloatMode::ALL.map(FloatMode::name);
                    return Err(self.unexpected_word(&names));
                };
                let span = start.to(self.bump());
                self.once(span, self.header.floats.map(|(_, span)| span));
                self.header.floats.get_or_insert((mode, span));
            }
            "subgroup" => {
                let (size, span) = self.u32("a subgroup size")?;
                self.once(start.to(span), self.header.subgroup.map(|(_, span)| span));
                self.header.subgroup.get_or_insert((size, span));
            }
            "const" => {
                let constant = self.constant()?;
                self.header.consts.push(constant);
            }
            _ => {
                let buffer = self.buffer(start)?;
                self.header.buffers.push(buffer);
            }
        }
        Ok(())
    }

    fn once(&mut self, span: Span, earlier: Option<Span>) {
        if let Some(earlier) = earlier {
            self.mistake(
                Diagnostic::new(ErrorCode::E0109, "this is declared already")
                    .at(Location::Text(span))
                    .related(Location::Text(earlier), "here")
                    .help("keep one of them"),
            );
        }
    }

    /// A number, or the name of a constant.
    fn size(&mut self, what: &str) -> Parsed<(Size, Span)> {
        match self.token().kind {
            Kind::Word | Kind::Quoted(_) => {
                let (name, span) = self.name(what)?;
                Ok((Size::Const(name), span))
            }
            Kind::Number(_) | Kind::String(_) | Kind::Punct(_) | Kind::Bad | Kind::End => {
                let (value, span) = self.u32(what)?;
                Ok((Size::Lit(value), span))
            }
        }
    }

    fn workgroup(&mut self) -> Parsed<([Size; 3], Span)> {
        let mut sizes = [Size::Lit(1), Size::Lit(1), Size::Lit(1)];
        let (first, mut span) = self.size("a workgroup size")?;
        sizes[0] = first;
        for size in &mut sizes[1..] {
            if self.token().newline_before || !matches!(self.token().kind, Kind::Word | Kind::Quoted(_) | Kind::Number(_)) {
                break;
            }
            let (next, end) = self.size("a workgroup size")?;
            *size = next;
            span = span.to(end);
        }
        Ok((sizes, span))
    }

    fn constant(&mut self) -> Parsed<(ConstDecl, Span)> {
        let (name, span) = self.name("the name of a constant")?;
        self.expect(":")?;
        let kinds = constant_kinds();
        let kind = self.word().and_then(|word| kinds.iter().find(|kind| kind.kind() == word));
        let Some(kind) = kind else {
            return Err(self.unexpected_word(&kinds.each_ref().map(SpecValue::kind)));
        };
        self.bump();
        self.expect("=")?;
        let default = match kind {
            SpecValue::U32(_) => self.constant_value(Scalar::U32)?,
            SpecValue::I32(_) => self.constant_value(Scalar::I32)?,
            SpecValue::F32(_) => self.constant_value(Scalar::F32)?,
            SpecValue::Bool(_) => self.constant_value(Scalar::Bool)?,
            SpecValue::DType(_) => SpecValue::DType(self.data_type()?),
        };
        Ok((ConstDecl { name, default }, span))
    }

    /// A literal of this type. Integers need no suffix; one of another type is a mistake here, for there is nothing to put into the
    /// program instead.
    fn constant_value(&mut self, scalar: Scalar) -> Parsed<SpecValue> {
        let start = self.span();
        let Some((literal, open)) = self.literal() else {
            return Err(self.unexpected(format!("a value of type {scalar}")));
        };
        let span = start.to(self.previous());
        let literal = match (literal, open) {
            (literal, None) => Some(literal),
            (_, Some(open)) if scalar.is_int() => match open.of_type(scalar) {
                Some(literal) => Some(literal),
                None => {
                    let diagnostic = self.does_not_fit(open, scalar, span);
                    self.mistake(diagnostic);
                    return Ok(SpecValue::U32(0));
                }
            },
            (_, Some(_)) => None,
        };
        if let Some(value) = literal.filter(|literal| literal.scalar() == scalar).and_then(spec_value) {
            return Ok(value);
        }
        let found = literal.map_or("an integer".to_string(), |literal| literal.scalar().to_string());
        let mut diagnostic = Diagnostic::new(ErrorCode::E0310, format!("the constant is {scalar}, and this value is {found}"))
            .at(Location::Text(span))
            .expected(scalar)
            .found(found);
        if scalar == Scalar::F32 && open.is_some() && is_plain_decimal(self.slice(span)) {
            diagnostic = diagnostic.fix("write a float", Fix::InsertAfter(Location::Text(span), ".0".into()));
        }
        self.mistake(diagnostic);
        Ok(SpecValue::U32(0))
    }

    /// The mistake that an integer is out of its type's range.
    pub(super) fn does_not_fit(&self, value: OpenInt, scalar: Scalar, span: Span) -> Diagnostic {
        does_not_fit(self.slice(span), value, scalar, span)
    }

    fn buffer(&mut self, start: Span) -> Parsed<(BufferDecl, [Span; 5])> {
        let (name, name_span) = self.name("the name of a buffer")?;
        self.expect(":")?;
        let Some(access) = self.word().and_then(Access::from_name) else {
            return Err(self.unexpected_word(&Access::ALL.map(Access::name)));
        };
        self.bump();
        let element_start = self.span();
        let element = self.element()?;
        let element_span = element_start.to(self.previous());
        let after = |span: Span| Span { start: span.end, end: span.end };
        let (mut count, mut count_span) = (None, after(element_span));
        if self.is("[") {
            self.bump();
            let (size, span) = self.size("a count")?;
            self.expect("]")?;
            (count, count_span) = (Some(size), span);
        }
        let (mut binding, mut binding_span) = (None, after(self.previous()));
        if self.is("@") {
            let at = self.bump();
            let (number, span) = self.u32("a binding")?;
            (binding, binding_span) = (Some(number), at.to(span));
        }
        let whole = start.to(self.previous());
        Ok((BufferDecl { name, access, element, count, binding }, [whole, name_span, element_span, count_span, binding_span]))
    }

    /// A type, or the name of a constant that stands for one. A name that is neither is left for the validator to refuse.
    fn element(&mut self) -> Parsed<Element> {
        let is_type = self.word().is_some_and(|word| is_type_word(word) || self.punct_ahead(1) == Some("<"));
        if is_type {
            self.data_type().map(Element::Type)
        } else {
            self.name("an element type").map(|(name, _)| Element::Const(name))
        }
    }

    /// A literal, its sign included, and the integer in it if that has no suffix; then the first is a stand-in. `None`, with nothing
    /// read, if there is none.
    pub(super) fn literal(&mut self) -> Option<(Literal, Option<OpenInt>)> {
        if let Some(word @ ("true" | "false")) = self.word() {
            self.bump();
            return Some((Literal::Bool(word == "true"), None));
        }
        let negative = self.is("-");
        let places = usize::from(negative);
        let found = match (&self.ahead(places).kind, self.word_ahead(places)) {
            (Kind::Number(number), _) => *number,
            (_, Some("inf")) => Number::Float(Literal::F32(f32::INFINITY.into())),
            (_, Some("nan")) => Number::Float(Literal::F32(f32::NAN.into())),
            (_, Some("infd")) => Number::Float(Literal::F64(f64::INFINITY.into())),
            (_, Some("nand")) => Number::Float(Literal::F64(f64::NAN.into())),
            (Kind::Word | Kind::Quoted(_) | Kind::String(_) | Kind::Punct(_) | Kind::Bad | Kind::End, _) => return None,
        };
        let start = self.span();
        if negative {
            self.bump_marked(super::parser::Mark::Prefix);
        }
        let span = start.to(self.bump());
        match found {
            Number::Float(Literal::F32(value)) if negative => Some((Literal::F32((-value.value()).into()), None)),
            Number::Float(Literal::F64(value)) if negative => Some((Literal::F64((-value.value()).into()), None)),
            Number::Float(literal) => Some((literal, None)),
            Number::Int(magnitude, suffix) => {
                let open = OpenInt { negative, magnitude };
                match suffix {
                    None => Some((Literal::U32(0), Some(open))),
                    Some(scalar) => match open.of_type(scalar) {
                        Some(literal) => Some((literal, None)),
                        None => {
                            let diagnostic = self.does_not_fit(open, scalar, span);
                            self.mistake(diagnostic);
                            Some((Literal::from_bits(scalar, 0), None))
                        }
                    },
                }
            }
        }
    }
}

/// The value of a constant; `None` for types that constants do not have.
fn spec_value(literal: Literal) -> Option<SpecValue> {
    match literal {
        Literal::U32(value) => Some(SpecValue::U32(value)),
        Literal::I32(value) => Some(SpecValue::I32(value)),
        Literal::F32(value) => Some(SpecValue::F32(value.value())),
        Literal::Bool(value) => Some(SpecValue::Bool(value)),
        Literal::U64(_) | Literal::I64(_) | Literal::F64(_) => None,
    }
}

fn is_plain_decimal(text: &str) -> bool {
    text.trim_start_matches('-').bytes().all(|byte| byte.is_ascii_digit())
}

/// The mistake that the integer spelled `text` is out of the range of `scalar`.
pub(super) fn does_not_fit(text: &str, value: OpenInt, scalar: Scalar, span: Span) -> Diagnostic {
    let range = match scalar {
        Scalar::U32 => format!("0 to {}", u32::MAX),
        Scalar::I32 => format!("{} to {}", i32::MIN, i32::MAX),
        Scalar::U64 => format!("0 to {}", u64::MAX),
        Scalar::I64 => format!("{} to {}", i64::MIN, i64::MAX),
        Scalar::Bool | Scalar::F32 | Scalar::F64 => scalar.to_string(),
    };
    let shown: String = text.chars().take(40).collect();
    let diagnostic = Diagnostic::new(ErrorCode::E0303, format!("`{shown}` does not fit {scalar}"))
        .at(Location::Text(span))
        .expected(range)
        .found(&shown);
    let wider = [Scalar::U32, Scalar::I32, Scalar::U64, Scalar::I64].into_iter().find(|wider| value.of_type(*wider).is_some());
    match wider {
        Some(wider) => diagnostic.help(format!("it fits {wider}, with the suffix `{}`", super::number::suffix_of(wider))),
        None => diagnostic.help("no integer type holds it"),
    }
}
