//! Faults at every call: a structured error, the caller's buffers untouched, and a correct dispatch afterwards.

mod support;

use std::collections::HashMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Duration;
use support::device::{bound_buffers, device, run};
use vyre_driver::backend::registry::wrap_grid_sync_split;
use vyre_driver::inject::{Fault, FaultPlan, FaultyBackend, Method};
use vyre_driver::pipeline::PipelineCacheSnapshot;
use vyre_driver::{BackendError, DispatchConfig, OutputBuffers, ResidentError, Resource, VyreBackend};
use vyre_foundation::ir::{Access, Program};
use vyre_foundation::text;

/// A program with inputs, and what it must give.
struct Case {
    name: String,
    program: Program,
    inputs: Vec<Vec<u8>>,
    config: DispatchConfig,
    outputs: Vec<Vec<u8>>,
}

impl Case {
    fn borrowed(&self) -> Vec<&[u8]> {
        self.inputs.iter().map(Vec::as_slice).collect()
    }
}

/// The examples, and checks that need no more than bytes.
fn cases() -> Vec<Case> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut paths: Vec<_> = ["examples", "checks/run/barriers", "checks/run/atomics"]
        .iter()
        .flat_map(|folder| fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap().path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "vyre"))
        .collect();
    paths.sort();
    let config = DispatchConfig { timeout: Some(Duration::from_secs(3600)), ..DispatchConfig::default() };
    let mut cases = Vec::new();
    for path in paths {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let program = text::parse(&name, &fs::read_to_string(&path).unwrap()).unwrap();
        let Ok(validated) = program.validated() else { continue };
        let buffers = &validated.kernel().buffers;
        let inputs: Vec<Vec<u8>> = program
            .interface()
            .inputs
            .iter()
            .map(|i| {
                let length = u64::from(buffers[*i].count.unwrap_or(16)) * buffers[*i].element.bits().unwrap_or(32) / 8;
                (0..length).map(|n| if n % 4 == 0 { n as u8 } else { 0 }).collect()
            })
            .collect();
        let borrowed: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
        let Ok(outputs) = run(&program, &borrowed, &config) else { continue };
        if outputs.iter().any(|output| !output.is_empty()) {
            cases.push(Case { name, program, inputs, config: config.clone(), outputs });
        }
    }
    assert!(cases.len() >= 20, "only {} programs", cases.len());
    cases
}

/// The caller's buffers for outputs, filled with what no program gives; and where they are.
fn callers_buffers(case: &Case) -> (OutputBuffers, Vec<*const u8>) {
    let buffers: OutputBuffers = case.outputs.iter().map(|output| vec![0xA5; output.len() + 1]).collect();
    let places = buffers.iter().map(|buffer| buffer.as_ptr()).collect();
    (buffers, places)
}

/// Calls something that fills the caller's buffers: right in the same place, or an error and nothing changed.
fn into(case: &Case, call: impl FnOnce(&mut OutputBuffers) -> Result<(), BackendError>) -> Result<(), BackendError> {
    let (mut buffers, places) = callers_buffers(case);
    let before = buffers.clone();
    let result = catch_unwind(AssertUnwindSafe(|| call(&mut buffers)));
    let now: Vec<*const u8> = buffers.iter().map(|buffer| buffer.as_ptr()).collect();
    assert_eq!(now, places, "{}: the buffers have moved", case.name);
    match &result {
        Ok(Ok(())) => assert_eq!(buffers, case.outputs, "{}", case.name),
        Ok(Err(_)) | Err(_) => assert_eq!(buffers, before, "{}: a failed call changed the caller's buffers", case.name),
    }
    result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn check(case: &Case, outputs: &[Vec<u8>]) {
    assert_eq!(outputs, case.outputs, "{}", case.name);
}

/// Every way to run a program.
fn everything(backend: &FaultyBackend, case: &Case) -> Result<(), BackendError> {
    let Case { program, inputs, config, .. } = case;
    let borrowed = case.borrowed();
    backend.prepare()?;
    check(case, &backend.dispatch(program, inputs, config)?);
    check(case, &backend.dispatch_borrowed(program, &borrowed, config)?);
    into(case, |outputs| backend.dispatch_borrowed_into(program, &borrowed, config, outputs))?;
    check(case, &backend.dispatch_borrowed_timed(program, &borrowed, config)?.outputs);
    check(case, &backend.dispatch_async(program, inputs, config)?.wait()?);
    check(case, &backend.dispatch_borrowed_async(program, &borrowed, config)?.wait()?);

    let pipeline = backend.compile_native(program, config)?.expect("the device compiles");
    check(case, &pipeline.dispatch(inputs, config)?);
    check(case, &pipeline.dispatch_borrowed(&borrowed, config)?);
    into(case, |outputs| pipeline.dispatch_borrowed_into(&borrowed, config, outputs))?;
    check(case, &pipeline.dispatch_borrowed_timed(&borrowed, config)?.outputs);
    for outputs in pipeline.dispatch_borrowed_batched(&[&borrowed, &borrowed], config)? {
        check(case, &outputs);
    }
    into(case, |outputs| {
        // Moved into a batch of two and back, whatever happens.
        let mut batch = vec![std::mem::take(outputs), vec![b"mine".to_vec()]];
        let result = catch_unwind(AssertUnwindSafe(|| {
            pipeline.dispatch_borrowed_batched_into(&[&borrowed, &borrowed], config, &mut batch)
        }));
        *outputs = std::mem::take(&mut batch[0]);
        match &result {
            Ok(Ok(())) => check(case, &batch[1]),
            Ok(Err(_)) | Err(_) => assert_eq!(batch[1], [b"mine"]),
        }
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })?;
    resident(backend, case)?;
    backend.flush()
}

/// All buffers on the device, one of them uploaded in parts.
fn resident(backend: &FaultyBackend, case: &Case) -> Result<(), BackendError> {
    let Case { program, config, .. } = case;
    let interface = program.interface();
    let mut resources = Vec::new();
    let mut uploads = Vec::new();
    for i in bound_buffers(program) {
        let input = interface.inputs.iter().position(|input| *input == i).map(|n| &case.inputs[n]);
        let output = interface.outputs.iter().position(|output| *output == i).map(|n| &case.outputs[n]);
        let length = input.or(output).map_or(0, Vec::len);
        resources.push(backend.allocate_resident(length)?);
        uploads.push(input);
    }
    let inputs: Vec<(&Resource, &[u8])> =
        resources.iter().zip(&uploads).filter_map(|(resource, bytes)| Some((resource, bytes.as_ref()?.as_slice()))).collect();
    for (n, (resource, bytes)) in inputs.iter().enumerate() {
        if n == 0 {
            let middle = bytes.len() / 2;
            backend.upload_resident(resource, &bytes[..middle])?;
            backend.upload_resident_at(resource, middle, &bytes[middle..])?;
        }
    }
    backend.upload_resident_many(&inputs[..inputs.len().min(1)])?;
    let at: Vec<(&Resource, usize, &[u8])> = inputs.iter().map(|(resource, bytes)| (*resource, 0, *bytes)).collect();
    backend.upload_resident_at_many(&at)?;
    let result = backend.dispatch_resident_timed(program, &resources, config)?;
    assert!(result.outputs.is_empty(), "{}: all outputs are resident", case.name);
    for (n, i) in interface.outputs.iter().enumerate() {
        let at = bound_buffers(program).iter().position(|bound| bound == i).unwrap();
        let expected = &case.outputs[n];
        assert_eq!(backend.download_resident(&resources[at])?, *expected, "{}", case.name);
        assert_eq!(backend.download_resident_range(&resources[at], 1, expected.len() - 1)?, expected[1..], "{}", case.name);
        let ranges = [(&resources[at], 0, 1), (&resources[at], expected.len(), 0)];
        assert_eq!(backend.download_resident_ranges(&ranges)?, [expected[..1].to_vec(), vec![]], "{}", case.name);
    }
    // What the program only reads stays on the device; the rest comes back.
    let pipeline = backend.compile_native(program, config)?.expect("the device compiles");
    let mixed: Vec<Resource> = bound_buffers(program)
        .iter()
        .zip(resources.iter().zip(&uploads))
        .map(|(i, (resource, input))| match program.buffers()[*i].access.is_output() {
            true => Resource::Borrowed(input.cloned().unwrap_or_default()),
            false => resource.clone(),
        })
        .collect();
    check(case, &pipeline.dispatch_persistent_handles(&mixed, config)?);
    into(case, |outputs| pipeline.dispatch_persistent_handles_into(&mixed, config, outputs))?;
    resources.into_iter().try_for_each(|resource| backend.free_resident(resource))
}

/// The error that a fault must give, as far as it is the same in every call.
fn is_of(error: &BackendError, fault: Fault, config: &DispatchConfig) -> bool {
    match fault {
        Fault::DeviceLost => matches!(error, BackendError::DeviceLost { .. }),
        Fault::OutOfMemory => matches!(error, BackendError::OutOfMemory { .. }),
        Fault::Timeout | Fault::Hang => {
            matches!(error, BackendError::Timeout { limit } if Some(*limit) == config.timeout || limit.as_secs() == 2)
        }
        Fault::ShortRead => matches!(error, BackendError::ShortRead { expected, found } if found < expected),
        Fault::Panic => false,
    }
}

#[test]
fn without_faults_nothing_fails_and_nothing_stays() {
    let case = &cases()[0];
    let backend = FaultyBackend::new(device(), FaultPlan::none());
    assert_eq!(everything(&backend, case), Ok(()));
    assert_eq!(backend.fired(), []);
    assert_eq!(backend.resident_usage().live_handles, 0);
    assert!(backend.resident_usage().peak_bytes > 0);
    assert_eq!(backend.calls_of(Method::Dispatch), 1);
    assert_eq!(backend.pipeline_cache_snapshot(), Some(PipelineCacheSnapshot { hits: 1, misses: 1 }));
}

#[test]
fn a_fault_at_every_call_of_every_program_is_a_structured_error_and_the_next_dispatch_is_right() {
    // A panic that is asked for is no news.
    std::panic::set_hook(Box::new(|info| {
        if !info.to_string().contains("a fault was injected") {
            eprintln!("{info}");
        }
    }));
    let cases = cases();
    let mut fired = HashMap::new();
    for case in &cases {
        let clean = FaultyBackend::new(device(), FaultPlan::none());
        everything(&clean, case).unwrap();
        for call in 0..clean.calls() {
            for fault in Fault::ALL {
                let backend = FaultyBackend::new(device(), FaultPlan::none().at_call(call, fault));
                let result = catch_unwind(AssertUnwindSafe(|| everything(&backend, case)));
                let what = format!("{}: {fault:?} at call {call}", case.name);
                match (backend.fired().as_slice(), result) {
                    ([], Ok(Ok(()))) => assert_eq!(fault, Fault::ShortRead, "{what}: did not happen"),
                    ([], other) => panic!("{what}: did not happen, and gave {other:?}"),
                    (_, Err(_)) => assert_eq!(fault, Fault::Panic, "{what}"),
                    (happened, Ok(Err(error))) => {
                        assert_eq!(happened, [(call, fault)], "{what}");
                        assert!(is_of(&error, fault, &case.config), "{what}: {error:?}");
                    }
                    (_, Ok(Ok(()))) => panic!("{what}: the error was lost"),
                }
                *fired.entry(fault).or_insert(0) += backend.fired().len();
                let lost = matches!(fault, Fault::DeviceLost | Fault::Hang);
                assert_eq!(backend.device_lost(), lost, "{what}");
                if lost {
                    let refused = into(case, |outputs| {
                        backend.dispatch_borrowed_into(&case.program, &case.borrowed(), &case.config, outputs)
                    });
                    assert!(matches!(refused, Err(BackendError::DeviceLost { .. })), "{what}: {refused:?}");
                    assert_eq!(backend.resident_usage().live_handles, 0, "{what}");
                    assert_eq!(backend.try_recover(), Ok(()), "{what}");
                    assert!(!backend.device_lost(), "{what}");
                }
                into(case, |outputs| backend.dispatch_borrowed_into(&case.program, &case.borrowed(), &case.config, outputs))
                    .unwrap();
                assert_eq!(everything(&backend, case), Ok(()), "{what}: afterwards");
            }
        }
    }
    for fault in Fault::ALL {
        assert!(fired.get(&fault).is_some_and(|count| *count > 100), "{fault:?} happened {:?} times", fired.get(&fault));
    }
}

#[test]
fn a_fault_at_every_call_between_grid_barriers_leaves_nothing_behind() {
    let program = text::parse(
        "phases",
        "program phases {
          workgroup 2
          buffer x: read_write u32[4] @0
          buffer out: output u32[4] @1
          let old = x[gid.x]
          x[gid.x] = 7
          if old == 99 { trap(1) }
          barrier.grid
          x[gid.x] = x[3 - gid.x] + old
          barrier.grid
          out[gid.x] = old * 10 + x[gid.x]
        }",
    )
    .unwrap();
    let config = DispatchConfig::default();
    let input: Vec<u8> = [1u32, 2, 3, 4].iter().flat_map(|word| word.to_le_bytes()).collect();
    let case =
        Case { name: "phases".into(), outputs: run(&program, &[&input], &config).unwrap(), inputs: vec![input], program, config };
    // Each form gives the outputs; the last has everything on the device.
    type Form = fn(&dyn VyreBackend, &Case) -> Result<(), BackendError>;
    let forms: [(&str, Form); 4] = [
        ("borrowed", |backend, case| {
            backend.dispatch_borrowed(&case.program, &case.borrowed(), &case.config).map(|outputs| check(case, &outputs))
        }),
        ("into", |backend, case| {
            into(case, |outputs| backend.dispatch_borrowed_into(&case.program, &case.borrowed(), &case.config, outputs))
        }),
        ("timed", |backend, case| {
            backend
                .dispatch_borrowed_timed(&case.program, &case.borrowed(), &case.config)
                .map(|timed| check(case, &timed.outputs))
        }),
        ("mixed", |backend, case| {
            let resources = [Resource::Borrowed(case.inputs[0].clone()), Resource::Borrowed(vec![0; 16])];
            backend.dispatch_resident_timed(&case.program, &resources, &case.config).map(|timed| check(case, &timed.outputs))
        }),
    ];
    for (name, form) in forms {
        let clean = FaultyBackend::new(device(), FaultPlan::none());
        form(&*wrap_grid_sync_split(Box::new(clean.clone())), &case).unwrap();
        let methods = [
            Method::DispatchBorrowed,
            Method::DispatchBorrowedTimed,
            Method::DispatchResidentTimed,
            Method::AllocateResident,
            Method::DownloadResidentRange,
            Method::FreeResident,
        ];
        let calls: Vec<(Method, u64)> =
            methods.iter().flat_map(|method| (0..clean.calls_of(*method)).map(move |n| (*method, n))).collect();
        assert!(calls.len() >= 3 && calls.len() as u64 == clean.calls(), "{name} runs segments: {calls:?}");
        for (method, n) in calls {
            for fault in Fault::ALL {
                let what = format!("{name}: {fault:?} at {method:?} {n}");
                let faulty = FaultyBackend::new(device(), FaultPlan::none().at_call_of(method, n, fault));
                let backend = wrap_grid_sync_split(Box::new(faulty.clone()));
                let result = catch_unwind(AssertUnwindSafe(|| form(&*backend, &case)));
                // That hidden memory cannot be given back is nothing that a caller can do something about: it is told only by a
                // device that is lost and is needed again.
                let given_back = method != Method::FreeResident;
                match &result {
                    Ok(Err(BackendError::DeviceLost { .. })) if fault == Fault::Hang && !given_back => {}
                    Ok(Err(error)) => assert!(is_of(error, fault, &case.config), "{what}: {error:?}"),
                    Err(_) => assert_eq!(fault, Fault::Panic, "{what}"),
                    Ok(Ok(())) => assert!(faulty.fired().is_empty() || !given_back, "{what}: the error was lost"),
                }
                if faulty.device_lost() || given_back {
                    assert_eq!(faulty.resident_usage().live_handles, 0, "{what}: hidden memory is left");
                }
                if faulty.device_lost() {
                    backend.try_recover().unwrap();
                }
                assert_eq!(form(&*backend, &case), Ok(()), "{what}: afterwards");
            }
        }
    }
}

/// A program that adds one, in place.
fn increment() -> (Program, DispatchConfig) {
    let program = text::parse(
        "increment",
        "program increment {\n  workgroup 4\n  buffer x: read_write u32 @0\n\n  if gid.x < len(x) {\n    x[gid.x] = x[gid.x] + 1\n  }\n}\n",
    )
    .unwrap();
    assert_eq!(program.buffers()[0].access, Access::ReadWrite);
    (program, DispatchConfig::default())
}

#[test]
fn a_loss_makes_handles_pipelines_and_pending_dispatches_of_before_useless() {
    let (program, config) = increment();
    let input = vec![1, 0, 0, 0];
    let backend = FaultyBackend::new(device(), FaultPlan::none().at_call_of(Method::Flush, 1, Fault::DeviceLost));
    let resource = backend.allocate_resident(4).unwrap();
    let Resource::Resident(handle) = resource else { panic!("a handle") };
    let pipeline = backend.compile_native(&program, &config).unwrap().unwrap();
    let pending = backend.dispatch_async(&program, std::slice::from_ref(&input), &config).unwrap();
    backend.flush().unwrap();
    assert!(matches!(backend.flush(), Err(BackendError::DeviceLost { .. })));
    assert!(backend.device_lost());
    assert!(matches!(pending.wait(), Err(BackendError::DeviceLost { .. })));
    backend.try_recover().unwrap();
    assert!(!backend.device_lost());
    let stale = BackendError::Resident(ResidentError::Stale(handle));
    assert_eq!(backend.download_resident(&resource), Err(stale.clone()));
    assert_eq!(backend.upload_resident(&resource, &input), Err(stale.clone()));
    assert_eq!(backend.dispatch_resident_timed(&program, std::slice::from_ref(&resource), &config), Err(stale.clone()));
    assert_eq!(backend.free_resident(resource), Err(stale));
    assert!(matches!(pipeline.dispatch(std::slice::from_ref(&input), &config), Err(BackendError::DeviceLost { .. })));
    let again = backend.compile_native(&program, &config).unwrap().unwrap();
    assert_eq!(again.dispatch(&[input], &config), Ok(vec![vec![2, 0, 0, 0]]));
}

#[test]
fn a_begun_dispatch_fails_when_it_is_waited_for_and_memory_lacks_at_once() {
    let (program, config) = increment();
    let inputs = [vec![1, 0, 0, 0]];
    for fault in [Fault::DeviceLost, Fault::Timeout, Fault::Hang, Fault::ShortRead] {
        let backend = FaultyBackend::new(device(), FaultPlan::none().at_call_of(Method::DispatchAsync, 0, fault));
        let pending = backend.dispatch_async(&program, &inputs, &config).unwrap();
        assert!(pending.is_ready());
        assert_eq!(backend.fired(), []);
        assert!(is_of(&pending.wait().unwrap_err(), fault, &config));
        assert_eq!(backend.fired(), [(0, fault)]);
    }
    let backend = FaultyBackend::new(device(), FaultPlan::none().at_call(0, Fault::OutOfMemory));
    let error = backend.dispatch_async(&program, &inputs, &config).map(drop).unwrap_err();
    assert_eq!(error, BackendError::OutOfMemory { requested: 4 });
}

#[test]
fn errors_about_handles_name_the_callers() {
    let (program, config) = increment();
    let (one, other) = (FaultyBackend::new(device(), FaultPlan::none()), FaultyBackend::new(device(), FaultPlan::none()));
    let resource = one.allocate_resident(4).unwrap();
    let Resource::Resident(handle) = resource else { panic!("a handle") };
    let foreign = BackendError::Resident(ResidentError::Foreign(handle));
    assert_eq!(other.download_resident(&resource), Err(foreign.clone()));
    assert_eq!(other.dispatch_resident_timed(&program, std::slice::from_ref(&resource), &config), Err(foreign));
    let out_of_range = ResidentError::OutOfRange { handle, offset: 2, length: 3, size: 4 };
    assert_eq!(one.upload_resident_at(&resource, 2, &[0; 3]), Err(BackendError::Resident(out_of_range.clone())));
    assert_eq!(one.download_resident_range(&resource, 2, 3), Err(BackendError::Resident(out_of_range)));
    one.free_resident(resource.clone()).unwrap();
    assert_eq!(one.free_resident(resource), Err(BackendError::Resident(ResidentError::Freed(handle))));
    assert_eq!(one.download_resident(&Resource::Borrowed(vec![])), Err(BackendError::Resident(ResidentError::NotResident)));
}

#[test]
fn one_handle_for_two_buffers_with_a_writer_is_refused_by_name() {
    let program = text::parse(
        "copy",
        "program copy {\n  workgroup 4\n  buffer a: read u32 @0\n  buffer b: read_write u32 @1\n\n  b[gid.x] = a[gid.x]\n}\n",
    )
    .unwrap();
    let backend = FaultyBackend::new(device(), FaultPlan::none());
    let resource = backend.allocate_resident(16).unwrap();
    let Resource::Resident(handle) = resource else { panic!("a handle") };
    let error = backend.dispatch_resident_timed(&program, &[resource.clone(), resource], &DispatchConfig::default());
    assert_eq!(error, Err(BackendError::Resident(ResidentError::Aliased(handle))));
}

#[test]
fn fault_plans_count_calls_of_one_method_and_of_all() {
    let (program, config) = increment();
    let inputs = [vec![1, 0, 0, 0]];
    let plan = FaultPlan::none().at_call_of(Method::Dispatch, 1, Fault::Timeout).at_call(4, Fault::OutOfMemory);
    let backend = FaultyBackend::new(device(), plan);
    let results: Vec<bool> = [true, false, true, false, true]
        .iter()
        .map(|dispatch| if *dispatch { backend.dispatch(&program, &inputs, &config).is_ok() } else { backend.flush().is_ok() })
        .collect();
    assert_eq!(results, [true, true, false, true, false]);
    assert_eq!(backend.fired(), [(2, Fault::Timeout), (4, Fault::OutOfMemory)]);
    assert_eq!((backend.calls(), backend.calls_of(Method::Dispatch), backend.calls_of(Method::Flush)), (5, 3, 2));
}
