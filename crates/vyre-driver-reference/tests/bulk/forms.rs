//! Every way to run a program, on generated programs.

use crate::{Case, Outcome, bulk, generated, meaning, program, slices, words};
use std::collections::BTreeMap;
use std::sync::Arc;
use vyre_driver::backend::private::Sealed;
use vyre_driver::backend::registry::wrap_grid_sync_split;
use vyre_driver::specialization::SpecMap;
use vyre_driver::{
    BackendError, CompiledPipeline, DispatchConfig, OutputBuffers, Resource, TimedDispatchResult, VyreBackend, pipeline,
};
use vyre_foundation::ir::Program;
use vyre_foundation::launch::plan;

/// What a way to run into the caller's buffers gives. Their list stays where it is, and after a failure everything as it is.
pub fn into(case: &Case, call: impl FnOnce(&mut OutputBuffers) -> Result<(), BackendError>) -> Outcome {
    let lengths: Vec<usize> = case.expected.iter().flatten().map(|output| output.len() + 1).collect();
    let mut buffers: OutputBuffers = lengths.iter().map(|length| vec![0xA5; *length]).collect();
    // One more than there are outputs.
    buffers.push(vec![0xA5; 3]);
    let before = buffers.clone();
    let places = |buffers: &OutputBuffers| -> Vec<*const u8> { buffers.iter().map(|buffer| buffer.as_ptr()).collect() };
    let (place, at) = (buffers.as_ptr(), places(&buffers));
    let result = call(&mut buffers);
    assert_eq!(buffers.as_ptr(), place, "{}", case.what);
    match result {
        Ok(()) => Ok(buffers),
        Err(error) => {
            assert!(places(&buffers) == at && buffers == before, "{}: a failure changed the buffers", case.what);
            Err(error)
        }
    }
}

/// The buffers of a dispatch as resources, those whose number `is_resident` accepts on the device.
pub struct Bound {
    /// The program with its constants replaced.
    program: Program,
    pub resources: Vec<Resource>,
    /// By resource: what it held at first.
    before: Vec<Vec<u8>>,
}

impl Bound {
    pub fn new(backend: &dyn VyreBackend, case: &Case, is_resident: impl Fn(usize) -> bool) -> Bound {
        let program = case.config.specialization.apply(&case.program).unwrap();
        let sizes: Vec<u64> = case.inputs.iter().map(|input| input.len() as u64).collect();
        let launch = plan(&program, &sizes, &case.config.launch()).unwrap();
        let mut inputs = case.inputs.iter();
        let (mut resources, mut before) = (Vec::new(), Vec::new());
        for (n, i) in program.interface().bound.iter().enumerate() {
            let access = program.buffers()[*i].access;
            // What an output held before must not be seen.
            let bytes = match access.is_input() {
                true => inputs.next().unwrap().clone(),
                false => vec![0x55; launch.bytes[*i] as usize],
            };
            resources.push(match is_resident(n) {
                true => {
                    let resource = backend.allocate_resident(bytes.len()).unwrap();
                    backend.upload_resident(&resource, &bytes).unwrap();
                    resource
                }
                // Only a place for what comes back.
                false if !access.is_input() => Resource::Borrowed(Vec::new()),
                false => Resource::Borrowed(bytes.clone()),
            });
            before.push(bytes);
        }
        Bound { program, resources, before }
    }

    /// The outputs of a dispatch that returned these: what is resident is downloaded. After a failure nothing has changed.
    pub fn outputs(&self, backend: &dyn VyreBackend, returned: Outcome) -> Outcome {
        let is_resident = |resource: &Resource| matches!(resource, Resource::Resident(_));
        let mut returned = match returned {
            Ok(returned) => returned.into_iter(),
            Err(error) => {
                for (resource, before) in self.resources.iter().zip(&self.before).filter(|(resource, _)| is_resident(resource)) {
                    assert_eq!(backend.download_resident(resource).unwrap(), *before, "{error}");
                }
                return Err(error);
            }
        };
        let mut outputs = Vec::new();
        for ((i, resource), before) in self.program.interface().bound.iter().zip(&self.resources).zip(&self.before) {
            match (self.program.buffers()[*i].access.is_output(), resource) {
                (true, Resource::Resident(_)) => outputs.push(backend.download_resident(resource).unwrap()),
                (true, Resource::Borrowed(_)) => outputs.push(returned.next().unwrap()),
                (false, Resource::Resident(_)) => assert_eq!(backend.download_resident(resource).unwrap(), *before),
                (false, Resource::Borrowed(_)) => {}
            }
        }
        assert_eq!(returned.next(), None, "nothing comes back for what is resident");
        Ok(outputs)
    }

    pub fn free(self, backend: &dyn VyreBackend) {
        for resource in self.resources.into_iter().filter(|resource| matches!(resource, Resource::Resident(_))) {
            backend.free_resident(resource).unwrap();
        }
    }
}

/// One dispatch on resources.
pub fn resident(
    backend: &dyn VyreBackend,
    case: &Case,
    is_resident: impl Fn(usize) -> bool,
    call: impl FnOnce(&[Resource]) -> Outcome,
) -> Outcome {
    let bound = Bound::new(backend, case, is_resident);
    let outcome = bound.outputs(backend, call(&bound.resources));
    bound.free(backend);
    outcome
}

fn check(case: &Case, form: &str, found: Outcome) {
    assert!(found == case.expected, "{} by {form}: {found:?}, not {:?}\n{}", case.what, case.expected, case.program);
}

/// Every way to run a case on a backend.
pub fn every_form(backend: &Arc<dyn VyreBackend>, case: &Case) {
    let Case { program, inputs, config, .. } = case;
    let borrowed = slices(inputs);
    let outputs = |timed: TimedDispatchResult| timed.outputs;
    check(case, "dispatch", backend.dispatch(program, inputs, config));
    check(case, "dispatch_borrowed", backend.dispatch_borrowed(program, &borrowed, config));
    check(case, "_into", into(case, |outputs| backend.dispatch_borrowed_into(program, &borrowed, config, outputs)));
    check(case, "_timed", backend.dispatch_borrowed_timed(program, &borrowed, config).map(outputs));
    check(case, "_async", backend.dispatch_async(program, inputs, config).and_then(|pending| pending.wait()));
    check(
        case,
        "_borrowed_async",
        backend.dispatch_borrowed_async(program, &borrowed, config).and_then(|pending| pending.wait()),
    );
    for (form, is_resident) in [("none", (|_| false) as fn(usize) -> bool), ("half", |n| n % 2 == 0), ("all", |_| true)] {
        let found = resident(&**backend, case, is_resident, |resources| {
            backend.dispatch_resident_timed(program, resources, config).map(outputs)
        });
        check(case, &format!("dispatch_resident_timed, {form} resident"), found);
    }
    // The generator also makes programs with raw top-level statements, of which `compile` makes no pipelines.
    match pipeline::compile(backend.clone(), program, config) {
        Ok(pipeline) => every_pipeline_form(backend, case, "compile", &*pipeline),
        Err(error) => assert!(!program.is_wrapped(), "{}: {error}", case.what),
    }
    every_pipeline_form(backend, case, "compile_native", &*backend.compile_native(program, config).unwrap().unwrap());
}

fn every_pipeline_form(backend: &Arc<dyn VyreBackend>, case: &Case, by: &str, pipeline: &dyn CompiledPipeline) {
    let Case { inputs, config, .. } = case;
    let borrowed = slices(inputs);
    // A call may say nothing, all that was said before, or part of it.
    let part = DispatchConfig { specialization: SpecMap::new(), output_counts: BTreeMap::new(), ..config.clone() };
    for (said, config) in [("nothing", &DispatchConfig::default()), ("all", config), ("part", &part)] {
        let form = |form: &str| format!("{by}, {form}, config says {said}");
        check(case, &form("dispatch"), pipeline.dispatch(inputs, config));
        check(case, &form("dispatch_borrowed"), pipeline.dispatch_borrowed(&borrowed, config));
        check(case, &form("_into"), into(case, |outputs| pipeline.dispatch_borrowed_into(&borrowed, config, outputs)));
        check(case, &form("_timed"), pipeline.dispatch_borrowed_timed(&borrowed, config).map(|timed| timed.outputs));
        let batched = pipeline.dispatch_borrowed_batched(&[&borrowed, &borrowed], config);
        check(case, &form("_batched"), batched.map(|batched| batched.into_iter().reduce(same).unwrap()));
        let batched = into(case, |outputs| {
            let mut batch = vec![std::mem::take(outputs), vec![b"mine".to_vec()]];
            let result = pipeline.dispatch_borrowed_batched_into(&[&borrowed, &borrowed], config, &mut batch);
            *outputs = std::mem::take(&mut batch[0]);
            match &result {
                Ok(()) => assert_eq!(batch[1], *outputs),
                Err(_) => assert_eq!(batch[1], [b"mine"]),
            }
            result
        });
        check(case, &form("_batched_into"), batched);
        for is_resident in [(|_| false) as fn(usize) -> bool, |n| n % 2 == 1, |_| true] {
            let found =
                resident(&**backend, case, is_resident, |resources| pipeline.dispatch_persistent_handles(resources, config));
            check(case, &form("_persistent_handles"), found);
            let found = resident(&**backend, case, is_resident, |resources| {
                let mut outputs = vec![vec![0xA5; 5000]];
                pipeline.dispatch_persistent_handles_into(resources, config, &mut outputs)?;
                Ok(outputs)
            });
            check(case, &form("_persistent_handles_into"), found);
        }
    }
}

fn same(one: OutputBuffers, other: OutputBuffers) -> OutputBuffers {
    assert_eq!(one, other);
    one
}

#[test]
fn every_form_gives_what_the_reference_gives() {
    let backend = bulk();
    // About one in a hundred traps.
    let cases = generated(11, 800);
    for case in &cases {
        every_form(&backend, case);
    }
    let traps = cases.iter().filter(|case| case.expected.is_err()).count();
    let constants = cases.iter().filter(|case| !case.config.specialization.is_empty()).count();
    // Errors and constants go through every form too.
    assert!(traps > 0 && constants > 0, "{traps} traps, {constants} with values for constants");
}

#[test]
fn dispatches_over_the_same_handles_see_what_those_before_left() {
    let backend = bulk();
    let mut changed = 0;
    for case in generated(12, 1000) {
        let bound = Bound::new(&*backend, &case, |_| true);
        let pipeline = backend.compile_native(&case.program, &case.config).unwrap().unwrap();
        let interface = bound.program.interface();
        let mut inputs = case.inputs.clone();
        let mut outputs = None;
        for step in 0..4 {
            let expected = meaning(&case.program, &slices(&inputs), &case.config);
            let found = match step % 2 {
                0 => pipeline.dispatch_persistent_handles(&bound.resources, &DispatchConfig::default()),
                _ => backend.dispatch_resident_timed(&case.program, &bound.resources, &case.config).map(|timed| timed.outputs),
            };
            assert_eq!(found.err(), expected.as_ref().err().cloned(), "{} at step {step}", case.what);
            let Ok(expected) = expected else { continue };
            for (n, i) in interface.inputs.iter().enumerate() {
                if let Some(output) = interface.outputs.iter().position(|output| output == i) {
                    changed += u32::from(inputs[n] != expected[output]);
                    inputs[n] = expected[output].clone();
                }
            }
            outputs = Some(expected);
        }
        if let Some(expected) = outputs {
            assert_eq!(bound.outputs(&*backend, Ok(vec![])), Ok(expected), "{}", case.what);
        }
        bound.free(&*backend);
    }
    assert!(changed > 150, "only {changed} times did a dispatch leave something to the next");
}

#[test]
fn programs_hand_on_through_memory_that_stays() {
    let backend = bulk();
    let step = |from: &str, to: &str, op: &str| {
        program(&format!(
            "program step {{\n  workgroup 4\n  buffer {from}: read u32 @0\n  buffer {to}: output u32 @1\n  if gid.x < len({to}) {{\n    \
             {to}[gid.x] = {from}[gid.x] {op}\n  }}\n}}\n"
        ))
    };
    let [a, b] = [(); 2].map(|()| backend.allocate_resident(40).unwrap());
    backend.upload_resident(&a, &words(0..10)).unwrap();
    let there = [a.clone(), b.clone()];
    let back = [b.clone(), a.clone()];
    for _ in 0..5 {
        for (program, resources) in [(step("x", "y", "+ 1"), &there), (step("y", "x", "* 2"), &back)] {
            let result = backend.dispatch_resident_timed(&program, resources, &DispatchConfig::default()).unwrap();
            assert_eq!(result.outputs, Vec::<Vec<u8>>::new());
        }
    }
    let mut expected: Vec<u32> = (0..10).collect();
    (0..5).for_each(|_| expected.iter_mut().for_each(|x| *x = (*x + 1) * 2));
    assert_eq!(backend.download_resident(&a), Ok(words(expected)));
}

/// The bulk backend as if it had no grid barriers.
struct Split(Arc<dyn VyreBackend>);

impl Sealed for Split {}

impl VyreBackend for Split {
    fn id(&self) -> &'static str {
        "split"
    }

    fn dispatch(&self, program: &Program, inputs: &[Vec<u8>], config: &DispatchConfig) -> Outcome {
        self.0.dispatch(program, inputs, config)
    }

    fn allocate_resident(&self, byte_len: usize) -> Result<Resource, BackendError> {
        self.0.allocate_resident(byte_len)
    }

    fn upload_resident_at_many(&self, uploads: &[(&Resource, usize, &[u8])]) -> Result<(), BackendError> {
        self.0.upload_resident_at_many(uploads)
    }

    fn download_resident(&self, resource: &Resource) -> Result<Vec<u8>, BackendError> {
        self.0.download_resident(resource)
    }

    fn download_resident_ranges(&self, ranges: &[(&Resource, usize, usize)]) -> Result<Vec<Vec<u8>>, BackendError> {
        self.0.download_resident_ranges(ranges)
    }

    fn free_resident(&self, resource: Resource) -> Result<(), BackendError> {
        self.0.free_resident(resource)
    }

    fn dispatch_resident_timed(
        &self,
        program: &Program,
        resources: &[Resource],
        config: &DispatchConfig,
    ) -> Result<TimedDispatchResult, BackendError> {
        self.0.dispatch_resident_timed(program, resources, config)
    }
}

#[test]
fn grid_barriers_in_one_dispatch_and_in_several_leave_the_same_resident_data() {
    let native = bulk();
    let split = wrap_grid_sync_split(Box::new(Split(native.clone())));
    let mut seen = 0;
    for case in generated(13, 600).iter().filter(|case| vyre_driver::grid_sync::contains_grid_sync(&case.program)) {
        seen += 1;
        for backend in [&*native, &*split] {
            let found = Bound::new(backend, case, |_| true);
            let returned = backend.dispatch_resident_timed(&case.program, &found.resources, &case.config);
            match &case.expected {
                Ok(_) => assert_eq!(found.outputs(backend, returned.map(|timed| timed.outputs)), case.expected, "{}", case.what),
                // Segments before the trap may have written.
                Err(error) => assert_eq!(returned.as_ref().err(), Some(error), "{}", case.what),
            }
            found.free(backend);
        }
    }
    assert!(seen > 20, "only {seen} programs with grid barriers");
    // Lengths that only the memory knows.
    let program = program(
        "program p {\n  workgroup 2\n  buffer out: output u32 @0\n  let x = gid.x * len(out)\n  let y = out[gid.x] + x\n  \
         out[gid.x] = 1\n  barrier.grid\n  out[gid.x] = out[(gid.x + 1) % len(out)] + y\n}\n",
    );
    for backend in [&*native, &*split] {
        let out = backend.allocate_resident(24).unwrap();
        backend.dispatch_resident_timed(&program, std::slice::from_ref(&out), &DispatchConfig::default()).unwrap();
        assert_eq!(backend.download_resident(&out), Ok(words((0..6).map(|x| 6 * x + 1))));
    }
}
