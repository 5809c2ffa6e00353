//! What there is not enough of, and what is counted.

use crate::{bulk, program};
use std::time::Duration;
use vyre_driver::backend::registry::acquire;
use vyre_driver::{BackendError, DispatchConfig, VyreBackend};

fn metric(backend: &dyn VyreBackend, name: &str) -> u64 {
    backend.backend_metric_snapshot().iter().find(|(other, _)| *other == name).expect("there is one").1
}

#[test]
fn more_invocations_than_can_wait_for_each_other_are_refused() {
    let many = program(
        "program p {\n  workgroup 64\n  buffer out: output u32[4] @0\n  out[gid.x] = 1\n  barrier.grid\n  out[gid.x] = 2\n}\n",
    );
    let config = DispatchConfig { grid_override: Some([1 << 25, 1, 1]), ..DispatchConfig::default() };
    for (id, expected) in [("reference", "E0708"), ("bulk", "E0806")] {
        let error = acquire(id).unwrap().dispatch(&many, &[], &config).unwrap_err();
        assert_eq!(error.report(None).codes().next().unwrap().to_string(), expected, "{error}");
    }
}

#[test]
fn a_dispatch_without_time_does_not_begin_so_that_it_cannot_trap() {
    let trap = program("program fails {\n  workgroup 4\n  buffer out: output u32[4] @0\n  trap(1)\n}\n");
    let config = DispatchConfig { timeout: Some(Duration::ZERO), ..DispatchConfig::default() };
    for id in ["reference", "bulk"] {
        let found = acquire(id).unwrap().dispatch(&trap, &[], &config);
        assert_eq!(found, Err(BackendError::Timeout { limit: Duration::ZERO }), "{id}");
    }
}

#[test]
fn memory_that_there_is_not_is_an_error() {
    let backend = bulk();
    for bytes in [usize::MAX, usize::MAX / 2, isize::MAX as usize, 1 << 40] {
        assert_eq!(backend.allocate_resident(bytes), Err(BackendError::OutOfMemory { requested: bytes as u64 }));
    }
    assert_eq!(metric(&*backend, "resident_live_handles"), 0);
}

#[test]
fn what_is_live_and_what_was_most_is_counted() {
    let backend = bulk();
    let [a, b] = [100, 50].map(|bytes| backend.allocate_resident(bytes).unwrap());
    backend.free_resident(a).unwrap();
    let c = backend.allocate_resident(20).unwrap();
    let usage = |backend: &dyn VyreBackend| {
        ["resident_live_bytes", "resident_peak_bytes", "resident_live_handles", "resident_peak_handles"]
            .map(|name| metric(backend, name))
    };
    assert_eq!(usage(&*backend), [70, 150, 2, 2]);
    for resource in [b, c] {
        backend.free_resident(resource).unwrap();
    }
    assert_eq!(usage(&*backend), [0, 150, 0, 2]);
}
