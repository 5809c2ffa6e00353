//! A run as it is told.

use crate::evidence::{KillRates, OpEvidence, ProfileRoot, RunData, Totals, Verdict, profiles};
use crate::expectations::Judged;
use std::collections::BTreeMap;

/// A run with all that is derived from it, ready to be written in any form.
pub struct Report<'r> {
    /// The run.
    pub run: &'r RunData,
    /// Its known failures.
    pub known: &'r Judged,
    /// How many planted faults the suite finds, if that was measured for this suite and tier.
    pub kills: Option<&'r KillRates>,
    /// What it says about the device.
    pub verdict: Verdict,
    /// How many cases there were.
    pub totals: Totals,
    /// By op.
    pub ops: Vec<OpEvidence>,
    /// By profile.
    pub profiles: BTreeMap<String, ProfileRoot>,
    /// What the program is called that commands are written for.
    pub program: String,
}

/// Parts of the suite that a command names; of more, whoever reads it would see nothing else.
const NAMED: usize = 8;

impl<'r> Report<'r> {
    /// The report of a run, with what is known to fail and the rates of the suite.
    #[must_use]
    pub fn new(run: &'r RunData, known: &'r Judged, kills: Option<&'r KillRates>) -> Report<'r> {
        Report {
            run,
            known,
            kills: kills.filter(|rates| rates.is_of(&run.identity.suite, run.info.tier.as_deref())),
            verdict: known.verdict(run),
            totals: run.totals(),
            ops: run.ops(),
            profiles: profiles(run),
            program: "vyre".into(),
        }
    }

    /// The verdict in a few words.
    #[must_use]
    pub fn headline(&self) -> String {
        match &self.verdict {
            Verdict::Holds => "The bytes are the reference's".into(),
            Verdict::WithExceptions => "The bytes are the reference's, with exceptions".into(),
            Verdict::Fails => "The bytes are not the reference's".into(),
            Verdict::None(_) => "No verdict".into(),
        }
    }

    /// What the verdict rests on, in one sentence.
    #[must_use]
    pub fn reason(&self) -> String {
        let Totals { tested, failed, skipped, .. } = self.totals;
        let skips =
            if skipped == 0 { String::new() } else { format!("; {} were skipped, which is not a pass", grouped(skipped)) };
        match &self.verdict {
            Verdict::Holds => format!("All {} cases that were judged hold{skips}.", grouped(tested)),
            Verdict::WithExceptions => {
                format!("{} of {} cases fail, all of them known failures{skips}.", grouped(failed), grouped(tested))
            }
            Verdict::Fails if failed == 0 && !self.run.info.still_failing.is_empty() => {
                let still = self.run.info.still_failing.len();
                format!(
                    "All {} cases of this run hold, but {still} that failed in an earlier run still fail{skips}.",
                    grouped(tested)
                )
            }
            Verdict::Fails if failed == 0 => {
                format!("All {} cases that were judged hold, but known failures are wrong or expired{skips}.", grouped(tested))
            }
            Verdict::Fails => format!("{} of {} cases that were judged fail{skips}.", grouped(failed), grouped(tested)),
            Verdict::None(why) => format!("There is no verdict: {why}."),
        }
    }

    /// The same, told by a program that is called otherwise than `vyre`: commands in it begin with its name.
    #[must_use]
    pub fn told_by(self, program: &str) -> Report<'r> {
        Report { program: program.into(), ..self }
    }

    /// A command of `vyre` as whoever reads this can give it.
    pub(super) fn command(&self, command: &str) -> String {
        match command.strip_prefix("vyre ") {
            Some(rest) => format!("{} {rest}", self.program),
            None => command.into(),
        }
    }

    /// The command that runs what fails again, and as little else as can be said in a line; nothing if the run did not say what it was
    /// asked for.
    #[must_use]
    pub fn again(&self) -> Option<String> {
        let failing = self.failing();
        let whole = &self.run.info.command;
        // What a run was asked for stands behind its settings.
        let settings = whole.strip_suffix(self.run.identity.selection.as_str()).unwrap_or(whole).trim_end();
        let sections: Vec<&str> =
            failing.iter().flat_map(|failing| &failing.sections).map(|section| section.info.id.as_str()).collect();
        let ops: Vec<&str> = failing.iter().map(|failing| failing.op.op.as_str()).collect();
        let named = [sections, ops].into_iter().find(|names| !names.is_empty() && names.len() <= NAMED);
        let is_said = !whole.is_empty() && !failing.is_empty();
        is_said.then(|| match named {
            // A kernel of the user's is a file, which its name does not say.
            Some(names) if !self.run.identity.selection.contains(".vyre") => {
                self.command(&format!("{settings} {}", names.join(" ")))
            }
            Some(_) | None => self.command(whole),
        })
    }

    /// Reasons for skipping, with the sections and cases that each is told of.
    pub(super) fn skips(&self) -> BTreeMap<&str, (Vec<&str>, u64)> {
        let mut reasons: BTreeMap<&str, (Vec<&str>, u64)> = BTreeMap::new();
        for section in &self.run.sections {
            if let Some(reason) = &section.skipped {
                let (sections, cases) = reasons.entry(reason).or_default();
                sections.push(&section.info.id);
                *cases += section.seal.skipped;
            }
        }
        reasons
    }
}

/// A number with a space between groups of three digits: `1 234 567`. The space is narrow and does not break.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// A time as people say it.
pub(crate) fn duration(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0 => format!("{ms} ms"),
        1..60 => format!("{}.{} s", seconds, ms % 1000 / 100),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_times_are_written_for_people() {
        assert_eq!(
            [0, 12, 123, 1234, 1_234_567].map(|n| grouped(n).replace('\u{202f}', " ")),
            ["0", "12", "123", "1 234", "1 234 567"]
        );
        assert_eq!([7, 1234, 61_000, 3_660_000].map(duration), ["7 ms", "1.2 s", "1 min 1 s", "1 h 1 min"]);
    }
}
