//! One batch of cases on a device, judged.
//!
//! Every dispatch happens twice, with something changed that must not show: the order of the cases in the buffers, and the form of
//! dispatch where there are several. The expected results come from the spec's own Rust; one case in a hundred, chosen by the run's
//! seed, is also given to the plain interpreter, and specs that have no Rust of their own are judged by it alone.
//!
//! A dispatch that fails as a whole (a crash, a hang, a wild write, a trap that nobody expects) is halved until the one case is found
//! that fails by itself. If the first of them all fail, so does the rest: a device that hangs on everything is not asked about thousands
//! of cases one by one.

mod expected;
mod history;
mod law;
mod layout;
mod patience;
mod whole;

pub(crate) use expected::{mixed, output_bytes};
pub(crate) use history::Shows;
pub(crate) use layout::{Dispatch, Target};
pub(crate) use patience::Hangs;
pub(crate) use whole::Both;

use crate::spec::Comparator;
use expected::Expected;
use patience::{Asked, OnHang, Place};
use std::sync::Arc;
use std::time::Duration;
use vyre_driver::device::Ran;
use vyre_foundation::case::Case;
use vyre_worker::{Answer, Failure, Outputs, Subject};

/// How a case can fail.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    /// The device gives other bytes than expected.
    Mismatch,
    /// Two dispatches that must agree do not.
    Nondeterministic,
    /// The dispatch failed: a crash, a hang, a device error, a wild write.
    Dispatch,
    /// The device ran something else than it was asked to.
    Configuration,
    /// The bytes of the case do not fit the signature, or `cpu_fn` failed on it.
    Case,
    /// `cpu_fn` and the reference disagree: the suite is wrong about this case, or the reference is.
    Disputed,
}

/// One case that failed.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Finding {
    /// Its number in the batch.
    pub case: usize,
    pub kind: FindingKind,
    /// What is wrong, for people.
    pub message: String,
    /// What the device gave, if it gave something.
    pub found: Vec<u8>,
    /// What was expected, if that is known.
    pub expected: Vec<u8>,
}

/// Whether the device said that it ran what it was asked to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Confirmed {
    /// It said nothing.
    #[default]
    No,
    /// It did.
    Yes,
}

/// What came of a batch.
#[derive(Default)]
pub(crate) struct Examined {
    /// Cases that were judged.
    pub tested: u64,
    /// Those that failed; one finding each.
    pub findings: Vec<Finding>,
    /// Why nothing was judged: the device cannot run the program.
    pub skipped: Option<String>,
    /// Cases that the device cannot run, among others that it can.
    pub unsupported: u64,
    /// Why cases were not judged that the device may be able to run: it hangs on others, and they were given up.
    pub given_up: Option<String>,
    /// Cases on which the reference was asked too.
    pub referred: u64,
    pub confirmed: Confirmed,
    /// The expected bytes of each output, and the device's.
    pub expected: Vec<Vec<u8>>,
    pub actual: Vec<Vec<u8>>,
}

/// Nothing was learned: no process could be started to run a case.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct NotRun(pub String);

/// What the two dispatches of a batch gave.
struct Pair {
    first: Answer,
    second: Answer,
    /// By how many cases the second was rotated.
    rotated: usize,
    /// What was changed, for people.
    changed: String,
}

/// The judge of batches, over one device in one or more forms.
pub(crate) struct Examiner<'s> {
    subjects: Vec<Box<dyn Subject + 's>>,
    /// Bytes that the result of a case may have.
    pub max_output_bytes: usize,
    /// A bit to flip in what the device gives for the next dispatches: a control, which the judge must find out by itself.
    pub flip: Option<Flip>,
    /// How long a dispatch may take, where nobody else looks at the clock.
    pub timeout: Option<Duration>,
    /// Whether the case is looked for that makes a dispatch fail; otherwise all of its cases have failed.
    pub looks_closer: bool,
    /// Cases that were looked at one by one since the last batch was begun: those that failed, and those that did not.
    alone: (usize, usize),
    /// What is known about hangs in the run, if somebody keeps it.
    hangs: Option<Arc<Hangs>>,
    on_hang: Option<OnHang<'s>>,
    place: Place,
    /// By subject: what it was given, if that is kept.
    logs: Vec<history::Log>,
}

/// How long a dispatch may take on a mutant.
pub(crate) const MUTANT_LIMIT: Duration = Duration::from_secs(2);

/// If so many cases that were looked at one by one have failed, and none has not, nobody looks any further.
const HOPELESS: usize = 16;

/// Which bit is flipped; each number is taken modulo what there is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Flip {
    pub dispatch: u64,
    pub output: u64,
    pub case: u64,
    pub bit: u64,
}

impl Flip {
    /// Flips the bit in both answers about one of these dispatches, of so many cases each. It is one that has a bit to flip: some have no
    /// output that is not empty, and nothing could be noticed there.
    fn apply(self, pairs: &mut [Result<Pair, String>], cases: &[usize]) {
        let answered = pairs.iter_mut().zip(cases).filter_map(|(pair, cases)| Some((pair.as_mut().ok()?, *cases)));
        let mut able: Vec<(&mut Pair, usize)> = answered.filter(|(pair, cases)| can_flip(&pair.first, *cases)).collect();
        let at = (self.dispatch % able.len().max(1) as u64) as usize;
        let Some((pair, cases)) = able.get_mut(at) else { return };
        self.flip(&mut pair.first, *cases, 0);
        self.flip(&mut pair.second, *cases, pair.rotated);
    }

    /// Flips the bit in an answer about so many cases, rotated by some.
    fn flip(self, answer: &mut Answer, cases: usize, rotated: usize) {
        let outputs = match &mut answer.outcome {
            Ok(outputs) => outputs,
            // It has no outputs; what can be wrong about it is its tag.
            Err(Failure::Trap { tag, .. }) => {
                *tag ^= 1 << (self.bit % 32);
                return;
            }
            Err(_) => return,
        };
        let with_bytes: Vec<usize> = (0..outputs.len()).filter(|n| outputs[*n].len() >= cases).collect();
        let Some(output) = with_bytes.get((self.output % with_bytes.len().max(1) as u64) as usize) else { return };
        let column = &mut outputs[*output];
        let size = column.len() / cases;
        let case = (self.case as usize % cases + cases - rotated) % cases;
        let Some(bit) = self.bit.checked_rem(size as u64 * 8) else { return };
        column[case * size + bit as usize / 8] ^= 1 << (bit % 8);
    }
}

/// Whether an answer has a bit to flip: bytes for each of so many cases, or the tag of a trap.
fn can_flip(answer: &Answer, cases: usize) -> bool {
    match &answer.outcome {
        Ok(outputs) => outputs.iter().any(|output| !output.is_empty() && output.len() >= cases),
        Err(failure) => matches!(failure, Failure::Trap { .. }),
    }
}

impl<'s> Examiner<'s> {
    /// Over these subjects, which are one device in different forms; there is at least one.
    pub fn new(subjects: Vec<Box<dyn Subject + 's>>) -> Self {
        assert!(!subjects.is_empty(), "there is a device to examine");
        Examiner {
            subjects,
            max_output_bytes: usize::MAX,
            flip: None,
            timeout: None,
            looks_closer: true,
            alone: (0, 0),
            hangs: None,
            on_hang: None,
            place: Place::default(),
            logs: Vec::new(),
        }
    }

    /// Over a device with a planted fault, of which nobody wants to know more than whether it shows. Some of them never end.
    pub fn of_faulty(subject: Box<dyn Subject + 's>) -> Self {
        Examiner { timeout: Some(MUTANT_LIMIT), looks_closer: false, ..Examiner::new(vec![subject]) }
    }

    /// Judges dispatches of one target. `salt` decides what is changed for the second run and which cases the reference sees.
    pub fn examine(&mut self, target: &Target<'_>, dispatches: Vec<Dispatch>, salt: u64) -> Result<Examined, NotRun> {
        self.alone = (0, 0);
        self.examine_part(target, dispatches, salt)
    }

    fn examine_part(&mut self, target: &Target<'_>, dispatches: Vec<Dispatch>, salt: u64) -> Result<Examined, NotRun> {
        let mut sum = Examined::default();
        let pairs = self.run(target, &dispatches, salt);
        let mut first = 0;
        for (dispatch, pair) in dispatches.into_iter().zip(pairs) {
            let cases = dispatch.cases;
            let expected = expected::of(target, &dispatch, salt, self.max_output_bytes);
            sum.referred += expected.referred;
            let judged = match pair {
                Ok(pair) => self.judge(target, dispatch, expected, pair, salt)?,
                Err(problem) => every_case(&expected, cases, FindingKind::Case, &problem),
            };
            sum.take(judged, first);
            first += cases;
            if sum.skipped.is_some() {
                break;
            }
        }
        Ok(sum)
    }

    /// Runs each dispatch twice; the text is why one cannot even be asked for.
    fn run(&mut self, target: &Target<'_>, dispatches: &[Dispatch], salt: u64) -> Vec<Result<Pair, String>> {
        let count = self.subjects.len();
        let (one, other) = (salt as usize % count, (salt as usize + 1) % count);
        let mut planned: Vec<Result<usize, String>> = Vec::new();
        let (mut firsts, mut seconds): (Vec<Case>, Vec<Case>) = Default::default();
        for dispatch in dispatches {
            // By at least one case and never by all, unless there is only one.
            let rotated = if dispatch.cases < 2 { 0 } else { 1 + (salt % (dispatch.cases as u64 - 1)) as usize };
            planned.push(target.case(dispatch).map(|mut case| {
                case.config.timeout = self.timeout;
                seconds.push(target.layout.rotated(&case, dispatch.cases, rotated));
                firsts.push(case);
                rotated
            }));
        }
        // A dispatch that cannot be halved is one by itself.
        let alone: Vec<bool> =
            dispatches.iter().zip(&planned).filter(|(_, it)| it.is_ok()).map(|(dispatch, _)| dispatch.cases < 2).collect();
        let is_alone = |n: usize| alone[n % alone.len()];
        let (answers, again) = if one == other {
            // One call for both, so that a process is asked once.
            let count = firsts.len();
            firsts.append(&mut seconds);
            let mut all = self.ask(one, Asked::Cases(&firsts), &is_alone);
            let again = all.split_off(count.min(all.len()));
            self.keep(one, firsts);
            (all, again)
        } else {
            let answers = self.ask(one, Asked::Cases(&firsts), &is_alone);
            self.keep(one, firsts);
            let left: Vec<usize> = (0..seconds.len()).filter(|n| !self.is_settled(answers.get(*n))).collect();
            let mut number = 0..;
            seconds.retain(|_| number.next().is_some_and(|n| left.binary_search(&n).is_ok()));
            let mut found = self.ask(other, Asked::Cases(&seconds), &|n| is_alone(left[n])).into_iter();
            let again = |(n, answer): (usize, &Answer)| match left.binary_search(&n) {
                Ok(_) => found.next(),
                Err(_) => Some(answer.clone()),
            };
            let again = answers.iter().enumerate().map_while(again).collect();
            self.keep(other, seconds);
            (answers, again)
        };
        let names = [one, other].map(|n| self.subjects[n].name().to_string());
        let changed = |rotated: usize| {
            let order = if rotated == 0 { "nothing".to_string() } else { format!("the order of cases, rotated by {rotated}") };
            if names[0] == names[1] { order } else { format!("{order}, and {} in place of {}", names[1], names[0]) }
        };
        let mut both = answers.into_iter().zip(again);
        let pair = |rotated: usize| {
            let silent = || Answer::from(Err(Failure::NotRun("the subject gave fewer answers than there were cases".into())));
            let (first, second) = both.next().unwrap_or_else(|| (silent(), silent()));
            Pair { first, second, rotated, changed: changed(rotated) }
        };
        let mut pair = pair;
        let mut pairs: Vec<Result<Pair, String>> = planned.into_iter().map(|rotated| rotated.map(&mut pair)).collect();
        if let Some(flip) = self.flip.take() {
            flip.apply(&mut pairs, &dispatches.iter().map(|dispatch| dispatch.cases).collect::<Vec<_>>());
        }
        pairs
    }

    fn keep(&mut self, subject: usize, cases: Vec<Case>) {
        if let Some(log) = self.logs.get_mut(subject) {
            log.add(cases);
        }
    }

    fn judge(
        &mut self,
        target: &Target<'_>,
        dispatch: Dispatch,
        expected: Expected,
        mut pair: Pair,
        salt: u64,
    ) -> Result<Examined, NotRun> {
        let cases = dispatch.cases;
        settle(&mut pair.first, &mut pair.second);
        if let Some(trap) = expected.trap.clone() {
            return self.judge_trap(&expected, &trap, pair);
        }
        let confirmed = match confirm(target.program.workgroup_size(), &[&pair.first, &pair.second]) {
            Ok(confirmed) => confirmed,
            Err(problem) => return Ok(every_case(&expected, cases, FindingKind::Configuration, &problem)),
        };
        let failed = |answer: &Answer| answer.outcome.as_ref().err().cloned();
        match (failed(&pair.first), failed(&pair.second)) {
            (Some(Failure::NotRun(why)), _) | (_, Some(Failure::NotRun(why))) => Err(NotRun(why)),
            (Some(Failure::Unsupported(why)), _) | (_, Some(Failure::Unsupported(why))) => {
                Ok(Examined { skipped: Some(why), ..Examined::default() })
            }
            (Some(Failure::GivenUp(why)), _) | (_, Some(Failure::GivenUp(why))) => Ok(given_up(&expected, why)),
            (None, None) => {
                let second = target.layout.unrotated(pair.second.outcome.unwrap_or_default(), cases, pair.rotated);
                let mut judged = compare(target, &expected, cases, pair.first.outcome.unwrap_or_default(), second, &pair.changed);
                judged.confirmed = confirmed;
                self.alone.1 += 1;
                Ok(judged)
            }
            _ if cases > 1 && self.looks_closer && !matches!(self.alone, (HOPELESS.., 0)) => {
                let mut sum = Examined::default();
                let mut first = 0;
                for half in target.layout.halves(dispatch) {
                    let cases = half.cases;
                    sum.take(self.examine_part(target, vec![half], salt)?, first);
                    first += cases;
                }
                // The halves have asked the reference as well; the cases are the same.
                sum.referred = 0;
                Ok(sum)
            }
            (one, other) if [&one, &other].into_iter().flatten().any(|failure| self.is_suspicion(failure)) => {
                let why = [one, other].into_iter().flatten().next().map_or(String::new(), |failure| failure.to_string());
                Ok(given_up(&expected, why))
            }
            (one, other) => {
                let message = match (&one, &other) {
                    (Some(one), Some(other)) if one == other => one.to_string(),
                    (Some(one), Some(other)) => format!("nondeterministic: {one}; then, with {} changed, {other}", pair.changed),
                    (Some(failure), None) => format!("nondeterministic: {failure}; then, with {} changed, none", pair.changed),
                    (None, Some(failure)) => {
                        format!("nondeterministic: no failure; then, with {} changed, {failure}", pair.changed)
                    }
                    (None, None) => unreachable!("one of them failed"),
                };
                let kind = if one == other { FindingKind::Dispatch } else { FindingKind::Nondeterministic };
                self.alone.0 += 1;
                Ok(every_case(&expected, cases, kind, &message))
            }
        }
    }
}

impl Examiner<'_> {
    /// Judges a dispatch that has to end with a trap.
    fn judge_trap(&mut self, expected: &Expected, trap: &Failure, pair: Pair) -> Result<Examined, NotRun> {
        let outcomes = [&pair.first.outcome, &pair.second.outcome];
        let said = |outcome: &Result<Outputs, Failure>| match outcome {
            Ok(_) => "it ran to the end".to_string(),
            Err(failure) => failure.to_string(),
        };
        for outcome in outcomes {
            match outcome {
                Err(Failure::NotRun(why)) => return Err(NotRun(why.clone())),
                Err(Failure::Unsupported(why)) => return Ok(Examined { skipped: Some(why.clone()), ..Examined::default() }),
                Err(Failure::GivenUp(why)) => return Ok(given_up(expected, why.clone())),
                Ok(_) | Err(_) => {}
            }
        }
        let mut judged = Examined { tested: 1, expected: expected.columns.clone(), ..Examined::default() };
        judged.actual = expected.columns.clone();
        if let Some(column) = judged.actual.first_mut() {
            *column = said(outcomes[0]).into_bytes();
        }
        let (kind, message) = if let Some((kind, problem)) = expected.problems.get(&0) {
            (*kind, problem.clone())
        } else if outcomes[0] != outcomes[1] {
            let [one, other] = outcomes.map(said);
            (FindingKind::Nondeterministic, format!("nondeterministic: {one}; then, with {} changed, {other}", pair.changed))
        } else if outcomes[0].as_ref().err() != Some(trap) {
            (FindingKind::Mismatch, format!("{}, and {trap} is expected", said(outcomes[0])))
        } else {
            // Who traps says nothing about what ran; the dispatches of the op that end do.
            judged.confirmed = Confirmed::Yes;
            return Ok(judged);
        };
        let found = pair.first.outcome.map_or_else(|_| Vec::new(), |outputs| outputs.concat());
        judged.findings.push(Finding { case: 0, kind, message, found, expected: Vec::new() });
        Ok(judged)
    }
}

impl Examined {
    /// Adds what came of the cases from number `first` on.
    fn take(&mut self, other: Examined, first: usize) {
        self.tested += other.tested;
        self.referred += other.referred;
        self.findings.extend(other.findings.into_iter().map(|finding| Finding { case: finding.case + first, ..finding }));
        self.skipped = self.skipped.take().or(other.skipped);
        self.given_up = self.given_up.take().or(other.given_up);
        if other.confirmed == Confirmed::Yes {
            self.confirmed = Confirmed::Yes;
        }
        append(&mut self.expected, other.expected);
        append(&mut self.actual, other.actual);
    }
}

fn append(to: &mut Vec<Vec<u8>>, from: Vec<Vec<u8>>) {
    if to.is_empty() {
        *to = from;
    } else {
        to.iter_mut().zip(from).for_each(|(to, from)| to.extend(from));
    }
}

/// Whether what ran is what was asked for. Some forms of dispatch do not say; one that does is enough.
fn confirm(asked: [u32; 3], answers: &[&Answer]) -> Result<Confirmed, String> {
    let mut confirmed = Confirmed::No;
    for answer in answers {
        let Some(Ran { workgroup, .. }) = &answer.ran else { continue };
        confirmed = Confirmed::Yes;
        if *workgroup != asked {
            return Err(format!("workgroups of {asked:?} were asked for, and {workgroup:?} ran"));
        }
    }
    Ok(confirmed)
}

/// Of two answers one of which is a hang, the other was not waited for: they are one hang.
pub(super) fn settle(one: &mut Answer, other: &mut Answer) {
    match (&one.outcome, &other.outcome) {
        (Err(Failure::Hung(_)), Err(Failure::GivenUp(_))) => other.outcome.clone_from(&one.outcome),
        (Err(Failure::GivenUp(_)), Err(Failure::Hung(_))) => one.outcome.clone_from(&other.outcome),
        (Ok(_) | Err(_), Ok(_) | Err(_)) => {}
    }
}

/// Nothing is said about the cases of a dispatch.
fn given_up(expected: &Expected, why: String) -> Examined {
    Examined {
        given_up: Some(why),
        expected: expected.columns.clone(),
        actual: expected.columns.iter().map(|column| vec![0; column.len()]).collect(),
        ..Examined::default()
    }
}

/// All cases of a dispatch failed for one reason.
fn every_case(expected: &Expected, cases: usize, kind: FindingKind, message: &str) -> Examined {
    let finding = |case| Finding {
        case,
        kind,
        message: message.into(),
        found: Vec::new(),
        expected: expected.of_case(case).unwrap_or_default(),
    };
    Examined {
        tested: cases as u64,
        findings: (0..cases).map(finding).collect(),
        expected: expected.columns.clone(),
        actual: expected.columns.iter().map(|column| vec![0; column.len()]).collect(),
        ..Examined::default()
    }
}

/// Compares what two dispatches gave, in the order of the cases, with what is expected.
fn compare(target: &Target<'_>, expected: &Expected, cases: usize, first: Outputs, second: Outputs, changed: &str) -> Examined {
    let mut findings: Vec<Finding> = Vec::new();
    let all_agree = first == expected.columns && second == expected.columns;
    let lengths = |outputs: &Outputs| outputs.iter().map(Vec::len).collect::<Vec<_>>();
    let wanted = lengths(&expected.columns);
    for found in [&first, &second] {
        if lengths(found) != wanted {
            let problem = format!("outputs of {:?} bytes, and {wanted:?} are expected", lengths(found));
            return every_case(expected, cases, FindingKind::Mismatch, &problem);
        }
    }
    for case in 0..cases {
        let problem = expected.problems.get(&case);
        if all_agree && problem.is_none() {
            if expected.problems.is_empty() {
                break;
            }
            continue;
        }
        let (one, other) = (expected.part(&first, case), expected.part(&second, case));
        let wanted = expected.part(&expected.columns, case);
        let (kind, message, found) = if let Some((kind, problem)) = problem {
            (*kind, problem.clone(), one)
        } else if one != other {
            let found = if one == wanted { other } else { one };
            (FindingKind::Nondeterministic, format!("nondeterministic: two dispatches differ, with {changed} changed"), found)
        } else {
            match agree(&target.spec.comparator, &one, &wanted) {
                Ok(()) => continue,
                Err(problem) => (FindingKind::Mismatch, problem, one),
            }
        };
        let expected = if kind == FindingKind::Case { expected.of_case(case).unwrap_or_default() } else { wanted };
        findings.push(Finding { case, kind, message, found, expected });
    }
    Examined { tested: cases as u64, findings, expected: expected.columns.clone(), actual: first, ..Examined::default() }
}

fn agree(comparator: &Comparator, found: &[u8], expected: &[u8]) -> Result<(), String> {
    if found == expected { Ok(()) } else { comparator.compare(found, expected) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bit_is_flipped_wherever_there_is_one() {
        let answer = |bytes: usize| Answer::from(Ok(vec![vec![], vec![0; bytes]]));
        let pair = |bytes: usize| Ok(Pair { first: answer(bytes), second: answer(bytes), rotated: 0, changed: String::new() });
        for dispatch in 0..8 {
            let mut pairs = [pair(0), Err("it does not fit".into()), pair(4), pair(0)];
            Flip { dispatch, output: dispatch, case: dispatch, bit: 13 }.apply(&mut pairs, &[1, 1, 1, 1]);
            let bits = |answer: &Answer| answer.outcome.iter().flatten().flatten().map(|byte| byte.count_ones()).sum::<u32>();
            let flipped =
                |pair: &Result<Pair, String>| pair.as_ref().map_or(0, |pair| bits(&pair.first) + 10 * bits(&pair.second));
            assert_eq!(pairs.each_ref().map(flipped), [0, 0, 11, 0], "dispatch {dispatch}");
        }
    }

    /// A unit whose dispatches all trap has something to flip too; otherwise its control would survive.
    #[test]
    fn where_everything_traps_the_tag_is_flipped() {
        let trap = |tag| Failure::Trap { tag, invocation: [1, 0, 0] };
        let answer = || Answer::from(Err(trap(5)));
        let mut pairs = [Ok(Pair { first: answer(), second: answer(), rotated: 0, changed: String::new() })];
        Flip { dispatch: 3, output: 1, case: 2, bit: 33 }.apply(&mut pairs, &[1]);
        let Ok(pair) = &pairs[0] else { panic!("it is there") };
        assert_eq!([&pair.first, &pair.second].map(|answer| answer.outcome.clone()), [Err(trap(7)), Err(trap(7))]);
    }
}
