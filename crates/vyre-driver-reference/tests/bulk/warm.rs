//! A warm pipeline allocates nothing.

use crate::{bulk, program};
use vyre_driver::specialization::SpecValue;
use vyre_driver::{CompiledPipeline, DispatchConfig, pipeline};

/// Something of everything; see the test of the evaluator itself.
const KERNEL: &str = "program warm {
  workgroup 32
  subgroup 8
  buffer a: read f32 @0
  buffer v: read_write vec4<u32> @1
  buffer out: output u32[64] @2
  buffer wide: output u64 @3
  buffer tile: workgroup u32[32]
  const k: u32 = 1

  let i = gid.x
  tile[lid.x] = bitcast<u32>(a[i])
  barrier
  let n = 0
  for j in 0..lid.x {
    if tile[j] > tile[lid.x] {
      continue
    }
    n = n + j
  }
  let s = subgroup.exclusive_add(n)
  barrier.grid
  let w = v[i]
  v[i] = vec(w.y, w.x, n, s)
  wide[i] = u64(s) + 5
  out[i] = n + k
}
";

fn allocations(pipeline: &dyn CompiledPipeline, config: &DispatchConfig) -> u64 {
    let (a, v) = (vec![1u8; 64 * 4], vec![7u8; 64 * 16]);
    let inputs: [&[u8]; 2] = [&a, &v];
    let mut outputs = Vec::new();
    // The caller's memory and the backend's change places: both have to be there.
    for _ in 0..2 {
        pipeline.dispatch_borrowed_into(&inputs, config, &mut outputs).unwrap();
    }
    let first = outputs.clone();
    let mut result = Ok(());
    let measured = allocation_counter::measure(|| {
        for _ in 0..3 {
            result = result.clone().and(pipeline.dispatch_borrowed_into(&inputs, config, &mut outputs));
        }
    });
    assert_eq!(result, Ok(()));
    assert_eq!(outputs, first);
    assert!(outputs.iter().all(|output| output.iter().any(|byte| *byte != 0)), "{outputs:?}");
    measured.count_total
}

#[test]
fn a_warm_dispatch_into_the_callers_buffers_allocates_nothing() {
    let backend = bulk();
    let program = program(KERNEL);
    let nothing = DispatchConfig::default;
    let mut config = DispatchConfig { grid_override: Some([2, 1, 1]), label: Some("warm".into()), ..nothing() };
    config.output_counts.insert("wide".into(), 64);
    // Nothing said, said when it was compiled, said again in the call, said only in the call.
    for (compiled, call) in
        [(nothing(), nothing()), (config.clone(), nothing()), (config.clone(), config.clone()), (nothing(), config)]
    {
        let pipeline = pipeline::compile(backend.clone(), &program, &compiled).unwrap();
        assert_eq!(allocations(&*pipeline, &call), 0, "compiled with {compiled:?}, called with {call:?}");
        let with_values =
            DispatchConfig { specialization: [("k".to_string(), SpecValue::U32(9))].into_iter().collect(), ..compiled };
        let pipeline = pipeline::compile(backend.clone(), &program, &with_values).unwrap();
        assert_eq!(allocations(&*pipeline, &call), 0, "compiled with {with_values:?}, called with {call:?}");
    }
}
