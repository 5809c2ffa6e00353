//! Every way to run a program gives what the reference gives.

use super::cases::{Known, Outcome, generated, on_resources, simple};
use super::{Done, KitTest, Open, lacks};
use std::collections::BTreeMap;
use std::sync::Arc;
use vyre_driver::specialization::SpecMap;
use vyre_driver::{CompiledPipeline, DispatchConfig, VyreBackend, pipeline};
use vyre_worker::backend::{Form, in_form};

const SEED: u64 = 11;

pub(super) fn tests(open: &Open) -> Vec<KitTest> {
    let forms = Form::ALL.map(|form| KitTest::new(format!("forms/{form}"), open, move |open| every_program(open, form)));
    let pipelines = [
        KitTest::new("pipelines/compiled", open, |open| {
            every_pipeline(open, |backend, known| {
                match pipeline::compile(backend.clone(), &known.case.program, &known.case.config) {
                    // Of programs with raw top-level statements there are none.
                    Err(error) if !known.case.program.is_wrapped() && lacks::<()>(&Err(error.clone())).is_none() => Ok(None),
                    other => other.map(Some),
                }
            })
        }),
        KitTest::new("pipelines/native", open, |open| {
            every_pipeline(open, |backend, known| backend.compile_native(&known.case.program, &known.case.config))
        }),
    ];
    forms.into_iter().chain(pipelines).collect()
}

fn programs() -> Vec<Known> {
    simple().into_iter().chain(generated(SEED, 250)).collect()
}

fn every_program(open: &Open, form: Form) -> Done {
    let backend = open();
    let (mut ran, mut lacking) = (0, None);
    for known in programs() {
        let case = &known.case;
        // Outputs of before, which the form may use and must not show.
        let stale = vec![vec![0x5A; 7]; 2];
        let outcome = in_form(form, &backend, &case.program, &case.input_slices(), &case.config, stale);
        let outcome: Outcome = outcome.map(|(outputs, _)| outputs);
        if known.check(form.name(), &outcome) {
            ran += 1;
        } else {
            lacking = lacking.or(lacks(&outcome));
        }
        if form == Form::Into {
            let into =
                |outputs: &mut _| backend.dispatch_borrowed_into(&case.program, &case.input_slices(), &case.config, outputs);
            known.check("dispatch_borrowed_into", &known.with_buffers(into));
        }
        if form == Form::Dispatch {
            let pending = backend.dispatch_async(&case.program, &case.inputs, &case.config);
            known.check("dispatch_async", &pending.and_then(|pending| pending.wait()));
        }
    }
    match (ran, lacking) {
        (0, Some(what)) if [Form::Resident, Form::Sequence].contains(&form) => Done::Skipped(what),
        (0, what) => panic!("nothing could be run by {form}: {}", what.unwrap_or_default()),
        (_, _) => Done::Passed,
    }
}

type Compile = fn(&Arc<dyn VyreBackend>, &Known) -> Result<Option<Arc<dyn CompiledPipeline>>, vyre_driver::BackendError>;

fn every_pipeline(open: &Open, compile: Compile) -> Done {
    let backend = open();
    let has_resident = super::with_resident(open).is_ok();
    let (mut ran, mut missing) = (0, 0);
    for known in programs() {
        let compiled = compile(&backend, &known);
        if lacks(&compiled).is_some() {
            continue;
        }
        match compiled.unwrap_or_else(|error| panic!("{} does not compile: {error}", known.what)) {
            Some(pipeline) => ran += u32::from(every_call(&*backend, &*pipeline, &known, has_resident)),
            None => missing += 1,
        }
    }
    match (ran, missing) {
        (0, 0) => panic!("no program could be run"),
        (0, _) => Done::Skipped("it compiles nothing of its own".into()),
        (_, _) => Done::Passed,
    }
}

/// Every way to call a pipeline; whether it has what the program needs.
fn every_call(backend: &dyn VyreBackend, pipeline: &dyn CompiledPipeline, known: &Known, has_resident: bool) -> bool {
    let (inputs, config) = (&known.case.inputs, &known.case.config);
    let borrowed = known.case.input_slices();
    let mut ran = true;
    // A call may say nothing, all that was said before, or part of it.
    let part = DispatchConfig { specialization: SpecMap::new(), output_counts: BTreeMap::new(), ..config.clone() };
    for (said, config) in [("nothing", &DispatchConfig::default()), ("all", config), ("part", &part)] {
        let mut check = |form: &str, found: Outcome| {
            ran &= known.check(&format!("a pipeline's {form}, and the call says {said}"), &found);
        };
        check("dispatch", pipeline.dispatch(inputs, config));
        check("dispatch_borrowed", pipeline.dispatch_borrowed(&borrowed, config));
        check(
            "dispatch_borrowed_into",
            known.with_buffers(|outputs| pipeline.dispatch_borrowed_into(&borrowed, config, outputs)),
        );
        check("dispatch_borrowed_timed", pipeline.dispatch_borrowed_timed(&borrowed, config).map(|timed| timed.outputs));
        let pending = pipeline.dispatch_borrowed_async(&borrowed, config).and_then(|pending| pending.wait());
        check("dispatch_borrowed_async", pending);
        let batch = pipeline.dispatch_borrowed_batched(&[&borrowed, &borrowed], config);
        check("dispatch_borrowed_batched", batch.map(|batch| agreed(batch, &known.what)));
        let batch = known.with_buffers(|outputs| {
            let mut batch = vec![std::mem::take(outputs), vec![b"mine".to_vec()]];
            let result = pipeline.dispatch_borrowed_batched_into(&[&borrowed, &borrowed], config, &mut batch);
            *outputs = std::mem::take(&mut batch[0]);
            match &result {
                Ok(()) => assert_eq!(batch[1], *outputs, "{}: two of a batch differ", known.what),
                Err(_) => assert_eq!(batch[1], [b"mine"], "{}: a failure changed the caller's buffers", known.what),
            }
            result
        });
        check("dispatch_borrowed_batched_into", batch);
        if !has_resident {
            continue;
        }
        for is_resident in [(|_| false) as fn(usize) -> bool, |n| n % 2 == 1, |_| true] {
            let call = |resources: &[_]| pipeline.dispatch_persistent_handles(resources, config);
            check("dispatch_persistent_handles", on_resources(backend, &known.case, is_resident, call));
            let call = |resources: &[_]| {
                let mut outputs = vec![vec![0xA5; 5000]];
                pipeline.dispatch_persistent_handles_into(resources, config, &mut outputs)?;
                Ok(outputs)
            };
            check("dispatch_persistent_handles_into", on_resources(backend, &known.case, is_resident, call));
        }
    }
    ran
}

fn agreed(batch: Vec<Vec<Vec<u8>>>, what: &str) -> Vec<Vec<u8>> {
    let mut batch = batch.into_iter();
    let (first, second) = (batch.next(), batch.next());
    assert!(first == second && batch.next().is_none(), "{what}: the dispatches of a batch, which are the same, differ");
    first.unwrap_or_default()
}
