//! A warm bulk evaluator does not allocate.

use vyre_foundation::launch::{LaunchConfig, plan};
use vyre_reference::Limits;
use vyre_reference::bulk::Bulk;

/// Something of everything: workgroup memory, barriers, divergent loops, atomics, subgroups, vectors, wide and narrow types, and a
/// grid barrier with variables that live across it.
const KERNEL: &str = "program warm {
  workgroup 32
  subgroup 8
  buffer a: read f32 @0
  buffer h: read f16 @1
  buffer v: read_write vec4<u32> @2
  buffer out: output u32[64] @3
  buffer wide: output u64[64] @4
  buffer tile: workgroup u32[32]

  let i = gid.x
  let x = a[i] * h[i]
  tile[lid.x] = bitcast<u32>(x)
  barrier
  let n = 0
  for k in 0..lid.x {
    if tile[k] > tile[lid.x] {
      continue
    }
    n = n + k
    if n > 100 {
      break
    }
  }
  let s = subgroup.exclusive_add(n)
  let old = atomic.max(tile, 0, s)
  if i == 60 {
    return
  }
  barrier.grid
  let big = u64(s) * u64(old) + 5
  let w = v[i]
  w = vec(w.y, w.x, n, s)
  v[i] = w
  wide[i] = big
  out[i] = tile[lid.x] + n
}
";

#[test]
fn a_second_run_allocates_nothing() {
    let program = vyre_foundation::text::parse("warm.vyre", KERNEL).unwrap_or_else(|report| panic!("{report}"));
    let mut bulk = Bulk::new(program.validated().unwrap_or_else(|report| panic!("{report}")).kernel());
    let (a, h, v) = (vec![1u8; 64 * 4], vec![60u8; 64 * 2], vec![7u8; 64 * 16]);
    let inputs: [&[u8]; 3] = [&a, &h, &v];
    let sizes = inputs.map(|bytes| bytes.len() as u64);
    let launch = plan(&program, &sizes, &LaunchConfig::default()).expect("the launch is fine");
    let mut outputs = Vec::new();
    bulk.run_into(&launch, &inputs, Limits::NONE, &mut outputs).expect("it runs");
    let first = outputs.clone();
    let measured = allocation_counter::measure(|| {
        bulk.run_into(&launch, &inputs, Limits::NONE, &mut outputs).expect("it runs again");
    });
    assert_eq!(measured.count_total, 0, "{measured:?}");
    assert!(outputs == first && first.iter().all(|bytes| bytes.iter().any(|byte| *byte != 0)));
}

/// A loop that lanes leave in any iteration, so that they are compacted again and again.
const LEAVING: &str = "program leaving {
  workgroup 64
  buffer iterations: read u32 @0
  buffer out: output u32 @1

  let n = 0
  let wide = 0u64
  for k in 0..1000 {
    if k >= iterations[gid.x] {
      break
    }
    n = n + k
    wide = wide + u64(n)
  }
  out[gid.x] = n ^ u32(wide)
}
";

#[test]
fn whatever_number_of_lanes_is_compacted_a_warm_run_allocates_nothing() {
    let program = vyre_foundation::text::parse("leaving.vyre", LEAVING).unwrap_or_else(|report| panic!("{report}"));
    let mut bulk = Bulk::new(program.validated().unwrap_or_else(|report| panic!("{report}")).kernel());
    let launch = plan(&program, &[4096], &LaunchConfig::default()).expect("the launch is fine");
    let iterations = |of: fn(u32) -> u32| (0..1024).flat_map(|i| of(i).to_le_bytes()).collect::<Vec<u8>>();
    let mut outputs = Vec::new();
    // Compacted four times, as often as can be, with fewer lanes each time than half.
    let first = iterations(|i| [25, 50, 100, 200].iter().map(|lanes| 100 * u32::from(i % 512 < *lanes)).sum());
    bulk.run_into(&launch, &[&first], Limits::NONE, &mut outputs).expect("it runs");
    for other in [iterations(|i| i), iterations(|i| i % 7 * 100), iterations(|i| 999 - i / 2)] {
        let measured = allocation_counter::measure(|| {
            bulk.run_into(&launch, &[&other], Limits::NONE, &mut outputs).expect("it runs again");
        });
        assert_eq!(measured.count_total, 0, "{measured:?}");
        let options = vyre_reference::Options::default();
        assert!(Ok(&outputs) == vyre_reference::run(&program, &[&other], &options).as_ref());
    }
}
