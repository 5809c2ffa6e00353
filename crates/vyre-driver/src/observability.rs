//! Counters of dispatches, per backend and for the whole process.
//!
//! Each backend has one set of counters; the process's is their sum. Recording is a few relaxed additions and never a lock.
//!
//! Spans for `tracing`, all of level debug: `compile` around a compilation, `dispatch` around a dispatch of a backend from the
//! registry or of one of its pipelines, `segment` around each part of a dispatch that is split at its grid barriers.

use crate::backend::{DispatchConfig, OutputBuffers};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// What was dispatched so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DispatchTelemetry {
    /// Dispatches that gave outputs.
    pub launches: u64,
    /// Bytes of their inputs.
    pub input_bytes: u64,
    /// Bytes of their outputs.
    pub output_bytes: u64,
    /// Output buffers they filled.
    pub output_slots: u64,
    /// Those of them that the caller had brought.
    pub output_slots_reused: u64,
}

/// The counters of one backend.
#[derive(Debug)]
pub struct Counters {
    backend: &'static str,
    launches: AtomicU64,
    input_bytes: AtomicU64,
    output_bytes: AtomicU64,
    output_slots: AtomicU64,
    output_slots_reused: AtomicU64,
}

impl Counters {
    const fn new(backend: &'static str) -> Self {
        Counters {
            backend,
            launches: AtomicU64::new(0),
            input_bytes: AtomicU64::new(0),
            output_bytes: AtomicU64::new(0),
            output_slots: AtomicU64::new(0),
            output_slots_reused: AtomicU64::new(0),
        }
    }

    /// Adds a dispatch.
    pub fn record(&self, input_bytes: usize, outputs: &OutputBuffers, reused: usize) {
        self.launches.fetch_add(1, Relaxed);
        self.input_bytes.fetch_add(input_bytes as u64, Relaxed);
        self.output_bytes.fetch_add(outputs.iter().map(|output| output.len() as u64).sum(), Relaxed);
        self.output_slots.fetch_add(outputs.len() as u64, Relaxed);
        self.output_slots_reused.fetch_add(reused as u64, Relaxed);
    }

    fn snapshot(&self) -> DispatchTelemetry {
        DispatchTelemetry {
            launches: self.launches.load(Relaxed),
            input_bytes: self.input_bytes.load(Relaxed),
            output_bytes: self.output_bytes.load(Relaxed),
            output_slots: self.output_slots.load(Relaxed),
            output_slots_reused: self.output_slots_reused.load(Relaxed),
        }
    }
}

static UNATTRIBUTED: Counters = Counters::new("");
static BACKENDS: Mutex<Vec<&'static Counters>> = Mutex::new(Vec::new());

fn backends() -> std::sync::MutexGuard<'static, Vec<&'static Counters>> {
    // A list of counters is whole at any time.
    BACKENDS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The counters of pipelines that do not say which backend they are of.
#[must_use]
pub fn unattributed() -> &'static Counters {
    &UNATTRIBUTED
}

/// The counters of a backend; keep them where dispatches are frequent. There is one set per backend that was ever used.
#[must_use]
pub fn of_backend(id: &'static str) -> &'static Counters {
    let mut all = backends();
    if let Some(counters) = all.iter().find(|counters| counters.backend == id) {
        return counters;
    }
    let counters: &'static Counters = Box::leak(Box::new(Counters::new(id)));
    all.push(counters);
    counters
}

/// The span that a dispatch happens in, until the result is dropped. Backends from the registry are in it already; pipelines of their
/// own open it.
#[must_use]
pub fn dispatch_span(backend: &str, config: &DispatchConfig) -> tracing::span::EnteredSpan {
    tracing::debug_span!("dispatch", backend, label = config.label.as_deref()).entered()
}

/// What the whole process has dispatched so far.
#[must_use]
pub fn snapshot_dispatch_telemetry() -> DispatchTelemetry {
    let mut total = UNATTRIBUTED.snapshot();
    for (_, telemetry) in snapshot_backend_telemetry() {
        total.launches += telemetry.launches;
        total.input_bytes += telemetry.input_bytes;
        total.output_bytes += telemetry.output_bytes;
        total.output_slots += telemetry.output_slots;
        total.output_slots_reused += telemetry.output_slots_reused;
    }
    total
}

/// What each backend has dispatched so far.
#[must_use]
pub fn snapshot_backend_telemetry() -> Vec<(&'static str, DispatchTelemetry)> {
    backends().iter().map(|counters| (counters.backend, counters.snapshot())).collect()
}
