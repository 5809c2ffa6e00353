//! What the words of a text are, for whoever colours it. Any text can be classified, also one with mistakes: what a name stands for is
//! told by the declarations in sight, not by the validator.

use super::lexer::{Kind, lex, unquoted};
use super::names::{Keyword, Role, is_builtin_base};
use super::types::is_type_word;
use crate::diagnostic::Span;
use crate::ir::Access;
use std::collections::HashSet;
use vyre_spec::{AtomicOp, BinaryOp, Builtin, OpId, Spelling, SubgroupOp, TernaryOp, UnaryOp};

/// What a part of a text is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Class {
    /// From `//` to the end of the line.
    Comment,
    /// A word of the language.
    Keyword,
    /// A type.
    Type,
    /// A function, an atomic or a subgroup operation.
    Function,
    /// An id or a count, such as `gid.x`.
    Builtin,
    /// A buffer.
    Buffer,
    /// A constant that a launch can change.
    Constant,
    /// A variable, or a name that nothing in sight declares.
    Variable,
    /// A component of a vector.
    Component,
    /// A number, `true`, `false`, `inf` or `nan`.
    Number,
    /// A string.
    String,
    /// An operator.
    Operator,
}

/// The words that begin and make up declarations and statements, in the order of their table.
pub fn keywords() -> impl Iterator<Item = &'static str> {
    let words = Keyword::ALL.iter().filter(|keyword| !matches!(keyword.role(), Role::Value)).map(|keyword| keyword.word());
    words.chain(WORDS)
}

/// Words that are keywords at their place and can be names elsewhere.
const WORDS: [&str; 4] = ["program", "raw", "subgroup", "dtype"];

/// The words that stand for values.
pub fn value_words() -> impl Iterator<Item = &'static str> {
    let words = Keyword::ALL.iter().filter(|keyword| matches!(keyword.role(), Role::Value)).map(|keyword| keyword.word());
    words.filter(|word| *word != Keyword::Bitcast.word())
}

/// The functions that are called by name: ops without operators, and those that are no ops.
pub fn functions() -> impl Iterator<Item = &'static str> {
    let ops = OpId::all().filter(|op| matches!(op, OpId::Unary(_) | OpId::Binary(_) | OpId::Ternary(_)));
    let named = ops.map(OpId::info).filter(|info| matches!(info.spelling, Spelling::Call)).map(|info| info.mnemonic);
    named.chain(["len", "vec", Keyword::Bitcast.word()])
}

fn is_function(word: &str) -> bool {
    UnaryOp::from_mnemonic(word).is_some()
        || BinaryOp::from_mnemonic(word).is_some()
        || TernaryOp::from_mnemonic(word).is_some()
        || ["len", "vec"].contains(&word)
}

/// The parts of a text that are something, in order; brackets, commas and space are nothing. The text must be shorter than 4 GiB.
#[must_use]
pub fn classify(text: &str) -> Vec<(Span, Class)> {
    let lexed = lex(text);
    let said = |n: usize| {
        let span = lexed.tokens.get(n.min(lexed.tokens.len() - 1)).span;
        &text[span.start as usize..span.end as usize]
    };
    let declared = |keyword: &str| -> HashSet<String> {
        let named = (1..lexed.tokens.len()).filter(|n| said(n - 1) == keyword);
        named.map(|n| if lexed.tokens.kind(n) == Kind::Quoted { unquoted(said(n)) } else { said(n).into() }).collect()
    };
    let (buffers, constants) = (declared(Keyword::Buffer.word()), declared(Keyword::Const.word()));
    let mut parts: Vec<(Span, Class)> = lexed.comments.iter().map(|comment| (comment.span, Class::Comment)).collect();
    for (n, token) in lexed.tokens.iter().enumerate() {
        let before = if n > 0 { said(n - 1) } else { "" };
        let (word, next) = (said(n), said(n + 1));
        let name = |name: &str| match (buffers.contains(name), constants.contains(name)) {
            (true, _) => Class::Buffer,
            (false, true) => Class::Constant,
            (false, false) => Class::Variable,
        };
        let class = match token.kind {
            Kind::Number => Class::Number,
            Kind::String => Class::String,
            Kind::Quoted => name(&unquoted(word)),
            Kind::Punct if ["{", "}", "(", ")", "[", "]", ",", ":", ";", ".", "@"].contains(&word) => continue,
            Kind::Punct => Class::Operator,
            Kind::Bad | Kind::End => continue,
            Kind::Word if before == "." => match said(n.saturating_sub(2)) {
                "atomic" if AtomicOp::from_mnemonic(word).is_some() => Class::Function,
                "subgroup" if SubgroupOp::from_mnemonic(word).is_some() => Class::Function,
                "barrier" => Class::Keyword,
                base if Builtin::from_parts(base, word).is_some() => Class::Builtin,
                _ => Class::Component,
            },
            Kind::Word
                if next == "."
                    && (word == "atomic" || (word == "subgroup" && SubgroupOp::from_mnemonic(said(n + 2)).is_some())) =>
            {
                Class::Function
            }
            Kind::Word if next == "." && is_builtin_base(word) => Class::Builtin,
            Kind::Word if matches!(before, "buffer" | "const" | "let" | "for" | "program") => name(word),
            Kind::Word if value_words().any(|value| value == word) => Class::Number,
            Kind::Word if word == Keyword::Bitcast.word() => Class::Function,
            Kind::Word if Keyword::from_word(word).is_some() => Class::Keyword,
            Kind::Word if word == "program" || word == "raw" || (word == "subgroup" && next != ".") => Class::Keyword,
            // After the colon of a declaration stand its access and its type.
            Kind::Word if before == ":" && (Access::from_name(word).is_some() || word == "dtype") => Class::Keyword,
            Kind::Word if next == "(" && is_function(word) => Class::Function,
            Kind::Word if is_type_word(word) => Class::Type,
            Kind::Word if before == "floats" => Class::Keyword,
            Kind::Word => name(word),
        };
        parts.push((token.span, class));
    }
    parts.sort_by_key(|(span, _)| span.start);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classes(text: &str) -> Vec<(&str, Class)> {
        classify(text).into_iter().map(|(span, class)| (&text[span.start as usize..span.end as usize], class)).collect()
    }

    #[test]
    fn words_are_what_they_stand_for() {
        use Class::*;
        let text = "program p {\n  workgroup 64 // é\n  const n: u32 = 3\n  buffer min: read vec2<f32> @0\n  let a = min(n, min[gid.x].y)\n  let o = atomic.add(out, 0, bitcast<u32>(-inf))\n  region \"r\" { barrier.grid }\n}";
        let expected = [
            ("program", Keyword),
            ("p", Variable),
            ("workgroup", Keyword),
            ("64", Number),
            ("// é", Comment),
            ("const", Keyword),
            ("n", Constant),
            ("u32", Type),
            ("=", Operator),
            ("3", Number),
            ("buffer", Keyword),
            ("min", Buffer),
            ("read", Keyword),
            ("vec2", Type),
            ("<", Operator),
            ("f32", Type),
            (">", Operator),
            ("0", Number),
            ("let", Keyword),
            ("a", Variable),
            ("=", Operator),
            ("min", Function),
            ("n", Constant),
            ("min", Buffer),
            ("gid", Builtin),
            ("x", Builtin),
            ("y", Component),
            ("let", Keyword),
            ("o", Variable),
            ("=", Operator),
            ("atomic", Function),
            ("add", Function),
            ("out", Variable),
            ("0", Number),
            ("bitcast", Function),
            ("<", Operator),
            ("u32", Type),
            (">", Operator),
            ("-", Operator),
            ("inf", Number),
            ("region", Keyword),
            ("\"r\"", String),
            ("barrier", Keyword),
            ("grid", Keyword),
        ];
        assert_eq!(classes(text), expected);
    }

    #[test]
    fn any_text_is_classified_and_parts_do_not_overlap() {
        for text in ["", ".", "buffer", "x.", "🙂 let \"", "let let . . < (", "\u{FEFF}program", "buffer `a b`: `a b`"] {
            let parts = classify(text);
            assert!(parts.windows(2).all(|pair| pair[0].0.end <= pair[1].0.start), "{text}");
        }
        assert_eq!(classes("buffer `a b`: x\n`a b`[0]")[3], ("`a b`", Class::Buffer));
    }
}
