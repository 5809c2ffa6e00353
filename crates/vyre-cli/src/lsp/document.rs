//! A text that is open in an editor: its positions, its edits, and what is wrong with it.
//!
//! Editors count lines, and in a line the 16-bit units of UTF-16; texts here are UTF-8. A position past the end of its line means the end
//! of the line, as the protocol has it, and one inside a pair of units means the place before it.

use serde_json::{Value, json};
use vyre::Report;
use vyre::diagnostic::{Fix, Source, Span};
use vyre::ir::Program;

/// A line and a place in it, both from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Position {
    pub line: u32,
    /// In units of UTF-16.
    pub character: u32,
}

impl Position {
    /// As the protocol writes it; what is missing is 0.
    pub fn from_json(value: &Value) -> Position {
        let number = |name: &str| value[name].as_u64().map_or(0, |number| u32::try_from(number).unwrap_or(u32::MAX));
        Position { line: number("line"), character: number("character") }
    }

    fn json(self) -> Value {
        json!({ "line": self.line, "character": self.character })
    }
}

/// A text with the places of its lines.
pub struct Text {
    pub text: String,
    /// Where lines begin.
    lines: Vec<usize>,
}

impl Text {
    pub fn new(text: String) -> Text {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        let lines = std::iter::once(0).chain(ends).collect();
        Text { text, lines }
    }

    /// The byte at a position.
    pub fn offset(&self, position: Position) -> usize {
        let Some(start) = self.lines.get(position.line as usize).copied() else { return self.text.len() };
        let next = self.lines.get(position.line as usize + 1).copied().unwrap_or(self.text.len());
        let line = self.text[start..next].trim_end_matches(['\n', '\r']);
        let mut units = 0;
        for (at, c) in line.char_indices() {
            units += c.len_utf16() as u32;
            if units > position.character {
                return start + at;
            }
        }
        start + line.len()
    }

    /// The position of a byte.
    pub fn position(&self, offset: usize) -> Position {
        let offset = self.text.floor_char_boundary(offset);
        let line = self.lines.partition_point(|start| *start <= offset) - 1;
        let before = &self.text[self.lines[line]..offset];
        Position { line: line as u32, character: before.chars().map(|c| c.len_utf16() as u32).sum() }
    }

    pub fn range(&self, span: Span) -> Value {
        let (start, end) = (self.position(span.start as usize), self.position(span.end.max(span.start) as usize));
        json!({ "start": start.json(), "end": end.json() })
    }

    /// Puts a text in the place of a range, or of everything.
    pub fn edit(&mut self, change: &Value) {
        let new = change["text"].as_str().unwrap_or_default();
        let range = &change["range"];
        if range.is_null() {
            *self = Text::new(new.into());
            return;
        }
        let (start, end) = (self.offset(Position::from_json(&range["start"])), self.offset(Position::from_json(&range["end"])));
        let mut text = std::mem::take(&mut self.text);
        text.replace_range(start.min(end)..end.max(start), new);
        *self = Text::new(text);
    }
}

/// An open text and what is known of it.
pub struct Document {
    pub text: Text,
    pub version: Value,
    /// Worked out when it is first asked for after an edit.
    read: Option<Read>,
}

/// What came of reading a text.
pub struct Read {
    /// The program, if it is valid.
    pub program: Option<Program>,
    /// What is to be said about the text.
    pub reports: Vec<Report>,
}

impl Document {
    pub fn new(text: String, version: Value) -> Document {
        Document { text: Text::new(text), version, read: None }
    }

    pub fn edit(&mut self, change: &Value) {
        self.text.edit(change);
        self.read = None;
    }

    pub fn read(&mut self, name: &str) -> &Read {
        self.read.get_or_insert_with(|| {
            let program = match vyre::text::parse(name, &self.text.text) {
                Ok(program) => program,
                Err(report) => return Read { program: None, reports: vec![report] },
            };
            let mut reports = Vec::new();
            match program.validated() {
                Err(report) => return Read { program: None, reports: vec![report.clone()] },
                Ok(validated) => {
                    if let vyre::analysis::determinism::Determinism::Unproven(reason) = validated.determinism() {
                        reports.push(Report::about(&program, vec![reason.diagnostic()]));
                    }
                }
            }
            Read { program: Some(program), reports }
        })
    }

    /// The diagnostics as the protocol has them.
    pub fn diagnostics(&mut self, uri: &str) -> Vec<Value> {
        self.read(uri);
        let (text, read) = (&self.text, self.read.as_ref());
        let reports = read.map_or(&[][..], |read| &read.reports);
        let mut all = Vec::new();
        for report in reports {
            for mistake in &report.diagnostics {
                let span =
                    |location| report.source.as_deref().map_or_else(Span::default, |source: &Source| source.span(location));
                let label = match (&mistake.expected, &mistake.found) {
                    (Some(expected), Some(found)) => format!("expected {expected}, found {found}"),
                    (Some(expected), None) => format!("expected {expected}"),
                    (None, _) => String::new(),
                };
                let label = Some(label).filter(|label| !label.is_empty() && !mistake.message.contains(label.as_str()));
                let lines = [Some(mistake.message.clone()), label, mistake.help.as_ref().map(|help| format!("help: {help}"))];
                let related: Vec<Value> = mistake
                    .related
                    .iter()
                    .map(|(location, what)| json!({ "location": { "uri": uri, "range": text.range(span(*location)) }, "message": what }))
                    .collect();
                all.push(json!({
                    "range": text.range(mistake.location.map_or_else(Span::default, span)),
                    // 1 is an error, 3 information: what is not proven may be right.
                    "severity": if mistake.code.is_warning() { 3 } else { 1 },
                    "code": mistake.code.name(),
                    "source": "vyre",
                    "message": lines.into_iter().flatten().collect::<Vec<_>>().join("\n"),
                    "relatedInformation": related,
                }));
            }
        }
        all
    }

    /// Changes that mend mistakes at a range of bytes.
    pub fn fixes(&mut self, uri: &str, from: usize, to: usize) -> Vec<Value> {
        let diagnostics = self.diagnostics(uri);
        let (text, read) = (&self.text, self.read.as_ref());
        let reports = read.map_or(&[][..], |read| &read.reports);
        let mistakes = reports.iter().flat_map(|report| report.diagnostics.iter().map(move |mistake| (report, mistake)));
        let mut actions = Vec::new();
        for ((report, mistake), diagnostic) in mistakes.zip(diagnostics) {
            let (Some(source), Some(fix), Some(location)) = (&report.source, &mistake.fix, mistake.location) else { continue };
            let at = source.span(location);
            if (at.start as usize) > to || (at.end as usize) < from {
                continue;
            }
            let edit = |span: Span, new: &str| json!({ "range": text.range(span), "newText": new });
            let edits = match fix {
                Fix::Replace(location, new) => vec![edit(source.span(*location), new)],
                Fix::Wrap(location, before, after) => {
                    let span = source.span(*location);
                    vec![
                        edit(Span { start: span.start, end: span.start }, before),
                        edit(Span { start: span.end, end: span.end }, after),
                    ]
                }
                Fix::InsertAfter(location, new) => {
                    let end = source.span(*location).end;
                    vec![edit(Span { start: end, end }, new)]
                }
            };
            actions.push(json!({
                "title": mistake.help.as_deref().unwrap_or(&mistake.message),
                "kind": "quickfix",
                "diagnostics": [diagnostic],
                "isPreferred": true,
                "edit": { "changes": { uri: edits } },
            }));
        }
        actions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_in_units_of_utf_16() {
        let text = Text::new("aé🙂b\r\nx\n".into());
        for (offset, line, character) in
            [(0, 0, 0), (1, 0, 1), (3, 0, 2), (7, 0, 4), (8, 0, 5), (10, 1, 0), (11, 1, 1), (12, 2, 0)]
        {
            let position = Position { line, character };
            assert_eq!(text.position(offset), position, "{offset}");
            assert_eq!(text.offset(position), offset, "{position:?}");
        }
        // Inside the pair of the smiley, past the end of a line, past the last line.
        assert_eq!(text.offset(Position { line: 0, character: 3 }), 3);
        assert_eq!(text.offset(Position { line: 0, character: 99 }), 8);
        assert_eq!(text.offset(Position { line: 9, character: 0 }), 12);
        // Inside a character.
        assert_eq!(text.position(5), Position { line: 0, character: 2 });
    }

    #[test]
    fn edits_replace_what_they_say() {
        let mut text = Text::new("// 🙂 é\nlet a = 1\n".into());
        let at = |line: u32, character: u32| json!({ "line": line, "character": character });
        text.edit(&json!({ "range": { "start": at(0, 6), "end": at(0, 7) }, "text": "ü" }));
        assert_eq!(text.text, "// 🙂 ü\nlet a = 1\n");
        text.edit(&json!({ "range": { "start": at(1, 8), "end": at(9, 9) }, "text": "2" }));
        assert_eq!(text.text, "// 🙂 ü\nlet a = 2");
        text.edit(&json!({ "text": "" }));
        assert_eq!(text.text, "");
        // Nonsense of an editor does no harm.
        text.edit(&json!({ "range": { "start": at(5, 5), "end": "x" }, "text": "y" }));
        text.edit(&json!({ "range": { "start": {}, "end": {} } }));
        assert_eq!(text.text, "y");
    }
}
