//! What is too much ends in a typed error, and in time.

use crate::{TIERS, cpu, grid, program, words};
use std::time::Duration;
use vyre_driver::{BackendError, DispatchConfig};

fn within(config: DispatchConfig, milliseconds: u64) -> DispatchConfig {
    DispatchConfig { timeout: Some(Duration::from_millis(milliseconds)), ..config }
}

#[test]
fn absurd_grids_and_enormous_loops_end_at_their_deadline() {
    let straight = program("program p {\n  workgroup 1\n  buffer out: output u32[4] @0\n  atomic.add(out, gid.x % 4, 1)\n}\n");
    // Three loops that depend on data, so that nothing folds them.
    let loops = program(
        "program p {
  workgroup 64
  buffer n: read u32 @0
  buffer out: output u32[64] @1
  let x = gid.x
  for i in 0..n[0] {
    for j in 0..n[0] {
      for k in 0..n[0] {
        x = x * 3 + (i ^ j) + k
      }
    }
  }
  out[gid.x] = x
}
",
    );
    let n = words([u32::MAX]);
    for portable in TIERS {
        for threads in [1, 3] {
            let device = cpu(threads, portable);
            let limit = Duration::from_millis(50);
            let found = device.dispatch(&straight, &[], &within(grid(u32::MAX), 50));
            assert_eq!(found, Err(BackendError::Timeout { limit }), "{}", device.device_name());
            for groups in [1, 1000] {
                let found = device.dispatch_borrowed(&loops, &[&n], &within(grid(groups), 50));
                assert_eq!(found, Err(BackendError::Timeout { limit }), "{}", device.device_name());
            }
            // And the device goes on.
            assert_eq!(device.dispatch(&straight, &[], &grid(8)), Ok(vec![words([2; 4])]));
        }
    }
}

#[test]
fn a_dispatch_without_time_does_not_begin_so_that_it_cannot_trap() {
    let trap = program("program fails {\n  workgroup 4\n  buffer out: output u32[4] @0\n  trap(1)\n}\n");
    for portable in TIERS {
        let found = cpu(2, portable).dispatch(&trap, &[], &within(grid(9), 0));
        assert_eq!(found, Err(BackendError::Timeout { limit: Duration::ZERO }));
    }
}

#[test]
fn more_workgroups_than_can_wait_for_each_other_are_refused() {
    let waits = program(
        "program p {\n  workgroup 64\n  buffer out: output u32[64] @0\n  let x = gid.x * gid.x\n  barrier.grid\n  \
         atomic.add(out, gid.x % 64, x)\n}\n",
    );
    for portable in TIERS {
        let found = cpu(2, portable).dispatch(&waits, &[], &grid(1 << 25));
        assert!(matches!(found, Err(BackendError::OutOfMemory { requested }) if requested > 1 << 30), "{found:?}");
    }
}

#[test]
fn memory_that_there_is_not_is_an_error() {
    for bytes in [usize::MAX, isize::MAX as usize, 1 << 60] {
        let found = cpu(2, false).allocate_resident(bytes);
        assert_eq!(found, Err(BackendError::OutOfMemory { requested: bytes as u64 }));
    }
}

#[test]
fn large_kernels_compile_and_run() {
    // Ten thousand statements, and three hundred values that live at the same time.
    let lines = "  x = x * 3 + 1\n".repeat(10_000);
    let long = program(&format!(
        "program p {{\n  workgroup 4\n  buffer out: output u32[8] @0\n  let x = gid.x\n{lines}  out[gid.x] = x\n}}\n"
    ));
    let step = |x: u32| (0..10_000).fold(x, |x, _| x.wrapping_mul(3).wrapping_add(1));
    let lets: String = (0..300).map(|n| format!("  let v{n} = a[gid.x + {n}]\n")).collect();
    let uses: String = (0..300).map(|n| format!("  x = x * 31 + v{}\n", 299 - n)).collect();
    let wide = program(&format!(
        "program p {{\n  workgroup 4\n  buffer a: read u32[400] @0\n  buffer out: output u32[8] @1\n{lets}  let x = 0\n{uses}  out[gid.x] = x\n}}\n"
    ));
    let a: Vec<u32> = (0..400_u32).map(|i| i.wrapping_mul(i) + 7).collect();
    let sum = |lane: u32| (0..300).rev().fold(0, |x: u32, n| x.wrapping_mul(31).wrapping_add(a[(lane + n) as usize]));
    for portable in TIERS {
        let device = cpu(2, portable);
        assert_eq!(device.dispatch(&long, &[], &grid(2)), Ok(vec![words((0..8).map(step))]));
        assert_eq!(device.dispatch(&wide, &[words(a.iter().copied())], &grid(2)), Ok(vec![words((0..8).map(sum))]));
    }
}
