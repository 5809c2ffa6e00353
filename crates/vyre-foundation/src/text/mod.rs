//! The text form: parser, printer, formatter, drawn errors.
//!
//! `lexer` → `parser` (with `declarations`, `statements`, `expressions`, `types`) → `ast` → `lower` (with `infer`) → IR, and back
//! by `printer`. `format` lays out the tokens of a text again; `render` draws mistakes into it.

mod ast;
mod declarations;
mod expressions;
mod format;
mod infer;
mod lexer;
mod lower;
mod names;
mod number;
mod parser;
mod printer;
mod render;
mod statements;
pub(crate) mod suggest;
#[cfg(test)]
mod tests;
mod types;
mod value;

use crate::diagnostic::{Diagnostic, Report, Source};
use crate::ir::{Expr, Node, Program};
use std::fmt;
use std::sync::Arc;
use vyre_spec::ErrorCode;

pub use format::format;
pub use printer::print;
pub use render::render;
pub use types::parse_data_type;
pub use value::{format_value, parse_value};

/// Reads a program. `name` is what the text is called in messages, usually its path. The program may still be invalid: see
/// [`Program::validated`].
pub fn parse(name: &str, text: &str) -> Result<Program, Report> {
    if is_too_large(text.len()) {
        return Err(too_large(name));
    }
    let reading = parser::read(text);
    let lowered = match reading.program {
        Some(program) if reading.mistakes.is_empty() => lower::lower(program, text),
        _ => Err(reading.mistakes),
    };
    let source = |spans| Arc::new(Source { name: name.into(), text: text.into(), spans });
    match lowered {
        Ok((parts, spans)) => Ok(Program::with_source(parts, Some(source(spans)))),
        Err(diagnostics) => Err(Report { source: Some(source(Default::default())), diagnostics }),
    }
}

/// Spans are pairs of `u32`.
fn is_too_large(bytes: usize) -> bool {
    bytes >= u32::MAX as usize
}

fn too_large(name: &str) -> Report {
    Report::single(Diagnostic::new(ErrorCode::E0112, format!("{name} is too large to be a program")).expected("less than 4 GiB"))
}

/// A name as it is spelled in a text.
pub(crate) fn write_name(f: &mut fmt::Formatter<'_>, name: &str) -> fmt::Result {
    names::write_name(f, name)
}

/// An expression as it is spelled in a text.
pub(crate) fn write_expr(f: &mut fmt::Formatter<'_>, expr: &Expr) -> fmt::Result {
    printer::write_expr(f, expr)
}

/// A statement as it is spelled in a text.
pub(crate) fn write_node(f: &mut fmt::Formatter<'_>, node: &Node) -> fmt::Result {
    printer::write_node(f, node)
}
