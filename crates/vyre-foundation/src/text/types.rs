//! Spellings of element types, the inverse of `DataType`'s `Display`.

use super::foreign;
use super::lexer::Kind;
use super::parser::{Mark, Parsed, Parser};
use super::suggest::nearest;
use crate::diagnostic::{Diagnostic, Fix, Location, Span};
use crate::ir::{DataType, Scalar};
use vyre_spec::{ErrorCode, TypeFamily, TypeId};

/// The family of types that the word before a `<` begins, with the components of `vec4` and the like; `None` if there is none, or it
/// is not the one way to write it.
fn family(word: &str) -> Option<(TypeFamily, u8)> {
    match word.strip_prefix(TypeFamily::Vec.word()) {
        Some(digits) => {
            digits.parse().ok().filter(|count: &u8| count.to_string() == digits).map(|count| (TypeFamily::Vec, count))
        }
        None => TypeFamily::from_word(word).map(|family| (family, 0)),
    }
}

/// Whether the word is a type or begins one, so that a constant of this name needs quotes where a type stands.
pub(super) fn is_type_word(word: &str) -> bool {
    DataType::plain_from_word(word).is_some() || family(word).is_some()
}

/// Reads a type, such as `u32`, `vec4<f32>` or `tensor<bf16, 2, 3>`.
#[must_use]
pub fn parse_data_type(text: &str) -> Option<DataType> {
    if super::is_too_large(text.len()) {
        return None;
    }
    let (mut parser, _) = Parser::new(text);
    let data_type = parser.data_type().ok()?;
    (parser.at_end() && parser.mistakes.is_empty() && parser.lexer_mistakes.is_empty()).then_some(data_type)
}

impl Parser<'_> {
    /// A type.
    pub(super) fn data_type(&mut self) -> Parsed<DataType> {
        self.data_type_at(1)
    }

    fn data_type_at(&mut self, depth: u32) -> Parsed<DataType> {
        self.check_depth(depth)?;
        let Some(word) = self.word().filter(|word| !self.is_keyword(word)) else { return Err(self.unexpected("a type")) };
        let span = self.span();
        let parameters = self.punct_ahead(1) == Some("<");
        if let (Some(data_type), false) = (DataType::plain_from_word(word), parameters) {
            self.bump();
            return Ok(data_type);
        }
        let Some((family, count)) = family(word).filter(|_| parameters) else {
            self.mistake(unknown_type(word, span, parameters));
            self.stood_in = true;
            self.bump();
            if parameters {
                self.unknown_parameters(depth)?;
            }
            return Ok(DataType::U32);
        };
        self.bump();
        self.bump_marked(Mark::Tight);
        let data_type = match family {
            TypeFamily::Array => {
                let (bytes, _) = self.number("a size in bytes", usize::MAX as u64)?;
                DataType::Array { element_size: bytes as usize }
            }
            TypeFamily::Handle => DataType::Handle(TypeId(self.u32("the number of a type")?.0)),
            TypeFamily::Opaque => DataType::Opaque(TypeId(self.u32("the number of a type")?.0)),
            TypeFamily::SparseCsr => DataType::SparseCsr { element: self.data_type_at(depth + 1)?.into() },
            TypeFamily::SparseCoo => DataType::SparseCoo { element: self.data_type_at(depth + 1)?.into() },
            TypeFamily::SparseBsr => {
                let element = self.data_type_at(depth + 1)?.into();
                self.type_comma()?;
                let (block_rows, _) = self.u32("rows")?;
                self.type_comma()?;
                let (block_cols, _) = self.u32("columns")?;
                DataType::SparseBsr { element, block_rows, block_cols }
            }
            TypeFamily::TensorShaped => {
                let element = self.data_type_at(depth + 1)?.into();
                let mut shape = Vec::new();
                while self.is(",") {
                    self.type_comma()?;
                    shape.push(self.u32("an extent")?.0);
                }
                DataType::TensorShaped { element, shape: shape.into_iter().collect() }
            }
            TypeFamily::DeviceMesh => {
                let mut axes = Vec::new();
                while matches!(self.kind(), Kind::Number) || !axes.is_empty() && self.is(",") {
                    if !axes.is_empty() {
                        self.type_comma()?;
                    }
                    axes.push(self.u32("an extent")?.0);
                }
                DataType::DeviceMesh { axes: axes.into_iter().collect() }
            }
            TypeFamily::Vec => DataType::Vec { element: self.data_type_at(depth + 1)?.into(), count },
        };
        self.close_angle()?;
        Ok(data_type)
    }

    /// The parameters of a type that does not exist.
    fn unknown_parameters(&mut self, depth: u32) -> Parsed<()> {
        self.bump_marked(Mark::Tight);
        loop {
            match self.kind() {
                Kind::Number => drop(self.number("a number", u64::MAX)?),
                Kind::Word | Kind::Quoted | Kind::String | Kind::Punct | Kind::Bad | Kind::End => {
                    self.data_type_at(depth + 1)?;
                }
            }
            if !self.is(",") {
                return self.close_angle();
            }
            self.type_comma()?;
        }
    }

    fn type_comma(&mut self) -> Parsed<()> {
        self.expect(",").map(|_| ())
    }

    /// The `>` after parameters; a `>>` closes two.
    pub(super) fn close_angle(&mut self) -> Parsed<()> {
        if self.is(">") || self.is(">>") && self.half_used {
            self.half_used = false;
            self.bump_marked(Mark::TightBefore);
            Ok(())
        } else if self.is(">>") {
            self.half_used = true;
            Ok(())
        } else {
            Err(self.unexpected("`>`"))
        }
    }

    /// The scalar that a bitcast names; `None` if it names another type, which is reported.
    #[inline(never)]
    pub(super) fn scalar(&mut self) -> Parsed<Option<Scalar>> {
        let Some(word) = self.word().filter(|word| !self.is_keyword(word)) else { return Err(self.unexpected("a type")) };
        let scalar = Scalar::ALL.into_iter().find(|scalar| scalar.name() == word);
        if scalar.is_none() {
            let names = Scalar::ALL.map(Scalar::name);
            let diagnostic = Diagnostic::new(ErrorCode::E0207, format!("`{word}` is not a type that kernels compute on"))
                .expected(format!("one of {}", names.join(", ")))
                .found(format!("`{word}`"));
            let meant = nearest(word, names);
            self.mistake_here(suggesting(diagnostic, meant, self.span()));
        }
        self.bump();
        Ok(scalar)
    }
}

/// The mistake that a word is no type, or not with or without `parameters`.
fn unknown_type(word: &str, span: Span, parameters: bool) -> Diagnostic {
    let diagnostic = |message: String| Diagnostic::new(ErrorCode::E0207, message).at(Location::Text(span));
    if family(word).is_some() {
        return diagnostic(format!("the type `{word}` needs parameters")).help(format!("write `{word}<…>`"));
    }
    if parameters && DataType::plain_from_word(word).is_some() {
        return diagnostic(format!("the type `{word}` has no parameters"));
    }
    if let Some(meant) = foreign::data_type(word) {
        return diagnostic(format!("there is no type `{word}`")).fix("write", Fix::Replace(Location::Text(span), meant));
    }
    let families = TypeFamily::ALL.iter().filter(|family| **family != TypeFamily::Vec).map(|family| family.word());
    let known = DataType::all_plain().map(|(name, _)| name).chain(families).chain(["vec2", "vec3", "vec4"]);
    suggesting(diagnostic(format!("there is no type `{word}`")), nearest(word, known), span)
}

fn suggesting(diagnostic: Diagnostic, meant: Option<&str>, span: Span) -> Diagnostic {
    match meant {
        Some(meant) => diagnostic.fix("did you mean", Fix::Replace(Location::Text(span), meant.into())),
        None => diagnostic,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{BufferDecl, Program};

    #[test]
    fn every_spelling_is_read_back() {
        let boxed = || Box::new(DataType::F16);
        let mut types: Vec<DataType> = DataType::all_plain().map(|(_, data_type)| data_type.clone()).collect();
        types.extend([
            DataType::Array { element_size: 0 },
            DataType::Array { element_size: usize::MAX },
            DataType::Handle(TypeId(7)),
            DataType::Opaque(TypeId(u32::MAX)),
            DataType::Vec { element: boxed(), count: 0 },
            DataType::Vec { element: boxed(), count: 255 },
            DataType::Vec { element: Box::new(DataType::Vec2U32), count: 2 },
            DataType::TensorShaped { element: boxed(), shape: [].into_iter().collect() },
            DataType::TensorShaped { element: boxed(), shape: [1, 2, 3, 4, 5].into_iter().collect() },
            DataType::SparseCsr { element: Box::new(DataType::SparseCoo { element: boxed() }) },
            DataType::SparseBsr { element: Box::new(DataType::SparseCsr { element: boxed() }), block_rows: 0, block_cols: 9 },
            DataType::DeviceMesh { axes: [].into_iter().collect() },
            DataType::DeviceMesh { axes: [4, 2].into_iter().collect() },
        ]);
        for data_type in types {
            assert_eq!(parse_data_type(&data_type.to_string()), Some(data_type.clone()), "{data_type}");
            assert!(is_type_word(data_type.to_string().split('<').next().unwrap_or_default()), "{data_type}");
        }
    }

    #[test]
    fn types_nest_to_the_limit_and_no_deeper() {
        let nested = |depth: usize| format!("{}u8{}", "csr<".repeat(depth - 1), ">".repeat(depth - 1));
        for depth in [2, 3, 255, 256] {
            let read = parse_data_type(&nested(depth));
            assert_eq!(read.map(|data_type| data_type.to_string()), Some(nested(depth)));
        }
        assert_eq!(parse_data_type(&nested(257)), None);
        assert_eq!(parse_data_type(&nested(1_000_000)), None);
        let deep = (0..256).fold(DataType::U8, |element, _| DataType::SparseCsr { element: element.into() });
        let program = |data_type| Program::wrapped(vec![BufferDecl::read("a", 0, data_type)], [1, 1, 1], vec![]);
        assert!(program(parse_data_type(&nested(256)).expect("at the limit")).too_deep().is_none());
        assert!(program(deep).too_deep().is_some());
    }

    #[test]
    fn what_is_no_type_is_refused() {
        for text in [
            "",
            "u33",
            "vec",
            "vec02<u8>",
            "vec2",
            "vec300<u8>",
            "u32<u8>",
            "csr",
            "csr<>",
            "csr<u8",
            "csr<u8>>",
            "bsr<u8, 1>",
            "tensor<u8,>",
            "mesh<,>",
            "mesh<1,>",
            "mesh<1 2>",
            "array<-1>",
            "handle<4294967296>",
            "u32 u32",
            "`u32`",
            "array<18446744073709551616>",
        ] {
            assert_eq!(parse_data_type(text), None, "{text}");
        }
    }
}
