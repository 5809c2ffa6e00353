//! Output buffers that are nobody's: dispatches write into them before they are the caller's.

use crate::backend::OutputBuffers;
use std::sync::{Mutex, PoisonError};

/// What all of them may take. Getting memory again is little beside filling it, but it is a second pass over the bytes.
const KEPT_BYTES: u64 = 512 << 20;

/// Buffers in sets, each used by one dispatch at a time. The lock is held only to take one and to give it back.
#[derive(Default)]
pub(super) struct Spare {
    idle: Mutex<Idle>,
}

#[derive(Default)]
struct Idle {
    sets: Vec<(u64, OutputBuffers)>,
    bytes: u64,
}

impl Spare {
    /// The set that was given back last among those of about so many bytes, or an empty one.
    pub fn take(&self, bytes: u64) -> OutputBuffers {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |size: u64| size >= bytes && size / 2 <= bytes;
        let Some(at) = idle.sets.iter().rposition(|(size, _)| fits(*size)) else { return Vec::new() };
        let (size, set) = idle.sets.swap_remove(at);
        idle.bytes -= size;
        set
    }

    pub fn give_back(&self, set: OutputBuffers) {
        let size = set.iter().map(|buffer| buffer.capacity() as u64).sum::<u64>();
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if size > KEPT_BYTES {
            return;
        }
        // The oldest give way.
        let mut gone = 0;
        while idle.bytes + size > KEPT_BYTES || idle.sets.len() - gone >= KEPT_SETS {
            idle.bytes -= idle.sets[gone].0;
            gone += 1;
        }
        let evicted: Vec<(u64, OutputBuffers)> = idle.sets.drain(..gone).collect();
        idle.bytes += size;
        idle.sets.push((size, set));
        drop(idle);
        drop(evicted);
    }
}

/// More sets than this are not looked through.
const KEPT_SETS: usize = 32;
