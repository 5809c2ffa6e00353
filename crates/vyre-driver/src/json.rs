//! What goes wrong, as JSON: every error of every layer is a [`Report`] of diagnostics ([`crate::BackendError::report`] makes one of the
//! driver's), and this is its form for programs. Its form for people is `Display`.

use serde_json::{Value, json};
use vyre_foundation::diagnostic::{Fix, Source, Span};
use vyre_foundation::{Diagnostic, Report};

/// `{"errors": […], "more_errors": n}`: each error with code, message and place, and how many there are beside them.
#[must_use]
pub fn report(report: &Report) -> Value {
    let errors: Vec<Value> = report.diagnostics.iter().map(|diagnostic| one(report, diagnostic)).collect();
    json!({ "errors": errors, "more_errors": report.more })
}

/// One mistake; `fix` is the text to put at a place to mend it.
#[must_use]
pub fn one(report: &Report, diagnostic: &Diagnostic) -> Value {
    let mut object = json!({
        "code": diagnostic.code.name(),
        "severity": if diagnostic.code.is_warning() { "warning" } else { "error" },
        "message": diagnostic.message,
        "expected": diagnostic.expected,
        "found": diagnostic.found,
        "help": diagnostic.help,
    });
    if let (Some(source), Some(location)) = (&report.source, diagnostic.location) {
        object["file"] = json!(source.name);
        place(&mut object, source, source.span(location));
    }
    if let (Some(source), Some(fix)) = (&report.source, &diagnostic.fix) {
        let (span, text) = match fix {
            Fix::Replace(location, new) => (source.span(*location), new.clone()),
            Fix::Wrap(location, before, after) => {
                let span = source.span(*location);
                let old = source.text.get(span.start as usize..span.end as usize).unwrap_or_default();
                (span, format!("{before}{old}{after}"))
            }
            Fix::InsertAfter(location, new) => {
                let end = source.span(*location).end;
                (Span { start: end, end }, new.clone())
            }
        };
        let mut change = json!({ "text": text });
        place(&mut change, source, span);
        object["fix"] = change;
    }
    object
}

/// Lines and columns of a span, from 1; the end is one past the last character.
fn place(object: &mut Value, source: &Source, span: Span) {
    let ((line, column), (end_line, end_column)) = (source.line_column(span.start), source.line_column(span.end));
    object["line"] = json!(line);
    object["column"] = json!(column);
    object["end_line"] = json!(end_line);
    object["end_column"] = json!(end_column);
}
