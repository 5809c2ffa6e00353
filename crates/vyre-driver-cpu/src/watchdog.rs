//! A thread that keeps time for machine code, which itself looks at nothing but a flag.
//!
//! A dispatch with a deadline has a flag of its own; the watchdog sets it when the time has come, or when the dispatch was cancelled. The
//! thread is started when it is first needed. Awake, it looks at everything once in a tick, so that a dispatch has nobody to wake; it sleeps
//! when there was nothing to watch for a while.
//!
//! **Unsafe code.** What is watched is on the stack of whoever waits for it; [`watch`] takes it off the list before it returns, and the
//! thread touches it while the list is locked only.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How late a deadline or a cancellation is seen, about.
const TICK: Duration = Duration::from_millis(2);

/// Ticks without anything to watch before it sleeps.
const PATIENCE: u32 = 50;

static WATCHDOG: Watchdog =
    Watchdog { list: Mutex::new(List { watched: Vec::new(), is_there: false, sleeps: false }), changed: Condvar::new() };

struct Watchdog {
    list: Mutex<List>,
    changed: Condvar,
}

struct List {
    watched: Vec<Entry>,
    /// Whether the thread was started.
    is_there: bool,
    /// Whether it waits to be woken.
    sleeps: bool,
}

/// A pointer to something on the stack of whoever waits for it.
struct Entry(NonNull<Watched<'static>>);

// SAFETY: what it points to can be shared between threads, and is there while the entry is on the list.
unsafe impl Send for Entry {}

/// A dispatch with a deadline.
struct Watched<'a> {
    deadline: Instant,
    cancelled: Option<&'a AtomicBool>,
    stop: AtomicBool,
}

impl Watched<'_> {
    fn look(&self, now: Instant) {
        if now >= self.deadline || self.cancelled.is_some_and(|flag| flag.load(Relaxed)) {
            self.stop.store(true, Relaxed);
        }
    }
}

/// Calls `body` with a flag that is set when the deadline has come or `cancelled` is set.
pub(crate) fn watch<R>(deadline: Instant, cancelled: Option<&AtomicBool>, body: impl FnOnce(&AtomicBool) -> R) -> R {
    let watched = Watched { deadline, cancelled, stop: AtomicBool::new(false) };
    let entry = NonNull::from(&watched).cast();
    let _off_the_list = OffTheList(entry);
    let mut list = WATCHDOG.lock();
    list.watched.push(Entry(entry));
    if !list.is_there {
        // Without the thread, deadlines are looked at between workgroups all the same.
        list.is_there = std::thread::Builder::new().name("vyre-cpu-watchdog".into()).spawn(run).is_ok();
    }
    if list.sleeps {
        list.sleeps = false;
        WATCHDOG.changed.notify_one();
    }
    drop(list);
    body(&watched.stop)
}

/// Takes something off the list, on return and on panic.
struct OffTheList(NonNull<Watched<'static>>);

impl Drop for OffTheList {
    fn drop(&mut self) {
        WATCHDOG.lock().watched.retain(|entry| entry.0 != self.0);
    }
}

impl Watchdog {
    fn lock(&self) -> MutexGuard<'_, List> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn run() {
    let mut list = WATCHDOG.lock();
    let mut idle = 0;
    loop {
        let now = Instant::now();
        for entry in &list.watched {
            // SAFETY: it is on the list, so it is there; see `watch`.
            unsafe { entry.0.as_ref() }.look(now);
        }
        idle = if list.watched.is_empty() { idle + 1 } else { 0 };
        list.sleeps = idle > PATIENCE;
        while list.sleeps {
            list = WATCHDOG.changed.wait(list).unwrap_or_else(PoisonError::into_inner);
        }
        list = WATCHDOG.changed.wait_timeout(list, TICK).unwrap_or_else(PoisonError::into_inner).0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn until_set(flag: &AtomicBool) {
        let start = Instant::now();
        while !flag.load(Relaxed) {
            assert!(start.elapsed() < Duration::from_secs(60), "it is never set");
            std::thread::yield_now();
        }
    }

    #[test]
    fn the_flag_is_set_when_the_time_has_come_and_not_before() {
        // At once, and after it has gone to sleep.
        for (limit, pause) in [(0, 0), (20, 0), (5, 2 * PATIENCE), (5, 0)] {
            std::thread::sleep(pause * TICK);
            let deadline = Instant::now() + Duration::from_millis(limit);
            watch(deadline, None, until_set);
            assert!(Instant::now() >= deadline);
        }
    }

    #[test]
    fn a_cancellation_is_mirrored_and_others_are_left_alone() {
        let later = Instant::now() + Duration::from_secs(3600);
        let cancelled = AtomicBool::new(false);
        watch(later, None, |other| {
            watch(later, Some(&cancelled), |flag| {
                assert!(!flag.load(Relaxed));
                cancelled.store(true, Relaxed);
                until_set(flag);
            });
            assert!(!other.load(Relaxed));
        });
        assert!(WATCHDOG.lock().watched.iter().all(|entry| {
            // SAFETY: it is on the list, which is locked.
            unsafe { entry.0.as_ref() }.deadline != later
        }));
    }
}
