//! Pipelines in memory: one build per key however many threads ask, and the least recently used give way.
//!
//! A key is absent, being built, or kept. The thread that finds it absent builds it without holding the lock; threads that come
//! meanwhile wait for that build and get what it gives, be it a pipeline or an error. Errors are not kept. If the build panics,
//! one of the waiting threads builds instead, and the panic goes to whoever began it. A build may ask for other keys; one that would
//! wait for itself, directly or through builds of other threads, gets an error instead.
//!
//! A hit takes one lock, one lookup and one comparison of keys; a cryptographic hash of the key would cost ten times that. Making
//! room sorts the entries by their last use, which is small against the compilation that made it necessary.

use super::{PipelineCacheSnapshot, PipelineKey};
use crate::backend::BackendError;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

// The tests of this file run it under schedules of shuttle's; `tests/cache.rs` runs it on threads.
#[cfg(test)]
use shuttle::{
    sync::{Condvar, Mutex, MutexGuard},
    thread::{self, ThreadId},
};
#[cfg(not(test))]
use std::{
    sync::{Condvar, Mutex, MutexGuard},
    thread::{self, ThreadId},
};

/// The compiled pipelines of one instance of a backend. Keys are compared whole.
pub struct PipelineCache<T: ?Sized> {
    limit: u64,
    state: Mutex<State<T>>,
}

struct State<T: ?Sized> {
    entries: HashMap<PipelineKey, Entry<T>>,
    /// Of all entries that are kept; never above the limit.
    bytes: u64,
    /// Counts uses, to tell which came first.
    clock: u64,
    seen: PipelineCacheSnapshot,
    /// By thread: the build that it waits for, until that has ended.
    waiting: HashMap<ThreadId, Arc<Build<T>>>,
}

enum Entry<T: ?Sized> {
    Kept { pipeline: Arc<T>, bytes: u64, last_use: u64 },
    Building(Arc<Build<T>>),
}

/// A build that has begun.
struct Build<T: ?Sized> {
    builder: ThreadId,
    outcome: Mutex<Outcome<T>>,
    ended: Condvar,
}

enum Outcome<T: ?Sized> {
    Running,
    Ended(Result<Arc<T>, BackendError>),
    /// It panicked.
    Abandoned,
}

/// What a caller does about the state it finds its key in.
enum Turn<T: ?Sized> {
    Take(Arc<T>),
    Wait(Arc<Build<T>>),
    Begin(Arc<Build<T>>),
    /// It would wait for itself.
    Refuse,
}

impl<T: ?Sized> PipelineCache<T> {
    /// A cache that keeps at most so many bytes.
    #[must_use]
    pub fn new(limit: u64) -> Self {
        let seen = PipelineCacheSnapshot::default();
        let state = State { entries: HashMap::new(), bytes: 0, clock: 0, seen, waiting: HashMap::new() };
        PipelineCache { limit, state: Mutex::new(state) }
    }

    /// The pipeline of a key, which `build` makes if it is not here, with the bytes it takes. One that takes more than the limit is
    /// handed out and not kept.
    ///
    /// # Errors
    ///
    /// What `build` gives, here or in the thread that was first; the next call builds again. Also if `build` needs the key that it is
    /// building, itself or through keys that other threads are building.
    pub fn get_or_build(
        &self,
        key: &PipelineKey,
        build: impl FnOnce() -> Result<(Arc<T>, u64), BackendError>,
    ) -> Result<Arc<T>, BackendError> {
        loop {
            match self.turn(key) {
                Turn::Take(pipeline) => return Ok(pipeline),
                Turn::Begin(begun) => {
                    let mut ending = Ending { cache: self, key, build: begun, bytes: 0, outcome: Outcome::Abandoned };
                    let result = build().map(|(pipeline, bytes)| {
                        ending.bytes = bytes;
                        pipeline
                    });
                    ending.outcome = Outcome::Ended(result.clone());
                    return result;
                }
                Turn::Refuse => {
                    return Err(BackendError::new(
                        "building a pipeline asks the cache for that same pipeline. Fix: build it without asking the cache",
                    ));
                }
                Turn::Wait(begun) => {
                    if let Some(result) = begun.wait() {
                        self.state().seen.hits += u64::from(result.is_ok());
                        return result;
                    }
                }
            }
        }
    }

    /// How often a pipeline was found, or was being built already, and how often it had to be built.
    #[must_use]
    pub fn snapshot(&self) -> PipelineCacheSnapshot {
        self.state().seen
    }

    /// The bytes of the pipelines that are kept.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.state().bytes
    }

    /// Forgets every pipeline, and those that are being built as soon as they are: for a device that was opened again.
    pub fn clear(&self) {
        let mut state = self.state();
        state.bytes = 0;
        let forgotten = std::mem::take(&mut state.entries);
        drop(state);
        drop(forgotten);
    }

    fn turn(&self, key: &PipelineKey) -> Turn<T> {
        let mut state = self.state();
        let State { entries, clock, seen, waiting, .. } = &mut *state;
        match entries.get_mut(key) {
            Some(Entry::Kept { pipeline, last_use, .. }) => {
                seen.hits += 1;
                *clock += 1;
                *last_use = *clock;
                Turn::Take(pipeline.clone())
            }
            Some(Entry::Building(build)) => {
                let me = thread::current().id();
                // Who waits was let in here, so that no chain goes round.
                let mut chain = std::iter::successors(Some(&*build), |build| waiting.get(&build.builder));
                if chain.any(|build| build.builder == me) {
                    return Turn::Refuse;
                }
                let build = build.clone();
                waiting.insert(me, build.clone());
                Turn::Wait(build)
            }
            None => {
                seen.misses += 1;
                let builder = thread::current().id();
                let build = Arc::new(Build { builder, outcome: Mutex::new(Outcome::Running), ended: Condvar::new() });
                entries.insert(key.clone(), Entry::Building(build.clone()));
                Turn::Begin(build)
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        // No code of others runs under this lock, so that nothing is left half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: ?Sized> State<T> {
    /// Keeps a pipeline that is not larger than the limit. Gives those that it takes the place of, for the caller to drop when the
    /// lock is free again: they are others' code.
    fn keep(&mut self, key: &PipelineKey, pipeline: Arc<T>, bytes: u64, limit: u64) -> Vec<Entry<T>> {
        let mut evicted = Vec::new();
        let room = limit - bytes;
        if self.bytes > room {
            let mut by_use: Vec<(u64, u64)> = self.entries.values().filter_map(Entry::use_and_bytes).collect();
            by_use.sort_unstable();
            let mut newest_evicted = 0;
            for (last_use, bytes) in by_use {
                if self.bytes <= room {
                    break;
                }
                self.bytes -= bytes;
                newest_evicted = last_use;
            }
            let is_old = |entry: &Entry<T>| entry.use_and_bytes().is_some_and(|(last_use, _)| last_use <= newest_evicted);
            evicted = self.entries.extract_if(|_, entry| is_old(entry)).map(|(_, entry)| entry).collect();
        }
        self.bytes += bytes;
        self.clock += 1;
        self.entries.insert(key.clone(), Entry::Kept { pipeline, bytes, last_use: self.clock });
        evicted
    }
}

impl<T: ?Sized> Entry<T> {
    fn use_and_bytes(&self) -> Option<(u64, u64)> {
        match self {
            Entry::Kept { bytes, last_use, .. } => Some((*last_use, *bytes)),
            Entry::Building(_) => None,
        }
    }
}

impl<T: ?Sized> Build<T> {
    /// Waits until it has ended; `None` if it was abandoned.
    fn wait(&self) -> Option<Result<Arc<T>, BackendError>> {
        let mut outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match &*outcome {
                Outcome::Running => outcome = self.ended.wait(outcome).unwrap_or_else(PoisonError::into_inner),
                Outcome::Ended(result) => return Some(result.clone()),
                Outcome::Abandoned => return None,
            }
        }
    }
}

/// Ends a build, also when it panics.
struct Ending<'a, T: ?Sized> {
    cache: &'a PipelineCache<T>,
    key: &'a PipelineKey,
    build: Arc<Build<T>>,
    bytes: u64,
    outcome: Outcome<T>,
}

impl<T: ?Sized> Drop for Ending<'_, T> {
    fn drop(&mut self) {
        // The table first: whoever is woken to build again must not find this build there.
        let mut state = self.cache.state();
        let mut evicted = Vec::new();
        state.waiting.retain(|_, build| !Arc::ptr_eq(build, &self.build));
        // It is another's, or none, if the cache was cleared meanwhile.
        if matches!(state.entries.get(self.key), Some(Entry::Building(build)) if Arc::ptr_eq(build, &self.build)) {
            state.entries.remove(self.key);
            match &self.outcome {
                Outcome::Ended(Ok(pipeline)) if self.bytes <= self.cache.limit => {
                    evicted = state.keep(self.key, pipeline.clone(), self.bytes, self.cache.limit);
                }
                Outcome::Ended(Ok(_) | Err(_)) | Outcome::Running | Outcome::Abandoned => {}
            }
        }
        drop(state);
        let outcome = std::mem::replace(&mut self.outcome, Outcome::Abandoned);
        *self.build.outcome.lock().unwrap_or_else(PoisonError::into_inner) = outcome;
        self.build.ended.notify_all();
        drop(evicted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::specialization::SpecMap;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    fn key(n: u8) -> PipelineKey {
        PipelineKey {
            program: [n; 32],
            backend: "b".into(),
            version: "1".into(),
            device: "d".into(),
            specialization: SpecMap::new(),
            workgroup_override: None,
            ulp_budget: None,
            profile: None,
        }
    }

    /// Runs `one` in so many threads under many schedules; then `check`.
    fn model<S: Send + Sync + 'static>(schedules: usize, threads: usize, start: fn() -> S, one: fn(&S, usize), check: fn(&S)) {
        let run = move || {
            let shared = Arc::new(start());
            let started: Vec<_> = (0..threads)
                .map(|n| {
                    let shared = shared.clone();
                    thread::spawn(move || one(&shared, n))
                })
                .collect();
            started.into_iter().for_each(|thread| thread.join().unwrap());
            check(&shared);
        };
        shuttle::check_random(run, schedules);
        shuttle::check_pct(run, schedules, 3);
    }

    /// A cache, and by key how often it was built.
    struct Counted {
        cache: PipelineCache<u8>,
        builds: [AtomicU64; 3],
    }

    fn counted(limit: u64) -> Counted {
        Counted { cache: PipelineCache::new(limit), builds: Default::default() }
    }

    impl Counted {
        fn get(&self, n: u8, bytes: u64) {
            let given = self.cache.get_or_build(&key(n), || {
                self.builds[usize::from(n)].fetch_add(1, Relaxed);
                thread::yield_now();
                Ok((Arc::new(n), bytes))
            });
            assert_eq!(given.as_deref(), Ok(&n));
        }

        fn built(&self) -> [u64; 3] {
            self.builds.each_ref().map(|count| count.load(Relaxed))
        }
    }

    #[test]
    fn every_schedule_builds_a_key_once() {
        model(
            2_000,
            3,
            || counted(10),
            |shared, n| {
                for step in 0..3 {
                    shared.get(((n + step) % 3) as u8, 1);
                }
            },
            |shared| {
                assert_eq!(shared.built(), [1, 1, 1]);
                assert_eq!(shared.cache.snapshot(), PipelineCacheSnapshot { hits: 6, misses: 3 });
                assert_eq!(shared.cache.bytes(), 3);
            },
        );
    }

    #[test]
    fn every_schedule_keeps_the_bound_and_gives_the_right_pipeline() {
        model(
            2_000,
            3,
            || counted(2),
            |shared, n| {
                for step in 0..3 {
                    shared.get(((n + step) % 3) as u8, 1);
                    assert!(shared.cache.bytes() <= 2);
                }
                if n == 0 {
                    shared.cache.clear();
                }
            },
            |shared| {
                let seen = shared.cache.snapshot();
                assert_eq!(seen.misses, shared.built().iter().sum::<u64>());
                assert_eq!(seen.hits + seen.misses, 9);
                let kept = shared.cache.state().entries.len() as u64;
                assert_eq!(shared.cache.bytes(), kept, "every entry takes one byte");
            },
        );
    }

    #[test]
    fn under_every_schedule_a_failure_reaches_those_who_wait_and_is_not_kept() {
        model(
            2_000,
            3,
            || counted(10),
            |shared, _| {
                let failed = shared.cache.get_or_build(&key(0), || {
                    shared.builds[0].fetch_add(1, Relaxed);
                    thread::yield_now();
                    Err(BackendError::OutOfMemory { requested: 7 })
                });
                assert_eq!(failed, Err(BackendError::OutOfMemory { requested: 7 }));
            },
            |shared| {
                assert!(shared.cache.state().entries.is_empty());
                assert_eq!(shared.cache.snapshot(), PipelineCacheSnapshot { hits: 0, misses: shared.built()[0] });
                shared.get(0, 1);
            },
        );
    }

    #[test]
    fn under_every_schedule_builds_that_need_each_other_end_and_others_are_not_disturbed() {
        // 0 needs 1, 1 needs 2 and 2 needs 0; each thread begins elsewhere, and none may wait for ever.
        fn chain(shared: &Counted, n: u8, rounds: u8) -> Result<Arc<u8>, BackendError> {
            shared.cache.get_or_build(&key(n), || {
                shared.builds[usize::from(n)].fetch_add(1, Relaxed);
                thread::yield_now();
                if rounds > 0 {
                    chain(shared, (n + 1) % 3, rounds - 1)?;
                }
                Ok((Arc::new(n), 1))
            })
        }
        model(
            2_000,
            3,
            || counted(10),
            |shared, n| {
                let error = chain(shared, n as u8, 3).unwrap_err();
                assert!(error.message().contains("asks the cache for that same pipeline"), "{error}");
            },
            |shared| {
                assert!(shared.cache.state().entries.is_empty() && shared.cache.state().waiting.is_empty());
                shared.get(0, 1);
            },
        );
        // Chains that do not go round always end well, whoever else is at them.
        model(
            2_000,
            3,
            || counted(10),
            |shared, n| assert!(chain(shared, n as u8, 2 - n as u8).is_ok()),
            |shared| {
                assert_eq!(shared.built(), [1, 1, 1]);
                assert!(shared.cache.state().waiting.is_empty());
            },
        );
    }

    #[test]
    fn under_every_schedule_a_panic_is_the_builders_alone_and_another_builds() {
        // shuttle's hook would print every one of them with its schedule.
        model(
            1_000,
            3,
            || counted(10),
            |shared, n| {
                let given = catch_unwind(AssertUnwindSafe(|| {
                    shared.cache.get_or_build(&key(0), || {
                        shared.builds[n].fetch_add(1, Relaxed);
                        thread::yield_now();
                        if n == 0 {
                            std::panic::resume_unwind(Box::new("injected"));
                        }
                        Ok((Arc::new(7), 1))
                    })
                }));
                match given {
                    Ok(given) => assert_eq!(given.as_deref(), Ok(&7)),
                    Err(_) => assert_eq!(n, 0),
                }
            },
            |shared| {
                let built = shared.built();
                assert_eq!(built[1] + built[2], 1, "one of those that do not panic builds: {built:?}");
                assert_eq!(shared.cache.bytes(), 1);
            },
        );
    }
}
