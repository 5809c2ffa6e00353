//! What ran: the device's word on one dispatch.

use super::Generation;
use std::ops::Range;
use std::sync::Arc;

/// What ran. It is a claim; whoever has to know looks at outputs that depend on it. Cloning it allocates nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ran {
    /// The device.
    pub device: &'static str,
    /// How often it had been opened again.
    pub generation: Generation,
    /// Invocations of a workgroup along x, y and z.
    pub workgroup: [u32; 3],
    /// Workgroups along x, y and z.
    pub grid: [u32; 3],
    /// Those of them that ran.
    pub groups: Range<u64>,
    /// The tuning that was used, if one was asked for.
    pub profile: Option<Arc<str>>,
    /// Threads of the host that took part.
    pub threads: u32,
    /// How the kernel was run, in a word or two: `bulk`, `avx2`, `wgsl`.
    pub lowering: Arc<str>,
    /// The hash of the code that was emitted, where there is such a thing.
    pub code: Option<[u8; 32]>,
    /// How many units in the last place elementary functions may be off by; `None` if they are exact, whatever was permitted.
    pub ulp: Option<u8>,
    /// Whether the code was there before the call, also that of a pipeline. After a loss it is not.
    pub cache_hit: bool,
    /// Nanoseconds that the device itself measured, where it can.
    pub device_ns: Option<u64>,
}

impl Ran {
    /// The same for code that was or was not in a cache.
    pub(crate) fn found(mut self, in_cache: bool) -> Ran {
        self.cache_hit &= in_cache;
        self
    }

    /// The same for workgroups that followed these in another call.
    pub(crate) fn extend(&mut self, next: Ran) {
        self.groups.end = next.groups.end;
        self.threads = self.threads.max(next.threads);
        self.device_ns = self.device_ns.zip(next.device_ns).map(|(one, other)| one.saturating_add(other));
    }
}
