//! What people write: backends, buffers, pipelines and dispatches by name and type. Every form of dispatch gives the same bytes on every
//! backend, and every misuse is an error that names what is wrong, before anything runs.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, Wake, Waker};
use vyre::ResidentError;
use vyre::device::inject::{Fault, FaultPlan, FaultyDevice, Method};
use vyre::prelude::*;
use vyre::spec::ErrorCode;

/// Those that keep data, and one that does not.
const RESIDENT: [&str; 2] = ["cpu", "bulk"];
const ALL: [&str; 3] = ["cpu", "bulk", "reference"];

const AXPY: &str = "program axpy {
  workgroup 64
  const k: f32 = 2.0
  buffer x: read f32 @0
  buffer y: read_write f32 @1
  buffer sum: output f32 @2
  if gid.x < len(x) {
    y[gid.x] = k * x[gid.x] + y[gid.x]
    sum[gid.x] = x[gid.x] + y[gid.x]
  }
}";

fn axpy() -> Program {
    AXPY.parse().unwrap()
}

fn open(id: &str) -> Backend {
    Backend::open(id).unwrap()
}

fn numbers(count: usize) -> Vec<f32> {
    (0..count).map(|n| n as f32 * 0.25 - 3.0).collect()
}

fn codes(error: &BackendError) -> Vec<ErrorCode> {
    let BackendError::Rejected(report) = error else { panic!("{error}") };
    report.codes().collect()
}

/// Runs a future on this thread: all that an executor has to do.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(std::thread::Thread, AtomicU64);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.1.fetch_add(1, Relaxed);
            self.0.unpark();
        }
    }
    let waker = Arc::new(Unpark(std::thread::current(), AtomicU64::new(0)));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&Waker::from(waker.clone()))) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

#[test]
fn every_form_of_dispatch_gives_the_same_bytes() {
    let program = axpy();
    let (x, y) = (numbers(1000), numbers(1000));
    let expected = Dispatch::new(&program).constant("k", 3.5f32).input("x", &x).input("y", &y).run(&open("reference")).unwrap();
    for id in ALL {
        let backend = open(id);
        let once = Dispatch::new(&program).constant("k", 3.5f32).input("x", &x).input("y", &y);
        assert_eq!(once.run(&backend).unwrap(), expected, "{id}");
        let pipeline = Dispatch::new(&program).constant("k", 3.5f32).compile(&backend).unwrap();
        let dispatch = pipeline.dispatch().input("x", &x).input("y", &y).output::<f32>("sum");
        assert_eq!(dispatch.run().unwrap(), expected, "{id}");
        let mut results = Results::default();
        for _ in 0..3 {
            dispatch.run_into(&mut results).unwrap();
            assert_eq!(results, expected, "{id}");
        }
        let (results, timing) = dispatch.run_timed().unwrap();
        assert_eq!(results, expected, "{id}");
        assert!(timing.wall.as_nanos() > 0);
        assert_eq!(dispatch.run_async().unwrap().wait().unwrap(), expected, "{id}");
        assert_eq!(block_on(dispatch.run_async().unwrap()).unwrap(), expected, "{id}");
        let both = [dispatch.run_async().unwrap(), dispatch.run_async().unwrap()];
        for running in both {
            assert_eq!(block_on(running).unwrap(), expected, "{id}");
        }
        // The same pipeline with other inputs in between, and another pipeline.
        let other = backend.compile(&program).unwrap();
        let batch = [dispatch.clone(), other.dispatch().input("x", &x).input("y", &y), dispatch.clone(), dispatch.clone()];
        let results = backend.run_batch(&batch).unwrap();
        assert_eq!((&results[0], &results[2], &results[3]), (&expected, &expected, &expected), "{id}");
        assert_eq!(results[1], other.dispatch().input("x", &x).input("y", &y).run().unwrap());
        assert_ne!(results[1], expected, "the constant has its default");
        // Repeating a constant is fine, saying something else is not.
        assert_eq!(dispatch.clone().constant("k", 3.5f32).run().unwrap(), expected, "{id}");
        let error = dispatch.clone().constant("k", 4.0f32).run().unwrap_err();
        assert!(error.to_string().contains("compiled with another"), "{error}");
    }
}

#[test]
fn every_form_of_dispatch_runs_on_resident_data() {
    let program = axpy();
    let (x, y) = (numbers(256), numbers(256));
    let results = Dispatch::new(&program).input("x", &x).input("y", &y).run(&open("reference")).unwrap();
    let (expected_y, expected_sum): (Vec<f32>, Vec<f32>) = (results.get("y").unwrap(), results.get("sum").unwrap());
    for id in RESIDENT {
        let backend = open(id);
        let pipeline = backend.compile(&program).unwrap();
        // Memory that is larger than what a dispatch takes: all of it, or the middle.
        for (before, after) in [(0, 0), (64, 64), (0, 64), (64, 0)] {
            let whole = |values: &[f32]| [vec![-1.0; before], values.to_vec(), vec![-2.0; after]].concat();
            let part = |buffer: &Buffer<f32>| buffer.slice(before..before + 256).unwrap();
            let on_x = backend.buffer(&whole(&x)).unwrap();
            let on_sum = backend.buffer(&whole(&[9.0; 256])).unwrap();
            for form in 0..6 {
                let what = format!("{id}, {before} before and {after} after, form {form}");
                let on_y = backend.buffer(&whole(&y)).unwrap();
                let (part_x, part_y, part_sum) = (part(&on_x), part(&on_y), part(&on_sum));
                let dispatch = pipeline.dispatch().buffer("x", &part_x).buffer("y", &part_y);
                let in_place = dispatch.clone().buffer("sum", &part_sum);
                let sum: Vec<f32> = match form {
                    0 => dispatch.run().unwrap().get("sum").unwrap(),
                    1 => {
                        let mut results = Results::default();
                        dispatch.run_into(&mut results).unwrap();
                        let mut sum = vec![0.0f32; 256];
                        results.copy_to("sum", &mut sum).unwrap();
                        sum
                    }
                    2 => dispatch.run_timed().unwrap().0.get("sum").unwrap(),
                    3 => block_on(dispatch.run_async().unwrap()).unwrap().get("sum").unwrap(),
                    4 => {
                        let results = backend.run_batch(std::slice::from_ref(&in_place)).unwrap();
                        assert_eq!(results[0].iter().count(), 0, "what is resident does not come back");
                        part_sum.read().unwrap()
                    }
                    _ => {
                        let results = Dispatch::new(&program).buffer("x", &part_x).buffer("y", &part_y).buffer("sum", &part_sum);
                        assert_eq!(results.run(&backend).unwrap().iter().count(), 0);
                        part_sum.read().unwrap()
                    }
                };
                assert_eq!(sum, expected_sum, "{what}");
                assert_eq!(on_y.read().unwrap(), whole(&expected_y), "{what}: what lies around it stays");
                assert_eq!(on_x.read().unwrap(), whole(&x), "{what}");
            }
        }
    }
}

#[test]
fn a_batch_on_resident_data_runs_in_order() {
    let step: Program = "program step { workgroup 64
      buffer from: read u32 @0
      buffer to: output u32 @1
      to[gid.x] = from[gid.x] * 3 + 1
    }"
    .parse()
    .unwrap();
    for id in RESIDENT {
        let backend = open(id);
        let step = backend.compile(&step).unwrap();
        let (a, b) = (backend.buffer(&[1u32, 2, 3]).unwrap(), backend.zeroed::<u32>(3).unwrap());
        let there = step.dispatch().buffer("from", &a).buffer("to", &b);
        let back = step.dispatch().buffer("from", &b).buffer("to", &a);
        let results = backend.run_batch(&[there.clone(), back.clone(), there.clone(), back]).unwrap();
        assert_eq!(results.len(), 4);
        let expected = [1u32, 2, 3].map(|n| (0..4).fold(n, |n, _| n * 3 + 1));
        assert_eq!(a.read().unwrap(), expected, "{id}");
        // Part of it on the host: waited for in between, with the same result.
        let host = step.dispatch().input("from", &[7u32]);
        let results = backend.run_batch(&[there.clone(), host, there]).unwrap();
        assert_eq!(results[1].get::<u32>("to").unwrap(), [22]);
        assert_eq!(b.read().unwrap(), expected.map(|n| n * 3 + 1), "{id}");
    }
}

fn live_bytes(backend: &Backend) -> u64 {
    let metrics = backend.backend_metric_snapshot();
    metrics.into_iter().find(|(name, _)| *name == "resident_live_bytes").map(|(_, bytes)| bytes).unwrap()
}

#[test]
fn memory_is_freed_with_the_last_that_refers_to_it() {
    for id in RESIDENT {
        let backend = open(id);
        let all = backend.buffer(&numbers(100)).unwrap();
        let some = all.slice(10..20).unwrap();
        let same = all.clone();
        assert_eq!(live_bytes(&backend), 400);
        drop((all, same));
        assert_eq!(live_bytes(&backend), 400, "the slice is still there");
        assert_eq!(some.read().unwrap(), numbers(100)[10..20]);
        // What runs on parts borrows memory, and gives it back.
        let double: Program =
            "program double { workgroup 8\n buffer x: read f32 @0\n buffer out: output f32 @1\n out[gid.x] = 2.0 * x[gid.x] }"
                .parse()
                .unwrap();
        Dispatch::new(&double).buffer("x", &some).run(&backend).unwrap();
        assert_eq!(live_bytes(&backend), 400);
        drop(some);
        assert_eq!(live_bytes(&backend), 0);
        assert!(backend.zeroed::<u64>(0).unwrap().read().unwrap().is_empty());
        assert_eq!(backend.zeroed::<u64>(3).unwrap().read().unwrap(), [0; 3]);
    }
}

#[test]
fn buffers_are_written_sliced_and_copied() {
    for id in RESIDENT {
        let backend = open(id);
        let buffer = backend.buffer(&[1u16, 2, 3, 4, 5, 6]).unwrap();
        assert_eq!((buffer.len(), buffer.is_empty(), format!("{buffer:?}")), (6, false, format!("Buffer<u16>[6] on {id}")));
        buffer.slice(2..4).unwrap().write(&[30, 40]).unwrap();
        buffer.slice(4..=4).unwrap().write(&[50]).unwrap();
        buffer.slice(1..).unwrap().slice(..1).unwrap().write(&[20]).unwrap();
        assert_eq!(buffer.read().unwrap(), [1, 20, 30, 40, 50, 6]);
        buffer.slice(4..).unwrap().copy_to(&buffer.slice(..2).unwrap()).unwrap();
        assert_eq!(buffer.read().unwrap(), [50, 6, 30, 40, 50, 6]);
        for other in RESIDENT {
            let other = open(other).zeroed::<u16>(6).unwrap();
            buffer.copy_to(&other).unwrap();
            assert_eq!(other.read().unwrap(), buffer.read().unwrap());
        }
        // Ranges and numbers of values that do not fit.
        let outside = |result: Result<Buffer<u16>, BackendError>| match result {
            Err(BackendError::Resident(ResidentError::OutOfRange { offset, length, size, .. })) => (offset, length, size),
            other => panic!("{other:?}"),
        };
        assert_eq!(outside(buffer.slice(3..7)), (6, 8, 12));
        assert_eq!(outside(buffer.slice(7..)), (14, 0, 12));
        assert_eq!(outside(buffer.slice(..=usize::MAX)), (0, u64::MAX, 12));
        #[expect(clippy::reversed_empty_ranges, reason = "it is what is refused")]
        let reversed = buffer.slice(4..2);
        assert_eq!(outside(reversed), (8, 0, 12));
        assert_eq!(outside(buffer.slice(2..4).unwrap().slice(1..3)), (2, 4, 4));
        let short = buffer.write(&[1]).unwrap_err();
        assert_eq!(codes(&short), [ErrorCode::E0703]);
        assert!(short.to_string().contains("has 6 elements, and there are 1 values"), "{short}");
        let long = buffer.copy_to(&buffer.slice(..2).unwrap()).unwrap_err();
        assert!(long.to_string().contains("has 2 elements, and there are 6 values"), "{long}");
        assert_eq!(buffer.read().unwrap(), [50, 6, 30, 40, 50, 6], "nothing was written");
        buffer.slice(0..4).unwrap().copy_to(&buffer.slice(2..6).unwrap()).unwrap();
        assert_eq!(buffer.read().unwrap(), [50, 6, 50, 6, 30, 40], "what overlaps is read before it is written");
    }
}

#[test]
fn misuse_is_told_by_name_before_anything_runs() {
    let program = axpy();
    for id in RESIDENT {
        let backend = open(id);
        let pipeline = backend.compile(&program).unwrap();
        let (x, y) = (backend.buffer(&numbers(8)).unwrap(), backend.buffer(&numbers(8)).unwrap());
        let good = || pipeline.dispatch().buffer("x", &x).buffer("y", &y);
        use ErrorCode as E;
        let cases: Vec<(Dispatch<'_, &Pipeline>, Vec<ErrorCode>, &[&str])> = vec![
            (pipeline.dispatch().buffer("x", &x), vec![E::E0701], &["`y` is missing"]),
            (good().buffer("z", &x), vec![E::E0702], &["no buffer `z`", "one of x, y, sum"]),
            (good().buffer("x", &x), vec![E::E0715], &["`x` is given twice"]),
            (good().input("x", &[1.0f32]), vec![E::E0715], &["`x` is given twice"]),
            (good().buffer("sum", &x).buffer("sum", &x), vec![E::E0715], &["`sum` is given twice"]),
            (good().buffer("summ", &x), vec![E::E0702], &["did you mean `sum`?"]),
            (good().buffer("sum", &backend.zeroed::<f64>(8).unwrap()), vec![E::E0704], &["`sum` have 8 bytes each"]),
            (
                pipeline.dispatch().buffer("x", &x).buffer("y", &backend.zeroed::<u8>(8).unwrap()),
                vec![E::E0704],
                &["`y` have 1 bytes each"],
            ),
            (good().output::<f64>("sum"), vec![E::E0704], &["`sum`"]),
            (good().output::<f32>("x"), vec![E::E0702], &["no output `x`"]),
            (
                good().buffer("sum", &backend.zeroed::<f32>(3).unwrap()).output_len("sum", 8),
                vec![E::E0703],
                &["`sum` has 12 bytes"],
            ),
            (good().grid([0, 1, 1]), vec![E::E0707], &["has none"]),
        ];
        for (dispatch, expected, words) in cases {
            let error = dispatch.run().unwrap_err();
            assert_eq!(codes(&error), expected, "{error}");
            for word in words {
                assert!(error.to_string().contains(word), "{word} in\n{error}");
            }
            // Every form refuses it in the same words.
            let mut results = Results::default();
            assert_eq!(dispatch.run_into(&mut results).unwrap_err(), error);
            assert_eq!(dispatch.run_timed().unwrap_err(), error);
            assert_eq!(dispatch.run_async().unwrap_err(), error);
            assert_eq!(backend.run_batch(&[good(), dispatch]).unwrap_err(), error);
        }
        assert_eq!((x.read().unwrap(), y.read().unwrap()), (numbers(8), numbers(8)), "nothing ran");

        // Buffers and pipelines of another backend, also of another instance of the same one.
        for other in RESIDENT {
            let other = open(other);
            let foreign = other.buffer(&numbers(8)).unwrap();
            let dispatches =
                [good().buffer("sum", &foreign), good().buffer("sum", &foreign.slice(1..8).unwrap()).grid([1, 1, 1])];
            for dispatch in dispatches {
                let error = dispatch.run().unwrap_err();
                assert!(matches!(error, BackendError::Resident(ResidentError::Foreign(_))), "{error}");
                assert!(matches!(dispatch.run_async().map(drop), Err(BackendError::Resident(ResidentError::Foreign(_)))));
            }
            let error = other.run_batch(&[good()]).unwrap_err();
            assert!(error.to_string().contains("a pipeline of another backend"), "{error}");
        }
        // One memory for two buffers, one of which is written.
        let twice = pipeline.dispatch().buffer("x", &y).buffer("y", &y);
        assert!(matches!(twice.run(), Err(BackendError::Resident(ResidentError::Aliased(_)))));
        let overlapping = pipeline.dispatch().buffer("x", &y.slice(..6).unwrap()).buffer("y", &y.slice(2..).unwrap());
        assert!(matches!(overlapping.run(), Err(BackendError::Resident(ResidentError::Aliased(_)))));
        assert_eq!(y.read().unwrap(), numbers(8));
    }
    let error = open("reference").buffer(&[1u32]).unwrap_err();
    assert!(matches!(&error, BackendError::UnsupportedFeature { backend, .. } if backend == "reference"), "{error}");
    let error = Backend::open("gpu").unwrap_err();
    assert!(matches!(&error, BackendError::UnknownBackend { known, .. } if known.iter().any(|id| id == "cpu")), "{error}");
}

/// An integer without suffix is an `i32` in Rust; the message says so in the words of the text form.
#[test]
fn an_expression_of_mixed_types_is_told_where_it_stands() {
    let program = Program::wrapped(
        vec![BufferDecl::output("out", 0, DataType::U32)],
        [8, 1, 1],
        vec![Node::store("out", Expr::gid_x() + 1, 1u32)],
    );
    let error = program.validated().unwrap_err().to_string();
    assert!(error.contains("out[gid.x + 1i] = 1") && error.contains("needs u32 here, found i32"), "{error}");
}

#[test]
fn a_lost_device_is_an_error_and_not_zeros() {
    let inner = open("bulk").device().unwrap();
    let plan = FaultPlan::none().at_call_of(Method::Run, 1, Fault::DeviceLost);
    let backend = Backend::of_device(Arc::new(FaultyDevice::new(inner, plan)));
    let pipeline = backend.compile(&axpy()).unwrap();
    let (x, y) = (backend.buffer(&numbers(8)).unwrap(), backend.buffer(&numbers(8)).unwrap());
    let dispatch = pipeline.dispatch().buffer("x", &x).buffer("y", &y);
    let first = dispatch.run().unwrap();
    let mut kept = first.clone();
    assert!(matches!(dispatch.run_into(&mut kept), Err(BackendError::DeviceLost { .. })));
    assert_eq!(kept, first, "results of before stay");
    assert!(backend.device_lost());
    assert!(x.read().is_err() && x.write(&numbers(8)).is_err());
    assert!(matches!(dispatch.run(), Err(BackendError::DeviceLost { .. })));
    backend.try_recover().unwrap();
    assert!(matches!(x.read(), Err(BackendError::Resident(ResidentError::Stale(_)))));
    assert!(matches!(dispatch.run(), Err(BackendError::Resident(ResidentError::Stale(_)))));
    // The pipeline works again, on new memory; dropping the old does no harm.
    let (x, y) = (backend.buffer(&numbers(8)).unwrap(), backend.buffer(&numbers(8)).unwrap());
    assert_eq!(pipeline.dispatch().buffer("x", &x).buffer("y", &y).run().unwrap(), first);
    drop(backend);
    assert_eq!(x.read().unwrap(), numbers(8), "a buffer keeps its backend");
}

/// A backend of two methods has every form but resident data.
#[test]
fn a_backend_by_hand_has_every_form() {
    struct Mine;
    impl VyreBackend for Mine {
        fn id(&self) -> &'static str {
            "mine"
        }

        fn dispatch(&self, program: &Program, inputs: &[Vec<u8>], config: &DispatchConfig) -> Result<Vec<Vec<u8>>, BackendError> {
            Backend::open("reference")?.dispatch(program, inputs, config)
        }
    }
    let backend = Backend::new(Mine);
    let pipeline = backend.compile(&axpy()).unwrap();
    let x = numbers(8);
    let dispatch = pipeline.dispatch().input("x", &x).input("y", &x);
    let expected = dispatch.run().unwrap();
    assert_eq!(block_on(dispatch.run_async().unwrap()).unwrap(), expected);
    assert_eq!(backend.run_batch(&[dispatch.clone(), dispatch]).unwrap(), [expected.clone(), expected]);
    assert!(backend.buffer(&x).is_err());
}

#[test]
fn handles_cross_threads() {
    fn is_shared<T: Send + Sync + 'static>() {}
    fn is_sent<T: Send + 'static>() {}
    is_shared::<Backend>();
    is_shared::<Buffer<f32>>();
    is_shared::<Pipeline>();
    is_sent::<Running>();
    let backend = open("cpu");
    let pipeline = backend.compile(&axpy()).unwrap();
    let x = backend.buffer(&numbers(64)).unwrap();
    let expected = pipeline.dispatch().buffer("x", &x).input("y", &numbers(64)).run().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let y = numbers(64);
                for _ in 0..50 {
                    assert_eq!(pipeline.dispatch().buffer("x", &x).input("y", &y).run().unwrap(), expected);
                }
            });
        }
    });
}

#[test]
fn a_future_that_gave_its_results_says_so() {
    let backend = open("bulk");
    let pipeline = backend.compile(&axpy()).unwrap();
    let x = numbers(8);
    let mut running = pin!(pipeline.dispatch().input("x", &x).input("y", &x).run_async().unwrap());
    block_on(running.as_mut()).unwrap();
    assert!(running.is_ready());
    let again = block_on(running.as_mut()).unwrap_err();
    assert!(again.to_string().contains("were taken"), "{again}");
}
