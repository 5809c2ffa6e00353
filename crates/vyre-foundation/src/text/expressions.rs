//! Expressions.
//!
//! Infix operators are those of the op tables and bind as they say there; comparisons do not chain. A `-` right before a number
//! belongs to the number, unless a component is taken from that: `-3` is a literal, `-(3)` and `-x` are negations.

use super::ast::{Expr, ExprKind};
use super::lexer::Kind;
use super::names::{is_builtin_base, is_reserved};
use super::parser::{Mark, Parsed, Parser, Skip};
use super::suggest::nearest;
use crate::diagnostic::{Diagnostic, Fix, Location, Span};
use crate::ir::Name;
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
            let operator = self.bump_marked(Mark::Infix(precedence, self.brackets));
            self.check_depth(depth + 1)?;
            let right = self.binary(Some(precedence), depth + 1)?;
            if precedence == Precedence::Compare
                && let Some(first) = compared.replace(operator)
                && !chained
            {
                self.chained(&left, first, operator, &right);
                chained = true;
            }
            let span = left.outer.to(right.outer);
            left = self.node(ExprKind::Binary(op, Box::new([left, right])), span, operator, depth)?;
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
        let middle = self.slice(operands[1].outer);
        let text = format!("{} && {middle} {} {}", self.slice(left.outer), self.slice(second), self.slice(right.outer));
        diagnostic = if text.len() <= 80 && !text.contains('\n') {
            let whole = Location::Text(left.outer.to(right.outer));
            diagnostic.fix("join them with `&&`", Fix::Replace(whole, text))
        } else {
            diagnostic.help("join them with `&&`")
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
        let mut expr = self.primary(depth)?;
        while self.is(".") {
            self.bump();
            let Some(component) = self.word().and_then(component) else {
                return Err(self.no_component());
            };
            let head = self.bump();
            let span = expr.outer.to(head);
            expr = self.node(ExprKind::Extract(Box::new(expr), component), span, head, depth)?;
        }
        Ok(expr)
    }

    #[cold]
    #[inline(never)]
    fn no_component(&mut self) -> Skip {
        let what = self.word().map_or("this".to_string(), |word| format!("`{word}`"));
        let diagnostic = Diagnostic::new(ErrorCode::E0312, format!("{what} is no component"))
            .expected("`x`, `y`, `z` or `w`")
            .help("a component of a vector is taken by `.x`, `.y`, `.z` or `.w`");
        self.refuse(diagnostic)
    }

    fn primary(&mut self, depth: u32) -> Parsed<Expr> {
        let start = self.span();
        if self.is("(") {
            if self.parens == MAX_NESTING {
                return Err(self.too_deep(start));
            }
            self.bump();
            self.parens += 1;
            let mut inner = self.bracketed(|parser| parser.binary(None, depth))?;
            self.parens -= 1;
            inner.outer = start.to(self.expect(")")?);
            return Ok(inner);
        }
        if let Some(literal) = self.literal_expr(start) {
            return Ok(literal);
        }
        let Some(word) = self.word() else {
            return match self.token().kind {
                Kind::Quoted(_) => {
                    let (name, span) = self.name("an expression")?;
                    self.variable(name, span, depth)
                }
                Kind::Word | Kind::String(_) | Kind::Number(_) | Kind::Punct(_) | Kind::Bad | Kind::End => {
                    Err(self.unexpected("an expression"))
                }
            };
        };
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
            return Err(self.unexpected("an expression"));
        }
        if self.punct_ahead(1) == Some("(") {
            return self.call(word, depth);
        }
        let (name, span) = self.name("an expression")?;
        self.variable(name, span, depth)
    }

    /// A literal with its sign, if one is here.
    #[inline(never)]
    fn literal_expr(&mut self, start: Span) -> Option<Expr> {
        let (literal, open) = self.literal()?;
        let span = start.to(self.previous());
        let kind = open.map_or(ExprKind::Lit(literal), ExprKind::Open);
        Some(Expr { kind, span, outer: span, head: span, height: 1 })
    }

    /// A variable, or one element of a buffer.
    #[inline(never)]
    fn variable(&mut self, name: Name, span: Span, depth: u32) -> Parsed<Expr> {
        if !self.is("[") {
            return self.node(ExprKind::Var(name), span, span, depth);
        }
        self.bump();
        let index = self.bracketed(|parser| parser.expr(depth + 1))?;
        let whole = span.to(self.expect("]")?);
        self.node(ExprKind::Load(name, Box::new(index)), whole, span, depth)
    }

    #[inline(never)]
    fn builtin(&mut self, base: &str) -> Parsed<Expr> {
        let start = self.bump();
        self.expect(".")?;
        match self.word().and_then(|field| Builtin::from_parts(base, field)) {
            Some(builtin) => {
                let span = start.to(self.bump());
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
        self.marks[self.at] = Mark::Tight;
        self.expect("<")?;
        let to = self.scalar()?;
        self.close_angle()?;
        let arguments = self.arguments(depth + 1)?;
        let span = head.to(self.previous());
        match <[Expr; 1]>::try_from(arguments) {
            Ok([value]) => self.node(ExprKind::Bitcast(to, Box::new(value)), span, head, depth),
            Err(arguments) => Ok(self.wrong_count("bitcast", 1, arguments.len(), span, head)),
        }
    }

    #[inline(never)]
    fn call(&mut self, word: &str, depth: u32) -> Parsed<Expr> {
        let head = self.bump();
        if word == "len" {
            self.open_call()?;
            let (buffer, name_span) = self.name("the name of a buffer")?;
            let span = head.to(self.expect(")")?);
            return Ok(Expr { kind: ExprKind::Len(buffer), span, outer: span, head: name_span, height: 1 });
        }
        let function = function(word);
        if function.is_none() {
            let diagnostic = unknown_function(word, head);
            self.mistake(diagnostic);
        }
        let arguments = self.arguments(depth + 1)?;
        let span = head.to(self.previous());
        let count = arguments.len();
        let kind = match function {
            None => return Ok(self.stand_in(span)),
            Some(Function::Vector) => Ok(ExprKind::Vector(arguments)),
            Some(Function::Cast(to)) => {
                <[Expr; 1]>::try_from(arguments).map(|[value]| ExprKind::Cast(to, Box::new(value))).map_err(|_| 1)
            }
            Some(Function::Unary(op)) => {
                <[Expr; 1]>::try_from(arguments).map(|[operand]| ExprKind::Unary(op, Box::new(operand))).map_err(|_| 1)
            }
            Some(Function::Binary(op)) => {
                <[Expr; 2]>::try_from(arguments).map(|both| ExprKind::Binary(op, Box::new(both))).map_err(|_| 2)
            }
            Some(Function::Ternary(op)) => {
                <[Expr; 3]>::try_from(arguments).map(|all| ExprKind::Ternary(op, Box::new(all))).map_err(|_| 3)
            }
        };
        match kind {
            Ok(kind) => self.node(kind, span, head, depth),
            Err(expected) => Ok(self.wrong_count(word, expected, count, span, head)),
        }
    }

    #[cold]
    #[inline(never)]
    fn wrong_count(&mut self, function: &str, expected: usize, found: usize, span: Span, head: Span) -> Expr {
        let plural = |count: usize| if count == 1 { "1 argument".to_string() } else { format!("{count} arguments") };
        self.mistake(
            Diagnostic::new(ErrorCode::E0313, format!("`{function}` takes {}, found {found}", plural(expected)))
                .at(Location::Text(head))
                .expected(plural(expected))
                .found(plural(found)),
        );
        self.stand_in(span)
    }

    /// The `(` of a call.
    pub(super) fn open_call(&mut self) -> Parsed<Span> {
        self.marks[self.at] = Mark::TightBefore;
        self.expect("(")
    }

    pub(super) fn argument_comma(&mut self) -> Parsed<Span> {
        self.marks[self.at] = Mark::Comma(self.brackets);
        self.expect(",")
    }

    /// `(a, b, …)`, each at `depth`.
    pub(super) fn arguments(&mut self, depth: u32) -> Parsed<Vec<Expr>> {
        self.open_call()?;
        let arguments = self.bracketed(|parser| {
            let mut arguments = Vec::new();
            while !parser.is(")") || !arguments.is_empty() {
                if !arguments.is_empty() {
                    if !parser.is(",") {
                        break;
                    }
                    parser.argument_comma()?;
                }
                arguments.push(parser.expr(depth)?);
            }
            Ok(arguments)
        })?;
        if !self.is(")") {
            return Err(self.unexpected("`,` or `)`"));
        }
        self.bump();
        Ok(arguments)
    }

    /// Reads what is inside brackets.
    pub(super) fn bracketed<T>(&mut self, read: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        self.brackets += 1;
        let inner = read(self)?;
        self.brackets -= 1;
        Ok(inner)
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
        self.arguments(depth)?;
        Ok(self.stand_in(span))
    }

    /// An expression over others, unless it is too high to stand at `depth`.
    fn node(&mut self, kind: ExprKind, span: Span, head: Span, depth: u32) -> Parsed<Expr> {
        let below = match &kind {
            ExprKind::Lit(_) | ExprKind::Open(_) | ExprKind::Var(_) | ExprKind::Builtin(_) | ExprKind::Len(_) => 0,
            ExprKind::Load(_, child)
            | ExprKind::Unary(_, child)
            | ExprKind::Cast(_, child)
            | ExprKind::Bitcast(_, child)
            | ExprKind::Extract(child, _) => child.height,
            ExprKind::Binary(_, children) => tallest(&children[..]),
            ExprKind::Ternary(_, children) => tallest(&children[..]),
            ExprKind::Vector(children) => tallest(children),
        };
        if depth + below > MAX_NESTING {
            return Err(self.too_deep(head));
        }
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
    let unary = UnaryOp::from_mnemonic(word).map(|op| op.info().spelling);
    match unary.or(BinaryOp::from_mnemonic(word).map(|op| op.info().spelling)) {
        Some(Spelling::Prefix(token)) => diagnostic.help(format!("write `{token}a`")),
        Some(Spelling::Infix(token, _)) => diagnostic.help(format!("write `a {token} b`")),
        Some(Spelling::Call) | None if super::types::is_type_word(word) => diagnostic.help(
            "values convert to bool u32 i32 u64 i64 f32 f64 only; a buffer of a smaller type converts when it is stored to",
        ),
        Some(Spelling::Call) | None => match nearest(word, function_names()) {
            Some(meant) => diagnostic.fix("did you mean", Fix::Replace(Location::Text(span), meant.into())),
            None => diagnostic,
        },
    }
}
