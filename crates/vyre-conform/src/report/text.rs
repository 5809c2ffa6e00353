//! Runs, certificates and differences as text for a terminal.

use super::failing::Failing;
use super::{Cell, Report, code, cut, duration, escaped, grouped};
use crate::cert::Certificate;
use crate::date::moment;
use crate::diff::{Difference, Kind};
use crate::evidence::{Class, KillRates, OpEvidence, ProfileRoot, Section};
use crate::ledger::Controls;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Lines of a list; what is more is counted.
const LINES: usize = 12;

impl Report<'_> {
    /// A page of text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = String::new();
        let identity = &self.run.identity;
        let _ = writeln!(out, "{}: {}", identity.backend, self.headline());
        let _ = writeln!(out, "{}", self.reason());
        for problem in self.known.problems.iter().take(LINES) {
            let _ = writeln!(out, "known failures: {problem}");
        }
        rest(&mut out, self.known.problems.len(), "entries of known failures that are wrong or expired");
        out += &self.failures_text();
        let given_up: Vec<&Section> = self.run.sections.iter().filter(|section| section.given_up.is_some()).collect();
        for section in given_up.iter().take(LINES) {
            let why = section.given_up.as_deref().unwrap_or_default();
            let _ = writeln!(out, "not run: {} cases of {}: {why}", grouped(section.not_run()), section.info.id);
        }
        rest(&mut out, given_up.len(), "sections of which not all was run");
        let totals = self.totals;
        let _ = writeln!(
            out,
            "{} units, {} launches, {} cases also judged by the reference, {}",
            grouped(totals.units),
            grouped(totals.launches),
            grouped(totals.referred),
            duration(self.run.info.took_ms)
        );
        evidence(&mut out, &self.ops);
        profiles(&mut out, &self.profiles);
        faults(&mut out, &self.run.info.controls, self.kills);
        let _ = writeln!(out, "root {}", self.run.root);
        out
    }
}

/// Ops that are shown with program and bytes; the others are named.
const SHOWN: usize = 6;
/// Lines of a program, rows of bytes, and characters of values.
const PROGRAM: usize = 40;
const ROWS: usize = 3;
const VALUES: usize = 240;

impl Report<'_> {
    /// What fails, op by op, with all that shows it.
    #[must_use]
    pub fn failures_text(&self) -> String {
        let mut out = String::new();
        let failing = self.failing();
        for (n, failing) in failing.iter().take(SHOWN + LINES).enumerate() {
            self.failing_text(&mut out, failing, n < SHOWN);
        }
        if failing.len() > SHOWN + LINES {
            let _ = writeln!(out, "… and {} more ops that fail", failing.len() - SHOWN - LINES);
        }
        for still in self.run.info.still_failing.iter().take(LINES) {
            let _ = writeln!(out, "{} still fails on a case of an earlier run: {}", still.op, still.bundle);
        }
        rest(&mut out, self.run.info.still_failing.len(), "cases of earlier runs that still fail");
        out
    }

    fn failing_text(&self, out: &mut String, failing: &Failing<'_>, is_shown: bool) {
        let op = failing.op;
        let known = if failing.is_known { " (known)" } else { "" };
        let parts = match failing.sections.len() {
            1 => "one section".to_string(),
            count => format!("{} sections", grouped(count as u64)),
        };
        let _ = writeln!(*out, "{} fails{known}: {} of {} cases, in {parts}", op.op, grouped(op.failed), grouped(op.tested));
        let Some(failure) = failing.failure().filter(|_| is_shown) else { return };
        let _ = writeln!(*out, "  case {} of {}: {}", failure.input_label, failure.unit, cut(&failure.message, VALUES));
        if let Some(program) = failing.program() {
            match failing.reduced_from() {
                Some((from, to)) => _ = writeln!(*out, "  reduced from {from} to {to} nodes:"),
                None => *out += "  the program:\n",
            }
            program.lines().take(PROGRAM).for_each(|line| _ = writeln!(*out, "    {line}"));
            if program.lines().count() > PROGRAM {
                *out += "    …\n";
            }
        }
        if let Some(why) = failing.unreduced() {
            let _ = writeln!(*out, "  not reduced: {why}");
        }
        for (name, values) in failing.shown().map_or(&[][..], |shown| &shown.inputs) {
            let _ = writeln!(*out, "  {name} = {}", cut(values, VALUES));
        }
        if let Some(lane) = failing.lane() {
            let place = failing.place(&lane);
            let _ = writeln!(*out, "  {place} is {}, expected {} ({})", lane.found, lane.expected, lane.of);
        }
        let diff = failing.diff();
        for row in diff.rows.iter().filter(|row| row.expected != row.found).take(ROWS) {
            let line = |cells: &[Cell]| cells.iter().map(|cell| cell.text.as_str()).collect::<Vec<_>>().join(" ");
            let marks: Vec<&str> = row.found.iter().map(|cell| if cell.differs { "^^" } else { "  " }).collect();
            let _ = writeln!(*out, "    {:04x}  expected  {}", row.offset, line(&row.expected));
            let _ = writeln!(*out, "          found     {}", line(&row.found));
            let _ = writeln!(*out, "                    {}", marks.join(" ").trim_end());
        }
        if let Some(again) = failing.again() {
            let _ = writeln!(*out, "  again: {}", self.command(again));
        }
    }
}

impl Certificate {
    /// What it says, for a terminal.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = String::new();
        let (identity, tested, counts) = (&self.identity, &self.tested, &self.counts);
        let holds = if self.holds_with_exceptions { "holds with exceptions" } else { "holds" };
        let version = identity.version.as_deref().unwrap_or("without version");
        let _ = writeln!(out, "{} {version} on {} ({}): {holds}", identity.backend, tested.device_name, identity.device);
        let _ = writeln!(out, "suite {}, selection {}, {}", identity.suite, identity.selection, identity.settings);
        let _ = writeln!(out, "run of {}: {}", moment(tested.began), tested.command);
        if let Some(nonce) = tested.nonce {
            let _ = writeln!(out, "sampled cases were drawn from the nonce {nonce}, which a verifier chose");
        }
        let _ = writeln!(
            out,
            "{} cases judged, {} failed, {} skipped, {} not run; {} units, {} launches",
            grouped(counts.tested),
            grouped(counts.failed),
            grouped(counts.skipped),
            grouped(counts.not_run),
            grouped(counts.units),
            grouped(counts.launches)
        );
        for exception in self.exceptions.iter().take(LINES) {
            let (section, reason, expires) = (&exception.section, &exception.reason, exception.expires);
            let _ = writeln!(out, "  known failure: {section}, {} cases, until {expires}: {reason}", grouped(exception.failed));
        }
        rest(&mut out, self.exceptions.len(), "exceptions");
        evidence(&mut out, &self.ops);
        profiles(&mut out, &self.profiles);
        faults(&mut out, &self.controls, self.kills.as_ref());
        let _ = writeln!(out, "root {}", self.root);
        out += "This is a signed claim. Anyone who has such a device can refute it: vyre cert audit runs units again.\n";
        out
    }
}

impl Difference {
    /// For a terminal.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = String::new();
        for (what, one, other) in &self.runs {
            let _ = writeln!(out, "{what}: {} and {}", cut(one, 60), cut(other, 60));
        }
        if self.is_same() {
            let _ = writeln!(out, "the same results: {} sections, root {}", self.compared, self.roots[0]);
            return out;
        }
        let _ = writeln!(out, "{}", self.counts());
        let mut lines = 0;
        for kind in Kind::ALL {
            for (section, units) in self.of(kind) {
                lines += 1;
                if lines > 4 * LINES {
                    continue;
                }
                let first = units.first.first();
                let at = first.map_or(String::new(), |unit| format!(", first at case {}", unit.first));
                let cases = first.map_or(String::new(), |unit| {
                    let count =
                        |failed: Option<u64>| failed.map_or("not judged".to_string(), |failed| format!("{failed} failed"));
                    let expected = if unit.is_expected_changed { "; the expected bytes differ too" } else { "" };
                    format!(" ({} before, {} now{expected})", count(unit.failed_before), count(unit.failed_now))
                });
                let word = if units.count == 1 { "unit" } else { "units" };
                let _ = writeln!(out, "  {:8} {section}: {} {word}{at}{cases}", kind.name(), grouped(units.count));
            }
        }
        if lines > 4 * LINES {
            let _ = writeln!(out, "  … and {} more lines", lines - 4 * LINES);
        }
        let _ = writeln!(out, "roots {} and {}; {} units were read", self.roots[0], self.roots[1], grouped(self.read));
        out
    }

    /// For a pull request.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut out = String::new();
        if self.is_same() {
            let _ =
                writeln!(out, "### ✅ The same results\n\n{} sections, root {}", self.compared, code(&self.roots[0].to_string()));
        } else {
            let mark = if self.count(Kind::New) > 0 { "❌" } else { "⚠️" };
            let _ = writeln!(out, "### {mark} {}\n", escaped(&self.counts()));
            out += "| | section | units | first case |\n|---|---|--:|--:|\n";
            let rows: Vec<_> = Kind::ALL.into_iter().flat_map(|kind| self.of(kind).map(move |row| (kind, row))).collect();
            for (kind, (section, units)) in rows.iter().take(4 * LINES) {
                let first = units.first.first().map_or(0, |unit| unit.first);
                let _ = writeln!(out, "| {} | {} | {} | {first} |", kind.name(), code(section), grouped(units.count));
            }
            if rows.len() > 4 * LINES {
                let _ = writeln!(out, "\n… and {} more.", rows.len() - 4 * LINES);
            }
        }
        if !self.runs.is_empty() {
            out += "\n| | first run | second run |\n|---|---|---|\n";
            for (what, one, other) in &self.runs {
                let _ = writeln!(out, "| {} | {} | {} |", escaped(what), code(&cut(one, 80)), code(&cut(other, 80)));
            }
        }
        out
    }

    fn of(&self, kind: Kind) -> impl Iterator<Item = (&String, &crate::diff::Units)> {
        self.sections.iter().filter_map(move |(section, kinds)| kinds.get(&kind).map(|units| (section, units)))
    }

    fn counts(&self) -> String {
        let told = Kind::ALL.map(|kind| format!("{} {}", grouped(self.count(kind)), kind.name()));
        format!("{} (units)", told.join(", "))
    }
}

fn rest(out: &mut String, count: usize, what: &str) {
    if count > LINES {
        let _ = writeln!(*out, "  … and {} more {what}", count - LINES);
    }
}

/// How many ops have which class of evidence, and the weakest bounds.
fn evidence(out: &mut String, ops: &[OpEvidence]) {
    let count = |class: Class| ops.iter().filter(|op| op.failed == 0 && op.class() == Some(class)).count();
    let none = ops.iter().filter(|op| op.failed == 0 && op.class().is_none()).count();
    let _ = writeln!(
        *out,
        "evidence, by the strongest of each op: {} exhaustive, {} boundary, {} sampled, {} chosen, {none} skipped or not run",
        count(Class::Exhaustive),
        count(Class::Boundary),
        count(Class::Sampled),
        count(Class::Chosen)
    );
    let weakest = |n: fn(&OpEvidence) -> Option<u64>| ops.iter().filter_map(|op| n(op).map(|n| (n, op))).min_by_key(|(n, _)| *n);
    let sampled = |op: &OpEvidence| op.claims.iter().filter_map(|claim| claim.bound().map(|bound| bound.n)).max();
    if let Some((n, op)) = weakest(sampled) {
        let _ = writeln!(*out, "  fewest values drawn, {}: {}", op.op, crate::evidence::Bound { n }.sentence("values"));
    }
    let launches = |op: &OpEvidence| Some(op.launches()).filter(|launches| *launches > 0);
    if let Some((n, op)) = weakest(launches) {
        let _ = writeln!(*out, "  fewest launches, {}: {}", op.op, crate::evidence::Bound { n }.sentence("launches"));
    }
}

fn profiles(out: &mut String, profiles: &BTreeMap<String, ProfileRoot>) {
    for (name, profile) in profiles.iter().take(LINES) {
        let state = if profile.is_claimed() { "shown whole" } else { "not shown whole" };
        let (units, skipped) = (grouped(profile.units), grouped(profile.skipped_units));
        let _ = writeln!(*out, "profile {name}: {state}, {units} units, {skipped} skipped, root {}", profile.root);
    }
    rest(out, profiles.len(), "profiles");
}

fn faults(out: &mut String, controls: &Controls, kills: Option<&KillRates>) {
    let _ = writeln!(*out, "controls: {} of {} planted faults were noticed", controls.caught, controls.ran);
    match kills {
        Some(rates) => {
            let (all, (low, high)) = (rates.all(), rates.all().interval());
            let (low, high) = (low * 100.0, high * 100.0);
            let _ = writeln!(*out, "kill rate: {} of {} mutants ({low:.1} … {high:.1} % with 95 %)", all.killed, all.of);
        }
        None => *out += "kill rate: not measured for this suite and tier\n",
    }
}
