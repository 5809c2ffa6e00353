//! What a run may use: steps and time. Both are looked at in one comparison per step.
//!
//! The clock is read once in [`Limits::INTERVAL`] steps. A step is a statement of one invocation, so a run that is told to stop does so
//! after that many statements: between the blocks of the bulk evaluator, at the heads of loops and inside their bodies.

use crate::error::RunError;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

/// What a run may use, and how it is told to stop.
#[derive(Clone, Copy, Debug)]
pub struct Limits<'a> {
    /// Steps that all invocations may take together.
    pub fuel: u64,
    /// When to give up.
    pub deadline: Option<Instant>,
    /// Set by another thread that no longer wants the result.
    pub cancelled: Option<&'a AtomicBool>,
}

impl Limits<'_> {
    /// Steps between two looks at the clock: under a millisecond of the slowest statements that people write, and a share of the time
    /// of the fastest that cannot be measured.
    const INTERVAL: u64 = 1 << 14;

    /// Neither steps nor time are limited.
    pub const NONE: Limits<'static> = Limits { fuel: u64::MAX, deadline: None, cancelled: None };

    /// So many steps, and no limit of time.
    #[must_use]
    pub const fn fuel(fuel: u64) -> Limits<'static> {
        Limits { fuel, deadline: None, cancelled: None }
    }
}

/// What is left of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fuel<'a> {
    limits: Limits<'a>,
    left: u64,
    /// With less than this left, the clock is looked at.
    floor: u64,
}

/// Why a run does not go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stopped {
    /// It took more steps than it was given.
    Fuel,
    /// It took more time than it was given.
    Deadline,
    /// Nobody wants it any more.
    Cancelled,
}

impl<'a> Fuel<'a> {
    pub fn new(limits: Limits<'a>) -> Fuel<'a> {
        // The first step looks at the clock, so that a run whose time is over does nothing.
        let floor = if limits.deadline.is_some() || limits.cancelled.is_some() { limits.fuel } else { 0 };
        Fuel { limits, left: limits.fuel, floor }
    }

    pub fn left(&self) -> u64 {
        self.left
    }

    /// Takes the steps that a copy has taken.
    pub fn follow(&mut self, copy: &Fuel<'_>) {
        (self.left, self.floor) = (copy.left, copy.floor);
    }

    /// Takes so many steps.
    #[inline(always)]
    pub fn take(&mut self, steps: u64) -> Result<(), Stopped> {
        match self.left.checked_sub(steps) {
            Some(left) if left >= self.floor => {
                self.left = left;
                Ok(())
            }
            Some(_) | None => self.look(steps),
        }
    }

    #[cold]
    fn look(&mut self, steps: u64) -> Result<(), Stopped> {
        self.left = self.left.checked_sub(steps).ok_or(Stopped::Fuel)?;
        self.floor = self.left.saturating_sub(Limits::INTERVAL);
        if self.limits.cancelled.is_some_and(|flag| flag.load(Relaxed)) {
            return Err(Stopped::Cancelled);
        }
        match self.limits.deadline {
            Some(deadline) if Instant::now() >= deadline => Err(Stopped::Deadline),
            Some(_) | None => Ok(()),
        }
    }

    /// The error of a run that was stopped.
    pub fn error(&self, stopped: Stopped) -> RunError {
        match stopped {
            Stopped::Fuel => RunError::OutOfFuel { fuel: self.limits.fuel },
            Stopped::Deadline => RunError::Timeout,
            Stopped::Cancelled => RunError::Cancelled,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn steps_are_counted_to_the_last() {
        let mut fuel = Fuel::new(Limits::fuel(5));
        assert_eq!((fuel.take(5), fuel.take(0), fuel.take(1)), (Ok(()), Ok(()), Err(Stopped::Fuel)));
    }

    #[test]
    fn time_that_is_over_stops_the_first_step() {
        let past = Some(Instant::now());
        assert_eq!(Fuel::new(Limits { deadline: past, ..Limits::NONE }).take(1), Err(Stopped::Deadline));
    }

    #[test]
    fn a_flag_is_seen_within_an_interval() {
        let flag = AtomicBool::new(false);
        let later = Instant::now() + Duration::from_secs(3600);
        let mut fuel = Fuel::new(Limits { fuel: 1 << 40, deadline: Some(later), cancelled: Some(&flag) });
        assert_eq!(fuel.take(1), Ok(()));
        flag.store(true, Relaxed);
        let steps = (1..).find(|_| fuel.take(1).is_err()).unwrap_or(0);
        assert!(steps <= Limits::INTERVAL + 1, "{steps}");
        assert_eq!(fuel.left(), (1 << 40) - 1 - steps);
    }
}
