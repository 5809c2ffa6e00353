//! `vyre fmt`: the same tokens and comments, laid out anew.
//!
//! Only the space between tokens changes, so that numbers keep their spelling and expressions their parentheses, and the program is
//! the same. The parser has noted which tokens make a line and how deep each line is indented.
//!
//! A statement that is too wide is broken from the outside inwards: before all of its loosest operators, and, where there are none
//! outside of brackets, within the widest brackets, whose arguments then have a line each. Whatever fits stays on one line.
//!
//! A comment on a line of its own stays on one, before what follows; a comment behind something stays behind it. A comment inside a
//! statement goes before the statement. Of blank lines one is kept, none at the borders of a block. As nothing but the tokens, the
//! comments and the blank lines between them counts, formatting a second time changes nothing.

use super::lexer::{Comment, Kind, Token};
use super::parser::{self, Line, Mark, Purpose, Read};
use super::{is_too_large, too_large};
use crate::diagnostic::{Report, Source, Span};
use std::ops::Range;
use std::sync::Arc;

/// Wider lines are broken.
const WIDTH: usize = 100;

/// One level of indentation.
const INDENT: usize = 2;

/// How much further the later operands of a broken line are indented: more than a body, so that it does not look like one.
const CONTINUATION: usize = 4;

/// The text in the usual layout. The parser must be able to read all of it, but it need not be valid.
pub fn format(name: &str, text: &str) -> Result<String, Report> {
    if is_too_large(text.len()) {
        return Err(too_large(name));
    }
    let reading = parser::read(text, Purpose::Format);
    if !reading.complete {
        let source = Source::new(name, text.into(), Default::default());
        return Err(Report::in_source(Arc::new(source), reading.mistakes));
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
    fn run(&mut self, reading: &Read<'_>) {
        let mut comments = reading.comments.iter().peekable();
        for line in &reading.lines {
            let closing = slice(self.text, reading.tokens.get(line.first).span) == "}";
            let inner = line.indent as usize + usize::from(closing);
            while let Some(comment) = comments.next_if(|comment| comment.next <= line.first) {
                self.comment(comment, inner);
            }
            // Between the comments that are moved here there is no space, so only the first keeps its distance.
            let start = reading.tokens.get(line.first).span.start;
            let mut blank = !closing && self.is_apart(start);
            while let Some(comment) = comments.next_if(|comment| comment.next <= line.last) {
                self.begin(inner, blank);
                self.out.push_str(slice(self.text, comment.span));
                blank = false;
            }
            self.begin(line.indent as usize, blank);
            self.line(reading, line);
            self.end = Some(reading.tokens.get(line.last).span.end);
            self.opened = slice(self.text, reading.tokens.get(line.last).span) == "{";
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
        self.out.extend(std::iter::repeat_n(' ', indent * INDENT));
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
    fn line(&mut self, reading: &Read<'_>, line: &Line) {
        let indent = line.indent as usize * INDENT;
        let pieces = pieces(self.text, reading, line);
        let mut broken = Broken { pieces: &pieces, out: &mut self.out, column: indent, fresh: true };
        let all = 0..pieces.len();
        // There is no place in a declaration where a break would help.
        match pieces.first().is_some_and(|first| first.text == "buffer") {
            true => broken.write(all),
            false => broken.lay_out(all, indent, 0),
        }
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
    /// The columns from the beginning of the line to its end, if the line is not broken.
    end: usize,
    /// How tightly it binds, if it is an operator between operands.
    infix: Option<u8>,
    /// The number of the bracket that closes it, if it is one that opens.
    close: Option<usize>,
}

fn pieces<'a>(text: &'a str, reading: &Read<'_>, line: &Line) -> Vec<Piece<'a>> {
    let mut pieces: Vec<Piece<'a>> = Vec::with_capacity(line.last - line.first + 1);
    let mut open = Vec::new();
    let mut end = 0;
    for at in line.first..=line.last {
        let (token, mark) = (&reading.tokens.get(at), reading.marks[at]);
        let space = at > line.first && is_spaced(text, (&reading.tokens.get(at - 1), reading.marks[at - 1]), (token, mark));
        let punct = punct(text, token);
        let infix = match (mark, punct) {
            (Mark::Infix(precedence), _) => Some(precedence as u8 + 1),
            (_, "..") => Some(0),
            (Mark::Plain | Mark::Prefix | Mark::TightBefore | Mark::Tight, _) => None,
        };
        match punct {
            "(" | "[" => open.push(pieces.len()),
            ")" | "]" => {
                if let Some(open) = open.pop() {
                    pieces[open].close = Some(pieces.len());
                }
            }
            _ => {}
        }
        let text = slice(text, token.span);
        end += usize::from(space) + text.chars().count();
        pieces.push(Piece { text, space, end, infix, close: None });
    }
    pieces
}

/// A line that is being written, on several if it is too wide.
struct Broken<'a> {
    pieces: &'a [Piece<'a>],
    out: &'a mut String,
    column: usize,
    /// Whether nothing was written since the line began.
    fresh: bool,
}

impl Broken<'_> {
    /// The columns that these pieces take here on one line.
    fn width(&self, range: &Range<usize>) -> usize {
        let before = match range.start.checked_sub(1) {
            Some(before) => self.pieces[before].end + usize::from(self.fresh && self.pieces[range.start].space),
            None => 0,
        };
        self.pieces[range.end - 1].end - before
    }

    fn new_line(&mut self, indent: usize) {
        self.out.push('\n');
        self.out.extend(std::iter::repeat_n(' ', indent));
        self.column = indent;
        self.fresh = true;
    }

    /// Writes the pieces on one line.
    fn write(&mut self, range: Range<usize>) {
        if range.is_empty() {
            return;
        }
        self.column += self.width(&range);
        for piece in &self.pieces[range] {
            if piece.space && !self.fresh {
                self.out.push(' ');
            }
            self.out.push_str(piece.text);
            self.fresh = false;
        }
    }

    /// The pieces of the range that are in no brackets of it.
    fn outside(&self, range: Range<usize>) -> impl Iterator<Item = usize> {
        let mut next = range.start;
        std::iter::from_fn(move || {
            let piece = next;
            next = self.pieces.get(piece)?.close.unwrap_or(piece) + 1;
            Some(piece)
        })
        .take_while(move |piece| *piece < range.end)
    }

    /// Writes the pieces, on several lines if that many columns do not fit behind them: what begins a line is indented so far.
    fn lay_out(&mut self, range: Range<usize>, indent: usize, behind: usize) {
        if range.is_empty() || self.column + self.width(&range) + behind <= WIDTH {
            return self.write(range);
        }
        // The operator that begins the line is where the range around was broken.
        let inner = range.start + usize::from(self.fresh && self.pieces[range.start].infix.is_some());
        let infix = |piece: &usize| self.pieces[*piece].infix;
        if let Some(loosest) = self.outside(inner..range.end).filter_map(|piece| infix(&piece)).min() {
            let breaks: Vec<usize> = self.outside(inner..range.end).filter(|piece| infix(piece) == Some(loosest)).collect();
            let mut start = range.start;
            for next in breaks {
                self.lay_out(start..next, indent + CONTINUATION, 0);
                self.new_line(indent + CONTINUATION);
                start = next;
            }
            return self.lay_out(start..range.end, indent + CONTINUATION, behind);
        }
        let brackets = self.outside(range.clone()).filter_map(|open| Some((open, self.pieces[open].close?)));
        let inside = |open: usize, close: usize| self.pieces[close].end - self.pieces[open].end;
        let Some((open, close)) =
            brackets.max_by_key(|(open, close)| inside(*open, *close)).filter(|(open, close)| open + 1 < *close)
        else {
            return self.write(range);
        };
        self.lay_out(range.start..open, indent, 1);
        self.write(open..open + 1);
        let mut start = open + 1;
        let commas: Vec<usize> = self.outside(start..close).filter(|piece| self.pieces[*piece].text == ",").collect();
        for comma in commas {
            self.new_line(indent + INDENT);
            self.lay_out(start..comma, indent + INDENT, 1);
            self.write(comma..comma + 1);
            start = comma + 1;
        }
        self.new_line(indent + INDENT);
        self.lay_out(start..close, indent + INDENT, 0);
        self.new_line(indent);
        self.write(close..close + 1);
        self.lay_out(close + 1..range.end, indent, behind);
    }
}

/// The operator or bracket that a token is, or nothing.
fn punct<'a>(text: &'a str, token: &Token) -> &'a str {
    if token.kind == Kind::Punct { slice(text, token.span) } else { "" }
}

fn is_spaced(text: &str, (before, before_mark): (&Token, Mark), (token, mark): (&Token, Mark)) -> bool {
    let opens = matches!(punct(text, before), "(" | "[" | "." | "@" | "..");
    let closes = matches!(punct(text, token), ")" | "]" | "," | ";" | "." | "[" | ":" | "..");
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
  let w = min(
    max(
      {term},
      {term}
    ),
    {term}
  )
  let u = {}
}}
",
                "b".repeat(120)
            ),
        );
    }

    #[test]
    fn only_what_cannot_be_read_is_refused() {
        check("raw{workgroup 0\nx=y+1.5\n}", "raw {\n  workgroup 0\n  x = y + 1.5\n}\n");
        check("raw{x=foo( 1u32,5000000000u )<1<2;y=v . q\n}", "raw {\n  x = foo(1u32, 5000000000u) < 1 < 2;\n  y = v.q\n}\n");
        assert!(format("t", "program x {").is_err());
        assert!(format("t", "raw { x = 1 + }").is_err());
    }
}
