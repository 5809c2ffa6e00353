//! What a barrier orders.

use std::fmt;

/// The ordering a barrier is written with.
///
/// Within a workgroup `Acquire` to `SeqCst` mean the same: all storage and workgroup accesses before the barrier happen before all
/// accesses after it. `Relaxed` would order nothing and is refused by the validator.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum MemoryOrdering {
    /// Orders nothing; refused.
    Relaxed,
    /// The same as `SeqCst`.
    Acquire,
    /// The same as `SeqCst`.
    Release,
    /// The same as `SeqCst`.
    AcqRel,
    /// Orders all accesses of the workgroup.
    #[default]
    SeqCst,
    /// Waits for the whole grid: writes of all workgroups become visible, workgroup memory starts again from zero.
    GridSync,
}

impl MemoryOrdering {
    /// Every ordering.
    pub const ALL: [MemoryOrdering; 6] = [
        MemoryOrdering::Relaxed,
        MemoryOrdering::Acquire,
        MemoryOrdering::Release,
        MemoryOrdering::AcqRel,
        MemoryOrdering::SeqCst,
        MemoryOrdering::GridSync,
    ];

    /// What follows `barrier.` in the text form; plain `barrier` is `SeqCst`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            MemoryOrdering::Relaxed => "relaxed",
            MemoryOrdering::Acquire => "acquire",
            MemoryOrdering::Release => "release",
            MemoryOrdering::AcqRel => "acqrel",
            MemoryOrdering::SeqCst => "seqcst",
            MemoryOrdering::GridSync => "grid",
        }
    }

    /// The ordering with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<MemoryOrdering> {
        MemoryOrdering::ALL.into_iter().find(|ordering| ordering.name() == name)
    }

    /// Its number in the wire form.
    #[must_use]
    pub const fn tag(self) -> u8 {
        self as u8
    }
}

impl fmt::Display for MemoryOrdering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
