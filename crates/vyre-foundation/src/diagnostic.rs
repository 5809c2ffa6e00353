//! Mistakes as data: a code, what was expected and found, where, and what to do about it.
//!
//! Whoever finds a mistake says *where* in terms of the program ([`Location`]); the [`Source`] turns that into a span of text. A
//! program that was built by code has no text, so its [`Report`] brings the printed program along: every mistake can be drawn.
//! Drawing is in [`crate::text`].
//!
//! Nobody reads more than [`MAX_DIAGNOSTICS`] mistakes in one go. So many are worked out, with suggestions and other places that
//! matter; the rest are counted ([`Mistakes`]), which keeps time and memory in proportion to the program.

use crate::ir::{Axis, Name, NodeId, Program};
use std::collections::{BTreeSet, HashSet};
use std::fmt;
use std::sync::{Arc, OnceLock};
use vyre_spec::ErrorCode;

/// Bytes `start..end` of a text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Span {
    /// The first byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// From the start of this one to the end of the other.
    #[must_use]
    pub fn to(self, end: Span) -> Span {
        Span { start: self.start, end: end.end.max(self.start) }
    }
}

/// A part of a buffer's declaration.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum BufferPart {
    /// All of it.
    Whole,
    /// The name.
    Name,
    /// The element type.
    Element,
    /// The count.
    Count,
    /// The binding.
    Binding,
}

/// Where in a program a mistake is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Location {
    /// These bytes of the text.
    Text(Span),
    /// The program as a whole: drawn at its name.
    Program,
    /// The workgroup size.
    Workgroup,
    /// The workgroup size along one axis; all of it if it says nothing about that axis.
    WorkgroupAxis(Axis),
    /// The declared subgroup size.
    Subgroup,
    /// The n-th constant.
    Const(u32),
    /// The n-th buffer, in the order of declaration.
    Buffer(u32, BufferPart),
    /// A statement or an expression.
    Tree(NodeId),
    /// The word that says what a statement or an expression is: its operator, its function, the name it reads or declares.
    Head(NodeId),
    /// The variable that the result of an atomic or subgroup operation is put into.
    Result(NodeId),
    /// The op of an atomic or subgroup operation.
    Operation(NodeId),
}

/// A change of the text that would mend the mistake.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fix {
    /// Write this instead.
    Replace(Location, String),
    /// Write the first before it and the second after it.
    Wrap(Location, String, String),
    /// Write this right after it.
    InsertAfter(Location, String),
}

/// One mistake.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// The kind of mistake.
    pub code: ErrorCode,
    /// What is wrong, as one sentence that names the things involved.
    pub message: String,
    /// Where; `None` for mistakes outside the program, such as a missing input.
    pub location: Option<Location>,
    /// What would have been right here.
    pub expected: Option<String>,
    /// What is there instead.
    pub found: Option<String>,
    /// Other places that matter, each with what it has to do with the mistake.
    pub related: Vec<(Location, String)>,
    /// What to do.
    pub help: Option<String>,
    /// The change that would do it.
    pub fix: Option<Fix>,
}

impl Diagnostic {
    /// A mistake without a place.
    #[must_use]
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Diagnostic {
            code,
            message: message.into(),
            location: None,
            expected: None,
            found: None,
            related: Vec::new(),
            help: None,
            fix: None,
        }
    }

    /// The same mistake at this place.
    #[must_use]
    pub fn at(mut self, location: Location) -> Self {
        self.location = Some(location);
        self
    }

    /// The same mistake, with what would have been right.
    #[must_use]
    pub fn expected(mut self, expected: impl fmt::Display) -> Self {
        self.expected = Some(expected.to_string());
        self
    }

    /// The same mistake, with what is there instead.
    #[must_use]
    pub fn found(mut self, found: impl fmt::Display) -> Self {
        self.found = Some(found.to_string());
        self
    }

    /// The same mistake, with another place that matters.
    #[must_use]
    pub fn related(mut self, location: Location, what: impl Into<String>) -> Self {
        self.related.push((location, what.into()));
        self
    }

    /// The same mistake, with advice.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The same mistake, with advice and the change that follows it.
    #[must_use]
    pub fn fix(mut self, help: impl Into<String>, fix: Fix) -> Self {
        self.help = Some(help.into());
        self.fix = Some(fix);
        self
    }
}

/// Where the declarations of a program stand in a text.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Spans {
    /// The program's name.
    pub program: Span,
    /// The workgroup size.
    pub workgroup: Span,
    /// Its parts along x, y and z.
    pub workgroup_axes: [Span; 3],
    /// The declared subgroup size.
    pub subgroup: Span,
    /// The constants.
    pub consts: Vec<Span>,
    /// The buffers: whole, name, element, count, binding.
    pub buffers: Vec<[Span; 5]>,
}

/// Where its statements and expressions stand.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TreeSpans {
    /// All of them by place: whole and head.
    pub tree: Vec<(Span, Span)>,
    /// The variables that results of operations are put into, by the places of the operations, in order.
    pub results: Vec<(NodeId, Span)>,
    /// The ops of atomic operations, by their places, in order; those of others are their heads.
    pub operations: Vec<(NodeId, Span)>,
}

/// What follows from a text and is found when first asked for. So all are equal.
#[derive(Clone, Debug)]
struct Found<T>(OnceLock<T>);

impl<T> Default for Found<T> {
    fn default() -> Self {
        Found(OnceLock::new())
    }
}

impl<T> PartialEq for Found<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<T> Eq for Found<T> {}

/// Parts of a program that are poisoned: a mistake was reported there, and nothing more is said about it. Of a poisoned expression
/// nothing is known, but those below it are as they were written. A poisoned name may be declared by something that could not be
/// read: that it is not known says nothing.
#[derive(Debug, Default)]
pub(crate) struct Poison {
    parts: BTreeSet<Location>,
    names: HashSet<Name>,
}

impl Poison {
    /// Notes a part.
    pub(crate) fn add(&mut self, location: Location) {
        self.parts.insert(location);
    }

    /// Whether a mistake was reported here.
    pub(crate) fn has(&self, location: Location) -> bool {
        self.parts.contains(&location)
    }

    /// Forgets what was noted about a declaration that was not read in the end: its number goes to the next one.
    pub(crate) fn forget(&mut self, location: Location) {
        self.parts.remove(&location);
    }

    /// Notes a name.
    pub(crate) fn add_name(&mut self, name: Name) {
        self.names.insert(name);
    }

    /// Whether what the name stands for may be declared where nothing could be read.
    pub(crate) fn has_name(&self, name: &Name) -> bool {
        self.names.contains(name)
    }
}

/// So many mistakes are worked out; the rest are counted.
pub const MAX_DIAGNOSTICS: usize = 100;

/// Mistakes as they are found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Mistakes {
    found: Vec<Diagnostic>,
    more: usize,
}

impl Mistakes {
    /// Adds a mistake, or counts it if there are enough.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.push_with(|| diagnostic);
    }

    /// The same for one that is only worked out if it will be shown.
    pub fn push_with(&mut self, diagnostic: impl FnOnce() -> Diagnostic) {
        if self.is_full() {
            self.more += 1;
        } else {
            self.found.push(diagnostic());
        }
    }

    /// Whether further mistakes are only counted, so that a suggestion for one would be work for nothing.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.found.len() >= MAX_DIAGNOSTICS
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// How many there are, to go back to.
    pub(crate) fn count(&self) -> usize {
        self.found.len() + self.more
    }

    /// Forgets all but the first so many.
    pub(crate) fn truncate(&mut self, count: usize) {
        self.more = count.saturating_sub(self.found.len());
        self.found.truncate(count);
    }

    /// Counts so many more, which are not worked out.
    pub(crate) fn count_more(&mut self, more: usize) {
        self.more += more;
    }

    /// Adds what others found. Each has its own limit, so that none hides what stands before it in the text.
    pub fn append(&mut self, mut other: Mistakes) {
        self.found.append(&mut other.found);
        self.more += other.more;
    }

    /// Those that are worked out.
    #[cfg(test)]
    pub(crate) fn found(&self) -> &[Diagnostic] {
        &self.found
    }
}

impl Extend<Diagnostic> for Mistakes {
    fn extend<I: IntoIterator<Item = Diagnostic>>(&mut self, diagnostics: I) {
        diagnostics.into_iter().for_each(|diagnostic| self.push(diagnostic));
    }
}

impl From<Vec<Diagnostic>> for Mistakes {
    fn from(found: Vec<Diagnostic>) -> Self {
        Mistakes { found, more: 0 }
    }
}

impl From<Report> for Mistakes {
    fn from(report: Report) -> Self {
        Mistakes { found: report.diagnostics, more: report.more }
    }
}

/// `one of a, b, c`, for what was expected: no more names than a person will read.
#[must_use]
pub fn one_of<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    const LISTED: usize = 24;
    let mut names = names.into_iter();
    let listed: Vec<&str> = names.by_ref().take(LISTED).collect();
    match names.count() {
        0 => format!("one of {}", listed.join(", ")),
        more => format!("one of {} and {more} more", listed.join(", ")),
    }
}

/// A text and where in it the parts of its program are.
///
/// Where statements and expressions are is asked for after a mistake only, and would take more memory than many of them. So the text is
/// read again for it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Source {
    /// What the text is called in messages; usually a path.
    pub name: String,
    /// The text, shorter than 4 GiB.
    pub text: String,
    /// Where the declarations are.
    pub spans: Spans,
    tree: Found<TreeSpans>,
    lines: Found<Vec<u32>>,
}

impl Source {
    /// A text with a program whose declarations are there.
    pub(crate) fn new(name: &str, text: String, spans: Spans) -> Source {
        Source { name: name.into(), text, spans, ..Source::default() }
    }

    /// The same, when it is known where the statements and expressions are.
    pub(crate) fn with_tree(self, tree: TreeSpans) -> Source {
        Source { tree: Found(tree.into()), ..self }
    }

    /// Where the statements and expressions are.
    #[must_use]
    pub fn tree(&self) -> &TreeSpans {
        self.tree.0.get_or_init(|| crate::text::tree_spans(&self.text))
    }

    /// Where each line begins.
    pub(crate) fn lines(&self) -> &[u32] {
        self.lines.0.get_or_init(|| {
            let ends = self.text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
            std::iter::once(0).chain(ends.map(|(end, _)| end as u32 + 1)).collect()
        })
    }

    /// The number of the line that a byte is in, from 0.
    pub(crate) fn line_of(&self, byte: u32) -> usize {
        self.lines().partition_point(|start| *start <= byte) - 1
    }

    /// The text that `location` stands for; the program's name when there is none.
    #[must_use]
    pub fn span(&self, location: Location) -> Span {
        let spans = &self.spans;
        let found = match location {
            Location::Text(span) => Some(span),
            Location::Program => Some(spans.program),
            Location::Workgroup => Some(spans.workgroup),
            Location::WorkgroupAxis(axis) => Some(spans.workgroup_axes[axis as usize]),
            Location::Subgroup => Some(spans.subgroup),
            Location::Const(n) => spans.consts.get(n as usize).copied(),
            Location::Buffer(n, part) => spans.buffers.get(n as usize).map(|spans| spans[part as usize]),
            Location::Tree(NodeId(n)) => self.tree().tree.get(n as usize).map(|spans| spans.0),
            Location::Head(NodeId(n)) => self.tree().tree.get(n as usize).map(|spans| spans.1),
            Location::Result(place) => {
                let results = &self.tree().results;
                results.binary_search_by_key(&place, |(place, _)| *place).ok().map(|n| results[n].1)
            }
            Location::Operation(place) => {
                let operations = &self.tree().operations;
                let found = operations.binary_search_by_key(&place, |(place, _)| *place);
                found.map_or_else(|_| Some(self.span(Location::Head(place))), |n| Some(operations[n].1))
            }
        };
        found.unwrap_or(spans.program)
    }

    /// Line and column of a byte, both from 1; columns count characters.
    #[must_use]
    pub fn line_column(&self, byte: u32) -> (usize, usize) {
        let end = self.text.floor_char_boundary(byte as usize);
        let line = self.line_of(end as u32);
        (line + 1, self.text[self.lines()[line] as usize..end].chars().count() + 1)
    }
}

/// Mistakes together with the text they are in: the error type of everything that reads or checks programs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// The text, if the mistakes are in one.
    pub source: Option<Arc<Source>>,
    /// The mistakes, in the order of the text; never empty, and at most [`MAX_DIAGNOSTICS`].
    pub diagnostics: Vec<Diagnostic>,
    /// How many more there are.
    pub more: usize,
}

impl Report {
    /// Mistakes in a program. One that was built by code is printed, so that they can be drawn.
    #[must_use]
    pub fn about(program: &Program, mistakes: impl Into<Mistakes>) -> Report {
        let source = program.source().cloned().unwrap_or_else(|| Arc::new(crate::text::print(program)));
        Report::in_source(source, mistakes.into())
    }

    /// Mistakes in a text.
    pub(crate) fn in_source(source: Arc<Source>, mistakes: Mistakes) -> Report {
        let Mistakes { found: mut diagnostics, mut more } = mistakes;
        diagnostics.sort_by_key(|diagnostic| diagnostic.location.map(|location| source.span(location).start));
        more += diagnostics.len().saturating_sub(MAX_DIAGNOSTICS);
        diagnostics.truncate(MAX_DIAGNOSTICS);
        Report { source: Some(source), diagnostics, more }
    }

    /// One mistake that is in no text.
    #[must_use]
    pub fn single(diagnostic: Diagnostic) -> Report {
        Report { source: None, diagnostics: vec![diagnostic], more: 0 }
    }

    /// The codes, in order.
    pub fn codes(&self) -> impl Iterator<Item = ErrorCode> {
        self.diagnostics.iter().map(|diagnostic| diagnostic.code)
    }
}

/// The mistakes drawn into the text, without colour.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::text::render(self, false))
    }
}

impl std::error::Error for Report {}

/// The text of a file; bytes that are not UTF-8 are a mistake with a place.
pub fn utf8<'a>(name: &str, bytes: &'a [u8]) -> Result<&'a str, Report> {
    std::str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to() as u32;
        // Everything up to the bad byte is kept as it is, so the place is right in the drawn text too.
        let source = Source { name: name.into(), text: String::from_utf8_lossy(bytes).into_owned(), ..Source::default() };
        let diagnostic = Diagnostic::new(ErrorCode::E0111, format!("byte {at} of the file is not UTF-8"))
            .at(Location::Text(Span { start: at, end: at + 1 }))
            .expected("UTF-8 text")
            .found(format!("byte 0x{:02x}", bytes[at as usize]));
        Report { source: Some(Arc::new(source)), diagnostics: vec![diagnostic], more: 0 }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_are_those_of_a_count_from_the_beginning() {
        for text in ["", "a", "\n", "a\n", "é\n\u{1F600}x\r\n\n  y", "\n\n\n"] {
            let source = Source { text: text.into(), ..Source::default() };
            for byte in 0..=text.len() + 2 {
                let before = &text[..text.floor_char_boundary(byte)];
                let line = before.rsplit('\n').next().unwrap_or_default();
                let expected = (before.matches('\n').count() + 1, line.chars().count() + 1);
                assert_eq!(source.line_column(byte as u32), expected, "{text:?} {byte}");
            }
        }
    }

    #[test]
    fn mistakes_past_the_limit_are_counted() {
        let mistake = || Diagnostic::new(ErrorCode::E0201, "unknown");
        let mut mistakes = Mistakes::default();
        mistakes.extend(vec![mistake(); 120]);
        assert_eq!((mistakes.found().len(), mistakes.count()), (100, 120));
        for (count, found) in [(110, 100), (100, 100), (40, 40)] {
            mistakes.truncate(count);
            assert_eq!((mistakes.found().len(), mistakes.count()), (found, count));
        }
        mistakes.push(mistake());
        assert_eq!(mistakes.count(), 41);
        let report = Report::about(&Program::default(), vec![mistake(); 250]);
        assert_eq!((report.diagnostics.len(), report.more), (100, 150));
        assert_eq!(Mistakes::from(report).count(), 250);
        // Whoever found them, those that come first in the text are shown.
        let at = |start| mistake().at(Location::Text(Span { start, end: start }));
        let mut mistakes: Mistakes = (100..300).map(at).collect::<Vec<_>>().into();
        mistakes.append((0..50).map(at).collect::<Vec<_>>().into());
        let report = Report::about(&Program::default(), mistakes);
        let places = report.diagnostics.iter().map(|diagnostic| diagnostic.location);
        assert!(places.eq((0..50).chain(100..150).map(|start| at(start).location)));
        assert_eq!(report.more, 150);
    }
}
