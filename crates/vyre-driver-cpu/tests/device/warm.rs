//! A warm dispatch allocates nothing; what ran is told.

use crate::{TIERS, cpu, program, words};
use vyre_driver::device::{Binding, Call, CodeOptions, Deadline, Ran};
use vyre_driver::{DispatchConfig, pipeline};
use vyre_foundation::launch::{LaunchConfig, plan};

const SMALL: &str = "program p {
  workgroup 64
  buffer a: read u32 @0
  buffer out: output u32 @1
  let i = gid.x
  if i < len(out) {
    out[i] = a[i] ^ 5
  }
}
";

const BARRIERS: &str = "program p {
  workgroup 16
  buffer a: read u32 @0
  buffer out: output u32 @1
  buffer tile: workgroup u32[16]
  let x = a[gid.x]
  tile[lid.x] = x
  barrier
  let y = tile[15 - lid.x]
  for i in 0..lid.x {
    y = y * 3 + i
  }
  barrier.grid
  out[gid.x] = x + y
}
";

#[test]
fn a_warm_small_dispatch_allocates_nothing() {
    let a = words(0..64);
    for portable in TIERS {
        for text in [SMALL, BARRIERS] {
            let pipeline = pipeline::compile(cpu(4, portable), &program(text), &DispatchConfig::default()).unwrap();
            let config = DispatchConfig::default();
            let mut outputs = Vec::new();
            for _ in 0..3 {
                pipeline.dispatch_borrowed_into(&[&a], &config, &mut outputs).unwrap();
            }
            let mut result = Ok(());
            let measured = allocation_counter::measure(|| {
                for _ in 0..3 {
                    result = result.clone().and(pipeline.dispatch_borrowed_into(&[&a], &config, &mut outputs));
                }
            });
            assert_eq!((result, measured.count_total), (Ok(()), 0), "portable: {portable}\n{text}");
        }
    }
}

#[test]
fn what_ran_tells_the_tier_and_the_threads() {
    let a = words(0..1 << 20);
    for portable in TIERS {
        let device = vyre_driver_cpu::cpu_device(crate::options(2, portable));
        let program = program(SMALL);
        let code = device.compile(program.validated().unwrap().kernel(), &CodeOptions::default()).unwrap();
        let run = |count: usize| -> Ran {
            let a = &a[..4 * count];
            let launch = plan(&program, &[a.len() as u64], &LaunchConfig::default()).unwrap();
            let mut out = vec![0; a.len()];
            let bindings = &mut [Binding::In(a), Binding::Out(&mut out)];
            let groups = 0..u64::from(launch.groups());
            let call = &mut Call { code: &code, launch: &launch, groups, zero_outputs: true, bindings };
            let ran = device.run(call, Deadline::NONE).unwrap();
            assert!(out.as_chunks().0.iter().zip(0..).all(|(word, i)| u32::from_le_bytes(*word) == i ^ 5));
            ran
        };
        let (small, large) = (run(64), run(1 << 20));
        assert_eq!(small.threads, 1);
        assert!((1..=2).contains(&large.threads));
        assert_eq!(small.lowering, large.lowering);
        let is_portable = small.lowering.starts_with("portable: ");
        assert!(is_portable || &*small.lowering == "avx2", "{}", small.lowering);
        assert_eq!((is_portable && &*small.lowering == "portable: asked for"), portable);
        assert_eq!(small.code.is_none(), is_portable);
    }
}

#[test]
fn buffers_at_odd_addresses_are_written() {
    let program = program(SMALL);
    let count = 1 << 16;
    let a = words(0..count);
    let launch = plan(&program, &[a.len() as u64], &LaunchConfig::default()).unwrap();
    for portable in TIERS {
        let device = crate::eager_device(3, portable);
        let code = device.compile(program.validated().unwrap().kernel(), &CodeOptions::default()).unwrap();
        let mut out = vec![0xAA; a.len() + 3];
        let bindings = &mut [Binding::In(&a), Binding::Out(&mut out[1..a.len() + 1])];
        let groups = 0..u64::from(launch.groups());
        let call = &mut Call { code: &code, launch: &launch, groups, zero_outputs: true, bindings };
        device.run(call, Deadline::NONE).unwrap();
        assert_eq!((out[0], &out[a.len() + 1..]), (0xAA, &[0xAA, 0xAA][..]));
        assert!(out[1..=a.len()] == words((0..count).map(|i| i ^ 5)));
    }
}
