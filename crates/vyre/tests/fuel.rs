//! Fuel bounds every schedule: what a dispatch takes under one it takes under all, and a step less is too little.

use vyre::reference::{Options, RunError, Schedule, bulk, run};
use vyre::text;

const PROGRAM: &str = "program p {
  workgroup 4
  buffer out: output u32[8] @0
  buffer sum: output u32[1] @1
  buffer tile: workgroup u32[4]

  let n = 0
  for i in 0..10 {
    n = n + i * gid.x
    if n > 20 {
      n = n - 20
    }
  }
  tile[lid.x] = n
  barrier
  atomic.add(sum, 0, tile[3 - lid.x])
  out[gid.x] = n
}";

const INVOCATIONS: u64 = 8;

fn schedules() -> Vec<Schedule> {
    let mut all = Schedule::adversarial();
    all.extend([
        Schedule::Forward,
        Schedule::Reverse,
        Schedule::Stride(3),
        Schedule::Random(1),
        Schedule::Groups(3),
        Schedule::Interleave,
        Schedule::Shuffle(7),
        Schedule::Late,
        Schedule::Atomics(vec![7, 6, 5]),
    ]);
    all
}

fn with(schedule: &Schedule, fuel: u64) -> Result<Vec<Vec<u8>>, RunError> {
    let program = text::parse("p.vyre", PROGRAM).unwrap_or_else(|report| panic!("{report}"));
    let mut options = Options { fuel, schedule: schedule.clone(), ..Options::default() };
    options.launch.grid = Some([2, 1, 1]);
    run(&program, &[], &options)
}

/// The least fuel that is enough.
fn needed(schedule: &Schedule) -> u64 {
    let (mut too_little, mut enough) = (0, 10_000);
    assert!(with(schedule, enough).is_ok(), "{schedule}");
    while enough - too_little > 1 {
        let middle = (enough + too_little) / 2;
        match with(schedule, middle) {
            Ok(_) => enough = middle,
            Err(RunError::OutOfFuel { fuel }) => {
                assert_eq!(fuel, middle, "{schedule}");
                too_little = middle;
            }
            Err(error) => panic!("{schedule}: {error}"),
        }
    }
    enough
}

#[test]
fn every_schedule_takes_the_same_steps() {
    let forward = needed(&Schedule::Forward);
    assert!(forward > 400, "{forward} steps: the loop alone has more");
    for schedule in schedules() {
        let steps = needed(&schedule);
        // A schedule that keeps several workgroups alive pays a step for each invocation that it sets up.
        assert!(steps == forward || steps == forward + INVOCATIONS, "{schedule}: {steps} steps, forward {forward}");
    }
}

/// Also where nobody runs to the end before the others start, a loop that takes too long is ended.
#[test]
fn a_long_loop_runs_out_of_fuel_under_every_schedule_and_in_bulk() {
    let long = PROGRAM.replace("0..10", "0..20_000");
    let program = text::parse("p.vyre", &long).unwrap_or_else(|report| panic!("{report}"));
    for schedule in schedules() {
        let options = Options { fuel: 20_000, schedule: schedule.clone(), ..Options::default() };
        assert_eq!(run(&program, &[], &options), Err(RunError::OutOfFuel { fuel: 20_000 }), "{schedule}");
    }
    let options = Options { fuel: 20_000, ..Options::default() };
    assert_eq!(bulk::run(&program, &[], &options), Err(RunError::OutOfFuel { fuel: 20_000 }));
}

/// Without the deadline each of these takes years.
#[test]
fn a_deadline_ends_every_way_to_run_a_program() {
    let source = "program p {\n  workgroup 64\n  buffer out: output u32[64] @0\n\n  for i in 0..0xffff_ffff {\n    \
                for j in 0..0xffff_ffff {\n      out[gid.x] = out[gid.x] + i * j\n    }\n  }\n}\n";
    let program = text::parse("p", source).expect("it is right");
    let soon = || Some(std::time::Instant::now() + std::time::Duration::from_millis(50));
    let options = |schedule| Options { fuel: u64::MAX, deadline: soon(), schedule, ..Options::default() };
    for schedule in [Schedule::Forward, Schedule::Interleave, Schedule::Shuffle(3)] {
        assert_eq!(run(&program, &[], &options(schedule)), Err(RunError::Timeout));
    }
    assert_eq!(bulk::run(&program, &[], &options(Schedule::Forward)), Err(RunError::Timeout));
    let limit = std::time::Duration::from_millis(50);
    let config = vyre::DispatchConfig { timeout: Some(limit), ..Default::default() };
    for (_, device) in vyre::backend::registry::registered_devices() {
        let backend = vyre::backend::registry::acquire(&device.id).expect("it opens");
        let result = backend.dispatch_borrowed(&program, &[], &config);
        assert_eq!(result, Err(vyre::BackendError::Timeout { limit }), "{}", device.id);
        let begun = backend.dispatch_borrowed_async(&program, &[], &config).and_then(|pending| pending.wait());
        assert_eq!(begun, Err(vyre::BackendError::Timeout { limit }), "{}, begun", device.id);
    }
}
