//! Statements.

use super::ast::{Built, Reading};
use super::code;
use super::lexer::Kind;
use super::names::{Keyword, Role};
use super::parser::{Begin, Mark, Named, Parsed, Parser, Skip, push_in_small_steps};
use super::suggest::nearest;
use crate::diagnostic::{Diagnostic, Fix, Location, Span};
use crate::ir::{Atomic, Body, Child, Expr, Loop, Node, NodeId, Subgroup};
use crate::memory_model::MemoryOrdering;
use vyre_spec::limits::MAX_NESTING;
use vyre_spec::{AtomicOp, Builtin, ErrorCode, SubgroupOp};

/// What to write instead of the loops of other languages.
const LOOP: &str = "a loop has bounds: `for i in 0..n { … }`, and `break` leaves it";

/// Whose operations `let` may name: the word before the point.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Family {
    Atomic,
    Subgroup,
}

/// What stands between the parentheses of an atomic operation, as far as there is any.
struct AtomicArguments {
    buffer: Option<Named>,
    index: Option<Expr>,
    operands: Vec<Expr>,
    /// Of the highest expression among them.
    height: u32,
}

impl Parser<'_> {
    /// The declarations and statements of the program; the statements are at `depth`.
    pub(super) fn top_level(&mut self, depth: u32) -> Vec<Node> {
        let mut body = Vec::new();
        let mut first_statement = None;
        while self.more_statements() {
            let start = self.at;
            if self.at_declaration() {
                if let Some(first) = first_statement {
                    let diagnostic = Diagnostic::new(ErrorCode::E0108, "declarations stand before the first statement")
                        .related(Location::Text(first), "the first statement")
                        .help("move it to the top of the program");
                    self.mistake_here(diagnostic);
                }
                self.whole_declaration(start);
            } else {
                first_statement.get_or_insert(self.span());
                if !self.one_statement(depth, &mut body) {
                    break;
                }
            }
        }
        body
    }

    /// The statements of a body at `depth`, up to its closing brace.
    fn body(&mut self, depth: u32) -> Vec<Node> {
        let mut body = Vec::new();
        while self.more_statements() {
            if self.at_declaration() {
                let start = self.at;
                let diagnostic =
                    Diagnostic::new(ErrorCode::E0108, "declarations stand at the top of the program, outside of blocks");
                self.mistake_here(diagnostic.help("move it to the top of the program"));
                self.whole_declaration(start);
            } else if !self.one_statement(depth, &mut body) {
                break;
            }
        }
        body
    }

    /// Reads the declaration that begins at token `start`, to the end of its line.
    fn whole_declaration(&mut self, start: usize) {
        if self.declaration().is_err() {
            self.broken_declaration(start);
            self.recover(start);
        } else if self.end_of_statement().is_err() {
            self.recover(start);
        }
    }

    fn more_statements(&self) -> bool {
        !self.at_end() && !self.is("}")
    }

    /// Reads one statement and whatever follows it on its line. False if the rest of the body was skipped, because it is too deep.
    fn one_statement(&mut self, depth: u32, body: &mut Vec<Node>) -> bool {
        let start = self.at;
        // Of statements with more than half of their depth in common only one is reported to be too deep.
        self.deep_nest &= depth > MAX_NESTING / 2;
        if self.check_depth(depth).is_err() {
            self.skip_body();
            return false;
        }
        let (mistakes, begin) = (self.mistakes.count(), self.begin());
        let mut statement = self.statement(depth);
        // Two lines that were read as one statement, because the first ends with an operator.
        if self.is("=")
            && let Some(operator) = self.operator_before_line(start)
        {
            self.mistakes.truncate(mistakes);
            self.back_to(begin);
            statement = self.statement_without_operand(start, operator, depth);
            if statement.is_err() {
                self.back_to(begin);
                self.leave_out(start..operator + 1);
                return true;
            }
        }
        match statement {
            Ok(node) => {
                let has_body = self.previous_is("}");
                let ended = self.end_of_statement().is_ok();
                // What follows may belong to it, so that it is not what was meant.
                match ended || has_body {
                    true if self.for_spans() => {}
                    true => push_in_small_steps(body, node),
                    false => self.back_to(begin),
                }
                if !ended {
                    self.recover(start);
                }
            }
            Err(_) => {
                self.back_to(begin);
                self.recover(start);
            }
        }
        true
    }

    /// Reads the statement that began at token `start` again, up to an operator that ends its line.
    #[cold]
    #[inline(never)]
    fn statement_without_operand(&mut self, start: usize, operator: usize, depth: u32) -> Parsed<Node> {
        self.resume(operator + 1);
        self.last_mistake = None;
        self.no_operand();
        self.at = start;
        self.missing_operand = Some(operator + 1);
        let statement = self.statement(depth);
        self.missing_operand = None;
        statement
    }

    /// Goes to the `{` on this line, if there is one, after a mistake before it.
    fn resume_at_body(&mut self, skip: Skip) -> Parsed<()> {
        if self.line_ended() && !self.is("{") {
            return Err(skip);
        }
        let line = (self.at..self.tokens.len()).take_while(|at| *at == self.at || !self.tokens.newline_before(*at));
        let brace = line.map(|at| (at, self.punct_at(at))).find(|(_, punct)| matches!(punct, Some("{" | "}")));
        match brace {
            Some((at, Some("{"))) => {
                self.resume(at);
                Ok(())
            }
            _ => Err(skip),
        }
    }

    fn block(&mut self, depth: u32) -> Parsed<Vec<Node>> {
        if !self.is("{") {
            let skip = self.no_body();
            self.resume_at_body(skip)?;
        }
        let open = self.bump();
        self.end_line();
        self.indent += 1;
        let body = self.body(depth);
        self.indent -= 1;
        self.close(open);
        Ok(body)
    }

    fn statement(&mut self, depth: u32) -> Parsed<Node> {
        let start = self.span();
        let place = self.place();
        let (node, head) = match (self.word(), self.kind()) {
            (Some(_), _) if self.keyword_is_name() => self.assignment(depth)?,
            (Some("subgroup"), _) => self.operation(None, Family::Subgroup, depth, place)?,
            (Some(word), _) => match Keyword::from_word(word) {
                Some(Keyword::Let) => self.let_statement(depth, place)?,
                Some(Keyword::If) => return self.if_statement(depth, place),
                Some(Keyword::For) => self.for_statement(depth)?,
                Some(Keyword::Break) => (Node::Break, self.bump()),
                Some(Keyword::Continue) => (Node::Continue, self.bump()),
                Some(Keyword::Return) => (Node::Return, self.bump()),
                Some(Keyword::Barrier) => self.barrier()?,
                Some(Keyword::Trap) => self.trap()?,
                Some(Keyword::Region) => {
                    let start = self.bump();
                    let (name, head) = match self.string() {
                        Some(string) => string,
                        None => {
                            let skip = self.unnamed_region();
                            self.resume_at_body(skip)?;
                            ("".into(), start)
                        }
                    };
                    (Node::Region { generator: name, body: self.block(depth + 1)?.into() }, head)
                }
                Some(Keyword::Atomic) => self.operation(None, Family::Atomic, depth, place)?,
                // No statement begins with these, which is told there.
                Some(
                    Keyword::Buffer
                    | Keyword::Const
                    | Keyword::Workgroup
                    | Keyword::Floats
                    | Keyword::Else
                    | Keyword::In
                    | Keyword::True
                    | Keyword::False
                    | Keyword::Inf
                    | Keyword::Nan
                    | Keyword::Infd
                    | Keyword::Nand
                    | Keyword::Bitcast,
                )
                | None => self.assignment(depth)?,
            },
            (None, Kind::Punct) if self.is("{") => {
                let head = self.span();
                (Node::Block(self.block(depth + 1)?.into()), head)
            }
            (None, Kind::Quoted) => self.assignment(depth)?,
            (None, Kind::Word | Kind::String | Kind::Number | Kind::Punct | Kind::Bad | Kind::End) => {
                return Err(self.no_statement());
            }
        };
        self.end(place, start.to(self.previous()), head);
        Ok(node)
    }

    #[inline(never)]
    fn trap(&mut self) -> Parsed<(Node, Span)> {
        let head = self.bump();
        self.mark(Mark::TightBefore);
        self.expect("(")?;
        let (tag, _) = self.u32("the number of the trap")?;
        self.expect(")")?;
        Ok((Node::Trap { tag }, head))
    }

    #[inline(never)]
    fn let_statement(&mut self, depth: u32, place: NodeId) -> Parsed<(Node, Span)> {
        self.bump();
        let (name, head) = self.name("the name of a variable")?;
        if !self.is("=") {
            let mut diagnostic = self.unexpected_diagnostic("`=`");
            if self.is(":") {
                diagnostic =
                    diagnostic.help("a variable has the type of its value; write `let x = u32(y)` or a suffix to choose it");
            }
            return Err(self.refuse(diagnostic));
        }
        self.bump();
        match self.operation_ahead() {
            Some(family) => self.operation(Some((name, head)), family, depth, place),
            None => Ok((Node::Let { name, value: self.expr(depth + 1)?.expr.into() }, head)),
        }
    }

    #[inline(never)]
    fn assignment(&mut self, depth: u32) -> Parsed<(Node, Span)> {
        if let Some(word) = self.word().filter(|word| self.is_keyword(word)) {
            let diagnostic = self.unexpected_here("a statement");
            return Err(self.unexpected_keyword(word, diagnostic));
        }
        let (name, head) = self.name("a statement")?;
        if self.is("[") {
            self.bump();
            let index = self.expr(depth + 1)?.expr;
            let target = head.to(self.expect("]")?);
            if !self.is("=") {
                return Err(self.not_assigned("`=`", target, None));
            }
            self.bump();
            let value = self.expr(depth + 1)?.expr;
            return Ok((Node::store(name, index, value), head));
        }
        if self.is("=") {
            self.bump();
            return Ok((Node::Assign { name, value: self.expr(depth + 1)?.expr.into() }, head));
        }
        Err(self.not_assigned("`=` or `[`", head, Some(&name)))
    }

    /// The mistake that something else than `=` follows the target of an assignment; `word` is the target if it is a name, which may
    /// be no target at all.
    #[cold]
    #[inline(never)]
    fn not_assigned(&mut self, expected: &str, target: Span, word: Option<&str>) -> Skip {
        let diagnostic = self.unexpected_diagnostic(expected);
        let written = self.slice(target);
        let operator = self.punct().filter(|_| !self.line_ended() && self.infix().is_some());
        let next = self.ahead(1);
        let touches = next.span.start == self.span().end;
        let next_punct = self.punct_ahead(1);
        let same = operator.is_some() && operator == next_punct;
        let common = |keyword: &&Keyword| matches!(keyword.role(), Role::Statement | Role::Declaration);
        let words = Keyword::ALL.iter().filter(common).map(|keyword| keyword.word());
        let diagnostic = match (operator, word) {
            (Some("=="), _) => diagnostic.fix("to assign, write", Fix::Replace(Location::Text(self.span()), "=".into())),
            (Some(operator @ ("+" | "-")), _) if touches && same => {
                diagnostic.help(format!("write {}", code(&format!("{written} = {written} {operator} 1"))))
            }
            (Some(operator), _) if touches && next_punct == Some("=") => {
                diagnostic.help(format!("write {}", code(&format!("{written} = {written} {operator} …"))))
            }
            (None, Some(_)) if self.is("(") => {
                diagnostic.help("an expression is no statement; give its value a name with `let`, or store it")
            }
            (_, Some("while" | "loop" | "do")) => diagnostic.help(LOOP),
            (_, Some("elif" | "elsif" | "elseif")) => diagnostic.help("write `} else if … {`"),
            (_, Some(word)) => match nearest(word, words) {
                Some(meant) => diagnostic.fix("did you mean", Fix::Replace(Location::Text(target), meant.into())),
                None => diagnostic,
            },
            (_, None) => diagnostic,
        };
        self.refuse(diagnostic)
    }

    #[cold]
    #[inline(never)]
    fn no_statement(&mut self) -> Skip {
        let diagnostic = self.unexpected_here("a statement");
        let comment = self.is("/") && self.punct_ahead(1) == Some("*");
        let diagnostic = if comment { diagnostic.help("a comment begins with `//` and ends with its line") } else { diagnostic };
        self.refuse(diagnostic)
    }

    #[cold]
    #[inline(never)]
    fn no_body(&mut self) -> Skip {
        let diagnostic = self.unexpected_diagnostic("`{`");
        let instead = if self.is("=") && !self.line_ended() { Some("==") } else { self.operator_word() };
        let diagnostic = match instead {
            Some(operator) => diagnostic.fix("the operator is", Fix::Replace(Location::Text(self.span()), operator.into())),
            None => diagnostic,
        };
        self.refuse(diagnostic)
    }

    #[cold]
    #[inline(never)]
    fn unnamed_region(&mut self) -> Skip {
        let diagnostic = self.unexpected_diagnostic("the name of the region as a string");
        let diagnostic = match self.word().filter(|_| !self.line_ended()) {
            Some(word) => diagnostic.fix("quote it", Fix::Replace(Location::Text(self.span()), format!("\"{word}\""))),
            None => diagnostic,
        };
        self.refuse(diagnostic)
    }

    /// An expression before a block: after a mistake in it the block is still read, unless that is too deep as well.
    fn before_block(&mut self, depth: u32) -> Parsed<Expr> {
        self.check_depth(depth)?;
        let start = self.span();
        let begin = self.begin();
        let built = self.expr(depth).or_else(|skip| {
            self.resume_at_body(skip)?;
            self.back_to(begin);
            Ok(self.stand_in(start))
        })?;
        Ok(built.expr)
    }

    /// The last expression before a block. Where something else follows, more is meant than what was read.
    fn right_before_block(&mut self, depth: u32) -> Parsed<Expr> {
        let (begin, start) = (self.begin(), self.span());
        let expr = self.before_block(depth)?;
        if self.is("{") {
            return Ok(expr);
        }
        self.back_to(begin);
        Ok(self.stand_in(start.to(self.previous())).expr)
    }

    fn if_statement(&mut self, depth: u32, place: NodeId) -> Parsed<Node> {
        let head = self.bump();
        let cond = self.right_before_block(depth + 1)?.into();
        let then = self.block(depth + 1)?.into();
        let mut otherwise = Body::default();
        if self.word() == Some("else") {
            self.bump();
            if self.word() == Some("if") {
                let place = self.place();
                otherwise = vec![self.if_statement(depth + 1, place)?].into();
            } else {
                otherwise = self.block(depth + 1)?.into();
            }
        }
        self.end(place, head.to(self.previous()), head);
        Ok(Node::If { cond, then, otherwise })
    }

    fn for_statement(&mut self, depth: u32) -> Parsed<(Node, Span)> {
        self.bump();
        if self.is("(") {
            let diagnostic = self.unexpected_diagnostic("the name of a counter").help(LOOP);
            return Err(self.refuse(diagnostic));
        }
        let (var, head) = self.name("the name of a counter")?;
        if self.word() != Some("in") {
            return Err(self.unexpected("`in`"));
        }
        self.bump();
        let from = self.before_block(depth + 1)?;
        let to = if self.is("..") {
            self.bump();
            if self.is("=") {
                let diagnostic = self.unexpected_diagnostic("an expression");
                self.refuse(diagnostic.help("the second bound is not part of the range: `0..n` ends with n - 1"));
                self.bump();
            }
            self.right_before_block(depth + 1)?
        } else {
            let skip = self.unexpected("`..`");
            if !self.is("{") {
                return Err(skip);
            }
            self.stand_in(head).expr
        };
        Ok((Loop { var, from, to, body: self.block(depth + 1)?.into() }.into(), head))
    }

    #[inline(never)]
    fn barrier(&mut self) -> Parsed<(Node, Span)> {
        let mut head = self.bump();
        let mut ordering = MemoryOrdering::SeqCst;
        if self.is(".") {
            self.bump();
            let Some(found) = self.word().and_then(MemoryOrdering::from_name) else {
                return Err(self.unexpected_word(&MemoryOrdering::ALL.map(MemoryOrdering::name)));
            };
            ordering = found;
            head = head.to(self.bump());
        }
        Ok((Node::Barrier { ordering }, head))
    }

    /// Whether an atomic or subgroup operation begins here; ids such as `subgroup.lane` are expressions.
    pub(super) fn operation_ahead(&self) -> Option<Family> {
        let is_id = || {
            let field = if self.punct_ahead(1) == Some(".") { self.word_ahead(2) } else { None };
            field.is_some_and(|field| Builtin::from_parts("subgroup", field).is_some())
        };
        match self.word() {
            Some("atomic") => Some(Family::Atomic),
            Some("subgroup") if !is_id() => Some(Family::Subgroup),
            _ => None,
        }
    }

    /// `atomic.op(…)` or `subgroup.op(…)`, which is a statement of its own; `result` is what `let` declares.
    #[inline(never)]
    fn operation(&mut self, result: Option<Named>, family: Family, depth: u32, place: NodeId) -> Parsed<(Node, Span)> {
        let begin = self.begin();
        let start = self.bump();
        self.expect(".")?;
        let Some(word) = self.word() else { return Err(self.unexpected("the name of an operation")) };
        let done = match family {
            Family::Atomic => {
                let op = AtomicOp::from_mnemonic(word);
                if op.is_none() {
                    self.unknown_operation("atomic", word, AtomicOp::ALL.iter().map(|op| op.mnemonic()));
                }
                let function = start.to(self.bump());
                let AtomicArguments { buffer, index, operands, height } = self.atomic_arguments(depth + 1)?;
                match (op, buffer, index) {
                    (Some(op), Some((buffer, head)), Some(index)) => {
                        self.note_operation(place, Some(function), result.as_ref().map(|(_, span)| *span));
                        let result = result.map(|(name, _)| name);
                        (Atomic { result, op, buffer, index, operands }.into(), head)
                    }
                    (op, buffer, index) => {
                        if op.is_some() {
                            self.mistake(few_atomic_arguments(function));
                        }
                        // So that the buffer is looked for.
                        let len = buffer.map(|(name, span)| self.node(Expr::Len(name), 0, begin, [span; 2], depth + 2));
                        let len = len.transpose()?.map(|len| len.expr);
                        let below = len.into_iter().chain(index).chain(operands).map(Child::from).collect();
                        self.unknown_statement(result, below, height, begin, function, depth)?
                    }
                }
            }
            Family::Subgroup => {
                let op = SubgroupOp::from_mnemonic(word);
                if op.is_none() {
                    self.unknown_operation("subgroup", word, SubgroupOp::ALL.iter().map(|op| op.mnemonic()));
                }
                let head = start.to(self.bump());
                let (operands, height) = self.arguments(depth + 1)?;
                match op {
                    Some(op) => {
                        self.note_operation(place, None, result.as_ref().map(|(_, span)| *span));
                        let (result, operands) = (result.map(|(name, _)| name), operands.into_iter().map(Child::into_inner));
                        (Subgroup { result, op, operands: operands.collect() }.into(), head)
                    }
                    None => self.unknown_statement(result, operands, height, begin, head, depth)?,
                }
            }
        };
        if self.infix().is_some() || self.is(".") {
            let diagnostic = Diagnostic::new(ErrorCode::E0110, "an atomic or subgroup operation stands alone after `let`")
                .at(Location::Text(start.to(self.previous())))
                .help("give its result a name first, and use that");
            return Err(self.refuse(diagnostic));
        }
        Ok(done)
    }

    fn atomic_arguments(&mut self, depth: u32) -> Parsed<AtomicArguments> {
        self.open_call()?;
        let mut arguments = AtomicArguments { buffer: None, index: None, operands: Vec::new(), height: 0 };
        if !self.is(")") {
            arguments.buffer = Some(self.name("the name of a buffer")?);
            // It is looked for as an expression if something is wrong.
            arguments.height = 1;
            while self.is(",") {
                self.bump();
                let Built { expr, height, .. } = self.expr(depth)?;
                arguments.height = arguments.height.max(height);
                match arguments.index {
                    None => arguments.index = Some(expr),
                    Some(_) if self.for_spans() => {}
                    Some(_) => push_in_small_steps(&mut arguments.operands, expr),
                }
            }
        }
        self.close_call()?;
        Ok(arguments)
    }

    /// What stands for an operation with a mistake in it, over these operands.
    fn unknown_statement(
        &mut self,
        result: Option<Named>,
        operands: Vec<Child>,
        height: u32,
        begin: Begin,
        head: Span,
        depth: u32,
    ) -> Parsed<(Node, Span)> {
        let spans = [head.to(self.previous()), head];
        let value = self.list(operands, Reading::Unknown, height, begin, spans, depth + 1)?.expr;
        Ok(match result {
            Some((name, span)) => (Node::Let { name, value: value.into() }, span),
            // Of the statements that declare nothing this one takes any value.
            None => (Node::if_then(value, Vec::new()), head),
        })
    }

    #[cold]
    #[inline(never)]
    fn unknown_operation(&mut self, family: &str, word: &str, known: impl Iterator<Item = &'static str>) {
        let diagnostic = Diagnostic::new(ErrorCode::E0205, format!("there is no operation `{family}.{word}`"));
        self.mistake_here(match nearest(word, known) {
            Some(meant) => diagnostic.fix("did you mean", Fix::Replace(Location::Text(self.span()), meant.into())),
            None => diagnostic,
        });
    }
}

fn few_atomic_arguments(function: Span) -> Diagnostic {
    Diagnostic::new(ErrorCode::E0313, "an atomic operation needs a buffer and an index")
        .at(Location::Text(function))
        .expected("a buffer, an index and the operands")
        .found("fewer arguments")
}
