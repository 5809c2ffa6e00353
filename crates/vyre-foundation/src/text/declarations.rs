//! The declarations at the top of a program.

use super::ast::OpenInt;
use super::lexer::{Kind, number_at};
use super::names::{Keyword, Role};
use super::number::{Number, suffix_of};
use super::parser::{Parsed, Parser};
use super::types::is_type_word;
use crate::diagnostic::{BufferPart, Diagnostic, Fix, Location, Span};
use crate::ir::{Access, Axis, BufferDecl, ConstDecl, Element, FloatMode, Literal, Scalar, Size, SpecValue};
use vyre_spec::ErrorCode;

/// The word before a subgroup size, which begins statements as well.
const SUBGROUP: &str = "subgroup";

/// What a literal says.
pub(super) enum Value {
    Known(Literal),
    /// An integer whose type its context decides.
    Open(OpenInt),
    /// Nothing: there is a mistake in it, which was reported.
    Wrong,
}

impl Parser<'_> {
    /// Whether a declaration begins here.
    pub(super) fn at_declaration(&self) -> bool {
        let is_word = self.word().is_some_and(|word| match Keyword::from_word(word).map(Keyword::role) {
            Some(Role::Declaration | Role::Attribute) => true,
            Some(Role::Statement | Role::Operation | Role::Inside | Role::Value) => false,
            None => word == SUBGROUP,
        });
        is_word && self.punct_ahead(1) != Some(".") && !self.keyword_is_name() && !self.typed_constant_ahead()
    }

    /// Whether a variable of other languages begins here: `const uint x = 1`.
    fn typed_constant_ahead(&self) -> bool {
        self.word() == Some(Keyword::Const.word())
            && self.word_ahead(1).is_some_and(|word| self.is_type_here(word))
            && self.word_ahead(2).is_some()
            && !self.tokens.newline_before(self.at + 2)
    }

    /// One declaration.
    pub(super) fn declaration(&mut self) -> Parsed<()> {
        self.deep_nest = false;
        let start = self.bump();
        match self.slice(start) {
            "workgroup" => {
                self.broken_workgroup = true;
                let (sizes, span, axes) = self.workgroup()?;
                let earlier = self.header.workgroup.as_ref().map(|(_, span, _)| *span);
                self.once(start.to(span), earlier);
                self.header.workgroup.get_or_insert((sizes, span, axes));
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
                let (size, span) = self.part(Location::Subgroup, |parser| parser.u32("a subgroup size"))?;
                self.once(start.to(span), self.header.subgroup.map(|(_, span)| span));
                self.header.subgroup.get_or_insert((size, span));
            }
            "const" => {
                let constant = self.constant()?;
                self.note_declared(&constant.0.name);
                self.header.consts.push(constant);
            }
            _ => {
                let buffer = self.buffer(start)?;
                self.note_declared(&buffer.0.name);
                self.header.buffers.push(buffer);
            }
        }
        Ok(())
    }

    /// Forgets what was read of a declaration that ended in a mistake, which began at token `start`. Its name is hidden by what skips
    /// the rest of it.
    pub(super) fn broken_declaration(&mut self, start: usize) {
        let (buffer, constant) = (self.header.buffers.len() as u32, self.header.consts.len() as u32);
        let parts = [BufferPart::Element, BufferPart::Count, BufferPart::Binding].map(|part| Location::Buffer(buffer, part));
        parts.into_iter().chain([Location::Const(constant)]).for_each(|part| self.header.poison.forget(part));
        if self.slice(self.tokens.get(start).span) == SUBGROUP {
            self.header.poison.add(Location::Subgroup);
        }
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
        match self.kind() {
            Kind::Word | Kind::Quoted => {
                let (name, span) = self.name(what)?;
                Ok((Size::Const(name), span))
            }
            Kind::Number | Kind::String | Kind::Punct | Kind::Bad | Kind::End => {
                let (value, span) = self.u32(what)?;
                Ok((Size::Lit(value), span))
            }
        }
    }

    fn workgroup(&mut self) -> Parsed<([Size; 3], Span, [Span; 3])> {
        let mut sizes = [Size::Lit(1), Size::Lit(1), Size::Lit(1)];
        let mut spans = [None; 3];
        let start = self.span();
        for axis in Axis::ALL {
            let more = match self.kind() {
                Kind::Word => !self.word().is_some_and(|word| self.is_keyword(word)),
                Kind::Quoted | Kind::Number => true,
                Kind::String | Kind::Punct | Kind::Bad | Kind::End => false,
            };
            if axis != Axis::X && (self.line_ended() || !more) {
                break;
            }
            let (size, span) = self.part(Location::WorkgroupAxis(axis), |parser| parser.size("a workgroup size"))?;
            sizes[axis as usize] = size;
            spans[axis as usize] = Some(span);
        }
        let whole = start.to(self.previous());
        Ok((sizes, whole, spans.map(|span| span.unwrap_or(whole))))
    }

    fn constant(&mut self) -> Parsed<(ConstDecl, Span)> {
        let (name, span) = self.name("the name of a constant")?;
        self.expect(":")?;
        let kinds = SpecValue::one_of_each();
        let kind = self.word().and_then(|word| kinds.iter().find(|kind| kind.kind() == word));
        let Some(kind) = kind else {
            return Err(self.unexpected_word(&kinds.each_ref().map(SpecValue::kind)));
        };
        self.bump();
        self.expect("=")?;
        let location = Location::Const(self.header.consts.len() as u32);
        let default = self.part(location, |parser| match kind.literal() {
            Some(literal) => {
                let value = parser.constant_value(literal.scalar())?;
                parser.stood_in |= value.is_none();
                Ok(value.unwrap_or(kind.clone()))
            }
            None => parser.data_type().map(SpecValue::DType),
        })?;
        Ok((ConstDecl { name, default }, span))
    }

    /// A literal of this type; `None` after a mistake in it. Integers need no suffix; one of another type is a mistake here, for
    /// there is nothing to put into the program instead.
    fn constant_value(&mut self, scalar: Scalar) -> Parsed<Option<SpecValue>> {
        let start = self.span();
        let Some(value) = self.literal() else {
            return Err(self.unexpected(format!("a value of type {scalar}")));
        };
        let span = start.to(self.previous());
        let found = match value {
            Value::Wrong => return Ok(None),
            Value::Open(open) if scalar.is_int() => {
                let literal = open.of_type(scalar);
                if literal.is_none() {
                    let diagnostic = does_not_fit(self.slice(span), scalar, span);
                    let other = [Scalar::U32, Scalar::I32].into_iter().find(|other| open.of_type(*other).is_some());
                    self.mistake(match other {
                        Some(other) => diagnostic.help(format!("a constant of type {other} holds it")),
                        None => diagnostic,
                    });
                }
                return Ok(literal.and_then(spec_value));
            }
            Value::Known(literal) if literal.scalar() == scalar => return Ok(spec_value(literal)),
            Value::Open(_) => "an integer".to_string(),
            Value::Known(literal) => literal.scalar().to_string(),
        };
        let mut diagnostic = Diagnostic::new(ErrorCode::E0310, format!("the constant is {scalar}, and this value is {found}"))
            .at(Location::Text(span))
            .expected(scalar)
            .found(found);
        if scalar == Scalar::F32 && is_plain_decimal(self.slice(span)) {
            diagnostic = diagnostic.fix("write a float", Fix::InsertAfter(Location::Text(span), ".0".into()));
        }
        self.mistake(diagnostic);
        Ok(None)
    }

    fn buffer(&mut self, start: Span) -> Parsed<(BufferDecl, [Span; 5])> {
        let (name, name_span) = self.name("the name of a buffer")?;
        self.expect(":")?;
        let Some(access) = self.word().and_then(Access::from_name) else {
            return Err(self.unexpected_word(&Access::ALL.map(Access::name)));
        };
        self.bump();
        let n = self.header.buffers.len() as u32;
        let element_start = self.span();
        let element = self.part(Location::Buffer(n, BufferPart::Element), Self::element)?;
        let element_span = element_start.to(self.previous());
        let after = |span: Span| Span { start: span.end, end: span.end };
        let (mut count, mut count_span) = (None, after(element_span));
        if self.is("[") {
            self.bump();
            let (size, span) = self.part(Location::Buffer(n, BufferPart::Count), |parser| parser.size("a count"))?;
            self.expect("]")?;
            (count, count_span) = (Some(size), span);
        }
        let (mut binding, mut binding_span) = (None, after(self.previous()));
        if self.is("@") {
            let at = self.bump();
            let (number, span) = self.part(Location::Buffer(n, BufferPart::Binding), |parser| parser.u32("a binding"))?;
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

    /// A literal, its sign included; `None`, with nothing read, if there is none.
    pub(super) fn literal(&mut self) -> Option<Value> {
        if let Some(word @ (Keyword::True | Keyword::False)) = self.word().and_then(Keyword::from_word) {
            self.bump();
            return Some(Value::Known(Literal::Bool(word == Keyword::True)));
        }
        let negative = self.is("-");
        let places = usize::from(negative);
        let found = match (&self.ahead(places).kind, self.word_ahead(places).and_then(Keyword::from_word)) {
            (Kind::Number, _) => number_at(&self.text[self.ahead(places).span.start as usize..]),
            (_, Some(Keyword::Inf)) => Some(Number::Float(Literal::F32(f32::INFINITY.into()))),
            (_, Some(Keyword::Nan)) => Some(Number::Float(Literal::F32(f32::NAN.into()))),
            (_, Some(Keyword::Infd)) => Some(Number::Float(Literal::F64(f64::INFINITY.into()))),
            (_, Some(Keyword::Nand)) => Some(Number::Float(Literal::F64(f64::NAN.into()))),
            (Kind::Word | Kind::Quoted | Kind::String | Kind::Punct | Kind::Bad | Kind::End, _) => return None,
        };
        let start = self.span();
        if negative {
            self.bump_marked(super::parser::Mark::Prefix);
        }
        let span = start.to(self.bump());
        Some(match found {
            None => Value::Wrong,
            Some(Number::Float(Literal::F32(value))) if negative => Value::Known(Literal::F32((-value.value()).into())),
            Some(Number::Float(Literal::F64(value))) if negative => Value::Known(Literal::F64((-value.value()).into())),
            Some(Number::Float(literal)) => Value::Known(literal),
            Some(Number::Int(magnitude, suffix)) => {
                let open = OpenInt { negative, magnitude };
                match suffix.map(|scalar| open.of_type(scalar).ok_or(scalar)) {
                    None => Value::Open(open),
                    Some(Ok(literal)) => Value::Known(literal),
                    Some(Err(scalar)) => {
                        let text = self.slice(span);
                        let digits = text.trim_end_matches(suffix_of(scalar));
                        self.mistake(with_suffix(does_not_fit(text, scalar, span), open, scalar, digits, span));
                        Value::Wrong
                    }
                }
            }
        })
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
pub(super) fn does_not_fit(text: &str, scalar: Scalar, span: Span) -> Diagnostic {
    let range = match scalar {
        Scalar::U32 => format!("0 to {}", u32::MAX),
        Scalar::I32 => format!("{} to {}", i32::MIN, i32::MAX),
        Scalar::U64 => format!("0 to {}", u64::MAX),
        Scalar::I64 => format!("{} to {}", i64::MIN, i64::MAX),
        Scalar::Bool | Scalar::F32 | Scalar::F64 => scalar.to_string(),
    };
    let shown: String = text.chars().take(40).collect();
    Diagnostic::new(ErrorCode::E0303, format!("`{shown}` does not fit {scalar}"))
        .at(Location::Text(span))
        .expected(range)
        .found(&shown)
}

/// The same mistake where the type is fixed, with the advice to convert a negative number to an unsigned one.
pub(super) fn with_conversion(diagnostic: Diagnostic, value: OpenInt, scalar: Scalar, digits: &str, span: Span) -> Diagnostic {
    let signed = match scalar {
        Scalar::U32 => Scalar::I32,
        Scalar::U64 => Scalar::I64,
        Scalar::I32 | Scalar::I64 | Scalar::Bool | Scalar::F32 | Scalar::F64 => return diagnostic,
    };
    match value.negative && value.of_type(signed).is_some() {
        true => {
            let new = format!("{scalar}({digits}{})", suffix_of(signed));
            diagnostic.fix("if it should wrap around, write", Fix::Replace(Location::Text(span), new))
        }
        false => diagnostic,
    }
}

/// The same mistake where the type is free to change, with the advice to give `digits` a suffix of a type that holds the value.
pub(super) fn with_suffix(diagnostic: Diagnostic, value: OpenInt, scalar: Scalar, digits: &str, span: Span) -> Diagnostic {
    // A wider type is better than one of the other signedness.
    let by_preference: &[Scalar] = match scalar {
        Scalar::U32 => &[Scalar::U64, Scalar::I32, Scalar::I64],
        Scalar::I32 => &[Scalar::I64, Scalar::U32, Scalar::U64],
        Scalar::U64 => &[Scalar::I64],
        Scalar::I64 => &[Scalar::U64],
        Scalar::Bool | Scalar::F32 | Scalar::F64 => &[],
    };
    match by_preference.iter().find(|other| value.of_type(**other).is_some()) {
        Some(other) => {
            let new = format!("{digits}{}", suffix_of(*other));
            diagnostic.fix(format!("it fits {other}"), Fix::Replace(Location::Text(span), new))
        }
        None => diagnostic.help("no integer type holds it"),
    }
}
