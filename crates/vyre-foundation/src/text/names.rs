//! Which names need quotes, and how quotes are written.
//!
//! Reserved are the words that begin statements and declarations, the words that stand for values, and `bitcast`, whose `<` would
//! else be a comparison. Names of types and functions are not: they mean something only before `(` or where a type stands, and
//! no variable is followed by `(`. So `let min = min(a, b)` is fine.

use super::lexer::is_word;
use std::fmt::{self, Write};
use vyre_spec::Builtin;

/// The reserved words beside the first halves of ids (`gid`, `subgroup`, …), which come from their table.
const RESERVED: [&str; 23] = [
    "atomic",
    "barrier",
    "bitcast",
    "break",
    "buffer",
    "const",
    "continue",
    "else",
    "false",
    "floats",
    "for",
    "if",
    "in",
    "inf",
    "infd",
    "let",
    "nan",
    "nand",
    "region",
    "return",
    "trap",
    "true",
    "workgroup",
];

/// Whether the word cannot be a name without quotes.
pub(super) fn is_reserved(word: &str) -> bool {
    RESERVED.contains(&word) || is_builtin_base(word)
}

/// Whether the word is the first half of an id, such as `gid`.
pub(super) fn is_builtin_base(word: &str) -> bool {
    Builtin::ALL.iter().any(|builtin| builtin.parts().0 == word)
}

/// A name: bare where possible, else in backticks.
pub(super) fn write_name(out: &mut dyn Write, name: &str) -> fmt::Result {
    if is_word(name) && !is_reserved(name) { out.write_str(name) } else { write_quoted(out, name, '`') }
}

/// A name in these quotes. Characters that cannot be seen are written as escapes, so that no two names look alike for their sake.
pub(super) fn write_quoted(out: &mut dyn Write, name: &str, quote: char) -> fmt::Result {
    out.write_char(quote)?;
    for c in name.chars() {
        match c {
            '\n' => out.write_str("\\n")?,
            '\t' => out.write_str("\\t")?,
            '\r' => out.write_str("\\r")?,
            '\\' => out.write_str("\\\\")?,
            _ if c == quote => write!(out, "\\{c}")?,
            ' '..='~' => out.write_char(c)?,
            '\0'..='\x1F' | '\x7F' => write!(out, "\\u{{{:x}}}", u32::from(c))?,
            _ => write!(out, "{}", c.escape_debug())?,
        }
    }
    out.write_char(quote)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spelled(name: &str) -> String {
        let mut out = String::new();
        write_name(&mut out, name).expect("strings take everything");
        out
    }

    #[test]
    fn names_are_bare_where_they_can_be() {
        for bare in ["a", "_", "min", "f32", "len", "vec", "program", "read", "x1", "tensor"] {
            assert_eq!(spelled(bare), bare);
        }
        for reserved in RESERVED.iter().chain(&["gid", "lid_count", "subgroup"]) {
            assert_eq!(spelled(reserved), format!("`{reserved}`"));
        }
        assert_eq!(spelled(""), "``");
        assert_eq!(spelled("1a"), "`1a`");
        assert_eq!(spelled("a b`\\\n\0\u{202E}é\""), "`a b\\`\\\\\\n\\u{0}\\u{202e}é\"`");
    }
}
