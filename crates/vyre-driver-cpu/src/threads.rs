//! Threads that help: one pool for all devices of the process, started when it is first needed and kept.
//!
//! Whoever has work to share does it on the own thread and calls helpers to the same task; those that come take parts of it as everybody
//! in the team does, and whoever called waits only for helpers that have come. So nothing waits for a thread that is busy: dispatches at
//! the same time share what threads there are, and a dispatch from inside another pool, or after a fork that has left the threads behind, is
//! done by its caller alone if nobody comes.
//!
//! **Unsafe code.** A team is on the stack of its caller, and helpers reach it through a pointer. Everything in it but the task is touched
//! under the lock of the pool only; `inside` counts helpers that are in the task, and [`team`] does not return, not even by a panic,
//! before the team is off the list and nobody is inside.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

static POOL: Pool = Pool { state: Mutex::new(PoolState { open: Vec::new(), idle: 0, threads: 0 }), called: Condvar::new() };

struct Pool {
    state: Mutex<PoolState>,
    /// Wakes threads that have nothing to do.
    called: Condvar,
}

struct PoolState {
    /// Teams that want more helpers.
    open: Vec<Open>,
    /// Threads that wait.
    idle: u32,
    /// Threads that there are.
    threads: u32,
}

/// A pointer to a team on the stack of its caller.
#[derive(Clone, Copy, PartialEq)]
struct Open(NonNull<Shared>);

// SAFETY: what it points to is there while it is on the list or somebody is inside, and is touched under the lock of the pool.
unsafe impl Send for Open {}

/// What helpers see of a team.
struct Shared {
    task: *const (dyn Fn() + Sync),
    /// Helpers that may still come.
    wanted: u32,
    /// Helpers that are in the task.
    inside: u32,
    /// What a helper panicked with.
    panic: Option<Box<dyn Any + Send>>,
    /// Wakes the caller when nobody is inside any more.
    left: Condvar,
}

/// The helpers of a task, for whoever does it.
pub(crate) struct Team {
    shared: NonNull<Shared>,
}

/// Calls `own`, which can call helpers that run `task`. Returns when all who came have left it, and panics if one of them did.
pub(crate) fn team<R>(task: &(dyn Fn() + Sync), own: impl FnOnce(&Team) -> R) -> R {
    // SAFETY: only the lifetime is another. Helpers use the task while they are inside, and this returns when nobody is.
    let task: &'static (dyn Fn() + Sync) = unsafe { std::mem::transmute(task) };
    let mut shared = Shared { task, wanted: 0, inside: 0, panic: None, left: Condvar::new() };
    let team = Team { shared: NonNull::from(&mut shared) };
    let result = catch_unwind(AssertUnwindSafe(|| own(&team)));
    let panic = team.dismiss();
    match (result, panic) {
        (Ok(result), None) => result,
        (Err(panic), _) | (_, Some(panic)) => resume_unwind(panic),
    }
}

impl Team {
    /// Lets up to so many helpers come, beside those that were called before.
    pub fn call(&self, helpers: u32) {
        if helpers == 0 {
            return;
        }
        let mut pool = POOL.lock();
        // SAFETY: the team is there, and the pool is locked.
        unsafe { (*self.shared.as_ptr()).wanted += helpers };
        pool.open.push(Open(self.shared));
        // Those who are idle are enough, or there are to be as many threads as somebody wanted at a time.
        let missing = helpers.saturating_sub(pool.idle).min(helpers.saturating_sub(pool.threads));
        for _ in 0..missing {
            let name = format!("vyre-cpu-{}", pool.threads);
            // Without a thread, those that there are do it.
            match std::thread::Builder::new().name(name).spawn(help) {
                Ok(_) => pool.threads += 1,
                Err(_) => break,
            }
        }
        drop(pool);
        if helpers == 1 {
            POOL.called.notify_one();
        } else {
            POOL.called.notify_all();
        }
    }

    /// Lets nobody come any more and waits for those who are inside; gives what one of them panicked with.
    fn dismiss(&self) -> Option<Box<dyn Any + Send>> {
        let mut pool = POOL.lock();
        pool.open.retain(|open| open.0 != self.shared);
        loop {
            // SAFETY: the team is there, the pool is locked, and the reference ends before the lock does; waiting on `left`, which is
            // shared with helpers that notify it, goes through a pointer of its own.
            let (inside, left) = unsafe { ((*self.shared.as_ptr()).inside, &(*self.shared.as_ptr()).left) };
            if inside == 0 {
                // SAFETY: as above, and nobody else has the team any more.
                return unsafe { (*self.shared.as_ptr()).panic.take() };
            }
            pool = left.wait(pool).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Pool {
    fn lock(&self) -> MutexGuard<'_, PoolState> {
        // Nothing panics while it is locked but what has no memory for a name.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a thread of the pool does.
fn help() {
    let mut pool = POOL.lock();
    loop {
        let Some(Open(team)) = pool.open.last().copied() else {
            pool.idle += 1;
            pool = POOL.called.wait(pool).unwrap_or_else(PoisonError::into_inner);
            pool.idle -= 1;
            continue;
        };
        // SAFETY: the team is on the list, so it is there, and the pool is locked.
        let task = unsafe {
            let shared = team.as_ptr();
            (*shared).wanted -= 1;
            (*shared).inside += 1;
            if (*shared).wanted == 0 {
                pool.open.retain(|open| open.0 != team);
            }
            (*shared).task
        };
        drop(pool);
        // SAFETY: this thread is inside, so that the caller waits for it.
        let panic = catch_unwind(AssertUnwindSafe(|| unsafe { (*task)() })).err();
        pool = POOL.lock();
        // SAFETY: this thread is inside until here, and the pool is locked, so that the caller goes on only afterwards.
        unsafe {
            let shared = team.as_ptr();
            (*shared).inside -= 1;
            if panic.is_some() {
                (*shared).panic = panic;
            }
            if (*shared).inside == 0 {
                (*shared).left.notify_all();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
    use std::sync::{Barrier, mpsc};

    /// Everybody who comes waits for the others, so that this ends only if all have come; one at a time, as there are not more threads
    /// than one of them wants.
    fn meet(helpers: u32) {
        static MEETING: Mutex<()> = Mutex::new(());
        let _alone = MEETING.lock().unwrap_or_else(PoisonError::into_inner);
        let barrier = Barrier::new(helpers as usize + 1);
        let count = AtomicU32::new(0);
        team(
            &|| {
                count.fetch_add(1, Relaxed);
                barrier.wait();
            },
            |team| {
                team.call(helpers);
                barrier.wait();
            },
        );
        assert_eq!(count.load(Relaxed), helpers);
    }

    #[test]
    fn helpers_come_again_and_again_and_to_several_teams_at_once() {
        for helpers in [1, 3, 2] {
            meet(helpers);
        }
        let many = || (0..50).for_each(|_| team(&|| (), |team| team.call(2)));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(many);
            }
        });
        meet(3);
    }

    #[test]
    fn a_panic_is_the_callers_and_kills_nobody() {
        for _ in 0..3 {
            let (send, came) = mpsc::channel();
            let send = Mutex::new(send);
            let caught = catch_unwind(AssertUnwindSafe(|| {
                team(
                    &|| {
                        send.lock().unwrap().send(()).unwrap();
                        resume_unwind(Box::new("on purpose"));
                    },
                    |team| {
                        team.call(1);
                        came.recv().unwrap();
                    },
                );
            }));
            assert_eq!(caught.unwrap_err().downcast_ref::<&str>(), Some(&"on purpose"));
            // One of the caller's own waits for helpers first.
            let own = catch_unwind(AssertUnwindSafe(|| {
                team(&|| (), |team| {
                    team.call(2);
                    resume_unwind(Box::new("own"));
                })
            }));
            assert!(own.is_err());
        }
        meet(2);
    }

    #[test]
    fn teams_inside_teams_end() {
        let inner = || team(&|| (), |team| team.call(2));
        team(&inner, |team| {
            team.call(3);
            inner();
        });
    }
}
