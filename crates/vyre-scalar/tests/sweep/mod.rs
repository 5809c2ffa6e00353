//! What the tests against other implementations share: how much to run, a fixed stream of numbers, and a report that names what
//! differs.
//!
//! Each of these tests has a short form, which is always run, and a long one: `VYRE_LONG=1 cargo test --release -p vyre-scalar
//! -- --nocapture --test-threads 2` prints what was compared and takes some hours of CPU time.

#![allow(dead_code, reason = "each test file uses a part of this one")]

use std::fmt::Display;
use std::time::Instant;

/// How much to run, from the environment variable `VYRE_LONG`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// A sample that takes seconds (not set).
    Sample,
    /// Everything (`1`).
    Everything,
    /// The sweeps with a committed digest, comparing only the digest (`digests`): what a machine can do where the other
    /// implementation is slow or not to be trusted.
    Digests,
}

pub fn extent() -> Extent {
    match std::env::var("VYRE_LONG").as_deref() {
        Err(_) => Extent::Sample,
        Ok("1") => Extent::Everything,
        Ok("digests") => Extent::Digests,
        Ok(other) => panic!("VYRE_LONG is `1`, `digests` or not set, not `{other}`"),
    }
}

/// How many cases: the first number in the long form, else the second.
pub fn cases(everything: u64, sample: u64) -> u64 {
    if extent() == Extent::Everything { everything } else { sample }
}

/// A fixed sequence of well mixed numbers (SplitMix64).
pub struct Random(pub u64);

impl Random {
    #[inline]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Below `bound`.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    #[inline]
    pub fn pick<T: Copy>(&mut self, among: &[T]) -> T {
        among[self.below(among.len() as u64) as usize]
    }
}

/// Counts comparisons and remembers the first that failed.
pub struct Report {
    what: String,
    cases: u64,
    differences: u64,
    first: Vec<String>,
    started: Instant,
    processor: Option<f64>,
}

/// Seconds this thread has had a processor, where the system tells (Linux); long runs share the machine.
fn processor_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds: f64 = text.split(' ').next()?.parse().ok()?;
    Some(nanoseconds / 1e9)
}

impl Report {
    pub fn new(what: impl Display) -> Report {
        Report {
            what: what.to_string(),
            cases: 0,
            differences: 0,
            first: vec![],
            started: Instant::now(),
            processor: processor_seconds(),
        }
    }

    /// Compares results by their bits; `inputs` spells the operands.
    #[inline]
    pub fn check<T: Into<u64>>(&mut self, found: T, expected: T, inputs: impl FnOnce() -> String) {
        self.cases += 1;
        let (found, expected) = (found.into(), expected.into());
        if found != expected {
            self.differs(format!("{}: expected {expected:#x}, found {found:#x}", inputs()));
        }
    }

    #[cold]
    pub fn differs(&mut self, message: String) {
        self.differences += 1;
        if self.first.len() < 20 {
            self.first.push(message);
        }
    }

    /// Prints what was done; panics with the first differences if there are any.
    pub fn finish(self) {
        let (what, cases, differences) = (&self.what, self.cases, self.differences);
        let wall = self.started.elapsed().as_secs_f64();
        let processor = self.processor.zip(processor_seconds()).map_or(wall, |(start, end)| end - start);
        println!("{what}: {cases} cases, {differences} differences, {wall:.1} s, {processor:.1} s of one processor");
        assert!(cases > 0, "{what}: nothing was compared");
        assert!(differences == 0, "{what}: {differences} of {cases} differ:\n  {}", self.first.join("\n  "));
    }
}
