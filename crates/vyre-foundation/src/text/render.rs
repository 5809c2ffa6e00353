//! Mistakes drawn into the text they are in.
//!
//! Any span can be drawn: it is moved into the text and to the borders of characters, and shown on its first line only, so that a
//! statement with a hundred lines inside is pointed at, not repeated. Of lines that nobody can have written by hand the part around
//! the mistake is shown.

use super::code;
use crate::diagnostic::{Diagnostic, Fix, MAX_DIAGNOSTICS, Report, Source, Span};
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet, normalize_untrusted_str};

/// Longer lines are cut, to what is around the mistake.
const MAX_LINE: usize = 400;

/// Bytes of a cut line before and after the beginning of what is marked.
const AROUND: (usize, usize) = (80, 240);

/// Longer messages are cut: they contain a name that is one.
const MAX_MESSAGE: usize = 1000;

/// All mistakes of a report, each with its text around it, a blank line between them, no line end after the last.
#[must_use]
pub fn render(report: &Report, color: bool) -> String {
    let renderer = if color { Renderer::styled() } else { Renderer::plain() };
    let source = report.source.as_deref();
    let shown = report.diagnostics.iter().take(MAX_DIAGNOSTICS);
    let mut drawn: Vec<String> = shown.map(|diagnostic| draw(&renderer, source, diagnostic)).collect();
    let more = report.diagnostics.len() - drawn.len() + report.more;
    if more > 0 {
        drawn.push(format!("… and {more} more"));
    }
    drawn.join("\n\n")
}

/// One mistake without its text, for those who show the place themselves: the message with its code, what was expected, what stands
/// elsewhere, and the advice, a line each.
#[must_use]
pub fn summary(source: Option<&Source>, diagnostic: &Diagnostic) -> String {
    let mut lines = vec![format!("{} [{}]", cut(&diagnostic.message), diagnostic.code.name())];
    lines.push(label(diagnostic));
    let related = diagnostic.related.iter().zip(std::iter::repeat(source)).filter_map(|((location, what), source)| {
        let source = source?;
        let (start, end) = inside(&source.text, source.span(*location));
        let first = source.text[start..end].lines().next().unwrap_or_default();
        Some(format!("{}: {}", code(&cut(first)), cut(what)))
    });
    lines.extend(related.take(MAX_DIAGNOSTICS));
    lines.extend(help(source, diagnostic).map(|help| format!("help: {help}")));
    lines.retain(|line| !line.is_empty());
    lines.join("\n")
}

fn draw(renderer: &Renderer, source: Option<&Source>, diagnostic: &Diagnostic) -> String {
    let level = if diagnostic.code.is_warning() { Level::WARNING } else { Level::ERROR };
    let title = level.primary_title(cut(&diagnostic.message)).id(diagnostic.code.name());
    let label = label(diagnostic);
    let help = help(source, diagnostic).map(|help| normalize_untrusted_str(&help));
    let Some((source, location)) = source.zip(diagnostic.location) else {
        // Without a snippet to stand below, each is a line of its own.
        let note = Some(label).filter(|label| !label.is_empty());
        let note = note.map(|note| Level::NOTE.secondary_title(normalize_untrusted_str(&note)));
        let help = help.map(|help| Level::HELP.secondary_title(help));
        let lines = [Some(title), note, help].into_iter().flatten().map(|title| renderer.render(&[Group::with_title(title)]));
        return lines.collect::<Vec<String>>().join("\n");
    };
    let mut marks = vec![Mark::new(source, source.span(location), label, true)];
    let related = diagnostic.related.iter().take(MAX_DIAGNOSTICS);
    marks.extend(related.map(|(location, what)| Mark::new(source, source.span(*location), cut(what), false)));
    let window = Window::new(source, &mut marks);
    let moved = window.moved_column(&marks[0]);
    let annotations = marks.into_iter().map(|mark| {
        let kind = if mark.primary { AnnotationKind::Primary } else { AnnotationKind::Context };
        let annotation = kind.span(mark.from..mark.to);
        if mark.label.is_empty() { annotation } else { annotation.label(mark.label) }
    });
    let snippet = Snippet::source(window.text).line_start(window.first_line + 1).path(cut(&source.name));
    let group = title.element(snippet.annotations(annotations)).elements(help.map(|help| Level::HELP.message(help)));
    let drawn = renderer.render(&[group]);
    match moved {
        // The crate counts the columns of what it is given, which is a cut line here.
        Some((shown, true_position)) => match drawn.split_once("--> ") {
            Some((title, rest)) => format!("{title}--> {}", rest.replacen(&shown, &true_position, 1)),
            None => drawn,
        },
        None => drawn,
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_MESSAGE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into(),
    }
}

/// What was expected and found, unless the message says so already.
fn label(diagnostic: &Diagnostic) -> String {
    let label = match (&diagnostic.expected, &diagnostic.found) {
        (Some(expected), Some(found)) => format!("expected {expected}, found {found}"),
        (Some(expected), None) => format!("expected {expected}"),
        (None, Some(found)) if diagnostic.message.contains(found.as_str()) => String::new(),
        (None, Some(found)) => format!("found {found}"),
        (None, None) => String::new(),
    };
    if diagnostic.message.contains(&label) { String::new() } else { cut(&label) }
}

/// The advice, and what the text would be after it.
fn help(source: Option<&Source>, diagnostic: &Diagnostic) -> Option<String> {
    let help = diagnostic.help.as_ref()?;
    let replaced = diagnostic.fix.as_ref().zip(source).map(|(fix, source)| {
        let old = |location| {
            let span = source.span(location);
            let (start, end) = inside(&source.text, span);
            &source.text[start..end]
        };
        match fix {
            Fix::Replace(_, new) => new.clone(),
            Fix::Wrap(location, before, after) => format!("{before}{}{after}", old(*location)),
            // What is put at a distance is shown alone.
            Fix::InsertAfter(_, new) if new.starts_with(char::is_whitespace) => new.trim().into(),
            Fix::InsertAfter(location, new) => format!("{}{new}", old(*location)),
        }
    });
    Some(match replaced {
        Some(new) if !new.is_empty() && new.len() <= 80 && !new.contains('\n') => format!("{}: {}", cut(help), code(&new)),
        Some(_) | None => cut(help),
    })
}

/// The span as offsets that are in the text and between characters.
fn inside(text: &str, span: Span) -> (usize, usize) {
    let start = text.floor_char_boundary(span.start as usize);
    let end = text.floor_char_boundary(span.end as usize);
    (start, end.max(start))
}

/// Something to point at on one line.
struct Mark {
    /// The number of the line, from 0.
    line: usize,
    /// Bytes from the beginning of the line; later of the window, and on one line.
    from: usize,
    to: usize,
    label: String,
    primary: bool,
}

impl Mark {
    fn new(source: &Source, span: Span, label: String, primary: bool) -> Mark {
        let (start, end) = inside(&source.text, span);
        let line = source.line_of(start as u32);
        let line_start = source.lines()[line] as usize;
        Mark { line, from: start - line_start, to: end - line_start, label, primary }
    }
}

/// The lines from the first to the last mark. Those between that will not be seen are empty, long ones are cut.
struct Window {
    text: String,
    first_line: usize,
    /// Line and column of the first mark, as they are, if its line was cut.
    true_position: Option<(usize, usize)>,
}

impl Window {
    /// Takes the lines out of the text, and makes the marks point into the window.
    fn new(source: &Source, marks: &mut [Mark]) -> Window {
        let first_line = marks.iter().map(|mark| mark.line).min().unwrap_or(0);
        let last_line = marks.iter().map(|mark| mark.line).max().unwrap_or(0);
        let mut window = Window { text: String::new(), first_line, true_position: None };
        // A single line between two that are shown is shown as well.
        let near = |mark: &Mark| mark.line.saturating_sub(1)..=mark.line + 1;
        let mut shown: Vec<usize> = marks.iter().flat_map(near).filter(|line| (first_line..=last_line).contains(line)).collect();
        shown.sort_unstable();
        shown.dedup();
        let mut next = first_line;
        for number in shown {
            window.text.extend(std::iter::repeat_n('\n', number - next));
            next = number + 1;
            let start = window.text.len();
            let line = source.lines()[number] as usize;
            let line = source.text[line..].split('\n').next().unwrap_or_default();
            window.line(line.strip_suffix('\r').unwrap_or(line), number, marks);
            for mark in marks.iter_mut().filter(|mark| mark.line == number) {
                mark.from += start;
                mark.to += start;
            }
            window.text.push('\n');
        }
        let end = window.text.len();
        for mark in marks {
            mark.from = mark.from.min(end);
            mark.to = mark.to.clamp(mark.from, end);
        }
        window
    }

    fn line(&mut self, line: &str, number: usize, marks: &mut [Mark]) {
        if line.len() <= MAX_LINE {
            self.text.push_str(line);
            for mark in marks.iter_mut().filter(|mark| mark.line == number) {
                mark.from = mark.from.min(line.len());
                mark.to = mark.to.clamp(mark.from, line.len());
            }
            return;
        }
        let anchor = marks.iter().find(|mark| mark.line == number).map_or(0, |mark| mark.from);
        if marks.first().is_some_and(|mark| mark.line == number) {
            let before = &line[..line.floor_char_boundary(anchor)];
            self.true_position = Some((number + 1, before.chars().count() + 1));
        }
        let start = line.floor_char_boundary(anchor.saturating_sub(AROUND.0));
        let end = line.floor_char_boundary(anchor.saturating_add(AROUND.1));
        const GAP: &str = "…";
        let opening = if start > 0 { GAP } else { "" };
        self.text.push_str(opening);
        self.text.push_str(&line[start..end]);
        if end < line.len() {
            self.text.push_str(GAP);
        }
        for mark in marks.iter_mut().filter(|mark| mark.line == number) {
            // What is outside is pointed at where the line was cut.
            let shift = |at: usize| if at < start { 0 } else { at.min(end) - start + opening.len() };
            (mark.from, mark.to) = (shift(mark.from), shift(mark.to));
        }
    }

    /// The position the crate will show for the first mark, and the true one, if they differ.
    fn moved_column(&self, mark: &Mark) -> Option<(String, String)> {
        let (line, column) = self.true_position?;
        let line_start = self.text[..mark.from].rfind('\n').map_or(0, |newline| newline + 1);
        let shown = self.text[line_start..mark.from].chars().count() + 1;
        Some((format!(":{line}:{shown}"), format!(":{line}:{column}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::Location;
    use std::sync::Arc;
    use vyre_spec::ErrorCode;

    fn source(text: &str) -> Option<Arc<Source>> {
        Some(Arc::new(Source::new("a.vyre", text.into(), Default::default())))
    }

    fn at(start: usize, end: usize) -> Location {
        Location::Text(Span { start: start as u32, end: end as u32 })
    }

    fn draw_one(text: &str, diagnostic: Diagnostic) -> String {
        render(&Report { source: source(text), diagnostics: vec![diagnostic], more: 0 }, false)
    }

    #[test]
    fn a_mistake_is_drawn_with_its_label_its_relatives_and_its_fix() {
        let text = "let a = 1.5\nlet b = 2\n\n\nlet c = a + b\n";
        let diagnostic = Diagnostic::new(ErrorCode::E0301, "operands of different types")
            .at(at(36, 37))
            .expected("f32")
            .found("u32")
            .related(at(4, 5), "this is f32")
            .fix("convert it", Fix::Wrap(at(36, 37), "f32(".into(), ")".into()));
        let expected = "\
error[E0301]: operands of different types
 --> a.vyre:5:13
  |
1 | let a = 1.5
  |     - this is f32
...
5 | let c = a + b
  |             ^ expected f32, found u32
  |
  = help: convert it: `f32(b)`";
        assert_eq!(draw_one(text, diagnostic), expected);
    }

    #[test]
    fn what_is_in_no_text_is_written_out() {
        let missing = Diagnostic::new(ErrorCode::E0701, "the input `a` is missing").help("pass `--input a=…`");
        let warning = Diagnostic::new(ErrorCode::W0401, "large").expected("at most 6").found(7);
        let report = Report { source: None, diagnostics: vec![missing, warning], more: 0 };
        let expected = "\
error[E0701]: the input `a` is missing
help: pass `--input a=…`

warning[W0401]: large
note: expected at most 6, found 7";
        assert_eq!(render(&report, false), expected);
        assert!(render(&report, true).contains("\u{1b}["));
    }

    #[test]
    fn fixes_are_shown_as_the_text_they_make() {
        let with = |fix| {
            let drawn =
                draw_one("buffer a: read u32", Diagnostic::new(ErrorCode::E0402, "no binding").at(at(0, 6)).fix("write", fix));
            drawn.lines().last().unwrap_or_default().to_string()
        };
        assert_eq!(with(Fix::InsertAfter(at(15, 18), " @3".into())), "  = help: write: `@3`");
        assert_eq!(with(Fix::InsertAfter(at(15, 18), "[4]".into())), "  = help: write: `u32[4]`");
        assert_eq!(with(Fix::Replace(at(0, 6), "const".into())), "  = help: write: `const`");
        assert_eq!(with(Fix::Replace(at(0, 6), String::new())), "  = help: write");
        assert_eq!(with(Fix::InsertAfter(at(0, 6), "\n  workgroup 64".into())), "  = help: write: `workgroup 64`");
        // A name that is quoted has its quotes.
        assert_eq!(with(Fix::Replace(at(0, 6), "`buffer`".into())), "  = help: write: `buffer`");
        assert_eq!(with(Fix::Replace(at(0, 6), "a + `b c`".into())), "  = help: write: a + `b c`");
        // The fix is shown even if the advice has the same letters in it.
        assert_eq!(with(Fix::Replace(at(0, 6), "rite".into())), "  = help: write: `rite`");
    }

    #[test]
    fn what_is_missing_at_the_end_of_a_line_is_marked_there() {
        let drawn = draw_one("let a =\nlet b = 1\n", Diagnostic::new(ErrorCode::E0104, "nothing here").at(at(7, 7)));
        assert!(drawn.ends_with("1 | let a =\n  |        ^"), "{drawn}");
    }

    #[test]
    fn no_span_breaks_the_drawing() {
        let texts = [
            "",
            "\n",
            "a",
            "a\nb",
            "\r\n\r\n",
            "\té\u{1F600}x\r\n\t\u{200B}é",
            "a\u{7}\u{1b}[31m\nb",
            "\u{FEFF}x",
            "\r",
            "x\n\n\n",
        ];
        for text in texts {
            for start in 0..=text.len() + 2 {
                for end in [0, start, start + 1, start + 2, text.len(), text.len() + 5, u32::MAX as usize] {
                    for other in [0, text.len() / 2, text.len(), u32::MAX as usize] {
                        let diagnostic = Diagnostic::new(ErrorCode::E0101, "x")
                            .expected("y")
                            .at(at(start, end))
                            .related(at(other, other + 1), "z");
                        assert!(draw_one(text, diagnostic).contains("error[E0101]"), "{text:?} {start} {end} {other}");
                    }
                }
            }
        }
    }

    #[test]
    fn long_lines_are_cut_around_the_mistake_and_columns_stay_true() {
        let text = format!("first\n{}here{}\nlast", "é + ".repeat(200_000), " + x".repeat(200_000));
        let here = text.find("here").unwrap_or(0);
        let diagnostic = Diagnostic::new(ErrorCode::E0201, "unknown")
            .at(at(here, here + 4))
            .related(at(6, 7), "far left")
            .related(at(text.len() - 6, text.len() - 5), "far right");
        let drawn = draw_one(&text, diagnostic);
        assert!(drawn.len() < 4000, "{} bytes", drawn.len());
        assert!(drawn.contains(" --> a.vyre:2:800001\n"), "{drawn}");
        assert!(drawn.contains("é + here + x"), "{drawn}");
        assert!(drawn.contains("^^^^"), "{drawn}");
        let whole = Diagnostic::new(ErrorCode::E0201, "x".repeat(1_000_000)).at(at(0, text.len()));
        assert!(draw_one(&text, whole).len() < 2000);
    }

    #[test]
    fn spans_of_many_lines_are_shown_by_their_first() {
        let text = "if a {\n  b\n}\n";
        let drawn = draw_one(text, Diagnostic::new(ErrorCode::E0305, "not a bool").at(at(0, text.len())));
        assert!(drawn.contains("1 | if a {\n  | ^^^^^^"), "{drawn}");
        assert!(!drawn.contains('}'), "{drawn}");
    }

    #[test]
    fn many_mistakes_are_counted() {
        let diagnostics = vec![Diagnostic::new(ErrorCode::E0201, "unknown").at(at(0, 1)); 150];
        let drawn = render(&Report { source: source("a"), diagnostics, more: 7 }, false);
        assert_eq!(drawn.matches("error[E0201]").count(), 100);
        assert!(drawn.ends_with("\n\n… and 57 more"));
    }
}
