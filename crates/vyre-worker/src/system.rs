//! What takes `unsafe`: shared memory, and what a child does between fork and exec. The rest of the crate has none.
//!
//! The memory is a file without a name that the child inherits: nobody else can open it, and nothing is left behind when both processes
//! are gone, however they end. On Linux it is sealed against shrinking, so that no process can take pages away from another's mapping.

#![allow(unsafe_code, reason = "memory is mapped and processes are forked here and nowhere else in this crate")]

use rustix::fs::ftruncate;
use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::process::{Signal, getpid, getppid};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{Sender, channel};

/// A file of zeros that has no name.
#[cfg(target_os = "linux")]
fn nameless_file() -> io::Result<OwnedFd> {
    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
    let file = memfd_create(c"vyre-worker", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::SEAL)?;
    Ok(file)
}

/// A file of zeros that has no name.
#[cfg(not(target_os = "linux"))]
fn nameless_file() -> io::Result<OwnedFd> {
    tempfile::tempfile().map(OwnedFd::from)
}

/// A part of a file in memory, shared with whoever maps it too.
pub(crate) struct Mapping {
    start: *mut std::ffi::c_void,
    pub(crate) bytes: usize,
}

// SAFETY: the pointer is to memory that belongs to this value until it is dropped; it is bound to no thread.
unsafe impl Send for Mapping {}

impl Mapping {
    /// The first bytes of a file, which is at least that long.
    pub(crate) fn new(file: BorrowedFd<'_>, bytes: usize) -> io::Result<Mapping> {
        // SAFETY: the kernel chooses a range that nothing else uses, and it stays mapped until `drop`.
        let start = unsafe { mmap(std::ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, file, 0)? };
        Ok(Mapping { start, bytes })
    }

    /// The memory as words that others may change at any time.
    pub(crate) fn words(&self) -> &[AtomicU64] {
        // SAFETY: the range is mapped, readable and writable, as long as `self`; a mapping begins at a page, which is aligned for words; every
        // bit pattern is a word, and atomics may be changed by others, other processes included, while they are shared. The file does not
        // shrink: the judge only grows it, and where the system can seal it, nobody else can shrink it either.
        unsafe { std::slice::from_raw_parts(self.start.cast(), self.bytes / 8) }
    }

    /// So many status words from a place on, and what is behind them up to an end as bytes that are this process's alone for now; `None` if
    /// the places are not in this order and in the memory.
    ///
    /// The caller is a worker between a batch and its answer: the judge that shares the memory puts a batch in place before it sends it, and
    /// keeps off that place until the answer has come, so nobody else changes these bytes in the meantime.
    pub(crate) fn batch(&mut self, status: u64, cases: usize, end: u64) -> Option<(&[AtomicU64], &mut [u8])> {
        let start = usize::try_from(status).ok().filter(|start| start.is_multiple_of(8))?;
        let end = usize::try_from(end).ok().filter(|end| *end <= self.bytes)?;
        let data = start.checked_add(cases.checked_mul(8)?)?;
        let length = end.checked_sub(data)?;
        // SAFETY: `start <= data <= end`, and up to `end` the range is mapped as long as `self`, which is borrowed mutably, so this process has
        // no other reference into it, and these two do not overlap. Words are as in `words`; `start` is a multiple of their size. Off the bytes
        // the judge keeps as the protocol says (see above), and it is the worker's parent, whom it has to trust anyway.
        unsafe {
            let words = std::slice::from_raw_parts(self.start.byte_add(start).cast(), cases);
            Some((words, std::slice::from_raw_parts_mut(self.start.byte_add(data).cast(), length)))
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range is the one that `mmap` gave, and all references into it have ended with `self`.
        let unmapped = unsafe { munmap(self.start, self.bytes) };
        debug_assert!(unmapped.is_ok(), "a mapping is unmapped once");
    }
}

/// The judge's side of shared memory: the file and its mapping.
pub(crate) struct Shared {
    file: OwnedFd,
    mapping: Mapping,
}

impl Shared {
    pub(crate) fn new(bytes: usize) -> io::Result<Shared> {
        // A worker may be started by a shell, whose redirections take the numbers below ten.
        let file = fcntl_dupfd_cloexec(nameless_file()?, 10)?;
        ftruncate(&file, bytes as u64)?;
        let mapping = Mapping::new(file.as_fd(), bytes)?;
        Ok(Shared { file, mapping })
    }

    /// Makes it at least so long.
    pub(crate) fn grow(&mut self, bytes: usize) -> io::Result<()> {
        if bytes > self.mapping.bytes {
            let bytes = bytes.next_multiple_of(1 << 20);
            ftruncate(&self.file, bytes as u64)?;
            self.mapping = Mapping::new(self.file.as_fd(), bytes)?;
        }
        Ok(())
    }

    pub(crate) fn bytes(&self) -> usize {
        self.mapping.bytes
    }

    pub(crate) fn words(&self) -> &[AtomicU64] {
        self.mapping.words()
    }

    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Starts a child that inherits a file under the same number and ends when this process does.
///
/// The kernel ends it with the *thread* that started it, so all are started by one thread that stays.
pub(crate) fn spawn(mut command: Command, inherited: BorrowedFd<'_>) -> io::Result<Child> {
    type Order = (Command, Sender<io::Result<Child>>);
    static STARTER: OnceLock<Option<Sender<Order>>> = OnceLock::new();

    let (judge, number) = (getpid(), inherited.as_raw_fd());
    let before_exec = move || {
        // SAFETY: this runs in the child, where the number is what it was in the judge, which keeps the file open until the child is started.
        let inherited = unsafe { BorrowedFd::borrow_raw(number) };
        fcntl_setfd(inherited, FdFlags::empty())?;
        #[cfg(target_os = "linux")]
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        // A judge that died before the line above is not noticed by it.
        if getppid() != Some(judge) { Err(io::Error::from_raw_os_error(3)) } else { Ok(()) }
    };
    // SAFETY: between fork and exec only system calls are made, through rustix; nothing is allocated and no lock is taken.
    unsafe { command.pre_exec(before_exec) };
    let starter = STARTER.get_or_init(|| {
        let (sender, orders) = channel::<Order>();
        let start = move || orders.into_iter().for_each(|(mut command, done)| drop(done.send(command.spawn())));
        std::thread::Builder::new().name("workers".into()).spawn(start).ok().map(|_| sender)
    });
    let gone = || io::Error::other("there is no thread to start workers");
    let (done, child) = channel();
    starter.as_ref().ok_or_else(gone)?.send((command, done)).map_err(|_| gone())?;
    child.recv().map_err(|_| gone())?
}
