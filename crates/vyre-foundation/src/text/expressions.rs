//! Expressions.
//!
//! Infix operators are those of the op tables and bind as they say there; comparisons do not chain. A `-` right before a number
//! belongs to the number, unless a component is taken from that: `-3` is a literal, `-(3)` and `-x` are negations.

use super::ast::{Expr, ExprKind};
use super::declarations::Value;
use super::foreign::{self, Instead};
use super::lexer::Kind;
use super::names::{is_builtin_base, is_reserved};
use super::parser::{Mark, Parsed, Parser, push_in_small_steps};
use super::suggest::nearest;
use crate::diagnostic::{Diagnostic, Fix, Location, Span};
use crate::ir::{Literal, Name};
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
        Spelling::Infix(spelling, precedence) if spelling == token => Some((*op, precedence)),
        Spelling::Infix(..) | Spelling::Prefix(_) | Spelling::Call => None,
    })
}

fn prefix_op(token: &str) -> Option<UnaryOp> {
    UnaryOp::ALL.iter().copied().find(|op| match op.info().spelling {
        Spelling::Prefix(spelling) => spelling == token,
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

/// Every word that [`function`] knows, and those with a grammar of their own.
fn function_names() -> impl Iterator<Item = &'static str> {
    let unary = UnaryOp::ALL.iter().map(|op| op.mnemonic());
    let binary = BinaryOp::ALL.iter().map(|op| op.mnemonic());
    let ternary = TernaryOp::ALL.iter().map(|op| op.mnemonic());
    let ops = unary.chain(binary).chain(ternary).filter(|name| function(name).is_some());
    ops.chain(Scalar::ALL.into_iter().map(Scalar::name)).chain(["len", "vec", "bitcast"])
}

impl Parser<'_> {
    /// An expression whose root is at `depth`.
    pub(super) fn expr(&mut self, depth: u32) -> Parsed<Expr> {
        self.check_depth(depth)?;
        self.binary(None, depth)
    }

    /// An expression of operators that bind tighter than `outer`.
    fn binary(&mut self, outer: Option<Precedence>, depth: u32) -> Parsed<Expr> {
        let mut left = self.unary(depth)?;
        let mut compared: Option<Span> = None;
        let mut chained = false;
        while let Some((op, precedence)) = self.infix().filter(|(_, precedence)| Some(*precedence) > outer) {
            let operator = self.bump_marked(Mark::Infix(precedence));
            self.check_depth(depth + 1)?;
            let right = self.binary(Some(precedence), depth + 1)?;
            if precedence == Precedence::Compare
                && let Some(first) = compared.replace(operator)
                && !std::mem::replace(&mut chained, true)
            {
                self.chained(&left, first, operator, &right);
            }
            let span = left.outer.to(right.outer);
            let kind = match chained {
                true => ExprKind::Unknown(Box::new(vec![left, right])),
                false => ExprKind::Binary(op, Box::new([left, right])),
            };
            left = self.node(kind, span, operator, depth)?;
        }
        Ok(left)
    }

    /// The infix operator that comes next.
    pub(super) fn infix(&self) -> Option<(BinaryOp, Precedence)> {
        self.punct().and_then(infix_op)
    }

    #[cold]
    #[inline(never)]
    fn chained(&mut self, left: &Expr, first: Span, second: Span, right: &Expr) {
        let mut diagnostic = Diagnostic::new(ErrorCode::E0105, "comparisons do not chain")
            .at(Location::Text(second))
            .related(Location::Text(first), "the first comparison");
        let ExprKind::Binary(_, operands) = &left.kind else { return };
        let [a, b, c] = [&operands[0], &operands[1], right].map(|operand| self.slice(operand.outer));
        let (first, second) = (self.slice(first), self.slice(second));
        // Between bools, one comparison is meant to be an operand of the other; otherwise both are meant to hold.
        let is_bool = |expr: &Expr| matches!(expr.kind, ExprKind::Lit(Literal::Bool(_)));
        let equates = |operator: &str| matches!(operator, "==" | "!=");
        let (help, text) = if is_bool(&operands[0]) || equates(first) && !equates(second) {
            ("put one of them in parentheses", format!("{a} {first} ({b} {second} {c})"))
        } else if is_bool(right) || equates(second) && !equates(first) {
            ("put one of them in parentheses", format!("({a} {first} {b}) {second} {c}"))
        } else {
            ("join them with `&&`", format!("{a} {first} {b} && {b} {second} {c}"))
        };
        diagnostic = if text.len() <= 80 && !text.contains('\n') {
            let whole = Location::Text(left.outer.to(right.outer));
            diagnostic.fix(help, Fix::Replace(whole, text))
        } else {
            diagnostic.help(help)
        };
        self.mistake(diagnostic);
    }

    fn unary(&mut self, depth: u32) -> Parsed<Expr> {
        self.check_depth(depth)?;
        let Some(op) = self.punct().and_then(prefix_op) else { return self.postfix(depth) };
        if op == UnaryOp::Neg && self.punct_ahead(2) != Some(".") {
            let start = self.span();
            if let Some(literal) = self.literal_expr(start) {
                return Ok(literal);
            }
        }
        let operator = self.bump_marked(Mark::Prefix);
        let operand = self.unary(depth + 1)?;
        let span = operator.to(operand.outer);
        self.node(ExprKind::Unary(op, Box::new(operand)), span, operator, depth)
    }

    fn postfix(&mut self, depth: u32) -> Parsed<Expr> {
        let start = self.span();
        let mut expr = self.primary(depth)?;
        while self.is(".") {
            self.bump();
            let kind = match self.word().and_then(component) {
                Some(component) => ExprKind::Extract(Box::new(expr), component),
                None => {
                    self.no_component()?;
                    ExprKind::Unknown(Box::new(vec![expr]))
                }
            };
            let head = self.bump();
            let span = start.to(head);
            expr = self.node(kind, span, head, depth)?;
        }
        Ok(expr)
    }

    #[cold]
    #[inline(never)]
    fn no_component(&mut self) -> Parsed<()> {
        const HELP: &str = "a component of a vector is taken by `.x`, `.y`, `.z` or `.w`";
        let Some(word) = self.word().filter(|_| !self.line_ended()) else {
            let diagnostic = self.unexpected_diagnostic("a component").help(HELP);
            return Err(self.refuse(diagnostic));
        };
        let diagnostic = Diagnostic::new(ErrorCode::E0312, format!("`{word}` is no component"));
        self.mistake_here(diagnostic.expected("`x`, `y`, `z` or `w`").help(HELP));
        Ok(())
    }

    fn primary(&mut self, depth: u32) -> Parsed<Expr> {
        if self.missing_operand == Some(self.at) {
            return Ok(self.stand_in(self.previous()));
        }
        let start = self.span();
        if self.is("(") {
            if self.parens == MAX_NESTING {
                return Err(self.too_deep(start));
            }
            self.bump();
            self.parens += 1;
            let mut inner = self.binary(None, depth)?;
            self.parens -= 1;
            inner.outer = start.to(self.expect(")")?);
            return Ok(inner);
        }
        if let Some(literal) = self.literal_expr(start) {
            return Ok(literal);
        }
        let Some(word) = self.word() else {
            return match self.token().kind {
                Kind::Quoted => {
                    let (name, span) = self.name("an expression")?;
                    self.variable(name, span, depth)
                }
                Kind::Word | Kind::String | Kind::Number | Kind::Punct | Kind::Bad | Kind::End => {
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
        if self.punct_ahead(1) == Some("(") {
            return self.call(word, depth);
        }
        let (name, span) = self.name("an expression")?;
        self.variable(name, span, depth)
    }

    /// The mistake that no expression begins here. Behind an operator at the end of a line something unknown stands in.
    #[cold]
    #[inline(never)]
    fn no_expression(&mut self, diagnostic: Diagnostic) -> Parsed<Expr> {
        if !self.line_ended() || self.operator_at(self.at - 1).is_none() {
            return Err(self.refuse(diagnostic));
        }
        self.no_operand();
        Ok(self.stand_in(self.previous()))
    }

    #[cold]
    #[inline(never)]
    fn keyword_in_expression(&mut self, word: &str) -> Parsed<Expr> {
        let diagnostic = self.unexpected_diagnostic("an expression");
        if self.line_ended() { self.no_expression(diagnostic) } else { Err(self.unexpected_keyword(word, diagnostic)) }
    }

    /// The operator, infix or prefix, that this token is.
    fn operator_at(&self, token: usize) -> Option<&str> {
        self.punct_of(&self.tokens[token]).filter(|punct| infix_op(punct).is_some() || prefix_op(punct).is_some())
    }

    /// The operator that is the last token before the line of the next token, after token `start`.
    pub(super) fn operator_before_line(&self, start: usize) -> Option<usize> {
        let first = (start..=self.at).rev().find(|at| self.tokens[*at].newline_before)?;
        let before = first.checked_sub(1).filter(|before| *before > start)?;
        self.operator_at(before).map(|_| before)
    }

    /// A literal with its sign, if one is here.
    #[inline(never)]
    fn literal_expr(&mut self, start: Span) -> Option<Expr> {
        let kind = match self.literal()? {
            Value::Known(literal) => ExprKind::Lit(literal),
            Value::Open(_) => ExprKind::Open,
            Value::Wrong => ExprKind::Unknown(Box::default()),
        };
        let span = start.to(self.previous());
        self.nodes += 1;
        self.open += usize::from(matches!(kind, ExprKind::Open));
        Some(Expr { kind, span, outer: span, head: span, height: 1 })
    }

    /// A variable, or one element of a buffer.
    #[inline(never)]
    fn variable(&mut self, name: Name, span: Span, depth: u32) -> Parsed<Expr> {
        if !self.is("[") {
            return self.node(ExprKind::Var(name), span, span, depth);
        }
        self.bump();
        let index = self.expr(depth + 1)?;
        let whole = span.to(self.expect("]")?);
        self.node(ExprKind::Load(Box::new((name, index))), whole, span, depth)
    }

    #[inline(never)]
    fn builtin(&mut self, base: &str) -> Parsed<Expr> {
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
                self.nodes += 1;
                Ok(Expr { kind: ExprKind::Builtin(builtin), span, outer: span, head: span, height: 1 })
            }
            None => {
                let parts = Builtin::ALL.iter().map(|builtin| builtin.parts());
                let fields: Vec<&str> = parts.filter(|parts| parts.0 == base).map(|parts| parts.1).collect();
                Err(self.unexpected_word(&fields))
            }
        }
    }

    #[inline(never)]
    fn bitcast(&mut self, depth: u32) -> Parsed<Expr> {
        let head = self.bump();
        self.mark(Mark::Tight);
        self.expect("<")?;
        let to = self.scalar()?;
        self.close_angle()?;
        let arguments = self.arguments(depth + 1)?;
        let span = head.to(self.previous());
        let kind = match (<[Expr; 1]>::try_from(arguments), to) {
            (Ok([value]), Some(to)) => ExprKind::Bitcast(to, Box::new(value)),
            (Ok(arguments), None) => ExprKind::Unknown(Box::new(arguments.into())),
            (Err(arguments), _) => self.wrong_count("bitcast", 1, arguments, head),
        };
        self.node(kind, span, head, depth)
    }

    #[inline(never)]
    fn call(&mut self, word: &str, depth: u32) -> Parsed<Expr> {
        let head = self.bump();
        if word == "len" {
            self.open_call()?;
            let (buffer, name_span) = self.name("the name of a buffer")?;
            let span = head.to(self.expect(")")?);
            self.nodes += 1;
            return Ok(Expr { kind: ExprKind::Len(buffer), span, outer: span, head: name_span, height: 1 });
        }
        let function = function(word);
        if function.is_none() {
            let diagnostic = unknown_function(word, head);
            self.mistake(diagnostic);
        }
        let arguments = self.arguments(depth + 1)?;
        let span = head.to(self.previous());
        let kind = match function {
            None => Ok(ExprKind::Unknown(Box::new(arguments))),
            Some(Function::Vector) => Ok(ExprKind::Vector(arguments)),
            Some(Function::Cast(to)) => {
                <[Expr; 1]>::try_from(arguments).map(|[value]| ExprKind::Cast(to, Box::new(value))).map_err(|all| (1, all))
            }
            Some(Function::Unary(op)) => {
                <[Expr; 1]>::try_from(arguments).map(|[operand]| ExprKind::Unary(op, Box::new(operand))).map_err(|all| (1, all))
            }
            Some(Function::Binary(op)) => {
                <[Expr; 2]>::try_from(arguments).map(|both| ExprKind::Binary(op, Box::new(both))).map_err(|all| (2, all))
            }
            Some(Function::Ternary(op)) => {
                <[Expr; 3]>::try_from(arguments).map(|all| ExprKind::Ternary(op, Box::new(all))).map_err(|all| (3, all))
            }
        };
        let kind = kind.unwrap_or_else(|(expected, arguments)| self.wrong_count(word, expected, arguments, head));
        self.node(kind, span, head, depth)
    }

    #[cold]
    #[inline(never)]
    fn wrong_count(&mut self, function: &str, expected: usize, arguments: Vec<Expr>, head: Span) -> ExprKind {
        let plural = |count: usize| if count == 1 { "1 argument".to_string() } else { format!("{count} arguments") };
        let found = arguments.len();
        self.mistake(
            Diagnostic::new(ErrorCode::E0313, format!("`{function}` takes {}, found {found}", plural(expected)))
                .at(Location::Text(head))
                .expected(plural(expected))
                .found(plural(found)),
        );
        ExprKind::Unknown(Box::new(arguments))
    }

    /// The `(` of a call.
    pub(super) fn open_call(&mut self) -> Parsed<Span> {
        self.mark(Mark::TightBefore);
        self.expect("(")
    }

    /// `(a, b, …)`, each at `depth`.
    pub(super) fn arguments(&mut self, depth: u32) -> Parsed<Vec<Expr>> {
        self.open_call()?;
        let mut arguments = Vec::new();
        while !self.is(")") || !arguments.is_empty() {
            if !arguments.is_empty() {
                if !self.is(",") {
                    break;
                }
                self.bump();
            }
            let argument = self.expr(depth)?;
            push_in_small_steps(&mut arguments, argument);
        }
        self.close_call()?;
        Ok(arguments)
    }

    /// The `)` of a call.
    pub(super) fn close_call(&mut self) -> Parsed<Span> {
        if self.is(")") { Ok(self.bump()) } else { Err(self.unexpected("`,` or `)`")) }
    }

    /// An operation where only expressions stand: reported, and read for the sake of what follows.
    #[cold]
    #[inline(never)]
    fn misplaced_operation(&mut self, depth: u32) -> Parsed<Expr> {
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
        let arguments = self.arguments(depth + 1)?;
        // The first argument of an atomic is no expression.
        let below = if family == "subgroup" { arguments } else { Vec::new() };
        self.node(ExprKind::Unknown(Box::new(below)), start.to(self.previous()), span, depth)
    }

    /// An expression over others, unless it is too high to stand at `depth`.
    pub(super) fn node(&mut self, kind: ExprKind, span: Span, head: Span, depth: u32) -> Parsed<Expr> {
        let below = match &kind {
            ExprKind::Lit(_) | ExprKind::Open | ExprKind::Var(_) | ExprKind::Builtin(_) | ExprKind::Len(_) => 0,
            ExprKind::Load(parts) => parts.1.height,
            ExprKind::Unary(_, child) | ExprKind::Cast(_, child) | ExprKind::Bitcast(_, child) | ExprKind::Extract(child, _) => {
                child.height
            }
            ExprKind::Binary(_, children) => tallest(&children[..]),
            ExprKind::Ternary(_, children) => tallest(&children[..]),
            ExprKind::Vector(children) => tallest(children),
            ExprKind::Unknown(children) => tallest(children),
        };
        if depth + below > MAX_NESTING {
            return Err(self.too_deep(head));
        }
        self.nodes += 1;
        Ok(Expr { kind, span, outer: span, head, height: below + 1 })
    }
}

fn tallest(exprs: &[Expr]) -> u32 {
    exprs.iter().map(|expr| expr.height).max().unwrap_or(0)
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
