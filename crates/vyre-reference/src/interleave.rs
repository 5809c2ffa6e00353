//! Schedules that switch between invocations within a workgroup's turn, and between workgroups.
//!
//! A window of workgroups is alive at a time: all of them where they wait for each other, else as many as a bounded number of
//! invocations allows. Those of one window are run to the end before the next begins.

use crate::dispatch::Dispatch;
use crate::faults::hooks::Faults;
use crate::fuel::Stopped;
use crate::group::Group;
use crate::invocation::Status;
use crate::observe::Observer;
use crate::schedule::{Rng, Schedule};
use std::collections::VecDeque;

/// Invocations of workgroups that are interleaved with each other.
const WINDOW: u32 = 512;

/// Who moves, and how far, until everybody waits.
enum Pace {
    /// A statement each, in order.
    Step,
    /// Up to seven statements each, in random order.
    Random(Rng),
    /// To the next atomic; then an atomic each, the last first.
    Late,
    /// To the next atomic; then one atomic at a time, by this list.
    Atomics(VecDeque<u32>),
}

impl<O: Observer, F: Faults> Dispatch<'_, '_, O, F> {
    pub fn run_interleaved(&mut self, schedule: &Schedule) -> Result<(), Stopped> {
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

    fn run_window(&mut self, groups: &mut [Group], pace: &mut Pace) -> Result<(), Stopped> {
        // Those that can move, by workgroup and number.
        let mut movers: Vec<(u32, u32)> = Vec::new();
        let ready = |groups: &[Group], (g, n): (u32, u32)| groups[g as usize].invocations[n as usize].status == Status::Ready;
        loop {
            match pace {
                Pace::Step | Pace::Random(_) => {}
                Pace::Late | Pace::Atomics(_) => {
                    self.settle(groups)?;
                    movers.clear();
                }
            }
            if movers.is_empty() {
                let all =
                    (0..).zip(groups.iter()).flat_map(|(g, group)| (0..group.invocations.len() as u32).map(move |n| (g, n)));
                movers.extend(all.filter(|mover| ready(groups, *mover)));
            }
            match pace {
                Pace::Step => {
                    for (g, n) in &movers {
                        self.steps(&mut groups[*g as usize], *n as usize, 1)?;
                    }
                }
                Pace::Random(rng) => {
                    rng.shuffle(&mut movers);
                    for movers in movers.chunks(21) {
                        let counts = rng.next();
                        for ((g, n), shift) in movers.iter().zip((0..63).step_by(3)) {
                            self.steps(&mut groups[*g as usize], *n as usize, counts >> shift & 7)?;
                        }
                    }
                }
                Pace::Late => {
                    for (g, n) in movers.iter().rev() {
                        self.steps(&mut groups[*g as usize], *n as usize, 1)?;
                    }
                }
                Pace::Atomics(list) => {
                    let asked = list.pop_front();
                    let is_asked = |(g, n): &&(u32, u32)| match asked {
                        Some(asked) => groups[*g as usize].invocation_number(*n as usize) == asked,
                        None => true,
                    };
                    if let Some((g, n)) = movers.iter().find(is_asked) {
                        self.steps(&mut groups[*g as usize], *n as usize, 1)?;
                    }
                }
            }
            // Whoever has been released is found again.
            match self.release(groups) {
                true => movers.clear(),
                false => movers.retain(|mover| ready(groups, *mover)),
            }
            if movers.is_empty() && !groups.iter().any(|group| group.any(Status::Ready)) {
                return Ok(());
            }
        }
    }

    fn steps(&mut self, group: &mut Group, n: usize, count: u64) -> Result<(), Stopped> {
        for _ in 0..count {
            if group.invocations[n].status == Status::Ready {
                self.step(group, n)?;
            }
        }
        Ok(())
    }

    /// Lets everybody go on until it stands before an atomic or is retired.
    pub fn settle(&mut self, groups: &mut [Group]) -> Result<(), Stopped> {
        loop {
            for group in groups.iter_mut() {
                for n in 0..group.invocations.len() {
                    while group.invocations[n].status == Status::Ready
                        && group.invocations[n].atomic_ahead(self.prepared.kernel).is_none()
                    {
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
    fn release(&mut self, groups: &mut [Group]) -> bool {
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
    fn release_subgroups(&mut self, group: &mut Group) -> bool {
        let Some(size) = self.prepared.kernel.subgroup else { return false };
        let mut released = false;
        for first in (0..group.invocations.len()).step_by(size as usize) {
            let lanes = first..first + size as usize;
            let mut statuses = group.invocations[lanes.clone()].iter().map(|lane| lane.status);
            let waits = statuses.clone().any(|status| matches!(status, Status::AtSubgroup));
            if waits && !statuses.any(|status| status == Status::Ready) {
                self.exchange(group, lanes);
                released = true;
            }
        }
        released
    }
}
