//! Tokens to the tree of [`super::ast`]: what all parts of the grammar share, and the program as a whole.
//!
//! ```text
//! text        = ("program" (name | string) | "raw") "{" declaration* statement* "}"
//! declaration = "workgroup" size [size [size]] | "floats" mode | "subgroup" number
//!             | "const" name ":" kind "=" value | "buffer" name ":" access (type | name) ["[" size "]"] ["@" number]
//! statement   = "let" name "=" (expression | operation) | name "=" expression | name "[" expression "]" "=" expression
//!             | operation | "if" expression block ["else" (block | if)] | "for" name "in" expression ".." expression block
//!             | "break" | "continue" | "return" | "barrier" ["." ordering] | "trap" "(" number ")" | block | "region" string block
//! operation   = "atomic" "." op "(" name "," expression ("," expression)* ")" | "subgroup" "." op "(" arguments ")"
//! ```
//!
//! Declarations and statements end with their lines; inside them line ends are space. That is no ambiguity, because none of them
//! begins with an operator, `(`, `[` or `.`.
//!
//! The parser is recursive, and its depth is bounded: what would nest deeper than [`MAX_NESTING`] in the IR is refused before it is
//! built, however flat it looks (a sum of a thousand terms is a thousand deep).
//!
//! After a mistake the parser goes on, so that one run reports many. Where it can be seen how the text goes on, as behind an unknown
//! function or a number that is too large, something unknown stands in. Else the statement or declaration is left out and the parser
//! goes on with the next; the names that it may have declared are poisoned, so that they are not missing. Either way the validator looks
//! at all the rest. Only if the braces do not match is the tree not lowered: then nobody can say what is inside of what.
//!
//! What recurses is kept apart from what builds messages (`inline(never)`): a message takes more stack than a level of nesting.
//!
//! While it reads, the parser notes what it is asked for ([`Purpose`]): for the formatter which tokens make a line and which operators are
//! infix, or for messages where statements and expressions stand.

use super::ast::{Built, Header, Program, Reading};
use super::lexer::{Comment, Kind, Lexed, Token, Tokens, lex, number_at, unquoted};
use super::names::{Keyword, Role, is_reserved};
use super::number::Number;
use super::suggest::nearest;
use crate::diagnostic::{Diagnostic, Fix, Location, Mistakes, Span, TreeSpans};
use crate::ir::{Child, Expr, Literal, Name, NodeId};
use vyre_spec::limits::MAX_NESTING;
use vyre_spec::{ErrorCode, Precedence};

/// What the formatter needs to know about a token and cannot see.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Mark {
    /// Nothing.
    Plain,
    /// An operator between operands, that binds so.
    Infix(Precedence),
    /// An operator before its operand.
    Prefix,
    /// Touches what is before it: the `(` of a call, the `>` after a type.
    TightBefore,
    /// Touches both sides: the `<` of a type.
    Tight,
}

/// Tokens that stand on one line when they fit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    pub(super) first: usize,
    pub(super) last: usize,
    pub(super) indent: u32,
}

/// What a text is read for.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Purpose {
    /// For the program.
    Program,
    /// For its layout as well.
    Format,
    /// For the places of its statements and expressions, and nothing else. The same is read as for the program, mistakes and all.
    Spans,
}

/// A text as the parser sees it.
pub(super) struct Read<'a> {
    /// `None` if not even the frame of a program was found.
    pub(super) program: Option<Program>,
    /// Whether all of the text is in the program, mistakes and all.
    pub(super) complete: bool,
    /// Whether every opening brace has its closing one.
    pub(super) balanced: bool,
    pub(super) mistakes: Mistakes,
    /// Empty unless the text was read for them.
    pub(super) spans: TreeSpans,
    pub(super) tokens: Tokens<'a>,
    pub(super) comments: Vec<Comment>,
    pub(super) marks: Vec<Mark>,
    pub(super) lines: Vec<Line>,
}

/// Reads a text that is shorter than 4 GiB.
pub(super) fn read(text: &str, purpose: Purpose) -> Read<'_> {
    let (mut parser, comments) = Parser::new(text);
    parser.purpose = purpose;
    match purpose {
        Purpose::Program => {}
        Purpose::Format => parser.marks = vec![Mark::Plain; parser.tokens.len()],
        // Each statement and expression has a token of its own.
        Purpose::Spans => parser.spans.tree.reserve_exact(parser.tokens.len()),
    }
    let program = parser.program().ok();
    let Parser { tokens, marks, lines, complete, balanced, mut mistakes, lexer_mistakes, spans, .. } = parser;
    mistakes.append(lexer_mistakes);
    Read { program, complete, balanced, mistakes, spans, tokens, comments, marks, lines }
}

/// How much was noted about the tree when something began: to go back to it, or to put something before what was noted since.
#[derive(Clone, Copy)]
pub(super) struct Begin {
    readings: usize,
    tree: usize,
    results: usize,
    operations: usize,
}

/// A mistake was reported. A caller that can continue after it does.
pub(super) struct Skip;

/// A name and where it stands.
pub(super) type Named = (Name, Span);

/// What was read, or [`Skip`].
pub(super) type Parsed<T> = Result<T, Skip>;

pub(super) struct Parser<'a> {
    pub(super) text: &'a str,
    pub(super) tokens: Tokens<'a>,
    /// The number of the next token; at most that of [`Kind::End`].
    pub(super) at: usize,
    pub(super) mistakes: Mistakes,
    /// Those that were found before it began.
    pub(super) lexer_mistakes: Mistakes,
    /// The token of the last mistake: a second one at the same place would say the same.
    pub(super) last_mistake: Option<usize>,
    /// Whether nothing was left out of the tree.
    complete: bool,
    /// Whether every opening brace has its closing one.
    balanced: bool,
    /// Whether a number or a type that was read since this was last cleared is a stand-in.
    pub(super) stood_in: bool,
    /// Whether the nest of statements that the parser is in was reported to be too deep.
    pub(super) deep_nest: bool,
    /// Keywords that were misused as names (`let if = 1`), which was reported; where no keyword can stand they are read as names.
    misnamed: Vec<&'a str>,
    /// Keywords that a buffer or a constant has as its name, in quotes.
    declared_keywords: Vec<Name>,
    pub(super) header: Header,
    /// Declarations that were begun but are wrong; their absence is not reported on top.
    pub(super) broken_workgroup: bool,
    /// Whether the first half of a `>>` that closes two types was used.
    pub(super) half_used: bool,
    /// The token before which an operand is missing, which was reported: the operator ends its line, and the next line is a statement.
    pub(super) missing_operand: Option<usize>,
    /// How many parentheses around expressions are open. They leave nothing in the tree, so its depth does not bound them.
    pub(super) parens: u32,
    /// Inside of how many things that were told to be from other languages the parser is; they are read, and nothing is said about
    /// how they are written.
    pub(super) quiet: u32,
    /// Names of functions, types and macros, which there are not, as was told.
    pub(super) told_names: Vec<&'a str>,
    /// Declarations of other languages that were read, as they are written here.
    pub(super) translated: Vec<String>,
    /// Whether the statement that was read last is a declaration of another language.
    pub(super) is_head: bool,
    /// Whether the statement was told to be from another language, to which a `;` belongs.
    told_statement: bool,
    /// What is said beside the tree about its literals and vectors.
    readings: Vec<Reading>,
    purpose: Purpose,
    spans: TreeSpans,
    marks: Vec<Mark>,
    lines: Vec<Line>,
    line_start: usize,
    pub(super) indent: u32,
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str) -> (Self, Vec<Comment>) {
        let Lexed { tokens, comments, mistakes } = lex(text);
        let parser = Parser {
            text,
            readings: Vec::new(),
            purpose: Purpose::Program,
            spans: TreeSpans::default(),
            marks: Vec::new(),
            tokens,
            at: 0,
            mistakes: Mistakes::default(),
            lexer_mistakes: mistakes,
            last_mistake: None,
            complete: true,
            balanced: true,
            stood_in: false,
            deep_nest: false,
            misnamed: Vec::new(),
            declared_keywords: Vec::new(),
            header: Header::default(),
            broken_workgroup: false,
            half_used: false,
            missing_operand: None,
            parens: 0,
            quiet: 0,
            told_names: Vec::new(),
            translated: Vec::new(),
            is_head: false,
            told_statement: false,
            lines: Vec::new(),
            line_start: 0,
            indent: 0,
        };
        (parser, comments)
    }

    // Tokens.

    pub(super) fn token(&self) -> Token {
        self.tokens.get(self.at)
    }

    /// What the next token is.
    pub(super) fn kind(&self) -> Kind {
        self.tokens.kind(self.at)
    }

    pub(super) fn span(&self) -> Span {
        self.token().span
    }

    /// The span of the token before the next one; where an empty thing stands.
    pub(super) fn previous(&self) -> Span {
        self.tokens.get(self.at.saturating_sub(1)).span
    }

    pub(super) fn slice(&self, span: Span) -> &'a str {
        &self.text[span.start as usize..span.end as usize]
    }

    /// The token that many places ahead.
    pub(super) fn ahead(&self, places: usize) -> Token {
        self.tokens.get((self.at + places).min(self.tokens.len() - 1))
    }

    /// The next token, if it is a word; keywords are words.
    pub(super) fn word(&self) -> Option<&'a str> {
        self.word_ahead(0)
    }

    pub(super) fn word_ahead(&self, places: usize) -> Option<&'a str> {
        let n = (self.at + places).min(self.tokens.len() - 1);
        (self.tokens.kind(n) == Kind::Word).then(|| self.slice(self.tokens.get(n).span))
    }

    pub(super) fn punct(&self) -> Option<&'a str> {
        self.punct_ahead(0)
    }

    pub(super) fn punct_ahead(&self, places: usize) -> Option<&'a str> {
        self.punct_at((self.at + places).min(self.tokens.len() - 1))
    }

    /// The operator or bracket that a token is.
    pub(super) fn punct_at(&self, n: usize) -> Option<&'a str> {
        (self.tokens.kind(n) == Kind::Punct).then(|| self.slice(self.tokens.get(n).span))
    }

    pub(super) fn is(&self, token: &str) -> bool {
        self.punct() == Some(token)
    }

    /// Whether the token before the next one is this.
    pub(super) fn previous_is(&self, token: &'static str) -> bool {
        self.punct_at(self.at.saturating_sub(1)) == Some(token)
    }

    pub(super) fn at_end(&self) -> bool {
        self.kind() == Kind::End
    }

    /// Takes the next token; the end stays.
    pub(super) fn bump(&mut self) -> Span {
        let span = self.span();
        if !self.at_end() {
            self.at += 1;
        }
        span
    }

    pub(super) fn bump_marked(&mut self, mark: Mark) -> Span {
        self.mark(mark);
        self.bump()
    }

    /// Marks the next token for the formatter.
    pub(super) fn mark(&mut self, mark: Mark) {
        if self.purpose == Purpose::Format {
            self.marks[self.at] = mark;
        }
    }

    pub(super) fn expect(&mut self, token: &'static str) -> Parsed<Span> {
        if self.is(token) { Ok(self.bump()) } else { Err(self.unexpected(format!("`{token}`"))) }
    }

    // Mistakes.

    /// Reports a mistake in what was read already.
    pub(super) fn mistake(&mut self, diagnostic: Diagnostic) {
        self.mistakes.push(diagnostic);
    }

    /// Reports a mistake at the next token, unless one was reported there. What is wrong is read all the same.
    #[cold]
    #[inline(never)]
    pub(super) fn mistake_here(&mut self, diagnostic: Diagnostic) {
        if self.last_mistake != Some(self.at) && self.kind() != Kind::Bad {
            let at = Location::Text(self.span());
            self.mistakes.push(if diagnostic.location.is_some() { diagnostic } else { diagnostic.at(at) });
        }
        self.last_mistake = Some(self.at);
    }

    /// Reports a mistake at the next token, unless one was reported there, and gives up what is being read.
    #[cold]
    #[inline(never)]
    pub(super) fn refuse(&mut self, diagnostic: Diagnostic) -> Skip {
        self.mistake_here(diagnostic);
        self.complete = false;
        Skip
    }

    /// The statement was told to be from another language.
    pub(super) fn was_told(&mut self) {
        self.told_statement = true;
    }

    /// Gives up what is being read after a mistake that was told.
    pub(super) fn left_out(&mut self) -> Skip {
        self.complete = false;
        Skip
    }

    /// Whether the next token is on a later line than the one before it.
    pub(super) fn line_ended(&self) -> bool {
        self.tokens.newline_before(self.at) && self.at > 0
    }

    /// The mistake that something else was expected than the next token. What is missing at the end of a line is missing there,
    /// and not in the line below.
    #[cold]
    #[inline(never)]
    pub(super) fn unexpected_diagnostic(&self, expected: impl Into<String>) -> Diagnostic {
        if !self.line_ended() {
            return self.unexpected_here(expected);
        }
        let end = self.previous().end;
        let found = if self.at_end() { "the end of the text" } else { "the end of the line" };
        not_expected(expected.into(), found.into()).at(Location::Text(Span { start: end, end }))
    }

    /// The same for what may begin a line.
    #[cold]
    #[inline(never)]
    pub(super) fn unexpected_here(&self, expected: impl Into<String>) -> Diagnostic {
        not_expected(expected.into(), self.found())
    }

    #[cold]
    #[inline(never)]
    pub(super) fn unexpected(&mut self, expected: impl Into<String>) -> Skip {
        let diagnostic = self.unexpected_diagnostic(expected);
        self.refuse(diagnostic)
    }

    /// The mistake that the operator before the next token ends its line and has no operand there. It is told at the operator.
    #[cold]
    #[inline(never)]
    pub(super) fn no_operand(&mut self) {
        let operator = self.previous();
        let expected = format!("an operand after `{}`", self.slice(operator));
        let found = if self.at_end() { "the end of the text" } else { "the end of the line" };
        self.refuse(not_expected(expected, found.into()).at(Location::Text(operator)));
    }

    /// The mistake that the next token is none of these words.
    #[cold]
    #[inline(never)]
    pub(super) fn unexpected_word(&mut self, words: &[&'static str]) -> Skip {
        let list: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
        let expected = match list.as_slice() {
            [rest @ .., last] if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
            list => list.join(", "),
        };
        let mut diagnostic = self.unexpected_diagnostic(expected);
        let word = self.word().filter(|_| !self.line_ended());
        if let Some(meant) = word.and_then(|word| nearest(word, words.iter().copied())) {
            diagnostic = diagnostic.fix("did you mean", Fix::Replace(Location::Text(self.span()), meant.into()));
        }
        self.refuse(diagnostic)
    }

    /// The next token, for people.
    fn found(&self) -> String {
        let token = self.token();
        let text = self.slice(token.span);
        let mut shown: String = text.chars().take(40).collect();
        if shown.len() < text.len() {
            shown.push('…');
        }
        match token.kind {
            Kind::Word if is_reserved(text) => format!("the keyword `{shown}`"),
            Kind::Quoted => format!("the name {shown}"),
            Kind::String => format!("the string {shown}"),
            Kind::Word | Kind::Number | Kind::Punct | Kind::Bad => format!("`{shown}`"),
            Kind::End => "the end of the text".into(),
        }
    }

    /// Refuses what would stand at a depth that is not allowed.
    pub(super) fn check_depth(&mut self, depth: u32) -> Parsed<()> {
        if depth <= MAX_NESTING { Ok(()) } else { Err(self.too_deep(self.span())) }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn too_deep(&mut self, span: Span) -> Skip {
        self.complete = false;
        if std::mem::replace(&mut self.deep_nest, true) {
            return Skip;
        }
        self.refuse(
            Diagnostic::new(ErrorCode::E0107, format!("nested more than {MAX_NESTING} deep"))
                .at(Location::Text(span))
                .help("give parts of the expression names with `let`, or split the statement"),
        )
    }

    // Names and numbers.

    /// Whether the word is a keyword here. One that was misused as a name is read as a name from then on.
    pub(super) fn is_keyword(&self, word: &str) -> bool {
        is_reserved(word) && !self.is_misnamed(word)
    }

    /// Whether this keyword was misused as a name.
    pub(super) fn is_misnamed(&self, word: &str) -> bool {
        self.misnamed.contains(&word)
    }

    /// Whether the next word is a keyword that is meant as a name: something is called so, and behind it is what no keyword has there.
    pub(super) fn keyword_is_name(&self) -> bool {
        let is_name = |word| self.is_misnamed(word) || self.is_declared(word);
        self.word().is_some_and(is_name) && matches!(self.punct_ahead(1), Some("=" | "["))
    }

    /// Whether a buffer or a constant has this keyword as its name.
    fn is_declared(&self, keyword: &str) -> bool {
        self.declared_keywords.iter().any(|declared| *declared == *keyword)
    }

    /// Notes that a buffer or a constant has this name.
    pub(super) fn note_declared(&mut self, name: &Name) {
        if is_reserved(name) && !self.is_declared(name) {
            self.declared_keywords.push(name.clone());
        }
    }

    /// The mistake that a keyword stands where something else was expected.
    #[cold]
    #[inline(never)]
    pub(super) fn unexpected_keyword(&mut self, word: &str, diagnostic: Diagnostic) -> Skip {
        let is_name = self.is_declared(word) && diagnostic.location.is_none();
        let diagnostic = if is_name { quoting(diagnostic, word, self.span()) } else { diagnostic };
        self.refuse(diagnostic)
    }

    /// A name, and where it stands. `what` says whose, as in "the name of a buffer".
    #[inline(never)]
    pub(super) fn name(&mut self, what: &str) -> Parsed<Named> {
        let name = match (self.kind(), self.word()) {
            (Kind::Quoted, _) => unquoted(self.slice(self.span())).into(),
            (_, Some(word)) if !self.is_keyword(word) => word.into(),
            (_, Some(word)) if !self.line_ended() => {
                let skip = self.keyword_as_name(word, what);
                // Only behind a name there can be one of these.
                let is_name =
                    matches!(self.punct_ahead(1), Some("=" | ":" | "," | ")" | "{")) || self.word_ahead(1) == Some("in");
                if !is_name {
                    return Err(skip);
                }
                if !self.is_misnamed(word) {
                    self.misnamed.push(word);
                }
                word.into()
            }
            (_, Some(_) | None) => return Err(self.unexpected(what)),
        };
        Ok((name, self.bump()))
    }

    #[cold]
    #[inline(never)]
    fn keyword_as_name(&mut self, word: &str, what: &str) -> Skip {
        let diagnostic = Diagnostic::new(ErrorCode::E0104, format!("`{word}` is a keyword and cannot be {what}"))
            .expected(what)
            .found("a keyword");
        let diagnostic = quoting(diagnostic, word, self.span());
        self.refuse(diagnostic)
    }

    /// A string, and where it stands; `None`, with nothing read, if there is none. One that does not end is one too.
    pub(super) fn string(&mut self) -> Option<Named> {
        match self.kind() {
            Kind::String => Some((unquoted(self.slice(self.span())).into(), self.bump())),
            Kind::Bad if self.slice(self.span()).starts_with('"') => {
                self.complete = false;
                Some((Name::from(""), self.bump()))
            }
            Kind::Word | Kind::Quoted | Kind::Number | Kind::Punct | Kind::Bad | Kind::End => None,
        }
    }

    /// An unsigned number up to `max`, without suffix or with `u`. `what` says what it is, as in "a count".
    pub(super) fn number(&mut self, what: &str, max: u64) -> Parsed<(u64, Span)> {
        if self.kind() != Kind::Number {
            return Err(self.unexpected(what));
        }
        let magnitude = match number_at(&self.text[self.span().start as usize..]) {
            Some(Number::Int(magnitude, None | Some(vyre_spec::Scalar::U32))) => magnitude,
            Some(Number::Int(_, Some(_)) | Number::Float(_)) => return Err(self.unexpected(what)),
            None => {
                self.stood_in = true;
                Some(1)
            }
        };
        let span = self.span();
        if let Some(value) = magnitude.filter(|magnitude| *magnitude <= max) {
            return Ok((value, self.bump()));
        }
        let text = self.slice(span);
        let diagnostic = Diagnostic::new(ErrorCode::E0303, format!("`{text}` is too large for {what}"))
            .expected(format!("at most {max}"))
            .found(text);
        self.mistake_here(diagnostic);
        self.stood_in = true;
        Ok((1, self.bump()))
    }

    pub(super) fn u32(&mut self, what: &str) -> Parsed<(u32, Span)> {
        let (value, span) = self.number(what, u64::from(u32::MAX))?;
        Ok((value as u32, span))
    }

    /// Reads a part of a declaration, which stands at `location`.
    pub(super) fn part<T>(&mut self, location: Location, read: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        self.stood_in = false;
        let part = read(self)?;
        if self.stood_in {
            self.header.poison.add(location);
        }
        Ok(part)
    }

    // The tree, and what is noted beside it.

    /// Something begins here.
    pub(super) fn begin(&self) -> Begin {
        let TreeSpans { tree, results, operations } = &self.spans;
        let [tree, results, operations] = [tree.len(), results.len(), operations.len()];
        Begin { readings: self.readings.len(), tree, results, operations }
    }

    /// Forgets what was noted since.
    pub(super) fn back_to(&mut self, begin: Begin) {
        self.readings.truncate(begin.readings);
        self.spans.tree.truncate(begin.tree);
        self.spans.results.truncate(begin.results);
        self.spans.operations.truncate(begin.operations);
    }

    /// Whether the tree itself is not needed.
    pub(super) fn for_spans(&self) -> bool {
        self.purpose == Purpose::Spans
    }

    /// Notes where something is, before what was noted since its beginning.
    fn note(&mut self, begin: Begin, whole: Span, head: Span) {
        if self.for_spans() {
            self.spans.tree.insert(begin.tree, (whole, head));
        }
    }

    /// The place of a statement that begins here, for [`Parser::end`].
    pub(super) fn place(&mut self) -> NodeId {
        let place = NodeId(self.spans.tree.len() as u32);
        self.note(self.begin(), Span::default(), Span::default());
        place
    }

    /// Notes where the statement of this place is.
    pub(super) fn end(&mut self, place: NodeId, whole: Span, head: Span) {
        if let Some(spans) = self.spans.tree.get_mut(place.0 as usize) {
            *spans = (whole, head);
        }
    }

    /// Notes where the operation of the statement at a place is, and its result.
    pub(super) fn note_operation(&mut self, place: NodeId, atomic: Option<Span>, result: Option<Span>) {
        if self.for_spans() {
            self.spans.operations.extend(atomic.map(|span| (place, span)));
            self.spans.results.extend(result.map(|span| (place, span)));
        }
    }

    /// An expression without others below it. About a literal, `reading` has more to say.
    pub(super) fn leaf(&mut self, expr: Expr, reading: Option<Reading>, whole: Span, head: Span) -> Built {
        if let Some(reading) = reading {
            push_in_small_steps(&mut self.readings, reading);
        }
        self.note(self.begin(), whole, head);
        Built { expr, outer: whole, height: 1 }
    }

    /// An expression over others, unless it is too high to stand at `depth`; they are so high.
    pub(super) fn node(&mut self, expr: Expr, below: u32, begin: Begin, spans: [Span; 2], depth: u32) -> Parsed<Built> {
        let [whole, head] = spans;
        if depth + below > MAX_NESTING {
            return Err(self.too_deep(head));
        }
        self.note(begin, whole, head);
        let expr = if self.for_spans() { Expr::Lit(Literal::U32(0)) } else { expr };
        Ok(Built { expr, outer: whole, height: below + 1 })
    }

    /// The same for a vector, or for something unknown over these operands.
    pub(super) fn list(
        &mut self,
        components: Vec<Child>,
        reading: Reading,
        below: u32,
        begin: Begin,
        spans: [Span; 2],
        depth: u32,
    ) -> Parsed<Built> {
        self.readings.insert(begin.readings, reading);
        self.node(Expr::Vector { components: components.into() }, below, begin, spans, depth)
    }

    /// An expression that stands for one with a mistake in it.
    pub(super) fn stand_in(&mut self, span: Span) -> Built {
        self.leaf(Expr::Vector { components: Box::default() }, Some(Reading::Unknown), span, span)
    }

    // Lines and recovery.

    /// Ends a line of the formatted text before the next token.
    pub(super) fn end_line(&mut self) {
        if self.purpose == Purpose::Format && self.line_start < self.at {
            self.lines.push(Line { first: self.line_start, last: self.at - 1, indent: self.indent });
        }
        self.line_start = self.at;
    }

    /// A declaration or statement is over; its line must be, too.
    pub(super) fn end_of_statement(&mut self) -> Parsed<()> {
        let token = self.token();
        if !(token.newline_before || token.kind == Kind::End || self.is("}")) {
            let span = Location::Text(token.span);
            let diagnostic = Diagnostic::new(ErrorCode::E0106, format!("a statement ends with its line, found {}", self.found()))
                .expected("the end of the line")
                .found(self.found());
            if self.is(";") && self.told_statement {
                self.bump();
            } else if self.is(";") {
                self.mistake_here(
                    diagnostic.fix("there is no `;` in the language: leave it out", Fix::Replace(span, String::new())),
                );
                self.bump();
            } else {
                let diagnostic = match self.operator_word() {
                    Some(operator) => diagnostic.fix("the operator is", Fix::Replace(span, operator.into())),
                    None => diagnostic.help("begin the next statement on a line of its own"),
                };
                // What begins with a keyword is most likely a statement, and worth reading.
                if !self.begins_statement() {
                    return Err(self.refuse(diagnostic));
                }
                self.mistake_here(diagnostic);
            }
        }
        self.told_statement = false;
        self.end_line();
        Ok(())
    }

    /// The operator that other languages have the next word for.
    pub(super) fn operator_word(&self) -> Option<&'static str> {
        match self.word().filter(|_| !self.line_ended()) {
            Some("and") => Some("&&"),
            Some("or") => Some("||"),
            _ => None,
        }
    }

    /// Poisons the names that may be declared by these tokens, which are left out of the tree.
    fn hide_names(&mut self, tokens: std::ops::Range<usize>) {
        for at in tokens.clone() {
            let token = self.tokens.get(at);
            let name = match token.kind {
                Kind::Quoted => unquoted(self.slice(token.span)).into(),
                Kind::Word => Name::from(self.slice(token.span)),
                Kind::String | Kind::Number | Kind::Punct | Kind::Bad | Kind::End => continue,
            };
            let before = at.checked_sub(1).filter(|before| tokens.contains(before) && !token.newline_before);
            let before = before.map(|before| self.tokens.get(before)).filter(|before| before.kind == Kind::Word);
            let keyword = before.and_then(|before| Keyword::from_word(self.slice(before.span)));
            let keyword = matches!(keyword, Some(Keyword::Let | Keyword::For | Keyword::Buffer | Keyword::Const));
            // A word that should have been one of these.
            let follows = before.is_some() && matches!(self.punct_at(at + 1), Some("=" | ":"));
            if keyword || follows {
                self.header.poison.add_name(name);
            }
        }
    }

    /// Whether an attribute, or `++` and `--`, begins a statement of another language here.
    fn begins_line_elsewhere(&self) -> bool {
        match self.punct() {
            Some("@" | "[") => true,
            Some(step @ ("+" | "-")) => self.punct_ahead(1) == Some(step),
            Some(_) | None => false,
        }
    }

    fn begins_statement(&self) -> bool {
        self.word().and_then(Keyword::from_word).is_some_and(|keyword| match keyword.role() {
            Role::Declaration | Role::Attribute | Role::Statement | Role::Operation => true,
            Role::Inside | Role::Value => false,
        })
    }

    /// Goes to where the next statement most likely begins, after a mistake in the one that began at token `start`: the next line
    /// that is not inside brackets or braces opened since.
    pub(super) fn recover(&mut self, start: usize) {
        let bracket = |punct: Option<&str>| match punct {
            Some("(" | "[") => 1,
            Some(")" | "]") => -1,
            Some(_) | None => 0,
        };
        let mut brackets: i64 = (start..self.at).map(|at| bracket(self.punct_at(at))).sum();
        let mut braces = 0u32;
        while !self.at_end() {
            match self.punct() {
                Some("{") => braces += 1,
                Some("}") if braces == 0 => break,
                Some("}") => braces -= 1,
                _ => {}
            }
            let can_begin = matches!(self.kind(), Kind::Word | Kind::Quoted | Kind::Bad) && self.word() != Some("else")
                || self.begins_line_elsewhere();
            let fresh = can_begin && self.tokens.newline_before(self.at) && self.at > start && braces == 0;
            if fresh && (brackets <= 0 || self.begins_statement()) {
                break;
            }
            brackets += bracket(self.punct());
            self.at += 1;
        }
        self.leave_out(start..self.at);
    }

    /// Goes on behind these tokens, which are left out of the tree.
    pub(super) fn leave_out(&mut self, tokens: std::ops::Range<usize>) {
        self.hide_names(tokens.clone());
        self.resume(tokens.end);
        self.last_mistake = None;
        self.told_statement = false;
        self.line_start = self.at;
    }

    /// Goes on at this token as if nothing had been wrong, except that nothing more is said about the token itself.
    pub(super) fn resume(&mut self, at: usize) {
        self.at = at;
        self.last_mistake = Some(at);
        self.parens = 0;
        self.half_used = false;
    }

    /// Goes behind the statements up to the brace that closes them.
    pub(super) fn skip_body(&mut self) {
        let start = self.at;
        let mut braces = 0u32;
        while !self.at_end() {
            match self.punct() {
                Some("{") => braces += 1,
                Some("}") if braces == 0 => break,
                Some("}") => braces -= 1,
                _ => {}
            }
            self.at += 1;
        }
        self.hide_names(start..self.at);
        self.line_start = self.at;
    }

    /// The closing brace of what began at `open`.
    pub(super) fn close(&mut self, open: Span) {
        if self.is("}") {
            self.bump();
        } else {
            let diagnostic = self.unexpected_here("`}`").related(Location::Text(open), "this `{` is not closed");
            self.refuse(diagnostic);
            self.balanced = false;
        }
    }

    // The program.

    fn program(&mut self) -> Parsed<Program> {
        let start = self.span();
        let (name, name_span) = match self.word() {
            Some("program") => {
                self.bump();
                let (name, span) = match self.string() {
                    Some(string) => string,
                    // A name that does not end on its line was reported.
                    None if self.kind() == Kind::Bad => {
                        self.complete = false;
                        ("".into(), self.bump())
                    }
                    None => self.name("the name of the program")?,
                };
                (Some(name), span)
            }
            Some("raw") => (None, self.bump()),
            _ => {
                let mut diagnostic = self.unexpected_here("`program`");
                let at = self.span();
                if let Some(help) = self.foreign_text() {
                    self.lexer_mistakes = Mistakes::default();
                    self.mistake(diagnostic.at(Location::Text(at)).help(help));
                    self.complete = false;
                    if self.word() == Some("program") {
                        return self.program();
                    }
                    return Err(Skip);
                }
                if let Some(word) = self.word()
                    && let Some(meant) = nearest(word, ["program", "raw"])
                {
                    diagnostic = diagnostic.fix("did you mean", Fix::Replace(Location::Text(self.span()), meant.into()));
                } else {
                    diagnostic = diagnostic.help("a text begins with `program name {`");
                }
                return Err(self.refuse(diagnostic));
            }
        };
        let open = self.expect("{")?;
        self.end_line();
        self.indent = 1;
        // The root region is the first level of a wrapped program.
        let root = name.is_some().then(|| self.place());
        let body = self.top_level(if name.is_some() { 2 } else { 1 });
        self.indent = 0;
        self.close(open);
        self.end_line();
        if let Some(root) = root {
            self.end(root, start.to(self.previous()), name_span);
        }
        if !self.at_end() {
            let diagnostic = self.unexpected_here("the end of the text");
            let diagnostic = match self.word() {
                Some("program" | "raw") => diagnostic.help("a text has one program"),
                _ => diagnostic,
            };
            self.refuse(diagnostic);
            self.balanced = false;
        }
        if self.header.workgroup.is_none() {
            self.header.poison.add(Location::Workgroup);
            if !self.broken_workgroup {
                self.mistake(
                    Diagnostic::new(ErrorCode::E0411, "the workgroup size is missing")
                        .at(Location::Text(name_span))
                        .fix("declare it", Fix::InsertAfter(Location::Text(open), "\n  workgroup 64".into())),
                );
            }
        }
        let (header, readings) = (std::mem::take(&mut self.header), std::mem::take(&mut self.readings));
        Ok(Program { name, name_span, header, body, readings })
    }
}

/// Adds to a list that may become long. Twice as much room would be much, and the copy counts, too.
pub(super) fn push_in_small_steps<T>(list: &mut Vec<T>, item: T) {
    if list.len() == list.capacity() {
        list.reserve_exact(list.len() / 8 + 1);
    }
    list.push(item);
}

fn not_expected(expected: String, found: String) -> Diagnostic {
    Diagnostic::new(ErrorCode::E0104, format!("expected {expected}, found {found}")).expected(expected).found(found)
}

/// The same mistake, with the advice to quote a keyword that is meant as a name.
fn quoting(diagnostic: Diagnostic, word: &str, span: Span) -> Diagnostic {
    diagnostic.fix("quote it", Fix::Replace(Location::Text(span), format!("`{word}`")))
}
