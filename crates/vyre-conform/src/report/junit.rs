//! A run as JUnit XML: a suite for each op, a test case for each of its programs at each workgroup size.

use super::Report;
use crate::evidence::{Section, Verdict};
use quick_junit::{NonSuccessKind, Property, TestCase, TestCaseStatus, TestSuite};
use std::collections::BTreeMap;
use std::time::Duration;

/// Failures of a test case that are written out.
const SHOWN: usize = 4;

impl Report<'_> {
    /// The file.
    #[must_use]
    pub fn junit(&self) -> String {
        let mut report = quick_junit::Report::new(format!("vyre conformance of {}", self.run.identity.backend));
        report.set_time(Duration::from_millis(self.run.info.took_ms));
        /// Sections by alternative and workgroup size.
        type Cases<'s> = BTreeMap<(Option<&'s str>, u32), Vec<&'s Section>>;
        let mut ops: BTreeMap<&str, Cases<'_>> = BTreeMap::new();
        for section in &self.run.sections {
            let info = &section.info;
            let key = (info.alternative.as_deref(), info.workgroup);
            ops.entry(&info.op).or_default().entry(key).or_default().push(section);
        }
        for (op, programs) in ops {
            let mut suite = TestSuite::new(op);
            for ((alternative, workgroup), sections) in programs {
                let name = alternative.map_or(format!("wg={workgroup}"), |name| format!("alt={name} wg={workgroup}"));
                let mut case = TestCase::new(name, self.status(&sections));
                case.set_classname(op).set_time(Duration::ZERO);
                case.set_assertions(sections.iter().map(|section| section.seal.tested as usize).sum());
                suite.add_test_case(case);
            }
            report.add_test_suite(suite);
        }
        report.add_test_suite(self.whole());
        // Only a writer can fail, and a string does not.
        report.to_string().unwrap_or_default()
    }

    fn status(&self, sections: &[&Section]) -> TestCaseStatus {
        let count = |of: fn(&Section) -> u64| sections.iter().map(|section| of(section)).sum::<u64>();
        let is_known = |section: &&&Section| self.known.known.contains_key(&section.info.id);
        let new: Vec<&&Section> = sections.iter().filter(|section| section.seal.failed > 0 && !is_known(section)).collect();
        if !new.is_empty() {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            let failed: u64 = new.iter().map(|section| section.seal.failed).sum();
            status.set_message(format!("{failed} of {} cases fail", count(|section| section.seal.tested)));
            status.set_type("mismatch");
            status.set_description(self.description(&new));
            return status;
        }
        if let Some(entry) = sections.iter().find_map(|section| self.known.known.get(&section.info.id)) {
            let mut status = TestCaseStatus::skipped();
            status.set_message(format!("known failure until {}: {}", entry.expires, entry.reason));
            status.set_type("known failure");
            return status;
        }
        if count(|section| section.seal.tested) > 0 {
            return TestCaseStatus::success();
        }
        let mut status = TestCaseStatus::skipped();
        let reason = sections.iter().find_map(|section| section.skipped.as_deref());
        status.set_message(reason.unwrap_or("it was not run"));
        status
    }

    fn description(&self, sections: &[&&Section]) -> String {
        let mut text = String::new();
        for section in sections {
            let mine = self.run.failures.iter().filter(|failure| failure.unit == section.info.id);
            for failure in mine.take(SHOWN) {
                text += &format!("{} {}: {}\n", section.info.id, failure.input_label, failure.message);
                if !failure.cpu_output.is_empty() || !failure.gpu_output.is_empty() {
                    text += &format!("  expected {}\n  found    {}\n", hex(&failure.cpu_output), hex(&failure.gpu_output));
                }
            }
            if let Some(shown) = &section.reduced {
                text += &format!("{}\n", shown.program.trim_end());
                shown.inputs.iter().for_each(|(name, values)| text += &format!("{name} = {values}\n"));
                if let (Some(lane), Some((name, _))) = (shown.lane(), &shown.output) {
                    text += &format!("{name}[{}] is {}, expected {}\n", lane.number, lane.found, lane.expected);
                }
            }
            if let Some(again) = section.shown_again() {
                text += &format!("again: {}\n", self.command(again));
            }
        }
        text
    }

    /// What is not about one op: the verdict, and entries of known failures that are not so.
    fn whole(&self) -> TestSuite {
        let mut suite = TestSuite::new("run");
        let identity = &self.run.identity;
        for (name, value) in [("backend", &identity.backend), ("device", &identity.device), ("suite", &identity.suite)] {
            suite.add_property(Property::new(name, value.as_str()));
        }
        suite.add_property(Property::new("root", self.run.root.to_string()));
        let status = match &self.verdict {
            Verdict::None(why) => {
                let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
                status.set_message(format!("no verdict: {why}")).set_type("no verdict");
                status
            }
            Verdict::Holds | Verdict::WithExceptions | Verdict::Fails => TestCaseStatus::success(),
        };
        suite.add_test_case(TestCase::new("has a verdict", status));
        for problem in &self.known.problems {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status.set_message(problem.to_string()).set_type("known failures");
            suite.add_test_case(TestCase::new(problem.to_string(), status));
        }
        suite
    }
}

/// The first bytes of a result.
fn hex(bytes: &[u8]) -> String {
    const MOST: usize = 64;
    let mut text: String = bytes.iter().take(MOST).map(|byte| format!("{byte:02x}")).collect();
    if bytes.len() > MOST {
        text += &format!(" … {} bytes", bytes.len());
    }
    text
}
