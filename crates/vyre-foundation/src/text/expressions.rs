//! Expressions.
//!
//! Infix operators are those of the op tables and bind as they say there; comparisons do not chain. A `-` right before a number
//! belongs to the number, unless a component is taken from that: `-3` is a literal, `-(3)` and `-x` are negations.

use super::ast::{Built, OpenInt, Reading};
use super::declarations::Value;
use super::foreign::{self, Instead};
use super::lexer::Kind;
use super::names::{is_builtin_base, is_reserved};
use super::parser::{Mark, Parsed, Parser, Skip, push_in_small_steps};
use super::suggest::nearest;
use crate::diagnostic::{Diagnostic, Fix, Location, Span};
use crate::ir::{Child, Expr, Literal, Load, Name};
use vyre_spec::limits::MAX_NESTING;
use vyre_spec::{BinaryOp, Builtin, ErrorCode, Precedence, Scalar, Spelling, TernaryOp, UnaryOp};

/// The names of components 0 to 3; later ones are `c4`, `c5`, …
pub(super) const COMPONENTS: [&str; 4] = ["x", "y", "z", "w"];

/// How many components have names of their own.
const NAMED: u8 = COMPONENTS.len() as u8;

fn component(word: &str) -> Option<u8> {
    if let Some(named) = COMPONENTS.iter().position(|name| *name == word) {
        return Some(named as u8);
    }
    let digits = word.strip_prefix('c')?;
    digits.parse().ok().filter(|component: &u8| *component >= NAMED && component.to_string() == digits)
}

fn infix_op(token: &str) -> Option<(BinaryOp, Precedence)> {
    BinaryOp::ALL.iter().find_map(|op| match op.info().spelling {
        Spelling::Infix(spelling, precedence) if is_spelled(spelling, token) => Some((*op, precedence)),
        Spelling::Infix(..) | Spelling::Prefix(_) | Spelling::Call => None,
    })
}

/// Whether two spellings of operators are the same. Most differ in the first byte, which costs less than a comparison of texts.
fn is_spelled(one: &str, other: &str) -> bool {
    one.as_bytes()[0] == other.as_bytes()[0] && one == other
}

fn prefix_op(token: &str) -> Option<UnaryOp> {
    UnaryOp::ALL.iter().copied().find(|op| match op.info().spelling {
        Spelling::Prefix(spelling) => is_spelled(spelling, token),
        Spelling::Infix(..) | Spelling::Call => false,
    })
}

/// What stands before the arguments of a call.
enum Function {
    Unary(UnaryOp),
    Binary(BinaryOp),
    Ternary(TernaryOp),
    Cast(Scalar),
    Vector,
}

fn function(word: &str) -> Option<Function> {
    let call = |spelling: Spelling| spelling == Spelling::Call;
    if word == "vec" {
        Some(Function::Vector)
    } else if let Some(scalar) = Scalar::ALL.into_iter().find(|scalar| scalar.name() == word) {
        Some(Function::Cast(scalar))
    } else if let Some(op) = UnaryOp::from_mnemonic(word).filter(|op| call(op.info().spelling)) {
        Some(Function::Unary(op))
    } else if let Some(op) = BinaryOp::from_mnemonic(word).filter(|op| call(op.info().spelling)) {
        Some(Function::Binary(op))
    } else {
        TernaryOp::from_mnemonic(word).map(Function::Ternary)
    }
}

/// Whether there is a function of this name.
pub(super) fn is_function(word: &str) -> bool {
    function(word).is_some()
}

/// Every word that [`function`] knows, and those with a grammar of their own.
fn function_names() -> impl Iterator<Item = &'static str> {
    let unary = UnaryOp::ALL.iter().map(|op| op.mnemonic());
    let binary = BinaryOp::ALL.iter().map(|op| op.mnemonic());
    let ternary = TernaryOp::ALL.iter().map(|op| op.mnemonic());
    let ops = unary.chain(binary).chain(ternary).filter(|name| function(name).is_some());
    ops.chain(Scalar::ALL.into_iter().map(Scalar::name)).chain(["len", "vec", "bitcast"])
}

/// One that was read, and where its parts stand.
struct Comparison {
    operator: Span,
    operands: [Span; 2],
    /// Whether its first operand is `true` or `false`.
    of_bool: bool,
}

fn is_bool(built: &Built) -> bool {
    matches!(built.expr, Expr::Lit(Literal::Bool(_)))
}

impl Parser<'_> {
    /// An expression whose root is at `depth`.
    pub(super) fn expr(&mut self, depth: u32) -> Parsed<Built> {
        self.check_depth(depth)?;
        self.binary(None, depth)
    }

    /// An expression of operators that bind tighter than `outer`.
    fn binary(&mut self, outer: Option<Precedence>, depth: u32) -> Parsed<Built> {
        let begin = self.begin();
        let mut left = self.unary(depth)?;
        if self.kind() == Kind::Word && !self.tokens.newline_before(self.at) {
            left = self.word_behind(left, begin, depth)?;
        }
        let mut compared: Option<Comparison> = None;
        let mut chained = false;
        while let Some((op, precedence)) = self.infix().filter(|(_, precedence)| Some(*precedence) > outer) {
            let operator = self.bump_marked(Mark::Infix(precedence));
            self.check_depth(depth + 1)?;
            let right = self.binary(Some(precedence), depth + 1)?;
            if precedence == Precedence::Compare {
                let first = Comparison { operator, operands: [left.outer, right.outer], of_bool: is_bool(&left) };
                match compared.replace(first) {
                    Some(first) if !std::mem::replace(&mut chained, true) => self.chained(&first, operator, &right),
                    Some(_) | None => {}
                }
            }
            let below = left.height.max(right.height);
            let spans = [left.outer.to(right.outer), operator];
            let operands = [Child::from(left.expr), right.expr.into()];
            left = match chained {
                true => self.list(operands.into(), Reading::Unknown, below, begin, spans, depth)?,
                false => {
                    let [left, right] = operands;
                    self.node(Expr::Binary { op, left, right }, below, begin, spans, depth)?
                }
            };
        }
        Ok(left)
    }

    /// The infix operator that comes next.
    pub(super) fn infix(&self) -> Option<(BinaryOp, Precedence)> {
        self.punct().and_then(infix_op)
    }

    #[cold]
    #[inline(never)]
    fn chained(&mut self, left: &Comparison, second: Span, right: &Built) {
        let mut diagnostic = Diagnostic::new(ErrorCode::E0105, "comparisons do not chain")
            .at(Location::Text(second))
            .related(Location::Text(left.operator), "the first comparison");
        let [a, b] = left.operands.map(|operand| self.slice(operand));
        let c = self.slice(right.outer);
        let (first, second) = (self.slice(left.operator), self.slice(second));
        // Between bools, one comparison is meant to be an operand of the other; otherwise both are meant to hold.
        let equates = |operator: &str| matches!(operator, "==" | "!=");
        let (help, text) = if left.of_bool || equates(first) && !equates(second) {
            ("put one of them in parentheses", format!("{a} {first} ({b} {second} {c})"))
        } else if is_bool(right) || equates(second) && !equates(first) {
            ("put one of them in parentheses", format!("({a} {first} {b}) {second} {c}"))
        } else {
            ("join them with `&&`", format!("{a} {first} {b} && {b} {second} {c}"))
        };
        diagnostic = if text.len() <= 80 && !text.contains('\n') {
            let whole = Location::Text(left.operands[0].to(right.outer));
            diagnostic.fix(help, Fix::Replace(whole, text))
        } else {
            diagnostic.help(help)
        };
        self.mistake(diagnostic);
    }

    pub(super) fn unary(&mut self, depth: u32) -> Parsed<Built> {
        self.check_depth(depth)?;
        let Some(op) = self.punct().and_then(prefix_op) else { return self.postfix(depth) };
        let begin = self.begin();
        if op == UnaryOp::Neg && self.punct_ahead(2) != Some(".") {
            let start = self.span();
            if let Some(literal) = self.literal_expr(start) {
                return Ok(literal);
            }
        }
        let operator = self.bump_marked(Mark::Prefix);
        let Built { expr, outer, height } = self.unary(depth + 1)?;
        self.node(Expr::Unary { op, operand: expr.into() }, height, begin, [operator.to(outer), operator], depth)
    }

    fn postfix(&mut self, depth: u32) -> Parsed<Built> {
        let start = self.span();
        let begin = self.begin();
        let mut built = self.primary(depth)?;
        while self.is(".") {
            self.bump();
            let component = self.word().and_then(component);
            if component.is_none() || self.punct_ahead(1) == Some("(") {
                if self.kind() == Kind::Word && !self.line_ended() {
                    built = self.member(built, start, begin, depth)?;
                    continue;
                }
                return Err(self.no_component());
            }
            let head = self.bump();
            let spans = [start.to(head), head];
            let (vector, below) = (built.expr.into(), built.height);
            let component = component.unwrap_or_default();
            built = self.node(Expr::Extract { vector, component }, below, begin, spans, depth)?;
        }
        Ok(built)
    }

    #[cold]
    #[inline(never)]
    fn no_component(&mut self) -> Skip {
        let diagnostic = self.unexpected_diagnostic("a component");
        self.refuse(diagnostic.help("a component of a vector is taken by `.x`, `.y`, `.z` or `.w`"))
    }

    fn primary(&mut self, depth: u32) -> Parsed<Built> {
        if self.missing_operand == Some(self.at) {
            return Ok(self.stand_in(self.previous()));
        }
        let start = self.span();
        if self.is("(") {
            if self.c_cast_ahead() {
                return self.c_cast(depth);
            }
            if self.parens == MAX_NESTING {
                return Err(self.too_deep(start));
            }
            let (open, begin) = (self.at, self.begin());
            self.bump();
            self.parens += 1;
            let mut inner = self.binary(None, depth)?;
            self.parens -= 1;
            if !self.is(")") {
                self.not_closed(open)?;
                self.back_to(begin);
                inner = self.stand_in(start);
            }
            inner.outer = start.to(self.bump());
            return Ok(inner);
        }
        if let Some(literal) = self.literal_expr(start) {
            return Ok(literal);
        }
        let Some(word) = self.word() else {
            return match self.kind() {
                Kind::Quoted => {
                    let (name, span) = self.name("an expression")?;
                    self.variable(name, span, depth)
                }
                Kind::Word | Kind::String | Kind::Number | Kind::Punct | Kind::Bad | Kind::End => {
                    if let Some(built) = self.foreign_expression(depth) {
                        return built;
                    }
                    let diagnostic = self.unexpected_diagnostic("an expression");
                    self.no_expression(diagnostic)
                }
            };
        };
        if self.is_misnamed(word) && !self.line_ended() && !matches!(self.punct_ahead(1), Some("." | "(" | "<")) {
            let (name, span) = self.name("an expression")?;
            return self.variable(name, span, depth);
        }
        if self.operation_ahead().is_some() {
            return self.misplaced_operation(depth);
        }
        if word == "bitcast" {
            return self.bitcast(depth);
        }
        if is_builtin_base(word) {
            return self.builtin(word);
        }
        if is_reserved(word) {
            return self.keyword_in_expression(word);
        }
        match self.punct_ahead(1) {
            Some("(") => return self.call(word, depth),
            Some("<" | ":") if self.path_ahead() => return self.path(depth),
            Some(_) | None => {}
        }
        let (name, span) = self.name("an expression")?;
        self.variable(name, span, depth)
    }

    /// What is wrong where a parenthesis should close, and the way to it if it can be seen.
    #[cold]
    #[inline(never)]
    fn not_closed(&mut self, open: usize) -> Parsed<()> {
        let diagnostic = self.unexpected_diagnostic("`)`");
        let at = Location::Text(self.span());
        let one_line = (open + 1..=self.at).all(|at| !self.tokens.newline_before(at));
        let diagnostic = match self.punct().filter(|_| one_line) {
            Some("=") => diagnostic.fix("the operator is", Fix::Replace(at, "==".into())),
            Some("..") => diagnostic.help("bounds stand without parentheses: `for i in 0..n`"),
            Some(_) | None => return Err(self.refuse(diagnostic)),
        };
        self.refuse(diagnostic);
        self.bump();
        let begin = self.begin();
        self.expr(1)?;
        self.back_to(begin);
        // What follows was meant otherwise, too.
        self.last_mistake = Some(self.at + 1);
        if self.is(")") { Ok(()) } else { Err(self.unexpected("`)`")) }
    }

    /// The mistake that no expression begins here. Behind an operator at the end of a line something unknown stands in.
    #[cold]
    #[inline(never)]
    fn no_expression(&mut self, diagnostic: Diagnostic) -> Parsed<Built> {
        if !self.line_ended() || self.operator_at(self.at - 1).is_none() {
            return Err(self.refuse(diagnostic));
        }
        self.no_operand();
        Ok(self.stand_in(self.previous()))
    }

    #[cold]
    #[inline(never)]
    fn keyword_in_expression(&mut self, word: &str) -> Parsed<Built> {
        if !self.line_ended()
            && let Some(skip) = self.statement_as_expression(word)
        {
            return Err(skip);
        }
        let diagnostic = self.unexpected_diagnostic("an expression");
        if self.line_ended() { self.no_expression(diagnostic) } else { Err(self.unexpected_keyword(word, diagnostic)) }
    }

    /// The operator, infix or prefix, that this token is.
    fn operator_at(&self, token: usize) -> Option<&str> {
        self.punct_at(token).filter(|punct| infix_op(punct).is_some() || prefix_op(punct).is_some())
    }

    /// The operator that is the last token before the line of the next token, after token `start`.
    pub(super) fn operator_before_line(&self, start: usize) -> Option<usize> {
        let first = (start..=self.at).rev().find(|at| self.tokens.newline_before(*at))?;
        let before = first.checked_sub(1).filter(|before| *before > start)?;
        self.operator_at(before).map(|_| before)
    }

    /// A literal with its sign, if one is here.
    #[inline(never)]
    fn literal_expr(&mut self, start: Span) -> Option<Built> {
        let value = self.literal()?;
        let span = start.to(self.previous());
        let (literal, reading) = match value {
            Value::Known(literal) => (literal, Reading::Plain),
            Value::Open(OpenInt { negative, magnitude: Some(magnitude) }) => {
                (Literal::U64(magnitude), if negative { Reading::OpenNegative } else { Reading::Open })
            }
            Value::Open(OpenInt { magnitude: None, .. }) => (Literal::U64(0), Reading::OpenTooLarge),
            Value::Wrong => return Some(self.stand_in(span)),
        };
        Some(self.leaf(Expr::Lit(literal), Some(reading), span, span))
    }

    /// A variable, or one element of a buffer.
    #[inline(never)]
    fn variable(&mut self, name: Name, span: Span, depth: u32) -> Parsed<Built> {
        if !self.is("[") {
            self.check_depth(depth)?;
            // What other languages do with a whole buffer was told.
            if self.quiet > 0 && self.header.buffers.iter().any(|(buffer, _)| buffer.name == name) {
                return Ok(self.stand_in(span));
            }
            return Ok(self.leaf(Expr::Var(name), None, span, span));
        }
        let begin = self.begin();
        self.bump();
        let Built { expr, height, .. } = self.expr(depth + 1)?;
        let whole = span.to(self.expect("]")?);
        if self.is("[") && !self.line_ended() {
            self.second_index(self.slice(span))?;
        }
        self.node(Load { buffer: name, index: expr.into() }.into(), height, begin, [whole, span], depth)
    }

    #[inline(never)]
    fn builtin(&mut self, base: &str) -> Parsed<Built> {
        let start = self.bump();
        if !self.is(".") {
            let diagnostic = self.unexpected_diagnostic("`.`");
            let parts = Builtin::ALL.iter().map(|builtin| builtin.parts());
            let first = parts.clone().find(|parts| parts.0 == base).map_or("", |parts| parts.1);
            let along = Fix::InsertAfter(Location::Text(start), format!(".{first}"));
            return Err(self.refuse(diagnostic.fix("take it along an axis", along)));
        }
        self.bump();
        match self.word().and_then(|field| Builtin::from_parts(base, field)) {
            Some(builtin) => {
                let span = start.to(self.bump());
                Ok(self.leaf(Expr::Builtin(builtin), None, span, span))
            }
            None => {
                let parts = Builtin::ALL.iter().map(|builtin| builtin.parts());
                let fields: Vec<&str> = parts.filter(|parts| parts.0 == base).map(|parts| parts.1).collect();
                Err(self.unexpected_word(&fields))
            }
        }
    }

    #[inline(never)]
    fn bitcast(&mut self, depth: u32) -> Parsed<Built> {
        let begin = self.begin();
        let head = self.bump();
        self.mark(Mark::Tight);
        self.expect("<")?;
        let to = self.scalar()?;
        self.close_angle()?;
        let (arguments, below) = self.arguments(depth + 1)?;
        let spans = [head.to(self.previous()), head];
        let arguments = match (<[Child; 1]>::try_from(arguments), to) {
            (Ok([value]), Some(to)) => return self.node(Expr::Bitcast { to, value }, below, begin, spans, depth),
            (Ok(arguments), None) => arguments.into(),
            (Err(arguments), _) => {
                self.wrong_count("bitcast", 1, arguments.len(), head);
                arguments
            }
        };
        self.list(arguments, Reading::Unknown, below, begin, spans, depth)
    }

    #[inline(never)]
    fn call(&mut self, word: &str, depth: u32) -> Parsed<Built> {
        let begin = self.begin();
        let head = self.bump();
        if word == "len" {
            self.open_call()?;
            let (buffer, name_span) = self.name("the name of a buffer")?;
            let span = head.to(self.expect(")")?);
            return Ok(self.leaf(Expr::Len(buffer), None, span, name_span));
        }
        let Some(function) = function(word) else { return self.unknown_call(word, head, depth) };
        let (arguments, below) = self.arguments(depth + 1)?;
        let spans = [head.to(self.previous()), head];
        let over = match function {
            Function::Vector => return self.list(arguments, Reading::Plain, below, begin, spans, depth),
            Function::Cast(to) => {
                <[Child; 1]>::try_from(arguments).map(|[value]| Expr::Cast { to, value }).map_err(|all| (1, all))
            }
            Function::Unary(op) => {
                <[Child; 1]>::try_from(arguments).map(|[operand]| Expr::Unary { op, operand }).map_err(|all| (1, all))
            }
            Function::Binary(op) => {
                <[Child; 2]>::try_from(arguments).map(|[left, right]| Expr::Binary { op, left, right }).map_err(|all| (2, all))
            }
            Function::Ternary(op) => {
                let operands = <Box<[Child; 3]>>::try_from(arguments);
                operands.map(|operands| Expr::Ternary { op, operands }).map_err(|all| (3, all))
            }
        };
        match over {
            Ok(expr) => self.node(expr, below, begin, spans, depth),
            Err((expected, arguments)) => {
                self.wrong_count(word, expected, arguments.len(), head);
                self.list(arguments, Reading::Unknown, below, begin, spans, depth)
            }
        }
    }

    /// A call of a function that there is not, from its `(` on.
    #[cold]
    #[inline(never)]
    fn unknown_call(&mut self, word: &str, head: Span, depth: u32) -> Parsed<Built> {
        let begin = self.begin();
        if !self.told_names.contains(&word) && self.quiet == 0 {
            let splat = foreign::is_vector(word) && self.punct_ahead(2) == Some(")");
            let diagnostic = unknown_function(word, head);
            self.mistake(match splat {
                true => {
                    Diagnostic { fix: None, ..diagnostic }.help("vectors are made by `vec`, with every component: `vec(x, x, x)`")
                }
                false => diagnostic,
            });
        }
        self.quiet += 1;
        let arguments = self.arguments(depth + 1);
        self.quiet -= 1;
        let (arguments, below) = arguments?;
        self.list(arguments, Reading::Unknown, below, begin, [head.to(self.previous()), head], depth)
    }

    #[cold]
    #[inline(never)]
    fn wrong_count(&mut self, function: &str, expected: usize, found: usize, head: Span) {
        let plural = |count: usize| if count == 1 { "1 argument".to_string() } else { format!("{count} arguments") };
        self.mistake(
            Diagnostic::new(ErrorCode::E0313, format!("`{function}` takes {}, found {found}", plural(expected)))
                .at(Location::Text(head))
                .expected(plural(expected))
                .found(plural(found)),
        );
    }

    /// The `(` of a call.
    pub(super) fn open_call(&mut self) -> Parsed<Span> {
        self.mark(Mark::TightBefore);
        self.expect("(")
    }

    /// `(a, b, …)`, each at `depth`, and the height of the highest.
    pub(super) fn arguments(&mut self, depth: u32) -> Parsed<(Vec<Child>, u32)> {
        self.open_call()?;
        let mut arguments = Vec::new();
        let mut highest = 0;
        while !self.is(")") || highest > 0 {
            if highest > 0 {
                if !self.is(",") {
                    break;
                }
                self.bump();
            }
            let Built { expr, height, .. } = self.expr(depth)?;
            highest = height.max(highest);
            if !self.for_spans() {
                push_in_small_steps(&mut arguments, Child::from(expr));
            }
        }
        self.close_call()?;
        Ok((arguments, highest))
    }

    /// The `)` of a call.
    pub(super) fn close_call(&mut self) -> Parsed<Span> {
        if self.is(")") { Ok(self.bump()) } else { Err(self.unexpected("`,` or `)`")) }
    }

    /// An operation where only expressions stand: reported, and read for the sake of what follows.
    #[cold]
    #[inline(never)]
    fn misplaced_operation(&mut self, depth: u32) -> Parsed<Built> {
        let begin = self.begin();
        let start = self.bump();
        self.expect(".")?;
        let Some(word) = self.word() else { return Err(self.unexpected("the name of an operation")) };
        let family = self.slice(start);
        let span = start.to(self.bump());
        self.mistake(
            Diagnostic::new(ErrorCode::E0110, format!("`{family}.{word}` is a statement, not an expression"))
                .at(Location::Text(span))
                .help(format!("on a line before: `let result = {family}.{word}(…)`")),
        );
        let (mut arguments, mut below) = self.arguments(depth + 1)?;
        // The first argument of an atomic is no expression.
        if family != "subgroup" {
            self.back_to(begin);
            (arguments, below) = (Vec::new(), 0);
        }
        let spans = [start.to(self.previous()), span];
        self.list(arguments, Reading::Unknown, below, begin, spans, depth)
    }
}

#[cold]
#[inline(never)]
fn unknown_function(word: &str, span: Span) -> Diagnostic {
    let diagnostic = Diagnostic::new(ErrorCode::E0205, format!("there is no function `{word}`")).at(Location::Text(span));
    match foreign::function(word) {
        Some(Instead::Word(meant)) => return diagnostic.fix("write", Fix::Replace(Location::Text(span), meant.into())),
        Some(Instead::Help(help)) => return diagnostic.help(help),
        None => {}
    }
    let unary = UnaryOp::from_mnemonic(word).map(|op| op.info().spelling);
    match unary.or(BinaryOp::from_mnemonic(word).map(|op| op.info().spelling)) {
        Some(Spelling::Prefix(token)) => diagnostic.help(format!("write `{token}a`")),
        Some(Spelling::Infix(token, _)) => diagnostic.help(format!("write `a {token} b`")),
        Some(Spelling::Call) | None if super::types::is_type_word(word) => diagnostic.help(
            "values convert to bool, u32, i32, u64, i64, f32 and f64 only; a buffer of a smaller type converts when it is stored to",
        ),
        Some(Spelling::Call) | None => match nearest(word, function_names()) {
            Some(meant) => diagnostic.fix("did you mean", Fix::Replace(Location::Text(span), meant.into())),
            None => diagnostic,
        },
    }
}
