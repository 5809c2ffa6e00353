//! Bytes on the device: grids beyond what one dispatch has, spans of one memory, copies of any bytes, loss.

use crate::{DEVICES, open, program, words};
use std::sync::Arc;
use vyre_driver::DispatchConfig;
use vyre_driver::device::{CodeOptions, Deadline, Device, DeviceError, Done, Memory, Span, Step, WaitError};
use vyre_driver_wgpu::wgpu_device;
use vyre_foundation::launch::{LaunchConfig, plan};

fn submit(device: &dyn Device, steps: Vec<Step>) -> Result<Done, DeviceError> {
    device.submit(steps, Deadline::NONE)?.wait(Deadline::NONE).map_err(|error| match error {
        WaitError::Failed(error) => error,
        WaitError::Pending => panic!("there was no deadline"),
    })
}

fn span(memory: &Memory, start: u64, len: u64) -> Span {
    Span { memory: memory.clone(), range: start..start + len }
}

#[test]
fn grids_are_larger_than_one_dispatch() {
    let text = "program p {\n workgroup 1\n buffer out: output u32[150000] @0\n out[gid.x] = wid.x + wid_count.x\n}";
    for id in DEVICES {
        let outputs = open(id).dispatch_borrowed(&program(text), &[], &Default::default()).unwrap();
        assert!(outputs[0] == words((0..150_000).map(|i| i + 150_000)), "{id}");
    }
}

#[test]
fn bytes_are_copied_from_anywhere_to_anywhere() {
    for id in DEVICES {
        let device = wgpu_device(id).unwrap();
        let (one, other) = (device.allocate(61).unwrap(), device.allocate(70).unwrap());
        let pattern: Vec<u8> = (100..161).collect();
        let mut expected_one = pattern.clone();
        let mut expected_other = vec![0u8; 70];
        let mut steps = vec![Step::Write { to: one.whole(), bytes: Arc::from(pattern) }];
        for (from, to, len) in [(0, 0, 4), (1, 9, 3), (5, 18, 1), (8, 21, 30), (3, 55, 15), (60, 69, 1)] {
            steps.push(Step::Copy { from: span(&one, from, len), to: span(&other, to, len) });
            let (from, to, len) = (from as usize, to as usize, len as usize);
            expected_other[to..to + len].copy_from_slice(&expected_one[from..from + len]);
        }
        // Onto itself, both ways.
        for (from, to, len) in [(0u64, 3u64, 20u64), (30, 26, 11), (40, 40, 5)] {
            steps.push(Step::Copy { from: span(&one, from, len), to: span(&one, to, len) });
            expected_one.copy_within(from as usize..(from + len) as usize, to as usize);
        }
        for (at, bytes) in [(7, vec![1u8, 2, 3]), (33, vec![9]), (40, vec![5, 6, 7, 8])] {
            let to = span(&one, at, bytes.len() as u64);
            expected_one[at as usize..at as usize + bytes.len()].copy_from_slice(&bytes);
            steps.push(Step::Write { to, bytes: Arc::from(bytes) });
        }
        steps.push(Step::Read(one.whole()));
        steps.push(Step::Read(other.whole()));
        steps.push(Step::Read(span(&other, 21, 5)));
        steps.push(Step::Read(span(&one, 3, 0)));
        let done = submit(&*device, steps).unwrap();
        let part = expected_other[21..26].to_vec();
        assert_eq!(done.reads, [expected_one, expected_other, part, vec![]], "{id}");
    }
}

#[test]
fn ranges_of_one_memory_are_read_and_written_by_one_dispatch() {
    let text = "program p {\n workgroup 4\n buffer a: read u32[4] @0\n buffer b: read u8[3] @1\n buffer out: output u32[4] @2\n buffer small: output u8[5] @3\n out[gid.x] = a[gid.x] + u32(b[0])\n small[gid.x] = gid.x + 1\n}";
    for id in DEVICES {
        let device = wgpu_device(id).unwrap();
        let alignment = device.info().limits.span_alignment;
        let program = program(text);
        let kernel = program.validated().unwrap().kernel().clone();
        let code = device.compile(&kernel, &CodeOptions::default()).unwrap();
        let launch = Arc::new(plan(&program, &[16, 3], &LaunchConfig::default()).unwrap());
        let memory = device.allocate(4 * alignment).unwrap();
        let bindings = vec![
            span(&memory, 0, 16),
            span(&memory, alignment, 3),
            span(&memory, 2 * alignment, 16),
            span(&memory, 3 * alignment, 5),
        ];
        let steps = vec![
            Step::Write { to: memory.whole(), bytes: Arc::from(vec![1u8; 4 * alignment as usize]) },
            Step::Dispatch {
                code: code.clone(),
                launch: launch.clone(),
                groups: 0..1,
                zero_outputs: true,
                bindings: bindings.clone(),
            },
            Step::Read(bindings[2].clone()),
            Step::Read(span(&memory, 3 * alignment, 8)),
        ];
        let done = submit(&*device, steps).unwrap();
        assert_eq!(done.reads, [words([0x0101_0102; 4]), vec![1, 2, 3, 4, 0, 1, 1, 1]], "{id}");
        let aliased = vec![span(&memory, 0, 16), bindings[1].clone(), span(&memory, 0, 16), bindings[3].clone()];
        let step = Step::Dispatch { code, launch, groups: 0..1, zero_outputs: true, bindings: aliased };
        assert_eq!(submit(&*device, vec![step]), Err(DeviceError::Aliased), "{id}");
    }
}

#[test]
fn what_was_made_before_a_loss_is_stale_and_the_device_is_right_afterwards() {
    for id in DEVICES {
        let device = wgpu_device(id).unwrap();
        let before = device.allocate(8).unwrap();
        let generation = device.recover().unwrap();
        assert_eq!(device.info().generation, generation);
        assert!(matches!(submit(&*device, vec![Step::Read(before.whole())]), Err(DeviceError::Stale(_))), "{id}");
        let after = device.allocate(8).unwrap();
        let steps = vec![Step::Write { to: after.whole(), bytes: Arc::from(vec![7u8; 8]) }, Step::Read(after.whole())];
        assert_eq!(submit(&*device, steps).unwrap().reads, [vec![7; 8]], "{id}");
    }
}

#[test]
fn dispatches_have_the_time_that_the_device_measured() {
    let text = "program p {\n workgroup 64\n buffer out: output u32[1000000] @0\n out[gid.x] = gid.x * gid.x\n}";
    // One that may trap ends its submission, and one of many parts has one time.
    let traps = "program p {\n workgroup 1\n buffer out: output u32[150000] @0\n if gid.x == gid_count.x {\n  trap(1)\n }\n out[gid.x] = 1\n}";
    for id in DEVICES {
        for text in [text, traps] {
            let timed = open(id).dispatch_borrowed_timed(&program(text), &[], &Default::default()).unwrap();
            assert!(timed.device_ns.is_some_and(|time| time > 0), "{id}: {:?}", timed.device_ns);
        }
        let device = wgpu_device(id).unwrap();
        let kernel = program(text).validated().unwrap().kernel().clone();
        let code = device.compile(&kernel, &CodeOptions::default()).unwrap();
        let launch = Arc::new(plan(&program(text), &[], &LaunchConfig::default()).unwrap());
        let memory = device.allocate(4_000_000).unwrap();
        let step = Step::Dispatch { code, launch, groups: 0..15_625, zero_outputs: true, bindings: vec![memory.whole()] };
        let done = submit(&*device, vec![step.clone(), step.clone(), Step::Read(span(&memory, 8, 4)), step]).unwrap();
        assert!(done.ran.len() == 3 && done.ran.iter().all(|ran| ran.device_ns.is_some_and(|time| time > 0)), "{id}");
        assert_eq!(done.reads, [words([4])], "{id}");
    }
}

/// Whatever a dispatch that the device refuses would have done, memory holds what was uploaded; also memory that somebody had before.
#[test]
fn what_was_uploaded_is_there_after_a_refused_dispatch() {
    let refused = program("program p {\n  workgroup 4\n  buffer out: output f64 @0\n  out[gid.x] = f64(gid.x)\n}\n");
    for id in DEVICES {
        let device = open(id);
        for round in 0..3u8 {
            for length in [8usize, 16, 64, 256, 264, 4096, 70_000] {
                let bytes = vec![0x55 + round; length];
                let memory = device.allocate_resident(length).unwrap();
                device.upload_resident(&memory, &bytes).unwrap();
                let resources = [memory];
                device.dispatch_resident_timed(&refused, &resources, &DispatchConfig::default()).unwrap_err();
                assert_eq!(device.download_resident(&resources[0]).unwrap(), bytes, "{length} bytes in round {round} on {id}");
                let [memory] = resources;
                device.free_resident(memory).unwrap();
            }
        }
    }
}
