//! All of `VyreBackend` over devices of several kinds: what threads do to each other, what is cut into pieces, what is told of what ran.

mod support;

use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::device::{Kernels, host, info, run};
use support::flip::Flip;
use support::segments::{program, unwords, words};
use vyre_driver::device::inject::{FaultPlan, FaultyDevice, Method};
use vyre_driver::device::{
    Call, Code, CodeOptions, Deadline, Device, DeviceError, DeviceInfo, Generation, HostDevice, Memory, Ran, Step, Submission,
    backend,
};
use vyre_driver::pipeline;
use vyre_driver::{BackendError, DispatchConfig, PendingDispatch, ResidentRange, ResidentStep, Resource, VyreBackend};
use vyre_foundation::ir::Program;
use vyre_foundation::kernel::Kernel;

/// A device whose calls are counted, and the backend over it.
fn counted(change: impl FnOnce(&mut DeviceInfo)) -> (FaultyDevice, Arc<dyn VyreBackend>) {
    let mut info = info();
    change(&mut info);
    let device = FaultyDevice::new(Arc::new(HostDevice::new(Kernels { info })), FaultPlan::none());
    (device.clone(), Arc::from(backend(Arc::new(device))))
}

fn limited(milliseconds: u64) -> DispatchConfig {
    DispatchConfig { timeout: Some(Duration::from_millis(milliseconds)), ..DispatchConfig::default() }
}

const COUNT: &str = "program count {
  workgroup 1
  buffer x: read_write u32[2] @0
  x[0] = x[0] + 1
}";

/// The same, and the device cannot know that it does not trap: it writes a copy.
const COUNT_OR_TRAP: &str = "program count {
  workgroup 1
  buffer x: read_write u32[2] @0
  x[0] = x[0] + 1
  if x[1] == 77 { trap(1) }
}";

fn one_group() -> DispatchConfig {
    DispatchConfig { grid_override: Some([1, 1, 1]), ..DispatchConfig::default() }
}

#[test]
fn threads_on_one_handle_lose_no_update_in_place_or_by_copy_or_in_sequences() {
    let backend = &*backend(Arc::new(host()));
    let counts = [program(COUNT), program(COUNT_OR_TRAP)];
    let handle = backend.allocate_resident(8).unwrap();
    let config = &one_group();
    std::thread::scope(|scope| {
        for n in 0..4 {
            let (counts, handle) = (&counts, &handle);
            scope.spawn(move || {
                for turn in 0..150 {
                    let program = &counts[(n + turn) % 2];
                    if n == 3 {
                        let step = ResidentStep::Dispatch { program, config, bindings: vec![handle.into()] };
                        backend.submit_resident(&[step], config).and_then(|pending| pending.wait()).unwrap();
                    } else {
                        backend.dispatch_resident_timed(program, std::slice::from_ref(handle), config).unwrap();
                    }
                }
            });
        }
        // Beside them one that uploads to and downloads from the other half, which nobody else changes.
        scope.spawn(|| {
            for n in 0..400u32 {
                backend.upload_resident_at(&handle, 4, &n.to_le_bytes()[..3]).unwrap();
                let found = backend.download_resident_range(&handle, 4, 4).unwrap();
                assert_eq!(unwords(&found), [n], "an upload was lost");
            }
        });
    });
    assert_eq!(unwords(&backend.download_resident_range(&handle, 0, 4).unwrap()), [600]);
    // A trap leaves what was there.
    backend.upload_resident_at(&handle, 4, &words([77])).unwrap();
    let trapped = backend.dispatch_resident_timed(&counts[1], std::slice::from_ref(&handle), config);
    assert_eq!(trapped, Err(BackendError::Trap { tag: 1, invocation: [0, 0, 0] }));
    assert_eq!(unwords(&backend.download_resident(&handle).unwrap()), [600, 77]);
}

#[test]
fn threads_that_use_two_handles_in_opposite_order_do_not_wait_for_each_other() {
    let backend = &*backend(Arc::new(host()));
    let add = &program(
        "program p {\n workgroup 1\n buffer a: read u32[1] @0\n buffer b: read_write u32[1] @1\n b[gid.x] = b[gid.x] + a[gid.x] - a[gid.x] + 1\n}",
    );
    let handles = &[backend.allocate_resident(4).unwrap(), backend.allocate_resident(4).unwrap()];
    std::thread::scope(|scope| {
        for n in 0..4 {
            scope.spawn(move || {
                let config = if n < 2 { DispatchConfig::default() } else { limited(60_000) };
                let resources = [handles[n % 2].clone(), handles[1 - n % 2].clone()];
                for _ in 0..150 {
                    backend.dispatch_resident_timed(add, &resources, &config).unwrap();
                    backend.copy_resident(&resources[0], 0, &resources[0], 0, 4).unwrap();
                    backend.download_resident_ranges(&[(&resources[1], 0, 4), (&resources[0], 0, 4)]).unwrap();
                }
            });
        }
    });
    for handle in handles {
        assert_eq!(unwords(&backend.download_resident(handle).unwrap()), [300]);
    }
}

#[test]
fn a_handle_that_is_freed_while_it_is_used_is_there_until_the_end() {
    let backend = backend(Arc::new(host()));
    let count = program(COUNT);
    let config = one_group();
    let handle = backend.allocate_resident(8).unwrap();
    let steps = [
        ResidentStep::Dispatch { program: &count, config: &config, bindings: vec![(&handle).into()] },
        ResidentStep::Download((&handle).into()),
    ];
    let pending = backend.submit_resident(&steps, &config).unwrap();
    backend.free_resident(handle).unwrap();
    assert_eq!(pending.wait().map(|reads| unwords(&reads[0])), Ok(vec![1, 0]));
}

/// A 2-D program whose smallest trapping invocation is in a later workgroup than the first that traps.
const CORNERS: &str = "program corners {
  workgroup 2 2
  buffer out: output u32[24] @0
  out[gid.x + gid.y * 6] = gid.x + gid.y * 10
  if gid.x == 0 && gid.y == 1 { trap(1) }
  if gid.x == 3 && gid.y == 0 { trap(2) }
  if gid.x == 2 && gid.y == 1 { trap(3) }
}";

#[test]
fn a_trap_is_that_of_the_smallest_invocation_however_the_grid_is_cut() {
    let corners = program(CORNERS);
    let config = DispatchConfig { grid_override: Some([3, 2, 1]), ..DispatchConfig::default() };
    let expected = run(&corners, &[], &config).unwrap_err();
    assert_eq!(expected, BackendError::Trap { tag: 2, invocation: [3, 0, 0] });
    for groups_per_call in [1, 2, 4, 5, 6, 100] {
        for host_memory in [true, false] {
            let (_, backend) = counted(|info| {
                info.limits.groups_per_call = groups_per_call;
                info.capabilities.host_memory = host_memory;
                info.capabilities.interruptible = false;
            });
            for config in [config.clone(), DispatchConfig { timeout: Some(Duration::from_secs(60)), ..config.clone() }] {
                let pipeline = pipeline::compile(backend.clone(), &corners, &config).unwrap();
                let found = [
                    backend.dispatch_borrowed(&corners, &[], &config).map(drop),
                    backend.dispatch_borrowed_async(&corners, &[], &config).and_then(|pending| pending.wait()).map(drop),
                    pipeline.dispatch_borrowed_into(&[], &config, &mut Vec::new()),
                    pipeline.dispatch_borrowed_batched(&[&[], &[]], &config).map(drop),
                    {
                        let out = backend.allocate_resident(96).unwrap();
                        backend.dispatch_resident_timed(&corners, &[out], &config).map(drop)
                    },
                ];
                assert_eq!(found, [0; 5].map(|_| Err(expected.clone())), "{groups_per_call} {host_memory}");
                // A sequence says what it cannot do.
                let out = backend.allocate_resident(96).unwrap();
                let step = ResidentStep::Dispatch { program: &corners, config: &config, bindings: vec![(&out).into()] };
                let sequence = backend.submit_resident(&[step], &config).and_then(|pending| pending.wait());
                match groups_per_call >= 6 && config.timeout.is_none() {
                    true => assert_eq!(sequence, Err(expected.clone())),
                    false => assert!(matches!(sequence, Err(BackendError::UnsupportedFeature { .. })), "{sequence:?}"),
                }
            }
        }
    }
}

/// 1-D, with an output that is not written completely.
const SPARSE: &str = "program sparse {
  workgroup 4
  buffer a: read u32 @0
  buffer out: output u32[64] @1
  if gid.x % 3 == 0 { out[gid.x] = a[gid.x] + 1 }
}";

#[test]
fn work_is_cut_as_the_device_needs_it_and_the_bytes_are_the_same() {
    let sparse = program(SPARSE);
    let input = words(std::array::from_fn::<u32, 64, _>(|n| n as u32));
    let expected = run(&sparse, &[&input], &DispatchConfig::default()).unwrap();
    let everything = |backend: &Arc<dyn VyreBackend>, config: &DispatchConfig| -> Vec<Ran> {
        let pipeline = pipeline::compile(backend.clone(), &sparse, config).unwrap();
        let timed = pipeline.dispatch_borrowed_timed(&[&input], config).unwrap();
        assert_eq!(timed.outputs, expected);
        let (outputs, ran) = pipeline.dispatch_borrowed_async(&[&input], config).unwrap().wait_ran().unwrap();
        assert_eq!(outputs, expected);
        // Twice, so that memory of before is used again, and dirty.
        for _ in 0..2 {
            let mut outputs = vec![vec![0xA5; 256]];
            pipeline.dispatch_borrowed_into(&[&input], config, &mut outputs).unwrap();
            assert_eq!(outputs, expected);
        }
        assert_eq!(
            pipeline.dispatch_borrowed_batched(&[&[&input], &[&input]], config).unwrap(),
            [0; 2].map(|_| expected.clone())
        );
        let resources = [backend.allocate_resident(256).unwrap(), backend.allocate_resident(256).unwrap()];
        backend.upload_resident(&resources[0], &input).unwrap();
        backend.upload_resident(&resources[1], &[0xA5; 256]).unwrap();
        let resident = backend.dispatch_resident_timed(&sparse, &resources, config).unwrap();
        assert_eq!(backend.download_resident(&resources[1]), Ok(expected[0].clone()));
        backend.upload_resident(&resources[1], &[0xA5; 256]).unwrap();
        let bindings = resources.iter().map(ResidentRange::from).collect();
        let steps =
            [ResidentStep::Dispatch { program: &sparse, config, bindings }, ResidentStep::Download((&resources[1]).into())];
        let (reads, sequence) = backend.submit_resident(&steps, config).unwrap().wait_ran().unwrap();
        assert_eq!(reads, expected);
        [timed.ran, resident.ran].into_iter().flatten().chain(ran).chain(sequence).collect()
    };
    let runs_of = |change: fn(&mut DeviceInfo), config: &DispatchConfig| {
        let (device, backend) = counted(change);
        let ran = everything(&backend, config);
        assert_eq!(ran.len(), 4);
        for ran in ran {
            assert_eq!((ran.groups, ran.grid, ran.workgroup), (0..16, [16, 1, 1], [4, 1, 1]));
        }
        let one = device.calls_of(Method::Run);
        backend.dispatch_borrowed(&sparse, &[&input], config).unwrap();
        device.calls_of(Method::Run) - one
    };
    assert_eq!(runs_of(|_| {}, &DispatchConfig::default()), 1);
    assert_eq!(runs_of(|_| {}, &limited(60_000)), 1, "what can be stopped is one call");
    assert_eq!(runs_of(|info| info.limits.groups_per_call = 1, &DispatchConfig::default()), 16);
    assert_eq!(runs_of(|info| info.limits.groups_per_call = 5, &DispatchConfig::default()), 4);
    let hard = |info: &mut DeviceInfo| info.capabilities.interruptible = false;
    assert_eq!(runs_of(hard, &DispatchConfig::default()), 1, "nobody asked for a limit");
    let harder = |info: &mut DeviceInfo| {
        info.capabilities.interruptible = false;
        info.limits.groups_per_call = 3;
    };
    assert_eq!(runs_of(harder, &limited(60_000)), 6);
    // A limit on what cannot be stopped: the first slice is small, since nothing is known of it.
    let many = program("program p {\n workgroup 1\n buffer out: output u32[4096] @0\n out[gid.x] = gid.x\n}");
    let (device, backend) = counted(hard);
    backend.dispatch_borrowed(&many, &[], &limited(60_000)).unwrap();
    let calls = device.calls_of(Method::Run);
    assert!((4..200).contains(&calls), "{calls} slices");
    let over = backend.dispatch_borrowed(&many, &[], &DispatchConfig { timeout: Some(Duration::ZERO), ..Default::default() });
    assert_eq!(over, Err(BackendError::Timeout { limit: Duration::ZERO }));
    assert_eq!(device.calls_of(Method::Run), calls, "nothing ran");
}

#[test]
fn a_batch_is_one_submission_where_memory_is_the_devices() {
    let sparse = program(SPARSE);
    let input = words([7; 64]);
    let batch: Vec<&[&[u8]]> = vec![&[]; 0];
    let one: &[&[u8]] = &[&input];
    for (host_memory, runs, submissions) in [(true, 5, 0), (false, 0, 1)] {
        let (device, backend) = counted(|info| info.capabilities.host_memory = host_memory);
        let pipeline = pipeline::compile(backend, &sparse, &DispatchConfig::default()).unwrap();
        let outputs = pipeline.dispatch_borrowed_batched(&[one; 5], &DispatchConfig::default()).unwrap();
        assert_eq!(outputs.len(), 5);
        assert!(outputs.iter().all(|output| *output == outputs[0]));
        assert_eq!((device.calls_of(Method::Run), device.calls_of(Method::Submit)), (runs, submissions));
        assert_eq!(pipeline.dispatch_borrowed_batched(&batch, &DispatchConfig::default()), Ok(Vec::new()));
    }
}

#[test]
fn spare_memory_of_other_dispatches_is_never_seen() {
    let backend = backend(Arc::new(host()));
    let sizes = [1u32, 3, 64, 65, 100, 4, 2000, 1999, 63, 0, 7];
    let partly = |n: u32, m: u32| {
        program(&format!(
            "program p {{\n workgroup 1\n buffer a: output u32[{n}] @0\n buffer b: output u32[{m}] @1\n if gid.x % 2 == 1 {{ a[gid.x] = 1 \n b[gid.x] = 2 }}\n}}"
        ))
    };
    let mut outputs = vec![vec![0xA5; 10_000]; 3];
    for round in 0..3 {
        for (at, n) in sizes.iter().enumerate() {
            let p = partly(*n, sizes[(at + round) % sizes.len()]);
            let expected = run(&p, &[], &DispatchConfig::default()).unwrap();
            backend.dispatch_borrowed_into(&p, &[], &DispatchConfig::default(), &mut outputs).unwrap();
            assert_eq!(outputs, expected, "{n}");
            outputs.iter_mut().for_each(|output| output.fill(0xA5));
        }
    }
}

fn all_forms(
    backend: &Arc<dyn VyreBackend>,
    p: &Program,
    input: &[u8],
    config: &DispatchConfig,
) -> Vec<Result<Ran, BackendError>> {
    let begun = |pending: Result<Box<dyn PendingDispatch>, BackendError>| {
        pending.and_then(|pending| pending.wait_ran()).map(|(_, mut ran)| ran.remove(0))
    };
    let timed = |timed: vyre_driver::TimedDispatchResult| timed.ran.expect("a device says it");
    let resources = [backend.allocate_resident(input.len()).unwrap(), backend.allocate_resident(input.len()).unwrap()];
    let mut results = vec![
        backend.dispatch_borrowed_timed(p, &[input], config).map(timed),
        begun(backend.dispatch_async(p, &[input.to_vec()], config)),
        begun(backend.dispatch_borrowed_async(p, &[input], config)),
        backend.dispatch_resident_timed(p, &resources, config).map(timed),
        backend
            .dispatch_resident_timed(p, &[Resource::Borrowed(input.to_vec()), Resource::Borrowed(Vec::new())], config)
            .map(timed),
        begun(backend.submit_resident(
            &[ResidentStep::Dispatch { program: p, config, bindings: resources.iter().map(ResidentRange::from).collect() }],
            &DispatchConfig { timeout: config.timeout, ..DispatchConfig::default() },
        )),
    ];
    match pipeline::compile(backend.clone(), p, config) {
        Ok(pipeline) => {
            results.push(pipeline.dispatch_borrowed_timed(&[input], config).map(timed));
            results.push(begun(pipeline.dispatch_borrowed_async(&[input], config)));
        }
        Err(error) => results.extend([Err(error.clone()), Err(error)]),
    }
    results
}

const COPY: &str = "program copy {
  workgroup 4
  buffer a: read u32 @0
  buffer out: output u32 @1
  out[gid.x] = a[gid.x]
}";

#[test]
fn what_ran_is_told_in_every_form() {
    let copy = program(COPY);
    let input = words([3; 16]);
    for far in [false, true] {
        let (_, backend) = counted(|info| info.capabilities.host_memory = !far);
        let ran = |workgroup, grid: [u32; 3], profile: Option<&str>, generation, cache_hit| Ran {
            device: "device",
            generation: Generation(generation),
            workgroup,
            grid,
            groups: 0..u64::from(grid[0]),
            profile: profile.map(Arc::from),
            threads: 1,
            lowering: Arc::from("bulk"),
            code: Some([7; 32]),
            // A permission that is not used.
            ulp: None,
            cache_hit,
            device_ns: None,
        };
        let config = DispatchConfig {
            workgroup_override: Some([8, 1, 1]),
            ulp_budget: Some(3),
            profile: Some("fast".into()),
            ..DispatchConfig::default()
        };
        let expected = |generation, hit| Ok(ran([8, 1, 1], [2, 1, 1], Some("fast"), generation, hit));
        let found = all_forms(&backend, &copy, &input, &config);
        assert_eq!(found[0], expected(0, false), "the first compiles");
        found[1..].iter().for_each(|found| assert_eq!(*found, expected(0, true)));
        let plain = all_forms(&backend, &copy, &input, &DispatchConfig::default());
        assert_eq!(plain[0], Ok(ran([4, 1, 1], [4, 1, 1], None, 0, false)));
        plain[1..].iter().for_each(|found| assert_eq!(*found, Ok(ran([4, 1, 1], [4, 1, 1], None, 0, true))));
        backend.try_recover().unwrap();
        let found = all_forms(&backend, &copy, &input, &config);
        assert_eq!(found[0], expected(1, false), "it is compiled again");
        found[1..].iter().for_each(|found| assert_eq!(*found, expected(1, true)));
    }
}

#[test]
fn a_profile_that_the_device_does_not_know_is_an_error_that_names_those_it_knows() {
    let copy = program(COPY);
    let input = words([3; 16]);
    let (_, backend) = counted(|info| info.profiles = vec!["fast", "small"]);
    let unknown = DispatchConfig { profile: Some("faster".into()), ..DispatchConfig::default() };
    let error = BackendError::UnsupportedFeature {
        feature: "profile `faster` among its profiles fast, small".into(),
        backend: "device".into(),
    };
    for result in all_forms(&backend, &copy, &input, &unknown) {
        assert_eq!(result, Err(error.clone()));
    }
    // A pipeline that was compiled for one it knows, and a call that names another.
    let fast = DispatchConfig { profile: Some("fast".into()), ..DispatchConfig::default() };
    let small = DispatchConfig { profile: Some("small".into()), ..DispatchConfig::default() };
    let pipeline = pipeline::compile(backend.clone(), &copy, &fast).unwrap();
    assert_eq!(pipeline.dispatch_borrowed(&[&input], &unknown), Err(error));
    let ran = pipeline.dispatch_borrowed_timed(&[&input], &small).unwrap().ran.unwrap();
    assert_eq!(ran.profile.as_deref(), Some("fast"), "it keeps its own and says so");
    let (_, backend) = counted(|info| info.profiles = Vec::new());
    let error = backend.dispatch_borrowed(&copy, &[&input], &unknown).unwrap_err();
    assert!(error.message().contains("no profile `faster`, nor any other"), "{error}");
}

#[test]
fn what_is_larger_than_the_device_takes_is_refused_in_every_form() {
    let copy = program(COPY);
    let input = words([3; 16]);
    let (device, backend) = counted(|info| info.limits.buffer_bytes = 64);
    all_forms(&backend, &copy, &input, &DispatchConfig::default()).into_iter().for_each(|result| drop(result.unwrap()));
    let larger = words([3; 17]);
    let calls = |device: &FaultyDevice| device.calls_of(Method::Run) + device.calls_of(Method::Submit);
    let before = calls(&device);
    let refused = [
        backend.dispatch_borrowed(&copy, &[&larger], &DispatchConfig::default()).map(drop),
        backend.dispatch_borrowed_async(&copy, &[&larger], &DispatchConfig::default()).map(drop),
        backend
            .dispatch_resident_timed(
                &copy,
                &[Resource::Borrowed(larger.clone()), Resource::Borrowed(Vec::new())],
                &DispatchConfig::default(),
            )
            .map(drop),
    ];
    for refused in refused {
        let Err(BackendError::UnsupportedFeature { feature, .. }) = refused else { panic!("{refused:?}") };
        assert_eq!(feature, "buffers of 68 bytes, as `a` has, only of 64");
    }
    assert_eq!(calls(&device), before, "nothing ran");
    assert_eq!(backend.allocate_resident(65), Err(BackendError::OutOfMemory { requested: 65 }));
    let (device, backend) = counted(|info| info.limits.groups_per_axis = 3);
    for result in all_forms(&backend, &copy, &input, &DispatchConfig::default()) {
        let Err(BackendError::UnsupportedFeature { feature, .. }) = result else { panic!("{result:?}") };
        assert_eq!(feature, "grids of 4 workgroups along an axis, only of 3");
    }
    assert_eq!(calls(&device), 0);
}

#[test]
fn huge_lengths_are_errors_and_never_asked_for() {
    let backend = backend(Arc::new(host()));
    let open = program("program p {\n workgroup 1\n buffer out: output u32 @0\n out[0] = 1\n}");
    for (count, max_output_bytes) in [(u32::MAX, None), (u32::MAX, Some(u64::MAX)), ((1 << 28) + 1, None)] {
        let config = DispatchConfig {
            output_counts: [("out".to_string(), count)].into(),
            max_output_bytes,
            grid_override: Some([1, 1, 1]),
            ..DispatchConfig::default()
        };
        let mut outputs = vec![vec![1, 2, 3]];
        let error = backend.dispatch_borrowed_into(&open, &[], &config, &mut outputs);
        assert!(error.is_err() && outputs == [[1, 2, 3]], "{count}, {max_output_bytes:?}: {error:?}");
    }
}

#[test]
fn what_is_not_proven_deterministic_is_refused_in_every_form_if_that_is_asked_for() {
    let (device, backend) = counted(|_| {});
    let racy = program(
        "program racy {\n workgroup 4\n buffer a: read u32 @0\n buffer out: output u32 @1\n out[a[gid.x] % 2] = gid.x\n}",
    );
    let config = DispatchConfig { require_deterministic: Some(true), ..DispatchConfig::default() };
    for result in all_forms(&backend, &racy, &words([3; 16]), &config) {
        assert!(matches!(result, Err(BackendError::InvalidProgram { .. })), "{result:?}");
    }
    assert_eq!(device.calls_of(Method::Run) + device.calls_of(Method::Submit), 0);
    all_forms(&backend, &program(COPY), &words([3; 16]), &config).into_iter().for_each(|result| drop(result.unwrap()));
}

#[test]
fn a_shape_is_not_kept_for_another_config_or_other_sizes() {
    let copy = program(COPY);
    let backend: Arc<dyn VyreBackend> = Arc::from(backend(Arc::new(host())));
    let pipeline = pipeline::compile(backend, &copy, &DispatchConfig::default()).unwrap();
    let gridded = |grid| DispatchConfig { grid_override: Some([grid, 1, 1]), ..DispatchConfig::default() };
    let configs = [DispatchConfig::default(), gridded(1), gridded(2), gridded(100)];
    for turn in 0..40u32 {
        let config = &configs[turn as usize % configs.len()];
        let input: Vec<u8> = (0..4 * (turn % 7)).map(|n| n as u8).collect();
        let mut outputs = vec![vec![0xA5; 100]];
        let found = pipeline.dispatch_borrowed_into(&[&input], config, &mut outputs);
        match run(&copy, &[&input], config) {
            Ok(expected) => assert_eq!((found, outputs), (Ok(()), expected), "{turn}"),
            Err(expected) => assert_eq!((found, outputs), (Err(expected), vec![vec![0xA5; 100]]), "{turn}"),
        }
    }
}

#[test]
fn a_device_that_somebody_else_opens_again_is_followed() {
    let device = Arc::new(host());
    let backend = backend(device.clone());
    let copy = program(COPY);
    let input = words([3; 16]);
    let handle = backend.allocate_resident(64).unwrap();
    backend.dispatch_borrowed(&copy, &[&input], &DispatchConfig::default()).unwrap();
    Device::recover(&*device).unwrap();
    let timed = backend.dispatch_borrowed_timed(&copy, &[&input], &DispatchConfig::default()).unwrap();
    assert_eq!(
        (timed.outputs, timed.ran.map(|ran| (ran.generation, ran.cache_hit))),
        (vec![input], Some((Generation(1), false)))
    );
    assert!(!backend.device_lost());
    let stale = backend.download_resident(&handle);
    assert!(matches!(stale, Err(BackendError::Resident(vyre_driver::ResidentError::Stale(_)))), "{stale:?}");
    let ran = backend.dispatch_borrowed_timed(&copy, &[&words([1; 4])], &DispatchConfig::default()).unwrap().ran.unwrap();
    assert!(ran.cache_hit, "it is compiled again once");
}

#[test]
fn a_wrapper_over_a_device_is_a_backend_like_any_other() {
    let copy = program(COPY);
    let input = words([2; 16]);
    let flipped = backend(Arc::new(Flip(host())));
    let mut expected = input.clone();
    expected[0] ^= 1;
    assert_eq!(flipped.dispatch_borrowed(&copy, &[&input], &DispatchConfig::default()), Ok(vec![expected]));
    assert_eq!(flipped.id(), "device");
}

/// Remembers of every call whether outputs were to be zero first.
struct Zeroed(HostDevice<Kernels>, Mutex<Vec<bool>>);

impl Device for Zeroed {
    fn info(&self) -> Arc<DeviceInfo> {
        self.0.info()
    }

    fn compile(&self, kernel: &Arc<Kernel>, options: &CodeOptions) -> Result<Code, DeviceError> {
        self.0.compile(kernel, options)
    }

    fn allocate(&self, bytes: u64) -> Result<Memory, DeviceError> {
        self.0.allocate(bytes)
    }

    fn run(&self, call: &mut Call<'_, '_>, deadline: Deadline) -> Result<Ran, DeviceError> {
        self.1.lock().unwrap().push(call.zero_outputs);
        self.0.run(call, deadline)
    }

    fn submit(&self, steps: Vec<Step>, deadline: Deadline) -> Result<Box<dyn Submission>, DeviceError> {
        self.0.submit(steps, deadline)
    }

    fn recover(&self) -> Result<Generation, DeviceError> {
        self.0.recover()
    }
}

#[test]
fn outputs_that_are_written_completely_are_passed_over_once() {
    let device = Arc::new(Zeroed(host(), Mutex::default()));
    let backend = backend(device.clone());
    let zeroed = |p: &Program, input: &[u8], config: &DispatchConfig| -> Vec<bool> {
        device.1.lock().unwrap().clear();
        let mut outputs = vec![vec![0xA5; input.len()]];
        for _ in 0..4 {
            backend.dispatch_borrowed_into(p, &[input], config, &mut outputs).unwrap();
        }
        device.1.lock().unwrap().clone()
    };
    let (copy, sparse) = (program(COPY), program(SPARSE));
    assert_eq!(zeroed(&copy, &words([3; 1024]), &DispatchConfig::default()), [false; 4]);
    // New memory is zero already, used memory is not.
    assert_eq!(zeroed(&sparse, &words([3; 64]), &DispatchConfig::default())[1..], [true; 3]);
    // A grid that does not cover the output.
    assert_eq!(zeroed(&copy, &words([3; 2048]), &one_group())[2..], [true; 2]);
}
