//! Several dispatches at once: on one device, on several, and inside another pool of threads.

use crate::{TIERS, cpu, dispatch, eager, generated, grid, meaning, program, words};
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use vyre_driver::VyreBackend;
use vyre_foundation::case::Case;

fn cases() -> Vec<(Case, crate::Outcome)> {
    (0..60).map(|number| generated(0x70, number)).map(|case| (case.clone(), meaning(&case))).collect()
}

fn check(device: &dyn VyreBackend, (case, expected): &(Case, crate::Outcome)) {
    assert!(dispatch(device, case) == *expected, "{}", case.program);
}

#[test]
fn dispatches_of_several_threads_are_right() {
    let cases = cases();
    for portable in TIERS {
        let devices = [eager(3, portable), eager(2, portable)];
        std::thread::scope(|scope| {
            for n in 0..6 {
                let (device, cases) = (&devices[n % 2], &cases);
                scope.spawn(move || (0..cases.len()).for_each(|i| check(&**device, &cases[(i + 7 * n) % cases.len()])));
            }
        });
    }
}

#[test]
fn dispatches_inside_another_pool_are_right() {
    let cases = cases();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(4).build().unwrap();
    for portable in TIERS {
        let device = eager(3, portable);
        pool.install(|| (0..4 * cases.len()).into_par_iter().for_each(|n| check(&*device, &cases[n % cases.len()])));
    }
}

/// Large ones, with stores beside each other from all threads and one word that all of them add to.
#[test]
fn two_long_dispatches_at_once_share_the_threads() {
    let kernel = program(
        "program p {
  workgroup 64
  buffer bytes: output u8[65536] @0
  buffer total: output u32[1] @1
  let x = gid.x
  for i in 0..(gid.x % 37) {
    x = x * 5 + i
  }
  if gid.x % 3 != 1 {
    bytes[gid.x] = x
  }
  atomic.add(total, 0, x)
}
",
    );
    let values: Vec<u32> = (0..65536_u32).map(|n| (0..n % 37).fold(n, |x, i| x.wrapping_mul(5).wrapping_add(i))).collect();
    let total = values.iter().fold(0_u32, |sum, x| sum.wrapping_add(*x));
    let bytes = (0..).zip(&values).map(|(n, x): (u32, _)| if n % 3 != 1 { *x as u8 } else { 0 }).collect();
    let expected = Ok(vec![bytes, words([total])]);
    for portable in TIERS {
        let device = cpu(4, portable);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| (0..5).for_each(|_| assert!(device.dispatch(&kernel, &[], &grid(1024)) == expected)));
            }
        });
    }
}
