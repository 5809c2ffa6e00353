//! Schedules that switch between invocations within a workgroup's turn, and between workgroups.
//!
//! A window of workgroups is alive at a time: all of them where they wait for each other, else as many as a bounded number of
//! invocations allows. Those of one window are run to the end before the next begins.

use crate::dispatch::Dispatch;
use crate::group::Group;
use crate::invocation::{FuelExhausted, Status};
use crate::observe::Observer;
use crate::schedule::{Rng, Schedule};
use std::collections::VecDeque;

/// Invocations of workgroups that are interleaved with each other.
const WINDOW: u32 = 512;

/// Who moves, and how far, until everybody waits.
enum Pace {
    /// A statement each, in order.
    Step,
    /// Up to three statements each, in random order.
    Random(Rng),
    /// To the next atomic; then an atomic each, the last first.
    Late,
    /// To the next atomic; then one atomic at a time, by this list.
    Atomics(VecDeque<u32>),
}

impl<'k, O: Observer> Dispatch<'_, 'k, O> {
    pub fn run_interleaved(&mut self, schedule: &Schedule) -> Result<(), FuelExhausted> {
        let mut pace = match schedule {
            Schedule::Shuffle(seed) => Pace::Random(Rng(*seed)),
            Schedule::Late => Pace::Late,
            Schedule::Atomics(list) => Pace::Atomics(list.iter().copied().collect()),
            Schedule::Interleave
            | Schedule::Forward
            | Schedule::Reverse
            | Schedule::Stride(_)
            | Schedule::Random(_)
            | Schedule::Groups(_) => Pace::Step,
        };
        let shape = &self.prepared.shape;
        let count = shape.groups();
        let window = match self.prepared.kernel.uses.grid_sync {
            true => count,
            false => WINDOW.div_ceil(shape.group_invocations()),
        };
        let mut groups = Vec::new();
        for first in (0..count).step_by(window.max(1) as usize) {
            self.start_groups(&mut groups, first..first.saturating_add(window).min(count))?;
            self.run_window(&mut groups, &mut pace)?;
            groups.iter().for_each(|group| self.collect_traps(group));
        }
        Ok(())
    }

    fn run_window(&mut self, groups: &mut [Group<'k>], pace: &mut Pace) -> Result<(), FuelExhausted> {
        let mut everybody: Vec<(usize, usize)> =
            groups.iter().enumerate().flat_map(|(g, group)| (0..group.invocations.len()).map(move |n| (g, n))).collect();
        loop {
            match pace {
                Pace::Step => {
                    for (g, n) in &everybody {
                        self.steps(&mut groups[*g], *n, 1)?;
                    }
                }
                Pace::Random(rng) => {
                    rng.shuffle(&mut everybody);
                    for (g, n) in &everybody {
                        let count = rng.below(4);
                        self.steps(&mut groups[*g], *n, count)?;
                    }
                }
                Pace::Late => {
                    self.settle(groups)?;
                    for (g, n) in everybody.iter().rev() {
                        self.steps(&mut groups[*g], *n, 1)?;
                    }
                }
                Pace::Atomics(list) => {
                    self.settle(groups)?;
                    let asked = list.pop_front();
                    let pending = |(g, n): &&(usize, usize)| groups[*g].invocations[*n].status == Status::Ready;
                    let next = everybody
                        .iter()
                        .filter(pending)
                        .find(|(g, n)| asked.is_none_or(|asked| groups[*g].invocation_number(*n) == asked));
                    if let Some((g, n)) = next {
                        self.steps(&mut groups[*g], *n, 1)?;
                    }
                }
            }
            if !self.release(groups) && !groups.iter().any(|group| group.any(Status::Ready)) {
                return Ok(());
            }
        }
    }

    fn steps(&mut self, group: &mut Group<'k>, n: usize, count: u64) -> Result<(), FuelExhausted> {
        for _ in 0..count {
            if group.invocations[n].status == Status::Ready {
                self.step(group, n)?;
            }
        }
        Ok(())
    }

    /// Lets everybody go on until it stands before an atomic or is retired.
    pub fn settle(&mut self, groups: &mut [Group<'k>]) -> Result<(), FuelExhausted> {
        loop {
            for group in groups.iter_mut() {
                for n in 0..group.invocations.len() {
                    while group.invocations[n].status == Status::Ready && group.invocations[n].atomic_ahead().is_none() {
                        self.step(group, n)?;
                    }
                }
            }
            if !self.release(groups) {
                return Ok(());
            }
        }
    }

    /// Lets everybody go on who waits for nobody that can still move; whether there was anybody.
    fn release(&mut self, groups: &mut [Group<'k>]) -> bool {
        let mut released = false;
        for group in groups.iter_mut() {
            if self.prepared.kernel.uses.subgroup {
                released |= self.release_subgroups(group);
            }
            if group.any(Status::AtBarrier) && !group.any(Status::Ready) {
                self.barrier(group);
                released = true;
            }
        }
        let moves = released || groups.iter().any(|group| group.any(Status::Ready));
        if !moves && groups.iter().any(|group| group.any(Status::AtGridSync)) {
            self.grid_sync(groups);
            released = true;
        }
        released
    }

    /// A subgroup goes on as soon as its own lanes wait: others need not have come as far.
    fn release_subgroups(&mut self, group: &mut Group<'k>) -> bool {
        let Some(size) = self.prepared.kernel.subgroup else { return false };
        let mut released = false;
        for first in (0..group.invocations.len()).step_by(size as usize) {
            let lanes = first..first + size as usize;
            let mut statuses = group.invocations[lanes.clone()].iter().map(|lane| lane.status);
            let waits = statuses.clone().any(|status| matches!(status, Status::AtSubgroup(_)));
            if waits && !statuses.any(|status| status == Status::Ready) {
                self.exchange(group, lanes);
                released = true;
            }
        }
        released
    }
}
