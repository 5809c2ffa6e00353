//! Dispatches with programs of their own, judged by the plain interpreter or by whoever made them. What is expected may be a trap.

use super::patience::Asked;
use super::{Confirmed, Examined, Examiner, Finding, FindingKind, Flip, NotRun, confirm, mixed, settle};
use crate::cases::{Judge, Work};
use vyre_foundation::case::Case;
use vyre_smith::subjects::Reference;
use vyre_worker::{Answer, Failure, Outputs, Verdict, judge};

/// One case in so many that somebody else judges is given to the reference too.
const REFERRED: u64 = 50;

/// What was expected of a case and what the device gave.
pub(crate) struct Both {
    pub expected: Result<Outputs, Failure>,
    pub found: Result<Outputs, Failure>,
}

impl Examiner<'_> {
    /// Judges whole dispatches, each run twice; beside the findings, what was expected and found in each. There is a judge for each case.
    pub fn examine_whole(&mut self, cases: &[Work], judges: Vec<Judge>, salt: u64) -> Result<(Examined, Vec<Both>), NotRun> {
        let count = self.subjects.len();
        let (one, other) = (salt as usize % count, (salt as usize + 1) % count);
        let limited: Option<Vec<Work>> = self.timeout.map(|_| cases.iter().map(|case| self.limited(case)).collect());
        let asked = limited.as_deref().unwrap_or(cases);
        let first = self.run_work(one, asked);
        // What hangs is not waited for a second time.
        let left: Vec<usize> = (0..asked.len()).filter(|n| !self.is_settled(first.get(*n))).collect();
        let mut second = match left.len() == asked.len() {
            true => self.run_work(other, asked),
            false => self.run_work(other, &left.iter().map(|n| asked[*n].clone()).collect::<Vec<_>>()),
        }
        .into_iter();
        let pair = |(n, mut first): (usize, Answer)| {
            let mut second = if left.binary_search(&n).is_ok() { second.next()? } else { first.clone() };
            settle(&mut first, &mut second);
            Some((first, second))
        };
        let mut pairs: Vec<(Answer, Answer)> = first.into_iter().enumerate().map_while(pair).collect();
        if pairs.len() != cases.len() {
            return Err(NotRun("the subject gave fewer answers than there were cases".into()));
        }
        if let Some(flip) = self.flip.take() {
            plant(flip, &mut pairs, &judges);
        }
        let names = [one, other].map(|n| self.subjects[n].name().to_string());
        let mut reference = Reference::default();
        let mut sum = Examined { expected: vec![Vec::new()], actual: vec![Vec::new()], ..Examined::default() };
        let mut both = Vec::new();
        let (mut unsupported, mut is_confirmed) = (0, true);
        for (number, ((case, (mut first, mut second)), by)) in cases.iter().zip(pairs).zip(&judges).enumerate() {
            let is_referred = || mixed(salt.wrapping_add(number as u64)).is_multiple_of(REFERRED);
            let (expected, disputed) = match by {
                Judge::Reference => {
                    sum.referred += 1;
                    (expected_of(&mut reference, case), None)
                }
                Judge::Stated(outcome) if is_referred() => {
                    sum.referred += 1;
                    let given = expected_of(&mut reference, case);
                    let differs = given != *outcome;
                    let problem = || format!("the suite disagrees with itself: the reference gives {}", said(&given));
                    (outcome.clone(), differs.then(problem))
                }
                Judge::Stated(outcome) => (outcome.clone(), None),
                Judge::Allowed(allowed) => {
                    // Whatever is allowed is as expected; what is not stands for what was found.
                    let right = Ok(vec![b"an outcome that is allowed".to_vec()]);
                    let seen = |outcome: Result<Outputs, Failure>| match outcome {
                        Ok(outputs) => match (allowed.check)(&outputs) {
                            Ok(()) => right.clone(),
                            Err(forbidden) => Ok(vec![forbidden.into_bytes()]),
                        },
                        Err(failure) => Err(failure),
                    };
                    (first.outcome, second.outcome) = (seen(first.outcome), seen(second.outcome));
                    (right, None)
                }
            };
            let verdicts = [judge(&expected, &first.outcome), judge(&expected, &second.outcome)];
            if let Err(Failure::NotRun(why)) = first.outcome.as_ref().and(second.outcome.as_ref()) {
                return Err(NotRun(why.clone()));
            }
            let given_up = |answer: &Answer| match &answer.outcome {
                Err(Failure::GivenUp(why)) => Some(why.clone()),
                Ok(_) | Err(_) => None,
            };
            if let Some(why) = given_up(&first).or_else(|| given_up(&second)) {
                sum.given_up = sum.given_up.or(Some(why));
                both.push(Both { expected, found: first.outcome });
                continue;
            }
            if verdicts.contains(&Verdict::Skipped) {
                unsupported += 1;
                let why = [&first, &second].into_iter().find_map(|answer| answer.outcome.as_ref().err()).map(ToString::to_string);
                sum.skipped = sum.skipped.or(why);
                both.push(Both { expected, found: first.outcome });
                continue;
            }
            sum.tested += 1;
            sum.expected[0].extend(bytes(&expected));
            sum.actual[0].extend(bytes(&first.outcome));
            let confirmed = match case {
                Work::Dispatch(case) => {
                    // A constant may be the size.
                    let declared =
                        || case.specialized().map_or(case.program.workgroup_size(), |program| program.workgroup_size());
                    confirm(case.config.workgroup_override.unwrap_or_else(declared), &[&first, &second])
                }
                // Sizes show in what its steps compute.
                Work::Sequence(_) => Ok(Confirmed::Yes),
            };
            is_confirmed &= confirmed == Ok(Confirmed::Yes) || first.outcome.is_err();
            let (kind, message) = if let Err(problem) = confirmed {
                (FindingKind::Configuration, problem)
            } else if let Some(problem) = disputed {
                (FindingKind::Disputed, problem)
            } else if let (Judge::Allowed(_), Some(forbidden)) = (by, forbidden(&verdicts, [&first.outcome, &second.outcome])) {
                (FindingKind::Mismatch, forbidden)
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

    /// What a subject answers, in the order of the work. Dispatches that follow each other are one batch.
    fn run_work(&mut self, subject: usize, work: &[Work]) -> Vec<Answer> {
        let mut answers = Vec::new();
        for same in work.chunk_by(|one, other| matches!((one, other), (Work::Dispatch(_), Work::Dispatch(_)))) {
            if let [Work::Sequence(sequence)] = same {
                answers.extend(self.ask(subject, Asked::Sequence(sequence), &|_| true));
                continue;
            }
            let dispatch = |work: &Work| match work {
                Work::Dispatch(case) => Some(case.clone()),
                Work::Sequence(_) => None,
            };
            let cases: Vec<Case> = same.iter().filter_map(dispatch).collect();
            answers.extend(self.ask(subject, Asked::Cases(&cases), &|_| true));
            self.keep(subject, cases);
        }
        answers
    }

    /// The same under the time limit.
    fn limited(&self, work: &Work) -> Work {
        let mut work = work.clone();
        match &mut work {
            Work::Dispatch(case) => case.config.timeout = self.timeout,
            Work::Sequence(sequence) => sequence.steps.iter_mut().for_each(|step| step.config.timeout = self.timeout),
        }
        work
    }
}

/// What the reference gives.
fn expected_of(reference: &mut Reference, work: &Work) -> Result<Outputs, Failure> {
    let sequence = match work {
        Work::Dispatch(case) => return reference.expected(case),
        Work::Sequence(sequence) => sequence,
    };
    let mut buffers = sequence.buffers.clone();
    for step in &sequence.steps {
        let (case, outputs) = step.case(&buffers, sequence.fuel)?;
        let found = reference.expected(&case)?;
        outputs.into_iter().zip(found).for_each(|(n, bytes)| buffers[n] = bytes);
    }
    Ok(buffers)
}

/// Flips a bit of one of the dispatches, where somebody has to notice it.
fn plant(flip: Flip, pairs: &mut [(Answer, Answer)], judges: &[Judge]) {
    // Something to flip: bytes, or the tag of a trap.
    let can = |(one, _): &(Answer, Answer)| match &one.outcome {
        Ok(outputs) => outputs.iter().any(|output| !output.is_empty()),
        Err(failure) => matches!(failure, Failure::Trap { .. }),
    };
    let mut able: Vec<(&mut (Answer, Answer), &Judge)> = pairs.iter_mut().zip(judges).filter(|(pair, _)| can(pair)).collect();
    let at = (flip.dispatch % able.len().max(1) as u64) as usize;
    let Some(((one, other), by)) = able.get_mut(at) else { return };
    for answer in [one, other] {
        match by {
            Judge::Reference | Judge::Stated(_) => flip.flip(answer, 1, 0),
            Judge::Allowed(allowed) => {
                let (output, byte) = allowed.never_set;
                let outputs = answer.outcome.as_mut().ok();
                if let Some(byte) = outputs.and_then(|outputs| outputs.get_mut(output)?.get_mut(byte)) {
                    *byte ^= 0x80;
                }
            }
        }
    }
}

/// What was seen in the first dispatch that shows something else than what is allowed; nothing if none does, or one failed.
fn forbidden(verdicts: &[Verdict; 2], outcomes: [&Result<Outputs, Failure>; 2]) -> Option<String> {
    let wrong = verdicts.iter().zip(outcomes).find(|(verdict, _)| **verdict == Verdict::Wrong(vyre_worker::Kind::Bytes));
    let bytes = wrong.and_then(|(_, outcome)| outcome.as_ref().ok()?.first().cloned())?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
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
