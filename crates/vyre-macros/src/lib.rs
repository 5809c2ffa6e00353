//! `vyre::kernel!`: a program that is checked when the crate around it is compiled; see `vyre::kernel` for what it gives.
//!
//! `tokens` makes a text of what stands in the macro, which is read and checked here; `generate` writes the Rust items for it. Nothing else is
//! linked in: items are written as text, and mistakes are `compile_error!`s that get the spans of the tokens they are about.

mod generate;
mod tokens;

use proc_macro::{Delimiter, Group, Ident, Literal, Punct, Spacing, Span, TokenStream, TokenTree};
use std::path::{Path, PathBuf};
use tokens::{Placed, Text};
use vyre_foundation::Report;
use vyre_foundation::text::{parse, summary};

/// Called by `vyre::kernel!` with `$crate` and a group of what stands in it.
#[proc_macro]
pub fn kernel(input: TokenStream) -> TokenStream {
    let mut input = input.into_iter();
    match (input.next(), input.next()) {
        (Some(vyre), Some(TokenTree::Group(group))) => match expand(group) {
            Ok(items) => put_crate(items, &vyre),
            Err(mistakes) => mistakes,
        },
        _ => mistake("this macro is what `vyre::kernel!` is made of. Fix: use that", Span::call_site(), Span::call_site()),
    }
}

/// What stands before the text.
struct Head {
    /// Attributes and visibility, as they go before the struct.
    attributes: TokenStream,
    visibility: TokenStream,
}

fn expand(group: Group) -> Result<TokenStream, TokenStream> {
    let mut tokens = group.stream().into_iter().peekable();
    let mut head = Head { attributes: TokenStream::new(), visibility: TokenStream::new() };
    while matches!(tokens.peek(), Some(TokenTree::Punct(punct)) if punct.as_char() == '#') {
        head.attributes.extend(tokens.by_ref().take(2));
    }
    if matches!(tokens.peek(), Some(TokenTree::Ident(word)) if word.to_string() == "pub") {
        head.visibility.extend(tokens.next());
        if matches!(tokens.peek(), Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis) {
            head.visibility.extend(tokens.next());
        }
    }
    let rest: Vec<TokenTree> = tokens.collect();
    let end = group.span_close();
    match rest.as_slice() {
        [TokenTree::Ident(word), TokenTree::Punct(equals), TokenTree::Literal(path)]
            if word.to_string() == "file" && equals.as_char() == '=' =>
        {
            from_file(head, path)
        }
        [TokenTree::Literal(text)] => from_string(head, text),
        [TokenTree::Ident(word), ..] if word.to_string() == "program" => from_tokens(head, rest, end),
        [] => Err(mistake(USAGE, end, end)),
        [first, ..] => Err(mistake(USAGE, first.span(), first.span())),
    }
}

const USAGE: &str = "expected `program name { … }`, `file = \"path\"` or a string with the text of a program";

/// A text that stands in the macro: mistakes are at its tokens.
fn from_tokens(head: Head, tokens: Vec<TokenTree>, end: Span) -> Result<TokenStream, TokenStream> {
    let text = Text::of(placed(tokens));
    let found = |report: &Report| {
        let of = |diagnostic: &vyre_foundation::Diagnostic| {
            let source = report.source.as_deref();
            let place = source.zip(diagnostic.location).map(|(source, location)| source.span(location));
            let (from, to) = place.map_or((end, end), |span| match text.tokens_at(span.start as usize, span.end as usize) {
                Some((from, to)) => (*from, *to),
                None => (end, end),
            });
            mistake(&summary(source, diagnostic), from, to)
        };
        report.diagnostics.iter().map(of).collect::<TokenStream>()
    };
    let program = parse("kernel!", &text.text).map_err(|report| found(&report))?;
    program.validated().map_err(found)?;
    items(head, &program, &format!("{:?}", text.text), "kernel!", end)
}

/// A text in a string: mistakes are drawn into it, since a part of a string has no span.
fn from_string(head: Head, literal: &Literal) -> Result<TokenStream, TokenStream> {
    let at = literal.span();
    let text = unquoted(literal).ok_or_else(|| mistake(USAGE, at, at))?;
    let program = checked("kernel!", &text).map_err(|report| mistake(&report.to_string(), at, at))?;
    items(head, &program, &literal.to_string(), "kernel!", at)
}

/// A file, by its path from the file that the macro stands in.
fn from_file(head: Head, literal: &Literal) -> Result<TokenStream, TokenStream> {
    let at = literal.span();
    let name = unquoted(literal).ok_or_else(|| mistake("the path is a string: `file = \"kernels/blur.vyre\"`", at, at))?;
    let path = beside(at).join(&name);
    let read = std::fs::read_to_string(&path);
    let text = read.map_err(|error| mistake(&format!("cannot read {}: {error}", path.display()), at, at))?;
    let program = checked(&name, &text).map_err(|report| mistake(&report.to_string(), at, at))?;
    // Included, so that the crate is compiled again when the file changes.
    items(head, &program, &format!("::core::include_str!({literal})"), &name, at)
}

fn checked(name: &str, text: &str) -> Result<vyre_foundation::ir::Program, Report> {
    let program = parse(name, text)?;
    program.validated().map_err(Clone::clone)?;
    Ok(program)
}

/// The directory of the file that a token stands in; that of the package where the compiler does not say.
fn beside(span: Span) -> PathBuf {
    let file = span.local_file().and_then(|file| file.parent().map(Path::to_path_buf));
    file.or_else(|| std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from)).unwrap_or_default()
}

fn items(
    head: Head,
    program: &vyre_foundation::ir::Program,
    text: &str,
    name: &str,
    at: Span,
) -> Result<TokenStream, TokenStream> {
    let written = generate::items(program, text, name, &head.attributes.to_string(), &head.visibility.to_string());
    let written = written.map_err(|message| mistake(&message, at, at))?;
    written.parse().map_err(|error| mistake(&format!("the items of this kernel cannot be read: {error}"), at, at))
}

/// What a string literal says, if it is one.
fn unquoted(literal: &Literal) -> Option<String> {
    let text = literal.to_string();
    if let Some(raw) = text.strip_prefix('r') {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        return Some(raw.get(hashes + 1..raw.len().checked_sub(hashes + 1)?)?.to_string());
    }
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    let mut out = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        match (c, c == '\\') {
            (c, false) => out.push(c),
            (_, true) => match chars.next()? {
                'n' => out.push('\n'),
                't' => out.push('\t'),
                '\n' => {
                    let rest = chars.as_str().trim_start();
                    chars = rest.chars();
                }
                same @ ('\\' | '"' | '\'') => out.push(same),
                _ => return None,
            },
        }
    }
    Some(out)
}

/// The tokens of a text with their places, delimiters as tokens of their own.
fn placed(tokens: impl IntoIterator<Item = TokenTree>) -> Vec<Placed<Span>> {
    let mut all = Vec::new();
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                all.push(at(open, group.span_open(), false));
                all.extend(placed(group.stream()));
                all.push(at(close, group.span_close(), false));
            }
            // `///` is a comment to vyre, and an attribute by the time it gets here.
            TokenTree::Punct(punct) if punct.as_char() == '#' && matches!(tokens.peek(), Some(TokenTree::Group(_))) => {
                tokens.next();
            }
            TokenTree::Punct(punct) => {
                all.push(at(&punct.as_char().to_string(), punct.span(), punct.spacing() == Spacing::Joint));
            }
            TokenTree::Ident(word) => all.push(at(&word.to_string(), word.span(), false)),
            TokenTree::Literal(literal) => all.push(at(&literal.to_string(), literal.span(), false)),
        }
    }
    all
}

fn at(text: &str, span: Span, joint: bool) -> Placed<Span> {
    let start = span.start();
    Placed { text: text.into(), line: start.line(), column: start.column(), joint, span }
}

/// `compile_error!` from one token to another.
fn mistake(message: &str, from: Span, to: Span) -> TokenStream {
    let mut text = Literal::string(message);
    text.set_span(to);
    let mut group = Group::new(Delimiter::Brace, TokenTree::from(text).into());
    group.set_span(to);
    let punct = |c: char, spacing| {
        let mut punct = Punct::new(c, spacing);
        punct.set_span(from);
        TokenTree::from(punct)
    };
    let word = |word: &str| TokenTree::from(Ident::new(word, from));
    TokenStream::from_iter([
        punct(':', Spacing::Joint),
        punct(':', Spacing::Alone),
        word("core"),
        punct(':', Spacing::Joint),
        punct(':', Spacing::Alone),
        word("compile_error"),
        punct('!', Spacing::Alone),
        TokenTree::from(group),
    ])
}

/// The items with `$crate` in the place of the word that stands for it: the crate may have another name where it is used.
fn put_crate(items: TokenStream, vyre: &TokenTree) -> TokenStream {
    let put = |token: TokenTree| match token {
        TokenTree::Ident(word) if word.to_string() == generate::CRATE => vyre.clone(),
        TokenTree::Group(group) => {
            let mut changed = Group::new(group.delimiter(), put_crate(group.stream(), vyre));
            changed.set_span(group.span());
            changed.into()
        }
        token @ (TokenTree::Ident(_) | TokenTree::Punct(_) | TokenTree::Literal(_)) => token,
    };
    items.into_iter().map(put).collect()
}
