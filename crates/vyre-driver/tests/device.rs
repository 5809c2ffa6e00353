//! The promises of `device/mod.rs`, on a device whose kernels can be held.

mod support;

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Poll, Wake, Waker};
use std::time::{Duration, Instant};
use support::device::{Kernels, info};
use support::segments::{program, unwords, words};
use vyre_driver::device::{
    Binding, Call, Code, CodeOptions, Deadline, Device, DeviceError, DeviceInfo, Done, Execution, Generation, HostCode,
    HostDevice, HostKernels, Memory, Ran, Span, Stale, Step, Submission, WaitError,
};
use vyre_foundation::ir::Program;
use vyre_foundation::kernel::Kernel;
use vyre_foundation::launch::{Launch, LaunchConfig, plan};

/// Kernels that wait at a gate before they run.
struct Gated {
    kernels: Kernels,
    gate: Gate,
}

#[derive(Default)]
struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Default)]
struct GateState {
    /// How many may still pass; `None` if all may.
    passes: Option<u64>,
    /// Whether one that waits does not look up.
    is_deaf: bool,
    came: u64,
    ran: Vec<Range<u32>>,
    lets_calls: bool,
}

impl Gate {
    fn set(&self, passes: Option<u64>, is_deaf: bool) {
        let mut state = self.state.lock().unwrap();
        (state.passes, state.is_deaf) = (passes, is_deaf);
        self.changed.notify_all();
    }

    fn open(&self) {
        self.set(None, false);
    }

    fn close(&self) {
        self.set(Some(0), false);
    }

    /// Lets calls through that somebody waits for, and nothing that was submitted.
    fn let_calls(&self) {
        self.state.lock().unwrap().lets_calls = true;
    }

    /// Waits until so many have come to the gate.
    fn until_came(&self, count: u64) {
        let mut state = self.state.lock().unwrap();
        while state.came < count {
            state = self.changed.wait(state).unwrap();
        }
    }

    fn ran(&self) -> Vec<Range<u32>> {
        self.state.lock().unwrap().ran.clone()
    }

    fn pass(&self, execution: &Execution<'_, '_>) -> Result<(), DeviceError> {
        let mut state = self.state.lock().unwrap();
        state.came += 1;
        self.changed.notify_all();
        // What was submitted runs on the thread of the queue.
        let is_call = std::thread::current().name() != Some("vyre-queue");
        while !(is_call && state.lets_calls) {
            match &mut state.passes {
                None => break,
                Some(0) => {}
                Some(left) => {
                    *left -= 1;
                    break;
                }
            }
            if !state.is_deaf {
                if execution.stop.cancelled.is_some_and(|cancelled| cancelled.load(Ordering::Relaxed)) {
                    return Err(DeviceError::Cancelled);
                }
                if execution.stop.deadline.is_some_and(|at| Instant::now() >= at) {
                    return Err(DeviceError::Timeout);
                }
            }
            state = self.changed.wait_timeout(state, Duration::from_millis(1)).unwrap().0;
        }
        state.ran.push(execution.groups.clone());
        Ok(())
    }
}

impl HostKernels for Gated {
    type Code = Arc<Kernel>;

    fn info(&self) -> DeviceInfo {
        self.kernels.info()
    }

    fn compile(&self, kernel: &Arc<Kernel>, options: &CodeOptions) -> Result<HostCode<Arc<Kernel>>, DeviceError> {
        self.kernels.compile(kernel, options)
    }

    fn execute(&self, code: &Arc<Kernel>, execution: Execution<'_, '_>) -> Result<u32, DeviceError> {
        self.gate.pass(&execution)?;
        self.kernels.execute(code, execution)
    }
}

type Gates = HostDevice<Gated>;

fn gates() -> Gates {
    HostDevice::new(Gated { kernels: Kernels { info: info() }, gate: Gate::default() })
}

fn gate(device: &Gates) -> &Gate {
    &device.kernels().gate
}

/// A kernel and its shape, on buffers that all say how long they are.
struct Ready {
    program: Program,
    code: Code,
    launch: Arc<Launch>,
}

fn ready(device: &dyn Device, text: &str) -> Ready {
    let program = program(text);
    let kernel = program.validated().unwrap().kernel().clone();
    let code = device.compile(&kernel, &CodeOptions::default()).unwrap();
    let bytes = |i: &usize| u64::from(kernel.buffers[*i].count.unwrap()) * kernel.buffers[*i].element.bits().unwrap() / 8;
    let sizes: Vec<u64> = program.interface().inputs.iter().map(bytes).collect();
    let grid = text.lines().find_map(|line| line.trim().strip_prefix("// grid ")).map(|line| {
        let mut extents = line.split(' ').map(|extent| extent.parse().unwrap());
        std::array::from_fn(|_| extents.next().unwrap())
    });
    let launch = plan(&program, &sizes, &LaunchConfig { grid, ..LaunchConfig::default() }).unwrap();
    Ready { program, code, launch: Arc::new(launch) }
}

impl Ready {
    fn groups(&self) -> Range<u64> {
        0..u64::from(self.launch.groups())
    }

    fn step(&self, bindings: Vec<Span>) -> Step {
        let (code, launch, groups) = (self.code.clone(), self.launch.clone(), self.groups());
        Step::Dispatch { code, launch, groups, zero_outputs: true, bindings }
    }

    fn run(&self, device: &dyn Device, bindings: &mut [Binding<'_>], deadline: Deadline) -> Result<Ran, DeviceError> {
        let (code, launch, groups) = (&self.code, &*self.launch, self.groups());
        device.run(&mut Call { code, launch, groups, zero_outputs: true, bindings }, deadline)
    }
}

/// `x = x * 10 + digit`.
fn digit(device: &dyn Device, digit: u32) -> Ready {
    ready(
        device,
        &format!("program p {{\n workgroup 1\n buffer x: read_write u32[1] @0\n x[gid.x] = x[gid.x] * 10 + {digit}\n}}"),
    )
}

fn submit(device: &dyn Device, steps: Vec<Step>) -> Box<dyn Submission> {
    device.submit(steps, Deadline::NONE).unwrap()
}

fn wait(submission: &mut Box<dyn Submission>) -> Result<Done, DeviceError> {
    submission.wait(Deadline::NONE).map_err(|error| match error {
        WaitError::Failed(error) => error,
        WaitError::Pending => panic!("there was no deadline"),
    })
}

fn reads(submission: &mut Box<dyn Submission>) -> Vec<u32> {
    wait(submission).unwrap().reads.iter().map(|read| unwords(read)[0]).collect()
}

fn value(device: &dyn Device, memory: &Memory) -> u32 {
    reads(&mut submit(device, vec![Step::Read(memory.whole())]))[0]
}

fn write(to: Span, bytes: Vec<u8>) -> Step {
    Step::Write { to, bytes: Arc::from(bytes) }
}

fn in_ms(milliseconds: u64) -> Deadline {
    Deadline::after(Instant::now(), Some(Duration::from_millis(milliseconds)))
}

fn is_lost(result: &Poll<Result<Done, DeviceError>>) -> bool {
    matches!(result, Poll::Ready(Err(DeviceError::Lost { .. })))
}

#[test]
fn steps_run_in_order_and_submissions_in_the_order_of_calls() {
    let device = gates();
    let memory = device.allocate(4).unwrap();
    let [one, two, three] = [1, 2, 3].map(|n| digit(&device, n));
    let at = || vec![memory.whole()];
    // Some are run by the thread of the queue, and some, without dispatches, by whoever submits them.
    gate(&device).close();
    let mut first = submit(&device, vec![one.step(at()), Step::Read(memory.whole()), two.step(at()), Step::Read(memory.whole())]);
    let mut second = submit(&device, vec![Step::Read(memory.whole()), write(memory.whole(), words([7]))]);
    let mut third = submit(&device, vec![three.step(at()), Step::Read(memory.whole())]);
    let mut fourth = submit(&device, vec![Step::Read(memory.whole())]);
    assert_eq!(first.poll(None), Poll::Pending);
    assert_eq!(fourth.poll(None), Poll::Pending, "nothing overtakes");
    gate(&device).open();
    assert_eq!(reads(&mut fourth), [73]);
    assert_eq!(reads(&mut third), [73]);
    assert_eq!(reads(&mut second), [12]);
    let done = wait(&mut first).unwrap();
    assert_eq!(done.reads, [words([1]), words([12])]);
    let ran = Ran {
        device: "device",
        generation: Generation(0),
        workgroup: [1, 1, 1],
        grid: [1, 1, 1],
        groups: 0..1,
        profile: None,
        threads: 1,
        lowering: Arc::from("bulk"),
        code: Some([7; 32]),
        ulp: None,
        cache_hit: true,
        device_ns: None,
    };
    assert_eq!(done.ran, [ran.clone(), ran]);
}

#[test]
fn small_copies_of_many_threads_and_large_ones_keep_their_order() {
    // Each thread has memory of its own, sees its own writes in order, and makes small and large submissions without waiting.
    let device = gates();
    std::thread::scope(|scope| {
        for thread in 0..4u32 {
            let device = &device;
            scope.spawn(move || {
                let memory = device.allocate(100_000).unwrap();
                let next = digit(device, 1);
                let part = |range: Range<u64>| Span { memory: memory.clone(), range };
                let mut expected = 0u32;
                let mut pending = Vec::new();
                for n in 0..300u32 {
                    let mut steps = match (n + thread) % 3 {
                        0 => {
                            expected = n;
                            vec![write(part(0..4), words([n]))]
                        }
                        1 => {
                            expected = expected * 10 + 1;
                            vec![next.step(vec![part(0..4)])]
                        }
                        _ => {
                            expected = n;
                            vec![write(memory.whole(), [words([n]), vec![0; 99_996]].concat())]
                        }
                    };
                    steps.push(Step::Read(part(0..4)));
                    pending.push((submit(device, steps), expected));
                    if n % 7 == 0 {
                        pending.drain(..).for_each(|(mut one, expected)| assert_eq!(reads(&mut one), [expected]));
                    }
                }
                pending.drain(..).for_each(|(mut one, expected)| assert_eq!(reads(&mut one), [expected]));
            });
        }
    });
}

#[test]
fn a_small_copy_does_not_wait_for_memory_that_is_in_use() {
    let device = gates();
    let (memory, other) = (device.allocate(4).unwrap(), device.allocate(4).unwrap());
    let one = digit(&device, 1);
    gate(&device).close();
    std::thread::scope(|scope| {
        let running = scope.spawn(|| one.run(&device, &mut [Binding::Memory(memory.whole())], Deadline::NONE));
        gate(&device).until_came(1);
        let steps = vec![
            write(other.whole(), words([5])),
            Step::Copy { from: other.whole(), to: memory.whole() },
            Step::Read(memory.whole()),
        ];
        let mut begun = submit(&device, steps);
        let mut behind = submit(&device, vec![Step::Read(other.whole())]);
        assert_eq!((begun.poll(None), behind.poll(None)), (Poll::Pending, Poll::Pending));
        gate(&device).open();
        assert_eq!(reads(&mut behind), [5]);
        assert_eq!(reads(&mut begun), [5]);
        running.join().unwrap().unwrap();
    });
    assert_eq!(value(&device, &memory), 5);
}

#[test]
fn run_is_ordered_behind_submissions_on_the_same_memory() {
    let device = gates();
    let memory = device.allocate(4).unwrap();
    let (one, two) = (digit(&device, 1), digit(&device, 2));
    gate(&device).close();
    let submission = submit(&device, vec![one.step(vec![memory.whole()])]);
    gate(&device).until_came(1);
    std::thread::scope(|scope| {
        let running = scope.spawn(|| two.run(&device, &mut [Binding::Memory(memory.whole())], Deadline::NONE));
        std::thread::sleep(Duration::from_millis(30));
        assert!(!running.is_finished() && gate(&device).ran().is_empty());
        // One with a deadline gives up, and has not run.
        let late = two.run(&device, &mut [Binding::Memory(memory.whole())], in_ms(10));
        assert_eq!(late.map(drop), Err(DeviceError::Timeout));
        gate(&device).open();
        running.join().unwrap().unwrap();
    });
    drop(submission);
    assert_eq!(value(&device, &memory), 12);
    // One without memory waits for nobody.
    gate(&device).set(Some(1), false);
    let mut slow = submit(&device, vec![one.step(vec![memory.whole()]), one.step(vec![memory.whole()])]);
    gate(&device).until_came(4);
    gate(&device).let_calls();
    let mut bytes = words([4]);
    two.run(&device, &mut [Binding::InOut(&mut bytes)], Deadline::NONE).unwrap();
    assert_eq!(bytes, words([42]));
    assert_eq!(slow.poll(None), Poll::Pending);
    gate(&device).open();
    wait(&mut slow).unwrap();
}

#[test]
fn a_submission_that_is_forgotten_runs_and_one_that_is_dropped_or_cancelled_in_line_does_not() {
    let device = gates();
    let memory = device.allocate(4).unwrap();
    let step = |n| digit(&device, n).step(vec![memory.whole()]);
    gate(&device).close();
    let mut first = submit(&device, vec![step(1)]);
    gate(&device).until_came(1);
    std::mem::forget(submit(&device, vec![step(2)]));
    drop(submit(&device, vec![step(3)]));
    let mut cancelled = submit(&device, vec![step(4)]);
    cancelled.cancel();
    assert_eq!(cancelled.poll(None), Poll::Ready(Err(DeviceError::Cancelled)), "at once");
    let mut last = submit(&device, vec![step(5), Step::Read(memory.whole())]);
    gate(&device).open();
    assert_eq!(reads(&mut last), [125]);
    assert!(wait(&mut first).is_ok());
    // Too late to be cancelled.
    let mut ended = submit(&device, vec![step(6)]);
    drop(wait(&mut submit(&device, Vec::new())));
    ended.cancel();
    assert_eq!(wait(&mut ended).map(|done| done.ran.len()), Ok(1));
    assert_eq!(value(&device, &memory), 1256);
}

#[test]
fn what_runs_is_stopped_when_it_is_cancelled_or_dropped_and_others_go_on() {
    let device = gates();
    let (memory, other) = (device.allocate(4).unwrap(), device.allocate(4).unwrap());
    let one = digit(&device, 1);
    for (n, drops) in [(1, false), (2, true)] {
        gate(&device).close();
        let mut running = submit(&device, vec![one.step(vec![memory.whole()]), write(memory.whole(), words([99]))]);
        gate(&device).until_came(2 * n - 1);
        match drops {
            true => drop(running),
            false => {
                running.cancel();
                assert_eq!(wait(&mut running), Err(DeviceError::Cancelled));
                assert_eq!(wait(&mut running), Err(DeviceError::Taken));
            }
        }
        gate(&device).until_came(2 * n - 1);
        let mut next = submit(&device, vec![one.step(vec![other.whole()]), Step::Read(memory.whole())]);
        gate(&device).until_came(2 * n);
        gate(&device).open();
        assert_eq!(reads(&mut next), [0], "no step after it has run");
    }
    assert_eq!(value(&device, &other), 11);
}

#[test]
fn a_result_waits_for_whoever_comes_late_and_is_given_once() {
    let device = gates();
    let memory = device.allocate(4).unwrap();
    let past = Deadline(Some(Instant::now() - Duration::from_millis(1)));
    gate(&device).close();
    let mut pending = submit(&device, vec![digit(&device, 1).step(vec![memory.whole()]), Step::Read(memory.whole())]);
    assert_eq!(pending.wait(past), Err(WaitError::Pending));
    assert_eq!(pending.wait(in_ms(20)), Err(WaitError::Pending), "it goes on");
    gate(&device).open();
    drop(wait(&mut submit(&device, Vec::new())));
    assert_eq!(pending.wait(past).map(|done| done.reads), Ok(vec![words([1])]));
    assert_eq!(pending.wait(past), Err(WaitError::Failed(DeviceError::Taken)));
    assert_eq!(pending.poll(None), Poll::Ready(Err(DeviceError::Taken)));
}

#[derive(Default)]
struct Count(AtomicU64);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_waker_is_called_once_and_can_be_replaced_and_removed() {
    let device = gates();
    let memory = device.allocate(4).unwrap();
    let counts: [Arc<Count>; 4] = Default::default();
    let wakers = counts.each_ref().map(|count| Waker::from(count.clone()));
    gate(&device).close();
    let step = || digit(&device, 1).step(vec![memory.whole()]);
    let mut replaced = submit(&device, vec![step()]);
    let mut removed = submit(&device, vec![step()]);
    let mut kept = submit(&device, vec![step()]);
    assert_eq!(replaced.poll(Some(&wakers[0])), Poll::Pending);
    assert_eq!(replaced.poll(Some(&wakers[1])), Poll::Pending);
    assert_eq!(removed.poll(Some(&wakers[2])), Poll::Pending);
    assert_eq!(removed.poll(None), Poll::Pending);
    assert_eq!(kept.poll(Some(&wakers[3])), Poll::Pending);
    gate(&device).open();
    drop(wait(&mut submit(&device, vec![step()])));
    let called = || counts.each_ref().map(|count| count.0.load(Ordering::Relaxed));
    assert_eq!(called(), [0, 1, 0, 1]);
    for submission in [&mut replaced, &mut removed, &mut kept] {
        assert!(matches!(submission.poll(Some(&wakers[0])), Poll::Ready(Ok(_))));
        assert_eq!(submission.poll(Some(&wakers[0])), Poll::Ready(Err(DeviceError::Taken)));
    }
    assert_eq!(called(), [0, 1, 0, 1]);
    // Those who cancel and those who lose the device call it too.
    gate(&device).close();
    let mut running = submit(&device, vec![step()]);
    gate(&device).until_came(5);
    let mut waiting = submit(&device, vec![step()]);
    assert_eq!(waiting.poll(Some(&wakers[0])), Poll::Pending);
    waiting.cancel();
    assert_eq!(called(), [1, 1, 0, 1]);
    assert_eq!(running.poll(Some(&wakers[2])), Poll::Pending);
    device.recover().unwrap();
    assert_eq!(called(), [1, 1, 1, 1]);
}

struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        std::panic::resume_unwind(Box::new("a waker"));
    }
}

#[test]
fn a_waker_or_kernel_that_panics_does_not_stop_the_queue() {
    struct Broken(Kernels);
    impl HostKernels for Broken {
        type Code = Arc<Kernel>;
        fn info(&self) -> DeviceInfo {
            self.0.info()
        }
        fn compile(&self, kernel: &Arc<Kernel>, options: &CodeOptions) -> Result<HostCode<Arc<Kernel>>, DeviceError> {
            self.0.compile(kernel, options)
        }
        fn execute(&self, _: &Arc<Kernel>, _: Execution<'_, '_>) -> Result<u32, DeviceError> {
            std::panic::resume_unwind(Box::new("a kernel"))
        }
    }
    let device = gates();
    let memory = device.allocate(4).unwrap();
    let one = digit(&device, 1);
    gate(&device).close();
    let mut first = submit(&device, vec![one.step(vec![memory.whole()])]);
    assert_eq!(first.poll(Some(&Waker::from(Arc::new(Panics)))), Poll::Pending);
    gate(&device).open();
    let mut second = submit(&device, vec![one.step(vec![memory.whole()]), Step::Read(memory.whole())]);
    assert_eq!(reads(&mut second), [11]);
    let device = HostDevice::new(Broken(Kernels { info: info() }));
    let memory = device.allocate(4).unwrap();
    let one = digit(&device, 1);
    let mut broken = submit(&device, vec![one.step(vec![memory.whole()])]);
    assert_eq!(wait(&mut broken), Err(DeviceError::Other("the device panicked: a kernel".into())));
    assert_eq!(value(&device, &memory), 0, "its memory can be used");
}

#[test]
fn a_deadline_ends_what_runs_and_what_waits_in_line() {
    let device = gates();
    let memory = device.allocate(4).unwrap();
    let step = |n| digit(&device, n).step(vec![memory.whole()]);
    // In line.
    gate(&device).close();
    let mut first = submit(&device, vec![step(1)]);
    gate(&device).until_came(1);
    let mut waiting = device.submit(vec![step(2)], in_ms(20)).unwrap();
    let mut polled = device.submit(vec![step(3)], in_ms(20)).unwrap();
    assert_eq!(polled.poll(None), Poll::Pending);
    assert_eq!(wait(&mut waiting), Err(DeviceError::Timeout));
    assert_eq!(polled.poll(None), Poll::Ready(Err(DeviceError::Timeout)));
    // Nobody looks at this one before its turn comes.
    let mut unseen = device.submit(vec![step(4)], in_ms(1)).unwrap();
    std::thread::sleep(Duration::from_millis(5));
    gate(&device).open();
    assert!(wait(&mut first).is_ok());
    assert_eq!(wait(&mut unseen), Err(DeviceError::Timeout));
    assert_eq!(value(&device, &memory), 1);
    // Running, and run.
    gate(&device).close();
    let mut running = device.submit(vec![step(5)], in_ms(20)).unwrap();
    assert_eq!(wait(&mut running), Err(DeviceError::Timeout));
    let mut bytes = words([1]);
    let run = digit(&device, 6).run(&device, &mut [Binding::InOut(&mut bytes)], in_ms(20));
    assert_eq!(run.map(drop), Err(DeviceError::Timeout));
    gate(&device).open();
    assert_eq!(value(&device, &memory), 1);
}

#[test]
fn handles_of_before_a_loss_and_of_other_instances_are_typed_errors() {
    let (device, other) = (gates(), gates());
    let memory = device.allocate(4).unwrap();
    let one = digit(&device, 1);
    let theirs = (other.allocate(4).unwrap(), digit(&other, 1));
    assert_eq!(device.recover(), Ok(Generation(1)));
    assert_eq!(device.info().generation, Generation(1));
    let (now, now_memory) = (digit(&device, 1), device.allocate(4).unwrap());
    let old = Stale::Generation { found: Generation(0), now: Generation(1) };
    for (memory, code, stale) in [(&memory, &one, old), (&theirs.0, &theirs.1, Stale::Foreign)] {
        let steps = [
            code.step(vec![now_memory.whole()]),
            now.step(vec![memory.whole()]),
            write(memory.whole(), words([1])),
            Step::Copy { from: memory.whole(), to: now_memory.whole() },
            Step::Copy { from: now_memory.whole(), to: memory.whole() },
            Step::Read(memory.whole()),
        ];
        for step in steps {
            let what = format!("{step:?}");
            let result = device.submit(vec![step], Deadline::NONE).and_then(|mut submission| wait(&mut submission));
            assert_eq!(result, Err(DeviceError::Stale(stale)), "{what}");
        }
        let run = |code: &Ready, span: Span| code.run(&device, &mut [Binding::Memory(span)], Deadline::NONE).map(drop);
        assert_eq!(run(code, now_memory.whole()), Err(DeviceError::Stale(stale)));
        assert_eq!(run(&now, memory.whole()), Err(DeviceError::Stale(stale)));
        let mut bytes = words([1]);
        let on_bytes = code.run(&device, &mut [Binding::InOut(&mut bytes)], Deadline::NONE).map(drop);
        assert_eq!((on_bytes, bytes), (Err(DeviceError::Stale(stale)), words([1])));
    }
    assert_eq!(value(&device, &now_memory), 0);
    assert_eq!(value(&other, &theirs.0), 0);
    assert_eq!(now.run(&device, &mut [Binding::Memory(now_memory.whole())], Deadline::NONE).unwrap().generation, Generation(1));
}

#[test]
fn recovery_ends_what_is_in_flight_at_once_and_waits_for_nothing() {
    let device = gates();
    let memory = device.allocate(4).unwrap();
    let one = digit(&device, 1);
    gate(&device).set(Some(0), true);
    let mut running = submit(&device, vec![one.step(vec![memory.whole()])]);
    gate(&device).until_came(1);
    let mut waiting = submit(&device, vec![one.step(vec![memory.whole()])]);
    let mut small = submit(&device, vec![Step::Read(memory.whole())]);
    std::thread::scope(|scope| {
        let blocked = scope.spawn(|| {
            let mut bytes = words([1]);
            one.run(&device, &mut [Binding::InOut(&mut bytes)], Deadline::NONE).map(drop)
        });
        let ordered = scope.spawn(|| one.run(&device, &mut [Binding::Memory(memory.whole())], Deadline::NONE).map(drop));
        gate(&device).until_came(2);
        while !ordered.is_finished() {
            // The kernels hear nothing of it.
            assert!(device.recover().is_ok());
            assert!(is_lost(&running.poll(None)) || running.poll(None) == Poll::Ready(Err(DeviceError::Taken)));
        }
        assert!(is_lost(&waiting.poll(None)) && is_lost(&small.poll(None)));
        let ordered = ordered.join().unwrap();
        assert!(matches!(ordered, Err(DeviceError::Lost { .. } | DeviceError::Stale(_))), "{ordered:?}");
        // The device is there again while the one that was left behind is still stuck.
        assert!(!blocked.is_finished());
        let memory = device.allocate(4).unwrap();
        let mut copies = submit(&device, vec![write(memory.whole(), words([8])), Step::Read(memory.whole())]);
        assert_eq!(reads(&mut copies), [8]);
        gate(&device).open();
        assert_eq!(
            reads(&mut submit(&device, vec![digit(&device, 1).step(vec![memory.whole()]), Step::Read(memory.whole())])),
            [81]
        );
        let blocked = blocked.join().unwrap();
        assert!(matches!(blocked, Err(DeviceError::Lost { .. })), "{blocked:?}");
    });
}

#[test]
fn a_device_lost_between_any_two_steps_ends_the_submission_and_touches_nothing_new() {
    for before in 0..=3 {
        let device = gates();
        let memory = device.allocate(4).unwrap();
        let one = digit(&device, 1);
        gate(&device).set(Some(before), false);
        let mut submission = submit(&device, (0..4).map(|_| one.step(vec![memory.whole()])).collect());
        gate(&device).until_came(before + 1);
        device.recover().unwrap();
        assert!(is_lost(&submission.poll(None)), "{before}");
        gate(&device).open();
        let memory = device.allocate(4).unwrap();
        let mut next = submit(&device, vec![digit(&device, 2).step(vec![memory.whole()]), Step::Read(memory.whole())]);
        assert_eq!(reads(&mut next), [2]);
    }
}

#[test]
fn submissions_outlive_the_device_that_they_were_given_to() {
    let device = gates();
    let memory = device.allocate(4).unwrap();
    gate(&device).set(Some(2), false);
    let step = || digit(&device, 1).step(vec![memory.whole()]);
    let mut submissions = [submit(&device, vec![step()]), submit(&device, vec![step(), Step::Read(memory.whole())])];
    drop(memory);
    drop(device);
    assert_eq!(reads(&mut submissions[1]), [11]);
    assert!(wait(&mut submissions[0]).is_ok());
}

const SUM: &str = "program sum {
  workgroup 2
  buffer a: read u32[2] @0
  buffer b: read u32[2] @1
  buffer out: output u32[2] @2
  out[gid.x] = a[gid.x] + b[gid.x] * 10
}";

#[test]
fn spans_of_one_memory_may_overlap_where_they_are_read_and_nowhere_else() {
    let device = gates();
    let sum = ready(&device, SUM);
    let memory = device.allocate(24).unwrap();
    let span = |start: u64| Span { memory: memory.clone(), range: start..start + 8 };
    drop(wait(&mut submit(&device, vec![write(memory.whole(), words([1, 2, 3, 4, 5, 6]))])));
    let both = |bindings: [Span; 3]| -> [Result<(), DeviceError>; 2] {
        let submitted = wait(&mut submit(&device, vec![sum.step(bindings.to_vec())])).map(drop);
        let mut bindings = bindings.map(Binding::Memory);
        [submitted, sum.run(&device, &mut bindings, Deadline::NONE).map(drop)]
    };
    // The same bytes twice, a part of them twice, and a writer beside them.
    assert_eq!(both([span(0), span(0), span(16)]), [Ok(()), Ok(())]);
    assert_eq!(value(&device, &memory), 1);
    let all = || unwords(&wait(&mut submit(&device, vec![Step::Read(memory.whole())])).unwrap().reads[0]);
    assert_eq!(all(), [1, 2, 3, 4, 11, 22]);
    assert_eq!(both([span(4), span(0), span(12)]), [Ok(()), Ok(())]);
    assert_eq!(all(), [1, 2, 3, 12, 23, 22]);
    assert_eq!(both([span(16), span(12), span(0)]), [Ok(()), Ok(())]);
    assert_eq!(all(), [143, 252, 3, 12, 23, 22]);
    // A writer over one of them.
    for (a, b, out) in [(0, 8, 0), (0, 8, 4), (8, 0, 4), (8, 8, 4), (0, 16, 12), (4, 16, 0)] {
        assert_eq!(both([span(a), span(b), span(out)]), [Err(DeviceError::Aliased), Err(DeviceError::Aliased)], "{a} {b} {out}");
    }
    assert_eq!(all(), [143, 252, 3, 12, 23, 22], "what is refused changes nothing");
    // Outside, too long, too short, and backwards.
    let wrong = |range: Range<u64>| Span { memory: memory.clone(), range };
    for (range, length, size) in
        [(20..28, 8, 24), (24..32, 8, 24), (u64::MAX - 8..u64::MAX, 8, 24), (0..12, 12, 8), (0..4, 4, 8), (0..0, 0, 8)]
    {
        for results in [both([wrong(range.clone()), span(0), span(8)]), both([span(0), span(0), wrong(range.clone())])] {
            for result in results {
                let Err(DeviceError::OutOfRange { length: found, size: limit, .. }) = result else { panic!("{result:?}") };
                assert_eq!((found, limit), (length, size), "{range:?}");
            }
        }
    }
    #[expect(clippy::reversed_empty_ranges, reason = "that is what is tested")]
    let backwards = [wrong(16..8), wrong(8..0)];
    for span in backwards {
        let result = wait(&mut submit(&device, vec![Step::Read(span)])).map(drop);
        assert!(matches!(result, Err(DeviceError::OutOfRange { .. })), "{result:?}");
    }
    for step in [write(span(20), vec![0; 8]), write(span(0), vec![0; 7]), Step::Copy { from: span(0), to: wrong(0..4) }] {
        let result = wait(&mut submit(&device, vec![step])).map(drop);
        assert!(matches!(result, Err(DeviceError::OutOfRange { .. })), "{result:?}");
    }
}

#[test]
fn spans_without_bytes_are_anywhere() {
    let device = gates();
    let none = ready(
        &device,
        "program p {\n workgroup 1\n buffer a: read u32[0] @0\n buffer x: read_write u32[1] @1\n buffer o: output u32[0] @2\n x[gid.x] = x[gid.x] + len(a) + 1\n}",
    );
    let memory = device.allocate(8).unwrap();
    let empty = device.allocate(0).unwrap();
    let span = |range: Range<u64>| Span { memory: memory.clone(), range };
    for (a, o) in
        [(span(0..0), span(8..8)), (span(2..2), span(6..6)), (empty.whole(), empty.whole()), (span(4..4), empty.whole())]
    {
        wait(&mut submit(&device, vec![none.step(vec![a.clone(), span(4..8), o.clone()])])).unwrap();
        let mut bindings = [a, span(4..8), o].map(Binding::Memory);
        none.run(&device, &mut bindings, Deadline::NONE).unwrap();
    }
    assert_eq!(reads(&mut submit(&device, vec![Step::Read(span(4..8))])), [8]);
    let steps = vec![write(span(8..8), vec![]), Step::Copy { from: span(0..0), to: empty.whole() }, Step::Read(span(3..3))];
    assert_eq!(wait(&mut submit(&device, steps)).unwrap().reads, [[0u8; 0]]);
}

#[test]
fn copies_within_one_memory_may_overlap() {
    let device = gates();
    let memory = device.allocate(10).unwrap();
    let span = |range: Range<u64>| Span { memory: memory.clone(), range };
    let fill = || write(memory.whole(), (0..10).collect());
    for (from, to, expected) in [
        (0..6, 3..9, [0, 1, 2, 0, 1, 2, 3, 4, 5, 9]),
        (3..9, 0..6, [3, 4, 5, 6, 7, 8, 6, 7, 8, 9]),
        (2..5, 2..5, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
    ] {
        let steps = vec![fill(), Step::Copy { from: span(from), to: span(to) }, Step::Read(memory.whole())];
        assert_eq!(wait(&mut submit(&device, steps)).unwrap().reads, [expected]);
    }
    // Two memories, either way, while another thread copies them the other way round.
    let other = device.allocate(10).unwrap();
    let large = || Step::Copy { from: memory.whole(), to: other.whole() };
    let back = || Step::Copy { from: other.whole(), to: memory.whole() };
    wait(&mut submit(&device, vec![large()])).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| (0..200).for_each(|_| drop(wait(&mut submit(&device, vec![large(), back()])).unwrap())));
            scope.spawn(|| (0..200).for_each(|_| drop(wait(&mut submit(&device, vec![back(), large()])).unwrap())));
        }
    });
    assert_eq!(wait(&mut submit(&device, vec![Step::Read(memory.whole())])).unwrap().reads, [[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]]);
}

#[test]
fn workgroups_in_pieces_give_the_bytes_of_the_whole() {
    let device = gates();
    let table = ready(
        &device,
        "program p {
          // grid 3 2 2
          workgroup 2 2 1
          buffer out: output u32[96] @0
          buffer seen: read_write u32[12] @1
          out[gid.x + gid.y * 6 + gid.z * 24] = wid.x + wid.y * 10 + wid.z * 100 + lid.x * 1000 + 7
          if lid.x == 0 && lid.y == 0 { seen[wid.x + wid.y * 3 + wid.z * 6] = seen[wid.x + wid.y * 3 + wid.z * 6] + 1 }
        }",
    );
    assert_eq!(table.groups(), 0..12);
    let run = |cuts: &[u64]| {
        let (mut out, mut seen) = (vec![0xA5; 384], words([0; 12]));
        for (n, pair) in cuts.windows(2).enumerate() {
            let mut bindings = [Binding::Out(&mut out), Binding::InOut(&mut seen)];
            let (code, launch, groups) = (&table.code, &*table.launch, pair[0]..pair[1]);
            let mut call = Call { code, launch, groups: groups.clone(), zero_outputs: n == 0, bindings: &mut bindings };
            assert_eq!(device.run(&mut call, Deadline::NONE).unwrap().groups, groups);
        }
        (out, unwords(&seen))
    };
    let whole = run(&[0, 12]);
    assert_eq!(whole.1, [1; 12]);
    assert_eq!(run(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]), whole);
    assert_eq!(run(&[0, 5, 5, 12, 12]), whole);
    assert_eq!(run(&[0, 7]).1, [1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0]);
    // The same by steps.
    let (out, seen) = (device.allocate(384).unwrap(), device.allocate(48).unwrap());
    let steps = [(0, 4), (4, 9), (9, 12)].map(|(start, end)| Step::Dispatch {
        code: table.code.clone(),
        launch: table.launch.clone(),
        groups: start..end,
        zero_outputs: start == 0,
        bindings: vec![out.whole(), seen.whole()],
    });
    let steps = steps.into_iter().chain([Step::Read(out.whole()), Step::Read(seen.whole())]).collect();
    let done = wait(&mut submit(&device, steps)).unwrap();
    assert_eq!((done.reads[0].clone(), unwords(&done.reads[1])), whole);
    assert_eq!(done.ran.iter().map(|ran| ran.groups.clone()).collect::<Vec<_>>(), [0..4, 4..9, 9..12]);
    // Beyond the grid, and backwards.
    for groups in [0..13, 12..13, 0..1 << 40] {
        let mut bindings = [Binding::Out(&mut [0; 384]), Binding::InOut(&mut [0; 48])];
        let mut call = Call { code: &table.code, launch: &table.launch, groups, zero_outputs: true, bindings: &mut bindings };
        assert!(matches!(device.run(&mut call, Deadline::NONE), Err(DeviceError::Other(_))));
    }
    assert_eq!(table.program.interface().outputs.len(), 2);
}

#[test]
fn outputs_are_zero_first_only_if_that_is_asked_for() {
    let device = gates();
    let half = ready(&device, "program p {\n workgroup 2\n buffer out: output u32[2] @0\n if gid.x == 0 { out[gid.x] = 7 }\n}");
    for (zero_outputs, expected) in [(true, [7, 0]), (false, [7, 99])] {
        let mut out = words([99, 99]);
        let mut bindings = [Binding::Out(&mut out)];
        let call = &mut Call { code: &half.code, launch: &half.launch, groups: 0..1, zero_outputs, bindings: &mut bindings };
        device.run(call, Deadline::NONE).unwrap();
        assert_eq!(unwords(&out), expected);
        let memory = device.allocate(8).unwrap();
        let dispatch = Step::Dispatch {
            code: half.code.clone(),
            launch: half.launch.clone(),
            groups: 0..1,
            zero_outputs,
            bindings: vec![memory.whole()],
        };
        let steps = vec![write(memory.whole(), words([99, 99])), dispatch, Step::Read(memory.whole())];
        assert_eq!(unwords(&wait(&mut submit(&device, steps)).unwrap().reads[0]), expected);
    }
}

#[test]
fn bytes_that_cannot_be_written_are_not_bound_to_a_buffer_that_is() {
    let device = gates();
    let writes = ready(&device, "program p {\n workgroup 2\n buffer out: output u32[2] @0\n out[gid.x] = 7\n}");
    let bytes = words([9, 9]);
    let refused = writes.run(&device, &mut [Binding::In(&bytes)], Deadline::NONE);
    assert!(matches!(refused, Err(DeviceError::Other(_))), "{refused:?}");
}

#[test]
fn a_part_of_the_workgroups_is_not_run_where_all_wait_for_each_other() {
    let device = gates();
    let waits = ready(
        &device,
        "program p {\n workgroup 2\n buffer out: output u32[8] @0\n out[gid.x] = 7\n barrier.grid\n out[7 - gid.x] = 8\n}",
    );
    for groups in [0..1, 1..4, 2..2] {
        let mut out = words([9; 8]);
        let mut bindings = [Binding::Out(&mut out)];
        let call = &mut Call { code: &waits.code, launch: &waits.launch, groups, zero_outputs: true, bindings: &mut bindings };
        let refused = device.run(call, Deadline::NONE);
        assert!(matches!(refused, Err(DeviceError::Other(_))), "{refused:?}");
        assert_eq!(unwords(&out), [9; 8]);
    }
}

#[test]
fn memory_is_zero_and_too_much_of_it_is_an_error() {
    let device = gates();
    let memory = device.allocate(100_000).unwrap();
    assert_eq!(memory.bytes(), 100_000);
    assert_eq!(wait(&mut submit(&device, vec![Step::Read(memory.whole())])).unwrap().reads, [vec![0; 100_000]]);
    for requested in [u64::MAX, 1 << 62] {
        assert_eq!(device.allocate(requested).map(drop), Err(DeviceError::OutOfMemory { requested }));
    }
}

#[test]
fn two_threads_on_the_same_memory_come_one_after_the_other() {
    let device = gates();
    let memory = device.allocate(4).unwrap();
    let next = ready(&device, "program p {\n workgroup 1\n buffer x: read_write u32[1] @0\n x[gid.x] = x[gid.x] + 1\n}");
    std::thread::scope(|scope| {
        for n in 0..4 {
            let (device, memory, next) = (&device, &memory, &next);
            scope.spawn(move || {
                for _ in 0..200 {
                    match n % 2 {
                        0 => drop(wait(&mut submit(device, vec![next.step(vec![memory.whole()])])).unwrap()),
                        _ => drop(next.run(device, &mut [Binding::Memory(memory.whole())], Deadline::NONE).unwrap()),
                    }
                }
            });
        }
    });
    assert_eq!(value(&device, &memory), 800);
}
