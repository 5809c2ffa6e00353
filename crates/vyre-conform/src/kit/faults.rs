//! A device that fails at every call in turn: errors and no wrong bytes, nothing left behind, and afterwards all is well.

use super::cases::{Known, generated, simple, starts};
use super::{Done, KitTest, Open, lacks};
use std::sync::Arc;
use vyre_driver::device::backend as over;
use vyre_driver::device::inject::{Fault, FaultPlan, FaultyDevice};
use vyre_driver::{BackendError, DispatchConfig, ResidentError, Resource, VyreBackend, pipeline};
use vyre_worker::caught;

/// Programs that are tried.
const PROGRAMS: usize = 12;

pub(super) fn tests(open: &Open) -> Vec<KitTest> {
    Fault::ALL.map(|fault| KitTest::new(format!("faults/{fault:?}"), open, move |open| at_every_call(open, fault))).into()
}

fn at_every_call(open: &Open, fault: Fault) -> Done {
    if open().device().is_none() {
        return Done::Skipped("it is not made of a device".into());
    }
    let device = |plan| FaultyDevice::new(open().device().unwrap_or_else(|| panic!("it was made of a device before")), plan);
    // The device alone, which need not have grid barriers.
    let alone = over(Arc::new(device(FaultPlan::none())));
    let runs = |known: &Known| {
        known.expected.is_ok() && lacks(&alone.dispatch(&known.case.program, &known.case.inputs, &known.case.config)).is_none()
    };
    let mut fired = 0;
    let mut all = simple().into_iter().skip(4).take(2).chain(generated(41, 60)).filter(runs).take(PROGRAMS).peekable();
    assert!(all.peek().is_some(), "no program could be run");
    for known in all {
        let clean = device(FaultPlan::none());
        let result = everything(&Arc::from(over(Arc::new(clean.clone()))), &known, &mut Vec::new());
        assert_eq!(result, Ok(()), "{} without a fault", known.what);
        for call in 0..clean.calls() {
            let faulty = device(FaultPlan::none().at_call(call, fault));
            let backend: Arc<dyn VyreBackend> = Arc::from(over(Arc::new(faulty.clone())));
            let what = format!("{}: {fault:?} at call {call}", known.what);
            let mut held = Vec::new();
            let result = caught(|| everything(&backend, &known, &mut held));
            fired += faulty.fired().len();
            match result {
                Ok(result) => assert_eq!(result.is_err(), !faulty.fired().is_empty(), "{what}: {result:?}"),
                Err(said) => assert!(fault == Fault::Panic && said.contains("injected"), "{what}: {said}"),
            }
            if backend.device_lost() {
                backend.try_recover().unwrap_or_else(|error| panic!("{what}: it does not recover: {error}"));
                for resource in held.drain(..) {
                    let found = backend.download_resident(&resource).err();
                    let stale = matches!(found, Some(BackendError::Resident(ResidentError::Stale(_))));
                    assert!(stale, "{what}: a handle of before the loss gives {found:?}");
                }
            }
            for resource in held {
                backend.free_resident(resource).unwrap_or_else(|error| panic!("{what}: {error}"));
            }
            let live = backend.backend_metric_snapshot().into_iter().find(|(name, _)| *name == "resident_live_bytes");
            assert!(live.is_none_or(|(_, bytes)| bytes == 0), "{what}: resident memory is left: {live:?}");
            assert_eq!(everything(&backend, &known, &mut Vec::new()), Ok(()), "{what}: afterwards");
        }
    }
    // A device that does not read back in these calls cannot come short.
    assert!(fired > 0 || fault == Fault::ShortRead, "the fault was never met");
    Done::Passed
}

/// Everything that there is to do with a program. What is allocated is in `held` until it is freed.
fn everything(backend: &Arc<dyn VyreBackend>, known: &Known, held: &mut Vec<Resource>) -> Result<(), BackendError> {
    let case = &known.case;
    let expected = known.expected.as_ref().map_err(Clone::clone)?;
    assert_eq!(backend.dispatch_borrowed(&case.program, &case.input_slices(), &case.config)?, *expected, "{}", known.what);
    let pending = backend.dispatch_async(&case.program, &case.inputs, &case.config)?;
    assert_eq!(pending.wait()?, *expected, "{}", known.what);
    if case.program.is_wrapped() {
        let compiled = pipeline::compile(backend.clone(), &case.program, &case.config)?;
        let mut outputs = Vec::new();
        compiled.dispatch_borrowed_into(&case.input_slices(), &DispatchConfig::default(), &mut outputs)?;
        assert_eq!(outputs, *expected, "{}", known.what);
    }
    let starts = starts(case)?;
    for bytes in &starts {
        held.push(backend.allocate_resident(bytes.len())?);
    }
    let uploads: Vec<(&Resource, &[u8])> = held.iter().zip(&starts).map(|(at, bytes)| (at, bytes.as_slice())).collect();
    backend.upload_resident_many(&uploads)?;
    assert_eq!(backend.dispatch_resident_timed(&case.program, held, &case.config)?.outputs, Vec::<Vec<u8>>::new());
    let program = case.specialized()?;
    let bound = program.interface().bound.iter().zip(&*held);
    let written = bound.filter(|(i, _)| program.buffers()[**i].access.is_output()).map(|(_, resource)| resource);
    for (resource, expected) in written.zip(expected) {
        assert_eq!(backend.download_resident(resource)?, *expected, "{}", known.what);
        assert_eq!(backend.download_resident_range(resource, 0, expected.len())?, *expected, "{}", known.what);
    }
    while let Some(resource) = held.last().cloned() {
        backend.free_resident(resource)?;
        held.pop();
    }
    Ok(())
}
