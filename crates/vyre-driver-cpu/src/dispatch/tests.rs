//! The runner on machine code that is a closure.

use super::*;
use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};
use vyre_host_floats::hostile;

type Group = dyn Fn(&Job<'_>, u32, &mut Scratch) -> Result<(), Stopped> + Send + Sync;

/// Workgroups as calls of a closure.
struct Fake {
    phases: u32,
    context_bytes: usize,
    group: Box<Group>,
}

impl MachineCode for Fake {
    fn phases(&self) -> u32 {
        self.phases
    }

    fn context_bytes(&self) -> usize {
        self.context_bytes
    }

    fn scratch_bytes(&self) -> usize {
        100
    }

    fn bytes(&self) -> u64 {
        1
    }

    fn hash(&self) -> [u8; 32] {
        [1; 32]
    }

    fn run(&self, job: &Job<'_>, mut groups: std::ops::Range<u32>, scratch: &mut Scratch) -> Result<(), Stopped> {
        groups.try_for_each(|group| (self.group)(job, group, scratch))
    }
}

/// A kernel with or without loops, of which the runner looks at nothing else.
fn kernel(has_loop: bool) -> Arc<Kernel> {
    let body = if has_loop { "for i in 0..3 { out[i] = 1 }" } else { "out[gid.x] = 1" };
    let text = format!("program p {{\n workgroup 2 3\n buffer out: output u32 @0\n {body}\n}}");
    let program = vyre_foundation::text::parse("p", &text).unwrap_or_else(|report| panic!("{report}"));
    program.validated().unwrap_or_else(|report| panic!("{report}")).kernel().clone()
}

fn fake(has_loop: bool, phases: u32, context_bytes: usize, group: Box<Group>) -> Ready {
    Ready::new(&kernel(has_loop), Box::new(Fake { phases, context_bytes, group }))
}

const NEVER: Stop<'_> = Stop { deadline: None, cancelled: None };

/// Runs all workgroups of a grid on a buffer of so many words.
fn run(ready: &Ready, grid: [u32; 3], threads: u32, out: &mut [u8], stop: Stop<'_>) -> Result<u32, DeviceError> {
    let launch = Launch { workgroup_size: [2, 3, 1], grid, lengths: vec![out.len() as u32 / 4], bytes: vec![out.len() as u64] };
    let bindings = &mut [Bytes::Write(out)];
    let execution = Execution { launch: &launch, groups: 0..launch.groups(), bindings, stop };
    ready.execute(execution, Threads { count: threads, eager: true })
}

/// Adds to a word of the buffer; workgroups have words of their own.
fn add(job: &Job<'_>, word: u32, value: u32) {
    assert!(word < job.buffers[0].length);
    // SAFETY: it is a word of the buffer, which nobody else touches now.
    unsafe {
        let word = job.buffers[0].data.cast::<u32>().add(word as usize);
        word.write_unaligned(word.read_unaligned() + value);
    }
}

#[test]
fn a_phase_of_all_workgroups_ends_before_the_next_and_contexts_are_kept_in_between() {
    const GROUPS: u32 = 300;
    static ENDED: [AtomicU32; 3] = [const { AtomicU32::new(0) }; 3];
    let group: Box<Group> = Box::new(|job, group, scratch| {
        assert!(scratch.memory().len() >= 100);
        scratch.memory().fill(group as u8);
        if job.phase > 0 {
            assert_eq!(ENDED[job.phase as usize - 1].load(Relaxed), GROUPS);
        }
        // SAFETY: the context is this workgroup's, of 64 bytes.
        let context = unsafe { std::slice::from_raw_parts_mut(job.contexts.add((group - job.first_group) as usize * 64), 64) };
        let expected = if job.phase == 0 { 0 } else { (group + job.phase) as u8 };
        assert!(context.iter().all(|byte| *byte == expected), "{context:?}");
        context.fill((group + job.phase + 1) as u8);
        add(job, group, 10 + job.phase);
        ENDED[job.phase as usize].fetch_add(1, Relaxed);
        Ok(())
    });
    let ready = fake(false, 3, 64, group);
    for threads in [1, 2, 7, 7] {
        ENDED.iter().for_each(|count| count.store(0, Relaxed));
        let mut out = vec![0; 4 * GROUPS as usize];
        let took_part = run(&ready, [GROUPS, 1, 1], threads, &mut out, NEVER).unwrap();
        assert!((1..=threads).contains(&took_part));
        assert!(out.as_chunks().0.iter().all(|word| u32::from_le_bytes(*word) == 33), "{out:?}");
    }
}

#[test]
fn the_smallest_trap_is_the_error_and_all_others_finish() {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    // Workgroups of the grid 5 x 4 x 3; the invocations of the dispatch are 10 x 12 x 3.
    let group: Box<Group> = Box::new(|_, group, scratch| {
        COUNT.fetch_add(1, Relaxed);
        if group >= 7 {
            let [x, y, z] = [group % 5, group / 5 % 4, group / 20].map(u64::from);
            scratch.note_trap((z * 12 + y * 3 + 1) * 10 + x * 2 + 1, group);
        }
        Ok(())
    });
    let ready = fake(false, 1, 0, group);
    for threads in [1, 3] {
        COUNT.store(0, Relaxed);
        let found = run(&ready, [5, 4, 3], threads, &mut [0; 4], NEVER);
        assert_eq!(found, Err(DeviceError::Trap { tag: 7, invocation: [5, 4, 0] }));
        assert_eq!(COUNT.load(Relaxed), 60);
    }
}

/// A workgroup that runs until it is told to stop.
fn endless(has_loop: bool) -> Ready {
    let wait: Box<Group> = Box::new(|job, _, _| {
        let start = Instant::now();
        while !job.stop.load(Relaxed) {
            assert!(start.elapsed() < Duration::from_secs(60), "nobody stops it");
            std::hint::spin_loop();
        }
        Err(Stopped)
    });
    fake(has_loop, 1, 0, wait)
}

#[test]
fn loops_are_stopped_by_deadlines_and_by_cancellation() {
    let ready = endless(true);
    let in_time = || Some(Instant::now() + Duration::from_millis(20));
    for (grid, threads) in [([1, 1, 1], 1), ([100, 1, 1], 1), ([100, 1, 1], 3)] {
        let stop = Stop { deadline: in_time(), cancelled: None };
        assert_eq!(run(&ready, grid, threads, &mut [0; 4], stop), Err(DeviceError::Timeout));
        let over = Stop { deadline: Some(Instant::now()), cancelled: None };
        assert_eq!(run(&ready, grid, threads, &mut [0; 4], over), Err(DeviceError::Timeout));
        // With a deadline that is far off and without one.
        for deadline in [None, Some(Instant::now() + Duration::from_secs(3600))] {
            let cancelled = AtomicBool::new(false);
            let found = std::thread::scope(|scope| {
                scope.spawn(|| {
                    std::thread::sleep(Duration::from_millis(10));
                    cancelled.store(true, Relaxed);
                });
                run(&ready, grid, threads, &mut [0; 4], Stop { deadline, cancelled: Some(&cancelled) })
            });
            assert_eq!(found, Err(DeviceError::Cancelled));
        }
    }
}

#[test]
fn machine_code_without_loops_looks_at_the_callers_flag_itself() {
    let cancelled = AtomicBool::new(true);
    let flag = (&raw const cancelled).addr();
    let sees: Box<Group> = Box::new(move |job, _, _| {
        assert_eq!((&raw const *job.stop).addr(), flag);
        Ok(())
    });
    let ready = fake(false, 1, 0, sees);
    cancelled.store(false, Relaxed);
    let later = Some(Instant::now() + Duration::from_secs(3600));
    for deadline in [None, later] {
        assert_eq!(run(&ready, [1, 1, 1], 2, &mut [0; 4], Stop { deadline, cancelled: Some(&cancelled) }), Ok(1));
    }
    cancelled.store(true, Relaxed);
    let stop = Stop { deadline: None, cancelled: Some(&cancelled) };
    assert_eq!(run(&ready, [9, 1, 1], 2, &mut [0; 4], stop), Err(DeviceError::Cancelled));
}

#[test]
fn contexts_that_there_is_no_room_for_are_an_error() {
    let ready = fake(false, 2, 1 << 10, Box::new(|_, _, _| unreachable!("it is refused before")));
    let requested = 1 << 40;
    assert_eq!(run(&ready, [1 << 30, 1, 1], 2, &mut [0; 4], NEVER), Err(DeviceError::OutOfMemory { requested }));
}

#[test]
fn a_panic_is_the_callers_and_the_next_dispatch_runs() {
    let group: Box<Group> = Box::new(|job, group, _| match group {
        70 if job.buffers[0].length == 1 => resume_unwind(Box::new("on purpose")),
        _ => Ok(()),
    });
    let ready = fake(false, 1, 0, group);
    for threads in [1, 3] {
        let caught = catch_unwind(AssertUnwindSafe(|| run(&ready, [100, 1, 1], threads, &mut [0; 4], NEVER)));
        assert_eq!(caught.unwrap_err().downcast_ref::<&str>(), Some(&"on purpose"));
        assert!(run(&ready, [100, 1, 1], threads, &mut [0; 8], NEVER).is_ok());
    }
}

#[test]
fn every_thread_computes_under_the_default_float_state() {
    // A subnormal result, and an inexact one.
    let probe = || [black_box(f32::MIN_POSITIVE) * black_box(0.5), black_box(-1.0) / black_box(3.0)].map(f32::to_bits);
    let group: Box<Group> = Box::new(move |_, _, _| {
        assert_eq!(probe(), [0x0040_0000, 0xBEAA_AAAB]);
        Ok(())
    });
    let ready = fake(false, 1, 0, group);
    for state in hostile::states() {
        for (grid, threads) in [([1, 1, 1], 1), ([200, 1, 1], 1), ([200, 1, 1], 5)] {
            let ran = hostile::under(state, || run(&ready, grid, threads, &mut [0; 4], NEVER));
            assert!(ran.is_ok(), "{state}");
        }
    }
}
