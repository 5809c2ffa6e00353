//! What commands say with `--json`: one object per line of standard output.

use serde_json::{Value, json};
use vyre::diagnostic::{Fix, Source, Span};
use vyre::ir::{DataType, FloatMode, Scalar, ValueType};
use vyre::{Diagnostic, Report};

/// `{"errors": […]}`, each with code, message and place.
pub fn report(report: &Report) -> Value {
    json!({ "errors": report.diagnostics.iter().map(|diagnostic| one(report, diagnostic)).collect::<Vec<_>>() })
}

/// One mistake; `fix` is the text to put at a place to mend it.
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

/// The elements of a buffer; floats that JSON has no number for are strings.
pub fn elements(element: &DataType, bytes: &[u8]) -> Vec<Value> {
    let scalar = match element.value_type() {
        Some(ValueType::Scalar(scalar) | ValueType::Vector(scalar, _)) => scalar,
        None => return Vec::new(),
    };
    let count = vyre::scalar::memory::element_count(element, bytes.len() as u64).unwrap_or(0);
    let components = match element.value_type() {
        Some(ValueType::Vector(_, count)) => usize::from(count),
        Some(ValueType::Scalar(_)) | None => 1,
    };
    let mut values = Vec::new();
    for i in 0..count {
        let loaded = vyre::scalar::memory::load(element, FloatMode::Ieee, bytes, i as u32);
        values.extend(loaded.0[..components].iter().map(|bits| value(scalar, *bits)));
    }
    values
}

fn value(scalar: Scalar, bits: u64) -> Value {
    let number = match scalar {
        Scalar::Bool => return json!(bits != 0),
        Scalar::U32 | Scalar::U64 => return json!(bits),
        Scalar::I32 => return json!(bits as u32 as i32),
        Scalar::I64 => return json!(bits as i64),
        Scalar::F32 => f64::from(f32::from_bits(bits as u32)),
        Scalar::F64 => f64::from_bits(bits),
    };
    serde_json::Number::from_f64(number).map_or_else(|| json!(vyre::text::format_value(scalar, bits)), Value::Number)
}
