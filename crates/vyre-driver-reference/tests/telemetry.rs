//! Dispatches are counted, each once, under the backend's id. Alone in its process, because counters are the process's.

use vyre_driver::backend::registry::acquire;
use vyre_driver::backend::{ResidentRange, ResidentStep};
use vyre_driver::observability::{DispatchTelemetry, snapshot_backend_telemetry, snapshot_dispatch_telemetry};
use vyre_driver::{DispatchConfig, Resource, pipeline};
use vyre_driver_reference as _;
use vyre_foundation::text;

const KERNEL: &str = "program p {
  workgroup 4
  buffer a: read u32[2] @0
  buffer x: read_write u32[4] @1
  buffer out: output u32[8] @2

  if a[0] == 7 {
    trap(1)
  }
  out[gid.x] = a[0] + x[0]
}
";

fn launches() -> DispatchTelemetry {
    let of_backends = snapshot_backend_telemetry();
    let bulk = of_backends.iter().find(|(id, _)| *id == "bulk").map_or(DispatchTelemetry::default(), |(_, counted)| *counted);
    assert_eq!(snapshot_dispatch_telemetry(), bulk, "nothing is counted elsewhere");
    bulk
}

#[test]
fn every_form_is_counted_once_and_failures_are_not() {
    let backend = std::sync::Arc::from(acquire("bulk").unwrap());
    let program = text::parse("test", KERNEL).unwrap();
    let config = DispatchConfig::default();
    let (a, x) = (vec![0; 8], vec![0; 16]);
    let (inputs, owned): ([&[u8]; 2], _) = ([&a, &x], [a.clone(), x.clone()]);
    let pipeline = pipeline::compile(std::sync::Arc::clone(&backend), &program, &config).unwrap();
    let handles: Vec<Resource> = [8, 16, 32].iter().map(|bytes| backend.allocate_resident(*bytes).unwrap()).collect();
    let mixed = [handles[0].clone(), Resource::Borrowed(x.clone()), handles[2].clone()];
    let buffers = || vec![vec![1], vec![2], vec![3]];
    // Bytes that came from the caller, bytes and buffers that went back, and buffers that were the caller's.
    let all = [24, 48, 2, 0];
    let into = [24, 48, 2, 2];
    // Two dispatches between uploads, a copy and two downloads, and the same without them.
    let range = |n: usize| ResidentRange::from(&handles[n]);
    let dispatch =
        || ResidentStep::Dispatch { program: &program, config: &config, bindings: handles.iter().map(Into::into).collect() };
    let copies = || {
        let upload = |n, bytes| ResidentStep::Upload { to: range(n), bytes };
        let copy = ResidentStep::Copy { from: range(0), to: range(2) };
        vec![upload(0, &a[..]), upload(1, &x[..]), copy, ResidentStep::Download(range(2)), ResidentStep::Download(range(1))]
    };
    let sequence = || {
        let mut steps = copies();
        steps.insert(2, dispatch());
        steps.insert(4, dispatch());
        steps
    };
    type Call<'a> = Box<dyn Fn() + 'a>;
    let calls: [(&str, [u64; 4], Call<'_>); 16] = [
        ("dispatch", all, Box::new(|| drop(backend.dispatch(&program, &owned, &config).unwrap()))),
        ("borrowed", all, Box::new(|| drop(backend.dispatch_borrowed(&program, &inputs, &config).unwrap()))),
        ("into", into, Box::new(|| backend.dispatch_borrowed_into(&program, &inputs, &config, &mut buffers()).unwrap())),
        ("timed", all, Box::new(|| drop(backend.dispatch_borrowed_timed(&program, &inputs, &config).unwrap()))),
        ("async", all, Box::new(|| drop(backend.dispatch_async(&program, &owned, &config).unwrap().wait().unwrap()))),
        ("resident", [0; 4], Box::new(|| drop(backend.dispatch_resident_timed(&program, &handles, &config).unwrap()))),
        ("mixed", [16, 16, 1, 0], Box::new(|| drop(backend.dispatch_resident_timed(&program, &mixed, &config).unwrap()))),
        ("pipeline", all, Box::new(|| drop(pipeline.dispatch(&owned, &config).unwrap()))),
        ("pipeline, borrowed", all, Box::new(|| drop(pipeline.dispatch_borrowed(&inputs, &config).unwrap()))),
        ("pipeline, into", into, Box::new(|| pipeline.dispatch_borrowed_into(&inputs, &config, &mut buffers()).unwrap())),
        ("pipeline, timed", all, Box::new(|| drop(pipeline.dispatch_borrowed_timed(&inputs, &config).unwrap()))),
        ("pipeline, batch of one", all, Box::new(|| drop(pipeline.dispatch_borrowed_batched(&[&inputs], &config).unwrap()))),
        ("pipeline, handles", [0; 4], Box::new(|| drop(pipeline.dispatch_persistent_handles(&handles, &config).unwrap()))),
        (
            "pipeline, mixed into",
            [16, 16, 1, 1],
            Box::new(|| pipeline.dispatch_persistent_handles_into(&mixed, &config, &mut buffers()).unwrap()),
        ),
        (
            "a sequence of two",
            [24, 48, 2, 0],
            Box::new(|| drop(backend.submit_resident(&sequence(), &config).unwrap().wait().unwrap())),
        ),
        (
            "pipeline, two of a batch",
            [48, 96, 4, 0],
            Box::new(|| drop(pipeline.dispatch_borrowed_batched(&[&inputs, &inputs], &config).unwrap())),
        ),
    ];
    for (what, [input_bytes, output_bytes, output_slots, output_slots_reused], call) in calls {
        let before = launches();
        call();
        let after = launches();
        let counted = [
            after.launches - before.launches,
            after.input_bytes - before.input_bytes,
            after.output_bytes - before.output_bytes,
            after.output_slots - before.output_slots,
            after.output_slots_reused - before.output_slots_reused,
        ];
        let launches = if what.contains("two") { 2 } else { 1 };
        assert_eq!(counted, [launches, input_bytes, output_bytes, output_slots, output_slots_reused], "{what}");
    }
    let before = launches();
    // What only copies is no dispatch; neither is a sequence that nobody waits for, or that fails.
    assert_eq!(backend.submit_resident(&copies(), &config).unwrap().wait().unwrap().len(), 2);
    drop(backend.submit_resident(&sequence(), &config).unwrap());
    backend.upload_resident(&handles[0], &[7, 0, 0, 0, 0, 0, 0, 0]).unwrap();
    assert!(backend.submit_resident(&[dispatch()], &config).unwrap().wait().is_err());
    let trapping = [vec![7, 0, 0, 0, 0, 0, 0, 0], x];
    assert!(backend.dispatch(&program, &trapping, &config).is_err());
    assert!(pipeline.dispatch(&trapping[..1], &config).is_err());
    assert_eq!(launches(), before);
}
