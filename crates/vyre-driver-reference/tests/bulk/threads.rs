//! Eight threads on one backend.

use crate::forms::{into, resident};
use crate::{bulk, generated, program, slices, words};
use std::sync::Arc;
use vyre_driver::{CompiledPipeline, DispatchConfig, Resource};

#[test]
fn threads_that_share_everything_get_what_they_would_get_alone() {
    let backend = bulk();
    let cases = generated(21, 40);
    let pipelines: Vec<Arc<dyn CompiledPipeline>> =
        cases.iter().map(|case| backend.compile_native(&case.program, &case.config).unwrap().unwrap()).collect();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (backend, cases, pipelines) = (&backend, &cases, &pipelines);
            scope.spawn(move || {
                for n in 0..4 * cases.len() {
                    let n = (n * (2 * thread + 1) + thread) % cases.len();
                    let (case, pipeline) = (&cases[n], &pipelines[n]);
                    let borrowed = slices(&case.inputs);
                    let nothing = DispatchConfig::default();
                    let direct = backend.dispatch_borrowed(&case.program, &borrowed, &case.config);
                    assert_eq!(direct, case.expected, "{}", case.what);
                    let compiled = into(case, |outputs| pipeline.dispatch_borrowed_into(&borrowed, &nothing, outputs));
                    assert_eq!(compiled, case.expected, "{}", case.what);
                    let kept = resident(
                        &**backend,
                        case,
                        |_| true,
                        |resources| pipeline.dispatch_persistent_handles(resources, &nothing),
                    );
                    assert_eq!(kept, case.expected, "{}", case.what);
                }
            });
        }
    });
    let metrics: Vec<(&str, u64)> = backend.backend_metric_snapshot();
    assert!(metrics.contains(&("resident_live_bytes", 0)), "{metrics:?}");
}

#[test]
fn no_dispatch_on_shared_resident_data_is_lost() {
    // Each reads what all read and changes what all change, in both orders of bindings, so that locks are asked for in both.
    let add = |count: u32, step: u32| {
        program(&format!(
            "program add {{\n  workgroup 4\n  buffer count: read_write u32 @{count}\n  buffer step: read u32 @{step}\n  \
             if gid.x < len(count) {{\n    count[gid.x] = count[gid.x] + step[gid.x]\n  }}\n}}\n"
        ))
    };
    let backend = bulk();
    let [count, step] = [(); 2].map(|()| backend.allocate_resident(16).unwrap());
    backend.upload_resident(&step, &words([1, 2, 3, 4])).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (backend, count, step) = (&backend, &count, &step);
            let program = if thread % 2 == 0 { add(0, 1) } else { add(1, 0) };
            let resources: [Resource; 2] =
                if thread % 2 == 0 { [count.clone(), step.clone()] } else { [step.clone(), count.clone()] };
            scope.spawn(move || {
                for n in 0..100 {
                    backend.dispatch_resident_timed(&program, &resources, &DispatchConfig::default()).unwrap();
                    if n % 10 == 0 {
                        // Readers see whole dispatches only.
                        let seen: Vec<u32> = backend
                            .download_resident(count)
                            .unwrap()
                            .chunks(4)
                            .map(|word| u32::from(word[0]) | u32::from(word[1]) << 8)
                            .collect();
                        assert!((1..4).all(|n| seen[n] == seen[0] * (n as u32 + 1)), "{seen:?}");
                    }
                }
            });
        }
    });
    assert_eq!(backend.download_resident(&count), Ok(words([800, 1600, 2400, 3200])));
}
