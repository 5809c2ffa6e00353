//! Float states that a process may have, for tests of whatever computes with floats.
//!
//! An evaluator is right if it gives the same bytes under each of these as under the default, and leaves the state as it was.

use crate::{Restore, apart, register};
use std::fmt;

/// A float state other than the default.
#[derive(Clone, Copy, Debug)]
pub struct State {
    name: &'static str,
    change: register::Bits,
    traps: bool,
}

impl State {
    /// Whether float arithmetic under it can end in a signal.
    #[must_use]
    pub fn traps(self) -> bool {
        self.traps
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// The states that this processor has and that change something: flushing, every rounding mode, every exception unmasked. None
/// where the float state is not known.
pub fn states() -> impl Iterator<Item = State> {
    register::HOSTILE.iter().map(|(name, change, traps)| State { name, change: *change, traps: *traps })
}

/// Calls `body` as a thread of a process does that has this float state, and takes the state back afterwards.
///
/// # Panics
/// If `body` did not leave the state exactly as it found it. Flags count here: one that is set tells that `body` computed with floats
/// under this state.
pub fn under<R>(state: State, body: impl FnOnce() -> R) -> R {
    let (before, left, result) = {
        let _restore = set(state);
        let before = register::read();
        let result = apart(body);
        (before, register::read(), result)
    };
    assert!(left == before, "the float state was {before:#x} ({state}) and is {left:#x} afterwards");
    result
}

/// Sets the state, until the result is dropped.
pub(crate) fn set(state: State) -> Restore {
    let restore = Restore(register::read());
    register::write(register::to_default(restore.0) ^ state.change);
    restore
}
