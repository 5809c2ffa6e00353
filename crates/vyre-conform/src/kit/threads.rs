//! The same backend and the same pipelines from several threads.

use super::cases::{Known, generated, on_resources, program, simple, words};
use super::{Done, KitTest, Open, lacks, with_resident};
use std::sync::Arc;
use vyre_driver::{CompiledPipeline, DispatchConfig, Resource, pipeline};

const THREADS: usize = 8;

pub(super) fn tests(open: &Open) -> Vec<KitTest> {
    vec![KitTest::new("threads/shared-backend", open, shared_backend), KitTest::new("threads/shared-memory", open, shared_memory)]
}

/// Each gets what it would get alone.
fn shared_backend(open: &Open) -> Done {
    let backend = open();
    let has_resident = with_resident(open).is_ok();
    let runs = |known: &Known| {
        known.case.program.is_wrapped()
            && lacks(&backend.dispatch(&known.case.program, &known.case.inputs, &known.case.config)).is_none()
    };
    let all: Vec<(Known, Arc<dyn CompiledPipeline>)> = (simple().into_iter().chain(generated(21, 40)))
        .filter(runs)
        .map(|known| {
            let compiled = pipeline::compile(backend.clone(), &known.case.program, &known.case.config);
            let compiled = compiled.unwrap_or_else(|error| panic!("{}: {error}", known.what));
            (known, compiled)
        })
        .collect();
    assert!(!all.is_empty(), "no program could be run");
    let work = |thread: usize| {
        for n in 0..4 * all.len() {
            let (known, compiled) = &all[(n * (2 * thread + 1) + thread) % all.len()];
            let (case, nothing) = (&known.case, DispatchConfig::default());
            let borrowed = case.input_slices();
            known.check("dispatch_borrowed", &backend.dispatch_borrowed(&case.program, &borrowed, &case.config));
            known.check(
                "a pipeline",
                &known.with_buffers(|outputs| compiled.dispatch_borrowed_into(&borrowed, &nothing, outputs)),
            );
            if has_resident {
                let call = |resources: &[_]| compiled.dispatch_persistent_handles(resources, &nothing);
                known.check("a pipeline on resources", &on_resources(&*backend, case, |_| true, call));
            }
        }
    };
    together(&work);
    Done::Passed
}

/// No dispatch on memory that all change is lost, and readers see whole dispatches only.
fn shared_memory(open: &Open) -> Done {
    let backend = match with_resident(open) {
        Ok(backend) => backend,
        Err(skipped) => return skipped,
    };
    // In both orders of bindings, so that locks are asked for in both.
    let add = |count: u32, step: u32| {
        program(&format!(
            "program add {{\n  workgroup 4\n  buffer count: read_write u32 @{count}\n  buffer step: read u32 @{step}\n  \
             if gid.x < len(count) {{\n    count[gid.x] = count[gid.x] + step[gid.x]\n  }}\n}}\n"
        ))
    };
    let fine = |error| panic!("{error}");
    let [count, step] = [(); 2].map(|()| backend.allocate_resident(16).unwrap_or_else(fine));
    backend.upload_resident(&step, &words([1, 2, 3, 4])).unwrap_or_else(|error| panic!("{error}"));
    let work = |thread: usize| {
        let (program, resources): (_, [Resource; 2]) = match thread % 2 {
            0 => (add(0, 1), [count.clone(), step.clone()]),
            _ => (add(1, 0), [step.clone(), count.clone()]),
        };
        for n in 0..100 {
            if let Err(error) = backend.dispatch_resident_timed(&program, &resources, &DispatchConfig::default()) {
                panic!("{error}");
            }
            if n % 10 == 0 {
                let bytes = backend.download_resident(&count).unwrap_or_else(|error| panic!("{error}"));
                let seen: Vec<u32> = bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
                assert!((1..4).all(|n| seen[n] == seen[0] * (n as u32 + 1)), "half of a dispatch is seen: {seen:?}");
            }
        }
    };
    together(&work);
    let expected = words([100, 200, 300, 400].map(|each| each * THREADS as u32));
    assert_eq!(backend.download_resident(&count), Ok(expected), "dispatches were lost");
    for resource in [count, step] {
        backend.free_resident(resource).unwrap_or_else(|error| panic!("{error}"));
    }
    Done::Passed
}

/// The same in every thread; what one of them says is said again here.
fn together(work: &(dyn Fn(usize) + Sync)) {
    let said = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || vyre_worker::caught(|| work(thread)))).collect();
        threads.into_iter().find_map(|thread| thread.join().unwrap_or_else(|_| Err("a thread panicked".into())).err())
    });
    if let Some(said) = said {
        panic!("{said}");
    }
}
