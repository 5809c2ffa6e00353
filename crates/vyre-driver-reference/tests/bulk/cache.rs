//! Programs are made ready once.

use crate::{bulk, generated, program, slices, words};
use std::sync::Arc;
use vyre_driver::pipeline::{self, PipelineCacheSnapshot};
use vyre_driver::specialization::{SpecMap, SpecValue};
use vyre_driver::{DispatchConfig, VyreBackend};

const SCALE: &str = "program scale {
  workgroup 4
  buffer out: output u32[12] @0
  const k: u32 = 3
  const s: f32 = 1.0

  out[gid.x] = k + bitcast<u32>(s) + gid_count.x
}
";

fn seen(backend: &Arc<dyn VyreBackend>) -> (u64, u64) {
    let PipelineCacheSnapshot { hits, misses } = backend.pipeline_cache_snapshot().expect("it has a cache");
    (hits, misses)
}

fn values(entries: &[(&str, SpecValue)]) -> DispatchConfig {
    let specialization: SpecMap = entries.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
    DispatchConfig { specialization, ..DispatchConfig::default() }
}

#[test]
fn the_second_compilation_of_the_same_is_a_hit() {
    let backend = bulk();
    let program = program(SCALE);
    let compile = |config: &DispatchConfig| {
        let build = pipeline::compile_with_telemetry(backend.clone(), &program, config).unwrap();
        (build.cache_hit, build.pipeline.id().to_string(), build.pipeline.dispatch(&[], &DispatchConfig::default()).unwrap())
    };
    let cold = compile(&DispatchConfig::default());
    assert_eq!(cold.0, Some(false));
    let warm = compile(&DispatchConfig::default());
    assert_eq!((warm.0, &warm.1, &warm.2), (Some(true), &cold.1, &cold.2));
    assert!(cold.1.starts_with("bulk:"), "{}", cold.1);
    // Values are compared by bits and type: these are all different, and each is itself again.
    let maps = [
        values(&[("k", SpecValue::U32(4))]),
        values(&[("k", SpecValue::U32(5))]),
        values(&[("s", SpecValue::F32(0.0))]),
        values(&[("s", SpecValue::F32(-0.0))]),
        values(&[("k", SpecValue::U32(4)), ("s", SpecValue::F32(0.0))]),
    ];
    let first: Vec<_> = maps.iter().map(compile).collect();
    let again: Vec<_> = maps.iter().map(compile).collect();
    for (n, (one, other)) in first.iter().zip(&again).enumerate() {
        assert_eq!((one.0, other.0), (Some(false), Some(true)));
        assert_eq!((&one.1, &one.2), (&other.1, &other.2));
        assert_eq!(one.2, crate::meaning(&program, &[], &maps[n]).unwrap());
        assert!(first[..n].iter().all(|earlier| earlier.1 != one.1 && earlier.2 != one.2), "{n} is as one before");
    }
    assert_eq!(seen(&backend), (6, 6));
}

#[test]
fn values_given_to_compile_native_itself_are_put_in() {
    let backend = bulk();
    let program = program(SCALE);
    for (config, misses) in [(values(&[("k", SpecValue::U32(9))]), 1), (values(&[("k", SpecValue::U32(8))]), 2)] {
        for _ in 0..2 {
            let pipeline = backend.compile_native(&program, &config).unwrap().unwrap();
            assert_eq!(pipeline.dispatch(&[], &DispatchConfig::default()), crate::meaning(&program, &[], &config));
        }
        assert_eq!(seen(&backend), (misses, misses));
    }
}

#[test]
fn pipelines_that_share_code_keep_what_each_was_compiled_for() {
    let backend = bulk();
    let program = program(SCALE);
    let grid = |x: u32| DispatchConfig { grid_override: Some([x, 1, 1]), ..DispatchConfig::default() };
    let [one, two] = [1, 2].map(|x| pipeline::compile(backend.clone(), &program, &grid(x)).unwrap());
    assert_eq!(seen(&backend), (1, 1));
    let nothing = DispatchConfig::default();
    for _ in 0..2 {
        assert_eq!(one.dispatch(&[], &nothing), crate::meaning(&program, &[], &grid(1)));
        assert_eq!(two.dispatch(&[], &nothing), crate::meaning(&program, &[], &grid(2)));
        assert_eq!(two.dispatch(&[], &grid(3)), crate::meaning(&program, &[], &grid(3)));
    }
}

#[test]
fn dispatches_without_a_pipeline_use_the_same_cache() {
    let backend = bulk();
    let program = program("program p {\n  workgroup 4\n  buffer out: output u32[12] @0\n  out[gid.x] = 3\n}\n");
    let config = DispatchConfig::default();
    for n in 0..3 {
        backend.dispatch(&program, &[], &config).unwrap();
        backend.dispatch_borrowed_into(&program, &[], &config, &mut vec![]).unwrap();
        let out = backend.allocate_resident(48).unwrap();
        backend.dispatch_resident_timed(&program, &[out], &config).unwrap();
        assert_eq!(seen(&backend), (3 * n + 2, 1));
    }
    assert_eq!(pipeline::compile_with_telemetry(backend, &program, &config).unwrap().cache_hit, Some(true));
}

#[test]
fn caches_belong_to_one_instance() {
    let (one, other) = (bulk(), bulk());
    let program = program(SCALE);
    one.dispatch(&program, &[], &DispatchConfig::default()).unwrap();
    assert_eq!((seen(&one), seen(&other)), ((0, 1), (0, 0)));
}

#[test]
fn a_program_that_cannot_be_made_ready_is_not_kept() {
    let backend = bulk();
    let wrong = program("program p {\n  workgroup 4\n  buffer out: output u32[4] @0\n  const k: u32 = 3\n  out[gid.x] = k\n}\n");
    let config = values(&[("q", SpecValue::U32(1))]);
    for n in 1..3 {
        assert!(backend.dispatch(&wrong, &[], &config).is_err());
        assert_eq!(seen(&backend), (0, n));
    }
    let bytes = metric(&*backend, "pipeline_cache_bytes");
    assert_eq!(bytes, 0);
}

fn metric(backend: &dyn VyreBackend, name: &str) -> u64 {
    backend.backend_metric_snapshot().iter().find(|(other, _)| *other == name).expect("there is one").1
}

#[test]
fn what_the_cache_counts_is_about_what_programs_take() {
    let backend = bulk();
    let cases = generated(31, 150);
    let mut taken = 0;
    for case in &cases {
        // Decoded again, so that everything the program remembers is the backend's.
        let wire = vyre_foundation::wire::to_wire(&case.program).unwrap();
        let inputs = slices(&case.inputs);
        let measured = allocation_counter::measure(|| {
            let program = vyre_foundation::wire::from_wire(&wire).unwrap();
            let _ = backend.dispatch_borrowed(&program, &inputs, &case.config);
        });
        taken += measured.bytes_current;
    }
    let counted = metric(&*backend, "pipeline_cache_bytes") as i64;
    assert_eq!(seen(&backend).1, cases.len() as u64);
    assert!(taken > 0 && counted >= taken && counted <= 10 * taken, "{counted} bytes counted, {taken} taken");
}

#[test]
fn the_cache_does_not_grow_without_end() {
    let backend = bulk();
    // A program of 100 KB, again and again with another number in it.
    let lines = "  x = x * 3 + 1\n".repeat(4000);
    let large = |n: u32| {
        program(&format!("program p {{\n  workgroup 1\n  buffer out: output u32[1] @0\n  let x = {n}\n{lines}  out[0] = x\n}}\n"))
    };
    let mut most = 0;
    for n in 0..40 {
        let x = (0..4000).fold(n, |x: u32, _| x.wrapping_mul(3).wrapping_add(1));
        assert_eq!(backend.dispatch(&large(n), &[], &DispatchConfig::default()), Ok(vec![words([x])]));
        most = most.max(metric(&*backend, "pipeline_cache_bytes"));
    }
    assert!(most <= 64 << 20 && most > 32 << 20, "{most}");
}

#[test]
fn a_pipeline_runs_on_inputs_of_every_length_in_turn() {
    let program = program(
        "program p {\n  workgroup 4\n  buffer a: read u32 @0\n  buffer out: output u32 @1\n  out[gid.x] = a[gid.x] + len(a)\n}\n",
    );
    let pipeline = pipeline::compile(bulk(), &program, &DispatchConfig::default()).unwrap();
    for length in [3, 7, 3, 0, 600, 3, 3] {
        let input = words(0..length);
        let mut outputs = vec![vec![9; 100]];
        pipeline.dispatch_borrowed_into(&[&input], &DispatchConfig::default(), &mut outputs).unwrap();
        assert_eq!(outputs, [words((0..length).map(|n| n + length))]);
    }
}

#[test]
fn what_a_large_dispatch_needed_is_given_back() {
    let backend = bulk();
    // 80 MB of outputs; and half a million invocations that wait for each other.
    let wide =
        program("program p {\n  workgroup 4\n  buffer out: output vec4<u32>[5000000] @0\n  out[gid.x] = vec(1, 2, 3, 4)\n}\n");
    let deep = program(
        "program p {\n  workgroup 64\n  buffer out: output u32[1] @0\n  let x = gid.x\n  barrier.grid\n  out[x] = x + 1\n}\n",
    );
    for (program, grid) in [(wide, [1, 1, 1]), (deep, [8192, 1, 1])] {
        let config = DispatchConfig { grid_override: Some(grid), ..DispatchConfig::default() };
        let measured = allocation_counter::measure(|| {
            let mut outputs = Vec::new();
            backend.dispatch_borrowed_into(&program, &[], &config, &mut outputs).unwrap();
            assert_eq!(outputs[0][..4], [1, 0, 0, 0]);
        });
        assert!(measured.bytes_max > 10_000_000 && measured.bytes_current < 1_000_000, "{measured:?}");
    }
}
