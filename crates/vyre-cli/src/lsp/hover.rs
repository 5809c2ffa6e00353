//! What is known about the word under the cursor, and where its name is declared.

use super::document::Text;
use std::fmt::Write;
use vyre::Location;
use vyre::analysis::{Bounds, Ranges, Scope};
use vyre::diagnostic::{Source, Span};
use vyre::ir::{OpId, Program, Scalar, ValueType};
use vyre::kernel::{AccessId, ExprId, ExprKind, Kernel, StmtKind};
use vyre::text::classify::{Class, classify};
use vyre::validate::Validated;

/// Markdown about what is at a byte, and the part of the text that it is about.
pub fn hover(program: Option<&Program>, text: &Text, offset: usize) -> Option<(Span, String)> {
    if let Some(program) = program
        && let Ok(validated) = program.validated()
        && let Some(source) = program.source()
        && let Some(found) = (Known { validated, kernel: validated.kernel(), source }).at(offset)
    {
        return Some(found);
    }
    // Of a text with mistakes only the words are known.
    let (span, class, word) = word_at(text, offset)?;
    let op = OpId::all().find(|op| matches!(class, Class::Function) && op.info().mnemonic == word)?;
    Some((span, row(op)))
}

/// The word or number at a byte.
fn word_at(text: &Text, offset: usize) -> Option<(Span, Class, &str)> {
    let parts = classify(&text.text);
    let touches = |span: &Span| span.start as usize <= offset && offset <= span.end as usize;
    // Between two, the one that begins there.
    let (span, class) = *parts.iter().rev().find(|(span, class)| touches(span) && *class != Class::Operator)?;
    Some((span, class, &text.text[span.start as usize..span.end as usize]))
}

/// Where the name at a byte is declared: names are not shadowed, so it is the last declaration before it.
pub fn definition(text: &Text, offset: usize) -> Option<Span> {
    let (at, class, name) = word_at(text, offset)?;
    if !matches!(class, Class::Buffer | Class::Constant | Class::Variable) {
        return None;
    }
    let parts = classify(&text.text);
    let said = |span: Span| &text.text[span.start as usize..span.end as usize];
    let declares = |pair: &&[(Span, Class)]| {
        matches!(said(pair[0].0), "let" | "for" | "buffer" | "const") && said(pair[1].0) == name && pair[1].0.start <= at.start
    };
    parts.windows(2).rev().find(declares).map(|pair| pair[1].0)
}

struct Known<'a> {
    validated: &'a Validated,
    kernel: &'a Kernel,
    source: &'a Source,
}

impl Known<'_> {
    fn at(&self, offset: usize) -> Option<(Span, String)> {
        let contains = |span: &Span| (span.start as usize) <= offset && offset < span.end as usize;
        let length = |span: &Span| span.end - span.start;
        let exprs =
            self.kernel.exprs.iter().enumerate().map(|(n, expr)| (ExprId(n as u32), self.span(Location::Tree(expr.node))));
        let nearest = exprs.filter(|(_, span)| contains(span)).min_by_key(|(_, span)| length(span));
        if let Some((expr, span)) = nearest {
            return Some((span, self.about_expr(expr, span)));
        }
        // A name that is declared, and operations, which are statements.
        for stmt in &self.kernel.stmts {
            let head = self.span(Location::Head(stmt.node));
            match stmt.kind {
                StmtKind::Let { var, value } | StmtKind::Assign { var, value } if contains(&head) => {
                    return Some((head, self.about_value(self.kernel.var(var).name.as_str(), value)));
                }
                StmtKind::Loop { counter, .. } if contains(&head) => {
                    return Some((head, code(&format!("{}: u32", self.kernel.var(counter).name)) + "the counter of a loop\n"));
                }
                StmtKind::Atomic { access, op, .. } if contains(&self.span(Location::Operation(stmt.node))) => {
                    let about = row(OpId::Atomic(op)) + &self.about_access(access);
                    return Some((self.span(Location::Operation(stmt.node)), about));
                }
                StmtKind::Subgroup { op, .. } if contains(&self.span(Location::Operation(stmt.node))) => {
                    return Some((self.span(Location::Operation(stmt.node)), row(OpId::Subgroup(op))));
                }
                StmtKind::Atomic { result: Some(var), .. } | StmtKind::Subgroup { result: Some(var), .. }
                    if contains(&self.span(Location::Result(stmt.node))) =>
                {
                    let var = self.kernel.var(var);
                    return Some((self.span(Location::Result(stmt.node)), code(&format!("{}: {}", var.name, var.ty))));
                }
                StmtKind::Store { access, buffer, .. } if contains(&head) => {
                    return Some((head, self.about_buffer(buffer.index()) + &self.about_access(access)));
                }
                StmtKind::Let { .. }
                | StmtKind::Assign { .. }
                | StmtKind::Store { .. }
                | StmtKind::Atomic { .. }
                | StmtKind::Subgroup { .. }
                | StmtKind::If { .. }
                | StmtKind::Loop { .. }
                | StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Return
                | StmtKind::Barrier
                | StmtKind::GridSync
                | StmtKind::Trap { .. }
                | StmtKind::Scope { .. } => {}
            }
        }
        let buffers = &self.source.spans.buffers;
        let (n, spans) = buffers.iter().enumerate().find(|(_, spans)| contains(&spans[0]))?;
        Some((spans[0], self.about_buffer(n)))
    }

    fn span(&self, location: Location) -> Span {
        self.source.span(location)
    }

    fn about_expr(&self, expr: ExprId, span: Span) -> String {
        let written = self.source.text.get(span.start as usize..span.end as usize).unwrap_or_default();
        let mut about = self.about_value(&written.split_whitespace().collect::<Vec<_>>().join(" "), expr);
        let kind = &self.kernel.expr(expr).kind;
        match *kind {
            ExprKind::Load { access, buffer, .. } => {
                about.push_str(&self.about_access(access));
                about.push_str(&self.about_buffer(buffer.index()));
            }
            ExprKind::Unary { op, .. } => about.push_str(&row(OpId::Unary(op))),
            ExprKind::Binary { op, .. } => about.push_str(&row(OpId::Binary(op))),
            ExprKind::Ternary { op, .. } => about.push_str(&row(OpId::Ternary(op))),
            ExprKind::Cast { from, to, .. } => {
                let _ = writeln!(about, "\nconverts {from} to {to}");
            }
            ExprKind::Bitcast { from, to, .. } => {
                let _ = writeln!(about, "\nthe bits of {from} as {to}");
            }
            ExprKind::Len { buffer } => about.push_str(&self.about_buffer(buffer.index())),
            ExprKind::Lit { .. }
            | ExprKind::Var { .. }
            | ExprKind::Builtin { .. }
            | ExprKind::Vector { .. }
            | ExprKind::Extract { .. } => {}
        }
        about
    }

    /// Type, uniformity and range of a value, under a name.
    fn about_value(&self, name: &str, expr: ExprId) -> String {
        let ty = self.kernel.expr(expr).ty;
        let mut about = code(&format!("{name}: {ty}"));
        let Some(value) = self.validated.ssa().expr(expr) else {
            about.push_str("never evaluated\n");
            return about;
        };
        about.push_str(match self.validated.uniformity().width(value) {
            Some(Scope::Dispatch) => "uniform: the same for the whole dispatch\n",
            Some(Scope::Workgroup) => "uniform: the same for a workgroup\n",
            Some(Scope::Subgroup) => "uniform: the same for a subgroup; divergent in a workgroup\n",
            None => "divergent: invocations of a subgroup may have different values\n",
        });
        if ty == ValueType::Scalar(Scalar::U32) {
            let range = Ranges::of(self.validated.ssa()).of_value(value);
            if let Some(number) = range.exact() {
                let _ = writeln!(about, "\nalways {number}");
            } else if range.low > 0 || range.high < u32::MAX {
                let _ = writeln!(about, "\nfrom {} to {}", range.low, range.high);
            }
            for (n, buffer) in self.kernel.buffers.iter().enumerate() {
                if range.below.contains(vyre::kernel::BufferId(n as u32)) {
                    let _ = writeln!(about, "\nbelow len({})", buffer.name);
                }
            }
        }
        about
    }

    fn about_access(&self, access: AccessId) -> String {
        match Bounds::of(self.validated.ssa()).is_proven(access) {
            true => "\nin bounds: proven, not checked\n".into(),
            false => "\nchecked: past the end a load gives 0, a store does nothing\n".into(),
        }
    }

    fn about_buffer(&self, n: usize) -> String {
        let buffer = &self.kernel.buffers[n];
        let count = buffer.count.map(|count| format!("[{count}]")).unwrap_or_default();
        let binding = buffer.binding.map(|binding| format!(" @{binding}")).unwrap_or_default();
        let mut about = code(&format!("buffer {}: {} {}{count}{binding}", buffer.name, buffer.access, buffer.element));
        if ValueType::to_string(&buffer.value) != buffer.element.to_string() {
            let _ = writeln!(about, "loads as {}", buffer.value);
        }
        about
    }
}

/// A line of code.
fn code(text: &str) -> String {
    format!("```vyre\n{text}\n```\n")
}

/// An op's row of the tables: how it is written, for which types, what it gives and means.
fn row(op: OpId) -> String {
    let info = op.info();
    format!("\n`{}` for T of {}, gives {}: {}\n", op.written(), info.over, info.result, info.doc)
}
