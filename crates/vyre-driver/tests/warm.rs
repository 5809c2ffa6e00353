//! A dispatch of what was compiled before, into buffers that are there: the driver adds no allocation to what the backend does.

use std::sync::Arc;
use vyre_driver::backend::private::Sealed;
use vyre_driver::backend::registry::wrap_grid_sync_split;
use vyre_driver::specialization::SpecValue;
use vyre_driver::{BackendError, CompiledPipeline, DispatchConfig, OutputBuffers, VyreBackend, pipeline};
use vyre_foundation::ir::Program;
use vyre_foundation::text::parse;

/// Copies its input, as a backend and as a pipeline.
struct Copying {
    compiles: bool,
}

fn copy(inputs: &[&[u8]], outputs: &mut OutputBuffers) -> Result<(), BackendError> {
    outputs[0].clear();
    outputs[0].extend_from_slice(inputs[0]);
    Ok(())
}

impl Sealed for Copying {}

impl VyreBackend for Copying {
    fn id(&self) -> &'static str {
        "copying"
    }

    fn dispatch(&self, _: &Program, inputs: &[Vec<u8>], _: &DispatchConfig) -> Result<Vec<Vec<u8>>, BackendError> {
        Ok(inputs.to_vec())
    }

    fn dispatch_borrowed_into(
        &self,
        _: &Program,
        inputs: &[&[u8]],
        _: &DispatchConfig,
        outputs: &mut OutputBuffers,
    ) -> Result<(), BackendError> {
        copy(inputs, outputs)
    }

    fn compile_native(&self, _: &Program, _: &DispatchConfig) -> Result<Option<Arc<dyn CompiledPipeline>>, BackendError> {
        Ok(self.compiles.then(|| Arc::new(Copying { compiles: false }) as Arc<dyn CompiledPipeline>))
    }
}

impl CompiledPipeline for Copying {
    fn id(&self) -> &str {
        "copying pipeline"
    }

    fn dispatch(&self, inputs: &[Vec<u8>], _: &DispatchConfig) -> Result<Vec<Vec<u8>>, BackendError> {
        Ok(inputs.to_vec())
    }

    fn dispatch_borrowed_into(
        &self,
        inputs: &[&[u8]],
        _: &DispatchConfig,
        outputs: &mut OutputBuffers,
    ) -> Result<(), BackendError> {
        copy(inputs, outputs)
    }
}

#[test]
fn warm_dispatches_allocate_nothing() {
    let program = parse("copy", "program copy {\n workgroup 4\n const k: u32 = 1\n buffer a: read u32 @0\n buffer out: output u32 @1\n out[gid.x] = a[gid.x] * k\n}").unwrap();
    let mut compiled =
        DispatchConfig { label: Some("a label".into()), grid_override: Some([1, 1, 1]), ..DispatchConfig::default() };
    compiled.specialization.insert("k", SpecValue::U32(2));
    compiled.output_counts.insert("out".into(), 4);
    let nothing = DispatchConfig::default();
    for compiles in [false, true] {
        for wrapped in [false, true] {
            let backend: Box<dyn VyreBackend> = Box::new(Copying { compiles });
            let backend: Arc<dyn VyreBackend> = Arc::from(if wrapped { wrap_grid_sync_split(backend) } else { backend });
            for config in [&nothing, &compiled] {
                let pipeline = pipeline::compile(backend.clone(), &program, config).unwrap();
                let mut outputs = vec![Vec::with_capacity(64)];
                let input = [7u8; 16];
                let mut run = || {
                    outputs[0].clear();
                    pipeline.dispatch_borrowed_into(&[&input], &nothing, &mut outputs).unwrap();
                };
                run();
                let measured = allocation_counter::measure(|| (0..10).for_each(|_| run()));
                assert_eq!(measured.count_total, 0, "compiles: {compiles}, wrapped: {wrapped}");
                assert_eq!(outputs, [[7; 16]]);
            }
        }
    }
}
