//! Workgroups of a dispatch over threads.
//!
//! The calling thread begins, and calls helpers once what is left is worth waking them: from the estimate where the cost of a kernel is
//! known, from the time that the first workgroups took where loops make it depend on data. A dispatch that is small by the estimate is one
//! chunk on the calling thread, and touches neither the pool nor the clock.
//!
//! Everybody takes a chunk at a time: workgroups for about [`CHUNK`] at the speed of the own last chunk, and never more than a share of what is
//! left, so that all end at about the same time. Between chunks the clock and the cancellation are looked at.

use crate::threads::team;
use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use vyre_driver::device::{DeviceError, Stop};
use vyre_foundation::kernel::{Body, Kernel, StmtKind};
use vyre_host_floats::with_default_state;

/// The time that a chunk is to take.
const CHUNK: Duration = Duration::from_micros(100);

/// The time that the first chunk is to take where its cost is not known.
const FIRST: Duration = Duration::from_micros(10);

/// Work that is done before a helper is awake.
const WORTH_HELP: Duration = Duration::from_micros(40);

/// How many times as many workgroups as before a chunk has at most: the first ones may have had nothing to do.
const GROWTH: u64 = 4;

/// Iterations that a loop is taken to have.
const ITERATIONS: u64 = 16;

/// What a dispatch of a kernel costs, as far as that can be told from the kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    /// Picoseconds of an invocation.
    invocation: u64,
    /// Whether loops make it depend on data.
    has_loops: bool,
}

impl Cost {
    /// The cost of a kernel that takes so many picoseconds for an op of one invocation.
    pub fn of(kernel: &Kernel, op: u64) -> Cost {
        let has_loops = kernel.stmts.iter().any(|stmt| matches!(stmt.kind, StmtKind::Loop { .. }));
        Cost { invocation: ops(kernel, kernel.body()).saturating_mul(op), has_loops }
    }

    /// Whether there are loops, so that a chunk may take any time.
    pub fn has_loops(self) -> bool {
        self.has_loops
    }

    fn group(self, size: [u32; 3]) -> u64 {
        let size: u32 = size.iter().product();
        self.invocation.saturating_mul(u64::from(size))
    }
}

/// The ops of a body for one invocation.
fn ops(kernel: &Kernel, body: Body) -> u64 {
    let mut ops = 0_u64;
    for (_, stmt) in kernel.stmts_of(body) {
        ops = ops.saturating_add(1);
        for operand in stmt.kind.operands() {
            kernel.for_each_part(operand, &mut |_, _| ops = ops.saturating_add(1));
        }
        ops = ops.saturating_add(match &stmt.kind {
            StmtKind::Scope { body } => self::ops(kernel, *body),
            StmtKind::If { then, otherwise, .. } => self::ops(kernel, *then).saturating_add(self::ops(kernel, *otherwise)),
            StmtKind::Loop { body, .. } => self::ops(kernel, *body).saturating_mul(ITERATIONS),
            StmtKind::Let { .. }
            | StmtKind::Assign { .. }
            | StmtKind::Store { .. }
            | StmtKind::Atomic { .. }
            | StmtKind::Subgroup { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return
            | StmtKind::Trap { .. }
            | StmtKind::Barrier
            | StmtKind::GridSync => 0,
        });
    }
    ops
}

/// Workgroups that are to run.
pub(crate) struct Spread<'a> {
    pub groups: Range<u32>,
    pub workgroup_size: [u32; 3],
    pub cost: Cost,
    pub threads: Threads,
    pub stop: Stop<'a>,
}

/// How many threads take part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Threads {
    /// At most.
    pub count: u32,
    /// Whether helpers are called to every dispatch of more than one workgroup and all take one at a time, worth it or not: so that
    /// small dispatches test what otherwise only large ones meet.
    pub eager: bool,
}

impl Spread<'_> {
    /// Calls `chunk` with parts of the workgroups, under the default float state and on several threads at once, until all have run or
    /// one has failed; gives the threads that took part.
    pub fn run(&self, chunk: impl Fn(Range<u32>) -> Result<(), DeviceError> + Sync) -> Result<u32, DeviceError> {
        if self.groups.is_empty() {
            return Ok(0);
        }
        let (count, group, total) = self.size();
        if self.is_small() {
            self.still_wanted()?;
            with_default_state(|| chunk(self.groups.clone()))?;
            return Ok(1);
        }
        let work = Work {
            spread: self,
            chunk: &chunk,
            first: if self.threads.eager { 1 } else { (picoseconds(FIRST) / group.max(1)).max(1) },
            next: AtomicU64::new(u64::from(self.groups.start)),
            is_over: AtomicBool::new(false),
            failure: Mutex::new(None),
            threads: AtomicU32::new(0),
        };
        let all = |_: Duration| false;
        let help = || {
            work.help(&Cell::new(false), all);
        };
        let counted = Cell::new(false);
        let own = || work.help(&counted, all);
        let is_large = !self.cost.has_loops && total >= 4 * picoseconds(WORTH_HELP);
        if self.threads.count > 1 && (is_large || self.threads.eager) {
            team(&help, |team| {
                team.call(self.helpers(count));
                own();
            });
        } else {
            // Alone, until it is known that help is worth calling.
            let is_long = |left: Duration| self.threads.count > 1 && left >= WORTH_HELP;
            if let Some(left) = work.help(&counted, is_long) {
                team(&help, |team| {
                    team.call(self.helpers(left));
                    own();
                });
            }
        }
        match work.failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(failure) => Err(failure),
            None => Ok(work.threads.into_inner()),
        }
    }

    /// Workgroups, and picoseconds of one and of all.
    fn size(&self) -> (u64, u64, u64) {
        let count = u64::from(self.groups.end - self.groups.start);
        let group = self.cost.group(self.workgroup_size);
        (count, group, group.saturating_mul(count))
    }

    /// Whether it is one chunk.
    fn is_small(&self) -> bool {
        let (count, _, total) = self.size();
        count <= 1 || !self.cost.has_loops && total <= picoseconds(WORTH_HELP) && !self.threads.eager
    }

    /// Whether no other thread will take part.
    pub fn is_alone(&self) -> bool {
        self.threads.count == 1 || self.is_small()
    }

    /// Helpers for so many workgroups.
    fn helpers(&self, groups: u64) -> u32 {
        u32::try_from(groups).unwrap_or(u32::MAX).min(self.threads.count) - 1
    }

    /// Whether it should go on.
    pub fn still_wanted(&self) -> Result<(), DeviceError> {
        still_wanted(self.stop)
    }
}

/// Whether an execution should go on.
pub(crate) fn still_wanted(stop: Stop<'_>) -> Result<(), DeviceError> {
    if stop.cancelled.is_some_and(|flag| flag.load(Relaxed)) {
        return Err(DeviceError::Cancelled);
    }
    match stop.deadline {
        Some(at) if Instant::now() >= at => Err(DeviceError::Timeout),
        Some(_) | None => Ok(()),
    }
}

fn picoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).saturating_mul(1000)
}

/// A dispatch that several threads work at.
struct Work<'a, F> {
    spread: &'a Spread<'a>,
    chunk: &'a F,
    /// Workgroups of the first chunk of a thread.
    first: u64,
    /// The first workgroup that nobody has taken. It goes past the end, as often as there are threads.
    next: AtomicU64,
    is_over: AtomicBool,
    failure: Mutex<Option<DeviceError>>,
    threads: AtomicU32,
}

impl<F: Fn(Range<u32>) -> Result<(), DeviceError> + Sync> Work<'_, F> {
    /// Runs chunks until there are none, or until what is left, by the time it will take a thread, satisfies `enough`; gives the
    /// workgroups that are left then. `counted` is whether this thread is counted already.
    fn help(&self, counted: &Cell<bool>, enough: impl Fn(Duration) -> bool) -> Option<u64> {
        let end = u64::from(self.spread.groups.end);
        let Threads { count, eager } = self.spread.threads;
        let mut size = self.first;
        let over_on_panic = Over(&self.is_over);
        let left = with_default_state(|| {
            loop {
                let left = end.saturating_sub(self.next.load(Relaxed));
                if left == 0 || self.is_over.load(Relaxed) {
                    return None;
                }
                let taken = size.min(left.div_ceil(2 * u64::from(count))).max(1);
                let first = self.next.fetch_add(taken, Relaxed);
                if first >= end {
                    return None;
                }
                let last = end.min(first + taken);
                if !counted.replace(true) {
                    self.threads.fetch_add(1, Relaxed);
                }
                let start = Instant::now();
                // Both fit: they are workgroups of the dispatch.
                let result = self.spread.still_wanted().and_then(|()| (self.chunk)(first as u32..last as u32));
                if let Err(failure) = result {
                    self.is_over.store(true, Relaxed);
                    self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failure);
                    return None;
                }
                let (time, done) = (start.elapsed().as_nanos().max(1), u128::from(last - first));
                let next_size = u64::try_from((CHUNK.as_nanos() * done / time).max(1)).unwrap_or(u64::MAX);
                size = if eager { 1 } else { next_size.min(GROWTH * (last - first)) };
                let left = end.saturating_sub(self.next.load(Relaxed));
                let needs = u64::try_from(time * u128::from(left) / done).unwrap_or(u64::MAX);
                if left > 0 && enough(Duration::from_nanos(needs)) {
                    return Some(left);
                }
            }
        });
        std::mem::forget(over_on_panic);
        left
    }
}

/// Lets all threads end when it is dropped.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::thread::ThreadId;

    fn spread(groups: Range<u32>, invocation: u64, has_loops: bool, threads: u32) -> Spread<'static> {
        let stop = Stop { deadline: None, cancelled: None };
        Spread {
            groups,
            workgroup_size: [1; 3],
            cost: Cost { invocation, has_loops },
            threads: Threads { count: threads, eager: false },
            stop,
        }
    }

    /// Who ran what: every workgroup once.
    fn record(spread: &Spread<'_>, time: Duration) -> (u32, HashSet<ThreadId>) {
        let ran = Mutex::new((Vec::new(), HashSet::new()));
        let threads = spread
            .run(|groups| {
                std::thread::sleep(time);
                let mut ran = ran.lock().unwrap();
                ran.0.extend(groups);
                ran.1.insert(std::thread::current().id());
                Ok(())
            })
            .unwrap();
        let (mut groups, who) = ran.into_inner().unwrap();
        groups.sort_unstable();
        assert!(groups.into_iter().eq(spread.groups.clone()));
        (threads, who)
    }

    #[test]
    fn every_workgroup_runs_once() {
        for groups in [0..0, 0..1, 3..4, 0..7, 5..1000, u32::MAX - 3000..u32::MAX] {
            for (cost, has_loops) in [(1, false), (1, true), (1_000_000, false), (u64::MAX, true)] {
                for threads in [1, 2, 7] {
                    let (told, who) = record(&spread(groups.clone(), cost, has_loops, threads), Duration::ZERO);
                    assert!(told as usize == who.len() && told <= threads, "{told} threads, {}", who.len());
                }
            }
        }
    }

    #[test]
    fn small_dispatches_stay_on_the_calling_thread_and_long_ones_do_not() {
        let own = HashSet::from([std::thread::current().id()]);
        // With loops it depends on how long the first chunks take, which on a busy machine may be anything.
        assert_eq!(record(&spread(0..100, 1000, false, 8), Duration::ZERO), (1, own.clone()));
        // Nothing of this one can be known before, and each chunk takes a millisecond.
        let (told, who) = record(&spread(0..400, 1, true, 3), Duration::from_millis(1));
        assert!(told > 1 && who.len() == told as usize && who.is_superset(&own), "{told}");
        let (told, _) = record(&spread(0..400, 1_000_000_000, false, 3), Duration::from_millis(1));
        assert!(told > 1);
    }

    #[test]
    fn a_panic_ends_it_on_all_threads() {
        for threads in [1, 3] {
            let mut work = spread(0..100_000, 1, false, threads);
            work.threads.eager = true;
            let count = AtomicU32::new(0);
            let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                work.run(|_| {
                    std::thread::sleep(Duration::from_millis(1));
                    match count.fetch_add(1, Relaxed) {
                        20 => std::panic::resume_unwind(Box::new("on purpose")),
                        _ => Ok(()),
                    }
                })
            }));
            assert!(caught.is_err());
            assert!(count.into_inner() < 1000);
        }
    }

    #[test]
    fn a_failure_ends_it_and_so_do_time_and_cancellation() {
        for threads in [1, 3] {
            let count = AtomicU32::new(0);
            let mut work = spread(0..u32::MAX, 1_000_000_000, false, threads);
            let failure = work.run(|_| match count.fetch_add(1, Relaxed) {
                5 => Err(DeviceError::Taken),
                _ => Ok(()),
            });
            assert_eq!(failure, Err(DeviceError::Taken));
            work.stop.deadline = Some(Instant::now() + Duration::from_millis(20));
            let slow = |_| {
                std::thread::sleep(Duration::from_millis(5));
                Ok(())
            };
            assert_eq!(work.run(slow), Err(DeviceError::Timeout));
            let cancelled = AtomicBool::new(false);
            let stop = Stop { deadline: None, cancelled: Some(&cancelled) };
            let work = Spread { stop, ..spread(0..u32::MAX, 1_000_000_000, false, threads) };
            let counted = AtomicU32::new(0);
            let cancel = |_| {
                cancelled.store(counted.fetch_add(1, Relaxed) == 9 || cancelled.load(Relaxed), Relaxed);
                Ok(())
            };
            assert_eq!(work.run(cancel), Err(DeviceError::Cancelled));
        }
    }
}
