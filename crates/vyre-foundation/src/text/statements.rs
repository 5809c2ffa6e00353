//! Statements.

use super::ast::{Built, Reading};
use super::constructs::LOOP;
use super::foreign::{self, Instead};
use super::lexer::Kind;
use super::names::{Keyword, Role};
use super::parser::{Begin, Mark, Named, Parsed, Parser, Skip, push_in_small_steps};
use super::suggest::nearest;
use crate::diagnostic::{Diagnostic, Fix, Location, Span};
use crate::ir::{Atomic, Body, Child, Expr, Loop, Node, NodeId, Subgroup};
use crate::memory_model::MemoryOrdering;
use vyre_spec::limits::MAX_NESTING;
use vyre_spec::{AtomicOp, Builtin, ErrorCode, SubgroupOp};

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
                let span = self.span();
                self.is_head = false;
                let more = self.one_statement(depth, &mut body);
                if !self.is_head {
                    first_statement.get_or_insert(span);
                }
                if !more {
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
    pub(super) fn one_statement(&mut self, depth: u32, body: &mut Vec<Node>) -> bool {
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
    pub(super) fn resume_at_body(&mut self, skip: Skip) -> Parsed<()> {
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

    pub(super) fn block(&mut self, depth: u32) -> Parsed<Vec<Node>> {
        if !self.is("{") {
            if let Some(body) = self.body_without_braces(depth) {
                return Ok(body);
            }
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
            (Some("subgroup"), _) if self.punct_ahead(1) == Some(".") => self.operation(None, Family::Subgroup, depth, place)?,
            (Some(word), _) => match Keyword::from_word(word) {
                Some(Keyword::Let) => self.let_statement(depth, place)?,
                Some(Keyword::If) => return self.if_statement(depth, place),
                Some(Keyword::For) => self.for_statement(depth)?,
                Some(Keyword::Break) => (Node::Break, self.bump()),
                Some(Keyword::Continue) => (Node::Continue, self.bump()),
                Some(Keyword::Return) => {
                    let head = self.bump();
                    if !self.line_ended() && self.operand_ahead() {
                        self.returned_value(depth)?;
                    }
                    (Node::Return, head)
                }
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
                | None => {
                    if !matches!(self.punct_ahead(1), Some("=" | "["))
                        && let Some(statement) = self.foreign_statement(depth, place)
                    {
                        statement?
                    } else {
                        self.assignment(depth)?
                    }
                }
            },
            (None, Kind::Punct) if self.is("{") => {
                let head = self.span();
                (Node::Block(self.block(depth + 1)?.into()), head)
            }
            (None, Kind::Quoted) => self.assignment(depth)?,
            (None, Kind::Word | Kind::String | Kind::Number | Kind::Punct | Kind::Bad | Kind::End) => {
                match self.foreign_statement(depth, place) {
                    Some(statement) => statement?,
                    None => return Err(self.no_statement()),
                }
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
        if self.word() == Some("mut") {
            self.let_mut();
        }
        let (name, head) = self.name("the name of a variable")?;
        if !self.is("=") {
            if self.is(":") && !self.line_ended() {
                return self.let_with_type(name, head, depth, place);
            }
            return Err(self.let_without_value(&name));
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
            if self.is("[") && !self.line_ended() {
                self.second_index(&name)?;
            }
            if !self.is("=") {
                let span = target.to(self.previous());
                return match self.compound(span, Some(index), &name, depth) {
                    Some(node) => Ok((node?, head)),
                    None => Err(self.not_assigned("`=`", target, None)),
                };
            }
            self.bump();
            let value = self.expr(depth + 1)?.expr;
            return Ok((Node::store(name, index, value), head));
        }
        if self.is("=") {
            self.bump();
            return Ok((Node::Assign { name, value: self.expr(depth + 1)?.expr.into() }, head));
        }
        match self.compound(head, None, &name, depth) {
            Some(node) => Ok((node?, head)),
            None => Err(self.not_assigned("`=` or `[`", head, Some(&name))),
        }
    }

    /// The mistake that something else than `=` follows the target of an assignment; `word` is the target if it is a name, which may
    /// be no target at all.
    #[cold]
    #[inline(never)]
    fn not_assigned(&mut self, expected: &str, target: Span, word: Option<&str>) -> Skip {
        let diagnostic = self.unexpected_diagnostic(expected);
        let operator = self.punct().filter(|_| !self.line_ended() && self.infix().is_some());
        let common = |keyword: &&Keyword| matches!(keyword.role(), Role::Statement | Role::Declaration);
        let words = Keyword::ALL.iter().filter(common).map(|keyword| keyword.word());
        let diagnostic = match (operator, word) {
            (Some("=="), _) => diagnostic.fix("to assign, write", Fix::Replace(Location::Text(self.span()), "=".into())),
            (None, Some(word)) if self.is("(") => match foreign::function(word) {
                Some(Instead::Help(help)) => {
                    self.was_told();
                    Diagnostic::new(ErrorCode::E0205, format!("there is no function `{word}`"))
                        .at(Location::Text(target))
                        .help(help)
                }
                Some(Instead::Word(_)) | None => {
                    diagnostic.help("an expression is not a statement: give its value a name with `let`, or store it")
                }
            },
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
        self.refuse(diagnostic)
    }

    #[cold]
    #[inline(never)]
    fn let_without_value(&mut self, name: &str) -> Skip {
        let diagnostic = self.unexpected_diagnostic("`=`");
        let valueless = self.line_ended() || self.is(";");
        self.refuse(if valueless { diagnostic.help(format!("give it a value: `let {name} = 0`")) } else { diagnostic })
    }

    #[cold]
    #[inline(never)]
    fn no_body(&mut self) -> Skip {
        let diagnostic = self.unexpected_diagnostic("`{`");
        let instead = if self.is("=") && !self.line_ended() { Some("==") } else { self.operator_word() };
        let diagnostic = match instead {
            Some(operator) => diagnostic.fix("the operator is", Fix::Replace(Location::Text(self.span()), operator.into())),
            None if matches!(self.word(), Some("step" | "by")) => {
                diagnostic.help("a loop counts by one: `for k in 0..n / 2 { let i = k * 2 … }`")
            }
            None if self.line_ended() => diagnostic.help("a body is written in braces"),
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
        if self.is("{") || self.is(":") {
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
        // `if (c) a = 1; else a = 2;`
        if self.is(";") && self.word_ahead(1) == Some("else") {
            self.bump();
        }
        let chained = match self.word() {
            Some("else") => {
                self.bump();
                Some(self.word() == Some("if"))
            }
            Some(word) if word.starts_with("els") || word == "elif" => self.else_if(word).then_some(true),
            Some(_) | None => None,
        };
        match chained {
            Some(true) => {
                let place = self.place();
                otherwise = vec![self.if_statement(depth + 1, place)?].into();
            }
            Some(false) => otherwise = self.block(depth + 1)?.into(),
            None => {}
        }
        self.end(place, head.to(self.previous()), head);
        Ok(Node::If { cond, then, otherwise })
    }

    fn for_statement(&mut self, depth: u32) -> Parsed<(Node, Span)> {
        self.bump();
        if self.is("(") {
            return self.counted_in_parentheses(depth);
        }
        let (var, head) = self.name("the name of a counter")?;
        if self.word() != Some("in") {
            return Err(self.unexpected("`in`"));
        }
        self.bump();
        if self.word() == Some("range") && self.punct_ahead(1) == Some("(") {
            let [from, to] = self.range_call(depth + 1)?;
            return Ok((Loop { var, from, to, body: self.block(depth + 1)?.into() }.into(), head));
        }
        let begin = self.begin();
        let mut from = self.before_block(depth + 1)?;
        let to = if self.is("..") {
            self.bump();
            if self.is("=") {
                let diagnostic = self.unexpected_diagnostic("an expression");
                self.refuse(diagnostic.help("the second bound is not part of the range: `0..n` ends with n - 1"));
                self.bump();
            }
            self.right_before_block(depth + 1)?
        } else {
            let diagnostic = self.unexpected_diagnostic("`..`").help(LOOP);
            let skip = self.refuse(diagnostic);
            if !self.is("{") {
                return Err(skip);
            }
            self.back_to(begin);
            from = self.stand_in(head).expr;
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
        if self.is("(") && !self.line_ended() {
            self.barrier_call(head);
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
    pub(super) fn operation(&mut self, result: Option<Named>, family: Family, depth: u32, place: NodeId) -> Parsed<(Node, Span)> {
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
