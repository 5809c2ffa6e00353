//! Handles: who may use them how, what they hold, and what is left when something fails.

use crate::forms::Bound;
use crate::{bulk, generated, handle, program, words};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use vyre_driver::backend::registry::acquire;
use vyre_driver::device::backend as over;
use vyre_driver::device::inject::{Fault, FaultPlan, FaultyDevice};
use vyre_driver::{BackendError, DispatchConfig, ResidentError, Resource, VyreBackend, pipeline};

const ADD: &str = "program add {
  workgroup 4
  buffer a: read u32 @0
  buffer b: read u32 @1
  buffer x: read_write u32 @2
  buffer out: output u32 @3

  if gid.x < len(x) {
    x[gid.x] = x[gid.x] + a[gid.x] + b[gid.x]
  }
  if gid.x < len(out) {
    out[gid.x] = out[gid.x] + len(out)
  }
  if a[0] == 77 {
    trap(5)
  }
}
";

fn metric(backend: &dyn VyreBackend, name: &str) -> u64 {
    backend.backend_metric_snapshot().iter().find(|(other, _)| *other == name).expect("there is one").1
}

/// So many resident words.
fn resident(backend: &dyn VyreBackend, values: impl IntoIterator<Item = u32>) -> Resource {
    let bytes = words(values);
    let resource = backend.allocate_resident(bytes.len()).unwrap();
    backend.upload_resident(&resource, &bytes).unwrap();
    resource
}

fn run(backend: &Arc<dyn VyreBackend>, resources: &[Resource], config: &DispatchConfig) -> Result<Vec<Vec<u8>>, BackendError> {
    let program = program(ADD);
    let direct = backend.dispatch_resident_timed(&program, resources, config).map(|timed| timed.outputs);
    if let Err(error) = &direct {
        // A pipeline says the same.
        let pipeline = pipeline::compile(backend.clone(), &program, &DispatchConfig::default()).unwrap();
        assert_eq!(pipeline.dispatch_persistent_handles(resources, config).as_ref(), Err(error));
    }
    direct
}

#[test]
fn memory_is_zero_at_first_and_holds_what_is_put_into_it() {
    let backend = bulk();
    let [a, b] = [8, 4].map(|bytes| backend.allocate_resident(bytes).unwrap());
    assert_eq!(backend.download_resident(&a), Ok(vec![0; 8]));
    backend.upload_resident(&a, &[1, 2, 3]).unwrap();
    backend.upload_resident_at(&a, 5, &[4, 5]).unwrap();
    backend.upload_resident_at(&a, 8, &[]).unwrap();
    assert_eq!(backend.download_resident(&a), Ok(vec![1, 2, 3, 0, 0, 4, 5, 0]));
    backend.upload_resident_many(&[(&a, &[9]), (&b, &[8, 8, 8, 8])]).unwrap();
    backend.upload_resident_at_many(&[(&b, 1, &[7]), (&a, 7, &[6]), (&b, 1, &[5])]).unwrap();
    assert_eq!(backend.download_resident_range(&a, 5, 3), Ok(vec![4, 5, 6]));
    let ranges = [(&b, 0, 4), (&a, 0, 1), (&a, 8, 0), (&b, 3, 1)];
    assert_eq!(backend.download_resident_ranges(&ranges), Ok(vec![vec![8, 5, 8, 8], vec![9], vec![], vec![8]]));
}

#[test]
fn several_uploads_happen_all_or_not_at_all() {
    let backend = bulk();
    let [a, b, freed] = [4, 4, 4].map(|bytes| backend.allocate_resident(bytes).unwrap());
    backend.free_resident(freed.clone()).unwrap();
    let foreign = bulk().allocate_resident(4).unwrap();
    let bytes = Resource::Borrowed(vec![0; 4]);
    for (wrong, offset, length) in [(&b, 1, 4), (&b, 5, 0), (&b, usize::MAX, 1), (&freed, 0, 1), (&foreign, 0, 1), (&bytes, 0, 1)]
    {
        let upload = vec![1; length];
        let at = [(&a, 0, &[1u8][..]), (&b, 0, &[1][..]), (wrong, offset, &upload[..])];
        assert!(matches!(backend.upload_resident_at_many(&at), Err(BackendError::Resident(_))), "{wrong:?} {offset} {length}");
        assert!(backend.download_resident_ranges(&[(&a, 0, 1), (wrong, offset, length)]).is_err());
    }
    assert!(backend.upload_resident_many(&[(&a, &[1]), (&b, &[1; 5])]).is_err());
    assert_eq!(backend.download_resident_ranges(&[(&a, 0, 4), (&b, 0, 4)]), Ok(vec![vec![0; 4]; 2]));
}

#[test]
fn handles_that_are_not_live_are_told_apart_everywhere() {
    let backend = bulk();
    let live = resident(&*backend, 0..4);
    let freed = resident(&*backend, 0..4);
    backend.free_resident(freed.clone()).unwrap();
    let other = bulk();
    let foreign = resident(&*other, 0..4);
    let made_up = Resource::Resident(handle(&live) + 1000);
    for (resource, error) in [
        (&freed, ResidentError::Freed(handle(&freed))),
        (&foreign, ResidentError::Foreign(handle(&foreign))),
        (&made_up, ResidentError::Foreign(handle(&made_up))),
    ] {
        let error = Some(BackendError::Resident(error));
        assert_eq!(backend.upload_resident(resource, &[1]).err(), error);
        assert_eq!(backend.download_resident(resource).err(), error);
        assert_eq!(backend.download_resident_range(resource, 0, 1).err(), error);
        assert_eq!(backend.free_resident(resource.clone()).err(), error);
        for place in 0..4 {
            let mut resources = [resident(&*backend, 0..4), resident(&*backend, 0..4), live.clone(), resident(&*backend, 0..4)];
            resources[place] = resource.clone();
            assert_eq!(run(&backend, &resources, &DispatchConfig::default()).err(), error);
        }
    }
    assert_eq!(backend.download_resident(&live), Ok(words(0..4)), "nothing ran");
    let bytes = Resource::Borrowed(vec![1]);
    let error = Some(BackendError::Resident(ResidentError::NotResident));
    assert_eq!(backend.upload_resident(&bytes, &[1]).err(), error);
    assert_eq!(backend.download_resident(&bytes).err(), error);
    assert_eq!(backend.free_resident(bytes).err(), error);
    // A freed handle is not the next one.
    let next = resident(&*backend, 0..4);
    assert_ne!(handle(&next), handle(&freed));
    assert_eq!(other.download_resident(&foreign), Ok(words(0..4)));
}

#[test]
fn one_handle_twice_is_fine_to_read_and_refused_to_write() {
    let backend = bulk();
    let [a, x, out] = [0..4, 10..14, 0..4].map(|values| resident(&*backend, values));
    let twice = [a.clone(), a.clone(), x.clone(), out.clone()];
    assert_eq!(run(&backend, &twice, &DispatchConfig::default()), Ok(vec![]));
    assert_eq!(backend.download_resident(&x), Ok(words([10, 13, 16, 19])));
    for resources in [
        [x.clone(), a.clone(), x.clone(), out.clone()],
        [out.clone(), a.clone(), x.clone(), out.clone()],
        [a.clone(), a.clone(), x.clone(), x.clone()],
    ] {
        let error = run(&backend, &resources, &DispatchConfig::default());
        assert!(matches!(error, Err(BackendError::Resident(ResidentError::Aliased(_)))), "{error:?}");
    }
    assert_eq!(backend.download_resident(&x), Ok(words([10, 13, 16, 19])), "nothing ran");
}

#[test]
fn a_resident_output_is_zero_at_the_start_and_as_long_as_its_memory() {
    let backend = bulk();
    let inputs = || [resident(&*backend, 0..4), resident(&*backend, 0..4), resident(&*backend, 0..4)];
    let with = |out: Resource| inputs().into_iter().chain([out]).collect::<Vec<_>>();
    // Longer than every input: the grid covers it, and what it held is gone.
    let out = resident(&*backend, 100..107);
    for _ in 0..2 {
        assert_eq!(run(&backend, &with(out.clone()), &DispatchConfig::default()), Ok(vec![]));
        assert_eq!(backend.download_resident(&out), Ok(words([7; 7])));
    }
    // What the caller says must agree.
    let says = |count: u32, limit: Option<u64>| DispatchConfig {
        output_counts: [("out".to_string(), count)].into(),
        max_output_bytes: limit,
        ..DispatchConfig::default()
    };
    assert_eq!(run(&backend, &with(out.clone()), &says(7, Some(28))), Ok(vec![]));
    for (out, config, code) in [
        (out.clone(), says(6, None), "E0703"),
        (out.clone(), says(8, None), "E0703"),
        (out.clone(), says(7, Some(27)), "E0708"),
        (backend.allocate_resident(27).unwrap(), DispatchConfig::default(), "E0703"),
    ] {
        let error = run(&backend, &with(out), &config).unwrap_err();
        assert_eq!(error.report(None).codes().next().unwrap().to_string(), code, "{error}");
    }
    // And so must a declared count.
    let declared = program("program p {\n  workgroup 4\n  buffer out: output u32[5] @0\n  out[gid.x] = 1\n}\n");
    for bytes in [16, 20, 24] {
        let out = backend.allocate_resident(bytes).unwrap();
        let ran = backend.dispatch_resident_timed(&declared, &[out], &DispatchConfig::default());
        assert_eq!(ran.is_ok(), bytes == 20, "{ran:?}");
    }
    // Of no elements nothing runs.
    let empty = backend.allocate_resident(0).unwrap();
    let only = program("program p {\n  workgroup 4\n  buffer out: output u32 @0\n  trap(1)\n}\n");
    assert!(backend.dispatch_resident_timed(&only, &[empty], &DispatchConfig::default()).is_ok());
}

#[test]
fn what_is_not_resident_comes_back_in_the_order_of_bindings() {
    let backend = bulk();
    let a = resident(&*backend, 0..4);
    let borrowed = |values: std::ops::Range<u32>| Resource::Borrowed(words(values));
    let resources = [a.clone(), borrowed(0..4), borrowed(10..14), Resource::Borrowed(b"ignored".to_vec())];
    assert_eq!(run(&backend, &resources, &DispatchConfig::default()), Ok(vec![words([10, 13, 16, 19]), words([4; 4])]));
    let x = resident(&*backend, 10..14);
    let resources = [a, borrowed(0..4), x.clone(), Resource::Borrowed(vec![])];
    assert_eq!(run(&backend, &resources, &DispatchConfig::default()), Ok(vec![words([4; 4])]));
    assert_eq!(backend.download_resident(&x), Ok(words([10, 13, 16, 19])));
}

#[test]
fn a_trap_leaves_resident_data_as_they_were() {
    let backend = bulk();
    let [a, b, x, out] = [77..81, 0..4, 10..14, 20..24].map(|values| resident(&*backend, values));
    let trap = BackendError::Trap { tag: 5, invocation: [0, 0, 0] };
    assert_eq!(run(&backend, &[a, b, x.clone(), out.clone()], &DispatchConfig::default()), Err(trap));
    assert_eq!(backend.download_resident(&x), Ok(words(10..14)));
    assert_eq!(backend.download_resident(&out), Ok(words(20..24)));
}

#[test]
fn memory_that_there_is_not_is_an_error() {
    let backend = bulk();
    for bytes in [usize::MAX, usize::MAX / 2, isize::MAX as usize, 1 << 40] {
        assert_eq!(backend.allocate_resident(bytes), Err(BackendError::OutOfMemory { requested: bytes as u64 }));
    }
    assert_eq!(metric(&*backend, "resident_live_handles"), 0);
}

#[test]
fn what_is_live_and_what_was_most_is_counted() {
    let backend = bulk();
    let [a, b] = [100, 50].map(|bytes| backend.allocate_resident(bytes).unwrap());
    backend.free_resident(a).unwrap();
    let c = backend.allocate_resident(20).unwrap();
    let usage = |backend: &dyn VyreBackend| {
        ["resident_live_bytes", "resident_peak_bytes", "resident_live_handles", "resident_peak_handles"]
            .map(|name| metric(backend, name))
    };
    assert_eq!(usage(&*backend), [70, 150, 2, 2]);
    for resource in [b, c] {
        backend.free_resident(resource).unwrap();
    }
    assert_eq!(usage(&*backend), [0, 150, 0, 2]);
}

#[test]
fn faults_at_every_call_leave_nothing_behind() {
    std::panic::set_hook(Box::new(|info| {
        if !info.to_string().contains("a fault was injected") {
            eprintln!("{info}");
        }
    }));
    let cases: Vec<_> = generated(41, 60).into_iter().filter(|case| case.expected.is_ok()).take(20).collect();
    let mut fired = 0;
    for case in &cases {
        // Everything that there is to do with handles.
        let everything = |backend: &dyn VyreBackend, held: &mut Vec<Resource>| -> Result<(), BackendError> {
            let model = bulk();
            let bytes = Bound::new(&*model, case, |_| true);
            let bytes: Vec<Vec<u8>> = bytes.resources.iter().map(|resource| model.download_resident(resource).unwrap()).collect();
            for bytes in &bytes {
                held.push(backend.allocate_resident(bytes.len())?);
            }
            let uploads: Vec<(&Resource, &[u8])> = held.iter().zip(&bytes).map(|(at, bytes)| (at, bytes.as_slice())).collect();
            backend.upload_resident_many(&uploads)?;
            let timed = backend.dispatch_resident_timed(&case.program, held, &case.config)?;
            assert!(timed.outputs.is_empty());
            backend.upload_resident_many(&uploads)?;
            let pipeline = backend.compile_native(&case.program, &case.config)?.expect("it compiles");
            assert_eq!(pipeline.dispatch_persistent_handles(held, &DispatchConfig::default())?, Vec::<Vec<u8>>::new());
            let program = case.config.specialization.apply(&case.program)?;
            let written = program.interface().bound.iter().zip(&*held);
            let written: Vec<&Resource> =
                written.filter(|(i, _)| program.buffers()[**i].access.is_output()).map(|(_, resource)| resource).collect();
            for (resource, expected) in written.iter().zip(case.expected.as_ref().unwrap()) {
                assert_eq!(backend.download_resident(resource)?, *expected, "{}", case.what);
                assert_eq!(backend.download_resident_range(resource, 0, expected.len())?, *expected, "{}", case.what);
            }
            while let Some(resource) = held.last().cloned() {
                backend.free_resident(resource)?;
                held.pop();
            }
            Ok(())
        };
        let device = |plan| FaultyDevice::new(acquire("bulk").unwrap().device().expect("it is a device"), plan);
        let clean = device(FaultPlan::none());
        assert_eq!(everything(&*over(Arc::new(clean.clone())), &mut vec![]), Ok(()), "{}", case.what);
        for call in 0..clean.calls() {
            for fault in Fault::ALL {
                let faulty = device(FaultPlan::none().at_call(call, fault));
                let backend = over(Arc::new(faulty.clone()));
                let what = format!("{}: {fault:?} at call {call}", case.what);
                let mut held = Vec::new();
                let result = catch_unwind(AssertUnwindSafe(|| everything(&*backend, &mut held)));
                fired += faulty.fired().len();
                match result {
                    Ok(result) => assert_eq!(result.is_err(), !faulty.fired().is_empty(), "{what}: {result:?}"),
                    Err(_) => assert_eq!(fault, Fault::Panic, "{what}"),
                }
                if backend.device_lost() {
                    backend.try_recover().unwrap();
                    for resource in held.drain(..) {
                        let stale = Some(BackendError::Resident(ResidentError::Stale(handle(&resource))));
                        assert_eq!(backend.download_resident(&resource).err(), stale, "{what}");
                    }
                }
                held.into_iter()
                    .for_each(|resource| backend.free_resident(resource).unwrap_or_else(|error| panic!("{what}: {error}")));
                assert_eq!(metric(&*backend, "resident_live_bytes"), 0, "{what}: the backend itself keeps nothing");
                assert_eq!(everything(&*backend, &mut vec![]), Ok(()), "{what}: afterwards");
            }
        }
    }
    assert!(fired > 500, "only {fired} faults");
}
