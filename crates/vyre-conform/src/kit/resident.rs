//! Data that stay on the device: what they hold, who may use them how, and what is left when something fails.

use super::cases::{Bound, Known, Outcome, generated, on_resources, program, simple, words};
use super::{Done, KitTest, Open, with_resident};
use std::sync::Arc;
use vyre_driver::backend::registry::wrap_grid_sync_split;
use vyre_driver::grid_sync::contains_grid_sync;
use vyre_driver::{BackendError, DispatchConfig, ResidentError, Resource, TimedDispatchResult, VyreBackend};
use vyre_foundation::ir::Program;
use vyre_smith::subjects::Reference;

const ADD: &str = "program add {
  workgroup 4
  buffer a: read u32 @0
  buffer b: read u32 @1
  buffer x: read_write u32 @2
  buffer out: output u32 @3

  if gid.x < len(x) { x[gid.x] = x[gid.x] + a[gid.x] + b[gid.x] }
  if gid.x < len(out) { out[gid.x] = out[gid.x] + len(out) }
}
";

/// Whether an error is the one that a handle deserves.
type IsRight = fn(&ResidentError) -> bool;

type Test = fn(&Open, &Arc<dyn VyreBackend>) -> Result<(), BackendError>;

pub(super) fn tests(open: &Open) -> Vec<KitTest> {
    let all: [(&str, Test); 10] = [
        ("memory-holds-what-is-put-into-it", memory),
        ("uploads-happen-all-or-not-at-all", uploads),
        ("handles-that-are-not-live", handles),
        ("one-handle-twice", aliases),
        ("outputs-are-zero-at-the-start", outputs),
        ("what-is-not-resident-comes-back", returned),
        ("some-buffers-or-all", mixed),
        ("dispatches-see-what-those-before-left", chained),
        ("a-trap-leaves-it-alone", traps),
        ("grid-barriers-in-several-dispatches", split),
    ];
    let test = |(name, test): (&str, Test)| {
        KitTest::new(format!("resident/{name}"), open, move |open| match with_resident(open) {
            Err(skipped) => skipped,
            Ok(backend) => match test(open, &backend) {
                Ok(()) => Done::Passed,
                Err(error @ BackendError::UnsupportedFeature { .. }) => Done::Skipped(error.message()),
                Err(error) => panic!("{error}"),
            },
        })
    };
    all.map(test).into()
}

fn filled(backend: &dyn VyreBackend, values: impl IntoIterator<Item = u32>) -> Result<Resource, BackendError> {
    let bytes = words(values);
    let resource = backend.allocate_resident(bytes.len())?;
    backend.upload_resident(&resource, &bytes)?;
    Ok(resource)
}

fn add(backend: &dyn VyreBackend, resources: &[Resource], config: &DispatchConfig) -> Result<Vec<Vec<u8>>, BackendError> {
    backend.dispatch_resident_timed(&program(ADD), resources, config).map(|timed| timed.outputs)
}

fn memory(_: &Open, backend: &Arc<dyn VyreBackend>) -> Result<(), BackendError> {
    let (a, b) = (backend.allocate_resident(8)?, backend.allocate_resident(4)?);
    assert_eq!(backend.download_resident(&a)?, [0; 8], "memory is zero at first");
    backend.upload_resident(&a, &[1, 2, 3])?;
    backend.upload_resident_at(&a, 5, &[4, 5])?;
    backend.upload_resident_at(&a, 8, &[])?;
    assert_eq!(backend.download_resident(&a)?, [1, 2, 3, 0, 0, 4, 5, 0]);
    backend.upload_resident_many(&[(&a, &[9]), (&b, &[8, 8, 8, 8])])?;
    backend.upload_resident_at_many(&[(&b, 1, &[7]), (&a, 7, &[6]), (&b, 1, &[5])])?;
    assert_eq!(backend.download_resident_range(&a, 5, 3)?, [4, 5, 6]);
    let ranges = [(&b, 0, 4), (&a, 0, 1), (&a, 8, 0), (&b, 3, 1)];
    assert_eq!(backend.download_resident_ranges(&ranges)?, vec![vec![8, 5, 8, 8], vec![9], vec![], vec![8]]);
    assert_eq!((backend.resident_size(&a)?, backend.resident_size(&b)?), (8, 4));
    backend.copy_resident(&a, 5, &b, 1, 3)?;
    assert_eq!(backend.download_resident(&b)?, [8, 4, 5, 6], "copied from one to the other");
    backend.copy_resident(&b, 0, &b, 1, 3)?;
    assert_eq!(backend.download_resident(&b)?, [8, 8, 4, 5], "copied to a place that overlaps");
    // More than is moved at once anywhere, forwards and backwards.
    let many = backend.allocate_resident(100_000)?;
    let mut expected: Vec<u8> = (0..100_000_u32).map(|n| (n.wrapping_mul(0x9E37_79B1) >> 24) as u8).collect();
    for (from, to, length) in [(0, 16, 100), (16, 0, 100), (4096, 4100, 70_000), (4100, 4096, 70_000), (0, 60_000, 40_000)] {
        backend.upload_resident(&many, &expected)?;
        backend.copy_resident(&many, from, &many, to, length)?;
        expected.copy_within(from..from + length, to);
        assert!(backend.download_resident(&many)? == expected, "{length} bytes copied from {from} to {to}, which overlaps");
    }
    backend.free_resident(many)?;
    [a, b].into_iter().try_for_each(|resource| backend.free_resident(resource))
}

fn uploads(open: &Open, backend: &Arc<dyn VyreBackend>) -> Result<(), BackendError> {
    let (a, b, freed) = (backend.allocate_resident(4)?, backend.allocate_resident(4)?, backend.allocate_resident(4)?);
    backend.free_resident(freed.clone())?;
    let other = open();
    let foreign = other.allocate_resident(4)?;
    let bytes = Resource::Borrowed(vec![0; 4]);
    for (wrong, offset, length) in [(&b, 1, 4), (&b, 5, 0), (&b, usize::MAX, 1), (&freed, 0, 1), (&foreign, 0, 1), (&bytes, 0, 1)]
    {
        let upload = vec![1; length];
        let at = [(&a, 0, &[1u8][..]), (&b, 0, &[1][..]), (wrong, offset, &upload[..])];
        let found = backend.upload_resident_at_many(&at);
        assert!(matches!(found, Err(BackendError::Resident(_))), "{length} bytes at {offset} of {wrong:?}: {found:?}");
        assert!(backend.download_resident_ranges(&[(&a, 0, 1), (wrong, offset, length)]).is_err(), "{wrong:?} was read");
    }
    assert!(backend.upload_resident_many(&[(&a, &[1]), (&b, &[1; 5])]).is_err(), "five bytes went into four");
    assert_eq!(backend.download_resident_ranges(&[(&a, 0, 4), (&b, 0, 4)])?, vec![vec![0; 4]; 2], "a part was uploaded");
    other.free_resident(foreign)?;
    [a, b].into_iter().try_for_each(|resource| backend.free_resident(resource))
}

fn handles(open: &Open, backend: &Arc<dyn VyreBackend>) -> Result<(), BackendError> {
    let live = filled(&**backend, 0..4)?;
    let freed = filled(&**backend, 0..4)?;
    backend.free_resident(freed.clone())?;
    let other = open();
    let foreign = filled(&*other, 0..4)?;
    let bytes = Resource::Borrowed(vec![1]);
    let kinds: [(&str, &Resource, IsRight); 3] = [
        ("freed", &freed, |error| matches!(error, ResidentError::Freed(_))),
        ("foreign", &foreign, |error| matches!(error, ResidentError::Foreign(_))),
        ("bytes", &bytes, |error| matches!(error, ResidentError::NotResident)),
    ];
    for (kind, resource, is_right) in kinds {
        let expect = |call: &str, found: Option<BackendError>| {
            let right = matches!(&found, Some(BackendError::Resident(error)) if is_right(error));
            assert!(right, "{call} of a {kind} handle: {found:?}");
        };
        expect("upload", backend.upload_resident(resource, &[1]).err());
        expect("download", backend.download_resident(resource).err());
        expect("free", backend.free_resident(resource.clone()).err());
        if kind == "bytes" {
            continue;
        }
        expect("download of a part", backend.download_resident_range(resource, 0, 1).err());
        for place in 0..4 {
            let mut resources = Vec::new();
            for n in 0..4 {
                resources.push(if n == 2 { live.clone() } else { filled(&**backend, 0..4)? });
            }
            let kept = std::mem::replace(&mut resources[place], resource.clone());
            expect("dispatch", add(&**backend, &resources, &DispatchConfig::default()).err());
            resources[place] = kept;
            for (n, resource) in resources.into_iter().enumerate() {
                if n != 2 {
                    backend.free_resident(resource)?;
                }
            }
        }
    }
    assert_eq!(backend.download_resident(&live)?, words(0..4), "something ran");
    let next = filled(&**backend, 0..4)?;
    assert_ne!(next, freed, "a freed handle is given out again");
    assert_eq!(other.download_resident(&foreign)?, words(0..4), "another instance's memory was changed");
    other.free_resident(foreign)?;
    [live, next].into_iter().try_for_each(|resource| backend.free_resident(resource))
}

fn aliases(_: &Open, backend: &Arc<dyn VyreBackend>) -> Result<(), BackendError> {
    let backend = &**backend;
    let (a, x, out) = (filled(backend, 0..4)?, filled(backend, 10..14)?, filled(backend, 0..4)?);
    let twice = [a.clone(), a.clone(), x.clone(), out.clone()];
    assert_eq!(add(backend, &twice, &DispatchConfig::default())?, Vec::<Vec<u8>>::new());
    assert_eq!(backend.download_resident(&x)?, words([10, 13, 16, 19]), "read twice");
    for resources in [
        [x.clone(), a.clone(), x.clone(), out.clone()],
        [out.clone(), a.clone(), x.clone(), out.clone()],
        [a.clone(), a.clone(), x.clone(), x.clone()],
    ] {
        let error = add(backend, &resources, &DispatchConfig::default());
        assert!(matches!(error, Err(BackendError::Resident(ResidentError::Aliased(_)))), "written and bound twice: {error:?}");
    }
    assert_eq!(backend.download_resident(&x)?, words([10, 13, 16, 19]), "something ran");
    [a, x, out].into_iter().try_for_each(|resource| backend.free_resident(resource))
}

fn outputs(_: &Open, backend: &Arc<dyn VyreBackend>) -> Result<(), BackendError> {
    let backend = &**backend;
    let inputs = [filled(backend, 0..4)?, filled(backend, 0..4)?, filled(backend, 0..4)?];
    let with = |out: &Resource| inputs.iter().chain([out]).cloned().collect::<Vec<_>>();
    // Longer than every input: the grid covers it, and what it held is gone.
    let out = filled(backend, 100..107)?;
    for _ in 0..2 {
        assert_eq!(add(backend, &with(&out), &DispatchConfig::default())?, Vec::<Vec<u8>>::new());
        assert_eq!(backend.download_resident(&out)?, words([7; 7]), "zero at the start, as long as its memory");
    }
    // What the caller says must agree.
    let says = |count: u32, limit: Option<u64>| DispatchConfig {
        output_counts: [("out".to_string(), count)].into(),
        max_output_bytes: limit,
        ..DispatchConfig::default()
    };
    assert_eq!(add(backend, &with(&out), &says(7, Some(28)))?, Vec::<Vec<u8>>::new());
    let odd = backend.allocate_resident(27)?;
    for (out, config, code) in [
        (&out, says(6, None), "E0703"),
        (&out, says(8, None), "E0703"),
        (&out, says(7, Some(27)), "E0708"),
        (&odd, DispatchConfig::default(), "E0703"),
    ] {
        let error = add(backend, &with(out), &config).err();
        let found = error.as_ref().and_then(|error| error.report(None).codes().next()).map(|code| code.to_string());
        assert_eq!(found.as_deref(), Some(code), "{config:?}: {error:?}");
    }
    // Of no elements nothing runs.
    let empty = backend.allocate_resident(0)?;
    let only = program("program p {\n  workgroup 4\n  buffer out: output u32 @0\n  out[gid.x] = 1\n}\n");
    backend.dispatch_resident_timed(&only, std::slice::from_ref(&empty), &DispatchConfig::default())?;
    inputs.into_iter().chain([out, odd, empty]).try_for_each(|resource| backend.free_resident(resource))
}

fn returned(_: &Open, backend: &Arc<dyn VyreBackend>) -> Result<(), BackendError> {
    let backend = &**backend;
    let a = filled(backend, 0..4)?;
    let borrowed = |values: std::ops::Range<u32>| Resource::Borrowed(words(values));
    let resources = [a.clone(), borrowed(0..4), borrowed(10..14), Resource::Borrowed(b"ignored".to_vec())];
    let both = vec![words([10, 13, 16, 19]), words([4; 4])];
    assert_eq!(add(backend, &resources, &DispatchConfig::default())?, both, "in the order of bindings");
    let x = filled(backend, 10..14)?;
    let resources = [a.clone(), borrowed(0..4), x.clone(), Resource::Borrowed(vec![])];
    assert_eq!(add(backend, &resources, &DispatchConfig::default())?, vec![words([4; 4])]);
    assert_eq!(backend.download_resident(&x)?, words([10, 13, 16, 19]));
    [a, x].into_iter().try_for_each(|resource| backend.free_resident(resource))
}

fn programs(seed: u64, count: u64) -> impl Iterator<Item = Known> {
    simple().into_iter().chain(generated(seed, count))
}

fn mixed(_: &Open, backend: &Arc<dyn VyreBackend>) -> Result<(), BackendError> {
    let mut ran = 0;
    for known in programs(12, 150) {
        for (form, is_resident) in [("none", (|_| false) as fn(usize) -> bool), ("half", |n| n % 2 == 0), ("all", |_| true)] {
            let found = on_resources(&**backend, &known.case, is_resident, |resources| {
                let timed = backend.dispatch_resident_timed(&known.case.program, resources, &known.case.config);
                timed.map(|timed| timed.outputs)
            });
            ran += u32::from(known.check(&format!("dispatch_resident_timed, {form} resident"), &found));
        }
    }
    assert!(ran > 0, "no program could be run");
    Ok(())
}

fn chained(_: &Open, backend: &Arc<dyn VyreBackend>) -> Result<(), BackendError> {
    let mut changed = 0;
    for known in programs(13, 150) {
        let bound = Bound::new(&**backend, &known.case, |_| true)?;
        let interface = bound.program.interface();
        let (mut case, mut last) = (known.case.clone(), None);
        for step in 0..4 {
            let found = backend.dispatch_resident_timed(&case.program, &bound.resources, &case.config).map(|timed| timed.outputs);
            if super::lacks(&found).is_some() {
                break;
            }
            let expected = Reference::default().expected(&case);
            assert_eq!(found.is_ok(), expected.is_ok(), "{} at step {step}: {found:?}, {expected:?}", known.what);
            let Ok(expected) = expected else { break };
            for (n, i) in interface.inputs.iter().enumerate() {
                if let Some(output) = interface.outputs.iter().position(|output| output == i) {
                    changed += u32::from(case.inputs[n] != expected[output]);
                    case.inputs[n] = expected[output].clone();
                }
            }
            last = Some(expected);
        }
        if let Some(expected) = last {
            let found = bound.outputs(&**backend, Ok(vec![]))?;
            assert!(found == expected, "{}: four dispatches over the same memory leave {found:02x?}", known.what);
        }
        bound.free(&**backend)?;
    }
    assert!(changed > 0, "no dispatch left something to the next");
    Ok(())
}

fn traps(_: &Open, backend: &Arc<dyn VyreBackend>) -> Result<(), BackendError> {
    let backend = &**backend;
    let source = "program p {\n  workgroup 4\n  buffer x: read_write u32 @0\n  buffer out: output u32 @1\n  x[gid.x] = 1\n  \
                  out[gid.x] = 2\n  if gid.x >= 2 { trap(5) }\n}\n";
    let (x, out) = (filled(backend, 10..14)?, filled(backend, 20..24)?);
    let found = backend.dispatch_resident_timed(&program(source), &[x.clone(), out.clone()], &DispatchConfig::default());
    if let Err(BackendError::UnsupportedFeature { .. }) = &found {
        [x, out].into_iter().try_for_each(|resource| backend.free_resident(resource))?;
        return found.map(drop);
    }
    assert_eq!(found.err(), Some(BackendError::Trap { tag: 5, invocation: [2, 0, 0] }));
    assert_eq!(backend.download_resident(&x)?, words(10..14), "a trap changed resident data");
    assert_eq!(backend.download_resident(&out)?, words(20..24), "a trap changed resident data");
    [x, out].into_iter().try_for_each(|resource| backend.free_resident(resource))
}

/// A backend as if it had no grid barriers.
struct Split(Arc<dyn VyreBackend>);

impl VyreBackend for Split {
    fn id(&self) -> &'static str {
        self.0.id()
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

/// In one dispatch, if the backend can, and in several they leave the same.
fn split(_: &Open, backend: &Arc<dyn VyreBackend>) -> Result<(), BackendError> {
    let split = wrap_grid_sync_split(Box::new(Split(backend.clone())));
    let mut lacking = Ok(());
    let mut ran = 0;
    for known in generated(14, 300).iter().filter(|known| contains_grid_sync(&known.case.program)) {
        for (how, backend) in [("as it is", &**backend), ("split", &*split)] {
            let bound = Bound::new(backend, &known.case, |_| true)?;
            let returned = backend.dispatch_resident_timed(&known.case.program, &bound.resources, &known.case.config);
            match (&known.expected, returned.map(|timed| timed.outputs)) {
                (_, Err(error @ BackendError::UnsupportedFeature { .. })) => lacking = Err(error),
                (Ok(_), returned) => ran += u32::from(known.check(how, &bound.outputs(backend, returned))),
                // Segments before the trap may have written.
                (Err(error), returned) => assert_eq!(returned.as_ref().err(), Some(error), "{} {how}", known.what),
            }
            bound.free(backend)?;
        }
    }
    if ran == 0 { lacking } else { Ok(()) }
}
