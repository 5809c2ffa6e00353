//! What time a candidate takes: seconds of this process on one core.
//!
//! The time of the process does not count what others do on the machine; being held on one core keeps caches and counts of threads out of
//! it. Where the system offers neither, it is the time on the wall.

use std::time::Duration;

/// Seconds of the processor that this process has used, all threads together.
#[cfg(target_os = "linux")]
pub fn processor() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).expect("nanoseconds are below a second"))
}

/// The time on the wall, where the time of a process is not to be had.
#[cfg(not(target_os = "linux"))]
pub fn processor() -> Duration {
    static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    START.get_or_init(std::time::Instant::now).elapsed()
}

/// The cores that the process may use, given back when it is dropped.
#[cfg(target_os = "linux")]
pub struct Pinned(rustix::thread::CpuSet);

/// Holds this thread, and those it starts, on the last core that it may use: the first is where systems answer interrupts.
#[cfg(target_os = "linux")]
pub fn pin() -> Option<Pinned> {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    let all = sched_getaffinity(None).ok()?;
    let last = (0..CpuSet::MAX_CPU).rfind(|cpu| all.is_set(*cpu))?;
    let mut one = CpuSet::new();
    one.set(last);
    sched_setaffinity(None, &one).ok()?;
    Some(Pinned(all))
}

#[cfg(target_os = "linux")]
impl Drop for Pinned {
    fn drop(&mut self) {
        // What could be narrowed can be widened again; if not, the rest runs on one core and its figures say so.
        let _ = rustix::thread::sched_setaffinity(None, &self.0);
    }
}

/// Nothing holds a thread here.
#[cfg(not(target_os = "linux"))]
pub struct Pinned;

/// Nothing holds a thread here.
#[cfg(not(target_os = "linux"))]
pub fn pin() -> Option<Pinned> {
    None
}
