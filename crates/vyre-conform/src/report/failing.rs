//! What fails, op by op, derived once for every form of report.
//!
//! The failure that stands for an op is one of its plainest section: its own program before alternatives, small workgroups before large
//! ones. What several sections have in common is told once.

use super::{HexDiff, Lane, ParityFailure, ReducedFailure, Report, lane};
use crate::evidence::{OpEvidence, Section};

/// An op that fails, with what shows it.
pub(super) struct Failing<'r> {
    pub op: &'r OpEvidence,
    /// Its sections that fail, the plainest first.
    pub sections: Vec<&'r Section>,
    /// Its failures that were kept, those of the plainest section first.
    pub failures: Vec<&'r ParityFailure>,
    /// Whether all of them are known.
    pub is_known: bool,
}

impl<'r> Failing<'r> {
    /// The failure that stands for all of them.
    pub fn failure(&self) -> Option<&'r ParityFailure> {
        self.failures.first().copied()
    }

    /// Its section.
    pub fn section(&self) -> Option<&'r Section> {
        let unit = &self.failure()?.unit;
        self.sections.iter().copied().find(|section| section.info.id == *unit)
    }

    /// Program, inputs and output by name, if they were kept: as small as they could be made.
    pub fn shown(&self) -> Option<&'r ReducedFailure> {
        self.section()?.reduced.as_ref()
    }

    /// The program that fails.
    pub fn program(&self) -> Option<&'r str> {
        self.shown().map(|shown| shown.program.as_str()).or_else(|| self.section()?.program.as_deref())
    }

    /// Nodes of the program that failed first and of the one that is shown, if that was made smaller.
    pub fn reduced_from(&self) -> Option<(u64, u64)> {
        self.shown().filter(|shown| shown.nodes < shown.from_nodes).map(|shown| (shown.from_nodes, shown.nodes))
    }

    /// Why it was not made smaller, if it was not and somebody tried.
    pub fn unreduced(&self) -> Option<&'r str> {
        self.section()?.unreduced.as_deref().filter(|_| self.reduced_from().is_none())
    }

    /// What was expected of the output that is wrong first, and what the device gave.
    pub fn bytes(&self) -> (&'r [u8], &'r [u8]) {
        match (self.shown(), self.failure()) {
            (Some(shown), _) => (&shown.expected, &shown.found),
            (None, Some(failure)) => (&failure.cpu_output, &failure.gpu_output),
            (None, None) => (&[], &[]),
        }
    }

    /// Where these differ.
    pub fn diff(&self) -> HexDiff {
        let (expected, found) = self.bytes();
        HexDiff::of(expected, found)
    }

    /// The first wrong element.
    pub fn lane(&self) -> Option<Lane> {
        match self.shown() {
            Some(shown) => shown.lane(),
            None => {
                let (expected, found) = self.bytes();
                lane(&self.section()?.info.outputs, expected, found)
            }
        }
    }

    /// The place of the first wrong element as a program writes it, `out[3]`, if the output is known by name.
    pub fn place(&self, lane: &Lane) -> String {
        match self.shown().and_then(|shown| shown.output.as_ref()) {
            Some((name, _)) => format!("{name}[{}]", lane.number),
            None => format!("element {}", lane.number),
        }
    }

    /// The command that shows it again.
    pub fn again(&self) -> Option<&'r str> {
        self.section()?.shown_again()
    }
}

impl Report<'_> {
    /// Every op that fails; those first whose failures are not known.
    pub(super) fn failing(&self) -> Vec<Failing<'_>> {
        let mut all: Vec<Failing<'_>> = self.ops.iter().filter(|op| op.failed > 0).map(|op| self.failing_op(op)).collect();
        all.sort_by_key(|failing| failing.is_known);
        all
    }

    fn failing_op<'r>(&'r self, op: &'r OpEvidence) -> Failing<'r> {
        let fails = |section: &&Section| section.info.op == op.op && section.seal.failed > 0;
        let mut sections: Vec<&Section> = self.run.sections.iter().filter(fails).collect();
        sections.sort_by_key(|section| (section.info.alternative.is_some(), section.info.workgroup));
        let place = |failure: &ParityFailure| sections.iter().position(|section| section.info.id == failure.unit);
        let mut failures: Vec<&ParityFailure> = self.run.failures.iter().filter(|failure| place(failure).is_some()).collect();
        failures.sort_by_key(|failure| place(failure));
        let is_known = sections.iter().all(|section| self.known.known.contains_key(&section.info.id));
        Failing { op, sections, failures, is_known }
    }
}
