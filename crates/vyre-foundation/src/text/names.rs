//! Which names need quotes, and how quotes are written.
//!
//! Reserved are the words that begin statements and declarations, the words that stand for values, and `bitcast`, whose `<` would
//! else be a comparison. Names of types and functions are not: they mean something only before `(` or where a type stands, and
//! no variable is followed by `(`. So `let min = min(a, b)` is fine.

use super::lexer::is_word;
use std::fmt::{self, Write};
use vyre_spec::Builtin;

/// What a keyword is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Begins a declaration that most programs have.
    Declaration,
    /// Begins a declaration of how the program is run.
    Attribute,
    /// Begins a statement.
    Statement,
    /// Stands before the point of an operation, which is a statement.
    Operation,
    /// Stands inside of statements.
    Inside,
    /// Begins or is an expression.
    Value,
}

/// The keywords: an enum of them, and what each is for. The first halves of ids (`gid`, `subgroup`, …) are reserved as well; they come
/// from their table.
macro_rules! keywords {
    ($( $keyword:ident $word:literal $role:ident; )*) => {
        #[derive(Clone, Copy, PartialEq, Eq)]
        pub(super) enum Keyword {
            $( $keyword, )*
        }

        impl Keyword {
            pub(super) const ALL: &[Keyword] = &[$( Keyword::$keyword ),*];

            pub(super) const fn word(self) -> &'static str {
                match self { $( Keyword::$keyword => $word, )* }
            }

            pub(super) const fn role(self) -> Role {
                match self { $( Keyword::$keyword => Role::$role, )* }
            }

            pub(super) fn from_word(word: &str) -> Option<Keyword> {
                match word {
                    $( $word => Some(Keyword::$keyword), )*
                    _ => None,
                }
            }
        }
    };
}

// Suggestions name the first of those that are equally near.
keywords! {
    Let "let" Statement;
    If "if" Statement;
    For "for" Statement;
    Break "break" Statement;
    Continue "continue" Statement;
    Return "return" Statement;
    Barrier "barrier" Statement;
    Trap "trap" Statement;
    Region "region" Statement;
    Buffer "buffer" Declaration;
    Const "const" Declaration;
    Workgroup "workgroup" Declaration;
    Floats "floats" Attribute;
    Atomic "atomic" Operation;
    Else "else" Inside;
    In "in" Inside;
    True "true" Value;
    False "false" Value;
    Inf "inf" Value;
    Nan "nan" Value;
    Infd "infd" Value;
    Nand "nand" Value;
    Bitcast "bitcast" Value;
}

/// Whether the word cannot be a name without quotes.
pub(super) fn is_reserved(word: &str) -> bool {
    Keyword::from_word(word).is_some() || is_builtin_base(word)
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
        for reserved in Keyword::ALL.iter().map(|keyword| keyword.word()).chain(["gid", "lid_count", "subgroup"]) {
            assert_eq!(spelled(reserved), format!("`{reserved}`"));
        }
        assert_eq!(spelled(""), "``");
        assert_eq!(spelled("1a"), "`1a`");
        assert_eq!(spelled("a b`\\\n\0\u{202E}é\""), "`a b\\`\\\\\\n\\u{0}\\u{202e}é\"`");
    }
}
