//! `vyre fmt`: the same tokens and comments, laid out anew.
//!
//! Only the space between tokens changes, so that numbers keep their spelling and expressions their parentheses, and the program is
//! the same. The parser has noted which tokens make a line and how deep each line is indented. A line that is too wide is broken
//! before operators and after commas, the outermost that help.
//!
//! A comment on a line of its own stays on one, before what follows; a comment behind something stays behind it. A comment inside a
//! statement goes before the statement. Of blank lines one is kept, none at the borders of a block. As nothing but the tokens, the
//! comments and the blank lines between them counts, formatting a second time changes nothing.

use super::lexer::{Comment, Kind, Token};
use super::parser::{self, Line, Mark, Reading};
use super::{is_too_large, too_large};
use crate::diagnostic::{Report, Source, Span};
use std::sync::Arc;

/// Wider lines are broken.
const WIDTH: usize = 100;

/// How much further the later parts of a broken line are indented.
const CONTINUATION: usize = 4;

/// The text in the usual layout. It must be free of mistakes in its syntax, but need not be valid.
pub fn format(name: &str, text: &str) -> Result<String, Report> {
    if is_too_large(text.len()) {
        return Err(too_large(name));
    }
    let reading = parser::read(text);
    if !reading.mistakes.is_empty() {
        let source = Source { name: name.into(), text: text.into(), spans: Default::default() };
        return Err(Report { source: Some(Arc::new(source)), diagnostics: reading.mistakes });
    }
    let mut layout = Layout { text, out: String::with_capacity(text.len()), end: None, opened: true };
    layout.run(&reading);
    Ok(layout.out)
}

struct Layout<'a> {
    text: &'a str,
    out: String,
    /// Where in the text the last thing that was written ends.
    end: Option<u32>,
    /// Whether nothing was written since the beginning of the text or a `{`.
    opened: bool,
}

impl Layout<'_> {
    fn run(&mut self, reading: &Reading) {
        let mut comments = reading.comments.iter().peekable();
        for line in &reading.lines {
            let closing = reading.tokens[line.first].kind == Kind::Punct("}");
            let inner = line.indent as usize + usize::from(closing);
            while let Some(comment) = comments.next_if(|comment| comment.next <= line.first) {
                self.comment(comment, inner);
            }
            // Between the comments that are moved here there is no space, so only the first keeps its distance.
            let start = reading.tokens[line.first].span.start;
            let mut blank = !closing && self.is_apart(start);
            while let Some(comment) = comments.next_if(|comment| comment.next <= line.last) {
                self.begin(inner, blank);
                self.out.push_str(slice(self.text, comment.span));
                blank = false;
            }
            self.begin(line.indent as usize, blank);
            self.line(reading, line);
            self.end = Some(reading.tokens[line.last].span.end);
            self.opened = reading.tokens[line.last].kind == Kind::Punct("{");
        }
        for comment in comments {
            self.comment(comment, 0);
        }
        self.out.push('\n');
    }

    /// Whether the text has a blank line between the last thing that was written and `start`, and it is one to keep.
    fn is_apart(&self, start: u32) -> bool {
        let Some(end) = self.end.filter(|_| !self.opened) else { return false };
        slice(self.text, Span { start: end, end: start }).bytes().filter(|byte| *byte == b'\n').count() > 1
    }

    /// Begins a line, after a blank one if `blank`.
    fn begin(&mut self, indent: usize, blank: bool) {
        if !self.out.is_empty() {
            self.out.push_str(if blank { "\n\n" } else { "\n" });
        }
        self.out.extend(std::iter::repeat_n(' ', indent * 2));
        self.opened = false;
    }

    /// A comment between lines.
    fn comment(&mut self, comment: &Comment, indent: usize) {
        let opened = self.opened;
        if comment.own_line || self.end.is_none() {
            let blank = self.is_apart(comment.span.start);
            self.begin(indent, blank);
            self.opened = false;
        } else {
            self.out.push(' ');
            self.opened = opened;
        }
        self.out.push_str(slice(self.text, comment.span));
        self.end = Some(comment.span.end);
    }

    /// The tokens of a line.
    fn line(&mut self, reading: &Reading, line: &Line) {
        let pieces = self.pieces(reading, line);
        let indent = line.indent as usize * 2;
        let mut first = 0;
        let mut used = indent;
        while let Some(next) = break_before(&pieces[first..], used) {
            self.write(&pieces[first..first + next]);
            first += next;
            used = indent + CONTINUATION;
            self.out.push('\n');
            self.out.extend(std::iter::repeat_n(' ', used));
        }
        self.write(&pieces[first..]);
    }

    fn write(&mut self, pieces: &[Piece<'_>]) {
        for (i, piece) in pieces.iter().enumerate() {
            if piece.space && i > 0 {
                self.out.push(' ');
            }
            self.out.push_str(piece.text);
        }
    }

    fn pieces<'b>(&self, reading: &'b Reading, line: &Line) -> Vec<Piece<'b>>
    where
        Self: 'b,
    {
        let mut pieces = Vec::with_capacity(line.last - line.first + 1);
        let mut after_comma = None;
        for at in line.first..=line.last {
            let token = &reading.tokens[at];
            let before = (at > line.first).then(|| (&reading.tokens[at - 1], reading.marks[at - 1]));
            let level = match reading.marks[at] {
                Mark::Infix(precedence, brackets) => Some((brackets, precedence as u8 + 1)),
                Mark::Plain | Mark::Prefix | Mark::TightBefore | Mark::Tight | Mark::Comma(_) => after_comma,
            };
            after_comma = match reading.marks[at] {
                Mark::Comma(brackets) => Some((brackets, 0)),
                Mark::Plain | Mark::Prefix | Mark::TightBefore | Mark::Tight | Mark::Infix(..) => None,
            };
            let space = before.is_some_and(|(before, mark)| is_spaced(before, mark, token, reading.marks[at]));
            pieces.push(Piece { text: slice(self.text, token.span), space, level });
        }
        pieces
    }
}

fn slice(text: &str, span: Span) -> &str {
    &text[span.start as usize..span.end as usize]
}

/// A token in a line.
struct Piece<'a> {
    text: &'a str,
    /// Whether a space stands before it.
    space: bool,
    /// Whether the line may be broken before it, and how far inside: brackets, then operators.
    level: Option<(u32, u8)>,
}

/// Before which of the pieces the line is broken, if they do not fit behind `used` columns: the outermost place that leaves a line
/// that fits, the last of several; else the first place at all.
fn break_before(pieces: &[Piece<'_>], used: usize) -> Option<usize> {
    let mut width = used;
    let mut best: Option<(usize, (u32, u8))> = None;
    for (i, piece) in pieces.iter().enumerate() {
        if let Some(level) = piece.level.filter(|_| i > 0) {
            if width > WIDTH {
                return Some(best.map_or(i, |(best, _)| best));
            }
            if best.is_none_or(|(_, least)| level <= least) {
                best = Some((i, level));
            }
        }
        width += piece.text.chars().count() + usize::from(piece.space && i > 0);
    }
    best.filter(|_| width > WIDTH).map(|(best, _)| best)
}

fn is_spaced(before: &Token, before_mark: Mark, token: &Token, mark: Mark) -> bool {
    let opens = matches!(before.kind, Kind::Punct("(" | "[" | "." | "@" | ".."));
    let closes = matches!(token.kind, Kind::Punct(")" | "]" | "," | "." | "[" | ":" | ".."));
    let tight = matches!(before_mark, Mark::Prefix | Mark::Tight) || matches!(mark, Mark::TightBefore | Mark::Tight);
    !(opens || closes || tight)
}

#[cfg(test)]
mod tests {
    use super::format;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let formatted = format("t", text).unwrap_or_else(|report| panic!("{report}"));
        assert_eq!(formatted, expected);
        assert_eq!(format("t", expected).as_deref(), Ok(expected), "a second time");
    }

    #[test]
    fn tokens_are_spaced_alike() {
        check(
            "program  x{workgroup 64 8u\nconst s :i32=- 3\nbuffer a :read vec2 < u32 > [ s ]@ 0
             let x=- ( a [1+2] . x*(3) ) % - 4i
             if(x<1)&&! y{for i in 0 .. len ( a ){barrier . grid}}else if z{}else{trap ( 7 )}
             atomic . add(a,0,bitcast < u32 > (1.5))\nregion\"r\"{}\n{}}",
            "\
program x {
  workgroup 64 8u
  const s: i32 = -3
  buffer a: read vec2<u32>[s] @0
  let x = -(a[1 + 2].x * (3)) % -4i
  if (x < 1) && !y {
    for i in 0..len(a) {
      barrier.grid
    }
  } else if z {
  } else {
    trap(7)
  }
  atomic.add(a, 0, bitcast<u32>(1.5))
  region \"r\" {
  }
  {
  }
}
",
        );
    }

    #[test]
    fn comments_stay_where_they_belong() {
        check(
            "// file\n\n\n// two\nprogram x // name\n{ // open\n\n  // first\n  workgroup 1 // size\n\n\n  // before\n  let a = 1 + // one\n    // two\n    2 // end
  if a == 3 { // cond\n\n    // only\n\n  } // closed\n  // otherwise\n  else {\n    return\n    // last\n\n  }   //tail  \n  // inside\n}\n\n// after\n// end",
            "\
// file

// two
// name
program x { // open
  // first
  workgroup 1 // size

  // before
  // one
  // two
  let a = 1 + 2 // end
  if a == 3 { // cond
    // only
    // closed
    // otherwise
  } else {
    return
    // last
  } //tail
  // inside
}

// after
// end
",
        );
    }

    #[test]
    fn blank_lines_are_kept_singly_and_not_at_the_borders_of_blocks() {
        check(
            "\n\nprogram x {\n\n\nworkgroup 1\r\n\r\n\r\nreturn\n\n\n{\n\nreturn\n\n}\n\n\n}\n\n\n",
            "program x {\n  workgroup 1\n\n  return\n\n  {\n    return\n  }\n}\n",
        );
    }

    #[test]
    fn comments_inside_a_statement_go_before_it_with_its_distance() {
        check(
            "raw {\nworkgroup 1\n\n\nx = 1 + // one\n\n// two\n\n2\n\n}",
            "raw {\n  workgroup 1\n\n  // one\n  // two\n  x = 1 + 2\n}\n",
        );
    }

    #[test]
    fn wide_lines_are_broken_at_the_outermost_operators() {
        let term = "a_rather_long_name_of_a_thing * (another_long_name - 1)";
        check(
            &format!(
                "program x {{\nworkgroup 1\nlet v = {term} + {term} + {term}\nlet w = min(max({term}, {term}), {term})\nlet u = {}\n}}",
                "b".repeat(120)
            ),
            &format!(
                "\
program x {{
  workgroup 1
  let v = {term}
      + {term}
      + {term}
  let w = min(max({term},
      {term}),
      {term})
  let u = {}
}}
",
                "b".repeat(120)
            ),
        );
    }

    #[test]
    fn only_the_syntax_must_be_right() {
        check("raw{workgroup 0\nx=y+1.5\n}", "raw {\n  workgroup 0\n  x = y + 1.5\n}\n");
        assert!(format("t", "program x {").is_err());
    }
}
