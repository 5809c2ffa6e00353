//! How text looks on a terminal: colour or not, and lines no longer than the window.

use std::fmt::Write;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicU8, Ordering};

/// When to use colour.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum ColorChoice {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Also in files and pipes
    Always,
    /// Not at all
    Never,
}

/// What `--color` says, for the whole process.
static CHOICE: AtomicU8 = AtomicU8::new(ColorChoice::Auto as u8);

impl ColorChoice {
    /// Makes it hold for the process.
    pub fn set(self) {
        CHOICE.store(self as u8, Ordering::Relaxed);
    }

    fn current() -> ColorChoice {
        let all = [ColorChoice::Auto, ColorChoice::Always, ColorChoice::Never];
        all.into_iter().find(|choice| *choice as u8 == CHOICE.load(Ordering::Relaxed)).unwrap_or(ColorChoice::Auto)
    }

    /// Whether what goes to `stream` has colour.
    fn colors(self, stream: &impl IsTerminal) -> bool {
        match self {
            ColorChoice::Auto => stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
            ColorChoice::Always => true,
            ColorChoice::Never => false,
        }
    }

    /// The same for the help and the usage errors of the argument parser.
    pub fn of_clap(self) -> clap::ColorChoice {
        match self {
            ColorChoice::Auto => clap::ColorChoice::Auto,
            ColorChoice::Always => clap::ColorChoice::Always,
            ColorChoice::Never => clap::ColorChoice::Never,
        }
    }
}

/// Whether text has colour, and how wide it may be.
#[derive(Clone, Copy)]
pub struct Style {
    pub color: bool,
    pub width: usize,
}

impl Style {
    pub fn of_stdout() -> Style {
        Style { color: ColorChoice::current().colors(&std::io::stdout()), width: width() }
    }

    pub fn of_stderr() -> Style {
        Style { color: ColorChoice::current().colors(&std::io::stderr()), width: width() }
    }

    fn painted(self, code: &str, text: &str) -> String {
        if self.color { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.into() }
    }

    pub fn strong(self, text: &str) -> String {
        self.painted("1", text)
    }

    pub fn bad(self, text: &str) -> String {
        self.painted("1;31", text)
    }

    pub fn good(self, text: &str) -> String {
        self.painted("1;32", text)
    }

    /// What is said beside something else.
    pub fn faint(self, text: &str) -> String {
        self.painted("36", text)
    }

    /// A paragraph in lines that fit.
    pub fn wrap(self, text: &str) -> String {
        wrapped(text, self.width, 0, 0).join("\n")
    }
}

/// Columns of the terminal, or what COLUMNS says, at most 100; 100 if neither says anything.
pub fn width() -> usize {
    const WIDEST: usize = 100;
    let columns = || std::env::var("COLUMNS").ok()?.parse().ok();
    let terminal = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    terminal.or_else(columns).filter(|width| *width > 0).unwrap_or(WIDEST).min(WIDEST)
}

/// The words of a text in lines of `width`: the first begins at `first`, the others are indented by `rest`.
fn wrapped(text: &str, width: usize, first: usize, rest: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = " ".repeat(first);
    let mut is_empty = true;
    for word in text.split_whitespace() {
        if !is_empty && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(std::mem::replace(&mut line, " ".repeat(rest)));
            is_empty = true;
        }
        let _ = write!(line, "{}{word}", if is_empty { "" } else { " " });
        is_empty = false;
    }
    lines.push(line);
    lines
}

/// A text of help in lines of `width`. Lines that begin at the margin are paragraphs. An indented line is an entry: something to write
/// and, after two spaces or more, what it does, which may go on below itself on lines that are indented much further. Where there is
/// no room beside the entries of a block, what they do stands below them.
pub fn layout(text: &str, width: usize) -> String {
    text.split("\n\n").map(|block| layout_block(block, width)).collect::<Vec<_>>().join("\n\n")
}

/// An entry of help, with what it does.
struct Entry {
    indent: usize,
    what: String,
    about: String,
}

/// Lines that are indented so far go on with what stands above them.
const FAR: usize = 12;

fn layout_block(text: &str, width: usize) -> String {
    let mut out: Vec<String> = Vec::new();
    let mut entries: Vec<Entry> = Vec::new();
    let mut paragraph = String::new();
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        let words = line.trim();
        if indent == 0 {
            draw_entries(&mut entries, width, &mut out);
            paragraph.push_str(words);
            paragraph.push(' ');
            // A heading is a line of its own.
            if words.ends_with(':') {
                out.append(&mut wrapped(&std::mem::take(&mut paragraph), width, 0, 0));
            }
            continue;
        }
        if !paragraph.is_empty() {
            out.append(&mut wrapped(&std::mem::take(&mut paragraph), width, 0, 0));
        }
        match entries.last_mut() {
            Some(entry) if indent >= FAR => {
                entry.about.push(' ');
                entry.about.push_str(words);
            }
            Some(_) | None => {
                let (what, about) =
                    column(line).map_or((words, ""), |column| (line[indent..column].trim(), line[column..].trim()));
                entries.push(Entry { indent, what: what.into(), about: about.into() });
            }
        }
    }
    draw_entries(&mut entries, width, &mut out);
    if !paragraph.is_empty() {
        out.append(&mut wrapped(&paragraph, width, 0, 0));
    }
    out.join("\n")
}

fn draw_entries(entries: &mut Vec<Entry>, width: usize, out: &mut Vec<String>) {
    /// Columns that a text beside an entry needs.
    const ROOM: usize = 30;
    let heads = entries.iter().filter(|entry| !entry.about.is_empty());
    let column = heads.map(|entry| entry.indent + entry.what.chars().count() + 4).filter(|column| column + ROOM <= width).max();
    for Entry { indent, what, about } in entries.drain(..) {
        let head = format!("{}{what}", " ".repeat(indent));
        match column.filter(|column| head.chars().count() + 2 <= *column) {
            // A command is not cut: it is there to be copied.
            _ if about.is_empty() => out.push(head),
            Some(column) => {
                let lines = wrapped(&about, width, column, column);
                out.push(format!("{head:<column$}{}", lines[0].trim_start()));
                out.extend(lines.into_iter().skip(1));
            }
            None => {
                out.push(head);
                out.append(&mut wrapped(&about, width, indent + 4, indent + 4));
            }
        }
    }
}

/// Where, in an indented line, the text beside the entry begins.
fn column(line: &str) -> Option<usize> {
    let indent = line.len() - line.trim_start().len();
    let gap = (indent > 0).then(|| line[indent..].find("  "))??;
    let start = indent + gap;
    Some(start + line[start..].len() - line[start..].trim_start().len()).filter(|column| *column < line.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELP: &str = "\
A paragraph that goes on
and on over two lines.

Examples:
  vyre run a.vyre           runs it and
                            shows what came out
  vyre run a.vyre --timed   says how long it took

  program p {
    workgroup 1
  }";

    #[test]
    fn help_fits_any_width_and_keeps_commands_whole() {
        let wide = "\
A paragraph that goes on and on over two lines.

Examples:
  vyre run a.vyre            runs it and shows what came out
  vyre run a.vyre --timed    says how long it took

  program p {
    workgroup 1
  }";
        assert_eq!(layout(HELP, 100), wide);
        let narrow = "\
A paragraph that goes on
and on over two lines.

Examples:
  vyre run a.vyre
      runs it and shows
      what came out
  vyre run a.vyre --timed
      says how long it
      took

  program p {
    workgroup 1
  }";
        assert_eq!(layout(HELP, 25), narrow);
        for width in 1..200 {
            let words = |text: &str| text.split_whitespace().map(str::to_string).collect::<Vec<_>>();
            assert_eq!(words(&layout(HELP, width)), words(HELP), "{width}");
        }
    }
}
