//! Cards for what fails.

use super::{MESSAGE, NAME, PROGRAM, anchor};
use crate::examine::FindingKind;
use crate::report::failing::Failing;
use crate::report::{Cell, Lane, ParityFailure, Report, Row, cut, grouped};

/// Ops whose first failure is shown, and further failures of each that are told in a line.
const SHOWN: usize = 60;
const LINES: usize = 7;

pub(super) struct Failure {
    pub tone: &'static str,
    pub anchor: String,
    pub op: String,
    pub count: String,
    pub kind: &'static str,
    pub known: Option<String>,
    pub place: String,
    pub message: String,
    pub element: String,
    pub lane: Option<Lane>,
    pub rows: Vec<HexRow>,
    pub bytes_note: String,
    pub others: Vec<String>,
    pub program: Option<String>,
    pub reduced: Option<Reduced>,
    pub again: Option<String>,
}

/// A program with its inputs, as small as it could be made; lane and bytes of its card are its own.
pub(super) struct Reduced {
    pub size: String,
    pub program: String,
    pub inputs: Vec<(String, String)>,
    pub message: String,
}

/// A row of both results, as HTML.
pub(super) struct HexRow {
    pub offset: String,
    pub expected: String,
    pub found: String,
}

impl Report<'_> {
    /// A card for each op that fails, those first whose failures are not known.
    pub(super) fn failure_cards(&self) -> (Vec<Failure>, String) {
        let ops = self.failing();
        let cards: Vec<Failure> = ops.iter().filter_map(|failing| self.failure_card(failing)).take(SHOWN).collect();
        let note = format!(
            "{} cases of {} fail. {} ops are shown here, each with its first failure; the run's folder has {} failures with \
             everything that reproduces them.",
            grouped(self.totals.failed),
            if ops.len() == 1 { "one op".into() } else { format!("{} ops", grouped(ops.len() as u64)) },
            cards.len(),
            grouped(self.run.failures.len() as u64)
        );
        (cards, note)
    }

    fn failure_card(&self, failing: &Failing<'_>) -> Option<Failure> {
        let (op, failures, failure) = (failing.op, &failing.failures, failing.failure()?);
        let section = failing.section();
        let (expected, found) = failing.bytes();
        let (lane, diff) = (failing.lane(), failing.diff());
        let known = section.and_then(|section| self.known.known.get(&section.info.id));
        let is_told = !expected.is_empty() || !found.is_empty();
        let mut note = String::new();
        if is_told {
            let first = diff.first.map_or(String::new(), |byte| format!(", first byte {byte}"));
            let count = if diff.differing == 1 {
                "one byte differs".into()
            } else {
                format!("{} bytes differ", grouped(diff.differing as u64))
            };
            note = format!("{count}{first}");
            if diff.hidden > 0 {
                note += &format!("; {} bytes are not shown", grouped(diff.hidden as u64));
            }
        }
        let row = |row: &Row| HexRow {
            offset: format!("{:04x}", row.offset),
            expected: cells(&row.expected),
            found: cells(&row.found),
        };
        let other = |failure: &&ParityFailure| cut(&format!("{}: {}", place(failure), failure.message), 2 * NAME);
        let mut others: Vec<String> = failures.iter().skip(1).take(LINES).map(other).collect();
        if failures.len() > LINES + 1 {
            others.push(format!("and {} more in the run's folder", grouped((failures.len() - LINES - 1) as u64)));
        }
        Some(Failure {
            anchor: failure_anchor(&op.op),
            count: format!("{} of {} cases fail", grouped(op.failed), grouped(op.tested)),
            others,
            tone: if known.is_some() { "exceptions" } else { "fails" },
            op: cut(&op.op, NAME),
            kind: match failure.kind {
                FindingKind::Mismatch => "other bytes",
                FindingKind::Nondeterministic => "nondeterministic",
                FindingKind::Dispatch => "the dispatch failed",
                FindingKind::Configuration => "ran something else",
                FindingKind::Case => "bad case",
                FindingKind::Disputed => "cpu_fn and reference disagree",
            },
            known: known.map(|entry| cut(&entry.reason, NAME)),
            place: cut(&place(failure), 2 * NAME),
            message: cut(&failure.message, MESSAGE),
            element: lane.as_ref().map_or(String::new(), |lane| cut(&failing.place(lane), NAME)),
            lane,
            rows: if is_told { diff.rows.iter().map(row).collect() } else { Vec::new() },
            bytes_note: note,
            program: section
                .filter(|_| failing.shown().is_none() || failing.reduced_from().is_some())
                .and_then(|section| section.program.as_deref())
                .map(|program| cut(program, PROGRAM)),
            reduced: failing.shown().map(|reduced| Reduced {
                size: match failing.reduced_from() {
                    Some((from, to)) => format!("the smallest program that fails in the same way, {to} nodes of {from}"),
                    None => match failing.unreduced() {
                        Some(why) => cut(&format!("the program and its inputs; not reduced: {why}"), MESSAGE),
                        None => "the program and its inputs".into(),
                    },
                },
                program: cut(&reduced.program, PROGRAM),
                inputs: reduced.inputs.iter().map(|(name, values)| (cut(name, NAME), cut(values, 2 * NAME))).collect(),
                message: cut(
                    &reduced
                        .output
                        .as_ref()
                        .map_or(reduced.message.clone(), |(name, _)| format!("output {name}: {}", reduced.message)),
                    MESSAGE,
                ),
            }),
            again: failing.again().map(|again| cut(&self.command(again), MESSAGE)),
        })
    }
}

/// The same for its failures.
pub(super) fn failure_anchor(op: &str) -> String {
    format!("fails-{}", anchor(op))
}

/// Where a failure is.
fn place(failure: &ParityFailure) -> String {
    format!("workgroup size {} · {} · {}", failure.workgroup_size, failure.generator, failure.input_label)
}

/// Bytes, with those marked that differ.
fn cells(cells: &[Cell]) -> String {
    let mut out = String::new();
    for (n, cell) in cells.iter().enumerate() {
        if n > 0 {
            out.push_str(if n % 4 == 0 { "&nbsp; " } else { " " });
        }
        if cell.differs {
            out.push_str("<mark>");
            out.push_str(&cell.text);
            out.push_str("</mark>");
        } else {
            out.push_str(&cell.text);
        }
    }
    out
}
