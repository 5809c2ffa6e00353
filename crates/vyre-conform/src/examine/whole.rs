//! Dispatches with programs of their own, judged by the plain interpreter. What is expected may be a trap.

use super::{Confirmed, Examined, Examiner, Finding, FindingKind, NotRun, confirm};
use vyre_foundation::case::Case;
use vyre_smith::subjects::Reference;
use vyre_worker::{Answer, Failure, Outputs, Verdict, judge};

/// What was expected of a case and what the device gave.
pub(crate) struct Both {
    pub expected: Result<Outputs, Failure>,
    pub found: Result<Outputs, Failure>,
}

impl Examiner<'_> {
    /// Judges whole dispatches, each run twice; beside the findings, what was expected and found in each.
    pub fn examine_whole(&mut self, cases: &[Case], salt: u64) -> Result<(Examined, Vec<Both>), NotRun> {
        let count = self.subjects.len();
        let (one, other) = (salt as usize % count, (salt as usize + 1) % count);
        let limited: Option<Vec<Case>> = self.timeout.map(|_| cases.iter().map(|case| self.limited(case)).collect());
        let asked = limited.as_deref().unwrap_or(cases);
        let first = self.subjects[one].run_batch(asked);
        let second = self.subjects[other].run_batch(asked);
        let mut pairs: Vec<(Answer, Answer)> = first.into_iter().zip(second).collect();
        if pairs.len() != cases.len() {
            return Err(NotRun("the subject gave fewer answers than there were cases".into()));
        }
        if let Some(flip) = self.flip.take() {
            // Something to flip: bytes, or the tag of a trap.
            let can = |(one, _): &(Answer, Answer)| match &one.outcome {
                Ok(outputs) => outputs.iter().any(|output| !output.is_empty()),
                Err(failure) => matches!(failure, Failure::Trap { .. }),
            };
            let mut able: Vec<&mut (Answer, Answer)> = pairs.iter_mut().filter(|pair| can(pair)).collect();
            let at = (flip.dispatch % able.len().max(1) as u64) as usize;
            if let Some((one, other)) = able.get_mut(at) {
                flip.flip(one, 1, 0);
                flip.flip(other, 1, 0);
            }
        }
        let names = [one, other].map(|n| self.subjects[n].name().to_string());
        let mut reference = Reference::default();
        let mut sum = Examined { expected: vec![Vec::new()], actual: vec![Vec::new()], ..Examined::default() };
        let mut both = Vec::new();
        let (mut unsupported, mut is_confirmed) = (0, true);
        for (number, (case, (first, second))) in cases.iter().zip(pairs).enumerate() {
            let expected = reference.expected(case);
            let verdicts = [judge(&expected, &first.outcome), judge(&expected, &second.outcome)];
            if let Err(Failure::NotRun(why)) = first.outcome.as_ref().and(second.outcome.as_ref()) {
                return Err(NotRun(why.clone()));
            }
            if verdicts.contains(&Verdict::Skipped) {
                unsupported += 1;
                let why = [&first, &second].into_iter().find_map(|answer| answer.outcome.as_ref().err()).map(ToString::to_string);
                sum.skipped = sum.skipped.or(why);
                both.push(Both { expected, found: first.outcome });
                continue;
            }
            sum.tested += 1;
            sum.referred += 1;
            sum.expected[0].extend(bytes(&expected));
            sum.actual[0].extend(bytes(&first.outcome));
            let asked = case.config.workgroup_override.unwrap_or(case.program.workgroup_size());
            let confirmed = confirm(asked, &[&first, &second]);
            is_confirmed &= confirmed == Ok(Confirmed::Yes) || first.outcome.is_err();
            let (kind, message) = if let Err(problem) = confirmed {
                (FindingKind::Configuration, problem)
            } else if first.outcome != second.outcome {
                let changed =
                    if names[0] == names[1] { "nothing".into() } else { format!("{} in place of {}", names[1], names[0]) };
                (FindingKind::Nondeterministic, format!("nondeterministic: two dispatches differ, with {changed} changed"))
            } else {
                match verdicts[0] {
                    Verdict::Agrees => {
                        both.push(Both { expected, found: first.outcome });
                        continue;
                    }
                    Verdict::Wrong(vyre_worker::Kind::Reference) => {
                        (FindingKind::Case, format!("the reference: {}", said(&expected)))
                    }
                    Verdict::Wrong(vyre_worker::Kind::Bytes) => (FindingKind::Mismatch, difference(&expected, &first.outcome)),
                    Verdict::Wrong(_) => {
                        (FindingKind::Dispatch, format!("{}, and {} is expected", said(&first.outcome), said(&expected)))
                    }
                    Verdict::Skipped | Verdict::NotRun => unreachable!("it was looked at before"),
                }
            };
            let found = if verdicts[0] == Verdict::Agrees { second.outcome } else { first.outcome };
            let of = |outcome: &Result<Outputs, Failure>| outcome.as_ref().map_or(Vec::new(), |outputs| outputs.concat());
            sum.findings.push(Finding { case: number, kind, message, found: of(&found), expected: of(&expected) });
            both.push(Both { expected, found });
        }
        // Some cases may be beyond the device; only a unit of which nothing ran is skipped as a whole.
        sum.unsupported = unsupported;
        sum.confirmed = if is_confirmed { Confirmed::Yes } else { Confirmed::No };
        if sum.tested > 0 {
            sum.skipped = None;
        }
        Ok((sum, both))
    }

    /// The same under the time limit.
    fn limited(&self, case: &Case) -> Case {
        let mut case = case.clone();
        case.config.timeout = self.timeout;
        case
    }
}

/// The outcome as bytes to be hashed: outputs behind their lengths, or what is said about it.
fn bytes(outcome: &Result<Outputs, Failure>) -> Vec<u8> {
    match outcome {
        Ok(outputs) => crate::spec::frame(outputs),
        Err(failure) => crate::spec::frame(&[failure.to_string()]),
    }
}

fn said(outcome: &Result<Outputs, Failure>) -> String {
    match outcome {
        Ok(_) => "an outcome".into(),
        Err(failure) => failure.to_string(),
    }
}

fn difference(expected: &Result<Outputs, Failure>, found: &Result<Outputs, Failure>) -> String {
    let (Ok(expected), Ok(found)) = (expected, found) else { return "other bytes".into() };
    for (number, (expected, found)) in expected.iter().zip(found).enumerate() {
        if let Some(at) = expected.iter().zip(found).position(|(one, other)| one != other) {
            return format!("byte {at} of output {number} is {:#04x}, and {:#04x} is expected", found[at], expected[at]);
        }
    }
    "outputs of other lengths".into()
}
