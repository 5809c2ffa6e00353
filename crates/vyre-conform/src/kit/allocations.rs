//! A thousand dispatches leave nothing behind.

use super::cases::{Known, on_resources, simple};
use super::{Done, KitTest, Open, lacks, with_resident};
use vyre_driver::{DispatchConfig, VyreBackend, pipeline};

const DISPATCHES: usize = 1000;

/// Bytes that are allocated and freed each time; all of them together are more than [`MAX_GROWTH`].
const BYTES: usize = 1 << 20;

/// Bytes by which the process may grow meanwhile: other tests run beside this one.
const MAX_GROWTH: u64 = 400 << 20;

pub(super) fn tests(open: &Open) -> Vec<KitTest> {
    vec![
        KitTest::new("allocations/resident-memory-is-given-back", open, given_back),
        KitTest::new("allocations/the-same-program-is-compiled-once", open, compiled_once),
    ]
}

fn metric(backend: &dyn VyreBackend, name: &str) -> Option<u64> {
    backend.backend_metric_snapshot().into_iter().find(|(other, _)| *other == name).map(|(_, value)| value)
}

/// Bytes of the process that are in memory, where the system says it.
fn memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kilobytes| kilobytes << 10)
}

fn given_back(open: &Open) -> Done {
    let backend = match with_resident(open) {
        Ok(backend) => backend,
        Err(skipped) => return skipped,
    };
    let known: Known = simple().pop().unwrap_or_else(|| panic!("there are kernels"));
    let bytes = vec![0x77; BYTES];
    let start = memory();
    for n in 0..DISPATCHES {
        let large = backend.allocate_resident(BYTES).unwrap_or_else(|error| panic!("allocation {n}: {error}"));
        backend.upload_resident(&large, &bytes).unwrap_or_else(|error| panic!("upload {n}: {error}"));
        let found = on_resources(
            &*backend,
            &known.case,
            |_| true,
            |resources| {
                backend.dispatch_resident_timed(&known.case.program, resources, &known.case.config).map(|timed| timed.outputs)
            },
        );
        if let Some(what) = lacks(&found) {
            return Done::Skipped(what);
        }
        known.check("a resident dispatch", &found);
        backend.free_resident(large).unwrap_or_else(|error| panic!("free {n}: {error}"));
        for name in ["resident_live_bytes", "resident_live_handles"] {
            let live = metric(&*backend, name);
            assert!(live.is_none_or(|live| live == 0), "after dispatch {n} `{name}` is {live:?}");
        }
        if let (Some(start), Some(now)) = (start, memory()) {
            let grown = now.saturating_sub(start);
            assert!(grown < MAX_GROWTH, "after {n} dispatches the process has {grown} bytes more");
        }
    }
    Done::Passed
}

fn compiled_once(open: &Open) -> Done {
    let backend = open();
    let Some(before) = backend.pipeline_cache_snapshot() else {
        return Done::Skipped("it has no cache of pipelines".into());
    };
    let known: Known = simple().pop().unwrap_or_else(|| panic!("there are kernels"));
    for _ in 0..DISPATCHES {
        let compiled = pipeline::compile(backend.clone(), &known.case.program, &known.case.config);
        if let Some(what) = lacks(&compiled) {
            return Done::Skipped(what);
        }
        let compiled = compiled.unwrap_or_else(|error| panic!("{error}"));
        known.check("a pipeline", &compiled.dispatch_borrowed(&known.case.input_slices(), &DispatchConfig::default()));
    }
    let after = backend.pipeline_cache_snapshot().unwrap_or(before);
    let missed = after.misses - before.misses;
    assert!(missed <= 1, "one program was compiled {missed} times");
    Done::Passed
}
