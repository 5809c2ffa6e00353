//! Faults at every call of a device, through every form: a typed error, the caller's buffers and resident data untouched, and correct
//! dispatches afterwards.

mod support;

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use support::device::{bound_buffers, host, info, run};
use vyre_driver::backend::registry::wrap_grid_sync_split;
use vyre_driver::device::inject::{Fault, FaultPlan, FaultyDevice, Method};
use vyre_driver::device::{HostDevice, backend};
use vyre_driver::pipeline::{self, PipelineCacheSnapshot};
use vyre_driver::{
    BackendError, DispatchConfig, OutputBuffers, ResidentError, ResidentRange, ResidentStep, Resource, VyreBackend,
};
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
        // With a limit, resident data is written as a copy; without, in place.
        let timeout = (cases.len() % 2 == 0).then_some(Duration::from_secs(3600));
        let config = DispatchConfig { timeout, ..DispatchConfig::default() };
        let borrowed: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
        let Ok(outputs) = run(&program, &borrowed, &config) else { continue };
        if outputs.iter().any(|output| !output.is_empty()) {
            cases.push(Case { name, program, inputs, config, outputs });
        }
    }
    assert!(cases.len() >= 20, "only {} programs", cases.len());
    cases
}

/// Calls something that fills the caller's buffers: right, or an error and nothing changed.
fn into(case: &Case, call: impl FnOnce(&mut OutputBuffers) -> Result<(), BackendError>) -> Result<(), BackendError> {
    // What no program gives.
    let mut buffers: OutputBuffers = case.outputs.iter().map(|output| vec![0xA5; output.len() + 1]).collect();
    let places = |buffers: &OutputBuffers| buffers.iter().map(|buffer| buffer.as_ptr()).collect::<Vec<_>>();
    let (before, places_before) = (buffers.clone(), places(&buffers));
    let result = catch_unwind(AssertUnwindSafe(|| call(&mut buffers)));
    match &result {
        Ok(Ok(())) => assert_eq!(buffers, case.outputs, "{}", case.name),
        Ok(Err(_)) | Err(_) => {
            assert_eq!(buffers, before, "{}: a failed call changed the caller's buffers", case.name);
            assert_eq!(places(&buffers), places_before, "{}: a failed call moved the caller's buffers", case.name);
        }
    }
    result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn check(case: &Case, outputs: &[Vec<u8>]) {
    assert_eq!(outputs, case.outputs, "{}", case.name);
}

/// A device with faults and a backend over it.
struct Subject {
    device: FaultyDevice,
    backend: Arc<dyn VyreBackend>,
}

impl Subject {
    fn new(plan: FaultPlan) -> Subject {
        let device = FaultyDevice::new(Arc::new(host()), plan);
        let backend = Arc::from(backend(Arc::new(device.clone())));
        Subject { device, backend }
    }

    /// The same over a device whose memory is not the host's and which takes few workgroups at a time.
    fn far(plan: FaultPlan) -> Subject {
        let mut info = info();
        info.capabilities.host_memory = false;
        info.capabilities.interruptible = false;
        info.limits.groups_per_call = 2;
        let device = FaultyDevice::new(Arc::new(HostDevice::new(support::device::Kernels { info })), plan);
        let backend = Arc::from(backend(Arc::new(device.clone())));
        Subject { device, backend }
    }

    fn live_handles(&self) -> u64 {
        metric(&*self.backend, "resident_live_handles")
    }
}

fn metric(backend: &dyn VyreBackend, name: &str) -> u64 {
    backend.backend_metric_snapshot().iter().find(|(known, _)| *known == name).expect("it is counted").1
}

/// Every way to run a program.
fn everything(subject: &Subject, case: &Case) -> Result<(), BackendError> {
    let Subject { backend, .. } = subject;
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
    check(case, &pipeline.dispatch_borrowed_async(&borrowed, config)?.wait()?);
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
    resident(&**backend, case)?;
    sequence(&**backend, case)?;
    backend.flush()
}

/// All buffers on the device, one of them uploaded in parts.
fn resident(backend: &dyn VyreBackend, case: &Case) -> Result<(), BackendError> {
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
    // Filled, so that a dispatch that fails is seen to have changed nothing.
    for (resource, input) in resources.iter().zip(&uploads).filter(|(_, input)| input.is_none()) {
        assert_eq!(*input, None);
        let size = backend.resident_size(resource)? as usize;
        backend.upload_resident(resource, &vec![0xA5; size])?;
    }
    let result = keeping(backend, &resources, || backend.dispatch_resident_timed(program, &resources, config))?;
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

/// Calls something that leaves resident data as they are if it fails.
fn keeping<R>(
    backend: &dyn VyreBackend,
    resources: &[Resource],
    call: impl FnOnce() -> Result<R, BackendError>,
) -> Result<R, BackendError> {
    let all = || resources.iter().map(|resource| backend.download_resident(resource)).collect::<Result<Vec<_>, _>>();
    let before = all()?;
    let result = catch_unwind(AssertUnwindSafe(call));
    if !matches!(result, Ok(Ok(_))) && !backend.device_lost() {
        assert_eq!(all(), Ok(before), "a failed dispatch changed resident data");
    }
    result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Everything in one submission: inputs up, the dispatch on a part of larger memory, a copy on the device, outputs down.
fn sequence(backend: &dyn VyreBackend, case: &Case) -> Result<(), BackendError> {
    const BEFORE: usize = 8;
    let Case { program, config, .. } = case;
    let interface = program.interface();
    let bound = bound_buffers(program);
    let input = |i: usize| interface.inputs.iter().position(|input| *input == i).map(|n| &case.inputs[n]);
    let output = |i: usize| interface.outputs.iter().position(|output| *output == i).map(|n| &case.outputs[n]);
    let length = |i: usize| input(i).or(output(i)).map_or(0, Vec::len);
    let resources: Vec<Resource> =
        bound.iter().map(|i| backend.allocate_resident(length(*i) + 2 * BEFORE)).collect::<Result<_, _>>()?;
    let copies: BTreeMap<usize, Resource> = interface
        .outputs
        .iter()
        .map(|i| Ok((*i, backend.allocate_resident(length(*i))?)))
        .collect::<Result<_, BackendError>>()?;
    let bystander = backend.allocate_resident(4)?;
    backend.upload_resident(&bystander, &[1, 2, 3, 4])?;
    let range = |n: usize, i: usize| ResidentRange { resource: &resources[n], offset: BEFORE, length: Some(length(i)) };
    let mut steps = Vec::new();
    for (n, i) in bound.iter().enumerate() {
        if let Some(bytes) = input(*i) {
            steps.push(ResidentStep::Upload { to: range(n, *i), bytes });
        }
    }
    let bindings = bound.iter().enumerate().map(|(n, i)| range(n, *i)).collect();
    steps.push(ResidentStep::Dispatch { program, config, bindings });
    for (n, i) in bound.iter().enumerate().filter(|(_, i)| output(**i).is_some()) {
        steps.push(ResidentStep::Copy { from: range(n, *i), to: (&copies[i]).into() });
        steps.push(ResidentStep::Download(range(n, *i)));
        steps.push(ResidentStep::Download((&copies[i]).into()));
    }
    let result = backend.submit_resident(&steps, config).and_then(|pending| pending.wait_ran());
    if result.is_err() && !backend.device_lost() {
        assert_eq!(backend.download_resident(&bystander), Ok(vec![1, 2, 3, 4]));
    }
    let (reads, ran) = result?;
    let expected: Vec<&Vec<u8>> = bound.iter().filter_map(|i| output(*i)).flat_map(|output| [output, output]).collect();
    assert_eq!(reads.iter().collect::<Vec<_>>(), expected, "{}", case.name);
    assert!(!ran.is_empty(), "{}: what ran is told", case.name);
    for (resource, i) in resources.iter().zip(&bound) {
        let bytes = backend.download_resident(resource)?;
        let around = [&bytes[..BEFORE], &bytes[BEFORE + length(*i)..]];
        assert_eq!(around, [[0; BEFORE]; 2], "{}: bytes beside the range are not touched", case.name);
    }
    resources.into_iter().chain(copies.into_values()).chain([bystander]).try_for_each(|resource| backend.free_resident(resource))
}

/// The error that a fault must give, as far as it is the same in every call.
fn is_of(error: &BackendError, fault: Fault, config: &DispatchConfig) -> bool {
    match fault {
        Fault::DeviceLost => matches!(error, BackendError::DeviceLost { .. }),
        Fault::OutOfMemory => matches!(error, BackendError::OutOfMemory { .. }),
        Fault::Timeout | Fault::Hang => {
            matches!(error, BackendError::Timeout { limit } if Some(*limit) == config.timeout || limit.is_zero())
        }
        Fault::ShortRead => matches!(error, BackendError::ShortRead { expected, found } if found < expected),
        Fault::Panic => false,
    }
}

#[test]
fn without_faults_nothing_fails_and_nothing_stays() {
    for make in [Subject::new, Subject::far] {
        let case = &cases()[0];
        let subject = make(FaultPlan::none());
        assert_eq!(everything(&subject, case), Ok(()));
        assert_eq!(subject.device.fired(), []);
        assert_eq!(subject.live_handles(), 0);
        assert!(metric(&*subject.backend, "resident_peak_bytes") > 0);
        assert_eq!(subject.device.calls_of(Method::Compile), 1);
        assert_eq!(subject.backend.pipeline_cache_snapshot().map(|seen| seen.misses), Some(1));
    }
}

/// Faults at every call of every form of one program.
fn every_fault(case: &Case, make: fn(FaultPlan) -> Subject, fired: &mut HashMap<Fault, usize>) {
    let clean = make(FaultPlan::none());
    everything(&clean, case).unwrap();
    for call in 0..clean.device.calls() {
        for fault in Fault::ALL {
            let subject = make(FaultPlan::none().at_call(call, fault));
            let backend = &subject.backend;
            let result = catch_unwind(AssertUnwindSafe(|| everything(&subject, case)));
            let what = format!("{}: {fault:?} at call {call}", case.name);
            match (subject.device.fired().as_slice(), result) {
                ([], Ok(Ok(()))) => assert_eq!(fault, Fault::ShortRead, "{what}: did not happen"),
                ([], other) => panic!("{what}: did not happen, and gave {other:?}"),
                (_, Err(panic)) => {
                    let said = panic.downcast_ref::<&str>().copied();
                    assert_eq!((fault, said), (Fault::Panic, Some("a fault was injected")), "{what}");
                }
                (happened, Ok(Err(error))) => {
                    assert_eq!(happened, [(call, fault)], "{what}");
                    assert!(is_of(&error, fault, &case.config), "{what}: {error:?}");
                }
                (_, Ok(Ok(()))) => panic!("{what}: the error was lost"),
            }
            *fired.entry(fault).or_insert(0) += subject.device.fired().len();
            let lost = matches!(fault, Fault::DeviceLost | Fault::Hang);
            assert_eq!(backend.device_lost(), lost, "{what}");
            let again =
                || into(case, |outputs| backend.dispatch_borrowed_into(&case.program, &case.borrowed(), &case.config, outputs));
            if lost {
                let refused = again();
                assert!(matches!(refused, Err(BackendError::DeviceLost { .. })), "{what}: {refused:?}");
                assert_eq!(subject.live_handles(), 0, "{what}");
                assert_eq!(backend.try_recover(), Ok(()), "{what}");
                assert!(!backend.device_lost(), "{what}");
            }
            again().unwrap();
            assert_eq!(everything(&subject, case), Ok(()), "{what}: afterwards");
        }
    }
}

/// A panic that is asked for is no news.
fn quiet_panics() {
    std::panic::set_hook(Box::new(|info| {
        if !info.to_string().contains("a fault was injected") {
            eprintln!("{info}");
        }
    }));
}

#[test]
fn a_fault_at_every_call_of_every_program_is_a_structured_error_and_the_next_dispatch_is_right() {
    quiet_panics();
    let mut fired = HashMap::new();
    for case in &cases() {
        every_fault(case, Subject::new, &mut fired);
    }
    for fault in Fault::ALL {
        assert!(fired.get(&fault).is_some_and(|count| *count > 100), "{fault:?} happened {:?} times", fired.get(&fault));
    }
}

#[test]
fn the_same_on_a_device_with_memory_of_its_own_that_takes_work_in_pieces() {
    quiet_panics();
    let mut fired = HashMap::new();
    for case in cases().iter().step_by(5) {
        every_fault(case, Subject::far, &mut fired);
    }
    for fault in Fault::ALL {
        assert!(fired.get(&fault).is_some_and(|count| *count > 20), "{fault:?} happened {:?} times", fired.get(&fault));
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
          out[gid.x] = x[3 - gid.x] + old
          barrier.grid
          x[gid.x] = old * 10 + out[3 - gid.x]
        }",
    )
    .unwrap();
    let config = DispatchConfig::default();
    let input: Vec<u8> = [1u32, 2, 3, 4].iter().flat_map(|word| word.to_le_bytes()).collect();
    let case =
        Case { name: "phases".into(), outputs: run(&program, &[&input], &config).unwrap(), inputs: vec![input], program, config };
    type Form = fn(&Arc<dyn VyreBackend>, &Case) -> Result<(), BackendError>;
    let forms: [(&str, Form); 7] = [
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
        ("async", |backend, case| {
            let pending = backend.dispatch_borrowed_async(&case.program, &case.borrowed(), &case.config)?;
            pending.wait().map(|outputs| check(case, &outputs))
        }),
        ("pipeline", |backend, case| {
            let pipeline = pipeline::compile(backend.clone(), &case.program, &case.config)?;
            into(case, |outputs| pipeline.dispatch_borrowed_into(&case.borrowed(), &case.config, outputs))
        }),
        ("mixed", |backend, case| {
            let resources = [Resource::Borrowed(case.inputs[0].clone()), Resource::Borrowed(vec![0; 16])];
            backend.dispatch_resident_timed(&case.program, &resources, &case.config).map(|timed| check(case, &timed.outputs))
        }),
        ("resident", |backend, case| {
            let resources = [backend.allocate_resident(16)?, backend.allocate_resident(16)?];
            let run = || {
                backend.upload_resident(&resources[0], &case.inputs[0])?;
                backend.dispatch_resident_timed(&case.program, &resources, &case.config)?;
                resources.iter().map(|resource| backend.download_resident(resource)).collect::<Result<Vec<_>, _>>()
            };
            let result = catch_unwind(AssertUnwindSafe(run));
            if !backend.device_lost() {
                resources.iter().try_for_each(|resource| backend.free_resident(resource.clone()))?;
            }
            check(case, &result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
            Ok(())
        }),
    ];
    quiet_panics();
    for (name, form) in forms {
        let split = |plan: FaultPlan| {
            let device = FaultyDevice::new(Arc::new(host()), plan);
            let backend: Arc<dyn VyreBackend> = Arc::from(wrap_grid_sync_split(backend(Arc::new(device.clone()))));
            Subject { device, backend }
        };
        let clean = split(FaultPlan::none());
        form(&clean.backend, &case).unwrap();
        assert!(clean.device.calls_of(Method::Run) >= 3, "{name} runs segments");
        for call in 0..clean.device.calls() {
            for fault in Fault::ALL {
                let what = format!("{name}: {fault:?} at call {call}");
                let subject = split(FaultPlan::none().at_call(call, fault));
                let result = catch_unwind(AssertUnwindSafe(|| form(&subject.backend, &case)));
                match &result {
                    Ok(Err(error)) => assert!(is_of(error, fault, &case.config), "{what}: {error:?}"),
                    Err(_) => assert_eq!(fault, Fault::Panic, "{what}"),
                    Ok(Ok(())) => assert!(subject.device.fired().is_empty(), "{what}: the error was lost"),
                }
                // Except for what was left when allocating the caller's own failed.
                let left = u64::from(name == "resident" && call == 1 && !subject.backend.device_lost());
                assert!(subject.live_handles() <= left, "{what}: hidden memory is left");
                if subject.backend.device_lost() {
                    subject.backend.try_recover().unwrap();
                }
                assert_eq!(form(&subject.backend, &case), Ok(()), "{what}: afterwards");
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
fn a_loss_makes_handles_stale_and_ends_what_was_begun_and_pipelines_work_again() {
    let (program, config) = increment();
    let input = vec![1, 0, 0, 0];
    let subject = Subject::new(FaultPlan::none().at_call_of(Method::Submit, 2, Fault::DeviceLost));
    let backend = &subject.backend;
    let resource = backend.allocate_resident(4).unwrap();
    let Resource::Resident(handle) = resource else { panic!("a handle") };
    let pipeline = pipeline::compile(backend.clone(), &program, &config).unwrap();
    let begun = || backend.dispatch_async(&program, std::slice::from_ref(&input), &config).unwrap();
    let (one, other) = (begun(), begun());
    assert!(matches!(backend.flush(), Err(BackendError::DeviceLost { .. })));
    assert!(backend.device_lost());
    assert!(matches!(one.wait(), Err(BackendError::DeviceLost { .. })));
    let refused = pipeline.dispatch(std::slice::from_ref(&input), &config);
    assert!(matches!(refused, Err(BackendError::DeviceLost { .. })), "{refused:?}");
    backend.try_recover().unwrap();
    assert!(!backend.device_lost());
    let stale = BackendError::Resident(ResidentError::Stale(handle));
    assert_eq!(backend.download_resident(&resource), Err(stale.clone()));
    assert_eq!(backend.upload_resident(&resource, &input), Err(stale.clone()));
    assert_eq!(backend.dispatch_resident_timed(&program, std::slice::from_ref(&resource), &config), Err(stale.clone()));
    assert_eq!(backend.free_resident(resource), Err(stale));
    // What was begun before is lost, whenever somebody asks, and says nothing about the device that came after.
    let kept = backend.allocate_resident(4).unwrap();
    assert!(matches!(other.wait(), Err(BackendError::DeviceLost { .. })));
    assert!(!backend.device_lost());
    assert_eq!(backend.download_resident(&kept), Ok(vec![0; 4]));
    assert_eq!(subject.device.calls_of(Method::Compile), 1);
    assert_eq!(pipeline.dispatch(std::slice::from_ref(&input), &config), Ok(vec![vec![2, 0, 0, 0]]));
    assert_eq!(pipeline.dispatch(std::slice::from_ref(&input), &config), Ok(vec![vec![2, 0, 0, 0]]));
    assert_eq!(subject.device.calls_of(Method::Compile), 2, "it is compiled again, once");
    assert_eq!(backend.pipeline_cache_snapshot().map(|seen| seen.misses), Some(1), "the cache has it");
}

#[test]
fn a_device_that_does_not_come_back_stays_lost() {
    let (program, config) = increment();
    for fault in [Fault::DeviceLost, Fault::OutOfMemory, Fault::Timeout, Fault::Hang] {
        let plan = FaultPlan::none().at_call_of(Method::Run, 0, Fault::DeviceLost).at_call_of(Method::Recover, 0, fault);
        let subject = Subject::new(plan);
        let run = || subject.backend.dispatch(&program, &[vec![1, 0, 0, 0]], &config);
        assert!(matches!(run(), Err(BackendError::DeviceLost { .. })));
        assert!(is_of(&subject.backend.try_recover().unwrap_err(), fault, &config), "{fault:?}");
        assert!(subject.backend.device_lost(), "{fault:?}");
        assert!(matches!(run(), Err(BackendError::DeviceLost { .. })));
        subject.backend.try_recover().unwrap();
        assert_eq!(run(), Ok(vec![vec![2, 0, 0, 0]]));
    }
}

#[test]
fn a_begun_dispatch_fails_when_it_is_waited_for_and_memory_lacks_at_once() {
    let (program, config) = increment();
    let inputs = [vec![1, 0, 0, 0]];
    for fault in [Fault::DeviceLost, Fault::Timeout, Fault::Hang, Fault::ShortRead] {
        let subject = Subject::new(FaultPlan::none().at_call_of(Method::Submit, 0, fault));
        let pending = subject.backend.dispatch_async(&program, &inputs, &config).unwrap();
        assert_eq!(subject.device.fired(), []);
        assert!(is_of(&pending.wait().unwrap_err(), fault, &config));
        assert_eq!(subject.device.fired().iter().map(|(_, fault)| *fault).collect::<Vec<_>>(), [fault]);
    }
    let subject = Subject::new(FaultPlan::none().at_call_of(Method::Submit, 0, Fault::OutOfMemory));
    let error = subject.backend.dispatch_async(&program, &inputs, &config).map(drop).unwrap_err();
    assert!(matches!(error, BackendError::OutOfMemory { .. }), "{error:?}");
}

#[test]
fn errors_about_handles_name_the_callers() {
    let (program, config) = increment();
    let (one, other) = (Subject::new(FaultPlan::none()).backend, Subject::new(FaultPlan::none()).backend);
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
    let config = DispatchConfig::default();
    let backend = Subject::new(FaultPlan::none()).backend;
    let resource = backend.allocate_resident(32).unwrap();
    let Resource::Resident(handle) = resource else { panic!("a handle") };
    let aliased = BackendError::Resident(ResidentError::Aliased(handle));
    let error = backend.dispatch_resident_timed(&program, &[resource.clone(), resource.clone()], &config);
    assert_eq!(error, Err(aliased.clone()));
    // Parts of one handle may stand for two buffers if they do not overlap.
    let part = |offset| ResidentRange { resource: &resource, offset, length: Some(16) };
    let dispatch = |other| {
        let bindings = vec![part(0), part(other)];
        let steps = [
            ResidentStep::Upload { to: part(0), bytes: &[7; 16] },
            ResidentStep::Dispatch { program: &program, config: &config, bindings },
            ResidentStep::Download(part(16)),
        ];
        backend.submit_resident(&steps, &config).and_then(|pending| pending.wait())
    };
    for overlapping in [0, 4, 12] {
        assert_eq!(dispatch(overlapping), Err(aliased.clone()), "{overlapping}");
    }
    assert_eq!(dispatch(16), Ok(vec![vec![7; 16]]));
}

#[test]
fn fault_plans_count_calls_of_one_method_and_of_all() {
    let (program, config) = increment();
    let inputs = [vec![1, 0, 0, 0]];
    // The first call compiles.
    let plan = FaultPlan::none().at_call_of(Method::Run, 1, Fault::Timeout).at_call(5, Fault::OutOfMemory);
    let Subject { device, backend } = Subject::new(plan);
    let results: Vec<bool> = [true, false, true, false, true]
        .iter()
        .map(|dispatch| if *dispatch { backend.dispatch(&program, &inputs, &config).is_ok() } else { backend.flush().is_ok() })
        .collect();
    assert_eq!(results, [true, true, false, true, false]);
    assert_eq!(device.fired(), [(3, Fault::Timeout), (5, Fault::OutOfMemory)]);
    assert_eq!((device.calls(), device.calls_of(Method::Run), device.calls_of(Method::Submit)), (6, 3, 2));
    assert_eq!(backend.pipeline_cache_snapshot(), Some(PipelineCacheSnapshot { hits: 2, misses: 1 }));
}
