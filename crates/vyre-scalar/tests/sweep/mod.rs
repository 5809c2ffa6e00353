//! What the tests against other implementations share: how much to run, the layout of the two float types, numbers to draw cases
//! from, and a report that names what differs. The crate's documentation says how to run the long forms.

#![allow(dead_code, reason = "each test file uses a part of this one")]

#[path = "../../src/random.rs"]
mod random;

pub mod soft;

pub use random::Random;
use std::fmt::Display;
use std::time::Instant;
use vyre_spec::{FloatMode, Scalar};

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

impl Random {
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

/// One of the two float types.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Type {
    F32,
    F64,
}

impl Type {
    pub const ALL: [Type; 2] = [Type::F32, Type::F64];

    pub fn scalar(self) -> Scalar {
        match self {
            Type::F32 => Scalar::F32,
            Type::F64 => Scalar::F64,
        }
    }

    /// Stored significand bits.
    pub fn fraction(self) -> u64 {
        match self {
            Type::F32 => 23,
            Type::F64 => 52,
        }
    }

    /// The exponent field of infinities.
    pub fn last_field(self) -> u64 {
        match self {
            Type::F32 => 0xFF,
            Type::F64 => 0x7FF,
        }
    }

    pub fn infinity(self) -> u64 {
        self.last_field() << self.fraction()
    }

    /// The exponent field of 1.
    pub fn bias(self) -> u64 {
        self.last_field() / 2
    }

    pub fn sign(self) -> u64 {
        (self.infinity() << 1) & !self.infinity()
    }

    /// The one NaN, and in canonical mode no number up to the smallest normal one: written out again, not the crate's.
    #[inline]
    pub fn canonical(self, mode: FloatMode, bits: u64) -> u64 {
        let magnitude = bits & !self.sign();
        if magnitude > self.infinity() {
            self.infinity() | 1 << (self.fraction() - 1)
        } else if mode == FloatMode::Canonical && magnitude <= 1 << self.fraction() {
            0
        } else {
            bits
        }
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
        let (found, expected) = (found.into(), expected.into());
        self.record(found == expected, || format!("{}: expected {expected:#x}, found {found:#x}", inputs()));
    }

    /// One comparison; `message` tells how it failed.
    #[inline]
    pub fn record(&mut self, equal: bool, message: impl FnOnce() -> String) {
        self.cases += 1;
        if !equal {
            self.differs(message);
        }
    }

    #[cold]
    fn differs(&mut self, message: impl FnOnce() -> String) {
        self.differences += 1;
        if self.first.len() < 20 {
            self.first.push(message());
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
