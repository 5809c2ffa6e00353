//! Memory that one dispatch uses at a time and the next one finds warm.

use std::sync::{Mutex, PoisonError};

/// More threads than this at a time make their own, and drop it.
const KEPT: usize = 32;

/// Things that are used by one thread at a time. The lock is held only to take one and to give it back.
pub(super) struct Pool<T> {
    idle: Mutex<Vec<T>>,
}

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Pool { idle: Mutex::default() }
    }
}

impl<T> Pool<T> {
    /// The one that was used last.
    pub fn take(&self) -> Option<T> {
        // A list of idle things is whole at any time.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    pub fn give_back(&self, thing: T) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < KEPT {
            idle.push(thing);
        }
    }
}
