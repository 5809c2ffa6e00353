//! The spans that a subscriber of `tracing` sees.

use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use vyre_driver::backend::private::Sealed;
use vyre_driver::backend::registry::wrap_grid_sync_split;
use vyre_driver::{BackendError, DispatchConfig, VyreBackend, pipeline};
use vyre_foundation::ir::Program;
use vyre_foundation::text;

struct Plain;

impl Sealed for Plain {}

impl VyreBackend for Plain {
    fn id(&self) -> &'static str {
        "plain"
    }

    fn dispatch(&self, program: &Program, inputs: &[Vec<u8>], config: &DispatchConfig) -> Result<Vec<Vec<u8>>, BackendError> {
        let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
        let options = vyre_reference::Options { launch: config.launch(), ..Default::default() };
        vyre_reference::run(program, &inputs, &options).map_err(|error| BackendError::new(error.to_string()))
    }
}

/// Keeps names and fields of spans as they are entered, and where they are left.
#[derive(Clone, Default)]
struct Log {
    lines: Arc<Mutex<Vec<String>>>,
    spans: Arc<Mutex<Vec<String>>>,
    entered: Arc<AtomicU64>,
}

struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.push_str(&format!(" {field}={value:?}"));
    }
}

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = Fields(span.metadata().name().into());
        span.record(&mut fields);
        let mut spans = self.spans.lock().unwrap();
        spans.push(fields.0);
        Id::from_u64(spans.len() as u64)
    }

    fn enter(&self, span: &Id) {
        let name = self.spans.lock().unwrap()[span.into_u64() as usize - 1].clone();
        let depth = self.entered.fetch_add(1, Relaxed);
        self.lines.lock().unwrap().push(format!("{}{name}", "  ".repeat(depth as usize)));
    }

    fn exit(&self, _: &Id) {
        self.entered.fetch_sub(1, Relaxed);
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}
}

/// What is logged while `run` runs.
fn log(run: impl FnOnce()) -> Vec<String> {
    let log = Log::default();
    tracing::subscriber::with_default(log.clone(), run);
    assert_eq!(log.entered.load(Relaxed), 0, "every span that is entered is left");
    let lines = log.lines.lock().unwrap();
    lines.clone()
}

#[test]
fn compiling_dispatching_and_segments_are_in_spans_that_name_the_backend() {
    let source =
        "program p {\n  workgroup 1\n  buffer out: output u32[2] @0\n\n  out[0] = 1\n  barrier.grid\n  out[1] = out[0]\n}\n";
    let whole = text::parse("p", &source.replace("barrier.grid", "barrier")).unwrap_or_else(|report| panic!("{report}"));
    let split = text::parse("p", source).unwrap_or_else(|report| panic!("{report}"));
    let backend: Arc<dyn VyreBackend> = Arc::from(wrap_grid_sync_split(Box::new(Plain)));
    let config = DispatchConfig { grid_override: Some([1, 1, 1]), label: Some("here".into()), ..DispatchConfig::default() };
    for (program, segments) in [(&whole, 0), (&split, 2)] {
        let mut pipeline = None;
        let lines = log(|| pipeline = Some(pipeline::compile(backend.clone(), program, &config).expect("it compiles")));
        assert_eq!(lines, [r#"compile backend="plain" label="here""#]);
        let lines = log(|| {
            let outputs = pipeline.take().expect("compiled above").dispatch_borrowed(&[], &DispatchConfig::default());
            assert_eq!(outputs.expect("it runs"), [[1, 0, 0, 0, 1, 0, 0, 0]]);
        });
        let inner = (0..segments).map(|n| format!("  segment number={n} of={segments}"));
        let expected: Vec<String> = [r#"dispatch backend="plain" label="here""#.to_string()].into_iter().chain(inner).collect();
        assert_eq!(lines, expected);
    }
    let mut outputs = Vec::new();
    let forms: [&mut dyn FnMut(); 6] = [
        &mut || drop(backend.dispatch(&whole, &[], &config).expect("it runs")),
        &mut || drop(backend.dispatch_borrowed(&whole, &[], &config).expect("it runs")),
        &mut || backend.dispatch_borrowed_into(&whole, &[], &config, &mut outputs).expect("it runs"),
        &mut || drop(backend.dispatch_borrowed_timed(&whole, &[], &config).expect("it runs")),
        &mut || drop(backend.dispatch_async(&whole, &[], &config).expect("it runs")),
        &mut || drop(backend.dispatch_borrowed_async(&whole, &[], &config).expect("it runs")),
    ];
    for form in forms {
        assert_eq!(log(form), [r#"dispatch backend="plain" label="here""#]);
    }
}
