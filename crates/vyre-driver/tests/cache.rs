//! The memory cache on real threads, its bound, and what makes two keys the same. Its protocol is modelled beside it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Barrier};
use std::time::Duration;
use vyre_driver::BackendError;
use vyre_driver::pipeline::{PipelineCache, PipelineCacheSnapshot, PipelineKey};
use vyre_driver::specialization::{SpecMap, SpecValue};

fn key(n: usize) -> PipelineKey {
    let mut program = [0; 32];
    program[..8].copy_from_slice(&(n as u64).to_le_bytes());
    PipelineKey {
        program,
        backend: "test".into(),
        version: "1".into(),
        device: "device".into(),
        specialization: SpecMap::new(),
        workgroup_override: None,
        ulp_budget: None,
        profile: None,
    }
}

fn get(cache: &PipelineCache<usize>, n: usize, bytes: u64) -> Arc<usize> {
    cache.get_or_build(&key(n), || Ok((Arc::new(n), bytes))).unwrap()
}

fn is_kept(cache: &PipelineCache<usize>, n: usize) -> bool {
    let built = AtomicUsize::new(0);
    let refused = cache.get_or_build(&key(n), || {
        built.fetch_add(1, Relaxed);
        Err(BackendError::Poisoned)
    });
    assert_eq!(refused.is_err(), built.load(Relaxed) == 1);
    refused.is_ok()
}

#[test]
fn eight_threads_build_each_of_500_keys_once() {
    const THREADS: usize = 8;
    const KEYS: usize = 500;
    let cache = PipelineCache::new(u64::MAX);
    let builds: Vec<AtomicUsize> = (0..KEYS).map(|_| AtomicUsize::new(0)).collect();
    let start = Barrier::new(THREADS);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (cache, builds, start) = (&cache, &builds, &start);
            scope.spawn(move || {
                start.wait();
                for step in 0..KEYS {
                    // Half of the threads go the same way, so that they meet; the others come from elsewhere.
                    let n = if thread % 2 == 0 { step } else { (step * 7 + thread) % KEYS };
                    let given = cache.get_or_build(&key(n), || {
                        builds[n].fetch_add(1, Relaxed);
                        std::thread::sleep(Duration::from_micros(20));
                        Ok((Arc::new(n), 1))
                    });
                    assert_eq!(given.as_deref(), Ok(&n));
                }
            });
        }
    });
    for (n, count) in builds.iter().enumerate() {
        assert_eq!(count.load(Relaxed), 1, "key {n}");
        assert!(is_kept(&cache, n));
    }
    let calls = (THREADS * KEYS + KEYS) as u64;
    assert_eq!(cache.snapshot(), PipelineCacheSnapshot { hits: calls - KEYS as u64, misses: KEYS as u64 });
}

#[test]
fn eight_threads_never_get_another_key_and_never_pass_the_bound_under_eviction() {
    let cache = PipelineCache::new(10);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let cache = &cache;
            scope.spawn(move || {
                for step in 0..3_000 {
                    let n = (step * (thread + 1)) % 23;
                    assert_eq!(*get(cache, n, 1 + n as u64 % 4), n);
                    assert!(cache.bytes() <= 10);
                }
            });
        }
    });
    assert!(cache.bytes() > 6, "no more was evicted than the largest needs");
}

#[test]
fn the_least_recently_used_gives_way() {
    let cache = PipelineCache::new(3);
    for n in [0, 1, 2] {
        get(&cache, n, 1);
    }
    get(&cache, 0, 1);
    get(&cache, 3, 1);
    assert_eq!([0, 1, 2, 3].map(|n| is_kept(&cache, n)), [true, false, true, true]);
    // Asking has used 0, 2 and 3, in this order. Two bytes need two places.
    get(&cache, 4, 2);
    assert_eq!([0, 2, 3, 4].map(|n| is_kept(&cache, n)), [false, false, true, true]);
    assert_eq!(cache.bytes(), 3);
}

#[test]
fn the_bound_is_reached_and_not_passed() {
    let cache = PipelineCache::new(100);
    get(&cache, 0, 60);
    get(&cache, 1, 40);
    assert!(is_kept(&cache, 0) && is_kept(&cache, 1));
    get(&cache, 2, 1);
    assert_eq!([0, 1, 2].map(|n| is_kept(&cache, n)), [false, true, true]);
    get(&cache, 3, 100);
    assert_eq!([1, 2, 3].map(|n| is_kept(&cache, n)), [false, false, true]);
    assert_eq!(cache.bytes(), 100);
}

#[test]
fn what_is_larger_than_the_bound_is_handed_out_and_not_kept() {
    let cache = PipelineCache::new(100);
    get(&cache, 0, 100);
    for bytes in [101, u64::MAX] {
        assert_eq!(*get(&cache, 1, bytes), 1);
        assert!(!is_kept(&cache, 1));
    }
    assert!(is_kept(&cache, 0), "nothing gave way to what is not kept");
}

#[test]
fn a_failure_is_not_kept() {
    let cache = PipelineCache::new(10);
    let failed = cache.get_or_build(&key(0), || Err(BackendError::OutOfMemory { requested: 5 }));
    assert_eq!(failed, Err(BackendError::OutOfMemory { requested: 5 }));
    assert_eq!(*get(&cache, 0, 1), 0);
    assert_eq!(cache.snapshot(), PipelineCacheSnapshot { hits: 0, misses: 2 });
}

#[test]
fn a_panicking_build_poisons_nothing_and_a_waiting_thread_builds_instead() {
    let cache = PipelineCache::new(10);
    let building = Barrier::new(2);
    std::thread::scope(|scope| {
        let panicking = scope.spawn(|| {
            catch_unwind(AssertUnwindSafe(|| {
                cache.get_or_build(&key(0), || {
                    building.wait();
                    std::thread::sleep(Duration::from_millis(20));
                    panic!("the compiler's own bug");
                })
            }))
        });
        building.wait();
        assert_eq!(*get(&cache, 0, 1), 0);
        assert!(panicking.join().unwrap().is_err(), "the panic reaches the thread that built");
    });
    assert!(is_kept(&cache, 0));
}

#[test]
fn a_build_that_asks_for_itself_is_an_error_and_not_a_deadlock() {
    let cache: PipelineCache<usize> = PipelineCache::new(10);
    let error = cache
        .get_or_build(&key(0), || cache.get_or_build(&key(0), || Ok((Arc::new(0), 1))).map(|pipeline| (pipeline, 1)))
        .unwrap_err();
    assert!(error.message().contains("asks the cache for that same pipeline"), "{error}");
    assert_eq!(*get(&cache, 0, 1), 0);
}

#[test]
fn a_cache_without_room_builds_and_hands_out() {
    let cache = PipelineCache::new(0);
    for _ in 0..2 {
        assert_eq!(*get(&cache, 0, 1), 0);
    }
    assert_eq!(cache.snapshot(), PipelineCacheSnapshot { hits: 0, misses: 2 });
    assert!(!is_kept(&cache, 0));
    get(&cache, 1, 0);
    assert!(is_kept(&cache, 1), "what takes nothing has room");
    assert_eq!(cache.bytes(), 0);
}

#[test]
fn a_build_may_ask_for_other_keys_and_a_pipeline_may_ask_the_cache_when_it_goes() {
    /// Asks the cache it was in when it is dropped.
    struct Asking(std::sync::Weak<PipelineCache<Asking>>);
    impl Drop for Asking {
        fn drop(&mut self) {
            if let Some(cache) = self.0.upgrade() {
                assert!(cache.bytes() <= 1);
            }
        }
    }
    let cache: Arc<PipelineCache<Asking>> = Arc::new(PipelineCache::new(1));
    let asking = |bytes| Ok((Arc::new(Asking(Arc::downgrade(&cache))), bytes));
    for n in 0..3 {
        cache
            .get_or_build(&key(2 * n), || {
                cache.get_or_build(&key(2 * n + 1), || asking(1))?;
                asking(1)
            })
            .unwrap();
    }
    cache.clear();
    assert_eq!(cache.bytes(), 0);
}

#[test]
fn a_pipeline_that_was_being_built_when_the_cache_was_cleared_is_not_kept() {
    let cache = PipelineCache::new(10);
    get(&cache, 0, 1);
    let given = cache.get_or_build(&key(1), || {
        cache.clear();
        Ok((Arc::new(1), 1))
    });
    assert_eq!(given.as_deref(), Ok(&1));
    assert_eq!(cache.bytes(), 0);
    assert_eq!([0, 1].map(|n| is_kept(&cache, n)), [false, false]);
}

#[test]
fn keys_that_differ_anywhere_are_different_in_the_table_and_on_disk() {
    let spec = |entries: &[(&str, SpecValue)]| -> SpecMap {
        entries.iter().map(|(name, value)| (name.to_string(), value.clone())).collect()
    };
    let f = |bits: u32| SpecValue::F32(f32::from_bits(bits));
    let keys = [
        key(0),
        key(1),
        PipelineKey { backend: "tes".into(), ..key(0) },
        PipelineKey { version: "2".into(), ..key(0) },
        PipelineKey { backend: "test1".into(), version: "".into(), ..key(0) },
        PipelineKey { version: "1d".into(), device: "evice".into(), ..key(0) },
        PipelineKey { device: "other".into(), ..key(0) },
        PipelineKey { profile: Some(String::new()), ..key(0) },
        PipelineKey { profile: Some("fast".into()), ..key(0) },
        PipelineKey { ulp_budget: Some(0), ..key(0) },
        PipelineKey { ulp_budget: Some(1), ..key(0) },
        PipelineKey { workgroup_override: Some([0, 0, 0]), ..key(0) },
        PipelineKey { workgroup_override: Some([1, 0, 0]), ..key(0) },
        PipelineKey { specialization: spec(&[("a", SpecValue::U32(1))]), ..key(0) },
        PipelineKey { specialization: spec(&[("a", SpecValue::I32(1))]), ..key(0) },
        PipelineKey { specialization: spec(&[("a", SpecValue::Bool(true))]), ..key(0) },
        PipelineKey { specialization: spec(&[("b", SpecValue::U32(1))]), ..key(0) },
        PipelineKey { specialization: spec(&[("a", SpecValue::U32(1)), ("b", SpecValue::U32(1))]), ..key(0) },
        // The same number to a comparison of floats, and other code.
        PipelineKey { specialization: spec(&[("a", f(0))]), ..key(0) },
        PipelineKey { specialization: spec(&[("a", f(0x8000_0000))]), ..key(0) },
        // Never the same number as itself.
        PipelineKey { specialization: spec(&[("a", f(0x7FC0_0000))]), ..key(0) },
    ];
    let cache = PipelineCache::new(1 << 20);
    for (n, key) in keys.iter().enumerate() {
        assert_eq!(cache.get_or_build(key, || Ok((Arc::new(n), 1))).as_deref(), Ok(&n));
    }
    for (n, key) in keys.iter().enumerate() {
        assert_eq!(cache.get_or_build(&key.clone(), || Err(BackendError::Poisoned)).as_deref(), Ok(&n));
        for (m, other) in keys.iter().enumerate() {
            assert_eq!(key == other, n == m, "{key:?}\n{other:?}");
            assert_eq!(key.to_hex() == other.to_hex(), n == m, "{key:?}\n{other:?}");
            assert_eq!(key.to_bytes() == other.to_bytes(), n == m, "{key:?}\n{other:?}");
        }
    }
}
