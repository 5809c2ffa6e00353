//! A run as Markdown, for a comment on a pull request.

use super::failing::Failing;
use super::{Cell, Report, duration, grouped};
use crate::evidence::{Class, Verdict};
use std::fmt::Write;

/// Ops that are named; all are counted.
const NAMED: usize = 20;
/// Characters of a program, and of values.
const PROGRAM: usize = 3000;
const VALUES: usize = 200;

impl Report<'_> {
    /// The text.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut out = String::new();
        let identity = &self.run.identity;
        let mark = match self.verdict {
            Verdict::Holds => "✅",
            Verdict::WithExceptions => "⚠️",
            Verdict::Fails => "❌",
            Verdict::None(_) => "⛔",
        };
        let _ = writeln!(out, "### {mark} {} on {}\n", self.headline(), code(&identity.backend));
        let _ = writeln!(out, "{}\n", escaped(&self.reason()));
        let totals = self.totals;
        out += "| judged | failed | skipped | not run | units | launches | time |\n|--:|--:|--:|--:|--:|--:|--:|\n";
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {} |\n",
            grouped(totals.tested),
            grouped(totals.failed),
            grouped(totals.skipped),
            grouped(totals.not_run),
            grouped(totals.units),
            grouped(totals.launches),
            duration(self.run.info.took_ms)
        );
        self.failures(&mut out);
        self.evidence(&mut out);
        self.wrong_entries(&mut out);
        let skips = self.skips();
        if !skips.is_empty() {
            let _ = writeln!(out, "<details><summary>Skipped</summary>\n\n| reason | sections | cases |\n|---|--:|--:|");
            for (reason, (sections, cases)) in skips.iter().take(NAMED) {
                let _ = writeln!(out, "| {} | {} | {} |", escaped(&cut(reason, 200)), sections.len(), grouped(*cases));
            }
            more(&mut out, skips.len(), "reasons");
            out += "\n</details>\n\n";
        }
        let _ = writeln!(out, "Root {}", code(&self.run.root.to_string()));
        if !self.run.info.command.is_empty() {
            let _ = writeln!(out, "· again: {}", code(&self.again().unwrap_or_else(|| self.command(&self.run.info.command))));
        }
        out
    }

    fn failures(&self, out: &mut String) {
        let failing = self.failing();
        if failing.is_empty() {
            return;
        }
        *out += "| op | failed | of | first failure | again |\n|---|--:|--:|---|---|\n";
        for failing in failing.iter().take(NAMED) {
            let told = failing.failure().map_or(String::new(), |failure| {
                let where_ = match (failing.lane(), failing.diff().first) {
                    (Some(lane), _) => format!(": {} is {}, expected {}", failing.place(&lane), lane.found, lane.expected),
                    (None, Some(byte)) => format!(": first wrong byte {byte}"),
                    (None, None) => format!(": {}", cut(&failure.message, 120)),
                };
                escaped(&format!("wg={} {}{where_}", failure.workgroup_size, cut(&failure.input_label, 60)))
            });
            let _ = writeln!(
                *out,
                "| {}{} | {} | {} | {told} | {} |",
                code(&failing.op.op),
                if failing.is_known { " (known)" } else { "" },
                grouped(failing.op.failed),
                grouped(failing.op.tested),
                failing.again().map_or(String::new(), |again| code(&self.command(again)))
            );
        }
        more(out, failing.len(), "ops");
        *out += "\n";
        failing.iter().take(NAMED).for_each(|failing| self.shown(out, failing));
    }

    /// The program of a failure and the bytes that it gives, folded.
    fn shown(&self, out: &mut String, failing: &Failing<'_>) {
        let Some(program) = failing.program() else { return };
        let size = match failing.reduced_from() {
            Some((from, to)) => format!("reduced from {from} to {to} nodes"),
            None => failing.unreduced().map_or("the program".into(), |why| escaped(&format!("the program, not reduced: {why}"))),
        };
        let _ = writeln!(out, "<details><summary>{}: {size}</summary>\n", code(&failing.op.op));
        let _ = writeln!(out, "{}\n", pre(&cut(program, PROGRAM)));
        if let Some(shown) = failing.shown() {
            for (name, values) in &shown.inputs {
                let _ = writeln!(out, "{} = {}<br>", code(name), code(&cut(values, VALUES)));
            }
            let output = shown.output.as_ref().map_or(String::new(), |(name, of)| format!(", output {} of {of}", code(name)));
            let _ = writeln!(out, "{}{output}\n", escaped(&cut(&shown.message, VALUES)));
        }
        if let Some(lane) = failing.lane() {
            let (expected, found) = (code(&lane.expected), code(&lane.found));
            let place = code(&failing.place(&lane));
            let _ = writeln!(out, "First wrong lane: {place} ({}) is {found}, expected {expected}.\n", lane.of);
        }
        let mut rows = String::new();
        for row in failing.diff().rows.iter().filter(|row| row.expected != row.found).take(2) {
            let line = |cells: &[Cell]| cells.iter().map(|cell| cell.text.as_str()).collect::<Vec<_>>().join(" ");
            let _ = writeln!(rows, "{:04x} expected {}", row.offset, line(&row.expected));
            let _ = writeln!(rows, "     found    {}", line(&row.found));
        }
        if !rows.is_empty() {
            let _ = writeln!(out, "{}\n", pre(&rows));
        }
        if let Some(again) = failing.again() {
            let _ = writeln!(out, "again: {}\n", code(&self.command(again)));
        }
        *out += "</details>\n\n";
    }

    fn evidence(&self, out: &mut String) {
        let count = |class: Option<Class>| self.ops.iter().filter(|op| op.failed == 0 && op.class() == class).count();
        let classes = [Class::Exhaustive, Class::Boundary, Class::Sampled, Class::Chosen];
        let told: Vec<String> = classes
            .into_iter()
            .map(|class| (class, count(Some(class))))
            .filter(|(_, ops)| *ops > 0)
            .map(|(class, ops)| format!("{ops} {class}"))
            .collect();
        let _ = writeln!(
            *out,
            "Evidence, by the strongest of each op: {}.",
            if told.is_empty() { "none".into() } else { told.join(", ") }
        );
        let controls = &self.run.info.controls;
        let _ = write!(*out, "Controls: {} of {} planted faults noticed. ", controls.caught, controls.ran);
        match self.kills {
            Some(rates) => {
                let (all, (low, high)) = (rates.all(), rates.all().interval());
                let (low, high) = (low * 100.0, high * 100.0);
                let _ = writeln!(*out, "Kill rate {}/{} ({low:.1} … {high:.1} % with 95 %).\n", all.killed, all.of);
            }
            None => *out += "Kill rate: not measured for this suite.\n\n",
        }
    }

    fn wrong_entries(&self, out: &mut String) {
        let problems = &self.known.problems;
        if problems.is_empty() {
            return;
        }
        *out += "Known failures that are wrong or expired:\n\n";
        for problem in problems.iter().take(NAMED) {
            let _ = writeln!(*out, "- {}", escaped(&problem.to_string()));
        }
        more(out, problems.len(), "entries");
        *out += "\n";
    }
}

/// Lines as they are.
fn pre(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(escaped).collect();
    format!("<pre>{}</pre>", lines.join("\n"))
}

fn more(out: &mut String, count: usize, what: &str) {
    if count > NAMED {
        let _ = writeln!(*out, "\n… and {} more {what}.", count - NAMED);
    }
}

/// The beginning of a text.
pub(crate) fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most { text.into() } else { text.chars().take(most).chain(['…']).collect() }
}

/// Text that Markdown, HTML and forges show as it is: everything that could mean something is written as an entity.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' | '\t' => out.push(' '),
            '&' | '<' | '>' | '|' | '*' | '_' | '[' | ']' | '`' | '\\' | '@' | '#' | '~' | '"' | '$' | '!' | '{' | '}' => {
                let _ = write!(out, "&#{};", c as u32);
            }
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// Text as code, whatever is in it.
pub(crate) fn code(text: &str) -> String {
    format!("<code>{}</code>", escaped(text))
}
