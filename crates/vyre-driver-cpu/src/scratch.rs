//! Memory that a thread has for itself while it runs machine code, kept from one dispatch to the next.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::cell::Cell;
use std::ptr::NonNull;

/// What lies on its own cache line is a multiple of this, and aligned to it.
pub(crate) const LINE: usize = 64;

/// Memory of a thread that has more than this is not kept.
const KEPT_BYTES: usize = 4 << 20;

thread_local! {
    static KEPT: Cell<Option<Box<Scratch>>> = const { Cell::new(None) };
}

/// What a thread has for itself.
#[derive(Default)]
pub(crate) struct Scratch {
    memory: Lines,
    /// Contexts of the workgroups of a dispatch that this thread has asked for, where those are few.
    pub(crate) contexts: Lines,
    /// The smallest invocation that trapped, and the tag.
    trap: Option<(u64, u32)>,
}

#[allow(dead_code, reason = "machine code calls it")]
impl Scratch {
    /// Bytes of any content, aligned to 64: as many as the kernel's `scratch_bytes` at least.
    pub fn memory(&mut self) -> &mut [u8] {
        self.memory.bytes_mut()
    }

    /// Notes that an invocation trapped. `order` is its place in the order of all invocations of the dispatch, x fastest.
    pub fn note_trap(&mut self, order: u64, tag: u32) {
        if self.trap.is_none_or(|(smallest, _)| order < smallest) {
            self.trap = Some((order, tag));
        }
    }
}

impl Scratch {
    /// Takes what is kept of this thread, or nothing, with so much memory. `None` if there is not so much.
    pub fn take(bytes: usize) -> Option<Box<Scratch>> {
        let mut scratch = KEPT.try_with(Cell::take).ok().flatten().unwrap_or_default();
        if scratch.memory.length < bytes {
            scratch.memory = Lines::zeroed(bytes)?;
        }
        scratch.trap = None;
        Some(scratch)
    }

    /// Keeps it for the thread's next dispatch.
    pub fn keep(mut self: Box<Scratch>) {
        for lines in [&mut self.memory, &mut self.contexts] {
            if lines.length > KEPT_BYTES {
                *lines = Lines::default();
            }
        }
        // At the end of a thread there is nothing to keep it in.
        let _ = KEPT.try_with(|kept| kept.set(Some(self)));
    }

    /// The smallest invocation that trapped since it was taken, and the tag.
    pub fn trap(&self) -> Option<(u64, u32)> {
        self.trap
    }
}

/// Bytes on cache lines of their own.
#[derive(Default)]
pub(crate) struct Lines {
    start: Option<NonNull<u8>>,
    length: usize,
}

// SAFETY: it owns its bytes, as a `Vec` does.
unsafe impl Send for Lines {}

impl Lines {
    /// So many zeros. `None` if there is not so much memory.
    pub fn zeroed(bytes: usize) -> Option<Lines> {
        if bytes == 0 {
            return Some(Lines::default());
        }
        let length = bytes.checked_next_multiple_of(LINE)?;
        let layout = Layout::from_size_align(length, LINE).ok()?;
        // SAFETY: the layout has a size.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        Some(Lines { start: Some(start), length })
    }

    /// All of them.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        match self.start {
            // SAFETY: it was allocated with this length, is initialised, and is borrowed for as long as the slice.
            Some(start) => unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), self.length) },
            None => &mut [],
        }
    }

    pub fn len(&self) -> usize {
        self.length
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        if let Some(start) = self.start {
            let layout = Layout::from_size_align(self.length, LINE).expect("it was allocated so");
            // SAFETY: it was allocated with this layout, and nobody has it any more.
            unsafe { dealloc(start.as_ptr(), layout) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_aligned_kept_and_not_more_than_there_is() {
        let mut scratch = Scratch::take(1000).unwrap();
        let memory = scratch.memory();
        assert!(memory.len() == 1024 && memory.as_ptr().addr().is_multiple_of(LINE));
        memory.fill(7);
        scratch.note_trap(9, 1);
        scratch.note_trap(3, 2);
        scratch.note_trap(5, 4);
        assert_eq!(scratch.trap(), Some((3, 2)));
        scratch.keep();
        let mut again = Scratch::take(500).unwrap();
        assert_eq!((again.trap(), again.memory()[1023]), (None, 7));
        again.contexts = Lines::zeroed(KEPT_BYTES + 1).unwrap();
        again.keep();
        let mut again = Scratch::take(2000).unwrap();
        assert_eq!((again.contexts.len(), again.memory()[1999]), (0, 0));
        assert!(Lines::zeroed(usize::MAX - 5).is_none() && Lines::zeroed(isize::MAX as usize - 63).is_none());
    }
}
