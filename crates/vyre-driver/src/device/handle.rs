//! Handles of a device: code and memory that know whose they are.
//!
//! A handle names the instance of the device that gave it out and the generation it is of. Whoever implements a device asks with its
//! [`Identity`] for what is inside, and gets a typed error for a handle that is another's or of before a loss; wrappers hand handles on and
//! never look inside.

use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How often a device was opened again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Generation(pub u64);

/// Which instance of a device this is, and its generation now.
#[derive(Debug)]
pub struct Identity {
    instance: u64,
    generation: AtomicU64,
}

impl Default for Identity {
    fn default() -> Self {
        Self::new()
    }
}

impl Identity {
    /// That of a device which is being opened; no other of the process has it.
    #[must_use]
    pub fn new() -> Identity {
        static INSTANCES: AtomicU64 = AtomicU64::new(0);
        Identity { instance: INSTANCES.fetch_add(1, Ordering::Relaxed), generation: AtomicU64::new(0) }
    }

    /// The generation now.
    #[must_use]
    pub fn generation(&self) -> Generation {
        Generation(self.generation.load(Ordering::Acquire))
    }

    /// Makes every handle of before stale.
    pub fn begin_anew(&self) -> Generation {
        Generation(self.generation.fetch_add(1, Ordering::AcqRel) + 1)
    }

    fn check(&self, instance: u64, generation: Generation) -> Result<(), Stale> {
        match () {
            () if instance != self.instance => Err(Stale::Foreign),
            () if generation != self.generation() => Err(Stale::Generation { found: generation, now: self.generation() }),
            () => Ok(()),
        }
    }
}

/// Why a handle cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stale {
    /// It is of another device, or of another instance of this one.
    Foreign,
    /// The device was lost after it was given out.
    Generation {
        /// That of the handle.
        found: Generation,
        /// That of the device.
        now: Generation,
    },
}

impl fmt::Display for Stale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stale::Foreign => f.write_str("the handle is another device's"),
            Stale::Generation { found, now } => {
                write!(f, "the handle is of generation {} of the device, which is at {}", found.0, now.0)
            }
        }
    }
}

struct Inner<T: ?Sized> {
    instance: u64,
    generation: Generation,
    bytes: u64,
    object: T,
}

impl<T: ?Sized> Inner<T> {
    fn check(&self, identity: &Identity) -> Result<(), Stale> {
        identity.check(self.instance, self.generation)
    }
}

type Object = Inner<dyn Any + Send + Sync>;

fn object(identity: &Identity, bytes: u64, object: impl Any + Send + Sync) -> Arc<Object> {
    Arc::new(Inner { instance: identity.instance, generation: identity.generation(), bytes, object })
}

fn look<'a, T: Any>(inner: &'a Object, identity: &Identity) -> Result<&'a T, Stale> {
    inner.check(identity)?;
    // A device that is asked for its own objects by another type than it made them with has none of that name.
    inner.object.downcast_ref().ok_or(Stale::Foreign)
}

/// A kernel made ready. Clones are the same code; the last drop frees it.
#[derive(Clone)]
pub struct Code(Arc<Object>);

impl Code {
    /// Code of a device, with about the bytes that it takes.
    pub fn new(identity: &Identity, bytes: u64, code: impl Any + Send + Sync) -> Code {
        Code(object(identity, bytes, code))
    }

    /// What the device keeps in it.
    ///
    /// # Errors
    ///
    /// If it is another's, or of before a loss.
    pub fn get<T: Any>(&self, identity: &Identity) -> Result<&T, Stale> {
        look(&self.0, identity)
    }

    /// About the bytes that it takes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.bytes
    }

    /// The generation of the device that it is for.
    #[must_use]
    pub fn generation(&self) -> Generation {
        self.0.generation
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Code({} bytes, generation {})", self.0.bytes, self.0.generation.0)
    }
}

/// Memory of a device. Clones are the same memory; the last drop frees it, after the last use that was submitted.
#[derive(Clone)]
pub struct Memory(Arc<Object>);

impl Memory {
    /// Memory of a device.
    pub fn new(identity: &Identity, bytes: u64, memory: impl Any + Send + Sync) -> Memory {
        Memory(object(identity, bytes, memory))
    }

    /// What the device keeps in it.
    ///
    /// # Errors
    ///
    /// If it is another's, or of before a loss.
    pub fn get<T: Any>(&self, identity: &Identity) -> Result<&T, Stale> {
        look(&self.0, identity)
    }

    /// How many bytes it has.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.bytes
    }

    /// The generation of the device that it is of.
    #[must_use]
    pub fn generation(&self) -> Generation {
        self.0.generation
    }

    /// All of it.
    #[must_use]
    pub fn whole(&self) -> Span {
        Span { memory: self.clone(), range: 0..self.bytes() }
    }

    /// Whether it is the same memory as another handle's.
    #[must_use]
    pub fn is(&self, other: &Memory) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Something to order handles by, for locks.
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Memory({} bytes, generation {})", self.0.bytes, self.0.generation.0)
    }
}

/// Some bytes of a memory.
#[derive(Clone, Debug)]
pub struct Span {
    /// The memory.
    pub memory: Memory,
    /// The bytes of it.
    pub range: Range<u64>,
}

impl Span {
    /// How many bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.range.end.saturating_sub(self.range.start)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
