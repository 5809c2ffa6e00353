//! Text to tokens.
//!
//! Any text gives tokens: what is no token becomes [`Kind::Bad`] after one diagnostic for each run of such characters. Comments are
//! kept beside the tokens, for the formatter. The operators are those of the op tables.

use super::number::{self, BadNumber, Number};
use crate::diagnostic::{Diagnostic, Fix, Location, Mistakes, Span};
use std::sync::LazyLock;
use vyre_spec::{BinaryOp, ErrorCode, Spelling, UnaryOp};

/// What a token is. What it says is in the text.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Kind {
    /// Letters, digits and `_`; keywords too.
    Word,
    /// A name in backticks; see [`unquoted`].
    Quoted,
    /// A string; see [`unquoted`].
    String,
    /// A number; see [`number_at`].
    Number,
    /// An operator or a bracket.
    Punct,
    /// Something that was reported already.
    Bad,
    /// The end of the text.
    End,
}

/// A token and where it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) span: Span,
    /// Whether a line ends between the token before and this one.
    pub(super) newline_before: bool,
}

/// The tokens of a text. They are many, so each takes three bytes: how far from the first of its neighbours it begins, what it is,
/// whether a line ends before it, and how long it is. The length of a long one is found again.
pub(super) struct Tokens<'a> {
    text: &'a str,
    packed: Vec<[u8; 3]>,
    /// Where the first of every [`NEIGHBOURS`] begins.
    bases: Vec<u32>,
    /// Those that begin too far from it, by number.
    far: Vec<(u32, u32)>,
}

/// Lengths from this one on are not noted.
const LONG: usize = 15;

/// Distances from this one on are not noted.
const FAR: u32 = u16::MAX as u32;

/// How many tokens share the number that says where they are.
const NEIGHBOURS: usize = 64;

impl Tokens<'_> {
    const KINDS: [Kind; 7] = [Kind::Word, Kind::Quoted, Kind::String, Kind::Number, Kind::Punct, Kind::Bad, Kind::End];

    fn push(&mut self, token: Token) {
        let Token { kind, span: Span { start, end }, newline_before } = token;
        let length = ((end - start) as usize).min(LONG) as u8;
        if self.len().is_multiple_of(NEIGHBOURS) {
            self.bases.push(start);
        }
        let distance = start - self.bases[self.len() / NEIGHBOURS];
        if distance >= FAR {
            self.far.push((self.len() as u32, start));
        }
        let [low, high] = (distance.min(FAR) as u16).to_le_bytes();
        if self.packed.len() == self.packed.capacity() {
            // In small steps: the copy counts, too.
            self.packed.reserve_exact(self.packed.len() / 8 + 64);
        }
        self.packed.push([low, high, kind as u8 | u8::from(newline_before) << 3 | length << 4]);
    }

    #[inline]
    fn start(&self, n: usize) -> usize {
        let [low, high, _] = self.packed[n];
        let distance = u32::from(u16::from_le_bytes([low, high]));
        let far = || self.far.binary_search_by_key(&(n as u32), |(n, _)| *n).ok().map(|far| self.far[far].1);
        let near = self.bases[n / NEIGHBOURS] + distance;
        (if distance == FAR { far().unwrap_or(near) } else { near }) as usize
    }

    pub(super) fn len(&self) -> usize {
        self.packed.len()
    }

    #[inline]
    pub(super) fn get(&self, n: usize) -> Token {
        let [_, _, about] = self.packed[n];
        let start = self.start(n);
        let kind = Self::KINDS[usize::from(about & 7)];
        let length = match usize::from(about >> 4) {
            LONG => self.long(kind, start),
            length => length,
        };
        Token { kind, span: span(start, start + length), newline_before: about & 8 != 0 }
    }

    /// What the token is, without its span.
    #[inline]
    pub(super) fn kind(&self, n: usize) -> Kind {
        Self::KINDS[usize::from(self.packed[n][2] & 7)]
    }

    /// Whether a line ends before the token.
    #[inline]
    pub(super) fn newline_before(&self, n: usize) -> bool {
        self.packed[n][2] & 8 != 0
    }

    /// The length of the token that begins there.
    #[cold]
    #[inline(never)]
    fn long(&self, kind: Kind, start: usize) -> usize {
        let rest = &self.text[start..];
        match kind {
            Kind::Word => word_length(rest.as_bytes()),
            Kind::Quoted | Kind::String | Kind::Number | Kind::Punct | Kind::Bad | Kind::End => {
                let mut lexer = Lexer::new(rest);
                lexer.token(rest.as_bytes()[0]);
                lexer.at
            }
        }
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = Token> {
        (0..self.len()).map(|n| self.get(n))
    }
}

/// How many bytes of a word are in front of a text.
fn word_length(text: &[u8]) -> usize {
    text.iter().take_while(|byte| is_word_byte(**byte)).count()
}

/// A comment, from `//` to the end of its line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Comment {
    pub(super) span: Span,
    /// The number of the token that follows.
    pub(super) next: usize,
    /// Whether nothing but space is before it on its line.
    pub(super) own_line: bool,
}

/// A text in tokens; the last is [`Kind::End`].
pub(super) struct Lexed<'a> {
    pub(super) tokens: Tokens<'a>,
    pub(super) comments: Vec<Comment>,
    pub(super) mistakes: Mistakes,
}

/// Everything that is not a word, a quote or a number, the longest first.
static PUNCTUATION: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let spellings = BinaryOp::ALL.iter().map(|op| op.info().spelling).chain(UnaryOp::ALL.iter().map(|op| op.info().spelling));
    let operators = spellings.filter_map(|spelling| match spelling {
        Spelling::Prefix(token) | Spelling::Infix(token, _) => Some(token),
        Spelling::Call => None,
    });
    let mut all: Vec<&str> =
        ["{", "}", "(", ")", "[", "]", ",", ":", ";", "=", "@", ".", ".."].into_iter().chain(operators).collect();
    all.sort_by_key(|token| (std::cmp::Reverse(token.len()), *token));
    all.dedup();
    all
});

/// Whether `text` can be written as a name without quotes, keywords aside.
pub(super) fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && text.bytes().all(is_word_byte)
}

/// Whether what stands behind a `#` is for a preprocessor or an attribute. Anything else is a comment of another language.
fn is_directive(behind: &str) -> bool {
    let words = [
        "define",
        "undef",
        "include",
        "version",
        "extension",
        "pragma",
        "if",
        "ifdef",
        "ifndef",
        "else",
        "elif",
        "endif",
        "error",
        "line",
    ];
    let length = word_length(behind.as_bytes());
    behind.starts_with('[') || behind.starts_with("![") || words.contains(&&behind[..length])
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The text must be shorter than 4 GiB.
pub(super) fn lex(text: &str) -> Lexed<'_> {
    let mut lexer = Lexer::new(text);
    lexer.run();
    lexer.out
}

/// What a quoted name or a string says.
pub(super) fn unquoted(token: &str) -> String {
    let quote = if token.starts_with('"') { '"' } else { '`' };
    Lexer::new(token).quoted(quote).unwrap_or_default()
}

/// The number that this text begins with; `None` if there is a mistake in it, which was reported.
pub(super) fn number_at(text: &str) -> Option<Number> {
    number::scan(text).1.ok()
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    out: Lexed<'a>,
}

impl<'a> Lexer<'a> {
    fn new(text: &'a str) -> Self {
        let tokens = Tokens { text, packed: Vec::new(), bases: Vec::new(), far: Vec::new() };
        Lexer { text, at: 0, out: Lexed { tokens, comments: Vec::new(), mistakes: Mistakes::default() } }
    }

    fn run(&mut self) {
        let bytes = self.text.as_bytes();
        let mut newline = true;
        if self.text.starts_with('\u{FEFF}') {
            self.at = '\u{FEFF}'.len_utf8();
        }
        while self.at < bytes.len() {
            let start = self.at;
            match bytes[start] {
                b'\n' => {
                    newline = true;
                    self.at += 1;
                }
                b' ' | b'\t' | b'\r' => self.at += 1,
                b'/' if bytes[start..].starts_with(b"//") => {
                    let line = self.text[start..].split('\n').next().unwrap_or_default();
                    let span = span(start, start + line.trim_end().len());
                    self.out.comments.push(Comment { span, next: self.out.tokens.len(), own_line: newline });
                    self.at += line.len();
                }
                b'/' if bytes[start..].starts_with(b"/*") => newline |= self.block_comment(),
                b'#' if !is_directive(&self.text[start + 1..]) => self.hash_comment(),
                byte => {
                    let kind = self.token(byte);
                    self.out.tokens.push(Token { kind, span: span(start, self.at), newline_before: newline });
                    newline = false;
                }
            }
        }
        self.out.tokens.push(Token { kind: Kind::End, span: span(self.at, self.at), newline_before: newline });
        self.out.tokens.packed.shrink_to_fit();
    }

    /// Goes over the token that begins here, with this byte.
    fn token(&mut self, first: u8) -> Kind {
        match first {
            b'`' => self.quoted('`').map_or(Kind::Bad, |_| Kind::Quoted),
            b'"' => self.quoted('"').map_or(Kind::Bad, |_| Kind::String),
            byte if byte.is_ascii_digit() => self.number(),
            byte if is_word_byte(byte) => {
                self.at += word_length(&self.text.as_bytes()[self.at..]);
                Kind::Word
            }
            _ => match PUNCTUATION.iter().find(|token| token.as_bytes()[0] == first && self.text[self.at..].starts_with(**token))
            {
                Some(token) => {
                    self.at += token.len();
                    Kind::Punct
                }
                None => self.bad(),
            },
        }
    }

    fn mistake(&mut self, diagnostic: Diagnostic, start: usize, end: usize) {
        self.out.mistakes.push(diagnostic.at(Location::Text(span(start, end))));
    }

    /// Goes over a comment that other languages begin with `/*`; whether a line ends in it.
    #[cold]
    fn block_comment(&mut self) -> bool {
        let start = self.at;
        let rest = &self.text[start..];
        let closed = rest[2..].find("*/").map(|end| end + 4);
        let length = closed.unwrap_or(rest.len());
        self.at += length;
        let (comment, behind) = rest.split_at(length);
        let diagnostic = Diagnostic::new(ErrorCode::E0101, "there are no comments between `/*` and `*/`");
        let ends_line = behind.trim_start_matches([' ', '\t', '\r']);
        let diagnostic = match comment.strip_suffix("*/").filter(|_| closed.is_some() && !comment.contains('\n')) {
            Some(says) if ends_line.is_empty() || ends_line.starts_with('\n') => {
                let new = format!("// {}", says[2..].trim_matches('*').trim());
                diagnostic.fix("write", Fix::Replace(Location::Text(span(start, self.at)), new))
            }
            _ if closed.is_none() => diagnostic.help("this one has no end; a comment begins with `//` and ends with its line"),
            _ => diagnostic.help("a comment begins with `//` and ends with its line"),
        };
        self.mistake(diagnostic, start, start + comment.lines().next().unwrap_or_default().trim_end().len());
        comment.contains('\n')
    }

    /// Goes over a comment that other languages begin with `#`.
    #[cold]
    fn hash_comment(&mut self) {
        let start = self.at;
        self.at += self.text[start..].split('\n').next().unwrap_or_default().len();
        let hash = Location::Text(span(start, start + 1));
        let diagnostic = Diagnostic::new(ErrorCode::E0101, "`#` begins no comment");
        self.mistake(diagnostic.fix("comments begin with", Fix::Replace(hash, "//".into())), start, start + 1);
    }

    /// Goes over a line for a preprocessor, or an attribute of a function.
    #[cold]
    fn directive(&mut self) -> Kind {
        let start = self.at;
        let line = self.text[start..].split('\n').next().unwrap_or_default().trim_end();
        self.at += line.len();
        let mut words = line[1..].split_whitespace();
        let diagnostic = match words.next() {
            Some("define") => {
                let diagnostic = Diagnostic::new(ErrorCode::E0101, "there is no preprocessor");
                match (words.next(), words.next()) {
                    (Some(name), Some(value)) if is_word(name) && number::scan(value).1.is_ok() => {
                        diagnostic.help(format!("declare a constant: `const {name}: u32 = {value}`"))
                    }
                    _ => diagnostic.help("declare a constant, or write out what the name stands for"),
                }
            }
            _ if line.starts_with("#[") => Diagnostic::new(ErrorCode::E0101, "there are no attributes in `#[…]`")
                .help("leave it out; the workgroup size is declared as `workgroup 64`"),
            _ => Diagnostic::new(ErrorCode::E0101, "there is no preprocessor").help("leave the line out"),
        };
        self.mistake(diagnostic, start, self.at);
        Kind::Bad
    }

    /// A run of characters that begin no token; the first is one.
    fn bad(&mut self) -> Kind {
        let start = self.at;
        if self.text.as_bytes()[start] == b'#' {
            return self.directive();
        }
        let begins_nothing = |c: &char| {
            !c.is_ascii_alphanumeric() && !"_`\" \t\r\n".contains(*c) && !PUNCTUATION.iter().any(|token| token.starts_with(*c))
        };
        let run = self.text[start..].chars().take_while(begins_nothing);
        // Comments begin with a character that division has, so the run is never empty.
        self.at += run.map(char::len_utf8).sum::<usize>().max(1);
        let first = self.text[start..].chars().next().unwrap_or_default();
        let shown = if first.is_whitespace() || first.is_control() {
            format!("the character U+{:04X}", u32::from(first))
        } else {
            format!("`{first}`")
        };
        let diagnostic = Diagnostic::new(ErrorCode::E0101, format!("{shown} begins no token"));
        let diagnostic = match first {
            '\'' => diagnostic.help("names that are not plain words are written in backticks"),
            '~' => diagnostic.fix("every bit is flipped by", Fix::Replace(Location::Text(span(start, start + 1)), "!".into())),
            '?' => diagnostic.help("a choice is written `select(condition, a, b)`"),
            '\u{A0}' | '\u{3000}' | '\u{2000}'..='\u{200F}' | '\u{FEFF}' => diagnostic
                .fix("use a plain space", Fix::Replace(Location::Text(span(start, start + first.len_utf8())), " ".into())),
            _ if first.is_alphabetic() => {
                diagnostic.help("words are made of a-z, A-Z, 0-9 and _; other names are written in backticks")
            }
            _ => diagnostic,
        };
        self.mistake(diagnostic, start, self.at);
        Kind::Bad
    }

    fn number(&mut self) -> Kind {
        let start = self.at;
        let (length, result) = number::scan(&self.text[start..]);
        self.at += length;
        if let Err(bad) = result {
            let diagnostic = match bad {
                BadNumber::Malformed { text, help, meant } => {
                    let diagnostic = Diagnostic::new(ErrorCode::E0103, format!("`{text}` is not a number"));
                    match meant {
                        Some(meant) => diagnostic.fix(help, Fix::Replace(Location::Text(span(start, self.at)), meant)),
                        None => diagnostic.help(help),
                    }
                }
                BadNumber::Overflow(scalar) => {
                    let infinity = format!("inf{}", number::suffix_of(scalar));
                    Diagnostic::new(ErrorCode::E0303, format!("the number is above the largest {scalar}"))
                        .fix("for infinity write", Fix::Replace(Location::Text(span(start, self.at)), infinity))
                }
            };
            self.mistake(diagnostic, start, self.at);
        }
        Kind::Number
    }

    /// The text between quotes, escapes resolved; `None` if the line ends before it does. Then it most likely should have ended
    /// before a `{`, which is left unread: what it opens will be closed.
    fn quoted(&mut self, quote: char) -> Option<String> {
        let start = self.at;
        let mut value = String::new();
        let mut brace = None;
        self.at += 1;
        loop {
            let at = self.at;
            let mut rest = self.text[at..].chars();
            let Some(c) = rest.next().filter(|c| *c != '\n') else {
                let (end, mistakes) = brace.unwrap_or((at, self.out.mistakes.count()));
                self.out.mistakes.truncate(mistakes);
                self.at = start + self.text[start..end].trim_end().len();
                let (what, end_mark) = if quote == '"' { ("string", "a double quote") } else { ("name", "a backtick") };
                self.mistake(
                    Diagnostic::new(ErrorCode::E0102, format!("the quoted {what} does not end on its line")).fix(
                        format!("end it with {end_mark}"),
                        Fix::InsertAfter(Location::Text(span(start, self.at)), quote.into()),
                    ),
                    start,
                    self.at,
                );
                return None;
            };
            if c == '{' && brace.is_none() {
                brace = Some((at, self.out.mistakes.count()));
            }
            self.at += c.len_utf8();
            if c == quote {
                return Some(value);
            }
            if c != '\\' {
                value.push(c);
                continue;
            }
            let escape = rest.next().filter(|c| *c != '\n');
            self.at += escape.map_or(0, char::len_utf8);
            let resolved = match escape {
                Some('n') => Some('\n'),
                Some('t') => Some('\t'),
                Some('r') => Some('\r'),
                Some(c @ ('\\' | '`' | '"')) => Some(c),
                Some('u') => self.unicode_escape(),
                Some(_) | None => None,
            };
            match resolved {
                Some(c) => value.push(c),
                None => self.mistake(
                    Diagnostic::new(ErrorCode::E0102, "an unknown escape")
                        .help("the escapes are \\\\ \\` \\\" \\n \\t \\r and \\u{…} with up to six hex digits"),
                    at,
                    self.at,
                ),
            }
        }
    }

    /// The character of `{…}` after `\u`; what is no such thing is left unread.
    fn unicode_escape(&mut self) -> Option<char> {
        let digits = self.text[self.at..].strip_prefix('{')?;
        let length = digits.bytes().take(7).position(|byte| byte == b'}')?;
        let digits = digits.get(..length).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        let c = char::from_u32(u32::from_str_radix(digits, 16).ok()?)?;
        self.at += length + 2;
        Some(c)
    }
}

/// Offsets of a text that is shorter than 4 GiB.
pub(super) fn span(start: usize, end: usize) -> Span {
    Span { start: start as u32, end: end as u32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<(Kind, &str)> {
        let lexed = lex(text);
        assert!(lexed.mistakes.is_empty(), "{text}: {:?}", lexed.mistakes);
        kinds_of(&lexed, text)
    }

    fn kinds_of<'a>(lexed: &Lexed<'_>, text: &'a str) -> Vec<(Kind, &'a str)> {
        let slice = |span: Span| &text[span.start as usize..span.end as usize];
        lexed.tokens.iter().map(|token| (token.kind, slice(token.span))).collect()
    }

    fn codes(text: &str) -> Vec<ErrorCode> {
        lex(text).mistakes.found().iter().map(|mistake| mistake.code).collect()
    }

    #[test]
    fn the_longest_operator_wins() {
        let expected = ["<<", "<=", "<", "..", ".", "&&", "&", "!=", "!", "==", "="].map(|token| (Kind::Punct, token));
        assert_eq!(kinds("<<<=<...&&&!=! ==="), [&expected[..], &[(Kind::End, "")]].concat());
    }

    #[test]
    fn comments_and_line_ends_are_kept_beside_the_tokens() {
        let lexed = lex("a // one \r\n  // two\r\nb c");
        let newlines: Vec<bool> = lexed.tokens.iter().map(|token| token.newline_before).collect();
        assert_eq!(newlines, [true, true, false, false]);
        let comments: Vec<_> = lexed.comments.iter().map(|c| (c.span.start, c.span.end, c.next, c.own_line)).collect();
        assert_eq!(comments, [(2, 8, 1, false), (13, 19, 1, true)]);
    }

    #[test]
    fn quotes_and_escapes() {
        let text = "`a b` \"x\\\"\\n\\u{1F600}\\`\" `` `\\u{0}`";
        let says: Vec<(Kind, String)> = kinds(text)[..4].iter().map(|(kind, token)| (*kind, unquoted(token))).collect();
        let expected = [(Kind::Quoted, "a b"), (Kind::String, "x\"\n\u{1F600}`"), (Kind::Quoted, ""), (Kind::Quoted, "\0")];
        assert_eq!(says, expected.map(|(kind, says)| (kind, says.to_string())));
        assert_eq!(codes("`abc\nx"), [ErrorCode::E0102]);
        assert_eq!(codes("\"abc"), [ErrorCode::E0102]);
        assert_eq!(codes("`\\"), [ErrorCode::E0102, ErrorCode::E0102]);
        for escape in ["\\q", "\\u", "\\u{", "\\u{}", "\\u{110000}", "\\u{d800}", "\\u{0000001}", "\\u{+1}", "\\u{é}"] {
            assert_eq!(codes(&format!("`{escape}`")), [ErrorCode::E0102], "{escape}");
        }
    }

    #[test]
    fn one_mistake_for_a_run_of_foreign_characters() {
        let text = "a = é§$%&b";
        let lexed = lex(text);
        assert_eq!(lexed.mistakes.count(), 1);
        let expected = [
            (Kind::Word, "a"),
            (Kind::Punct, "="),
            (Kind::Bad, "é§$"),
            (Kind::Punct, "%"),
            (Kind::Punct, "&"),
            (Kind::Word, "b"),
            (Kind::End, ""),
        ];
        assert_eq!(kinds_of(&lexed, text), expected);
        assert_eq!(lex(&"§ ".repeat(10_000)).mistakes.count(), 10_000);
        assert_eq!(kinds("\u{FEFF}a"), [(Kind::Word, "a"), (Kind::End, "")]);
    }
}
