//! Laws: what a device gives must hold together, whatever the reference says about it.

use super::expected::Expected;
use super::layout::part;
use super::patience::Asked;
use super::{Dispatch, Examined, Examiner, Finding, FindingKind, NotRun, Target, confirm, every_case, given_up};
use crate::law::{self, LawError, Sides};
use vyre_foundation::case::Case;
use vyre_worker::{Answer, Failure};

impl Examiner<'_> {
    /// Tries the law of an op on cases side by side. Its two sides are dispatched in different forms where there are several.
    pub fn examine_law(&mut self, target: &Target<'_>, dispatch: &Dispatch, salt: u64) -> Result<Examined, NotRun> {
        let (flip, timeout, count) = (self.flip.take(), self.timeout, self.subjects.len());
        // Its cases are not looked at one by one.
        let is_alone = |_: usize| true;
        let mut turn = salt as usize % count;
        let mut answers: Vec<Answer> = Vec::new();
        let mut run = |case: &Case| {
            let mut case = case.clone();
            case.config.timeout = timeout;
            let answer = self.ask(turn % count, Asked::Cases(&[case]), &is_alone).pop();
            turn += 1;
            let silent = || Answer::from(Err(Failure::NotRun("the subject gave no answer".into())));
            let mut answer = answer.unwrap_or_else(silent);
            let outcome = std::mem::replace(&mut answer.outcome, Ok(Vec::new()));
            answers.push(answer);
            outcome.map_err(LawError::Device)
        };
        let cases = dispatch.cases;
        let sides = law::sides(target.spec, target.workgroup, &dispatch.columns, cases, &mut run);
        let nothing = Expected::unknown(target, dispatch);
        let Sides { expected, found } = match sides {
            Ok(Some(sides)) => sides,
            Ok(None) => return Err(NotRun(format!("`{}` has no law", target.spec.id))),
            Err(LawError::Device(Failure::NotRun(why))) => return Err(NotRun(why)),
            Err(LawError::Device(Failure::Unsupported(why))) => {
                return Ok(Examined { skipped: Some(why), ..Examined::default() });
            }
            Err(LawError::Device(Failure::GivenUp(why))) => return Ok(given_up(&nothing, why)),
            Err(error) => return Ok(every_case(&nothing, cases, FindingKind::Dispatch, &error.to_string())),
        };
        let found = match flip {
            Some(flip) => {
                let mut answer = Answer::from(Ok(found));
                flip.flip(&mut answer, cases, 0);
                answer.outcome.unwrap_or_default()
            }
            None => found,
        };
        let sizes: Vec<usize> = expected.iter().map(|column| column.len() / cases).collect();
        let mut findings = Vec::new();
        if expected != found {
            for case in 0..cases {
                let (one, other) = (part(&expected, &sizes, case), part(&found, &sizes, case));
                if one != other {
                    let message = format!("{}, and they differ here", law::said(target.spec.law));
                    findings.push(Finding { case, kind: FindingKind::Mismatch, message, found: other, expected: one });
                }
            }
        }
        let confirmed = match confirm(target.program.workgroup_size(), &answers.iter().collect::<Vec<_>>()) {
            Ok(confirmed) => confirmed,
            Err(problem) => return Ok(every_case(&nothing, cases, FindingKind::Configuration, &problem)),
        };
        Ok(Examined { tested: cases as u64, findings, confirmed, expected, actual: found, ..Examined::default() })
    }
}
