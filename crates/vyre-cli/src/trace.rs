//! `vyre run --trace X,Y,Z`: every value that one invocation computed, beside the lines of the program.
//!
//! The reference runs the whole dispatch, since what the invocation reads may come from others, and one invocation is written down. A
//! step is a statement as it was executed: values in the order in which they were computed, each once, loads and stores with the index
//! that they had, and where control went. An iteration of a loop is a step at the line of the loop.

use crate::style::Style;
use serde_json::{Value as Json, json};
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;
use vyre::diagnostic::Source;
use vyre::ir::{NodeId, Program, ValueType};
use vyre::kernel::{AccessId, ExprId, ExprKind, Kernel, StmtId, StmtKind};
use vyre::launch::Launch;
use vyre::reference::trace::{At, Sink};
use vyre::reference::{Options, RunError};
use vyre::scalar::{Value, memory};
use vyre::{Location, Report};

/// Steps that are kept, unless all are asked for.
const KEPT: usize = 10_000;

/// What a run gave.
pub type Outcome = Result<Vec<Vec<u8>>, RunError>;

/// What one invocation did.
pub struct Trace {
    source: Arc<Source>,
    place: [[u32; 3]; 3],
    steps: Vec<Step>,
    left_out: u64,
}

/// A statement that was executed, or an iteration that began.
struct Step {
    stmt: StmtId,
    /// From 1.
    line: usize,
    said: Vec<String>,
}

/// Runs the program and writes down what an invocation does; also what the run gave.
pub fn trace(
    program: &Program,
    inputs: &[&[u8]],
    options: &Options,
    launch: &Launch,
    invocation: [u32; 3],
    all: bool,
) -> Result<(Trace, Outcome), Report> {
    let kernel = program.validated().map_err(Clone::clone)?.kernel();
    let source = program.source().cloned().unwrap_or_else(|| Arc::new(vyre::text::print(program)));
    let size = launch.workgroup_size;
    let group: [u32; 3] = std::array::from_fn(|axis| invocation[axis] / size[axis]);
    let local: [u32; 3] = std::array::from_fn(|axis| invocation[axis] % size[axis]);
    let linear = |[x, y, z]: [u32; 3], [nx, ny, _]: [u32; 3]| (z * ny + y) * nx + x;
    let mut recorder = Recorder {
        kernel,
        source: &source,
        lengths: &launch.lengths,
        wanted: linear(group, launch.grid) * size.iter().product::<u32>() + linear(local, size),
        kept: if all { usize::MAX } else { KEPT },
        steps: Vec::new(),
        left_out: 0,
        index: None,
        from: HashMap::new(),
        last: Value::default(),
    };
    let result = vyre::reference::trace::run(program, inputs, options, &mut recorder);
    let Recorder { steps, left_out, .. } = recorder;
    Ok((Trace { source: source.clone(), place: [invocation, group, local], steps, left_out }, result))
}

struct Recorder<'a> {
    kernel: &'a Kernel,
    source: &'a Source,
    lengths: &'a [u32],
    wanted: u32,
    kept: usize,
    steps: Vec<Step>,
    left_out: u64,
    /// The element of the access that was last, and whether there is one.
    index: Option<(u32, bool)>,
    /// By loop: the first value of its counter.
    from: HashMap<StmtId, u32>,
    /// The value that was computed last.
    last: Value,
}

impl Recorder<'_> {
    fn begin(&mut self, stmt: StmtId) {
        let node = self.kernel.stmt(stmt).node;
        if self.steps.len() >= self.kept {
            self.left_out += 1;
        }
        let line = self.source.line_column(self.source.span(Location::Tree(node)).start).0;
        self.steps.push(Step { stmt, line, said: Vec::new() });
        // The step after the last that is kept takes what is left out.
        self.steps.truncate(self.kept.saturating_add(1));
    }

    fn say(&mut self, words: String) {
        if let Some(step) = self.steps.last_mut().filter(|_| self.left_out == 0)
            && !step.said.contains(&words)
        {
            step.said.push(words);
        }
    }

    /// What is written at a place, in one line.
    fn text(&self, node: NodeId) -> String {
        const LONGEST: usize = 48;
        let span = self.source.span(Location::Tree(node));
        let text = self.source.text.get(span.start as usize..span.end as usize).unwrap_or_default();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        match text.char_indices().nth(LONGEST) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text,
        }
    }

    /// The statement that is being executed.
    fn current(&self) -> Option<(StmtId, StmtKind)> {
        self.steps.last().map(|step| (step.stmt, self.kernel.stmt(step.stmt).kind))
    }
}

fn shown(ty: ValueType, value: Value) -> String {
    match ty {
        ValueType::Scalar(scalar) => vyre::text::format_value(scalar, value.scalar()),
        ValueType::Vector(scalar, count) => {
            let parts = value.0[..usize::from(count)].iter().map(|bits| vyre::text::format_value(scalar, *bits));
            format!("vec({})", parts.collect::<Vec<_>>().join(", "))
        }
    }
}

impl Sink for Recorder<'_> {
    fn statement(&mut self, at: At<'_>, stmt: StmtId) {
        if at.invocation != self.wanted {
            return;
        }
        match self.kernel.stmt(stmt).kind {
            // Braces do nothing.
            StmtKind::Scope { .. } => {}
            StmtKind::Break => {
                self.begin(stmt);
                self.say("leaves the loop".into());
            }
            StmtKind::Continue => {
                self.begin(stmt);
                self.say("goes on with the next iteration".into());
            }
            StmtKind::Return => {
                self.begin(stmt);
                self.say("ends here".into());
            }
            StmtKind::Barrier | StmtKind::GridSync => {
                self.begin(stmt);
                self.say("waits for the others".into());
            }
            StmtKind::Trap { tag } => {
                self.begin(stmt);
                self.say(format!("trap {tag}: ends here, and the dispatch has no outputs"));
            }
            StmtKind::Let { .. }
            | StmtKind::Assign { .. }
            | StmtKind::Store { .. }
            | StmtKind::Atomic { .. }
            | StmtKind::Subgroup { .. }
            | StmtKind::If { .. }
            | StmtKind::Loop { .. } => self.begin(stmt),
        }
    }

    fn expression(&mut self, at: At<'_>, expr: ExprId, value: Value) {
        if at.invocation != self.wanted {
            return;
        }
        self.last = value;
        let typed = self.kernel.expr(expr);
        let text = shown(typed.ty, value);
        let Some((stmt, kind)) = self.current() else { return };
        let written = self.text(typed.node);
        let gives = matches!(kind, StmtKind::Let { .. } | StmtKind::Assign { .. } | StmtKind::Store { .. });
        let is_whole = gives && kind.operands().last() == Some(&expr);
        match typed.kind {
            ExprKind::Load { buffer, .. } => {
                let (index, in_bounds) = self.index.take().unwrap_or_default();
                let name = &self.kernel.buffer(buffer).name;
                let beyond = format!(" (past the end: len({name}) = {})", self.lengths[buffer.index()]);
                self.say(format!("{name}[{index}] = {text}{}", if in_bounds { "" } else { &beyond }));
            }
            // A constant of the program is named, a number is what it is.
            ExprKind::Lit { .. } if !written.starts_with(|c: char| c.is_alphabetic() || c == '_' || c == '`') => {}
            ExprKind::Lit { .. } if written == text => {}
            // What a whole statement gives is said under the name it goes to.
            ExprKind::Unary { .. } | ExprKind::Binary { .. } | ExprKind::Ternary { .. } | ExprKind::Cast { .. } if is_whole => {}
            ExprKind::Bitcast { .. } | ExprKind::Vector { .. } | ExprKind::Extract { .. } if is_whole => {}
            ExprKind::Builtin { .. } | ExprKind::Len { .. } if is_whole => {}
            ExprKind::Lit { .. }
            | ExprKind::Var { .. }
            | ExprKind::Builtin { .. }
            | ExprKind::Len { .. }
            | ExprKind::Unary { .. }
            | ExprKind::Binary { .. }
            | ExprKind::Ternary { .. }
            | ExprKind::Cast { .. }
            | ExprKind::Bitcast { .. }
            | ExprKind::Vector { .. }
            | ExprKind::Extract { .. } => self.say(format!("{written} = {text}")),
        }
        if let StmtKind::Let { var, value } | StmtKind::Assign { var, value } = kind
            && value == expr
        {
            self.say(format!("{} = {text}", self.kernel.var(var).name));
        } else if let StmtKind::If { cond, otherwise, .. } = kind
            && cond == expr
        {
            let goes = match (value.scalar() != 0, otherwise.is_empty()) {
                (true, _) => "taken",
                (false, true) => "not taken",
                (false, false) => "else",
            };
            self.say(goes.into());
        } else if let StmtKind::Loop { from, .. } = kind
            && from == expr
        {
            self.from.insert(stmt, value.scalar() as u32);
        }
    }

    fn iteration(&mut self, at: At<'_>) {
        let Some((stmt, ordinal)) = at.loops.last().copied().filter(|_| at.invocation == self.wanted) else { return };
        let StmtKind::Loop { counter, .. } = self.kernel.stmt(stmt).kind else { return };
        // The first iteration begins in the step of the loop itself.
        if ordinal > 0 {
            self.begin(stmt);
        }
        let from = self.from.get(&stmt).copied().unwrap_or_default();
        self.say(format!("{} = {}", self.kernel.var(counter).name, from + ordinal));
    }

    fn loop_ends(&mut self, at: At<'_>, stmt: StmtId, iterations: u32) {
        if at.invocation != self.wanted {
            return;
        }
        if iterations > 0 {
            self.begin(stmt);
        }
        self.say(match iterations {
            0 => "no iterations".into(),
            1 => "ends after 1 iteration".into(),
            many => format!("ends after {many} iterations"),
        });
    }

    fn access(&mut self, at: At<'_>, access: AccessId, element: u32, in_bounds: bool) {
        if at.invocation != self.wanted {
            return;
        }
        self.index = Some((element, in_bounds));
        let buffer = self.kernel.buffer(self.kernel.access(access).buffer);
        let length = self.lengths[self.kernel.access(access).buffer.index()];
        match self.current() {
            Some((_, StmtKind::Store { access: own, value, .. })) if own == access => {
                let (ty, given) = (self.kernel.expr(value).ty, self.last);
                let mut bytes = vec![0; memory::byte_length(&buffer.element, 1).unwrap_or(0) as usize];
                memory::store(&buffer.element, self.kernel.floats, &mut bytes, 0, given);
                let held = memory::load(&buffer.element, self.kernel.floats, &bytes, 0);
                let narrowed = if held == given { String::new() } else { format!(" (made of {})", shown(ty, given)) };
                let lost = format!(" (dropped, past the end: len({}) = {length})", buffer.name);
                let words = if in_bounds { &narrowed } else { &lost };
                self.say(format!("{}[{element}] = {}{words}", buffer.name, shown(ty, held)));
            }
            Some((_, StmtKind::Atomic { access: own, result, .. })) if own == access && !in_bounds => {
                self.say(format!("{}[{element}] is past the end: len({}) = {length}", buffer.name, buffer.name));
                if let Some(var) = result {
                    self.say(format!("{} = {}", self.kernel.var(var).name, shown(self.kernel.var(var).ty, Value::default())));
                }
            }
            Some(_) | None => {}
        }
    }

    fn atomic(&mut self, at: At<'_>, access: AccessId, old: u64, new: u64) {
        if at.invocation != self.wanted {
            return;
        }
        let Some((_, StmtKind::Atomic { result, .. })) = self.current() else { return };
        let buffer = self.kernel.buffer(self.kernel.access(access).buffer);
        let (element, _) = self.index.take().unwrap_or_default();
        let [old, new] = [old, new].map(|bits| shown(buffer.value, bits.into()));
        self.say(match old == new {
            true => format!("{}[{element}] = {old}", buffer.name),
            false => format!("{}[{element}] = {new} (was {old})", buffer.name),
        });
        if let Some(var) = result {
            self.say(format!("{} = {old}", self.kernel.var(var).name));
        }
    }

    fn exchanged(&mut self, at: At<'_>, value: Value) {
        if at.invocation != self.wanted {
            return;
        }
        if let Some((_, StmtKind::Subgroup { result: Some(var), .. })) = self.current() {
            self.say(format!("{} = {}", self.kernel.var(var).name, shown(self.kernel.var(var).ty, value)));
        }
    }

    fn barrier(&mut self, _: u32) {}

    fn grid_barrier(&mut self) {}
}

impl Trace {
    fn steps(&self) -> &[Step] {
        // What is behind the limit only took what was left out.
        if self.left_out > 0 { &self.steps[..self.steps.len() - 1] } else { &self.steps }
    }

    pub fn json(&self) -> Json {
        let [invocation, workgroup, local] = self.place;
        let steps: Vec<Json> = self.steps().iter().map(|step| json!({ "line": step.line, "values": step.said })).collect();
        json!({ "invocation": invocation, "workgroup": workgroup, "local": local, "steps": steps, "left_out": self.left_out })
    }

    /// Lines of the program on the left, values on the right.
    pub fn drawn(&self, style: Style) -> String {
        const WIDEST: usize = 48;
        let [invocation, workgroup, local] = self.place.map(|[x, y, z]| format!("{x},{y},{z}"));
        let mut out = style.strong(&format!("invocation {invocation} (workgroup {workgroup}, local {local})\n"));
        let lines: Vec<&str> = self.source.text.lines().collect();
        let code = |step: &Step| {
            let line = lines.get(step.line - 1).copied().unwrap_or_default();
            let line = line.find("//").map_or(line, |comment| &line[..comment]).trim_end();
            match line.char_indices().nth(WIDEST) {
                Some((end, _)) => format!("{}…", &line[..end]),
                None => line.to_string(),
            }
        };
        let numbers = self.steps().iter().map(|step| step.line).max().unwrap_or(1).to_string().len();
        let widest = self.steps().iter().map(|step| code(step).chars().count()).max().unwrap_or(0);
        for step in self.steps() {
            let _ = write!(out, "{:>numbers$} | {:<widest$}", step.line, code(step));
            let room = style.width.saturating_sub(numbers + widest + 6).max(30);
            let mut line = String::new();
            let mut rows = Vec::new();
            for (n, said) in step.said.iter().enumerate() {
                if !line.is_empty() && line.chars().count() + said.chars().count() + 3 > room {
                    rows.push(std::mem::take(&mut line));
                }
                let comma = if n + 1 < step.said.len() { ", " } else { "" };
                let _ = write!(line, "{said}{comma}");
            }
            rows.push(line);
            for (n, row) in rows.iter().enumerate() {
                let margin = if n > 0 { format!("{:>numbers$} | {:<widest$}", "", "") } else { String::new() };
                let _ = writeln!(out, "{margin}  {}", style.faint(row.trim_end()));
            }
        }
        if self.left_out > 0 {
            let _ = writeln!(out, "… {} steps more (--full shows all)", self.left_out);
        }
        out
    }
}
