//! A warm pass-through pipeline allocates nothing, counted and split-wrapped as it is.

use std::sync::Arc;
use vyre_driver::backend::private::Sealed;
use vyre_driver::backend::registry::wrap_grid_sync_split;
use vyre_driver::specialization::SpecValue;
use vyre_driver::{BackendError, DispatchConfig, OutputBuffers, VyreBackend, observability, pipeline};
use vyre_foundation::ir::Program;
use vyre_foundation::text;

/// Gives its inputs back, into the caller's buffers.
struct Echo;

impl Sealed for Echo {}

impl VyreBackend for Echo {
    fn id(&self) -> &'static str {
        "echo"
    }

    fn dispatch(&self, _: &Program, _: &[Vec<u8>], _: &DispatchConfig) -> Result<Vec<Vec<u8>>, BackendError> {
        Err(BackendError::new("only the form into the caller's buffers is expected"))
    }

    fn dispatch_borrowed_into(
        &self,
        _: &Program,
        inputs: &[&[u8]],
        _: &DispatchConfig,
        outputs: &mut OutputBuffers,
    ) -> Result<(), BackendError> {
        vyre_driver::backend::fill_outputs(outputs, inputs);
        Ok(())
    }
}

#[test]
fn a_warm_pass_through_into_the_callers_buffers_allocates_nothing() {
    let source = "program p {\n  workgroup 1\n  const k: u32 = 1\n  buffer a: read u32 @0\n  buffer out: output u32 @1\n\n  \
                  out[gid.x] = a[gid.x] * k\n}\n";
    let program = text::parse("p", source).unwrap_or_else(|report| panic!("{report}"));
    let wrapped: Arc<dyn VyreBackend> = Arc::from(wrap_grid_sync_split(Box::new(Echo)));
    let mut compiled = DispatchConfig { label: Some("a pipeline".into()), ..DispatchConfig::default() };
    compiled.specialization.insert("k", SpecValue::U32(3));
    let nothing = DispatchConfig::default();
    let call = DispatchConfig { grid_override: Some([4, 1, 1]), ..DispatchConfig::default() };
    let input = [7u8; 4096];
    for (config, calls) in [(&nothing, [&nothing, &call]), (&compiled, [&nothing, &nothing])] {
        for backend in [Arc::new(Echo), wrapped.clone()] {
            let pipeline = pipeline::compile(backend, &program, config).expect("it compiles");
            let mut outputs = vec![Vec::new()];
            pipeline.dispatch_borrowed_into(&[&input], &nothing, &mut outputs).expect("it runs");
            let place = outputs[0].as_ptr();
            let before = observability::snapshot_dispatch_telemetry();
            for call in calls {
                let measured = allocation_counter::measure(|| {
                    pipeline.dispatch_borrowed_into(&[&input], call, &mut outputs).expect("it runs");
                });
                assert_eq!(measured.count_total, 0, "{measured:?}");
                assert!(outputs == [input] && outputs[0].as_ptr() == place);
            }
            let after = observability::snapshot_dispatch_telemetry();
            assert_eq!((after.launches - before.launches, after.output_slots_reused - before.output_slots_reused), (2, 2));
        }
    }
}
