//! The text form: parser, printer, formatter, drawn errors.
//!
//! `lexer` → `parser` (with `declarations`, `statements`, `expressions`, `types`) → IR and what `ast` has beside it → `lower` (with
//! `infer`) → IR, and back by `printer`. `format` lays out the tokens of a text again; `render` draws mistakes into it; `classify` is for
//! whoever colours it.

mod ast;
pub mod classify;
mod constructs;
mod declarations;
mod expressions;
pub(crate) mod foreign;
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
pub mod suggest;
#[cfg(test)]
mod tests;
mod types;
mod value;

use crate::diagnostic::{Diagnostic, Mistakes, Report, Source, TreeSpans};
use crate::ir::{Expr, Node, Program};
use crate::validate::mistakes_beside;
use lower::Lowered;
use parser::{Purpose, Read};
use std::fmt;
use std::sync::Arc;
use vyre_spec::ErrorCode;

pub use format::format;
pub use printer::print;
pub use render::{render, summary};
pub use types::parse_data_type;
pub use value::{format_value, parse_value};

/// Reads a program. `name` is what the text is called in messages, usually its path. The program may still be invalid: see
/// [`Program::validated`]. If parts of the text cannot be read, the report has what the validator finds in the others, too.
pub fn parse(name: &str, text: &str) -> Result<Program, Report> {
    if is_too_large(text.len()) {
        return Err(too_large(name));
    }
    let source = |spans| Arc::new(Source::new(name, text.into(), spans));
    let (lowered, mut mistakes) = read(text);
    let Some(Lowered { parts, spans, poison, misfits }) = lowered else {
        return Err(Report::in_source(source(Default::default()), mistakes));
    };
    let source = source(spans);
    let program = Program::with_source(parts, Some(source.clone()));
    if mistakes.is_empty() && misfits.is_empty() {
        return Ok(program);
    }
    let beside = mistakes_beside(&program, &poison);
    // The text is read again for the places of these mistakes.
    drop(program);
    mistakes.append(misfits.mistakes(&source));
    mistakes.append(beside);
    Err(Report::in_source(source, mistakes))
}

/// A text that was read and lowered, and the mistakes that the parser found. `None` if it cannot be seen what is inside of what; what
/// could not be read otherwise is poisoned or left out.
fn read(text: &str) -> (Option<Lowered>, Mistakes) {
    let Read { program, balanced, mistakes, tokens, comments, .. } = parser::read(text, Purpose::Program);
    // Only the formatter needs these.
    drop((tokens, comments));
    (program.filter(|_| balanced).map(lower::lower), mistakes)
}

/// Where the statements and expressions of a program stand in its text.
pub(crate) fn tree_spans(text: &str) -> TreeSpans {
    parser::read(text, Purpose::Spans).spans
}

/// Spans are pairs of `u32`.
fn is_too_large(bytes: usize) -> bool {
    bytes >= u32::MAX as usize
}

fn too_large(name: &str) -> Report {
    Report::single(Diagnostic::new(ErrorCode::E0112, format!("{name} is too large to be a program")).expected("less than 4 GiB"))
}

/// A piece of a program in a sentence: in backticks, unless it has some of its own.
pub(crate) fn code(text: &str) -> String {
    if text.contains('`') { text.into() } else { format!("`{text}`") }
}

/// A program as it is spelled in a text.
pub(crate) fn write_program(f: &mut fmt::Formatter<'_>, program: &Program) -> fmt::Result {
    printer::write_program(f, program, None)
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
