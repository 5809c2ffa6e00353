//! Blind controls: units that must fail, hidden among the others.
//!
//! Among every fifty units of a shard there is one that is run once more: with a single bit flipped in what the device gave, or on a
//! device with a planted fault that is known to show in these cases, because its bytes were compared with those of the same device
//! without the fault. Where, and what, follows from a secret whose hash is written down before anything runs; the judge is not told. A
//! control that is not found out means that the suite cannot see, and takes away the verdict.

use super::unit::{UnitDone, examine, first_cases};
use crate::digest::Digest;
use crate::examine::{Examiner, FindingKind, Flip, MUTANT_LIMIT};
use crate::ledger::{Places, SURVIVED};
use crate::mutants::{self, Mutant};
use crate::plan::{Plan, Unit};
use crate::regression::Shown;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::time::{Duration, Instant, SystemTime};
use vyre_smith::subjects::subject;
use vyre_worker::{Answer, Failure, caught};

/// A number that nobody can guess, for the places of controls: what the standard library seeds its hash maps with, and the time.
#[must_use]
pub fn secret() -> Digest {
    let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
    let random = || RandomState::new().build_hasher().finish().to_le_bytes();
    Digest::of([random(), random(), random(), random(), (time as u64).to_le_bytes()])
}

/// One planted fault.
#[derive(Clone, Copy, Debug)]
pub(super) struct Control {
    flip: Flip,
    /// Where the search for a mutant begins, if it is to be one.
    mutant: Option<u64>,
}

/// What came of a control.
pub(super) struct Found {
    /// What was planted.
    planted: String,
    /// Whether it was found out; `None` if the device cannot run the unit, or hangs on it, so that nothing could be planted.
    is_noticed: Option<bool>,
}

/// Mutants that are looked at before a bit is flipped instead.
const MUTANTS: usize = 200;

/// How many times as long as the device without fault a mutant may take, and what it may take in any case.
const PATIENCE: u32 = 20;
const SHORTEST: Duration = Duration::from_millis(20);

impl Control {
    /// The control behind the unit at this position of a shard, if there is one.
    pub fn at(places: &Places, position: u64) -> Option<Control> {
        let draw = |what: &str| places.draw(what, position);
        places.has(position).then(|| Control {
            flip: Flip { dispatch: draw("dispatch"), output: draw("output"), case: draw("case"), bit: draw("bit") },
            mutant: (draw("kind") % 2 == 0).then(|| draw("mutant")),
        })
    }

    /// Runs a unit with the fault.
    pub fn run(self, plan: &Plan, unit: Unit, examiner: &mut Examiner<'_>, seed: u64, most_groups: u64) -> Result<Found, String> {
        let mutant = self.mutant.and_then(|from| showing(plan, unit, from, seed, most_groups));
        if let Some(mutant) = mutant {
            let done = examine(plan, unit, &mut Examiner::of_faulty(mutant.subject()), seed, most_groups, None)?;
            // Two dispatches that differ are noticed by comparing them with each other, which says nothing about whether anybody compares
            // them with what is expected: then a bit is flipped, in both alike.
            let by_comparing = |shown: &Shown| shown.failure.kind != FindingKind::Nondeterministic;
            if done.shown.is_empty() || done.shown.iter().any(by_comparing) {
                return Ok(Found::new(mutant.name.clone(), &done));
            }
        }
        let planted = format!("bit {} of case {} flipped in the device's output", self.flip.bit, self.flip.case);
        Ok(Found::new(planted, &examine(plan, unit, examiner, seed, most_groups, Some(self.flip))?))
    }
}

/// A mutant whose bytes or trap for the first cases of a unit are not those of the device that it was made from.
///
/// One that gets nowhere, such as a loop that does not end, would be noticed by the clock, which says nothing about whether anybody
/// compares bytes; and waiting for it would take longer than all the units between two controls.
fn showing(plan: &Plan, unit: Unit, from: u64, seed: u64, most_groups: u64) -> Option<&'static Mutant> {
    let mut cases = first_cases(plan, unit, seed, most_groups);
    let mut right = subject("bulk").ok()?;
    let began = Instant::now();
    let expected: Vec<_> = right.run_batch(&cases).into_iter().map(|answer| answer.outcome).collect();
    let limit = (began.elapsed() * PATIENCE).clamp(SHORTEST, MUTANT_LIMIT);
    cases.iter_mut().for_each(|case| case.config.timeout = Some(limit));
    let program = &cases.first()?.program;
    let all = mutants::all();
    let shows = |mutant: &&Mutant| {
        let mut subject = mutant.subject();
        let Ok(answers) = caught(|| subject.run_batch(&cases)) else { return false };
        let ended = |answer: &Answer| matches!(answer.outcome, Ok(_) | Err(Failure::Trap { .. }));
        answers.iter().all(ended) && answers.iter().zip(&expected).any(|(answer, expected)| answer.outcome != *expected)
    };
    let turned = (0..all.len()).map(|n| &all[(from as usize).wrapping_add(n) % all.len()]);
    turned.filter(|mutant| mutant.applies(program)).take(MUTANTS).find(shows)
}

impl Found {
    fn new(planted: String, done: &UnitDone) -> Found {
        let is_judged = done.skipped.is_none() && (done.given_up.is_none() || done.record.tested > 0);
        Found { planted, is_noticed: is_judged.then_some(done.record.failed > 0) }
    }

    /// What is remarked about it.
    pub fn remark(&self) -> Option<String> {
        let noticed = self.is_noticed?;
        Some(if noticed { format!("noticed: {}", self.planted) } else { format!("{SURVIVED}{}", self.planted) })
    }
}
