//! A run as JSON lines: one object for the run, then one for each profile, op, section, failure and entry that is wrong, and the verdict.

use super::{HexDiff, ReducedFailure, Report, lane};
use crate::evidence::Section;
use serde_json::{Value, json};

impl Report<'_> {
    /// The lines. Every object has a `type`.
    #[must_use]
    pub fn json_lines(&self) -> String {
        let run = self.run;
        let mut lines = vec![json!({
            "type": "run",
            "identity": run.identity,
            "info": run.info,
            "is_finished": run.is_finished,
            "root": run.root,
        })];
        lines.extend(self.profiles.iter().map(
            |(name, profile)| json!({ "type": "profile", "name": name, "is_claimed": profile.is_claimed(), "profile": profile }),
        ));
        lines.extend(self.ops.iter().map(|op| json!({ "type": "op", "class": op.class(), "evidence": op })));
        lines.extend(run.sections.iter().map(|section| self.section_line(section)));
        for failure in &run.failures {
            let section = run.section(&failure.unit);
            let outputs = section.map_or(&[][..], |section| &section.info.outputs);
            let lane = lane(outputs, &failure.cpu_output, &failure.gpu_output);
            lines.push(json!({
                "type": "failure",
                "failure": failure,
                "first_wrong_byte": HexDiff::of(&failure.cpu_output, &failure.gpu_output).first,
                "first_wrong_lane": lane.as_ref().map(|lane| lane.number),
                "expected": lane.as_ref().map(|lane| &lane.expected),
                "found": lane.as_ref().map(|lane| &lane.found),
                "program": section.and_then(|section| section.program.as_deref()),
                "again": section.and_then(|section| section.again.as_deref()),
                "unreduced": section.and_then(|section| section.unreduced.as_deref()),
                "reduced": section.and_then(|section| section.reduced.as_ref()).map(reduced_line),
            }));
        }
        lines.extend(self.known.problems.iter().map(|problem| json!({ "type": "known-failures", "wrong": problem })));
        let rates = self.kills.map(|rates| json!({ "type": "kills", "rates": rates }));
        lines.push(rates.unwrap_or_else(|| json!({ "type": "kills", "rates": null })));
        let totals = self.totals;
        lines.push(json!({
            "type": "verdict",
            "verdict": self.verdict.word(),
            "why": self.verdict.why(),
            "units": totals.units,
            "tested": totals.tested,
            "passed": totals.passed,
            "failed": totals.failed,
            "skipped": totals.skipped,
            "not_run": totals.not_run,
            "referred": totals.referred,
            "launches": totals.launches,
        }));
        lines.iter().map(|line| format!("{line}\n")).collect()
    }

    fn section_line(&self, section: &Section) -> Value {
        let seal = &section.seal;
        json!({
            "type": "section",
            "section": section.info.id,
            "op": section.info.op,
            "alternative": section.info.alternative,
            "workgroup": section.info.workgroup,
            "space": section.info.space,
            "profile": section.info.profile,
            "root": seal.root,
            "units": seal.units,
            "tested": seal.tested,
            "failed": seal.failed,
            "skipped": seal.skipped,
            "not_run": section.not_run(),
            "is_confirmed": seal.tested > 0 && seal.unconfirmed_units == 0,
            "why_skipped": section.skipped,
            "why_not_run": section.given_up,
            "known": self.known.known.get(&section.info.id),
        })
    }
}

fn reduced_line(reduced: &ReducedFailure) -> Value {
    let lane = reduced.lane();
    json!({
        "failure": reduced,
        "first_wrong_byte": reduced.diff().first,
        "first_wrong_lane": lane.as_ref().map(|lane| lane.number),
        "expected": lane.as_ref().map(|lane| &lane.expected),
        "found": lane.as_ref().map(|lane| &lane.found),
    })
}
